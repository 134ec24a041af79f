"""`LabelPropagation`: labels spread along a graph of nearest neighbours.

The rows that are nearest to a row: the exact best k by inner products, block by block.

What is nearest is the largest x · y + offset(y), with an offset of −‖y‖²/2 for distances and of 0
for cosines. The k best of every row are kept as a heap whose first is the worst of them; among
equals the row with the smaller number is better, so that no order of the work shows in the result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from softcount._version import __version__
from softcount.core import store
from softcount.core.bounds import MAX_STEPS, MAX_WEIGHT, MIN_WEIGHT, within_range
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.estimate import NUMBER, Estimate, announce, of_rows
from softcount.core.estimator import SklearnContract, all_or_nothing
from softcount.core.parameters import check_number, check_whole, generator
from softcount.core.store import AGAIN, guarded, numbers, plain_settings, settings_of, strings
from softcount.core.types import Array
from softcount.core.verdict import Verdict
from softcount.kernels.jit import njit
from softcount.kernels.threads import in_turn, over_rows, single_threaded, usable_cpus
from softcount.labels.history import History, gold_numbers
from softcount.mixture.data import UNKNOWN, Labels, read_labels
from softcount.mixture.model_selection import ScoresLabelled, warn_of_unlabelled_fold
from softcount.mixture.naive_bayes import read_classes
from softcount.text import documents as texts

NOTHING = -1e300
"""Below every score there is."""


@njit
def push(scores: Array, rows: Array, n: int, score: float, row: int) -> int:
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
    indptr: Array,
    middle: Array,
    terms: Array,
    values: Array,
    norms: Array,
    base_indptr: Array,
    base_middle: Array,
    base_terms: Array,
    base_values: Array,
    base_norms: Array,
    offsets: Array,
    borders: Array,
    lists: Array,
    postings: Array,
    weights: Array,
    n_frequent: int,
    alone: bool,
    best: Array,
    found: Array,
    filled: Array,
) -> None:
    """The nearest rows of the base for rows first ≤ q < last, both with rising terms.

    Terms are in the order of how many rows have them. Those of a row from ``middle`` on are
    frequent: they are the costly ones, and say little. Of these only the norms are looked at,

        x · y ≤ Σ over rare terms + ‖frequent part of x‖ ‖frequent part of y‖,

    and whatever cannot be among the best k is left there; for the few others the sum goes on. Sums
    run over terms in the same order either way, and so have the same bits.

    ``lists``     of each block of the base, where the postings of each rare term begin
    ``postings``  numbers of rows within the block, and ``weights`` what they have of the term.
                  These and ``lists`` are unsigned: of signed numbers numba asks each time whether
                  they count from the end
    ``alone``     rows are those of the base, and none is its own neighbour
    """
    n_rare = lists.shape[1] - 1
    size = 0
    for block in range(len(borders) - 1):
        size = max(size, borders[block + 1] - borders[block])
    sums = np.zeros(size)
    frequent = np.zeros(n_frequent)
    k = best.shape[1]
    for block in range(len(borders) - 1):
        begin = borders[block]
        n_rows = borders[block + 1] - begin
        starts = lists[block]
        its_norms = base_norms[begin : begin + n_rows]
        its_offsets = offsets[begin : begin + n_rows]
        for q in range(first, last):
            for entry in range(indptr[q], middle[q]):
                value, term = values[entry], terms[entry]
                for place in range(starts[term], starts[term + 1]):
                    sums[postings[place]] += value * weights[place]
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = values[entry]
            scores, rows, n = best[q], found[q], filled[q]
            bar = scores[0] if n == k else NOTHING
            norm = norms[q]
            for i in range(n_rows):
                total = sums[i]
                sums[i] = 0.0
                if total + norm * its_norms[i] + its_offsets[i] < bar:
                    continue
                row = begin + i
                for entry in range(base_middle[row], base_indptr[row + 1]):
                    total += frequent[base_terms[entry] - n_rare] * base_values[entry]
                if total > 0.0 and not (alone and row == q):
                    n = push(scores, rows, n, total + its_offsets[i], row)
                    bar = scores[0] if n == k else NOTHING
            filled[q] = n
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = 0.0


@njit
def search_dense(
    products: Array,
    offsets: Array,
    begin: int,
    least: float,
    own: Array,
    best: Array,
    found: Array,
    filled: Array,
) -> None:
    """Offer a block of the base, which begins at row ``begin``, to the heaps of some rows.

    ``products``  (rows, block): inner products; only those above ``least`` count
    ``own``       the row of the base that each row is; −1: none
    """
    k = best.shape[1]
    for q in range(len(products)):
        scores, rows, n = best[q], found[q], filled[q]
        bar = scores[0] if n == k else NOTHING
        for i in range(products.shape[1]):
            product = products[q, i]
            score = product + offsets[begin + i]
            if score >= bar and product > least and begin + i != own[q]:
                n = push(scores, rows, n, score, begin + i)
                bar = scores[0] if n == k else NOTHING
        filled[q] = n


# Graphs of items: symmetric, sparse, without loops.


def joined(found: Found, weights: Array, n: int) -> Any:
    """The graph in which two items are joined if either is among the nearest of the other."""
    kept = weights > 0.0
    rows, others = found.row[kept], found.other[kept]
    return symmetric(sparse.csr_matrix((weights[kept], (rows, others)), shape=(n, n)))


def symmetric(graph: Any) -> Any:
    """The graph with each edge both ways, with the larger of its two weights, and no loops."""
    both = graph.maximum(graph.T).tocsr()
    both.setdiag(0.0)
    both.eliminate_zeros()
    both.sort_indices()
    return both


def read_graph(X: Any) -> Any:
    """A graph as users give it: weights of n × n edges, none negative.

    >>> read_graph(np.array([[5.0, 1.0], [0.0, 0.0]])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    graph = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    if graph.shape[0] != graph.shape[1]:
        raise DataError(
            f"a graph of shape {graph.shape} joins items to other things",
            "weights='precomputed' takes one row and one column for every item",
        )
    demand_weights(graph)
    return symmetric(graph)


def demand_weights(matrix: Any) -> None:
    """Complain of weights that are none."""
    if matrix.nnz and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0.0):
        raise DataError(
            "Negative values in data: some weight of an edge is negative, or no number",
            "give weights of 0 (no edge) and above",
        )
    with np.errstate(over="ignore"):
        total = matrix.data.sum()
    if not np.isfinite(total):
        raise DataError("the weights of edges add up to infinity", "only ratios matter: scale them")


