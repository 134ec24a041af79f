"""Parses: the k best, those of least risk, and what spans are expected to be.

The k best derivations of a forest, the best first, and exactly these.

A vertex is a symbol over some words, an edge a rule that it may begin with. If of every vertex the
chance of its best derivation is known, an edge loses

    log p(rule) + Σ log best(children) − log best(vertex) ≤ 0

against the best, and a derivation has the chance of the best one times what its edges lose: a
search by the best first with an exact heuristic (Hart, Nilsson & Raphael 1968; of parses, Pauls &
Klein 2009, "K-best A* parsing"). What was begun is best gone on with by the best edges, which lose
nothing; at each of them the next edge is put off. So a derivation costs no more than its edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from softcount.corpus.trees import Tree
from softcount.grammar.data import Shard
from softcount.grammar.inside_outside import ROOT, RULES, Pass, Shape, batches, bounds_of, text_of
from softcount.grammar.kernels.dense import (
    Charts,
    Shares,
    Text,
    best_splits,
    cell,
    inside,
    shares_of,
)
from softcount.grammar.kernels.rules import (
    Chart,
    RuleTables,
    RuleText,
    Words,
    room_for,
    rule_cell,
    rule_inside,
)
from softcount.grammar.rules import Rules, borders
from softcount.kernels.pool import in_turn
from softcount.types import Array

Vertex = tuple[int, int, int]
"""A symbol, its first word, and the first word behind it."""
NONE = -1
"""In place of a child that there is not."""


class Edges(NamedTuple):
    """Edges of one vertex, the best first.

    ``scores``           what each loses, 0 or less
    ``codes``            what derivations call it
    ``lefts``, ``rights``  the symbols of its children, `NONE` if there are less
    ``middles``          where the right child begins
    """

    scores: Array
    codes: Array
    lefts: Array
    rights: Array
    middles: Array

    def children(self, number: int, vertex: Vertex) -> tuple[Vertex, ...]:
        """The children that an edge of the vertex leads to."""
        left, right = int(self.lefts[number]), int(self.rights[number])
        _, i, j = vertex
        if right == NONE:
            return () if left == NONE else ((left, i, j),)
        middle = int(self.middles[number])
        return (left, i, middle), (right, middle, j)


class Forest(Protocol):
    """All derivations of one sentence."""

    n_words: int

    def roots(self) -> Edges:
        """The symbols over all words, as ``lefts``; scores are log p of their best derivations."""

    def edges(self, vertex: Vertex) -> Edges:
        """What a vertex may begin with."""


class Derivation(NamedTuple):
    """log p, and the codes of edges in preorder, the left child first."""

    log_p: float
    codes: Array


class _Link(NamedTuple):
    """A list that others may share: its head, and the rest."""

    head: int
    rest: _Link | None


class _Ahead(NamedTuple):
    """Vertices that are still to be gone on from, the leftmost first."""

    vertex: Vertex
    rest: _Ahead | None


class _Begun(NamedTuple):
    """A derivation as far as it is known: its edges, the last one first, what is ahead, and the
    number of the edge that the first vertex ahead is to take. ``total`` is without that edge."""

    total: float
    taken: _Link | None
    ahead: _Ahead
    number: int


def derivations(forest: Forest) -> Iterator[Derivation]:
    """All derivations, one after the other, the best first; ties in any order."""
    top: Vertex = (NONE, 0, forest.n_words)
    known = {top: forest.roots()}

    def edges_of(vertex: Vertex) -> Edges:
        if vertex not in known:
            known[vertex] = forest.edges(vertex)
        return known[vertex]

    queue: list[tuple[float, int, _Begun]] = []
    numbers = count()  # no two entries are compared by more

    def put_off(begun: _Begun) -> None:
        scores = edges_of(begun.ahead.vertex).scores
        if begun.number < len(scores):
            total = begun.total + float(scores[begun.number])
            heappush(queue, (-total, next(numbers), begun))

    put_off(_Begun(0.0, None, _Ahead(top, None), 0))
    while queue:
        begun = heappop(queue)[2]
        total, taken, number = begun.total, begun.taken, begun.number
        ahead: _Ahead | None = begun.ahead
        while ahead is not None:
            put_off(_Begun(total, taken, ahead, number + 1))
            edges = edges_of(ahead.vertex)
            total += float(edges.scores[number])
            taken = _Link(int(edges.codes[number]), taken)
            children, ahead = edges.children(number, ahead.vertex), ahead.rest
            for child in reversed(children):
                ahead = _Ahead(child, ahead)
            number = 0
        yield Derivation(total, _codes(taken))


def best_derivations(forest: Forest, k: int) -> list[Derivation]:
    """The k best, or all if there are fewer."""
    return list(islice(derivations(forest), k))


def _codes(taken: _Link | None) -> Array:
    """Codes from the first to the last, but for that of the root."""
    found = []
    while taken is not None:
        found.append(taken.head)
        taken = taken.rest
    return np.array(found[-2::-1], np.int64)


def edges_from(
    scores: Array, codes: Array, lefts: Array, rights: Array, middles: Array, k: int
) -> Edges:
    """The k best of some edges, in order, against the best of them."""
    kept = k_largest(scores, k)
    own = scores[kept]
    return Edges(
        own - own[0] if len(own) else own, codes[kept], lefts[kept], rights[kept], middles[kept]
    )


def k_largest(scores: Array, k: int) -> Array:
    """Places of the k largest numbers that are more than −inf, the largest first.

    >>> k_largest(np.array([-3.0, -np.inf, -1.0, -2.0]), 2)
    array([2, 3])
    """
    some = np.argpartition(-scores, k - 1)[:k] if len(scores) > k else np.arange(len(scores))
    some = some[scores[some] > -np.inf]
    return some[np.lexsort((some, -scores[some]))]


# Trees of minimum risk: those of which most brackets are expected to be right.
#
# With p(A spans i to j | sentence), the labelled brackets of a tree that are expected to be right
# are the sum of their posteriors. The largest sum of a binary tree is
#
#     f(i, j) = max_A p(A spans i to j) + max_k (f(i, k) + f(k, j))
#
# (Goodman 1996, "Parsing algorithms and metrics": labelled recall). What no tree of the grammar has
# is a step on the way, and no bracket: it is left out, which gives nodes of any size.


LEAST = 1e-12
"""A share up to this is none."""
LIKELY = 0.5
"""Symbols over the same words as the best one are taken if they are as likely as this."""

Bracket = tuple[int, int, int]
"""A symbol, its first word, and the first word behind it."""


class Links(NamedTuple):
    """What symbols of rules may be.

    ``roots``, ``tags``  (N,) whether a symbol may be the root, and may become a word
    ``above``            (N, N) whether unary rules lead from the one to the other
    """

    roots: Array
    tags: Array
    above: Array

    @classmethod
    def of(cls, rules: Rules, plain: Array | None = None) -> Links:
        """What these rules allow.

        ``plain``  the label of each symbol, −1 if it has none, where users know labels of symbols:
                   then this is about labels

        >>> from softcount.grammar.rules import from_text
        >>> rules = from_text("S -> A S | A\\nA -> B\\nB -> 'b'")
        >>> Links.of(rules).above.astype(int)
        array([[0, 1, 1],
               [0, 0, 1],
               [0, 0, 0]])
        >>> Links.of(rules, np.array([0, -1, 1])).above.astype(int)
        array([[0, 1],
               [0, 0]])
        """
        number = rules.number
        label = np.arange(len(number)) if plain is None else plain
        n = int(label.max()) + 1
        roots, tags, above = np.zeros(n, bool), np.zeros(n, bool), np.zeros((n, n), bool)
        pairs = [(number[r.lhs], number[r.rhs[0]]) for r in rules.rules if r.is_unary]
        tops, bottoms = (label[some] for some in _chained(pairs, len(number)))
        known = (tops >= 0) & (bottoms >= 0)
        above[tops[known], bottoms[known]] = True
        words = [number[rule.lhs] for rule in rules.rules if rule.is_lexical]
        for into, some in ((tags, words), (roots, [number[a] for a, p in rules.root.items() if p])):
            own = label[np.array(some, np.int64)]
            into[own[own >= 0]] = True
        return cls(roots, tags, above)


def _chained(pairs: Sequence[tuple[int, int]], n: int) -> tuple[Array, Array]:
    """Of n symbols, those that unary rules lead from and to, in however many steps."""
    table = np.array(pairs, np.int64).reshape(-1, 2).T
    found = csr_matrix((np.ones(len(pairs), np.int32), (table[0], table[1])), (n, n))
    while True:
        further = ((found + found @ found) > 0).astype(np.int32)
        if further.nnz == found.nnz:
            return found.nonzero()  # type: ignore[no-any-return]
        found = further


class _Cells(NamedTuple):
    """Symbols and shares of spans, the likeliest of each first.

    ``borders``  (n, n + 2): those of span (i, j) are from borders[i, j] to borders[i, j + 1]
    """

    borders: Array
    symbols: Array
    shares: Array

    def at(self, i: int, j: int) -> tuple[Array, Array]:
        own = slice(self.borders[i, j], self.borders[i, j + 1])
        return self.symbols[own], self.shares[own]


def most_expected(
    n_words: int,
    starts: Array,
    ends: Array,
    symbols: Array,
    shares: Array,
    links: Links | None = None,
    labelled: bool = True,
    cost: float = 0.0,
) -> list[Bracket]:
    """The brackets that most are expected to be right of, from the top down; none if no span has a
    symbol.

    ``starts``, …, ``shares``  expected symbols of spans, those of single words too
    ``links``     of a grammar of rules; without, spans have one symbol each
    ``labelled``  if not, a span counts by the sum of its symbols' shares
    ``cost``      what each bracket costs, so that those that are no likelier are left out: with 0
                  most are right; with ½ there are those that are rather right than wrong

    With links, the top is a symbol that may be the root, and the lowest over a word is its
    likeliest tag; of several symbols that are likely over the same words, one is above the other
    if unary rules lead there.

    >>> starts, ends = np.array([[0, 0, 1, 0, 1, 2], [3, 2, 3, 1, 2, 3]])
    >>> symbols, shares = np.array([0, 1, 0, 2, 3, 2]), np.array([1.0, 0.4, 0.6, 1.0, 0.9, 0.8])
    >>> most_expected(3, starts, ends, symbols, shares)
    [(0, 0, 3), (2, 0, 1), (0, 1, 3), (3, 1, 2), (2, 2, 3)]
    """
    cells = _sorted(n_words, starts, ends, symbols, shares)
    if not len(cells.symbols):
        return []
    splits = best_splits(_gains(cells, links, labelled, cost))
    found, ahead = list[Bracket](), [(0, n_words)]
    while ahead:
        i, j = ahead.pop()
        found += [(a, i, j) for a in _chain(cells, i, j, links, labelled, cost)]
        if j > i + 1:
            middle = int(splits[i, j])
            ahead += [(middle, j), (i, middle)]
    return found


def tree_of(
    brackets: Sequence[Bracket], labels: Sequence[str], words: Sequence[str]
) -> Tree | None:
    """The tree of brackets, the first of which is the whole; None if there are none.

    >>> print(tree_of([(0, 0, 3), (1, 0, 2)], ["S", "NP"], ["the", "dog", "barks"]))
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


