"""Latent semantic analysis and k-means++, beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from softcount.kernels.threads import single_threaded
from softcount.mixture.starts import kmeans_plus_plus
from softcount.text.semantic_space import SemanticSpace


@pytest.mark.parametrize("shape", [(30, 50), (300, 200), (40, 900), (6, 8), (4, 6)])
def test_a_space_is_that_of_scikit_learn(shape: tuple[int, int]) -> None:
    counts = sparse.random(*shape, density=0.3, random_state=1, format="csr")
    counts.data = np.ceil(counts.data * 4)
    rank = min(20, min(shape) - 1)
    weights = TfidfTransformer(sublinear_tf=True)
    with single_threaded():
        svd = TruncatedSVD(rank, random_state=3).fit(weights.fit_transform(counts))
        projected = svd.transform(weights.transform(counts))
    space = SemanticSpace.of(counts, 20, seed=3)
    assert np.allclose(space.idf, weights.idf_, rtol=1e-15)
    assert np.allclose(space.axes, svd.components_, atol=1e-9)
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    assert np.allclose(space.points(counts), projected / np.maximum(lengths, 1e-300), atol=1e-9)


@pytest.mark.parametrize(("n", "k", "weighted"), [(50, 5, False), (400, 20, True), (7, 7, True)])
def test_kmeans_plus_plus_chooses_as_scikit_learn(n: int, k: int, weighted: bool) -> None:
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 3))
    weights = rng.uniform(0.1, 2.0, n) if weighted else np.ones(n)
    seed = int(np.random.default_rng(9).integers(2**31))
    with single_threaded():
        centres, _ = kmeans_plusplus(x, k, sample_weight=weights, random_state=seed)
    assert np.array_equal(kmeans_plus_plus(x, k, weights, np.random.default_rng(9)), centres)
