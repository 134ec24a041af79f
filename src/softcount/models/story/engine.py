"""Running circuits: what the kernels need around them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.kernels import circuit as kernel
from softcount.kernels import derivations
from softcount.kernels.circuit import Rows
from softcount.kernels.lanes import WIDTH
from softcount.models.story.circuit import compile_alone
from softcount.models.story.shards import Block
from softcount.models.story.trail import Trail
from softcount.types import Array, Fill, How

_WEAK = 2.0**-400
"""A lane whose root is smaller than this beside its neighbours is run again by itself."""


NO_LEAVES: Array = np.zeros((0, WIDTH), np.int32)
"""The leaves of a circuit whose events are all constants."""

_KEPT = 1 << 23
"""Numbers in the largest work array that a thread keeps for the next block."""


class _Scratch(threading.local):
    """A thread's own work arrays, kept from block to block: fresh pages cost more than the work."""

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


_scratch = _Scratch()


class Pass:
    """One pass over a circuit's items with given weights of entries.

    After `inside`, ``value`` and ``weight`` tell how each row came about.
    """

    def __init__(self, rows: Rows, constant_theta: Array, fill: Fill) -> None:
        self.rows, self.fill = rows, fill
        n = len(rows.operand)
        self.mantissa = _scratch.get("mantissa", (n,))
        self.exponent = _scratch.get("exponent", (n,), np.int64)
        self.weight = _scratch.get("weight", (n,))
        self.per_alternative = _scratch.get("per_alternative", (n,))
        self.per_alternative[:] = 0.0
        kernel.weigh(self.rows, constant_theta, self.mantissa, self.exponent)

    def inside(self, leaf: Array, theta: Array) -> tuple[Array, Array]:
        """The roots' values and logs, (roots, lanes)."""
        n, lanes = len(self.rows.kind), max(leaf.shape[1], WIDTH)
        self.leaf, self.theta = leaf, theta
        self.value = _scratch.get("value", (n, lanes))
        self.level = _scratch.get("level", (n,), np.int64)
        self.danger = kernel.inside(
            self.rows,
            leaf,
            theta,
            self.mantissa,
            self.exponent,
            self.fill == "hard",
            self.value,
            self.level,
            self.weight,
        )
        roots = self.rows.roots
        value = self.value[roots]
        with np.errstate(divide="ignore"):
            log = np.log(value) + self.level[roots, None] * math.log(2.0)
        return value, np.where(value > 0.0, log, -np.inf)

    def count(self, wanted: Array, how: How, numbers: Array, per_leaf: Array) -> None:
        """Add the counts of the wanted items (a mask over roots and real lanes)."""
        if self.fill == "soft":
            self._outside(wanted, self.per_alternative, per_leaf)
            return
        draw = self.fill == "sample"
        shape = self.value.shape
        uses = _scratch.get("uses", shape, np.int64)
        uses[:] = 0
        uses[self.rows.roots, : wanted.shape[1]] = wanted * (how.samples if draw else 1)
        stream = np.zeros(shape[1], np.uint64)
        somebody = numbers.max(axis=0).astype(np.uint64)  # in every lane, for each its own stream
        derivations.streams(np.uint64(how.stream), somebody, stream)
        derivations.descend(
            self.rows, self.leaf, self.value, self.weight, draw, stream, uses,
            self.per_alternative, per_leaf,
        )  # fmt: skip

    def _outside(self, wanted: Array, per_alternative: Array, per_leaf: Array) -> Array:
        out = _scratch.get("out", self.value.shape)
        out[:] = 0.0
        roots, real = self.rows.roots, slice(wanted.shape[1])
        value = self.value[roots, real]
        out[roots, real] = np.divide(1.0, value, out=np.zeros_like(value), where=wanted)
        kernel.outside(
            self.rows, self.leaf, self.theta, self.value, self.level, self.weight, out,
            per_alternative, per_leaf,
        )  # fmt: skip
        return out

    def spoiled(self, wanted: Array) -> Array:
        """Which of the wanted items have lost something that matters (a mask over lanes)."""
        lanes = np.zeros(self.value.shape[1], np.bool_)
        if self.danger:
            nowhere = np.zeros_like(self.per_alternative), np.zeros_like(self.theta)
            kernel.lost(self.value, self._outside(wanted, *nowhere), lanes)
        return lanes[: wanted.shape[1]]

    def collect(self, n_constants: int) -> Array:
        """The counts of the circuit's constants."""
        counts = np.zeros(n_constants)
        kernel.collect(self.rows, self.per_alternative, counts)
        return counts


def run(
    block: Block,
    theta: Array,
    how: How,
    counts: Array | None,
    attain: Callable[[Array, Array], None],
) -> None:
    """Run a block: tell `attain` the items' numbers and logs, add to `counts` unless it is None."""
    work = Pass(block.rows, theta[block.constant], how.fill)
    waiting = list(reversed(block.lanes))
    while waiting:
        lanes = waiting.pop()
        n_lanes = lanes.numbers.shape[1]
        value, log = (part[:, :n_lanes] for part in work.inside(lanes.leaf, theta))
        here = lanes.numbers >= 0
        weak = here & (value < _WEAK) & (n_lanes > 1)
        if n_lanes > 1:
            weak |= here & work.spoiled(here & ~weak)
        strong = here & ~weak
        attain(lanes.numbers[strong], log[strong])
        if counts is not None:
            work.count(strong & (value > 0.0), how, lanes.numbers, counts)
        for lane in np.flatnonzero(weak.any(axis=0)).tolist():
            waiting.append(lanes.alone(lane, weak[:, lane]))
    if counts is not None:
        np.add.at(counts, block.constant, work.collect(len(block.constant)))


def log_weight(trail: Trail, weights: Array) -> float:
    """log Σ over derivations of Π weights of events, for a single trail."""
    circuit = compile_alone(trail)
    if circuit is None:
        return -math.inf
    work = Pass(circuit.rows, weights[circuit.constants], "soft")
    return float(work.inside(NO_LEAVES, weights)[1][0, 0])


def certain_total(block: Block, marked: Array) -> int | None:
    """How many events of the marked entries the block's items have in *every* derivation.

    ``marked`` is 1 for the places of these entries, 0 for others; None if derivations differ.
    """
    fewest, most = np.zeros((2, len(block.rows.kind)), np.int64)
    leaf = marked[block.lanes[0].leaf[:, 0]]
    kernel.event_range(block.rows, marked[block.constant], leaf, fewest, most)
    roots = block.rows.roots
    if (fewest[roots] != most[roots]).any():
        return None
    items = sum((lanes.numbers >= 0).sum(axis=1) for lanes in block.lanes)
    return int((fewest[roots] * items).sum())
