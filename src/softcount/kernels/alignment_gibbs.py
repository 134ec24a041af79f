"""Gibbs sampling of word alignments with jumps and fertilities, all parameters integrated out.

With the counts of `softcount.kernels.alignment_state`, x^(n) = x (x + 1) … (x + n − 1), and n₀ of n
target words from the empty word:

    p(f, a) ∝ Π_e [Π_f α_ef^(n(e, f)) / A_e^(n(e))] · Π_d γ^(c_d) / Γ^(c)
              · Π_e [Π_φ β_φ^(c(e, φ)) / B^(c(e))] · p₀^n₀ (1 − p₀)^(n − n₀)

A_e, Γ and B are sums of priors. This is deficient, as Models 3 and 4 are: jumps may lead out of the
sentence, and fertilities need not add up. Words, jumps and fertilities are those of Östling &
Tiedemann 2016 (fertilities: Zhao & Gildea 2010); here no conditional is simplified, and none uses
counts of the last sweep.

Whatever does not depend on the target word is one factor a source place, which changes for the
places of one word when a link does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.alignment_state import (
    FREE,
    NULL,
    Prior,
    State,
    Text,
    drawn,
    width,
)
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

LANES = 4
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class Room(NamedTuple):
    """Room for one pair: of each source place its fertility, the next place of the same word, the
    factor of both, and its weight; and of every word its last place."""

    fertility: Array
    same: Array
    factor: Array
    weights: Array
    last: Array


@lean
def room_for(text: Text, n_sources: int) -> Room:
    """Room for the longest pair."""
    most = 0
    for p in range(len(text.source_borders) - 1):
        most = max(most, text.source_borders[p + 1] - text.source_borders[p])
    places, more = np.zeros(most, np.int64), np.zeros(most, np.int64)
    return Room(places, more, np.zeros(most), np.zeros(most), np.full(n_sources, -1, np.int64))


@merged
def _factor(
    e: int, fertility: int, totals: Array, masses: Array, fertilities: Array, beta: Array
) -> float:
    """What one more link to a place of word e brings, the target word and jumps apart."""
    mass: float = totals[e] + masses[e]
    if fertility >= len(beta) - 1:
        return 1.0 / mass
    more: float = fertilities[e, fertility + 1] + beta[fertility + 1]
    now: float = fertilities[e, fertility] - 1.0 + beta[fertility]
    return more / (now * mass)


@merged
def _enter(
    sources: Array,
    start: int,
    l: int,
    links: Array,
    first: int,
    end: int,
    fertility: Array,
    same: Array,
    last: Array,
) -> None:
    """Make ready for a pair: the fertilities of its places, and those of each word in a ring."""
    for i in range(l):
        e = sources[start + i]
        fertility[i] = 0
        same[i] = i
        before = last[e]
        if before >= 0:
            same[i], same[before] = same[before], i
        last[e] = i
    for i in range(l):
        last[sources[start + i]] = -1
    for t in range(first, end):
        if links[t] != NULL:
            fertility[links[t]] += 1


@merged
def _count_place(
    i: int,
    e: int,
    sign: int,
    fertility: Array,
    same: Array,
    factor: Array,
    totals: Array,
    masses: Array,
    fertilities: Array,
    beta: Array,
) -> None:
    """Place i, of word e, has a link more (sign 1) or less (−1)."""
    top = len(beta) - 1
    totals[e] += sign
    fertilities[e, min(fertility[i], top)] -= 1.0
    fertility[i] += sign
    fertilities[e, min(fertility[i], top)] += 1.0
    factor[i] = _factor(e, fertility[i], totals, masses, fertilities, beta)
    place = same[i]
    while place != i:
        factor[place] = _factor(e, fertility[place], totals, masses, fertilities, beta)
        place = same[place]


@merged
def _count_jumps(
    link: int, before: int, after: int, sign: int, jumps: Array, jumped: Array
) -> None:
    """Between two linked places there is a word with this link (sign 1), or no longer (−1)."""
    if link == NULL:
        jumps[width(after - before, len(jumps) // 2)] += sign
        jumped[0] += sign
    else:
        jumps[width(link - before, len(jumps) // 2)] += sign
        jumps[width(after - link, len(jumps) // 2)] += sign
        jumped[0] += 2 * sign


@merged
def _weigh_jumps(
    jumps: Array, gamma: float, l: int, before: int, after: int, weights: Array
) -> None:
    """weights_i ← what the jumps to place i and from it bring, up to a constant.

    The second jump of one width finds the first already there: that is so in the middle alone.
    """
    most = len(jumps) // 2
    forth, back = np.uint64(most - before), np.uint64(most + after)
    for i in range(l):
        weights[i] = (jumps[forth + np.uint64(i)] + gamma) * (jumps[back - np.uint64(i)] + gamma)
    middle = (before + after) // 2
    if 2 * middle == before + after and 0 <= middle < l:
        weights[middle] += jumps[most + middle - before] + gamma


@merged
def _weigh_wide_jumps(
    jumps: Array, gamma: float, l: int, before: int, after: int, weights: Array
) -> None:
    """As `_weigh_jumps`, for sentences so long that the widest jumps are counted together."""
    most = len(jumps) // 2
    for i in range(l):
        forth, back = width(i - before, most), width(after - i, most)
        again = 1.0 if forth == back else 0.0
        weights[i] = (jumps[forth] + gamma) * (jumps[back] + gamma + again)


@merged
def _weigh_words(
    entries: Array, at: int, l: int, uses: Array, alpha: Array, factor: Array, weights: Array
) -> float:
    """weights_i ← weights_i · factor_i · (n(e_i, f) + α), and their sum.

    Four sums side by side, for one would have to wait for itself.
    """
    a = b = c = d = 0.0
    whole = 0
    if len(alpha) == 1:
        whole, same, o = l - l % LANES, alpha[0], np.uint64(at)
        for i in range(0, whole, LANES):
            w = (uses[entries[o]] + same) * (factor[i] * weights[i])
            x = (uses[entries[o + ONE]] + same) * (factor[i + 1] * weights[i + 1])
            y = (uses[entries[o + TWO]] + same) * (factor[i + 2] * weights[i + 2])
            z = (uses[entries[o + THREE]] + same) * (factor[i + 3] * weights[i + 3])
            weights[i], weights[i + 1], weights[i + 2], weights[i + 3] = w, x, y, z
            a, b, c, d = a + w, b + x, c + y, d + z
            o += FOUR
    for i in range(whole, l):
        k = entries[at + i]
        weights[i] *= factor[i] * (uses[k] + (alpha[k] if len(alpha) > 1 else alpha[0]))
        a += weights[i]
    return (a + b) + (c + d)


@merged
def _weigh_null(
    f: int,
    before: int,
    after: int,
    uses: Array,
    alpha: Array,
    mass: float,
    odds: float,
    jumps: Array,
    jumped: Array,
    gamma: float,
) -> float:
    """The weight of the empty word, which has one jump less."""
    jump: float = jumps[width(after - before, len(jumps) // 2)] + gamma
    all_jumps: float = jumped[0] + len(jumps) * gamma
    word: float = (uses[f] + alpha[f]) / mass
    return odds * word * jump * (all_jumps + 1.0)


@merged
def _next_link(links: Array, t: int, end: int) -> int:
    """The token after t that is linked; if there is none, ``end``."""
    t += 1
    while t < end and links[t] == NULL:
        t += 1
    return t


@merged
def _temper(weights: Array, l: int, null: float, power: float) -> tuple[float, float]:
    """Weights to a power, the largest being 1; the empty word's, and the sum of all others."""
    top = null
    for i in range(l):
        top = max(top, weights[i])
    total = 0.0
    for i in range(l):
        weights[i] = (weights[i] / top) ** power
        total += weights[i]
    return (null / top) ** power, total


