"""``softcount annotators``."""

from __future__ import annotations

import json as jsons
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_spectral, refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.guard import readable_errors
from softcount.cli.learner_names import LearnerName, learner_called
from softcount.cli.targets import PLAIN
from softcount.errors import DataError, shown
from softcount.labels.command import CONFIDENCE, LABEL, Records, column_names, read_records

if TYPE_CHECKING:
    from softcount.annotators import Annotators
    from softcount.annotators.report import Survey
    from softcount.types import Array


ITEM, ANNOTATOR = "item", "annotator"


@dataclass(frozen=True, eq=False)
class Ballot:
    """The votes of a file, and its items and labels as the file writes them.

    ``columns``  items, annotators and labels, one of each a vote; a label of None is no vote
    """

    columns: tuple[list[str], list[str], list[str | None]]
    items: Mapping[str, Any]
    labels: Mapping[str, Any]
    is_json: bool


def read_ballot(path: str, columns: Sequence[str]) -> Ballot:
    """The votes of a file; blank lines are none."""
    if not {ITEM, ANNOTATOR} <= set(columns):
        raise DataError(
            f"--columns {','.join(columns)}: there is no {ITEM}, or no {ANNOTATOR}",
            f"name them in their order, such as {ITEM},{ANNOTATOR},{LABEL}",
        )
    records = read_records(path, columns)
    _check_ends(records, columns[-1], path)
    voted: list[str] = []
    by: list[str] = []
    said: list[str | None] = []
    items: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    for number, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if number in records.blank:
            continue
        item = _name(fields, ITEM, path, number)
        if item not in items:
            items[item] = fields[ITEM]
        if label is not None and label not in labels:
            labels[label] = fields[LABEL]
        voted.append(item)
        by.append(_name(fields, ANNOTATOR, path, number))
        said.append(label)
    return Ballot((voted, by, said), items, labels, records.is_json)


def read_true_labels(path: str | None, option: str, ballot: Ballot) -> dict[str, str]:
    """True labels by item; nothing without a file."""
    if path is None:
        return {}
    where = f"{option} {path}"
    records = read_records(path, (ITEM, LABEL))
    _check_ends(records, LABEL, where)
    found: dict[str, str] = {}
    for number, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if label is None:
            continue
        item = _name(fields, ITEM, where, number)
        if found.setdefault(item, label) != label:
            raise DataError(
                f"{where}:{number + 1}: {shown(item)} is {label!r} here, and {found[item]!r} "
                "before",
                "give every item one true label",
            )
    if not any(item in ballot.items for item in found):
        raise DataError(
            f"{where}: no item that has votes has a true label here",
            "call items as they are called in the votes",
        )
    return found


def _name(fields: Mapping[str, Any], column: str, where: str, number: int) -> str:
    """An item or an annotator, as text."""
    value = fields.get(column)
    name = value.strip() if isinstance(value, str) else ""
    if type(value) is int:
        name = str(value)
    if not name:
        raise DataError(
            f"{where}:{number + 1}: {shown(value)} is no {column}",
            f"give every line an {column}: a text, or a whole number",
        )
    return name


def _check_ends(records: Records, last: str, where: str) -> None:
    """The last column takes the rest of its line, and names have no tabs in them."""
    if records.is_json:
        return
    for number, fields in enumerate(records.fields):
        if "\t" in fields.get(last, ""):
            raise DataError(
                f"{where}:{number + 1}: there are too many columns",
                "end the line after the last one; --columns names those of the votes",
            )


# ``softcount annotators``.


LEARNING_OPTIONS = (
    *("known", "smoothing", "learner", "init", "max_iter", "tol", "n_init", "seed", "threads"),
    "save",
)
DOUBTFUL = 10
"""How many of the least certain items the page shows."""

VotesFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="One vote a line: item, tab, annotator, tab, label; or JSON objects with these keys. "
        ".gz too; - is stdin. An empty label, or -1, is no vote.",
    ),
]
Columns = Annotated[
    str, typer.Option(metavar="NAMES", help="The columns of FILE, in their order."), PLAIN
]
KnownFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="True labels that are known and learned from: item, tab, label; or JSON objects.",
    ),
]
GoldFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="True labels (as --known has them) to say how often the answers are right; nothing is "
        "learned from these.",
    ),
]
Smoothing = Annotated[
    float,
    typer.Option(min=0.0, help="Add this to every count of what an annotator says of a label."),
]
Init = Annotated[
    str,
    typer.Option(
        help="Where to start: majority (shares of votes); known (items of --known labels: where "
        "most annotators may be wrong); random (for --n-init)."
    ),
    PLAIN,
]
Proba = Annotated[
    bool,
    typer.Option(
        "--proba", help="Print the probabilities of all labels too, in alphabetical order."
    ),
]


@dataclass(frozen=True, eq=False)
class Answers:
    """What is said of the items of a ballot."""

    ballot: Ballot
    names: Sequence[str]
    shares: Array

    @property
    def chosen(self) -> list[str]:
        return [self.names[k] for k in self.shares.argmax(axis=1).tolist()]