def _sorted(n: int, starts: Array, ends: Array, symbols: Array, shares: Array) -> _Cells:
    kept = shares > LEAST
    keys, symbols, shares = (starts * (n + 1) + ends)[kept], symbols[kept], shares[kept]
    order = np.lexsort((-shares, keys))
    places = np.arange(n)[:, None] * (n + 1) + np.arange(n + 2)
    return _Cells(np.searchsorted(keys[order], places), symbols[order], shares[order])


def _gains(cells: _Cells, links: Links | None, labelled: bool, cost: float) -> Array:
    """What each span brings (n, n + 1), 0 at least; words and the whole are in every tree."""
    sums = np.concatenate([[0.0], np.cumsum(cells.shares)])
    first, last = cells.borders[:, :-1], cells.borders[:, 1:]
    best = np.append(cells.shares, 0.0)[first] * (last > first)
    gains: Array = np.maximum((best if labelled else sums[last] - sums[first]) - cost, 0.0)
    if links is not None and labelled:
        second = np.append(cells.shares, [0.0, 0.0])[first + 1] * (last > first + 1)
        for i, j in np.argwhere(second >= LIKELY).tolist():
            chain, (symbols, shares) = _related(cells, i, j, links, cost), cells.at(i, j)
            gains[i, j] = (shares[np.isin(symbols, chain)] - cost).sum()
    return gains


