"""Circuits: hypergraphs compiled to flat rows that a kernel runs through, and items that share one.

Two alternatives that multiply the same two things share one product row. For an HMM that makes the
rows of a position a matrix product, for a grammar it shares a pair of spans between all rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from softcount.core.errors import StoryError
from softcount.core.types import Array
from softcount.stories import kernels
from softcount.stories.kernels import CircuitRows, find_useful, levels
from softcount.stories.language import Story, StoryTable, Symbol, TableEntry, describe
from softcount.stories.tables import Support, TableSupport, ValueLexicon
from softcount.stories.tracing import Hypergraph


@dataclass(frozen=True)
class Circuit:
    """The rows of one or more graphs.

    ``rows.constant`` numbers the events that are the same in all lanes: ``constants[i]`` is event
    i's number in the graph. ``leaves[l]`` is the graph's number of leaf l's event.
    ``node_row`` and ``alternatives`` lead from and to the graph, for those who read derivations.
    """

    rows: CircuitRows
    constants: Array
    leaves: Array
    node_row: Array
    alternatives: Array

    @property
    def n_rows(self) -> int:
        return len(self.rows.kind)

    @property
    def n_alternatives(self) -> int:
        return len(self.rows.operand)


def compile_graph(graph: Hypergraph, roots: Array, varies: Array) -> Circuit | None:
    """A graph's circuit; ``varies[e]`` says whether event e differs between lanes.

    None if some root has no finished derivation.
    """
    shape = (graph.node_ends, graph.alternative_ends, graph.parts, graph.n_events, roots)
    level, alive, culprit = levels(*shape)
    if culprit >= 0:
        raise StoryError(
            f"{describe(*graph.calls[culprit])} needs itself: it is a part of its own derivations",
            "every call must come closer to the end: pass a position or a length that moves",
        )
    if not alive[roots].all():
        return None
    order = np.argsort(-level, kind="stable")
    keep = find_useful(*shape, level, alive, order)
    return CircuitAssembly(graph, np.flatnonzero(keep), level, varies).circuit(roots)


def compile_alone(graph: Hypergraph) -> Circuit | None:
    """The circuit of a graph that shares it with nobody: every event is a constant."""
    return compile_graph(graph, np.zeros(1, np.int64), np.zeros(graph.n_events, bool))


class CircuitAssembly:
    """A circuit under construction.

    Things to multiply are numbered: leaves, then nodes, then products as they are found; -1 is ONE.
    ``height`` of a thing is the level from which on it can be computed, ``turn`` its place in line
    among things of one height: leaves first, then sums, then products, simple ones first.
    """

    def __init__(self, graph: Hypergraph, kept: Array, level: Array, varies: Array) -> None:
        self.graph, self.kept = graph, kept
        self.node = np.repeat(np.arange(graph.n_nodes), np.diff(graph.node_ends))[kept]
        counts = np.diff(graph.alternative_ends)[kept]
        owner = np.repeat(np.arange(len(kept)), counts)
        first = np.repeat(graph.alternative_ends[kept] - (np.cumsum(counts) - counts), counts)
        parts = graph.parts[np.arange(len(owner)) + first]
        is_event = parts < graph.n_events
        is_leaf = np.zeros(len(parts), bool)
        is_leaf[is_event] = varies[parts[is_event]]
        self._number_events(parts, is_event & ~is_leaf, is_leaf, owner)
        n_leaves = len(self.leaves)
        things = np.where(is_leaf, 0, parts - graph.n_events + n_leaves)
        things[is_leaf] = _rank_numbers(parts[is_leaf], graph.n_events)[1]
        variable = is_leaf | ~is_event
        self.height = [np.zeros(n_leaves, np.int64), level]
        self.turn = [np.full(n_leaves, -1), np.zeros(graph.n_nodes, np.int64)]
        self.factors: list[Array] = []
        self.operand = self._multiply(things[variable], owner[variable])

    def _number_events(self, parts: Array, constant: Array, leaf: Array, owner: Array) -> None:
        self.leaves, _ = _rank_numbers(parts[leaf], self.graph.n_events)
        self.constants, self.constant = _rank_numbers(parts[constant], self.graph.n_events)
        self.constant_counts = np.bincount(owner[constant], minlength=len(self.kept))

    def _multiply(self, things: Array, owner: Array) -> Array:
        """Fold each alternative's things into one by products of neighbours, shared if equal."""
        n_alternatives, n_things = len(self.kept), sum(map(len, self.height))
        turn = 1
        while True:
            counts = np.bincount(owner, minlength=n_alternatives)
            if counts.max(initial=0) <= 1:
                break
            place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
            left = np.flatnonzero((place % 2 == 0) & (place + 1 < counts[owner]))
            a, b = things[left], things[left + 1]
            low, high = np.minimum(a, b), np.maximum(a, b)
            pairs, which = np.unique(low * n_things + high, return_inverse=True)
            low, high = pairs // n_things, pairs % n_things
            heights = np.concatenate(self.height)
            self.height.append(np.maximum(heights[low], heights[high]))
            self.turn.append(np.full(len(pairs), turn))
            self.factors.append(np.stack([low, high], axis=1))
            things[left] = n_things + which
            stays = np.ones(len(things), bool)
            stays[left + 1] = False
            things, owner = things[stays], owner[stays]
            n_things, turn = n_things + len(pairs), turn + 1
        operand = np.full(n_alternatives, -1, np.int64)
        operand[owner] = things
        return operand

    def circuit(self, roots: Array) -> Circuit:
        n_leaves, n_nodes = len(self.leaves), self.graph.n_nodes
        height, turn = np.concatenate(self.height), np.concatenate(self.turn)
        empty = np.empty((0, 2), np.int64)
        factors = np.concatenate(self.factors) if self.factors else empty
        used = self._used(factors, len(height))
        self._place_leaves(height, factors)
        line = np.lexsort((turn, height))
        line = line[used[line]]
        row = np.full(len(height) + 1, -1, np.int64)
        row[line] = np.arange(1, len(line) + 1)
        row[-1] = 0  # the row of ONE, reached by operand -1
        node_row = row[n_leaves : n_leaves + n_nodes]
        by_row = np.argsort(node_row[self.node], kind="stable")
        n_rows = len(line) + 1
        kind, x, y = self._arguments(row, factors, by_row, n_rows)
        counts = self.constant_counts[by_row]
        operand = row[self.operand[by_row]]
        use = np.argsort(operand, kind="stable")
        return Circuit(
            CircuitRows(
                kind,
                x,
                y,
                operand.astype(np.uint32),
                np.concatenate([[0], np.cumsum(counts)]),
                self._constants_of(by_row, counts),
                np.searchsorted(operand[use], np.arange(n_rows + 1)),
                use,
                node_row[self.node[by_row]][use].astype(np.uint32),
                node_row[roots],
            ),
            self.constants,
            self.leaves,
            node_row,
            self.kept[by_row],
        )

    def _used(self, factors: Array, n_things: int) -> Array:
        """Which things get a row: a leaf that only scales other things does not."""
        n_leaves, n_nodes = len(self.leaves), self.graph.n_nodes
        used = np.ones(n_things, bool)
        used[: n_leaves + n_nodes] = False
        used[n_leaves + np.unique(self.node)] = True
        used[self.operand[self.operand >= 0]] = True
        used[factors[:, 1]] = True  # of two factors the larger number is scaled by a leaf
        return used

    def _place_leaves(self, height: Array, factors: Array) -> None:
        """Read a leaf just before it is first used, to keep what is used together together."""
        n_leaves = len(self.leaves)
        height[:n_leaves] = np.iinfo(np.int64).max
        users = np.flatnonzero(factors[:, 1] < n_leaves)
        first_product = len(height) - len(factors)
        np.minimum.at(height, factors[users, 1], height[first_product + users])
        direct = np.flatnonzero((self.operand >= 0) & (self.operand < n_leaves))
        node_height = self.height[1][self.node[direct]]
        np.minimum.at(height, self.operand[direct], node_height)

    def _arguments(
        self, row: Array, factors: Array, by_row: Array, n_rows: int
    ) -> tuple[Array, Array, Array]:
        """What each row is and what it is made of."""
        kind = np.full(n_rows, kernels.ONE, np.int8)
        x, y = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        n_leaves = len(self.leaves)
        with_row = np.flatnonzero(row[:n_leaves] >= 0)
        kind[row[with_row]], x[row[with_row]] = kernels.LEAF, with_row
        products = row[len(row) - 1 - len(factors) : -1]
        scaled = factors[:, 0] < n_leaves
        kind[products] = np.where(scaled, kernels.SCALED, kernels.PRODUCT)
        x[products] = np.where(scaled, factors[:, 0], row[factors[:, 0]])
        y[products] = row[factors[:, 1]]
        sums = row[n_leaves + self.node[by_row]]
        owners, first, count = np.unique(sums, return_index=True, return_counts=True)
        kind[owners], x[owners], y[owners] = kernels.SUM, first, first + count
        return kind, x, y

    def _constants_of(self, by_row: Array, counts: Array) -> Array:
        """The constants of the alternatives in their new order."""
        starts = np.cumsum(self.constant_counts) - self.constant_counts
        shift = np.repeat(starts[by_row] - (np.cumsum(counts) - counts), counts)
        moved: Array = self.constant[np.arange(counts.sum()) + shift]
        return moved


