"""Convergence diagnostics of chains: R-hat and effective sample sizes.

After Vehtari et al. 2021, Bayesian Analysis. Draws are an array (chains, draws). Every chain is
split in two, so that a chain that drifts disagrees with itself; and values are replaced by normal
scores of their ranks, so that heavy tails do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from softcount.core.types import Array, State

SHORTEST = 4
"""Fewest draws per chain for which diagnostics are defined (below, they are NaN)."""


def summarise(chains: Sequence[Sequence[State]]) -> dict[str, float]:
    """Return the worst diagnostics over log-likelihood and objective.

    These two do not depend on the numbering of classes, so label switching does not affect them.

    ``chains``  the states of each chain whose parameters are draws
    """
    shortest = min(map(len, chains))
    figures = [
        np.array([[getattr(state, figure) for state in chain[:shortest]] for chain in chains])
        for figure in ("log_likelihood", "objective")
    ]
    return {
        "rhat": max(map(rhat, figures)),
        "ess_bulk": min(map(ess_bulk, figures)),
        "ess_tail": min(map(ess_tail, figures)),
    }


def rhat(draws: ArrayLike) -> float:
    """Compute rank-normalised split R-hat: 1 when chains agree; above 1.01 they have not mixed.

    The larger of two figures: for the draws' location, and for their spread (draws folded around
    the median). Chains that never move: 1 if they sit at the same value, inf if they do not.

    >>> round(rhat(np.random.default_rng(0).normal(size=(4, 500))), 2)
    1.0
    """
    chains = _split(draws)
    if chains is None:
        return float("nan")
    folded = np.abs(chains - np.median(chains))
    return max(_plain_rhat(_normal_scores(chains)), _plain_rhat(_normal_scores(folded)))


def ess_bulk(draws: ArrayLike) -> float:
    """Compute the effective sample size for the bulk of the distribution.

    >>> ess_bulk(np.zeros((2, 50)))  # chains that never move, all at one value: as if independent
    100.0
    """
    chains = _split(draws)
    return float("nan") if chains is None else _plain_ess(_normal_scores(chains))


def ess_tail(draws: ArrayLike) -> float:
    """Compute the effective sample size for the 5 % and 95 % quantiles, the smaller of the two."""
    chains = _split(draws)
    if chains is None:
        return float("nan")
    cuts = np.quantile(chains, (0.05, 0.95))
    return min(_plain_ess((chains <= cut).astype(float)) for cut in cuts)


def _split(draws: ArrayLike) -> Array | None:
    """Split each chain into two half-chains (an odd middle draw is dropped)."""
    chains = np.atleast_2d(np.asarray(draws, dtype=float))
    half = chains.shape[1] // 2
    if chains.shape[1] < SHORTEST or not np.isfinite(chains).all():
        return None
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _normal_scores(chains: Array) -> Array:
    """Φ⁻¹((rank − 3/8) / (S + 1/4)), ties sharing their mean rank (their eq. 14)."""
    _, inverse, counts = np.unique(chains, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    scores: Array = ndtri((ranks - 3 / 8) / (chains.size + 1 / 4))[inverse]
    return scores.reshape(chains.shape)


def _variances(chains: Array) -> tuple[float, float]:
    """W, the variance within chains, and var⁺ = (n − 1)/n W + B/n, of all (their eqs. 1–3)."""
    n = chains.shape[1]
    within = float(chains.var(axis=1, ddof=1).mean())
    return within, (n - 1) / n * within + float(chains.mean(axis=1).var(ddof=1))


def _plain_rhat(chains: Array) -> float:
    if not np.ptp(chains, axis=1).any():  # no chain moves
        return 1.0 if np.ptp(chains) == 0 else float("inf")
    within, total = _variances(chains)
    return float(np.sqrt(total / within))


def _plain_ess(chains: Array) -> float:
    """S / τ, τ = −1 + 2 Σ_k P_k, with Geyer's initial monotone sequence P (their eqs. 10–13)."""
    if np.ptp(chains) == 0:
        return float(chains.size)
    n = chains.shape[1]
    within, total = _variances(chains)
    # each chain's autocovariance at every lag, divided by n, by FFT (padded: no wrap-around)
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), n=2 * n)
    covariances: Array = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * n)[:, :n] / n
    # their ρ_t = 1 − (W − mean of the chains' autocovariances, unbiased in scale) / var⁺
    rho = 1 - (within - covariances.mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    tau = max(-1 + 2 * float(pairs.sum()), 1 / np.log10(chains.size))  # antithetic chains: bounded
    return float(chains.size / tau)
