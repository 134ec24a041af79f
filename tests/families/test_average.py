"""The mean of draws is made of proper parameters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from softcount.families import Gaussian, LogLinear


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical", "identity"])
def test_average_of_draws_is_proper(covariance):
    family = Gaussian(2, 3, covariance)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 3))
    counts = family.statistics(x, rng.dirichlet([1.0, 1.0], 40))
    draws = [family.draw(counts, family.uniform(), rng) for _ in range(7)]
    average = family.average(draws)
    np.testing.assert_allclose(
        family.means(average), np.mean([family.means(d) for d in draws], axis=0)
    )
    covariances = np.broadcast_to(_as_matrices(family.covariances(average), 3), (2, 3, 3))
    expected = [
        stats.multivariate_normal(mean, matrix).logpdf(x)
        for mean, matrix in zip(family.means(average), covariances, strict=True)
    ]
    np.testing.assert_allclose(family.log_density(average, x), np.transpose(expected))


def _as_matrices(covariances, n_dims):
    if covariances.ndim == 3:
        return covariances
    if covariances.ndim == 1:
        covariances = np.repeat(covariances[:, None], n_dims, axis=1)
    return np.stack([np.diag(row) for row in covariances])


def test_average_of_draws_has_the_rows_of_its_weights():
    rng = np.random.default_rng(2)
    family = LogLinear(np.array([0, 3]), sp.csr_matrix(rng.normal(size=(3, 2))), l2=1.0)
    draws = [family.random(rng) for _ in range(5)]
    average = family.average(draws)
    weights = np.mean([draw[3:] for draw in draws], axis=0)
    np.testing.assert_allclose(average[3:], weights)
    logits = family.features @ weights
    np.testing.assert_allclose(average[:3], np.exp(logits) / np.exp(logits).sum())
