"""Hidden Markov models as users call them: `HMM` over words, `GaussianHMM` over vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from softcount import store
from softcount.bounds import MAX_CLASSES, MAX_POINT_WEIGHT, MAX_VALUE, demand_values
from softcount.corpus.numbering import Vocabulary
from softcount.corpus.tagged import Tagged
from softcount.errors import DataError, LearnerError, StartError, StoreError, shown
from softcount.families import Gaussian
from softcount.families.covariance import Full
from softcount.families.gaussian import NIW
from softcount.hmm import forward_backward as passes
from softcount.hmm import impossible as fewest
from softcount.hmm import starts
from softcount.hmm import starts as vector_starts
from softcount.hmm.core import (
    MOVES,
    TABLE,
    FeatureWords,
    HMMCore,
    Rows,
    WordFeatures,
    Words,
    chain_families,
    says_something,
    unseen_words,
    visits,
)
from softcount.hmm.data import Sentences, Shard, TagKnowledge, Told, sentence_weights
from softcount.hmm.kernels import lists as listed
from softcount.hmm.kernels import packs
from softcount.hmm.kernels.packs import padded
from softcount.hmm.starts import MEANS, SPREADS, completed, emissions_by_words, own_tables
from softcount.kernels.pool import usable_cpus
from softcount.mixture import GaussianMixture
from softcount.mixture.data import Points
from softcount.mixture.points import demand_places, demand_shapes
from softcount.models import files
from softcount.models.learnable import FitOptions, Learnable, all_or_nothing
from softcount.models.possible import warn_of_impossible
from softcount.models.settings import (
    check_number,
    check_whole,
    demand_prior,
    generator,
    not_smoothed,
    smoothings,
)
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array, How

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


@dataclass(eq=False, repr=False)
class ChainOptions:
    """How states follow each other, and how they are learned; see `HMM`."""

    n_states: int | None = None
    _: KW_ONLY
    order: int = 1
    stop: bool = True
    smoothing: float | Mapping[str, float] = 0.0
    zero: Mapping[str, Any] | None = None
    frozen: Any = None
    tied: Mapping[str, Any] | None = None
    dtype: str = "float64"
    init: Any = None
    learner: Learner | None = None
    engine: Engine | None = None
    random_state: Any = 0


# What hidden Markov models offer once they have learned, whatever their states emit.


DECODERS = ("viterbi", "posterior")
RESCUED = (
    "Such a one gets the states that take the fewest impossible moves and words. A model that is "
    "learned with smoothing, such as smoothing=0.01, holds nothing impossible"
)
MOST_MOVES = 1 << 28
"""A table of moves has so many entries at most: 2 GB."""


class MarkovModel(ChainOptions, Learnable):
    """A hidden Markov model as an estimator; a subclass says how sentences are read."""

    core_: HMMCore
    knowledge_: TagKnowledge
    n_iter_: int
    starts = ("random", "spectral")
    units = "sentences"
    """What messages call that which is learned from."""
    smoothed: tuple[str, ...] = (MOVES, TABLE)
    """The tables that smoothing is for."""

    # what subclasses say
    @abstractmethod
    def read(self, sentences: Any, tags: Any = None) -> Sentences:
        """New sentences, and what is known of their states."""

    @abstractmethod
    def bind(
        self, sentences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, Sentences]:
        """The core and the corpus."""

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

        For the other options see `softcount.models.learnable.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(sentences, tags, sample_weight)
            return self.learn(core, corpus, init, **options)

    def _rows(self) -> Rows:
        """What is said of the rows of tables."""
        return Rows.given(self.zero, self.frozen, self.tied, self.knowledge_)

    def _demand_room(self, n_states: int) -> None:
        """Complain of more states than any memory has room for."""
        if n_states ** (self.order + 1) > MOST_MOVES:
            raise LearnerError(
                f"{n_states:,} states of order {self.order} have too many moves",
                f"use {int((MOST_MOVES + 0.5) ** (1.0 / (self.order + 1))):,} states at most",
            )

    def bind_more(self, core: HMMCore, data: Any) -> Sentences:
        return self.read(data)

    def remember(self, corpus: Sentences) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1

    def lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, *self.smoothed)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_states is not None:
            check_whole("n_states", self.n_states, most=MAX_CLASSES)
        check_whole("order", self.order, 1, "1 or 2")
        if self.order > 2:
            raise LearnerError(f"order={self.order}", "1 or 2")
        if not isinstance(self.stop, bool | np.bool_):
            raise LearnerError(f"stop={shown(self.stop)}", "True or False")
        if self.dtype not in ("float64", "float32"):
            raise LearnerError(f"dtype={shown(self.dtype)} is unknown", "float64 or float32")

    # what was learned
    @property
    def states_(self) -> list[Any]:
        """The states: names of tags, as far as there are any, then numbers."""
        self._require_fit()
        return self.knowledge_.states

    def named(self, states: Array) -> list[Any]:
        """States as users call them."""
        return self.knowledge_.called(states)

    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; they may be given back as ``init``."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    @property
    def threads(self) -> int:
        """How many threads may be used: the engine's, if it says."""
        threads = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    # what it says of sentences
    def _ready(self, sentences: Any, tags: Any = None) -> tuple[Shard, Any, listed.Moves]:
        self._require_fit()
        return self._seen(self.read(sentences, tags).everything)

    def _seen(self, shard: Shard) -> tuple[Shard, Any, listed.Moves]:
        return shard, self.core_.emitted(self.raw_params_, shard), self._moves()

    def _moves(self) -> listed.Moves:
        return self.core_.moves(self.raw_params_)

    def predict(self, sentences: Any, *, tags: Any = None, method: str = "viterbi") -> list[Any]:
        """The states of each sentence.

        ``tags``    what is known of them already; see `HMM.fit`
        ``method``  "viterbi": the best sequence; "posterior": each word's own best state

        A sentence that no states could have produced, for each sequence of them has a move or a
        word of probability zero, gets one that has the fewest of these, and of such ones the most
        probable. Tags and the dictionary hold for it as for any other; entries in ``zero`` may have
        to give way. An `ImpossibleWarning` counts such sentences.
        """
        if method not in DECODERS:
            raise LearnerError(f"method={shown(method)} is unknown", f"choose {DECODERS}")
        self._require_fit()
        corpus = self.read(sentences, tags)
        shard, (emitted, _), moves = self._seen(corpus.everything)
        if method == "posterior":
            tally = self._posteriors(shard, emitted, moves)
            states, logs = tally.shares.argmax(axis=1), tally.logs
        else:
            (states,), logs = passes.best(shard, moves, emitted, self.threads)
        for _, at, one in self._rescued(corpus, logs):
            states[at] = one.shares().argmax(axis=1) if method == "posterior" else one.best[0]
        return [self.named(one) for one in np.split(states, shard.indptr[1:-1])]

    def _rescued(self, corpus: Sentences, logs: Array) -> list[tuple[int, slice, fewest.Sentence]]:
        """Sentences whose log p is −inf: their numbers, and where their tokens are. Warns of them,
        as if it were the function that called this one."""
        numbers = np.flatnonzero(~np.isfinite(logs))
        if not len(numbers):
            return []
        some, whole = corpus.select(numbers), corpus.everything
        chain = fewest.Chain(self._moves())
        emitted = self.core_.emission.logs(np.asarray(self.raw_params_[TABLE]), some)
        allowed = some.states.allowed[some.sets]
        found, impossible = [], []
        for i, n in enumerate(numbers.tolist()):
            own = slice(some.indptr[i], some.indptr[i + 1])
            one = fewest.Sentence(chain, emitted[own], allowed[own])
            found.append((n, slice(whole.indptr[n], whole.indptr[n + 1]), one))
            if one.best[1]:  # if not, it is just too improbable for a float
                impossible.append(n)
        first = corpus.name(impossible[0]) if impossible else ""
        warn_of_impossible(impossible, len(corpus), self.units, first, RESCUED, stacklevel=3)
        return found

    def _posteriors(
        self, shard: Shard, emitted: listed.Emitted, moves: listed.Moves
    ) -> packs.Tally:
        """Those of every token."""
        kind = (self.core_.dtype, self.threads)
        return passes.posteriors(shard, moves, emitted, *kind, of_tokens=True)

    def predict_proba(self, sentences: Any, *, tags: Any = None) -> list[Array]:
        """p(state | sentence) of each word, an array (words, states) for each sentence.

        If no states could have produced the sentence, it is that of the sequences of states which
        take the fewest impossible moves and words: see `predict`.
        """
        self._require_fit()
        corpus = self.read(sentences, tags)
        shard, (emitted, _), moves = self._seen(corpus.everything)
        tally = self._posteriors(shard, emitted, moves)
        for _, at, one in self._rescued(corpus, tally.logs):
            tally.shares[at] = one.shares()
        return np.split(tally.shares, shard.indptr[1:-1])

    def posterior_sample(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, tags: Any = None
    ) -> list[list[Any]]:
        """n sequences of states for each sentence, drawn from their posterior.

        If no states could have produced the sentence: of those with the fewest impossible moves and
        words, see `predict`.
        """
        check_whole("n", n)
        self._require_fit()
        corpus = self.read(sentences, tags)
        shard, (emitted, _), moves = self._seen(corpus.everything)
        stream = int(generator(random_state).integers(2**63))
        paths, logs = passes.drawn(shard, moves, emitted, stream, n, self.threads)
        for number, at, one in self._rescued(corpus, logs):
            rng = np.random.default_rng([stream, number])
            paths[:, at] = [one.drawn(rng) for _ in range(n)]
        cut = np.split(paths, shard.indptr[1:-1], axis=1)
        return [[self.named(path) for path in some] for some in cut]

    def score_samples(self, sentences: Any, *, tags: Any = None) -> Array:
        """log p of each sentence (and its tags, if some are given); −inf if it cannot be."""
        return self._scored(sentences, tags)[0]

    def _scored(self, sentences: Any, tags: Any = None) -> tuple[Array, int]:
        """log p of each sentence, and how many words all of them have."""
        shard, (emitted, added), moves = self._ready(sentences, tags)
        found = passes.logs(shard, moves, emitted, self.core_.dtype, self.threads)
        return found + added, shard.n_tokens

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean log p of a sentence; ``y`` is not looked at (see `evaluate.tag_scores`)."""
        return float(self.score_samples(sentences).mean())

    # new sentences
    def _drawn_states(self, length: int | None, rng: np.random.Generator) -> list[int]:
        """Hidden states of a new sentence: until it ends, or so many."""
        moves, k = self._moves(), self.core_.n_states
        states = [int(rng.choice(k, p=moves.start / moves.start.sum()))]
        while length is None or len(states) < length:
            row = states[-1]
            if self.order == 2:
                row += k * (states[-2] if len(states) > 1 else k)
            chances = np.append(moves.table[row], moves.stop[row] if length is None else 0.0)
            if not chances.any():
                raise DataError("the model comes to an end before that", f"length < {length}")
            following = int(rng.choice(k + 1, p=chances / chances.sum()))
            if following == k:
                break
            states.append(following)
        return states

    def _asked(self, n: int, length: int | None, random_state: Any) -> np.random.Generator:
        """Random numbers for new sentences, if such can be made."""
        self._require_fit()
        check_whole("n", n, 0)
        if length is None and not self.core_.stop:
            raise DataError("without a stop distribution there is no end", "give length")
        if length is not None:
            check_whole("length", length)
        return generator(random_state)

    def start_values(self, core: HMMCore, corpus: Sentences, init: Any) -> Any:
        if isinstance(init, Mapping):
            given = own_tables(core, init, self._rows())
            return completed(core, given, self.start_values(core, corpus, None))
        if init is None or (isinstance(init, str) and init == "random"):
            return lambda rng: {name: f.random(rng) for name, f in core.families.items()}
        hint = f"{', '.join(self.starts)}, or tables as params_ has them"
        raise LearnerError(f"init={shown(init)} is not known here", hint)

    def expected(self, sentences: Any, *, tags: Any = None) -> dict[str, Any]:
        """Expected counts of all tables: what an E-step finds."""
        self._require_fit()
        shard = self.read(sentences, tags).everything
        how = How(threads=self.threads)
        return dict(self.core_.expect(self.raw_params_, shard, how).counts)


# Hidden Markov models of words.


EMISSIONS = ("table", "features")


@dataclass(eq=False, repr=False)
class HMM(files.Stored, MarkovModel):
    """A hidden Markov model of words: every word has a hidden state, which depends on those before.

    p(w, z) = p(z_1) Π p(z_i | z_{i−1}) Π p(w_i | z_i) p(end | z_n).

    ``n_states``    how many states; None: as many as there are tags
    ``order``       1: a state depends on the one before; 2: on the two before
    ``stop``        whether sentences end with some probability, or just end
    ``smoothing``   added to all counts, and to the prior of learners that have one; a mapping tells
                    "transitions" (and starts) from "emissions"
    ``dictionary``  the tags that words may have: a mapping from words to tags
    ``open_tags``   what words that are not in the dictionary may have; None: any tag
    ``zero``        table → where its entries are zero for good
    ``frozen``      tables that stay as they begin; or table → which rows: a truth value for each,
                    or names of states (of order 2, pairs of them), or numbers of rows
    ``tied``        table → a number for each row: rows with the same number are one
    ``emissions``   "table": a probability for each word and state; words seen once speak for unseen
                    ones. "features": by what words look like (endings, case, digits), also for
                    unseen ones
    ``l2``          how strongly the features' weights are drawn to zero
    ``lowercase``   words in lower case
    ``dtype``       "float32": less exact E-steps, in half the time
    ``init``        "random"; "spectral": from moments of neighbouring words (order 1); or tables
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

    _: KW_ONLY
    dictionary: Any = None
    open_tags: Any = None
    emissions: str = "table"
    l2: float = 0.1
    lowercase: bool = False

    # learning
    def bind(
        self, sentences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, Sentences]:
        """The core and the corpus."""
        self._check_settings()
        told = Told.of(sentences, tags, None, self.lowercase)
        text = told.text.sequences
        if not len(text.tokens):
            raise DataError("there is not a single word in the sentences", "look at the data")
        self.knowledge_ = self._known(told.names, self.n_states)
        self.vocabulary_ = Vocabulary(text.words)
        self.often_ = np.bincount(text.tokens, minlength=len(text.words))
        self.n_features_in_ = len(text.words)
        return self.made_core(), self._corpus(told, sample_weight)

    def _known(self, tags: Iterable[str], n_states: int | None) -> TagKnowledge:
        given = (self.dictionary, self.open_tags, self.lowercase)
        return TagKnowledge.of(tags, n_states, *given)

    def made_core(self) -> HMMCore:
        """The core for as many states and words."""
        k, v = self.knowledge_.n_states, len(self.vocabulary_.words)
        self._demand_room(k)
        rows = self._rows()
        moves, emissions = smoothings(self.smoothing, MOVES, TABLE)
        maximises = demand_prior(self.learner, min(moves, emissions))
        chain = chain_families(rows, k, self.order, self.stop, moves + maximises)
        if self.emissions == "features":
            rows.demand_nothing_of(TABLE, "weights of features")
            features = WordFeatures(self.vocabulary_.words, self.often_)
            emission: Words = FeatureWords(features, k, v, self.l2)
        else:
            emission = Words(rows.table(TABLE, (k, v), emissions + maximises), (k, v))
        return HMMCore("HMM", chain, emission, k, self.order, self.stop, self.dtype)

    def lacks_sampler(self) -> str:
        if self.emissions == "features":
            return f"{self.called} has no collapsed sampler for emissions='features'"
        fixed = [name for name in ("tied", "frozen") if says_something(getattr(self, name))]
        if fixed:
            return f"{self.called} has no collapsed sampler for {fixed[0]} rows"
        zero = self.zero if isinstance(self.zero, Mapping) else {}
        if any(np.any(where) for name, where in zero.items() if name != TABLE):
            return f"{self.called} has no collapsed sampler for zeros among moves"
        return ""

    def solutions(self) -> Collection[str]:
        return ("spectral",) if self.order == 1 else ()

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.emissions not in EMISSIONS:
            raise LearnerError(
                f"emissions={shown(self.emissions)} is unknown", f"choose {', '.join(EMISSIONS)}"
            )
        check_number("l2", self.l2, "0.1 is usual")

    def _corpus(self, told: Told, sample_weight: Any = None) -> Sentences:
        text = told.text.sequences
        sets, states = self.knowledge_.sets(told)
        new = text.words[len(self.vocabulary_.words) :]
        known = (sets, states, sentence_weights(sample_weight, len(text)), new)
        shard = Shard(np.arange(len(text)), text.tokens, text.indptr, *known)
        return Sentences(shard, text.name)

    def read(self, sentences: Any, tags: Any = None) -> Sentences:
        if isinstance(sentences, Tagged):  # right answers are not for whoever is asked
            sentences = sentences.sequences
        return self._corpus(Told.of(sentences, tags, self.vocabulary_, self.lowercase))

    def remember(self, corpus: Sentences) -> None:
        super().remember(corpus)
        self._see_rare_words()

    def _see_rare_words(self) -> None:
        """Words seen once speak for those never seen."""
        if self.emissions != "features":
            table = self._emissions()
            share = visits(self.raw_params_, len(table), self.order)
            self._words.unseen = unseen_words(table, share, self.often_)

    @property
    def _words(self) -> Words:
        emission = self.core_.emission
        assert isinstance(emission, Words)
        return emission

    def _emissions(self) -> Array:
        """p(word | state), (states, words)."""
        return self._words.table(self.raw_params_[TABLE])

    def perplexity(self, sentences: Any) -> float:
        """exp of the negative log-likelihood a word: exp(−Σ log p(sentence) / words).

        p(sentence) has the end of the sentence in it (unless ``stop=False``), but ends are not
        counted as words. It is infinite if one of the sentences cannot come about.

        An unseen word has a probability as if there were no other: with a table, each has that of
        all words seen once together, n₁/n, as states have these (10⁻⁹ in every state, if no word
        was seen once); with features, exp(v_k · f(w)) over the sum of all words seen, 1 at most.
        So p(word | state) sums to more than 1 over all words there are: compare models on words
        that all of them saw, or replace rare words by one name before learning.
        """
        logs, n_tokens = self._scored(sentences)
        return float(np.exp(-logs.sum() / max(n_tokens, 1)))

    def start_values(self, core: HMMCore, corpus: Sentences, init: Any) -> Any:
        if isinstance(init, Mapping):
            init = self._with_table(core, init)
        if init is None and corpus.everything.sets.any():
            return lambda rng: starts.informed(core, corpus, self.often_, rng)
        if not isinstance(init, str) or init != "spectral":
            return super().start_values(core, corpus, init)
        if self.order == 2:
            raise LearnerError("there is no spectral start of order 2", "let init be random")
        return lambda rng: starts.spectral(core, corpus.everything, self.often_, rng)

    def _with_table(self, core: HMMCore, init: Mapping[str, Any]) -> Mapping[str, Any]:
        """A start whose emissions are a table, not a mapping."""
        given = init.get(TABLE)
        if not isinstance(given, Mapping):
            return init
        if self.emissions == "features":
            raise StartError(
                "features begin with weights, not with probabilities of words",
                "leave the emissions out, or use emissions='table'",
            )
        possible = core.families[TABLE].uniform() > 0.0
        known = (self.knowledge_, self.vocabulary_, self.lowercase)
        return {**init, TABLE: emissions_by_words(given, possible, *known)}

    # names
    @property
    def words_(self) -> list[str]:
        """The words learned from."""
        self._require_fit()
        return list(self.vocabulary_.words)

    def emission_proba(self, words: Iterable[str] | None = None) -> Array:
        """p(word | state), (states, words): of these words, or of all ``words_``.

        Words may be unseen ones; what `perplexity` says of these goes for them here. A dictionary
        of tags is not asked.

        >>> model = HMM(1).fit(["a dog", "a cat"])
        >>> model.emission_proba().tolist(), model.emission_proba(["a", "zebra"]).round(2).tolist()
        ([[0.5, 0.25, 0.25]], [[0.5, 0.5]])
        """
        self._require_fit()
        if words is None:
            return np.array(self._emissions())
        if isinstance(words, str):
            raise DataError(f"words={shown(words)} is one text", "give a list of words")
        shard = self.read([list(words)]).everything
        emitted, _ = self.core_.emitted(self.raw_params_, shard)
        chances: Array = emitted.table[shard.rows, : self.core_.n_states].T
        return chances.astype(float)

    def top_words(self, n: int = 10, with_proba: bool = False) -> list[Any]:
        """The most probable words of each state; ``with_proba``: as (word, p(word | state)).

        Fewer than n, if the others are ones that the state has not, or has more by ``smoothing``
        than by the text.
        """
        self._require_fit()
        check_whole("n", n)
        table, least, words = self._emissions(), self._smoothed(), self.vocabulary_.words
        order = np.argsort(-table, axis=1, kind="stable")[:, :n].tolist()
        tops = [
            [(words[w], float(table[k, w])) for w in row if table[k, w] > least[k]]
            for k, row in enumerate(order)
        ]
        return tops if with_proba else [[word for word, _ in top] for top in tops]

    def _smoothed(self) -> Array:
        """p(word | state) of words that smoothing a counts for as much as the text, for each state.

        p = (c + a) / (C + a V) at c = a; C, how often the state is there, as the tables foresee it.
        """
        _, added = smoothings(self.smoothing, MOVES, TABLE)
        if added == 0.0 or self.emissions == "features":
            return np.zeros(self.core_.n_states)
        share = visits(self.raw_params_, self.core_.n_states, self.order)
        least: Array = 2.0 * added / (share * self.often_.sum() + added * len(self.often_))
        return least

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[list[tuple[str, Any]]]:
        """New sentences of (word, state); of this length, if the model cannot end by itself."""
        rng = self._asked(n, length, random_state)
        table = self._emissions()
        made = []
        for _ in range(n):
            states = np.array(self._drawn_states(length, rng))
            words = [rng.choice(len(row), p=row / row.sum()) for row in table[states]]
            texts = [self.vocabulary_.words[w] for w in words]
            made.append(list(zip(texts, self.named(states), strict=True)))
        return made

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        facts = {"words": list(self.vocabulary_.words), "tags": list(self.knowledge_.names)}
        return {"often": self.often_}, {**facts, "n_states": int(self.knowledge_.n_states)}

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        model = super().restore(stored, **given)
        model._see_rare_words()
        return model

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        n = self.n_features_in_
        words, tags = stored.meta["words"], stored.meta["tags"]
        strings(words, n, "words")
        strings(tags, len(tags), "tags")
        k = stored.meta["n_states"]
        self._check_settings()
        table, moves = (stored.arrays[files.TABLE + name] for name in (TABLE, MOVES))
        fits = table.size > k * n if self.emissions == "features" else table.shape == (k, n)
        if not isinstance(k, int) or not fits or len(moves) != k**self.order:
            raise StoreError("the tables do not fit the states and words", AGAIN)
        self.vocabulary_ = Vocabulary(words)
        known = self._known(tags, k)
        if list(known.names) != tags:
            raise StoreError("the tags and the dictionary do not fit together", AGAIN)
        often = numbers(stored, "often", (n,))
        if "" in words or len(set(words)) != n or often.min() < 1 or (often % 1).any():
            raise StoreError("the words, or how often they are there, make no sense", AGAIN)
        self.knowledge_, self.often_ = known, often.astype(np.int64)
        return self.made_core()


