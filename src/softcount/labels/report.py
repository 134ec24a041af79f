"""Labels that were learned from a few: as a page, in a terminal, for programs, in a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.labels.history import HEADS, Changes, History, Round, format_round
from softcount.mixture.data import UNKNOWN
from softcount.report.charts import Series, draw_lines, trace_curve
from softcount.report.page import render, render_page
from softcount.report.tables import (
    Column,
    draw_bar,
    format_share,
    make_rich_table,
    print_view,
    spread_rows,
    write_tsv,
)
from softcount.report.text import clean, find_snippet, plural, shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FIRST_ROUNDS, LAST_ROUNDS = 20, 10
"""Number of rounds that are listed from the beginning and from the end of a long history."""
EACH = 3
"""Number of items listed for each class of a round, the most confident ones."""
MOST_LISTED = 600
"""With more items than this in all rounds, fewer of each are listed, but always one."""
MOST_CLASSES_A_ROUND = 20
NEXT = 20
"""Number of items listed as worth a label, and of those without one."""


class GoldAccuracy(NamedTuple):
    """Labels that were not given beside gold ones: how many can be ``compared``, how many of these
    are ``right``, and how many items with a gold label have none.
    """

    compared: int
    right: int
    missing: int

    @property
    def accuracy(self) -> float:
        return self.right / self.compared if self.compared else float("nan")


class ClassRow(NamedTuple):
    """A class: how many items were given it, how many have it at the end, and its precision and
    recall on items with a label that was not given and a gold label.
    """

    name: Any
    given: int
    labelled: int
    precision: float
    recall: float


class ViewRow(NamedTuple):
    """A view: how many items got a label from it that had none, and how many another one; how many
    still have the label that it gave; its mean confidence, and the accuracy of its labels.
    """

    name: str
    new: int
    changed: int
    kept: int
    confidence: float
    accuracy: float


class LabelledItem(NamedTuple):
    """An item and its label (None: it has none), the one ``before``, and whether it is right (None:
    nobody knows).
    """

    number: int
    label: Any
    confidence: float
    view: str = ""
    before: Any = None
    right: bool | None = None


class GivenLabels(NamedTuple):
    """What a round gave of a class: some ``items``, the most confident first, of ``total``."""

    label: Any
    items: Sequence[LabelledItem]
    total: int


class RoundSummary(NamedTuple):
    """A round with some of what it gave; ``classes_left_out`` others got labels too."""

    round: Round
    given: Sequence[GivenLabels]
    classes_left_out: int

    def describe(self) -> str:
        """How much the round gave, and how right it was, in a line."""
        one = self.round
        counts = {"new": one.new, "changed": one.changed, "lost": one.lost}
        parts = [f"{n:,} {what}" for what, n in counts.items() if n]
        shares = {"confidence": one.confidence, "accuracy": one.accuracy}
        parts += [f"{what} {share:.3f}" for what, share in shares.items() if math.isfinite(share)]
        return " · ".join(parts)


@dataclass(frozen=True, eq=False)
class LabellingFigures:
    """The figures of a history.

    ``labels``      each item's label at the end, as a number; −1: none
    ``confidence``  and how sure it is
    ``gold``        as in `History`
    ``blank``       whether an item has nothing that could be read
    """

    history: History
    labels: IntArray
    confidence: FloatArray
    gold: IntArray | None
    blank: BoolArray

    @cached_property
    def names(self) -> list[Any]:
        """The classes, as Python has them."""
        return list(self.history.classes.tolist())

    @cached_property
    def learned(self) -> BoolArray:
        """Which items have a label that was not given."""
        learned: BoolArray = (self.history.given == UNKNOWN) & (self.labels != UNKNOWN)
        return learned

    def comparison(self) -> GoldAccuracy | None:
        """Comparison with gold labels; None if there are none."""
        if self.gold is None:
            return None
        known = self.gold != UNKNOWN
        compared = self.learned & known
        right = int((self.labels[compared] == self.gold[compared]).sum())
        missing = int((known & (self.labels == UNKNOWN)).sum())
        return GoldAccuracy(int(compared.sum()), right, missing)

    def classes(self) -> list[ClassRow]:
        """All classes in their order."""
        K = len(self.names)
        given, labelled = _count_classes(self.history.given, K), _count_classes(self.labels, K)
        precision = recall = np.full(K, np.nan)
        if self.gold is not None:
            known = self.learned & (self.gold != UNKNOWN)
            labels, gold = self.labels[known], self.gold[known]
            hits = _count_classes(labels[labels == gold], K)
            precision = _divide(hits, _count_classes(labels, K))
            recall = _divide(hits, _count_classes(gold, K))
        columns = (column.tolist() for column in (given, labelled, precision, recall))
        return list(map(ClassRow, self.names, *columns))

    def views(self) -> list[ViewRow]:
        """All views but what was given, the one with most labels first."""
        history = self.history
        if len(history) == 1:
            return []
        changes = [history.changes(number) for number in range(1, len(history))]
        items, before, labels, confidence, views = map(np.concatenate, zip(*changes, strict=True))
        names, of_view = np.unique(views, return_inverse=True)

        def count(which: BoolArray, weights: FloatArray | None = None) -> Array:
            some = None if weights is None else weights[which]
            return np.bincount(of_view[which], some, len(names))

        labelled = labels != UNKNOWN
        new, changed = count(before == UNKNOWN), count(labelled & (before != UNKNOWN))
        mean = _divide(count(labelled, confidence), new + changed)
        accuracy = np.full(len(names), np.nan)
        if self.gold is not None:
            gold = self.gold[items]
            compared = labelled & (history.given[items] == UNKNOWN) & (gold != UNKNOWN)
            accuracy = _divide(count(compared & (labels == gold)), count(compared))
        # the view that labelled each item last, if the item still has a label
        last = np.full(history.n_items, -1)
        last[items] = of_view
        kept = np.bincount(last[(history.labels != UNKNOWN) & (last >= 0)], minlength=len(names))
        columns = (column.tolist() for column in (names, new, changed, kept, mean, accuracy))
        # a label that nobody gave is one that was lost
        rows = [row for row in map(ViewRow, *columns) if row.name]
        return sorted(rows, key=lambda row: (-row.new - row.changed, row.name))

    def rounds(self) -> list[RoundSummary]:
        """Some of what each round gave, of many rounds the first and the last ones."""
        busy = [one for one in self.history.rounds[1:] if one.new or one.changed or one.lost]
        if len(busy) > FIRST_ROUNDS + LAST_ROUNDS:
            busy = [*busy[:FIRST_ROUNDS], *busy[-LAST_ROUNDS:]]
        by_class = [self._split_by_class(self.history.changes(one.number)) for one in busy]
        groups = sum(min(len(some), MOST_CLASSES_A_ROUND) for some in by_class)
        each = min(EACH, max(1, MOST_LISTED // max(groups, 1)))
        return [self._summarise(*pair, each) for pair in zip(busy, by_class, strict=True)]

    def doubtful(self) -> list[LabelledItem]:
        """Labelled items of which the learner is least sure, of those that can be read."""
        rows = np.flatnonzero(self.learned & ~self.blank)
        order = np.argsort(self.confidence[rows], kind="stable")[:NEXT]
        return self._list_items(rows[order])

    def unlabelled(self) -> tuple[list[LabelledItem], int]:
        """The first items without a label that can be read, and how many there are."""
        rows = np.flatnonzero((self.labels == UNKNOWN) & ~self.blank)
        return self._list_items(rows[:NEXT]), len(rows)

    def _list_items(self, rows: IntArray) -> list[LabelledItem]:
        """Some items as they are at the end."""
        columns = (rows, np.full(len(rows), UNKNOWN), self.labels[rows], self.confidence[rows])
        return list(map(self._make_item, *(column.tolist() for column in columns)))

    def _split_by_class(self, changes: Changes) -> dict[int, IntArray]:
        """The places in a round's changes of those that got each class, the surest first."""
        order = np.lexsort((changes.items, -changes.confidence, changes.labels))
        labels, starts = np.unique(changes.labels[order], return_index=True)
        parts = dict(zip(labels.tolist(), np.split(order, starts[1:]), strict=True))
        parts.pop(UNKNOWN, None)
        return parts

    def _summarise(self, one: Round, by_class: dict[int, IntArray], each: int) -> RoundSummary:
        changes = self.history.changes(one.number)
        largest = sorted(by_class, key=lambda k: (-len(by_class[k]), k))[:MOST_CLASSES_A_ROUND]
        given = []
        for k in sorted(largest):
            rows = zip(*(column[by_class[k][:each]].tolist() for column in changes), strict=True)
            items = [self._make_item(*row) for row in rows]
            given.append(GivenLabels(self.names[k], items, len(by_class[k])))
        return RoundSummary(one, given, len(by_class) - len(largest))

    def _make_item(
        self, item: int, before: int, label: int, confidence: float, view: str = ""
    ) -> LabelledItem:
        names = [*self.names, None]  # of classes, the last of a label that is unknown
        gold = UNKNOWN if self.gold is None else self.gold[item]
        right = None if UNKNOWN in (label, gold) else bool(label == gold)
        return LabelledItem(item, names[label], confidence, view, names[before], right)


