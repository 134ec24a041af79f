"""Stepwise averages of large sparse tables, scaled lazily.

s ← (1 − η) s + η b would touch every entry of the table for every mini-batch b. Kept as s = κ·u,
a blend is κ ← (1 − η) κ, then u ← u + (η / κ) b on the entries of b alone; so are the row totals.
(Bottou 2012, *Stochastic Gradient Descent Tricks*, does so for weight decay.)
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.special import digamma

from softcount.errors import LearnerError
from softcount.families.base import Running
from softcount.families.dirichlet import DirichletRows
from softcount.families.rows import row_sums
from softcount.types import Array, Counts, SparseCounts

SMALLEST_SCALE = 1e-100


class LazyRunning(Running):
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

    def __init__(self, family: DirichletRows) -> None:
        super().__init__(family)
        self.scale = 1.0
        self.totals = np.zeros(family.n_rows)
        self.kept = family.uniform()
        self.version = 0
        self._last_word = ""

    def blend(self, batch: Counts, eta: float) -> None:
        if (1.0 - eta) * self.scale < SMALLEST_SCALE:
            self._rescale()
        if eta == 1.0:
            self.sum[:] = 0.0
            self.totals[:] = 0.0
        else:
            self.scale *= 1.0 - eta
        self._add(batch, eta / self.scale)
        self.version += 1

    def _rescale(self) -> None:
        """Put the scale back to one; rows that vanish on the way keep their last estimate."""
        if self._last_word:
            self.kept = np.asarray(LazyTable(self, self._last_word))
        self.sum *= self.scale
        self.totals *= self.scale
        self.scale = 1.0

    def _add(self, batch: Counts, factor: float) -> None:
        if isinstance(batch, SparseCounts):
            index, value = batch.index, factor * batch.value
            self.sum[index] += value
            if self.family.mask is not None:
                value = np.where(self.family.mask[index], value, 0.0)
            np.add.at(self.totals, self.rows_of(index), value)
        else:
            self.sum += factor * batch
            self.totals += factor * row_sums(self.family.supported(batch), self.family.indptr)

    def rows_of(self, index: Array) -> Array:
        """The row of each entry in ``index``."""
        return np.searchsorted(self.family.indptr, index, side="right") - 1

    def counts(self) -> Array:
        return self.sum * self.scale

    def params(self, word: str, old: Array, rng: np.random.Generator) -> Array:
        """As `Running.params`; all but draws come as a `LazyTable`, valid until the next blend."""
        if word == "draw":
            return self.family.draw(self.counts(), np.asarray(old), rng)
        if word == "maximise":
            self.family.require_mode()
        if not isinstance(old, LazyTable):
            self.kept = np.asarray(old)
        self._last_word = word
        # an array in all but its type: it can be indexed, asked for its shape, and made an array
        return cast(Array, LazyTable(self, word))


class LazyTable:
    """Parameters that are worked out when they are looked at: ``table[index]``, or all of them
    by ``np.asarray(table)``. Made by `LazyRunning.params`.
    """

    ndim = 1

    def __init__(self, average: LazyRunning, word: str) -> None:
        self._average = average
        self._version = average.version
        self._evaluate = self._mode if word == "maximise" else self._mean_field
        self.shape = average.family.shape
        self.size = average.family.n_entries
        self.dtype = np.dtype(getattr(average.family, "dtype", np.float64))

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, index: Any) -> Array:
        average, family = self._average, self._average.family
        if self._version != average.version:
            raise LearnerError(
                "this lazy table is out of date: counts were blended in since it was made",
                hint="read what you need of it, or copy it with np.asarray, before the next blend",
            )
        entries = self._entries(index)
        rows = average.rows_of(entries)
        alpha = family.alpha if isinstance(family.alpha, float) else family.alpha[entries]
        new = self._evaluate(average.sum[entries] * average.scale, alpha, rows)
        if family.mask is not None:
            new = np.where(family.mask[entries], new, 0.0)
        held = family.held_rows[rows] | np.isnan(new)
        return np.where(held, average.kept[entries], new).astype(self.dtype, copy=False)

    def _entries(self, index: Any) -> Array:
        if isinstance(index, slice):
            return np.arange(*index.indices(self.size))
        chosen = np.asarray(index)
        if chosen.dtype == np.bool_:
            return np.flatnonzero(chosen)
        return np.where(chosen < 0, chosen + self.size, chosen)

    def _mode(self, counts: Array, alpha: float | Array, rows: Array) -> Array:
        """NaN in rows without mass."""
        average, family = self._average, self._average.family
        totals = average.totals[rows] * average.scale + family.excess_totals[rows]
        mode = np.full(counts.shape, np.nan)
        np.divide(counts + (alpha - 1.0), totals, out=mode, where=totals > 0.0)
        return mode

    def _mean_field(self, counts: Array, alpha: float | Array, rows: Array) -> Array:
        average, family = self._average, self._average.family
        totals = average.totals[rows] * average.scale + family.alpha_totals[rows]
        expected: Array = np.exp(digamma(counts + alpha) - digamma(totals))
        return expected
