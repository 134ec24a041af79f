"""Mixtures of points against densities and steps that are written out, and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as TheirGaussianMixture

import softcount as sc

Array = np.ndarray
COVARIANCES = ["full", "tied", "diag", "spherical", "identity"]


def points(rng: np.random.Generator, n: int = 60, n_dims: int = 3, far: float = 0.0) -> Array:
    """Three overlapping clouds."""
    centres = rng.normal(scale=2.0, size=(3, n_dims))
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, n_dims)) + far


def covariance_like(kind: str, scatter: Array, weight: float) -> Array:
    """The likeliest covariance of a kind, from Σ r (x − μ)(x − μ)ᵀ and Σ r."""
    if kind in ("full", "tied"):
        return scatter / weight
    if kind == "diag":
        return np.diag(np.diag(scatter)) / weight
    if kind == "spherical":
        return np.eye(len(scatter)) * np.trace(scatter) / (weight * len(scatter))
    return np.eye(len(scatter))


def em_by_hand(
    X: Array, each: Array, start: tuple[Array, Array, Array], kind: str
) -> tuple[float, tuple[Array, Array, Array]]:
    """One step: the weighed log-likelihood at the start, and the parameters after it."""
    weights, means, covariances = start
    densities = [
        multivariate_normal(m, c).logpdf(X) for m, c in zip(means, covariances, strict=True)
    ]
    joint = np.log(weights) + np.array(densities).T
    shares = np.exp(joint - logsumexp(joint, axis=1)[:, None]) * each[:, None]
    sizes = shares.sum(axis=0)
    centres = (shares.T @ X) / sizes[:, None]
    scatters = np.array([(r * (X - m).T) @ (X - m) for r, m in zip(shares.T, centres, strict=True)])
    if kind == "tied":
        scatters = np.array([scatters.sum(axis=0)] * len(sizes))
        found = [covariance_like(kind, s, sizes.sum()) for s in scatters]
    else:
        found = [covariance_like(kind, s, n) for s, n in zip(scatters, sizes, strict=True)]
    return float(each @ logsumexp(joint, axis=1)), (sizes / sizes.sum(), centres, np.array(found))


def random_gaussians(rng: np.random.Generator, X: Array, kind: str) -> tuple[Array, Array, Array]:
    root = rng.normal(size=(3, 3, 3))
    covariances = root @ root.transpose(0, 2, 1) + np.eye(3)
    if kind == "tied":
        covariances[:] = covariances[0]
    shaped = [covariance_like(kind, c, 1.0) for c in covariances]
    return rng.dirichlet(np.full(3, 5.0)), X[rng.choice(len(X), 3, replace=False)], np.array(shaped)


def shown_as(kind: str, covariances: Array) -> Array:
    """Covariances as `covariances_` has them."""
    if kind in ("full", "tied"):
        return covariances
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    return diagonals if kind == "diag" else diagonals[:, 0]


@pytest.mark.parametrize("kind", COVARIANCES)
@given(seed=st.integers(0, 10**6), weighted=st.booleans(), far=st.sampled_from([0.0, 1e4]))
@settings(max_examples=10, deadline=None)
def test_gaussian_steps_are_those_written_out(
    kind: str, seed: int, weighted: bool, far: float
) -> None:
    rng = np.random.default_rng(seed)
    X = points(rng, far=far)
    each = rng.uniform(0.1, 2, len(X)) if weighted else np.ones(len(X))
    here = random_gaussians(rng, X, kind)
    names = ("weights", "means", "covariances")
    init = dict(zip(names, (here[0], here[1], shown_as(kind, here[2])), strict=True))
    for steps in (1, 2, 3):
        log_likelihood, here = em_by_hand(X, each, here, kind)
        learner = sc.EM(max_iter=steps, tol=0)
        model = sc.GaussianMixture(3, covariance=kind, floor=1e-12, learner=learner)
        model.fit(X, sample_weight=each, init=init)
        assert model.trace_.log_likelihood[steps - 1] == pytest.approx(log_likelihood, rel=1e-9)
        np.testing.assert_allclose(model.weights_, here[0], atol=1e-8)
        np.testing.assert_allclose(model.means_, here[1], rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(model.covariances_, shown_as(kind, here[2]), atol=1e-7)
    logs = [multivariate_normal(m, c).logpdf(X) for m, c in zip(here[1], here[2], strict=True)]
    joint = np.log(here[0]) + np.array(logs).T
    np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=1), atol=1e-6)
    shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(X), shares, atol=1e-6)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_same_parameters_as_scikit_learn(kind: str) -> None:
    rng = np.random.default_rng(5)
    X = points(rng, n=200)
    weights, means, covariances = random_gaussians(rng, X, kind)
    precisions = np.linalg.inv(covariances)
    given_precisions = {"tied": precisions[0]}.get(kind, shown_as(kind, precisions))
    theirs = TheirGaussianMixture(
        3,
        covariance_type=kind,
        reg_covar=0.0,
        tol=0.0,
        max_iter=12,
        weights_init=weights,
        means_init=means,
        precisions_init=given_precisions,
    ).fit(X)
    init = {"weights": weights, "means": means, "covariances": shown_as(kind, covariances)}
    learner = sc.EM(max_iter=12, tol=0)
    mine = sc.GaussianMixture(3, covariance=kind, floor=1e-12, learner=learner).fit(X, init=init)
    np.testing.assert_allclose(mine.weights_, theirs.weights_, atol=1e-9)
    np.testing.assert_allclose(mine.means_, theirs.means_, atol=1e-8)
    expected = theirs.covariances_
    if kind == "tied":
        expected = np.array([expected] * 3)
    np.testing.assert_allclose(mine.covariances_, expected, atol=1e-8)
    assert mine.score(X) == pytest.approx(theirs.score(X), rel=1e-10)
    assert mine.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert mine.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)
    assert mine.predict(X).tolist() == theirs.predict(X).tolist()
