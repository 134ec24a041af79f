"""Best paths through packs of sentences, and draws of paths: see `softcount.kernels.packs`.

A path is found from the last token back to the first: before state z there is the state k with the
largest α(k) A(k, z), or one drawn in proportion to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.packing import Packs, pack, segments
from softcount.kernels.packs import Chain, Emitted, Room, at_segment, forth, room_for
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


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
