"""Compiled loops over chains of links: forward–backward, best paths, draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.jit import inline, njit
from softcount.kernels.lanes import (
    WIDTH,
    Matrix,
    added,
    const,
    fold,
    fused,
    in_blocks,
    larger,
    splat,
)
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.random import chosen, item_stream, uniform
from softcount.types import Array

Join = Callable[[Any, Any, Any, Any], Any]
"""How a product joins what was there: (builder, factor, factor, before)."""

SIDE = 4
"""So many rows are met at once."""
REGISTERS = 8
"""So many sums go side by side: enough to hide the adder's latency, few enough for registers."""


def _over_rows(into: Any, weights: Any, rows: Any, join: Join, height: int) -> Any:
    """``into[i + r] = join_k weights[w − r + k] · rows[first + k]`` for r < height."""
    signature = types.void(into, types.intp, weights, types.intp, rows, types.intp, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = Matrix(context, builder, signature.args[0], args[0])
        source = Matrix(context, builder, signature.args[4], args[4])
        scales = context.make_array(signature.args[2])(context, builder, args[2])
        scale = builder.gep(scales.data, [args[3]])
        there = source.row(args[5])
        nothing = ir.Constant(target.vector, [0.0] * WIDTH)
        apart = 2 if isinstance(target.vector.element, ir.DoubleType) else 1

        def block(begin: Any, count: int) -> None:
            sums = [
                [cgutils.alloca_once(builder, target.vector) for _ in range(count)]
                for _ in range(height)
            ]
            for one in chain(*sums):
                builder.store(nothing, one)
            with cgutils.for_range_slice(builder, const(0), args[6], const(1)) as (k, _):
                row = builder.add(builder.mul(k, source.vectors), begin)
                places = [builder.add(row, const(lane)) for lane in range(count)]
                values = [builder.load(builder.gep(there, [at]), align=4) for at in places]
                for r, own in enumerate(sums):
                    at = builder.sub(k, const(r))
                    factor = splat(builder, builder.load(builder.gep(scale, [at])))
                    for value, one in zip(values, own, strict=True):
                        builder.store(join(builder, factor, value, builder.load(one)), one)
            for r, own in enumerate(sums):
                here = target.row(builder.add(args[1], const(r)))
                for lane, one in enumerate(own):
                    place = builder.gep(here, [builder.add(begin, const(lane))])
                    builder.store(builder.load(one), place, align=4)

        in_blocks(builder, target.vectors, block, REGISTERS // (height * apart))
        return context.get_dummy_value()

    return signature, code


def _largest(builder: Any, factor: Any, value: Any, before: Any) -> Any:
    return larger(builder, builder.fmul(factor, value), before)


@intrinsic
def blend(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """``into[i] = Σ_k weights[w + k] · rows[first + k]`` for k < n, each step rounded once."""
    return _over_rows(into, weights, rows, fused, 1)


@intrinsic
def blend_two(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """`blend` for row i, and for row i + 1 with the weights from w − 1 on."""
    return _over_rows(into, weights, rows, fused, 2)


@intrinsic
def best_of(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """``into[i] = max_k weights[w + k] · rows[first + k]`` for k < n, and 0."""
    return _over_rows(into, weights, rows, _largest, 1)


@intrinsic
def meet_shifted(typing: Any, left: Any, right: Any, shift: Any, n: Any, into: Any) -> Any:
    """``into[q] = Σ_r left[r] · right[r + shift + q]`` for r < n, q < `SIDE`, over all lanes."""
    signature = types.void(left, right, types.intp, types.intp, into)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = Matrix(context, builder, signature.args[0], args[0])
        other = Matrix(context, builder, signature.args[1], args[1])
        out = context.make_array(signature.args[4])(context, builder, args[4])
        nothing = ir.Constant(one.vector, [0.0] * WIDTH)
        sums = [cgutils.alloca_once(builder, one.vector) for _ in range(SIDE)]
        for one_sum in sums:
            builder.store(nothing, one_sum)
        there = other.row(args[2])
        length = builder.mul(args[3], one.vectors)
        with cgutils.for_range_slice(builder, const(0), length, const(1)) as (v, _):
            x = builder.load(builder.gep(one.base, [v]), align=4)
            for q, one_sum in enumerate(sums):
                place = builder.add(builder.mul(const(q), other.vectors), v)
                y = builder.load(builder.gep(there, [place]), align=4)
                builder.store(fused(builder, x, y, builder.load(one_sum)), one_sum)
        for q, one_sum in enumerate(sums):
            place = builder.gep(out.data, [const(q)])
            builder.store(fold(builder, builder.load(one_sum), added), place)
        return context.get_dummy_value()

    return signature, code


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
def most(numbers: Array) -> Any:
    """Places that next to nothing leads to may promise more than numbers can hold: no more."""
    return numbers.dtype.type(1e28 if numbers.itemsize == 4 else 1e100)


@njit
def least(numbers: Array) -> Any:
    """A word below this chance counts as impossible: 1 / chance would be no number."""
    return np.finfo(numbers.dtype).tiny


class Jumps(NamedTuple):
    """w(d) at ``ahead[middle + d]`` and ``back[middle − d]``; that of the start at ``start[k]``.

    ``z`` has l + 1 numbers for every length l of sentences, from ``rows[l]`` on.
    """

    ahead: Array
    back: Array
    start: Array
    middle: int
    z: Array
    rows: Array
    p0: float


class Room(NamedTuple):
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
def space(
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
        most = max(most, ((3 * m + 8) * (l + 1) + 2 * SIDE + m) * lanes)
    return np.empty(most, links.dtype)


@njit
def _part(memory: Array, at: int, rows: int, lanes: int) -> Array:
    return memory[at * lanes : (at + rows) * lanes].reshape((rows, lanes))


@njit
def room(memory: Array, l: int, m: int, lanes: int) -> Room:
    """Room for pairs of up to l source words and m target words; what it holds means nothing."""
    n = l + 1
    emit, pred, gamma = m * n, m * n, (m + 1) * n
    at = emit + pred + gamma
    return Room(
        _part(memory, 0, emit, lanes),
        _part(memory, emit, pred, lanes),
        _part(memory, emit + pred, gamma, lanes),
        _part(memory, at, n, lanes),
        _part(memory, at + n, n, lanes),
        _part(memory, at + 2 * n, n, lanes),
        _part(memory, at + 3 * n, n, lanes),
        _part(memory, at + 4 * n, n, lanes),
        _part(memory, at + 5 * n, m, lanes),
        _part(memory, at + 5 * n + m, l + SIDE, lanes),
        _part(memory, at + 6 * n + m + SIDE - 1, l + SIDE, lanes),
    )


@njit
def load(own: Array, sizes: Array, offsets: Array, jumps: Jumps, links: Array, at: Room) -> None:
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
def store(own: Array, sizes: Array, offsets: Array, at: Room, links: Array) -> None:
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
def summed(own: Array, sizes: Array, jumps: Jumps, at: Room, logs: Array, left: Array) -> None:
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
        blend_two(into, at + k, weights, middle - k, rows, first, n)
    if n % 2:
        blend(into, at + n - 1, weights, middle - n + 1, rows, first, n)


@njit
def forward(jumps: Jumps, at: Room) -> None:
    """γ of all words, Σ_h γ(h) A(h, ·) of all words in ``pred``, and c_j (0: impossible)."""
    n, lanes = at.z.shape
    emit, pred, gamma, scaled, scales = at.emit, at.pred, at.gamma, at.next, at.scales
    inverse, nothing = np.empty(lanes, emit.dtype), least(emit)
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
def backward(jumps: Jumps, at: Room) -> None:
    """Posteriors in ``pred``, E β / c in ``emit``, γ z in ``gamma``, expected jumps in ``left``."""
    n, lanes = at.z.shape
    emit, pred, gamma, beta, later = at.emit, at.pred, at.gamma, at.beta, at.next
    inverse, much, one = np.empty(lanes, emit.dtype), most(emit), emit.dtype.type(1.0)
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
        blend(later, 0, jumps.start, 1, emit, now + 1, n - 1)
        slide(later, 1, jumps.ahead, jumps.middle, emit, now + 1, n - 1)
        for k in range(n):
            for b in range(lanes):
                jumped = at.z[k, b] * later[k, b]
                at.left[k, b] += gamma[now + k, b] * jumped
                gamma[now + k, b] *= at.z[k, b]
                beta[k, b] = min(beta[k, b] * emit[now, b] + jumped, much)


@njit
def count_jumps(jumps: Jumps, at: Room, widths: Array, starts: Array) -> None:
    """Add the expected jumps, by width and from the start by place; after `backward`."""
    n, lanes = at.z.shape
    l, here, there, met = n - 1, at.here, at.there, np.empty(SIDE, at.here.dtype)
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
        for d in range(0, l, SIDE):
            meet_shifted(here, there, d, l - d, met)
            for q in range(min(SIDE, l - d)):
                widths[jumps.middle + d + q] += met[q] * jumps.ahead[jumps.middle + d + q]
        for d in range(1, l, SIDE):
            meet_shifted(there, here, d, l - d, met)
            for q in range(min(SIDE, l - d)):
                widths[jumps.middle - d - q] += met[q] * jumps.ahead[jumps.middle - d - q]
    for k in range(1, n):
        starts[k] += at.first[k].sum() * jumps.start[k]


@njit
def measured(own: Array, sources: Array, targets: Array) -> Array:
    """The lengths of a group's sentences, a row a lane; (0, 0) where there is no pair."""
    sizes = np.zeros((-(-len(own) // WIDTH) * WIDTH, 2), np.int64)
    for b in range(len(own)):
        p = own[b]
        sizes[b, 0] = sources[p + 1] - sources[p]
        sizes[b, 1] = targets[p + 1] - targets[p]
    return sizes


@njit
def loaded(
    memory: Array, own: Array, sizes: Array, offsets: Array, jumps: Jumps, links: Array
) -> Room:
    """Room for a group of pairs, with their emissions in it."""
    at = room(memory, sizes[:, 0].max(), sizes[:, 1].max(), len(sizes))
    load(own, sizes, offsets, jumps, links, at)
    return at


@njit
def chains(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    offsets: Array,
    jumps: Jumps,
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
    memory = space(first, last, groups, members, sources, targets, links)
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        sizes = measured(own, sources, targets)
        at = loaded(memory, own, sizes, offsets, jumps, links)
        forward(jumps, at)
        backward(jumps, at)
        if counting:
            count_jumps(jumps, at, widths, starts)
        store(own, sizes, offsets, at, links)
        summed(own, sizes, jumps, at, logs, left)


# The best path through a chain of places, and draws of paths: see `softcount.align.kernels.chain`.
#
# Best paths go in lockstep, as posteriors do; draws one pair after the other.


@inline
def jump(jumps: Jumps, l: int, h: int, k: int) -> Any:
    """A(h, k): from place h to place k ≥ 1 of a sentence of l words."""
    weight = jumps.start[k] if h == 0 else jumps.ahead[jumps.middle + k - h]
    return weight * jumps.z[jumps.rows[l] + h]


@njit
def _best_forward(jumps: Jumps, at: Room) -> None:
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
def count_path_jumps(
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
