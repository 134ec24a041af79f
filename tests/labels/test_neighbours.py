"""The nearest rows are those that a look at all pairs finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from softcount.labels import kernels as neighbours
from softcount.labels.kernels import DenseRows, NeighbourPairs, SparseRows


def brute(base, queries, k, *, distances, sparse_rows):
    """For each query its k best rows of the base, by comparing it with all of them."""
    asked = base if queries is None else queries
    found = []
    for q, x in enumerate(asked):
        scored = []
        for row, y in enumerate(base):
            product = float(x @ y)
            if queries is None and row == q:
                continue
            if (sparse_rows or not distances) and product <= 0.0:
                continue
            value = float(((x - y) ** 2).sum()) if distances else product
            scored.append((value if distances else -value, row, value))
        found.append([(row, value) for _, row, value in sorted(scored)[:k]])
    return found


def by_query(found: NeighbourPairs, n: int):
    rows = [[] for _ in range(n)]
    for row, other, value in zip(*found, strict=True):
        rows[row].append((int(other), float(value)))
    return rows


def same(found: NeighbourPairs, wanted, pairs) -> None:
    """The same values in order, and each is that of its own row: ``pairs`` has those of all."""
    got = by_query(found, len(wanted))
    for mine, theirs, everyone in zip(got, wanted, pairs, strict=True):
        values = sorted(value for _, value in mine)
        assert np.allclose(values, sorted(value for _, value in theirs), atol=1e-12)
        assert len({row for row, _ in mine}) == len(mine)
        of_row = dict(everyone)
        assert np.allclose([of_row[row] for row, _ in mine], [v for _, v in mine], atol=1e-12)


def same_rows(found: NeighbourPairs, wanted) -> None:
    """The very rows with the very values, in whatever order: for numbers that need no rounding."""
    got = by_query(found, len(wanted))
    assert [sorted(row) for row in got] == [sorted(row) for row in wanted]


def matrix(seed: int, n: int, width: int, density: float, signed: bool):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, width)) if signed else rng.random((n, width))
    frequent = np.arange(width) < width // 4  # some columns that nearly every row has
    kept = rng.random((n, width)) < np.where(frequent, 0.9, density)
    kept[rng.random(n) < 0.1] = False
    return values * kept


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    k=st.integers(1, 8),
    density=st.floats(0.02, 0.6),
    signed=st.booleans(),
    distances=st.booleans(),
    alone=st.booleans(),
)
def test_sparse_search_finds_what_all_pairs_say(seed, n, k, density, signed, distances, alone):
    base = matrix(seed, n, 12, density, signed)
    queries = None if alone else matrix(seed + 1, 7, 12, density, signed)
    given_rows = None if alone else sparse.csr_matrix(queries)
    found = SparseRows(sparse.csr_matrix(base), distances).nearest(given_rows, k, 1)
    wanted, pairs = (
        brute(base, queries, most, distances=distances, sparse_rows=True) for most in (k, n)
    )
    same(found, wanted, pairs)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    k=st.integers(1, 8),
    distances=st.booleans(),
    alone=st.booleans(),
)
def test_dense_search_finds_what_all_pairs_say(seed, n, k, distances, alone):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, 3))
    queries = None if alone else rng.normal(size=(5, 3))
    found = DenseRows(base, distances).nearest(queries, k, 1)
    wanted, pairs = (
        brute(base, queries, most, distances=distances, sparse_rows=False) for most in (k, n)
    )
    same(found, wanted, pairs)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    k=st.integers(1, 9),
    kind=st.sampled_from([SparseRows, DenseRows]),
    distances=st.booleans(),
    alone=st.booleans(),
    block=st.sampled_from([3, 4096]),
    frequent=st.sampled_from([0.3, 0.9]),
)
def test_among_equals_the_first_are_taken(seed, n, k, kind, distances, alone, block, frequent):
    """Small whole numbers: many rows are as near as others, and nothing is rounded."""
    rng = np.random.default_rng(seed)
    base = rng.integers(-1, 3, size=(n, 4)).astype(float)
    base = rng.permutation(np.vstack([base, -base]))  # their mean is 0, exactly
    queries = None if alone else rng.integers(-1, 3, size=(6, 4)).astype(float)
    asked = queries
    if kind is SparseRows and queries is not None:
        asked = sparse.csr_matrix(queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "BLOCK", block)
        patch.setattr(neighbours, "QUERIES", block)
        patch.setattr(neighbours, "FREQUENT", frequent)
        rows = kind(sparse.csr_matrix(base) if kind is SparseRows else base, distances)
        found = rows.nearest(asked, k, 1)
    is_sparse = kind is SparseRows
    same_rows(found, brute(base, queries, k, distances=distances, sparse_rows=is_sparse))


@pytest.mark.parametrize("frequent", [0.0, 0.3, 1.0])
def test_what_is_looked_at_last_changes_no_bit(monkeypatch, frequent):
    base = sparse.csr_matrix(matrix(3, 300, 60, 0.1, False))
    plain = by_query(SparseRows(base).nearest(None, 10, 1), 300)
    monkeypatch.setattr(neighbours, "FREQUENT", frequent)
    monkeypatch.setattr(neighbours, "BLOCK", 37)
    other = by_query(SparseRows(base).nearest(None, 10, 1), 300)
    assert [sorted(row) for row in plain] == [sorted(row) for row in other]


@pytest.mark.parametrize("kind", [SparseRows, DenseRows])
def test_threads_change_no_bit(kind):
    base = matrix(4, 2000, 40, 0.2, False)
    rows = sparse.csr_matrix(base) if kind is SparseRows else base
    one, two = (kind(rows).nearest(None, 10, threads) for threads in (1, 2))
    for mine, theirs in zip(one, two, strict=True):
        assert np.array_equal(mine, theirs)


def test_among_equals_the_first_rows_are_taken():
    same_rows = sparse.csr_matrix(np.ones((9, 2)))
    found = by_query(SparseRows(same_rows).nearest(None, 3, 1), 9)
    assert sorted(row for row, _ in found[0]) == [1, 2, 3]
    assert sorted(row for row, _ in found[8]) == [0, 1, 2]


def test_points_far_from_the_origin_keep_their_digits():
    base = np.array([[1e8, 0.0], [1e8 + 1e-3, 0.0], [1e8 + 1.0, 0.0]])
    found = by_query(DenseRows(base, distances=True).nearest(None, 1, 1), 3)
    assert [row[0][0] for row in found] == [1, 0, 1]
    assert found[0][0][1] == pytest.approx(1e-6, rel=1e-3)
