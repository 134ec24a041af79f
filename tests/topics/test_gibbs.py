"""The collapsed sampler of topics: against enumeration, with supervision, priors, learners."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_matrix

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.core.fit import fit
from softcount.families.columns import Columns
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.topics.core import DocumentPrior, TopicCore
from softcount.topics.data import TopicDocuments, read_labels
from softcount.topics.gibbs import LISTS_FROM, CollapsedTopics
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
    tokens,
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
    assert np.array_equal(state._state.table.totals, of_topics.sum(axis=1))
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


# The collapsed topic sampler: priors, topics that are known to be there, odd sizes, bad input.


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


# The collapsed sampler where documents may have some topics only, and topics have seed words.


def may_have(allowed) -> np.ndarray:
    """What documents may have: all topics where nothing is known."""
    allowed = np.asarray(allowed, bool)
    return allowed | ~allowed.any(axis=1, keepdims=True)


@st.composite
def guided(draw):
    """Counts, priors, the topics documents may have, seeds, first topics, and how to keep them."""
    n_docs, n_words, n_topics = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        draw(st.sampled_from([1, 2, 3, 8, 9])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.integers(0, 4, (n_docs, n_words))
    alpha = draw(st.sampled_from([1e-4, 0.3, 50.0])) * rng.uniform(0.5, 2, n_topics)
    allowed = (rng.random((n_docs, n_topics)) < 0.4) & (rng.random((n_docs, 1)) < 0.7)
    seed_counts = rng.integers(0, 5, (n_topics, n_words)) * (rng.random((n_topics, n_words)) < 0.3)
    if draw(st.booleans()):
        seed_counts[:] = 0
    may = may_have(allowed)
    z = np.array([rng.choice(np.flatnonzero(may[d])) for d, _ in tokens(counts)], int)
    beta = draw(st.sampled_from([1e-9, 0.1, 20.0]))
    return (
        counts,
        alpha,
        beta,
        z,
        draw(st.booleans()),
        {"allowed": allowed, "seed_counts": seed_counts},
    )


@given(guided())
@settings(max_examples=60, deadline=None)
def test_conditional_is_the_joint_with_one_topic_changed_under_supervision(case):
    counts, alpha, beta, z, lists, more = case
    state = sampler(counts, alpha, beta, z, lists, **more)
    assert state.log_joint() == pytest.approx(joint(counts, alpha, beta, z, **more), abs=1e-8)
    for i in range(len(z)):
        changed = [[*z[:i], k, *z[i + 1 :]] for k in range(len(alpha))]
        logs = np.array([joint(counts, alpha, beta, one, **more) for one in changed])
        found = state.conditional(i)
        assert np.array_equal(np.isneginf(found), np.isneginf(logs))
        np.testing.assert_allclose(normalised(found), normalised(logs), rtol=1e-6, atol=1e-300)
    assert np.array_equal(state.topics, z)


@given(guided(), st.integers(0, 2**64 - 1), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_sweeps_keep_count_and_keep_to_what_is_known(case, stream, temper):
    counts, alpha, beta, z, lists, more = case
    state = sampler(counts, alpha, beta, z, lists, **more)
    for t in range(4):
        state.sweep(stream ^ t, temper if t % 2 else 1.0)
        of_documents, of_topics = tally(counts, state.topics, len(alpha))
        assert not of_documents[~may_have(more["allowed"])].any()
    assert np.array_equal(state.document_counts(), of_documents)
    assert np.array_equal(state.counts()["topics"], of_topics)
    both = of_topics + more["seed_counts"]
    assert np.array_equal(state._state.table.totals, both.sum(axis=1))
    expected = joint(counts, alpha, beta, state.topics, **more)
    assert state.log_joint() == pytest.approx(expected, abs=1e-8)
    fresh = sampler(counts, alpha, beta, state.topics, lists, **more)
    for i in range(len(state.topics)):
        assert np.array_equal(state.conditional(i), fresh.conditional(i))
    means = (both + beta) / (both + beta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(state.means()["topics"], means, rtol=1e-12)


ALPHA = np.array([0.7, 0.4, 1.1])
KNOWN = np.array([[True, False, True], [True, False, False], [False, False, False]])
SEEDS = np.array([[3, 0, 0], [0, 0, 0], [0, 1, 2]])
NOTHING = np.zeros((3, 3), int)


@BOTH
@pytest.mark.parametrize("temper", [1.0, 0.5])
@pytest.mark.parametrize(
    ("allowed", "seed_counts"),
    [(KNOWN, NOTHING), (NOTHING, SEEDS), (KNOWN, SEEDS), (KNOWN[[1, 1, 0]], SEEDS)],
    ids=["allowed", "seed_counts", "both", "one topic"],
)
def test_a_long_run_is_the_posterior_under_supervision(allowed, seed_counts, temper, lists):
    state = sampler(SMALL, ALPHA, 0.3, lists=lists, allowed=allowed, seed_counts=seed_counts)
    seen = Counter()
    for t in range(12_000):
        state.sweep(t, temper)
        if t % 4 == 0:
            seen[tuple(state.topics.tolist())] += 1
    expected = posterior(SMALL, ALPHA, 0.3, temper, allowed, seed_counts)
    assert surprise(seen, expected) < 1
    # the test can tell: without what is known, or with a power that is another, it would not pass
    assert surprise(seen, posterior(SMALL, ALPHA, 0.3, 1.5 * temper, allowed, seed_counts)) > 1
    assert surprise(seen, posterior(SMALL, ALPHA, 0.3, temper)) > 1


@BOTH
@pytest.mark.parametrize("few", [[0, 2], [1, 2], [0, 1, 2]], ids=str)
def test_a_free_document_knows_what_those_before_it_did(few, lists):
    """One sweep, many streams: a long document moves, then a token is drawn that feels it."""
    allowed = np.zeros((2, 4), bool)
    allowed[0, few] = True
    counts, z = np.array([[30, 0], [0, 1]]), [*[2] * 30, 3]
    state = sampler(counts, np.full(4, 1000.0), 2.0, z, lists, allowed=allowed)  # α: many move
    n, surplus, spread = 3000, np.zeros(4), np.zeros(4)
    for t in range(n):
        one = deepcopy(state)
        one.sweep(t)
        p = normalised(one.conditional(30))
        surplus += (np.arange(4) == one.topics[30]) - p
        spread += p * (1 - p)
    assert (np.abs(surplus) < 4.5 * np.sqrt(spread)).all()


def test_many_topics_at_their_usual_threshold():
    """With as many topics as lists are kept for, and one less: seeds, and documents of two."""
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 3, (12, 20))
    for n_topics in (LISTS_FROM - 1, LISTS_FROM, LISTS_FROM + 50):
        alpha = rng.uniform(0.01, 0.5, n_topics)
        allowed, seed_counts = np.zeros((12, n_topics), bool), np.zeros((n_topics, 20), int)
        allowed[:6, [3, n_topics - 1]] = True
        seed_counts[3, :4], seed_counts[n_topics - 1, 2:6] = 5, 70
        rows, given = (
            csr_matrix(counts),
            {"allowed": csr_matrix(allowed), "seed_counts": csr_matrix(seed_counts)},
        )
        parts = rows.indptr, rows.indices, rows.data, 20
        state = CollapsedTopics(*parts, alpha=alpha, beta=0.1, **given)
        assert bool(len(state._state.table.dense)) == (n_topics < LISTS_FROM)
        for t in range(20):
            state.sweep(t, 1.0 if t % 5 else 0.8)
        of_documents, of_topics = tally(counts, state.topics, n_topics)
        assert not of_documents[~may_have(allowed)].any()
        assert np.array_equal(state._state.table.totals, (of_topics + seed_counts).sum(axis=1))
        expected = joint(counts, alpha, 0.1, state.topics, allowed, seed_counts)
        assert state.log_joint() == pytest.approx(expected, rel=1e-10)
        logs = state.conditional(7)
        changed = [[*state.topics[:7], k, *state.topics[8:]] for k in (3, n_topics - 1)]
        direct = [joint(counts, alpha, 0.1, z, allowed, seed_counts) for z in changed]
        assert logs[-1] - logs[3] == pytest.approx(direct[1] - direct[0], abs=1e-8)
        assert np.isneginf(logs).sum() == n_topics - 2


@BOTH
def test_first_topics_are_as_likely_as_words_have_them(lists):
    likely = np.array([[0.5, 0.0, 0.1, 0.0], [0.3, 0.2, 0.1, 0.0], [0.2, 0.8, 0.0, 0.0]])
    counts = np.array([[1, 1, 1, 1], [1, 1, 1, 1]])
    allowed = np.array([[False, False, False], [True, False, True]])
    seen = [Counter() for _ in range(8)]
    for seed in range(800):
        more = {"allowed": allowed, "phi": likely}
        for i, k in enumerate(sampler(counts, np.ones(3), 0.1, None, lists, seed, **more).topics):
            seen[i][int(k)] += 1
    third = np.full(3, 1 / 3)  # a word that no topic has: all that are allowed
    free = [likely[:, 0], likely[:, 1], [0.5, 0.5, 0.0], third]
    bound = [[5 / 7, 0, 2 / 7], [0, 0, 1.0], [1.0, 0, 0], [0.5, 0, 0.5]]
    for counter, p in zip(seen, [*free, *bound], strict=True):
        chances = np.array(p) / np.sum(p)
        assert set(counter) == set(np.flatnonzero(chances))
        assert len(counter) == 1 or surprise(counter, dict(enumerate(chances))) < 1


@BOTH
def test_without_likely_words_too_first_topics_are_those_allowed(lists):
    allowed = np.array([[True, False, False], [False, True, True], [False, False, False]])
    counts = np.full((3, 2), 60)
    state = sampler(counts, np.ones(3), 0.1, lists=lists, allowed=allowed)
    assert np.array_equal(state.document_counts() > 0, may_have(allowed))


@BOTH
def test_entries_that_are_zero_or_there_twice(lists):
    """Explicit zeros allow nothing and seed nothing; what is there twice adds up."""
    where = [0, 0, 1], [0, 0, 1]
    odd = {
        "seed_counts": coo_matrix(([1, 2, 0], where), shape=(2, 2)),
        "allowed": coo_matrix(([True, True, False], where), shape=(2, 2)),
    }
    plain = {"seed_counts": np.array([[3, 0], [0, 0]]), "allowed": np.array([[1, 0], [0, 0]], bool)}
    counts, z = [[2, 1], [1, 2]], [0, 0, 0, 1, 0, 1]
    one, two = (sampler(counts, np.ones(2), 0.3, z, lists, **more) for more in (odd, plain))
    assert (
        one.log_joint()
        == two.log_joint()
        == pytest.approx(joint(counts, np.ones(2), 0.3, z, **plain))
    )
    for state in (one, two):
        for t in range(5):
            state.sweep(t)
    assert np.array_equal(one.topics, two.topics)
    assert np.array_equal(one._state.table.totals, two._state.table.totals)


@given(guided())
@settings(max_examples=60, deadline=None)
def test_optimising_never_loses_under_supervision(case):
    counts, alpha, beta, z, lists, more = case
    state = sampler(counts, alpha, beta, z, lists, **more)
    before = state.log_joint()
    state.optimise()
    after = joint(counts, state.alpha, state.beta, z, **more)
    assert after >= before - 1e-7 * (1 + abs(before))
    assert state.log_joint() == pytest.approx(after, abs=1e-7)
    if more["seed_counts"].any():
        assert state.beta == beta
    state.sweep(1)


@BOTH
def test_documents_with_a_choice_have_their_say_in_the_prior(lists):
    """Many that have both of two topics evenly, few free ones that have one each."""
    counts = np.full((12, 2), 10)
    allowed = np.zeros((12, 3), bool)
    allowed[:9, :2] = True
    z = [*([0] * 10 + [1] * 10) * 9, *[0] * 20, *[1] * 20, *[2] * 20]
    start = np.ones(3)
    state = sampler(counts, start, 0.1, z, lists, allowed=allowed)
    state.optimise()
    found = joint(counts, state.alpha, state.beta, z, allowed)
    assert found > joint(counts, start, state.beta, z, allowed)
    for factor in (0.9, 1.1):  # a maximum, in all directions
        for change in np.eye(3):
            moved = state.alpha * factor**change
            assert joint(counts, moved, state.beta, z, allowed) < found
    # the free ones alone would have said something else, and made the whole less likely
    alone = sampler(counts[9:], start, 0.1, z[180:], lists)
    alone.optimise()
    assert joint(counts, alone.alpha, state.beta, z, allowed) < found - 1


def test_documents_of_one_topic_say_nothing_of_the_prior():
    counts, alpha = np.full((6, 2), 5), np.array([0.3, 2.0, 0.7])
    allowed = np.zeros((6, 3), bool)
    allowed[3:, 1] = True
    z = [*[0] * 5, *[2] * 5] * 3 + [1] * 30
    state, without = (
        sampler(counts[:n], alpha, 0.1, z[: 10 * n], allowed=allowed[:n]) for n in (6, 3)
    )
    for one in (state, without):
        one.optimise()
    assert np.array_equal(state.alpha, without.alpha)
    every = sampler(counts[3:], alpha, 0.1, [1] * 30, allowed=allowed[3:])
    every.optimise()
    assert every.alpha.tolist() == alpha.tolist()


def told(rng, alpha, beta, lengths, allowed, seed_counts, lists) -> list[Counter]:
    """Geweke (2004): words anew given topics, topics anew given words, in turn."""
    owner, may = np.repeat(np.arange(len(lengths)), lengths), may_have(allowed)
    z = np.array([rng.choice(np.flatnonzero(may[d])) for d in owner])
    seen = [Counter() for _ in lengths]
    for t in range(10_000):
        phi = np.array([rng.dirichlet(beta + row) for row in seed_counts])
        words = (rng.random((len(z), 1)) > np.cumsum(phi[z], axis=1)).sum(axis=1)
        words = np.minimum(words, seed_counts.shape[1] - 1)
        # tokens of one word in random order: where they were says something of their topics
        order = np.lexsort((rng.random(len(z)), words, owner))
        counts = np.zeros((len(lengths), seed_counts.shape[1]), int)
        np.add.at(counts, (owner, words), 1)
        state = sampler(
            counts, alpha, beta, z[order], lists, allowed=allowed, seed_counts=seed_counts
        )
        state.sweep(t)
        z = state.topics.astype(int)
        if t % 5 == 0:
            for d, row in enumerate(state.document_counts()):
                seen[d][int(row[0])] += 1
    return seen


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("which", ["allowed", "seed_counts", "both"])
def test_words_drawn_anew_leave_the_prior_alone_under_supervision(which, lists):
    """Each document's number of tokens of topic 0 stays beta-binomial, over what it may have."""
    alpha, beta, lengths = np.array([0.6, 1.1, 0.8]), 0.4, [4, 0, 2, 5]
    allowed = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [0, 0, 0]], bool)
    seed_counts = np.array([[4, 0, 0], [0, 0, 2], [0, 0, 0]])
    if which == "allowed":
        seed_counts = np.zeros_like(seed_counts)
    if which == "seed_counts":
        allowed = np.zeros_like(allowed)
    seen = told(np.random.default_rng(5), alpha, beta, lengths, allowed, seed_counts, lists)
    for d in (0, 2, 3):
        n, others = lengths[d], float(alpha[1:] @ may_have(allowed)[d, 1:])
        ways = [
            math.comb(n, j) * math.exp(dirichlet_multinomial([[j, n - j]], [alpha[0], others]))
            for j in range(n + 1)
        ]
        assert surprise(seen[d], dict(enumerate(ways))) < 1


