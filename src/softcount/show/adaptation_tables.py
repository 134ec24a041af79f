"""Tables of a page about adaptation: methods, words whose weights moved, words that correspond."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from softcount.adapt.comparison import Comparison
from softcount.adapt.explanation import Explanation, MovedWord
from softcount.show.labelling_tables import figure, name_of

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
