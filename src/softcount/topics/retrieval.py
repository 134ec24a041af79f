"""Retrieval: rank documents by similarity to a query, by topics, by words, or by both.

    score(q, d) = (1 − λ) cos(v_q, v_d) + λ cos(x_q, x_d)

where v are topic vectors and x tf-idf vectors, x_dw = log(1 + count of w in d) · idf_w with
idf_w = 1 + log((1 + n) / (1 + documents with w)); λ is the parameter ``words``. Hofmann (1999)
interpolates the two cosines in this way. There are two kinds of topic vectors:

    of documents  v_d = p(topic | d), folded in
    of words      v_d = Σ_w x_dw p(topic | w)

The second avoids folding in, which is noisy for queries of a few words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.errors import LearnerError, StoreError, brief
from softcount.core.parameters import check_number, check_whole
from softcount.core.store import AGAIN, numbers
from softcount.core.types import FloatArray, IntArray
from softcount.text.bags import Bags

CELLS = 1 << 21
"""The largest number of scores (queries × documents) computed at a time."""

IDF, ROWS, BORDERS, NUMBERS, VALUES = (
    f"index.{name}" for name in ("idf", "rows", "borders", "numbers", "values")
)


@dataclass(frozen=True, eq=False)
class TfIdf:
    """tf-idf weighting, with logarithmic term frequencies.

    >>> tf_idf = TfIdf.of(Bags.of([[1, 1], [1, 0]]))
    >>> tf_idf.idf.round(3)
    array([1.   , 1.405])
    >>> tf_idf(Bags.of([[0, 3], [0, 0]])).toarray()
    array([[0., 1.],
           [0., 0.]])
    """

    idf: FloatArray

    @classmethod
    def of(cls, bags: Bags) -> Self:
        """Compute the inverse document frequencies in the searchable documents."""
        frequencies = np.bincount(bags.by_document.columns, minlength=bags.n_words)
        return cls(1.0 + np.log((1.0 + len(bags)) / (1.0 + frequencies)))

    def __call__(self, bags: Bags) -> Any:
        """Return tf-idf vectors, (documents, words) in CSR: of unit length, zero if empty."""
        rows = bags.by_document
        weights = np.log1p(rows.value) * self.idf[rows.columns]
        places = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
        lengths = np.sqrt(np.bincount(places, weights**2, minlength=len(bags)))
        shape = (len(bags), bags.n_words)
        return sparse.csr_matrix((weights / lengths[places], rows.columns, rows.indptr), shape)

    def topic_vectors(self, bags: Bags, topics: FloatArray, weights: FloatArray) -> FloatArray:
        """Compute topic vectors from words, Σ_w x_dw p(k | w), (documents, topics).

        ``topics``   p(word | topic), (topics, words)
        ``weights``  p(topic), (topics,); p(k | w) ∝ p(k) p(w | k)

        >>> bags = Bags.of([[1, 0], [0, 1], [1, 1]])
        >>> topics = np.array([[1.0, 0.0], [0.5, 0.5]])
        >>> TfIdf.of(bags).topic_vectors(bags, topics, np.array([0.5, 0.5])).round(3)
        array([[0.667, 0.333],
               [0.   , 1.   ],
               [0.471, 0.943]])
        """
        joint = topics.T * weights
        totals = joint.sum(axis=1, keepdims=True)
        of_words = np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0.0)
        vectors: FloatArray = self(bags) @ of_words
        return vectors


@dataclass(frozen=True, eq=False)
class DocumentIndex:
    """A search index of documents.

    ``tf_idf``    the weights of words
    ``vectors``   topic vectors of unit length, or zero, (topics, documents)
    ``postings``  an inverted index: tf-idf weights, (words, documents), in CSR

    Memory: 12 bytes for each distinct word of each document, 8 K bytes for each document with K
    topics, and 16 bytes for each word. Queries are answered in batches, which need about 75 MB more
    however many there are (some 35 bytes per document beyond two million documents). A query reads
    only the postings of its own words.

    >>> bags = Bags.of([[2, 1, 0], [0, 0, 3], [0, 0, 0]])
    >>> index = DocumentIndex.of(bags, np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    >>> hits = index.rank(Bags.of([[0, 1, 0]]), np.array([[1.0, 0.0]]), n=2, words=0.5)
    >>> [(number, round(score, 3)) for number, score in hits[0]]
    [(0, 0.764), (1, 0.121)]
    """

    tf_idf: TfIdf
    vectors: FloatArray
    postings: Any

    @classmethod
    def of(cls, bags: Bags, vectors: FloatArray) -> Self:
        """Build the index from documents' words and their topic vectors, (documents, topics)."""
        tf_idf = TfIdf.of(bags)
        postings = tf_idf(bags).T.tocsr()
        return cls(tf_idf, np.ascontiguousarray(_normalise(bags, vectors).T), postings)

    def __len__(self) -> int:
        return int(self.vectors.shape[1])

    def rank(
        self, bags: Bags, vectors: FloatArray, n: int = 10, words: float = 0.0
    ) -> list[list[tuple[int, float]]]:
        """Return the ``n`` best documents for each query, (number, score), best first.

        Ties are in the order of the documents' numbers. An empty document has the score 0; a query
        without any known word has no hits.

        ``bags``, ``vectors``  the queries' words and topic vectors, of the same kind as the
                               documents' vectors
        ``words``              λ, the weight of words, 0 to 1; the rest is that of topics
        """
        check_whole("n", n)
        check_number("words", words, "0.7 is a good start")
        if words > 1.0:
            raise LearnerError(f"words={brief(words)}: must be from 0 to 1", "0.7 is a good start")
        hits = [_find_best(row, n) for row in self._scores(bags, vectors, float(words))]
        return [hit if known else [] for hit, known in zip(hits, bags.lengths > 0.0, strict=True)]

    def _scores(self, bags: Bags, vectors: FloatArray, words: float) -> Iterator[FloatArray]:
        """Yield the scores of all documents for each query, computed in batches of queries."""
        queries, tf_idf = _normalise(bags, vectors), self.tf_idf(bags)
        step = max(1, CELLS // max(1, len(self)))
        for first in range(0, len(bags), step):
            batch = slice(first, first + step)
            scores = (1.0 - words) * self._topic_cosines(queries[batch])
            if words:
                scores += words * (tf_idf[batch] @ self.postings).toarray()
            yield from scores

    def _topic_cosines(self, queries: FloatArray) -> FloatArray:
        """Compute the cosines of topic vectors, (queries, documents).

        Topic by topic rather than with BLAS, where equal documents may differ in the last bits.
        """
        cosines = np.zeros((len(queries), len(self)))
        for query, row in zip(queries.T, self.vectors, strict=True):
            if query.any():
                cosines += query[:, None] * row
        return cosines

    # files
    def arrays(self) -> dict[str, FloatArray | IntArray]:
        """Return the arrays to store in a file; see `restore`."""
        return {
            IDF: self.tf_idf.idf,
            ROWS: self.vectors,
            BORDERS: self.postings.indptr.astype(np.int64),
            NUMBERS: self.postings.indices.astype(np.int32),
            VALUES: self.postings.data,
        }

    @classmethod
    def restore(cls, stored: store.Stored, n_topics: int, n_words: int) -> Self:
        """Restore the index written by `arrays`, after checking that it is consistent."""
        rows, idf = numbers(stored, ROWS, (n_topics, None)), numbers(stored, IDF, (n_words,))
        values = numbers(stored, VALUES, (None,))
        borders, documents = _read_integers(stored, BORDERS), _read_integers(stored, NUMBERS)
        n = rows.shape[1]
        if (
            len(borders) != n_words + 1
            or borders[0] != 0
            or not borders[-1] == len(documents) == len(values)
            or (np.diff(borders) < 0).any()
            or ((documents < 0) | (documents >= n)).any()
            # entries of unit vectors are at most 1
            or any(((x < 0.0) | (x > 1.0 + 1e-9)).any() for x in (rows, values))
        ):
            raise StoreError("the index of documents is inconsistent", AGAIN)
        if not (idf > 0.0).all():
            raise StoreError("the index of documents has a word with an idf of 0 or less", AGAIN)
        postings = sparse.csr_matrix((values, documents, borders), shape=(n_words, n))
        return cls(TfIdf(idf), rows, postings)


def _read_integers(stored: store.Stored, name: str) -> IntArray:
    array = np.asarray(stored.arrays[name])
    if array.ndim != 1 or array.dtype.kind != "i":
        raise StoreError(f"{name!r} is not a list of whole numbers", AGAIN)
    return array


def _normalise(bags: Bags, vectors: FloatArray) -> FloatArray:
    """Scale topic vectors to unit length; zero for documents without words, which have no topic."""
    table = np.where(bags.lengths[:, None] > 0.0, vectors, 0.0)
    lengths = np.sqrt((table**2).sum(axis=1, keepdims=True))
    unit: FloatArray = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0.0)
    return unit


def _find_best(scores: FloatArray, n: int) -> list[tuple[int, float]]:
    """Return the ``n`` highest scores with their documents; ties by the lowest number."""
    chosen = np.arange(len(scores))
    if n < len(scores):
        chosen = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    order = chosen[np.argsort(-scores[chosen], kind="stable")][:n]
    return [(int(d), float(scores[d])) for d in order]
