"""Naive Bayes that finds out by itself how far unlabelled documents can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from softcount import interrupt, store
from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError
from softcount.models.base import FitOptions, all_or_nothing
from softcount.models.mixture.labels import UNKNOWN, Labels, read_labels
from softcount.models.mixture.naive_bayes import CollapseWarning, NaiveBayes
from softcount.models.stored import numbers
from softcount.types import Array

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner

HERE = ("unlabelled_weights", "cv", "vectorizer", "length", "init")
"""Settings that the models of the folds do not share: they get counts that are ready to use."""


class NaiveBayesCV(NaiveBayes):
    """`NaiveBayes` that chooses λ by cross-validation on what is labelled.

    ``unlabelled_weights``  values of λ to choose from
    ``cv``                  number of folds

    Each fold's labels are hidden in turn and the documents stay, unlabelled; the λ that predicts
    hidden labels best is taken (the largest among equals, but for differences within a standard
    error: unlabelled documents get the benefit of the doubt). Where some class has too few labels
    to hide one, ``unlabelled_weight`` is taken as it is. After `fit`: ``unlabelled_weight_``, and
    ``cv_scores_``, λ → mean accuracy.
    """

    def __init__(
        self,
        *,
        unlabelled_weights: Sequence[float] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
        cv: Any = 5,
        components: int = 1,
        unlabelled_weight: float = 1.0,
        smoothing: float = 0.1,
        length: float | None = None,
        bernoulli: bool = False,
        prior: float | Mapping[str, float] | None = None,
        init: Any = "labelled",
        scouts: int = 0,
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            components=components,
            unlabelled_weight=unlabelled_weight,
            smoothing=smoothing,
            length=length,
            bernoulli=bernoulli,
            prior=prior,
            init=init,
            scouts=scouts,
            vectorizer=vectorizer,
            learner=learner,
            engine=engine,
            random_state=random_state,
        )
        self.unlabelled_weights = unlabelled_weights
        self.cv = cv

    @interrupt.graceful()
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Choose λ, then learn from everything."""
        with all_or_nothing(self):
            self._check_settings()
            self.cv_scores_, self.unlabelled_weight_ = self._chosen(X, y, sample_weight)
            return super().fit(X, y, sample_weight, init=init, **options)

    def _check_settings(self) -> None:
        super()._check_settings()
        if not len(self.unlabelled_weights):
            raise LearnerError("unlabelled_weights is empty", "give some values of λ")
        if isinstance(self.cv, int | np.integer) and self.cv < 2:
            raise LearnerError(f"cv={self.cv} must be at least 2", "5 is usual")

    def _lambda(self) -> float:
        return self.unlabelled_weight_

    def _chosen(self, X: Any, y: Any, sample_weight: Any) -> tuple[dict[float, float], float]:
        """Mean accuracies by λ, and the best λ."""
        bags = self.observe(X, first=True)
        labels = read_labels(y, len(bags))
        given = self._weights(sample_weight, bags)
        splits = [] if labels.known.all() else self._splits(labels)
        if not splits:
            return {}, self.unlabelled_weight
        weights = np.ones(len(bags)) if given is None else given
        accuracies: dict[float, Array] = {}
        for weight in sorted(map(float, self.unlabelled_weights)):
            found = self._accuracies(weight, bags.matrix, labels, weights, splits)
            if interrupt.asked():  # its fits were cut short: choose among those before it
                break
            accuracies[weight] = found
        # nothing labelled has weight, or Ctrl-C came before anything was tried
        if not accuracies or not all(len(found) for found in accuracies.values()):
            return {}, self.unlabelled_weight
        means = {weight: float(found.mean()) for weight, found in accuracies.items()}
        return means, _largest_of_the_best(accuracies)

    def _splits(self, labels: Labels) -> list[Array]:
        """Documents whose labels are hidden together; the only one of its class stays shown."""
        labelled = np.flatnonzero(labels.numbers != UNKNOWN)
        counts = np.bincount(labels.numbers[labelled], minlength=len(labels.classes))
        several = labelled[counts[labels.numbers[labelled]] > 1]
        if not len(several):
            return []
        folds = self.cv
        if isinstance(folds, int | np.integer):
            folds = StratifiedKFold(
                min(folds, counts.max()), shuffle=True, random_state=self._seed()
            )
        with warnings.catch_warnings():
            # a class of fewer labels than folds has one hidden in some of them: that is well
            warnings.filterwarnings("ignore", message="The least populated class")
            classes = labels.numbers[several]
            return [several[hidden] for _, hidden in check_cv(folds).split(several, classes)]

    def _accuracies(
        self, weight: float, matrix: Any, labels: Labels, weights: Array, splits: Iterable[Array]
    ) -> Array:
        """How well λ = ``weight`` predicts hidden labels, split by split."""
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in HERE}
        found = []
        for hidden in splits:
            shown = labels.numbers.copy()
            shown[hidden] = UNKNOWN
            model = NaiveBayes(**{**settings, "unlabelled_weight": weight})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CollapseWarning)
                model.fit(matrix, shown, weights)
            right = model.transduction_[hidden] == labels.numbers[hidden]
            if weights[hidden].any():
                found.append(np.average(right, weights=weights[hidden]))
        return np.array(found)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = super().stored()
        scores = np.array(list(self.cv_scores_.items())).reshape(-1, 2)
        return {**arrays, "cv_scores": scores}, {**facts, "chosen": self.unlabelled_weight_}

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        scores = numbers(stored, "cv_scores", (None, 2))
        self.cv_scores_ = {float(weight): float(score) for weight, score in scores}
        self.unlabelled_weight_ = stored.meta["chosen"]
        if not 0.0 <= self.unlabelled_weight_ < np.inf:
            raise DataError(f"{self.unlabelled_weight_} is no weight of unlabelled documents")
        return super().recall(stored, given)


def _largest_of_the_best(accuracies: Mapping[float, Array]) -> float:
    """The largest λ whose accuracy is within a standard error of the best one's."""
    best = max(accuracies, key=lambda weight: (accuracies[weight].mean(), weight))
    top = accuracies[best]
    error = float(top.std(ddof=1) / np.sqrt(len(top))) if len(top) > 1 else 0.0
    return max(w for w, found in accuracies.items() if found.mean() >= top.mean() - error)
