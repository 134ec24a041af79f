"""Lines of UTF-8 text: from files, packed or not, and from Python data."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader

from softcount.core.errors import DataError

Name = Callable[[int], str]
"""What messages call a line, by its number."""

PIECE = 1 << 20
"""So many bytes of a file are in memory at a time, or a few more: a line is never cut."""
BLOCK = 1 << 12
"""So many sentences of Python data become bytes at a time."""
MARK, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
"""How files may begin: a byte order mark, which is dropped; packed ones (UTF-8 never does so)."""


@contextmanager
def open_lines(path: str) -> Iterator[BufferedIOBase]:
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


def read_pieces(path: str) -> Iterator[bytes]:
    """Whole lines of a file, about `PIECE` bytes at a time."""
    with open_lines(path) as file:
        yield from strip_mark(read_whole_lines(file))


def read_whole_lines(file: BufferedIOBase) -> Iterator[bytes]:
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


def strip_mark(some: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of a file without its byte order mark."""
    mark = MARK
    for piece in some:
        if text := piece.removeprefix(mark):
            yield text
        mark = b""


def read_text(path: str) -> str:
    """All of a file of UTF-8, a byte order mark included."""
    with open_lines(path) as file:
        return decode_text(file.read(), lambda line: f"{path}:{line + 1}")


def decode_text(raw: bytes, name: Name) -> str:
    """UTF-8 as text; ``name`` says what messages call a line."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        raise DataError(
            f"{name(line)} is not UTF-8 text: {error.reason}", "convert the text to UTF-8"
        ) from error


def encode_texts(texts: list[str]) -> Iterator[bytes]:
    """Texts as lines of UTF-8."""
    for first in range(0, len(texts), BLOCK):
        some = texts[first : first + BLOCK]
        joint = "\n".join(some)
        if joint.count("\n") >= len(some):  # a line break inside a text is white space
            joint = "\n".join(text.replace("\n", " ") for text in some)
        # half a character gets through here and is found, with its place, when words are decoded
        yield joint.encode("utf-8", "surrogatepass") + b"\n"
