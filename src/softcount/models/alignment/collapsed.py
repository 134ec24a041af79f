"""Word alignment with jumps and fertilities, parameters integrated out, sampled word by word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount import interrupt
from softcount.corpus.bitext import Side
from softcount.errors import DataError, LearnerError
from softcount.kernels import alignment_gibbs as kernel
from softcount.kernels import alignment_state as state_kernel
from softcount.kernels.alignment_state import FREE, NULL, Prior, State, Text
from softcount.kernels.lexicon import occurrences
from softcount.models.alignment.lexicon import Lexicon
from softcount.types import Array

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
        self, source: Side, target: Side, lexicon: Lexicon, fixed: ArrayLike | None = None
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
        known = free if fixed is None else _fixed(fixed, source, target)
        sides = source.tokens, source.indptr, target.tokens, target.indptr
        self.text = Text(*sides, offsets.astype(np.int64), np.empty(offsets[-1], np.uint32), known)
        places = occurrences(source.tokens, source.indptr, lexicon.n_sources)
        rows = lexicon.indptr, lexicon.targets
        state_kernel.index_links(*rows, *places, self.text, lexicon.n_targets)

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

    >>> from softcount.corpus.bitext import bitext
    >>> from softcount.models.alignment.shards import Pairs
    >>> corpus = bitext([("a b", "x y"), ("b", "y"), ("c a", "z x")] * 3)
    >>> pairs = Pairs(corpus, null=True).everything
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
        self._null = _share(null, self._text)
        self._prior = _prior(lexicon, alpha, jump, fertility, self._null)
        links = np.empty(len(self._text.targets), np.int32)
        self._state = _no_counts(lexicon, links, len(self._prior.fertility))
        first = np.ones(len(lexicon)) if table is None else np.asarray(table, np.float64)
        of_null = _of_null(lexicon, first) * (self._null > 0.0)
        state_kernel.begin(self._text, first, of_null, np.uint64(seed % 2**64), links)
        state_kernel.count_all(self._text, self._state)

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
        kernel.sweep(self._text, self._prior, self._state, seed, float(temper), sums)

    def conditional(self, token: int) -> Array:
        """p(a_j = i | all others) of a target token; the last is the empty word's."""
        text, known = self._text, self.links.copy()
        known[token] = FREE
        others = State(*(values.copy() for values in self._state))
        sums = np.zeros(self._pairs.n_links)
        kernel.sweep(text._replace(fixed=known), self._prior, others, np.uint64(0), 1.0, sums)
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
        """log p(f, a), up to a constant (see `softcount.kernels.alignment_gibbs`)."""
        state, prior, ways = self._state, self._prior, state_kernel.log_dirichlet
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


class Sampled(NamedTuple):
    """What several chains agree on.

    ``links``  p(a_j = i) of all links, as `IndexedPairs.matrices` reads them (float32)
    ``means``  the mean of E[θ | f, a], as `CollapsedAligner.means` gives it, over the chains' ends
    ``log_joint``  the mean of log p(f, a) there
    """

    links: Array
    means: dict[str, Array]
    log_joint: float


def sampled(
    pairs: IndexedPairs,
    *,
    chains: int = 4,
    sweeps: int = 8,
    kept: int = 2,
    seed: int = 0,
    stopped: Callable[[], bool] | None = None,
    **settings: Any,
) -> Sampled:
    """Marginal probabilities of all links, from the last ``kept`` sweeps of several chains.

    A chain soon gets stuck, each in another place: many short ones see more than a long one.
    ``settings`` are those of `CollapsedAligner`. When ``stopped`` says so, the chain that is under
    way keeps its next sweep, if it has kept none yet, and the rest is left undone.

    >>> from softcount.corpus.bitext import bitext
    >>> from softcount.models.alignment.shards import Pairs
    >>> corpus = bitext([("a b", "x y"), ("b", "y"), ("c a", "z x")] * 3)
    >>> pairs = Pairs(corpus, null=True).everything
    >>> indexed = IndexedPairs(pairs.source, pairs.target, pairs.lexicon)
    >>> next(indexed.matrices(sampled(indexed, null=0.01).links)) > 0.5
    array([[ True, False],
           [False,  True]])
    """
    if not (chains >= 1 and 1 <= kept <= sweeps):
        raise LearnerError(
            f"chains={chains}, sweeps={sweeps}, kept={kept}", "keep from one to all sweeps"
        )
    links = np.zeros(pairs.n_links, np.float32)
    means: dict[str, Array] = {}
    log_joint = 0.0
    n_chains = n_kept = 0
    stopping = False
    for chain in np.random.SeedSequence(seed).spawn(chains):
        first, *streams = chain.generate_state(sweeps + 1, np.uint64).tolist()
        aligner = CollapsedAligner(pairs, seed=first, **settings)
        own = 0
        for n, stream in enumerate(streams):
            interrupt.check()
            stopping = stopped is not None and stopped()
            if stopping and own:
                break
            keeps = stopping or n >= sweeps - kept
            aligner.sweep(stream, into=links if keeps else None)
            own += keeps
        n_chains, n_kept = n_chains + 1, n_kept + own
        for name, values in aligner.means().items():
            means[name] = means.get(name, 0.0) + values / chains
        log_joint += aligner.log_joint() / chains
        if stopping:
            break
    links /= n_kept
    if n_chains < chains:
        means = {name: values * (chains / n_chains) for name, values in means.items()}
        log_joint *= chains / n_chains
    return Sampled(links, means, log_joint)


def _fixed(fixed: ArrayLike, source: Side, target: Side) -> Array:
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


def _share(null: float, text: Text) -> float:
    if not 0.0 <= null < 1.0:
        raise LearnerError(f"null={null}", "it is a share: from 0 to below 1")
    if null == 0.0 and (text.fixed == NULL).any():
        raise LearnerError("null=0, but links to the empty word are known", "give a larger null")
    return float(null)


def _of_null(lexicon: Lexicon, values: Array) -> Array:
    """Numbers of the empty word's entries, one a target word."""
    row = slice(*lexicon.indptr[-2:].tolist())
    out = np.zeros(lexicon.n_targets)
    out[lexicon.targets[row]] = values[row]
    return out


def _prior(
    lexicon: Lexicon, alpha: ArrayLike, jump: float, fertility: ArrayLike, null: float
) -> Prior:
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
    null_alpha = _of_null(lexicon, full)
    if null and not null_alpha.any():
        raise LearnerError("the lexicon has no entries of the empty word", "give null=0")
    masses = sums[lexicon.indptr[1:]] - sums[lexicon.indptr[:-1]]
    return Prior(each, null_alpha, masses, float(gamma), beta, null / (1.0 - null))


def _no_counts(lexicon: Lexicon, links: Array, n_fertilities: int) -> State:
    uses, null_uses = np.zeros(len(lexicon), np.int32), np.zeros(lexicon.n_targets, np.int32)
    totals, jumps = np.zeros(lexicon.n_sources + 1), np.zeros(2 * WIDEST + 1)
    places = np.zeros((lexicon.n_sources, n_fertilities))
    return State(links, uses, null_uses, totals, jumps, np.zeros(1), places)


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not len(values) or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration",
        )
    return np.ascontiguousarray(values)
