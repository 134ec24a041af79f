"""Overviews of models: as a table in a terminal, as tab-separated lines for pipes, and as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TextIO

from softcount.core.types import Fit
from softcount.core.verdict import Verdict
from softcount.report.finding import Finding, describe_outcome, summarise_fit
from softcount.report.text import clean, flatten

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

EIGHTHS = " ▏▎▍▌▋▊▉"
BAR = 10


class Column(NamedTuple):
    """A column of an overview.

    ``cells``  cells in a terminal; None: the column is for programs only
    ``plain``  cells in tab-separated output; None: the column is for people only
    ``kind``   how a terminal formats it
    ``detail`` whether tab-separated output contains it only if details are requested
    """

    head: str
    cells: Sequence[str] | None
    plain: Sequence[str] | None = None
    kind: Literal["name", "number", "bar", "words"] = "number"
    detail: bool = False


class Overview:
    """Overview of a model for terminals, pipes and programs: a table, remarks, and the outcome.

    Subclasses implement `columns`, `remarks` and `facts`. ``fit`` is None if the model was loaded
    from a file.
    """

    signature: str
    fit: Fit | None
    most_rows: ClassVar[int | None] = None
    """If there are more rows, a terminal shows only the first and the last ones."""

    def heading(self) -> list[str]:
        """Return the title and a sentence above the table, if any."""
        return []

    def columns(self) -> list[Column]:
        """Return the columns of the table."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """Return remarks below the table; a remark may have several lines."""
        return []

    def facts(self) -> dict[str, Any]:
        """Return the content of the JSON output, besides the outcome of the run."""
        raise NotImplementedError

    @property
    def outcome(self) -> dict[str, float]:
        """Final figures of the kept run; empty without a fit."""
        return summarise_fit(self.fit)

    def as_tsv(self, details: bool = True) -> str:
        """Format as tab-separated lines; remarks start with #."""
        remarks = [self.signature]
        if self.fit is not None:
            remarks += [str(self.fit.verdict), describe_outcome(self.outcome)]
        remarks += [line for remark in self.remarks() for line in remark.splitlines()]
        columns = [column for column in self.columns() if details or not column.detail]
        return write_tsv(list_plain_rows(columns), remarks)

    def as_json(self) -> dict[str, Any]:
        """Return the content of the JSON output: the outcome of the run, and the facts."""
        verdict = None if self.fit is None else self.fit.verdict
        ended = verdict and {"name": verdict.name.lower(), "sentence": str(verdict)}
        known = {"signature": self.signature, "verdict": ended, **keep_finite(self.outcome)}
        return {**known, **self.facts()}

    def show(self, console: Console) -> None:
        """Print the table, remarks and the outcome of the run in a terminal."""
        from rich.text import Text

        for line, style in zip(self.heading(), ("bold", ""), strict=False):
            console.print(Text(clean(line) if not style else flatten(line), style=style))
        console.print(make_rich_table(self.columns(), most=self.most_rows, expand=True))
        for remark in self.remarks():
            console.print(Text(clean(remark)))
        if self.fit is not None:
            console.print(make_verdict_line(self.fit.verdict))
            console.print(Text(describe_outcome(self.outcome)))
        # one line, to be copied whole
        console.print(Text(self.signature, style="dim"), soft_wrap=True)

    def print(self, stream: TextIO, as_json: bool = False) -> None:
        """Print a table to a terminal, else tab-separated lines; or JSON."""
        if as_json:
            stream.write(json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n")
            stream.flush()
        else:
            print_view(stream, self.show, lambda: self.as_tsv(details=stream is sys.stdout))


def print_view(stream: TextIO, show: Callable[[Console], None], tsv: Callable[[], str]) -> None:
    """Call ``show`` if the stream is a terminal, else print tab-separated lines."""
    if stream.isatty():
        from rich.console import Console

        show(Console(file=stream, highlight=False))
    else:
        stream.write(tsv())
    stream.flush()


def write_tsv(rows: Sequence[Sequence[str]], remarks: Sequence[str] = ()) -> str:
    """Format rows as tab-separated lines, preceded by remarks that start with #.

    >>> write_tsv([["word", "count"], ["a", "3"]], ["two columns"])
    '# two columns\\nword\\tcount\\na\\t3\\n'
    """
    lines = [f"# {remark}" for remark in remarks] + ["\t".join(row) for row in rows]
    return "\n".join(lines) + "\n"


def list_plain_rows(columns: Sequence[Column]) -> list[Sequence[str]]:
    """List the heads and the rows of the columns that programs read.

    >>> list_plain_rows([Column("word", ["a"], ["a"]), Column("", ["█"]), Column("n", None, ["3"])])
    [('word', 'n'), ('a', '3')]
    """
    return list(zip(*([c.head, *c.plain] for c in columns if c.plain is not None), strict=True))


def keep_finite(figures: dict[str, Any]) -> dict[str, Any]:
    """Replace infinity and NaN, which JSON cannot represent, by None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }


def align_cells(rows: Sequence[Sequence[str]], left: int = 0) -> str:
    """Align rows of text; all but the first ``left`` columns are set to the right.

    >>> print(align_cells([["name", "n"], ["a", "100"]], left=1))
    name    n
    a     100
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def format_share(share: float) -> str:
    """Format a proportion; a dash if it is not finite.

    >>> format_share(0.25), format_share(float("nan"))
    ('0.250', '–')
    """
    return f"{share:.3f}" if math.isfinite(share) else "–"


# In a terminal, by rich, which is imported only when something is printed.


def draw_bar(p: float, width: int = BAR) -> str:
    """Draw a probability as a bar of at most ``width`` characters.

    >>> draw_bar(0.5, 4)
    '██'
    """
    eighths = round(p * width * 8)
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def draw_bars(values: Sequence[float]) -> list[str]:
    """Draw values as bars; that of the largest is full."""
    full = max(values, default=0.0) or 1.0
    return [draw_bar(value / full) for value in values]


def make_rich_table(
    columns: Sequence[Column],
    *,
    most: int | None = None,
    more: int = 0,
    expand: bool = False,
    bold: Sequence[int] = (),
) -> Table:
    """Make a table of the columns for people; with ``expand``, ``words`` take what room is left.

    ``most``  of more rows than this, the first and the last ones are shown
    ``more``  number of rows that were left out already
    ``bold``  numbers of rows that stand out
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=expand)
    styles: dict[str, dict[str, Any]] = {
        "name": {"overflow": "fold", "max_width": 24},
        "number": {"justify": "right"},
        "bar": {"style": "cyan", "min_width": BAR, "no_wrap": True},
        "words": {"no_wrap": True, "overflow": "ellipsis", "ratio": 1} if expand else {},
    }
    shown = [column for column in columns if column.cells is not None]
    for column in shown:
        table.add_column(Text(flatten(column.head)), **styles[column.kind])
    rows = list(zip(*(column.cells or () for column in shown), strict=True))
    for number in spread_rows(len(rows), most):
        if number is None:
            gap = [""] * (len(shown) - 2)
            table.add_row("…", *gap, f"{len(rows) - (most or 0):,} more")
        else:
            cells = (Text(flatten(cell)) for cell in rows[number])
            table.add_row(*cells, style="bold" if number in bold else "")
    if more > 0:
        table.add_row(Text(f"and {more:,} more", style="dim"))
    return table


def spread_rows(n: int, most: int | None) -> list[int | None]:
    """Choose the rows of a long table: the first and the last ones, None in between.

    >>> spread_rows(3, 4), spread_rows(9, 4)
    ([0, 1, 2], [0, 1, None, 7, 8])
    """
    if most is None or n <= most:
        return list(range(n))
    first = (most + 1) // 2
    return [*range(first), None, *range(n - (most - first), n)]


def make_verdict_line(verdict: Verdict) -> Text:
    """Make a sentence of the verdict, green if the result can be trusted, yellow if not."""
    from rich.text import Text

    return Text(f"● {verdict}", style="green" if verdict.good else "yellow")


def show_finding(finding: Finding, console: Console | None = None) -> None:
    """Print one finding: its distributions side by side, as many as fit, and how the fit went."""
    from rich.columns import Columns
    from rich.console import Console, Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    tables = []
    for bars in finding.bars:
        table = Table(
            title=Text(bars.title, style="italic"),
            title_justify="left",
            box=None,
            show_header=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column(overflow="fold", max_width=24)
        table.add_column(justify="right")
        table.add_column(style="cyan", min_width=BAR, no_wrap=True)
        for name, p in bars.rows:
            table.add_row(Text(name), f"{p:.3f}", draw_bar(p / bars.full))
        if bars.left_out:
            table.add_row(Text(f"and {bars.left_out} more", style="dim"))
        tables.append(Padding(table, (0, 0, 1, 0)))
    parts: list[RenderableType] = [
        Text(finding.title, style="bold"),
        Text(finding.text),
        Text(),
        Columns(tables, padding=(0, 3, 0, 0), equal=True),
    ]
    if finding.scale:
        parts += [Text(finding.scale, style="dim"), Text()]
    if finding.lines:
        parts += [*map(Text, finding.lines), Text()]
    # not cropped: the signature is one line, to be copied whole
    signature = Text(finding.fit.signature, style="dim", no_wrap=True, overflow="ignore")
    parts += [make_verdict_line(finding.fit.verdict), signature, Text()]
    (console or Console(highlight=False)).print(Group(*parts), crop=False)
