"""``softcount propagate``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.conflicts import refuse_two_of_stdin, refuse_with
from softcount.cli.ending import at, try_all
from softcount.cli.gold import read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.records import Records, column_names, print_records, read_records
from softcount.cli.targets import PLAIN
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.types import Array
    from softcount.weak.propagation import LabelPropagation


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
        from softcount.cli.labelling_answers import finish
        from softcount.weak.propagation import LabelPropagation, UnreachedWarning

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
    from softcount.weak.propagation import UnreachedWarning

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
