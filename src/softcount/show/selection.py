"""Numbers of classes compared: as text, as an SVG chart, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from softcount.errors import SoftcountError
from softcount.show import groups, report
from softcount.show.svg import Series, line_chart

if TYPE_CHECKING:
    from softcount.metrics.selection import Row, Selection

NAMES = {"aic": "AIC", "bic": "BIC", "icl": "ICL", "heldout": "held-out"}
X_LABEL, Y_LABEL = "classes", "worse than its best (nats an item)"
CONVERGED = "converged"
OFTEN_THE_SAME = "icl"
"""A criterion that is that of another, BIC, where classes are distinct."""

Edge = Literal["smallest", "largest"]

STYLE = """
.figures { margin: 1rem 0; } .figures tr > * { text-align: right; white-space: nowrap;
  padding: .16rem .5rem; font-variant-numeric: tabular-nums; }
.figures th { color: var(--soft); } .figures tbody td { border-top: 1px solid var(--rule); }
.figures .chosen td { font-weight: 600; }
.figures tr > .words { text-align: left; white-space: normal; min-width: 16rem; width: 100%; }
"""


def text_table(selection: Selection) -> str:
    """The rows, aligned; the best of a criterion has a *, and the chosen row an arrow."""
    heads, rows = _cells(selection)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    chosen, *more = _sentences(selection)
    return "\n".join([*lines, f"{chosen} (* is the best of its column.)", *more])


def _cells(selection: Selection) -> tuple[list[str], list[list[str]]]:
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
    return heads, rows


def edge(selection: Selection) -> Edge | None:
    """At which end of the numbers that were tried the choice lies, if it lies at one.

    One class is no such end, for there cannot be fewer; nor is a number without others beside it.
    """
    tried = [row.k for row in selection.table]
    if len(tried) > 1 and selection.best_k == max(tried):
        return "largest"
    if len(tried) > 1 and selection.best_k == min(tried) > 1:
        return "smallest"
    return None


def _sentences(selection: Selection) -> list[str]:
    """What is chosen, whether to believe it, and how learning ended where it did not end well."""
    chosen = f"{NAMES[selection.by]} chooses {selection.best_k}."
    return [chosen, *_doubts(selection), *_remarks(selection.table)]


def _doubts(selection: Selection) -> list[str]:
    where = edge(selection)
    if where is None:
        return []
    other = "more" if where == "largest" else "fewer"
    return [
        f"{selection.best_k} is the {where} number that was tried: a choice at the edge is no "
        f"choice yet. Try {other}."
    ]


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
            f"{NAMES[by]}: {places[losses.index(0.0)]}",
            losses,
            at=places,
            dot=losses.index(0.0),
            dashed=by == OFTEN_THE_SAME,
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
            places,
            losses,
            label=f"{NAMES[by]}: {places[best]}",
            linestyle="--" if by == OFTEN_THE_SAME else "-",
            marker="o",
            markevery=[best],
        )
    axes.set(xlabel=X_LABEL, ylabel=Y_LABEL)
    axes.legend()
    return axes


def page(selection: Selection, name: str) -> str:
    """A page with the chart, the table, and what was chosen; ``name`` is of the data."""
    tried = [row.k for row in selection.table]
    lead = (
        f"{selection.n_items:,} lines of {name}; {len(tried)} numbers of classes were tried, "
        f"from {tried[0]} to {tried[-1]}."
    )
    figure = (
        f"<figure>{chart(selection)}<figcaption>By how much each criterion prefers its best. "
        "Beside its name: the number of classes it chooses.</figcaption></figure>"
    )
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in _sentences(selection))
    end = report.ending(selection.best.fit_, f"{selection.best_k} classes")
    body = f"{said}{figure}{_html_table(selection)}{_chosen_classes(selection)}{end}"
    return report.document("How many classes?", lead, body, STYLE)


def _html_table(selection: Selection) -> str:
    heads, rows = _cells(selection)
    top = "".join(f'<th scope="col">{escape(head.strip())}</th>' for head in heads)
    lines = ""
    for row in rows:
        cells = "".join(f"<td>{escape(cell.rstrip())}</td>" for cell in row)
        lines += f"<tr{' class=chosen' * bool(row[0])}>{cells}</tr>"
    return (
        f'<div class="wide"><table class="figures"><thead><tr>{top}</tr></thead>'
        f'<tbody>{lines}</tbody></table></div><p class="scale">* is the best of its column.</p>'
    )


def _chosen_classes(selection: Selection) -> str:
    """The classes that the chosen number gives, the largest first, with what marks them."""
    model = selection.best
    marks = groups.marks_of(model)
    rows = "".join(
        f'<tr><td>{model.weights_[k]:.1%}</td><td class="words">'
        f"{escape(groups.in_a_line(marks[k]))}</td></tr>"
        for k in (-model.weights_).argsort(kind="stable")
    )
    number = f"{selection.best_k} class{'es' * (selection.best_k != 1)}"
    return (
        f"<h2>The {number}</h2>"
        '<div class="wide"><table class="figures"><thead><tr><th scope="col">share</th>'
        f'<th scope="col" class="words">marked by</th></tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )
