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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf
from typing import Any, cast
from zlib import crc32

import numpy as np

from softcount.core.errors import DataError, ImpossibleItem, StoryError, brief
from softcount.core.estimate import count_bytes
from softcount.core.types import IntArray
from softcount.engines.folder import Kept, Scratch, Shelf
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
from softcount.text.items import Items
from softcount.text.shards import split_items

_FOREST = 50_000  # alternatives in a forest
_LONG = 2_000  # items with more values than this are not traced a second time for comparison
_FEW = 4  # with at least this many items of one concrete form, lanes are faster than a forest

_STRETCH = 1 << 22
"""Numbers (values, and entries that depend on them) of the items that are gathered together."""
_GRAPH_WEIGHT = 8
"""What a part of a graph weighs, in such numbers: an item that is traced alone is all graph."""

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


class KeyCollector:
    """The keys that occur in derivations, by table: the support of what was added."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[list[IntArray]]] = defaultdict(list)

    def add(self, bundles: Iterable[Bundle]) -> None:
        """Add the keys of the events that occur in the bundles' derivations."""
        for each in bundles:
            for keys in each.keys:
                for events in (each.circuit.constants, each.circuit.leaves):
                    used = np.flatnonzero(np.isin(keys.events, events))
                    if len(used):
                        parts = range(keys.fixed.shape[1])
                        chunk = [keys.part(p, each.values, used) for p in parts]
                        self._chunks[keys.table].append(chunk)

    def condense(self, lexicon: ValueLexicon) -> None:
        """Keep each key once, which takes no more memory than the tables."""
        for name, chunks in self._chunks.items():
            _check_arity(name, set(map(len, chunks)))
            self._chunks[name] = [list(TableSupport.of(name, chunks, None, lexicon).codes.T)]

    def make_support(self, tables: Mapping[str, StoryTable], lexicon: ValueLexicon) -> Support:
        """Make the support of all tables; outcomes that they declare are added to it."""
        for name, chunks in self._chunks.items():
            _check_arity(name, set(map(len, chunks)))
        for table in tables.values():
            lexicon.add(table.outcomes or ())
        return Support(
            {
                name: TableSupport.of(name, chunks, tables[name].outcomes, lexicon)
                for name, chunks in self._chunks.items()
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


# From items to bundles


@dataclass(frozen=True)
class Stretch:
    """Items that are gathered together: consecutive ones, or those of a mini-batch.

    ``numbers``  their numbers in the data, sorted
    ``tokens``   the number of observations in each
    ``shapes``   their shapes; None where an item holds something that no symbol can stand in for
    ``graphs``   derivations of items that have been traced one by one already, by place
    """

    numbers: IntArray
    tokens: IntArray
    items: list[Any]
    shapes: list[ItemShape | None]
    graphs: dict[int, Hypergraph]

    @classmethod
    def of(cls, items: list[Any], numbers: IntArray) -> Stretch:
        tokens = np.array([count_values(item) for item in items], np.int64)
        return cls(numbers, tokens, items, list(map(_shape_of, items)), {})

    def without_items(self) -> Stretch:
        """Return what shards need of the stretch."""
        return Stretch(self.numbers, self.tokens, [], [], {})

    def count_tokens(self, numbers: IntArray) -> int:
        """Count the observations in the items with these numbers."""
        return int(self.tokens[np.searchsorted(self.numbers, numbers)].sum())


def _shape_of(item: Any) -> ItemShape | None:
    try:
        return ItemShape(item)
    except ValueInspected:  # the item holds something that no symbol can stand in for
        return None


class Gatherer:
    """Makes bundles of items, a stretch at a time: a story, its lexicon, and all that was traced.

    The circuit of a shape is made once, and serves the items of this shape in all stretches.

    ``inspected``            whether the story inspects observed values
    ``traced_alternatives``  number of alternatives recorded, over all traces
    ``impossible``           items without a derivation, if not strict
    """

    def __init__(
        self,
        story: Any,
        lexicon: ValueLexicon,
        strict: bool = True,
        name: Callable[[int], str] = "item {}".format,
    ) -> None:
        self.lexicon = lexicon
        self.tables: dict[str, StoryTable] = {}
        self.traced_alternatives, self.inspected = 0, False
        self.impossible: list[int] = []
        self._story, self._strict, self._name = find_story(story), strict, name
        self._symbolic: dict[Any, Hypergraph | None] = {}  # by shape; None: inspects the values
        self._weights: dict[Any, int] = {}  # by shape
        self._circuits: dict[Any, tuple[Circuit, tuple[EventKeys, ...]] | None] = {}  # by shape
        self._inspects_from = inf  # the number of values in the shortest shape that it inspects

    def cut(self, items: Iterable[Any]) -> Iterator[Stretch]:
        """Cut items into stretches of consecutive ones; all but the last have `_STRETCH` weight."""
        remaining, before = iter(items), 0
        while stretch := self._take(remaining, before):
            before += len(stretch.items)
            yield stretch
            del stretch  # the caller may have dropped it

    def _take(self, remaining: Iterator[Any], before: int) -> Stretch | None:
        """Take the items of the next stretch; ``before``: the number of items before it."""
        items, shapes = list[Any](), list[ItemShape | None]()
        graphs, known = dict[int, Hypergraph](), dict[str, Hypergraph]()
        weight = 0
        for place, item in enumerate(remaining):
            shape = _shape_of(item)
            items.append(item)
            shapes.append(shape)
            found = None if shape is None else self._weigh(shape, item)
            if found is None:
                graph = graphs[place] = self._trace(item, known)
                found = _GRAPH_WEIGHT * (len(graph.parts) + graph.n_events)
            weight += found
            if weight >= _STRETCH:
                break
        tokens = np.array([count_values(item) for item in items], np.int64)
        numbers = np.arange(before, before + len(items))
        return Stretch(numbers, tokens, items, shapes, graphs) if items else None

    def _weigh(self, shape: ItemShape, item: Any) -> int | None:
        """Return the numbers that an item takes in a bundle; None if it must be traced alone."""
        weight = self._weights.get(shape.key)
        if weight is None:
            if len(shape.values) >= self._inspects_from:
                return None
            graph = self._trace_shape(shape, item)
            if graph is None:
                return None
            varying = sum(any(type(p) is Symbol for p in entry.key) for entry in graph.entries)
            weight = self._weights[shape.key] = 1 + len(shape.values) + varying
        return weight

    def _trace_shape(self, shape: ItemShape, item: Any) -> Hypergraph | None:
        """Trace with symbols, once per shape; None if the story inspects the values."""
        if shape.key not in self._symbolic:
            graph = None
            with suppress(ValueInspected, Exception):  # a real error recurs with the actual values
                graph = trace_story(self._story, item, symbolic=True)
            self._symbolic[shape.key] = graph
            if graph is None:
                self._give_up(shape)
        return self._symbolic[shape.key]

    def _give_up(self, shape: ItemShape) -> None:
        """Trace items of this shape one by one from now on."""
        self._symbolic[shape.key] = None
        self._weights.pop(shape.key, None)
        self._inspects_from = min(self._inspects_from, len(shape.values))

    def _trace(self, item: Any, known: dict[str, Hypergraph]) -> Hypergraph:
        """Trace an item with its values; equal strings are traced once."""
        graph = known.get(item) if isinstance(item, str) else None
        if graph is None:
            graph = trace_story(self._story, item)
            if isinstance(item, str):
                known[item] = graph
        return graph

    def gather(self, stretch: Stretch) -> tuple[list[Bundle], dict[int, Hypergraph]]:
        """Make the bundles of a stretch.

        Also returns the graphs of the items that share their form with few others, by number.
        """
        bundles: list[Bundle] = []
        singles: dict[int, Hypergraph] = {}
        self._gather_one_by_one(stretch, self._gather_by_shape(stretch, bundles), bundles, singles)
        return bundles, singles

    def _gather_by_shape(self, stretch: Stretch, bundles: list[Bundle]) -> list[int]:
        """Trace once per shape, shortest first; return the places of items to be traced one by one.

        If the story turns out to inspect values, these are all items of the shapes not yet done.
        """
        groups: dict[Any, list[int]] = defaultdict(list)
        left: list[int] = []
        for place, shape in enumerate(stretch.shapes):
            if shape is None:
                left.append(place)
                self.inspected = True
            else:
                groups[shape.key].append(place)
        shapes = cast(list[ItemShape], stretch.shapes)
        waiting = sorted(groups.values(), key=lambda group: len(shapes[group[0]].values))
        new = [i for i, group in enumerate(waiting) if shapes[group[0]].key not in self._circuits]
        compared = {*new[:1], max(new, key=lambda i: len(waiting[i]), default=0)}
        for done, group in enumerate(waiting):
            first, shape = stretch.items[group[0]], shapes[group[0]]
            graph = None
            if shape.key not in self._circuits:
                graph = self._trace_shape(shape, first)
                if graph and done in compared and not self._agrees(graph, shape, first):
                    graph = None
                    self._give_up(shape)
                if graph is None:
                    self.inspected = True
                    return sorted(left + [place for later in waiting[done:] for place in later])
                self.traced_alternatives += graph.n_alternatives
            values = self.lexicon.add(v for place in group for v in shapes[place].values)
            if graph is not None:
                self._circuits[shape.key] = self._compile(graph)
                del self._symbolic[shape.key]
            columns = values.reshape(len(group), len(shape.values)).T
            bundles += self._bundle(self._circuits[shape.key], columns, stretch.numbers[group])
        return left

    def _agrees(self, graph: Hypergraph, shape: ItemShape, item: Any) -> bool:
        """Check the symbolic trace: tracing the actual values must give the same derivations."""
        if len(shape.values) > _LONG:
            return True
        concrete = trace_story(self._story, item)
        filled = [
            (e.table, tuple(shape.values[p.slots] if type(p) is Symbol else p for p in e.key))
            for e in graph.entries
        ]
        difference = _fingerprint(graph, filled) - _fingerprint(concrete, concrete.entries)
        return abs(difference) < 1e-9

    def _gather_one_by_one(
        self,
        stretch: Stretch,
        places: Sequence[int],
        bundles: list[Bundle],
        singles: dict[int, Hypergraph],
    ) -> None:
        """Trace every item: lanes for graphs of the same form, forests for the rest."""
        forms: dict[bytes, list[tuple[int, Hypergraph]]] = defaultdict(list)
        known: dict[str, Hypergraph] = {}
        for place in places:
            graph = stretch.graphs.get(place)
            if graph is None:
                graph = self._trace(stretch.items[place], known)
            self.traced_alternatives += graph.n_alternatives
            forms[graph.form].append((int(stretch.numbers[place]), graph))
        alone: list[tuple[int, Hypergraph]] = []
        for alike in forms.values():
            if len(alike) < _FEW:
                alone.extend(alike)
                continue
            # key parts that differ between the graphs become symbols
            graph, columns = share_symbols([graph for _, graph in alike])
            codes = self.lexicon.add(value for column in columns for value in column)
            values = codes.reshape(len(columns), len(alike))
            numbers = np.array([number for number, _ in alike])
            bundles += self._bundle(self._compile(graph), values, numbers)
        alone.sort(key=lambda pair: pair[0])
        sizes = np.cumsum([graph.n_alternatives for _, graph in alone])
        for cut in np.unique(sizes // _FOREST):
            chosen = [alone[i] for i in np.flatnonzero(sizes // _FOREST == cut)]
            forest = make_forest(chosen, self.lexicon)
            if forest is None:
                possible = []
                for number, graph in chosen:
                    if compile_alone(graph) is None:
                        self._refuse(np.array([number]))
                    else:
                        possible.append((number, graph))
                chosen = possible
                forest = make_forest(possible, self.lexicon) if possible else None
            if forest is not None:
                singles.update(chosen)
                bundles.append(forest)
            for _, graph in chosen:
                self.tables.update(graph.tables)

    def _compile(self, graph: Hypergraph) -> tuple[Circuit, tuple[EventKeys, ...]] | None:
        """Compile a graph; None if it has no complete derivation."""
        keys = list_keys(graph, self.lexicon)
        varies = np.zeros(graph.n_events, bool)
        for each in keys:
            varies[each.events] = (each.slot >= 0).any(axis=1)
        circuit = compile_graph(graph, np.zeros(1, np.int64), varies)
        self.tables.update(graph.tables)
        return None if circuit is None else (circuit, keys)

    def _bundle(
        self,
        compiled: tuple[Circuit, tuple[EventKeys, ...]] | None,
        values: IntArray,
        numbers: IntArray,
    ) -> list[Bundle]:
        """Make the bundle of items, whose values are the columns of ``values``, if possible."""
        if compiled is None:
            self._refuse(numbers)
            return []
        if not len(values):  # an item without values still needs a column
            values = np.zeros((1, len(numbers)), np.int64)
        return [Bundle(*compiled, values, numbers[None])]

    def _refuse(self, numbers: IntArray) -> None:
        """Raise for items without a derivation, or record them if not strict."""
        if self._strict:
            first = int(numbers[0])
            raise ImpossibleItem(
                f"no derivation explains {self._name(first)}",
                "no alternative that the story yields for it can be completed: check where the "
                "story stops and which cases it leaves out",
                item=first,
            )
        self.impossible.extend(numbers.tolist())


def make_forest(chosen: Sequence[tuple[int, Hypergraph]], lexicon: ValueLexicon) -> Bundle | None:
    """Make one circuit with a root per item; None if an item has no derivation.

    ``chosen``  the items' numbers and graphs
    """
    numbers, graphs = zip(*chosen, strict=True)
    merged, roots = merge_graphs(graphs)
    circuit = compile_graph(merged, roots, np.zeros(merged.n_events, bool))
    if circuit is None:
        return None
    no_values = np.zeros((1, 1), np.int64)
    return Bundle(circuit, list_keys(merged, lexicon), no_values, np.array(numbers)[:, None])


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
    """Items compiled for a story, all together.

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
        items = list(items)
        gatherer = Gatherer(story, _lexicon_of(support), strict, _names_of(items))
        with _without_gc():
            self._gather(gatherer, Stretch.of(items, np.arange(len(items))), support)

    @classmethod
    def of(cls, gatherer: Gatherer, stretch: Stretch, support: Support | None) -> StoryCorpus:
        """Make the corpus of one stretch of items."""
        corpus = cls.__new__(cls)
        with _without_gc():
            corpus._gather(gatherer, stretch, support)
        return corpus

    def _gather(self, gatherer: Gatherer, stretch: Stretch, support: Support | None) -> None:
        if not stretch.items:
            raise DataError(
                "there is no data: the list of items is empty", "give at least one item"
            )
        self.items, self._stretch = stretch.items, stretch
        bundles, self.singles = gatherer.gather(stretch)
        self.lexicon, self.tables = gatherer.lexicon, gatherer.tables
        self.inspected, self.impossible = gatherer.inspected, gatherer.impossible
        self.traced_alternatives = gatherer.traced_alternatives
        if support is None:
            keys = KeyCollector()
            keys.add(bundles)
            support = keys.make_support(self.tables, self.lexicon)
        self.support = support
        self.bundles = [each.bound(self.support) for each in bundles]

    def __len__(self) -> int:
        return len(self.items)

    def name(self, number: int) -> str:
        """An item as messages show it."""
        return _names_of(self.items)(number)

    @property
    def n_tokens(self) -> int:
        """The number of observations."""
        return int(self._stretch.tokens.sum())

    @property
    def n_bytes(self) -> tuple[int, int]:
        """The size of the compiled items, and of those in memory at a time, in bytes."""
        size = sum(count_bytes(bundle) for bundle in self.bundles)
        return size, size

    def shards(self, batch_size: int | None = None, seed: int = 0) -> list[StoryShard]:
        """Cut the items into shards of about equal work, or shuffle them into batches.

        The cut by work depends on the data alone.
        """
        if batch_size is None:
            return cut_bundles(self.bundles, self.support, self._stretch)
        return [self._make_batch(part) for part in _shuffle(len(self), batch_size, seed)]

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
        forest = make_forest(alone, self.lexicon) if alone else None
        if forest is not None:
            bundles.append(forest.bound(self.support))
        pieces = [piece for each in bundles for piece in each.lockstep()]
        return make_shard(pieces, self.support, self._stretch)


class LongStoryCorpus:
    """Items of several stretches, compiled for a story one stretch after the other.

    Of items on disk (`Items`) no more than a stretch and its circuits are in memory: the compiled
    shards are written to a folder that is removed with the corpus, and read whenever they are
    used. That takes more space than the items (four bytes for each entry that an item may come
    from), but compiling them again takes 20 times as long as an E-step, reading them less than one.
    The folder is inside that of the items, as whoever can read these can then read the shards, too;
    or among the system's temporary files, if nothing can be written there.

    Shards of items in memory are kept; they are the same.
    """

    def __init__(
        self,
        gatherer: Gatherer,
        stretches: Iterator[Stretch],
        items: Sequence[Any],
        support: Support | None,
    ) -> None:
        self.items, self._gatherer = items, gatherer
        waiting = self._new_shelf()
        keys, given = KeyCollector(), support
        self.n_tokens, self.tables = 0, gatherer.tables
        while stretch := _next(stretches):
            with _without_gc():
                bundles, _ = gatherer.gather(stretch)
            self.n_tokens += int(stretch.tokens.sum())
            if given is None:
                keys.add(bundles)
                keys.condense(gatherer.lexicon)
            waiting.append((bundles, stretch.without_items()))
            del stretch, bundles
        self.support = given or keys.make_support(gatherer.tables, gatherer.lexicon)
        self._gatherer.lexicon = self.support.lexicon.freeze()
        self._shelf = self._new_shelf()
        sizes = []
        for bundles, stretch in waiting.take():
            bound = [each.bound(self.support) for each in bundles]
            for shard in cut_bundles(bound, self.support, stretch):
                self._shelf.append(shard)
                sizes.append(count_bytes(shard))
        self.n_bytes = sum(sizes), max(sizes) if self._is_on_disk else sum(sizes)

    @property
    def _is_on_disk(self) -> bool:
        return isinstance(self.items, Items)

    def _new_shelf(self) -> Shelf:
        return Scratch(self.items.corpus.folder) if isinstance(self.items, Items) else Kept()

    def __len__(self) -> int:
        return len(self.items)

    def name(self, number: int) -> str:
        """An item as messages show it."""
        return _names_of(self.items)(number)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[StoryShard]:
        """Cut the items into shards of about equal work, or shuffle them into batches.

        The cut by work depends on the data alone. Batches are compiled from their items.
        """
        if batch_size is None:
            return self._shelf.all()
        shelf = self._new_shelf()
        for numbers in _shuffle(len(self), batch_size, seed):
            shelf.append(self._make_batch(numbers))
        return shelf.all()

    def _make_batch(self, numbers: IntArray) -> StoryShard:
        """Make one shard of the items with these numbers."""
        chosen = numbers.tolist()
        items = self.items
        some = items.select(numbers) if isinstance(items, Items) else [items[n] for n in chosen]
        stretch = Stretch.of(some, numbers)
        with _without_gc():
            bundles, _ = self._gatherer.gather(stretch)
        pieces = [piece for each in bundles for piece in each.bound(self.support).lockstep()]
        return make_shard(pieces, self.support, stretch)


AnyStoryCorpus = StoryCorpus | LongStoryCorpus


def compile_items(
    story: Any, items: Sequence[Any], support: Support | None = None
) -> AnyStoryCorpus:
    """Compile a story's data, a list or `Items` on disk, in stretches of consecutive items.

    Where a stretch ends depends on the items and the story alone, so the shards of items on disk
    are those of the same items in memory. Most data are one stretch.
    """
    gatherer = Gatherer(story, _lexicon_of(support), name=_names_of(items))
    stretches = gatherer.cut(items)
    first = _next(stretches) or Stretch.of([], np.arange(0))
    if len(first.items) == len(items):
        return StoryCorpus.of(gatherer, first, support)
    waiting = [first]  # from which it is taken, so that it is not kept

    def all_stretches() -> Iterator[Stretch]:
        yield waiting.pop()
        yield from stretches

    del first
    return LongStoryCorpus(gatherer, all_stretches(), items, support)


def compile_in_parts(story: Any, items: Sequence[Any], support: Support) -> Iterator[StoryCorpus]:
    """Yield corpora of consecutive items; those without a derivation are left out."""
    gatherer = Gatherer(story, _lexicon_of(support), strict=False, name=_names_of(items))
    stretches = gatherer.cut(items)
    while stretch := _next(stretches):
        yield StoryCorpus.of(gatherer, stretch, support)


def _lexicon_of(support: Support | None) -> ValueLexicon:
    return ValueLexicon() if support is None else support.lexicon.freeze()


def _names_of(items: Sequence[Any]) -> Callable[[int], str]:
    """Return the function that names items as messages show them."""
    name = items.name if isinstance(items, Items) else "item {}".format
    return lambda number: f"{name(number)} ({brief(items[number])})"


def _shuffle(n: int, batch_size: int, seed: int) -> list[IntArray]:
    """Return the sorted numbers of the items in each batch."""
    return [np.sort(part) for part in split_items(n, 0, batch_size, seed)]


@contextmanager
def _without_gc() -> Iterator[None]:
    """Pause the garbage collector: tracing makes no cycles, but millions of tuples to traverse."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _next(stretches: Iterator[Stretch]) -> Stretch | None:
    with _without_gc():
        return next(stretches, None)


# From bundles to shards


def cut_bundles(bundles: Sequence[Bundle], support: Support, stretch: Stretch) -> list[StoryShard]:
    """Cut bundles of a stretch, with their entry indices, into shards of about equal work."""
    pieces = [piece for each in bundles for piece in each.lockstep()]
    if not pieces:
        return []
    costs = np.array(
        [
            float(len(piece.circuit.rows.operand) + piece.circuit.n_rows)
            * (-(-piece.numbers.shape[1] // WIDTH) * WIDTH)
            for piece in pieces
        ]
    )
    worthwhile = max(_SHARD_COST, _ENTRY_COST * support.size)
    n_shards = int(np.clip(costs.sum() / worthwhile, 1, len(pieces)))
    middle = np.cumsum(costs) - costs / 2
    shard_of = np.minimum((middle / costs.sum() * n_shards).astype(int), n_shards - 1)
    return [
        make_shard([pieces[i] for i in np.flatnonzero(shard_of == s)], support, stretch)
        for s in np.unique(shard_of)
    ]


def make_shard(pieces: Sequence[Bundle], support: Support, stretch: Stretch) -> StoryShard:
    """Make a shard of bundles, with its own list of entries."""
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
        blocks.append(StoryBlock.of(same[0].circuit.rows, constant, lanes))
    numbers = np.concatenate([piece.numbers.ravel() for piece in pieces])
    n_tokens = stretch.count_tokens(numbers)
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
        large.append(StoryBlock.of(rows, constant, [together]))
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