def _rank_numbers(numbers: Array, below: int) -> tuple[Array, Array]:
    """The different numbers, sorted, and the rank of each among them (numpy's unique, unsorted)."""
    there = np.zeros(below, bool)
    there[numbers] = True
    rank = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(there), rank[numbers]


# Bundles: items that share one circuit and run in lockstep


@dataclass(frozen=True)
class EventKeys:
    """The keys of some events of one table: part p of event e is a fixed code or a slot's value."""

    table: str
    events: Array
    fixed: Array
    slot: Array

    def part(self, p: int, values: Array, chosen: Array) -> Array:
        """Codes of part p of the chosen events, (events, columns), or one column if none vary."""
        slot = self.slot[chosen, p]
        fixed: Array = self.fixed[chosen, p][:, None]
        varies = slot >= 0
        if not varies.any():
            return fixed
        observed: Array = values[slot]
        return observed if varies.all() else np.where(varies[:, None], observed, fixed)


@dataclass(frozen=True)
class Bundle:
    """A circuit with its items: item (root, column).

    ``values[slot, column]`` are the codes of observed values, ``constant`` and ``leaf`` the global
    entries (filled in by `bound`), ``numbers[root, column]`` the items' numbers in the data.
    """

    circuit: Circuit
    keys: tuple[EventKeys, ...]
    values: Array
    numbers: Array
    constant: Array = field(default_factory=lambda: np.empty(0, np.int64))
    leaf: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def used(self) -> Iterator[tuple[str, list[Array]]]:
        """Every key that takes part in a derivation, as codes, table by table."""
        for keys in self.keys:
            for events in (self.circuit.constants, self.circuit.leaves):
                chosen = np.flatnonzero(np.isin(keys.events, events))
                if len(chosen):
                    parts = range(keys.fixed.shape[1])
                    yield keys.table, [keys.part(p, self.values, chosen) for p in parts]

    def bound(self, support: Support) -> Bundle:
        """The bundle with the entries of its events filled in."""
        n_events = max((int(k.events.max(initial=-1)) + 1 for k in self.keys), default=0)
        n_columns = self.numbers.shape[1]
        constant = np.full(n_events, support.size, np.int64)
        leaf = np.full((len(self.circuit.leaves), n_columns), support.size, np.int64)
        for keys in self.keys:
            parts = range(keys.fixed.shape[1])
            still = np.flatnonzero(np.isin(keys.events, self.circuit.constants))
            codes = [keys.fixed[still, p] for p in parts]
            constant[keys.events[still]] = support.find(keys.table, codes)
            moving = np.flatnonzero(np.isin(keys.events, self.circuit.leaves))
            codes = [keys.part(p, self.values, moving) for p in parts]
            rows = np.searchsorted(self.circuit.leaves, keys.events[moving])
            leaf[rows] = support.find(keys.table, codes)
        return replace(self, constant=constant[self.circuit.constants], leaf=leaf)

    def columns(self, chosen: Array) -> Bundle:
        """The same circuit with fewer items."""
        return replace(self, leaf=self.leaf[:, chosen], numbers=self.numbers[:, chosen])


