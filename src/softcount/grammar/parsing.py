"""k-best parses and minimum Bayes risk parses from charts, for both kinds of grammar.

**k best.** A parse forest is a hypergraph (Huang & Chiang 2005, "Better k-best parsing"): a vertex
is a symbol over a span, a hyperedge a rule that expands it. If the probability of the best
derivation of every vertex is known, a hyperedge has the score

    log p(rule) + Σ log best(children) − log best(vertex) ≤ 0

relative to the best one, and log p of a derivation is that of the best plus the scores of its
edges. So the k best are found in order by best-first search with an exact heuristic (Hart, Nilsson
& Raphael 1968; Pauls & Klein 2009, "K-best A* parsing"): a partial derivation is completed by best
edges, of score 0, and at each of them the next best edge is pushed onto the queue. Each derivation
costs no more than its own edges.

**Minimum Bayes risk.** Given p(A spans i to j | sentence), the expected number of correct labelled
brackets of a tree is the sum of their posteriors. The largest sum of a binary tree is

    f(i, j) = max_A p(A spans i to j) + max_k (f(i, k) + f(k, j))

(Goodman 1996, "Parsing algorithms and metrics": labelled recall). A span that no tree of the
grammar has is only an intermediate step, not a bracket: it is omitted, which gives nodes with any
number of children.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.grammar.kernels.rules import LexicalRules, RuleChart, RuleTables, cell_index
from softcount.grammar.rules import GrammarRules, make_indptr
from softcount.kernels.jit import lean
from softcount.text.trees import Tree

SymbolSpan = tuple[int, int, int]
"""A symbol, start, and exclusive end."""
LinkedList = tuple[Any, Any] | None
NONE = -1
"""Stands for a missing child."""


class Hyperedges(NamedTuple):
    """Hyperedges of one vertex, best first.

    ``scores``           float64: log p relative to the best, at most 0
    ``codes``            int64: the derivation code of its rule
    ``lefts``, ``rights``  int64: the symbols of its children, `NONE` if missing
    ``middles``          int64: start of the right child
    """

    scores: FloatArray
    codes: IntArray
    lefts: IntArray
    rights: IntArray
    middles: IntArray

    def children(self, rank: int, vertex: SymbolSpan) -> tuple[SymbolSpan, ...]:
        """Return the children of an edge of the vertex."""
        left, right = int(self.lefts[rank]), int(self.rights[rank])
        _, i, j = vertex
        if right == NONE:
            return () if left == NONE else ((left, i, j),)
        split = int(self.middles[rank])
        return (left, i, split), (right, split, j)


class ParseForest(Protocol):
    """All derivations of one sentence."""

    n_words: int

    def roots(self) -> Hyperedges:
        """Return root symbols as ``lefts``; scores are log p of their best derivations."""

    def edges(self, vertex: SymbolSpan) -> Hyperedges:
        """Return the best hyperedges of a vertex."""


class ScoredDerivation(NamedTuple):
    """A derivation: log p, and the codes of its rules in preorder."""

    log_p: float
    codes: Array


def k_best_derivations(forest: ParseForest, k: int) -> list[ScoredDerivation]:
    """Return the k best derivations, best first (or all, if fewer); ties in any order.

    The queue holds partial derivations: the score without the next edge; the codes of edges taken
    so far, the last one first; the vertices still to be expanded, the leftmost first; and the rank
    of the edge by which to expand the first of these. Codes and vertices are linked lists, (head,
    tail), with shared tails.
    """
    top: SymbolSpan = (NONE, 0, forest.n_words)
    edges = {top: forest.roots()}
    queue: list[tuple[float, int, float, LinkedList, LinkedList, int]] = []
    numbers = count()  # breaks ties, so that the rest of an entry is never compared

    def push(total: float, taken: LinkedList, waiting: tuple[Any, Any], rank: int) -> None:
        vertex = waiting[0]
        if vertex not in edges:
            edges[vertex] = forest.edges(vertex)
        scores = edges[vertex].scores
        if rank < len(scores):
            score = total + float(scores[rank])
            heappush(queue, (-score, next(numbers), total, taken, waiting, rank))

    push(0.0, None, (top, None), 0)
    found: list[ScoredDerivation] = []
    while queue and len(found) < k:
        *_, total, taken, waiting, rank = heappop(queue)
        while waiting is not None:  # complete the derivation by best edges
            push(total, taken, waiting, rank + 1)
            vertex, waiting = waiting
            own = edges[vertex]
            total += float(own.scores[rank])
            taken = (int(own.codes[rank]), taken)
            for child in reversed(own.children(rank, vertex)):
                waiting = (child, waiting)
            rank = 0
        codes = []
        while taken is not None:
            code, taken = taken
            codes.append(code)
        # in order of use, without the code of the root
        found.append(ScoredDerivation(total, np.array(codes[-2::-1], np.int64)))
    return found


def rank_edges(edges: Hyperedges, k: int) -> Hyperedges:
    """Return the k best edges in order, with scores relative to the best."""
    kept = k_largest(edges.scores, k)
    best = Hyperedges._make(some[kept] for some in edges)
    return best._replace(scores=best.scores - best.scores[:1])


def k_largest(scores: Array, k: int) -> Array:
    """Return indices of the k largest numbers above −inf, the largest first.

    >>> k_largest(np.array([-3.0, -np.inf, -1.0, -2.0]), 2)
    array([2, 3])
    """
    some = np.argpartition(-scores, k - 1)[:k] if len(scores) > k else np.arange(len(scores))
    some = some[scores[some] > -np.inf]
    return some[np.lexsort((some, -scores[some]))]


PairKinds = tuple[tuple[slice, slice], ...]
"""The symbols of two leaves, of a leaf and a span, of a span and a leaf, and of two spans."""


class DenseForest:
    """Parse forest of one sentence under a dense grammar.

    ``root``   (K + T,): log p(root)
    ``rules``  (K, K + T, K + T): log p(A → B C)
    ``best``   (n, n + 1, K + T): log p of the best tree of each symbol over each span
    """

    def __init__(
        self, kinds: PairKinds, root: FloatArray, rules: FloatArray, best: FloatArray, k: int
    ) -> None:
        self.kinds, self.root, self.rules, self.best, self.k = kinds, root, rules, best, k
        self.n_words = len(best)

    def roots(self) -> Hyperedges:
        """Symbols over the sentence."""
        scores = self.root + self.best[0, -1] if self.n_words else np.zeros(0)
        kept = k_largest(scores, self.k)
        nothing = np.full(len(kept), NONE)
        return Hyperedges(scores[kept], kept, kept, nothing, nothing)

    def edges(self, vertex: SymbolSpan) -> Hyperedges:
        """Return the best pairs of symbols over all splits."""
        symbol, i, j = vertex
        if j == i + 1:
            nothing = np.full(1, NONE)
            return Hyperedges(np.zeros(1), np.full(1, symbol), nothing, nothing, nothing)
        leaves, leaf_first, leaf_last, spans = self.kinds
        splits = [(i + 1, i + 2, leaf_first), (i + 2, j - 1, spans), (j - 1, j, leaf_last)]
        if j == i + 2:
            splits = [(i + 1, j, leaves)]
        parts = []
        for first, last, (left, right) in splits:  # those whose pairs are of one kind
            if first < last:
                scores = (
                    self.rules[symbol, left, right]
                    + self.best[i, first:last, left, None]
                    + self.best[first:last, j, None, right]
                )
                kept = k_largest(scores.ravel(), self.k)
                middles, lefts, rights = np.unravel_index(kept, scores.shape)
                children = (left.start + lefts, right.start + rights, first + middles)
                parts.append((scores.ravel()[kept], *children))
        scores, lefts, rights, middles = map(np.concatenate, zip(*parts, strict=True))
        codes = np.full(len(scores), symbol)
        return rank_edges(Hyperedges(scores, codes, lefts, rights, middles), self.k)


class RulesByParent(NamedTuple):
    """Log-probabilities, and binary rules sorted by left side.

    ``indptr``           symbol A has the binary rules from indptr[A] to indptr[A + 1]
    ``codes``            int64: their codes
    ``lefts``, ``rights``  int: their children
    ``binary``, ``unary``, ``words``, ``root``  float64: log p
    """

    tables: RuleTables
    lexical: LexicalRules
    indptr: IntArray
    codes: IntArray
    lefts: IntArray
    rights: IntArray
    binary: FloatArray
    unary: FloatArray
    words: FloatArray
    root: FloatArray

    @classmethod
    def sort(cls, tables: RuleTables, lexical: LexicalRules) -> RulesByParent:
        own, n_symbols = tables.binary, len(tables.binary.indptr) - 1
        order = np.argsort(own.parent, kind="stable")
        rights = np.repeat(np.arange(n_symbols), np.diff(own.indptr))
        rules = (make_indptr(own.parent, n_symbols), order, own.left[order], rights[order])
        with np.errstate(divide="ignore"):
            binary, unary = np.log(own.probability[order]), np.log(tables.unary.probability)
            words, root = np.log(lexical.probabilities), np.log(tables.root)
        return cls(tables, lexical, *rules, binary, unary, words, root)


class SortedEntries:
    """Chart entries sorted by cell: the position of the cell, the symbol, and log p.

    ``order``   the cells, in order
    ``places``  position of each cell: its start, or its end
    """

    def __init__(self, order: IntArray, places: IntArray, chart: RuleChart) -> None:
        sizes = (chart.ends - chart.begins)[order]
        self.indptr = np.concatenate([[0], np.cumsum(sizes)])
        cells = np.repeat(order, sizes)
        at = chart.begins[cells] + np.arange(len(cells)) - np.repeat(self.indptr[:-1], sizes)
        log_p = np.log(chart.values[at]) + chart.exponents[cells] * math.log(2.0)
        self.entries = (places[cells], chart.symbols[at], log_p)

    def select(self, first: int, last: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the entries of the cells from ``first`` to ``last`` (exclusive)."""
        own = slice(self.indptr[first], self.indptr[last])
        places, symbols, log_p = self.entries
        return places[own], symbols[own], log_p[own]


