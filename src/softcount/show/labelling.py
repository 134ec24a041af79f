"""A page about labels learned from a few: round by round, by class and by view, and what to label
next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from softcount.show.groups import shortened
from softcount.show.labelling_figures import Comparison, Figures, figures
from softcount.show.labelling_tables import (
    class_table,
    item_table,
    round_details,
    round_table,
    rule_table,
    view_table,
)
from softcount.show.report import document, signed
from softcount.show.snippets import clean
from softcount.show.svg import Series, line_chart
from softcount.types import Array
from softcount.weak.history import History

MOST_CURVES = 4
"""More classes than colours have one curve for all of them, and each a small one in the table."""
LONGEST_NAME = 18
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
    return resources.files(__package__).joinpath("labelling.css").read_text(encoding="utf-8")


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
    names = [shortened(clean(name), LONGEST_NAME) for name in history.classes.tolist()]
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
