"""Sentences for ``softcount tag``: one a line or CoNLL-U, whole files and lines as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from softcount.cli.lines import arriving
from softcount.cli.tag_options import Form

if TYPE_CHECKING:
    from softcount.corpus.conllu import ConlluFile
    from softcount.corpus.sequences import Sequences
    from softcount.corpus.tagged import Tagged

STDIN = "standard input"
MARK = b"\xef\xbb\xbf"
TABS = 9
"""A line of CoNLL-U has so many."""


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
            words = line.count(b"\t") == TABS and line[:1].isdigit()
            return Form.CONLLU if words else Form.LINES
    return None


def read_text(path: str, form: Form | None) -> TagText:
    """All sentences of a file."""
    if path == "-":
        return _from_stdin(sys.stdin.buffer.read(), form)
    from softcount.corpus.conllu import read_conllu
    from softcount.corpus.sequences import read_sequences

    if _form_of(path, form) is Form.LINES:
        return TagText(read_sequences(path))
    file = read_conllu(path)
    return TagText(file.sequences(), file)


def stream(path: str, form: Form | None) -> Iterator[TagText]:
    """Sentences a line as they come, those that are there together; CoNLL-U all at once."""
    if path != "-" and _form_of(path, form) is Form.CONLLU:
        yield read_text(path, Form.CONLLU)
        return
    before, held = 0, []
    blocks = arriving(path)
    for block in blocks:
        held += block
        form = form or shape(b"\n".join(held))
        if form is Form.CONLLU:
            lines = [*held, *(line for more in blocks for line in more), b""]
            yield _from_stdin(b"\n".join(lines), form)
            return
        if form is Form.LINES:
            yield _from_lines(held, STDIN if path == "-" else path, before)
            before += len(held)
            held = []
    if held:
        yield _from_lines(held, STDIN if path == "-" else path, before)


def _form_of(path: str, form: Form | None) -> Form:
    from softcount.corpus.lines import pieces

    if form is not None:
        return form
    if path.removesuffix(".gz").endswith(".conllu"):
        return Form.CONLLU
    return shape(next(pieces(path), b"")) or Form.LINES


def _from_stdin(raw: bytes, form: Form | None) -> TagText:
    from softcount.corpus.conllu import read_conllu

    lines = raw.split(b"\n")
    if (form or shape(raw)) is Form.CONLLU:
        file = replace(read_conllu(lines), origin=STDIN)
        return TagText(file.sequences(), file)
    return _from_lines(lines[:-1] if lines[-1] == b"" else lines, STDIN, 0)


def _from_lines(lines: list[bytes], origin: str, before: int) -> TagText:
    import numpy as np

    from softcount.corpus.lines import decoded
    from softcount.corpus.sequences import sequences

    raw = b"\n".join(lines) if lines else b""
    text = decoded(
        raw if before else raw.removeprefix(MARK), lambda n: f"{origin}:{before + n + 1}"
    )
    some = sequences(text.split("\n") if lines else [])
    return TagText(replace(some, origin=origin, numbers=np.arange(len(some)) + before))


def read_tags(path: str, column: str | None, separator: str) -> Tagged:
    """Sentences with tags, from lines word/TAG or from CoNLL-U."""
    from softcount.corpus.conllu import read_conllu
    from softcount.corpus.tagged import read_tagged, tagged

    if path == "-":
        text = _from_stdin(sys.stdin.buffer.read(), None)
        if text.conllu is not None:
            return text.conllu.tagged(column or "upos")
        lines = [" ".join(text.sequences.sentence(n)) for n in range(len(text))]
        read = tagged(lines, separator=separator)
        return replace(read, sequences=replace(read.sequences, origin=STDIN))
    if _form_of(path, None) is Form.CONLLU:
        return read_conllu(path).tagged(column or "upos")
    return read_tagged(path, separator=separator)
