"""Cross-validation folds and scorers for partially labelled data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from softcount.core.errors import DataError
from softcount.core.parameters import Boolean, check_whole
from softcount.core.types import IntArray
from softcount.mixture.data import UNKNOWN, read_labels
from softcount.mixture.labelled_scores import find_labelled


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


# Scores of labelled items only


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