def compute_figures(
    history: History,
    texts: Sequence[str] | None = None,
    labels: Sequence[Any] | Array | None = None,
    confidence: Sequence[float] | FloatArray | None = None,
    gold: IntArray | None = None,
) -> LabellingFigures:
    """The figures of a history; what is at the end may be other than what its last round left.

    ``labels``  each item's label at the end, None if it has none
    ``gold``    as in `History`, whose own is used if there is none here
    """
    n = history.n_items
    numbers = history.labels
    if labels is not None:
        names = history.classes.tolist()
        places: dict[Any, int] = {None: UNKNOWN, UNKNOWN: UNKNOWN}
        places |= {name: k for k, name in enumerate(names)}
        plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
        strange = [label for label in plain if label not in places]
        if strange:
            raise DataError(
                f"labels: {brief(strange[0])} is none of the classes", f"they are {brief(names)}"
            )
        numbers = np.array([places[label] for label in plain], dtype=np.int64)
    sure = history.confidence() if confidence is None else np.asarray(confidence, np.float64)
    known = history.gold if gold is None else np.asarray(gold)
    blank = np.zeros(n, bool) if texts is None else np.array([not t.strip() for t in texts], bool)
    given = {"texts": blank, "labels": numbers, "confidence": sure, "gold": known}
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise DataError(f"{name}: {len(values)} for {n} items", "give one for each item")
    return LabellingFigures(history, numbers, sure, known, blank)


