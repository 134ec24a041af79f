"""Compiled loops over sentences whose tokens have lists of possible states.

Sums of weighed rows of a matrix, and weighed copies of one row added to it.

Rows are padded with zeros to whole vectors, and the order of all sums is written down: see
`softcount.kernels.lanes`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils

from softcount.hmm.kernels.packs import Tally
from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.lanes import WIDTH, Matrix, added, const, fold, fused, in_blocks, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.products import Join, largest, zeros
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

BLOCK = 3
"""So many vectors of a row go side by side: enough to hide the adder's latency."""


class _Numbers:
    """Some numbers of a 1-D array: from ``first`` on, each ``step`` further."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, first: Any) -> None:
        self.builder, self.first = builder, first
        self.data = context.make_array(kind)(context, builder, array).data

    def everywhere(self, j: Any, step: Any) -> Any:
        """Number j in all lanes."""
        builder = self.builder
        place = builder.add(self.first, builder.mul(j, step))
        return splat(builder, builder.load(builder.gep(self.data, [place])))

    def store(self, vector: Any, at: Any) -> None:
        """As vector ``at`` of the numbers."""
        builder = self.builder
        place = builder.add(self.first, builder.mul(at, const(WIDTH)))
        begin = builder.gep(self.data, [place])
        builder.store(vector, builder.bitcast(begin, vector.type.as_pointer()), align=8)


def _joined(join: Join, multiplied: bool, *kinds: Any) -> Any:
    """The rows joined go to ``out``, times ``other`` or not; what they are times it, added up."""
    size = types.intp
    out, weights, table, other = kinds
    given = (out, size, weights, size, size, table, size, size, other, size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args
        right, factors = (Matrix(context, builder, kind[i], args[i]) for i in (5, 8))
        target, numbers = (
            _Numbers(context, builder, kind[i], args[i], args[i + 1]) for i in (0, 2)
        )
        begin, beside = right.row(args[6]), factors.row(args[9])
        nothing = zeros(right.vector)
        found = cgutils.alloca_once_value(builder, nothing)

        def block(at: Any, count: int) -> None:
            places = [builder.add(at, const(c)) for c in range(count)]
            sums = [cgutils.alloca_once(builder, right.vector) for _ in places]
            for total in sums:
                builder.store(nothing, total)
            with cgutils.for_range(builder, args[7]) as loop:
                row = builder.gep(begin, [builder.mul(loop.index, right.vectors)])
                weight = numbers.everywhere(loop.index, args[4])
                for place, total in zip(places, sums, strict=True):
                    value = builder.load(builder.gep(row, [place]), align=8)
                    builder.store(join(builder, weight, value, builder.load(total)), total)
            for place, total in zip(places, sums, strict=True):
                value = builder.load(total)
                factor = builder.load(builder.gep(beside, [place]), align=8)
                product = builder.fmul(value, factor)
                target.store(product if multiplied else value, place)
                builder.store(builder.fadd(builder.load(found), product), found)

        in_blocks(builder, right.vectors, block, BLOCK)
        return fold(builder, builder.load(found), added)

    return types.float64(*given), code


def _joining(join: Join, multiplied: bool) -> Any:
    def step(
        typing: Any,
        out: Any,
        o: Any,
        weights: Any,
        w: Any,
        step: Any,
        table: Any,
        r: Any,
        n: Any,
        other: Any,
        q: Any,
    ) -> Any:
        return _joined(join, multiplied, out, weights, table, other)

    return intrinsic(step)


sum_to = _joining(fused, multiplied=True)
"""``other[q] ∘ Σ_j weights[w + j step] · table[r + j]``, j < n, to ``out`` from o on; gives what it
adds up to. As many numbers are written as a row has, its padding included."""
largest_to = _joining(largest, multiplied=True)
"""`sum_to` with the largest product in place of their sum."""
sum_beside = _joining(fused, multiplied=False)
"""`sum_to`, but ``out`` gets the sum before it is multiplied by ``other[q]``."""


@intrinsic
def add_weighed(
    typing: Any, table: Any, r: Any, n: Any, weights: Any, w: Any, step: Any, row: Any, q: Any
) -> Any:
    """``table[r + j] += weights[w + j step] · row[q]`` for j < n."""
    size = types.intp
    signature = types.void(table, size, size, weights, size, size, row, size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (Matrix(context, builder, signature.args[i], args[i]) for i in (0, 6))
        numbers = _Numbers(context, builder, signature.args[3], args[3], args[4])
        begin, given = target.row(args[1]), source.row(args[7])

        def block(at: Any, count: int) -> None:
            places = [builder.add(at, const(c)) for c in range(count)]
            values = [builder.load(builder.gep(given, [place]), align=8) for place in places]
            with cgutils.for_range(builder, args[2]) as loop:
                own = builder.gep(begin, [builder.mul(loop.index, target.vectors)])
                weight = numbers.everywhere(loop.index, args[5])
                for place, value in zip(places, values, strict=True):
                    here = builder.gep(own, [place])
                    total = fused(builder, weight, value, builder.load(here, align=8))
                    builder.store(total, here, align=8)

        in_blocks(builder, target.vectors, block, BLOCK)
        return context.get_dummy_value()

    return signature, code


# Forward and backward through lists of states, a sentence at a time.
#
# A token has *cells*: one for each pair of a state of the token before and one of its own (order
# 2), or for each of its states (order 1). Of order 2 (Rabiner 1989, with pairs of states for
# states),
#
#     α_i(u, v) = f_i E_i(v) Σ_t α_{i−1}(t, u) A(t, u, v)
#     β_{i−1}(t, u) = Σ_v A(t, u, v) f_i E_i(v) β_i(u, v)
#
# The factors f are mostly one: chances are scaled when they have become small or large, by a power
# of two, which changes no digit. Order 1 is the same without u, and the first token of order 2
# without t: whoever is left out has a list of one state, number zero, the last of ``states``.
#
# Where t and v may be any state, the sums are those of `softcount.hmm.kernels.lists`. For these,
# A has rows by (u, t) when going forward, ``ahead``, and by (u, v) when going backward, ``back``;
# the last K rows, of order 2, are those of first tokens in both. Helpers take numbers and whole
# arrays, and do not choose between arrays: else references to these would be counted.


SMALL, LARGE = 1e-20, 1e20
"""Chances are scaled if they add up to less, or to more."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is no number."""


@merged
def origins(
    i: int, order: int, k: int, first: int, sets: Array, indptr: Array, nobody: int
) -> tuple[int, int, int, int, int, int]:
    """Where token i's lists of t and of u begin and end; row ``base + stride u`` is u's first.

    ``nobody`` is the place of a list of one state.
    """
    low, high = indptr[sets[first + i]], indptr[sets[first + i] + 1]
    if order == 1:
        return low, high, nobody, nobody + 1, 0, k
    if i == 0:
        return nobody, nobody + 1, low, high, k * k, 1
    before = sets[first + i - 1]
    return indptr[before], indptr[before + 1], low, high, 0, k


@merged
def _advance(
    k: int,
    t0: int,
    t1: int,
    u0: int,
    u1: int,
    base: int,
    stride: int,
    v0: int,
    v1: int,
    states: Array,
    ahead: Array,
    best: bool,
    before: int,
    begin: int,
    alpha: Array,
    chances: Array,
) -> float:
    """α of a token's cells from that of the token before; gives what it adds up to."""
    total, n_u, n_v = 0.0, u1 - u0, v1 - v0
    for u in range(n_u):
        row, here = base + stride * states[u0 + u], begin + u * n_v
        if t1 - t0 == k and n_v == k:
            if best:
                total += largest_to(alpha, here, alpha, before + u, n_u, ahead, row, k, chances, 0)
            else:
                total += sum_to(alpha, here, alpha, before + u, n_u, ahead, row, k, chances, 0)
            continue
        for v in range(n_v):
            reached, place = 0.0, before + u
            for t in range(t0, t1):
                chance = alpha[place] * ahead[row + states[t], states[v0 + v]]
                reached = max(reached, chance) if best else reached + chance
                place += n_u
            alpha[here + v] = reached * chances[0, v]
            total += alpha[here + v]
    return total


@merged
def _scale(exponent: int, begin: int, end: int, alpha: Array) -> float:
    """Divide chances by a power of two; gives the factor."""
    factor = math.ldexp(1.0, -exponent)
    for c in range(begin, end):
        alpha[c] *= factor
    return factor


