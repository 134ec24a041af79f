"""``softcount bags``: label bags, and find which of their instances are positive."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from softcount.cli.answers import name_file
from softcount.cli.frame import LearningCommand
from softcount.cli.options import Argument, Input, LearnerOptions, Learning, Output, WordOptions
from softcount.cli.records import CONFIDENCE, LABEL, Records, column_names, read_records
from softcount.cli.targets import PLAIN
from softcount.core.errors import DataError, brief
from softcount.instances.parameters import MultipleInstanceParameters

if TYPE_CHECKING:
    from softcount.cli.frame import FitProgress
    from softcount.core.types import FloatArray
    from softcount.instances.estimators import MultipleInstance
    from softcount.instances.report import BagsOverview

BAG, TEXT, POSITIVE = "bag", "text", "positive"


class BagsOfLines(NamedTuple):
    """Lines of a file and the bags that they are in; blank lines are in none.

    ``where``   numbers of the lines that are not blank
    ``labels``  the label of its bag for each of these lines; None if unknown
    """

    records: Records
    where: Sequence[int]
    texts: Sequence[str]
    bags: Sequence[str]
    labels: Sequence[str | None]


class LabelledBags(NamedTuple):
    """Bags with their labels.

    ``labels``      label and confidence of each bag
    ``positive``    the probability that each line that is not blank is positive
    """

    data: BagsOfLines
    labels: dict[str, tuple[str, float]]
    positive: FloatArray
    table: BagsOverview


class LabelBags(WordOptions, LearnerOptions, LearningCommand):
    """Learn from labels of bags which of their lines are positive (multiple-instance learning).

    A bag, such as a document, is positive if at least one of its lines is. Prints for each line its
    bag, the label of the bag (given or predicted), the confidence in that, and the probability that
    this line is positive.

    \b
    softcount bags sentences.tsv > labelled.tsv
    softcount bags sentences.tsv --columns label,bag,text --positive sport --html bags.html
    softcount bags sentences.tsv --noisy --save model.softcount
    softcount bags more.tsv --load model.softcount
    """

    declared = MultipleInstanceParameters
    takes: ClassVar = {"noisy": (), "length": (), "smoothing": ()}

    file: Annotated[
        str,
        Argument(
            "One instance per line: bag, tab, label of the bag, tab, text; or JSON objects with "
            "these keys. An empty label, or -1, is unknown. May be .gz; - is stdin."
        ),
    ]
    columns: Annotated[
        str, Input("Names of the columns of FILE, in order.", metavar="NAMES", file=PLAIN)
    ] = "bag,label,text"
    positive: Annotated[
        str | None,
        Input(
            "The label of positive bags; by default the last in alphabetical order.",
            metavar="LABEL",
            file=PLAIN,
            learns=True,
        ),
    ] = None
    init: Annotated[str, Learning("Initial parameters: labelled or random.", file=PLAIN)] = (
        "labelled"
    )
    json: Annotated[bool, Output("Print one JSON object per line.")] = False
    summary: Annotated[
        bool, Output("Print a summary of the fitted model to stdout, instead of the answers.")
    ] = False

    def check(self) -> None:
        self.refuse_spectral()

    def read(self, model: MultipleInstance | None) -> BagsOfLines:
        names = column_names(self.columns)
        if not {BAG, TEXT} <= set(names):
            raise DataError(
                f"--columns {self.columns}: a column {BAG} or {TEXT} is missing",
                f"name all columns in order, such as {BAG},{LABEL},{TEXT}",
            )
        records = read_records(self.file, names)
        where = [n for n in range(len(records)) if n not in records.blank]
        texts = records.texts(TEXT)
        bags = []
        for n in where:
            value = records.fields[n].get(BAG)
            name = str(value) if type(value) is int else value
            if not isinstance(name, str) or not name.strip():
                raise DataError(
                    f"{self.file}:{n + 1}: {brief(value)} is not a valid bag",
                    "give every line a bag: a text, or a whole number",
                )
            bags.append(name.strip())
        labels = [records.labels[n] for n in where]
        return BagsOfLines(records, where, [texts[n] for n in where], bags, labels)

    def make(self, data: BagsOfLines) -> MultipleInstance:
        from softcount.instances import MultipleInstance

        learning = self.learning(self.make_learner())
        return MultipleInstance(
            positive=self.positive,
            init=self.init,
            vectorizer=self.make_vectorizer(data.texts),
            **self.settings(),
            **learning,
        )

    def size(self, data: BagsOfLines) -> int:
        return len(set(data.bags))

    def fit(self, model: MultipleInstance, data: BagsOfLines, progress: FitProgress) -> None:
        model.fit(data.texts, data.labels, data.bags, **self.fit_options(progress))

    def answer(self, model: MultipleInstance, data: BagsOfLines) -> LabelledBags:
        from softcount.instances.report import describe_bags

        names = list(dict.fromkeys(data.bags))
        proba = model.predict_proba(data.texts, data.bags)
        classes = [str(label) for label in model.classes_.tolist()]
        labels = {
            name: (classes[int(row.argmax())], float(row.max()))
            for name, row in zip(names, proba, strict=True)
        }
        # as far as labels of bags are known, a loaded model learns nothing from them, but they say
        # what the instances may be
        positive = model.instance_posteriors(data.texts, data.labels, data.bags)
        for bag, label in zip(data.bags, data.labels, strict=True):
            if label is not None:
                labels[bag] = label, 1.0
        known = len({b for b, label in zip(data.bags, data.labels, strict=True) if label})
        table = describe_bags(
            model,
            f"Bags of {name_file(self.file)}",
            f"{len(data.texts):,} lines in {len(names):,} bags, of which {known:,} have a label.",
            data.texts,
            positive,
        )
        return LabelledBags(data, labels, positive, table)

    def overview(self, found: LabelledBags) -> BagsOverview:
        return found.table

    def page(self, found: LabelledBags) -> str:
        from softcount.instances.report import bags_page

        return bags_page(found.table)

    def print_answers(self, found: LabelledBags) -> None:
        data, write = found.data, sys.stdout.write
        rows = iter(zip(data.bags, found.positive.tolist(), strict=True))
        for n in range(len(data.records)):
            if n in data.records.blank:
                write("\n")
                continue
            bag, positive = next(rows)
            label, confidence = found.labels[bag]
            if self.json or data.records.is_json:
                line = {
                    BAG: data.records.fields[n][BAG],
                    LABEL: label,
                    CONFIDENCE: float(f"{confidence:.6g}"),
                    POSITIVE: float(f"{positive:.6g}"),
                }
                write(json.dumps(line, ensure_ascii=False) + "\n")
            else:
                write(f"{bag}\t{label}\t{confidence:.6g}\t{positive:.6g}\n")
        sys.stdout.flush()  # now, while a closed pipe is still handled as no error
