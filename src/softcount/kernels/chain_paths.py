"""The best path through a chain of places, and draws of paths: see `softcount.kernels.chain`.

One pair after the other; states are (place, from the empty word or not).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.chain import Jumps
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


@inline
def jump(jumps: Jumps, l: int, h: int, k: int) -> Any:
    """A(h, k): from place h to place k ≥ 1 of a sentence of l words."""
    weight = jumps.start[k] if h == 0 else jumps.ahead[jumps.middle + k - h]
    return weight * jumps.z[jumps.rows[l] + h]


@njit
def _best_path(links: Array, l: int, m: int, jumps: Jumps, path: Array) -> float:
    """log max p(f, a); ``path`` gets the places, 0 where the empty word was at work."""
    n = l + 1
    score = np.full(n, -np.inf)
    score[0] = 0.0
    new = np.empty(n)
    origin = np.zeros((m, n), np.int32)  # where place k was reached from; −1: by the empty word
    log_jumps = np.empty((n, n))
    for h in range(n):
        for k in range(1, n):
            value = jump(jumps, l, h, k)
            log_jumps[k, h] = math.log(value) if value > 0.0 else -np.inf
    for j in range(m):
        empty = jumps.p0 * links[l * m + j]
        log_empty = math.log(empty) if empty > 0.0 else -np.inf
        for k in range(n):
            new[k] = score[k] + log_empty
            origin[j, k] = -1
        for k in range(1, n):
            emission = links[(k - 1) * m + j]
            if emission == 0.0:
                continue
            best, at = -np.inf, 0
            for h in range(n):
                value = score[h] + log_jumps[k, h]
                if value > best:
                    best, at = value, h
            best += math.log(emission)
            if best > new[k]:
                new[k] = best
                origin[j, k] = at
        score[:] = new
    k = int(np.argmax(score))
    total = score[k]
    for j in range(m - 1, -1, -1):
        path[j] = 0 if origin[j, k] < 0 else k
        k = k if origin[j, k] < 0 else origin[j, k]
    return total


@njit
def best(
    first: int,
    last: int,
    heights: Array,
    widths: Array,
    offsets: Array,
    links: Array,
    jumps: Jumps,
    paths: Array,
    path_at: Array,
    logs: Array,
) -> None:
    """The links of each pair's best path get 1, all others 0; ``logs`` gets log p(f, â)."""
    for p in range(first, last):
        l, m = heights[p], widths[p]
        own = links[offsets[p] : offsets[p + 1]]
        path = paths[path_at[p] : path_at[p] + m]
        logs[p] = _best_path(own, l, m, jumps, path)
        own[:] = 0.0
        for j in range(m):
            own[(path[j] - 1 if path[j] > 0 else l) * m + j] = 1.0


@njit
def _filtered(links: Array, l: int, m: int, jumps: Jumps) -> Array:
    """γ_j(k), scaled to sum to 1 for every j; all zero from where nothing is possible."""
    gamma = np.zeros((m + 1, l + 1))
    gamma[0, 0] = 1.0
    for j in range(m):
        empty = jumps.p0 * links[l * m + j]
        for k in range(l + 1):
            gamma[j + 1, k] = gamma[j, k] * empty
        for k in range(1, l + 1):
            reached = 0.0
            for h in range(l + 1):
                reached += gamma[j, h] * jump(jumps, l, h, k)
            gamma[j + 1, k] += reached * links[(k - 1) * m + j]
        total = gamma[j + 1].sum()
        gamma[j + 1] /= total if total > 0.0 else 1.0
    return gamma


@njit
def _drawn_path(
    links: Array, l: int, m: int, jumps: Jumps, gamma: Array, stream: Array, path: Array
) -> None:
    """A path drawn from its posterior, from the last word back to the first."""
    weights = np.empty(l + 1)
    k = _chosen(gamma[m], stream)
    for j in range(m - 1, -1, -1):
        stayed = gamma[j, k] * jumps.p0 * links[l * m + j]
        total = stayed
        for h in range(l + 1):
            weights[h] = 0.0
            if k > 0:
                weights[h] = gamma[j, h] * jump(jumps, l, h, k) * links[(k - 1) * m + j]
            total += weights[h]
        if uniform(stream, 0) * total < stayed or total == stayed:
            path[j] = 0
        else:
            path[j] = k
            k = _chosen(weights, stream)


@njit
def _chosen(weights: Array, stream: Array) -> int:
    left, chosen = uniform(stream, 0) * weights.sum(), 0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            chosen = k
            left -= weights[k]
            if left < 0.0:
                break
    return chosen


@njit
def draw(
    first: int,
    last: int,
    heights: Array,
    widths: Array,
    offsets: Array,
    links: Array,
    jumps: Jumps,
    numbers: Array,
    seed: Any,
    samples: int,
    paths: Array,
    path_at: Array,
) -> None:
    """Emissions become shares of so many drawn paths, which ``paths`` gets, one after the other."""
    stream = np.empty(1, np.uint64)
    for p in range(first, last):
        l, m = heights[p], widths[p]
        own = links[offsets[p] : offsets[p + 1]]
        stream[0] = item_stream(seed, numbers[p])
        gamma = _filtered(own, l, m, jumps)
        often = np.zeros(len(own))
        for s in range(samples):
            path = paths[path_at[p] + s * m : path_at[p] + (s + 1) * m]
            _drawn_path(own, l, m, jumps, gamma, stream, path)
            for j in range(m):
                often[(path[j] - 1 if path[j] > 0 else l) * m + j] += 1.0 / samples
        own[:] = often


@njit
def count_jumps(
    heights: Array,
    widths: Array,
    jumps: Jumps,
    paths: Array,
    path_at: Array,
    samples: int,
    by_width: Array,
    starts: Array,
    left: Array,
) -> None:
    """Add the jumps of all paths, each 1 / samples of one."""
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
