"""From raw texts, or texts that are cut into words already, to counts of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from softcount.corpus.tokenise import spaces, words
from softcount.errors import DataError, LearnerError, StoreError, shown

ANALYZERS = {"words": words, "spaces": spaces}
"""Ways to cut a text that a model file can name."""


def as_it_is(tokens: Sequence[str]) -> Sequence[str]:
    """A text that is cut into words already."""
    return tokens


ANALYZERS["as_it_is"] = as_it_is  # type: ignore[assignment]


def texts_in(data: Any) -> list[Any] | None:
    """The texts, or lists of words, if that is what the data are; None if they are numbers.

    >>> texts_in(["a b", ""]), texts_in([["a", "b"], []]), texts_in([[1, 2]])
    (['a b', ''], [['a', 'b'], []], None)
    """
    if isinstance(data, str | bytes):
        raise DataError(
            f"the data are one text: {shown(data)}", "give a list of texts, one a document"
        )
    if getattr(data, "ndim", 1) != 1 or not isinstance(data, Iterable):
        return None
    items = list(data)
    if not items:
        raise DataError("there are no documents", "give at least one")
    first = next((item for item in items if not _is_empty(item)), None)
    if isinstance(first, str) or (first is None and any(isinstance(i, str) for i in items)):
        _demand_all(items, str, "texts")
        return items
    if isinstance(first, bytes):
        raise DataError(
            f"document {items.index(first)} is made of bytes: {shown(first)}",
            "decode it first, for example text.decode('utf-8')",
        )
    if _is_cut(first) or all(_is_cut(item) and not item for item in items):
        _demand_all(items, list | tuple, "lists of words")
        for number, document in enumerate(items):
            _demand_words(number, document)
        return items
    return None


def _is_empty(item: Any) -> bool:
    return isinstance(item, str | list | tuple) and len(item) == 0


def _is_cut(item: Any) -> bool:
    """Whether this can be a list of words."""
    return isinstance(item, list | tuple) and (not item or isinstance(item[0], str))


def _demand_all(items: Sequence[Any], kind: Any, called: str) -> None:
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise DataError(
                f"document {number} is {shown(item)}, while others are {called}",
                f"give {called} only; an empty document is an empty one of these",
            )


def _demand_words(number: int, document: Sequence[Any]) -> None:
    if not all(isinstance(word, str) for word in document):
        strange = next(word for word in document if not isinstance(word, str))
        raise DataError(
            f"document {number} has {shown(strange)} among its words", "words are strings"
        )


def default_vectorizer(texts: Sequence[Any]) -> CountVectorizer:
    """Words in lower case for texts, and words as they are for lists of words."""
    is_cut = any(isinstance(text, list | tuple) for text in texts)
    return CountVectorizer(analyzer=as_it_is if is_cut else words)


def own_vectorizer(
    given: Any, texts: Sequence[Any], default: Callable[[Sequence[Any]], Any] = default_vectorizer
) -> Any:
    """A copy of the vectorizer that a user gave, or the default for these texts."""
    if given is None:
        return default(texts)
    if not hasattr(given, "fit_transform"):
        raise LearnerError(
            f"vectorizer={shown(given)} cannot count words",
            "give scikit-learn's CountVectorizer, or one like it",
        )
    return clone(given, safe=False)


def learn_words(vectorizer: Any, texts: Sequence[Any]) -> Any:
    """Counts of the words of these texts, which become the vocabulary."""
    _demand_readable(vectorizer, texts)
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
    _demand_readable(vectorizer, texts)
    return vectorizer.transform(texts)


def _demand_readable(vectorizer: Any, texts: Sequence[Any]) -> None:
    """Complain where a text would be taken for a list of words, letter by letter, or vice versa."""
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


def described(vectorizer: Any) -> dict[str, Any]:
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


def restored(described: Any, vocabulary: Any) -> Any:
    """The vectorizer that was described, with its vocabulary."""
    if described == {"custom": True}:
        raise StoreError(
            "this model was fitted with a vectorizer of your own, which the file does not hold",
            "pass it: softcount.load(path, vectorizer=…)",
        )
    settings = _read_settings(described)
    if vocabulary is None:
        raise StoreError("the file has a vectorizer, but no words", "save the model again")
    if settings.pop("ours"):
        settings["analyzer"] = ANALYZERS[settings["analyzer"]]
    return _with_words(CountVectorizer(**settings), vocabulary)


def _read_settings(described: Any) -> dict[str, Any]:
    """Settings of a vectorizer, if they are such as `described` writes."""
    if not isinstance(described, dict) or set(described) != {*SETTINGS, "analyzer", "ours"}:
        raise StoreError("the file describes no vectorizer that is known", "save the model again")
    settings = dict(described)
    ours, stop_words, ngrams = (settings[name] for name in ("ours", "stop_words", "ngram_range"))
    sound = {
        "analyzer": settings["analyzer"] in (list(ANALYZERS) if ours is True else NAMED),
        "stop_words": stop_words in (None, "english") or _are(stop_words, str),
        "ngram_range": _are(ngrams, int) and len(ngrams) == 2 and 1 <= ngrams[0] <= ngrams[1],
        "strip_accents": settings["strip_accents"] in (None, "ascii", "unicode"),
        **{name: isinstance(settings[name], bool) for name in ("lowercase", "binary", "ours")},
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise StoreError(
                f"the file describes a vectorizer with {name}={shown(settings[name])}",
                "save the model again",
            )
    return {**settings, "ngram_range": tuple(ngrams)}


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _with_words(vectorizer: CountVectorizer, vocabulary: Any) -> CountVectorizer:
    """The vectorizer as if it had been fitted and had found these words."""
    fitted = clone(vectorizer).set_params(vocabulary=list(vocabulary))
    fitted._validate_vocabulary()
    return fitted


def adopted(vectorizer: Any, vocabulary: Any, n_words: int) -> Any:
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
