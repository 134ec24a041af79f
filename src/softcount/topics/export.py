"""Topics for other tools to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.types import Array


def pyldavis_inputs(
    topics: Array,
    documents: Array,
    lengths: Array | Sequence[float],
    words: Array | Sequence[Any],
    frequencies: Array | Sequence[float],
) -> dict[str, Any]:
    """What ``pyLDAvis.prepare(**inputs)`` takes (Sievert & Shirley 2014).

    It wants rows that add up to 1, and neither empty documents nor words that never occur: both
    are left out, and the rows of the topics divided by what is left of them.

    ``topics``       p(word | topic), (topics, words)
    ``documents``    p(topic | document), (documents, topics)
    ``lengths``      words in each document
    ``words``        what the columns of the topics mean
    ``frequencies``  how often each word occurs in all documents

    >>> inputs = pyldavis_inputs([[0.25, 0.25, 0.5]], [[1], [1]], [4, 0], "abc", [3, 1, 0])
    >>> inputs["vocab"], inputs["topic_term_dists"].tolist(), inputs["doc_lengths"].tolist()
    (['a', 'b'], [[0.5, 0.5]], [4])
    """
    phi, theta = np.asarray(topics, np.float64), np.asarray(documents, np.float64)
    n, often = np.asarray(lengths, np.float64), np.asarray(frequencies, np.float64)
    _check(phi, theta, n, len(words), often)
    full, used = np.flatnonzero(n > 0.0), np.flatnonzero(often > 0.0)
    if not len(full) or not len(used):
        raise DataError("there is no document that has a word", "give those that were learned from")
    return {
        "topic_term_dists": _rows(phi[:, used]),
        "doc_topic_dists": _rows(theta[full]),
        "doc_lengths": _whole(n[full]),
        "vocab": [str(words[w]) for w in used.tolist()],
        "term_frequency": _whole(often[used]),
    }


def _check(phi: Array, theta: Array, n: Array, n_words: int, often: Array) -> None:
    for what, found, expected in (
        ("columns of documents", theta.shape[1], f"{len(phi)} topics"),
        ("lengths", len(n), f"{len(theta)} documents"),
        ("words", n_words, f"{phi.shape[1]} columns of topics"),
        ("frequencies", len(often), f"{phi.shape[1]} columns of topics"),
    ):
        if found != int(expected.split()[0]):
            raise DataError(f"{found} {what} do not fit {expected}", "give those of one model")


def _rows(table: Array) -> Array:
    """Each row divided by its sum; all alike in a row of which nothing is left."""
    sums = table.sum(axis=1, keepdims=True)
    safe = np.where(sums > 0.0, table, 1.0)
    rows: Array = safe / safe.sum(axis=1, keepdims=True)
    return rows


def _whole(counts: Array) -> Array:
    """Counts as whole numbers, if that is what they are."""
    whole = np.rint(counts)
    return whole.astype(np.int64) if np.array_equal(whole, counts) else counts
