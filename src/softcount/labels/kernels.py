"""Exact k-nearest-neighbour search: by an inverted index for sparse rows, by blocks of inner
products for dense rows.

The nearest rows y of a row x have the largest x · y + offset(y), with an offset of 0 for cosines
(of rows of norm 1) and of −‖y‖²/2 for distances. The k best rows of every query are kept in a heap
with the worst of them at the root; among equals the row with the smaller number is better, so that
the result does not depend on the order of the work.
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
"""A score below all possible scores."""
BLOCK = 4096
"""Number of base rows processed at a time, so that their sums stay in the processor's cache."""
MOST_BLOCKS = 32
QUERIES = 512
"""Number of dense queries multiplied at a time."""
CHUNK = 1 << 16
"""Number of pairs whose distances are computed at a time."""
FREQUENT = 0.3
"""Terms in more than this proportion of the rows are frequent, and are added up last. On
newsgroups, .2 to .5 take about the same time; .05 leaves too many rows to complete one by one."""
SLACK = 1.0 + 1e-9
"""Norms are enlarged by this factor, so that rounding never makes the bound too small."""


class NearestHeaps(NamedTuple):
    """The best neighbours of each query so far, as heaps."""

    scores: FloatArray  # (queries, k)
    rows: IntArray  # (queries, k)
    filled: IntArray  # (queries,): number of neighbours in each heap

    @classmethod
    def make(cls, n: int, k: int) -> Self:
        """Make empty heaps for the k best neighbours of n queries."""
        return cls(np.zeros((n, k)), np.zeros((n, k), np.int64), np.zeros(n, np.int64))

    def list_pairs(self) -> NeighbourPairs:
        """Return all pairs of a query and one of its neighbours, with their scores."""
        is_filled = np.arange(self.scores.shape[1]) < self.filled[:, None]
        queries = np.repeat(np.arange(len(self.scores)), self.filled)
        return NeighbourPairs(queries, self.rows[is_filled], self.scores[is_filled])


class NeighbourPairs(NamedTuple):
    """Pairs of a query and a neighbour, grouped by query."""

    row: IntArray
    """Row number of the query."""
    other: IntArray
    """Row number of the neighbour in the base."""
    value: FloatArray
    """Inner product of the two, or their squared distance."""


class SortedRows(NamedTuple):
    """Sparse rows in CSR form, with the terms of each row ordered from rare to frequent."""

    indptr: IntArray  # (rows + 1,)
    middle: IntArray  # (rows,): index of the first frequent term
    terms: IntArray  # (entries,)
    values: FloatArray  # (entries,)
    norms: FloatArray  # (rows,): of the frequent parts


class InvertedIndex(NamedTuple):
    """Inverted index of the rare terms: the base rows that have each of them, block by block.

    ``starts`` and ``postings`` are unsigned, because for signed indices numba checks each time
    whether they are negative, to count from the end.
    """

    borders: IntArray  # (blocks + 1,): first row of each block
    starts: IntArray  # (blocks, rare terms + 1): first posting of each term
    postings: IntArray  # (entries,): row numbers within the block
    weights: FloatArray  # (entries,): values of the term in these rows


@njit
def push(scores: FloatArray, rows: IntArray, n: int, score: float, row: int) -> int:
    """Insert a row into a heap of n rows if it is among the best; return the new size."""
    k = len(scores)
    if n < k:  # sift up from the end
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
    while 2 * at + 1 < k:  # replace the root, the worst, and sift down
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
    """Find the nearest base rows of the queries first ≤ q < last.

    Frequent terms are costly and contribute little, so that they are first bounded by norms,

        x · y ≤ Σ over rare terms + ‖frequent part of x‖ ‖frequent part of y‖,

    and rows that cannot be among the best k are skipped; for the few others the sum is completed.
    Sums run over terms in the same order in either case, so that results agree bit by bit.

    ``alone``  whether the queries are the rows of the base; no row is then its own neighbour
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
    """Insert the rows of a block of the base, starting at row ``begin``, into the queries' heaps.

    ``products``  (queries, block): inner products; only those above ``least`` are considered
    ``own``       (queries,): the base row that is the query itself; −1: none
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
    """Searchable sparse rows; only rows with a positive inner product are neighbours.

    ``matrix``     CSR, rows × terms
    ``distances``  search for the smallest distances, instead of the largest inner products
    """

    def __init__(self, matrix: Any, distances: bool = False) -> None:
        self.matrix, self.distances = matrix, distances
        n, n_terms = matrix.shape
        n_rows_with = np.bincount(matrix.indices, minlength=n_terms)
        # rank of each term, from rare to frequent
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
        """Find the k nearest rows of each query; None: of each row of the base, except itself."""
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
    """Searchable dense rows; for cosines, only rows with a positive product are neighbours."""

    def __init__(self, matrix: FloatArray, distances: bool = False) -> None:
        self.matrix, self.distances = matrix, distances
        n, width = matrix.shape
        # rows are centred, to reduce cancellation in the distances
        self._middle = matrix.mean(axis=0) if distances and n else np.zeros(width)
        self._centred: FloatArray = matrix - self._middle
        self._offsets: FloatArray = np.zeros(n)
        if distances:
            self._offsets = -0.5 * np.einsum("ij,ij->i", self._centred, self._centred)

    def nearest(self, queries: FloatArray | None, k: int, threads: int) -> NeighbourPairs:
        """Find the k nearest rows of each query; None: of each row of the base, except itself."""
        base = self._centred
        asked = base if queries is None else queries - self._middle
        own = np.arange(len(asked)) if queries is None else np.full(len(asked), -1)
        heaps = NearestHeaps.make(len(asked), k)
        borders = _cut_blocks(len(base))
        least = NOTHING if self.distances else 0.0

        def search(piece: int) -> None:
            part = slice(piece * QUERIES, (piece + 1) * QUERIES)
            own_heaps = NearestHeaps(heaps.scores[part], heaps.rows[part], heaps.filled[part])
            for a, b in pairwise(borders):
                products = asked[part] @ base[a:b].T
                search_dense(products, self._offsets, a, least, own[part], own_heaps)

        with single_threaded():
            in_turn(search, -(-len(asked) // QUERIES), threads)
        pairs = heaps.list_pairs()
        if not self.distances:
            return pairs
        # from differences, because inner products of close rows suffer from cancellation
        squared = np.empty(len(pairs.row))
        for a in range(0, len(squared), CHUNK):
            part = slice(a, a + CHUNK)
            difference = asked[pairs.row[part]] - base[pairs.other[part]]
            squared[part] = np.einsum("ij,ij->i", difference, difference)
        return pairs._replace(value=squared)


def _cut_blocks(n: int) -> IntArray:
    """Return the first rows of the blocks of n rows, and n."""
    n_blocks = max(1, min(MOST_BLOCKS, -(-n // BLOCK)))
    return np.linspace(0, n, n_blocks + 1).astype(np.int64)


def _squared_norms(matrix: Any) -> FloatArray:
    """Compute the squared norm of each sparse row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1)
