"""Worked examples B, D and F through the mixtures themselves; figures as printed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc

Array = np.ndarray

# B. Document mixture: columns are the words a and b

TWO_DOCUMENTS = np.array([[10, 0], [0, 10]])
THREE_DOCUMENTS = np.array([[10, 0], [5, 5], [5, 5]])


def mixture(z1: float, a1: float, a2: float) -> dict[str, Any]:
    return {"weights": [z1, 1 - z1], "words": [[a1, 1 - a1], [a2, 1 - a2]]}


B_START = mixture(0.379234, 0.760581, 0.314729)
B_EVEN = mixture(0.5, 0.5, 0.5)


def run(X: Any, start: dict[str, Any], steps: int) -> sc.MultinomialMixture:
    learner = sc.EM(tol=0, max_iter=steps)
    return sc.MultinomialMixture(2, smoothing=0, init=start, learner=learner).fit(X)


def printed(figures: list[float], digits: int = 5) -> Any:
    """Figures to so many digits."""
    return pytest.approx(figures, abs=0.50001 * 10**-digits)


def test_b1_two_documents() -> None:
    model = run(TWO_DOCUMENTS, B_START, 3)
    # printed -7.96229, before the start itself was rounded to six digits
    assert model.trace_.log_likelihood == printed([-7.96228, -1.38887, -1.38629, -1.38629])
    assert model.weights_ == pytest.approx([0.5, 0.5], abs=1e-4)
    assert model.words_ == pytest.approx(np.eye(2), abs=1e-4)
    assert np.exp(model.score_samples(TWO_DOCUMENTS)) == pytest.approx([0.5, 0.5], abs=1e-4)
    assert model.predict(TWO_DOCUMENTS).tolist() == [0, 1]


def test_b2_two_documents_from_an_even_start() -> None:
    model = run(TWO_DOCUMENTS, B_EVEN, 5)
    assert model.trace_.log_likelihood == printed([-13.86294] * 6)
    assert np.exp(model.score_samples(TWO_DOCUMENTS)) == printed([0.000977] * 2, 6)
    assert model.verdict_ is sc.Verdict.STUCK


def test_b3_three_documents() -> None:
    model = run(THREE_DOCUMENTS, B_START, 30)
    expected = [-19.53394, -17.41683, -16.03630, -15.77058] + [-15.77052] * 27
    assert model.trace_.log_likelihood == printed(expected)
    assert model.weights_ == printed([0.33, 0.67], 2)
    assert model.words_[:, 0] == pytest.approx([1.0, 0.5], abs=1e-3)
    likelihoods = np.exp(model.score_samples(THREE_DOCUMENTS))
    assert likelihoods == pytest.approx([0.333333, 0.000652, 0.000652], abs=2e-6)


def test_b4_three_documents_from_an_even_start() -> None:
    model = run(THREE_DOCUMENTS, B_EVEN, 5)
    assert model.trace_.log_likelihood == printed([-20.79442] + [-19.09543] * 5)
    assert model.words_[:, 0] == printed([0.67, 0.67], 2)
    likelihoods = np.exp(model.score_samples(THREE_DOCUMENTS))
    assert likelihoods == printed([0.017342, 0.000542, 0.000542], 6)
    assert model.verdict_ is sc.Verdict.STUCK


def test_b_nothing_underflows_in_documents_of_a_million_words() -> None:
    n = 10**6
    model = run(np.array([[n, 0], [n // 2, n // 2]]), B_START, 1)
    logs = [_log_document(n, 0), _log_document(n // 2, n // 2)]
    assert model.trace_.log_likelihood[0] == pytest.approx(sum(logs), rel=1e-12)
    assert model.weights_ == pytest.approx([0.5, 0.5], abs=1e-12)
    assert model.words_[:, 0] == pytest.approx([1.0, 0.5], abs=1e-12)


def _log_document(a: int, b: int) -> float:
    """log P(document) at B's start, from the formula."""
    classes = ((0.379234, 0.760581), (1 - 0.379234, 0.314729))
    logs = [math.log(z) + a * math.log(p) + b * math.log(1 - p) for z, p in classes]
    return max(logs) + math.log1p(math.exp(min(logs) - max(logs)))


# D. Six headlines

