"""Growing an alignment from the links that two directions share, for many pairs at once."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.types import Array

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
def grow(
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
