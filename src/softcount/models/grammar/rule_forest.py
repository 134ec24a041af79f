"""Forests of grammars of rules: which rules each symbol over each span may best begin with."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.rule_charts import Chart, Grammar, Text, Words, cell, inside, room_for
from softcount.models.grammar.k_best import (
    NONE,
    Derivation,
    Edges,
    Vertex,
    best_derivations,
    edges_from,
    k_largest,
)
from softcount.models.grammar.rules import borders
from softcount.types import Array

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
    def of(cls, grammar: Grammar, words: Words) -> Table:
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
        begin, end = own.borders[cell(i, j, self.n) :][:2]
        return own.symbols[begin:end], own.logs[begin:end]

    def lefts(self, i: int, j: int) -> tuple[Array, Array, Array]:
        """Of all cells that begin at i and end before j: their ends, symbols, logarithms."""
        own = self.by_start
        return own.some(own.borders[cell(i, i + 1, self.n)], own.borders[cell(i, j, self.n)])

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
        self, grammar: Grammar, table: Table, words: Words, rows: Array, cells: Cells, k: int
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


def best_parses(grammar: Grammar, words: Words, some: Text, k: int) -> list[list[Derivation]]:
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
        cells = Cells(inside(s, some, grammar, words, room), end - begin)
        forest = RuleForest(grammar, table, words, words.rows[begin:end], cells, k)
        found.append(best_derivations(forest, k))
    return found
