"""Counting words: texts to sparse counts, documents × words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy import sparse

from softcount.core.contract import SklearnContract
from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array
from softcount.text.counting import count_texts
from softcount.text.tokenise import spaces, words

Analyzer = Callable[[Any], Sequence[str]]


def as_it_is(tokens: Sequence[str]) -> Sequence[str]:
    """Return the words of a document that is already tokenised."""
    return tokens


ANALYZERS: dict[str, Analyzer] = {"words": words, "spaces": spaces, "as_it_is": as_it_is}
"""Tokenisers that a model file can name."""


class WordCounter(SklearnContract):
    """Counts the words of texts, as scikit-learn's `CountVectorizer` does, and faster.

    Columns are the words in alphabetical order, or those of a given vocabulary in its own order.

    ``analyzer``    function that returns the words of a text
    ``vocabulary``  the words to count; None: all that occur in the texts of `fit`

    >>> counter = WordCounter()
    >>> counter.fit_transform(["One fish, two fish", "Red fish"]).toarray()
    array([[2, 1, 0, 1],
           [1, 0, 1, 0]])
    >>> counter.get_feature_names_out().tolist(), counter.transform(["a red one"]).toarray()
    (['fish', 'one', 'red', 'two'], array([[0, 1, 1, 0]]))
    """

    _mixins = ("TransformerMixin",)
    vocabulary_: dict[str, int]
    """The column of each word."""

    def __init__(self, analyzer: Analyzer = words, vocabulary: Iterable[str] | None = None) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary

    def fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Learn the vocabulary, unless it is given."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary, unless it is given, and count the words of the same texts."""
        if self.vocabulary is not None:
            self.vocabulary_ = _number_words(self.vocabulary)
            return self.transform(texts)
        names, counts = self._count(list(texts))
        if not names:
            raise DataError(
                "no words are left to learn from: every text is empty, or all its words were "
                "dropped",
                "check the texts, and what the vectorizer drops",
            )
        self.vocabulary_ = {name: column for column, name in enumerate(sorted(names))}
        return _rename(counts, names, self.vocabulary_)

    def transform(self, texts: Iterable[Any]) -> Any:
        """Count the words of texts, (texts, words): a CSR matrix. Other words are left out."""
        self._require_vocabulary()
        names, counts = self._count(list(texts))
        return _rename(counts, names, self.vocabulary_)

    def _count(self, texts: Sequence[Any]) -> tuple[list[str], Any]:
        """Return all words, and how often each is in each text."""
        if self.analyzer is words and texts:
            with suppress(UnicodeEncodeError):  # lone surrogates: below
                return count_texts(texts)
        numbers: dict[str, int] = {}
        # a number for every new word: faster than to ask first whether it has one
        lists = [
            [numbers.setdefault(word, len(numbers)) for word in self.analyzer(text)]
            for text in texts
        ]
        ends = np.cumsum(np.fromiter(chain([0], map(len, lists)), np.int64, len(lists) + 1))
        columns = np.fromiter(chain.from_iterable(lists), np.int64, int(ends[-1]))
        counts = np.ones(len(columns), np.int64)
        shape = (len(lists), len(numbers))
        return list(numbers), sparse.csr_matrix((counts, columns, ends), shape=shape)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the words in the order of the columns."""
        self._require_vocabulary()
        return np.asarray(list(self.vocabulary_), dtype=object)

    def build_analyzer(self) -> Analyzer:
        """Return the function that splits a text into words."""
        return self.analyzer

    def _require_vocabulary(self) -> None:
        if hasattr(self, "vocabulary_"):
            return
        if self.vocabulary is None:
            from sklearn.exceptions import NotFittedError  # imported only when it is needed

            raise NotFittedError("this WordCounter has no vocabulary: call fit first")
        self.vocabulary_ = _number_words(self.vocabulary)


def _number_words(vocabulary: Iterable[str]) -> dict[str, int]:
    """Return the column of each word of a vocabulary."""
    if isinstance(vocabulary, str):
        raise LearnerError("vocabulary is a single text", "give a list of words")
    names = list(vocabulary)
    numbers = {word: column for column, word in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(word for column, word in enumerate(names) if numbers[word] != column)
        raise LearnerError(f"{twice!r} is twice in the vocabulary", "give each word once")
    if not names:
        raise LearnerError("the vocabulary has no words", "give at least one")
    return numbers


def _rename(counts: Any, names: Sequence[str], columns: Mapping[str, int]) -> Any:
    """Return counts with each word in its column, in order; words without one are left out.

    ``names``  the words in the order of the present columns
    """
    places = np.fromiter((columns.get(name, -1) for name in names), np.int32, len(names))
    indices, data, ends = places[counts.indices], counts.data, counts.indptr
    if len(places) and places.min() < 0:
        known = indices >= 0
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        indices, data, ends = indices[known], data[known], kept[ends]
    shape = (counts.shape[0], len(columns))
    renamed = sparse.csr_matrix((data, indices, ends), shape=shape)
    renamed.sum_duplicates()  # and sorts the columns
    return renamed
