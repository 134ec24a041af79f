"""Gaussian rows against scipy's densities, numerical optima, and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from softcount.core.errors import LearnerError
from softcount.families import NIW, Gaussian

KINDS = ("full", "diag", "spherical", "identity")
D = 2
MEAN, KAPPA, DOF = np.array([0.5, -1.0]), 0.7, 5.5
SCALES = {
    "full": np.array([[2.0, 0.4], [0.4, 1.0]]),
    "diag": np.array([2.0, 1.0]),
    "spherical": 1.5,
    "identity": 1.0,
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def prior(kind: str) -> NIW:
    return NIW(MEAN, KAPPA, DOF, SCALES[kind])


def data(n: int = 30, rows: int = 2, seed: int = 1):
    source = rng(seed)
    x = source.normal(size=(n, D)) @ np.array([[1.0, 0.5], [0.0, 0.6]]) + 1.0
    return x, source.dirichlet(np.ones(rows), size=n)


def matrices(family: Gaussian, params) -> np.ndarray:
    """Covariances as matrices, whatever the form."""
    cov = family.covariances(params)
    if cov.ndim == 3:
        return cov
    return np.array([np.eye(D) * c for c in cov])


def log_density(x, means, covs):
    pairs = zip(means, covs, strict=True)
    return np.column_stack([stats.multivariate_normal.logpdf(x, m, c) for m, c in pairs])


# densities and statistics
@pytest.mark.parametrize("kind", KINDS)
def test_log_density_is_scipys(kind):
    family, (x, weights) = Gaussian(2, D, kind), data()
    params = family.maximise(family.statistics(x, weights), family.uniform(), rng())
    expected = log_density(x, family.means(params), matrices(family, params))
    assert family.log_density(params, x) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["maximise", "mean_field"])
def test_expected_log_is_the_weighted_log_density(kind, word):
    family, (x, weights) = Gaussian(2, D, kind, prior(kind)), data()
    counts = family.statistics(x, weights)
    params = getattr(family, word)(counts, family.uniform(), rng())
    expected = np.sum(weights * family.log_density(params, x))
    assert family.expected_log(counts, params) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_free_parameters(kind):
    family = Gaussian(3, D, kind)
    cells = {"full": 4, "diag": 2, "spherical": 1, "identity": 0}[kind]
    free = {"full": 3, "diag": 2, "spherical": 1, "identity": 0}[kind]
    assert family.zeros().shape == (3, 1 + D + max(cells, 1))
    assert family.uniform().shape == (3, D + cells + 1)
    assert family.n_free == 3 * (D + free)
    assert Gaussian(3, D, kind, tied=True).n_free == 3 * D + free
    assert Gaussian(3, D, kind, frozen=np.array([True, False, True])).n_free == D + free


def test_statistics_are_sums():
    x, weights = data(5)
    family = Gaussian(2, D, "full")
    counts = family.statistics(x, weights)
    for k in range(2):
        second = sum(w * np.outer(p, p) for w, p in zip(weights[:, k], x, strict=True))
        first = sum(w * p for w, p in zip(weights[:, k], x, strict=True))
        expected = np.concatenate([[weights[:, k].sum()], first, second.ravel()])
        assert counts[k] == pytest.approx(expected)


# maximise
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_prior", [False, True])
def test_maximise_is_the_top_of_the_objective(kind, tied, with_prior):
    """No step in any direction, by scipy's densities, climbs higher."""
    family = Gaussian(2, D, kind, prior(kind) if with_prior else None, tied=tied)
    x, weights = data()
    params = family.maximise(family.statistics(x, weights), family.uniform(), rng())

    def objective(means, covs):
        total = np.sum(weights * log_density(x, means, covs))
        return total + (oracle_log_prior(kind, tied, means, covs) if with_prior else 0.0)

    def from_vector(v):
        means = v[: 2 * D].reshape(2, D)
        return means, shapes(kind, tied, v[2 * D :])

    size = {"full": 3, "diag": 2, "spherical": 1, "identity": 0}[kind] * (1 if tied else 2)
    start = np.concatenate([np.zeros(2 * D), np.zeros(size)])
    best = optimize.minimize(lambda v: -objective(*from_vector(v)), start, tol=1e-12)
    means, covs = from_vector(best.x)
    assert objective(family.means(params), matrices(family, params)) >= -best.fun - 1e-9
    assert family.means(params) == pytest.approx(means, abs=1e-3)
    assert matrices(family, params) == pytest.approx(covs, abs=1e-3)


