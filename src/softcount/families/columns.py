"""Tables of which a mini-batch touches only a few columns: the words that occur in it.

s ← (1 − η) s + η b would touch the whole table for every mini-batch b. Stored as s = κ·u, column by
column, a blend is κ ← (1 − η) κ and u ← u + (η / κ) b in the columns of b alone; parameters are
computed only for the columns requested. (`LazyAverage` does the same entry by entry.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma

from softcount.core.types import Array, ColumnCounts
from softcount.families.base import CountAverage
from softcount.families.categorical import SMALLEST_SCALE, Categorical, LazyAverage, LazyTable
from softcount.kernels.jit import njit

__all__ = ["ColumnAverage", "ColumnCounts", "Columns", "LazyColumns", "take_columns"]


class Columns(Categorical):
    """A `Categorical` for counts that come as `ColumnCounts` from mini-batches.

    >>> table = Columns((1, 3), prior=2.0)
    >>> average, rng = table.running(), np.random.default_rng(0)
    >>> average.blend(ColumnCounts(np.array([2]), np.array([[4.0]]), 3), eta=0.5)
    >>> params = average.params("maximise", table.uniform(), rng)
    >>> take_columns(params, np.array([0, 2]))
    array([[0.2],
           [0.6]])
    """

    def running(self) -> CountAverage:
        """Make a running average whose blends touch only the columns of a mini-batch."""
        plain = self.mask is None and self.ties is None
        return ColumnAverage(self) if plain else super().running()


def take_columns(table: Any, columns: Array) -> Array:
    """Return some columns of a table, lazy or not, (columns, rows)."""
    if isinstance(table, LazyColumns):
        return table.take(columns)
    return np.take(np.asarray(table), columns, axis=1).T


class ColumnAverage(LazyAverage):
    """The running average of a table of columns; ``sum`` is (columns, rows)."""

    family: Columns

    def __init__(self, family: Columns) -> None:
        super().__init__(family)
        self.lazy_table = LazyColumns
        self.sum = np.zeros(family.shape[::-1])

    def blend(self, batch: Any, eta: float) -> None:
        if (1.0 - eta) * self.scale < SMALLEST_SCALE:
            self.keep_estimate()
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


class LazyColumns(LazyTable):
    """Parameters computed on access: some columns by `take`, all by ``np.asarray(table)``.

    Made by `ColumnAverage.params`.
    """

    ndim = 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        table = np.ascontiguousarray(self.take(np.arange(self.shape[1])).T)
        return table.astype(dtype or self.dtype, copy=False)

    def __getitem__(self, index: Any) -> Array:
        chosen: Array = np.asarray(self)[index]
        return chosen

    def take(self, columns: Array) -> Array:
        """These columns, (columns, rows)."""
        self._check_version()
        average, family = self._average, self._average.family
        alpha = family.alpha
        if not isinstance(alpha, float):
            alpha = alpha.reshape(self.shape)[:, columns].T
        kept = family.held_rows
        if self._update == "maximise":
            totals = average.totals + family.excess_totals
            kept = kept | (totals <= 0.0)
            factors = 1.0 / np.where(totals > 0.0, totals, 1.0)
            if isinstance(alpha, float):
                new = np.empty((len(columns), len(totals)))
                _column_modes(average.sum, columns, average.scale, alpha - 1.0, factors, new)
            else:
                new = (average.sum[columns] * average.scale + (alpha - 1.0)) * factors
        else:
            # in place: fresh memory for every step of the sum costs as much as the sum
            new = np.take(average.sum, columns, axis=0)
            new *= average.scale
            new += alpha
            digamma(new, out=new)
            new -= digamma(average.totals + family.alpha_totals)
            np.exp(new, out=new)
        if kept.any():
            new[:, kept] = average.kept[kept][:, columns].T
        return new


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
