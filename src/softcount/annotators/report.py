"""Report on annotators, as a page and as an overview: their accuracies and confusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.types import Fit
from softcount.report.finding import describe_outcome
from softcount.report.page import render_page
from softcount.report.tables import Column, Overview, draw_bar
from softcount.report.text import flatten

if TYPE_CHECKING:
    from softcount.annotators import Annotators
    from softcount.annotators.rules import RulesSummary

MOST_TABLES = 40
"""Number of annotators whose confusion matrices the page shows."""
MOST_ROWS = 20
"""Number of annotators that a terminal shows."""


@dataclass(frozen=True)
class Annotator:
    """An annotator: number of votes, probability of being right, confusion matrix p(said | true).

    ``mistakes``  the most frequent confusions, in a line
    """

    name: str
    votes: int
    accuracy: float
    confusion: Sequence[Sequence[float]]
    mistakes: str


@dataclass(frozen=True)
class Survey(Overview):
    """Overview of the annotators.

    ``labels, weights``  the labels, and their probabilities
    ``people``           the annotators, the most accurate first
    ``doubtful``         items whose label is least certain: name, label, probability
    ``gold``             measures of agreement with gold labels, by name; empty without gold labels
    """

    title: str
    text: str
    labels: Sequence[str]
    weights: Sequence[float]
    people: Sequence[Annotator]
    signature: str
    doubtful: Sequence[tuple[str, str, float]] = ()
    gold: Mapping[str, float] = field(default_factory=dict)
    fit: Fit | None = None

    most_rows = MOST_ROWS

    def heading(self) -> list[str]:
        """Return title and text."""
        return [self.title, self.text]

    def columns(self) -> list[Column]:
        """Return a row for each annotator; for programs also p(said | true) of all label pairs."""
        people, labels = self.people, list(enumerate(self.labels))
        names, right = [one.name for one in people], [one.accuracy for one in people]
        votes = [one.votes for one in people]
        return [
            Column("annotator", names, names, "name"),
            Column("votes", [f"{n:,}" for n in votes], [str(n) for n in votes]),
            Column("right", [f"{p:.3f}" for p in right], [f"{p:.4f}" for p in right]),
            Column("", [draw_bar(p) for p in right], kind="bar"),
            Column("mistakes (true → said)", [one.mistakes for one in people], kind="words"),
            *(
                Column(
                    f"{true}→{said}",
                    None,
                    [f"{one.confusion[k][l]:.4f}" for one in people],
                    detail=True,
                )
                for k, true in labels
                for l, said in labels
            ),
        ]

    def remarks(self) -> list[str]:
        """Return the agreement with gold labels, and the probabilities of the labels."""
        pairs = zip(self.labels, self.weights, strict=True)
        labels = ", ".join(f"{flatten(label)} {p:.6g}" for label, p in pairs)
        return [*(f"{_name(name)}: {x:.6g}" for name, x in self.gold.items()), f"labels: {labels}"]

    def facts(self) -> dict[str, Any]:
        """Return the labels and the estimates for the annotators."""
        labels = self.labels
        annotators = [
            {
                "annotator": one.name,
                "votes": one.votes,
                "right": one.accuracy,
                "confusion": {
                    true: dict(zip(labels, row, strict=True))
                    for true, row in zip(labels, one.confusion, strict=True)
                },
            }
            for one in self.people
        ]
        return {
            **({"gold": dict(self.gold)} if self.gold else {}),
            "labels": dict(zip(labels, self.weights, strict=True)),
            "annotators": annotators,
        }


def survey_annotators(model: Annotators, title: str, text: str, **more: Any) -> Survey:
    """Make the overview of a fitted model; ``more``: further fields of `Survey`."""
    accuracy, labels = model.accuracy_, [str(label) for label in model.classes_.tolist()]
    weights = model.weights_.tolist()
    people = []
    for a in np.argsort(-accuracy, kind="stable").tolist():
        confusion = model.confusion_[a].tolist()
        # the two most frequent confusions, without rare ones
        mistakes = [
            (weights[k] * p, f"{labels[k]} → {labels[l]} {p:.2f}")
            for k, row in enumerate(confusion)
            for l, p in enumerate(row)
            if k != l and p >= 0.05
        ]
        mistakes.sort(key=lambda mistake: -mistake[0])
        name, votes = str(model.annotators_[a]), int(model.n_votes_[a])
        most = ", ".join(text for _, text in mistakes[:2])
        people.append(Annotator(name, votes, float(accuracy[a]), confusion, most))
    fit = getattr(model, "fit_", None)
    return Survey(title, text, labels, weights, people, model.signature_, fit=fit, **more)


def annotators_page(found: Survey) -> str:
    """Make a self-contained HTML page."""
    return render_page(
        "annotators/report.html",
        found.title,
        found.text,
        found=found,
        gold={_name(name): value for name, value in found.gold.items()},
        busiest=sorted(found.people, key=lambda one: -one.votes)[:MOST_TABLES],
        outcome=describe_outcome(found.outcome),
    )


def _name(figure: str) -> str:
    return figure.replace("_", " ")


@dataclass(frozen=True)
class RulesTable(Overview):
    """Overview of labelling rules.

    ``texts``            the lines, which the page shows
    ``labels, weights``  the labels, and their probabilities
    """

    title: str
    text: str
    summary: RulesSummary
    texts: Sequence[str]
    labels: Sequence[str]
    weights: Sequence[float]
    signature: str
    fit: Fit | None = None

    @property
    def has_gold(self) -> bool:
        """Whether some true labels are known."""
        return bool(self.summary.gold)

    def heading(self) -> list[str]:
        """Return title and text."""
        return [self.title, self.text]

    def columns(self) -> list[Column]:
        """Return a row for each rule."""
        rules = self.summary.rules
        names = [one.name for one in rules]
        accuracy = [one.accuracy for one in rules]
        columns = [Column("rule", names, names, "name")]
        for name in ("coverage", "overlap", "conflict"):
            cells = [_figure(getattr(one, name)) for one in rules]
            columns.append(Column(name, cells, cells))
        columns.append(
            Column("accuracy", list(map(_figure, accuracy)), list(map(_figure, accuracy)))
        )
        bars = ["" if p != p else draw_bar(p) for p in accuracy]
        columns.append(Column("", bars, kind="bar"))
        if self.has_gold:
            right = [_figure(one.right) for one in rules]
            columns.append(Column("right", right, right))
        wrong = [str(one.n_wrong) for one in rules]
        return [*columns, Column("probably wrong", wrong, wrong)]

    def remarks(self) -> list[str]:
        """Return coverage, agreement with gold labels, and what the majority does."""
        found = self.summary
        remarks = [f"{found.covered:.1%} of the lines have a vote"]
        if found.gold:
            remarks.append(
                f"right by --gold, of the lines with votes: {found.gold['model']:.3f}; "
                f"the majority: {found.gold['majority']:.3f}"
            )
        if found.advice:
            remarks.append(found.advice)
        pairs = zip(self.labels, self.weights, strict=True)
        return [*remarks, "labels: " + ", ".join(f"{flatten(name)} {p:.3g}" for name, p in pairs)]

    def facts(self) -> dict[str, Any]:
        """Return what is known of rules and labels."""
        found = self.summary
        rules = [
            {
                "rule": one.name,
                "coverage": one.coverage,
                "overlap": one.overlap,
                "conflict": one.conflict,
                "accuracy": None if one.accuracy != one.accuracy else one.accuracy,
                **({} if one.right != one.right else {"right": one.right}),
                "probably_wrong": one.n_wrong,
                "doubtful": [
                    {
                        "line": item + 1,
                        "vote": sorted(vote) if isinstance(vote, frozenset) else vote,
                        "likely": likely,
                        "wrong": p,
                    }
                    for item, vote, likely, p in one.doubtful
                ],
            }
            for one in found.rules
        ]
        return {
            **({"gold": dict(found.gold)} if found.gold else {}),
            "covered": found.covered,
            "expected": {"model": found.model, "majority": found.majority},
            "labels": dict(zip(self.labels, self.weights, strict=True)),
            "rules": rules,
        }


def rules_page(found: RulesTable) -> str:
    """Make a self-contained HTML page."""
    return render_page(
        "annotators/rules.html",
        found.title,
        found.text,
        found=found,
        remarks=found.remarks(),
        outcome=describe_outcome(found.outcome),
    )


def _figure(value: float) -> str:
    return "" if value != value else f"{value:.3f}"
