"""Scores that leave items without a label out: what nobody knows cannot be wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from softcount.errors import DataError
from softcount.models.folded import held_out, is_later_fold
from softcount.models.mixture.labels import labels_and_gaps
from softcount.types import Array

NO_LABELS = "no item has a label: there is nothing to be right or wrong about"
HINT = "score items whose labels are known; SemiSupervisedKFold deals only such into test folds"
LEFT_OUT = (
    "items without a label are left out of the score. In a search or a cross-validation, take "
    "cv=softcount.SemiSupervisedKFold(): it tests on labelled items only, and learns from all "
    "unlabelled ones every time"
)


COUNTED_WRONG = (
    "this fold is scored on items without a label, which count as errors. Take "
    "cv=softcount.SemiSupervisedKFold(), which tests on labelled items only, or "
    "scoring=softcount.labelled_scorer(…)"
)


LEAVES_OUT = ("LabelledScorer", "_PassthroughScorer")
"""Scorers that leave items without a label out: ours, and that which asks the model's `score`."""


class UnlabelledWarning(UserWarning):
    """Items without a label were given to be scored: they are left out."""


def warn_of_unlabelled_fold() -> None:
    """Warn, once a search, if scikit-learn will take items without a label for errors.

    Scores of its own look at predictions only, so this must be said while a fold is learned.
    """
    fold = None if is_later_fold() else held_out()
    if fold is None:
        return
    several = getattr(fold[1], "_scorers", None) or {"": fold[1]}
    if all(type(one).__name__ in LEAVES_OUT for one in several.values()):
        return
    if labels_and_gaps(fold[0])[1].any():
        warnings.warn(COUNTED_WRONG, UnlabelledWarning, stacklevel=4)


def split_off(y: Any) -> tuple[Array, Array | None]:
    """The labels there are, and the numbers of the items that have them; None: all do."""
    labels, unknown = labels_and_gaps(y)
    if len(unknown) and unknown.all():
        raise DataError(NO_LABELS, HINT)
    return labels, np.flatnonzero(~unknown) if unknown.any() else None


class ScoresLabelled(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose accuracy is that on labelled items."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on the items that have a label; others (−1 or None) do not count.

        For a search over settings or a cross-validation take ``cv=SemiSupervisedKFold()``: plain
        folds hold out items without a label, which there teach nothing and test nothing, and
        stratify on −1 as if it were a class.
        """
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:  # shares of classes: scikit-learn says so
            return float(super().score(X, y, sample_weight))
        labels, rows = split_off(y)
        if rows is None:
            return float(super().score(X, y, sample_weight))
        if not is_later_fold():
            warnings.warn(LEFT_OUT, UnlabelledWarning, stacklevel=2)
        found = np.asarray(self.predict(X))
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        check_consistent_length(y, found)
        return _accuracy(labels, found[rows], weights)


def _accuracy(labels: Array, found: Array, weights: Array | None) -> float:
    """The share of labels that were found; a classifier that abstains, by None, is wrong."""
    if found.dtype != object:
        return float(accuracy_score(labels, found, sample_weight=weights))
    right = [ours == theirs for ours, theirs in zip(found.tolist(), labels.tolist(), strict=True)]
    return float(np.average(right, weights=weights))


class LabelledScorer:
    """A scorer that is handed items with a label only; see `labelled_scorer`."""

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self._scorer = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any, **given: Any) -> float:
        """The score of the items that have a label."""
        labels, rows = split_off(y)
        if rows is None:
            return float(self._scorer(estimator, X, y, **given))
        if given.get("sample_weight") is not None:
            given["sample_weight"] = np.asarray(given["sample_weight"])[rows]
        return float(self._scorer(estimator, _safe_indexing(X, rows), labels, **given))

    def __repr__(self) -> str:
        return f"labelled_scorer({self.scoring!r})"


def labelled_scorer(scoring: str | Callable[..., float] = "accuracy") -> LabelledScorer:
    """What scikit-learn's ``scoring`` says, of labelled items only: for folds that hold others too.

    ``scoring``  the name of a score, such as "accuracy" or "f1_macro", or a function of an
                 estimator, items and labels

    `SemiSupervisedKFold` has no others in its test folds, and needs no such scorer. This one is for
    folds that are given, and for scores on a test set that is partly labelled.

    >>> from softcount.models.mixture import NaiveBayes
    >>> model = NaiveBayes().fit(["good", "bad", "good fun"], ["+", "-", None])
    >>> labelled_scorer("f1_macro")(model, ["good", "bad", "good"], ["+", "-", None])
    1.0
    """
    return LabelledScorer(scoring)
