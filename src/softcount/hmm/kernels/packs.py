"""Compiled loops over packs of sentences that go side by side.

How sentences are packed, to go in lockstep, and packs cut into segments.

See `softcount.hmm.kernels.packs`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils

from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.lanes import WIDTH, Matrix, added, fold, fused, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.products import (
    SIDE,
    TALL,
    Join,
    Rows,
    Vector,
    add_cross,
    largest,
    over_products,
    zeros,
)
from softcount.kernels.random import item_stream, uniform
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
def largest_segment(first: int, last: int, packs: Packs, most: int) -> tuple[int, int]:
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


# Steps of chains in lockstep: products of a few rows with a matrix, and what follows them.
#
# A library multiplies matrices and hands them back; whoever weighs the product reads and writes it
# all once more. Here the rows of a product are weighed while they are still in registers
# (`softcount.kernels.products`).


def _advance(height: int, join: Join, out: Any, left: Any, right: Any, *others: Any) -> Any:
    table, rows, factors, sums = others
    size = types.intp
    signature = types.void(out, size, left, size, right, table, rows, factors, size, sums)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, moves, emissions = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 4, 5)
        )
        numbers, scales, totals = (
            Vector(context, builder, signature.args[i], args[i]) for i in (6, 7, 9)
        )
        here = Rows.from_(target, args[1], height)
        emitted = Rows.listed(emissions, numbers, args[1], height)
        scale = [splat(builder, scales.load(args[8], r)) for r in range(height)]
        found = [cgutils.alloca_once(builder, target.vector) for _ in range(height)]
        for total in found:
            builder.store(zeros(target.vector), total)

        def use(r: int, at: Any, value: Any) -> None:
            value = builder.fmul(builder.fmul(value, scale[r]), emitted.load(r, at))
            here.store(value, r, at)
            builder.store(builder.fadd(builder.load(found[r]), value), found[r])

        over_products(Rows.from_(source, args[3], height), moves, height, use, join)
        for r, total in enumerate(found):
            builder.store(fold(builder, builder.load(total), added), totals.place(args[1], r))
        return context.get_dummy_value()

    return signature, code


def _advancing(height: int, join: Join = fused) -> Any:
    def step(
        typing: Any,
        out: Any,
        o: Any,
        left: Any,
        i: Any,
        right: Any,
        table: Any,
        rows: Any,
        factors: Any,
        f: Any,
        sums: Any,
    ) -> Any:
        return _advance(height, join, out, left, right, table, rows, factors, sums)

    return intrinsic(step)


advance = _advancing(TALL)
"""``out[o + r] = factors[f + r] · (left[i + r] right) ∘ table[rows[o + r]]`` for r < `TALL`, and
``sums[o + r]``, what each row adds up to."""
advance_one = _advancing(1)
"""`advance` of a single row."""
advance_best = _advancing(TALL, largest)
"""`advance` with the largest product in place of their sum."""
advance_best_one = _advancing(1, largest)
"""`advance_best` of a single row."""


def _retreat(height: int, later: Any, right: Any, alpha: Any, table: Any, *others: Any) -> Any:
    rows, shares, into, factors, out = others
    size = types.intp
    given = (later, size, right, alpha, table, rows, shares, into, factors, out, size)
    signature = types.void(*given)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, moves, forward, emissions, counts, target = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 3, 4, 6, 9)
        )
        numbers, places, scales = (
            Vector(context, builder, signature.args[i], args[i]) for i in (5, 7, 8)
        )
        reached, here = Rows.from_(forward, args[1], height), Rows.from_(target, args[10], height)
        emitted = Rows.listed(emissions, numbers, args[1], height)
        sums = Rows.listed(counts, places, args[1], height)
        scale = [splat(builder, scales.load(args[10], r)) for r in range(height)]
        nothing = zeros(target.vector)

        def use(r: int, at: Any, beta: Any) -> None:
            alpha = reached.load(r, at)
            value = builder.fmul(builder.fmul(emitted.load(r, at), beta), scale[r])
            possible = builder.fcmp_ordered(">", alpha, nothing)
            here.store(builder.select(possible, value, nothing), r, at)
            share = builder.fmul(alpha, beta)
            if share.type != counts.vector:
                share = builder.fpext(share, counts.vector)
            sums.store(builder.fadd(sums.load(r, at), share), r, at)

        over_products(Rows.from_(source, args[1], height), moves, height, use)
        return context.get_dummy_value()

    return signature, code


def _retreating(height: int) -> Any:
    def step(
        typing: Any,
        later: Any,
        i: Any,
        right: Any,
        alpha: Any,
        table: Any,
        rows: Any,
        shares: Any,
        into: Any,
        factors: Any,
        out: Any,
        o: Any,
    ) -> Any:
        return _retreat(height, later, right, alpha, table, rows, shares, into, factors, out)

    return intrinsic(step)


retreat = _retreating(TALL)
"""With β = later[i + r] right, add α ∘ β to ``shares[into[i + r]]``, for r < `TALL`;
``out[o + r] = factors[o + r] · table[rows[i + r]] ∘ β`` where α = alpha[i + r] is not zero:
elsewhere it is never needed, and might be too large a number."""
retreat_one = _retreating(1)
"""`retreat` of a single row."""


# Forward and backward over packs of sentences, in lockstep: a matrix product a position.
#
# The sentences of a pack go side by side, the longest first: at position i those that are so long
# are the first n_i of them. Rows of matrices are tokens, position after position; ``begins[i]`` is
# the first row of position i. With emissions E, transitions A and the chances of ending s,
#
#     α_i = (α_{i−1} A / c_{i−1}) ∘ E_i      Y_{i−1} = E_i ∘ β_i / c_{i−1}      β_{i−1} = Y_{i−1} Aᵀ
#
# c_i being what α_i adds up to: p(x_i | what was before) (Rabiner 1989). At the end β = s / Σ α s,
# so that γ = α ∘ β are posteriors, and αᵀ Y ∘ A, one product for all rows, the expected
# transitions. Whoever weighs a sentence weighs its last β: all else follows. Each step goes through
# memory once (`softcount.hmm.kernels.packs`).
#
# A pack that is too long for memory is cut into segments: α is kept at their borders, and worked
# out a second time when they are gone through backwards.


NEAR, TOGETHER = 32, 1024
"""So many rows are counted at a time, to be near; and so many together, before sums are added to
those of double precision."""


class Chain(NamedTuple):
    """A hidden Markov model: ``start`` (K,), ``moves`` (K, K) and its transpose, ``stop`` (K,).

    Without a stop distribution, ``stop`` is one everywhere. Rows are padded: see `padded`.
    """

    start: Array
    moves: Array
    back: Array
    stop: Array


class Emitted(NamedTuple):
    """p(token | state) of row r is ``table[rows[r]]``; padded."""

    table: Array
    rows: Array


class Tally(NamedTuple):
    """What is counted: ``shares[into[r]]`` gets the posterior of row r, ``logs`` log p of each
    sentence; ``moves``, still to be multiplied by the model's, ``start`` and ``stop`` are sums."""

    shares: Array
    into: Array
    logs: Array
    start: Array
    moves: Array
    stop: Array


