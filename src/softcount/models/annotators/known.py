"""Items whose true label is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.models.annotators.votes import is_missing, places
from softcount.models.mixture.labels import UNKNOWN, Labels, read_labels
from softcount.types import Array


def read_known(y: Any, items: Sequence[Any]) -> Labels | None:
    """Labels of some items: one for each (−1, None or NaN: unknown), or a mapping {item: label}.

    None if nothing is known. Items of a mapping that nobody voted on are left out.
    """
    if y is None:
        return None
    listed = _aligned(y, items) if isinstance(y, Mapping) else _as_list(y)
    if all(map(is_missing, listed)) and len(listed) == len(items):
        return None
    labels = read_labels([None if is_missing(label) else label for label in listed], len(items))
    if labels.shares is not None:
        raise DataError(
            "y has a row of shares for each item", "give one label an item; −1 where it is unknown"
        )
    return labels


def renumbered(labels: Labels, classes: Array) -> Labels:
    """The same labels as numbers of these classes."""
    new = np.append(places(labels.classes.tolist(), classes.tolist()), UNKNOWN)
    return Labels(classes, new[labels.numbers])


def _aligned(y: Mapping[Any, Any], items: Sequence[Any]) -> list[Any]:
    found = [y.get(item) for item in items]
    if y and not any(item in y for item in items):
        raise DataError(
            f"none of the {len(y):,} items in y has votes",
            "call items in y as they are called in the votes",
        )
    return found


def _as_list(y: Any) -> list[Any]:
    if isinstance(y, np.ndarray) and y.dtype.kind in "US" and (y == str(UNKNOWN)).any():
        raise DataError(
            "one label is the text '-1', which numpy makes of a −1 among texts",
            "give None where a label is unknown, or a list instead of an array",
        )
    return list(y.tolist() if hasattr(y, "tolist") else y)
