"""``softcount corpus``: corpora on disk, for data larger than memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcount.cli.frame import Command, make_group
from softcount.cli.options import Argument, Input, Output, WordOptions
from softcount.cli.reading import (
    name_source,
    open_sentences,
    parse_item,
    read_lines,
    read_stop_words,
)
from softcount.cli.status import StatusLine
from softcount.cli.targets import NEW_FOLDER, PLAIN
from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.text.archive import Archive, ArchiveFacts
    from softcount.text.disk import CorpusFacts

JsonOption = Annotated[bool, Output("Print one JSON object.")]
CorpusArgument = Annotated[
    Path, Argument("A folder written by softcount corpus build.", metavar="CORPUS")
]


# reading


def read_whole_lines(file: str) -> Iterator[str]:
    """Yield the lines of a file."""
    return (text for _, text in read_lines(file))


def read_sentences(file: str) -> Iterator[Any]:
    """Yield every line, or the words of every sentence of CoNLL-U."""
    form, pieces = open_sentences(file, None)
    if form == "lines":
        yield from _decode(pieces, file)
        return
    from softcount.text import conllu

    for part in conllu.parts(pieces, name_source(file)):
        text = part.sequences()
        yield from (text.sentence(n) for n in range(len(text)))


def read_tagged(file: str, column: str | None) -> Iterator[Any]:
    """Yield every line of word/TAG, or the words and tags of every sentence of CoNLL-U."""
    form, pieces = open_sentences(file, None)
    if form == "lines":
        yield from _decode(pieces, file)
        return
    from softcount.text import conllu

    for part in conllu.parts(pieces, name_source(file)):
        text = part.tagged(column or "upos")
        yield from (text.sentence(n) for n in range(len(text)))


def _decode(pieces: Iterator[bytes], file: str) -> Iterator[str]:
    from softcount.text.lines import decode_text, strip_mark

    before, source = 0, name_source(file)
    for piece in strip_mark(pieces):
        text = decode_text(piece, lambda n, before=before: f"{source}:{before + n + 1}")  # type: ignore[misc]
        lines = text.removesuffix("\n").split("\n")
        yield from lines
        before += len(lines)


def read_two_files(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of two parallel files."""
    lines = zip_longest(read_lines(source), read_lines(target))
    for one, other in lines:
        if one is None or other is None:
            n = (one or other)[0] - 1
            shorter, longer = (source, target) if one is None else (target, source)
            raise DataError(
                f"{shorter} has {n:,} lines, and {longer} has more",
                "line n of one file must be the translation of line n of the other",
            )
        yield one[1], other[1]


def read_trees(file: str) -> Iterator[str | None]:
    """Yield trees in Penn brackets: one on a line (None for a blank line), or over several lines.

    The first line that is not blank decides which.
    """
    open_lines: list[str] = []
    depth, per_line = 0, None
    for number, line in read_lines(file):
        if per_line or not line.strip():
            if line.strip():
                yield line
            elif per_line:
                yield None
            continue
        depth += line.count("(") - line.count(")")
        if per_line is None:
            per_line = depth == 0
            if per_line:
                yield from [None] * (number - 1)
                yield line
                continue
        open_lines.append(line)
        if depth <= 0:
            yield "\n".join(open_lines)
            open_lines, depth = [], 0
    if open_lines:
        yield "\n".join(open_lines)


def read_vectors(file: str) -> Iterator[Any]:
    """Yield the rows of an .npy file, which is not read at once, or of lines of numbers.

    Numbers are separated by commas, semicolons, tabs or spaces; a blank line is an empty sequence.
    """
    if file.endswith(".npy"):
        yield from _map_array(file)
        return
    for number, line in read_lines(file):
        fields = line.replace(",", " ").replace(";", " ").split()
        try:
            row = [float(field) for field in fields]
        except ValueError:
            odd = next(field for field in fields if not _is_number(field))
            raise DataError(
                f"{file}:{number}: {brief(odd)} is not a number",
                "give lines of numbers, without a header, or an .npy file",
            ) from None
        if not all(map(math.isfinite, row)):
            raise DataError(f"{file}:{number}: {brief(line)} has no finite numbers", "leave it out")
        yield row


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _map_array(file: str) -> Any:
    import numpy as np

    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{file} has no array of numbers: {error}", "see numpy.save") from error
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiu":
        raise DataError(
            f"{file} has an array of {array.dtype} of the shape {array.shape}",
            "give numbers (points, dimensions), or (sequences, length, dimensions)",
        )
    return array


def read_items(file: str, form: str, arguments: int) -> Iterator[Any]:
    """Yield the items of a story, one on every line."""
    for number, line in read_lines(file):
        item = parse_item(line, f"{file}:{number}", form, arguments)
        if item is None:
            raise DataError(
                f"{file}:{number} is blank", "a corpus of items has an item on every line"
            )
        yield item


# building


