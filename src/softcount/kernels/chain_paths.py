"""The best path through a chain of places, and draws of paths: see `softcount.kernels.chain`.

Best paths go in lockstep, as posteriors do; draws one pair after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.chain import Jumps, Room, loaded, measured, space
from softcount.kernels.jit import inline, njit
from softcount.kernels.lane_products import best_of
from softcount.kernels.random import chosen, item_stream, uniform
from softcount.types import Array


@inline
def jump(jumps: Jumps, l: int, h: int, k: int) -> Any:
    """A(h, k): from place h to place k ≥ 1 of a sentence of l words."""
    weight = jumps.start[k] if h == 0 else jumps.ahead[jumps.middle + k - h]
    return weight * jumps.z[jumps.rows[l] + h]


@njit
def _best_forward(jumps: Jumps, at: Room) -> None:
    """As `softcount.kernels.chain.forward`, with the largest term for the sum; so is c_j."""
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
            best_of(pred, now + k, jumps.back, jumps.middle - k + 1, scaled, 1, n - 1)
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
def _traced(jumps: Jumps, at: Room, lane: int, l: int, m: int, path: Array) -> float:
    """The best path of one lane, 0 where a word comes from the empty word; answers its log p."""
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
def best(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    offsets: Array,
    jumps: Jumps,
    links: Array,
    paths: Array,
    path_at: Array,
    logs: Array,
) -> None:
    """The links of each pair's best path get 1, all others 0; ``logs`` gets log p(f, â)."""
    memory = space(first, last, groups, members, sources, targets, links)
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        sizes = measured(own, sources, targets)
        at = loaded(memory, own, sizes, offsets, jumps, links)
        _best_forward(jumps, at)
        for lane in range(len(own)):
            p = own[lane]
            l, m = sizes[lane]
            path = paths[path_at[p] : path_at[p] + m]
            logs[p] = _traced(jumps, at, lane, l, m, path)
            begin = offsets[p]
            links[begin : offsets[p + 1]] = 0.0
            for j in range(m):
                links[begin + (path[j] - 1 if path[j] > 0 else l) * m + j] = 1.0


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
    k = chosen(gamma[m], stream)
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
            k = chosen(weights, stream)


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
