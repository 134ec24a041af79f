"""A story's tables: their entries, their display to users, and their form in files.

A table's keys form a trie: part by part, ``id(prefix, part) = rank of (id(prefix), code(part))``
among the pairs that occur. The ranks of the last level are the entries, sorted by condition, so
they form the rows of a CSR matrix without further work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from softcount.core.display import Grid, grid_of_rows
from softcount.core.errors import MissingEntry, StoreError, StoryError
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.store import Stored
from softcount.core.types import Array, FloatArray, IntArray, Params

_DENSE = 1 << 25
"""Up to this many possible keys, ranks are looked up in a dense array."""


class ValueLexicon:
    """Codes for values, numbered in order of first appearance."""

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self._is_frozen = False
        self._codes: dict[Hashable, int] = {}
        self.values: list[Hashable] = []
        self.add(values)

    def __reduce__(self) -> tuple[Any, ...]:  # the values alone: their order says the codes
        return ValueLexicon, (self.values,), {"_is_frozen": self._is_frozen}

    def __len__(self) -> int:
        return len(self.values)

    def add(self, values: Iterable[Hashable]) -> IntArray:
        """Return the values' codes; new values get new codes, unless the lexicon is frozen."""
        if self._is_frozen:
            return self.find(values)
        codes, known = self._codes, self.values
        result = []
        for value in values:
            code = codes.get(value)
            if code is None:
                code = codes[value] = len(known)
                known.append(value)
            result.append(code)
        return np.array(result, np.int64)

    def freeze(self) -> ValueLexicon:
        """Return a lexicon with the same codes that gives -1 to all other values.

        Further data must not change a fitted model.
        """
        frozen = ValueLexicon()
        frozen._is_frozen, frozen._codes, frozen.values = True, self._codes, self.values
        return frozen

    def find(self, values: Iterable[Hashable]) -> IntArray:
        """Return the values' codes, -1 for unknown values."""
        return np.array([self._codes.get(value, -1) for value in values], np.int64)


class TrieLevel(PickledWithoutCaches):
    """One level of the trie: the (prefix, code) pairs that occur."""

    def __init__(self, keys: IntArray, radix: int, n_prefixes: int) -> None:
        self.keys, self.radix, self.n_prefixes = keys, radix, n_prefixes

    @cached_property
    def _ranks(self) -> IntArray | None:
        """The rank of every possible key, −1 if it never occurred; None if there are too many."""
        size = self.n_prefixes * self.radix
        if size > _DENSE:
            return None
        ranks = np.full(size, -1, np.int32)
        ranks[self.keys] = np.arange(len(self.keys))
        return ranks

    @classmethod
    def of(
        cls, chunks: Sequence[tuple[IntArray, IntArray]], radix: int, n_prefixes: int
    ) -> TrieLevel:
        """Make a level from chunks of (prefixes, codes), two arrays that broadcast together."""
        size = n_prefixes * radix
        if size <= _DENSE:
            occurs = np.zeros(size, bool)
            for prefix, code in chunks:
                occurs[prefix * radix + code] = True
            return cls(np.flatnonzero(occurs), radix, n_prefixes)
        keys = [np.unique(prefix * radix + code) for prefix, code in chunks]
        return cls(np.unique(np.concatenate(keys)), radix, n_prefixes)

    def rank(self, prefix: IntArray, code: IntArray) -> IntArray:
        """Return the rank of (prefix, code), -1 if it never occurred."""
        known = (prefix >= 0) & (code >= 0) & (code < self.radix)
        keys = np.where(known, prefix * self.radix + code, 0)
        if self._ranks is not None:
            return np.where(known, self._ranks[keys], -1)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(known & (self.keys[place] == keys), place, -1)


