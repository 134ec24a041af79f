"""Base classes of the domain-adaptation methods, and the weights of words that they explain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.data import SOURCE, TARGET, Task, read_domains, read_task
from softcount.core.bounds import check_coordinates
from softcount.core.contract import Transformer, as_configured
from softcount.core.errors import DataError
from softcount.core.estimate import Estimate, announce, estimate_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters, check_whole
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.threads import single_threaded
from softcount.labels import propagation as tfidf
from softcount.labels.data import Reader, clone_classifier, posterior
from softcount.mixture.data import UNKNOWN, Labels
from softcount.mixture.labelled_scores import ScoresLabelled

DEFAULT_C = 3.0
"""Default C of logistic regression, chosen by cross-validation within each domain of the product
reviews, for rows of norm 1."""
MAX_ITER = 1000
ROWS = 1000
"""Number of rows projected at a time in prediction."""


class Adapter(ScoresLabelled):
    """Base of classifiers for a target domain that learn mostly from source domains.

    A subclass implements `_learn`, and also `_represent`, `_posteriors` and `word_weights` unless
    it has a single linear classifier of the words, ``classifier_``.

    ``fit(X, y, sample_domain)``: X are texts, lists of words, a sparse matrix or an array; y is −1
    or None if a label is unknown; domains are numbers, sources 1, 2, … and targets −1, −2, ….
    Without ``sample_domain``, labelled items are the source and unlabelled ones the target.

    Attributes after ``fit``: ``classes_``, ``domains_``, ``n_features_in_``. ``predict`` and
    ``predict_proba`` assume items of the target, unless ``sample_domain`` is given.
    """

    # with metadata routing, domains are passed on by default
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012

    _needs: ClassVar[tuple[str, ...]] = ()
    """Required training data: see `Task.require`."""
    classifier: Any = None
    vectorizer: Any = None
    classifier_: Any
    classes_: Array
    domains_: IntArray
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Fit to items of sources and a target."""
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
        """Estimate the memory that `fit` will need, and its work per step, without fitting."""
        self._check_settings()
        return self._estimate(read_task(self._make_reader().learn(X), y, sample_domain))

    def predict_proba(self, X: Any, sample_domain: Any = None) -> FloatArray:
        """Return the probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        matrix = _check_values(self._reader.read(X))
        given = self._default_domain() if sample_domain is None else sample_domain
        domain = read_domains(given, matrix.shape[0])
        with single_threaded():
            return self._posteriors(matrix, domain)

    def predict(self, X: Any, sample_domain: Any = None) -> Array:
        """Return the most probable class of each item."""
        posteriors = self.predict_proba(X, sample_domain)  # first: it raises if not fitted
        return np.asarray(self.classes_[posteriors.argmax(axis=1)])

    def _describe_asked(self, labels: Labels, more: Any) -> dict[str, Any]:
        # a hidden label must not change the domain of its item
        given = more.get("sample_domain")
        by_label = np.where(labels.numbers == UNKNOWN, TARGET, SOURCE)
        return {"sample_domain": by_label if given is None else given}

    # to be overridden by subclasses
    @abstractmethod
    def _learn(self, task: Task) -> None:
        """Fit to these items."""

    def _represent(self, X: Any, domain: IntArray) -> Any:
        """Return the features given to the classifier, for rows X of these domains."""
        return X

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        """Compute p(class | item) for rows X of these domains."""
        return self._classify(self.classifier_, self._represent(X, domain))

    def _estimate(self, task: Task) -> Estimate:
        """Estimate the cost of fitting to these items."""
        return estimate_rows(task.X, len(task.classes))

    def _check_settings(self) -> None:
        """Raise if a parameter is invalid."""
        check_parameters(self)

    # helpers for subclasses
    def _make_reader(self) -> Reader:
        return Reader(self.vectorizer, type(self).__name__, tfidf.default_vectorizer)

    def _default_domain(self) -> int:
        """Return the default domain in prediction: the target, if there is only one, else an unseen
        domain."""
        targets = self.domains_[self.domains_ < 0]
        return int(targets[0]) if len(targets) == 1 else min(int(self.domains_.min()), 0) - 1

    def _train_classifier(
        self, task: Task, rows: IntArray, X: Any = None, weight: FloatArray | None = None
    ) -> Any:
        """Train a copy of the classifier on some items.

        ``rows``    the numbers of the items
        ``X``       their features; None: the rows of the task
        ``weight``  sample weights; None: all equal
        """
        given = self.classifier
        classifier = make_classifier() if given is None else clone_classifier(given)
        weights = {} if weight is None else {"sample_weight": weight}
        return classifier.fit(task.X[rows] if X is None else X, task.labels(rows), **weights)

    def _classify(self, classifier: Any, X: Any) -> FloatArray:
        """Compute a classifier's posteriors; classes that it has never seen have probability 0."""
        seen = posterior(classifier, X)
        if seen.shape[1] == len(self.classes_):
            return seen
        posteriors = np.zeros((len(seen), len(self.classes_)))
        posteriors[:, np.searchsorted(self.classes_, classifier.classes_)] = seen
        return posteriors

    # inspection
    def feature_names(self) -> list[str]:
        """Return the names of the columns: words, or x0, x1, … if they have no names."""
        check_is_fitted(self, "classes_")
        return self._reader.feature_names()

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return the weights of words for each class in a domain, (classes, columns); with two
        classes there is one row, for the second class."""
        return class_weights(self.classifier_, self.classes_)

    def explain(self, n: int = 20, names: Sequence[str] | None = None) -> Explanation:
        """Find the n words whose weights differ most from those of a source-only classifier.

        ``names``  names to assign to the columns of a matrix
        """
        check_is_fitted(self, "classes_")
        if names is not None:
            self._reader.call(names)
        names, after, task = self.feature_names(), self.word_weights(), self._task
        task.require("explain", "source", "both")
        check_whole("n", n)
        with single_threaded():
            source_only = self._train_classifier(task, task.source)
        before = class_weights(source_only, self.classes_)
        target = task.X[np.flatnonzero(task.in_target)]
        moved = find_moved_words(names, self.classes_, before, after, target, n)
        return Explanation(moved, self.correspondences(n))

    def correspondences(self, n: int = 10) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return target words, each with the nearest source words and their cosines, if the method
        finds any."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        return tags


class Projection(Transformer, Adapter):
    """Base of methods that classify by words and by domain-invariant features: these are learned
    from all items, labelled or not, and appended to the words.

    A subclass implements `_compute_features`, and `_fit_features`, which also sets ``_mean`` and
    ``_factor``: the new features are centred and multiplied, so that their scale suits the words.
    """

    _mixins = ("ClassifierMixin", "TransformerMixin")
    _mean: FloatArray
    _factor: FloatArray | float

    _needs = ("source", "both")

    def _learn(self, task: Task) -> None:
        """Learn the features from all items, then train the classifier on the labelled ones."""
        self._fit_features(task)
        rows = task.labelled
        X = self._represent(task.X[rows], task.domain[rows])
        self.classifier_ = self._train_classifier(task, rows, X)

    @abstractmethod
    def _fit_features(self, task: Task) -> None:
        """Learn the projection from the items of all domains."""

    @abstractmethod
    def _compute_features(self, X: Any) -> FloatArray:
        """Compute the new features of rows of a matrix."""

    def _represent(self, X: Any, domain: IntArray | None = None) -> Any:
        new = self._compute_features(X)
        new -= self._mean
        new *= self._factor
        return stack_columns(X, new)

    @as_configured
    def transform(self, X: Any) -> Any:
        """Return the features given to the classifier: words, and the new features."""
        check_is_fitted(self, "classes_")
        with single_threaded():
            return self._represent(self._reader.read(X))

    def _split_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return the classifier's weights of words, and of the new features."""
        check_is_fitted(self, "classes_")
        weights = class_weights(self.classifier_, self.classes_)
        words, new = np.split(weights, [self.n_features_in_], axis=1)
        return words, new

    def _posteriors(self, X: Any, domain: IntArray) -> FloatArray:
        starts = range(0, X.shape[0], ROWS)  # in blocks, because the new features are dense
        predict = super()._posteriors
        return np.vstack([predict(X[n : n + ROWS], domain[n : n + ROWS]) for n in starts])


