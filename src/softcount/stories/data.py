"""A story's data: traced, compiled, and cut into shards.

Items of one form share a circuit and run side by side, one a lane. When the story does not look at
the observed values we find the forms by tracing once per *shape* of item, with symbols; otherwise
we trace every item and put those whose graphs turn out equal together. What stays alone is merged
into forests, circuits with many roots.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from softcount.core.errors import DataError, ImpossibleItem, brief
from softcount.core.types import Array
from softcount.stories.circuit import (
    Bundle,
    compile_alone,
    compile_graph,
    find_varying,
    list_keys,
    make_support,
    merge_graphs,
)
from softcount.stories.inside_outside import StoryShard, cut_by_work, log_weight, shard
from softcount.stories.language import (
    ItemShape,
    Story,
    StoryTable,
    ValueInspected,
    find_story,
    is_symbol,
)
from softcount.stories.tables import Support, ValueLexicon
from softcount.stories.tracing import Hypergraph, count_values, share_symbols, trace_story

_FOREST = 50_000  # alternatives in a forest
_LONG = 2_000  # values of an item from which on a second trace to compare with costs too much
_FEW = 4  # items of one concrete form from which on lanes beat a forest

_ROOT = np.zeros(1, np.int64)


class StoryCorpus:
    """Items compiled for a story.

    ``support`` is learned from the items unless a fitted one is given, in which entries that it
    does not have get probability zero. Items that no derivation explains are an error, or with
    ``strict=False`` listed in ``impossible``.
    """

    def __init__(
        self,
        story: Any,
        items: Sequence[Any],
        support: Support | None = None,
        strict: bool = True,
    ) -> None:
        self.items = list(items)
        if not self.items:
            raise DataError(
                "there is no data: the list of items is empty", "give at least one item"
            )
        self.tokens = np.array([count_values(item) for item in self.items])
        self.impossible: list[int] = []
        self.lexicon = ValueLexicon() if support is None else support.lexicon.freeze()
        with _no_collections():
            gathering = ItemGathering(find_story(story), self, strict)
        self.inspected = gathering.inspected
        self.traced_alternatives = gathering.traced
        self.tables = gathering.tables
        self.support = support or make_support(gathering.bundles, gathering.tables, self.lexicon)
        self.bundles = [each.bound(self.support) for each in gathering.bundles]
        self.singles = gathering.singles

    def __len__(self) -> int:
        return len(self.items)

    def name(self, number: int) -> str:
        """An item as messages show it."""
        return f"item {number} ({brief(self.items[number])})"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> list[StoryShard]:
        """All items in shards of about equal work, or shuffled in batches of a given size."""
        if batch_size is None:
            return cut_by_work(self.bundles, self.support, self.tokens)
        order = np.random.default_rng(seed).permutation(len(self.items))
        cuts = np.arange(batch_size, len(order), batch_size)
        return [self._batch(np.sort(part)) for part in np.split(order, cuts)]

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Where each item is: the number of its bundle (-1: alone in a forest), and its column."""
        bundle_of, column_of = np.full((2, len(self.items)), -1)
        for number, each in enumerate(self.bundles):
            if int(each.numbers[0, 0]) not in self.singles:
                bundle_of[each.numbers[0]] = number
                column_of[each.numbers[0]] = np.arange(each.numbers.shape[1])
        return bundle_of, column_of

    def _batch(self, numbers: Array) -> StoryShard:
        bundle_of, column_of = self._places
        with_company = numbers[bundle_of[numbers] >= 0]
        bundles = [
            self.bundles[b].columns(column_of[with_company[bundle_of[with_company] == b]])
            for b in np.unique(bundle_of[with_company]).tolist()
        ]
        alone = [(n, self.singles[n]) for n in numbers.tolist() if n in self.singles]
        forest = _forest(alone, self.lexicon) if alone else None
        if forest is not None:
            bundles.append(forest.bound(self.support))
        return shard(bundles, self.support, self.tokens)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Pause Python's search for cycles: tracing makes none, and its million tuples cost it dear."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class ItemGathering:
    """Trace all items and gather them into bundles."""

    def __init__(self, story: Story, corpus: StoryCorpus, strict: bool) -> None:
        self.story, self.corpus, self.strict = story, corpus, strict
        self.lexicon = corpus.lexicon
        self.bundles: list[Bundle] = []
        self.singles: dict[int, Hypergraph] = {}
        self.tables: dict[str, StoryTable] = {}
        self.traced, self.inspected = 0, False
        shapes = {n: shape for n, item in enumerate(corpus.items) if (shape := _shape(item))}
        shapeless = [n for n in range(len(corpus.items)) if n not in shapes]
        self.inspected = bool(shapeless)
        self._one_by_one(sorted(shapeless + self._by_shape(shapes)))

    def _by_shape(self, shapes: dict[int, ItemShape]) -> list[int]:
        """Trace once a shape, shortest first; gives the items left when a story looks."""
        groups: dict[Any, list[int]] = defaultdict(list)
        for number, shape in shapes.items():
            groups[shape.key].append(number)
        waiting = sorted(groups.values(), key=lambda group: len(shapes[group[0]].values))
        compared = {0, max(range(len(waiting)), key=lambda i: len(waiting[i]), default=0)}
        for done, group in enumerate(waiting):
            first = group[0]
            graph = self._trace_symbols(self.corpus.items[first])
            if graph is None or (
                done in compared and not self._agrees(graph, shapes[first], first)
            ):
                self.inspected = True
                return [number for left in waiting[done:] for number in left]
            self.traced += graph.n_alternatives
            values = self.lexicon.add(v for number in group for v in shapes[number].values)
            n_slots = len(shapes[group[0]].values)
            self._add(graph, values.reshape(len(group), n_slots).T, group)
        return []

    def _trace_symbols(self, item: Any) -> Hypergraph | None:
        try:
            return trace_story(self.story, item, symbolic=True)
        except (ValueInspected, Exception):  # a real fault shows again when values are traced
            return None

    def _agrees(self, graph: Hypergraph, shape: ItemShape, number: int) -> bool:
        """Whether the symbols hid nothing: the same derivations come of the values themselves."""
        if len(shape.values) > _LONG:
            return True
        concrete = trace_story(self.story, self.corpus.items[number])
        filled = [
            (e.table, tuple(shape.values[p.slots] if is_symbol(p) else p for p in e.key))
            for e in graph.entries
        ]
        hidden = _fingerprint(graph, filled) - _fingerprint(concrete, concrete.entries)
        return abs(hidden) < 1e-9

    def _one_by_one(self, numbers: Sequence[int]) -> None:
        forms: dict[bytes, list[tuple[int, Hypergraph]]] = defaultdict(list)
        known: dict[Any, Hypergraph] = {}
        for number in numbers:
            item = self.corpus.items[number]
            key = item if isinstance(item, str) else None
            graph = known.get(key) or trace_story(self.story, item)
            if key is not None and key not in known:
                known[key] = graph
            self.traced += graph.n_alternatives
            forms[graph.form].append((number, graph))
        alone: list[tuple[int, Hypergraph]] = []
        for alike in forms.values():
            if len(alike) < _FEW:
                alone.extend(alike)
            else:
                self._add_alike(alike)
        self._plant(sorted(alone, key=lambda pair: pair[0]))

    def _add_alike(self, alike: list[tuple[int, Hypergraph]]) -> None:
        """Items whose graphs have one form: what differs between their keys becomes a symbol."""
        graph, columns = share_symbols([graph for _, graph in alike])
        codes = self.lexicon.add(value for column in columns for value in column)
        values = codes.reshape(len(columns), len(alike))
        self._add(graph, values, [number for number, _ in alike])

    def _add(self, graph: Hypergraph, values: Array, group: list[int]) -> None:
        keys = list_keys(graph, self.lexicon)
        circuit = compile_graph(graph, _ROOT, find_varying(keys, graph.n_events))
        self.tables.update(graph.tables)
        if circuit is None:
            self._explain_nothing(group)
            return
        if not len(values):  # an item without values still has a column
            values = np.zeros((1, len(group)), np.int64)
        self.bundles.append(Bundle(circuit, keys, values, np.array([group])))

    def _plant(self, alone: list[tuple[int, Hypergraph]]) -> None:
        """Merge items that have no company into forests."""
        sizes = np.cumsum([graph.n_alternatives for _, graph in alone])
        for cut in np.unique(sizes // _FOREST):
            chosen = [alone[i] for i in np.flatnonzero(sizes // _FOREST == cut)]
            forest = _forest(chosen, self.lexicon)
            if forest is None:
                chosen = [pair for pair in chosen if self._can_be_explained(*pair)]
                forest = _forest(chosen, self.lexicon) if chosen else None
            if forest is not None:
                self.singles.update(chosen)
                self.bundles.append(forest)
            for _, graph in chosen:
                self.tables.update(graph.tables)

    def _can_be_explained(self, number: int, graph: Hypergraph) -> bool:
        possible = compile_alone(graph) is not None
        if not possible:
            self._explain_nothing([number])
        return possible

    def _explain_nothing(self, group: list[int]) -> None:
        if self.strict:
            raise ImpossibleItem(
                f"no derivation explains {self.corpus.name(group[0])}",
                "the story yields nothing that can be completed for it: check where it stops and "
                "what it leaves out",
                item=group[0],
            )
        self.corpus.impossible.extend(group)


def _shape(item: Any) -> ItemShape | None:
    """An item's shape; None if it holds something that no symbol can stand in for."""
    try:
        return ItemShape(item)
    except ValueInspected:
        return None


def _forest(chosen: Sequence[tuple[int, Hypergraph]], lexicon: ValueLexicon) -> Bundle | None:
    """A circuit with a root an item; None if some item cannot be explained."""
    numbers, graphs = zip(*chosen, strict=True)
    joined, roots = merge_graphs(graphs)
    circuit = compile_graph(joined, roots, np.zeros(joined.n_events, bool))
    if circuit is None:
        return None
    no_values = np.zeros((1, 1), np.int64)
    keys = list_keys(joined, lexicon)
    return Bundle(circuit, keys, no_values, np.array(numbers)[:, None])


def _fingerprint(graph: Hypergraph, entries: Sequence[tuple[str, tuple[Any, ...]]]) -> float:
    """log of the sum over derivations, with weights that depend on the entries alone."""
    sums = (crc32(repr(tuple(entry)).encode()) for entry in entries)
    return log_weight(graph, np.array([(crc % 9973 + 1) / 9974 for crc in sums]))
