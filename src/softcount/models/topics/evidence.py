"""How likely counts are under a Dirichlet prior, and the prior under which they are likeliest."""

from __future__ import annotations

from typing import NamedTuple

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
    """Rows of counts, each drawn with its own probabilities from one Dirichlet prior.

    ``which, counts, times``  that many entries of prior number ``which`` have such a count (not 0)
    ``totals, total_times``   that many rows add up to such a total (not 0)
    ``copies``                each prior stands for so many entries of a row
    """

    which: Array
    counts: Array
    times: Array
    totals: Array
    total_times: Array
    copies: int

    @classmethod
    def of(cls, which: Array, counts: Array, totals: Array, copies: int = 1) -> Histogram:
        """From entries that are not zero, in any order, and the rows' totals."""
        span = int(counts.max(initial=0)) + 1
        keys, times = np.unique(which.astype(np.int64) * span + counts, return_counts=True)
        sums, sum_times = np.unique(totals[totals > 0], return_counts=True)
        return cls(
            keys // span,
            (keys % span).astype(np.float64),
            times.astype(np.float64),
            sums.astype(np.float64),
            sum_times.astype(np.float64),
            copies,
        )


def log_evidence(prior: Array, seen: Histogram) -> float:
    """Σ over rows of log Γ(A) / Γ(A + N) + Σ_j log Γ(a_j + n_j) / Γ(a_j), A = Σ_j a_j.

    A row of two words that are of one kind each, under a uniform prior: 1/2 · 1/3.

    >>> row = Histogram.of(np.array([0, 1]), np.array([1, 1]), np.array([2]))
    >>> round(float(np.exp(-log_evidence(np.ones(2), row))), 9)
    6.0
    """
    total = np.full(len(seen.totals), seen.copies * prior.sum())
    entries: float = rising(prior[seen.which], seen.counts, seen.times)
    rows: float = rising(total, seen.totals, seen.total_times)
    return entries - rows


def fitted(prior: Array, seen: Histogram) -> Array:
    """The prior moved towards the highest evidence, which does not fall (Minka 2000):

        a_j ← a_j · Σ_rows [ψ(n_j + a_j) − ψ(a_j)] / Σ_rows [ψ(N + A) − ψ(A)]

    >>> rows = Histogram.of(np.array([0, 1, 0, 0]), np.array([9, 1, 8, 5]), np.array([10, 8, 5]))
    >>> before = np.ones(2)
    >>> bool(log_evidence(fitted(before, rows), rows) > log_evidence(before, rows))
    True
    """
    if not len(seen.totals):
        return prior
    least = np.minimum(prior, LEAST)
    for _ in range(ROUNDS):
        total = seen.copies * prior.sum()
        drawn = (digamma(seen.totals + total) - digamma(total)) @ seen.total_times
        own = prior[seen.which]
        gains = seen.times * (digamma(seen.counts + own) - digamma(own))
        kinds = np.bincount(seen.which, gains, len(prior))
        old, prior = prior, np.clip(prior * kinds / (seen.copies * drawn), least, MOST)
        if (np.abs(prior - old) <= CLOSE * old).all():
            break
    return prior
