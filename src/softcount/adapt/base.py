"""What methods of adaptation share: items, labels and domains in, a classifier out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.data import Task, read_domains, read_task
from softcount.core.bounds import demand_values
from softcount.core.errors import DataError
from softcount.core.estimate import Estimate, announce, of_rows
from softcount.core.estimator import SklearnContract, all_or_nothing
from softcount.core.parameters import check_parameters, check_whole
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.threads import single_threaded
from softcount.labels import propagation as tfidf
from softcount.labels.data import Reader, own_copy, posterior
from softcount.mixture.model_selection import ScoresLabelled

DEFAULT_C = 3.0
"""Chosen by cross-validation within each domain of the product reviews, rows of length 1."""
MAX_ITER = 1000
ROWS = 1000
"""So many rows are projected at a time where only their classes are wanted."""


class Adapter(ScoresLabelled, SklearnContract, BaseEstimator):  # type: ignore[misc]
    """A classifier for a target domain, learned mostly elsewhere.

    A subclass offers `_learn`, and `_represent`, `_posteriors` and `word_weights` unless it has one
    linear classifier of the words, ``classifier_``.

    ``fit(X, y, sample_domain)``: X are texts, lists of words, a sparse matrix or an array; y is −1
    (or None) where a label is unknown; domains are numbers, sources from 1 up and targets from −1
    down. Without ``sample_domain``, items with a label are the source, the others the target.

    Afterwards: ``classes_``, ``domains_``, ``n_features_in_``; ``predict`` and ``predict_proba``
    speak of items of the target, unless another ``sample_domain`` is given.
    """

    # with metadata routing, domains are handed on unless somebody asks for something else
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012

    _needs: ClassVar[tuple[str, ...]] = ()
    """What there must be to learn from: see `Task.require`."""
    classifier: Any = None
    vectorizer: Any = None
    classifier_: Any
    classes_: Array
    domains_: IntArray
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Learn from items of a source and a target."""
        with all_or_nothing(self), single_threaded():
            self._check_settings()
            self._reader = self._make_reader()
            matrix = _check_values(self._reader.learn(X))
            task = read_task(matrix, y, sample_domain)
            announce(self._estimate(task), ())
            self.classes_, self.domains_ = task.classes, np.unique(task.domain)
            self.n_features_in_ = matrix.shape[1]
            task.require(type(self).__name__, *self._needs)
            self._learn(task)
            self._task = task
        return self

    def estimate(self, X: Any, y: Any, sample_domain: Any = None) -> Estimate:
        """Estimate what `fit` will need: bytes, and work for each step. Nothing is learned."""
        self._check_settings()
        return self._estimate(read_task(self._make_reader().learn(X), y, sample_domain))

    def predict_proba(self, X: Any, sample_domain: Any = None) -> FloatArray:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        matrix = _check_values(self._reader.read(X))
        given = self._default_domain() if sample_domain is None else sample_domain
        domain = read_domains(given, matrix.shape[0])
        with single_threaded():
            return self._posteriors(matrix, domain)

    def predict(self, X: Any, sample_domain: Any = None) -> Array:
        """The likeliest class of each item."""
        posteriors = self.predict_proba(X, sample_domain)  # first: it raises if nothing is fitted
        return np.asarray(self.classes_[posteriors.argmax(axis=1)])

    # what subclasses say
    @abstractmethod
    def _learn(self, task: Task) -> None:
        """Learn from these items."""

    def _represent(self, X: Any, domain: IntArray) -> Any:
        """What the classifier sees of rows of a matrix, of these domains."""
        return X

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """p(class | item) for rows of a matrix, of these domains."""
        return self._classify(self.classifier_, self._represent(X, domain))

    def _estimate(self, task: Task) -> Estimate:
        """What learning from these items will need."""
        return of_rows(task.X, len(task.classes))

    def _check_settings(self) -> None:
        """Raise if a parameter makes no sense."""
        check_parameters(self)

    # what subclasses learn with
    def _make_reader(self) -> Reader:
        return Reader(self.vectorizer, type(self).__name__, tfidf.default_vectorizer)

    def _default_domain(self) -> int:
        """The domain of items if none is given: the target, if there is just one."""
        targets = self.domains_[self.domains_ < 0]
        return int(targets[0]) if len(targets) == 1 else min(int(self.domains_.min()), 0) - 1

    def _train_classifier(
        self, task: Task, rows: IntArray, X: Any = None, weight: FloatArray | None = None
    ) -> Any:
        """Train a copy of the classifier on some items; X: a row for each of them, if not that of
        the task."""
        own = make_classifier() if self.classifier is None else own_copy(self.classifier)
        weights = {} if weight is None else {"sample_weight": weight}
        return own.fit(task.X[rows] if X is None else X, task.labels(rows), **weights)

    def _classify(self, classifier: Any, X: Any) -> FloatArray:
        """Compute a classifier's posteriors, with a column also for classes it has never seen."""
        own = posterior(classifier, X)
        if own.shape[1] == len(self.classes_):
            return own
        posteriors = np.zeros((len(own), len(self.classes_)))
        posteriors[:, np.searchsorted(self.classes_, classifier.classes_)] = own
        return posteriors

    # looking inside
    def feature_names(self) -> list[str]:
        """What the columns are called: words, or x0, x1, … if they have no names."""
        check_is_fitted(self, "classes_")
        return self._reader.feature_names()

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): how much a word speaks for each class in a domain; with two classes
        one row, for the second of them."""
        return class_weights(self.classifier_, self.classes_)

    def explain(self, n: int = 20, names: Sequence[str] | None = None) -> Explanation:
        """Find the n words whose weights have moved most, beside a classifier of the source alone.

        ``names``  what the columns of a matrix are called, from here on
        """
        check_is_fitted(self, "classes_")
        if names is not None:
            self._reader.call(names)
        names, after, task = self.feature_names(), self.word_weights(), self._task
        task.require("explain", "source", "both")
        check_whole("n", n)
        with single_threaded():
            alone = self._train_classifier(task, task.source)
        before = class_weights(alone, self.classes_)
        target = task.X[np.flatnonzero(task.in_target)]
        moved = find_moved_words(names, self.classes_, before, after, target, n)
        return Explanation(moved, self.correspondences(n))

    def correspondences(self, n: int = 10) -> list[tuple[str, list[tuple[str, float]]]]:
        """Words of the target, each with the nearest of the source and their cosines, where the
        method knows of any."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        return tags


