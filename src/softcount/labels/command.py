"""``softcount propagate``, ``cotrain`` and ``bootstrap``."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.gold import UNKNOWN, read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.targets import PLAIN, WRITTEN
from softcount.cli.texts import WordFilter, stop_words_in, word_counter
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.labels.cotraining import CoTraining
    from softcount.labels.history import History
    from softcount.labels.propagation import LabelPropagation
    from softcount.labels.report import Labelling
    from softcount.labels.yarowsky import Yarowsky
    from softcount.types import Array


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
    from softcount.labels.report import Labelling, figures, page
    from softcount.show.report import write_page

    said = _standing(records, labels, history)
    known = None if gold is None else _gold_numbers(gold, records, history)
    found = figures(history, texts, said, confidence, known)
    one = Labelling(title, found, texts, "line", rules, notes, signature)

    def tell() -> None:
        watched = sys.stdout.isatty()  # then the overview comes last, where it stays in sight
        if not watched:
            print_labelling(one, sys.stderr)
        print_records(records, labels, confidence)
        if watched:
            print_labelling(one, sys.stderr)

    try_all(tell, at(html, lambda path: write_page(path, page(one))))


def print_labelling(one: Labelling, stream: TextIO) -> None:
    """Tables if someone is watching, else tab-separated values."""
    from rich.console import Console

    from softcount.labels import text_view as labelling_text

    if stream.isatty():
        labelling_text.show(one, Console(file=stream, highlight=False))
    else:
        stream.write(labelling_text.as_tsv(one))
    stream.flush()


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


# Lines with some labels: tab-separated columns, or JSON objects; the same lines out, filled in.


LABEL, CONFIDENCE = "label", "confidence"
COLUMNS = (LABEL, "text")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Records:
    """The lines of a file.

    ``path``     where they are from
    ``fields``   what each line says, by the names of columns or keys; nothing for a blank line
    ``labels``   each line's label as text; None where it is unknown
    ``is_json``  whether lines are JSON objects
    ``blank``    the numbers, from 0, of the lines that have nothing in them
    """

    path: str
    fields: Sequence[Mapping[str, Any]]
    labels: Sequence[str | None]
    is_json: bool
    blank: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.fields)

    def texts(self, name: str) -> list[str]:
        """A column as texts; empty where a line has none."""
        found = [self._text(number, name) for number in range(len(self))]
        if not any(name in fields for fields in self.fields):
            known = ", ".join(dict.fromkeys(chain.from_iterable(self.fields))) or "nothing"
            what = "keys" if self.is_json else "columns (--columns)"
            raise DataError(f"{self.path}: there is no {name!r}", f"its {what} are {known}")
        return found

    def demand_labels(self, least: int = 2) -> None:
        """Complain if there are fewer different labels than this to learn from."""
        found = sorted({label for label in self.labels if label is not None})
        if len(found) >= least:
            return
        said = f"no label but {', '.join(map(shown, found))}" if found else "no line has a label"
        raise DataError(
            f"{self.path}: {said}",
            f"label some lines of at least {least} classes; an empty label, or -1, is unknown",
        )

    def _text(self, number: int, name: str) -> str:
        value = self.fields[number].get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise DataError(
                f"{self.path}:{number + 1}: {name!r} is {shown(value)}", "give a text in quotes"
            )
        return value


def read_records(path: str, columns: Sequence[str] = COLUMNS) -> Records:
    """Read a file: JSON objects if its first line that is not blank begins with {, else columns.

    The last column takes the rest of its line, tabs included.
    """
    lines = [text for _, text in numbered(path)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise DataError(f"{path}: the file is empty, or all its lines are", "one item a line")
    is_json = first.lstrip().startswith("{")
    if not is_json:
        _check_columns(columns)
        _refuse_header(first, columns, path)
    read = [
        _object(line, f"{path}:{n}") if is_json else _cut(line, columns, f"{path}:{n}")
        for n, line in enumerate(lines, 1)
    ]
    labels = [_label((one or {}).get(LABEL), f"{path}:{n}") for n, one in enumerate(read, 1)]
    blank = frozenset(n for n, one in enumerate(read) if one is None)
    return Records(path, [one or {} for one in read], labels, is_json, blank)


def print_records(
    records: Records, labels: Iterable[str | None], confidence: Iterable[float]
) -> None:
    """Every line as it was, with its label (None: still unknown) and how sure that is.

    Labels that were given stay, and so do blank lines. Columns get one more, JSON objects a key
    ``confidence``, unless there is one of that name: then it is there.
    """
    written: dict[str | None, Any] = {None: None if records.is_json else ""}
    for fields, label in zip(records.fields, records.labels, strict=True):
        if label is not None and not isinstance(fields[LABEL], str):
            written[label] = fields[LABEL]  # 1 and true are to stay what they are
    line = _json_line if records.is_json else _cells_line
    write = sys.stdout.write
    answers = zip(records.fields, records.labels, labels, confidence, strict=True)
    for number, (fields, given, label, sure) in enumerate(answers):
        if number in records.blank:
            write("\n")
            continue
        said = fields[LABEL] if given is not None else written.get(label, label)
        rounded = float(f"{sure:.6g}") if math.isfinite(sure) else None
        write(line({**fields, LABEL: said, CONFIDENCE: rounded}) + "\n")
    sys.stdout.flush()  # here, where a closed pipe is no fault


def _cells_line(cells: Mapping[str, Any]) -> str:
    sure = cells[CONFIDENCE]
    whole = {**cells, CONFIDENCE: "" if sure is None else f"{sure:g}"}
    return "\t".join(whole.values())


def _json_line(whole: Mapping[str, Any]) -> str:
    text = json.dumps(whole, ensure_ascii=False)
    # halves of pairs of surrogates, which JSON can say by \u and UTF-8 cannot
    return json.dumps(whole) if SURROGATE.search(text) else text


def column_names(text: str) -> tuple[str, ...]:
    """Names of columns as an option gives them: label,subject,body."""
    return tuple(name.strip() for name in text.split(","))


def _check_columns(columns: Sequence[str]) -> None:
    if LABEL not in columns or len(set(columns)) < len(columns) or "" in columns:
        raise DataError(
            f"--columns {','.join(columns)}: one column must be called {LABEL}, and every column "
            "have a name of its own",
            "name them in their order, such as label,subject,body",
        )


def _refuse_header(first: str, columns: Sequence[str], path: str) -> None:
    """Complain of a line that names the columns: it would be an item, and its label a class."""
    if [cell.strip().lower() for cell in first.split("\t")] == [name.lower() for name in columns]:
        raise DataError(
            f"{path}: the first line has the names of the columns, and would be taken for an item",
            "leave it out; --columns names the columns",
        )


def _cut(line: str, columns: Sequence[str], where: str) -> dict[str, str] | None:
    """A line's cells by the names of their columns; None if the line is blank."""
    cells = line.split("\t", len(columns) - 1)
    if len(cells) < len(columns):
        if not line.strip():
            return None
        raise DataError(
            f"{where}: {len(cells)} column{'s' * (len(cells) > 1)}, while there should be "
            f"{len(columns)}: {', '.join(columns)}",
            "separate them by tabs; leave the label empty where it is unknown; "
            "--columns names other columns",
        )
    return dict(zip(columns, cells, strict=True))


def _object(line: str, where: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        value = json.loads(line, object_pairs_hook=_different_keys)
    except DataError as error:
        raise DataError(f"{where}: {error.message}", error.hint) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}", "one JSON object a line") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: {shown(value)} is no JSON object", "one JSON object a line")
    return value