def annotators(
    ctx: typer.Context,
    file: VotesFile,
    columns: Columns = "item,annotator,label",
    known: KnownFile = None,
    gold: GoldFile = None,
    smoothing: Smoothing = 0.1,
    learner: Annotated[LearnerName, options.HOW_TO_LEARN] = LearnerName.EM,
    init: Init = "majority",
    max_iter: options.MaxIter = None,
    tol: options.Tol = None,
    n_init: options.NInit = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    proba: Proba = False,
    json: options.JsonAnswers = False,
    summary: options.Summary = False,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
) -> None:
    """Find the true labels behind the votes of many annotators, and how good each of them is.

    Prints one line for each item, in the order in which items first appear: item, label,
    confidence; as JSON if the votes are. What was learned of the annotators goes to stderr.

    \b
    softcount annotators votes.tsv > labels.tsv
    softcount annotators votes.tsv --known some.tsv --html annotators.html
    softcount annotators votes.jsonl --save model.softcount --summary
    softcount annotators more.tsv --load model.softcount
    """
    refuse_spectral(learner)
    refuse_two_of_stdin(file, known, gold)
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    with readable_errors():
        from softcount.cli import models
        from softcount.engines import Local

        ballot = read_ballot(file, column_names(columns))
        told = read_true_labels(known, "--known", ballot)
        true = read_true_labels(gold, "--gold", ballot)
        if load is not None:
            model = models.load_annotators(load)
            answers = _answers(model, ballot)
        else:
            from softcount.annotators import Annotators

            model = Annotators(
                smoothing=smoothing,
                init=init,
                learner=learner_called(learner, max_iter, tol, n_init),
                engine=Local(threads),
                random_state=seed,
            )
            models.learn(model, ballot.columns, told or None)
            answers = Answers(ballot, _names(model), model.proba_)
        found = cache(lambda: _survey(model, answers, file, told, true))
        try_all(
            at(save, model.save),
            lambda: _print_all(answers, found(), proba=proba, as_json=json, summary=summary),
            at(html, lambda path: _write_page(found(), path)),
        )


def _write_page(found: Survey, path: Path) -> None:
    from softcount.annotators import report as shown_as
    from softcount.show import report

    report.write_page(path, shown_as.page(found))


# answers
def _names(model: Annotators) -> list[str]:
    return [str(label) for label in model.classes_.tolist()]


def _answers(model: Annotators, ballot: Ballot) -> Answers:
    """What a model that was learned before says; votes that it cannot use are told of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        shares = model.predict_proba(ballot.columns)
    for warning in caught:
        typer.echo(f"softcount: warning: {warning.message}", err=True)
    return Answers(ballot, _names(model), shares)


def _survey(
    model: Annotators, answers: Answers, file: str, known: dict[str, str], gold: dict[str, str]
) -> Survey:
    from softcount.annotators.report import survey
    from softcount.cli.answers import called

    ballot, sure = answers.ballot, answers.shares.max(axis=1)
    items, chosen = list(ballot.items), answers.chosen
    votes = sum(label is not None for label in ballot.columns[2])
    told = sum(item in ballot.items for item in known)
    some = f", of which {told:,} have a known label" if told else ""
    return survey(
        model,
        f"Annotators of {called(file)}",
        f"{votes:,} votes on {len(items):,} items{some}.",
        doubtful=[
            (items[i], chosen[i], float(sure[i]))
            for i in sure.argsort(kind="stable")[:DOUBTFUL].tolist()
        ],
        gold=_agreement(answers, known, gold),
    )


def _agreement(answers: Answers, known: dict[str, str], gold: dict[str, str]) -> dict[str, float]:
    """How often labels are right, beside the majority's, where they were not known before."""
    if not gold:
        return {}
    from softcount.annotators import majority_vote

    said = dict(zip(answers.ballot.items, answers.chosen, strict=True))
    most = majority_vote(answers.ballot.columns)
    asked = [item for item in gold if item in said and item not in known]
    if not asked:
        raise DataError("--gold: all of its items are in --known", "keep some items apart")
    return {
        "accuracy": sum(said[item] == gold[item] for item in asked) / len(asked),
        "accuracy_of_the_majority": sum(most[item] == gold[item] for item in asked) / len(asked),
        "items_compared": len(asked),
    }


def _print_all(
    answers: Answers, found: Survey, *, proba: bool, as_json: bool, summary: bool
) -> None:
    """The answers on stdout and the survey on stderr; or the survey alone, on stdout."""
    if summary:
        _print_survey(found, sys.stdout, as_json)
        return
    watched = sys.stdout.isatty()  # then the survey comes last, where it stays in sight
    if not watched:
        _print_survey(found, sys.stderr)
    _print_answers(answers, proba, as_json or answers.ballot.is_json)
    if watched:
        _print_survey(found, sys.stderr)


def _print_answers(answers: Answers, proba: bool, as_json: bool) -> None:
    ballot, write = answers.ballot, sys.stdout.write
    sure = answers.shares.max(axis=1).tolist()
    rows = answers.shares.tolist()
    for number, (item, label) in enumerate(zip(ballot.items, answers.chosen, strict=True)):
        if as_json:
            said: dict[str, Any] = {
                ITEM: ballot.items[item],
                LABEL: ballot.labels.get(label, label),
                CONFIDENCE: _rounded(sure[number]),
            }
            if proba:
                shares = map(_rounded, rows[number])
                said["probabilities"] = dict(zip(answers.names, shares, strict=True))
            write(jsons.dumps(said, ensure_ascii=False) + "\n")
        else:
            figures = [sure[number], *(rows[number] if proba else ())]
            write("\t".join([item, label, *(f"{p:.6g}" for p in figures)]) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _rounded(p: float) -> float:
    return float(f"{p:.6g}")


def _print_survey(found: Survey, stream: TextIO, as_json: bool = False) -> None:
    """A table if someone is watching, else tab-separated values; or JSON."""
    from rich.console import Console

    from softcount.annotators import report as shown_as

    if as_json:
        stream.write(jsons.dumps(shown_as.as_json(found), ensure_ascii=False, indent=1) + "\n")
    elif stream.isatty():
        shown_as.show(found, Console(file=stream, highlight=False))
    else:
        stream.write(shown_as.as_tsv(found, confusions=stream is sys.stdout))
    stream.flush()
