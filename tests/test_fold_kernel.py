"""Folding documents in, against a plain loop over documents and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from softcount.corpus.bags import Bags
from softcount.kernels.jit import njit
from softcount.topics.core import fold_in
from softcount.topics.data import RowPrior
from softcount.topics.kernels import digamma

Array = np.ndarray


@njit
def _digammas(values: Array) -> Array:
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = digamma(values[i])
    return out


def test_digamma_is_scipys() -> None:
    values = np.concatenate(
        [np.geomspace(1e-300, 1e300, 4001), np.linspace(1e-3, 30, 5000), np.arange(1.0, 40)]
    )
    expected = special.digamma(values)
    # near its root 1.4616… the value itself is as small as what rounding leaves
    assert _digammas(values) == pytest.approx(expected, rel=4e-15, abs=1e-14)


def by_hand(
    counts: Array,
    topics: Array,
    alpha: Array,
    averages: bool,
    temper: float,
    may: Array,
    most: int,
    tol: float,
) -> Array:
    """p(topic | document), a document, a word and a topic at a time."""
    rows = []
    for x, allowed in zip(counts, may, strict=True):
        begun = x.sum() * allowed / allowed.sum() + alpha
        log_mean = special.digamma(begun) - special.digamma(begun[allowed].sum())
        theta = np.exp(log_mean) if averages else 1.0 / allowed.sum()
        theta = np.where(allowed, theta, 0.0)
        mass = theta
        for _ in range(most):
            mass = np.where(allowed, alpha if averages else alpha - 1.0, 0.0)
            for w, n in enumerate(x):
                p = (theta * topics[:, w]) ** temper
                if n and p.sum() > 0:
                    mass = mass + n * p / p.sum()
            new = theta
            if averages:
                total = special.digamma(mass.sum())
                new = np.where(
                    allowed, np.exp(special.digamma(np.where(allowed, mass, 1.0)) - total), 0.0
                )
            elif mass.sum() > 0:
                new = mass / mass.sum()
            moved, theta = np.abs(new - theta).max(), new
            if moved <= tol:
                break
        found = mass if averages else theta
        rows.append(found / found.sum())
    return np.array(rows)


@st.composite
def cases(draw: Any) -> Any:
    K, V, n = (
        draw(st.sampled_from([1, 2, 7, 8, 9, 17])),
        draw(st.integers(1, 7)),
        draw(st.integers(1, 5)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.poisson(0.8, (n, V)) * rng.choice([1.0, 0.5, 20.0])
    topics = rng.dirichlet(np.full(V, 0.5), K)
    topics[rng.random((K, V)) < 0.15] = 0.0
    topics[:, rng.random(V) < 0.1] = 0.0  # words that no topic has
    may = rng.random((n, K)) < draw(st.sampled_from([0.5, 1.0]))
    may[~may.any(axis=1)] = True
    return counts, topics, may, rng


@given(cases(), st.booleans(), st.sampled_from([1.0, 0.6, 1.7]), st.sampled_from([1, 3, 60]))
@settings(max_examples=120, deadline=None)
def test_a_plain_loop_finds_the_same(case: Any, averages: bool, temper: float, most: int) -> None:
    counts, topics, may, rng = case
    alpha = rng.uniform(0.05, 2.0, len(topics))
    if not averages:
        alpha = 1.0 + alpha * rng.choice([0.0, 1.0])
    prior = RowPrior(alpha, "mean_field" if averages else "maximise")
    given = None if may.all() else may
    found = fold_in(topics, Bags.of(counts), prior, most, 1e-6, given, temper=temper)
    expected = by_hand(counts, topics, alpha, averages, temper, may, most, 1e-6)
    # a step more or less, where a change is as large as tol but for rounding
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-11 if most <= 3 else 1e-5)
    assert not found[~may].any()


@given(cases(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_threads_and_neighbours_do_not_matter(case: Any, averages: bool) -> None:
    """Same bits with any number of threads; and of each document alone, or in another order."""
    counts, topics, may, rng = case
    prior = RowPrior(np.full(len(topics), 0.3 + (not averages)), "draw" if averages else "maximise")
    whole = fold_in(topics, Bags.of(counts), prior, allowed=may)
    for threads in (2, 3):
        again = fold_in(topics, Bags.of(counts), prior, allowed=may, threads=threads)
        assert again.tobytes() == whole.tobytes()
    for d in rng.permutation(len(counts)):
        alone = fold_in(topics, Bags.of(counts[d : d + 1]), prior, allowed=may[d : d + 1])
        assert alone[0].tobytes() == whole[d].tobytes()


def test_samplers_fold_in_by_adding_the_prior_to_counts() -> None:
    rng = np.random.default_rng(0)
    topics, counts = rng.dirichlet(np.ones(6), 3), rng.poisson(1.0, (4, 6))
    alpha = np.array([0.4, 0.1, 2.0])
    found = fold_in(topics, Bags.of(counts), RowPrior(alpha, "draw"), 500, 1e-12)
    expected = by_hand(counts, topics, alpha + 1, False, 1.0, np.ones((4, 3), bool), 500, 1e-12)
    assert found == pytest.approx(expected, abs=1e-9)


def test_nothing_to_go_by() -> None:
    """Empty documents, and words that no topic has: what the prior says, or all topics alike."""
    topics, alpha = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.2, 0.6])
    bags, may = (
        Bags.of([[0.0, 0.0], [0.0, 3.0], [0.0, 0.0]]),
        np.array([[1, 1], [1, 1], [0, 1]], bool),
    )
    means = fold_in(topics, bags, RowPrior(alpha, "mean_field"), allowed=may)
    assert means == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75], [0.0, 1.0]]))
    modes = fold_in(topics, bags, RowPrior(alpha + 1.0), allowed=may)
    assert modes == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75], [0.0, 1.0]]))
    flat = fold_in(topics, bags, RowPrior(np.ones(2)), allowed=may)
    assert flat == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]))


@pytest.mark.parametrize("alpha", [0.01, 1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize("n_topics", [2, 20, 1000])
def test_tiny_priors_leave_proper_shares(alpha: float, n_topics: int) -> None:
    """exp ψ(α) is no number for small α; shares are."""
    counts = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 1], [40, 0, 3.0]])
    topics = np.random.default_rng(1).dirichlet(np.ones(3), n_topics)
    prior = RowPrior(np.full(n_topics, alpha), "mean_field")
    found = fold_in(topics, Bags.of(counts), prior, 200)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    assert found[0] == pytest.approx(np.full(n_topics, 1 / n_topics))
    # (n + α) / (N + Kα): a topic that a document has nothing of still has what the prior gives it
    least = alpha / (counts.sum(axis=1) + n_topics * alpha)
    assert (found >= least[:, None] * (1 - 1e-9)).all()