def _count_classes(labels: IntArray, n_classes: int) -> IntArray:
    """How many have each class; what is no class is left out."""
    return np.bincount(labels[labels >= 0], minlength=n_classes)


def _divide(parts: Array, wholes: IntArray) -> FloatArray:
    """Shares of wholes; NaN where these are 0."""
    return np.where(wholes > 0, parts / np.maximum(wholes, 1), np.nan)


# In a terminal, and for programs

SHOWN_ROUNDS, SHOWN_CLASSES, SHOWN_VIEWS = 16, 30, 8
"""Number of rows of tables in a terminal."""
LONGEST_NAME = 24
"""Letters of a class or a view in a terminal."""


@dataclass(frozen=True, eq=False)
class Labelling:
    """Everything to be shown of labels that were learned.

    ``texts``  of the items, or None
    ``kind``   what an item is called: item, numbered from 0, or line, numbered from 1
    ``rules``  a rule as it is to be read, its label and its strength; the strongest first
    ``notes``  remarks, each a sentence
    """

    title: str
    figures: LabellingFigures
    texts: Sequence[str] | None = None
    kind: str = "item"
    rules: Sequence[tuple[str, Any, float]] = ()
    notes: Sequence[str] = ()
    signature: str = ""

    @property
    def history(self) -> History:
        return self.figures.history

    @property
    def lead(self) -> str:
        """How many labels were given, and what became of them, in a sentence."""
        history, rounds = self.history, self.history.rounds
        last, ended = rounds[-1].labelled, int((self.figures.labels >= 0).sum())
        more = f", {ended:,} in the end" if ended != last else ""
        return (
            f"{plural(history.n_items, self.kind)}: {rounds[0].labelled:,} with a label from the "
            f"start, {last:,} after {plural(len(rounds) - 1, 'round')}{more}."
        )

    @property
    def accuracy(self) -> str:
        """How the labels compare with gold ones, in a sentence; empty if there are none."""
        comparison = self.figures.comparison()
        return "" if comparison is None else describe_accuracy(comparison, self.kind)

    def remarks(self) -> list[str]:
        """How right the labels are, how many items have none, and the notes."""
        _, without = self.figures.unlabelled()
        missing = [f"{plural(without, self.kind)} without a label"] if without else []
        return [clean(text) for text in (self.accuracy, *missing, *self.notes) if text]

    def show(self, console: Console) -> None:
        """In a terminal: rounds, classes, views, how right it is, and the signature."""
        from rich.text import Text

        known = self.figures.gold is not None
        console.print(Text(clean(self.title), style="bold"), Text(self.lead), sep="\n")
        heads = HEADS if known else HEADS[:-1]
        rounds = [
            ["⋮"] * len(HEADS) if number is None else format_round(self.history.rounds[number])
            for number in spread_rows(len(self.history), SHOWN_ROUNDS)
        ]
        columns = [Column(head, [row[k] for row in rounds]) for k, head in enumerate(heads)]
        console.print(make_rich_table(columns))
        console.print(make_class_table(self.figures.classes(), known))
        views = self.figures.views()
        if len(views) > 1:
            some = views[:SHOWN_VIEWS]
            columns = [
                Column("view", [shorten_name(row.name) for row in some], kind="words"),
                *(
                    Column(head, [f"{getattr(row, head):,}" for row in some])
                    for head in ("new", "changed", "kept")
                ),
                *(
                    Column(head, [format_share(getattr(row, head)) for row in some])
                    for head in ("confidence", "accuracy")[: 1 + known]
                ),
            ]
            console.print(make_rich_table(columns, more=len(views) - len(some)))
        if self.rules:
            rules, labels, strengths = zip(*self.rules, strict=True)
            columns = [
                Column("rule", list(map(clean, rules)), kind="words"),
                Column("class", list(map(shorten_name, labels)), kind="words"),
                Column("strength", [f"{strength:.4f}" for strength in strengths]),
            ]
            console.print(make_rich_table(columns))
        for remark in self.remarks():
            console.print(Text(remark))
        if self.signature:  # one line, to be copied whole
            console.print(Text(clean(self.signature), style="dim"), soft_wrap=True)

    def print(self, stream: TextIO) -> None:
        """Tables if someone is watching, else tab-separated values."""
        print_view(stream, self.show, self.as_tsv)

    def as_tsv(self) -> str:
        """The rounds for programs; remarks as #, some for classes, views and rules."""
        remarks = [self.title, self.lead, *self.remarks()]
        remarks += [self.signature] if self.signature else []
        remarks += describe_classes(self.figures)
        views = self.figures.views()
        remarks += [
            f"by {row.name}: {row.new:,} new, {row.changed:,} changed"
            for row in views[: SHOWN_VIEWS if len(views) > 1 else 0]
        ]
        remarks += [
            f"{label}: {rule}, strength {strength:.4f}" for rule, label, strength in self.rules
        ]
        rows = [
            [*map(str, counts), write_share(confidence), write_share(accuracy)]
            for *counts, confidence, accuracy in self.history.rounds
        ]
        return write_tsv([HEADS, *rows], [" ".join(clean(remark).split()) for remark in remarks])