@dataclass(frozen=True)
class TableSupport(PickledWithoutCaches):
    """The entries of one table."""

    name: str
    levels: tuple[TrieLevel, ...]
    lexicon: ValueLexicon = field(repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        chunks: Sequence[Sequence[IntArray]],
        declared: Sequence[Hashable] | None,
        lexicon: ValueLexicon,
    ) -> TableSupport:
        """Make the support from chunks of keys: one array per part, which broadcast together."""
        declared_codes = None if declared is None else lexicon.add(declared)
        arity, radix = len(chunks[0]), max(len(lexicon), 1)
        prefixes: list[IntArray] = [np.zeros((), np.int64) for _ in chunks]
        levels: list[TrieLevel] = []
        n_prefixes = 1
        for part in range(arity):
            pairs = [(p, chunk[part]) for p, chunk in zip(prefixes, chunks, strict=True)]
            if declared_codes is not None and part == arity - 1:
                for _, code in pairs:
                    unknown = np.setdiff1d(code, declared_codes)
                    if len(unknown):
                        raise StoryError(
                            f"table {name!r} is used with the outcome "
                            f"{lexicon.values[unknown[0]]!r}, which is not among its declared "
                            "outcomes",
                            "add it to table(…, outcomes=…), or leave outcomes out",
                        )
                pairs = [(np.arange(n_prefixes)[:, None], declared_codes[None, :])]
            level = TrieLevel.of(pairs, radix, n_prefixes)
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

    def find(self, parts: Sequence[IntArray]) -> IntArray:
        """Look up entries by codes, one array per part (they broadcast); -1 if unknown."""
        prefix: IntArray = np.zeros((), np.int64)
        for level, code in zip(self.levels, parts, strict=True):
            prefix = level.rank(prefix, code)
        return prefix

    def has(self, parts: Sequence[Hashable]) -> bool:
        """Return whether any key begins with these parts."""
        prefix: IntArray = np.zeros(1, np.int64)
        for level, code in zip(self.levels, self.lexicon.find(parts), strict=False):
            prefix = level.rank(prefix, np.array([code]))
        return bool(prefix[0] >= 0)

    def can_be(self, outcome: Hashable) -> bool:
        """Return whether this is an outcome of any row."""
        return bool(np.isin(self.lexicon.find([outcome]), self.outcomes)[0])

    @cached_property
    def outcomes(self) -> IntArray:
        """The codes of all outcomes of all rows."""
        level = self.levels[-1]
        return np.unique(level.keys % level.radix)

    @cached_property
    def indptr(self) -> IntArray:
        """Row r has entries indptr[r]:indptr[r + 1]."""
        n_rows = len(self.levels[-2].keys) if self.arity > 1 else 1
        rows = self.levels[-1].keys // self.levels[-1].radix
        return np.searchsorted(rows, np.arange(n_rows + 1))

    @cached_property
    def codes(self) -> IntArray:
        """The codes of every entry's key, (entries, parts)."""
        columns: list[IntArray] = []
        ranks: IntArray = np.arange(len(self))
        for level in reversed(self.levels):
            keys = level.keys[ranks]
            columns.append(keys % level.radix)
            ranks = keys // level.radix
        return np.stack(columns[::-1], axis=1)

    @property
    def n_outcomes(self) -> int:
        """Number of different outcomes over all rows."""
        return len(self.outcomes)

    def entry_keys(self) -> list[tuple[Hashable, ...]]:
        """List every entry's key, in order."""
        values = self.lexicon.values
        return [tuple(values[code] for code in codes) for codes in self.codes]


class Support:
    """All tables of a story, laid end to end in one vector of entries.

    Entry ``size`` (one past the last) stands for anything in no table; its probability is 0.
    """

    def __init__(self, tables: Mapping[str, TableSupport], lexicon: ValueLexicon) -> None:
        self.tables, self.lexicon = dict(tables), lexicon
        ends = np.cumsum([0, *map(len, self.tables.values())])
        self.offsets = dict(zip(self.tables, ends[:-1].tolist(), strict=True))
        self.size = int(ends[-1])

    def find(self, table: str, parts: Sequence[IntArray]) -> IntArray:
        """Look up global entries by codes; ``size`` for unknown keys."""
        if table not in self.tables or self.tables[table].arity != len(parts):
            return np.full(np.broadcast_shapes(*map(np.shape, parts)), self.size)
        entries = self.tables[table].find(parts)
        return np.where(entries >= 0, entries + self.offsets[table], self.size)


_SHOWN = 8  # number of rows printed, and of outcomes per row


