"""Posteriors of instances, given that at least one of a bag is active, or none.

``joint`` has a row for each instance, all those of a bag in turn, and a column for each state; the
last one is active. With a the probability that an instance is active if nothing is known of its
bag, the probability 1 − Π (1 − a) that at least one is comes from the last instance backwards,

    A_i = a_i + (1 − a_i) A_{i+1},

in logarithms, so that nothing is lost where every a is tiny.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform

NEGATIVE, POSITIVE, UNKNOWN = 0, 1, -1
"""What is known of a bag."""


@inline
def _add(a: float, b: float) -> float:
    """log (e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@njit
def total(row: FloatArray, n: int) -> float:
    """log Σ exp of the first n entries."""
    peak = -np.inf
    for s in range(n):
        peak = max(peak, row[s])
    if peak == -np.inf:
        return peak
    sum_ = 0.0
    for s in range(n):
        sum_ += math.exp(row[s] - peak)
    return peak + math.log(sum_)


@njit
def one_active(joint: FloatArray, first: int, last: int, some: FloatArray) -> float:
    """log p that at least one is active from each instance of a bag on, into ``some``; and the log
    of the total probability of all."""
    S = joint.shape[1]
    whole, after = 0.0, -np.inf
    for i in range(last - 1, first - 1, -1):
        every = total(joint[i], S)
        whole += every
        if every == -np.inf:
            some[i] = -np.inf
            continue
        active, rest = joint[i, S - 1] - every, total(joint[i], S - 1) - every
        after = _add(active, rest + after)
        some[i] = min(after, 0.0)
    return whole


@njit
def soft(joint: FloatArray, indptr: IntArray, labels: IntArray, out: FloatArray) -> FloatArray:
    """Posteriors of the states; gives the log-probability of each bag."""
    S = joint.shape[1]
    logs = np.zeros(len(labels))
    some = np.empty(len(joint))
    for b in range(len(labels)):
        first, last = indptr[b], indptr[b + 1]
        whole = one_active(joint, first, last, some)
        n_states = S
        if labels[b] == POSITIVE:
            logs[b] = whole + some[first] if last > first else -np.inf
        elif labels[b] == NEGATIVE:
            n_states = S - 1
            for i in range(first, last):
                logs[b] += total(joint[i], n_states)
        else:
            logs[b] = whole
        for i in range(first, last):
            out[i] = 0.0
            if logs[b] == -np.inf:
                continue
            if labels[b] == POSITIVE:
                active = min(math.exp(joint[i, S - 1] - total(joint[i], S) - some[first]), 1.0)
                rest = total(joint[i], S - 1)
                for s in range(S - 1):
                    if joint[i, s] > -np.inf:
                        out[i, s] = (1.0 - active) * math.exp(joint[i, s] - rest)
                out[i, S - 1] = active
            else:
                every = total(joint[i], n_states)
                for s in range(n_states):
                    out[i, s] = math.exp(joint[i, s] - every)
    return logs


@njit
def hard(joint: FloatArray, indptr: IntArray, labels: IntArray, out: FloatArray) -> FloatArray:
    """1 for the best state of each instance; gives the log-probability of the best of each bag."""
    S = joint.shape[1]
    best = np.zeros(len(labels))
    for b in range(len(labels)):
        first, last = indptr[b], indptr[b + 1]
        n_states = S - 1 if labels[b] == NEGATIVE else S
        has_active, least, where = False, np.inf, -1
        for i in range(first, last):
            out[i] = 0.0
            chosen = 0
            for s in range(n_states):
                if joint[i, s] > joint[i, chosen]:
                    chosen = s
            out[i, chosen] = 1.0
            best[b] += joint[i, chosen]
            has_active = has_active or chosen == S - 1
            loss = joint[i, chosen] - joint[i, S - 1]
            if loss < least:
                least, where = loss, i
        if labels[b] == POSITIVE and not has_active:
            best[b] -= least
            if where >= 0:
                out[where] = 0.0
                out[where, S - 1] = 1.0
    return best


@njit
def draw(
    joint: FloatArray,
    indptr: IntArray,
    labels: IntArray,
    numbers: IntArray,
    stream: Any,
    samples: int,
    out: FloatArray,
) -> None:
    """Relative frequencies of states in draws from the posteriors of whole bags."""
    S = joint.shape[1]
    some = np.empty(len(joint))
    state = np.empty(1, np.uint64)
    for b in range(len(labels)):
        first, last = indptr[b], indptr[b + 1]
        one_active(joint, first, last, some)
        state[0] = item_stream(stream, numbers[b])
        out[first:last] = 0.0
        for _ in range(samples):
            needed = labels[b] == POSITIVE
            n_states = S - 1 if labels[b] == NEGATIVE else S
            for i in range(first, last):
                states = n_states
                if needed:
                    active = math.exp(joint[i, S - 1] - total(joint[i], S) - some[i])
                    if uniform(state, 0) < active:
                        out[i, S - 1] += 1.0
                        needed = False
                        continue
                    states = S - 1
                rest, chosen = uniform(state, 0), -1
                every = total(joint[i], states)
                for s in range(states):
                    if joint[i, s] > -np.inf:
                        chosen = s
                        rest -= math.exp(joint[i, s] - every)
                        if rest < 0.0:
                            break
                if chosen >= 0:
                    out[i, chosen] += 1.0
        out[first:last] /= samples
