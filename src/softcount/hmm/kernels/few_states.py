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

    ``counts.posteriors`` has a number for each cell; transitions are still to be multiplied by A.
    """
    start, transitions, stop, _ = chain
    kinds, begins_of_kinds, states, likelihoods = cells
    posteriors, _, logs, start_counts, pairs, stop_counts = counts
    longest = most = 0
    for s in range(first, last):
        number = 0
        for t in range(indptr[s], indptr[s + 1]):
            number += begins_of_kinds[kinds[t] + 1] - begins_of_kinds[kinds[t]]
        longest, most = max(longest, indptr[s + 1] - indptr[s]), max(most, number)
    # α of the cells of token i begins at begins[i]; β and E ∘ β are those of one token
    alpha, begins, factors = np.empty(most), np.empty(longest, np.int64), np.empty(longest)
    beta, later = np.empty(len(start)), np.empty(len(start))
    for s in range(first, last):
        n, begin, before, total = indptr[s + 1] - indptr[s], 0, 0, 1.0
        low = high = own = end = 0  # the cells of the kind of the token before, and of this one
        for i in range(n):
            kind, total = kinds[indptr[s] + i], 0.0
            own, end = begins_of_kinds[kind], begins_of_kinds[kind + 1]
            begins[i] = begin
            for v in range(own, end):
                state, value = states[v], 0.0
                if i == 0:
                    value = start[state]
                for u in range(low, high):
                    value += alpha[before + u - low] * transitions[states[u], state]
                value *= likelihoods[v]
                alpha[begin + v - own] = value
                total += value
            factors[i] = 1.0
            if not SMALL <= total <= LARGE:
                if not total >= TINY:
                    break
                factors[i] = 1.0 / total
                logs[s] += math.log(total)
                for c in range(begin, begin + end - own):
                    alpha[c] *= factors[i]
            low, high, before = own, end, begin
            begin += end - own
        if n and total >= TINY:
            total = 0.0
            for v in range(own, end):
                total += alpha[before + v - own] * stop[states[v]]
            logs[s] += math.log(total) if total >= TINY else 0.0
        if not total >= TINY:
            logs[s] = -np.inf
        if n == 0 or not counting or not total >= TINY:
            continue
        # to weigh a sentence is to weigh its last β
        for v in range(own, end):
            beta[v - own] = stop[states[v]] * (weights[s] / total)
            stop_counts[states[v]] += alpha[before + v - own] * beta[v - own]
        for i in range(n - 1, 0, -1):
            begin, before, kind = begins[i], begins[i - 1], kinds[indptr[s] + i - 1]
            for v in range(own, end):
                posteriors[v] += alpha[begin + v - own] * beta[v - own]
                value = likelihoods[v] * beta[v - own] * factors[i]
                # of a state that nothing leads to it is never needed, and might be too large
                later[v - own] = value if alpha[begin + v - own] >= TINY else 0.0
            low, high = begins_of_kinds[kind], begins_of_kinds[kind + 1]
            for u in range(low, high):
                origin, weight, value = states[u], alpha[before + u - low], 0.0
                for v in range(own, end):
                    value += transitions[origin, states[v]] * later[v - own]
                    pairs[origin, states[v]] += weight * later[v - own]
                beta[u - low] = value
            own, end = low, high
        for v in range(own, end):
            posteriors[v] += alpha[v - own] * beta[v - own]
            start_counts[states[v]] += alpha[v - own] * beta[v - own]
