"""Inside and outside: items in shards, and circuits run over them, with scaling.

A shard has a list of entries of its own, those that it touches, and its blocks refer to places in
that list. So an E-step reads and counts what the shard needs and no more. Data of many shapes
(sentence pairs, say) make many circuits with few items each; what such a circuit costs is the call,
not the work, and so small circuits are stacked on top of one another and run by one call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.core.types import Array, EStep, Fill
from softcount.kernels.vectors import WIDTH
from softcount.stories import kernels
from softcount.stories.circuit import Bundle, compile_alone
from softcount.stories.kernels import LEAF, PRODUCT, SCALED, SUM, CircuitRows
from softcount.stories.tables import Support
from softcount.stories.tracing import Hypergraph


def stack_rows(
    circuits: Sequence[CircuitRows], n_leaves: Sequence[int], n_constants: Sequence[int]
) -> CircuitRows:
    """One circuit with the rows, leaves, constants and roots of all, in order."""
    row = _offsets([len(c.kind) for c in circuits])
    alternative = _offsets([len(c.operand) for c in circuits])
    listed = _offsets([len(c.constant) for c in circuits])
    leaf, constant = _offsets(n_leaves), _offsets(n_constants)
    arguments = [
        _shift_arguments(c, *starts)
        for c, *starts in zip(circuits, row, alternative, leaf, strict=False)
    ]
    return CircuitRows(
        np.concatenate([c.kind for c in circuits]),
        np.concatenate([x for x, _ in arguments]),
        np.concatenate([y for _, y in arguments]),
        _concatenate_shifted([c.operand for c in circuits], row).astype(np.uint32),
        np.append(_concatenate_shifted([c.ends[:-1] for c in circuits], listed), listed[-1]),
        _concatenate_shifted([c.constant for c in circuits], constant),
        np.append(
            _concatenate_shifted([c.users[:-1] for c in circuits], alternative), alternative[-1]
        ),
        _concatenate_shifted([c.use for c in circuits], alternative),
        _concatenate_shifted([c.parent for c in circuits], row).astype(np.uint32),
        _concatenate_shifted([c.roots for c in circuits], row),
    )


def _offsets(sizes: Sequence[int]) -> list[int]:
    """Where each begins when they stand one after the other, and where the last one ends."""
    return [0, *np.cumsum(sizes).tolist()]


def _concatenate_shifted(arrays: Sequence[Array], starts: Sequence[int]) -> Array:
    moved = (array + start for array, start in zip(arrays, starts, strict=False))
    return np.concatenate([part.astype(np.int64) for part in moved])


def _shift_arguments(c: CircuitRows, row: int, alternative: int, leaf: int) -> tuple[Array, Array]:
    """What a circuit's rows are made of, where it stands now."""
    x_moves, y_moves = np.zeros(SUM + 1, np.int64), np.zeros(SUM + 1, np.int64)
    x_moves[[LEAF, SCALED, PRODUCT, SUM]] = leaf, leaf, row, alternative
    y_moves[[SCALED, PRODUCT, SUM]] = row, row, alternative
    return c.x + x_moves[c.kind], c.y + y_moves[c.kind]


# Shards: what travels to threads and workers

MAX_LANES = 64
_MAX_CELLS = 1 << 22  # rows times lanes, so that the values of items in lockstep stay near the core
_STACK = 1 << 14  # rows of small circuits that are put together
_MAX_SHARDS = 16
_SHARD_COST = 4e6  # alternatives times lanes that are worth a thread's while …
_ENTRY_COST = 100  # … and as many for each entry, for every shard carries its tables


@dataclass(frozen=True)
class Lanes:
    """Items side by side: ``leaf[leaf, lane]`` are places in the shard's list of entries (padded
    to a multiple of the vector width), ``numbers[root, lane]`` the items' numbers in the data
    (-1: nobody).
    """

    leaf: Array
    numbers: Array

    def alone(self, lane: int, roots: Array) -> Lanes:
        """Some roots of one lane without its neighbours."""
        numbers = np.where(roots, self.numbers[:, lane], -1)
        return Lanes(np.repeat(self.leaf[:, lane : lane + 1], WIDTH, axis=1), numbers[:, None])


