"""What is written in LLVM against its plain twins, bit by bit; and against numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.kernels.jit import njit
from softcount.kernels.vectors import (
    COLUMNS_AT_ONCE,
    ROWS_AT_ONCE,
    SHIFTS_AT_ONCE,
    TWINS,
    WIDTH,
    panels,
    table_pitch,
)

Array = np.ndarray
Make = Callable[..., Array]
CASES: dict[str, Callable[[Make, int], tuple[Any, ...]]] = {}
"""By name of a function: arguments, given a maker of arrays and a number of vectors in a row."""
both_kinds = pytest.mark.parametrize("dtype", [np.float64, np.float32])
WIDES = (8, 16, 24, 40)


@cache
def compiled(name: str) -> tuple[Any, Any]:
    """The function and its twin, to be called from Python."""
    function, plain = TWINS[name]

    def call(*args: Any) -> Any:
        return function(*args)

    return njit(call), njit(plain)


def call(name: str, *args: Any) -> Any:
    return compiled(name)[0](*args)


def case(*names: str) -> Any:
    def keep(function: Any) -> Any:
        CASES.update(dict.fromkeys(names, function))
        return function

    return keep


@case("row_max", "row_min", "prefetch_row")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(4, v * WIDTH), 2


@case("row_dot")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(3, v * WIDTH), 1, make(2, v * WIDTH), 0


@case("add_scaled_row", "set_scaled_row")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(3, v * WIDTH), 1, make(1)[0], make(4, v * WIDTH), 3


@case("add_listed_rows")
def _(make: Make, v: int) -> tuple[Any, ...]:
    listed = np.array([4, 2, 2, 0, 5], np.uint32)
    return make(5, v * WIDTH), 3, make(6, v * WIDTH), listed, make(5), 1, 5


@case("add_listed_dots")
def _(make: Make, v: int) -> tuple[Any, ...]:
    listed = np.array([4, 2, 2, 0, 5], np.uint32)
    return make(5), make(6, v * WIDTH), 1, make(6, v * WIDTH), listed, make(5), 0, 4


@case("prefetch")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(v * WIDTH), 3, 100


@case("weighted_sum", "weighted_sum_two", "weighted_max")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(4, v * WIDTH), 1, make(9), 2, make(7, v * WIDTH), 1, v % 6


@case("weighted_sum_times", "weighted_max_times", "weighted_sum_dot")
def _(make: Make, v: int) -> tuple[Any, ...]:
    rows = make(7, v * WIDTH)
    return make(v * WIDTH + 5), 3, make(20), 1, 3, rows, 1, v % 6, make(2, v * WIDTH), 1


@case("add_outer")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(7, v * WIDTH), 2, v % 5, make(20), 1, 3, make(2, v * WIDTH), 1


@case("shifted_dots")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(SHIFTS_AT_ONCE), make(5, v * WIDTH), make(12, v * WIDTH), 3, v % 6


@case("multiply_panels", "max_multiply_panels")
def _(make: Make, v: int) -> tuple[Any, ...]:
    height, n = ROWS_AT_ONCE + 2, 1 + v % 7
    return make(height, (v + 1) * WIDTH), 1, make(height, 8), 2, panels(make(n, v * WIDTH)), n


@case("multiply_table", "add_row_times_table", "max_row_times_table")
def _(make: Make, v: int) -> tuple[Any, ...]:
    out, left = make(ROWS_AT_ONCE + 2, v * WIDTH), make(ROWS_AT_ONCE + 2, 8)
    return out, 1, left, 2, make(3, table_pitch(7, v * WIDTH)), 1, v % 8


@case("multiply_columns", "max_multiply_columns")
def _(make: Make, v: int) -> tuple[Any, ...]:
    rows = 2 * COLUMNS_AT_ONCE
    return make(3, table_pitch(rows, v * WIDTH)), 1, make(5, 16), make(5, v * WIDTH), v % 6, rows


@case("add_columns_product")
def _(make: Make, v: int) -> tuple[Any, ...]:
    return make(3 * COLUMNS_AT_ONCE, v * WIDTH), make(9, 16), make(9, v * WIDTH), 2, v % 7


@case("forward_rows", "max_forward_rows")
def _(make: Make, v: int) -> tuple[Any, ...]:
    n, wide = 2 * ROWS_AT_ONCE + 3, v * WIDTH
    rows = np.arange(n + 1)[::-1] % 5
    before, right, table = make(n, wide), make(wide - 3, wide), make(5, wide)
    return make(n + 1, wide), 1, n - 1, before, 0, right, table, rows, make(n), 1, make(n + 1)


@case("backward_rows")
def _(make: Make, v: int) -> tuple[Any, ...]:
    n, wide = 2 * ROWS_AT_ONCE + 3, v * WIDTH
    rows, into = np.arange(n + 1)[::-1] % 5, np.arange(n + 1) % 7
    left, right, alpha, table = make(n, wide), make(wide, wide), make(n, wide), make(5, wide)
    out, factors, posteriors = make(n + 1, wide), make(n + 1), make(7, wide).astype(np.float64)
    return out, 1, n - 1, left, 1, right, alpha, table, rows, factors, posteriors, into


@case("cumulate_products")
def _(make: Make, v: int) -> tuple[Any, ...]:
    counts = (np.arange(3 * v * WIDTH, dtype=np.int32) % 5).reshape(3, -1)
    return np.zeros(v * WIDTH), np.zeros(WIDTH + 1), counts, 1, 0.25, np.abs(make(v * WIDTH))


@case("cumulate_listed")
def _(make: Make, v: int) -> tuple[Any, ...]:
    listed, counts = np.arange(2 * 8 * (v + 1), dtype=np.int32).reshape(2, -1) % 7
    sums = np.zeros(v * WIDTH)
    return sums, np.zeros(WIDTH + 1), listed, counts, 8, v, np.abs(make(7))


@case("find_cumulated")
def _(make: Make, v: int) -> tuple[Any, ...]:
    sums, ends = np.zeros(v * WIDTH), np.zeros(WIDTH + 1)
    counts, factors = np.ones((1, v * WIDTH), np.int32), np.abs(make(v * WIDTH))
    total = compiled("cumulate_products")[1](sums, ends, counts, 0, 0.0, factors)
    return sums, ends, v, float(abs(make(1)[0])) % 1.0 * total


IN_DOUBLES = {
    "row_max",  # circuits of stories, lists of states, and draws of topics are in doubles
    "row_min",
    "add_listed_rows",
    "add_listed_dots",
    "weighted_sum_times",
    "weighted_max_times",
    "weighted_sum_dot",
    "add_outer",
    "cumulate_products",
    "cumulate_listed",
    "find_cumulated",
}


def test_every_function_has_a_case() -> None:
    assert set(CASES) | {"fma"} == set(TWINS)


def makers(dtype: type, seed: int) -> dict[str, Make]:
    rng = np.random.default_rng(seed)
    powers = 100.0 if dtype is np.float64 else 12.0

    def extreme(*shape: int) -> Array:
        """Of all sizes, with zeros and the smallest numbers there are."""
        found = (10.0 ** rng.uniform(-powers, powers, shape)).astype(dtype)
        found[rng.random(shape) < 0.1] = 0.0
        found[rng.random(shape) < 0.1] = np.finfo(dtype).smallest_subnormal
        return found

    return {
        "random": lambda *shape: rng.random(shape).astype(dtype),
        "signed": lambda *shape: rng.normal(size=shape).astype(dtype),
        "extreme": extreme,
    }


def bits(value: Any) -> Any:
    """Equal if and only if all bits are; one kind of NaN."""
    found = np.asarray(value)
    if found.dtype.kind != "f":
        return found
    return np.where(np.isnan(found), np.nan, found).astype(found.dtype).view(f"u{found.itemsize}")


@pytest.mark.parametrize("numbers", ["random", "signed", "extreme"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in CASES
        for dtype in (np.float64, np.float32)
        if dtype is np.float64 or name not in IN_DOUBLES
    ],
)
def test_twins_agree_to_the_bit(name: str, dtype: type, numbers: str) -> None:
    function, plain = compiled(name)
    for vectors in (1, 2, 3, 4, 5, 6, 9, 13):
        make = makers(dtype, vectors)[numbers]
        args = CASES[name](make, vectors)
        ours = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        theirs = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        found, wanted = function(*ours), plain(*theirs)
        if found is not None:
            np.testing.assert_array_equal(bits(found), bits(wanted))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(bits(one), bits(other))


@given(*[st.floats(-1e100, 1e100)] * 3)
def test_fma_is_rounded_once(left: float, right: float, more: float) -> None:
    exact = float(Fraction(left) * Fraction(right) + Fraction(more))
    assert call("fma", left, right, more) == exact


@given(*[st.floats(-1e10, 1e10, width=32)] * 3)
def test_fma_of_floats(left: float, right: float, more: float) -> None:
    args = [np.float32(value) for value in (left, right, more)]
    twice = compiled("fma")[1](*args)
    size = np.finfo(np.float32).eps * (abs(left * right) + abs(more)) + 1e-37
    assert abs(float(call("fma", *args)) - float(twice)) <= size


@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 5, 8, 9])
def test_listed_rows(vectors: int) -> None:
    rng = np.random.default_rng(vectors)
    lanes = vectors * WIDTH
    matrix, other = rng.random((6, lanes)), rng.random((6, lanes))
    operand = np.array([4, 2, 2, 0, 5], np.uint32)
    weight = rng.random(5)
    expected = matrix[3] + weight[1:4] @ matrix[operand[1:4]]
    before = matrix.copy()
    call("add_listed_rows", matrix, 3, matrix, operand, weight, 1, 4)
    np.testing.assert_allclose(matrix[3], expected)
    np.testing.assert_array_equal(np.delete(matrix, 3, 0), np.delete(before, 3, 0))
    into = np.ones(5)
    call("add_listed_dots", into, matrix, 1, other, operand, weight, 0, 4)
    np.testing.assert_allclose(into[:4], 1 + weight[:4] * (other[operand[:4]] @ matrix[1]))
    assert into[4] == 1.0
    assert call("row_max", matrix, 2) == matrix[2].max()
    assert call("row_min", matrix, 2) == matrix[2].min()


def test_sums_have_one_order() -> None:
    """Numbers so unequal that any other order of addition would give other bits."""
    lanes = 4 * WIDTH
    above = np.zeros((1, lanes))
    above[0] = 1.0
    rng = np.random.default_rng(0)
    below = 10.0 ** rng.uniform(-12, 12, (1, lanes))
    into = np.zeros(1)
    call("add_listed_dots", into, above, 0, below, np.zeros(1, np.uint32), np.ones(1), 0, 1)
    a, b, c, d = below.reshape(4, WIDTH)
    eight = (a + b) + (c + d)
    four = eight[:4] + eight[4:]
    two = four[:2] + four[2:]
    assert into[0] == two[0] + two[1]


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_weighted_sum_is_a_product(vectors: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(n + 2, 8 * vectors)), rng.normal(size=n + 3)
    into = rng.normal(size=(3, 8 * vectors))
    expected = into.copy()
    expected[1] = weights[2 : 2 + n] @ rows[1 : 1 + n]
    call("weighted_sum", into, 1, weights, 2, rows, 1, n)
    np.testing.assert_allclose(into, expected, atol=1e-13)


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_weighted_max_is_the_largest_product(vectors: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = rng.uniform(size=(n + 2, 8 * vectors)), rng.uniform(size=n + 3)
    into = rng.uniform(size=(3, 8 * vectors))
    expected = into.copy()
    products = weights[2 : 2 + n, None] * rows[1 : 1 + n]
    expected[1] = products.max(axis=0, initial=0.0)
    call("weighted_max", into, 1, weights, 2, rows, 1, n)
    np.testing.assert_array_equal(into, expected)


@given(st.integers(1, 5), st.integers(0, 6), st.integers(0, 7), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_shifted_dots_are_products(vectors: int, shift: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(2, n + shift + SHIFTS_AT_ONCE, 8 * vectors))
    into = np.full(SHIFTS_AT_ONCE, np.nan)
    call("shifted_dots", into, left, right, shift, n)
    expected = [np.sum(left[:n] * right[shift + q : shift + q + n]) for q in range(SHIFTS_AT_ONCE)]
    np.testing.assert_allclose(into, expected, atol=1e-12)


@pytest.mark.parametrize("wide", [8, 16, 48, 56, 104])
@pytest.mark.parametrize(("n", "step"), [(1, 1), (5, 1), (7, 3)])
def test_weighted_rows_with_strides(wide: int, n: int, step: int) -> None:
    rng = np.random.default_rng(wide)
    table, weights, other = rng.random((12, wide)), rng.random(30), rng.random((2, wide))
    rows = weights[1 : 1 + n * step : step, None] * table[2 : 2 + n]
    wanted = {
        "weighted_sum_times": rows.sum(axis=0) * other[1],
        "weighted_max_times": rows.max(axis=0) * other[1],
        "weighted_sum_dot": rows.sum(axis=0),
    }
    for name, row in wanted.items():
        out = np.full(wide + 5, -1.0)
        total = call(name, out, 3, weights, 1, step, table, 2, n, other, 1)
        np.testing.assert_allclose(out[3 : 3 + wide], row, rtol=1e-14)
        assert (out[:3] == -1.0).all()
        assert (out[3 + wide :] == -1.0).all()
        assert total == pytest.approx((row * other[1] if name.endswith("dot") else row).sum())
    more = table.copy()
    call("add_outer", more, 2, n, weights, 1, step, other, 1)
    table[2 : 2 + n] += weights[1 : 1 + n * step : step, None] * other[1]
    np.testing.assert_allclose(more, table, rtol=1e-14)


def drawn(dtype: type, *shape: int) -> Array:
    return np.random.default_rng(0).random(shape).astype(dtype)


def near(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if found.dtype == np.float32 else 1e-12)


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_rows_times_panels(dtype: type, wide: int) -> None:
    left, right = drawn(dtype, ROWS_AT_ONCE, 8), drawn(dtype, 5, wide)
    out = np.full((ROWS_AT_ONCE, wide + 8), 7, dtype)
    call("multiply_panels", out, 0, left, 0, panels(right), 5)
    near(out[:, :wide], left[:, :5] @ right)
    assert (out[:, wide:] == 7).all()
    call("max_multiply_panels", out, 0, left, 0, panels(right), 5)
    near(out[:, :wide], (left[:, :5, None] * right).max(axis=1))


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_products_of_columns_in_a_table(dtype: type, wide: int) -> None:
    left, right, rows = drawn(dtype, 4, 16), drawn(dtype, 4, wide), 2 * COLUMNS_AT_ONCE
    out = np.full((3, table_pitch(rows, wide)), 7, dtype)
    call("multiply_columns", out, 1, left, right, 3, rows)
    near(out[1, :-8].reshape(rows, wide), left[:3, :rows].T @ right[:3])
    assert (out[[0, 2]] == 7).all()
    assert (out[1, -8:] == 7).all()
    call("max_multiply_columns", out, 1, left, right, 3, rows)
    pairs = left[:3, :rows, None] * right[:3, None]
    near(out[1, :-8].reshape(rows, wide), pairs.max(axis=0))
    call("multiply_columns", out, 1, left, right, 0, rows)
    assert (out[1, :-8] == 0).all()


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_products_of_columns_are_added(dtype: type, wide: int) -> None:
    left, right, before = drawn(dtype, 6, 16), drawn(dtype, 6, wide), drawn(dtype, 8, wide)
    out = before.copy()
    call("add_columns_product", out, left, right, 2, 3)
    near(out, before + left[2:5, :8].T @ right[2:5])


@both_kinds
@pytest.mark.parametrize("wide", WIDES)
def test_rows_times_a_table(dtype: type, wide: int) -> None:
    left, tables = drawn(dtype, ROWS_AT_ONCE, 8), drawn(dtype, 3, table_pitch(5, wide))
    table = tables[2, : 5 * wide].reshape(5, wide)
    out = np.zeros((ROWS_AT_ONCE, wide), dtype)
    call("multiply_table", out, 0, left, 0, tables, 2, 5)
    near(out, left[:, :5] @ table)
    before = out.copy()
    call("add_row_times_table", out, 1, left, 2, tables, 2, 4)
    near(out[1], before[1] + left[2, :4] @ table[:4])
    others = [0, *range(2, ROWS_AT_ONCE)]
    assert (out[others] == before[others]).all()
    out[1, ::2] = 0
    before = out.copy()
    call("max_row_times_table", out, 1, left, 2, tables, 2, 4)
    near(out[1], np.maximum(before[1], (left[2, :4, None] * table[:4]).max(axis=0)))


def test_draws_find_their_weight() -> None:
    """Numbers below the total are dealt out in proportion to the weights."""
    rng = np.random.default_rng(3)
    counts, factors = rng.integers(0, 5, (1, 24)).astype(np.int32), rng.random(24)
    sums, ends = np.zeros(24), np.zeros(WIDTH + 1)
    total = call("cumulate_products", sums, ends, counts, 0, 0.5, factors)
    weights = (counts[0] + 0.5) * factors
    assert math.isclose(total, weights.sum())
    order = np.arange(24).reshape(3, WIDTH).T.ravel()  # lane by lane
    middles = np.cumsum(weights[order]) - weights[order] / 2
    found = [call("find_cumulated", sums, ends, 3, float(target)) for target in middles]
    assert found == order.tolist()
