"""Items that a model holds impossible are named, never passed over."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from softcount.errors import ImpossibleItem
from softcount.models.folded import is_later_fold
from softcount.types import Array


class ImpossibleWarning(UserWarning):
    """Some items have probability zero by what the model has learned.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


def warn_of_impossible(
    items: Sequence[int], total: int, what: str, first: str, told: str, stacklevel: int
) -> None:
    """Count impossible items in a warning, if there are any; of a search, in its first fold only.

    ``what``   what items are called, several of them
    ``first``  the name of the first that is impossible
    ``told``   what becomes of them, and what to do about it
    """
    if items and not is_later_fold():
        text = f"{len(items):,} of {total:,} {what} cannot come about by this model: {first}"
        text += f"{' and others' if len(items) > 1 else ''}. {told}"
        warnings.warn(ImpossibleWarning(text, items), stacklevel=stacklevel + 1)


def demand_possible(numbers: Array, logs: Array, why: str, hint: str) -> None:
    """Raise `ImpossibleItem` for the first item whose log-probability is −inf."""
    impossible = numbers[np.isneginf(logs)]
    if len(impossible):
        first = int(impossible.min())
        raise ImpossibleItem(f"item {first} {why}", hint, item=first)
