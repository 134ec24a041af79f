"""Labels that were carried to another domain, and methods compared: tables, a picture, a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcount.adapt.base import Adapter, Explanation
from softcount.adapt.comparison import CEILING, Comparison
from softcount.core.errors import DataError
from softcount.core.types import Array, FloatArray
from softcount.labels.history import History, gold_numbers
from softcount.labels.report import (
    LabellingFigures,
    capitalise,
    compute_figures,
    describe_accuracy,
    describe_classes,
    describe_items,
    make_class_table,
    shorten_name,
    write_share,
)
from softcount.mixture.data import UNKNOWN
from softcount.report.charts import COLOURS, Dot, DotRow, draw_dots
from softcount.report.page import render_page
from softcount.report.tables import (
    Column,
    align_cells,
    format_share,
    list_plain_rows,
    make_rich_table,
    write_tsv,
)
from softcount.report.text import clean, flatten, plural
from softcount.text.documents import find_texts

if TYPE_CHECKING:
    from rich.console import Console

SOURCE_ONLY = "SourceOnly"
"""The method that all others are held against."""
WIDEST = 100
"""A table of methods has a column for each transfer if it has at most this many letters."""
WORDS = 20
"""Number of words that moved on a page."""


class Judgement(NamedTuple):
    """Methods judged by one kind of labels.

    ``head``       what the column of their accuracies is called
    ``basis``      what they were judged on, in a sentence
    ``of_target``  whether that measures the target
    ``of``         what several results of a method are
    """

    head: str
    comparison: Comparison
    basis: str
    of_target: bool = True
    of: str = "fold"


class MethodRow(NamedTuple):
    """A method: its accuracy in each judgement (NaN: not judged there), and its seconds."""

    name: str
    accuracies: Sequence[float]
    seconds: float


def list_methods(judgements: Sequence[Judgement]) -> list[MethodRow]:
    """List all methods that were judged, in the order in which they ran."""
    found = [one.comparison for one in judgements]
    rows = []
    for name in dict.fromkeys(name for one in found for name in one.methods):
        accuracies = [one.accuracy(name) if name in one.methods else math.nan for one in found]
        seconds = next(one.seconds(name) for one in found if name in one.methods)
        rows.append(MethodRow(name, accuracies, seconds))
    return rows


def format_percent(share: float) -> str:
    """Format a share of items, with one more figure if it is small.

    >>> format_percent(0.25), format_percent(0.004)
    ('25%', '0.4%')
    """
    return f"{share:.0%}" if share >= 0.05 else f"{share:.1%}"


# Methods side by side


def draw_comparison(
    comparison: Comparison, *, reference: str = SOURCE_ONLY, of: str = "draw"
) -> str:
    """Draw methods side by side, as ``<svg>``: a dot for each transfer, a bar for the mean.

    ``reference``  the method whose mean is drawn through all rows
    ``of``         what several results of one method are if there is a single transfer: each has a
                   dot of its own then

    >>> from softcount.adapt.comparison import Result
    >>> found = Comparison([Result("books", "ovens", "SourceOnly", 0, 0.75, 0.1, {})])
    >>> str(draw_comparison(found))[:25]
    '<svg class="sc-chart" rol'
    """
    transfers = comparison.transfers
    targets = list(dict.fromkeys(target for _, target in transfers))
    coloured = targets if 1 < len(targets) <= COLOURS else []
    rows = []
    for method in comparison.methods:
        if len(transfers) > 1:
            dots = [
                Dot(
                    comparison.accuracy(method, (source, target)),
                    f"{source} → {target}",
                    coloured.index(target) if coloured else 0,
                )
                for source, target in transfers
            ]
        else:
            runs = [one for one in comparison.results if one.method == method]
            dots = [Dot(one.accuracy, f"{of} {one.draw + 1}") for one in runs]
        rows.append(DotRow(method, dots, comparison.accuracy(method), method == CEILING))
    title = f"Accuracy of {len(rows)} methods in the target"
    names = [f"to {target}" for target in coloured]
    names = names or [f"a {'transfer' if len(transfers) > 1 else of}"]
    return draw_dots(rows, title, "accuracy in the target", names, reference)


def write_comparison(comparison: Comparison) -> str:
    """Write a table of the methods; the best mean has a *.

    >>> from softcount.adapt.comparison import Result
    >>> runs = [("SourceOnly", 0.75), ("EasyAdapt", 0.8)]
    >>> results = [Result("books", "ovens", name, 0, right, 0.1, {}) for name, right in runs]
    >>> print(write_comparison(Comparison(results)))
    method      mean    CPU s
    SourceOnly  0.750    0.10
    EasyAdapt   0.800*   0.10
    Accuracy on books → ovens; * is the best.
    """
    methods, transfers = comparison.methods, comparison.transfers
    means = {name: comparison.accuracy(name) for name in methods}
    best = max((mean for name, mean in means.items() if name != CEILING), default=math.nan)
    rows = [["method", "mean ", "CPU s"]]
    for name, mean in means.items():
        mark = "*" if mean == best and name != CEILING else " "
        rows.append([clean(name), f"{mean:.3f}{mark}", f"{comparison.seconds(name):.2f}"])
    if len(transfers) > 1:
        each = [[comparison.accuracy(name, one) for one in transfers] for name in methods]
        wide = _add_figures(rows, [clean(" → ".join(one)) for one in transfers], each)
        if max(map(len, align_cells(wide, left=1).split("\n"))) > WIDEST:
            wide = _add_figures(rows, ["min", "max"], [[min(some), max(some)] for some in each])
        rows = wide
    runs = max((one.draw + 1 for one in comparison.results), default=0)
    where = " → ".join(transfers[0]) if len(transfers) == 1 else plural(len(transfers), "transfer")
    drawn = f", mean of {runs} draws" if runs > 1 else ""
    return f"{align_cells(rows, left=1)}\nAccuracy on {clean(where)}{drawn}; * is the best."


def _add_figures(
    rows: Sequence[list[str]], heads: list[str], figures: Sequence[Sequence[float]]
) -> list[list[str]]:
    cells = [heads, *([f"{a:.3f}" for a in some] for some in figures)]
    return [row + more for row, more in zip(rows, cells, strict=True)]


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Everything to be shown of items of a target that were labelled.

    ``method``       what labelled them
    ``figures``      their labels: see `record_labels`
    ``texts``        of the items, or None
    ``kind``         what an item is called: item, numbered from 0, or line, numbered from 1
    ``explanation``  the words that moved; None if the method cannot tell
    ``judgements``   how methods compare, if several were tried
    ``notes``        remarks, each a sentence
    """

    title: str
    method: str
    figures: LabellingFigures
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
            f"{plural(len(self.figures.labels), self.kind)} of the target: {given:,} had a label, "
            f"{int(self.figures.learned.sum()):,} got one by {clean(self.method)}."
        )

    @property
    def accuracy(self) -> str:
        """How the labels compare with gold ones, in a sentence; empty if there are none."""
        found = self.figures.comparison()
        return "" if found is None else describe_accuracy(found, self.kind)

    def remarks(self, words: bool) -> list[str]:
        """How right the labels are, on what methods were judged, the notes, and what is near."""
        remarks = [self.accuracy, *(one.basis for one in self.judgements), *self.notes]
        if words and self.explanation is not None:
            remarks += [
                f"{word} is near {', '.join(f'{near} ({cosine:.2f})' for near, cosine in nearest)}"
                for word, nearest in self.explanation.correspondences
            ]
        return [clean(text).rstrip(".") for text in remarks if text]

    def show(self, console: Console, *, words: bool = False) -> None:
        """Show the overview in a terminal; with ``words``, also those that moved."""
        from rich.text import Text

        console.print(Text(clean(self.title), style="bold"), Text(self.lead), sep="\n")
        if self.judgements:
            rows = list_methods(self.judgements)
            chosen = [k for k, row in enumerate(rows) if row.name == self.method]
            console.print(make_rich_table(self._list_method_columns(), bold=chosen))
        console.print(make_class_table(self.figures.classes(), self.figures.gold is not None))
        if words and self.explanation is not None:
            moved = self.explanation.moved
            columns = [
                Column("word that moved", [shorten_name(one.word) for one in moved], kind="words"),
                Column("source", [f"{one.source:+.2f}" for one in moved]),
                Column("target", [f"{one.target:+.2f}" for one in moved]),
                Column("moved", [f"{one.moved:+.2f}" for one in moved]),
                Column("in target", [format_percent(one.share) for one in moved]),
                Column("for", [shorten_name(one.label) for one in moved], kind="words"),
            ]
            console.print(make_rich_table(columns))
        for remark in self.remarks(words):
            console.print(Text(remark))

    def as_tsv(self, *, words: bool = False) -> str:
        """For programs: remarks as #, a row for each method, and for each word if it is wanted.

        Where both are, a blank line is between them.
        """
        remarks = [self.title, self.lead, *self.remarks(words), *describe_classes(self.figures)]
        tables: list[Sequence[Sequence[str]]] = []
        if self.judgements:
            tables.append(list_plain_rows(self._list_method_columns()))
        if words and self.explanation is not None:
            table = [["word", "label", "source", "target", "moved", "share"]]
            for one in self.explanation.moved:
                figures = (one.source, one.target, one.moved, one.share)
                # no minus before a zero
                cells = [f"{round(figure, 4) + 0.0:.4f}" for figure in figures]
                table.append([one.word, str(one.label), *cells])
            tables.append(table)
        return "".join(f"# {flatten(remark)}\n" for remark in remarks) + "\n".join(
            write_tsv([[flatten(cell) for cell in row] for row in table]) for table in tables
        )

    def _list_method_columns(self) -> list[Column]:
        rows = list_methods(self.judgements)
        names, chosen = [row.name for row in rows], [row.name == self.method for row in rows]
        columns = [
            Column("", ["→" if own else "" for own in chosen], kind="words"),
            Column("method", names, names, kind="words"),
        ]
        for k, one in enumerate(self.judgements):
            found = [row.accuracies[k] for row in rows]
            cells, plain = [format_share(a) for a in found], [write_share(a) for a in found]
            columns.append(Column(one.head, cells, plain))
        seconds = [row.seconds for row in rows]
        return [
            *columns,
            Column("seconds", [f"{x:.2f}" for x in seconds], [f"{x:.3f}" for x in seconds]),
            Column("chosen", None, ["yes" if own else "" for own in chosen]),
        ]


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
    """Make a page (HTML) about what a fitted method says of items of its target.

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
    name, posteriors = type(model).__name__, model.predict_proba(X)
    given = [None] * len(posteriors) if y is None else y
    items = find_texts(X)
    texts = items and [item if isinstance(item, str) else " ".join(item) for item in items]
    labelled = record_labels(name, model.classes_, posteriors, given, gold, texts)
    explanation, reason = explain_or_tell_why(model, words)
    judged = [] if comparison is None else [Judgement("mean", comparison, "", of="draw")]
    notes = [reason] if reason else []
    return adaptation_page(
        Adaptation(title, name, labelled, texts, "item", explanation, judged, notes)
    )


def record_labels(
    method: str,
    classes: Array,
    posteriors: FloatArray,
    given: Any,
    gold: Any = None,
    texts: Sequence[str] | None = None,
) -> LabellingFigures:
    """Compute figures of items that got the likeliest class, unless they were ``given`` one.

    An item whose ``posteriors`` are NaN gets none.

    >>> classes, posteriors = np.array(["no", "yes"]), np.array([[0.3, 0.7], [0.6, 0.4]])
    >>> record_labels("EasyAdapt", classes, posteriors, [None, "yes"]).labels
    array([1, 1])
    """
    nothing = History(classes, np.full(len(posteriors), UNKNOWN))
    known = compute_figures(nothing, labels=given).labels
    free, silent = known == UNKNOWN, np.isnan(posteriors).any(axis=1)
    history = History(classes, known, gold_numbers(gold, classes, len(posteriors)))
    labels = np.where(silent, UNKNOWN, posteriors.argmax(axis=1))
    sure = np.where(silent, 0.0, posteriors.max(axis=1))
    history.record(np.where(free, labels, known), np.where(free, sure, 1.0), method)
    return compute_figures(history, texts, confidence=np.where(free, sure, 1.0))


def explain_or_tell_why(model: Adapter, words: int = WORDS) -> tuple[Explanation | None, str]:
    """Find the words that moved; None, and why, if the method cannot tell."""
    try:
        return model.explain(words), ""
    except DataError as error:
        return None, error.message


def adaptation_page(one: Adaptation) -> str:
    """Make a whole page, which needs no network."""
    moved = [] if one.explanation is None else one.explanation.moved
    return render_page(
        "adapt/report.html",
        clean(one.title),
        one.lead,
        one=one,
        notes=capitalise([note for note in (one.accuracy, *one.notes) if note]),
        methods=list_methods(one.judgements),
        charts=[
            (draw_comparison(comparison, reference=one.reference, of=of), basis)
            for _, comparison, basis, of_target, of in one.judgements
            if of_target
        ],
        moved=moved,
        several=len({word.label for word in moved}) > 1,
        heaviest=max((abs(w) for x in moved for w in (x.source, x.target)), default=0.0) or 1.0,
        percent=format_percent,
        near=[] if one.explanation is None else one.explanation.correspondences,
        doubtful=one.figures.doubtful(),
        **describe_items(one.figures, one.texts, one.kind),
    )
