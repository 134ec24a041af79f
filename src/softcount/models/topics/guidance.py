"""What users know of topics beforehand: words that belong to a topic, and topics as a whole."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError, LearnerError, shown
from softcount.models.settings import check_number
from softcount.types import Array

Vocabulary = Mapping[Any, int]
"""The column of each word."""


MOST = 2**30
"""The largest count of a seed word: samplers count in 32 bits, and the corpus comes on top."""


def columns_of(names: Array) -> Vocabulary:
    """Where each word is."""
    return {name: column for column, name in enumerate(names.tolist())}


def seed_counts(
    seeds: Any, strength: float, often: Array, vocabulary: Vocabulary, n_topics: int
) -> Any:
    """Seed words as tokens that a topic has beforehand: sparse (topics, words), whole numbers.

    ``seeds``     topic → words, or a list of such (topic 0, 1, …); words that never occur in the
                  corpus are passed over
    ``strength``  a seed word counts as often as ``strength`` times the word occurs, at least once
    ``often``     how often each word occurs

    >>> words = columns_of(np.array(["cup", "goal", "oil"], dtype=object))
    >>> seed_counts({1: ["oil"]}, 0.5, np.array([4, 2, 6]), words, 2).toarray()
    array([[0, 0, 0], [0, 0, 3]])
    """
    check_number("seed_strength", strength, "1 is usual", above=True)
    table = sparse.lil_matrix((n_topics, len(often)), dtype=np.int64)
    for topic, words in _by_topic(seeds, "seeds"):
        if not 0 <= topic < n_topics:
            raise DataError(
                f"there are seeds for topic {topic}", f"topics go from 0 to {n_topics - 1}"
            )
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise DataError(f"the seeds of topic {topic} are {shown(words)}", "give a list")
        for column in _columns(words, vocabulary):
            if often[column] > 0:
                table[topic, column] = _times(strength * often[column])
    if not table.nnz:
        raise DataError(
            "none of the seed words is in the corpus",
            "give words as the vectorizer makes them: in lower case, as a rule",
        )
    return table.tocsr()


def frozen_topics(frozen: Any, vocabulary: Vocabulary, n_topics: int) -> Array:
    """The first topics, which do not learn: p(word | topic), (frozen, words).

    ``frozen``  an array with a row a topic; or a list of mappings from words to weights, of which
                those that are not in the vocabulary are passed over
    """
    try:
        given = list(frozen)
        rows = [_weights(row, vocabulary) for row in given]
        table = np.array(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"frozen={shown(frozen)} are no topics: {error}", TOPICS) from error
    if table.ndim != 2 or table.shape[1] != len(vocabulary):
        raise DataError(
            f"frozen topics have the shape {table.shape}, but there are {len(vocabulary)} words",
            TOPICS,
        )
    if not (np.isfinite(table) & (table >= 0.0)).all() or not table.any(axis=1).all():
        raise DataError("a frozen topic has no words, or a weight that is no weight", TOPICS)
    if len(table) >= n_topics:
        raise DataError(
            f"{len(table)} of {n_topics} topics are frozen: there is nothing to learn",
            "set n_topics to more; to fold documents in use transform",
        )
    return table / table.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


TOPICS = "give an array with a row for each topic, or a list of mappings from words to weights"


def _by_topic(given: Any, what: str) -> Iterable[tuple[int, Any]]:
    if isinstance(given, Mapping):
        pairs = given.items()
    elif isinstance(given, Sequence) and not isinstance(given, str):
        pairs = enumerate(given)  # type: ignore[assignment]
    else:
        raise DataError(f"{what}={shown(given)}", "give a mapping from topics to lists of words")
    for topic, words in pairs:
        try:
            number = int(topic)
        except (TypeError, ValueError):
            number = None
        # files have the numbers as strings
        if number is None or not (isinstance(topic, str) or number == topic):
            raise DataError(f"{what}: {shown(topic)} is no topic", "topics are whole numbers")
        yield number, words


def _columns(words: Iterable[Any], vocabulary: Vocabulary) -> list[int]:
    given = list(words)
    strange = [word for word in given if not isinstance(word, Hashable)]
    if strange:
        raise DataError(f"{shown(strange[0])} is no seed word", "give a list of words a topic")
    return [vocabulary[word] for word in given if word in vocabulary]


def _times(often: float) -> int:
    """How often a seed word counts: whole, at least once."""
    if often > MOST:
        raise LearnerError(f"a seed word would count {often:g} times", "lower seed_strength")
    return max(1, round(float(often)))


def _weights(row: Any, vocabulary: Vocabulary) -> Any:
    if not isinstance(row, Mapping):
        return row
    weights = np.zeros(len(vocabulary))
    for word, weight in row.items():
        if word in vocabulary:
            weights[vocabulary[word]] = weight
    return weights
