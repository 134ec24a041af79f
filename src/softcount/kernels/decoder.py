"""Steps of a beam search for translations: extend what there is, and keep the best.

A hypothesis has read some words of X and written the beginning of Y. Words are read in any order,
but never more than ``reorder`` places beyond the first that is unread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.ngrams import Automaton, advance
from softcount.kernels.random import mix
from softcount.types import Array

NULL, SHARED = -1, -2
"""Instead of a word of Y: x came from no word, or from the one that was written last."""
NOWHERE = -1
"""Instead of a place in X: a word of Y came to be without any x."""


class Task(NamedTuple):
    """One sentence X; all numbers are logarithms, and weighted.

    Words that Y may have are numbered for this sentence alone.

    ``first``, ``candidates``  the words that x_j may become: those from first_j to first_{j+1}
    ``insertable``  words that may come from no x
    ``words``       the language model's number of each word
    ``channel``     log t(x_j | y), one row a word
    ``null``        log of t(x_j | NULL), and of its being NULL
    ``estimate``    what reading x_j will cost at best, or nearly so
    """

    first: Array
    candidates: Array
    insertable: Array
    words: Array
    channel: Array
    null: Array
    estimate: Array


class Weights(NamedTuple):
    """What steps cost: weight of the language model, a jump of one word, fertilities 0 and ≥ 2."""

    language: float
    jump: float
    insertion: float
    sharing: float
    reorder: int


class Stack(NamedTuple):
    """Hypotheses, the best first.

    ``unread``  the first place not read;  ``mask``  bit b: place unread + 1 + b is read
    ``at``      the place read last;  ``state``  of the language model;  ``last``  word written
    ``open``    1 after an insertion, before the next x has been translated
    ``score``   so far;  ``rest``  estimate of what is unread
    """

    unread: Array
    mask: Array
    at: Array
    state: Array
    last: Array
    open: Array
    score: Array
    rest: Array


class Steps(NamedTuple):
    """Extensions of a stack: from which hypothesis, by which place and word, and what comes out."""

    source: Array
    place: Array
    word: Array
    state: Array
    score: Array
    rest: Array


@njit
def beginning(state: Any, rest: Any) -> Stack:
    """Nothing read, nothing written."""
    return Stack(
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.full(1, -1, np.int64),
        np.full(1, state, np.int64),
        np.full(1, -1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.full(1, rest, np.float64),
    )


@inline
def _steps(room: Any) -> Any:
    return Steps(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.float64),
        np.empty(room, np.float64),
    )


@inline
def _put(steps: Any, n: Any, h: Any, j: Any, u: Any, state: Any, score: Any, rest: Any) -> None:
    steps.source[n], steps.place[n], steps.word[n], steps.state[n] = h, j, u, state
    steps.score[n], steps.rest[n] = score, rest


@njit
def _first(steps: Steps, n: Any) -> Steps:
    return Steps(
        steps.source[:n],
        steps.place[:n],
        steps.word[:n],
        steps.state[:n],
        steps.score[:n],
        steps.rest[:n],
    )


@njit
def insertions(stack: Stack, task: Task, weights: Weights, model: Automaton) -> Steps:
    """Write one word more, reading none."""
    steps = _steps(len(stack.score) * len(task.insertable))
    n = 0
    for h in range(len(stack.score)):
        for u in task.insertable:
            log_p, state = advance(model, stack.state[h], task.words[u])
            score = stack.score[h] + weights.insertion + weights.language * log_p
            _put(steps, n, h, NOWHERE, u, state, score, stack.rest[h])
            n += 1
    return _first(steps, n)


@njit
def readings(stack: Stack, task: Task, weights: Weights, model: Automaton, margin: float) -> Steps:
    """Read one word more: translate it, leave it to NULL, or let it share the last word's origin.

    Steps that fall more than ``margin`` below the best are left out.
    """
    n_places = len(task.estimate)
    most = np.max(np.diff(task.first)) + 2
    steps = _steps(len(stack.score) * (weights.reorder + 1) * most)
    n, worst = 0, -np.inf
    for h in range(len(stack.score)):
        begin = stack.unread[h]
        for j in range(begin, min(n_places, begin + weights.reorder + 1)):
            if j > begin and (stack.mask[h] >> (j - begin - 1)) & 1:
                continue
            rest = stack.rest[h] - task.estimate[j]
            base = stack.score[h] - weights.jump * abs(j - stack.at[h] - 1)
            if base + rest < worst:
                continue
            for c in range(task.first[j], task.first[j + 1]):
                u = task.candidates[c]
                score = base + task.channel[u, j]
                if score + rest < worst:  # the language model can only lower it
                    continue
                log_p, state = advance(model, stack.state[h], task.words[u])
                score += weights.language * log_p
                if score + rest >= worst:
                    _put(steps, n, h, j, u, state, score, rest)
                    n += 1
                    worst = max(worst, score + rest - margin)
            if stack.open[h]:
                continue
            for u in (NULL, SHARED):
                score = base + _without_word(stack.last[h], j, u, task, weights)
                if score > -np.inf and score + rest >= worst:
                    _put(steps, n, h, j, u, stack.state[h], score, rest)
                    n += 1
                    worst = max(worst, score + rest - margin)
    return _first(steps, n)


@njit
def _without_word(last: Any, j: Any, u: Any, task: Task, weights: Weights) -> float:
    """What it costs to read x_j and to write nothing."""
    if u == NULL:
        return float(task.null[j])
    if last < 0:
        return -np.inf
    return float(weights.sharing + task.channel[last, j])


@njit
def selected(stack: Stack, steps: Steps, beam: int, margin: float) -> tuple[Stack, Array, Array]:
    """The best hypotheses that steps lead to, at most ``beam``; steps that arrive, and at which.

    Steps arrive together (recombine) that the future cannot tell apart: they have read the same,
    ended at the same place and at the same word, and the language model is in the same state.
    """
    priority = steps.score + steps.rest
    worst = (np.max(priority) if len(priority) else 0.0) - margin
    good = np.flatnonzero(priority >= worst)
    order = good[np.argsort(-priority[good])]
    found, room = 0, min(beam, len(order))
    new = _room(room)
    bits = 2
    while (1 << bits) < 2 * room:
        bits += 1
    slots = np.full(1 << bits, -1, np.int64)
    arrived, where = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    n = 0
    for e in order:
        unread, mask, at, last, is_open = _read(stack, steps, e)
        slot = _slot(new, slots, unread, mask, at, steps.state[e], last, is_open)
        if slots[slot] < 0:
            if found == room:
                continue
            slots[slot] = found
            new.unread[found], new.mask[found], new.at[found] = unread, mask, at
            new.state[found], new.last[found], new.open[found] = steps.state[e], last, is_open
            new.score[found], new.rest[found] = steps.score[e], steps.rest[e]
            found += 1
        arrived[n], where[n] = e, slots[slot]
        n += 1
    return _head(new, found), arrived[:n], where[:n]


@njit
def endings(stack: Stack, model: Automaton, end: Any) -> Array:
    """log p of the end of the sentence, after each hypothesis."""
    logs = np.empty(len(stack.state))
    for h in range(len(logs)):
        logs[h] = advance(model, stack.state[h], end)[0]
    return logs


@inline
def _room(n: Any) -> Any:
    return Stack(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.float64),
        np.empty(n, np.float64),
    )


@njit
def _head(stack: Stack, n: Any) -> Stack:
    return Stack(
        stack.unread[:n],
        stack.mask[:n],
        stack.at[:n],
        stack.state[:n],
        stack.last[:n],
        stack.open[:n],
        stack.score[:n],
        stack.rest[:n],
    )


@njit
def _read(stack: Stack, steps: Steps, e: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What is read after step e, where it ended, the last word, and whether an x must follow."""
    h, place, word = steps.source[e], steps.place[e], steps.word[e]
    unread, mask = stack.unread[h], stack.mask[h]
    if place == NOWHERE:
        return unread, mask, stack.at[h], word, 1
    if place == unread:
        unread += 1
        while mask & 1:
            unread, mask = unread + 1, mask >> 1
        mask >>= 1
    else:
        mask |= 1 << (place - unread - 1)
    return unread, mask, place, stack.last[h] if word < 0 else word, 0


@njit
def _slot(
    new: Stack, slots: Array, unread: Any, mask: Any, at: Any, state: Any, last: Any, is_open: Any
) -> Any:
    """Where in a hash table these are, or would be."""
    key = mix(np.uint64(state) + np.uint64(0x9E3779B97F4A7C15))
    key = mix(key ^ np.uint64(((unread << 31) ^ mask) * 2 + is_open))
    key = mix(key ^ np.uint64(((at + 1) << 32) ^ (last + 1)))
    slot = np.int64(key & np.uint64(len(slots) - 1))
    while slots[slot] >= 0:
        i = slots[slot]
        if (
            new.state[i] == state
            and new.unread[i] == unread
            and new.mask[i] == mask
            and new.at[i] == at
            and new.last[i] == last
            and new.open[i] == is_open
        ):
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot
