"""Charts as plain SVG: no script, no network, legible in dark mode and in print.

This module computes positions; the elements themselves are in ``report/templates/*.svg``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from softcount.core.types import Fit
from softcount.report.text import clean, shorten

WIDTH, HEIGHT = 660, 270
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 12, 46
LEGEND_ROW = 22
FIGURE = 7  # width of a digit in the label of a tick
ROW, GAP, EDGE = 26, 14, 8  # dot charts: height of a row, gap between groups, margin
LETTER = 7.6
"""Width of a bold letter in the name of a row."""
LONGEST_NAME = 28
LEAST_RANGE = 0.02
"""Smallest range of the axis of a dot chart."""
MOST_POINTS = 600
COLOURS = 4
SAME = 1e-9
"""Values whose relative difference is smaller than this are drawn as equal."""


@dataclass(frozen=True)
class Series:
    """A line of a chart; faint lines are drawn in the background.

    ``values``  one for each step 0, 1, …, or for each x in ``at``, which must be increasing
    ``dot``     the index of a value that is marked by a dot
    ``dashed``  whether it is dashed, so that a line below it stays visible
    """

    name: str
    values: Sequence[float]
    faint: bool = False
    at: Sequence[float] | None = None
    dot: int | None = None
    dashed: bool = False

    @property
    def places(self) -> Sequence[float]:
        return range(len(self.values)) if self.at is None else self.at


class Frame(NamedTuple):
    """The plotting area of a chart: the ranges of the axes, and their edges in pixels."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float
    left: float
    right: float
    top: float
    bottom: float

    def x(self, value: float) -> float:
        share = (value - self.x_min) / (self.x_max - self.x_min)
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        share = (value - self.y_min) / (self.y_max - self.y_min)
        return round(self.bottom - share * (self.bottom - self.top), 1)


def choose_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Choose round tick values that cover low … high.

    >>> choose_ticks(0, 9)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    if high - low <= SAME * max(abs(low), abs(high)):
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def label_tick(value: float, step: float) -> str:
    """Format the label of a tick, with as many decimals as the step between ticks needs.

    >>> label_tick(-1200, 200), label_tick(0.25, 0.05)
    ('−1,200', '0.25')
    >>> label_tick(-48.27095, 1e-6), label_tick(3e9, 1e9)
    ('−48.27095', '3e+09')
    """
    if max(abs(value), step) >= 1e7 or step < 1e-5:
        figures = math.ceil(math.log10(max(abs(value) / step, 1.0))) + 1
        text = f"{value:.{min(max(figures, 3), 12)}g}"
    else:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        if step * 10**decimals % 1 > 1e-6:
            decimals += 1
        text = f"{value:,.{decimals}f}"
    return text.replace("-", "−")


