"""Simulation-based calibration (Talts et al. 2018): data drawn from the prior give back the prior.

If tables are drawn from the prior, data from the tables, and a sampler is run on the data, then the
true value's rank among the draws is uniform. A sampler that is wrong in its conditionals, its prior
or its burn-in gives ranks that are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from tests.oracles import stories

N_DRAWS = 15
N_RUNS = 160
BOUND = 37.7  # χ² with 15 degrees of freedom: 0.999


def simulated(rng: np.random.Generator, alpha: float) -> tuple[dict[str, Any], list[str]]:
    """Tables from the prior, and data from the tables, without the library's help."""
    which = rng.dirichlet([alpha, alpha])
    heads = rng.beta(alpha, alpha, size=2)
    items = []
    for _ in range(4):
        coin = int(rng.random() > which[0])
        items.append("".join("H" if rng.random() < heads[coin] else "T" for _ in range(3)))
    truth = {"which": which[0], "first": heads[0], "largest": heads.max()}
    return truth, items


def ranks(alpha: float, assumed: float, seed: int) -> dict[str, np.ndarray]:
    """Ranks of the true values among a sampler's draws, one for each simulated data set."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[int]] = {}
    learner = sc.Gibbs(n_init=1, max_iter=20 + 6 * N_DRAWS, burn_in=20 / (20 + 6 * N_DRAWS), thin=6)
    for run in range(N_RUNS):
        truth, items = simulated(rng, alpha)
        story = stories.coins(lambda name: sc.table(name, outcomes=OUTCOMES[name]), sc.story)
        model = sc.StoryModel(story, learner=learner, prior=assumed, random_state=run).fit(items)
        core, _ = model._bind(items)
        draws = [core.view_params(draw) for draw in model.fit_.draws[0]]
        assert len(draws) == N_DRAWS
        values = {
            "which": [draw["which"]["A"] for draw in draws],
            "first": [draw["flip"]["A"]["H"] for draw in draws],
            "largest": [max(draw["flip"][coin]["H"] for coin in "AB") for draw in draws],
        }
        for name, drawn in values.items():
            found.setdefault(name, []).append(sum(value < truth[name] for value in drawn))
    return {name: np.array(rank) for name, rank in found.items()}


OUTCOMES = {"which": "AB", "flip": "HT"}


def chi_square(rank: np.ndarray) -> float:
    seen = np.bincount(rank, minlength=N_DRAWS + 1)
    expected = len(rank) / (N_DRAWS + 1)
    return float(((seen - expected) ** 2 / expected).sum())


@pytest.mark.slow
def test_gibbs_is_calibrated() -> None:
    for name, rank in ranks(alpha=1.5, assumed=1.5, seed=20).items():
        assert chi_square(rank) < BOUND, (name, np.bincount(rank, minlength=N_DRAWS + 1))


@pytest.mark.slow
def test_calibration_would_notice_a_wrong_prior() -> None:
    statistics = [chi_square(rank) for rank in ranks(alpha=0.4, assumed=4.0, seed=21).values()]
    assert max(statistics) > 2 * BOUND