def make_class_table(rows: Sequence[ClassRow], known: bool) -> Table:
    """How many items each class was given and has; ``known``: and how many rightly."""
    largest = sorted(range(len(rows)), key=lambda k: (-rows[k].labelled, k))[:SHOWN_CLASSES]
    full = max((row.labelled for row in rows), default=0) or 1
    some = [rows[k] for k in sorted(largest)]
    columns = [
        Column("class", [shorten_name(row.name) for row in some], kind="words"),
        Column("given", [f"{row.given:,}" for row in some]),
        Column("at the end", [f"{row.labelled:,}" for row in some]),
    ]
    if known:
        columns.append(Column("precision", [format_share(row.precision) for row in some]))
        columns.append(Column("recall", [format_share(row.recall) for row in some]))
    columns.append(Column("", [draw_bar(row.labelled / full) for row in some], kind="bar"))
    return make_rich_table(columns, more=len(rows) - len(some))


def shorten_name(value: object) -> str:
    """A class, a view or a word for a table in a terminal."""
    return shorten(clean(value), LONGEST_NAME)


def write_share(value: float) -> str:
    """A share for programs; nothing where there is none."""
    return f"{value:.4f}" if math.isfinite(value) else ""


def describe_classes(figures: LabellingFigures) -> list[str]:
    """A line for each class."""
    return [
        f"{row.name}: {row.given:,} given, {row.labelled:,} at the end" for row in figures.classes()
    ]


