"""The spectral start against exact moments, simulated and real text, and awkward data."""

from __future__ import annotations

from bisect import bisect
from itertools import permutations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from softcount.core.errors import DataError, LearnerError
from softcount.hmm.starts import Triples, average_posteriors, solve_moments, spectral_start
from tests import real


def random_chain(K, V, seed):
    """start, transitions, stop, emissions, all states well apart."""
    rng = np.random.default_rng(seed)
    transitions = 0.3 * rng.dirichlet(np.ones(K), K) + 0.7 * np.roll(np.eye(K), 1, axis=1)
    emissions = 0.4 * rng.dirichlet(np.ones(V), K)
    for k in range(K):
        emissions[k, k::K] += 0.6 * rng.dirichlet(np.ones(len(range(k, V, K))))
    return rng.dirichlet(np.ones(K)), transitions, rng.uniform(0.03, 0.2, K), emissions


def exact_triples(start, transitions, stop, emissions):
    """How often every triple is expected in 10²⁰ sentences; word V is the edge."""
    K, V = emissions.shape
    goes_on = transitions * (1 - stop)[:, None]
    visits = np.linalg.solve((np.eye(K) - goes_on).T, start)
    joint = np.zeros((V + 1, V, V + 1))
    for z in range(K):
        before = np.append((visits * goes_on[:, z]) @ emissions, start[z])
        after = np.append(goes_on[z] @ emissions, stop[z])
        joint += np.einsum("a,b,c->abc", before, emissions[z], after)
    words = np.indices(joint.shape).reshape(3, -1)
    return Triples(words, 1e20 * joint.ravel(), V)


def order_of(found, truth):
    """The order of found states that is nearest to the truth."""
    orders = [list(order) for order in permutations(range(len(truth)))]
    return min(orders, key=lambda order: np.abs(found[order] - truth).max())


def assert_same(found, truth, atol):
    start, transitions, stop, emissions = truth
    order = order_of(found["emissions"], emissions)
    np.testing.assert_allclose(found["emissions"][order], emissions, atol=atol)
    np.testing.assert_allclose(found["transitions"][order][:, order], transitions, atol=atol)
    np.testing.assert_allclose(found["start"][order], start, atol=atol)
    np.testing.assert_allclose(found["stop"][order], stop, atol=atol)


def assert_proper(found, K, V):
    for name, shape in {
        "start": (K,),
        "transitions": (K, K),
        "stop": (K,),
        "emissions": (K, V),
    }.items():
        assert found[name].shape == shape
        assert np.isfinite(found[name]).all()
        assert (found[name] > 0).all()
        if name != "stop":
            np.testing.assert_allclose(found[name].sum(axis=-1), 1.0)
    assert (found["stop"] <= 1).all()


def simulated(start, transitions, stop, emissions, n_tokens, seed):
    rng = np.random.default_rng(seed)
    K, V = emissions.shape
    follow = np.cumsum(np.hstack([transitions * (1 - stop)[:, None], stop[:, None]]), axis=1)
    begin, follow, draws = np.cumsum(start).tolist(), follow.tolist(), rng.random(n_tokens).tolist()
    state, states, indptr = K, [], [0]
    for draw in draws:
        if state < K:
            state = bisect(follow[state], draw * follow[state][-1])
        if state == K:
            if states:
                indptr.append(len(states))
            state = bisect(begin, rng.random() * begin[-1])
        states.append(state)
    tokens = np.empty(len(states), np.int32)
    for k in range(K):
        mine = np.flatnonzero(np.array(states) == k)
        tokens[mine] = rng.choice(V, len(mine), p=emissions[k])
    return tokens, np.array([*indptr, len(states)], np.int64)


