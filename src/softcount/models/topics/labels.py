"""What is known of documents' topics: labels, and which topics a document may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError, shown
from softcount.types import Array

UNKNOWN = -1
"""The label of a document of which nothing is known."""


def known_topics(labels: Any, n: int, n_topics: int) -> Any:
    """Labels as a sparse matrix (documents, topics) of the topics that a document may have.

    ``labels``  one entry a document: a topic, -1 if nothing is known, or several topics that the
                document may have. A row without any entry may have all.

    >>> known_topics([1, -1, [0, 2]], 3, 3).toarray().astype(int)
    array([[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    """
    if labels is None:
        return None
    if sparse.issparse(labels) or isinstance(labels, Mapping) or not isinstance(labels, Sized):
        raise DataError(f"the labels are {shown(labels)}", "give a list, one label a document")
    if len(labels) != n or not isinstance(labels, Iterable):
        raise DataError(
            f"there are {n} documents, but {len(labels)} labels", "give one label a document"
        )
    rows, columns = [], []
    for d, label in enumerate(labels):
        topics = _topics(label, d, n_topics)
        rows += [d] * len(topics)
        columns += topics
    known = sparse.csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), (n, n_topics))
    known.sum_duplicates()
    return known if known.nnz else None


def _topics(label: Any, d: int, n_topics: int) -> list[int]:
    """The topics that a label allows."""
    several = isinstance(label, Iterable) and not isinstance(label, str)
    try:
        given = list(label) if several else [label]
        found = [int(topic) for topic in given]
    except (TypeError, ValueError, OverflowError):
        given, found = [], []
    sound = found == given and not any(isinstance(topic, bool | np.bool_) for topic in given)
    if found == [UNKNOWN] and sound:
        return []
    # a topic twice: most likely a row of zeros and ones
    sound = sound and 0 < len(found) == len(set(found))
    if not sound or not all(0 <= topic < n_topics for topic in found):
        raise DataError(
            f"document {d} has the label {shown(label)}",
            f"give topics from 0 to {n_topics - 1}, a list of them, or -1 if nothing is known",
        )
    return found


def allowed_of(known: Any, documents: Array) -> Array | None:
    """(documents, topics): False where a document cannot have a topic; None if all can have all."""
    if known is None:
        return None
    rows = known[documents]
    allowed: Array = rows.toarray().astype(np.bool_)
    free = np.diff(rows.indptr) == 0
    if free.all():
        return None
    allowed[free] = True
    return allowed
