"""Self-training: a classifier that learns from its own labels; hard EM is the simplest case."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softcount.core import interrupt
from softcount.core.errors import LearnerError, brief
from softcount.core.estimate import Estimate, of_rows
from softcount.core.estimator import SklearnContract, all_or_nothing
from softcount.core.parameters import check_whole
from softcount.core.types import Array
from softcount.core.verdict import Verdict
from softcount.labels.cotraining import most_confident, read_quota
from softcount.labels.data import Reader, hard_labels, own_copy, posterior, takes_negative
from softcount.labels.history import History, gold_numbers
from softcount.mixture import CollapseWarning, NaiveBayes
from softcount.mixture.data import UNKNOWN, Labels
from softcount.mixture.model_selection import ScoresLabelled
from softcount.mixture.naive_bayes import has_collapsed, labels_by_class

WHO = "classifier"
"""How the history calls the one view there is."""


class SelfTraining(ScoresLabelled, SklearnContract, BaseEstimator):  # type: ignore[misc]
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

    classes_: Array
    transduction_: Array
    history_: History
    estimator_: Any
    verdict_: Verdict

    def __init__(
        self,
        classifier: Any = None,
        *,
        threshold: float | None = None,
        per_class: int | Mapping[Any, int] | None = None,
        best: int | None = None,
        keep: bool = False,
        max_rounds: int = 100,
        vectorizer: Any = None,
    ) -> None:
        self.classifier = classifier
        self.threshold = threshold
        self.per_class = per_class
        self.best = best
        self.keep = keep
        self.max_rounds = max_rounds
        self.vectorizer = vectorizer

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
            true = gold_numbers(gold, labels.classes, len(labels.numbers))
            self.history_ = History(labels.classes, labels.numbers, true)
            found = self._train(matrix, labels.numbers)
            unlabelled = np.flatnonzero(found == UNKNOWN)
            if len(unlabelled):
                found = found.copy()
                found[unlabelled] = posterior(self.estimator_, matrix[unlabelled]).argmax(axis=1)
            self.transduction_ = self.classes_[found]
        self._warn_of_collapse(found, labels)
        return self

    def _warn_of_collapse(self, found: Array, given: Labels) -> None:
        """Tell of labels that were given to one class alone, or to few, as `NaiveBayes` does."""
        free, K = found[given.numbers == UNKNOWN], len(self.classes_)
        if len(free) < 2 * K:
            return
        shares, counts = np.bincount(free, minlength=K) / len(free), labels_by_class(given)
        if has_collapsed(shares, len(free), counts):
            largest = int(shares.argmax())
            warnings.warn(
                f"{shares[largest]:.0%} of the unlabelled items were given the label "
                f"{brief(self.classes_.tolist()[largest])}, which "
                f"{counts[largest] / counts.sum():.0%} of the labels are: self-training has "
                "collapsed. Try per_class, which labels so many of each class in a round, "
                "another classifier, or LabelPropagation",
                CollapseWarning,
                stacklevel=3,
            )

    def _check_settings(self) -> None:
        check_whole("max_rounds", self.max_rounds, 0, "0 learns from the given labels alone")
        if self.best is not None:
            check_whole("best", self.best, 1, "so many items are labelled in each round")
        ways = (self.threshold, self.per_class, self.best)
        if sum(way is not None for way in ways) > 1:
            raise LearnerError(
                "threshold, per_class and best are different ways to choose what is labelled",
                "give one of them, or none to label everything",
            )
        if self.threshold is not None and not 0.0 <= self.threshold < 1.0:
            raise LearnerError(
                f"threshold={brief(self.threshold)}: must be a probability below 1",
                "0.75 is scikit-learn's; 0.95 is cautious",
            )

    @interrupt.graceful()
    def _train(self, matrix: Any, given: Array) -> Array:
        """All rounds; returns each item's label as a number, −1 where it got none."""
        labels, seen = given, {_digest(given)}
        self._fit_to(matrix, labels)
        for number in range(self.max_rounds):
            after, confidence = self._round(matrix, given, labels)
            if np.array_equal(after, labels):
                self.verdict_ = Verdict.CONVERGED
                return labels
            if _digest(after) in seen:
                self.verdict_ = Verdict.CIRCLED
                return labels
            labels = after
            seen.add(_digest(labels))
            self.history_.record(labels, confidence, WHO)
            self._fit_to(matrix, labels)
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number + 1:,} rounds: the labels given by then are kept")
                return labels
        self.verdict_ = Verdict.OUT_OF_STEPS
        return labels

    @interrupt.whole()
    def _fit_to(self, matrix: Any, labels: Array) -> None:
        known = np.flatnonzero(labels != UNKNOWN)
        own = NaiveBayes(length=100) if self.classifier is None else own_copy(self.classifier)
        names = self.classes_[labels[known]]
        if "-1" in self.classes_.tolist():  # a class here, and no −1 that has become a text
            names = names.astype(object)
        self.estimator_ = own.fit(matrix[known], names)

    def _round(self, matrix: Any, given: Array, labels: Array) -> tuple[Array, Array]:
        """The labels after another round, and how sure the classifier is of each."""
        free = np.flatnonzero((labels if self.keep else given) == UNKNOWN)
        after, confidence = (labels if self.keep else given).copy(), np.ones(len(given))
        if len(free):
            shares = posterior(self.estimator_, matrix[free])
            chosen = self._chosen(free, shares, given)
            after[free[chosen]] = shares[chosen].argmax(axis=1)
            confidence[free] = shares.max(axis=1)
        return after, confidence

    def _chosen(self, free: Array, shares: Array, given: Array) -> Array:
        """Which rows of ``shares`` get their likeliest label."""
        sure = shares.max(axis=1)
        if self.threshold is not None:
            return np.flatnonzero(sure > self.threshold)
        if self.best is not None:
            return np.lexsort((free, -sure))[: self.best]
        if self.per_class is not None:
            quota = read_quota(self.per_class, self.classes_, given, 1)
            return most_confident(np.arange(len(free)), shares, quota).items
        return np.arange(len(free))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self)
        return posterior(self.estimator_, self._reader.read(X))

    def predict(self, X: Any) -> Array:
        """The likeliest class of each item."""
        shares = self.predict_proba(X)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        if self.classifier is None:
            tags.input_tags.positive_only = tags.classifier_tags.poor_score = True  # counts only
        else:
            tags.input_tags.positive_only = not takes_negative(self.classifier)
        return tags


def _digest(labels: Array) -> bytes:
    return hashlib.blake2b(labels.tobytes(), digest_size=16).digest()