def _chain(
    cells: _Cells, i: int, j: int, links: Links | None, labelled: bool, cost: float
) -> list[int]:
    """The symbols over a span, from the top down; none if it is no bracket."""
    symbols, shares = cells.at(i, j)
    n = len(cells.borders)
    is_word, is_whole = j == i + 1, j - i == n
    if not len(symbols):
        return []
    worth = float(shares[0] if labelled else shares.sum())
    if not (is_word or is_whole or worth > cost):
        return []
    return [int(symbols[0])] if links is None else _related(cells, i, j, links, cost)


def _related(cells: _Cells, i: int, j: int, links: Links, cost: float) -> list[int]:
    """The likeliest symbol of a span and all that are likely and may be above or below it."""
    (symbols, shares), above = cells.at(i, j), links.above
    top = bottom = None
    may = np.ones(len(symbols), bool)
    if j == i + 1 and links.tags[symbols].any():
        bottom = _end_of_chain(symbols, shares, links.tags[symbols], above.T)
        may &= above[symbols, bottom] | (symbols == bottom)
    if j - i == len(cells.borders) and (may & links.roots[symbols]).any():
        top = _end_of_chain(symbols, shares, may & links.roots[symbols], above)
        may &= above[top, symbols] | (symbols == top)
    kept = [a for a in dict.fromkeys((top, bottom)) if a is not None]
    if top is not None and top == bottom:
        return kept
    likely = (shares >= LIKELY) & (shares > cost)
    likely[0] = shares[0] > cost or not kept
    for a in symbols[likely & may].tolist():
        if a not in kept and all(above[a, b] or above[b, a] for b in kept):
            kept.append(a)
    ranks = {a: (a != top, a == bottom, -int(above[a, kept].sum())) for a in kept}
    return sorted(kept, key=lambda a: ranks[a])