def reached(graph: Any, labelled: Array) -> Array:
    """Whether each item is joined, by whatever way, to one that is labelled."""
    _, component = sparse.csgraph.connected_components(graph, directed=False)
    found: Array = np.isin(component, component[labelled])
    return found


# The k nearest of many rows, exactly: by an inverted index if they are sparse, else in blocks.


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


# Labels spread over a graph until every item has the mean of its neighbours' labels.
#
# The fixed point is the harmonic function (Zhu, Ghahramani & Lafferty 2003): with the transition
# matrix T = D⁻¹W, D the sums of the rows of the weights W, and labelled rows l clamped,
#
#     F_u = T_uu F_u + T_ul Y_l,    F_u = (I − T_uu)⁻¹ T_ul Y_l.
#
# Sweeps of "each row becomes the mean of its neighbours, renormalised" bring label mass to every
# row that it can reach, and then mix slowly: a small change in a sweep is no sign of being close to
# the limit. So the sweeps only spread the mass; from there on conjugate gradients solve the same
# equations, (D_uu − W_uu) F_u = W_ul Y_l.
#
# How far off the result can be is known. A sweep's change r = T_uu F + T_ul Y − F and the error are
# related by e = (I − T_uu)⁻¹ r, hence Σ_c |e_ic| ≤ b = h_i max_j Σ_c |r_jc|, where h = (I − T_uu)⁻¹
# 1 is how many steps a random walk takes from an item to a label. h is one more column of the same
# system. In the end the shares of an item are made to add up to one. Their sum was 1 − b or more,
# so that none of them is farther off than b / (1 − b).


TINY = 1e-300
CLOSE = 1e-6
"""To this part of themselves the steps to a label are known."""
Watch = Callable[[Array, Array], None]
"""Is shown the shares of the free items, and which of them have been reached."""


@dataclass(frozen=True, eq=False)
class PropagatedLabels:
    """How spreading ended.

    ``shares``   (free items, classes)
    ``steps``    of a random walk from each free item to a label, on average
    ``error``    how far any share can be from its limit
    ``n_iter``   sweeps and steps of conjugate gradients taken
    """

    shares: Array
    steps: Array
    error: float
    n_iter: int
    verdict: Verdict


def settle(
    graph: Any, given: Array, free: Array, start: Array, tol: float, max_iter: int, watch: Watch
) -> PropagatedLabels:
    """The shares of the ``free`` rows, each of which is joined to a given one somehow.

    ``given``  (items, classes): shares of the rows that are not free; others do not matter
    ``start``  shares of those free rows that no sweep reaches before ``max_iter``
    """
    between = graph[free][:, free].tocsr()
    sums = np.asarray(graph[free].sum(axis=1)).reshape(-1)
    clamped = given.copy()
    clamped[free] = 0.0
    system = _System(between, sums, (graph[free] @ clamped) / sums[:, None])
    shares, swept = _spread(system, max_iter, watch)
    shares[shares.sum(axis=1) == 0.0] = start
    return _solve(system, shares, tol, swept, max_iter, watch)


@dataclass(frozen=True, eq=False)
class _System:
    """F = T F + incoming, with T = between / sums."""

    between: Any
    sums: Array
    incoming: Array

    def swept(self, shares: Array) -> Array:
        """Every row as the weighted mean of its neighbours'."""
        moved: Array = self.between @ shares
        moved /= self.sums[:, None]
        moved += self.incoming
        return moved


