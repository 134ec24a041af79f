"""Cross-validation folds and scorers for partially labelled data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from softcount.core.errors import DataError
from softcount.core.parameters import Boolean, check_whole
from softcount.core.types import Array, IntArray
from softcount.core.warnings import held_out, is_later_fold
from softcount.mixture.data import UNKNOWN, read_labels, separate_unknown


class SemiSupervisedKFold(BaseCrossValidator):  # type: ignore[misc]
    """Stratified folds of the labelled items; unlabelled items are in every training set.

    Ordinary folds would hold out unlabelled items, for which no prediction is correct, and would
    stratify on −1 as if it were a class. Here every labelled item is in the test set once and in
    the training sets otherwise, and every unlabelled item (−1 or None) is in every training set. An
    item that is the only one of its class is always in the training set.

    ``n_splits``      number of folds
    ``shuffle``       assign items to folds at random; False: in their order
    ``random_state``  seed of the shuffling

    ``GridSearchCV(NaiveBayes(), settings, cv=SemiSupervisedKFold(5)).fit(X, y)``

    >>> folds = list(SemiSupervisedKFold(2).split("abcdef", [0, 1, 0, 1, -1, -1]))
    >>> sorted(int(i) for _, test in folds for i in test)
    [0, 1, 2, 3]
    >>> all({4, 5} <= set(train.tolist()) for train, _ in folds)
    True
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: int = 0) -> None:
        check_whole("n_splits", n_splits, 2, "5 is usual")
        Boolean().check("shuffle", shuffle)
        check_whole("random_state", random_state, 0)
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[IntArray]:
        """Yield the test items of each fold; scikit-learn takes all others for training."""
        numbers = read_labels(y, _num_samples(X)).likeliest()
        rows = find_repeated_classes(numbers)
        if not len(rows):
            raise DataError(
                "no class has two labels, so that none can be held out", "label more items"
            )
        most = int(np.bincount(numbers[rows]).max())
        if most < self.n_splits:
            raise DataError(
                f"{self.n_splits} folds need at least as many labels of some class, and no class "
                f"has more than {most}",
                f"label more items, or use n_splits={most}",
            )
        seed = int(self.random_state) % 2**32 if self.shuffle else None
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=seed)
        yield from split_folds(rows, numbers, folds)


def find_repeated_classes(numbers: IntArray) -> IntArray:
    """Return the labelled items whose class has several labels, so that one can be held out.

    >>> find_repeated_classes(np.array([1, -1, 0, 1]))
    array([0, 3])
    """
    labelled = np.flatnonzero(numbers != UNKNOWN)
    counts = np.bincount(numbers[labelled])
    return labelled[counts[numbers[labelled]] > 1]


def split_folds(rows: IntArray, numbers: IntArray, folds: BaseCrossValidator) -> list[IntArray]:
    """Return the test items of each fold: ``rows`` split by ``folds``, stratified by class.

    ``rows``     the items to split
    ``numbers``  class numbers of all items
    """
    with warnings.catch_warnings():
        # a class with fewer labels than folds has one held out in some of the folds: that is fine
        warnings.filterwarnings("ignore", message="The least populated class")
        return [rows[test] for _, test in folds.split(rows, numbers[rows])]


# Scores that leave out unlabelled items, for which no prediction can be called wrong

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


class ScoresLabelled(ClassifierMixin):  # type: ignore[misc]
    """Mixin of classifiers whose `score` is the accuracy on labelled items only."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled items; unlabelled ones (−1 or None) are left out.

        For a hyperparameter search or cross-validation use ``cv=SemiSupervisedKFold()``: ordinary
        folds hold out unlabelled items, which are then neither learned from nor tested on, and
        stratify on −1 as if it were a class.
        """
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:  # soft labels: scikit-learn raises the error
            return float(super().score(X, y, sample_weight))
        labels, rows = find_labelled(y)
        if rows is None:
            return float(super().score(X, y, sample_weight))
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


class LabelledScorer:
    """A scorer that passes on only the labelled items; see `labelled_scorer`."""

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self._scorer = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any, **options: Any) -> float:
        """Return the score of the labelled items."""
        labels, rows = find_labelled(y)
        if rows is None:
            return float(self._scorer(estimator, X, y, **options))
        if options.get("sample_weight") is not None:
            options["sample_weight"] = np.asarray(options["sample_weight"])[rows]
        return float(self._scorer(estimator, _safe_indexing(X, rows), labels, **options))

    def __repr__(self) -> str:
        return f"labelled_scorer({self.scoring!r})"


def labelled_scorer(scoring: str | Callable[..., float] = "accuracy") -> LabelledScorer:
    """Make a scikit-learn scorer that scores labelled items only.

    ``scoring``  the name of a score, such as "accuracy" or "f1_macro", or a function of an
                 estimator, items and labels

    It is for folds made elsewhere, and for partially labelled test sets. `SemiSupervisedKFold`
    does not need it, as its test folds have labelled items only.

    >>> from softcount.mixture import NaiveBayes
    >>> model = NaiveBayes().fit(["good", "bad", "good fun"], ["+", "-", None])
    >>> labelled_scorer("f1_macro")(model, ["good", "bad", "good"], ["+", "-", None])
    1.0
    """
    return LabelledScorer(scoring)
