"""`PivotProjection`: structural correspondence by pivot features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit, logit, rel_entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from softcount.adapt.base import Projection, class_weights
from softcount.adapt.data import Task
from softcount.adapt.parameters import PivotParameters
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import NUMBER, Estimate
from softcount.core.parameters import check_whole
from softcount.core.types import Array, FloatArray, IntArray
from softcount.labels.data import occurs

LARGEST = 2000
"""A system of more equations than this is not factorised: λ is so large that conjugate gradients
take some ten steps, and no memory."""
BLOCK = 50
"""So many responses are solved for at a time where nothing is factorised."""
NEAR = 1e-8
"""How small the residuals then are, beside the responses."""
SETTLED = 1e-6
"""Logistic predictors have settled if no score moves more than this in a step."""
MOST_STEPS = 1000
NOTHING, ROUNDING = 1e-12, 1e-14
"""A direction is rounding if its square is less than this share of the largest that there is, or
that there could be."""


class JointRidge:
    """Ridge regressions of many responses on the same items, each with an intercept that is free:
    min ½‖R − XW − 1bᵀ‖² + ½λ‖W‖².

    With items and responses centred, W = (XᵀX + λI)⁻¹XᵀR = XᵀA, A = (XXᵀ + λI)⁻¹R: the smaller of
    the two systems is solved (``dual``: the second), by Cholesky's factors (``direct``) or, if it
    is large, by conjugate gradients. XᵀA is never written out: with many words it is huge.

    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> JointRidge(X, 1.0).solve(np.array([[0.0], [3.0], [6.0]])).combine(np.eye(1))
    array([[2.]])
    """

    def __init__(
        self, X: Any, penalty: float, *, dual: bool | None = None, direct: bool | None = None
    ) -> None:
        n, width = X.shape
        self.X, self.penalty = X, penalty
        self.dual = n <= width if dual is None else dual
        small = (n if self.dual else width) <= LARGEST
        self._factor = self._factorise() if (small if direct is None else direct) else None

    def _factorise(self) -> Any:
        """Cholesky's factors of XXᵀ + λI or XᵀX + λI, X centred."""
        if self.dual:
            system = _product(self.X, self.X.T)
            system -= system.mean(axis=0)
            system -= system.mean(axis=1, keepdims=True)
        else:
            mean = np.asarray(self.X.mean(axis=0)).ravel()
            system = _product(self.X.T, self.X)
            system -= self.X.shape[0] * np.outer(mean, mean)
        system[np.diag_indices_from(system)] += self.penalty
        return cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, responses: Array, start: Predictors | None = None) -> Predictors:
        """The predictors of these responses, (items, responses); ``start``: some that are near."""
        R = responses - responses.mean(axis=0)
        right = R if self.dual else self.X.T @ R
        if self._factor is not None:
            found = cho_solve(self._factor, right, check_finite=False)
        else:
            found = np.zeros_like(right) if start is None else start.found.copy()
            for first in range(0, right.shape[1], BLOCK):
                block = slice(first, first + BLOCK)
                found[:, block] = solve_by_gradients(self._times, right[:, block], found[:, block])
        # (XXᵀ + λI)A = R spares a product
        fitted = R - self.penalty * found if self.dual else _centre(self.X @ found)
        return Predictors(self, found, fitted, _squares(R))

    def _times(self, V: Array) -> FloatArray:
        if self.dual:  # columns of V have the mean 0, as those of R have
            return _centre(self.X @ (self.X.T @ V)) + self.penalty * V
        product: FloatArray = self.X.T @ _centre(self.X @ V) + self.penalty * V
        return product


@dataclass(frozen=True, eq=False)
class Predictors:
    """What `JointRidge` finds.

    ``found``    A if it solves the dual, else W
    ``fitted``   (items, responses): XW, centred
    ``squares``  ‖R‖² of each response, centred
    """

    ridge: JointRidge
    found: Array
    fitted: Array
    squares: Array

    def gram(self) -> FloatArray:
        """WᵀW, (responses, responses)."""
        gram: FloatArray = self.found.T @ (self.fitted if self.ridge.dual else self.found)
        return (gram + gram.T) / 2.0

    def combine(self, V: Array) -> FloatArray:
        """WV."""
        mixed = self.found @ V
        product: FloatArray = self.ridge.X.T @ mixed if self.ridge.dual else mixed
        return product


