"""Compiled loops over positions: diagonals, jumps, stems, growing of links.

Places near the diagonal (Dyer, Chahuneau & Smith 2013).

    d(i | j, l, m) = (1 − p₀) exp(λ h(i, j)) / Z_λ(j),   h(i, j) = −|(i + ½) / l − (j + ½) / m|

and p₀ for the empty word. A shape is a pair of lengths (l, m).
"""

from __future__ import annotations

import math

import numpy as np

from softcount.core.types import Array
from softcount.kernels.jit import inline, njit


@inline
def nearness(i: int, j: int, l: int, m: int) -> float:
    """h(i, j), 0 on the diagonal and below 0 off it."""
    return -abs((i + 0.5) / l - (j + 0.5) / m)


@njit
def fill_diagonal(
    heights: Array, widths: Array, begins: Array, tension: float, p0: float, out: Array
) -> None:
    """d of all shapes, (l + 1, m) each; the empty word is last. Without words it is certain."""
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


@njit
def moments(
    heights: Array, widths: Array, rows: Array, often: Array, tension: float
) -> tuple[float, float, float]:
    """Σ_r n_r of log Z_λ, of the mean of h and of its variance; n_r of shape s from ``rows[s]``."""
    logs = means = variances = 0.0
    for s in range(len(heights)):
        l, m = heights[s], widths[s]
        for j in range(m):
            n = often[rows[s] + j]
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


@njit
def summarise(
    heights: Array, widths: Array, begins: Array, rows: Array, counts: Array, often: Array
) -> float:
    """How often target place j comes from a word, by shape; answers Σ counts · h."""
    total = 0.0
    for s in range(len(heights)):
        l, m, at = heights[s], widths[s], begins[s]
        for j in range(m):
            n = 0.0
            for i in range(l):
                c = counts[at + i * m + j]
                n += c
                total += c * nearness(i, j, l, m)
            often[rows[s] + j] = n
    return total


# Sums over all jumps within sentences: see `softcount.align.kernels.chain`.
#
# Sentences of length ``lengths[n]`` have rows from ``rows[n]`` on: place 0, before the sentence,
# then the places 1 to l of its words. ``ahead[middle + d]`` is the weight of a jump of d places,
# ``start[k]`` that of the jump from place 0 to place k.


@njit
def sum_jumps(
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
def spread_over_jumps(
    lengths: Array, rows: Array, shares: Array, middle: int, by_width: Array, starts: Array
) -> None:
    """Add each row's share to all jumps that it allows: the transpose of `sum_jumps`."""
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


# Counts of translations that words of one stem lend each other.


@njit
def lend_counts(
    first: int,
    last: int,
    members: Array,
    begins: Array,
    indptr: Array,
    targets: Array,
    target_stems: Array,
    shares: Array,
    n_stems: int,
    strength: float,
    least: float,
    counts: Array,
    out: Array,
) -> None:
    """``out`` ← counts + strength · T(f's stem | e's stem) · p(f | its stem).

    For groups ``first`` to ``last`` of source words of one stem. T comes from the counts of all of
    them, ``least`` added to each; ``shares`` is p(f | its stem).
    """
    mass = np.zeros(n_stems)
    seen = np.zeros(n_stems, np.bool_)
    for g in range(first, last):
        rows = members[begins[g] : begins[g + 1]]
        total = 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] += counts[k]
                total += counts[k]
                if not seen[stem]:
                    seen[stem] = True
                    mass[stem] += least
                    total += least
        scale = strength / total if total > 0.0 else 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                f = targets[k]
                out[k] = counts[k] + scale * mass[target_stems[f]] * shares[f]
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] = 0.0
                seen[stem] = False


# Growing an alignment from the links that two directions share, for many pairs at once.


FORWARD, BACKWARD, BOTH = 1, 2, 3

PLACE = np.array([[4, 0, 5], [1, -1, 3], [6, 2, 7]], dtype=np.int64)
"""When symal looks at the neighbour at (1 + target step, 1 + source step); straight ones first."""


@inline
def _look(k: int, end: int, step: int, target: Array, source: Array, near: Array) -> None:
    """The neighbours of link k that stand behind it (or before it: step −1)."""
    other = k + step
    while other != end and abs(target[other] - target[k]) <= 1:
        aside = source[other] - source[k]
        if abs(aside) <= 1:
            near[PLACE[1 + target[other] - target[k], 1 + aside]] = other
        other += step


@inline
def _spread(
    first: int,
    last: int,
    target: Array,
    source: Array,
    n_steps: int,
    near: Array,
    keep: Array,
    of_source: Array,
    of_target: Array,
) -> None:
    """Add neighbours of kept links that have an unlinked word, until there are none."""
    near[: last - first] = -1
    for k in range(first, last):
        _look(k, first - 1, -1, target, source, near[k - first])
        _look(k, last, 1, target, source, near[k - first])
    added = True
    while added:
        added = False
        for k in range(first, last):
            if not keep[k]:
                continue
            for s in range(n_steps):
                new = near[k - first, s]
                if new >= 0 and not (of_source[source[new]] and of_target[target[new]]):
                    keep[new] = True
                    of_source[source[new]] = True
                    of_target[target[new]] = True
                    added = True


@inline
def _finish(
    first: int,
    last: int,
    target: Array,
    source: Array,
    side: Array,
    both_free: bool,
    keep: Array,
    of_source: Array,
    of_target: Array,
) -> None:
    """Add links of whose words one (or both) is not linked yet, direction by direction."""
    for direction in (FORWARD, BACKWARD):
        for k in range(first, last):
            if side[k] != direction or keep[k]:
                continue
            i, j = source[k], target[k]
            if (of_source[i] and of_target[j]) or (both_free and (of_source[i] or of_target[j])):
                continue
            keep[k] = True
            of_source[i] = True
            of_target[j] = True


@njit
def grow_links(
    indptr: Array,
    target: Array,
    source: Array,
    side: Array,
    n_steps: int,
    final: bool,
    both_free: bool,
    near: Array,
    of_source: Array,
    of_target: Array,
) -> Array:
    """Which links of the union are kept.

    The union's links stand pair by pair, in the order of (target, source), each with the directions
    that have it (``side``). ``near`` has room for the neighbours of one pair's links; ``of_source``
    and ``of_target`` (all False, before and after) for which of its words are linked.
    """
    keep: Array = side == BOTH
    for n in range(len(indptr) - 1):
        first, last = indptr[n], indptr[n + 1]
        for k in range(first, last):
            if keep[k]:
                of_source[source[k]] = True
                of_target[target[k]] = True
        _spread(first, last, target, source, n_steps, near, keep, of_source, of_target)
        if final:
            _finish(first, last, target, source, side, both_free, keep, of_source, of_target)
        for k in range(first, last):
            of_source[source[k]] = False
            of_target[target[k]] = False
    return keep
