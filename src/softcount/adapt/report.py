"""The page about an adaptation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from softcount.adapt.base import Adapter, Explanation, MovedWord
from softcount.adapt.comparison import CEILING, Comparison
from softcount.corpus.texts import texts_in
from softcount.errors import DataError
from softcount.labels.history import History, gold_numbers
from softcount.labels.report import (
    Figures,
    class_table,
    compared,
    counted,
    figure,
    figures,
    item_table,
    name_of,
)
from softcount.mixture.data import UNKNOWN
from softcount.show.groups import shortened
from softcount.show.report import document
from softcount.show.snippets import clean
from softcount.show.svg import FIGURE, LEGEND_ROW, STYLE, WIDTH, label, ticks
from softcount.types import Array

ONE_IN = 0.05
"""Shares below this are shown with one more figure."""


class Judgement(NamedTuple):
    """Methods judged by one kind of labels.

    ``head``       what the column of their accuracies is called
    ``told``       on what they were judged, in a sentence
    ``of_target``  whether that measures the target
    ``of``         what several results of a method are
    """

    head: str
    comparison: Comparison
    told: str
    of_target: bool = True
    of: str = "fold"


class MethodRow(NamedTuple):
    """A method: its accuracy in each judgement (NaN: not judged there), and its seconds."""

    name: str
    accuracies: Sequence[float]
    seconds: float


def method_rows(judgements: Sequence[Judgement]) -> list[MethodRow]:
    """All methods that were judged, in the order in which they ran."""
    names = dict.fromkeys(name for one in judgements for name in one.comparison.methods)
    rows = []
    for name in names:
        known = [name in one.comparison.methods for one in judgements]
        both = list(zip(known, judgements, strict=True))
        accuracies = [one.comparison.accuracy(name) if has else math.nan for has, one in both]
        seconds = next(one.comparison.seconds(name) for has, one in both if has)
        rows.append(MethodRow(name, accuracies, seconds))
    return rows


def method_table(judgements: Sequence[Judgement], chosen: str) -> str:
    """A row for each method; the chosen one stands out."""
    lines = ""
    for row in method_rows(judgements):
        cells = [*map(figure, row.accuracies), f"{row.seconds:.2f}"]
        css = " class=chosen" * (row.name == chosen)
        lines += (
            f'<tr{css}><th scope="row" class="name">{name_of(row.name)}</th>'
            f"{''.join(f'<td class=n>{cell}</td>' for cell in cells)}</tr>"
        )
    heads = [("method", "name"), *((name_of(one.head), "n") for one in judgements)]
    return _table([*heads, ("seconds", "n")], lines)


def moved_table(words: Sequence[MovedWord]) -> str:
    """Words with their weights in the source and in the target, as bars from a common zero."""
    several = len({one.label for one in words}) > 1
    full = max((abs(w) for one in words for w in (one.source, one.target)), default=0.0) or 1.0
    lines = ""
    for one in words:
        label = f'<td class="name">{name_of(one.label)}</td>' if several else ""
        cells = [_signed(one.source), _signed(one.target), percent(one.share)]
        lines += (
            f'<tr><th scope="row" class="name">{name_of(one.word)}</th>{label}'
            f"<td>{_bars(one.source / full, one.target / full)}</td>"
            f"{''.join(f'<td class=n>{cell}</td>' for cell in cells)}</tr>"
        )
    heads = [("word", "name"), *[("for", "name")] * several, ("", "")]
    return _table([*heads, ("source", "n"), ("target", "n"), ("in target", "n")], lines)


def correspondence_table(explanation: Explanation) -> str:
    """Words of the target, and those of the source that are nearest."""
    lines = "".join(
        f'<tr><th scope="row" class="name">{name_of(word)}</th><td class="near">'
        + ", ".join(f"{name_of(near)} <small>{cosine:.2f}</small>" for near, cosine in nearest)
        + "</td></tr>"
        for word, nearest in explanation.correspondences
    )
    return _table([("in the target", "name"), ("nearest in the source", "near")], lines)


def percent(share: float) -> str:
    """A share of items.

    >>> percent(0.25), percent(0.004)
    ('25%', '0.4%')
    """
    return f"{share:.0%}" if share >= ONE_IN else f"{share:.1%}"


def _signed(weight: float) -> str:
    return f"{weight:+.2f}".replace("-", "−")


def _bars(source: float, target: float) -> str:
    """Two bars from the middle, to the right if they are above zero."""
    return (
        '<svg class="weights" viewBox="-100 0 200 16" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="zero" d="M0 0V16"/>{_bar(source, 2, "before")}'
        f"{_bar(target, 8, 'below' if target < 0 else 'after')}</svg>"
    )


def _bar(share: float, y: int, css: str) -> str:
    wide = min(abs(share), 1.0) * 100.0
    start = -wide if share < 0 else 0.0
    return f'<rect class="{css}" x="{start:.1f}" y="{y}" width="{wide:.1f}" height="5"/>'


def _table(heads: Sequence[tuple[str, str]], lines: str) -> str:
    top = "".join(f'<th scope="col" class="{css}">{head}</th>' for head, css in heads)
    return f'<table class="figures"><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>'


# Methods side by side as a picture: a row for each, a dot for each transfer.


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


# What became of labels on their way to another domain: a table, a picture, a page.


__all__ = [
    "Adaptation",
    "Judgement",
    "adaptation_report",
    "comparison_chart",
    "comparison_text",
    "explanation_of",
    "labelled_by",
    "page",
]

WIDEST = 100
"""In letters: a table of methods has a column for each transfer if it is no wider."""
WORDS = 20
"""So many words that moved are on a page."""


def comparison_text(comparison: Comparison) -> str:
    """The methods, aligned; the best mean has a *.

    >>> from softcount.adapt.comparison import Result
    >>> runs = [("SourceOnly", 0.75), ("EasyAdapt", 0.8)]
    >>> results = [Result("books", "ovens", name, 0, right, 0.1, {}) for name, right in runs]
    >>> print(comparison_text(Comparison(results)))
    method      mean    CPU s
    SourceOnly  0.750    0.10
    EasyAdapt   0.800*   0.10
    Accuracy on books → ovens; * is the best.
    """
    methods, transfers = comparison.methods, comparison.transfers
    rivals = [comparison.accuracy(name) for name in methods if name != CEILING]
    best = max(rivals, default=math.nan)
    rows = [["method", "mean ", "CPU s"]]
    for name in methods:
        mean = comparison.accuracy(name)
        mark = "*" if mean == best and name != CEILING else " "
        rows.append([clean(name), f"{mean:.3f}{mark}", f"{comparison.seconds(name):.2f}"])
    if len(transfers) > 1:
        rows = _with_transfers(comparison, rows)
    runs = max((one.draw + 1 for one in comparison.results), default=0)
    where = " → ".join(transfers[0]) if len(transfers) == 1 else counted(len(transfers), "transfer")
    drawn = f", mean of {runs} draws" if runs > 1 else ""
    return f"{_aligned(rows)}\nAccuracy on {clean(where)}{drawn}; * is the best."


def _with_transfers(comparison: Comparison, rows: Sequence[list[str]]) -> list[list[str]]:
    """A column for each transfer if they fit, else the least and the largest accuracy."""
    ways = comparison.transfers
    heads = [clean(" → ".join(way)) for way in ways]
    found = [[comparison.accuracy(name, way) for way in ways] for name in comparison.methods]
    whole = [rows[0] + heads]
    whole += [row + [f"{a:.3f}" for a in some] for row, some in zip(rows[1:], found, strict=True)]
    if max(map(len, _aligned(whole).split("\n"))) <= WIDEST:
        return whole
    ends = [[min(some), max(some)] for some in found]
    return [
        rows[0] + ["min", "max"],
        *(row + [f"{a:.3f}" for a in some] for row, some in zip(rows[1:], ends, strict=True)),
    ]


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Everything to be shown of items of a target that were labelled.

    ``method``       what labelled them
    ``figures``      their labels: see `labelled_by`
    ``texts``        of the items, or None
    ``kind``         what an item is called: item, numbered from 0, or line, numbered from 1
    ``explanation``  what moved on the way; None if nobody can tell
    ``judgements``   how methods compare, if several were tried
    ``notes``        remarks, each a sentence
    """

    title: str
    method: str
    figures: Figures
    texts: Sequence[str] | None = None
    kind: str = "item"
    explanation: Explanation | None = None
    judgements: Sequence[Judgement] = ()
    notes: Sequence[str] = ()
    reference: str = SOURCE_ONLY

    @property
    def lead(self) -> str:
        """How many items had a label, and how many got one, in a sentence."""
        given = int((self.figures.history.given != UNKNOWN).sum())
        return (
            f"{counted(len(self.figures.labels), self.kind)} of the target: {given:,} had a label, "
            f"{int(self.figures.learned.sum()):,} got one by {clean(self.method)}."
        )

    @property
    def accuracy(self) -> str:
        """How the labels compare with gold ones, in a sentence; empty if there are none."""
        found = self.figures.comparison()
        return "" if found is None else compared(found, self.kind)


