"""Circuits: hypergraphs compiled to flat rows, and inside–outside over items that share one.

Two alternatives that multiply the same two factors share one product row. For an HMM this makes the
rows of a position a matrix product; for a grammar it shares a pair of spans between all rules.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softcount.core.errors import StoryError
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, BoolArray, EStep, Fill, FloatArray, IntArray
from softcount.kernels.vectors import WIDTH
from softcount.stories import kernels
from softcount.stories.kernels import LEAF, ONE, PRODUCT, SCALED, SUM, CircuitRows, CircuitValues
from softcount.stories.language import Hypergraph, describe


@dataclass(frozen=True)
class Circuit:
    """The rows of one or more graphs.

    ``rows.constant`` numbers the events that are the same in all lanes: ``constants[i]`` is event
    i's number in the graph. ``leaves[l]`` is the graph's number of leaf l's event.
    ``node_row`` maps the graph's nodes to rows, ``alternatives`` maps alternatives back to the
    graph's, to read off derivations.
    """

    rows: CircuitRows
    constants: IntArray
    leaves: IntArray
    node_row: IntArray
    alternatives: IntArray

    @property
    def n_rows(self) -> int:
        return len(self.rows.kind)


def compile_alone(graph: Hypergraph) -> Circuit | None:
    """Compile a graph for a single item: every event is a constant."""
    return compile_graph(graph, np.zeros(1, np.int64), np.zeros(graph.n_events, bool))


def compile_graph(graph: Hypergraph, roots: IntArray, varies: BoolArray) -> Circuit | None:
    """Compile a graph to a circuit; ``varies[e]`` says whether event e differs between lanes.

    Returns None if some root has no complete derivation.

    Factors of alternatives are numbered: leaves, then nodes, then products in order of creation; −1
    is the constant 1. The ``height`` of a factor is the level from which on it can be computed,
    ``turn`` its order among factors of the same height: leaves first, then sums, then products,
    simple ones first.
    """
    shape = (graph.node_ends, graph.alternative_ends, graph.parts, graph.n_events, roots)
    level, alive, culprit = kernels.levels(*shape)
    if culprit >= 0:
        raise StoryError(
            f"{describe(*graph.calls[culprit])} needs itself: it is a part of its own derivations",
            "every call must make progress: pass a position or a length that changes",
        )
    if not alive[roots].all():
        return None
    by_height = np.argsort(-level, kind="stable")
    kept = np.flatnonzero(kernels.find_useful(*shape, level, alive, by_height))

    # the parts of the alternatives that are kept: constants, leaves, nodes
    node = np.repeat(np.arange(graph.n_nodes), np.diff(graph.node_ends))[kept]
    counts = np.diff(graph.alternative_ends)[kept]
    owner = np.repeat(np.arange(len(kept)), counts)
    first = np.repeat(graph.alternative_ends[kept] - (np.cumsum(counts) - counts), counts)
    parts = graph.parts[np.arange(len(owner)) + first]
    is_event = parts < graph.n_events
    is_leaf = np.zeros(len(parts), bool)
    is_leaf[is_event] = varies[parts[is_event]]
    is_constant = is_event & ~is_leaf
    leaves, leaf = _rank_numbers(parts[is_leaf], graph.n_events)
    constants, constant = _rank_numbers(parts[is_constant], graph.n_events)
    n_constants = np.bincount(owner[is_constant], minlength=len(kept))  # of each alternative
    n_leaves = len(leaves)
    factors = np.where(is_leaf, 0, parts - graph.n_events + n_leaves)
    factors[is_leaf] = leaf

    # what is multiplied, two at a time: each alternative's factors become one operand
    operand, products, height, turn = _share_products(
        factors[~is_constant],
        owner[~is_constant],
        len(kept),
        np.concatenate([np.zeros(n_leaves, np.int64), level]),
        np.concatenate([np.full(n_leaves, -1), np.zeros(graph.n_nodes, np.int64)]),
    )

    # which of them get a row: a leaf that only scales others does not
    used = np.ones(len(height), bool)
    used[: n_leaves + graph.n_nodes] = False
    used[n_leaves + np.unique(node)] = True
    used[operand[operand >= 0]] = True
    used[products[:, 1]] = True  # of two factors the larger number is scaled by a leaf

    # a leaf is read just before it is first used, to keep what is used together together
    height[:n_leaves] = np.iinfo(np.int64).max
    of_leaves = np.flatnonzero(products[:, 1] < n_leaves)
    first_product = len(height) - len(products)
    np.minimum.at(height, products[of_leaves, 1], height[first_product + of_leaves])
    direct = np.flatnonzero((operand >= 0) & (operand < n_leaves))
    np.minimum.at(height, operand[direct], level[node[direct]])
    line = np.lexsort((turn, height))
    line = line[used[line]]
    row = np.full(len(height) + 1, -1, np.int64)
    row[line] = np.arange(1, len(line) + 1)
    row[-1] = 0  # the row of ONE, reached by operand −1
    node_row = row[n_leaves : n_leaves + graph.n_nodes]

    # what each row is, and what it is made of
    n_rows = len(line) + 1
    kind = np.full(n_rows, ONE, np.int8)
    x, y = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    with_row = np.flatnonzero(row[:n_leaves] >= 0)
    kind[row[with_row]], x[row[with_row]] = LEAF, with_row
    product_rows = row[first_product:-1]
    is_scaled = products[:, 0] < n_leaves
    kind[product_rows] = np.where(is_scaled, SCALED, PRODUCT)
    x[product_rows] = np.where(is_scaled, products[:, 0], row[products[:, 0]])
    y[product_rows] = row[products[:, 1]]
    by_row = np.argsort(node_row[node], kind="stable")
    sums, start, count = np.unique(node_row[node[by_row]], return_index=True, return_counts=True)
    kind[sums], x[sums], y[sums] = SUM, start, start + count

    # the alternatives in the order of their sums, with their constants and their operands' users
    starts = np.cumsum(n_constants) - n_constants
    counts = n_constants[by_row]
    shift = np.repeat(starts[by_row] - (np.cumsum(counts) - counts), counts)
    operand = row[operand[by_row]]
    use = np.argsort(operand, kind="stable")
    rows = CircuitRows(
        kind,
        x,
        y,
        operand=operand.astype(np.uint32),
        ends=np.concatenate([[0], np.cumsum(counts)]),
        constant=constant[np.arange(counts.sum()) + shift],
        users=np.searchsorted(operand[use], np.arange(n_rows + 1)),
        use=use,
        parent=node_row[node[by_row]][use].astype(np.uint32),
        roots=node_row[roots],
    )
    return Circuit(rows, constants, leaves, node_row, kept[by_row])


def _rank_numbers(numbers: IntArray, below: int) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers, sorted, and the rank of each (np.unique without sorting)."""
    there = np.zeros(below, bool)
    there[numbers] = True
    rank = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(there), rank[numbers]