@lean
def forward(
    first: int,
    n: int,
    order: int,
    start: Array,
    ahead: Array,
    best: bool,
    emissions: Array,
    rows: Array,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    begins: Array,
    factors: Array,
    chances: Array,
) -> float:
    """α of a sentence, or, of its ``best`` paths, the same with max in place of Σ.

    Gives Σ log 1 / f, −inf if the sentence is impossible.
    """
    k, nobody, begin, power = len(start), len(states) - 1, 0, 0
    for i in range(n):
        v0, v1 = indptr[sets[first + i]], indptr[sets[first + i] + 1]
        begins[i], factors[i], total = begin, 1.0, 0.0
        for v in range(v1 - v0):
            chances[0, v] = emissions[rows[first + i], states[v0 + v]]
        if i == 0:
            for v in range(v1 - v0):
                alpha[v] = start[states[v0 + v]] * chances[0, v]
                total += alpha[v]
            begin = v1 - v0
        else:
            t0, t1, u0, u1, base, stride = origins(i - 1, order, k, first, sets, indptr, nobody)
            before = begins[i - 1]
            total = _advance(
                k, t0, t1, u0, u1, base, stride, v0, v1, states, ahead, best, before, begin,
                alpha, chances,
            )  # fmt: skip
            begin += (u1 - u0) * (v1 - v0)
        if not SMALL <= total <= LARGE:
            if not TINY <= total < np.inf:
                return -np.inf
            exponent = math.frexp(total)[1] - 1  # so that they add up to one, or up to two
            factors[i] = _scale(exponent, begins[i], begin, alpha)
            power += exponent
    begins[n] = begin
    return power * math.log(2.0)


@merged
def ending(
    first: int,
    n: int,
    order: int,
    k: int,
    stop: Array,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    begin: int,
    weights: Array,
) -> float:
    """α s of the last token's cells, by (t, u), and what it adds up to."""
    t0, t1, u0, u1, base, _ = origins(n - 1, order, k, first, sets, indptr, len(states) - 1)
    c, total, side = 0, 0.0, k if order == 2 else 1
    for t in range(t0, t1):
        for u in range(u0, u1):
            weights[c] = alpha[begin + c] * stop[base + side * states[t] + states[u]]
            total += weights[c]
            c += 1
    return total


@merged
def _transpose(begin: int, n_t: int, n_u: int, alpha: Array, columns: Array) -> None:
    """α of a token's cells, by u."""
    c = begin
    for t in range(n_t):
        for u in range(n_u):
            columns[u, t] = alpha[c]
            c += 1


@merged
def _ended(
    t0: int,
    t1: int,
    u: int,
    row: int,
    side: int,
    scale: float,
    stop: Array,
    states: Array,
    columns: Array,
    beta: Array,
    ends: Array,
) -> float:
    """β(·, u) of a last token; gives Σ_t α β. ``row`` is that of the first t, in `Moves`."""
    total = 0.0
    for t in range(t1 - t0):
        own = row + side * states[t0 + t]
        beta[t] = stop[own] * scale
        ends[own] += beta[t] * columns[u, t]
        total += beta[t] * columns[u, t]
    return total


@merged
def _retreat(
    t0: int,
    t1: int,
    u: int,
    base: int,
    row: int,
    v0: int,
    v1: int,
    states: Array,
    back: Array,
    later: Array,
    place: int,
    columns: Array,
    beta: Array,
    moved: Array,
) -> float:
    """β(·, u) of a token from f E β of the next; gives Σ_t α β.

    Adds the moves between them, still to be multiplied by the table.
    """
    for t in range(t1 - t0):
        beta[t] = 0.0
    for v in range(v1 - v0):
        weight, line, shift = later[place + v * len(beta)], row + states[v0 + v], 0
        if base > 0:
            line, shift = row, states[v0 + v]
        for t in range(t1 - t0):
            beta[t] += weight * back[line, shift + states[t0 + t]]
            moved[line, shift + states[t0 + t]] += weight * columns[u, t]
    total = 0.0
    for t in range(t1 - t0):
        total += beta[t] * columns[u, t]
    return total


@merged
def _hand_on(
    n: int, u: int, chance: float, columns: Array, beta: Array, later: Array, place: int
) -> None:
    """f E β(·, u), or zero where α is: there it is never needed, and might be too large."""
    for t in range(n):
        later[place + t] = beta[t] * chance if columns[u, t] >= TINY else 0.0


