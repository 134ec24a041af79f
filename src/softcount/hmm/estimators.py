"""Hidden Markov models as users call them: `HMM` over words, `GaussianHMM` over vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack, cast

import numpy as np

from softcount.core import store
from softcount.core.bounds import MAX_POINT_WEIGHT, MAX_VALUE, demand_values
from softcount.core.errors import DataError, LearnerError, StartError, StoreError, brief
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.parameters import (
    check_whole,
    demand_prior,
    generator,
    not_smoothed,
    smoothings,
)
from softcount.core.store import AGAIN, numbers, strings
from softcount.core.types import Array, EStep, FloatArray, IntArray
from softcount.core.warnings import warn_of_impossible
from softcount.families import Gaussian
from softcount.families.gaussian import NIW
from softcount.hmm import starts
from softcount.hmm.core import (
    TRANSITIONS,
    HMMCore,
    TableConstraints,
    compute_occupancy,
    make_chain_families,
)
from softcount.hmm.data import (
    SentenceCorpus,
    SentenceShard,
    TagConstraints,
    TagSupervision,
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
from softcount.hmm.forward_backward import Trellis
from softcount.hmm.impossible import FewestEvents, make_context_chain
from softcount.hmm.parameters import GaussianHMMParameters, HMMParameters, MarkovParameters
from softcount.mixture.data import Points
from softcount.text.tagged import Tagged
from softcount.text.vocabulary import Vocabulary

DECODERS = ("viterbi", "posterior")
RESCUED = (
    "Such a one gets the states that take the fewest impossible transitions and words. A model "
    "that is learned with smoothing, such as smoothing=0.01, holds nothing impossible"
)


class MarkovModel(MarkovParameters, Estimator):
    """Base of hidden Markov models of words and of vectors."""

    core_: HMMCore
    n_iter_: int
    _tags: TagConstraints
    _starts: ClassVar[tuple[str, ...]] = ("random", "spectral")
    _units: ClassVar[str] = "sentences"
    """What messages call the items."""
    _smoothed: ClassVar[tuple[str, ...]] = (TRANSITIONS, EMISSIONS)
    """The tables that ``smoothing`` applies to."""

    # what subclasses say
    @abstractmethod
    def _read(self, sentences: Any, tags: Any = None) -> SentenceCorpus:
        """Make a corpus of new sentences and their tags, if some are known."""

    @abstractmethod
    def _bind(
        self, sentences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, SentenceCorpus]:
        """Make the core and the corpus."""

    # learning
    def fit(  # type: ignore[override]  # tags come with the sentences
        self,
        sentences: Any,
        tags: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentences.

        ``sentences``      lists of words, texts (cut at white space), `Sequences` or `Tagged`; of
                           a `GaussianHMM` arrays (length, dimensions)
        ``tags``           what is known: for each sentence None, or for each word a tag, None (or
                           −1) where it is unknown, or a set of tags that it may have
        ``sample_weight``  how often each sentence counts

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(sentences, tags, sample_weight)
            return self._learn(core, corpus, init, **options)

    def _constrain(self) -> TableConstraints:
        """The constraints on tables."""
        return TableConstraints.read(self.zero, self.frozen, self.tied, self._tags)

    def _make_shard(
        self,
        observed: Array,
        indptr: IntArray,
        supervision: TagSupervision,
        weights: FloatArray,
        new_words: Sequence[str] = (),
    ) -> SentenceShard:
        """Make a shard of sentences and the sets of states that their tokens may be in."""
        sets, states = self._tags.allow(supervision)
        numbers = np.arange(len(weights))
        return SentenceShard(numbers, observed, indptr, sets, states, weights, new_words)

    def _bind_more(self, core: HMMCore, data: Any) -> SentenceCorpus:
        return self._read(data)

    def _start_values(self, core: HMMCore, corpus: SentenceCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            given = starts.read_tables(core, init, self._constrain())
            return starts.complete(core, given, self._start_values(core, corpus, None))
        if init is None or (isinstance(init, str) and init == "random"):
            return lambda rng: {name: f.random(rng) for name, f in core.families.items()}
        hint = f"{', '.join(self._starts)}, or tables as params_ has them"
        raise LearnerError(f"init={brief(init)} is not known here", hint)

    def _after_fit(self, corpus: SentenceCorpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1

    def _lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, *self._smoothed)

    # what was learned
    @property
    def states_(self) -> list[Any]:
        """The states: names of tags, as far as there are any, then numbers."""
        self._require_fit()
        return self._tags.states

    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; they may be given back as ``init``."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    # what it says of sentences
    def predict(self, sentences: Any, *, tags: Any = None, method: str = "viterbi") -> list[Any]:
        """The states of each sentence.

        ``tags``    what is known of them already; see `HMM.fit`
        ``method``  "viterbi": the best sequence, argmax p(z | x); "posterior": each word's own best
                    state, argmax p(z_i | x)

        A sentence that no states could have produced, for each sequence of them has a transition or
        a word of probability zero, gets one that has the fewest of these, and of such ones the most
        probable. Tags and the dictionary hold for it as for any other; entries in ``zero`` may have
        to give way. An `ImpossibleWarning` counts such sentences.
        """
        if method not in DECODERS:
            raise LearnerError(f"method={brief(method)} is unknown", f"choose {DECODERS}")
        self._require_fit()
        corpus = self._read(sentences, tags)
        shard = corpus.everything
        if method == "posterior":
            counts = self._make_trellis(shard).expect(per_token=True)
            states, logs = counts.posteriors.argmax(axis=1), counts.log_likelihoods
        else:
            (states,), logs = self._make_trellis(shard).find_best_paths()
        for _, at, rescue in self._rescue(corpus, logs):
            states[at] = (
                rescue.posteriors().argmax(axis=1) if method == "posterior" else rescue.path
            )
        return [self._tags.name_states(one) for one in np.split(states, shard.indptr[1:-1])]

    def predict_proba(self, sentences: Any, *, tags: Any = None) -> list[FloatArray]:
        """γ_i(k) = p(z_i = k | x) of each word, an array (words, states) for each sentence.

        If no states could have produced the sentence, it is that of the sequences of states which
        take the fewest impossible transitions and words: see `predict`.
        """
        self._require_fit()
        corpus = self._read(sentences, tags)
        counts = self._make_trellis(corpus.everything).expect(per_token=True)
        for _, at, rescue in self._rescue(corpus, counts.log_likelihoods):
            counts.posteriors[at] = rescue.posteriors()
        return np.split(counts.posteriors, corpus.everything.indptr[1:-1])

    def _make_trellis(self, shard: SentenceShard) -> Trellis:
        return self.core_.make_trellis(self.raw_params_, shard, self._threads)

    def posterior_sample(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, tags: Any = None
    ) -> list[list[Any]]:
        """n sequences of states for each sentence, drawn from their posterior.

        If no states could have produced the sentence: of those with the fewest impossible
        transitions and words, see `predict`.
        """
        check_whole("n", n)
        self._require_fit()
        corpus = self._read(sentences, tags)
        shard = corpus.everything
        stream = int(generator(random_state).integers(2**63))
        paths, logs = self._make_trellis(shard).draw_paths(stream, n)
        for number, at, rescue in self._rescue(corpus, logs):
            rng = np.random.default_rng([stream, number])
            paths[:, at] = [rescue.draw(rng) for _ in range(n)]
        cut = np.split(paths, shard.indptr[1:-1], axis=1)
        return [[self._tags.name_states(path) for path in some] for some in cut]

    def _rescue(
        self, corpus: SentenceCorpus, logs: FloatArray
    ) -> list[tuple[int, slice, FewestEvents]]:
        """Number, tokens and states of each sentence whose log p is −inf.

        Warns of those that are impossible, at the line where the user called a method.
        """
        hopeless = np.flatnonzero(~np.isfinite(logs))
        if not len(hopeless):
            return []
        some, whole = corpus.select(hopeless), corpus.everything
        chain = make_context_chain(self.core_.make_chain(self.raw_params_))
        table = np.asarray(self.raw_params_[EMISSIONS])
        likelihoods = self.core_.emission.log_likelihoods(table, some)
        allowed = some.states.allowed[some.sets]
        found, impossible = [], []
        for i, n in enumerate(hopeless.tolist()):
            own = slice(some.indptr[i], some.indptr[i + 1])
            rescue = FewestEvents(chain, likelihoods[own], allowed[own])
            found.append((n, slice(whole.indptr[n], whole.indptr[n + 1]), rescue))
            if rescue.n_events:  # if not, it is just too improbable for a float
                impossible.append(n)
        first = corpus.name(impossible[0]) if impossible else ""
        warn_of_impossible(impossible, len(corpus), self._units, first, RESCUED, stacklevel=3)
        return found

    def score_samples(self, sentences: Any, *, tags: Any = None) -> FloatArray:
        """log p of each sentence (and its tags, if some are given); −inf if it cannot be."""
        self._require_fit()
        trellis = self._make_trellis(self._read(sentences, tags).everything)
        return trellis.log_likelihoods() + trellis.offsets

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean log p of a sentence; ``y`` is not looked at (see `evaluate.tag_scores`)."""
        return float(self.score_samples(sentences).mean())

    def expected_counts(self, sentences: Any, *, tags: Any = None) -> dict[str, Any]:
        """Expected counts of all tables: what an E-step finds."""
        self._require_fit()
        shard = self._read(sentences, tags).everything
        how = EStep(threads=self._threads)
        return dict(self.core_.expect(self.raw_params_, shard, how).counts)

    # new sentences
    def _draw_states(
        self, n: int, random_state: Any, length: int | None
    ) -> Iterator[tuple[IntArray, np.random.Generator]]:
        """Draw the states of n new sentences, and the generator to draw their words from."""
        self._require_fit()
        check_whole("n", n, 0)
        if length is None and not self.core_.stop:
            raise DataError("without a stop distribution there is no end", "give length")
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
                    raise DataError("the model comes to an end before that", f"length < {length}")
                following = int(rng.choice(k + 1, p=probabilities / probabilities.sum()))
                if following == k:
                    break
                states.append(following)
            yield np.array(states), rng


