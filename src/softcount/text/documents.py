"""Word counts from raw texts or lists of words, and a mixin for models that read documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from softcount.core import store
from softcount.core.bounds import check_drawable, within_range
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.progress import phase
from softcount.core.store import numbers, strings
from softcount.core.types import Array, FloatArray, IntArray
from softcount.text.bags import Bags
from softcount.text.counter import ANALYZERS, WordCounter, as_it_is
from softcount.text.tokenise import spaces, words

if TYPE_CHECKING:
    from softcount.text.archive import Archive


def find_texts(data: Any) -> list[Any] | None:
    """Return the data as a list of texts or of lists of words; None if they are numbers.

    >>> find_texts(["a b", ""]), find_texts([["a", "b"], []]), find_texts([[1, 2]])
    (['a b', ''], [['a', 'b'], []], None)
    """
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}",
            "give a list of texts, one for each document",
        )
    if getattr(data, "ndim", 1) != 1 or not isinstance(data, Iterable):
        return None
    items = list(data)
    if not items:
        raise DataError("there are no documents", "give at least one")
    filled = [x for x in items if not (isinstance(x, str | list | tuple) and len(x) == 0)]
    first: Any = filled[0] if filled else []
    if first is None or not filled:  # a missing value has no type: look for a text elsewhere
        first = next((x for x in items if isinstance(x, str)), first)
    if isinstance(first, bytes):
        raise DataError(
            f"document {items.index(first)} is a bytes object: {brief(first)}",
            "decode it first, for example text.decode('utf-8')",
        )
    kind: Any = str
    expected, empty = "texts", "an empty text"
    if isinstance(first, list | tuple) and (not first or isinstance(first[0], str)):
        kind, expected, empty = list | tuple, "lists of words", "an empty list"
    elif not isinstance(first, str):
        return None
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise DataError(
                f"document {number} is {brief(item)}, while others are {expected}",
                f"give {expected} only; an empty document is {empty}",
            )
        if kind is not str and not all(isinstance(word, str) for word in item):
            wrong = brief(next(word for word in item if not isinstance(word, str)))
            raise DataError(f"document {number} has {wrong} among its words", "words are strings")
    return items


def default_vectorizer(texts: Sequence[Any]) -> WordCounter:
    """Return a vectorizer that lowercases texts, and takes lists of words unchanged."""
    is_tokenised = any(isinstance(text, list | tuple) for text in texts)
    return WordCounter(as_it_is if is_tokenised else words)


def copy_vectorizer(
    vectorizer: Any,
    texts: Sequence[Any],
    default: Callable[[Sequence[Any]], Any] = default_vectorizer,
) -> Any:
    """Return a copy of the user's vectorizer, or the default for these texts if it is None."""
    if vectorizer is None:
        return default(texts)
    if not hasattr(vectorizer, "fit_transform"):
        raise LearnerError(
            f"vectorizer={brief(vectorizer)} cannot count words",
            "give scikit-learn's CountVectorizer, or a similar object",
        )
    if isinstance(vectorizer, WordCounter):
        return WordCounter(**vectorizer.get_params())
    from sklearn.base import clone

    return clone(vectorizer, safe=False)


def learn_words(vectorizer: Any, texts: Sequence[Any]) -> Any:
    """Fit the vectorizer to these texts, and return their counts."""
    _check_readable(vectorizer, texts)
    try:
        with phase("counting words"):
            return vectorizer.fit_transform(texts)
    except ValueError as error:
        if "vocabulary" not in str(error) and "no terms" not in str(error).lower():
            raise
        raise DataError(
            "no words are left to learn from: every text is empty, or all its words were dropped",
            "check the texts, and what the vectorizer drops",
        ) from error


def count_words(vectorizer: Any, texts: Sequence[Any]) -> Any:
    """Count the words of these texts that are in the vectorizer's vocabulary."""
    _check_readable(vectorizer, texts)
    with phase("counting words"):
        return vectorizer.transform(texts)