def shapes(kind, tied, v):
    """Covariances from unconstrained numbers, two of them."""
    covs = []
    for part in np.split(v, 1 if tied else 2):
        if kind == "full":
            root = np.array([[np.exp(part[0]), 0.0], [part[1], np.exp(part[2])]])
            covs.append(root @ root.T)
        else:
            covs.append(np.diag(np.exp(np.full(D, part) if len(part) else np.zeros(D))))
    return np.array(covs * 2 if tied else covs)


def oracle_log_prior(kind, tied, means, covs):
    total = sum(
        stats.multivariate_normal.logpdf(m, MEAN, c / KAPPA)
        for m, c in zip(means, covs, strict=True)
    )
    if kind == "identity":
        return total
    for cov in covs[:1] if tied else covs:
        total += oracle_shape_prior(kind, cov)
    return total


def oracle_shape_prior(kind, cov):
    if kind == "full":
        return stats.invwishart.logpdf(cov, DOF, SCALES[kind])
    variances = np.diag(cov) if kind == "diag" else cov[0, 0]
    return np.sum(stats.invgamma.logpdf(variances, DOF / 2, scale=np.asarray(SCALES[kind]) / 2))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_log_prior_is_the_density_up_to_a_constant(kind, tied):
    family = Gaussian(2, D, kind, prior(kind), tied=tied)
    x, weights = data()
    counts = family.statistics(x, weights)
    one = family.draw(counts, family.uniform(), rng(1))
    two = family.draw(counts, family.uniform(), rng(2))
    expected = np.subtract(
        *(oracle_log_prior(kind, tied, family.means(p), matrices(family, p)) for p in (one, two))
    )
    assert family.log_prior(one) - family.log_prior(two) == pytest.approx(expected)
    assert Gaussian(2, D, kind, tied=tied).log_prior(one) == 0.0


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_a_cluster_of_one_point_stays_finite(kind):
    family = Gaussian(1, D, kind, floor=1e-4)
    counts = family.statistics(np.array([[3.0, 4.0]]), np.ones((1, 1)))
    params = family.maximise(counts, family.uniform(), rng())
    assert np.all(np.isfinite(params))
    assert family.means(params) == pytest.approx(np.array([[3.0, 4.0]]))
    assert matrices(family, params)[0] == pytest.approx(1e-4 * np.eye(D), rel=1e-6)


def test_the_floor_is_the_best_covariance_above_it():
    """Points on a line: the likeliest covariance of those with no eigenvalue below the floor."""
    floor, x = 0.05, np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [5.0, 5.0]])
    family = Gaussian(1, D, "full", floor=floor)
    params = family.maximise(family.statistics(x, np.ones((4, 1))), family.uniform(), rng())
    best = np.sum(family.log_density(params, x))
    for angle in np.linspace(0, np.pi, 37):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for large in np.linspace(floor, 15.0, 40):
            for small in (floor, 1.5 * floor, 4 * floor):
                cov = turn @ np.diag([large, small]) @ turn.T
                assert stats.multivariate_normal(x.mean(axis=0), cov).logpdf(x).sum() <= best + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_row_keeps_its_old_values(kind):
    family, (x, _) = Gaussian(2, D, kind), data()
    old = family.random(rng(4))
    weights = np.column_stack([np.ones(len(x)), np.zeros(len(x))])
    params = family.maximise(family.statistics(x, weights), old, rng())
    assert params[1] == pytest.approx(old[1], rel=1e-12)
    assert not np.allclose(params[0], old[0])
    tied = Gaussian(2, D, kind, tied=True)
    shared = tied.maximise(tied.statistics(x, weights), old, rng())
    assert np.array_equal(tied.means(shared)[1], tied.means(old)[1])
    assert np.array_equal(tied.precisions(shared)[0], tied.precisions(shared)[1])
    assert tied.maximise(tied.zeros(), old, rng()) == pytest.approx(old, rel=1e-12)


