"""Posteriors of the symbols of spans, ω ∘ β: see `softcount.kernels.inside_outside`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.chart_steps import Grammar
from softcount.kernels.inside_outside import Tally, Text, both_ways
from softcount.kernels.jit import njit
from softcount.kernels.span_pairs import Charts, cell
from softcount.types import Array


class Shares(NamedTuple):
    """p(symbol spans the words from start to end | sentence), one sentence after the other.

    ``borders``  those of the n-th sentence are from ``borders[n]`` to ``borders[n + 1]``
    """

    borders: Array
    starts: Array
    ends: Array
    symbols: Array
    shares: Array


@njit
def _listed(
    i: int, end: int, shift: int, least: float, beta: Array, omega: Array, used: int, into: Shares
) -> int:
    """Write down the symbols of one span; gives how many are written down then."""
    for k in range(len(beta)):
        share = beta[k] * omega[k]
        if share > least:
            into.starts[used], into.ends[used] = i, end
            into.symbols[used], into.shares[used] = shift + k, share
            used += 1
    return used


def shares_of(
    first: int,
    last: int,
    text: Text,
    grammar: Grammar,
    n_nonterminals: int,
    least: float,
    tally: Tally,
) -> Shares:
    """Sentences ``order[first]`` to ``order[last − 1]``, none of them empty, together.

    Spans go by their starts and then by their ends. Shares up to ``least`` are left out; the
    ``tally`` gets counts.
    """
    c, out = both_ways(first, last, text, grammar, tally, True)
    room = int((c.leaves * out.leaves > least).sum() + (c.spans * out.spans > least).sum())
    found = Shares(
        np.zeros(len(c.lengths) + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room),
    )
    _write_down(c, out, n_nonterminals, least, found)
    return found


@njit
def _write_down(c: Charts, out: Charts, n_nonterminals: int, least: float, found: Shares) -> None:
    """All spans of all sentences."""
    used = 0
    for s in range(len(c.lengths)):
        n = c.lengths[s]
        for i in range(n):
            at = c.leaf_of[s] + i
            given = (c.leaves[at], out.leaves[at], used, found)
            used = _listed(i, i + 1, n_nonterminals, least, *given)
            for w in range(2, n - i + 1):
                at = c.span_of[s] + cell(n, w, i)
                given = (c.spans[at], out.spans[at], used, found)
                used = _listed(i, i + w, 0, least, *given)
        found.borders[s + 1] = used
