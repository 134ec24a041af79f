"""Accuracy on labelled items only, and warnings where unlabelled ones would be scored."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from softcount.core.contract import SklearnContract
from softcount.core.errors import DataError
from softcount.core.types import Array, IntArray
from softcount.core.warnings import held_out, is_later_fold
from softcount.mixture.data import separate_unknown

LABELLED_SCORERS = ("LabelledScorer", "_PassthroughScorer")
"""Scorers that leave out unlabelled items: ours, and scikit-learn's that calls `score`."""


class UnlabelledWarning(UserWarning):
    """Unlabelled items were to be scored: they are left out, or count as errors."""


def warn_of_unlabelled_fold() -> None:
    """Warn, once per search, if scikit-learn will count unlabelled items as errors.

    Its own scorers see only predictions, so the warning has to be issued while a fold is fitted.
    """
    fold = None if is_later_fold() else held_out()
    if fold is None:
        return
    scorers = getattr(fold[1], "_scorers", None) or {"": fold[1]}
    if all(type(scorer).__name__ in LABELLED_SCORERS for scorer in scorers.values()):
        return
    if separate_unknown(fold[0])[1].any():
        warnings.warn(
            "this fold is scored on items without a label, which count as errors. Use "
            "cv=softcount.mixture.SemiSupervisedKFold(), which tests on labelled items only, or "
            "scoring=softcount.mixture.labelled_scorer(…)",
            UnlabelledWarning,
            stacklevel=4,
        )


def find_labelled(y: Any) -> tuple[Array, IntArray | None]:
    """Return the known labels, and the indices of the labelled items; None if all are labelled."""
    labels, unknown = separate_unknown(y)
    if len(unknown) and unknown.all():
        raise DataError(
            "no item has a label, so there is nothing to score",
            "score items whose labels are known; SemiSupervisedKFold puts only labelled items into "
            "test folds",
        )
    return labels, np.flatnonzero(~unknown) if unknown.any() else None


class ScoresLabelled(SklearnContract):
    """Base of classifiers whose `score` is the accuracy on labelled items only."""

    _mixins: ClassVar[tuple[str, ...]] = ("ClassifierMixin",)

    @abstractmethod
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each item."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled items; unlabelled ones (−1 or None) are left out.

        For a hyperparameter search or cross-validation use ``cv=SemiSupervisedKFold()``: ordinary
        folds hold out unlabelled items, which are then neither learned from nor tested on, and
        stratify on −1 as if it were a class.
        """
        from sklearn.metrics import accuracy_score
        from sklearn.utils.validation import check_consistent_length

        if np.ndim(y) == 2 and np.shape(y)[1] > 1:  # soft labels: scikit-learn raises the error
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        labels, rows = find_labelled(y)
        if rows is None:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if not is_later_fold():
            warnings.warn(
                "items without a label are left out of the score. In a search or a "
                "cross-validation, use cv=softcount.mixture.SemiSupervisedKFold(): it tests on "
                "labelled items only, and always learns from all unlabelled ones",
                UnlabelledWarning,
                stacklevel=2,
            )
        predicted = np.asarray(self.predict(X))
        check_consistent_length(y, predicted)
        predicted = predicted[rows]
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        if predicted.dtype != object:
            return float(accuracy_score(labels, predicted, sample_weight=weights))
        # None is an abstention, and counts as wrong
        pairs = zip(predicted.tolist(), labels.tolist(), strict=True)
        return float(np.average([answer == label for answer, label in pairs], weights=weights))
