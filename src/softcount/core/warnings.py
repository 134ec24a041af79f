"""Warnings of the loop, and warnings that are given once: of labels that are ignored, of items of
probability zero.

In a search or a cross-validation scikit-learn fits the same model many times, and in every fold
resets the filter by which Python shows a warning only once. So the functions here look up the call
stack to find out whether scikit-learn is working on one fold of many (`is_fold`, `is_later_fold`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

ONE_FOLD = "_fit_and_score"
"""scikit-learn's function that fits and scores one fold. If it is ever renamed, warnings are
repeated, and nothing else changes."""
COUNTERS = ("split_progress", "candidate_progress")
"""Its arguments (index, total) for folds and for candidate settings; None if it is not counting."""


def is_fold() -> bool:
    """Return whether a search or a cross-validation is fitting or scoring a fold."""
    return _fold() is not None


def is_later_fold() -> bool:
    """Return whether a search is past its first fold or its first candidate setting."""
    frame = _fold()
    if frame is None:
        return False
    counters = [frame.f_locals.get(name) for name in COUNTERS]
    return any(isinstance(counted, tuple) and counted[0] != 0 for counted in counters)


def held_out() -> tuple[Any, Any] | None:
    """Return the held-out labels of the current fold and its scorer; None outside of a fold."""
    frame = _fold()
    if frame is None:
        return None
    y, test = frame.f_locals.get("y"), frame.f_locals.get("test")
    if y is None or test is None:
        return None
    from sklearn.utils import _safe_indexing  # inside a fold, scikit-learn is imported already

    return _safe_indexing(y, test), frame.f_locals.get("scorer")


def _fold() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == ONE_FOLD and module.startswith("sklearn."):
            return frame
        frame = frame.f_back
    return None


INSIDE = ("softcount.", "contextlib", "functools")
"""Modules whose lines no warning should point at: ours, and those that call our decorators."""


def _level_of_caller() -> int:
    """Return the ``stacklevel`` at which a warning points at the line that called softcount.

    As seen from the function that calls this one.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 0
    while frame is not None:
        level += 1
        if not str(frame.f_globals.get("__name__", "")).startswith(INSIDE):
            break
        frame = frame.f_back
    return level


class NotDistributedWarning(UserWarning):
    """A collapsed sampler was given an engine with other processes, which it cannot use."""


class IgnoredLabelsWarning(UserWarning):
    """Labels were passed as y to a model that learns without them."""


def warn_of_ignored(model: object, y: Any, instead: str) -> None:
    """Warn, at the caller's line, if labels are given that the model ignores.

    ``instead``  a sentence that says which model or argument uses labels

    This is not an error, because scikit-learn requires unsupervised models to accept a y. There is
    no warning in the folds of a search or a cross-validation, where the labels are for the scorer;
    the final fit of a search, to all data, warns once.
    """
    if y is not None and not is_fold():
        name = type(model).__name__
        text = f"{name} learns without labels: y is ignored. {instead}"
        warnings.warn(text, IgnoredLabelsWarning, stacklevel=_level_of_caller())


class ImpossibleWarning(UserWarning):
    """Some items have probability zero under the fitted model.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


def warn_of_impossible(
    items: Sequence[int], total: int, what: str, first: str, outcome: str, stacklevel: int
) -> None:
    """Warn of items of probability zero, if there are any; in a search, in its first fold only.

    ``what``     the plural noun for items, such as "sentences"
    ``first``    the name of the first impossible item
    ``outcome``  a sentence that says what happens to them, and what to do about it
    """
    if items and not is_later_fold():
        text = f"{len(items):,} of {total:,} {what} have probability zero under this model: {first}"
        text += f"{' and others' if len(items) > 1 else ''}. {outcome}"
        warnings.warn(ImpossibleWarning(text, items), stacklevel=stacklevel + 1)
