"""Products of a few rows with a matrix, in registers.

Matrices are padded with zeros to whole vectors (`softcount.kernels.lanes`). The order of all sums
is written down, so that the bits are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import WIDTH, Matrix, const, fused, in_blocks, larger, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic

TALL, SIDE = 6, 4
"""So many rows are stepped at once, and so many rows of counts are added to."""
REGISTERS = 12
"""So many sums go side by side: enough to hide the adder's latency, few enough for registers."""

Number = Callable[[int, Any], Any]
"""The number of row r (known when compiling) and column k."""
At = Callable[[Any], list[Any]]
"""Where the vectors of row k are."""
Join = Callable[[Any, Any, Any, Any], Any]
"""How a product joins what was there: (builder, factor, factor, before)."""


class Vector:
    """A 1-D array."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.builder = builder
        self.data = context.make_array(kind)(context, builder, value).data

    def place(self, first: Any, r: int) -> Any:
        return self.builder.gep(self.data, [self.builder.add(first, const(r))])

    def load(self, first: Any, r: int) -> Any:
        return self.builder.load(self.place(first, r))


class Rows:
    """Some rows of a matrix."""

    def __init__(self, builder: Any, starts: list[Any]) -> None:
        self.builder, self.starts = builder, starts

    @classmethod
    def from_(cls, matrix: Matrix, first: Any, height: int) -> Rows:
        """So many, one after the other."""
        builder = matrix.builder
        numbers = [builder.add(first, const(r)) for r in range(height)]
        return cls(builder, [matrix.row(number) for number in numbers])

    @classmethod
    def listed(cls, matrix: Matrix, numbers: Vector, first: Any, height: int) -> Rows:
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


def zeros(vector: Any) -> ir.Constant:
    return ir.Constant(vector, [0.0] * WIDTH)


def columns_of(vector: Any, height: int) -> int:
    """How many vectors of each row go side by side; many would take long to compile."""
    registers = 2 if isinstance(vector.element, ir.DoubleType) else 1
    return min(max(1, REGISTERS // (height * registers)), SIDE)


def largest(builder: Any, factor: Any, value: Any, before: Any) -> Any:
    return larger(builder, builder.fmul(factor, value), before)


def product(
    right: Matrix, n: Any, begin: Any, number: Number, before: list[list[Any]], join: Join = fused
) -> list[list[Any]]:
    """``before[r] + Σ_k number(r, k) · right[k]`` for k < n, the vectors from ``begin`` on.

    Or whatever joins products to what was before.
    """
    builder = right.builder

    def at(k: Any) -> list[Any]:
        row = builder.gep(right.base, [builder.add(builder.mul(k, right.vectors), begin)])
        return [builder.gep(row, [const(c)]) for c in range(len(before[0]))]

    return summed(right, n, at, number, before, join)


def summed(
    right: Matrix, n: Any, at: At, number: Number, before: list[list[Any]], join: Join
) -> list[list[Any]]:
    """`product`, the vectors of row k being at places ``at(k)``."""
    builder = right.builder
    sums = [[cgutils.alloca_once(builder, right.vector) for _ in row] for row in before]
    for row, own in zip(before, sums, strict=True):
        for value, total in zip(row, own, strict=True):
            builder.store(value, total)
    with cgutils.for_range(builder, n) as loop:
        values = [builder.load(place, align=4) for place in at(loop.index)]
        for r, own in enumerate(sums):
            factor = splat(builder, number(r, loop.index))
            for value, total in zip(values, own, strict=True):
                builder.store(join(builder, factor, value, builder.load(total)), total)
    return [[builder.load(total) for total in own] for own in sums]


def over_products(
    left: Rows,
    right: Matrix,
    height: int,
    use: Callable[[int, Any, Any], None],
    join: Join = fused,
) -> None:
    """``use(r, at, value)`` for all vectors of the rows of left · right."""
    builder = right.builder

    def block(begin: Any, count: int) -> None:
        before = [[zeros(right.vector)] * count] * height
        products = product(right, right.n_rows, begin, left.number, before, join)
        for r, row in enumerate(products):
            for c, value in enumerate(row):
                use(r, builder.add(begin, const(c)), value)

    in_blocks(builder, right.vectors, block, columns_of(right.vector, height))


@intrinsic
def add_cross(
    typing: Any, out: Any, o: Any, left: Any, i: Any, right: Any, first: Any, n: Any
) -> Any:
    """``out[o + r] += Σ_t left[t, i + r] · right[t]`` for r < `SIDE`, n numbers t from ``first``
    on."""
    size = types.intp
    signature = types.void(out, size, left, size, right, size, size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, matrix = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 4)
        )
        here, columns = Rows.from_(target, args[1], SIDE), Rows.from_(source, args[5], 1)
        stride = builder.mul(source.vectors, const(WIDTH))
        matrix.base = matrix.row(args[5])

        def number(r: int, t: Any) -> Any:
            column = builder.add(args[3], const(r))
            return columns.number(0, builder.add(builder.mul(t, stride), column))

        def block(begin: Any, count: int) -> None:
            places = [builder.add(begin, const(c)) for c in range(count)]
            before = [[here.load(r, at) for at in places] for r in range(SIDE)]
            for r, row in enumerate(product(matrix, args[6], begin, number, before)):
                for value, at in zip(row, places, strict=True):
                    here.store(value, r, at)

        in_blocks(builder, matrix.vectors, block, columns_of(matrix.vector, SIDE))
        return context.get_dummy_value()

    return signature, code
