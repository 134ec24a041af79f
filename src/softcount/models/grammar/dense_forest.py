"""Forests of dense grammars: what each symbol over each span may best consist of."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.inside_outside import Text, inside
from softcount.kernels.span_pairs import Charts, cell
from softcount.models.grammar.dense import ROOT, RULES, Shape
from softcount.models.grammar.k_best import (
    NONE,
    Derivation,
    Edges,
    Vertex,
    best_derivations,
    edges_from,
    k_largest,
)
from softcount.models.grammar.passes import Pass, text_of
from softcount.models.grammar.shards import Shard
from softcount.types import Array


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
