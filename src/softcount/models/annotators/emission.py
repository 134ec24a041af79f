"""What annotators say of an item, given its true label."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.corpus.bags import Bags
from softcount.families import Categorical
from softcount.models.mixture.emissions import Words
from softcount.types import Array


class Confusions(Categorical):
    """A row for each annotator and true label: what that annotator says.

    True labels are alike if all annotators speak of them in the same way.
    """

    TOLERANCE = 1e-9

    def __init__(self, n_annotators: int, n_classes: int, prior: float) -> None:
        super().__init__((n_annotators * n_classes, n_classes), prior)
        self.of_annotators = (n_annotators, n_classes, n_classes)

    def alike(self, params: Array) -> bool | None:
        if self.of_annotators[1] < 2:
            return None
        rows = params.reshape(self.of_annotators)
        return bool(np.all(np.abs(rows - rows[:, :1]) <= self.TOLERANCE))


class Voting(Words):
    """log p(votes | k) = Σ_a Σ_l x_al log θ_akl: a document whose words are (annotator, label).

    The chances of all labels of one annotator add up to one, not those of all words.
    """

    table = "confusion"
    family: Confusions

    def __init__(self, n_annotators: int, n_classes: int, prior: float) -> None:
        self.family = Confusions(n_annotators, n_classes, prior)

    def joint(
        self, params: Array, x: Bags, log_weights: Array, threads: int, floor: float
    ) -> Array:
        return super().joint(self._by_class(params), x, log_weights, threads, floor)

    def counts(self, x: Bags, shares: Array, threads: int) -> Array:
        A, K, L = self.family.of_annotators
        by_class = super().counts(x, shares, threads).reshape(K, A, L)
        return np.ascontiguousarray(by_class.transpose(1, 0, 2)).reshape(A * K, L)

    def _by_class(self, params: Array) -> Array:
        """The table with a row for each true label: (classes, annotators · labels)."""
        A, K, L = self.family.of_annotators
        return params.reshape(A, K, L).transpose(1, 0, 2).reshape(K, A * L)

    def generate(self, params: Array, classes: Array, rng: np.random.Generator, size: Any) -> Any:
        """A label for each vote; ``size`` is (items, annotators), one of each a vote."""
        items, annotators = size
        chances = params.reshape(self.family.of_annotators)[annotators, classes[items]]
        ends = np.cumsum(chances, axis=1)
        drawn = rng.random(len(items)) * ends[:, -1]
        return (drawn[:, None] >= ends).sum(axis=1)