def adaptation_report(
    model: Adapter,
    X: Any,
    y: Any = None,
    *,
    gold: Any = None,
    comparison: Comparison | None = None,
    words: int = WORDS,
    title: str = "From one domain to another",
) -> str:
    """A page (HTML) about what a fitted method says of items of its target.

    ``X``           items of the target
    ``y``           labels that some of them have, and keep; None or −1 where there is none
    ``gold``        true labels, to be compared with those that the method gave
    ``comparison``  of this method with others
    ``words``       how many words that moved are shown

    >>> from softcount.adapt.supervised import Merge
    >>> texts = ["a good book", "a bad book", "sharp knife", "blunt knife"]
    >>> model = Merge().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    >>> html = adaptation_report(model, ["sharp & good"])
    >>> html[:15], "sharp &amp; good" in html
    ('<!doctype html>', True)
    """
    name, shares = type(model).__name__, model.predict_proba(X)
    given = [None] * len(shares) if y is None else y
    items = texts_in(X) if getattr(X, "ndim", 1) == 1 else None
    texts = None if items is None else [_as_text(item) for item in items]
    found = labelled_by(name, model.classes_, shares, given, gold, texts)
    explanation, reason = explanation_of(model, words)
    judged = [] if comparison is None else [Judgement("mean", comparison, "", of="draw")]
    notes = [reason] if reason else []
    return page(Adaptation(title, name, found, texts, "item", explanation, judged, notes))


