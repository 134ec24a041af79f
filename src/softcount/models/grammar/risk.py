"""Trees of minimum risk: those of which most brackets are expected to be right.

With p(A spans i to j | sentence), the labelled brackets of a tree that are expected to be right are
the sum of their posteriors. The largest sum of a binary tree is

    f(i, j) = max_A p(A spans i to j) + max_k (f(i, k) + f(k, j))

(Goodman 1996, "Parsing algorithms and metrics": labelled recall). What no tree of the grammar has
is a step on the way, and no bracket: it is left out, which gives nodes of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from softcount.corpus.trees import Tree
from softcount.kernels.splits import best_splits
from softcount.models.grammar.rules import Rules
from softcount.types import Array

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

        >>> from softcount.models.grammar.rule_text import from_text
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