def log_likelihood(tokens, indptr, start, transitions, stop, emissions):
    """The forward algorithm, on all sentences side by side, longest first."""
    lengths = np.diff(indptr)
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    first, lengths = indptr[:-1][order], lengths[order]
    follow = transitions * (1 - stop)[:, None]
    total, state = 0.0, np.tile(start, (len(lengths), 1))
    for place in range(int(lengths.max())):
        n = int((lengths > place).sum())
        state = state[:n] @ follow if place else state
        state = state * emissions[:, tokens[first[:n] + place]].T
        mass = state.sum(axis=1, keepdims=True)
        state /= mass
        total += np.log(mass).sum()
        total += np.log(state[lengths[:n] == place + 1] @ stop).sum()
    return total


def score(tokens, indptr, found):
    values = (found[name] for name in ("start", "transitions", "stop", "emissions"))
    return log_likelihood(tokens, indptr, *values)


def random_start(K, frequencies, rng):
    """Near the overall frequencies, as EM usually begins."""
    emissions = frequencies * rng.gamma(10.0, size=(K, len(frequencies)))
    return {
        "start": rng.dirichlet(np.full(K, 10.0)),
        "transitions": rng.dirichlet(np.full(K, 10.0), K),
        "emissions": emissions / emissions.sum(axis=1, keepdims=True),
    }


