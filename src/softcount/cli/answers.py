"""Predictions for the lines of a file, printed as exactly one line for each line read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.reading import ItemNames
from softcount.core.errors import DataError
from softcount.report.text import plural

if TYPE_CHECKING:
    from softcount.cli.reading import Lines
    from softcount.core.types import Array
    from softcount.mixture.base import Mixture
    from softcount.mixture.report import GoldComparison, Group

AT_ONCE = 1 << 14
"""Lines that are formatted at a time."""
LARGE = 1 << 24
"""Bytes of answers that are kept in memory until they are printed."""
NAMED_LINES = 5
"""Number of lines that a remark lists; the others are only counted."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Class probabilities for the lines of a file.

    ``kind``        what is predicted: class or label
    ``names``       the classes or labels, in the order of the columns of ``posteriors``
    ``posteriors``  of the classes (rows, classes), a row for each line that is an item
    ``where``       the index in the file of each row's line
    ``lines``       all lines of the file
    ``x``           the rows as given to the model: word counts, or points
    ``known``       number of in-vocabulary words of each row; None for points
    """

    kind: str
    names: Sequence[int] | Sequence[str]
    posteriors: Array
    where: Sequence[int]
    lines: Sequence[str]
    x: Any
    known: Array | None = None

    @property
    def chosen(self) -> Array:
        """Column of the most probable class of each row."""
        likeliest: Array = self.posteriors.argmax(axis=1)
        return likeliest

    def remark(self) -> str:
        """Return a sentence on lines without any known word; empty if there are none."""
        if self.known is None:
            return ""
        empty = [self.where[row] + 1 for row in (self.known == 0).nonzero()[0].tolist()]
        if not empty:
            return ""
        is_single = len(empty) == 1
        return (
            f"{list_lines(empty)} {'has' if is_single else 'have'} no word that the model knows, "
            f"and {'gets' if is_single else 'get'} the most common {self.kind}"
        )


def is_of_words(model: Mixture) -> bool:
    """Return whether the items of a model are documents rather than points."""
    from softcount.mixture.documents import WordMixture

    return isinstance(model, WordMixture)


def list_lines(lines: Sequence[int]) -> str:
    """Format the number of lines, and the numbers of the first few.

    >>> list_lines([4]), list_lines([1, 2, 3, 5, 8, 13])
    ('1 line (4)', '6 lines (1, 2, 3, 5, 8 and 1 more)')
    """
    few = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES:,} more" if len(lines) > NAMED_LINES else ""
    return f"{plural(len(lines), 'line')} ({few}{more})"


def answer(
    model: Mixture, lines: Lines, kind: str, names: Sequence[int] | Sequence[str]
) -> Answers:
    """Predict the classes of the lines of a file."""
    import numpy as np

    x: Any = lines.items
    known = None
    if is_of_words(model) and not lines.on_disk:
        x = count_words(model, lines.items)
        known = np.asarray(x.sum(axis=1)).reshape(-1)
    if lines.on_disk and is_of_words(model):
        known = np.concatenate([part.bags.lengths for part in x.shards()])
    has_items = len(lines.where) > 0
    posteriors = model.predict_proba(x) if has_items else np.zeros((0, len(names)))
    return Answers(kind, names, posteriors, lines.where, lines.texts, x, known)


def count_words(model: Any, texts: Sequence[str]) -> Any:
    """Count the words of texts with the vectorizer of a model."""
    if model.vectorizer_ is None:
        raise DataError(
            "this model was fitted to a matrix of counts, and cannot count words itself",
            "fit it to texts, or use it in Python",
        )
    return model.vectorizer_.transform(texts)


def make_line_groups(model: Any, answers: Answers, *, examples: bool) -> list[Group]:
    """Group the lines by predicted class or label."""
    from softcount.mixture import report

    marks = report.find_marks(model)
    fitness, texts = None, list[str]()
    if examples and len(answers.where) and not isinstance(answers.lines, ItemNames):
        rate = report.rate_documents if is_of_words(model) else report.rate_points
        fitness = rate(model, answers.x, answers.posteriors)
        texts = [answers.lines[i] for i in answers.where]
    return report.make_groups(answers.names, marks, answers.chosen, fitness, texts)


def compare_with_gold(answers: Answers, gold: Sequence[str | None] | None) -> GoldComparison | None:
    """Compare the predictions with gold classes; None without gold classes."""
    if gold is None:
        return None
    from softcount.metrics import agreement
    from softcount.mixture.report import GoldComparison

    wanted = [gold[i] for i in answers.where]
    predicted = [answers.names[k] for k in answers.chosen.tolist()]
    known = [(a, b) for a, b in zip(predicted, wanted, strict=True) if b is not None]
    if not known:
        raise DataError(
            "--gold: only blank lines have a known class",
            "give the class of at least one line that is not blank",
        )
    right = sum(a == b for a, b in known) / len(known)
    return GoldComparison(agreement(predicted, wanted), right if answers.kind == "label" else None)


def name_file(file: str) -> str:
    """Return the name of a file for use in titles.

    >>> name_file("/a/long/way/to/texts.gz"), name_file("-")
    ('texts.gz', 'standard input')
    """
    return "standard input" if file == "-" else Path(file).name


def print_answers(answers: Answers, proba: bool, as_json: bool) -> None:
    """Print the prediction for each line, optionally with probabilities or as JSON."""
    import numpy as np

    def blanks(first: int, last: int) -> str:
        """Return what stands for the lines from ``first`` on, before ``last``."""
        return "".join(
            (json.dumps({"line": number + 1, answers.kind: None}) if as_json else "") + "\n"
            for number in range(first, last)
        )

    where = np.asarray(answers.where, np.int64)
    order, done = np.argsort(where, kind="stable"), 0
    for first in range(0, len(order), AT_ONCE):  # of a large corpus, not all texts at a time
        rows = order[first : first + AT_ONCE]
        posteriors, lines = answers.posteriors[rows], where[rows].tolist()
        best = posteriors.argmax(axis=1)
        for at, (line, row, k) in enumerate(zip(lines, posteriors, best, strict=True)):
            if as_json:
                fields = {
                    "line": line + 1,
                    answers.kind: answers.names[k],
                    "probability": float(row[k]),
                }
                if answers.known is not None:
                    fields["words"] = int(answers.known[rows[at]])
                if proba:
                    named = zip(answers.names, row.tolist(), strict=True)
                    fields["probabilities"] = {str(name): p for name, p in named}
                text = json.dumps(fields, ensure_ascii=False)
            elif proba:  # a label precedes the probabilities; classes are the column numbers
                figures = [f"{p:.6g}" for p in row.tolist()]
                label = [] if answers.kind == "class" else [str(answers.names[k])]
                text = "\t".join([*label, *figures])
            else:
                text = str(answers.names[k])
            sys.stdout.write(f"{blanks(done, line)}{text}\n")
            done = line + 1
    sys.stdout.write(blanks(done, len(answers.lines)))
    sys.stdout.flush()  # now, while a closed pipe is still handled as no error


class Spool:
    """Lines to be printed later; beyond some megabytes they are in a temporary file.

    For answers that must not be printed before they have all been computed, because an overview of
    them comes first.
    """

    def __init__(self) -> None:
        import tempfile  # it takes a while

        self._file = tempfile.SpooledTemporaryFile(max_size=LARGE)  # noqa: SIM115

    def write(self, text: str) -> None:
        self._file.write(text.encode())

    def print(self) -> None:
        """Print all that was written."""
        import shutil

        out = typer.get_binary_stream("stdout")
        self._file.seek(0)
        shutil.copyfileobj(self._file, out)
        out.flush()


def print_text(text: str) -> None:
    """Print text as UTF-8, with its line ends unchanged, on any system."""
    out = typer.get_binary_stream("stdout")
    out.write(text.encode())
    out.flush()
