"""Documents that are like a query: by topics, by words, or by both.

    score(q, d) = (1 − λ) cos(v_q, v_d) + λ cos(x_q, x_d)

v are topic vectors and x tf-idf vectors, x_dw = log(1 + count of w in d) · idf_w with
idf_w = 1 + log((1 + n) / (1 + documents with w)); λ is called ``words``. Hofmann (1999) mixes the
two cosines in this way. There are two kinds of topic vectors:

    of documents  v_d = p(topic | d), folded in
    of words      v_d = Σ_w x_dw p(topic | w)

The second needs no folding in, which is noisy for queries of a few words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount import store
from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError, StoreError, shown
from softcount.models.settings import check_number, check_whole
from softcount.models.stored import AGAIN, numbers
from softcount.types import Array

CELLS = 1 << 21
"""Scores are made for as many queries at a time as need no more numbers than this, or for one."""

IDF, ROWS, BORDERS, NUMBERS, VALUES = (
    f"index.{name}" for name in ("idf", "rows", "borders", "numbers", "values")
)


@dataclass(frozen=True, eq=False)
class Weighing:
    """How much a word says: rare ones more, repeated ones not much more (tf-idf).

    >>> weighing = Weighing.of(Bags.of([[1, 1], [1, 0]]))
    >>> weighing.idf.round(3)
    array([1.   , 1.405])
    >>> weighing(Bags.of([[0, 3], [0, 0]])).toarray()
    array([[0., 1.],
           [0., 0.]])
    """

    idf: Array

    @classmethod
    def of(cls, bags: Bags) -> Self:
        """As the documents that can be found have the words."""
        spread = np.bincount(bags.by_document.columns, minlength=bags.n_words)
        return cls(1.0 + np.log((1.0 + len(bags)) / (1.0 + spread)))

    def __call__(self, bags: Bags) -> Any:
        """Documents × words, every row of length one, or zero if the document is empty (CSR)."""
        if bags.n_words != len(self.idf):
            raise DataError(
                f"the documents are counted in {bags.n_words} words, the index in {len(self.idf)}",
                "count the words of both in the same way",
            )
        rows = bags.by_document
        weights = np.log1p(rows.value) * self.idf[rows.columns]
        places = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
        lengths = np.sqrt(np.bincount(places, weights**2, minlength=len(bags)))
        shape = (len(bags), bags.n_words)
        return sparse.csr_matrix((weights / lengths[places], rows.columns, rows.indptr), shape)

    def topics(self, bags: Bags, topics: Array, weights: Array) -> Array:
        """Topic vectors by way of words, Σ_w x_dw p(k | w), (documents, topics).

        ``topics``   p(word | topic), (topics, words)
        ``weights``  shares of the topics among all words; p(k | w) ∝ p(k) p(w | k)

        >>> bags = Bags.of([[1, 0], [0, 1], [1, 1]])
        >>> topics = np.array([[1.0, 0.0], [0.5, 0.5]])
        >>> Weighing.of(bags).topics(bags, topics, np.array([0.5, 0.5])).round(3)
        array([[0.667, 0.333],
               [0.   , 1.   ],
               [0.471, 0.943]])
        """
        joint = topics.T * weights
        totals = joint.sum(axis=1, keepdims=True)
        of_words = np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0.0)
        vectors: Array = self(bags) @ of_words
        return vectors


@dataclass(frozen=True, eq=False)
class Index:
    """Documents that can be found.

    ``weighing``  of words
    ``rows``      (topics, documents), topic vectors of length one, or zero
    ``postings``  words × documents: which documents have a word, and x of each (CSR)

    Takes 12 bytes for every different word of every document, 8 K bytes a document for K topics,
    and 16 bytes a word. Queries are answered some at a time and take about 75 MB on top, however
    many they are (some 35 bytes a document from two million documents on). A query reads the
    postings of its own words only.

    >>> bags = Bags.of([[2, 1, 0], [0, 0, 3], [0, 0, 0]])
    >>> index = Index.of(bags, np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))
    >>> hits = index.ranked(Bags.of([[0, 1, 0]]), np.array([[1.0, 0.0]]), n=2, words=0.5)
    >>> [(number, round(score, 3)) for number, score in hits[0]]
    [(0, 0.764), (1, 0.121)]
    """

    weighing: Weighing
    rows: Array
    postings: Any

    @classmethod
    def of(cls, bags: Bags, vectors: Array) -> Self:
        """Of documents: their words, and their topic vectors, (documents, topics)."""
        weighing = Weighing.of(bags)
        postings = weighing(bags).T.tocsr()
        return cls(weighing, np.ascontiguousarray(_unit(bags, vectors).T), postings)

    def __len__(self) -> int:
        return int(self.rows.shape[1])

    def ranked(
        self, bags: Bags, vectors: Array, n: int = 10, words: float = 0.0
    ) -> list[list[tuple[int, float]]]:
        """The ``n`` best documents for each query, (number, score), best first.

        Equals stand in the order of their numbers. An empty document has the score 0; a query
        without any known word has no hits.

        ``bags``, ``vectors``  the queries' words, and their topic vectors, made as the documents'
        ``words``              how much words count, 0 to 1; topics count for the rest
        """
        check_whole("n", n)
        check_number("words", words, "0.7 is a good start")
        if words > 1.0:
            raise LearnerError(f"words={shown(words)}: must be from 0 to 1", "0.7 is a good start")
        hits = [_best(row, n) for row in self._scores(bags, vectors, float(words))]
        return [hit if known else [] for hit, known in zip(hits, bags.lengths > 0.0, strict=True)]

    def _scores(self, bags: Bags, vectors: Array, words: float) -> Iterator[Array]:
        """One row of scores a query, made for some queries at a time."""
        asked, weighed = _unit(bags, vectors), self.weighing(bags)
        if asked.shape[1] != len(self.rows):
            raise DataError(
                f"the queries have {asked.shape[1]} topics, the index has {len(self.rows)}",
                "make both with the same model",
            )
        step = max(1, CELLS // max(1, len(self)))
        for first in range(0, len(bags), step):
            part = slice(first, first + step)
            scores = (1.0 - words) * self._by_topics(asked[part])
            if words:
                scores += words * (weighed[part] @ self.postings).toarray()
            yield from scores

    def _by_topics(self, asked: Array) -> Array:
        """Cosines, added up topic by topic: BLAS would give equal documents unequal last bits."""
        cosines = np.zeros((len(asked), len(self)))
        for share, row in zip(asked.T, self.rows, strict=True):
            if share.any():
                cosines += share[:, None] * row
        return cosines

    # files
    def arrays(self) -> dict[str, Array]:
        """What a file must hold; see `recalled`."""
        it = self.postings
        borders, which = it.indptr.astype(np.int64), it.indices.astype(np.int32)
        mine = {IDF: self.weighing.idf, ROWS: self.rows}
        return {**mine, BORDERS: borders, NUMBERS: which, VALUES: it.data}


def recalled(stored: store.Stored, n_topics: int, n_words: int) -> Index:
    """The index that `Index.arrays` wrote, if it is one for so many topics and words."""
    rows, idf = numbers(stored, ROWS, (n_topics, None)), numbers(stored, IDF, (n_words,))
    values = numbers(stored, VALUES, (None,))
    borders, which = _whole(stored, BORDERS), _whole(stored, NUMBERS)
    n = rows.shape[1]
    good = (
        len(borders) == n_words + 1
        and borders[0] == 0
        and borders[-1] == len(which) == len(values)
        and bool((np.diff(borders) >= 0).all())
        and bool(((which >= 0) & (which < n)).all())
    )
    if not good or not all(_between(part, 0.0, 1.0) for part in (rows, values)):
        raise StoreError("the index of documents does not fit together", AGAIN)
    if not (idf > 0.0).all():
        raise StoreError("the index of documents has a word that counts for nothing", AGAIN)
    postings = sparse.csr_matrix((values, which, borders), shape=(n_words, n))
    return Index(Weighing(idf), rows, postings)


def _whole(stored: store.Stored, name: str) -> Array:
    array = np.asarray(stored.arrays[name])
    if array.ndim != 1 or array.dtype.kind != "i":
        raise StoreError(f"{name!r} is not a list of whole numbers", AGAIN)
    return array


def _between(array: Array, low: float, high: float) -> bool:
    """Whether all entries are in this range, but for rounding."""
    return bool(((array >= low) & (array <= high + 1e-9)).all())


def _unit(bags: Bags, vectors: Array) -> Array:
    """Topic vectors of length one; zero for documents without words, which have no topics."""
    given = np.asarray(vectors, dtype=np.float64)
    if given.ndim != 2 or len(given) != len(bags):
        raise DataError(
            f"the topic vectors have the shape {given.shape} for {len(bags)} documents",
            "give one row a document",
        )
    table = np.where(bags.lengths[:, None] > 0.0, given, 0.0)
    lengths = np.sqrt((table**2).sum(axis=1, keepdims=True))
    unit: Array = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0.0)
    return unit


def _best(scores: Array, n: int) -> list[tuple[int, float]]:
    """The ``n`` highest, among equals those with the lowest numbers."""
    chosen = np.arange(len(scores))
    if n < len(scores):
        chosen = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    order = chosen[np.argsort(-scores[chosen], kind="stable")][:n]
    return [(int(d), float(scores[d])) for d in order]
