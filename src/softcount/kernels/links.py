"""All links of some sentence pairs, from the table of translations and back to it.

Pair p has a matrix of (l + 1) × m numbers from ``offsets[p]`` on, one for each source place (the
empty word's is the last) and target place. Rows of the table are laid open one by one and their
words' places walked through (see `softcount.kernels.lexicon`): each row of a matrix has one owner.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.lexicon import within
from softcount.kernels.prefetch import AHEAD, prefetch
from softcount.types import Array


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
        begin, end = within(occurs, pairs, row, lower, upper)
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
        begin, end = within(occurs, pairs, row, lower, upper)
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
def restrict(
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