@merged
def _hand_on_each(
    t0: int,
    t1: int,
    line: int,
    target: int,
    factor: float,
    states: Array,
    emissions: Array,
    columns: Array,
    beta: Array,
    later: Array,
    place: int,
    shares: Array,
) -> None:
    """`_hand_on` of order 1, where a token's own states are t; adds up their posteriors too."""
    for t in range(t1 - t0):
        own = states[t0 + t]
        shares[target, own] += beta[t] * columns[0, t]
        chance = emissions[line, own] * factor if columns[0, t] >= TINY else 0.0
        later[place + t * len(beta)] = beta[t] * chance


@lean
def backward(
    first: int,
    n: int,
    order: int,
    scale: float,
    stop: Array,
    back: Array,
    emissions: Array,
    rows: Array,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    begins: Array,
    factors: Array,
    later: Array,
    columns: Array,
    beta: Array,
    shares: Array,
    into: Array,
    moved: Array,
    ends: Array,
) -> None:
    """Add posteriors, ends and expected moves to the tally; leaves f E β of the first token.

    ``scale`` is the sentence's weight over what its α s adds up to.
    """
    k, nobody, wide, v0, v1 = len(columns), len(states) - 1, len(beta), 0, 0
    for i in range(n - 1, -1, -1):
        t0, t1, u0, u1, base, stride = origins(i, order, k, first, sets, indptr, nobody)
        here, there = (i & 1) * k * wide, (1 - (i & 1)) * k * wide
        _transpose(begins[i], t1 - t0, u1 - u0, alpha, columns)
        line, target = rows[first + i], into[first + i]
        for u in range(u1 - u0):
            own = states[u0 + u]
            row, place = base + stride * own, there + u
            if i == n - 1:
                row, side = base + own, k if order == 2 else 1
                total = _ended(t0, t1, u, row, side, scale, stop, states, columns, beta, ends)
            elif t1 - t0 == k and v1 - v0 == k:
                add_weighed(moved, row, k, later, place, wide, columns, u)
                total = sum_beside(beta, 0, later, place, wide, back, row, k, columns, u)
            else:
                total = _retreat(
                    t0, t1, u, base, row, v0, v1, states, back, later, place, columns, beta, moved
                )
            if order == 2:
                shares[target, own] += total
                chance = emissions[line, own] * factors[i]
                _hand_on(t1 - t0, u, chance, columns, beta, later, here + u * wide)
            else:
                _hand_on_each(
                    t0, t1, line, target, factors[i], states, emissions, columns, beta, later,
                    here, shares,
                )  # fmt: skip
        v0, v1 = indptr[sets[first + i]], indptr[sets[first + i] + 1]


# Chains in which every token has a list of possible states, of order one or two.
#
# Where a dictionary leaves a few states to a token, most of a matrix product would be zeros. What
# is gone through here is what lists allow: see `softcount.hmm.kernels.lists`.


class Emitted(NamedTuple):
    """p(token | state) of token t: ``table[rows[t]]``; its states are those of set ``sets[t]``."""

    table: Array
    rows: Array
    sets: Array


class Lists(NamedTuple):
    """The states of set s are ``states[indptr[s]:indptr[s + 1]]``."""

    indptr: Array
    states: Array


class Moves(NamedTuple):
    """``start`` (K,), ``table`` (rows, K), ``stop`` (rows,); ``order`` is 1 or 2.

    Of order 2, row t K + u says what follows the states t and u, and the last K rows what follows
    a first state.
    """

    start: Array
    table: Array
    stop: Array
    order: int


@merged
def pitch(k: int) -> int:
    """How long a row of k numbers is when it is padded to whole vectors."""
    return -(-k // WIDTH) * WIDTH


@lean
def turned_table(moves: Moves) -> tuple[Array, Array]:
    """The moves by (u, t) and by (u, v)."""
    k = len(moves.start)
    ahead = np.zeros((len(moves.table), pitch(k)))
    back = np.zeros((len(moves.table), pitch(k)))
    n_u = k if moves.order == 2 else 1
    for t in range(k):
        for u in range(n_u):
            for v in range(k):
                ahead[u * k + t, v] = moves.table[t * n_u + u, v]
                back[u * k + v, t] = moves.table[t * n_u + u, v]
    for r in range(n_u * k, len(moves.table)):
        for v in range(k):
            ahead[r, v] = back[r, v] = moves.table[r, v]
    return ahead, back


@lean
def _add_turned(moved: Array, order: int, out: Array) -> None:
    """What was moved, by (u, v), to rows as those of `Moves`."""
    k = out.shape[1]
    n_u = k if order == 2 else 1
    for t in range(k):
        for u in range(n_u):
            for v in range(k):
                out[t * n_u + u, v] += moved[u * k + v, t]
    for r in range(n_u * k, len(out)):
        for v in range(k):
            out[r, v] += moved[r, v]


@lean
def room(
    first: int, last: int, indptr: Array, moves: Moves, emitted: Emitted, lists: Lists
) -> tuple[Array, Array, Array, Array]:
    """Room for α of a sentence, where its tokens' cells begin, factors and a token's chances."""
    longest = most = 0
    for s in range(first, last):
        cells, before = 0, 1
        for t in range(indptr[s], indptr[s + 1]):
            own = lists.indptr[emitted.sets[t] + 1] - lists.indptr[emitted.sets[t]]
            cells += own * before
            before = own if moves.order == 2 else 1
        longest, most = max(longest, indptr[s + 1] - indptr[s]), max(most, cells)
    wide = pitch(len(moves.start))
    alpha = np.empty(most + wide)  # the padding of one row is written over by the next
    return alpha, np.empty(longest + 1, np.int64), np.empty(longest), np.zeros((1, wide))


@lean
def gone_through(
    first: int,
    last: int,
    indptr: Array,
    moves: Moves,
    emitted: Emitted,
    lists: Lists,
    weights: Array,
    tally: Tally,
    counting: bool,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if wanted, what is to be counted."""
    k, order, states = len(moves.start), moves.order, np.append(lists.states, 0)
    ahead, back = turned_table(moves)
    desk, wide = room(first, last, indptr, moves, emitted, lists), pitch(k)
    alpha, begins, factors, _ = desk
    later, columns, beta = np.empty(2 * k * wide), np.zeros((k, wide)), np.empty(wide)
    moved = np.zeros(ahead.shape)
    text = (emitted.table, emitted.rows, emitted.sets, lists.indptr, states)
    passed = (alpha, begins, factors, later, columns, beta)
    found = (tally.shares, tally.into, moved, tally.stop)
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        tally.logs[s] = forward(begin, n, order, moves.start, ahead, False, *text, *desk)
        if tally.logs[s] == -np.inf:
            continue
        ends = (emitted.sets, lists.indptr, states, alpha, begins[n - 1], later)
        total = ending(begin, n, order, k, moves.stop, *ends)
        tally.logs[s] += math.log(total) if total >= TINY else -np.inf
        if counting and total >= TINY:
            scale, own = weights[s] / total, lists.indptr[emitted.sets[begin]]
            backward(begin, n, order, scale, moves.stop, back, *text, *passed, *found)
            for v in range(begins[1]):
                state = states[own + v]
                tally.start[state] += moves.start[state] * later[v * wide]
    if counting:
        _add_turned(moved, order, tally.moves)


# The best paths through lists of states, and draws of paths: see `softcount.hmm.kernels.lists`.
#
# Both go forward, keeping a number for each cell, and then back from the last token: to the state
# that is drawn, or to the one that the best path came from.


@merged
def _heaviest(weights: Array, n: int) -> int:
    """The first of n that weighs most."""
    taken = 0
    for c in range(n):
        if weights[c] > weights[taken]:
            taken = c
    return taken


@merged
def _drawn(weights: Array, n: int, chance: float) -> int:
    """One of n, in proportion to its weight, by a number that is drawn from [0, 1)."""
    left, taken, c = 0.0, 0, 0
    for j in range(n):
        left += weights[j]
    left *= chance
    while c < n and left >= 0.0:
        if weights[c] > 0.0:
            taken = c
            left -= weights[c]
        c += 1
    return taken


@lean
def _traced(
    first: int,
    n: int,
    order: int,
    k: int,
    cell: int,
    sample: int,
    ahead: Array,
    best: bool,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    begins: Array,
    weights: Array,
    stream: Array,
    paths: Array,
) -> None:
    """One path, from a cell of the last token back to the first token."""
    nobody = len(states) - 1
    low, high = indptr[sets[first + n - 1]], indptr[sets[first + n - 1] + 1]
    u, v = cell // (high - low), cell % (high - low)
    for i in range(n - 1, 0, -1):
        state = states[low + v]
        paths[sample, first + i] = state
        t0, t1, u0, u1, base, stride = origins(i - 1, order, k, first, sets, indptr, nobody)
        row, place = base + stride * states[u0 + u], begins[i - 1] + u
        for t in range(t1 - t0):
            weights[t] = alpha[place] * ahead[row + states[t0 + t], state]
            place += u1 - u0
        n_t = t1 - t0
        t = _heaviest(weights, n_t) if best else _drawn(weights, n_t, uniform(stream, 0))
        u, v = (t, u) if order == 2 else (0, t)
        low = indptr[sets[first + i - 1]]
    paths[sample, first] = states[low + v]


@lean
def _gone_through(
    first: int,
    last: int,
    indptr: Array,
    moves: Moves,
    emitted: Emitted,
    lists: Lists,
    best: bool,
    numbers: Array,
    seed: Any,
    logs: Array,
    paths: Array,
) -> None:
    """Paths (samples, tokens) that are drawn, or the best, and the logs of what they end at."""
    k, order, states = len(moves.start), moves.order, np.append(lists.states, 0)
    ahead, _ = turned_table(moves)
    desk = room(first, last, indptr, moves, emitted, lists)
    alpha, begins, _, _ = desk
    finals, weights, stream = np.empty(k * k), np.empty(k), np.empty(1, np.uint64)
    text = (emitted.table, emitted.rows, emitted.sets, lists.indptr, states)
    kept, way = (emitted.sets, lists.indptr, states, alpha), (begins, weights, stream, paths)
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        logs[s] = forward(begin, n, order, moves.start, ahead, best, *text, *desk)
        if logs[s] == -np.inf:
            continue
        total = ending(begin, n, order, k, moves.stop, *kept, begins[n - 1], finals)
        cells = begins[n] - begins[n - 1]
        if best:
            total = finals[_heaviest(finals, cells)]
        logs[s] += math.log(total) if total >= TINY else -np.inf
        if total >= TINY:
            stream[0] = item_stream(seed, numbers[s])
            for sample in range(len(paths)):
                if best:
                    cell = _heaviest(finals, cells)
                else:
                    cell = _drawn(finals, cells, uniform(stream, 0))
                _traced(begin, n, order, k, cell, sample, ahead, best, *kept, *way)


@njit
def draw(
    first: int,
    last: int,
    indptr: Array,
    moves: Moves,
    emitted: Emitted,
    lists: Lists,
    numbers: Array,
    seed: Any,
    logs: Array,
    paths: Array,
) -> None:
    """Paths (samples, tokens) drawn from their posterior; ``logs`` gets log p of each sentence.

    Forward filtering, backward sampling. A draw depends on the seed and the sentence's number.
    """
    text = (indptr, moves, emitted, lists)
    _gone_through(first, last, *text, False, numbers, seed, logs, paths)


@njit
def best(
    first: int,
    last: int,
    indptr: Array,
    moves: Moves,
    emitted: Emitted,
    lists: Lists,
    logs: Array,
    paths: Array,
) -> None:
    """The most probable path of each sentence (Viterbi 1967), and its log p(path, sentence)."""
    text = (indptr, moves, emitted, lists)
    numbers, alone = np.arange(last), paths.reshape((1, len(paths)))
    _gone_through(first, last, *text, True, numbers, np.uint64(0), logs, alone)


@njit
def count_paths(
    paths: Array, indptr: Array, weights: Array, n_states: int, order: int, tally: Tally
) -> None:
    """Add the states, moves, starts and ends of paths (samples, tokens), each by its share."""
    k = n_states
    for n in range(len(indptr) - 1):
        for s in range(len(paths)):
            share = weights[n] / len(paths)
            for t in range(indptr[n], indptr[n + 1]):
                state, i = paths[s, t], t - indptr[n]
                tally.shares[tally.into[t], state] += share
                if i == 0:
                    tally.start[state] += share
                    row = state if order == 1 else k * k + state
                else:
                    tally.moves[row, state] += share
                    row = state if order == 1 else paths[s, t - 1] * k + state
                if t + 1 == indptr[n + 1]:
                    tally.stop[row] += share
