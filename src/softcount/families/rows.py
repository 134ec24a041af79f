"""Kernels over rows laid end to end: row r of a flat array is ``flat[indptr[r]:indptr[r + 1]]``.

Rows may be empty.
"""

from __future__ import annotations

import math

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import Array
from softcount.kernels.jit import njit

LEAST_FACTOR, LEAST_PRODUCT = 1e-100, 1e-200
"""Factors and products from here on cannot underflow when multiplied."""


@njit
def row_sums(flat: Array, indptr: Array) -> Array:
    """Σ over each row."""
    sums = np.zeros(len(indptr) - 1)
    for row in range(len(indptr) - 1):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += flat[entry]
        sums[row] = total
    return sums


@njit
def normalise(mass: Array, indptr: Array, old: Array) -> Array:
    """Each row divided by its sum; a row without mass is taken from ``old``."""
    out = np.empty(len(mass))
    for row in range(len(indptr) - 1):
        start, end = indptr[row], indptr[row + 1]
        total = 0.0
        for entry in range(start, end):
            total += mass[entry]
        for entry in range(start, end):
            out[entry] = mass[entry] / total if total > 0.0 else old[entry]
    return out


@njit
def normalise_counts(counts: Array, more: float, indptr: Array, old: Array, out: Array) -> None:
    """`normalise` counts, none below 0, with ``more`` added to each, at one go.

    ``out`` may be the counts themselves.
    """
    for row in range(len(indptr) - 1):
        start, end = indptr[row], indptr[row + 1]
        total = 0.0
        for entry in range(start, end):
            out[entry] = max(counts[entry], 0.0) + more
            total += out[entry]
        for entry in range(start, end):
            out[entry] = out[entry] / total if total > 0.0 else old[entry]


@njit
def sum_logs(values: Array, least: float = 0.0) -> float:
    """Σ log v, by the logs of products: a multiplication takes less time than a logarithm.

    What is below ``least`` counts as that.
    """
    total, product = 0.0, 1.0
    for value in values:
        if value < LEAST_FACTOR or product < LEAST_PRODUCT:
            total += math.log(product)
            product = 1.0
        if value < LEAST_FACTOR:
            value = max(value, least)
            total += math.log(value) if value > 0.0 else -np.inf
        else:
            product *= value
    return total + math.log(product)


@njit
def largest_change(old: Array, new: Array) -> float:
    """max |new − old|; NaN anywhere gives NaN."""
    largest = 0.0
    for i in range(len(old)):
        change = abs(new[i] - old[i])
        if not change <= largest:
            largest = change
            if change != change:
                break
    return largest


@njit
def log_softmax(logits: Array, indptr: Array) -> Array:
    """logits − log Σ exp(logits) within each row; a row of nothing but −inf stays so."""
    out = np.full(len(logits), -np.inf)
    for row in range(len(indptr) - 1):
        start, end = indptr[row], indptr[row + 1]
        peak = -np.inf
        for entry in range(start, end):
            peak = max(peak, logits[entry])
        if peak == -np.inf:
            continue
        total = 0.0
        for entry in range(start, end):
            total += np.exp(logits[entry] - peak)
        log_total = peak + np.log(total)
        for entry in range(start, end):
            out[entry] = logits[entry] - log_total
    return out


@njit
def rows_match(
    values: Array, labels: Array | None, indptr: Array, rows: Array, tolerance: float
) -> bool:
    """Whether all of ``rows`` have the same labels, sorted, if they have any, and values."""
    first = indptr[rows[0]]
    length = indptr[rows[0] + 1] - first
    for row in rows[1:]:
        start = indptr[row]
        if indptr[row + 1] - start != length:
            return False
        for k in range(length):
            if labels is not None and labels[start + k] != labels[first + k]:
                return False
            if not abs(values[start + k] - values[first + k]) <= tolerance:
                return False
    return True


def rows_alike(
    values: Array, labels: Array | None, indptr: Array, rows: Array, tolerance: float = 1e-9
) -> bool | None:
    """Whether all of ``rows`` have the same values; None if there are fewer than two.

    Entries are matched by their labels if these are given, else by their place in the row.
    """
    if len(rows) < 2:
        return None
    lengths = np.diff(indptr)
    if np.any(lengths[rows] != lengths[rows[0]]):
        return False
    if labels is not None:
        order = np.lexsort((labels, np.repeat(np.arange(len(lengths)), lengths)))
        values, labels = values[order], labels[order]
    return bool(rows_match(values, labels, indptr, rows, tolerance))


def check_indptr(indptr: Array) -> Array:
    """``indptr`` as int64, once it is known to describe rows."""
    checked = np.ascontiguousarray(indptr, dtype=np.int64)
    if checked.ndim != 1 or not len(checked) or checked[0] != 0 or np.any(np.diff(checked) < 0):
        raise LearnerError(
            "indptr does not describe rows: it must be a vector that starts at 0 and never falls",
            hint="row r holds the entries indptr[r] to indptr[r + 1]; an empty row repeats a value",
        )
    return checked


class Ties:
    """Rows that share one distribution: a compact table with one row for each group of ties.

    >>> import numpy as np
    >>> ties = Ties(np.array([0, 2, 4, 6]), np.array([7, 3, 7]))   # rows 0 and 2 are one
    >>> ties.pool(np.array([1., 2., 5., 5., 10., 20.]))
    array([ 5.,  5., 11., 22.])
    >>> ties.spread(np.array([.5, .5, .1, .9]))
    array([0.1, 0.9, 0.5, 0.5, 0.1, 0.9])
    """

    def __init__(self, indptr: Array, tied: Array) -> None:
        lengths = np.diff(indptr)
        if tied.shape != lengths.shape:
            raise LearnerError(
                f"tied has shape {tied.shape}, but there are {len(lengths)} rows",
                hint="give one group number for each row; rows with the same number are one",
            )
        _, first, group = np.unique(tied, return_index=True, return_inverse=True)
        odd = np.flatnonzero(lengths != lengths[first][group])
        if len(odd):
            row, other = odd[0], first[group[odd[0]]]
            raise LearnerError(
                f"rows {other} and {row} are tied but have {lengths[other]} and {lengths[row]} "
                "entries",
                hint="only rows of equal length can share one distribution",
            )
        self.first = first
        self.indptr = np.concatenate(([0], np.cumsum(lengths[first])))
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        self.target = np.repeat(self.indptr[:-1][group], lengths) + within
        shift = indptr[:-1][first] - self.indptr[:-1]
        self.source = np.arange(self.indptr[-1]) + np.repeat(shift, lengths[first])

    def pool(self, flat: Array) -> Array:
        """Counts added up over each group."""
        return np.bincount(self.target, weights=flat, minlength=len(self.source))

    def take(self, flat: Array) -> Array:
        """The values of each group's first row."""
        chosen: Array = flat[self.source]
        return chosen

    def spread(self, compact: Array) -> Array:
        """Every row given the values of its group."""
        whole: Array = compact[self.target]
        return whole

    def take_agreed(self, flat: Array, what: str) -> Array:
        """As `take`, for settings that tied rows must have in common."""
        chosen = self.take(flat)
        if not np.array_equal(self.spread(chosen), flat):
            raise LearnerError(
                f"tied rows differ in their {what}",
                hint="rows that share one distribution need the same prior, mask and frozen",
            )
        return chosen
