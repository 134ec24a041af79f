"""Chains of order 1 or 2 in which every token has a list of possible states.

Where a dictionary leaves a few states to a token, most of a matrix product would be zeros. These
loops visit only the states in the lists, one sentence at a time.

A token has *cells*: one for each pair of a state of the token before and one of its own (order 2),
or for each of its states (order 1). Of order 2 (Rabiner 1989, with pairs of states for states),

    α_i(u, v) = f_i E_i(v) Σ_t α_{i−1}(t, u) A(t, u, v)
    β_{i−1}(t, u) = Σ_v A(t, u, v) f_i E_i(v) β_i(u, v)

The factors f are mostly one: α is scaled when its sum has become small or large, by a power of two,
which changes no digit. Order 1 is the same without u, and the first token of order 2 without t:
whichever is left out has a list of one state, the last of ``states``.

Where t and v may be any state, the sums are those of `softcount.kernels.vectors`. Loops over tokens
use numbers and whole arrays, and do not choose between arrays: otherwise references to these would
be counted for every token.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.hmm.kernels import ChainCounts, MarkovChain, StateLists, TokenEmissions
from softcount.hmm.kernels.packs import pad
from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import (
    add_outer,
    weighted_max_times,
    weighted_sum_dot,
    weighted_sum_times,
)

SMALL, LARGE = 1e-20, 1e20
"""α is scaled if it adds up to less, or to more."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is not a number."""


class ListsChain(NamedTuple):
    """A `MarkovChain`, its transitions in two orders; rows are padded.

    ``forward``   rows are (u, t), columns v
    ``backward``  rows are (u, v), columns t

    Of order 2, the last K rows are those of what follows first states in both.
    """

    start: FloatArray  # (K,)
    forward: FloatArray  # (rows, K padded)
    backward: FloatArray  # (rows, K padded)
    stop: FloatArray  # (rows,), as those of the chain
    order: int


def arrange_chain(chain: MarkovChain) -> ListsChain:
    """A chain as these loops want it."""
    k, n_u = len(chain.start), len(chain.start) ** (chain.order - 1)
    cube, first = chain.transitions[: k * n_u].reshape(k, n_u, k), chain.transitions[k * n_u :]
    forward, backward = (
        pad(np.concatenate([cube.transpose(axes).reshape(-1, k), first]), np.float64)
        for axes in ((1, 0, 2), (1, 2, 0))
    )
    return ListsChain(chain.start, forward, backward, chain.stop, chain.order)


class ListsWorkspace(NamedTuple):
    """Where one sentence is worked on.

    ``alpha`` has the cells of token i from ``begins[i]`` on; ``factors`` are f.
    """

    alpha: FloatArray  # (cells,)
    begins: IntArray  # (tokens + 1,)
    factors: FloatArray  # (tokens,)
    likelihoods: FloatArray  # (1, K padded): E of one token, over its states


@lean
def _make_workspace(
    first: int,
    last: int,
    indptr: IntArray,
    chain: ListsChain,
    emissions: TokenEmissions,
    lists: StateLists,
) -> ListsWorkspace:
    """Large enough for each of the sentences ``first`` to ``last``."""
    longest = most = 0
    for s in range(first, last):
        cells, before = 0, 1
        for t in range(indptr[s], indptr[s + 1]):
            own = lists.indptr[emissions.sets[t] + 1] - lists.indptr[emissions.sets[t]]
            cells += own * before
            before = own if chain.order == 2 else 1
        longest, most = max(longest, indptr[s + 1] - indptr[s]), max(most, cells)
    wide = chain.forward.shape[1]
    return ListsWorkspace(
        np.empty(most + wide),  # the padding of one row is written over by the next
        np.empty(longest + 1, np.int64),
        np.empty(longest),
        np.zeros((1, wide)),
    )


