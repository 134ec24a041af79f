"""Items of several domains, some with labels: what every method of adaptation learns from."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from softcount.errors import DataError, shown
from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array
from softcount.weak.hard_labels import hard_labels

SOURCE, TARGET = 1, -1
"""Domains of items if users do not say: those with a label, and those without."""


@dataclass(frozen=True, eq=False)
class Task:
    """Where labels are, and where they are wanted.

    ``X``        a matrix, sparse or dense, a row for each item
    ``y``        each item's class as a number, −1 if it is unknown
    ``classes``  what the numbers mean
    ``domain``   each item's domain: sources from 1 up, targets from −1 down
    """

    X: Any
    y: Array
    classes: Array
    domain: Array

    @property
    def source(self) -> Array:
        """The numbers of the items of sources that have a label."""
        return np.flatnonzero((self.domain > 0) & (self.y != UNKNOWN))

    @property
    def target(self) -> Array:
        """The numbers of the items of targets that have a label."""
        return np.flatnonzero((self.domain < 0) & (self.y != UNKNOWN))

    @property
    def labelled(self) -> Array:
        """The numbers of all items that have a label, wherever they are from."""
        return np.flatnonzero(self.y != UNKNOWN)

    @property
    def in_target(self) -> Array:
        """Whether each item is of a target, with a label or without."""
        return self.domain < 0

    @property
    def domains(self) -> Array:
        """The domains there are, sorted."""
        return np.unique(self.domain)

    def names(self, rows: Array) -> Array:
        """The labels of these items, as users call them."""
        found = self.classes[self.y[rows]]
        if "-1" in self.classes.tolist():  # a class here, and no −1 that has become a text
            found = found.astype(object)
        return found

    def demand_source(self, who: str) -> None:
        """Complain if sources do not have labels of two classes."""
        self._demand_classes(self.source, "source", who, "give items of the source, domain 1")

    def demand_target(self, who: str) -> None:
        """Complain if the target does not have labels of two classes."""
        hint = "Merge, Weighted and EasyAdapt do with any; SourceOnly with none"
        self._demand_classes(self.target, "target", who, hint)

    def demand_target_items(self, who: str) -> None:
        """Complain if there is nothing from the target, or nothing from a source."""
        for there, name, sign in (
            (self.in_target, "target", "negative domain, no label"),
            (~self.in_target, "source", "positive domain"),
        ):
            if not there.any():
                raise DataError(
                    f"{who} compares domains, and there is no item of the {name}",
                    f"give some, with sample_domain ({sign}); SourceOnly needs no target",
                )

    def _demand_classes(self, rows: Array, where: str, who: str, hint: str) -> None:
        found = self.classes[np.unique(self.y[rows])].tolist()
        if len(found) >= 2:
            return
        said = f"all labels are {shown(found[0])}" if found else "no item has a label"
        raise DataError(
            f"{who} learns from labels of the {where}, where {said}",
            f"label items of two classes; {hint}",
        )


def read_task(matrix: Any, y: Any, sample_domain: Any) -> Task:
    """Items of several domains, checked.

    >>> task = read_task(np.eye(3), ["b", None, "a"], [1, -1, 1])
    >>> task.source.tolist(), task.in_target.tolist()
    ([0, 2], [False, True, False])
    """
    n_items = matrix.shape[0]
    labels = hard_labels(y, n_items)
    if sample_domain is None:
        domain = np.where(labels.numbers == UNKNOWN, TARGET, SOURCE)
    else:
        domain = read_domains(sample_domain, n_items)
    return Task(matrix, labels.numbers, labels.classes, domain)


def read_domains(sample_domain: Any, n_items: int) -> Array:
    """Each item's domain as a whole number that is not 0; one number is for all.

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
    strange = [one for one in given.tolist() if not _is_domain(one)]
    if strange:
        raise DataError(
            f"{shown(strange[0])} is no domain", "number them: sources 1, 2, …; targets -1, -2, …"
        )
    numbers: Array = given.astype(np.int64)
    return numbers


def _is_domain(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value % 1 == 0 and value != 0