# LDA learned by collapsed Gibbs: exact means, chains, priors, archives, calibration.


RNG = np.random.default_rng(2)
TRUTH = RNG.dirichlet(np.full(40, 0.1), 4)
SHARES = RNG.dirichlet([0.1, 0.2, 0.4, 0.8], 300)
X = np.array([RNG.multinomial(60, row) for row in SHARES @ TRUTH])


def learned(learner: sc.Learner, X: Any = X, y: Any = None, **options: Any) -> sc.LDA:
    return sc.LDA(4, learner=learner, **options).fit(X, labels=y)


def core_of(K: int, V: int, alpha: Any, prior: Any) -> TopicCore:
    return TopicCore(
        "topics", Columns((K, V), prior), DocumentPrior(np.asarray(alpha, float), "draw")
    )


COUNTS = np.array([[2, 1, 0], [0, 1, 1], [1, 0, 1]])


@pytest.mark.parametrize("dense_prior", [True, False], ids=["seeds", "no seeds"])
def test_the_mean_is_the_exact_posterior_mean(dense_prior: bool) -> None:
    """E[φ | w] over all topics that the words may have, with labels and seeds."""
    alpha, beta = np.array([0.5, 0.8]), 0.4
    seeds = np.array([[2, 0, 0], [0, 1, 0]]) * dense_prior
    known = np.array([[True, False], [False, False], [False, False]])
    every = list(product(range(2), repeat=int(COUNTS.sum())))
    chances = normalised(np.array([joint(COUNTS, alpha, beta, z, known, seeds) for z in every]))
    exact = np.zeros((2, 3))
    for p, z in zip(chances, every, strict=True):
        mass = tally(COUNTS, z, 2)[1] + seeds + beta
        exact += p * mass / mass.sum(axis=1, keepdims=True)
    core = core_of(2, 3, alpha, beta + seeds if dense_prior else beta)
    corpus = TopicDocuments(Bags.of(COUNTS), read_labels([0, -1, -1], 3, 2))
    learner = sc.CollapsedGibbs(max_iter=2500, burn_in=0.02, thin=1)
    start = {"topics": np.full((2, 3), 1 / 3)}
    found = fit(core, corpus, learner, init=start)
    np.testing.assert_allclose(found.params["topics"], exact, atol=0.03)
    # every step's objective is log p(w, z) of some z that is possible
    possible = np.unique([joint(COUNTS, alpha, beta, z, known, seeds) for z in every])
    for objective in found.trace.objective[:50]:
        assert np.abs(possible - objective).min() < 1e-8


