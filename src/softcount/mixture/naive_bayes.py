"""Naive Bayes with few labels, and when its EM has collapsed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self, Unpack

import numpy as np
from numpy.random import Generator
from sklearn.model_selection import StratifiedKFold, check_cv

from softcount.core import interrupt, store
from softcount.core.errors import DataError, LearnerError
from softcount.core.estimator import FitOptions, all_or_nothing
from softcount.core.store import numbers
from softcount.core.types import Array, FloatArray, IntArray, Params
from softcount.core.warnings import is_later_fold
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import UNKNOWN, Items, Labels, read_labels
from softcount.mixture.documents import WordMixture
from softcount.mixture.model_selection import (
    ScoresLabelled,
    deal_folds,
    several_of_a_class,
    warn_of_unlabelled_fold,
)
from softcount.mixture.parameters import NaiveBayesCVParameters, NaiveBayesParameters
from softcount.mixture.starts import Start
from softcount.text.bags import Bags

SHRINKAGE = 4.0
"""It is a collapse if N − 1 shrinks to less than one in so many: see `has_collapsed`."""
CHANCE = 0.15
"""What happens more often than this where nothing is wrong is no collapse. Few unlabelled items
say little: that all of four are in one class while two labels are not has the probability 1/7."""


def has_collapsed(found: FloatArray, n_free: int, labels: FloatArray) -> bool:
    """Whether so few classes are left that something must be wrong.

    ``found``   the share of each class among the unlabelled items
    ``n_free``  how many these are
    ``labels``  how many labels each class has

    Classes are counted by their effective number N = exp(entropy). It is a collapse if N of what
    was found is below half of N of the labels. With few classes, or with some that are rare, that
    cannot be, for N is never below 1; so it is one, too, if N − 1 is below a quarter of that of the
    labels, unless it may be chance: labels are few, and so may be the items. If c of n labels are
    outside the class that was found most often, the share outside is Beta(c + 1, n − c + 1), and
    the number of items outside beta-binomial.

    >>> labels = np.array([5.0, 5.0])
    >>> has_collapsed(np.array([0.99, 0.01]), 100, labels)
    True
    >>> has_collapsed(np.array([0.9, 0.1]), 100, labels)
    False
    >>> has_collapsed(np.array([1.0, 0.0]), 100, np.array([99.0, 1.0]))
    False
    """
    ours, theirs = effective_number(found), effective_number(labels / labels.sum())
    if ours < theirs / 2.0:
        return True
    if ours - 1.0 >= (theirs - 1.0) / SHRINKAGE:
        return False
    from scipy.stats import betabinom  # slow to import, and seldom needed

    largest = int(found.argmax())
    n_outside = np.floor(n_free * (1.0 - found[largest]) + 1e-9)
    outside = labels.sum() - labels[largest]
    chance = betabinom.cdf(n_outside, n_free, outside + 1.0, labels[largest] + 1.0)
    return bool(chance < CHANCE)


def labels_by_class(labels: Labels) -> FloatArray:
    """How many labels each class has; items that share several classes count for each by shares."""
    counts = np.bincount(labels.numbers[labels.numbers != UNKNOWN], minlength=len(labels.classes))
    total = counts.astype(float)
    if labels.shares is not None:
        total += np.nansum(labels.shares, axis=0)
    return total


def effective_number(shares: FloatArray) -> float:
    """How many equally common classes would be as varied: exp of the entropy.

    >>> round(effective_number(np.array([0.5, 0.5, 0.0])), 12)
    2.0
    """
    some = shares[shares > 0.0]
    return float(np.exp(-np.sum(some * np.log(some))))


# Naive Bayes


class CollapseWarning(UserWarning):
    """Unlabelled documents were drawn into few of the classes: do not trust the result."""


class NaiveBayes(NaiveBayesParameters, ScoresLabelled, WordMixture):
    """Naive Bayes for documents with labels, with few labels, or several components a class.

    Labelled documents are kept to their class; the classes of the others are hidden, and are filled
    in by the learner (EM: Nigam, McCallum, Thrun & Mitchell 2000). With every label known this is
    the Naive Bayes of the textbooks.

    ``n_components``       hidden components of each class
    ``unlabelled_weight``  λ: what an unlabelled document counts beside a labelled one
    ``smoothing``          add so much to every count of a word in a class
    ``length``             stretch or shrink every document to so many words; None: as they are
    ``bernoulli``          look at whether a word occurs, not how often
    ``prior``, ``vectorizer``, ``learner``, ``engine``, ``random_state``  see `MultinomialMixture`

    Labels are −1 (or None) where unknown; a matrix of shares (items × classes) gives soft labels.
    Afterwards ``transduction_`` has a label for every document learned from.

    `NaiveBayesCV` chooses λ. For other settings take scikit-learn's `GridSearchCV`, with folds that
    test on labelled documents and learn from unlabelled ones every time:
    ``GridSearchCV(NaiveBayes(), settings, cv=SemiSupervisedKFold(5)).fit(X, y)``.

    >>> texts = ["good fine", "bad awful", "good good great", "awful bad dreadful"]
    >>> model = NaiveBayes().fit(texts, ["+", "-", None, None])
    >>> model.predict(["great", "dreadful"]).tolist()
    ['+', '-']
    """

    classes_: Array
    _core_name = "naive bayes"

    # learning
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from documents and what labels there are.

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(X, y, sample_weight)
            self._learn(core, corpus, init, **options)
        self._warn_of_collapse(corpus)
        return self

    def _bind(self, X: Any, y: Any = None, sample_weight: Any = None) -> tuple[MixtureCore, Items]:
        """The core and the corpus; unlabelled documents weigh λ."""
        self._check_settings()
        x = self.observe(X, first=True)
        labels = read_labels(y, len(x))
        warn_of_unlabelled_fold()
        weights = self._weights(sample_weight, x)
        weights = np.ones(len(x)) if weights is None else weights
        weights = weights * np.where(labels.known, 1.0, self._lambda)
        self.classes_ = labels.classes
        self._labels = labels
        core = self.make_core(x)
        return core, Items(x, labels.restrict(self.n_components, weights), core.emission.cut)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.length is not None and self.bernoulli:
            raise LearnerError(
                "a document has no length where words are there or not",
                "leave out length or bernoulli",
            )

    @property
    def _lambda(self) -> float:
        return self.unlabelled_weight

    @property
    def n_classes(self) -> int:
        return len(self.classes_) * self.n_components

    def observe(self, X: Any, *, first: bool) -> Bags:
        bags = super().observe(X, first=first)
        return bags if self.length is None else bags.scaled(self.length)

    def starts(self) -> Mapping[str, Start]:
        return {"labelled": self._start_from_labels}

    def _start_from_labels(self, core: MixtureCore, items: Items, rng: Generator) -> Params:
        """What the labelled documents say; those of one class dealt out among its components."""
        labels, m = self._labels, self.n_components
        by_class = np.zeros((len(items), len(labels.classes)))
        hard = np.flatnonzero(labels.numbers != UNKNOWN)
        by_class[hard, labels.numbers[hard]] = 1.0
        if labels.shares is not None:
            by_class += np.nan_to_num(labels.shares)
        responsibilities = np.repeat(by_class * items.known.weights[:, None], m, axis=1)
        if m > 1:
            parts = rng.dirichlet(np.ones(m), size=(len(items), len(labels.classes)))
            responsibilities *= parts.reshape(len(items), -1)
        return core.from_responsibilities(items.x, responsibilities, rng)

    def _after_fit(self, corpus: Items) -> None:
        super()._after_fit(corpus)
        self.n_iter_ = len(self.fit_.trace) - 1
        self.transduction_ = self.classes_[self._class_posteriors(corpus.x).argmax(axis=1)]
        known = self._labels.known
        self.transduction_[known] = self.classes_[self._labels.likeliest()[known]]

    def _warn_of_collapse(self, corpus: Items) -> None:
        """Compare how many classes the unlabelled documents use with how many were labelled."""
        free = ~self._labels.known & (corpus.known.weights > 0.0)
        if free.sum() < 2 * len(self.classes_):
            return
        found = self._class_posteriors(corpus.x.take(np.flatnonzero(free))).mean(axis=0)
        counts = labels_by_class(self._labels)
        if not has_collapsed(found, int(free.sum()), counts) or is_later_fold():
            return  # of a search's many fits one warns, and the last, to all data
        labelled, largest = counts / counts.sum(), int(found.argmax())
        name = self.classes_.tolist()[largest]
        # what outweighs few labels is smoothing times the number of words, then long documents
        scale = "" if self.length else ", documents of one length (length=100)"
        warnings.warn(
            f"{found[largest]:.0%} of the unlabelled documents were drawn into the class {name!r}, "
            f"which has {labelled[largest]:.0%} of the labels: EM has collapsed. "
            f"Try a smaller smoothing (now {self.smoothing:g}, for each of {self.n_features_in_} "
            f"words), fewer words (the vectorizer's min_df, max_df){scale}, or another "
            "unlabelled_weight: NaiveBayesCV chooses it by cross-validation",
            CollapseWarning,
            stacklevel=3,
        )

    # what it says of data
    def _class_posteriors(self, x: Any) -> FloatArray:
        """p(class | document): components added up."""
        components = self._posterior(x).reshape(len(x), len(self.classes_), -1)
        posteriors: FloatArray = components.sum(axis=2)
        return posteriors

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class for each document, in the order of ``classes_``."""
        return self._class_posteriors(self._seen(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The likeliest class of each document."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        classes: Array = self.classes_[likeliest]
        return classes

    def class_words(self) -> tuple[FloatArray, FloatArray]:
        """How common each class is, and p(word | class): its components taken together."""
        weights = self.weights_.reshape(len(self.classes_), -1)
        words = self.words_.reshape(*weights.shape, -1)
        total = weights.sum(axis=1)
        within = weights / np.where(total > 0.0, total, 1.0)[:, None]
        return total, np.einsum("cm,cmw->cw", within, words)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on points: these are no counts
        return tags

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = super().stored()
        kind = str(self.classes_.dtype)
        return arrays, {**facts, "classes": self.classes_.tolist(), "kind_of_classes": kind}

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        self.classes_ = read_classes(stored.meta["classes"], stored.meta["kind_of_classes"])
        self._check_settings()
        return super().recall(stored, given)


KINDS = {bool: "b", int: "iu", float: "f", str: "U"}
"""Which labels can be in which arrays."""


def read_classes(given: Any, kind: str) -> Array:
    """The classes that a file lists."""
    types = {type(label) for label in given} if isinstance(given, list) else set()
    if len(types) != 1 or np.dtype(kind).kind not in KINDS.get(types.pop(), ""):
        raise DataError("the classes are not a list of labels of one kind")
    classes: Array = np.array(given, dtype=kind)
    if classes.tolist() != given or not np.array_equal(np.unique(classes), classes):
        raise DataError("the classes are not in order, or some are the same")
    return classes


class NaiveBayesCV(NaiveBayesCVParameters, NaiveBayes):
    """`NaiveBayes` that chooses λ by cross-validation on what is labelled.

    ``unlabelled_weights``  values of λ to choose from
    ``cv``                  number of folds

    Each fold's labels are hidden in turn and the documents stay, unlabelled; the λ that predicts
    hidden labels best is taken (the largest among equals, but for differences within a standard
    error: unlabelled documents get the benefit of the doubt). Where some class has too few labels
    to hide one, ``unlabelled_weight`` is taken as it is. After `fit`: ``unlabelled_weight_``, and
    ``cv_scores_``, λ → mean accuracy.
    """

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
            accuracies = self._cross_validate(X, y, sample_weight)
            self.cv_scores_ = {weight: float(each.mean()) for weight, each in accuracies.items()}
            self.unlabelled_weight_ = self.unlabelled_weight
            if accuracies:
                best = max(accuracies, key=lambda weight: (self.cv_scores_[weight], weight))
                top, n = accuracies[best], len(accuracies[best])
                error = float(top.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
                least = self.cv_scores_[best] - error
                self.unlabelled_weight_ = max(
                    weight for weight, score in self.cv_scores_.items() if score >= least
                )
            return super().fit(X, y, sample_weight, init=init, **options)

    @property
    def _lambda(self) -> float:
        return getattr(self, "unlabelled_weight_", self.unlabelled_weight)

    def _cross_validate(self, X: Any, y: Any, sample_weight: Any) -> dict[float, FloatArray]:
        """How well each λ predicts hidden labels, split by split; nothing, if none can be hidden.

        Labels are hidden fold by fold; the only one of its class stays shown.
        """
        bags = self.observe(X, first=True)
        labels = read_labels(y, len(bags))
        weights = self._weights(sample_weight, bags)
        weights = np.ones(len(bags)) if weights is None else weights
        rows = several_of_a_class(labels.numbers)
        if labels.known.all() or not len(rows):
            return {}
        folds = self.cv
        if isinstance(folds, Integral):
            n = min(int(folds), np.bincount(labels.numbers[rows]).max())
            folds = StratifiedKFold(n, shuffle=True, random_state=self._seed())
        splits = deal_folds(rows, labels.numbers, check_cv(folds))
        accuracies: dict[float, FloatArray] = {}
        for weight in sorted(map(float, self.unlabelled_weights)):
            found = self._accuracies(weight, bags, labels, weights, splits)
            if interrupt.asked():  # its fits were cut short: choose among those before it
                break
            if not len(found):  # nothing labelled has weight
                return {}
            accuracies[weight] = found
        return accuracies

    def _accuracies(
        self, weight: float, bags: Bags, labels: Labels, weights: FloatArray, splits: list[IntArray]
    ) -> FloatArray:
        """How well λ = ``weight`` predicts hidden labels, split by split."""
        # folds learn from counts that are ready to use
        here = ("unlabelled_weights", "cv", "vectorizer", "length", "init")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in here}
        model = NaiveBayes(**{**settings, "unlabelled_weight": weight})
        found = []
        for hidden in splits:
            shown = labels.numbers.copy()
            shown[hidden] = UNKNOWN
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CollapseWarning)
                model.fit(bags.matrix, shown, weights)
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
