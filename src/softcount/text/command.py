"""``softcount corpus``: word counts of documents on disk, for corpora larger than memory."""

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
    """Count the words of every line and store the counts in a folder, the archive.

    The files are read once, in bounded memory however long they are. A blank line is an empty
    document. The folder appears only when it is complete. Prints the same facts as corpus info.

    \b
    softcount corpus build texts.txt more.txt.gz -o texts.archive --min-count 5 --max-share .3
    softcount corpus build new.txt -o new.archive --like texts.archive
    zcat *.gz | softcount corpus build - -o all.archive --shuffle 0
    """

    files: Annotated[
        list[str],
        Argument("Text files with one document per line, plain or .gz; - is stdin."),
    ]
    output: Annotated[
        Path,
        Output(
            "The folder to create; it must not exist yet.",
            "-o",
            "--output",
            metavar="ARCHIVE",
            file=NEW_FOLDER,
        ),
    ]
    max_words: Annotated[
        int | None,
        Input("Keep at most this many words: those that occur in the most lines.", least=1),
    ] = None
    like: Annotated[
        Path | None,
        Input(
            "Use the vocabulary and the tokenisation of this archive: for new documents that a "
            "model fitted to it will see.",
            metavar="ARCHIVE",
        ),
    ] = None
    shuffle: Annotated[
        int | None,
        Input(
            "Store the documents in random order, so that a mini-batch is one contiguous read; "
            "their line numbers are kept.",
            metavar="SEED",
            least=0,
        ),
    ] = None
    json: JsonOption = False

    def check(self) -> None:
        if self.like is not None:
            names = ("min_count", "max_share", "max_words", "stop_words")
            self.refuse("--like", names, "that archive determines the vocabulary")

    def run(self) -> None:
        # check first: building may take hours
        for number, file in enumerate(self.files):
            if file in self.files[:number]:
                raise DataError(f"{file} is given twice", "give each file once")
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
                on_progress=lambda stage, n: status.show(f"{stage}   {n:,} documents"),
            )
        print_facts(archive.facts, self.json)


class Info(Command):
    """Describe an archive, one tab-separated fact per line."""

    archive: Annotated[
        Path, Argument("A folder written by softcount corpus build.", metavar="ARCHIVE")
    ]
    verify: Annotated[bool, Input("Read all files and verify their checksums.")] = False
    json: JsonOption = False

    def run(self) -> None:
        from softcount.text.archive import Archive

        archive = Archive.open(self.archive)
        if self.verify:
            archive.verify()
        print_facts(archive.facts, self.json)


def print_facts(facts: ArchiveFacts, as_json: bool) -> None:
    """Print the facts about an archive as JSON, or one tab-separated fact per line."""
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
    "Count the words of documents once and store the counts on disk as an archive, for corpora "
    "larger than memory.",
    {"build": Build, "info": Info},
)
