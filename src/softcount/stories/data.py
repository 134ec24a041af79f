"""A story's data: traced, compiled, and cut into shards.

Items of one form share a circuit and run side by side, one per lane. When the story does not
inspect the observed values, the forms are found by tracing once per *shape* of item, with symbols;
otherwise every item is traced, and items whose graphs have the same form are put together. Items
that share their form with few others are merged into forests: circuits with many roots.

A shard has its own list of the entries that it touches, and its blocks refer to positions in that
list, so an E-step reads and counts only what the shard needs. Data of many shapes (sentence pairs,
say) give many circuits with few items each. The cost of such a circuit is the call, not the work,
so small circuits are stacked on top of one another and run by one call.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np

from softcount.core.errors import DataError, ImpossibleItem, StoryError, brief
from softcount.core.types import IntArray
from softcount.kernels.vectors import WIDTH
from softcount.stories.circuit import (
    NO_LEAVES,
    Circuit,
    InsideOutside,
    Lanes,
    StoryBlock,
    compile_alone,
    compile_graph,
    stack_rows,
)
from softcount.stories.language import (
    Hypergraph,
    ItemShape,
    Story,
    StoryTable,
    Symbol,
    TableEntry,
    ValueInspected,
    count_values,
    find_story,
    share_symbols,
    trace_story,
)
from softcount.stories.tables import Support, TableSupport, ValueLexicon

_FOREST = 50_000  # alternatives in a forest
_LONG = 2_000  # items with more values than this are not traced a second time for comparison
_FEW = 4  # with at least this many items of one concrete form, lanes are faster than a forest

_MAX_LANES = 64
_MAX_CELLS = 1 << 22  # most rows × lanes: the values of items in lockstep should stay in the cache
_STACK = 1 << 14  # rows of small circuits that are stacked into one
_SHARD_COST = 4e6  # alternatives × lanes that make a shard worth a thread …
_ENTRY_COST = 100  # … and this many more per table entry, as every shard carries its own counts


# Bundles: items that share one circuit and run in lockstep


@dataclass(frozen=True)
class EventKeys:
    """Keys of some events of one table: part p of event e is a fixed code or a slot's value."""

    table: str
    events: IntArray  # (events,)
    fixed: IntArray  # (events, parts)
    slot: IntArray  # (events, parts), −1 where the part is fixed

    def part(self, p: int, values: IntArray, chosen: IntArray) -> IntArray:
        """Return the codes of part p of the chosen events, (events, columns).

        If none of them varies between items there is only one column.
        """
        slot = self.slot[chosen, p]
        fixed: IntArray = self.fixed[chosen, p][:, None]
        varies = slot >= 0
        if not varies.any():
            return fixed
        observed: IntArray = values[slot]
        return observed if varies.all() else np.where(varies[:, None], observed, fixed)


