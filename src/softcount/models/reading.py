"""Models that read documents: from texts or counts to bags of words, the same way ever after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from softcount import store
from softcount.bounds import demand_drawable, within_range
from softcount.corpus import texts
from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.errors import DataError
from softcount.models.stored import numbers, strings
from softcount.types import Array

KEPT_LENGTHS = 10_000


class ReadsWords:
    """What a model of documents knows of words (a mixin for estimators)."""

    vectorizer: Any
    vectorizer_: Any
    vocabulary_: Array | None
    """The words, in the order of the columns; None if the model was fitted to a bare matrix."""
    n_features_in_: int
    _lengths: Array

    def read(self, X: Any, *, first: bool) -> Bags:
        """Documents as users give them; ``first``: these say what to expect of others."""
        found = texts.texts_in(X)
        if found is not None:
            X = self._counted(found, first)
        elif first:
            self.vectorizer_ = None
        if hasattr(X, "columns") and first:  # a data frame names its words
            names: Any = np.asarray(X.columns, dtype=object)
        else:
            names = None
        with within_range("the data"):
            checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)
        if first:
            counted = self.vectorizer_ is not None
            self.vocabulary_ = texts.vocabulary_of(self.vectorizer_) if counted else names
        return Bags.of(checked)

    def _counted(self, documents: list[Any], first: bool) -> Any:
        if first:
            self.vectorizer_ = texts.own_vectorizer(self.vectorizer, documents)
            return texts.learn_words(self.vectorizer_, documents)
        if getattr(self, "vectorizer_", None) is None:
            raise DataError(
                "this model was fitted to a matrix of counts, and cannot count words by itself",
                "pass counts in the same columns, or fit the model to texts",
            )
        return texts.count_words(self.vectorizer_, documents)

    def adopt(self, archive: Archive, *, first: bool) -> None:
        """Documents on disk; ``first``: their words are what to expect of others."""
        if first:
            self.vectorizer_, self.vocabulary_ = archive.vectorizer(), archive.vocabulary
            self.n_features_in_ = archive.n_words
            return
        same = archive.n_words == self.n_features_in_
        if same and self.vocabulary_ is not None and archive.vocabulary is not None:
            same = np.array_equal(self.vocabulary_, archive.vocabulary)
        if not same:
            raise DataError(
                f"the archive {archive.path} has other words than the model",
                "build it with the vocabulary of the archive that the model was fitted to",
            )

    def word_names(self) -> Array:
        """The words, or numbers of columns where words have no names."""
        if self.vocabulary_ is None:
            return np.arange(self.n_features_in_).astype(object)
        return self.vocabulary_

    # new documents
    def remember_lengths(self, lengths: Array) -> None:
        """Keep how long documents are, or an even selection of them."""
        n = len(lengths)
        self._lengths = lengths[np.linspace(0, n - 1, min(n, KEPT_LENGTHS)).astype(np.int64)]

    def some_lengths(self, n: int, rng: np.random.Generator) -> Array:
        """Lengths of documents as those learned from had."""
        lengths: Array = np.round(rng.choice(self._lengths, size=n))
        demand_drawable(lengths, "words")
        return lengths.astype(np.int64)

    def told(self, counts: Any, rng: np.random.Generator) -> Any:
        """Counts as the model was given documents: as texts, as lists of words, or as counts.

        As counts too where the words have no names (hashing).
        """
        if self.vectorizer_ is None or self.vocabulary_ is None:
            return counts
        names = self.vocabulary_
        cut = [rng.permutation(np.repeat(names[row.indices], row.data)).tolist() for row in counts]
        if getattr(self.vectorizer_, "analyzer", None) is texts.as_it_is:
            return cut
        return [" ".join(words) for words in cut]

    # files
    def stored_words(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """What a file must hold to read and tell documents again."""
        names = self.vocabulary_
        facts = {
            "vocabulary": None if names is None else list(map(str, names)),
            "vectorizer": None if self.vectorizer_ is None else texts.described(self.vectorizer_),
        }
        return {"lengths": self._lengths}, facts

    def recall_words(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        """Take back what `stored_words` wrote."""
        V = self.n_features_in_
        self._lengths = numbers(stored, "lengths", (None,))
        if not len(self._lengths) or not 0.0 <= self._lengths.min() <= self._lengths.max() < 2**40:
            raise DataError("there are no lengths of documents, or impossible ones")
        self.vocabulary_ = strings(stored.meta["vocabulary"], V, "words")
        described, own = stored.meta["vectorizer"], given.get("vectorizer")
        if own is not None:
            self.vectorizer_ = texts.adopted(own, self.vocabulary_, V)
        elif described is None:
            self.vectorizer_ = None
        else:
            self.vectorizer_ = texts.restored(described, self.vocabulary_)


def telling(
    weights: Array, words: Array, names: Array, n: int = 10
) -> list[list[tuple[Any, float]]]:
    """The words that mark each class, with their probabilities.

    Those with the largest p(w | k) log² [p(w | k) / p(w)], of all that are more common in the class
    than elsewhere. Without the square these would be what words contribute to the divergence of the
    class from the whole, and words such as "the" would often come first. A class without any such
    word is shown by its commonest ones.

    >>> words = np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    >>> names = np.array(["the", "bank", "river"], dtype=object)
    >>> telling(np.array([0.5, 0.5]), words, names, 1)
    [[('bank', 0.4)], [('river', 0.4)]]
    """
    overall = np.maximum(weights / weights.sum() @ words, 1e-300)
    lift = np.log(np.maximum(words, 1e-300) / overall)
    marks = words * np.where(lift > 1e-9, lift, 0.0) ** 2
    order = np.lexsort((-words, -marks))[:, :n]  # among equals, the common ones
    return [
        [(names[w], float(words[k, w])) for w in row if marks[k, w] or not marks[k].any()]
        for k, row in enumerate(order)
    ]
