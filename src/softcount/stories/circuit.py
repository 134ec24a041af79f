"""Traces as flat arrays: supports of tables, circuits, bundles of like ones.

Which entries each table has, where they stand, and how keys are found again.

A table's keys form a trie: part by part, ``id(prefix, part) = rank of (id(prefix), code(part))``
among those that occur. The last level's ranks are the entries, sorted by condition: rows in CSR
manner without further work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from softcount.errors import StoryError
from softcount.stories import kernels as kernel
from softcount.stories.kernels import Rows, levels, useful
from softcount.stories.language import Entry, Story, Symbol, Table, describe
from softcount.stories.tracing import Trail
from softcount.types import Array

_DENSE = 1 << 25
"""Up to this many possible keys we look them up in one array."""


class Lexicon:
    """Numbers for values, in order of first appearance."""

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self._codes: dict[Hashable, int] = {}
        self.values: list[Hashable] = []
        self.add(values)

    def __len__(self) -> int:
        return len(self.values)

    def add(self, values: Iterable[Hashable]) -> Array:
        """The values' numbers; new values get new ones."""
        codes, known = self._codes, self.values
        found = []
        for value in values:
            code = codes.get(value)
            if code is None:
                code = codes[value] = len(known)
                known.append(value)
            found.append(code)
        return np.array(found, np.int64)

    def closed(self) -> Lexicon:
        """The same numbers for the same values, and -1 for all others, for ever."""
        return _ClosedLexicon(self)

    def find(self, values: Iterable[Hashable]) -> Array:
        """The values' numbers, -1 for what is not known."""
        return np.array([self._codes.get(value, -1) for value in values], np.int64)


class _ClosedLexicon(Lexicon):
    """A lexicon to which nothing can be added: further data must not change a fitted model."""

    def __init__(self, whole: Lexicon) -> None:
        self._codes, self.values = whole._codes, whole.values

    def add(self, values: Iterable[Hashable]) -> Array:
        return self.find(values)


class Level:
    """One level of the trie: which (prefix, code) pairs there are."""

    def __init__(self, keys: Array, radix: int, n_prefixes: int) -> None:
        self.keys, self.radix = keys, radix
        self._ranks: Array | None = None
        if n_prefixes * radix <= _DENSE:
            self._ranks = np.full(n_prefixes * radix, -1, np.int32)
            self._ranks[keys] = np.arange(len(keys))

    @classmethod
    def of(cls, chunks: Sequence[tuple[Array, Array]], radix: int, n_prefixes: int) -> Level:
        size = n_prefixes * radix
        if size <= _DENSE:
            there = np.zeros(size, bool)
            for prefix, code in chunks:
                there[prefix * radix + code] = True
            return cls(np.flatnonzero(there), radix, n_prefixes)
        found = [np.unique(prefix * radix + code) for prefix, code in chunks]
        return cls(np.unique(np.concatenate(found)), radix, n_prefixes)

    def rank(self, prefix: Array, code: Array) -> Array:
        """Where (prefix, code) stands, -1 if it never occurred."""
        known = (prefix >= 0) & (code >= 0) & (code < self.radix)
        keys = np.where(known, prefix * self.radix + code, 0)
        if self._ranks is not None:
            return np.where(known, self._ranks[keys], -1)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(known & (self.keys[place] == keys), place, -1)


