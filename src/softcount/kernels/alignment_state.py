"""Where each target word comes from, and what that adds up to: the state of a Gibbs aligner.

Target word f_j comes from source word e_i, i = a_j, or from the empty word. Counted are the links
of two words, n(e, f); jumps of width d from one linked place to the next, c_d (the start is place
−1, the end place l; words from the empty word are passed over); and places of word e that have φ
links, c(e, φ). Pairs with an empty side say nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import inline, merged, njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

FREE = -2
"""Nothing is known of where a target word comes from."""

NULL = -1
"""It comes from the empty word."""


class Text(NamedTuple):
    """Sentence pairs. Link (i, j) of pair p is entry ``entries[offsets[p] + j · l + i]``.

    ``fixed`` says of every target word where it comes from, or `FREE`.
    """

    sources: Array
    source_borders: Array
    targets: Array
    target_borders: Array
    offsets: Array
    entries: Array
    fixed: Array


class Prior(NamedTuple):
    """``alpha`` of every entry, or one for all; ``null_alpha`` one a target word.

    ``masses`` are their sums A_e (the empty word's is the last), ``jump`` is γ, one number,
    ``fertility`` β, one a fertility, and ``odds`` is p₀ / (1 − p₀), p₀ the empty word's share.
    """

    alpha: Array
    null_alpha: Array
    masses: Array
    jump: float
    fertility: Array
    odds: float


class State(NamedTuple):
    """The links (i, or `NULL`), and what they add up to: whole numbers.

    ``totals`` are n(e), the empty word's last; ``jumps`` have widths from −W to W.
    """

    links: Array
    uses: Array
    null_uses: Array
    totals: Array
    jumps: Array
    jumped: Array
    fertilities: Array


@inline
def width(jump: int, most: int) -> int:
    """Where jumps of this width are counted; the widest are counted together."""
    return min(max(jump, -most), most) + most


@njit
def index_links(
    rows: Array,
    row_targets: Array,
    occurs: Array,
    pairs: Array,
    places: Array,
    text: Text,
    n_targets: int,
) -> None:
    """Write down the entry of every link, laying open one row of the lexicon after the other."""
    open_row = np.zeros(n_targets, text.entries.dtype)
    for e in range(len(rows) - 2):
        for k in range(rows[e], rows[e + 1]):
            open_row[row_targets[k]] = k
        for o in range(occurs[e], occurs[e + 1]):
            p = pairs[o]
            l = text.source_borders[p + 1] - text.source_borders[p]
            at = text.offsets[p] + places[o]
            for j in range(text.target_borders[p], text.target_borders[p + 1]):
                text.entries[at] = open_row[text.targets[j]]
                at += l


@merged
def drawn(weights: Array, l: int, null: float, old: int, chance: float) -> int:
    """A place with probability ∝ weights_i, or `NULL`; ``chance`` is below their sum.

    The old one is looked at first, for it seldom changes.
    """
    rest = chance - (null if old == NULL else weights[old])
    if rest < 0.0:
        return old
    new = old
    if old != NULL and null > 0.0:
        new = NULL
        rest -= null
    if rest >= 0.0:
        for i in range(l):
            if i != old and weights[i] > 0.0:
                new = i
                rest -= weights[i]
                if rest < 0.0:
                    break
    return new


@njit
def begin(text: Text, table: Array, null_table: Array, seed: Any, links: Array) -> None:
    """First links, drawn ∝ t(f | e) as Model 1 would, or as they are known."""
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for p in range(len(text.source_borders) - 1):
        l = text.source_borders[p + 1] - text.source_borders[p]
        weights = np.empty(l)
        at = text.offsets[p]
        for t in range(text.target_borders[p], text.target_borders[p + 1]):
            links[t] = NULL if l == 0 else text.fixed[t]
            if links[t] == FREE:
                null = null_table[text.targets[t]]
                total = null
                for i in range(l):
                    weights[i] = table[text.entries[at + i]]
                    total += weights[i]
                chance = uniform(stream, 0) * total
                links[t] = drawn(weights, l, null, NULL if null > 0.0 else 0, chance)
            at += l


@njit
def count_all(text: Text, state: State) -> None:
    """Count all links; before that all counts must be zero."""
    top = state.fertilities.shape[1] - 1
    for p in range(len(text.source_borders) - 1):
        start = text.source_borders[p]
        l = text.source_borders[p + 1] - start
        if l == 0 or text.target_borders[p + 1] == text.target_borders[p]:
            continue
        fertility = np.zeros(l, np.int64)
        at, before = text.offsets[p], -1
        for t in range(text.target_borders[p], text.target_borders[p + 1]):
            i = state.links[t]
            if i == NULL:
                state.null_uses[text.targets[t]] += 1
                state.totals[-1] += 1.0
            else:
                state.uses[text.entries[at + i]] += 1
                state.totals[text.sources[start + i]] += 1.0
                state.jumps[width(i - before, len(state.jumps) // 2)] += 1.0
                fertility[i] += 1
                before = i
            at += l
        state.jumps[width(l - before, len(state.jumps) // 2)] += 1.0
        for i in range(l):
            state.fertilities[text.sources[start + i], min(fertility[i], top)] += 1.0
    state.jumped[0] = state.jumps.sum()


@njit
def log_dirichlet(priors: Array, counts: Array) -> float:
    """Σ_k log a_k^(n_k), a^(n) = a (a + 1) … (a + n − 1); one prior may be for all."""
    total = 0.0
    for k in range(len(counts)):
        if counts[k] > 0:
            total += log_rising(priors[k] if len(priors) > 1 else priors[0], float(counts[k]))
    return total