def describe_accuracy(comparison: GoldAccuracy, kind: str) -> str:
    """How labels compare with gold ones, in a sentence.

    >>> describe_accuracy(GoldAccuracy(200, 150, 1), "line")
    'accuracy 0.750 on 200 lines with a gold label, given ones left out; 1 more has no label'
    """
    compared, _, missing = comparison
    text = f"no {kind} that was labelled has a gold label"
    if compared:
        text = (
            f"accuracy {comparison.accuracy:.3f} on {plural(compared, kind)} with a gold label, "
            "given ones left out"
        )
    more = f"; {missing:,} more {'has' if missing == 1 else 'have'} no label" if missing else ""
    return text + more


# The page

MOST_ROUNDS, CARD_ROUNDS = 40, 12
"""Number of rounds in the table of a page, and of a notebook."""
MOST_CLASSES, MOST_VIEWS, MOST_RULES = 100, 30, 60
BEGINNING = 160
"""Letters of a text that are shown."""
MOST_CURVES = 4
"""More classes than colours have one curve for all of them, and each a small one in the table."""
LONGEST_IN_LEGEND = 18
"""Letters of a class in a chart's legend."""
SPARK, SPARK_POINTS = (100, 16), 60
"""Width and height of a small curve, and its number of points."""


def labelling_report(
    history: History,
    texts: Sequence[str] | None = None,
    *,
    labels: Sequence[Any] | Array | None = None,
    confidence: Sequence[float] | FloatArray | None = None,
    rules: Sequence[tuple[str, Any, float]] = (),
    title: str = "Labels from a few",
) -> str:
    """A page (HTML) about what a learner labelled when, how confidently, and by which view.

    ``texts``       of the items
    ``labels``      the label of each item at the end, such as ``transduction_``; else what the last
                    round left
    ``confidence``  how sure that is; else how sure each label was when it was given
    ``rules``       each as text, its label and its strength

    >>> import numpy as np
    >>> history = History(["no", "yes"], np.array([0, 1, -1]))
    >>> history.record(np.array([0, 1, 1]), np.array([1.0, 1.0, 0.8]), "spelling")
    >>> page = labelling_report(history, ["nope", "oh yes", "yes & no"])
    >>> page[:15], "yes &amp; no" in page
    ('<!doctype html>', True)
    """
    some = compute_figures(history, texts, labels, confidence)
    return labelling_page(Labelling(title, some, texts, rules=rules))


def labelling_page(one: Labelling) -> str:
    """A whole page, which needs no network."""
    items, unlabelled = one.figures.unlabelled()
    strengths = (strength for _, _, strength in one.rules)
    notes = [*([one.accuracy] if one.accuracy else []), *one.notes]
    return render_page(
        "labels/report.html",
        clean(one.title),
        one.lead,
        one=one,
        notes=capitalise(notes),
        rounds=_list_rounds(one.history, MOST_ROUNDS),
        charts=_draw_charts(one.history),
        views=one.figures.views(),
        doubtful=one.figures.doubtful(),
        items=items,
        unlabelled=unlabelled,
        details=one.figures.rounds(),
        most_views=MOST_VIEWS,
        most_rules=MOST_RULES,
        strongest=max(filter(math.isfinite, strengths), default=0.0),
        **describe_items(one.figures, one.texts, one.kind),
    )