def _spread(system: _System, max_iter: int, watch: Watch) -> tuple[Array, int]:
    """Sweeps, until one reaches nothing new."""
    shares = np.zeros_like(system.incoming)
    n_reached = 0
    for number in range(1, max_iter + 1):
        moved = system.swept(shares)
        totals = moved.sum(axis=1)
        arrived = totals > 0.0
        shares = moved / np.where(arrived, totals, 1.0)[:, None]
        watch(shares, arrived)
        before, n_reached = n_reached, int(arrived.sum())
        if n_reached == before or n_reached == len(arrived):
            return shares, number
    return shares, max_iter


def _solve(
    system: _System, shares: Array, tol: float, taken: int, max_iter: int, watch: Watch
) -> PropagatedLabels:
    """Conjugate gradients, with the number of steps to a label as the last column."""
    incoming = np.column_stack([system.incoming, np.ones(len(shares))])
    whole = _System(system.between, system.sums, incoming)
    begin = np.column_stack([shares, np.ones(len(shares))])
    with np.errstate(over="ignore", invalid="ignore"):
        values, error, taken = _descended(whole, begin.copy(), tol, taken, max_iter, watch)
    if not np.isfinite(values).all():  # weights are too far apart for numbers of 64 bits
        values, error = begin, np.inf
    verdict = Verdict.CONVERGED if error <= tol else Verdict.OUT_OF_STEPS
    return PropagatedLabels(_shares(values), values[:, -1], error, taken, verdict)


def _descended(
    whole: _System, values: Array, tol: float, taken: int, max_iter: int, watch: Watch
) -> tuple[Array, float, int]:
    """The values where conjugate gradients end, how far off they can be, and the steps taken."""
    everywhere = np.ones(len(values), dtype=bool)
    weight = whole.sums[:, None]
    _, scale = np.frexp(weight.max(initial=TINY))
    share = np.ldexp(weight, -scale)  # with the same digits, and no square is infinite
    while True:  # once; again if rounding has led the residuals astray
        change = whole.swept(values) - values
        error = _error(values, change)
        if error <= tol or taken >= max_iter:
            break
        direction, power = change.copy(), (share * change * change).sum(axis=0)
        begun = error
        while taken < max_iter and _error(values, change) > tol:
            ahead = direction - (whole.between @ direction) / weight
            bend = (share * direction * ahead).sum(axis=0)
            step = power / np.maximum(bend, TINY)
            values += step * direction
            change -= step * ahead
            before, power = power, (share * change * change).sum(axis=0)
            direction *= power / np.maximum(before, TINY)
            direction += change
            taken += 1
            watch(_shares(values), everywhere)
        error = _error(values, whole.swept(values) - values)
        if not error <= 0.5 * begun:
            break  # the last digits are reached, and tol asks for more; or there are none (NaN)
    return values, error, taken


def _error(values: Array, change: Array) -> float:
    """A bound on how far any share is from its limit; infinite before the steps are known."""
    short = float(np.abs(change[:, -1]).max(initial=0.0))
    if short > CLOSE:
        return np.inf
    # (I − T) h ≥ 1 − short everywhere makes h / (1 − short) an upper bound of the steps
    longest = float(values[:, -1].max(initial=0.0)) / (1.0 - short)
    bound = longest * float(np.abs(change[:, :-1]).sum(axis=1).max(initial=0.0))
    return bound / (1.0 - bound) if bound < 1.0 else np.inf


def _shares(values: Array) -> Array:
    """Shares of classes, none negative, each row adding up to one."""
    shares = np.maximum(values[:, :-1], 0.0)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / np.where(totals > 0.0, totals, 1.0)


# Class-mass normalisation: how much of everything each class should have.
#
# Zhu, Ghahramani & Lafferty (2003): with the mass m_c = Σ_i F_ic that class c has of the items
# without a label, and the share q_c that it should have, items are judged by q_c F_ic / m_c.


def given_shares(labels: Labels) -> Array:
    """(items, classes): what the labels say; rows of zeros where they say nothing."""
    shares = np.zeros((len(labels.numbers), len(labels.classes)))
    hard = np.flatnonzero(labels.numbers >= 0)
    shares[hard, labels.numbers[hard]] = 1.0
    return shares if labels.shares is None else shares + np.nan_to_num(labels.shares)


def class_prior(wanted: bool | Mapping[Any, float], classes: Array, shares: Array) -> Array:
    """The share of each class: as a mapping says, or (its labels + 1) / (labels + classes).

    >>> class_prior(True, np.array(["a", "b"]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    array([0.75, 0.25])
    """
    if not isinstance(wanted, Mapping):
        counts = shares.sum(axis=0) + 1.0
        smoothed: Array = counts / counts.sum()
        return smoothed
    names = classes.tolist()
    by_name = {str(name): share for name, share in wanted.items()}  # as a model file has them
    strange = set(by_name) ^ set(map(str, names))
    if strange:
        raise LearnerError(
            f"class_mass and the labels do not agree on {brief(sorted(strange)[0])}",
            "give a share for every label there is, and no other",
        )
    given = [by_name[str(name)] for name in names]
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.full(len(names), np.nan)
    if not (found.min() >= MIN_WEIGHT and found.max() <= MAX_WEIGHT):
        raise LearnerError(
            f"class_mass={brief(dict(wanted))}",
            f"give shares above 0, from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}",
        )
    normalised: Array = found / found.sum()
    return normalised


