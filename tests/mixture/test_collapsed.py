"""The collapsed sampler against urns, enumeration, and the prior that it must leave alone."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import chi2

from softcount.core.errors import DataError, LearnerError
from softcount.kernels import collapsed as kernel
from softcount.mixture.gibbs import CollapsedMixture, Restaurant
from tests.oracles.chance import surprise


def sampler(counts, alpha, beta, z, allowed=None) -> CollapsedMixture:
    """A sampler of a dense table of counts."""
    counts = np.asarray(counts)
    rows, words = np.nonzero(counts)
    indptr = np.searchsorted(rows, np.arange(len(counts) + 1))
    return CollapsedMixture(
        indptr,
        words,
        counts[rows, words],
        counts.shape[1],
        alpha=alpha,
        beta=beta,
        assignments=z,
        allowed=allowed,
    )


def urn(counts, alpha, beta, z, named: bool = True) -> float:
    """log p(x, z) by drawing documents and tokens from urns, one after the other.

    In a restaurant a new class takes one of the free places at random, if classes are ``named``.
    """
    counts = np.asarray(counts)
    n_words = counts.shape[1]
    restaurant = isinstance(alpha, Restaurant)
    n_classes = alpha.capacity if restaurant else len(alpha)
    beta = np.broadcast_to(beta, n_words)
    sizes, in_class, log_p = np.zeros(n_classes), np.zeros((n_classes, n_words)), 0.0
    for d, k in enumerate(z):
        if not restaurant:
            log_p += math.log((sizes[k] + alpha[k]) / (d + sum(alpha)))
        elif sizes[k]:
            log_p += math.log(sizes[k] / (d + alpha.concentration))
        else:
            places = np.sum(sizes == 0) if named else 1
            log_p += math.log(alpha.concentration / (d + alpha.concentration) / places)
        sizes[k] += 1
        for w in np.repeat(np.arange(n_words), counts[d]):
            log_p += math.log((in_class[k, w] + beta[w]) / (in_class[k].sum() + beta.sum()))
            in_class[k, w] += 1
    return log_p


def up_to_a_constant(logs: np.ndarray) -> np.ndarray:
    return logs - np.logaddexp.reduce(logs)


@st.composite
def cases(draw):
    n_docs, n_words, n_classes = (draw(st.integers(1, top)) for top in (5, 4, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.integers(0, 4, (n_docs, n_words)) * rng.choice([1, 1, 15], (n_docs, n_words))
    size = draw(st.sampled_from([1e-3, 0.3, 5.0]))
    alpha = size * rng.uniform(0.5, 2, n_classes)
    if draw(st.booleans()):
        alpha = Restaurant(size, n_classes)
    beta = draw(st.sampled_from([1e-8, 0.1, 3.0])) * rng.uniform(0.5, 2, n_words)
    lower = rng.integers(0, n_classes, n_docs)
    upper = rng.integers(lower + 1, n_classes + 1)
    if draw(st.booleans()):
        lower, upper = np.zeros_like(lower), np.full_like(upper, n_classes)
    return counts, alpha, beta, rng.integers(lower, upper), (lower, upper)


@given(cases())
@settings(max_examples=50, deadline=None)
def test_conditional_is_the_joint_with_one_class_changed(case):
    counts, alpha, beta, z, (lower, upper) = case
    state = sampler(*case)
    for d in range(len(counts)):
        expected = np.full(len(state.counts()["weights"][0]), -np.inf)
        for k in range(lower[d], upper[d]):
            expected[k] = urn(counts, alpha, beta, [*z[:d], k, *z[d + 1 :]])
        found = state.conditional(d)
        np.testing.assert_allclose(up_to_a_constant(found), up_to_a_constant(expected), atol=1e-9)
    assert np.array_equal(state.assignments, z)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_joint_is_that_of_the_urns(case):
    counts, alpha, beta, z, _ = case
    assert sampler(*case).log_joint() == pytest.approx(
        urn(counts, alpha, beta, z, named=False), abs=1e-9
    )


@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.2, 1.0, 4.0]))
@settings(max_examples=30, deadline=None)
def test_a_sweep_keeps_counts_and_ranges(case, stream, temper):
    counts, _, _, _, (lower, upper) = case
    state, again = sampler(*case), sampler(*case)
    for s in (state, again):
        s.sweep(stream, temper)
        s.sweep(stream ^ 1, temper)
    z, found = state.assignments, state.counts()
    hot = np.eye(found["weights"].shape[1])[z]
    assert np.array_equal(found["weights"], hot.sum(axis=0, keepdims=True))
    assert np.array_equal(found["words"], hot.T @ counts)
    assert np.all((lower <= z) & (z < upper))
    assert np.array_equal(z, again.assignments)
    assert state.log_joint() == again.log_joint()


def test_streams_differ():
    case = np.ones((40, 1), int), np.full(2, 100.0), 1.0, np.zeros(40, int)
    drawn = set()
    for stream in range(5):
        state = sampler(*case)
        state.sweep(stream)
        drawn.add(tuple(state.assignments))
    assert len(drawn) == 5


COUNTS = np.array([[3, 0, 1], [0, 2, 0], [2, 1, 0], [0, 0, 0]])
FINITE = np.array([1.0, 0.5])
LOOSE = np.zeros(4, int), np.full(4, 2)
BOUND = np.array([0, 0, 1, 0]), np.full(4, 2)  # the third document has an observed class


def visits(alpha, allowed, temper, name, n=8000, thin=4) -> Counter:
    """How often each assignment, as ``name`` calls it, was seen in a long run."""
    z = np.zeros(4, int) if allowed is None else allowed[0]
    state, seen = sampler(COUNTS, alpha, 0.7, z, allowed), Counter()
    for t in range(n * thin):
        state.sweep(t, temper)
        if t % thin == 0:
            seen[name(state.assignments)] += 1
    return seen


def exact(alpha, allowed, temper, name, beta=0.7) -> dict:
    """The posterior of every assignment, by enumeration."""
    restaurant = isinstance(alpha, Restaurant)
    n_classes = alpha.capacity if restaurant else len(alpha)
    lower, upper = allowed or (np.zeros(4, int), np.full(4, n_classes))
    log_p: dict = {}
    for z in product(*map(range, lower, upper)):
        joint = temper * urn(COUNTS, alpha, beta, z)
        log_p[name(z)] = np.logaddexp(log_p.get(name(z), -np.inf), joint)
    total = np.logaddexp.reduce(list(log_p.values()))
    return {key: math.exp(value - total) for key, value in log_p.items()}


def partition(z) -> tuple:
    """An assignment without the names of its classes."""
    first: dict = {}
    return tuple(first.setdefault(int(k), len(first)) for k in z)


def as_it_is(z) -> tuple:
    return tuple(int(k) for k in z)


@pytest.mark.parametrize(
    ("alpha", "allowed", "temper", "name"),
    [
        (FINITE, LOOSE, 1.0, as_it_is),
        (FINITE, BOUND, 1.0, as_it_is),
        (FINITE, LOOSE, 0.4, as_it_is),
        (Restaurant(0.8, 4), None, 1.0, partition),
        (Restaurant(0.8, 3), (np.array([0, 0, 1, 0]), np.array([3, 3, 3, 2])), 1.0, as_it_is),
    ],
    ids=["finite", "observed", "tempered", "restaurant", "restaurant with ranges"],
)
def test_a_long_run_is_the_posterior(alpha, allowed, temper, name):
    seen = visits(alpha, allowed, temper, name)
    assert surprise(seen, exact(alpha, allowed, temper, name)) < 1
    # the test can tell: a somewhat different model, or power, would not pass
    assert surprise(seen, exact(alpha, allowed, temper, name, beta=1.5)) > 1
    assert surprise(seen, exact(alpha, allowed, 1.3 * temper, name)) > 1


def test_restaurants_say_when_they_are_full():
    counts = 20 * np.eye(5, dtype=int)
    small, large = (sampler(counts, Restaurant(9.0, k), 0.1, np.zeros(5, int)) for k in (3, 8))
    for stream in range(5):
        small.sweep(stream)
        large.sweep(stream)
    assert small.full
    assert len(set(small.assignments)) == 3
    assert not large.full
    assert len(set(large.assignments)) == 5


def test_empty_documents_follow_the_weights():
    counts = np.zeros((2, 3), int)
    state = sampler(counts, np.array([1.0, 2.0]), 0.1, [0, 1])
    np.testing.assert_allclose(np.exp(up_to_a_constant(state.conditional(0))), [1 / 4, 3 / 4])
    assert sampler(np.zeros((2, 0), int), np.ones(2), 0.1, [0, 1]).log_joint() == pytest.approx(
        math.log(1 / 2 * 1 / 3)
    )


@pytest.mark.parametrize("beta", [1e-8, 0.1, 1e4])
def test_a_million_tokens(beta):
    """Many words, and words a million times: finite, and as log-gammas say."""
    rng = np.random.default_rng(1)
    giant = np.concatenate([np.full(5, 10**6), rng.integers(0, 40, 50_000)])
    other = rng.permutation(giant)
    state = sampler(np.array([giant, other, giant]), np.ones(2), beta, [0, 1, 0])
    after = [other, giant]  # without the first document: class 1, class 0
    expected = [
        (gammaln(rest + beta + giant) - gammaln(rest + beta)).sum()
        - gammaln((rest + beta + giant).sum())
        + gammaln((rest + beta).sum())
        for rest in (after[1], after[0])
    ]
    found = state.conditional(0)
    assert np.isfinite(found).all()
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1], rel=1e-9)
    state.sweep(3)
    assert np.isfinite(state.log_joint())
    assert state.assignments[0] == state.assignments[2]


@given(st.floats(1e-100, 1e12), st.integers(0, 10**6))
def test_log_rising(x, n):
    expected = math.fsum(math.log(x + j) for j in range(n)) if n <= 300 else None
    if expected is None:  # log x^(n) = log x^(m) + log (x + m)^(n − m)
        m = n // 3
        expected = kernel.log_rising(x, float(m)) + kernel.log_rising(x + m, float(n - m))
    assert kernel.log_rising(x, float(n)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_every_order_is_as_likely():
    seen = Counter()
    stream = np.array([7], np.uint64)
    for _ in range(6000):
        seen[tuple(kernel.shuffle_range(3, stream).tolist())] += 1
    assert len(seen) == 6
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < chi2.ppf(0.9999, 5)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [np.array([0.6, 1.2, 0.6]), Restaurant(0.9, 4)])
def test_data_drawn_anew_leave_the_prior_alone(alpha):
    """Geweke (2004): x from p(x | z) and z by a sweep, in turn, leave z distributed as p(z)."""
    rng = np.random.default_rng(4)
    n_classes = alpha.capacity if isinstance(alpha, Restaurant) else len(alpha)
    lengths, beta, z = [4, 0, 2, 6], np.array([0.3, 0.6]), np.zeros(4, int)
    seen = Counter()
    for t in range(12_000):
        words = rng.dirichlet(beta, n_classes)
        counts = np.array([rng.multinomial(n, words[k]) for n, k in zip(lengths, z, strict=True)])
        state = sampler(counts, alpha, beta, z)
        state.sweep(t)
        z = state.assignments
        if t % 4 == 0:
            seen[partition(z)] += 1
    nothing = np.zeros((4, 2), int)
    prior = Counter()
    for each in product(range(n_classes), repeat=4):
        prior[partition(each)] += math.exp(urn(nothing, alpha, beta, each))
    assert sum(prior.values()) == pytest.approx(1)
    assert surprise(seen, prior) < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [1, 2.5, 1]}, r"document 1 has 2\.5 of word 1.*\n.*Gibbs"),
        ({"counts": [1, -1, 1]}, "document 1 has -1 of word 1"),
        ({"counts": [1, np.nan, 1]}, "document 1 has nan of word 1"),
        ({"counts": [1, 2]}, "one count for every word"),
        ({"words": [0, 1, 2]}, "word numbers below 2"),
        ({"indptr": [0, 2, 1, 3]}, "does not cut"),
    ],
)
def test_bad_data(change, message):
    with pytest.raises(DataError, match=message):
        CollapsedMixture(**(GOOD | change))


GOOD = {
    "indptr": [0, 1, 2, 3],
    "words": [0, 1, 1],
    "counts": [1, 2, 1],
    "n_words": 2,
    "alpha": [1.0, 1.0],
    "beta": 0.1,
    "assignments": [0, 1, 1],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": [1.0, 0.0]}, "alpha must lie"),
        ({"beta": -1.0}, "beta must lie"),
        ({"beta": np.nan}, "beta must lie"),
    ],
)
def test_bad_priors(change, message):
    with pytest.raises(LearnerError, match=message):
        CollapsedMixture(**(GOOD | change))
