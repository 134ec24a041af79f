"""Reports on groups of documents or points: sizes, characteristic features, typical examples."""

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
"""Number of marks in a group's row of the overview."""
LONGEST_MARK = 24
"""Marks longer than this are truncated in the overview."""


@dataclass(frozen=True)
class Mark:
    """A characteristic feature of a group: a word, or a column of numbers.

    ``figure``  its number, formatted: a percentage, or the mean of a column
    ``bar``     length of its bar, 0 … 1
    ``below``   whether the figure is below the overall mean, so that the bar is drawn differently
    """

    name: str
    figure: str
    bar: float
    below: bool = False


@dataclass(frozen=True)
class Group:
    """A class, label or sense, and the lines assigned to it.

    ``size``      number of lines
    ``share``     their fraction of all lines
    ``marks``     characteristic features, the most informative first
    ``examples``  typical lines
    """

    name: str
    size: int
    share: float
    marks: Sequence[Mark]
    examples: Sequence[str] = ()

    @property
    def anchor(self) -> str:
        """The id of the group's section in the HTML page."""
        return "g-" + "".join(c if c.isalnum() else f".{ord(c):x}." for c in self.name)


@dataclass(frozen=True)
class GoldComparison:
    """Agreement of predictions with gold classes; ``accuracy`` only if they have the same names."""

    agreement: Agreement
    accuracy: float | None = None

    def __str__(self) -> str:
        head, *figures = str(self.agreement).splitlines()
        if self.accuracy is not None:
            figures.insert(0, f"  {'accuracy':<21}{self.accuracy:7.3f}")
        return "\n".join([f"beside gold classes: {head}", *figures])

    def figures(self) -> dict[str, float]:
        """Return all figures by name."""
        accuracy = {} if self.accuracy is None else {"accuracy": self.accuracy}
        return accuracy | asdict(self.agreement)


@dataclass(frozen=True)
class Grouping(Overview):
    """Overview of the groups found by a model.

    ``title``       headline of the report
    ``text``        introductory sentence
    ``kind``        what a group is called: class, label, sense, topic
    ``figures``     description of the figures beside the marks
    ``groups``      the groups, in the order shown
    ``signature``   one line that identifies the run
    ``fit``         record of the fit; None if the model came from a file
    ``notes``       remarks, each a sentence
    ``counts``      additional columns of counts: a heading, and one count for each group
    ``counted``     what the members of a group are called: line, occurrence
    ``tokens``      whether the model predicts words one by one, so that it has a perplexity
    ``comparison``  with gold classes, if there are any
    ``n_marks``     number of marks in a group's row of the overview
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
        """Final figures of the best run, to compare starts and settings; empty without a fit."""
        figures = super().outcome
        if not self.tokens:
            figures.pop("perplexity", None)
        return figures

    def heading(self) -> list[str]:
        """Return the title and the introductory sentence."""
        return [self.title, self.text]

    def columns(self) -> list[Column]:
        """Return the columns of the overview, with a row for each group."""
        groups = self.groups
        names, sizes = [group.name for group in groups], [group.size for group in groups]
        shares = [group.share for group in groups]
        return [
            Column(self.kind, names, names, "name"),
            Column(f"{self.counted}s", [f"{n:,}" for n in sizes], [str(n) for n in sizes]),
            Column("share", [f"{p:.1%}" for p in shares], [f"{p:.4f}" for p in shares]),
            Column("", draw_bars(shares), kind="bar"),
            Column("marked by", [self.join_marks(group) for group in groups], kind="words"),
            Column(
                "marks", None, [join_marks(group.marks, None, self.n_marks) for group in groups]
            ),
        ]

    def remarks(self) -> list[str]:
        """Return the notes, and the agreement with gold classes."""
        comparison = [] if self.comparison is None else [str(self.comparison)]
        return [*self.notes, *comparison]

    def facts(self) -> dict[str, Any]:
        """Return the content of the JSON summary: notes, agreement with gold classes, groups."""
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
        """Return the marks of a group in one line, long ones truncated."""
        return join_marks(group.marks, LONGEST_MARK, self.n_marks)


def groups_page(grouping: Grouping) -> str:
    """Return a self-contained HTML page."""
    return render_page(
        "mixture/report.html",
        grouping.title,
        grouping.text,
        grouping=grouping,
        outcome=describe_outcome(grouping.outcome),
    )


def counts_tokens(model: WordMixture | PointMixture) -> bool:
    """Return whether the model predicts every token of a document, not only which words occur."""
    return isinstance(model, WordMixture) and not model.bernoulli


def describe_figures(model: WordMixture | PointMixture) -> str:
    """Return a description of the figures beside the marks of this model's classes."""
    if isinstance(model, PointMixture):
        return "mean of the column; bars: how far it is from the mean of all, orange: below"
    if model.bernoulli:
        return "% of lines with the word"
    return "% of all words"