def factors_for(shares: Array, prior: Array, wanted: bool) -> Array:
    """What each class is multiplied by; 1 for a class that has nothing to be multiplied."""
    mass = shares.sum(axis=0)
    if not wanted or not mass.all():
        return np.ones(len(prior))
    factors: Array = prior * mass.sum() / mass
    return factors


def scaled(shares: Array, factors: Array) -> Array:
    """Shares with the classes multiplied, each row adding up to one; rows of zeros stay."""
    moved = shares * factors
    totals = moved.sum(axis=1, keepdims=True)
    found: Array = moved / np.where(totals > 0.0, totals, 1.0)
    return found


# Texts as tf-idf, and what a model file must hold to weigh new texts the same way.


IDF = "idf"
SWITCHES = ("sublinear_tf", "use_idf", "smooth_idf")
NORMS = ("l1", "l2", None)


def default_vectorizer(documents: Sequence[Any]) -> TfidfVectorizer:
    """(1 + log tf) · idf, rows of length 1; words as `softcount.text.documents` finds them."""
    analyzer = texts.default_vectorizer(documents).analyzer
    return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True)


def stored(vectorizer: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and facts of a vectorizer, for a file."""
    if vectorizer is None:
        return {}, {"vectorizer": None, "vocabulary": None, "weighing": None}
    names = texts.vocabulary_of(vectorizer)
    facts = {
        "vocabulary": None if names is None else list(map(str, names)),
        "vectorizer": texts.describe_vectorizer(vectorizer),
        "weighing": None,
    }
    if type(vectorizer) is not TfidfVectorizer:
        return {}, facts
    shared = CountVectorizer().get_params()
    plain = {name: value for name, value in vectorizer.get_params().items() if name in shared}
    facts["vectorizer"] = texts.describe_vectorizer(CountVectorizer(**plain))
    facts["weighing"] = {name: getattr(vectorizer, name) for name in (*SWITCHES, "norm")}
    return ({IDF: vectorizer.idf_} if vectorizer.use_idf else {}), facts


def restored(file: store.Stored, own: Any, n_words: int) -> Any:
    """The vectorizer that a file describes; ``own``: the user's, which goes before."""
    described, weighing = file.meta["vectorizer"], file.meta["weighing"]
    vocabulary = strings(file.meta["vocabulary"], n_words, "words")
    if own is not None:
        return texts.adopt_vectorizer(own, vocabulary, n_words)
    if described is None:
        return None
    counter = texts.restore_vectorizer(described, vocabulary)
    if weighing is None:
        return counter
    _demand_sound(weighing)
    settings = {**counter.get_params(), **weighing}
    settings.pop("dtype")
    vectorizer = TfidfVectorizer(**settings)
    vectorizer._validate_vocabulary()
    if vectorizer.use_idf:
        vectorizer.idf_ = numbers(file, IDF, (n_words,))
    return vectorizer


def _demand_sound(weighing: Any) -> None:
    sound = (
        isinstance(weighing, dict)
        and set(weighing) == {*SWITCHES, "norm"}
        and all(isinstance(weighing[name], bool) for name in SWITCHES)
        and weighing["norm"] in NORMS
    )
    if not sound:
        raise StoreError("the file does not say how words are weighed", AGAIN)


# Items as users give them become rows that have neighbours.


POWERS = 3
"""Steps of the power method: of use for neighbours are the large dimensions, which come first."""
SMALLEST, LARGEST = 1e-10, 1e140
"""Between these the squares of numbers have all their digits, and long sums of them are finite."""
COSINE, GAUSSIAN, PRECOMPUTED = "cosine", "gaussian", "precomputed"


class ReadsRows:
    """What an estimator that compares rows knows of its items (a mixin)."""

    weights: str
    svd: int | None
    vectorizer: Any
    vectorizer_: Any
    random_state: Any
    axes_: Array | None
    """(dimensions, columns): where an SVD puts items; None without."""
    n_features_in_: int

    def read(self, X: Any, *, first: bool) -> Any:
        """A matrix of items, sparse or dense; ``first``: these say what to expect of others."""
        found = texts.find_texts(X)
        if found is not None:
            X = self._weighed(found, first)
        elif first:
            self.vectorizer_ = None
        with within_range("the data"):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)

    def _weighed(self, documents: list[Any], first: bool) -> Any:
        if self.weights == PRECOMPUTED:
            raise DataError("texts are no graph", "give weights='cosine' to compare them")
        if not first:
            if getattr(self, "vectorizer_", None) is None:
                raise DataError(
                    "this model was fitted to a matrix, and cannot read texts by itself",
                    "pass the same columns, or fit the model to texts",
                )
            return texts.count_words(self.vectorizer_, documents)
        self.vectorizer_ = texts.copy_vectorizer(self.vectorizer, documents, default_vectorizer)
        return texts.learn_words(self.vectorizer_, documents)

    def learn_axes(self, X: Any) -> None:
        """Find the dimensions of an SVD, of so many as are asked for or as many as there can be."""
        self.axes_ = None
        if self.svd is None:
            return
        # a column of one row joins nothing to anything, and texts have many such
        shared = np.flatnonzero(_spread_of_rows(X) > 1)
        few = min(self.svd, X.shape[0] - 1, len(shared) - 1)
        if few < 1:
            raise DataError(
                f"items of shape {X.shape} span no space",
                "an SVD needs two items, and two columns that several items have: leave svd out",
            )
        seed = int(generator(self.random_state).integers(2**31))
        # dimensions without any variance: scikit-learn divides by it, and we do not ask for that
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(few, n_iter=POWERS, random_state=seed).fit(_scaled(X)[:, shared])
        self.axes_ = np.zeros((few, X.shape[1]))
        self.axes_[:, shared] = svd.components_

    def placed(self, X: Any) -> tuple[Any, Array]:
        """Rows to be compared, and which of them say anything.

        Empty rows of words do not. A row of numbers that are all 0 is a point, if distances count.
        """
        if sparse.issparse(X):
            X = X.tocsr(copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
        says = _largest(X) > 0.0
        if self.axes_ is not None:
            with single_threaded():
                X = np.asarray(_scaled(X) @ self.axes_.T)
        elif not sparse.issparse(X) and self.weights == GAUSSIAN:
            says = np.ones(len(X), dtype=bool)
        if self.weights == COSINE:
            return _scaled(X), says
        demand_short(X)
        return X, says

    def searchable(self, rows: Any) -> SparseRows | DenseRows:
        """Rows that can be searched for neighbours."""
        distances = self.weights == GAUSSIAN
        if sparse.issparse(rows):
            return SparseRows(rows, distances)
        return DenseRows(rows, distances)


def _scaled(X: Any) -> Any:
    """Rows of length 1, however large or small their numbers are."""
    largest = _largest(X)
    some = largest[largest > 0.0]
    if len(some) and not SMALLEST < some.min() <= some.max() < LARGEST:
        # by hand: scikit-learn takes small dense rows for empty ones
        by = np.where(largest > 0.0, largest, 1.0)
        if sparse.issparse(X):
            X = sparse.csr_matrix(
                (X.data / np.repeat(by, np.diff(X.indptr)), X.indices, X.indptr), X.shape
            )
        else:
            X = X / by[:, None]
    return normalize(X)


def demand_short(X: Any) -> None:
    """Complain of rows so long that nobody can say how far apart they are."""
    if not (_largest(X) < LARGEST).all():
        raise DataError(
            "some numbers are so large that distances are infinite", "scale the columns first"
        )


def _spread_of_rows(X: Any) -> Array:
    """How many rows have each column."""
    if sparse.issparse(X):
        return np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1])
    return np.asarray(np.count_nonzero(X, axis=0))