def _end_of_chain(symbols: Array, shares: Array, may: Array, above: Array) -> int:
    """The likeliest symbol that may be; of all that are likely, the one above the others."""
    some = symbols[may & (shares >= LIKELY)]
    if not len(some):
        return int(symbols[np.argmax(may)])
    return int(some[np.argmax(above[np.ix_(some, some)].sum(axis=1))])


# Which symbols a dense grammar expects where: posteriors of the symbols of spans.


LEAST_SHARE = 1e-12
"""Shares up to this are left out: they are rounding, or might as well be."""


def spans(shard: Shard, this: Pass) -> Shares:
    """p(symbol spans i to j | sentence) of all sentences of a shard, in its order.

    Leaves have preterminals, which come after the nonterminals. A sentence that is impossible or
    empty has none. See `one_sentence` for those of one.
    """
    this = this._replace(dtype=np.float64)
    text = text_of(shard, this)._replace(weights=np.ones(len(shard)))
    grammar = this.shape.grammar(this.params, np.float64, this.temper)
    bounds, found = bounds_of(shard), dict[int, Shares]()

    def piece(number: int) -> None:
        tally = this.shape.tally(np.zeros(len(shard)), len(this.table), shard.text.rows)
        for first, last in batches(bounds[number], bounds[number + 1]):
            how = (text, grammar, this.shape.k, LEAST_SHARE, tally)
            found[first] = shares_of(first, last, *how)

    in_turn(piece, len(bounds) - 1, this.threads)
    return _in_order(shard, [found[first] for first in sorted(found)])


def one_sentence(all_spans: Shares, s: int) -> tuple[Array, Array, Array, Array]:
    """Starts, ends, symbols and shares of sentence s."""
    own = slice(all_spans.borders[s], all_spans.borders[s + 1])
    starts, ends, symbols, shares = (some[own] for some in all_spans[1:])
    return starts, ends, symbols, shares


def _in_order(shard: Shard, found: list[Shares]) -> Shares:
    """Spans of batches, which go by the shard's ``order``, as the sentences go."""
    sizes = np.zeros(len(shard), np.int64)
    sizes[shard.order] = np.concatenate(
        [np.zeros(0, np.int64), *(np.diff(some.borders) for some in found)]
    )
    borders = np.concatenate([[0], np.cumsum(sizes)])
    kinds = (np.int64, np.int64, np.int32, np.float64)
    whole = Shares(borders, *(np.empty(borders[-1], kind) for kind in kinds))
    place = 0
    for some in found:
        for n in range(len(some.borders) - 1):
            s = shard.order[place]
            for into, part in zip(one_sentence(whole, s), one_sentence(some, n), strict=True):
                into[:] = part
            place += 1
    return whole


