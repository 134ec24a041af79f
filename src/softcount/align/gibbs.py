"""Word alignment with jumps and fertilities, sampled with the parameters integrated out.

Where each target word comes from, and what that adds up to: the state of a Gibbs aligner.

Target word f_j comes from source word e_i, i = a_j, or from the empty word. Counted are the links
of two words, n(e, f); jumps of width d from one linked place to the next, c_d (the start is place
−1, the end place l; words from the empty word are passed over); and places of word e that have φ
links, c(e, φ). Pairs with an empty side say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.align.bidirectional import (
    BACKWARD,
    FORWARD,
    AgreementCore,
    BidirectionalAligner,
    BidirectionalCorpus,
    BidirectionalShard,
    join_directions,
)
from softcount.align.core import JUMPS, TABLE, decode_columns
from softcount.align.data import (
    UNSEEN,
    BitextCorpus,
    BitextShard,
    LinkBlock,
    LinkConstraints,
    PairLexicon,
)
from softcount.align.estimators import (
    Continuation,
    DirectionalAligner,
    HMMAligner,
    LinkMatrices,
)
from softcount.align.kernels import find_occurrences
from softcount.align.parameters import GibbsAlignerParameters
from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimator import FitOptions, naming
from softcount.core.fit import WarmStart, fit
from softcount.core.types import Array, Fit, FloatArray, IntArray, Params, Stats
from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import inline, lean, merged, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.threads import in_turn
from softcount.learners.named import CollapsedGibbs
from softcount.text.sequences import Side

if TYPE_CHECKING:
    from softcount.learners.base import Learner

FREE = -2
"""Nothing is known of where a target word comes from."""

NULL = -1
"""It comes from the empty word."""


class GibbsText(NamedTuple):
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


class GibbsPrior(NamedTuple):
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


class GibbsState(NamedTuple):
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
    text: GibbsText,
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
def draw_place(weights: Array, l: int, null: float, old: int, chance: float) -> int:
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
def draw_first_links(
    text: GibbsText, table: Array, null_table: Array, seed: Any, links: Array
) -> None:
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
                links[t] = draw_place(weights, l, null, NULL if null > 0.0 else 0, chance)
            at += l


@njit
def count_all(text: GibbsText, state: GibbsState) -> None:
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


# Gibbs sampling of word alignments with jumps and fertilities, all parameters integrated out.
#
# With the counts of `softcount.align.gibbs`, x^(n) = x (x + 1) … (x + n − 1), and n₀ of
# n target words from the empty word:
#
#     p(f, a) ∝ Π_e [Π_f α_ef^(n(e, f)) / A_e^(n(e))] · Π_d γ^(c_d) / Γ^(c)
#               · Π_e [Π_φ β_φ^(c(e, φ)) / B^(c(e))] · p₀^n₀ (1 − p₀)^(n − n₀)
#
# A_e, Γ and B are sums of priors. This is deficient, as Models 3 and 4 are: jumps may lead out of
# the sentence, and fertilities need not add up. Words, jumps and fertilities are those of Östling &
# Tiedemann 2016 (fertilities: Zhao & Gildea 2010); here no conditional is simplified, and none uses
# counts of the last sweep.
#
# Whatever does not depend on the target word is one factor a source place, which changes for the
# places of one word when a link does.


LANES = 4
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class SweepWorkspace(NamedTuple):
    """Room for one pair: of each source place its fertility, the next place of the same word, the
    factor of both, and its weight; and of every word its last place."""

    fertility: Array
    same: Array
    factor: Array
    weights: Array
    last: Array


@lean
def make_workspace(text: GibbsText, n_sources: int) -> SweepWorkspace:
    """Room for the longest pair."""
    most = 0
    for p in range(len(text.source_borders) - 1):
        most = max(most, text.source_borders[p + 1] - text.source_borders[p])
    places, more = np.zeros(most, np.int64), np.zeros(most, np.int64)
    return SweepWorkspace(
        places, more, np.zeros(most), np.zeros(most), np.full(n_sources, -1, np.int64)
    )


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
def _add_conditionals(weights: Array, l: int, total: float, at: int, sums: Array) -> None:
    share = 1.0 / total
    for i in range(l):
        sums[at + i] += weights[i] * share


@lean
def sweep(
    text: GibbsText, prior: GibbsPrior, state: GibbsState, seed: Any, temper: float, sums: Array
) -> None:
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
    fertility, same, factor, weights, last = make_workspace(text, len(counts))
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
                _add_conditionals(weights, l, total, at, sums)
            link = draw_place(weights, l, null, link, uniform(stream, 0) * total)
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


# Word alignment with jumps and fertilities, parameters integrated out, sampled word by word.


PRIORS = (1e-10, 1e10)
"""The smallest prior and the largest."""

FERTILITY = (1.05, 1.35, 0.36, 0.15, 0.06, 0.015, 0.009, 0.006)
"""Dirichlet prior of how many target words a source place has; the last: so many or more."""

WIDEST = 100
"""Jumps of this width and wider ones are counted together."""

MOST = 2**31 - 1
"""The largest number of entries of a lexicon."""


class IndexedPairs:
    """Sentence pairs with the entry of every link written down: four bytes a link.

    ``source, target``  the sentences; pairs with an empty side say nothing
    ``lexicon``  the words that occur together, its last row being the empty word's
    ``fixed``    for every target token the source place that it comes from, −1 for the empty word,
                 −2 where nothing is known; None: nothing is
    """

    def __init__(
        self, source: Side, target: Side, lexicon: PairLexicon, fixed: ArrayLike | None = None
    ) -> None:
        if len(lexicon) > MOST:
            raise DataError(
                f"{len(lexicon)} pairs of words are too many for a sampler, which keeps all links",
                "use another model, or fewer sentences",
            )
        self.lexicon = lexicon
        self._lengths = source.lengths, target.lengths
        offsets = np.concatenate([[0], np.cumsum(source.lengths * target.lengths)])
        free = np.full(len(target.tokens), FREE, np.int32)
        known = free if fixed is None else _check_fixed(fixed, source, target)
        sides = source.tokens, source.indptr, target.tokens, target.indptr
        self.text = GibbsText(
            *sides, offsets.astype(np.int64), np.empty(offsets[-1], np.uint32), known
        )
        places = find_occurrences(source.tokens, source.indptr, lexicon.n_sources, False)
        rows = lexicon.indptr, lexicon.targets
        index_links(*rows, *places, self.text, lexicon.n_targets)

    @property
    def n_links(self) -> int:
        """How many links all pairs could have."""
        return len(self.text.entries)

    def matrices(self, links: Array) -> Iterator[Array]:
        """Numbers of all links as one (l, m) array a pair."""
        borders = self.text.offsets.tolist()
        for begin, end, l, m in zip(borders[:-1], borders[1:], *self._lengths, strict=True):
            yield links[begin:end].reshape(m, l).T


class CollapsedAligner:
    """A state of the sampler: which source word each target word comes from.

    ``alpha``      Dirichlet prior of translations: one number, or one an entry of the lexicon (what
                   a dictionary says is added to its entries)
    ``jump``       Dirichlet prior of the widths of jumps, one number
    ``fertility``  Dirichlet prior of how many links a source place has, from none on
    ``null``       the share of target words that come from the empty word
    ``table``      t(f | e), one number an entry, to draw the first links with; if None all entries
                   are as likely
    ``seed``       of these draws

    >>> from softcount.text.bitext import as_bitext
    >>> from softcount.align.data import BitextCorpus
    >>> corpus = as_bitext([("a b", "x y"), ("b", "y"), ("c a", "z x")] * 3)
    >>> pairs = BitextCorpus(corpus, null=True).everything
    >>> aligner = CollapsedAligner(IndexedPairs(pairs.source, pairs.target, pairs.lexicon))
    >>> for stream in range(20):
    ...     aligner.sweep(stream)
    >>> aligner.links[:5]
    array([0, 1, 0, 0, 1], dtype=int32)
    """

    def __init__(
        self,
        pairs: IndexedPairs,
        *,
        alpha: ArrayLike = 0.001,
        jump: float = 0.5,
        fertility: ArrayLike = FERTILITY,
        null: float = 0.2,
        table: Array | None = None,
        seed: int = 0,
    ) -> None:
        self._pairs, self._text, lexicon = pairs, pairs.text, pairs.lexicon
        self._null = _check_null(null, self._text)
        self._prior = _make_prior(lexicon, alpha, jump, fertility, self._null)
        links = np.empty(len(self._text.targets), np.int32)
        self._state = _zero_state(lexicon, links, len(self._prior.fertility))
        first = np.ones(len(lexicon)) if table is None else np.asarray(table, np.float64)
        of_null = _null_entries(lexicon, first) * (self._null > 0.0)
        draw_first_links(self._text, first, of_null, np.uint64(seed % 2**64), links)
        count_all(self._text, self._state)

    @property
    def links(self) -> Array:
        """The source place that each target token comes from; −1: the empty word."""
        return self._state.links

    def sweep(self, stream: int, temper: float = 1.0, into: Array | None = None) -> None:
        """Draw every link anew, given all others; ``temper`` is a power of p.

        Draws depend on ``stream`` and the state alone. ``into``, of `IndexedPairs.n_links` numbers,
        gets p(a_j = i | all others) of every link added: their mean over sweeps varies less than
        that of the draws themselves (Rao–Blackwell).
        """
        sums = np.zeros(0, np.float32) if into is None else into
        seed = np.uint64(stream % 2**64)
        sweep(self._text, self._prior, self._state, seed, float(temper), sums)

    def conditional(self, token: int) -> Array:
        """p(a_j = i | all others) of a target token; the last is the empty word's."""
        text, known = self._text, self.links.copy()
        known[token] = FREE
        others = GibbsState(*(values.copy() for values in self._state))
        sums = np.zeros(self._pairs.n_links)
        sweep(text._replace(fixed=known), self._prior, others, np.uint64(0), 1.0, sums)
        p = int(np.searchsorted(text.target_borders, token, side="right")) - 1
        l = int(text.source_borders[p + 1] - text.source_borders[p])
        at = int(text.offsets[p] + (token - text.target_borders[p]) * l)
        linked = sums[at : at + l]
        return np.append(linked, max(1.0 - linked.sum(), 0.0))

    def counts(self) -> dict[str, Array]:
        """Links of each entry; jumps by width, −W to W; places by word and fertility."""
        links = self._state.uses.astype(np.float64)
        null = self._null_row
        links[null] = self._state.null_uses[self._pairs.lexicon.targets[null]]
        return {
            "translations": links,
            "jumps": self._state.jumps.copy(),
            "fertilities": self._state.fertilities.copy(),
        }

    def means(self) -> dict[str, Array]:
        """E[θ | f, a]: t(f | e) of each entry, p(width of a jump), p(fertility | e)."""
        counts, prior = self.counts(), self._prior
        translations = counts["translations"]
        if len(prior.alpha) == 1:
            translations += prior.alpha[0]
        else:
            translations += prior.alpha
        lengths = np.diff(self._pairs.lexicon.indptr)
        translations /= np.repeat(self._state.totals + prior.masses, lengths)
        jumps = counts["jumps"] + prior.jump
        fertilities = counts["fertilities"] + prior.fertility
        return {
            "translations": translations,
            "jumps": jumps / jumps.sum(),
            "fertilities": fertilities / fertilities.sum(axis=1, keepdims=True),
        }

    def log_joint(self) -> float:
        """log p(f, a), up to a constant (see `softcount.align.gibbs`)."""
        state, prior, ways = self._state, self._prior, log_dirichlet
        translations = ways(prior.alpha, state.uses) + ways(prior.null_alpha, state.null_uses)
        translations -= ways(prior.masses, state.totals)
        jump = np.array([prior.jump])
        jumps = ways(jump, state.jumps) - ways(jump * len(state.jumps), state.jumped)
        by_fertility = [
            ways(prior.fertility[[k]], state.fertilities[:, k]) for k in range(len(prior.fertility))
        ]
        words = state.fertilities.sum(axis=1)
        fertilities = sum(by_fertility) - ways(prior.fertility.sum(keepdims=True), words)
        empty, linked = state.totals[-1], state.totals[:-1].sum()
        share = empty * np.log(self._null) if empty else 0.0
        return float(translations + jumps + fertilities + share + linked * np.log1p(-self._null))

    @property
    def _null_row(self) -> slice:
        return slice(*self._pairs.lexicon.indptr[-2:].tolist())