# Hidden Markov models of vectors: every state scatters them about a centre of its own.


class Vectors:
    """Each token is a vector, scattered about the centre of its state."""

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        logs = self.logs(params, shard)
        peaks = logs.max(axis=1, initial=-np.inf)
        peaks = np.where(np.isfinite(peaks), peaks, 0.0)
        return padded(np.exp(logs - peaks[:, None]), np.float64), peaks

    def logs(self, params: Array, shard: Shard) -> Array:
        points = Points(shard.observed)
        return self.family.log_density(params, points.x, points.outer(self.family.form))

    def counts(self, shard: Shard, shares: Array) -> Array:
        points = Points(shard.observed)
        return self.family.statistics(points.x, shares, points.outer(self.family.form))

    def magnitude(self, params: Array, shard: Shard) -> float:
        """Σ w xᵀ P x, as of mixtures of points; full covariances go by differences."""
        if isinstance(self.family.form, Full):
            return 0.0
        return float(np.sum(shard.squares * self.family.precisions(params).max(axis=0)))


@dataclass(eq=False, repr=False)
class GaussianHMM(files.Stored, MarkovModel):
    """A hidden Markov model of vectors: p(x_i | z_i = k) = N(x_i; μ_k, Σ_k).

    ``n_states``    how many states; None: as many as there are tags
    ``covariance``  "full", "tied", "diag" or "spherical"
    ``floor``       the least variance, as a share of the data's
    ``prior``       an `NIW`, for learners with priors; None: a weak one on the scale of the data
    ``smoothing``   added to counts of starts and transitions
    ``init``        "kmeans"; or {"means": …}, also with "covariances", as ``means_`` and
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

    _: KW_ONLY
    covariance: str = "full"
    floor: float = 1e-6
    prior: NIW | None = None
    starts = ("kmeans", "random")
    units = "sequences"
    smoothed = (MOVES,)

    # learning
    def bind(
        self, sequences: Any, tags: Any = None, sample_weight: Any = None
    ) -> tuple[HMMCore, Sentences]:
        """The core and the corpus."""
        self._check_settings()
        points, indptr = _points(sequences)
        if not len(points):
            raise DataError("there is not a single vector in the sequences", "look at the data")
        weights = sentence_weights(sample_weight, len(indptr) - 1, MAX_POINT_WEIGHT)
        of_tokens = np.repeat(weights, np.diff(indptr))
        if not of_tokens.any():
            raise DataError("no vector counts: all of them have the weight 0", "look at the data")
        told = Told.of_vectors(np.diff(indptr), tags)
        self.knowledge_ = TagKnowledge.of(told.names, self.n_states)
        self.n_features_in_ = points.shape[1]
        self.offset_ = np.average(points, axis=0, weights=of_tokens)
        family = self._gaussian(points - self.offset_, of_tokens)
        return self.made_core(family), self._corpus(points, indptr, told, weights)

    def _gaussian(self, points: Array, weights: Array | None) -> Gaussian:
        if self.covariance not in ("full", "tied", "diag", "spherical"):
            raise LearnerError(
                f"covariance={self.covariance!r} is unknown", "full, tied, diag or spherical"
            )
        if not isinstance(self.prior, NIW | None):
            raise LearnerError(f"prior={shown(self.prior)}", "give an NIW, or None: a weak one")
        k: Any = self.knowledge_.n_states
        like = GaussianMixture(
            k,
            covariance=self.covariance,  # type: ignore[arg-type]
            floor=self.floor,
            prior=self.prior,
            learner=self.learner,
        )
        return like.gaussian(Points(points), weights)

    def made_core(self, family: Gaussian) -> HMMCore:
        """The core for such emissions."""
        k = self.knowledge_.n_states
        self._demand_room(k)
        moves, _ = smoothings(self.smoothing, MOVES, TABLE)
        maximises = demand_prior(self.learner, moves)
        rows = self._rows()
        rows.demand_nothing_of(TABLE, "Gaussians of states")
        chain = chain_families(rows, k, self.order, self.stop, moves + maximises)
        kind = (k, self.order, self.stop, self.dtype)
        return HMMCore("GaussianHMM", chain, Vectors(family), *kind)

    def _corpus(self, points: Array, indptr: Array, told: Told, weights: Array) -> Sentences:
        sets, states = self.knowledge_.sets(told)
        shifted = points - self.offset_
        shard = Shard(np.arange(len(weights)), shifted, indptr, sets, states, weights)
        return Sentences(shard, lambda n: f"sequence {n}")

    def read(self, sentences: Any, tags: Any = None) -> Sentences:
        points, indptr = _points(sentences, self.n_features_in_)
        told = Told.of_vectors(np.diff(indptr), tags)
        return self._corpus(points, indptr, told, np.ones(len(indptr) - 1))

    def start_values(self, core: HMMCore, corpus: Sentences, init: Any) -> Any:
        if isinstance(init, Mapping):
            return self._own_start(core, corpus.everything, init)
        if init is None or (isinstance(init, str) and init == "kmeans"):
            return lambda rng: vector_starts.clustered(core, corpus.everything, rng)
        return super().start_values(core, corpus, init)

    def _own_start(self, core: HMMCore, shard: Shard, init: Mapping[str, Any]) -> Any:
        """Tables that are given; the others as vectors say that belong to states so far."""
        init = dict(init)
        centres = {name: init.pop(name) for name in (MEANS, SPREADS) if name in init}
        if centres and (TABLE in init or MEANS not in centres):
            raise StartError(
                f"the start has {', '.join([*centres, *init])}",
                f"give {MEANS}, with {SPREADS} or without, or {TABLE} as params_ has them",
            )
        tables = own_tables(core, init, self._rows()) if init or not centres else {}
        if centres:
            labels, tables[TABLE] = vector_starts.about(core, shard, self.offset_, **centres)
        elif TABLE in tables:
            labels = vector_starts.likeliest(core, shard, tables[TABLE])
        else:
            return completed(core, tables, lambda rng: vector_starts.clustered(core, shard, rng))
        return {**vector_starts.counted(core, shard, labels), **tables}

    # what was learned
    @property
    def means_(self) -> Array:
        """The centre of each state, (states, dimensions)."""
        self._require_fit()
        means: Array = self._family.means(self.raw_params_[TABLE]) + self.offset_
        return means

    @property
    def covariances_(self) -> Array:
        """full, tied (states, D, D); diag (states, D); spherical (states,)"""
        self._require_fit()
        return self._family.covariances(self.raw_params_[TABLE])

    @property
    def _family(self) -> Gaussian:
        family = self.core_.emission.family
        assert isinstance(family, Gaussian)
        return family

    def generate(
        self, n: int = 1, random_state: Any = 0, *, length: int | None = None
    ) -> list[tuple[Array, list[Any]]]:
        """New sequences, each with its states."""
        rng = self._asked(n, length, random_state)
        family, table = self._family, self.raw_params_[TABLE]
        made = []
        for _ in range(n):
            states = np.array(self._drawn_states(length, rng))
            noise = rng.standard_normal((len(states), family.n_dims))
            spread = family.form.whitened(noise, family.precisions(table)[states])
            made.append((self.means_[states] + spread, self.named(states)))
        return made

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        facts = {"tags": list(self.knowledge_.names), "n_states": self.knowledge_.n_states}
        return {"offset": self.offset_}, facts

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> HMMCore:
        tags, k = stored.meta["tags"], stored.meta["n_states"]
        strings(tags, len(tags), "tags")
        if not isinstance(k, int) or len(stored.arrays[files.TABLE + TABLE]) != k:
            raise StoreError("the tables do not fit the states", AGAIN)
        self._check_settings()
        self.knowledge_ = TagKnowledge.of(tags, k)
        self.offset_ = numbers(stored, "offset", (self.n_features_in_,), MAX_VALUE)
        family = self._gaussian(np.zeros((0, self.n_features_in_)), None)
        table = numbers(stored, files.TABLE + TABLE, family.param_shape)
        demand_places(table, self.n_features_in_)
        demand_shapes(family, table)
        return self.made_core(family)


def _points(sequences: Any, n_dims: int | None = None) -> tuple[Array, Array]:
    """All vectors, one sequence after the other, and where sequences begin."""
    if not isinstance(sequences, Iterable):
        raise DataError(f"the data are {shown(sequences)}", "give a list of arrays (length, dims)")
    parts = [_part(n, given) for n, given in enumerate(sequences)]
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


def _part(n: int, given: Any) -> Array:
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
    return part if part.size else np.zeros((0, 0))
