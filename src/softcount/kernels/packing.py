"""How sentences are packed, to go in lockstep, and packs cut into segments.

See `softcount.kernels.packs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array


class Packs(NamedTuple):
    """How sentences are packed.

    ``positions``  pack p has ``begins[positions[p]:positions[p + 1]]``, the last one its end
    ``begins``     the first row of every position
    ``tokens``     the token of every row
    ``sentences``  pack p has ``order[sentences[p]:sentences[p + 1]]``, the longest first
    ``order``      sentences as they are packed
    """

    positions: Array
    begins: Array
    tokens: Array
    sentences: Array
    order: Array


@njit
def _cut(lengths: Array, lanes: int, most: int) -> Array:
    """Where packs begin among sentences sorted by length, and the end."""
    cuts = [0]
    for n in range(1, len(lengths)):
        wide = n - cuts[-1] + 1
        if wide > lanes or wide * lengths[cuts[-1]] > most:
            cuts.append(n)
    if len(lengths):
        cuts.append(len(lengths))
    return np.array(cuts)


@njit
def _rows(
    order: Array, lengths: Array, indptr: Array, sentences: Array
) -> tuple[Array, Array, Array]:
    """Positions, begins and tokens of packs."""
    positions = np.zeros(len(sentences), np.int64)
    for p in range(len(sentences) - 1):
        positions[p + 1] = positions[p] + lengths[sentences[p]] + 1
    begins = np.zeros(positions[-1], np.int64)
    tokens = np.empty(lengths.sum(), np.int64)
    row = 0
    for p in range(len(sentences) - 1):
        first, active = sentences[p], sentences[p + 1] - sentences[p]
        for i in range(lengths[first]):
            begins[positions[p] + i] = row
            while lengths[first + active - 1] <= i:
                active -= 1
            for lane in range(active):
                tokens[row + lane] = indptr[order[first + lane]] + i
            row += active
        begins[positions[p + 1] - 1] = row
    return positions, begins, tokens


def packed(indptr: Array, lanes: int, most: int) -> Packs:
    """Sentences of like lengths together, at most so many, and so many tokens unless one has more.

    >>> packs = packed(np.array([0, 2, 2, 5, 6]), lanes=2, most=100)
    >>> packs.order.tolist(), packs.sentences.tolist()  # the empty sentence is in none
    ([2, 0, 3], [0, 2, 3])
    >>> packs.tokens.tolist(), packs.begins.tolist(), packs.positions.tolist()
    ([2, 0, 3, 1, 4, 5], [0, 2, 4, 5, 5, 6], [0, 4, 6])
    """
    lengths = np.diff(indptr)
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    sentences = _cut(lengths[order], lanes, most)
    return Packs(*_rows(order, lengths[order], indptr, sentences), sentences, order)


@njit
def pack(packs: Packs, p: int) -> tuple[Array, Array]:
    """The borders of a pack's positions, and its sentences."""
    begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
    return begins, packs.order[packs.sentences[p] : packs.sentences[p + 1]]


@njit
def segments(begins: Array, most: int) -> Array:
    """Where segments begin, and the end: so many rows each, and one position at least."""
    cuts = [0]
    for i in range(1, len(begins)):
        if begins[i] - begins[cuts[-1]] > most and i - 1 > cuts[-1]:
            cuts.append(i - 1)
    cuts.append(len(begins) - 1)
    return np.array(cuts)


@njit
def largest(first: int, last: int, packs: Packs, most: int) -> tuple[int, int]:
    """The most rows of a segment, and the most sentences of a pack."""
    rows = lanes = 0
    for p in range(first, last):
        begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
        cuts = segments(begins, most)
        for s in range(len(cuts) - 1):
            rows = max(rows, begins[cuts[s + 1]] - begins[cuts[s]])
        lanes = max(lanes, packs.sentences[p + 1] - packs.sentences[p])
    return rows, lanes


@njit
def segment(begins: Array, cuts: Array, s: int) -> tuple[Array, int]:
    """The borders of a segment's positions, and how many sentences go on behind it."""
    end = cuts[s + 1]
    ahead = begins[end + 1] - begins[end] if end + 1 < len(begins) else 0
    return begins[cuts[s] : end + 1], ahead