class LinkMarginals(NamedTuple):
    """What several chains agree on.

    ``links``      (links,) float32: p(a_j = i) of all links, as `IndexedPairs.matrices` reads them
    ``means``      the mean of E[θ | f, a], as `CollapsedAligner.means` gives it, over the chains'
                   ends
    ``log_joint``  the mean of log p(f, a) there
    """

    links: FloatArray
    means: dict[str, FloatArray]
    log_joint: float


class LinkChains:
    """Several chains over the pairs of one direction, one after the other, and what they agree on.

    A chain soon gets stuck, each in another place: many short ones see more than a long one. The
    marginal probabilities of links are means over the last ``kept`` sweeps of all chains.

    ``n_init``    the number of chains
    ``max_iter``  the number of sweeps of each chain
    ``seed``      of all draws: chain k has the same ones whatever the other chains do
    ``settings``  those of `CollapsedAligner`

    >>> from softcount.text.bitext import as_bitext
    >>> from softcount.align.data import BitextCorpus
    >>> corpus = as_bitext([("a b", "x y"), ("b", "y"), ("c a", "z x")] * 3)
    >>> pairs = BitextCorpus(corpus, null=True).everything
    >>> indexed = IndexedPairs(pairs.source, pairs.target, pairs.lexicon)
    >>> chains = LinkChains(indexed, null=0.01)
    >>> for _ in range(chains.n_init):
    ...     chains.begin()
    ...     for _ in range(chains.max_iter):
    ...         chains.sweep()
    >>> next(indexed.matrices(chains.marginals().links)) > 0.5
    array([[ True, False],
           [False,  True]])
    """

    def __init__(
        self,
        pairs: IndexedPairs,
        *,
        n_init: int = 4,
        max_iter: int = 8,
        kept: int = 2,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        if not (n_init >= 1 and 1 <= kept <= max_iter):
            raise LearnerError(
                f"n_init={n_init}, max_iter={max_iter}, kept={kept}", "keep from one to all sweeps"
            )
        self.pairs, self.n_init, self.max_iter, self.kept = pairs, n_init, max_iter, kept
        self.state: CollapsedAligner | None = None
        """The chain that is under way."""
        self._settings = settings
        self._seeds = iter(np.random.SeedSequence(seed).spawn(n_init))
        self._streams: Iterator[int] = iter(())
        self._swept = self._own_kept = 0  # of the chain that is under way
        self._links = np.zeros(pairs.n_links, np.float32)
        self._means: dict[str, FloatArray] = {}
        self._log_joint = 0.0
        self._n_ended = self._n_kept = 0

    def begin(self, table: FloatArray | None = None) -> None:
        """The next chain, its first links drawn with this table t(f | e)."""
        self._end_chain()
        numbers = next(self._seeds).generate_state(self.max_iter + 1, np.uint64).tolist()
        self.state = CollapsedAligner(self.pairs, seed=numbers[0], table=table, **self._settings)
        self._streams, self._swept, self._own_kept = iter(numbers[1:]), 0, 0

    def sweep(self, temper: float = 1.0, keep: bool = False) -> None:
        """Draw all links anew; the last ``kept`` sweeps of a chain are added up."""
        assert self.state is not None
        keep = keep or self._swept >= self.max_iter - self.kept
        self.state.sweep(next(self._streams), temper, into=self._links if keep else None)
        self._swept += 1
        self._own_kept += keep

    def _end_chain(self) -> None:
        if self.state is None:
            return
        if not self._own_kept:  # it was stopped early: what it holds probable now must do
            self.sweep(keep=True)
        for name, values in self.state.means().items():
            self._means[name] = self._means.get(name, 0.0) + values / self.n_init
        self._log_joint += self.state.log_joint() / self.n_init
        self._n_ended, self._n_kept = self._n_ended + 1, self._n_kept + self._own_kept
        self.state = None

    def marginals(self) -> LinkMarginals:
        """What all chains say that were begun."""
        self._end_chain()
        self._links /= self._n_kept
        scale = self.n_init / self._n_ended
        if scale == 1.0:
            return LinkMarginals(self._links, self._means, self._log_joint)
        means = {name: values * scale for name, values in self._means.items()}
        return LinkMarginals(self._links, means, self._log_joint * scale)


def _check_fixed(fixed: ArrayLike, source: Side, target: Side) -> Array:
    """Known links, checked."""
    given = np.asarray(fixed)
    if given.shape != target.tokens.shape:
        raise DataError(
            f"there are {len(target.tokens)} target tokens, but known links of shape {given.shape}",
            "give one number for every target token: −2 where nothing is known",
        )
    pairs = np.repeat(np.arange(len(target)), target.lengths)
    lengths = source.lengths[pairs]
    wrong = np.flatnonzero((given < FREE) | (given >= lengths) & (given >= 0) | (given % 1 != 0))
    if len(wrong):
        t = wrong[0]
        raise DataError(
            f"target token {t}, of pair {pairs[t]}, comes from place {given[t]}, but there are "
            f"{lengths[t]} source words",
            "places count from 0; −1 is the empty word, −2 not known",
        )
    return given.astype(np.int32)


def _check_null(null: float, text: GibbsText) -> float:
    if not 0.0 <= null < 1.0:
        raise LearnerError(f"null={null}", "it is a share: from 0 to below 1")
    if null == 0.0 and (text.fixed == NULL).any():
        raise LearnerError("null=0, but links to the empty word are known", "give a larger null")
    return float(null)


def _null_entries(lexicon: PairLexicon, values: Array) -> Array:
    """Numbers of the empty word's entries, one a target word."""
    row = slice(*lexicon.indptr[-2:].tolist())
    out = np.zeros(lexicon.n_targets)
    out[lexicon.targets[row]] = values[row]
    return out


def _make_prior(
    lexicon: PairLexicon, alpha: ArrayLike, jump: float, fertility: ArrayLike, null: float
) -> GibbsPrior:
    each = _positive("alpha", np.atleast_1d(np.array(alpha, np.float64)))
    beta = _positive("fertility", np.array(fertility, np.float64))
    gamma = _positive("jump", np.array([jump], np.float64))[0]
    n = len(lexicon)
    if len(each) not in (1, n):
        raise LearnerError(f"alpha has {len(each)} numbers, the lexicon {n} entries", "give one")
    if len(beta) < 2:
        raise LearnerError("fertility has one number", "give one for 0, 1 and so on")
    full = np.broadcast_to(each, n)
    sums = np.concatenate([[0.0], np.cumsum(full)])
    null_alpha = _null_entries(lexicon, full)
    if null and not null_alpha.any():
        raise LearnerError("the lexicon has no entries of the empty word", "give null=0")
    masses = sums[lexicon.indptr[1:]] - sums[lexicon.indptr[:-1]]
    return GibbsPrior(each, null_alpha, masses, float(gamma), beta, null / (1.0 - null))


def _zero_state(lexicon: PairLexicon, links: Array, n_fertilities: int) -> GibbsState:
    uses, null_uses = np.zeros(len(lexicon), np.int32), np.zeros(lexicon.n_targets, np.int32)
    totals, jumps = np.zeros(lexicon.n_sources + 1), np.zeros(2 * WIDEST + 1)
    places = np.zeros((lexicon.n_sources, n_fertilities))
    return GibbsState(links, uses, null_uses, totals, jumps, np.zeros(1), places)


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not len(values) or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration",
        )
    return np.ascontiguousarray(values)


