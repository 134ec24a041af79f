"""Forward and backward of order 1 where tokens may be in few states.

Tokens of the same word that may be in the same states are of one *kind*: a kind has a cell for each
of its states. So nothing is touched but what may be, and the same few numbers again and again.

Chances are not scaled at each token, but when they have become small, or large:

    α_i = f_i (α_{i−1} A) ∘ E_i        β_{i−1} = f_i A (E_i ∘ β_i)        γ_i = α_i ∘ β_i

f_i being mostly one. Helpers take numbers and whole arrays, as views of arrays would have their
references counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.hmm.kernels.lists import Moves
from softcount.hmm.kernels.packs import Tally
from softcount.kernels.jit import lean, merged
from softcount.types import Array

SMALL, LARGE = 1e-30, 1e30
"""Chances that add up to less or more are scaled."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is no number."""


class Cells(NamedTuple):
    """``kinds`` of tokens; kind g has the cells ``indptr[g]`` to ``indptr[g + 1]``.

    ``states``, ``chances``  the state of a cell, and p(word | state)
    """

    kinds: Array
    indptr: Array
    states: Array
    chances: Array


@lean
def _room(first: int, last: int, indptr: Array, cells: Cells) -> tuple[Array, Array, Array]:
    """Room for α of a sentence, where its tokens' cells begin, and factors."""
    longest = most = 0
    for s in range(first, last):
        number = 0
        for t in range(indptr[s], indptr[s + 1]):
            number += cells.indptr[cells.kinds[t] + 1] - cells.indptr[cells.kinds[t]]
        longest, most = max(longest, indptr[s + 1] - indptr[s]), max(most, number)
    return np.empty(most), np.empty(longest + 1, np.int64), np.empty(longest)


@merged
def _reached(
    state: int, low: int, high: int, states: Array, alpha: Array, begin: int, table: Array
) -> float:
    """Σ_u α(u) A(u, state) over the cells of the token before."""
    total = 0.0
    for u in range(low, high):
        total += alpha[begin + u - low] * table[states[u], state]
    return total


@lean
def _forward(
    first: int,
    n: int,
    start: Array,
    table: Array,
    kinds: Array,
    indptr: Array,
    states: Array,
    chances: Array,
    alpha: Array,
    begins: Array,
    factors: Array,
) -> float:
    """α of a sentence; gives Σ log 1 / f, −inf if it is impossible."""
    logs, begin, back = 0.0, 0, 0
    low = high = 0
    for i in range(n):
        own, end, total = indptr[kinds[first + i]], indptr[kinds[first + i] + 1], 0.0
        begins[i] = begin
        for v in range(own, end):
            if i == 0:
                chance = start[states[v]] * chances[v]
            else:
                chance = _reached(states[v], low, high, states, alpha, back, table) * chances[v]
            alpha[begin + v - own] = chance
            total += chance
        factors[i] = 1.0
        if not SMALL <= total <= LARGE:
            if not total >= TINY:
                return -np.inf
            factors[i] = 1.0 / total
            logs += math.log(total)
            for v in range(begin, begin + end - own):
                alpha[v] *= factors[i]
        low, high, back = own, end, begin
        begin += end - own
    begins[n] = begin
    return logs


@lean
def _backward(
    first: int,
    n: int,
    scale: float,
    table: Array,
    stop: Array,
    kinds: Array,
    indptr: Array,
    states: Array,
    chances: Array,
    shares: Array,
    alpha: Array,
    begins: Array,
    factors: Array,
    beta: Array,
    later: Array,
    starts: Array,
    moved: Array,
    ends: Array,
) -> None:
    """Add posteriors and expected moves, still to be multiplied by the table, to the tally."""
    own, end = indptr[kinds[first + n - 1]], indptr[kinds[first + n - 1] + 1]
    for v in range(own, end):
        beta[v - own] = stop[states[v]] * scale
        ends[states[v]] += alpha[begins[n - 1] + v - own] * beta[v - own]
    for i in range(n - 1, 0, -1):
        begin = begins[i]
        for v in range(own, end):
            shares[v] += alpha[begin + v - own] * beta[v - own]
            later[v - own] = chances[v] * beta[v - own] * factors[i]
        low, high = indptr[kinds[first + i - 1]], indptr[kinds[first + i - 1] + 1]
        begin = begins[i - 1]
        for u in range(low, high):
            origin, weight, total = states[u], alpha[begin + u - low], 0.0
            for v in range(own, end):
                total += table[origin, states[v]] * later[v - own]
                moved[origin, states[v]] += weight * later[v - own]
            beta[u - low] = total
        own, end = low, high
    for v in range(own, end):
        shares[v] += alpha[v - own] * beta[v - own]
        starts[states[v]] += alpha[v - own] * beta[v - own]


@lean
def gone_through(
    first: int,
    last: int,
    indptr: Array,
    moves: Moves,
    cells: Cells,
    weights: Array,
    tally: Tally,
    counting: bool,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if wanted, what is to be counted.

    ``tally.shares`` has a number for each cell.
    """
    room = _room(first, last, indptr, cells)
    alpha, begins, _ = room
    beta, later = np.empty(len(moves.start)), np.empty(len(moves.start))
    text = (cells.kinds, cells.indptr, cells.states, cells.chances)
    sums = (tally.start, tally.moves, tally.stop)
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        tables = (moves.start, moves.table)
        tally.logs[s] = _forward(begin, n, *tables, *text, *room)
        if tally.logs[s] == -np.inf:
            continue
        total, own = 0.0, cells.indptr[cells.kinds[begin + n - 1]]
        for c in range(begins[n - 1], begins[n]):
            total += alpha[c] * moves.stop[cells.states[own + c - begins[n - 1]]]
        tally.logs[s] += math.log(total) if total >= TINY else -np.inf
        if counting and total >= TINY:
            ends = (weights[s] / total, moves.table, moves.stop)
            _backward(begin, n, *ends, *text, tally.shares, *room, beta, later, *sums)
