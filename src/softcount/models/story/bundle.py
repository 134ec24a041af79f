"""Items that run in lockstep: one circuit, and for each item the entries its leaves stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from softcount.errors import StoryError
from softcount.models.story.circuit import Circuit
from softcount.models.story.language import Entry, Story, Table
from softcount.models.story.support import Lexicon, Support, TableSupport
from softcount.models.story.symbols import Symbol
from softcount.models.story.trail import Trail
from softcount.types import Array


@dataclass(frozen=True)
class Keys:
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
    keys: tuple[Keys, ...]
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


def keys_of(trail: Trail, lexicon: Lexicon) -> tuple[Keys, ...]:
    """The keys of a trail's events, table by table; fixed parts get their codes here."""
    by_table: dict[str, list[int]] = {}
    for number, (table, _) in enumerate(trail.entries):
        by_table.setdefault(table, []).append(number)
    found = []
    for table, events in by_table.items():
        keys = [trail.entries[event][1] for event in events]
        arities = set(map(len, keys))
        if len(arities) > 1:
            raise arity_error(table, arities)
        flat = list(chain.from_iterable(keys))
        slot = np.array([part.slots if type(part) is Symbol else -1 for part in flat], np.int64)
        fixed = np.full(len(flat), -1, np.int64)
        fixed[slot < 0] = lexicon.add(part for part in flat if type(part) is not Symbol)
        shape = (len(keys), arities.pop())
        found.append(Keys(table, np.array(events), fixed.reshape(shape), slot.reshape(shape)))
    return tuple(found)


def varying(keys: Sequence[Keys], n_events: int) -> Array:
    """Which events differ between items of the trail's form: those with a slot in their key."""
    varies = np.zeros(n_events, bool)
    for each in keys:
        varies[each.events] = (each.slot >= 0).any(axis=1)
    return varies


def arity_error(table: str, arities: set[int]) -> StoryError:
    counts = " and with ".join(str(n) for n in sorted(arities))
    return StoryError(
        f"table {table!r} is used with {counts} indices",
        "a table has one form: the conditions, then the outcome",
    )


def support_of(bundles: Sequence[Bundle], tables: Mapping[str, Table], lexicon: Lexicon) -> Support:
    """The entries that occur in the bundles' derivations."""
    chunks: dict[str, list[list[Array]]] = {}
    for each in bundles:
        for name, parts in each.used():
            chunks.setdefault(name, []).append(parts)
    for name, found in chunks.items():
        arities = {len(parts) for parts in found}
        if len(arities) > 1:
            raise arity_error(name, arities)
    for table in tables.values():
        lexicon.add(table.outcomes or ())
    return Support(
        {
            name: TableSupport.of(name, found, tables[name].outcomes, lexicon)
            for name, found in chunks.items()
        },
        lexicon,
    )


def merged(trails: Sequence[Trail]) -> tuple[Trail, Array]:
    """Several trails as one with several roots; equal entries become one event."""
    entries: dict[Entry, int] = {}
    node_ends, alternative_ends = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    parts, roots = [], []
    calls: list[tuple[Story, tuple[Any, ...]]] = []
    tables: dict[str, Table] = {}
    n_nodes = n_alternatives = n_parts = 0
    for trail in trails:
        events = np.array([entries.setdefault(e, len(entries)) for e in trail.entries], np.int64)
        is_event = trail.parts < trail.n_events
        renumbered = trail.parts - trail.n_events + n_nodes
        renumbered[is_event] = -1 - events[trail.parts[is_event]]  # told apart once all are known
        parts.append(renumbered)
        node_ends.append(trail.node_ends[1:] + n_alternatives)
        alternative_ends.append(trail.alternative_ends[1:] + n_parts)
        roots.append(n_nodes)
        calls.extend(trail.calls)
        tables.update(trail.tables)
        n_nodes += trail.n_nodes
        n_alternatives += trail.n_alternatives
        n_parts += len(trail.parts)
    flat = np.concatenate(parts)
    flat = np.where(flat < 0, -1 - flat, flat + len(entries))
    joined = Trail(
        np.concatenate(node_ends),
        np.concatenate(alternative_ends),
        flat,
        tuple(entries),
        tuple(calls),
        tables,
    )
    return joined, np.array(roots, np.int64)
