"""What the source's classifier says of an item is one more thing to know about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.adapt.base import Adapter, beside, weights_in
from softcount.adapt.task import Task
from softcount.types import Array


class PredictionFeature(Adapter):
    """A classifier of the target's labels, of words and of what the source's classifier says.

    What that says is p(class | item): a feature for each class.

    ``classifier``, ``vectorizer``  as for `SourceOnly`

    Afterwards: ``source_`` and ``target_`` (the two classifiers).

    >>> texts = ["a good book", "a bad book", "a good, sharp knife", "a bad, blunt knife"]
    >>> model = PredictionFeature().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> model.predict(["good", "blunt"]).tolist()
    [1, 0]
    """

    source_: Any
    target_: Any

    def __init__(self, classifier: Any = None, *, vectorizer: Any = None) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer

    def learn(self, task: Task) -> None:
        """Train on the source, then on the target, where the first has its say."""
        name = type(self).__name__
        task.demand_source(name)
        task.demand_target(name)
        self.source_ = self.trained(task.X[task.source], task, task.source)
        rows = task.target
        said = self.posterior(self.source_, task.X[rows])
        self.target_ = self.trained(beside(task.X[rows], said), task, rows)
        self._said = said

    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item), as the target's classifier sees it."""
        return self.posterior(self.target_, beside(X, self.posterior(self.source_, X)))

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): a word's own weight, and what it makes the source say.

        With p the source's shares, w its weights and v those of its shares, the latter is the
        derivative Σ_k v_k p_k (w_k − Σ_j p_j w_j), on average over the target's labelled items.
        """
        weights = weights_in(self.target_, self.classes_)
        own, of_said = weights[:, : self.n_features_in_], weights[:, self.n_features_in_ :]
        source = weights_in(self.source_, self.classes_)
        if len(source) == 1:
            source = np.vstack([np.zeros_like(source), source])
        p = self._said
        spread = np.diag(p.mean(axis=0)) - p.T @ p / len(p)
        through: Array = own + of_said @ spread @ source
        return through
