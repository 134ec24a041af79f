"""``softcount propagate``, ``cotrain``, ``bootstrap``, ``ask``: labels from few labelled lines."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from softcount.cli.answers import list_lines, name_file
from softcount.cli.frame import Action, Command, FitProgress, LearningCommand, if_given, try_all
from softcount.cli.options import (
    Argument,
    GoldFile,
    Input,
    Learning,
    Model,
    Output,
    SeedOption,
    ThreadsOption,
    TokensOption,
    WordOptions,
)
from softcount.cli.reading import WordFilter, make_counter, read_gold, read_lines, read_stop_words
from softcount.cli.records import (
    LABEL,
    Records,
    column_names,
    print_records,
    read_label,
    read_object,
    read_records,
    split_columns,
    write_records,
)
from softcount.cli.status import StatusLine
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.core.errors import DataError, brief
from softcount.labels.parameters import (
    CoTrainingParameters,
    PropagationParameters,
    YarowskyParameters,
)
from softcount.mixture.parameters import NaiveBayesParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from softcount.core.store import Stored
    from softcount.core.types import FloatArray
    from softcount.labels.cotraining import CoTraining
    from softcount.labels.history import History
    from softcount.labels.propagation import LabelPropagation
    from softcount.labels.report import Labelling
    from softcount.labels.yarowsky import Yarowsky

TEXT = "text"
ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}
"""Escape sequences of raw texts in tab-separated columns, and what they stand for."""
STRONGEST = 8
"""Number of rules shown for each label."""


class LinesToLabel(NamedTuple):
    """Lines of a file, some of them labelled.

    ``items``  the lines in the form that the estimator takes
    ``texts``  the text of each line that the page shows
    ``gold``   gold labels, as returned by `read_gold`
    ``more``   further keyword arguments of the estimator's ``fit``
    """

    records: Records
    items: Any
    texts: Sequence[str] | None
    gold: Sequence[str | None] | None
    more: Mapping[str, Any] = {}


class LabelledLines(NamedTuple):
    """Lines with their labels (None: unlabelled), confidences, and the overview to print."""

    records: Records
    labels: Sequence[str | None]
    confidence: Sequence[float] | FloatArray
    labelling: Labelling | None


def summarise_lines(
    lines: LinesToLabel,
    labels: Sequence[str | None],
    confidence: Sequence[float] | FloatArray,
    history: History,
    title: str,
    **more: Any,
) -> LabelledLines:
    """Collect the labels of lines and the overview of them (``more``: see `Labelling`).

    Accuracy against gold labels is computed on lines that are not blank and had no label.
    """
    import numpy as np

    from softcount.labels.history import OTHER
    from softcount.labels.report import Labelling, compute_figures
    from softcount.mixture.data import UNKNOWN

    records = lines.records
    places = {name: number for number, name in enumerate(map(str, history.classes.tolist()))}
    # labels as they are printed; None for blank lines, and for labels in the file that are not
    # among the classes learned
    printed: list[str | None] = []
    gold = np.full(len(records), UNKNOWN)
    for n, (given, label) in enumerate(zip(records.labels, labels, strict=True)):
        shown = label if given is None else given
        printed.append(shown if shown in places and n not in records.blank else None)
        true = None if lines.gold is None else lines.gold[n]
        if true is not None and given is None and n not in records.blank:
            gold[n] = places.get(true, OTHER)
    known = None if lines.gold is None else gold
    figures = compute_figures(history, lines.texts, printed, confidence, known)
    labelling = Labelling(title, figures, lines.texts, "line", **more)
    return LabelledLines(records, labels, confidence, labelling)


class LabelCommand(LearningCommand):
    """Base of commands that label lines, from the few that have a label or from rules.

    The estimator must have a ``transduction_`` and a ``history_``.
    """

    without: ClassVar[Sequence[str]] = ("save", "load")
    summary = False
    file: str
    gold: GoldFile = None

    def get_confidence(self, model: Any, data: LinesToLabel) -> Sequence[float] | FloatArray:
        """Return the confidence in the label of each line, from 0 to 1."""
        raise NotImplementedError

    def list_notes(self, model: Any, data: LinesToLabel) -> list[str]:
        """List remarks for the overview, each a sentence without its full stop."""
        raise NotImplementedError

    def list_rules(self, model: Any) -> list[tuple[str, Any, float]]:
        """List rules to show as (text, label, strength), strongest first."""
        return []

    def size(self, data: LinesToLabel) -> int:
        return len(data.records)

    def fit(self, model: Any, data: LinesToLabel, progress: FitProgress) -> None:
        model.fit(data.items, data.records.labels, gold=data.gold, **data.more)

    def answer(self, model: Any, data: LinesToLabel) -> LabelledLines:
        return summarise_lines(
            data,
            model.transduction_.tolist(),
            self.get_confidence(model, data),
            model.history_,
            f"Labels in {name_file(self.file)}",
            rules=self.list_rules(model),
            notes=self.list_notes(model, data),
            signature=getattr(model, "signature_", ""),
        )

    def overview(self, found: LabelledLines) -> Any:
        return found.labelling

    def print_answers(self, found: LabelledLines) -> None:
        print_records(found.records, found.labels, found.confidence)

    def page(self, found: LabelledLines) -> str:
        from softcount.labels.report import labelling_page

        assert found.labelling is not None
        return labelling_page(found.labelling)


class Cotrain(WordOptions, LabelCommand):
    """Label lines from a few labelled ones by co-training: two or more views teach each other.

    Prints every line of the file with its label and a confidence from 0 to 1, one line out for each
    line in. The labels that each view contributed in each round go to stderr. It pays to leave out
    very common words (--stop-words english, --max-share .1).

    \b
    softcount cotrain posts.tsv --views subject,body > labelled.tsv
    softcount cotrain pages.tsv --views page,links --columns label,page,links
    softcount cotrain posts.jsonl --views subject,body --stop-words english --gold gold.txt
    """

    declared = CoTrainingParameters
    takes: ClassVar = {"per_class": (), "pool": (), "prediction": ()}

    file: Annotated[
        str,
        Argument(
            "Tab-separated columns or JSON objects, one item per line, some of them labelled. May "
            "be .gz; - is stdin."
        ),
    ]
    views: Annotated[
        str,
        Input(
            "Columns or JSON keys to use as views. If there are no such columns, subject and body "
            "are taken from a raw post in the column text; spelling and context from a text in "
            "which ||| stands on both sides of a phrase.",
            metavar="A,B,…",
            file=PLAIN,
        ),
    ]
    columns: Annotated[
        str | None,
        Input(
            "Names of the columns, in order; one must be label. Default: label,text if all --views "
            "can be extracted from a text, else label followed by the --views.",
            metavar="A,B,…",
            file=PLAIN,
        ),
    ] = None
    max_iter: Annotated[int, Learning("Maximum number of rounds.", least=0)] = 100
    seed: SeedOption = 0

    def read(self, model: None) -> LinesToLabel:
        from softcount.labels.cotraining import NAMED

        names = column_names(self.views)
        if len(set(names)) < len(names):
            raise DataError(
                f"--views {','.join(names)}: a view is named twice", "name each view once"
            )
        if self.columns is not None:
            columns = column_names(self.columns)
        else:
            columns = (LABEL, TEXT) if set(names) <= set(NAMED) else (LABEL, *names)
        records = read_records(self.file, columns)
        records.check_labels()
        gold = read_gold(self.gold, self.file, len(records))
        items = {name: _read_view(records, name) for name in names}
        texts = [
            " · ".join(part if isinstance(part, str) else " ".join(part) for part in parts)
            for parts in zip(*items.values(), strict=True)
        ]
        return LinesToLabel(records, items, texts, gold)

    def make(self, data: LinesToLabel) -> CoTraining:
        from softcount.labels.cotraining import CoTraining

        counters = {
            # views that are lists of features already need no tokeniser
            name: None if any(isinstance(x, list) for x in view) else self.make_vectorizer(view)
            for name, view in data.items.items()
        }
        return CoTraining(
            list(data.items),
            rounds=self.max_iter,
            vectorizer=counters,
            random_state=self.seed,
            **self.settings(),
        )

    def get_confidence(self, model: CoTraining, data: LinesToLabel) -> FloatArray:
        return model.confidence_

    def list_notes(self, model: CoTraining, data: LinesToLabel) -> list[str]:
        blank = data.records.blank
        silent = [n + 1 for n in model.silent_.nonzero()[0].tolist() if n not in blank]
        lost = f"{list_lines(silent)}: no word that any view knows; the label is a guess"
        return [str(model.verdict_), *([lost] if silent else [])]


def _read_view(records: Records, name: str) -> list[Any]:
    """Return a view of all lines: a column, or what is extracted from the column text."""
    from softcount.labels.cotraining import NAMED

    has_text = any(TEXT in fields for fields in records.fields)
    if name not in NAMED or not has_text or any(name in fields for fields in records.fields):
        return records.texts(name)
    views = []
    for number, text in enumerate(records.texts(TEXT), 1):
        raw = text
        if not records.is_json:
            raw = re.sub(r"\\[\\tn]", lambda match: ESCAPES[match.group()], text)
        try:
            views.append(NAMED[name](raw) if raw.strip() else "")
        except DataError as error:
            raise DataError(f"{records.path}:{number}: {error.message}", error.hint) from error
    are_lists = any(isinstance(view, list) for view in views)
    return [[] if are_lists and view == "" else view for view in views]


class Propagate(LabelCommand):
    """Spread a few labels to all lines along a graph of similar lines (label propagation).

    Prints every line with its label filled in and a confidence from 0 to 1 in an extra column
    (JSON: the key confidence). Given labels stay unchanged. A summary goes to stderr. A line that
    no label reaches (an empty one, for example) gets the most common label; stderr lists these
    lines.

    \b
    softcount propagate lines.tsv > labelled.tsv
    softcount propagate lines.tsv --graph links.tsv > labelled.tsv
    softcount propagate lines.tsv --save model.softcount > labelled.tsv
    softcount propagate --load model.softcount new.tsv
    """

    declared = PropagationParameters
    takes: ClassVar = {
        "alpha": (),
        "n_neighbors": (),
        "svd": (),
        "class_mass": ("--class-mass/--no-class-mass",),
    }
    without = ()
    with_load = ("threads",)

    file: Annotated[
        str,
        Argument(
            "One item per line: label, tab, text; or JSON objects with the keys label and text. "
            "An empty label, or -1, means unknown. May be .gz; - is stdin."
        ),
    ]
    columns: Annotated[
        str,
        Input(
            "Names of the columns, in order; lines are compared by text.",
            metavar="NAMES",
            file=PLAIN,
        ),
    ] = "label,text"
    graph: Annotated[
        str | None,
        Input(
            "Use this graph instead of comparing texts. One edge per line: i, tab, j, and "
            "optionally tab, weight; i and j are line numbers of FILE, counted from 0.",
            metavar="EDGES",
            learns=True,
        ),
    ] = None
    weights: Annotated[
        str,
        Model(
            "Weight of an edge: cosine similarity, or gaussian: exp(-alpha * squared distance).",
            choices=("cosine", "gaussian"),
        ),
    ] = "cosine"
    max_iter: Annotated[int, Learning("Maximum number of sweeps.", least=1)] = 1000
    tol: Annotated[
        float,
        Learning("Stop when every probability is within this distance of its limit.", least=0.0),
    ] = 1e-5
    seed: SeedOption = 0
    threads: ThreadsOption = None
    html: Annotated[
        Path | None,
        Output("Write an HTML page with tables and curves here.", file=WRITTEN, learns=True),
    ] = None

    def check(self) -> None:
        if self.graph is not None:
            names = ("weights", "alpha", "n_neighbors", "svd", "save")
            self.refuse("--graph", names, "lines are not compared")

    def read(self, model: LabelPropagation | None) -> LinesToLabel:
        if model is not None and model.vectorizer_ is None:
            raise DataError(
                f"{self.load}: this model was not fitted to texts",
                "use it in Python: softcount.load",
            )
        records = read_records(self.file, column_names(self.columns))
        gold = read_gold(self.gold, self.file, len(records))
        if model is None:
            records.check_labels()
        if self.graph is not None:
            return LinesToLabel(records, _read_edges(self.graph, len(records)), None, gold)
        texts = records.texts("text")
        return LinesToLabel(records, texts, texts, gold)

    def make(self, data: LinesToLabel) -> LabelPropagation:
        from softcount.labels.propagation import LabelPropagation

        return LabelPropagation(
            weights=self.weights if self.graph is None else "precomputed",
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.threads,
            random_state=self.seed,
            **self.settings(),
        )

    def restore(self, kind: type[LabelPropagation], stored: Stored) -> LabelPropagation:
        return kind.restore(stored, n_jobs=self.threads)

    def fit(self, model: LabelPropagation, data: LinesToLabel, progress: FitProgress) -> None:
        from softcount.labels.propagation import UnreachedWarning

        with warnings.catch_warnings(action="ignore", category=UnreachedWarning):
            super().fit(model, data, progress)  # `list_notes` reports these lines instead

    def get_confidence(self, model: LabelPropagation, data: LinesToLabel) -> FloatArray:
        confidence: FloatArray = model.label_distributions_.max(axis=1)
        return confidence

    def list_notes(self, model: LabelPropagation, data: LinesToLabel) -> list[str]:
        unreached = (~model.reached_).nonzero()[0].tolist()
        lost = [n + 1 for n in unreached if n not in data.records.blank]
        return [*([_describe_unreached(lost)] if lost else []), str(model.verdict_)]

    def answer(self, model: LabelPropagation, data: LinesToLabel) -> LabelledLines:
        if self.load is None:
            return super().answer(model, data)
        # label new lines with a loaded model; labels that they have already stay
        from softcount.labels.propagation import UnreachedWarning

        given, blank = data.records.labels, data.records.blank
        asked = [n for n, label in enumerate(given) if label is None and n not in blank]
        labels, confidence = list(given), [1.0] * len(given)
        if asked:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnreachedWarning)
                posteriors = model.predict_proba([data.items[n] for n in asked])
            for warning in caught:
                if isinstance(warning.message, UnreachedWarning):
                    lost = [asked[item] + 1 for item in warning.message.items]
                    typer.echo(f"# {_describe_unreached(lost)}", err=True)
            for n, row in zip(asked, posteriors, strict=True):
                labels[n], confidence[n] = str(model.classes_[row.argmax()]), float(row.max())
        if data.gold is not None:
            right = [
                label == true
                for before, label, true in zip(given, labels, data.gold, strict=True)
                if before is None and label is not None and true is not None
            ]
            share = f"{sum(right) / len(right):.4f} of {len(right):,} lines" if right else ""
            typer.echo(f"accuracy\t{share or 'of no line'}", err=True)
        return LabelledLines(data.records, labels, confidence, None)

    def print_results(self, found: LabelledLines) -> None:
        if found.labelling is None:
            self.print_answers(found)
        else:
            super().print_results(found)


def _describe_unreached(lines: Sequence[int]) -> str:
    return f"no label reaches {list_lines(lines)}, which got the most common one"


def _read_edges(path: str, n: int) -> Any:
    """Read the adjacency matrix of a graph from lines of i, j and optionally a weight."""
    from scipy import sparse

    rows, columns, values = [], [], []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            i, j, *more = line.split("\t")
            row, column = int(i), int(j)
            (value,) = map(float, more) if more else (1.0,)
        except ValueError:
            raise DataError(
                f"{path}:{number}: {brief(line)} is not an edge", "write: i, tab, j, tab, weight"
            ) from None
        if not (0 <= row < n and 0 <= column < n):
            raise DataError(
                f"{path}:{number}: there is no line {row if not 0 <= row < n else column}",
                f"lines are numbered from 0 to {n - 1}",
            )
        if not 0.0 <= value < float("inf"):
            raise DataError(
                f"{path}:{number}: invalid edge weight {value:g}", "give finite weights, 0 or more"
            )
        rows.append(row)
        columns.append(column)
        values.append(value)
    if not math.isfinite(sum(values)):
        raise DataError(
            f"{path}: the sum of the weights overflows", "only ratios matter: scale them down"
        )
    return sparse.csr_matrix((values, (rows, columns)), shape=(n, n), dtype=float)


class Bootstrap(LabelCommand):
    """Label lines from a few seed rules (which word marks which label), by bootstrapping.

    Prints every line with its label filled in and a confidence from 0 to 1 added; a line to which
    no rule applies gets no label and confidence 0. The strongest rules of each label go to stderr.

    \b
    softcount bootstrap lines.tsv --seeds rules.txt > labelled.tsv
    softcount bootstrap lines.tsv --seeds rules.txt --rules learned.txt --gold gold.txt
    softcount bootstrap more.tsv --seeds learned.txt --max-iter 0
    softcount bootstrap bank.jsonl --word bank,banks --seeds senses.txt --document source \\
        --discourse .5
    """

    declared = YarowskyParameters
    takes: ClassVar = {"discourse": (), "variant": (), "threshold": ()}
    discourse: float

    file: Annotated[
        str,
        Argument("Lines to label: tab-separated columns, or JSON objects. May be .gz; - is stdin."),
    ]
    seeds: Annotated[
        str | None,
        Input(
            "Seed rules, one per line: label, feature and optionally strength, separated by tabs, "
            "or by spaces if no feature contains a space. Default: start from the labels in FILE."
        ),
    ] = None
    columns: Annotated[
        str, Input("Names of the columns of FILE, in order.", metavar="A,B,…", file=PLAIN)
    ] = "label,text"
    tokens: TokensOption = False
    word: Annotated[
        str | None,
        Input(
            "Disambiguate this word: features are the words around its first occurrence in a "
            "line. Separate several forms by commas: line,lines. Lines without it get no label.",
            metavar="WORD",
            file=PLAIN,
        ),
    ] = None
    window: Annotated[
        int,
        Input("With --word: number of words used on each side of it; 0: all of the line.", least=0),
    ] = 25
    stop_words: Annotated[
        str | None,
        Input(
            "Do not use the words in this file as features; with --word, they count only together "
            "with their position relative to it. english: scikit-learn's list."
        ),
    ] = None
    document: Annotated[
        str | None,
        Input("Column or JSON key with the document of each line.", metavar="COLUMN", file=PLAIN),
    ] = None
    max_iter: Annotated[
        int, Learning("Maximum number of rounds; 0 only applies the seed rules.", least=0)
    ] = 500
    rules: Annotated[
        Path | None,
        Output("Write the learned rules here; --seeds can read them.", file=WRITTEN),
    ] = None

    def check(self) -> None:
        if (self.document is None) != (self.discourse == 0.0):
            raise typer.BadParameter("--document and --discourse must be given together")

    def read(self, model: None) -> LinesToLabel:
        from softcount.labels.yarowsky import parse_rules

        records = read_records(self.file, column_names(self.columns))
        gold = read_gold(self.gold, self.file, len(records))
        if self.seeds is None:
            records.check_labels()
        seeds = None if self.seeds is None else parse_rules(read_lines(self.seeds), self.seeds)
        texts = records.texts("text")
        items: Any = texts if self.word is None else self._find_contexts(texts, self.word)
        documents = None if self.document is None else records.texts(self.document)
        return LinesToLabel(records, items, texts, gold, {"seeds": seeds, "documents": documents})

    def _find_contexts(self, texts: Sequence[str], word: str) -> list[list[str]]:
        """Return the context features of a word's first occurrence in each line, or none."""
        from softcount.labels.yarowsky import collocations
        from softcount.text import contexts
        from softcount.text.tokenise import spaces, words

        sentences = contexts.split_sentences(
            [spaces(text) for text in texts] if self.tokens else list(texts)
        )
        forms = contexts.list_forms(word.split(","))
        occurrences = contexts.find_occurrences(sentences, forms)
        contexts.check_occurs(occurrences, sentences, forms)
        stop_words = read_stop_words(self.stop_words, words)
        first = {found.sentence: found.position for found in reversed(occurrences)}
        window = self.window or None
        return [
            collocations(sentence, first[number], window, stop_words) if number in first else []
            for number, sentence in enumerate(sentences)
        ]

    def make(self, data: LinesToLabel) -> Yarowsky:
        from softcount.labels.yarowsky import Yarowsky

        counter = None
        if self.word is None:
            wanted = WordFilter(stop_words=self.stop_words)
            counter = make_counter(data.items, self.tokens, wanted)
        self.model = Yarowsky(
            max_rounds=self.max_iter, abstain=True, vectorizer=counter, **self.settings()
        )
        return self.model

    def files(self, found: Callable[[], LabelledLines]) -> Iterator[Action]:
        from softcount.report.page import write_whole

        yield if_given(
            self.rules,
            lambda path: write_whole(path, self.model.rules_.to_text(), "the rules", "--rules"),
        )

    def get_confidence(self, model: Yarowsky, data: LinesToLabel) -> list[float]:
        """Return confidences: 1 for given labels, 0 for lines without a label."""
        confidence = model.predict_proba(data.items, data.more["documents"]).max(axis=1).tolist()
        lines = zip(model.transduction_.tolist(), data.records.labels, confidence, strict=True)
        return [0.0 if label is None else 1.0 if given else p for label, given, p in lines]

    def list_notes(self, model: Yarowsky, data: LinesToLabel) -> list[str]:
        rules = f"{len(model.rules_):,} rule{'s' * (len(model.rules_) != 1)}"
        if not model.max_rounds:
            return [f"{rules}, as given"]
        return [f"{rules}; round 1 is what the seeds say, the last one what all rules say"]

    def list_rules(self, model: Yarowsky) -> list[tuple[str, Any, float]]:
        """List the strongest rules of each label."""
        strongest = []
        for label in model.rules_.classes:
            for rule in model.rules_.of_class(label, STRONGEST):
                seen = f"{rule.count:,} of {rule.total:,}" if rule.total else "given"
                strongest.append((f"{rule.feature} ({seen})", rule.label, rule.strength))
        return strongest


