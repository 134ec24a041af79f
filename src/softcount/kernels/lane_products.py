"""Products of matrices whose last axis holds items in lockstep: see `softcount.kernels.lanes`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
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

Join = Callable[[Any, Any, Any, Any], Any]
"""How a product joins what was there: (builder, factor, factor, before)."""

SIDE = 4
"""So many rows are met at once."""
REGISTERS = 8
"""So many sums go side by side: enough to hide the adder's latency, few enough for registers."""


def _over_rows(into: Any, weights: Any, rows: Any, join: Join, height: int) -> Any:
    """``into[i + r] = join_k weights[w − r + k] · rows[first + k]`` for r < height."""
    signature = types.void(into, types.intp, weights, types.intp, rows, types.intp, types.intp)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = Matrix(context, builder, signature.args[0], args[0])
        source = Matrix(context, builder, signature.args[4], args[4])
        scales = context.make_array(signature.args[2])(context, builder, args[2])
        scale = builder.gep(scales.data, [args[3]])
        there = source.row(args[5])
        nothing = ir.Constant(target.vector, [0.0] * WIDTH)
        apart = 2 if isinstance(target.vector.element, ir.DoubleType) else 1

        def block(begin: Any, count: int) -> None:
            sums = [
                [cgutils.alloca_once(builder, target.vector) for _ in range(count)]
                for _ in range(height)
            ]
            for one in chain(*sums):
                builder.store(nothing, one)
            with cgutils.for_range_slice(builder, const(0), args[6], const(1)) as (k, _):
                row = builder.add(builder.mul(k, source.vectors), begin)
                places = [builder.add(row, const(lane)) for lane in range(count)]
                values = [builder.load(builder.gep(there, [at]), align=4) for at in places]
                for r, own in enumerate(sums):
                    at = builder.sub(k, const(r))
                    factor = splat(builder, builder.load(builder.gep(scale, [at])))
                    for value, one in zip(values, own, strict=True):
                        builder.store(join(builder, factor, value, builder.load(one)), one)
            for r, own in enumerate(sums):
                here = target.row(builder.add(args[1], const(r)))
                for lane, one in enumerate(own):
                    place = builder.gep(here, [builder.add(begin, const(lane))])
                    builder.store(builder.load(one), place, align=4)

        in_blocks(builder, target.vectors, block, REGISTERS // (height * apart))
        return context.get_dummy_value()

    return signature, code


def _largest(builder: Any, factor: Any, value: Any, before: Any) -> Any:
    return larger(builder, builder.fmul(factor, value), before)


@intrinsic
def blend(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """``into[i] = Σ_k weights[w + k] · rows[first + k]`` for k < n, each step rounded once."""
    return _over_rows(into, weights, rows, fused, 1)


@intrinsic
def blend_two(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """`blend` for row i, and for row i + 1 with the weights from w − 1 on."""
    return _over_rows(into, weights, rows, fused, 2)


@intrinsic
def best_of(
    typing: Any, into: Any, i: Any, weights: Any, w: Any, rows: Any, first: Any, n: Any
) -> Any:
    """``into[i] = max_k weights[w + k] · rows[first + k]`` for k < n, and 0."""
    return _over_rows(into, weights, rows, _largest, 1)


@intrinsic
def meet_shifted(typing: Any, left: Any, right: Any, shift: Any, n: Any, into: Any) -> Any:
    """``into[q] = Σ_r left[r] · right[r + shift + q]`` for r < n, q < `SIDE`, over all lanes."""
    signature = types.void(left, right, types.intp, types.intp, into)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = Matrix(context, builder, signature.args[0], args[0])
        other = Matrix(context, builder, signature.args[1], args[1])
        out = context.make_array(signature.args[4])(context, builder, args[4])
        nothing = ir.Constant(one.vector, [0.0] * WIDTH)
        sums = [cgutils.alloca_once(builder, one.vector) for _ in range(SIDE)]
        for one_sum in sums:
            builder.store(nothing, one_sum)
        there = other.row(args[2])
        length = builder.mul(args[3], one.vectors)
        with cgutils.for_range_slice(builder, const(0), length, const(1)) as (v, _):
            x = builder.load(builder.gep(one.base, [v]), align=4)
            for q, one_sum in enumerate(sums):
                place = builder.add(builder.mul(const(q), other.vectors), v)
                y = builder.load(builder.gep(there, [place]), align=4)
                builder.store(fused(builder, x, y, builder.load(one_sum)), one_sum)
        for q, one_sum in enumerate(sums):
            place = builder.gep(out.data, [const(q)])
            builder.store(fold(builder, builder.load(one_sum), added), place)
        return context.get_dummy_value()

    return signature, code
