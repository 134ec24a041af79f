"""What commands read: lines of files as items of a story, texts, points, known classes, sentences
(one a line, or CoNLL-U) and pairs of them; whole files, and as they come."""

from __future__ import annotations

import codecs
import gzip
import json
import math
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
"""What stands for a class that is not known."""
STDIN = "standard input"
CONLLU_TABS = 5
"""A line of CoNLL-U has nine; one with so many is a damaged one rather than plain text."""


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
    """Read a file as `read_lines` does, but all lines that have arrived at a time."""
    from softcount.text.lines import read_whole_lines

    with _readable_faults(path, lambda: path), _open_bytes(path) as stream:
        for piece in read_whole_lines(stream):  # type: ignore[arg-type]  # it can read1
            yield piece.removesuffix(b"\n").split(b"\n")


@contextmanager
def _readable_faults(path: str, where: Callable[[], str]) -> Iterator[None]:
    """Turn errors of reading into a `DataError`; ``where``: how far the file could be read."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{where()}: the file cannot be unpacked ({error})",
            hint="is it really a .gz file, and complete?",
        ) from error
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror}", hint="check the name and your rights"
        ) from error


def _open_bytes(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)  # read as it comes, and left open
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


@dataclass(frozen=True)
class Line:
    """An item and where it came from; blank lines have no item."""

    number: int
    item: Any

    @property
    def blank(self) -> bool:
        return self.item is None


def read_items(path: str, form: str, arguments: int) -> list[Line]:
    """Read all lines of a file (``-``: standard input; ``.gz`` is unpacked), as items.

    ``form``       how a line is cut into an item: tokens, chars or json
    ``arguments``  how many arguments the story takes: a JSON array gives all of them if there are
                   several, and is itself the item if there is one
    """
    lines = []
    for number, text in read_lines(path):
        item: Any = None
        place = f"{path}:{number}"
        if text.strip() and form == "json":
            try:
                item = json.loads(text)
            except (ValueError, RecursionError) as error:
                fault = f"{place}: not JSON: {error}"
                raise DataError(fault, hint="one JSON value a line") from error
            if arguments > 1:
                if not isinstance(item, list) or len(item) != arguments:
                    raise DataError(
                        f"{place}: the story takes {arguments} arguments",
                        hint=f"write a JSON array of {arguments} values on every line",
                    )
                item = tuple(item)
        elif text.strip():
            parts = [part.strip() for part in text.split(SEPARATOR)]
            if len(parts) != arguments:
                raise DataError(
                    f"{place}: the story takes {arguments} argument{'s' * (arguments > 1)}, "
                    f"this line has {len(parts)}",
                    hint=f"separate the arguments by {SEPARATOR}",
                )
            items = parts if form == "chars" else [part.split() for part in parts]
            item = items[0] if arguments == 1 else tuple(items)
        lines.append(Line(number, item))
    return lines


@dataclass(frozen=True)
class WordFilter:
    """Which words count: those in enough lines, not in too many, and not on a list of others."""

    min_count: int = 1
    max_share: float = 1.0
    stop_words: str | None = None

    @property
    def fewer(self) -> str:
        """Say how to ask for fewer words than these, on the command line."""
        if (self.min_count, self.max_share) == (1, 1.0):
            return "fewer words (--min-count 2 --max-share .1)"
        return f"fewer words (now --min-count {self.min_count} --max-share {self.max_share:g})"


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a file, and what a model makes of them.

    ``texts``  every line as it stands
    ``items``  texts, or an array of points: what models take
    ``where``  the index of each item's line
    """

    texts: Sequence[str]
    items: Any
    where: Sequence[int]

    def demand_some(self, path: str) -> None:
        """Raise if there is nothing to learn from."""
        if not any(text.strip() for text in self.texts):
            fault = "the file is empty, or all its lines are"
            raise DataError(f"{path}: {fault}", "one document a line")


def read_texts(path: str) -> Lines:
    """Read every line of a file, blank ones too: those are empty documents."""
    texts = [text for _, text in read_lines(path)]
    return Lines(texts, texts, range(len(texts)))


def read_labelled(path: str) -> tuple[list[str], list[str]]:
    """Read labels and texts of a file with ``label TAB text`` on every line; skip blank lines."""
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
        found = f"every line has the label {labels[0]!r}" if labels else "the file is empty"
        raise DataError(f"{path}: {found}", "give lines of at least two labels")
    return labels, texts


def read_points(path: str) -> Lines:
    """Read numbers in columns; blank lines are no items."""
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
                "give the same columns on every line",
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
    """Make what counts the words of these texts: a vectorizer that model files can describe."""
    from sklearn.feature_extraction.text import CountVectorizer

    from softcount.text.tokenise import spaces, words

    cut = spaces if tokens else words
    if wanted == WordFilter():
        return CountVectorizer(analyzer=cut)
    n_lines = Counter(word for text in texts for word in set(cut(text)))
    unwanted = read_stop_words(wanted.stop_words, cut)
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
    return CountVectorizer(analyzer=cut, vocabulary=sorted(kept))


def read_stop_words(source: str | None, cut: Callable[[str], list[str]]) -> set[str]:
    """Read the words in a file, or scikit-learn's list for ``english``; none without a source."""
    if source is None:
        return set()
    if source != "english":
        return {word for _, text in read_lines(source) for word in cut(text)}
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # capitals too, for what cuts at spaces keeps them
    return {form for word in ENGLISH_STOP_WORDS for form in (word, word.capitalize())}


