"""Chains of order 1 over packs of sentences that go in lockstep: a matrix product per position."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.hmm.kernels.records import ChainCounts
from softcount.kernels.jit import lean, merged, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import (
    add_columns_product,
    backward_rows,
    forward_rows,
    max_forward_rows,
    padded_width,
)

# How sentences are packed, and packs cut into segments.


class Packs(NamedTuple):
    """How sentences are packed: rows are tokens, position after position.

    ``positions``  pack p has ``begins[positions[p]:positions[p + 1]]``, the last one its end
    ``begins``     the first row of every position
    ``tokens``     the token of every row
    ``sentences``  pack p has ``order[sentences[p]:sentences[p + 1]]``, the longest first
    ``order``      sentences as they are packed
    """

    positions: IntArray  # (packs + 1,)
    begins: IntArray
    tokens: IntArray  # (tokens,)
    sentences: IntArray  # (packs + 1,)
    order: IntArray  # (sentences that are not empty,)


@njit
def _cut_packs(lengths: IntArray, lanes: int, most: int) -> IntArray:
    """Where packs begin among sentences sorted by length, and the end."""
    cuts = [0]
    for n in range(1, len(lengths)):
        wide = n - cuts[-1] + 1
        if wide > lanes or wide * lengths[cuts[-1]] > most:
            cuts.append(n)
    if len(lengths):
        cuts.append(len(lengths))
    return np.array(cuts)


@njit
def _lay_out(
    order: IntArray, lengths: IntArray, indptr: IntArray, sentences: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Positions, begins and tokens of packs."""
    positions = np.zeros(len(sentences), np.int64)
    for p in range(len(sentences) - 1):
        positions[p + 1] = positions[p] + lengths[sentences[p]] + 1
    begins = np.zeros(positions[-1], np.int64)
    tokens = np.empty(lengths.sum(), np.int64)
    row = 0
    for p in range(len(sentences) - 1):
        first, active = sentences[p], sentences[p + 1] - sentences[p]
        for i in range(lengths[first]):
            begins[positions[p] + i] = row
            while lengths[first + active - 1] <= i:
                active -= 1
            for lane in range(active):
                tokens[row + lane] = indptr[order[first + lane]] + i
            row += active
        begins[positions[p + 1] - 1] = row
    return positions, begins, tokens


def pack_sentences(indptr: IntArray, lanes: int, most: int) -> Packs:
    """Sentences of like lengths together, at most so many, and so many tokens unless one has more.

    >>> packs = pack_sentences(np.array([0, 2, 2, 5, 6]), lanes=2, most=100)
    >>> packs.order.tolist(), packs.sentences.tolist()  # the empty sentence is in none
    ([2, 0, 3], [0, 2, 3])
    >>> packs.tokens.tolist(), packs.begins.tolist(), packs.positions.tolist()
    ([2, 0, 3, 1, 4, 5], [0, 2, 4, 5, 5, 6], [0, 4, 6])
    """
    lengths = np.diff(indptr)
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    sentences = _cut_packs(lengths[order], lanes, most)
    return Packs(*_lay_out(order, lengths[order], indptr, sentences), sentences, order)


@njit
def _get_pack(packs: Packs, p: int) -> tuple[IntArray, IntArray]:
    """The borders of a pack's positions, and its sentences."""
    begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
    return begins, packs.order[packs.sentences[p] : packs.sentences[p + 1]]


@njit
def _cut_segments(begins: IntArray, most: int) -> IntArray:
    """Where segments begin, and the end: so many rows each, and one position at least."""
    cuts = [0]
    for i in range(1, len(begins)):
        if begins[i] - begins[cuts[-1]] > most and i - 1 > cuts[-1]:
            cuts.append(i - 1)
    cuts.append(len(begins) - 1)
    return np.array(cuts)


@njit
def _measure(first: int, last: int, packs: Packs, most: int) -> tuple[int, int]:
    """The most rows of a segment, and the most sentences of a pack."""
    rows = lanes = 0
    for p in range(first, last):
        begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
        cuts = _cut_segments(begins, most)
        for s in range(len(cuts) - 1):
            rows = max(rows, begins[cuts[s + 1]] - begins[cuts[s]])
        lanes = max(lanes, packs.sentences[p + 1] - packs.sentences[p])
    return rows, lanes