class Projection(TransformerMixin, Adapter):  # type: ignore[misc]
    """A classifier of words, and of features that mean the same in both domains: these are found
    in all items, with labels or without, and put beside the words.

    A subclass offers `_compute_features`, and `_fit_features`, which also sets their ``_mean`` and
    the ``_factor`` by which they are multiplied, so that they suit the words beside them.
    """

    _mean: FloatArray
    _factor: FloatArray | float

    _needs = ("source", "both")

    def _learn(self, task: Task) -> None:
        """Find the features in all items, then train the classifier on all that have labels."""
        self._fit_features(task)
        rows = task.labelled
        X = self._represent(task.X[rows], task.domain[rows])
        self.classifier_ = self._train_classifier(task, rows, X)

    @abstractmethod
    def _fit_features(self, task: Task) -> None:
        """Learn the projection from the items of all domains."""

    @abstractmethod
    def _compute_features(self, X: Any) -> FloatArray:
        """The new features of rows of a matrix."""

    def _represent(self, X: Any, domain: IntArray | None = None) -> Any:
        new = self._compute_features(X)
        new -= self._mean
        new *= self._factor
        return stack_columns(X, new)

    def transform(self, X: Any) -> Any:
        """Items as the classifier sees them: their words, and the features found."""
        check_is_fitted(self, "classes_")
        with single_threaded():
            return self._represent(self._reader.read(X))

    def _split_weights(self) -> tuple[FloatArray, FloatArray]:
        """The classifier's weights of words, and of the new features."""
        check_is_fitted(self, "classes_")
        weights = class_weights(self.classifier_, self.classes_)
        words, new = np.split(weights, [self.n_features_in_], axis=1)
        return words, new

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        starts = range(0, X.shape[0], ROWS)  # new features are dense: some rows at a time
        predict = super()._posteriors
        return np.vstack([predict(X[n : n + ROWS], domain[n : n + ROWS]) for n in starts])


def make_classifier() -> Any:
    """Make a logistic regression, as strict as suits tf-idf of reviews."""
    return LogisticRegression(C=DEFAULT_C, max_iter=MAX_ITER)


