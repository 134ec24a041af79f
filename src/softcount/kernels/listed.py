"""Chains in which every token has a list of possible states, of order one or two.

Where a dictionary leaves a few states to a token, most of a matrix product would be zeros. What is
gone through here is what lists allow: see `softcount.kernels.listed_steps`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import lean, merged
from softcount.kernels.lanes import WIDTH
from softcount.kernels.listed_steps import TINY, backward, ending, forward
from softcount.kernels.packs import Tally
from softcount.types import Array


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
