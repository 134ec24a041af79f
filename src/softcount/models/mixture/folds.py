"""Folds of labelled items, beside which unlabelled ones are always learned from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils.validation import _num_samples

from softcount.errors import DataError, LearnerError, shown
from softcount.models.mixture.labels import UNKNOWN, read_labels
from softcount.models.settings import check_whole
from softcount.types import Array


class SemiSupervisedKFold(BaseCrossValidator):  # type: ignore[misc]
    """Stratified folds of the labelled items; unlabelled ones are in every training part.

    Plain folds would hold out items without a label, for which no answer is right, and stratify on
    −1 as if it were a class. Here every labelled item is tested on once and learned from
    otherwise, and every item without a label (−1 or None) is learned from each time. The only
    label of its class is always learned from.

    ``n_splits``      how many folds
    ``shuffle``       deal items out at random; False: in their order
    ``random_state``  the seed of that

    ``GridSearchCV(NaiveBayes(), settings, cv=SemiSupervisedKFold(5)).fit(X, y)``

    >>> folds = list(SemiSupervisedKFold(2).split("abcdef", [0, 1, 0, 1, -1, -1]))
    >>> sorted(int(i) for _, test in folds for i in test)
    [0, 1, 2, 3]
    >>> all({4, 5} <= set(train.tolist()) for train, _ in folds)
    True
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: int = 0) -> None:
        check_whole("n_splits", n_splits, 2, "5 is usual")
        if not isinstance(shuffle, bool | np.bool_):
            raise LearnerError(f"shuffle={shown(shuffle)}", "True or False")
        check_whole("random_state", random_state, 0)
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds."""
        return self.n_splits

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[Array]:
        """The test items of each fold; scikit-learn makes all others the training part."""
        numbers = read_labels(y, _num_samples(X)).likeliest()
        rows = several_of_a_class(numbers)
        if not len(rows):
            raise DataError(
                "no class has two labels, of which one could be held out", "label more items"
            )
        most = int(np.bincount(numbers[rows]).max())
        if most < self.n_splits:
            raise DataError(
                f"{self.n_splits} folds need as many labels of some class, and none has more than "
                f"{most}",
                f"label more items, or take n_splits={most}",
            )
        yield from dealt(rows, numbers, self.n_splits, self._seed())

    def _seed(self) -> int | None:
        return int(self.random_state) % 2**32 if self.shuffle else None


def several_of_a_class(numbers: Array) -> Array:
    """Items whose class is known, and is that of others too: one of these can be held out.

    >>> several_of_a_class(np.array([1, -1, 0, 1]))
    array([0, 3])
    """
    labelled = np.flatnonzero(numbers != UNKNOWN)
    counts = np.bincount(numbers[labelled])
    return labelled[counts[numbers[labelled]] > 1]


def dealt(rows: Array, numbers: Array, n: int, seed: int | None) -> list[Array]:
    """Items dealt into n parts, in each of which classes are as common as they can be."""
    folds = StratifiedKFold(n, shuffle=seed is not None, random_state=seed)
    with warnings.catch_warnings():
        # a class of fewer labels than folds has one held out in some of them: that is well
        warnings.filterwarnings("ignore", message="The least populated class")
        return [rows[test] for _, test in folds.split(rows, numbers[rows])]
