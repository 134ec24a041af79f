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
from softcount.families.gammas import SMALLEST, log_gammas
from softcount.types import Array, Update

TINY = 1e-100
"""Probabilities below this are zero: the likelihood loses nothing, and tiny numbers are slow."""

TINY_SINGLE = 1e-15
"""The same for numbers of 32 bits: a product of two must not be tiny either."""

LOWEST = -20.0
"""Rows of posteriors whose largest log is below this are lifted to it: a small prior leaves next to
nothing of short documents. Posteriors of topics do not change by a factor that all have."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The documents' rows of a shard.

    ``theta``    as the E-step uses them
    ``counts``   what they were made from, where the objective needs it (mean field), else None
    ``allowed``  False where a document is known not to have a topic; None: all may have all
    ``lift``     how much too large log p(words) is, because rows were lifted to `LOWEST`
    ``lifts``    how much too large each row's logs are; None: none was lifted
    """

    theta: Array
    counts: Array | None = None
    allowed: Array | None = None
    lift: float = 0.0
    lifts: Array | None = None

    @property
    def unlifted(self) -> Array:
        """The rows as they are."""
        return self.theta if self.lifts is None else self.theta * np.exp(-self.lifts)


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
        if self.word == "maximise":
            return Rows(even, None, allowed)
        return self._mean_field(even * lengths[:, None], allowed)

    def given(self, theta: Array, lengths: Array, allowed: Array | None) -> Rows:
        """Rows that someone else made."""
        rows = _only(theta.astype(np.float64), allowed)
        peaks = rows.max(axis=1, keepdims=True)
        lifts = np.where(peaks > 0.0, LOWEST - np.log(np.maximum(peaks, 1e-320)), 0.0)
        lifts = np.maximum(lifts, 0.0)
        if not lifts.any():
            return Rows(rows, None, allowed)
        return Rows(rows * np.exp(lifts), None, allowed, float(lengths @ lifts[:, 0]), lifts)

    def proper(self, rows: Rows) -> Array:
        """Rows as p(topic | document): as they are, or under mean field their posterior mean."""
        mass = rows.unlifted
        if self.word == "mean_field" and rows.counts is not None:
            mass = _only(rows.counts + self.alpha, rows.allowed)
        shares: Array = mass / mass.sum(axis=1, keepdims=True)
        return shares

    def update(self, counts: Array, old: Rows, rng: np.random.Generator) -> Rows:
        """New rows from expected counts; those of empty documents prefer what the prior does."""
        if self.word == "mean_field":
            return self._mean_field(counts, old.allowed)
        if self.word == "draw":
            return Rows(self._drawn(counts + self.alpha, old.allowed, rng), None, old.allowed)
        mass = _only(counts + (self.alpha - 1.0), old.allowed)
        totals = mass.sum(axis=1, keepdims=True)
        theta = np.divide(mass, totals, out=np.array(old.theta), where=totals > 0.0)
        theta[theta < TINY] = 0.0
        return Rows(theta, None, old.allowed)

    def _drawn(self, shapes: Array, allowed: Array | None, rng: np.random.Generator) -> Array:
        """Rows of normalised Gammas; as logarithms where some are too small for a number."""
        drawn = rng.standard_gamma(shapes)
        some = np.flatnonzero((_only(drawn, allowed, 1.0) < SMALLEST).any(axis=1))
        mass = _only(drawn, allowed)
        if len(some):
            own = None if allowed is None else allowed[some]
            logs = _only(log_gammas(drawn[some], shapes[some], rng), own, -np.inf)
            mass[some] = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares = mass / mass.sum(axis=1, keepdims=True)
        return _only(np.maximum(shares, SMALLEST), allowed)

    def _mean_field(self, counts: Array, allowed: Array | None) -> Rows:
        mass = counts + self.alpha
        totals = _only(mass, allowed).sum(axis=1, keepdims=True)
        logs = digamma(mass) - digamma(totals)
        if allowed is not None:
            logs = np.where(allowed, logs, -np.inf)
        lift = np.maximum(LOWEST - logs.max(axis=1, keepdims=True), 0.0)
        theta = _only(np.maximum(np.exp(logs + lift), TINY), allowed)
        lifted = _only(counts, allowed).sum(axis=1) @ lift[:, 0]
        return Rows(theta, counts, allowed, float(lifted), lift if lift.any() else None)

    def objective(self, rows: Rows) -> float:
        """The rows' part of what the learner climbs: log p(θ), or −KL(q(θ) ‖ p(θ))."""
        if self.word == "mean_field":
            # rows that were given as such have no posterior to be priced
            return 0.0 if rows.counts is None else -float(self._divergence(rows).sum())
        if np.all(self.alpha == 1.0):
            return 0.0
        theta = rows.theta if rows.allowed is None else np.where(rows.allowed, rows.theta, 1.0)
        return float(xlogy(self.alpha - 1.0, np.maximum(theta, SMALLEST)).sum())

    def _divergence(self, rows: Rows) -> Array:
        """KL(Dir(α + n) ‖ Dir(α)) of each row, over the topics that it may have."""
        assert rows.counts is not None
        counts = _only(rows.counts, rows.allowed)
        alpha = _only(np.broadcast_to(self.alpha, counts.shape), rows.allowed)
        entries = gammaln(self.alpha) - gammaln(counts + self.alpha)
        entries += counts * digamma(counts + self.alpha)
        before, seen = alpha.sum(axis=1), counts.sum(axis=1)
        ends = gammaln(before + seen) - gammaln(before) - seen * digamma(before + seen)
        divergence: Array = _only(entries, rows.allowed).sum(axis=1) + ends
        return divergence


def _only(values: Array, allowed: Array | None, otherwise: float = 0.0) -> Array:
    """The values, ``otherwise`` where they are not allowed."""
    return values if allowed is None else np.where(allowed, values, otherwise)
