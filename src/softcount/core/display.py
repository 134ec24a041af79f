"""Short tables for people: as text in a terminal, as HTML in a notebook, as a data frame.

All that prints as a table (posteriors, traces, parameters, reports of checks) is a `Grid` first, so
that all look the same: one order of columns for all rows, numbers to the right, long tables cut in
the middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from softcount.core.errors import SoftcountError
from softcount.core.types import Array

MOST_ROWS, MOST_COLUMNS = 40, 24
"""Longer and wider tables are cut in the middle when they are printed."""


class MissingPackage(SoftcountError, ImportError):
    """An optional package that is needed here is not installed."""


class HasGrid(Protocol):
    """What prints as a table."""

    def grid(self) -> Grid:
        """Return the table."""


class Printed:
    """What prints as its `grid`: as text in a terminal, as HTML in a notebook."""

    def grid(self) -> Grid:
        """Return the table that is printed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self.grid())

    def __str__(self) -> str:
        return str(self.grid())

    def _repr_html_(self) -> str:
        return self.grid().html()


@dataclass(frozen=True)
class Grid:
    """A table of names and numbers.

    ``columns``  heads of the columns
    ``rows``     one sequence of cells per row; NaN and None are blank
    ``title``    a line above the table
    ``n_names``  the number of columns at the left that name the row
    ``note``     a line below the table

    >>> print(Grid(["", "A", "B"], [["HHH", 0.25, 0.75], ["TTT", 0.5, None]], n_names=1))
              A       B
    HHH  0.2500  0.7500
    TTT  0.5000
    """

    columns: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    n_names: int = 0
    note: str = ""

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return heads and rows as text, cut to what can be read."""
        columns = _cut(list(range(len(self.columns))), MOST_COLUMNS)
        rows = _cut(list(range(len(self.rows))), MOST_ROWS)
        heads = ["…" if c is None else name_of(self.columns[c]) for c in columns]
        shown: list[list[str]] = [[] for _ in rows]
        for c in columns:
            values = [None if r is None or c is None else self.rows[r][c] for r in rows]
            for row, text in zip(shown, format_column(values), strict=True):
                row.append(text)
        for row, r in zip(shown, rows, strict=True):
            if r is None:
                row[:] = ["…", *[""] * (len(row) - 1)]
            else:
                row[:] = ["…" if c is None else text for c, text in zip(columns, row, strict=True)]
        return heads, shown

    def __str__(self) -> str:
        heads, rows = self.cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        right = [any(_is_number(row[c]) for row in self.rows) for c in range(len(self.columns))]
        if len(widths) != len(right):  # cut columns are numbers
            right = [*right[: self.n_names], *[True] * (len(widths) - self.n_names)]

        def line(cells: Sequence[str]) -> str:
            sides = zip(cells, widths, right, strict=True)
            return "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in sides).rstrip()

        head = [line(heads)] if any(heads) else []
        return "\n".join([*filter(None, [self.title]), *head, *map(line, rows), *_last(self.note)])

    def html(self) -> str:
        """Return the table as HTML."""
        heads, rows = self.cells()
        # imported by name: the report package is a layer above this one
        render = import_module("softcount.report.page").render
        parts = {"heads": heads, "rows": rows, "n_names": self.n_names}
        template = "report/templates/grid.html"
        return str(render(template, title=self.title, note=self.note, **parts)).strip()


def _last(note: str) -> list[str]:
    return [note] if note else []


def _cut(numbers: list[int], most: int) -> list[int | None]:
    """Return the numbers, those in the middle replaced by None if there are too many."""
    if len(numbers) <= most:
        return list(numbers)
    return [*numbers[: most - 6], None, *numbers[-5:]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def name_of(name: Any) -> str:
    """Return a name as tables show it.

    >>> name_of(("NP", "VP")), name_of(3), name_of(None)
    ('NP, VP', '3', '')
    """
    if isinstance(name, tuple) and not hasattr(name, "_fields"):
        return ", ".join(map(name_of, name))
    text = "" if name is None else str(name)
    return " ".join(text.split()) or (repr(text) if text else "")


def format_column(values: Sequence[Any]) -> list[str]:
    """Format the cells of a column, all numbers with the same number of digits.

    >>> format_column([0.25, 1.0, None])
    ['0.2500', '1.0000', '']
    >>> format_column([-7.499076, -2.772725])
    ['-7.499076', '-2.772725']
    """
    floats = [float(v) for v in values if _is_number(v) and not isinstance(v, int | np.integer)]
    size = max((abs(v) for v in floats if np.isfinite(v)), default=0.0)
    least = min((v for v in floats if np.isfinite(v)), default=0.0)
    form = ".4f" if size <= 1.0 and least >= 0.0 else ".6f" if size < 1e4 else ",.2f"
    if size >= 1e12:
        form = ".4g"
    shown = []
    for value in values:
        if value is None:
            shown.append("")
        elif not _is_number(value):
            shown.append(name_of(value))
        elif isinstance(value, int | np.integer):
            shown.append(str(int(value)))
        elif np.isnan(value):
            shown.append("")
        else:
            text = format(float(value), form)
            shown.append(text.replace("-0.0000", "0.0000") if text == "-0.0000" else text)
    return shown


def make_frame(
    columns: Mapping[Any, Any],
    index: Mapping[str, Sequence[Any]] | None = None,
    column_name: str | None = None,
) -> Any:
    """Make a data frame of pandas, which is imported here.

    ``columns``      their values by name
    ``index``        names of rows: one level or several
    ``column_name``  what the columns are
    """
    try:
        pd = import_module("pandas")
    except ImportError:
        raise MissingPackage(
            "data frames need pandas, which is not installed", "pip install pandas"
        ) from None
    names = list(columns)
    frame = pd.DataFrame({number: columns[name] for number, name in enumerate(names)})
    frame.columns = pd.Index(names, name=column_name, tupleize_cols=False)
    if index:
        levels = {name: list(values) for name, values in index.items()}
        if len(levels) == 1:
            ((name, values),) = levels.items()
            frame.index = pd.Index(values, name=name, tupleize_cols=False)
        else:
            frame.index = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    return frame


def import_pyplot(what: str) -> Any:
    """Import matplotlib's pyplot, or say how to install it; ``what`` is to be drawn."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingPackage(
            f"{what} is drawn by matplotlib, which is not installed",
            "pip install 'softcount[plot]'",
        ) from None
    return plt


