"""The estimators `PLSA` and `LDA`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.contract import NumberedOutputs, as_configured
from softcount.core.display import NamedTables
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing, name_impossible_items
from softcount.core.folder import resumable
from softcount.core.parameters import check_parameters, check_whole, not_smoothed
from softcount.core.posteriors import Posteriors
from softcount.core.progress import phase
from softcount.core.spill import empty_table, read_only
from softcount.core.store import AGAIN, numbers
from softcount.core.stream import StreamProgress, fit_stream, stream_learner
from softcount.core.types import (
    Array,
    EStep,
    Fit,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Update,
)
from softcount.core.warnings import warn_of_ignored
from softcount.families.columns import Columns
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.text.documents import DocumentReader, find_characteristic_words
from softcount.topics import retrieval
from softcount.topics.anchors import anchor_topics
from softcount.topics.core import DOCUMENTS, DocumentPrior, TopicCore
from softcount.topics.data import (
    TopicDocuments,
    count_seed_words,
    count_words,
    read_frozen_topics,
    read_labels,
    with_all_words,
)
from softcount.topics.parameters import LDA_SMOOTHING, LDAParameters, TopicParameters

if TYPE_CHECKING:
    from softcount.learners.base import Learner

FEW_DOCUMENTS, FEW_SHORT_RUNS = 2000, 3
"""Up to this many documents, this many random starts are tried in short runs.

