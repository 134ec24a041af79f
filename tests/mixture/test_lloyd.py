"""k-means with bounds: the classes and sums are those of all distances, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.mixture.lloyd import Nearest, find_classes


def clouds(n: int, dims: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return 3.0 * rng.normal(size=(7, dims))[rng.integers(7, size=n)] + rng.normal(size=(n, dims))


def nearest_of_all(x: Any, means: Any) -> Any:
    """By all differences; the first of equals."""
    return ((x[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize(("n", "dims", "k"), [(500, 5, 3), (203, 13, 20), (700, 8, 8), (40, 2, 30)])
@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e40])
def test_bounds_change_nothing(n: int, dims: int, k: int, scale: float) -> None:
    x = scale * clouds(n, dims)
    weights = np.random.default_rng(1).random(n)
    means, kept = x[:k].copy(), Nearest(x)
    for _ in range(12):
        first = [part.copy() for part in Nearest(x).step(x, means, weights)]
        found = kept.step(x, means, weights)
        assert all((a == b).all() for a, b in zip(first, found, strict=True))
        classes = nearest_of_all(x, means)
        assert (find_classes(x, means) == classes).all()
        sizes = np.bincount(classes, weights, minlength=k)
        np.testing.assert_allclose(found[0], sizes, rtol=1e-12)
        means = np.where(sizes[:, None] > 0, found[1] / np.maximum(sizes, 1e-300)[:, None], means)


def test_of_equal_means_the_first_is_taken() -> None:
    x = clouds(300, 9)
    means = np.repeat(x[:4], 3, axis=0)
    assert set(find_classes(x, means).tolist()) <= {0, 3, 6, 9}
    kept = Nearest(x)
    kept.step(x, means + 1e-9, np.ones(300))
    sizes, _, _ = kept.step(x, means, np.ones(300))
    assert sizes[[1, 2, 4, 5]].sum() == 0.0


def test_another_start_with_the_same_state() -> None:
    x, rng = clouds(300, 6), np.random.default_rng(2)
    kept = Nearest(x)
    for _ in range(20):  # means that jump
        means = x[rng.choice(300, 5)] * rng.choice([0.1, 1.0, 50.0])
        ours = [part.copy() for part in kept.step(x, means, np.ones(300))]
        fresh = Nearest(x).step(x, means, np.ones(300))
        assert all((a == b).all() for a, b in zip(ours, fresh, strict=True))


def test_as_hard_em_of_the_mixture() -> None:
    """The same steps as those of soft k-means by hard EM, which computes all probabilities."""
    x = clouds(400, 6)
    start = {"means": x[:7]}
    learner = sc.HardEM(max_iter=9, tol=0.0)
    ours = sc.KMeans(7, learner=learner).fit(x, init=start)
    plain = sc.SoftKMeans(7, learner=learner).fit(x, init=start)
    np.testing.assert_allclose(ours.trace_.objective, plain.trace_.objective, rtol=1e-12)
    np.testing.assert_allclose(ours.means_, plain.means_, rtol=1e-12)
    assert (ours.labels_ == plain.labels_).all()
    residuals = x - ours.means_[ours.labels_]
    assert ours.inertia_ == pytest.approx((residuals**2).sum(), rel=1e-12)
