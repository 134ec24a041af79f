"""Chains in which every token has a list of possible states, of order one or two.

Where a dictionary leaves a few states to a token, most of a matrix product would be zeros. Here a
token has *cells*: a cell is one of its states (order 1), or one of the token before together with
one of its own (order 2). From each cell there is a row of ``moves.table``; of order 2, its last K
rows are those of first tokens, which have one state behind them. All else is as in
`softcount.kernels.packs`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import inline, njit
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
    """``start`` (K,), ``table`` (rows, K), ``stop`` (rows,); ``order`` is 1 or 2."""

    start: Array
    table: Array
    stop: Array
    order: int


class Sentence(NamedTuple):
    """A sentence: its first token, its length, and where the cells of each token begin."""

    first: int
    n: int
    offsets: Array


@inline
def states_of(sentence: Sentence, i: int, emitted: Emitted, lists: Lists) -> Array:
    """The states that token i may have."""
    chosen = emitted.sets[sentence.first + i]
    return lists.states[lists.indptr[chosen] : lists.indptr[chosen + 1]]


@njit
def measured(
    first: int, last: int, order: int, emitted: Emitted, lists: Lists, offsets: Array
) -> Sentence:
    """The sentence of tokens ``first`` to ``last``; ``offsets`` is room for numbers of cells."""
    before = 1
    offsets[0] = 0
    for i in range(last - first):
        chosen = emitted.sets[first + i]
        here = lists.indptr[chosen + 1] - lists.indptr[chosen]
        offsets[i + 1] = offsets[i] + here * (before if order == 2 else 1)
        before = here
    return Sentence(first, last - first, offsets)


@njit
def origin(
    i: int, cell: int, sentence: Sentence, emitted: Emitted, lists: Lists, moves: Moves, size: int
) -> tuple[int, int]:
    """For a cell of token i: its row of moves, and the first cell of token i + 1 that it leads to.

    ``size`` is how many states token i + 1 has.
    """
    here = states_of(sentence, i, emitted, lists)
    if moves.order == 1:
        return here[cell], 0
    k = len(moves.start)
    if i == 0:
        return k * k + here[cell], cell * size
    t, u = cell // len(here), cell % len(here)
    return states_of(sentence, i - 1, emitted, lists)[t] * k + here[u], u * size


@njit
def emit(
    i: int, sentence: Sentence, emitted: Emitted, lists: Lists, factor: float, cells: Array
) -> None:
    """Multiply the cells of token i by its emissions and a factor."""
    here = states_of(sentence, i, emitted, lists)
    row = emitted.table[emitted.rows[sentence.first + i]]
    for begin in range(0, len(cells), len(here)):
        for v in range(len(here)):
            cells[begin + v] *= row[here[v]] * factor


@njit
def forward(
    sentence: Sentence,
    emitted: Emitted,
    lists: Lists,
    moves: Moves,
    alpha: Array,
    scales: Array,
) -> float:
    """α of all cells, each token's summing to one; gives log p, −inf if that cannot be."""
    offsets, total = sentence.offsets, 0.0
    tiny = np.finfo(alpha.dtype).tiny
    for i in range(sentence.n):
        here = states_of(sentence, i, emitted, lists)
        cells = alpha[offsets[i] : offsets[i + 1]]
        cells[:] = 0.0
        if i == 0:
            for v in range(len(here)):
                cells[v] = moves.start[here[v]]
        else:
            before = alpha[offsets[i - 1] : offsets[i]]
            for c in range(len(before)):
                if before[c] > 0.0:
                    row, base = origin(i - 1, c, sentence, emitted, lists, moves, len(here))
                    for v in range(len(here)):
                        cells[base + v] += before[c] * moves.table[row, here[v]]
        emit(i, sentence, emitted, lists, 1.0, cells)
        scales[i] = cells.sum()
        if not scales[i] >= tiny:
            return -np.inf
        cells *= 1.0 / scales[i]
        total += math.log(scales[i])
    return total


