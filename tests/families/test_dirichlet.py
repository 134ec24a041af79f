"""Categorical rows, dense and sparse, against the formulae written out and scipy's densities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, special, stats

from softcount.core.errors import LearnerError
from softcount.core.types import SparseCounts
from softcount.families import Categorical, SparseCategorical
from softcount.families.rows import largest_change, sum_logs

WORDS = ("maximise", "mean_field", "draw")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def tables(low: float = 0.0, high: float = 50.0):
    shapes = st.tuples(st.integers(1, 5), st.integers(1, 6))
    return shapes.flatmap(lambda s: hnp.arrays(float, s, elements=st.floats(low, high, width=32)))


def apply(family, word, counts, old):
    return getattr(family, word)(counts, old, rng(7))


# the three words and the mean, on one row, against sources that share no code with them
def test_maximise_is_the_numerical_maximum_on_the_simplex():
    counts, alpha = np.array([3.0, 0.5, 7.0]), np.array([1.5, 2.0, 1.1])

    def loss(logits):
        log_theta = special.log_softmax(logits)
        return -np.sum((counts + alpha - 1.0) * log_theta)

    best = special.softmax(optimize.minimize(loss, np.zeros(3), tol=1e-14).x)
    family = Categorical((1, 3), prior=alpha[None])
    assert family.maximise(counts[None], family.uniform(), rng())[0] == pytest.approx(best, 1e-5)


def test_maximise_without_prior_is_relative_frequency():
    family = Categorical((2, 2))
    fitted = family.maximise(np.array([[1.0, 3.0], [2.0, 2.0]]), family.uniform(), rng())
    assert fitted == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]), abs=0)


@given(tables(), st.floats(0.05, 5.0))
def test_mean_field_is_exp_of_expected_log(counts, alpha):
    family = Categorical(counts.shape, prior=alpha)
    fitted = family.mean_field(counts, family.uniform(), rng())
    for row, c in zip(fitted, counts, strict=True):
        total = special.digamma(np.sum(c + alpha))
        assert row == pytest.approx([np.exp(special.digamma(x + alpha) - total) for x in c])


def test_mean_field_agrees_with_draws_of_scipys_dirichlet():
    counts, alpha = np.array([[4.0, 1.0, 0.0]]), 0.7
    draws = stats.dirichlet(counts[0] + alpha).rvs(200_000, random_state=1)
    family = Categorical((1, 3), prior=alpha)
    fitted = family.mean_field(counts, family.uniform(), rng())
    assert np.log(fitted[0]) == pytest.approx(np.mean(np.log(draws), axis=0), abs=0.02)


def test_mean_is_scipys_dirichlet_mean():
    counts, alpha = np.array([[4.0, 1.0, 0.0]]), np.array([0.3])
    family = Categorical((1, 3), prior=alpha)
    expected = stats.dirichlet(counts[0] + 0.3).mean()
    assert family.mean(counts, family.uniform())[0] == pytest.approx(expected)


def test_draws_have_the_moments_of_the_dirichlet():
    counts = np.array([[4.0, 1.0, 0.2]])
    family = Categorical((1, 3), prior=0.5)
    law, source, old = stats.dirichlet(counts[0] + 0.5), rng(3), family.uniform()
    draws = np.array([family.draw(counts, old, source)[0] for _ in range(20_000)])
    assert draws.mean(axis=0) == pytest.approx(law.mean(), abs=0.006)
    assert draws.var(axis=0) == pytest.approx(law.var(), abs=0.002)
    # a marginal of the Dirichlet is a Beta
    marginal = stats.beta(1.5, 5.2)
    assert stats.kstest(draws[:, 1], marginal.cdf).pvalue > 0.01


@pytest.mark.parametrize("alpha", [1e-4, 1e-12, 1e-310])
def test_draws_from_tiny_concentrations_are_proper_and_fair(alpha):
    family = Categorical((3000, 3), prior=alpha)
    drawn = family.draw(family.zeros(), family.uniform(), rng(5))
    assert np.all(np.isfinite(drawn))
    assert drawn.sum(axis=1) == pytest.approx(np.ones(3000))
    assert np.bincount(drawn.argmax(axis=1)) == pytest.approx([1000] * 3, abs=130)


# prior terms
def test_log_prior_is_the_density_up_to_a_constant():
    alpha = np.array([[2.0, 1.5, 3.0], [1.0, 1.0, 4.0]])
    family = Categorical((2, 3), prior=alpha)
    one, two = family.random(rng(1)), family.random(rng(2))

    def density(params):
        return sum(stats.dirichlet(a).logpdf(p) for a, p in zip(alpha, params, strict=True))

    expected = density(one) - density(two)
    assert family.log_prior(one) - family.log_prior(two) == pytest.approx(expected)


def test_log_prior_is_exactly_zero_when_flat_even_at_the_border():
    family = Categorical((2, 2))
    assert family.log_prior(np.array([[0.0, 1.0], [0.5, 0.5]])) == 0.0


def test_log_prior_costs_nothing_where_concentration_is_one():
    family = Categorical((1, 2), prior=np.array([[1.0, 3.0]]))
    assert family.log_prior(np.array([[0.0, 1.0]])) == 0.0


@pytest.mark.parametrize("counts", [[3.0, 1.0], [0.0, 0.25], [0.0, 0.0]])
def test_divergence_is_the_integral(counts):
    prior, posterior = stats.beta(0.7, 1.2), stats.beta(0.7 + counts[0], 1.2 + counts[1])
    grid = special.expit(np.linspace(-60, 30, 90_001))  # θ, evenly spaced in its logit
    ratio = posterior.logpdf(grid) - prior.logpdf(grid)
    weight = posterior.pdf(grid) * grid * (1 - grid)
    expected = np.trapezoid(np.where(weight > 0, weight * ratio, 0.0), dx=1e-3)
    family = Categorical((1, 2), prior=np.array([[0.7, 1.2]]))
    found = family.divergence(np.array([counts]), family.uniform())
    assert found == pytest.approx(expected, abs=1e-6)


def test_divergence_agrees_with_monte_carlo_and_adds_over_rows():
    counts, alpha = np.array([[3.0, 0.0, 1.0], [2.0, 2.0, 6.0]]), 0.8
    expected = 0.0
    for c in counts:
        posterior = stats.dirichlet(c + alpha)
        draws = posterior.rvs(100_000, random_state=2).T
        expected += np.mean(posterior.logpdf(draws) - stats.dirichlet([alpha] * 3).logpdf(draws))
    family = Categorical((2, 3), prior=alpha)
    assert family.divergence(counts, family.uniform()) == pytest.approx(expected, abs=0.02)


def test_expected_log_forgives_zero_counts_only():
    family, params = Categorical((1, 3)), np.array([[0.0, 0.25, 0.75]])
    found = family.expected_log(np.array([[0.0, 2.0, 1.0]]), params)
    assert found == pytest.approx(2 * np.log(0.25) + np.log(0.75))
    assert family.expected_log(np.array([[1e-9, 2.0, 1.0]]), params) == -np.inf
    sparse = SparseCounts(np.array([1]), np.array([2.0]), 3)
    assert family.expected_log(sparse, params) == pytest.approx(2 * np.log(0.25))


# one mathematics for both shapes
@given(tables(), st.sampled_from(WORDS), st.sampled_from([1.0, 1.7]), st.integers(0, 9))
def test_dense_and_sparse_agree_on_equal_rows(counts, word, prior, seed):
    rows, outcomes = counts.shape
    mask = rng(seed).random(counts.shape) < 0.8
    frozen = rng(seed).random(rows) < 0.3
    dense = Categorical(counts.shape, prior, mask, frozen)
    sparse = SparseCategorical(np.arange(rows + 1) * outcomes, prior, mask.ravel(), frozen)
    old = dense.random(rng(seed))
    assert np.array_equal(old.ravel(), sparse.random(rng(seed)))
    wide = apply(dense, word, counts, old)
    flat = apply(sparse, word, counts.ravel(), old.ravel())
    assert np.array_equal(wide.ravel(), flat)
    assert dense.log_prior(wide) == sparse.log_prior(flat)
    assert dense.divergence(counts, wide) == sparse.divergence(counts.ravel(), flat)
    assert dense.n_free == sparse.n_free
    assert dense.alike(wide) == sparse.alike(flat)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_rows_of_any_length_are_handled_one_by_one(lengths, data):
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    counts = data.draw(hnp.arrays(float, int(indptr[-1]), elements=st.floats(0, 9, width=32)))
    family = SparseCategorical(indptr, prior=1.5)
    fitted = family.maximise(counts, family.uniform(), rng())
    for start, end in pairwise(indptr):
        mass = counts[start:end] + 0.5
        assert fitted[start:end] == pytest.approx(mass / mass.sum())
    assert family.n_free == sum(max(length - 1, 0) for length in lengths)


def test_sparse_counts_are_counts():
    family = SparseCategorical(np.array([0, 2, 5]))
    batch = SparseCounts(np.array([1, 2]), np.array([2.0, 5.0]), 5)
    fitted = family.maximise(batch, family.uniform(), rng())
    assert fitted == pytest.approx([0, 1, 1, 0, 0])


# rows without evidence
def test_a_row_without_counts_keeps_its_old_values():
    family, old = Categorical((2, 2)), np.array([[0.1, 0.9], [0.2, 0.8]])
    fitted = family.maximise(np.array([[0.0, 0.0], [1.0, 1.0]]), old, rng())
    assert np.array_equal(fitted, [[0.1, 0.9], [0.5, 0.5]])


def test_no_mode_below_one():
    family = Categorical((1, 2), prior=0.5)
    with pytest.raises(LearnerError, match=r"no mode[\s\S]*VariationalBayes"):
        family.maximise(np.ones((1, 2)), family.uniform(), rng())


def test_prior_below_one_does_not_matter_where_nothing_moves():
    family = Categorical((2, 2), prior=np.array([0.5, 1.0]), frozen=np.array([True, False]))
    fitted = family.maximise(np.array([[1.0, 0.0], [1.0, 3.0]]), family.uniform(), rng())
    assert np.array_equal(fitted, [[0.5, 0.5], [0.25, 0.75]])


# masks, frozen and tied rows, in every method
MASK = np.array([[True, False, True], [True, True, True]])


@pytest.mark.parametrize("word", [*WORDS, "mean"])
def test_masked_entries_are_no_part_of_their_row(word):
    counts, kept = np.array([[2.0, 9.0, 3.0], [1.0, 1.0, 4.0]]), np.array([[2.0, 3.0]])
    family, small = Categorical((2, 3), 1.5, MASK), Categorical((1, 2), 1.5)
    if word == "mean":
        new, expected = family.mean(counts, family.uniform()), small.mean(kept, small.uniform())
    else:
        new = apply(family, word, counts, family.uniform())
        expected = apply(small, word, kept, small.uniform())
    assert new[0, 1] == 0.0
    if word != "draw":
        assert new[0, [0, 2]] == pytest.approx(expected[0])
    if word != "mean_field":
        assert new.sum(axis=1) == pytest.approx(1.0)


def test_masked_entries_are_no_part_of_the_objective():
    family, small = Categorical((1, 3), 1.5, MASK[:1]), Categorical((1, 2), 1.5)
    counts = np.array([[2.0, 9.0, 3.0]])
    assert family.n_free == small.n_free == 1
    assert family.uniform().tolist() == [[0.5, 0.0, 0.5]]
    of_kept = small.log_prior(np.array([[0.3, 0.7]]))
    assert family.log_prior(np.array([[0.3, 0.0, 0.7]])) == pytest.approx(of_kept, rel=1e-15)
    small_cost = small.divergence(counts[:, [0, 2]], small.uniform())
    assert family.divergence(counts, family.uniform()) == pytest.approx(small_cost)


@pytest.mark.parametrize("word", WORDS)
def test_frozen_rows_stay_and_cost_nothing(word):
    frozen, counts = np.array([True, False]), np.array([[2.0, 9.0], [3.0, 1.0]])
    family, rest = Categorical((2, 2), 2.0, frozen=frozen), Categorical((1, 2), 2.0)
    old = np.array([[0.1, 0.9], [0.3, 0.7]])
    new = apply(family, word, counts, old)
    assert np.array_equal(new[0], old[0])
    assert not np.array_equal(new[1], old[1])
    assert np.array_equal(family.mean(counts, old)[0], old[0])
    assert family.log_prior(new) == pytest.approx(rest.log_prior(new[1:]), rel=1e-15)
    assert family.divergence(counts, new) == rest.divergence(counts[1:], new[1:])
    assert family.n_free == 1
    assert family.alike(new) is None
    assert np.array_equal(family.bound(family.free(old) + 1.0, old)[0], old[0])


@given(tables(), st.sampled_from([*WORDS, "mean"]), st.integers(0, 9))
def test_tied_rows_are_one_row_with_the_counts_of_all(counts, word, seed):
    tied = rng(seed).integers(5, 8, len(counts))
    family = Categorical(counts.shape, 1.3, tied=tied)
    groups = np.unique(tied)
    summed = np.array([counts[tied == g].sum(axis=0) for g in groups])
    pooled = Categorical(summed.shape, 1.3)
    if word == "mean":
        new, expected = family.mean(counts, family.zeros()), pooled.mean(summed, pooled.zeros())
    else:
        new = apply(family, word, counts, family.uniform())
        expected = apply(pooled, word, summed, pooled.uniform())
    for row, group in zip(new, tied, strict=True):
        assert row == pytest.approx(expected[np.searchsorted(groups, group)], rel=1e-12)
    assert family.log_prior(new) == pytest.approx(pooled.log_prior(expected))
    assert family.divergence(counts, new) == pytest.approx(
        pooled.divergence(summed, expected), abs=1e-9
    )
    assert family.n_free == pooled.n_free
    assert family.alike(new) == pooled.alike(expected)
    assert family.bound(family.free(family.uniform()), new) == pytest.approx(family.uniform())


def test_tied_rows_of_unequal_length_are_refused_by_name():
    with pytest.raises(LearnerError, match="rows 0 and 2 are tied but have 2 and 3 entries"):
        SparseCategorical(np.array([0, 2, 3, 6]), tied=np.array([1, 0, 1]))


def test_tied_rows_must_agree_in_their_settings():
    with pytest.raises(LearnerError, match="differ in their prior"):
        Categorical((2, 2), prior=np.array([1.0, 2.0]), tied=np.array([0, 0]))
    with pytest.raises(LearnerError, match="differ in their frozen"):
        Categorical((2, 2), frozen=np.array([True, False]), tied=np.array([0, 0]))
    with pytest.raises(LearnerError, match="differ in their mask"):
        Categorical((2, 2), mask=np.array([[True, False], [True, True]]), tied=np.array([0, 0]))


def test_sparse_ties_pool_by_place_in_the_row():
    family = SparseCategorical(np.array([0, 2, 3, 5]), tied=np.array([4, 1, 4]))
    fitted = family.maximise(np.array([1.0, 0.0, 5.0, 1.0, 2.0]), family.uniform(), rng())
    assert fitted == pytest.approx([0.5, 0.5, 1.0, 0.5, 0.5])


# starts and geometry
@given(st.integers(1, 20), st.integers(2, 50), st.integers(0, 99))
def test_random_rows_are_unequal_but_nothing_is_rare(rows, outcomes, seed):
    drawn = Categorical((rows, outcomes)).random(rng(seed))
    assert drawn.sum(axis=1) == pytest.approx(np.ones(rows))
    assert np.all(drawn > 0.3 / outcomes)
    assert np.all(np.abs(drawn * outcomes - 1.0).max(axis=1) > 1e-6)


@given(tables(low=0.0, high=1.0), st.integers(0, 9))
def test_bound_undoes_free(counts, seed):
    family = Categorical(counts.shape)
    params = family.maximise(counts, family.uniform(), rng())
    free = family.free(params)
    assert free.shape == (counts.size,)
    back = family.bound(free + 3.0, family.random(rng(seed)))  # a shift of all logits is no change
    assert back == pytest.approx(params, abs=1e-12)
    assert np.array_equal(back == 0.0, params == 0.0)


def test_bound_takes_what_is_not_a_number_for_zero():
    family = Categorical((1, 3))
    back = family.bound(np.array([0.0, np.nan, 0.0]), family.uniform())
    assert np.array_equal(back, [[0.5, 0.0, 0.5]])


def test_alike():
    family = Categorical((3, 2))
    assert family.alike(np.array([[0.3, 0.7]] * 3)) is True
    assert family.alike(np.array([[0.3, 0.7], [0.3, 0.7], [0.3001, 0.6999]])) is False
    assert Categorical((1, 2)).alike(np.array([[0.3, 0.7]])) is None
    assert Categorical((5, 1)).alike(np.ones((5, 1))) is None


def test_alike_knows_outcomes():
    indptr, params = np.array([0, 2, 4]), np.array([0.3, 0.7, 0.7, 0.3])
    assert SparseCategorical(indptr).alike(params) is False
    assert SparseCategorical(indptr, outcomes=np.array([1, 2, 2, 1])).alike(params) is True
    uniform = np.full(4, 0.5)
    assert SparseCategorical(indptr).alike(uniform) is True
    assert SparseCategorical(indptr, outcomes=np.array([1, 2, 2, 3])).alike(uniform) is False
    assert SparseCategorical(np.array([0, 2, 5])).alike(np.full(5, 0.4)) is False


# what is refused
@pytest.mark.parametrize("prior", [0.0, -1.0, np.nan, np.inf])
def test_impossible_priors_are_refused(prior):
    with pytest.raises(LearnerError, match="positive"):
        Categorical((2, 2), prior=prior)


def test_settings_of_the_wrong_shape_are_refused():
    for settings_ in (
        {"prior": np.ones(5)},
        {"mask": np.ones((3, 3), bool)},
        {"frozen": np.ones(3, bool)},
        {"tied": np.ones(3, int)},
    ):
        with pytest.raises(LearnerError, match="shape"):
            Categorical((2, 2), **settings_)
    with pytest.raises(LearnerError, match="starts at 0"):
        SparseCategorical(np.array([0, 3, 2]))


@given(hnp.arrays(float, st.integers(0, 300), elements=st.floats(0.0, 1.0)))
def test_a_sum_of_logs_is_one(values):
    with np.errstate(divide="ignore"):
        expected = np.sum(np.log(values))
    assert sum_logs(values) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_largest_change():
    assert largest_change(np.array([1.0, 2.0, 3.0]), np.array([1.5, -2.0, 3.0])) == 4.0
    assert np.isnan(largest_change(np.array([1.0, 2.0]), np.array([np.nan, 9.0])))
    assert largest_change(np.empty(0), np.empty(0)) == 0.0
