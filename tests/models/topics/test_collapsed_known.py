"""The collapsed sampler where documents may have some topics only, and topics have seed words."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_matrix

from softcount.errors import DataError
from softcount.topics.gibbs import LISTS_FROM, CollapsedTopics
from tests.oracles.topics import (
    BOTH,
    dirichlet_multinomial,
    joint,
    normalised,
    posterior,
    sampler,
    surprise,
    tally,
    tokens,
)


def allowed(known) -> np.ndarray:
    """What documents may have: all topics where nothing is known."""
    known = np.asarray(known, bool)
    return known | ~known.any(axis=1, keepdims=True)


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
    known = (rng.random((n_docs, n_topics)) < 0.4) & (rng.random((n_docs, 1)) < 0.7)
    seeds = rng.integers(0, 5, (n_topics, n_words)) * (rng.random((n_topics, n_words)) < 0.3)
    if draw(st.booleans()):
        seeds[:] = 0
    may = allowed(known)
    z = np.array([rng.choice(np.flatnonzero(may[d])) for d, _ in tokens(counts)], int)
    beta = draw(st.sampled_from([1e-9, 0.1, 20.0]))
    return counts, alpha, beta, z, draw(st.booleans()), {"known": known, "seeds": seeds}


@given(guided())
@settings(max_examples=60, deadline=None)
def test_conditional_is_the_joint_with_one_topic_changed(case):
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
        assert not of_documents[~allowed(more["known"])].any()
    assert np.array_equal(state.document_counts(), of_documents)
    assert np.array_equal(state.counts()["topics"], of_topics)
    both = of_topics + more["seeds"]
    assert np.array_equal(state._table.totals, both.sum(axis=1))
    expected = joint(counts, alpha, beta, state.topics, **more)
    assert state.log_joint() == pytest.approx(expected, abs=1e-8)
    fresh = sampler(counts, alpha, beta, state.topics, lists, **more)
    for i in range(len(state.topics)):
        assert np.array_equal(state.conditional(i), fresh.conditional(i))
    means = (both + beta) / (both + beta).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(state.means()["topics"], means, rtol=1e-12)


SMALL = np.array([[2, 1, 0], [0, 0, 0], [0, 1, 2]])
ALPHA = np.array([0.7, 0.4, 1.1])
KNOWN = np.array([[True, False, True], [True, False, False], [False, False, False]])
SEEDS = np.array([[3, 0, 0], [0, 0, 0], [0, 1, 2]])
NOTHING = np.zeros((3, 3), int)


@BOTH
@pytest.mark.parametrize("temper", [1.0, 0.5])
@pytest.mark.parametrize(
    ("known", "seeds"),
    [(KNOWN, NOTHING), (NOTHING, SEEDS), (KNOWN, SEEDS), (KNOWN[[1, 1, 0]], SEEDS)],
    ids=["known", "seeds", "both", "one topic"],
)
def test_a_long_run_is_the_posterior(known, seeds, temper, lists):
    state = sampler(SMALL, ALPHA, 0.3, lists=lists, known=known, seeds=seeds)
    seen = Counter()
    for t in range(12_000):
        state.sweep(t, temper)
        if t % 4 == 0:
            seen[tuple(state.topics.tolist())] += 1
    expected = posterior(SMALL, ALPHA, 0.3, temper, known, seeds)
    assert surprise(seen, expected) < 1
    # the test can tell: without what is known, or with a power that is another, it would not pass
    assert surprise(seen, posterior(SMALL, ALPHA, 0.3, 1.5 * temper, known, seeds)) > 1
    assert surprise(seen, posterior(SMALL, ALPHA, 0.3, temper)) > 1


@BOTH
@pytest.mark.parametrize("few", [[0, 2], [1, 2], [0, 1, 2]], ids=str)
def test_a_free_document_knows_what_those_before_it_did(few, lists):
    """One sweep, many streams: a long document moves, then a token is drawn that feels it."""
    known = np.zeros((2, 4), bool)
    known[0, few] = True
    counts, z = np.array([[30, 0], [0, 1]]), [*[2] * 30, 3]
    state = sampler(counts, np.full(4, 1000.0), 2.0, z, lists, known=known)  # α: many move
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
        known, seeds = np.zeros((12, n_topics), bool), np.zeros((n_topics, 20), int)
        known[:6, [3, n_topics - 1]] = True
        seeds[3, :4], seeds[n_topics - 1, 2:6] = 5, 70
        rows, given = csr_matrix(counts), {"known": csr_matrix(known), "seeds": csr_matrix(seeds)}
        parts = rows.indptr, rows.indices, rows.data, 20
        state = CollapsedTopics(*parts, alpha=alpha, beta=0.1, **given)
        assert bool(len(state._table.dense)) == (n_topics < LISTS_FROM)
        for t in range(20):
            state.sweep(t, 1.0 if t % 5 else 0.8)
        of_documents, of_topics = tally(counts, state.topics, n_topics)
        assert not of_documents[~allowed(known)].any()
        assert np.array_equal(state._table.totals, (of_topics + seeds).sum(axis=1))
        expected = joint(counts, alpha, 0.1, state.topics, known, seeds)
        assert state.log_joint() == pytest.approx(expected, rel=1e-10)
        logs = state.conditional(7)
        changed = [[*state.topics[:7], k, *state.topics[8:]] for k in (3, n_topics - 1)]
        direct = [joint(counts, alpha, 0.1, z, known, seeds) for z in changed]
        assert logs[-1] - logs[3] == pytest.approx(direct[1] - direct[0], abs=1e-8)
        assert np.isneginf(logs).sum() == n_topics - 2


@BOTH
def test_first_topics_are_as_likely_as_words_have_them(lists):
    likely = np.array([[0.5, 0.0, 0.1, 0.0], [0.3, 0.2, 0.1, 0.0], [0.2, 0.8, 0.0, 0.0]])
    counts = np.array([[1, 1, 1, 1], [1, 1, 1, 1]])
    known = np.array([[False, False, False], [True, False, True]])
    seen = [Counter() for _ in range(8)]
    for seed in range(800):
        more = {"known": known, "likely": likely}
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
    known = np.array([[True, False, False], [False, True, True], [False, False, False]])
    counts = np.full((3, 2), 60)
    state = sampler(counts, np.ones(3), 0.1, lists=lists, known=known)
    assert np.array_equal(state.document_counts() > 0, allowed(known))


def test_a_start_that_is_not_allowed_is_named():
    known = np.array([[True, False], [False, False]])
    with pytest.raises(DataError, match="token 1 begins in topic 1, which document 0 cannot have"):
        sampler([[2, 0], [0, 2]], np.ones(2), 0.1, [0, 1, 1, 1], known=known)


@BOTH
def test_entries_that_are_zero_or_there_twice(lists):
    """Explicit zeros allow nothing and seed nothing; what is there twice adds up."""
    where = [0, 0, 1], [0, 0, 1]
    odd = {
        "seeds": coo_matrix(([1, 2, 0], where), shape=(2, 2)),
        "known": coo_matrix(([True, True, False], where), shape=(2, 2)),
    }
    plain = {"seeds": np.array([[3, 0], [0, 0]]), "known": np.array([[1, 0], [0, 0]], bool)}
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
    assert np.array_equal(one._table.totals, two._table.totals)


@given(guided())
@settings(max_examples=60, deadline=None)
def test_optimising_never_loses(case):
    counts, alpha, beta, z, lists, more = case
    state = sampler(counts, alpha, beta, z, lists, **more)
    before = state.log_joint()
    state.optimise()
    after = joint(counts, state.alpha, state.beta, z, **more)
    assert after >= before - 1e-7 * (1 + abs(before))
    assert state.log_joint() == pytest.approx(after, abs=1e-7)
    if more["seeds"].any():
        assert state.beta == beta
    state.sweep(1)


@BOTH
def test_documents_with_a_choice_have_their_say_in_the_prior(lists):
    """Many that have both of two topics evenly, few free ones that have one each."""
    counts = np.full((12, 2), 10)
    known = np.zeros((12, 3), bool)
    known[:9, :2] = True
    z = [*([0] * 10 + [1] * 10) * 9, *[0] * 20, *[1] * 20, *[2] * 20]
    start = np.ones(3)
    state = sampler(counts, start, 0.1, z, lists, known=known)
    state.optimise()
    found = joint(counts, state.alpha, state.beta, z, known)
    assert found > joint(counts, start, state.beta, z, known)
    for factor in (0.9, 1.1):  # a maximum, in all directions
        for change in np.eye(3):
            moved = state.alpha * factor**change
            assert joint(counts, moved, state.beta, z, known) < found
    # the free ones alone would have said something else, and made the whole less likely
    alone = sampler(counts[9:], start, 0.1, z[180:], lists)
    alone.optimise()
    assert joint(counts, alone.alpha, state.beta, z, known) < found - 1


def test_documents_of_one_topic_say_nothing_of_the_prior():
    counts, alpha = np.full((6, 2), 5), np.array([0.3, 2.0, 0.7])
    known = np.zeros((6, 3), bool)
    known[3:, 1] = True
    z = [*[0] * 5, *[2] * 5] * 3 + [1] * 30
    state, without = (sampler(counts[:n], alpha, 0.1, z[: 10 * n], known=known[:n]) for n in (6, 3))
    for one in (state, without):
        one.optimise()
    assert np.array_equal(state.alpha, without.alpha)
    every = sampler(counts[3:], alpha, 0.1, [1] * 30, known=known[3:])
    every.optimise()
    assert every.alpha.tolist() == alpha.tolist()


def told(rng, alpha, beta, lengths, known, seeds, lists) -> list[Counter]:
    """Geweke (2004): words anew given topics, topics anew given words, in turn."""
    owner, may = np.repeat(np.arange(len(lengths)), lengths), allowed(known)
    z = np.array([rng.choice(np.flatnonzero(may[d])) for d in owner])
    seen = [Counter() for _ in lengths]
    for t in range(10_000):
        phi = np.array([rng.dirichlet(beta + row) for row in seeds])
        words = (rng.random((len(z), 1)) > np.cumsum(phi[z], axis=1)).sum(axis=1)
        words = np.minimum(words, seeds.shape[1] - 1)
        # tokens of one word in random order: where they were says something of their topics
        order = np.lexsort((rng.random(len(z)), words, owner))
        counts = np.zeros((len(lengths), seeds.shape[1]), int)
        np.add.at(counts, (owner, words), 1)
        state = sampler(counts, alpha, beta, z[order], lists, known=known, seeds=seeds)
        state.sweep(t)
        z = state.topics.astype(int)
        if t % 5 == 0:
            for d, row in enumerate(state.document_counts()):
                seen[d][int(row[0])] += 1
    return seen


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("which", ["known", "seeds", "both"])
def test_words_drawn_anew_leave_the_prior_alone(which, lists):
    """Each document's number of tokens of topic 0 stays beta-binomial, over what it may have."""
    alpha, beta, lengths = np.array([0.6, 1.1, 0.8]), 0.4, [4, 0, 2, 5]
    known = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [0, 0, 0]], bool)
    seeds = np.array([[4, 0, 0], [0, 0, 2], [0, 0, 0]])
    if which == "known":
        seeds = np.zeros_like(seeds)
    if which == "seeds":
        known = np.zeros_like(known)
    seen = told(np.random.default_rng(5), alpha, beta, lengths, known, seeds, lists)
    for d in (0, 2, 3):
        n, others = lengths[d], float(alpha[1:] @ allowed(known)[d, 1:])
        ways = [
            math.comb(n, j) * math.exp(dirichlet_multinomial([[j, n - j]], [alpha[0], others]))
            for j in range(n + 1)
        ]
        assert surprise(seen[d], dict(enumerate(ways))) < 1
