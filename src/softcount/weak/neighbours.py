"""The k nearest of many rows, exactly: by an inverted index if they are sparse, else in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from softcount.kernels.blas import single_threaded
from softcount.kernels.nearest import NOTHING, search_dense, search_sparse
from softcount.kernels.pool import in_turn, over_rows
from softcount.types import Array

BLOCK = 4096
"""Rows of the base at a time: their sums stay in the processor's cache."""
MOST_BLOCKS = 32
QUERIES = 512
"""Dense rows that are multiplied at a time."""
CHUNK = 1 << 16
"""Pairs whose distances are measured at a time."""
FREQUENT = 0.3
"""Terms in more than this part of the rows are looked at last. Measured on newsgroups: .2 to .5
take about the same time; a twentieth leaves too many rows to look at one by one."""
SLACK = 1.0 + 1e-9
"""Norms are rounded; what is left out for its norm must be so surely."""


class Found(NamedTuple):
    """Pairs of rows, those of a row together: ``row`` of the queries, ``other`` of the base."""

    row: Array
    other: Array
    value: Array
    """The inner product of the two, or their squared distance."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows that can be searched; rows are neighbours if their product is above zero.

    ``matrix``     CSR, rows × terms
    ``distances``  look for the smallest distances, instead of the largest products
    """

    matrix: Any
    distances: bool = False

    @cached_property
    def _rank(self) -> Array:
        """The place of each term, from rare to frequent."""
        rank: Array = np.empty(self.matrix.shape[1], np.int32)
        rank[np.argsort(self._spread, kind="stable")] = np.arange(len(rank))
        return rank

    @cached_property
    def _spread(self) -> Array:
        """How many rows have each term."""
        return np.bincount(self.matrix.indices, minlength=self.matrix.shape[1])

    @cached_property
    def _sorted(self) -> _Sorted:
        return self._in_order(self.matrix)

    def _in_order(self, matrix: Any) -> _Sorted:
        """Rows with their terms from rare to frequent."""
        n_rare = int((self._spread <= FREQUENT * self.matrix.shape[0]).sum())
        rows = sparse.csr_matrix(
            (matrix.data, self._rank[matrix.indices], matrix.indptr), shape=matrix.shape, copy=True
        )
        rows.sort_indices()
        indptr, terms = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        of_row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        is_rare = terms < n_rare
        middle = indptr[:-1] + np.bincount(of_row[is_rare], minlength=len(indptr) - 1)
        squares = np.where(is_rare, 0.0, rows.data**2)
        norms = np.sqrt(np.bincount(of_row, squares, minlength=len(indptr) - 1)) * SLACK
        return _Sorted(indptr, middle, terms, rows.data, norms, n_rare)

    @cached_property
    def _postings(self) -> tuple[Array, Array, Array, Array]:
        """The rare terms of every block: borders of blocks, lists, numbers of rows, values."""
        it, n = self._sorted, self.matrix.shape[0]
        borders = _borders(n)
        rows = sparse.csr_matrix(
            (it.values, it.terms, it.indptr), shape=self.matrix.shape, copy=False
        )
        blocks = [rows[a:b, : it.n_rare].tocsc() for a, b in pairwise(borders)]
        begins = np.concatenate([[0], np.cumsum([block.nnz for block in blocks])])
        lists = np.array([block.indptr + a for block, a in zip(blocks, begins[:-1], strict=True)])
        postings = np.concatenate([block.indices for block in blocks]).astype(np.uint32)
        values = np.concatenate([block.data for block in blocks])
        return borders, lists.astype(np.uint64), postings, values

    @cached_property
    def _offsets(self) -> Array:
        if not self.distances:
            return np.zeros(self.matrix.shape[0])
        return -0.5 * _squares(self.matrix)

    def nearest(self, queries: Any, k: int, threads: int) -> Found:
        """The k nearest rows of each query; None: of each row here, which is not its own."""
        alone = queries is None
        base = self._sorted
        asked = base if alone else self._in_order(queries)
        best, found, filled = _heaps(len(asked.indptr) - 1, k)
        over_rows(
            search_sparse,
            asked.indptr,
            threads,
            *(asked.indptr, asked.middle, asked.terms, asked.values, asked.norms),
            *(base.indptr, base.middle, base.terms, base.values, base.norms),
            self._offsets,
            *self._postings,
            len(self._rank) - base.n_rare,
            alone,
            *(best, found, filled),
        )
        row, other, score = _pairs(best, found, filled)
        if not self.distances:
            return Found(row, other, score)
        squares = -2.0 * self._offsets if alone else _squares(queries)
        return Found(row, other, np.maximum(squares[row] - 2.0 * score, 0.0))


