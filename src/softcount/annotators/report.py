"""Annotators as a page and in the terminal: how good they are, and what they confuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcount.show.finding import ended, outcome
from softcount.show.report import document, ending, signed
from softcount.show.snippets import clean, on_one_line
from softcount.show.terminal import bar, verdict_line
from softcount.types import Fit

if TYPE_CHECKING:
    from softcount.annotators import Annotators

MOST_TABLES = 40
"""Of so many annotators the page shows what they say of each true label."""
MOST_ROWS = 20
"""Of so many annotators the terminal shows a line."""
STYLE = """
body { max-width: 60rem; } h1 { overflow-wrap: anywhere; }
.people th { white-space: nowrap; } .people thead th { color: var(--soft); }
.people td.bar { width: 9rem; } .people td.p { padding-right: .9rem; white-space: nowrap; }
.people tbody > tr > * { border-top: 1px solid var(--rule); padding-top: .16rem; }
.people td.words { color: var(--soft); overflow-wrap: anywhere; }
.matrix td { text-align: right; font-variant-numeric: tabular-nums; padding: .1rem .35rem; }
.matrix td.right { outline: 1px solid var(--rule); } .matrix thead th { color: var(--soft); }
"""


@dataclass(frozen=True)
class Person:
    """An annotator: votes, the chance of being right, and p(said | true), true by true."""

    name: str
    votes: int
    accuracy: float
    confusion: Sequence[Sequence[float]]

    def mistakes(self, labels: Sequence[str], weights: Sequence[float], most: int = 2) -> str:
        """What is most often said instead of what is true, in a line."""
        found = [
            (weights[k] * p, f"{labels[k]} → {labels[l]} {p:.2f}")
            for k, row in enumerate(self.confusion)
            for l, p in enumerate(row)
            if k != l and p >= 0.05
        ]
        return ", ".join(text for _, text in sorted(found, key=lambda one: -one[0])[:most])


@dataclass(frozen=True)
class Survey:
    """What was learned of annotators.

    ``labels, weights``  the labels, and how common they are
    ``people``           the annotators, the best first
    ``doubtful``         items whose label is least certain: name, label, probability
    ``gold``             how well labels agree with true ones, by name; empty if nobody asked
    """

    title: str
    text: str
    labels: Sequence[str]
    weights: Sequence[float]
    people: Sequence[Person]
    signature: str
    doubtful: Sequence[tuple[str, str, float]] = ()
    gold: Mapping[str, float] = field(default_factory=dict)
    fit: Fit | None = None


def survey(model: Annotators, title: str, text: str, **more: Any) -> Survey:
    """What there is to show of a model."""
    accuracy = model.accuracy_
    names = [str(name) for name in model.annotators_.tolist()]
    people = [
        Person(names[a], int(model.n_votes_[a]), float(accuracy[a]), model.confusion_[a].tolist())
        for a in np.argsort(-accuracy, kind="stable").tolist()
    ]
    return Survey(
        title,
        text,
        [str(label) for label in model.classes_.tolist()],
        model.weights_.tolist(),
        people,
        model.signature_,
        fit=getattr(model, "fit_", None),
        **more,
    )


def page(found: Survey) -> str:
    """A whole page, which needs no network."""
    gold = "".join(
        f"<p>{escape(_said(name))}: {value:.4g}</p>" for name, value in found.gold.items()
    )
    body = f"{gold}{_people(found)}{_matrices(found)}{_doubtful(found)}"
    if found.fit is None:
        end = signed(found.signature)
    else:
        end = f'<p class="scale">{escape(ended(found.fit))}.</p>{ending(found.fit, found.title)}'
    return document(found.title, found.text, f"{body}<section>{end}</section>", STYLE)


def _people(found: Survey) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(one.name)}</th><td class="p">{one.votes:,}</td>'
        f'<td class="bar"><span style="width:{100 * one.accuracy:.1f}%"></span></td>'
        f'<td class="p">{one.accuracy:.3f}</td>'
        f'<td class="words">{escape(one.mistakes(found.labels, found.weights))}</td></tr>'
        for one in found.people
    )
    return (
        '<h2>Annotators</h2><p class="scale">The chance to say the true label, and what is most '
        "often said instead (true → said).</p>"
        '<div class="wide"><table class="people"><thead><tr><th>annotator</th><th>votes</th>'
        f"<th></th><th>right</th><th>mistakes</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _matrices(found: Survey) -> str:
    """What the annotators with the most votes say of each true label, folded away."""
    busiest = sorted(found.people, key=lambda one: -one.votes)[:MOST_TABLES]
    heads = "".join(f"<th>{escape(label)}</th>" for label in found.labels)
    tables = "".join(
        f"<details><summary>{escape(one.name)}: {one.votes:,} votes, right {one.accuracy:.3f}"
        f'</summary><div class="wide"><table class="matrix"><thead><tr><th>true \\ said</th>{heads}'
        f"</tr></thead>{_matrix(one, found)}</table></div></details>"
        for one in busiest
    )
    note = f" The {len(busiest)} with the most votes." if len(busiest) < len(found.people) else ""
    return f'<h2>What they say of each true label</h2><p class="scale">In %.{note}</p>{tables}'


def _matrix(one: Person, found: Survey) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(found.labels[k])} '
        f"({found.weights[k]:.0%})</th>"
        + "".join(
            f"<td{' class=right' * (k == l)} "
            f'style="background:color-mix(in srgb, var(--bar) {60 * p:.0f}%, transparent)">'
            f"{100 * p:.0f}</td>"
            for l, p in enumerate(row)
        )
        + "</tr>"
        for k, row in enumerate(one.confusion)
    )


def _doubtful(found: Survey) -> str:
    if not found.doubtful:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(item)}</th><td>{escape(label)}</td>'
        f'<td class="p">{p:.3f}</td></tr>'
        for item, label, p in found.doubtful
    )
    return f"<h2>Least certain items</h2><table>{rows}</table>"


def show(found: Survey, console: Console) -> None:
    """The annotators in a terminal, then the verdict and the signature."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("annotator", overflow="fold", max_width=24)
    table.add_column("votes", justify="right")
    table.add_column("right", justify="right")
    table.add_column("", style="cyan", min_width=10, no_wrap=True)
    table.add_column("mistakes (true → said)", no_wrap=True, overflow="ellipsis", ratio=1)
    people = found.people
    half = MOST_ROWS // 2
    shown = people if len(people) <= MOST_ROWS else [*people[:half], *people[-half:]]
    for number, one in enumerate(shown):
        if number == half and len(shown) < len(people):
            table.add_row("…", "", "", "", f"{len(people) - len(shown):,} more")
        mistakes = Text(on_one_line(one.mistakes(found.labels, found.weights)))
        figures = (f"{one.votes:,}", f"{one.accuracy:.3f}", bar(one.accuracy))
        table.add_row(Text(on_one_line(one.name)), *figures, mistakes)
    title = Text(on_one_line(found.title), style="bold")
    console.print(title, Text(clean(found.text)), table, sep="\n")
    common = zip(found.labels, found.weights, strict=True)
    labels = ", ".join(f"{on_one_line(label)} {p:.3f}" for label, p in common)
    console.print(Text(f"labels: {labels}"))
    for name, value in found.gold.items():
        console.print(Text(f"{_said(name)}: {value:.4g}"))
    if found.fit is not None:
        console.print(verdict_line(found.fit.verdict))
        console.print(Text(ended(found.fit)))
    console.print(Text(found.signature, style="dim"), soft_wrap=True)