# The sampler in the loop: `CollapsedGibbs` over both directions


@dataclass(frozen=True, kw_only=True)
class LinkGibbs(CollapsedGibbs):
    """`CollapsedGibbs` that keeps no tables: `LinkChains` adds up what its chains find."""

    max_iter: int = 8
    n_init: int = 4

    def keeps(self, step: int) -> bool:
        return False

    @property
    def n_kept(self) -> int:
        return 0


class GibbsAlignmentCore(AgreementCore):
    """Both directions, sampled side by side and each for itself.

    ``chains``   those of the forward direction, and of the backward direction
    ``learner``  as many runs as there are chains
    ``threads``  2: both directions at once
    """

    def __init__(
        self,
        core: AgreementCore,
        chains: tuple[LinkChains, LinkChains],
        to_params: Callable[[Sequence[Mapping[str, FloatArray]]], Params],
        threads: int,
    ) -> None:
        (_, forward), (_, backward) = core.directions
        super().__init__(core.name, forward, backward, agree=False)
        self.entropy_of = ()  # tables are written down only if somebody looks at them
        self.chains, self.to_params, self.threads = chains, to_params, threads

    def collapse(
        self, shards: Sequence[BidirectionalShard], params: Params, stream: int
    ) -> LinkSampler:
        """The next chain of each direction; its links begin as a draw given ``params``."""
        (shard,) = shards
        words = len(shard.forward.target.tokens) + len(shard.backward.target.tokens)
        tables = [params[prefix + TABLE] for prefix, _ in self.directions]
        return LinkSampler(self, tables, float(len(shard.forward)), float(words))