class TableView(Mapping[Hashable, Any]):
    """A table, or the part of it below some condition: ``view["A"]["H"]`` or ``view["A", "H"]``.

    Rows iterate over their outcomes, the most probable first. An outcome that only other rows have
    was never counted in this one: its probability is 0, though it is not listed.
    """

    def __init__(
        self, support: TableSupport, values: FloatArray, depth: int = 0, prefix: int = 0
    ) -> None:
        self._support, self._values = support, values
        self._depth, self._prefix = depth, prefix

    @property
    def is_row(self) -> bool:
        return self._depth == self._support.arity - 1

    def _below(self) -> IntArray:
        """Return the ranks, in the next level, of the keys below this prefix."""
        level = self._support.levels[self._depth]
        borders = level.radix * np.array([self._prefix, self._prefix + 1])
        start, stop = np.searchsorted(level.keys, borders)
        return np.arange(start, stop)

    def __getitem__(self, key: Hashable) -> Any:
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView):
                raise MissingEntry(
                    f"table {self._support.name!r} has no entry {key!r}: the key has too many "
                    "parts",
                    f"keys of this table have {self._support.arity}",
                )
            view = view._step(part, key)
        return view

    def __contains__(self, key: object) -> bool:
        """Return whether the key is listed; entries of probability 0 need not be."""
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView) or view._rank(part) < 0:
                return False
            view = view._step(part, part)
        return True

    def _wants_parts(self, key: tuple[Hashable, ...]) -> bool:
        """Return whether a tuple is a path of parts: it is, unless it is itself a part."""
        if self._rank(key) >= 0:
            return False
        return not (self.is_row and self._support.can_be(key))

    def _rank(self, part: Any) -> int:
        """Return the rank of a part in the next level, −1 if it is not there."""
        code = self._support.lexicon.find([part])
        return int(self._support.levels[self._depth].rank(np.array([self._prefix]), code)[0])

    def _step(self, part: Hashable, key: Hashable) -> Any:
        rank = self._rank(part)
        if rank >= 0 and self.is_row:
            return float(self._values[rank])
        if rank >= 0:
            return TableView(self._support, self._values, self._depth + 1, rank)
        if self.is_row and self._support.can_be(part):
            return 0.0
        what = "outcome" if self.is_row else "condition"
        values, outcomes = self._support.lexicon.values, self._support.outcomes.tolist()
        known = [str(values[code]) for code in outcomes] if self.is_row else list(map(str, self))
        close = get_close_matches(str(part), known, n=1)
        raise MissingEntry(
            f"table {self._support.name!r} has no entry {key!r}: the {what} {part!r} never "
            f"occurred {'in it' if self.is_row else 'here'}",
            (f"did you mean {close[0]}? " if close else "")
            + "iterate over the table to see its entries; declare further outcomes with "
            "table(name, outcomes=…)",
        )

    def __iter__(self) -> Iterator[Hashable]:
        below = self._below()
        if self.is_row:
            below = below[np.argsort(-self._values[below], kind="stable")]
        level = self._support.levels[self._depth]
        known = self._support.lexicon.values
        return (known[code] for code in (level.keys[below] % level.radix).tolist())

    def __len__(self) -> int:
        return len(self._below())

    def rows(self) -> Iterator[tuple[tuple[Hashable, ...], TableView]]:
        """Yield all rows below, with their conditions."""
        if self.is_row:
            yield (), self
            return
        for part in self:
            for rest, row in self._step(part, part).rows():
                yield (part, *rest), row

    def to_dict(self) -> dict[Any, Any]:
        """Convert to plain nested dictionaries."""
        return {k: v.to_dict() if isinstance(v, TableView) else v for k, v in self.items()}

    def grid(self) -> Grid:
        """Return what is printed: a row per condition, one order of outcomes for all rows."""
        rows = {condition: row.in_order() for condition, row in islice(self.rows(), _SHOWN + 1)}
        left_out = len(rows) > _SHOWN
        if left_out:
            rows.popitem()
        lexicon, values = self._support.lexicon, {p for row in rows.values() for p in row}
        order = dict(zip(values, lexicon.find(values).tolist(), strict=True))
        rows = {
            name: {p: row[p] for p in sorted(row, key=order.__getitem__)}
            for name, row in rows.items()
        }
        return grid_of_rows(self._support.name, rows, _SHOWN, left_out)

    def in_order(self) -> dict[Hashable, float]:
        """Return a row's probabilities in the order in which outcomes first occurred."""
        level, known = self._support.levels[self._depth], self._support.lexicon.values
        below = self._below()
        codes = (level.keys[below] % level.radix).tolist()
        return dict(zip((known[c] for c in codes), self._values[below].tolist(), strict=True))

    def __repr__(self) -> str:
        return str(self.grid())

    def _repr_html_(self) -> str:
        return self.grid().html()


