"""Inference for sentences of probability zero: the paths with the fewest impossible events.

Every sentence should get states, even if every path through it has a transition or an emission of
probability zero (an impossible event). Give each such event the same tiny probability ε: as ε
goes to 0, what matters first is the number of impossible events on a path, and then the product of
all other probabilities. So a number here is a pair (events, log), ordered lexicographically, and a
sum is over the terms with the fewest events. No ε has to be chosen, and nothing underflows.

States ruled out by tags or the dictionary count as infinitely many events; every token has an
allowed state, so no path has to go through them.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.hmm.kernels import MarkovChain
from softcount.kernels.jit import lean, merged

SAFE = 1e-200
"""Sums below this may lack terms that underflowed, and are computed again in logarithms."""


class ContextChain(NamedTuple):
    """The tables of a `MarkovChain`, indexed by the context (c, s) of a state v.

    At order 1, s is the state before v, and c is always 0. At order 2, c is the state before v, and
    s the state before c; the context after v is (v, c). State K stands for "no state yet", so
    starts are transitions as well.
    """

    forward: FloatArray  # (C, K + 1, K): p(v | c, s), by s and v
    backward: FloatArray  # (C, K, K + 1): the same, by v and s
    logs: FloatArray  # (C, K + 1, K): log p(v | c, s), 0 where it is impossible
    stop: FloatArray  # (C, K + 1): p(end | c, s)


def make_context_chain(chain: MarkovChain) -> ContextChain:
    """Convert a chain to the layout of `FewestEvents`."""
    k = len(chain.start)
    if chain.order == 1:
        forward = np.concatenate([chain.transitions, chain.start[None]])[None]
        stop = np.append(chain.stop, 1.0)[None]
    else:
        forward, stop = np.ones((k + 1, k + 1, k)), np.ones((k + 1, k + 1))
        forward[:k, :k] = chain.transitions[: k * k].reshape(k, k, k).transpose(1, 0, 2)
        forward[:k, k], forward[k, k] = chain.transitions[k * k :], chain.start
        stop[:k, :k], stop[:k, k] = chain.stop[: k * k].reshape(k, k).T, chain.stop[k * k :]
    backward = np.ascontiguousarray(forward.transpose(0, 2, 1))
    return ContextChain(forward, backward, np.log(np.where(forward > 0.0, forward, 1.0)), stop)


class FewestEvents:
    """Inference over the paths of one sentence that have the fewest impossible events.

    ``log_likelihoods``  log p(token | state), (tokens, states)
    ``allowed``          mask of the states allowed by tags and dictionary, (tokens, states)

    >>> chain = make_context_chain(MarkovChain(np.array([1.0, 0.0]), np.eye(2), np.ones(2), 1))
    >>> words = np.log([[0.5, 0.5], [1e-9, 1.0]])  # the second state is never reached
    >>> FewestEvents(chain, words, np.ones((2, 2), np.bool_)).posteriors().tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """

    def __init__(
        self, chain: ContextChain, log_likelihoods: FloatArray, allowed: BoolArray
    ) -> None:
        possible = np.isfinite(log_likelihoods)
        events = np.where(allowed, ~possible, np.inf)
        self._chain, self._words = chain, (events, np.where(possible, log_likelihoods, 0.0))

    @cached_property
    def _best(self) -> tuple[IntArray, float]:
        return _find_best(self._chain, *self._words)

    @property
    def path(self) -> IntArray:
        """The best path, (tokens,): of those with the fewest events, the most probable."""
        return self._best[0]

    @property
    def n_events(self) -> int:
        """Number of impossible events on the best path."""
        return int(self._best[1])

    @cached_property
    def _backward(self) -> tuple[FloatArray, FloatArray]:
        return _run_backward(self._chain, *self._words)

    def posteriors(self) -> FloatArray:
        """Compute p(state | sentence) of each token, (tokens, states)."""
        forward = _run_forward(self._chain, *self._words, best=False)
        events, logs = (a[1:] + b[1:] for a, b in zip(forward, self._backward, strict=True))
        fewest = events == events.min(axis=(1, 2), keepdims=True)
        top = logs.max(axis=(1, 2), keepdims=True, initial=-np.inf, where=fewest)
        weights = np.exp(logs - top, out=np.zeros_like(logs), where=fewest)
        by_state = weights.sum(axis=2) if weights.shape[1] > 1 else weights[:, 0]
        gamma: FloatArray = by_state[:, :-1] / by_state.sum(axis=1, keepdims=True)
        return gamma

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Draw a path from the posterior, (tokens,)."""
        chain, (beta_events, beta_logs) = self._chain, self._backward
        n_contexts, k = len(chain.stop), chain.forward.shape[2]
        c, s = n_contexts - 1, k
        path = []
        for i, (events, logs) in enumerate(zip(*self._words, strict=True)):
            after = (i + 1, slice(k), c) if n_contexts > 1 else (i + 1, 0, slice(k))
            events = events + (chain.forward[c, s] == 0.0) + beta_events[after]
            logs = logs + chain.logs[c, s] + beta_logs[after]
            logs = np.where(events == events.min(), logs, -np.inf)
            weights = np.exp(logs - logs.max())
            v = int(rng.choice(k, p=weights / weights.sum()))
            path.append(v)
            c, s = (v, c) if n_contexts > 1 else (0, v)
        return np.array(path, np.int32)