With more documents the starts hardly differ, so one is warmed up.
"""

FOR_LABELS = "Pass known topics of documents as labels= (-1 where unknown)"


class TopicModel(  # type: ignore[misc]  # short_runs may be None
    TopicParameters, NumberedOutputs, DocumentReader, store.SaveableTables, Estimator
):
    """Base class of PLSA and LDA: learning, folding in, scoring, retrieval, generation."""

    default_learner = TopicCore.default_learner
    core_: TopicCore
    documents_: FloatArray
    """p(topic | document) of the training documents, (documents, topics).

    Some learners treat these rows as parameters, just like the topics (EM, HardEM, MonteCarloEM,
    IncrementalEM, VariationalBayes). They then belong to the final state, consistent with
    ``topics_`` and the last entry of ``trace_``, whether or not learning had converged. For the
    others (OnlineEM and StochasticVB, `partial_fit`, samplers, and `TemperedEM`, which holds out
    some words) the documents are folded in, as `transform` does: the topics stay fixed.

    Of an archive with many documents, whose rows take more than 64 MB, this is a file, mapped into
    memory: a temporary one without a name, in the folder that TMPDIR names.
    """
    weights_: FloatArray
    """The proportion of all words that each topic accounts for, (topics,)."""
    temper_: float
    """The power of posteriors at the end of learning, also used for folding in."""
    n_iter_: int
    _seed_counts: Any
    """Pseudo-counts of seed words, sparse (topics, words); or None."""
    _frozen_rows: FloatArray | None
    """p(word | topic) of the first topics, if these are kept fixed, (frozen, words)."""
    _training_documents: TopicDocuments | None
    """The training documents with all their words; None if they are no longer available."""
    _index: retrieval.DocumentIndex | None
    _progress: StreamProgress
    """The state of `partial_fit`, if it was called."""

    # capabilities that learners may require
    _holds_out = True
    _learns_priors = True

    def _lacks_sampler(self) -> str:
        if self.frozen_topics is None or not len(self.frozen_topics):
            return ""
        return f"the collapsed sampler of {self._display_name} cannot hold topics frozen"

    @property
    @abstractmethod
    def _smoothing(self) -> Mapping[str, float]:
        """Pseudo-counts of each topic in a document ("documents") and word in a topic ("words")."""

    @property
    def _update(self) -> Update:
        """How the learner updates tables from counts: maximise, mean field or draw."""
        return self._learner.m

    # fitted attributes
    @property
    def topics_(self) -> FloatArray:
        """p(word | topic), (topics, words)."""
        self._require_fit()
        table: FloatArray = self.raw_params_["topics"]
        return table

    @property
    def document_smoothing_(self) -> FloatArray:
        """The pseudo-count of each topic in a document, (topics,).

        Taken from the parameter ``smoothing``, or learned (`CollapsedGibbs(optimise=…)`).
        """
        self._require_fit()
        prior = self.core_.document_prior
        return prior.alpha - (prior.update == "maximise")

    @property
    def params_(self) -> dict[str, FloatArray]:
        """The learned tables: "topics", and "documents", the same as ``documents_``.

        They can be passed as ``init``: learning then starts from these topics, but not from the
        documents' rows.
        """
        return self._name_tables({"topics": self.topics_, "documents": self.documents_})

    def _name_tables(self, tables: Params) -> NamedTables:
        K = list(range(len(tables["topics"])))
        names = {"topics": (K, self.word_names().tolist())}
        if DOCUMENTS in tables:
            names[DOCUMENTS] = (list(range(len(tables[DOCUMENTS]))), K)
        return NamedTables(tables, names)

    @property
    def _n_features_out(self) -> int:
        self._require_fit()
        return self.core_.n_topics

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the most characteristic words of each topic, with their probabilities."""
        self._require_fit()
        check_whole("n", n)
        return find_characteristic_words(self.weights_, self.topics_, self.word_names(), n)

    # learning
    @resumable
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

        ``y``       ignored, with a warning if it is given: topics are not classes
        ``labels``  known topics of each document: a topic, a list of the topics that it may have,
                    or -1 if unknown
        ``init``    initial parameters, overriding the parameter ``init`` of the model

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        warn_of_ignored(self, y, FOR_LABELS)
        with all_or_nothing(self):
            self.__dict__.pop("_progress", None)  # start afresh
            core, corpus = self._bind(X, labels)
            return self._learn(core, corpus, init, **options)

    def _check_settings(self) -> None:
        check_parameters(self)
        self._check_learning()

    def _bind(self, X: Any, labels: Any = None) -> tuple[TopicCore, TopicDocuments]:
        self._check_settings()
        corpus = self._corpus(X, labels, first=True)
        if not corpus.tokens:
            raise DataError(
                "there is nothing to learn from: every document is empty", "check the counts"
            )
        self._seed_counts = self._frozen_rows = None
        if self.seed_words is not None or self.frozen_topics is not None:
            K, columns = self.n_components, {w: i for i, w in enumerate(self.word_names().tolist())}
            if self.seed_words is not None:
                self._seed_counts = count_seed_words(
                    self.seed_words, self.seed_strength, count_words(corpus), columns, K
                )
            if self.frozen_topics is not None:
                self._frozen_rows = read_frozen_topics(self.frozen_topics, columns, K)
        return self._make_core(self.n_features_in_), corpus

    def _bind_more(self, core: TopicCore, X: Any) -> TopicDocuments:
        if X is not None:
            return self._corpus(X)
        if self._training_documents is None:
            raise DataError("the training documents are no longer available", "give documents")
        return self._training_documents

    def _corpus(self, X: Any, labels: Any = None, *, first: bool = False) -> TopicDocuments:
        """Read the user's documents; ``first``: they define the vocabulary."""
        if isinstance(X, Archive):
            self._adopt_archive(X, first=first)
        documents = X if isinstance(X, Archive) else self._read_documents(X, first=first)
        allowed = read_labels(labels, len(documents), self.n_components)
        held_out = self._learner.schedule.held_out if first else 0.0
        return TopicDocuments(documents, allowed, held_out=held_out)

    @property
    def _n_frozen(self) -> int:
        return 0 if self._frozen_rows is None else len(self._frozen_rows)

    def _seed_smoothing(self) -> Any:
        """Return the pseudo-counts of seed words, (topics, words); 0 if there are none."""
        return 0.0 if self._seed_counts is None else self._seed_counts.toarray()

    def _make_core(self, n_words: int, prior: DocumentPrior | None = None) -> TopicCore:
        """Build the model; ``prior`` of topic proportions overrides the one from ``smoothing``."""
        K, smoothing = self.n_components, self._smoothing
        # adding a to every count gives the mode under Dir(1 + a), and the mean under Dir(a)
        mode = self._update == "maximise"
        frozen = None if self._frozen_rows is None else np.arange(K) < self._n_frozen
        alpha = smoothing["words"] + mode + self._seed_smoothing()
        topics = Columns((K, n_words), alpha, frozen=frozen)
        prior = prior or DocumentPrior(np.full(K, smoothing["documents"] + mode), self._update)
        return TopicCore(type(self).__name__, topics, prior, dtype=self.dtype)

    def _n_short_runs(self, corpus: TopicDocuments, start: Any) -> int:
        if self.short_runs is not None:
            return self.short_runs
        return FEW_SHORT_RUNS if len(corpus) <= FEW_DOCUMENTS and callable(start) else 1

    def _start_values(self, core: TopicCore, corpus: TopicDocuments, init: Any) -> Any:
        if init is None:
            # anchors for a single run of batch EM without supervision: anchor words give topics in
            # no particular order, so they do not fit numbered topics
            known = (self.seed_words, self.frozen_topics, corpus.allowed, self.short_runs or None)
            learner = self._learner
            batch_em = (learner.e, learner.m, learner.n_init) == ("soft", "maximise", 1)
            batch_em = batch_em and learner.schedule.batch_size is None
            init = "anchors" if batch_em and all(each is None for each in known) else "random"
        if isinstance(init, Mapping):
            return self._guide_start(core.params(init))
        if isinstance(init, str) and init == "random":
            word_counts = count_words(corpus)

            def draw(rng: np.random.Generator) -> Params:
                """Draw topics near the corpus frequencies, each perturbed at random."""
                factors = rng.uniform(0.5, 1.5, (core.n_topics, len(word_counts)))
                mass = (word_counts + 0.1) * factors
                return self._guide_start({"topics": mass / mass.sum(axis=1, keepdims=True)})

            return draw
        if isinstance(init, str) and init == "anchors":
            rng = np.random.default_rng(self._seed())
            return self._guide_start({"topics": anchor_topics(corpus.shards(), core.n_topics, rng)})
        raise LearnerError(
            f"init={init!r} is not supported here", "choose 'random' or 'anchors', or give tables"
        )

    def _guide_start(self, params: Params) -> Params:
        """Adapt initial topics to the supervision.

        Raise the probability of each seed word in its own topics and lower it in the others, and
        set the frozen topics.
        """
        topics = np.array(params["topics"])
        if self._seed_counts is not None:
            seeded = self._seed_counts.toarray() > 0
            topics[:, seeded.any(axis=0)] *= 0.1
            topics += 10.0 * seeded * np.asarray(params["topics"])
            topics /= topics.sum(axis=1, keepdims=True)
        if self._frozen_rows is not None:
            topics[: self._n_frozen] = self._frozen_rows
        return {"topics": topics}

    def _read_params(self, core: TopicCore, corpus: TopicDocuments, given: Any) -> Params:
        """Return tables as arrays; documents' rows, if given, must match the corpus."""
        params = core.params(given)
        rows = params.get(DOCUMENTS)
        if rows is not None and len(rows) != len(corpus):
            raise DataError(
                f"there are {len(corpus)} documents, but topic proportions of {len(rows)}",
                "give the documents that the rows belong to, or only the topics",
            )
        return params

    def _keep_fit(self, core: TopicCore, corpus: TopicDocuments, fit: Fit) -> None:
        if fit.priors:
            core.document_prior = DocumentPrior(fit.priors["documents"], self._update)
        super()._keep_fit(core, corpus, fit)

    def _keeps_local(self, corpus: TopicDocuments) -> bool:
        """Return whether documents' rows are parameters and are kept; see ``documents_``."""
        learner, schedule = self._learner, self._learner.schedule
        return not (learner.m == "draw" or schedule.held_out or schedule.shuffles)

    def _after_fit(self, corpus: TopicDocuments) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self.temper_ = self.fit_.trace[-1].temper
        lengths = self._keep_documents(corpus, self.fit_.local.get(DOCUMENTS))
        self.weights_ = lengths @ self.documents_ / lengths.sum()

    def _keep_documents(self, corpus: TopicDocuments, rows: FloatArray | None = None) -> FloatArray:
        """Store the documents' rows (None: fold them in) and keep a reference to the corpus.

        Returns the documents' lengths in words, (documents,).
        """
        self._training_documents, self._index = with_all_words(corpus), None
        if rows is None:
            self.documents_, lengths = self._fold_in(corpus)
        else:
            self.documents_, lengths = rows, np.empty(len(rows))
            for shard in with_all_words(corpus).shards():
                lengths[shard.numbers] = shard.bags.lengths
        self._remember_lengths(lengths)
        return lengths

    # learning from a stream of documents
    def partial_fit(self, X: Any, y: Any = None, *, labels: Any = None) -> Self:
        """Learn incrementally from a batch of documents; see `fit` for ``labels``.

        The first call fixes the vocabulary; later words that are not in it are ignored. Pass a
        ``vectorizer`` with a fixed vocabulary to keep all words. A model that was fitted or loaded
        continues from there. After a call ``documents_`` has the documents of that call, and
        ``trace_`` has an entry for every mini-batch so far, evaluated before the model learned from
        it: how well new documents were predicted.
        """
        warn_of_ignored(self, y, FOR_LABELS)
        with all_or_nothing(self):
            progress, core, corpus = self._continue(X, labels)
            seed, learner = self._seed(), self._stream_learner
            with name_impossible_items(corpus):
                progress, self.fit_ = fit_stream(
                    core, corpus, progress, learner, self.engine, seed=seed
                )
            self.core_, self.raw_params_, self._progress = core, progress.params, progress
            self.signature_ = self.fit_.signature
            self.n_iter_ = progress.batches
            self.temper_ = stream_learner(learner)[0].temper_at(0)
            self._keep_documents(corpus)
            topic_counts = progress.counts["topics"].sum(axis=1)
            self.weights_ = topic_counts / topic_counts.sum()
            return self

    @property
    def _stream_learner(self) -> Learner | None:
        return None if self.learner is None else self._learner

    def _continue(self, X: Any, labels: Any) -> tuple[StreamProgress, TopicCore, TopicDocuments]:
        """Return the state of learning, the model, and the new documents."""
        _, steps = stream_learner(self._stream_learner)
        if not hasattr(self, "raw_params_"):
            core, corpus = self._bind(X, labels)
            start = self._start_values(core, corpus, "random" if self.init is None else self.init)
            params = start(np.random.default_rng(self._seed())) if callable(start) else start
            return StreamProgress(params, {}), core, corpus
        self._check_settings()
        corpus = self._corpus(X, labels)
        progress = getattr(self, "_progress", None)
        if progress is None:  # after fit or load: reconstruct the counts from the topics
            n, topic_counts = len(self.documents_), float(self._lengths.mean()) * self.weights_
            counts = {"topics": self._recover_counts(self.topics_, topic_counts, n)}
            batches = -(-n // steps.batch_size)
            progress = StreamProgress(self.raw_params_, counts, float(n), batches)
        alpha = self.document_smoothing_ + (self._update == "maximise")
        core = self._make_core(self.n_features_in_, DocumentPrior(alpha, self._update))
        return progress, core, corpus

    def _recover_counts(
        self, topics: FloatArray, topic_counts: FloatArray, items: float
    ) -> FloatArray:
        """Recover the mean counts per item from the smoothed topics, (topics, words).

        ``topic_counts``  the mean number of words per item in each topic, (topics,)
        """
        pseudo = np.broadcast_to(self._smoothing["words"] + self._seed_smoothing(), topics.shape)
        totals = items * topic_counts[:, None] + pseudo.sum(axis=1, keepdims=True)
        counts: FloatArray = np.maximum(totals * topics - pseudo, 0.0) / items
        frozen = self._n_frozen  # frozen topics are not smoothed
        counts[:frozen] = topic_counts[:frozen, None] * topics[:frozen]
        return counts

    # step by step
    def e_step(self, data: Any = None, params: Any = None, **known: Any) -> Posteriors:
        """Do the E-step by itself: p(topic | document, word) of every word (Hofmann 1999).

        ``data``    documents; None: the training documents, with their learned rows
        ``params``  "topics", and optionally "documents", p(topic | document); without these, all
                    topics are equally probable in a document. None: those that were learned; other
                    documents than the training documents are then folded in

        For the rest see `softcount.core.estimator.Estimator.e_step`.
        """
        return super().e_step(data, params, **known)

    def word_topics(self, word: Any, X: Any = None) -> Posteriors:
        """Return p(topic | document, word) of one word, in every document that it occurs in.

        A word of several meanings has other topics in other documents.

        >>> from softcount import PLSA
        >>> notes = ["bank river water", "water river boat", "bank loan money", "money loan rate"]
        >>> found = PLSA(2, random_state=1).fit(notes).word_topics("bank")
        >>> found.index["document"], found.values.argmax(axis=1).tolist() in ([0, 1], [1, 0])
        ([0, 2], True)
        """
        posteriors = self.e_step(X)
        rows = np.array([n for n, name in enumerate(posteriors.index["word"]) if name == word])
        if not len(rows):
            raise DataError(
                f"the word {brief(word)} occurs in none of the documents",
                "give a word of the vocabulary",
            )
        return posteriors.take(rows)

    def _learned_params(self, corpus: TopicDocuments) -> Params:
        if corpus is self._training_documents:
            return {**self.raw_params_, DOCUMENTS: self.documents_}
        return {**self.raw_params_, DOCUMENTS: self._fold_in(corpus)[0]}

    def _name_hidden(
        self, core: TopicCore, corpus: TopicDocuments, rows: PosteriorRows
    ) -> dict[str, Any]:
        words = self.word_names()
        index = {"document": rows.items.tolist(), "word": words[rows.keys["word"]].tolist()}
        return {"columns": tuple(range(core.n_topics)), "index": index, "of": "topic"}

    def _show_params(self, core: TopicCore, params: Params) -> Any:
        return self._name_tables(params)

    # inference
    @as_configured
    def transform(self, X: Any) -> FloatArray:
        """Return p(topic | document), (documents, topics), by folding in: the topics stay fixed.

        A document without any known word has the same probability of every topic.
        """
        self._require_fit()
        return self._fold_in(self._corpus(X))[0]

    @as_configured
    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> FloatArray:
        """Learn, then return p(topic | document) of the training documents as `transform` does.

        ``documents_``, by contrast, has the rows at the end of learning. ``y`` is ignored: in a
        pipeline it is meant for a later step. For options see `fit`.
        """
        return self.fit(X, **options).fold_in_training_documents()

    def fold_in_training_documents(self) -> FloatArray:
        """Return p(topic | document) of the training documents, folded in with their labels.

        This is what `transform` gives for such documents, whether or not learning had converged;
        ``documents_`` has the rows of the final state of learning.
        """
        self._require_fit()
        if self._training_documents is None:
            raise DataError(
                "the training documents are no longer available", "use transform(documents)"
            )
        return self._fold_in(self._training_documents)[0]

    def _fold_in(self, corpus: TopicDocuments) -> tuple[FloatArray, FloatArray]:
        """Return p(topic | document) with fixed topics, and each document's length in words.

        Of documents on disk, a large table is a file.
        """
        make = empty_table if isinstance(corpus.documents, Archive) else np.empty
        rows, lengths = make((len(corpus), self.core_.n_topics)), np.empty(len(corpus))
        how = EStep(temper=self.temper_)
        with phase("folding in"):
            for folded in self._map(self.core_.fold, with_all_words(corpus), how):
                documents, counts = folded.counts["numbers"], folded.counts
                rows[documents], lengths[documents] = counts["rows"], counts["lengths"]
        return read_only(rows), lengths

    def score_samples(self, X: Any) -> FloatArray:
        """Return log p(words of a document | its folded-in topics), (documents,).

        −inf if a word of the document has probability 0 under all its topics.

        The proportions are fitted to the same words that are scored: for a held-out score see
        `softcount.metrics.completion`.
        """
        self._require_fit()
        corpus = self._corpus(X)
        logs, how = np.empty(len(corpus)), EStep(temper=self.temper_)
        for scored in self._map(self.core_.score_documents, with_all_words(corpus), how):
            logs[scored["numbers"]] = scored["logs"]
        return logs

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """Generate new documents, in the same form as the training documents.

        Each has the topic proportions of a random training document, and the length of another.
        """
        self._require_fit()
        check_whole("n", n)
        rng = np.random.default_rng(random_state)
        theta = self.documents_[rng.integers(len(self.documents_), size=n)]
        lengths, columns = self._draw_lengths(n, rng), []
        for proportions, length in zip(theta, lengths, strict=True):
            p = proportions @ self.topics_
            columns.append(rng.choice(len(p), size=length, p=p / p.sum()))
        entries = np.repeat(np.arange(n), lengths), np.concatenate(columns)
        ones = np.ones(len(entries[0]), np.int64)
        counts = sparse.csr_matrix((ones, entries), (n, self.n_features_in_))
        return self._write_documents(counts, rng)

    def for_pyldavis(self, X: Any) -> dict[str, Any]:
        """Return the arguments of ``pyLDAvis.prepare(**inputs)`` (Sievert & Shirley 2014).

        pyLDAvis requires rows that sum to 1, and no empty documents or words that never occur: both
        are left out. A topic without any remaining word becomes uniform.

        >>> from softcount import LDA
        >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
        >>> sorted(LDA(2).fit(notes).for_pyldavis(notes))
        ['doc_lengths', 'doc_topic_dists', 'term_frequency', 'topic_term_dists', 'vocab']
        """
        self._require_fit()
        corpus = self._corpus(X)
        theta, lengths = self._fold_in(corpus)
        word_counts = count_words(corpus)
        full, used = np.flatnonzero(lengths > 0.0), np.flatnonzero(word_counts > 0.0)
        if not len(full):
            hint = "give the documents that the model was fitted to"
            raise DataError("no document has a word that the model knows", hint)
        phi, theta = self.topics_[:, used], theta[full]
        phi = np.where(phi.any(axis=1, keepdims=True), phi, 1.0)
        return {
            "topic_term_dists": phi / phi.sum(axis=1, keepdims=True),
            "doc_topic_dists": theta / theta.sum(axis=1, keepdims=True),
            "doc_lengths": _whole_if_possible(lengths[full]),
            "vocab": [str(word) for word in self.word_names()[used]],
            "term_frequency": _whole_if_possible(word_counts[used]),
        }

    # retrieval
    @property
    def index_(self) -> retrieval.DocumentIndex | None:
        """The index that `similar` searches; None if the documents are on disk or unavailable."""
        corpus = self._training_documents
        if self._index is None and corpus is not None and isinstance(corpus.documents, Bags):
            self._index = self._make_index(corpus)
        return self._index

    def index(self, X: Any) -> Self:
        """Make `similar` search these documents instead of the training documents.

        All of them are kept in memory: per document, 12 bytes for each distinct word and 8 for each
        topic.
        """
        self._require_fit()
        self._index = self._make_index(self._corpus(X))
        return self

    def _make_index(self, corpus: TopicDocuments) -> retrieval.DocumentIndex:
        bags = Bags.of(
            sparse.vstack([shard.bags.matrix for shard in with_all_words(corpus).shards()])
        )
        vectors = retrieval.TfIdf.of(bags).topic_vectors(bags, self.topics_, self.weights_)
        return retrieval.DocumentIndex.of(bags, vectors)

    def similar(self, query: Any, n: int = 10, words: float = 0.0) -> list[tuple[int, float]]:
        """Return the documents most similar to a query: (number, score), best first.

        score = (1 − words) · cosine of topic vectors + words · cosine of tf-idf vectors, where the
        topic vector of a document sums over its words: see `softcount.topics.retrieval`. A query
        without any known word has no matches.

        ``query``  one document in the form of the training documents: a text, a list of words, or
                   counts
        ``n``      the number of documents to return
        ``words``  the weight of tf-idf, 0 to 1
        """
        self._require_fit()
        index = self.index_
        if index is None:
            raise DataError(
                "there are no documents to search: they are on disk, or were not saved",
                "index them with model.index(documents)",
            )
        bags = self._read_documents(_as_documents(query), first=False)
        vectors = index.tf_idf.topic_vectors(bags, self.topics_, self.weights_)
        return index.rank(bags, vectors, n, words)[0]

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        if self.n_components != self.core_.n_topics:
            raise LearnerError(
                f"the model has {self.core_.n_topics} topics, but n_components was changed to "
                f"{self.n_components}",
                "fit it again, or set n_components back",
            )
        arrays, facts = self._store_words()
        prior = self.core_.document_prior
        more_arrays: dict[str, Array] = {
            "documents": self.documents_,
            "weights": self.weights_,
            "prior": prior.alpha,
        }
        if self._seed_counts is not None:
            more_arrays["seeds"] = np.array(sparse.find(self._seed_counts), np.int64)
        if self.index_ is not None:
            more_arrays |= self.index_.arrays()
        if hasattr(self, "_progress"):
            progress = self._progress
            topic_counts = progress.counts["topics"].sum(axis=1)
            more_arrays["online"] = np.array([progress.items, progress.batches, *topic_counts])
        more_facts = {"rows": prior.update, "frozen": self._n_frozen, "temper": self.temper_}
        return arrays | more_arrays, facts | more_facts

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> TopicCore:
        self._check_settings()
        K, V = self.n_components, self.n_features_in_
        topics = numbers(stored, store.TABLE + "topics", (K, V))
        # supervision
        self._seed_counts = None
        if "seeds" in stored.arrays:
            table = numbers(stored, "seeds", (3, None))
            if (table != np.rint(table)).any() or table.max(initial=0.0) >= 2**53:
                raise StoreError("the counts of seed words are not whole numbers", AGAIN)
            rows, columns, times = table.astype(np.int64)
            if times.min(initial=1) < 1:
                raise StoreError("seed words have no counts", AGAIN)
            self._seed_counts = sparse.csr_matrix((times, (rows, columns)), topics.shape)
        frozen = stored.meta["frozen"]
        if not isinstance(frozen, int) or not 0 <= frozen < K:
            raise StoreError(f"{frozen!r} is not a valid number of frozen topics", AGAIN)
        self._frozen_rows = topics[:frozen] if frozen else None
        if self.frozen_topics is None:  # arrays are not stored among the settings
            self.frozen_topics = self._frozen_rows
        # the state of `partial_fit`
        if "online" in stored.arrays:
            items, batches, *topic_counts = numbers(stored, "online", (2 + K,))
            if min(items, batches) < 1 or min(topic_counts) < 0.0:
                raise StoreError("the stored state of partial_fit is invalid", AGAIN)
            counts = {"topics": self._recover_counts(topics, np.array(topic_counts), items)}
            self._progress = StreamProgress({"topics": topics}, counts, items, int(batches))
        # words and documents
        self._restore_words(stored, given)
        self.weights_ = _read_proportions(stored, "weights", (K,))
        self.documents_ = _read_proportions(stored, "documents", (None, K))
        self._training_documents, self._index = None, None
        if retrieval.ROWS in stored.arrays:
            self._index = retrieval.DocumentIndex.restore(stored, K, V)
        self.temper_ = float(stored.meta["temper"])
        if not 0.0 < self.temper_ < np.inf:
            raise StoreError(f"{self.temper_} is not a valid power of posteriors", AGAIN)
        alpha, update = numbers(stored, "prior", (K,)), stored.meta["rows"]
        if update not in ("maximise", "mean_field", "draw"):
            raise StoreError(f"{update!r} is not a known update of topic proportions", AGAIN)
        if not self._smoothing["documents"] and (alpha != 1.0).any():
            raise StoreError("there is a prior of topic proportions, but no smoothing", AGAIN)
        return self._make_core(V, DocumentPrior(alpha, update))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _whole_if_possible(counts: FloatArray) -> FloatArray | IntArray:
    """Return counts as integers if all of them are whole."""
    whole = np.rint(counts)
    return whole.astype(np.int64) if np.array_equal(whole, counts) else counts


def _read_proportions(stored: store.Stored, name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """Read rows of proportions, which must sum to one."""
    rows = numbers(stored, name, shape)
    if not len(rows) or (rows < 0.0).any() or not np.allclose(rows.sum(axis=-1), 1.0):
        raise DataError(f"{name} are not proportions: they do not sum to one")
    return rows


def _as_documents(query: Any) -> Any:
    """Wrap a single document in the form that `transform` accepts."""
    if hasattr(query, "to_frame"):  # a row of a data frame
        return query.to_frame().T
    if sparse.issparse(query) and query.ndim == 1:
        return query.reshape(1, -1)
    if getattr(query, "ndim", 1) != 2:
        return [query]
    if query.shape[0] != 1:
        raise DataError(f"the query has {query.shape[0]} rows", "give one document at a time")
    return query


class PLSA(TopicModel):
    """Probabilistic latent semantic analysis (Hofmann 1999): p(w | d) = Σ_k θ_dk φ_kw.

    ``n_components``   number of topics (20)
    ``smoothing``      pseudo-count added to every count of a word in a topic (0)
    ``seed_words``     words known to belong to a topic: {topic: [word, …]}
    ``seed_strength``  a seed word gets this many times its corpus count as a pseudo-count in its
                       topic (1)
    ``frozen_topics``  the first topics, which stay fixed: rows of p(word | topic), or mappings from
                       words to weights
    ``init``           initial topics: 'anchors' (words that occur in one topic only; Arora et al.
                       2013), 'random', or tables {"topics": …}. None: anchors for EM; random for
                       other learners, for several runs or short runs, and with any supervision
    ``short_runs``     try this many random starts with two quick passes each, and continue from the
                       best. None: three for a few documents, one for many
    ``dtype``          'float32' takes less memory and time, with seven digits of precision
    ``vectorizer``, ``learner``, ``max_iter``, ``tol``, ``n_init``, ``engine``, ``random_state``
                       see `MultinomialMixture`

    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> proportions = PLSA(2).fit(notes).transform(["team goal", "market price"])
    >>> bool(proportions[0].argmax() != proportions[1].argmax())
    True
    """

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.smoothing is None:  # for LDA this means its default smoothing
            raise LearnerError("smoothing=None: must be a number", "0 means no smoothing")

    @property
    def _smoothing(self) -> Mapping[str, float]:
        smoothing: Any = self.smoothing
        words = smoothing.get("words", 0.0) if isinstance(smoothing, Mapping) else smoothing
        return {"documents": 0.0, "words": words}

    def _lacks_prior(self) -> str:
        return "not for the topics of documents, whatever the smoothing"

    def _prior_hint(self) -> str:
        return "use LDA, which also smooths the topics of documents"

    def _lacks_sampler(self) -> str:
        return ""  # the sampler exists, but needs a prior: see `_lacks_prior`


class LDA(LDAParameters, TopicModel):  # type: ignore[misc]  # as above
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003): PLSA with Dirichlet priors.

        θ_d ~ Dir(α),  φ_k ~ Dir(β),  p(w | d) = Σ_k θ_dk φ_kw

    Learned by EM for the mode, by variational Bayes (Blei et al. 2003), online (Hoffman, Blei &
    Bach 2010), or by collapsed Gibbs sampling (Griffiths & Steyvers 2004).

    ``n_components``   number of topics (20)
    ``smoothing``      pseudo-count added to every count: one number for all, or a mapping
                       {"documents": …, "words": …} for the counts of a topic in a document and of a
                       word in a topic. Defaults: 0.1 for documents, 0.01 for words
    ``seed_words``, …  see `PLSA`

    For learners that maximise, α and β are 1 + smoothing; for those that average or sample, they
    are the smoothing itself. Either way, this much is added to every count.

    >>> notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    >>> model = LDA(2, smoothing={"documents": 0.5}).fit(notes)
    >>> model.documents_.shape, model.document_smoothing_.tolist()
    ((4, 2), [0.5, 0.5])
    """

    @property
    def _smoothing(self) -> Mapping[str, float]:
        if isinstance(self.smoothing, Mapping):
            return LDA_SMOOTHING | dict(self.smoothing)
        if self.smoothing is None:
            return LDA_SMOOTHING
        return dict.fromkeys(LDA_SMOOTHING, self.smoothing)

    def _lacks_prior(self) -> str:
        if self.smoothing is None:
            return ""
        smoothing = self._smoothing if isinstance(self.smoothing, Mapping) else self.smoothing
        return not_smoothed(smoothing, *LDA_SMOOTHING)

    def _prior_hint(self) -> str:
        return "give a smoothing above 0; the default is 0.1 for documents and 0.01 for words"
