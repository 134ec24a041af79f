"""What topic models are good for: folding in, scoring, finding, generating."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from softcount.corpus.bags import Bags
from softcount.errors import DataError
from softcount.models.reading import telling
from softcount.models.settings import check_whole
from softcount.models.topics.documents import each_shard, word_counts
from softcount.models.topics.export import pyldavis_inputs
from softcount.models.topics.learning import TopicLearner
from softcount.types import Array

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
        `softcount.models.topics.retrieval`. A query without any known word finds nothing.

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
        `softcount.evaluate.completion`.
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
