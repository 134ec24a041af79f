"""The k nearest neighbours of many rows, exactly: by an inverted index if they are sparse, else by
products of blocks.

The nearest rows y of a row x have the largest x · y + offset(y), with an offset of 0 for cosines
(of rows of length 1) and of −‖y‖²/2 for distances. The k best of every row are kept in a heap whose
first is the worst of them; among equals the row with the smaller number is better, so that no order
of the work shows in the result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import njit
from softcount.kernels.threads import in_turn, over_rows, single_threaded

NOTHING = -1e300
"""Below every score there is."""
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


class NearestHeaps(NamedTuple):
    """The best neighbours of each query so far, as heaps."""

    scores: FloatArray  # (queries, k)
    rows: IntArray  # (queries, k)
    filled: IntArray  # (queries,): how many of the k there are

    @classmethod
    def make(cls, n: int, k: int) -> Self:
        """Empty heaps for the k best of n queries."""
        return cls(np.zeros((n, k)), np.zeros((n, k), np.int64), np.zeros(n, np.int64))

    def list_pairs(self) -> NeighbourPairs:
        """Every query with each of its neighbours, and their scores."""
        there = np.arange(self.scores.shape[1]) < self.filled[:, None]
        queries = np.repeat(np.arange(len(self.scores)), self.filled)
        return NeighbourPairs(queries, self.rows[there], self.scores[there])


class NeighbourPairs(NamedTuple):
    """Pairs of rows, those of a query together."""

    row: IntArray
    """Of the queries."""
    other: IntArray
    """Of the base."""
    value: FloatArray
    """The inner product of the two, or their squared distance."""


class SortedRows(NamedTuple):
    """Sparse rows laid end to end, the terms of each from rare to frequent."""

    indptr: IntArray  # (rows + 1,)
    middle: IntArray  # (rows,): from where on terms are frequent
    terms: IntArray  # (entries,)
    values: FloatArray  # (entries,)
    norms: FloatArray  # (rows,): of the frequent parts


class InvertedIndex(NamedTuple):
    """Which rows of the base have each rare term, block by block.

    ``starts`` and ``postings`` are unsigned: of signed numbers numba asks each time whether they
    count from the end.
    """

    borders: IntArray  # (blocks + 1,): the rows where blocks begin
    starts: IntArray  # (blocks, rare terms + 1): where the postings of each term begin
    postings: IntArray  # (entries,): numbers of rows within their block
    weights: FloatArray  # (entries,): what these rows have of the term


@njit
def push(scores: FloatArray, rows: IntArray, n: int, score: float, row: int) -> int:
    """Offer a row to a heap that has n of as many as it can hold; gives how many it has then."""
    k = len(scores)
    if n < k:  # up from the end
        at = n
        while at > 0:
            above = (at - 1) // 2
            if scores[above] < score or (scores[above] == score and rows[above] > row):
                break
            scores[at], rows[at] = scores[above], rows[above]
            at = above
        scores[at], rows[at] = score, row
        return n + 1
    if score < scores[0] or (score == scores[0] and row > rows[0]):
        return n
    at = 0
    while 2 * at + 1 < k:  # down from the top, where the worst was
        below = 2 * at + 1
        other = below + 1
        if other < k and (
            scores[other] < scores[below]
            or (scores[other] == scores[below] and rows[other] > rows[below])
        ):
            below = other
        if scores[below] > score or (scores[below] == score and rows[below] < row):
            break
        scores[at], rows[at] = scores[below], rows[below]
        at = below
    scores[at], rows[at] = score, row
    return n


@njit
def search_sparse(
    first: int,
    last: int,
    queries: SortedRows,
    base: SortedRows,
    offsets: FloatArray,
    index: InvertedIndex,
    n_frequent: int,
    alone: bool,
    heaps: NearestHeaps,
) -> None:
    """The nearest rows of the base for queries first ≤ q < last.

    Frequent terms are the costly ones, and say little. Of these only the norms are looked at,

        x · y ≤ Σ over rare terms + ‖frequent part of x‖ ‖frequent part of y‖,

    and whatever cannot be among the best k is left there; for the few others the sum goes on. Sums
    run over terms in the same order either way, and so have the same bits.

    ``alone``  the queries are the rows of the base, and none is its own neighbour
    """
    indptr, middle, terms, values, norms = queries
    base_indptr, base_middle, base_terms, base_values, base_norms = base
    borders, all_starts, postings, weights = index
    best, neighbours, filled = heaps
    n_rare = all_starts.shape[1] - 1
    size = 0
    for block in range(len(borders) - 1):
        size = max(size, borders[block + 1] - borders[block])
    sums = np.zeros(size)
    frequent = np.zeros(n_frequent)
    k = best.shape[1]
    for block in range(len(borders) - 1):
        begin = borders[block]
        n_rows = borders[block + 1] - begin
        starts = all_starts[block]
        block_norms = base_norms[begin : begin + n_rows]
        block_offsets = offsets[begin : begin + n_rows]
        for q in range(first, last):
            for entry in range(indptr[q], middle[q]):
                value, term = values[entry], terms[entry]
                for place in range(starts[term], starts[term + 1]):
                    sums[postings[place]] += value * weights[place]
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = values[entry]
            scores, rows, n = best[q], neighbours[q], filled[q]
            bar = scores[0] if n == k else NOTHING
            norm = norms[q]
            for i in range(n_rows):
                total = sums[i]
                sums[i] = 0.0
                if total + norm * block_norms[i] + block_offsets[i] < bar:
                    continue
                row = begin + i
                for entry in range(base_middle[row], base_indptr[row + 1]):
                    total += frequent[base_terms[entry] - n_rare] * base_values[entry]
                if total > 0.0 and not (alone and row == q):
                    n = push(scores, rows, n, total + block_offsets[i], row)
                    bar = scores[0] if n == k else NOTHING
            filled[q] = n
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = 0.0


@njit
def search_dense(
    products: FloatArray,
    offsets: FloatArray,
    begin: int,
    least: float,
    own: IntArray,
    heaps: NearestHeaps,
) -> None:
    """Offer a block of the base, which begins at row ``begin``, to the heaps of some queries.

    ``products``  (queries, block): inner products; only those above ``least`` count
    ``own``       the row of the base that each query is; −1: none
    """
    best, neighbours, filled = heaps
    k = best.shape[1]
    for q in range(len(products)):
        scores, rows, n = best[q], neighbours[q], filled[q]
        bar = scores[0] if n == k else NOTHING
        for i in range(products.shape[1]):
            product = products[q, i]
            score = product + offsets[begin + i]
            if score >= bar and product > least and begin + i != own[q]:
                n = push(scores, rows, n, score, begin + i)
                bar = scores[0] if n == k else NOTHING
        filled[q] = n


class SparseRows:
    """Sparse rows that can be searched; rows are neighbours if their product is above zero.

    ``matrix``     CSR, rows × terms
    ``distances``  look for the smallest distances, instead of the largest products
    """

    def __init__(self, matrix: Any, distances: bool = False) -> None:
        self.matrix, self.distances = matrix, distances
        n, n_terms = matrix.shape
        n_rows_with = np.bincount(matrix.indices, minlength=n_terms)
        # the place of each term, from rare to frequent
        self._rank: IntArray = np.empty(n_terms, np.int32)
        self._rank[np.argsort(n_rows_with, kind="stable")] = np.arange(n_terms)
        self._n_rare = int((n_rows_with <= FREQUENT * n).sum())
        self._sorted = self._sort_terms(matrix)
        self._index = self._make_index()
        self._offsets = -0.5 * _squared_norms(matrix) if distances else np.zeros(n)

    def _sort_terms(self, matrix: Any) -> SortedRows:
        rows = sparse.csr_matrix(
            (matrix.data, self._rank[matrix.indices], matrix.indptr), shape=matrix.shape, copy=True
        )
        rows.sort_indices()
        indptr, terms = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        n = len(indptr) - 1
        of_row = np.repeat(np.arange(n), np.diff(indptr))
        is_rare = terms < self._n_rare
        middle = indptr[:-1] + np.bincount(of_row[is_rare], minlength=n)
        squares = np.where(is_rare, 0.0, rows.data**2)
        norms = np.sqrt(np.bincount(of_row, squares, minlength=n)) * SLACK
        return SortedRows(indptr, middle, terms, rows.data, norms)

    def _make_index(self) -> InvertedIndex:
        base, borders = self._sorted, _cut_blocks(self.matrix.shape[0])
        rows = sparse.csr_matrix((base.values, base.terms, base.indptr), shape=self.matrix.shape)
        blocks = [rows[a:b, : self._n_rare].tocsc() for a, b in pairwise(borders)]
        begins = np.concatenate([[0], np.cumsum([block.nnz for block in blocks])])
        starts = np.array([block.indptr + a for block, a in zip(blocks, begins[:-1], strict=True)])
        postings = np.concatenate([block.indices for block in blocks]).astype(np.uint32)
        weights = np.concatenate([block.data for block in blocks])
        return InvertedIndex(borders, starts.astype(np.uint64), postings, weights)

    def nearest(self, queries: Any, k: int, threads: int) -> NeighbourPairs:
        """The k nearest rows of each query; None: of each row here, which is not its own."""
        alone = queries is None
        rows = self._sorted if alone else self._sort_terms(queries)
        heaps = NearestHeaps.make(len(rows.indptr) - 1, k)
        n_frequent = len(self._rank) - self._n_rare
        over_rows(
            search_sparse,
            rows.indptr,
            threads,
            *(rows, self._sorted, self._offsets, self._index, n_frequent, alone, heaps),
        )
        pairs = heaps.list_pairs()
        if not self.distances:
            return pairs
        squares = -2.0 * self._offsets if alone else _squared_norms(queries)
        return pairs._replace(value=np.maximum(squares[pairs.row] - 2.0 * pairs.value, 0.0))


class DenseRows:
    """Dense rows that can be searched; for cosines only products above zero count."""

    def __init__(self, matrix: FloatArray, distances: bool = False) -> None:
        self.matrix, self.distances = matrix, distances
        n, width = matrix.shape
        # distances are measured from the middle of all rows, so that few digits cancel
        self._middle = matrix.mean(axis=0) if distances and n else np.zeros(width)
        self._centred: FloatArray = matrix - self._middle
        self._offsets: FloatArray = np.zeros(n)
        if distances:
            self._offsets = -0.5 * np.einsum("ij,ij->i", self._centred, self._centred)

    def nearest(self, queries: FloatArray | None, k: int, threads: int) -> NeighbourPairs:
        """The k nearest rows of each query; None: of each row here, which is not its own."""
        base = self._centred
        asked = base if queries is None else queries - self._middle
        own = np.arange(len(asked)) if queries is None else np.full(len(asked), -1)
        heaps = NearestHeaps.make(len(asked), k)
        borders = _cut_blocks(len(base))
        least = NOTHING if self.distances else 0.0

        def search(piece: int) -> None:
            some = slice(piece * QUERIES, (piece + 1) * QUERIES)
            part = NearestHeaps(heaps.scores[some], heaps.rows[some], heaps.filled[some])
            for a, b in pairwise(borders):
                search_dense(asked[some] @ base[a:b].T, self._offsets, a, least, own[some], part)

        with single_threaded():
            in_turn(search, -(-len(asked) // QUERIES), threads)
        pairs = heaps.list_pairs()
        if not self.distances:
            return pairs
        # from differences: products of rows that are close together cancel each other's digits
        squared = np.empty(len(pairs.row))
        for a in range(0, len(squared), CHUNK):
            some = slice(a, a + CHUNK)
            apart = asked[pairs.row[some]] - base[pairs.other[some]]
            squared[some] = np.einsum("ij,ij->i", apart, apart)
        return pairs._replace(value=squared)


def _cut_blocks(n: int) -> IntArray:
    """Where the blocks of n rows begin, and the end."""
    n_blocks = max(1, min(MOST_BLOCKS, -(-n // BLOCK)))
    return np.linspace(0, n, n_blocks + 1).astype(np.int64)


def _squared_norms(matrix: Any) -> FloatArray:
    """The squared length of each sparse row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1)