@dataclass(frozen=True)
class Bundle:
    """A circuit together with its items, indexed by (root, column).

    ``values[slot, column]`` are the codes of observed values, ``constant`` and ``leaf`` the global
    entry indices (filled in by `bound`), ``numbers[root, column]`` the items' numbers in the data.
    """

    circuit: Circuit
    keys: tuple[EventKeys, ...]
    values: IntArray
    numbers: IntArray
    constant: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    leaf: IntArray = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def bound(self, support: Support) -> Bundle:
        """Return the bundle with the entry indices of its events filled in."""
        n_events = max((int(k.events.max(initial=-1)) + 1 for k in self.keys), default=0)
        n_columns = self.numbers.shape[1]
        constant = np.full(n_events, support.size, np.int64)
        leaf = np.full((len(self.circuit.leaves), n_columns), support.size, np.int64)
        for keys in self.keys:
            parts = range(keys.fixed.shape[1])
            constants = np.flatnonzero(np.isin(keys.events, self.circuit.constants))
            codes = [keys.fixed[constants, p] for p in parts]
            constant[keys.events[constants]] = support.find(keys.table, codes)
            leaves = np.flatnonzero(np.isin(keys.events, self.circuit.leaves))
            codes = [keys.part(p, self.values, leaves) for p in parts]
            rows = np.searchsorted(self.circuit.leaves, keys.events[leaves])
            leaf[rows] = support.find(keys.table, codes)
        return replace(self, constant=constant[self.circuit.constants], leaf=leaf)

    def columns(self, chosen: IntArray) -> Bundle:
        """Select some of the items; the circuit stays the same."""
        return replace(self, leaf=self.leaf[:, chosen], numbers=self.numbers[:, chosen])

    def lockstep(self) -> list[Bundle]:
        """Cut the bundle into pieces of about equal size that run in lockstep."""
        fitting = _MAX_CELLS // max(self.circuit.n_rows, 1) // WIDTH
        n_columns = self.numbers.shape[1]
        n_vectors = -(-n_columns // WIDTH)
        n_pieces = -(-n_vectors // min(_MAX_LANES // WIDTH, max(fitting, 1)))
        cuts = [piece * n_vectors // n_pieces * WIDTH for piece in range(1, n_pieces)]
        return [self.columns(part) for part in np.split(np.arange(n_columns), cuts)]


def list_keys(graph: Hypergraph, lexicon: ValueLexicon) -> tuple[EventKeys, ...]:
    """List the keys of a graph's events, table by table; fixed parts get their codes here."""
    by_table: dict[str, list[int]] = defaultdict(list)
    for number, (table, _) in enumerate(graph.entries):
        by_table[table].append(number)
    keys_by_table = []
    for table, events in by_table.items():
        keys = [graph.entries[event].key for event in events]
        _check_arity(table, set(map(len, keys)))
        flat = list(chain.from_iterable(keys))
        slot = np.array([part.slots if type(part) is Symbol else -1 for part in flat], np.int64)
        fixed = np.full(len(flat), -1, np.int64)
        fixed[slot < 0] = lexicon.add(part for part in flat if type(part) is not Symbol)
        shape = (len(keys), len(keys[0]))
        keys_by_table.append(
            EventKeys(table, np.array(events), fixed.reshape(shape), slot.reshape(shape))
        )
    return tuple(keys_by_table)


def make_support(
    bundles: Sequence[Bundle], tables: Mapping[str, StoryTable], lexicon: ValueLexicon
) -> Support:
    """Collect the entries that occur in the bundles' derivations."""
    chunks: dict[str, list[list[IntArray]]] = defaultdict(list)
    for each in bundles:
        for keys in each.keys:
            for events in (each.circuit.constants, each.circuit.leaves):
                used = np.flatnonzero(np.isin(keys.events, events))
                if len(used):
                    parts = range(keys.fixed.shape[1])
                    chunks[keys.table].append([keys.part(p, each.values, used) for p in parts])
    for name, keys_of_table in chunks.items():
        _check_arity(name, set(map(len, keys_of_table)))
    for table in tables.values():
        lexicon.add(table.outcomes or ())
    return Support(
        {
            name: TableSupport.of(name, keys_of_table, tables[name].outcomes, lexicon)
            for name, keys_of_table in chunks.items()
        },
        lexicon,
    )


def _check_arity(table: str, arities: set[int]) -> None:
    """Raise a `StoryError` unless all keys of a table have the same number of parts."""
    if len(arities) > 1:
        counts = " and with ".join(str(n) for n in sorted(arities))
        raise StoryError(
            f"table {table!r} is used with {counts} indices",
            "always give a table the same number of indices: the conditions, then the outcome",
        )


def merge_graphs(graphs: Sequence[Hypergraph]) -> tuple[Hypergraph, IntArray]:
    """Merge several graphs into one with several roots; equal entries become one event."""
    entries: dict[TableEntry, int] = {}
    zero: IntArray = np.zeros(1, np.int64)
    node_ends, alternative_ends = [zero], [zero]
    parts, roots = [], []
    calls: list[tuple[Story, tuple[Any, ...]]] = []
    tables: dict[str, StoryTable] = {}
    n_nodes = n_alternatives = n_parts = 0
    for graph in graphs:
        events = np.array([entries.setdefault(e, len(entries)) for e in graph.entries], np.int64)
        is_event = graph.parts < graph.n_events
        renumbered = graph.parts - graph.n_events + n_nodes
        renumbered[is_event] = (
            -1 - events[graph.parts[is_event]]
        )  # negative for now: where nodes begin is known at the end
        parts.append(renumbered)
        node_ends.append(graph.node_ends[1:] + n_alternatives)
        alternative_ends.append(graph.alternative_ends[1:] + n_parts)
        roots.append(n_nodes)
        calls.extend(graph.calls)
        tables.update(graph.tables)
        n_nodes += graph.n_nodes
        n_alternatives += graph.n_alternatives
        n_parts += len(graph.parts)
    flat = np.concatenate(parts)
    merged = Hypergraph(
        np.concatenate(node_ends),
        np.concatenate(alternative_ends),
        np.where(flat < 0, -1 - flat, flat + len(entries)),
        tuple(entries),
        tuple(calls),
        tables,
    )
    return merged, np.array(roots, np.int64)


# Shards: what travels to threads and workers


@dataclass(frozen=True)
class TouchedEntries:
    """The entries of one table that a shard touches.

    ``places``  their sorted positions in the table
    ``local``   their positions in the shard's own list

    The shard's list is sorted by outcome, so that all entries that could have produced one observed
    word lie close together in memory.
    """

    table: str
    places: IntArray
    local: IntArray


@dataclass(frozen=True)
class StoryShard:
    """Some of the items: their blocks, and for each table the entries that they touch."""

    blocks: tuple[StoryBlock, ...]
    touched: tuple[TouchedEntries, ...]
    items: int
    tokens: int


class StoryCorpus:
    """Items compiled for a story.

    ``support`` is collected from the items unless that of a fitted model is given; entries that a
    given support lacks have probability zero. Items without any derivation are an error, or, with
    ``strict=False``, listed in ``impossible``.

    ``inspected``            whether the story inspects observed values
    ``traced_alternatives``  number of alternatives recorded, over all traces
    ``singles``              graphs of the items that share their form with few others
    """

    def __init__(
        self, story: Any, items: Sequence[Any], support: Support | None = None, strict: bool = True
    ) -> None:
        self.items = list(items)
        if not self.items:
            raise DataError(
                "there is no data: the list of items is empty", "give at least one item"
            )
        self.tokens = np.array([count_values(item) for item in self.items])
        self.lexicon = ValueLexicon() if support is None else support.lexicon.freeze()
        self.impossible: list[int] = []
        self.bundles: list[Bundle] = []
        self.singles: dict[int, Hypergraph] = {}
        self.tables: dict[str, StoryTable] = {}
        self.traced_alternatives, self.inspected = 0, False
        self._story, self._strict = find_story(story), strict
        # pause the garbage collector: tracing makes no cycles, but millions of tuples to traverse
        enabled = gc.isenabled()
        gc.disable()
        try:
            self._gather_one_by_one(self._gather_by_shape())
        finally:
            if enabled:
                gc.enable()
        self.support = support or make_support(self.bundles, self.tables, self.lexicon)
        self.bundles = [each.bound(self.support) for each in self.bundles]

    def __len__(self) -> int:
        return len(self.items)

    def name(self, number: int) -> str:
        """An item as messages show it."""
        return f"item {number} ({brief(self.items[number])})"

    # from items to bundles

    def _gather_by_shape(self) -> list[int]:
        """Trace once per shape, shortest first; return the items that must be traced one by one.

        If the story turns out to inspect values, these are all items of the shapes not yet done.
        """
        shapes: dict[int, ItemShape] = {}
        groups: dict[Any, list[int]] = defaultdict(list)
        left: list[int] = []
        for number, item in enumerate(self.items):
            try:
                shapes[number] = ItemShape(item)
            except ValueInspected:  # the item holds something that no symbol can stand in for
                left.append(number)
                self.inspected = True
            else:
                groups[shapes[number].key].append(number)
        waiting = sorted(groups.values(), key=lambda group: len(shapes[group[0]].values))
        compared = {0, max(range(len(waiting)), key=lambda i: len(waiting[i]), default=0)}
        for done, group in enumerate(waiting):
            first = group[0]
            graph = None
            with suppress(ValueInspected, Exception):  # a real error recurs with the actual values
                graph = trace_story(self._story, self.items[first], symbolic=True)
            if graph is None or (
                done in compared and not self._agrees(graph, shapes[first], first)
            ):
                self.inspected = True
                return sorted(left + [number for later in waiting[done:] for number in later])
            self.traced_alternatives += graph.n_alternatives
            values = self.lexicon.add(v for number in group for v in shapes[number].values)
            self._add(graph, values.reshape(len(group), len(shapes[first].values)).T, group)
        return left

    def _agrees(self, graph: Hypergraph, shape: ItemShape, number: int) -> bool:
        """Check the symbolic trace: tracing the actual values must give the same derivations."""
        if len(shape.values) > _LONG:
            return True
        concrete = trace_story(self._story, self.items[number])
        filled = [
            (e.table, tuple(shape.values[p.slots] if type(p) is Symbol else p for p in e.key))
            for e in graph.entries
        ]
        difference = _fingerprint(graph, filled) - _fingerprint(concrete, concrete.entries)
        return abs(difference) < 1e-9

    def _gather_one_by_one(self, numbers: Sequence[int]) -> None:
        """Trace every item: lanes for graphs of the same form, forests for the rest."""
        forms: dict[bytes, list[tuple[int, Hypergraph]]] = defaultdict(list)
        known: dict[str, Hypergraph] = {}
        for number in numbers:
            item = self.items[number]
            graph = known.get(item) if isinstance(item, str) else None
            if graph is None:
                graph = trace_story(self._story, item)
                if isinstance(item, str):
                    known[item] = graph
            self.traced_alternatives += graph.n_alternatives
            forms[graph.form].append((number, graph))
        alone: list[tuple[int, Hypergraph]] = []
        for alike in forms.values():
            if len(alike) < _FEW:
                alone.extend(alike)
                continue
            # key parts that differ between the graphs become symbols
            graph, columns = share_symbols([graph for _, graph in alike])
            codes = self.lexicon.add(value for column in columns for value in column)
            values = codes.reshape(len(columns), len(alike))
            self._add(graph, values, [number for number, _ in alike])
        alone.sort(key=lambda pair: pair[0])
        sizes = np.cumsum([graph.n_alternatives for _, graph in alone])
        for cut in np.unique(sizes // _FOREST):
            chosen = [alone[i] for i in np.flatnonzero(sizes // _FOREST == cut)]
            forest = self._make_forest(chosen)
            if forest is None:
                possible = []
                for number, graph in chosen:
                    if compile_alone(graph) is None:
                        self._refuse([number])
                    else:
                        possible.append((number, graph))
                chosen, forest = possible, self._make_forest(possible) if possible else None
            if forest is not None:
                self.singles.update(chosen)
                self.bundles.append(forest)
            for _, graph in chosen:
                self.tables.update(graph.tables)

    def _add(self, graph: Hypergraph, values: IntArray, group: list[int]) -> None:
        """Add a bundle of the items ``group``, whose values are the columns of ``values``."""
        keys = list_keys(graph, self.lexicon)
        varies = np.zeros(graph.n_events, bool)
        for each in keys:
            varies[each.events] = (each.slot >= 0).any(axis=1)
        circuit = compile_graph(graph, np.zeros(1, np.int64), varies)
        self.tables.update(graph.tables)
        if circuit is None:
            self._refuse(group)
            return
        if not len(values):  # an item without values still needs a column
            values = np.zeros((1, len(group)), np.int64)
        self.bundles.append(Bundle(circuit, keys, values, np.array([group])))

    def _make_forest(self, chosen: Sequence[tuple[int, Hypergraph]]) -> Bundle | None:
        """Make one circuit with a root per item; None if an item has no derivation."""
        numbers, graphs = zip(*chosen, strict=True)
        merged, roots = merge_graphs(graphs)
        circuit = compile_graph(merged, roots, np.zeros(merged.n_events, bool))
        if circuit is None:
            return None
        no_values = np.zeros((1, 1), np.int64)
        keys = list_keys(merged, self.lexicon)
        return Bundle(circuit, keys, no_values, np.array(numbers)[:, None])

    def _refuse(self, group: list[int]) -> None:
        """Raise for items without a derivation, or record them if not strict."""
        if self._strict:
            raise ImpossibleItem(
                f"no derivation explains {self.name(group[0])}",
                "no alternative that the story yields for it can be completed: check where the "
                "story stops and which cases it leaves out",
                item=group[0],
            )
        self.impossible.extend(group)

    # from bundles to shards

    def shards(self, batch_size: int | None = None, seed: int = 0) -> list[StoryShard]:
        """Cut the items into shards of about equal work, or shuffle them into batches.

        The cut by work depends on the data alone.
        """
        if batch_size is not None:
            order = np.random.default_rng(seed).permutation(len(self.items))
            cuts = np.arange(batch_size, len(order), batch_size)
            return [self._make_batch(np.sort(part)) for part in np.split(order, cuts)]
        pieces = [piece for each in self.bundles for piece in each.lockstep()]
        costs = np.array(
            [
                float(len(piece.circuit.rows.operand) + piece.circuit.n_rows)
                * (-(-piece.numbers.shape[1] // WIDTH) * WIDTH)
                for piece in pieces
            ]
        )
        worthwhile = max(_SHARD_COST, _ENTRY_COST * self.support.size)
        n_shards = int(np.clip(costs.sum() / worthwhile, 1, len(pieces)))
        middle = np.cumsum(costs) - costs / 2
        shard_of = np.minimum((middle / costs.sum() * n_shards).astype(int), n_shards - 1)
        return [
            self._make_shard([pieces[i] for i in np.flatnonzero(shard_of == s)])
            for s in np.unique(shard_of)
        ]

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """The location of each item: its bundle (-1: alone in a forest), and its column."""
        bundle_of, column_of = np.full((2, len(self.items)), -1)
        for number, each in enumerate(self.bundles):
            if int(each.numbers[0, 0]) not in self.singles:
                bundle_of[each.numbers[0]] = number
                column_of[each.numbers[0]] = np.arange(each.numbers.shape[1])
        return bundle_of, column_of

    def _make_batch(self, numbers: IntArray) -> StoryShard:
        """Make one shard of the items with these numbers."""
        bundle_of, column_of = self._places
        bundled = numbers[bundle_of[numbers] >= 0]
        bundles = [
            self.bundles[b].columns(column_of[bundled[bundle_of[bundled] == b]])
            for b in np.unique(bundle_of[bundled]).tolist()
        ]
        alone = [(n, self.singles[n]) for n in numbers.tolist() if n in self.singles]
        forest = self._make_forest(alone) if alone else None
        if forest is not None:
            bundles.append(forest.bound(self.support))
        return self._make_shard([piece for each in bundles for piece in each.lockstep()])

    def _make_shard(self, pieces: Sequence[Bundle]) -> StoryShard:
        """Make a shard of bundles, with its own list of entries."""
        support = self.support
        used = [part for each in pieces for part in (each.constant, np.unique(each.leaf))]
        entries = np.unique(np.concatenate(used))
        entries = entries[entries < support.size]
        # the position of each entry in the shard's list; the last is for what is in no table
        local = np.arange(len(entries) + 1, dtype=np.int32)
        touched = []
        for name, table in support.tables.items():
            offset = support.offsets[name]
            start, stop = np.searchsorted(entries, [offset, offset + len(table)]).tolist()
            places = entries[start:stop] - offset
            by_outcome = np.argsort(table.codes[places, -1], kind="stable")
            local[start:stop][by_outcome] = np.arange(start, stop)
            touched.append(TouchedEntries(name, places, local[start:stop].copy()))
        by_circuit: dict[int, list[Bundle]] = defaultdict(list)
        for piece in pieces:
            by_circuit[id(piece.circuit)].append(piece)
        blocks = []
        for same in by_circuit.values():
            lanes = []
            for piece in same:  # columns are repeated up to a multiple of the vector width
                n_columns = piece.leaf.shape[1]
                padded = np.minimum(np.arange(-(-n_columns // WIDTH) * WIDTH), n_columns - 1)
                leaf = local[np.searchsorted(entries, piece.leaf[:, padded])]
                lanes.append(Lanes(leaf, piece.numbers))
            constant = local[np.searchsorted(entries, same[0].constant)]
            blocks.append(StoryBlock(same[0].circuit.rows, constant, tuple(lanes)))
        numbers = np.concatenate([piece.numbers.ravel() for piece in pieces])
        n_tokens = int(self.tokens[numbers].sum())
        return StoryShard(_stack_small(blocks), tuple(touched), len(numbers), n_tokens)


def _stack_small(blocks: Sequence[StoryBlock]) -> tuple[StoryBlock, ...]:
    """Stack small blocks of few items into larger ones; leave the others as they are."""
    small: list[StoryBlock] = []
    large: list[StoryBlock] = []
    for block in blocks:
        is_narrow = len(block.lanes) == 1 and block.lanes[0].numbers.shape[1] <= WIDTH
        is_small = is_narrow and len(block.rows.kind) <= _STACK // 8
        (small if is_small else large).append(block)
    heights = np.cumsum([len(block.rows.kind) for block in small]) // _STACK
    for height in np.unique(heights):
        pile = [small[i] for i in np.flatnonzero(heights == height)]
        if len(pile) == 1:
            large.append(pile[0])
            continue
        lanes = [block.lanes[0] for block in pile]
        rows = stack_rows(
            [block.rows for block in pile],
            [len(each.leaf) for each in lanes],
            [len(block.constant) for block in pile],
        )
        width = max(each.numbers.shape[1] for each in lanes)
        numbers = [
            np.pad(each.numbers, ((0, 0), (0, width - each.numbers.shape[1])), constant_values=-1)
            for each in lanes
        ]
        together = Lanes(np.concatenate([each.leaf for each in lanes]), np.concatenate(numbers))
        constant = np.concatenate([block.constant for block in pile])
        large.append(StoryBlock(rows, constant, (together,)))
    return tuple(large)


def _fingerprint(graph: Hypergraph, entries: Sequence[tuple[str, tuple[Any, ...]]]) -> float:
    """Return the log of the sum over derivations, with pseudo-random weights of the entries."""
    sums = (crc32(repr(tuple(entry)).encode()) for entry in entries)
    weights = np.array([(crc % 9973 + 1) / 9974 for crc in sums])
    circuit = compile_alone(graph)
    if circuit is None:
        return -np.inf
    work = InsideOutside(circuit.rows, weights[circuit.constants], "soft")
    return float(work.inside(NO_LEAVES, weights)[1][0, 0])
