"""Labels for another domain in the terminal, and for pipes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcount.adapt.base import Explanation
from softcount.adapt.report import Adaptation, method_rows, percent
from softcount.labels.report import figure
from softcount.labels.text_view import class_table
from softcount.show.groups import shortened
from softcount.show.snippets import clean

LONGEST_NAME = 24
"""In letters: of a class or a word in a table."""
MOVED = ("word", "label", "source", "target", "moved", "share")


def show(one: Adaptation, console: Console, *, words: bool = False) -> None:
    """The overview in a terminal; with ``words``, also those that moved."""
    console.print(Text(clean(one.title), style="bold"), Text(one.lead), sep="\n")
    if one.judgements:
        console.print(_methods(one))
    console.print(class_table(one.figures.classes(), one.figures.gold is not None))
    if words and one.explanation is not None:
        console.print(_moved(one.explanation))
    for remark in _remarks(one, words):
        console.print(Text(remark))


def as_tsv(one: Adaptation, *, words: bool = False) -> str:
    """For programs: remarks as #, a method a line, and a word a line if these are wanted.

    Where both are, a blank line is between them.
    """
    remarks = [one.title, one.lead, *_remarks(one, words)]
    remarks += [
        f"{row.name}: {row.given:,} given, {row.labelled:,} at the end"
        for row in one.figures.classes()
    ]
    lines = [f"# {' '.join(clean(remark).split())}" for remark in remarks]
    tables = []
    if one.judgements:
        heads = ["method", *(judged.head for judged in one.judgements), "seconds", "chosen"]
        rows = [
            [row.name, *map(_share, row.accuracies), f"{row.seconds:.3f}", _yes(row.name, one)]
            for row in method_rows(one.judgements)
        ]
        tables.append(_lines([heads, *rows]))
    if words and one.explanation is not None:
        moved = [
            [word.word, str(word.label)]
            + [_weight(v) for v in (word.source, word.target, word.moved, word.share)]
            for word in one.explanation.moved
        ]
        tables.append(_lines([MOVED, *moved]))
    return "\n".join(lines) + "\n" + "\n".join(tables)


def _lines(rows: Iterable[Iterable[str]]) -> str:
    return "".join("\t".join(" ".join(clean(cell).split()) for cell in row) + "\n" for row in rows)


def _weight(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}"  # no minus before a zero


def _yes(name: str, one: Adaptation) -> str:
    return "yes" if name == one.method else ""


def _remarks(one: Adaptation, words: bool) -> list[str]:
    told = [judged.told for judged in one.judgements if judged.told]
    said = [one.accuracy, *told, *one.notes]
    if words and one.explanation is not None:
        said += [
            f"{word} is near {', '.join(f'{near} ({cosine:.2f})' for near, cosine in nearest)}"
            for word, nearest in one.explanation.correspondences
        ]
    return [clean(text).rstrip(".") for text in said if text]


def _methods(one: Adaptation) -> Table:
    table = _table("method")
    for head in (*(judged.head for judged in one.judgements), "seconds"):
        table.add_column(Text(clean(head)), justify="right")
    for row in method_rows(one.judgements):
        chosen = row.name == one.method
        cells = [*map(figure, row.accuracies), f"{row.seconds:.2f}"]
        mark = "→ " if chosen else "  "
        table.add_row(Text(mark + clean(row.name)), *cells, style="bold" if chosen else "")
    return table


def _moved(explanation: Explanation) -> Table:
    table = _table("word that moved")
    for head in ("source", "target", "moved", "in target"):
        table.add_column(head, justify="right")
    table.add_column("for")
    for one in explanation.moved:
        weights = [f"{weight:+.2f}" for weight in (one.source, one.target, one.moved)]
        table.add_row(_name(one.word), *weights, percent(one.share), _name(one.label))
    return table


def _table(first: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(first)
    return table


def _name(value: object) -> Text:
    return Text(shortened(clean(value), LONGEST_NAME))


def _share(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else ""
