"""Which items a classifier labels for the others, and who has the last word on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import LearnerError, shown
from softcount.models.settings import check_whole
from softcount.types import Array

USUAL_ROUNDS = 20
"""In about so many rounds everything is labelled, unless users say how many items a round."""
EACH = "so many items of each class are labelled by each view in each round"
DIGITS = 12
"""Confidence that differs in later digits is the same, so that rounding settles nothing."""


class Gift(NamedTuple):
    """Labels that one view gives: the items, their classes as numbers, and how sure it is."""

    items: Array
    labels: Array
    confidence: Array


def most_confident(items: Array, shares: Array, quota: Array) -> Gift:
    """The items of each class of which a classifier is surest, as many as the class's quota.

    ``shares`` are p(class | item), a row for each of ``items``. An item stands for its likeliest
    class only. Among equals the first come first.

    >>> shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> most_confident(np.array([4, 5, 7]), shares, np.array([1, 1])).items
    array([4, 7])
    """
    labels, confidence = shares.argmax(axis=1), np.round(shares.max(axis=1), DIGITS)
    order = np.lexsort((items, -confidence, labels))
    first = np.searchsorted(labels[order], labels[order])
    chosen = order[np.arange(len(order)) - first < quota[labels[order]]]
    return Gift(items[chosen], labels[chosen], confidence[chosen])


def settle(gifts: Sequence[Gift], labels: Array, names: Sequence[str]) -> tuple[Array, ...]:
    """All labels, how sure each new one is, and which view gave it, after everyone has given.

    Of two views that want the same item the surer one has it; of equals, the first.
    """
    after, confidence = labels.copy(), np.zeros(len(labels))
    giver = np.full(len(labels), "", dtype=object)
    for name, gift in zip(names, gifts, strict=True):
        surer = gift.confidence > confidence[gift.items]
        items = gift.items[surer]
        after[items], confidence[items] = gift.labels[surer], gift.confidence[surer]
        giver[items] = name
    return after, confidence, giver


def read_quota(per_class: Any, classes: Array, labels: Array, n_views: int) -> Array:
    """How many items of each class a view gives in a round.

    If users do not say: such a part of the unlabelled items that they are gone in about
    `USUAL_ROUNDS` rounds, shared among classes as the given labels are.
    """
    if per_class is None:
        known = labels[labels >= 0]
        shares = np.bincount(known, minlength=len(classes)) / len(known)
        n_unlabelled = len(labels) - len(known)
        usual = np.rint(n_unlabelled * shares / (USUAL_ROUNDS * n_views))
        return np.maximum(usual, 1.0).astype(np.int64)
    names = classes.tolist()
    if not isinstance(per_class, Mapping):
        check_whole("per_class", per_class, 1, EACH)
        return np.full(len(names), per_class, dtype=np.int64)
    if set(per_class) != set(names):
        raise LearnerError(
            f"per_class is given for {shown(list(per_class))}, while the classes are "
            f"{shown(names)}",
            "give a number for every class, or one for all",
        )
    for name, number in per_class.items():
        check_whole(f"per_class[{name!r}]", number, 0, EACH)
    return np.array([per_class[name] for name in names], dtype=np.int64)
