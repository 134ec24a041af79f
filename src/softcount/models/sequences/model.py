"""What hidden Markov models offer once they have learned, whatever their states emit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self, Unpack

import numpy as np

from softcount.bounds import MAX_CLASSES
from softcount.errors import DataError, LearnerError, shown
from softcount.kernels import listed, packs
from softcount.kernels.pool import usable_cpus
from softcount.models.learnable import FitOptions, Learnable, all_or_nothing
from softcount.models.possible import warn_of_impossible
from softcount.models.sequences import fewest, passes
from softcount.models.sequences.core import MOVES, HMMCore
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.knowledge import TagKnowledge
from softcount.models.sequences.options import ChainOptions
from softcount.models.sequences.own_starts import completed, own_tables
from softcount.models.sequences.shards import Sentences, Shard
from softcount.models.sequences.tables import Rows
from softcount.models.settings import check_whole, generator, not_smoothed
from softcount.types import Array, How

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