class Ask(WordOptions, Command):
    """Choose the lines to label next: those whose labels a classifier would learn most from.

    Learns Naive Bayes from the labelled and unlabelled lines of FILE (the weight of the latter is
    chosen by cross-validation), and prints the unlabelled lines that it is least sure of: line
    number, an empty label to fill in, and the text, separated by tabs. Fill the labels in and give
    the lines back with --answers; --output writes all of FILE with the labels known by then.

    \b
    softcount ask posts.tsv -n 20 > questions.tsv
    softcount ask posts.tsv --answers questions.tsv --output labelled.tsv > more.tsv
    """

    declared = NaiveBayesParameters
    takes: ClassVar = {"smoothing": (), "length": ()}

    file: Annotated[
        str,
        Argument(
            "One item per line: label, tab, text; or JSON objects with the keys label and text. "
            "An empty label, or -1, means unknown. May be .gz; - is stdin."
        ),
    ]
    columns: Annotated[
        str,
        Input("Names of the columns, in order.", metavar="NAMES", file=PLAIN),
    ] = "label,text"
    answers: Annotated[
        str | None, Input("Lines printed by this command before, with labels filled in.")
    ] = None
    n: Annotated[int, Model("Number of lines to ask for.", "-n", least=1)] = 20
    by: Annotated[
        str,
        Model(
            "margin: the two most probable labels are nearly as probable as each other. entropy of "
            "the labels. committee, information: models drawn at random differ in their votes, or "
            "their probabilities. random.",
            choices=("margin", "entropy", "committee", "information", "random"),
        ),
    ] = "margin"
    density: Annotated[
        float,
        Model("Above 0: prefer lines that resemble others; 1 is usual.", least=0.0),
    ] = 0.0
    seed: SeedOption = 0
    output: Annotated[
        Path | None,
        Output("Write all lines of FILE here, with the labels of --answers.", file=WRITTEN),
    ] = None

    def run(self) -> None:
        from softcount.labels.asking import ask
        from softcount.mixture import NaiveBayesCV

        records = read_records(self.file, column_names(self.columns))
        if self.answers is not None:
            records = take_answers(records, self.answers)
        records.check_labels()
        rows = [number for number in range(len(records)) if number not in records.blank]
        every_text = records.texts(TEXT)
        texts, labels = [every_text[row] for row in rows], [records.labels[row] for row in rows]
        with StatusLine() as status:
            status.show("learning …")
            model = NaiveBayesCV(
                vectorizer=self.make_vectorizer(texts), random_state=self.seed, **self.settings()
            ).fit(texts, labels)
            status.show("choosing …")
            questions = ask(
                model,
                texts,
                labels,
                n=self.n,
                by=self.by,  # type: ignore[arg-type]  # one of the choices
                density=self.density,
                random_state=self.seed,
            )
        n_labelled = sum(label is not None for label in labels)
        self.notes += [
            f"{n_labelled:,} of {len(rows):,} lines have a label",
            f"{len(questions)} to label next, by {self.by}",
        ]
        try_all(
            lambda: print_questions(records, [rows[number] for number in questions]),
            if_given(self.output, lambda path: write_records(path, records, "--output")),
        )


