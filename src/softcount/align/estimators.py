"""Aligners of one direction as users call them: `IBM1`, `IBM2`, `Diagonal`, `HMMAligner`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from softcount import store
from softcount.align.core import (
    PLACES,
    TABLE,
    AlignmentCore,
    DiagonalCore,
    Model1Core,
    Model2Core,
    Reading,
    Sizes,
)
from softcount.align.data import (
    Block,
    Known,
    Lexicon,
    Pairs,
    Room,
    Shard,
    Words,
    chunks,
    known_links,
    new_pairs,
)
from softcount.align.decoding import HALF, Aligning, Found, above, checked_level
from softcount.align.dictionary import Dictionary, Guidance, guidance
from softcount.align.families.stems import Stems, StemTable
from softcount.align.growth import NOTHING, Past, grown, past_of
from softcount.align.hmm import HMMCore
from softcount.align.stored import StoredAligner, Tables, pack, unpack
from softcount.bounds import MAX_RUNS
from softcount.corpus.bitext import Bitext, bitext
from softcount.corpus.links import FlatLinks, Link
from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError, LearnerError, shown
from softcount.families.large import LargeTable
from softcount.fit import fit
from softcount.models.learnable import FitOptions, Learnable, all_or_nothing, naming
from softcount.models.settings import check_number, check_whole
from softcount.types import Array, How, Params

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


@dataclass(kw_only=True, eq=False, repr=False)
class Knowledge:
    """What is known before learning, and where the work is done; see `IBM1`."""

    dictionary: Any = None
    dictionary_strength: float | None = None
    lowercase: bool = False
    engine: Engine | None = None
    random_state: Any = 0


@dataclass(kw_only=True, eq=False, repr=False)
class Options(Knowledge):
    """What all but samplers have: how tables are learned, and by which numbers; see `IBM1`."""

    smoothing: float = 0.0
    stem: int | None = None
    stem_strength: float = 5.0
    dtype: str = "float64"
    init: Any = None
    learner: Learner | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class OneWayOptions(Options):
    """What models of one direction have; see `IBM1`."""

    null: bool = True


# What aligners of one direction share: how they learn, align and keep their tables.


PRECISIONS = ("float64", "float32")


class OneWay(OneWayOptions, Aligning, StoredAligner, Tables, Learnable):
    """An aligner that makes target sentences of source sentences.

    After `fit`: ``source_words_``, ``target_words_``, ``params_``, ``trace_``, ``verdict_``.
    """

    warm_up: int = 0
    often_: Array
    core_: AlignmentCore
    lexicon_: Lexicon
    words_: Words
    _corpus: Pairs | None
    _before: Past | None

    @abstractmethod
    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        """The core for pairs of these lengths."""

    # learning
    def fit(  # type: ignore[override]  # known links come with the pairs
        self,
        pairs: Any,
        links: Sequence[Any] | None = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentence pairs, and from what links are known.

        ``pairs``  a `Bitext`, or what `softcount.corpus.bitext.bitext` takes: "source ||| target"
                   texts, or (source, target) tuples
        ``links``  what is known of alignments: for each pair None or a list of (i, j) links. A
                   target word that has any comes from one of these; of the others nothing is known

        For the other options see `softcount.models.learnable.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(pairs, links)
            return self.learn(core, corpus, init, **options)

    def bind(self, data: Any, links: Sequence[Any] | None = None) -> tuple[AlignmentCore, Pairs]:
        """The core and the corpus."""
        self._check_settings()
        told = self._told()
        like = None if told is None else told.words
        pairs = bitext(data, lowercase=self.lowercase, like=like)
        return self.bind_pairs(pairs, known_links(links, pairs))

    def bind_pairs(self, pairs: Bitext, known: Known | None) -> tuple[AlignmentCore, Pairs]:
        """The core and the corpus of pairs that have numbers for all words of the dictionary."""
        told = self._told()
        words = Vocabulary(pairs.source.words), Vocabulary(pairs.target.words)
        entries = None if told is None else told.numbered(words[0].numbers, words[1].numbers)
        corpus = Pairs(pairs, self.null, known, None if entries is None else entries[:2])
        if not len(corpus):
            raise DataError(NOTHING, "look at the pairs")
        self.words_, self.lexicon_ = words, corpus.lexicon
        self.often_ = np.bincount(pairs.target.tokens, minlength=len(pairs.target.words))
        self.guide()
        return self.made_core(self.made_table(), corpus.everything.sizes), corpus

    def guide(self) -> None:
        """What the dictionary says, in terms of the words as they are now."""
        self.guidance_, told = Guidance(), self._told()
        if told is not None:
            entries = told.numbered(*(side.numbers for side in self.words_))
            self.guidance_ = guidance(entries, self.lexicon_, self.dictionary_strength)

    def _told(self) -> Dictionary | None:
        given = self.dictionary
        return None if given is None else Dictionary.of(given, self.lowercase)

    def bind_more(self, core: AlignmentCore, data: Any) -> Pairs:
        pairs = new_pairs(data, self.words_, self.lowercase)
        return Pairs(pairs, self.null, lexicon=self.lexicon_)

    def own_params(self, core: AlignmentCore, corpus: Pairs, given: Any) -> dict[str, Array]:
        """Tables as arrays; that of translations may be {source word: {target word: p}}."""
        return core.params(self._with_flat_table(given, np.zeros(len(self.lexicon_))))

    def _with_flat_table(self, given: Mapping[str, Any], otherwise: Array) -> Mapping[str, Any]:
        """Tables as ``params_`` shows them, or arrays, as arrays; rows left out: ``otherwise``."""
        if not isinstance(given.get(TABLE), Mapping):
            return given
        return {**given, TABLE: self.flat_table(given[TABLE], otherwise)}

    def made_table(self) -> LargeTable:
        word = "maximise" if self.learner is None else self.learner.m
        if word != "maximise" and self.smoothing == 0.0:
            raise LearnerError(
                f"{self.learner} needs a prior above 0", "give smoothing, for example 0.01"
            )
        prior = self.smoothing + (word == "maximise")
        return self._table(prior, None if self.stem is None else self._stems(self.stem))

    def _table(self, prior: float, stems: Stems | None = None) -> LargeTable:
        """The family of translations, with what the dictionary says."""
        told, lexicon = self.guidance_, self.lexicon_
        counts = prior if told.counts is None else prior + told.counts
        frozen = None if told.fixed is None else told.fixed[0]
        given = (lexicon.indptr, lexicon.targets, counts, told.mask, frozen)
        size: dict[str, Any] = {"dtype": self.dtype, "n_outcomes": lexicon.n_targets}
        if stems is None:
            return LargeTable(*given, **size)
        return StemTable(*given, **size, stems=stems)

    def _stems(self, letters: int) -> Stems:
        source, target = (side.words for side in self.words_)
        strength, least = self.stem_strength, self.smoothing
        return Stems.of(source, target, self.often_, letters, strength, least)

    def model1(self, corpus: Pairs) -> Model1Core:
        """Model 1 for the same pairs: what others begin with."""
        table = self._table(1.0 + self.smoothing)
        return Model1Core("warm-up", table, self.null, corpus.everything.sizes)

    def prior_hint(self) -> str:
        return "give smoothing above 0, for example 0.01"

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("null", "lowercase"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise LearnerError(f"{name}={shown(getattr(self, name))}", "True or False")
        check_number("smoothing", self.smoothing, "0: none; 0.01 is a little")
        hint = "0: none; 5 steps of Model 1 are usual"
        check_whole("warm_up", self.warm_up, 0, hint, MAX_RUNS)
        if self.stem is not None:
            check_whole("stem", self.stem, 1, "None: no stems; 4 letters are usual")
        check_number("stem_strength", self.stem_strength)
        if self.dictionary_strength is not None:
            check_number("dictionary_strength", self.dictionary_strength, above=True)
        if self.dtype not in PRECISIONS:
            raise LearnerError(f"dtype={self.dtype!r} is unknown", "float64 or float32")

    def start_values(self, core: AlignmentCore, corpus: Pairs, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(self._with_flat_table(init, self._even()))
        if init is not None and (not isinstance(init, str) or init not in ("uniform", "random")):
            raise LearnerError(
                f"init={shown(init)} is not known here", "'uniform', 'random', or tables"
            )
        families = core.families
        if init == "random":
            return lambda rng: self._guided({n: f.random(rng) for n, f in families.items()})
        start = self.places_start(core)
        table = self._warmed_up(corpus) if init is None and self.warm_up else self._even()
        return {TABLE: table, **start}

    def places_start(self, core: AlignmentCore) -> dict[str, Array]:
        """Where the other tables begin."""
        return {name: family.uniform() for name, family in core.families.items() if name != TABLE}

    def _even(self) -> Array:
        """All translations as likely as all others: one number, which takes no memory."""
        lexicon, kind = self.lexicon_, np.dtype(self.dtype).type
        share = np.nextafter(kind(1.0 / max(lexicon.n_targets, 1)), kind(0))  # no row above one
        return self.guidance_.start(np.broadcast_to(share, len(lexicon)), lexicon.indptr)

    def _guided(self, params: Params) -> Params:
        table = self.guidance_.start(params[TABLE], self.lexicon_.indptr)
        return {**params, TABLE: table}

    def _warmed_up(self, corpus: Pairs) -> Array:
        """The table after a few steps of Model 1."""
        core = self.model1(corpus)
        core.usual_dials = {"max_iter": self.warm_up, "tol": 0.0}
        with naming(corpus):
            return fit(core, corpus, None, self.engine, init={TABLE: self._even()}).params[TABLE]

    def remember(self, corpus: Pairs) -> None:
        self._corpus, self._before = corpus, None
        self.n_iter_ = len(self.fit_.trace) - 1

    def past(self) -> Past:
        """Expected counts of all pairs seen so far."""
        if self._corpus is None:
            assert self._before is not None
            return self._before
        now = self.core_.expect(self.raw_params_, self._corpus.everything, How()).counts
        return past_of(now, self._before)

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `fit` for ``links``.

        What was learned from pairs before stays as counts, which are added to those of the new
        pairs: the old ones are not looked at again. New words are welcome.
        """
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self):
            self._check_settings()
            more = grown(self, pairs, links, self.past())
            core = more.remembering()
            found = self._run(core, more.corpus, self.learner, more.start, 0, {})
            more.forgetting()
            self.keep(core, more.corpus, found)
            self._before = more.past
            return self

    # aligning
    def shards(self, pairs: Any) -> tuple[Bitext, Iterator[Shard]]:
        self._require_fit()
        own = getattr(self, "_corpus", None)
        if own is not None and (pairs is None or pairs is own.pairs):
            return own.pairs, iter([own.everything])
        if pairs is None:
            raise DataError("the pairs learned from are gone", "give pairs to align")
        text = new_pairs(pairs, self.words_, self.lowercase)
        return text, chunks(text, self.lexicon_, self.null)

    def align(self, pairs: Any = None, *, threshold: float | None = None) -> list[list[Link]]:
        """The links (i, j) of each pair: source place and target place, counted from 0.

        ``pairs``      None: the pairs learned from
        ``threshold``  all links that are more probable than this; None: the best alignment
        """
        return self.links(pairs, threshold=threshold)[0].lists()

    def links(
        self, pairs: Any = None, *, threshold: float | None = None, probabilities: bool = False
    ) -> tuple[FlatLinks, Array]:
        """As `align`, in flat arrays, and the links' probabilities if they are wanted."""
        if threshold is None:
            return self.chosen(pairs, lambda shard: self._best(shard, probabilities))
        level = checked_level(threshold)
        return self.chosen(
            pairs, lambda shard: (above(*found, level) for found in self.beliefs(shard))
        )

    def _best(self, shard: Shard, probabilities: bool) -> Iterator[Found]:
        believed = self.beliefs(shard) if probabilities else None
        for block, links in self.decisions(shard):
            found = above(block, links, HALF)
            yield found.bare if believed is None else found.valued(block, next(believed)[1])

    def decisions(
        self, shard: Shard, blocks: Iterable[Block] | None = None
    ) -> Iterator[tuple[Block, Array]]:
        """1 for the links of best alignments and 0 for others, block by block.

        They stay until the next block is asked for; so does what `beliefs` gives.
        """
        table, threads = shard.own(self.raw_params_[TABLE]), self.threads
        room = Room(table.dtype)
        for block in blocks or shard.blocks():
            links = block.gather(table, room, threads)
            self.core_.best(self.raw_params_, block, links, threads)
            yield block, links

    def beliefs(
        self, shard: Shard, blocks: Iterable[Block] | None = None
    ) -> Iterator[tuple[Block, Array]]:
        how = How(threads=self.threads, score_only=True)
        reading = Reading(self.core_, self.raw_params_, shard, how)
        for block in blocks or shard.blocks():
            yield block, reading.posteriors(block)

    def score_samples(self, pairs: Any = None) -> Array:
        """log p(target | source) of each pair; 0 for one with an empty side."""
        text, shards = self.shards(pairs)
        logs = np.zeros(len(text))
        for shard in shards:
            logs[shard.numbers] = self.core_.logs(self.raw_params_, shard, self.threads)
        return logs

    def perplexity(self, pairs: Any) -> float:
        """exp of the negative log-likelihood a target word."""
        text, _ = self.shards(pairs)
        full = text.source.lengths > 0
        words = max(float(text.target.lengths[full].sum()), 1.0)
        return float(np.exp(-self.score_samples(text).sum() / words))

    # files
    def packed(self) -> tuple[dict[str, Array], list[list[str]]]:
        return pack(self, self.past()), [list(side.words) for side in self.words_]

    def unpack(self, stored: store.Stored, words: Words) -> None:
        unpack(self, stored, words)


