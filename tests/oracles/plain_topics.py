"""Topic models written out in numpy, one dense array at a time: shares nothing with src.

Arrays: documents d, topics k, words w; r[d, k, w] is p(topic | document, word).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln


def documents(n: int = 60, V: int = 30, K: int = 3, length: int = 40, seed: int = 0) -> Any:
    """Counts of documents of a known model, and its topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.1), K)
    shares = rng.dirichlet(np.full(K, 0.3), n)
    return np.array([rng.multinomial(length, row) for row in shares @ topics]), topics


def distance(found: Any, topics: Any) -> float:
    """How far the worst of the topics is from the one found that is nearest (0 to 2)."""
    return float(max(min(np.abs(a - b).sum() for b in found) for a in topics))


def even(n: int, K: int, allowed: Any = None) -> Any:
    """Rows that prefer nothing that they may have."""
    rows = np.ones((n, K)) if allowed is None else allowed.astype(float)
    return rows / rows.sum(axis=1, keepdims=True)


def expected(x: Any, theta: Any, phi: Any) -> Any:
    """n_dk, n_kw and log p(words)."""
    joint = theta[:, :, None] * phi[None, :, :]
    total = joint.sum(axis=1, keepdims=True)
    weighted = x[:, None, :] * np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    logs = np.where(x > 0, x * np.log(np.where(x > 0, total[:, 0], 1.0)), 0.0)
    return weighted.sum(axis=2), weighted.sum(axis=0), float(logs.sum())


def normal(rows: Any) -> Any:
    return rows / rows.sum(axis=1, keepdims=True)


def em(
    x: Any,
    phi: Any,
    steps: int,
    of_documents: float = 0.0,
    of_words: Any = 0.0,
    allowed: Any = None,
) -> Any:
    """φ after so many steps of EM, with what is added to counts, and every step's objective."""
    theta, objectives = even(len(x), len(phi), allowed), []
    mask = np.ones_like(theta, bool) if allowed is None else allowed
    for _ in range(steps):
        n_dk, n_kw, log = expected(x, theta, phi)
        priors = [(of_documents * np.ones_like(theta), theta), (of_words * np.ones_like(phi), phi)]
        some = [(a > 0) & m for (a, _), m in zip(priors, (mask, True), strict=True)]
        log += sum((a[s] * np.log(p[s])).sum() for (a, p), s in zip(priors, some, strict=True))
        objectives.append(log)
        mass = np.where(mask, n_dk + of_documents, 0.0)
        theta = np.where(mass.any(axis=1, keepdims=True), mass, theta)
        theta, phi = normal(theta), normal(n_kw + of_words)
    return phi, np.array(objectives)


def dirichlet_divergence(a: Any, b: Any) -> float:
    """KL(Dir(a) ‖ Dir(b))."""
    expected_log = digamma(a) - digamma(a.sum())
    constant = gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
    return float(constant + ((a - b) * expected_log).sum())


def vb(x: Any, phi: Any, steps: int, alpha: float, beta: float, allowed: Any = None) -> Any:
    """E[φ] after so many steps of mean field, and the bound after each but the first."""
    n, K = len(x), len(phi)
    mask = np.ones((n, K), bool) if allowed is None else allowed
    gamma = np.where(mask, even(n, K, allowed) * x.sum(axis=1, keepdims=True) + alpha, 0.0)
    bounds, lam = [], None
    for step in range(steps + 1):
        theta = np.zeros((n, K))
        for d in range(n):
            theta[d, mask[d]] = np.exp(digamma(gamma[d, mask[d]]) - digamma(gamma[d].sum()))
        if lam is not None:
            phi = np.exp(digamma(lam) - digamma(lam.sum(axis=1, keepdims=True)))
        n_dk, n_kw, bound = expected(x, theta, phi)
        if lam is not None:
            bound -= sum(
                dirichlet_divergence(gamma[d, mask[d]], np.full(mask[d].sum(), alpha))
                for d in range(n)
            )
            bound -= sum(dirichlet_divergence(row, np.full(len(row), beta)) for row in lam)
            bounds.append(bound)
        if step < steps:
            gamma, lam = np.where(mask, n_dk + alpha, 0.0), n_kw + beta
    return normal(lam), np.array(bounds)
