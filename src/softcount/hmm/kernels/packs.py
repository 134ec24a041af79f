"""Chains of order 1 over packs of sentences that go in lockstep: a matrix product per position.

The sentences of a pack go side by side, the longest first: at position i those that are so long are
the first n_i of them. Rows of matrices are tokens, position after position; ``begins[i]`` is the
first row of position i. With emissions E, transitions A and the probabilities of ending s,

    α_i = (α_{i−1} A / c_{i−1}) ∘ E_i      Y_{i−1} = E_i ∘ β_i / c_{i−1}      β_{i−1} = Y_{i−1} Aᵀ

c_i being what α_i adds up to: p(x_i | what was before) (Rabiner 1989). At the end β = s / Σ α s, so
that γ = α ∘ β are posteriors, and αᵀ Y ∘ A, one product for all rows, the expected transitions. To
weigh a sentence is to weigh its last β: all else follows. Each step goes through memory once
(`softcount.kernels.vectors`).

A pack that is too long for memory is cut into segments: α is kept at their borders, and worked out
a second time on the way back.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.hmm.kernels import ChainCounts
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import (
    add_columns_product,
    backward_rows,
    forward_rows,
    max_forward_rows,
    padded_width,
)

NEAR, TOGETHER = 32, 1024
"""Rows of a block that stays in the cache (with 40 states 32 of α, 32 of Y and the table of
transitions take 33 KB; with 64 they are too large for a first-level cache of 48 KB); and rows whose
counts are summed in the precision of the matrices, before they are added to those of double
precision. The bits depend on the second alone."""


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


def pack_sentences(indptr: IntArray, lanes: int, most: int) -> Packs:
    """Sentences of like lengths together, at most so many, and so many tokens unless one has more.

    >>> packs = pack_sentences(np.array([0, 2, 2, 5, 6]), lanes=2, most=100)
    >>> packs.order.tolist(), packs.sentences.tolist()  # the empty sentence is in none
    ([2, 0, 3], [0, 2, 3])
    >>> packs.tokens.tolist(), packs.begins.tolist(), packs.positions.tolist()
    ([2, 0, 3, 1, 4, 5], [0, 2, 4, 5, 5, 6], [0, 4, 6])
    """
    lengths = np.diff(indptr)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    return _lay_out(order, lengths[order], indptr, lanes, most)


@lean
def _lay_out(order: IntArray, lengths: IntArray, indptr: IntArray, lanes: int, most: int) -> Packs:
    """Packs of sentences that are sorted by length."""
    cuts = [0]
    for n in range(1, len(lengths)):
        wide = n - cuts[-1] + 1
        if wide > lanes or wide * lengths[cuts[-1]] > most:
            cuts.append(n)
    if len(lengths):
        cuts.append(len(lengths))
    sentences = np.array(cuts)
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
    return Packs(positions, begins, tokens, sentences, order)


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


class PackSegments(NamedTuple):
    """A pack that is cut into segments: segment s has the positions ``cuts[s]`` to ``cuts[s + 1]``.

    ``begins``  the first row of every position, and the end
    ``order``   the sentences, the longest first
    """

    begins: IntArray
    order: IntArray
    cuts: IntArray


@lean
def _cut_pack(packs: Packs, p: int, most: int) -> PackSegments:
    """Segments of so many rows each, if it can be helped: they have one position at least."""
    begins = packs.begins[packs.positions[p] : packs.positions[p + 1]]
    cuts = [0]
    for i in range(1, len(begins)):
        if begins[i] - begins[cuts[-1]] > most and i - 1 > cuts[-1]:
            cuts.append(i - 1)
    cuts.append(len(begins) - 1)
    order = packs.order[packs.sentences[p] : packs.sentences[p + 1]]
    return PackSegments(begins, order, np.array(cuts))


@lean
def _get_segment(pack: PackSegments, s: int) -> tuple[IntArray, int]:
    """The first rows of a segment's positions, and its end; how many sentences go on behind it."""
    begins, end = pack.begins, pack.cuts[s + 1]
    ahead = begins[end + 1] - begins[end] if end + 1 < len(begins) else 0
    return begins[pack.cuts[s] : end + 1], ahead


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


@lean
def _make_workspace(
    first: int, last: int, packs: Packs, most: int, chain: PaddedChain
) -> PackWorkspace:
    """Large enough for any segment of the packs ``first`` to ``last``."""
    rows = lanes = 0
    for p in range(first, last):
        begins, order, cuts = _cut_pack(packs, p, most)
        for s in range(len(cuts) - 1):
            rows = max(rows, begins[cuts[s + 1]] - begins[cuts[s]])
        lanes = max(lanes, len(order))
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
def _invert(number: Any, like: FloatArray) -> Any:
    """1 / number; 0 of what counts as impossible."""
    one, nothing = like.dtype.type(1.0), like.dtype.type(0.0)
    return one / number if number >= np.finfo(like.dtype).tiny else nothing