def test_the_model_reports_the_mean_of_the_draws_it_kept() -> None:
    learner = sc.CollapsedGibbs(max_iter=30, burn_in=0.4, thin=3)
    model = sc.LDA(4, learner=learner).fit(X, keep_params=True)
    steps = [state.step for state in model.trace_ if learner.keeps(state.step)]
    assert steps == list(range(steps[0], 31, 3))
    (draws,) = model.fit_.draws
    assert len(draws) == len(steps)
    tables = [model.trace_[step].params["topics"] for step in steps]
    for draw, table in zip(draws, tables, strict=True):
        assert np.array_equal(draw["topics"], table)
        # E[φ | w, z] = (n + β) / (n_k + Vβ), n being whole: the totals of all topics show it
        assert table.sum(axis=1) == pytest.approx(np.ones(4))
    assert model.topics_ == pytest.approx(np.mean(tables, axis=0), rel=1e-12)


def test_topics_are_found_and_the_verdict_says_so() -> None:
    model = learned(sc.CollapsedGibbs(max_iter=60))
    closest = np.array([[np.abs(a - b).sum() for b in model.topics_] for a in TRUTH])
    assert sorted(closest.argmin(axis=1)) == [0, 1, 2, 3]
    assert closest.min(axis=1).max() < 0.4
    assert model.verdict_ is sc.Verdict.SAMPLED
    assert "CollapsedGibbs(max_iter=60" in model.signature_
    assert model.transform(X[:5]).sum(axis=1) == pytest.approx(np.ones(5))


