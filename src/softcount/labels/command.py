"""``softcount propagate``, ``cotrain`` and ``bootstrap``."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from softcount.cli.answers import list_lines, name_file
from softcount.cli.frame import Command, LearningCommand, at, refuse_two_of_stdin, try_all
from softcount.cli.options import (
    Argument,
    GoldFile,
    HtmlFile,
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
from softcount.cli.records import LABEL, Records, column_names, print_records, read_records
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.core.store import Stored
    from softcount.core.types import Array
    from softcount.labels.cotraining import CoTraining
    from softcount.labels.history import History
    from softcount.labels.propagation import LabelPropagation
    from softcount.labels.report import Labelling
    from softcount.labels.yarowsky import Yarowsky


def finish(
    records: Records,
    labels: Sequence[str | None],
    confidence: Sequence[float] | Array,
    history: History,
    *,
    title: str,
    texts: Sequence[str] | None = None,
    gold: Sequence[str | None] | None = None,
    html: Path | None = None,
    rules: Sequence[tuple[str, Any, float]] = (),
    notes: Sequence[str] = (),
    signature: str = "",
) -> None:
    """The lines on stdout, what was learned on stderr, and the page if it is wanted.

    ``labels``   one for each line; None: it has none. What ``history`` is of, too: it has an item
                 for each line, and classes that are texts
    ``texts``    what the page is to show of each line
    ``gold``     as `read_gold` gives it: compared are lines that were given no label
    ``html``     where the page goes
    ``rules``    a rule as it is to be read, its label, its strength; the strongest first
    ``notes``    remarks, each a sentence without its full stop
    """
    from softcount.labels.report import Labelling, compute_figures, labelling_page
    from softcount.report.page import write_page

    said = _standing(records, labels, history)
    known = None if gold is None else _gold_numbers(gold, records, history)
    found = compute_figures(history, texts, said, confidence, known)
    one = Labelling(title, found, texts, "line", rules, notes, signature)

    def tell() -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_labelling(one, sys.stderr)
        print_records(records, labels, confidence)
        if watched:
            print_labelling(one, sys.stderr)

    try_all(tell, at(html, lambda path: write_page(path, labelling_page(one))))


def print_labelling(one: Labelling, stream: TextIO) -> None:
    """Tables if someone is watching, else tab-separated values."""
    from softcount.report.tables import print_view

    print_view(stream, one.show, one.as_tsv)


def _standing(records: Records, labels: Sequence[str | None], history: History) -> list[str | None]:
    """Each line's label as it is printed; None for blank lines, and for classes that were never
    learned but stand in the file."""
    classes = set(map(str, history.classes.tolist()))
    printed = [
        learned if given is None else given
        for given, learned in zip(records.labels, labels, strict=True)
    ]
    return [
        label if label in classes and n not in records.blank else None
        for n, label in enumerate(printed)
    ]


def _gold_numbers(gold: Sequence[str | None], records: Records, history: History) -> Array:
    """Gold labels as a history numbers them; unknown on lines whose label was given, and on blank
    ones, which get no answer."""
    import numpy as np

    from softcount.labels.history import OTHER
    from softcount.mixture.data import UNKNOWN

    places = {name: number for number, name in enumerate(map(str, history.classes.tolist()))}
    lines = zip(gold, records.labels, strict=True)
    return np.array(
        [
            UNKNOWN
            if label is None or given is not None or n in records.blank
            else places.get(label, OTHER)
            for n, (label, given) in enumerate(lines)
        ]
    )


# ``softcount cotrain``.


TEXT = "text"
ESCAPED = re.compile(r"\\[\\tn]")
ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}


class Cotrain(WordOptions, Command):
    """Label lines from a few that have a label, by views that teach each other.

    Prints the same lines, with their labels and how sure these are: exactly one line for each line
    of the file. What each view gave in which round goes to stderr. It pays to leave out words that
    are everywhere (--stop-words english, --max-share .1).

    \b
    softcount cotrain posts.tsv --views subject,body > labelled.tsv
    softcount cotrain pages.tsv --views page,links --columns label,page,links
    softcount cotrain posts.jsonl --views subject,body --stop-words english --gold gold.txt
    """

    file: Annotated[
        str,
        Argument(
            "Lines of columns, tab-separated, or of JSON objects, some with a label; .gz too; - is "
            "stdin.",
            metavar="FILE",
        ),
    ]
    views: Annotated[
        str,
        Input(
            "Columns or keys to look at, each by itself. Where there is no such column: subject, "
            "body of the raw post (or spelling, context of the words between ||| and |||) that the "
            "column text has.",
            metavar="A,B,…",
            file=PLAIN,
        ),
    ]
    columns: Annotated[
        str | None,
        Input(
            "What the columns are, in their order; one is called label. If not given: label and "
            "text if all --views can be made of a text, else label and the --views.",
            metavar="A,B,…",
            file=PLAIN,
        ),
    ] = None
    per_class: Annotated[
        int | None,
        Learning(
            "So many lines of each label a view labels in a round. If not given: all lines in "
            "about 20 rounds, labels as common as they are among the given ones.",
            least=1,
        ),
    ] = None
    max_iter: Annotated[int, Learning("At most so many rounds.", least=0)] = 100
    pool: Annotated[
        int | None,
        Learning("Choose from so many lines, drawn at random; if not given, from all.", least=1),
    ] = None
    prediction: Annotated[
        str,
        Model(
            "Of lines that no view has labelled: product of the views' probabilities, or "
            "agreement: what all views agree on, else what the surest says.",
            choices=("product", "agreement"),
        ),
    ] = "product"
    gold: GoldFile = None
    seed: SeedOption = 0
    html: HtmlFile = None

    def check(self) -> None:
        refuse_two_of_stdin(self.file, self.gold)

    def run(self) -> None:
        from softcount.labels.cotraining import CoTraining

        names = column_names(self.views)
        records = read_records(self.file, _columns(self.columns, names))
        records.demand_labels()
        gold = read_gold(self.gold, self.file, len(records))
        items = {name: _view(records, name) for name in names}
        counters = {
            # views that are cut already are counted as they are
            name: None if any(isinstance(x, list) for x in some) else self.make_vectorizer(some)
            for name, some in items.items()
        }
        model = CoTraining(
            names,
            per_class=self.per_class,
            rounds=self.max_iter,
            pool=self.pool,
            prediction=self.prediction,
            vectorizer=counters,
            random_state=self.seed,
        )
        model.fit(items, records.labels, gold=gold)
        finish(
            records,
            [str(label) for label in model.transduction_.tolist()],
            model.confidence_,
            model.history_,
            title=f"Labels in {name_file(self.file)}",
            texts=[" · ".join(map(_shown, parts)) for parts in zip(*items.values(), strict=True)],
            gold=gold,
            html=self.html,
            notes=_remarks(model, records),
        )


def _shown(part: str | list[str]) -> str:
    """What a view sees of a line, as a text."""
    return part if isinstance(part, str) else " ".join(part)


def _columns(given: str | None, views: Sequence[str]) -> tuple[str, ...]:
    from softcount.labels.cotraining import NAMED

    if len(set(views)) < len(views):
        raise DataError(f"--views {','.join(views)}: some are the same", "name each view once")
    if given is not None:
        return column_names(given)
    return (LABEL, TEXT) if set(views) <= set(NAMED) else (LABEL, *views)


def _view(records: Records, name: str) -> list[Any]:
    """A column, or what a text says in a view that can be made of it."""
    from softcount.labels.cotraining import NAMED

    has_text = any(TEXT in fields for fields in records.fields)
    if name not in NAMED or not has_text or any(name in fields for fields in records.fields):
        return records.texts(name)
    found = []
    for number, text in enumerate(records.texts(TEXT), 1):
        raw = text if records.is_json else ESCAPED.sub(lambda one: ESCAPES[one.group()], text)
        try:
            found.append(NAMED[name](raw) if raw.strip() else "")
        except DataError as error:
            raise DataError(f"{records.path}:{number}: {error.message}", error.hint) from error
    cut = any(isinstance(one, list) for one in found)
    return [[] if cut and one == "" else one for one in found]


def _remarks(model: CoTraining, records: Records) -> list[str]:
    """How it ended, and which lines say nothing."""
    silent = [n + 1 for n in model.silent_.nonzero()[0].tolist() if n not in records.blank]
    lost = f"{list_lines(silent)}: no word that any view knows; the label is a guess"
    return [str(model.verdict_), *([lost] if silent else [])]


# ``softcount propagate``.


class Propagate(LearningCommand):
    """Spread a few labels to all lines, along a graph of lines that are alike.

    Prints every line as it was, with its label filled in and one column more: how sure that is, 0
    to 1 (JSON: the key confidence). Labels that were given stay. What happened goes to stderr. A
    line that no label reaches (an empty one, for example) gets the most common label, and stderr
    says which lines these are.

    \b
    softcount propagate lines.tsv > labelled.tsv
    softcount propagate lines.tsv --graph links.tsv > labelled.tsv
    softcount propagate lines.tsv --save model.softcount > labelled.tsv
    softcount propagate --load model.softcount new.tsv
    """

    with_load = ("threads",)

    file: Annotated[
        str,
        Argument(
            "Lines with some labels: label, tab, text; or JSON objects with the keys label and "
            "text. An empty label, or -1, is unknown. .gz too; - is stdin.",
            metavar="FILE",
        ),
    ]
    columns: Annotated[
        str,
        Input("What the columns are; text is what is compared.", metavar="NAMES", file=PLAIN),
    ] = "label,text"
    graph: Annotated[
        str | None,
        Input(
            "Take this graph, and do not look at the text: i, tab, j, and perhaps tab, weight; "
            "numbers of lines, from 0.",
            metavar="EDGES",
            learns=True,
        ),
    ] = None
    weights: Annotated[
        str,
        Model(
            "What an edge weighs: cosine, or gaussian: exp(-alpha squared distance).",
            choices=("cosine", "gaussian"),
        ),
    ] = "cosine"
    alpha: Annotated[
        float | None,
        Model("Of gaussian weights. If not given, one that fits the lines.", least=0.0),
    ] = None
    n_neighbors: Annotated[int, Model("How many neighbours of each line.", least=1)] = 10
    svd: Annotated[int | None, Model("Reduce lines to so many dimensions first.", least=1)] = None
    class_mass: Annotated[
        bool,
        Model(
            "Scale the labels so that each has as large a share of all lines as it has of the "
            "labelled ones.",
            "--class-mass/--no-class-mass",
        ),
    ] = True
    max_iter: Annotated[int, Learning("At most so many sweeps.", least=1)] = 1000
    tol: Annotated[
        float, Learning("Stop when every share is so close to its limit.", least=0.0)
    ] = 1e-5
    seed: SeedOption = 0
    threads: ThreadsOption = None
    gold: GoldFile = None
    html: Annotated[
        Path | None,
        Output("Write a page with tables and curves to this file.", file=WRITTEN, learns=True),
    ] = None

    def check(self) -> None:
        refuse_two_of_stdin(self.file, self.graph, self.gold)
        if self.graph is not None:
            names = ("weights", "alpha", "n_neighbors", "svd", "save")
            self.refuse("--graph", names, "lines are not compared")

    def run(self) -> None:
        loaded = None if self.load is None else self.load_model(self.load)
        records = read_records(self.file, column_names(self.columns))
        gold = read_gold(self.gold, self.file, len(records))
        if loaded is not None:
            self._answer(loaded, records, gold)
            return
        records.demand_labels()
        from softcount.labels.propagation import LabelPropagation, UnreachedWarning

        model = LabelPropagation(
            weights=self.weights if self.graph is None else "precomputed",
            alpha=self.alpha,
            n_neighbors=self.n_neighbors,
            svd=self.svd,
            class_mass=self.class_mass,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.threads,
            random_state=self.seed,
        )
        texts = records.texts("text") if self.graph is None else None
        items: Any = texts if self.graph is None else _edges(self.graph, len(records))
        with warnings.catch_warnings(action="ignore", category=UnreachedWarning):
            model.fit(items, list(records.labels), gold=gold)

        def tell() -> None:
            finish(
                records,
                model.transduction_.tolist(),
                model.label_distributions_.max(axis=1),
                model.history_,
                title=f"Labels in {name_file(self.file)}",
                texts=texts,
                gold=gold,
                html=self.html,
                notes=[*_unreached(model, records), str(model.verdict_)],
                signature=model.signature_,
            )

        try_all(at(self.save, model.save), tell)

    def restore(self, kind: type[LabelPropagation], stored: Stored) -> LabelPropagation:
        return kind.restore(stored, n_jobs=self.threads)

    def _answer(
        self, model: LabelPropagation, records: Records, gold: Sequence[str | None] | None
    ) -> None:
        """Label new lines by a model from a file; labels that they have stay."""
        if model.vectorizer_ is None:
            raise DataError(
                f"{self.load}: this model was not fitted to texts",
                "use it in Python: softcount.load",
            )
        texts, given = records.texts("text"), records.labels
        asked = [n for n in range(len(texts)) if given[n] is None and n not in records.blank]
        labels, sure = list(given), [1.0] * len(texts)
        if asked:
            shares = _shares(model, texts, asked)
            for n, row in zip(asked, shares, strict=True):
                labels[n], sure[n] = str(model.classes_[row.argmax()]), float(row.max())
        _say_accuracy(records, labels, gold)
        print_records(records, labels, sure)


def _shares(model: LabelPropagation, texts: Sequence[str], asked: Sequence[int]) -> Array:
    """The shares of classes for some of the lines; says which of these no label reaches."""
    from softcount.labels.propagation import UnreachedWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreachedWarning)
        shares = model.predict_proba([texts[n] for n in asked])
    for warning in caught:
        if isinstance(warning.message, UnreachedWarning):
            typer.echo(f"# {_lost([asked[item] + 1 for item in warning.message.items])}", err=True)
    return shares


def _unreached(model: LabelPropagation, records: Records) -> list[str]:
    """A remark on lines that no label reaches, if there are any that are not blank."""
    lost = [n + 1 for n in (~model.reached_).nonzero()[0].tolist() if n not in records.blank]
    return [_lost(lost)] if lost else []


def _lost(lines: Sequence[int]) -> str:
    return f"no label reaches {list_lines(lines)}, which got the most common one"


def _say_accuracy(
    records: Records, labels: Sequence[str | None], gold: Sequence[str | None] | None
) -> None:
    """How many of the labels that were not given are right; blank lines have none."""
    if gold is None:
        return
    both = zip(records.labels, labels, gold, strict=True)
    right = [
        label == true
        for given, label, true in both
        if given is None and label is not None and true is not None
    ]
    said = f"{sum(right) / len(right):.4f} of {len(right):,} lines" if right else "of no line"
    typer.echo(f"accuracy\t{said}", err=True)


def _edges(path: str, n: int) -> Any:
    """A graph from lines of i, j and perhaps a weight."""
    from scipy import sparse

    rows, others, values = [], [], []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            i, j, *more = line.split("\t")
            row, other = int(i), int(j)
            (value,) = map(float, more) if more else (1.0,)
        except ValueError:
            raise DataError(
                f"{path}:{number}: {brief(line)} is no edge", "write: i, tab, j, tab, weight"
            ) from None
        if not (0 <= row < n and 0 <= other < n):
            raise DataError(
                f"{path}:{number}: there is no line {row if not 0 <= row < n else other}",
                f"lines are numbered from 0 to {n - 1}",
            )
        if not 0.0 <= value < float("inf"):
            raise DataError(f"{path}:{number}: a weight of {value:g}", "give weights above 0")
        rows.append(row)
        others.append(other)
        values.append(value)
    if not math.isfinite(sum(values)):
        raise DataError(f"{path}: the weights add up to infinity", "only ratios matter: scale them")
    return sparse.csr_matrix((values, (rows, others)), shape=(n, n), dtype=float)


# ``softcount bootstrap``.


STRONGEST = 8
"""So many rules of each label are shown."""


class Bootstrap(Command):
    """Label the lines of a file, from a few rules: which words mark which label.

    Prints every line as it is, its label filled in and a confidence added; a line that no rule
    applies to has no label, and confidence 0. The strongest rules of each label go to stderr.

    \b
    softcount bootstrap lines.tsv --seeds rules.txt > labelled.tsv
    softcount bootstrap lines.tsv --seeds rules.txt --rules learned.txt --gold gold.txt
    softcount bootstrap more.tsv --seeds learned.txt --max-iter 0
    softcount bootstrap bank.jsonl --word bank,banks --seeds senses.txt --document source \\
        --discourse .5
    """

    file: Annotated[
        str,
        Argument(
            "Lines to be labelled: tab-separated columns, or JSON objects; .gz too; - is stdin.",
            metavar="FILE",
        ),
    ]
    seeds: Annotated[
        str | None,
        Input(
            "Rules to begin with: label, feature and perhaps strength a line, separated by tabs, "
            "or by spaces if features have none. If not given: the labels in FILE.",
            metavar="FILE",
        ),
    ] = None
    columns: Annotated[
        str, Input("The columns of FILE, in their order.", metavar="A,B,…", file=PLAIN)
    ] = "label,text"
    tokens: TokensOption = False
    word: Annotated[
        str | None,
        Input(
            "Tell the senses of this word: features are the words around it. Several forms: "
            "line,lines. Lines without it get no label.",
            metavar="WORD",
            file=PLAIN,
        ),
    ] = None
    window: Annotated[
        int, Input("--word: look at so many words on each side; 0: at all.", least=0)
    ] = 25
    stop_words: Annotated[
        str | None,
        Input(
            "Words in this file are no features; around a --word, they count with their place. "
            "english: scikit-learn's list.",
            metavar="FILE",
        ),
    ] = None
    document: Annotated[
        str | None,
        Input("Which column or key names a line's document.", metavar="COLUMN", file=PLAIN),
    ] = None
    discourse: Annotated[
        float,
        Model(
            "What the other lines of its --document count beside a line's own rule: one sense per "
            "discourse, as a weight.",
            least=0.0,
        ),
    ] = 0.0
    variant: Annotated[
        str,
        Model(
            "plain: each round takes all rules above the threshold. cautious: only the most "
            "frequent of these, some more each round. propagating, propagating-cautious: the "
            "same, but all features of a line say what its label is.",
            choices=("plain", "cautious", "propagating", "propagating-cautious"),
        ),
    ] = "cautious"
    threshold: Annotated[
        float, Model("Which part of a rule's labelled lines must have its label.", least=0.0)
    ] = 0.95
    max_iter: Annotated[
        int, Learning("At most so many rounds; 0 applies the seeds, no more.", least=0)
    ] = 500
    rules: Annotated[
        Path | None,
        Output("Write the learned rules here, for --seeds.", metavar="FILE", file=WRITTEN),
    ] = None
    gold: GoldFile = None
    html: HtmlFile = None

    def check(self) -> None:
        refuse_two_of_stdin(self.file, self.seeds, self.gold)
        if (self.document is None) != (self.discourse == 0.0):
            raise typer.BadParameter("--document and --discourse go together")

    def run(self) -> None:
        from softcount.labels.yarowsky import Yarowsky, parse_rules
        from softcount.report.page import write_whole

        records = read_records(self.file, column_names(self.columns))
        gold = read_gold(self.gold, self.file, len(records))
        if self.seeds is None:
            records.demand_labels()
        given = None if self.seeds is None else parse_rules(read_lines(self.seeds), self.seeds)
        model = Yarowsky(
            variant=self.variant,
            threshold=self.threshold,
            max_rounds=self.max_iter,
            discourse=self.discourse,
            abstain=True,
        )
        texts = records.texts("text")
        items: Any = texts
        if self.word is None:
            wanted = WordFilter(stop_words=self.stop_words)
            model.vectorizer = make_counter(texts, self.tokens, wanted)
        else:
            items = _contexts(texts, self.word, self.window, self.stop_words, self.tokens)
        documents = None if self.document is None else records.texts(self.document)
        model.fit(items, records.labels, seeds=given, documents=documents, gold=gold)

        def write(path: Path) -> None:
            write_whole(path, model.rules_.to_text(), "the rules", "--rules")

        def tell() -> None:
            finish(
                records,
                model.transduction_.tolist(),
                _confidence(model, records, items, documents),
                model.history_,
                title=f"Labels in {name_file(self.file)}",
                texts=texts,
                gold=gold,
                html=self.html,
                rules=_strongest(model),
                notes=[_told(model)],
            )

        try_all(at(self.rules, write), tell)


def _contexts(
    texts: Sequence[str], word: str, window: int, stop_words: str | None, tokens: bool
) -> list[list[str]]:
    """What stands around the first occurrence of a word in each line; nothing without any."""
    from softcount.labels.yarowsky import collocations
    from softcount.text import contexts
    from softcount.text.tokenise import spaces, words

    sentences = contexts.split_sentences(
        [spaces(text) for text in texts] if tokens else list(texts)
    )
    forms = contexts.list_forms(word.split(","))
    found = contexts.find_occurrences(sentences, forms)
    contexts.demand_found(found, sentences, forms)
    dropped = read_stop_words(stop_words, words)
    first = {one.sentence: one.position for one in reversed(found)}
    return [
        collocations(sentence, first[number], window or None, dropped) if number in first else []
        for number, sentence in enumerate(sentences)
    ]


def _confidence(
    model: Yarowsky, records: Records, items: Any, documents: Sequence[str] | None
) -> list[float]:
    """How sure each line's label is: given ones are, and no label is nothing to be sure of."""
    shares = model.predict_proba(items, documents).max(axis=1).tolist()
    known = zip(model.transduction_.tolist(), records.labels, shares, strict=True)
    return [0.0 if said is None else 1.0 if told is not None else p for said, told, p in known]


def _told(model: Yarowsky) -> str:
    """How many rules there are, and what the rounds mean."""
    rules = f"{len(model.rules_):,} rule{'s' * (len(model.rules_) != 1)}"
    if not model.max_rounds:
        return f"{rules}, as given"
    return f"{rules}; round 1 is what the seeds say, the last one what all rules say"


def _strongest(model: Yarowsky) -> list[tuple[str, Any, float]]:
    """The strongest rules of each label, as the overview shows them."""
    rules = model.rules_
    return [
        (f"{rule.feature} ({rule.count:,} of {rule.total:,})", rule.label, rule.strength)
        if rule.total
        else (f"{rule.feature} (given)", rule.label, rule.strength)
        for label in rules.classes
        for rule in rules.of_class(label, STRONGEST)
    ]
