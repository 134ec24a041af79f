"""Compiled kernels of `softcount.align`, in the order in which an E-step uses them.

- the lexicon: which words co-occur, and where each word occurs
- the links of a block of pairs, gathered from the translation table and scattered back to it
- models in which target words are aligned independently, and IBM Model 1
- positions near the diagonal
- the HMM, a chain of jumps: forward–backward, Viterbi, sampling
- both directions at once

Rows are source words e (the last row is the empty word, which occurs once in every pair); the
entries of a row are target words f. Lexicon and links are processed row by row: the data of one row
fit the cache, and each row is written by one thread only.

Kernels unpack all fields of a tuple before they loop: accessing fields inside loops costs more than
the loops themselves, because of reference counting of arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import (
    LARGE,
    MUCH,
    Array,
    Counts,
    FloatArray,
    IntArray,
    SparseCounts,
)
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import draw_weighted, item_stream, uniform
from softcount.kernels.vectors import (
    SHIFTS_AT_ONCE,
    WIDTH,
    prefetch,
    shifted_dots,
    weighted_max,
    weighted_sum,
    weighted_sum_two,
)

AHEAD = 4
"""Prefetch distance, in occurrences."""
WORD = 64
"""Bits per element of a bit set of words."""
SHIFT, LOW = np.uint64(6), np.uint64(63)
HALF_STEP = 2.0**-53 / 1.5
"""Half a step of a grid, 2^(p − 53), as a fraction of 1.5 · 2^p; rounded down, not up."""
HALVING = 16
"""A row with more than this many times the entries looked up is searched by bisection."""
SORT_STEP = 4
"""Sorting n numbers costs as much as reading SORT_STEP · n · log₂ n elements of a bit set."""


class Occurrences(NamedTuple):
    """The occurrences of each source word, in the order of pairs.

    The last row is that of the empty word, whose position is after the last word of every pair.

    ``indptr``     (source words + 2,) int64: the occurrences of word e are entries ``indptr[e]`` to
                   ``indptr[e + 1]`` of the other two
    ``pairs``      (occurrences,) int32: the index of the pair
    ``positions``  (occurrences,) int32: the position in the source sentence
    """

    indptr: IntArray
    pairs: IntArray
    positions: IntArray


@njit
def fill_occurrences(tokens: IntArray, borders: IntArray, null: bool, found: Occurrences) -> None:
    """Find the occurrences of each word; ``found`` has room for them, and zeros for ``indptr``."""
    indptr, pairs, positions = found
    n_words, n_pairs = len(indptr) - 2, len(borders) - 1
    for token in tokens:
        indptr[token + 1] += 1
    indptr[n_words + 1] = n_pairs if null else 0
    for row in range(n_words + 1):
        indptr[row + 1] += indptr[row]
    free = indptr.copy()
    for p in range(n_pairs):
        start, end = borders[p], borders[p + 1]
        for t in range(start, end):
            at = free[tokens[t]]
            free[tokens[t]] = at + 1
            pairs[at] = p
            positions[at] = t - start
        if null:
            pairs[free[n_words]] = p
            positions[free[n_words]] = end - start
            free[n_words] += 1


@njit
def range_within(indptr: Array, pairs: Array, row: int, lower: int, upper: int) -> tuple[int, int]:
    """Return the range of occurrences of a row's word in the pairs ``lower`` to ``upper``."""
    begin = indptr[row]
    own = pairs[begin : indptr[row + 1]]
    return begin + np.searchsorted(own, lower), begin + np.searchsorted(own, upper)


@njit
def count_links_before(indptr: IntArray, pairs: IntArray, borders: IntArray) -> IntArray:
    """Compute the cumulative number of links of the rows before each row; the total is last."""
    before = np.zeros(len(indptr), np.int64)
    for row in range(len(indptr) - 1):
        before[row + 1] = before[row]
        for o in range(indptr[row], indptr[row + 1]):
            before[row + 1] += borders[pairs[o] + 1] - borders[pairs[o]]
    return before


@njit
def find_cooccurring(
    first: int,
    last: int,
    occurs: IntArray,
    pairs: IntArray,
    tokens: IntArray,
    borders: IntArray,
    n_words: int,
    out: IntArray,
    lengths: IntArray,
) -> int:
    """Collect the target words that co-occur with rows ``first`` to ``last``, sorted in each row.

    They are written to ``out``, whose size must be at least the number of links plus one, and the
    row lengths to ``lengths``. Returns the number of entries. The words seen are kept in a bit set:
    it is small enough for the cache, and yields sorted words when a row is long.
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
                out[used] = tokens[t]  # without a branch, which would be mispredicted too often
                used += 1 - int((word >> (f & LOW)) & one)
                seen[f >> SHIFT] = word | (one << (f & LOW))
        n = used - begin
        lengths[row] = n
        n_bits = 0  # the bit length of n, about log₂ n
        while n >> n_bits > 0:
            n_bits += 1
        if SORT_STEP * n * n_bits < len(seen):
            for k in range(begin, used):
                seen[out[k] // WORD] = 0
            out[begin:used].sort()
        else:
            _unpack(seen, out, begin)
    return used


@njit
def _unpack(seen: IntArray, out: IntArray, at: int) -> None:
    """Write the elements of a bit set to ``out``, in order, and clear it."""
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
def count_targets(indptr: IntArray, targets: IntArray, lengths: IntArray) -> None:
    """Count in how many rows of a lexicon each target word is."""
    for k in range(indptr[0], indptr[-1]):
        lengths[targets[k]] += 1


@njit
def transpose(indptr: IntArray, targets: IntArray, free: IntArray, out: IntArray) -> None:
    """Write the rows that each target word is in, in order, from ``free`` on, which moves on."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            f = targets[k]
            out[free[f]] = row
            free[f] += 1


