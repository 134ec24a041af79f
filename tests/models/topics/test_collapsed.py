"""The collapsed topic sampler against log-gammas, enumeration, and a prior it must leave alone."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.topics import (
    BOTH,
    cases,
    dirichlet_multinomial,
    joint,
    normalised,
    posterior,
    sampler,
    shapes,
    surprise,
    tally,
)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_conditional_is_the_joint_with_one_topic_changed(case):
    counts, alpha, beta, z, _ = case
    state = sampler(*case)
    for i in range(len(z)):
        logs = [joint(counts, alpha, beta, [*z[:i], k, *z[i + 1 :]]) for k in range(len(alpha))]
        found = normalised(state.conditional(i))
        np.testing.assert_allclose(found, normalised(np.array(logs)), rtol=1e-6, atol=1e-300)
    assert np.array_equal(state.topics, z)
    assert state.log_joint() == pytest.approx(joint(counts, alpha, beta, z), abs=1e-8)


@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_sweeps_keep_count(case, stream, temper):
    counts, alpha, beta, _, _ = case
    state, again = sampler(*case), sampler(*case)
    for s in (state, again):
        s.sweep(stream, temper)
        s.sweep(stream ^ 1)
    of_documents, of_topics = tally(counts, state.topics, len(alpha))
    assert np.array_equal(state.document_counts(), of_documents)
    assert np.array_equal(state.counts()["topics"], of_topics)
    # the sampler's own counts, by which it draws
    assert np.array_equal(state._table.totals, of_topics.sum(axis=1))
    assert state.log_joint() == pytest.approx(joint(counts, alpha, beta, state.topics), abs=1e-8)
    fresh = sampler(counts, alpha, beta, state.topics, case[-1])
    for i in range(len(state.topics)):
        assert np.array_equal(state.conditional(i), fresh.conditional(i))
    assert np.array_equal(state.topics, again.topics)


@BOTH
def test_streams_and_seeds_differ(lists):
    counts = np.full((3, 5), 4)
    runs = [sampler(counts, np.ones(4), 1.0, lists=lists, seed=seed) for seed in (0, 0, 1)]
    assert np.array_equal(runs[0].topics, runs[1].topics)
    assert not np.array_equal(runs[0].topics, runs[2].topics)
    runs[0].sweep(1)
    runs[1].sweep(2)
    assert not np.array_equal(runs[0].topics, runs[1].topics)


SMALL = np.array([[2, 1, 0], [0, 0, 0], [0, 1, 2]])
FEW = np.array([[2, 0], [0, 1]])
LARGE_ALPHA = np.array([30.0, 20.0])  # a topic more can then make the next less likely


@BOTH
@pytest.mark.parametrize(
    ("counts", "alpha", "beta", "temper"),
    [
        (SMALL, np.array([0.7, 0.4]), 0.5, 1.0),
        (SMALL, np.array([0.7, 0.4]), 0.5, 0.5),
        (SMALL, LARGE_ALPHA, 0.2, 1.0),
        (SMALL, np.array([0.7, 0.4]), 0.05, 1.0),
        (FEW, np.linspace(0.1, 0.5, 9), 0.3, 1.0),
    ],
    ids=["two topics", "tempered", "large prior", "small prior", "nine topics"],
)
def test_a_long_run_is_the_posterior(counts, alpha, beta, temper, lists):
    state, seen = sampler(counts, alpha, beta, lists=lists), Counter()
    thin = 20 if beta < 0.1 else 5
    for t in range(5000 * thin):
        state.sweep(t, temper)
        if t % thin == 0:
            seen[tuple(state.topics.tolist())] += 1
    expected = posterior(counts, alpha, beta, temper)
    assert surprise(seen, expected) < 1
    assert surprise(shapes(seen), shapes(expected)) < 1
    # the test can tell: a somewhat different prior, or power, would not pass
    assert surprise(shapes(seen), shapes(posterior(counts, alpha, 2 * beta, temper))) > 1
    assert surprise(shapes(seen), shapes(posterior(counts, alpha, beta, 1.3 * temper))) > 1


@BOTH
@pytest.mark.parametrize("n_topics", [1, 7, 8, 30, 100])
def test_first_two_tokens_are_drawn_from_their_conditionals(n_topics, lists):
    """One sweep, many streams: the first token, and the second given where the first went."""
    rng = np.random.default_rng(n_topics)
    counts = np.array([[2, 3, 0, 1], [1, 0, 4, 0], [40, 9, 5, 60]])
    alpha, z = rng.gamma(0.5, size=n_topics) + 0.01, rng.integers(0, n_topics, counts.sum())
    n, first, second = 4000, Counter(), Counter()
    begun = sampler(counts, alpha, 0.3, z, lists)
    expected = normalised(begun.conditional(0))
    common = int(expected.argmax())
    for t in range(n):
        state = deepcopy(begun)
        state.sweep(t)
        first[int(state.topics[0])] += 1
        if state.topics[0] == common:
            second[int(state.topics[1])] += 1
    after = sampler(counts, alpha, 0.3, [common, *z[1:]], lists).conditional(1)
    for seen, p in ((first, expected), (second, normalised(after))):
        assert max(seen) < n_topics
        assert n_topics == 1 or surprise(seen, dict(enumerate(p))) < 1


@pytest.mark.slow
@BOTH
def test_words_drawn_anew_leave_the_prior_alone(lists):
    """Geweke (2004): w from p(w | z) and z by a sweep, in turn, leave z distributed as p(z).

    Words move among tokens of a document, and topics with them: what is compared is each document's
    number of tokens of topic 0, which has a beta-binomial distribution.
    """
    rng, lengths, alpha, beta = np.random.default_rng(3), [4, 0, 1, 6], np.array([0.6, 1.1]), 0.4
    owner = np.repeat(np.arange(4), lengths)
    z, seen = rng.integers(0, 2, 11), [Counter() for _ in lengths]
    for t in range(15_000):
        phi = rng.dirichlet([beta] * 3, 2)
        words = np.array([rng.choice(3, p=phi[k]) for k in z])
        order = np.lexsort((words, owner))
        counts = np.zeros((4, 3), int)
        np.add.at(counts, (owner, words), 1)
        state = sampler(counts, alpha, beta, z[order], lists)
        state.sweep(t)
        z = state.topics.astype(int)
        if t % 5 == 0:
            for d, tops in enumerate(state.document_counts()[:, 0]):
                seen[d][int(tops)] += 1
    for d in (0, 2, 3):
        n = lengths[d]
        ways = [
            math.comb(n, j) * math.exp(dirichlet_multinomial([[j, n - j]], alpha))
            for j in range(n + 1)
        ]
        assert sum(ways) == pytest.approx(1)
        assert surprise(seen[d], dict(enumerate(ways))) < 1


@pytest.mark.slow
@BOTH
def test_calibration(lists):
    """Talts et al. (2018): a true value's rank among posterior draws is uniform."""
    rng, alpha, beta = np.random.default_rng(8), np.array([0.5, 1.0]), 0.3
    ranks, draws = Counter(), 9
    for _ in range(1500):
        theta, phi = rng.dirichlet(alpha, 3), rng.dirichlet([beta] * 4, 2)
        z = (rng.random((3, 6)) > theta[:, :1]).astype(int)
        words = np.array([[rng.choice(4, p=phi[k]) for k in row] for row in z])
        counts = np.array([np.bincount(row, minlength=4) for row in words])
        by_word = np.argsort(words, axis=1, kind="stable")
        start = np.take_along_axis(z, by_word, axis=1).ravel()
        state = sampler(counts, alpha, beta, rng.permutation(start), lists)
        true, rank = (start == 0).sum() + rng.random(), 0
        for t in range(30 * (draws + 1)):
            state.sweep(int(rng.integers(2**63)))
            if t >= 30 and t % 30 == 0:
                rank += (state.topics == 0).sum() + rng.random() < true
        ranks[int(rank)] += 1
    assert surprise(ranks, dict.fromkeys(range(draws + 1), 1 / (draws + 1))) < 1
