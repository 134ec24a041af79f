"""The best paths through lists of states, and draws of paths: see `softcount.kernels.listed`.

Both go forward, keeping a number for each cell, and then back from the last token: to the state
that is drawn, or to the one that the best path came from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.listed import Emitted, Lists, Moves, room, turned_table
from softcount.kernels.listed_steps import TINY, ending, forward, origins
from softcount.kernels.packs import Tally
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


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