@njit
def transpose_counts(
    indptr: IntArray, targets: IntArray, counts: FloatArray, free: IntArray, out: FloatArray
) -> None:
    """Write the counts of entries where `transpose` writes their rows."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            f = targets[k]
            out[free[f]] = counts[k]
            free[f] += 1


@njit
def unite_rows(
    indptr: IntArray,
    targets: IntArray,
    other_indptr: IntArray,
    other_targets: IntArray,
    out: IntArray,
    lengths: IntArray,
) -> int:
    """Write the union of two lexicons to ``out``, and its row lengths; return its size.

    Branches would be mispredicted too often: see `softcount.kernels.sparse.merge`.
    """
    used = 0
    for row in range(len(lengths)):
        begin = used
        i, last = indptr[row], indptr[row + 1]
        j, other_last = other_indptr[row], other_indptr[row + 1]
        while i < last and j < other_last:
            f, other = targets[i], other_targets[j]
            out[used] = f if f <= other else other
            i += f <= other
            j += other <= f
            used += 1
        while i < last:
            out[used] = targets[i]
            i, used = i + 1, used + 1
        while j < other_last:
            out[used] = other_targets[j]
            j, used = j + 1, used + 1
        lengths[row] = used - begin
    return used


@njit
def match_entries(
    indptr: Array,
    targets: Array,
    n_targets: int,
    rows: Array,
    own: Array,
    own_targets: Array,
    found: Array,
) -> None:
    """Find the entries of some rows in a larger lexicon; ``found`` is unchanged for missing ones.

    Row r is row ``rows[r]`` of the larger lexicon (−1: missing); both are sorted by target word.
    """
    open_row = np.full(n_targets, -1, found.dtype)
    for r in range(len(rows)):
        if rows[r] < 0:
            continue
        begin, end = indptr[rows[r]], indptr[rows[r] + 1]
        if HALVING * (own[r + 1] - own[r]) < end - begin:
            at = begin
            for k in range(own[r], own[r + 1]):
                at += np.searchsorted(targets[at:end], own_targets[k])
                if at < end and targets[at] == own_targets[k]:
                    found[k] = at
            continue
        for at in range(begin, end):
            open_row[targets[at]] = at
        for k in range(own[r], own[r + 1]):
            if own_targets[k] < n_targets:  # what an earlier row has left is not in this range
                at = open_row[own_targets[k]]
                if begin <= at < end:
                    found[k] = at


@njit
def find_used(
    first: int,
    last: int,
    rows: tuple[IntArray, IntArray],
    occurs: IntArray,
    pairs: IntArray,
    tokens: IntArray,
    borders: IntArray,
    n_targets: int,
    out: IntArray,
    lengths: IntArray,
) -> int:
    """Find the entries of a lexicon's rows ``first`` to ``last`` whose words co-occur in pairs.

    Their positions are written to ``out``, in ascending order, and their number in each row to
    ``lengths``. Returns the number of all. The lexicon has all words that co-occur: so the words
    seen need not be collected, only looked for, which takes a third of the time of
    `find_cooccurring` and `match_entries`.
    """
    indptr, targets = rows
    seen = np.zeros(n_targets, np.uint8)
    used = 0
    for row in range(first, last):
        before, begin, end = used, indptr[row], indptr[row + 1]
        n = 0
        for o in range(occurs[row], occurs[row + 1]):
            n += borders[pairs[o] + 1] - borders[pairs[o]]
        if HALVING * n < end - begin:
            for o in range(occurs[row], occurs[row + 1]):
                for t in range(borders[pairs[o]], borders[pairs[o] + 1]):
                    out[used] = begin + np.searchsorted(targets[begin:end], tokens[t])
                    used += 1
            out[before:used].sort()
            distinct = before
            for k in range(before, used):
                if k == before or out[k] != out[k - 1]:
                    out[distinct] = out[k]
                    distinct += 1
            used = distinct
        else:
            for o in range(occurs[row], occurs[row + 1]):
                for t in range(borders[pairs[o]], borders[pairs[o] + 1]):
                    seen[tokens[t]] = 1
            for k in range(begin, end):
                out[used] = k  # without a branch, which would be mispredicted too often
                used += seen[targets[k]]
                seen[targets[k]] = 0
        lengths[row] = used - before
    return used


# The links of sentence pairs, gathered from the translation table and scattered back to it.
#
# Pair p has a matrix of (l + 1) × m numbers from ``offsets[p]`` on, one for each source position
# (the empty word's is the last) and target position. Each row of the table is expanded to a dense
# array over the target vocabulary, which is then used in all pairs where the row's word occurs:
# each row of a matrix is written by one thread only.


class ShardArrays(NamedTuple):
    """The arrays of a shard that kernels need.

    ``rows``       (source words + 2,) where the entries of each row of the lexicon begin
    ``targets``    (entries,) target words of these entries
    ``occurs``     (source words + 2,) where the occurrences of each source word begin
    ``pairs``      (occurrences,) the pair of each
    ``positions``  (occurrences,) the position in its source sentence
    ``tokens``     (target tokens,) target words of all pairs
    ``borders``    (pairs + 1,) where the target sentence of each pair begins
    ``offsets``    (pairs + 1,) where the links of each pair begin
    ``n_targets``  the number of target words
    """

    rows: IntArray
    targets: IntArray
    occurs: IntArray
    pairs: IntArray
    positions: IntArray
    tokens: IntArray
    borders: IntArray
    offsets: IntArray
    n_targets: int


@inline
def matrix_row(
    o: int, pairs: IntArray, positions: IntArray, borders: IntArray, offsets: IntArray
) -> tuple[int, int, int]:
    """Return the first target token of occurrence o's pair, their number, and where links begin."""
    p = pairs[o]
    start, m = borders[p], borders[p + 1] - borders[p]
    return start, m, offsets[p] + positions[o] * m


@njit
def gather(
    first: int, last: int, lower: int, upper: int, table: Array, shard: ShardArrays, links: Array
) -> None:
    """Set links to t(f_j | e_i), for source words ``first`` to ``last``, in the pairs of a block.

    The block consists of pairs ``lower`` to ``upper``; ``links`` starts at its first pair.
    """
    rows, targets, occurs, pairs, positions, tokens, borders, offsets, n_targets = shard
    open_row = np.zeros(n_targets, table.dtype)
    origin = offsets[lower]
    for row in range(first, last):
        begin, end = range_within(occurs, pairs, row, lower, upper)
        if begin == end:
            continue
        for k in range(rows[row], rows[row + 1]):
            open_row[targets[k]] = table[k]
        for o in range(begin, end):
            start, m, at = matrix_row(o, pairs, positions, borders, offsets)
            for j in range(m):
                links[at - origin + j] = open_row[tokens[start + j]]