def print_questions(records: Records, numbers: Iterable[int]) -> None:
    """Print lines with their numbers, from 1, and an empty label."""
    for number in numbers:
        fields = records.fields[number]
        if records.is_json:
            question = {"line": number + 1, LABEL: None, **_without_label(fields)}
            sys.stdout.write(json.dumps(question, ensure_ascii=False) + "\n")
        else:
            cells = [str(number + 1), "", *_without_label(fields).values()]
            sys.stdout.write("\t".join(cells) + "\n")
    sys.stdout.flush()


def _without_label(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != LABEL}


def take_answers(records: Records, path: str) -> Records:
    """Return the records with the labels that were filled in; each must belong to its line."""
    fields, labels = list(records.fields), list(records.labels)
    for n, line in read_lines(path):
        place = f"{path}:{n}"
        if records.is_json:
            given = read_object(line, place)
        else:
            others = [name for name in max(fields, key=len) if name != LABEL]
            given = split_columns(line, ["line", LABEL, *others], place)
        label = None if given is None else read_label(given.get(LABEL), place)
        if given is None or label is None:
            continue
        at = str(given.get("line", ""))
        number = int(at) - 1 if at.isdecimal() else -1
        if not 0 <= number < len(records) or number in records.blank:
            raise DataError(
                f"{place}: {brief(at)} is not the number of a line of {records.path}",
                "give the lines back as they were printed, with labels filled in",
            )
        asked = {name: value for name, value in given.items() if name not in ("line", LABEL)}
        if asked != _without_label(fields[number]):
            raise DataError(
                f"{place}: line {number + 1} of {records.path} has another text",
                "give the lines back with the file that they were printed from",
            )
        if labels[number] not in (None, label):
            raise DataError(
                f"{place}: line {number + 1} of {records.path} has the label "
                f"{brief(labels[number])} already, not {brief(label)}",
                "change the label in one of the two files",
            )
        labels[number] = label
        fields[number] = {**fields[number], LABEL: given[LABEL]}
    return replace(records, fields=fields, labels=labels)
