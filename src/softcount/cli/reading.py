"""Input files of the commands: items of a story, texts, points, gold classes, sentences (one per
line, or CoNLL-U) and sentence pairs; read as a whole, or streamed."""

from __future__ import annotations

import codecs
import gzip
import json
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from softcount.core.errors import DataError, brief

if TYPE_CHECKING:
    from softcount.text.bitext import Bitext
    from softcount.text.conllu import ConlluFile
    from softcount.text.sequences import Sequences
    from softcount.text.tagged import Tagged

SEPARATOR = "|||"
UNKNOWN = ("", "-1")
"""Spellings of an unknown class."""
STDIN = "standard input"
READ_CORPORA = "corpora on disk are read by cluster, topics, align, tag, grammar, parse and story"
CONLLU_TABS = 5
"""A line of CoNLL-U has nine tabs; one with at least this many is taken for CoNLL-U, perhaps
damaged, rather than for plain text."""


def open_folder(path: str | None, *kinds: str) -> Any:
    """Open the corpus on disk that an argument names; None if it does not name a folder.

    ``kinds``  what the command reads; raise if the corpus is of another kind
    """
    if path is None or path == "-" or not os.path.isdir(path):
        return None
    from softcount.text.corpora import kind_of, open_corpus

    kind = kind_of(path)
    if kind not in kinds:
        raise DataError(
            f"{path} is a corpus of {kind}; here {' or '.join(kinds)} are read",
            f"softcount corpus build FILE -o FOLDER --kind {kinds[0]}",
        )
    return open_corpus(path)


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Read the lines of a file (``-``: standard input; ``.gz`` is unpacked), numbered from 1."""
    number = 0
    with _readable_faults(path, lambda: f"{path}:{number + 1}"), _open_bytes(path) as stream:
        try:
            for number, raw in enumerate(stream, 1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: this line is not UTF-8 text ({error.reason})",
                hint="convert the file to UTF-8",
            ) from error


def stream_blocks(path: str) -> Iterator[list[bytes]]:
    """Read a file like `read_lines`, but in blocks of all the lines that have arrived."""
    from softcount.text.lines import read_whole_lines

    with _readable_faults(path, lambda: path), _open_bytes(path) as stream:
        for piece in read_whole_lines(stream):  # type: ignore[arg-type]  # it can read1
            yield piece.removesuffix(b"\n").split(b"\n")


@contextmanager
def _readable_faults(path: str, where: Callable[[], str]) -> Iterator[None]:
    """Turn errors of reading into a `DataError`; ``where`` returns the place of the error."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{where()}: the file cannot be unpacked ({error})",
            hint="is it really a .gz file, and complete?",
        ) from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder", hint=f"give a file; {READ_CORPORA}") from error
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror}", hint="check the name and the permissions"
        ) from error


def _open_bytes(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)  # streamed, and left open
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


@dataclass(frozen=True)
class Line:
    """An item and its line number; the item of a blank line is None."""

    number: int
    item: Any

    @property
    def blank(self) -> bool:
        return self.item is None


def read_items(path: str, form: str, arguments: int) -> list[Line]:
    """Read all lines of a file (``-``: standard input; ``.gz`` is unpacked) as items of a story.

    ``form``       how a line is split into an item: tokens, chars or json
    ``arguments``  number of arguments of the story: if there are several, a JSON array gives all of
                   them; if there is one, the array itself is the item
    """
    return [
        Line(number, parse_item(text, f"{path}:{number}", form, arguments))
        for number, text in read_lines(path)
    ]


def parse_item(text: str, place: str, form: str, arguments: int) -> Any:
    """Return the item of a story on a line, None if it is blank; see `read_items`."""
    if not text.strip():
        return None
    if form == "json":
        try:
            item = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON: {error}", hint="one JSON value a line") from error
        if arguments == 1:
            return item
        if not isinstance(item, list) or len(item) != arguments:
            raise DataError(
                f"{place}: the story takes {arguments} arguments",
                hint=f"write a JSON array of {arguments} values on every line",
            )
        return tuple(item)
    parts = [part.strip() for part in text.split(SEPARATOR)]
    if len(parts) != arguments:
        raise DataError(
            f"{place}: the story takes {arguments} argument{'s' * (arguments > 1)}, "
            f"this line has {len(parts)}",
            hint=f"separate the arguments with {SEPARATOR}",
        )
    items = parts if form == "chars" else [part.split() for part in parts]
    return items[0] if arguments == 1 else tuple(items)