def read_gold(path: str | None, file: str, n_lines: int) -> list[str | None] | None:
    """Read the gold class of each line of ``file``, None if it is unknown; None without a path."""
    if path is None:
        return None
    if path == file == "-":
        raise typer.BadParameter("only one file can be standard input")
    labels = read_line_by_line("--gold", path, file, n_lines, "class")
    if all(label in UNKNOWN for label in labels):
        raise DataError(
            f"--gold {path}: no line has a known class", "give at least one; -1 is unknown"
        )
    return [None if label in UNKNOWN else label for label in labels]


def read_line_by_line(option: str, path: str, file: str, n_lines: int, what: str) -> list[str]:
    """Read the lines of a file that has one for each line of another."""
    values = [text.strip() for _, text in read_lines(path)]
    if len(values) != n_lines:
        raise DataError(
            f"{option} {path}: {len(values):,} lines, while {file} has {n_lines:,}",
            f"give one {what} a line, in the same order; a blank line where it is unknown",
        )
    return values


@dataclass(frozen=True, eq=False)
class SentenceText:
    """Sentences to be tagged; ``conllu`` is their file, if it is one of CoNLL-U."""

    sequences: Sequences
    conllu: ConlluFile | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def line(self, n: int) -> int:
        """Return where a sentence is in its file, from 1 on: the line of its first word."""
        numbers = self.sequences.numbers
        return (n if numbers is None else int(numbers[n])) + 1


def shape(head: bytes) -> str | None:
    r"""Tell the format of lines by the first one that is no comment; None if there is none.

    >>> shape(b"# text = it\n1\tit\t_\tPRON\t_\t_\t_\t_\t_\t_\n"), shape(b"it rains")
    ('conllu', 'lines')
    """
    for line in head.removeprefix(codecs.BOM_UTF8).split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            words = line.count(b"\t") >= CONLLU_TABS and line[:1].isdigit()
            return "conllu" if words else "lines"
    return None


def read_text(path: str, form: str | None) -> SentenceText:
    """Read all sentences of a file."""
    from softcount.text import conllu, sequences
    from softcount.text.lines import strip_mark

    form, pieces = _open_sentences(path, form)
    if form == "conllu":
        file = conllu.from_pieces(pieces, name_source(path))
        return SentenceText(file.sequences(), file)
    return SentenceText(sequences.from_pieces(strip_mark(pieces), name_source(path)))


def stream_text(path: str, form: str | None) -> Iterator[SentenceText]:
    """Read sentences as they come: all that have arrived at a time."""
    from softcount.text import conllu, sequences
    from softcount.text.lines import strip_mark

    form, pieces = _open_sentences(path, form)
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
    """Read sentences with tags, from lines word/TAG or from CoNLL-U."""
    from softcount.text import conllu, tagged
    from softcount.text.lines import strip_mark

    form, pieces = _open_sentences(path, None)
    if form == "conllu":
        return conllu.from_pieces(pieces, name_source(path)).tagged(column or "upos")
    return tagged.from_pieces(strip_mark(pieces), name_source(path), separator=separator)


def _open_sentences(path: str, form: str | None) -> tuple[str, Iterator[bytes]]:
    """Tell the format of a file, and read it in pieces: it may be a pipe, to be read only once."""
    pieces = read_pieces(path)
    if form is None and path.removesuffix(".gz").endswith(".conllu"):
        form = "conllu"
    head = b""
    while form is None and (piece := next(pieces, b"")):
        head += piece
        form = shape(head)
    return form or "lines", chain([head] if head else [], pieces)


def read_pieces(path: str) -> Iterator[bytes]:
    """Read whole lines of a file (-: standard input), a piece at a time."""
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
    """Return the name of a file for messages."""
    return STDIN if path == "-" else path


@dataclass(frozen=True)
class PairFiles:
    """Where pairs are: one file of lines ``source ||| target``, or two files."""

    joint: str | None
    source: str | None = None
    target: str | None = None

    @classmethod
    def given(
        cls, file: str | None, other: str | None, source: str | None, target: str | None
    ) -> PairFiles:
        """From FILE (or -i), -s and -t; nothing at all is standard input."""
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
        """What messages call the pairs."""
        if self.joint is None:
            return f"{self.source} and {self.target}"
        return STDIN if self.is_stdin else self.joint

    def read(self, lowercase: bool = False) -> Bitext:
        """All pairs."""
        from softcount.text.bitext import read_bitext, stream_pairs

        if self.joint is None:
            assert self.source is not None
            return read_bitext(self.source, self.target, lowercase=lowercase)
        if not self.is_stdin:
            return read_bitext(self.joint, lowercase=lowercase)
        lines = (line for block in stream_blocks("-") for line in block)
        for pairs in stream_pairs(lines, sys.maxsize, lowercase=lowercase, origin=STDIN):
            return pairs
        raise DataError(f"no pairs in {STDIN}", "give one at least")

    def stream(self) -> Iterator[Bitext]:
        """The pairs of one file as they come, those that are there together.

        Whatever is wrong with a line, those before it come first.
        """
        from softcount.text.bitext import stream_pairs

        assert self.joint is not None
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
    """How many source and target words each pair has."""
    lengths = pairs.source.lengths.tolist(), pairs.target.lengths.tolist()
    return list(zip(*lengths, strict=True))