@dataclass(frozen=True)
class Kind:
    """How the files of a kind of corpus are read.

    ``read``     function from a command's options and a file to the items in it
    ``options``  those that this kind has, besides FILES and --output
    ``builds``   the options among these that the builder takes, rather than the reader
    """

    read: Callable[[Build, str], Iterator[Any]]
    options: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()


OF_DOCUMENTS = (
    *("tokens", "stop_words", "min_count", "max_share"),
    *("max_words", "like", "shuffle"),
)
READERS = {
    "documents": Kind(lambda _, file: read_whole_lines(file), OF_DOCUMENTS),
    "sentences": Kind(lambda _, file: read_sentences(file), ("lowercase",), ("lowercase",)),
    "tagged": Kind(
        lambda options, file: read_tagged(file, options.column),
        ("lowercase", "separator", "column"),
        ("lowercase", "separator"),
    ),
    "pairs": Kind(
        lambda _, file: read_whole_lines(file), ("lowercase", "source", "target"), ("lowercase",)
    ),
    "trees": Kind(lambda _, file: read_trees(file)),
    "vectors": Kind(lambda _, file: read_vectors(file), ("dtype",), ("dtype",)),
    "items": Kind(
        lambda options, file: read_items(file, options.form, options.arguments),
        ("form", "arguments"),
    ),
}
"""The choices of ``--kind``; their builders stand in `softcount.text.corpora.KINDS`."""