@dataclass(frozen=True)
class TableSupport:
    """The entries of one table."""

    name: str
    levels: tuple[Level, ...]
    lexicon: Lexicon = field(repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        chunks: Sequence[Sequence[Array]],
        declared: Sequence[Hashable] | None,
        lexicon: Lexicon,
    ) -> TableSupport:
        """From chunks of keys, each a list of arrays (one a part) that broadcast together."""
        declared_codes = None if declared is None else lexicon.add(declared)
        arity, radix = len(chunks[0]), max(len(lexicon), 1)
        prefixes = [np.zeros((), np.int64) for _ in chunks]
        levels: list[Level] = []
        n_prefixes = 1
        for part in range(arity):
            pairs = [(p, chunk[part]) for p, chunk in zip(prefixes, chunks, strict=True)]
            if declared_codes is not None and part == arity - 1:
                _check_declared(name, pairs, declared_codes, lexicon)
                pairs = [(np.arange(n_prefixes)[:, None], declared_codes[None, :])]
            level = Level.of(pairs, radix, n_prefixes)
            levels.append(level)
            if part < arity - 1:
                prefixes = [level.rank(prefix, code) for prefix, code in pairs]
                n_prefixes = len(level.keys)
        return cls(name, tuple(levels), lexicon)

    @property
    def arity(self) -> int:
        return len(self.levels)

    def __len__(self) -> int:
        return len(self.levels[-1].keys)

    def find(self, parts: Sequence[Array]) -> Array:
        """Entries of keys given as codes, part by part (arrays that broadcast); -1 if unknown."""
        prefix: Array = np.zeros((), np.int64)
        for level, code in zip(self.levels, parts, strict=True):
            prefix = level.rank(prefix, code)
        return prefix

    def has(self, parts: Sequence[Hashable]) -> bool:
        """Whether some key begins with these parts."""
        prefix: Array = np.zeros(1, np.int64)
        for level, code in zip(self.levels, self.lexicon.find(parts), strict=False):
            prefix = level.rank(prefix, np.array([code]))
        return bool(prefix[0] >= 0)

    def can_be(self, outcome: Hashable) -> bool:
        """Whether this is an outcome of any row."""
        return bool(np.isin(self.lexicon.find([outcome]), self.outcomes)[0])

    @cached_property
    def outcomes(self) -> Array:
        """The codes of all outcomes of all rows."""
        level = self.levels[-1]
        return np.unique(level.keys % level.radix)

    @cached_property
    def indptr(self) -> Array:
        """Row r has entries indptr[r]:indptr[r + 1]."""
        n_rows = len(self.levels[-2].keys) if self.arity > 1 else 1
        rows = self.levels[-1].keys // self.levels[-1].radix
        return np.searchsorted(rows, np.arange(n_rows + 1))

    @cached_property
    def codes(self) -> Array:
        """The codes of every entry's key, (entries, parts)."""
        columns, ranks = [], np.arange(len(self))
        for level in reversed(self.levels):
            keys = level.keys[ranks]
            columns.append(keys % level.radix)
            ranks = keys // level.radix
        return np.stack(columns[::-1], axis=1)

    @property
    def n_outcomes(self) -> int:
        """How many different outcomes the table has, over all rows."""
        return len(self.outcomes)

    def every_key(self) -> list[tuple[Hashable, ...]]:
        """Every entry's key, in order."""
        values = self.lexicon.values
        return [tuple(values[code] for code in codes) for codes in self.codes]


def _check_declared(name: str, pairs: Any, declared: Array, lexicon: Lexicon) -> None:
    for _, code in pairs:
        strange = np.setdiff1d(code, declared)
        if len(strange):
            raise StoryError(
                f"table {name!r} meets the outcome {lexicon.values[strange[0]]!r}, which is not "
                "among its declared outcomes",
                "add it to table(…, outcomes=…), or declare none",
            )


class Support:
    """All tables of a story, one after the other in one vector of entries.

    Entry ``size`` (one past the last) stands for what is not in any table and has probability 0.
    """

    def __init__(self, tables: Mapping[str, TableSupport], lexicon: Lexicon) -> None:
        self.tables, self.lexicon = dict(tables), lexicon
        ends = np.cumsum([0, *map(len, self.tables.values())])
        self.offsets = dict(zip(self.tables, ends[:-1].tolist(), strict=True))
        self.size = int(ends[-1])

    def find(self, table: str, parts: Sequence[Array]) -> Array:
        """Global entries of keys given as codes; `size` for what is unknown."""
        if table not in self.tables or self.tables[table].arity != len(parts):
            return np.full(np.broadcast_shapes(*map(np.shape, parts)), self.size)
        found = self.tables[table].find(parts)
        return np.where(found >= 0, found + self.offsets[table], self.size)

    def slices(self, entries: Array) -> list[tuple[str, slice, Array]]:
        """For sorted entries: each table's share of them, and the places within that table."""
        shares = []
        for name, table in self.tables.items():
            first = self.offsets[name]
            start, stop = np.searchsorted(entries, [first, first + len(table)]).tolist()
            shares.append((name, slice(start, stop), entries[start:stop] - first))
        return shares


# Compiling: from a trail to a circuit, flat rows that a kernel runs through (kernels/circuit.py).
#
# Two alternatives that multiply the same two things share one product row. For an HMM that makes
# the rows of a position a matrix product, for a grammar it shares a pair of spans between all
# rules.


@dataclass(frozen=True)
class Circuit:
    """The rows of one or more trails.

    ``rows.constant`` numbers the events that are the same in all lanes: ``constants[i]`` is event
    i's number in the trail. ``leaves[l]`` is the trail's number of leaf l's event.
    ``node_row`` and ``alternatives`` lead from and to the trail, for those who read derivations.
    """

    rows: Rows
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


