"""Groups of documents as a page and in the terminal."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcount.show.groups import LONGEST_MARK, Group, Grouping, in_a_line
from softcount.show.report import document, ending, signed
from softcount.show.snippets import clean, on_one_line
from softcount.show.terminal import bar, verdict_line

STYLE = """
body { max-width: 60rem; } h1 { overflow-wrap: anywhere; }
.overview { margin: 1.4rem 0 .8rem; } .overview th { white-space: nowrap; }
.overview td { padding: .16rem 0; } .overview thead th { color: var(--soft); }
.overview thead th.size { text-align: right; padding-right: .9rem; }
.overview thead th.words { padding-left: .6rem; }
.overview tbody > tr > * { border-top: 1px solid var(--rule); }
.overview a { color: inherit; text-decoration-color: var(--bar); text-underline-offset: .2em; }
.overview td.bar { width: 9rem; padding-right: .4rem; }
.overview td.size { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; padding: .16rem .9rem .16rem 0; }
.overview td.words { color: var(--soft); padding-left: .6rem; overflow-wrap: anywhere; }
.group { display: grid; grid-template-columns: 17rem 1fr; gap: .4rem 2.4rem; margin: 2.2rem 0;
  padding-top: 1rem; border-top: 1px solid var(--rule); align-items: start; }
.group h2 { grid-column: 1 / -1; margin: 0; padding: 0; border: 0; overflow-wrap: anywhere; }
.group h2 small { color: var(--soft); font-size: .86rem; margin-left: .6rem; }
.group td.bar { width: 38%; } td.bar span.below { background: var(--poor); }
.group td.p { width: 4.6em; }
.examples { margin: 0; padding: 0; list-style: none; font-size: .88rem; line-height: 1.45; }
.examples li { margin: 0 0 .6rem; padding-left: .9rem; border-left: 2px solid var(--rule);
  overflow-wrap: anywhere; }
.note { font-size: .92rem; } .end { border-top: 1px solid var(--rule); padding-top: 1rem; }
@media (max-width: 44rem) { .group { grid-template-columns: 1fr; }
  .overview td.bar { min-width: 4rem; width: 5rem; } .overview .words { min-width: 16rem; }
  .overview .words { padding-right: .4rem; } }
