"""Documents of a known mixture, and a plain EM to judge starts by: shares nothing with src."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp


def documents(K, V, N, overlap, seed, length=30):
    """Counts, true weights and true words; ``overlap`` is the words' Dirichlet parameter."""
    rng = np.random.default_rng(seed)
    mix, words = rng.dirichlet(np.full(K, 5.0)), rng.dirichlet(np.full(V, overlap), K)
    counts = np.array([rng.multinomial(length, words[z]) for z in rng.choice(K, N, p=mix)])
    return csr_matrix(counts, dtype=float), mix, words


def em(counts, mix, words, steps):
    """Log-likelihood after so many steps of EM."""
    with np.errstate(divide="ignore"):
        for step in range(steps + 1):
            # a dense product: 0 · −inf must count as 0, so words of no class get a tiny number
            joint = counts @ np.log(np.maximum(words, 1e-300)).T + np.log(mix)
            total = logsumexp(joint, axis=1, keepdims=True)
            if step == steps:
                return float(total.sum())
            posterior = np.exp(joint - total)
            mix = posterior.mean(axis=0)
            words = (counts.T @ posterior).T
            words /= words.sum(axis=1, keepdims=True)


def distance(words, truth):
    """Mean total variation of classes from the true ones, in the best order (K ≤ 6)."""
    apart = np.abs(words[:, None] - truth[None]).sum(axis=2) / 2
    K = len(truth)
    return min(apart[list(order), range(K)].mean() for order in permutations(range(K)))


def random_start(K, V, rng):
    return np.full(K, 1 / K), rng.dirichlet(np.ones(V), K)


def assert_probabilities(mix, words, K, V):
    assert mix.shape == (K,)
    assert words.shape == (K, V)
    assert np.isfinite(words).all()
    assert (words >= 0).all()
    assert (mix > 0).all()
    np.testing.assert_allclose(words.sum(axis=1), 1.0)
    np.testing.assert_allclose(mix.sum(), 1.0)
