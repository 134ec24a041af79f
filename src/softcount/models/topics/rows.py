"""The topics of documents: a family whose rows belong to the documents and live with their shard.

Row θ_d has the prior Dir(α). What a learner says of tables holds for these rows too:

    maximise    θ_dk ∝ n_dk + α_k − 1
    mean field  θ_dk = exp(ψ(α_k + n_dk) − ψ(Σ_j α_j + n_dj))
    draw        θ_d ~ Dir(α + n_d)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from softcount.errors import LearnerError
from softcount.types import Array, Update

TINY = 1e-100
"""Probabilities below this are zero: the likelihood loses nothing, and tiny numbers are slow."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The documents' rows of a shard: ``theta`` as the E-step uses them, ``counts`` behind them."""

    theta: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class RowPrior:
    """How documents' rows are made from counts: the learner's word, and the prior α."""

    alpha: Array
    word: Update = "maximise"

    def __post_init__(self) -> None:
        if not ((self.alpha > 0.0) & np.isfinite(self.alpha)).all():
            raise LearnerError(
                "the Dirichlet prior of documents must be positive and finite", "0.1 is usual"
            )
        if self.word == "maximise" and (self.alpha < 1.0).any():
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                "use VariationalBayes or a sampler, or a doc_prior of at least 1",
            )

    def begin(self, lengths: Array, allowed: Array | None) -> Rows:
        """Rows that prefer no topic among those allowed."""
        shape = (len(lengths), len(self.alpha))
        even = np.ones(shape) if allowed is None else allowed.astype(np.float64)
        even /= even.sum(axis=1, keepdims=True)
        counts = even * lengths[:, None]
        return Rows(even if self.word == "maximise" else self._mean_field(counts), counts)

    def update(self, counts: Array, old: Rows, rng: np.random.Generator) -> Rows:
        """New rows from expected counts; those of empty documents prefer what the prior does."""
        if self.word == "mean_field":
            return Rows(self._mean_field(counts), counts)
        if self.word == "draw":
            drawn = np.maximum(rng.standard_gamma(counts + self.alpha), np.finfo(float).tiny)
            return Rows(drawn / drawn.sum(axis=1, keepdims=True), counts)
        mass = counts + (self.alpha - 1.0)
        totals = mass.sum(axis=1, keepdims=True)
        theta = np.divide(mass, totals, out=np.array(old.theta), where=totals > 0.0)
        theta[theta < TINY] = 0.0
        return Rows(theta, counts)

    def _mean_field(self, counts: Array) -> Array:
        mass = counts + self.alpha
        theta: Array = np.exp(digamma(mass) - digamma(mass.sum(axis=1, keepdims=True)))
        return theta

    def objective(self, rows: Rows) -> float:
        """The rows' part of what the learner climbs: log p(θ), or −KL(q(θ) ‖ p(θ))."""
        if self.word == "mean_field":
            return -float(self._divergence(rows.counts).sum())
        if np.all(self.alpha == 1.0):
            return 0.0
        return float(xlogy(self.alpha - 1.0, rows.theta).sum())

    def _divergence(self, counts: Array) -> Array:
        """KL(Dir(α + n) ‖ Dir(α)) of each row."""
        after, total = counts + self.alpha, counts.sum(axis=1) + self.alpha.sum()
        entries = gammaln(self.alpha) - gammaln(after) + counts * digamma(after)
        ends = gammaln(total) - gammaln(self.alpha.sum()) - counts.sum(axis=1) * digamma(total)
        divergence: Array = entries.sum(axis=1) + ends
        return divergence