@merged
def _sum_ends(r: int, alpha: FloatArray, stop: FloatArray) -> Any:
    """Σ α s."""
    total = alpha.dtype.type(0.0)
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * stop[k]
    return total


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
    table, rows = emissions.table, emissions.rows[begins[0] : begins[-1]]
    for i in range(len(begins) - 1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        if i == 0 and is_first:
            for r in range(b):
                total = alpha.dtype.type(0.0)
                for k in range(len(chain.start)):
                    alpha[r, k] = chain.start[k] * table[rows[r], k]
                    total += alpha[r, k]
                scales[r] = total
        else:
            left, factors = (alpha, inverse) if i else (work.before, work.ones)
            back = a - (begins[i] - begins[i - 1] if i else 0)
            right = chain.transitions
            if best:
                max_forward_rows(
                    alpha, a, b - a, left, back, right, table, rows, factors, back, scales
                )
            else:
                forward_rows(alpha, a, b - a, left, back, right, table, rows, factors, back, scales)
        for r in range(a, b):
            inverse[r] = _invert(scales[r], alpha)


@lean
def _forward_pack(
    pack: PackSegments,
    best: bool,
    chain: PaddedChain,
    emissions: RowEmissions,
    work: PackWorkspace,
    logs: FloatArray,
) -> FloatArray:
    """Go forward over a pack, segment by segment; gives α / c before each of them.

    ``logs`` of sentences get log c of their tokens, and log Σ α s / c of the last (of best paths,
    log max α s / c).
    """
    alpha, scales, inverse, stop = work.alpha, work.scales, work.inverse, chain.stop
    tiny, order = np.finfo(scales.dtype).tiny, pack.order
    kept = np.empty((len(pack.cuts) - 1, *work.before.shape), work.before.dtype)
    for s in range(len(kept)):
        own, ahead = _get_segment(pack, s)
        work.before[:] = kept[s]
        _forward(own, s == 0, best, chain, emissions, work)
        for i in range(len(own) - 1):
            a, b = own[i] - own[0], own[i + 1] - own[0]
            on = own[i + 2] - own[i + 1] if i + 2 < len(own) else ahead
            for r in range(a, b):
                logs[order[r - a]] += math.log(scales[r]) if scales[r] >= tiny else -np.inf
            for r in range(a + on, b):  # those that end here
                if best:
                    top = 0.0
                    for k in range(len(stop)):
                        top = max(top, alpha[r, k] * stop[k])
                    top *= inverse[r]
                    logs[order[r - a]] += math.log(top) if top > 0.0 else -np.inf
                else:
                    total = _sum_ends(r, alpha, stop) * inverse[r]
                    logs[order[r - a]] += math.log(total) if total >= tiny else -np.inf
        if s + 1 < len(kept):
            last = own[-2] - own[0]
            for r in range(own[-1] - own[-2]):
                for k in range(kept.shape[2]):
                    kept[s + 1, r, k] = alpha[last + r, k] * inverse[last + r]
    return kept


@lean
def _backward(
    begins: IntArray,
    ahead: int,
    order: IntArray,
    weights: FloatArray,
    chain: PaddedChain,
    emissions: RowEmissions,
    work: PackWorkspace,
    counts: ChainCounts,
) -> None:
    """Y of a segment; what it hands on; posteriors, and those of last tokens.

    ``ahead`` of the sentences go on behind the segment: what these handed on is in ``handed``.
    """
    alpha, later, posteriors, stop = work.alpha, work.later, counts.posteriors, chain.stop
    table, rows = emissions.table, emissions.rows[begins[0] : begins[-1]]
    into, nothing = counts.into[begins[0] : begins[-1]], alpha.dtype.type(0.0)
    last = begins[-2] - begins[0]
    for r in range(last, last + ahead):
        for k in range(later.shape[1]):
            later[r, k] = work.handed[r - last, k] * work.inverse[r]
    for i in range(len(begins) - 2, -1, -1):
        a, b = begins[i] - begins[0], begins[i + 1] - begins[0]
        on = begins[i + 2] - begins[i + 1] if i + 2 < len(begins) else ahead
        back = begins[i] - begins[i - 1] if i else 0
        out, factors = (later, work.inverse) if i else (work.handed, work.ones)
        backward_rows(
            out, a - back, on, later, a, chain.transposed, alpha, table, rows, factors, posteriors,
            into,
        )  # fmt: skip
        for r in range(a + on, b):  # the same, of sentences' last tokens
            scale = _invert(_sum_ends(r, alpha, stop), alpha)
            scale *= alpha.dtype.type(weights[order[r - a]])
            for k in range(len(stop)):
                beta = stop[k] * scale
                posteriors[into[r], k] += alpha[r, k] * beta
                counts.stop[k] += alpha[r, k] * beta
                value = table[rows[r], k] * beta * factors[r - back]
                out[r - back, k] = value if alpha[r, k] > nothing else nothing
                later[r, k] = nothing


@lean
def forward_backward(
    first: int,
    last: int,
    packs: Packs,
    chain: PaddedChain,
    emissions: RowEmissions,
    most: int,
    weights: FloatArray,
    counts: ChainCounts,
    counting: bool,
) -> None:
    """Packs ``first`` to ``last``: log p of every sentence and, if wanted, what is to be counted.

    ``weights`` are those of sentences; no segment has more rows than ``most``, if it can be helped.
    """
    wide = chain.transitions.shape[1]
    pairs = np.empty((wide, wide), chain.transitions.dtype)
    work = _make_workspace(first, last, packs, most, chain)
    for p in range(first, last):
        pack = _cut_pack(packs, p, most)
        kept = _forward_pack(pack, False, chain, emissions, work, counts.log_likelihoods)
        if not counting:
            continue
        for s in range(len(kept) - 1, -1, -1):
            own, ahead = _get_segment(pack, s)
            if s + 1 < len(kept):  # of the last, α still is what it was
                work.before[:] = kept[s]
                _forward(own, s == 0, False, chain, emissions, work)
            _backward(own, ahead, pack.order, weights, chain, emissions, work, counts)
            n = own[-1] - own[0]
            for t in range(0, n, TOGETHER):  # αᵀ Y, to be multiplied by A
                pairs[:] = 0.0
                for near in range(t, min(t + TOGETHER, n), NEAR):
                    add_columns_product(pairs, work.alpha, work.later, near, min(NEAR, n - near))
                for k in range(wide):
                    for j in range(wide):
                        counts.transitions[k, j] += pairs[k, j]
        for r in range(pack.begins[1] - pack.begins[0]):
            for k in range(wide):
                counts.start[k] += chain.start[k] * work.handed[r, k]


@merged
def _choose(r: int, alpha: FloatArray, row: int, table: FloatArray) -> int:
    """The first k with the largest α(k) · table[row, k]."""
    top, taken = alpha.dtype.type(-1.0), 0
    for k in range(alpha.shape[1]):
        if alpha[r, k] * table[row, k] > top:
            top, taken = alpha[r, k] * table[row, k], k
    return taken


@merged
def _draw(r: int, alpha: FloatArray, row: int, table: FloatArray, number: float) -> int:
    """k in proportion to α(k) · table[row, k], by a number that is drawn from [0, 1)."""
    total = 0.0
    for k in range(alpha.shape[1]):
        total += alpha[r, k] * table[row, k]
    left, taken = number * total, 0
    for k in range(alpha.shape[1]):
        weight = alpha[r, k] * table[row, k]
        if weight > 0.0:
            taken = k
            left -= weight
            if left < 0.0:
                break
    return taken


@lean
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

    A path is found from the last token back to the first: before state z there is the state k with
    the largest α(k) A(k, z), or one drawn in proportion to it. So it is the best one (Viterbi
    1967), ``logs`` being log p(path, sentence); or drawn by forward filtering and backward
    sampling, ``logs`` being log p(sentence). A draw depends on the seed, the sentence's number and
    the sample's alone.
    """
    work = _make_workspace(first, last, packs, most, chain)
    alpha, lanes = work.alpha, len(work.before)
    back, ends = chain.transposed, chain.stop.reshape(1, -1)
    states = np.empty((len(paths), lanes), np.int64)  # those of the position behind
    streams = np.empty((len(paths), lanes), np.uint64)
    for p in range(first, last):
        pack = _cut_pack(packs, p, most)
        for n in range(len(paths)):
            for lane in range(len(pack.order)):
                streams[n, lane] = item_stream(item_stream(seed, numbers[pack.order[lane]]), n)
        kept = _forward_pack(pack, best, chain, emissions, work, logs)
        for s in range(len(kept) - 1, -1, -1):
            own, ahead = _get_segment(pack, s)
            if s + 1 < len(kept):  # of the last, α still is what it was
                work.before[:] = kept[s]
                _forward(own, s == 0, best, chain, emissions, work)
            for n in range(len(paths)):
                behind, stream, path = states[n], streams[n], paths[n]
                for i in range(len(own) - 2, -1, -1):
                    a, b = own[i] - own[0], own[i + 1] - own[0]
                    on = own[i + 2] - own[i + 1] if i + 2 < len(own) else ahead
                    for r in range(a, b):
                        lane = r - a
                        table, row = (back, behind[lane]) if lane < on else (ends, 0)
                        if best:
                            state = _choose(r, alpha, row, table)
                        else:
                            state = _draw(r, alpha, row, table, uniform(stream, lane))
                        behind[lane] = path[packs.tokens[own[0] + r]] = state
