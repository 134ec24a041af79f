"""Rows from features, against plain numpy, finite differences and a posterior on a grid."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from softcount.core.errors import LearnerError
from softcount.core.types import SparseCounts
from softcount.families import Categorical, LogLinear

INDPTR = np.array([0, 3, 3, 5, 9])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def features(seed: int = 0, n: int = 9, width: int = 4) -> sp.csr_matrix:
    source = rng(seed)
    return sp.csr_matrix(source.normal(size=(n, width)) * (source.random((n, width)) < 0.6))


def table_of(matrix, weights):
    logits = matrix.toarray() @ weights
    rows = [special.softmax(logits[a:b]) for a, b in pairwise(INDPTR) if b > a]
    return np.concatenate(rows)


def objective(family, matrix, counts, weights):
    penalty = family.l2 * np.sum(np.square(weights)) / 2
    return np.sum(counts * np.log(table_of(matrix, weights))) - penalty


@given(st.integers(0, 99))
def test_the_table_is_a_softmax_of_features(seed):
    matrix = features(seed)
    family = LogLinear(INDPTR, matrix)
    weights = rng(seed).normal(size=4)
    params = family.bound(weights, family.uniform())
    assert family.table(params) == pytest.approx(table_of(matrix, weights))
    assert np.array_equal(family.weights(params), weights)
    assert np.array_equal(family.free(params), weights)
    assert params.shape == (9 + 4,)


@settings(max_examples=25)
@given(st.integers(0, 99), st.sampled_from([0.1, 1.0, 5.0]))
def test_maximise_climbs_to_the_optimum(seed, l2):
    matrix, counts = features(seed), rng(seed).exponential(size=9)
    family = LogLinear(INDPTR, matrix, l2=l2, max_steps=500)
    best = optimize.minimize(
        lambda w: -objective(family, matrix, counts, w), np.zeros(4), method="BFGS"
    )
    fitted = family.maximise(counts, family.random(rng(seed)), rng())
    found = objective(family, matrix, counts, family.weights(fitted))
    assert found == pytest.approx(-best.fun, abs=1e-5)
    assert family.expected_log(counts, fitted) + family.log_prior(fitted) == pytest.approx(found)


@given(st.integers(0, 99), st.integers(1, 3), st.sampled_from([1.0, 1e6]))
def test_a_few_steps_never_lower_the_objective(seed, max_steps, size):
    matrix, counts = features(seed), size * rng(seed).exponential(size=9)
    family = LogLinear(INDPTR, matrix, max_steps=max_steps)
    params = family.random(rng(seed))
    for _ in range(4):
        new = family.maximise(counts, params, rng())
        before = objective(family, matrix, counts, family.weights(params))
        after = objective(family, matrix, counts, family.weights(new))
        assert after >= before - 1e-12 * abs(before)
        params = new


@settings(max_examples=25)
@given(st.integers(0, 99), st.sampled_from([0.0, 1.0]), st.sampled_from([1e-3, 1.0, 1e6]))
def test_a_gradient_step_follows_the_gradient_and_climbs(seed, l2, size):
    matrix, counts = features(seed), size * rng(seed).exponential(size=9)
    family = LogLinear(INDPTR, matrix, l2=l2, ascent="gradient")
    old = family.random(rng(seed))
    new = family.maximise(counts, old, rng())
    start, end = family.weights(old), family.weights(new)
    before, after = (objective(family, matrix, counts, w) for w in (start, end))
    assert after >= before
    uphill = optimize.approx_fprime(start, lambda w: objective(family, matrix, counts, w), 1e-7)
    moved = end - start
    steep, far = np.linalg.norm(uphill), np.linalg.norm(moved)
    if steep > 1e-3 * size and far > 0.0:  # else the differences are mostly rounding
        assert moved @ uphill == pytest.approx(steep * far, rel=1e-3)


@pytest.mark.parametrize(("ascent", "calls"), [("gradient", 2000), ("converged", 1)])
def test_both_ways_reach_the_top(ascent, calls):
    matrix, counts = features(1), rng(1).exponential(size=9)
    family = LogLinear(INDPTR, matrix, l2=0.3, ascent=ascent)
    params = family.uniform()
    for _ in range(calls):
        params = family.maximise(counts, params, rng())
    best = optimize.minimize(
        lambda w: -objective(family, matrix, counts, w), np.zeros(4), method="BFGS"
    )
    found = objective(family, matrix, counts, family.weights(params))
    assert found == pytest.approx(-best.fun, abs=1e-6)


def test_an_unknown_m_step():
    with pytest.raises(LearnerError, match="ascent is 'newton'"):
        LogLinear(INDPTR, features(), ascent="newton")


def test_the_gradient_is_that_of_finite_differences():
    matrix, counts, weights = features(3), rng(3).exponential(size=9), rng(4).normal(size=4)
    family = LogLinear(INDPTR, matrix, l2=0.3)
    totals = np.repeat([counts[:3].sum(), counts[3:5].sum(), counts[5:].sum()], [3, 2, 4])
    numerical = optimize.approx_fprime(
        weights, lambda w: -objective(family, matrix, counts, w), 1e-6
    )
    assert family._loss(weights, counts, totals)[1] == pytest.approx(numerical, abs=1e-4)


def test_one_feature_an_entry_and_no_penalty_is_a_categorical():
    counts = np.array([[3.0, 1.0, 4.0], [2.0, 2.0, 1.0]])
    family = LogLinear(np.array([0, 3, 6]), sp.identity(6, format="csr"), l2=0.0, max_steps=500)
    fitted = family.maximise(counts.ravel(), family.uniform(), rng())
    plain = Categorical((2, 3))
    expected = plain.maximise(counts, plain.uniform(), rng())
    assert family.table(fitted) == pytest.approx(expected.ravel(), abs=1e-4)
    assert family.log_prior(fitted) == 0.0


def test_the_prior_and_its_price():
    family = LogLinear(INDPTR, features(), l2=2.0)
    params = family.bound(np.array([1.0, 0.0, -2.0, 0.5]), family.uniform())
    assert family.log_prior(params) == pytest.approx(-5.25)
    assert family.divergence(family.zeros(), params) == pytest.approx(5.25)
    assert family.n_free == 4


def test_mean_field_and_mean_are_the_point_estimate():
    family, counts = LogLinear(INDPTR, features()), rng(1).exponential(size=9)
    old = family.random(rng(2))
    point = family.maximise(counts, old, rng())
    assert np.array_equal(family.mean_field(counts, old, rng()), point)
    assert np.array_equal(family.mean(counts, old), point)


def test_draws_follow_the_posterior_of_a_single_weight():
    """Elliptical slice sampling against the posterior on a grid."""
    matrix = sp.csr_matrix([[1.0], [0.0], [-0.5]])
    family = LogLinear(np.array([0, 3]), matrix, l2=0.5)
    counts, source = np.array([4.0, 1.0, 0.5]), rng(5)
    params, draws = family.uniform(), []
    for _ in range(12_000):
        params = family.draw(counts, params, source)
        draws.append(family.weights(params)[0])
    grid = np.linspace(-8, 10, 4001)
    logits = matrix.toarray() * grid
    log_density = counts @ special.log_softmax(logits, axis=0) - 0.25 * grid**2
    density = special.softmax(log_density)
    mean = np.sum(density * grid)
    assert np.mean(draws) == pytest.approx(mean, abs=0.06)
    assert np.var(draws) == pytest.approx(np.sum(density * (grid - mean) ** 2), abs=0.08)
    for quantile in (0.1, 0.5, 0.9):
        expected = grid[np.searchsorted(np.cumsum(density), quantile)]
        assert np.mean(np.array(draws) < expected) == pytest.approx(quantile, abs=0.02)


def test_draws_need_a_prior():
    family = LogLinear(INDPTR, features(), l2=0.0)
    with pytest.raises(LearnerError, match="l2 above 0"):
        family.draw(np.ones(9), family.uniform(), rng())


def test_sparse_counts_are_counts():
    family, counts = LogLinear(INDPTR, features()), np.zeros(9)
    counts[[2, 7]] = 1.5, 4.0
    sparse = SparseCounts(np.array([2, 7]), np.array([1.5, 4.0]), 9)
    params = family.random(rng())
    assert family.expected_log(sparse, params) == pytest.approx(family.expected_log(counts, params))
    assert np.array_equal(
        family.maximise(sparse, params, rng()), family.maximise(counts, params, rng())
    )


def test_alike_and_starts():
    family = LogLinear(np.array([0, 2, 4]), sp.identity(4, format="csr"))
    assert family.table(family.uniform()) == pytest.approx([0.5] * 4)
    assert family.alike(family.uniform()) is True
    assert family.alike(family.random(rng())) is False
    assert LogLinear(np.array([0, 4]), sp.identity(4, format="csr")).alike(np.ones(8)) is None


def test_wrong_settings_are_refused():
    with pytest.raises(LearnerError, match="features of 9 entries, but the rows have 4"):
        LogLinear(np.array([0, 4]), features())
    with pytest.raises(LearnerError, match="l2 is -1"):
        LogLinear(INDPTR, features(), l2=-1.0)