# Forests of dense grammars: what each symbol over each span may best consist of.


class Logs(NamedTuple):
    """Logarithms of roots (K + T,) and of rules (K, K + T, K + T)."""

    shape: Shape
    root: Array
    rules: Array


class DenseForest:
    """Trees of one sentence.

    ``best``  (n, n + 1, K + T): log of the best tree of each symbol over each span
    """

    def __init__(self, logs: Logs, best: Array, k: int) -> None:
        self.logs, self.best, self.k = logs, best, k
        self.n_words = len(best)

    def roots(self) -> Edges:
        """Symbols over all words."""
        scores = self.logs.root + self.best[0, -1] if self.n_words else np.zeros(0)
        kept = k_largest(scores, self.k)
        nothing = np.full(len(kept), NONE)
        return Edges(scores[kept], kept, kept, nothing, nothing)

    def edges(self, vertex: Vertex) -> Edges:
        """Pairs of symbols, the words being parted anywhere."""
        symbol, i, j = vertex
        if j == i + 1:
            nothing = np.full(1, NONE)
            return Edges(np.zeros(1), np.full(1, symbol), nothing, nothing, nothing)
        parts = [self._pairs(vertex, *group) for group in self._groups(i, j)]
        scores, lefts, rights, middles = (np.concatenate(some) for some in zip(*parts, strict=True))
        return edges_from(scores, np.full(len(scores), symbol), lefts, rights, middles, self.k)

    def _groups(self, i: int, j: int) -> list[tuple[int, int, slice, slice]]:
        """Middles (first, behind the last) whose pairs are of one kind, and their symbols."""
        leaves, leaf_first, leaf_last, spans = self.logs.shape.kinds
        if j == i + 2:
            return [(i + 1, j, *leaves)]
        groups = [(i + 1, i + 2, *leaf_first), (i + 2, j - 1, *spans), (j - 1, j, *leaf_last)]
        return [group for group in groups if group[0] < group[1]]

    def _pairs(
        self, vertex: Vertex, first: int, last: int, left: slice, right: slice
    ) -> tuple[Array, Array, Array, Array]:
        """The best pairs of one kind: scores, left and right symbols, middles."""
        symbol, i, j = vertex
        scores = (
            self.logs.rules[symbol, left, right]
            + self.best[i, first:last, left, None]
            + self.best[first:last, j, None, right]
        )
        kept = k_largest(scores.ravel(), self.k)
        middles, lefts, rights = np.unravel_index(kept, scores.shape)
        return scores.ravel()[kept], left.start + lefts, right.start + rights, first + middles


def best_trees(shard: Shard, this: Pass, k: int) -> list[list[Derivation]]:
    """The k best trees of each sentence, or all if there are fewer: none of those that are
    impossible or empty. Their codes are the symbols, in preorder."""
    this = this._replace(dtype=np.float64)
    text, grammar = text_of(shard, this), this.shape.grammar(this.params, np.float64, this.temper)
    logs = _logs(this)
    found: list[list[Derivation]] = [[] for _ in range(len(shard))]
    for number, s in enumerate(text.order.tolist()):
        forest = DenseForest(logs, _best(number, text, grammar, this.shape), k)
        found[s] = best_derivations(forest, k)
    return found


def _logs(this: Pass) -> Logs:
    n = this.shape.n_symbols
    with np.errstate(divide="ignore"):
        root, rules = (this.temper * np.log(np.asarray(this.params[t])) for t in (ROOT, RULES))
    return Logs(this.shape, root[0], rules.reshape(this.shape.k, n, n))


