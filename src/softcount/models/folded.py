"""Whether scikit-learn is at work on one fold of many: what is said of all is said once.

Python's own care not to print a warning twice does not help there: scikit-learn resets it for
every fold.
"""

from __future__ import annotations

import sys
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
        if frame.f_code.co_name == ONE_FOLD and _is_scikit_learn(frame):
            return frame
        frame = frame.f_back
    return None


def _is_scikit_learn(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("sklearn.")
