"""Stick-breaking weights in a mixture: learners, laws, and the exact posterior."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import special

from softcount.core.fit import fit
from softcount.core.laws import check_model
from softcount.core.verdict import Verdict
from softcount.families import StickBreaking
from softcount.learners import (
    EM,
    Gibbs,
    HardEM,
    IncrementalEM,
    Squarem,
    StochasticVB,
    VariationalBayes,
)
from tests.oracles.sticks import broken
from tests.oracles.toy import Coins, ThrowsCorpus, random_start, simulate


class Process(Coins):
    """Coins drawn from a Dirichlet process."""

    name = "process"

    def __init__(self, n_coins: int, a: float, flip: float = 1.2) -> None:
        super().__init__(n_coins, flip=flip)
        self.families["which"] = StickBreaking(n_coins, a)


class ProcessModel:
    """As much of an estimator as `check_model` asks for."""

    def _bind(self, data):
        return Process(3, 1.7), ThrowsCorpus(data)


TWO_COINS = simulate(60, [0.6, 0.4], [0.95, 0.1], tosses=8, seed=3)


@pytest.mark.parametrize("a", [1.0, 2.5])
@pytest.mark.parametrize(
    "learner",
    [
        EM(max_iter=60, tol=0),
        EM(max_iter=20, tol=0, schedule=Squarem()),
        HardEM(max_iter=20, tol=0),
        IncrementalEM(max_iter=30, tol=0),
        VariationalBayes(max_iter=60, tol=0),
    ],
    ids=lambda learner: str(learner)[:40],
)
def test_objective_never_falls(learner, a):
    model = Process(5, a)
    result = fit(model, ThrowsCorpus(TWO_COINS), learner, init=random_start(model), seed=2)
    assert result.verdict is not Verdict.FELL
    rises = [after - before for before, after in pairwise(result.trace.objective)]
    assert min(rises) >= -1e-9 * abs(result.trace.objective[-1])
    assert result.params["which"].sum() == pytest.approx(1.0)


def test_variational_bayes_finds_how_many_coins_there_are():
    model = Process(10, 0.1)
    learner = VariationalBayes(max_iter=400, tol=1e-9, n_init=3)
    result = fit(model, ThrowsCorpus(TWO_COINS), learner, init=random_start(model))
    assert np.sum(result.params["which"] > 0.05) == 2


def test_stepwise_learning_stays_proper():
    model = Process(4, 0.5)
    result = fit(
        model,
        ThrowsCorpus(TWO_COINS),
        StochasticVB(max_iter=5, batch_size=8),
        init=random_start(model),
    )
    assert np.all(np.isfinite(result.trace.objective[1:]))
    assert result.params["which"].sum() == pytest.approx(1.0)


def test_the_laws_of_models_hold():
    assert check_model(ProcessModel(), ["HHT", "TTT", "HTH", "HH"]).passed


def filled_in(data, n_coins, a, flip):
    """Every way to fill in the coins: log p(x, z), and the posterior mean of the weights."""
    for z in product(range(n_coins), repeat=len(data.faces)):
        hot = np.eye(n_coins)[list(z)]
        sizes = hot.sum(axis=0)
        after = [(1 + n, a + sizes[k + 1 :].sum()) for k, n in enumerate(sizes[:-1])]
        log_p = sum(special.betaln(c, d) - special.betaln(1, a) for c, d in after)
        heads_tails = flip + hot.T @ data.faces
        log_p += np.sum(special.betaln(*heads_tails.T) - special.betaln(flip, flip))
        yield log_p, broken([c / (c + d) for c, d in after])


@pytest.fixture(scope="module")
def small():
    """Five items and three coins at most: log evidence and posterior mean weights, exactly."""
    data = ThrowsCorpus(["HHH", "HHHH", "TTT", "HHT", "TTTT"], n_shards=1)
    worlds = list(filled_in(data.all, 3, 0.7, 1.2))
    logs = np.array([log_p for log_p, _ in worlds])
    evidence = np.logaddexp.reduce(logs)
    return data, evidence, np.exp(logs - evidence) @ np.array([mean for _, mean in worlds])


def test_the_bound_lies_below_the_exact_evidence(small):
    data, evidence, _ = small
    model = Process(3, 0.7)
    learner = VariationalBayes(max_iter=300, tol=1e-10, n_init=3)
    result = fit(model, data, learner, init=random_start(model))
    assert evidence - 3 < result.trace.objective[-1] < evidence


def test_gibbs_draws_from_the_exact_posterior(small):
    data, _, mean = small
    model = Process(3, 0.7)
    learner = Gibbs(max_iter=1500, n_init=1, burn_in=0.05)
    result = fit(model, data, learner, init=random_start(model), seed=1)
    assert result.params["which"][0] == pytest.approx(mean, abs=0.03)
