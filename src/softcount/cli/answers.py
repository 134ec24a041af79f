"""Answers for the lines of a file: exactly one line out for each line in."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softcount.core.errors import DataError
from softcount.report.text import plural

if TYPE_CHECKING:
    from softcount.cli.reading import Lines
    from softcount.core.types import Array
    from softcount.mixture.base import Mixture
    from softcount.mixture.report import GoldComparison, Group

NAMED_LINES = 5
"""A remark names so many lines, and only counts the rest."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities for the lines of a file.

    ``kind``     what is answered: class, label
    ``names``    the classes or labels, in the order of the columns
    ``shares``   a row for each line that has an answer
    ``where``    the index in the file of each row's line
    ``lines``    all lines of the file
    ``x``        the rows as the model reads them: counts, or points
    ``known``    how many words of each row's line the model knows; None if it knows no words
    """

    kind: str
    names: Sequence[int] | Sequence[str]
    shares: Array
    where: Sequence[int]
    lines: Sequence[str]
    x: Any
    known: Array | None = None

    @property
    def chosen(self) -> Array:
        """The column of the likeliest class of each row."""
        likeliest: Array = self.shares.argmax(axis=1)
        return likeliest

    def remark(self) -> str:
        """A sentence on lines without a word that the model knows; empty if there are none."""
        if self.known is None:
            return ""
        empty = [self.where[row] + 1 for row in (self.known == 0).nonzero()[0].tolist()]
        if not empty:
            return ""
        one = len(empty) == 1
        return (
            f"{list_lines(empty)} {'has' if one else 'have'} no word that the model knows, and "
            f"{'gets' if one else 'get'} the most common {self.kind}"
        )


def is_of_words(model: Mixture) -> bool:
    """Return whether the items of a model are documents, not points."""
    from softcount.mixture.documents import WordMixture

    return isinstance(model, WordMixture)


def list_lines(lines: Sequence[int]) -> str:
    """Say how many lines there are, and which the first few are.

    >>> list_lines([4]), list_lines([1, 2, 3, 5, 8, 13])
    ('1 line (4)', '6 lines (1, 2, 3, 5, 8 and 1 more)')
    """
    few = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES:,} more" if len(lines) > NAMED_LINES else ""
    return f"{plural(len(lines), 'line')} ({few}{more})"


def answer(
    model: Mixture, lines: Lines, kind: str, names: Sequence[int] | Sequence[str]
) -> Answers:
    """Compute a model's answers for the lines of a file."""
    import numpy as np

    x: Any = lines.items
    known = None
    if is_of_words(model):
        x = count_words(model, lines.items)
        known = np.asarray(x.sum(axis=1)).reshape(-1)
    some = len(lines.where) > 0
    shares = model.predict_proba(x) if some else np.zeros((0, len(names)))
    return Answers(kind, names, shares, lines.where, lines.texts, x, known)


def count_words(model: Any, texts: Sequence[str]) -> Any:
    """Count the words that a model knows."""
    if model.vectorizer_ is None:
        raise DataError(
            "this model was fitted to a matrix of counts, and cannot count words by itself",
            "fit it to texts, or use it in Python",
        )
    return model.vectorizer_.transform(texts)


def make_line_groups(model: Any, answers: Answers, *, examples: bool) -> list[Group]:
    """Make groups of the lines of each class or label."""
    from softcount.mixture import report

    of_words = is_of_words(model)
    marks = report.find_marks(model)
    fitness = None
    if examples and len(answers.where):
        how = report.rate_documents if of_words else report.rate_points
        fitness = how(model, answers.x, answers.shares)
    texts = [answers.lines[i] for i in answers.where]
    return report.make_groups(answers.names, marks, answers.chosen, fitness, texts)


def compare_with_gold(answers: Answers, gold: Sequence[str | None] | None) -> GoldComparison | None:
    """Compare the answers with the gold classes; None if there are none."""
    if gold is None:
        return None
    from softcount.metrics import agreement
    from softcount.mixture.report import GoldComparison

    wanted = [gold[i] for i in answers.where]
    predicted = [answers.names[k] for k in answers.chosen.tolist()]
    known = [(a, b) for a, b in zip(predicted, wanted, strict=True) if b is not None]
    if not known:
        raise DataError(
            "--gold: every line with a known class is blank", "give a known class for some line"
        )
    right = sum(a == b for a, b in known) / len(known)
    return GoldComparison(agreement(predicted, wanted), right if answers.kind == "label" else None)


def name_file(file: str) -> str:
    """Return the name of a file for titles.

    >>> name_file("/a/long/way/to/texts.gz"), name_file("-")
    ('texts.gz', 'standard input')
    """
    return "standard input" if file == "-" else Path(file).name


def print_answers(answers: Answers, proba: bool, as_json: bool) -> None:
    """Print an answer for each line; with probabilities, or as JSON, if that is wanted."""
    printed: dict[int, str] = {}
    for line, row, k in zip(answers.where, answers.shares, answers.chosen.tolist(), strict=True):
        if as_json:
            one = {"line": line + 1, answers.kind: answers.names[k], "probability": float(row[k])}
            if answers.known is not None:
                one["words"] = int(answers.known[len(printed)])
            if proba:
                named = zip(answers.names, row.tolist(), strict=True)
                one["probabilities"] = {str(name): p for name, p in named}
            printed[line] = json.dumps(one, ensure_ascii=False)
        elif proba:  # labels stand before their probabilities; numbers of classes are columns
            figures = [f"{p:.6g}" for p in row.tolist()]
            before = [] if answers.kind == "class" else [str(answers.names[k])]
            printed[line] = "\t".join([*before, *figures])
        else:
            printed[line] = str(answers.names[k])
    for number in range(len(answers.lines)):
        blank = json.dumps({"line": number + 1, answers.kind: None}) if as_json else ""
        sys.stdout.write(printed.get(number, blank) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def print_text(text: str) -> None:
    """Print text as UTF-8, with line ends as they are, on any system."""
    out = typer.get_binary_stream("stdout")
    out.write(text.encode())
    out.flush()
