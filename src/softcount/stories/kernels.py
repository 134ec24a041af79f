"""Compiled loops over circuits, for items in lockstep: inside, outside, best derivations, draws.

A circuit is a list of rows in the order in which they can be computed; each holds one value a lane:

    ONE      the constant 1
    LEAF     θ of a table entry that differs between lanes
    SCALED   β(r) = θ β(y), a leaf's θ that is not worth a row of its own
    PRODUCT  β(r) = β(x) β(y)
    SUM      β(r) = Σ_a w_a β(operand_a), one term an alternative, w_a the product of the table
             entries that are the same in all lanes

Values are linear, not logarithms. Row r stands for ``value[r] * 2**level[r]``: the exponent is
shared by the lanes of a row and moved by exact powers of two, so nothing is rounded and nothing
underflows, however long the item. Only a lane that falls far below its neighbours can lose
something; `inside` says when that may have happened, `mark_lost` where it matters, and then the
lane is run again by itself (see `softcount.stories.circuit.run`).

With α the derivative of the root's log with respect to a row's value (the *outside*), the expected
count of an alternative is α(r) w_a β(operand_a). Inside-outside: Baker 1979; as differentiation of
circuits: Darwiche 2003, Eisner 2016.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import add_listed_dots, add_listed_rows, row_max, row_min

ONE, LEAF, SCALED, PRODUCT, SUM = 0, 1, 2, 3, 4
_STEP = 128
_SMALL, _LARGE = 2.0 ** (-_STEP / 2), 2.0 ** (_STEP / 2)
"""Values outside are moved by a multiple of _STEP, so that neighbours mostly keep one exponent."""

ZERO = -(1 << 30)
"""The exponent of what is zero (in every lane)."""

_LOW = 2.0**-900
"""A lane below this may have lost terms, or bits of them."""

_FAINT = 2.0**-174
"""A factor below this can take a lane that is not yet low to zero at once."""

_KEEN = 2.0**600
"""A row with a larger outside matters to its lane even if its value is below _LOW."""

_LIFT = 600
"""Tiny θ are read 2**_LIFT times too large, so that not even the smallest is rounded."""


class CircuitRows(NamedTuple):
    """A circuit's arrays.

    ``x, y``: a leaf's number; a leaf's number and a row; two rows; a sum's range of alternatives.
    ``constant[ends[a]:ends[a + 1]]`` are the entries of alternative a.
    ``users[r]:users[r + 1]`` are the uses of row r as an operand: ``use[u]`` is the alternative,
    ``parent[u]`` the row of its sum.
    """

    kind: IntArray
    x: IntArray
    y: IntArray
    operand: IntArray
    ends: IntArray
    constant: IntArray
    users: IntArray
    use: IntArray
    parent: IntArray
    roots: IntArray


class CircuitValues(NamedTuple):
    """What is computed of a circuit.

    ``mantissa, exponent``: each alternative's product of constants, as ``mantissa * 2**exponent``.
    ``value[row, lane] * 2**level[row]`` is a row's value. ``weight`` is left by `inside` such that
    value[r] = Σ_a weight[a] value[operand_a] in each sum.
    """

    mantissa: FloatArray
    exponent: IntArray
    value: FloatArray
    level: IntArray
    weight: FloatArray


_POWERS = 2.0 ** np.arange(-1100.0, 1.0)  # ldexp is a slow call; 2**-1100 is 0


@njit
def weigh(rows: CircuitRows, theta: FloatArray, mantissa: FloatArray, exponent: IntArray) -> None:
    """Each alternative's weight, as ``mantissa * 2**exponent``."""
    for a in range(len(rows.operand)):
        product, shift = 1.0, 0
        for i in range(rows.ends[a], rows.ends[a + 1]):
            product *= theta[rows.constant[i]]
            if product < _SMALL:
                if product == 0.0:
                    shift = ZERO
                    break
                product, moved = math.frexp(product)
                shift += moved
        mantissa[a] = product
        exponent[a] = shift


@inline
def _align(rows: CircuitRows, r: int, work: CircuitValues) -> Any:
    """Bring a sum's terms to one exponent: returns it, and fills ``weight`` accordingly."""
    x, y, operand = rows.x[r], rows.y[r], rows.operand
    mantissa, exponent, level, weight = work.mantissa, work.exponent, work.level, work.weight
    top, odd = level[operand[x]] + exponent[x], 0
    for a in range(x, y):
        odd |= (level[operand[a]] + exponent[a]) ^ top
    if odd == 0:
        weight[x:y] = mantissa[x:y]
        return top
    for a in range(x, y):
        below = level[operand[a]] + exponent[a]
        if below > top:
            top = below
    for a in range(x, y):
        below = level[operand[a]] + exponent[a]
        weight[a] = mantissa[a] * _POWERS[max(below - top, -1100) + 1100]
    return top


