"""Hidden Markov models of words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from softcount import store
from softcount.corpus.numbering import Vocabulary
from softcount.corpus.tagged import Tagged
from softcount.errors import DataError, LearnerError, StartError, StoreError, shown
from softcount.models import files
from softcount.models.sequences import starts
from softcount.models.sequences.core import MOVES, HMMCore
from softcount.models.sequences.emissions import TABLE, Words, unseen_words
from softcount.models.sequences.features import FeatureWords, WordFeatures
from softcount.models.sequences.knowledge import TagKnowledge, Told
from softcount.models.sequences.model import MarkovModel
from softcount.models.sequences.own_starts import emissions_by_words
from softcount.models.sequences.shards import Sentences, Shard, sentence_weights
from softcount.models.sequences.tables import chain_families, says_something, visits
from softcount.models.settings import check_number, check_whole, demand_prior, smoothings
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array

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
