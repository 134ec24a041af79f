"""The best paths through lists of states, and draws of paths: see `softcount.kernels.listed`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.jit import njit
from softcount.kernels.listed import (
    Emitted,
    Lists,
    Moves,
    Sentence,
    emit,
    ending,
    forward,
    measured,
    most_cells,
    origin,
    states_of,
)
from softcount.kernels.packs import Tally
from softcount.kernels.random import chosen, item_stream
from softcount.types import Array


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
    longest, most = most_cells(first, last, moves.order, indptr, emitted, lists)
    alpha, scales = np.empty(most), np.empty(longest)
    offsets, stream = np.empty(longest + 1, np.int64), np.empty(1, np.uint64)
    for n in range(first, last):
        if indptr[n] == indptr[n + 1]:
            continue
        sentence = measured(indptr[n], indptr[n + 1], moves.order, emitted, lists, offsets)
        logs[n] = forward(sentence, emitted, lists, moves, alpha, scales)
        if logs[n] == -np.inf:
            continue
        total = ending(sentence, emitted, lists, moves, alpha)
        logs[n] += math.log(total) if total > 0.0 else -np.inf
        if total > 0.0:
            stream[0] = item_stream(seed, numbers[n])
            for s in range(len(paths)):
                path = paths[s, indptr[n] : indptr[n + 1]]
                _drawn(sentence, emitted, lists, moves, alpha, stream, path)


@njit
def _drawn(
    sentence: Sentence,
    emitted: Emitted,
    lists: Lists,
    moves: Moves,
    alpha: Array,
    stream: Array,
    path: Array,
) -> None:
    """One path, from the last token back to the first."""
    offsets, n = sentence.offsets, sentence.n
    cell = chosen(alpha[offsets[n - 1] : offsets[n]], stream)
    for i in range(n - 1, -1, -1):
        here = states_of(sentence, i, emitted, lists)
        path[i] = here[cell % len(here)]
        if i > 0:
            before = alpha[offsets[i - 1] : offsets[i]]
            weights = np.zeros(len(before))
            for c in range(len(before)):
                row, base = origin(i - 1, c, sentence, emitted, lists, moves, len(here))
                if base <= cell < base + len(here):
                    weights[c] = before[c] * moves.table[row, here[cell - base]]
            cell = chosen(weights, stream)


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
    longest, most = most_cells(first, last, moves.order, indptr, emitted, lists)
    delta, pointers = np.empty(most), np.empty(most, np.int32)
    offsets = np.empty(longest + 1, np.int64)
    for n in range(first, last):
        if indptr[n] == indptr[n + 1]:
            continue
        sentence = measured(indptr[n], indptr[n + 1], moves.order, emitted, lists, offsets)
        logs[n] = _best(sentence, emitted, lists, moves, delta, pointers)
        if logs[n] == -np.inf:
            continue
        cell, top = 0, -1.0
        cells = delta[offsets[sentence.n - 1] : offsets[sentence.n]]
        for c in range(len(cells)):
            row, _ = origin(sentence.n - 1, c, sentence, emitted, lists, moves, 0)
            if cells[c] * moves.stop[row] > top:
                cell, top = c, cells[c] * moves.stop[row]
        logs[n] += math.log(top) if top > 0.0 else -np.inf
        for i in range(sentence.n - 1, -1, -1):
            here = states_of(sentence, i, emitted, lists)
            paths[sentence.first + i] = here[cell % len(here)]
            cell = pointers[offsets[i] + cell]


@njit
def _best(
    sentence: Sentence,
    emitted: Emitted,
    lists: Lists,
    moves: Moves,
    delta: Array,
    pointers: Array,
) -> float:
    """The best p of paths to each cell, each token's largest one, and where they come from."""
    offsets, total = sentence.offsets, 0.0
    for i in range(sentence.n):
        here = states_of(sentence, i, emitted, lists)
        cells, come = delta[offsets[i] : offsets[i + 1]], pointers[offsets[i] : offsets[i + 1]]
        cells[:] = 0.0
        come[:] = 0
        if i == 0:
            for v in range(len(here)):
                cells[v] = moves.start[here[v]]
        else:
            before = delta[offsets[i - 1] : offsets[i]]
            for c in range(len(before)):
                row, base = origin(i - 1, c, sentence, emitted, lists, moves, len(here))
                for v in range(len(here)):
                    reached = before[c] * moves.table[row, here[v]]
                    if reached > cells[base + v]:
                        cells[base + v], come[base + v] = reached, c
        emit(i, sentence, emitted, lists, 1.0, cells)
        top = cells.max()
        if not top > 0.0:
            return -np.inf
        cells *= 1.0 / top
        total += math.log(top)
    return total


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
