"""The weights of jumps against scipy, and their draws against weighed samples from the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import xlogy

from softcount.align.families import JumpTable
from softcount.core.errors import LearnerError

Weights = np.ndarray


def bin_of(reach: int, h: int, k: int) -> int:
    """Which weight a jump from h to k has: widths −reach … reach, then first places 1 … reach."""
    if h == 0:
        return 2 * reach + min(k, reach)
    return max(-reach, min(reach, k - h)) + reach


def reached(reach: int, lengths: list[int]) -> np.ndarray:
    """How often each row, a place that can be left, allows each weight: Z = reached @ w."""
    rows = []
    for l in sorted(lengths):
        for h in range(l + 1):
            row = np.zeros(3 * reach + 1)
            for k in range(1, l + 1):
                row[bin_of(reach, h, k)] += 1.0
            rows.append(row)
    return np.array(rows)


def log_likelihood(
    reach: int, lengths: list[int], often: np.ndarray, left: np.ndarray, weights: Weights
) -> Any:
    """Σ c log w − Σ n log Z of one set of weights, or of many."""
    z = weights @ reached(reach, lengths).T
    return xlogy(often, weights).sum(axis=-1) - xlogy(left, z).sum(axis=-1)


def log_prior(prior: float, weights: Weights) -> float:
    return float((prior - 1.0) * np.log(weights).sum()) if prior != 1.0 else 0.0


def counted(
    reach: int, lengths: list[int], seed: int, often_enough: float = 0.7
) -> tuple[np.ndarray, np.ndarray]:
    """Counts that belong together: random jumps, by weight and by the place left."""
    rng = np.random.default_rng(seed)
    often = np.zeros(3 * reach + 1)
    left = []
    for l in sorted(lengths):
        for h in range(l + 1):
            jumps = 5.0 * rng.random(l) * (rng.random(l) < often_enough)
            for k, c in enumerate(jumps, start=1):
                often[bin_of(reach, h, k)] += c
            left.append(jumps.sum())
    return often, np.array(left)


@st.composite
def tables(draw: Any) -> tuple[int, list[int], int]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))
    return draw(st.integers(1, 4)), lengths, draw(st.integers(0, 10**6))


@given(tables(), st.sampled_from([1.0, 1.4, 3.0]))
@settings(max_examples=100, deadline=None)
def test_terms_of_the_objective(case: tuple[int, list[int], int], prior: float) -> None:
    reach, lengths, seed = case
    family = JumpTable(reach, np.array(lengths), prior)
    often, left = counted(*case)
    weights = family.random(np.random.default_rng(seed))
    counts = np.concatenate([often, left])
    assert counts.shape == family.zeros().shape
    found = family.expected_log(counts, weights)
    assert found == pytest.approx(log_likelihood(reach, lengths, often, left, weights), abs=1e-10)
    assert family.log_prior(weights) == pytest.approx(log_prior(prior, weights), abs=1e-10)


@given(tables(), st.sampled_from([1.0, 1.4]))
@settings(max_examples=100, deadline=None)
def test_maximise_never_falls(case: tuple[int, list[int], int], prior: float) -> None:
    reach, lengths, seed = case
    family, rng = JumpTable(reach, np.array(lengths), prior), np.random.default_rng(seed)
    counts = np.concatenate(counted(*case))
    params = family.random(rng)
    for _ in range(3):
        new = family.maximise(counts, params, rng)
        before = family.expected_log(counts, params) + family.log_prior(params)
        after = family.expected_log(counts, new) + family.log_prior(new)
        assert after >= before - 1e-10 * (1.0 + abs(before))
        for part in (new[: 2 * reach + 1], new[2 * reach + 1 :]):
            assert part.sum() == pytest.approx(1.0)
            assert (part >= 0.0).all()
        params = new


@given(tables(), st.sampled_from([1.0, 1.4]))
@settings(max_examples=40, deadline=None)
def test_maximise_finds_the_optimum(case: tuple[int, list[int], int], prior: float) -> None:
    """A few M-steps reach what scipy finds in free coordinates.

    Every jump occurs: otherwise the best weights may be zeros, which steps approach ever slower.
    """
    reach, lengths, _ = case
    family = JumpTable(reach, np.array(lengths), prior)
    often, left = counted(*case, often_enough=1.0)
    counts = np.concatenate([often, left])

    def normal(free: np.ndarray) -> Weights:
        weights = np.exp(np.clip(free, -30.0, 30.0))
        cut = 2 * reach + 1
        return np.concatenate([w / w.sum() for w in (weights[:cut], weights[cut:])])

    def cost(free: np.ndarray) -> float:
        w = normal(free)
        return -float(log_likelihood(reach, lengths, often, left, w)) - log_prior(prior, w)

    best = minimize(cost, np.zeros(family.n_weights), method="L-BFGS-B", options={"maxiter": 2000})
    params, rng = family.uniform(), np.random.default_rng(0)
    for _ in range(40):
        params = family.maximise(counts, params, rng)
    found = family.expected_log(counts, params) + family.log_prior(params)
    assert found >= -best.fun - 1e-6 * (1.0 + abs(best.fun))


def test_a_width_that_cannot_occur_stays() -> None:
    """Sentences of one word know no jump but that of 0."""
    family = JumpTable(2, np.array([1]))
    counts = family.zeros()
    counts[[2, 5]] = 3.0, 2.0  # stays where it is, starts at place 1
    counts[family.n_weights :] = 2.0, 3.0
    params = family.maximise(counts, family.uniform(), np.random.default_rng(0))
    assert np.isfinite(params).all()
    assert params == pytest.approx(family.uniform())


def test_no_counts_change_nothing() -> None:
    family = JumpTable(2, np.array([1, 4]))
    params = family.random(np.random.default_rng(1))
    again = family.maximise(family.zeros(), params, np.random.default_rng(0))
    assert again == pytest.approx(params)


def test_a_small_prior_has_no_mode() -> None:
    below = JumpTable(2, np.array([3]), 0.5)
    with pytest.raises(LearnerError):
        below.maximise(below.zeros(), below.uniform(), np.random.default_rng(0))


@pytest.mark.parametrize("prior", [1.0, 0.5, 2.5])
def test_draws_leave_the_posterior_as_it_is(prior: float) -> None:
    """Reach 1, so three widths and one first place; the truth is a grid over two of the widths."""
    lengths = [2, 4]
    family = JumpTable(1, np.array(lengths), prior)
    often, left = counted(1, lengths, 3)
    often, left = often / 4.0, left / 4.0
    counts = np.concatenate([often, left])
    cells = (np.arange(120) + 0.5) / 120
    grid = np.array([[a, b, 1.0 - a - b] for a in cells for b in cells if a + b < 0.9999])
    whole = np.column_stack([grid, np.ones(len(grid))])
    logs = log_likelihood(1, lengths, often, left, whole)
    logs += (prior - 1.0) * np.log(grid).sum(axis=1)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    mean = shares @ grid
    spread = np.sqrt(shares @ (grid - mean) ** 2)
    rng, draws, now = np.random.default_rng(2), [], family.uniform()
    for _ in range(6000):
        now = family.draw(counts, now, rng)
        draws.append(now[:3])
    kept = np.array(draws[300:])
    assert np.abs(kept.mean(axis=0) - mean).max() < 0.12 * spread.min()
    assert kept.std(axis=0) == pytest.approx(spread, rel=0.1)
    assert now[3] == 1.0