def draw_lines(
    series: Sequence[Series],
    title: str,
    x_label: str = "step",
    y_label: str = "",
    legend_above: bool = False,
) -> str:
    """Draw one or more runs over their steps, as an ``<svg>`` element.

    The legend is in the lower right corner, where rising curves leave room, or above the chart.

    >>> str(draw_lines([Series("EM", [-7.5, -4.9, -2.9])], "Two coins"))[:25]
    '<svg class="sc-chart" rol'
    """
    finite = [v for one in series for v in one.values if math.isfinite(v)]
    ys = choose_ticks(min(finite, default=0.0), max(finite, default=1.0))
    y_labels = [label_tick(y, ys[1] - ys[0]) for y in ys]
    first = min((one.places[0] for one in series if len(one.places)), default=0)
    last = max((one.places[-1] for one in series if len(one.places)), default=0)
    frame = Frame(
        *(first, max(last, first + 1), ys[0], ys[-1]),
        left=max(LEFT, 30 + FIGURE * max(map(len, y_labels))),
        right=WIDTH - RIGHT,
        top=TOP + LEGEND_ROW * legend_above,
        bottom=HEIGHT - BOTTOM,
    )
    xs = [x for x in choose_ticks(first, frame.x_max, 8) if x == int(x)]
    named = [one for one in series if not one.faint]
    runs = [_LinePath(frame, one, "faint") for one in series if one.faint]
    runs += [_LinePath(frame, one, f"c{k % COLOURS}") for k, one in enumerate(named)]
    legend = []  # where an entry stands, how its mark looks, and what it means
    for k, one in enumerate(named if len(named) > 1 else []):
        if legend_above:
            x, y = LEFT + k * (WIDTH - LEFT - RIGHT) // len(named), TOP
        else:
            x, y = WIDTH - RIGHT - 150, HEIGHT - BOTTOM - 12 - 18 * (len(named) - 1 - k)
        legend.append((x, y, f"run c{k % COLOURS}{' dashed' * one.dashed}", one.name))
    return _render(
        "line_chart.svg",
        HEIGHT,
        title,
        frame=frame,
        x_label=x_label,
        y_label=y_label,
        x_ticks=[(frame.x(x), label_tick(x, 1)) for x in xs if first <= x <= frame.x_max],
        y_ticks=[(frame.y(y), text) for y, text in zip(ys, y_labels, strict=True)],
        runs=runs,
        legend=legend,
    )


class _LinePath:
    """The path through the finite values of a series, with gaps elsewhere; and its dot."""

    def __init__(self, frame: Frame, series: Series, css: str) -> None:
        values, places = series.values, series.places
        self.name, self.colour = series.name, css
        self.css = f"{css}{' dashed' * series.dashed}"
        self.dot = None
        if series.dot is not None:
            self.dot = frame.x(places[series.dot]), frame.y(values[series.dot])
        stride = max(1, math.ceil(len(values) / MOST_POINTS))
        steps = sorted({*range(0, len(values), stride), len(values) - 1}) if len(values) else []
        path, pen_down = [], False
        for k in steps:
            if math.isfinite(values[k]):
                path.append(f"{'L' if pen_down else 'M'}{frame.x(places[k])} {frame.y(values[k])}")
            pen_down = math.isfinite(values[k])
        if path and path[-1].startswith("M"):
            # a single point is drawn as a line of length 0, whose round caps are visible
            path.append(path[-1].replace("M", "L"))
        self.path = "".join(path)


def draw_runs(fit: Fit, title: str) -> tuple[str, int]:
    """Draw the objective of every run of a fit by step; also return the number of other runs."""
    others = [
        Series(f"another start: {run.objective[-1]:,.4g}", run.objective.tolist(), faint=True)
        for run in fit.traces
        if run is not fit.trace
    ]
    kept = Series(f"kept: {fit.trace.objective[-1]:,.4g}", fit.trace.objective.tolist())
    title = f"{title}: objective by step"
    return draw_lines([*others, kept], title, "step", "objective (nats)"), len(others)


def trace_curve(
    values: Sequence[float],
    width: float,
    height: float,
    *,
    filled: bool = False,
    most: int = MOST_POINTS,
) -> str:
    """Make the SVG path of a curve, scaled from zero to the largest value, with gaps at NaN.

    ``filled``  whether the path encloses the area below the curve
    ``most``    maximum number of values that are drawn

    >>> trace_curve([0, 2, 1], 100, 16)
    'M0 16L50 0L100 8'
    >>> trace_curve([1, float("nan"), 1, 1], 30, 10, filled=True)
    'M-1 10L-1 0L1 0L1 10ZM20 10L20 0L30 0L30 10Z'
    """
    last = max(len(values) - 1, 1)
    steps: Sequence[int] = range(len(values))
    if len(values) > most:
        steps = sorted({round(k * last / most) for k in range(most + 1)})
    highest = max((v for v in values if math.isfinite(v)), default=0.0) or 1.0
    pieces: list[list[tuple[float, float]]] = [[]]
    for k in steps:
        if math.isfinite(values[k]):
            pieces[-1].append((width * k / last, height * (1.0 - values[k] / highest)))
        elif pieces[-1]:
            pieces.append([])
    path = []
    for points in filter(None, pieces):
        if filled and len(points) == 1:  # give a single point some width
            (x, y) = points[0]
            points = [(x - 1, y), (x + 1, y)]
        if filled:
            points = [(points[0][0], height), *points, (points[-1][0], height)]
        line = "L".join(f"{x:.4g} {y:.4g}" for x, y in points)
        path.append(f"M{line}{'Z' * filled}")
    return "".join(path)


