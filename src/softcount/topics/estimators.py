"""`PLSA` and `LDA`, as users call them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from softcount import store
from softcount.bounds import MAX_CLASSES, MAX_RUNS
from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError, StoreError, shown
from softcount.families.columns import Columns
from softcount.job import open_session
from softcount.models import files
from softcount.models.base import Estimator, FitOptions, all_or_nothing, naming
from softcount.models.ignored import warn_of_ignored
from softcount.models.reading import ReadsWords, telling
from softcount.models.settings import check_number, check_whole
from softcount.models.stored import AGAIN, numbers
from softcount.online import Progress, learn_more, online, signature
from softcount.topics import retrieval
from softcount.topics.anchors import anchor_topics
from softcount.topics.core import DOCUMENTS, TopicCore
from softcount.topics.data import (
    Archived,
    Corpus,
    Documents,
    RowPrior,
    each_shard,
    known_topics,
    with_all_words,
    word_counts,
)
from softcount.topics.export import pyldavis_inputs
from softcount.types import Array, Fit, How, Params, Update

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


Vocabulary = Mapping[Any, int]
"""The column of each word."""


MOST = 2**30
"""The largest count of a seed word: samplers count in 32 bits, and the corpus comes on top."""


def columns_of(names: Array) -> Vocabulary:
    """Where each word is."""
    return {name: column for column, name in enumerate(names.tolist())}


def seed_counts(
    seeds: Any, strength: float, often: Array, vocabulary: Vocabulary, n_topics: int
) -> Any:
    """Seed words as tokens that a topic has beforehand: sparse (topics, words), whole numbers.

    ``seeds``     topic → words, or a list of such (topic 0, 1, …); words that never occur in the
                  corpus are passed over
    ``strength``  a seed word counts as often as ``strength`` times the word occurs, at least once
    ``often``     how often each word occurs

    >>> words = columns_of(np.array(["cup", "goal", "oil"], dtype=object))
    >>> seed_counts({1: ["oil"]}, 0.5, np.array([4, 2, 6]), words, 2).toarray()
    array([[0, 0, 0], [0, 0, 3]])
    """
    check_number("seed_strength", strength, "1 is usual", above=True)
    table = sparse.lil_matrix((n_topics, len(often)), dtype=np.int64)
    for topic, words in _by_topic(seeds, "seeds"):
        if not 0 <= topic < n_topics:
            raise DataError(
                f"there are seeds for topic {topic}", f"topics go from 0 to {n_topics - 1}"
            )
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise DataError(f"the seeds of topic {topic} are {shown(words)}", "give a list")
        for column in _columns(words, vocabulary):
            if often[column] > 0:
                table[topic, column] = _times(strength * often[column])
    if not table.nnz:
        raise DataError(
            "none of the seed words is in the corpus",
            "give words as the vectorizer makes them: in lower case, as a rule",
        )
    return table.tocsr()


def frozen_topics(frozen: Any, vocabulary: Vocabulary, n_topics: int) -> Array:
    """The first topics, which do not learn: p(word | topic), (frozen, words).

    ``frozen``  an array with a row a topic; or a list of mappings from words to weights, of which
                those that are not in the vocabulary are passed over
    """
    try:
        given = list(frozen)
        rows = [_weights(row, vocabulary) for row in given]
        table = np.array(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"frozen={shown(frozen)} are no topics: {error}", TOPICS) from error
    if table.ndim != 2 or table.shape[1] != len(vocabulary):
        raise DataError(
            f"frozen topics have the shape {table.shape}, but there are {len(vocabulary)} words",
            TOPICS,
        )
    if not (np.isfinite(table) & (table >= 0.0)).all() or not table.any(axis=1).all():
        raise DataError("a frozen topic has no words, or a weight that is no weight", TOPICS)
    if len(table) >= n_topics:
        raise DataError(
            f"{len(table)} of {n_topics} topics are frozen: there is nothing to learn",
            "set n_topics to more; to fold documents in use transform",
        )
    return table / table.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


TOPICS = "give an array with a row for each topic, or a list of mappings from words to weights"


def _by_topic(given: Any, what: str) -> Iterable[tuple[int, Any]]:
    if isinstance(given, Mapping):
        pairs = given.items()
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = enumerate(given)  # type: ignore[assignment]
    else:
        raise DataError(f"{what}={shown(given)}", "give a mapping from topics to lists of words")
    for topic, words in pairs:
        try:
            number = int(topic)
        except (TypeError, ValueError):
            number = None
        # files have the numbers as strings
        if number is None or not (isinstance(topic, str) or number == topic):
            raise DataError(f"{what}: {shown(topic)} is no topic", "topics are whole numbers")
        yield number, words


def _columns(words: Iterable[Any], vocabulary: Vocabulary) -> list[int]:
    given = list(words)
    strange = [word for word in given if not isinstance(word, Hashable)]
    if strange:
        raise DataError(f"{shown(strange[0])} is no seed word", "give a list of words a topic")
    return [vocabulary[word] for word in given if word in vocabulary]


def _times(often: float) -> int:
    """How often a seed word counts: whole, at least once."""
    if often > MOST:
        raise LearnerError(f"a seed word would count {often:g} times", "lower seed_strength")
    return max(1, round(float(often)))


def _weights(row: Any, vocabulary: Vocabulary) -> Any:
    if not isinstance(row, Mapping):
        return row
    weights = np.zeros(len(vocabulary))
    for word, weight in row.items():
        if word in vocabulary:
            weights[vocabulary[word]] = weight
    return weights


# How topic models learn: from documents in memory or on disk, all at once or as they come.


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


# What topic models are good for: folding in, scoring, finding, generating.


BLOCK = 1 << 16
"""Words whose probabilities are worked out together."""


class TopicModel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    TopicLearner,
):
    """What PLSA and LDA share."""

    # what was learned
    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables: "topics", and "documents" as ``documents_``.

        They may be given back as ``init``: the topics are begun with, the documents' rows are not.
        """
        return {"topics": np.array(self.topics_), "documents": np.array(self.documents_)}

    @property
    def _n_features_out(self) -> int:  # for get_feature_names_out
        return self.core_.n_topics

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """The words that mark each topic, with their probabilities."""
        self._require_fit()
        check_whole("n", n)
        return telling(self.weights_, self.topics_, self.word_names(), n)

    # what it says of documents
    def transform(self, X: Any) -> Array:
        """p(topic | document), (documents, topics), folded in: the topics stay as they are.

        A document without any known word has all topics alike.
        """
        self._require_fit()
        return self._folded(self._corpus(X, None, first=False))[0]

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """Learn, and give p(topic | document) of what was learned from, as `transform` does.

        ``documents_`` has the rows that learning itself ended with. ``y`` is not looked at: in a
        pipeline it is for a later step. For options see `fit`.
        """
        return self.fit(X, **options).fold_learned()

    def fold_learned(self) -> Array:
        """p(topic | document) of the documents learned from, folded in with what is known of them.

        What `transform` says of such documents, however far learning came: ``documents_`` has the
        rows of learning's own last state.
        """
        self._require_fit()
        if self._findable is None:
            raise DataError("the documents learned from are gone", "use transform(documents)")
        return self._folded(self._findable)[0]

    # what it finds
    def index(self, X: Any) -> Self:
        """Let these documents be what `similar` finds, instead of those learned from.

        All of them are kept in memory: 12 bytes for every different word of each document, and 8 a
        topic.
        """
        self._require_fit()
        self._index = self._indexed(self._corpus(X, None, first=False))
        return self

    def similar(self, query: Any, n: int = 10, words: float = 0.0) -> list[tuple[int, float]]:
        """The documents most like a query: (number, score), best first.

        The score is the cosine of topics, those of all words of a document put together, mixed with
        the cosine of the words themselves (tf-idf), which counts for the share ``words``: see
        `softcount.topics.retrieval`. A query without any known word finds nothing.

        ``query``  one document, as the model was given them: a text, a list of words, or counts
        """
        self._require_fit()
        index = self.index_
        if index is None:
            raise DataError(
                "there are no documents to be found: they are on disk, or were not saved",
                "say which by model.index(documents)",
            )
        asked = self.read(_alone(query), first=False)
        vectors = index.weighing.topics(asked, self.topics_, self.weights_)
        return index.ranked(asked, vectors, n, words)[0]

    def score_samples(self, X: Any) -> Array:
        """log p(words of a document | its folded-in topics); −inf for what no topic can say.

        The topics are fitted to the very words that are scored: for unseen words see
        `softcount.metrics.completion`.
        """
        self._require_fit()
        corpus = self._corpus(X, None, first=False)
        theta, logs = self._folded(corpus)[0], np.empty(len(corpus))
        for shard in each_shard(corpus):
            logs[shard.numbers] = _log_chances(shard.bags, theta[shard.numbers], self.topics_)
        return logs

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """New documents, of topics as documents seen had: in the form of those learned from."""
        self._require_fit()
        check_whole("n", n)
        rng = np.random.default_rng(random_state)
        theta = self.documents_[rng.integers(len(self.documents_), size=n)]
        rows, columns = [], []
        for d, length in enumerate(self.some_lengths(n, rng)):
            chances = theta[d] @ self.topics_
            columns.append(rng.choice(len(chances), size=length, p=chances / chances.sum()))
            rows.append(np.full(length, d))
        place = (np.concatenate(rows), np.concatenate(columns))
        ones = np.ones(len(place[0]), np.int64)
        shape = (n, self.n_features_in_)
        return self.told(sparse.csr_matrix((ones, place), shape=shape), rng)

    def for_pyldavis(self, X: Any) -> dict[str, Any]:
        """What ``pyLDAvis.prepare(**inputs)`` takes, to show these documents' topics.

        >>> from softcount import LDA
        >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
        >>> sorted(LDA(2).fit(notes).for_pyldavis(notes))
        ['doc_lengths', 'doc_topic_dists', 'term_frequency', 'topic_term_dists', 'vocab']
        """
        self._require_fit()
        corpus = self._corpus(X, None, first=False)
        rows, lengths = self._folded(corpus)
        often = word_counts(corpus)
        return pyldavis_inputs(self.topics_, rows, lengths, self.word_names(), often)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _alone(query: Any) -> Any:
    """A single document as documents are given."""
    if hasattr(query, "to_frame"):  # a row of a data frame
        return query.to_frame().T
    if sparse.issparse(query) and query.ndim == 1:
        return query.reshape(1, -1)
    if getattr(query, "ndim", 1) != 2:
        return [query]
    if query.shape[0] != 1:
        raise DataError(f"the query has {query.shape[0]} rows", "ask for one document at a time")
    return query