@njit
def _get_segment(begins: IntArray, cuts: IntArray, s: int) -> tuple[IntArray, int]:
    """The borders of a segment's positions, and how many sentences go on behind it."""
    end = cuts[s + 1]
    ahead = begins[end + 1] - begins[end] if end + 1 < len(begins) else 0
    return begins[cuts[s] : end + 1], ahead


# Forward and backward.
#
# The sentences of a pack go side by side, the longest first: at position i those that are so long
# are the first n_i of them. Rows of matrices are tokens, position after position; ``begins[i]`` is
# the first row of position i. With emissions E, transitions A and the probabilities of ending s,
#
#     α_i = (α_{i−1} A / c_{i−1}) ∘ E_i      Y_{i−1} = E_i ∘ β_i / c_{i−1}      β_{i−1} = Y_{i−1} Aᵀ
#
# c_i being what α_i adds up to: p(x_i | what was before) (Rabiner 1989). At the end β = s / Σ α s,
# so that γ = α ∘ β are posteriors, and αᵀ Y ∘ A, one product for all rows, the expected
# transitions. To weigh a sentence is to weigh its last β: all else follows. Each step goes through
# memory once (`softcount.kernels.vectors`).
#
# A pack that is too long for memory is cut into segments: α is kept at their borders, and worked
# out a second time when they are gone through backwards.


NEAR, TOGETHER = 64, 1024
"""So many rows are counted at a time, to be near; and so many together, before sums are added to
those of double precision."""


class PaddedChain(NamedTuple):
    """A chain of order 1, its rows padded with zeros: see `pad`.

    ``transposed``  Aᵀ, for the way back
    """

    start: FloatArray  # (K padded,)
    transitions: FloatArray  # (K, K padded)
    transposed: FloatArray  # (K, K padded)
    stop: FloatArray  # (K padded,)


class RowEmissions(NamedTuple):
    """p(token | state) of row r is ``table[rows[r]]``."""

    table: FloatArray  # (kinds of tokens, K padded)
    rows: IntArray  # (rows,)


def pad(table: FloatArray, dtype: Any) -> FloatArray:
    """Rows followed by zeros, up to whole vectors."""
    wide = np.zeros((*table.shape[:-1], padded_width(table.shape[-1])), dtype)
    wide[..., : table.shape[-1]] = table
    return wide


class PackWorkspace(NamedTuple):
    """Where a segment is worked on.

    ``alpha``, ``later``     α and Y of its rows
    ``scales``, ``inverse``  c, and 1 / c (0 of what counts as impossible)
    ``before``               α / c of the position before it, a row for each sentence
    ``handed``               what it hands on to that position: E ∘ β
    ``ones``                 factors for both
    """

    alpha: FloatArray  # (rows, K padded)
    later: FloatArray  # (rows, K padded)
    scales: FloatArray  # (rows,)
    inverse: FloatArray  # (rows,)
    before: FloatArray  # (sentences, K padded)
    handed: FloatArray  # (sentences, K padded)
    ones: FloatArray  # (sentences,)


@njit
def _make_workspace(
    first: int, last: int, packs: Packs, most: int, chain: PaddedChain
) -> PackWorkspace:
    """Large enough for any segment of the packs ``first`` to ``last``."""
    rows, lanes = _measure(first, last, packs, most)
    k, dtype = chain.transitions.shape[1], chain.transitions.dtype
    return PackWorkspace(
        np.empty((rows, k), dtype),
        np.empty((rows, k), dtype),
        np.empty(rows, dtype),
        np.empty(rows, dtype),
        np.empty((lanes, k), dtype),
        np.empty((lanes, k), dtype),
        np.ones(lanes, dtype),
    )


@merged
def _inverse(number: Any, like: FloatArray) -> Any:
    """1 / number; 0 of what counts as impossible."""
    one, nothing = like.dtype.type(1.0), like.dtype.type(0.0)
    return one / number if number >= np.finfo(like.dtype).tiny else nothing