@inline
def _read_leaves(rows: CircuitRows, r: int, leaf: Any, theta: Any, value: Any, lift: float) -> None:
    """value[r] = θ, or θ value[y], times ``lift``."""
    scaled, y = rows.kind[r] == SCALED, rows.y[r]
    for b in range(value.shape[1]):
        number = theta[leaf[rows.x[r], b]] * lift
        value[r, b] = number * value[y, b] if scaled else number


@inline
def _lossy(rows: CircuitRows, r: int, leaf: Any, theta: Any, work: CircuitValues) -> bool:
    """Whether some lane of a row may have lost something."""
    kind, x, y, value = rows.kind[r], rows.x[r], rows.y[r], work.value
    for b in range(value.shape[1]):
        if value[r, b] >= _LOW:
            continue
        if value[r, b] > 0.0:
            return True
        if kind == SCALED and theta[leaf[x, b]] > 0.0 and value[y, b] > 0.0:
            return True
        if kind == PRODUCT and value[x, b] > 0.0 and value[y, b] > 0.0:
            return True
        if kind == SUM:
            for a in range(x, y):
                faint = work.weight[a] < _FAINT and work.mantissa[a] > 0.0
                if faint and value[rows.operand[a], b] > 0.0:
                    return True
    return False


@inline
def _settle(rows: CircuitRows, r: int, largest: float, top: int, work: CircuitValues) -> int:
    """Move a row into the usual range, and its sum's weights with it; returns its exponent."""
    value, weight = work.value, work.weight
    if largest == 0.0:
        return ZERO
    if _SMALL <= largest <= _LARGE:
        return top
    shift = _STEP * round(math.frexp(largest)[1] / _STEP)
    for b in range(value.shape[1]):
        value[r, b] = math.ldexp(value[r, b], -shift)
    if rows.kind[r] == SUM:
        for a in range(rows.x[r], rows.y[r]):
            weight[a] = math.ldexp(weight[a], -shift)
    return top + shift


@njit
def inside(
    rows: CircuitRows, leaf: IntArray, theta: FloatArray, best: bool, work: CircuitValues
) -> bool:
    """Fill ``value`` and ``level`` bottom-up: sums over derivations, or the ``best`` one's term.

    Returns whether some lane may have lost something by falling far below its neighbours.
    """
    value, level, weight = work.value, work.level, work.weight
    lanes, danger = value.shape[1], False
    for r in range(len(rows.kind)):
        kind, top = rows.kind[r], 0
        if kind == ONE:
            value[r, :] = 1.0
        elif kind in (LEAF, SCALED):
            top = level[rows.y[r]] if kind == SCALED else 0
            _read_leaves(rows, r, leaf, theta, value, 1.0)
            if row_max(value, r) < 2.0**-500:
                _read_leaves(rows, r, leaf, theta, value, 2.0**_LIFT)
                top -= _LIFT
        elif kind == PRODUCT:
            i, j = rows.x[r], rows.y[r]
            for b in range(lanes):
                value[r, b] = value[i, b] * value[j, b]
            top = level[i] + level[j]
        else:
            top = _align(rows, r, work)
            value[r, :] = 0.0
            if best:
                for a in range(rows.x[r], rows.y[r]):
                    c, w = rows.operand[a], weight[a]
                    for b in range(lanes):
                        value[r, b] = max(value[r, b], w * value[c, b])
            else:
                add_listed_rows(value, r, value, rows.operand, weight, rows.x[r], rows.y[r])
        largest = row_max(value, r)
        if not danger and row_min(value, r) < _LOW:
            danger = _lossy(rows, r, leaf, theta, work)
        level[r] = _settle(rows, r, largest, top, work)
    return danger


