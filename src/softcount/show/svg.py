"""Line charts as plain SVG text: no script, no network, legible in the dark and in print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 660, 270
LEFT, RIGHT, TOP, BOTTOM = 76, 16, 12, 46
LEGEND_ROW = 22
FIGURE = 7  # how wide a figure of a tick's label is
MOST_POINTS = 600

STYLE = """
.sc-chart { --ink: #3b3a36; --rule: #e4e1d8; --c0: #1d5c8f; --c1: #b4541a; --c2: #2f7d5b;
  --c3: #8a5a9e; --faint: #a9b6c0; max-width: 100%; height: auto; display: block;
  font: 12px/1 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) { .sc-chart { --ink: #cfccc3; --rule: #3a3934; --c0: #7db8e8;
  --c1: #eba06c; --c2: #7cc9a3; --c3: #c9a3da; --faint: #5f6b74; } }
.sc-chart text { fill: var(--ink); } .sc-chart .rule { stroke: var(--rule); }
.sc-chart .run { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.sc-chart .dot { stroke-width: 8; }
.sc-chart .dashed { stroke-dasharray: 7 6; stroke-linecap: butt; }
.sc-chart .c0 { stroke: var(--c0); } .sc-chart .c1 { stroke: var(--c1); }
.sc-chart .c2 { stroke: var(--c2); } .sc-chart .c3 { stroke: var(--c3); }
.sc-chart .faint { stroke: var(--faint); stroke-width: 1.2; }
"""


@dataclass(frozen=True)
class Series:
    """One line of a chart; faint ones stay in the background.

    ``values``  one for each step from 0 on, or for each place in ``at``, which rises
    ``dot``     the number of a value that gets a dot
    ``dashed``  so that a line below it stays in sight
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


SAME = 1e-9
"""Figures that differ by no more than this share are the same in a picture."""


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round figures that cover low … high.

    >>> ticks(0, 9)
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


def label(value: float, step: float) -> str:
    """A tick's figure, with as many decimals as the step between ticks needs.

    >>> label(-1200, 200), label(0.25, 0.05)
    ('−1,200', '0.25')
    """
    if max(abs(value), step) >= 1e7 or step < 1e-5:
        text = f"{value:.3g}"
    else:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        if step * 10**decimals % 1 > 1e-6:
            decimals += 1
        text = f"{value:,.{decimals}f}"
    return text.replace("-", "−")


def line_chart(
    series: Sequence[Series],
    title: str,
    x_label: str = "step",
    y_label: str = "",
    legend_above: bool = False,
) -> str:
    """A chart of one or more runs over their steps, as an ``<svg>`` element.

    The legend is in the lower right corner, where rising curves leave room, or above the chart.

    >>> line_chart([Series("EM", [-7.5, -4.9, -2.9])], "Two coins")[:25]
    '<svg class="sc-chart" rol'
    """
    finite = [v for one in series for v in one.values if math.isfinite(v)]
    ys = ticks(min(finite, default=0.0), max(finite, default=1.0))
    first = min((one.places[0] for one in series if len(one.places)), default=0)
    last = max((one.places[-1] for one in series if len(one.places)), default=0)
    widest = max(len(label(y, ys[1] - ys[0])) for y in ys)
    left, top = max(LEFT, 30 + FIGURE * widest), TOP + LEGEND_ROW * legend_above
    frame = _Frame(first, max(last, first + 1), ys[0], ys[-1], left, top)
    xs = [x for x in ticks(first, frame.x_max, 8) if x == int(x) and first <= x <= frame.x_max]
    named = [one for one in series if not one.faint]
    body = [_axes(frame, xs, ys, x_label, y_label)]
    body += [_run(frame, one, "faint") for one in series if one.faint]
    body += [_run(frame, one, f"c{k % 4}") for k, one in enumerate(named)]
    if len(named) > 1:
        body.append(_legend(named, legend_above))
    return (
        f'<svg class="sc-chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style>{''.join(body)}</svg>"
    )


@dataclass(frozen=True)
class _Frame:
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    left: float
    top: float

    def x(self, value: float) -> float:
        share = (value - self.x_min) / (self.x_max - self.x_min)
        return round(self.left + share * (WIDTH - self.left - RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.y_min) / (self.y_max - self.y_min)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - self.top - BOTTOM), 1)


def _axes(
    frame: _Frame, xs: Sequence[float], ys: Sequence[float], x_label: str, y_label: str
) -> str:
    bottom = HEIGHT - BOTTOM
    parts = []
    for y in ys:
        at = frame.y(y)
        parts.append(
            f'<line class="rule" x1="{frame.left}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>'
            f'<text x="{frame.left - 8}" y="{at + 4}" text-anchor="end">'
            f"{label(y, ys[1] - ys[0])}</text>"
        )
    for x in xs:
        parts.append(
            f'<text x="{frame.x(x)}" y="{bottom + 18}" text-anchor="middle">{label(x, 1)}</text>'
        )
    middle = (frame.left + WIDTH - RIGHT) / 2
    half = (frame.top + bottom) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="translate(13 {half}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return "".join(parts)


def _run(frame: _Frame, series: Series, css: str) -> str:
    """A path through the finite values; a gap where there is none."""
    values, places = series.values, series.places
    stride = max(1, math.ceil(len(values) / MOST_POINTS))
    steps = sorted({*range(0, len(values), stride), len(values) - 1}) if len(values) else []
    path, pen_down = [], False
    for k in steps:
        if math.isfinite(values[k]):
            path.append(f"{'L' if pen_down else 'M'}{frame.x(places[k])} {frame.y(values[k])}")
            pen_down = True
        else:
            pen_down = False
    if not path:
        return ""
    # a path of one point shows nothing without this: a round cap needs a line of no length
    tail = path[-1].replace("M", "L") if path[-1].startswith("M") else ""
    return (
        f'<path class="run {css}{" dashed" * series.dashed}" d="{"".join(path)}{tail}">'
        f"<title>{escape(series.name)}</title></path>{_dot(frame, series, css)}"
    )


def _dot(frame: _Frame, series: Series, css: str) -> str:
    if series.dot is None:
        return ""
    x, y = frame.x(series.places[series.dot]), frame.y(series.values[series.dot])
    return f'<path class="run dot {css}" d="M{x} {y}L{x} {y}"/>'


def _legend(named: Sequence[Series], above: bool) -> str:
    parts = []
    for k, one in enumerate(named):
        if above:
            x, y = LEFT + k * (WIDTH - LEFT - RIGHT) // len(named), TOP
        else:
            x, y = WIDTH - RIGHT - 150, HEIGHT - BOTTOM - 12 - 18 * (len(named) - 1 - k)
        css = f"run c{k % 4}{' dashed' * one.dashed}"
        parts.append(
            f'<line class="{css}" x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}"/>'
            f'<text x="{x + 26}" y="{y + 4}">{escape(one.name)}</text>'
        )
    return "".join(parts)