@merged
def _is_better(events: float, log: float, than_events: float, than_log: float) -> bool:
    """Return whether one pair is better than another: fewer events, then a higher log."""
    return events < than_events or (events == than_events and log > than_log)


@lean
def _add_products(
    events: FloatArray,
    logs: FloatArray,
    table: FloatArray,
    sum_events: FloatArray,
    sum_logs: FloatArray,
) -> None:
    """Compute the pairs Σ_s x(s) p(s, v) for each v, from pairs x(s) and probabilities p.

    The x(s) are exponentiated once, relative to the largest; a sum so small that some of its terms
    may have underflowed is computed again in logarithms.
    """
    top, n = -np.inf, table.shape[1]
    sum_events[:], sum_logs[:] = np.inf, 0.0
    for s in range(len(events)):
        if events[s] < np.inf:
            top = max(top, logs[s])
            for v in range(n):
                number = events[s] + (0.0 if table[s, v] > 0.0 else 1.0)
                sum_events[v] = number if number < sum_events[v] else sum_events[v]
    for s in range(len(events)):
        if events[s] < np.inf:
            weight = math.exp(logs[s] - top)
            for v in range(n):
                possible = table[s, v] > 0.0
                number = events[s] + (0.0 if possible else 1.0)
                term = weight * (table[s, v] if possible else 1.0)
                sum_logs[v] += term if number == sum_events[v] else 0.0
    for v in range(n):
        if sum_logs[v] >= SAFE:
            sum_logs[v] = math.log(sum_logs[v]) + top
        elif sum_events[v] < np.inf:
            peak, total = -np.inf, 0.0
            for again in range(2):  # first the maximum, then the sum
                for s in range(len(events)):
                    possible = table[s, v] > 0.0
                    if events[s] + (0.0 if possible else 1.0) == sum_events[v]:
                        log = logs[s] + (math.log(table[s, v]) if possible else 0.0)
                        if again:
                            total += math.exp(log - peak)
                        else:
                            peak = max(peak, log)
            sum_logs[v] = math.log(total) + peak