@njit
def scatter(
    first: int,
    last: int,
    lower: int,
    upper: int,
    shard: ShardArrays,
    links: Array,
    grid: Array,
    counts: Array,
) -> None:
    """Add the links of source words ``first`` to ``last`` to the counts of their entries.

    ``grid``  (target words,) rounds the sums of the block: see `make_grid`
    """
    rows, targets, occurs, pairs, positions, tokens, borders, offsets, n_targets = shard
    mass = np.zeros(n_targets)
    origin = offsets[lower]
    for row in range(first, last):
        begin, end = range_within(occurs, pairs, row, lower, upper)
        if begin == end:
            continue
        for o in range(begin, end):
            if o + AHEAD < end:
                start, m, at = matrix_row(o + AHEAD, pairs, positions, borders, offsets)
                prefetch(tokens, start, m)
                prefetch(links, at - origin, m)
            start, m, at = matrix_row(o, pairs, positions, borders, offsets)
            for j in range(m):
                mass[tokens[start + j]] += links[at - origin + j]
        for k in range(rows[row], rows[row + 1]):
            f = targets[k]
            counts[k] += (mass[f] + HALF_STEP * grid[f] + grid[f]) - grid[f]
            mass[f] = 0.0


# Sums that do not depend on their order.
#
# A target word is aligned once wherever it occurs, so that no count of it exceeds the number n of
# its occurrences. Multiples of 2^(p − 52), for 2^(p − 2) ≥ n, are added without rounding: their sum
# is the same in any order, in one place or in many. To add 1.5 · 2^p to a number, and to take it
# away again, rounds the number to such a multiple; with half a step more it is rounded up, so that
# nothing above 0 becomes 0.


def make_grid(counts: IntArray) -> FloatArray:
    """Return the number that rounds what is added to the counts of each target word.

    ``counts``  (target words,) how often each occurs

    >>> make_grid(np.array([1, 3]))
    array([ 6., 24.], dtype=float32)
    """
    powers = np.ceil(np.log2(np.maximum(counts, 1))) + 2.0
    grid: FloatArray = np.float32(1.5) * np.exp2(powers).astype(np.float32)
    return grid


@njit
def apply_constraints(
    lower: int,
    upper: int,
    constraints: tuple[IntArray, IntArray, IntArray],
    sizes: tuple[IntArray, IntArray],
    offsets: IntArray,
    links: FloatArray,
) -> None:
    """Set the links that are ruled out by the known links of pairs ``lower`` to ``upper`` to 0."""
    known, known_sources, known_targets = constraints
    source_lengths, target_lengths = sizes
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


# Models in which target words are aligned independently: the links of a pair are p(f_j, a_j = i),
# and each column becomes a distribution.


LEAST = np.finfo(np.float64).tiny
"""A sum below this counts as 0, because 1 / sum would overflow."""


@njit
def multiply_positions(
    first: int, last: int, offsets: IntArray, at: IntArray, positions: FloatArray, links: FloatArray
) -> None:
    """Multiply the links of pairs ``first`` to ``last`` by d(i | j), at ``positions[at[p]]``."""
    for p in range(first, last):
        shift = at[p] - offsets[p]
        for k in range(offsets[p], offsets[p + 1]):
            links[k] *= positions[k + shift]


@njit
def normalise_columns(
    first: int, last: int, widths: IntArray, offsets: IntArray, links: FloatArray, logs: FloatArray
) -> None:
    """Replace joint probabilities by posteriors; set ``logs`` to Σ_j log Σ_i (−inf: impossible).

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
    first: int, last: int, widths: IntArray, offsets: IntArray, links: FloatArray, logs: FloatArray
) -> None:
    """Set the best source position of every target word to 1 (the first, if tied), others to 0.

    ``logs`` is set to Σ_j log max_i.
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
    widths: IntArray,
    offsets: IntArray,
    links: FloatArray,
    numbers: IntArray,
    seed: Any,
    samples: int,
) -> None:
    """Replace posteriors by relative frequencies in draws.

    The draws depend only on the seed and the pair's number.
    """
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
    groups: IntArray,
    members: IntArray,
    offsets: IntArray,
    at: IntArray,
    links: FloatArray,
    counts: FloatArray,
) -> None:
    """Sum the links of pairs of the same shape; each group g is summed by one thread."""
    for g in range(first, last):
        for n in range(groups[g], groups[g + 1]):
            p = members[n]
            shift = at[p] - offsets[p]
            for k in range(offsets[p], offsets[p + 1]):
                counts[k + shift] += links[k]


# IBM Model 1, without storing links.
#
#     c(f | e) = t(f | e) Σ over all co-occurrences of e and f: 1 / Σ_{e'} t(f | e')
#
# The first pass sums the denominators of all target tokens, the second one the counts.


@inline
def _ask_for(p: int, borders: IntArray, tokens: IntArray, numbers: FloatArray) -> None:
    """Prefetch the target tokens of pair p, and their numbers."""
    first, count = borders[p], borders[p + 1] - borders[p]
    prefetch(tokens, first, count)
    prefetch(numbers, first, count)