def _largest(X: Any) -> Array:
    """The largest number of each row, whatever its sign."""
    found = abs(X).max(axis=1)
    return np.asarray(found.toarray() if sparse.issparse(found) else found).reshape(-1)


# Propagated labels in files: the items that were learned from, and their shares.


ROWS, SHARES, REACHED, SAYS = "rows", "shares", "reached", "says"
SPARSE = ("rows.indptr", "rows.columns", "rows.values")
AXES, PRIOR, FACTORS = "axes", "prior", "factors"


def signature(model: Any) -> str:
    """How a model came about, in a line."""
    said = [str(model.weights)]
    if model.weights != "precomputed":
        said.append(f"{model.n_neighbors} neighbours")
    if model.svd is not None:
        said.append(f"SVD {model.svd}")
    if model.class_mass:
        said.append("class mass")
    parts = (f"softcount {__version__}", "label propagation", ", ".join(said))
    return " · ".join([*parts, f"tol {model.tol:g}", f"seed {model.random_state}"])


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model."""
    words, facts = stored(model.vectorizer_)
    arrays = {
        SHARES: model._harmonic,
        REACHED: model.reached_.astype(np.uint8),
        PRIOR: model.prior_,
        FACTORS: model.factors_,
        **words,
        **_rows_stored(model),
    }
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "settings": plain_settings(model),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else list(names),
        "classes": model.classes_.tolist(),
        "kind_of_classes": str(model.classes_.dtype),
        "alpha": model.alpha_,
        "has_rows": model._rows is not None,
        "is_sparse": model._rows is not None and sparse.issparse(model._rows.matrix),
        **facts,
    }
    store.write(path, type(model).__name__, arrays, meta, model.signature_)


def _rows_stored(model: Any) -> dict[str, Array]:
    """The rows that new items are compared with; none for a graph."""
    if model._rows is None:
        return {}
    matrix = model._rows.matrix
    arrays = {SAYS: model._says.astype(np.int64)}
    if model.axes_ is not None:
        arrays[AXES] = model.axes_
    if not sparse.issparse(matrix):
        return {**arrays, ROWS: matrix}
    parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
    return {**arrays, **dict(zip(SPARSE, parts, strict=True))}


def restore(cls: Any, stored: store.Stored, given: Mapping[str, Any]) -> Any:
    """A model from a file: whatever is wrong with the file, the answer is a `StoreError`."""
    settings = settings_of(cls, stored, given)
    return guarded(cls, lambda: _restored(cls(**settings), stored, given))


def _restored(model: Any, stored: store.Stored, given: Mapping[str, Any]) -> Any:
    meta = stored.meta
    model._check_settings()
    V = meta["n_features"]
    if not isinstance(V, int) or V < 1:
        raise StoreError(f"{V!r} is no number of columns", AGAIN)
    model.n_features_in_ = V
    names = strings(meta["feature_names"], V, "names of columns")
    if names is not None:
        model.feature_names_in_ = names
    model.classes_ = read_classes(meta["classes"], meta["kind_of_classes"])
    model.vectorizer_ = restored(stored, given.get("vectorizer"), V)
    model._harmonic = _stored_shares(numbers(stored, SHARES, (None, len(model.classes_))))
    n = len(model._harmonic)
    reached = numbers(stored, REACHED, (n,))
    model.reached_ = reached == 1.0
    model.prior_ = _stored_shares(numbers(stored, PRIOR, (len(model.classes_),))[None])[0]
    model.factors_ = numbers(stored, FACTORS, (len(model.classes_),))
    sound = model.reached_.any() and (model.reached_ | (reached == 0.0)).all()
    if model.factors_.min() <= 0.0 or not sound:
        raise DataError("classes have no mass, or no item has a label")
    model.transduction_ = model.classes_[model._harmonic.argmax(axis=1)]
    _recall_rows(model, stored, n)
    model.signature_ = stored.signature
    return model


def _recall_rows(model: Any, stored: store.Stored, n: int) -> None:
    meta = stored.meta
    model.axes_ = None if model.svd is None else numbers(stored, AXES, (None, model.n_features_in_))
    model.alpha_ = meta["alpha"]
    if (model.alpha_ is None) != (model.weights != "gaussian"):
        raise DataError("there is an alpha without distances, or distances without")
    if model.alpha_ is not None and not 0.0 < float(model.alpha_) < np.inf:
        raise DataError(f"alpha is {model.alpha_!r}")
    if meta["has_rows"] is not (model.weights != "precomputed"):
        raise DataError("the rows that new items are compared with are not there")
    model._rows = None
    if not meta["has_rows"]:
        if model.n_features_in_ != n:
            raise DataError("the graph is of other items")
        return
    says = numbers(stored, SAYS, (None,))
    model._says = says.astype(np.int64)
    rising = bool((np.diff(model._says) > 0).all()) and bool((model._says == says).all())
    if len(says) and not (rising and model._says[0] >= 0 and model._says[-1] < n):
        raise DataError("numbers of items are out of order")
    width = model.n_features_in_ if model.axes_ is None else len(model.axes_)
    if meta["is_sparse"] is True:
        rows = _sparse_rows(stored, len(says), width)
    else:
        rows = numbers(stored, ROWS, (len(says), width))
    demand_short(rows)
    model._rows = model.searchable(rows)


def _sparse_rows(stored: store.Stored, n: int, width: int) -> Any:
    indptr = numbers(stored, SPARSE[0], (n + 1,))
    columns = numbers(stored, SPARSE[1], (None,))
    values = numbers(stored, SPARSE[2], (len(columns),))
    sound = indptr[0] == 0 and indptr[-1] == len(columns) and (np.diff(indptr) >= 0).all()
    whole = (columns == np.floor(columns)).all() and (indptr == np.floor(indptr)).all()
    if not (sound and whole) or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise DataError("rows of words are out of order")
    parts = (values, columns.astype(np.int32), indptr.astype(np.int64))
    rows = sparse.csr_matrix(parts, shape=(n, width))
    rows.sum_duplicates()
    return rows


def _stored_shares(given: Array) -> Array:
    if not len(given) or given.min() < 0.0 or not np.allclose(given.sum(axis=1), 1.0, atol=1e-6):
        raise DataError("shares of classes do not add up to one")
    return given


# Label propagation: items that are alike have like labels.


WEIGHTS = (COSINE, GAUSSIAN, PRECOMPUTED)


SWEEPS = 100
"""Over so many sweeps the search for neighbours is spread out, where work a sweep is told."""


class UnreachedWarning(UserWarning):
    """No label reached some items: they get what is known beforehand, and no more.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