def test_seeds_of_random_numbers_and_threads() -> None:
    learner = sc.CollapsedGibbs(max_iter=10)
    one, same = (learned(learner, engine=sc.Local(threads=n), random_state=4) for n in (1, 2))
    other = learned(learner, random_state=5)
    assert one.topics_.tobytes() == same.topics_.tobytes()
    assert np.array_equal(one.trace_.objective, same.trace_.objective)
    assert one.topics_.tobytes() != other.topics_.tobytes()


def test_chains_and_diagnostics() -> None:
    learner = sc.CollapsedGibbs(max_iter=40, n_init=3, burn_in=0.5, thin=2)
    model = learned(learner)
    assert [len(draws) for draws in model.fit_.draws] == [10, 10, 10]
    assert set(model.fit_.diagnostics) == {"rhat", "ess_bulk", "ess_tail"}
    assert all(np.isfinite(figure) for figure in model.fit_.diagnostics.values())
    objectives = [trace.objective[-1] for trace in model.fit_.traces]
    assert len(set(objectives)) == 3


def test_priors_can_be_learned() -> None:
    alpha = np.array([0.1, 0.2, 0.4, 0.8])
    model = learned(sc.CollapsedGibbs(max_iter=120, optimise=5))
    plain = learned(sc.CollapsedGibbs(max_iter=120))
    assert plain.document_smoothing_ == pytest.approx(np.full(4, 0.1))
    assert np.array_equal(model.document_smoothing_, model.fit_.priors["documents"])
    closest = [np.abs(model.topics_ - row).sum(axis=1).argmin() for row in TRUTH]
    assert model.document_smoothing_[closest] == pytest.approx(alpha, rel=0.4)
    assert float(model.fit_.priors["topics"][0]) == pytest.approx(0.1, rel=0.4)
    assert model.trace_.objective[-20:].mean() > plain.trace_.objective[-20:].mean() + 10


