"""Small problems of two domains and more, made by chance."""

from __future__ import annotations

import numpy as np

from softcount.types import Array


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
