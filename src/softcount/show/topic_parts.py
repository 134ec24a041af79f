"""The parts of a page about topics: the map, the list, a section for each topic, time curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from softcount.show.over_time import OverTime
from softcount.show.topic_map import HEIGHT, WIDTH, laid_out, placed
from softcount.show.topic_words import DEFAULT, TopicWords
from softcount.types import Array

WITHOUT_SCRIPT = 12
"""How many words of a topic stand on the page itself."""

IN_A_LINE, ON_THE_MAP, NEAREST = 8, 2, 4
NAMING = 4
"""λ in tenths of the words that stand for a topic: with more of it, a word that all topics have
(in news: said) comes first in most of them."""

LONGEST_LABEL = 22


@dataclass(frozen=True)
class Example:
    """A document that is typical of a topic; ``html`` is the part of it to show, or nothing."""

    name: str
    share: float
    html: str = ""


@dataclass(frozen=True, eq=False)
class TopicsShown:
    """Everything that a page shows of topics.

    ``weights``   the share of all words that each topic has
    ``names``     the words in ``words.chosen`` by their columns, in order, fit for a page
    ``apart``     how far topics are from each other
    ``mainly``    how many documents have each topic as their largest; None if that is not known
    ``examples``  typical documents of each topic, if documents are known
    ``table``     the topics over time, if documents have times
    """

    weights: Array
    words: TopicWords
    names: Mapping[int, str]
    apart: Array
    mainly: Array | None = None
    examples: Sequence[Sequence[Example]] = ()
    table: OverTime | None = None

    @property
    def order(self) -> list[int]:
        """The largest topic first."""
        return [int(k) for k in np.argsort(-self.weights, kind="stable")]

    def top(self, k: int, n: int) -> list[str]:
        """The words that stand for a topic where there is room for a few."""
        return [self.names[column] for column, *_ in self.words.top(k, n, NAMING)]


def in_a_line(shown: TopicsShown, k: int, n: int = IN_A_LINE) -> str:
    """A topic's words one after the other, as HTML."""
    return " ".join(f"<bdi>{escape(word)}</bdi>" for word in shown.top(k, n))


def percent(share: float) -> str:
    """A share as readers like it, in one piece.

    >>> percent(0.0512), percent(0.00012)
    ('5.1\\xa0%', '0.012\\xa0%')
    """
    figure = f"{100 * share:.1f}" if share >= 0.001 or not share else f"{100 * share:.2g}"
    return f"{figure}\u00a0%"


# the map
def topic_map(shown: TopicsShown) -> str:
    """The topics as circles on a plane, each a link to what is said of it."""
    chart = laid_out(shown.apart, shown.weights)
    texts = [_labels(shown.top(k, ON_THE_MAP)) for k in range(len(shown.weights))]
    labels = placed(chart, texts)
    parts = []
    for k in shown.order:  # small ones last, so that they lie on top
        (x, y), r = chart.centre[k].round(1), chart.radius[k].round(1)
        said = f"topic {k}: {' '.join(shown.top(k, IN_A_LINE))}"
        number = f'<text class="number" x="{x}" y="{y}">{k}</text>' if r >= 8 else ""
        label = labels[k]
        words = "" if label is None else _text(label.x, label.y, label.text)
        parts.append(
            f'<a href="#topic-{k}" aria-label="{escape(said)}"><title>{escape(said)}</title>'
            f'<circle cx="{x}" cy="{y}" r="{r}" data-r="{r}"/>{number}{words}</a>'
        )
    frame = f'<rect class="frame" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="4"/>'
    return (
        f'<svg class="map" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="map of topics">'
        f"{frame}{''.join(parts)}</svg>"
    )


def _labels(words: Sequence[str]) -> list[str]:
    """Two words, or one, if they are not too long to stand on a map."""
    texts = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
    return [text for text in texts if len(text) <= LONGEST_LABEL]


def _text(x: float, y: float, text: str) -> str:
    return f'<text class="label" x="{x}" y="{y}">{escape(text)}</text>'


# the list
def topic_list(shown: TopicsShown) -> str:
    """All topics, the largest first, a line each."""
    largest = float(shown.weights.max()) or 1.0
    lines = "".join(
        f'<li><a href="#topic-{k}"><span class="number">{k}</span>'
        f'<span class="length" style="--b:{100 * shown.weights[k] / largest:.1f}"></span>'
        f'<span class="size">{percent(shown.weights[k])}</span>'
        f'<span class="some">{in_a_line(shown, k)}</span></a></li>'
        for k in shown.order
    )
    return f'<ol class="topics">{lines}</ol>'


# a topic
def topic_section(shown: TopicsShown, k: int) -> str:
    """What there is to say of one topic."""
    size = f"{percent(shown.weights[k])} of all words"
    if shown.mainly is not None:
        n = int(shown.mainly[k])
        size += f" · the largest in {n:,} document{'s' * (n != 1)}"
    return (
        f'<section class="topic" id="topic-{k}"><h2>Topic {k}<small>{size}</small></h2>'
        f"{_words(shown, k)}{_time(shown, k)}{_examples(shown, k)}{_near(shown, k)}"
        "</section>"
    )


