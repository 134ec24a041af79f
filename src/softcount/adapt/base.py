"""What all methods of adaptation share: items, labels and domains in, a classifier out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.explanation import Explanation, moved_words
from softcount.adapt.task import Task, read_domains, read_task
from softcount.bounds import demand_values
from softcount.errors import DataError
from softcount.estimate import Estimate, announce, of_rows
from softcount.kernels.blas import single_threaded
from softcount.models.learnable import all_or_nothing
from softcount.models.mixture.scoring import ScoresLabelled
from softcount.models.settings import check_whole
from softcount.types import Array
from softcount.weak import tfidf
from softcount.weak.confidence import own_copy, posterior
from softcount.weak.reader import Reader

USUAL_C = 3.0
"""Chosen by cross-validation within each domain of the product reviews, rows of length 1."""
MOST_STEPS = 1000


class Adapter(ScoresLabelled, BaseEstimator):  # type: ignore[misc]
    """A classifier for a target domain, learned mostly elsewhere.

    A subclass offers `learn` and `shares`, and `word_weights` if it is linear in the words.

    ``fit(X, y, sample_domain)``: X are texts, lists of words, a sparse matrix or an array; y is −1
    (or None) where a label is unknown; domains are numbers, sources from 1 up and targets from −1
    down. Without ``sample_domain``, items with a label are the source, the others the target.

    Afterwards: ``classes_``, ``domains_``, ``n_features_in_``; ``predict`` and ``predict_proba``
    speak of items of the target, unless they are told another ``sample_domain``.
    """

    # with metadata routing, domains are handed on unless somebody asks for something else
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012

    classifier: Any = None
    vectorizer: Any
    classes_: Array
    domains_: Array
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Learn from items of a source and a target."""
        with all_or_nothing(self), single_threaded():
            self.check_settings()
            name = type(self).__name__
            self._reader = Reader(self.vectorizer, name, tfidf.default_vectorizer)
            matrix = self._reader.learn(X)
            demand_values(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
            task = read_task(matrix, y, sample_domain)
            announce(self.foreseen(task), ())
            self.classes_, self.domains_ = task.classes, task.domains
            self.n_features_in_ = task.X.shape[1]
            self.learn(task)
            self._task = task
        return self

    def estimate(self, X: Any, y: Any, sample_domain: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a step. Nothing is learned."""
        self.check_settings()
        reader = Reader(self.vectorizer, type(self).__name__, tfidf.default_vectorizer)
        return self.foreseen(read_task(reader.learn(X), y, sample_domain))

    def foreseen(self, task: Task) -> Estimate:
        """What learning from these items will need."""
        return of_rows(task.X, len(task.classes))

    def check_settings(self) -> None:
        """Complain of settings that make no sense."""

    @abstractmethod
    def learn(self, task: Task) -> None:
        """Learn from these items."""

    @abstractmethod
    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item) for rows of a matrix, of these domains."""

    def predict_proba(self, X: Any, sample_domain: Any = None) -> Array:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        matrix = self._reader.read(X)
        demand_values(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
        given = self.home() if sample_domain is None else sample_domain
        domain = read_domains(given, matrix.shape[0])
        with single_threaded():
            return self.shares(matrix, domain)

    def predict(self, X: Any, sample_domain: Any = None) -> Array:
        """The likeliest class of each item."""
        shares = self.predict_proba(X, sample_domain)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def home(self) -> int:
        """The domain of items of which nothing else is said: the target, if there is just one."""
        targets = self.domains_[self.domains_ < 0]
        return int(targets[0]) if len(targets) == 1 else min(int(self.domains_.min()), 0) - 1

    # what subclasses learn with
    def trained(self, X: Any, task: Task, rows: Array, weight: Array | None = None) -> Any:
        """The classifier, trained on some items; X has a row for each of them."""
        own = usual_classifier() if self.classifier is None else own_copy(self.classifier)
        if weight is None:
            return own.fit(X, task.names(rows))
        return own.fit(X, task.names(rows), sample_weight=weight)

    def posterior(self, classifier: Any, X: Any) -> Array:
        """A classifier's shares with a column for each class, also those it has never seen."""
        found = posterior(classifier, X)
        if found.shape[1] == len(self.classes_):
            return found
        shares = np.zeros((len(found), len(self.classes_)))
        shares[:, np.searchsorted(self.classes_, classifier.classes_)] = found
        return shares

    # looking inside
    def feature_names(self) -> list[str]:
        """What the columns are called: words, or x0, x1, … where nobody said."""
        check_is_fitted(self, "classes_")
        return self._reader.feature_names()

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): how much a word speaks for each class in a domain; with two classes
        one row, for the second of them."""
        raise DataError(f"{type(self).__name__} has no weights of words", "it is not linear")

    def explain(self, n: int = 20, names: Sequence[str] | None = None) -> Explanation:
        """The n words whose weights have moved most, beside a classifier of the source alone.

        ``names``  what the columns of a matrix are called, from here on
        """
        check_is_fitted(self, "classes_")
        if names is not None:
            self._reader.call(names)
        names, after, task = self.feature_names(), self.word_weights(), self._task
        task.demand_source("explain")
        task.demand_target_items("explain")
        check_whole("n", n)
        with single_threaded():
            alone = self.trained(task.X[task.source], task, task.source)
        before = weights_in(alone, self.classes_)
        target = task.X[np.flatnonzero(task.in_target)]
        moved = moved_words(names, self.classes_, before, after, target, n)
        return Explanation(moved, self.correspondences(n))

    def correspondences(self, n: int = 10) -> list[tuple[str, list[tuple[str, float]]]]:
        """Words of the target, each with the nearest of the source and their cosines, where the
        method knows of any."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        return tags


def usual_classifier() -> Any:
    """Logistic regression, as strict as suits tf-idf of reviews."""
    return LogisticRegression(C=USUAL_C, max_iter=MOST_STEPS)


def beside(X: Any, new: Array) -> Any:
    """Words and new features, side by side.

    >>> beside(sparse.csr_matrix([[1.0, 0.0]]), np.array([[2.0]])).toarray()
    array([[1., 0., 2.]])
    """
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(new)], format="csr")
    return np.hstack([X, new])


def weights_in(classifier: Any, classes: Array) -> Array:
    """The weights of a linear classifier, a row for each of ``classes``; one row if these are two.

    A class that the classifier has never seen has the weights 0.
    """
    if not hasattr(classifier, "coef_"):
        raise DataError(
            f"{type(classifier).__name__} has no weights of words", "take a linear classifier"
        )
    found = classifier.coef_
    return by_class(classifier, found.toarray() if sparse.issparse(found) else found, classes)


def by_class(classifier: Any, found: Any, classes: Array) -> Array:
    """What a linear classifier has for each of its classes, as rows for ``classes``, of which it
    may never have seen some; one row, for the second, where there are two."""
    rows: Array = np.asarray(found, dtype=np.float64)
    own = len(classifier.classes_)
    if len(rows) == 1 < own - 1:  # no intercepts
        rows = np.repeat(rows, own, axis=0)
    # support vector machines of one class against one have a row for each pair
    if own > 2 and hasattr(classifier, "decision_function_shape"):
        raise DataError(
            f"{type(classifier).__name__} has weights for pairs of classes",
            "take a classifier that has some for each class, such as LogisticRegression()",
        )
    if own == len(classes):
        return rows
    if own == 2:
        rows = np.vstack([-rows, rows]) / 2.0
    weights = np.zeros((len(classes), rows.shape[1]))
    weights[np.searchsorted(classes, classifier.classes_)] = rows
    return weights
