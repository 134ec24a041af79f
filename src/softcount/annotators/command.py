"""``softcount annotators``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from softcount.cli.answers import name_file
from softcount.cli.frame import LearningCommand, refuse_two_of_stdin
from softcount.cli.options import (
    AnswerOptions,
    Argument,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
)
from softcount.cli.records import CONFIDENCE, LABEL, Records, column_names, read_records
from softcount.cli.targets import PLAIN
from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.annotators import Annotators
    from softcount.annotators.report import Survey
    from softcount.cli.frame import Progress
    from softcount.core.types import FloatArray

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
                f"{where}:{number + 1}: {brief(item)} is {label!r} here, and {found[item]!r} "
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
            f"{where}:{number + 1}: {brief(value)} is no {column}",
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


# softcount annotators
DOUBTFUL = 10
"""How many of the least certain items the page shows."""


class VotesRead(NamedTuple):
    """Votes, and true labels by item: those that are learned from, and those to compare with."""

    ballot: Ballot
    known: Mapping[str, str]
    gold: Mapping[str, str]


class LabelsFound(NamedTuple):
    """What is said of the items of a ballot.

    ``names``       the labels
    ``posteriors``  (items, labels)
    """

    ballot: Ballot
    names: Sequence[str]
    posteriors: FloatArray
    survey: Survey


class VoteCounting(AnswerOptions, LearnerOptions, LearningCommand):
    """Find the true labels behind the votes of many annotators, and how good each of them is.

    Prints one line for each item, in the order in which items first appear: item, label,
    confidence; as JSON if the votes are. What was learned of the annotators goes to stderr.

    \b
    softcount annotators votes.tsv > labels.tsv
    softcount annotators votes.tsv --known some.tsv --html annotators.html
    softcount annotators votes.jsonl --save model.softcount --summary
    softcount annotators more.tsv --load model.softcount
    """

    file: Annotated[
        str,
        Argument(
            "One vote a line: item, tab, annotator, tab, label; or JSON objects with these keys. "
            ".gz too; - is stdin. An empty label, or -1, is no vote.",
            metavar="FILE",
        ),
    ]
    columns: Annotated[
        str, Input("The columns of FILE, in their order.", metavar="NAMES", file=PLAIN)
    ] = "item,annotator,label"
    known: Annotated[
        str | None,
        Input(
            "True labels that are known and learned from: item, tab, label; or JSON objects.",
            metavar="FILE",
            learns=True,
        ),
    ] = None
    smoothing: Annotated[
        float, Model("Add this to every count of what an annotator says of a label.", least=0.0)
    ] = 0.1
    init: Annotated[
        str,
        Learning(
            "Where to start: majority (shares of votes); known (items of --known labels: where "
            "most annotators may be wrong); random (for --n-init).",
            file=PLAIN,
        ),
    ] = "majority"
    gold: Annotated[
        str | None,
        Output(
            "True labels (as --known has them) to say how often the answers are right; nothing is "
            "learned from these.",
            metavar="FILE",
        ),
    ] = None
    proba: Annotated[
        bool, Output("Print the probabilities of all labels too, in alphabetical order.")
    ] = False

    def check(self) -> None:
        self.refuse_spectral()
        refuse_two_of_stdin(self.file, self.known, self.gold)

    def read(self, model: Annotators | None) -> VotesRead:
        ballot = read_ballot(self.file, column_names(self.columns))
        known = read_true_labels(self.known, "--known", ballot)
        return VotesRead(ballot, known, read_true_labels(self.gold, "--gold", ballot))

    def make(self, data: VotesRead) -> Annotators:
        from softcount.annotators import Annotators

        return Annotators(
            smoothing=self.smoothing, init=self.init, **self.learning(self.make_learner())
        )

    def size(self, data: VotesRead) -> int:
        return len(data.ballot.items)

    def fit(self, model: Annotators, data: VotesRead, progress: Progress) -> None:
        model.fit(data.ballot.columns, data.known or None, on_step=progress)

    def answer(self, model: Annotators, data: VotesRead) -> LabelsFound:
        """What the model says; votes that one from a file cannot use are warned of."""
        from softcount.annotators.report import survey_annotators

        ballot = data.ballot
        learned = self.load is None
        posteriors = model.proba_ if learned else model.predict_proba(ballot.columns)
        names = [str(label) for label in model.classes_.tolist()]
        chosen = [names[k] for k in posteriors.argmax(axis=1).tolist()]
        items, sure = list(ballot.items), posteriors.max(axis=1)
        votes = sum(label is not None for label in ballot.columns[2])
        known = sum(item in ballot.items for item in data.known)
        some = f", of which {known:,} have a known label" if known else ""
        survey = survey_annotators(
            model,
            f"Annotators of {name_file(self.file)}",
            f"{votes:,} votes on {len(items):,} items{some}.",
            doubtful=[
                (items[i], chosen[i], float(sure[i]))
                for i in sure.argsort(kind="stable")[:DOUBTFUL].tolist()
            ],
            gold=_compare_labels(dict(zip(items, chosen, strict=True)), data),
        )
        return LabelsFound(ballot, names, posteriors, survey)

    def overview(self, found: LabelsFound) -> Survey:
        return found.survey

    def page(self, found: LabelsFound) -> str:
        from softcount.annotators.report import annotators_page

        return annotators_page(found.survey)

    def print_answers(self, found: LabelsFound) -> None:
        ballot, write = found.ballot, sys.stdout.write
        best, rows = found.posteriors.argmax(axis=1).tolist(), found.posteriors.tolist()
        for item, k, row in zip(ballot.items, best, rows, strict=True):
            label = found.names[k]
            if self.json or ballot.is_json:
                said: dict[str, Any] = {
                    ITEM: ballot.items[item],
                    LABEL: ballot.labels.get(label, label),
                    CONFIDENCE: float(f"{row[k]:.6g}"),
                }
                if self.proba:
                    figures = [float(f"{p:.6g}") for p in row]
                    said["probabilities"] = dict(zip(found.names, figures, strict=True))
                write(json.dumps(said, ensure_ascii=False) + "\n")
            else:
                figures = [row[k], *(row if self.proba else ())]
                write("\t".join([item, label, *(f"{p:.6g}" for p in figures)]) + "\n")
        sys.stdout.flush()  # here, where a closed pipe is no fault


def _compare_labels(said: Mapping[str, str], data: VotesRead) -> dict[str, float]:
    """How often labels are right, beside the majority's, where they were not known before."""
    if not data.gold:
        return {}
    from softcount.annotators import majority_vote

    gold, most = data.gold, majority_vote(data.ballot.columns)
    asked = [item for item in gold if item in said and item not in data.known]
    if not asked:
        raise DataError("--gold: all of its items are in --known", "keep some items apart")
    return {
        "accuracy": sum(said[item] == gold[item] for item in asked) / len(asked),
        "accuracy_of_the_majority": sum(most[item] == gold[item] for item in asked) / len(asked),
        "items_compared": len(asked),
    }