def _different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless a key would be lost: the line could not come out as it was."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise DataError(f"the key {twice!r} is there twice", "give each key once")
    return found


def _label(value: Any, where: str) -> str | None:
    """A label as text, true and false as JSON writes them; None if it is unknown."""
    if value is None:
        return None
    if isinstance(value, list | dict | float):
        raise DataError(f"{where}: {shown(value)} is no label", "give a text, or a whole number")
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    return None if text in UNKNOWN else text


# ``softcount cotrain``.


TEXT = "text"
ESCAPED = re.compile(r"\\[\\tn]")
ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}


class Prediction(StrEnum):
    """How views are taken together."""

    PRODUCT = "product"
    AGREEMENT = "agreement"


def cotrain(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Lines of columns, tab-separated, or of JSON objects, some with a label; .gz too; "
            "- is stdin.",
        ),
    ],
    views: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Columns or keys to look at, each by itself. Where there is no such column: "
            "subject, body of the raw post (or spelling, context of the words between ||| and |||) "
            "that the column text has.",
        ),
        PLAIN,
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="What the columns are, in their order; one is called label. If not given: label "
            "and text if all --views can be made of a text, else label and the --views.",
        ),
        PLAIN,
    ] = None,
    per_class: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="So many lines of each label a view labels in a round. If not given: all lines in "
            "about 20 rounds, labels as common as they are among the given ones.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=0, help="At most so many.")] = 100,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, help="Choose from so many lines, drawn at random; if not given, from all."
        ),
    ] = None,
    prediction: Annotated[
        Prediction,
        typer.Option(
            metavar="NAME",
            parser=one_of(Prediction),
            help="Of lines that no view has labelled: product of the views' probabilities, or "
            "agreement: what all views agree on, else what the surest says.",
        ),
    ] = Prediction.PRODUCT,
    tokens: options.SplitAtSpaces = False,
    stop_words: options.StopWords = None,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    gold: options.Gold = None,
    seed: options.Seed = 0,
    html: options.Html = None,
) -> None:
    """Label lines from a few that have a label, by views that teach each other.

    Prints the same lines, with their labels and how sure these are: exactly one line for each line
    of the file. What each view gave in which round goes to stderr. It pays to leave out words that
    are everywhere (--stop-words english, --max-share .1).

    \b
    softcount cotrain posts.tsv --views subject,body > labelled.tsv
    softcount cotrain pages.tsv --views page,links --columns label,page,links
    softcount cotrain posts.jsonl --views subject,body --stop-words english --gold gold.txt
    """
    refuse_two_of_stdin(file, gold)
    with readable_errors():
        from softcount.cli.answers import called
        from softcount.labels.cotraining import CoTraining

        names = column_names(views)
        records = read_records(file, _columns(columns, names))
        records.demand_labels()
        true = read_gold(gold, file, len(records))
        items = {name: _view(records, name) for name in names}
        wanted = WordFilter(min_count, max_share, stop_words)
        model = CoTraining(
            names,
            per_class=per_class,
            rounds=rounds,
            pool=pool,
            prediction=str(prediction),
            vectorizer={name: _counter(items[name], tokens, wanted) for name in items},
            random_state=seed,
        )
        model.fit(items, records.labels, gold=true)
        finish(
            records,
            [str(label) for label in model.transduction_.tolist()],
            model.confidence_,
            model.history_,
            title=f"Labels in {called(file)}",
            texts=[" · ".join(map(_shown, parts)) for parts in zip(*items.values(), strict=True)],
            gold=true,
            html=html,
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


def _counter(items: Sequence[Any], tokens: bool, wanted: WordFilter) -> Any:
    """What counts the words of a view; those that are cut already are all counted."""
    if any(isinstance(item, list) for item in items):
        return None
    return word_counter(items, tokens, wanted)


def _remarks(model: CoTraining, records: Records) -> list[str]:
    """How it ended, and which lines say nothing."""
    from softcount.cli.answers import few_named

    silent = [n + 1 for n in model.silent_.nonzero()[0].tolist() if n not in records.blank]
    lost = f"{few_named(silent)}: no word that any view knows; the label is a guess"
    return [str(model.verdict_), *([lost] if silent else [])]


# ``softcount propagate``.


class Weights(StrEnum):
    """What an edge between two lines weighs."""

    COSINE = "cosine"
    GAUSSIAN = "gaussian"


LEARNING_OPTIONS = (
    *("weights", "alpha", "neighbours", "svd", "graph", "class_mass", "seed", "save"),
    *("max_iter", "tol", "html"),
)
COMPARING_OPTIONS = ("weights", "alpha", "neighbours", "svd", "save")


def propagate(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Lines with some labels: label, tab, text; or JSON objects with the keys label "
            "and text. An empty label, or -1, is unknown. .gz too; - is stdin.",
        ),
    ],
    columns: Annotated[
        str,
        typer.Option(metavar="NAMES", help="What the columns are; text is what is compared."),
        PLAIN,
    ] = "label,text",
    weights: Annotated[
        Weights, typer.Option(help="What an edge weighs; gaussian: exp(-alpha squared distance).")
    ] = Weights.COSINE,
    alpha: Annotated[
        float | None,
        typer.Option(min=0.0, help="Of gaussian weights. If not given, one that fits the lines."),
    ] = None,
    neighbours: Annotated[
        int, typer.Option("-k", "--neighbours", min=1, help="How many neighbours of each line.")
    ] = 10,
    svd: Annotated[
        int | None, typer.Option(min=1, help="Reduce lines to so many dimensions first.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="EDGES",
            help="Take this graph, and do not look at the text: i, tab, j, and perhaps tab, "
            "weight; numbers of lines, from 0.",
        ),
    ] = None,
    class_mass: Annotated[
        bool,
        typer.Option(
            "--class-mass/--no-class-mass",
            help="Scale the labels so that each has as large a share of all lines as it has of "
            "the labelled ones.",
        ),
    ] = True,
    max_iter: Annotated[int, typer.Option(min=1, help="At most so many sweeps.")] = 1000,
    tol: Annotated[
        float, typer.Option(min=0.0, help="Stop when every share is so close to its limit.")
    ] = 1e-5,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    gold: options.Gold = None,
    save: options.Save = None,
    load: options.Load = None,
    html: options.Html = None,
) -> None:
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
    refuse_two_of_stdin(file, graph, gold)
    if load is not None:
        refuse_with(ctx, "--load", LEARNING_OPTIONS, "its model is learned already")
    if graph is not None:
        refuse_with(ctx, "--graph", COMPARING_OPTIONS, "lines are not compared")
    with readable_errors():
        records = read_records(file, column_names(columns))
        known = read_gold(gold, file, len(records))
        if load is not None:
            _answer(records, load, threads, known)
            return
        records.demand_labels()
        from softcount.cli.answers import called
        from softcount.labels.propagation import LabelPropagation, UnreachedWarning

        model = LabelPropagation(
            weights="precomputed" if graph is not None else weights.value,
            alpha=alpha,
            n_neighbors=neighbours,
            svd=svd,
            class_mass=class_mass,
            max_iter=max_iter,
            tol=tol,
            n_jobs=threads,
            random_state=seed,
        )
        texts = records.texts("text") if graph is None else None
        items: Any = texts if graph is None else _edges(graph, len(records))
        with warnings.catch_warnings(action="ignore", category=UnreachedWarning):
            model.fit(items, list(records.labels), gold=known)

        def tell() -> None:
            finish(
                records,
                model.transduction_.tolist(),
                model.label_distributions_.max(axis=1),
                model.history_,
                title=f"Labels in {called(file)}",
                texts=texts,
                gold=known,
                html=html,
                notes=[*_unreached(model, records), str(model.verdict_)],
                signature=model.signature_,
            )

        try_all(at(save, model.save), tell)


