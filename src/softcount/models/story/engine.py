"""Running circuits: what the kernels need around them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.kernels import circuit as kernel
from softcount.kernels.lanes import WIDTH
from softcount.models.story.bundle import Bundle
from softcount.models.story.circuit import Circuit, compile_trail
from softcount.models.story.trail import Trail
from softcount.types import Array, Fill, How

_WEAK = 2.0**-400
"""A lane whose root is smaller than this beside its neighbours is run again by itself."""


class _Scratch(threading.local):
    """A thread's own work arrays, kept from block to block: fresh pages cost more than the work."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        size = math.prod(shape)
        array = self.arrays.get(name)
        if array is None or len(array) < size or array.dtype != dtype:
            array = self.arrays[name] = np.empty(size, dtype)
        return array[:size].reshape(shape)


_scratch = _Scratch()


class Pass:
    """One pass over a circuit's items with given weights of entries.

    After `inside`, ``value`` and ``weight`` tell how each row came about.
    """

    def __init__(self, circuit: Circuit, constant_theta: Array, fill: Fill) -> None:
        self.circuit, self.rows, self.fill = circuit, circuit.rows, fill
        n = circuit.n_alternatives
        self.mantissa = _scratch.get("mantissa", (n,))
        self.exponent = _scratch.get("exponent", (n,), np.int64)
        self.weight = _scratch.get("weight", (n,))
        self.per_alternative = _scratch.get("per_alternative", (n,))
        self.per_alternative[:] = 0.0
        kernel.weigh(self.rows, constant_theta, self.mantissa, self.exponent)

    def inside(self, leaf: Array, theta: Array) -> tuple[Array, Array]:
        """The roots' values and logs, (roots, lanes)."""
        n, lanes = self.circuit.n_rows, max(leaf.shape[1], WIDTH)
        self.leaf = leaf
        self.value = _scratch.get("value", (n, lanes))
        self.level = _scratch.get("level", (n,), np.int64)
        kernel.inside(
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
        """Add the counts of the wanted items (a mask over roots and lanes)."""
        shape, roots = self.value.shape, self.rows.roots
        if self.fill == "soft":
            out = _scratch.get("out", shape)
            out[:] = 0.0
            out[roots] = np.divide(1.0, self.value[roots], out=np.zeros(wanted.shape), where=wanted)
            kernel.outside(
                self.rows, self.leaf, self.value, self.level, self.weight, out,
                self.per_alternative, per_leaf,
            )  # fmt: skip
            return
        draw = self.fill == "sample"
        uses = _scratch.get("uses", shape, np.int64)
        uses[:] = 0
        uses[roots] = wanted * (how.samples if draw else 1)
        stream = np.zeros(shape[1], np.uint64)
        kernel.streams(np.uint64(how.stream), numbers[0].astype(np.uint64), stream)
        kernel.descend(
            self.rows, self.leaf, self.value, self.weight, draw, stream, uses,
            self.per_alternative, per_leaf,
        )  # fmt: skip

    def collect(self, n_constants: int) -> Array:
        """The counts of the circuit's constants."""
        counts = np.zeros(n_constants)
        kernel.collect(self.rows, self.per_alternative, counts)
        return counts


def run(
    each: Bundle,
    constant: Array,
    leaf: Array,
    theta: Array,
    how: How,
    counts: Array | None,
    attain: Callable[[Array, Array], None],
) -> None:
    """Run a block: tell `attain` the items' numbers and logs, add to `counts` unless it is None.

    ``constant`` and ``leaf`` are places in theta and counts.
    """
    work = Pass(each.circuit, theta[constant], how.fill)
    n_columns = each.numbers.shape[1]
    value, log = work.inside(leaf, theta)
    real = np.zeros(value.shape, bool)
    real[:, :n_columns] = True
    weak = real & (value < _WEAK) if n_columns > 1 else np.zeros_like(real)
    strong = real & ~weak
    attain(each.numbers[strong[:, :n_columns]], log[strong])
    if counts is not None:
        work.count(strong & (value > 0.0), how, each.numbers, counts)
        np.add.at(counts, constant, work.collect(len(constant)))
    for lane in np.flatnonzero(weak.any(axis=0)):
        alone = each.columns(np.array([lane]))
        single = np.repeat(leaf[:, lane : lane + 1], WIDTH, axis=1)
        run(alone, constant, single, theta, how, counts, attain)


def log_weight(trail: Trail, weights: Array) -> float:
    """log Σ over derivations of Π weights of events, for a single trail."""
    circuit = compile_trail(trail, np.zeros(1, np.int64), np.zeros(trail.n_events, bool))
    if circuit is None:
        return -math.inf
    work = Pass(circuit, weights[circuit.constants], "soft")
    no_leaf = np.zeros((0, WIDTH), np.int32)
    return float(work.inside(no_leaf, np.zeros(1))[1][0, 0])
