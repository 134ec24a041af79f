"""``softcount similar``."""

from __future__ import annotations

import json as jsons
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.targets import PLAIN
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.topic_documents import Documents
    from softcount.models.topics.model import TopicModel

LEAST_TEXT = 20
"""So many characters of a text are shown in a terminal, however narrow it is."""


def similar(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file that softcount topics --save wrote.")
    ],
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="What to look for; if not given, or -: each line of stdin."
        ),
        PLAIN,
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The documents to be found, one a line; .gz too; - is stdin; or an archive. If "
            "not given: those that the model has learned from.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many documents a query.")] = 10,
    words: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="How much shared words count (tf-idf), beside shared topics; 0.7 is a good start.",
        ),
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a query.")] = False,
) -> None:
    """Find the documents most like a query, by their topics.

    Prints the best first, tab-separated: rank, score (0 to 1), the number of the document's line,
    and the line itself if FILE is given. If queries come from stdin, the number of the query stands
    before these. A query without any word that the model knows finds nothing, and stderr says so.

    \b
    softcount topics documents.txt -k 50 --save topics.softcount > topics.txt
    softcount similar topics.softcount "price of oil" documents.txt --words 0.7
    softcount similar topics.softcount -n 5 --json < queries.txt
    """
    several = query is None or query == "-"
    if several and file == "-":
        raise typer.BadParameter("only one of queries and documents can be standard input")
    if query is None and sys.stdin.isatty():
        raise typer.BadParameter("what to look for? Give a query, or - to type some, one a line")
    with readable_errors():
        search = _search(model, file, n, words)
        for number, text in numbered("-") if several else [(1, str(query))]:
            hits = search(text)
            if not hits and text.strip():
                which = f"query {number}" if several else "the query"
                typer.echo(f"softcount: {which} has no word that the model knows", err=True)
            if json:
                whole = {"query": number, "text": text, "hits": hits}
                sys.stdout.write(jsons.dumps(whole, ensure_ascii=False) + "\n")
            else:
                _print(hits, number if several else None)
            sys.stdout.flush()  # an answer for each query as it comes


@dataclass(frozen=True, eq=False)
class _Search:
    """A model, and the documents that it finds: its own, if there are no others."""

    model: TopicModel
    documents: Documents | None
    n: int
    words: float

    def __call__(self, query: str) -> list[dict[str, Any]]:
        found = self.model.similar(query, self.n, self.words)
        return [self._hit(rank, *one) for rank, one in enumerate(found, 1)]

    def _hit(self, rank: int, number: int, score: float) -> dict[str, Any]:
        hit: dict[str, Any] = {"rank": rank, "score": score, "line": number + 1}
        return hit if self.documents is None else hit | self.documents.about(number)


def _search(path: Path, file: str | None, n: int, words: float) -> _Search:
    from softcount.cli import models
    from softcount.cli.topic_documents import read_documents

    model = models.load_topics(path, models.SIMILAR)
    if file is None:
        if model.index_ is None:
            raise DataError(
                f"{path} holds no documents to be found: they were in an archive",
                f'say where they are: softcount similar {path} "query" ARCHIVE',
            )
        return _Search(model, None, n, words)
    documents = read_documents([file])
    documents.demand_some()
    model.index(documents.items)
    return _Search(model, documents, n, words)


def _print(hits: list[dict[str, Any]], query: int | None) -> None:
    for hit in hits:
        fields = [] if query is None else [str(query)]
        fields += [str(hit["rank"]), f"{hit['score']:.4f}", hit.get("name") or str(hit["line"])]
        sys.stdout.write("\t".join([*fields, *_text(hit, fields)]) + "\n")


def _text(hit: dict[str, Any], before: list[str]) -> Iterator[str]:
    """The line of a document; in a terminal as much of it as there is room for."""
    if "text" not in hit:
        return
    if not sys.stdout.isatty():
        from softcount.cli.output import one_field

        yield one_field(hit["text"])
        return
    from softcount.show.groups import shortened
    from softcount.show.snippets import clean

    room = shutil.get_terminal_size().columns - len("\t".join(before).expandtabs()) - 8
    yield shortened(clean(hit["text"]), max(room, LEAST_TEXT))
