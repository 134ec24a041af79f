"""Lines of UTF-8 text, from plain or gzipped files and from Python data."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from softcount.core.errors import DataError, StoreError

Name = Callable[[int], str]
"""Function from the number of a line to its name in messages."""

PIECE = 1 << 20
"""Bytes of a file in memory at a time, or slightly more: a line is never split."""
BLOCK = 1 << 12
"""Number of sentences of Python data that are encoded at a time."""
MARK, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
"""First bytes of a file: the byte order mark, which is dropped; gzip's, which UTF-8 never has."""


@contextmanager
def open_lines(path: str) -> Iterator[BufferedIOBase]:
    """Open a file, and decompress it if it is gzipped; raise `DataError` if reading fails."""
    try:
        with open(path, "rb") as file:
            is_gzip = file.peek(2)[:2] == GZIP
            # unbuffered, gzip returns only a few bytes at a time
            with BufferedReader(gzip.GzipFile(fileobj=file), PIECE) if is_gzip else file as plain:
                yield plain
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be unpacked: {error}", "check that the file is complete"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", "check the name and the permissions"
        ) from error


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield pieces of a file, each of whole lines and about `PIECE` bytes."""
    with open_lines(path) as file:
        yield from strip_mark(read_whole_lines(file))


def read_whole_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield pieces of whole lines as soon as they are available, about `PIECE` bytes at most.

    The last line need not end with a line break.
    """
    incomplete: list[bytes] = []
    while piece := file.read1(PIECE):
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*incomplete, piece[:end]])
            incomplete.clear()
        incomplete.append(piece[end:])
    if rest := b"".join(incomplete):
        yield rest


def strip_mark(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Remove the byte order mark from the beginning of a file, given in pieces."""
    mark = MARK
    for piece in pieces:
        if text := piece.removeprefix(mark):
            yield text
        mark = b""


def read_text(path: str) -> str:
    """Read a whole UTF-8 file, including its byte order mark."""
    with open_lines(path) as file:
        return decode_text(file.read(), lambda line: f"{path}:{line + 1}")


def decode_text(raw: bytes, name: Name) -> str:
    """Decode UTF-8; ``name`` gives the names of lines in messages."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        raise DataError(
            f"{name(line)} is not UTF-8 text: {error.reason}", "convert the text to UTF-8"
        ) from error


def encode_texts(texts: list[str]) -> Iterator[bytes]:
    """Encode texts as lines of UTF-8, a block at a time."""
    for first in range(0, len(texts), BLOCK):
        block = texts[first : first + BLOCK]
        lines = "\n".join(block)
        if lines.count("\n") >= len(block):  # a line break inside a text counts as white space
            lines = "\n".join(text.replace("\n", " ") for text in block)
        # lone surrogates pass here; decoding the words reports them with their position
        yield lines.encode("utf-8", "surrogatepass") + b"\n"


def size_of_file(path: Path, hint: str) -> int:
    """Return the size of a regular file in bytes; a pipe or device might block for ever."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", hint) from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is not a file", hint)
    return status.st_size
