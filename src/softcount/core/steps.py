"""A run as a table: figures of every step, parameters and posteriors by name; and as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.display import NamedArray, PrintedTable, import_pyplot, name_of

if TYPE_CHECKING:
    from softcount.core.posteriors import Posteriors
    from softcount.core.types import Fit, Trace

FIGURES = (
    *("objective", "log_likelihood", "perplexity", "change", "q", "bound", "held_out", "entropy"),
    *("temper", "seconds"),
)
"""Figures of a step, in the order in which they are shown."""
MOST = 40
"""Parameters, and posteriors, of a step are shown one by one if there are no more than this."""


def list_figures(trace: Trace) -> dict[str, list[float]]:
    """Return the figures that the steps of a run have, by name."""
    columns = {name: trace.column(name).astype(float) for name in FIGURES}
    kept = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if (kept["temper"] == 1.0).all():
        del kept["temper"]
    if np.array_equal(kept["objective"], kept["log_likelihood"], equal_nan=True):
        del kept["objective"]
    return {name: values.tolist() for name, values in kept.items()}


def tabulate(trace: Trace) -> PrintedTable:
    """Return the figures of a run, a row per step; the verdict is its note."""
    steps = [state.step for state in trace]
    return PrintedTable(list_figures(trace), {"step": steps}, note=str(trace.verdict))


def tabulate_steps(trace: Trace, shown: Sequence[Any]) -> PrintedTable:
    """Return a run as textbooks print it: parameters, posteriors, log-likelihood of each step.

    ``shown``  the parameters of every step in the form of ``params_``; empty: they were not kept
    """
    columns: dict[str, list[Any]] = {}
    rows = [dict(flatten(params)) for params in shown]
    if rows and len(rows[0]) <= MOST:
        columns |= {name: [row.get(name) for row in rows] for name in rows[0]}
    if trace.posteriors and trace.posteriors[0].values.size <= 2 * MOST:
        rows = [dict(name_cells(posteriors)) for posteriors in trace.posteriors]
        columns |= {name: [row[name] for row in rows] for name in rows[0]}
    figures = list_figures(trace)
    for name in ("log_likelihood", "objective"):
        if name in figures:
            columns[name.replace("_", "-")] = figures[name]
    steps = [state.step for state in trace]
    return PrintedTable(columns, {"step": steps}, note=str(trace.verdict))


def flatten(params: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield each parameter with its name: which[A], flip[A][H], words[0, a]."""
    if isinstance(params, Mapping):
        if getattr(params, "is_row", False):  # rows of stories list the most probable first
            params = getattr(params, "in_order")()  # noqa: B009
        for name, value in params.items():
            inside = f"{path}[{name_of(name)}]" if path else name_of(name)
            yield from flatten(value, inside)
        return
    values = np.asarray(params)
    if values.ndim == 0:
        yield path, float(values)
        return
    if values.size > MOST:  # more than are shown
        yield from ((f"{path}[{n}]", 0.0) for n in range(MOST + 1))
        return
    named = isinstance(params, NamedArray) and params.rows is not None
    axes: list[Sequence[Any]] = [range(n) for n in values.shape]
    if named:
        axes = [params.rows] if params.columns is None else [params.rows, params.columns]
    for at in np.ndindex(*values.shape):
        names = [name_of(axis[i]) for axis, i in zip(axes, at, strict=True)]
        yield f"{path}[{', '.join(filter(None, names))}]", float(values[at])


def name_cells(posteriors: Posteriors) -> Iterator[tuple[str, float]]:
    """Yield each posterior with its name, P(A | HHH); not those of the last column.

    The last one is what the others lack to a sum of 1.
    """
    seen: dict[str, int] = {}
    for row in range(len(posteriors)):
        item = " ".join(name_of(names[row]) for names in posteriors.index.values())
        seen[item] = seen.get(item, 0) + 1
        item = item if seen[item] == 1 else f"{item} #{seen[item]}"
        for c, column in enumerate(posteriors.columns[:-1]):
            yield f"{name_of(column)} | {item}", float(posteriors.values[row, c])


def tabulate_runs(fit: Fit) -> PrintedTable:
    """Return the runs of a fit, a row each: how many steps, and how they ended."""
    columns: dict[str, list[Any]] = {
        "steps": [len(trace) - 1 for trace in fit.traces],
        "objective": [float(trace[-1].objective) for trace in fit.traces],
        "log-likelihood": [float(trace[-1].log_likelihood) for trace in fit.traces],
        "perplexity": [float(trace[-1].perplexity) for trace in fit.traces],
        "best": ["*" if trace.states is fit.trace.states else "" for trace in fit.traces],
        "verdict": [trace.verdict.name.lower() for trace in fit.traces],
    }
    if len(fit.traces) == 1:
        del columns["best"]
    return PrintedTable(
        columns, {"run": list(range(len(fit.traces)))}, title=fit.signature, note=str(fit.verdict)
    )


def plot(trace: Trace, figure: str = "objective", ax: Any = None) -> Any:
    """Draw a figure of a run over its steps, on ``ax`` or on new axes; return the axes."""
    plt = import_pyplot("a trace")
    ax = plt.subplots()[1] if ax is None else ax
    values = trace.column(figure)
    ax.plot([state.step for state in trace], values, marker="o" if len(values) < 40 else None)
    ax.set_xlabel("step")
    ax.set_ylabel(figure.replace("_", "-"))
    return ax