def width(n_states: int) -> int:
    """How long a row is when it is padded to whole vectors.

    >>> width(1), width(8), width(45)
    (8, 8, 48)
    """
    return -(-n_states // WIDTH) * WIDTH


def padded(table: Array, dtype: Any) -> Array:
    """Rows followed by zeros, up to whole vectors."""
    wide = np.zeros((*table.shape[:-1], width(table.shape[-1])), dtype)
    wide[..., : table.shape[-1]] = table
    return wide


class Room(NamedTuple):
    """Where a segment is worked on.

    ``alpha``, ``later``   α and Y of its rows
    ``scales``, ``inverse``  c, and 1 / c (0 of what counts as impossible)
    ``before``             α / c of the position before it, a row for each sentence
    ``handed``             what it hands on to that position: E ∘ β
    ``ones``               factors for both
    """

    alpha: Array
    later: Array
    scales: Array
    inverse: Array
    before: Array
    handed: Array
    ones: Array


@njit
def _room(rows: int, lanes: int, like: Array) -> Room:
    k = like.shape[1]
    return Room(
        np.empty((rows, k), like.dtype),
        np.empty((rows, k), like.dtype),
        np.empty(rows, like.dtype),
        np.empty(rows, like.dtype),
        np.empty((lanes, k), like.dtype),
        np.empty((lanes, k), like.dtype),
        np.ones(lanes, like.dtype),
    )


@merged
def _inverse(number: Any, like: Array) -> Any:
    """1 / number; 0 of what counts as impossible."""
    one, nothing = like.dtype.type(1.0), like.dtype.type(0.0)
    return one / number if number >= np.finfo(like.dtype).tiny else nothing


@lean
def _forward(
    begins: Array, is_first: bool, best: bool, chain: Chain, emitted: Emitted, at: Room
) -> None:
    """α and c of a segment; those of best paths have the largest product in place of the sum."""
    alpha, scales, inverse = at.alpha, at.scales, at.inverse
    text = (chain.moves, emitted.table, emitted.rows)
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        whole = b - (b - a) % TALL
        if i == 0 and is_first:
            _begin(b, chain.start, emitted, at)
        else:
            left, factors = (alpha, inverse) if i else (at.before, at.ones)
            back = begins[i] - begins[i - 1] if i else 0
            for r in range(a, whole, TALL):
                if best:
                    advance_best(alpha, r, left, r - back, *text, factors, r - back, scales)
                else:
                    advance(alpha, r, left, r - back, *text, factors, r - back, scales)
            for r in range(whole, b):
                if best:
                    advance_best_one(alpha, r, left, r - back, *text, factors, r - back, scales)
                else:
                    advance_one(alpha, r, left, r - back, *text, factors, r - back, scales)
        for r in range(a, b):
            inverse[r] = _inverse(scales[r], alpha)


@lean
def _begin(n: int, start: Array, emitted: Emitted, at: Room) -> None:
    """α and c of first positions."""
    for r in range(n):
        total = start.dtype.type(0.0)
        for k in range(len(start)):
            at.alpha[r, k] = start[k] * emitted.table[emitted.rows[r], k]
            total += at.alpha[r, k]
        at.scales[r] = total


@njit
def _note(begins: Array, order: Array, at: Room, logs: Array) -> None:
    """Add log c of a segment's tokens to log p of their sentences."""
    tiny = np.finfo(at.scales.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        for r in range(a, b):
            logs[order[r - a]] += math.log(at.scales[r]) if at.scales[r] >= tiny else -np.inf


@njit
def _note_ends(
    begins: Array, ahead: int, order: Array, chain: Chain, at: Room, logs: Array
) -> None:
    """Add log Σ α s / c of sentences that end in a segment; ``ahead`` go on behind it."""
    tiny = np.finfo(at.scales.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a + on, b):
            total = _ending(r, at.alpha, chain.stop) * at.inverse[r]
            logs[order[r - a]] += math.log(total) if total >= tiny else -np.inf


@lean
def _ending(r: int, alpha: Array, stop: Array) -> Any:
    """Σ α s."""
    total = alpha.dtype.type(0.0)
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * stop[k]
    return total


@lean
def _keep(begins: Array, at: Room, kept: Array) -> None:
    """α / c of a segment's last position."""
    first = begins[-2] - begins[0]
    for r in range(begins[-1] - begins[-2]):
        for k in range(kept.shape[1]):
            kept[r, k] = at.alpha[first + r, k] * at.inverse[first + r]


@lean
def _backward(
    begins: Array,
    ahead: int,
    order: Array,
    weights: Array,
    chain: Chain,
    emitted: Emitted,
    into: Array,
    at: Room,
    tally: Tally,
) -> None:
    """Y of a segment; what it hands on; posteriors, and those of last tokens.

    ``ahead`` of the sentences go on behind the segment: what these handed on is in ``handed``.
    """
    last = begins[-2] - begins[0]
    for r in range(last, last + ahead):
        for k in range(at.later.shape[1]):
            at.later[r, k] = at.handed[r - last, k] * at.inverse[r]
    text = (chain.back, at.alpha, emitted.table, emitted.rows, tally.shares, into)
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        back = begins[i] - begins[i - 1] if i else 0
        out, factors = (at.later, at.inverse) if i else (at.handed, at.ones)
        whole = a + on - on % TALL
        for r in range(a, whole, TALL):
            retreat(at.later, r, *text, factors, out, r - back)
        for r in range(whole, a + on):
            retreat_one(at.later, r, *text, factors, out, r - back)
        for r in range(a + on, b):
            weight = weights[order[r - a]]
            _end(
                r, weight, chain.stop, emitted, into[r], factors[r - back], out, r - back, at, tally
            )


@lean
def _end(
    r: int,
    weight: float,
    stop: Array,
    emitted: Emitted,
    target: int,
    factor: Any,
    out: Array,
    o: int,
    at: Room,
    tally: Tally,
) -> None:
    """What `retreat` does, of a sentence's last token."""
    alpha, nothing = at.alpha, at.alpha.dtype.type(0.0)
    scale = _inverse(_ending(r, alpha, stop), alpha) * alpha.dtype.type(weight)
    for k in range(len(stop)):
        beta = stop[k] * scale
        tally.shares[target, k] += alpha[r, k] * beta
        tally.stop[k] += alpha[r, k] * beta
        value = emitted.table[emitted.rows[r], k] * beta * factor
        out[o, k] = value if alpha[r, k] > nothing else nothing
        at.later[r, k] = nothing


@lean
def _count(n: int, at: Room, met: Array, moves: Array) -> None:
    """Add αᵀ Y of n rows to moves."""
    for first in range(0, n, TOGETHER):
        met[:] = 0.0
        for t in range(first, min(first + TOGETHER, n), NEAR):
            for i in range(0, len(met), SIDE):
                add_cross(met, i, at.alpha, i, at.later, t, min(NEAR, n - t))
        for k in range(len(met)):
            for j in range(len(met)):
                moves[k, j] += met[k, j]


@njit
def room_for(first: int, last: int, packs: Packs, most: int, chain: Chain) -> Room:
    """Room for any segment of some packs."""
    return _room(*largest_segment(first, last, packs, most), chain.moves)


@njit
def forth(
    begins: Array,
    cuts: Array,
    order: Array,
    best: bool,
    chain: Chain,
    emitted: Emitted,
    at: Room,
    logs: Array,
) -> Array:
    """Go forward over a pack, segment by segment; gives α / c before each of them.

    The ends of best paths are not added to ``logs``.
    """
    kept = np.empty((len(cuts) - 1, *at.before.shape), at.before.dtype)
    for s in range(len(cuts) - 1):
        own, ahead = at_segment(s, False, begins, cuts, kept, best, chain, emitted, at)
        _note(own, order, at, logs)
        if not best:
            _note_ends(own, ahead, order, chain, at, logs)
        if s + 2 < len(cuts):
            _keep(own, at, kept[s + 1])
    return kept


@njit
def at_segment(
    s: int,
    is_there: bool,
    begins: Array,
    cuts: Array,
    kept: Array,
    best: bool,
    chain: Chain,
    emitted: Emitted,
    at: Room,
) -> tuple[Array, int]:
    """Have α of a segment at hand, unless it ``is_there`` already.

    Gives the borders of its positions, and how many sentences go on behind it.
    """
    own, ahead = segment(begins, cuts, s)
    if not is_there:
        at.before[:] = kept[s]
        text = Emitted(emitted.table, emitted.rows[own[0] : own[-1]])
        _forward(own, s == 0, best, chain, text, at)
    return own, ahead


@njit
def gone_through(
    first: int,
    last: int,
    packs: Packs,
    chain: Chain,
    emitted: Emitted,
    weights: Array,
    most: int,
    tally: Tally,
    counting: bool,
) -> None:
    """Packs ``first`` to ``last``: log p of every sentence and, if wanted, what is to be counted.

    ``weights`` are those of sentences; no segment has more rows than ``most``, if it can be helped.
    """
    met = np.empty((chain.moves.shape[1], chain.moves.shape[1]), chain.moves.dtype)
    at = room_for(first, last, packs, most, chain)
    for p in range(first, last):
        begins, order = pack(packs, p)
        cuts = segments(begins, most)
        kept = forth(begins, cuts, order, False, chain, emitted, at, tally.logs)
        if not counting:
            continue
        for s in range(len(cuts) - 2, -1, -1):
            is_last = s + 2 == len(cuts)  # where α still is what it was
            own, ahead = at_segment(s, is_last, begins, cuts, kept, False, chain, emitted, at)
            text = Emitted(emitted.table, emitted.rows[own[0] : own[-1]])
            into = tally.into[own[0] : own[-1]]
            _backward(own, ahead, order, weights, chain, text, into, at, tally)
            _count(own[-1] - own[0], at, met, tally.moves)
        for r in range(begins[1] - begins[0]):
            for k in range(len(chain.start)):
                tally.start[k] += chain.start[k] * at.handed[r, k]


# Best paths through packs of sentences, and draws of paths: see `softcount.hmm.kernels.packs`.
#
# A path is found from the last token back to the first: before state z there is the state k with
# the largest α(k) A(k, z), or one drawn in proportion to it.


@njit
def traced(
    first: int,
    last: int,
    packs: Packs,
    chain: Chain,
    emitted: Emitted,
    most: int,
    best: bool,
    numbers: Array,
    seed: Any,
    logs: Array,
    paths: Array,
) -> None:
    """Paths (samples, tokens) of packs ``first`` to ``last``; ``logs`` of each sentence.

    The best one (Viterbi 1967), ``logs`` being log p(path, sentence); or drawn by forward filtering
    and backward sampling, ``logs`` being log p(sentence). A draw depends on the seed, the
    sentence's number and the sample's alone.
    """
    at = room_for(first, last, packs, most, chain)
    lanes, ends = len(at.before), chain.stop.reshape(1, -1)
    states = np.empty((len(paths), lanes), np.int64)
    streams = np.empty((len(paths), lanes), np.uint64)
    for p in range(first, last):
        begins, order = pack(packs, p)
        for s in range(len(paths)):
            for lane in range(len(order)):
                streams[s, lane] = item_stream(item_stream(seed, numbers[order[lane]]), s)
        cuts = segments(begins, most)
        kept = forth(begins, cuts, order, best, chain, emitted, at, logs)
        for s in range(len(cuts) - 2, -1, -1):
            is_last = s + 2 == len(cuts)  # where α still is what it was
            own, ahead = at_segment(s, is_last, begins, cuts, kept, best, chain, emitted, at)
            tokens = packs.tokens[own[0] : own[-1]]
            if best:
                _note_best_ends(own, ahead, order, chain.stop, at, logs)
            for n in range(len(paths)):
                _trace(
                    own, ahead, best, chain.back, ends, at, tokens, states[n], streams[n], paths[n]
                )


@lean
def _trace(
    begins: Array,
    ahead: int,
    best: bool,
    back: Array,
    ends: Array,
    at: Room,
    tokens: Array,
    states: Array,
    streams: Array,
    path: Array,
) -> None:
    """States of a segment's tokens; ``states`` are those of the position behind it, and before."""
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a, b):
            lane = r - a
            if lane < on:
                table, row = back, states[lane]
            else:
                table, row = ends, 0
            if best:
                state = _best(r, at.alpha, row, table)
            else:
                state = _drawn(r, at.alpha, row, table, uniform(streams, lane))
            states[lane] = path[tokens[r]] = state


@merged
def _best(r: int, alpha: Array, row: int, table: Array) -> int:
    """The first k with the largest α(k) · table[row, k]."""
    top, found = alpha.dtype.type(-1.0), 0
    for k in range(alpha.shape[1]):
        if alpha[r, k] * table[row, k] > top:
            top, found = alpha[r, k] * table[row, k], k
    return found


@merged
def _drawn(r: int, alpha: Array, row: int, table: Array, chance: float) -> int:
    """k in proportion to α(k) · table[row, k]."""
    total = 0.0
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * table[row, k]
    left, found = chance * total, 0
    for k in range(alpha.shape[1]):
        weight = alpha[r, k] * table[row, k]
        if weight > 0.0:
            found = k
            left -= weight
            if left < 0.0:
                break
    return found


@njit
def _note_best_ends(
    begins: Array, ahead: int, order: Array, stop: Array, at: Room, logs: Array
) -> None:
    """Add log max α s / c of sentences that end in a segment; ``ahead`` go on behind it."""
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a + on, b):
            top = 0.0
            for k in range(len(stop)):
                top = max(top, at.alpha[r, k] * stop[k])
            top *= at.inverse[r]
            logs[order[r - a]] += math.log(top) if top > 0.0 else -np.inf
