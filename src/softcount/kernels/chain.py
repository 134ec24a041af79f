"""Forward–backward over the hidden places of alignments (Vogel, Ney & Tillmann 1996).

The places of neighbouring target words form a chain: p(a_j = k | a_{j−1} = h, l) is a jump of k − h
words, w(k − h) / Z(h), Z the sum over all places of the sentence. A target word may also come from
the empty word, with probability p₀; the chain remembers the place from which it jumps on (Och & Ney
2003). Place 0 stands before the sentence and has jumps of its own, place k is source word k − 1.
With emissions E, jumps A(h, k) = w(k − h) z(h) and z(h) = (1 − p₀) / Z(h),

    γ_j(k) = p(f_1..f_j, last place k),    β_j(k) = p(f_{j+1}..f_m | last place k)

both scaled by the same c_j, so that they stay near 1 whatever the length.

Pairs of about one size go in lockstep, one a lane. Where one has fewer source words than others,
the missing ones are impossible; where it has fewer target words, the missing ones come from the
empty word with certainty. Neither changes anything.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import njit
from softcount.kernels.lane_products import SIDE, blend, meet_rows
from softcount.kernels.lanes import WIDTH
from softcount.types import Array

MOST = 1e100
"""Places that next to nothing leads to may promise more than numbers can hold."""
LEAST = np.finfo(np.float64).tiny
"""A word below this chance counts as impossible: 1 / chance would be no number."""


class Jumps(NamedTuple):
    """w(d) at ``ahead[middle + d]`` and ``back[middle − d]``; that of the start at ``start[k]``.

    ``z`` has l + 1 numbers for every length l of sentences, from ``rows[l]`` on.
    """

    ahead: Array
    back: Array
    start: Array
    middle: int
    z: Array
    rows: Array
    p0: float


class Room(NamedTuple):
    """Where a group of pairs is worked on: matrices with one column a lane."""

    emit: Array
    pred: Array
    gamma: Array
    beta: Array
    next: Array
    z: Array
    left: Array
    scales: Array


@njit
def room(l: int, m: int, lanes: int) -> Room:
    """Room for pairs of up to l source words and m target words."""
    n = l + 1
    return Room(
        np.zeros((m * n + SIDE, lanes)),
        np.empty((m * n, lanes)),
        np.empty(((m + 1) * n, lanes)),
        np.empty((n, lanes)),
        np.empty((n, lanes)),
        np.zeros((n, lanes)),
        np.zeros((n, lanes)),
        np.empty((m, lanes)),
    )


@njit
def load(links: Array, l: int, m: int, jumps: Jumps, at: Room, lane: int) -> None:
    """One pair's emissions (l + 1, m) into its lane; for every target word the empty word first."""
    n, longest = len(at.z), len(at.scales)
    for k in range(l):
        for j in range(m):
            at.emit[j * n + k + 1, lane] = links[k * m + j]
    for j in range(m):
        at.emit[j * n, lane] = jumps.p0 * links[l * m + j]
    for j in range(m, longest):
        at.emit[j * n, lane] = 1.0
    at.z[: l + 1, lane] = jumps.z[jumps.rows[l] : jumps.rows[l] + l + 1]


@njit
def store(links: Array, l: int, m: int, jumps: Jumps, at: Room, lane: int, left: Array) -> float:
    """One pair's posteriors out of its lane, and from where it jumped; answers its log p."""
    n = len(at.z)
    for k in range(l):
        for j in range(m):
            links[k * m + j] = at.pred[j * n + k + 1, lane]
    total = 0.0
    for j in range(m):
        links[l * m + j] = at.pred[j * n, lane]
        c = at.scales[j, lane]
        total += math.log(c) if c > 0.0 else -np.inf
    for k in range(l + 1):
        left[jumps.rows[l] + k] += at.left[k, lane]
    return total


@njit
def forward(jumps: Jumps, at: Room) -> None:
    """γ of all words, Σ_h γ(h) A(h, ·) of all words in ``pred``, and c_j (0: impossible)."""
    n, lanes = at.z.shape
    emit, pred, gamma, scaled, scales = at.emit, at.pred, at.gamma, at.next, at.scales
    inverse = np.empty(lanes)
    gamma[:n] = 0.0
    gamma[0] = 1.0
    for j in range(len(scales)):
        now, new = j * n, (j + 1) * n
        for k in range(n):
            for b in range(lanes):
                scaled[k, b] = gamma[now + k, b] * at.z[k, b]
        for b in range(lanes):
            gamma[new, b] = gamma[now, b] * emit[now, b]
            scales[j, b] = gamma[new, b]
        for k in range(1, n):
            blend(pred, now + k, jumps.back, jumps.middle - k + 1, scaled, 1, n - 1)
            first = jumps.start[k]
            for b in range(lanes):
                pred[now + k, b] += first * scaled[0, b]
                both = pred[now + k, b] * emit[now + k, b] + gamma[now + k, b] * emit[now, b]
                gamma[new + k, b] = both
                scales[j, b] += both
        for b in range(lanes):
            scales[j, b] = scales[j, b] if scales[j, b] >= LEAST else 0.0
            inverse[b] = 1.0 / scales[j, b] if scales[j, b] > 0.0 else 1.0
        for k in range(n):
            for b in range(lanes):
                gamma[new + k, b] *= inverse[b]


