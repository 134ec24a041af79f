"""Items of several domains, and choice of settings by held-out labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import check_whole
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.labels.data import hard_labels, log_posteriors
from softcount.mixture.data import UNKNOWN

SOURCE, TARGET = 1, -1
"""Default domains of labelled and of unlabelled items."""
FOLDS = 5
SIDES = ("source", "target")
Fold = tuple[IntArray, IntArray]
"""Numbers of the training items and of the test items."""


@dataclass(frozen=True, eq=False)
class Task:
    """Training data of several domains.

    ``X``        a matrix, sparse or dense, a row for each item
    ``y``        class number of each item, −1 if unknown
    ``classes``  the class labels
    ``domain``   domain of each item: sources 1, 2, …, targets −1, −2, …
    """

    X: Any
    y: IntArray
    classes: Array
    domain: IntArray

    @property
    def source(self) -> IntArray:
        """Numbers of the labelled items of the sources."""
        return np.flatnonzero((self.domain > 0) & (self.y != UNKNOWN))

    @property
    def target(self) -> IntArray:
        """Numbers of the labelled items of the targets."""
        return np.flatnonzero((self.domain < 0) & (self.y != UNKNOWN))

    @property
    def labelled(self) -> IntArray:
        """Numbers of the labelled items of all domains."""
        return np.flatnonzero(self.y != UNKNOWN)

    @property
    def in_target(self) -> BoolArray:
        """Whether each item, labelled or not, is of a target."""
        return self.domain < 0

    def labels(self, rows: IntArray) -> Array:
        """Return the labels of these items."""
        names = self.classes[self.y[rows]]
        # as objects, a class "-1" is not mistaken for an unknown label −1 converted to text
        return names.astype(object) if "-1" in self.classes.tolist() else names

    def require(self, who: str, *needs: str) -> None:
        """Raise if data that ``who`` needs are missing: labels of two classes in the "source" or in
        the "target", or items, labelled or not, of "both"."""
        if "both" in needs:
            for side, present, sign in (
                ("target", self.in_target, "negative domain, no label"),
                ("source", ~self.in_target, "positive domain"),
            ):
                if not present.any():
                    raise DataError(
                        f"{who} needs both domains, but there is no item of the {side}",
                        f"give some, with sample_domain ({sign}); SourceOnly needs no target",
                    )
        for side, rows, hint in (
            ("source", self.source, "give items of the source, domain 1"),
            (
                "target",
                self.target,
                "Merge, Weighted and EasyAdapt accept any labels; SourceOnly needs none",
            ),
        ):
            classes = self.classes[np.unique(self.y[rows])].tolist()
            if side in needs and len(classes) < 2:
                fault = f"all labels are {brief(classes[0])}" if classes else "no item has a label"
                raise DataError(
                    f"{who} needs labels of the {side}, where {fault}",
                    f"label items of two classes; {hint}",
                )


def read_task(matrix: Any, y: Any, sample_domain: Any) -> Task:
    """Read and check labels and domains.

    >>> task = read_task(np.eye(3), ["b", None, "a"], [1, -1, 1])
    >>> task.source.tolist(), task.in_target.tolist()
    ([0, 2], [False, True, False])
    """
    labels = hard_labels(y, matrix.shape[0])
    domain: IntArray = np.where(labels.numbers == UNKNOWN, TARGET, SOURCE)
    if sample_domain is not None:
        domain = read_domains(sample_domain, matrix.shape[0])
    return Task(matrix, labels.numbers, labels.classes, domain)


def read_domains(sample_domain: Any, n_items: int) -> IntArray:
    """Read the domain of each item, an integer that is not 0; a single number is for all items.

    >>> read_domains([1, 2, -1], 3)
    array([ 1,  2, -1])
    """
    given = np.asarray(sample_domain)
    if given.ndim == 0:
        given = np.full(n_items, given)
    if given.ndim != 1:
        raise DataError(f"domains of shape {given.shape}", "give one number for each item")
    if len(given) != n_items:
        raise DataError(
            f"inconsistent numbers of samples: {n_items} items and {len(given)} domains",
            "give a domain for each item",
        )
    for value in given.tolist():
        if not isinstance(value, Real) or isinstance(value, bool) or value % 1 or value == 0:
            raise DataError(
                f"{brief(value)} is not a valid domain",
                "number domains: sources 1, 2, …; targets -1, -2, …",
            )
    return np.asarray(given, dtype=np.int64)


def domain_folds(
    y: Any, sample_domain: Any, on: str = "source", n_splits: int = FOLDS, random_state: int = 0
) -> list[Fold]:
    """Make cross-validation folds for a search over settings: (training items, test items).

    The test items are labelled items of the sources, or of the targets (``on``), each once; all
    other items, also unlabelled ones, are training items. So a search uses no other labels than
    those given, and with ``on="source"`` none of the target. (A search predicts all items as if
    they were of the target, unless metadata routing passes on domains; this matters for `EasyAdapt`
    only.)

    ``GridSearchCV(method, settings, cv=domain_folds(y, domains)).fit(X, y, sample_domain=domains)``

    >>> folds = domain_folds([0, 1, 0, 1, -1], [1, 1, 1, 1, -1], n_splits=2)
    >>> sorted(int(i) for _, test in folds for i in test), all(4 in train for train, _ in folds)
    ([0, 1, 2, 3], True)
    """
    if on not in SIDES:
        raise LearnerError(f"on={brief(on)}", f"one of {', '.join(SIDES)}")
    check_whole("n_splits", n_splits, 2)
    check_whole("random_state", random_state, 0)
    n_items = len(y)
    numbers, domain = hard_labels(y, n_items).numbers, read_domains(sample_domain, n_items)
    rows = np.flatnonzero(((domain > 0) == (on == "source")) & (numbers != UNKNOWN))
    parts = _split(rows, numbers, n_splits, random_state)
    if len(parts) < n_splits:
        raise DataError(
            f"{n_splits} folds need as many labels of each class in the {on}",
            f"label more items{f', or use n_splits={len(parts)}' if parts else ''}",
        )
    return [(np.setdiff1d(np.arange(n_items), test), test) for test in parts]


def target_folds(task: Task) -> list[Fold]:
    """Make folds of the target's labelled items: (training items, test items).

    There are at most five folds, and no more than the rarest class has labels; none if some class
    has a single label.
    """
    rows = task.target
    return [(np.setdiff1d(rows, test), test) for test in _split(rows, task.y, FOLDS, 0)]


def _split(rows: IntArray, numbers: IntArray, most: int, seed: int) -> list[IntArray]:
    """Split labelled items into at most ``most`` stratified parts; none if that is impossible."""
    counts = np.bincount(numbers[rows], minlength=1)
    counts = counts[counts > 0]
    n = min(most, int(counts.min())) if len(counts) > 1 else 0
    if n < 2:
        return []
    folds = StratifiedKFold(n, shuffle=True, random_state=seed % 2**32)
    return [rows[test] for _, test in folds.split(rows, numbers[rows])]


def choose_setting(
    settings: Sequence[float], predict: Callable[[float], FloatArray], truth: IntArray
) -> float:
    """Choose the setting with the best held-out accuracy; among equals, the best likelihood.

    ``predict(setting)`` returns the posteriors of the classes, a row for each held-out item.

    >>> choose_setting([0.6, 0.4], lambda p: np.array([[1 - p, p], [1 - p, p]]), np.array([1, 1]))
    0.6
    """

    def rate(setting: float) -> tuple[float, float]:
        posteriors = predict(setting)
        accuracy = float((posteriors.argmax(axis=1) == truth).mean())
        return accuracy, float(log_posteriors(posteriors)[np.arange(len(truth)), truth].sum())

    return max(settings, key=rate)


def choose_on_target(
    task: Task,
    given: float | None,
    settings: Sequence[float],
    default: float,
    train: Callable[[Task, IntArray, float], None],
    predict: Callable[[Any, IntArray], FloatArray],
) -> float:
    """Return the given setting, or else the best one in cross-validation on the target's labels;
    the default if there are too few labels to hold any out.

    ``train(task, rows, setting)`` fits to labelled items; after that ``predict(X, domain)`` returns
    the class posteriors of other items.
    """
    if given is not None:
        return float(given)
    folds = target_folds(task)
    if not folds:
        return default

    def predict_held_out(setting: float) -> FloatArray:
        posteriors = []
        for learn, test in folds:
            train(task, np.concatenate([task.source, learn]), setting)
            posteriors.append(predict(task.X[test], task.domain[test]))
        return np.vstack(posteriors)

    truth = task.y[np.concatenate([test for _, test in folds])]
    return choose_setting(settings, predict_held_out, truth)