@merged
def _keep(weights: Array, l: int, total: float, at: int, sums: Array) -> None:
    share = 1.0 / total
    for i in range(l):
        sums[at + i] += weights[i] * share


@lean
def sweep(text: Text, prior: Prior, state: State, seed: Any, temper: float, sums: Array) -> None:
    """Draw where every target word comes from anew, one after the other.

    ``sums`` gets p(a_j = i | all others) of every link added, unless it is empty.

    One long function, with a name for each field: looking fields up within the loops, or handing
    them on in their tuples, takes three times as long (references to arrays are counted).
    """
    sources, targets, fixed, links = text.sources, text.targets, text.fixed, state.links
    source_borders, target_borders, offsets = text.source_borders, text.target_borders, text.offsets
    entries, uses, null_uses = text.entries, state.uses, state.null_uses
    totals, masses, jumps, jumped = state.totals, prior.masses, state.jumps, state.jumped
    alpha, null_alpha, gamma, odds = prior.alpha, prior.null_alpha, prior.jump, prior.odds
    counts, beta = state.fertilities, prior.fertility
    fertility, same, factor, weights, last = room_for(text, len(counts))
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for p in range(len(source_borders) - 1):
        start, first, end = source_borders[p], target_borders[p], target_borders[p + 1]
        l = source_borders[p + 1] - start
        if l == 0 or end == first:
            continue
        _enter(sources, start, l, links, first, end, fertility, same, last)
        for i in range(l):
            factor[i] = _factor(sources[start + i], fertility[i], totals, masses, counts, beta)
        at, before, following, after = offsets[p] - l, -1, first, 0
        for t in range(first, end):
            f, link = targets[t], links[t]
            at += l
            if following <= t:
                following = _next_link(links, t, end)
                after = l if following == end else links[following]
            if fixed[t] != FREE:
                if link != NULL:
                    before = link
                    if len(sums):
                        sums[at + link] += 1.0
                continue
            _count_jumps(link, before, after, -1, jumps, jumped)
            if link == NULL:
                null_uses[f] -= 1
                totals[-1] -= 1.0
            else:
                e = sources[start + link]
                uses[entries[at + link]] -= 1
                _count_place(link, e, -1, fertility, same, factor, totals, masses, counts, beta)
            mass = totals[-1] + masses[-1]
            null = _weigh_null(
                f, before, after, null_uses, null_alpha, mass, odds, jumps, jumped, gamma
            )
            if l < len(jumps) // 2:
                _weigh_jumps(jumps, gamma, l, before, after, weights)
            else:
                _weigh_wide_jumps(jumps, gamma, l, before, after, weights)
            total = _weigh_words(entries, at, l, uses, alpha, factor, weights)
            if temper != 1.0:
                null, total = _temper(weights, l, null, temper)
            total += null
            if len(sums):
                _keep(weights, l, total, at, sums)
            link = drawn(weights, l, null, link, uniform(stream, 0) * total)
            links[t] = link
            _count_jumps(link, before, after, 1, jumps, jumped)
            if link == NULL:
                null_uses[f] += 1
                totals[-1] += 1.0
            else:
                e = sources[start + link]
                uses[entries[at + link]] += 1
                _count_place(link, e, 1, fertility, same, factor, totals, masses, counts, beta)
                before = link