@dataclass(frozen=True)
class WordFilter:
    """Selection of words: those in enough lines, not in too many, and not among the stop words."""

    min_count: int = 1
    max_share: float = 1.0
    stop_words: str | None = None

    @property
    def fewer(self) -> str:
        """Hint how to select fewer words on the command line."""
        if (self.min_count, self.max_share) == (1, 1.0):
            return "fewer words (--min-count 2 --max-share .1)"
        return f"fewer words (now --min-count {self.min_count} --max-share {self.max_share:g})"


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a file, and the items in them.

    ``texts``  every line, unchanged
    ``items``  the input of a model: texts, or an array of points
    ``where``  the line index of each item
    ``on_disk``  whether the items are a corpus on disk, of which ``texts`` are the lines' names
    """

    texts: Sequence[str]
    items: Any
    where: Sequence[int]
    on_disk: bool = False

    def require_lines(self, path: str) -> None:
        """Raise if there is nothing to learn from."""
        if not any(text.strip() for text in self.texts):
            fault = "the file is empty, or all its lines are"
            raise DataError(f"{path}: {fault}", "give one document per line")


def read_texts(path: str) -> Lines:
    """Read every line of a file as a document; blank lines are empty documents."""
    texts = [text for _, text in read_lines(path)]
    return Lines(texts, texts, range(len(texts)))


class ItemNames(Sequence[str]):
    """The names of the items of a corpus on disk, made on demand."""

    def __init__(self, corpus: Any) -> None:
        self._corpus = corpus

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, number: Any) -> Any:
        return self._corpus.name(number)


def open_items(path: str, kind: str) -> Lines | None:
    """Open the corpus of documents or vectors in a folder; None if it is not a folder."""
    corpus = open_folder(path, kind)
    if corpus is None:
        return None
    # documents may be in another order than the lines that they were built from
    where = corpus.origin if kind == "documents" else range(len(corpus))
    return Lines(ItemNames(corpus), corpus, where, on_disk=True)


def read_labelled(path: str) -> tuple[list[str], list[str]]:
    """Read labels and texts from a file with ``label TAB text`` on every line; skip blank lines."""
    labels, texts = [], []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            fault = "there is no label before the tab" if tab else "there is no tab in this line"
            raise DataError(f"{path}:{number}: {fault}", "write: label, tab, text")
        labels.append(label.strip())
        texts.append(text)
    if len(set(labels)) < 2:
        fault = f"every line has the label {labels[0]!r}" if labels else "the file is empty"
        raise DataError(f"{path}: {fault}", "give lines of at least two labels")
    return labels, texts


def read_points(path: str) -> Lines:
    """Read points, a line of numbers each; blank lines are skipped."""
    import numpy as np

    rows: list[list[float]] = []
    where, lines = [], []
    for number, line in read_lines(path):
        lines.append(line)
        fields = line.split()
        if not fields:
            continue
        rows.append([_read_number(field, f"{path}:{number}") for field in fields])
        where.append(number - 1)
        if len(fields) != len(rows[0]):
            raise DataError(
                f"{path}:{number}: {len(fields)} columns, while line {where[0] + 1} has "
                f"{len(rows[0])}",
                "give the same number of columns on every line",
            )
    return Lines(lines, np.array(rows, dtype=float), where)


def _read_number(field: str, place: str) -> float:
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"{place}: {brief(field)} is not a number",
            "this model reads columns of numbers, separated by tabs or spaces; "
            "for texts choose --model multinomial",
        )
    return value


def make_counter(texts: Sequence[str], tokens: bool, wanted: WordFilter) -> Any:
    """Make a vectorizer that counts the selected words of these texts, and that can be saved in
    model files."""
    from softcount.text.counter import WordCounter
    from softcount.text.tokenise import spaces, words

    tokenise = spaces if tokens else words
    if wanted == WordFilter():
        return WordCounter(tokenise)
    n_lines = Counter(word for text in texts for word in set(tokenise(text)))
    unwanted = read_stop_words(wanted.stop_words, tokenise)
    most = wanted.max_share * len(texts)
    kept = [
        word
        for word, n in n_lines.items()
        if wanted.min_count <= n <= most and word not in unwanted
    ]
    if not kept:
        raise DataError(
            f"none of the {len(n_lines)} words is left to learn from",
            "lower --min-count, raise --max-share, or shorten the --stop-words",
        )
    return WordCounter(tokenise, sorted(kept))


def read_stop_words(source: str | None, tokenise: Callable[[str], list[str]]) -> set[str]:
    """Read the words in a file, or scikit-learn's list for ``english``; none without a source."""
    if source is None:
        return set()
    if source != "english":
        return {word for _, text in read_lines(source) for word in tokenise(text)}
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # capitalised forms too, because splitting at spaces does not lower-case words
    return {form for word in ENGLISH_STOP_WORDS for form in (word, word.capitalize())}


