"""Rows of categorical distributions under Dirichlet priors: the mathematics, written once.

`Categorical` (a dense table) and `SparseCategorical` (rows of unequal length) are thin shapes
around `DirichletRows`, which sees nothing but flat arrays and row borders; `StickBreaking` is one
row with the prior of a Dirichlet process. With counts c, prior
concentration α and θ one row (Bishop, *Pattern Recognition and Machine Learning*, §2.2 and §10.2):

    posterior    θ | c ~ Dir(α + c)
    mode         θ_i = (c_i + α_i − 1) / Σ_j (c_j + α_j − 1)         for α ≥ 1
    mean field   exp E[log θ_i] = exp(ψ(α_i + c_i) − ψ(Σ_j α_j + c_j))
    mean         θ_i = (α_i + c_i) / Σ_j (α_j + c_j)

Add-a smoothing is α = 1 + a; α = 1 is flat.

Draws from Dir(α) with a small α have entries that underflow. They are drawn as logarithms, raised
to at least log `SMALLEST`; the density treats smaller entries as `SMALLEST` too. So no draw has
infinite density, and no initial parameters have density zero.

Tied rows are handled by working on a compact table (one row per group) and spreading the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from softcount.core.errors import LearnerError
from softcount.core.types import (
    Array,
    BoolArray,
    ColumnCounts,
    Counts,
    FloatArray,
    IntArray,
    SparseCounts,
    Update,
)
from softcount.families.base import CountAverage, Family
from softcount.families.rows import (
    Ties,
    check_indptr,
    largest_change,
    log_softmax,
    normalise,
    normalise_counts,
    row_sums,
    rows_alike,
    sum_logs,
)

# Gamma variables of tiny shapes: values that would underflow are kept as logarithms.
#
# A Gamma(a) variable is below e⁻ˣ with a probability of about e⁻ᵃˣ. With a = 0.001 every second one
# is therefore below the smallest number there is, and rows of a Dirichlet made from such numbers
# would be empty, or have a density of infinity.


SMALLEST = 1e-300
"""Floor of drawn probabilities: their logarithms stay finite, and their products with others do not
underflow. Densities treat smaller entries as this."""

SMALLEST_SINGLE = 1e-30
"""The same for 32-bit floats."""

SMALLEST_SHAPE = 1e-300  # keeps log U / shape finite for the smallest of Gamma shapes


def draw_log_gammas(shapes: Array, rng: np.random.Generator) -> Array:
    """Draw log G for G ~ Gamma(shape).

    If G ~ Gamma(a + 1) and U ~ U(0, 1), then G·U^(1/a) ~ Gamma(a) (Marsaglia and Tsang 2000).
    """
    shapes = np.maximum(shapes, SMALLEST_SHAPE)
    logs: Array = np.log(rng.standard_gamma(shapes + 1.0))
    logs -= rng.standard_exponential(len(shapes)) / shapes
    return logs


def log_gammas(drawn: Array, shapes: Array, rng: np.random.Generator) -> Array:
    """Return log G of Gamma draws; those below `SMALLEST` are drawn again as logarithms.

    Near zero the density of Gamma(a) is that of gᵃ⁻¹, so that given G < ε, (G/ε)ᵃ ~ U(0, 1).
    """
    small = drawn < SMALLEST
    logs: Array = np.log(np.maximum(drawn, SMALLEST))
    logs[small] -= rng.standard_exponential(int(small.sum())) / np.maximum(
        np.broadcast_to(shapes, drawn.shape)[small], SMALLEST_SHAPE
    )
    return logs


class DirichletRows(Family):
    """Categorical rows laid end to end; arrays of ``shape`` outside, flat inside.

    ``prior``     Dirichlet concentration α > 0: a number, one per row, or one per entry
    ``mask``      False: the entry is fixed at zero and no part of its row's support
    ``frozen``    True: the row keeps its old values and has no prior
    ``tied``      rows with the same number share one distribution
    ``outcomes``  the outcome of each entry, if it is not given by the position in the row
    """

    smallest: float = SMALLEST
    """Floor of drawn entries."""

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
        whole = check_indptr(indptr)
        self.shape = shape
        self.n_rows = len(whole) - 1
        self.n_entries = int(whole[-1])
        lengths = np.diff(whole)
        self.ties = None if tied is None else Ties(whole, np.asarray(tied))
        self.indptr = whole if self.ties is None else self.ties.indptr
        alpha = np.asarray(prior, dtype=np.float64)
        if not np.all(alpha > 0.0) or not np.all(np.isfinite(alpha)):
            raise LearnerError(
                "the Dirichlet prior must be positive and finite",
                hint="prior=1 is flat; prior=1 + a is add-a smoothing",
            )
        if alpha.shape != shape and alpha.shape == (self.n_rows,):
            alpha = np.repeat(alpha, lengths)
        self.alpha: float | FloatArray = (
            self._one_for_each_entry(alpha, "prior") if alpha.ndim else float(alpha)
        )
        self.mask: BoolArray | None = None
        if mask is not None:
            self.mask = self._one_for_each_entry(np.asarray(mask, np.bool_), "mask")
        self._outcomes: IntArray | None = None
        if outcomes is not None:
            self._outcomes = self._one_for_each_entry(np.asarray(outcomes, np.int64), "outcomes")
        rows = np.zeros(self.n_rows, np.bool_) if frozen is None else np.asarray(frozen, np.bool_)
        if rows.shape != (self.n_rows,):
            raise LearnerError(
                f"frozen has shape {rows.shape}, but there are {self.n_rows} rows",
                hint="give one truth value for each row",
            )
        if self.ties is not None:
            self.ties.take_agreed(np.repeat(rows, lengths), "frozen")
            rows = rows[self.ties.first]
        lengths = np.diff(self.indptr)
        self.support = lengths if self.mask is None else row_sums(self.mask, self.indptr)
        self.held_rows = rows | (self.support == 0)
        self.n_free = int(np.sum(self.support[~self.held_rows] - 1))
        active = self._where_active(self.alpha, 1.0)
        self.is_flat = bool(np.all(active == 1.0))
        self.has_mode = bool(np.all(active >= 1.0))

    def _one_for_each_entry(self, given: Array, what: str) -> Array:
        """Return a setting as a flat array with one value per entry; tied rows appear once."""
        if given.shape not in (self.shape, (self.n_entries,)):
            raise LearnerError(
                f"{what} has shape {given.shape}, but the parameters have shape {self.shape}",
                hint=f"give {what} one value for each entry",
            )
        flat = given.reshape(-1)
        return flat if self.ties is None else self.ties.take_agreed(flat, what)

    def _where_active(self, values: float | Array, otherwise: float) -> float | Array:
        """``values`` at the supported entries of rows that may move, ``otherwise`` elsewhere."""
        if self.mask is not None:
            values = np.where(self.mask, values, otherwise)
        if self.held is not None:
            values = np.where(self.held, otherwise, values)
        return values

    @cached_property
    def held(self) -> BoolArray | None:
        """True for entries of rows that keep their values; None: there are no such rows."""
        lengths = np.diff(self.indptr)
        return np.repeat(self.held_rows, lengths) if np.any(self.held_rows) else None

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

    # conversion between arrays of `shape` outside and compact flat arrays inside
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
        """Return rows proportional to ``mass``; frozen rows and rows without mass keep ``old``."""
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
        """Raise a `LearnerError` unless the posterior has a mode for any counts."""
        if not self.has_mode:
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                hint="use VariationalBayes, or prior ≥ 1 (add-a smoothing is prior=1 + a)",
            )

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self._maximise(counts, old)

    def _maximise(self, counts: Counts, old: Array, overwrite: bool = False) -> Array:
        self.require_mode()
        has_exceptions = not (self.ties is None and self.mask is None and self.held is None)
        if isinstance(self.alpha, float) and not has_exceptions:
            flat = np.asarray(counts, dtype=np.float64).reshape(-1)
            # what was sparse has become an array that is nobody else's
            own = overwrite or not isinstance(counts, np.ndarray)
            made = flat if own else np.empty(len(flat))
            normalise_counts(flat, self.alpha - 1.0, self.indptr, self._inside(old), made)
            return made.reshape(self.shape)
        return self._settle(self._pooled(counts) + (self.alpha - 1.0), old)

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
        """Draw by normalised Gammas, in log space so that tiny shapes leave no empty row.

        Entries below `smallest` are raised to it, which changes no row sum noticeably: hidden
        values are drawn from the same posteriors, except for events of probability 10^-300.
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
        """Return Σ (α − 1) log θ over free entries, once for tied rows; without the constant.

        Always finite: an entry below `SMALLEST` counts as `SMALLEST`.
        """
        if self.is_flat:
            return 0.0
        if isinstance(self.alpha, float) and self.mask is None and self.held is None:
            return (self.alpha - 1.0) * sum_logs(self._inside(params), SMALLEST)
        weights = self._where_active(np.subtract(self.alpha, 1.0), 0.0)
        return float(np.sum(xlogy(weights, np.maximum(self._inside(params), SMALLEST))))

    def divergence(self, counts: Counts, params: Array) -> float:
        """Return KL(Dir(α + c) ‖ Dir(α)), summed over rows. With A = Σ α and C = Σ c, a row is

        ln Γ(A + C) − ln Γ(A) − Σ [ln Γ(α + c) − ln Γ(α)] + Σ c (ψ(α + c) − ψ(A + C)).
        """
        given = np.asarray(self._where_active(self._pooled(counts), 0.0))
        touched = np.flatnonzero(given)  # the rest costs nothing
        c = given[touched]
        alpha = self.alpha if isinstance(self.alpha, float) else self.alpha[touched]
        after = alpha + c
        entries = gammaln(alpha) - gammaln(after)
        entries += c * digamma(after)
        row_counts = row_sums(given, self.indptr)
        rows = np.flatnonzero(row_counts)
        before, extra = self.alpha_totals[rows], row_counts[rows]
        totals = before + extra
        of_rows = gammaln(totals) - gammaln(before) - extra * digamma(totals)
        return float(np.sum(entries) + np.sum(of_rows))

    def expected_log(self, counts: Counts, params: Array) -> float:
        if isinstance(counts, SparseCounts):
            flat = params if params.ndim == 1 else params.reshape(-1)  # a lazy table is 1-d
            return float(np.sum(xlogy(counts.value, flat[counts.index])))
        if isinstance(counts, ColumnCounts):
            table = np.asarray(params).reshape(counts.shape)
            return float(np.sum(xlogy(counts.value, table[:, counts.columns].T)))
        return float(np.sum(xlogy(counts, np.asarray(params))))

    # geometry
    def proper(self, values: Array) -> Array:
        """Scale down rows that sum to more than one; masked entries are set to zero.

        Rows that sum to less leave probability for outcomes that never occur, and are unchanged.
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


# Stepwise averages of large sparse tables, scaled lazily.
#
# s ← (1 − η) s + η b would touch every entry of the table for every mini-batch b. Kept as s = κ·u,
# a blend is κ ← (1 − η) κ, then u ← u + (η / κ) b on the entries of b alone; so are the row totals.
# (Bottou 2012, *Stochastic Gradient Descent Tricks*, does so for weight decay.)


SMALLEST_SCALE = 1e-100


class LazyTable:
    """Parameters computed on access: some by ``table[index]``, all by ``np.asarray(table)``.

    Made by `LazyAverage.params`, and valid until the next blend.
    """

    ndim = 1

    def __init__(self, average: LazyAverage, update: Update) -> None:
        self._average, self._update = average, update
        self._version = average.version
        self.shape = average.family.shape
        self.size = average.family.n_entries
        self.dtype = np.dtype(getattr(average.family, "dtype", np.float64))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, index: Any) -> Array:
        self._check_version()
        average, family = self._average, self._average.family
        if isinstance(index, slice):
            entries = np.arange(*index.indices(self.size))
        else:
            chosen = np.asarray(index)
            if chosen.dtype == np.bool_:
                entries = np.flatnonzero(chosen)
            else:
                entries = np.where(chosen < 0, chosen + self.size, chosen)
        rows = average.rows_of(entries)
        alpha = family.alpha if isinstance(family.alpha, float) else family.alpha[entries]
        counts, totals = average.sum[entries] * average.scale, average.totals[rows] * average.scale
        if self._update == "maximise":
            totals = totals + family.excess_totals[rows]
            new = np.full(counts.shape, np.nan)  # rows without mass
            np.divide(counts + (alpha - 1.0), totals, out=new, where=totals > 0.0)
        else:
            new = np.exp(digamma(counts + alpha) - digamma(totals + family.alpha_totals[rows]))
        if family.mask is not None:
            new = np.where(family.mask[entries], new, 0.0)
        held = family.held_rows[rows] | np.isnan(new)
        return np.where(held, average.kept[entries], new).astype(self.dtype, copy=False)

    def _check_version(self) -> None:
        if self._version != self._average.version:
            raise LearnerError(
                "this lazy table is out of date: counts were blended in since it was made",
                hint="read what you need of it, or copy it with np.asarray, before the next blend",
            )


class LazyAverage(CountAverage):
    """The running average of a `DirichletRows` family, with parameters evaluated on demand.

    >>> import numpy as np
    >>> from softcount.families import SparseCategorical
    >>> table = SparseCategorical(np.array([0, 2, 4]))
    >>> average, rng = table.running(), np.random.default_rng(0)
    >>> average.blend(SparseCounts(np.array([0, 1]), np.array([1.0, 3.0]), 4), eta=0.5)
    >>> params = average.params("maximise", table.uniform(), rng)
    >>> params[np.array([1, 3])]
    array([0.75, 0.5 ])
    """

    family: DirichletRows
    lazy_table: type[LazyTable] = LazyTable

    def __init__(self, family: DirichletRows) -> None:
        super().__init__(family)
        self.scale = 1.0
        self.totals = np.zeros(family.n_rows)
        self.kept = family.uniform()
        self.version = 0
        self._last_update: Update | None = None

    def blend(self, batch: Counts, eta: float) -> None:
        if (1.0 - eta) * self.scale < SMALLEST_SCALE:
            self.keep_estimate()
            self.sum *= self.scale
            self.totals *= self.scale
            self.scale = 1.0
        if eta == 1.0:
            self.sum[:] = 0.0
            self.totals[:] = 0.0
        else:
            self.scale *= 1.0 - eta
        factor = eta / self.scale
        if isinstance(batch, SparseCounts):
            index, value = batch.index, factor * batch.value
            self.sum[index] += value
            if self.family.mask is not None:
                value = np.where(self.family.mask[index], value, 0.0)
            np.add.at(self.totals, self.rows_of(index), value)
        else:
            batch = np.asarray(batch).reshape(self.sum.shape)
            self.sum += factor * batch
            self.totals += factor * row_sums(self.family.supported(batch), self.family.indptr)
        self.version += 1

    def keep_estimate(self) -> None:
        """Save the current estimate before the scale is reset, for rows that underflow then."""
        if self._last_update:
            self.kept = np.asarray(self.lazy_table(self, self._last_update))

    def rows_of(self, index: Array) -> Array:
        """The row of each entry in ``index``."""
        return np.searchsorted(self.family.indptr, index, side="right") - 1

    def counts(self) -> Array:
        return self.sum * self.scale

    def params(self, update: Update, old: Array, rng: np.random.Generator) -> Array:
        """As `CountAverage.params`; all but draws come as a `LazyTable`."""
        if update == "draw":
            return self.family.draw(self.counts(), np.asarray(old), rng)
        if update == "maximise":
            self.family.require_mode()
        if not isinstance(old, LazyTable):
            self.kept = np.asarray(old)
        self._last_update = update
        # behaves like an array: it has a shape, can be indexed, and can be converted to an array
        return cast(Array, self.lazy_table(self, update))

    def state(self) -> Mapping[str, Any]:
        names = ("sum", "scale", "totals", "kept", "version", "_last_update")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: Mapping[str, Any]) -> Array | None:
        vars(self).update(state)
        return cast(Array, self.lazy_table(self, self._last_update)) if self._last_update else None


# The two shapes: dense tables, and rows of unequal length.


class Categorical(DirichletRows):
    """Rows of categorical distributions over the same outcomes, each with a Dirichlet prior.

    Counts and parameters are (rows, outcomes) arrays. ``prior`` is the concentration α (a number,
    one per row or per entry; add-a smoothing is 1 + a); ``mask`` is False where an entry is fixed
    at zero; ``frozen`` rows keep their values; ``tied`` rows with the same number share one
    distribution.

    >>> import numpy as np
    >>> coins = Categorical((2, 2), prior=2.0)
    >>> rng = np.random.default_rng(0)
    >>> coins.maximise(np.array([[3., 1.], [0., 0.]]), coins.uniform(), rng)
    array([[0.66666667, 0.33333333],
           [0.5       , 0.5       ]])
    """

    def __init__(
        self,
        shape: tuple[int, int],
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        tied: Array | None = None,
    ) -> None:
        if len(shape) != 2 or min(shape) < 0:
            raise LearnerError(
                f"a categorical table cannot have shape {shape}", hint="shape is (rows, outcomes)"
            )
        rows, outcomes = shape
        super().__init__(
            np.arange(rows + 1) * outcomes, (rows, outcomes), prior, mask, frozen, tied
        )


class SparseCategorical(DirichletRows):
    """Rows of categorical distributions, each over its own outcomes, in CSR layout.

    Counts and parameters are flat: row r is ``[indptr[r]:indptr[r + 1]]``. The settings are those
    of `Categorical`; where ``prior`` could be one per row or one per entry, it is the latter.
    ``outcomes`` says which outcome each entry stands for; without it, `alike` compares entries by
    their place in the row.

    >>> import numpy as np
    >>> table = SparseCategorical(np.array([0, 2, 5]))
    >>> rng = np.random.default_rng(0)
    >>> table.maximise(np.array([1., 3., 2., 0., 2.]), table.uniform(), rng)
    array([0.25, 0.75, 0.5 , 0.  , 0.5 ])
    """

    def __init__(
        self,
        indptr: Array,
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        tied: Array | None = None,
        outcomes: Array | None = None,
    ) -> None:
        n_entries = int(indptr[-1]) if len(indptr) else 0
        super().__init__(indptr, (n_entries,), prior, mask, frozen, tied, outcomes)

    def running(self) -> CountAverage:
        """Make an average whose blends cost only what the batch touches (with ties: all)."""
        return LazyAverage(self) if self.ties is None else CountAverage(self)


# Weights of a truncated Dirichlet process: pieces broken off a stick, one after the other.


class StickBreaking(Categorical):
    """Stick-breaking weights of a truncated Dirichlet process: one row of T weights.

    Piece k takes the part v_k of what is left of the stick, and the last piece takes the rest:

        v_k ~ Beta(1, a) for k < T − 1,   v_{T−1} = 1,   π_k = v_k Π_{j<k} (1 − v_j)

    (Sethuraman 1994; truncated: Ishwaran & James 2001). Given counts n the parts stay independent,

        v_k | n ~ Beta(1 + n_k, a + Σ_{j>k} n_j),

    so that `draw`, `mean`, `mean_field` and `divergence` are products or sums over T − 1 Betas
    (Blei & Jordan 2006). The *mode* is that of the density of v, not of π. As
    Π_{k<T−1} (1 − v_k) = π_{T−1}, its logarithm is (a − 1) log π_{T−1} and a constant: the last
    piece gets a − 1 counts more, and a = 1 is maximum likelihood. Below 1 the density is unbounded
    where the last piece vanishes, and `maximise` refuses.

    ``n_outcomes``     T, the most classes there can be
    ``concentration``  a > 0: the larger, the more classes (about a log n of them for n items)

    Order matters: the prior expects each piece to be smaller than the one before. Variational Bayes
    attains a better bound if classes are sorted by their counts, largest first (Kurihara, Welling &
    Teh 2007); that is for the model to do, as all its tables must be sorted alike.

    >>> import numpy as np
    >>> stick = StickBreaking(3, concentration=1.0)
    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([[6., 2., 0.]])
    >>> stick.maximise(counts, stick.uniform(), rng)
    array([[0.75, 0.25, 0.  ]])
    >>> stick.mean(counts, stick.uniform())
    array([[0.7  , 0.225, 0.075]])
    """

    def __init__(self, n_outcomes: int, concentration: float = 1.0) -> None:
        if not n_outcomes >= 1 or n_outcomes % 1:
            raise LearnerError(
                f"a stick cannot be broken into {n_outcomes} pieces",
                hint="n_outcomes is the most classes there can be: a whole number, at least 1",
            )
        if not 0.0 < concentration < math.inf:
            raise LearnerError(
                f"concentration={concentration} must be positive and finite",
                hint="1 is usual; the larger, the more classes",
            )
        pieces = int(n_outcomes)
        self.concentration = float(concentration)
        prior = np.ones((1, pieces))
        prior[0, -1] = concentration  # the density of v, as a power of the last weight
        super().__init__((1, pieces), prior=prior)
        self._breaks = Categorical((pieces - 1, 2), np.tile([1.0, concentration], (pieces - 1, 1)))

    @property
    def prior_size(self) -> float:
        return self._breaks.prior_size

    def _break_counts(self, counts: Counts) -> Array:
        """Return how often each piece was chosen, and how often it was passed over."""
        given = self._pooled(counts)
        from_here = np.cumsum(given[::-1])[::-1]
        return np.column_stack((given[:-1], from_here[1:]))

    def _pieces(self, breaks: Array) -> Array:
        """Return the weights made from rows (v, 1 − v), or from their expectations."""
        left = np.cumprod(np.append(1.0, breaks[:, 1]))
        weights: Array = left * np.append(breaks[:, 0], 1.0)
        return weights.reshape(self.shape)

    # how counts become parameters; the Betas never need their old values
    def require_mode(self) -> None:
        if not self.has_mode:
            raise LearnerError(
                f"with concentration={self.concentration}, below 1, the weights have no mode, so "
                "there is nothing to maximise",
                hint="use VariationalBayes or Gibbs, or concentration ≥ 1",
            )

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """exp E[log π_k] = exp(E[log v_k] + Σ_{j<k} E[log (1 − v_j)])."""
        given = self._break_counts(counts)
        return self._pieces(self._breaks.mean_field(given, given, rng))

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        given = self._break_counts(counts)
        return np.maximum(self._pieces(self._breaks.draw(given, given, rng)), SMALLEST)

    def mean(self, counts: Counts, old: Array) -> Array:
        """E[π_k] = E[v_k] Π_{j<k} E[1 − v_j], as the parts are independent."""
        given = self._break_counts(counts)
        return self._pieces(self._breaks.mean(given, given))

    def divergence(self, counts: Counts, params: Array) -> float:
        """Σ_k KL(Beta(1 + n_k, a + Σ_{j>k} n_j) ‖ Beta(1, a))."""
        given = self._break_counts(counts)
        return self._breaks.divergence(given, given)
