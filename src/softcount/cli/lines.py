"""Lines of a file become items of a story."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO

from softcount.errors import DataError

SEPARATOR = "|||"
AT_MOST = 1 << 18
"""So many bytes are taken at a time of what is there."""


class Form(StrEnum):
    """How a line is cut into an item."""

    TOKENS = "tokens"
    CHARS = "chars"
    JSON = "json"


@dataclass(frozen=True)
class Line:
    """An item and where it came from; blank lines have no item."""

    number: int
    item: Any

    @property
    def blank(self) -> bool:
        return self.item is None


def read(path: str, form: Form, arguments: int) -> list[Line]:
    """All lines of a file (``-``: standard input; ``.gz`` is unpacked), as items.

    ``arguments`` is how many arguments the story takes: a JSON array gives all of them if there
    are several, and is itself the item if there is one.
    """
    return [
        Line(number, _item(text, form, arguments, f"{path}:{number}") if text.strip() else None)
        for number, text in numbered(path)
    ]


def numbered(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a file (``-``: standard input; ``.gz`` is unpacked), numbered from 1."""
    number = 0
    with _readable_faults(path, lambda: f"{path}:{number + 1}"), _opened(path) as stream:
        try:
            for number, raw in enumerate(stream, 1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: this line is not UTF-8 text ({error.reason})",
                hint="convert the file to UTF-8",
            ) from error


def arriving(path: str) -> Iterator[list[bytes]]:
    """The lines of a file as `numbered` reads them: all that are there, as soon as they are."""
    held: list[bytes] = []
    with _readable_faults(path, lambda: path), _opened(path) as stream:
        while piece := stream.read1(AT_MOST):  # type: ignore[attr-defined]
            lines, end, rest = piece.rpartition(b"\n")
            if end:
                yield b"".join([*held, lines]).split(b"\n")
                held.clear()
            held.append(rest)
    if last := b"".join(held):
        yield [last]


@contextmanager
def _readable_faults(path: str, where: Callable[[], str]) -> Iterator[None]:
    """Faults of a file in words; ``where``: how far it could be read."""
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


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)  # read as it comes, and left open
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


def _item(text: str, form: Form, arguments: int, where: str) -> Any:
    if form is Form.JSON:
        return _json_item(text, arguments, where)
    parts = [part.strip() for part in text.split(SEPARATOR)]
    if len(parts) != arguments:
        raise DataError(
            f"{where}: the story takes {arguments} argument{'s' * (arguments > 1)}, "
            f"this line has {len(parts)}",
            hint=f"separate the arguments by {SEPARATOR}",
        )
    items = parts if form is Form.CHARS else [part.split() for part in parts]
    return items[0] if arguments == 1 else tuple(items)


def _json_item(text: str, arguments: int, where: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}", hint="one JSON value a line") from error
    if arguments == 1:
        return value
    if not isinstance(value, list) or len(value) != arguments:
        raise DataError(
            f"{where}: the story takes {arguments} arguments",
            hint=f"write a JSON array of {arguments} values on every line",
        )
    return tuple(value)