def describe_items(
    figures: LabellingFigures, texts: Sequence[str] | None, kind: str
) -> dict[str, Any]:
    """What the tables of classes and of items need, on any page that has them."""
    rows, counts = figures.classes(), figures.history.counts()
    largest = sorted(range(len(rows)), key=lambda k: (-rows[k].labelled, k))[:MOST_CLASSES]
    curves = {
        k: trace_curve(counts[:, k].tolist(), *SPARK, most=SPARK_POINTS)
        for k in sorted(largest)
        if len(counts) > 2
    }

    def begin(number: int) -> str:
        assert texts is not None
        return "".join(part.text for part in find_snippet(texts[number], {}, BEGINNING))

    return {
        "known": figures.gold is not None,
        "kind": kind,
        "classes": [(rows[k], curves.get(k)) for k in sorted(largest)],
        "classes_left_out": len(rows) - len(largest),
        "largest_class": max((row.labelled for row in rows), default=0) or 1,
        "begin": begin if texts is not None else None,
    }


def capitalise(notes: Sequence[str]) -> list[str]:
    """Remarks as sentences that begin with a capital letter."""
    return [note[:1].upper() + note[1:] for note in notes]


def history_card(history: History) -> str:
    """What a notebook shows of a history."""
    one = Labelling("", compute_figures(history))
    return clean(
        render(
            "labels/card.html",
            sentences=list(filter(None, (one.lead, one.accuracy))),
            charts=_draw_charts(history),
            rounds=_list_rounds(history, CARD_ROUNDS),
        )
    )


def _list_rounds(history: History, most: int) -> list[Sequence[str] | None]:
    """The heads of the table and the rounds; of many the first and the last ones, None between."""
    n = len(HEADS) if history.gold is not None else len(HEADS) - 1
    rows = spread_rows(len(history), most)
    return [HEADS[:n], *(None if k is None else format_round(history.rounds[k])[:n] for k in rows)]


def _draw_charts(history: History) -> list[tuple[str, str]]:
    """Labelled items over the rounds; confidence, and accuracy if it is known; each with a caption.

    With one round there is nothing to draw.
    """
    if len(history) < 3:
        return []
    known = history.gold is not None
    # what was given is sure, and says nothing of the learner
    sure = [math.nan, *(one.confidence for one in history.rounds[1:])]
    series = [Series("accuracy", history.accuracy.tolist())] * known
    series.append(Series("confidence", sure, dashed=known))
    caption = "Mean confidence of what each round gave or changed."
    if known:
        caption += " Accuracy: of all labels so far that were not given."
    title = "Accuracy and confidence" if known else "Confidence"
    # how many items have a label, by class if these are few
    size, counts = "Items with a label", history.counts()
    names = [shorten(clean(name), LONGEST_IN_LEGEND) for name in history.classes.tolist()]
    if len(names) > MOST_CURVES:
        sizes, size_caption = [Series(size, counts.sum(axis=1).tolist())], f"{size}."
    else:
        curves: dict[tuple[int, ...], list[str]] = {}
        for k, name in enumerate(names):
            curves.setdefault(tuple(counts[:, k].tolist()), []).append(name)
        sizes = [Series(" = ".join(same), values) for values, same in curves.items()]
        alike = [" and ".join(same) for same in curves.values() if len(same) > 1]
        more = "".join(f" {same} have the same numbers." for same in alike)
        size_caption = f"{size} by class.{more}"
    return [(_draw_chart(sizes, size), size_caption), (_draw_chart(series, title), caption)]


def _draw_chart(series: Sequence[Series], title: str) -> str:
    return draw_lines(series, title, "round", title.lower(), legend_above=True)
