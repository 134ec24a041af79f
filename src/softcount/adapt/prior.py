"""The source's weights as a prior: the target's labels say where to leave them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from softcount.adapt.base import Adapter, by_class, weights_in
from softcount.adapt.folds import best_on_target
from softcount.adapt.task import Task
from softcount.models.settings import check_number
from softcount.types import Array

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
USUAL = 0.3
MOST_STEPS = 500


class SourcePrior(Adapter):
    """Logistic regression of the target's labels, drawn towards the source's weights.

    Minimised by L-BFGS is −Σ log p(y_i | x_i; W, b) + ½ λ (‖W − W_source‖² + ‖b − b_source‖²) over
    the target's labelled items: the mode under a Gaussian prior around the source (Chelba & Acero
    2004). Intercepts are drawn, too, so that labels of one class do not carry everything away.

    ``strength``  λ; None: the one, of 0.01 to 3, under which most held-out labels of the target are
                  right; 0.3 if there are too few to hold any out
    ``classifier``, ``vectorizer``  as for `SourceOnly`; the classifier gives W_source, so it must
                  be linear

    Afterwards: ``strength_``, ``source_`` (the source's classifier), ``coef_``, ``intercept_``: a
    row for each class, or one if these are two.

    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = SourcePrior().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good", "blunt"]).tolist()
    [1, 0]
    """

    source_: Any
    coef_: Array
    intercept_: Array
    strength_: float

    def __init__(
        self, classifier: Any = None, *, strength: float | None = None, vectorizer: Any = None
    ) -> None:
        self.classifier = classifier
        self.strength = strength
        self.vectorizer = vectorizer

    def check_settings(self) -> None:
        """Complain of a strength below 0."""
        if self.strength is not None:
            check_number("strength", self.strength, "None finds one", above=True)

    def learn(self, task: Task) -> None:
        """Train on the source, then leave it as far as the target's labels ask for."""
        task.demand_source(type(self).__name__)
        if not len(task.target):
            task.demand_target(type(self).__name__)
        self.source_ = self.trained(task.X[task.source], task, task.source)
        self.strength_ = USUAL if self.strength is None else float(self.strength)
        if self.strength is None:
            self.strength_ = best_on_target(
                task, STRENGTHS, self.strength_, self._train, self.shares
            )
        self._train(task, task.target, self.strength_)

    def _train(self, task: Task, rows: Array, strength: float) -> None:
        """Learn from those of these items that are of the target."""
        rows = rows[task.in_target[rows]]
        found = drawn_towards(self._source_weights(), task.X[rows], task.y[rows], strength)
        self.coef_, self.intercept_ = found[:, :-1], found[:, -1]

    def _source_weights(self) -> Array:
        """(rows, columns + 1): weights and, last, intercepts of the source."""
        return np.column_stack(
            [
                weights_in(self.source_, self.classes_),
                by_class(self.source_, np.reshape(self.source_.intercept_, (-1, 1)), self.classes_),
            ]
        )

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item), the same in all domains."""
        found = scores(np.column_stack([self.coef_, self.intercept_]), X)
        if found.shape[1] == 1:
            return np.hstack([expit(-found), expit(found)])
        shares: Array = softmax(found, axis=1)
        return shares

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): ``coef_``."""
        return self.coef_


def drawn_towards(start: Array, X: Any, y: Array, strength: float) -> Array:
    """The weights and intercepts of which the objective of `SourcePrior` is least.

    ``start``  (rows, columns + 1): W_source and, last, b_source. One row is for two classes, the
               score of the second; else there is a row for each class

    >>> start = np.array([[2.0, 0.0]])
    >>> drawn_towards(start, np.array([[1.0]]), np.array([0]), 1e9)[0, 0].round(3)
    np.float64(2.0)
    """

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        away = weights - start
        value, slope = misfit(scores(weights, X), y)
        gradient = np.column_stack([(X.T @ slope).T, slope.sum(axis=0)])
        total = value + 0.5 * strength * float((away**2).sum())
        return total, (gradient + strength * away).ravel()

    options = {"maxiter": MOST_STEPS, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    weights: Array = found.x.reshape(start.shape)
    return weights


def scores(weights: Array, X: Any) -> Array:
    """(items, rows): what each row of weights, with its intercept, says of each item."""
    found: Array = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
    return found


def misfit(found: Array, y: Array) -> tuple[float, Array]:
    """−Σ log p(y | scores), and its derivative by each score."""
    if found.shape[1] == 1:
        sign = np.where(y == 1, 1.0, -1.0)
        margin = sign * found[:, 0]
        return float(np.logaddexp(0.0, -margin).sum()), (-sign * expit(-margin))[:, None]
    where = np.arange(len(y))
    slope = softmax(found, axis=1)
    slope[where, y] -= 1.0
    return -float(log_softmax(found, axis=1)[where, y].sum()), slope