# Arrays with names


class NamedArray(np.ndarray):
    """An array whose rows and columns have names, which it is printed and looked up by.

    One of one dimension has names of rows only. What is computed from it is an ordinary array:
    names belong to this table alone.

    >>> table = NamedArray.of([[0.9, 0.1], [0.4, 0.6]], rows=["N", "V"], columns=["dog", "barks"])
    >>> table
       dog     barks
    N  0.9000  0.1000
    V  0.4000  0.6000
    >>> float(table["V", "dog"]), table["N"].tolist(), float(table[0, 1])
    (0.4, [0.9, 0.1], 0.1)
    """

    rows: tuple[Any, ...] | None
    columns: tuple[Any, ...] | None

    @classmethod
    def of(
        cls, values: Any, rows: Sequence[Any], columns: Sequence[Any] | None = None
    ) -> NamedArray:
        """Name the rows and columns of a copy of a table."""
        made = np.array(values).view(cls)
        shape = (len(rows),) if columns is None else (len(rows), len(columns))
        if made.shape != shape:
            raise ValueError(f"{shape} names for a table of {made.shape}")
        made.rows, made.columns = tuple(rows), None if columns is None else tuple(columns)
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.rows = self.columns = None

    def __reduce__(self) -> Any:
        return _restore, (np.asarray(self), self.rows, self.columns)

    def __deepcopy__(self, memo: Any) -> Any:
        return _restore(np.array(self), self.rows, self.columns)

    def __array_wrap__(self, array: Any, *context: Any) -> Any:
        return np.asarray(array)[()]

    def __getitem__(self, key: Any) -> Any:
        names = (key,) if isinstance(key, str) else key
        is_named = isinstance(names, tuple) and any(isinstance(name, str) for name in names)
        if self.rows is not None and is_named:
            of_axes = (self.rows,) if self.columns is None else (self.rows, self.columns)
            if len(names) > len(of_axes):
                raise KeyError(key)
            key = tuple(
                each.index(name) if isinstance(name, str) and name in each else name
                for name, each in zip(names, of_axes, strict=False)
            )
            unknown = [name for name in key if isinstance(name, str)]
            if unknown:
                raise KeyError(unknown[0])
        return np.asarray(self)[key]

    def grid(self, title: str = "") -> Grid:
        """Return the table that is printed."""
        assert self.rows is not None
        values = np.asarray(self)
        if self.columns is None:
            pairs = zip(self.rows, values.tolist(), strict=True)
            return Grid(["", ""], [[name_of(name), p] for name, p in pairs], title, n_names=1)
        if len(self.columns) > MOST_COLUMNS:  # those that some row makes much of, in their order
            largest = np.sort(np.argsort(-values.max(axis=0), kind="stable")[: MOST_COLUMNS - 2])
            heads = [*(self.columns[c] for c in largest), "…"]
            cells = [[*row, None] for row in values[:, largest].tolist()]
        else:
            heads, cells = list(self.columns), values.tolist()
        named = [[name_of(name), *row] for name, row in zip(self.rows, cells, strict=True)]
        return Grid(["", *heads], named, title, n_names=1)

    def __repr__(self) -> str:
        return repr(np.asarray(self)) if self.rows is None else str(self.grid())

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        return None if self.rows is None else self.grid().html()

    def to_frame(self) -> Any:
        """Return the table as a data frame."""
        assert self.rows is not None
        values, columns = np.asarray(self), self.columns
        if columns is None:
            return make_frame({"value": values}, {"": self.rows})
        by_name = {name: values[:, c] for c, name in enumerate(columns)}
        return make_frame(by_name, {"": self.rows})