def _share_products(
    factors: IntArray, owner: IntArray, n_alternatives: int, height: IntArray, turn: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Fold each alternative's factors into one by products of neighbours, shared if equal.

    ``owner``  the alternative of each factor

    Returns each alternative's operand, the products' pairs of factors, (products, 2), and
    ``height`` and ``turn`` of all factors, with the products appended.
    """
    products = [np.empty((0, 2), np.int64)]
    n_turns = 1
    while True:
        counts = np.bincount(owner, minlength=n_alternatives)
        if counts.max(initial=0) <= 1:
            break
        place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        left = np.flatnonzero((place % 2 == 0) & (place + 1 < counts[owner]))
        a, b = factors[left], factors[left + 1]
        n_factors = len(height)
        pairs, which = np.unique(
            np.minimum(a, b) * n_factors + np.maximum(a, b), return_inverse=True
        )
        low, high = pairs // n_factors, pairs % n_factors
        height = np.concatenate([height, np.maximum(height[low], height[high])])
        turn = np.concatenate([turn, np.full(len(pairs), n_turns)])
        products.append(np.stack([low, high], axis=1))
        factors[left] = n_factors + which
        stays = np.ones(len(factors), bool)
        stays[left + 1] = False
        factors, owner = factors[stays], owner[stays]
        n_turns += 1
    operand = np.full(n_alternatives, -1, np.int64)
    operand[owner] = factors
    return operand, np.concatenate(products), height, turn


def stack_rows(
    circuits: Sequence[CircuitRows], n_leaves: Sequence[int], n_constants: Sequence[int]
) -> CircuitRows:
    """One circuit with the rows, leaves, constants and roots of all, in order."""

    def begin(sizes: Sequence[int]) -> list[int]:
        """Where each begins when they stand one after the other, and where the last one ends."""
        return [0, *np.cumsum(sizes).tolist()]

    def shifted(arrays: Sequence[IntArray], starts: Sequence[int]) -> IntArray:
        moved = (array + start for array, start in zip(arrays, starts, strict=False))
        return np.concatenate([part.astype(np.int64) for part in moved])

    row = begin([len(c.kind) for c in circuits])
    alternative = begin([len(c.operand) for c in circuits])
    listed = begin([len(c.constant) for c in circuits])
    x, y = [], []
    for c, r, a, leaf in zip(circuits, row, alternative, begin(n_leaves), strict=False):
        x_shift, y_shift = np.zeros(SUM + 1, np.int64), np.zeros(SUM + 1, np.int64)
        x_shift[[LEAF, SCALED, PRODUCT, SUM]] = leaf, leaf, r, a
        y_shift[[SCALED, PRODUCT, SUM]] = r, r, a
        x.append(c.x + x_shift[c.kind])
        y.append(c.y + y_shift[c.kind])
    return CircuitRows(
        np.concatenate([c.kind for c in circuits]),
        np.concatenate(x),
        np.concatenate(y),
        operand=shifted([c.operand for c in circuits], row).astype(np.uint32),
        ends=np.append(shifted([c.ends[:-1] for c in circuits], listed), listed[-1]),
        constant=shifted([c.constant for c in circuits], begin(n_constants)),
        users=np.append(shifted([c.users[:-1] for c in circuits], alternative), alternative[-1]),
        use=shifted([c.use for c in circuits], alternative),
        parent=shifted([c.parent for c in circuits], row).astype(np.uint32),
        roots=shifted([c.roots for c in circuits], row),
    )


# Running circuits over items side by side


@dataclass(frozen=True)
class Lanes:
    """Items side by side, one per lane.

    ``leaf[leaf, lane]``     positions in the shard's list of entries (padded to a multiple of the
                             vector width)
    ``numbers[root, lane]``  the items' numbers in the data (-1: no item)
    """

    leaf: IntArray
    numbers: IntArray


@dataclass(frozen=True)
class StoryBlock(PickledWithoutCaches):
    """A shard's items that share a circuit; ``constant``: positions in the shard's list.

    Thousands of lanes are two arrays, so that they are sent and read as fast as memory allows:
    ``leaf`` and ``numbers`` are those of all lanes, one after the other; ``widths`` are the numbers
    of columns in each.
    """

    rows: CircuitRows
    constant: IntArray
    leaf: IntArray
    numbers: IntArray
    widths: IntArray

    @classmethod
    def of(cls, rows: CircuitRows, constant: IntArray, lanes: Sequence[Lanes]) -> StoryBlock:
        leaf = np.concatenate([each.leaf.reshape(-1) for each in lanes])
        numbers = np.concatenate([each.numbers.reshape(-1) for each in lanes])
        return cls(rows, constant, leaf, numbers, np.array([e.numbers.shape[1] for e in lanes]))

    @cached_property
    def lanes(self) -> tuple[Lanes, ...]:
        padded = -(-self.widths // WIDTH) * WIDTH
        n_leaves, n_roots = len(self.leaf) // int(padded.sum()), len(self.rows.roots)
        leaves = np.split(self.leaf, np.cumsum(n_leaves * padded)[:-1])
        numbers = np.split(self.numbers, np.cumsum(n_roots * self.widths)[:-1])
        return tuple(
            Lanes(leaf.reshape(n_leaves, width), each.reshape(n_roots, -1))
            for leaf, width, each in zip(leaves, padded, numbers, strict=True)
        )


_WEAK = 2.0**-400
"""A lane whose root is smaller than this relative to its neighbours is run again alone."""

NO_LEAVES: IntArray = np.zeros((0, WIDTH), np.int32)
"""The leaves of a circuit whose events are all constants."""

_KEPT = 1 << 23
"""Numbers in the largest work array that a thread keeps for the next block."""


class ScratchArrays(threading.local):
    """Per-thread work arrays, reused for every block: allocating them costs more than the work."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        size = math.prod(shape)
        if size > _KEPT:
            return np.empty(shape, dtype)
        array = self.arrays.get(name)
        if array is None or len(array) < size or array.dtype != dtype:
            array = self.arrays[name] = np.empty(size, dtype)
        return array[:size].reshape(shape)


