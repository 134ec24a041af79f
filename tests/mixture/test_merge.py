"""Classes that are one are joined, and the bound rises; so Dirichlet processes count right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import multivariate_t

import softcount as sc
from softcount.families import Categorical, Gaussian
from softcount.families.gaussian import NIW
from softcount.mixture.process import evidence
from tests.metrics.test_select import documents, points


@given(st.lists(st.floats(0.0, 30.0), min_size=2, max_size=6), st.floats(0.05, 3.0))
@settings(max_examples=30, deadline=None)
def test_evidence_of_words_is_polyas(counts: list[float], prior: float) -> None:
    c, V = np.array(counts), len(counts)
    polya = gammaln(V * prior) - gammaln(V * prior + c.sum())
    polya += (gammaln(prior + c) - gammaln(prior)).sum()
    assert evidence(Categorical((1, V), prior), c[None]) == pytest.approx(polya, rel=1e-8, abs=1e-8)


def test_evidence_of_points_is_a_chain_of_students() -> None:
    """p(x₁) p(x₂ | x₁) …, each a Student t of the posterior so far (Murphy 2007, §9)."""
    x = np.random.default_rng(0).normal(size=(6, 2))
    family = Gaussian(1, 2, "full", NIW(mean=0.0, kappa=0.5, dof=4.0, scale=1.5))
    kappa, dof, mean, scale = 0.5, 4.0, np.zeros(2), 1.5 * np.eye(2)
    total = 0.0
    for row in x:
        shape = scale * (kappa + 1) / (kappa * (dof - 1))
        total += multivariate_t(mean, shape, df=dof - 1).logpdf(row)
        away = row - mean
        scale = scale + kappa / (kappa + 1) * np.outer(away, away)
        mean, kappa, dof = (kappa * mean + row) / (kappa + 1), kappa + 1, dof + 1
    assert evidence(family, family.statistics(x, np.ones((6, 1)))) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("bernoulli", [False, True])
def test_ten_classes_of_documents_by_variational_bayes(bernoulli: bool) -> None:
    model = sc.DirichletProcessMixture(20, bernoulli=bernoulli).fit(documents(0, n=500))
    assert abs(model.n_classes_ - 10) <= 2
    assert model.verdict_.good


def test_ten_classes_of_documents_by_collapsed_gibbs() -> None:
    learner = sc.CollapsedGibbs(max_iter=40)
    model = sc.DirichletProcessMixture(20, learner=learner).fit(documents(0, n=500))
    assert abs(model.n_classes_ - 10) <= 2


def test_ten_classes_of_points() -> None:
    model = sc.DirichletProcessGaussianMixture(20).fit(points(0))
    assert abs(model.n_classes_ - 10) <= 2


def test_joining_raises_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = documents(1, classes=4, words=40, n=200)
    joined = sc.DirichletProcessMixture(12).fit(counts)
    monkeypatch.setattr("softcount.mixture.process.ClassMerger.merge", lambda self: None)
    apart = sc.DirichletProcessMixture(12).fit(counts)
    assert joined.n_classes_ == 4 < apart.n_classes_
    assert joined.trace_.objective[-1] > apart.trace_.objective[-1]


@pytest.mark.parametrize("weights", [None, "twice"])
def test_the_settings_stay_and_weights_count(weights: Any) -> None:
    counts = documents(1, classes=3, words=40, n=120)
    learner = sc.VariationalBayes(n_init=2)
    model = sc.DirichletProcessMixture(8, init="random", short_runs=2, learner=learner)
    model.fit(counts, sample_weight=None if weights is None else np.full(120, 2.0))
    assert model.learner is learner
    assert model.short_runs == 2
    assert model.n_classes_ == 3
    assert math.isclose(model.weights_.sum(), 1.0, rel_tol=1e-9)


def test_the_trace_shows_where_classes_were_joined() -> None:
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 40, axis=0)
    points += rng.normal(size=points.shape)
    model = sc.DirichletProcessGaussianMixture(10).fit(points)
    assert [state.step for state in model.trace_] == list(range(len(model.trace_)))
    assert np.isneginf(model.trace_.objective[0])
    assert np.isfinite(model.trace_.objective[1:]).all()
    assert (np.diff(model.trace_.objective[1:]) > -1e-9 * abs(model.trace_.objective[-1])).all()
    assert model.n_iter_ == len(model.trace_) - 1
    restarts = [state.step for state in model.trace_ if state.restarted]
    assert restarts, "ten classes for three clusters: some must have been joined"
    assert 1 < restarts[0] < len(model.trace_)
    again = sc.DirichletProcessGaussianMixture(10).fit(points, keep_params=True)
    for kept, state in zip(again.trace_, model.trace_, strict=True):
        assert kept.restarted == state.restarted
        if kept.restarted:  # fewer classes have members at the new start than a step before it
            assert state.restarted_from == {}
            start, before = kept.restarted_from, again.trace_[kept.step - 1].params
            assert (start["weights"] > 1e-3).sum() < (before["weights"] > 1e-3).sum()
