"""Labels that are held out to choose settings by: of the source, or some few of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.model_selection import StratifiedKFold

from softcount.adapt.task import Task, read_domains
from softcount.errors import DataError, LearnerError, shown
from softcount.models.mixture.labels import UNKNOWN
from softcount.models.settings import check_whole
from softcount.types import Array
from softcount.weak.confidence import log_shares
from softcount.weak.hard_labels import hard_labels

Dial = TypeVar("Dial")
FOLDS = 5
WHERE = ("source", "target")


def domain_folds(
    y: Any, sample_domain: Any, on: str = "source", n_splits: int = FOLDS, random_state: int = 0
) -> list[tuple[Array, Array]]:
    """Folds for a search over settings: (items to learn from, items to test on), by number.

    Tested on are labelled items of the sources, or of the targets (``on``), each once; learned
    from is everything else, items without a label too. So a search never looks at labels that it
    was not given, and with ``on="source"`` at none of the target. (It scores all items as if they
    were of the target, which only `EasyAdapt` minds, unless metadata routing hands domains on.)

    ``GridSearchCV(method, settings, cv=domain_folds(y, domains)).fit(X, y, sample_domain=domains)``

    >>> folds = domain_folds([0, 1, 0, 1, -1], [1, 1, 1, 1, -1], n_splits=2)
    >>> sorted(int(i) for _, test in folds for i in test), all(4 in train for train, _ in folds)
    ([0, 1, 2, 3], True)
    """
    if on not in WHERE:
        raise LearnerError(f"on={shown(on)}", f"one of {', '.join(WHERE)}")
    check_whole("n_splits", n_splits, 2)
    check_whole("random_state", random_state, 0)
    n_items = len(y)
    numbers, domain = hard_labels(y, n_items).numbers, read_domains(sample_domain, n_items)
    rows = np.flatnonzero(((domain > 0) if on == "source" else (domain < 0)) & (numbers != UNKNOWN))
    splits = _split(rows, numbers, n_splits, random_state)
    if len(splits) < n_splits:
        raise DataError(
            f"{n_splits} folds need as many labels of each class in the {on}",
            f"label more items{f', or take n_splits={len(splits)}' if splits else ''}",
        )
    return [(np.setdiff1d(np.arange(n_items), test), test) for test in splits]


def target_folds(task: Task) -> list[tuple[Array, Array]]:
    """(labelled items of the target to learn from, and to test on), as many times as classes allow,
    five at most; none if some class has a single label."""
    rows = task.target
    return [(np.setdiff1d(rows, test), test) for test in _split(rows, task.y, FOLDS, 0)]


def _split(rows: Array, numbers: Array, most: int, seed: int) -> list[Array]:
    """Labelled items dealt into so many parts, each with all classes; none if that cannot be."""
    counts = np.bincount(numbers[rows]) if len(rows) else np.zeros(1, dtype=np.int64)
    there = counts[counts > 0]
    n = min(most, int(there.min())) if len(there) > 1 else 0
    if n < 2:
        return []
    deal = StratifiedKFold(n, shuffle=True, random_state=seed % 2**32)
    return [rows[test] for _, test in deal.split(rows, numbers[rows])]


def best_setting(settings: Sequence[Dial], foreseen: Callable[[Dial], Array], truth: Array) -> Dial:
    """The setting under which most held-out labels are right; of equals, most probable.

    ``foreseen(setting)`` has the shares of the classes, a row for each held-out item.

    >>> best_setting([0.6, 0.4], lambda p: np.array([[1 - p, p], [1 - p, p]]), np.array([1, 1]))
    0.6
    """
    where = np.arange(len(truth))

    def worth(one: Dial) -> tuple[float, float]:
        shares = foreseen(one)
        right = float((shares.argmax(axis=1) == truth).mean())
        return right, float(log_shares(shares)[where, truth].sum())

    return max(settings, key=worth)


def best_on_target(
    task: Task,
    settings: Sequence[Dial],
    otherwise: Dial,
    train: Callable[[Task, Array, Dial], None],
    shares: Callable[[Any, Array], Array],
) -> Dial:
    """The setting that does best on held-out labels of the target; ``otherwise`` if there are too
    few to hold any out.

    ``train(task, rows, setting)`` learns from labelled items, after which ``shares(X, domain)``
    has the shares of classes of others.
    """
    folds = target_folds(task)
    if not folds:
        return otherwise

    def foreseen(setting: Dial) -> Array:
        found = []
        for learn, test in folds:
            train(task, np.concatenate([task.source, learn]), setting)
            found.append(shares(task.X[test], task.domain[test]))
        return np.vstack(found)

    return best_setting(settings, foreseen, task.y[np.concatenate([test for _, test in folds])])