class TablesView(Mapping[str, TableView]):
    """All tables of a story by name."""

    def __init__(self, tables: Mapping[str, TableView]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> TableView:
        if name not in self._tables:
            raise MissingEntry(
                f"there is no table {name!r} in this story",
                f"its tables are {', '.join(self._tables)}",
            )
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def to_dict(self) -> dict[str, dict[Any, Any]]:
        """Convert to plain nested dictionaries."""
        return {name: view.to_dict() for name, view in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._tables.values()))

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self._tables.values())


# Tables in files: arrays and JSON metadata, for `softcount.core.store`


def pack_tables(support: Support, params: Params) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the tables' keys and probabilities as arrays, and the metadata."""
    arrays: dict[str, Array] = {}
    facts: list[dict[str, Any]] = []
    for number, (name, entries) in enumerate(support.tables.items()):
        arrays[f"{number}.probability"] = np.asarray(params[name])[: len(entries)]
        for depth, level in enumerate(entries.levels):
            arrays[f"{number}.level.{depth}"] = level.keys
        facts.append({"name": name, "arity": entries.arity, "radix": entries.levels[0].radix})
    values = [_to_json(value) for value in support.lexicon.values]
    return arrays, {"tables": facts, "values": values}


def unpack_tables(stored: Stored) -> tuple[Support, Params]:
    """Read the tables and their parameters; indices are checked before they are used."""
    try:
        lexicon = ValueLexicon(_from_json(value) for value in stored.meta["values"])
        tables: dict[str, TableSupport] = {}
        params: dict[str, Array] = {}
        for number, facts in enumerate(stored.meta["tables"]):
            name, radix, arity = str(facts["name"]), int(facts["radix"]), int(facts["arity"])
            if not 1 <= arity <= 64 or not 1 <= radix <= max(len(lexicon), 1):
                raise _damaged("a table's form is out of range")
            levels: list[TrieLevel] = []
            n_prefixes = 1
            for depth in range(arity):
                keys = stored.arrays[f"{number}.level.{depth}"]
                valid = keys.dtype == np.int64 and keys.ndim == 1 and len(keys) > 0
                valid = valid and keys[0] >= 0 and keys[-1] < n_prefixes * radix
                if not valid or (np.diff(keys) <= 0).any():
                    raise _damaged("a table's keys are out of order")
                levels.append(TrieLevel(keys, radix, n_prefixes))
                n_prefixes = len(keys)
            tables[name] = TableSupport(name, tuple(levels), lexicon)
            array = params[name] = stored.arrays[f"{number}.probability"]
            if array.dtype != np.float64 or array.shape != (n_prefixes,):
                raise _damaged("a table does not have one number per entry")
            if not np.isfinite(array).all() or (array < 0).any():
                raise _damaged("a table has numbers that are not probabilities")
    except StoreError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _damaged(str(error)) from error
    return Support(tables, lexicon), params


def _to_json(value: Hashable) -> Any:
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise StoreError(
        f"a table's key contains {value!r}, which cannot be written to a file",
        "use words, numbers and tuples of them as parts of keys",
    )


def _from_json(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if value is None or type(value) in (str, int, float, bool):
        return value  # type: ignore[no-any-return]
    raise _damaged("a value has an unknown type")


def _damaged(what: str) -> StoreError:
    return StoreError(f"this is not a valid file of story tables: {what}", "save the model again")
