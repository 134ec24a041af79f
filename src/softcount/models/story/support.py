"""Which entries each table has, where they stand, and how keys are found again.

A table's keys form a trie: part by part, ``id(prefix, part) = rank of (id(prefix), code(part))``
among those that occur. The last level's ranks are the entries, sorted by condition: rows in CSR
manner without further work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from softcount.errors import StoryError
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