def compile_trail(trail: Trail, roots: Array, varies: Array) -> Circuit | None:
    """A trail's circuit; ``varies[e]`` says whether event e differs between lanes.

    None if some root has no finished derivation.
    """
    shape = (trail.node_ends, trail.alternative_ends, trail.parts, trail.n_events, roots)
    level, alive, culprit = levels(*shape)
    if culprit >= 0:
        raise StoryError(
            f"{describe(*trail.calls[culprit])} needs itself: it is a part of its own derivations",
            "every call must come closer to the end: pass a position or a length that moves",
        )
    if not alive[roots].all():
        return None
    order = np.argsort(-level, kind="stable")
    keep = useful(*shape, level, alive, order)
    return _Assembly(trail, np.flatnonzero(keep), level, varies).circuit(roots)


def compile_alone(trail: Trail) -> Circuit | None:
    """The circuit of a trail that shares it with nobody: every event is a constant."""
    return compile_trail(trail, np.zeros(1, np.int64), np.zeros(trail.n_events, bool))


class _Assembly:
    """A circuit under construction.

    Things to multiply are numbered: leaves, then nodes, then products as they are found; -1 is ONE.
    ``height`` of a thing is the level from which on it can be computed, ``turn`` its place in line
    among things of one height: leaves first, then sums, then products, simple ones first.
    """

    def __init__(self, trail: Trail, kept: Array, level: Array, varies: Array) -> None:
        self.trail, self.kept = trail, kept
        self.node = np.repeat(np.arange(trail.n_nodes), np.diff(trail.node_ends))[kept]
        counts = np.diff(trail.alternative_ends)[kept]
        owner = np.repeat(np.arange(len(kept)), counts)
        first = np.repeat(trail.alternative_ends[kept] - (np.cumsum(counts) - counts), counts)
        parts = trail.parts[np.arange(len(owner)) + first]
        is_event = parts < trail.n_events
        is_leaf = np.zeros(len(parts), bool)
        is_leaf[is_event] = varies[parts[is_event]]
        self._number_events(parts, is_event & ~is_leaf, is_leaf, owner)
        n_leaves = len(self.leaves)
        things = np.where(is_leaf, 0, parts - trail.n_events + n_leaves)
        things[is_leaf] = _ranked(parts[is_leaf], trail.n_events)[1]
        variable = is_leaf | ~is_event
        self.height = [np.zeros(n_leaves, np.int64), level]
        self.turn = [np.full(n_leaves, -1), np.zeros(trail.n_nodes, np.int64)]
        self.factors: list[Array] = []
        self.operand = self._multiply(things[variable], owner[variable])

    def _number_events(self, parts: Array, constant: Array, leaf: Array, owner: Array) -> None:
        self.leaves, _ = _ranked(parts[leaf], self.trail.n_events)
        self.constants, self.constant = _ranked(parts[constant], self.trail.n_events)
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
        n_leaves, n_nodes = len(self.leaves), self.trail.n_nodes
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
            Rows(
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
        n_leaves, n_nodes = len(self.leaves), self.trail.n_nodes
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
        kind = np.full(n_rows, kernel.ONE, np.int8)
        x, y = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        n_leaves = len(self.leaves)
        with_row = np.flatnonzero(row[:n_leaves] >= 0)
        kind[row[with_row]], x[row[with_row]] = kernel.LEAF, with_row
        products = row[len(row) - 1 - len(factors) : -1]
        scaled = factors[:, 0] < n_leaves
        kind[products] = np.where(scaled, kernel.SCALED, kernel.PRODUCT)
        x[products] = np.where(scaled, factors[:, 0], row[factors[:, 0]])
        y[products] = row[factors[:, 1]]
        sums = row[n_leaves + self.node[by_row]]
        owners, first, count = np.unique(sums, return_index=True, return_counts=True)
        kind[owners], x[owners], y[owners] = kernel.SUM, first, first + count
        return kind, x, y

    def _constants_of(self, by_row: Array, counts: Array) -> Array:
        """The constants of the alternatives in their new order."""
        starts = np.cumsum(self.constant_counts) - self.constant_counts
        shift = np.repeat(starts[by_row] - (np.cumsum(counts) - counts), counts)
        moved: Array = self.constant[np.arange(counts.sum()) + shift]
        return moved


def _ranked(numbers: Array, below: int) -> tuple[Array, Array]:
    """The different numbers, sorted, and the rank of each among them (numpy's unique, unsorted)."""
    there = np.zeros(below, bool)
    there[numbers] = True
    rank = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(there), rank[numbers]


# Items that run in lockstep: one circuit, and for each item the entries its leaves stand for.


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
