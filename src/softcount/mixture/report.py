"""Groups of documents or points, as a page and as an overview: sizes, what marks them, examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.types import Fit, FloatArray, IntArray
from softcount.mixture.documents import WordMixture
from softcount.mixture.points import PointMixture
from softcount.report.finding import describe_outcome
from softcount.report.page import render_page
from softcount.report.tables import Column, Overview, draw_bars
from softcount.report.text import shorten

if TYPE_CHECKING:
    from softcount.metrics import Agreement

MARKS = 10
EXAMPLES = 4
MARKS_IN_LINE = 8
"""Number of marks in a group's line of an overview."""
LONGEST_MARK = 24
"""Longer ones are cut where they would not fit."""


@dataclass(frozen=True)
class Mark:
    """Something that marks a group: a word, or a column of numbers.

    ``bar``    its length, 0 … 1
    ``below``  whether the figure is below what is usual, so that the bar means the opposite
    """

    name: str
    figure: str
    bar: float
    below: bool = False


@dataclass(frozen=True)
class Group:
    """A class or a label, and the lines that were given to it."""

    name: str
    size: int
    share: float
    marks: Sequence[Mark]
    examples: Sequence[str] = ()

    @property
    def anchor(self) -> str:
        """Where a page speaks of it."""
        return "g-" + "".join(c if c.isalnum() else f".{ord(c):x}." for c in self.name)


@dataclass(frozen=True)
class GoldComparison:
    """Answers beside gold classes; ``accuracy`` only where answers have the names of these."""

    agreement: Agreement
    accuracy: float | None = None

    def __str__(self) -> str:
        head, *figures = str(self.agreement).splitlines()
        if self.accuracy is not None:
            figures.insert(0, f"  {'accuracy':<21}{self.accuracy:7.3f}")
        return "\n".join([f"beside gold classes: {head}", *figures])

    def figures(self) -> dict[str, float]:
        """Everything, by name."""
        accuracy = {} if self.accuracy is None else {"accuracy": self.accuracy}
        return accuracy | asdict(self.agreement)


@dataclass(frozen=True)
class Grouping(Overview):
    """Everything to be shown of some groups.

    ``kind``     what a group is called: class, label, sense, topic
    ``figures``  what the figures beside the marks are
    ``notes``    remarks, each a sentence
    ``counts``   counts to stand beside the groups: what they are of, and one for each group
    ``fit``      None if the model came from a file
    ``counted``  what a group has: lines of a file, occurrences of a word
    ``tokens``   whether the model predicts words one by one, so that it has a perplexity
    ``comparison`` with gold classes, if there are any
    ``n_marks``  how many marks stand in a group's line of the overview
    """

    title: str
    text: str
    kind: str
    figures: str
    groups: Sequence[Group]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    counts: Sequence[tuple[str, Sequence[int]]] = ()
    counted: str = "line"
    tokens: bool = False
    comparison: GoldComparison | None = None
    n_marks: int = MARKS_IN_LINE

    @property
    def outcome(self) -> dict[str, float]:
        """Where the kept run ended, to compare starts and settings by; nothing without a fit."""
        figures = super().outcome
        if not self.tokens:
            figures.pop("perplexity", None)
        return figures

    def heading(self) -> list[str]:
        """Title and text."""
        return [self.title, self.text]

    def columns(self) -> list[Column]:
        """A row for each group."""
        groups = self.groups
        names, sizes = [group.name for group in groups], [group.size for group in groups]
        shares = [group.share for group in groups]
        return [
            Column(self.kind, names, names, "name"),
            Column(f"{self.counted}s", [f"{n:,}" for n in sizes], [str(n) for n in sizes]),
            Column("share", [f"{p:.1%}" for p in shares], [f"{p:.4f}" for p in shares]),
            Column("", draw_bars(shares), kind="bar"),
            Column("marked by", [self.join_marks(one) for one in groups], kind="words"),
            Column("marks", None, [join_marks(one.marks, None, self.n_marks) for one in groups]),
        ]

    def remarks(self) -> list[str]:
        """The notes, and how the groups agree with gold classes."""
        beside = [] if self.comparison is None else [str(self.comparison)]
        return [*self.notes, *beside]

    def facts(self) -> dict[str, Any]:
        """The notes, the agreement with gold classes, and all groups."""
        gold = {} if self.comparison is None else {"gold": self.comparison.figures()}
        groups = [
            {
                self.kind: group.name if self.kind == "label" else int(group.name),
                f"{self.counted}s": group.size,
                "share": group.share,
                "marks": {mark.name: float(mark.figure) for mark in group.marks},
            }
            for group in self.groups
        ]
        return {"notes": list(self.notes), **gold, "groups": groups}

    def join_marks(self, group: Group) -> str:
        """The marks of a group in a line, the longest cut."""
        return join_marks(group.marks, LONGEST_MARK, self.n_marks)