class LinkSampler:
    """The links of all pairs, in both directions: a sampler as `CollapsedGibbs` wants it."""

    def __init__(
        self, core: GibbsAlignmentCore, tables: Sequence[FloatArray], items: float, tokens: float
    ) -> None:
        self._core, self._items, self._tokens = core, items, tokens
        self._of_both(lambda n: core.chains[n].begin(tables[n]))

    def _of_both(self, work: Callable[[int], None]) -> None:
        in_turn(work, 2, self._core.threads)

    def _states(self) -> list[CollapsedAligner]:
        return [chain.state for chain in self._core.chains if chain.state is not None]

    def sweep(self, stream: int, temper: float) -> None:
        """Draw every link anew; a chain has streams of its own, one for each direction."""

        def draw(n: int) -> None:
            interrupt.check()
            self._core.chains[n].sweep(temper)

        self._of_both(draw)

    def log_joint(self) -> float:
        """log p(f, a) + log p(e, a'), up to a constant."""
        return sum(state.log_joint() for state in self._states())

    def counts(self) -> dict[str, FloatArray]:
        """Links and jumps of both directions."""
        return {
            prefix + name: values
            for prefix, state in zip((FORWARD, BACKWARD), self._states(), strict=True)
            for name, values in state.counts().items()
        }

    def means(self) -> Params:
        """E[θ | f, a], as tables of hidden Markov models."""
        return self._core.to_params([state.means() for state in self._states()])

    def stats(self) -> Stats:
        """log p(f, a); p(f) itself would take longer than a sweep."""
        joint = self.log_joint()
        return Stats({}, float("nan"), joint, self._items, self._tokens)

    def priors(self) -> dict[str, FloatArray]:
        """None are learned."""
        return {}

    def optimise(self) -> None:
        """Priors are given."""
        raise LearnerError("the priors of links cannot be learned", "leave optimise at 0")