def _best(number: int, text: Text, grammar: Any, shape: Shape) -> Array:
    """The best chart of a sentence, as logarithms: see `DenseForest`."""
    logs = np.zeros(len(text.indptr) - 1)  # of what words were divided by
    c: Charts = inside(number, number + 1, text, grammar, True, logs)[0]
    n = int(c.lengths[0])
    found = np.full((n, n + 1, shape.n_symbols), -np.inf)
    with np.errstate(divide="ignore"):
        leaves, spans = np.log(c.leaves[:, : shape.t]), np.log(c.spans[:, : shape.k])
    starts = np.arange(n)
    found[starts, starts + 1, shape.k :] = leaves + logs[text.order[number]] / n
    for w in range(2, n + 1):
        begin, starts = cell(n, w, 0), np.arange(n - w + 1)
        these = slice(begin, begin + len(starts))
        own = spans[these] - c.powers[these, None] * math.log(2.0)
        found[starts, starts + w, : shape.k] = own + logs[text.order[number]] * w / n
    return found


# Forests of grammars of rules: which rules each symbol over each span may best begin with.


Parts = tuple[Array, Array, Array, Array, Array]
"""Edges in any order: see `Edges`."""


class Table(NamedTuple):
    """Rules by their left sides, with logarithms of their chances.

    ``indptr``                      symbol A has the binary rules from indptr[A] to indptr[A + 1]
    ``codes``, ``lefts``, ``rights``  their numbers and children
    ``joins``, ``chains``, ``words``, ``root``  logarithms
    """

    indptr: Array
    codes: Array
    lefts: Array
    rights: Array
    joins: Array
    chains: Array
    words: Array
    root: Array

    @classmethod
    def of(cls, grammar: RuleTables, words: Words) -> Table:
        own, n_symbols = grammar.joins, len(grammar.joins.indptr) - 1
        order = np.argsort(own.parent, kind="stable")
        rights = np.repeat(np.arange(n_symbols), np.diff(own.indptr))
        with np.errstate(divide="ignore"):
            joins, chains = np.log(own.chance[order]), np.log(grammar.chains.chance)
            ends, root = np.log(words.chances), np.log(grammar.root)
        children = (own.left[order], rights[order])
        return cls(borders(own.parent, n_symbols), order, *children, joins, chains, ends, root)


class Cells:
    """Entries of a chart by the cells' starts, and by their ends."""

    def __init__(self, chart: Chart, n: int) -> None:
        self.n, sizes = n, chart.ends - chart.begins
        starts, ends = np.triu_indices(n)
        self.by_start = _Sorted(np.arange(len(sizes)), ends + 1, chart, sizes)
        self.by_end = _Sorted(np.lexsort((starts, ends)), starts, chart, sizes)

    def at(self, i: int, j: int) -> tuple[Array, Array]:
        """The symbols of a cell, and log of the best derivation of each."""
        own = self.by_start
        begin, end = own.borders[rule_cell(i, j, self.n) :][:2]
        return own.symbols[begin:end], own.logs[begin:end]

    def lefts(self, i: int, j: int) -> tuple[Array, Array, Array]:
        """Of all cells that begin at i and end before j: their ends, symbols, logarithms."""
        own = self.by_start
        return own.some(
            own.borders[rule_cell(i, i + 1, self.n)], own.borders[rule_cell(i, j, self.n)]
        )

    def rights(self, i: int, j: int) -> tuple[Array, Array, Array]:
        """Of all cells that begin behind i and end at j: their starts, symbols, logarithms."""
        own, first = self.by_end, j * (j - 1) // 2
        return own.some(own.borders[first + i + 1], own.borders[first + j])


class _Sorted:
    """Entries of cells in some order, each with the place of its cell."""

    def __init__(self, order: Array, places: Array, chart: Chart, sizes: Array) -> None:
        self.borders = np.concatenate([[0], np.cumsum(sizes[order])])
        cells = np.repeat(order, sizes[order])
        at = (
            chart.begins[cells] + np.arange(len(cells)) - np.repeat(self.borders[:-1], sizes[order])
        )
        self.symbols, self.places = chart.symbols[at], places[cells]
        self.logs = np.log(chart.values[at]) + chart.powers[cells] * math.log(2.0)

    def some(self, begin: int, end: int) -> tuple[Array, Array, Array]:
        return self.places[begin:end], self.symbols[begin:end], self.logs[begin:end]