@dataclass(frozen=True)
class StoryBlock:
    """All of a shard's items that share a circuit; ``constant`` are places in the shard's list."""

    rows: CircuitRows
    constant: Array
    lanes: tuple[Lanes, ...]


@dataclass(frozen=True)
class TouchedEntries:
    """Which entries of a table a shard touches: the sorted ``places`` in the table, and where the
    shard's own list has them (``local``).

    There they stand outcome by outcome, so that what one observed word could have come from lies
    close together in memory.
    """

    table: str
    places: Array
    local: Array


@dataclass(frozen=True)
class StoryShard:
    """Some of the items: blocks, and table by table the entries that they touch."""

    blocks: tuple[StoryBlock, ...]
    touched: tuple[TouchedEntries, ...]
    items: int
    tokens: int


def cut_by_work(bundles: Sequence[Bundle], support: Support, tokens: Array) -> list[StoryShard]:
    """All items in shards of about equal work; the cut depends on the data alone."""
    pieces = [piece for each in bundles for piece in _lockstep(each)]
    costs = np.array([_cost(piece) for piece in pieces])
    worthwhile = max(_SHARD_COST, _ENTRY_COST * support.size)
    n_shards = int(np.clip(costs.sum() / worthwhile, 1, min(_MAX_SHARDS, len(pieces))))
    middle = np.cumsum(costs) - costs / 2
    shard_of = np.minimum((middle / costs.sum() * n_shards).astype(int), n_shards - 1)
    return [
        _shard([pieces[i] for i in np.flatnonzero(shard_of == s)], support, tokens)
        for s in np.unique(shard_of)
    ]


def shard(bundles: Sequence[Bundle], support: Support, tokens: Array) -> StoryShard:
    """These items as one shard; ``tokens`` has the number of observations of every item."""
    return _shard([piece for each in bundles for piece in _lockstep(each)], support, tokens)


def _shard(pieces: Sequence[Bundle], support: Support, tokens: Array) -> StoryShard:
    used = [part for each in pieces for part in (each.constant, np.unique(each.leaf))]
    entries = np.unique(np.concatenate(used))
    entries = entries[entries < support.size]
    touched, local = _split_by_table(entries, support)
    alike: dict[int, list[Bundle]] = {}
    for piece in pieces:
        alike.setdefault(id(piece.circuit), []).append(piece)
    blocks = _stacks([_block(same, entries, local) for same in alike.values()])
    numbers = np.concatenate([piece.numbers.ravel() for piece in pieces])
    return StoryShard(blocks, touched, len(numbers), int(tokens[numbers].sum()))


def _block(pieces: Sequence[Bundle], entries: Array, local: Array) -> StoryBlock:
    lanes = tuple(
        Lanes(local[np.searchsorted(entries, _pad_lanes(piece.leaf))], piece.numbers)
        for piece in pieces
    )
    constant = local[np.searchsorted(entries, pieces[0].constant)]
    return StoryBlock(pieces[0].circuit.rows, constant, lanes)


def _stacks(blocks: Sequence[StoryBlock]) -> tuple[StoryBlock, ...]:
    """The blocks, with small ones of few items put together."""
    small = [b for b in blocks if _is_small(b)]
    heights = np.cumsum([len(b.rows.kind) for b in small]) // _STACK
    piles = [[small[i] for i in np.flatnonzero(heights == h)] for h in np.unique(heights)]
    large = [b for b in blocks if not _is_small(b)]
    return (*large, *map(_stack, piles))


def _is_small(block: StoryBlock) -> bool:
    few = len(block.lanes) == 1 and block.lanes[0].numbers.shape[1] <= WIDTH
    return few and len(block.rows.kind) <= _STACK // 8