# The aligner


LEAST = 1e-10
"""The prior of translations that the dictionary rules out."""


class SampledHMM(HMMAligner):
    """One direction: posteriors of the pairs learned from are sampled ones.

    New pairs are aligned by a hidden Markov model with the means of the sampled tables.
    """

    _marginals: tuple[IndexedPairs, FloatArray] | None = None

    def _posterior_blocks(
        self, shard: BitextShard, blocks: Iterable[LinkBlock] | None = None
    ) -> LinkMatrices:
        if not self._is_sampled(shard):
            yield from super()._posterior_blocks(shard, blocks)
            return
        assert self._marginals is not None
        indexed, links = self._marginals
        each = indexed.matrices(links)
        for block in blocks or shard.blocks():
            flat: FloatArray = np.empty(block.offsets[-1])
            for matrix in block.matrices(flat):
                matrix[:-1] = next(each)
                matrix[-1] = np.maximum(1.0 - matrix[:-1].sum(axis=0), 0.0)
            yield block, flat

    def _best_blocks(
        self, shard: BitextShard, blocks: Iterable[LinkBlock] | None = None
    ) -> LinkMatrices:
        if not self._is_sampled(shard):
            yield from super()._best_blocks(shard, blocks)
            return
        for block, links in self._posterior_blocks(shard, blocks):
            decode_columns(block, links, 1)
            yield block, links

    def _is_sampled(self, shard: BitextShard) -> bool:
        own = getattr(self, "_corpus", None)
        return self._marginals is not None and own is not None and shard is own.everything


