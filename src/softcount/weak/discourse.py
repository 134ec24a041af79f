"""One sense per discourse, as a weight: items of the same document pull at each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array

SUREST = 0.9999
"""No item counts as surer than this for others: log-odds stay finite."""


class Settled(NamedTuple):
    """Labels after the documents had their say, p(label), and which items it was that decided."""

    labels: Array
    shares: Array
    moved: Array


def numbered(documents: Sequence[Hashable | None], n_items: int) -> Array:
    """Documents as numbers; an item without one (None, "", NaN) gets one of its own.

    >>> numbered(["a", None, "b", "a"], 4)
    array([0, 1, 2, 0])
    """
    if len(documents) != n_items:
        raise DataError(
            f"{len(documents)} documents for {n_items} items", "name the document of each item"
        )
    found: dict[Hashable, int] = {}
    keys = (
        ("alone", i) if d is None or d == "" or d != d else ("document", d)
        for i, d in enumerate(documents)
    )
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)


def settle(
    labels: Array, confidence: Array, documents: Array, weight: float, n_classes: int
) -> Settled:
    """Each item's label by its own evidence, and ``weight`` times that of its document's others.

    The evidence of an item for its label is the log-odds of its confidence p against any one of
    the other K − 1 labels, e = log [p (K − 1) / (1 − p)], and nothing for the others: item i of
    document d scores eᵢ(k) + weight · Σ_{j ∈ d, j ≠ i} eⱼ(k) for label k, and p(k) is the softmax
    of its scores. An item without label gets one if the others of its document have any.

    >>> settle(np.array([0, 0, 1, -1]), np.array([.9, .9, .6, 0]), np.zeros(4, int), 1., 2).labels
    array([0, 0, 0, 0])
    """
    known = np.flatnonzero(labels != UNKNOWN)
    sure = np.clip(confidence[known], 1.0 / n_classes, SUREST)
    own = np.zeros((len(labels), n_classes))
    own[known, labels[known]] = np.log(sure * max(n_classes - 1, 1) / (1.0 - sure))
    together = np.zeros((int(documents.max(initial=-1)) + 1, n_classes))
    np.add.at(together, documents, own)
    scores = own + weight * (together[documents] - own)
    heard = np.abs(scores).max(axis=1) > 1e-12
    said = np.where(heard, scores.argmax(axis=1), labels)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return Settled(said, shares / shares.sum(axis=1, keepdims=True), said != labels)
