"""Accuracy on labelled items only, and warnings where unlabelled ones would be scored."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from softcount.core.contract import SklearnContract
from softcount.core.errors import DataError
from softcount.core.types import Array, FloatArray, IntArray
from softcount.core.warnings import held_out, is_later_fold
from softcount.mixture.data import Labels, separate_unknown
from softcount.mixture.suspects import (
    Suspect,
    find_judged,
    hide_in_parts,
    list_suspects,
    read_given,
)

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
    """Base of classifiers that learn from items of which only some have a label.

    Their `score` is the accuracy on labelled items, and `suspects` lists labels that may be wrong.
    """

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

    def suspects(
        self, X: Any, y: Any, *, cv: int = 10, random_state: int = 0, **more: Any
    ) -> list[Suspect]:
        """List the given labels, those that are probably wrong first.

        A label is judged by a model that does not know it: labels are hidden in ``cv`` parts, whose
        items stay as unlabelled ones, and a clone is fitted for each part. The model itself need
        not be fitted, and is not changed. The only label of a class cannot be judged, and is left
        out.

        ``X, y``          as for `fit`
        ``cv``            number of parts
        ``random_state``  seed of the parts
        ``more``          further data of `fit`, such as ``sample_domain``
        """
        n = len(y)
        labels = read_given(y, n)
        judged = find_judged(labels)
        posteriors = self._judge_labels(X, labels, judged, cv, random_state, more)
        return list_suspects(labels, judged, posteriors)

    def _judge_labels(
        self, X: Any, labels: Labels, judged: Any, cv: int, seed: int, more: Any
    ) -> FloatArray:
        """Return the posterior of each class without an item's own label, (items, classes)."""
        from sklearn.base import clone

        asked = self._describe_asked(labels, more)

        def learn(shown: list[Any], hidden: IntArray) -> tuple[Array, FloatArray]:
            model = clone(self).fit(X, shown, **{**more, **asked})
            return model.classes_, model.predict_proba(X, **asked)[hidden]

        return hide_in_parts(labels, judged, cv, seed, learn)

    def _describe_asked(self, labels: Labels, more: Any) -> dict[str, Any]:
        """Return what the model must be told of the items that it is asked about."""
        return {}
