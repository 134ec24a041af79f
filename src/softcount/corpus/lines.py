"""Sentences a line, from files and from Python data, on their way to numbers of words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from typing import Any

from softcount.corpus.numbering import Cutter, Growing, Name, number_lists
from softcount.errors import DataError, shown

PIECE = 1 << 20
"""So many bytes of a file are in memory at a time, or a few more: a line is never cut."""
BLOCK = 1 << 12
"""So many sentences of Python data become bytes at a time."""
MARK, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
"""How files may begin: a byte order mark, which is dropped; packed ones (UTF-8 never does so)."""


# files
@contextmanager
def opened(path: str) -> Iterator[BufferedIOBase]:
    """A file, unpacked if it is packed by gzip; what goes wrong with it is a `DataError`."""
    try:
        with open(path, "rb") as file:
            packed = file.peek(2)[:2] == GZIP
            # by itself gzip hands out little at a time
            with BufferedReader(gzip.GzipFile(fileobj=file), PIECE) if packed else file as plain:
                yield plain
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked: {error}", "is the file complete?") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", "check the name and your rights"
        ) from error


def pieces(path: str) -> Iterator[bytes]:
    """Whole lines of a file, about `PIECE` bytes at a time."""
    with opened(path) as file:
        yield from unmarked(whole_lines(file))


def whole_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Lines as soon as they are there, about `PIECE` bytes at most; the last one need not end."""
    held: list[bytes] = []
    while piece := file.read1(PIECE):
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, piece[:end]])
            held.clear()
        held.append(piece[end:])
    if rest := b"".join(held):
        yield rest


def unmarked(some: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of a file without its byte order mark."""
    mark = MARK
    for piece in some:
        if text := piece.removeprefix(mark):
            yield text
        mark = b""


def text_of(path: str) -> str:
    """All of a file of UTF-8, a byte order mark included."""
    with opened(path) as file:
        return decoded(file.read(), lambda line: f"{path}:{line + 1}")


def decoded(raw: bytes, name: Name) -> str:
    """UTF-8 as text; ``name`` says what messages call a line."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        raise DataError(
            f"{name(line)} is not UTF-8 text: {error.reason}", "convert the text to UTF-8"
        ) from error


# Python data
def add_sentences(
    sentences: list[Any], side: Growing, name: Name, verb: str = "has the sentence"
) -> None:
    """All texts, which are cut at white space, or all lists of words, which are not.

    ``verb``  what messages put between the name of an item and a sentence that is none
    """
    kind = str if sentences and isinstance(sentences[0], str) else (list, tuple)
    for n, sentence in enumerate(sentences):
        if not isinstance(sentence, kind):
            hint = "decode it first, for example text.decode('utf-8')"
            raise DataError(
                f"{name(n)} {verb} {shown(sentence)}",
                hint if isinstance(sentence, bytes) else "give texts only, or lists of words only",
            )
    if kind is str:
        add_lines(blocks(sentences), side, name)
    else:
        side.add(number_lists(sentences, name))


def add_lines(some: Iterable[bytes], side: Growing, name: Name) -> None:
    """Pieces of text, cut at white space; ``name`` says what messages call a line of them all."""
    cutter = Cutter()
    for piece in some:
        side.add(cutter.cut(piece, _names_after(len(side), name)))


def _names_after(before: int, name: Name) -> Name:
    return lambda line: name(before + line)


def blocks(texts: list[str]) -> Iterator[bytes]:
    """Texts as lines of UTF-8."""
    for first in range(0, len(texts), BLOCK):
        yield _lines(texts[first : first + BLOCK])


def _lines(texts: list[str]) -> bytes:
    joint = "\n".join(texts)
    if joint.count("\n") >= len(texts):
        joint = "\n".join(text.replace("\n", " ") for text in texts)
    # half a character gets through here and is found, with its place, when words are decoded
    return joint.encode("utf-8", "surrogatepass") + b"\n"