@njit
def outside(
    rows: CircuitRows,
    leaf: IntArray,
    theta: FloatArray,
    work: CircuitValues,
    out: FloatArray,
    per_alternative: FloatArray,
    per_leaf: FloatArray,
) -> None:
    """Add expected counts of alternatives and of leaf entries.

    ``out`` comes with the items' weights over the roots' values in the roots' rows, zero elsewhere.
    """
    value, level, weight = work.value, work.level, work.weight
    lanes = value.shape[1]
    pulled = np.empty(len(weight))
    for u in range(len(weight)):
        pulled[u] = weight[rows.use[u]]
    for r in range(len(rows.kind) - 1, 0, -1):
        if level[r] == ZERO:
            continue
        kind = rows.kind[r]
        add_listed_rows(out, r, out, rows.parent, pulled, rows.users[r], rows.users[r + 1])
        if kind == SUM:
            add_listed_dots(
                per_alternative, out, r, value, rows.operand, weight, rows.x[r], rows.y[r]
            )
        elif kind == PRODUCT:  # its outside goes to each factor, times the other
            i, j = rows.x[r], rows.y[r]
            # 2**shift in two halves: from 1024 on no float holds it, and 0 · inf is NaN
            shift = int(level[i] + level[j] - level[r])
            half, rest = math.ldexp(1.0, shift // 2), math.ldexp(1.0, shift - shift // 2)
            for b in range(lanes):
                out[i, b] += half * out[r, b] * value[j, b] * rest
            for b in range(lanes):
                out[j, b] += half * out[r, b] * value[i, b] * rest
        elif kind == SCALED:  # the same where one factor is a leaf without a row, counted here
            j = rows.y[r]
            shift = int(level[j] - level[r])
            half, rest = math.ldexp(1.0, shift // 2), math.ldexp(1.0, shift - shift // 2)
            for b in range(lanes):
                entry = leaf[rows.x[r], b]
                per_leaf[entry] += out[r, b] * value[r, b]
                out[j, b] += out[r, b] * (theta[entry] * half) * rest
        elif kind == LEAF:
            for b in range(lanes):
                per_leaf[leaf[rows.x[r], b]] += out[r, b] * value[r, b]


@njit
def mark_lost(value: FloatArray, out: FloatArray, spoiled: BoolArray) -> None:
    """Mark the lanes in which something matters that may have been lost.

    What is left of a row below _LOW contributes out * value, next to nothing unless out is huge.
    """
    for r in range(value.shape[0]):
        if row_min(value, r) < _LOW:
            for b in range(value.shape[1]):
                if value[r, b] < _LOW and not out[r, b] <= _KEEN:
                    spoiled[b] = True


@njit
def collect(rows: CircuitRows, per_alternative: FloatArray, counts: FloatArray) -> None:
    """Hand each alternative's count to the entries that it is made of."""
    for a in range(len(rows.operand)):
        if per_alternative[a] != 0.0:
            for i in range(rows.ends[a], rows.ends[a + 1]):
                counts[rows.constant[i]] += per_alternative[a]


@njit
def event_range(
    rows: CircuitRows, of_constant: IntArray, of_leaf: IntArray, fewest: IntArray, most: IntArray
) -> None:
    """How many events of a marked kind a derivation of each row has, at least and at most."""
    for r in range(len(rows.kind)):
        kind, x, y = rows.kind[r], rows.x[r], rows.y[r]
        fewest[r] = most[r] = 0
        if kind == LEAF:
            fewest[r] = most[r] = of_leaf[x]
        elif kind == SCALED:
            fewest[r], most[r] = fewest[y] + of_leaf[x], most[y] + of_leaf[x]
        elif kind == PRODUCT:
            fewest[r], most[r] = fewest[x] + fewest[y], most[x] + most[y]
        elif kind == SUM:
            for a in range(x, y):
                n_constant = 0
                for i in range(rows.ends[a], rows.ends[a + 1]):
                    n_constant += of_constant[rows.constant[i]]
                low, high = n_constant + fewest[rows.operand[a]], n_constant + most[rows.operand[a]]
                fewest[r] = low if a == x else min(fewest[r], low)
                most[r] = max(most[r], high)


# What of a story's derivations can be completed, and in which order its nodes can be computed.


_NEW, _OPEN, _DONE = 0, 1, 2


@njit
def levels(
    node_ends: IntArray, alternative_ends: IntArray, parts: IntArray, n_events: int, roots: IntArray
) -> tuple[IntArray, BoolArray, int]:
    """Each node's height above the leaves, which nodes have a finished derivation, and a culprit.

    The culprit is a node that needs itself, or -1. Nodes that no root needs get height -1.
    Depth first with a stack of our own.
    """
    n_nodes = len(node_ends) - 1
    level = np.full(n_nodes, -1, np.int64)
    alive = np.zeros(n_nodes, np.bool_)
    state = np.zeros(n_nodes, np.uint8)
    stack, at = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    for root in roots:
        if state[root] == _DONE:
            continue
        size = 1
        stack[0], at[0], state[root] = root, alternative_ends[node_ends[root]], _OPEN
        while size > 0:
            node = stack[size - 1]
            stop = alternative_ends[node_ends[node + 1]]
            pushed = False
            while at[size - 1] < stop and not pushed:
                part = parts[at[size - 1]] - n_events
                at[size - 1] += 1
                if part >= 0:
                    if state[part] == _OPEN:
                        return level, alive, part
                    if state[part] == _NEW:
                        stack[size], state[part] = part, _OPEN
                        at[size] = alternative_ends[node_ends[part]]
                        size += 1
                        pushed = True
            if not pushed:  # all that the node needs is known
                height = 0
                for a in range(node_ends[node], node_ends[node + 1]):
                    possible = True
                    for i in range(alternative_ends[a], alternative_ends[a + 1]):
                        part = parts[i] - n_events
                        if part >= 0:
                            height = max(height, level[part])
                            possible = possible and alive[part]
                    alive[node] = alive[node] or possible
                level[node] = height + 1
                state[node] = _DONE
                size -= 1
    return level, alive, -1


@njit
def find_useful(
    node_ends: IntArray,
    alternative_ends: IntArray,
    parts: IntArray,
    n_events: int,
    roots: IntArray,
    level: IntArray,
    alive: BoolArray,
    order: IntArray,
) -> BoolArray:
    """Which alternatives take part in some finished derivation of a root.

    ``order`` lists the nodes by falling height.
    """
    needed = np.zeros(len(node_ends) - 1, np.bool_)
    needed[roots] = True
    keep = np.zeros(len(alternative_ends) - 1, np.bool_)
    for node in order:
        if not (needed[node] and alive[node]):
            continue
        for a in range(node_ends[node], node_ends[node + 1]):
            possible = True
            for i in range(alternative_ends[a], alternative_ends[a + 1]):
                part = parts[i] - n_events
                possible = possible and (part < 0 or alive[part])
            if possible:
                keep[a] = True
                for i in range(alternative_ends[a], alternative_ends[a + 1]):
                    part = parts[i] - n_events
                    if part >= 0:
                        needed[part] = True
    return keep


# Single derivations of a circuit, best or drawn, from the roots down.
#
# They are read off what `inside` left in ``value`` and ``weight``. Each item's draws come from a
# stream of its own: they depend on a seed and on the item, not on who is beside it in a lane, or
# above it in a circuit of many roots.


@njit
def seed_streams(seed: Any, items: IntArray, stream: IntArray) -> None:
    """Start a stream for each item: it depends on the seed and the item's number alone."""
    for b in range(len(items)):
        stream[b] = item_stream(seed, items[b])


@njit
def best_term(rows: CircuitRows, r: int, work: CircuitValues, b: int) -> Any:
    """The alternative that contributes most to a sum; the first of equals."""
    value, weight = work.value, work.weight
    chosen, largest = rows.x[r], -1.0
    for a in range(rows.x[r], rows.y[r]):
        term = weight[a] * value[rows.operand[a], b]
        if term > largest:
            chosen, largest = a, term
    return chosen


@njit
def draw_term(
    rows: CircuitRows, r: int, work: CircuitValues, b: int, stream: IntArray, before: int = 0
) -> Any:
    """An alternative drawn by its share of a sum; ``before``: streams before that of lane 0."""
    value, weight = work.value, work.weight
    rest = uniform(stream, before + b) * value[r, b]
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
    rows: CircuitRows,
    leaf: IntArray,
    work: CircuitValues,
    draw: bool,
    stream: IntArray,
    uses: IntArray,
    per_alternative: FloatArray,
    per_leaf: FloatArray,
) -> None:
    """Count what happens in the best derivation, or in drawn ones, from the roots down.

    ``uses`` comes with the number of derivations wanted in the roots' rows and zeros elsewhere: a
    row that several places of a derivation share is decided anew for every use.
    ``stream`` has a state for each root and lane. Whatever is drawn belongs to one root: items
    share no nodes.
    """
    lanes = len(stream) // len(rows.roots)
    owner = np.zeros(len(rows.kind), np.int64)
    for root in range(len(rows.roots)):
        owner[rows.roots[root]] = root
    for r in range(len(rows.kind) - 1, -1, -1):
        kind = rows.kind[r]
        if kind == PRODUCT:
            owner[rows.x[r]] = owner[rows.y[r]] = owner[r]
        elif kind == SCALED:
            owner[rows.y[r]] = owner[r]
        elif kind == SUM:
            for a in range(rows.x[r], rows.y[r]):
                owner[rows.operand[a]] = owner[r]
        for b in range(lanes):
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
                    a = draw_term(rows, r, work, b, stream, owner[r] * lanes)
                    uses[rows.operand[a], b] += 1
                    per_alternative[a] += 1.0
            elif kind == SUM:
                a = best_term(rows, r, work, b)
                uses[rows.operand[a], b] += used
                per_alternative[a] += used
