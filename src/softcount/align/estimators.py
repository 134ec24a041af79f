"""The aligners of the public interface.

`IBM1`, `IBM2`, `Diagonal` and `HMMAligner` are models of target sentences given source sentences;
`Aligner` combines two of these, one for each direction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, Unpack, get_args

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
    Sizes,
    join_directions,
    split_directions,
)
from softcount.align.data import (
    BidirectionalCorpus,
    BitextCorpus,
    Chunks,
    Dictionary,
    DictionaryConstraints,
    LinkConstraints,
    PairLexicon,
    Vocabularies,
    count_words,
    cumulate,
    make_constraints,
    narrow,
)
from softcount.align.decoding import (
    ChosenLinks,
    LinkMethod,
    check_threshold,
)
from softcount.align.families import Stems, StemTable, WithPast
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
from softcount.core.display import NamedTables
from softcount.core.errors import (
    DataError,
    LearnerError,
    MissingEntry,
    StartError,
    StoreError,
    brief,
)
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.fit import WarmStart, open_session
from softcount.core.folder import resumable
from softcount.core.model import Model, NamingCorpus
from softcount.core.posteriors import Posteriors, gather_rows
from softcount.core.store import AGAIN, numbers
from softcount.core.theory import Decomposition
from softcount.core.tilting import Sites
from softcount.core.types import (
    Array,
    Counts,
    EStep,
    Fit,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
)
from softcount.engines.base import Engine
from softcount.families.base import check_start
from softcount.families.large import LargeTable
from softcount.families.rows import row_sums
from softcount.learners.base import Learner
from softcount.text.bitext import Bitext, as_bitext
from softcount.text.links import FlatLinks, Link, join_links
from softcount.text.vocabulary import Vocabulary

PAST = "past."
"""Prefix of the names, in files, of the expected counts of all pairs seen so far."""

NO_PAIRS = "there is nothing to learn from: every pair has an empty side"

T = TypeVar("T")

PairCorpus = Any  # of one direction or both, with ``pairs``; or `Chunks` of one


class BaseAligner(store.Saveable, Estimator):
    """Base class of directional and bidirectional aligners.

    ``reversed_``  whether source and target of the training pairs were exchanged: a flag for
                   calling programs, saved with the model, that aligners themselves ignore
    """

    reversed_ = False

    # learning
    @resumable
    def fit(  # type: ignore[override]  # known links come with the pairs
        self,
        pairs: Any,
        links: Sequence[Any] | None = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentence pairs, and optionally from known links.

        ``pairs``  a `Bitext`, or anything that `softcount.text.bitext.as_bitext` accepts:
                   "source ||| target" texts, or (source, target) tuples
        ``links``  known links (partial supervision): for each pair None or a list of (i, j). A
                   target word with known links is aligned to one of them; other target words are
                   unconstrained

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(pairs, links)
            return self._learn(core, corpus, init, **options)

    @abstractmethod
    def _bind(self, data: Any, links: Sequence[Any] | None = None) -> tuple[Any, Any]:
        """Build the core and the corpus from training data."""

    def _prior_hint(self) -> str:
        return "give smoothing above 0, for example 0.01"

    # aligning
    @abstractmethod
    def _corpus_of(self, pairs: Any) -> PairCorpus:
        """Return a corpus of pairs to align; None: the training pairs."""

    def _shards(self, pairs: Any) -> tuple[Bitext, Sequence[Any]]:
        """Return pairs to align (None: the training pairs), and their shards."""
        corpus = self._corpus_of(pairs)
        return corpus.pairs, corpus.shards(None, 0)

    def _each(self, function: Callable[..., T], corpus: PairCorpus) -> Iterator[T]:
        """Yield what a function of the core returns for each shard, computed on the engine."""
        if len(corpus):  # otherwise every pair has an empty side
            yield from self._map(function, corpus, params=self._current_params())

    def _current_params(self) -> Params:
        """Return the parameters that pairs are aligned with."""
        return self.raw_params_

    @abstractmethod
    def _selection(
        self, *, threshold: float | None = None, probabilities: bool = False
    ) -> Callable[..., list[ChosenLinks]]:
        """Return the function of the core that predicts the links of a shard."""

    def _links(self, pairs: Any, **options: Any) -> tuple[FlatLinks, FloatArray]:
        parts, values = zip(*self.links_in_parts(pairs, **options), strict=True)
        return join_links(parts), np.concatenate(values)

    def links_in_parts(
        self, pairs: Any = None, **options: Any
    ) -> Iterator[tuple[FlatLinks, FloatArray]]:
        """Predict links like ``links``, and yield those of some pairs after another, in order.

        What has been yielded is not kept, so that there may be more links than fit into memory.

        ``options``  those of ``links``
        """
        select = self._selection(**options)
        corpus = self._corpus_of(pairs)
        done = 0
        for found in self._each(select, corpus):
            last = int(found[-1].numbers[-1]) + 1
            lengths = np.zeros(last - done, np.int64)  # pairs with an empty side have no links
            for part in found:
                lengths[part.numbers - done] = np.diff(part.links.indptr)
            links = join_links(part.links for part in found)
            values = np.concatenate([part.values for part in found])
            yield replace(links, indptr=cumulate(lengths)), values
            done = last
        rest = np.zeros(len(corpus.pairs) - done + 1, np.int64)
        yield FlatLinks(rest, np.zeros(0, np.int32), np.zeros(0, np.int32)), np.zeros(0)

    @abstractmethod
    def _posteriors(self) -> Callable[..., tuple[IntArray, list[FloatArray]]]:
        """Return the function of the core that computes the posteriors of a shard."""

    def posteriors(self, pairs: Any = None) -> list[FloatArray]:
        """Compute p(a_j = i | pair), an (l, m) matrix for each pair.

        What a column lacks to a sum of one is the posterior of the empty word.
        """
        corpus = self._corpus_of(pairs)
        text = corpus.pairs
        sizes = zip(text.source.lengths.tolist(), text.target.lengths.tolist(), strict=True)
        posteriors: list[FloatArray] = [np.zeros(size) for size in sizes]
        for items, matrices in self._each(self._posteriors(), corpus):
            for number, matrix in zip(items.tolist(), matrices, strict=True):
                posteriors[number] = matrix
        return posteriors

    @abstractmethod
    def score_samples(self, pairs: Any = None) -> FloatArray:
        """Compute the log-likelihood of each pair."""

    def score(self, pairs: Any, y: Any = None) -> float:
        """Compute the mean log-likelihood per pair: see `score_samples`."""
        return float(self.score_samples(pairs).mean())

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, words = self._pack()
        return arrays, {"words": words, "turned": self.reversed_}

    def unpack(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        self.signature_ = stored.signature
        self.reversed_ = bool(stored.meta.get("turned", False))
        source, target = (Vocabulary(store.vocabulary(words)) for words in stored.meta["words"])
        self._unpack(stored, (source, target))

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        """Return the arrays and the vocabularies to save."""

    @abstractmethod
    def _unpack(self, stored: store.Stored, words: Vocabularies) -> None:
        """Restore the state that `_pack` returned."""


def _expected_counts(
    core: Model, params: Params, corpus: NamingCorpus, engine: Engine | None
) -> Mapping[str, Counts]:
    """Compute the expected counts of all pairs, by family."""
    with open_session(core, corpus, engine) as session:
        return session.expect(core.expect, params, EStep()).counts


class Continuation(NamedTuple):
    """A fitted directional aligner that is about to learn from more pairs.

    ``core``    the core, extended to the vocabulary and the sentence lengths of all pairs
    ``corpus``  the new pairs
    ``start``   initial parameters: the learned ones, extended to new words and lengths
    ``past``    expected counts of all earlier pairs, by family, in the layout of the new core
    """

    core: AlignmentCore
    corpus: BitextCorpus
    start: dict[str, Array]
    past: dict[str, Array]

    def core_with_past(self) -> AlignmentCore:
        """Return a core whose families add the earlier counts to all new ones."""
        core = copy(self.core)
        core.families = {
            name: WithPast(family, self.past[name]) for name, family in core.families.items()
        }
        return core


class Translations(dict[str, float]):
    """p(target word | a source word), as a mapping.

    Target words that never co-occur with the source word have probability 0 and are not listed;
    looking up a word that is not in the target vocabulary raises an error.

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
        raise MissingEntry(
            f"the word {brief(word)} was never seen", "give a word of the target vocabulary"
        )

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))  # do not copy or pickle the whole vocabulary


