"""Two classifiers, one of each domain, whose probabilities are mixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.adapt.base import Adapter, weights_in
from softcount.adapt.folds import best_setting, target_folds
from softcount.adapt.task import Task
from softcount.errors import LearnerError, shown
from softcount.models.settings import check_number
from softcount.types import Array

STEPS = 20


class Interpolation(Adapter):
    """p(y | x) = λ p_target(y | x) + (1 − λ) p_source(y | x).

    ``weight``  λ; None: the one, of 0, 0.05, … 1, under which most held-out labels of the target
                are right; 0.5 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``weight_``, ``source_`` and ``target_`` (the two classifiers).

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = Interpolation().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good and sharp", "bad and blunt"]).tolist(), model.weight_
    ([1, 0], 0.5)
    """

    source_: Any
    target_: Any
    weight_: float

    def __init__(
        self, classifier: Any = None, *, weight: float | None = None, vectorizer: Any = None
    ) -> None:
        self.classifier = classifier
        self.weight = weight
        self.vectorizer = vectorizer

    def check_settings(self) -> None:
        """Complain of a weight that is no share."""
        if self.weight is None:
            return
        check_number("weight", self.weight, "None finds one on held-out labels")
        if self.weight > 1.0:
            raise LearnerError(
                f"weight={shown(self.weight)}: must be from 0 (source) to 1 (target)",
                "None finds one on held-out labels",
            )

    def learn(self, task: Task) -> None:
        """Train both classifiers; the weight is found on labels that neither has seen."""
        name = type(self).__name__
        task.demand_source(name)
        task.demand_target(name)
        self.source_ = self.trained(task.X[task.source], task, task.source)
        self.weight_ = self._chosen(task) if self.weight is None else float(self.weight)
        self.target_ = self.trained(task.X[task.target], task, task.target)

    def _chosen(self, task: Task) -> float:
        found = []
        for train, test in target_folds(task):
            classifier = self.trained(task.X[train], task, train)
            found.append((test, self.posterior(classifier, task.X[test])))
        if not found:
            return 0.5
        held_out = np.concatenate([test for test, _ in found])
        target = np.vstack([shares for _, shares in found])
        source = self.posterior(self.source_, task.X[held_out])

        def foreseen(weight: float) -> Array:
            return weight * target + (1.0 - weight) * source

        return best_setting([i / STEPS for i in range(STEPS + 1)], foreseen, task.y[held_out])

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item), mixed."""
        target = self.posterior(self.target_, X)
        source = self.posterior(self.source_, X)
        mixed: Array = self.weight_ * target + (1.0 - self.weight_) * source
        return mixed

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): the mean of both classifiers' weights, as they are mixed."""
        target = weights_in(self.target_, self.classes_)
        source = weights_in(self.source_, self.classes_)
        mixed: Array = self.weight_ * target + (1.0 - self.weight_) * source
        return mixed