def list_keys(graph: Hypergraph, lexicon: ValueLexicon) -> tuple[EventKeys, ...]:
    """The keys of a graph's events, table by table; fixed parts get their codes here."""
    by_table: dict[str, list[int]] = {}
    for number, (table, _) in enumerate(graph.entries):
        by_table.setdefault(table, []).append(number)
    found = []
    for table, events in by_table.items():
        keys = [graph.entries[event][1] for event in events]
        arities = set(map(len, keys))
        if len(arities) > 1:
            raise make_arity_error(table, arities)
        flat = list(chain.from_iterable(keys))
        slot = np.array([part.slots if type(part) is Symbol else -1 for part in flat], np.int64)
        fixed = np.full(len(flat), -1, np.int64)
        fixed[slot < 0] = lexicon.add(part for part in flat if type(part) is not Symbol)
        shape = (len(keys), arities.pop())
        found.append(EventKeys(table, np.array(events), fixed.reshape(shape), slot.reshape(shape)))
    return tuple(found)


def find_varying(keys: Sequence[EventKeys], n_events: int) -> Array:
    """Which events differ between items of the graph's form: those with a slot in their key."""
    varies = np.zeros(n_events, bool)
    for each in keys:
        varies[each.events] = (each.slot >= 0).any(axis=1)
    return varies


