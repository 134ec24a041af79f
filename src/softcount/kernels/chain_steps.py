"""Steps of chains in lockstep: products of a few rows with a matrix, and what follows them.

A library multiplies matrices and hands them back; whoever weighs the product reads and writes it
all once more. Here the rows of a product are weighed while they are still in registers. Matrices
are padded with zeros to whole vectors (`softcount.kernels.lanes`). The order of all sums is written
down, so that the bits are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import (
    WIDTH,
    Matrix,
    added,
    const,
    fold,
    fused,
    in_blocks,
    larger,
    splat,
)
from softcount.kernels.lanes import typed_intrinsic as intrinsic

TALL, SIDE = 6, 4
"""So many rows are stepped at once, and so many rows of counts are added to."""
REGISTERS = 12
"""So many sums go side by side: enough to hide the adder's latency, few enough for registers."""

Number = Callable[[int, Any], Any]
"""The number of row r (known when compiling) and column k."""
Join = Callable[[Any, Any, Any, Any], Any]
"""How a product joins what was there: (builder, factor, factor, before)."""


class _Vector:
    """A 1-D array."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        self.data = context.make_array(kind)(context, builder, value).data

    def place(self, first: Any, r: int) -> Any:
        return self.builder.gep(self.data, [self.builder.add(first, const(r))])

    def load(self, first: Any, r: int) -> Any:
        return self.builder.load(self.place(first, r))


class _Rows:
    """Some rows of a matrix."""

    def __init__(self, builder: Any, starts: list[Any]) -> None:
        self.builder, self.starts = builder, starts

    @classmethod
    def from_(cls, matrix: Matrix, first: Any, height: int) -> _Rows:
        """So many, one after the other."""
        builder = matrix.builder
        numbers = [builder.add(first, const(r)) for r in range(height)]
        return cls(builder, [matrix.row(number) for number in numbers])

    @classmethod
    def listed(cls, matrix: Matrix, numbers: _Vector, first: Any, height: int) -> _Rows:
        """Those that a list names, from a place on."""
        return cls(matrix.builder, [matrix.row(numbers.load(first, r)) for r in range(height)])

    def load(self, r: int, at: Any) -> Any:
        return self.builder.load(self.builder.gep(self.starts[r], [at]), align=4)

    def store(self, value: Any, r: int, at: Any) -> None:
        self.builder.store(value, self.builder.gep(self.starts[r], [at]), align=4)

    def number(self, r: int, k: Any) -> Any:
        """One number of row r."""
        first = self.starts[r]
        single = self.builder.bitcast(first, first.type.pointee.element.as_pointer())
        return self.builder.load(self.builder.gep(single, [k]))


def _nothing(vector: Any) -> ir.Constant:
    return ir.Constant(vector, [0.0] * WIDTH)


def _columns(vector: Any, height: int) -> int:
    """How many vectors of each row go side by side."""
    registers = 2 if isinstance(vector.element, ir.DoubleType) else 1
    return max(1, REGISTERS // (height * registers))


def _largest(builder: Any, factor: Any, value: Any, before: Any) -> Any:
    return larger(builder, builder.fmul(factor, value), before)


def _product(
    right: Matrix, n: Any, begin: Any, number: Number, before: list[list[Any]], join: Join = fused
) -> list[list[Any]]:
    """``before[r] + Σ_k number(r, k) · right[k]`` for k < n, the vectors from ``begin`` on.

    Or whatever joins products to what was before.
    """
    builder = right.builder
    sums = [[cgutils.alloca_once(builder, right.vector) for _ in row] for row in before]
    for row, own in zip(before, sums, strict=True):
        for value, total in zip(row, own, strict=True):
            builder.store(value, total)
    with cgutils.for_range(builder, n) as loop:
        row = builder.gep(right.base, [builder.add(builder.mul(loop.index, right.vectors), begin)])
        places = [builder.gep(row, [const(c)]) for c in range(len(sums[0]))]
        values = [builder.load(place, align=4) for place in places]
        for r, own in enumerate(sums):
            factor = splat(builder, number(r, loop.index))
            for value, total in zip(values, own, strict=True):
                builder.store(join(builder, factor, value, builder.load(total)), total)
    return [[builder.load(total) for total in own] for own in sums]


def _over_products(
    left: _Rows,
    right: Matrix,
    height: int,
    use: Callable[[int, Any, Any], None],
    join: Join = fused,
) -> None:
    """``use(r, at, value)`` for all vectors of the rows of left · right."""
    builder = right.builder

    def block(begin: Any, count: int) -> None:
        before = [[_nothing(right.vector)] * count] * height
        products = _product(right, right.n_rows, begin, left.number, before, join)
        for r, row in enumerate(products):
            for c, value in enumerate(row):
                use(r, builder.add(begin, const(c)), value)

    in_blocks(builder, right.vectors, block, _columns(right.vector, height))


def _advance(height: int, join: Join, out: Any, left: Any, right: Any, *others: Any) -> Any:
    table, rows, factors, sums = others
    size = types.intp
    signature = types.void(out, size, left, size, right, table, rows, factors, size, sums)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, moves, emissions = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 4, 5)
        )
        numbers, scales, totals = (
            _Vector(context, builder, signature.args[i], args[i]) for i in (6, 7, 9)
        )
        here = _Rows.from_(target, args[1], height)
        emitted = _Rows.listed(emissions, numbers, args[1], height)
        scale = [splat(builder, scales.load(args[8], r)) for r in range(height)]
        found = [cgutils.alloca_once(builder, target.vector) for _ in range(height)]
        for total in found:
            builder.store(_nothing(target.vector), total)

        def use(r: int, at: Any, value: Any) -> None:
            value = builder.fmul(builder.fmul(value, scale[r]), emitted.load(r, at))
            here.store(value, r, at)
            builder.store(builder.fadd(builder.load(found[r]), value), found[r])

        _over_products(_Rows.from_(source, args[3], height), moves, height, use, join)
        for r, total in enumerate(found):
            builder.store(fold(builder, builder.load(total), added), totals.place(args[1], r))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def advance(
    typing: Any,
    out: Any,
    o: Any,
    left: Any,
    i: Any,
    right: Any,
    table: Any,
    rows: Any,
    factors: Any,
    f: Any,
    sums: Any,
) -> Any:
    """``out[o + r] = factors[f + r] · (left[i + r] right) ∘ table[rows[o + r]]`` for r < `TALL`.

    ``sums[o + r]`` is what the row adds up to.
    """
    return _advance(TALL, fused, out, left, right, table, rows, factors, sums)


@intrinsic
def advance_one(
    typing: Any,
    out: Any,
    o: Any,
    left: Any,
    i: Any,
    right: Any,
    table: Any,
    rows: Any,
    factors: Any,
    f: Any,
    sums: Any,
) -> Any:
    """`advance` of a single row."""
    return _advance(1, fused, out, left, right, table, rows, factors, sums)


@intrinsic
def advance_best(
    typing: Any,
    out: Any,
    o: Any,
    left: Any,
    i: Any,
    right: Any,
    table: Any,
    rows: Any,
    factors: Any,
    f: Any,
    sums: Any,
) -> Any:
    """`advance` with the largest product in place of their sum."""
    return _advance(TALL, _largest, out, left, right, table, rows, factors, sums)


@intrinsic
def advance_best_one(
    typing: Any,
    out: Any,
    o: Any,
    left: Any,
    i: Any,
    right: Any,
    table: Any,
    rows: Any,
    factors: Any,
    f: Any,
    sums: Any,
) -> Any:
    """`advance_best` of a single row."""
    return _advance(1, _largest, out, left, right, table, rows, factors, sums)


def _retreat(height: int, later: Any, right: Any, alpha: Any, table: Any, *others: Any) -> Any:
    rows, shares, into, factors, out = others
    size = types.intp
    given = (later, size, right, alpha, table, rows, shares, into, factors, out, size)
    signature = types.void(*given)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, moves, forward, emissions, counts, target = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 3, 4, 6, 9)
        )
        numbers, places, scales = (
            _Vector(context, builder, signature.args[i], args[i]) for i in (5, 7, 8)
        )
        reached, here = _Rows.from_(forward, args[1], height), _Rows.from_(target, args[10], height)
        emitted = _Rows.listed(emissions, numbers, args[1], height)
        sums = _Rows.listed(counts, places, args[1], height)
        scale = [splat(builder, scales.load(args[10], r)) for r in range(height)]
        nothing = _nothing(target.vector)

        def use(r: int, at: Any, beta: Any) -> None:
            alpha = reached.load(r, at)
            value = builder.fmul(builder.fmul(emitted.load(r, at), beta), scale[r])
            possible = builder.fcmp_ordered(">", alpha, nothing)
            here.store(builder.select(possible, value, nothing), r, at)
            share = builder.fmul(alpha, beta)
            if share.type != counts.vector:
                share = builder.fpext(share, counts.vector)
            sums.store(builder.fadd(sums.load(r, at), share), r, at)

        _over_products(_Rows.from_(source, args[1], height), moves, height, use)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def retreat(
    typing: Any,
    later: Any,
    i: Any,
    right: Any,
    alpha: Any,
    table: Any,
    rows: Any,
    shares: Any,
    into: Any,
    factors: Any,
    out: Any,
    o: Any,
) -> Any:
    """With β = later[i + r] right, add α ∘ β to ``shares[into[i + r]]``, for r < `TALL`.

    ``out[o + r] = factors[o + r] · table[rows[i + r]] ∘ β`` where α = alpha[i + r] is not zero:
    elsewhere it is never needed, and might be too large a number.
    """
    return _retreat(TALL, later, right, alpha, table, rows, shares, into, factors, out)


@intrinsic
def retreat_one(
    typing: Any,
    later: Any,
    i: Any,
    right: Any,
    alpha: Any,
    table: Any,
    rows: Any,
    shares: Any,
    into: Any,
    factors: Any,
    out: Any,
    o: Any,
) -> Any:
    """`retreat` of a single row."""
    return _retreat(1, later, right, alpha, table, rows, shares, into, factors, out)


@intrinsic
def cross(typing: Any, out: Any, i: Any, left: Any, right: Any, first: Any, n: Any) -> Any:
    """``out[i + r] += Σ_t left[t, i + r] · right[t]`` r < `SIDE`, n numbers t from ``first``."""
    signature = types.void(out, types.intp, left, right, types.intp, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, matrix = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 3)
        )
        here, columns = _Rows.from_(target, args[1], SIDE), _Rows.from_(source, args[4], 1)
        stride = builder.mul(source.vectors, const(WIDTH))
        matrix.base = matrix.row(args[4])

        def number(r: int, t: Any) -> Any:
            column = builder.add(args[1], const(r))
            return columns.number(0, builder.add(builder.mul(t, stride), column))

        def block(begin: Any, count: int) -> None:
            places = [builder.add(begin, const(c)) for c in range(count)]
            before = [[here.load(r, at) for at in places] for r in range(SIDE)]
            for r, row in enumerate(_product(matrix, args[5], begin, number, before)):
                for value, at in zip(row, places, strict=True):
                    here.store(value, r, at)

        in_blocks(builder, target.vectors, block, _columns(target.vector, SIDE))
        return context.get_dummy_value()

    return signature, code
