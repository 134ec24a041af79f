"""Reports of a `Selection`: as text, as an SVG chart, with matplotlib, and as an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from softcount.core.errors import SoftcountError
from softcount.report.charts import Series, draw_lines
from softcount.report.page import render_page
from softcount.report.tables import align_cells

if TYPE_CHECKING:
    from softcount.metrics.selection import Selection

NAMES = {"aic": "AIC", "bic": "BIC", "icl": "ICL", "heldout": "held-out"}
X_LABEL, Y_LABEL = "classes", "worse than its best (nats per item)"
CONVERGED = "converged"
OFTEN_THE_SAME = "icl"
"""Drawn dashed, because it coincides with BIC where classes are well separated."""

Edge = Literal["smallest", "largest"]


def write_selection(selection: Selection) -> str:
    """Format the table; a * marks the best value of each criterion, an arrow the chosen row."""
    heads, rows = _list_cells(selection)
    chosen, *more = _list_sentences(selection)
    aligned = align_cells([heads, *rows])
    return "\n".join([aligned, f"{chosen} (* is the best of its column.)", *more])


def _list_cells(selection: Selection) -> tuple[list[str], list[list[str]]]:
    """Return the column heads of the table, and its rows."""
    table = selection.table
    columns = [
        ("", ["→" if row.k == selection.best_k else "" for row in table]),
        ("k", [str(row.k) for row in table]),
        ("log-likelihood", [f"{row.log_likelihood:,.1f}" for row in table]),
    ]
    if any(row.parameters is not None for row in table):
        columns.append(("parameters", [_format_number(row.parameters, 0) for row in table]))
    for by in selection.known:
        winner, decimals = selection.winner(by), 4 if by == "heldout" else 1
        figures = [
            _format_number(getattr(row, by), decimals) + (" *" if row.k == winner else "  ")
            for row in table
        ]
        columns.append((f"{NAMES[by]}  ", figures))
    if any(row.perplexity is not None for row in table):
        columns.append(("perplexity", [_format_number(row.perplexity, 1) for row in table]))
    heads, cells = zip(*columns, strict=True)
    return list(heads), [list(row) for row in zip(*cells, strict=True)]


def _format_number(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:,.{decimals}f}"


def find_edge(selection: Selection) -> Edge | None:
    """Return at which end of the range tried the choice lies; None if inside the range.

    A choice of one class is not at an edge, as there cannot be fewer; nor is the only number tried.
    """
    tried = [row.k for row in selection.table]
    if len(tried) > 1 and selection.best_k == max(tried):
        return "largest"
    if len(tried) > 1 and selection.best_k == min(tried) > 1:
        return "smallest"
    return None


def _list_sentences(selection: Selection) -> list[str]:
    """Return sentences on the choice, on a choice at the edge, and on fits that ended badly."""
    sentences = [f"{NAMES[selection.by]} chooses {selection.best_k}."]
    edge = find_edge(selection)
    if edge is not None:
        sentences.append(
            f"{selection.best_k} is the {edge} number tried: the best may lie outside the range. "
            f"Try {'more' if edge == 'largest' else 'fewer'}."
        )
    poor: dict[str, list[str]] = {}  # verdict → numbers of classes
    for row in selection.table:
        if row.verdict is not None and not row.verdict.startswith(CONVERGED):
            poor.setdefault(row.verdict, []).append(str(row.k))
    return [*sentences, *(f"k = {', '.join(ks)}: {verdict}" for verdict, ks in poor.items())]


def draw_selection(selection: Selection) -> str:
    """Draw the excess loss of each criterion over its best value, with a dot at the best."""
    numbers = [row.k for row in selection.table]
    series = [
        Series(
            f"{NAMES[by]}: {numbers[losses.index(0.0)]}",
            losses,
            at=numbers,
            dot=losses.index(0.0),
            dashed=by == OFTEN_THE_SAME,
        )
        for by, losses in selection.losses().items()
    ]
    return draw_lines(series, "How many classes?", X_LABEL, Y_LABEL, legend_above=True)


def plot_selection(selection: Selection, ax: Any = None) -> Any:
    """Draw the same curves with matplotlib; return the axes."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise SoftcountError(
            "plot() draws with matplotlib, which is not installed",
            "pip install 'softcount[plot]'; svg() needs nothing",
        ) from error
    axes = pyplot.subplots()[1] if ax is None else ax
    numbers = [row.k for row in selection.table]
    for by, losses in selection.losses().items():
        best = losses.index(0.0)
        axes.plot(
            numbers,
            losses,
            label=f"{NAMES[by]}: {numbers[best]}",
            linestyle="--" if by == OFTEN_THE_SAME else "-",
            marker="o",
            markevery=[best],
        )
    axes.set(xlabel=X_LABEL, ylabel=Y_LABEL)
    axes.legend()
    return axes


def selection_page(selection: Selection, name: str) -> str:
    """Return an HTML page with the chart, the table and the chosen model.

    ``name``  name of the data file
    """
    # imported here, because the table in a terminal does not need mixtures
    from softcount.mixture.report import find_marks, join_marks

    tried, model = [row.k for row in selection.table], selection.best
    lead = (
        f"{selection.n_items:,} lines of {name}; {len(tried)} numbers of classes were tried, "
        f"from {tried[0]} to {tried[-1]}."
    )
    heads, rows = _list_cells(selection)
    marks = find_marks(model)
    return render_page(
        "metrics/report.html",
        "How many classes?",
        lead,
        sentences=_list_sentences(selection),
        chart=draw_selection(selection),
        heads=heads,
        rows=rows,
        best_k=selection.best_k,
        classes=[
            (model.weights_[k], join_marks(marks[k]))
            for k in (-model.weights_).argsort(kind="stable")
        ],
        fit=model.fit_,
    )