def make_arity_error(table: str, arities: set[int]) -> StoryError:
    counts = " and with ".join(str(n) for n in sorted(arities))
    return StoryError(
        f"table {table!r} is used with {counts} indices",
        "a table has one form: the conditions, then the outcome",
    )


def make_support(
    bundles: Sequence[Bundle], tables: Mapping[str, StoryTable], lexicon: ValueLexicon
) -> Support:
    """The entries that occur in the bundles' derivations."""
    chunks: dict[str, list[list[Array]]] = {}
    for each in bundles:
        for name, parts in each.used():
            chunks.setdefault(name, []).append(parts)
    for name, found in chunks.items():
        arities = {len(parts) for parts in found}
        if len(arities) > 1:
            raise make_arity_error(name, arities)
    for table in tables.values():
        lexicon.add(table.outcomes or ())
    return Support(
        {
            name: TableSupport.of(name, found, tables[name].outcomes, lexicon)
            for name, found in chunks.items()
        },
        lexicon,
    )


def merge_graphs(graphs: Sequence[Hypergraph]) -> tuple[Hypergraph, Array]:
    """Several graphs as one with several roots; equal entries become one event."""
    entries: dict[TableEntry, int] = {}
    node_ends, alternative_ends = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    parts, roots = [], []
    calls: list[tuple[Story, tuple[Any, ...]]] = []
    tables: dict[str, StoryTable] = {}
    n_nodes = n_alternatives = n_parts = 0
    for graph in graphs:
        events = np.array([entries.setdefault(e, len(entries)) for e in graph.entries], np.int64)
        is_event = graph.parts < graph.n_events
        renumbered = graph.parts - graph.n_events + n_nodes
        renumbered[is_event] = -1 - events[graph.parts[is_event]]  # told apart once all are known
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
    flat = np.where(flat < 0, -1 - flat, flat + len(entries))
    joined = Hypergraph(
        np.concatenate(node_ends),
        np.concatenate(alternative_ends),
        flat,
        tuple(entries),
        tuple(calls),
        tables,
    )
    return joined, np.array(roots, np.int64)