@njit
def denominators(first: int, last: int, table: Array, shard: ShardArrays, sums: Array) -> None:
    """Compute Σ_e t(f_j | e) for every target token of the pairs ``first`` to ``last``."""
    rows, targets, occurs, pairs, _, tokens, borders, _, n_targets = shard
    open_row = np.empty(n_targets, table.dtype)
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
def invert(first: int, last: int, borders: IntArray, sums: FloatArray, logs: FloatArray) -> None:
    """Replace denominators by their inverses; set ``logs`` to Σ_j log of each pair.

    A denominator that is so small that its inverse overflows counts as 0, and gives −inf.
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
    table: Array,
    shard: ShardArrays,
    inverse: Array,
    grid: Array,
    counts: Array,
) -> None:
    """Add the expected counts of rows ``first`` to ``last``, rounded as by `scatter`.

    ``inverse``  1 / denominator of each target token
    """
    rows, targets, occurs, pairs, _, tokens, borders, _, n_targets = shard
    mass = np.zeros(n_targets)
    for row in range(first, last):
        begin, end = occurs[row], occurs[row + 1]
        for o in range(begin, end):
            if o + AHEAD < end:
                _ask_for(pairs[o + AHEAD], borders, tokens, inverse)
            p = pairs[o]
            for t in range(borders[p], borders[p + 1]):
                mass[tokens[t]] += inverse[t]
        if begin == end:
            continue
        for k in range(rows[row], rows[row + 1]):
            f = targets[k]
            counts[k] += (table[k] * mass[f] + HALF_STEP * grid[f] + grid[f]) - grid[f]
            mass[f] = 0.0


# Positions near the diagonal (Dyer, Chahuneau & Smith 2013).
#
#     d(i | j, l, m) = (1 − p₀) exp(λ h(i, j)) / Z_λ(j),   h(i, j) = −|(i + ½) / l − (j + ½) / m|
#
# and p₀ for the empty word. A shape is a pair of lengths (l, m).


@inline
def nearness(i: int, j: int, l: int, m: int) -> float:
    """Compute h(i, j): 0 on the diagonal, negative off it."""
    return -abs((i + 0.5) / l - (j + 0.5) / m)


class SentenceShapes(NamedTuple):
    """The distinct pairs of lengths (l, m), and where the (l + 1) × m cells of each begin.

    ``heights``  (shapes,) source lengths
    ``widths``   (shapes,) target lengths
    ``begins``   (shapes + 1,) where the cells of each begin
    """

    heights: IntArray
    widths: IntArray
    begins: IntArray

    @classmethod
    def of(cls, l: IntArray, m: IntArray) -> SentenceShapes:
        """Collect the distinct pairs of lengths, sorted."""
        longest = int(m.max(initial=0)) + 1
        heights, widths = np.divmod(np.unique(l.astype(np.int64) * longest + m), longest)
        return cls(heights, widths, np.concatenate([[0], np.cumsum((heights + 1) * widths)]))

    @property
    def n_cells(self) -> int:
        return int(self.begins[-1])

    def numbers(self, l: IntArray, m: IntArray) -> IntArray:
        """Return the index of the shape of each pair of lengths; −1: not among them."""
        longest = max(int(self.widths.max(initial=0)), int(m.max(initial=0))) + 1
        keys, wanted = self.heights * longest + self.widths, l * longest + m
        at = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -1)[at] == wanted, at, -1)

    def take(
        self, other: SentenceShapes, cells: FloatArray, otherwise: float | FloatArray = 0.0
    ) -> FloatArray:
        """Convert cells from the layout of other shapes; ``otherwise``: for missing shapes."""
        found = np.zeros(self.n_cells) + otherwise
        for own, number in enumerate(other.numbers(self.heights, self.widths).tolist()):
            if number >= 0:
                cut = slice(other.begins[number], other.begins[number + 1])
                found[self.begins[own] : self.begins[own + 1]] = cells[cut]
        return found

    def add(self, cells: FloatArray, other: SentenceShapes, more: FloatArray) -> None:
        """Add cells of some of these shapes, in their own layout, to ``cells``."""
        for number, own in enumerate(self.numbers(other.heights, other.widths).tolist()):
            cut = slice(other.begins[number], other.begins[number + 1])
            cells[self.begins[own] : self.begins[own + 1]] += more[cut]

    def scatter(self, other: SentenceShapes, cells: FloatArray) -> Counts:
        """Convert counts from the layout of other shapes, leaving out those that are new here.

        They are sparse if they touch little of a large table.
        """
        numbers = self.numbers(other.heights, other.widths)
        if len(numbers) == len(self.heights) and (numbers >= 0).all():
            return cells
        known, sizes = numbers >= 0, np.diff(other.begins)
        touched = int(sizes[known].sum())
        if self.n_cells < LARGE or touched > MUCH * self.n_cells:
            return self.take(other, cells)
        chosen = np.repeat(known, sizes)
        shifts = np.repeat(self.begins[numbers[known]] - other.begins[:-1][known], sizes[known])
        return SparseCounts(np.flatnonzero(chosen) + shifts, cells[chosen], self.n_cells)


@njit
def fill_diagonal(shapes: SentenceShapes, tension: float, p0: float) -> FloatArray:
    """Compute d of all shapes, (l + 1, m) each; the empty word is last, and certain if l = 0."""
    heights, widths, begins = shapes
    out = np.zeros(begins[-1])
    for s in range(len(heights)):
        l, m, at = heights[s], widths[s], begins[s]
        for j in range(m):
            total = 0.0
            for i in range(l):
                out[at + i * m + j] = math.exp(tension * nearness(i, j, l, m))
                total += out[at + i * m + j]
            for i in range(l):
                out[at + i * m + j] *= (1.0 - p0) / total
            out[at + l * m + j] = p0 if l > 0 else 1.0
    return out


@njit
def summarise(shapes: SentenceShapes, counts: FloatArray) -> tuple[float, FloatArray]:
    """Compute Σ counts · h, and the count of non-NULL links of each target position, by shape."""
    heights, widths, begins = shapes
    total, often, row = 0.0, np.zeros(widths.sum()), 0
    for s in range(len(heights)):
        l, m, at = heights[s], widths[s], begins[s]
        for j in range(m):
            n = 0.0
            for i in range(l):
                c = counts[at + i * m + j]
                n += c
                total += c * nearness(i, j, l, m)
            often[row] = n
            row += 1
    return total, often


@njit
def moments(shapes: SentenceShapes, often: Array, tension: float) -> tuple[float, float, float]:
    """Compute Σ_r n_r · (log Z_λ, mean of h, variance of h), with n_r from `summarise`."""
    heights, widths, _ = shapes
    logs = means = variances = 0.0
    row = -1
    for s in range(len(heights)):
        l, m = heights[s], widths[s]
        for j in range(m):
            row += 1
            n = often[row]
            if n == 0.0:
                continue
            total = first = second = 0.0
            for i in range(l):
                h = nearness(i, j, l, m)
                weight = math.exp(tension * h)
                total += weight
                first += weight * h
                second += weight * h * h
            mean = first / total
            logs += n * math.log(total)
            means += n * mean
            variances += n * max(second / total - mean * mean, 0.0)
    return logs, means, variances


# The HMM alignment model: a Markov chain of jumps (Vogel, Ney & Tillmann 1996).
#
# The source positions of successive target words form a chain: p(a_j = k | a_{j−1} = h, l) is the
# probability of a jump of k − h words, w(k − h) / Z(h), where Z sums over all positions of the
# sentence. A target word is aligned to the empty word with probability p₀; the chain then keeps its
# position, from which the next jump starts (Och & Ney 2003). Position 0 is before the sentence and
# has separate jump weights; position k is source word k − 1. With emissions E, jumps
# A(h, k) = w(k − h) z(h) and z(h) = (1 − p₀) / Z(h),
#
#     γ_j(k) = p(f_1..f_j, last position k),    β_j(k) = p(f_{j+1}..f_m | last position k)
#
# both scaled by the same c_j, so that they stay near 1 whatever the length.
#
# Pairs of similar lengths are processed in lockstep, one per SIMD lane. In a lane with fewer source
# words than others, the missing ones are impossible; in one with fewer target words, the missing
# ones are aligned to the empty word with certainty. Neither changes any result. Sampling processes
# one pair at a time.
#
# In sums over jumps, sentences of length l have l + 1 rows: position 0, then the positions 1 to l.
# ``ahead[middle + d]`` is the weight of a jump of d positions, ``start[k]`` that of a jump from
# position 0 to position k.


class JumpRows(NamedTuple):
    """The positions that jumps start from: l + 1 rows for each sentence length l.

    ``lengths``  (lengths,) the distinct sentence lengths, sorted
    ``begins``   (lengths + 1,) where the rows of each begin
    """

    lengths: IntArray
    begins: IntArray

    @classmethod
    def of(cls, lengths: IntArray) -> JumpRows:
        each = np.unique(lengths).astype(np.int64)
        return cls(each, np.concatenate([[0], np.cumsum(each + 1)]))

    def take(self, other: JumpRows, values: FloatArray) -> FloatArray:
        """Convert values from the layout of other rows to this one; 0 for missing lengths."""
        found = np.zeros(self.begins[-1])
        _, own, others = np.intersect1d(self.lengths, other.lengths, return_indices=True)
        for here, there in zip(own, others, strict=True):
            cut = slice(other.begins[there], other.begins[there + 1])
            found[self.begins[here] : self.begins[here + 1]] = values[cut]
        return found


@njit
def sum_jumps(rows: JumpRows, ahead: FloatArray, middle: int, start: FloatArray) -> FloatArray:
    """Compute Z(h) = Σ_k w(k − h) of every row."""
    lengths, begins = rows
    out = np.empty(begins[-1])
    for n in range(len(lengths)):
        l, at = lengths[n], begins[n]
        for h in range(l + 1):
            total = 0.0
            for k in range(1, l + 1):
                total += start[k] if h == 0 else ahead[middle + k - h]
            out[at + h] = total
    return out


@njit
def spread_over_jumps(rows: JumpRows, shares: Array, middle: int) -> tuple[Array, Array]:
    """Sum ``shares`` over all rows that allow each jump: the transpose of `sum_jumps`.

    Returns the sums by width, and by position for jumps from the start.
    """
    lengths, begins = rows
    by_width, starts = np.zeros(2 * middle + 1), np.zeros(middle + 1)
    for n in range(len(lengths)):
        l, at = lengths[n], begins[n]
        for h in range(l + 1):
            share = shares[at + h]
            if share == 0.0:
                continue
            for k in range(1, l + 1):
                if h == 0:
                    starts[k] += share
                else:
                    by_width[middle + k - h] += share
    return by_width, starts


class JumpWeights(NamedTuple):
    """Jump weights w(d) = ``ahead[middle + d]`` = ``back[middle − d]``, and normalisers.

    ``start[k]`` is the weight of a jump from the start to position k.

    ``z`` has l + 1 numbers for every sentence length l, from ``rows[l]`` on.
    """

    ahead: FloatArray
    back: FloatArray
    start: FloatArray
    middle: int
    z: FloatArray
    rows: IntArray
    p0: Any


class PairGroups(NamedTuple):
    """Pairs of a block, grouped by length: the pairs of a group are processed in lockstep.

    ``begins``   (groups + 1,) group g is ``members[begins[g]:begins[g + 1]]``
    ``members``  (pairs,) indices of pairs within the block
    ``sources``  (pairs + 1,) where the source sentence of each pair begins
    ``targets``  (pairs + 1,) where its target sentence begins
    ``offsets``  (pairs + 1,) where its links begin
    """

    begins: IntArray
    members: IntArray
    sources: IntArray
    targets: IntArray
    offsets: IntArray


class JumpCounts(NamedTuple):
    """Expected counts of jumps.

    ``widths``  (2 · longest + 1,) by width, from −longest on
    ``starts``  (longest + 1,) from the start, by position
    ``left``    by sentence length and starting position, in the layout of `JumpWeights.rows`
    """

    widths: FloatArray
    starts: FloatArray
    left: FloatArray


class ChainWorkspace(NamedTuple):
    """Workspace for one group of pairs: matrices with one column per lane."""

    emit: FloatArray
    pred: FloatArray
    gamma: FloatArray
    beta: FloatArray
    next: FloatArray
    z: FloatArray
    left: FloatArray
    first: FloatArray
    scales: FloatArray
    here: FloatArray
    there: FloatArray


@njit
def allocate(first: int, last: int, groups: PairGroups, links: FloatArray) -> FloatArray:
    """Allocate memory that suffices for any of the groups ``first`` to ``last``, one at a time.

    It has the dtype of the links.
    """
    begins, members, sources, targets, _ = groups
    most = 0
    for g in range(first, last):
        own = members[begins[g] : begins[g + 1]]
        l = m = 0
        for p in own:
            l = max(l, sources[p + 1] - sources[p])
            m = max(m, targets[p + 1] - targets[p])
        lanes = -(-len(own) // WIDTH) * WIDTH
        most = max(most, ((3 * m + 8) * (l + 1) + 2 * SHIFTS_AT_ONCE + m) * lanes)
    return np.empty(most, links.dtype)


@njit
def _part(memory: FloatArray, at: int, rows: int, lanes: int) -> FloatArray:
    return memory[at * lanes : (at + rows) * lanes].reshape((rows, lanes))


@njit
def load(
    memory: FloatArray, own: IntArray, groups: PairGroups, jumps: JumpWeights, links: FloatArray
) -> tuple[IntArray, ChainWorkspace]:
    """Return the lengths (l, m) of a group's pairs, a row per lane, and a workspace.

    The emissions (l + 1, m) of each pair are copied to its lane, for each target word the empty
    word first. Lanes without a pair have lengths (0, 0).
    """
    sources, targets, offsets = groups.sources, groups.targets, groups.offsets
    lanes = -(-len(own) // WIDTH) * WIDTH
    sizes = np.zeros((lanes, 2), np.int64)
    for b in range(len(own)):
        sizes[b, 0] = sources[own[b] + 1] - sources[own[b]]
        sizes[b, 1] = targets[own[b] + 1] - targets[own[b]]
    l, m = sizes[:, 0].max(), sizes[:, 1].max()
    n = l + 1
    links_end = 2 * m * n
    vectors = links_end + (m + 1) * n
    at = ChainWorkspace(
        _part(memory, 0, m * n, lanes),
        _part(memory, m * n, m * n, lanes),
        _part(memory, links_end, (m + 1) * n, lanes),
        _part(memory, vectors, n, lanes),
        _part(memory, vectors + n, n, lanes),
        _part(memory, vectors + 2 * n, n, lanes),
        _part(memory, vectors + 3 * n, n, lanes),
        _part(memory, vectors + 4 * n, n, lanes),
        _part(memory, vectors + 5 * n, m, lanes),
        _part(memory, vectors + 5 * n + m, l + SHIFTS_AT_ONCE, lanes),
        _part(memory, vectors + 6 * n + m + SHIFTS_AT_ONCE - 1, l + SHIFTS_AT_ONCE, lanes),
    )
    begins = np.zeros(lanes, np.int64)
    begins[: len(own)] = offsets[own]
    all_l, all_m = sizes[:, 0].min(), sizes[:, 1].min()
    for k in range(n - 1):
        for j in range(m):
            row = at.emit[j * n + k + 1]
            if k < all_l and j < all_m:
                for b in range(lanes):
                    row[b] = links[begins[b] + j]
            else:
                for b in range(lanes):
                    row[b] = links[begins[b] + j] if k < sizes[b, 0] and j < sizes[b, 1] else 0.0
        for b in range(lanes):
            begins[b] += sizes[b, 1] if k < sizes[b, 0] else 0
    for b in range(lanes):
        own_l, own_m = sizes[b]
        for j in range(m):
            at.emit[j * n, b] = jumps.p0 * links[begins[b] + j] if j < own_m else 1.0
        for k in range(n):
            at.z[k, b] = jumps.z[jumps.rows[own_l] + k] if k <= own_l else 0.0
            at.left[k, b] = 0.0
    return sizes, at


@njit
def store(
    own: IntArray,
    sizes: IntArray,
    offsets: IntArray,
    jumps: JumpWeights,
    at: ChainWorkspace,
    links: FloatArray,
    logs: FloatArray,
    left: FloatArray,
) -> None:
    """Copy each pair's posteriors from its lane; set its log p, and add its jumps by start."""
    n, lanes = len(at.z), len(own)
    begins = offsets[own]
    all_l, all_m = sizes[:lanes, 0].min(), sizes[:lanes, 1].min()
    for k in range(n - 1):
        for j in range(len(at.scales)):
            row = at.pred[j * n + k + 1]
            if k < all_l and j < all_m:
                for b in range(lanes):
                    links[begins[b] + j] = row[b]
            else:
                for b in range(lanes):
                    if k < sizes[b, 0] and j < sizes[b, 1]:
                        links[begins[b] + j] = row[b]
        for b in range(lanes):
            begins[b] += sizes[b, 1] if k < sizes[b, 0] else 0
    for b in range(lanes):
        l, m = sizes[b]
        logs[own[b]] = 0.0
        for j in range(m):
            links[begins[b] + j] = at.pred[j * n, b]
            c = at.scales[j, b]
            logs[own[b]] += math.log(c) if c > 0.0 else -np.inf
        for k in range(l + 1):
            left[jumps.rows[l] + k] += at.left[k, b]


@njit
def slide(
    into: Array, at: int, weights: Array, middle: int, rows: Array, first: int, n: int
) -> None:
    """Compute ``into[at + k] = Σ_h weights[middle + h − k] · rows[first + h]`` for h, k < n."""
    for k in range(0, n - 1, 2):
        weighted_sum_two(into, at + k, weights, middle - k, rows, first, n)
    if n % 2:
        weighted_sum(into, at + n - 1, weights, middle - n + 1, rows, first, n)


@njit
def forward(jumps: JumpWeights, at: ChainWorkspace) -> None:
    """Compute γ, Σ_h γ(h) A(h, ·) in ``pred``, and c_j (0: impossible), for all target words."""
    n, lanes = at.z.shape
    emit, pred, gamma, scaled, scales = at.emit, at.pred, at.gamma, at.next, at.scales
    # a word below this probability counts as impossible, because 1 / probability would overflow
    inverse, nothing = np.empty(lanes, emit.dtype), np.finfo(emit.dtype).tiny
    gamma[:n] = 0.0
    gamma[0] = 1.0
    for j in range(len(scales)):
        now, new = j * n, (j + 1) * n
        for k in range(n):
            for b in range(lanes):
                scaled[k, b] = gamma[now + k, b] * at.z[k, b]
        for b in range(lanes):
            gamma[new, b] = gamma[now, b] * emit[now, b]
            scales[j, b] = gamma[new, b]
        slide(pred, now + 1, jumps.back, jumps.middle, scaled, 1, n - 1)
        for k in range(1, n):
            first = jumps.start[k]
            for b in range(lanes):
                pred[now + k, b] += first * scaled[0, b]
                both = pred[now + k, b] * emit[now + k, b] + gamma[now + k, b] * emit[now, b]
                gamma[new + k, b] = both
                scales[j, b] += both
        for b in range(lanes):
            scales[j, b] = scales[j, b] if scales[j, b] >= nothing else 0.0
            inverse[b] = 1.0 / scales[j, b] if scales[j, b] > 0.0 else 1.0
        for k in range(n):
            for b in range(lanes):
                gamma[new + k, b] *= inverse[b]