def _check_values(matrix: Any) -> Any:
    demand_values(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
    return matrix


def stack_columns(X: Any, new: FloatArray) -> Any:
    """Put words and new features side by side.

    >>> stack_columns(sparse.csr_matrix([[1.0, 0.0]]), np.array([[2.0]])).toarray()
    array([[1., 0., 2.]])
    """
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(new)], format="csr")
    return np.hstack([X, new])


def class_weights(classifier: Any, classes: Array) -> FloatArray:
    """Find the weights of a linear classifier, a row for each of ``classes``; one if these are two.

    A class that the classifier has never seen has the weights 0.
    """
    if not hasattr(classifier, "coef_"):
        raise DataError(
            f"{type(classifier).__name__} has no weights of words", "take a linear classifier"
        )
    coef = classifier.coef_
    return expand_classes(classifier, coef.toarray() if sparse.issparse(coef) else coef, classes)


def expand_classes(classifier: Any, values: Any, classes: Array) -> FloatArray:
    """What a linear classifier has for each of its classes, as rows for ``classes``, of which it
    may never have seen some; one row, for the second, where there are two."""
    rows = np.asarray(values, dtype=np.float64)
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


class MovedWord(NamedTuple):
    """A word, and how much it speaks for a label: in the source alone, and in the target now, both
    on the target's scale.

    ``share`` is that of the target's items that have it.
    """

    word: str
    label: Any
    source: float
    target: float
    share: float

    @property
    def moved(self) -> float:
        """How far its weight has moved."""
        return self.target - self.source


@dataclass(frozen=True)
class Explanation:
    """What `explain` of a method finds; a table when printed.

    ``moved``            words, those that change most in the target first
    ``correspondences``  (word of the target, its nearest words of the source, with cosines), where
                         the method knows any
    """

    moved: Sequence[MovedWord]
    correspondences: Sequence[tuple[str, Sequence[tuple[str, float]]]] = ()

    def __str__(self) -> str:
        wide = max([len(each.word) for each in self.moved] + [4])
        lines = [f"{'word':{wide}}  {'source':>7}  {'target':>7}  {'moved':>7}  in target  for"]
        lines += [
            f"{each.word:{wide}}  {each.source:7.2f}  {each.target:7.2f}  {each.moved:+7.2f}  "
            f"{each.share:9.1%}  {each.label}"
            for each in self.moved
        ]
        if self.correspondences:
            lines += ["", "words of the target, and those of the source that are nearest"]
            lines += [
                f"{word}: {', '.join(f'{near} {cosine:.2f}' for near, cosine in nearest)}"
                for word, nearest in self.correspondences
            ]
        return "\n".join(lines)


def find_moved_words(
    names: Sequence[str],
    classes: Array,
    before: FloatArray,
    after: FloatArray,
    target: Any,
    n: int,
) -> list[MovedWord]:
    """Find the n words that change scores in the target most.

    ``before`` and ``after`` are weights, (classes, words), or one row for the second of two
    classes. Decisions do not change if all weights grow or shrink alike, so the former are scaled
    to the length of the latter first. A word counts by |after − before| times its root mean square
    among the target's items: one that never occurs there changes nothing.

    >>> before, after = np.array([[1.0, 0.0, 1.0]]), np.array([[2.0, 0.0, -2.0]])
    >>> find_moved_words(["a", "b", "c"], np.array([0, 1]), before, after, np.ones((1, 3)), 3)
    [MovedWord(word='c', label=1, source=2.0, target=-2.0, share=1.0)]
    """
    labels = classes[1:] if len(before) == 1 else classes
    matrix = sparse.csr_matrix(target)
    squares = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    length_before, length_after = (float(np.sum(w**2 * squares)) for w in (before, after))
    before = before * (float(np.sqrt(length_after / length_before)) if length_before > 0.0 else 1.0)
    counts = np.bincount(matrix.indices[matrix.data != 0.0], minlength=matrix.shape[1])
    effect = np.abs(after - before) * np.sqrt(squares)
    largest = np.argsort(-effect, axis=None, kind="stable")[:n]
    return [
        MovedWord(
            names[column],
            labels[row].item(),
            float(before[row, column]),
            float(after[row, column]),
            float(counts[column] / matrix.shape[0]),
        )
        for row, column in zip(*np.unravel_index(largest, effect.shape), strict=True)
        if effect[row, column] > 0.0
    ]
