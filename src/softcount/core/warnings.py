"""What is warned of, once: labels that nobody looks at, items that a model holds impossible.

In a search or a cross-validation scikit-learn learns the same many times, and resets Python's own
care not to print a warning twice for every fold. So it is looked up whether it is at work on one
fold of many (`is_fold`, `is_later_fold`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

ONE_FOLD = "_fit_and_score"
"""scikit-learn's function that learns and scores one fold. Should it get another name one day,
warnings are repeated, and nothing else happens."""
COUNTERS = ("split_progress", "candidate_progress")
"""Its arguments (number, of how many) for folds and settings; None where nobody counts."""


def is_fold() -> bool:
    """Whether a search or a cross-validation is learning or scoring a fold."""
    return _fold() is not None


def is_later_fold() -> bool:
    """Whether a search is at another fold than the first, or at another setting."""
    frame = _fold()
    if frame is None:
        return False
    counters = [frame.f_locals.get(name) for name in COUNTERS]
    return any(isinstance(counted, tuple) and counted[0] != 0 for counted in counters)


def held_out() -> tuple[Any, Any] | None:
    """The labels that the fold under way will be scored by, and its scorer; None: there is none."""
    frame = _fold()
    if frame is None:
        return None
    y, test = frame.f_locals.get("y"), frame.f_locals.get("test")
    if y is None or test is None:
        return None
    from sklearn.utils import _safe_indexing  # whoever is in a fold has it already

    return _safe_indexing(y, test), frame.f_locals.get("scorer")


def _fold() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == ONE_FOLD and module.startswith("sklearn."):
            return frame
        frame = frame.f_back
    return None


class IgnoredLabelsWarning(UserWarning):
    """Labels were given as y to a model that learns without them."""


def warn_of_ignored(model: object, y: Any, instead: str) -> None:
    """Warn if there are labels, at the line that gave them; ``instead``: what makes use of them.

    It is no error, for scikit-learn asks models without labels to put up with a y. In the folds of
    a search or a cross-validation nothing is said, where labels are for the scorer: what a search
    learns in the end, from all data, is warned of once.
    """
    if y is not None and not is_fold():
        name = type(model).__name__
        text = f"{name} learns without labels: y is not looked at. {instead}"
        warnings.warn(text, IgnoredLabelsWarning, stacklevel=3)


class ImpossibleWarning(UserWarning):
    """Some items have probability zero by what the model has learned.

    ``items``  their numbers, from 0
    """

    def __init__(self, text: str, items: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.items = items


def warn_of_impossible(
    items: Sequence[int], total: int, what: str, first: str, outcome: str, stacklevel: int
) -> None:
    """Count impossible items in a warning, if there are any; of a search, in its first fold only.

    ``what``     what items are called, several of them
    ``first``    the name of the first that is impossible
    ``outcome``  what becomes of them, and what to do about it
    """
    if items and not is_later_fold():
        text = f"{len(items):,} of {total:,} {what} cannot come about by this model: {first}"
        text += f"{' and others' if len(items) > 1 else ''}. {outcome}"
        warnings.warn(ImpossibleWarning(text, items), stacklevel=stacklevel + 1)
