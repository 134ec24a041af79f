"""The topics of documents are those of the state that topics and trace are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import digamma

import softcount as sc
from softcount.corpus import building
from softcount.errors import DataError
from tests.models.topics.common import LEARNERS
from tests.oracles import plain_topics

X, _ = plain_topics.documents(n=40, V=12, length=15)
K, V = 3, X.shape[1]
START = np.random.default_rng(5).dirichlet(np.ones(V), K)
BATCH = [
    learner
    for learner in LEARNERS
    if learner is None
    or not (
        learner.m == "draw" or isinstance(learner, sc.TemperedEM | sc.OnlineEM | sc.StochasticVB)
    )
]
FOLDED = [learner for learner in LEARNERS if learner not in BATCH]


def plain_states(steps: int, of_documents: float = 0.0, of_words: float = 0.0) -> list[Any]:
    """(θ, φ) at the start and after each step of EM, written out."""
    theta, phi = plain_topics.even(len(X), K), START
    states = [(theta, phi)]
    for _ in range(steps):
        n_dk, n_kw, _ = plain_topics.expected(X, theta, phi)
        theta = plain_topics.normal(n_dk + of_documents)
        phi = plain_topics.normal(n_kw + of_words)
        states.append((theta, phi))
    return states


def likelihood(x: Any, theta: Any, phi: Any) -> float:
    chances = np.where(x > 0, theta @ phi, 1.0)
    return float((x * np.log(chances)).sum())


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize(
    ("model", "added"), [(sc.PLSA(K), (0.0, 0.0)), (sc.LDA(K), (0.1, 0.01))], ids=["PLSA", "LDA"]
)
def test_documents_are_those_of_the_last_m_step(model: Any, added: Any, steps: int) -> None:
    model.set_params(learner=sc.EM(max_iter=steps, tol=0), scouts=0)
    model.fit(X, init={"topics": START}, keep_params=True)
    states = plain_states(steps, *added)
    np.testing.assert_allclose(model.documents_, states[-1][0], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.topics_, states[-1][1], rtol=1e-9, atol=1e-14)
    for params, (theta, phi) in zip(model.trace_.params, states, strict=True):
        np.testing.assert_allclose(params["documents"], theta, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(params["topics"], phi, rtol=1e-9, atol=1e-14)
    logs = [likelihood(X, *state) for state in states]
    np.testing.assert_allclose(model.trace_.log_likelihood, logs, rtol=1e-12)


def test_one_step_leaves_documents_near_where_they_began() -> None:
    """Folded in to the end, they would be as good as all of one topic."""
    counts = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 1]])
    topics = np.array([[0.26, 0.25, 0.25, 0.24], [0.24, 0.25, 0.25, 0.26]])
    model = sc.PLSA(2, scouts=0, learner=sc.EM(max_iter=1, tol=0))
    model.fit(counts, init={"topics": topics})
    first = (2 * 0.26 / 0.5 + 0.25 / 0.5) / 3
    assert model.documents_[0] == pytest.approx([first, 1 - first])
    assert model.transform(counts)[0].max() > 0.95


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("learner", BATCH, ids=str)
def test_tables_and_trace_belong_together(learner: Any, on_disk: bool, tmp_path: Path) -> None:
    """Whatever learner, however the documents are cut, of the best of several runs."""
    data: Any = X
    if on_disk:
        with patch.multiple(building, SHARD_DOCUMENTS=9):
            data = sc.Archive.build(X, tmp_path / "a")
    labels = [0, -1, [1, 2], -1] * 10
    model = sc.LDA(K, learner=learner, init="random", scouts=0).fit(data, labels=labels)
    if learner is not None and learner.m == "mean_field":
        model.fit(data, labels=labels, keep_params=True)
        theta, phi = (model.trace_.params[-1][name] for name in ("documents", "topics"))
    else:
        theta, phi = model.documents_, model.topics_
    last = model.trace_.log_likelihood[-1]
    assert likelihood(X, theta, phi) == pytest.approx(last, rel=1e-10)
    assert not model.documents_[0::4, 1:].any()
    assert not model.documents_[2::4, 0].any()
    np.testing.assert_allclose(model.documents_.sum(axis=1), 1.0)
    words = X.sum(axis=1)
    np.testing.assert_allclose(model.weights_, words @ model.documents_ / words.sum())


def test_of_several_runs_the_best_ones_are_kept() -> None:
    learner = sc.EM(max_iter=3, tol=0, n_init=5)
    model = sc.PLSA(K, learner=learner, init="random", scouts=0).fit(X)
    finals = [trace.objective[-1] for trace in model.fit_.traces]
    assert model.trace_.objective[-1] == max(finals) > min(finals)
    assert likelihood(X, model.documents_, model.topics_) == pytest.approx(max(finals), rel=1e-12)


def test_of_several_runs_those_that_development_chooses_are_kept() -> None:
    learner = sc.EM(max_iter=3, tol=0, n_init=5)
    model = sc.PLSA(K, learner=learner, init="random", scouts=0).fit(X, development=X[:3])
    last = model.trace_.log_likelihood[-1]
    assert likelihood(X, model.documents_, model.topics_) == pytest.approx(last, rel=1e-12)


def test_under_mean_field_they_are_the_posteriors_mean() -> None:
    alpha, beta = 0.3, 0.2
    learner = sc.VariationalBayes(max_iter=4, tol=0)
    model = sc.LDA(K, doc_prior=alpha, word_prior=beta, learner=learner, scouts=0)
    model.fit(X, init={"topics": START})
    gamma, phi = X.sum(axis=1, keepdims=True) / K + alpha + np.zeros((len(X), K)), START
    for _ in range(4):
        theta = np.exp(digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True)))
        n_dk, n_kw, _ = plain_topics.expected(X, theta, phi)
        gamma, lam = n_dk + alpha, n_kw + beta
        phi = np.exp(digamma(lam) - digamma(lam.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(model.documents_, plain_topics.normal(gamma), rtol=1e-9)
    np.testing.assert_allclose(model.topics_, plain_topics.normal(lam), rtol=1e-9)


@pytest.mark.parametrize("learner", FOLDED, ids=str)
def test_rows_that_are_no_part_of_learning_are_folded_in(learner: Any) -> None:
    model = sc.LDA(K, learner=learner).fit(X)
    np.testing.assert_array_equal(model.documents_, model.fold_learned())
    np.testing.assert_array_equal(model.documents_, model.transform(X))


def test_folding_in_stays_what_it_was(tmp_path: Path) -> None:
    labels = [0, -1, [1, 2], -1] * 10
    model = sc.LDA(K, learner=sc.EM(max_iter=3, tol=0)).fit(X, labels=labels)
    folded = model.fold_learned()
    assert not folded[0::4, 1:].any()
    np.testing.assert_array_equal(folded[1::2], model.transform(X)[1::2])
    again = sc.LDA(K, learner=sc.EM(max_iter=3, tol=0)).fit_transform(X, labels=labels)
    np.testing.assert_array_equal(again, folded)
    model.save(tmp_path / "m")
    loaded = sc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.documents_, model.documents_)
    with pytest.raises(DataError, match="transform"):
        loaded.fold_learned()


def test_the_same_bits_on_one_thread_and_on_many(tmp_path: Path) -> None:
    with patch.multiple(building, SHARD_DOCUMENTS=9):
        archive = sc.Archive.build(X, tmp_path / "a")
    for data in (X, archive):
        one, two = (
            sc.LDA(K, engine=sc.Local(threads), learner=sc.EM(max_iter=4, tol=0)).fit(data)
            for threads in (1, 2)
        )
        assert one.documents_.tobytes() == two.documents_.tobytes()


def test_params_may_be_given_back_as_a_start() -> None:
    """The topics are; the rows of documents are begun anew, as they always were."""
    model = sc.PLSA(K, scouts=0, learner=sc.EM(max_iter=2, tol=0)).fit(X)
    assert set(model.params_) == {"topics", "documents"}
    again, plain = (
        sc.PLSA(K, scouts=0, init=init, learner=sc.EM(max_iter=2, tol=0)).fit(X)
        for init in (model.params_, {"topics": model.topics_})
    )
    np.testing.assert_array_equal(again.topics_, plain.topics_)
