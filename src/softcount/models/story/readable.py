"""Tables as people read them: nested mappings that print themselves."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from softcount.errors import MissingEntry
from softcount.models.story.support import TableSupport
from softcount.types import Array

_SHOWN = 8  # rows, and outcomes a row, that are printed


class TableView(Mapping[Hashable, Any]):
    """A table, or the part of it below some condition: ``view["A"]["H"]`` or ``view["A", "H"]``.

    Rows iterate over their outcomes, the most probable first. An outcome that other rows have, and
    this one has not, was never counted here: its probability is 0, though it is not listed.
    """

    def __init__(
        self, support: TableSupport, values: Array, depth: int = 0, prefix: int = 0
    ) -> None:
        self._support, self._values = support, values
        self._depth, self._prefix = depth, prefix

    @property
    def is_row(self) -> bool:
        return self._depth == self._support.arity - 1

    def _below(self) -> Array:
        """Numbers, in the next level, of what stands below this prefix."""
        level = self._support.levels[self._depth]
        borders = level.radix * np.array([self._prefix, self._prefix + 1])
        start, stop = np.searchsorted(level.keys, borders)
        return np.arange(start, stop)

    def __getitem__(self, key: Hashable) -> Any:
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView):
                raise MissingEntry(
                    f"table {self._support.name!r} has no entry {key!r}: it has too many parts",
                    f"a key has {self._support.arity} of them",
                )
            view = view._step(part, key)
        return view

    def __contains__(self, key: object) -> bool:
        """Whether it is listed; what has a probability of 0 need not be."""
        view: Any = self
        for part in key if isinstance(key, tuple) and self._wants_parts(key) else (key,):
            if not isinstance(view, TableView) or view._rank(part) < 0:
                return False
            view = view._step(part, part)
        return True

    def _wants_parts(self, key: tuple[Hashable, ...]) -> bool:
        """A tuple is a path of parts unless it is itself a part."""
        if self._rank(key) >= 0:
            return False
        return not (self.is_row and self._support.can_be(key))

    def _rank(self, part: Any) -> int:
        """Where a part stands in the next level; −1: nowhere."""
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
        known = [str(each) for each in self._outcomes()] if self.is_row else list(map(str, self))
        close = get_close_matches(str(part), known, n=1)
        raise MissingEntry(
            f"table {self._support.name!r} has no entry {key!r}: the {what} {part!r} never "
            f"occurred {'in it' if self.is_row else 'here'}",
            (f"did you mean {close[0]}? " if close else "")
            + "the table lists what it has; declare further outcomes with table(name, outcomes=…)",
        )

    def _outcomes(self) -> list[Hashable]:
        """All outcomes of all rows."""
        values = self._support.lexicon.values
        return [values[code] for code in self._support.outcomes.tolist()]

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
        """All rows below, with their conditions."""
        if self.is_row:
            yield (), self
            return
        for part in self:
            for rest, row in self._step(part, part).rows():
                yield (part, *rest), row

    def to_dict(self) -> dict[Any, Any]:
        """The same as plain nested dictionaries."""
        return {k: v.to_dict() if isinstance(v, TableView) else v for k, v in self.items()}

    def _lines(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """What is printed: conditions, and the likeliest outcomes with their probabilities."""
        for number, (condition, row) in enumerate(self.rows()):
            if number == _SHOWN:
                yield "…", []
                return
            cells = [(str(outcome), f"{row[outcome]:.4f}") for outcome in islice(row, _SHOWN)]
            more = [("…", "")] if len(row) > _SHOWN else []
            yield ", ".join(map(str, condition)), cells + more

    def __repr__(self) -> str:
        lines = [self._support.name]
        for condition, cells in self._lines():
            row = "  ".join(f"{outcome} {p}".rstrip() for outcome, p in cells)
            lines.append("  " + ": ".join(part for part in (condition, row) if part))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for condition, cells in self._lines():
            row = "".join(f"<td>{html.escape(outcome)} <b>{p}</b></td>" for outcome, p in cells)
            rows.append(f"<tr><th>{html.escape(condition)}</th>{row}</tr>")
        name = html.escape(self._support.name)
        # by its name: pages are a layer above this one
        visible = import_module("softcount.show.marks").visible
        return str(visible(f"<table><caption>{name}</caption>{''.join(rows)}</table>"))


class TablesView(Mapping[str, TableView]):
    """All tables of a story by name."""

    def __init__(self, tables: Mapping[str, TableView]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> TableView:
        if name not in self._tables:
            raise MissingEntry(
                f"there is no table {name!r} in this story", f"it has {', '.join(self._tables)}"
            )
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def to_dict(self) -> dict[str, dict[Any, Any]]:
        """The same as plain nested dictionaries."""
        return {name: view.to_dict() for name, view in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._tables.values()))

    def _repr_html_(self) -> str:
        return "".join(view._repr_html_() for view in self._tables.values())
