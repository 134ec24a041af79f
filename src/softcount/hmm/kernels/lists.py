"""Chains of order 1 or 2 in which every token has a list of possible states.

Where a dictionary leaves a few states to a token, most of a product of matrices would be zeros.
What is gone through here is what the lists allow, one sentence at a time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.hmm.kernels.records import ChainCounts, MarkovChain, StateLists, TokenEmissions
from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import (
    WIDTH,
    add_outer,
    weighted_max_times,
    weighted_sum_dot,
    weighted_sum_times,
)

# Forward and backward.
#
# A token has *cells*: one for each pair of a state of the token before and one of its own (order
# 2), or for each of its states (order 1). Of order 2 (Rabiner 1989, with pairs of states for
# states),
#
#     α_i(u, v) = f_i E_i(v) Σ_t α_{i−1}(t, u) A(t, u, v)
#     β_{i−1}(t, u) = Σ_v A(t, u, v) f_i E_i(v) β_i(u, v)
#
# The factors f are mostly one: α is scaled when its sum has become small or large, by a power of
# two, which changes no digit. Order 1 is the same without u, and the first token of order 2 without
# t: whichever is left out has a list of one state, number zero, the last of ``states``.
#
# Where t and v may be any state, the sums are those of `softcount.kernels.vectors`. For these A has
# rows by (u, t) going forward, ``ahead``, and by (u, v) going backward, ``back``; the last K rows,
# of order 2, are those of first tokens in both. Helpers take numbers and whole arrays, and do not
# choose between arrays: otherwise references to these would be counted for every token.


SMALL, LARGE = 1e-20, 1e20
"""α is scaled if it adds up to less, or to more."""
TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is not a number."""


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
    chain: MarkovChain,
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
    wide = _pad(len(chain.start))
    return ListsWorkspace(
        np.empty(most + wide),  # the padding of one row is written over by the next
        np.empty(longest + 1, np.int64),
        np.empty(longest),
        np.zeros((1, wide)),
    )