class LabelPropagation(ScoresLabelled, ReadsRows, SklearnContract, BaseEstimator):  # type: ignore[misc]
    """Labels spread along a graph of the nearest items, until each item has the weighted mean of
    its neighbours' labels (Zhu & Ghahramani 2002; Zhu, Ghahramani & Lafferty 2003).

    Two items are joined if either is among the nearest of the other. No item is its own neighbour,
    and labelled items keep their labels.

    ``weights``       what an edge weighs: "cosine", or "gaussian": exp(−α‖x − y‖²); "precomputed":
                      X is the graph, one row and one column an item, 0 where there is no edge
    ``alpha``         α; None: one over the mean squared distance between neighbours
    ``n_neighbors``   how many neighbours of each item are looked for, exactly
    ``svd``           reduce the items to so many dimensions first; None: as they are
    ``class_mass``    scale the classes so that their masses match what is known beforehand: True:
                      the smoothed shares of the labels; a mapping from labels to shares; False: not
    ``tol``           stop when every share is known to be this close to its limit
    ``max_iter``      at most so many sweeps
    ``vectorizer``    how texts become rows; None: tf-idf with 1 + log tf
    ``n_jobs``        threads; None: one for each processor. The result is the same
    ``random_state``  of the SVD

    X is a list of texts, a sparse matrix or an array. Labels are −1 (or None) where unknown; a
    matrix of shares (items × classes) gives soft labels. Afterwards ``transduction_`` has a label
    for every item, ``label_distributions_`` the shares, ``graph_`` the graph, ``history_`` what was
    reached when, ``steps_to_label_`` how many steps a random walk takes to a label, ``verdict_``
    how it ended. Items that no label reaches, empty ones for example, get the prior, with an
    `UnreachedWarning`.

    >>> texts = ["good fine", "bad awful", "fine great", "awful dreadful", "great film"]
    >>> model = LabelPropagation().fit(texts, ["+", "-", None, None, None])
    >>> model.transduction_.tolist()
    ['+', '-', '+', '-', '+']
    >>> model.predict(["so awful"]).tolist()
    ['-']
    """

    def __init__(
        self,
        *,
        weights: str = COSINE,
        alpha: float | None = None,
        n_neighbors: int = 10,
        svd: int | None = None,
        class_mass: bool | Mapping[Any, float] = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.weights = weights
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.svd = svd
        self.class_mass = class_mass
        self.tol = tol
        self.max_iter = max_iter
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    # learning
    def fit(self, X: Any, y: Any = None, *, gold: Any = None) -> Self:
        """Spread the labels there are; ``gold``: true labels, for the accuracy over sweeps."""
        with all_or_nothing(self):
            self._check_settings()
            matrix = self.read(X, first=True)
            labels = read_labels(y, matrix.shape[0])
            warn_of_unlabelled_fold()
            announce(self._foreseen(matrix, len(labels.classes)), ())
            self.graph_ = self._build(matrix)
            self._spread(labels, gold)
        self._warn(~self.reached_, "items", stacklevel=3)
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a sweep. Nothing is learned."""
        other = copy(self)
        other._check_settings()
        matrix = other.read(X, first=True)
        return other._foreseen(matrix, len(read_labels(y, matrix.shape[0]).classes))

    def _foreseen(self, matrix: Any, n_classes: int) -> Estimate:
        """Neighbours, the graph of them both ways, and the shares of classes."""
        n, width = matrix.shape
        if self.weights == PRECOMPUTED:
            return of_rows(matrix, n_classes)
        edges = n * min(self.n_neighbors, n)
        width = width if self.svd is None else self.svd
        dense = self.svd is not None or not sparse.issparse(matrix)
        searched = n * width if dense else 0
        apart = min(edges, CHUNK) * width if dense and self.weights == GAUSSIAN else 0
        block = (QUERIES * min(n, BLOCK) * usable_cpus()) if dense else 0
        found = of_rows(matrix, n_classes, neighbours=10.0 * NUMBER * edges)
        work = 2.0 * n * n * width if dense else 2.0 * matrix.nnz**2 / max(width, 1)
        return found.plus(work / SWEEPS, search=NUMBER * (2.0 * searched + 3.0 * apart + block))

    def _check_settings(self) -> None:
        if self.weights not in WEIGHTS:
            raise LearnerError(f"weights={brief(self.weights)}", f"one of {', '.join(WEIGHTS)}")
        check_whole("n_neighbors", self.n_neighbors)
        check_whole("max_iter", self.max_iter, most=MAX_STEPS)
        check_number("tol", self.tol, "1e-5 is usual", above=True)
        for name in ("svd", "n_jobs"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        if self.alpha is not None:  # a distance, which may be as long as any
            hint = "None finds one that fits"
            check_number("alpha", self.alpha, hint, above=True, most=np.inf)
        if self.weights == PRECOMPUTED and self.svd is not None:
            raise LearnerError("an SVD of a graph is none", "leave out svd or 'precomputed'")

    def _build(self, matrix: Any) -> Any:
        """The graph of these items; keeps what new ones are compared with."""
        self.alpha_: float | None = None
        self.axes_ = None
        self._rows: Any = None
        if self.weights == PRECOMPUTED:
            return read_graph(matrix)
        self.learn_axes(matrix)
        rows, says = self.placed(matrix)
        self._says = np.flatnonzero(says)
        self._rows = self.searchable(rows[self._says])
        found = self._nearest(None)
        if self.weights == GAUSSIAN:
            self.alpha_ = self.alpha or _usual_alpha(found.value)
        return joined(found, self._edge_weights(found), matrix.shape[0])

    def _nearest(self, queries: Any) -> Found:
        """The neighbours of some rows among those learned from, by their numbers there."""
        k = min(self.n_neighbors, max(len(self._says), 1))
        row, other, value = self._rows.nearest(queries, k, self.n_jobs or usable_cpus())
        return Found(row if queries is not None else self._says[row], self._says[other], value)

    def _edge_weights(self, found: Found) -> Array:
        if self.alpha_ is None:
            return found.value
        weights: Array = np.exp(-self.alpha_ * found.value)
        return weights

    def _spread(self, labels: Labels, gold: Any) -> None:
        known = labels.known
        self.classes_ = labels.classes
        given = given_shares(labels)
        self.prior_ = class_prior(self.class_mass, labels.classes, given[known])
        self.reached_ = reached(self.graph_, known)
        free = np.flatnonzero(self.reached_ & ~known)
        numbers = gold_numbers(gold, self.classes_, len(known))
        at_first = np.where(known, labels.likeliest(), UNKNOWN)
        self.history_ = History(self.classes_, at_first, numbers)

        def watch(shares: Array, arrived: Array) -> None:
            sure, found = np.ones(len(given)), at_first.copy()
            sure[free] = shares.max(axis=1)
            found[free[arrived]] = shares[arrived].argmax(axis=1)
            self.history_.record(found, sure, "graph")

        it = settle(self.graph_, given, free, self.prior_, self.tol, self.max_iter, watch)
        self.verdict_, self.n_iter_, self.error_ = it.verdict, it.n_iter, it.error
        self.steps_to_label_ = np.where(known, 0.0, np.inf)
        self.steps_to_label_[free] = it.steps
        self._harmonic = np.where(self.reached_[:, None], given, self.prior_)
        self._harmonic[free] = it.shares
        self.factors_ = factors_for(it.shares, self.prior_, bool(self.class_mass))
        self._conclude(labels, free, it.shares)

    def _conclude(self, labels: Labels, free: Array, shares: Array) -> None:
        """The labels of all items, once the classes have their masses."""
        known = labels.known
        final = self._harmonic.copy()
        final[free] = scaled(shares, self.factors_)
        self.label_distributions_ = final
        chosen = np.where(known, labels.likeliest(), final.argmax(axis=1))
        self.transduction_ = self.classes_[chosen]
        view = np.where(self.reached_, "class mass" if self.class_mass else "graph", "prior")
        self.history_.record(chosen, final.max(axis=1), view.tolist())
        self.signature_ = signature(self)

    # what it says of data
    def predict_proba(self, X: Any) -> Array:
        """The shares of each class for new items, from their nearest among those learned from."""
        return self._proba(X, stacklevel=4)

    def _proba(self, X: Any, stacklevel: int) -> Array:
        check_is_fitted(self)
        matrix = self.read(X, first=False)
        if self.weights == PRECOMPUTED:
            weights = sparse.csr_matrix(matrix)
            demand_weights(weights)
        else:
            weights = self._weights_to(matrix)
        weights = weights[:, self.reached_] if not self.reached_.all() else weights
        shares = weights @ self._harmonic[self.reached_]
        totals = np.asarray(weights.sum(axis=1)).reshape(-1)
        alone = totals == 0.0
        shares = scaled(shares / np.where(alone, 1.0, totals)[:, None], self.factors_)
        shares[alone] = self.prior_
        self._warn(alone, "new items", stacklevel)
        return shares

    def _weights_to(self, matrix: Any) -> Any:
        """(new items, items learned from): weights of the nearest."""
        rows, says = self.placed(matrix)
        where = np.flatnonzero(says)
        found = self._nearest(rows[where])
        value = found.value
        if self.alpha_ is not None:  # of one item only ratios matter: the nearest weighs 1
            nearest = np.full(len(where), np.inf)
            np.minimum.at(nearest, found.row, value)
            value = np.exp(-self.alpha_ * (value - nearest[found.row]))
        shape = (matrix.shape[0], len(self._harmonic))
        return sparse.csr_matrix((value, (where[found.row], found.other)), shape=shape)

    def predict(self, X: Any) -> Array:
        """The likeliest class of each new item."""
        shares = self._proba(X, stacklevel=4)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def _warn(self, lost: Array, what: str, stacklevel: int) -> None:
        items = np.flatnonzero(lost).tolist()
        n = len(items)
        if n:
            what = what if n > 1 else what.removesuffix("s")
            why = "empty, or joined to no label by any way of neighbours"
            whom = "them" if n > 1 else "it"
            text = f"{n:,} {what} got the prior, for no label reaches {whom}: {why}"
            warnings.warn(UnreachedWarning(text, items), stacklevel=stacklevel)

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`, without graph and history."""
        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """A model from a file; settings that are code (vectorizer) may be given again."""
        return cls.restore(store.read(path), **given)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        return restore(cls, stored, given)  # type: ignore[no-any-return]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factors_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.weights == PRECOMPUTED
        return tags


def _usual_alpha(squared: Array) -> float:
    mean = float(squared.mean()) if len(squared) else 0.0
    return 1.0 / mean if mean > 0.0 else 1.0
