"""Report on bags and their instances, as a page and as an overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.core.types import Fit, FloatArray
from softcount.report.finding import describe_outcome
from softcount.report.page import render_page
from softcount.report.tables import Column, Overview
from softcount.report.text import flatten

if TYPE_CHECKING:
    from softcount.instances.estimators import MultipleInstance

WORDS = 12
"""How many words are shown of each class."""
MOST_LINES = 30
"""How many of the most probably positive lines the page shows."""


@dataclass(frozen=True)
class BagsOverview(Overview):
    """Overview of the two classes of instances.

    ``labels``    the labels, negative and positive
    ``shares``    share of instances of each, as learned
    ``words``     characteristic words of each, with their probabilities
    ``settings``  what a noisy or has learned, by name
    ``likely``    the lines that are most probably positive, with their probabilities
    """

    title: str
    text: str
    labels: Sequence[str]
    shares: Sequence[float]
    words: Sequence[Sequence[tuple[str, float]]]
    settings: Sequence[tuple[str, float]]
    likely: Sequence[tuple[str, float]]
    signature: str
    fit: Fit | None = None

    def heading(self) -> list[str]:
        """Return title and text."""
        return [self.title, self.text]

    def columns(self) -> list[Column]:
        """Return a row for each class."""
        shares = [f"{share:.3g}" for share in self.shares]
        words = [" ".join(flatten(word) for word, _ in row) for row in self.words]
        return [
            Column("instances", self.labels, self.labels, "name"),
            Column("share", shares, shares),
            Column("characteristic words", words, words, "words"),
        ]

    def remarks(self) -> list[str]:
        """Return what a noisy or has learned."""
        return [f"{name}: {p:.3g}" for name, p in self.settings]

    def facts(self) -> dict[str, Any]:
        """Return labels, shares and words."""
        return {
            "instances": [
                {"label": label, "share": share, "words": dict(row)}
                for label, share, row in zip(self.labels, self.shares, self.words, strict=True)
            ],
            **{name.replace(" ", "_"): p for name, p in self.settings},
        }


def describe_bags(
    model: MultipleInstance, title: str, text: str, lines: Sequence[str], positive: FloatArray
) -> BagsOverview:
    """Make the overview of a fitted model; ``positive``: how probably each line is."""
    settings = []
    if model.noisy:
        settings = [
            ("probability to trigger", float(model.params_["triggers"].reshape(-1)[1])),
            ("probability of a leak", float(model.params_["leak"].reshape(-1)[1])),
        ]
    first = np.argsort(-positive, kind="stable")[:MOST_LINES].tolist()
    return BagsOverview(
        title,
        text,
        [str(label) for label in model.classes_.tolist()],
        model.params_["weights"].reshape(-1).tolist(),
        [[(str(word), p) for word, p in row] for row in model.top_words(WORDS)],
        settings,
        [(lines[i], float(positive[i])) for i in first],
        model.signature_,
        fit=getattr(model, "fit_", None),
    )


def bags_page(found: BagsOverview) -> str:
    """Make a self-contained HTML page."""
    return render_page(
        "instances/report.html",
        found.title,
        found.text,
        found=found,
        remarks=found.remarks(),
        outcome=describe_outcome(found.outcome),
    )
