"""Sentences for ``softcount tag``: one a line or CoNLL-U, whole files and as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from softcount.cli.tag_options import Form
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.corpus.conllu import ConlluFile
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.tagged import Tagged

STDIN = "standard input"
MARK = b"\xef\xbb\xbf"
TABS = 5
"""A line of CoNLL-U has nine; one with so many is a damaged one rather than plain text."""


@dataclass(frozen=True, eq=False)
class TagText:
    """Sentences to be tagged; ``conllu`` is their file, if it is one of CoNLL-U."""

    sequences: Sequences
    conllu: ConlluFile | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def line(self, n: int) -> int:
        """Where a sentence is in its file, from 1 on: the line of its first word."""
        numbers = self.sequences.numbers
        return (n if numbers is None else int(numbers[n])) + 1


def shape(head: bytes) -> Form | None:
    r"""What lines are, by the first one that is no comment; None if there is none.

    >>> shape(b"# text = it\n1\tit\t_\tPRON\t_\t_\t_\t_\t_\t_\n").value, shape(b"it rains").value
    ('conllu', 'lines')
    """
    for line in head.removeprefix(MARK).split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            words = line.count(b"\t") >= TABS and line[:1].isdigit()
            return Form.CONLLU if words else Form.LINES
    return None


def read_text(path: str, form: Form | None) -> TagText:
    """All sentences of a file."""
    from softcount.corpus import conllu, sequences
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, form)
    if form is Form.CONLLU:
        return _of_conllu(conllu.from_pieces(some, called(path)))
    return TagText(sequences.from_pieces(unmarked(some), called(path)))


def stream(path: str, form: Form | None) -> Iterator[TagText]:
    """Sentences as they come, those that are there together."""
    from softcount.corpus import conllu, sequences
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, form)
    if form is Form.CONLLU:
        yield from map(_of_conllu, conllu.parts(some, called(path)))
        return
    before = 0
    for piece in unmarked(some):
        text = TagText(sequences.from_pieces([piece], called(path), before))
        yield text
        before += len(text)


def read_tags(path: str, column: str | None, separator: str) -> Tagged:
    """Sentences with tags, from lines word/TAG or from CoNLL-U."""
    from softcount.corpus import conllu, tagged
    from softcount.corpus.lines import unmarked

    form, some = _opened(path, None)
    if form is Form.CONLLU:
        return conllu.from_pieces(some, called(path)).tagged(column or "upos")
    return tagged.from_pieces(unmarked(some), called(path), separator=separator)


def _opened(path: str, form: Form | None) -> tuple[Form, Iterator[bytes]]:
    """What a file is, and its lines in pieces: it may be a pipe, which can be read but once."""
    some = pieces_of(path)
    if form is None and path.removesuffix(".gz").endswith(".conllu"):
        form = Form.CONLLU
    head = b""
    while form is None and (piece := next(some, b"")):
        head += piece
        form = shape(head)
    return form or Form.LINES, chain([head] if head else [], some)


def pieces_of(path: str) -> Iterator[bytes]:
    """Whole lines of a file (-: standard input), a piece at a time."""
    from softcount.corpus.lines import opened, whole_lines

    if path == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed", "give a file")
        try:
            yield from whole_lines(sys.stdin.buffer)  # type: ignore[arg-type]  # it can read1
        except OSError as error:
            raise DataError(f"{STDIN} cannot be read: {error.strerror}", "give a file") from error
        return
    with opened(path) as file:
        yield from whole_lines(file)


def called(path: str) -> str:
    """A file as messages name it."""
    return STDIN if path == "-" else path


def _of_conllu(file: ConlluFile) -> TagText:
    return TagText(file.sequences(), file)
