"""Sums of weighed rows of a matrix, and weighed copies of one row added to it.

Rows are padded with zeros to whole vectors, and the order of all sums is written down: see
`softcount.kernels.lanes`.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import WIDTH, Matrix, added, const, fold, fused, in_blocks, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.products import Join, largest, zeros

BLOCK = 3
"""So many vectors of a row go side by side: enough to hide the adder's latency."""


class _Numbers:
    """Some numbers of a 1-D array: from ``first`` on, each ``step`` further."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any, first: Any) -> None:
        self.builder, self.first = builder, first
        self.data = context.make_array(kind)(context, builder, array).data

    def everywhere(self, j: Any, step: Any) -> Any:
        """Number j in all lanes."""
        builder = self.builder
        place = builder.add(self.first, builder.mul(j, step))
        return splat(builder, builder.load(builder.gep(self.data, [place])))

    def store(self, vector: Any, at: Any) -> None:
        """As vector ``at`` of the numbers."""
        builder = self.builder
        place = builder.add(self.first, builder.mul(at, const(WIDTH)))
        begin = builder.gep(self.data, [place])
        builder.store(vector, builder.bitcast(begin, vector.type.as_pointer()), align=8)


def _joined(join: Join, multiplied: bool, *kinds: Any) -> Any:
    """The rows joined go to ``out``, times ``other`` or not; what they are times it, added up."""
    size = types.intp
    out, weights, table, other = kinds
    given = (out, size, weights, size, size, table, size, size, other, size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args
        right, factors = (Matrix(context, builder, kind[i], args[i]) for i in (5, 8))
        target, numbers = (
            _Numbers(context, builder, kind[i], args[i], args[i + 1]) for i in (0, 2)
        )
        begin, beside = right.row(args[6]), factors.row(args[9])
        nothing = zeros(right.vector)
        found = cgutils.alloca_once_value(builder, nothing)

        def block(at: Any, count: int) -> None:
            places = [builder.add(at, const(c)) for c in range(count)]
            sums = [cgutils.alloca_once(builder, right.vector) for _ in places]
            for total in sums:
                builder.store(nothing, total)
            with cgutils.for_range(builder, args[7]) as loop:
                row = builder.gep(begin, [builder.mul(loop.index, right.vectors)])
                weight = numbers.everywhere(loop.index, args[4])
                for place, total in zip(places, sums, strict=True):
                    value = builder.load(builder.gep(row, [place]), align=8)
                    builder.store(join(builder, weight, value, builder.load(total)), total)
            for place, total in zip(places, sums, strict=True):
                value = builder.load(total)
                factor = builder.load(builder.gep(beside, [place]), align=8)
                product = builder.fmul(value, factor)
                target.store(product if multiplied else value, place)
                builder.store(builder.fadd(builder.load(found), product), found)

        in_blocks(builder, right.vectors, block, BLOCK)
        return fold(builder, builder.load(found), added)

    return types.float64(*given), code


def _joining(join: Join, multiplied: bool) -> Any:
    def step(
        typing: Any,
        out: Any,
        o: Any,
        weights: Any,
        w: Any,
        step: Any,
        table: Any,
        r: Any,
        n: Any,
        other: Any,
        q: Any,
    ) -> Any:
        return _joined(join, multiplied, out, weights, table, other)

    return intrinsic(step)


sum_to = _joining(fused, multiplied=True)
"""``other[q] ∘ Σ_j weights[w + j step] · table[r + j]``, j < n, to ``out`` from o on; gives what it
adds up to. As many numbers are written as a row has, its padding included."""
largest_to = _joining(largest, multiplied=True)
"""`sum_to` with the largest product in place of their sum."""
sum_beside = _joining(fused, multiplied=False)
"""`sum_to`, but ``out`` gets the sum before it is multiplied by ``other[q]``."""


@intrinsic
def add_weighed(
    typing: Any, table: Any, r: Any, n: Any, weights: Any, w: Any, step: Any, row: Any, q: Any
) -> Any:
    """``table[r + j] += weights[w + j step] · row[q]`` for j < n."""
    size = types.intp
    signature = types.void(table, size, size, weights, size, size, row, size)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (Matrix(context, builder, signature.args[i], args[i]) for i in (0, 6))
        numbers = _Numbers(context, builder, signature.args[3], args[3], args[4])
        begin, given = target.row(args[1]), source.row(args[7])

        def block(at: Any, count: int) -> None:
            places = [builder.add(at, const(c)) for c in range(count)]
            values = [builder.load(builder.gep(given, [place]), align=8) for place in places]
            with cgutils.for_range(builder, args[2]) as loop:
                own = builder.gep(begin, [builder.mul(loop.index, target.vectors)])
                weight = numbers.everywhere(loop.index, args[5])
                for place, value in zip(places, values, strict=True):
                    here = builder.gep(own, [place])
                    total = fused(builder, weight, value, builder.load(here, align=8))
                    builder.store(total, here, align=8)

        in_blocks(builder, target.vectors, block, BLOCK)
        return context.get_dummy_value()

    return signature, code
