"""``softcount corpus``: documents counted once and kept on disk, for corpora larger than memory."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli import options
from softcount.cli.command import Commands
from softcount.cli.conflicts import refuse_with
from softcount.cli.guard import readable_errors
from softcount.cli.lines import numbered
from softcount.cli.targets import NEW_FOLDER
from softcount.cli.texts import stop_words_in
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.corpus.archive import Archive

group = Commands(
    help="Count the words of documents once and keep the counts on disk: an archive, for corpora "
    "that are larger than memory.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Folder = Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A folder that build has made.")]


@group.command("build")
def build(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Text files, one document a line; .gz too; - is stdin."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="ARCHIVE", help="The folder to be made; it must be new."
        ),
        NEW_FOLDER,
    ],
    tokens: options.SplitAtSpaces = False,
    min_count: options.MinCount = 1,
    max_share: options.MaxShare = 1.0,
    max_words: Annotated[
        int | None,
        typer.Option(min=1, help="Keep so many words at most: those that most lines have."),
    ] = None,
    stop_words: options.StopWords = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="ARCHIVE",
            help="Count the words of this archive and no others, cut as its words were: new "
            "documents for a model that was fitted to it.",
        ),
    ] = None,
    shuffle: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SEED",
            help="Put the documents in a random order, so that mini-batches are read in one piece; "
            "which line each one was is kept.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Count the words of every line, and keep the counts in a folder.

    The files are read once, and memory is bounded however long they are. A blank line is an empty
    document. The folder is there when all is done, and never before. Prints what corpus info does.

    \b
    softcount corpus build texts.txt more.txt.gz -o texts.archive --min-count 5 --max-share .3
    softcount corpus build new.txt -o new.archive --like texts.archive
    zcat *.gz | softcount corpus build - -o all.archive --shuffle 0
    """
    if like is not None:
        choices = ("min_count", "max_share", "max_words", "stop_words")
        refuse_with(ctx, "--like", choices, "that archive says which words count")
    with readable_errors():
        _demand_readable(files)
        from softcount.corpus.archive import Archive
        from softcount.corpus.tokenise import spaces, words

        progress = Progress()
        try:
            archive = Archive.build(
                {file: _texts(file) for file in files},
                output,
                tokens=tokens,
                min_count=min_count,
                max_share=max_share,
                max_words=max_words,
                stop_words=stop_words_in(stop_words, spaces if tokens else words),
                like=None if like is None else Archive.open(like),
                shuffle=shuffle,
                on_progress=progress,
            )
        finally:
            progress.end()
        _print(archive, json)


@group.command("info")
def info(
    archive: Folder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all of it and compare checksums.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what is in an archive, one tab-separated fact a line."""
    with readable_errors():
        from softcount.corpus.archive import Archive

        found = Archive.open(archive)
        if verify:
            found.verify()
        _print(found, json)


def _demand_readable(files: Sequence[str]) -> None:
    """Complain before the work, which may take hours, and not in the middle of it."""
    for number, file in enumerate(files):
        if file in files[:number]:
            raise DataError(f"{file} is given twice", "give every file once")
        if file != "-" and not Path(file).exists():
            raise DataError(f"{file}: there is no such file", "check the name")
        if Path(file).is_dir():
            raise DataError(f"{file} is a folder", "give the files in it")


def _texts(file: str) -> Iterator[str]:
    for _, text in numbered(file):
        yield text


class Progress:
    """One line on stderr that says how far it is; silent unless someone is watching."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty()

    def __call__(self, doing: str, documents: int) -> None:
        if self.wanted:
            sys.stderr.write(f"\r\x1b[K{doing}   {documents:,} documents")
            sys.stderr.flush()

    def end(self) -> None:
        if self.wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _print(archive: Archive, as_json: bool) -> None:
    said = _said(archive)
    if as_json:
        typer.echo(json_format.dumps(said, ensure_ascii=False, indent=1))
        return
    sources = said.pop("sources")
    for name, value in said.items():
        if value is not None:
            typer.echo(f"{name}\t{value}")
    for name, lines in sources.items():
        typer.echo(f"source\t{name}\t{lines}")


def _said(archive: Archive) -> dict[str, Any]:
    facts = archive.facts
    cut = facts.vectorizer and facts.vectorizer.get("analyzer")
    return {
        "documents": facts.n_documents,
        "words": facts.n_words,
        "tokens": int(facts.tokens) if facts.tokens.is_integer() else facts.tokens,
        "entries": facts.n_entries,
        "shards": len(facts.shards) - 1,
        "bytes": sum(size for size, _ in facts.files.values()),
        "cut": cut,
        **facts.wanted,
        "shuffle": facts.shuffle,
        "sources": dict(facts.sources),
    }
