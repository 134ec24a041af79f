"""``softcount cotrain``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.choices import one_of
from softcount.cli.conflicts import refuse_two_of_stdin
from softcount.cli.gold import read_gold
from softcount.cli.guard import readable_errors
from softcount.cli.records import LABEL, Records, column_names, read_records
from softcount.cli.targets import PLAIN
from softcount.cli.texts import WordFilter, word_counter
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.weak.cotraining import CoTraining

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
        from softcount.cli.labelling_answers import finish
        from softcount.weak.cotraining import CoTraining

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
    from softcount.weak.named_views import NAMED

    if len(set(views)) < len(views):
        raise DataError(f"--views {','.join(views)}: some are the same", "name each view once")
    if given is not None:
        return column_names(given)
    return (LABEL, TEXT) if set(views) <= set(NAMED) else (LABEL, *views)


def _view(records: Records, name: str) -> list[Any]:
    """A column, or what a text says in a view that can be made of it."""
    from softcount.weak.named_views import NAMED

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
