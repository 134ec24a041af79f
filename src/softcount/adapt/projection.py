"""Features that mean the same in both domains, learned without labels and put beside the words."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.base import Adapter, Task, beside
from softcount.kernels.blas import single_threaded
from softcount.types import Array

ROWS = 1000
"""So many rows are projected at a time where only their classes are wanted."""


class Projection(TransformerMixin, Adapter):  # type: ignore[misc]
    """A classifier of words and of features that are found in all items, with labels or without.

    A subclass offers `find` and `projected`.
    """

    classifier_: Any

    def learn(self, task: Task) -> None:
        """Find the features in all items, then train the classifier on all that have labels."""
        name = type(self).__name__
        task.demand_source(name)
        task.demand_target_items(name)
        self.find(task)
        rows = task.labelled
        self.classifier_ = self.trained(self.represented(task.X[rows]), task, rows)

    @abstractmethod
    def find(self, task: Task) -> None:
        """Learn the projection from the items of all domains."""

    @abstractmethod
    def projected(self, X: Any) -> Array:
        """The new features of rows of a matrix, scaled so that they suit the words beside them."""

    def represented(self, X: Any) -> Any:
        """Words and new features, side by side."""
        return beside(X, self.projected(X))

    def transform(self, X: Any) -> Any:
        """Items as the classifier sees them: their words, and the features found."""
        check_is_fitted(self, "classes_")
        with single_threaded():
            return self.represented(self._reader.read(X))

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item), some rows at a time."""
        n = X.shape[0]
        parts = [X[start : start + ROWS] for start in range(0, n, ROWS)]
        found = [self.posterior(self.classifier_, self.represented(part)) for part in parts]
        return np.vstack(found)