@njit
def backward(jumps: Jumps, at: Room) -> None:
    """Posteriors in ``pred``, E β / c in ``emit``, γ z in ``gamma``, expected jumps in ``left``."""
    n, lanes = at.z.shape
    emit, pred, gamma, beta, later = at.emit, at.pred, at.gamma, at.beta, at.next
    inverse = np.empty(lanes)
    beta[:] = 1.0
    for j in range(len(at.scales) - 1, -1, -1):
        now = j * n
        for b in range(lanes):
            inverse[b] = 1.0 / at.scales[j, b] if at.scales[j, b] > 0.0 else 1.0
            emit[now, b] *= inverse[b]
            pred[now, b] = gamma[now, b] * beta[0, b] * emit[now, b]
        for k in range(1, n):
            for b in range(lanes):
                emit[now + k, b] = min(emit[now + k, b] * inverse[b] * beta[k, b], MOST)
                pred[now + k, b] = min(pred[now + k, b] * emit[now + k, b], 1.0)
                pred[now, b] += gamma[now + k, b] * beta[k, b] * emit[now, b]
        blend(later, 0, jumps.start, 1, emit, now + 1, n - 1)
        for k in range(1, n):
            blend(later, k, jumps.ahead, jumps.middle - k + 1, emit, now + 1, n - 1)
        for k in range(n):
            for b in range(lanes):
                jumped = at.z[k, b] * later[k, b]
                at.left[k, b] += gamma[now + k, b] * jumped
                gamma[now + k, b] *= at.z[k, b]
                beta[k, b] = min(beta[k, b] * emit[now, b] + jumped, MOST)


@njit
def count_jumps(jumps: Jumps, at: Room, widths: Array, starts: Array) -> None:
    """Add the expected jumps, by width and from the start by place; after `backward`."""
    n, m = len(at.z), len(at.scales)
    met = np.empty(SIDE)
    for h in range(n):
        for first in range(1, n, SIDE):
            meet_rows(at.gamma, h, at.emit, first, n, m, met)
            for k in range(first, min(first + SIDE, n)):
                if h == 0:
                    starts[k] += met[k - first] * jumps.start[k]
                else:
                    d = jumps.middle + k - h
                    widths[d] += met[k - first] * jumps.ahead[d]


@njit
def loaded(
    own: Array, sources: Array, targets: Array, offsets: Array, jumps: Jumps, links: Array
) -> Room:
    """Room for a group of pairs, with their emissions in it."""
    l = m = 0
    for p in own:
        l = max(l, sources[p + 1] - sources[p])
        m = max(m, targets[p + 1] - targets[p])
    at = room(l, m, -(-len(own) // WIDTH) * WIDTH)
    for lane in range(at.z.shape[1]):
        if lane < len(own):
            p = own[lane]
            size = (sources[p + 1] - sources[p], targets[p + 1] - targets[p])
            load(links[offsets[p] :], *size, jumps, at, lane)
        else:
            load(links, 0, 0, jumps, at, lane)
    return at


@njit
def chains(
    first: int,
    last: int,
    groups: Array,
    members: Array,
    sources: Array,
    targets: Array,
    offsets: Array,
    jumps: Jumps,
    links: Array,
    logs: Array,
    widths: Array,
    starts: Array,
    left: Array,
    counting: bool,
) -> None:
    """Emissions of the groups ``first`` to ``last`` become posteriors, in place.

    ``logs`` gets log p(target | source) of every pair; expected jumps are added to ``widths`` (by
    width), ``starts`` (by first place) and ``left`` (by length and place of departure), if they are
    to be counted.
    """
    for g in range(first, last):
        own = members[groups[g] : groups[g + 1]]
        at = loaded(own, sources, targets, offsets, jumps, links)
        forward(jumps, at)
        backward(jumps, at)
        if counting:
            count_jumps(jumps, at, widths, starts)
        for lane in range(len(own)):
            p = own[lane]
            size = (sources[p + 1] - sources[p], targets[p + 1] - targets[p])
            logs[p] = store(links[offsets[p] :], *size, jumps, at, lane, left)