def as_tsv(found: Survey, *, confusions: bool = True) -> str:
    """For programs: an annotator a line, with all of p(said | true) if wanted; remarks as #."""
    told = [] if found.fit is None else [str(found.fit.verdict), ended(found.fit)]
    common = zip(found.labels, found.weights, strict=True)
    remarks = [
        found.signature,
        *told,
        *(f"{_said(name)}: {value:.6g}" for name, value in found.gold.items()),
        "labels: " + ", ".join(f"{label} {p:.6g}" for label, p in common),
    ]
    pairs = [f"{true}→{said}" for true in found.labels for said in found.labels] * confusions
    lines = [
        *(f"# {remark}" for remark in remarks),
        "\t".join(["annotator", "votes", "right", *pairs]),
    ]
    for one in found.people:
        chances = [f"{p:.4f}" for row in one.confusion for p in row] * confusions
        lines.append("\t".join([one.name, str(one.votes), f"{one.accuracy:.4f}", *chances]))
    return "\n".join(lines) + "\n"


def as_json(found: Survey) -> dict[str, Any]:
    """All of it as JSON can say it."""
    fit, labels = found.fit, found.labels
    return {
        "signature": found.signature,
        "verdict": None
        if fit is None
        else {"name": fit.verdict.name.lower(), "sentence": str(fit.verdict)},
        **outcome(fit),
        **({"gold": dict(found.gold)} if found.gold else {}),
        "labels": dict(zip(labels, found.weights, strict=True)),
        "annotators": [
            {
                "annotator": one.name,
                "votes": one.votes,
                "right": one.accuracy,
                "confusion": {
                    true: dict(zip(labels, row, strict=True))
                    for true, row in zip(labels, one.confusion, strict=True)
                },
            }
            for one in found.people
        ],
    }


def _said(name: str) -> str:
    return name.replace("_", " ")