def labelled_by(
    method: str,
    classes: Array,
    shares: Array,
    given: Any,
    gold: Any = None,
    texts: Sequence[str] | None = None,
) -> Figures:
    """Figures of items that got the likeliest class, unless they were ``given`` one.

    An item whose ``shares`` are NaN gets none.

    >>> classes, shares = np.array(["no", "yes"]), np.array([[0.3, 0.7], [0.6, 0.4]])
    >>> labelled_by("EasyAdapt", classes, shares, [None, "yes"]).labels
    array([1, 1])
    """
    known = figures(History(classes, np.full(len(shares), UNKNOWN)), labels=given).labels
    free, silent = known == UNKNOWN, np.isnan(shares).any(axis=1)
    history = History(classes, known, gold_numbers(gold, classes, len(shares)))
    labels = np.where(silent, UNKNOWN, shares.argmax(axis=1))
    sure = np.where(silent, 0.0, shares.max(axis=1))
    history.record(np.where(free, labels, known), np.where(free, sure, 1.0), method)
    return figures(history, texts, confidence=np.where(free, sure, 1.0))


def explanation_of(model: Adapter, words: int = WORDS) -> tuple[Explanation | None, str]:
    """What moved on the way; None, and why, if nobody can tell."""
    try:
        return model.explain(words), ""
    except DataError as error:
        return None, error.message


