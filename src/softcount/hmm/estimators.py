"""Estimators of hidden Markov models: `HMM` for words, `GaussianHMM` for vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, Unpack, cast

import numpy as np

from softcount.core import store
from softcount.core.bounds import MAX_POINT_WEIGHT, MAX_VALUE, check_coordinates
from softcount.core.display import NamedTables
from softcount.core.errors import DataError, LearnerError, StartError, StoreError, brief
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.parameters import (
    check_whole,
    generator,
    not_smoothed,
    require_prior,
    smoothings,
)
from softcount.core.store import AGAIN, numbers, strings
from softcount.core.tilting import Sites
from softcount.core.types import Array, EStep, FloatArray, IntArray, PosteriorRows
from softcount.core.warnings import warn_of_impossible
from softcount.families import Gaussian
from softcount.families.gaussian import NIW
from softcount.families.loglinear import Ascent
from softcount.hmm import forward_backward, starts
from softcount.hmm.core import (
    TRANSITIONS,
    HMMCore,
    TableConstraints,
    compute_occupancy,
    make_chain_families,
)
from softcount.hmm.data import (
    ROWS,
    SentenceCorpus,
    SentenceShard,
    TagConstraints,
    TagSupervision,
    Uncut,
    sentence_weights,
)
from softcount.hmm.emissions import (
    EMISSIONS,
    FeatureEmission,
    GaussianEmission,
    WordEmission,
    WordFeatures,
    estimate_unseen,
)
from softcount.hmm.impossible import FewestEvents, make_context_chain
from softcount.hmm.parameters import GaussianHMMParameters, HMMParameters, MarkovParameters
from softcount.mixture.data import Points
from softcount.text.tagged import Tagged
from softcount.text.vocabulary import Vocabulary

T = TypeVar("T")

DECODERS = ("viterbi", "posterior")
RESCUED = (
    "Such a sequence gets the states with the fewest impossible transitions and words. A model "
    "learned with smoothing, such as smoothing=0.01, has no impossible sequences"
)


class MarkovModel(MarkovParameters, Estimator):
    """Base class of hidden Markov models of words and of vectors."""

    core_: HMMCore
    n_iter_: int
    _tags: TagConstraints
    _starts: ClassVar[tuple[str, ...]] = ("random", "spectral")
    _units: ClassVar[str] = "sentences"
    """What messages call the items."""
    _smoothed: ClassVar[tuple[str, ...]] = (TRANSITIONS, EMISSIONS)
    """The tables that ``smoothing`` applies to."""

    # implemented by subclasses
    @abstractmethod
    def _read(self, sentences: Any, tags: Any = None) -> SentenceCorpus:
        """Make a corpus from new sentences and their tags, as far as known."""

    @abstractmethod
    def _bind(
        self, sentences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, SentenceCorpus]:
        """Make the core and the training corpus."""

    # learning
    @resumable
    def fit(  # type: ignore[override]  # tags come with the sentences
        self,
        sentences: Any,
        tags: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Fit the model to sentences.

        ``sentences``      lists of words, strings (split at white space), `Sequences` or `Tagged`;
                           for a `GaussianHMM`, arrays (length, dimensions)
        ``tags``           known tags: for each sentence None, or for each word its tag, None (or
                           −1) if unknown, or the set of its possible tags
        ``sample_weight``  weight of each sentence

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(sentences, tags, sample_weight)
            return self._learn(core, corpus, init, **options)

    def _constrain(self) -> TableConstraints:
        """Return the constraints on tables (``zero``, ``frozen``, ``tied``)."""
        return TableConstraints.read(self.zero, self.frozen, self.tied, self._tags)

    def _make_shard(
        self,
        observed: Array,
        indptr: IntArray,
        supervision: TagSupervision,
        weights: FloatArray,
        new_words: Sequence[str] = (),
        n_words: int = 0,
    ) -> SentenceShard:
        """Make a shard of the sentences and the set of states allowed at each token."""
        sets, states = self._tags.allow(supervision)
        numbers = np.arange(len(weights))
        return SentenceShard(numbers, observed, indptr, sets, states, weights, new_words, n_words)

    def _bind_more(self, core: HMMCore, data: Any) -> SentenceCorpus:
        return self._read(data)

    def _start_values(self, core: HMMCore, corpus: SentenceCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            given = starts.read_tables(core, init, self._constrain())
            return starts.complete(core, given, self._start_values(core, corpus, None))
        if init is None or (isinstance(init, str) and init == "random"):
            return lambda rng: {name: f.random(rng) for name, f in core.families.items()}
        hint = f"choose {', '.join(self._starts)}, or give tables in the format of params_"
        raise LearnerError(f"init={brief(init)} is not known here", hint)

    def _sites(self, core: HMMCore, corpus: SentenceCorpus) -> Sites:
        shard = corpus.everything
        if corpus.is_on_disk:
            raise DataError(
                "constraints need the sentences in memory, but these are on disk",
                "give a list of sentences",
            )
        words = shard.observed if shard.observed.ndim == 1 else None
        return Sites(
            shard.indptr,
            shard.token_weights,
            {name: [k] for k, name in enumerate(self._tags.states)},
            core.n_states,
            lambda word: np.flatnonzero(np.isin(shard.observed, self._number_words(word))),
            words,
            site="word" if words is not None else "vector",
            limit=300.0,
        )

    def _number_words(self, word: Any) -> list[int]:
        """Return the numbers of a word, if it occurs."""
        raise DataError(f"vectors are not words, such as {word!r}", "give a mask of vectors")

    def _after_fit(self, corpus: SentenceCorpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1

    def _lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, *self._smoothed)

    # fitted attributes
    @property
    def states_(self) -> list[Any]:
        """Names of the states: first the tags, if any, then numbers for unnamed states."""
        self._require_fit()
        return self._tags.states

    @property
    def params_(self) -> dict[str, Array]:
        """The fitted tables by name, in the format that ``init`` accepts.

        They print with the names of states and words, by which they can be looked up, too:
        ``params_["transitions"]["NOUN", "VERB"]``.
        """
        self._require_fit()
        names, tables = self._tags.states, self.raw_params_
        following = [*names, "end"] if self.stop else names
        pairs = names if self.order == 1 else [(a, b) for a in names for b in names]
        axes = {
            "start": ([""], names),
            TRANSITIONS: (pairs, following),
            "second": (names, following),
        }
        words = self._emitted_names()
        if words is not None:
            axes[EMISSIONS] = (names, words)
        shapes = {name: (len(rows), len(columns)) for name, (rows, columns) in axes.items()}
        fitting = {n: axes[n] for n, table in tables.items() if shapes.get(n) == np.shape(table)}
        return NamedTables({name: np.array(table) for name, table in tables.items()}, fitting)

    def _emitted_names(self) -> list[str] | None:
        """The words that states emit; None if they emit none."""
        return None

    # step by step
    def _name_hidden(
        self, core: HMMCore, corpus: SentenceCorpus, rows: PosteriorRows
    ) -> dict[str, Any]:
        index = {"sentence": rows.items.tolist(), "position": rows.keys["position"].tolist()}
        known = self._emitted_names()
        if known is not None:
            words = [*known, *corpus.everything.new_words]
            index["word"] = [words[w] for w in rows.keys["word"].tolist()]
        states = tuple(self._tags.states)
        return {"columns": states, "index": index, "of": "state", "independent": False}

    # inference
    def predict(self, sentences: Any, *, tags: Any = None, method: str = "viterbi") -> list[Any]:
        """Predict the states of each sentence.

        ``tags``    known tags, as in `HMM.fit`; predictions agree with them
        ``method``  "viterbi": the most probable sequence, argmax p(z | x); "posterior": the most
                    probable state of each word, argmax p(z_i | x)

        If a sentence has probability zero, every sequence of states contains a transition or an
        emission of probability zero. It then gets a sequence with the fewest of these and, among
        such sequences, the most probable. Known tags and the dictionary still hold; entries in
        ``zero`` may be violated. An `ImpossibleWarning` counts such sentences.
        """
        if method not in DECODERS:
            raise LearnerError(f"method={brief(method)} is unknown", f"choose {DECODERS}")
        self._require_fit()
        corpus = self._read(sentences, tags)
        decode = self.core_.best_states if method == "posterior" else self.core_.best_paths
        paths, logs = zip(*self._each(decode, corpus), strict=True)
        states = np.concatenate(paths)
        for _, at, rescue in self._rescue(corpus, np.concatenate(logs)):
            states[at] = (
                rescue.posteriors().argmax(axis=1) if method == "posterior" else rescue.path
            )
        by_sentence = np.split(states, corpus.everything.indptr[1:-1])
        return [self._tags.name_states(path) for path in by_sentence]

    def predict_proba(self, sentences: Any, *, tags: Any = None) -> list[FloatArray]:
        """Compute γ_i(k) = p(z_i = k | x): an array (words, states) for each sentence.

        If a sentence has probability zero, the posterior is over the state sequences with the
        fewest impossible transitions and emissions: see `predict`.
        """
        self._require_fit()
        corpus = self._read(sentences, tags)
        parts, logs = zip(*self._each(self.core_.posteriors, corpus), strict=True)
        tables: list[FloatArray] = []
        for posteriors, log in zip(parts, logs, strict=True):
            ends = corpus.indptr[len(tables) : len(tables) + len(log) + 1]
            tables += np.split(posteriors, ends[1:-1] - ends[0])
        for number, _, rescue in self._rescue(corpus, np.concatenate(logs)):
            tables[number][...] = rescue.posteriors()
        return tables

    def _each(
        self, function: Callable[..., T], corpus: SentenceCorpus, how: EStep | None = None
    ) -> Iterator[T]:
        """Yield what a method of the core returns for each shard, if cuts cannot change a bit.

        They could where vectors are multiplied by large matrices, where overflow in float32 decides
        how to compute, and where a pack of sentences may be cut into segments. Then there is one
        shard.
        """
        is_exact = (
            corpus.everything.observed.ndim == 1
            and self.core_.dtype == np.float64
            and self.core_.n_states * ROWS <= forward_backward.SEGMENT
        )
        if not len(corpus):
            return iter([function(self.raw_params_, corpus.everything, how or EStep())])
        return self._map(function, corpus if is_exact else Uncut(corpus), how)

    def posterior_sample(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, tags: Any = None
    ) -> list[list[Any]]:
        """Draw n state sequences for each sentence from the posterior p(z | x).

        If a sentence has probability zero, the posterior is over the state sequences with the
        fewest impossible transitions and emissions: see `predict`.
        """
        check_whole("n", n)
        self._require_fit()
        corpus = self._read(sentences, tags)
        stream = int(generator(random_state).integers(2**63))
        how = EStep(stream=stream, samples=n)
        parts, logs = zip(*self._each(self.core_.draw_paths, corpus, how), strict=True)
        paths = np.concatenate(parts, axis=1)
        for number, at, rescue in self._rescue(corpus, np.concatenate(logs)):
            rng = np.random.default_rng([stream, number])
            paths[:, at] = [rescue.draw(rng) for _ in range(n)]
        by_sentence = np.split(paths, corpus.everything.indptr[1:-1], axis=1)
        return [[self._tags.name_states(path) for path in sentence] for sentence in by_sentence]

    def _rescue(
        self, corpus: SentenceCorpus, logs: FloatArray
    ) -> list[tuple[int, slice, FewestEvents]]:
        """Return (index, token slice, inference) for each sentence whose log p is −inf.

        Warns about those that are impossible, attributed to the user's call of a public method.
        """
        unreachable = np.flatnonzero(~np.isfinite(logs))
        if not len(unreachable):
            return []
        subset, whole = corpus.select(unreachable), corpus.everything
        chain = make_context_chain(self.core_.make_chain(self.raw_params_))
        table = np.asarray(self.raw_params_[EMISSIONS])
        likelihoods = self.core_.emission.log_likelihoods(table, subset)
        allowed = subset.states.allowed[subset.sets]
        rescued, impossible = [], []
        for i, n in enumerate(unreachable.tolist()):
            tokens = slice(subset.indptr[i], subset.indptr[i + 1])
            rescue = FewestEvents(chain, likelihoods[tokens], allowed[tokens])
            rescued.append((n, slice(whole.indptr[n], whole.indptr[n + 1]), rescue))
            if rescue.n_events:  # if not, p only underflows to zero in floating point
                impossible.append(n)
        first = corpus.name(impossible[0]) if impossible else ""
        warn_of_impossible(impossible, len(corpus), self._units, first, RESCUED, stacklevel=3)
        return rescued

    def score_samples(self, sentences: Any, *, tags: Any = None) -> FloatArray:
        """Compute log p of each sentence (jointly with its tags, if given); may be −inf."""
        self._require_fit()
        corpus = self._read(sentences, tags)
        return np.concatenate([*self._each(self.core_.log_likelihoods, corpus)])

    def score(self, sentences: Any, y: Any = None) -> float:
        """Compute the mean log p per sentence; ``y`` is ignored (see `evaluate.tag_scores`)."""
        return float(self.score_samples(sentences).mean())

    def expected_counts(self, sentences: Any, *, tags: Any = None) -> dict[str, Any]:
        """Compute the expected counts of all tables, as an E-step does."""
        self._require_fit()
        shard = self._read(sentences, tags).everything
        how = EStep(threads=self._threads)
        counts = self.core_.expect(self.raw_params_, shard, how).counts
        return {name: np.asarray(table) for name, table in counts.items()}

    # generation
    def _draw_states(
        self, n: int, random_state: Any, length: int | None
    ) -> Iterator[tuple[IntArray, np.random.Generator]]:
        """Yield the states of n new sentences, each with the generator to draw words from."""
        self._require_fit()
        check_whole("n", n, 0)
        if length is None and not self.core_.stop:
            raise DataError(
                "a model with stop=False cannot decide where a sentence ends", "give length"
            )
        if length is not None:
            check_whole("length", length)
        rng, k = generator(random_state), self.core_.n_states
        chain = self.core_.make_chain(self.raw_params_)
        for _ in range(n):
            states = [int(rng.choice(k, p=chain.start / chain.start.sum()))]
            while length is None or len(states) < length:
                row = states[-1]
                if self.order == 2:
                    row += k * (states[-2] if len(states) > 1 else k)
                end = chain.stop[row] if length is None else 0.0
                probabilities = np.append(chain.transitions[row], end)
                if not probabilities.any():
                    raise DataError(
                        f"no sequence of {length} states: one is left that nothing can follow",
                        f"give a length below {length}",
                    )
                following = int(rng.choice(k + 1, p=probabilities / probabilities.sum()))
                if following == k:
                    break
                states.append(following)
            yield np.array(states), rng


class HMM(store.SaveableTables, HMMParameters, MarkovModel):
    """A hidden Markov model of words: a Markov chain of hidden states, each emitting a word.

    p(w, z) = p(z_1) Π p(z_i | z_{i−1}) Π p(w_i | z_i) p(end | z_n) (Rabiner 1989).

    ``n_components``  number of states; None: the number of tags
    ``order``         1: a state depends on the previous one; 2: on the previous two
    ``stop``          whether the end of a sentence is modelled, with p(end | state)
    ``smoothing``     pseudo-count added to all counts; for learners with a prior, the Dirichlet
                      parameter. A mapping gives "transitions" (and starts) and "emissions" separate
                      values
    ``dictionary``    mapping from words to the tags they may have
    ``open_tags``     the tags that words not in the dictionary may have; None: any tag
    ``zero``          table → mask of the entries fixed at zero
    ``frozen``        tables kept at their initial values; or table → the rows to keep: a boolean
                      mask, names of states (pairs of names at order 2), or row indices
    ``tied``          table → a group number for each row: rows of one group share their parameters
    ``emissions``     "table": one probability per word and state; unseen words are modelled by the
                      words seen once. "features": log-linear in the form of the word (suffixes,
                      case, digits), which covers unseen words too
    ``l2``            L2 penalty on the feature weights
    ``ascent``        how they are fitted in each M-step: "lbfgs", ten steps of L-BFGS; "gradient",
                      one step up the gradient; "converged", L-BFGS to the top
    ``lowercase``     whether to lower-case all words
    ``dtype``         precision of E-steps; "float32" is less exact and takes half the time
    ``init``          "random"; "spectral": from moments of neighbouring words (order 1); or some or
                      all tables in the format of ``params_``. None: estimated from the tags and the
                      dictionary if given, else random. Emissions may also be given as state →
                      {word: p}, or as word → [p for each state]; the remaining mass is shared
                      evenly by the other words

    After `fit`: ``words_``, ``states_`` (names, if tags were given), ``params_``, ``trace_``.

    >>> sentences = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"]
    >>> model = HMM(3, random_state=1).fit(sentences)
    >>> first, second = model.predict(["the dog sleeps", "a cat barks"])
    >>> first == second, len(set(first))
    (True, 3)
    """

    _vocabulary: Vocabulary
    _frequencies: IntArray  # (words,): training counts

    # learning
    def _bind(
        self, sentences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, SentenceCorpus]:
        self._check_settings()
        supervision = TagSupervision.read(sentences, tags, None, self.lowercase)
        text = supervision.text.sequences
        if not len(text.tokens):
            raise DataError("there is not a single word in the sentences", "look at the data")
        words = (self.dictionary, self.open_tags, self.lowercase)
        self._tags = TagConstraints.make(supervision.names, self.n_components, *words)
        self._vocabulary = Vocabulary(text.words)
        self._frequencies = text.count_words()
        self.n_features_in_ = len(text.words)
        return self._make_core(), self._make_corpus(supervision, sample_weight)

    def _number_words(self, word: Any) -> list[int]:
        words = self._vocabulary.words
        return [words.index(word)] if word in words else []

    def _make_core(self) -> HMMCore:
        """Make the core, given the tags and the vocabulary."""
        k, v = self._tags.n_states, len(self._vocabulary.words)
        constraints = self._constrain()
        transitions, emissions = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        maximises = require_prior(self._learner, min(transitions, emissions))
        # adding a to every count gives the mode under 1 + a, and the mean under a
        chain = make_chain_families(constraints, k, self.order, self.stop, transitions + maximises)
        emission: WordEmission
        if self.emissions == "features":
            constraints.check_unconstrained(EMISSIONS, "weights of features")
            features = WordFeatures(self._vocabulary.words, self._frequencies)
            emission = FeatureEmission(features, k, v, self.l2, cast(Ascent, self.ascent))
        else:
            table = constraints.make_family(EMISSIONS, (k, v), emissions + maximises)
            emission = WordEmission(table, (k, v))
        return HMMCore("HMM", chain, emission, k, self.order, self.stop, self.dtype)

    def _make_corpus(
        self, supervision: TagSupervision, sample_weight: Any = None
    ) -> SentenceCorpus:
        text = supervision.text.sequences
        weights = sentence_weights(sample_weight, len(text))
        n_words = len(self._vocabulary.words)
        words = (text.words[n_words:], n_words)
        shard = self._make_shard(text.tokens, text.indptr, supervision, weights, *words)
        return SentenceCorpus(shard, text.name)

    def _read(self, sentences: Any, tags: Any = None) -> SentenceCorpus:
        if isinstance(sentences, Tagged):  # never look at gold tags when predicting
            sentences = sentences.sequences
        return self._make_corpus(
            TagSupervision.read(sentences, tags, self._vocabulary, self.lowercase)
        )

    def _start_values(self, core: HMMCore, corpus: SentenceCorpus, init: Any) -> Any:
        frequencies = self._frequencies
        if isinstance(init, Mapping) and isinstance(init.get(EMISSIONS), Mapping):
            if self.emissions == "features":
                raise StartError(
                    "with emissions='features', initial emissions are weights, not probabilities",
                    "omit the emissions, or use emissions='table'",
                )
            possible, given = core.families[EMISSIONS].uniform() > 0.0, init[EMISSIONS]
            words = (self._vocabulary, self.lowercase)
            table = starts.read_emissions(given, possible, self._tags, *words)
            init = {**init, EMISSIONS: table}
        if init is None and corpus.everything.sets.any():
            return lambda rng: starts.count_supervision(core, corpus, frequencies, rng)
        if not isinstance(init, str) or init != "spectral":
            return super()._start_values(core, corpus, init)
        if self.order == 2:
            raise LearnerError("init='spectral' needs order=1", "use init='random' at order 2")
        return lambda rng: starts.start_from_moments(core, corpus.everything, frequencies, rng)

    def _after_fit(self, corpus: SentenceCorpus) -> None:
        super()._after_fit(corpus)
        self._estimate_unseen()

    def _estimate_unseen(self) -> None:
        """Estimate p(unseen word | state) from the words that were seen once."""
        if self.emissions != "features":
            table = self._emission_table()
            occupancy = compute_occupancy(self.raw_params_, len(table), self.order)
            self._emission.unseen = estimate_unseen(table, occupancy, self._frequencies)

    @property
    def _emission(self) -> WordEmission:
        return cast(WordEmission, self.core_.emission)

    def _emission_table(self) -> FloatArray:
        """Return p(word | state), (states, words)."""
        return self._emission.table(self.raw_params_[EMISSIONS])

    # capabilities that learners check
    def _lacks_sampler(self) -> str:
        if self.emissions == "features":
            return f"{self._display_name} has no collapsed sampler for emissions='features'"
        fixed = [name for name in ("tied", "frozen") if _names_rows(getattr(self, name))]
        if fixed:
            return f"{self._display_name} has no collapsed sampler for {fixed[0]} rows"
        zero = self.zero if isinstance(self.zero, Mapping) else {}
        if any(np.any(where) for name, where in zero.items() if name != EMISSIONS):
            return f"{self._display_name} has no collapsed sampler for zeros among transitions"
        return ""

    def _solvable_starts(self) -> Collection[str]:
        return ("spectral",) if self.order == 1 else ()

    def _emitted_names(self) -> list[str]:
        return list(self._vocabulary.words)

    # fitted attributes
    @property
    def words_(self) -> list[str]:
        """The vocabulary: words of the training text, in order of first occurrence."""
        self._require_fit()
        return list(self._vocabulary.words)

    def emission_proba(self, words: Iterable[str] | None = None) -> FloatArray:
        """Return p(word | state), (states, words), for the given words or for all ``words_``.

        Words may be unseen; for the probability of these, see `perplexity`. The tag dictionary is
        not taken into account.

        >>> model = HMM(1).fit(["a dog", "a cat"])
        >>> model.emission_proba().tolist(), model.emission_proba(["a", "zebra"]).round(2).tolist()
        ([[0.5, 0.25, 0.25]], [[0.5, 0.5]])
        """
        self._require_fit()
        if words is None:
            return np.array(self._emission_table())
        if isinstance(words, str):
            raise DataError(f"words={brief(words)} is a single string", "give a list of words")
        shard = self._read([list(words)]).everything
        emissions = self.core_.make_trellis(self.raw_params_, shard, self._threads).emissions
        return emissions.table[shard.rows, : self.core_.n_states].T.astype(float)

    def top_words(self, n: int = 10, with_proba: bool = False) -> list[Any]:
        """Return the n most probable words of each state; ``with_proba``: (word, p(word | state)).

        Words that the state does not emit, or whose probability is due to ``smoothing`` more than
        to the text, are left out, so there may be fewer than n.
        """
        self._require_fit()
        check_whole("n", n)
        _, added = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        table, least = self._emission_table(), self._find_proba_of_count(added)
        words = self._vocabulary.words
        order = np.argsort(-table, axis=1, kind="stable")[:, :n].tolist()
        tops = [
            [(words[w], float(table[k, w])) for w in row if table[k, w] > least[k]]
            for k, row in enumerate(order)
        ]
        return tops if with_proba else [[word for word, _ in top] for top in tops]

    def _find_proba_of_count(self, count: float) -> FloatArray:
        """Compute p(word | state), (states,), of a word with this expected count c in a state.

        p = (c + a) / (C + a V), with smoothing a, vocabulary size V, and C the expected count of
        the state under the fitted tables. 0 without smoothing: then every word of positive
        probability occurs in the text.
        """
        _, added = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        if added == 0.0 or self.emissions == "features":
            return np.zeros(self.core_.n_states)
        occupancy = compute_occupancy(self.raw_params_, self.core_.n_states, self.order)
        tokens, v = occupancy * self._frequencies.sum(), len(self._frequencies)
        bounds: FloatArray = (count + added) / (tokens + added * v)
        return bounds

    def perplexity(self, sentences: Any) -> float:
        """Compute the perplexity per word: exp(−Σ log p(sentence) / number of words).

        p(sentence) includes p(end | state) (unless ``stop=False``), but ends are not counted as
        words. The perplexity is infinite if any sentence has probability zero.

        Every unseen word gets the whole probability mass of unseen words: with a table, that of all
        words seen once, n₁/n, distributed over states as these are (10⁻⁹ in every state if no word
        was seen once); with features, exp(v_k · f(w)) over the sum for all words seen, at most 1.
        So p(word | state) sums to more than 1 over all possible words: compare models on words that
        all of them saw, or replace rare words by one token before learning.
        """
        self._require_fit()
        corpus = self._read(sentences)
        logs = np.concatenate([*self._each(self.core_.log_likelihoods, corpus)])
        return float(np.exp(-logs.sum() / max(corpus.everything.n_tokens, 1)))

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[list[tuple[str, Any]]]:
        """Draw n new sentences of (word, state); ``length`` is required if ``stop=False``."""
        sentences = []
        for states, rng in self._draw_states(n, random_state, length):
            rows = self._emission_table()[states]
            words = [rng.choice(len(row), p=row / row.sum()) for row in rows]
            texts = [self._vocabulary.words[w] for w in words]
            sentences.append(list(zip(texts, self._tags.name_states(states), strict=True)))
        return sentences

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        facts = {"words": list(self._vocabulary.words), "tags": list(self._tags.names)}
        return {"often": self._frequencies}, {**facts, "n_states": int(self._tags.n_states)}

    def unpack(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        super().unpack(stored, given)
        self._estimate_unseen()

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        n = self.n_features_in_
        words, tags = stored.meta["words"], stored.meta["tags"]
        strings(words, n, "words")
        strings(tags, len(tags), "tags")
        k = stored.meta["n_states"]
        self._check_settings()
        table, rows = (stored.arrays[store.TABLE + name] for name in (EMISSIONS, TRANSITIONS))
        fits = table.size > k * n if self.emissions == "features" else table.shape == (k, n)
        if not isinstance(k, int) or not fits or len(rows) != k**self.order:
            raise StoreError("the tables do not fit the states and words", AGAIN)
        self._vocabulary = Vocabulary(words)
        settings = (self.dictionary, self.open_tags, self.lowercase)
        constraints = TagConstraints.make(tags, k, *settings)
        if list(constraints.names) != tags:
            raise StoreError("the tags and the dictionary do not fit together", AGAIN)
        often = numbers(stored, "often", (n,))
        if "" in words or len(set(words)) != n or often.min() < 1 or (often % 1).any():
            raise StoreError("the stored words or their counts are invalid", AGAIN)
        self._tags, self._frequencies = constraints, often.astype(np.int64)
        return self._make_core()


def _names_rows(given: Any) -> bool:
    """Return whether ``tied`` or ``frozen``, in any of their forms, names any rows."""
    if isinstance(given, Mapping):
        return any(_names_rows(rows) for rows in given.values())
    if given is None or not isinstance(given, Iterable):
        return given is not None
    rows = list(given)
    if all(isinstance(row, bool | np.bool_) for row in rows):
        return any(rows)
    return bool(rows)


class GaussianHMM(store.SaveableTables, GaussianHMMParameters, MarkovModel):
    """A hidden Markov model of vectors: p(x_i | z_i = k) = N(x_i; μ_k, Σ_k).

    ``n_components``  number of states; None: the number of tags
    ``covariance``    "full", "tied", "diag" or "spherical"
    ``floor``         minimum variance in any direction, as a fraction of that of the data
    ``prior``         an `NIW`, for Bayesian learners; None: a weak one on the scale of the data
    ``smoothing``     pseudo-count added to the counts of starts and transitions
    ``init``          "kmeans"; or {"means": …}, optionally with "covariances", in the format of
                      ``means_`` and ``covariances_``; or tables in the format of ``params_``.
                      Tables left out are estimated from the resulting assignment of vectors to
                      states

    The chain and all other parameters are those of `HMM`. Sequences are arrays (length,
    dimensions).

    >>> rng = np.random.default_rng(0)
    >>> walks = [rng.normal([[0.0]] * 5 + [[9.0]] * 5) for _ in range(4)]
    >>> model = GaussianHMM(2).fit(walks)
    >>> sorted(model.means_[:, 0].round().tolist()), model.predict(walks)[0][4:6]
    ([-0.0, 9.0], [1, 0])
    """

    _starts: ClassVar[tuple[str, ...]] = ("kmeans", "random")
    _units: ClassVar[str] = "sequences"
    _smoothed: ClassVar[tuple[str, ...]] = (TRANSITIONS,)
    _offset: FloatArray  # (dimensions,): mean of the training data

    # learning
    def _bind(
        self, sequences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, SentenceCorpus]:
        self._check_settings()
        points, indptr = _read_vectors(sequences)
        if not len(points):
            raise DataError("there is not a single vector in the sequences", "look at the data")
        weights = sentence_weights(sample_weight, len(indptr) - 1, MAX_POINT_WEIGHT)
        token_weights = np.repeat(weights, np.diff(indptr))
        if not token_weights.any():
            raise DataError("all vectors have weight 0", "look at sample_weight")
        supervision = TagSupervision.read_for_vectors(np.diff(indptr), tags)
        self._tags = TagConstraints.make(supervision.names, self.n_components)
        self.n_features_in_ = points.shape[1]
        self._offset = np.average(points, axis=0, weights=token_weights)
        family = self._make_family(points - self._offset, token_weights)
        return self._make_core(family), self._make_corpus(points, indptr, supervision, weights)

    def _make_family(self, points: FloatArray, weights: FloatArray | None) -> Gaussian:
        """Make the Gaussians, as a mixture with the same settings does."""
        if not isinstance(self.prior, NIW | None):
            raise LearnerError(
                f"prior={brief(self.prior)} is not an NIW", "give an NIW, or None for a weak prior"
            )
        from softcount.mixture.points import GaussianMixture  # late: imports scikit-learn

        mixture = GaussianMixture(
            self._tags.n_states,
            covariance=self.covariance,  # type: ignore[arg-type]
            floor=self.floor,
            prior=self.prior,
            learner=self._learner,
        )
        return mixture.gaussian(Points(points), weights)

    def _make_core(self, family: Gaussian) -> HMMCore:
        """Make the core for these Gaussians."""
        k = self._tags.n_states
        transitions, _ = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        maximises = require_prior(self._learner, transitions)
        constraints = self._constrain()
        constraints.check_unconstrained(EMISSIONS, "Gaussians of states")
        chain = make_chain_families(constraints, k, self.order, self.stop, transitions + maximises)
        emission = GaussianEmission(family)
        return HMMCore("GaussianHMM", chain, emission, k, self.order, self.stop, self.dtype)

    def _make_corpus(
        self,
        points: FloatArray,
        indptr: IntArray,
        supervision: TagSupervision,
        weights: FloatArray,
    ) -> SentenceCorpus:
        shard = self._make_shard(points - self._offset, indptr, supervision, weights)
        return SentenceCorpus(shard, lambda n: f"sequence {n}")

    def _read(self, sentences: Any, tags: Any = None) -> SentenceCorpus:
        points, indptr = _read_vectors(sentences, self.n_features_in_)
        supervision = TagSupervision.read_for_vectors(np.diff(indptr), tags)
        return self._make_corpus(points, indptr, supervision, np.ones(len(indptr) - 1))

    def _start_values(self, core: HMMCore, corpus: SentenceCorpus, init: Any) -> Any:
        shard = corpus.everything
        if init is None or (isinstance(init, str) and init == "kmeans"):
            return lambda rng: starts.cluster_vectors(core, shard, rng)
        if not isinstance(init, Mapping):
            return super()._start_values(core, corpus, init)
        init = dict(init)
        centres = {name: init.pop(name) for name in starts.CENTRES if name in init}
        if centres and (EMISSIONS in init or starts.MEANS not in centres):
            raise StartError(
                f"init has {', '.join([*centres, *init])}, which do not go together",
                f"give {starts.MEANS}, with or without {starts.COVARIANCES}, or {EMISSIONS} in the "
                "format of params_",
            )
        needed = bool(init) or not centres
        tables = starts.read_tables(core, init, self._constrain()) if needed else {}
        if centres:
            labels, tables[EMISSIONS] = starts.read_centres(core, shard, self._offset, **centres)
        elif EMISSIONS in tables:
            scores = core.emission.log_likelihoods(tables[EMISSIONS], shard)
            labels = starts.choose_states(shard, scores)
        else:
            usual = self._start_values(core, corpus, None)
            return starts.complete(core, tables, usual)
        return {**starts.count_labels(core, shard, labels), **tables}

    # fitted attributes
    @property
    def means_(self) -> FloatArray:
        """The mean of each state, (states, dimensions)."""
        self._require_fit()
        means: FloatArray = self._family.means(self.raw_params_[EMISSIONS]) + self._offset
        return means

    @property
    def covariances_(self) -> FloatArray:
        """The covariances: full, tied (states, D, D); diag (states, D); spherical (states,)."""
        self._require_fit()
        return self._family.covariances(self.raw_params_[EMISSIONS])

    @property
    def _family(self) -> Gaussian:
        return cast(Gaussian, self.core_.emission.family)

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[tuple[FloatArray, list[Any]]]:
        """Draw n new sequences, each with its states."""
        sequences = []
        for states, rng in self._draw_states(n, random_state, length):
            family, table = self._family, self.raw_params_[EMISSIONS]
            noise = rng.standard_normal((len(states), family.n_dims))
            spread = family.form.whiten(noise, family.precisions(table)[states])
            sequences.append((self.means_[states] + spread, self._tags.name_states(states)))
        return sequences

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        facts = {"tags": list(self._tags.names), "n_states": self._tags.n_states}
        return {"offset": self._offset}, facts

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        tags, k = stored.meta["tags"], stored.meta["n_states"]
        strings(tags, len(tags), "tags")
        if not isinstance(k, int) or len(stored.arrays[store.TABLE + EMISSIONS]) != k:
            raise StoreError("the tables do not fit the states", AGAIN)
        self._check_settings()
        self._tags = TagConstraints.make(tags, k)
        self._offset = numbers(stored, "offset", (self.n_features_in_,), MAX_VALUE)
        family = self._make_family(np.zeros((0, self.n_features_in_)), None)
        table = numbers(stored, store.TABLE + EMISSIONS, family.param_shape)
        from softcount.mixture.points import check_gaussian_bounds, check_invertible

        check_gaussian_bounds(table, self.n_features_in_)
        check_invertible(family, table)
        return self._make_core(family)


def _read_vectors(sequences: Any, n_dims: int | None = None) -> tuple[FloatArray, IntArray]:
    """Concatenate sequences: all vectors, (tokens, dimensions), and indptr, (sequences + 1,)."""
    if not isinstance(sequences, Iterable):
        raise DataError(
            f"the data are {brief(sequences)}, not sequences",
            "give a list of arrays (length, dims)",
        )
    parts = []
    for n, sequence in enumerate(sequences):
        try:
            part = np.asarray(sequence, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"sequence {n} is not numeric", "give arrays (length, dims)") from None
        if part.size and (part.ndim != 2 or not np.isfinite(part).all()):
            raise DataError(
                f"sequence {n} has the shape {part.shape}, or a value that is not finite",
                "give arrays (length, dimensions) of finite numbers",
            )
        check_coordinates(part, f"sequence {n} has")
        parts.append(part if part.size else np.zeros((0, 0)))
    full = [part for part in parts if len(part)]
    if n_dims is None and not full:
        raise DataError("there is not a single vector in the sequences", "look at the data")
    d = full[0].shape[1] if n_dims is None else n_dims
    for n, part in enumerate(parts):
        if len(part) and part.shape[1] != d:
            raise DataError(
                f"sequence {n} has {part.shape[1]} dimensions, not {d}",
                "give vectors of the same dimension",
            )
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    points = np.concatenate([np.zeros((0, d)), *full])
    return points, np.concatenate([np.zeros(1, np.int64), ends])
