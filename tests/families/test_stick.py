"""Stick-breaking weights against sticks broken by hand, quadrature, and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from softcount.core.errors import LearnerError
from softcount.core.types import SparseCounts
from softcount.families import Categorical, StickBreaking
from tests.oracles.sticks import broken

COUNTS = np.array([[5.0, 0.0, 2.5, 1.0]])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def parts_of(weights):
    """v_0 … v_{T−2} of one row of weights."""
    return [w / weights[k:].sum() for k, w in enumerate(weights[:-1])]


def posterior(counts, a):
    """scipy's Betas, one a break."""
    return [stats.beta(1 + c, a + sum(counts[k + 1 :])) for k, c in enumerate(counts[:-1])]


def expectation(law, function):
    """E[f(v, 1 − v)] by the trapezium rule, evenly in the logit of v."""
    logits = np.linspace(-80, 80, 160_001)
    v, rest = special.expit(logits), special.expit(-logits)
    a, b = law.args
    density = np.exp(a * np.log(v) + b * np.log(rest) - special.betaln(a, b))  # with v (1 − v)
    return np.trapezoid(density * function(v, rest), logits)


@st.composite
def sticks(draw, largest=1e12, concentrations=(0.01, 20.0)):
    """Counts of a few classes, many of them zero, and a concentration."""
    normal = {"min_value": 0.0, "allow_subnormal": False}  # a share of less would be zero
    count = (
        st.just(0.0) | st.floats(max_value=50.0, **normal) | st.floats(max_value=largest, **normal)
    )
    counts = draw(st.lists(count, min_size=1, max_size=8))
    return np.array([counts]), draw(st.floats(*concentrations))


# the posterior, from the story itself
@pytest.mark.parametrize("a", [0.6, 1.0, 3.0])
def test_mean_and_mean_field_are_those_of_prior_sticks_weighted_by_likelihood(a):
    """Importance sampling: sticks from the prior, weighted by Π π^n; no posterior is written."""
    counts = np.array([2.0, 0.0, 1.0])
    pi = broken(rng(1).beta(1.0, a, size=(400_000, 2)))
    weight = np.prod(pi**counts, axis=1)
    family = StickBreaking(3, a)
    mean = family.mean(counts[None], family.uniform())
    assert mean[0] == pytest.approx(weight @ pi / weight.sum(), abs=4e-3)
    logs = np.log(family.mean_field(counts[None], family.uniform(), rng()))[0]
    with np.errstate(divide="ignore"):
        log_pi = np.maximum(np.log(pi), -700.0)
    assert logs == pytest.approx(weight @ log_pi / weight.sum(), rel=0.01, abs=0.01)


@pytest.mark.parametrize("a", [0.3, 1.0, 4.0])
def test_mean_field_is_the_integral(a):
    family = StickBreaking(4, a)
    found = np.log(family.mean_field(COUNTS, family.uniform(), rng()))[0]
    laws = posterior(COUNTS[0], a)
    chosen = [expectation(law, lambda v, _: np.log(v)) for law in laws]
    passed = [expectation(law, lambda _, rest: np.log(rest)) for law in laws]
    expected = [c + sum(passed[:k]) for k, c in enumerate([*chosen, 0.0])]
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("a", [0.3, 1.0, 4.0])
def test_mean_is_the_product_of_the_betas_means(a):
    family = StickBreaking(4, a)
    expected = broken([law.mean() for law in posterior(COUNTS[0], a)])
    assert family.mean(COUNTS, family.uniform())[0] == pytest.approx(expected)


def test_prior_mean_is_geometric():
    family = StickBreaking(6, 2.0)
    expected = [(1 / 3) * (2 / 3) ** k for k in range(5)]
    expected.append(1 - sum(expected))
    assert family.mean(family.zeros(), family.uniform())[0] == pytest.approx(expected)


