"""Single derivations of a circuit, best or drawn, from the roots down.

They are read off what `softcount.kernels.circuit.inside` left in ``value`` and ``weight``. Draws
come from streams of their own, one a lane: they depend on a seed and on who is in the lane.
"""

from __future__ import annotations

from typing import Any

from softcount.kernels.circuit import LEAF, PRODUCT, SCALED, SUM, Rows
from softcount.kernels.jit import njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


@njit
def streams(seed: Any, items: Array, stream: Array) -> None:
    """Start a stream for each item: it depends on the seed and the item's number alone."""
    for b in range(len(items)):
        stream[b] = item_stream(seed, items[b])


@njit
def best_term(rows: Rows, r: int, weight: Array, value: Array, b: int) -> Any:
    """The alternative that contributes most to a sum; the first of equals."""
    chosen, largest = rows.x[r], -1.0
    for a in range(rows.x[r], rows.y[r]):
        term = weight[a] * value[rows.operand[a], b]
        if term > largest:
            chosen, largest = a, term
    return chosen


@njit
def drawn_term(rows: Rows, r: int, weight: Array, value: Array, b: int, stream: Array) -> Any:
    """An alternative drawn by its share of a sum."""
    rest = uniform(stream, b) * value[r, b]
    last = rows.x[r]
    for a in range(rows.x[r], rows.y[r]):
        term = weight[a] * value[rows.operand[a], b]
        if term > 0.0:
            last = a
            rest -= term
            if rest < 0.0:
                break
    return last


@njit
def descend(
    rows: Rows,
    leaf: Array,
    value: Array,
    weight: Array,
    draw: bool,
    stream: Array,
    uses: Array,
    per_alternative: Array,
    per_leaf: Array,
) -> None:
    """Count what happens in the best derivation, or in drawn ones, from the roots down.

    ``uses`` comes with the number of derivations wanted in the roots' rows and zeros elsewhere: a
    row that several places of a derivation share is decided anew for every use.
    ``stream`` has one state a lane.
    """
    for r in range(len(rows.kind) - 1, -1, -1):
        kind = rows.kind[r]
        for b in range(value.shape[1]):
            used = uses[r, b]
            if used == 0:
                continue
            if kind == PRODUCT:
                uses[rows.x[r], b] += used
                uses[rows.y[r], b] += used
            elif kind == LEAF:
                per_leaf[leaf[rows.x[r], b]] += used
            elif kind == SCALED:
                per_leaf[leaf[rows.x[r], b]] += used
                uses[rows.y[r], b] += used
            elif kind == SUM and draw:
                for _ in range(used):
                    a = drawn_term(rows, r, weight, value, b, stream)
                    uses[rows.operand[a], b] += 1
                    per_alternative[a] += 1.0
            elif kind == SUM:
                a = best_term(rows, r, weight, value, b)
                uses[rows.operand[a], b] += used
                per_alternative[a] += used
