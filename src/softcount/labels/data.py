"""Labels, classifiers and readers shared by the semi-supervised learners."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

from softcount.core.bounds import within_range
from softcount.core.contract import Transformer, as_configured, require_fitted
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.labels.history import History
from softcount.mixture.data import Labels, read_labels
from softcount.mixture.labelled_scores import ScoresLabelled
from softcount.text.documents import (
    copy_vectorizer,
    count_words,
    default_vectorizer,
    find_texts,
    learn_words,
    vocabulary_of,
)

if TYPE_CHECKING:  # its import takes longer than many fits
    from sklearn.pipeline import Pipeline


class SemiSupervisedClassifier(ScoresLabelled):
    """Base of the semi-supervised learners.

    After ``fit``, ``transduction_`` has a label for every training item, and ``history_`` records
    in which round, and by which view, each was labelled.
    """

    classes_: Array
    transduction_: Array  # (items,)
    history_: History

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for each item, in the order of ``classes_``."""

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each item."""
        posteriors = self.predict_proba(X)  # first, because it raises if the model is not fitted
        chosen: Array = self.classes_[posteriors.argmax(axis=1)]
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def hard_labels(y: Any, n_items: int) -> Labels:
    """Read hard labels of at least two classes; −1 or None means unknown.

    >>> hard_labels(["b", None, "a"], 3).numbers
    array([ 1, -1,  0])
    """
    labels = read_labels(y, n_items)
    if labels.soft_labels is not None:
        raise DataError(
            "labels are distributions over classes", "give one class for each item, or -1"
        )
    if len(labels.classes) < 2:
        raise DataError(
            f"there is only one class: {brief(labels.classes.tolist()[0])}",
            "label some items of at least two classes",
        )
    return labels


def posterior(classifier: Any, X: Any) -> FloatArray:
    """Compute p(class | item) with any scikit-learn classifier, a column per class.

    This is ``predict_proba`` if there is one. If not, it is the softmax of ``decision_function``,
    or for two classes its logistic: ranked correctly and between 0 and 1, but not calibrated.
    """
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X), dtype=np.float64)
    scores = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        second = expit(scores)
        return np.column_stack([1.0 - second, second])
    return np.asarray(softmax(scores, axis=1))


def clone_classifier(classifier: Any) -> Any:
    """Return an unfitted copy of a classifier; raise if it has neither probabilities nor scores."""
    if not hasattr(classifier, "fit") or isinstance(classifier, type):
        raise LearnerError(
            f"classifier={brief(classifier)} is not a classifier",
            "give a scikit-learn classifier, such as LogisticRegression()",
        )
    if not hasattr(classifier, "predict_proba") and not hasattr(classifier, "decision_function"):
        raise LearnerError(
            f"{brief(classifier)} has no measure of confidence",
            "give a classifier with predict_proba or decision_function",
        )
    from sklearn.base import clone

    return clone(classifier)


def log_posteriors(posteriors: FloatArray) -> FloatArray:
    """Compute logarithms with a floor, so that a zero of one classifier can be outvoted."""
    return np.log(np.maximum(posteriors, np.finfo(np.float64).tiny))


def takes_negative(classifier: Any) -> bool:
    """Return whether a classifier accepts negative input, according to its tags."""
    if not hasattr(classifier, "__sklearn_tags__"):
        return True
    from sklearn.utils import get_tags

    return not get_tags(classifier).input_tags.positive_only


class KnownWords(Transformer):
    """Keep the words seen in training, and scale long items down to a total of ``longest``.

    Both prevent overconfidence of Naive Bayes. It treats every word as independent evidence, and is
    therefore far too confident on long texts; short ones are not scaled up, because that would make
    three words count as much as fifty. And an unseen word would be evidence for the class that has
    the fewest words.

    >>> words = KnownWords(longest=4).fit(np.array([[1.0, 0.0, 2.0]]))
    >>> words.transform(np.array([[1.0, 9.0, 0.0], [6.0, 0.0, 2.0]]))
    array([[1., 0.],
           [3., 1.]])
    """

    columns_: IntArray

    def __init__(self, longest: float = 50.0) -> None:
        self.longest = longest

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which words occur; all columns are kept if none does."""
        totals = np.asarray((X != 0).sum(axis=0)).ravel()
        self.columns_ = np.flatnonzero(totals) if totals.any() else np.arange(X.shape[1])
        return self

    @as_configured
    def transform(self, X: Any) -> Any:
        """Return the counts of the known words, scaled down for long items."""
        require_fitted(self)
        known = X[:, self.columns_]
        lengths = np.asarray(known.sum(axis=1)).ravel()
        factors = np.minimum(self.longest / np.maximum(lengths, 1.0), 1.0)
        if sparse.issparse(known):
            return sparse.csr_matrix(sparse.diags(factors) @ known)
        return known * factors[:, None]


