"""Draws under small priors: honest marginals, finite densities, rows that sum to one.

A component of a draw from Dir(α) is Beta(α, A − α), with A the sum of all α. With α = 0.001 half of
the draws are below the smallest number there is. What is below the documented floor is raised to
it: so the share of draws at the floor must be that of the Beta distribution, and above the floor
they must follow it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from softcount.align.families import JumpTable, WithPast
from softcount.families import Categorical, SparseCategorical, StickBreaking
from softcount.families.base import Family
from softcount.families.categorical import SMALLEST, SMALLEST_SINGLE, draw_log_gammas, log_gammas
from softcount.families.large import LargeTable
from softcount.topics.core import DocumentPrior, TopicProportions

PRIORS = (0.0001, 0.001, 0.01, 0.3)
K, N = 3, 4000


def by_family(kind: str, alpha: float) -> np.ndarray:
    """N independent draws of K probabilities under no counts but the prior."""
    rng = np.random.default_rng(11)
    if kind == "dense":
        dense = Categorical((N, K), prior=alpha)
        return dense.draw(dense.zeros(), dense.uniform(), rng)
    if kind in ("large", "single"):
        columns = np.tile(np.arange(K), N)
        dtype = "float64" if kind == "large" else "float32"
        table = LargeTable(np.arange(N + 1) * K, columns, alpha, dtype=dtype)
        return table.draw(table.zeros(), table.uniform(), rng).reshape(N, K)
    if kind == "topics":
        rows = DocumentPrior(np.full(K, alpha), "draw")
        return rows.estimate(np.zeros((N, K)), TopicProportions(np.full((N, K), 1 / K)), rng).theta
    jumps = JumpTable(K, np.array([2]), alpha)
    start = jumps.uniform()
    return np.array([jumps.draw(jumps.zeros(), start, rng)[-K:] for _ in range(N)])


KINDS = ("dense", "large", "single", "topics", "jumps")


@pytest.mark.parametrize("alpha", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_marginals_of_the_dirichlet(kind: str, alpha: float) -> None:
    """A test of Kolmogorov and Smirnov above the floor, and a binomial one of the share below."""
    floor = SMALLEST_SINGLE if kind == "single" else SMALLEST
    marginal = stats.beta(alpha, (K - 1) * alpha)
    draws = by_family(kind, alpha)[:, 0].astype(float)
    below = draws <= 2.0 * floor
    # Φ(x) = xᵃ / (a B(a, b)) near zero, where scipy's own function gives up
    a, b = alpha, (K - 1) * alpha
    share = np.exp(a * np.log(2.0 * floor) - np.log(a) - special.betaln(a, b))
    assert stats.binomtest(int(below.sum()), N, share).pvalue > 1e-3
    # scipy has no accurate upper tail of such a distribution: ties at one count as one place
    above = draws[~below & (draws < 0.999)]
    if len(above) > 20:
        low, high = share, marginal.cdf(0.999)
        found = stats.kstest(above, lambda x: (marginal.cdf(x) - low) / (high - low))
        assert found.pvalue > 1e-3
    assert stats.binomtest(int((draws >= 0.999).sum()), N, marginal.sf(0.999)).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_logs_of_draws_have_the_right_mean(kind: str) -> None:
    """E[log max(θ, ε)] = log ε + ∫ P(log θ > x) dx from log ε to 0, by quadrature."""
    alpha = 0.01
    floor = SMALLEST_SINGLE if kind == "single" else SMALLEST
    marginal = stats.beta(alpha, (K - 1) * alpha)
    over, _ = integrate.quad(lambda x: marginal.sf(np.exp(x)), np.log(floor), 0.0, limit=200)
    logs = np.log(by_family(kind, alpha).astype(float)).mean(axis=1)
    error = logs.std() / np.sqrt(N)
    assert logs.mean() == pytest.approx(np.log(floor) + over, abs=4.0 * error)


@pytest.mark.parametrize("alpha", [1e-6, 0.001, 0.02, 0.7, 3.0])
def test_logs_of_gammas(alpha: float) -> None:
    """E[log G] = ψ(a) and Var[log G] = ψ′(a), in log space however small G is."""
    rng = np.random.default_rng(5)
    shapes = np.full(20_000, alpha)
    for logs in (
        draw_log_gammas(shapes, rng),
        log_gammas(rng.standard_gamma(shapes), shapes, rng),
    ):
        spread = np.sqrt(special.polygamma(1, alpha))
        assert logs.mean() == pytest.approx(special.digamma(alpha), abs=4 * spread / 141.0)
        assert logs.std() == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("alpha", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_draw_is_a_row_of_numbers_above_zero(kind: str, alpha: float) -> None:
    draws = by_family(kind, alpha).astype(float)
    floor = SMALLEST_SINGLE if kind == "single" else SMALLEST
    assert draws.min() >= 0.99 * floor
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-6 if kind == "single" else 1e-12)


def families(alpha: float) -> dict[str, Any]:
    mask = np.ones((5, 4), bool)
    mask[1, 2] = mask[3, :3] = False
    indptr, columns = np.array([0, 4, 4, 7]), np.array([0, 1, 2, 3, 0, 2, 3])
    plain = LargeTable(indptr, columns, alpha)
    return {
        "dense": Categorical((5, 4), prior=alpha),
        "masked": Categorical((5, 4), prior=alpha, mask=mask),
        "frozen": Categorical((5, 4), prior=alpha, frozen=np.arange(5) == 2),
        "tied": Categorical((5, 4), prior=alpha, tied=np.array([0, 1, 0, 2, 1])),
        "by entry": Categorical((5, 4), prior=np.full((5, 4), alpha)),
        "sparse": SparseCategorical(indptr, alpha),
        "large": plain,
        "single": LargeTable(indptr, columns, alpha, dtype="float32"),
        "past": WithPast(plain, np.array([3.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0])),
        "stick": StickBreaking(6, alpha),
        "jumps": JumpTable(3, np.array([2, 5]), alpha),
    }


@pytest.mark.parametrize("alpha", PRIORS)
@pytest.mark.parametrize("name", list(families(1.0)))
def test_densities_of_draws_and_of_zeros_are_finite(name: str, alpha: float) -> None:
    family: Family = families(alpha)[name]
    rng = np.random.default_rng(3)
    params = family.uniform()
    for _ in range(50):
        params = family.draw(family.zeros(), params, rng)
        assert np.isfinite(family.log_prior(params))
    assert np.isfinite(family.log_prior(np.zeros_like(params)))


@pytest.mark.parametrize("name", list(families(1.0)))
def test_a_start_with_zeros_has_a_finite_density_above_a_flat_prior_too(name: str) -> None:
    family: Family = families(1.5)[name]
    assert np.isfinite(family.log_prior(np.zeros_like(family.uniform())))


def test_masked_entries_stay_zero_and_frozen_rows_as_they_are() -> None:
    family = families(0.001)["masked"]
    drawn = family.draw(family.zeros(), family.uniform(), np.random.default_rng(0))
    assert (drawn[~family.mask.reshape(5, 4)] == 0.0).all()
    frozen, start = families(0.001)["frozen"], np.zeros((5, 4))
    start[:, 0] = 1.0
    held = frozen.draw(frozen.zeros(), start, np.random.default_rng(0))
    assert held[2].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_topics_that_a_document_may_not_have_stay_zero() -> None:
    allowed = np.array([[True, False, True], [True, True, True], [False, True, False]])
    prior, rng = DocumentPrior(np.full(3, 0.001), "draw"), np.random.default_rng(0)
    for _ in range(50):
        rows = prior.estimate(
            np.zeros((3, 3)), TopicProportions(np.full((3, 3), 1 / 3), None, allowed), rng
        )
        assert (rows.theta[~allowed] == 0.0).all()
        assert (rows.theta[allowed] > 0.0).all()
        np.testing.assert_allclose(rows.theta.sum(axis=1), 1.0)
        assert np.isfinite(prior.objective(rows))


def test_jumps_under_counts_and_a_small_prior() -> None:
    """Reach 1 and all sentences of two words: a first place has one weight, the rest are Betas.

    From place 1 the widths 0 and 1 are possible, from place 2 −1 and 0. Only place 1 was left, a
    times to itself and b times to place 2, so that w₀/(w₀ + w₁) ~ Beta(α + a, α + b), whatever w₋₁.
    """
    alpha, a, b = 0.01, 3.0, 2.0
    family = JumpTable(1, np.array([2]), alpha)
    counts = family.zeros()
    counts[1], counts[2] = a, b
    counts[family.n_weights + 1] = a + b
    rng, now, found = np.random.default_rng(8), family.uniform(), []
    for step in range(6000):
        now = family.draw(counts, now, rng)
        assert np.isfinite(family.log_prior(now))
        if step % 3 == 0 and now[1] + now[2] > 1e-200:
            found.append(now[1] / (now[1] + now[2]))
    assert len(found) > 500
    assert stats.kstest(found, stats.beta(alpha + a, alpha + b).cdf).pvalue > 1e-3