class HMM(store.Saveable, HMMParameters, MarkovModel):
    """A hidden Markov model of words: every word has a hidden state, which depends on those before.

    p(w, z) = p(z_1) Π p(z_i | z_{i−1}) Π p(w_i | z_i) p(end | z_n) (Rabiner 1989).

    ``n_components``  how many states; None: as many as there are tags
    ``order``         1: a state depends on the one before; 2: on the two before
    ``stop``          whether sentences end with some probability, or just end
    ``smoothing``     added to all counts, and to the prior of learners that have one; a mapping
                      tells "transitions" (and starts) from "emissions"
    ``dictionary``    the tags that words may have: a mapping from words to tags
    ``open_tags``     what words that are not in the dictionary may have; None: any tag
    ``zero``          table → where its entries are zero for good
    ``frozen``        tables that stay as they begin; or table → which rows: a truth value for each,
                      or names of states (of order 2, pairs of them), or numbers of rows
    ``tied``          table → a number for each row: rows with the same number are one
    ``emissions``     "table": a probability for each word and state; words seen once speak for
                      unseen ones. "features": by what words look like (endings, case, digits), also
                      for unseen ones
    ``l2``            how strongly the features' weights are drawn to zero
    ``lowercase``     words in lower case
    ``dtype``         "float32": less exact E-steps, in half the time
    ``init``          "random"; "spectral": from moments of neighbouring words (order 1); or tables
                      as ``params_`` has them, some or all. If tags or a dictionary say something,
                      what they say is the start, else it is random. Emissions also as state →
                      {word: p}, or word → p for each state; other words share evenly what is left

    After `fit`: ``words_``, ``states_`` (names, if tags were given), ``params_``, ``trace_``.

    >>> sentences = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"]
    >>> model = HMM(3, random_state=1).fit(sentences)
    >>> first, second = model.predict(["the dog sleeps", "a cat barks"])
    >>> first == second, len(set(first))
    (True, 3)
    """

    _vocabulary: Vocabulary
    _frequencies: IntArray  # (words,): how often each was learned from

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
        self._frequencies = np.bincount(text.tokens, minlength=len(text.words))
        self.n_features_in_ = len(text.words)
        return self._make_core(), self._make_corpus(supervision, sample_weight)

    def _make_core(self) -> HMMCore:
        """Make the core, given the tags and the vocabulary."""
        k, v = self._tags.n_states, len(self._vocabulary.words)
        constraints = self._constrain()
        transitions, emissions = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        maximises = demand_prior(self._learner, min(transitions, emissions))
        # adding a to every count gives the mode under 1 + a, and the mean under a
        chain = make_chain_families(constraints, k, self.order, self.stop, transitions + maximises)
        emission: WordEmission
        if self.emissions == "features":
            constraints.check_unconstrained(EMISSIONS, "weights of features")
            features = WordFeatures(self._vocabulary.words, self._frequencies)
            emission = FeatureEmission(features, k, v, self.l2)
        else:
            table = constraints.make_family(EMISSIONS, (k, v), emissions + maximises)
            emission = WordEmission(table, (k, v))
        return HMMCore("HMM", chain, emission, k, self.order, self.stop, self.dtype)

    def _make_corpus(
        self, supervision: TagSupervision, sample_weight: Any = None
    ) -> SentenceCorpus:
        text = supervision.text.sequences
        weights = sentence_weights(sample_weight, len(text))
        new_words = text.words[len(self._vocabulary.words) :]
        shard = self._make_shard(text.tokens, text.indptr, supervision, weights, new_words)
        return SentenceCorpus(shard, text.name)

    def _read(self, sentences: Any, tags: Any = None) -> SentenceCorpus:
        if isinstance(sentences, Tagged):  # right answers are not for whoever is asked
            sentences = sentences.sequences
        return self._make_corpus(
            TagSupervision.read(sentences, tags, self._vocabulary, self.lowercase)
        )

    def _start_values(self, core: HMMCore, corpus: SentenceCorpus, init: Any) -> Any:
        frequencies = self._frequencies
        if isinstance(init, Mapping) and isinstance(init.get(EMISSIONS), Mapping):
            if self.emissions == "features":
                raise StartError(
                    "features begin with weights, not with probabilities of words",
                    "leave the emissions out, or use emissions='table'",
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
            raise LearnerError("there is no spectral start of order 2", "let init be random")
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
        """p(word | state), (states, words)."""
        return self._emission.table(self.raw_params_[EMISSIONS])

    # what learners may ask of it
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

    # what was learned
    @property
    def words_(self) -> list[str]:
        """The words learned from."""
        self._require_fit()
        return list(self._vocabulary.words)

    def emission_proba(self, words: Iterable[str] | None = None) -> FloatArray:
        """p(word | state), (states, words): of these words, or of all ``words_``.

        Words may be unseen ones; what `perplexity` says of these goes for them here. A dictionary
        of tags is not asked.

        >>> model = HMM(1).fit(["a dog", "a cat"])
        >>> model.emission_proba().tolist(), model.emission_proba(["a", "zebra"]).round(2).tolist()
        ([[0.5, 0.25, 0.25]], [[0.5, 0.5]])
        """
        self._require_fit()
        if words is None:
            return np.array(self._emission_table())
        if isinstance(words, str):
            raise DataError(f"words={brief(words)} is one text", "give a list of words")
        shard = self._read([list(words)]).everything
        emissions = self._make_trellis(shard).emissions
        return emissions.table[shard.rows, : self.core_.n_states].T.astype(float)

    def top_words(self, n: int = 10, with_proba: bool = False) -> list[Any]:
        """The most probable words of each state; ``with_proba``: as (word, p(word | state)).

        Fewer than n, if the others are ones that the state does not emit, or emits more by
        ``smoothing`` than by the text.
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
        """p(word | state), (states,), of a word that the text has so often in a state.

        p = (c + a) / (C + a V), with smoothing a; C, how often the state is there, as the tables
        expect it. 0 without smoothing: then any word is there by the text.
        """
        _, added = smoothings(self.smoothing, TRANSITIONS, EMISSIONS)
        if added == 0.0 or self.emissions == "features":
            return np.zeros(self.core_.n_states)
        occupancy = compute_occupancy(self.raw_params_, self.core_.n_states, self.order)
        tokens, v = occupancy * self._frequencies.sum(), len(self._frequencies)
        bounds: FloatArray = (count + added) / (tokens + added * v)
        return bounds

    def perplexity(self, sentences: Any) -> float:
        """exp of the negative log-likelihood of a word: exp(−Σ log p(sentence) / words).

        p(sentence) has the end of the sentence in it (unless ``stop=False``), but ends are not
        counted as words. It is infinite if one of the sentences cannot come about.

        An unseen word has a probability as if there were no other: with a table, each has that of
        all words seen once together, n₁/n, as states have these (10⁻⁹ in every state, if no word
        was seen once); with features, exp(v_k · f(w)) over the sum of all words seen, 1 at most.
        So p(word | state) sums to more than 1 over all words there are: compare models on words
        that all of them saw, or replace rare words by one name before learning.
        """
        self._require_fit()
        shard = self._read(sentences).everything
        logs = self._make_trellis(shard).log_likelihoods()
        return float(np.exp(-logs.sum() / max(shard.n_tokens, 1)))

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[list[tuple[str, Any]]]:
        """New sentences of (word, state); of this length, if the model cannot end by itself."""
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

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        model = super().restore(stored, **given)
        model._estimate_unseen()
        return model

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
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
            raise StoreError("the words, or how often they are there, make no sense", AGAIN)
        self._tags, self._frequencies = constraints, often.astype(np.int64)
        return self._make_core()


def _names_rows(given: Any) -> bool:
    """Whether ``tied`` or ``frozen``, in any of their forms, name any rows."""
    if isinstance(given, Mapping):
        return any(_names_rows(rows) for rows in given.values())
    if given is None or not isinstance(given, Iterable):
        return given is not None
    rows = list(given)
    if all(isinstance(row, bool | np.bool_) for row in rows):
        return any(rows)
    return bool(rows)


class GaussianHMM(store.Saveable, GaussianHMMParameters, MarkovModel):
    """A hidden Markov model of vectors: p(x_i | z_i = k) = N(x_i; μ_k, Σ_k).

    ``n_components``  how many states; None: as many as there are tags
    ``covariance``    "full", "tied", "diag" or "spherical"
    ``floor``         the least variance, as a share of the data's
    ``prior``         an `NIW`, for learners with priors; None: a weak one on the scale of the data
    ``smoothing``     added to counts of starts and transitions
    ``init``          "kmeans"; or {"means": …}, also with "covariances", as ``means_`` and
                      ``covariances_`` have them; or tables as ``params_`` has them. Tables that are
                      left out begin with the states that vectors then belong to

    For the other settings see `HMM`; transitions and starts are its, too. Sequences are arrays
    (length, dimensions).

    >>> rng = np.random.default_rng(0)
    >>> walks = [rng.normal([[0.0]] * 5 + [[9.0]] * 5) for _ in range(4)]
    >>> model = GaussianHMM(2).fit(walks)
    >>> sorted(model.means_[:, 0].round().tolist()), model.predict(walks)[0][4:6]
    ([-0.0, 9.0], [1, 0])
    """

    _starts: ClassVar[tuple[str, ...]] = ("kmeans", "random")
    _units: ClassVar[str] = "sequences"
    _smoothed: ClassVar[tuple[str, ...]] = (TRANSITIONS,)
    _offset: FloatArray  # (dimensions,): the mean of what was learned from

    # learning
    def _bind(
        self, sequences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, SentenceCorpus]:
        self._check_settings()
        points, indptr = _read_vectors(sequences)
        if not len(points):
            raise DataError("there is not a single vector in the sequences", "look at the data")
        weights = sentence_weights(sample_weight, len(indptr) - 1, MAX_POINT_WEIGHT)
        of_tokens = np.repeat(weights, np.diff(indptr))
        if not of_tokens.any():
            raise DataError("no vector counts: all of them have the weight 0", "look at the data")
        supervision = TagSupervision.read_for_vectors(np.diff(indptr), tags)
        self._tags = TagConstraints.make(supervision.names, self.n_components)
        self.n_features_in_ = points.shape[1]
        self._offset = np.average(points, axis=0, weights=of_tokens)
        family = self._make_family(points - self._offset, of_tokens)
        return self._make_core(family), self._make_corpus(points, indptr, supervision, weights)

    def _make_family(self, points: FloatArray, weights: FloatArray | None) -> Gaussian:
        """Make the Gaussians, as a mixture with the same settings does."""
        if not isinstance(self.prior, NIW | None):
            raise LearnerError(f"prior={brief(self.prior)}", "give an NIW, or None: a weak one")
        from softcount.mixture.points import GaussianMixture  # scikit-learn comes with it

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
        maximises = demand_prior(self._learner, transitions)
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
                f"the start has {', '.join([*centres, *init])}",
                f"give {starts.MEANS}, with {starts.COVARIANCES} or without, or {EMISSIONS} as "
                "params_ has them",
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

    # what was learned
    @property
    def means_(self) -> FloatArray:
        """The centre of each state, (states, dimensions)."""
        self._require_fit()
        means: FloatArray = self._family.means(self.raw_params_[EMISSIONS]) + self._offset
        return means

    @property
    def covariances_(self) -> FloatArray:
        """full, tied (states, D, D); diag (states, D); spherical (states,)"""
        self._require_fit()
        return self._family.covariances(self.raw_params_[EMISSIONS])

    @property
    def _family(self) -> Gaussian:
        return cast(Gaussian, self.core_.emission.family)

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[tuple[FloatArray, list[Any]]]:
        """New sequences, each with its states."""
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

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        tags, k = stored.meta["tags"], stored.meta["n_states"]
        strings(tags, len(tags), "tags")
        if not isinstance(k, int) or len(stored.arrays[store.TABLE + EMISSIONS]) != k:
            raise StoreError("the tables do not fit the states", AGAIN)
        self._check_settings()
        self._tags = TagConstraints.make(tags, k)
        self._offset = numbers(stored, "offset", (self.n_features_in_,), MAX_VALUE)
        family = self._make_family(np.zeros((0, self.n_features_in_)), None)
        table = numbers(stored, store.TABLE + EMISSIONS, family.param_shape)
        from softcount.mixture.points import demand_places, demand_shapes

        demand_places(table, self.n_features_in_)
        demand_shapes(family, table)
        return self._make_core(family)


def _read_vectors(sequences: Any, n_dims: int | None = None) -> tuple[FloatArray, IntArray]:
    """Read sequences: all vectors, (tokens, dimensions), and their borders, (sequences + 1,)."""
    if not isinstance(sequences, Iterable):
        raise DataError(f"the data are {brief(sequences)}", "give a list of arrays (length, dims)")
    parts = []
    for n, given in enumerate(sequences):
        try:
            part = np.asarray(given, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"sequence {n} is not numbers", "give arrays (length, dims)") from None
        if part.size and (part.ndim != 2 or not np.isfinite(part).all()):
            raise DataError(
                f"sequence {n} has the shape {part.shape}, or a value that is no number",
                "give arrays (length, dimensions) of finite numbers",
            )
        demand_values(part, f"sequence {n} has")
        parts.append(part if part.size else np.zeros((0, 0)))
    full = [part for part in parts if len(part)]
    if n_dims is None and not full:
        raise DataError("there is not a single vector in the sequences", "look at the data")
    wanted = full[0].shape[1] if n_dims is None else n_dims
    for n, part in enumerate(parts):
        if len(part) and part.shape[1] != wanted:
            raise DataError(
                f"sequence {n} has {part.shape[1]} dimensions, not {wanted}",
                "give vectors of one length",
            )
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    points = np.concatenate([np.zeros((0, wanted)), *full])
    return points, np.concatenate([np.zeros(1, np.int64), ends])