def read_gold(path: str | None, file: str, n_lines: int) -> list[str | None] | None:
    """Read the gold class of each line of ``file`` (None: unknown); return None without a path."""
    if path is None:
        return None
    if path == file == "-":
        raise typer.BadParameter("only one file can be standard input")
    labels = read_line_by_line("--gold", path, file, n_lines, "class")
    if all(label in UNKNOWN for label in labels):
        raise DataError(
            f"--gold {path}: no line has a known class", "give at least one; -1 means unknown"
        )
    return [None if label in UNKNOWN else label for label in labels]


def read_line_by_line(option: str, path: str, file: str, n_lines: int, what: str) -> list[str]:
    """Read a file that has exactly one line for each line of another ``file``."""
    values = [text.strip() for _, text in read_lines(path)]
    if len(values) != n_lines:
        raise DataError(
            f"{option} {path}: {len(values):,} lines, while {file} has {n_lines:,}",
            f"give one {what} per line, in the same order; a blank line if it is unknown",
        )
    return values


@dataclass(frozen=True, eq=False)
class SentenceText:
    """Sentences to be tagged; ``conllu`` is the parsed file if it is in CoNLL-U format."""

    sequences: Sequences
    conllu: ConlluFile | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def parts(self) -> Iterator[SentenceText]:
        """Yield the sentences some thousand at a time, each part in memory; CoNLL-U as a whole."""
        from softcount.text.corpora import PART, in_parts

        if self.conllu is not None or len(self) <= PART:
            yield self
        else:
            yield from map(SentenceText, in_parts(self.sequences))

    def line(self, n: int) -> int:
        """Return the line number, from 1, of the first word of a sentence in its file."""
        numbers = self.sequences.numbers
        return (n if numbers is None else int(numbers[n])) + 1


def shape(head: bytes) -> str | None:
    r"""Guess the format of a file by its first line that is neither blank nor a comment; None if
    there is none.

    >>> shape(b"# text = it\n1\tit\t_\tPRON\t_\t_\t_\t_\t_\t_\n"), shape(b"it rains")
    ('conllu', 'lines')
    """
    for line in head.removeprefix(codecs.BOM_UTF8).split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            is_conllu = line.count(b"\t") >= CONLLU_TABS and line[:1].isdigit()
            return "conllu" if is_conllu else "lines"
    return None


def read_text(path: str, form: str | None) -> SentenceText:
    """Read all sentences of a file, or open those of a corpus on disk."""
    from softcount.text import conllu, sequences
    from softcount.text.lines import strip_mark

    corpus = open_folder(path, "sentences")
    if corpus is not None:
        return SentenceText(corpus)
    form, pieces = open_sentences(path, form)
    if form == "conllu":
        file = conllu.from_pieces(pieces, name_source(path))
        return SentenceText(file.sequences(), file)
    return SentenceText(sequences.from_pieces(strip_mark(pieces), name_source(path)))


def stream_text(path: str, form: str | None) -> Iterator[SentenceText]:
    """Stream sentences, in blocks of all those that have arrived."""
    from softcount.text import conllu, sequences
    from softcount.text.lines import strip_mark

    corpus = open_folder(path, "sentences")
    if corpus is not None:
        from softcount.text.corpora import in_parts

        yield from map(SentenceText, in_parts(corpus))
        return
    form, pieces = open_sentences(path, form)
    if form == "conllu":
        for file in conllu.parts(pieces, name_source(path)):
            yield SentenceText(file.sequences(), file)
        return
    before = 0
    for piece in strip_mark(pieces):
        text = SentenceText(sequences.from_pieces([piece], name_source(path), before))
        yield text
        before += len(text)


def read_tags(path: str, column: str | None, separator: str) -> Tagged:
    """Read tagged sentences, from lines of word/TAG or from CoNLL-U, or open those on disk."""
    from softcount.text import conllu, tagged
    from softcount.text.lines import strip_mark

    corpus: Tagged | None = open_folder(path, "tagged")
    if corpus is not None:
        return corpus
    form, pieces = open_sentences(path, None)
    if form == "conllu":
        return conllu.from_pieces(pieces, name_source(path)).tagged(column or "upos")
    return tagged.from_pieces(strip_mark(pieces), name_source(path), separator=separator)


