"""Aligners as users call them.

`IBM1`, `IBM2`, `Diagonal` and `HMMAligner` make target sentences of source sentences; `Aligner` has
two of these, one for each direction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, Unpack, get_args

import numpy as np
from scipy import sparse

from softcount.align.core import (
    JUMPS,
    PLACES,
    TABLE,
    AgreementCore,
    AlignmentCore,
    DiagonalCore,
    HMMAlignmentCore,
    IBM1Core,
    IBM2Core,
    ShardEStep,
    Sizes,
    join_directions,
    split_directions,
)
from softcount.align.data import (
    BidirectionalCorpus,
    BidirectionalShard,
    BitextCorpus,
    BitextShard,
    Dictionary,
    DictionaryConstraints,
    LinkBlock,
    LinkConstraints,
    PairLexicon,
    Vocabularies,
    cumulate,
    make_constraints,
    narrow,
)
from softcount.align.decoding import (
    HALF,
    ChosenLinks,
    LinkMethod,
    check_threshold,
    select_links,
    symmetrise_all,
)
from softcount.align.families import Stems, StemTable, WithPast
from softcount.align.kernels import PairSizes, average_directions
from softcount.align.parameters import (
    MEANS,
    BidirectionalParameters,
    DiagonalParameters,
    DirectionParameters,
    HMMAlignerParameters,
    IBM2Parameters,
    TableParameters,
)
from softcount.core import store
from softcount.core.bounds import MAX_COUNT, MIN_ROW
from softcount.core.errors import (
    DataError,
    LearnerError,
    MissingEntry,
    StartError,
    StoreError,
    brief,
)
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.fit import WarmStart
from softcount.core.store import AGAIN, guarded, numbers, plain_settings, settings_of, strings
from softcount.core.theory import Decomposition
from softcount.core.types import Array, EStep, Fit, FloatArray, IntArray, Params
from softcount.families.base import check_start
from softcount.families.large import LargeTable
from softcount.families.rows import row_sums
from softcount.kernels.threads import over_rows
from softcount.learners.base import Learner
from softcount.text.bitext import Bitext, as_bitext
from softcount.text.links import FlatLinks, Link
from softcount.text.vocabulary import Vocabulary

PAST = "past."
"""In files, expected counts of all pairs seen so far have names that begin so."""

NOTHING = "there is nothing to learn from: every pair has an empty side"

LinkMatrices = Iterator[tuple[LinkBlock, FloatArray]]
"""Blocks, and a number for each of their links; it stays until the next block is asked for."""


class BaseAligner(Estimator):
    """What aligners of one direction and of both have in common.

    ``reversed_``  a note for programs, kept in files: the pairs learned from had source and target
                   exchanged
    """

    reversed_ = False

    # learning
    def fit(  # type: ignore[override]  # known links come with the pairs
        self,
        pairs: Any,
        links: Sequence[Any] | None = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentence pairs, and from the links that are known.

        ``pairs``  a `Bitext`, or what `softcount.text.bitext.bitext` takes: "source ||| target"
                   texts, or (source, target) tuples
        ``links``  what is known of alignments: for each pair None or a list of (i, j) links. A
                   target word that has any comes from one of these; of the others nothing is known

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(pairs, links)
            return self._learn(core, corpus, init, **options)

    @abstractmethod
    def _bind(self, data: Any, links: Sequence[Any] | None = None) -> tuple[Any, Any]:
        """The core and the corpus."""

    def _prior_hint(self) -> str:
        return "give smoothing above 0, for example 0.01"

    # aligning
    @abstractmethod
    def _shards(self, pairs: Any) -> tuple[Bitext, Iterator[Any]]:
        """The pairs (None: those learned from), and shards of them."""

    @abstractmethod
    def _posterior_blocks(self, shard: Any) -> LinkMatrices:
        """Posteriors of a shard's links, block by block."""

    def _choose(
        self, pairs: Any, choose: Callable[[Any], Iterator[ChosenLinks]]
    ) -> tuple[FlatLinks, FloatArray]:
        """The links that are chosen in each shard, put together."""
        text, shards = self._shards(pairs)
        each = [found for shard in shards for found in choose(shard)]
        lengths = np.zeros(len(text), np.int64)  # pairs with an empty side have no links
        for found in each:
            lengths[found.numbers] = np.diff(found.links.indptr)
        sources = np.concatenate([np.zeros(0, np.int32), *(found.links.source for found in each)])
        targets = np.concatenate([np.zeros(0, np.int32), *(found.links.target for found in each)])
        values = np.concatenate([np.zeros(0), *(found.values for found in each)])
        return FlatLinks(cumulate(lengths), sources, targets), values

    def posteriors(self, pairs: Any = None) -> list[FloatArray]:
        """p(a_j = i | pair) of each pair, an (l, m) matrix; what it lacks is the empty word's."""
        text, shards = self._shards(pairs)
        sizes = zip(text.source.lengths.tolist(), text.target.lengths.tolist(), strict=True)
        found: list[FloatArray] = [np.zeros(size) for size in sizes]
        for shard in shards:
            for block, links in self._posterior_blocks(shard):
                matrices = block.matrices(links)
                for number, matrix in zip(block.numbers.tolist(), matrices, strict=True):
                    found[number] = matrix[:-1].astype(float)
        return found

    @abstractmethod
    def score_samples(self, pairs: Any = None) -> FloatArray:
        """The log-likelihood of each pair."""

    def score(self, pairs: Any, y: Any = None) -> float:
        """The mean log-likelihood of a pair, as `score_samples` has it."""
        return float(self.score_samples(pairs).mean())

    # files
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, for `softcount.load`. Settings that are code are left out."""
        self._require_fit()
        arrays, words = self._pack()
        meta = {"settings": plain_settings(self), "words": words, "turned": self.reversed_}
        store.write(path, type(self).__name__, arrays, meta, self.signature_)

    @classmethod
    def load(cls, path: str | PathLike[str], **given: Any) -> Self:
        """Read a model that `save` wrote; ``given`` are settings that a file cannot hold."""
        return cls.restore(store.read(path, cls.__name__), **given)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        """A model from what a file holds (see `softcount.load`)."""
        settings = settings_of(cls, stored, given)

        def make() -> Any:
            model = cls(**settings)
            model.signature_ = stored.signature
            model.reversed_ = bool(stored.meta.get("turned", False))
            for words in stored.meta["words"]:
                strings(words, len(words), "words")
                if len(set(words)) != len(words):
                    raise StoreError("a word is there twice", AGAIN)
            source, target = map(Vocabulary, stored.meta["words"])
            model._unpack(stored, (source, target))
            return model

        return guarded(cls, make)

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        """Arrays and words that a file must hold."""

    @abstractmethod
    def _unpack(self, stored: store.Stored, words: Vocabularies) -> None:
        """Take back what `_pack` gave."""


class Continuation(NamedTuple):
    """A fitted direction that is about to learn from more pairs.

    ``core``    with the words and the lengths of all pairs
    ``corpus``  the new pairs
    ``start``   what was learned, with room for what is new
    ``past``    expected counts of all pairs seen before, by family, in the terms of the new core
    """

    core: AlignmentCore
    corpus: BitextCorpus
    start: dict[str, Array]
    past: dict[str, Array]

    def core_with_past(self) -> AlignmentCore:
        """A core that adds the past to all that it counts."""
        core = copy(self.core)
        core.families = {
            name: WithPast(family, self.past[name]) for name, family in core.families.items()
        }
        return core


class Translations(dict[str, float]):
    """p(target word | a source word): words that never stand beside it have a probability of 0.

    These are not listed; what is no target word at all is an error.

    >>> row = Translations({"haus": 1.0}, words=("haus", "buch"))
    >>> row["buch"], "buch" in row
    (0.0, False)
    """

    def __init__(self, entries: Mapping[str, float], words: Container[str]) -> None:
        super().__init__(entries)
        self._words = words

    def __missing__(self, word: str) -> float:
        if word in self._words:
            return 0.0
        raise MissingEntry(f"the word {brief(word)} was never seen", "give a target word")

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))  # a copy or a pickle need not carry all words


class DirectionalAligner(DirectionParameters, BaseAligner):
    """An aligner that makes target sentences of source sentences.

    After `fit`: ``source_words_``, ``target_words_``, ``params_``, ``trace_``, ``verdict_``.
    """

    default_learner = AlignmentCore.default_learner
    warm_up: int = 0
    core_: AlignmentCore
    _vocabularies: Vocabularies
    _lexicon: PairLexicon
    _target_counts: IntArray  # (target words,) how often each was seen
    _table_constraints: DictionaryConstraints
    _corpus: BitextCorpus | None
    """The pairs learned from; None: they are gone."""
    _past: dict[str, Array] | None
    """Expected counts of all pairs but those of ``_corpus``, by family; None: there are no more."""

    @abstractmethod
    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        """The core for pairs of these lengths."""

    # binding
    def _bind(
        self, data: Any, links: Sequence[Any] | None = None
    ) -> tuple[AlignmentCore, BitextCorpus]:
        """The core and the corpus."""
        self._check_settings()
        like = None
        if self.dictionary is not None:
            like = Dictionary.of(self.dictionary, self.lowercase).words
        pairs = as_bitext(data, lowercase=self.lowercase, like=like)
        return self._bind_pairs(pairs, make_constraints(links, pairs))

    def _bind_pairs(
        self, pairs: Bitext, constraints: LinkConstraints | None, grow: bool = False
    ) -> tuple[AlignmentCore, BitextCorpus]:
        """The core and the corpus of pairs that have numbers for all words of the dictionary.

        ``grow``  keep the words, entries and lengths that the model has already
        """
        words = Vocabulary(pairs.source.words), Vocabulary(pairs.target.words)
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        sources, targets, _ = dictionary.number_entries(words)
        target_counts = np.bincount(pairs.target.tokens, minlength=len(pairs.target.words))
        if grow:
            rows = self._lexicon.rows()
            rows[rows == self._lexicon.n_sources] = len(pairs.source.words)  # the empty word's
            sources = np.concatenate([rows, sources])
            targets = np.concatenate([self._lexicon.targets, targets])
            target_counts[: len(self._target_counts)] += self._target_counts
        more = (sources, targets) if len(sources) else None
        corpus = BitextCorpus(pairs, self.null, constraints, more)
        if not len(corpus):
            raise DataError(NOTHING, "look at the pairs")
        l, m = corpus.everything.sizes
        if grow:
            l, m = np.append(self.core_.sizes[0], l), np.append(self.core_.sizes[1], m)
        self._vocabularies, self._lexicon = words, corpus.lexicon
        self._target_counts = target_counts
        self._table_constraints = dictionary.constrain(
            words, self._lexicon, self.dictionary_strength
        )
        return self._make_core(self._make_table(), (l, m)), corpus

    def _bind_more(self, core: AlignmentCore, data: Any) -> BitextCorpus:
        pairs = as_bitext(data, lowercase=self.lowercase, like=self._vocabularies)
        return BitextCorpus(pairs, self.null, lexicon=self._lexicon)

    def _make_table(self, warm_up: bool = False) -> LargeTable:
        """The family of translations; with a learner that draws, smoothing is the prior itself.

        ``warm_up``  that of Model 1, which other models begin with
        """
        maximises = warm_up or self._maximises
        if not maximises and self.smoothing == 0.0:
            raise LearnerError(
                f"{self._learner} needs a prior above 0", "give smoothing, for example 0.01"
            )
        known, lexicon, prior = self._table_constraints, self._lexicon, self.smoothing + maximises
        alpha = prior if known.counts is None else prior + known.counts
        frozen = None if known.fixed is None else known.fixed[0]
        given = (lexicon.indptr, lexicon.targets, alpha, known.mask, frozen)
        size: dict[str, Any] = {"dtype": self.dtype, "n_outcomes": lexicon.n_targets}
        if warm_up or self.stem is None:
            return LargeTable(*given, **size)
        source, target = (side.words for side in self._vocabularies)
        lent = self.stem, self.stem_strength, self.smoothing
        stems = Stems.of(source, target, self._target_counts, *lent)
        return StemTable(*given, **size, stems=stems)

    def _model1(self, corpus: BitextCorpus, max_iter: int) -> IBM1Core:
        """IBM Model 1 for the same pairs, with this number of steps: other models begin with it."""
        table, sizes = self._make_table(warm_up=True), corpus.everything.sizes
        return IBM1Core("warm-up", table, self.null, sizes, max_iter)

    # starts
    def _start_values(self, core: AlignmentCore, corpus: BitextCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(self._with_flat_table(init, self._uniform_table()))
        if init is not None and (not isinstance(init, str) or init not in ("uniform", "random")):
            raise LearnerError(
                f"init={brief(init)} is not known here", "'uniform', 'random', or tables"
            )
        if init == "random":

            def draw(rng: np.random.Generator) -> Params:
                params = {name: family.random(rng) for name, family in core.families.items()}
                table = self._table_constraints.start(params[TABLE], self._lexicon.indptr)
                return {**params, TABLE: table}

            return draw
        start = self._uniform_start(core)
        if init is None and self.warm_up:
            return WarmStart(start, [self._model1(corpus, self.warm_up)])
        return start

    def _uniform_start(self, core: AlignmentCore) -> dict[str, Array]:
        """Where learning begins if nothing else is given."""
        others = (item for item in core.families.items() if item[0] != TABLE)
        return {
            TABLE: self._uniform_table(),
            **{name: family.uniform() for name, family in others},
        }

    def _uniform_table(self) -> FloatArray:
        """All translations as likely as all others: one number, which takes no memory."""
        lexicon, kind = self._lexicon, np.dtype(self.dtype).type
        p = np.nextafter(kind(1.0 / max(lexicon.n_targets, 1)), kind(0))  # no row above one
        return self._table_constraints.start(np.broadcast_to(p, len(lexicon)), lexicon.indptr)

    def _read_params(self, core: AlignmentCore, corpus: BitextCorpus, given: Any) -> Params:
        """Tables as arrays; that of translations may be {source word: {target word: p}}."""
        return core.params(self._with_flat_table(given, np.zeros(len(self._lexicon))))

    def _with_flat_table(
        self, given: Mapping[str, Any], otherwise: FloatArray
    ) -> Mapping[str, Any]:
        """Tables as ``params_`` shows them, or arrays, as arrays; rows left out: ``otherwise``."""
        if not isinstance(given.get(TABLE), Mapping):
            return given
        lexicon, table = self._lexicon, np.array(otherwise)
        sources, targets = (side.numbers for side in self._vocabularies)
        for word, row in given[TABLE].items():
            number = lexicon.n_sources if word is None else sources.get(word)
            if number is None or any(target not in targets for target in row):
                raise StartError(
                    f"the start of {TABLE!r} has a word that was never seen, for {brief(word)}",
                    "give words of the pairs, as params_ does",
                )
            begin, end = lexicon.indptr[number : number + 2].tolist()
            entries = dict(zip(lexicon.targets[begin:end].tolist(), range(begin, end), strict=True))
            table[begin:end] = 0.0
            for target, p in row.items():
                if targets[target] in entries:
                    table[entries[targets[target]]] = p
                elif p != 0.0:
                    raise StartError(
                        f"the start of {TABLE!r} has a translation of {brief(word)} that no pair "
                        "has",
                        "leave it out",
                    )
        return {**given, TABLE: table}

    # learning from more pairs
    def _after_fit(self, corpus: BitextCorpus) -> None:
        self._corpus, self._past = corpus, None
        self.n_iter_ = len(self.fit_.trace) - 1

    def _expected_counts(self) -> dict[str, Array]:
        """Expected counts of all pairs seen so far, by family."""
        if self._corpus is None:
            assert self._past is not None
            return self._past
        found = self.core_.expect(self.raw_params_, self._corpus.everything, EStep())
        return self._add_past(found.counts)

    def _add_past(self, counts: Mapping[str, Any]) -> dict[str, Array]:
        """Counts of the pairs learned from last, and those of all before."""
        now = {name: np.asarray(value, dtype=np.float64) for name, value in counts.items()}
        if self._past is None:
            return now
        return {name: self._past[name] + value for name, value in now.items()}

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `fit` for ``links``.

        What was learned from pairs before stays as counts, which are added to those of the new
        pairs (incremental EM of which one part is never visited again: Neal & Hinton 1998). The old
        pairs are not looked at again. New words are welcome.
        """
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self):
            self._check_settings()
            more = self._continue(pairs, links, self._expected_counts())
            core = more.core_with_past()
            found = self._run(core, more.corpus, self._learner, more.start, 0, {})
            self._keep_fit(more.core, more.corpus, found)
            self._past = more.past
            return self

    def _continue(
        self, data: Any, links: Sequence[Any] | LinkConstraints | None, past: Mapping[str, Array]
    ) -> Continuation:
        """This direction with the words and the lengths of more pairs."""
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        source, target = (
            Vocabulary([*old.words, *(word for word in new if word not in old.numbers)])
            for old, new in zip(self._vocabularies, dictionary.words, strict=True)
        )
        pairs = as_bitext(data, lowercase=self.lowercase, like=(source, target))
        old, before = self._lexicon, self.core_
        core, corpus = self._bind_pairs(pairs, make_constraints(links, pairs), grow=True)
        # what was counted and learned, at the entries of the new lexicon
        rows = np.append(np.arange(old.n_sources), self._lexicon.n_sources)
        entries = self._lexicon.match(rows, old, np.arange(old.n_targets))
        counts, values = np.zeros(len(self._lexicon)), np.zeros(len(self._lexicon))
        counts[entries], values[entries] = past[TABLE], self.raw_params_[TABLE]
        # with room for what is new: as if each row had been seen once more, all entries alike
        lengths = np.diff(self._lexicon.indptr)
        often = np.repeat(row_sums(counts, self._lexicon.indptr), lengths)
        even = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
        table = self._table_constraints.start(
            (values * often + even) / (often + 1.0), self._lexicon.indptr
        )
        params, others = core.carry_over(before, self.raw_params_, past)
        start = {TABLE: table.astype(self.dtype), **params}
        return Continuation(core, corpus, start, {TABLE: counts, **others})

    # aligning
    def _shards(self, pairs: Any) -> tuple[Bitext, Iterator[BitextShard]]:
        self._require_fit()
        own = getattr(self, "_corpus", None)
        if own is not None and (pairs is None or pairs is own.pairs):
            return own.pairs, iter([own.everything])
        if pairs is None:
            raise DataError("the pairs learned from are gone", "give pairs to align")
        corpus = self._bind_more(self.core_, pairs)
        return corpus.pairs, corpus.chunks()

    def align(self, pairs: Any = None, *, threshold: float | None = None) -> list[list[Link]]:
        """The links (i, j) of each pair: source position and target position, counted from 0.

        ``pairs``      None: the pairs learned from
        ``threshold``  all links that are more probable than this; None: the best alignment
        """
        return self.links(pairs, threshold=threshold)[0].lists()

    def links(
        self, pairs: Any = None, *, threshold: float | None = None, probabilities: bool = False
    ) -> tuple[FlatLinks, FloatArray]:
        """As `align`, in flat arrays, and the links' probabilities if they are wanted."""
        if threshold is None:
            return self._choose(pairs, lambda shard: self._best(shard, probabilities))
        level = check_threshold(threshold)
        return self._choose(
            pairs,
            lambda shard: (select_links(*found, level) for found in self._posterior_blocks(shard)),
        )

    def _best(self, shard: BitextShard, probabilities: bool) -> Iterator[ChosenLinks]:
        posteriors = self._posterior_blocks(shard) if probabilities else None
        for block, links in self._posterior_blocks(shard, best=True):
            chosen = select_links(block, links, HALF)
            yield chosen.with_values(block, None if posteriors is None else next(posteriors)[1])

    def _posterior_blocks(
        self, shard: BitextShard, blocks: Iterable[LinkBlock] | None = None, best: bool = False
    ) -> LinkMatrices:
        """Posteriors; ``best``: 1 for the links of best alignments and 0 for others."""
        how = EStep(threads=self._threads, score_only=True)
        step = ShardEStep(self.core_, self.raw_params_, shard, how)
        for block in blocks or shard.blocks():
            yield block, step.posteriors(block, best)

    def score_samples(self, pairs: Any = None) -> FloatArray:
        """log p(target | source) of each pair; 0 for one with an empty side."""
        text, shards = self._shards(pairs)
        logs = np.zeros(len(text))
        for shard in shards:
            logs[shard.numbers] = self.core_.log_likelihoods(self.raw_params_, shard, self._threads)
        return logs

    def perplexity(self, pairs: Any) -> float:
        """exp of the negative log-likelihood per target word."""
        text, _ = self._shards(pairs)
        full = text.source.lengths > 0
        words = max(float(text.target.lengths[full].sum()), 1.0)
        return float(np.exp(-self.score_samples(text).sum() / words))

    # tables
    @property
    def source_words_(self) -> list[str]:
        """The source words, in the order of the table's rows."""
        return list(self._vocabularies[0].words)

    @property
    def target_words_(self) -> list[str]:
        """The target words, in the order of the table's columns."""
        return list(self._vocabularies[1].words)

    def table(self) -> Any:
        """t(f | e) as a sparse matrix: a row for each source word, the empty word's last."""
        lexicon, values = self._lexicon, np.asarray(self.raw_params_[TABLE], dtype=float)
        shape = (lexicon.n_sources + 1, lexicon.n_targets)
        columns = lexicon.targets.astype(np.int32)
        return sparse.csr_matrix((values, columns, lexicon.indptr), shape)

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """The n most probable translations of a source word; None: what comes from no word."""
        lexicon, (sources, targets) = self._lexicon, self._vocabularies
        row = lexicon.n_sources if word is None else sources.numbers.get(word)
        if row is None:
            raise DataError(f"the word {brief(word)} was never seen", "give a source word")
        cut = slice(int(lexicon.indptr[row]), int(lexicon.indptr[row + 1]))
        values = np.asarray(self.raw_params_[TABLE])[cut]
        best = np.argsort(-values, kind="stable")[:n]
        return [(targets.words[lexicon.targets[cut][k]], float(values[k])) for k in best]

    @property
    def params_(self) -> dict[str, Any]:
        """All tables: "translation" as {source word: {target word: p}}, None the empty word.

        Of a table at its start, rows may sum to less than one: what is left is that of words which
        never occur together with theirs, evenly. Without an empty word there is no row for it.
        """
        lexicon, (sources, targets) = self._lexicon, self._vocabularies
        values = np.asarray(self.raw_params_[TABLE])
        rows = [*sources.words, *([None] if self.null else [])]
        table = {
            word: Translations(
                {
                    targets.words[f]: float(p)
                    for f, p in zip(lexicon.targets[a:b], values[a:b], strict=True)
                },
                targets.numbers,
            )
            for word, a, b in zip(rows, lexicon.indptr, lexicon.indptr[1:], strict=False)
        }
        others = {name: np.array(value) for name, value in self.raw_params_.items()}
        return {**others, TABLE: table}

    # files
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        arrays = self._pack_arrays(self._expected_counts())
        return arrays, [list(side.words) for side in self._vocabularies]

    def _pack_arrays(self, past: Mapping[str, Array]) -> dict[str, Array]:
        """All that a file holds of this direction; ``past``: its expected counts."""
        return {
            **{store.TABLE + name: np.asarray(t) for name, t in self.raw_params_.items()},
            **{PAST + name: counts for name, counts in past.items()},
            "lexicon.indptr": self._lexicon.indptr,
            "lexicon.targets": self._lexicon.targets.astype(np.int32),
            "sizes": np.stack(self.core_.sizes),
            "often": self._target_counts,
        }

    def _unpack(self, stored: store.Stored, words: Vocabularies) -> None:
        def integers(name: str, shape: tuple[int | None, ...]) -> IntArray:
            if stored.arrays[name].dtype.kind not in "iu":
                raise StoreError(f"{name} are not whole numbers", AGAIN)
            return numbers(stored, name, shape).astype(np.int64)

        self._check_settings()
        self._vocabularies = words
        n_sources, n_targets = (len(side.words) for side in words)
        # the lexicon
        indptr = integers("lexicon.indptr", (n_sources + 2,))
        targets = integers("lexicon.targets", (None,))
        if indptr[0] != 0 or indptr[-1] != len(targets) or (np.diff(indptr) < 0).any():
            raise StoreError("the rows of the lexicon do not fit together", AGAIN)
        if len(targets) and (targets.min() < 0 or targets.max() >= n_targets):
            raise StoreError("the lexicon has numbers of words that do not exist", AGAIN)
        rises = np.diff(targets) > 0
        borders = indptr[1:-1]
        rises[borders[(borders > 0) & (borders < len(targets))] - 1] = True
        if not rises.all():
            raise StoreError("the lexicon is not sorted", AGAIN)
        self._lexicon = PairLexicon(indptr, narrow(targets, n_targets), n_targets)
        self._target_counts = integers("often", (n_targets,))
        if self._target_counts.min(initial=0) < 0:
            raise StoreError("counts of words are negative", AGAIN)
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        self._table_constraints = dictionary.constrain(
            words, self._lexicon, self.dictionary_strength
        )
        # lengths of sentences: looked at before anything of the size that they claim is made
        l, m = sizes = integers("sizes", (2, None))
        good = sizes.shape[1] > 0 and sizes.min() > 0 and sizes.max() < 1 << 31
        if good and PAST + PLACES in stored.arrays:
            good = stored.arrays[PAST + PLACES].size == int(np.sum((l + 1.0) * m))
        if good and PAST + JUMPS in stored.arrays:
            good = stored.arrays[PAST + JUMPS].size > int(np.sum(np.unique(l) + 1))
        if not good:
            raise StoreError("the lengths of sentences make no sense", AGAIN)
        self.core_ = self._make_core(self._make_table(), (l, m))
        # parameters, and expected counts of all pairs seen so far
        tables, past = {}, {}
        for name, family in self.core_.families.items():
            given = stored.arrays[store.TABLE + name]
            table = numbers(stored, store.TABLE + name, family.param_shape)
            if name == JUMPS and not table.sum() >= MIN_ROW:
                raise StoreError("the weights of jumps are all zeros, or next to nothing", AGAIN)
            tables[name] = given if name == TABLE and given.dtype == np.float32 else table
            past[name] = numbers(stored, PAST + name, family.zeros().shape, MAX_COUNT)
        proper = check_start(self.core_.families, tables)
        for name, table in tables.items():
            if not np.allclose(proper[name], table, 1e-6, 1e-9):
                raise StoreError(f"rows of table {name!r} add up to more than one", AGAIN)
            tables[name] = table.astype(proper[name].dtype, copy=False)
        if any(counts.min(initial=0.0) < 0.0 for counts in past.values()):
            raise StoreError("counts are negative", AGAIN)
        self.raw_params_, self._corpus, self._past = tables, None, past


