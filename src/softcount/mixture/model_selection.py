"""Folds and scores for data of which few items have a label."""

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
from softcount.mixture.data import UNKNOWN, labels_and_gaps, read_labels


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
        Boolean().check("shuffle", shuffle)
        check_whole("random_state", random_state, 0)
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds."""
        return self.n_splits

    def _iter_test_indices(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[IntArray]:
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
        seed = int(self.random_state) % 2**32 if self.shuffle else None
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=seed)
        yield from deal_folds(rows, numbers, folds)


def several_of_a_class(numbers: IntArray) -> IntArray:
    """Items whose class is known, and is that of others too: one of these can be held out.

    >>> several_of_a_class(np.array([1, -1, 0, 1]))
    array([0, 3])
    """
    labelled = np.flatnonzero(numbers != UNKNOWN)
    counts = np.bincount(numbers[labelled])
    return labelled[counts[numbers[labelled]] > 1]


def deal_folds(rows: IntArray, numbers: IntArray, folds: BaseCrossValidator) -> list[IntArray]:
    """Some items, dealt out by ``folds`` according to the numbers of their classes."""
    with warnings.catch_warnings():
        # a class of fewer labels than folds has one held out in some of them: that is well
        warnings.filterwarnings("ignore", message="The least populated class")
        return [rows[test] for _, test in folds.split(rows, numbers[rows])]


# Scores that leave items without a label out: what nobody knows cannot be wrong

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
        warnings.warn(
            "this fold is scored on items without a label, which count as errors. Take "
            "cv=softcount.mixture.SemiSupervisedKFold(), which tests on labelled items only, or "
            "scoring=softcount.mixture.labelled_scorer(…)",
            UnlabelledWarning,
            stacklevel=4,
        )


def find_labelled(y: Any) -> tuple[Array, IntArray | None]:
    """The labels there are, and the numbers of the items that have them; None: all do."""
    labels, unknown = labels_and_gaps(y)
    if len(unknown) and unknown.all():
        raise DataError(
            "no item has a label: there is nothing to be right or wrong about",
            "score items whose labels are known; SemiSupervisedKFold deals only such into test "
            "folds",
        )
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
        labels, rows = find_labelled(y)
        if rows is None:
            return float(super().score(X, y, sample_weight))
        if not is_later_fold():
            warnings.warn(
                "items without a label are left out of the score. In a search or a "
                "cross-validation, take cv=softcount.mixture.SemiSupervisedKFold(): it tests on "
                "labelled items only, and learns from all unlabelled ones every time",
                UnlabelledWarning,
                stacklevel=2,
            )
        predicted = np.asarray(self.predict(X))
        check_consistent_length(y, predicted)
        predicted = predicted[rows]
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        if predicted.dtype != object:
            return float(accuracy_score(labels, predicted, sample_weight=weights))
        # a classifier that abstains, by None, is wrong
        pairs = zip(predicted.tolist(), labels.tolist(), strict=True)
        return float(np.average([ours == theirs for ours, theirs in pairs], weights=weights))


class LabelledScorer:
    """A scorer that is handed items with a label only; see `labelled_scorer`."""

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        self._scorer = get_scorer(scoring)

    def __call__(self, estimator: Any, X: Any, y: Any, **given: Any) -> float:
        """The score of the items that have a label."""
        labels, rows = find_labelled(y)
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

    >>> from softcount.mixture import NaiveBayes
    >>> model = NaiveBayes().fit(["good", "bad", "good fun"], ["+", "-", None])
    >>> labelled_scorer("f1_macro")(model, ["good", "bad", "good"], ["+", "-", None])
    1.0
    """
    return LabelledScorer(scoring)
