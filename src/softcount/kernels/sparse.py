"""Sums and parts of sparse counts, whose indices are sorted and have no repeats."""

from __future__ import annotations

from softcount.core.types import Array
from softcount.kernels.jit import njit


@njit
def merge(
    left: Array, left_values: Array, right: Array, right_values: Array, index: Array, values: Array
) -> int:
    """Write the sum of two sparse vectors to ``index`` and ``values``; return its length.

    Which vector is ahead is as good as random, so that branches would be mispredicted: indices
    and values are selected instead.
    """
    i = j = k = 0
    while i < len(left) and j < len(right):
        a, b, x, y = left[i], right[j], left_values[i], right_values[j]
        index[k] = a if a <= b else b
        values[k] = x + y if a == b else (x if a < b else y)
        i += a <= b
        j += b <= a
        k += 1
    while i < len(left):
        index[k], values[k] = left[i], left_values[i]
        i, k = i + 1, k + 1
    while j < len(right):
        index[k], values[k] = right[j], right_values[j]
        j, k = j + 1, k + 1
    return k


@njit
def add_at(dense: Array, index: Array, values: Array) -> None:
    """Add a sparse vector to a dense one, in place."""
    for k in range(len(index)):
        dense[index[k]] += values[k]


@njit
def take(dense: Array, index: Array, out: Array) -> None:
    """Set ``out`` to ``dense[index]``, without a wider copy of the index."""
    for k in range(len(index)):
        out[k] = dense[index[k]]
