"""Forward and backward through lists of states, a sentence at a time.

A token has *cells*: one for each pair of a state of the token before and one of its own (order 2),
or for each of its states (order 1). Of order 2 (Rabiner 1989, with pairs of states for states),

    α_i(u, v) = f_i E_i(v) Σ_t α_{i−1}(t, u) A(t, u, v)
    β_{i−1}(t, u) = Σ_v A(t, u, v) f_i E_i(v) β_i(u, v)

The factors f are mostly one: chances are scaled when they have become small or large, by a power of
two, which changes no digit. Order 1 is the same without u, and the first token of order 2 without
t: whoever is left out has a list of one state, number zero, the last of ``states``.

Where t and v may be any state, the sums are those of `softcount.kernels.weighed_rows`. For these, A
has rows by (u, t) when going forward, ``ahead``, and by (u, v) when going backward, ``back``; the
last K rows, of order 2, are those of first tokens in both. Helpers take numbers and whole arrays,
and do not choose between arrays: else references to these would be counted.
"""

from __future__ import annotations

import math

import numpy as np

from softcount.kernels.jit import lean, merged
from softcount.kernels.weighed_rows import add_weighed, largest_to, sum_beside, sum_to
from softcount.types import Array

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
