"""Vector primitives over lanes: rows of a matrix whose last axis holds items in lockstep.

LLVM does not vectorise a sum without leave to reorder it, and that leave (fastmath) makes the
result depend on the machine's vector width. So the order is written down here, eight lanes at a
time, in LLVM's own vectors: the same bits on every machine, at the speed of its widest registers.
The number of columns must be a multiple of `WIDTH`, and the rows contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTH = 8
typed_intrinsic: Callable[[Any], Any] = intrinsic  # typed as what callers see
_UNROLL = 4  # vectors of one row that are summed side by side, to hide the adder's latency

_LINE = 64  # bytes in a cache line

INT32, INT64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


def const(value: int) -> ir.Constant:
    return ir.Constant(INT64, value)


def _lanes_of(builder: Any, shuffled: Any, first: int, count: int) -> Any:
    which = ir.Constant(ir.VectorType(INT32, count), list(range(first, first + count)))
    return builder.shuffle_vector(shuffled, shuffled, which)


def splat(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    kind = ir.VectorType(number.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, const(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(INT32, WIDTH), [0] * WIDTH))


def larger(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


def _smaller(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def added(builder: Any, left: Any, right: Any) -> Any:
    return builder.fadd(left, right)


def fused(builder: Any, left: Any, right: Any, more: Any) -> Any:
    """left · right + more, rounded once: faster, and as exact on every machine."""
    kind = ir.FunctionType(left.type, [left.type] * 3)
    bits = "f64" if isinstance(left.type.element, ir.DoubleType) else "f32"
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{WIDTH}{bits}")
    return builder.call(fma, [left, right, more])


def fold(builder: Any, vector: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """All lanes combined into one number, by halving."""
    width = WIDTH
    while width > 1:
        width //= 2
        low, high = _lanes_of(builder, vector, 0, width), _lanes_of(builder, vector, width, width)
        vector = combine(builder, low, high)
    return builder.extract_element(vector, const(0))


class Matrix:
    """A 2-D array, of doubles or of floats, seen as rows of vectors."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.n_rows, columns = cgutils.unpack_tuple(builder, array.shape, 2)
        self.builder = builder
        self.vector = ir.VectorType(context.get_value_type(kind.dtype), WIDTH)
        self.vectors = builder.udiv(columns, const(WIDTH))
        self.base = builder.bitcast(array.data, self.vector.as_pointer())

    def row(self, index: Any) -> Any:
        return self.builder.gep(self.base, [self.builder.mul(index, self.vectors)])


def in_blocks(
    builder: Any, vectors: Any, block: Callable[[Any, int], None], size: int = _UNROLL
) -> None:
    """Cover a row's vectors by blocks of ``size`` and one block of what is left."""
    whole = builder.mul(builder.udiv(vectors, const(size)), const(size))
    with cgutils.for_range_slice(builder, const(0), whole, const(size)) as (first, _):
        block(first, size)
    left = builder.sub(vectors, whole)
    for count in range(1, size):
        with builder.if_then(builder.icmp_unsigned("==", left, const(count))):
            block(whole, count)


