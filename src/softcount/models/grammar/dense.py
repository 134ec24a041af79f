"""Tables of grammars in Chomsky normal form as kernels want them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.chart_steps import Beside, Grammar, Pairs, padded_rows
from softcount.kernels.inside_outside import Tally
from softcount.kernels.packs import padded, width
from softcount.kernels.table_products import panels, pitch
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
        """Rules by what is on their right side; tables may be raised to a power."""
        root = np.asarray(params[ROOT])[0] ** temper
        every = (np.asarray(params[RULES]) ** temper).reshape(self.k, *[self.n_symbols] * 2)
        ends = (padded(root[: self.k], dtype), padded(root[self.k :], dtype))
        leaves, first, last, spans = (every[:, b, c] for b, c in self.kinds)
        beside = (_beside(first.transpose(1, 2, 0), dtype), _beside(last.T, dtype))
        pairs = (_pairs(leaves, dtype), _pairs(spans, dtype))
        return Grammar(*ends, pairs[0], *beside, pairs[1], every.astype(dtype))

    def tally(self, logs: Array, n_rows: int, into: Array) -> Tally:
        """Zeros."""
        (k, high), (t, low) = ((padded_rows(n), width(n)) for n in (self.k, self.t))
        ends = (np.zeros(high), np.zeros(low), np.zeros((n_rows, low)))
        beside = (t, pitch(k, high))
        sizes = ((k, pitch(t, low)), beside, beside, (k, pitch(k, high)))
        return Tally(logs, *ends, into, *(np.zeros(size) for size in sizes))

    def counts(self, tally: Tally, params: Params) -> tuple[Array, Array, Array]:
        """Expected roots (1, K + T), rules (K, (K + T)²), and words (rows, T)."""
        root = np.concatenate([tally.root[: self.k], tally.single[: self.t]])[None]
        rules = np.zeros((self.k, self.n_symbols, self.n_symbols))
        high, low = width(self.k), width(self.t)
        parts = (
            _tables(tally.leaves, low),
            _tables(tally.leaf_first, high).transpose(2, 0, 1),
            _tables(tally.leaf_last, high).T,
            _tables(tally.spans, high),
        )
        for (b, c), some in zip(self.kinds, parts, strict=True):
            rules[:, b, c] = some[: self.k, : b.stop - b.start, : c.stop - c.start]
        return root, rules.reshape(self.k, -1) * np.asarray(params[RULES]), tally.words[:, : self.t]


def _tables(found: Array, wide: int) -> Array:
    """What was counted, (rows, tables); what is behind a table is nothing."""
    n = found.shape[1] // wide * wide
    return found[:, :n].reshape(len(found), -1, wide)


def _pairs(rules: Array, dtype: Any) -> Pairs:
    """Rules (K, left, right)."""
    k, left, right = rules.shape
    full = np.zeros((width(k), padded_rows(left), width(right)), dtype)
    full[:k, :left, :right] = rules
    up = full[:, :left].reshape(len(full), -1).T
    return Pairs(panels(up), panels(full[:k].reshape(k, -1)))


def _beside(rules: Array, dtype: Any) -> Beside:
    """Rules (leaf, span, K)."""
    t, k, _ = rules.shape
    full = np.zeros((width(t), padded_rows(k), width(k)), dtype)
    full[:t, :k, :k] = rules
    flat = full.reshape(len(full), -1)
    return Beside(panels(flat[:t]), panels(flat.T))