def _log_chances(bags: Bags, theta: Array, topics: Array) -> Array:
    """log p(words of a document | θ_d, φ)."""
    rows, phi = bags.by_document, np.ascontiguousarray(topics.T)
    numbers = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
    chances = np.empty(len(numbers))
    for first in range(0, len(numbers), BLOCK):
        some = slice(first, first + BLOCK)
        chances[some] = np.einsum("ik,ik->i", theta[numbers[some]], phi[rows.columns[some]])
    with np.errstate(divide="ignore"):
        return np.bincount(numbers, rows.value * np.log(chances), minlength=len(bags))


# PLSA, and LDA, which is PLSA with priors.


class PLSA(TopicModel):
    """Probabilistic latent semantic analysis (Hofmann 1999): p(w | d) = Σ_k θ_dk φ_kw.

    ``n_topics``       how many topics
    ``smoothing``      add so much to every count of a word in a topic
    ``seeds``          words that belong to a topic: {topic: [word, …]}
    ``seed_strength``  a seed word counts for its topic as often again as so many times the corpus
                       has it
    ``frozen``         the first topics, which stay as they are: rows of p(word | topic), or
                       mappings from words to weights
    ``init``           'anchors' (words that one topic alone has), 'random', or tables
                       {"topics": …}. None: anchors for EM; at random for other learners, for
                       several runs or scouts, and if something is known of topics
    ``scouts``         try so many random starts by two quick passes each; go on from the best.
                       None: three for a few documents, one for many
    ``dtype``          'float32' takes less memory and time, at seven digits
    ``vectorizer``, ``learner``, ``engine``, ``random_state``  see `MultinomialMixture`

    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> shares = PLSA(2).fit(notes).transform(["team goal", "market price"])
    >>> bool(shares[0].argmax() != shares[1].argmax())
    True
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        smoothing: float = 0.0,
        seeds: Any = None,
        seed_strength: float = 1.0,
        frozen: Any = None,
        init: Any = None,
        scouts: int | None = None,
        dtype: str = "float64",
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.smoothing = smoothing
        self.seeds = seeds
        self.seed_strength = seed_strength
        self.frozen = frozen
        self.init = init
        self.scouts = scouts
        self.dtype = dtype
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("smoothing", self.smoothing, "0 does not smooth")
        return 0.0, self.smoothing

    def lacks_prior(self) -> str:
        return "not for the topics of documents, whatever the smoothing"

    def prior_hint(self) -> str:
        return "use LDA, which is PLSA with a doc_prior and a word_prior"

    def lacks_sampler(self) -> str:
        return ""  # there is one, but not without a prior: of that `lacks_prior` complains


class LDA(TopicModel):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003): PLSA with Dirichlet priors.

    ``n_topics``    how many topics
    ``doc_prior``   what is added to every count of a topic in a document
    ``word_prior``  what is added to every count of a word in a topic
    ``seeds``, …    see `PLSA`

    For learners that look for the mode the Dirichlet concentrations are 1 + these, for those that
    average or draw they are these themselves: both add so much to every count.
    """

    def __init__(
        self,
        n_topics: int = 20,
        *,
        doc_prior: float = 0.1,
        word_prior: float = 0.01,
        seeds: Any = None,
        seed_strength: float = 1.0,
        frozen: Any = None,
        init: Any = None,
        scouts: int | None = None,
        dtype: str = "float64",
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_topics = n_topics
        self.doc_prior = doc_prior
        self.word_prior = word_prior
        self.seeds = seeds
        self.seed_strength = seed_strength
        self.frozen = frozen
        self.init = init
        self.scouts = scouts
        self.dtype = dtype
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    def priors(self) -> tuple[float, float]:
        check_number("doc_prior", self.doc_prior, "0.1 is usual")
        check_number("word_prior", self.word_prior, "0.01 is usual")
        return self.doc_prior, self.word_prior

    def lacks_prior(self) -> str:
        zeros = [name for name in ("doc_prior", "word_prior") if getattr(self, name) == 0]
        return f"{zeros[0]}=0" if zeros else ""

    def prior_hint(self) -> str:
        return "give a doc_prior and a word_prior above 0, for example 0.1 and 0.01"
