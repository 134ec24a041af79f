"""Rows of categorical distributions under Dirichlet priors: the mathematics, written once.

`Categorical` (a dense table) and `SparseCategorical` (rows of unequal length) are thin shapes
around `DirichletRows`, which sees nothing but flat arrays and row borders. With counts c, prior
concentration α and θ one row (Bishop, *Pattern Recognition and Machine Learning*, §2.2 and §10.2):

    posterior    θ | c ~ Dir(α + c)
    mode         θ_i = (c_i + α_i − 1) / Σ_j (c_j + α_j − 1)         for α ≥ 1
    mean field   exp E[log θ_i] = exp(ψ(α_i + c_i) − ψ(Σ_j α_j + c_j))
    mean         θ_i = (α_i + c_i) / Σ_j (α_j + c_j)

Add-a smoothing is α = 1 + a; α = 1 is flat.

Draws from Dir(α) with a small α have entries that are too small for a number. They are drawn as
logarithms, none below that of `SMALLEST`; and the density takes no entry for smaller than that. So
no draw has a density of infinity, and no start a density of zero.

Tied rows are handled by working on a compact table (one row a group) and spreading the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from softcount.errors import LearnerError
from softcount.families.base import Family
from softcount.families.gammas import SMALLEST, draw_log_gammas
from softcount.families.rows import (
    Ties,
    checked_indptr,
    largest_change,
    log_softmax,
    normalise,
    row_sums,
    rows_alike,
    shares,
    sum_of_logs,
)
from softcount.types import Array, Counts, SparseCounts


class DirichletRows(Family):
    """Categorical rows laid end to end; arrays of ``shape`` outside, flat inside.

    ``prior``     Dirichlet concentration α > 0: a number, one a row, or one an entry
    ``mask``      False: the entry is fixed at zero and no part of its row's support
    ``frozen``    True: the row keeps its old values and has no prior
    ``tied``      rows with the same number share one distribution
    ``outcomes``  which outcome each entry stands for, if position in the row does not tell
    """

    smallest: float = SMALLEST
    """No entry that is drawn is smaller."""

    def __init__(
        self,
        indptr: Array,
        shape: tuple[int, ...],
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        tied: Array | None = None,
        outcomes: Array | None = None,
    ) -> None:
        whole = checked_indptr(indptr)
        self.shape = shape
        self.n_rows = len(whole) - 1
        self.n_entries = int(whole[-1])
        self._lengths = np.diff(whole)
        self.ties = None if tied is None else Ties(whole, np.asarray(tied))
        self.indptr = whole if self.ties is None else self.ties.indptr
        self.alpha = self._read_prior(prior)
        self.mask = self._read_entries(mask, "mask", np.bool_)
        self._outcomes = self._read_entries(outcomes, "outcomes", np.int64)
        self._set_support(self._read_frozen(frozen))

    # settings
    def _read_prior(self, prior: float | Array) -> float | Array:
        alpha = np.asarray(prior, dtype=np.float64)
        if not np.all(alpha > 0.0) or not np.all(np.isfinite(alpha)):
            raise LearnerError(
                "the Dirichlet prior must be positive and finite",
                hint="prior=1 is flat; prior=1 + a is add-a smoothing",
            )
        if alpha.ndim == 0:
            return float(alpha)
        if alpha.shape != self.shape and alpha.shape == (self.n_rows,):
            alpha = np.repeat(alpha, self._lengths)
        return self._compact(self._flat(alpha, "prior"), "prior")

    def _read_entries(self, given: Array | None, what: str, dtype: type) -> Array | None:
        if given is None:
            return None
        return self._compact(self._flat(np.asarray(given, dtype=dtype), what), what)

    def _read_frozen(self, frozen: Array | None) -> Array:
        rows = np.zeros(self.n_rows, np.bool_) if frozen is None else np.asarray(frozen, np.bool_)
        if rows.shape != (self.n_rows,):
            raise LearnerError(
                f"frozen has shape {rows.shape}, but there are {self.n_rows} rows",
                hint="give one truth value for each row",
            )
        if self.ties is None:
            return rows
        self.ties.take_agreed(np.repeat(rows, self._lengths), "frozen")
        chosen: Array = rows[self.ties.first]
        return chosen

    def _flat(self, given: Array, what: str) -> Array:
        if given.shape not in (self.shape, (self.n_entries,)):
            raise LearnerError(
                f"{what} has shape {given.shape}, but the parameters have shape {self.shape}",
                hint=f"give {what} one value for each entry",
            )
        return given.reshape(-1)

    def _compact(self, flat: Array, what: str) -> Array:
        return flat if self.ties is None else self.ties.take_agreed(flat, what)

    def _set_support(self, frozen: Array) -> None:
        lengths = np.diff(self.indptr)
        self.support = lengths if self.mask is None else row_sums(self.mask, self.indptr)
        self.held_rows = frozen | (self.support == 0)
        self.held = np.repeat(self.held_rows, lengths) if np.any(self.held_rows) else None
        self.n_free = int(np.sum(self.support[~self.held_rows] - 1))
        alpha = self._where_active(self.alpha, 1.0)
        self.is_flat = bool(np.all(alpha == 1.0))
        self.has_mode = bool(np.all(alpha >= 1.0))

    def _where_active(self, values: float | Array, otherwise: float) -> float | Array:
        """``values`` at the supported entries of rows that may move, ``otherwise`` elsewhere."""
        if self.mask is not None:
            values = np.where(self.mask, values, otherwise)
        if self.held is not None:
            values = np.where(self.held, otherwise, values)
        return values

    @cached_property
    def alpha_totals(self) -> Array:
        """Σ α over each row's support."""
        return self._support_totals(self.alpha)

    @cached_property
    def excess_totals(self) -> Array:
        """Σ (α − 1) over each row's support."""
        return self._support_totals(self.alpha - 1.0)

    def _support_totals(self, values: float | Array) -> Array:
        if isinstance(values, float):
            return values * self.support
        return row_sums(self.supported(values), self.indptr)

    # between the shape outside and the compact flat arrays inside
    def supported(self, values: Array) -> Array:
        """``values`` with masked entries at zero."""
        return values if self.mask is None else np.where(self.mask, values, 0.0)

    def _pooled(self, counts: Counts) -> Array:
        flat = np.asarray(counts, dtype=np.float64).reshape(-1)
        pooled = flat if self.ties is None else self.ties.pool(flat)
        return np.maximum(pooled, 0.0)  # subtracting a shard's old counts can leave −1e-17

    def _inside(self, params: Array) -> Array:
        flat = np.asarray(params, dtype=np.float64).reshape(-1)
        return flat if self.ties is None else self.ties.take(flat)

    def _outside(self, compact: Array) -> Array:
        return (compact if self.ties is None else self.ties.spread(compact)).reshape(self.shape)

    def _settle(self, mass: Array, old: Array) -> Array:
        """Rows proportional to ``mass``; rows that are held, or without mass, keep ``old``."""
        before = self._inside(old)
        new = normalise(self.supported(mass), self.indptr, before)
        return self._outside(new if self.held is None else np.where(self.held, before, new))

    @property
    def param_shape(self) -> tuple[int, ...]:
        return self.shape

    @property
    def prior_size(self) -> float:
        if isinstance(self.alpha, float):
            return self.alpha * self.n_entries
        return float(np.sum(self.alpha))

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.shape)

    def uniform(self) -> Array:
        mass = self.supported(np.ones(self.indptr[-1]))
        return self._outside(normalise(mass, self.indptr, mass))

    def random(self, rng: np.random.Generator) -> Array:
        """Rows proportional to draws from U(½, 1½).

        That is unequal enough to tell hidden values apart, while no outcome starts out so rare
        that EM would need many steps to bring it back. Frozen rows start uniform.
        """
        mass = self.supported(rng.uniform(0.5, 1.5, size=self.indptr[-1]))
        return self._settle(mass, self.uniform())

    # how counts become parameters
    def require_mode(self) -> None:
        """Raise unless every posterior has a mode whatever the counts."""
        if not self.has_mode:
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                hint="use VariationalBayes, or prior ≥ 1 (add-a smoothing is prior=1 + a)",
            )

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        self.require_mode()
        if isinstance(self.alpha, float) and not self._has_exceptions:
            flat = np.asarray(counts, dtype=np.float64).reshape(-1)
            made = shares(flat, self.alpha - 1.0, self.indptr, self._inside(old))
            return made.reshape(self.shape)
        return self._settle(self._pooled(counts) + (self.alpha - 1.0), old)

    @property
    def _has_exceptions(self) -> bool:
        """Whether some rows are tied or held, or some entries fixed at zero."""
        return not (self.ties is None and self.mask is None and self.held is None)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        mass = self._pooled(counts) + self.alpha
        totals = row_sums(self.supported(mass), self.indptr)
        totals[self.held_rows] = 1.0  # any value that digamma takes: these rows keep old
        log_mean = digamma(mass) - np.repeat(digamma(totals), np.diff(self.indptr))
        new = self.supported(np.exp(log_mean))
        return self._outside(
            new if self.held is None else np.where(self.held, self._inside(old), new)
        )

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """A draw by normalised Gammas, in log space so that tiny shapes leave no empty row.

        Entries below `smallest` are raised to it, which changes no sum: hidden values are drawn
        from the same posteriors, but for what happens once in 10^300 draws.
        """
        logs = draw_log_gammas(self._pooled(counts) + self.alpha, rng)
        return self._softmax(logs, old, self.smallest)

    def mean(self, counts: Counts, old: Array) -> Array:
        return self._settle(self._pooled(counts) + self.alpha, old)

    def average(self, draws: Sequence[Array]) -> Array:
        mean = super().average(draws)
        if self.held is None:
            return mean
        first = self._inside(draws[0])  # the mean of equal numbers may differ in the last bit
        return self._outside(np.where(self.held, first, self._inside(mean)))

    def _softmax(self, logs: Array, old: Array, least: float = 0.0) -> Array:
        if self.mask is not None:
            logs = np.where(self.mask, logs, -np.inf)
        mass = np.exp(log_softmax(logs, self.indptr))
        return self._settle(np.maximum(mass, least) if least else mass, old)

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        """Σ (α − 1) log θ over what is free to move, once for tied rows; no constant.

        Always finite: an entry below `SMALLEST` counts as that.
        """
        if self.is_flat:
            return 0.0
        if isinstance(self.alpha, float) and self.mask is None and self.held is None:
            return (self.alpha - 1.0) * sum_of_logs(self._inside(params), SMALLEST)
        weights = self._where_active(np.subtract(self.alpha, 1.0), 0.0)
        return float(np.sum(xlogy(weights, np.maximum(self._inside(params), SMALLEST))))

    def divergence(self, counts: Counts, params: Array) -> float:
        """KL(Dir(α + c) ‖ Dir(α)), summed over rows. With A = Σ α and C = Σ c, a row costs

        ln Γ(A + C) − ln Γ(A) − Σ [ln Γ(α + c) − ln Γ(α)] + Σ c (ψ(α + c) − ψ(A + C)).
        """
        given = np.asarray(self._where_active(self._pooled(counts), 0.0))
        touched = np.flatnonzero(given)  # the rest costs nothing
        c = given[touched]
        alpha = np.broadcast_to(self.alpha, given.shape)[touched]
        entries = gammaln(alpha) - gammaln(alpha + c) + c * digamma(alpha + c)
        row_counts = row_sums(given, self.indptr)
        rows = np.flatnonzero(row_counts)
        before, extra = self.alpha_totals[rows], row_counts[rows]
        after = before + extra
        of_rows = gammaln(after) - gammaln(before) - extra * digamma(after)
        return float(np.sum(entries) + np.sum(of_rows))

    def expected_log(self, counts: Counts, params: Array) -> float:
        if isinstance(counts, SparseCounts):
            flat = params if params.ndim == 1 else params.reshape(-1)  # a lazy table is 1-d
            return float(np.sum(xlogy(counts.value, flat[counts.index])))
        return float(np.sum(xlogy(counts, np.asarray(params))))

    # geometry
    def proper(self, values: Array) -> Array:
        """The values, with rows scaled down that sum to more than one; masked entries are zero.

        Rows that sum to less leave room for what never occurs, and stay.
        """
        inside = self.supported(self._inside(values))
        sums = row_sums(inside, self.indptr)
        sums[~(sums > 1.0 + 1e-9) | self.held_rows] = 1.0
        if (sums == 1.0).all() and (
            self.mask is None or not self._inside(values)[~self.mask].any()
        ):
            return values
        scaled = inside / np.repeat(sums, np.diff(self.indptr))
        return self._outside(scaled).astype(values.dtype)

    def free(self, params: Array) -> Array:
        with np.errstate(divide="ignore"):
            logs: Array = np.log(np.asarray(params, dtype=np.float64)).reshape(-1)
        return logs

    def bound(self, free: Array, like: Array) -> Array:
        logs = self._inside(free)
        return self._softmax(np.where(np.isfinite(logs), logs, -np.inf), like)

    def change(self, old: Array, new: Array) -> float:
        return largest_change(*(np.ascontiguousarray(one).reshape(-1) for one in (old, new)))

    def alike(self, params: Array) -> bool | None:
        rows = np.flatnonzero(~self.held_rows & (self.support >= 2))
        return rows_alike(self._inside(params), self._outcomes, self.indptr, rows)