@dataclass(kw_only=True, eq=False, repr=False)
class GibbsAligner(GibbsAlignerParameters, BidirectionalAligner):  # type: ignore[misc]
    """Links drawn one by one, given all others.

    A hidden Markov model with fertilities, all parameters integrated out (in the manner of Östling
    & Tiedemann 2016), both directions, several short chains: probabilities of links are the means
    of what the last sweeps of all chains hold probable. The same seed gives the same links.

    ``prior``      Dirichlet prior of translations: with a small one words have few translations
    ``p_null``     the probability that a target word comes from the empty word
    ``n_init``     the number of chains in each direction
    ``max_iter``   the number of sweeps of each chain, which draw all links; the last ``kept`` count
    ``threshold``  links that are more probable than this, by the mean of both directions
    ``warm_up``    so many steps of Model 1 come first: they are in ``trace_.warm_up``

    For the other parameters see `IBM1`. Of several links known for one word, the first holds. After
    `fit`, ``fit_.traces`` has the chains, sweep by sweep; ``trace_`` is the one that ended best.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = GibbsAligner().fit(pairs)
    >>> model.align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    >>> len(model.fit_.traces), model.trace_[-1].step
    (4, 8)
    """

    default_learner: ClassVar[Learner] = LinkGibbs()
    agree = False
    _usual_method = "soft-union"

    def _lacks_sampler(self) -> str:
        return ""

    @property
    def _name(self) -> str:
        return f"GibbsAligner(prior={self.prior}, kept={self.kept})"

    def _make_direction(self, dictionary: Any) -> SampledHMM:
        return SampledHMM(
            p_null=self.p_null,
            max_jump=WIDEST,
            warm_up=max(self.warm_up, 1),
            dictionary=dictionary,
            dictionary_strength=self.dictionary_strength,
            lowercase=self.lowercase,
            engine=self.engine,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.kept > self.max_iter:
            raise LearnerError(
                f"kept={self.kept} of {self.max_iter} sweeps", "keep no more than all"
            )

    def _start_values(self, core: AgreementCore, corpus: BidirectionalCorpus, init: Any) -> Any:
        """Model 1's tables of both directions, to draw the first links with."""
        if init is not None:
            raise LearnerError(f"init={brief(init)}: a GibbsAligner begins with Model 1")
        steps = max(self.warm_up, 1)
        forward = self.forward_._model1(corpus.forward, steps)
        backward = self.backward_._model1(corpus.backward, steps)
        model = AgreementCore("warm-up", forward, backward, agree=False, max_iter=steps)
        return WarmStart(self._uniform_start(core), [model])

    def _translation_prior(self, direction: DirectionalAligner) -> FloatArray | float:
        """One number, or one for each entry if a dictionary says something."""
        known = direction._table_constraints
        prior = self.prior if known.counts is None else self.prior + known.counts
        return prior if known.mask is None else np.where(known.mask, prior, LEAST)

    def _run(
        self,
        core: AgreementCore,
        corpus: BidirectionalCorpus,
        learner: Learner,
        start: Any,
        short_runs: int,
        options: FitOptions,
    ) -> Fit:
        if options.get("development") is not None:
            raise LearnerError("a GibbsAligner takes no development data: it has one run")
        priors = [self._translation_prior(own) for _, own in self._directions]
        return self._sample(core, corpus, start, priors, options)

    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        each = zip(self._directions, more, strict=True)
        priors = [self._translation_prior(own) + part.past[TABLE] for (_, own), part in each]
        start = join_directions([part.start for part in more])
        return self._sample(core, corpus, start, priors, {})

    def _sample(
        self,
        core: AgreementCore,
        corpus: BidirectionalCorpus,
        start: Any,
        priors: Sequence[FloatArray | float],
        options: FitOptions,
    ) -> Fit:
        seed = self._seed()
        seeds = np.random.SeedSequence(seed).generate_state(2, np.uint64).tolist()
        forward, backward = (
            LinkChains(
                _index_pairs(pairs),
                n_init=self.n_init,
                max_iter=self.max_iter,
                kept=self.kept,
                seed=own_seed,
                alpha=prior,
                null=self.p_null,
            )
            for pairs, own_seed, prior in zip(
                (corpus.forward, corpus.backward), seeds, priors, strict=True
            )
        )
        chains = forward, backward
        model = GibbsAlignmentCore(core, chains, self._to_params, min(self._threads, 2))
        with naming(corpus):
            found = fit(model, corpus, self._learner, self.engine, init=start, seed=seed, **options)
        marginals = [chain.marginals() for chain in chains]
        for (_, own), chain, each in zip(self._directions, chains, marginals, strict=True):
            assert isinstance(own, SampledHMM)
            own._marginals = (chain.pairs, each.links)
        return replace(found, params=self._to_params([each.means for each in marginals]))

    def _to_params(self, means: Sequence[Mapping[str, FloatArray]]) -> Params:
        """Means of both directions as tables of hidden Markov models."""

        def tables(own: DirectionalAligner, mean: Mapping[str, FloatArray]) -> Params:
            table = own._table_constraints.start(mean["translations"], own._lexicon.indptr)
            widths = mean["jumps"]
            starts = widths[WIDEST + 1 :]
            jumps = np.concatenate([widths / widths.sum(), starts / starts.sum()])
            return {TABLE: table, JUMPS: jumps}

        each = zip(self._directions, means, strict=True)
        return join_directions([tables(own, mean) for (_, own), mean in each])

    def _possible_params(self) -> Params:
        # a chain may take what the dictionary rules out where nothing else is left
        return {name: np.maximum(values, UNSEEN) for name, values in self.raw_params_.items()}


def _index_pairs(pairs: BitextCorpus) -> IndexedPairs:
    shard = pairs.everything
    fixed = None if shard.constraints is None else _read_fixed(shard.constraints, shard)
    return IndexedPairs(shard.source, shard.target, shard.lexicon, fixed)


def _read_fixed(constraints: LinkConstraints, shard: BitextShard) -> IntArray:
    """The source position of every target word whose links are known, −2 elsewhere."""
    fixed: IntArray = np.full(len(shard.target.tokens), FREE, np.int32)
    pairs = np.repeat(np.arange(len(shard)), np.diff(constraints.indptr))
    at = shard.target.indptr[pairs] + constraints.targets
    fixed[at[::-1]] = constraints.sources[::-1]  # the first of several is written last
    return fixed
