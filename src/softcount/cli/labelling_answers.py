"""How commands that learn from a few labels end: lines filled in, what was learned, a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from softcount.cli.ending import at, try_all
from softcount.cli.records import Records, print_records

if TYPE_CHECKING:
    from softcount.show.labelling import Labelling
    from softcount.types import Array
    from softcount.weak.history import History


def finish(
    records: Records,
    labels: Sequence[str | None],
    confidence: Sequence[float] | Array,
    history: History,
    *,
    title: str,
    texts: Sequence[str] | None = None,
    gold: Sequence[str | None] | None = None,
    html: Path | None = None,
    rules: Sequence[tuple[str, Any, float]] = (),
    notes: Sequence[str] = (),
    signature: str = "",
) -> None:
    """The lines on stdout, what was learned on stderr, and the page if it is wanted.

    ``labels``   one for each line; None: it has none. What ``history`` is of, too: it has an item
                 for each line, and classes that are texts
    ``texts``    what the page is to show of each line
    ``gold``     as `read_gold` gives it: compared are lines that were given no label
    ``html``     where the page goes
    ``rules``    a rule as it is to be read, its label, its strength; the strongest first
    ``notes``    remarks, each a sentence without its full stop
    """
    from softcount.show.labelling import Labelling, page
    from softcount.show.labelling_figures import figures
    from softcount.show.report import write_page

    said = _standing(records, labels, history)
    known = None if gold is None else _gold_numbers(gold, records, history)
    found = figures(history, texts, said, confidence, known)
    one = Labelling(title, found, texts, "line", rules, notes, signature)

    def tell() -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_labelling(one, sys.stderr)
        print_records(records, labels, confidence)
        if watched:
            print_labelling(one, sys.stderr)

    try_all(tell, at(html, lambda path: write_page(path, page(one))))


def print_labelling(one: Labelling, stream: TextIO) -> None:
    """Tables if someone is watching, else tab-separated values."""
    from rich.console import Console

    from softcount.show import labelling_text

    if stream.isatty():
        labelling_text.show(one, Console(file=stream, highlight=False))
    else:
        stream.write(labelling_text.as_tsv(one))
    stream.flush()


def _standing(records: Records, labels: Sequence[str | None], history: History) -> list[str | None]:
    """Each line's label as it is printed; None for blank lines, and for classes that were never
    learned but stand in the file."""
    classes = set(map(str, history.classes.tolist()))
    printed = [
        learned if given is None else given
        for given, learned in zip(records.labels, labels, strict=True)
    ]
    return [
        label if label in classes and n not in records.blank else None
        for n, label in enumerate(printed)
    ]


def _gold_numbers(gold: Sequence[str | None], records: Records, history: History) -> Array:
    """Gold labels as a history numbers them; unknown on lines whose label was given, and on blank
    ones, which get no answer."""
    import numpy as np

    from softcount.models.mixture.labels import UNKNOWN
    from softcount.weak.history import OTHER

    places = {name: number for number, name in enumerate(map(str, history.classes.tolist()))}
    lines = zip(gold, records.labels, strict=True)
    return np.array(
        [
            UNKNOWN
            if label is None or given is not None or n in records.blank
            else places.get(label, OTHER)
            for n, (label, given) in enumerate(lines)
        ]
    )