def groups_page(grouping: Grouping) -> str:
    """A whole page, which needs no network."""
    return render_page(
        "mixture/report.html",
        grouping.title,
        grouping.text,
        grouping=grouping,
        outcome=describe_outcome(grouping.outcome),
    )


def counts_tokens(model: WordMixture | PointMixture) -> bool:
    """Whether the model predicts every word of a document, and not only which there are."""
    return isinstance(model, WordMixture) and not model.bernoulli


def describe_figures(model: WordMixture | PointMixture) -> str:
    """What the figures beside the marks of this model's classes are."""
    if isinstance(model, PointMixture):
        return "mean of the column; bars: how far it is from the mean of all, orange: below"
    if model.bernoulli:
        return "% of lines with the word"
    return "% of all words"


def find_word_marks(model: WordMixture, n: int = MARKS) -> list[list[Mark]]:
    """The words that mark each class, the most telling first; bars on each class's own scale."""
    marks = []
    for row in model.top_words(n):
        longest = max((p for _, p in row), default=1.0) or 1.0
        marks.append([Mark(str(word), f"{100 * p:.2f}", p / longest) for word, p in row])
    return marks


def find_point_marks(model: PointMixture, n: int = MARKS) -> list[list[Mark]]:
    """The columns in which each class's mean is farthest from the mean of all, in deviations."""
    means, weights = model.means_, model.weights_ / model.weights_.sum()
    centre = weights @ means
    spread = np.sqrt(weights @ (means - centre) ** 2)
    away = (means - centre) / np.where(spread > 0.0, spread, 1.0)
    longest = float(np.abs(away).max()) or 1.0
    return [
        [
            Mark(
                f"column {j + 1}",
                f"{means[k, j]:.3g}",
                float(abs(away[k, j])) / longest,
                bool(away[k, j] < 0.0),
            )
            for j in np.argsort(-np.abs(away[k]), kind="stable")[:n]
        ]
        for k in range(len(means))
    ]


def find_marks(model: WordMixture | PointMixture) -> list[list[Mark]]:
    """What marks each class of a model."""
    return find_word_marks(model) if isinstance(model, WordMixture) else find_point_marks(model)


def join_marks(marks: Sequence[Mark], longest: int | None = None, most: int = MARKS_IN_LINE) -> str:
    """Words alone; columns with their figures."""
    few = marks[:most]
    if any(mark.name.startswith("column ") for mark in few):
        return ", ".join(f"{mark.name} {mark.figure}" for mark in few)
    return " ".join(shorten(mark.name, longest or len(mark.name)) for mark in few)


def rate_documents(model: WordMixture, counts: Any, posteriors: FloatArray) -> FloatArray:
    """How typical each document is of its likeliest class.

    p(class | document) Σ_w log [p(w | class) / p(w)] / √n over its n different words. The mean
    alone would prefer documents of one telling word, the sum those that are long.
    """
    weights, words = model.class_words()
    overall = np.maximum(weights / weights.sum() @ words, 1e-300)
    present = counts.tocsr(copy=True)
    present.data[:] = 1.0
    chosen = posteriors.argmax(axis=1)
    fitness = np.zeros(len(posteriors))
    for k in np.unique(chosen):
        rows = np.flatnonzero(chosen == k)
        telling = np.log(np.maximum(words[k], 1e-300) / overall)
        different = np.maximum(np.diff(present.indptr)[rows], 1)
        fitness[rows] = present[rows] @ telling / np.sqrt(different)
    typical: FloatArray = fitness * posteriors.max(axis=1)
    return typical


def rate_points(model: PointMixture, points: FloatArray, posteriors: FloatArray) -> FloatArray:
    """How typical each point is of its likeliest class: log p(class, point)."""
    with np.errstate(divide="ignore"):
        fitness: FloatArray = model.score_samples(points) + np.log(posteriors.max(axis=1))
    return fitness


def make_groups(
    names: Sequence[Any],
    marks: Sequence[Sequence[Mark]],
    chosen: IntArray,
    fitness: FloatArray | None = None,
    texts: Sequence[str] = (),
) -> list[Group]:
    """The groups in the order of their names; with examples if ``fitness`` says which to take."""
    groups = []
    for k, name in enumerate(names):
        rows = np.flatnonzero(chosen == k)
        examples: list[str] = []
        if fitness is not None:
            for i in rows[np.argsort(-fitness[rows], kind="stable")].tolist():
                short = shorten(texts[i])
                if short and short not in examples:  # the first few that do not read the same
                    examples.append(short)
                if len(examples) == EXAMPLES:
                    break
        share = len(rows) / max(len(chosen), 1)
        groups.append(Group(str(name), len(rows), share, marks[k], examples))
    return groups
