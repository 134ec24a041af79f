"""Many regressions on the same items at once, and the main directions of their weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from softcount.types import Array

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
    >>> JointRidge(X, 1.0).solve(np.array([[0.0], [3.0], [6.0]])).combined(np.eye(1))
    array([[2.]])
    """

    def __init__(
        self, X: Any, penalty: float, *, dual: bool | None = None, direct: bool | None = None
    ) -> None:
        n, width = X.shape
        self.X, self.penalty = X, penalty
        self.dual = n <= width if dual is None else dual
        small = (n if self.dual else width) <= LARGEST
        self._factor = self._factorised() if (small if direct is None else direct) else None

    def _factorised(self) -> Any:
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
                found[:, block] = conjugate_gradients(self._times, right[:, block], found[:, block])
        # (XXᵀ + λI)A = R spares a product
        fitted = R - self.penalty * found if self.dual else _centred(self.X @ found)
        return Predictors(self, found, fitted, _squares(R))

    def _times(self, V: Array) -> Array:
        if self.dual:  # columns of V have the mean 0, as those of R have
            return _centred(self.X @ (self.X.T @ V)) + self.penalty * V
        product: Array = self.X.T @ _centred(self.X @ V) + self.penalty * V
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

    def gram(self) -> Array:
        """WᵀW, (responses, responses)."""
        gram: Array = self.found.T @ (self.fitted if self.ridge.dual else self.found)
        return (gram + gram.T) / 2.0

    def combined(self, V: Array) -> Array:
        """WV."""
        mixed = self.found @ V
        product: Array = self.ridge.X.T @ mixed if self.ridge.dual else mixed
        return product


def logistic(ridge: JointRidge, occurs: Array, max_steps: int = MOST_STEPS) -> Predictors:
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
        warnings.warn(ConvergenceWarning(f"{text}: take more regularisation"), stacklevel=2)
    assert found is not None
    return found


def main_directions(predictors: Predictors, factors: Array, n: int) -> tuple[Array, Array]:
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
    directions = predictors.combined(factors[:, np.newaxis] * V[:, real] / values)
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.where(directions[largest, np.arange(len(values))] < 0.0, -1.0, 1.0)
    return directions, values


def conjugate_gradients(times: Callable[[Array], Array], right: Array, start: Array) -> Array:
    """Solves times(X) = right for all columns at once; ``times`` is symmetric and positive.

    >>> conjugate_gradients(lambda V: 2.0 * V, np.array([[2.0], [4.0]]), np.zeros((2, 1)))
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


def _ratio(above: Array, below: Array, where: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(above), where=where)


def _squares(columns: Array) -> Array:
    found: Array = np.einsum("ij,ij->j", columns, columns)
    return found


def _centred(columns: Array) -> Array:
    centred: Array = columns - columns.mean(axis=0)
    return centred


def _product(left: Any, right: Any) -> Array:
    """A dense product; of sparse matrices some rows at a time, for it has few zeros."""
    if not sparse.issparse(left):
        return np.asarray(left @ right)
    left, right = left.tocsr(), right.tocsr()
    found = np.empty((left.shape[0], right.shape[1]))
    for start in range(0, len(found), 500):
        found[start : start + 500] = (left[start : start + 500] @ right).toarray()
    return found
