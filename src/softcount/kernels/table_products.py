"""Products of rows with tables, and of rows with rows, in registers: see
`softcount.kernels.products`.

A table is kept as one row of a matrix, its own rows one after the other; what is behind it in that
row belongs to nobody (see `pitch`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import WIDTH, Matrix, const, fused, in_blocks, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.products import (
    SIDE,
    TALL,
    Join,
    Rows,
    columns_of,
    largest,
    product,
    summed,
    zeros,
)
from softcount.types import Array

SIZE = types.intp


def pitch(rows: int, wide: int) -> int:
    """The room of a table: one vector more than it needs, for rows that are a power of two apart
    would push each other out of the cache."""
    return rows * wide + WIDTH


def panels(matrix: Array) -> Array:
    """A matrix cut into panels one vector wide, one after the other: `apply` reads them in order.

    >>> panels(np.arange(32.0).reshape(2, 16))[:, 0]
    array([ 0., 16.,  8., 24.])
    """
    cut = matrix.reshape(len(matrix), -1, WIDTH).transpose(1, 0, 2)
    return np.ascontiguousarray(cut).reshape(-1, WIDTH)


def _matrices(context: Any, builder: Any, signature: Any, args: Any, which: tuple[int, ...]) -> Any:
    return [Matrix(context, builder, signature.args[i], args[i]) for i in which]


def _as_table(matrix: Matrix, row: Any, vectors: Any) -> None:
    """See but one row of a matrix, as a table."""
    matrix.base, matrix.vectors = matrix.row(row), vectors


def _applying(join: Join) -> Any:
    def step(typing: Any, out: Any, o: Any, left: Any, i: Any, right: Any, depth: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            target, source, cut = _matrices(context, builder, signature, args, (0, 2, 4))
            here, rows = Rows.from_(target, args[1], TALL), Rows.from_(source, args[3], TALL)

            def block(begin: Any, count: int) -> None:
                columns = [builder.add(begin, const(c)) for c in range(count)]
                starts = [builder.gep(cut.base, [builder.mul(c, args[5])]) for c in columns]

                def at(k: Any) -> list[Any]:
                    return [builder.gep(start, [k]) for start in starts]

                before = [[zeros(cut.vector)] * count] * TALL
                for r, row in enumerate(summed(cut, args[5], at, rows.number, before, join)):
                    for value, column in zip(row, columns, strict=True):
                        here.store(value, r, column)

            size = columns_of(cut.vector, TALL)
            in_blocks(builder, builder.udiv(cut.n_rows, args[5]), block, size)
            return context.get_dummy_value()

        return types.void(out, SIZE, left, SIZE, right, SIZE), code

    return intrinsic(step)


apply = _applying(fused)
"""``out[o + r] = Σ_k left[i + r, k] · right[k]`` for r < `TALL` and k < depth, ``right`` being cut
into `panels`."""
apply_best = _applying(largest)
"""`apply` with the largest product in place of their sum."""


def _cross_all(
    left: Matrix, right: Matrix, n: Any, out: Matrix, rows: Any, join: Join, anew: bool
) -> None:
    """Products of all columns of left with all of right, over n rows, which a block of columns
    brings near once."""
    builder = out.builder
    columns, stride = Rows(builder, [left.base]), builder.mul(left.vectors, const(WIDTH))

    def block(begin: Any, count: int) -> None:
        places = [builder.add(begin, const(c)) for c in range(count)]
        with cgutils.for_range_slice(builder, const(0), rows, const(SIDE)) as (first, _):
            here = Rows.from_(out, first, SIDE)

            def number(r: int, t: Any) -> Any:
                column = builder.add(first, const(r))
                return columns.number(0, builder.add(builder.mul(t, stride), column))

            before = [[zeros(right.vector)] * count] * SIDE
            if not anew:
                before = [[here.load(r, at) for at in places] for r in range(SIDE)]
            for r, row in enumerate(product(right, n, begin, number, before, join)):
                for value, at in zip(row, places, strict=True):
                    here.store(value, r, at)

    in_blocks(builder, out.vectors, block, columns_of(right.vector, SIDE))


def _meeting(join: Join) -> Any:
    def step(typing: Any, out: Any, o: Any, left: Any, right: Any, n: Any, rows: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            target, source, other = _matrices(context, builder, signature, args, (0, 2, 3))
            _as_table(target, args[1], other.vectors)
            _cross_all(source, other, args[4], target, args[5], join, anew=True)
            return context.get_dummy_value()

        return types.void(out, SIZE, left, right, SIZE, SIZE), code

    return intrinsic(step)


meet = _meeting(fused)
"""Table o: ``out[o][b] = Σ_t left[t, b] · right[t]`` for t < n, and so many rows b."""
meet_best = _meeting(largest)
"""`meet` with the largest product in place of their sum."""


@intrinsic
def add_crosses(typing: Any, out: Any, left: Any, right: Any, first: Any, n: Any) -> Any:
    """``out[a] += Σ_t left[t, a] · right[t]`` for n numbers t from ``first`` on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, other = _matrices(context, builder, signature, args, (0, 1, 2))
        source.base, other.base = source.row(args[3]), other.row(args[3])
        _cross_all(source, other, args[4], target, target.n_rows, fused, anew=False)
        return context.get_dummy_value()

    return types.void(out, left, right, SIZE, SIZE), code


def _multiplying(height: int, join: Join, anew: bool) -> Any:
    def step(
        typing: Any, out: Any, o: Any, left: Any, i: Any, right: Any, table: Any, n: Any
    ) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            target, source, other = _matrices(context, builder, signature, args, (0, 2, 4))
            here, rows = Rows.from_(target, args[1], height), Rows.from_(source, args[3], height)
            _as_table(other, args[5], target.vectors)

            def block(begin: Any, count: int) -> None:
                places = [builder.add(begin, const(c)) for c in range(count)]
                before = [[zeros(other.vector)] * count] * height
                if not anew:
                    before = [[here.load(r, at) for at in places] for r in range(height)]
                found = product(other, args[6], begin, rows.number, before, join)
                for r, row in enumerate(found):
                    for value, at in zip(row, places, strict=True):
                        here.store(value, r, at)

            in_blocks(builder, target.vectors, block, columns_of(other.vector, height))
            return context.get_dummy_value()

        return types.void(out, SIZE, left, SIZE, right, SIZE, SIZE), code

    return intrinsic(step)


multiply = _multiplying(TALL, fused, anew=True)
"""``out[o + r] = Σ_k left[i + r, k] · right[table][k]`` for r < `TALL` and k < n."""
add_row = _multiplying(1, fused, anew=False)
"""`multiply` of a single row, added to what is there."""
raise_row = _multiplying(1, largest, anew=False)
"""`add_row` with the largest in place of sums."""


@intrinsic
def copy_row(typing: Any, out: Any, o: Any, left: Any, i: Any, factor: Any) -> Any:
    """``out[o] = factor · left[i]``, as far as ``left`` goes."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = _matrices(context, builder, signature, args, (0, 2))
        here, there = Rows.from_(target, args[1], 1), Rows.from_(source, args[3], 1)
        factors = splat(builder, args[4])
        with cgutils.for_range(builder, source.vectors) as loop:
            here.store(builder.fmul(factors, there.load(0, loop.index)), 0, loop.index)
        return context.get_dummy_value()

    return types.void(out, SIZE, left, SIZE, left.dtype), code
