"""Which words occur together in sentence pairs, and where each word occurs.

Rows are source words e (the last row is the empty word, which occurs once in every pair); what a
row has are target words f. Everything walks row by row: the words that a row needs fit the cache,
and every row has one owner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.types import Array

WORD = 64
SHIFT, LOW = np.uint64(6), np.uint64(63)
HALVING = 16
"""A row that has so many times more entries than are wanted is searched by halving."""
SORT_STEP = 4
"""Sorting n numbers costs as much as reading SORT_STEP · n · log₂ n words of bits."""


@njit
def occurrences(tokens: Array, borders: Array, n_words: int) -> tuple[Array, Array, Array]:
    """Where each word occurs: row borders, the pair and the place in it, in the order of pairs.

    The last row is that of the empty word, which stands behind the last place of every pair.
    """
    n_pairs = len(borders) - 1
    indptr = np.zeros(n_words + 2, np.int64)
    for token in tokens:
        indptr[token + 1] += 1
    indptr[n_words + 1] = n_pairs
    for row in range(n_words + 1):
        indptr[row + 1] += indptr[row]
    pairs = np.empty(indptr[-1], np.int32)
    places = np.empty(indptr[-1], np.int32)
    free = indptr.copy()
    for p in range(n_pairs):
        start, end = borders[p], borders[p + 1]
        for t in range(start, end):
            at = free[tokens[t]]
            free[tokens[t]] = at + 1
            pairs[at] = p
            places[at] = t - start
        pairs[free[n_words]] = p
        places[free[n_words]] = end - start
        free[n_words] += 1
    return indptr, pairs, places


@njit
def within(indptr: Array, pairs: Array, row: int, lower: int, upper: int) -> tuple[int, int]:
    """The places of a row's word that are in the pairs ``lower`` to ``upper``: from, to."""
    begin = indptr[row]
    own = pairs[begin : indptr[row + 1]]
    return begin + np.searchsorted(own, lower), begin + np.searchsorted(own, upper)


@njit
def links_before(indptr: Array, pairs: Array, borders: Array) -> Array:
    """How many links the words before each row have; one more for all of them."""
    before = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        before[row + 1] = before[row]
        for o in range(indptr[row], indptr[row + 1]):
            before[row + 1] += borders[pairs[o] + 1] - borders[pairs[o]]
    return before


@inline
def _log2(n: Any) -> int:
    bits = 0
    while n > 0:
        n >>= 1
        bits += 1
    return bits


@njit
def cooccurring(
    first: int,
    last: int,
    occurs: Array,
    pairs: Array,
    tokens: Array,
    borders: Array,
    n_words: int,
    out: Array,
    lengths: Array,
) -> int:
    """The target words that occur with rows ``first`` to ``last``, sorted, row after row.

    ``out`` gets them, and must have room for one more than there are links; ``lengths`` gets the
    rows' lengths. Answers how many entries there are. Words that were seen are bits: few enough to
    stay in the cache, and already in order when a row is long.
    """
    seen = np.zeros(n_words // WORD + 1, np.uint64)
    one, used = np.uint64(1), 0
    for row in range(first, last):
        begin = used
        for o in range(occurs[row], occurs[row + 1]):
            p = pairs[o]
            for t in range(borders[p], borders[p + 1]):
                f = np.uint64(tokens[t])
                word = seen[f >> SHIFT]
                out[used] = tokens[t]  # branches would be guessed wrong too often
                used += 1 - int((word >> (f & LOW)) & one)
                seen[f >> SHIFT] = word | (one << (f & LOW))
        n = used - begin
        lengths[row] = n
        if SORT_STEP * n * _log2(n) < len(seen):
            for k in range(begin, used):
                seen[out[k] // WORD] = 0
            out[begin:used].sort()
        else:
            _unpack(seen, out, begin)
    return used


@njit
def _unpack(seen: Array, out: Array, at: int) -> None:
    """The bits as numbers, in order; none is left."""
    zero, one = np.uint64(0), np.uint64(1)
    for w in range(len(seen)):
        bits = seen[w]
        f = w * WORD
        while bits != zero:
            if bits & np.uint64(0xFF) == zero:
                bits >>= np.uint64(8)
                f += 8
                continue
            if bits & one:
                out[at] = f
                at += 1
            bits >>= one
            f += 1
        seen[w] = zero


@njit
def find(indptr: Array, targets: Array, sources: Array, wanted: Array, found: Array) -> None:
    """The entry of each pair of words by halving; what is not there is left as it is."""
    for n in range(len(sources)):
        low, high = indptr[sources[n]], indptr[sources[n] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if targets[middle] < wanted[n]:
                low = middle + 1
            else:
                high = middle
        if low < end and targets[low] == wanted[n]:
            found[n] = low


@njit
def match(
    indptr: Array, targets: Array, rows: Array, own: Array, own_targets: Array, found: Array
) -> None:
    """Where the entries of some rows are in a larger lexicon; what is not there is left as it is.

    Row r is that row ``rows[r]``, or none of it (−1); both are sorted by target word.
    """
    for r in range(len(rows)):
        if rows[r] < 0:
            continue
        at, end = indptr[rows[r]], indptr[rows[r] + 1]
        few = HALVING * (own[r + 1] - own[r]) < end - at
        for k in range(own[r], own[r + 1]):
            wanted = own_targets[k]
            high = end
            while few and at < high:
                middle = (at + high) // 2
                if targets[middle] < wanted:
                    at = middle + 1
                else:
                    high = middle
            while at < end and targets[at] < wanted:
                at += 1
            if at < end and targets[at] == wanted:
                found[k] = at
