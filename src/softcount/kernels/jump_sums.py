"""Sums over all jumps within sentences: see `softcount.kernels.chain`.

Sentences of length ``lengths[n]`` have rows from ``rows[n]`` on: place 0, before the sentence, then
the places 1 to l of its words. ``ahead[middle + d]`` is the weight of a jump of d places,
``start[k]`` that of the jump from place 0 to place k.
"""

from __future__ import annotations

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def totals(
    lengths: Array, rows: Array, ahead: Array, middle: int, start: Array, out: Array
) -> None:
    """Z(h) = Σ_k w(k − h) of every row."""
    for n in range(len(lengths)):
        l, at = lengths[n], rows[n]
        for h in range(l + 1):
            total = 0.0
            for k in range(1, l + 1):
                total += start[k] if h == 0 else ahead[middle + k - h]
            out[at + h] = total


@njit
def spread(
    lengths: Array, rows: Array, shares: Array, middle: int, by_width: Array, starts: Array
) -> None:
    """Add each row's share to all jumps that it allows: the transpose of `totals`."""
    for n in range(len(lengths)):
        l, at = lengths[n], rows[n]
        for h in range(l + 1):
            share = shares[at + h]
            if share == 0.0:
                continue
            for k in range(1, l + 1):
                if h == 0:
                    starts[k] += share
                else:
                    by_width[middle + k - h] += share
