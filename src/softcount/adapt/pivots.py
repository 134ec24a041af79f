"""`PivotProjection`: structural correspondence learning with pivot features."""

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

from softcount.adapt.base import Projection
from softcount.adapt.data import Task
from softcount.adapt.parameters import PivotParameters
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import NUMBER, Estimate
from softcount.core.parameters import check_whole
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.labels.data import indicator_matrix

MAX_FACTORISED = 2000
"""A system of more equations than this is not factorised: λ is so large that conjugate gradients
need only some ten steps, and hardly any memory."""
BLOCK = 50
"""Number of responses solved for at a time by conjugate gradients."""
RESIDUAL = 1e-8
"""Relative size of the residuals at which conjugate gradients stop."""
TOLERANCE = 1e-6
"""Logistic predictors have converged if no score changes by more than this in a step."""
MAX_ITER = 1000
SOURCE, TARGET = "source", "target"
TYPICAL = 4.0
"""A word is typical of a domain in which it is this many times as frequent as in others."""
NOTHING, ROUNDING = 1e-12, 1e-14
"""A direction is a rounding error if its squared singular value is below these fractions of the
largest one, and of the largest possible one."""


class JointRidge:
    """Ridge regressions of many responses on the same items, with unpenalised intercepts:
    min ½‖R − XW − 1bᵀ‖² + ½λ‖W‖².

    With items and responses centred, W = (XᵀX + λI)⁻¹XᵀR = XᵀA, A = (XXᵀ + λI)⁻¹R: the smaller of
    the two systems is solved (``dual``: the second), by Cholesky factorisation (``direct``) or, if
    it is large, by conjugate gradients. XᵀA is never computed: with many words it is huge.

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
        self._factor: Any = None
        if (n if self.dual else width) <= MAX_FACTORISED if direct is None else direct:
            # Cholesky factor of XXᵀ + λI or XᵀX + λI, X centred
            if self.dual:
                system = _dense_product(X, X.T)
                system -= system.mean(axis=0)
                system -= system.mean(axis=1, keepdims=True)
            else:
                mean = np.asarray(X.mean(axis=0)).ravel()
                system = _dense_product(X.T, X)
                system -= n * np.outer(mean, mean)
            system[np.diag_indices_from(system)] += penalty
            self._factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, responses: FloatArray, start: Predictors | None = None) -> Predictors:
        """Fit predictors of responses (items, responses); ``start``: initial values for conjugate
        gradients."""
        R = _centre(responses)
        right = R if self.dual else self.X.T @ R
        if self._factor is not None:
            solution = cho_solve(self._factor, right, check_finite=False)
        else:
            solution = np.zeros_like(right) if start is None else start.solution.copy()
            for first in range(0, right.shape[1], BLOCK):
                block = slice(first, first + BLOCK)
                solution[:, block] = conjugate_gradients(
                    self._multiply, right[:, block], solution[:, block]
                )
        # since (XXᵀ + λI)A = R, the dual needs no further product
        fitted = R - self.penalty * solution if self.dual else _centre(self.X @ solution)
        return Predictors(self, solution, fitted, _sum_squares(R))

    def _multiply(self, V: FloatArray) -> FloatArray:
        """Compute (XXᵀ + λI)V or (XᵀX + λI)V, X centred; in the dual, columns of V have mean 0."""
        product = _centre(self.X @ (self.X.T @ V)) if self.dual else self.X.T @ _centre(self.X @ V)
        return np.asarray(product + self.penalty * V)


@dataclass(frozen=True, eq=False)
class Predictors:
    """Solution of `JointRidge`.

    ``solution``  A if it solves the dual, else W
    ``fitted``    (items, responses): XW, centred
    ``squares``   ‖R‖² of each response, centred
    """

    ridge: JointRidge
    solution: FloatArray
    fitted: FloatArray
    squares: FloatArray

    def gram(self) -> FloatArray:
        """Compute WᵀW, (responses, responses)."""
        gram = self.solution.T @ (self.fitted if self.ridge.dual else self.solution)
        return (gram + gram.T) / 2.0

    def combine(self, V: FloatArray) -> FloatArray:
        """Compute WV."""
        mixed = self.solution @ V
        return np.asarray(self.ridge.X.T @ mixed) if self.ridge.dual else mixed


def fit_logistic(ridge: JointRidge, occurs: FloatArray, max_iter: int = MAX_ITER) -> Predictors:
    """Fit logistic regressions of 0/1 responses: min 4 Σ −log p(response) + ½λ‖W‖² for each.

    The curvature of 4 Σ −log p is at most that of ½‖·‖² (Böhning & Lindsay 1988; Böhning 1992):
    so a ridge regression of F + 4 (R − p(F)), with the current scores F, never increases it.
    """
    scores = np.tile(logit(occurs.mean(axis=0)), (len(occurs), 1))
    predictors = None
    for _ in range(max_iter):
        working = scores + 4.0 * (occurs - expit(scores))
        predictors = ridge.solve(working, predictors)
        before, scores = scores, working.mean(axis=0) + predictors.fitted
        change = float(np.abs(scores - before).max())
        if change <= TOLERANCE:
            break
    else:
        text = f"logistic predictors of pivots still change by {change:.1e} after {max_iter} steps"
        warnings.warn(ConvergenceWarning(f"{text}: use a larger l2"), stacklevel=2)
    assert predictors is not None
    return predictors


def find_directions(
    predictors: Predictors, factors: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Compute the n leading left singular vectors of W · diag(factors), as columns, and singular
    values; fewer if its rank is less. The largest entry of each vector is made positive.

    WᵀW is small, and its eigenvectors V with eigenvalues σ² suffice: the vectors are W V / σ.
    """
    gram = predictors.gram() * factors * factors[:, np.newaxis]
    m = len(gram)
    squares, V = eigh(gram, subset_by_index=[m - min(n, m), m - 1])
    squares, V = squares[::-1], V[:, ::-1]
    bound = float(factors**2 @ predictors.squares) / (4.0 * predictors.ridge.penalty)  # on ‖W‖²
    nonzero = squares > max(NOTHING * squares[0], ROUNDING * bound)
    values = np.sqrt(squares[nonzero])
    directions = predictors.combine(factors[:, np.newaxis] * V[:, nonzero] / values)
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.where(directions[largest, np.arange(len(values))] < 0.0, -1.0, 1.0)
    return directions, values