def _restore(values: Array, rows: Any, columns: Any) -> Any:
    return np.asarray(values) if rows is None else NamedArray.of(values, rows, columns)


class NamedTables(dict[str, Any]):
    """Parameters by the name of their table; printed table by table.

    ``names``  the names of rows and columns, by table; of those left out, arrays stay as they are

    >>> NamedTables({"weights": np.array([[0.3, 0.7]])}, {"weights": ([""], ["A", "B"])})
    weights
      A       B
      0.3000  0.7000
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        names: Mapping[str, tuple[Sequence[Any], ...]] | None = None,
    ) -> None:
        super().__init__(tables)
        for name, axes in (names or {}).items():
            self[name] = NamedArray.of(self[name], *axes)

    def __reduce__(self) -> Any:
        return NamedTables, (dict(self),)

    def grids(self) -> list[Grid]:
        """Return the tables that are printed."""
        return [_grid_of(name, table) for name, table in self.items()]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.grids()))

    def _repr_html_(self) -> str:
        return "".join(grid.html() for grid in self.grids())


def _grid_of(name: str, table: Any) -> Grid:
    """Return the table of some parameters, whatever form they have."""
    if isinstance(table, NamedArray) and table.rows is not None:
        return table.grid(name)
    if isinstance(table, Mapping) and all(isinstance(row, Mapping) for row in table.values()):
        return grid_of_rows(name, table)
    values = np.asarray(table)
    if values.ndim <= 1:
        return Grid([""] * max(values.size, 1), [np.atleast_1d(values).tolist()], name)
    flat = values.reshape(-1, values.shape[-1])
    if flat.shape[0] > 1000:  # no use to print
        return Grid(["shape"], [[" × ".join(map(str, values.shape))]], name)
    heads = list(range(values.shape[-1]))
    rows = [[", ".join(map(str, at)), *row.tolist()] for at, row in zip(
        np.ndindex(*values.shape[:-1]), flat, strict=True
    )]  # fmt: skip
    return Grid(["", *heads], rows, name, n_names=1)


def grid_of_rows(
    title: str, rows: Mapping[Any, Mapping[Any, float]], most: int = 8, left_out: bool = False
) -> Grid:
    """Return the table of rows of different columns: one order of columns for all rows.

    With more than ``most`` columns, those that some row makes most of are kept.

    ``left_out``  whether there are more rows
    """
    shown = list(rows)[:MOST_ROWS]
    best: dict[Any, float] = {}
    for name in shown:
        for column, value in rows[name].items():
            best[column] = max(best.get(column, -np.inf), value)
    kept = set(sorted(best, key=lambda column: -best[column])[:most])
    columns = [column for column in best if column in kept]
    more = ["…"] if len(best) > most else []
    cells = [
        [name_of(name), *(rows[name].get(column) for column in columns), *[None for _ in more]]
        for name in shown
    ]
    if left_out or len(rows) > len(shown):
        cells.append(["…", *[None] * (len(columns) + len(more))])
    return Grid(["", *columns, *more], cells, title, n_names=1)


@dataclass(frozen=True, repr=False)
class PrintedTable(Printed):
    """A table with a data frame: the rows of a run, of a selection, of a check.

    ``columns``  values by column
    ``index``    the columns that name the row
    ``title``, ``note``  lines above and below
    """

    columns: Mapping[str, Sequence[Any]]
    index: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    title: str = ""
    note: str = ""

    def grid(self) -> Grid:
        """Return the table that is printed."""
        every = {**self.index, **self.columns}
        rows = list(zip(*every.values(), strict=True))
        return Grid(list(every), rows, self.title, len(self.index), self.note)

    def to_frame(self) -> Any:
        """Return the table as a data frame."""
        return make_frame(dict(self.columns), self.index)
