"""What a terminal shows while a command works: it is not silent for long, whatever takes its time.

Imports, compiling and large files take seconds; nobody should have to guess what is going on. This
module is imported before all others, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar, Self, TextIO

SILENCE = 0.5
"""Seconds without a word after which a terminal shows what is going on."""
TICK = 0.1
"""Seconds between two looks."""
ERASE = "\r\x1b[K"
"""Erases the line that a terminal's cursor is in; a status line begins with it."""


class Terminal:
    """What the terminal shows, as far as this process writes to it.

    ``written``    when it was last written to
    ``status``     whether its last line is a status line, which goes before anything else comes
    ``is_in_line`` whether something else is in its last line, which no status line may erase
    ``is_input``   whether somebody types there
    ``errors``     where warnings and errors go while all else on stderr is discarded (`silenced`)
    """

    written = time.monotonic()
    status = False
    is_in_line = False
    is_input = False
    errors: ClassVar[TextIO | None] = None

    @classmethod
    def prepare(cls, data: bytes) -> bytes:
        """Take note of what is written next, and return what must be written before it."""
        cls.written = time.monotonic()
        before = b""
        if data.startswith(ERASE.encode()):
            cls.status = len(data) > len(ERASE)
        else:
            before, cls.status = ERASE.encode() if cls.status else b"", False
        cls.is_in_line = not cls.status and not data.endswith((b"\n", ERASE.encode()))
        return before


class StatusLine:
    """A line on stderr that is overwritten in place, if stderr is a terminal; it is erased by
    ``end()``, or at the end of ``with``, or when anything else is written to the terminal."""

    said: ClassVar[str] = ""
    """What the line of this process shows."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty()

    @property
    def width(self) -> int:
        """How many characters there is room for."""
        width = 80
        with suppress(OSError, ValueError):
            width = os.get_terminal_size(sys.stderr.fileno()).columns or width
        return width - 1

    def show(self, text: str) -> None:
        """Replace the line by this text."""
        if self.wanted:
            StatusLine.said = text
            self.rewrite(text)

    @staticmethod
    def note(text: str) -> None:
        """Have the terminal show this text if nothing else is said for a while."""
        StatusLine.said = text

    @staticmethod
    def rewrite(text: str) -> None:
        """Replace what is on the terminal by this text, for a while, as far as it fits."""
        sys.stderr.write(ERASE + text[: StatusLine().width])
        sys.stderr.flush()

    def complain(self, text: str) -> None:
        """Print a warning in place of the line."""
        self.end()
        complain(text)

    def end(self) -> None:
        self.show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def complain(text: str) -> None:
    """Print a warning or an error on stderr, which --quiet does not keep back."""
    stream = Terminal.errors or sys.stderr
    stream.write(f"{text}\n")
    stream.flush()


@contextmanager
def silenced() -> Iterator[None]:
    """Discard what is written to stderr inside the block, other than by `complain`."""
    if Terminal.errors is not None:  # already: a command that runs another
        yield
        return
    with open(os.devnull, "r+", encoding="utf-8") as nothing:
        said = Terminal.errors = sys.stderr
        sys.stderr = nothing
        try:
            yield
        finally:
            sys.stderr, Terminal.errors = said, None


@contextmanager
def sign_of_life() -> Iterator[None]:
    """On a terminal, show what this process does whenever it has said nothing for a while."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    pulse = threading.Thread(target=_say_now_and_then, args=(done,), daemon=True)
    pulse.start()
    try:
        yield
    finally:
        done.set()
        pulse.join()
        if Terminal.status:
            StatusLine().end()


def _say_now_and_then(done: threading.Event) -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    began = Terminal.written = time.monotonic()
    while not done.wait(TICK):
        silent = time.monotonic() - Terminal.written
        if silent < SILENCE / 2 or Terminal.is_in_line or Terminal.is_input:
            continue
        compiling, app = map(sys.modules.get, ("softcount.kernels.compiling", "softcount.cli.app"))
        entry = getattr(app, "COMMANDS", {}).get(command)
        # another thread may be in the middle of importing it
        progress = getattr(compiling, "progress", None)
        now = None if progress is None else progress(entry.compiles if entry else 0.0)
        if now is not None and now.kernel and now.is_long:
            StatusLine.rewrite(str(now))
        elif silent > SILENCE:
            said = StatusLine.said or f"softcount {command}"
            StatusLine.rewrite(f"{said} … {time.monotonic() - began:.0f} s")