@njit
def backward(jumps: JumpWeights, at: ChainWorkspace) -> None:
    """Compute posteriors in ``pred``, and expected jumps by starting position in ``left``.

    ``emit`` becomes E β / c and ``gamma`` becomes γ z, for `count_jumps`.
    """
    n, lanes = at.z.shape
    emit, pred, gamma, beta, later = at.emit, at.pred, at.gamma, at.beta, at.next
    inverse, one = np.empty(lanes, emit.dtype), emit.dtype.type(1.0)
    # β of positions that are almost never reached can overflow, and is clipped
    much = emit.dtype.type(1e28 if emit.itemsize == 4 else 1e100)
    beta[:] = 1.0
    for j in range(len(at.scales) - 1, -1, -1):
        now = j * n
        for b in range(lanes):
            inverse[b] = 1.0 / at.scales[j, b] if at.scales[j, b] > 0.0 else 1.0
            emit[now, b] *= inverse[b]
            pred[now, b] = gamma[now, b] * beta[0, b] * emit[now, b]
        for k in range(1, n):
            for b in range(lanes):
                emit[now + k, b] = min(emit[now + k, b] * inverse[b] * beta[k, b], much)
                pred[now + k, b] = min(pred[now + k, b] * emit[now + k, b], one)
                pred[now, b] += gamma[now + k, b] * beta[k, b] * emit[now, b]
        for b in range(lanes):
            pred[now, b] = min(pred[now, b], one)
        weighted_sum(later, 0, jumps.start, 1, emit, now + 1, n - 1)
        slide(later, 1, jumps.ahead, jumps.middle, emit, now + 1, n - 1)
        for k in range(n):
            for b in range(lanes):
                jumped = at.z[k, b] * later[k, b]
                at.left[k, b] += gamma[now + k, b] * jumped
                gamma[now + k, b] *= at.z[k, b]
                beta[k, b] = min(beta[k, b] * emit[now, b] + jumped, much)