def _stack(blocks: Sequence[StoryBlock]) -> StoryBlock:
    if len(blocks) == 1:
        return blocks[0]
    lanes = [block.lanes[0] for block in blocks]
    rows = stack_rows(
        [block.rows for block in blocks],
        [len(each.leaf) for each in lanes],
        [len(block.constant) for block in blocks],
    )
    width = max(each.numbers.shape[1] for each in lanes)
    numbers = [
        np.pad(each.numbers, ((0, 0), (0, width - each.numbers.shape[1])), constant_values=-1)
        for each in lanes
    ]
    together = Lanes(np.concatenate([each.leaf for each in lanes]), np.concatenate(numbers))
    return StoryBlock(rows, np.concatenate([block.constant for block in blocks]), (together,))


def _split_by_table(entries: Array, support: Support) -> tuple[tuple[TouchedEntries, ...], Array]:
    """The entries by table, and the local place of each (what is in no table: the last)."""
    local = np.arange(len(entries) + 1, dtype=np.int32)
    touched = []
    for name, part, places in support.slices(entries):
        outcomes = support.tables[name].codes[places, -1]
        local[part][np.argsort(outcomes, kind="stable")] = np.arange(part.start, part.stop)
        touched.append(TouchedEntries(name, places, local[part].copy()))
    return tuple(touched), local


def _pad_lanes(leaf: Array) -> Array:
    """Columns repeated up to a multiple of the vector width."""
    n_columns = leaf.shape[1]
    padded: Array = leaf[:, np.minimum(np.arange(_vectors(n_columns) * WIDTH), n_columns - 1)]
    return padded


