"""Compiled loops over links: lexicons, Model 1, posteriors of columns.

Which words occur together in sentence pairs, and where each word occurs.

Rows are source words e (the last row is the empty word, which occurs once in every pair); what a
row has are target words f. Everything walks row by row: the words that a row needs fit the cache,
and every row has one owner.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.core.types import Array
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import prefetch

AHEAD = 4
"""Places that lie so far ahead are asked for."""
WORD = 64
SHIFT, LOW = np.uint64(6), np.uint64(63)
HALVING = 16
"""A row that has so many times more entries than are wanted is searched by halving."""
SORT_STEP = 4
"""Sorting n numbers costs as much as reading SORT_STEP · n · log₂ n words of bits."""


@njit
def index_occurrences(tokens: Array, borders: Array, n_words: int) -> tuple[Array, Array, Array]:
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
def range_within(indptr: Array, pairs: Array, row: int, lower: int, upper: int) -> tuple[int, int]:
    """The places of a row's word that are in the pairs ``lower`` to ``upper``: from, to."""
    begin = indptr[row]
    own = pairs[begin : indptr[row + 1]]
    return begin + np.searchsorted(own, lower), begin + np.searchsorted(own, upper)


@njit
def count_links_before(indptr: Array, pairs: Array, borders: Array) -> Array:
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
def find_cooccurring(
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
def find_entries(
    indptr: Array, targets: Array, sources: Array, wanted: Array, found: Array
) -> None:
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
def match_entries(
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


# All links of some sentence pairs, from the table of translations and back to it.
#
# Pair p has a matrix of (l + 1) × m numbers from ``offsets[p]`` on, one for each source place (the
# empty word's is the last) and target place. Rows of the table are laid open one by one and their
# words' places walked through (see `softcount.align.kernels.links`): each row of a matrix has one
# owner.


@inline
def matrix_row(
    o: int, pairs: Array, places: Array, borders: Array, offsets: Array
) -> tuple[int, int, int]:
    """Occurrence o of a word: the first target word beside it, how many there are, their links."""
    p = pairs[o]
    start, m = borders[p], borders[p + 1] - borders[p]
    return start, m, offsets[p] + places[o] * m


@njit
def gather(
    first: int,
    last: int,
    lower: int,
    upper: int,
    rows: Array,
    targets: Array,
    table: Array,
    occurs: Array,
    pairs: Array,
    places: Array,
    tokens: Array,
    borders: Array,
    offsets: Array,
    n_words: int,
    links: Array,
) -> None:
    """t(f_j | e_i) of the words ``first`` to ``last``, wherever they are in pairs of the block.

    The block is that of pairs ``lower`` to ``upper``; ``links`` begins with the first of them.
    """
    open_row = np.zeros(n_words, table.dtype)
    origin = offsets[lower]
    for row in range(first, last):
        begin, end = range_within(occurs, pairs, row, lower, upper)
        if begin == end:
            continue
        for k in range(rows[row], rows[row + 1]):
            open_row[targets[k]] = table[k]
        for o in range(begin, end):
            start, m, at = matrix_row(o, pairs, places, borders, offsets)
            for j in range(m):
                links[at - origin + j] = open_row[tokens[start + j]]


@njit
def scatter(
    first: int,
    last: int,
    lower: int,
    upper: int,
    rows: Array,
    targets: Array,
    occurs: Array,
    pairs: Array,
    places: Array,
    tokens: Array,
    borders: Array,
    offsets: Array,
    n_words: int,
    links: Array,
    counts: Array,
) -> None:
    """Add the links of the words ``first`` to ``last`` to the table of counts."""
    mass = np.zeros(n_words)
    origin = offsets[lower]
    for row in range(first, last):
        begin, end = range_within(occurs, pairs, row, lower, upper)
        if begin == end:
            continue
        for o in range(begin, end):
            if o + AHEAD < end:
                start, m, at = matrix_row(o + AHEAD, pairs, places, borders, offsets)
                prefetch(tokens, start, m)
                prefetch(links, at - origin, m)
            start, m, at = matrix_row(o, pairs, places, borders, offsets)
            for j in range(m):
                mass[tokens[start + j]] += links[at - origin + j]
        for k in range(rows[row], rows[row + 1]):
            counts[k] += mass[targets[k]]
            mass[targets[k]] = 0.0


@njit
def apply_constraints(
    lower: int,
    upper: int,
    known: Array,
    known_sources: Array,
    known_targets: Array,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    links: Array,
) -> None:
    """Set to zero what the known links of pairs ``lower`` to ``upper`` rule out."""
    for p in range(lower, upper):
        l, m = source_lengths[p - lower], target_lengths[p - lower]
        at = offsets[p - lower]
        k = known[p]
        while k < known[p + 1]:
            j, begin = known_targets[k], k
            while k < known[p + 1] and known_targets[k] == j:
                k += 1
            for i in range(l + 1):
                if not np.any(known_sources[begin:k] == i):
                    links[at + i * m + j] = 0.0


@njit
def count_above(source_lengths: Array, offsets: Array, links: Array, level: float) -> Array:
    """How many links of each pair are above a level, the empty word left out."""
    found = np.zeros(len(source_lengths), np.int64)
    for p in range(len(source_lengths)):
        n = offsets[p + 1] - offsets[p]
        for k in range(offsets[p], offsets[p + 1] - n // (source_lengths[p] + 1)):
            found[p] += links[k] > level
    return found


@njit
def take_above(
    source_lengths: Array,
    offsets: Array,
    links: Array,
    level: float,
    sources: Array,
    targets: Array,
    values: Array,
) -> None:
    """The links above a level, pair after pair, by source and target place."""
    at = 0
    for p in range(len(source_lengths)):
        m = (offsets[p + 1] - offsets[p]) // (source_lengths[p] + 1)
        for k in range(offsets[p], offsets[p + 1] - m):
            if links[k] > level:
                sources[at] = (k - offsets[p]) // m
                targets[at] = (k - offsets[p]) % m
                values[at] = links[k]
                at += 1


# Alignments in which every target word chooses its source word for itself.
#
# A pair's links are a matrix (l + 1, m), source places by target places (see
# `softcount.align.kernels.links`), here with p(f_j, a_j = i) in it: every column is a distribution.


LEAST = np.finfo(np.float64).tiny
"""A sum below this counts as 0: 1 / sum would be no number."""


@njit
def multiply_positions(
    first: int, last: int, offsets: Array, at: Array, places: Array, links: Array
) -> None:
    """Multiply pairs ``first`` to ``last`` by their d(i | j), which begin at ``places[at[p]]``."""
    for p in range(first, last):
        shift = at[p] - offsets[p]
        for k in range(offsets[p], offsets[p + 1]):
            links[k] *= places[k + shift]


@njit
def normalise_columns(
    first: int, last: int, widths: Array, offsets: Array, links: Array, logs: Array
) -> None:
    """Joint probabilities become posteriors; ``logs`` gets Σ_j log Σ_i (−inf: impossible).

    ``widths`` are the numbers m of target words.
    """
    sums = np.empty(max(1, widths.max()))
    for p in range(first, last):
        m = widths[p]
        own = links[offsets[p] : offsets[p + 1]]
        sums[:m] = 0.0
        for at in range(0, len(own), max(m, 1)):
            for j in range(m):
                sums[j] += own[at + j]
        logs[p] = 0.0
        for j in range(m):
            logs[p] += math.log(sums[j]) if sums[j] >= LEAST else -np.inf
            sums[j] = 1.0 / sums[j] if sums[j] >= LEAST else 0.0
        for at in range(0, len(own), max(m, 1)):
            for j in range(m):
                own[at + j] *= sums[j]


@njit
def choose_best(
    first: int, last: int, widths: Array, offsets: Array, links: Array, logs: Array
) -> None:
    """The best source place of every word gets 1 (the first among equals), the others 0.

    ``logs`` gets Σ_j log max_i.
    """
    for p in range(first, last):
        m, logs[p] = widths[p], 0.0
        own = links[offsets[p] : offsets[p + 1]]
        for j in range(m):
            best = j
            for at in range(j, len(own), m):
                best = at if own[at] > own[best] else best
            logs[p] += math.log(own[best]) if own[best] > 0.0 else -np.inf
            for at in range(j, len(own), m):
                own[at] = 1.0 if at == best else 0.0


@njit
def draw_columns(
    first: int,
    last: int,
    widths: Array,
    offsets: Array,
    links: Array,
    numbers: Array,
    seed: Any,
    samples: int,
) -> None:
    """Posteriors become shares of so many draws, which depend on the seed and the pair's number."""
    stream = np.empty(1, np.uint64)
    for p in range(first, last):
        m = widths[p]
        own = links[offsets[p] : offsets[p + 1]]
        stream[0] = item_stream(seed, numbers[p])
        often = np.zeros(len(own))
        for j in range(m):
            for _ in range(samples):
                left, chosen = uniform(stream, 0), j
                for at in range(j, len(own), m):
                    if own[at] > 0.0:
                        chosen = at
                        left -= own[at]
                        if left < 0.0:
                            break
                often[chosen] += 1.0
        for k in range(len(own)):
            own[k] = often[k] / samples


@njit
def add_positions(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    offsets: Array,
    at: Array,
    links: Array,
    counts: Array,
) -> None:
    """Add the links of pairs of one shape; group g of pairs has one owner."""
    for g in range(first, last):
        for n in range(groups[g], groups[g + 1]):
            p = members[n]
            shift = at[p] - offsets[p]
            for k in range(offsets[p], offsets[p + 1]):
                counts[k + shift] += links[k]


# IBM Model 1 without ever writing down a link.
#
#     c(f | e) = t(f | e) Σ over places of e, of f beside it: 1 / Σ_{e'} t(f | e')
#
# Row after row of the table t is laid open in an array with a place for every target word; then the
# pairs in which the row's word occurs are walked through (see `softcount.align.kernels.links`). The
# first pass adds up the denominators of all target words, the second one the counts.


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
        begin, end = range_within(occurs, pairs, row, first, last)
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
def expected_counts(
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
    inverse: Array,
    out: Array,
) -> None:
    """Expected counts of the rows ``first`` to ``last``; ``inverse`` are 1 / denominator."""
    mass = np.zeros(n_words)
    for row in range(first, last):
        begin, end = occurs[row], occurs[row + 1]
        for o in range(begin, end):
            if o + AHEAD < end:
                _ask_for(pairs[o + AHEAD], borders, tokens, inverse)
            p = pairs[o]
            for t in range(borders[p], borders[p + 1]):
                mass[tokens[t]] += inverse[t]
        for k in range(rows[row], rows[row + 1]):
            out[k] = table[k] * mass[targets[k]]
            mass[targets[k]] = 0.0


# Both directions of the same pairs: links (l + 1, m) and, backward, (m + 1, l).


@njit
def multiply_directions(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
) -> None:
    """Both become their product; what is left of a word goes to the empty word."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for j in range(m):
            here[l * m + j] = 1.0
        for i in range(l):
            left = 1.0
            for j in range(m):
                both = here[i * m + j] * there[j * l + i]
                here[i * m + j] = both
                there[j * l + i] = both
                left -= both
                here[l * m + j] -= both
            there[m * l + i] = max(left, 0.0)
        for j in range(m):
            here[l * m + j] = max(here[l * m + j], 0.0)


@njit
def average_directions(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
    geometric: bool,
) -> None:
    """The geometric or the arithmetic mean of both directions, in ``links``."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for i in range(l):
            for j in range(m):
                one, other = here[i * m + j], there[j * l + i]
                here[i * m + j] = (one * other) ** 0.5 if geometric else (one + other) / 2.0
