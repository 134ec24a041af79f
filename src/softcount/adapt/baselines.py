"""One classifier, trained on the source, on the target's few labels, or on both."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from softcount.adapt.base import Adapter, usual_classifier, weights_in
from softcount.adapt.folds import best_on_target
from softcount.adapt.task import Task
from softcount.errors import LearnerError, shown
from softcount.models.settings import check_number
from softcount.types import Array

WEIGHTS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0)


class OneClassifier(Adapter):
    """A classifier of the words as they are; a subclass says what it is trained on."""

    classifier_: Any

    def __init__(self, classifier: Any = None, *, vectorizer: Any = None) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer

    def train(self, task: Task, rows: Array, weight: Array | None = None) -> None:
        """Train it on some items."""
        self.classifier_ = self.trained(task.X[rows], task, rows, weight)

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item), the same in all domains."""
        return self.posterior(self.classifier_, X)

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): the classifier's weights, the same in all domains."""
        return weights_in(self.classifier_, self.classes_)


class SourceOnly(OneClassifier):
    """Direct transfer: what is learned in the source is applied to the target.

    ``classifier``  any of scikit-learn's, or None: logistic regression
    ``vectorizer``  how texts become rows; None: tf-idf

    >>> texts = ["a good book", "a bad book", "good oven", "bad oven"]
    >>> SourceOnly().fit(texts, [1, 0, -1, -1]).predict(["this oven is good"]).tolist()
    [1]
    """

    def learn(self, task: Task) -> None:
        """Train on labelled items of the sources."""
        task.demand_source("SourceOnly")
        self.train(task, task.source)


class TargetOnly(OneClassifier):
    """Only the few labels of the target; whatever the source says is left out.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = TargetOnly().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["so sharp"]).tolist()
    [1]
    """

    def learn(self, task: Task) -> None:
        """Train on labelled items of the target."""
        task.demand_target("TargetOnly")
        self.train(task, task.target)


class Merge(OneClassifier):
    """All labels together, wherever they are from.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = Merge().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good and sharp", "bad and blunt"]).tolist()
    [1, 0]
    """

    def learn(self, task: Task) -> None:
        """Train on all labelled items."""
        self.train(task, task.labelled)


class Weighted(OneClassifier):
    """All labels together, those of the target weighing more.

    ``weight``  how many items of the source one of the target is worth; None: that of 1, 2, 3, 5,
                10, 20 under which most held-out labels of the target are right, and 1 if there are
                too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier must take weights of items

    Afterwards ``weight_`` is the weight.

    >>> texts = ["a good book", "a bad book", "a sharp knife", "a bad, blunt knife"]
    >>> model = Weighted(weight=5.0).fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    weight_: float

    def __init__(
        self, classifier: Any = None, *, weight: float | None = None, vectorizer: Any = None
    ) -> None:
        super().__init__(classifier, vectorizer=vectorizer)
        self.weight = weight

    def check_settings(self) -> None:
        """Complain of a weight that is none, or a classifier that takes none."""
        if self.weight is not None:
            check_number("weight", self.weight, "None finds one", above=True)
        own = usual_classifier() if self.classifier is None else self.classifier
        if not has_fit_parameter(own, "sample_weight"):
            raise LearnerError(
                f"{shown(own)} takes no weights of items",
                "give a classifier whose fit has sample_weight, such as LogisticRegression()",
            )

    def learn(self, task: Task) -> None:
        """Train on all labelled items, with the weight given or found."""
        self.weight_ = WEIGHTS[0] if self.weight is None else float(self.weight)
        if self.weight is None:
            self.weight_ = best_on_target(task, WEIGHTS, self.weight_, self._train, self.shares)
        self._train(task, task.labelled, self.weight_)

    def _train(self, task: Task, rows: Array, weight: float) -> None:
        self.train(task, rows, np.where(task.in_target[rows], weight, 1.0))
