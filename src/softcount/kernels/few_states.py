"""Forward and backward of order 1 where tokens may be in few states: see `softcount.kernels.packs`.

The same as `softcount.kernels.listed.gone_through`, for order 1 alone, and several times faster:
helpers take numbers and whole arrays, as views of arrays would have their references counted.
"""

from __future__ import annotations

import math

import numpy as np

from softcount.kernels.jit import lean, merged
from softcount.kernels.listed import Lists, Moves, most_cells
from softcount.kernels.packs import Emitted, Tally
from softcount.kernels.prefetch import AHEAD, ask
from softcount.types import Array

SMALL, LARGE = 1e-150, 1e150
"""Products of chances are made logarithms before they leave the square of these bounds."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is no number."""


@merged
def _reached(
    state: int,
    first: int,
    last: int,
    states: Array,
    alpha: Array,
    begin: int,
    table: Array,
) -> float:
    """Σ_u α(u) A(u, state) over the states of the token before."""
    total = 0.0
    for u in range(first, last):
        total += alpha[begin + u - first] * table[states[u], state]
    return total


@merged
def _ask_for(t: int, table: Array, rows: Array, sets: Array, indptr: Array, states: Array) -> None:
    """Token t's row of a table, where its first state is."""
    ask(table, rows[t] * table.shape[1] + states[indptr[sets[t]]])


@lean
def _forward(
    first: int,
    n: int,
    start: Array,
    table: Array,
    emissions: Array,
    rows: Array,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    emit: Array,
    begins: Array,
    scales: Array,
) -> float:
    """α and emissions of a sentence's tokens, from ``begins`` on; gives log p, −inf: impossible."""
    logs, product, begin = 0.0, 1.0, 0
    low = high = 0
    for i in range(n):
        chosen, row = sets[first + i], rows[first + i]
        own, end, total = indptr[chosen], indptr[chosen + 1], 0.0
        if i + AHEAD < n:
            _ask_for(first + i + AHEAD, emissions, rows, sets, indptr, states)
        for v in range(own, end):
            state = states[v]
            if i == 0:
                chance = start[state]
            else:
                chance = _reached(state, low, high, states, alpha, begins[i - 1], table)
            emit[begin + v - own] = emissions[row, state]
            chance *= emit[begin + v - own]
            alpha[begin + v - own] = chance
            total += chance
        if not total >= TINY:
            return -np.inf
        inverse = 1.0 / total
        for v in range(begin, begin + end - own):
            alpha[v] *= inverse
        scales[i], begins[i] = total, begin
        begin += end - own
        low, high = own, end
        if total < SMALL or total > LARGE:
            logs += math.log(total)
        else:
            product *= total
        if product < SMALL or product > LARGE:
            logs, product = logs + math.log(product), 1.0
    return logs + math.log(product)


@lean
def _backward(
    first: int,
    n: int,
    factor: float,
    table: Array,
    stop: Array,
    sets: Array,
    indptr: Array,
    states: Array,
    alpha: Array,
    emit: Array,
    begins: Array,
    scales: Array,
    beta: Array,
    later: Array,
    shares: Array,
    into: Array,
    starts: Array,
    moved: Array,
    ends: Array,
) -> None:
    """Add posteriors and expected moves, still to be multiplied by the table, to the tally."""
    own, end = indptr[sets[first + n - 1]], indptr[sets[first + n - 1] + 1]
    for v in range(own, end):
        beta[v - own] = stop[states[v]] * factor
        ends[states[v]] += alpha[begins[n - 1] + v - own] * beta[v - own]
    for i in range(n - 1, -1, -1):
        target, begin, inverse = into[first + i], begins[i], 1.0 / scales[i]
        if i >= AHEAD:
            _ask_for(first + i - AHEAD, shares, into, sets, indptr, states)
        for v in range(own, end):
            share = alpha[begin + v - own] * beta[v - own]
            shares[target, states[v]] += share
            later[v - own] = emit[begin + v - own] * beta[v - own] * inverse
            if i == 0:
                starts[states[v]] += share
        if i == 0:
            break
        low, high = indptr[sets[first + i - 1]], indptr[sets[first + i - 1] + 1]
        for u in range(low, high):
            origin, weight, total = states[u], alpha[begins[i - 1] + u - low], 0.0
            for v in range(own, end):
                total += table[origin, states[v]] * later[v - own]
                moved[origin, states[v]] += weight * later[v - own]
            beta[u - low] = total
        own, end = low, high


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
    longest, most = most_cells(first, last, 1, indptr, emitted, lists)
    k = len(moves.start)
    alpha, begins, scales = np.empty(most), np.empty(longest, np.int64), np.empty(longest)
    beta, later = np.empty(k), np.empty(k)
    text = (emitted.sets, lists.indptr, lists.states)
    room = (alpha, np.empty(most), begins, scales)
    sums = (tally.shares, tally.into, tally.start, tally.moves, tally.stop)
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        rows = (emitted.table, emitted.rows)
        tally.logs[s] = _forward(begin, n, moves.start, moves.table, *rows, *text, *room)
        if tally.logs[s] == -np.inf:
            continue
        chosen, total = emitted.sets[begin + n - 1], 0.0
        for v in range(lists.indptr[chosen], lists.indptr[chosen + 1]):
            at = begins[n - 1] + v - lists.indptr[chosen]
            total += alpha[at] * moves.stop[lists.states[v]]
        tally.logs[s] += math.log(total) if total > 0.0 else -np.inf
        if counting and total > 0.0:
            ends = (weights[s] / total, moves.table, moves.stop)
            _backward(begin, n, *ends, *text, *room, beta, later, *sums)