HEADLINES = [
    *(f"Apple released {thing} ." for thing in ("iPod", "iPhone", "iPad")),
    *(f"Tom bought one {thing} ." for thing in ("iPod", "iPhone", "iPad")),
]
TEMPLATES = ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("init", ["kmeans", "random", "spectral", "anchor"])
@pytest.mark.parametrize("cut", [False, True], ids=["texts", "words"])
def test_d_separating_starts_find_the_two_templates(init: str, smoothing: float, cut: bool) -> None:
    data = [text.split() for text in HEADLINES] if cut else HEADLINES
    model = sc.MultinomialMixture(
        2, init=init, smoothing=smoothing, learner=sc.EM(n_init=5, max_iter=200)
    ).fit(data)
    assert model.labels_.tolist() in TEMPLATES
    assert model.fit_predict(data).tolist() in TEMPLATES


@pytest.mark.parametrize("bernoulli", [False, True])
def test_d_a_uniform_start_cannot_move_and_says_so(bernoulli: bool) -> None:
    model = sc.MultinomialMixture(2, init="uniform", smoothing=0, bernoulli=bernoulli)
    model.fit(HEADLINES)
    assert model.verdict_ is sc.Verdict.STUCK
    assert "indistinguishable" in model.verdict_
    np.testing.assert_allclose(model.words_[0], model.words_[1])


# F. k-means as hard EM


def lloyd(X: Array, centres: Array, steps: int) -> list[tuple[Array, Array]]:
    """Centres and labels, iteration by iteration; a centre without points stays where it is."""
    found = []
    for _ in range(steps + 1):
        distances = ((X[:, None, :] - centres[None]) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        found.append((centres, labels))
        centres = np.array(
            [X[labels == k].mean(axis=0) if (labels == k).any() else c
             for k, c in enumerate(centres)]
        )  # fmt: skip
    return found


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    n_dims=st.integers(1, 4),
    n_classes=st.integers(1, 6),
)
@settings(max_examples=40, deadline=None)
def test_f_k_means_is_lloyds(seed: int, n: int, n_dims: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_dims)) * 3.0
    centres = X[rng.integers(n, size=n_classes)] + rng.normal(size=(n_classes, n_dims)) * 0.1
    learner = sc.HardEM(max_iter=6, tol=0)
    model = sc.KMeans(n_classes, learner=learner)
    model.fit(X, init={"means": centres}, keep_params=True)
    expected = lloyd(X, centres, 6)
    for params, (moved, labels) in zip(model.trace_.params, expected, strict=True):
        means = params["points"][:, :n_dims] + model.offset_
        np.testing.assert_allclose(means, moved, atol=1e-9)
        joint = model.core_.joint(params, model.observe(X, first=False))
        assert joint.argmax(axis=1).tolist() == labels.tolist()
    last, labels = expected[-1]
    assert model.labels_.tolist() == labels.tolist()
    assert model.inertia_ == pytest.approx(((X - last[labels]) ** 2).sum(), rel=1e-9, abs=1e-9)
    distances = np.sqrt(((X[:, None] - last[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(model.transform(X), distances, atol=1e-6)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_f_hard_em_of_gaussians_with_identity_covariance_is_lloyds(seed: int) -> None:
    """The class weights are not learned in k-means: here they are held even by the data."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 30.0])
    centres = np.array([[0.0, 0.0], [30.0, 30.0]])
    learner = sc.HardEM(max_iter=3, tol=0)
    model = sc.GaussianMixture(2, covariance="identity", learner=learner)
    model.fit(X, init={"means": centres})
    np.testing.assert_allclose(model.means_, lloyd(X, centres, 3)[-1][0], atol=1e-9)


@given(seed=st.integers(0, 10**6), n_classes=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_f_soft_k_means_of_tiny_variance_is_k_means(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2)) * 3.0
    centres = X[:n_classes] + 0.01
    soft = sc.SoftKMeans(n_classes, variance=1e-9, learner=sc.EM(max_iter=8, tol=0))
    soft.fit(X, init={"means": centres})
    hard = sc.KMeans(n_classes, learner=sc.HardEM(max_iter=8, tol=0))
    hard.fit(X, init={"means": centres})
    np.testing.assert_allclose(soft.means_, hard.means_, atol=1e-5)
    assert soft.labels_.tolist() == hard.labels_.tolist()
