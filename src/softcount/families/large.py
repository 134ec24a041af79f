"""Sparse tables so large that they are processed in blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softcount.core import spill
from softcount.core.errors import LearnerError
from softcount.core.types import Array, Counts, SparseCounts, Update
from softcount.families.base import CountAverage
from softcount.families.categorical import (
    SMALLEST,
    SMALLEST_SINGLE,
    DirichletRows,
    LazyAverage,
    SparseCategorical,
)
from softcount.families.rows import rows_match
from softcount.kernels.jit import njit

BLOCK = 1 << 17
"""Number of entries per block; a block has at least one row."""


class _Block(NamedTuple):
    """A range of rows, the slice of their entries, and their family."""

    first: int
    last: int
    entries: slice
    family: DirichletRows


class LargeTable(SparseCategorical):
    """A `SparseCategorical` that needs little more memory than its parameters.

    ``outcomes`` must be sorted within each row; they are not copied. ``dtype`` is that of the
    parameters; they are computed in 64 bits. ``n_outcomes`` is the total number of outcomes, if
    initial rows may leave probability for outcomes that they have no entry for.

    >>> import numpy as np
    >>> table = LargeTable(np.array([0, 2, 5]), np.array([0, 1, 0, 1, 2]), dtype="float32")
    >>> table.maximise(np.array([1., 3., 2., 0., 2.]), table.uniform(), np.random.default_rng(0))
    array([0.25, 0.75, 0.5 , 0.  , 0.5 ], dtype=float32)
    """

    def __init__(
        self,
        indptr: Array,
        outcomes: Array,
        prior: float | Array = 1.0,
        mask: Array | None = None,
        frozen: Array | None = None,
        dtype: str = "float64",
        block: int = BLOCK,
        n_outcomes: int = 0,
    ) -> None:
        super().__init__(indptr, prior, mask, frozen)
        if len(outcomes) != self.n_entries:
            raise LearnerError(f"{len(outcomes)} outcomes for {self.n_entries} entries")
        self.outcomes, self.dtype = outcomes, np.dtype(dtype)
        self.n_outcomes = int(n_outcomes)
        self.smallest = SMALLEST if self.dtype == np.float64 else SMALLEST_SINGLE
        self.block = block

    @cached_property
    def blocks(self) -> list[_Block]:
        return list(self._cut())

    def _cut(self) -> Iterator[_Block]:
        first = 0
        while first < self.n_rows:
            end = self.indptr[first] + self.block
            last = int(np.searchsorted(self.indptr, end, side="right")) - 1
            last = min(max(last, first + 1), self.n_rows)
            begin, end = int(self.indptr[first]), int(self.indptr[last])
            entries = slice(begin, end)
            alpha = self.alpha if isinstance(self.alpha, float) else self.alpha[entries]
            family = DirichletRows(
                self.indptr[first : last + 1] - begin,
                (end - begin,),
                alpha,
                None if self.mask is None else self.mask[entries],
                self.held_rows[first:last],
            )
            family.smallest = self.smallest
            yield _Block(first, last, entries, family)
            first = last

    # block by block
    def _each(
        self, method: str, counts: Counts, old: Array, *more: Any, out: Array | None = None
    ) -> Array:
        counts = _as_array(counts)
        new = spill.zeros(self.shape, self.dtype) if out is None else out
        for block in self.blocks:
            own = _counts_of(counts, block)
            before = np.ascontiguousarray(old[block.entries])
            new[block.entries] = getattr(block.family, method)(own, before, *more)
        return new

    def _sum(self, method: str, counts: Counts, params: Array) -> float:
        counts = _as_array(counts)
        each = [
            getattr(block.family, method)(_counts_of(counts, block), params[block.entries])
            for block in self.blocks
        ]
        return float(sum(each))

    def consume(self, how: Update, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        if how != "maximise" or isinstance(counts, SparseCounts):
            return self.update(how, counts, old, rng)
        own = np.asarray(counts)
        if own.dtype != self.dtype or not own.flags.writeable:
            return self.update(how, own, old, rng)
        self.require_mode()
        return self._each(how, own, old, rng, out=own)  # block by block

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        self.require_mode()
        return self._each("maximise", counts, old, rng)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self._each("mean_field", counts, old, rng)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self._each("draw", counts, old, rng)

    def mean(self, counts: Counts, old: Array) -> Array:
        return self._each("mean", counts, old)

    def average(self, draws: Sequence[Array]) -> Array:
        return super().average(draws).astype(self.dtype, copy=False)

    def log_prior(self, params: Array) -> float:
        if self.is_flat:
            return 0.0
        return float(sum(b.family.log_prior(params[b.entries]) for b in self.blocks))

    def divergence(self, counts: Counts, params: Array) -> float:
        return self._sum("divergence", counts, params)

    def expected_log(self, counts: Counts, params: Array) -> float:
        if isinstance(counts, SparseCounts):
            return super().expected_log(counts, params)
        return self._sum("expected_log", counts, params)

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.shape)

    def uniform(self) -> Array:
        return super().uniform().astype(self.dtype, copy=False)

    def random(self, rng: np.random.Generator) -> Array:
        return super().random(rng).astype(self.dtype, copy=False)

    def sound(self, values: Array) -> bool:
        return bool((values >= 0.0).all())

    def proper(self, values: Array) -> Array:
        given = values.astype(self.dtype, copy=False)
        made = given
        for block in self.blocks:
            own = given[block.entries]
            proper = block.family.proper(own)
            if proper is not own:
                if made is given:
                    made = spill.zeros(given.shape, given.dtype)
                    made[:] = given
                made[block.entries] = proper
        return made

    # geometry
    def change(self, old: Array, new: Array) -> float:
        each = [b.family.change(old[b.entries], new[b.entries]) for b in self.blocks]
        return float(np.max(each, initial=0.0))

    def alike(self, params: Array) -> bool | None:
        rows = np.flatnonzero(~self.held_rows & (self.support >= 2))
        if len(rows) < 2:
            return None
        return bool(
            rows_match(np.ascontiguousarray(params), self.outcomes, self.indptr, rows, 1e-9)
        )

    def entropy(self, params: Array, weights: bool = False) -> float:
        """Return the mean entropy of the rows in bits.

        The remaining mass of a row is divided evenly among the outcomes without an entry; so a
        uniform start has the entropy of all outcomes. ``weights``: rows sum to less than one for
        another reason (see `mean_field`), and are normalised instead.
        """
        n_outcomes = 0 if weights else self.n_outcomes
        return float(mean_entropy(np.ascontiguousarray(params), self.indptr, n_outcomes))

    def running(self) -> CountAverage:
        return LazyAverage(self)


def _as_array(counts: Counts) -> Counts:
    """Return counts to be read part by part: an array, unless they are sparse."""
    return counts if isinstance(counts, SparseCounts) else np.asarray(counts)


def _counts_of(counts: Counts, block: _Block) -> Counts:
    if isinstance(counts, SparseCounts):
        begin, end = np.searchsorted(counts.index, (block.entries.start, block.entries.stop))
        size = block.entries.stop - block.entries.start
        return SparseCounts(
            counts.index[begin:end] - block.entries.start, counts.value[begin:end], size
        )
    assert isinstance(counts, np.ndarray)
    return counts[block.entries]


LEFT = 1e-6
"""A remaining mass below this is rounding error."""


@njit
def mean_entropy(values: Array, indptr: Array, n_outcomes: int = 0) -> float:
    """Return the mean over rows of the entropy in bits.

    The remaining mass of a row is divided evenly among those of ``n_outcomes`` that have no entry
    in it; where there are none, the row is normalised.
    """
    entropy, rows = 0.0, 0
    for row in range(len(indptr) - 1):
        others = n_outcomes - (indptr[row + 1] - indptr[row])
        total = logs = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            p = float(values[k])
            if p > 0.0:
                total += p
                logs += p * math.log(p)
        left = 1.0 - total
        if total > 0.0:
            if others > 0 and left > LEFT:
                entropy -= logs + left * math.log(left / others)
            else:
                entropy += math.log(total) - logs / total
            rows += 1
    return entropy / math.log(2.0) / max(rows, 1)