def _vectors(n_columns: int) -> int:
    return -(-n_columns // WIDTH)


def _cost(piece: Bundle) -> float:
    lanes = _vectors(piece.numbers.shape[1]) * WIDTH
    return float((piece.circuit.n_alternatives + piece.circuit.n_rows) * lanes)


def _lockstep(each: Bundle) -> list[Bundle]:
    """A bundle cut into pieces that run in lockstep, as equal as can be."""
    fitting = _MAX_CELLS // max(each.circuit.n_rows, 1) // WIDTH
    n_columns = each.numbers.shape[1]
    vectors = _vectors(n_columns)
    n_pieces = -(-vectors // min(MAX_LANES // WIDTH, max(fitting, 1)))
    cuts = [piece * vectors // n_pieces * WIDTH for piece in range(1, n_pieces)]
    return [each.columns(part) for part in np.split(np.arange(n_columns), cuts)]


# Running circuits

_WEAK = 2.0**-400
"""A lane whose root is smaller than this beside its neighbours is run again by itself."""


NO_LEAVES: Array = np.zeros((0, WIDTH), np.int32)
"""The leaves of a circuit whose events are all constants."""

_KEPT = 1 << 23
"""Numbers in the largest work array that a thread keeps for the next block."""


class ScratchArrays(threading.local):
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


_scratch = ScratchArrays()


class InsideOutside:
    """One pass over a circuit's items with given weights of entries.

    After `inside`, ``value`` and ``weight`` tell how each row came about.
    """

    def __init__(self, rows: CircuitRows, constant_theta: Array, fill: Fill) -> None:
        self.rows, self.fill = rows, fill
        n = len(rows.operand)
        self.mantissa = _scratch.get("mantissa", (n,))
        self.exponent = _scratch.get("exponent", (n,), np.int64)
        self.weight = _scratch.get("weight", (n,))
        self.per_alternative = _scratch.get("per_alternative", (n,))
        self.per_alternative[:] = 0.0
        kernels.weigh(self.rows, constant_theta, self.mantissa, self.exponent)

    def inside(self, leaf: Array, theta: Array) -> tuple[Array, Array]:
        """The roots' values and logs, (roots, lanes)."""
        n, lanes = len(self.rows.kind), max(leaf.shape[1], WIDTH)
        self.leaf, self.theta = leaf, theta
        self.value = _scratch.get("value", (n, lanes))
        self.level = _scratch.get("level", (n,), np.int64)
        self.danger = kernels.inside(
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

    def count(self, wanted: Array, how: EStep, numbers: Array, per_leaf: Array) -> None:
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
        kernels.seed_streams(np.uint64(how.stream), somebody, stream)
        kernels.descend(
            self.rows, self.leaf, self.value, self.weight, draw, stream, uses,
            self.per_alternative, per_leaf,
        )  # fmt: skip

    def _outside(self, wanted: Array, per_alternative: Array, per_leaf: Array) -> Array:
        out = _scratch.get("out", self.value.shape)
        out[:] = 0.0
        roots, real = self.rows.roots, slice(wanted.shape[1])
        value = self.value[roots, real]
        out[roots, real] = np.divide(1.0, value, out=np.zeros_like(value), where=wanted)
        kernels.outside(
            self.rows, self.leaf, self.theta, self.value, self.level, self.weight, out,
            per_alternative, per_leaf,
        )  # fmt: skip
        return out

    def find_spoiled(self, wanted: Array) -> Array:
        """Which of the wanted items have lost something that matters (a mask over lanes)."""
        lanes = np.zeros(self.value.shape[1], np.bool_)
        if self.danger:
            nowhere = np.zeros_like(self.per_alternative), np.zeros_like(self.theta)
            kernels.mark_lost(self.value, self._outside(wanted, *nowhere), lanes)
        return lanes[: wanted.shape[1]]

    def collect(self, n_constants: int) -> Array:
        """The counts of the circuit's constants."""
        counts = np.zeros(n_constants)
        kernels.collect(self.rows, self.per_alternative, counts)
        return counts


def run(
    block: StoryBlock,
    theta: Array,
    how: EStep,
    counts: Array | None,
    attain: Callable[[Array, Array], None],
) -> None:
    """Run a block: tell `attain` the items' numbers and logs, add to `counts` unless it is None."""
    work = InsideOutside(block.rows, theta[block.constant], how.fill)
    waiting = list(reversed(block.lanes))
    while waiting:
        lanes = waiting.pop()
        n_lanes = lanes.numbers.shape[1]
        value, log = (part[:, :n_lanes] for part in work.inside(lanes.leaf, theta))
        here = lanes.numbers >= 0
        weak = here & (value < _WEAK) & (n_lanes > 1)
        if n_lanes > 1:
            weak |= here & work.find_spoiled(here & ~weak)
        strong = here & ~weak
        attain(lanes.numbers[strong], log[strong])
        if counts is not None:
            work.count(strong & (value > 0.0), how, lanes.numbers, counts)
        for lane in np.flatnonzero(weak.any(axis=0)).tolist():
            waiting.append(lanes.alone(lane, weak[:, lane]))
    if counts is not None:
        np.add.at(counts, block.constant, work.collect(len(block.constant)))


def log_weight(graph: Hypergraph, weights: Array) -> float:
    """log Σ over derivations of Π weights of events, for a single graph."""
    circuit = compile_alone(graph)
    if circuit is None:
        return -math.inf
    work = InsideOutside(circuit.rows, weights[circuit.constants], "soft")
    return float(work.inside(NO_LEAVES, weights)[1][0, 0])


def certain_total(block: StoryBlock, marked: Array) -> int | None:
    """How many events of the marked entries the block's items have in *every* derivation.

    ``marked`` is 1 for the places of these entries, 0 for others; None if derivations differ.
    """
    fewest, most = np.zeros((2, len(block.rows.kind)), np.int64)
    leaf = marked[block.lanes[0].leaf[:, 0]]
    kernels.event_range(block.rows, marked[block.constant], leaf, fewest, most)
    roots = block.rows.roots
    if (fewest[roots] != most[roots]).any():
        return None
    items = sum((lanes.numbers >= 0).sum(axis=1) for lanes in block.lanes)
    return int((fewest[roots] * items).sum())
