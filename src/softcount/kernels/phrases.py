"""Phrase pairs that an alignment allows: boxes that no link leaves."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.random import mix
from softcount.types import Array


@njit
def reaches(mine: Array, other: Array, low: Array, high: Array) -> None:
    """The first and the last place that each of my words is linked to."""
    for k in range(len(mine)):
        low[mine[k]] = min(low[mine[k]], other[k])
        high[mine[k]] = max(high[mine[k]], other[k])


@inline
def _closed(left: int, right: int, low: Array, high: Array, least: int, most: int) -> bool:
    """Whether no word from left to right is linked to one before least or behind most."""
    i = left
    while i <= right and low[i] >= least and high[i] <= most:
        i += 1
    return i > right


@inline
def _widen(
    count: int,
    first: int,
    last: int,
    box: tuple[int, int, int, int, int],
    high: Array,
    max_length: int,
    out: Array,
) -> int:
    """Count the least box and those that reach over words without links beside it."""
    n, left, right, start, end = box
    begin = left
    while begin > first and high[begin - 1] < 0 and right - begin + 1 < max_length:
        begin -= 1
    while begin <= left:
        stop = right
        while stop < last and stop - begin < max_length and (stop == right or high[stop] < 0):
            if count < len(out):
                out[count] = (n, begin, stop + 1, start, end + 1)
            count += 1
            stop += 1
        begin += 1
    return count


@njit
def boxes(
    indptr: Array,
    other_indptr: Array,
    low: Array,
    high: Array,
    other_low: Array,
    other_high: Array,
    max_length: int,
    out: Array,
) -> int:
    """How many boxes there are; as many as there is room for are written.

    Words are counted through the corpus: those of pair n are indptr[n] to indptr[n + 1].
    ``low`` and ``high`` say how far a word's links reach; without links they are huge and −1.
    A box is (pair, start, end, start on the other side, end on the other side), ends exclusive.

    For every stretch of the other side's words, the words that they are linked to span the least
    box; it grows over words without links (Och & Ney 2004).
    """
    count = 0
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        for start in range(other_indptr[n], other_indptr[n + 1]):
            left, right = last, -1
            for end in range(start, min(start + max_length, other_indptr[n + 1])):
                left = min(left, other_low[end])
                right = max(right, other_high[end])
                if right - left >= max_length:
                    break
                if right >= 0 and _closed(left, right, low, high, start, end):
                    box = (n, left, right, start, end)
                    count = _widen(count, first, last, box, high, max_length, out)
    return count


@njit
def fingerprints(
    start: Array, end: Array, other_start: Array, indptr: Array, other: Array, out: Array
) -> None:
    """For each box a number that tells its links, as seen from its corner, from other ones.

    The links of word i are other[indptr[i]] to other[indptr[i + 1]].
    """
    for b in range(len(start)):
        total = np.uint64(0)
        for i in range(start[b], end[b]):
            for k in range(indptr[i], indptr[i + 1]):
                place = (i - start[b]) * 2**32 + other[k] - other_start[b] + 1
                total += mix(np.uint64(place))
        out[b] = total
