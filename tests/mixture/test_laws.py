"""The laws that every model must obey, for every mixture and every kind of class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.laws import LAWS, check_model

RNG = np.random.default_rng(8)
WORDS = RNG.poisson(0.8, (12, 6)).astype(float)
WORDS[3] = 0.0  # a document may be empty
FRACTIONS = WORDS * RNG.uniform(0.2, 1.7, WORDS.shape)
POINTS = RNG.normal(size=(12, 2)) + RNG.integers(0, 2, (12, 1)) * 3.0
LABELS = np.array([0, 1, -1, -1, 0, -1, 2, -1, -1, 1, -1, -1])
SOFT = RNG.dirichlet(np.ones(3), 12)
SOFT[[2, 5, 7]] = np.nan


class Labelled:
    """Naive Bayes as an unsupervised model has its data: labels and weights come with it."""

    def __init__(self, model: sc.NaiveBayes, y: Any, sample_weight: Any = None) -> None:
        self.model, self.y, self.sample_weight = model, y, sample_weight

    def _bind(self, X: Any) -> Any:
        return self.model._bind(X, self.y, self.sample_weight)


class Weighed:
    """A model whose items count more or less."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def _bind(self, X: Any) -> Any:
        return self.model._bind(X, np.linspace(0.0, 2.0, len(X)))


COVARIANCES = ("full", "tied", "diag", "spherical", "identity")
MODELS: dict[str, tuple[Any, Any]] = {
    "multinomial": (sc.MultinomialMixture(3), WORDS),
    "multinomial, unsmoothed": (sc.MultinomialMixture(3, smoothing=0), WORDS),
    "multinomial, fractions": (sc.MultinomialMixture(3), FRACTIONS),
    "multinomial, weighed": (Weighed(sc.MultinomialMixture(3)), WORDS),
    "multinomial, one class": (sc.MultinomialMixture(1), WORDS),
    "multinomial, many classes": (sc.MultinomialMixture(20), WORDS),
    "bernoulli": (sc.MultinomialMixture(3, bernoulli=True), WORDS),
    "bernoulli, weighed": (Weighed(sc.MultinomialMixture(3, bernoulli=True)), WORDS),
    **{
        f"gaussian, {kind}": (sc.GaussianMixture(3, covariance=kind), POINTS)
        for kind in COVARIANCES
    },
    "gaussian, weighed": (Weighed(sc.GaussianMixture(3)), POINTS),
    "k-means": (sc.KMeans(3), POINTS),
    "soft k-means": (sc.SoftKMeans(3, variance=0.7), POINTS),
    "naive bayes": (Labelled(sc.NaiveBayes(), LABELS), WORDS),
    "naive bayes, components": (Labelled(sc.NaiveBayes(n_components=2), LABELS), WORDS),
    "naive bayes, bernoulli": (Labelled(sc.NaiveBayes(bernoulli=True), LABELS), WORDS),
    "naive bayes, soft labels": (
        Labelled(sc.NaiveBayes(n_components=2, unlabelled_weight=0.3), SOFT, np.arange(12.0)),
        WORDS,
    ),
    "naive bayes, scaled": (Labelled(sc.NaiveBayes(length=3.0), LABELS), WORDS),
    "dirichlet process": (sc.DirichletProcessMixture(4), WORDS),
    "dirichlet process, bernoulli": (sc.DirichletProcessMixture(4, bernoulli=True), WORDS),
    "dirichlet process, gaussian": (sc.DirichletProcessGaussianMixture(4), POINTS),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_laws_hold(name: str) -> None:
    model, data = MODELS[name]
    report = check_model(model, data)
    assert report.passed, str(report)
    checked = {law.name for law in report}
    optional = {"soft EM never falls", "counts are derivatives"}  # no mode; no categorical family
    assert set(LAWS) - optional <= checked


@pytest.mark.parametrize("name", ["multinomial", "bernoulli", "gaussian, tied", "k-means"])
def test_the_laws_hold_where_learning_ends(name: str) -> None:
    model, data = MODELS[name]
    model = type(model)(**model.get_params()).fit(data)
    report = check_model(model, data, params=model.raw_params_)
    assert report.passed, str(report)
    assert any(law.name == "save and load" for law in report)
