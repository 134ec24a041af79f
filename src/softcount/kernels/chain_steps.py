"""Steps of chains in lockstep: products of a few rows with a matrix, and what follows them.

A library multiplies matrices and hands them back; whoever weighs the product reads and writes it
all once more. Here the rows of a product are weighed while they are still in registers
(`softcount.kernels.products`).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from softcount.kernels.lanes import Matrix, added, fold, fused, splat
from softcount.kernels.lanes import typed_intrinsic as intrinsic
from softcount.kernels.products import TALL, Join, Rows, Vector, largest, over_products, zeros


def _advance(height: int, join: Join, out: Any, left: Any, right: Any, *others: Any) -> Any:
    table, rows, factors, sums = others
    size = types.intp
    signature = types.void(out, size, left, size, right, table, rows, factors, size, sums)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, moves, emissions = (
            Matrix(context, builder, signature.args[i], args[i]) for i in (0, 2, 4, 5)
        )
        numbers, scales, totals = (
            Vector(context, builder, signature.args[i], args[i]) for i in (6, 7, 9)
        )
        here = Rows.from_(target, args[1], height)
        emitted = Rows.listed(emissions, numbers, args[1], height)
        scale = [splat(builder, scales.load(args[8], r)) for r in range(height)]
        found = [cgutils.alloca_once(builder, target.vector) for _ in range(height)]
        for total in found:
            builder.store(zeros(target.vector), total)

        def use(r: int, at: Any, value: Any) -> None:
            value = builder.fmul(builder.fmul(value, scale[r]), emitted.load(r, at))
            here.store(value, r, at)
            builder.store(builder.fadd(builder.load(found[r]), value), found[r])

        over_products(Rows.from_(source, args[3], height), moves, height, use, join)
        for r, total in enumerate(found):
            builder.store(fold(builder, builder.load(total), added), totals.place(args[1], r))
        return context.get_dummy_value()

    return signature, code


def _advancing(height: int, join: Join = fused) -> Any:
    def step(
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
        return _advance(height, join, out, left, right, table, rows, factors, sums)

    return intrinsic(step)


advance = _advancing(TALL)
"""``out[o + r] = factors[f + r] · (left[i + r] right) ∘ table[rows[o + r]]`` for r < `TALL`, and
``sums[o + r]``, what each row adds up to."""
advance_one = _advancing(1)
"""`advance` of a single row."""
advance_best = _advancing(TALL, largest)
"""`advance` with the largest product in place of their sum."""
advance_best_one = _advancing(1, largest)
"""`advance_best` of a single row."""


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
            Vector(context, builder, signature.args[i], args[i]) for i in (5, 7, 8)
        )
        reached, here = Rows.from_(forward, args[1], height), Rows.from_(target, args[10], height)
        emitted = Rows.listed(emissions, numbers, args[1], height)
        sums = Rows.listed(counts, places, args[1], height)
        scale = [splat(builder, scales.load(args[10], r)) for r in range(height)]
        nothing = zeros(target.vector)

        def use(r: int, at: Any, beta: Any) -> None:
            alpha = reached.load(r, at)
            value = builder.fmul(builder.fmul(emitted.load(r, at), beta), scale[r])
            possible = builder.fcmp_ordered(">", alpha, nothing)
            here.store(builder.select(possible, value, nothing), r, at)
            share = builder.fmul(alpha, beta)
            if share.type != counts.vector:
                share = builder.fpext(share, counts.vector)
            sums.store(builder.fadd(sums.load(r, at), share), r, at)

        over_products(Rows.from_(source, args[1], height), moves, height, use)
        return context.get_dummy_value()

    return signature, code


def _retreating(height: int) -> Any:
    def step(
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
        return _retreat(height, later, right, alpha, table, rows, shares, into, factors, out)

    return intrinsic(step)


retreat = _retreating(TALL)
"""With β = later[i + r] right, add α ∘ β to ``shares[into[i + r]]``, for r < `TALL`;
``out[o + r] = factors[o + r] · table[rows[i + r]] ∘ β`` where α = alpha[i + r] is not zero:
elsewhere it is never needed, and might be too large a number."""
retreat_one = _retreating(1)
"""`retreat` of a single row."""
