"""The kernels of mixtures against numpy: bags of words, posteriors, draws, and rows in pieces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import chi2

from softcount.kernels import posterior
from softcount.kernels.threads import over_rows
from softcount.kernels.vectors import empty_rows, padded_width
from softcount.mixture import kernels as bags
from softcount.text.bags import Compressed

Array = np.ndarray


@st.composite
def counted(draw: Any) -> tuple[Array, np.random.Generator, int]:
    n_documents, n_words, n_classes = (draw(st.integers(1, most)) for most in (12, 7, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.poisson(0.7, (n_documents, n_words)) * rng.uniform(0.5, 2, (n_documents, n_words))
    return counts, rng, n_classes


def compressed(matrix: Any) -> Compressed:
    return Compressed(matrix.indptr.astype(np.int64), matrix.indices, matrix.data)


def padded(weights: Array) -> Array:
    table = empty_rows(len(weights), padded_width(weights.shape[1]))
    bags.transpose(np.ascontiguousarray(weights.T), 7.0, table)
    assert (table[:, weights.shape[1] :] == 7.0).all()
    return table


@given(counted(), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_joint_is_a_product(case: tuple[Array, Any, int], threads: int) -> None:
    counts, rng, n_classes = case
    rows = sparse.csr_matrix(counts)
    weights = rng.normal(size=(counts.shape[1], n_classes))
    offsets = rng.normal(size=n_classes)
    out = np.full((len(counts), n_classes), np.nan)
    tables = padded(weights), offsets, out
    over_rows(bags.joint, rows.indptr, threads, compressed(rows), *tables)
    np.testing.assert_allclose(out, offsets + counts @ weights, atol=1e-12)


def test_a_word_that_is_absent_may_be_impossible() -> None:
    """0 · log 0 is nothing, and x · log 0 is −∞."""
    counts = sparse.csr_matrix([[2.0, 0.0], [0.0, 1.0]])
    out = np.full((2, 2), np.nan)
    weights = padded(np.array([[-1.0, -2.0], [-np.inf, -3.0]]))
    bags.joint(0, 2, compressed(counts), weights, np.zeros(2), out)
    assert out.tolist() == [[-2.0, -4.0], [-np.inf, -3.0]]


@given(counted(), st.integers(1, 4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_word_counts_are_a_product(case: tuple[Array, Any, int], threads: int, few: bool) -> None:
    counts, rng, n_classes = case
    shares = rng.dirichlet(np.full(n_classes, 0.01 if few else 1.0), len(counts))
    columns = sparse.csc_matrix(counts)
    out = np.full((counts.shape[1], n_classes), np.nan, order="F")
    main = bags.main_classes(shares, 1e-12)
    over_rows(bags.counts_by_word, columns.indptr, threads, compressed(columns), main, out)
    np.testing.assert_allclose(out, counts.T @ shares, atol=1e-10)
    rows, again = sparse.csr_matrix(counts), np.zeros(out.shape)
    bags.counts_by_document(compressed(rows), main, again)
    assert again.tobytes() == out.tobytes()
    wide = empty_rows(len(counts), padded_width(n_classes))
    bags.pad_responsibilities(shares, 1e-12, wide)
    by_class = np.full(out.shape[::-1], np.nan)
    over_rows(bags.sum_by_word, columns.indptr, threads, compressed(columns), wide, by_class)
    assert np.array_equal(by_class.T, out)


@given(st.integers(0, 10**6), st.integers(0, 8), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_main_classes_are_those_that_matter(seed: int, n: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0, 1, (n, n_classes)) * (rng.random((n, n_classes)) < 0.4)
    _, indptr, classes, own = bags.main_classes(shares, 0.1)
    for d, row in enumerate(shares):
        large = np.flatnonzero(row > 0.1 * row.max()).tolist()
        listed = classes[indptr[d] : indptr[d + 1]].tolist()
        assert listed == (large if len(large) <= n_classes // bags.FEW else [])
        assert own[indptr[d] : indptr[d + 1]].tolist() == row[listed].tolist()


@pytest.mark.parametrize("lengths", [[], [0], [5], [0, 0, 0], [9, 0, 0, 1], [1] * 40, [0, 99, 0]])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_row_is_worked_on_once(lengths: list[int], threads: int) -> None:
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    visits = np.zeros(len(lengths), int)

    def visit(first: int, last: int, visits: Array) -> None:
        visits[first:last] += 1

    over_rows(visit, indptr, threads, visits)
    assert visits.tolist() == [1] * len(lengths)


def test_what_goes_wrong_in_a_thread_is_not_lost() -> None:
    def fail(first: int, last: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        over_rows(fail, np.arange(9), 2)


# posteriors


@st.composite
def joints(draw: Any) -> tuple[Array, Array, Array]:
    n, n_classes = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    joint = rng.normal(size=(n, n_classes)) * draw(st.sampled_from([1.0, 50.0, 1e5]))
    joint[rng.random(joint.shape) < 0.2] = -np.inf
    lower = rng.integers(0, n_classes, n)
    return joint, lower, rng.integers(lower + 1, n_classes + 1)


def restricted(joint: Array, lower: Array, upper: Array) -> Array:
    k = np.arange(joint.shape[1])
    return np.where((k >= lower[:, None]) & (k < upper[:, None]), joint, -np.inf)


@given(joints(), st.sampled_from([0.3, 1.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_soft_posteriors(case: tuple[Array, Array, Array], temper: float) -> None:
    out = np.full_like(case[0], 7.0)
    totals = posterior.soft(*case, temper, out)
    logs = restricted(*case) * temper
    with np.errstate(all="ignore"):
        expected = logsumexp(logs, axis=1)
        shares = np.nan_to_num(np.exp(logs - expected[:, None]))
    np.testing.assert_allclose(totals, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, shares, atol=1e-12)
    possible = np.isfinite(expected)
    np.testing.assert_allclose(out.sum(axis=1), possible.astype(float), atol=1e-12)


@given(joints())
@settings(max_examples=60, deadline=None)
def test_hard_posteriors(case: tuple[Array, Array, Array]) -> None:
    out = np.full_like(case[0], 7.0)
    best, totals = posterior.hard(*case, out)
    logs = restricted(*case)
    np.testing.assert_array_equal(best, logs.max(axis=1))
    np.testing.assert_allclose(totals, logsumexp(logs, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(totals, posterior.totals(*case))
    for row, found in zip(logs, out, strict=True):
        expected = np.zeros(len(row))
        if np.isfinite(row.max()):
            expected[row.argmax()] = 1.0
        assert found.tolist() == expected.tolist()


def test_the_first_of_equals_is_the_best() -> None:
    out = np.empty((1, 3))
    posterior.hard(np.array([[-2.0, -1.0, -1.0]]), np.array([0]), np.array([3]), out)
    assert out.tolist() == [[0.0, 1.0, 0.0]]


def test_draws_have_the_posteriors_frequencies() -> None:
    n, chances = 40_000, np.array([0.5, 0.0, 0.3, 0.2])
    out = np.empty((n, 4))
    posterior.draw(np.tile(chances, (n, 1)), np.arange(n), np.uint64(5), 1, out)
    assert set(np.unique(out)) == {0.0, 1.0}
    seen = out.sum(axis=0)
    assert seen[1] == 0.0
    some = chances > 0
    surprise = ((seen[some] - n * chances[some]) ** 2 / (n * chances[some])).sum()
    assert surprise < chi2.ppf(0.9999, 2)
    pairs = Counter(zip(out[:-1].argmax(axis=1), out[1:].argmax(axis=1), strict=True))
    assert pairs[0, 0] / n == pytest.approx(0.25, abs=0.015)  # neighbours are independent


def test_draws_depend_on_stream_and_item_alone() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), 50)
    numbers = rng.permutation(50)
    whole, part, other = np.empty((50, 5)), np.empty((10, 5)), np.empty((50, 5))
    posterior.draw(shares, numbers, np.uint64(3), 20, whole)
    posterior.draw(shares[20:30], numbers[20:30], np.uint64(3), 20, part)
    posterior.draw(shares, numbers, np.uint64(4), 20, other)
    np.testing.assert_array_equal(whole[20:30], part)
    assert (whole != other).any()
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    np.testing.assert_allclose(whole * 20, np.round(whole * 20))


def test_nothing_is_drawn_for_what_is_impossible() -> None:
    out = np.empty((1, 2))
    posterior.draw(np.zeros((1, 2)), np.array([0]), np.uint64(1), 3, out)
    assert out.tolist() == [[0.0, 0.0]]
