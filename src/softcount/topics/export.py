"""Topics for other tools to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.core.errors import DataError
from softcount.core.types import FloatArray


def pyldavis_inputs(
    topics: FloatArray,
    documents: FloatArray,
    lengths: FloatArray | Sequence[float],
    words: FloatArray | Sequence[Any],
    frequencies: FloatArray | Sequence[float],
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
    _check_shapes(phi, theta, n, len(words), often)
    full, used = np.flatnonzero(n > 0.0), np.flatnonzero(often > 0.0)
    if not len(full) or not len(used):
        raise DataError("there is no document that has a word", "give those that were learned from")
    return {
        "topic_term_dists": _normalise(phi[:, used]),
        "doc_topic_dists": _normalise(theta[full]),
        "doc_lengths": _as_whole(n[full]),
        "vocab": [str(words[w]) for w in used.tolist()],
        "term_frequency": _as_whole(often[used]),
    }


def _check_shapes(
    phi: FloatArray, theta: FloatArray, n: FloatArray, n_words: int, often: FloatArray
) -> None:
    for what, found, expected in (
        ("columns of documents", theta.shape[1], f"{len(phi)} topics"),
        ("lengths", len(n), f"{len(theta)} documents"),
        ("words", n_words, f"{phi.shape[1]} columns of topics"),
        ("frequencies", len(often), f"{phi.shape[1]} columns of topics"),
    ):
        if found != int(expected.split()[0]):
            raise DataError(f"{found} {what} do not fit {expected}", "give those of one model")


def _normalise(table: FloatArray) -> FloatArray:
    """Each row divided by its sum; all alike in a row of which nothing is left."""
    sums = table.sum(axis=1, keepdims=True)
    safe = np.where(sums > 0.0, table, 1.0)
    rows: FloatArray = safe / safe.sum(axis=1, keepdims=True)
    return rows


def _as_whole(counts: FloatArray) -> FloatArray:
    """Counts as whole numbers, if that is what they are."""
    whole = np.rint(counts)
    return whole.astype(np.int64) if np.array_equal(whole, counts) else counts