class _Sorted(NamedTuple):
    """Rows laid end to end, and from which place on the terms of each are frequent."""

    indptr: Array
    middle: Array
    terms: Array
    values: Array
    norms: Array
    """Of the frequent parts."""
    n_rare: int


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Dense rows that can be searched; for cosines only products above zero count."""

    matrix: Array
    distances: bool = False

    @cached_property
    def _middle(self) -> Array:
        """Where distances are measured from, so that few digits cancel."""
        if not (self.distances and len(self.matrix)):
            return np.zeros(self.matrix.shape[1])
        middle: Array = self.matrix.mean(axis=0)
        return middle

    @cached_property
    def _centred(self) -> Array:
        centred: Array = self.matrix - self._middle
        return centred

    @cached_property
    def _offsets(self) -> Array:
        if not self.distances:
            return np.zeros(len(self.matrix))
        offsets: Array = -0.5 * np.einsum("ij,ij->i", self._centred, self._centred)
        return offsets

    def nearest(self, queries: Array | None, k: int, threads: int) -> Found:
        """The k nearest rows of each query; None: of each row here, which is not its own."""
        base = self._centred
        asked = base if queries is None else queries - self._middle
        own = np.arange(len(asked)) if queries is None else np.full(len(asked), -1)
        best, found, filled = _heaps(len(asked), k)
        borders = _borders(len(base))
        least = NOTHING if self.distances else 0.0

        def search(piece: int) -> None:
            some = slice(piece * QUERIES, (piece + 1) * QUERIES)
            for a, b in pairwise(borders):
                products = asked[some] @ base[a:b].T
                heaps = (best[some], found[some], filled[some])
                search_dense(products, self._offsets, a, least, own[some], *heaps)

        with single_threaded():
            in_turn(search, -(-len(asked) // QUERIES), threads)
        row, other, score = _pairs(best, found, filled)
        if not self.distances:
            return Found(row, other, score)
        return Found(row, other, _squared_distances(asked, base, row, other))


def _borders(n: int) -> Array:
    n_blocks = max(1, min(MOST_BLOCKS, -(-n // BLOCK)))
    return np.linspace(0, n, n_blocks + 1).astype(np.int64)


def _heaps(n: int, k: int) -> tuple[Array, Array, Array]:
    return np.zeros((n, k)), np.zeros((n, k), np.int64), np.zeros(n, np.int64)


def _pairs(best: Array, found: Array, filled: Array) -> tuple[Array, Array, Array]:
    """Rows, their neighbours and the scores."""
    there = np.arange(best.shape[1]) < filled[:, None]
    return np.repeat(np.arange(len(best)), filled), found[there], best[there]


def _squares(matrix: Any) -> Array:
    """The squared length of each sparse row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1)


def _squared_distances(asked: Array, base: Array, row: Array, other: Array) -> Array:
    """From differences: products of rows that are close together cancel each other's digits."""
    found = np.empty(len(row))
    for a in range(0, len(row), CHUNK):
        apart = asked[row[a : a + CHUNK]] - base[other[a : a + CHUNK]]
        found[a : a + CHUNK] = np.einsum("ij,ij->i", apart, apart)
    return found
