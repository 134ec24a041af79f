"""What became of labels on their way to another domain: a table, a picture, a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from softcount.adapt.base import Adapter
from softcount.adapt.comparison import CEILING, Comparison
from softcount.adapt.explanation import Explanation
from softcount.corpus.texts import texts_in
from softcount.errors import DataError
from softcount.models.mixture.labels import UNKNOWN
from softcount.show.adaptation_chart import SOURCE_ONLY, comparison_chart
from softcount.show.adaptation_tables import (
    Judgement,
    correspondence_table,
    method_table,
    moved_table,
)
from softcount.show.labelling import compared, counted
from softcount.show.labelling_figures import Figures, figures
from softcount.show.labelling_tables import class_table, item_table, name_of
from softcount.show.report import document
from softcount.show.snippets import clean
from softcount.types import Array
from softcount.weak.history import History, gold_numbers

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

    >>> from softcount.adapt.baselines import Merge
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
    here = resources.files(__package__)
    # tables are those of labels that are learned from a few
    names = ("labelling.css", "adaptation.css")
    return "".join(here.joinpath(name).read_text(encoding="utf-8") for name in names)


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