def few_labels_bayes() -> Pipeline:
    """Make the default classifier of views: Naive Bayes over words, with the settings that worked
    best with few labels."""
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import Pipeline

    return Pipeline([("words", KnownWords()), ("bayes", MultinomialNB(alpha=0.1))])


class Reader:
    """Converts texts or matrices into feature matrices.

    ``vectorizer``  turns texts into rows; None: the one that ``default`` makes for them
    ``owner``       the name of the estimator in error messages
    ``default``     function from texts to a vectorizer

    Unlike for models of words, features may be any real numbers, if the classifier accepts them.

    >>> reader = Reader()
    >>> reader.learn(["good film", "bad film"]).shape
    (2, 3)
    >>> reader.read(["a good good film"]).sum()
    np.float64(3.0)
    """

    def __init__(
        self,
        vectorizer: Any = None,
        owner: str = "it",
        default: Callable[[Sequence[Any]], Any] = default_vectorizer,
    ) -> None:
        self._given = vectorizer
        self._default = default
        self._owner = owner
        self.vectorizer: Any = None
        self.n_columns = 0
        self._names: list[Any] | None = None
        self._assigned: Sequence[Any] | None = None

    def learn(self, X: Any) -> Any:
        """Return the matrix of the training items, and remember its words or columns."""
        texts = _find_texts(X)
        if texts is not None:
            self.vectorizer = copy_vectorizer(self._given, texts, self._default)
            X = learn_words(self.vectorizer, texts)
        matrix = _check_matrix(X)
        self.n_columns, self._names = matrix.shape[1], _column_names(X)
        return matrix

    def read(self, X: Any) -> Any:
        """Return the matrix of new items, with the columns of the training items."""
        texts = _find_texts(X)
        if texts is not None:
            if self.vectorizer is None:
                raise DataError(
                    "the model was fitted to numbers, but these are texts",
                    "pass numbers in the same columns, or fit it to texts",
                )
            X = count_words(self.vectorizer, texts)
        names = _column_names(X)
        if self._names is not None and names is not None and self._names != names:
            raise DataError(
                "The feature names should match those that were passed during fit",
                "give the same columns as in fit, in the same order",
            )
        matrix = _check_matrix(X)
        if matrix.shape[1] != self.n_columns:
            raise DataError(
                f"X has {matrix.shape[1]} features, but {self._owner} is expecting "
                f"{self.n_columns} features as input",
                "give the same columns as in fit",
            )
        return matrix

    def feature_names(self) -> list[str]:
        """Return the names of the columns: words, names in a data frame, or x0, x1, …"""
        names = self._assigned if self._assigned is not None else self._names
        if names is None and self.vectorizer is not None:
            names = vocabulary_of(self.vectorizer)
        if names is None:
            names = [f"x{number}" for number in range(self.n_columns)]
        return list(map(str, names))

    def call(self, names: Sequence[Any]) -> None:
        """Assign names to the columns of a matrix."""
        if len(names) != self.n_columns:
            raise DataError(
                f"{len(names):,} names for {self.n_columns:,} columns", "give one for each column"
            )
        self._assigned = names


def _find_texts(X: Any) -> list[Any] | None:
    """Return the items if they are texts or lists of words; None if they are numbers."""
    return None if getattr(X, "ndim", 1) == 2 else find_texts(X)


def _column_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None if X is not one."""
    return list(X.columns) if hasattr(X, "columns") else None


def _check_matrix(X: Any) -> Any:
    from sklearn.utils import check_array

    with within_range("the data"):
        return check_array(X, accept_sparse="csr", dtype=np.float64)


def indicator_matrix(matrix: Any) -> Any:
    """Return the sparse indicator matrix of the entries that are not zero."""
    present = sparse.csr_matrix(matrix != 0, dtype=np.float64)
    present.eliminate_zeros()
    return present