def _check_readable(vectorizer: Any, texts: Sequence[Any]) -> None:
    """Raise if a text would be read as a list of words, letter by letter, or vice versa."""
    analyzer = getattr(vectorizer, "analyzer", None)
    if analyzer is as_it_is and any(isinstance(text, str) for text in texts):
        raise DataError(
            "the model was fitted to lists of words, but these are texts",
            "tokenise them in the same way",
        )
    if analyzer in (words, spaces) and any(not isinstance(text, str) for text in texts):
        raise DataError(
            "the model was fitted to texts, but these are lists of words",
            "give texts, or fit the model to lists of words",
        )


# Model files: a vectorizer is stored as the settings of scikit-learn's CountVectorizer, of which
# ours has none but the analyzer.
NAMED = ("word", "char", "char_wb")
SETTINGS: dict[str, Any] = {
    "lowercase": True,
    "strip_accents": None,
    "stop_words": None,
    "ngram_range": [1, 1],
    "binary": False,
}
"""The settings needed to tokenise new texts in the same way, with their defaults."""


def describe_vectorizer(vectorizer: Any) -> dict[str, Any]:
    """Describe a vectorizer as JSON; {"custom": True} if that is not possible.

    A custom regular expression is not stored: some take exponential time, and a file from an
    untrusted source must not be able to contain one.
    """
    names = {function: name for name, function in ANALYZERS.items()}
    settings = dict(SETTINGS)
    if _is_count_vectorizer(vectorizer):
        untold = ("tokenizer", "preprocessor", "token_pattern", "input")
        defaults = type(vectorizer)()
        if any(getattr(vectorizer, name) != getattr(defaults, name) for name in untold):
            return {"custom": True}
        settings = {name: getattr(vectorizer, name) for name in SETTINGS}
        settings["ngram_range"] = list(settings["ngram_range"])
    elif not isinstance(vectorizer, WordCounter):
        return {"custom": True}
    analyzer = vectorizer.analyzer
    if analyzer not in NAMED and analyzer not in names:
        return {"custom": True}
    return {**settings, "analyzer": names.get(analyzer, analyzer), "ours": analyzer in names}


def _is_count_vectorizer(vectorizer: Any) -> bool:
    """Return whether it is scikit-learn's own `CountVectorizer`, without importing that."""
    module = sys.modules.get("sklearn.feature_extraction.text")
    return module is not None and type(vectorizer) is module.CountVectorizer


def restore_vectorizer(description: Any, vocabulary: Any) -> Any:
    """Recreate a vectorizer from its description and its vocabulary."""
    if description == {"custom": True}:
        raise StoreError(
            "this model was fitted with a custom vectorizer, which the file does not contain",
            "pass it: softcount.load(path, vectorizer=…)",
        )
    again = "save the model again"
    if not isinstance(description, dict) or set(description) != {*SETTINGS, "analyzer", "ours"}:
        raise StoreError("the file does not describe a known vectorizer", again)
    settings = dict(description)
    ours, stop_words, ngrams = (settings[name] for name in ("ours", "stop_words", "ngram_range"))
    checks = {
        "analyzer": settings["analyzer"] in (list(ANALYZERS) if ours is True else NAMED),
        "stop_words": stop_words in (None, "english") or _is_list_of(stop_words, str),
        "ngram_range": _is_list_of(ngrams, int)
        and len(ngrams) == 2
        and 1 <= ngrams[0] <= ngrams[1],
        "strip_accents": settings["strip_accents"] in (None, "ascii", "unicode"),
        **{name: isinstance(settings[name], bool) for name in ("lowercase", "binary", "ours")},
    }
    for name, is_valid in checks.items():
        if not is_valid:
            fault = f"{name}={brief(settings[name])}"
            raise StoreError(f"the file describes a vectorizer with the invalid {fault}", again)
    if vocabulary is None:
        raise StoreError("the file has a vectorizer, but no vocabulary", again)
    analyzer = settings.pop("analyzer")
    if settings.pop("ours"):
        analyzer = ANALYZERS[analyzer]
        if settings == SETTINGS:
            return _with_words(WordCounter(analyzer), vocabulary)
    settings["ngram_range"] = tuple(ngrams)
    from sklearn.feature_extraction.text import CountVectorizer

    return _with_words(CountVectorizer(analyzer=analyzer, **settings), vocabulary)


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _with_words(vectorizer: Any, vocabulary: Any) -> Any:
    """Return a copy of the vectorizer as if it had been fitted with this vocabulary."""
    fitted = copy_vectorizer(vectorizer, ()).set_params(vocabulary=list(vocabulary))
    fitted.transform([])  # reads the vocabulary
    return fitted


