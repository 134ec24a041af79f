"""The collapsed topic sampler: priors, topics that are known to be there, odd sizes, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from softcount.errors import DataError, LearnerError
from softcount.topics.gibbs import CollapsedTopics
from tests.oracles.topics import (
    BOTH,
    cases,
    dirichlet_multinomial,
    joint,
    sampler,
)


def drawn_corpus(alpha, beta, n_docs=400, length=80, n_words=60, seed=1):
    """Documents of the model, and the topics behind them in the order of the tokens."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, beta), len(alpha))
    counts, z = np.zeros((n_docs, n_words), int), []
    for d, theta in enumerate(rng.dirichlet(alpha, n_docs)):
        by_topic = np.array(
            [
                rng.multinomial(n, p)
                for n, p in zip(rng.multinomial(length, theta), phi, strict=True)
            ]
        )
        counts[d] = by_topic.sum(axis=0)
        z += [k for w in range(n_words) for k in range(len(alpha)) for _ in range(by_topic[k, w])]
    return counts, z


@BOTH
def test_optimising_finds_the_priors_that_made_the_data(lists):
    alpha, beta = np.array([0.2, 0.7, 2.0]), 0.15
    counts, z = drawn_corpus(alpha, beta)
    state = sampler(counts, np.ones(3), 1.0, z, lists)
    before = state.log_joint()
    state.optimise()
    np.testing.assert_allclose(state.alpha, alpha, rtol=0.15)
    assert state.beta == pytest.approx(beta, rel=0.25)
    assert state.log_joint() > before + 1000
    assert state.log_joint() == pytest.approx(joint(counts, state.alpha, state.beta, z), rel=1e-12)
    # a maximum: no prior can be moved a little to gain more than rounding and CLOSE leave
    for factor in (0.97, 1.03):
        for change in np.eye(3):
            moved = state.alpha * factor**change
            assert joint(counts, moved, state.beta, z) < state.log_joint()
        assert joint(counts, state.alpha, state.beta * factor, z) < state.log_joint()


@given(cases())
@settings(max_examples=40, deadline=None)
def test_optimising_never_loses(case):
    state = sampler(*case)
    before = state.log_joint()
    state.optimise()
    assert state.log_joint() >= before - 1e-7
    assert np.isfinite(state.alpha).all()
    assert (state.alpha > 0).all()
    state.sweep(1)


def test_a_dead_topic_may_come_back():
    counts = np.full((50, 4), 5)
    state = sampler(counts, np.ones(2), 0.1, np.zeros(1000, int))
    state.optimise()
    assert state.alpha[1] == pytest.approx(1e-5)
    assert state.alpha[0] > 1
    assert np.isfinite(state.conditional(0)).all()


@BOTH
def test_topics_are_found(lists):
    phi = np.kron(np.eye(4), np.full(5, 0.2))
    rng = np.random.default_rng(2)
    counts = np.array([rng.multinomial(40, p @ phi) for p in rng.dirichlet([0.2] * 4, 200)])
    state = sampler(counts, np.full(4, 0.1), 0.05, lists=lists)
    for t in range(60):
        state.sweep(t)
    found = state.counts()["topics"]
    found = found / found.sum(axis=1, keepdims=True)
    best = (found @ phi.T).argmax(axis=1)
    assert sorted(best) == [0, 1, 2, 3]
    np.testing.assert_allclose(found, phi[best], atol=0.06)


@BOTH
def test_a_million_words_in_one_document(lists):
    counts = np.zeros((4, 50), int)
    counts[0] = 20_000
    counts[2, 7] = 1
    state = sampler(counts, np.full(12, 0.1), 0.01, lists=lists)
    state.sweep(5)
    assert state.document_counts().sum(axis=1).tolist() == [10**6, 0, 1, 0]
    assert np.array_equal(state.counts()["topics"].sum(axis=0), counts.sum(axis=0))
    expected = dirichlet_multinomial(state.document_counts(), state.alpha)
    expected += dirichlet_multinomial(state.counts()["topics"], [0.01] * 50)
    assert state.log_joint() == pytest.approx(expected, rel=1e-9)
    state.optimise()
    assert np.isfinite(state.log_joint())


@BOTH
@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (2, 0)])
def test_nothing_to_sample(shape, lists):
    state = sampler(np.zeros(shape, int), np.ones(3), 0.1, lists=lists)
    state.sweep(0)
    state.sweep(0, 0.5)
    state.optimise()
    assert state.log_joint() == 0.0
    assert state.alpha.tolist() == [1.0] * 3
    assert state.document_counts().shape == (shape[0], 3)
    assert state.counts()["topics"].shape == (3, shape[1])


def test_topic_numbers_take_two_bytes_or_four():
    narrow, wide = (sampler([[1, 2]], np.full(K, 0.1), 0.1) for K in (2**16, 2**16 + 1))
    assert narrow.topics.itemsize == 2
    assert wide.topics.itemsize == 4


GOOD = {
    "indptr": [0, 1, 3],
    "words": [0, 0, 1],
    "counts": [1, 2, 1],
    "n_words": 2,
    "alpha": [1.0, 1.0],
    "beta": 0.1,
    "topics": [0, 1, 1, 0],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [1, 2.5, 1]}, r"document 1 has 2\.5 of word 0"),
        ({"words": [0, 0, 2]}, "word numbers below 2"),
        ({"topics": [0, 1, 1]}, "there are 4 tokens"),
        ({"topics": [0, 1, 2, 0]}, "token 2 begins in topic 2"),
        ({"topics": [0, -1, 1, 0]}, "token 1 begins in topic -1"),
        ({"topics": [0, 0.5, 1, 0]}, r"token 1 begins in topic 0\.5"),
        ({"counts": [1, 2**32, 1]}, "too many for a collapsed sampler"),
    ],
)
def test_bad_data(change, message):
    with pytest.raises(DataError, match=message):
        CollapsedTopics(**(GOOD | change))


@pytest.mark.parametrize(
    "change",
    [{"alpha": [1.0, 0.0]}, {"alpha": []}, {"alpha": [1.0, np.nan]}, {"beta": 0.0}, {"beta": 1e11}],
)
def test_bad_priors(change):
    with pytest.raises(LearnerError, match="must be numbers from"):
        CollapsedTopics(**(GOOD | change))