@merged
def _pad(k: int) -> int:
    """How long a row of k numbers is when it is padded to whole vectors."""
    return -(-k // WIDTH) * WIDTH


@lean
def _reorder_transitions(chain: MarkovChain) -> tuple[FloatArray, FloatArray]:
    """A by (u, t), and by (u, v)."""
    k = len(chain.start)
    ahead = np.zeros((len(chain.transitions), _pad(k)))
    back = np.zeros((len(chain.transitions), _pad(k)))
    n_u = k if chain.order == 2 else 1
    for t in range(k):
        for u in range(n_u):
            for v in range(k):
                ahead[u * k + t, v] = chain.transitions[t * n_u + u, v]
                back[u * k + v, t] = chain.transitions[t * n_u + u, v]
    for r in range(n_u * k, len(chain.transitions)):
        for v in range(k):
            ahead[r, v] = back[r, v] = chain.transitions[r, v]
    return ahead, back


@lean
def _add_in_order(pairs: FloatArray, order: int, out: FloatArray) -> None:
    """Add counts by (u, v) to rows in the order of `MarkovChain`."""
    k = out.shape[1]
    n_u = k if order == 2 else 1
    for t in range(k):
        for u in range(n_u):
            for v in range(k):
                out[t * n_u + u, v] += pairs[u * k + v, t]
    for r in range(n_u * k, len(out)):
        for v in range(k):
            out[r, v] += pairs[r, v]


@merged
def _origins(
    i: int, order: int, k: int, first: int, sets: IntArray, indptr: IntArray, nobody: int
) -> tuple[int, int, int, int, int, int]:
    """Where token i's lists of t and of u begin and end; row ``base + stride u`` is u's first.

    ``nobody`` is the place of a list of one state.
    """
    low, high = indptr[sets[first + i]], indptr[sets[first + i] + 1]
    if order == 1:
        return low, high, nobody, nobody + 1, 0, k
    if i == 0:
        return nobody, nobody + 1, low, high, k * k, 1
    before = sets[first + i - 1]
    return indptr[before], indptr[before + 1], low, high, 0, k


@merged
def _advance(
    k: int,
    t0: int,
    t1: int,
    u0: int,
    u1: int,
    base: int,
    stride: int,
    v0: int,
    v1: int,
    states: IntArray,
    ahead: FloatArray,
    best: bool,
    before: int,
    begin: int,
    alpha: FloatArray,
    likelihoods: FloatArray,
) -> float:
    """α of a token's cells from that of the token before; returns its sum."""
    total, n_u, n_v = 0.0, u1 - u0, v1 - v0
    for u in range(n_u):
        row, here = base + stride * states[u0 + u], begin + u * n_v
        if t1 - t0 == k and n_v == k:
            step = (alpha, here, alpha, before + u, n_u, ahead, row, k, likelihoods, 0)
            if best:
                total += weighted_max_times(*step)
            else:
                total += weighted_sum_times(*step)
            continue
        for v in range(n_v):
            reached, place = 0.0, before + u
            for t in range(t0, t1):
                product = alpha[place] * ahead[row + states[t], states[v0 + v]]
                reached = max(reached, product) if best else reached + product
                place += n_u
            alpha[here + v] = reached * likelihoods[0, v]
            total += alpha[here + v]
    return total


@merged
def _scale(exponent: int, begin: int, end: int, alpha: FloatArray) -> float:
    """Divide α by a power of two; returns the factor."""
    factor = math.ldexp(1.0, -exponent)
    for c in range(begin, end):
        alpha[c] *= factor
    return factor


@lean
def _forward(
    first: int,
    n: int,
    chain: MarkovChain,
    ahead: FloatArray,
    best: bool,
    emissions: TokenEmissions,
    lists: StateLists,
    work: ListsWorkspace,
) -> float:
    """α of the n tokens from ``first`` on; if ``best``, with max in place of Σ.

    Returns Σ log 1 / f; −inf if the sentence is impossible.
    """
    start, table, rows, sets = chain.start, emissions.table, emissions.rows, emissions.sets
    indptr, states = lists.indptr, lists.states
    alpha, begins, factors, likelihoods = work.alpha, work.begins, work.factors, work.likelihoods
    k, nobody, begin, power = len(start), len(states) - 1, 0, 0
    for i in range(n):
        v0, v1 = indptr[sets[first + i]], indptr[sets[first + i] + 1]
        begins[i], factors[i], total = begin, 1.0, 0.0
        for v in range(v1 - v0):
            likelihoods[0, v] = table[rows[first + i], states[v0 + v]]
        if i == 0:
            for v in range(v1 - v0):
                alpha[v] = start[states[v0 + v]] * likelihoods[0, v]
                total += alpha[v]
            begin = v1 - v0
        else:
            t0, t1, u0, u1, base, stride = _origins(
                i - 1, chain.order, k, first, sets, indptr, nobody
            )
            before = begins[i - 1]
            total = _advance(
                k, t0, t1, u0, u1, base, stride, v0, v1, states, ahead, best, before, begin,
                alpha, likelihoods,
            )  # fmt: skip
            begin += (u1 - u0) * (v1 - v0)
        if not SMALL <= total <= LARGE:
            if not TINY <= total < np.inf:
                return -np.inf
            exponent = math.frexp(total)[1] - 1  # so that they add up to one, or up to two
            factors[i] = _scale(exponent, begins[i], begin, alpha)
            power += exponent
    begins[n] = begin
    return power * math.log(2.0)


@merged
def _end(
    first: int,
    n: int,
    chain: MarkovChain,
    sets: IntArray,
    indptr: IntArray,
    states: IntArray,
    alpha: FloatArray,
    begin: int,
    weights: FloatArray,
) -> float:
    """α times stop of the last token's cells, by (t, u); returns the sum."""
    stop, k, order = chain.stop, len(chain.start), chain.order
    t0, t1, u0, u1, base, _ = _origins(n - 1, order, k, first, sets, indptr, len(states) - 1)
    c, total, side = 0, 0.0, k if order == 2 else 1
    for t in range(t0, t1):
        for u in range(u0, u1):
            weights[c] = alpha[begin + c] * stop[base + side * states[t] + states[u]]
            total += weights[c]
            c += 1
    return total


@merged
def _transpose(begin: int, n_t: int, n_u: int, alpha: FloatArray, columns: FloatArray) -> None:
    """α of a token's cells, by u."""
    c = begin
    for t in range(n_t):
        for u in range(n_u):
            columns[u, t] = alpha[c]
            c += 1


@merged
def _begin_backward(
    t0: int,
    t1: int,
    u: int,
    row: int,
    side: int,
    scale: float,
    stop: FloatArray,
    states: IntArray,
    columns: FloatArray,
    beta: FloatArray,
    stop_counts: FloatArray,
) -> float:
    """β(·, u) of a last token; returns Σ_t α β. ``row`` is the chain's row of the first t."""
    total = 0.0
    for t in range(t1 - t0):
        own = row + side * states[t0 + t]
        beta[t] = stop[own] * scale
        stop_counts[own] += beta[t] * columns[u, t]
        total += beta[t] * columns[u, t]
    return total


@merged
def _retreat(
    t0: int,
    t1: int,
    u: int,
    base: int,
    row: int,
    v0: int,
    v1: int,
    states: IntArray,
    back: FloatArray,
    later: FloatArray,
    place: int,
    columns: FloatArray,
    beta: FloatArray,
    pairs: FloatArray,
) -> float:
    """β(·, u) of a token from f E β of the next; returns Σ_t α β.

    Counts the transitions between them, still to be multiplied by A.
    """
    for t in range(t1 - t0):
        beta[t] = 0.0
    for v in range(v1 - v0):
        weight, line, shift = later[place + v * len(beta)], row + states[v0 + v], 0
        if base > 0:
            line, shift = row, states[v0 + v]
        for t in range(t1 - t0):
            beta[t] += weight * back[line, shift + states[t0 + t]]
            pairs[line, shift + states[t0 + t]] += weight * columns[u, t]
    total = 0.0
    for t in range(t1 - t0):
        total += beta[t] * columns[u, t]
    return total


@merged
def _hand_on(
    n: int,
    u: int,
    likelihood: float,
    columns: FloatArray,
    beta: FloatArray,
    later: FloatArray,
    place: int,
) -> None:
    """f E β(·, u), or zero where α is: there it is never needed, and might be too large."""
    for t in range(n):
        later[place + t] = beta[t] * likelihood if columns[u, t] >= TINY else 0.0


@merged
def _hand_on_each(
    t0: int,
    t1: int,
    line: int,
    target: int,
    factor: float,
    states: IntArray,
    table: FloatArray,
    columns: FloatArray,
    beta: FloatArray,
    later: FloatArray,
    place: int,
    posteriors: FloatArray,
) -> None:
    """`_hand_on` of order 1, where a token's own states are t; adds up their posteriors too."""
    for t in range(t1 - t0):
        own = states[t0 + t]
        posteriors[target, own] += beta[t] * columns[0, t]
        likelihood = table[line, own] * factor if columns[0, t] >= TINY else 0.0
        later[place + t * len(beta)] = beta[t] * likelihood


@lean
def _backward(
    first: int,
    n: int,
    scale: float,
    chain: MarkovChain,
    back: FloatArray,
    emissions: TokenEmissions,
    lists: StateLists,
    work: ListsWorkspace,
    later: FloatArray,
    columns: FloatArray,
    beta: FloatArray,
    counts: ChainCounts,
    pairs: FloatArray,
) -> None:
    """Count posteriors, ends and transitions; leaves f E β of the first token in ``later``.

    ``scale`` is the sentence's weight over the sum of its α times stop.
    """
    order, stop, table, rows, sets = (
        chain.order,
        chain.stop,
        emissions.table,
        emissions.rows,
        emissions.sets,
    )
    indptr, states, alpha = lists.indptr, lists.states, work.alpha
    begins, factors, posteriors, into = work.begins, work.factors, counts.posteriors, counts.into
    stop_counts = counts.stop
    k, nobody, wide, v0, v1 = len(columns), len(states) - 1, len(beta), 0, 0
    for i in range(n - 1, -1, -1):
        t0, t1, u0, u1, base, stride = _origins(i, order, k, first, sets, indptr, nobody)
        here, there = (i & 1) * k * wide, (1 - (i & 1)) * k * wide
        _transpose(begins[i], t1 - t0, u1 - u0, alpha, columns)
        line, target = rows[first + i], into[first + i]
        for u in range(u1 - u0):
            own = states[u0 + u]
            row, place = base + stride * own, there + u
            if i == n - 1:
                row, side = base + own, k if order == 2 else 1
                total = _begin_backward(
                    t0, t1, u, row, side, scale, stop, states, columns, beta, stop_counts
                )
            elif t1 - t0 == k and v1 - v0 == k:
                add_outer(pairs, row, k, later, place, wide, columns, u)
                total = weighted_sum_dot(beta, 0, later, place, wide, back, row, k, columns, u)
            else:
                total = _retreat(
                    t0, t1, u, base, row, v0, v1, states, back, later, place, columns, beta, pairs
                )
            if order == 2:
                posteriors[target, own] += total
                likelihood = table[line, own] * factors[i]
                _hand_on(t1 - t0, u, likelihood, columns, beta, later, here + u * wide)
            else:
                _hand_on_each(
                    t0, t1, line, target, factors[i], states, table, columns, beta, later,
                    here, posteriors,
                )  # fmt: skip
        v0, v1 = indptr[sets[first + i]], indptr[sets[first + i] + 1]


@lean
def forward_backward(
    first: int,
    last: int,
    indptr: IntArray,
    chain: MarkovChain,
    emissions: TokenEmissions,
    lists: StateLists,
    weights: FloatArray,
    counts: ChainCounts,
    counting: bool,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if ``counting``, expected counts.

    ``weights`` says how often each sentence counts.
    """
    k, wide = len(chain.start), _pad(len(chain.start))
    lists = StateLists(lists.indptr, np.append(lists.states, 0))
    ahead, back = _reorder_transitions(chain)
    work = _make_workspace(first, last, indptr, chain, emissions, lists)
    later, columns, beta = np.empty(2 * k * wide), np.zeros((k, wide)), np.empty(wide)
    pairs = np.zeros(ahead.shape)
    begins, logs = work.begins, counts.log_likelihoods
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        logs[s] = _forward(begin, n, chain, ahead, False, emissions, lists, work)
        if logs[s] == -np.inf:
            continue
        total = _end(
            begin, n, chain, emissions.sets, lists.indptr, lists.states, work.alpha,
            begins[n - 1], later,
        )  # fmt: skip
        logs[s] += math.log(total) if total >= TINY else -np.inf
        if counting and total >= TINY:
            scale, own = weights[s] / total, lists.indptr[emissions.sets[begin]]
            _backward(
                begin, n, scale, chain, back, emissions, lists, work, later, columns, beta,
                counts, pairs,
            )  # fmt: skip
            for v in range(begins[1]):
                state = lists.states[own + v]
                counts.start[state] += chain.start[state] * later[v * wide]
    if counting:
        _add_in_order(pairs, chain.order, counts.transitions)


# Best paths (Viterbi 1967), and draws by forward filtering and backward sampling.
#
# Both go forward, keeping a number for each cell, and then back from the last token: to the state
# that is drawn, or to the one that the best path came from.


@merged
def _find_heaviest(weights: FloatArray, n: int) -> int:
    """The first of n that weighs most."""
    taken = 0
    for c in range(n):
        if weights[c] > weights[taken]:
            taken = c
    return taken


@merged
def _draw_weighed(weights: FloatArray, n: int, number: float) -> int:
    """One of n, in proportion to its weight, by a number that is drawn from [0, 1)."""
    left, taken, c = 0.0, 0, 0
    for j in range(n):
        left += weights[j]
    left *= number
    while c < n and left >= 0.0:
        if weights[c] > 0.0:
            taken = c
            left -= weights[c]
        c += 1
    return taken


@lean
def _trace_back(
    first: int,
    n: int,
    cell: int,
    sample: int,
    chain: MarkovChain,
    ahead: FloatArray,
    best: bool,
    sets: IntArray,
    lists: StateLists,
    work: ListsWorkspace,
    weights: FloatArray,
    stream: IntArray,
    paths: IntArray,
) -> None:
    """One path, from a cell of the last token back to the first token."""
    indptr, states, alpha, begins = lists.indptr, lists.states, work.alpha, work.begins
    order, k, nobody = chain.order, len(chain.start), len(states) - 1
    low, high = indptr[sets[first + n - 1]], indptr[sets[first + n - 1] + 1]
    u, v = cell // (high - low), cell % (high - low)
    for i in range(n - 1, 0, -1):
        state = states[low + v]
        paths[sample, first + i] = state
        t0, t1, u0, u1, base, stride = _origins(i - 1, order, k, first, sets, indptr, nobody)
        row, place = base + stride * states[u0 + u], begins[i - 1] + u
        for t in range(t1 - t0):
            weights[t] = alpha[place] * ahead[row + states[t0 + t], state]
            place += u1 - u0
        if best:
            t = _find_heaviest(weights, t1 - t0)
        else:
            t = _draw_weighed(weights, t1 - t0, uniform(stream, 0))
        u, v = (t, u) if order == 2 else (0, t)
        low = indptr[sets[first + i - 1]]
    paths[sample, first] = states[low + v]


@lean
def find_paths(
    first: int,
    last: int,
    indptr: IntArray,
    chain: MarkovChain,
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
    k = len(chain.start)
    lists = StateLists(lists.indptr, np.append(lists.states, 0))
    ahead, _ = _reorder_transitions(chain)
    work = _make_workspace(first, last, indptr, chain, emissions, lists)
    begins, sets = work.begins, emissions.sets
    finals, weights, stream = np.empty(k * k), np.empty(k), np.empty(1, np.uint64)
    for s in range(first, last):
        begin, n = indptr[s], indptr[s + 1] - indptr[s]
        if n == 0:
            continue
        logs[s] = _forward(begin, n, chain, ahead, best, emissions, lists, work)
        if logs[s] == -np.inf:
            continue
        total = _end(
            begin, n, chain, sets, lists.indptr, lists.states, work.alpha, begins[n - 1], finals
        )
        cells = begins[n] - begins[n - 1]
        if best:
            total = finals[_find_heaviest(finals, cells)]
        logs[s] += math.log(total) if total >= TINY else -np.inf
        if total >= TINY:
            stream[0] = item_stream(seed, numbers[s])
            for sample in range(len(paths)):
                if best:
                    cell = _find_heaviest(finals, cells)
                else:
                    cell = _draw_weighed(finals, cells, uniform(stream, 0))
                _trace_back(
                    begin, n, cell, sample, chain, ahead, best, sets, lists, work, weights,
                    stream, paths,
                )  # fmt: skip


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