@settings(deadline=None, max_examples=15)
@given(K=st.integers(1, 5), extra=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_exact_moments_give_the_parameters_back(K, extra, seed):
    truth = random_chain(K, 2 * K + extra, seed)
    chain = solve_moments(exact_triples(*truth), K, np.random.default_rng(seed))
    assert_same(chain.parameters(), truth, atol=1e-6)


def test_the_truth_is_a_fixed_point_of_averaging():
    truth = random_chain(3, 8, 5)
    triples = exact_triples(*truth)
    chain = solve_moments(triples, 3, np.random.default_rng(0))
    assert_same(average_posteriors(triples, chain).parameters(), truth, atol=1e-6)


@pytest.mark.parametrize(("K", "V", "seed"), [(3, 50, 0), (4, 80, 1), (5, 100, 2)])
def test_simulated_text_is_nearly_as_likely_as_under_the_truth(K, V, seed):
    truth = random_chain(K, V, seed)
    tokens, indptr = simulated(*truth, 200_000, seed)
    found = spectral_start(tokens, indptr, V, K, np.random.default_rng(0))
    assert_proper(found, K, V)
    best = log_likelihood(tokens, indptr, *truth)
    one_state = spectral_start(tokens, indptr, V, 1, np.random.default_rng(0))
    assert score(tokens, indptr, one_state) < 1.03 * best  # so there is something to find
    assert score(tokens, indptr, found) > 1.01 * best
    assert_same(found, truth, atol=0.05)


def test_triples_are_those_of_the_sentences():
    sentences = [[3, 1], [], [2], [0, 0, 1, 4]]
    tokens = np.concatenate(sentences).astype(np.int32)
    indptr = np.cumsum([0] + [len(s) for s in sentences])
    triples = Triples.from_sentences(tokens, indptr, 5, np.array([1.0, 2.0, 3.0, 0.5]))
    expected = [
        (*around, weight)
        for s, weight in zip(sentences, (1.0, 2.0, 3.0, 0.5), strict=True)
        for around in zip([5, *s], s, [*s[1:], 5], strict=False)
    ]
    assert [(*w, n) for w, n in zip(triples.words.T.tolist(), triples.weights, strict=True)] == (
        expected
    )


def test_one_state_is_the_word_frequencies():
    tokens, indptr = np.array([0, 1, 1, 2, 1, 1, 0, 1]), np.array([0, 4, 4, 8])
    found = spectral_start(tokens, indptr, 3, 1, np.random.default_rng(0))
    assert_proper(found, 1, 3)
    np.testing.assert_allclose(found["emissions"][0], [2 / 8, 5 / 8, 1 / 8], atol=0.02)
    np.testing.assert_allclose(found["stop"], [0.25], atol=0.1)


def test_same_seed_same_bits_and_weights_are_copies():
    truth = random_chain(3, 12, 3)
    tokens, indptr = simulated(*truth, 3_000, 3)
    first, second = (
        spectral_start(tokens, indptr, 12, 3, np.random.default_rng(7)) for _ in range(2)
    )
    for name in first:
        assert first[name].tobytes() == second[name].tobytes()
    twice_indptr = np.concatenate([indptr, indptr[1:] + indptr[-1]])
    copied = spectral_start(np.tile(tokens, 2), twice_indptr, 12, 3, np.random.default_rng(7))
    weights = np.full(len(indptr) - 1, 2.0)
    weighted = spectral_start(tokens, indptr, 12, 3, np.random.default_rng(7), weights)
    order = order_of(weighted["emissions"], copied["emissions"])
    np.testing.assert_allclose(weighted["emissions"][order], copied["emissions"], atol=1e-6)


def test_words_never_seen_stay_possible():
    truth = random_chain(2, 10, 1)
    tokens, indptr = simulated(*truth, 2_000, 1)
    found = spectral_start(tokens, indptr, 400, 2, np.random.default_rng(0))  # sparse: 400 words
    assert_proper(found, 2, 400)
    assert found["emissions"][:, 10:].sum(axis=1).max() < 0.01


@pytest.mark.parametrize(
    ("sentences", "K"),
    [([[0, 1, 2, 3]] * 20, 40), ([[0]], 2), ([[0, 0, 0]] * 9, 3)],
    ids=["more states than words", "one word", "one word again and again"],
)
def test_too_many_states_are_refused_with_advice(sentences, K):
    tokens = np.concatenate(sentences)
    indptr = np.cumsum([0] + [len(s) for s in sentences])
    with pytest.raises(LearnerError, match=f"{K} different states") as error:
        spectral_start(tokens, indptr, 5, K, np.random.default_rng(0))
    assert "fewer states" in error.value.hint


def test_states_beyond_the_rank_of_exact_moments_are_refused():
    triples = exact_triples(*random_chain(3, 9, 0))
    with pytest.raises(LearnerError, match="4 different states"):
        solve_moments(triples, 4, np.random.default_rng(0))


@pytest.mark.parametrize("K", [0, 257])
def test_numbers_of_states_that_no_tensor_has(K):
    with pytest.raises(LearnerError, match=f"{K} states"):
        spectral_start(np.array([0, 1]), np.array([0, 2]), 2, K, np.random.default_rng(0))


def test_nothing_to_learn_from():
    with pytest.raises(LearnerError, match="needs words"):
        spectral_start(np.array([], int), np.array([0, 0]), 2, 2, np.random.default_rng(0))
    with pytest.raises(LearnerError, match="needs words"):
        spectral_start(np.array([0]), np.array([0, 1]), 2, 2, np.random.default_rng(0), np.zeros(1))


@pytest.mark.parametrize("weight", [np.inf, np.nan, -1.0])
def test_impossible_weights(weight):
    with pytest.raises(DataError, match="weights"):
        Triples.from_sentences(np.array([0]), np.array([0, 1]), 2, np.array([weight]))


def test_real_text_begins_far_above_a_random_start():
    sentences = real.tagged("ud/en_ewt-ud-train.conllu.gz", 3000)
    numbers: dict[str, int] = {}
    tokens = np.array([numbers.setdefault(w, len(numbers)) for s in sentences for w, _ in s])
    indptr = np.cumsum([0] + [len(s) for s in sentences])
    V, rng = len(numbers), np.random.default_rng(0)
    found = spectral_start(tokens, indptr, V, 17, rng)
    assert_proper(found, 17, V)
    frequencies = np.bincount(tokens) / len(tokens)
    at_random = random_start(17, frequencies, rng) | {"stop": np.full(17, 3000 / len(tokens))}
    gain = score(tokens, indptr, found) - score(tokens, indptr, at_random)
    assert gain / len(tokens) > 0.2
    states = {
        word: int(np.argmax(found["emissions"][:, numbers[word]]))
        for word in ["he", "she", "the", "a", "."]
    }
    assert states["the"] == states["a"] != states["he"] == states["she"]
    assert found["stop"][states["."]] > 0.5
