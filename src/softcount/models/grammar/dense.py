"""Tables of grammars in Chomsky normal form as kernels want them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.chart_steps import Grammar, Pairs
from softcount.kernels.inside_outside import Tally
from softcount.kernels.packs import padded, width
from softcount.kernels.products import SIDE
from softcount.types import Array, Params

ROOT, RULES, WORDS = "root", "rules", "words"


class Shape:
    """K nonterminals and T preterminals: which symbols make up each kind of pairs."""

    def __init__(self, n_nonterminals: int, n_preterminals: int) -> None:
        self.k, self.t = n_nonterminals, n_preterminals
        high, low = slice(0, self.k), slice(self.k, self.k + self.t)
        self.kinds = ((low, low), (low, high), (high, low), (high, high))

    @property
    def n_symbols(self) -> int:
        return self.k + self.t

    def grammar(self, params: Params, dtype: Any, temper: float = 1.0) -> Grammar:
        """Rules by kinds of pairs; tables may be raised to a power."""
        root = np.asarray(params[ROOT])[0] ** temper
        every = (np.asarray(params[RULES]) ** temper).reshape(self.k, *[self.n_symbols] * 2)
        ends = (padded(root[: self.k], dtype), padded(root[self.k :], dtype))
        return Grammar(*ends, *(_pairs(every[:, b, c], dtype) for b, c in self.kinds))

    def tally(self, logs: Array, n_rows: int, into: Array) -> Tally:
        """Zeros."""
        high, low = width(self.k), width(self.t)
        sizes = [(-(-(b.stop - b.start) // SIDE) * SIDE, c) for b, c in self.kinds]
        rules = [np.zeros((high, left * width(c.stop - c.start))) for left, c in sizes]
        ends = (np.zeros(high), np.zeros(low), np.zeros((n_rows, low)))
        return Tally(logs, *ends, into, *rules)

    def counts(self, tally: Tally, params: Params) -> tuple[Array, Array, Array]:
        """Expected roots (1, K + T), rules (K, (K + T)²), and words (rows, T)."""
        root = np.concatenate([tally.root[: self.k], tally.single[: self.t]])[None]
        rules = np.zeros((self.k, self.n_symbols, self.n_symbols))
        found = (tally.leaves, tally.leaf_first, tally.leaf_last, tally.spans)
        for (b, c), some in zip(self.kinds, found, strict=True):
            n_left, n_right = b.stop - b.start, c.stop - c.start
            wide = some[: self.k].reshape(self.k, -1, width(n_right))
            rules[:, b, c] = wide[:, :n_left, :n_right]
        return root, rules.reshape(self.k, -1) * np.asarray(params[RULES]), tally.words[:, : self.t]


def _pairs(rules: Array, dtype: Any) -> Pairs:
    """Rules (K, left, right)."""
    k, left, right = rules.shape
    rows, wide = -(-left // SIDE) * SIDE, width(right)
    full = np.zeros((width(k), rows, wide), dtype)
    full[:k, :left, :right] = rules
    up = np.ascontiguousarray(full[:, :left].reshape(len(full), -1).T)
    return Pairs(up, np.ascontiguousarray(full[:k].reshape(k, -1)), wide)
