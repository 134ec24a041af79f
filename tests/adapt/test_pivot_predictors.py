"""Joint regressions against one at a time, and their main directions against numpy's SVD."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from softcount.adapt.pivots import JointRidge, find_directions, fit_logistic
from softcount.core.types import Array

WAYS = [(True, True), (True, False), (False, True), (False, False)]


def counts(seed: int, n: int, width: int, share: float = 0.3) -> Array:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 4, (n, width)) * (rng.random((n, width)) < share) * 1.0


def responses(seed: int, n: int, m: int) -> Array:
    """0/1, each both at least once."""
    found = (np.random.default_rng(seed).random((n, m)) < 0.3) * 1.0
    found[0], found[1] = 0.0, 1.0
    return found


def one_by_one(X: Array, R: Array, penalty: float) -> tuple[Array, Array]:
    """W and centred scores: a ridge regression for each response."""
    models = [Ridge(alpha=penalty, solver="svd").fit(X, column) for column in R.T]
    scores = np.column_stack([model.predict(X) for model in models])
    return np.column_stack([model.coef_ for model in models]), scores - scores.mean(axis=0)


@pytest.mark.parametrize(("dual", "direct"), WAYS)
@pytest.mark.parametrize("shape", [(25, 40), (40, 12)])
@pytest.mark.parametrize("penalty", [0.05, 7.0])
def test_joint_ridge_is_one_ridge_at_a_time(
    dual: bool, direct: bool, shape: tuple[int, int], penalty: float
) -> None:
    X, R = counts(0, *shape), responses(1, shape[0], 120)  # more than one block of responses
    R[:, 3] = 1.0  # nothing to learn, and nothing to divide by
    W, scores = one_by_one(X, R, penalty)
    for items in (X, sparse.csr_matrix(X)):
        found = JointRidge(items, penalty, dual=dual, direct=direct).solve(R)
        np.testing.assert_allclose(found.combine(np.eye(120)), W, atol=1e-7)
        np.testing.assert_allclose(found.fitted, scores, atol=1e-7)
        np.testing.assert_allclose(found.gram(), W.T @ W, atol=1e-6)


@pytest.mark.parametrize(("dual", "direct"), WAYS)
def test_joint_logistic_is_one_regression_at_a_time(dual: bool, direct: bool) -> None:
    X, R, penalty = counts(3, 30, 8), responses(4, 30, 5), 2.0
    with warnings.catch_warnings(action="error"):  # it settles
        found = fit_logistic(JointRidge(X, penalty, dual=dual, direct=direct), R)

    for column, weights in zip(R.T, found.combine(np.eye(5)).T, strict=True):
        sign = 1.0 - 2.0 * column

        def loss(w: Array, sign: Array = sign) -> float:
            lost = np.logaddexp(0.0, sign * (X @ w[:-1] + w[-1])).sum()
            return float(4.0 * lost + 0.5 * penalty * w[:-1] @ w[:-1])

        best = minimize(loss, np.zeros(9), tol=1e-10, options={"gtol": 1e-7})
        np.testing.assert_allclose(weights, best.x[:-1], atol=2e-5)


def test_the_smaller_system_is_solved() -> None:
    assert JointRidge(counts(0, 10, 20), 1.0).dual
    assert not JointRidge(counts(0, 20, 10), 1.0).dual


def test_logistic_predictors_that_do_not_settle_are_told_of() -> None:
    ridge = JointRidge(counts(3, 30, 8), 2.0)
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        fit_logistic(ridge, responses(4, 30, 5), max_iter=2)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("n", [1, 4, 30])
def test_directions_are_singular_vectors(dual: bool, n: int) -> None:
    X, R, penalty = counts(5, 25, 14), responses(6, 25, 9), 3.0
    factors = 1.0 / R.std(axis=0)
    W, _ = one_by_one(X, R, penalty)
    U, values, _ = np.linalg.svd(W * factors, full_matrices=False)
    k = min(n, 9)
    directions, found = find_directions(JointRidge(X, penalty, dual=dual).solve(R), factors, n)
    np.testing.assert_allclose(found, values[:k], rtol=1e-8)
    assert directions.shape == (14, k)
    np.testing.assert_allclose(np.abs((directions * U[:, :k]).sum(axis=0)), 1.0, atol=1e-8)
    largest = np.abs(directions).argmax(axis=0)
    assert (directions[largest, np.arange(k)] > 0.0).all()


@pytest.mark.parametrize("dual", [True, False])
def test_no_more_directions_than_the_rank(dual: bool) -> None:
    X, R = counts(5, 25, 14), responses(6, 25, 2)
    R = R[:, [0, 1, 0, 1, 0]]
    directions, values = find_directions(JointRidge(X, 1.0, dual=dual).solve(R), np.ones(5), 4)
    assert directions.shape == (14, 2)
    assert len(values) == 2


@pytest.mark.parametrize(("dual", "direct"), WAYS)
def test_words_that_never_vary_have_no_direction(dual: bool, direct: bool) -> None:
    X, R = np.tile([0.1, 0.7, 3.3], (25, 1)), responses(6, 25, 4)
    found = JointRidge(X, 0.01 * (X**2).sum(), dual=dual, direct=direct).solve(R)
    directions, values = find_directions(found, 1.0 / R.std(axis=0), 3)
    assert directions.shape == (3, 0)
    assert len(values) == 0
