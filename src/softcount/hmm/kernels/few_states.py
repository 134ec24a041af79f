"""Forward and backward of order 1 where tokens may be in few states.

Tokens of the same word that may be in the same states are of one *kind*: a kind has a cell for each
of its states. So nothing is touched but what is possible, and the same few numbers again and again.

Probabilities are not scaled at each token, but when they have become small, or large:

    α_i = f_i (α_{i−1} A) ∘ E_i        β_{i−1} = f_i A (E_i ∘ β_i)        γ_i = α_i ∘ β_i

f_i being mostly one (Rabiner 1989, with a factor now and then).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.hmm.kernels import ChainCounts, MarkovChain
from softcount.kernels.jit import lean

SMALL, LARGE = 1e-30, 1e30
"""α that adds up to less or more is scaled."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is not a number."""


class TokenCells(NamedTuple):
    """The kind of each token; kind g has the cells ``indptr[g]`` to ``indptr[g + 1]``.

    ``states``, ``likelihoods``  the state of a cell, and p(word | state)
    """

    kinds: IntArray  # (tokens,)
    indptr: IntArray  # (kinds + 1,)
    states: IntArray  # (cells,)
    likelihoods: FloatArray  # (cells,)


class CellsWorkspace(NamedTuple):
    """Where one sentence is worked on.

    ``alpha`` has the cells of token i from ``begins[i]`` on; ``beta`` and ``later``, E ∘ β, are
    those of one token.
    """

    alpha: FloatArray  # (cells,)
    begins: IntArray  # (tokens + 1,)
    factors: FloatArray  # (tokens,)
    beta: FloatArray  # (K,)
    later: FloatArray  # (K,)


@lean
def _forward(
    first: int, n: int, chain: MarkovChain, cells: TokenCells, work: CellsWorkspace
) -> float:
    """α of a sentence; returns Σ log 1 / f, −inf if it is impossible."""
    start, transitions = chain.start, chain.transitions
    kinds, indptr, states, likelihoods = cells
    alpha, begins, factors, _, _ = work
    logs, begin, back = 0.0, 0, 0
    low = high = 0
    for i in range(n):
        own, end, total = indptr[kinds[first + i]], indptr[kinds[first + i] + 1], 0.0
        begins[i] = begin
        for v in range(own, end):
            state, value = states[v], 0.0
            if i == 0:
                value = start[state]
            for u in range(low, high):  # those of the token before
                value += alpha[back + u - low] * transitions[states[u], state]
            value *= likelihoods[v]
            alpha[begin + v - own] = value
            total += value
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
    chain: MarkovChain,
    cells: TokenCells,
    work: CellsWorkspace,
    counts: ChainCounts,
) -> None:
    """Count posteriors and transitions, these still to be multiplied by A.

    ``scale`` is the sentence's weight over the sum of its last α times stop.
    """
    transitions, stop = chain.transitions, chain.stop
    kinds, indptr, states, likelihoods = cells
    alpha, begins, factors, beta, later = work
    posteriors, pairs = counts.posteriors, counts.transitions
    own, end = indptr[kinds[first + n - 1]], indptr[kinds[first + n - 1] + 1]
    for v in range(own, end):
        beta[v - own] = stop[states[v]] * scale
        counts.stop[states[v]] += alpha[begins[n - 1] + v - own] * beta[v - own]
    for i in range(n - 1, 0, -1):
        begin = begins[i]
        for v in range(own, end):
            posteriors[v] += alpha[begin + v - own] * beta[v - own]
            value = likelihoods[v] * beta[v - own] * factors[i]
            # of a state that nothing leads to it is never needed, and might be too large
            later[v - own] = value if alpha[begin + v - own] >= TINY else 0.0
        low, high = indptr[kinds[first + i - 1]], indptr[kinds[first + i - 1] + 1]
        begin = begins[i - 1]
        for u in range(low, high):
            origin, weight, total = states[u], alpha[begin + u - low], 0.0
            for v in range(own, end):
                total += transitions[origin, states[v]] * later[v - own]
                pairs[origin, states[v]] += weight * later[v - own]
            beta[u - low] = total
        own, end = low, high
    for v in range(own, end):
        posteriors[v] += alpha[v - own] * beta[v - own]
        counts.start[states[v]] += alpha[v - own] * beta[v - own]


@lean
def forward_backward(
    first: int,
    last: int,
    indptr: IntArray,
    chain: MarkovChain,
    cells: TokenCells,
    weights: FloatArray,
    counts: ChainCounts,
    counting: bool,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if ``counting``, expected counts.

    ``counts.posteriors`` has a number for each cell.
    """
    longest = most = 0
    for s in range(first, last):
        number = 0
        for t in range(indptr[s], indptr[s + 1]):
            number += cells.indptr[cells.kinds[t] + 1] - cells.indptr[cells.kinds[t]]
        longest, most = max(longest, indptr[s + 1] - indptr[s]), max(most, number)
    k, begins, alpha = len(chain.start), np.empty(longest + 1, np.int64), np.empty(most)
    work = CellsWorkspace(alpha, begins, np.empty(longest), np.empty(k), np.empty(k))
    logs = counts.log_likelihoods
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        logs[s] = _forward(begin, n, chain, cells, work)
        if logs[s] == -np.inf:
            continue
        total, own = 0.0, cells.indptr[cells.kinds[begin + n - 1]]
        for c in range(begins[n - 1], begins[n]):
            total += alpha[c] * chain.stop[cells.states[own + c - begins[n - 1]]]
        logs[s] += math.log(total) if total >= TINY else -np.inf
        if counting and total >= TINY:
            _backward(begin, n, weights[s] / total, chain, cells, work, counts)
