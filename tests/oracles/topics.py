"""Latent Dirichlet allocation by log-gammas and enumeration, for samplers to be held against."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import chi2

from softcount.topics import gibbs as collapsed
from softcount.topics.gibbs import CollapsedTopics

BOTH = pytest.mark.parametrize("lists", [False, True], ids=["dense", "lists"])


def sampler(counts, alpha, beta, z=None, lists=False, seed=0, **more: Any) -> CollapsedTopics:
    """A sampler of a dense table of counts, keeping the words' topics in one way or the other.

    ``allowed`` (documents, topics) and ``seed_counts`` (topics, words) may be dense tables.
    """
    sparse = csr_matrix(np.asarray(counts))
    given = {name: csr_matrix(more[name]) for name in ("allowed", "seed_counts") if name in more}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collapsed, "LISTS_FROM", 1 if lists else 10**9)
        return CollapsedTopics(
            sparse.indptr,
            sparse.indices,
            sparse.data,
            sparse.shape[1],
            alpha=alpha,
            beta=beta,
            topics=z,
            seed=seed,
            **(more | given),
        )


def tokens(counts) -> list[tuple[int, int]]:
    """(document, word) of every token, in order."""
    table = np.asarray(counts)
    return [(d, w) for d, w in product(*map(range, table.shape)) for _ in range(table[d, w])]


def tally(counts, z, n_topics) -> tuple[np.ndarray, np.ndarray]:
    """n_dk and n_kw."""
    n_docs, n_words = np.shape(counts)
    of_documents, of_topics = np.zeros((n_docs, n_topics)), np.zeros((n_topics, n_words))
    for (d, w), k in zip(tokens(counts), z, strict=True):
        of_documents[d, k] += 1
        of_topics[k, w] += 1
    return of_documents, of_topics


def dirichlet_multinomial(rows, prior) -> float:
    """log p of every row's tokens in their order, by log-gammas."""
    total = 0.0
    for row in rows:
        total += math.lgamma(sum(prior)) - math.lgamma(sum(prior) + sum(row))
        total += sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(prior, row, strict=True))
    return total


def joint(counts, alpha, beta, z, allowed=None, seed_counts=None) -> float:
    """log p(w, z): a document's prior is over the topics that it may have, a topic's β + seeds."""
    of_documents, of_topics = tally(counts, z, len(alpha))
    total = 0.0
    for d, row in enumerate(of_documents):
        free = allowed is None or not any(allowed[d])
        may = [k for k in range(len(alpha)) if free or allowed[d][k]]
        if sum(row[k] for k in may) != sum(row):
            return -math.inf
        total += dirichlet_multinomial([[row[k] for k in may]], [alpha[k] for k in may])
    for k, row in enumerate(of_topics):
        prior = [beta + (0 if seed_counts is None else seed_counts[k][w]) for w in range(len(row))]
        total += dirichlet_multinomial([row], prior)
    return total


@st.composite
def cases(draw):
    n_docs, n_words, n_topics = (draw(st.integers(1, top)) for top in (4, 4, 11))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.integers(0, 4, (n_docs, n_words))
    alpha = draw(st.sampled_from([1e-4, 0.3, 50.0])) * rng.uniform(0.5, 2, n_topics)
    beta = draw(st.sampled_from([1e-9, 0.1, 20.0]))
    return counts, alpha, beta, rng.integers(0, n_topics, counts.sum()), draw(st.booleans())


def normalised(logs) -> np.ndarray:
    return np.exp(logs - np.logaddexp.reduce(logs))


def surprise(seen: Counter, expected: dict) -> float:
    """χ² over its 0.9999 quantile; what is expected less than five times is put together."""
    n = seen.total()
    pairs = [(seen[key], n * p) for key, p in expected.items() if n * p >= 5]
    rest = n - sum(o for o, _ in pairs), n - sum(e for _, e in pairs)
    pairs += [rest] if rest[1] >= 5 else []
    return sum((o - e) ** 2 / e for o, e in pairs) / chi2.ppf(0.9999, len(pairs) - 1)


def posterior(counts, alpha, beta, temper=1.0, allowed=None, seed_counts=None) -> dict:
    """p(z | w) of every z, by enumeration."""
    every = list(product(range(len(alpha)), repeat=int(np.sum(counts))))
    logs = [temper * joint(counts, alpha, beta, z, allowed, seed_counts) for z in every]
    return dict(zip(every, normalised(np.array(logs)), strict=True))


def shapes(table: dict) -> Counter:
    """The same, by which tokens share a topic and what the last token's topic is.

    Of many topics there are too many z for a χ² test to see small differences.
    """
    merged: Counter = Counter()
    for z, n in table.items():
        merged[tuple(z.index(k) for k in z), z[-1]] += n
    return merged
