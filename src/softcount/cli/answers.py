"""What is said of each line of a file: exactly one line out for each line in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.texts import Lines
    from softcount.mixture.base import Mixture
    from softcount.show.groups import Group, Grouping
    from softcount.types import Array

NAMED_LINES = 5
"""How many lines a remark names before it only counts the rest."""


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
        """A sentence on lines that say nothing of themselves; empty if there are none."""
        if self.known is None:
            return ""
        empty = [self.where[row] + 1 for row in (self.known == 0).nonzero()[0].tolist()]
        if not empty:
            return ""
        one = len(empty) == 1
        return (
            f"{few_named(empty)} {'has' if one else 'have'} no word that the model knows, and "
            f"{'gets' if one else 'get'} the most common {self.kind}"
        )


def few_named(lines: Sequence[int]) -> str:
    """How many lines, and which the first few are.

    >>> few_named([4]), few_named([1, 2, 3, 5, 8, 13])
    ('1 line (4)', '6 lines (1, 2, 3, 5, 8 and 1 more)')
    """
    few = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES:,} more" if len(lines) > NAMED_LINES else ""
    return f"{len(lines):,} line{'s' * (len(lines) != 1)} ({few}{more})"


def answer(
    model: Mixture, lines: Lines, kind: str, names: Sequence[int] | Sequence[str]
) -> Answers:
    """What a model says of the lines of a file."""
    import numpy as np

    from softcount.cli.models import is_of_words

    x: Any = lines.items
    known = None
    if is_of_words(model):
        x = counted(model, lines.items)
        known = np.asarray(x.sum(axis=1)).reshape(-1)
    some = len(lines.where) > 0
    shares = model.predict_proba(x) if some else np.zeros((0, len(names)))
    return Answers(kind, names, shares, lines.where, lines.texts, x, known)


def counted(model: Any, texts: Sequence[str]) -> Any:
    """Counts of the words that a model knows."""
    if model.vectorizer_ is None:
        raise DataError(
            "this model was fitted to a matrix of counts, and cannot count words by itself",
            "fit it to texts, or use it in Python",
        )
    return model.vectorizer_.transform(texts)


def grouped(model: Any, answers: Answers, *, examples: bool) -> list[Group]:
    """The classes or labels with the lines that are theirs."""
    from softcount.cli.models import is_of_words
    from softcount.show import groups

    of_words = is_of_words(model)
    marks = groups.marks_of(model)
    fitness = None
    if examples and len(answers.where):
        how = groups.word_fitness if of_words else groups.point_fitness
        fitness = how(model, answers.x, answers.shares)
    texts = [answers.lines[i] for i in answers.where]
    return groups.groups(answers.names, marks, answers.chosen, fitness, texts)


def called(file: str) -> str:
    """A file as titles name it.

    >>> called("/a/long/way/to/texts.gz"), called("-")
    ('texts.gz', 'standard input')
    """
    return "standard input" if file == "-" else Path(file).name


def print_answers(answers: Answers, proba: bool, as_json: bool) -> None:
    """All lines; with probabilities, or as JSON, if that is wanted."""
    form = _json_lines if as_json else _proba_lines if proba else _name_lines
    said = dict(zip(answers.where, form(answers, proba), strict=True))
    for number in range(len(answers.lines)):
        blank = json.dumps({"line": number + 1, answers.kind: None}) if as_json else ""
        sys.stdout.write(said.get(number, blank) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _name_lines(answers: Answers, proba: bool) -> Iterator[str]:
    for k in answers.chosen.tolist():
        yield str(answers.names[k])


def _proba_lines(answers: Answers, proba: bool) -> Iterator[str]:
    """Labels stand before their probabilities; numbers of classes are columns already."""
    labels = _name_lines(answers, proba)
    for row, label in zip(answers.shares.tolist(), labels, strict=True):
        figures = [f"{p:.6g}" for p in row]
        yield "\t".join(figures if answers.kind == "class" else [label, *figures])


def _json_lines(answers: Answers, proba: bool) -> Iterator[str]:
    for row, k in enumerate(answers.chosen.tolist()):
        shares = answers.shares[row]
        one: dict[str, Any] = {"line": answers.where[row] + 1, answers.kind: answers.names[k]}
        one["probability"] = float(shares[k])
        if answers.known is not None:
            one["words"] = int(answers.known[row])
        if proba:
            named = zip(answers.names, shares.tolist(), strict=True)
            one["probabilities"] = {str(name): p for name, p in named}
        yield json.dumps(one, ensure_ascii=False)


def print_all(
    answers: Answers | None, grouping: Grouping, *, proba: bool, as_json: bool, summary: bool
) -> None:
    """The answers on stdout and the overview on stderr; or the overview alone, on stdout."""
    if summary:
        print_overview(grouping, sys.stdout, as_json)
    elif answers is None:
        print_overview(grouping, sys.stderr)
    elif sys.stdout.isatty():  # the overview last, where it stays in sight
        print_answers(answers, proba, as_json)
        print_overview(grouping, sys.stderr)
    else:  # first, for whoever reads the pipe may not read to the end
        print_overview(grouping, sys.stderr)
        print_answers(answers, proba, as_json)


def print_overview(grouping: Grouping, stream: TextIO, as_json: bool = False) -> None:
    """A table if someone is watching, else tab-separated values; or JSON."""
    from rich.console import Console

    from softcount.mixture import report as documents

    if as_json:
        whole = documents.as_json(grouping)
        stream.write(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
    elif stream.isatty():
        documents.show(grouping, Console(file=stream, highlight=False))
    else:
        stream.write(documents.as_tsv(grouping))
    stream.flush()