# Aligners of one direction: IBM Models 1 and 2, the diagonal one, and the hidden Markov model.


def check_share(name: str, value: Any) -> None:
    """Complain unless ``value`` is at least 0 and below 1."""
    check_number(name, value)
    if value >= 1.0:
        raise LearnerError(f"{name}={shown(value)}: must be below 1", "0.1 is usual")


@dataclass(kw_only=True, eq=False, repr=False)
class IBM1(OneWay):
    """IBM Model 1: every source word is as likely as any other to be a target word's origin.

    p(f | e) = Π_j 1/(l + 1) Σ_i t(f_j | e_i) (Brown, Della Pietra, Della Pietra & Mercer 1993).
    Its likelihood is concave: EM finds the best table from wherever it begins.

    ``null``                 target words may also come from the empty word
    ``smoothing``            pseudo-counts of every pair of words that occur together (for learners
                             that need a prior, the Dirichlet prior itself)
    ``stem``                 words that begin with the same so many letters lend each other counts:
                             rare words are known by their relatives
    ``stem_strength``        how many counts each source word is lent
    ``dictionary``           {"house": "maison"}: all that "house" may become. One translation has
                             probability 1; with several, learning weighs them, unless their weights
                             are given: {"house": {"maison": 0.8, "chambre": 0.2}}
    ``dictionary_strength``  so many pseudo-counts for each entry of the dictionary instead: other
                             translations stay possible
    ``lowercase``            all words in lower case
    ``dtype``                numbers of 64 bits, or of 32: half the memory

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = IBM1(null=False).fit(pairs)
    >>> model.align([("the book", "das buch")])
    [[(0, 0), (1, 1)]]
    """

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return Model1Core("IBM1", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2(OneWay):
    """IBM Model 2: places have a table d(i | j, l, m) of their own (Brown et al. 1993).

    ``warm_up``  so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> IBM2(null=False).fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    warm_up: int = 5

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return Model2Core("IBM2", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class Diagonal(OneWay):
    """Model 2 with one number for all places: how near they are to the diagonal.

    d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the tension λ is learned (Dyer, Chahuneau & Smith 2013).

    ``p_null``   the probability that a target word comes from the empty word
    ``tension``  the λ to begin with
    ``warm_up``  so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Diagonal().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    p_null: float = 0.08
    tension: float = 4.0
    warm_up: int = 0

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return DiagonalCore("Diagonal", table, self.null, sizes, self.p_null)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_share("p_null", self.p_null)
        check_number("tension", self.tension, "0: all places are as likely; 4 is usual")

    def places_start(self, core: AlignmentCore) -> dict[str, Array]:
        return {PLACES: np.array([float(self.tension)])}


WIDEST = 10_000
"""No sentence has jumps as wide as this."""


@dataclass(kw_only=True, eq=False, repr=False)
class HMMAligner(OneWay):
    """The hidden Markov model: a place depends on the one before it by the width of the jump.

    p(f | e) = Σ_a Π_j p(a_j | a_{j−1}, l) t(f_j | e_{a_j}) (Vogel, Ney & Tillmann 1996), with the
    empty word as Och & Ney (2003) have it.

    ``p_null``     the probability that a target word comes from the empty word
    ``max_jump``   wider jumps are all as likely as one of this width
    ``warm_up``    so many steps of Model 1 come first

    For the other settings see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> HMMAligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    p_null: float = 0.1
    max_jump: int = 20
    warm_up: int = 5

    def made_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return HMMCore("HMMAligner", table, self.null, self.p_null, self.max_jump, sizes)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_share("p_null", self.p_null)
        check_whole("max_jump", self.max_jump)
        if self.max_jump > WIDEST:
            raise LearnerError(f"max_jump={self.max_jump} is too wide", f"{WIDEST} at most")