def test_draws_are_sticks_broken_by_independent_betas():
    family, source = StickBreaking(4, 0.8), rng(3)
    old = family.uniform()
    draws = np.array([family.draw(COUNTS, old, source)[0] for _ in range(8000)])
    assert draws.sum(axis=1) == pytest.approx(1.0)
    parts = np.array([parts_of(row) for row in draws])
    for k, law in enumerate(posterior(COUNTS[0], 0.8)):
        assert stats.kstest(parts[:, k], law.cdf).pvalue > 0.01
    assert np.corrcoef(parts.T) == pytest.approx(np.eye(3), abs=0.05)
    squares = [law.var() + law.mean() ** 2 for law in posterior(COUNTS[0], 0.8)]
    rests = [law.var() + (1 - law.mean()) ** 2 for law in posterior(COUNTS[0], 0.8)]
    second = [s * np.prod(rests[:k]) for k, s in enumerate([*squares, 1.0])]
    assert (draws**2).mean(axis=0) == pytest.approx(second, abs=0.01)


@pytest.mark.parametrize("a", [0.5, 2.0])
def test_two_items_share_a_class_as_in_a_dirichlet_process(a):
    """Untruncated, E Σ π² = 1 / (1 + a): the second guest at the first one's table."""
    family, source = StickBreaking(60, a), rng(4)
    none, old = family.zeros(), family.uniform()
    draws = np.array([family.draw(none, old, source)[0] for _ in range(6000)])
    assert (draws**2).sum(axis=1).mean() == pytest.approx(1 / (1 + a), abs=0.012)


@pytest.mark.parametrize("a", [1e-4, 1e-12, 1e-310])
def test_draws_from_tiny_concentrations_are_proper(a):
    family, source = StickBreaking(5, a), rng(5)
    for counts in (family.zeros(), np.array([[0.0, 3.0, 0.0, 1.0, 0.0]])):
        drawn = family.draw(counts, family.uniform(), source)
        assert np.all(drawn >= 0)
        assert drawn.sum() == pytest.approx(1.0)


# the mode
@pytest.mark.parametrize("a", [1.0, 1.5, 6.0])
def test_maximise_is_the_numerical_maximum_over_the_parts(a):
    counts = np.array([3.0, 0.5, 7.0, 2.0])

    def loss(logits):
        log_v, log_rest = special.log_expit(logits), special.log_expit(-logits)
        before = np.concatenate(([0.0], np.cumsum(log_rest)))
        log_pi = np.append(log_v, 0.0) + before
        return -(counts @ log_pi + (a - 1) * log_rest.sum())

    best = broken(special.expit(optimize.minimize(loss, np.zeros(3), tol=1e-13).x))
    family = StickBreaking(4, a)
    found = family.maximise(counts[None], family.uniform(), rng())
    assert found[0] == pytest.approx(best, rel=1e-5)


def test_concentration_one_is_exactly_maximum_likelihood():
    family = StickBreaking(4)
    found = family.maximise(COUNTS, family.uniform(), rng())
    assert np.array_equal(found, COUNTS / COUNTS.sum())
    assert family.log_prior(np.array([[0.5, 0.5, 0.0, 0.0]])) == 0.0


@given(sticks(largest=1e3, concentrations=(1.0, 20.0)), st.integers(0, 99))
def test_no_other_weights_are_better_than_the_mode(stick, seed):
    counts, a = stick
    family = StickBreaking(counts.size, a)
    old = family.random(rng(seed))

    def gain(params):
        return family.expected_log(counts, params) + family.log_prior(params)

    best = gain(family.maximise(counts, old, rng()))
    for other in (old, family.uniform(), rng(seed).dirichlet(np.ones(counts.size))[None]):
        assert gain(other) <= best + 1e-9 * max(1.0, abs(best))


def test_log_prior_is_the_density_of_the_parts_up_to_a_constant():
    family = StickBreaking(4, 2.5)
    one, two = family.random(rng(1)), family.random(rng(2))

    def density(params):
        return sum(stats.beta(1, 2.5).logpdf(v) for v in parts_of(params[0]))

    expected = density(one) - density(two)
    assert family.log_prior(one) - family.log_prior(two) == pytest.approx(expected)


@pytest.mark.parametrize("a", [0.5, 1 - 1e-9])
def test_no_mode_below_one(a):
    family = StickBreaking(3, a)
    with pytest.raises(LearnerError, match=r"no mode[\s\S]*VariationalBayes"):
        family.maximise(np.ones((1, 3)), family.uniform(), rng())


def test_without_counts_the_old_weights_stay():
    family, old = StickBreaking(3), np.array([[0.2, 0.7, 0.1]])
    assert np.array_equal(family.maximise(family.zeros(), old, rng()), old)


def test_a_tail_without_counts_is_left_to_the_prior():
    counts = np.array([[3.0, 1.0, 0.0, 0.0]])
    flat, many = StickBreaking(4), StickBreaking(4, 3.0)
    assert np.array_equal(flat.maximise(counts, flat.uniform(), rng()), [[0.75, 0.25, 0, 0]])
    # v_2 = 0: all that is left goes to the last piece
    assert many.maximise(counts, many.uniform(), rng())[0] == pytest.approx(
        [1 / 2, 1 / 6, 0.0, 1 / 3]
    )


# terms of the bound
@pytest.mark.parametrize("counts", [COUNTS[0], [0.0, 0.0, 3.0, 0.0], [0.0] * 4])
def test_divergence_is_the_sum_of_integrals(counts):
    a = 0.7

    def cost(law):
        c, d = law.args

        def log_ratio(v, rest):
            gain = (c - 1) * np.log(v) + (d - a) * np.log(rest)
            return gain - special.betaln(c, d) + special.betaln(1, a)

        return expectation(law, log_ratio)

    family = StickBreaking(4, a)
    found = family.divergence(np.array([counts]), family.uniform())
    expected = sum(cost(law) for law in posterior(list(counts), a))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("a", [0.6, 1.0, 3.0])
def test_for_seen_classes_the_bound_is_the_evidence(a):
    """⟨n, E log π⟩ − KL = log ∫∫ p(v) Π π^n dv: nothing is hidden, so the bound is tight."""
    counts = np.array([2.0, 1.0, 1.5])

    def integrand(v, w):
        return np.prod(broken([v, w]) ** counts) * (a * (1 - v) ** (a - 1)) * a * (1 - w) ** (a - 1)

    evidence, _ = integrate.dblquad(integrand, 0, 1, 0, 1, epsabs=1e-10)
    family = StickBreaking(3, a)
    params = family.mean_field(counts[None], family.uniform(), rng())
    bound = family.expected_log(counts[None], params) - family.divergence(counts[None], params)
    assert bound == pytest.approx(np.log(evidence), abs=1e-5)


def test_two_pieces_and_concentration_one_are_a_flat_beta():
    family, counts = StickBreaking(2, 1.0), np.array([[4.0, 1.5]])
    law = stats.beta(5.0, 2.5)  # U(0, 1) and the counts
    old = family.uniform()
    assert family.mean(counts, old)[0, 0] == pytest.approx(law.mean())
    assert family.maximise(counts, old, rng())[0, 0] == pytest.approx(4.0 / 5.5)
    source = rng(6)
    draws = [family.draw(counts, old, source)[0, 0] for _ in range(4000)]
    assert stats.kstest(draws, law.cdf).pvalue > 0.01
    # KL to U(0, 1) is the negative entropy
    assert family.divergence(counts, old) == pytest.approx(-law.entropy())
    logs = np.log(family.mean_field(counts, old, rng()))[0]
    expected = [expectation(law, lambda v, _: np.log(v)), expectation(law, lambda _, r: np.log(r))]
    assert logs == pytest.approx(expected, rel=1e-6)


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.1, 5.0))
def test_two_pieces_are_a_dirichlet(first, second, a):
    counts = np.array([[first, second]])
    stick, table = StickBreaking(2, a), Categorical((1, 2), prior=np.array([[1.0, a]]))
    old = table.uniform()
    for word in ("mean_field", "draw"):
        left, right = (getattr(f, word)(counts, old, rng(3)) for f in (stick, table))
        assert left == pytest.approx(right)
    assert stick.mean(counts, old) == pytest.approx(table.mean(counts, old))
    assert stick.divergence(counts, old) == pytest.approx(table.divergence(counts, old), abs=1e-9)


# whatever the counts
@given(sticks())
def test_weights_are_proper_and_figures_finite(stick):
    counts, a = stick
    family = StickBreaking(counts.size, a)
    old = family.uniform()
    proper = [family.mean(counts, old), family.draw(counts, old, rng(1))]
    if a >= 1:
        proper.append(family.maximise(counts, old, rng()))
    for weights in proper:
        assert weights.shape == counts.shape
        assert np.all(weights >= 0)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    geometric = family.mean_field(counts, old, rng())
    assert np.all(geometric <= proper[0] * (1 + 1e-9))  # Jensen
    price = family.divergence(counts, geometric)
    assert np.isfinite(price)
    assert price >= -1e-14 * max(1000.0, special.gammaln(1.0 + counts.sum()))  # rounding of log Γ
    assert np.isfinite(family.expected_log(counts, proper[0]))


@given(sticks(largest=100.0))
def test_counts_may_be_sparse_or_a_hair_below_zero(stick):
    counts, a = stick
    family = StickBreaking(counts.size, a)
    index = np.flatnonzero(counts)
    sparse = SparseCounts(index, counts[0, index], counts.size)
    hair = np.where(counts == 0, -1e-17, counts)
    old, params = family.uniform(), family.mean(counts, family.uniform())
    for given_ in (sparse, hair):
        for word in ("mean_field", "draw", *(["maximise"] if a >= 1 else [])):
            left, right = (getattr(family, word)(c, old, rng(2)) for c in (counts, given_))
            assert np.array_equal(left, right)
        assert np.array_equal(family.mean(given_, old), params)
        assert family.divergence(given_, params) == family.divergence(counts, params)
    assert family.expected_log(sparse, params) == pytest.approx(family.expected_log(counts, params))


def test_one_piece_is_the_whole_stick():
    family = StickBreaking(1, 2.0)
    counts = np.array([[7.0]])
    for weights in (
        family.uniform(),
        family.random(rng()),
        family.maximise(counts, family.uniform(), rng()),
        family.mean_field(counts, family.uniform(), rng()),
        family.draw(counts, family.uniform(), rng()),
        family.mean(counts, family.uniform()),
    ):
        assert np.array_equal(weights, [[1.0]])
    assert family.n_free == 0
    assert family.log_prior(family.uniform()) == family.divergence(counts, counts) == 0.0


# geometry
@given(sticks(largest=100.0, concentrations=(1.0, 9.0)))
def test_bound_undoes_free(stick):
    counts, a = stick
    family = StickBreaking(counts.size, a)
    params = family.maximise(counts, family.uniform(), rng())
    free = family.free(params)
    assert free.shape == (counts.size,)
    back = family.bound(free, family.uniform())
    assert back == pytest.approx(params, abs=1e-12)
    assert np.array_equal(back == 0.0, params == 0.0)


def test_shape_of_things():
    family = StickBreaking(5, 2.0)
    assert family.n_free == 4
    assert family.concentration == 2.0
    assert family.alike(family.uniform()) is None
    assert family.uniform() == pytest.approx(np.full((1, 5), 0.2))
    assert np.array_equal(family.zeros(), np.zeros((1, 5)))
    start = family.random(rng())
    assert start.sum() == pytest.approx(1.0)
    assert start.min() > 0.05
    assert family.average([start, family.uniform()]).sum() == pytest.approx(1.0)


def test_running_average_makes_weights_of_blended_counts():
    family = StickBreaking(3, 2.0)
    running = family.running()
    running.blend(np.array([[8.0, 0.0, 0.0]]), 1.0)
    running.blend(SparseCounts(np.array([1]), np.array([4.0]), 3), 0.5)
    found = running.params("maximise", family.uniform(), rng())
    assert found[0] == pytest.approx([4 / 7, 2 / 7, 1 / 7])  # 4, 2 and the prior's 1


@pytest.mark.parametrize("pieces", [0, -1, 2.5, np.nan, np.inf])
def test_impossible_numbers_of_pieces_are_refused(pieces):
    with pytest.raises(LearnerError, match=r"pieces[\s\S]*whole number"):
        StickBreaking(pieces)


@pytest.mark.parametrize("a", [0.0, -1.0, np.nan, np.inf])
def test_impossible_concentrations_are_refused(a):
    with pytest.raises(LearnerError, match="positive"):
        StickBreaking(3, a)