@lean
def _forward(
    begins: IntArray,
    is_first: bool,
    best: bool,
    chain: PaddedChain,
    emissions: RowEmissions,
    work: PackWorkspace,
) -> None:
    """α and c of a segment; those of best paths have the largest product in place of the sum."""
    alpha, scales, inverse = work.alpha, work.scales, work.inverse
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        if i == 0 and is_first:
            _begin_forward(b, chain.start, emissions, work)
        else:
            left, factors = (alpha, inverse) if i else (work.before, work.ones)
            back = begins[i] - begins[i - 1] if i else 0
            tables = (chain.transitions, emissions.table, emissions.rows)
            if best:
                max_forward_rows(
                    alpha, a, b - a, left, a - back, *tables, factors, a - back, scales
                )
            else:
                forward_rows(alpha, a, b - a, left, a - back, *tables, factors, a - back, scales)
        for r in range(a, b):
            inverse[r] = _inverse(scales[r], alpha)


@lean
def _begin_forward(n: int, start: FloatArray, emissions: RowEmissions, work: PackWorkspace) -> None:
    """α and c of first positions."""
    for r in range(n):
        total = start.dtype.type(0.0)
        for k in range(len(start)):
            work.alpha[r, k] = start[k] * emissions.table[emissions.rows[r], k]
            total += work.alpha[r, k]
        work.scales[r] = total


@njit
def _add_logs(begins: IntArray, order: IntArray, work: PackWorkspace, logs: FloatArray) -> None:
    """Add log c of a segment's tokens to log p of their sentences."""
    tiny = np.finfo(work.scales.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        for r in range(a, b):
            logs[order[r - a]] += math.log(work.scales[r]) if work.scales[r] >= tiny else -np.inf


@njit
def _add_ends(
    begins: IntArray,
    ahead: int,
    order: IntArray,
    chain: PaddedChain,
    work: PackWorkspace,
    logs: FloatArray,
) -> None:
    """Add log Σ α s / c of sentences that end in a segment; ``ahead`` go on behind it."""
    tiny = np.finfo(work.scales.dtype).tiny
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a + on, b):
            total = _sum_ends(r, work.alpha, chain.stop) * work.inverse[r]
            logs[order[r - a]] += math.log(total) if total >= tiny else -np.inf


@lean
def _sum_ends(r: int, alpha: FloatArray, stop: FloatArray) -> Any:
    """Σ α s."""
    total = alpha.dtype.type(0.0)
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * stop[k]
    return total


@lean
def _keep_last(begins: IntArray, work: PackWorkspace, kept: FloatArray) -> None:
    """α / c of a segment's last position."""
    first = begins[-2] - begins[0]
    for r in range(begins[-1] - begins[-2]):
        for k in range(kept.shape[1]):
            kept[r, k] = work.alpha[first + r, k] * work.inverse[first + r]


@lean
def _backward(
    begins: IntArray,
    ahead: int,
    order: IntArray,
    weights: FloatArray,
    chain: PaddedChain,
    emissions: RowEmissions,
    into: IntArray,
    work: PackWorkspace,
    counts: ChainCounts,
) -> None:
    """Y of a segment; what it hands on; posteriors, and those of last tokens.

    ``ahead`` of the sentences go on behind the segment: what these handed on is in ``handed``.
    """
    last = begins[-2] - begins[0]
    for r in range(last, last + ahead):
        for k in range(work.later.shape[1]):
            work.later[r, k] = work.handed[r - last, k] * work.inverse[r]
    tables = (chain.transposed, work.alpha, emissions.table, emissions.rows)
    posteriors = counts.posteriors
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        back = begins[i] - begins[i - 1] if i else 0
        out, factors = (work.later, work.inverse) if i else (work.handed, work.ones)
        backward_rows(out, a - back, on, work.later, a, *tables, factors, posteriors, into)
        for r in range(a + on, b):
            weight = weights[order[r - a]]
            _begin_backward(
                r,
                weight,
                chain.stop,
                emissions,
                into[r],
                factors[r - back],
                out,
                r - back,
                work,
                counts,
            )