@media print { body { max-width: none; font-size: 11pt; } .group { break-inside: avoid;
  grid-template-columns: 14rem 1fr; } tr { break-inside: avoid; }
  td.bar span { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def page(grouping: Grouping) -> str:
    """A whole page, which needs no network."""
    notes = "".join(f'<p class="note">{escape(note)}.</p>' for note in grouping.notes)
    shown = [group for group in grouping.groups if group.size]
    order = "Labels in alphabetical order" if grouping.kind == "label" else "The largest first"
    legend = (
        f"{order}. Below, what marks each {grouping.kind}, the longest bar first, beside the "
        f"{grouping.counted}s most typical of it. Figures: "
    )
    body = (
        f"{notes}{_overview(grouping)}"
        f'<p class="scale">{escape(legend + grouping.figures)}.</p>'
        f"{''.join(_section(group, grouping) for group in shown)}"
        f'<section class="end">{_end(grouping)}</section>'
    )
    return document(grouping.title, grouping.text, body, STYLE)


def _overview(grouping: Grouping) -> str:
    """All groups, a line each, with the way to what is said of them below."""
    largest = max((group.share for group in grouping.groups), default=0.0) or 1.0
    heads = "".join(f'<th class="size">{escape(head)}</th>' for head, _ in grouping.counts)
    rows = ""
    for number, group in enumerate(grouping.groups):
        figures = [f"{group.share:.1%}", *(f"{counts[number]:,}" for _, counts in grouping.counts)]
        cells = "".join(f'<td class="size">{figure}</td>' for figure in figures)
        rows += (
            f'<tr><th scope="row">{_link(group, grouping.kind)}</th>'
            f'<td class="bar"><span style="width:{100 * group.share / largest:.1f}%"></span></td>'
            f'{cells}<td class="words">{escape(_marks(group, grouping, LONGEST_MARK))}</td></tr>'
        )
    return (
        f'<div class="wide"><table class="overview"><thead><tr><th>{grouping.kind}</th><th></th>'
        f'<th class="size">share</th>{heads}<th class="words">marked by</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _link(group: Group, kind: str) -> str:
    name = escape(_called(group, kind))
    return f'<a href="#{_anchor(group)}">{name}</a>' if group.size else name


def _called(group: Group, kind: str) -> str:
    """Numbers need a word before them, labels do not."""
    return group.name if kind == "label" else f"{kind} {group.name}"


def _heading(group: Group, kind: str) -> str:
    return group.name if kind == "label" else f"{kind.capitalize()} {group.name}"


def _anchor(group: Group) -> str:
    return "g-" + "".join(c if c.isalnum() else f".{ord(c):x}." for c in group.name)


def _section(group: Group, grouping: Grouping) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(mark.name)}</th><td class="bar">'
        f'<span{" class=below" * mark.below} style="width:{100 * mark.bar:.1f}%"></span></td>'
        f'<td class="p">{escape(mark.figure)}</td></tr>'
        for mark in sorted(group.marks, key=lambda mark: -mark.bar)
    )
    examples = "".join(f"<li>{escape(text)}</li>" for text in group.examples)
    size = f"{group.size:,} {grouping.counted}{'s' * (group.size != 1)} · {group.share:.1%}"
    return (
        f'<section class="group" id="{_anchor(group)}"><h2>{escape(_heading(group, grouping.kind))}'
        f"<small>{size}</small></h2>"
        f'<table>{rows}</table><ul class="examples">{examples}</ul></section>'
    )


def _end(grouping: Grouping) -> str:
    compared = grouping.comparison
    beside = f"<pre>{escape(str(compared))}</pre>" if compared is not None else ""
    if grouping.fit is None:
        return beside + signed(grouping.signature)
    figures = f'<p class="scale">{escape(_outcome(grouping))}.</p>'
    return beside + figures + ending(grouping.fit, grouping.title)


def _outcome(grouping: Grouping) -> str:
    """Where the kept run ended, in a line; empty if the model came from a file."""
    figures = {name.replace("_", "-"): value for name, value in grouping.outcome.items()}
    steps = figures.pop("steps", 0)
    ended = [f"{name} {value:,.4f}" for name, value in figures.items()]
    return " · ".join([*ended, f"{steps:,} step{'s' * (steps != 1)}"]) if ended else ""


def show(grouping: Grouping, console: Console) -> None:
    """The overview in a terminal: a line for each group, then the verdict and the signature."""
    largest = max((group.share for group in grouping.groups), default=0.0) or 1.0
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column(grouping.kind, overflow="fold", max_width=24)
    table.add_column(f"{grouping.counted}s", justify="right")
    table.add_column("share", justify="right")
    table.add_column("", style="cyan", min_width=10, no_wrap=True)
    table.add_column("marked by", no_wrap=True, overflow="ellipsis", ratio=1)  # what room is left
    for group in grouping.groups:
        length = bar(group.share / largest)
        words, name = (
            Text(on_one_line(text)) for text in (_marks(group, grouping, LONGEST_MARK), group.name)
        )
        table.add_row(name, f"{group.size:,}", f"{group.share:.1%}", length, words)
    title = Text(on_one_line(grouping.title), style="bold")
    console.print(title, Text(clean(grouping.text)), table, sep="\n")
    for note in grouping.notes:
        console.print(Text(clean(note)))
    if grouping.comparison is not None:
        console.print(Text(str(grouping.comparison)))
    if grouping.fit is not None:
        console.print(verdict_line(grouping.fit.verdict))
        console.print(Text(_outcome(grouping)))
    # one line, to be copied whole
    console.print(Text(grouping.signature, style="dim"), soft_wrap=True)


def as_tsv(grouping: Grouping) -> str:
    """The overview for programs: a group a line, its marks separated by spaces; remarks as #."""
    ended = [] if grouping.fit is None else [str(grouping.fit.verdict), _outcome(grouping)]
    remarks = [grouping.signature, *ended, *grouping.notes]
    if grouping.comparison is not None:
        remarks += str(grouping.comparison).splitlines()
    lines = [f"# {remark}" for remark in remarks]
    lines.append(f"{grouping.kind}\t{grouping.counted}s\tshare\tmarks")
    for group in grouping.groups:
        lines.append(f"{group.name}\t{group.size}\t{group.share:.4f}\t{_marks(group, grouping)}")
    return "\n".join(lines) + "\n"


def as_json(grouping: Grouping) -> dict[str, Any]:
    """The overview as JSON can say it."""
    fit, compared = grouping.fit, grouping.comparison
    return {
        "signature": grouping.signature,
        "verdict": None if fit is None else _verdict(fit.verdict),
        **{name: _finite(value) for name, value in grouping.outcome.items()},
        "notes": list(grouping.notes),
        **({} if compared is None else {"gold": compared.figures()}),
        "groups": [
            {
                grouping.kind: int(group.name) if grouping.numbered else group.name,
                f"{grouping.counted}s": group.size,
                "share": group.share,
                "marks": {mark.name: float(mark.figure) for mark in group.marks},
            }
            for group in grouping.groups
        ],
    }


def _marks(group: Group, grouping: Grouping, longest: int | None = None) -> str:
    return in_a_line(group.marks, longest, grouping.in_a_line)


def _finite(value: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return value if math.isfinite(value) else None


def _verdict(verdict: Any) -> dict[str, str]:
    return {"name": verdict.name.lower(), "sentence": str(verdict)}
