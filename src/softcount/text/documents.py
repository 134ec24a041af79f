"""From raw texts, or lists of words, to counts of words; and models that read documents so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import validate_data

from softcount.core import store
from softcount.core.bounds import demand_drawable, within_range
from softcount.core.errors import DataError, LearnerError, StoreError, brief
from softcount.core.store import numbers, strings
from softcount.core.types import Array, FloatArray, IntArray
from softcount.text.bags import Bags
from softcount.text.tokenise import spaces, words

if TYPE_CHECKING:
    from softcount.text.archive import Archive


def as_it_is(tokens: Sequence[str]) -> Sequence[str]:
    """A text that is cut into words already."""
    return tokens


ANALYZERS: dict[str, Callable[[Any], Sequence[str]]] = {
    "words": words,
    "spaces": spaces,
    "as_it_is": as_it_is,
}
"""Ways to cut a text that a model file can name."""


def find_texts(data: Any) -> list[Any] | None:
    """The texts, or lists of words, if that is what the data are; None if they are numbers.

    >>> find_texts(["a b", ""]), find_texts([["a", "b"], []]), find_texts([[1, 2]])
    (['a b', ''], [['a', 'b'], []], None)
    """
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {brief(data)}", "give a list of texts, one for each document"
        )
    if getattr(data, "ndim", 1) != 1 or not isinstance(data, Iterable):
        return None
    items = list(data)
    if not items:
        raise DataError("there are no documents", "give at least one")
    filled = [x for x in items if not (isinstance(x, str | list | tuple) and len(x) == 0)]
    first: Any = filled[0] if filled else []
    if first is None or not filled:  # what is missing says nothing: do others say more?
        first = next((x for x in items if isinstance(x, str)), first)
    if isinstance(first, bytes):
        raise DataError(
            f"document {items.index(first)} is made of bytes: {brief(first)}",
            "decode it first, for example text.decode('utf-8')",
        )
    kind: Any = str
    called = "texts"
    if isinstance(first, list | tuple) and (not first or isinstance(first[0], str)):
        kind, called = list | tuple, "lists of words"
    elif not isinstance(first, str):
        return None
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise DataError(
                f"document {number} is {brief(item)}, while others are {called}",
                f"give {called} only; an empty document is an empty one of these",
            )
        if kind is not str and not all(isinstance(word, str) for word in item):
            strange = brief(next(word for word in item if not isinstance(word, str)))
            raise DataError(f"document {number} has {strange} among its words", "words are strings")
    return items


def default_vectorizer(texts: Sequence[Any]) -> CountVectorizer:
    """Words in lower case for texts, and words as they are for lists of words."""
    is_cut = any(isinstance(text, list | tuple) for text in texts)
    return CountVectorizer(analyzer=as_it_is if is_cut else words)


def copy_vectorizer(
    given: Any, texts: Sequence[Any], default: Callable[[Sequence[Any]], Any] = default_vectorizer
) -> Any:
    """A copy of the vectorizer that a user gave, or the default for these texts."""
    if given is None:
        return default(texts)
    if not hasattr(given, "fit_transform"):
        raise LearnerError(
            f"vectorizer={brief(given)} cannot count words",
            "give scikit-learn's CountVectorizer, or one like it",
        )
    return clone(given, safe=False)


def learn_words(vectorizer: Any, texts: Sequence[Any]) -> Any:
    """Counts of the words of these texts, which become the vocabulary."""
    _check_readable(vectorizer, texts)
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:
        if "vocabulary" not in str(error) and "no terms" not in str(error).lower():
            raise
        raise DataError(
            "no words are left to learn from: every text is empty, or all its words were dropped",
            "look at the texts, and at what the vectorizer leaves out",
        ) from error


def count_words(vectorizer: Any, texts: Sequence[Any]) -> Any:
    """Counts of words that are in the vocabulary already."""
    _check_readable(vectorizer, texts)
    return vectorizer.transform(texts)


def _check_readable(vectorizer: Any, texts: Sequence[Any]) -> None:
    """Raise if a text would be taken for a list of words, letter by letter, or vice versa."""
    analyzer = getattr(vectorizer, "analyzer", None)
    if analyzer is as_it_is and any(isinstance(text, str) for text in texts):
        raise DataError(
            "the model was fitted to lists of words, and these are texts",
            "cut them into words as those were cut",
        )
    if analyzer in (words, spaces) and any(not isinstance(text, str) for text in texts):
        raise DataError(
            "the model was fitted to texts, and these are lists of words",
            "give texts, or fit the model to lists of words",
        )


# model files: a vectorizer is written down as settings of scikit-learn's CountVectorizer
NAMED = ("word", "char", "char_wb")
PATTERN = CountVectorizer().token_pattern
SETTINGS = ("lowercase", "strip_accents", "stop_words", "ngram_range", "binary")
"""What must be known to cut new texts as the old ones were cut."""


def describe_vectorizer(vectorizer: Any) -> dict[str, Any]:
    """A vectorizer as JSON can say it; {"custom": True} if it cannot.

    A regular expression of the user's own is not written down. There are some that take for ever,
    and a file that a stranger made must not be able to hold one.
    """
    if type(vectorizer) is not CountVectorizer:
        return {"custom": True}
    named = {function: name for name, function in ANALYZERS.items()}
    analyzer = vectorizer.analyzer
    plain = (
        (analyzer in NAMED or analyzer in named)
        and vectorizer.tokenizer is None
        and vectorizer.preprocessor is None
        and vectorizer.token_pattern == PATTERN
        and vectorizer.input == "content"
    )
    if not plain:
        return {"custom": True}
    settings = {name: getattr(vectorizer, name) for name in SETTINGS}
    settings["ngram_range"] = list(settings["ngram_range"])
    return {**settings, "analyzer": named.get(analyzer, analyzer), "ours": analyzer in named}


def restore_vectorizer(described: Any, vocabulary: Any) -> Any:
    """The vectorizer that was described, with its vocabulary."""
    if described == {"custom": True}:
        raise StoreError(
            "this model was fitted with a vectorizer of your own, which the file does not hold",
            "pass it: softcount.load(path, vectorizer=…)",
        )
    again = "save the model again"
    if not isinstance(described, dict) or set(described) != {*SETTINGS, "analyzer", "ours"}:
        raise StoreError("the file describes no vectorizer that is known", again)
    settings = dict(described)
    ours, stop_words, ngrams = (settings[name] for name in ("ours", "stop_words", "ngram_range"))
    sound = {
        "analyzer": settings["analyzer"] in (list(ANALYZERS) if ours is True else NAMED),
        "stop_words": stop_words in (None, "english") or _is_list_of(stop_words, str),
        "ngram_range": _is_list_of(ngrams, int)
        and len(ngrams) == 2
        and 1 <= ngrams[0] <= ngrams[1],
        "strip_accents": settings["strip_accents"] in (None, "ascii", "unicode"),
        **{name: isinstance(settings[name], bool) for name in ("lowercase", "binary", "ours")},
    }
    for name, is_sound in sound.items():
        if not is_sound:
            fault = f"{name}={brief(settings[name])}"
            raise StoreError(f"the file describes a vectorizer with {fault}", again)
    if vocabulary is None:
        raise StoreError("the file has a vectorizer, but no words", again)
    if settings.pop("ours"):
        settings["analyzer"] = ANALYZERS[settings["analyzer"]]
    settings["ngram_range"] = tuple(ngrams)
    return _with_words(CountVectorizer(**settings), vocabulary)


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _with_words(vectorizer: CountVectorizer, vocabulary: Any) -> CountVectorizer:
    """The vectorizer as if it had been fitted and had found these words."""
    fitted = clone(vectorizer).set_params(vocabulary=list(vocabulary))
    fitted._validate_vocabulary()
    return fitted


def adopt_vectorizer(vectorizer: Any, vocabulary: Any, n_words: int) -> Any:
    """A vectorizer of the user's own, for a model from a file: it must count the same words."""
    try:
        names = vocabulary_of(vectorizer)
    except NotFittedError as error:
        if type(vectorizer) is CountVectorizer and vocabulary is not None:
            return _with_words(vectorizer, vocabulary)
        raise StoreError(
            "the vectorizer has not been fitted, and the file cannot tell what it had learned",
            "pass the model's own, vectorizer_, as you kept it, or fit it to the same texts",
        ) from error
    same = names is None or (
        len(names) == n_words and (vocabulary is None or list(names) == list(vocabulary))
    )
    if not same:
        raise StoreError(
            f"the vectorizer knows {len(names)} words, the model {n_words}, and not the same",
            "pass the vectorizer that the model was fitted with",
        )
    return vectorizer