@merged
def _find_origins(
    i: int, order: int, k: int, first: int, sets: IntArray, indptr: IntArray, nobody: int
) -> tuple[int, int, int, int, int, int]:
    """Where token i's lists of t and of u begin and end; row ``base + stride u`` is u's first.

    ``nobody`` is the place of the list that stands for no state.
    """
    low, high = indptr[sets[first + i]], indptr[sets[first + i] + 1]
    if order == 1:
        return low, high, nobody, nobody + 1, 0, k
    if i == 0:
        return nobody, nobody + 1, low, high, k * k, 1
    before = sets[first + i - 1]
    return indptr[before], indptr[before + 1], low, high, 0, k


@lean
def _forward(
    s: int,
    borders: IntArray,
    chain: ListsChain,
    best: bool,
    emissions: TokenEmissions,
    lists: StateLists,
    work: ListsWorkspace,
    finals: FloatArray,
    logs: FloatArray,
) -> float:
    """α of sentence s, and log p in ``logs``; if ``best``, with max in place of Σ.

    ``finals`` gets α times stop of the last token's cells, by (t, u). Returns what they add up to
    (if ``best``, the largest): 0 if the sentence is empty or impossible.
    """
    first, n = borders[s], borders[s + 1] - borders[s]
    if n == 0:
        return 0.0
    start, rows, stop, order = chain.start, chain.forward, chain.stop, chain.order
    table, words, sets = emissions
    indptr, states = lists
    alpha, begins, factors, likelihoods = work
    k, nobody, end, power = len(start), len(states) - 1, 0, 0
    for i in range(n):
        v0, n_v = indptr[sets[first + i]], indptr[sets[first + i] + 1] - indptr[sets[first + i]]
        begin, total = end, 0.0
        begins[i], factors[i] = begin, 1.0
        for v in range(n_v):
            likelihoods[0, v] = table[words[first + i], states[v0 + v]]
        if i == 0:
            for v in range(n_v):
                alpha[v] = start[states[v0 + v]] * likelihoods[0, v]
                total += alpha[v]
            end = n_v
        else:
            t0, t1, u0, u1, base, stride = _find_origins(
                i - 1, order, k, first, sets, indptr, nobody
            )
            before, n_u = begins[i - 1], u1 - u0
            for u in range(n_u):
                row, here = base + stride * states[u0 + u], begin + u * n_v
                if t1 - t0 == k and n_v == k:
                    step = (alpha, here, alpha, before + u, n_u, rows, row, k, likelihoods, 0)
                    if best:
                        total += weighted_max_times(*step)
                    else:
                        total += weighted_sum_times(*step)
                    continue
                for v in range(n_v):
                    value, place = 0.0, before + u
                    for t in range(t0, t1):
                        product = alpha[place] * rows[row + states[t], states[v0 + v]]
                        value = max(value, product) if best else value + product
                        place += n_u
                    alpha[here + v] = value * likelihoods[0, v]
                    total += alpha[here + v]
            end = begin + n_u * n_v
        if not SMALL <= total <= LARGE:
            if not TINY <= total < np.inf:
                logs[s] = -np.inf
                return 0.0
            exponent = math.frexp(total)[1] - 1  # so that they add up to one, or up to two
            factor = math.ldexp(1.0, -exponent)
            for c in range(begin, end):
                alpha[c] *= factor
            factors[i] = factor
            power += exponent
    begins[n] = end
    t0, t1, u0, u1, base, _ = _find_origins(n - 1, order, k, first, sets, indptr, nobody)
    c, total, side = 0, 0.0, k if order == 2 else 1
    for t in range(t0, t1):
        for u in range(u0, u1):
            value = alpha[begins[n - 1] + c] * stop[base + side * states[t] + states[u]]
            finals[c] = value
            total = max(total, value) if best else total + value
            c += 1
    logs[s] = power * math.log(2.0)
    logs[s] += math.log(total) if total >= TINY else -np.inf
    return total if total >= TINY else 0.0