def _words(shown: TopicsShown, k: int) -> str:
    """Bars of how often a word is in the topic, before bars of how often it is anywhere."""
    rows = shown.words.top(k, WITHOUT_SCRIPT, DEFAULT)
    own = [shown.weights[k] * chance for _, chance, _ in rows]
    every = [max(a, b) for (_, _, a), b in zip(rows, own, strict=True)]
    full = max(every, default=1.0)
    lines = "".join(
        f'<li style="--a:{100 * a / full:.1f};--b:{100 * b / full:.1f}">'
        f"<bdi>{escape(shown.names[column])}</bdi><b></b>"
        f"<i>{100 * chance:.2f}</i><i>{100 * b / a:.0f}</i></li>"
        for (column, chance, _), a, b in zip(rows, every, own, strict=True)
    )
    return (
        '<ol class="words"><li class="head"><span></span><span></span>'
        "<i>% of topic</i><i>% of word</i></li>"
        f"{lines}</ol>"
    )


def _examples(shown: TopicsShown, k: int) -> str:
    if not shown.examples or not shown.examples[k]:
        return ""
    lines = "".join(
        f'<li dir="auto">{one.html} <small><bdi>{escape(one.name)}</bdi>&nbsp;·&nbsp;'
        f"{percent(one.share)}</small></li>"
        for one in shown.examples[k]
    )
    return f'<h3>Typical documents</h3><ul class="examples">{lines}</ul>'


def _near(shown: TopicsShown, k: int) -> str:
    others = [int(j) for j in np.argsort(shown.apart[k], kind="stable") if j != k][:NEAREST]
    if not others:
        return ""
    lines = "".join(
        f'<li><a href="#topic-{j}">topic {j}</a> {in_a_line(shown, j, 4)} '
        f"({shown.apart[k, j]:.2f})</li>"
        for j in others
    )
    head = "<h3>Nearest topics (0: the same, 1: without a common word)</h3>"
    return f'<div class="near">{head}<ul>{lines}</ul></div>'


# time
CURVE_WIDTH, CURVE_HEIGHT = 200, 40
BOX = f'class="curve" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" preserveAspectRatio="none"'


def time_curves(shown: TopicsShown) -> str:
    """A small chart for each topic, each on its own scale; the peak is said in figures."""
    table = shown.table
    if table is None:
        return ""
    cells = "".join(
        f'<a href="#topic-{k}"><span class="some"><b>{k}</b> {in_a_line(shown, k, 4)}</span>'
        f'<svg {BOX} aria-hidden="true">{_area(table, k)}</svg>'
        f"<small>{escape(_peak(table, k))}</small></a>"
        for k in shown.order
    )
    some = "1 document has" if table.skipped == 1 else f"{table.skipped:,} documents have"
    skipped = f" {some} no time." if table.skipped else ""
    n = len(table.periods)
    told = (
        f"{table.periods[0]} to {table.periods[-1]}, {n} period{'s' * (n != 1)}: the share of "
        f"each topic, on its own scale. Below each: where it is highest.{skipped}"
    )
    return f'<h2>Over time</h2><p class="scale">{escape(told)}</p><div class="times">{cells}</div>'


def _area(table: OverTime, k: int) -> str:
    return f'<path class="area" id="curve-{k}" d="{_path(table.shares[:, k])}"/>'


def _time(shown: TopicsShown, k: int) -> str:
    table = shown.table
    if table is None:
        return ""
    ends = f"<span>{escape(table.periods[0])}</span><span>{escape(table.periods[-1])}</span>"
    said = escape(_peak(table, k))
    return (
        f'<h3>Over time: {said}</h3><svg {BOX} role="img" aria-label="over time: {said}">'
        f'<use href="#curve-{k}"/></svg><div class="ends sans">{ends}</div>'
    )


def _peak(table: OverTime, k: int) -> str:
    column = np.nan_to_num(table.shares[:, k], nan=-1.0)
    best = int(column.argmax())
    if column[best] <= 0.0:
        return "none"
    return f"highest in {table.periods[best]}, {percent(column[best])}"


def _path(values: Array) -> str:
    """An area under the known values, in pieces where some are not known."""
    known = np.isfinite(values)
    highest = float(values[known].max(initial=0.0)) or 1.0
    x = np.linspace(0.0, CURVE_WIDTH, len(values)) if len(values) > 1 else np.array([0.0])
    y = CURVE_HEIGHT * (1.0 - np.where(known, values, 0.0) / highest)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    pieces = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        points = [f"{x[i]:.4g} {y[i]:.3g}" for i in range(first, last)]
        if len(points) == 1:  # a period alone has some width too
            points = [f"{x[first] - 1:.4g} {y[first]:.3g}", f"{x[first] + 1:.4g} {y[first]:.3g}"]
        left, right = points[0].split()[0], points[-1].split()[0]
        pieces.append(f"M{left} {CURVE_HEIGHT}L{'L'.join(points)}L{right} {CURVE_HEIGHT}Z")
    return "".join(pieces)
