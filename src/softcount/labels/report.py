"""The page about labels that were learned from a few."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import DataError, shown
from softcount.labels.history import HEADS, Changes, History, Round, cells
from softcount.mixture.data import UNKNOWN
from softcount.show.groups import shortened
from softcount.show.report import document, signed
from softcount.show.snippets import clean, snippet
from softcount.show.svg import Series, line_chart
from softcount.types import Array

FIRST_ROUNDS, LAST_ROUNDS = 20, 10
"""Of many rounds, so many at the beginning and at the end are listed."""
EACH = 3
"""So many items of a class and a round are listed, the most confident ones."""
MOST_LISTED = 600
"""With more items than this in all rounds, fewer of each are listed, but always one."""
MOST_CLASSES_A_ROUND = 20
NEXT = 20
"""So many items are listed as worth a label, and of those that have none."""


class Comparison(NamedTuple):
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
    """A class: how many items were given it, have it at the end; and beside gold labels, given ones
    left out, the share of its items that are ``right``, and of gold's items that are ``found``.
    """

    name: Any
    given: int
    labelled: int
    right: float
    found: float


class ViewRow(NamedTuple):
    """A view: how many items got a label from it that had none, and another one; how many still
    have what it said; its mean confidence, and the share of what it said that is right.
    """

    name: str
    new: int
    changed: int
    kept: int
    confidence: float
    right: float


class Item(NamedTuple):
    """An item and its label (None: it has none), the one ``before``, and whether it is right (None:
    nobody knows).
    """

    number: int
    label: Any
    confidence: float
    view: str = ""
    before: Any = None
    right: bool | None = None


class Given(NamedTuple):
    """What a round gave of a class: some ``items``, the most confident first, of ``total``."""

    label: Any
    items: Sequence[Item]
    total: int


class ShownRound(NamedTuple):
    """A round with some of what it gave; so many ``classes_left_out`` got labels too."""

    round: Round
    given: Sequence[Given]
    classes_left_out: int


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a history.

    ``labels``      each item's label at the end, as a number; −1: none
    ``confidence``  and how sure it is
    ``gold``        as in `History`
    ``blank``       whether an item has nothing that could be read
    """

    history: History
    labels: Array
    confidence: Array
    gold: Array | None
    blank: Array

    @cached_property
    def names(self) -> list[Any]:
        """The classes, as Python has them."""
        names: list[Any] = self.history.classes.tolist()
        return names

    @cached_property
    def learned(self) -> Array:
        """Which items have a label that was not given."""
        found: Array = (self.history.given == UNKNOWN) & (self.labels != UNKNOWN)
        return found

    def comparison(self) -> Comparison | None:
        """Beside gold labels; None if there are none."""
        if self.gold is None:
            return None
        known = self.gold != UNKNOWN
        compared = self.learned & known
        right = int((self.labels[compared] == self.gold[compared]).sum())
        missing = int((known & (self.labels == UNKNOWN)).sum())
        return Comparison(int(compared.sum()), right, missing)

    def classes(self) -> list[ClassRow]:
        """All classes in their order."""
        K = len(self.names)
        given, labelled = _count(self.history.given, K), _count(self.labels, K)
        right = found = np.full(K, np.nan)
        if self.gold is not None:
            known = self.learned & (self.gold != UNKNOWN)
            labels, gold = self.labels[known], self.gold[known]
            hits = _count(labels[labels == gold], K)
            right, found = _shares(hits, _count(labels, K)), _shares(hits, _count(gold, K))
        columns = (given, labelled, right, found)
        return [
            ClassRow(*row) for row in zip(self.names, *(c.tolist() for c in columns), strict=True)
        ]

    def views(self) -> list[ViewRow]:
        """All views but what was given, the one with most labels first."""
        tallies: dict[str, _Tally] = {}
        last = np.full(self.history.n_items, "", dtype=object)
        for number in range(1, len(self.history)):
            changes = self.history.changes(number)
            last[changes.items] = changes.views
            order = np.argsort(changes.views, kind="stable")
            names, starts = np.unique(changes.views[order], return_index=True)
            for name, part in zip(names, np.split(order, starts[1:]), strict=False):
                own = Changes(*(column[part] for column in changes))
                tallies.setdefault(name, _Tally()).add(own, self._right(own.items, own.labels))
        standing = last[(self.history.labels != UNKNOWN) & (last != "")]
        kept = dict(zip(*np.unique(standing, return_counts=True), strict=True))
        rows = [one.row(name, int(kept.get(name, 0))) for name, one in tallies.items()]
        return sorted(rows, key=lambda row: (-row.new - row.changed, row.name))

    def rounds(self) -> list[ShownRound]:
        """Some of what each round gave, of many rounds the first and the last ones."""
        busy = [one for one in self.history.rounds[1:] if one.new or one.changed or one.lost]
        if len(busy) > FIRST_ROUNDS + LAST_ROUNDS:
            busy = [*busy[:FIRST_ROUNDS], *busy[-LAST_ROUNDS:]]
        kinds = [self._kinds(one.number) for one in busy]
        groups = sum(min(len(some), MOST_CLASSES_A_ROUND) for some in kinds)
        each = min(EACH, max(1, MOST_LISTED // max(groups, 1)))
        return [self._round(one, some, each) for one, some in zip(busy, kinds, strict=True)]

    def doubtful(self) -> list[Item]:
        """Labelled items of which the learner is least sure, of those that can be read."""
        rows = np.flatnonzero(self.learned & ~self.blank)
        order = np.argsort(self.confidence[rows], kind="stable")[:NEXT]
        return [self._item(row) for row in rows[order].tolist()]

    def unlabelled(self) -> tuple[list[Item], int]:
        """The first items without a label that can be read, and how many there are."""
        rows = np.flatnonzero((self.labels == UNKNOWN) & ~self.blank)
        return [self._item(row) for row in rows[:NEXT].tolist()], len(rows)

    def _kinds(self, number: int) -> dict[int, Array]:
        """The places in a round's changes of those that got each class, the surest first."""
        changes = self.history.changes(number)
        order = np.lexsort((changes.items, -changes.confidence, changes.labels))
        labels, starts = np.unique(changes.labels[order], return_index=True)
        parts = np.split(order, starts[1:])
        found = dict(zip(labels.tolist(), parts, strict=True))
        found.pop(UNKNOWN, None)
        return found

    def _round(self, one: Round, kinds: dict[int, Array], each: int) -> ShownRound:
        changes = self.history.changes(one.number)
        largest = sorted(kinds, key=lambda k: (-len(kinds[k]), k))[:MOST_CLASSES_A_ROUND]
        given = [
            Given(
                self.names[k],
                [self._changed(changes, at) for at in kinds[k][:each].tolist()],
                len(kinds[k]),
            )
            for k in sorted(largest)
        ]
        return ShownRound(one, given, len(kinds) - len(largest))

    def _changed(self, changes: Changes, at: int) -> Item:
        item, label, before = (int(c[at]) for c in (changes.items, changes.labels, changes.before))
        right = self._is_right(item, label)
        sure = float(changes.confidence[at])
        return Item(item, self._name(label), sure, changes.views[at], self._name(before), right)

    def _item(self, item: int) -> Item:
        label = int(self.labels[item])
        sure = float(self.confidence[item])
        return Item(item, self._name(label), sure, right=self._is_right(item, label))

    def _name(self, label: int) -> Any:
        return None if label == UNKNOWN else self.names[label]

    def _is_right(self, item: int, label: int) -> bool | None:
        if self.gold is None or UNKNOWN in (label, self.gold[item]):
            return None
        return bool(label == self.gold[item])

    def _right(self, items: Array, labels: Array) -> Array:
        """Whether labels are right, where they were not given and that is known."""
        if self.gold is None:
            return np.zeros(0, dtype=bool)
        gold = self.gold[items]
        known = (self.history.given[items] == UNKNOWN) & (gold != UNKNOWN) & (labels != UNKNOWN)
        found: Array = labels[known] == gold[known]
        return found


class _Tally:
    """What a view gave, added up over rounds."""

    def __init__(self) -> None:
        self.new = self.changed = self.compared = self.right = 0
        self.confidence = 0.0

    def add(self, own: Changes, right: Array) -> None:
        said = own.labels != UNKNOWN
        self.new += int((own.before == UNKNOWN).sum())
        self.changed += int((said & (own.before != UNKNOWN)).sum())
        self.confidence += float(own.confidence[said].sum())
        self.compared += len(right)
        self.right += int(right.sum())

    def row(self, name: str, kept: int) -> ViewRow:
        said = self.new + self.changed
        confidence = self.confidence / said if said else float("nan")
        right = self.right / self.compared if self.compared else float("nan")
        return ViewRow(name, self.new, self.changed, kept, confidence, right)


def figures(
    history: History,
    texts: Sequence[str] | None = None,
    labels: Sequence[Any] | Array | None = None,
    confidence: Sequence[float] | Array | None = None,
    gold: Array | None = None,
) -> Figures:
    """The figures of a history; what is at the end may be other than what its last round left.

    ``labels``  each item's label at the end, None if it has none
    ``gold``    as in `History`, whose own is used if there is none here
    """
    n = history.n_items
    numbers = history.labels if labels is None else _numbered(labels, history.classes.tolist())
    sure = history.confidence() if confidence is None else np.asarray(confidence, np.float64)
    known = history.gold if gold is None else np.asarray(gold)
    blank = np.zeros(n, bool) if texts is None else np.array([not t.strip() for t in texts], bool)
    some = {"texts": blank, "labels": numbers, "confidence": sure, "gold": known}
    for name, found in some.items():
        if found is not None and len(found) != n:
            raise DataError(f"{name}: {len(found)} for {n} items", "give one for each item")
    return Figures(history, numbers, sure, known, blank)


def _numbered(labels: Sequence[Any] | Array, names: Sequence[Any]) -> Array:
    numbers = {name: k for k, name in enumerate(names)}
    places: dict[Any, int] = {None: UNKNOWN, UNKNOWN: UNKNOWN} | numbers
    plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
    strange = [label for label in plain if label not in places]
    if strange:
        raise DataError(
            f"labels: {shown(strange[0])} is none of the classes", f"they are {shown(names)}"
        )
    return np.array([places[label] for label in plain], dtype=np.int64)


def _count(labels: Array, n_classes: int) -> Array:
    """How many have each class; what is no class is left out."""
    return np.bincount(labels[labels >= 0], minlength=n_classes)


def _shares(parts: Array, wholes: Array) -> Array:
    return np.where(wholes > 0, parts / np.maximum(wholes, 1), np.nan)


# Tables of a page about labels learned from a few.


MOST_ROUNDS = 40
MOST_CLASSES = 100
MOST_VIEWS = 30
MOST_RULES = 60
LONGEST_NAME = 80
"""In letters: of a class, a view, a rule."""
BEGINNING = 160
"""So many letters of a text are shown."""
SPARK = (100, 16)
"""How wide and high a small curve is drawn."""
SPARK_POINTS = 60


def name_of(value: object) -> str:
    """A class or a view, escaped."""
    return escape(shortened(clean(value), LONGEST_NAME))


def figure(share: float) -> str:
    """A share; a dash where there is none.

    >>> figure(0.25), figure(float("nan"))
    ('0.250', '–')
    """
    return f"{share:.3f}" if math.isfinite(share) else "–"


def spread(n: int, most: int) -> list[int | None]:
    """The numbers of the rows of a long table: the first and the last ones, None in between.

    >>> spread(3, 4), spread(9, 4)
    ([0, 1, 2], [0, 1, None, 7, 8])
    """
    if n <= most:
        return list(range(n))
    first = (most + 1) // 2
    return [*range(first), None, *range(n - (most - first), n)]


def round_table(history: History, most: int = MOST_ROUNDS) -> str:
    """The rounds; of many the first and the last ones."""
    known = history.gold is not None
    heads = HEADS if known else HEADS[:-1]
    rows = ""
    for number in spread(len(history), most):
        if number is None:
            rows += f'<tr class="gap"><td colspan="{len(heads)}">⋮</td></tr>'
        else:
            some = cells(history.rounds[number])[: len(heads)]
            rows += f"<tr>{''.join(f'<td class=n>{cell}</td>' for cell in some)}</tr>"
    return _figures([(head, "n") for head in heads], rows)


def class_table(rows: Sequence[ClassRow], counts: Array, known: bool) -> str:
    """The classes in their order; of many the largest. ``counts``: see `History.counts`."""
    largest = sorted(range(len(rows)), key=lambda k: (-rows[k].labelled, k))[:MOST_CLASSES]
    full = max((row.labelled for row in rows), default=0) or 1
    curves = len(counts) > 2
    lines = ""
    for k in sorted(largest):
        row = rows[k]
        some = [f"{row.given:,}", f"{row.labelled:,}"]
        some += [figure(row.right), figure(row.found)] * known
        spark = f"<td>{_spark(counts[:, k].tolist())}</td>" if curves else ""
        lines += (
            f'<tr><th scope="row" class="name">{name_of(row.name)}</th>{_bar(row.labelled / full)}'
            f"{''.join(f'<td class=n>{cell}</td>' for cell in some)}{spark}</tr>"
        )
    heads = [("class", "name"), ("", ""), ("given", "n"), ("at the end", "n")]
    heads += [("right", "n"), ("found", "n")] * known + [("over the rounds", "")] * curves
    return _figures(heads, lines + _more(len(rows) - len(largest), len(heads)))


def view_table(rows: Sequence[ViewRow], known: bool) -> str:
    """What each view gave; of many those that gave most."""
    lines = ""
    for row in rows[:MOST_VIEWS]:
        some = [f"{row.new:,}", f"{row.changed:,}", f"{row.kept:,}", figure(row.confidence)]
        some += [figure(row.right)] * known
        lines += (
            f'<tr><th scope="row" class="name">{name_of(row.name)}</th>'
            f"{''.join(f'<td class=n>{cell}</td>' for cell in some)}</tr>"
        )
    named = ["new", "changed", "kept", "confidence", *["right"] * known]
    heads = [("view", "name"), *((head, "n") for head in named)]
    return _figures(heads, lines + _more(len(rows) - MOST_VIEWS, len(heads)))


def rule_table(rules: Sequence[tuple[str, Any, float]]) -> str:
    """The strongest rules, in their order."""
    full = max((strength for _, _, strength in rules if math.isfinite(strength)), default=0.0)
    lines = "".join(
        f'<tr><th scope="row" class="name">{name_of(rule)}</th><td class="name">{name_of(label)}'
        f'</td><td class="n">{strength:.3f}</td>{_bar(strength / full if full > 0.0 else 0.0)}</tr>'
        for rule, label, strength in rules[:MOST_RULES]
    )
    heads = [("rule", "name"), ("label", "name"), ("strength", "n"), ("", "")]
    return _figures(heads, lines + _more(len(rules) - MOST_RULES, len(heads)))


def item_table(items: Sequence[Item], texts: Sequence[str] | None, kind: str) -> str:
    """Items with their labels."""
    labelled = any(item.label is not None for item in items)
    lines = "".join(_item(item, texts, kind, labelled=labelled, view=False) for item in items)
    return _items(lines, texts, kind, labelled=labelled, view=False)


def round_details(rounds: Sequence[ShownRound], texts: Sequence[str] | None, kind: str) -> str:
    """Rounds to be opened, each with some of what it gave."""
    parts, before = [], 0
    for one in rounds:
        left_out = one.round.number - before - 1
        if left_out:
            parts.append(f'<p class="gap">{left_out:,} round{"s" * (left_out > 1)} left out</p>')
        before = one.round.number
        parts.append(
            f"<details><summary>Round {one.round.number}<small>{_told(one.round)}</small>"
            f'</summary><div class="wide">{_given(one, texts, kind)}</div></details>'
        )
    return "".join(parts)


def _told(one: Round) -> str:
    counts = {"new": one.new, "changed": one.changed, "lost": one.lost}
    said = [f"{n:,} {what}" for what, n in counts.items() if n]
    shares = {"confidence": one.confidence, "accuracy": one.accuracy}
    said += [f"{what} {share:.3f}" for what, share in shares.items() if math.isfinite(share)]
    return " · ".join(said)


def _given(shown: ShownRound, texts: Sequence[str] | None, kind: str) -> str:
    lines = ""
    columns = 4 + (texts is not None)
    for group in shown.given:
        for at, item in enumerate(group.items):
            lines += _item(item, texts, kind, labelled=True, view=True, same=at > 0)
        lines += _more(group.total - len(group.items), columns, f" as {name_of(group.label)}")
    if shown.classes_left_out:
        lines += _more(shown.classes_left_out, columns, " classes")
    if not lines:
        return f'<p class="scale">Nothing but {shown.round.lost:,} labels lost.</p>'
    return _items(lines, texts, kind, labelled=True, view=True)


def _item(
    item: Item,
    texts: Sequence[str] | None,
    kind: str,
    *,
    labelled: bool,
    view: bool,
    same: bool = False,
) -> str:
    number = item.number + (kind == "line")
    found = ""
    if labelled:
        was = f' <span class="was">was {name_of(item.before)}</span>' * (item.before is not None)
        found += f'<td class="label">{name_of(item.label)}{_mark(item.right)}{was}</td>'
        found += f'<td class="n">{figure(item.confidence)}</td>'
    if view:
        found += f'<td class="view">{name_of(item.view)}</td>'
    found += f'<td class="n item">{number:,}</td>'
    if texts is not None:
        found += f'<td class="text">{snippet(texts[item.number], {}, BEGINNING)}</td>'
    return f"<tr{' class=same' * same}>{found}</tr>"


def _mark(right: bool | None) -> str:
    if right is None:
        return ""
    return ' <span class="right">✓</span>' if right else ' <span class="wrong">✗</span>'


def _items(
    lines: str, texts: Sequence[str] | None, kind: str, *, labelled: bool, view: bool
) -> str:
    heads = [("label", ""), ("confidence", "n")] * labelled + [("view", "view")] * view
    heads += [(kind, "n")] + [("text", "text")] * (texts is not None)
    return _table("items", heads, lines)


def _figures(heads: Iterable[tuple[str, str]], lines: str) -> str:
    return _table("figures", heads, lines)


def _table(css: str, heads: Iterable[tuple[str, str]], lines: str) -> str:
    top = "".join(f'<th scope="col" class="{kind}">{head}</th>' for head, kind in heads)
    return f'<table class="{css}"><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>'


def _more(n: int, columns: int, what: str = "") -> str:
    if n <= 0:
        return ""
    return f'<tr class="more"><td colspan="{columns}">and {n:,} more{what}</td></tr>'


def _bar(share: float) -> str:
    return (
        f'<td class="bar"><span style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></span></td>'
    )


def _spark(values: Sequence[int]) -> str:
    """A small curve, from zero to the largest value."""
    width, height = SPARK
    last, top = len(values) - 1, max(values) or 1
    steps = sorted({round(k * last / SPARK_POINTS) for k in range(SPARK_POINTS + 1)})
    path = "L".join(f"{width * k / last:.1f} {height * (1 - values[k] / top):.1f}" for k in steps)
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" preserveAspectRatio="none" '
        f'aria-hidden="true"><path d="M{path}"/></svg>'
    )


# A page about labels learned from a few: round by round, by class and by view, and what to label
# next.


MOST_CURVES = 4
"""More classes than colours have one curve for all of them, and each a small one in the table."""
LONGEST_NAME_ON_PAGE = 18
"""In letters: of a class in a chart's legend."""
CARD_ROUNDS = 12
"""So many rounds are in a notebook's table."""


@dataclass(frozen=True, eq=False)
class Labelling:
    """Everything to be shown of labels that were learned.

    ``texts``  of the items, or None
    ``kind``   what an item is called: item, numbered from 0, or line, numbered from 1
    ``rules``  a rule as it is to be read, its label and its strength; the strongest first
    ``notes``  remarks, each a sentence
    """

    title: str
    figures: Figures
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
            f"{counted(history.n_items, self.kind)}: {rounds[0].labelled:,} with a label from the "
            f"start, {last:,} after {counted(len(rounds) - 1, 'round')}{more}."
        )

    @property
    def accuracy(self) -> str:
        """How the labels compare with gold ones, in a sentence; empty if there are none."""
        found = self.figures.comparison()
        return "" if found is None else compared(found, self.kind)


