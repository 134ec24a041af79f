"""Solving from moments, as a learner and as a start."""

from __future__ import annotations

import numpy as np
import pytest

import softcount as sc
from softcount.core.verdict import Verdict


def simulated(n: int = 3000, K: int = 4, V: int = 40, seed: int = 3):
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(V, 0.2), K)
    classes = rng.integers(K, size=n)
    truth = {"weights": np.full(K, 1 / K), "words": words}
    return np.array([rng.multinomial(25, words[k]) for k in classes]), classes, truth


def objective(model):
    return model.trace_.objective[-1]


@pytest.mark.parametrize("method", ["tensor", "anchor"])
def test_alone_it_takes_no_step_and_finds_the_classes(method):
    x, classes, _ = simulated()
    model = sc.MultinomialMixture(4, learner=sc.Spectral(method=method)).fit(x)
    assert model.verdict_ is Verdict.SOLVED
    assert model.verdict_.good
    assert len(model.trace_) == 1
    assert sc.metrics.agreement(model.labels_, classes).one_to_one > 0.95


@pytest.mark.parametrize("start", ["spectral", "anchor"])
def test_em_from_it_reaches_what_em_from_the_truth_reaches(start):
    x, _, truth = simulated()
    learner = sc.EM(max_iter=300, tol=1e-12)
    known = sc.MultinomialMixture(4, smoothing=0, learner=learner).fit(x, init=truth)
    found = sc.MultinomialMixture(4, smoothing=0, init=start, learner=learner).fit(x)
    assert objective(found) == pytest.approx(objective(known), rel=1e-7)


def test_steps_after_it_are_those_of_em_from_the_same_start():
    x, _, _ = simulated(500)
    steps = sc.MultinomialMixture(4, learner=sc.Spectral(max_iter=3, tol=0)).fit(x)
    start = sc.MultinomialMixture(4, init="spectral", learner=sc.EM(max_iter=3, tol=0)).fit(x)
    assert steps.trace_.objective.tolist() == start.trace_.objective.tolist()


def test_a_model_without_moments_says_so():
    with pytest.raises(sc.LearnerError, match="spectral"):
        sc.KMeans(2, learner=sc.Spectral()).fit(np.eye(4))


def test_dials_are_checked():
    with pytest.raises(sc.LearnerError, match="method"):
        sc.Spectral(method="guess")
    with pytest.raises(sc.LearnerError, match="max_iter"):
        sc.Spectral(max_iter=-1)
    with pytest.raises(sc.LearnerError, match="max_iter"):
        sc.EM(max_iter=0)