class DirectionalAligner(DirectionParameters, BaseAligner):
    """An aligner of one direction: a model of target sentences given source sentences.

    After `fit`: ``source_words_``, ``target_words_``, ``params_``, ``trace_``, ``verdict_``.
    """

    default_learner = AlignmentCore.default_learner
    warm_up: int = 0
    core_: AlignmentCore
    _vocabularies: Vocabularies
    _lexicon: PairLexicon
    _target_counts: IntArray  # (target words,) the frequency of each
    _table_constraints: DictionaryConstraints
    _corpus: BitextCorpus | None
    """The training pairs; None: not kept, as in a loaded model."""
    _past: dict[str, Array] | None
    """Expected counts of all earlier pairs, not in ``_corpus``, by family; None: there are none."""

    @abstractmethod
    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        """Make the core for pairs of these lengths."""

    # binding
    def _bind(
        self, data: Any, links: Sequence[Any] | None = None
    ) -> tuple[AlignmentCore, BitextCorpus]:
        """Build the core and the corpus from training data."""
        self._check_settings()
        like = None
        if self.dictionary is not None:
            like = Dictionary.of(self.dictionary, self.lowercase).words
        pairs = as_bitext(data, lowercase=self.lowercase, like=like)
        return self._bind_pairs(pairs, make_constraints(links, pairs))

    def _bind_pairs(
        self,
        pairs: Bitext,
        constraints: LinkConstraints | None,
        grow: bool = False,
        corpus: BitextCorpus | None = None,
    ) -> tuple[AlignmentCore, BitextCorpus]:
        """Build the core and the corpus of pairs whose vocabulary includes the dictionary.

        ``grow``    also keep the words, entries and lengths that the model already has
        ``corpus``  the corpus, if it has been made; None: make it
        """
        words = Vocabulary(pairs.source.words), Vocabulary(pairs.target.words)
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        sources, targets, _ = dictionary.number_entries(words)
        target_counts = count_words(pairs.target)
        if grow:
            rows = self._lexicon.rows()
            rows[rows == self._lexicon.n_sources] = len(pairs.source.words)  # the empty word's
            sources = np.concatenate([rows, sources])
            targets = np.concatenate([self._lexicon.targets, targets])
            target_counts[: len(self._target_counts)] += self._target_counts
        more = (sources, targets) if len(sources) else None
        if corpus is None:
            corpus = BitextCorpus(pairs, self.null, constraints, more)
        if not len(corpus):
            raise DataError(NO_PAIRS, "give at least one pair with words on both sides")
        l, m = corpus.sizes
        if grow:
            l, m = np.append(self.core_.sizes[0], l), np.append(self.core_.sizes[1], m)
        self._vocabularies, self._lexicon = words, corpus.lexicon
        self._target_counts = target_counts
        self._table_constraints = dictionary.constrain(
            words, self._lexicon, self.dictionary_strength
        )
        return self._make_core(self._make_table(), (l, m)), corpus

    def _sites(self, core: AlignmentCore, corpus: BitextCorpus) -> Sites:
        source = corpus.pairs.source

        def find(word: Any) -> IntArray:
            number = source.words.index(word) if word in source.words else -1
            return np.flatnonzero(source.tokens[: len(source.tokens)] == number)

        return Sites(
            np.asarray(source.indptr),
            np.ones(int(source.indptr[-1])),
            {},
            1,
            find,
            site="source word",
            links=True,
            limit=100.0,
        )

    def _bind_more(self, core: AlignmentCore, data: Any) -> BitextCorpus:
        pairs = as_bitext(data, lowercase=self.lowercase, like=self._vocabularies)
        return BitextCorpus(pairs, self.null, lexicon=self._lexicon)

    def _make_table(self, warm_up: bool = False) -> LargeTable:
        """Make the family of the translation table.

        For learners that maximise, the Dirichlet prior is 1 + smoothing; for the others, which
        sample or are variational, it is the smoothing itself.

        ``warm_up``  for the Model 1 that initialises other models: EM, without stems
        """
        maximises = warm_up or self._maximises
        if not maximises and self.smoothing == 0.0:
            raise LearnerError(
                f"{self._learner} needs a prior above 0", "give smoothing, for example 0.01"
            )
        known, lexicon, prior = self._table_constraints, self._lexicon, self.smoothing + maximises
        alpha = prior if known.counts is None else prior + known.counts
        frozen = None if known.fixed is None else known.fixed[0]
        table = (lexicon.indptr, lexicon.targets, alpha, known.mask, frozen)
        size: dict[str, Any] = {"dtype": self.dtype, "n_outcomes": lexicon.n_targets}
        if warm_up or self.stem is None:
            return LargeTable(*table, **size)
        source, target = (side.words for side in self._vocabularies)
        stem_settings = self.stem, self.stem_strength, self.smoothing
        stems = Stems.of(source, target, self._target_counts, *stem_settings)
        return StemTable(*table, **size, stems=stems)

    def _make_model1(self, corpus: BitextCorpus, max_iter: int) -> IBM1Core:
        """Make an IBM Model 1 of the same pairs, with this number of steps, for initialisation."""
        table, sizes = self._make_table(warm_up=True), corpus.sizes
        return IBM1Core("warm-up", table, self.null, sizes, max_iter)

    # starts
    def _start_values(self, core: AlignmentCore, corpus: BitextCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(self._with_flat_table(init, self._uniform_table()))
        if init is not None and (not isinstance(init, str) or init not in ("uniform", "random")):
            raise LearnerError(
                f"init={brief(init)} is not supported here",
                "give 'uniform', 'random', or tables in the form of params_",
            )
        if init == "random":

            def draw(rng: np.random.Generator) -> Params:
                params = {name: family.random(rng) for name, family in core.families.items()}
                table = self._table_constraints.start(params[TABLE], self._lexicon.indptr)
                return {**params, TABLE: table}

            return draw
        start = self._uniform_start(core)
        if init is None and self.warm_up:
            return WarmStart(start, [self._make_model1(corpus, self.warm_up)])
        return start

    def _uniform_start(self, core: AlignmentCore) -> dict[str, Array]:
        """Return the default initial parameters."""
        others = (item for item in core.families.items() if item[0] != TABLE)
        return {
            TABLE: self._uniform_table(),
            **{name: family.uniform() for name, family in others},
        }

    def _uniform_table(self) -> FloatArray:
        """Return a table of equal probabilities: one number, broadcast, which takes no memory."""
        lexicon, kind = self._lexicon, np.dtype(self.dtype).type
        # rounded down, so that no row sums to more than one
        p = np.nextafter(kind(1.0 / max(lexicon.n_targets, 1)), kind(0))
        return self._table_constraints.start(np.broadcast_to(p, len(lexicon)), lexicon.indptr)

    def _read_params(self, core: AlignmentCore, corpus: BitextCorpus, given: Any) -> Params:
        """Convert tables to arrays; translations may be {source word: {target word: p}}."""
        return core.params(self._with_flat_table(given, np.zeros(len(self._lexicon))))

    def _with_flat_table(
        self, given: Mapping[str, Any], otherwise: FloatArray
    ) -> Mapping[str, Any]:
        """Convert tables in the form of ``params_`` to arrays; arrays are returned unchanged.

        ``otherwise``  (entries,) the values of source words that are left out
        """
        if not isinstance(given.get(TABLE), Mapping):
            return given
        lexicon, table = self._lexicon, np.array(otherwise)
        sources, targets = (side.numbers for side in self._vocabularies)
        for word, row in given[TABLE].items():
            number = lexicon.n_sources if word is None else sources.get(word)
            if number is None or any(target not in targets for target in row):
                raise StartError(
                    f"the start of {TABLE!r} has a word that was never seen, for {brief(word)}",
                    "give words that occur in the pairs, as in params_",
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

    # step by step
    def e_step(
        self, data: Any = None, params: Any = None, *, over: str = "source", **known: Any
    ) -> Posteriors:
        """Do the E-step by itself: p(a_j = i | pair), a row per target position.

        ``data``    pairs; None: the training pairs
        ``over``    "source": each target word spreads its count over the source words of its pair.
                    This is the E-step of the model, of IBM Model 1 for one. "target": each source
                    word spreads over the target words, t(f_j | e_i) / Σ_x t(f_x | e_i), as some
                    courses teach it; `m_step` takes that, too, but it is not Model 1, and does not
                    maximise its likelihood

        ``item(n)`` of the result has the source words of pair n as its columns. For the rest see
        `softcount.core.estimator.Estimator.e_step`.
        """
        if over not in ("source", "target"):
            raise LearnerError(f"over={brief(over)} is unknown", "choose 'source' or 'target'")
        found = super().e_step(data, params, **known)
        if over == "source":
            return found
        _, core, corpus = self._bind_again(data, known)
        how, lay_out = self._e_options(), partial(core.lay_out, over_targets=True)
        shards = corpus.shards(None, 0)
        rows, _ = gather_rows([lay_out(found.params, shard, how) for shard in shards])
        return found.replaced(rows.values)

    def _bind_again(self, data: Any, known: Mapping[str, Any]) -> tuple[Self, Any, Any]:
        if data is None:
            return self, self.core_, self._corpus_of(None)
        return super()._bind_again(data, known)

    def _name_hidden(
        self, core: AlignmentCore, corpus: BitextCorpus, rows: PosteriorRows
    ) -> dict[str, Any]:
        text, null = corpus.pairs, ["NULL"] if self.null else []
        targets = [text.target.sentence(n) for n in range(len(text))]
        places = zip(rows.items.tolist(), rows.keys["position"].tolist(), strict=True)
        index = {
            "pair": rows.items.tolist(),
            "position": rows.keys["position"].tolist(),
            "word": [targets[n][j] for n, j in places],
        }

        def names_in(pair: int) -> list[str]:
            return [*null, *text.source.sentence(pair)]

        columns = (*null, *range(rows.values.shape[1] - len(null)))
        independent = not isinstance(core, HMMAlignmentCore)
        return {
            "columns": columns,
            "index": index,
            "of": "source position",
            "names_in": names_in,
            "independent": independent,
        }

    # learning from more pairs
    def _after_fit(self, corpus: BitextCorpus) -> None:
        self._corpus, self._past = corpus, None
        self.n_iter_ = len(self.fit_.trace) - 1

    def _expected_counts(self) -> dict[str, Array]:
        """Compute the expected counts of all pairs seen so far, by family."""
        if self._corpus is None:
            assert self._past is not None
            return self._past
        counts = _expected_counts(self.core_, self.raw_params_, self._corpus, self.engine)
        return self._add_past(counts)

    def _add_past(self, counts: Mapping[str, Any]) -> dict[str, Array]:
        """Add the counts of all earlier pairs to those of the current training pairs."""
        current = {name: np.asarray(value, dtype=np.float64) for name, value in counts.items()}
        if self._past is None:
            return current
        return {name: self._past[name] + value for name, value in current.items()}

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `fit` for ``links``.

        The expected counts of earlier pairs are kept and added to those of the new pairs:
        incremental EM in which one part of the data is never revisited (Neal & Hinton 1998). The
        earlier pairs themselves are not needed. The new pairs may contain new words.
        """
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self):
            self._check_settings()
            more = self._continue(pairs, links, self._expected_counts())
            core = more.core_with_past()
            result = self._run(core, more.corpus, self._learner, more.start, 0, {})
            self._keep_fit(more.core, more.corpus, result)
            self._past = more.past
            return self

    def _continue(
        self, data: Any, links: Sequence[Any] | LinkConstraints | None, past: Mapping[str, Array]
    ) -> Continuation:
        """Extend this direction to the vocabulary and the sentence lengths of more pairs."""
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        source, target = (
            Vocabulary([*old.words, *(word for word in new if word not in old.numbers)])
            for old, new in zip(self._vocabularies, dictionary.words, strict=True)
        )
        pairs = as_bitext(data, lowercase=self.lowercase, like=(source, target))
        old, before = self._lexicon, self.core_
        core, corpus = self._bind_pairs(pairs, make_constraints(links, pairs), grow=True)
        # move the earlier counts and parameters to the entries of the new lexicon
        rows = np.append(np.arange(old.n_sources), self._lexicon.n_sources)
        entries = self._lexicon.match(rows, old, np.arange(old.n_targets))
        counts, values = np.zeros(len(self._lexicon)), np.zeros(len(self._lexicon))
        counts[entries], values[entries] = past[TABLE], self.raw_params_[TABLE]
        # leave probability for new entries: add one count to each row, spread uniformly over it
        lengths = np.diff(self._lexicon.indptr)
        row_counts = np.repeat(row_sums(counts, self._lexicon.indptr), lengths)
        uniform = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
        table = self._table_constraints.start(
            (values * row_counts + uniform) / (row_counts + 1.0), self._lexicon.indptr
        )
        params, others = core.carry_over(before, self.raw_params_, past)
        start = {TABLE: table.astype(self.dtype), **params}
        return Continuation(core, corpus, start, {TABLE: counts, **others})

    # aligning
    def _corpus_of(self, pairs: Any) -> PairCorpus:
        self._require_fit()
        training = getattr(self, "_corpus", None)
        if training is not None and (pairs is None or pairs is training.pairs):
            return training
        if pairs is None:
            raise DataError("the training pairs are not saved with a model", "give pairs to align")
        return Chunks(self._bind_more(self.core_, pairs))

    def align(self, pairs: Any = None, *, threshold: float | None = None) -> list[list[Link]]:
        """Predict the links (i, j) of each pair: source and target position, counted from 0.

        ``pairs``      None: the training pairs
        ``threshold``  predict all links that are more probable than this; None: predict the most
                       probable alignment (Viterbi)
        """
        return self.links(pairs, threshold=threshold)[0].lists()

    def links(
        self, pairs: Any = None, *, threshold: float | None = None, probabilities: bool = False
    ) -> tuple[FlatLinks, FloatArray]:
        """Predict links like `align`, in flat arrays, with their probabilities if requested."""
        return self._links(pairs, threshold=threshold, probabilities=probabilities)

    def _selection(
        self, *, threshold: float | None = None, probabilities: bool = False
    ) -> Callable[..., list[ChosenLinks]]:
        level = None if threshold is None else check_threshold(threshold)
        self._require_fit()
        return partial(self.core_.select, level=level, probabilities=probabilities)

    def _posteriors(self) -> Callable[..., tuple[IntArray, list[FloatArray]]]:
        return self.core_.posteriors

    def score_samples(self, pairs: Any = None) -> FloatArray:
        """Compute log p(target | source) of each pair; 0 if either side is empty."""
        corpus = self._corpus_of(pairs)
        logs = np.zeros(len(corpus.pairs))
        for items, values in self._each(self.core_.log_likelihoods, corpus):
            logs[items] = values
        return logs

    def perplexity(self, pairs: Any, per: str = "word") -> float:
        """Compute the perplexity: exp(−log-likelihood / number of target words).

        ``per``  "word": as above. "text": 2^(−Σ log₂ p(f | e)), as some textbooks print it: of all
                 pairs together, which grows with their number, and is infinite beyond 10^308
        """
        text = self._corpus_of(pairs).pairs
        if per not in ("word", "text"):
            raise LearnerError(f"per={brief(per)} is unknown", "choose 'word' or 'text'")
        if per == "text":
            with np.errstate(over="ignore"):
                return float(np.exp2(-self.score_samples(text).sum() / np.log(2.0)))
        has_source = text.source.lengths > 0
        n_words = max(float(text.target.lengths[has_source].sum()), 1.0)
        return float(np.exp(-self.score_samples(text).sum() / n_words))

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
        """Return t(f | e) as a sparse matrix: a row per source word, the empty word's last."""
        lexicon, values = self._lexicon, np.asarray(self.raw_params_[TABLE], dtype=float)
        shape = (lexicon.n_sources + 1, lexicon.n_targets)
        columns = lexicon.targets.astype(np.int32)
        return sparse.csr_matrix((values, columns, lexicon.indptr), shape)

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """Return the n most probable translations of a source word; None: of the empty word."""
        lexicon, (sources, targets) = self._lexicon, self._vocabularies
        row = lexicon.n_sources if word is None else sources.numbers.get(word)
        if row is None:
            raise DataError(
                f"the word {brief(word)} was never seen", "give a word of the source vocabulary"
            )
        cut = slice(int(lexicon.indptr[row]), int(lexicon.indptr[row + 1]))
        values = np.asarray(self.raw_params_[TABLE])[cut]
        best = np.argsort(-values, kind="stable")[:n]
        return [(targets.words[lexicon.targets[cut][k]], float(values[k])) for k in best]

    @property
    def params_(self) -> dict[str, Any]:
        """All tables; "translation" is {source word: {target word: p}}, None is the empty word.

        The others are arrays that print with names: d(i | j, l, m) of Model 2, the weights of jumps
        of the chain.

        In an initial table rows may sum to less than one: the remainder is spread evenly over the
        target words that never co-occur with the row's word. With ``null=False`` there is no row
        for the empty word.
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
        others = {n: np.array(value) for n, value in self.raw_params_.items() if n != TABLE}
        return NamedTables({TABLE: table, **others}, self.core_.name_params())

    # files
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        arrays = self._pack_arrays(self._expected_counts())
        return arrays, [list(side.words) for side in self._vocabularies]

    def _pack_arrays(self, past: Mapping[str, Array]) -> dict[str, Array]:
        """Return the arrays of this direction to save; ``past``: its expected counts."""
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
                raise StoreError(f"{name!r} does not hold integers", AGAIN)
            return numbers(stored, name, shape).astype(np.int64)

        self._check_settings()
        self._vocabularies = words
        n_sources, n_targets = (len(side.words) for side in words)
        # the lexicon
        indptr = integers("lexicon.indptr", (n_sources + 2,))
        targets = integers("lexicon.targets", (None,))
        if indptr[0] != 0 or indptr[-1] != len(targets) or (np.diff(indptr) < 0).any():
            raise StoreError("the rows of the lexicon are inconsistent", AGAIN)
        if len(targets) and (targets.min() < 0 or targets.max() >= n_targets):
            raise StoreError("the lexicon refers to words that do not exist", AGAIN)
        rises = np.diff(targets) > 0
        borders = indptr[1:-1]
        rises[borders[(borders > 0) & (borders < len(targets))] - 1] = True
        if not rises.all():
            raise StoreError("the lexicon is not sorted", AGAIN)
        self._lexicon = PairLexicon(indptr, narrow(targets, n_targets), n_targets)
        self._target_counts = integers("often", (n_targets,))
        if self._target_counts.min(initial=0) < 0:
            raise StoreError("word frequencies are negative", AGAIN)
        dictionary = Dictionary.of(self.dictionary, self.lowercase)
        self._table_constraints = dictionary.constrain(
            words, self._lexicon, self.dictionary_strength
        )
        # sentence lengths: checked before any array of the size that they claim is allocated
        l, m = sizes = integers("sizes", (2, None))
        valid = sizes.shape[1] > 0 and sizes.min() > 0 and sizes.max() < 1 << 31
        if valid and PAST + PLACES in stored.arrays:
            valid = stored.arrays[PAST + PLACES].size == int(np.sum((l + 1.0) * m))
        if valid and PAST + JUMPS in stored.arrays:
            valid = stored.arrays[PAST + JUMPS].size > int(np.sum(np.unique(l) + 1))
        if not valid:
            raise StoreError("the sentence lengths are invalid", AGAIN)
        self.core_ = self._make_core(self._make_table(), (l, m))
        # parameters, and expected counts of all pairs seen so far
        tables, past = {}, {}
        for name, family in self.core_.families.items():
            saved = stored.arrays[store.TABLE + name]
            table = numbers(stored, store.TABLE + name, family.param_shape)
            if name == JUMPS and not table.sum() >= MIN_ROW:
                raise StoreError("the jump weights are all zero, or too small", AGAIN)
            tables[name] = saved if name == TABLE and saved.dtype == np.float32 else table
            past[name] = numbers(stored, PAST + name, family.zeros().shape, MAX_COUNT)
        proper = check_start(self.core_.families, tables)
        for name, table in tables.items():
            if not np.allclose(proper[name], table, 1e-6, 1e-9):
                raise StoreError(f"rows of table {name!r} sum to more than one", AGAIN)
            tables[name] = table.astype(proper[name].dtype, copy=False)
        if any(counts.min(initial=0.0) < 0.0 for counts in past.values()):
            raise StoreError("counts are negative", AGAIN)
        self.raw_params_, self._corpus, self._past = tables, None, past


@dataclass(kw_only=True, eq=False, repr=False)
class IBM1(DirectionalAligner):
    """IBM Model 1: every source position is equally likely for every target word.

    p(f | e) = Π_j 1/(l + 1) Σ_i t(f_j | e_i) (Brown, Della Pietra, Della Pietra & Mercer 1993).
    The log-likelihood is concave: EM finds a global maximum from any initial table.

    ``null``                 whether target words can be aligned to the empty word (NULL)
    ``smoothing``            added to the count of every pair of words that co-occur (for learners
                             that need a prior, the Dirichlet prior itself)
    ``stem``                 the length of a stem in letters: words with the same stem share
                             counts, which helps rare words; None: no sharing
    ``stem_strength``        the number of pseudo-counts each source word gets from its stem
    ``dictionary``           {"house": "maison"}: the only permitted translations of "house". A
                             single translation has probability 1; the probabilities of several
                             are learned, unless given: {"house": {"maison": 0.8, "chambre": 0.2}}
    ``dictionary_strength``  use the dictionary as a soft constraint instead: add this pseudo-count
                             to each entry, and allow other translations
    ``lowercase``            lower-case all words
    ``dtype``                "float64", or "float32" for half the memory
    ``init``                 "uniform", "random", or tables in the form of ``params_``
    ``learner``              the learning algorithm; None: five steps of EM
    ``engine``               where to compute; None: on all processors of this machine
    ``random_state``         the random seed

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> model = IBM1(null=False).fit(pairs)
    >>> model.align([("the book", "das buch")])
    [[(0, 0), (1, 1)]]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return IBM1Core("IBM1", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class IBM2(IBM2Parameters, DirectionalAligner):
    """IBM Model 2: a table d(i | j, l, m) of alignment probabilities (Brown et al. 1993).

    p(f | e) = Π_j Σ_i d(i | j, l, m) t(f_j | e_i)

    ``warm_up``  the number of initial Model 1 steps, recorded in ``trace_.warm_up``

    For the other parameters see `IBM1`.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> IBM2(null=False).fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    def _make_core(self, table: LargeTable, sizes: Sizes) -> AlignmentCore:
        return IBM2Core("IBM2", table, self.null, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class Diagonal(DiagonalParameters, DirectionalAligner):
    """Model 2 with a single positional parameter: how strongly links favour the diagonal.

    d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the tension λ is learned (Dyer, Chahuneau & Smith 2013, *A
    simple, fast, and effective reparameterization of IBM Model 2*).

    ``p_null``   the probability that a target word is aligned to the empty word
    ``tension``  the initial λ
    ``warm_up``  the number of initial Model 1 steps

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
    """The HMM alignment model: each position depends on the previous one by the jump width.

    p(f | e) = Σ_a Π_j p(a_j | a_{j−1}, l) t(f_j | e_{a_j}) (Vogel, Ney & Tillmann 1996), with the
    empty word of Och & Ney (2003).

    ``p_null``    the probability that a target word is aligned to the empty word
    ``max_jump``  all wider jumps are as likely as one of this width
    ``warm_up``   the number of initial Model 1 steps, recorded in ``trace_.warm_up``

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
"""Ways to predict links; all but `MEANS` are based on the best alignments."""

MODELS: dict[str, type[DirectionalAligner]] = {
    "ibm1": IBM1,
    "ibm2": IBM2,
    "diagonal": Diagonal,
    "hmm": HMMAligner,
}


class BidirectionalAligner(BaseAligner):
    """Base class of aligners of both directions.

    After `fit`: ``forward_`` and ``backward_``, the fitted directional aligners.
    """

    default_learner: ClassVar[Learner] = AgreementCore.default_learner
    agree: bool
    """Whether the directions are trained to agree."""
    threshold: float
    dictionary: Any
    _default_method: str = "product"
    """The default of ``method`` in `align`."""
    forward_: DirectionalAligner
    backward_: DirectionalAligner
    _corpus: BidirectionalCorpus | None

    @property
    @abstractmethod
    def _name(self) -> str:
        """The model's name in signatures."""

    @abstractmethod
    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        """Make the estimator of one direction."""

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
        """Make the estimators of both directions; the backward one gets the dictionary reversed."""
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
        turned = there.flipped(constraints)
        backward, back = self.backward_._bind_pairs(turned.pairs, constraints, corpus=turned)
        core = AgreementCore(self._name, forward, backward, self.agree)
        return core, BidirectionalCorpus(there, back, mirrored=True)

    def _bind_more(self, core: AgreementCore, data: Any) -> BidirectionalCorpus:
        there = self.forward_._bind_more(core.forward, data)
        back = self.backward_._bind_more(core.backward, there.pairs.flipped())
        return BidirectionalCorpus(there, back)

    def _uniform_start(self, core: AgreementCore) -> dict[str, Array]:
        """Return uniform initial parameters of both directions."""
        forward = self.forward_._uniform_start(core.forward)
        return join_directions([forward, self.backward_._uniform_start(core.backward)])

    def _warm_up_model(self, corpus: BidirectionalCorpus, agree: bool, steps: int) -> AgreementCore:
        """Make a Model 1 of both directions, with this number of steps, for initialisation."""
        forward = self.forward_._make_model1(corpus.forward, steps)
        backward = self.backward_._make_model1(corpus.backward, steps)
        return AgreementCore("warm-up", forward, backward, agree, steps)

    def _keep_fit(self, core: AgreementCore, corpus: BidirectionalCorpus, found: Fit) -> None:
        super()._keep_fit(core, corpus, found)
        cores, corpora = (core.forward, core.backward), (corpus.forward, corpus.backward)
        parts = zip(self._directions, cores, corpora, split_directions(found.params), strict=True)
        for direction, side, pairs, params in parts:
            direction.core_, direction.raw_params_ = side, params
            direction.signature_ = found.signature
            direction._corpus, direction._past = pairs, None
        self._corpus, self.n_iter_ = corpus, found.trace[-1].step

    def partial_fit(self, pairs: Any, links: Sequence[Any] | None = None) -> Self:
        """Learn from more pairs; see `IBM1.partial_fit`."""
        if not hasattr(self, "raw_params_"):
            return self.fit(pairs, links=links)
        with all_or_nothing(self), all_or_nothing(self.forward_), all_or_nothing(self.backward_):
            self._check_settings()
            for direction, fresh in zip(self._directions, self._make_directions(), strict=True):
                direction.set_params(**fresh.get_params())  # settings may have changed
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
        """Raise: only ``forward_`` and ``backward_`` can be decomposed, separately.

        With agreement, links are counted by the product of both posteriors, and a sampler's draws
        are no posterior at all: neither has a corresponding bound on the likelihood.
        """
        raise LearnerError(
            f"{type(self).__name__} has two models, each with its own likelihood",
            "use model.forward_.decompose(pairs, model.forward_.params_), or the same of backward_",
        )

    def _require_layout(self, core: Any) -> None:
        self.e_step()

    def e_step(self, data: Any = None, params: Any = None, **known: Any) -> Posteriors:
        """Raise: use ``forward_.e_step`` and ``backward_.e_step``, for each direction its own."""
        raise LearnerError(
            f"{type(self).__name__} has two models, each with its own posteriors",
            "use model.forward_.e_step(pairs) or model.backward_.e_step(…); posteriors(pairs) has "
            "their means",
        )

    def _possible_params(self) -> Params:
        """Return parameters under which all training pairs have non-zero probability."""
        return self.raw_params_

    def _expected_counts(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Compute the expected counts of all pairs seen so far, by family, for each direction."""
        if self._corpus is None:
            return self.forward_._expected_counts(), self.backward_._expected_counts()
        counts = _expected_counts(self.core_, self._possible_params(), self._corpus, self.engine)
        forward, backward = split_directions(counts)
        return self.forward_._add_past(forward), self.backward_._add_past(backward)

    # tables
    @property
    def params_(self) -> dict[str, Any]:
        """All tables of both directions: "forward.translation", "backward.translation", …"""
        self._require_fit()
        return NamedTables(join_directions(side.params_ for side in self._directions))

    @property
    def source_words_(self) -> list[str]:
        """The source words."""
        return self.forward_.source_words_

    @property
    def target_words_(self) -> list[str]:
        """The target words."""
        return self.forward_.target_words_

    def table(self) -> Any:
        """Return t(target word | source word), see `IBM1.table`; for the other, use ``backward_``.

        The result is a sparse matrix (source words + 1, target words).
        """
        return self.forward_.table()

    def translations(self, word: str | None, n: int = 10) -> list[tuple[str, float]]:
        """Return the n most probable translations of a source word; None: of the empty word."""
        return self.forward_.translations(word, n)

    # aligning
    def _corpus_of(self, pairs: Any) -> PairCorpus:
        self._require_fit()
        forward: PairCorpus = self.forward_._corpus_of(pairs)
        backward: PairCorpus = self.backward_._corpus_of(self._flip(forward.pairs))
        if isinstance(forward, Chunks) and isinstance(backward, Chunks):
            sides: Any = forward.corpus, backward.corpus
            return Chunks(BidirectionalCorpus(*sides))
        return BidirectionalCorpus(forward, backward)

    @property
    def _current_core(self) -> AgreementCore:
        """Both directions as they are now: each may have learned more by itself."""
        self._require_fit()
        sides = self.forward_.core_, self.backward_.core_
        return AgreementCore(self._name, *sides, self.agree)

    def _current_params(self) -> Params:
        return join_directions(side.raw_params_ for side in self._directions)

    def _flip(self, text: Bitext) -> Bitext | None:
        """Return the pairs for the backward direction; None stands for the training pairs."""
        training = getattr(self.forward_, "_corpus", None)
        return None if training is not None and text is training.pairs else text.flipped()

    def align(
        self, pairs: Any = None, *, method: str | None = None, threshold: float | None = None
    ) -> list[list[Link]]:
        """Predict the links (i, j) of each pair: source and target position, counted from 0.

        ``pairs``      None: the training pairs
        ``method``     "product": the geometric mean of both directions' posteriors is above the
                       threshold; "soft-union": their arithmetic mean is; "forward", "backward": the
                       best alignment of one direction; "intersection", "union", "grow-diag",
                       "grow-diag-final", "grow-diag-final-and": the best alignments of both
                       directions, symmetrised. None: the model's default, "product" for `Aligner`
                       and "soft-union" for `GibbsAligner`
        ``threshold``  None: the model's parameter ``threshold``
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
        """Predict links like `align`, in flat arrays, with their probabilities if requested."""
        options: dict[str, Any] = {"threshold": threshold, "probabilities": probabilities}
        return self._links(pairs, method=method, **options)

    def _selection(
        self,
        *,
        method: str | None = None,
        threshold: float | None = None,
        probabilities: bool = False,
    ) -> Callable[..., list[ChosenLinks]]:
        method = method or self._default_method
        if method not in METHODS:
            raise LearnerError(
                f"method={brief(method)} is unknown", f"choose from {', '.join(METHODS)}"
            )
        if threshold is not None and method not in MEANS:
            raise LearnerError(
                f"a threshold is for {' and '.join(MEANS)}, not for {method}",
                "leave out the threshold, or choose another method",
            )
        how: dict[str, Any] = {"method": method, "mean": self._default_method}
        if method in MEANS:
            level = check_threshold(self.threshold if threshold is None else threshold)
            how |= {"mean": method, "level": level}
        return partial(self._current_core.select, probabilities=probabilities, **how)

    def _posteriors(self) -> Callable[..., tuple[IntArray, list[FloatArray]]]:
        return partial(self._current_core.posteriors, mean=self._default_method)

    def score_samples(self, pairs: Any = None) -> FloatArray:
        """Compute log p(target | source) + log p(source | target) of each pair.

        It is 0 if either side is empty.
        """
        text = self._corpus_of(pairs).pairs
        backward = self.backward_.score_samples(self._flip(text))
        return self.forward_.score_samples(text) + backward

    # files
    def _pack(self) -> tuple[dict[str, Array], list[list[str]]]:
        parts = zip(self._directions, self._expected_counts(), strict=True)
        arrays = join_directions([direction._pack_arrays(past) for direction, past in parts])
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
        self.raw_params_ = join_directions(side.raw_params_ for side in self._directions)
        self._corpus = None


@dataclass(eq=False, repr=False)
class Aligner(BidirectionalParameters, BidirectionalAligner):
    """Two directional models trained to agree (Liang, Taskar & Klein 2006); recommended.

    ``model``      "hmm", "diagonal", "ibm2" or "ibm1", for both directions
    ``agree``      False: train the directions independently
    ``warm_up``    the number of initial Model 1 steps, also with agreement, recorded in
                   ``trace_.warm_up``
    ``threshold``  predict links whose posterior (the geometric mean of both directions) is above
                   this
    ``settings``   further parameters of the directional models, such as {"p_null": 0.1}

    For the other parameters see `IBM1`. A dictionary is used in both directions.

    >>> pairs = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
    >>> Aligner().fit(pairs).align([("a house", "ein haus")])
    [[(0, 0), (1, 1)]]
    """

    @property
    def _name(self) -> str:
        return f"Aligner({self.model}{', agree' if self.agree else ''})"

    def _make_direction(self, dictionary: Any) -> DirectionalAligner:
        kind, settings = MODELS[self.model], {} if self.settings is None else self.settings
        if not isinstance(settings, Mapping):
            raise LearnerError(
                f"settings={brief(settings)} is not a mapping",
                'give a dict, for example {"p_null": 0.2}',
            )
        known = set(kind._get_param_names()) - set(self._get_param_names())
        unknown = sorted(str(name) for name in settings if name not in known)
        if unknown:
            raise LearnerError(
                f"settings: {self.model} has no setting {unknown[0]!r} of its own",
                f"choose from {', '.join(sorted(known))}",
            )
        shared = {field.name: getattr(self, field.name) for field in fields(TableParameters)}
        return kind(**{**settings, **shared, "dictionary": dictionary, "init": None})

    def _start_values(self, core: AgreementCore, corpus: BidirectionalCorpus, init: Any) -> Any:
        if init is not None:
            starts = [
                self.forward_._start_values(core.forward, corpus.forward, init),
                self.backward_._start_values(core.backward, corpus.backward, init),
            ]
            if any(callable(start) for start in starts):
                raise LearnerError(
                    f"init={init!r} is not supported here", "give 'uniform', or leave it out"
                )
            return join_directions(starts)
        # Model 1 of both directions, with agreement from the second step on: posteriors of the
        # uniform table carry no information to agree on
        stages = ((False, min(self.warm_up, 1)), (self.agree, self.warm_up - 1))
        models = [self._warm_up_model(corpus, agree, steps) for agree, steps in stages if steps > 0]
        start = self._uniform_start(core)
        return WarmStart(start, models) if models else start

    def _learn_more(
        self, core: AgreementCore, corpus: BidirectionalCorpus, more: Sequence[Continuation]
    ) -> Fit:
        forward, backward = (part.core_with_past() for part in more)
        with_past = AgreementCore(self._name, forward, backward, self.agree)
        start = join_directions([part.start for part in more])
        return self._run(with_past, corpus, self._learner, start, 0, {})