def find_word_marks(model: WordMixture, n: int = MARKS) -> list[list[Mark]]:
    """Return the characteristic words of each class, most informative first; bars are relative to
    the longest one of the class."""
    marks = []
    for row in model.top_words(n):
        longest = max((p for _, p in row), default=1.0) or 1.0
        marks.append([Mark(str(word), f"{100 * p:.2f}", p / longest) for word, p in row])
    return marks


def find_point_marks(model: PointMixture, n: int = MARKS) -> list[list[Mark]]:
    """Return the columns in which each class mean is farthest from the overall mean, in standard
    deviations of the class means."""
    means, weights = model.means_, model.weights_ / model.weights_.sum()
    centre = weights @ means
    spread = np.sqrt(weights @ (means - centre) ** 2)
    deviations = (means - centre) / np.where(spread > 0.0, spread, 1.0)
    longest = float(np.abs(deviations).max()) or 1.0
    return [
        [
            Mark(
                f"column {j + 1}",
                f"{means[k, j]:.3g}",
                float(abs(deviations[k, j])) / longest,
                bool(deviations[k, j] < 0.0),
            )
            for j in np.argsort(-np.abs(deviations[k]), kind="stable")[:n]
        ]
        for k in range(len(means))
    ]


def find_marks(model: WordMixture | PointMixture) -> list[list[Mark]]:
    """Return the characteristic features of each class of a model."""
    return find_word_marks(model) if isinstance(model, WordMixture) else find_point_marks(model)


def join_marks(marks: Sequence[Mark], longest: int | None = None, most: int = MARKS_IN_LINE) -> str:
    """Return marks as one line: words without figures, columns with their figures.

    ``longest``  truncate names to this length; None: do not truncate
    ``most``     maximum number of marks
    """
    shown = marks[:most]
    if any(mark.name.startswith("column ") for mark in shown):
        return ", ".join(f"{mark.name} {mark.figure}" for mark in shown)
    return " ".join(shorten(mark.name, longest or len(mark.name)) for mark in shown)


def rate_documents(model: WordMixture, counts: Any, posteriors: FloatArray) -> FloatArray:
    """Return how typical each document is of its most probable class, (documents,).

    p(class | document) Σ_w log [p(w | class) / p(w)] / √n over its n different words. A mean (1/n)
    would prefer documents with a single informative word, a sum would prefer long documents.
    """
    weights, words = model.class_words()
    overall = np.maximum(weights / weights.sum() @ words, 1e-300)
    present = counts.tocsr(copy=True)
    present.data[:] = 1.0
    chosen = posteriors.argmax(axis=1)
    fitness = np.zeros(len(posteriors))
    for k in np.unique(chosen):
        rows = np.flatnonzero(chosen == k)
        log_ratios = np.log(np.maximum(words[k], 1e-300) / overall)
        n_different = np.maximum(np.diff(present.indptr)[rows], 1)
        fitness[rows] = present[rows] @ log_ratios / np.sqrt(n_different)
    typical: FloatArray = fitness * posteriors.max(axis=1)
    return typical


def rate_points(model: PointMixture, points: FloatArray, posteriors: FloatArray) -> FloatArray:
    """Return how typical each point is of its most probable class: log p(class, point)."""
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
    """Return the groups in the order of ``names``.

    ``marks``    characteristic features of each group
    ``chosen``   the group of each line, (lines,)
    ``fitness``  how typical each line is of its group, (lines,); None: no examples
    ``texts``    the lines, for examples
    """
    groups = []
    for k, name in enumerate(names):
        rows = np.flatnonzero(chosen == k)
        examples: list[str] = []
        if fitness is not None:
            for i in rows[np.argsort(-fitness[rows], kind="stable")].tolist():
                short = shorten(texts[i])
                if short and short not in examples:  # no two examples with the same text
                    examples.append(short)
                if len(examples) == EXAMPLES:
                    break
        share = len(rows) / max(len(chosen), 1)
        groups.append(Group(str(name), len(rows), share, marks[k], examples))
    return groups
