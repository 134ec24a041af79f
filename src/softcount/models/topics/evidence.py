"""How likely counts are under a Dirichlet prior, and the prior under which they are likeliest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from softcount.kernels.topic_table import rising
from softcount.types import Array

LEAST = 1e-5
"""Fitting lets no prior fall below this: a topic that has died out may come back."""

MOST = 1e10
"""Nor rise above this: counts as even as chance allows are likelier the larger the prior."""

ROUNDS = 200
"""How often the fixed point is repeated, at most."""

CLOSE = 1e-5
"""It ends where no prior changes by more than this share of itself."""


class Histogram(NamedTuple):
    """Rows of counts, each drawn with its own probabilities from a Dirichlet prior.

    ``which, counts, times``  that many entries of prior number ``which`` have such a count (not 0)
    ``totals, kinds, total_times``  that many rows of a kind add up to such a total (not 0)
    ``entries``  (kinds, priors): how many entries of each prior a row of that kind has
    """

    which: Array
    counts: Array
    times: Array
    totals: Array
    kinds: Array
    total_times: Array
    entries: Any

    @classmethod
    def of(
        cls, which: Array, counts: Array, totals: Array, entries: Any, kinds: Array | int = 0
    ) -> Histogram:
        """From entries that are not zero, in any order, and the rows' totals and kinds."""
        rows = np.broadcast_to(kinds, totals.shape)[totals > 0]
        seen, often = _pairs(which, counts)
        ends, row_times = _pairs(rows, totals[totals > 0])
        return cls(seen[0], seen[1].astype(np.float64), often, ends[1], ends[0], row_times, entries)


def _pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """The pairs of whole numbers that there are, (2, pairs), and how often."""
    span = int(second.max(initial=0)) + 1
    keys, times = np.unique(
        first.astype(np.int64) * span + second.astype(np.int64), return_counts=True
    )
    return np.array([keys // span, keys % span]), times.astype(np.float64)


def log_evidence(prior: Array, seen: Histogram) -> float:
    """Σ over rows of log Γ(A) / Γ(A + N) + Σ_j log Γ(a_j + n_j) / Γ(a_j), A = Σ_j a_j.

    A row of two words that are of one kind each, under a uniform prior: 1/2 · 1/3.

    >>> row = Histogram.of(np.array([0, 1]), np.array([1, 1]), np.array([2]), np.ones((1, 2)))
    >>> round(float(np.exp(-log_evidence(np.ones(2), row))), 9)
    6.0
    """
    total = (seen.entries @ prior)[seen.kinds]
    entries: float = rising(prior[seen.which], seen.counts, seen.times)
    rows: float = rising(total, seen.totals.astype(np.float64), seen.total_times)
    return entries - rows


def fitted(prior: Array, seen: Histogram) -> Array:
    """The prior moved towards the highest evidence, which does not fall (Minka 2000):

        a_j ← a_j · Σ_rows [ψ(n_j + a_j) − ψ(a_j)] / Σ_rows [ψ(N + A) − ψ(A)]

    The rows below are those that have an entry of prior j; a prior that none has stays.

    >>> rows = Histogram.of(
    ...     np.array([0, 1, 0, 0]), np.array([9, 1, 8, 5]), np.array([10, 8, 5]), np.ones((1, 2))
    ... )
    >>> before = np.ones(2)
    >>> bool(log_evidence(fitted(before, rows), rows) > log_evidence(before, rows))
    True
    """
    least, n_kinds = np.minimum(prior, LEAST), seen.entries.shape[0]
    for _ in range(ROUNDS):
        total = (seen.entries @ prior)[seen.kinds]
        drawn = seen.total_times * (digamma(seen.totals + total) - digamma(total))
        below = seen.entries.T @ np.bincount(seen.kinds, drawn, n_kinds)
        own = prior[seen.which]
        gains = seen.times * (digamma(seen.counts + own) - digamma(own))
        above = np.bincount(seen.which, gains, len(prior))
        factors = np.divide(above, below, out=np.ones(len(prior)), where=below > 0.0)
        old, prior = prior, np.clip(prior * factors, least, MOST)
        if (np.abs(prior - old) <= CLOSE * old).all():
            break
    return prior
