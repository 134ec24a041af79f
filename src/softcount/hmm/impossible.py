"""States of sentences that cannot come about: those that take the fewest impossible events.

Whoever asks for the states of a sentence is to get some, even if every path through it has a
transition or a word of probability zero. Let each such event have the same tiny probability ε: as ε
goes to 0, all that counts is how many of them a path takes, and then the product of everything else
on it. So a number here is a pair (events, log), which is compared by the first and then by the
second, and sums are of those with the fewest events. No ε has to be chosen, and nothing underflows.

States that are ruled out by tags or a dictionary are worse than any number of impossible events: as
every token has a state that is allowed, the others are left out from the beginning.

Such sentences are few, and each is gone through by itself. The recursions are those of
`softcount.hmm.kernels.lists`, in logarithms: a token has *cells*, one for each of its states v or,
of order 2 and from the second token on, for each pair of a state u of the token before and its own.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.hmm.kernels.records import MarkovChain
from softcount.kernels.jit import lean, merged


class LogChain(NamedTuple):
    """The tables of a `MarkovChain` as pairs, and A itself; logs of impossible events are 0."""

    start_events: IntArray  # (K,)
    start_logs: FloatArray
    events: IntArray  # (rows, K), of transitions
    logs: FloatArray
    stop_events: IntArray  # (rows,)
    stop_logs: FloatArray
    transitions: FloatArray  # (rows, K)
    order: int


class LogSentence(NamedTuple):
    """The states of token i and p(token | state) of each: from ``indptr[i]`` to ``indptr[i + 1]``.

    The cells of token i begin at ``begins[i]``.
    """

    indptr: IntArray  # (tokens + 1,)
    states: IntArray
    events: IntArray
    logs: FloatArray
    begins: IntArray  # (tokens + 1,)


class LogAmounts(NamedTuple):
    """A pair for each cell."""

    events: IntArray  # (cells,)
    logs: FloatArray


def _split_zeros(logs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pairs, given logarithms: −inf is an impossible event."""
    possible = np.isfinite(logs)
    return (~possible).astype(np.int64), np.where(possible, logs, 0.0)


def take_logs(chain: MarkovChain) -> LogChain:
    """A chain as `FewestEvents` wants it."""
    with np.errstate(divide="ignore"):
        start, transitions, stop = (np.log(np.asarray(x, np.float64)) for x in chain[:3])
    return LogChain(
        *_split_zeros(start),
        *_split_zeros(transitions),
        *_split_zeros(stop),
        np.ascontiguousarray(chain.transitions, np.float64),
        chain.order,
    )


class FewestEvents:
    """The states of one sentence.

    ``log_likelihoods``  log p(token | state), (tokens, states)
    ``allowed``          whether tags and dictionary let a token be in a state, (tokens, states)

    >>> chain = take_logs(MarkovChain(np.array([1.0, 0.0]), np.eye(2), np.ones(2), 1))
    >>> words = np.log([[0.5, 0.5], [1e-9, 1.0]])  # the second state is never reached
    >>> FewestEvents(chain, words, np.ones((2, 2), np.bool_)).posteriors().tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """

    def __init__(self, chain: LogChain, log_likelihoods: FloatArray, allowed: BoolArray) -> None:
        self._chain, self._k = chain, len(chain.start_events)
        sizes = allowed.sum(axis=1)
        cells = sizes.copy()
        if chain.order == 2:
            cells[1:] *= sizes[:-1]
        tokens, states = np.nonzero(allowed)
        self._sentence = LogSentence(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            states,
            *_split_zeros(log_likelihoods[tokens, states]),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(cells)]),
        )

    @cached_property
    def _best(self) -> tuple[IntArray, int]:
        path, n_events = _find_best(self._chain, self._sentence)
        return path, int(n_events)

    @property
    def path(self) -> IntArray:
        """The best states, (tokens,): the fewest events, and of such paths the most probable."""
        return self._best[0]

    @property
    def n_events(self) -> int:
        """How many impossible events the best states take."""
        return self._best[1]

    @cached_property
    def _backward(self) -> LogAmounts:
        return _compute_backward(self._chain, self._sentence)

    def posteriors(self) -> FloatArray:
        """p(state | sentence) of each token, (tokens, states)."""
        return _compute_posteriors(self._chain, self._sentence, self._backward, self._k)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """States, drawn from their posterior, (tokens,)."""
        chain, sentence, beta, k = self._chain, self._sentence, self._backward, self._k
        path: list[int] = []
        row, u = -1, 0  # that of the states before, and the place of the last of them in its list
        for i in range(len(sentence.indptr) - 1):
            own = slice(sentence.indptr[i], sentence.indptr[i + 1])
            states, size = sentence.states[own], sentence.indptr[i + 1] - sentence.indptr[i]
            before, before_logs = (
                (chain.start_events, chain.start_logs)
                if i == 0
                else (chain.events[row], chain.logs[row])
            )
            begin = sentence.begins[i] + (u * size if chain.order == 2 and i else 0)
            cells = slice(begin, begin + size)
            events = before[states] + sentence.events[own] + beta.events[cells]
            logs = before_logs[states] + sentence.logs[own] + beta.logs[cells]
            logs = np.where(events == events.min(), logs, -np.inf)
            weights = np.zeros(k)
            weights[states] = np.exp(logs - logs.max())
            path.append(int(rng.choice(k, p=weights / weights.sum())))
            row = path[-1]
            if chain.order == 2:
                row += k * (path[-2] if i else k)
            u = int(np.searchsorted(states, path[-1]))
        return np.array(path, np.int32)