# the Bayesian words: first the posterior itself, by its density up to a constant; then what is
# made of it, by draws
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_is_prior_times_likelihood(kind, tied):
    family, (x, weights) = Gaussian(2, D, kind, prior(kind), tied=tied), data()
    posterior = family.posterior(family.statistics(x, weights))
    gaps = []
    for seed in range(4):
        params = family.draw(family.zeros(), family.uniform(), rng(seed))
        means, covs = family.means(params), matrices(family, params)
        joint = oracle_log_prior(kind, tied, means, covs)
        joint += np.sum(weights * log_density(x, means, covs))
        gaps.append(joint - posterior_density(kind, tied, posterior, means, covs))
    assert gaps == pytest.approx([gaps[0]] * 4)


def posterior_density(kind, tied, posterior, means, covs):
    total = sum(
        stats.multivariate_normal.logpdf(m, m0, c / k)
        for m0, k, m, c in zip(posterior.mean, posterior.kappa, means, covs, strict=True)
    )
    if kind == "identity":
        return total
    groups = zip(posterior.dof, posterior.scale, covs[:1] if tied else covs, strict=True)
    for dof, scale, cov in groups:
        if kind == "full":
            total += stats.invwishart.logpdf(cov, dof, scale.reshape(D, D))
        else:
            variances = np.diag(cov) if kind == "diag" else cov[0, :1]
            total += np.sum(stats.invgamma.logpdf(variances, dof / 2, scale=scale / 2))
    return total


def many_draws(family, counts, n=4000):
    source, old = rng(11), family.uniform()
    return [family.draw(counts, old, source) for _ in range(n)]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_mean_field_is_the_mean_log_density_of_draws(kind, tied):
    family, (x, weights) = Gaussian(2, D, kind, prior(kind), tied=tied), data(20)
    counts = family.statistics(x, weights)
    points = np.array([[0.0, 0.0], [1.5, -1.0]])
    draws = [family.log_density(p, points) for p in many_draws(family, counts)]
    params = family.mean_field(counts, family.uniform(), rng())
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(family.log_density(params, points) - np.mean(draws, axis=0)) < 5 * error)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_posterior(kind):
    """Precisions and means of draws against scipy's Wishart, Gamma and t."""
    family, (x, weights) = Gaussian(2, D, kind, prior(kind)), data(10)
    counts = family.statistics(x, weights)
    posterior, draws = family.posterior(counts), many_draws(family, counts, 2000)
    first = np.array([family.means(p)[0, 0] for p in draws])
    if kind == "identity":
        law = stats.norm(posterior.mean[0, 0], posterior.kappa[0] ** -0.5)
    else:
        lost = D - 1 if kind == "full" else 0
        dof, psi = posterior.dof[0] - lost, posterior.scale[0, 0]
        law = stats.t(dof, posterior.mean[0, 0], np.sqrt(psi / dof / posterior.kappa[0]))
        variances = np.array([matrices(family, p)[0, 0, 0] for p in draws])
        assert stats.kstest(variances, stats.invgamma(dof / 2, scale=psi / 2).cdf).pvalue > 0.01
    assert stats.kstest(first, law.cdf).pvalue > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_mean_is_the_mean_of_draws_and_a_proper_density(kind):
    family, (x, weights) = Gaussian(2, D, kind, prior(kind)), data(40)
    counts = family.statistics(x, weights)
    params, draws = family.mean(counts, family.uniform()), many_draws(family, counts)
    for read in (family.means, family.precisions):
        values = np.array([read(p) for p in draws])
        error = 5 * np.std(values, axis=0) / np.sqrt(len(draws)) + 1e-12
        assert np.all(np.abs(read(params) - values.mean(axis=0)) < error)
    proper = log_density(x, family.means(params), matrices(family, params))
    assert family.log_density(params, x) == pytest.approx(proper)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_divergence_is_the_mean_log_ratio_of_posterior_to_prior(kind, tied):
    family, (x, weights) = Gaussian(2, D, kind, prior(kind), tied=tied), data(12)
    counts = family.statistics(x, weights)
    posterior, ratios = family.posterior(counts), []
    for p in many_draws(family, counts, 500):
        means, covs = family.means(p), matrices(family, p)
        after = posterior_density(kind, tied, posterior, means, covs)
        ratios.append(after - oracle_log_prior(kind, tied, means, covs))
    error = np.std(ratios) / np.sqrt(len(ratios))
    found = family.divergence(counts, family.uniform())
    assert found == pytest.approx(np.mean(ratios), abs=5 * error)
    assert family.divergence(family.zeros(), family.uniform()) == pytest.approx(0.0, abs=1e-12)