def make_classifier() -> Any:
    """Make the default classifier: logistic regression, regularised to suit tf-idf of reviews."""
    return LogisticRegression(C=DEFAULT_C, max_iter=MAX_ITER)


def _check_values(matrix: Any) -> Any:
    check_coordinates(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
    return matrix


def stack_columns(X: Any, new: FloatArray) -> Any:
    """Append new features to words.

    >>> stack_columns(sparse.csr_matrix([[1.0, 0.0]]), np.array([[2.0]])).toarray()
    array([[1., 0., 2.]])
    """
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(new)], format="csr")
    return np.hstack([X, new])


def class_weights(classifier: Any, classes: Array) -> FloatArray:
    """Return the weights of a linear classifier, a row per class; a single row for two classes.

    The weights of classes that the classifier has never seen are 0.
    """
    if not hasattr(classifier, "coef_"):
        raise DataError(
            f"{type(classifier).__name__} has no weights of words", "use a linear classifier"
        )
    coef = classifier.coef_
    return expand_classes(classifier, coef.toarray() if sparse.issparse(coef) else coef, classes)


def expand_classes(classifier: Any, values: Any, classes: Array) -> FloatArray:
    """Expand the values of a linear classifier per class to rows for all ``classes``, some of which
    it may never have seen; with two classes there is one row, for the second."""
    rows = np.asarray(values, dtype=np.float64)
    n_seen = len(classifier.classes_)
    if len(rows) == 1 < n_seen - 1:  # a classifier without intercepts
        rows = np.repeat(rows, n_seen, axis=0)
    # one-against-one support vector machines have a row for each pair of classes
    if n_seen > 2 and hasattr(classifier, "decision_function_shape"):
        raise DataError(
            f"{type(classifier).__name__} has weights for pairs of classes",
            "use a classifier with weights for each class, such as LogisticRegression()",
        )
    if n_seen == len(classes):
        return rows
    if n_seen == 2:
        rows = np.vstack([-rows, rows]) / 2.0
    weights = np.zeros((len(classes), rows.shape[1]))
    weights[np.searchsorted(classes, classifier.classes_)] = rows
    return weights


