"""Texts as tf-idf, and what a model file must hold to weigh new texts the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from softcount import store
from softcount.corpus import texts
from softcount.errors import StoreError
from softcount.models.stored import AGAIN, numbers, strings
from softcount.types import Array

IDF = "idf"
SWITCHES = ("sublinear_tf", "use_idf", "smooth_idf")
NORMS = ("l1", "l2", None)


def default_vectorizer(documents: Sequence[Any]) -> TfidfVectorizer:
    """(1 + log tf) · idf, rows of length 1; words as `softcount.corpus.texts` finds them."""
    analyzer = texts.default_vectorizer(documents).analyzer
    return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True)


def stored(vectorizer: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and facts of a vectorizer, for a file."""
    if vectorizer is None:
        return {}, {"vectorizer": None, "vocabulary": None, "weighing": None}
    names = texts.vocabulary_of(vectorizer)
    facts = {
        "vocabulary": None if names is None else list(map(str, names)),
        "vectorizer": texts.described(vectorizer),
        "weighing": None,
    }
    if type(vectorizer) is not TfidfVectorizer:
        return {}, facts
    shared = CountVectorizer().get_params()
    plain = {name: value for name, value in vectorizer.get_params().items() if name in shared}
    facts["vectorizer"] = texts.described(CountVectorizer(**plain))
    facts["weighing"] = {name: getattr(vectorizer, name) for name in (*SWITCHES, "norm")}
    return ({IDF: vectorizer.idf_} if vectorizer.use_idf else {}), facts


def restored(file: store.Stored, own: Any, n_words: int) -> Any:
    """The vectorizer that a file describes; ``own``: the user's, which goes before."""
    described, weighing = file.meta["vectorizer"], file.meta["weighing"]
    vocabulary = strings(file.meta["vocabulary"], n_words, "words")
    if own is not None:
        return texts.adopted(own, vocabulary, n_words)
    if described is None:
        return None
    counter = texts.restored(described, vocabulary)
    if weighing is None:
        return counter
    _demand_sound(weighing)
    settings = {**counter.get_params(), **weighing}
    settings.pop("dtype")
    vectorizer = TfidfVectorizer(**settings)
    vectorizer._validate_vocabulary()
    if vectorizer.use_idf:
        vectorizer.idf_ = numbers(file, IDF, (n_words,))
    return vectorizer


def _demand_sound(weighing: Any) -> None:
    sound = (
        isinstance(weighing, dict)
        and set(weighing) == {*SWITCHES, "norm"}
        and all(isinstance(weighing[name], bool) for name in SWITCHES)
        and weighing["norm"] in NORMS
    )
    if not sound:
        raise StoreError("the file does not say how words are weighed", AGAIN)
