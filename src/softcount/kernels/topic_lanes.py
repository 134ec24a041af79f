"""Sums over topics, eight lanes at a time, kept so that a draw finds its topic quickly.

Weights p_0 … p_{n−1} lie in rows of `WIDTH` lanes. ``sums`` takes the running sums of every lane;
``ends`` takes 0 and then, lane by lane, what all lanes up to it add up to. A number below the total
belongs to one lane, and in that lane to one row: the order is lane by lane, and always the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import INT32, INT64, WIDTH, const, splat, typed_intrinsic

_DOUBLES, _INTS = (ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), INT32))
_ZEROS = ir.Constant(_DOUBLES, [0.0] * WIDTH)


def _indices(values: list[int]) -> ir.Constant:
    return ir.Constant(_INTS, values)


def _arrays(context: Any, builder: Any, signature: Any, args: Any, which: list[int]) -> list[Any]:
    return [context.make_array(signature.args[i])(context, builder, args[i]) for i in which]


def _run(builder: Any, sums: Any, ends: Any, rows: Any, weights: Callable[[Any], Any]) -> Any:
    """Fill ``sums`` and ``ends`` with the weights of each row; the total of all."""
    target = builder.bitcast(sums.data, _DOUBLES.as_pointer())
    running = cgutils.alloca_once_value(builder, _ZEROS)
    with cgutils.for_range(builder, rows) as loop:
        so_far = builder.fadd(builder.load(running), weights(loop.index))
        builder.store(so_far, running)
        builder.store(so_far, builder.gep(target, [loop.index]), align=8)
    lanes = builder.load(running)
    for step in (1, 2, 4):  # prefix sums by doubling
        moved = _indices([i - step if i >= step else WIDTH for i in range(WIDTH)])
        lanes = builder.fadd(lanes, builder.shuffle_vector(lanes, _ZEROS, moved))
    after_zero = builder.gep(ends.data, [const(1)])
    builder.store(lanes, builder.bitcast(after_zero, _DOUBLES.as_pointer()), align=8)
    return builder.extract_element(lanes, const(WIDTH - 1))


@typed_intrinsic
def products(
    typing: Any, table: Any, row: Any, beta: Any, factor: Any, sums: Any, ends: Any
) -> Any:
    """The total of ``(table[row, k] + beta) * factor[k]`` over k; fills ``sums`` and ``ends``."""
    signature = types.float64(table, types.intp, types.float64, factor, sums, ends)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counts, factors, running, borders = _arrays(context, builder, signature, args, [0, 3, 4, 5])
        columns = cgutils.unpack_tuple(builder, counts.shape, 2)[1]
        rows = builder.udiv(columns, const(WIDTH))
        first = builder.gep(counts.data, [builder.mul(args[1], columns)])
        source = builder.bitcast(first, _INTS.as_pointer())
        scales = builder.bitcast(factors.data, _DOUBLES.as_pointer())
        beta = splat(builder, args[2])

        def weights(j: Any) -> Any:
            n = builder.sitofp(builder.load(builder.gep(source, [j]), align=4), _DOUBLES)
            scale = builder.load(builder.gep(scales, [j]), align=8)
            return builder.fmul(builder.fadd(n, beta), scale)

        return _run(builder, running, borders, rows, weights)

    return signature, code


@typed_intrinsic
def gathered(
    typing: Any, which: Any, counts: Any, start: Any, rows: Any, factor: Any, sums: Any, ends: Any
) -> Any:
    """The total of ``counts[i] * factor[which[i]]``, ``rows`` times `WIDTH` of them from start."""
    signature = types.float64(which, counts, types.intp, types.intp, factor, sums, ends)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whose, numbers, factors, running, borders = _arrays(
            context, builder, signature, args, [0, 1, 4, 5, 6]
        )
        places, source = (
            builder.bitcast(builder.gep(array.data, [args[2]]), _INTS.as_pointer())
            for array in (whose, numbers)
        )

        def weights(j: Any) -> Any:
            n = builder.sitofp(builder.load(builder.gep(source, [j]), align=4), _DOUBLES)
            where = builder.load(builder.gep(places, [j]), align=4)
            scale = _ZEROS
            for lane in range(WIDTH):
                place = builder.zext(builder.extract_element(where, const(lane)), INT64)
                value = builder.load(builder.gep(factors.data, [place]))
                scale = builder.insert_element(scale, value, const(lane))
            return builder.fmul(n, scale)

        return _run(builder, running, borders, args[3], weights)

    return signature, code


@typed_intrinsic
def found(typing: Any, sums: Any, ends: Any, rows: Any, target: Any) -> Any:
    """Which weight the number ``target`` belongs to: the first whose cumulative sum is above it.

    Where rounding leaves none the answer may be too large, by less than a row.
    """
    signature = types.intp(sums, ends, types.intp, types.float64)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        running, borders = _arrays(context, builder, signature, args, [0, 1])
        rows, target = args[2], args[3]
        above = builder.bitcast(builder.gep(borders.data, [const(1)]), _DOUBLES.as_pointer())
        passed = builder.fcmp_ordered("<=", builder.load(above, align=8), splat(builder, target))
        count = builder.zext(builder.ctpop(builder.bitcast(passed, ir.IntType(WIDTH))), INT64)
        last = const(WIDTH - 1)
        lane = builder.select(builder.icmp_unsigned("<", count, last), count, last)
        rest = builder.fsub(target, builder.load(builder.gep(borders.data, [lane])))
        row = cgutils.alloca_once_value(builder, const(0))
        with cgutils.for_range(builder, rows) as loop:
            place = builder.add(builder.mul(loop.index, const(WIDTH)), lane)
            value = builder.load(builder.gep(running.data, [place]))
            more = builder.zext(builder.fcmp_ordered("<=", value, rest), INT64)
            builder.store(builder.add(builder.load(row), more), row)
        return builder.add(builder.mul(builder.load(row), const(WIDTH)), lane)

    return signature, code