class MovedWord(NamedTuple):
    """A word and its weight for a label, in a source-only classifier and in the adapted one, both
    on the scale of the latter.

    ``share`` is the proportion of the target's items that have the word.
    """

    word: str
    label: Any
    source: float
    target: float
    share: float

    @property
    def moved(self) -> float:
        """Change of the weight."""
        return self.target - self.source


@dataclass(frozen=True)
class Explanation:
    """Result of `Adapter.explain`; a table when printed.

    ``moved``            words, those that change scores in the target most first
    ``correspondences``  (target word, its nearest source words with cosines), if the method finds
                         any
    """

    moved: Sequence[MovedWord]
    correspondences: Sequence[tuple[str, Sequence[tuple[str, float]]]] = ()

    def __str__(self) -> str:
        width = max([len(each.word) for each in self.moved] + [4])
        lines = [f"{'word':{width}}  {'source':>7}  {'target':>7}  {'moved':>7}  in target  for"]
        lines += [
            f"{each.word:{width}}  {each.source:7.2f}  {each.target:7.2f}  {each.moved:+7.2f}  "
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
    classes. Decisions do not change if all weights are multiplied by a constant, so the former are
    first scaled to the norm of the latter. The effect of a word is |after − before| times its root
    mean square in the target's items: a word that never occurs there has none.

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