def fit_logistic(ridge: JointRidge, occurs: Array, max_steps: int = MOST_STEPS) -> Predictors:
    """Logistic regressions of 0/1 responses: min 4 Σ −log p(response) + ½λ‖W‖² for each.

    The curvature of 4 Σ −log p is at most that of ½‖·‖² (Böhning & Lindsay 1988; Böhning 1992):
    a ridge regression of F + 4 (R − p(F)), F the scores so far, never makes it worse.
    """
    scores = np.tile(logit(occurs.mean(axis=0)), (len(occurs), 1))
    found = None
    for _ in range(max_steps):
        working = scores + 4.0 * (occurs - expit(scores))
        found = ridge.solve(working, found)
        after = working.mean(axis=0) + found.fitted
        moved = float(np.abs(after - scores).max())
        scores = after
        if moved <= SETTLED:
            break
    else:
        text = f"logistic predictors of pivots still move by {moved:.1e} after {max_steps} steps"
        warnings.warn(ConvergenceWarning(f"{text}: take a larger l2"), stacklevel=2)
    assert found is not None
    return found


def find_directions(predictors: Predictors, factors: Array, n: int) -> tuple[Array, Array]:
    """The n largest left singular vectors of W · diag(factors), as columns, and singular values;
    fewer if its rank is less. The largest entry of each vector is positive.

    WᵀW is small, and its eigenvectors V with eigenvalues σ² are all that is needed: W V / σ.
    """
    gram = predictors.gram() * factors * factors[:, np.newaxis]
    m = len(gram)
    squares, V = eigh(gram, subset_by_index=[m - min(n, m), m - 1])
    squares, V = squares[::-1], V[:, ::-1]
    most = float(factors**2 @ predictors.squares) / (4.0 * predictors.ridge.penalty)  # ‖W‖² at most
    real = squares > max(NOTHING * squares[0], ROUNDING * most)
    values = np.sqrt(squares[real])
    directions = predictors.combine(factors[:, np.newaxis] * V[:, real] / values)
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.where(directions[largest, np.arange(len(values))] < 0.0, -1.0, 1.0)
    return directions, values


def solve_by_gradients(times: Callable[[Array], Array], right: Array, start: Array) -> FloatArray:
    """Solves times(X) = right for all columns at once; ``times`` is symmetric and positive.

    >>> solve_by_gradients(lambda V: 2.0 * V, np.array([[2.0], [4.0]]), np.zeros((2, 1)))
    array([[1.],
           [2.]])
    """
    found, residual = start.copy(), right - times(start)
    along, square = residual.copy(), _squares(residual)
    enough = NEAR**2 * _squares(right)
    for _ in range(len(right)):
        active = square > enough
        if not active.any():
            break
        product = times(along)
        step = _ratio(square, np.einsum("ij,ij->j", along, product), active)
        found += step * along
        residual -= step * product
        before, square = square, _squares(residual)
        along = residual + _ratio(square, before, active) * along
    return found


def _ratio(above: Array, below: Array, where: Array) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(above), where=where)


def _squares(columns: Array) -> FloatArray:
    found: FloatArray = np.einsum("ij,ij->j", columns, columns)
    return found


def _centre(columns: Array) -> FloatArray:
    centred: FloatArray = columns - columns.mean(axis=0)
    return centred


def _product(left: Any, right: Any) -> FloatArray:
    """A dense product; of sparse matrices some rows at a time, for it has few zeros."""
    if not sparse.issparse(left):
        return np.asarray(left @ right)
    left, right = left.tocsr(), right.tocsr()
    found = np.empty((left.shape[0], right.shape[1]))
    for start in range(0, len(found), 500):
        found[start : start + 500] = (left[start : start + 500] @ right).toarray()
    return found


# Pivots: words of both domains, by which words of only one of them find their like.


SOURCE, TARGET = "source", "target"
TYPICAL = 4.0
"""A word is typical of the domains in which it is at least so many times as frequent."""