def vocabulary_of(vectorizer: Any) -> Any:
    """The words, in the order of the columns; None if the vectorizer keeps none (hashing)."""
    if not hasattr(vectorizer, "get_feature_names_out"):
        return None
    return np.asarray(vectorizer.get_feature_names_out(), dtype=object)


KEPT_LENGTHS = 10_000
"""Of so many documents a model remembers how long they are."""


class DocumentReader:
    """What a model of documents knows of words (a mixin for estimators).

    From texts or counts to bags of words, the same way ever after.
    """

    vectorizer: Any
    vectorizer_: Any
    vocabulary_: Array | None
    """The words, in the order of the columns; None if the model was fitted to a bare matrix."""
    n_features_in_: int
    _lengths: FloatArray

    def _read_documents(self, X: Any, *, first: bool) -> Bags:
        """Documents as users give them; ``first``: these say what to expect of others."""
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
                    "this model was fitted to a matrix of counts, and cannot count words by itself",
                    "pass counts in the same columns, or fit the model to texts",
                )
            X = count_words(self.vectorizer_, texts)
        elif hasattr(X, "columns"):  # a data frame names its words
            names = np.asarray(X.columns, dtype=object)
        with within_range("the data"):
            checked = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)
        if first:
            self.vocabulary_ = names
        return Bags.of(checked)

    def _adopt_archive(self, archive: Archive, *, first: bool) -> None:
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
    def _remember_lengths(self, lengths: FloatArray) -> None:
        """Keep how long documents are, or an even selection of them."""
        n = len(lengths)
        self._lengths = lengths[np.linspace(0, n - 1, min(n, KEPT_LENGTHS)).astype(np.int64)]

    def _draw_lengths(self, n: int, rng: np.random.Generator) -> IntArray:
        """Lengths of documents as those learned from had."""
        lengths: FloatArray = np.round(rng.choice(self._lengths, size=n))
        demand_drawable(lengths, "words")
        return lengths.astype(np.int64)

    def _write_documents(self, counts: Any, rng: np.random.Generator) -> Any:
        """Counts as the model was given documents: as texts, as lists of words, or as counts.

        As counts too where the words have no names (hashing).
        """
        if self.vectorizer_ is None or self.vocabulary_ is None:
            return counts
        names = self.vocabulary_
        cut = [rng.permutation(np.repeat(names[row.indices], row.data)).tolist() for row in counts]
        if getattr(self.vectorizer_, "analyzer", None) is as_it_is:
            return cut
        return [" ".join(words) for words in cut]

    # files
    def _store_words(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """What a file must hold to read and tell documents again."""
        names, counter = self.vocabulary_, self.vectorizer_
        facts = {
            "vocabulary": None if names is None else list(map(str, names)),
            "vectorizer": None if counter is None else describe_vectorizer(counter),
        }
        return {"lengths": self._lengths}, facts

    def _restore_words(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        """Take back what `_store_words` wrote."""
        V = self.n_features_in_
        self._lengths = numbers(stored, "lengths", (None,))
        if not len(self._lengths) or not 0.0 <= self._lengths.min() <= self._lengths.max() < 2**40:
            raise DataError("there are no lengths of documents, or impossible ones")
        self.vocabulary_ = strings(stored.meta["vocabulary"], V, "words")
        described, own = stored.meta["vectorizer"], given.get("vectorizer")
        if own is not None:
            self.vectorizer_ = adopt_vectorizer(own, self.vocabulary_, V)
        elif described is None:
            self.vectorizer_ = None
        else:
            self.vectorizer_ = restore_vectorizer(described, self.vocabulary_)


def telling_words(
    weights: FloatArray, words: FloatArray, names: Array, n: int = 10
) -> list[list[tuple[Any, float]]]:
    """The words that mark each class, with their probabilities.

    Those with the largest p(w | k) log² [p(w | k) / p(w)], of all that are more common in the class
    than elsewhere. Without the square these would be what words contribute to the divergence of the
    class from the whole, and words such as "the" would often come first. A class without any such
    word is shown by its commonest ones.

    >>> words = np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]])
    >>> names = np.array(["the", "bank", "river"], dtype=object)
    >>> telling_words(np.array([0.5, 0.5]), words, names, 1)
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