class RuleForest:
    """Parse forest of one sentence under a rule-based grammar.

    ``rows``  rows of its tokens in the lexical rules
    """

    def __init__(self, rules: RulesByParent, rows: IntArray, chart: RuleChart, k: int) -> None:
        self.rules, self.rows, self.k, self.n_words = rules, rows, k, len(rows)
        starts, ends = np.triu_indices(self.n_words)
        self._by_start = SortedEntries(np.arange(len(starts)), ends + 1, chart)
        self._by_end = SortedEntries(np.lexsort((starts, ends)), starts, chart)
        size = self.n_words, len(rules.indptr) - 1
        self._left, self._right = np.full(size, -np.inf), np.full(size, -np.inf)

    def roots(self) -> Hyperedges:
        """Symbols over the sentence."""
        last = self.n_words - 1  # the cell over all words
        _, symbols, log_p = self._by_start.select(last, last + 1)
        known = symbols < len(self.rules.root)
        symbols, log_p = symbols[known], log_p[known]
        scores = self.rules.root[symbols] + log_p
        kept = k_largest(scores, self.k)
        nothing = np.full(len(kept), NONE)
        return Hyperedges(scores[kept], symbols[kept], symbols[kept], nothing, nothing)

    def edges(self, vertex: SymbolSpan) -> Hyperedges:
        """Return lexical or binary rules, and unary ones.

        Among edges of equal score, unary ones come last, so that derivations that always take the
        first edge terminate.
        """
        symbol, i, j = vertex
        c, n, rules = cell_index(i, j, self.n_words), self.n_words, self.rules
        unary, first_unary = rules.tables.unary, len(rules.codes)
        if j == i + 1:
            begin, end = rules.lexical.indptr[self.rows[i] :][:2]
            entries = begin + np.flatnonzero(rules.lexical.symbols[begin:end] == symbol)
            codes, nothing = first_unary + len(unary.child) + entries, np.full(len(entries), NONE)
            first = (rules.words[entries], codes, nothing, nothing, nothing)
        else:
            # cells that begin at i and end before j; cells that begin after i and end at j
            cells_left = self._by_start.select(cell_index(i, i + 1, n), c)
            cells_right = self._by_end.select(j * (j - 1) // 2 + i + 1, j * (j - 1) // 2 + j)
            own = slice(*rules.indptr[symbol : symbol + 2])
            left, right = rules.lefts[own], rules.rights[own]
            scores = (
                _look_up(self._left, left, i + 1, j, *cells_left)
                + _look_up(self._right, right, i + 1, j, *cells_right)
                + rules.binary[own]
            )
            kept = k_largest(scores.ravel(), self.k)
            middles, chosen = np.unravel_index(kept, scores.shape)
            children = (left[chosen], right[chosen], i + 1 + middles)
            first = (scores.ravel()[kept], rules.codes[own][chosen], *children)
        begin, end = unary.indptr[symbol : symbol + 2] if symbol < len(rules.root) else (0, 0)
        below, (_, symbols, log_p) = unary.child[begin:end], self._by_start.select(c, c + 1)
        best = _look_up(self._left, below, 0, 1, np.zeros(len(log_p), int), symbols, log_p)[0]
        codes, nothing = first_unary + np.arange(begin, end), np.full(len(below), NONE)
        last = (rules.unary[begin:end] + best, codes, below, nothing, nothing)
        both = map(np.concatenate, zip(first, last, strict=True))
        return rank_edges(Hyperedges._make(both), self.k)


def _look_up(
    work: FloatArray,
    wanted: IntArray,
    first: int,
    last: int,
    places: IntArray,
    symbols: IntArray,
    log_p: FloatArray,
) -> FloatArray:
    """Look up log p, (positions from first to last, wanted symbols); −inf where there is none.

    ``work``  workspace, all −inf before and after the call
    """
    work[places - first, symbols] = log_p
    found: FloatArray = work[: last - first, wanted]
    work[places - first, symbols] = -np.inf
    return found


# Minimum Bayes risk


MIN_POSTERIOR = 1e-12
"""Posteriors up to this are treated as zero."""
LIKELY = 0.5
"""Minimum posterior of further symbols over the same span as the best one."""


class UnaryRelations(NamedTuple):
    """Relations between symbols over one span, by unary rules.

    ``roots``         bool (N,): whether a symbol may be the root
    ``preterminals``  bool (N,): whether it may derive a single word
    ``above``         bool (N, N): whether unary rules lead from the first to the second
    """

    roots: BoolArray
    preterminals: BoolArray
    above: BoolArray

    @classmethod
    def from_rules(cls, rules: GrammarRules, plain: Array | None = None) -> UnaryRelations:
        """Compute the relations of these rules.

        ``plain``  index of the plain label of each symbol, −1 if it has none, if symbols are
                   annotated: then the relations are between plain labels

        >>> from softcount.grammar.rules import parse_rules
        >>> rules = parse_rules("S -> A S | A\\nA -> B\\nB -> 'b'")
        >>> UnaryRelations.from_rules(rules).above.astype(int)
        array([[0, 1, 1],
               [0, 0, 1],
               [0, 0, 0]])
        >>> UnaryRelations.from_rules(rules, np.array([0, -1, 1])).above.astype(int)
        array([[0, 1],
               [0, 0]])
        """
        number, n_symbols = rules.index, len(rules.index)
        label = np.arange(n_symbols) if plain is None else plain
        n = int(label.max()) + 1
        # transitive closure: all pairs connected by any number of unary rules
        pairs = [(number[r.lhs], number[r.rhs[0]]) for r in rules.rules if r.is_unary]
        rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
        size, ones = (n_symbols, n_symbols), np.ones(len(pairs), np.int32)
        closure, n_before = csr_matrix((ones, (rows, columns)), size), -1
        while closure.nnz > n_before:
            n_before = closure.nnz
            closure = ((closure + closure @ closure) > 0).astype(np.int32)
        tops, bottoms = (label[some] for some in closure.nonzero())
        known = (tops >= 0) & (bottoms >= 0)
        above = np.zeros((n, n), bool)
        above[tops[known], bottoms[known]] = True
        words = [number[rule.lhs] for rule in rules.rules if rule.is_lexical]
        roots = [number[a] for a, p in rules.root.items() if p]
        is_root, is_preterminal = (np.isin(np.arange(n), label[some]) for some in (roots, words))
        return cls(is_root, is_preterminal, above)


class SpanPosteriors(NamedTuple):
    """Posteriors of symbols over spans of one sentence.

    ``starts``      int (entries,): start of the span
    ``ends``        int (entries,): exclusive end of the span
    ``symbols``     int (entries,)
    ``posteriors``  float (entries,): p(symbol spans start to end | sentence); with cycles of unary
                    rules, an expected number that may exceed one
    """

    starts: IntArray
    ends: IntArray
    symbols: IntArray
    posteriors: FloatArray


class _SpanTable(NamedTuple):
    """Symbols and posteriors of spans, the most probable of each span first.

    ``indptr``      int64 (n, n + 2): those of span (i, j) are from indptr[i, j] to indptr[i, j + 1]
    ``symbols``     int32 (entries,)
    ``posteriors``  float64 (entries,)
    """

    indptr: IntArray
    symbols: IntArray
    posteriors: FloatArray

    def at(self, i: int, j: int) -> tuple[Array, Array]:
        own = slice(self.indptr[i, j], self.indptr[i, j + 1])
        return self.symbols[own], self.posteriors[own]


@lean
def best_splits(gains: Array) -> Array:
    """Find the best split of each span, given the gain of each span (n, n + 1), by start and end.

    With f(i, j) = gain(i, j) + max_k (f(i, k) + f(k, j)), the first k of the largest sum.

    >>> gains = np.zeros((3, 4))
    >>> gains[1, 3] = 0.5
    >>> int(best_splits(gains)[0, 3])
    1
    """
    n = len(gains)
    total, splits = gains.copy(), np.zeros(gains.shape, np.int64)
    for i in range(n - 2, -1, -1):
        for j in range(i + 2, n + 1):
            best, at = total[i, i + 1] + total[i + 1, j], i + 1
            for k in range(i + 2, j):
                more = total[i, k] + total[k, j]
                if more > best:
                    best, at = more, k
            total[i, j] += best
            splits[i, j] = at
    return splits


def minimum_risk_brackets(
    n_words: int,
    spans: SpanPosteriors,
    relations: UnaryRelations | None = None,
    labelled: bool = True,
    cost: float = 0.0,
) -> list[SymbolSpan]:
    """Find the brackets with the largest expected number of correct ones, in preorder.

    Empty if no span has a symbol.

    ``spans``      posteriors of symbols over spans, including single words
    ``relations``  of a rule-based grammar; without, spans have one symbol each
    ``labelled``   if not, the gain of a span is the sum of its symbols' posteriors
    ``cost``       cost of each bracket; brackets with no larger posterior are omitted: 0 maximises
                   the number of correct brackets; ½ keeps those more likely right than wrong

    With relations, the top symbol may be the root, and the lowest over a word is its most probable
    preterminal; of several probable symbols over the same span, one is above the other if unary
    rules lead there.

    >>> starts, ends = np.array([[0, 0, 1, 0, 1, 2], [3, 2, 3, 1, 2, 3]])
    >>> symbols, posteriors = np.array([0, 1, 0, 2, 3, 2]), np.array([1.0, 0.4, 0.6, 1.0, 0.9, 0.8])
    >>> minimum_risk_brackets(3, SpanPosteriors(starts, ends, symbols, posteriors))
    [(0, 0, 3), (2, 0, 1), (0, 1, 3), (3, 1, 2), (2, 2, 3)]
    """
    kept = spans.posteriors > MIN_POSTERIOR
    keys = (spans.starts * (n_words + 1) + spans.ends)[kept]
    if not len(keys):
        return []
    order = np.lexsort((-spans.posteriors[kept], keys))
    places = np.arange(n_words)[:, None] * (n_words + 1) + np.arange(n_words + 2)
    entries = (spans.symbols[kept][order], spans.posteriors[kept][order])
    table = _SpanTable(np.searchsorted(keys[order], places), *entries)

    # the gain of each span (n, n + 1), at least 0; words and the sentence are in every tree
    sums = np.concatenate([[0.0], np.cumsum(table.posteriors)])
    first, last = table.indptr[:, :-1], table.indptr[:, 1:]
    best = np.append(table.posteriors, 0.0)[first] * (last > first)
    gains = np.maximum((best if labelled else sums[last] - sums[first]) - cost, 0.0)
    if relations is not None and labelled:
        second = np.append(table.posteriors, [0.0, 0.0])[first + 1] * (last > first + 1)
        for i, j in np.argwhere(second >= LIKELY).tolist():
            chain = _related_symbols(table, i, j, relations, cost)
            symbols, posteriors = table.at(i, j)
            gains[i, j] = (posteriors[np.isin(symbols, chain)] - cost).sum()

    splits = best_splits(gains)
    found, ahead = list[SymbolSpan](), [(0, n_words)]
    while ahead:
        i, j = ahead.pop()
        symbols, posteriors = table.at(i, j)
        if len(symbols):
            worth = float(posteriors[0] if labelled else posteriors.sum())
            if j == i + 1 or j - i == n_words or worth > cost:
                chain = [int(symbols[0])]
                if relations is not None:
                    chain = _related_symbols(table, i, j, relations, cost)
                found += [(a, i, j) for a in chain]
        if j > i + 1:
            middle = int(splits[i, j])
            ahead += [(middle, j), (i, middle)]
    return found


def make_tree(
    brackets: Sequence[SymbolSpan], labels: Sequence[str], words: Sequence[str]
) -> Tree | None:
    """Make a tree from brackets in preorder, the first over all words; None if there are none.

    >>> print(make_tree([(0, 0, 3), (1, 0, 2)], ["S", "NP"], ["the", "dog", "barks"]))
    (S (NP the dog) barks)
    """
    done: list[tuple[int, int, Tree]] = []  # the leftmost last
    for symbol, i, j in reversed(brackets):
        parts, at = list[Tree | str](), i
        while at < j:
            if done and done[-1][0] == at:
                _, at, child = done.pop()
                parts.append(child)
            else:
                parts.append(words[at])
                at += 1
        done.append((i, j, Tree(labels[symbol], tuple(parts))))
    return done[0][2] if done else None


def _related_symbols(
    table: _SpanTable, i: int, j: int, relations: UnaryRelations, cost: float
) -> list[int]:
    """Return the most probable symbol of a span, and the probable ones above or below it."""
    (symbols, posteriors), above = table.at(i, j), relations.above
    top = bottom = None
    candidates = np.ones(len(symbols), bool)
    if j == i + 1 and relations.preterminals[symbols].any():
        bottom = _chain_end(symbols, posteriors, relations.preterminals[symbols], above.T)
        candidates &= above[symbols, bottom] | (symbols == bottom)
    if j - i == len(table.indptr) and (candidates & relations.roots[symbols]).any():
        top = _chain_end(symbols, posteriors, candidates & relations.roots[symbols], above)
        candidates &= above[top, symbols] | (symbols == top)
    kept = [a for a in dict.fromkeys((top, bottom)) if a is not None]
    if top is not None and top == bottom:
        return kept
    likely = (posteriors >= LIKELY) & (posteriors > cost)
    likely[0] = posteriors[0] > cost or not kept
    for a in symbols[likely & candidates].tolist():
        if a not in kept and all(above[a, b] or above[b, a] for b in kept):
            kept.append(a)
    ranks = {a: (a != top, a == bottom, -int(above[a, kept].sum())) for a in kept}
    return sorted(kept, key=lambda a: ranks[a])


def _chain_end(symbols: Array, posteriors: Array, candidates: Array, above: Array) -> int:
    """Return the most probable candidate; of several probable ones, the one above the others."""
    some = symbols[candidates & (posteriors >= LIKELY)]
    if not len(some):
        return int(symbols[np.argmax(candidates)])
    return int(some[np.argmax(above[np.ix_(some, some)].sum(axis=1))])
