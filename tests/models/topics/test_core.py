"""The topic model's E-step, against sums written out, a story, and the laws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

import softcount as sc
from softcount.corpus.bags import Bags
from softcount.families.columns import Columns
from softcount.fit import fit
from softcount.topics.core import TopicCore
from softcount.topics.data import Documents, RowPrior, Rows
from softcount.types import How


def made(K: int, V: int, alpha: float = 1.0, prior: float = 1.0, word: Any = "maximise", **more):
    return TopicCore("topics", Columns((K, V), prior), RowPrior(np.full(K, alpha), word), **more)


@st.composite
def cases(draw: Any) -> Any:
    seed, K, V = draw(st.integers(0, 10**6)), draw(st.integers(1, 11)), draw(st.integers(1, 9))
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8, (draw(st.integers(1, 7)), V)) * rng.choice([1.0, 0.5, 3.0])
    return counts, rng.dirichlet(np.ones(V), K), rng.dirichlet(np.ones(K), len(counts))


def written_out(counts: Any, phi: Any, theta: Any) -> Any:
    """n_dk, n_kw and log p(document), one cell and one topic at a time."""
    of_documents, of_words, logs = np.zeros_like(theta), np.zeros_like(phi), np.zeros(len(counts))
    for d, row in enumerate(counts):
        for w, x in enumerate(row):
            if x:
                joint = theta[d] * phi[:, w]
                logs[d] += x * np.log(joint.sum())
                of_documents[d] += x * joint / joint.sum()
                of_words[:, w] += x * joint / joint.sum()
    return of_documents, of_words, logs


@given(cases(), st.sampled_from([1, 2, 3]))
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_definition(case: Any, threads: int) -> None:
    counts, phi, theta = case
    core = made(*phi.shape)
    (shard,) = Documents(Bags.of(counts)).shards()
    rows = Rows(theta)
    stats = core.expect({"topics": phi}, shard, How(threads=threads), rows)
    of_documents, of_words, logs = written_out(counts, phi, theta)
    assert np.asarray(stats.counts["topics"]) == pytest.approx(of_words, abs=1e-10)
    assert stats.log_likelihood == pytest.approx(logs.sum(), abs=1e-9)
    full = counts.sum(axis=1) > 0
    shares = of_documents[full] / counts.sum(axis=1)[full, None]
    assert stats.local.theta[full] == pytest.approx(shares, abs=1e-10)
    assert stats.local.theta[~full] == pytest.approx(theta[~full])  # empty documents stay


@given(cases())
@settings(max_examples=30, deadline=None)
def test_many_threads_give_the_same_bits(case: Any) -> None:
    counts, phi, theta = case
    core, (shard,) = made(*phi.shape), Documents(Bags.of(counts)).shards()
    rows = Rows(theta)
    one, two = (
        core.expect({"topics": phi}, shard, How(threads=threads), rows) for threads in (1, 2)
    )
    assert one.counts["topics"].tobytes() == two.counts["topics"].tobytes()
    assert one.local.theta.tobytes() == two.local.theta.tobytes()


def test_as_a_story() -> None:
    """Documents with fixed topic weights: the same counts as the story engine finds."""
    topic, word = sc.table("topic"), sc.table("word")

    @sc.story
    def token(d, w):
        for k in range(3):
            yield topic[d, k], word[k, w]

    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (4, 5))
    phi, theta = rng.dirichlet(np.ones(5), 3), rng.dirichlet(np.ones(3), 4)
    tokens = [(d, w) for d, row in enumerate(counts) for w, x in enumerate(row) for _ in range(x)]
    story = sc.StoryModel(token, learner=sc.EM(max_iter=1, tol=0)).fit(
        tokens,
        init={
            "topic": {d: dict(enumerate(theta[d])) for d in range(4)},
            "word": {k: dict(enumerate(phi[k])) for k in range(3)},
        },
    )
    core, (shard,) = made(3, 5), Documents(Bags.of(counts)).shards()
    stats = core.expect({"topics": phi}, shard, How(), Rows(theta))
    assert stats.log_likelihood == pytest.approx(story.trace_.log_likelihood[0])
    learned = np.asarray(stats.counts["topics"])
    learned = learned / learned.sum(axis=1, keepdims=True)
    for k in range(3):
        for w in range(5):
            assert learned[k, w] == pytest.approx(story.params_["word"][k][w])


@pytest.mark.parametrize("alpha", [1.0, 1.3])
def test_the_laws_hold(alpha: float) -> None:
    counts = np.random.default_rng(0).poisson(1.0, (6, 5))
    core = made(3, 5, alpha, 1.2)
    model = SimpleNamespace(bind=lambda data: (core, Documents(Bags.of(data))))
    report = sc.check_model(model, counts)
    assert report.passed, str(report)


LEARNERS = [
    sc.EM(max_iter=30, tol=0),
    sc.HardEM(max_iter=10, tol=0),
    sc.OnlineEM(max_iter=5, batch_size=4),
    sc.IncrementalEM(max_iter=5, batch_size=4),
    sc.MonteCarloEM(max_iter=5),
    sc.EM(max_iter=10, schedule=sc.Squarem()),
    sc.EM(max_iter=10, temper=(0.5, 1.0)),
]
BAYESIAN = [
    sc.VariationalBayes(max_iter=30, tol=0),
    sc.StochasticVB(max_iter=5, batch_size=4),
    sc.Gibbs(max_iter=20, n_chains=2),
]


@pytest.mark.parametrize("learner", [*LEARNERS, *BAYESIAN], ids=lambda learner: str(learner))
def test_every_learner_learns(learner: sc.Learner) -> None:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(30, rng.dirichlet(np.ones(12), 3)[rng.integers(3, size=20)])
    bayesian = learner.m != "maximise"
    core = made(3, 12, 0.5 if bayesian else 1.1, 0.5 if bayesian else 1.1, learner.m)
    topics = core.families["topics"]
    found = fit(
        core,
        Documents(Bags.of(counts)),
        learner,
        init=lambda rng: {"topics": topics.random(rng)},
        seed=3,
    )
    assert found.verdict is not sc.Verdict.FELL
    assert np.isfinite(found.trace.objective[1:]).all()
    if learner.monotone and learner.temper == 1.0:
        rises = np.diff(found.trace.objective[1:])
        assert rises.min(initial=0.0) > -1e-9 * abs(found.trace.objective[-1])


def test_rows_by_variational_bayes_are_exp_of_the_expected_log() -> None:
    prior = RowPrior(np.array([0.5, 1.5]), "mean_field")
    counts = np.array([[2.0, 1.0], [0.0, 0.0]])
    rows = prior.update(counts, prior.begin(np.array([3.0, 0.0]), None), np.random.default_rng(0))
    alpha = np.array([0.5, 1.5])
    expected = np.exp(digamma(counts + alpha) - digamma(counts.sum(axis=1) + 2.0)[:, None])
    assert rows.theta == pytest.approx(expected)


def test_one_topic_is_the_unigram_model() -> None:
    counts = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 1.0]])
    core = made(1, 3)
    found = fit(
        core,
        Documents(Bags.of(counts)),
        sc.EM(max_iter=3),
        init={"topics": np.full((1, 3), 1 / 3)},
    )
    shares = counts.sum(axis=0) / counts.sum()
    assert found.params["topics"][0] == pytest.approx(shares)
    assert found.trace.log_likelihood[-1] == pytest.approx((counts * np.log(shares)).sum())


def test_a_million_words_and_none_at_all() -> None:
    counts = np.array([[10**6, 10**5, 1], [0, 0, 0], [0, 1, 0]], float)
    core = made(2, 3, 1.1, 1.1)
    topics = core.families["topics"]
    found = fit(
        core,
        Documents(Bags.of(counts)),
        sc.EM(max_iter=20),
        init=lambda rng: {"topics": topics.random(rng)},
    )
    assert np.isfinite(found.trace.objective).all()
    assert np.isfinite(found.params["topics"]).all()


def test_a_word_that_no_topic_has_is_named() -> None:
    core, (shard,) = made(1, 2), Documents(Bags.of([[1.0, 0.0], [0.0, 1.0]])).shards()
    with pytest.raises(sc.ImpossibleItem, match="item 1"):
        core.expect({"topics": np.array([[1.0, 0.0]])}, shard, How())
