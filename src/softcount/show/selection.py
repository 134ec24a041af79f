"""Numbers of classes compared: as text, as an SVG chart, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from softcount.errors import SoftcountError
from softcount.show import report
from softcount.show.svg import Series, line_chart

if TYPE_CHECKING:
    from softcount.evaluate.select import Row, Selection

NAMES = {"aic": "AIC", "bic": "BIC", "icl": "ICL", "heldout": "held-out"}
X_LABEL, Y_LABEL = "classes", "worse than its best (nats an item)"
CONVERGED = "converged"


def text_table(selection: Selection) -> str:
    """The rows, aligned; the best of a criterion has a *, and the chosen row an arrow."""
    heads, rows = (
        ["", "k", "log-likelihood"],
        [
            ["→" if row.k == selection.best_k else "", str(row.k), f"{row.log_likelihood:,.1f}"]
            for row in selection.table
        ],
    )
    if any(row.parameters is not None for row in selection.table):
        _add(heads, rows, "parameters", [_whole(row.parameters) for row in selection.table])
    for by in selection.known:
        winner = selection.winner(by)
        decimals = 4 if by == "heldout" else 1
        shown = [
            _figure(getattr(row, by), decimals) + (" *" if row.k == winner else "  ")
            for row in selection.table
        ]
        _add(heads, rows, f"{NAMES[by]}  ", shown)
    if any(row.perplexity is not None for row in selection.table):
        shown = [_figure(row.perplexity, 1) for row in selection.table]
        _add(heads, rows, "perplexity", shown)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    chosen = f"{NAMES[selection.by]} chooses {selection.best_k}. (* is the best of its column.)"
    return "\n".join([*lines, chosen, *_remarks(selection.table)])


def _add(heads: list[str], rows: list[list[str]], head: str, cells: Sequence[str]) -> None:
    heads.append(head)
    for row, cell in zip(rows, cells, strict=True):
        row.append(cell)


def _whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _figure(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:,.{decimals}f}"


def _remarks(table: Sequence[Row]) -> list[str]:
    """How learning ended, where it did not end well."""
    ends: dict[str, list[str]] = {}
    for row in table:
        if row.verdict is not None and not row.verdict.startswith(CONVERGED):
            ends.setdefault(row.verdict, []).append(str(row.k))
    return [f"k = {', '.join(numbers)}: {verdict}" for verdict, numbers in ends.items()]


def chart(selection: Selection) -> str:
    """How much worse than its best each criterion finds each number, with a dot at that best."""
    places = [row.k for row in selection.table]
    series = [
        Series(
            f"{NAMES[by]}: {places[losses.index(0.0)]}", losses, False, places, losses.index(0.0)
        )
        for by, losses in selection.losses().items()
    ]
    return line_chart(series, "How many classes?", X_LABEL, Y_LABEL, legend_above=True)


def plot(selection: Selection, ax: Any = None) -> Any:
    """The same curves by matplotlib; gives the axes back."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise SoftcountError(
            "plot() draws with matplotlib, which is not installed",
            "pip install 'softcount[plot]'; svg() needs nothing",
        ) from error
    axes = pyplot.subplots()[1] if ax is None else ax
    places = [row.k for row in selection.table]
    for by, losses in selection.losses().items():
        best = losses.index(0.0)
        axes.plot(
            places, losses, label=f"{NAMES[by]}: {places[best]}", marker="o", markevery=[best]
        )
    axes.set(xlabel=X_LABEL, ylabel=Y_LABEL)
    axes.legend()
    return axes


def page(selection: Selection, name: str) -> str:
    """A page with the chart, the table, and how the chosen fit went; ``name`` is of the data."""
    title = f"{selection.best_k} classes of lines in {name}"
    lead = f"Chosen by {NAMES[selection.by]} among {len(selection.table)} numbers of classes."
    figure = (
        f"<figure>{chart(selection)}<figcaption>By how much each criterion prefers its best. "
        "Beside its name: the number of classes it chooses.</figcaption></figure>"
    )
    table = f"<pre>{escape(text_table(selection))}</pre>"
    end = report.ending(selection.best.fit_, f"{selection.best_k} classes")
    style = "pre { white-space: pre; }"
    return report.document(title, lead, f"{figure}{table}{end}", style)
