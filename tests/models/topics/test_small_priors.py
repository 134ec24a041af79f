"""Priors so small that exp ψ(α) is next to nothing, or no number: against sums of logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp

import softcount as sc
from softcount.corpus.bags import Bags
from softcount.families.columns import Columns
from softcount.topics.core import TopicCore, fold_in
from softcount.topics.data import Documents, RowPrior
from softcount.types import How

Array = np.ndarray
COUNTS = np.array([[1, 0, 0, 0], [0, 2, 1, 0], [0, 0, 0, 0], [9, 0, 3, 1], [0, 0, 0, 1.0]])
SMALL = pytest.mark.parametrize("alpha", [0.02, 3e-3, 1e-3, 1e-5])
SIZES = pytest.mark.parametrize("n_topics", [3, 300])


def topics_of(n_topics: int) -> Array:
    return np.random.default_rng(n_topics).dirichlet(np.ones(4), n_topics)


def step(log_theta: Array, log_phi: Array, alpha: float) -> tuple[Array, Array, Array]:
    """n_dk + α, n_kw, and Σ_w x log Σ_k θ φ of each document, from logarithms alone."""
    mass, of_words, logs = np.full_like(log_theta, alpha), np.zeros_like(log_phi), np.zeros(5)
    for d, w in np.argwhere(COUNTS):
        both = log_theta[d] + log_phi[:, w]
        share = COUNTS[d, w] * np.exp(both - logsumexp(both))
        mass[d] += share
        of_words[:, w] += share
        logs[d] += COUNTS[d, w] * logsumexp(both)
    return mass, of_words, logs


def expected_logs(mass: Array) -> Array:
    return np.asarray(digamma(mass) - digamma(mass.sum(axis=1, keepdims=True)))


def begun(n_topics: int, alpha: float) -> Array:
    even = np.repeat(COUNTS.sum(axis=1, keepdims=True) / n_topics, n_topics, axis=1)
    return even + alpha


def divergence(mass: Array, alpha: float) -> float:
    """Σ_d KL(Dir(α + n_d) ‖ Dir(α))."""
    K, totals = mass.shape[1], mass.sum(axis=1)
    ends = gammaln(totals) - gammaln(K * alpha)
    entries = gammaln(alpha) - gammaln(mass) + (mass - alpha) * expected_logs(mass)
    return float(ends.sum() + entries.sum())


@SMALL
@pytest.mark.parametrize("n_topics", [3, 300, 3000])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_documents_are_folded_in_as_by_logarithms(alpha: float, n_topics: int, most: int) -> None:
    topics, mass = topics_of(n_topics), begun(n_topics, alpha)
    for _ in range(most):
        mass, _, _ = step(expected_logs(mass), np.log(topics), alpha)
    prior = RowPrior(np.full(n_topics, alpha), "mean_field")
    found = fold_in(topics, Bags.of(COUNTS), prior, most, -1.0)
    assert found == pytest.approx(mass / mass.sum(axis=1, keepdims=True), rel=1e-7, abs=1e-30)


@SMALL
@SIZES
@pytest.mark.parametrize("far", [0.0, -150.0], ids=["common words", "rare words"])
def test_the_bound_is_that_of_logarithms(alpha: float, n_topics: int, far: float) -> None:
    """Two E-steps: counts, log-likelihood and the objective; a word may be rare in all topics."""
    log_phi = np.log(topics_of(n_topics)) + np.array([0.0, 0.0, far, 0.0])
    prior = RowPrior(np.full(n_topics, alpha), "mean_field")
    core = TopicCore("topics", Columns((n_topics, 4), 0.1), prior)
    (shard,) = Documents(Bags.of(COUNTS)).shards()
    mass, local = begun(n_topics, alpha), None
    for _ in range(2):
        stats = core.expect({"topics": np.exp(log_phi)}, shard, How(), local)
        new, of_words, logs = step(expected_logs(mass), log_phi, alpha)
        assert np.asarray(stats.counts["topics"]) == pytest.approx(of_words, rel=1e-7, abs=1e-30)
        assert stats.log_likelihood == pytest.approx(logs.sum(), rel=1e-9)
        assert stats.score == pytest.approx(logs.sum() - divergence(mass, alpha), rel=1e-9)
        mass, local = new, stats.local


@SMALL
@SIZES
def test_the_bound_never_falls(alpha: float, n_topics: int) -> None:
    learner = sc.VariationalBayes(max_iter=25, tol=0)
    model = sc.LDA(n_topics, doc_prior=alpha, learner=learner).fit(COUNTS)
    rises = np.diff(model.trace_.objective[1:])
    assert rises.min() > -1e-9 * abs(model.trace_.objective[-1])
    assert model.documents_.sum(axis=1) == pytest.approx(np.ones(5))
    assert model.documents_[2] == pytest.approx(np.full(n_topics, 1 / n_topics))


@pytest.mark.parametrize(
    ("n_topics", "alpha", "dtype"),
    [
        *((K, alpha, "float64") for K in (3, 300) for alpha in (0.02, 3e-3, 1e-3, 1e-5)),
        *((3, alpha, "float32") for alpha in (0.02, 3e-3, 1e-3, 1e-5)),
        (300, 0.02, "float32"),
    ],
)
@pytest.mark.parametrize(
    "learner",
    [
        sc.VariationalBayes(max_iter=4),
        sc.StochasticVB(max_iter=2, batch_size=2),
        sc.Gibbs(max_iter=6, n_chains=1),
        sc.CollapsedGibbs(max_iter=6, optimise=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_every_learner_copes(learner: Any, dtype: str, n_topics: int, alpha: float) -> None:
    model = sc.LDA(n_topics, doc_prior=alpha, word_prior=alpha, learner=learner, dtype=dtype)
    model.fit(COUNTS)
    for table in (model.topics_, model.documents_, model.transform(COUNTS)):
        assert np.isfinite(table).all()
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), rel=1e-5)
