"""``softcount adapt``: read files of several domains, label the target's lines, and compare methods
on held-out labels."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from softcount.cli.answers import list_lines, name_file
from softcount.cli.frame import (
    Command,
    if_given,
    print_with_overview,
    try_all,
    write_page,
)
from softcount.cli.options import GoldFile, HtmlFile, Input, Model, Output, SeedOption, WordOptions
from softcount.cli.reading import read_gold
from softcount.cli.records import LABEL, column_names, print_records, read_records
from softcount.cli.status import StatusLine
from softcount.cli.targets import PLAIN
from softcount.core.errors import DataError, SoftcountError, brief
from softcount.report.text import plural

if TYPE_CHECKING:
    from softcount.adapt.base import Adapter
    from softcount.adapt.comparison import Comparison
    from softcount.adapt.data import Fold
    from softcount.adapt.report import Judgement

TEXT, TARGET = "text", -1
MAX_FOLDS = 5
DIGITS = 9
"""Accuracies are compared after rounding to this many decimals."""


class MethodEntry(NamedTuple):
    """A method: its class in `softcount.adapt`, and the minimum number of different labels that it
    needs in the target."""

    estimator: str
    n_labels: int = 0


METHODS = {
    "source-only": MethodEntry("SourceOnly"),
    "target-only": MethodEntry("TargetOnly", 2),
    "merge": MethodEntry("Merge", 1),
    "weighted": MethodEntry("Weighted", 1),
    "interpolation": MethodEntry("Interpolation", 2),
    "prediction": MethodEntry("PredictionFeature", 2),
    "prior": MethodEntry("SourcePrior", 1),
    "easyadapt": MethodEntry("EasyAdapt", 1),
    "pivots": MethodEntry("PivotProjection"),
    "denoising": MethodEntry("DenoisingProjection"),
    "adversarial": MethodEntry("AdversarialNetwork"),
}
"""Methods by their names on the command line, the simplest first."""
SOURCE_ONLY, ALL = "source-only", "all"
DEFAULT_WITH_LABELS, DEFAULT_WITHOUT_LABELS = "easyadapt", "denoising"


class DomainLine(NamedTuple):
    """A line that is not blank.

    ``label``    its label as text; None: unknown
    ``written``  the label as the file has it, such as a JSON number
    ``domain``   1, 2, … for the sources, −1 for the target
    ``place``    FILE:LINE
    """

    text: str
    label: str | None
    written: Any
    domain: int
    place: str


class DomainFiles:
    """The files of the sources and the target, and optionally ``more`` labelled target lines.

    ``lines``  all lines that are not blank, of the sources, ``more`` and the target in this order;
               ``texts``, ``labels`` and ``domains`` are their columns
    ``asked``  numbers, from 0, of the target's lines that are not blank
    """

    def __init__(
        self, sources: Sequence[str], target: str, more: str | None, columns: Sequence[str]
    ) -> None:
        options = [*(("--source", path) for path in sources), ("--target", target)]
        options += [] if more is None else [("--target-labelled", more)]
        seen = set[Path]()
        for option, path in options:
            resolved = Path(path).resolve()
            if resolved in seen:
                raise DataError(
                    f"{option} {path}: this file is given twice",
                    "give a separate file for each domain",
                )
            seen.add(resolved)
        self.sources = [read_records(path, columns) for path in sources]
        self.target = read_records(target, columns)
        self.more = None if more is None else read_records(more, columns)
        files = [*enumerate(self.sources, 1), (TARGET, self.more), (TARGET, self.target)]
        self.lines = [
            DomainLine(text, label, fields.get(LABEL), domain, f"{records.path}:{n + 1}")
            for domain, records in files
            if records is not None
            for n, (text, label, fields) in enumerate(
                zip(records.texts(TEXT), records.labels, records.fields, strict=True)
            )
            if n not in records.blank
        ]
        self.texts = [line.text for line in self.lines]
        self.labels = [line.label for line in self.lines]
        self.domains = [line.domain for line in self.lines]
        self.asked = [n for n in range(len(self.target)) if n not in self.target.blank]
        labels = sorted(self.count_labels("source"))
        if len(labels) < 2:
            fault = f"no labels other than {brief(labels[0])}" if labels else "no line has a label"
            raise DataError(
                f"--source {', '.join(sources)}: {fault}",
                "label lines of at least two classes; an empty label, or -1, means unknown",
            )
        if self.more is not None:
            self.more.check_labels(1)

    def count_labels(self, where: str) -> Counter[str]:
        """Count the labels in the sources (``where="source"``) or the target."""
        return Counter(
            line.label
            for line in self.lines
            if line.label is not None and (line.domain > 0) == (where == "source")
        )

    def find_unseen_labels(self) -> dict[str, str]:
        """Return the labels that occur only in the target, with the place of the first of each."""
        known, unseen = self.count_labels("source"), dict[str, str]()
        for line in self.lines:
            if line.domain < 0 and line.label is not None and line.label not in known:
                unseen.setdefault(line.label, line.place)
        return unseen

    def choose_method(self) -> str:
        """Return the default method.

        Target labels of a single class are treated as no labels: they carry little information,
        and would pull every prediction towards that class.
        """
        enough = len(self.count_labels("target")) > 1
        return DEFAULT_WITH_LABELS if enough else DEFAULT_WITHOUT_LABELS

    def list_methods(self) -> list[str]:
        """List the methods for which the target has enough labels."""
        n_labels = len(self.count_labels("target"))
        return [name for name, entry in METHODS.items() if entry.n_labels <= n_labels]

    def check_method(self, method: str) -> None:
        """Raise if the target has too few labels for a method, or labels that it cannot learn."""
        labels, unseen = sorted(self.count_labels("target")), self.find_unseen_labels()
        if len(labels) < METHODS[method].n_labels:
            fault = f"all labels are {brief(labels[0])}" if labels else "no line has a label"
            others = ", ".join(name for name in self.list_methods() if name != SOURCE_ONLY)
            raise DataError(
                f"--method {method} needs labels of the target, where {fault}",
                f"label some of its lines, or give --target-labelled; {others} do not need them",
            )
        if method == SOURCE_ONLY and unseen:
            label, place = next(iter(unseen.items()))
            raise DataError(
                f"{place}: no source has the label {brief(label)}, so {method} cannot learn it",
                "correct it, or use a method that learns from the target, such as easyadapt",
            )

    def describe(self, vectorizer: Any) -> list[str]:
        """List remarks on the training data, and on target lines without any known word."""
        files = [(f"source {name_file(records.path)}", records) for records in self.sources]
        if self.more is not None:
            files.append((f"more of the target, {name_file(self.more.path)}", self.more))
        remarks = []
        for name, records in files:
            labelled = sum(label is not None for label in records.labels)
            unlabelled = len(records) - len(records.blank) - labelled
            remarks.append(
                f"{name}: {plural(labelled, 'line')} with a label, {unlabelled:,} without"
            )
        remarks += [
            f"no source has the label {brief(label)} ({place}): only the target teaches it"
            for label, place in self.find_unseen_labels().items()
        ]
        tokenise, texts = vectorizer.build_analyzer(), self.target.texts(TEXT)
        known_words = None if vectorizer.vocabulary is None else set(vectorizer.vocabulary)
        wordless = [
            n + 1
            for n in self.asked
            if self.target.labels[n] is None
            and not any(known_words is None or word in known_words for word in tokenise(texts[n]))
        ]
        if wordless:
            remarks.append(f"{list_lines(wordless)}: no word to go by; the label is a guess")
        return remarks


class MethodTrials:
    """Methods fitted to the same files, and their accuracies on held-out labels.

    ``vectorizer``  turns texts into rows
    ``faults``      error messages of the methods that could not be fitted to these files
    """

    def __init__(self, files: DomainFiles, vectorizer: Any, seed: int) -> None:
        self.files, self.vectorizer, self.seed = files, vectorizer, seed
        self.faults: dict[str, str] = {}
        self._fitted: dict[str, tuple[Adapter, list[str]]] = {}

    def fit(self, method: str) -> tuple[Adapter, list[str]]:
        """Return a method fitted to all lines, and the warnings that it raised."""
        if method not in self._fitted:
            files, model = self.files, self._make(method, self.vectorizer)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                model.fit(files.texts, files.labels, sample_domain=files.domains)
            messages = [str(warning.message).split("\n")[0] for warning in caught]
            self._fitted[method] = model, list(dict.fromkeys(messages))
        return self._fitted[method]

    def choose(self, gold: Sequence[str | None] | None) -> tuple[str, list[Judgement], list[str]]:
        """Choose the method that labels the lines; also return all comparisons, and remarks."""
        default = self.files.choose_method()
        held_out = self._judge_by_folds("target")
        if held_out is not None:
            # the most accurate method; among equals the default one, else the first
            accuracy = held_out.comparison.accuracy
            chosen = max(
                held_out.comparison.methods,
                key=lambda name: (round(accuracy(name), DIGITS), name == default),
            )
            why = "none is right more often on held-out labels of the target"
        else:
            held_out = self._judge_by_folds("source")
            chosen = SOURCE_ONLY if default in self.faults else default
            labelled = self.files.count_labels("target")
            few = "too few labels of some class" if labelled else "no labels"
            why = f"{few} in the target to judge methods by"
        by_gold = None if gold is None else self._judge_by_gold(gold)
        faults = [f"{method} was left out: {fault}" for method, fault in self.faults.items()]
        judgements = [judgement for judgement in (held_out, by_gold) if judgement is not None]
        return chosen, judgements, [f"{chosen} labels the lines: {why}", *faults]

    def _judge_by_folds(self, on: str) -> Judgement | None:
        """Compare methods by cross-validated accuracy on labels of the source or the target; None
        if there are too few labels to hold any out."""
        import numpy as np

        from softcount.adapt.data import domain_folds
        from softcount.adapt.report import Judgement
        from softcount.text.documents import learn_words

        files, counts = self.files, self.files.count_labels(on)
        n_folds = min(MAX_FOLDS, *counts.values()) if len(counts) > 1 else 0
        if n_folds < 2:
            return None
        folds = domain_folds(files.labels, files.domains, on, n_folds, self.seed)
        X = learn_words(self.vectorizer, files.texts)  # tokenised once, for all folds
        y, domain = np.array(files.labels, dtype=object), np.array(files.domains)

        def measure(fold: Fold, method: str) -> float:
            (train, test), model = fold, self._make(method)
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                model.fit(X[train], y[train].tolist(), sample_domain=domain[train])
            return float((model.predict(X[test], sample_domain=domain[test]) == y[test]).mean())

        comparison = self._compare(
            [(f"fold {k}", partial(measure, fold)) for k, fold in enumerate(folds, 1)]
        )
        n = counts.total()
        basis = f"Held-out {on}: accuracy on {plural(n, 'label')} of the {on}, held out in "
        basis += f"{n_folds} folds; "
        if on == "source":
            basis += "this is no measure of the target."
        else:
            # add one right and one wrong answer (Laplace): else an accuracy of 1 would seem certain
            p = (1 + n * max(map(comparison.accuracy, comparison.methods))) / (n + 2)
            basis += f"the best is uncertain by about ±{math.sqrt(p * (1 - p) / (n + 2)):.3f}."
        return Judgement(f"held-out {on}", comparison, basis, of_target=on == "target")

    def _judge_by_gold(self, gold: Sequence[str | None]) -> Judgement | None:
        """Compare methods by accuracy on the unlabelled lines of the target that have a gold label;
        None if there are none."""
        from softcount.adapt.report import Judgement

        target = self.files.target
        asked = [n for n in self.files.asked if target.labels[n] is None and gold[n] is not None]
        if not asked:
            return None
        texts = target.texts(TEXT)

        def measure(method: str) -> float:
            labels: list[Any] = self.fit(method)[0].predict([texts[n] for n in asked]).tolist()
            right = [bool(label == gold[n]) for label, n in zip(labels, asked, strict=True)]
            return sum(right) / len(right)

        basis = (
            f"Gold: accuracy on {plural(len(asked), 'line')} of the target with a gold label; it "
            "had no part in the choice."
        )
        return Judgement("gold", self._compare([("all lines", measure)]), basis, of="run")

    def _compare(self, runs: Sequence[tuple[str, Callable[[str], float]]]) -> Comparison:
        """Measure the accuracy of all usable methods in each run.

        ``runs``  pairs (name for the status line, function from a method to its accuracy)
        """
        from softcount.adapt.comparison import Comparison, Result

        source = "+".join(name_file(records.path) for records in self.files.sources)
        target, results = name_file(self.files.target.path), list[Result]()
        with StatusLine() as status:
            for method in self.files.list_methods():
                trials = []
                try:
                    for draw, (name, measure) in enumerate(runs):
                        status.show(f"{method}: {name}")
                        start = time.process_time()
                        accuracy = measure(method)
                        seconds = time.process_time() - start
                        trials.append(Result(source, target, method, draw, accuracy, seconds, {}))
                except SoftcountError as error:
                    self.faults[method] = error.message
                else:
                    results += trials
        return Comparison(results)

    def _make(self, method: str, vectorizer: Any = None) -> Adapter:
        from softcount import adapt

        model: Adapter = getattr(adapt, METHODS[method].estimator)(vectorizer=vectorizer)
        if "random_state" in model.get_params():
            model.set_params(random_state=self.seed)
        return model


LINES = (
    "label, tab, text; or JSON objects with the keys label and text. An empty label, or -1, means "
    "unknown. May be .gz; - is stdin."
)


class Adapt(WordOptions, Command):
    """Label the lines of one domain with a classifier learned in another, such as reviews of
    kettles from reviews of books.

    Prints every line of the target with its label filled in and a confidence from 0 to 1 in an
    extra column (JSON: the key confidence). Given labels stay unchanged. A summary goes to stderr.

    With --method all, methods are compared by cross-validation on the target's labels, and the most
    accurate one labels the lines. If the target has no labels, methods cannot be compared there:
    stderr reports their accuracy on the source, and the default method labels the lines.

    \b
    softcount adapt --source books.tsv --target kitchen.tsv > labelled.tsv
    softcount adapt --source books.tsv --source dvd.tsv --target kitchen.tsv --method all
    softcount adapt --source books.tsv --target kitchen.tsv --target-labelled few.tsv --explain 20
    """

    source: Annotated[
        list[str],
        Input(
            f"Labelled lines of the source domain: {LINES} Repeat the option for several source "
            "domains, one file each. Unlabelled lines are used for learning, too."
        ),
    ]
    target: Annotated[
        str,
        Input(
            "Lines of the target domain, to be labelled, in the same format; labels that it has "
            "stay unchanged and are used for learning."
        ),
    ]
    target_labelled: Annotated[
        str | None,
        Input("More labelled lines of the target, used for learning but not printed."),
    ] = None
    columns: Annotated[
        str,
        Input(
            "Names of the columns, in order; text is what is classified.",
            metavar="NAMES",
            file=PLAIN,
        ),
    ] = "label,text"
    method: Annotated[
        str | None,
        Model(
            "source-only: no adaptation. target-only, merge, weighted, interpolation, prediction, "
            "prior, easyadapt: need labels of the target. pivots, denoising, adversarial: need "
            "only its texts, and use labels if there are any. all: compare them. "
            f"Default: {DEFAULT_WITH_LABELS} if the target has labels of two classes, else "
            f"{DEFAULT_WITHOUT_LABELS}.",
            choices=(*METHODS, ALL),
        ),
    ] = None
    seed: SeedOption = 0
    explain: Annotated[
        int | None,
        Output("List the N words whose weights changed most.", metavar="N", least=1),
    ] = None
    gold: GoldFile = None
    html: HtmlFile = None

    def run(self) -> None:
        columns = column_names(self.columns)
        files = DomainFiles(self.source, self.target, self.target_labelled, columns)
        gold = read_gold(self.gold, self.target, len(files.target))
        method = self.method or files.choose_method()
        if method != ALL:
            files.check_method(method)
        from sklearn.feature_extraction.text import TfidfVectorizer

        counter = self.make_vectorizer(files.texts)
        vectorizer = TfidfVectorizer(
            analyzer=counter.analyzer, vocabulary=counter.vocabulary, sublinear_tf=True
        )
        trials = MethodTrials(files, vectorizer, self.seed)
        judgements, notes = list["Judgement"](), list[str]()
        if method == ALL:
            method, judgements, notes = trials.choose(gold)
        model, warned = trials.fit(method)
        notes += [*files.describe(vectorizer), *warned]
        self._answer(files, model, method, gold, judgements, notes)
        self.notes += [f"{len(files.target):,} lines", f"method {method}"]

    def _answer(
        self,
        files: DomainFiles,
        model: Adapter,
        method: str,
        gold: Sequence[str | None] | None,
        judgements: Sequence[Judgement],
        notes: list[str],
    ) -> None:
        """Print the target's lines to stdout and the overview to stderr; write the page if it was
        asked for."""
        import numpy as np

        from softcount.adapt import report
        from softcount.report.tables import print_view

        explanation, reason = None, ""
        if self.explain is not None or self.html is not None:
            explanation, reason = report.explain_or_tell_why(model, self.explain or report.WORDS)
        notes += [f"no words are explained: {reason}"] if reason else []
        target, texts = files.target, files.target.texts(TEXT)
        # blank lines get no label, and have no gold one
        posteriors = np.full((len(texts), len(model.classes_)), np.nan)
        posteriors[files.asked] = model.predict_proba([texts[n] for n in files.asked])
        true = gold and [None if n in target.blank else label for n, label in enumerate(gold)]
        figures = report.record_labels(
            method, model.classes_, posteriors, target.labels, true, texts
        )
        labels: list[Any] = [figures.names[k] if k >= 0 else None for k in figures.labels.tolist()]
        if target.is_json:  # labels such as 1 and true keep their JSON type
            written = {
                line.label: line.written
                for line in files.lines
                if line.label is not None and not isinstance(line.written, str)
            }
            labels = [written.get(label, label) for label in labels]
        overview = report.Adaptation(
            f"Labels in {name_file(self.target)}",
            method,
            figures,
            texts,
            "line",
            explanation,
            judgements,
            notes,
            reference=SOURCE_ONLY,
        )
        words = self.explain is not None
        try_all(
            lambda: print_with_overview(
                lambda: print_records(target, labels, figures.confidence.tolist()),
                lambda: print_view(
                    sys.stderr,
                    partial(overview.show, words=words),
                    partial(overview.as_tsv, words=words),
                ),
            ),
            if_given(self.html, lambda path: write_page(path, report.adaptation_page(overview))),
        )
