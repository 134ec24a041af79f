"""Self-training: a classifier that learns from its own labels; hard EM is the simplest case."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softcount.core import interrupt
from softcount.core.errors import LearnerError, brief
from softcount.core.estimate import Estimate, of_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters
from softcount.core.types import FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.labels.cotraining import most_confident, read_quota
from softcount.labels.data import (
    Reader,
    SemiSupervisedClassifier,
    hard_labels,
    own_copy,
    posterior,
    takes_negative,
)
from softcount.labels.history import History
from softcount.labels.parameters import SelfTrainingParameters
from softcount.mixture import CollapseWarning, NaiveBayes
from softcount.mixture.data import UNKNOWN
from softcount.mixture.naive_bayes import has_collapsed, labels_by_class


class SelfTraining(SelfTrainingParameters, SemiSupervisedClassifier):
    """A classifier that is fitted again and again to labels that it has given itself.

    As it stands, every round gives *each* unlabelled item its likeliest class and fits the
    classifier to all items, until no label changes. That is hard EM: with `NaiveBayes`, round by
    round the labels of ``NaiveBayes(learner=HardEM())``. The rounds climb log p(items, labels) if
    the classifier maximises that; a discriminative one does not, and the labels may go round in a
    circle, which ends them (``verdict_``).

    ``classifier``  any of scikit-learn's, or None: ``NaiveBayes(length=100)``. Without
                    predict_proba: the softmax of decision_function
    ``threshold``   label only what is more probable than this
    ``per_class``   label only so many of each class in a round, the surest: a number, or a mapping
    ``best``        label only so many of all in a round, the surest
    ``keep``        labels once given stay, and only items without one are looked at. If not, every
                    round labels anew, and items lose labels that they no longer deserve
    ``max_rounds``  at most so many
    ``vectorizer``  what counts words where items are texts

    With ``keep=True``, ``threshold=t`` does what scikit-learn's ``SelfTrainingClassifier`` does
    with its threshold, and ``best=k`` what it does with ``criterion="k_best"``.

    Afterwards: ``transduction_`` has a label for every item (as predicted where none was given),
    and ``history_``, ``estimator_``, ``classes_``, ``verdict_``.

    >>> texts = ["good fine", "bad awful", "good great", "awful dreadful"]
    >>> model = SelfTraining().fit(texts, ["+", "-", None, None])
    >>> model.predict(["great", "dreadful"]).tolist()
    ['+', '-']
    """

    estimator_: Any
    verdict_: Verdict

    def estimate(self, X: Any, y: Any) -> Estimate:
        """What `fit` will need: bytes, and work a round. Nothing is learned."""
        self._check_settings()
        matrix = Reader(self.vectorizer, type(self).__name__).learn(X)
        return of_rows(matrix, len(hard_labels(y, matrix.shape[0]).classes))

    def fit(self, X: Any, y: Any, *, gold: Any = None) -> Self:
        """Learn from items of which some have labels (−1 or None: unknown).

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
        # tell of labels that were given to one class alone, or to few, as `NaiveBayes` does
        free, K = learned[labels.numbers == UNKNOWN], len(self.classes_)
        if len(free) >= 2 * K:
            shares, counts = np.bincount(free, minlength=K) / len(free), labels_by_class(labels)
            if has_collapsed(shares, len(free), counts):
                largest = int(shares.argmax())
                warnings.warn(
                    f"{shares[largest]:.0%} of the unlabelled items were given the label "
                    f"{brief(self.classes_.tolist()[largest])}, which "
                    f"{counts[largest] / counts.sum():.0%} of the labels are: self-training has "
                    "collapsed. Try per_class, which labels so many of each class in a round, "
                    "another classifier, or LabelPropagation",
                    CollapseWarning,
                    stacklevel=2,
                )
        return self

    def _check_settings(self) -> None:
        check_parameters(self)
        criteria = (self.threshold, self.per_class, self.best)
        if sum(criterion is not None for criterion in criteria) > 1:
            raise LearnerError(
                "threshold, per_class and best are different ways to choose what is labelled",
                "give one of them, or none to label everything",
            )

    @interrupt.graceful()
    def _train(self, matrix: Any, given: IntArray) -> IntArray:
        """All rounds; returns each item's label as a number, −1 where it got none."""

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
        own = NaiveBayes(length=100) if self.classifier is None else own_copy(self.classifier)
        names = self.classes_[labels[known]]
        if "-1" in self.classes_.tolist():  # a class here, and no −1 that has become a text
            names = names.astype(object)
        self.estimator_ = own.fit(matrix[known], names)

    def _label(self, matrix: Any, given: IntArray, labels: IntArray) -> tuple[IntArray, FloatArray]:
        """The labels after another round, and how confident the classifier is of each."""
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
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self)
        return posterior(self.estimator_, self._reader.read(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        if self.classifier is None:
            tags.input_tags.positive_only = tags.classifier_tags.poor_score = True  # counts only
        else:
            tags.input_tags.positive_only = not takes_negative(self.classifier)
        return tags