@njit
def count_jumps(jumps: JumpWeights, at: ChainWorkspace, widths: Array, starts: Array) -> None:
    """Add the expected jumps, by width, and by position from the start; call after `backward`."""
    n, lanes = at.z.shape
    l, here, there, met = n - 1, at.here, at.there, np.empty(SHIFTS_AT_ONCE, at.here.dtype)
    here[l:] = 0.0
    there[l:] = 0.0
    at.first[:] = 0.0
    for j in range(len(at.scales)):
        now = j * n
        for k in range(1, n):
            for b in range(lanes):
                here[k - 1, b] = at.gamma[now + k, b]
                there[k - 1, b] = at.emit[now + k, b]
                at.first[k, b] += at.gamma[now, b] * at.emit[now + k, b]
        for d in range(0, l, SHIFTS_AT_ONCE):
            shifted_dots(met, here, there, d, l - d)
            for q in range(min(SHIFTS_AT_ONCE, l - d)):
                widths[jumps.middle + d + q] += met[q] * jumps.ahead[jumps.middle + d + q]
        for d in range(1, l, SHIFTS_AT_ONCE):
            shifted_dots(met, there, here, d, l - d)
            for q in range(min(SHIFTS_AT_ONCE, l - d)):
                widths[jumps.middle - d - q] += met[q] * jumps.ahead[jumps.middle - d - q]
    for k in range(1, n):
        starts[k] += at.first[k].sum() * jumps.start[k]


@njit
def forward_backward(
    first: int,
    last: int,
    groups: PairGroups,
    jumps: JumpWeights,
    links: FloatArray,
    logs: FloatArray,
    counts: JumpCounts,
    counting: bool,
) -> None:
    """Replace emissions of the groups ``first`` to ``last`` by posteriors, in place.

    ``logs`` is set to log p(target | source) of every pair; if ``counting``, expected jumps are
    added to ``counts``.
    """
    memory = allocate(first, last, groups, links)
    for g in range(first, last):
        own = groups.members[groups.begins[g] : groups.begins[g + 1]]
        sizes, at = load(memory, own, groups, jumps, links)
        forward(jumps, at)
        backward(jumps, at)
        if counting:
            count_jumps(jumps, at, counts.widths, counts.starts)
        store(own, sizes, groups.offsets, jumps, at, links, logs, counts.left)


@inline
def jump(jumps: JumpWeights, l: int, h: int, k: int) -> Any:
    """Compute A(h, k), from position h to position k ≥ 1 of a sentence of l words."""
    weight = jumps.start[k] if h == 0 else jumps.ahead[jumps.middle + k - h]
    return weight * jumps.z[jumps.rows[l] + h]


@njit
def _viterbi_forward(jumps: JumpWeights, at: ChainWorkspace) -> None:
    """Run `forward` with maxima in place of sums; c_j, too, is a maximum."""
    n, lanes = at.z.shape
    emit, pred, gamma, scaled, scales = at.emit, at.pred, at.gamma, at.next, at.scales
    gamma[:n] = 0.0
    gamma[0] = 1.0
    for j in range(len(scales)):
        now, new = j * n, (j + 1) * n
        for k in range(n):
            for b in range(lanes):
                scaled[k, b] = gamma[now + k, b] * at.z[k, b]
        for b in range(lanes):
            gamma[new, b] = gamma[now, b] * emit[now, b]
            scales[j, b] = gamma[new, b]
        for k in range(1, n):
            weighted_max(pred, now + k, jumps.back, jumps.middle - k + 1, scaled, 1, n - 1)
            first = jumps.start[k]
            for b in range(lanes):
                pred[now + k, b] = max(pred[now + k, b], first * scaled[0, b]) * emit[now + k, b]
                best = max(pred[now + k, b], gamma[now + k, b] * emit[now, b])
                gamma[new + k, b] = best
                scales[j, b] = max(scales[j, b], best)
        for k in range(n):
            for b in range(lanes):
                gamma[new + k, b] /= scales[j, b] if scales[j, b] > 0.0 else 1.0