@dataclass(kw_only=True, eq=False, repr=False)
class IBM1(DirectionalAligner):
    """IBM Model 1: every source word is as likely as any other to be a target word's origin.

    p(f | e) = Π_j 1/(l + 1) Σ_i t(f_j | e_i) (Brown, Della Pietra, Della Pietra & Mercer 1993).
    Its likelihood is concave: EM finds the best table from wherever it begins.

    ``null``                 target words may also come from the empty word
    ``smoothing``            added to the count of every pair of words that occur together (for
                             learners that need a prior, the Dirichlet prior itself)
    ``stem``                 the number of letters of a stem: words of one stem lend each other
                             counts, so that rare words are known by their relatives
    ``stem_strength``        how many counts each source word is lent
    ``dictionary``           {"house": "maison"}: all that "house" may become. One translation has
                             probability 1; with several, learning weighs them, unless their weights
                             are given: {"house": {"maison": 0.8, "chambre": 0.2}}
    ``dictionary_strength``  pseudo-counts for each entry of the dictionary instead: other
                             translations stay possible
    ``lowercase``            all words in lower case
    ``dtype``                numbers of 64 bits, or of 32: half the memory
    ``init``                 "uniform", "random", or tables as ``params_`` shows them
    ``learner``              how to learn; None: five steps of EM
    ``engine``               where to compute; None: on all processors of this machine
    ``random_state``         seed of all random numbers

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = IBM1(null=False).fit(pairs)
    >>> model.align([("the book", "das buch")])
    [[(0, 0), (1, 1)]]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return IBM1Core("IBM1", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2(IBM2Parameters, DirectionalAligner):
    """IBM Model 2: positions have a table d(i | j, l, m) of their own (Brown et al. 1993).

    p(f | e) = Π_j Σ_i d(i | j, l, m) t(f_j | e_i)

    ``warm_up``  the number of steps of Model 1 to begin with: they are in ``trace_.warm_up``

    For the other parameters see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> IBM2(null=False).fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return IBM2Core("IBM2", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class Diagonal(DiagonalParameters, DirectionalAligner):
    """Model 2 with one number for all positions: how near they are to the diagonal.

    d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the tension λ is learned (Dyer, Chahuneau & Smith 2013, *A
    simple, fast, and effective reparameterization of IBM Model 2*).

    ``p_null``   the probability that a target word comes from the empty word
    ``tension``  the λ to begin with
    ``warm_up``  the number of steps of Model 1 to begin with

    For the other parameters see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Diagonal().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return DiagonalCore("Diagonal", table, self.null, sizes, self.p_null)

    def _uniform_start(self, core: AlignmentCore) -> dict[str, Array]:
        return {**super()._uniform_start(core), PLACES: np.array([float(self.tension)])}


@dataclass(kw_only=True, eq=False, repr=False)
class HMMAligner(HMMAlignerParameters, DirectionalAligner):
    """The hidden Markov model: a position depends on the one before it by the width of the jump.

    p(f | e) = Σ_a Π_j p(a_j | a_{j−1}, l) t(f_j | e_{a_j}) (Vogel, Ney & Tillmann 1996), with the
    empty word as Och & Ney (2003) have it.

    ``p_null``    the probability that a target word comes from the empty word
    ``max_jump``  wider jumps are all as likely as one of this width
    ``warm_up``   the number of steps of Model 1 to begin with: they are in ``trace_.warm_up``

    For the other parameters see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = HMMAligner().fit(pairs)
    >>> model.align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    >>> [len(run) - 1 for run in model.trace_.warm_up]  # the steps of Model 1
    [5]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return HMMAlignmentCore("HMMAligner", table, self.null, self.p_null, self.max_jump, sizes)


# Both directions at once

METHODS = (*MEANS, "forward", "backward", *get_args(LinkMethod))
"""Ways to choose links; but for `MEANS`, they symmetrise best alignments."""

MODELS: dict[str, type[DirectionalAligner]] = {
    "ibm1": IBM1,
    "ibm2": IBM2,
    "diagonal": Diagonal,
    "hmm": HMMAligner,
}


class BidirectionalAligner(BaseAligner):
    """An aligner of both directions.

    After `fit`: ``forward_`` and ``backward_``, the aligners of one direction, and what these have.
    """

    default_learner: ClassVar[Learner] = AgreementCore.default_learner
    agree: bool
    """Whether the directions learn from each other."""
    threshold: float
    dictionary: Any
    _usual_method: str = "product"
    """How links are chosen if nothing is said."""
    forward_: DirectionalAligner
    backward_: DirectionalAligner
    _corpus: BidirectionalCorpus | None

    @property
    @abstractmethod
    def _name(self) -> str:
        """What signatures call it."""

    @abstractmethod
    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        """A direction's own estimator."""

    @abstractmethod
    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        """Learn from more pairs."""

    @property
    def _directions(self) -> tuple[DirectionalAligner, DirectionalAligner]:
        return self.forward_, self.backward_

    # learning
    def _make_directions(self) -> tuple[DirectionalAligner, DirectionalAligner]:
        """Both directions' own estimators; a dictionary is read either way."""
        if self.dictionary is None:
            return self._make_direction(None), self._make_direction(None)
        backward = Dictionary.of(self.dictionary).reversed()
        return self._make_direction(self.dictionary), self._make_direction(backward)

    def _bind(
        self, data: Any, links: Sequence[Any] | None = None
    ) -> tuple[AgreementCore, BidirectionalCorpus]:
        self._check_settings()
        self.forward_, self.backward_ = self._make_directions()
        forward, there = self.forward_._bind(data, links)
        constraints = there.constraints and there.constraints.reversed()
        backward, back = self.backward_._bind_pairs(there.pairs.flipped(), constraints)
        core = AgreementCore(self._name, forward, backward, self.agree)
        return core, BidirectionalCorpus(there, back)

    def _bind_more(self, core: AgreementCore, data: Any) -> BidirectionalCorpus:
        there = self.forward_._bind_more(core.forward, data)
        back = self.backward_._bind_more(core.backward, there.pairs.flipped())
        return BidirectionalCorpus(there, back)

    def _uniform_start(self, core: AgreementCore) -> dict[str, Array]:
        """All translations of a word as likely as each other, in both directions."""
        forward = self.forward_._uniform_start(core.forward)
        return join_directions([forward, self.backward_._uniform_start(core.backward)])

    def _warm_up_model(self, corpus: BidirectionalCorpus, agree: bool, steps: int) -> AgreementCore:
        """Model 1 in both directions, for this number of steps."""
        forward = self.forward_._model1(corpus.forward, steps)
        backward = self.backward_._model1(corpus.backward, steps)
        return AgreementCore("warm-up", forward, backward, agree, steps)

    def _keep_fit(self, core: AgreementCore, corpus: BidirectionalCorpus, found: Fit) -> None:
        super()._keep_fit(core, corpus, found)
        cores, corpora = (core.forward, core.backward), (corpus.forward, corpus.backward)
        each = zip(self._directions, cores, corpora, split_directions(found.params), strict=True)
        for own, side, pairs, params in each:
            own.core_, own.raw_params_, own.signature_ = side, params, found.signature
            own._corpus, own._past = pairs, None
        self._corpus, self.n_iter_ = corpus, found.trace[-1].step

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `IBM1.partial_fit`."""
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self), all_or_nothing(self.forward_), all_or_nothing(self.backward_):
            self._check_settings()
            for own, as_set in zip(self._directions, self._make_directions(), strict=True):
                own.set_params(**as_set.get_params())  # settings may have changed
            forward_past, backward_past = self._expected_counts()
            forward = self.forward_._continue(pairs, links, forward_past)
            there = forward.corpus
            constraints = there.constraints and there.constraints.reversed()
            backward = self.backward_._continue(there.pairs.flipped(), constraints, backward_past)
            core = AgreementCore(self._name, forward.core, backward.core, self.agree)
            corpus = BidirectionalCorpus(there, backward.corpus)
            self._keep_fit(core, corpus, self._learn_more(core, corpus, (forward, backward)))
            self.forward_._past, self.backward_._past = forward.past, backward.past
            return self

    def decompose(self, data: Any, params: Any, at: Any = None, **known: Any) -> Decomposition:
        """Not for both directions at once: ask ``forward_`` or ``backward_``, each for itself.

        Where they agree, links are counted by the product of both posteriors, and what a sampler
        has drawn is no posterior at all: no bound on the likelihood goes with either.
        """
        raise LearnerError(
            f"{type(self).__name__} has two models, of which each has a likelihood of its own",
            "model.forward_.decompose(pairs, model.forward_.params_), and so for backward_",
        )

    def _possible_params(self) -> Params:
        """Parameters by which all pairs learned from are possible."""
        return self.raw_params_

    def _expected_counts(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Expected counts of all pairs that either direction has seen, by family."""
        if self._corpus is None:
            return self.forward_._expected_counts(), self.backward_._expected_counts()
        (shard,) = self._corpus.shards()
        counts = self.core_.expect(self._possible_params(), shard, EStep()).counts
        forward, backward = split_directions(counts)
        return self.forward_._add_past(forward), self.backward_._add_past(backward)

    # tables
    @property
    def source_words_(self) -> list[str]:
        """The source words."""
        return self.forward_.source_words_

    @property
    def target_words_(self) -> list[str]:
        """The target words."""
        return self.forward_.target_words_

    def table(self) -> Any:
        """t(target word | source word), as `IBM1.table` has it; see ``backward_`` for the other."""
        return self.forward_.table()

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """The n most probable translations of a source word; None: what comes from no word."""
        return self.forward_.translations(word, n)

    # aligning
    def _shards(self, pairs: Any) -> tuple[Bitext, Iterator[BidirectionalShard]]:
        self._require_fit()
        text, forward = self.forward_._shards(pairs)
        _, backward = self.backward_._shards(self._flip(text))
        return text, map(BidirectionalShard, forward, backward)

    def _flip(self, text: Bitext) -> Bitext | None:
        """The pairs as the backward direction sees them; None: those learned from."""
        own = getattr(self.forward_, "_corpus", None)
        return None if own is not None and text is own.pairs else text.flipped()

    def align(
        self, pairs: Any = None, *, method: str | None = None, threshold: float | None = None
    ) -> list[list[Link]]:
        """The links (i, j) of each pair: source position and target position, counted from 0.

        ``pairs``      None: the pairs learned from
        ``method``     "product": the geometric mean of both directions' posteriors is above the
                       threshold; "soft-union": their arithmetic mean is; "forward", "backward": the
                       best alignment of one direction; "intersection", "union", "grow-diag",
                       "grow-diag-final", "grow-diag-final-and": both of these, symmetrised. None:
                       what is usual for the model, "product" or "soft-union"
        ``threshold``  instead of the model's own
        """
        return self.links(pairs, method=method, threshold=threshold)[0].lists()

    def links(
        self,
        pairs: Any = None,
        *,
        method: str | None = None,
        threshold: float | None = None,
        probabilities: bool = False,
    ) -> tuple[FlatLinks, FloatArray]:
        """As `align`, in flat arrays, and the links' probabilities if they are wanted."""
        by = method or self._usual_method
        if by not in METHODS:
            raise LearnerError(f"method={brief(by)} is unknown", f"choose {', '.join(METHODS)}")
        if threshold is not None and by not in MEANS:
            raise LearnerError(f"a threshold is for {' and '.join(MEANS)}, not for {by}")
        if by not in MEANS:
            return self._choose(pairs, lambda shard: self._best(shard, by, probabilities))
        level = check_threshold(self.threshold if threshold is None else threshold)
        return self._choose(
            pairs,
            lambda shard: (
                select_links(*found, level) for found in self._posterior_blocks(shard, by)
            ),
        )

    def _best(
        self, shard: BidirectionalShard, method: Any, probabilities: bool
    ) -> Iterator[ChosenLinks]:
        """The best alignments of both directions, symmetrised."""
        posteriors = self._posterior_blocks(shard) if probabilities else None
        forward = self.forward_._posterior_blocks(shard.forward, best=True)
        blocks = shard.backward_blocks()
        backward = self.backward_._posterior_blocks(shard.backward, blocks, best=True)
        for (block, there), (other, back) in zip(forward, backward, strict=True):
            links = select_links(block, there, HALF).links
            reverse, _ = select_links(other, back, HALF).links.flipped(np.zeros(0))
            if method == "backward":
                links = reverse
            elif method != "forward":
                links = symmetrise_all(links, reverse, method)
            chosen = ChosenLinks(block.numbers, links, np.zeros(0))
            yield chosen.with_values(block, None if posteriors is None else next(posteriors)[1])

    def _posterior_blocks(
        self, shard: BidirectionalShard, method: str | None = None
    ) -> LinkMatrices:
        """The mean of both directions' posteriors, block by block."""
        geometric = (method or self._usual_method) == "product"
        forward = self.forward_._posterior_blocks(shard.forward)
        backward = self.backward_._posterior_blocks(shard.backward, shard.backward_blocks())
        for (block, links), (other, back) in zip(forward, backward, strict=True):
            given = (PairSizes(*block.sizes, block.offsets, other.offsets), links, back, geometric)
            over_rows(average_directions, block.offsets, self._threads, *given)
            yield block, links

    def score_samples(self, pairs: Any = None) -> FloatArray:
        """log p(target | source) + log p(source | target) of each pair; 0 if a side is empty."""
        text, _ = self._shards(pairs)
        backward = self.backward_.score_samples(self._flip(text))
        return self.forward_.score_samples(text) + backward

    # files
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        each = zip(self._directions, self._expected_counts(), strict=True)
        arrays = join_directions([own._pack_arrays(past) for own, past in each])
        return arrays, [list(side.words) for side in self.forward_._vocabularies]

    def _unpack(self, stored: store.Stored, words: Vocabularies) -> None:
        self._check_settings()
        self.forward_, self.backward_ = self._make_directions()
        forward, backward = split_directions(stored.arrays)
        self.forward_._unpack(replace(stored, arrays=forward), words)
        self.backward_._unpack(replace(stored, arrays=backward), (words[1], words[0]))
        self.forward_.signature_ = self.backward_.signature_ = stored.signature
        self.core_ = AgreementCore(
            self._name, self.forward_.core_, self.backward_.core_, self.agree
        )
        self.raw_params_ = join_directions(own.raw_params_ for own in self._directions)
        self._corpus = None


@dataclass(eq=False, repr=False)
class Aligner(BidirectionalParameters, BidirectionalAligner):
    """Both directions, which learn to agree (Liang, Taskar & Klein 2006): the one to begin with.

    ``model``      "hmm", "diagonal", "ibm2" or "ibm1", for both directions
    ``agree``      False: each direction learns for itself
    ``warm_up``    the number of steps of Model 1 to begin with, in agreement as well: they are in
                   ``trace_.warm_up``
    ``threshold``  links that are more probable than this, by the geometric mean of both directions
    ``settings``   more parameters of the directions' models, such as {"p_null": 0.1}

    For the other parameters see `IBM1`. A dictionary works in both directions.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Aligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    @property
    def _name(self) -> str:
        return f"Aligner({self.model}{', agree' if self.agree else ''})"

    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        kind, more = MODELS[self.model], {} if self.settings is None else self.settings
        if not isinstance(more, Mapping):
            raise LearnerError(f"settings={brief(more)}", 'write {"p_null": 0.2}')
        known = set(kind._get_param_names()) - set(self._get_param_names())
        strange = sorted(str(name) for name in more if name not in known)
        if strange:
            raise LearnerError(
                f"settings: {self.model} has no setting {strange[0]!r} of its own",
                f"choose among {', '.join(sorted(known))}",
            )
        shared = {field.name: getattr(self, field.name) for field in fields(TableParameters)}
        return kind(**{**more, **shared, "dictionary": dictionary, "init": None})

    def _start_values(self, core: AgreementCore, corpus: BidirectionalCorpus, init: Any) -> Any:
        if init is not None:
            starts = [
                self.forward_._start_values(core.forward, corpus.forward, init),
                self.backward_._start_values(core.backward, corpus.backward, init),
            ]
            if any(callable(start) for start in starts):
                raise LearnerError(f"init={init!r} is not known here", "'uniform', or leave it out")
            return join_directions(starts)
        # Model 1 in both directions, in agreement; its first step has nothing to agree on yet
        stages = ((False, min(self.warm_up, 1)), (self.agree, self.warm_up - 1))
        models = [self._warm_up_model(corpus, agree, steps) for agree, steps in stages if steps > 0]
        start = self._uniform_start(core)
        return WarmStart(start, models) if models else start

    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        forward, backward = (each.core_with_past() for each in more)
        with_past = AgreementCore(self._name, forward, backward, self.agree)
        start = join_directions([each.start for each in more])
        return self._run(with_past, corpus, self._learner, start, 0, {})
