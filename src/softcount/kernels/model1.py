"""IBM Model 1 without ever writing down a link.

    c(f | e) = t(f | e) Σ over places of e, of f beside it: 1 / Σ_{e'} t(f | e')

Row after row of the table t is laid open in an array with a place for every target word; then the
pairs in which the row's word occurs are walked through (see `softcount.kernels.lexicon`). The first
pass adds up the denominators of all target words, the second one the counts.
"""

from __future__ import annotations

import math

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.lexicon import within
from softcount.kernels.prefetch import AHEAD, prefetch
from softcount.types import Array


@inline
def _ask_for(p: int, borders: Array, tokens: Array, numbers: Array) -> None:
    """The target words of pair p, and a number of each."""
    first, count = borders[p], borders[p + 1] - borders[p]
    prefetch(tokens, first, count)
    prefetch(numbers, first, count)


@njit
def denominators(
    first: int,
    last: int,
    rows: Array,
    targets: Array,
    table: Array,
    occurs: Array,
    pairs: Array,
    tokens: Array,
    borders: Array,
    n_words: int,
    sums: Array,
) -> None:
    """Σ_e t(f_j | e) for every target word of the pairs ``first`` to ``last``."""
    open_row = np.empty(n_words, table.dtype)
    sums[borders[first] : borders[last]] = 0.0
    for row in range(len(occurs) - 1):
        begin, end = within(occurs, pairs, row, first, last)
        if begin == end:
            continue
        for k in range(rows[row], rows[row + 1]):
            open_row[targets[k]] = table[k]
        for o in range(begin, end):
            if o + AHEAD < end:
                _ask_for(pairs[o + AHEAD], borders, tokens, sums)
            p = pairs[o]
            for t in range(borders[p], borders[p + 1]):
                sums[t] += open_row[tokens[t]]


@njit
def invert(first: int, last: int, borders: Array, sums: Array, logs: Array) -> None:
    """Denominators become 1 / denominator; ``logs`` gets Σ_j log of each pair (−inf: one is 0).

    What is so small that 1 / denominator is no number counts as 0.
    """
    for p in range(first, last):
        logs[p] = 0.0
        for t in range(borders[p], borders[p + 1]):
            value = sums[t]
            sums[t] = 1.0 / value if value > 0.0 else np.inf
            if sums[t] == np.inf:
                sums[t], logs[p] = 0.0, -np.inf
            else:
                logs[p] += math.log(value)


@njit
def counts(
    first: int,
    last: int,
    origin: int,
    rows: Array,
    targets: Array,
    table: Array,
    occurs: Array,
    pairs: Array,
    tokens: Array,
    borders: Array,
    n_words: int,
    shares: Array,
    out: Array,
) -> None:
    """Expected counts of the rows ``origin + first`` to ``origin + last``.

    ``shares`` are 1 / denominator; ``out`` begins with row ``origin``.
    """
    mass = np.zeros(n_words)
    for row in range(origin + first, origin + last):
        begin, end = occurs[row], occurs[row + 1]
        for o in range(begin, end):
            if o + AHEAD < end:
                _ask_for(pairs[o + AHEAD], borders, tokens, shares)
            p = pairs[o]
            for t in range(borders[p], borders[p + 1]):
                mass[tokens[t]] += shares[t]
        for k in range(rows[row], rows[row + 1]):
            out[k - rows[origin]] = table[k] * mass[targets[k]]
            mass[targets[k]] = 0.0