def labelling_report(
    history: History,
    texts: Sequence[str] | None = None,
    *,
    labels: Sequence[Any] | Array | None = None,
    confidence: Sequence[float] | Array | None = None,
    rules: Sequence[tuple[str, Any, float]] = (),
    title: str = "Labels from a few",
) -> str:
    """A page (HTML) about what a learner labelled when, how confidently, and by which view.

    ``texts``       of the items
    ``labels``      what is said of each item at the end, such as ``transduction_``; else what the
                    last round left
    ``confidence``  how sure that is; else how sure each label was when it was given
    ``rules``       each as text, its label and its strength

    >>> import numpy as np
    >>> history = History(["no", "yes"], np.array([0, 1, -1]))
    >>> history.record(np.array([0, 1, 1]), np.array([1.0, 1.0, 0.8]), "spelling")
    >>> page = labelling_report(history, ["nope", "oh yes", "yes & no"])
    >>> page[:15], "yes &amp; no" in page
    ('<!doctype html>', True)
    """
    some = figures(history, texts, labels, confidence)
    return page(Labelling(title, some, texts, rules=rules))


def page(one: Labelling) -> str:
    """A whole page, which needs no network."""
    said = [*([one.accuracy] if one.accuracy else []), *one.notes]
    notes = "".join(
        f'<p class="note">{escape(clean(note[:1].upper() + note[1:]))}.</p>' for note in said
    )
    body = (
        f"{notes}{_rounds(one)}{_classes(one)}{_views(one)}{_rules(one)}{_next(one)}"
        f"{_missing(one)}{_round_by_round(one)}"
        f"{signed(clean(one.signature)) if one.signature else ''}"
    )
    return document(clean(one.title), one.lead, body, _style())


