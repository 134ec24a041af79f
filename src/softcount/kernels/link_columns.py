"""Alignments in which every target word chooses its source word for itself.

A pair's links are a matrix (l + 1, m), source places by target places (see
`softcount.kernels.links`), here with p(f_j, a_j = i) in it: every column is a distribution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.jit import njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

LEAST = np.finfo(np.float64).tiny
"""A sum below this counts as 0: 1 / sum would be no number."""


@njit
def weigh(first: int, last: int, offsets: Array, at: Array, places: Array, links: Array) -> None:
    """Multiply pairs ``first`` to ``last`` by their d(i | j), which begin at ``places[at[p]]``."""
    for p in range(first, last):
        shift = at[p] - offsets[p]
        for k in range(offsets[p], offsets[p + 1]):
            links[k] *= places[k + shift]


@njit
def soften(first: int, last: int, widths: Array, offsets: Array, links: Array, logs: Array) -> None:
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
def harden(first: int, last: int, widths: Array, offsets: Array, links: Array, logs: Array) -> None:
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
def draw(
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
def add_places(
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