@lean
def _backward(
    first: int,
    n: int,
    scale: float,
    chain: ListsChain,
    emissions: TokenEmissions,
    lists: StateLists,
    work: ListsWorkspace,
    later: FloatArray,
    columns: FloatArray,
    beta: FloatArray,
    counts: ChainCounts,
    pairs: FloatArray,
) -> None:
    """Count posteriors, ends and transitions of order 2; leaves f E β of the first in ``later``.

    ``scale``    the sentence's weight over the sum of its α times stop
    ``later``    f E β(t, u) of a token and of the next, by turns, (2 K K padded,)
    ``columns``  α(t, u) of a token by u, (K, K padded)
    ``beta``     β(t, u) of a token and one u, (K padded,)
    ``pairs``    the transitions, still to be multiplied by A, as ``chain.backward``
    """
    stop, back = chain.stop, chain.backward
    table, words, sets = emissions
    indptr, states = lists
    alpha, begins, factors, _ = work
    posteriors, into, stop_counts = counts.posteriors, counts.into, counts.stop
    k, nobody, wide, v0, n_v = len(columns), len(states) - 1, len(beta), 0, 0
    for i in range(n - 1, -1, -1):
        t0, t1, u0, u1, base, stride = _find_origins(i, 2, k, first, sets, indptr, nobody)
        here, there = (i & 1) * k * wide, (1 - (i & 1)) * k * wide
        n_t, n_u, c = t1 - t0, u1 - u0, begins[i]
        for t in range(n_t):
            for u in range(n_u):
                columns[u, t] = alpha[c]
                c += 1
        for u in range(n_u):
            own = states[u0 + u]
            row, total = base + stride * own, 0.0
            if i < n - 1 and n_t == k and n_v == k:
                add_outer(pairs, row, k, later, there + u, wide, columns, u)
                total = weighted_sum_dot(beta, 0, later, there + u, wide, back, row, k, columns, u)
            else:
                for t in range(n_t):
                    beta[t] = 0.0
                    if i == n - 1:
                        end = base + own + k * states[t0 + t]
                        beta[t] = stop[end] * scale
                        stop_counts[end] += beta[t] * columns[u, t]
                for v in range(n_v):  # none after the last token
                    weight, line, shift = later[there + u + v * wide], row + states[v0 + v], 0
                    if base > 0:
                        line, shift = row, states[v0 + v]
                    for t in range(n_t):
                        beta[t] += weight * back[line, shift + states[t0 + t]]
                        pairs[line, shift + states[t0 + t]] += weight * columns[u, t]
                for t in range(n_t):
                    total += beta[t] * columns[u, t]
            posteriors[into[first + i], own] += total
            likelihood = table[words[first + i], own] * factors[i]
            for t in range(n_t):  # where α is zero it is never needed, and might be too large
                possible = columns[u, t] >= TINY
                later[here + u * wide + t] = beta[t] * likelihood if possible else 0.0
        v0, n_v = u0, n_u