class Dot(NamedTuple):
    """A value, its name, and the number of its colour."""

    value: float
    name: str
    colour: int = 0


class DotRow(NamedTuple):
    """A row of a dot chart: dots and their mean; ``apart``: not ranked with the other rows."""

    name: str
    dots: Sequence[Dot]
    mean: float
    apart: bool = False


def draw_dots(
    rows: Sequence[DotRow],
    title: str,
    x_label: str,
    colours: Sequence[str],
    reference: str = "",
) -> str:
    """Draw a dot chart, as an ``<svg>`` element, with a bar at the mean of each row.

    ``colours``    meanings of the colours of dots
    ``reference``  name of a row whose mean is drawn as a line through all rows
    """
    rows = sorted(rows, key=lambda row: row.apart)
    line = {row.name: row.mean for row in rows}.get(reference, math.nan)
    marks = [(f"run dot c{k}", name) for k, name in enumerate(colours)]
    marks += [("mean", "mean")] + [("reference", f"mean of {reference}")] * math.isfinite(line)
    # the legend, in as many lines as needed
    legend, left, top = [], EDGE, 12
    for css, name in marks:
        text = shorten(clean(name), LONGEST_NAME + 8)
        wide = 30 + FIGURE * len(text)
        if left > EDGE and left + wide > WIDTH:
            left, top = EDGE, top + LEGEND_ROW
        legend.append((left + 5, top, css, text))
        left += wide
    top += 4 + LEGEND_ROW
    # an axis that covers all values
    figures = [one.value for row in rows for one in row.dots] + [row.mean for row in rows]
    finite = [figure for figure in figures if math.isfinite(figure)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if high - low < LEAST_RANGE:
        low, high = max(low - LEAST_RANGE, 0.0), min(high + LEAST_RANGE, 1.0)
    xs = choose_ticks(low, high, 6)
    names = [shorten(clean(row.name), LONGEST_NAME) for row in rows]
    frame = Frame(
        *(xs[0], xs[-1], 0.0, 1.0),
        left=round(2 * EDGE + LETTER * max(map(len, names), default=0)),
        right=WIDTH - 66,
        top=top,
        bottom=top + ROW * len(rows) + GAP * any(row.apart for row in rows),
    )
    best = max((row.mean for row in rows if not row.apart), default=math.nan)
    return _render(
        "dot_chart.svg",
        frame.bottom + 44,
        title,
        frame=frame,
        edge=WIDTH - EDGE,
        legend=legend,
        x_label=x_label,
        x_ticks=[(frame.x(x), label_tick(x, xs[1] - xs[0])) for x in xs],
        reference=frame.x(line) if math.isfinite(line) else None,
        rows=[
            {
                "row": row,
                "name": name,
                "y": top + ROW * number + ROW // 2 + GAP * row.apart,
                "css": "apart" if row.apart else "best" if row.mean == best else "",
                "mean": frame.x(row.mean) if math.isfinite(row.mean) else None,
                "dots": [(frame.x(one.value), one) for one in row.dots if math.isfinite(one.value)],
            }
            for number, (row, name) in enumerate(zip(rows, names, strict=True))
        ],
    )


def _render(template: str, height: float, title: str, **context: object) -> str:
    # imported here, because pages import charts
    from softcount.report.page import render

    template = f"report/templates/{template}"
    return render(template, width=WIDTH, height=height, title=title, **context)
