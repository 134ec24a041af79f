"""The collapsed sampler of hidden Markov models against log-gammas and enumeration."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from softcount import HMM, CollapsedGibbs
from softcount.core.errors import LearnerError
from softcount.families import Categorical
from softcount.hmm.gibbs import CollapsedChain, read_priors
from tests.oracles.chance import surprise

KINDS = [(1, True), (1, False), (2, True), (2, False)]
NAMES = ["order 1 with stop", "order 1", "order 2 with stop", "order 2"]


def shapes(n_states: int, n_words: int, order: int, stop: bool) -> dict[str, tuple[int, int]]:
    outcomes = n_states + stop
    tables = {"start": (1, n_states), "emissions": (n_states, n_words)}
    if order == 2:
        tables["second"] = (n_states, outcomes)
    return tables | {"transitions": (n_states**order, outcomes)}


def tallied(sentences, z, sizes, order, stop) -> dict[str, np.ndarray]:
    """Counts of all events, from scratch; z has the states of all tokens in a row."""
    n_states = sizes["start"][1]
    counts = {name: np.zeros(shape) for name, shape in sizes.items()}
    rest = list(z)
    for words in sentences:
        path, rest = rest[: len(words)], rest[len(words) :]
        for k, w in zip(path, words, strict=True):
            counts["emissions"][k, w] += 1
        outcomes = path + [n_states] * (stop and len(path) > 0)
        for i, v in enumerate(outcomes):
            if i == 0:
                counts["start"][0, v] += 1
            elif order == 1:
                counts["transitions"][outcomes[i - 1], v] += 1
            elif i == 1:
                counts["second"][outcomes[0], v] += 1
            else:
                counts["transitions"][outcomes[i - 2] * n_states + outcomes[i - 1], v] += 1
    return counts


def joint(sentences, z, priors, order, stop) -> float:
    """log p(w, z) = Σ_rows log [Γ(A) / Γ(A + N) Π Γ(α + n) / Γ(α)], zeros of α left out."""
    counts = tallied(sentences, z, {name: a.shape for name, a in priors.items()}, order, stop)
    log_p = 0.0
    for name, table in priors.items():
        for alpha, n in zip(table, counts[name], strict=True):
            if np.any(n[alpha == 0]):
                return -math.inf
            a, n = alpha[alpha > 0], n[alpha > 0]
            if len(a) == 0:
                continue
            log_p += np.sum(gammaln(a + n) - gammaln(a)) + gammaln(a.sum()) - gammaln((a + n).sum())
    return float(log_p)


def sampler(sentences, z, priors, order, stop, sets=None, allowed=None) -> CollapsedChain:
    n = sum(map(len, sentences))
    return CollapsedChain(
        priors,
        np.array([w for words in sentences for w in words], np.int32),
        np.append(0, np.cumsum([len(words) for words in sentences])),
        np.array(z, int),
        np.zeros(n, int) if sets is None else np.array(sets),
        np.ones((1, len(priors["emissions"])), bool) if allowed is None else np.array(allowed),
    )


@st.composite
def cases(draw):
    """Sentences, states, priors, order, stop, sets and allowed states."""
    n_states, n_words = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    order, stop = draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    sentences = [rng.integers(0, n_words, n).tolist() for n in lengths]
    priors = {
        name: draw(st.sampled_from([1e-8, 0.1, 3.0])) * rng.uniform(0.5, 2, shape)
        for name, shape in shapes(n_states, n_words, order, stop).items()
    }
    allowed = rng.random((3, n_states)) < 0.6
    allowed[np.arange(3), rng.integers(0, n_states, 3)] = True
    allowed[0] = True
    sets = rng.integers(0, 3, sum(lengths)) * draw(st.booleans())
    z = [rng.choice(np.flatnonzero(allowed[s])) for s in sets]
    if draw(st.booleans()):  # impossible words and starts, but for those that there are
        seen = tallied(sentences, z, {n: a.shape for n, a in priors.items()}, order, stop)
        for name in ("start", "emissions"):
            spared = (seen[name] > 0) | (rng.random(seen[name].shape) < 0.5)
            priors[name] *= spared
    return sentences, z, priors, order, stop, sets, allowed


def up_to_a_constant(logs: np.ndarray) -> np.ndarray:
    return logs - np.logaddexp.reduce(logs)


@given(cases())
@settings(max_examples=80, deadline=None)
def test_conditional_is_the_joint_with_one_state_changed(case):
    sentences, z, priors, order, stop, sets, allowed = case
    chain = sampler(*case)
    for i, s in enumerate(sets):
        expected = np.array(
            [
                joint(sentences, [*z[:i], k, *z[i + 1 :]], priors, order, stop)
                if allowed[s, k]
                else -np.inf
                for k in range(len(allowed[s]))
            ]
        )
        found = up_to_a_constant(chain.conditional(i))
        np.testing.assert_allclose(found, up_to_a_constant(expected), rtol=1e-10, atol=1e-10)
    assert np.array_equal(chain.states, z)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_joint_and_counts(case):
    sentences, z, priors, order, stop, *_ = case
    chain = sampler(*case)
    expected = joint(sentences, z, priors, order, stop)
    assert chain.log_joint() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    tally = tallied(sentences, z, {name: a.shape for name, a in priors.items()}, order, stop)
    found = chain.counts()
    assert set(found) == set(tally)
    for name, table in tally.items():
        assert found[name].dtype == np.float64
        assert np.array_equal(found[name], table), name


@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.2, 1.0, 4.0]))
@settings(max_examples=60, deadline=None)
def test_a_sweep_keeps_counts_and_sets(case, stream, temper):
    sentences, _, priors, order, stop, sets, allowed = case
    chain, again = sampler(*case), sampler(*case)
    for each in (chain, again):
        each.sweep(stream, temper)
        each.sweep(stream ^ 1, temper)
    z = chain.states.tolist()
    assert z == again.states.tolist()
    assert chain.log_joint() == again.log_joint()
    assert allowed[sets, z].all()
    assert math.isfinite(joint(sentences, z, priors, order, stop))
    fresh = sampler(sentences, z, priors, order, stop, sets, allowed)
    for name, table in fresh.counts().items():
        assert np.array_equal(chain.counts()[name], table), name
    for i in range(len(z)):  # no rounding is left behind
        assert np.array_equal(chain.conditional(i), fresh.conditional(i))


def test_streams_differ():
    drawn = set()
    for stream in range(5):
        chain = sampler([[0] * 40], [0] * 40, EVEN, 1, True)
        chain.sweep(stream)
        drawn.add(tuple(chain.states.tolist()))
    assert len(drawn) == 5


EVEN = {name: np.full(shape, 100.0) for name, shape in shapes(2, 1, 1, True).items()}
SENTENCES = [[0, 1, 0, 0, 2], [], [1], [2, 0]]


def some_priors(order: int, stop: bool, n_states: int = 2, size: float = 0.3) -> dict:
    rng = np.random.default_rng(3)
    tables = shapes(n_states, 3, order, stop).items()
    return {name: size * rng.uniform(0.5, 2, shape) for name, shape in tables}


def visits(priors, order, stop, temper, n=8000, thin=4, **sets) -> Counter:
    """How often each assignment was seen in a long run."""
    chain, seen = sampler(SENTENCES, [0] * 8, priors, order, stop, **sets), Counter()
    for t in range(n * thin):
        chain.sweep(t, temper)
        if t % thin == 0:
            seen[tuple(chain.states.tolist())] += 1
    return seen


def exact(priors, order, stop, temper, possible=lambda z: True) -> dict:
    """The posterior of every assignment, by enumeration."""
    log_p = {
        z: temper * joint(SENTENCES, z, priors, order, stop)
        for z in product(range(2), repeat=8)
        if possible(z)
    }
    total = np.logaddexp.reduce(list(log_p.values()))
    return {z: math.exp(value - total) for z, value in log_p.items()}


@pytest.mark.parametrize("temper", [1.0, 0.5])
@pytest.mark.parametrize(("order", "stop"), KINDS, ids=NAMES)
def test_a_long_run_is_the_posterior(order, stop, temper):
    priors = some_priors(order, stop)
    seen = visits(priors, order, stop, temper)
    assert surprise(seen, exact(priors, order, stop, temper)) < 1
    # the test can tell: a somewhat different model, or power, would not pass
    for name in ("transitions", "emissions"):
        other = priors | {name: 4 * priors[name]}
        assert surprise(seen, exact(other, order, stop, temper)) > 1
    assert surprise(seen, exact(priors, order, stop, 1.3 * temper)) > 1


def test_a_long_run_with_known_and_impossible_states():
    priors = some_priors(2, True)
    priors["emissions"][1, 2] = 0.0  # the fifth and seventh tokens must be in state 0
    sets, allowed = [0, 1, 0, 0, 0, 0, 0, 0], [[True, True], [True, False]]
    seen = visits(priors, 2, True, 1.0, sets=sets, allowed=allowed)
    expected = exact(priors, 2, True, 1.0, possible=lambda z: z[1] == z[4] == z[6] == 0)
    assert len(seen) > 8
    assert surprise(seen, expected) < 1


@pytest.mark.slow
@pytest.mark.parametrize(("order", "stop"), KINDS, ids=NAMES)
def test_words_drawn_anew_leave_the_prior_alone(order, stop):
    """Geweke (2004): w from p(w | z) and z by a sweep, in turn, leave z distributed as p(z)."""
    rng = np.random.default_rng(5)
    priors, z, seen = some_priors(order, stop), np.zeros(8, int), Counter()
    for t in range(6000):
        of_state = np.array([rng.dirichlet(row) for row in priors["emissions"]])
        words = [int(rng.choice(3, p=of_state[k])) for k in z]
        chain = sampler([words[:5], [], words[5:6], words[6:]], z, priors, order, stop)
        chain.sweep(t)
        z = chain.states
        if t % 2 == 0:
            seen[tuple(z.tolist())] += 1
    without = priors | {"emissions": np.ones((2, 1))}  # one word says nothing
    silent = [[0] * len(words) for words in SENTENCES]
    log_p = {z: joint(silent, z, without, order, stop) for z in product(range(2), repeat=8)}
    total = np.logaddexp.reduce(list(log_p.values()))
    if not stop:  # with it the lengths have a probability too
        assert total == pytest.approx(0)
    assert surprise(seen, {z: math.exp(p - total) for z, p in log_p.items()}) < 1


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("prior", [1e-50, 1e12])
def test_extreme_priors(order, prior):
    priors = {n: np.full(s, prior) for n, s in shapes(3, 4, order, True).items()}
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 4, 10).tolist() for _ in range(5)]
    chain = sampler(sentences, rng.integers(0, 3, 50), priors, order, True)
    for stream in range(3):
        assert all(np.isfinite(chain.conditional(i)).all() for i in range(50))
        chain.sweep(stream, 0.5)
    assert math.isfinite(chain.log_joint())


def test_priors_of_families():
    priors = some_priors(2, True)
    families = {name: Categorical(table.shape, prior=table) for name, table in priors.items()}
    mask = np.array([[True, True, True], [True, True, False]])
    families["emissions"] = Categorical((2, 3), prior=priors["emissions"], mask=mask)
    priors["emissions"] = priors["emissions"] * mask
    found = read_priors(families)
    assert found.keys() == priors.keys()
    for name, table in priors.items():
        np.testing.assert_array_equal(found[name], table)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("emissions", {"tied": [0, 0]}, "emissions have tied or frozen rows"),
        ("transitions", {"frozen": [True, False]}, "transitions have tied or frozen rows"),
        ("transitions", {"mask": [[True, True, False], [True, True, True]]}, "prior has zeros"),
    ],
)
def test_families_that_cannot_be_integrated_out(name, change, message):
    families = {n: Categorical(s) for n, s in shapes(2, 3, 1, True).items()}
    families[name] = Categorical(
        families[name].shape, **{k: np.array(v) for k, v in change.items()}
    )
    with pytest.raises(LearnerError, match=message):
        read_priors(families)


@pytest.mark.parametrize("prior", [1e-60, 1e99])
def test_priors_that_are_too_small_or_too_large(prior):
    families = {n: Categorical(s, prior=prior) for n, s in shapes(2, 3, 1, True).items()}
    with pytest.raises(LearnerError, match="start_prior must be numbers from"):
        read_priors(families)


def test_weights_are_refused():
    model = HMM(2, learner=CollapsedGibbs(max_iter=2), smoothing=0.1)
    with pytest.raises(LearnerError, match="does not support sample_weight"):
        model.fit(["a b", "b"], sample_weight=[1.0, 0.5])


def test_nothing_to_sample():
    small = {n: np.full(s, 0.3) for n, s in shapes(2, 0, 1, True).items()}
    chain = sampler([[], []], [], small, 1, True)
    chain.sweep(0)
    assert chain.log_joint() == 0.0
    assert chain.counts()["transitions"].tolist() == [[0, 0, 0], [0, 0, 0]]
    alone = sampler(
        [[0, 1]], [0, 0], {n: np.full(s, 0.3) for n, s in shapes(1, 2, 1, True).items()}, 1, True
    )
    alone.sweep(0)
    assert alone.counts()["emissions"].tolist() == [[1, 1]]