def _extreme(matrix: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    signature = types.float64(matrix, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = Matrix(context, builder, signature.args[0], args[0])
        source = rows.row(args[1])
        best = cgutils.alloca_once_value(builder, builder.load(source, align=8))
        with cgutils.for_range(builder, rows.vectors) as loop:
            value = builder.load(builder.gep(source, [loop.index]), align=8)
            builder.store(combine(builder, value, builder.load(best)), best)
        return fold(builder, builder.load(best), combine)

    return signature, code


@typed_intrinsic
def peak(typing: Any, matrix: Any, row: Any) -> Any:
    """The largest number of a row."""
    return _extreme(matrix, larger)


@typed_intrinsic
def least(typing: Any, matrix: Any, row: Any) -> Any:
    """The smallest number of a row."""
    return _extreme(matrix, _smaller)


@typed_intrinsic
def meet(
    typing: Any,
    outside: Any,
    row: Any,
    inside: Any,
    operand: Any,
    weight: Any,
    start: Any,
    stop: Any,
    into: Any,
) -> Any:
    """``into[a] += weight[a] * (outside[row] · inside[operand[a]])`` for ``start <= a < stop``."""
    span = (types.intp, types.intp)
    signature = types.void(outside, types.intp, inside, operand, weight, *span, into)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out = Matrix(context, builder, signature.args[0], args[0])
        ins = Matrix(context, builder, signature.args[2], args[2])
        operands, weights, totals = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (3, 4, 7)
        )
        above = out.row(args[1])

        def block(first: Any, count: int) -> None:
            held = [
                builder.load(builder.gep(above, [builder.add(first, const(lane))]), align=8)
                for lane in range(count)
            ]
            with cgutils.for_range_slice(builder, args[5], args[6], const(1)) as (a, _):
                child = builder.zext(builder.load(builder.gep(operands.data, [a])), INT64)
                source = builder.gep(ins.row(child), [first])
                products = []
                for lane, value in enumerate(held):
                    below = builder.load(builder.gep(source, [const(lane)]), align=8)
                    products.append(builder.fmul(value, below))
                while len(products) > 1:
                    pairs = zip(products[::2], products[1::2], strict=False)
                    odd = products[-1:] if len(products) % 2 else []
                    products = [builder.fadd(left, right) for left, right in pairs] + odd
                met = fold(builder, products[0], added)
                scale = builder.load(builder.gep(weights.data, [a]))
                place = builder.gep(totals.data, [a])
                old = builder.load(place)
                builder.store(builder.fadd(old, builder.fmul(scale, met)), place)

        in_blocks(builder, out.vectors, block)
        return context.get_dummy_value()

    return signature, code


@typed_intrinsic
def gather(
    typing: Any, matrix: Any, row: Any, operand: Any, weight: Any, start: Any, stop: Any
) -> Any:
    """``matrix[row] += Σ_a weight[a] * matrix[operand[a]]`` for ``start <= a < stop``."""
    signature = types.void(matrix, types.intp, operand, weight, types.intp, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = Matrix(context, builder, signature.args[0], args[0])
        operands = context.make_array(signature.args[2])(context, builder, args[2])
        weights = context.make_array(signature.args[3])(context, builder, args[3])
        target = rows.row(args[1])

        def block(first: Any, count: int) -> None:
            places = [
                builder.gep(target, [builder.add(first, const(lane))]) for lane in range(count)
            ]
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in places]
            for total, place in zip(sums, places, strict=True):
                builder.store(builder.load(place, align=8), total)
            with cgutils.for_range_slice(builder, args[4], args[5], const(1)) as (a, _):
                child = builder.zext(builder.load(builder.gep(operands.data, [a])), INT64)
                scale = splat(builder, builder.load(builder.gep(weights.data, [a])))
                source = builder.gep(rows.row(child), [first])
                for lane, total in enumerate(sums):
                    value = builder.load(builder.gep(source, [const(lane)]), align=8)
                    more = builder.fadd(builder.load(total), builder.fmul(scale, value))
                    builder.store(more, total)
            for total, place in zip(sums, places, strict=True):
                builder.store(builder.load(total), place, align=8)

        in_blocks(builder, rows.vectors, block)
        return context.get_dummy_value()

    return signature, code


@typed_intrinsic
def dot(typing: Any, left: Any, i: Any, right: Any, j: Any) -> Any:
    """``left[i] · right[j]``, rounded once a product and sum."""
    signature = left.dtype(left, types.intp, right, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = Matrix(context, builder, signature.args[0], args[0])
        other = Matrix(context, builder, signature.args[2], args[2])
        here, there = one.row(args[1]), other.row(args[3])
        nothing = ir.Constant(one.vector, [0.0] * WIDTH)
        sums = [cgutils.alloca_once_value(builder, nothing) for _ in range(_UNROLL)]

        def block(first: Any, count: int) -> None:
            for lane in range(count):
                place = builder.add(first, const(lane))
                x = builder.load(builder.gep(here, [place]), align=4)
                y = builder.load(builder.gep(there, [place]), align=4)
                builder.store(fused(builder, x, y, builder.load(sums[lane])), sums[lane])

        in_blocks(builder, one.vectors, block)
        low, high = (builder.fadd(builder.load(sums[k]), builder.load(sums[k + 1])) for k in (0, 2))
        return fold(builder, builder.fadd(low, high), added)

    return signature, code


@typed_intrinsic
def add_scaled(typing: Any, into: Any, i: Any, scale: Any, rows: Any, j: Any) -> Any:
    """``into[i] += scale * rows[j]``, rounded once a product and sum."""
    signature = types.void(into, types.intp, into.dtype, rows, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = Matrix(context, builder, signature.args[0], args[0])
        source = Matrix(context, builder, signature.args[3], args[3])
        here, there = target.row(args[1]), source.row(args[4])
        factor = splat(builder, args[2])

        def block(first: Any, count: int) -> None:
            for lane in range(count):
                index = builder.add(first, const(lane))
                place = builder.gep(here, [index])
                more = builder.load(builder.gep(there, [index]), align=4)
                sums = fused(builder, factor, more, builder.load(place, align=4))
                builder.store(sums, place, align=4)

        in_blocks(builder, target.vectors, block)
        return context.get_dummy_value()

    return signature, code


@typed_intrinsic
def fetch(typing: Any, table: Any, row: Any) -> Any:
    """Have a row of the table brought near, for it will soon be needed."""
    signature = types.void(table, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        columns = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        first = builder.gep(array.data, [builder.mul(args[1], columns)])
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, INT32, INT32, INT32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        hints = [ir.Constant(INT32, value) for value in (1, 3, 1)]  # to be written; keep; data
        line = const(_LINE // (signature.args[0].dtype.bitwidth // 8))
        with cgutils.for_range_slice(builder, const(0), columns, line) as (i, _):
            place = builder.bitcast(builder.gep(first, [i]), pointer)
            builder.call(prefetch, [place, *hints])
        return context.get_dummy_value()

    return signature, code