@lean
def _begin_backward(
    r: int,
    weight: float,
    stop: FloatArray,
    emissions: RowEmissions,
    target: int,
    factor: Any,
    out: FloatArray,
    o: int,
    work: PackWorkspace,
    counts: ChainCounts,
) -> None:
    """What `backward_rows` does, of a sentence's last token."""
    alpha, nothing = work.alpha, work.alpha.dtype.type(0.0)
    scale = _inverse(_sum_ends(r, alpha, stop), alpha) * alpha.dtype.type(weight)
    for k in range(len(stop)):
        beta = stop[k] * scale
        counts.posteriors[target, k] += alpha[r, k] * beta
        counts.stop[k] += alpha[r, k] * beta
        value = emissions.table[emissions.rows[r], k] * beta * factor
        out[o, k] = value if alpha[r, k] > nothing else nothing
        work.later[r, k] = nothing


@lean
def _count_transitions(
    n: int, work: PackWorkspace, pairs: FloatArray, transitions: FloatArray
) -> None:
    """Add αᵀ Y of n rows to the expected transitions."""
    for first in range(0, n, TOGETHER):
        pairs[:] = 0.0
        for t in range(first, min(first + TOGETHER, n), NEAR):
            add_columns_product(pairs, work.alpha, work.later, t, min(NEAR, n - t))
        for k in range(len(pairs)):
            for j in range(len(pairs)):
                transitions[k, j] += pairs[k, j]


@njit
def _forward_pack(
    begins: IntArray,
    cuts: IntArray,
    order: IntArray,
    best: bool,
    chain: PaddedChain,
    emissions: RowEmissions,
    work: PackWorkspace,
    logs: FloatArray,
) -> FloatArray:
    """Go forward over a pack, segment by segment; gives α / c before each of them.

    The ends of best paths are not added to ``logs``.
    """
    kept = np.empty((len(cuts) - 1, *work.before.shape), work.before.dtype)
    for s in range(len(cuts) - 1):
        own, ahead = _recall_segment(s, False, begins, cuts, kept, best, chain, emissions, work)
        _add_logs(own, order, work, logs)
        if not best:
            _add_ends(own, ahead, order, chain, work, logs)
        if s + 2 < len(cuts):
            _keep_last(own, work, kept[s + 1])
    return kept


@njit
def _recall_segment(
    s: int,
    is_there: bool,
    begins: IntArray,
    cuts: IntArray,
    kept: FloatArray,
    best: bool,
    chain: PaddedChain,
    emissions: RowEmissions,
    work: PackWorkspace,
) -> tuple[IntArray, int]:
    """Have α of a segment at hand, unless it ``is_there`` already.

    Gives the borders of its positions, and how many sentences go on behind it.
    """
    own, ahead = _get_segment(begins, cuts, s)
    if not is_there:
        work.before[:] = kept[s]
        text = RowEmissions(emissions.table, emissions.rows[own[0] : own[-1]])
        _forward(own, s == 0, best, chain, text, work)
    return own, ahead


@njit
def forward_backward(
    first: int,
    last: int,
    packs: Packs,
    chain: PaddedChain,
    emissions: RowEmissions,
    weights: FloatArray,
    most: int,
    counts: ChainCounts,
    counting: bool,
) -> None:
    """Packs ``first`` to ``last``: log p of every sentence and, if wanted, what is to be counted.

    ``weights`` are those of sentences; no segment has more rows than ``most``, if it can be helped.
    """
    pairs = np.empty(
        (chain.transitions.shape[1], chain.transitions.shape[1]), chain.transitions.dtype
    )
    work = _make_workspace(first, last, packs, most, chain)
    for p in range(first, last):
        begins, order = _get_pack(packs, p)
        cuts = _cut_segments(begins, most)
        kept = _forward_pack(
            begins, cuts, order, False, chain, emissions, work, counts.log_likelihoods
        )
        if not counting:
            continue
        for s in range(len(cuts) - 2, -1, -1):
            is_last = s + 2 == len(cuts)  # where α still is what it was
            own, ahead = _recall_segment(
                s, is_last, begins, cuts, kept, False, chain, emissions, work
            )
            text = RowEmissions(emissions.table, emissions.rows[own[0] : own[-1]])
            into = counts.into[own[0] : own[-1]]
            _backward(own, ahead, order, weights, chain, text, into, work, counts)
            _count_transitions(own[-1] - own[0], work, pairs, counts.transitions)
        for r in range(begins[1] - begins[0]):
            for k in range(len(chain.start)):
                counts.start[k] += chain.start[k] * work.handed[r, k]


