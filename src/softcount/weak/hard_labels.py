"""Labels for learners that know classes only, and no shares of them."""

from __future__ import annotations

from typing import Any

from softcount.errors import DataError, shown
from softcount.models.mixture.labels import Labels, read_labels


def hard_labels(y: Any, n_items: int) -> Labels:
    """Labels of which each is one class, of two or more; −1 or None where it is unknown.

    >>> hard_labels(["b", None, "a"], 3).numbers
    array([ 1, -1,  0])
    """
    labels = read_labels(y, n_items)
    if labels.shares is not None:
        raise DataError("labels are shares of classes", "give one class for each item, or -1")
    if len(labels.classes) < 2:
        raise DataError(
            f"there is only one class: {shown(labels.classes.tolist()[0])}",
            "label some items of at least two classes",
        )
    return labels
