"""Labels that a model does not look at are not passed over in silence."""

from __future__ import annotations

import warnings
from typing import Any

from softcount.models.folded import is_fold


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