def _as_text(item: Any) -> str:
    return item if isinstance(item, str) else " ".join(item)


def page(one: Adaptation) -> str:
    """A whole page, which needs no network."""
    said = [*([one.accuracy] if one.accuracy else []), *one.notes]
    notes = "".join(
        f'<p class="note">{escape(clean(note[:1].upper() + note[1:]))}.</p>' for note in said
    )
    body = f"{notes}{_methods(one)}{_classes(one)}{_moved(one)}{_nearest(one)}{_doubtful(one)}"
    return document(clean(one.title), one.lead, body, _style())


@cache
def _style() -> str:
    # tables are those of labels that are learned from a few
    packages = ("softcount.labels", __package__)
    sheets = (resources.files(one).joinpath("report.css") for one in packages)
    return "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def _methods(one: Adaptation) -> str:
    if not one.judgements:
        return ""
    charts = "".join(
        f"<figure>{comparison_chart(judged.comparison, reference=one.reference, of=judged.of)}"
        f"<figcaption>{escape(clean(judged.told))}</figcaption></figure>"
        for judged in one.judgements
        if judged.of_target
    )
    other = "".join(
        f'<p class="scale">{escape(clean(judged.told))}</p>'
        for judged in one.judgements
        if not judged.of_target
    )
    table = method_table(one.judgements, one.method)
    scale = '<p class="scale">Accuracies; seconds are of the processor, for a run.</p>'
    return f'<h2>Methods</h2>{charts}<div class="wide">{table}</div>{scale}{other}'


def _classes(one: Adaptation) -> str:
    known = one.figures.gold is not None
    table = class_table(one.figures.classes(), one.figures.history.counts(), known)
    told = (
        f'<p class="scale">Right: the share of {one.kind}s labelled so that are so by their gold '
        f"label. Found: the share of {one.kind}s of that gold label that are labelled so. Given "
        "labels are left out.</p>"
    )
    return f'<h2>Labels</h2><div class="wide">{table}</div>{told * known}'


def _moved(one: Adaptation) -> str:
    if one.explanation is None or not one.explanation.moved:
        return ""
    words, names = one.explanation.moved, [name_of(name) for name in one.figures.names]
    sides = ("the label", "against it")
    if len(names) == 2:
        sides = (names[1], f"for {names[0]}")
    told = (
        f"Weights above 0 speak for {sides[0]}, below 0 {sides[1]}: "
        '<span class="key before"></span> in a classifier of the source alone, '
        '<span class="key after"></span> in the target now. First are those that change most in '
        "the target, where words are as frequent as the last column says."
    )
    table = moved_table(words)
    return f'<h2>Words that moved</h2><p class="scale">{told}</p><div class="wide">{table}</div>'


def _nearest(one: Adaptation) -> str:
    if one.explanation is None or not one.explanation.correspondences:
        return ""
    told = "Words of the target, and the nearest of the source, with the cosine of their features."
    table = correspondence_table(one.explanation)
    return (
        f'<h2>Words that correspond</h2><p class="scale">{told}</p><div class="wide">{table}</div>'
    )


def _doubtful(one: Adaptation) -> str:
    items = one.figures.doubtful()
    if not items:
        return ""
    marks = " ✓ and ✗: beside its gold label." * (one.figures.gold is not None)
    told = f"The {one.kind}s with the least sure labels: true ones would teach most here.{marks}"
    table = item_table(items, one.texts, one.kind)
    return f'<h2>What to label next</h2><p class="scale">{told}</p><div class="wide">{table}</div>'
