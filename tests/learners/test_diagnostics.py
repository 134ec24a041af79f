"""Diagnostics on chains whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.learners.diagnostics import ess_bulk, ess_tail, rhat


def ar1(rho, chains, draws, seed):
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains) / np.sqrt(1 - rho**2)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + rng.normal(size=chains)
    return x


def test_independent_normals_are_worth_what_they_are():
    draws = np.random.default_rng(1).normal(size=(4, 2000))
    assert rhat(draws) < 1.005
    assert ess_bulk(draws) == pytest.approx(8000, rel=0.1)
    assert ess_tail(draws) == pytest.approx(8000, rel=0.15)


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.9])
def test_autoregression_has_the_known_effective_size(rho):
    """An AR(1) chain has τ = (1 + ρ) / (1 − ρ)."""
    draws = ar1(rho, 4, 5000, seed=2)
    assert ess_bulk(draws) == pytest.approx(20000 * (1 - rho) / (1 + rho), rel=0.15)
    assert rhat(draws) < 1.02


def test_antithetic_chains_are_worth_more_than_their_length():
    draws = ar1(-0.5, 4, 2000, seed=3)
    assert ess_bulk(draws) == pytest.approx(8000 * 3, rel=0.2)


def test_shifted_chains_disagree():
    draws = np.random.default_rng(4).normal(size=(4, 1000))
    draws[0] += 3
    assert rhat(draws) > 1.2
    assert ess_bulk(draws) < 100


def test_chains_of_unequal_spread_disagree_though_their_means_agree():
    draws = np.random.default_rng(5).normal(size=(4, 1000))
    draws[0] *= 10
    assert rhat(draws) > 1.1
    assert np.sqrt(1 + draws.mean(axis=1).var()) < 1.1  # means alone would not show it


def test_a_chain_that_drifts_disagrees_with_itself():
    drifting = np.random.default_rng(6).normal(size=(1, 1000)) + np.linspace(0, 5, 1000)
    assert rhat(drifting) > 1.5


def test_heavy_tails_do_no_harm():
    draws = np.random.default_rng(7).standard_cauchy(size=(4, 1000))
    assert rhat(draws) < 1.02
    assert ess_bulk(draws) > 3000


def test_any_increasing_function_of_the_draws_gives_the_same_bulk():
    draws = np.random.default_rng(8).normal(size=(3, 501))
    assert ess_bulk(np.exp(draws)) == pytest.approx(ess_bulk(draws), rel=1e-12)


def test_chains_that_never_move():
    same, apart = np.full((4, 100), -7.5), np.repeat([[1.0], [2.0]], 100, axis=1)
    assert rhat(same) == 1.0
    assert ess_bulk(same) == ess_tail(same) == 400.0
    assert rhat(apart) == np.inf
    assert 0 < ess_bulk(apart) < 5


def test_too_little_to_say_anything():
    assert np.isnan(rhat(np.zeros((4, 3))))
    assert np.isnan(ess_bulk(np.array([[0.0, 1.0, np.nan, 1.0]])))
    assert np.isnan(ess_tail(np.zeros((2, 0))))