# Best paths, and draws of paths.
#
# A path is found from the last token back to the first: before state z there is the state k with
# the largest α(k) A(k, z), or one drawn in proportion to it.


@njit
def find_paths(
    first: int,
    last: int,
    packs: Packs,
    chain: PaddedChain,
    emissions: RowEmissions,
    most: int,
    best: bool,
    numbers: IntArray,
    seed: Any,
    logs: FloatArray,
    paths: IntArray,
) -> None:
    """Paths (samples, tokens) of packs ``first`` to ``last``; ``logs`` of each sentence.

    The best one (Viterbi 1967), ``logs`` being log p(path, sentence); or drawn by forward filtering
    and backward sampling, ``logs`` being log p(sentence). A draw depends on the seed, the
    sentence's number and the sample's alone.
    """
    work = _make_workspace(first, last, packs, most, chain)
    lanes, ends = len(work.before), chain.stop.reshape(1, -1)
    states = np.empty((len(paths), lanes), np.int64)
    streams = np.empty((len(paths), lanes), np.uint64)
    for p in range(first, last):
        begins, order = _get_pack(packs, p)
        for s in range(len(paths)):
            for lane in range(len(order)):
                streams[s, lane] = item_stream(item_stream(seed, numbers[order[lane]]), s)
        cuts = _cut_segments(begins, most)
        kept = _forward_pack(begins, cuts, order, best, chain, emissions, work, logs)
        for s in range(len(cuts) - 2, -1, -1):
            is_last = s + 2 == len(cuts)  # where α still is what it was
            own, ahead = _recall_segment(
                s, is_last, begins, cuts, kept, best, chain, emissions, work
            )
            tokens = packs.tokens[own[0] : own[-1]]
            if best:
                _add_best_ends(own, ahead, order, chain.stop, work, logs)
            for n in range(len(paths)):
                _trace_back(
                    own,
                    ahead,
                    best,
                    chain.transposed,
                    ends,
                    work,
                    tokens,
                    states[n],
                    streams[n],
                    paths[n],
                )


@lean
def _trace_back(
    begins: IntArray,
    ahead: int,
    best: bool,
    back: FloatArray,
    ends: FloatArray,
    work: PackWorkspace,
    tokens: IntArray,
    states: IntArray,
    streams: IntArray,
    path: IntArray,
) -> None:
    """States of a segment's tokens; ``states`` are those of the position behind it, and before."""
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a, b):
            lane = r - a
            if lane < on:
                table, row = back, states[lane]
            else:
                table, row = ends, 0
            if best:
                state = _find_heaviest(r, work.alpha, row, table)
            else:
                state = _draw_weighed(r, work.alpha, row, table, uniform(streams, lane))
            states[lane] = path[tokens[r]] = state


@merged
def _find_heaviest(r: int, alpha: FloatArray, row: int, table: FloatArray) -> int:
    """The first k with the largest α(k) · table[row, k]."""
    top, found = alpha.dtype.type(-1.0), 0
    for k in range(alpha.shape[1]):
        if alpha[r, k] * table[row, k] > top:
            top, found = alpha[r, k] * table[row, k], k
    return found


@merged
def _draw_weighed(r: int, alpha: FloatArray, row: int, table: FloatArray, number: float) -> int:
    """k in proportion to α(k) · table[row, k]."""
    total = 0.0
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * table[row, k]
    left, found = number * total, 0
    for k in range(alpha.shape[1]):
        weight = alpha[r, k] * table[row, k]
        if weight > 0.0:
            found = k
            left -= weight
            if left < 0.0:
                break
    return found


@njit
def _add_best_ends(
    begins: IntArray,
    ahead: int,
    order: IntArray,
    stop: FloatArray,
    work: PackWorkspace,
    logs: FloatArray,
) -> None:
    """Add log max α s / c of sentences that end in a segment; ``ahead`` go on behind it."""
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        for r in range(a + on, b):
            top = 0.0
            for k in range(len(stop)):
                top = max(top, work.alpha[r, k] * stop[k])
            top *= work.inverse[r]
            logs[order[r - a]] += math.log(top) if top > 0.0 else -np.inf
