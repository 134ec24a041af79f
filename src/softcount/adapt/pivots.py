"""Pivots: words of both domains, by which words of only one of them find their like."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.base import weights_in
from softcount.adapt.pivot_predictors import JointRidge, logistic, main_directions
from softcount.adapt.projection import Projection
from softcount.adapt.task import Task
from softcount.errors import DataError, LearnerError, shown
from softcount.estimate import NUMBER, Estimate
from softcount.models.settings import check_number, check_whole
from softcount.types import Array
from softcount.weak.reader import occurs

FREQUENCY, INFORMATION = "frequency", "information"
RIDGE, LOGISTIC = "ridge", "logistic"
SOURCE, TARGET = "source", "target"
TYPICAL = 4.0
"""A word is typical of the domains in which it is at least so many times as frequent."""


class PivotProjection(Projection):
    """Structural correspondence learning (Blitzer, McDonald & Pereira 2006; Blitzer, Dredze &
    Pereira 2007).

    Pivots are words frequent in both domains. All other words learn to predict whether a pivot
    occurs, in all items, without any label: min ½‖P − XW − 1bᵀ‖² + ½λ‖W‖². Words that predict the
    same pivots mean the same, in whatever domain. With W divided by the pivots' standard
    deviations = ΘΣVᵀ (its largest singular values), the classifier sees the words x, and beside
    them a (Θᵀx − mean).

    ``n_pivots``        so many pivots, if there are; at most half of the words
    ``n_components``    so many directions Θ, if there are
    ``choose``          "frequency": pivots are most frequent where they are rarer, in the sources
                        or in the target; "information": they tell most of the source's labels
    ``min_share``       pivots are in at least this share of the items here and there
    ``loss``            of the predictors: "ridge", or "logistic" (slower, and no better on reviews)
    ``regularisation``  λ, as a share of the sum of all squares of X
    ``scale``           how long rows of new features are (root mean square) beside those of words
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    A pivot that every item has (as in a table of measurements) "occurs" where it is above its
    median. Defaults were found on reviews of products, by labels of the source only:
    cross-validation, and learning from the half least like the target for the half most like it.

    Afterwards: ``pivots_`` (names, the best first), ``directions_`` (columns × components, 0 at
    pivots), ``singular_values_``, ``classifier_``.

    >>> texts = ["good lovely plot", "bad dull plot", "good sharp", "bad blunt"] * 2
    >>> model = PivotProjection().fit(texts, [1, 0, -1, -1] * 2)
    >>> model.pivots_
    ['bad', 'good']
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    directions_: Array
    singular_values_: Array

    def __init__(
        self,
        classifier: Any = None,
        *,
        n_pivots: int = 500,
        n_components: int = 50,
        choose: str = FREQUENCY,
        min_share: float = 0.01,
        loss: str = RIDGE,
        regularisation: float = 0.01,
        scale: float = 0.5,
        vectorizer: Any = None,
    ) -> None:
        self.classifier = classifier
        self.n_pivots = n_pivots
        self.n_components = n_components
        self.choose = choose
        self.min_share = min_share
        self.loss = loss
        self.regularisation = regularisation
        self.scale = scale
        self.vectorizer = vectorizer

    def check_settings(self) -> None:
        """Complain of settings that make no sense."""
        for name, known in (("choose", (FREQUENCY, INFORMATION)), ("loss", (RIDGE, LOGISTIC))):
            if getattr(self, name) not in known:
                raise LearnerError(
                    f"{name}={shown(getattr(self, name))}", f"one of {', '.join(known)}"
                )
        check_whole("n_pivots", self.n_pivots)
        check_whole("n_components", self.n_components)
        check_number("min_share", self.min_share, "0.01: one item in a hundred; 0: any")
        check_number("regularisation", self.regularisation, "0.01 suits reviews", above=True)
        check_number("scale", self.scale, "1: new features are as long as words", above=True)

    def foreseen(self, task: Task) -> Estimate:
        """Weights of all words for each pivot."""
        (n, width), pivots = task.X.shape, min(self.n_pivots, task.X.shape[1])
        tables = NUMBER * (2.0 * width * pivots + n * pivots)
        return super().foreseen(task).plus(50.0 * task.X.size / 8 * pivots, pivots=tables)

    def find(self, task: Task) -> None:
        """Choose pivots, learn to predict them, and keep the main directions of the weights."""
        present = occurrence(task.X)
        pivots = self._chosen(present, task)
        self._pivot_columns = pivots
        others = np.setdiff1d(np.arange(task.X.shape[1]), pivots)
        self.directions_ = np.zeros((task.X.shape[1], 0))
        self.singular_values_ = np.zeros(0)
        X, P = task.X[:, others], present[:, pivots].toarray()
        total = float(row_norms(X, squared=True).sum())
        if total > 0.0:
            ridge = JointRidge(X, self.regularisation * total)
            found = logistic(ridge, P) if self.loss == LOGISTIC else ridge.solve(P)
            directions, self.singular_values_ = main_directions(
                found, 1.0 / P.std(axis=0), self.n_components
            )
            self.directions_ = np.zeros((task.X.shape[1], directions.shape[1]))
            self.directions_[others] = directions
        self._fit_scale(task.X)

    def _chosen(self, present: Any, task: Task) -> Array:
        """The columns of the pivots, the best first."""
        here, there = (share(present, rows) for rows in (~task.in_target, task.in_target))
        rarer = np.minimum(here, there)
        candidates = np.flatnonzero((rarer > 0.0) & (rarer >= self.min_share))
        if not len(candidates):
            raise DataError(
                "no word that tells items apart is frequent in the source and in the target",
                f"lower min_share={self.min_share}, or give items that share words",
            )
        merit = rarer
        if self.choose == INFORMATION:
            merit = information(present[task.source], task.y[task.source], len(task.classes))
        order = candidates[np.argsort(-merit[candidates], kind="stable")]
        used = np.count_nonzero(present.getnnz(axis=0))
        return order[: min(self.n_pivots, max(used // 2, 1))]

    def _fit_scale(self, X: Any) -> None:
        """The mean of the new features, and the factor that makes them as long as is wanted."""
        new = np.asarray(X @ self.directions_)
        self._mean = new.mean(axis=0)
        spread = float(new.var(axis=0).sum())
        words = float(row_norms(X, squared=True).mean())
        self._factor = self.scale * np.sqrt(words / spread) if spread > 0.0 else 0.0

    def projected(self, X: Any) -> Array:
        """a (Θᵀx − mean)."""
        new: Array = np.asarray(X @ self.directions_)
        new -= self._mean
        new *= self._factor
        return new

    # looking inside
    @property
    def pivots_(self) -> list[str]:
        """The pivots by name, the best first."""
        names = self.feature_names()
        return [names[column] for column in self._pivot_columns]

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): the weight of a word itself, and what it does by the new features;
        the same in all domains."""
        check_is_fitted(self, "classes_")
        weights = weights_in(self.classifier_, self.classes_)
        words, new = np.split(weights, [self.n_features_in_], axis=1)
        total: Array = words + self._factor * new @ self.directions_.T
        return total

    def neighbours(
        self, word: str, n: int = 10, among: str | None = None
    ) -> list[tuple[str, float]]:
        """The n words nearest to a word by the cosine between their rows of Θ, and the cosines.

        ``among``  only words typical of the "source", or of the "target"
        """
        check_whole("n", n)
        names = self.feature_names()
        if word not in names:
            raise DataError(f"{shown(word)} is in no item", "ask for a word of feature_names()")
        column = names.index(word)
        if not self.directions_[column].any():
            why = "it is a pivot" if column in self._pivot_columns else "it predicts no pivot"
            raise DataError(f"{shown(word)} has no neighbours: {why}", "ask for another word")
        return self._nearest(column, np.flatnonzero(self._typical(among)), n, names)

    def correspondences(
        self, n: int = 10, nearest: int = 3
    ) -> list[tuple[str, list[tuple[str, float]]]]:
        """Words typical of the target, of which the new features tell most, each with the nearest
        words typical of the source and their cosines."""
        check_whole("n", n)
        check_whole("nearest", nearest)
        names = self.feature_names()
        weights = weights_in(self.classifier_, self.classes_)[:, self.n_features_in_ :]
        told = np.abs(weights @ self.directions_.T).max(axis=0)
        here, there = self._typical(SOURCE), self._typical(TARGET)
        words = np.flatnonzero(there & (told > 0.0))
        words = words[np.argsort(-told[words], kind="stable")][:n].tolist()
        among = np.flatnonzero(here)
        return [(names[word], self._nearest(word, among, nearest, names)) for word in words]

    def _nearest(
        self, column: int, among: Array, n: int, names: list[str]
    ) -> list[tuple[str, float]]:
        lengths = row_norms(self.directions_)
        among = among[(lengths[among] > 0.0) & (among != column)]
        products = self.directions_[among] @ self.directions_[column]
        cosines = products / (lengths[among] * lengths[column])
        best = np.argsort(-cosines, kind="stable")[:n]
        return [(names[among[one]], float(cosines[one])) for one in best]

    def _typical(self, of: str | None) -> Array:
        """Whether each word is typical of a side; one more item has it and one more has it not."""
        if of not in (None, SOURCE, TARGET):
            raise LearnerError(f"among={shown(of)}", "'source', 'target', or None: all words")
        present, in_target = occurs(self._task.X), self._task.in_target
        own = in_target if of == TARGET else ~in_target
        if of is None:
            return np.ones(present.shape[1], dtype=bool)
        inside, outside = (
            (share(present, rows) * rows.sum() + 1.0) / (rows.sum() + 2.0) for rows in (own, ~own)
        )
        typical: Array = inside >= TYPICAL * outside
        return typical


def occurrence(X: Any) -> Any:
    """1 where an item has a word; for columns that are nowhere 0, where they are above the median.

    >>> occurrence(np.array([[0.0, 1.0], [2.0, 3.0]])).toarray()
    array([[0., 0.],
           [1., 1.]])
    """
    present = occurs(X)
    everywhere = present.getnnz(axis=0) == X.shape[0]
    if not everywhere.any():
        return present
    full, partial = np.flatnonzero(everywhere), np.flatnonzero(~everywhere)
    values = X[:, full]
    values = values.toarray() if sparse.issparse(values) else values
    above = sparse.csr_matrix((values > np.median(values, axis=0)).astype(np.float64))
    joined = sparse.hstack([present[:, partial], above], format="csr")
    return joined[:, np.argsort(np.concatenate([partial, full]), kind="stable")]


def share(present: Any, rows: Array) -> Array:
    """The share of some items that have each word.

    >>> share(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), np.array([True, True]))
    array([1. , 0.5])
    """
    # a sum by a number is rounded once: equal shares are equal, and ties are ties
    found: Array = np.asarray(present[np.flatnonzero(rows)].sum(axis=0)).ravel() / rows.sum()
    return found


def information(present: Any, labels: Array, n_classes: int) -> Array:
    """The mutual information of each word's occurrence and the label, in nats.

    >>> information(sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]]), np.array([0, 1]), 2).round(3)
    array([0.693, 0.   ])
    """
    n = len(labels)
    of_class = sparse.csr_matrix((np.ones(n), (labels, np.arange(n))), shape=(n_classes, n))
    with_word = np.asarray((of_class @ present).todense())
    total = np.asarray(of_class.sum(axis=1)).reshape(-1, 1)
    has = with_word.sum(axis=0)  # whole numbers: no difference below is less than 0
    told = rel_entr(with_word, total * has / n) + rel_entr(total - with_word, total * (n - has) / n)
    found: Array = told.sum(axis=0) / n
    return found