@merged
def _find_origins(
    i: int, order: int, k: int, indptr: IntArray
) -> tuple[int, int, int, int, int, int]:
    """Of cells (t, u) of token i: how many t and u, where their lists begin, and rows of tables.

    The row of states t and u is ``base + stride t + u``; what is left out is one state, of number
    −1 as a place in the list: it counts as zero.
    """
    size = indptr[i + 1] - indptr[i]
    if order == 1:
        return size, 1, indptr[i], -1, 0, 1
    if i == 0:
        return 1, size, -1, indptr[i], k * k, 0
    return indptr[i] - indptr[i - 1], size, indptr[i - 1], indptr[i], 0, k


@merged
def _find_row(t: int, u: int, base: int, stride: int, t0: int, u0: int, states: IntArray) -> int:
    """The row of the t-th and the u-th state of the lists that begin at t0 and u0."""
    row = base
    if t0 >= 0:
        row += stride * states[t0 + t]
    if u0 >= 0:
        row += states[u0 + u]
    return row


# Sums of products. Of n pairs, those with the fewest events e are on level 0, those with e + 1 on
# level 1; as a factor A is possible or takes one event, no others matter. So a sum Σ_j A_j x_j has
# e events if there is an x_j on level 0 with A_j > 0, and e + 1 otherwise: all x_j on level 0, and
# the A_j x_j on level 1 with A_j > 0. The x_j are exponentiated once, relative to the largest of
# their level, for all the sums that they are in; a sum that is so small that some of its terms may
# have underflowed is done again in logarithms.


SAFE = 1e-200


class LogTerms(NamedTuple):
    """The terms x_j of sums, on levels 0, 1 and (of no matter) 2."""

    events: IntArray  # (K,)
    logs: FloatArray
    levels: IntArray
    low: FloatArray  # x_j on level 0, others 0
    high: FloatArray  # x_j on levels 0 and 1, others 0


@lean
def _make_terms(k: int) -> LogTerms:
    whole, real = np.empty((2, k), np.int64), np.empty((3, k))
    return LogTerms(whole[0], real[0], whole[1], real[1], real[2])


@lean
def _weigh(n: int, terms: LogTerms) -> tuple[int, float, float]:
    """Levels and weights of n terms; e, and the largest logs on level 0, and on both."""
    events, logs, fewest = terms.events, terms.logs, terms.events[0]
    for j in range(1, n):
        fewest = min(fewest, events[j])
    top, top_high = -np.inf, -np.inf
    for j in range(n):
        terms.levels[j] = min(events[j] - fewest, 2)
        if terms.levels[j] == 0:
            top = max(top, logs[j])
        if terms.levels[j] < 2:
            top_high = max(top_high, logs[j])
    for j in range(n):
        terms.low[j] = math.exp(logs[j] - top) if terms.levels[j] == 0 else 0.0
        terms.high[j] = math.exp(logs[j] - top_high) if terms.levels[j] < 2 else 0.0
    return fewest, top, top_high


@merged
def _is_counted(level: int, possible: bool, reached: bool) -> bool:
    """Whether a term is in a sum, and ``reached`` whether the sum is one of level 0."""
    if reached:
        return level == 0 and possible
    return level < 2 and (level == 1) == possible


@lean
def _advance(
    i: int,
    chain: LogChain,
    sentence: LogSentence,
    alpha: LogAmounts,
    terms: LogTerms,
    sums: FloatArray,
) -> None:
    """The cells of token i from those of the token before: Σ_t α(t, u) A(t, u, v), times E.

    ``sums``  (3, K), for each v: on level 0, above it, and whether level 0 is reached
    """
    k, transitions = len(chain.start_events), chain.transitions
    indptr, states, begins = sentence.indptr, sentence.states, sentence.begins
    n_t, n_u, t0, u0, base, stride = _find_origins(i - 1, chain.order, k, indptr)
    v0, n_v, before = indptr[i], indptr[i + 1] - indptr[i], begins[i - 1]
    for u in range(n_u):
        for t in range(n_t):
            terms.events[t] = alpha.events[before + t * n_u + u]
            terms.logs[t] = alpha.logs[before + t * n_u + u]
        fewest, top, top_high = _weigh(n_t, terms)
        sums[:] = 0.0
        for t in range(n_t):
            level, low, high = terms.levels[t], terms.low[t], terms.high[t]
            if level == 2:
                continue
            row = _find_row(t, u, base, stride, t0, u0, states)
            for v in range(n_v):
                a = transitions[row, states[v0 + v]]
                if level == 0 and a > 0.0:
                    sums[0, v] += a * low
                    sums[2, v] = 1.0
                else:
                    sums[1, v] += high if level == 0 else a * high
        for v in range(n_v):
            cell, reached = begins[i] + u * n_v + v, sums[2, v] > 0.0
            amount, peak = (sums[0, v], top) if reached else (sums[1, v], top_high)
            if amount < SAFE:
                peak, amount = -np.inf, 0.0
                for again in range(2):  # the largest, and then the sum
                    for t in range(n_t):
                        row = _find_row(t, u, base, stride, t0, u0, states)
                        possible = chain.events[row, states[v0 + v]] == 0
                        if _is_counted(terms.levels[t], possible, reached):
                            log = terms.logs[t] + chain.logs[row, states[v0 + v]]
                            if again:
                                amount += math.exp(log - peak)
                            else:
                                peak = max(peak, log)
            alpha.events[cell] = fewest + (0 if reached else 1) + sentence.events[v0 + v]
            alpha.logs[cell] = math.log(amount) + peak + sentence.logs[v0 + v]


@lean
def _compute_backward(chain: LogChain, sentence: LogSentence) -> LogAmounts:
    """What comes after each cell: Σ_v A(t, u, v) E(v) β(u, v)."""
    k, indptr, states = len(chain.start_events), sentence.indptr, sentence.states
    begins, n, transitions = sentence.begins, len(indptr) - 1, chain.transitions
    beta = LogAmounts(np.empty(begins[-1], np.int64), np.empty(begins[-1], np.float64))
    terms = _make_terms(k)
    for i in range(n - 1, -1, -1):
        n_t, n_u, t0, u0, base, stride = _find_origins(i, chain.order, k, indptr)
        for u in range(n_u):
            if i == n - 1:
                for t in range(n_t):
                    row = _find_row(t, u, base, stride, t0, u0, states)
                    beta.events[begins[i] + t * n_u + u] = chain.stop_events[row]
                    beta.logs[begins[i] + t * n_u + u] = chain.stop_logs[row]
                continue
            v0, n_v = indptr[i + 1], indptr[i + 2] - indptr[i + 1]
            after = begins[i + 1] + u * n_v
            for v in range(n_v):
                terms.events[v] = sentence.events[v0 + v] + beta.events[after + v]
                terms.logs[v] = sentence.logs[v0 + v] + beta.logs[after + v]
            fewest, top, top_high = _weigh(n_v, terms)
            for t in range(n_t):
                row = _find_row(t, u, base, stride, t0, u0, states)
                low, high, reached = 0.0, 0.0, False
                for v in range(n_v):
                    a = transitions[row, states[v0 + v]]
                    if terms.levels[v] == 0 and a > 0.0:
                        low += a * terms.low[v]
                        reached = True
                    elif terms.levels[v] < 2:
                        high += terms.high[v] if terms.levels[v] == 0 else a * terms.high[v]
                amount, peak = (low, top) if reached else (high, top_high)
                if amount < SAFE:
                    peak, amount = -np.inf, 0.0
                    for again in range(2):  # the largest, and then the sum
                        for v in range(n_v):
                            possible = chain.events[row, states[v0 + v]] == 0
                            if _is_counted(terms.levels[v], possible, reached):
                                log = terms.logs[v] + chain.logs[row, states[v0 + v]]
                                if again:
                                    amount += math.exp(log - peak)
                                else:
                                    peak = max(peak, log)
                cell = begins[i] + t * n_u + u
                beta.events[cell] = fewest + (0 if reached else 1)
                beta.logs[cell] = math.log(amount) + peak
    return beta


@lean
def _begin_forward(chain: LogChain, sentence: LogSentence) -> LogAmounts:
    """Room for all cells, those of the first token being filled."""
    alpha = LogAmounts(
        np.empty(sentence.begins[-1], np.int64), np.empty(sentence.begins[-1], np.float64)
    )
    for v in range(sentence.indptr[1]):
        state = sentence.states[v]
        alpha.events[v] = chain.start_events[state] + sentence.events[v]
        alpha.logs[v] = chain.start_logs[state] + sentence.logs[v]
    return alpha


@lean
def _compute_posteriors(
    chain: LogChain, sentence: LogSentence, beta: LogAmounts, k: int
) -> FloatArray:
    """p(state | sentence) of each token, (tokens, states)."""
    indptr, states, begins = sentence.indptr, sentence.states, sentence.begins
    n = len(indptr) - 1
    alpha, terms, sums = _begin_forward(chain, sentence), _make_terms(k), np.empty((3, k))
    posteriors = np.zeros((n, k))
    for i in range(n):
        if i:
            _advance(i, chain, sentence, alpha, terms, sums)
        fewest, top, size = np.int64(0), -np.inf, indptr[i + 1] - indptr[i]
        for cell in range(begins[i], begins[i + 1]):
            number, log = alpha.events[cell] + beta.events[cell], alpha.logs[cell] + beta.logs[cell]
            if top == -np.inf or number < fewest:
                fewest, top = number, log
            elif number == fewest:
                top = max(top, log)
        total = 0.0
        for cell in range(begins[i], begins[i + 1]):
            if alpha.events[cell] + beta.events[cell] == fewest:
                share = math.exp(alpha.logs[cell] + beta.logs[cell] - top)
                posteriors[i, states[indptr[i] + (cell - begins[i]) % size]] += share
                total += share
        for v in range(k):
            posteriors[i, v] /= total
    return posteriors


@lean
def _find_best(chain: LogChain, sentence: LogSentence) -> tuple[IntArray, int]:
    """The best path, and how many impossible events it takes."""
    k, indptr, states = len(chain.start_events), sentence.indptr, sentence.states
    begins, n = sentence.begins, len(indptr) - 1
    alpha, from_ = _begin_forward(chain, sentence), np.zeros(begins[-1], np.int32)
    events, logs = alpha.events, alpha.logs
    for i in range(1, n):
        n_t, n_u, t0, u0, base, stride = _find_origins(i - 1, chain.order, k, indptr)
        v0, n_v, before = indptr[i], indptr[i + 1] - indptr[i], begins[i - 1]
        for u in range(n_u):
            here, fewest = begins[i] + u * n_v, events[before + u]
            for t in range(n_t):
                fewest = min(fewest, events[before + t * n_u + u])
            for v in range(here, here + n_v):
                events[v], logs[v] = fewest + 2, -np.inf
            for t in range(n_t):
                cell = before + t * n_u + u
                if events[cell] > fewest + 1:  # whatever follows, another has fewer
                    continue
                row = _find_row(t, u, base, stride, t0, u0, states)
                for v in range(n_v):
                    number = events[cell] + chain.events[row, states[v0 + v]]
                    log, to = logs[cell] + chain.logs[row, states[v0 + v]], here + v
                    if number < events[to] or (number == events[to] and log > logs[to]):
                        events[to], logs[to], from_[to] = number, log, t
            for v in range(n_v):
                events[here + v] += sentence.events[v0 + v]
                logs[here + v] += sentence.logs[v0 + v]
    n_t, n_u, t0, u0, base, stride = _find_origins(n - 1, chain.order, k, indptr)
    cell, fewest, top = begins[n - 1], 0, -np.inf
    for t in range(n_t):
        for u in range(n_u):
            place = begins[n - 1] + t * n_u + u
            row = _find_row(t, u, base, stride, t0, u0, states)
            number, log = events[place] + chain.stop_events[row], logs[place] + chain.stop_logs[row]
            if top == -np.inf or number < fewest or (number == fewest and log > top):
                cell, fewest, top = place, number, log
    path = np.empty(n, np.int32)
    for i in range(n - 1, -1, -1):
        size = indptr[i + 1] - indptr[i]
        u, v = (cell - begins[i]) // size, (cell - begins[i]) % size
        path[i] = states[indptr[i] + v]
        if i and chain.order == 2:
            cell = begins[i - 1] + from_[cell] * (indptr[i] - indptr[i - 1]) + u
        elif i:
            cell = begins[i - 1] + from_[cell]
    return path, fewest