@lean
def _run_forward(
    chain: ContextChain, word_events: FloatArray, word_logs: FloatArray, best: bool
) -> tuple[FloatArray, FloatArray]:
    """Compute events and logs of α, (tokens + 1, C, K + 1), for the contexts around tokens.

    With ``best``, of the best path to each context (max instead of sum).
    """
    (n, k), (n_c, n_s) = word_logs.shape, chain.stop.shape
    events, logs = np.full((n + 1, n_c, n_s), np.inf), np.zeros((n + 1, n_c, n_s))
    events[0, n_c - 1, k] = 0.0
    next_events, next_logs = np.empty(k), np.empty(k)
    for i in range(n):
        for c in range(n_c):
            if best:
                next_events[:], next_logs[:] = np.inf, -np.inf
                for s in range(n_s):
                    for v in range(k if events[i, c, s] < np.inf else 0):
                        number = events[i, c, s] + (0.0 if chain.forward[c, s, v] > 0.0 else 1.0)
                        log = logs[i, c, s] + chain.logs[c, s, v]
                        better = _is_better(number, log, next_events[v], next_logs[v])
                        next_events[v] = number if better else next_events[v]
                        next_logs[v] = log if better else next_logs[v]
            else:
                _add_products(events[i, c], logs[i, c], chain.forward[c], next_events, next_logs)
            for v in range(k):
                x, y = (v, c) if n_c > 1 else (0, v)
                events[i + 1, x, y] = next_events[v] + word_events[i, v]
                logs[i + 1, x, y] = next_logs[v] + word_logs[i, v]
    return events, logs


@lean
def _run_backward(
    chain: ContextChain, word_events: FloatArray, word_logs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute events and logs of β, (tokens + 1, C, K + 1): of all that follows each context."""
    (n, k), (n_c, n_s) = word_logs.shape, chain.stop.shape
    events, logs = np.empty((n + 1, n_c, n_s)), np.zeros((n + 1, n_c, n_s))
    for c in range(n_c):
        for s in range(n_s):
            possible = chain.stop[c, s] > 0.0
            events[n, c, s] = 0.0 if possible else 1.0
            logs[n, c, s] = math.log(chain.stop[c, s]) if possible else 0.0
    events[:n] = np.inf
    next_events, next_logs = np.empty(k), np.empty(k)
    for i in range(n - 1, -1, -1):
        for c in range(n_c):
            if n_c > 1 and i > 0 and (c == k or word_events[i - 1, c] == np.inf):
                continue  # no path has state c at the previous token
            for v in range(k):
                x, y = (v, c) if n_c > 1 else (0, v)
                next_events[v] = word_events[i, v] + events[i + 1, x, y]
                next_logs[v] = word_logs[i, v] + logs[i + 1, x, y]
            _add_products(next_events, next_logs, chain.backward[c], events[i, c], logs[i, c])
    return events, logs


@lean
def _find_best(
    chain: ContextChain, word_events: FloatArray, word_logs: FloatArray
) -> tuple[IntArray, float]:
    """Return the best path, and its number of impossible events."""
    events, logs = _run_forward(chain, word_events, word_logs, True)
    n, (n_c, n_s) = len(word_logs), chain.stop.shape
    path = np.empty(n, np.int32)
    c = s = 0
    n_events, top = np.inf, -np.inf
    for t in range(n_s):
        for u in range(n_c):
            possible = chain.stop[u, t] > 0.0
            number = events[n, u, t] + (0.0 if possible else 1.0)
            log = logs[n, u, t] + (math.log(chain.stop[u, t]) if possible else 0.0)
            if _is_better(number, log, n_events, top):
                c, s, n_events, top = u, t, number, log
    for i in range(n - 1, -1, -1):
        v = c if n_c > 1 else s
        path[i] = v
        c = s if n_c > 1 else 0
        fewest, top = np.inf, -np.inf
        for t in range(n_s):  # the context that v was reached from
            number = events[i, c, t] + (0.0 if chain.forward[c, t, v] > 0.0 else 1.0)
            log = logs[i, c, t] + chain.logs[c, t, v]
            if _is_better(number, log, fewest, top):
                s, fewest, top = t, number, log
    return path, n_events