# frozen rows, geometry, starts
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["maximise", "mean_field", "draw"])
def test_frozen_rows_stay_and_cost_nothing(kind, word):
    frozen, (x, weights) = np.array([True, False]), data()
    family = Gaussian(2, D, kind, prior(kind), frozen=frozen)
    rest = Gaussian(1, D, kind, prior(kind))
    counts, old = family.statistics(x, weights), family.random(rng(2))
    new = getattr(family, word)(counts, old, rng())
    assert np.array_equal(new[0], old[0])
    assert not np.array_equal(new[1], old[1])
    assert family.log_prior(new) == pytest.approx(rest.log_prior(new[1:]))
    cost = rest.divergence(counts[1:], new[1:])
    assert family.divergence(counts, new) == pytest.approx(cost)
    assert family.alike(new) is None
    assert np.array_equal(family.bound(family.free(old) + 1.0, old)[0], old[0])


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_row_has_no_say_in_a_tied_covariance(kind, with_prior):
    given_prior, (x, weights) = prior(kind) if with_prior else None, data(rows=3)
    family = Gaussian(3, D, kind, given_prior, tied=True, frozen=np.array([False, True, False]))
    rest, others = Gaussian(2, D, kind, given_prior, tied=True), [0, 2]
    counts, old = family.statistics(x, weights), family.random(rng(2))
    new = family.maximise(counts, old, rng())
    expected = rest.maximise(counts[others], old[others], rng())
    assert new[others] == pytest.approx(expected)
    assert np.array_equal(new[1], old[1])
    cost = rest.divergence(counts[others], expected)
    assert family.divergence(counts, new) == pytest.approx(cost)
    assert family.log_prior(new) == pytest.approx(rest.log_prior(expected))


@given(st.sampled_from(KINDS), st.booleans(), st.integers(0, 99))
def test_bound_undoes_free(kind, tied, seed):
    family, (x, weights) = Gaussian(2, D, kind, tied=tied), data(seed=seed)
    params = family.draw(family.statistics(x, weights), family.uniform(), rng(seed))
    free = family.free(params)
    assert free.ndim == 1
    assert family.bound(free, family.uniform()) == pytest.approx(params)
    # any point of the free space is a proper Gaussian
    moved = family.bound(free + rng(seed).normal(size=free.shape), params)
    covs = matrices(family, moved)
    assert family.log_density(moved, x) == pytest.approx(log_density(x, family.means(moved), covs))


def test_alike():
    family = Gaussian(3, D, "diag")
    assert family.alike(family.uniform()) is True
    assert family.alike(family.random(rng())) is False
    assert Gaussian(1, D).alike(Gaussian(1, D).uniform()) is None


def test_the_default_start_is_standard():
    for kind in KINDS:
        family = Gaussian(4, D, kind)
        assert matrices(family, family.uniform()) == pytest.approx(np.array([np.eye(D)] * 4))
        assert np.all(family.means(family.uniform()) == 0.0)


def test_wrong_settings_are_refused():
    with pytest.raises(LearnerError, match="no covariance 'round'"):
        Gaussian(1, D, "round")
    with pytest.raises(LearnerError, match="positive definite"):
        Gaussian(1, D, "full", NIW(scale=np.array([[1.0, 2.0], [2.0, 1.0]])))
    with pytest.raises(LearnerError, match="positive scale"):
        Gaussian(1, D, "diag", NIW(scale=np.eye(D)))
    with pytest.raises(LearnerError, match="frozen has shape"):
        Gaussian(1, D, frozen=np.array([True, False]))
    with pytest.raises(LearnerError, match="dof above 1"):
        Gaussian(1, D, "full", NIW(dof=0.5))