@lean
def forward_backward(
    first: int,
    last: int,
    indptr: IntArray,
    chain: ListsChain,
    emissions: TokenEmissions,
    lists: StateLists,
    weights: FloatArray,
    counts: ChainCounts,
    counting: bool,
) -> None:
    """Sentences ``first`` to ``last`` of order 2: log p of each; if ``counting``, expected counts.

    ``weights`` says how often each sentence counts.
    """
    k, wide = len(chain.start), chain.forward.shape[1]
    work = _make_workspace(first, last, indptr, chain, emissions, lists)
    later, columns, beta = np.empty(2 * k * wide), np.zeros((k, wide)), np.empty(wide)
    pairs = np.zeros(chain.backward.shape)
    logs = counts.log_likelihoods
    for s in range(first, last):
        total = _forward(s, indptr, chain, False, emissions, lists, work, later, logs)
        if counting and total > 0.0:
            begin, n = indptr[s], indptr[s + 1] - indptr[s]
            scale, own = weights[s] / total, lists.indptr[emissions.sets[begin]]
            _backward(
                begin, n, scale, chain, emissions, lists, work, later, columns, beta, counts, pairs
            )
            for v in range(work.begins[1]):
                state = lists.states[own + v]
                counts.start[state] += chain.start[state] * later[v * wide]
    for r in range(len(pairs) if counting else 0):  # in the order of the chain's own rows
        for c in range(k):
            if r < k * k:
                counts.transitions[c * k + r // k, r % k] += pairs[r, c]
            else:
                counts.transitions[r, c] += pairs[r, c]


# Best paths (Viterbi 1967), and draws by forward filtering and backward sampling.
#
# Both go forward, keeping a number for each cell, and then back from the last token: to the state
# that is drawn, or to the one that the best path came from.


@merged
def _choose(weights: FloatArray, n: int, best: bool, stream: IntArray) -> int:
    """The first of n that weighs most, if ``best``; else one drawn in proportion to its weight."""
    taken = 0
    if best:
        for c in range(n):
            if weights[c] > weights[taken]:
                taken = c
        return taken
    left, c = 0.0, 0
    for j in range(n):
        left += weights[j]
    left *= uniform(stream, 0)
    while c < n and left >= 0.0:
        if weights[c] > 0.0:
            taken = c
            left -= weights[c]
        c += 1
    return taken


@lean
def find_paths(
    first: int,
    last: int,
    indptr: IntArray,
    chain: ListsChain,
    emissions: TokenEmissions,
    lists: StateLists,
    best: bool,
    numbers: IntArray,
    seed: Any,
    logs: FloatArray,
    paths: IntArray,
) -> None:
    """Paths (samples, tokens) of the sentences ``first`` to ``last``: the best, or draws.

    ``logs`` gets log p(path, sentence) of the best, or log p(sentence). A draw depends on the seed
    and on the sentence's number, ``numbers[s]``, alone.
    """
    work = _make_workspace(first, last, indptr, chain, emissions, lists)
    rows, order, k, sets = chain.forward, chain.order, len(chain.start), emissions.sets
    alpha, begins, list_begins, states = work.alpha, work.begins, lists.indptr, lists.states
    finals, weights, stream = np.empty(k * k), np.empty(k), np.empty(1, np.uint64)
    for s in range(first, last):
        total = _forward(s, indptr, chain, best, emissions, lists, work, finals, logs)
        if total == 0.0:
            continue
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        cells = begins[n] - begins[n - 1]
        stream[0] = item_stream(seed, numbers[s])
        for sample in range(len(paths)):
            cell = _choose(finals, cells, best, stream)
            low, high = list_begins[sets[begin + n - 1]], list_begins[sets[begin + n - 1] + 1]
            u, v = cell // (high - low), cell % (high - low)
            for i in range(n - 1, 0, -1):
                state = states[low + v]
                paths[sample, begin + i] = state
                t0, t1, u0, u1, base, stride = _find_origins(
                    i - 1, order, k, begin, sets, list_begins, len(states) - 1
                )
                row, place = base + stride * states[u0 + u], begins[i - 1] + u
                for t in range(t1 - t0):
                    weights[t] = alpha[place] * rows[row + states[t0 + t], state]
                    place += u1 - u0
                t = _choose(weights, t1 - t0, best, stream)
                u, v = (t, u) if order == 2 else (0, t)
                low = list_begins[sets[begin + i - 1]]
            paths[sample, begin] = states[low + v]


@njit
def count_paths(
    paths: IntArray,
    indptr: IntArray,
    weights: FloatArray,
    n_states: int,
    order: int,
    counts: ChainCounts,
) -> None:
    """Count states, transitions, starts and ends of paths (samples, tokens), by their shares."""
    k = n_states
    for n in range(len(indptr) - 1):
        for s in range(len(paths)):
            share = weights[n] / len(paths)
            for t in range(indptr[n], indptr[n + 1]):
                state, i = paths[s, t], t - indptr[n]
                counts.posteriors[counts.into[t], state] += share
                if i == 0:
                    counts.start[state] += share
                    row = state if order == 1 else k * k + state
                else:
                    counts.transitions[row, state] += share
                    row = state if order == 1 else paths[s, t - 1] * k + state
                if t + 1 == indptr[n + 1]:
                    counts.stop[row] += share
