"""Tables of which a mini-batch sees a few columns: words that occur, of all there are.

s ← (1 − η) s + η b would touch the whole table for every mini-batch b. Kept as s = κ·u, column by
column, a blend is κ ← (1 − η) κ and u ← u + (η / κ) b in the columns of b alone; parameters are
worked out for the columns that are asked for. (`LazyAverage` does so entry by entry.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import digamma

from softcount.core.errors import LearnerError
from softcount.core.types import Array, Update
from softcount.families.base import CountAverage
from softcount.families.categorical import Categorical
from softcount.kernels.jit import njit

SMALLEST_SCALE = 1e-100


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """Counts of some columns of a table, (columns, rows); all others are zero."""

    columns: Array
    value: Array

    def __mul__(self, factor: float) -> ColumnCounts:
        return ColumnCounts(self.columns, self.value * factor)


class Columns(Categorical):
    """A `Categorical` for counts that come as `ColumnCounts` from mini-batches.

    >>> table = Columns((1, 3), prior=2.0)
    >>> average, rng = table.running(), np.random.default_rng(0)
    >>> average.blend(ColumnCounts(np.array([2]), np.array([[4.0]])), eta=0.5)
    >>> params = average.params("maximise", table.uniform(), rng)
    >>> columns_of(params, np.array([0, 2]))
    array([[0.2],
           [0.6]])
    """

    def running(self) -> CountAverage:
        """A running average that touches the columns of a mini-batch alone."""
        plain = self.mask is None and self.ties is None
        return ColumnAverage(self) if plain else super().running()


def columns_of(table: Any, columns: Array) -> Array:
    """Some columns of a table, lazy or not: (columns, rows)."""
    if isinstance(table, LazyColumns):
        return table.take(columns)
    return np.take(np.asarray(table), columns, axis=1).T


class ColumnAverage(CountAverage):
    """The running average of a table of columns."""

    family: Columns

    def __init__(self, family: Columns) -> None:
        self.family = family
        rows, columns = family.shape
        self.sum = np.zeros((columns, rows))
        self.totals = np.zeros(rows)
        self.scale = 1.0
        self.kept = family.uniform()
        self.version = 0
        self._last_update: Update | None = None

    def blend(self, batch: Any, eta: float) -> None:
        if (1.0 - eta) * self.scale < SMALLEST_SCALE:
            if self._last_update:  # rows that may now lose all counts keep what they have
                self.kept = np.asarray(LazyColumns(self, self._last_update))
            self.sum *= self.scale * (1.0 - eta)
            self.scale = 1.0
        else:
            self.scale *= 1.0 - eta
        if isinstance(batch, ColumnCounts):
            value = batch.value
            _add_columns(self.sum, batch.columns, eta / self.scale, value)
        else:
            value = np.asarray(batch).T
            self.sum += (eta / self.scale) * value
        self.totals = (1.0 - eta) * self.totals + eta * value.sum(axis=0)
        self.version += 1

    def counts(self) -> Array:
        return np.ascontiguousarray(self.sum.T) * self.scale

    def params(self, update: Update, old: Array, rng: np.random.Generator) -> Array:
        """As `Running.params`; all but draws come as `LazyColumns`, valid until the next blend."""
        if update == "draw":
            return self.family.draw(self.counts(), np.asarray(old), rng)
        if update == "maximise":
            self.family.require_mode()
        if not isinstance(old, LazyColumns):
            self.kept = np.asarray(old)
        self._last_update = update
        # an array in all but its type: it can be made one, and asked for columns
        return cast(Array, LazyColumns(self, update))


class LazyColumns:
    """Parameters that are worked out when they are looked at: by `take`, or all of them by
    ``np.asarray(table)``. Made by `ColumnRunning.params`.
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, average: ColumnAverage, update: Update) -> None:
        self._average, self._version, self._update = average, average.version, update
        self.shape = average.family.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        table = np.ascontiguousarray(self.take(np.arange(self.shape[1])).T)
        return table.astype(dtype or self.dtype, copy=False)

    def take(self, columns: Array) -> Array:
        """These columns, (columns, rows)."""
        average, family = self._average, self._average.family
        if self._version != average.version:
            raise LearnerError(
                "this lazy table is out of date: counts were blended in since it was made",
                hint="read what you need of it, or copy it with np.asarray, before the next blend",
            )
        new = self._mode(columns) if self._update == "maximise" else self._mean_field(columns)
        kept = family.held_rows
        if self._update == "maximise":
            kept = kept | (average.totals + family.excess_totals <= 0.0)
        if kept.any():
            new[:, kept] = average.kept[kept][:, columns].T
        return new

    def _mode(self, columns: Array) -> Array:
        average, family = self._average, self._average.family
        totals = average.totals + family.excess_totals
        factors = 1.0 / np.where(totals > 0.0, totals, 1.0)
        alpha = self._alpha(columns)
        if not isinstance(alpha, float):
            return (average.sum[columns] * average.scale + (alpha - 1.0)) * factors
        new = np.empty((len(columns), len(totals)))
        _column_modes(average.sum, columns, average.scale, alpha - 1.0, factors, new)
        return new

    def _mean_field(self, columns: Array) -> Array:
        average, family = self._average, self._average.family
        mass = average.sum[columns] * average.scale + self._alpha(columns)
        new: Array = np.exp(digamma(mass) - digamma(average.totals + family.alpha_totals))
        return new

    def _alpha(self, columns: Array) -> float | Array:
        alpha = self._average.family.alpha
        return alpha if isinstance(alpha, float) else alpha.reshape(self.shape)[:, columns].T


@njit
def _add_columns(table: Array, columns: Array, factor: float, value: Array) -> None:
    """``table[columns] += factor * value``, for columns that differ."""
    for i in range(len(columns)):
        for k in range(table.shape[1]):
            table[columns[i], k] += factor * value[i, k]


@njit
def _column_modes(
    table: Array, columns: Array, scale: float, more: float, factors: Array, out: Array
) -> None:
    """``out = (table[columns] * scale + more) * factors``."""
    for i in range(len(columns)):
        for k in range(table.shape[1]):
            out[i, k] = (table[columns[i], k] * scale + more) * factors[k]
