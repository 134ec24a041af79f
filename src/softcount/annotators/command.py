"""``softcount annotators``."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from softcount.annotators.parameters import AnnotatorsParameters
from softcount.cli.answers import name_file
from softcount.cli.frame import LearningCommand, refuse_two_of_stdin
from softcount.cli.options import (
    AnswerOptions,
    Argument,
    Input,
    LearnerOptions,
    Learning,
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
DOUBTFUL = 10
"""How many of the least certain items the page shows."""


class Ballot(NamedTuple):
    """The votes of a file, and its items and labels as the file writes them.

    ``columns``  items, annotators and labels, one of each a vote; a label of None is no vote
    ``known``    true labels by item that are learned from
    ``gold``     true labels by item that answers are compared with
    """

    columns: tuple[list[str], list[str], list[str | None]]
    items: Mapping[str, Any]
    labels: Mapping[str, Any]
    is_json: bool
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


def _list_rows(
    records: Records, last: str, where: str
) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
    """The place, the fields and the label of each line that is not blank.

    ``last``  the last column, which takes the rest of its line; but names have no tabs in them
    """
    for n, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if not records.is_json and "\t" in fields.get(last, ""):
            raise DataError(
                f"{where}:{n + 1}: there are too many columns",
                "end the line after the last one; --columns names those of the votes",
            )
        if n not in records.blank:
            yield f"{where}:{n + 1}", fields, label


def _read_name(fields: Mapping[str, Any], column: str, place: str) -> str:
    """An item or an annotator, as text."""
    value = fields.get(column)
    name = value.strip() if isinstance(value, str) else ""
    if type(value) is int:
        name = str(value)
    if not name:
        raise DataError(
            f"{place}: {brief(value)} is no {column}",
            f"give every line an {column}: a text, or a whole number",
        )
    return name


def read_true_labels(path: str | None, option: str, items: Collection[str]) -> dict[str, str]:
    """True labels by item; nothing without a file. Some must be of ``items``, which have votes."""
    if path is None:
        return {}
    where = f"{option} {path}"
    labels: dict[str, str] = {}
    for place, fields, label in _list_rows(read_records(path, (ITEM, LABEL)), LABEL, where):
        if label is None:
            continue
        item = _read_name(fields, ITEM, place)
        if labels.setdefault(item, label) != label:
            raise DataError(
                f"{place}: {brief(item)} is {label!r} here, and {labels[item]!r} before",
                "give every item one true label",
            )
    if labels.keys().isdisjoint(items):
        raise DataError(
            f"{where}: no item that has votes has a true label here",
            "call items as they are called in the votes",
        )
    return labels


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

    declared = AnnotatorsParameters
    takes: ClassVar = {"smoothing": ()}

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

    def read(self, model: Annotators | None) -> Ballot:
        names = column_names(self.columns)
        if not {ITEM, ANNOTATOR} <= set(names):
            raise DataError(
                f"--columns {self.columns}: there is no {ITEM}, or no {ANNOTATOR}",
                f"name them in their order, such as {ITEM},{ANNOTATOR},{LABEL}",
            )
        records = read_records(self.file, names)
        voted: list[str] = []
        people: list[str] = []
        votes: list[str | None] = []
        items: dict[str, Any] = {}
        labels: dict[str, Any] = {}
        for place, fields, label in _list_rows(records, names[-1], self.file):
            voted.append(_read_name(fields, ITEM, place))
            people.append(_read_name(fields, ANNOTATOR, place))
            votes.append(label)
            items.setdefault(voted[-1], fields[ITEM])
            if label is not None:
                labels.setdefault(label, fields[LABEL])
        known = read_true_labels(self.known, "--known", items)
        gold = read_true_labels(self.gold, "--gold", items)
        return Ballot((voted, people, votes), items, labels, records.is_json, known, gold)

    def make(self, data: Ballot) -> Annotators:
        from softcount.annotators import Annotators

        learning = self.learning(self.make_learner())
        return Annotators(init=self.init, **self.settings(), **learning)

    def size(self, data: Ballot) -> int:
        return len(data.items)

    def fit(self, model: Annotators, data: Ballot, progress: Progress) -> None:
        model.fit(data.columns, data.known or None, on_step=progress)

    def answer(self, model: Annotators, data: Ballot) -> LabelsFound:
        """What the model says; votes that one from a file cannot use are warned of."""
        from softcount.annotators.report import survey_annotators

        posteriors = model.proba_ if self.load is None else model.predict_proba(data.columns)
        names = [str(label) for label in model.classes_.tolist()]
        items, confidence = list(data.items), posteriors.max(axis=1)
        chosen = dict(zip(items, (names[k] for k in posteriors.argmax(axis=1)), strict=True))
        votes = sum(label is not None for label in data.columns[2])
        known = sum(item in data.items for item in data.known)
        some = f", of which {known:,} have a known label" if known else ""
        doubtful = confidence.argsort(kind="stable")[:DOUBTFUL].tolist()
        survey = survey_annotators(
            model,
            f"Annotators of {name_file(self.file)}",
            f"{votes:,} votes on {len(items):,} items{some}.",
            doubtful=[(items[i], chosen[items[i]], float(confidence[i])) for i in doubtful],
            gold=_compare_labels(chosen, data) if data.gold else {},
        )
        return LabelsFound(data, names, posteriors, survey)

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
            rounded = [f"{p:.6g}" for p in row]
            if self.json or ballot.is_json:
                line: dict[str, Any] = {
                    ITEM: ballot.items[item],
                    LABEL: ballot.labels.get(label, label),
                    CONFIDENCE: float(rounded[k]),
                }
                if self.proba:
                    line["probabilities"] = dict(zip(found.names, map(float, rounded), strict=True))
                write(json.dumps(line, ensure_ascii=False) + "\n")
            else:
                more = rounded if self.proba else ()
                write("\t".join([item, label, rounded[k], *more]) + "\n")
        sys.stdout.flush()  # here, where a closed pipe is no fault


def _compare_labels(chosen: Mapping[str, str], ballot: Ballot) -> dict[str, float]:
    """How often labels are right, beside the majority's, where they were not known before."""
    from softcount.annotators import majority_vote

    gold, most = ballot.gold, majority_vote(ballot.columns)
    asked = [item for item in gold if item in chosen and item not in ballot.known]
    if not asked:
        raise DataError("--gold: all of its items are in --known", "keep some items apart")
    return {
        "accuracy": sum(chosen[item] == gold[item] for item in asked) / len(asked),
        "accuracy_of_the_majority": sum(most[item] == gold[item] for item in asked) / len(asked),
        "items_compared": len(asked),
    }