def test_learned_priors_are_what_documents_are_folded_in_with() -> None:
    model = learned(sc.CollapsedGibbs(max_iter=60, optimise=5))
    empty = model.transform(np.zeros((1, 40)))[0]
    assert empty == pytest.approx(
        model.document_smoothing_ / model.document_smoothing_.sum(), rel=1e-6
    )


@pytest.mark.parametrize("optimise", [1, 4])
def test_models_whose_priors_cannot_be_learned(optimise: int) -> None:
    learner = sc.CollapsedGibbs(max_iter=4, optimise=optimise)
    with pytest.raises(sc.LearnerError, match=f"optimise={optimise}.*cannot be learned") as caught:
        sc.MultinomialMixture(2, learner=learner).fit(X[:20])
    assert caught.value.hint


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(sc.LearnerError, match="optimise"):
        sc.CollapsedGibbs(optimise=-1)


def test_labels_are_kept_to() -> None:
    """Documents of one topic each: their words are counted there and nowhere else."""
    y = np.arange(300) % 4
    model = learned(sc.CollapsedGibbs(max_iter=6, thin=1), y=y)
    mass = np.array([X[y == k].sum(axis=0) for k in range(4)]) + 0.01
    assert model.topics_ == pytest.approx(mass / mass.sum(axis=1, keepdims=True), rel=1e-9)