def conjugate_gradients(
    multiply: Callable[[FloatArray], FloatArray], right: FloatArray, start: FloatArray
) -> FloatArray:
    """Solve multiply(X) = right for all columns at once; ``multiply`` is positive definite.

    >>> conjugate_gradients(lambda V: 2.0 * V, np.array([[2.0], [4.0]]), np.zeros((2, 1)))
    array([[1.],
           [2.]])
    """
    solution, residual = start.copy(), right - multiply(start)
    direction, squares = residual.copy(), _sum_squares(residual)
    enough = RESIDUAL**2 * _sum_squares(right)
    for _ in range(len(right)):
        active = squares > enough
        if not active.any():
            break
        product = multiply(direction)
        step = _divide(squares, np.einsum("ij,ij->j", direction, product), active)
        solution += step * direction
        residual -= step * product
        before, squares = squares, _sum_squares(residual)
        direction = residual + _divide(squares, before, active) * direction
    return solution


def _divide(above: FloatArray, below: FloatArray, where: BoolArray) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(above), where=where)


def _sum_squares(columns: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


def _centre(columns: FloatArray) -> FloatArray:
    return np.asarray(columns - columns.mean(axis=0))


def _dense_product(left: Any, right: Any) -> FloatArray:
    """Compute a product as a dense matrix; for sparse matrices in blocks of rows, as it has few
    zeros."""
    if not sparse.issparse(left):
        return np.asarray(left @ right)
    left, right = left.tocsr(), right.tocsr()
    product = np.empty((left.shape[0], right.shape[1]))
    for start in range(0, len(product), 500):
        product[start : start + 500] = (left[start : start + 500] @ right).toarray()
    return product


class PivotProjection(PivotParameters, Projection):
    """Structural correspondence learning (Blitzer, McDonald & Pereira 2006; Blitzer, Dredze &
    Pereira 2007).

    Pivots are words frequent in both domains. Predictors of whether a pivot occurs are learned from
    all other words, in all items, without any label: min ½‖P − XW − 1bᵀ‖² + ½λ‖W‖². Words that
    predict the same pivots have similar meanings, in whatever domain. With the truncated SVD ΘΣVᵀ
    of W divided by the pivots' standard deviations, the features of the classifier are the words x,
    and a (Θᵀx − mean).

    ``n_pivots``        number of pivots, if there are as many; at most half of the words
    ``n_components``    number of directions Θ, if there are as many
    ``choose``          "frequency": pivots have the largest minimum of their frequencies in the
                        sources and in the target; "information": the most mutual information with
                        the source's labels
    ``min_share``       minimum proportion of the items of either domain in which a pivot occurs
    ``loss``            loss of the predictors: "ridge", or "logistic" (slower, and no better on
                        reviews)
    ``l2``              λ, relative to the sum of squares of X
    ``scale``           norm of the new features (root mean square) relative to that of the words
    ``classifier``, ``vectorizer``  as for `SourceOnly`

    A pivot that every item has (as in a table of measurements) "occurs" where it is above its
    median. Defaults were chosen on product reviews, by labels of the source only: cross-validation,
    and training on the half least similar to the target to predict the half most similar to it.

    Attributes after ``fit``: ``pivots_`` (names, the best first), ``directions_`` (columns ×
    components, 0 at pivots), ``singular_values_``, ``classifier_``.

    >>> texts = ["good lovely plot", "bad dull plot", "good sharp", "bad blunt"] * 2
    >>> model = PivotProjection().fit(texts, [1, 0, -1, -1] * 2)
    >>> model.pivots_
    ['bad', 'good']
    >>> model.predict(["sharp", "blunt"]).tolist()
    [1, 0]
    """

    directions_: FloatArray
    singular_values_: FloatArray

    def _estimate(self, task: Task) -> Estimate:
        """Estimate the cost, including weights of all words for each pivot."""
        (n, width), pivots = task.X.shape, min(self.n_pivots, task.X.shape[1])
        tables = NUMBER * (2.0 * width * pivots + n * pivots)
        return super()._estimate(task).plus(50.0 * task.X.size / 8 * pivots, pivots=tables)

    def _fit_features(self, task: Task) -> None:
        """Choose pivots, fit their predictors, and find the leading directions of the weights."""
        X, width = task.X, task.X.shape[1]
        present = mark_occurrences(X)
        here, there = (compute_shares(present, rows) for rows in (~task.in_target, task.in_target))
        merit = rarer = np.minimum(here, there)
        candidates = np.flatnonzero((rarer > 0.0) & (rarer >= self.min_share))
        if not len(candidates):
            raise DataError(
                "no word that distinguishes items is frequent in both the source and the target",
                f"lower min_share={self.min_share}, or give items that share words",
            )
        if self.choose == "information":
            labels = task.y[task.source]
            merit = compute_information(present[task.source], labels, len(task.classes))
        best_first = candidates[np.argsort(-merit[candidates], kind="stable")]
        n_used = np.count_nonzero(present.getnnz(axis=0))
        self._pivot_columns = best_first[: min(self.n_pivots, max(n_used // 2, 1))]

        others = np.setdiff1d(np.arange(width), self._pivot_columns)
        rest, P = X[:, others], present[:, self._pivot_columns].toarray()
        total = float(row_norms(rest, squared=True).sum())
        self.directions_, self.singular_values_ = np.zeros((width, 0)), np.zeros(0)
        if total > 0.0:
            ridge = JointRidge(rest, self.l2 * total)
            predictors = fit_logistic(ridge, P) if self.loss == "logistic" else ridge.solve(P)
            found = find_directions(predictors, 1.0 / P.std(axis=0), self.n_components)
            directions, self.singular_values_ = found
            self.directions_ = np.zeros((width, directions.shape[1]))
            self.directions_[others] = directions

        # the mean of the new features, and the factor that gives them the norm set by ``scale``
        new = self._compute_features(X)
        self._mean = new.mean(axis=0)
        spread = float(new.var(axis=0).sum())
        words = float(row_norms(X, squared=True).mean())
        self._factor = self.scale * np.sqrt(words / spread) if spread > 0.0 else 0.0

    def _compute_features(self, X: Any) -> FloatArray:
        """Compute Θᵀx."""
        return np.asarray(X @ self.directions_)

    # inspection
    @property
    def pivots_(self) -> list[str]:
        """Names of the pivots, the best first."""
        names = self.feature_names()
        return [names[column] for column in self._pivot_columns]

    def word_weights(self, sample_domain: int | None = None) -> FloatArray:
        """Return a word's own weight plus its effect through the new features, (classes, columns);
        the same in all domains."""
        words, new = self._split_weights()
        return words + self._factor * new @ self.directions_.T

    def neighbours(
        self, word: str, n: int = 10, among: str | None = None
    ) -> list[tuple[str, float]]:
        """Return the n words nearest to a word by the cosine between rows of Θ, and the cosines.

        ``among``  only words typical of the "source", or of the "target"
        """
        check_whole("n", n)
        names = self.feature_names()
        if word not in names:
            raise DataError(
                f"{brief(word)} does not occur in any item", "choose a word of feature_names()"
            )
        column = names.index(word)
        if not self.directions_[column].any():
            why = "it is a pivot" if column in self._pivot_columns else "it predicts no pivot"
            raise DataError(f"{brief(word)} has no neighbours: {why}", "choose another word")
        return self._nearest(column, np.flatnonzero(self._is_typical(among)), n, names)

    def correspondences(
        self, n: int = 10, nearest: int = 3
    ) -> list[tuple[str, list[tuple[str, float]]]]:
        """Return the words typical of the target on which the new features have the largest effect,
        each with the nearest words typical of the source and their cosines."""
        check_whole("n", n)
        check_whole("nearest", nearest)
        names = self.feature_names()
        effect = np.abs(self._split_weights()[1] @ self.directions_.T).max(axis=0)
        words = np.flatnonzero(self._is_typical(TARGET) & (effect > 0.0))
        words = words[np.argsort(-effect[words], kind="stable")][:n].tolist()
        among = np.flatnonzero(self._is_typical(SOURCE))
        return [(names[word], self._nearest(word, among, nearest, names)) for word in words]

    def _nearest(
        self, column: int, among: IntArray, n: int, names: list[str]
    ) -> list[tuple[str, float]]:
        lengths = row_norms(self.directions_)
        among = among[(lengths[among] > 0.0) & (among != column)]
        products = self.directions_[among] @ self.directions_[column]
        cosines = products / (lengths[among] * lengths[column])
        best = np.argsort(-cosines, kind="stable")[:n]
        return [(names[among[one]], float(cosines[one])) for one in best]

    def _is_typical(self, of: str | None) -> BoolArray:
        """Return whether each word is typical of a side, by frequencies with add-one smoothing."""
        if of not in (None, SOURCE, TARGET):
            raise LearnerError(
                f"among={brief(of)} is not a domain",
                "choose 'source', 'target', or None for all words",
            )
        present, in_target = indicator_matrix(self._task.X), self._task.in_target
        if of is None:
            return np.ones(present.shape[1], dtype=bool)
        own = in_target if of == TARGET else ~in_target
        inside, outside = (
            (compute_shares(present, rows) * rows.sum() + 1.0) / (rows.sum() + 2.0)
            for rows in (own, ~own)
        )
        return np.asarray(inside >= TYPICAL * outside)


def mark_occurrences(X: Any) -> Any:
    """Return the indicator matrix of occurrences; for columns without zeros, of values above the
    median.

    >>> mark_occurrences(np.array([[0.0, 1.0], [2.0, 3.0]])).toarray()
    array([[0., 0.],
           [1., 1.]])
    """
    present = indicator_matrix(X)
    everywhere = present.getnnz(axis=0) == X.shape[0]
    if not everywhere.any():
        return present
    full, partial = np.flatnonzero(everywhere), np.flatnonzero(~everywhere)
    values = X[:, full]
    values = values.toarray() if sparse.issparse(values) else values
    above = sparse.csr_matrix((values > np.median(values, axis=0)).astype(np.float64))
    marks = sparse.hstack([present[:, partial], above], format="csr")
    return marks[:, np.argsort(np.concatenate([partial, full]), kind="stable")]


def compute_shares(present: Any, rows: BoolArray) -> FloatArray:
    """Compute the proportion of some items that have each word.

    >>> compute_shares(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), np.array([True, True]))
    array([1. , 0.5])
    """
    # a sum divided by a number is rounded only once, so that equal proportions compare equal
    counts = np.asarray(present[np.flatnonzero(rows)].sum(axis=0)).ravel()
    return np.asarray(counts / rows.sum())


def compute_information(present: Any, labels: IntArray, n_classes: int) -> FloatArray:
    """Compute the mutual information of each word's occurrence and the label, in nats.

    >>> present = sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]])
    >>> compute_information(present, np.array([0, 1]), 2).round(3)
    array([0.693, 0.   ])
    """
    n = len(labels)
    of_class = sparse.csr_matrix((np.ones(n), (labels, np.arange(n))), shape=(n_classes, n))
    with_word = np.asarray((of_class @ present).todense())
    total = np.asarray(of_class.sum(axis=1)).reshape(-1, 1)
    has = with_word.sum(axis=0)  # whole numbers, so that no difference below is negative
    terms = rel_entr(with_word, total * has / n) + rel_entr(
        total - with_word, total * (n - has) / n
    )
    return np.asarray(terms.sum(axis=0) / n)
