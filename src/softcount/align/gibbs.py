"""Word alignment with jumps and fertilities, sampled with all parameters integrated out.

Target word f_j comes from source word e_i, i = a_j, or from the empty word. Counted are the links
of two words, n(e, f); jumps of width d from one linked position to the next, c_d (the start is
position −1, the end position l; words from the empty word are passed over); and positions of word e
that have φ links, c(e, φ). With x^(n) = x (x + 1) … (x + n − 1), and n₀ of n target words from the
empty word:

    p(f, a) ∝ Π_e [Π_f α_ef^(n(e, f)) / A_e^(n(e))] · Π_d γ^(c_d) / Γ^(c)
              · Π_e [Π_φ β_φ^(c(e, φ)) / B^(c(e))] · p₀^n₀ (1 − p₀)^(n − n₀)

A_e, Γ and B are sums of priors. This is deficient, as Models 3 and 4 are: jumps may lead out of the
sentence, and fertilities need not add up. Words, jumps and fertilities are those of Östling &
Tiedemann 2016 (fertilities: Zhao & Gildea 2010); here no conditional is simplified, and none uses
counts of the last sweep. Pairs with an empty side say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.align.core import (
    JUMPS,
    TABLE,
    AgreementCore,
    decode_columns,
    join_directions,
    split_directions,
)
from softcount.align.data import (
    UNSEEN,
    BidirectionalCorpus,
    BidirectionalShard,
    BitextShard,
    LinkBlock,
    PairLexicon,
    cumulate,
)
from softcount.align.estimators import (
    BidirectionalAligner,
    Continuation,
    DirectionalAligner,
    HMMAligner,
    LinkMatrices,
)
from softcount.align.kernels import Occurrences, find_occurrences
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

    sources: IntArray
    source_borders: IntArray
    targets: IntArray
    target_borders: IntArray
    offsets: IntArray
    entries: IntArray
    fixed: IntArray


class GibbsPrior(NamedTuple):
    """Parameters of the priors.

    ``alpha``       of every entry of the lexicon, or one for all
    ``null_alpha``  those of the empty word, one for each target word
    ``masses``      their sums A_e, the empty word's last
    ``jump``        γ, one number
    ``fertility``   β, one for each fertility
    ``odds``        p₀ / (1 − p₀), p₀ the probability of the empty word
    """

    alpha: FloatArray
    null_alpha: FloatArray
    masses: FloatArray
    jump: float
    fertility: FloatArray
    odds: float


class GibbsState(NamedTuple):
    """The links (i, or `NULL`), and what they add up to: whole numbers.

    ``uses``         (entries,) n(e, f);  ``null_uses``  (target words,) those of the empty word
    ``totals``       (source words + 1,) n(e), the empty word's last
    ``jumps``        (2 W + 1,) c_d for widths from −W to W;  ``jumped``  (1,) their sum
    ``fertilities``  (source words, fertilities) c(e, φ)
    """

    links: IntArray
    uses: IntArray
    null_uses: IntArray
    totals: FloatArray
    jumps: FloatArray
    jumped: FloatArray
    fertilities: FloatArray


@inline
def width(jump: int, most: int) -> int:
    """Where jumps of this width are counted; the widest are counted together."""
    return min(max(jump, -most), most) + most


@njit
def index_links(
    rows: IntArray, row_targets: IntArray, occurrences: Occurrences, text: GibbsText, n_targets: int
) -> None:
    """Write down the entry of every link, laying open one row of the lexicon after the other."""
    occurs, pairs, positions = occurrences
    open_row = np.zeros(n_targets, text.entries.dtype)
    for e in range(len(rows) - 2):
        for k in range(rows[e], rows[e + 1]):
            open_row[row_targets[k]] = k
        for o in range(occurs[e], occurs[e + 1]):
            p = pairs[o]
            l = text.source_borders[p + 1] - text.source_borders[p]
            at = text.offsets[p] + positions[o]
            for j in range(text.target_borders[p], text.target_borders[p + 1]):
                text.entries[at] = open_row[text.targets[j]]
                at += l


@merged
def draw_position(weights: FloatArray, l: int, null: float, old: int, drawn: float) -> int:
    """A position with probability ∝ weights_i, or `NULL`; ``drawn`` is below their sum.

    The old one is looked at first, for it seldom changes.
    """
    rest = drawn - (null if old == NULL else weights[old])
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
    text: GibbsText, table: FloatArray, null_table: FloatArray, seed: Any, links: IntArray
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
                drawn = uniform(stream, 0) * total
                links[t] = draw_position(weights, l, null, NULL if null > 0.0 else 0, drawn)
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
def log_dirichlet(priors: FloatArray, counts: Array) -> float:
    """Σ_k log a_k^(n_k), a^(n) = a (a + 1) … (a + n − 1); one prior may be for all."""
    total = 0.0
    for k in range(len(counts)):
        if counts[k] > 0:
            total += log_rising(priors[k] if len(priors) > 1 else priors[0], float(counts[k]))
    return total


# Drawing all links anew. Whatever does not depend on the target word is one factor for each source
# position, which changes for the positions of one word when a link does.

LANES = 4
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@merged
def _factor(
    e: int, fertility: int, totals: Array, masses: Array, fertilities: Array, beta: Array
) -> float:
    """What one more link to a position of word e brings, the target word and jumps apart."""
    mass: float = totals[e] + masses[e]
    if fertility >= len(beta) - 1:
        return 1.0 / mass
    more: float = fertilities[e, fertility + 1] + beta[fertility + 1]
    now: float = fertilities[e, fertility] - 1.0 + beta[fertility]
    return more / (now * mass)


@merged
def _count_position(
    i: int,
    e: int,
    sign: int,
    fertility: IntArray,
    same: IntArray,
    factor: FloatArray,
    totals: FloatArray,
    masses: FloatArray,
    fertilities: FloatArray,
    beta: FloatArray,
) -> None:
    """Position i, of word e, has a link more (sign 1) or less (−1)."""
    top = len(beta) - 1
    totals[e] += sign
    fertilities[e, min(fertility[i], top)] -= 1.0
    fertility[i] += sign
    fertilities[e, min(fertility[i], top)] += 1.0
    factor[i] = _factor(e, fertility[i], totals, masses, fertilities, beta)
    other = same[i]
    while other != i:
        factor[other] = _factor(e, fertility[other], totals, masses, fertilities, beta)
        other = same[other]


@merged
def _count_jumps(
    link: int, before: int, after: int, sign: int, jumps: FloatArray, jumped: FloatArray
) -> None:
    """Between two linked positions there is a word with this link (sign 1), or no longer (−1)."""
    if link == NULL:
        jumps[width(after - before, len(jumps) // 2)] += sign
        jumped[0] += sign
    else:
        jumps[width(link - before, len(jumps) // 2)] += sign
        jumps[width(after - link, len(jumps) // 2)] += sign
        jumped[0] += 2 * sign


@merged
def _weigh_jumps(
    jumps: FloatArray, gamma: float, l: int, before: int, after: int, weights: FloatArray
) -> None:
    """weights_i ← what the jumps to position i and from it bring, up to a constant.

    The second jump of one width finds the first already there.
    """
    most = len(jumps) // 2
    if l >= most:  # so long that the widest jumps are counted together
        for i in range(l):
            to, onward = width(i - before, most), width(after - i, most)
            again = 1.0 if to == onward else 0.0
            weights[i] = (jumps[to] + gamma) * (jumps[onward] + gamma + again)
        return
    first, last = np.uint64(most - before), np.uint64(most + after)
    for i in range(l):
        weights[i] = (jumps[first + np.uint64(i)] + gamma) * (jumps[last - np.uint64(i)] + gamma)
    middle = (before + after) // 2  # here alone both jumps have one width
    if 2 * middle == before + after and 0 <= middle < l:
        weights[middle] += jumps[most + middle - before] + gamma


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
def _temper(weights: FloatArray, l: int, null: float, power: float) -> tuple[float, float]:
    """Weights to a power, the largest being 1; the empty word's, and the sum of all others."""
    top = null
    for i in range(l):
        top = max(top, weights[i])
    total = 0.0
    for i in range(l):
        weights[i] = (weights[i] / top) ** power
        total += weights[i]
    return (null / top) ** power, total


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
    # of each source position of a pair: its fertility, the next position of the same word, the
    # factor of both, and its weight; and of every word its last position
    longest = 0
    for p in range(len(source_borders) - 1):
        longest = max(longest, source_borders[p + 1] - source_borders[p])
    fertility, same = np.zeros(longest, np.int64), np.zeros(longest, np.int64)
    factor, weights = np.zeros(longest), np.zeros(longest)
    last = np.full(len(counts), -1, np.int64)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for p in range(len(source_borders) - 1):
        start, first, end = source_borders[p], target_borders[p], target_borders[p + 1]
        l = source_borders[p + 1] - start
        if l == 0 or end == first:
            continue
        for i in range(l):  # the positions of each word in a ring
            e = sources[start + i]
            fertility[i] = 0
            same[i] = i
            previous = last[e]
            if previous >= 0:
                same[i], same[previous] = same[previous], i
            last[e] = i
        for i in range(l):
            last[sources[start + i]] = -1
        for t in range(first, end):
            if links[t] != NULL:
                fertility[links[t]] += 1
        for i in range(l):
            factor[i] = _factor(sources[start + i], fertility[i], totals, masses, counts, beta)
        at, before, following, after = offsets[p] - l, -1, first, 0
        for t in range(first, end):
            f, link = targets[t], links[t]
            at += l
            if following <= t:  # the next token that is linked
                following = t + 1
                while following < end and links[following] == NULL:
                    following += 1
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
                _count_position(link, e, -1, fertility, same, factor, totals, masses, counts, beta)
            # the empty word has one jump less
            jump = jumps[width(after - before, len(jumps) // 2)] + gamma
            all_jumps = jumped[0] + len(jumps) * gamma
            word = (null_uses[f] + null_alpha[f]) / (totals[-1] + masses[-1])
            null = odds * word * jump * (all_jumps + 1.0)
            _weigh_jumps(jumps, gamma, l, before, after, weights)
            total = _weigh_words(entries, at, l, uses, alpha, factor, weights)
            if temper != 1.0:
                null, total = _temper(weights, l, null, temper)
            total += null
            if len(sums):
                share = 1.0 / total
                for i in range(l):
                    sums[at + i] += weights[i] * share
            link = draw_position(weights, l, null, link, uniform(stream, 0) * total)
            links[t] = link
            _count_jumps(link, before, after, 1, jumps, jumped)
            if link == NULL:
                null_uses[f] += 1
                totals[-1] += 1.0
            else:
                e = sources[start + link]
                uses[entries[at + link]] += 1
                _count_position(link, e, 1, fertility, same, factor, totals, masses, counts, beta)
                before = link


PRIORS = (1e-10, 1e10)
"""The smallest prior and the largest."""

FERTILITY = (1.05, 1.35, 0.36, 0.15, 0.06, 0.015, 0.009, 0.006)
"""Dirichlet prior of how many target words a source position has; the last: 7 or more."""

WIDEST = 100
"""Jumps of this width and wider ones are counted together."""

MOST = 2**31 - 1
"""The largest number of entries of a lexicon."""


class IndexedPairs:
    """Sentence pairs with the entry of every link written down: four bytes a link.

    ``source, target``  the sentences; pairs with an empty side say nothing
    ``lexicon``  the words that occur together, its last row being the empty word's
    ``fixed``    for every target token the source position that it comes from, −1 for the empty
                 word, −2 where nothing is known; None: nothing is
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
        offsets = cumulate(source.lengths * target.lengths)
        known = np.full(len(target.tokens), FREE, np.int32)
        if fixed is not None:
            known[:] = fixed
        sides = source.tokens, source.indptr, target.tokens, target.indptr
        self.text = GibbsText(*sides, offsets, np.empty(offsets[-1], np.uint32), known)
        occurrences = find_occurrences(source.tokens, source.indptr, lexicon.n_sources, False)
        rows = lexicon.indptr, lexicon.targets
        index_links(*rows, occurrences, self.text, lexicon.n_targets)

    @property
    def n_links(self) -> int:
        """How many links all pairs could have."""
        return len(self.text.entries)

    def matrices(self, links: FloatArray) -> Iterator[FloatArray]:
        """Numbers of all links as one (l, m) array for each pair."""
        borders = self.text.offsets.tolist()
        for begin, end, l, m in zip(borders[:-1], borders[1:], *self._lengths, strict=True):
            yield links[begin:end].reshape(m, l).T


class CollapsedAligner:
    """A state of the sampler: which source word each target word comes from.

    ``alpha``      Dirichlet prior of translations: one number, or one for each entry of the lexicon
                   (what a dictionary says is added to its entries)
    ``jump``       Dirichlet prior of the widths of jumps, one number
    ``fertility``  Dirichlet prior of how many links a source position has, from none on
    ``null``       the probability that a target word comes from the empty word
    ``table``      t(f | e), one number for each entry, to draw the first links with; None: all
                   entries are as likely
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
        table: FloatArray | None = None,
        seed: int = 0,
    ) -> None:
        self._pairs, self._text, lexicon = pairs, pairs.text, pairs.lexicon
        n, n_sources, self._null = len(lexicon), lexicon.n_sources, null
        self._null_row = slice(*lexicon.indptr[-2:].tolist())
        each = np.atleast_1d(np.array(alpha, np.float64))
        if not ((each >= PRIORS[0]) & (each <= PRIORS[1])).all():
            raise LearnerError(
                f"alpha must be numbers from {PRIORS[0]:g} to {PRIORS[1]:g}",
                "it is a Dirichlet prior's concentration",
            )
        full, beta = np.broadcast_to(each, n), np.array(fertility, np.float64)
        sums = np.concatenate([[0.0], np.cumsum(full)])
        masses = sums[lexicon.indptr[1:]] - sums[lexicon.indptr[:-1]]
        odds = null / (1.0 - null)
        self._prior = GibbsPrior(each, self._of_null(full), masses, float(jump), beta, float(odds))
        links = np.empty(len(self._text.targets), np.int32)
        self._state = GibbsState(
            links,
            np.zeros(n, np.int32),
            np.zeros(lexicon.n_targets, np.int32),
            np.zeros(n_sources + 1),
            np.zeros(2 * WIDEST + 1),
            np.zeros(1),
            np.zeros((n_sources, len(beta))),
        )
        first = np.ones(n) if table is None else np.asarray(table, np.float64)
        of_null = self._of_null(first) * (null > 0.0)
        draw_first_links(self._text, first, of_null, np.uint64(seed % 2**64), links)
        count_all(self._text, self._state)

    def _of_null(self, values: FloatArray) -> FloatArray:
        """Those of the empty word's entries, one for each target word."""
        lexicon = self._pairs.lexicon
        found = np.zeros(lexicon.n_targets)
        found[lexicon.targets[self._null_row]] = values[self._null_row]
        return found

    @property
    def links(self) -> IntArray:
        """The source position that each target token comes from; −1: the empty word."""
        return self._state.links

    def sweep(self, stream: int, temper: float = 1.0, into: FloatArray | None = None) -> None:
        """Draw every link anew, given all others; ``temper`` is a power of p.

        Draws depend on ``stream`` and the state alone. ``into``, of `IndexedPairs.n_links` numbers,
        gets p(a_j = i | all others) of every link added: their mean over sweeps varies less than
        that of the draws themselves (Rao–Blackwell).
        """
        sums = np.zeros(0, np.float32) if into is None else into
        seed = np.uint64(stream % 2**64)
        sweep(self._text, self._prior, self._state, seed, float(temper), sums)

    def counts(self) -> dict[str, FloatArray]:
        """Links of each entry; jumps by width, −W to W; positions by word and fertility."""
        links, null = self._state.uses.astype(np.float64), self._null_row
        links[null] = self._state.null_uses[self._pairs.lexicon.targets[null]]
        return {
            "translations": links,
            "jumps": self._state.jumps.copy(),
            "fertilities": self._state.fertilities.copy(),
        }

    def means(self) -> dict[str, FloatArray]:
        """E[θ | f, a]: t(f | e) of each entry, p(width of a jump), p(fertility | e)."""
        counts, prior = self.counts(), self._prior
        translations = counts["translations"]
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
        state, prior = self._state, self._prior
        translations = log_dirichlet(prior.alpha, state.uses)
        translations += log_dirichlet(prior.null_alpha, state.null_uses)
        translations -= log_dirichlet(prior.masses, state.totals)
        jump = np.array([prior.jump])
        jumps = log_dirichlet(jump, state.jumps)
        jumps -= log_dirichlet(jump * len(state.jumps), state.jumped)
        fertilities = sum(
            log_dirichlet(prior.fertility[[k]], state.fertilities[:, k])
            for k in range(len(prior.fertility))
        )
        words = state.fertilities.sum(axis=1)
        fertilities -= log_dirichlet(prior.fertility.sum(keepdims=True), words)
        empty, linked = state.totals[-1], state.totals[:-1].sum()
        share = empty * np.log(self._null) if empty else 0.0
        return float(translations + jumps + fertilities + share + linked * np.log1p(-self._null))


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
    >>> links, _ = chains.marginals()
    >>> next(indexed.matrices(links)) > 0.5
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
        self.pairs, self.n_init, self.max_iter, self.kept = pairs, n_init, max_iter, kept
        self.state: CollapsedAligner | None = None
        """The chain that is under way."""
        self._settings = settings
        self._seeds = iter(np.random.SeedSequence(seed).spawn(n_init))
        self._streams: Iterator[int] = iter(())
        self._swept = self._own_kept = 0  # of the chain that is under way
        self._links = np.zeros(pairs.n_links, np.float32)
        self._means: dict[str, FloatArray] = {}
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
        self._n_ended, self._n_kept = self._n_ended + 1, self._n_kept + self._own_kept
        self.state = None

    def marginals(self) -> tuple[FloatArray, dict[str, FloatArray]]:
        """What all chains say that were begun.

        (links,) p(a_j = i) of all links, as `IndexedPairs.matrices` reads them; and the mean of
        E[θ | f, a], as `CollapsedAligner.means` gives it, over the chains' ends.
        """
        self._end_chain()
        self._links /= self._n_kept
        if self._n_ended < self.n_init:
            scale = self.n_init / self._n_ended
            self._means = {name: values * scale for name, values in self._means.items()}
        return self._links, self._means


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
        chains: Sequence[LinkChains],
        to_params: Callable[[Sequence[Mapping[str, FloatArray]]], Params],
        threads: int,
    ) -> None:
        super().__init__(core.name, core.forward, core.backward, agree=False)
        self.entropy_of = ()  # tables are written down only if somebody looks at them
        self.chains, self.to_params, self.threads = chains, to_params, threads

    def collapse(
        self, shards: Sequence[BidirectionalShard], params: Params, stream: int
    ) -> LinkSampler:
        """The next chain of each direction; its links begin as a draw given ``params``."""
        (shard,) = shards
        words = len(shard.forward.target.tokens) + len(shard.backward.target.tokens)
        tables = [own[TABLE] for own in split_directions(params)]
        return LinkSampler(self, tables, float(len(shard.forward)), float(words))