def open_sentences(path: str, form: str | None) -> tuple[str, Iterator[bytes]]:
    """Guess the format of a file; return the format and an iterator over the pieces of the file.

    Both at once, because a pipe can be read only once.
    """
    pieces = read_pieces(path)
    if form is None and path.removesuffix(".gz").endswith(".conllu"):
        form = "conllu"
    head = b""
    while form is None and (piece := next(pieces, b"")):
        head += piece
        form = shape(head)
    return form or "lines", chain([head] if head else [], pieces)


def read_pieces(path: str) -> Iterator[bytes]:
    """Read a file (-: standard input) in pieces of whole lines."""
    from softcount.text.lines import open_lines, read_whole_lines

    if path != "-":
        with open_lines(path) as file:
            yield from read_whole_lines(file)
    elif sys.stdin is None:
        raise DataError("standard input is closed", "give a file")
    else:
        try:
            yield from read_whole_lines(sys.stdin.buffer)  # type: ignore[arg-type]  # it can read1
        except OSError as error:
            raise DataError(f"{STDIN} cannot be read: {error.strerror}", "give a file") from error


def name_source(path: str) -> str:
    """Return the name of a file for use in messages."""
    return STDIN if path == "-" else path


@dataclass(frozen=True)
class PairFiles:
    """The files of sentence pairs: one with lines ``source ||| target``, or two parallel files."""

    joint: str | None
    source: str | None = None
    target: str | None = None

    @classmethod
    def given(
        cls, file: str | None, other: str | None, source: str | None, target: str | None
    ) -> PairFiles:
        """Make it from the options FILE (or -i), -s and -t; without any, read standard input."""
        if (source is None) != (target is None):
            raise typer.BadParameter("-s and -t go together: a file for each language")
        if sum(name is not None for name in (file, other, source)) > 1:
            raise typer.BadParameter("give the pairs once: one file, or -s FILE -t FILE")
        if source is not None and "-" in (source, target):
            raise typer.BadParameter("-s and -t are files; on stdin, give lines source ||| target")
        joint = file if other is None else other
        if joint is None and source is None:
            if sys.stdin.isatty():
                raise typer.BadParameter("no sentence pairs: give a file, or - to type them")
            joint = "-"
        return cls(joint, source, target)

    @property
    def is_stdin(self) -> bool:
        return self.joint == "-"

    @property
    def called(self) -> str:
        """Name of the pairs in messages."""
        if self.joint is None:
            return f"{self.source} and {self.target}"
        return STDIN if self.is_stdin else self.joint

    def read(self, lowercase: bool = False) -> Bitext:
        """Read all pairs, or open those of a corpus on disk."""
        from softcount.text.bitext import as_bitext, read_bitext, stream_pairs

        corpus = open_folder(self.joint, "pairs")
        if corpus is not None:
            return as_bitext(corpus, lowercase=lowercase)
        if self.joint is None:
            assert self.source is not None
            return read_bitext(self.source, self.target, lowercase=lowercase)
        if not self.is_stdin:
            return read_bitext(self.joint, lowercase=lowercase)
        lines = (line for block in stream_blocks("-") for line in block)
        for pairs in stream_pairs(lines, sys.maxsize, lowercase=lowercase, origin=STDIN):
            return pairs
        raise DataError(f"no pairs in {STDIN}", "give at least one")

    def stream(self) -> Iterator[Bitext]:
        """Stream the pairs of one file, in blocks of all those that have arrived.

        If a line is invalid, the pairs before it are still yielded before the error is raised.
        """
        from softcount.text.bitext import stream_pairs

        assert self.joint is not None
        corpus = open_folder(self.joint, "pairs")
        if corpus is not None:
            from softcount.text.corpora import in_parts

            yield from in_parts(corpus)
            return
        before = 0
        for lines in stream_blocks(self.joint):
            where: dict[str, Any] = {"origin": self.called, "before": before}
            try:
                pairs = next(stream_pairs(lines, len(lines), **where))
            except DataError:
                yield from stream_pairs(lines, 1, **where)
                raise
            yield pairs
            before += len(lines)


def shapes_of(pairs: Bitext) -> list[tuple[int, int]]:
    """Return the numbers of source and target words of each pair."""
    lengths = pairs.source.lengths.tolist(), pairs.target.lengths.tolist()
    return list(zip(*lengths, strict=True))