class PivotProjection(PivotParameters, Projection):
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
    ``l2``              λ, as a share of the sum of all squares of X
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

    def _estimate(self, task: Task) -> Estimate:
        """Weights of all words for each pivot."""
        (n, width), pivots = task.X.shape, min(self.n_pivots, task.X.shape[1])
        tables = NUMBER * (2.0 * width * pivots + n * pivots)
        return super()._estimate(task).plus(50.0 * task.X.size / 8 * pivots, pivots=tables)

    def _fit_features(self, task: Task) -> None:
        """Choose pivots, learn to predict them, and keep the main directions of the weights."""
        present = mark_occurrences(task.X)
        pivots = self._choose_pivots(present, task)
        self._pivot_columns = pivots
        others = np.setdiff1d(np.arange(task.X.shape[1]), pivots)
        self.directions_ = np.zeros((task.X.shape[1], 0))
        self.singular_values_ = np.zeros(0)
        X, P = task.X[:, others], present[:, pivots].toarray()
        total = float(row_norms(X, squared=True).sum())
        if total > 0.0:
            ridge = JointRidge(X, self.l2 * total)
            found = fit_logistic(ridge, P) if self.loss == "logistic" else ridge.solve(P)
            directions, self.singular_values_ = find_directions(
                found, 1.0 / P.std(axis=0), self.n_components
            )
            self.directions_ = np.zeros((task.X.shape[1], directions.shape[1]))
            self.directions_[others] = directions
        self._fit_scale(task.X)

    def _choose_pivots(self, present: Any, task: Task) -> IntArray:
        """The columns of the pivots, the best first."""
        here, there = (compute_shares(present, rows) for rows in (~task.in_target, task.in_target))
        rarer = np.minimum(here, there)
        candidates = np.flatnonzero((rarer > 0.0) & (rarer >= self.min_share))
        if not len(candidates):
            raise DataError(
                "no word that tells items apart is frequent in the source and in the target",
                f"lower min_share={self.min_share}, or give items that share words",
            )
        merit = rarer
        if self.choose == "information":
            merit = compute_information(
                present[task.source], task.y[task.source], len(task.classes)
            )
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

    def _project(self, X: Any) -> FloatArray:
        """a (Θᵀx − mean)."""
        new: FloatArray = np.asarray(X @ self.directions_)
        new -= self._mean
        new *= self._factor
        return new

    # looking inside
    @property
    def pivots_(self) -> list[str]:
        """The pivots by name, the best first."""
        names = self.feature_names()
        return [names[column] for column in self._pivot_columns]

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """(classes, columns): the weight of a word itself, and what it does by the new features;
        the same in all domains."""
        check_is_fitted(self, "classes_")
        weights = class_weights(self.classifier_, self.classes_)
        words, new = np.split(weights, [self.n_features_in_], axis=1)
        total: FloatArray = words + self._factor * new @ self.directions_.T
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
            raise DataError(f"{brief(word)} is in no item", "ask for a word of feature_names()")
        column = names.index(word)
        if not self.directions_[column].any():
            why = "it is a pivot" if column in self._pivot_columns else "it predicts no pivot"
            raise DataError(f"{brief(word)} has no neighbours: {why}", "ask for another word")
        return self._nearest(column, np.flatnonzero(self._typical(among)), n, names)

    def correspondences(
        self, n: int = 10, nearest: int = 3
    ) -> list[tuple[str, list[tuple[str, float]]]]:
        """Words typical of the target, of which the new features tell most, each with the nearest
        words typical of the source and their cosines."""
        check_whole("n", n)
        check_whole("nearest", nearest)
        names = self.feature_names()
        weights = class_weights(self.classifier_, self.classes_)[:, self.n_features_in_ :]
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

    def _typical(self, of: str | None) -> FloatArray:
        """Whether each word is typical of a side; one more item has it and one more has it not."""
        if of not in (None, SOURCE, TARGET):
            raise LearnerError(f"among={brief(of)}", "'source', 'target', or None: all words")
        present, in_target = occurs(self._task.X), self._task.in_target
        own = in_target if of == TARGET else ~in_target
        if of is None:
            return np.ones(present.shape[1], dtype=bool)
        inside, outside = (
            (compute_shares(present, rows) * rows.sum() + 1.0) / (rows.sum() + 2.0)
            for rows in (own, ~own)
        )
        typical: FloatArray = inside >= TYPICAL * outside
        return typical


def mark_occurrences(X: Any) -> Any:
    """1 where an item has a word; for columns that are nowhere 0, where they are above the median.

    >>> mark_occurrences(np.array([[0.0, 1.0], [2.0, 3.0]])).toarray()
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


def compute_shares(present: Any, rows: Array) -> FloatArray:
    """The share of some items that have each word.

    >>> compute_shares(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), np.array([True, True]))
    array([1. , 0.5])
    """
    # a sum by a number is rounded once: equal shares are equal, and ties are ties
    found: FloatArray = np.asarray(present[np.flatnonzero(rows)].sum(axis=0)).ravel() / rows.sum()
    return found


def compute_information(present: Any, labels: Array, n_classes: int) -> FloatArray:
    """The mutual information of each word's occurrence and the label, in nats.

    >>> present = sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]])
    >>> compute_information(present, np.array([0, 1]), 2).round(3)
    array([0.693, 0.   ])
    """
    n = len(labels)
    of_class = sparse.csr_matrix((np.ones(n), (labels, np.arange(n))), shape=(n_classes, n))
    with_word = np.asarray((of_class @ present).todense())
    total = np.asarray(of_class.sum(axis=1)).reshape(-1, 1)
    has = with_word.sum(axis=0)  # whole numbers: no difference below is less than 0
    told = rel_entr(with_word, total * has / n) + rel_entr(total - with_word, total * (n - has) / n)
    found: FloatArray = told.sum(axis=0) / n
    return found
