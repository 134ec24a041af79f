"""Products of rows with tables, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.kernels import table_products
from softcount.kernels.jit import njit
from softcount.kernels.products import SIDE, TALL
from softcount.kernels.table_products import panels, pitch

Array = np.ndarray
WIDES = (8, 16, 24, 40)
both_kinds = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@njit
def _apply(out: Array, left: Array, right: Array, depth: int, best: bool) -> None:
    if best:
        table_products.apply_best(out, 0, left, 0, right, depth)
    else:
        table_products.apply(out, 0, left, 0, right, depth)


@njit
def _meet(out: Array, o: int, left: Array, right: Array, n: int, rows: int, best: bool) -> None:
    if best:
        table_products.meet_best(out, o, left, right, n, rows)
    else:
        table_products.meet(out, o, left, right, n, rows)


@njit
def _add_crosses(out: Array, left: Array, right: Array, first: int, n: int) -> None:
    table_products.add_crosses(out, left, right, first, n)


@njit
def _multiply(out: Array, left: Array, right: Array, table: int, n: int) -> None:
    table_products.multiply(out, 0, left, 0, right, table, n)


@njit
def _row(out: Array, left: Array, right: Array, table: int, n: int, best: bool) -> None:
    if best:
        table_products.raise_row(out, 1, left, 2, right, table, n)
    else:
        table_products.add_row(out, 1, left, 2, right, table, n)


def drawn(dtype: type, *shape: int) -> Array:
    return np.random.default_rng(0).random(shape).astype(dtype)


def near(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if found.dtype == np.float32 else 1e-12)


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_rows_times_panels(dtype: type, wide: int) -> None:
    left, right = drawn(dtype, TALL, 8), drawn(dtype, 5, wide)
    out = np.full((TALL, wide + 8), 7, dtype)
    _apply(out, left, panels(right), 5, False)
    near(out[:, :wide], left[:, :5] @ right)
    assert (out[:, wide:] == 7).all()
    _apply(out, left, panels(right), 5, True)
    near(out[:, :wide], (left[:, :5, None] * right).max(axis=1))


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_columns_meet_in_a_table(dtype: type, wide: int) -> None:
    left, right, rows = drawn(dtype, 4, 16), drawn(dtype, 4, wide), 2 * SIDE
    out = np.full((3, pitch(rows, wide)), 7, dtype)
    _meet(out, 1, left, right, 3, rows, False)
    near(out[1, :-8].reshape(rows, wide), left[:3, :rows].T @ right[:3])
    assert (out[[0, 2]] == 7).all()
    assert (out[1, -8:] == 7).all()
    _meet(out, 1, left, right, 3, rows, True)
    pairs = left[:3, :rows, None] * right[:3, None]
    near(out[1, :-8].reshape(rows, wide), pairs.max(axis=0))
    _meet(out, 1, left, right, 0, rows, False)
    assert (out[1, :-8] == 0).all()


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_products_of_columns_are_added(dtype: type, wide: int) -> None:
    left, right, before = drawn(dtype, 6, 16), drawn(dtype, 6, wide), drawn(dtype, 8, wide)
    out = before.copy()
    _add_crosses(out, left, right, 2, 3)
    near(out, before + left[2:5, :8].T @ right[2:5])


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_rows_times_a_table(dtype: type, wide: int) -> None:
    left, tables = drawn(dtype, TALL, 8), drawn(dtype, 3, pitch(5, wide))
    table = tables[2, : 5 * wide].reshape(5, wide)
    out = np.zeros((TALL, wide), dtype)
    _multiply(out, left, tables, 2, 5)
    near(out, left[:, :5] @ table)
    before = out.copy()
    _row(out, left, tables, 2, 4, False)
    near(out[1], before[1] + left[2, :4] @ table[:4])
    assert (out[[0, *range(2, TALL)]] == before[[0, *range(2, TALL)]]).all()
    out[1, ::2] = 0
    before = out.copy()
    _row(out, left, tables, 2, 4, True)
    near(out[1], np.maximum(before[1], (left[2, :4, None] * table[:4]).max(axis=0)))
