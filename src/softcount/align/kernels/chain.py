"""Compiled loops over chains of links: forward–backward, best paths, draws."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import Array
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import draw_weighted, item_stream, uniform
from softcount.kernels.vectors import (
    SHIFTS_AT_ONCE,
    WIDTH,
    shifted_dots,
    weighted_max,
    weighted_sum,
    weighted_sum_two,
)

# Forward–backward over the hidden places of alignments (Vogel, Ney & Tillmann 1996).
#
# The places of neighbouring target words form a chain: p(a_j = k | a_{j−1} = h, l) is a jump of k −
# h words, w(k − h) / Z(h), Z the sum over all places of the sentence. A target word may also come
# from the empty word, with probability p₀; the chain remembers the place from which it jumps on
# (Och & Ney 2003). Place 0 stands before the sentence and has jumps of its own, place k is source
# word k − 1. With emissions E, jumps A(h, k) = w(k − h) z(h) and z(h) = (1 − p₀) / Z(h),
#
#     γ_j(k) = p(f_1..f_j, last place k),    β_j(k) = p(f_{j+1}..f_m | last place k)
#
# both scaled by the same c_j, so that they stay near 1 whatever the length.
#
# Pairs of about one size go in lockstep, one a lane. Where one has fewer source words than others,
# the missing ones are impossible; where it has fewer target words, the missing ones come from the
# empty word with certainty. Neither changes anything.


@njit
def largest(numbers: Array) -> Any:
    """Places that next to nothing leads to may promise more than numbers can hold: no more."""
    return numbers.dtype.type(1e28 if numbers.itemsize == 4 else 1e100)


@njit
def smallest(numbers: Array) -> Any:
    """A word below this chance counts as impossible: 1 / chance would be no number."""
    return np.finfo(numbers.dtype).tiny


class JumpWeights(NamedTuple):
    """w(d) at ``ahead[middle + d]`` and ``back[middle − d]``; that of the start at ``start[k]``.

    ``z`` has l + 1 numbers for every length l of sentences, from ``rows[l]`` on.
    """

    ahead: Array
    back: Array
    start: Array
    middle: int
    z: Array
    rows: Array
    p0: Any


class ChainWorkspace(NamedTuple):
    """Where a group of pairs is worked on: matrices with one column a lane."""

    emit: Array
    pred: Array
    gamma: Array
    beta: Array
    next: Array
    z: Array
    left: Array
    first: Array
    scales: Array
    here: Array
    there: Array


@njit
def allocate(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    links: Array,
) -> Array:
    """Memory that is enough for each of the groups ``first`` to ``last``, one after the other.

    Its numbers are of the same kind as the links.
    """
    most = 0
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        l = m = 0
        for p in own:
            l = max(l, sources[p + 1] - sources[p])
            m = max(m, targets[p + 1] - targets[p])
        lanes = -(-len(own) // WIDTH) * WIDTH
        most = max(most, ((3 * m + 8) * (l + 1) + 2 * SHIFTS_AT_ONCE + m) * lanes)
    return np.empty(most, links.dtype)


@njit
def _part(memory: Array, at: int, rows: int, lanes: int) -> Array:
    return memory[at * lanes : (at + rows) * lanes].reshape((rows, lanes))


@njit
def carve(memory: Array, l: int, m: int, lanes: int) -> ChainWorkspace:
    """Room for pairs of up to l source words and m target words; what it holds means nothing."""
    n = l + 1
    emit, pred, gamma = m * n, m * n, (m + 1) * n
    at = emit + pred + gamma
    return ChainWorkspace(
        _part(memory, 0, emit, lanes),
        _part(memory, emit, pred, lanes),
        _part(memory, emit + pred, gamma, lanes),
        _part(memory, at, n, lanes),
        _part(memory, at + n, n, lanes),
        _part(memory, at + 2 * n, n, lanes),
        _part(memory, at + 3 * n, n, lanes),
        _part(memory, at + 4 * n, n, lanes),
        _part(memory, at + 5 * n, m, lanes),
        _part(memory, at + 5 * n + m, l + SHIFTS_AT_ONCE, lanes),
        _part(memory, at + 6 * n + m + SHIFTS_AT_ONCE - 1, l + SHIFTS_AT_ONCE, lanes),
    )


@njit
def load(
    own: Array, sizes: Array, offsets: Array, jumps: JumpWeights, links: Array, at: ChainWorkspace
) -> None:
    """The emissions (l + 1, m) of each pair into its lane; at every word the empty word first.

    Lanes without a pair have lengths (0, 0).
    """
    n, lanes = at.z.shape
    begins = np.zeros(lanes, np.int64)
    begins[: len(own)] = offsets[own]
    all_l, all_m = sizes[:, 0].min(), sizes[:, 1].min()
    for k in range(n - 1):
        for j in range(len(at.scales)):
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
        l, m = sizes[b]
        for j in range(len(at.scales)):
            at.emit[j * n, b] = jumps.p0 * links[begins[b] + j] if j < m else 1.0
        for k in range(n):
            at.z[k, b] = jumps.z[jumps.rows[l] + k] if k <= l else 0.0
            at.left[k, b] = 0.0


@njit
def store(own: Array, sizes: Array, offsets: Array, at: ChainWorkspace, links: Array) -> None:
    """The posteriors of each pair out of its lane."""
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
        for j in range(sizes[b, 1]):
            links[begins[b] + j] = at.pred[j * n, b]


@njit
def add_log_likelihoods(
    own: Array, sizes: Array, jumps: JumpWeights, at: ChainWorkspace, logs: Array, left: Array
) -> None:
    """log p of each pair, and from where it jumped."""
    for b in range(len(own)):
        l, m = sizes[b]
        logs[own[b]] = 0.0
        for j in range(m):
            c = at.scales[j, b]
            logs[own[b]] += math.log(c) if c > 0.0 else -np.inf
        for k in range(l + 1):
            left[jumps.rows[l] + k] += at.left[k, b]


@njit
def slide(
    into: Array, at: int, weights: Array, middle: int, rows: Array, first: int, n: int
) -> None:
    """``into[at + k] = Σ_h weights[middle + h − k] · rows[first + h]`` for h, k < n."""
    for k in range(0, n - 1, 2):
        weighted_sum_two(into, at + k, weights, middle - k, rows, first, n)
    if n % 2:
        weighted_sum(into, at + n - 1, weights, middle - n + 1, rows, first, n)


@njit
def forward(jumps: JumpWeights, at: ChainWorkspace) -> None:
    """γ of all words, Σ_h γ(h) A(h, ·) of all words in ``pred``, and c_j (0: impossible)."""
    n, lanes = at.z.shape
    emit, pred, gamma, scaled, scales = at.emit, at.pred, at.gamma, at.next, at.scales
    inverse, nothing = np.empty(lanes, emit.dtype), smallest(emit)
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
    """Posteriors in ``pred``, E β / c in ``emit``, γ z in ``gamma``, expected jumps in ``left``."""
    n, lanes = at.z.shape
    emit, pred, gamma, beta, later = at.emit, at.pred, at.gamma, at.beta, at.next
    inverse, much, one = np.empty(lanes, emit.dtype), largest(emit), emit.dtype.type(1.0)
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
    """Add the expected jumps, by width and from the start by place; after `backward`."""
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
def measure_group(own: Array, sources: Array, targets: Array) -> Array:
    """The lengths of a group's sentences, a row a lane; (0, 0) where there is no pair."""
    sizes = np.zeros((-(-len(own) // WIDTH) * WIDTH, 2), np.int64)
    for b in range(len(own)):
        p = own[b]
        sizes[b, 0] = sources[p + 1] - sources[p]
        sizes[b, 1] = targets[p + 1] - targets[p]
    return sizes


@njit
def load_group(
    memory: Array, own: Array, sizes: Array, offsets: Array, jumps: JumpWeights, links: Array
) -> ChainWorkspace:
    """Room for a group of pairs, with their emissions in it."""
    at = carve(memory, sizes[:, 0].max(), sizes[:, 1].max(), len(sizes))
    load(own, sizes, offsets, jumps, links, at)
    return at


@njit
def forward_backward(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    offsets: Array,
    jumps: JumpWeights,
    links: Array,
    logs: Array,
    widths: Array,
    starts: Array,
    left: Array,
    counting: bool,
) -> None:
    """Emissions of the groups ``first`` to ``last`` become posteriors, in place.

    ``logs`` gets log p(target | source) of every pair; expected jumps are added to ``widths`` (by
    width), ``starts`` (by first place) and ``left`` (by length and place of departure), if they are
    to be counted.
    """
    memory = allocate(first, last, groups, members, sources, targets, links)
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        sizes = measure_group(own, sources, targets)
        at = load_group(memory, own, sizes, offsets, jumps, links)
        forward(jumps, at)
        backward(jumps, at)
        if counting:
            count_jumps(jumps, at, widths, starts)
        store(own, sizes, offsets, at, links)
        add_log_likelihoods(own, sizes, jumps, at, logs, left)


# The best path through a chain of places, and draws of paths: see `softcount.align.kernels.chain`.
#
# Best paths go in lockstep, as posteriors do; draws one pair after the other.


@inline
def jump(jumps: JumpWeights, l: int, h: int, k: int) -> Any:
    """A(h, k): from place h to place k ≥ 1 of a sentence of l words."""
    weight = jumps.start[k] if h == 0 else jumps.ahead[jumps.middle + k - h]
    return weight * jumps.z[jumps.rows[l] + h]


@njit
def _viterbi_forward(jumps: JumpWeights, at: ChainWorkspace) -> None:
    """As `softcount.align.kernels.chain.forward`, with the largest term for the sum; so is c_j."""
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
    jumps: JumpWeights, at: ChainWorkspace, lane: int, l: int, m: int, path: Array
) -> float:
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
def viterbi(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    offsets: Array,
    jumps: JumpWeights,
    links: Array,
    paths: Array,
    path_at: Array,
    logs: Array,
) -> None:
    """The links of each pair's best path get 1, all others 0; ``logs`` gets log p(f, â)."""
    memory = allocate(first, last, groups, members, sources, targets, links)
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        sizes = measure_group(own, sources, targets)
        at = load_group(memory, own, sizes, offsets, jumps, links)
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
def _filter_forward(links: Array, l: int, m: int, jumps: JumpWeights) -> Array:
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
def _sample_path(
    links: Array, l: int, m: int, jumps: JumpWeights, gamma: Array, stream: Array, path: Array
) -> None:
    """A path drawn from its posterior, from the last word back to the first."""
    weights = np.empty(l + 1)
    k = draw_weighted(gamma[m], stream)
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
            k = draw_weighted(weights, stream)


@njit
def sample_paths(
    first: int,
    last: int,
    heights: Array,
    widths: Array,
    offsets: Array,
    links: Array,
    jumps: JumpWeights,
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
        gamma = _filter_forward(own, l, m, jumps)
        often = np.zeros(len(own))
        for s in range(samples):
            path = paths[path_at[p] + s * m : path_at[p] + (s + 1) * m]
            _sample_path(own, l, m, jumps, gamma, stream, path)
            for j in range(m):
                often[(path[j] - 1 if path[j] > 0 else l) * m + j] += 1.0 / samples
        own[:] = often


@njit
def count_path_jumps(
    heights: Array,
    widths: Array,
    jumps: JumpWeights,
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