class Build(WordOptions, Command):
    """Write data to a folder, a corpus, from which models learn though it is larger than memory.

    Commands take the folder where they take a file. Of documents the words of every line are
    counted; other items are stored as they are. The files are read once, in bounded memory however
    long they are, and the folder appears only when it is complete. A blank line is an empty item,
    so that answers match the lines. Prints the same facts as corpus info.

    \b
    softcount corpus build texts.txt more.txt.gz -o texts.corpus --min-count 5 --max-share .3
    softcount corpus build new.txt -o new.corpus --like texts.corpus
    zcat *.gz | softcount corpus build - -o all.corpus --kind sentences
    softcount corpus build -s corpus.fr -t corpus.en -o fr-en.corpus --kind pairs
    softcount corpus build points.npy -o points.corpus --kind vectors
    """

    files: Annotated[
        list[str] | None,
        Argument(
            "Files with one item per line, plain or .gz; - is stdin. Sentences and tagged "
            "sentences may be CoNLL-U; trees may extend over several lines; vectors are lines of "
            "numbers (CSV), or .npy files."
        ),
    ] = None
    output: Annotated[
        Path,
        Output(
            "The folder to create; it must not exist yet.",
            "-o",
            "--output",
            metavar="FOLDER",
            file=NEW_FOLDER,
        ),
    ]
    kind: Annotated[
        str,
        Input(
            "What the items are. documents: word counts, for cluster and topics. sentences: for "
            "tag and grammar. tagged: word/TAG. pairs: source ||| target, for align. trees: Penn "
            "brackets. vectors: points, for cluster. items: of a story, JSON lines.",
            choices=tuple(READERS),
        ),
    ] = "documents"
    max_words: Annotated[
        int | None,
        Input(
            "documents: keep at most this many words: those that occur in the most lines.", least=1
        ),
    ] = None
    like: Annotated[
        Path | None,
        Input(
            "documents: use the vocabulary and the tokenisation of this corpus: for new documents "
            "that a model fitted to it will see.",
            metavar="FOLDER",
        ),
    ] = None
    shuffle: Annotated[
        int | None,
        Input(
            "documents: store them in random order, so that a mini-batch is one contiguous read; "
            "their line numbers are kept.",
            metavar="SEED",
            least=0,
        ),
    ] = None
    lowercase: Annotated[bool, Input("sentences, tagged, pairs: lower-case all words.")] = False
    separator: Annotated[
        str,
        Input("tagged: separator between a word and its tag.", metavar="TEXT", file=PLAIN),
    ] = "/"
    column: Annotated[
        str | None,
        Input(
            "tagged, CoNLL-U: the column of tags: upos (the default), xpos, or a key in MISC.",
            metavar="NAME",
            file=PLAIN,
        ),
    ] = None
    source: Annotated[
        str | None, Input("pairs: source sentences, one per line.", "-s", "--source")
    ] = None
    target: Annotated[
        str | None, Input("pairs: target sentences, line by line.", "-t", "--target")
    ] = None
    dtype: Annotated[
        str,
        Input(
            "vectors: float64, or float32, which takes half the space.",
            choices=("float64", "float32"),
        ),
    ] = "float64"
    form: Annotated[
        str,
        Input(
            "items: a line is a JSON value, words split at spaces (tokens), or characters.",
            choices=("json", "tokens", "chars"),
        ),
    ] = "json"
    arguments: Annotated[
        int,
        Input(
            "items: number of arguments of the story. If there are several, a JSON array gives "
            "them all; elsewhere ||| separates them.",
            least=1,
        ),
    ] = 1
    json: JsonOption = False

    def check(self) -> None:
        own = READERS[self.kind].options
        others = {name for kind in READERS.values() for name in kind.options}.difference(own)
        meant = [kind for kind, reader in READERS.items() if others.intersection(reader.options)]
        self.refuse(f"--kind {self.kind}", [*others], f"it is for {' or '.join(meant)}")
        if self.like is not None:
            names = ("min_count", "max_share", "max_words", "stop_words")
            self.refuse("--like", names, "that corpus determines the vocabulary")
        if (self.source is None) != (self.target is None):
            raise typer.BadParameter("-s and -t go together: a file for each language")
        if self.source is not None and (self.files or "-" in (self.source, self.target)):
            raise typer.BadParameter("give the pairs once: files, or -s FILE -t FILE")
        if self.source is None and not self.files:
            raise typer.BadParameter("nothing to read: give FILES, or - for stdin")

    def run(self) -> None:
        files = self.files or [str(self.source), str(self.target)]
        # check first: building may take hours
        for number, file in enumerate(files):
            if file in files[:number] and self.files:
                raise DataError(f"{file} is given twice", "give each file once")
            if file != "-" and not Path(file).exists():
                raise DataError(f"{file}: there is no such file", "check the name")
            if Path(file).is_dir():
                raise DataError(f"{file} is a folder", "give the files in it")
        with StatusLine() as status:
            status.show(f"reading {files[0]}")
            data: Mapping[str, Iterator[Any]]
            if self.source is not None and self.target is not None:
                data = {self.source: read_two_files(self.source, self.target)}
            else:
                read = READERS[self.kind].read
                data = {file: read(self, file) for file in files}
            if self.kind == "documents":
                print_facts(self._count_documents(data, status).facts, self.json)
                return
            from softcount.text.corpora import build_corpus

            options = {name: getattr(self, name) for name in READERS[self.kind].builds}
            build_corpus(
                data,
                self.output,
                self.kind,
                on_progress=lambda n: status.show(f"{n:,} {self.kind}"),
                **options,
            )
        describe_corpus(self.output, self.json)

    def _count_documents(self, data: Mapping[str, Any], status: StatusLine) -> Archive:
        from softcount.text.archive import Archive
        from softcount.text.tokenise import spaces, words

        return Archive.build(
            data,
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


class Info(Command):
    """Describe a corpus, one tab-separated fact per line."""

    corpus: CorpusArgument
    verify: Annotated[bool, Input("Read all files and verify their checksums.")] = False
    json: JsonOption = False

    def run(self) -> None:
        describe_corpus(self.corpus, self.json, verify=self.verify)


def describe_corpus(path: Path, as_json: bool, *, verify: bool = False) -> None:
    """Print the facts about a corpus of any kind, after verifying its checksums, if wanted."""
    from softcount.text.corpora import kind_of, open_corpus

    with StatusLine() as status:
        status.show(f"verifying {path}" if verify else f"opening {path}")
        if kind_of(path) == "documents":
            from softcount.text.archive import Archive

            archive = Archive.open(path)
            if verify:
                archive.verify()
            facts = archive.facts
        else:
            from softcount.text.disk import CorpusFolder

            open_corpus(path)  # checks that lengths and names fit
            corpus = CorpusFolder.open(path)
            if verify:
                corpus.verify()
            names = {name: len(corpus.read_names(name)) for name in corpus.facts.names}
    if kind_of(path) == "documents":
        print_facts(facts, as_json)
    else:
        print_other_facts(corpus.facts, names, as_json)


def print_other_facts(facts: CorpusFacts, names: Mapping[str, int], as_json: bool) -> None:
    """Print the facts about a corpus other than documents.

    ``names``  how many names there are in each list of them
    """
    rows = {name: sum(column.rows) for name, column in facts.columns.items()}
    summary: dict[str, Any] = {
        "kind": facts.kind,
        "items": facts.n_items,
        **{f"distinct {name.replace('_', ' ')}": n for name, n in names.items()},
        **{
            name.replace("_", " "): n
            for name, n in rows.items()
            if not name.endswith(("lengths", "sizes"))
        },
        "shards": len(facts.shards),
        "bytes": facts.n_bytes,
        **facts.about,
    }
    for column in facts.columns.values():
        if column.shape:
            summary["dimensions"] = column.shape[0]
    _print_summary(summary, facts.sources, as_json)


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
    _print_summary(summary, facts.sources, as_json)


def _print_summary(
    summary: Mapping[str, Any], sources: Sequence[tuple[str, int]], as_json: bool
) -> None:
    if as_json:
        whole = {**summary, "sources": dict(sources)}
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=1))
        return
    for name, value in summary.items():
        if value is not None:
            typer.echo(f"{name}\t{value}")
    for name, lines in sources:
        typer.echo(f"source\t{name}\t{lines}")


group = make_group(
    "Write data to a folder, a corpus, from which models learn though it is larger than memory.",
    {"build": Build, "info": Info},
)