def test_an_archive_is_as_good_as_memory(tmp_path: Path) -> None:
    texts = [" ".join(f"w{w:02}" for w in np.repeat(np.arange(40), row)) for row in X[:100]]
    archive = Archive.build(texts, tmp_path / "a")
    learner = sc.CollapsedGibbs(max_iter=8)
    stored, direct = (learned(learner, data, short_runs=0) for data in (archive, texts))
    assert stored.word_names().tolist() == direct.word_names().tolist()
    assert stored.topics_ == pytest.approx(direct.topics_, rel=1e-9)
    assert stored.trace_.objective == pytest.approx(direct.trace_.objective, rel=1e-9)


@pytest.mark.parametrize("cut", [7, 100])
def test_however_documents_are_cut_all_are_sampled(
    cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.text.bags.MOST_DOCUMENTS", cut)
    core = core_of(3, 40, np.full(3, 0.1), 0.01)
    labels = [d % 3 if d % 2 else -1 for d in range(60)]
    corpus = TopicDocuments(Bags.of(X[:60]), read_labels(labels, 60, 3))
    learner = sc.CollapsedGibbs(max_iter=5)
    found = fit(core, corpus, learner, init={"topics": core.topics.random(RNG)})
    tokens = float(X[:60].sum())
    state = found.trace[-1]
    assert state.perplexity == pytest.approx(np.exp(-state.objective / tokens))
    sampler = core.collapse(corpus.shards(), {"topics": core.topics.uniform()}, 1)
    of_documents = sampler.document_counts()
    assert np.array_equal(of_documents.sum(axis=1), X[:60].sum(axis=1))
    for d, label in enumerate(labels):
        assert label < 0 or of_documents[d, label] == X[d].sum()


@pytest.mark.parametrize("settings", [{}, {"optimise": 2}])
def test_counts_that_are_not_whole(settings: dict[str, int]) -> None:
    with pytest.raises(sc.DataError, match="whole numbers"):
        learned(sc.CollapsedGibbs(max_iter=2, **settings), X / 2, short_runs=0)


@pytest.mark.slow
def test_calibration_of_the_learner() -> None:
    """Talts et al. (2018), by way of the loop: where log p(w, z) of the truth ranks is uniform."""
    rng, alpha, beta, draws = np.random.default_rng(8), np.array([0.5, 1.0]), 0.3, 9
    learner = sc.CollapsedGibbs(max_iter=30 + 10 * draws, burn_in=0.25, thin=10)
    ranks: Counter[int] = Counter()
    for repeat in range(600):
        theta, phi = rng.dirichlet(alpha, 3), rng.dirichlet([beta] * 4, 2)
        z = (rng.random((3, 6)) > theta[:, :1]).astype(int)
        words = np.array([[rng.choice(4, p=phi[k]) for k in row] for row in z])
        counts = np.array([np.bincount(row, minlength=4) for row in words])
        order = np.argsort(words, axis=1, kind="stable")
        true = joint(counts, alpha, beta, np.take_along_axis(z, order, axis=1).ravel())
        core, corpus = core_of(2, 4, alpha, beta), TopicDocuments(Bags.of(counts))
        start = {"topics": core.topics.random(rng)}
        found = fit(core, corpus, learner, init=start, seed=repeat)
        kept = [state.objective for state in found.trace if learner.keeps(state.step)][-draws:]
        assert len(kept) == draws
        ties = [objective + 1e-6 * rng.random() for objective in [true, *kept]]
        ranks[sum(objective < ties[0] for objective in ties[1:])] += 1
    assert surprise(ranks, dict.fromkeys(range(draws + 1), 1 / (draws + 1))) < 1
