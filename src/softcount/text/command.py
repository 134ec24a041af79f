"""``softcount corpus``: documents counted once and kept on disk, for corpora larger than memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softcount.cli.frame import Command, StatusLine, make_group
from softcount.cli.options import Argument, Input, Output, WordOptions
from softcount.cli.reading import read_lines, read_stop_words
from softcount.cli.targets import NEW_FOLDER
from softcount.core.errors import DataError

if TYPE_CHECKING:
    from softcount.text.archive import ArchiveFacts

JsonOption = Annotated[bool, Output("Print one JSON object.")]


class Build(WordOptions, Command):
    """Count the words of every line, and keep the counts in a folder.

    The files are read once, and memory is bounded however long they are. A blank line is an empty
    document. The folder is there when all is done, and never before. Prints what corpus info does.

    \b
    softcount corpus build texts.txt more.txt.gz -o texts.archive --min-count 5 --max-share .3
    softcount corpus build new.txt -o new.archive --like texts.archive
    zcat *.gz | softcount corpus build - -o all.archive --shuffle 0
    """

    files: Annotated[
        list[str], Argument("Text files, one document a line; .gz too; - is stdin.", metavar="FILE")
    ]
    output: Annotated[
        Path,
        Output(
            "The folder to be made; it must be new.",
            "-o",
            "--output",
            metavar="ARCHIVE",
            file=NEW_FOLDER,
        ),
    ]
    max_words: Annotated[
        int | None, Input("Keep so many words at most: those that most lines have.", least=1)
    ] = None
    like: Annotated[
        Path | None,
        Input(
            "Count the words of this archive and no others, cut as its words were: new documents "
            "for a model that was fitted to it.",
            metavar="ARCHIVE",
        ),
    ] = None
    shuffle: Annotated[
        int | None,
        Input(
            "Put the documents in a random order, so that mini-batches are read in one piece; "
            "which line each one was is kept.",
            metavar="SEED",
            least=0,
        ),
    ] = None
    json: JsonOption = False

    def check(self) -> None:
        if self.like is not None:
            names = ("min_count", "max_share", "max_words", "stop_words")
            self.refuse("--like", names, "that archive says which words count")

    def run(self) -> None:
        # before the work, which may take hours, and not in the middle of it
        for number, file in enumerate(self.files):
            if file in self.files[:number]:
                raise DataError(f"{file} is given twice", "give every file once")
            if file != "-" and not Path(file).exists():
                raise DataError(f"{file}: there is no such file", "check the name")
            if Path(file).is_dir():
                raise DataError(f"{file} is a folder", "give the files in it")
        from softcount.text.archive import Archive
        from softcount.text.tokenise import spaces, words

        with StatusLine() as status:
            archive = Archive.build(
                {file: (text for _, text in read_lines(file)) for file in self.files},
                self.output,
                tokens=self.tokens,
                min_count=self.min_count,
                max_share=self.max_share,
                max_words=self.max_words,
                stop_words=read_stop_words(self.stop_words, spaces if self.tokens else words),
                like=None if self.like is None else Archive.open(self.like),
                shuffle=self.shuffle,
                on_progress=lambda doing, n: status.show(f"{doing}   {n:,} documents"),
            )
        print_facts(archive.facts, self.json)


class Info(Command):
    """Say what is in an archive, one tab-separated fact a line."""

    archive: Annotated[Path, Argument("A folder that build has made.", metavar="ARCHIVE")]
    verify: Annotated[bool, Input("Read all of it and compare checksums.")] = False
    json: JsonOption = False

    def run(self) -> None:
        from softcount.text.archive import Archive

        found = Archive.open(self.archive)
        if self.verify:
            found.verify()
        print_facts(found.facts, self.json)


def print_facts(facts: ArchiveFacts, as_json: bool) -> None:
    """What is in an archive: as JSON, or one tab-separated fact a line."""
    summary = {
        "documents": facts.n_documents,
        "words": facts.n_words,
        "tokens": int(facts.tokens) if facts.tokens.is_integer() else facts.tokens,
        "entries": facts.n_entries,
        "shards": len(facts.shards) - 1,
        "bytes": sum(size for size, _ in facts.files.values()),
        "cut": facts.vectorizer and facts.vectorizer.get("analyzer"),
        **facts.wanted,
        "shuffle": facts.shuffle,
    }
    if as_json:
        whole = summary | {"sources": dict(facts.sources)}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=1))
        return
    for name, value in summary.items():
        if value is not None:
            typer.echo(f"{name}\t{value}")
    for name, lines in facts.sources:
        typer.echo(f"source\t{name}\t{lines}")


group = make_group(
    "Count the words of documents once and keep the counts on disk: an archive, for corpora that "
    "are larger than memory.",
    {"build": Build, "info": Info},
)
