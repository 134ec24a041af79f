"""Forward and backward over packs of sentences: a matrix product a position.

The sentences of a pack go in lockstep, the longest first: at position i those that are so long are
the first n_i of them. Rows of matrices are tokens, position after position; ``begins[i]`` is the
first row of position i. With emissions E, transitions A and the chances of ending s,

    α_i = (α_{i−1} A) ∘ E_i / c_i        Y_{i−1} = E_i ∘ β_i / c_i        β_{i−1} = Y_{i−1} Aᵀ

c_i being what makes α_i sum to one (Rabiner 1989). At the end β = s / Σ α s, so that γ = α ∘ β are
posteriors, and αᵀ Y ∘ A, one product for all rows, the expected transitions. Whoever weighs a
sentence weighs its last β: all else follows.

A pack that is too long for memory is cut into segments: α is kept at their borders, and worked out
a second time when they are gone through backwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import njit
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


class Chain(NamedTuple):
    """A hidden Markov model: ``start`` (K,), ``moves`` (K, K) and its transpose, ``stop`` (K,).

    Without a stop distribution, ``stop`` is one everywhere.
    """

    start: Array
    moves: Array
    back: Array
    stop: Array


class Emitted(NamedTuple):
    """p(token | state) of token t: ``table[rows[t]]``; ``allowed[sets[t]]`` says of which states.

    Set 0 allows all.
    """

    table: Array
    rows: Array
    sets: Array
    allowed: Array


class Tally(NamedTuple):
    """What is counted: ``shares[into[t]]`` gets the posterior of token t, ``logs`` log p of each
    sentence; ``moves``, still to be multiplied by the model's, ``start`` and ``stop`` are sums."""

    shares: Array
    into: Array
    logs: Array
    start: Array
    moves: Array
    stop: Array


class Room(NamedTuple):
    """Where a segment is worked on; ``handed`` goes from one segment to the one before it."""

    emit: Array
    alpha: Array
    later: Array
    beta: Array
    handed: Array
    scales: Array


@njit
def _room(rows: int, lanes: int, like: Array) -> Room:
    k = like.shape[1]
    return Room(
        np.empty((rows, k), like.dtype),
        np.empty((rows, k), like.dtype),
        np.empty((rows, k), like.dtype),
        np.empty((lanes, k), like.dtype),
        np.empty((lanes, k), like.dtype),
        np.empty(rows, like.dtype),
    )


@njit
def _load(emitted: Emitted, tokens: Array, into: Array) -> None:
    """The emissions of some tokens."""
    for r in range(len(tokens)):
        t = tokens[r]
        row, chosen = into[r], emitted.table[emitted.rows[t]]
        for k in range(len(row)):
            row[k] = chosen[k]
        if emitted.sets[t]:
            may = emitted.allowed[emitted.sets[t]]
            for k in range(len(row)):
                row[k] = row[k] if may[k] else row.dtype.type(0.0)


@njit
def _total(row: Array) -> Any:
    """Σ, four sums side by side."""
    a = b = c = d = row.dtype.type(0.0)
    whole = len(row) - len(row) % 4
    for k in range(0, whole, 4):
        a += row[k]
        b += row[k + 1]
        c += row[k + 2]
        d += row[k + 3]
    for k in range(whole, len(row)):
        a += row[k]
    return (a + b) + (c + d)


@njit
def _inverse(number: float, like: Array) -> Any:
    """1 / number; 0 of what counts as impossible."""
    return like.dtype.type(1.0 / number if number >= np.finfo(like.dtype).tiny else 0.0)


@njit
def _forward(begins: Array, chain: Chain, before: Array, at: Room) -> None:
    """α and c of a segment; ``before`` is α of the position before it, empty at the start."""
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        if i > 0:
            p = begins[i - 1] - begins[0]
            np.dot(at.alpha[p : p + b - a], chain.moves, at.alpha[a:b])
        elif len(before):
            np.dot(before[: b - a], chain.moves, at.alpha[a:b])
        else:
            at.alpha[a:b] = chain.start
        for r in range(a, b):
            row, emit = at.alpha[r], at.emit[r]
            for k in range(len(row)):
                row[k] *= emit[k]
            at.scales[r] = _total(row)
            factor = _inverse(at.scales[r], row)
            for k in range(len(row)):
                row[k] *= factor


