"""How topic models learn: from documents in memory or on disk, all at once or as they come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse

from softcount import store
from softcount.bounds import MAX_CLASSES, MAX_RUNS
from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError, StoreError
from softcount.families.columns import Columns
from softcount.job import open_session
from softcount.models import files
from softcount.models.base import Estimator, FitOptions, all_or_nothing, naming
from softcount.models.ignored import warn_of_ignored
from softcount.models.reading import ReadsWords
from softcount.models.settings import check_whole
from softcount.models.stored import AGAIN, numbers
from softcount.models.topics import retrieval
from softcount.models.topics.anchors import anchor_topics
from softcount.models.topics.core import DOCUMENTS, TopicCore
from softcount.models.topics.documents import (
    Archived,
    Corpus,
    Documents,
    each_shard,
    with_all_words,
    word_counts,
)
from softcount.models.topics.guidance import columns_of, frozen_topics, seed_counts
from softcount.models.topics.labels import known_topics
from softcount.models.topics.rows import RowPrior
from softcount.online import Progress, learn_more, online, signature
from softcount.types import Array, Fit, How, Params, Update

FEW, FEW_SCOUTS = 2000, 3
"""Starts are tried for so few documents; more are much alike, and one is warmed up."""

PRECISIONS = ("float64", "float32")
FOR_LABELS = "What is known of documents' topics is given as labels= (-1 where nothing is known)"


class TopicLearner(ReadsWords, files.Stored, Estimator):
    """A topic model as far as learning goes; what it is good for is in `TopicModel`."""

    core_: TopicCore
    n_topics: int
    seeds: Any
    seed_strength: float
    frozen: Any
    dtype: str
    scouts: int | None  # type: ignore[assignment]
    documents_: Array
    """p(topic | document) of the documents learned from, (documents, topics).

    For learners to which documents' rows are parameters as topics are (EM, HardEM, MonteCarloEM,
    IncrementalEM, VariationalBayes), these are the rows of learning's last state: what belongs to
    ``topics_`` and to the last entry of ``trace_``, whether learning had come to an end or not.
    For others (OnlineEM and StochasticVB, `partial_fit`, samplers, and `TemperedEM`, which keeps
    some words from learning) they are folded in, as `transform` does: the topics stay as they are.
    """
    weights_: Array
    """Each topic's share of all words."""
    _findable: Corpus | None
    _index: retrieval.Index | None
    temper_: float
    """The power of posteriors that learning ended with, and documents are folded in with."""

    @abstractmethod
    def priors(self) -> tuple[float, float]:
        """What is added to every count of a topic in a document, and of a word in a topic."""

    holds_out = True
    learns_priors = True

    def lacks_sampler(self) -> str:
        frozen = self.frozen is not None and len(self.frozen)
        return f"a collapsed sampler of {self.called} cannot hold topics frozen" if frozen else ""

    @property
    def topics_(self) -> Array:
        """p(word | topic), (topics, words)."""
        self._require_fit()
        table: Array = self.raw_params_["topics"]
        return table

    @property
    def doc_prior_(self) -> Array:
        """What is added to every count of a topic in a document; one number a topic."""
        self._require_fit()
        rows = self.core_.rows
        return rows.alpha - (rows.word == "maximise")

    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        *,
        labels: Any = None,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from documents: texts, lists of words, counts, or an `Archive`.

        ``y``       is not looked at, and warned of if there is any: topics are no classes
        ``labels``  what is known of each document's topics: a topic, -1 for nothing, or a list of
                    the topics that it may have

        For the other options see `softcount.models.base.FitOptions`.
        """
        warn_of_ignored(self, y, FOR_LABELS)
        with all_or_nothing(self):
            self._forget()
            core, corpus = self.bind(X, labels)
            return self.learn(core, corpus, init, **options)

    def bind(self, X: Any, labels: Any = None) -> tuple[TopicCore, Corpus]:
        """The core and the corpus."""
        self._check_settings()
        corpus = self._corpus(X, labels, first=True)
        if not corpus.tokens:
            raise DataError(
                "there is nothing to learn from: every document is empty", "look at the counts"
            )
        self._guidance(corpus)
        return self._made_core(self.n_features_in_), corpus

    def bind_more(self, core: TopicCore, X: Any) -> Corpus:
        return self._corpus(X, None, first=False)

    def _corpus(self, X: Any, labels: Any, *, first: bool) -> Corpus:
        if isinstance(X, Archive):
            self.adopt(X, first=first)
            return Archived(X, known_topics(labels, len(X), self.n_topics))
        bags = self.read(X, first=first)
        known = known_topics(labels, len(bags), self.n_topics)
        held_out = self.learner.schedule.held_out if self.learner and first else 0.0
        return Documents(bags, known, held_out=held_out)

    def _guidance(self, corpus: Corpus) -> None:
        """What the settings say of topics, in terms of these words."""
        self.seeds_ = self.frozen_ = None
        if self.seeds is None and self.frozen is None:
            return
        words = columns_of(self.word_names())
        if self.seeds is not None:
            often = word_counts(corpus)
            self.seeds_ = seed_counts(self.seeds, self.seed_strength, often, words, self.n_topics)
        if self.frozen is not None:
            self.frozen_ = frozen_topics(self.frozen, words, self.n_topics)

    def n_scouts(self, corpus: Corpus, start: Any) -> int:
        if self.scouts is not None:
            return self.scouts
        return FEW_SCOUTS if len(corpus) <= FEW and callable(start) else 1

    def _check_settings(self) -> None:
        self._check_words()
        check_whole("n_topics", self.n_topics, most=MAX_CLASSES)
        if self.scouts is not None:
            check_whole("scouts", self.scouts, 0, "0: none; 1: a warm-up", MAX_RUNS)
        if self.dtype not in PRECISIONS:
            raise LearnerError(f"dtype={self.dtype!r} is unknown", "float64 or float32")

    @property
    def _word(self) -> Update:
        return "maximise" if self.learner is None else self.learner.m

    def _made_core(self, n_words: int) -> TopicCore:
        of_documents, of_words = (a + (self._word == "maximise") for a in self.priors())
        seeded = 0.0 if self.seeds_ is None else self.seeds_.toarray()
        held = None if self.frozen_ is None else np.arange(self.n_topics) < len(self.frozen_)
        topics = Columns((self.n_topics, n_words), of_words + seeded, frozen=held)
        rows = RowPrior(np.full(self.n_topics, of_documents), self._word)
        return TopicCore(type(self).__name__, topics, rows, dtype=self.dtype)

    def start_values(self, core: TopicCore, corpus: Corpus, init: Any) -> Any:
        if init is None:
            init = "anchors" if self._one_start_will_do(corpus) else "random"
        if isinstance(init, Mapping):
            return self._guided(core.params(init))
        if isinstance(init, str) and init == "random":
            often = word_counts(corpus)
            return lambda rng: self._guided(_random(core, often, rng))
        if isinstance(init, str) and init == "anchors":
            rng = np.random.default_rng(self._seed())
            return self._guided({"topics": anchor_topics(corpus.shards(), core.n_topics, rng)})
        raise LearnerError(
            f"init={init!r} is not known here", "choose 'random' or 'anchors', or give tables"
        )

    def _one_start_will_do(self, corpus: Corpus) -> bool:
        """Whether EM is to climb, once, to topics whose numbers mean nothing."""
        known = (self.seeds, self.frozen, corpus.known, self.scouts or None)
        learner = self.learner
        climbs = learner is None or (
            (learner.e, learner.m, learner.n_init) == ("soft", "maximise", 1)
            and learner.schedule.batch_size is None
        )
        return climbs and all(each is None for each in known)

    def _guided(self, params: Params) -> Params:
        """A start that begins with the seeds where they belong, and with frozen topics."""
        topics = np.array(params["topics"])
        if self.seeds_ is not None:
            seeded = self.seeds_.toarray() > 0
            topics[:, seeded.any(axis=0)] *= 0.1
            topics += 10.0 * seeded * np.asarray(params["topics"])
            topics /= topics.sum(axis=1, keepdims=True)
        if self.frozen_ is not None:
            topics[: len(self.frozen_)] = self.frozen_
        return {"topics": topics}

    def own_params(self, core: TopicCore, corpus: Corpus, given: Any) -> Params:
        """Tables as arrays; rows of documents, if there are such, must be those of the corpus."""
        params = core.params(given)
        rows = params.get(DOCUMENTS)
        if rows is not None and len(rows) != len(corpus):
            raise DataError(
                f"there are {len(corpus)} documents, and topics of {len(rows)}",
                "give the documents that the rows belong to, or the topics alone",
            )
        return params

    def keep(self, core: TopicCore, corpus: Corpus, found: Fit) -> None:
        if found.priors:
            core.rows = RowPrior(found.priors["documents"], self._word)
        super().keep(core, corpus, found)

    def keeps_local(self, corpus: Corpus) -> bool:
        """Whether the documents' rows are part of what is learned, and are kept: see documents_."""
        if self.learner is None:
            return True
        schedule = self.learner.schedule
        return not (self.learner.m == "draw" or schedule.held_out or schedule.shuffles)

    def remember(self, corpus: Corpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self.temper_ = self.fit_.trace[-1].temper
        lengths = self._take_documents(corpus, self.fit_.local.get(DOCUMENTS))
        self.weights_ = lengths @ self.documents_ / lengths.sum()

    def _take_documents(self, corpus: Corpus, rows: Array | None = None) -> Array:
        """Keep the documents' rows (or fold them in), and remember where they can be found.

        Gives how long they are.
        """
        self._findable, self._index = with_all_words(corpus), None
        if rows is None:
            self.documents_, lengths = self._folded(corpus)
        else:
            self.documents_, lengths = rows, np.empty(len(rows))
            for shard in each_shard(corpus):
                lengths[shard.numbers] = shard.bags.lengths
        self.remember_lengths(lengths)
        return lengths

    def _folded(self, corpus: Corpus) -> tuple[Array, Array]:
        """p(topic | document) with the topics held fixed, and how long each document is."""
        rows, lengths = np.empty((len(corpus), self.core_.n_topics)), np.empty(len(corpus))
        how = How(temper=self.temper_)
        with open_session(self.core_, with_all_words(corpus), self.engine) as session:
            for shard in range(len(session)):
                found = session.expect(self.core_.fold, self.raw_params_, how, [shard]).counts
                numbers = found["numbers"]
                rows[numbers], lengths[numbers] = found["rows"], found["lengths"]
        return rows, lengths

    def partial_fit(self, X: Any, y: Any = None, *, labels: Any = None) -> Self:
        """Learn from some documents, and from more with every call; see `fit` for ``labels``.

        The first documents say which words there are; those that come later with others lose these.
        Give a ``vectorizer`` that knows its words to have all. A model that was fitted or loaded
        goes on from there. After a call ``documents_`` are the documents of that call.
        """
        warn_of_ignored(self, y, FOR_LABELS)
        with all_or_nothing(self):
            progress, core, corpus = self._continued(X, labels)
            seed = self._seed()
            with naming(corpus):
                progress = learn_more(core, corpus, progress, self.learner, self.engine, seed)
            self.__dict__.pop("fit_", None)
            self.core_, self.raw_params_, self.online_ = core, progress.params, progress
            self.signature_ = signature(core, progress, self.learner, seed)
            self.n_iter_, self.temper_ = progress.batches, online(self.learner)[0].temper_at(0)
            self._take_documents(corpus)
            often = progress.counts["topics"].sum(axis=1)
            self.weights_ = often / often.sum()
            return self

    def _continued(self, X: Any, labels: Any) -> tuple[Progress, TopicCore, Corpus]:
        """Where learning stands, and the documents that come now."""
        online(self.learner)
        if not hasattr(self, "raw_params_"):
            core, corpus = self.bind(X, labels)
            start = self.start_values(core, corpus, "random" if self.init is None else self.init)
            params = start(np.random.default_rng(self._seed())) if callable(start) else start
            progress = Progress(params, {})
        else:
            self._check_settings()
            corpus = self._corpus(X, labels, first=False)
            progress = getattr(self, "online_", None) or self._fitted()
            core = self._made_core(self.n_features_in_)
            core.rows = RowPrior(self.doc_prior_ + (self._word == "maximise"), self._word)
        return progress, core, corpus

    def _fitted(self) -> Progress:
        """What a fitted or loaded model has seen."""
        _, steps = online(self.learner)
        n = len(self.documents_)
        often = float(self._lengths.mean()) * self.weights_
        counts = self._counts(self.topics_, often, n)
        batches = -(-n // steps.batch_size)
        return Progress(self.raw_params_, {"topics": counts}, float(n), batches)

    def _counts(self, topics: Array, often: Array, items: float) -> Array:
        """The counts of one item that topics were made from: what was added to them is taken away.

        ``often``  how many words of an item each topic has
        """
        seeded = 0.0 if self.seeds_ is None else self.seeds_.toarray()
        added = np.broadcast_to(self.priors()[1] + seeded, topics.shape)
        totals = items * often[:, None] + added.sum(axis=1, keepdims=True)
        counts: Array = np.maximum(totals * topics - added, 0.0) / items
        held = 0 if self.frozen_ is None else len(self.frozen_)
        counts[:held] = often[:held, None] * topics[:held]  # nothing was added to these
        return counts

    @property
    def index_(self) -> retrieval.Index | None:
        """What finds the documents learned from; None if they are on disk, or were never there."""
        if self._index is None and isinstance(self._findable, Documents):
            self._index = self._indexed(self._findable)
        return self._index

    def _indexed(self, corpus: Corpus) -> retrieval.Index:
        bags = Bags.of(sparse.vstack([shard.bags.matrix for shard in each_shard(corpus)]))
        vectors = retrieval.Weighing.of(bags).topics(bags, self.topics_, self.weights_)
        return retrieval.Index.of(bags, vectors)

    def _forget(self) -> None:
        """Begin anew, whatever was learned before."""
        self.__dict__.pop("online_", None)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        if self.n_topics != self.core_.n_topics:
            raise LearnerError(
                f"the model has {self.core_.n_topics} topics, but n_topics={self.n_topics} since",
                "fit it again, or set n_topics back",
            )
        arrays, facts = self.stored_words()
        rows = self.core_.rows
        own = {"documents": self.documents_, "weights": self.weights_, "prior": rows.alpha}
        if self.seeds_ is not None:
            own["seeds"] = np.array(sparse.find(self.seeds_), np.int64)
        if self.index_ is not None:
            own |= self.index_.arrays()
        if hasattr(self, "online_"):
            often, so_far = self.online_.counts["topics"].sum(axis=1), self.online_
            own["online"] = np.array([so_far.items, so_far.batches, *often])
        held = 0 if self.frozen_ is None else len(self.frozen_)
        return arrays | own, facts | {"rows": rows.word, "frozen": held, "temper": self.temper_}

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> TopicCore:
        self._check_settings()
        K, V = self.n_topics, self.n_features_in_
        topics = numbers(stored, files.TABLE + "topics", (K, V))
        self._recall_guidance(stored, topics)
        self._recall_progress(stored, topics)
        self.recall_words(stored, given)
        self.weights_ = _shares(stored, "weights", (K,))
        self.documents_ = _shares(stored, "documents", (None, K))
        self.temper_ = float(stored.meta["temper"])
        if not 0.0 < self.temper_ < np.inf:
            raise StoreError(f"{self.temper_} is no power of posteriors", AGAIN)
        prior, word = numbers(stored, "prior", (K,)), stored.meta["rows"]
        if word not in ("maximise", "mean_field", "draw"):
            raise StoreError(f"{word!r} is no way to learn", AGAIN)
        self._findable, self._index = None, None
        if retrieval.ROWS in stored.arrays:
            self._index = retrieval.recalled(stored, K, V)
        core = self._made_core(V)
        core.rows = RowPrior(prior, word)
        return core

    def _recall_guidance(self, stored: store.Stored, topics: Array) -> None:
        self.seeds_ = self.frozen_ = None
        if "seeds" in stored.arrays:
            table = numbers(stored, "seeds", (3, None))
            if (table != np.rint(table)).any() or table.max(initial=0.0) >= 2**53:
                raise StoreError("the counts of seed words are no whole numbers", AGAIN)
            rows, columns, times = table.astype(np.int64)
            if times.min(initial=1) < 1:
                raise StoreError("seed words have no counts", AGAIN)
            self.seeds_ = sparse.csr_matrix((times, (rows, columns)), topics.shape)
        held = stored.meta["frozen"]
        if not isinstance(held, int) or not 0 <= held < len(topics):
            raise StoreError(f"{held!r} is no number of frozen topics", AGAIN)
        self.frozen_ = topics[:held] if held else None
        if self.frozen is None:  # an array is no setting that a file can hold
            self.frozen = self.frozen_

    def _recall_progress(self, stored: store.Stored, topics: Array) -> None:
        """How far `partial_fit` had come."""
        if "online" not in stored.arrays:
            return
        items, batches, *often = numbers(stored, "online", (2 + self.n_topics,))
        if min(items, batches) < 1 or min(often) < 0.0:
            raise StoreError("the progress of learning makes no sense", AGAIN)
        counts = self._counts(topics, np.array(often), items)
        self.online_ = Progress({"topics": topics}, {"topics": counts}, items, int(batches))


def _random(core: TopicCore, often: Array, rng: np.random.Generator) -> Params:
    """Topics near the frequencies of all words, each a little another way."""
    mass = (often + 0.1) * rng.uniform(0.5, 1.5, (core.n_topics, len(often)))
    return {"topics": mass / mass.sum(axis=1, keepdims=True)}


def _shares(stored: store.Stored, name: str, shape: tuple[int | None, ...]) -> Array:
    """Rows of shares, which add up to one."""
    rows = numbers(stored, name, shape)
    if not len(rows) or (rows < 0.0).any() or not np.allclose(rows.sum(axis=-1), 1.0):
        raise DataError(f"{name} are no shares: they do not add up to one")
    return rows