class LinkSampler:
    """The links of all pairs, in both directions: a sampler as `CollapsedGibbs` wants it."""

    def __init__(
        self, core: GibbsAlignmentCore, tables: Sequence[FloatArray], items: float, tokens: float
    ) -> None:
        self._core, self._items, self._tokens = core, items, tokens
        in_turn(lambda n: core.chains[n].begin(tables[n]), 2, core.threads)

    def _states(self) -> list[CollapsedAligner]:
        return [chain.state for chain in self._core.chains if chain.state is not None]

    def sweep(self, stream: int, temper: float) -> None:
        """Draw every link anew; a chain has streams of its own, one for each direction."""

        def draw(n: int) -> None:
            interrupt.check()
            self._core.chains[n].sweep(temper)

        in_turn(draw, 2, self._core.threads)

    def log_joint(self) -> float:
        """log p(f, a) + log p(e, a'), up to a constant."""
        return sum(state.log_joint() for state in self._states())

    def counts(self) -> dict[str, FloatArray]:
        """Links and jumps of both directions."""
        return join_directions([state.counts() for state in self._states()])

    def means(self) -> Params:
        """E[θ | f, a], as tables of hidden Markov models."""
        return self._core.to_params([state.means() for state in self._states()])

    def stats(self) -> Stats:
        """log p(f, a); p(f) itself would take longer than a sweep."""
        return Stats({}, float("nan"), self.log_joint(), self._items, self._tokens)

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
        self, shard: BitextShard, blocks: Iterable[LinkBlock] | None = None, best: bool = False
    ) -> LinkMatrices:
        own = getattr(self, "_corpus", None)
        if self._marginals is None or own is None or shard is not own.everything:
            yield from super()._posterior_blocks(shard, blocks, best)
            return
        indexed, links = self._marginals
        each = indexed.matrices(links)
        for block in blocks or shard.blocks():
            flat: FloatArray = np.empty(block.offsets[-1])
            for matrix in block.matrices(flat):
                matrix[:-1] = next(each)
                matrix[-1] = np.maximum(1.0 - matrix[:-1].sum(axis=0), 0.0)
            if best:
                decode_columns(block, flat, 1)
            yield block, flat


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
    ``warm_up``    the number of steps of Model 1 to begin with: they are in ``trace_.warm_up``

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
        warm_up = self._warm_up_model(corpus, agree=False, steps=max(self.warm_up, 1))
        return WarmStart(self._uniform_start(core), [warm_up])

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
        priors = [self._translation_prior(own) for own in self._directions]
        return self._sample(core, corpus, start, priors, options)

    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        each = zip(self._directions, more, strict=True)
        priors = [self._translation_prior(own) + part.past[TABLE] for own, part in each]
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
        chains = []
        for side, own_seed, prior in zip(
            (corpus.forward, corpus.backward), seeds, priors, strict=True
        ):
            shard, fixed = side.everything, None
            if shard.constraints is not None:  # of several links of a word, the first holds
                known = shard.constraints
                fixed = np.full(len(shard.target.tokens), FREE, np.int32)
                pairs = np.repeat(np.arange(len(shard)), np.diff(known.indptr))
                at = shard.target.indptr[pairs] + known.targets
                fixed[at[::-1]] = known.sources[::-1]
            indexed = IndexedPairs(shard.source, shard.target, shard.lexicon, fixed)
            sizes = {"n_init": self.n_init, "max_iter": self.max_iter, "kept": self.kept}
            chains.append(
                LinkChains(indexed, **sizes, seed=own_seed, alpha=prior, null=float(self.p_null))
            )
        model = GibbsAlignmentCore(core, chains, self._to_params, min(self._threads, 2))
        with naming(corpus):
            found = fit(model, corpus, self._learner, self.engine, init=start, seed=seed, **options)
        means = []
        for own, chain in zip(self._directions, chains, strict=True):
            assert isinstance(own, SampledHMM)
            links, mean = chain.marginals()
            own._marginals = (chain.pairs, links)
            means.append(mean)
        return replace(found, params=self._to_params(means))

    def _to_params(self, means: Sequence[Mapping[str, FloatArray]]) -> Params:
        """Means of both directions as tables of hidden Markov models."""

        def tables(own: DirectionalAligner, mean: Mapping[str, FloatArray]) -> Params:
            table = own._table_constraints.start(mean["translations"], own._lexicon.indptr)
            widths = mean["jumps"]
            starts = widths[WIDEST + 1 :]
            jumps = np.concatenate([widths / widths.sum(), starts / starts.sum()])
            return {TABLE: table, JUMPS: jumps}

        each = zip(self._directions, means, strict=True)
        return join_directions([tables(own, mean) for own, mean in each])

    def _possible_params(self) -> Params:
        # a chain may take what the dictionary rules out where nothing else is left
        return {name: np.maximum(values, UNSEEN) for name, values in self.raw_params_.items()}
