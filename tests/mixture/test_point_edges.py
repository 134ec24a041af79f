"""What happens at the edges: few points, equal points, points far away, and dead classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import softcount as sc

RNG = np.random.default_rng(4)
STARTS = ["kmeans", "k-means++", "random"]
COVARIANCES = ["full", "tied", "diag", "spherical", "identity"]


def demand_sound(model: Any, X: Any) -> None:
    """Parameters are proper, and every figure is a number."""
    assert model.weights_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.covariances_).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_class_of_points_may_die_out(covariance: str) -> None:
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 5.0])
    means = np.array([[0.0, 0.0], [5.0, 5.0], [900.0, 900.0]])
    make, learner = sc.GaussianMixture, sc.EM(max_iter=10, tol=0)
    starved = make(3, covariance=covariance, learner=learner).fit(X, init={"means": means})
    barred = make(3, covariance=covariance, learner=learner)
    barred.fit(X, init={"means": means, "weights": [0.5, 0.5, 0.0]})
    alive = make(2, covariance=covariance, learner=learner).fit(X, init={"means": means[:2]})
    for dead in (starved, barred):
        assert dead.weights_[2] == pytest.approx(0.0, abs=1e-12)
        demand_sound(dead, X)
        np.testing.assert_allclose(dead.means_[:2], alive.means_, atol=1e-9)
        np.testing.assert_allclose(dead.covariances_[:2], alive.covariances_, atol=1e-9)


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(
    ("n_classes", "X"),
    [
        (1, RNG.normal(size=(1, 2))),
        (8, RNG.normal(size=(5, 2))),
        (3, np.ones((6, 2))),
        (2, np.column_stack([RNG.normal(size=(6, 1)), np.ones(6)])),
        (2, RNG.normal(size=(4, 9))),
        (2, RNG.normal(size=(8, 1))),
    ],
    ids=["one point", "many classes", "duplicates", "flat", "more dimensions than points", "line"],
)
def test_few_points(n_classes: int, X: Any, covariance: str, init: str) -> None:
    model = sc.GaussianMixture(n_classes, covariance=covariance, init=init).fit(X)
    demand_sound(model, X)
    assert model.verdict_ is not sc.Verdict.FELL


@pytest.mark.parametrize("kind", [sc.KMeans, sc.SoftKMeans])
def test_few_points_for_k_means(kind: Any) -> None:
    for n_classes, X in ((1, np.ones((1, 2))), (4, np.ones((3, 2))), (5, np.eye(3))):
        model = kind(n_classes).fit(X)
        demand_sound(model, X)
        assert model.labels_.shape == (len(X),)


def test_points_far_from_zero() -> None:
    """Sums of squares near 10¹⁶ leave no digit for a variance of one, unless data are centred."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + 6.0 * (np.arange(60) % 2)[:, None]
    near, far = (sc.GaussianMixture(2).fit(X + shift) for shift in (0.0, 1e8))
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-5)
    np.testing.assert_allclose(far.means_ - 1e8, near.means_, atol=1e-5)


def test_sparse_points_are_refused() -> None:
    with pytest.raises(TypeError, match="dense"):
        sc.KMeans(2).fit(sparse.csr_matrix(np.eye(3)))