class RuleForest:
    """Derivations of one sentence, whose tokens have ``rows`` of words."""

    def __init__(
        self, grammar: RuleTables, table: Table, words: Words, rows: Array, cells: Cells, k: int
    ) -> None:
        self.grammar, self.table, self.words = grammar, table, words
        self.rows, self.cells, self.k = rows, cells, k
        self.n_words = len(rows)
        size = self.n_words, len(table.indptr) - 1
        self._left, self._right = np.full(size, -np.inf), np.full(size, -np.inf)

    def roots(self) -> Edges:
        """Symbols over all words."""
        symbols, logs = self.cells.at(0, self.n_words)
        known = symbols < len(self.table.root)
        symbols, logs = symbols[known], logs[known]
        scores = self.table.root[symbols] + logs
        kept = k_largest(scores, self.k)
        nothing = np.full(len(kept), NONE)
        return Edges(scores[kept], symbols[kept], symbols[kept], nothing, nothing)

    def edges(self, vertex: Vertex) -> Edges:
        """Rules of words or binary ones, and unary ones; of equals, these come last, so that what
        goes on by the first of them comes to an end."""
        _, i, j = vertex
        first = self._words(vertex) if j == i + 1 else self._joins(vertex)
        parts = zip(first, self._chains(vertex), strict=True)
        scores, codes, lefts, rights, middles = (np.concatenate(some) for some in parts)
        return edges_from(scores, codes, lefts, rights, middles, self.k)

    def _words(self, vertex: Vertex) -> Parts:
        symbol, i, _ = vertex
        begin, end = self.words.indptr[self.rows[i] :][:2]
        own = begin + np.flatnonzero(self.words.symbols[begin:end] == symbol)
        ahead = len(self.table.codes) + len(self.table.chains)
        nothing = np.full(len(own), NONE)
        return self.table.words[own], ahead + own, nothing, nothing, nothing

    def _joins(self, vertex: Vertex) -> Parts:
        symbol, i, j = vertex
        own = slice(*self.table.indptr[symbol : symbol + 2])
        left, right = self.table.lefts[own], self.table.rights[own]
        scores = (
            _looked_up(self._left, left, i + 1, j, *self.cells.lefts(i, j))
            + _looked_up(self._right, right, i + 1, j, *self.cells.rights(i, j))
            + self.table.joins[own]
        )
        kept = k_largest(scores.ravel(), self.k)
        middles, rules = np.unravel_index(kept, scores.shape)
        codes = self.table.codes[own][rules]
        return scores.ravel()[kept], codes, left[rules], right[rules], i + 1 + middles

    def _chains(self, vertex: Vertex) -> Parts:
        symbol, i, j = vertex
        chains = self.grammar.chains
        known = symbol < len(self.table.root)
        begin, end = chains.indptr[symbol : symbol + 2] if known else (0, 0)
        children, (symbols, logs) = chains.child[begin:end], self.cells.at(i, j)
        below = _looked_up(self._left, children, 0, 1, np.zeros(len(logs), int), symbols, logs)[0]
        nothing = np.full(len(children), NONE)
        codes = len(self.table.codes) + np.arange(begin, end)
        return self.table.chains[begin:end] + below, codes, children, nothing, nothing


def _looked_up(
    room: Array,
    wanted: Array,
    first: int,
    last: int,
    places: Array,
    symbols: Array,
    logs: Array,
) -> Array:
    """Logarithms (places from first to last, wanted symbols), −inf where there is none.

    The ``room`` is all −inf before and after.
    """
    room[places - first, symbols] = logs
    found: Array = room[: last - first, wanted]
    room[places - first, symbols] = -np.inf
    return found


def best_parses(
    grammar: RuleTables, words: Words, some: RuleText, k: int
) -> list[list[Derivation]]:
    """The k best derivations of each sentence, or all if there are fewer, as codes that
    `Binarised.tree` makes trees of; none of sentences that are impossible or empty.

    ``grammar``  one for best derivations
    """
    table, found = Table.of(grammar, words), list[list[Derivation]]()
    for s in range(len(some.indptr) - 1):
        begin, end = int(some.indptr[s]), int(some.indptr[s + 1])
        if begin == end:
            found.append([])
            continue
        room = room_for(s, s + 1, some.indptr, grammar)
        cells = Cells(rule_inside(s, some, grammar, words, room), end - begin)
        forest = RuleForest(grammar, table, words, words.rows[begin:end], cells, k)
        found.append(best_derivations(forest, k))
    return found