def adopt_vectorizer(vectorizer: Any, vocabulary: Any, n_words: int) -> Any:
    """Check that the user's vectorizer counts the words of a loaded model, and return it."""
    from sklearn.exceptions import NotFittedError

    try:
        names = vocabulary_of(vectorizer)
    except NotFittedError as error:
        is_plain = isinstance(vectorizer, WordCounter) or _is_count_vectorizer(vectorizer)
        if is_plain and vocabulary is not None:
            return _with_words(vectorizer, vocabulary)
        raise StoreError(
            "the vectorizer has not been fitted, and the file does not contain its vocabulary",
            "pass the fitted vectorizer_ of the model, or fit it to the same texts",
        ) from error
    same = names is None or (
        len(names) == n_words and (vocabulary is None or list(names) == list(vocabulary))
    )
    if not same:
        raise StoreError(
            f"the vocabulary of the vectorizer ({len(names)} words) differs from that of the "
            f"model ({n_words} words)",
            "pass the vectorizer that the model was fitted with",
        )
    return vectorizer


def vocabulary_of(vectorizer: Any) -> Any:
    """Return the words in the order of the columns; None if there are none (hashing)."""
    if not hasattr(vectorizer, "get_feature_names_out"):
        return None
    return np.asarray(vectorizer.get_feature_names_out(), dtype=object)


KEPT_LENGTHS = 10_000
"""The largest number of document lengths that a model keeps."""


def evenly_spaced(n: int) -> IntArray:
    """Return the numbers of the documents whose lengths are kept, of n."""
    return np.linspace(0, n - 1, min(n, KEPT_LENGTHS)).astype(np.int64)


