"""Self-training: a classifier is fitted to its own predictions; hard EM is the simplest case."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, Self

import numpy as np

from softcount.core import interrupt
from softcount.core.contract import require_fitted
from softcount.core.errors import LearnerError, brief
from softcount.core.estimate import Estimate, estimate_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters
from softcount.core.types import FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.labels.cotraining import most_confident, read_quota
from softcount.labels.data import (
    Reader,
    SemiSupervisedClassifier,
    clone_classifier,
    hard_labels,
    posterior,
    takes_negative,
)
from softcount.labels.history import History
from softcount.labels.parameters import SelfTrainingParameters
from softcount.mixture import CollapseWarning, NaiveBayes
from softcount.mixture.data import UNKNOWN
from softcount.mixture.naive_bayes import has_collapsed, labels_by_class


class SelfTraining(SelfTrainingParameters, SemiSupervisedClassifier):
    """Self-training: fit a classifier repeatedly to labels that it has predicted itself.

    By default, every round gives *each* unlabelled item its most probable class and fits the
    classifier to all items, until no label changes. That is hard EM: with `NaiveBayes`, the labels
    of each round are those of ``NaiveBayes(learner=HardEM())``. The rounds increase
    log p(items, labels) if the classifier maximises it; a discriminative one does not, and then the
    labels may cycle, which ends the rounds (see ``verdict_``).

    ``classifier``  any scikit-learn classifier; None: ``NaiveBayes(length=100)``. If it has no
                    predict_proba, the softmax of decision_function is used
    ``threshold``   label only items whose best class is more probable than this
    ``per_class``   label only this many items of each class in a round, the most confident ones: a
                    number, or a mapping from classes to numbers
    ``best``        label only this many items in a round, the most confident ones
    ``keep``        True: items keep their labels, and only unlabelled ones are classified. False:
                    every round labels all items anew, and items may lose their label
    ``max_rounds``  maximum number of rounds
    ``vectorizer``  counts words if items are texts

    With ``keep=True``, ``threshold=t`` is equivalent to the threshold of scikit-learn's
    ``SelfTrainingClassifier``, and ``best=k`` to its ``criterion="k_best"``.

    Attributes after ``fit``: ``transduction_`` (a label for every item, predicted if none was
    given), ``history_``, ``estimator_``, ``classes_``, ``verdict_``.

    >>> texts = ["good fine", "bad awful", "good great", "awful dreadful"]
    >>> model = SelfTraining().fit(texts, ["+", "-", None, None])
    >>> model.predict(["great", "dreadful"]).tolist()
    ['+', '-']
    """

    estimator_: Any
    verdict_: Verdict

    def estimate(self, X: Any, y: Any) -> Estimate:
        """Estimate the memory that `fit` will need, and its work per round, without fitting."""
        self._check_settings()
        matrix = Reader(self.vectorizer, type(self).__name__).learn(X)
        return estimate_rows(matrix, len(hard_labels(y, matrix.shape[0]).classes))

    def fit(self, X: Any, y: Any, *, gold: Any = None) -> Self:
        """Fit to partially labelled items (−1 or None: unknown).

        ``gold``  true labels, as far as they are known, for the accuracy in ``history_``
        """
        with all_or_nothing(self):
            self._check_settings()
            self._reader = Reader(self.vectorizer, type(self).__name__)
            matrix = self._reader.learn(X)
            labels = hard_labels(y, matrix.shape[0])
            self.classes_, self.n_features_in_ = labels.classes, matrix.shape[1]
            self.history_ = History.begin(labels.classes, labels.numbers, gold)
            learned = self._train(matrix, labels.numbers).copy()
            unlabelled = np.flatnonzero(learned == UNKNOWN)
            if len(unlabelled):
                learned[unlabelled] = posterior(self.estimator_, matrix[unlabelled]).argmax(axis=1)
            self.transduction_ = self.classes_[learned]
        # warn if only one class, or few, were predicted, as `NaiveBayes` does
        free, K = learned[labels.numbers == UNKNOWN], len(self.classes_)
        if len(free) >= 2 * K:
            proportions = np.bincount(free, minlength=K) / len(free)
            counts = labels_by_class(labels)
            if has_collapsed(proportions, len(free), counts):
                largest = int(proportions.argmax())
                warnings.warn(
                    f"{proportions[largest]:.0%} of the unlabelled items were given the label "
                    f"{brief(self.classes_.tolist()[largest])}, but only "
                    f"{counts[largest] / counts.sum():.0%} of the labelled ones have it: "
                    "self-training has collapsed. Try per_class, which labels a fixed number of "
                    "items of each class in a round, another classifier, or LabelPropagation",
                    CollapseWarning,
                    stacklevel=2,
                )
        return self

    def _check_settings(self) -> None:
        check_parameters(self)
        criteria = (self.threshold, self.per_class, self.best)
        if sum(criterion is not None for criterion in criteria) > 1:
            raise LearnerError(
                "threshold, per_class and best are alternative ways to choose the items to label",
                "give one of them, or none to label everything",
            )

    @interrupt.graceful()
    def _train(self, matrix: Any, given: IntArray) -> IntArray:
        """Run all rounds; return the class number of each item, −1 if it got none."""

        def digest(labels: IntArray) -> bytes:
            return hashlib.blake2b(labels.tobytes(), digest_size=16).digest()

        labels, seen = given, {digest(given)}
        self._fit_classifier(matrix, labels)
        self.verdict_ = Verdict.OUT_OF_STEPS
        for number in range(self.max_rounds):
            after, confidence = self._label(matrix, given, labels)
            if np.array_equal(after, labels):
                self.verdict_ = Verdict.CONVERGED
                break
            if digest(after) in seen:
                self.verdict_ = Verdict.CIRCLED
                break
            labels = after
            seen.add(digest(labels))
            self.history_.record(labels, confidence, "classifier")
            self._fit_classifier(matrix, labels)
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number + 1:,} rounds: the labels given by then are kept")
                break
        return labels

    @interrupt.whole()
    def _fit_classifier(self, matrix: Any, labels: IntArray) -> None:
        known = np.flatnonzero(labels != UNKNOWN)
        classifier = (
            NaiveBayes(length=100) if self.classifier is None else clone_classifier(self.classifier)
        )
        names = self.classes_[labels[known]]
        if "-1" in self.classes_.tolist():  # here "-1" is a class, not an unknown label −1 as text
            names = names.astype(object)
        self.estimator_ = classifier.fit(matrix[known], names)

    def _label(self, matrix: Any, given: IntArray, labels: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the class numbers after another round, and the classifier's confidences."""
        after = (labels if self.keep else given).copy()
        confidence = np.ones(len(given))
        free = np.flatnonzero(after == UNKNOWN)
        if not len(free):
            return after, confidence
        posteriors = posterior(self.estimator_, matrix[free])
        confidence[free] = surest = posteriors.max(axis=1)
        chosen: IntArray = np.arange(len(free))
        if self.threshold is not None:
            chosen = np.flatnonzero(surest > self.threshold)
        elif self.best is not None:
            chosen = np.lexsort((free, -surest))[: self.best]
        elif self.per_class is not None:
            quota = read_quota(self.per_class, self.classes_, given, 1)
            chosen = most_confident(chosen, posteriors, quota).items
        after[free[chosen]] = posteriors[chosen].argmax(axis=1)
        return after, confidence

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for each item, in the order of ``classes_``."""
        require_fitted(self)
        return posterior(self.estimator_, self._reader.read(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        if self.classifier is None:
            tags.input_tags.positive_only = tags.classifier_tags.poor_score = True  # counts only
        else:
            tags.input_tags.positive_only = not takes_negative(self.classifier)
        return tags
