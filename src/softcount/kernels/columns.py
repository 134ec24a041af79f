"""A few columns of a large table, kept column by column: add to them, read them."""

from __future__ import annotations

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def add(table: Array, columns: Array, factor: float, value: Array) -> None:
    """``table[columns] += factor * value``, for columns that differ."""
    for i in range(len(columns)):
        for k in range(table.shape[1]):
            table[columns[i], k] += factor * value[i, k]


@njit
def modes(
    table: Array, columns: Array, scale: float, more: float, factors: Array, out: Array
) -> None:
    """``out = (table[columns] * scale + more) * factors``."""
    for i in range(len(columns)):
        for k in range(table.shape[1]):
            out[i, k] = (table[columns[i], k] * scale + more) * factors[k]