def card(history: History) -> str:
    """What a notebook shows of a history."""
    one = Labelling("", figures(history))
    said = "".join(f"<p>{escape(text)}</p>" for text in (one.lead, one.accuracy) if text)
    table = round_table(history, CARD_ROUNDS)
    return f"<div>{said}{''.join(_charts(history))}{table}</div>"


def counted(n: int, what: str) -> str:
    """A number and what it is of.

    >>> counted(1, "line"), counted(1200, "round")
    ('1 line', '1,200 rounds')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"


def compared(found: Comparison, kind: str) -> str:
    """How labels compare with gold ones, in a sentence.

    >>> compared(Comparison(200, 150, 1), "line")
    'accuracy 0.750 on 200 lines with a gold label, given ones left out; 1 more has no label'
    """
    if not found.compared:
        told = f"no {kind} that was labelled has a gold label"
    else:
        told = (
            f"accuracy {found.accuracy:.3f} on {counted(found.compared, kind)} with a gold label, "
            "given ones left out"
        )
    if not found.missing:
        return told
    return f"{told}; {found.missing:,} more {'has' if found.missing == 1 else 'have'} no label"


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def _rounds(one: Labelling) -> str:
    charts = "".join(_charts(one.history))
    table = round_table(one.history)
    return f'<h2>Rounds</h2><div class="curves">{charts}</div><div class="wide">{table}</div>'


def _charts(history: History) -> list[str]:
    """Labelled items over the rounds; confidence, and accuracy if it is known. With one round there
    is nothing to draw."""
    if len(history) < 3:
        return []
    known = history.gold is not None
    # what was given is sure, and says nothing of the learner
    sure = [math.nan, *(one.confidence for one in history.rounds[1:])]
    series = [Series("accuracy", history.accuracy.tolist())] * known
    series.append(Series("confidence", sure, dashed=known))
    told = "Mean confidence of what each round gave or changed."
    if known:
        told += " Accuracy: of all labels so far that were not given."
    title = "Accuracy and confidence" if known else "Confidence"
    return [_sizes(history), _figure(series, title, told)]


def _sizes(history: History) -> str:
    """How many items have a label, by class if these are few."""
    title = "Items with a label"
    counts = history.counts()
    names = [shortened(clean(name), LONGEST_NAME_ON_PAGE) for name in history.classes.tolist()]
    if len(names) > MOST_CURVES:
        return _figure([Series(title, counts.sum(axis=1).tolist())], title, f"{title}.")
    curves: dict[tuple[int, ...], list[str]] = {}
    for k, name in enumerate(names):
        curves.setdefault(tuple(counts[:, k].tolist()), []).append(name)
    series = [Series(" = ".join(same), values) for values, same in curves.items()]
    alike = [" and ".join(same) for same in curves.values() if len(same) > 1]
    told = "".join(f" {same} have the same numbers." for same in alike)
    return _figure(series, title, f"{title} by class.{escape(told)}")


def _figure(series: Sequence[Series], title: str, caption: str) -> str:
    chart = line_chart(series, title, "round", title.lower(), legend_above=True)
    return f"<figure>{chart}<figcaption>{caption}</figcaption></figure>"


def _classes(one: Labelling) -> str:
    table = class_table(one.figures.classes(), one.history.counts(), one.figures.gold is not None)
    told = ""
    if one.figures.gold is not None:
        told = (
            f"Right: the share of {one.kind}s labelled so that are so by their gold label. Found: "
            f"the share of {one.kind}s of that gold label that are labelled so. Given labels are "
            "left out."
        )
    scale = f'<p class="scale">{told}</p>' * bool(told)
    return f'<h2>Classes</h2><div class="wide">{table}</div>{scale}'


def _views(one: Labelling) -> str:
    rows = one.figures.views()
    if len(rows) < 2:
        return ""
    table = view_table(rows, one.figures.gold is not None)
    told = f"Kept: {one.kind}s that still have what the view said last."
    return f'<h2>Views</h2><div class="wide">{table}</div><p class="scale">{told}</p>'


def _rules(one: Labelling) -> str:
    if not one.rules:
        return ""
    return f'<h2>Rules</h2><div class="wide">{rule_table(one.rules)}</div>'


def _next(one: Labelling) -> str:
    items = one.figures.doubtful()
    if not items:
        return ""
    told = (
        f"The {one.kind}s with the least confident labels: true ones would teach most here."
        f"{_marks(one)}"
    )
    table = item_table(items, one.texts, one.kind)
    return f'<h2>What to label next</h2><p class="scale">{told}</p><div class="wide">{table}</div>'


def _missing(one: Labelling) -> str:
    items, total = one.figures.unlabelled()
    if not items:
        return ""
    more = f" The first {len(items)}:" if total > len(items) else ""
    told = f"{counted(total, one.kind)} got no label.{more}"
    table = item_table(items, one.texts, one.kind)
    return f'<h2>Without a label</h2><p class="scale">{told}</p><div class="wide">{table}</div>'


def _marks(one: Labelling) -> str:
    return " ✓ and ✗: beside its gold label." * (one.figures.gold is not None)


def _round_by_round(one: Labelling) -> str:
    rounds = one.figures.rounds()
    if not rounds:
        return ""
    details = round_details(rounds, one.texts, one.kind)
    told = f"What each round gave: of each class the most confident ones.{_marks(one)}"
    return f'<h2>Round by round</h2><p class="scale">{told}</p><div class="rounds">{details}</div>'