@njit
def _trace_back(
    jumps: JumpWeights, at: ChainWorkspace, lane: int, l: int, m: int, path: IntArray
) -> float:
    """Trace the best path of one lane, 0 for the empty word; return its log p."""
    n, total = len(at.z), 0.0
    best = 0
    for k in range(1, l + 1):
        if at.gamma[m * n + k, lane] > at.gamma[m * n + best, lane]:
            best = k
    for j in range(m - 1, -1, -1):
        c = at.scales[j, lane]
        total += math.log(c) if c > 0.0 else -np.inf
        now = j * n
        if (
            best == 0
            or at.pred[now + best, lane] <= at.gamma[now + best, lane] * at.emit[now, lane]
        ):
            path[j] = 0
            continue
        path[j], origin, value = best, 0, -1.0
        for h in range(l + 1):
            reached = at.gamma[now + h, lane] * jump(jumps, l, h, best)
            if reached > value:
                origin, value = h, reached
        best = origin
    return total


@njit
def viterbi(
    first: int,
    last: int,
    groups: PairGroups,
    jumps: JumpWeights,
    links: FloatArray,
    paths: IntArray,
    path_at: IntArray,
    logs: FloatArray,
) -> None:
    """Set the links of each pair's best path to 1, others to 0; set ``logs`` to log p(f, â)."""
    memory, offsets = allocate(first, last, groups, links), groups.offsets
    for g in range(first, last):
        own = groups.members[groups.begins[g] : groups.begins[g + 1]]
        sizes, at = load(memory, own, groups, jumps, links)
        _viterbi_forward(jumps, at)
        for lane in range(len(own)):
            p = own[lane]
            l, m = sizes[lane]
            path = paths[path_at[p] : path_at[p] + m]
            logs[p] = _trace_back(jumps, at, lane, l, m, path)
            begin = offsets[p]
            links[begin : offsets[p + 1]] = 0.0
            for j in range(m):
                links[begin + (path[j] - 1 if path[j] > 0 else l) * m + j] = 1.0


@njit
def sample_paths(
    first: int,
    last: int,
    sizes: tuple[IntArray, IntArray],
    offsets: IntArray,
    links: FloatArray,
    jumps: JumpWeights,
    numbers: IntArray,
    seed: Any,
    samples: int,
    paths: IntArray,
    path_at: IntArray,
) -> None:
    """Replace emissions by relative frequencies in sampled paths, which are stored in ``paths``.

    Forward filtering, backward sampling. Draws depend only on the seed and the pair's number.
    """
    heights, widths = sizes
    stream = np.empty(1, np.uint64)
    for p in range(first, last):
        l, m = heights[p], widths[p]
        own = links[offsets[p] : offsets[p + 1]]
        stream[0] = item_stream(seed, numbers[p])
        # γ_j(k), scaled to sum to 1 for every j; all zero from an impossible word on
        gamma = np.zeros((m + 1, l + 1))
        gamma[0, 0] = 1.0
        for j in range(m):
            empty = jumps.p0 * own[l * m + j]
            for k in range(l + 1):
                gamma[j + 1, k] = gamma[j, k] * empty
            for k in range(1, l + 1):
                reached = 0.0
                for h in range(l + 1):
                    reached += gamma[j, h] * jump(jumps, l, h, k)
                gamma[j + 1, k] += reached * own[(k - 1) * m + j]
            total = gamma[j + 1].sum()
            gamma[j + 1] /= total if total > 0.0 else 1.0
        # sample paths from the last word back to the first
        often, weights = np.zeros(len(own)), np.empty(l + 1)
        for s in range(samples):
            path = paths[path_at[p] + s * m : path_at[p] + (s + 1) * m]
            k = draw_weighted(gamma[m], stream)
            for j in range(m - 1, -1, -1):
                stayed = gamma[j, k] * jumps.p0 * own[l * m + j]
                total = stayed
                for h in range(l + 1):
                    weights[h] = 0.0
                    if k > 0:
                        weights[h] = gamma[j, h] * jump(jumps, l, h, k) * own[(k - 1) * m + j]
                    total += weights[h]
                if uniform(stream, 0) * total < stayed or total == stayed:
                    path[j] = 0
                else:
                    path[j] = k
                    k = draw_weighted(weights, stream)
            for j in range(m):
                often[(path[j] - 1 if path[j] > 0 else l) * m + j] += 1.0 / samples
        own[:] = often


@njit
def count_path_jumps(
    sizes: tuple[IntArray, IntArray],
    jumps: JumpWeights,
    paths: IntArray,
    path_at: IntArray,
    samples: int,
    counts: JumpCounts,
) -> None:
    """Add the jumps of all sampled paths, each with weight 1 / samples."""
    heights, widths = sizes
    by_width, starts, left = counts
    for p in range(len(heights)):
        l, m = heights[p], widths[p]
        for s in range(samples):
            h = 0
            for j in range(m):
                k = paths[path_at[p] + s * m + j]
                if k == 0:
                    continue
                left[jumps.rows[l] + h] += 1.0 / samples
                if h == 0:
                    starts[k] += 1.0 / samples
                else:
                    by_width[jumps.middle + k - h] += 1.0 / samples
                h = k


# Both directions of the same pairs: forward links (l + 1, m), backward links (m + 1, l).


class PairSizes(NamedTuple):
    """The lengths of the pairs of a block, and where the links of each direction begin."""

    source_lengths: IntArray
    target_lengths: IntArray
    offsets: IntArray
    back_offsets: IntArray


@njit
def multiply_directions(first: int, last: int, pairs: PairSizes, links: Array, back: Array) -> None:
    """Replace both by their product; the remainder of each word goes to the empty word."""
    source_lengths, target_lengths, offsets, back_offsets = pairs
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        here = links[offsets[p] : offsets[p + 1]]
        there = back[back_offsets[p] : back_offsets[p + 1]]
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
    first: int, last: int, pairs: PairSizes, links: FloatArray, back: FloatArray, geometric: bool
) -> None:
    """Replace ``links`` by the geometric or the arithmetic mean of both directions."""
    source_lengths, target_lengths, offsets, back_offsets = pairs
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        here = links[offsets[p] : offsets[p + 1]]
        there = back[back_offsets[p] : back_offsets[p + 1]]
        for i in range(l):
            for j in range(m):
                one, other = here[i * m + j], there[j * l + i]
                here[i * m + j] = (one * other) ** 0.5 if geometric else (one + other) / 2.0
