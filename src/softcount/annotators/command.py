"""``softcount annotators`` and ``softcount rules``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.annotators.parameters import AnnotatorsParameters
from softcount.cli.answers import name_file
from softcount.cli.frame import LearningCommand
from softcount.cli.options import (
    AnswerOptions,
    Argument,
    GoldFile,
    Input,
    LearnerOptions,
    Learning,
    Model,
    Output,
    WordOptions,
)
from softcount.cli.reading import UNKNOWN, read_gold, read_line_by_line, read_texts
from softcount.cli.records import CONFIDENCE, LABEL, Records, column_names, read_records
from softcount.cli.targets import PLAIN
from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.annotators import Annotators
    from softcount.annotators.data import Votes
    from softcount.annotators.report import RulesTable, Survey
    from softcount.cli.frame import FitProgress
    from softcount.core.types import FloatArray

ITEM, ANNOTATOR = "item", "annotator"
DOUBTFUL = 10
"""How many of the least certain items the page shows."""
USUAL = {"tying": "one-coin", "trust": 1000.0, "length": 10.0}
"""Settings of ``softcount rules`` if others are not given: see the study in docs/rules.md."""


class Ballot(NamedTuple):
    """The votes in a file, with its items and labels as the file writes them.

    ``columns``  item, annotator and label of each vote; a label of None is no vote
    ``items``    the items in order of first appearance: name → value in the file
    ``labels``   the labels: name → value in the file
    ``known``    true labels by item that are used for learning
    ``gold``     true labels by item that are used for evaluation only
    """

    columns: tuple[list[str], list[str], list[str | None]]
    items: Mapping[str, Any]
    labels: Mapping[str, Any]
    is_json: bool
    known: Mapping[str, str]
    gold: Mapping[str, str]


class LabelsFound(NamedTuple):
    """Estimated labels of the items of a ballot.

    ``names``       the labels, in the order of the columns of ``posteriors``
    ``posteriors``  probabilities of the labels of each item (items, labels)
    """

    ballot: Ballot
    names: Sequence[str]
    posteriors: FloatArray
    survey: Survey


def _list_rows(
    records: Records, last: str, where: str
) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
    """Yield the place, the fields and the label of each line that is not blank.

    ``last``  the name of the last column: it takes the rest of its line, but names contain no tabs
    """
    for n, (fields, label) in enumerate(zip(records.fields, records.labels, strict=True)):
        if not records.is_json and "\t" in fields.get(last, ""):
            raise DataError(
                f"{where}:{n + 1}: too many columns",
                f"end the line after the column {last}; for votes, --columns names the columns",
            )
        if n not in records.blank:
            yield f"{where}:{n + 1}", fields, label


def _read_name(fields: Mapping[str, Any], column: str, place: str) -> str:
    """Return the name of an item or an annotator as text."""
    value = fields.get(column)
    name = value.strip() if isinstance(value, str) else ""
    if type(value) is int:
        name = str(value)
    if not name:
        raise DataError(
            f"{place}: {brief(value)} is not a valid {column}",
            f"give every line an {column}: a text, or a whole number",
        )
    return name


def read_true_labels(path: str | None, option: str, items: Collection[str]) -> dict[str, str]:
    """Read true labels by item; empty without a file.

    Raise unless at least one of them is of ``items``, those that have votes.
    """
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
                f"{place}: {brief(item)} is {label!r} here, but {labels[item]!r} before",
                "give every item one true label",
            )
    if labels.keys().isdisjoint(items):
        raise DataError(
            f"{where}: none of these items has votes",
            "use the same item names as in the votes",
        )
    return labels


def read_balance(text: Any) -> Any:
    """Parse --class-balance: uniform, or the share of each label.

    >>> read_balance("uniform"), read_balance("yes=.3,no=.7")
    ('uniform', {'yes': 0.3, 'no': 0.7})
    """
    if text == "uniform":
        return text
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        return {label.strip(): float(share) for label, _, share in parts}
    except ValueError:
        raise typer.BadParameter(
            f"{text}: write uniform, or the share of each label: yes=.3,no=.7"
        ) from None


def read_groups(text: Any) -> list[list[str]]:
    """Parse --groups: names separated by commas, groups by semicolons.

    >>> read_groups("ann,bob;eve,joe,kim")
    [['ann', 'bob'], ['eve', 'joe', 'kim']]
    """
    groups = [[name.strip() for name in group.split(",")] for group in text.split(";")]
    if any(len(group) < 2 or "" in group for group in groups):
        raise typer.BadParameter(f"{text}: write groups of at least two names: ann,bob;eve,joe")
    return groups


class HabitOptions:
    """Options of what annotators may do, besides those that estimators declare."""

    class_balance: Annotated[
        Any,
        Model(
            "Fixed probabilities of the labels: uniform, or the share of each, such as "
            "yes=.3,no=.7. By default they are learned.",
            parser=read_balance,
            metavar="SHARES",
        ),
    ] = None
    groups: Annotated[
        Any,
        Model(
            "Groups of annotators, or rules, of whom each may copy from the one before: "
            "ann,bob;eve,joe.",
            parser=read_groups,
            metavar="NAMES",
        ),
    ] = None

    def habits(self) -> dict[str, Any]:
        """Return the parameters that these options set."""
        return {"class_balance": self.class_balance, "groups": self.groups}


class VoteCounting(HabitOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """Estimate true labels, and the accuracy of each annotator, from votes that disagree.

    Prints one line for each item, in order of first appearance: item, label, confidence; as JSON
    if the votes are JSON. Estimates for the annotators go to stderr.

    \b
    softcount annotators votes.tsv > labels.tsv
    softcount annotators votes.tsv --known some.tsv --html annotators.html
    softcount annotators votes.jsonl --save model.softcount --summary
    softcount annotators more.tsv --load model.softcount
    """

    declared = AnnotatorsParameters
    takes: ClassVar = {"tying": (), "silence": (), "trust": (), "smoothing": ()}

    file: Annotated[
        str,
        Argument(
            "One vote per line: item, tab, annotator, tab, label; or JSON objects with these keys. "
            "An empty label, or -1, is no vote. May be .gz; - is stdin."
        ),
    ]
    columns: Annotated[
        str, Input("Names of the columns of FILE, in order.", metavar="NAMES", file=PLAIN)
    ] = "item,annotator,label"
    known: Annotated[
        str | None,
        Input("Known true labels to learn from: item, tab, label; or JSON objects.", learns=True),
    ] = None
    init: Annotated[
        str,
        Learning(
            "Initial parameters. majority: proportions of votes. known: from the items of --known, "
            "for data where most annotators may be wrong. random: for use with --n-init.",
            file=PLAIN,
        ),
    ] = "majority"
    gold: Annotated[
        str | None,
        Output(
            "True labels, in the format of --known, to report the accuracy by; they are not used "
            "for learning."
        ),
    ] = None
    proba: Annotated[
        bool, Output("Also print the probabilities of all labels, in alphabetical order.")
    ] = False

    def check(self) -> None:
        self.refuse_spectral()

    def read(self, model: Annotators | None) -> Ballot:
        names = column_names(self.columns)
        if not {ITEM, ANNOTATOR} <= set(names):
            raise DataError(
                f"--columns {self.columns}: a column {ITEM} or {ANNOTATOR} is missing",
                f"name all columns in order, such as {ITEM},{ANNOTATOR},{LABEL}",
            )
        records = read_records(self.file, names)
        voted: list[str] = []
        annotators: list[str] = []
        votes: list[str | None] = []
        items: dict[str, Any] = {}
        labels: dict[str, Any] = {}
        for place, fields, label in _list_rows(records, names[-1], self.file):
            voted.append(_read_name(fields, ITEM, place))
            annotators.append(_read_name(fields, ANNOTATOR, place))
            votes.append(label)
            items.setdefault(voted[-1], fields[ITEM])
            if label is not None:
                labels.setdefault(label, fields[LABEL])
        known = read_true_labels(self.known, "--known", items)
        gold = read_true_labels(self.gold, "--gold", items)
        return Ballot((voted, annotators, votes), items, labels, records.is_json, known, gold)

    def make(self, data: Ballot) -> Annotators:
        from softcount.annotators import Annotators

        learning = self.learning(self.make_learner())
        return Annotators(init=self.init, **self.habits(), **self.settings(), **learning)

    def size(self, data: Ballot) -> int:
        return len(data.items)

    def fit(self, model: Annotators, data: Ballot, progress: FitProgress) -> None:
        model.fit(data.columns, data.known or None, **self.fit_options(progress))

    def answer(self, model: Annotators, data: Ballot) -> LabelsFound:
        """Compute posteriors and survey; a loaded model warns of votes that it cannot use."""
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
        sys.stdout.flush()  # now, while a closed pipe is still handled as no error


def _compare_labels(chosen: Mapping[str, str], ballot: Ballot) -> dict[str, float]:
    """Compute the accuracy of the labels and of the majority vote, on items not in --known."""
    from softcount.annotators import majority_vote

    gold, majority = ballot.gold, majority_vote(ballot.columns)
    asked = [item for item in gold if item in chosen and item not in ballot.known]
    if not asked:
        raise DataError(
            "--gold: all of its items are also in --known", "leave some of them out of --known"
        )
    return {
        "accuracy": sum(chosen[item] == gold[item] for item in asked) / len(asked),
        "accuracy_of_the_majority": sum(majority[i] == gold[i] for i in asked) / len(asked),
        "items_compared": len(asked),
    }


class RuledLines(NamedTuple):
    """The lines of a file, the votes of the rules on them, and what is known of their labels.

    ``known``  labels that are used for learning, None where unknown
    ``gold``   labels that are used for evaluation only
    """

    texts: Sequence[str]
    votes: Votes
    known: Sequence[str | None] | None
    gold: Sequence[str | None] | None


class RuledLabels(NamedTuple):
    """Labels of lines.

    ``names``       the labels, in the order of the columns of ``posteriors``
    ``posteriors``  probabilities of the labels of each line (lines, labels)
    ``n_votes``     how many rules vote on each line
    """

    lines: RuledLines
    names: Sequence[str]
    posteriors: FloatArray
    n_votes: Sequence[int]
    table: RulesTable


class LabelByRules(HabitOptions, WordOptions, AnswerOptions, LearnerOptions, LearningCommand):
    """Label lines by rules that vote for labels, and are mostly silent (distant supervision).

    Learns from the votes alone how reliable each rule is, beginning with --trust (default 1000
    votes) in --tying (default one-coin) rules; with --words also a classifier of words, by which
    each line counts as --length (default 10) words. Prints the label of each line. How each rule
    does goes to stderr: coverage, overlap and conflict with others, and accuracy as learned.

    \b
    softcount rules patterns.txt lines.txt > labels.txt
    softcount rules rules.py lines.txt --html rules.html --save model.softcount
    softcount rules patterns.txt lines.txt --gold true.txt --summary
    softcount rules patterns.txt more.txt --load model.softcount --proba
    """

    declared = AnnotatorsParameters
    takes: ClassVar = {"tying": (), "trust": (), "length": (), "smoothing": ()}

    rules: Annotated[
        str,
        Argument(
            "Rules. A file that ends in .py is run: each of its functions takes a line and returns "
            "a label, a set of labels, or None. In any other file each line is a label, a tab, and "
            "a regular expression.",
            metavar="RULES",
        ),
    ]
    file: Annotated[str, Argument("Lines to label. May be .gz; - is stdin.", metavar="FILE")]
    silence: Annotated[
        bool,
        Model(
            "Whether it is information that a rule says nothing of a line.",
            "--silence/--no-silence",
        ),
    ] = True
    words: Annotated[
        bool,
        Model(
            "Learn from the words of lines as well, and label lines without a vote by them; for "
            "labels that are told by topic.",
        ),
    ] = False
    known: Annotated[
        str | None,
        Input(
            "Known labels to learn from, one per line of FILE; -1 or a blank line means unknown.",
            learns=True,
        ),
    ] = None
    init: Annotated[
        str,
        Learning("Initial parameters: majority, known (from --known) or random.", file=PLAIN),
    ] = "majority"
    gold: GoldFile = None
    proba: Annotated[
        bool, Output("Also print the probabilities of all labels, in alphabetical order.")
    ] = False

    def runs_file(self) -> Path | None:
        path = Path(self.rules)
        return path if path.suffix == ".py" else None

    def check(self) -> None:
        self.refuse_spectral()
        if self.rules == "-":
            raise typer.BadParameter("rules are read from a file, not from standard input")

    def read(self, model: Annotators | None) -> RuledLines:
        from softcount.annotators import apply_rules, load_rules

        rules = load_rules(self.rules)
        lines = read_texts(self.file)
        lines.require_lines(self.file)
        votes = apply_rules(rules, lines.texts)
        known = None
        if self.known is not None:
            given = read_line_by_line("--known", self.known, self.file, len(lines.texts), "label")
            known = [None if label in UNKNOWN else label for label in given]
        gold = read_gold(self.gold, self.file, len(lines.texts))
        return RuledLines(lines.texts, votes, known, gold)

    def make(self, data: RuledLines) -> Annotators:
        from softcount.annotators import Annotators

        learning = self.learning(self.make_learner())
        settings: dict[str, Any] = {**USUAL, "silence": self.silence, **self.settings()}
        if not self.words:
            names = ("length", "tokens", "stop_words", "min_count", "max_share")
            self.refuse("rules without --words", names, "words do not count")
        vectorizer = self.make_vectorizer(data.texts) if self.words else None
        return Annotators(
            init=self.init, vectorizer=vectorizer, **self.habits(), **settings, **learning
        )

    def size(self, data: RuledLines) -> int:
        return len(data.texts)

    def fit(self, model: Annotators, data: RuledLines, progress: FitProgress) -> None:
        texts = data.texts if self.words else None
        model.fit(data.votes, data.known, texts=texts, **self.fit_options(progress))

    def answer(self, model: Annotators, data: RuledLines) -> RuledLabels:
        from softcount.annotators import summarise_rules
        from softcount.annotators.report import RulesTable

        texts = data.texts if model.knows_words else None
        loaded = self.load is not None
        posteriors = model.predict_proba(data.votes, texts=texts) if loaded else model.proba_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that of the majority is a remark of the table
            summary = summarise_rules(model, data.votes, texts=texts, gold=data.gold)
        names = [str(label) for label in model.classes_.tolist()]
        n_votes = [0] * len(data.texts)
        for item in data.votes.of_item.tolist():
            n_votes[item] += 1
        table = RulesTable(
            f"Labels of {name_file(self.file)} by rules",
            f"{len(data.texts):,} lines, {len(summary.rules)} rules.",
            summary,
            data.texts,
            names,
            model.weights_.tolist(),
            model.signature_,
            fit=getattr(model, "fit_", None),
        )
        return RuledLabels(data, names, posteriors, n_votes, table)

    def overview(self, found: RuledLabels) -> RulesTable:
        return found.table

    def page(self, found: RuledLabels) -> str:
        from softcount.annotators.report import rules_page

        return rules_page(found.table)

    def print_answers(self, found: RuledLabels) -> None:
        write = sys.stdout.write
        best, rows = found.posteriors.argmax(axis=1).tolist(), found.posteriors.tolist()
        for k, row, votes in zip(best, rows, found.n_votes, strict=True):
            rounded = [f"{p:.6g}" for p in row]
            if self.json:
                line: dict[str, Any] = {
                    LABEL: found.names[k],
                    CONFIDENCE: float(rounded[k]),
                    "votes": votes,
                }
                if self.proba:
                    line["probabilities"] = dict(zip(found.names, map(float, rounded), strict=True))
                write(json.dumps(line, ensure_ascii=False) + "\n")
            else:
                write("\t".join([found.names[k], *(rounded if self.proba else ())]) + "\n")
        sys.stdout.flush()  # now, while a closed pipe is still handled as no error
