"""Tables of a page about labels learned from a few."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from softcount.show.groups import shortened
from softcount.show.labelling_figures import ClassRow, Item, ShownRound, ViewRow
from softcount.show.snippets import clean, snippet
from softcount.types import Array
from softcount.weak.history import HEADS, History, Round, cells

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
    for shown in rounds:
        left_out = shown.round.number - before - 1
        if left_out:
            parts.append(f'<p class="gap">{left_out:,} round{"s" * (left_out > 1)} left out</p>')
        before = shown.round.number
        parts.append(
            f"<details><summary>Round {shown.round.number}<small>{_told(shown.round)}</small>"
            f'</summary><div class="wide">{_given(shown, texts, kind)}</div></details>'
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