def _answer(
    records: Records, path: Path, threads: int | None, gold: Sequence[str | None] | None
) -> None:
    """Label new lines by a model from a file; labels that they have stay."""
    from softcount.cli import models

    model = models.load_propagation(path, threads)
    if model.vectorizer_ is None:
        raise DataError(
            f"{path}: this model was not fitted to texts", "use it in Python: softcount.load"
        )
    texts = records.texts("text")
    given = records.labels
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
    from softcount.cli.answers import few_named

    return f"no label reaches {few_named(lines)}, which got the most common one"


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
    for number, line in numbered(path):
        if not line.strip():
            continue
        try:
            i, j, *more = line.split("\t")
            row, other = int(i), int(j)
            (value,) = map(float, more) if more else (1.0,)
        except ValueError:
            raise DataError(
                f"{path}:{number}: {shown(line)} is no edge", "write: i, tab, j, tab, weight"
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


class Variant(StrEnum):
    """Which rules are taken each round."""

    PLAIN = "plain"
    CAUTIOUS = "cautious"
    PROPAGATING = "propagating"
    PROPAGATING_CAUTIOUS = "propagating-cautious"


def bootstrap(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Lines to be labelled: tab-separated columns, or JSON objects; .gz too; - is "
            "stdin.",
        ),
    ],
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rules to begin with: label, feature and perhaps strength a line, separated by "
            "tabs, or by spaces if features have none. If not given: the labels in FILE.",
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(metavar="A,B,…", help="The columns of FILE, in their order."), PLAIN
    ] = "label,text",
    tokens: options.SplitAtSpaces = False,
    word: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            help="Tell the senses of this word: features are the words around it. Several forms: "
            "line,lines. Lines without it get no label.",
        ),
        PLAIN,
    ] = None,
    window: Annotated[
        int, typer.Option(min=0, help="--word: look at so many words on each side; 0: at all.")
    ] = 25,
    stop_words: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Words in this file are no features; around a --word, they count with their "
            "place. english: scikit-learn's list.",
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which column or key names a line's document."),
        PLAIN,
    ] = None,
    discourse: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="What the other lines of its --document count beside a line's own rule: one sense "
            "per discourse, as a weight.",
        ),
    ] = 0.0,
    variant: Annotated[
        Variant,
        typer.Option(
            metavar="NAME",
            parser=one_of(Variant),
            help="plain: each round takes all rules above the threshold. cautious: only the most "
            "frequent of these, some more each round. propagating, propagating-cautious: the "
            "same, but all features of a line say what its label is.",
        ),
    ] = Variant.CAUTIOUS,
    threshold: Annotated[
        float,
        typer.Option(min=0.0, help="Which part of a rule's labelled lines must have its label."),
    ] = 0.95,
    rounds: Annotated[
        int, typer.Option(min=0, help="At most so many rounds; 0 applies the seeds, no more.")
    ] = 500,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the learned rules here, for --seeds."),
        WRITTEN,
    ] = None,
    gold: options.Gold = None,
    html: options.Html = None,
) -> None:
    """Label the lines of a file, from a few rules: which words mark which label.

    Prints every line as it is, its label filled in and a confidence added; a line that no rule
    applies to has no label, and confidence 0. The strongest rules of each label go to stderr.

    \b
    softcount bootstrap lines.tsv --seeds rules.txt > labelled.tsv
    softcount bootstrap lines.tsv --seeds rules.txt --rules learned.txt --gold gold.txt
    softcount bootstrap more.tsv --seeds learned.txt --rounds 0
    softcount bootstrap bank.jsonl --word bank,banks --seeds senses.txt --document source \\
        --discourse .5
    """
    refuse_two_of_stdin(file, seeds, gold)
    if (document is None) != (discourse == 0.0):
        raise typer.BadParameter("--document and --discourse go together")
    with readable_errors():
        from softcount.cli.answers import called
        from softcount.labels.yarowsky import Yarowsky, parse_rules
        from softcount.show.report import write_whole

        records = read_records(file, column_names(columns))
        known = read_gold(gold, file, len(records))
        if seeds is None:
            records.demand_labels()
        given = None if seeds is None else parse_rules(numbered(seeds), seeds)
        model = Yarowsky(
            variant=str(variant),
            threshold=threshold,
            max_rounds=rounds,
            discourse=discourse,
            abstain=True,
        )
        texts = records.texts("text")
        items: Any = texts
        if word is None:
            model.vectorizer = word_counter(texts, tokens, WordFilter(stop_words=stop_words))
        else:
            items = _contexts(texts, word, window, stop_words, tokens)
        documents = None if document is None else records.texts(document)
        _learn(model, items, records.labels, seeds=given, documents=documents, gold=known)

        def write(path: Path) -> None:
            write_whole(path, model.rules_.to_text(), "the rules", "--rules")

        def tell() -> None:
            finish(
                records,
                model.transduction_.tolist(),
                _confidence(model, records, items, documents),
                model.history_,
                title=f"Labels in {called(file)}",
                texts=texts,
                gold=known,
                html=html,
                rules=_strongest(model),
                notes=[_told(model)],
            )

        try_all(at(rules, write), tell)


def _learn(model: Yarowsky, items: Any, labels: Any, **given: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(items, labels, **given)
    for warning in caught:
        typer.echo(f"softcount: warning: {warning.message}", err=True)


def _contexts(
    texts: Sequence[str], word: str, window: int, stop_words: str | None, tokens: bool
) -> list[list[str]]:
    """What stands around the first occurrence of a word in each line; nothing without any."""
    from softcount.corpus import contexts
    from softcount.corpus.tokenise import spaces, words
    from softcount.labels.yarowsky import collocations

    sentences = contexts.cut([spaces(text) for text in texts] if tokens else list(texts))
    forms = contexts.forms_of(word.split(","))
    found = contexts.find(sentences, forms)
    contexts.demand_some(found, sentences, forms)
    dropped = stop_words_in(stop_words, words)
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