_scratch = ScratchArrays()


class InsideOutside:
    """One inside–outside pass over a circuit's items with given weights of entries.

    After `inside`, ``values`` holds the value of each row and the weights of its terms.
    """

    values: CircuitValues
    danger: bool
    """Whether some lane may have lost precision by being far smaller than its neighbours."""

    def __init__(self, rows: CircuitRows, constant_theta: FloatArray, fill: Fill) -> None:
        self.rows, self.fill = rows, fill
        n = len(rows.operand)
        self.mantissa = _scratch.get("mantissa", (n,))
        self.exponent = _scratch.get("exponent", (n,), np.int64)
        self.weight = _scratch.get("weight", (n,))
        self.per_alternative = _scratch.get("per_alternative", (n,))
        self.per_alternative[:] = 0.0
        kernels.weigh(rows, constant_theta, self.mantissa, self.exponent)

    def inside(self, leaf: IntArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the roots' values and their logs, (roots, lanes)."""
        n, lanes = len(self.rows.kind), max(leaf.shape[1], WIDTH)
        self.leaf, self.theta = leaf, theta
        value, level = _scratch.get("value", (n, lanes)), _scratch.get("level", (n,), np.int64)
        self.values = CircuitValues(self.mantissa, self.exponent, value, level, self.weight)
        self.danger = kernels.inside(self.rows, leaf, theta, self.fill == "hard", self.values)
        roots = self.rows.roots
        root_value = value[roots]
        with np.errstate(divide="ignore"):
            log = np.log(root_value) + level[roots, None] * math.log(2.0)
        return root_value, np.where(root_value > 0.0, log, -np.inf)

    def count(self, wanted: BoolArray, how: EStep, numbers: IntArray, per_leaf: FloatArray) -> None:
        """Add the counts of the wanted items (a mask over roots and real lanes)."""
        if self.fill == "soft":
            self._outside(wanted, self.per_alternative, per_leaf)
            return
        draw = self.fill == "sample"
        shape = self.values.value.shape
        uses = _scratch.get("uses", shape, np.int64)
        uses[:] = 0
        uses[self.rows.roots, : wanted.shape[1]] = wanted * (how.samples if draw else 1)
        stream = np.zeros(numbers.size, np.uint64)
        items = numbers.astype(np.uint64).reshape(-1)
        kernels.seed_streams(np.uint64(how.stream), items, stream)
        per_alternative = self.per_alternative
        kernels.descend(
            self.rows, self.leaf, self.values, draw, stream, uses, per_alternative, per_leaf
        )

    def _outside(
        self, wanted: BoolArray, per_alternative: FloatArray, per_leaf: FloatArray
    ) -> FloatArray:
        """Compute outside values, (rows, lanes); add the expected counts of the wanted items."""
        out = _scratch.get("out", self.values.value.shape)
        out[:] = 0.0
        roots, real = self.rows.roots, slice(wanted.shape[1])
        value = self.values.value[roots, real]
        out[roots, real] = np.divide(1.0, value, out=np.zeros_like(value), where=wanted)
        kernels.outside(
            self.rows, self.leaf, self.theta, self.values, out, per_alternative, per_leaf
        )
        return out

    def find_spoiled(self, wanted: BoolArray) -> BoolArray:
        """Return the lanes of wanted items whose loss of precision matters, as a mask."""
        lanes = np.zeros(self.values.value.shape[1], np.bool_)
        nowhere = np.zeros_like(self.per_alternative), np.zeros_like(self.theta)
        kernels.mark_lost(self.values.value, self._outside(wanted, *nowhere), lanes)
        return lanes[: wanted.shape[1]]

    def collect(self, n_constants: int) -> FloatArray:
        """Return the counts of the circuit's constants."""
        counts = np.zeros(n_constants)
        kernels.collect(self.rows, self.per_alternative, counts)
        return counts


def run(
    blocks: Sequence[StoryBlock], theta: FloatArray, how: EStep, counts: FloatArray | None
) -> tuple[IntArray, FloatArray]:
    """The items' numbers and log-likelihoods; adds to ``counts`` unless it is None."""
    numbers, logs = [], []
    for block in blocks:
        work = InsideOutside(block.rows, theta[block.constant], how.fill)
        waiting = list(reversed(block.lanes))
        while waiting:
            lanes = waiting.pop()
            n_lanes = lanes.numbers.shape[1]
            value, log = (part[:, :n_lanes] for part in work.inside(lanes.leaf, theta))
            here = lanes.numbers >= 0
            weak = here & (value < _WEAK) & (n_lanes > 1)
            if n_lanes > 1 and work.danger:
                weak |= here & work.find_spoiled(here & ~weak)
            strong = here & ~weak
            numbers.append(lanes.numbers[strong])
            logs.append(log[strong])
            if counts is not None:
                work.count(strong & (value > 0.0), how, lanes.numbers, counts)
            for lane in np.flatnonzero(weak.any(axis=0)).tolist():  # without their neighbours
                leaf = np.repeat(lanes.leaf[:, lane : lane + 1], WIDTH, axis=1)
                alone = np.where(weak[:, lane], lanes.numbers[:, lane], -1)
                waiting.append(Lanes(leaf, alone[:, None]))
        if counts is not None:
            np.add.at(counts, block.constant, work.collect(len(block.constant)))
    return np.concatenate(numbers), np.concatenate(logs)


def certain_total(block: StoryBlock, marked: IntArray) -> int | None:
    """Return the number of events of the marked entries, if it is the same in *every* derivation.

    ``marked`` is 1 at the positions of these entries, 0 elsewhere. None if derivations differ.
    """
    fewest, most = np.zeros((2, len(block.rows.kind)), np.int64)
    leaf = marked[block.lanes[0].leaf[:, 0]]
    kernels.event_range(block.rows, marked[block.constant], leaf, fewest, most)
    roots = block.rows.roots
    if (fewest[roots] != most[roots]).any():
        return None
    items = sum((lanes.numbers >= 0).sum(axis=1) for lanes in block.lanes)
    return int((fewest[roots] * items).sum())