@njit
def _note(begins: Array, order: Array, scales: Array, logs: Array) -> None:
    """Add log c of a segment's tokens to log p of their sentences."""
    tiny = np.finfo(scales.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        for r in range(a, b):
            logs[order[r - a]] += math.log(scales[r]) if scales[r] >= tiny else -np.inf


@njit
def _ending(row: Array, chain: Chain) -> Any:
    """Σ α s."""
    total = row.dtype.type(0.0)
    for k in range(len(row)):
        total += row[k] * chain.stop[k]
    return total


@njit
def _note_ends(
    begins: Array, ahead: int, order: Array, chain: Chain, at: Room, logs: Array
) -> None:
    """Add log Σ α s of sentences that end in a segment; ``ahead`` go on behind it."""
    tiny = np.finfo(at.alpha.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a + on, b):
            total = _ending(at.alpha[r], chain)
            logs[order[r - a]] += math.log(total) if total >= tiny else -np.inf


@njit
def _backward(
    begins: Array, ahead: int, is_first: bool, order: Array, weights: Array, chain: Chain, at: Room
) -> None:
    """γ in ``emit``, Y in ``later``; Y of the position before the segment is handed on.

    ``ahead`` of the sentences go on behind the segment: their Y was handed on.
    """
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        if i + 2 == len(begins):
            at.later[a : a + on] = at.handed[:on]
        if on:
            np.dot(at.later[a : a + on], chain.back, at.beta[:on])
        for r in range(a + on, b):
            row, beta = at.alpha[r], at.beta[r - a]
            factor = _inverse(_ending(row, chain), row) * row.dtype.type(weights[order[r - a]])
            for k in range(len(row)):
                beta[k] = chain.stop[k] * factor
            at.later[r] = row.dtype.type(0.0)
        before = at.handed if i == 0 else at.later[begins[i - 1] - begins[0] :]
        _share(a, b, not (is_first and i == 0), before, at)


@njit
def _share(a: int, b: int, hand_on: bool, before: Array, at: Room) -> None:
    """γ of the rows of a position; and Y of the position before it, unless there is none."""
    for r in range(a, b):
        row, beta, emit = at.alpha[r], at.beta[r - a], at.emit[r]
        if hand_on:
            factor, later = _inverse(at.scales[r], row), before[r - a]
            for k in range(len(row)):
                later[k] = emit[k] * beta[k] * factor
        for k in range(len(row)):
            emit[k] = row[k] * beta[k]


@njit
def _add(row: Array, into: Array) -> None:
    for k in range(len(row)):
        into[k] += row[k]


@njit
def _count(
    begins: Array, ahead: int, is_first: bool, tokens: Array, at: Room, tally: Tally, met: Array
) -> None:
    """Add the posteriors and expected transitions of a segment to the tally."""
    n = begins[-1] - begins[0]
    for r in range(n):
        _add(at.emit[r], tally.shares[tally.into[tokens[r]]])
    if is_first:
        for r in range(begins[1] - begins[0]):
            _add(at.emit[r], tally.start)
    for i in range(len(begins) - 1):
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(begins[i] - begins[0] + on, begins[i + 1] - begins[0]):
            _add(at.emit[r], tally.stop)
    np.dot(at.alpha[:n].T, at.later[:n], met)
    for k in range(len(met)):
        _add(met[k], tally.moves[k])


@njit
def _segments(begins: Array, most: int) -> Array:
    """Where segments begin, and the end: so many rows each, and one position at least."""
    cuts = [0]
    for i in range(1, len(begins)):
        if begins[i] - begins[cuts[-1]] > most and i - 1 > cuts[-1]:
            cuts.append(i - 1)
    cuts.append(len(begins) - 1)
    return np.array(cuts)


@njit
def _largest(first: int, last: int, packs: Packs, most: int) -> tuple[int, int]:
    """The most rows of a segment, and the most sentences of a pack."""
    rows = lanes = 0
    for p in range(first, last):
        begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
        cuts = _segments(begins, most)
        for s in range(len(cuts) - 1):
            rows = max(rows, begins[cuts[s + 1]] - begins[cuts[s]])
        lanes = max(lanes, packs.sentences[p + 1] - packs.sentences[p])
    return rows, lanes


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
    met = np.empty_like(chain.moves)
    nothing = np.empty((0, len(chain.start)), chain.start.dtype)
    at = _room(*_largest(first, last, packs, most), chain.moves)
    for p in range(first, last):
        begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
        order = packs.order[packs.sentences[p] : packs.sentences[p + 1]]
        cuts = _segments(begins, most)
        n_segments, lanes = len(cuts) - 1, len(order)
        kept = np.empty((n_segments * lanes, len(chain.start)), chain.start.dtype)
        for s in range(n_segments):
            own, ahead = _segment(begins, cuts, s)
            tokens = packs.tokens[own[0] : own[-1]]
            _load(emitted, tokens, at.emit)
            _forward(own, chain, kept[s * lanes : (s + 1) * lanes] if s else nothing, at)
            _note(own, order, at.scales, tally.logs)
            _note_ends(own, ahead, order, chain, at, tally.logs)
            if s + 1 < n_segments:
                rows = at.alpha[own[-2] - own[0] : own[-1] - own[0]]
                kept[(s + 1) * lanes : (s + 1) * lanes + len(rows)] = rows
        if not counting:
            continue
        for s in range(n_segments - 1, -1, -1):
            own, ahead = _segment(begins, cuts, s)
            tokens = packs.tokens[own[0] : own[-1]]
            if s + 1 < n_segments:
                _load(emitted, tokens, at.emit)
                _forward(own, chain, kept[s * lanes : (s + 1) * lanes] if s else nothing, at)
            _backward(own, ahead, s == 0, order, weights, chain, at)
            _count(own, ahead, s == 0, tokens, at, tally, met)


@njit
def _segment(begins: Array, cuts: Array, s: int) -> tuple[Array, int]:
    """The borders of a segment's positions, and how many sentences go on behind it."""
    end = cuts[s + 1]
    ahead = begins[end + 1] - begins[end] if end + 1 < len(begins) else 0
    return begins[cuts[s] : end + 1], ahead
