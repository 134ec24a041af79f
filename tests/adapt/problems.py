"""Problems of two domains and more: small ones made by chance, and reviews of products."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

from softcount.core.types import Array
from tests import real


def two_domains(
    seed: int, n: int = 60, n_target_labels: int = 20, K: int = 2, n_sources: int = 1
) -> tuple[Array, Array, Array, Array]:
    """X, labels (−1: hidden), domains, and all labels. Some columns mean the same in all domains,
    some mean in the target the contrary of what they mean in the first source."""
    rng = np.random.default_rng(seed)
    domain = np.concatenate([np.full(n, k) for k in (*range(1, n_sources + 1), -1)])
    truth = rng.integers(0, K, len(domain))
    truth[:K] = truth[-K:] = np.arange(K)
    X = rng.normal(size=(len(domain), 12))
    X[:, :3] += 1.0 * rng.normal(size=(K, 3))[truth]
    of_domain = rng.normal(size=(n_sources + 2, K, 4))
    of_domain[-1] = -of_domain[1]
    X[:, 3:7] += of_domain[domain, truth]
    y = truth.copy()
    y[np.flatnonzero(domain < 0)[: n - n_target_labels]] = -1
    return X, y, domain, truth


def real_reviews(source: str, target: str) -> tuple[Any, Array, Any, Array]:
    """Rows of both domains, labels of the source (−1: the target's), test rows of the target and
    their labels. Skips the test where the corpus is not there."""
    (S, y), (T, _), (new, truth) = map(
        _counts, (f"{source}.train", f"{target}.train", f"{target}.test")
    )
    counts = sparse.vstack([S, T], format="csr")
    weigh = TfidfTransformer(sublinear_tf=True).fit(counts)
    labels = np.concatenate([y, np.full(T.shape[0], -1)])
    return weigh.transform(counts), labels, weigh.transform(new), truth


def _counts(name: str) -> tuple[Any, Array]:
    real.lines(f"blitzer_sentiment/{name}.svmlight.gz")  # skips if there is no such corpus
    path = real.FOLDER / "blitzer_sentiment" / f"{name}.svmlight.gz"
    X, y = load_svmlight_file(str(path), n_features=5000, zero_based=True)
    return X, (y > 0).astype(int)