class DocumentReader:
    """Mixin for estimators of documents: the vocabulary, and counting of words.

    Converts texts or counts to bags of words, and new ones later in the same way.
    """

    vectorizer: Any
    vectorizer_: Any
    vocabulary_: Array | None
    """The words in the order of the columns; None if the model was fitted to a bare matrix."""
    n_features_in_: int
    _lengths: FloatArray

    def _read_documents(self, X: Any, *, first: bool) -> Bags:
        """Read the user's documents; ``first``: they define the vocabulary."""
        texts, names = find_texts(X), None
        if first:
            self.vectorizer_ = None
        if texts is not None and first:
            self.vectorizer_ = copy_vectorizer(self.vectorizer, texts)
            X = learn_words(self.vectorizer_, texts)
            names = vocabulary_of(self.vectorizer_)
        elif texts is not None:
            if getattr(self, "vectorizer_", None) is None:
                raise DataError(
                    "this model was fitted to a matrix of counts, and cannot count words of texts",
                    "pass counts in the same columns, or fit the model to texts",
                )
            X = count_words(self.vectorizer_, texts)
        elif hasattr(X, "columns"):  # the columns of a data frame are the words
            names = np.asarray(X.columns, dtype=object)
        X = self._check_counts(X, first)
        if first:
            self.vocabulary_ = names
        return Bags.of(X)

    def _check_counts(self, X: Any, first: bool) -> Any:
        """Check a matrix of counts as scikit-learn does; ``first``: it defines the columns."""
        is_plain = sparse.issparse(X) and X.format == "csr" and X.dtype.kind in "iuf" and X.shape[0]
        if is_plain and np.isfinite(X.data).all():  # nothing else can be wrong
            if first:
                self.n_features_in_ = X.shape[1]
                vars(self).pop("feature_names_in_", None)
                return X
            if X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_"):
                return X
        from sklearn.utils.validation import validate_data

        with within_range("the data"):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)

    def _adopt_archive(self, archive: Archive, *, first: bool) -> None:
        """Check an archive against the vocabulary; ``first``: it defines the vocabulary."""
        if first:
            vars(self).pop("feature_names_in_", None)  # of an earlier fit, to a data frame
            self.vectorizer_, self.vocabulary_ = archive.vectorizer(), archive.vocabulary
            self.n_features_in_ = archive.n_words
            return
        same = archive.n_words == self.n_features_in_
        if same and self.vocabulary_ is not None and archive.vocabulary is not None:
            same = np.array_equal(self.vocabulary_, archive.vocabulary)
        if not same:
            raise DataError(
                f"the archive {archive.path} has a different vocabulary from the model",
                "build it with like= (--like) the archive that the model was fitted to",
            )

    def word_names(self) -> Array:
        """Return the words, or the numbers of the columns if they have no names."""
        if self.vocabulary_ is None:
            return np.arange(self.n_features_in_).astype(object)
        return self.vocabulary_

    # new documents
    def _remember_lengths(self, lengths: FloatArray) -> None:
        """Store the documents' lengths, or an evenly spaced selection of them."""
        self._lengths = lengths[evenly_spaced(len(lengths))]

    def _draw_lengths(self, n: int, rng: np.random.Generator) -> IntArray:
        """Draw lengths from those of the training documents."""
        lengths: FloatArray = np.round(rng.choice(self._lengths, size=n))
        check_drawable(lengths, "words")
        return lengths.astype(np.int64)

    def _write_documents(self, counts: Any, rng: np.random.Generator) -> Any:
        """Convert counts to the form of the training documents: texts, lists of words, or counts.

        Also counts if the words have no names (hashing). Words are in random order.
        """
        if self.vectorizer_ is None or self.vocabulary_ is None:
            return counts
        names = self.vocabulary_
        lists = [
            rng.permutation(np.repeat(names[row.indices], row.data)).tolist() for row in counts
        ]
        if getattr(self.vectorizer_, "analyzer", None) is as_it_is:
            return lists
        return [" ".join(words) for words in lists]

    # files
    def _store_words(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and facts that a file needs to read and generate documents."""
        names, vectorizer = self.vocabulary_, self.vectorizer_
        facts = {
            "vocabulary": None if names is None else list(map(str, names)),
            "vectorizer": None if vectorizer is None else describe_vectorizer(vectorizer),
        }
        return {"lengths": self._lengths}, facts

    def _restore_words(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        """Restore the state written by `_store_words`; ``given`` may have a vectorizer."""
        V = self.n_features_in_
        self._lengths = numbers(stored, "lengths", (None,))
        if not len(self._lengths) or not 0.0 <= self._lengths.min() <= self._lengths.max() < 2**40:
            raise DataError("the lengths of documents are missing or out of range")
        self.vocabulary_ = strings(stored.meta["vocabulary"], V, "words")
        description, vectorizer = stored.meta["vectorizer"], given.get("vectorizer")
        if vectorizer is not None:
            self.vectorizer_ = adopt_vectorizer(vectorizer, self.vocabulary_, V)
        elif description is None:
            self.vectorizer_ = None
        else:
            self.vectorizer_ = restore_vectorizer(description, self.vocabulary_)


def find_characteristic_words(
    weights: FloatArray, words: FloatArray, names: Array, n: int = 10
) -> list[list[tuple[Any, float]]]:
    """Return the n most characteristic words of each class, with their probabilities.

    Words are ranked by p(w | k) log² [p(w | k) / p(w)], among those more common in the class than
    overall. Without the square this would be a word's contribution to the Kullback–Leibler
    divergence of the class from the corpus, and words such as "the" would often come first. For a
    class without any such word, its most common words are returned.

    ``weights``  p(k), up to a factor, (classes,)
    ``words``    p(w | k), (classes, words)
    ``names``    the words, (words,)

    >>> words = np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    >>> names = np.array(["the", "bank", "river"], dtype=object)
    >>> find_characteristic_words(np.array([0.5, 0.5]), words, names, 1)
    [[('bank', 0.4)], [('river', 0.4)]]
    """
    overall = np.maximum(weights / weights.sum() @ words, 1e-300)
    lift = np.log(np.maximum(words, 1e-300) / overall)
    marks = words * np.where(lift > 1e-9, lift, 0.0) ** 2
    order = np.lexsort((-words, -marks))[:, :n]  # ties: the more common word first
    return [
        [(names[w], float(words[k, w])) for w in row if marks[k, w] or not marks[k].any()]
        for k, row in enumerate(order)
    ]
