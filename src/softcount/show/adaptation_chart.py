"""Methods side by side as a picture: a row for each, a dot for each transfer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from softcount.adapt.comparison import CEILING, Comparison
from softcount.show.groups import shortened
from softcount.show.snippets import clean
from softcount.show.svg import FIGURE, LEGEND_ROW, STYLE, WIDTH, label, ticks

SOURCE_ONLY = "SourceOnly"
"""The method that all others are held against."""
ROW, GAP = 26, 14
TOP, BOTTOM, RIGHT, EDGE = 16, 44, 66, 8
LETTER = 7.6
"""How wide a letter of a name is, if it is bold."""
LONGEST_NAME = 28
"""In letters: of a method or a domain."""
MOST_COLOURS = 4
LEAST = 0.02
"""How much the axis shows at least."""

LOOK = """
.sc-chart .dot { opacity: .7; } .sc-chart .hollow { stroke-width: 1.6; }
.sc-chart .mean { stroke: var(--ink); stroke-width: 2.5; }
.sc-chart .reference { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 2 4; }
.sc-chart .best { font-weight: 700; } .sc-chart .apart { font-style: italic; }
"""

Mark = tuple[int | str, str]
"""What is drawn (the number of a dot's colour, or the class of a line), and what it means."""


class Dot(NamedTuple):
    """An accuracy, what it is of, and the number of its colour."""

    accuracy: float
    name: str
    colour: int = 0


class Row(NamedTuple):
    """A method: its dots and their mean; ``apart``: no rival of the others."""

    name: str
    dots: Sequence[Dot]
    mean: float
    apart: bool = False


def comparison_chart(
    comparison: Comparison, *, reference: str = SOURCE_ONLY, of: str = "draw"
) -> str:
    """Methods side by side, as an ``<svg>`` element: a dot for each transfer, a bar for the mean.

    ``reference``  the method whose mean is drawn through all rows
    ``of``         what several results of one method are if there is a single transfer: each has a
                   dot of its own then

    >>> from softcount.adapt.comparison import Result
    >>> found = Comparison([Result("books", "ovens", "SourceOnly", 0, 0.75, 0.1, {})])
    >>> comparison_chart(found)[:25]
    '<svg class="sc-chart" rol'
    """
    targets = list(dict.fromkeys(target for _, target in comparison.transfers))
    coloured = targets if 1 < len(targets) <= MOST_COLOURS else []
    rows = [_row(comparison, method, coloured, of) for method in comparison.methods]
    rows.sort(key=lambda row: row.apart)
    marks: list[Mark] = [(k, f"to {target}") for k, target in enumerate(coloured)]
    if not marks:
        marks = [(0, f"a {'transfer' if len(comparison.transfers) > 1 else of}")]
    return _drawn(rows, reference, [*marks, ("mean", "mean")])


def _row(comparison: Comparison, method: str, coloured: Sequence[str], of: str) -> Row:
    if len(comparison.transfers) > 1:
        dots = [
            Dot(
                comparison.accuracy(method, (source, target)),
                f"{source} → {target}",
                coloured.index(target) if coloured else 0,
            )
            for source, target in comparison.transfers
        ]
    else:
        runs = [one for one in comparison.results if one.method == method]
        dots = [Dot(one.accuracy, f"{of} {one.draw + 1}") for one in runs]
    return Row(method, dots, comparison.accuracy(method), method == CEILING)


class _Frame(NamedTuple):
    """Where accuracies are: from ``low`` at ``left`` to ``high``, rows from ``top`` down."""

    low: float
    high: float
    left: int
    top: int
    bottom: int

    def x(self, accuracy: float) -> float:
        share = (accuracy - self.low) / (self.high - self.low)
        return round(self.left + share * (WIDTH - RIGHT - self.left), 1)


def _drawn(rows: Sequence[Row], reference: str, marks: Sequence[Mark]) -> str:
    above = {row.name: row.mean for row in rows}.get(reference, math.nan)
    line: list[Mark] = [("reference", f"mean of {reference}")] * math.isfinite(above)
    legend, n_lines = _legend([*marks, *line])
    xs = _ticks(rows)
    left = round(2 * EDGE + LETTER * max((len(_called(row)) for row in rows), default=0))
    top = TOP + LEGEND_ROW * n_lines
    bottom = top + ROW * len(rows) + GAP * any(row.apart for row in rows)
    frame = _Frame(xs[0], xs[-1], left, top, bottom)
    body = [legend, _axis(frame, xs)]
    if math.isfinite(above):
        at = frame.x(above)
        body.append(f'<line class="reference" x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"/>')
    best = max((row.mean for row in rows if not row.apart), default=math.nan)
    for number, row in enumerate(rows):
        middle = top + ROW * number + ROW // 2 + GAP * row.apart
        css = ' class="apart"' if row.apart else ' class="best"' if row.mean == best else ""
        body.append(_line(frame, row, middle, css))
    height = bottom + BOTTOM
    return (
        f'<svg class="sc-chart" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>Accuracy of {len(rows)} methods in the target</title>"
        f"<style>{STYLE}{LOOK}</style>{''.join(body)}</svg>"
    )


def _ticks(rows: Sequence[Row]) -> list[float]:
    """Round accuracies that cover all there are."""
    figures = [one.accuracy for row in rows for one in row.dots] + [row.mean for row in rows]
    finite = [figure for figure in figures if math.isfinite(figure)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if high - low < LEAST:
        low, high = max(low - LEAST, 0.0), min(high + LEAST, 1.0)
    return ticks(low, high, 6)


def _called(row: Row) -> str:
    return shortened(clean(row.name), LONGEST_NAME)


def _axis(frame: _Frame, xs: Sequence[float]) -> str:
    parts = [
        f'<line class="rule" x1="{frame.x(x)}" x2="{frame.x(x)}" y1="{frame.top}" '
        f'y2="{frame.bottom}"/><text x="{frame.x(x)}" y="{frame.bottom + 18}" '
        f'text-anchor="middle">{label(x, xs[1] - xs[0])}</text>'
        for x in xs
    ]
    middle = (frame.left + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{frame.bottom + 38}" text-anchor="middle">accuracy in the target'
        f'</text><text x="{WIDTH - EDGE}" y="{frame.top - 8}" text-anchor="end">mean</text>'
    )
    return "".join(parts)


def _line(frame: _Frame, row: Row, middle: int, css: str) -> str:
    """A method: its name, its dots, its mean as a bar and as a figure."""
    parts = [
        f'<line class="rule" x1="{frame.left}" x2="{WIDTH - RIGHT}" y1="{middle}" y2="{middle}"/>'
        f'<text x="{frame.left - 12}" y="{middle + 4}" text-anchor="end"{css}>'
        f"{escape(_called(row))}</text>"
    ]
    parts += [
        _dot(frame.x(one.accuracy), middle, one, row.apart)
        for one in row.dots
        if math.isfinite(one.accuracy)
    ]
    if math.isfinite(row.mean):
        at = frame.x(row.mean)
        parts.append(
            f'<path class="mean" d="M{at} {middle - 9}V{middle + 9}">'
            f"<title>{escape(clean(row.name))}: mean {row.mean:.3f}</title></path>"
            f'<text x="{WIDTH - EDGE}" y="{middle + 4}" text-anchor="end"{css}>'
            f"{row.mean:.3f}</text>"
        )
    return "".join(parts)


def _dot(x: float, y: int, one: Dot, hollow: bool) -> str:
    told = f"<title>{escape(clean(one.name))}: {one.accuracy:.3f}</title>"
    if hollow:
        return f'<circle class="run hollow c{one.colour}" cx="{x}" cy="{y}" r="3.5">{told}</circle>'
    return f'<path class="run dot c{one.colour}" d="M{x} {y}L{x} {y}">{told}</path>'


def _legend(entries: Sequence[Mark]) -> tuple[str, int]:
    """What marks mean, in as many lines as it takes; and how many these are."""
    parts, at, line = [], EDGE, 0
    for mark, name in entries:
        said = shortened(clean(name), LONGEST_NAME + 8)
        wide = 30 + FIGURE * len(said)
        if at > EDGE and at + wide > WIDTH:
            at, line = EDGE, line + 1
        y = TOP + LEGEND_ROW * line - 4
        shape = (
            f'<path class="run dot c{mark}" d="M{at + 5} {y}L{at + 5} {y}"/>'
            if isinstance(mark, int)
            else f'<line class="{mark}" x1="{at + 5}" x2="{at + 5}" y1="{y - 8}" y2="{y + 8}"/>'
        )
        parts.append(f'{shape}<text x="{at + 15}" y="{y + 4}">{escape(said)}</text>')
        at += wide
    return "".join(parts), line + 1
