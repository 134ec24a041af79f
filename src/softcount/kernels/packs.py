"""Forward and backward over packs of sentences, in lockstep: a matrix product a position.

The sentences of a pack go side by side, the longest first: at position i those that are so long are
the first n_i of them. Rows of matrices are tokens, position after position; ``begins[i]`` is the
first row of position i. With emissions E, transitions A and the chances of ending s,

    α_i = (α_{i−1} A / c_{i−1}) ∘ E_i      Y_{i−1} = E_i ∘ β_i / c_{i−1}      β_{i−1} = Y_{i−1} Aᵀ

c_i being what α_i adds up to: p(x_i | what was before) (Rabiner 1989). At the end β = s / Σ α s, so
that γ = α ∘ β are posteriors, and αᵀ Y ∘ A, one product for all rows, the expected transitions.
Whoever weighs a sentence weighs its last β: all else follows. Each step goes through memory once
(`softcount.kernels.chain_steps`).

A pack that is too long for memory is cut into segments: α is kept at their borders, and worked out
a second time when they are gone through backwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.chain_steps import (
    advance,
    advance_best,
    advance_best_one,
    advance_one,
    retreat,
    retreat_one,
)
from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.lanes import WIDTH
from softcount.kernels.packing import Packs, largest, pack, segment, segments
from softcount.kernels.products import SIDE, TALL, add_cross
from softcount.types import Array

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
    return _room(*largest(first, last, packs, most), chain.moves)


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