@njit
def ending(sentence: Sentence, emitted: Emitted, lists: Lists, moves: Moves, alpha: Array) -> float:
    """Σ α s over the cells of the last token; these become α s."""
    last, total = sentence.n - 1, 0.0
    cells = alpha[sentence.offsets[last] : sentence.offsets[last + 1]]
    for c in range(len(cells)):
        row, _ = origin(last, c, sentence, emitted, lists, moves, 0)
        cells[c] *= moves.stop[row]
        total += cells[c]
    return total


@njit
def backward(
    sentence: Sentence,
    emitted: Emitted,
    lists: Lists,
    moves: Moves,
    factor: float,
    alpha: Array,
    scales: Array,
    tally: Tally,
) -> None:
    """Add posteriors and expected moves (still to be multiplied by the table) to the tally.

    The last token's α has been multiplied by s; ``factor`` is the sentence's weight over its sum.
    """
    offsets, n = sentence.offsets, sentence.n
    last = alpha[offsets[n - 1] : offsets[n]]
    later = np.zeros(len(last))
    for c in range(len(last)):
        row, _ = origin(n - 1, c, sentence, emitted, lists, moves, 0)
        tally.stop[row] += last[c] * factor
        later[c] = moves.stop[row] * factor
        if moves.stop[row] > 0.0:
            last[c] /= moves.stop[row]
    for i in range(n - 1, -1, -1):
        here = states_of(sentence, i, emitted, lists)
        cells = alpha[offsets[i] : offsets[i + 1]]
        into = tally.shares[tally.into[sentence.first + i]]
        for c in range(len(cells)):
            into[here[c % len(here)]] += cells[c] * later[c]
        if i == 0:
            for v in range(len(here)):
                tally.start[here[v]] += cells[v] * later[v]
            break
        emit(i, sentence, emitted, lists, 1.0 / scales[i], later)
        later = _moved(i, sentence, emitted, lists, moves, alpha, later, tally)


@njit
def _moved(
    i: int,
    sentence: Sentence,
    emitted: Emitted,
    lists: Lists,
    moves: Moves,
    alpha: Array,
    later: Array,
    tally: Tally,
) -> Array:
    """β of token i − 1 from E β / c of token i; adds the moves between them."""
    here = states_of(sentence, i, emitted, lists)
    before = alpha[sentence.offsets[i - 1] : sentence.offsets[i]]
    beta = np.zeros(len(before))
    for c in range(len(before)):
        row, base = origin(i - 1, c, sentence, emitted, lists, moves, len(here))
        for v in range(len(here)):
            beta[c] += moves.table[row, here[v]] * later[base + v]
            tally.moves[row, here[v]] += before[c] * later[base + v]
    return beta


@njit
def most_cells(
    first: int, last: int, order: int, indptr: Array, emitted: Emitted, lists: Lists
) -> tuple[int, int]:
    """The length of the longest sentence, and the most cells that a sentence has."""
    longest = most = 0
    for n in range(first, last):
        length, cells, before = indptr[n + 1] - indptr[n], 0, 1
        for t in range(indptr[n], indptr[n + 1]):
            chosen = emitted.sets[t]
            here = lists.indptr[chosen + 1] - lists.indptr[chosen]
            cells += here * (before if order == 2 else 1)
            before = here
        longest, most = max(longest, length), max(most, cells)
    return longest, most


@njit
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
    longest, most = most_cells(first, last, moves.order, indptr, emitted, lists)
    alpha, scales = np.empty(most), np.empty(longest)
    offsets = np.empty(longest + 1, np.int64)
    for n in range(first, last):
        if indptr[n] == indptr[n + 1]:
            continue
        sentence = measured(indptr[n], indptr[n + 1], moves.order, emitted, lists, offsets)
        tally.logs[n] = forward(sentence, emitted, lists, moves, alpha, scales)
        if tally.logs[n] == -np.inf:
            continue
        total = ending(sentence, emitted, lists, moves, alpha)
        tally.logs[n] += math.log(total) if total > 0.0 else -np.inf
        if counting and total > 0.0:
            factor = weights[n] / total
            backward(sentence, emitted, lists, moves, factor, alpha, scales, tally)
