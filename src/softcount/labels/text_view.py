"""Labels learned from a few in the terminal, for pipes, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcount.labels.history import HEADS, History, Round, cells
from softcount.labels.report import ClassRow, Item, Labelling, ViewRow, counted, figure, spread
from softcount.show.groups import shortened
from softcount.show.snippets import clean
from softcount.show.terminal import bar

MOST_ROUNDS = 16
MOST_CLASSES = 30
MOST_VIEWS = 8
LONGEST_NAME = 24
"""In letters: of a class or a view in a table."""


def show(one: Labelling, console: Console) -> None:
    """The overview in a terminal: rounds, classes, views, how right it is, and the signature."""
    known = one.figures.gold is not None
    console.print(Text(clean(one.title), style="bold"), Text(one.lead), sep="\n")
    console.print(_rounds(one.history))
    console.print(class_table(one.figures.classes(), known))
    views = one.figures.views()
    if len(views) > 1:
        console.print(_views(views, known))
    if one.rules:
        console.print(_rules(one))
    for remark in _remarks(one):
        console.print(Text(remark))
    if one.signature:  # one line, to be copied whole
        console.print(Text(clean(one.signature), style="dim"), soft_wrap=True)


def as_tsv(one: Labelling) -> str:
    """The rounds for programs; remarks as #, a line for each class, view and rule among them."""
    remarks = [one.title, one.lead, *_remarks(one), *([one.signature] if one.signature else [])]
    remarks += [_told(row) for row in one.figures.classes()]
    views = one.figures.views()
    remarks += [
        f"by {row.name}: {row.new:,} new, {row.changed:,} changed"
        for row in views[: MOST_VIEWS if len(views) > 1 else 0]
    ]
    remarks += [f"{label}: {rule}, strength {strength:.4f}" for rule, label, strength in one.rules]
    lines = [f"# {' '.join(clean(remark).split())}" for remark in remarks]
    lines.append("\t".join(HEADS))
    for done in one.history.rounds:
        counts = (done.number, done.labelled, done.new, done.changed, done.lost)
        shares = (done.confidence, done.accuracy)
        lines.append("\t".join([*map(str, counts), *(_share(share) for share in shares)]))
    return "\n".join(lines) + "\n"


def as_json(one: Labelling) -> dict[str, Any]:
    """The overview as JSON can say it; an item's number is from 0, a line's from 1."""
    found, counts = one.figures, one.history.counts().tolist()
    compared = found.comparison()
    unlabelled, without = found.unlabelled()
    return {
        "title": one.title,
        "signature": one.signature,
        f"{one.kind}s": one.history.n_items,
        "given": one.history.rounds[0].labelled,
        "labelled": int((found.labels >= 0).sum()),
        "rounds": [
            _round(done, found.names, row)
            for done, row in zip(one.history.rounds, counts, strict=True)
        ],
        "classes": [_finite(row._asdict()) for row in found.classes()],
        "views": [_finite(row._asdict()) for row in found.views()],
        "rules": [
            _finite({"rule": rule, "label": label, "strength": float(strength)})
            for rule, label, strength in one.rules
        ],
        "least_confident": [_item(item, one.kind) for item in found.doubtful()],
        "unlabelled": {"number": without, "first": [_item(item, one.kind) for item in unlabelled]},
        "gold": None
        if compared is None
        else _finite({**compared._asdict(), "accuracy": compared.accuracy}),
        "notes": list(one.notes),
    }


def _remarks(one: Labelling) -> list[str]:
    _, without = one.figures.unlabelled()
    missing = [f"{counted(without, one.kind)} without a label"] if without else []
    return [clean(said) for said in (one.accuracy, *missing, *one.notes) if said]


def _rounds(history: History) -> Table:
    known = history.gold is not None
    heads = HEADS if known else HEADS[:-1]
    table = _table(heads)
    for number in spread(len(history), MOST_ROUNDS):
        some = ("⋮",) * len(heads) if number is None else cells(history.rounds[number])
        table.add_row(*some[: len(heads)])
    return table


def class_table(rows: Sequence[ClassRow], known: bool) -> Table:
    """How many items each class was given and has; ``known``: and how many rightly."""
    largest = sorted(range(len(rows)), key=lambda k: (-rows[k].labelled, k))[:MOST_CLASSES]
    full = max((row.labelled for row in rows), default=0) or 1
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("class")
    for head in ("given", "at the end", *("right", "found") * known):
        table.add_column(head, justify="right")
    table.add_column("", style="cyan", no_wrap=True)
    for k in sorted(largest):
        row = rows[k]
        shares = (figure(row.right), figure(row.found)) * known
        length = bar(row.labelled / full)
        table.add_row(_name(row.name), f"{row.given:,}", f"{row.labelled:,}", *shares, length)
    if len(rows) > len(largest):
        table.add_row(Text(f"and {len(rows) - len(largest):,} more", style="dim"))
    return table


def _views(rows: list[ViewRow], known: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("view")
    for head in ("new", "changed", "kept", "confidence", *("right",) * known):
        table.add_column(head, justify="right")
    for row in rows[:MOST_VIEWS]:
        shares = (figure(row.confidence), *(figure(row.right),) * known)
        table.add_row(_name(row.name), f"{row.new:,}", f"{row.changed:,}", f"{row.kept:,}", *shares)
    if len(rows) > MOST_VIEWS:
        table.add_row(Text(f"and {len(rows) - MOST_VIEWS:,} more", style="dim"))
    return table


def _rules(one: Labelling) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rule")
    table.add_column("class")
    table.add_column("strength", justify="right")
    for rule, label, strength in one.rules:
        table.add_row(Text(clean(rule)), _name(label), f"{strength:.4f}")
    return table


def _table(heads: tuple[str, ...]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _name(value: object) -> Text:
    return Text(shortened(clean(value), LONGEST_NAME))


def _told(row: ClassRow) -> str:
    return f"{row.name}: {row.given:,} given, {row.labelled:,} at the end"


def _share(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else ""


def _round(done: Round, names: list[Any], counts: list[int]) -> dict[str, Any]:
    figures = {
        "round": done.number,
        "labelled": done.labelled,
        "new": done.new,
        "changed": done.changed,
        "lost": done.lost,
        "confidence": done.confidence,
        "accuracy": done.accuracy,
    }
    by_class = {str(name): count for name, count in zip(names, counts, strict=True)}
    return {**_finite(figures), "classes": by_class}


def _item(item: Item, kind: str) -> dict[str, Any]:
    number = item.number + (kind == "line")
    return _finite({kind: number, "label": item.label, "confidence": item.confidence})


def _finite(figures: dict[str, Any]) -> dict[str, Any]:
    """JSON knows neither infinity nor NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }
