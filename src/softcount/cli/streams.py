"""Handling of standard input, output and error, for all commands.

A reader that has gone away (``| head -1``) is not an error: the command ends quietly, with exit
code 0. If the disk is full, or standard output is closed (``>&-``), the exit code is 1, and
standard error says why if it is open. Without standard error, answers are printed all the same.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from softcount.cli.status import Terminal
from softcount.core.errors import SoftcountError

BUFFER_SIZE = 1 << 16


class ReaderGone(SystemExit):
    """Raised when the reader of standard output has gone away, to end the command without error."""

    def __init__(self) -> None:
        super().__init__(0)


class StreamError(SoftcountError):
    """Standard output cannot be written to."""


class _Sink(io.RawIOBase):
    """An output stream.

    An error is reported once. After that nothing is written, and no further error is raised,
    neither by further printing nor when Python flushes the stream at exit.
    """

    def __init__(self, number: int | None, name: str) -> None:
        self.number, self.name = number, name
        self.fault = ""
        self.is_terminal = number is not None and os.isatty(number)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self.number is None:
            raise io.UnsupportedOperation("fileno")
        return self.number

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, data: Any) -> int:
        if self.is_terminal and (before := Terminal.prepare(bytes(data))):
            with contextlib.suppress(OSError):
                os.write(2, before)
        try:
            while not self.fault:
                if self.number is None:
                    raise OSError(errno.EBADF, "it is closed")
                try:
                    return os.write(self.number, data)
                except BlockingIOError:  # another process has made the shared stream non-blocking
                    select.select([], [self.number], [])
        except OSError as error:
            self.fault = error.strerror or str(error)
            self._report(error)
        return len(data)

    def _report(self, error: OSError) -> None:
        raise NotImplementedError


class _Output(_Sink):
    """Standard output."""

    def _report(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise ReaderGone from None
        raise StreamError(
            f"standard output cannot be written to: {self.fault}",
            "is there room for it?" if self.number is not None else "give it a place: > FILE",
        ) from error


class _Errors(_Sink):
    """Standard error: if it cannot be written to, answers are printed all the same.

    ``is_missed``  whether messages were lost, for lack of disk space
    """

    is_missed = False

    def _report(self, error: OSError) -> None:
        self.is_missed = self.number is not None and error.errno != errno.EPIPE


class _NoInput(io.RawIOBase):
    """Stand-in for standard input that is closed."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EBADF, "standard input is closed")


@contextmanager
def managed_streams() -> Iterator[None]:
    """Run the command line with the streams and the exit code described above."""
    output = _Output(_get_number(sys.stdout, 1), "<stdout>")
    errors = _Errors(_get_number(sys.stderr, 2), "<stderr>")
    if _get_number(sys.stdin, 0) is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_NoInput()), encoding="utf-8")
    sys.stdout, sys.stderr = _wrap(output, sys.stdout), _wrap(errors, sys.stderr)
    code: Any = 0
    faults: list[StreamError] = []
    try:
        yield
    except SystemExit as end:
        code = end.code
    except StreamError as error:  # from output outside of any command, such as --help
        faults.append(error)
    finally:  # also flush before the traceback of an unexpected exception
        try:
            sys.stdout.flush()
        except ReaderGone:
            pass
        except StreamError as error:
            faults.append(error)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
    for fault in faults:
        print(f"softcount: {fault}", file=sys.stderr)
    sys.exit(1 if faults or (errors.is_missed and not code) else code)


def _get_number(stream: TextIO | None, number: int) -> int | None:
    """Return the file descriptor of a stream; None if it is closed.

    A closed descriptor is then occupied: otherwise the next file opened would get its number, and
    output would be printed there.
    """
    if stream is not None:
        return number
    with contextlib.suppress(OSError):
        os.fstat(number)
        return None
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing != number:
        os.dup2(nothing, number)
        os.close(nothing)
    return None


def _wrap(sink: _Sink, like: Any) -> TextIO:
    """Make a text stream over a sink, with the settings of the stream that it replaces.

    Characters that the encoding lacks are escaped (``\\xe9``), so that no answer is lost to an
    error.
    """
    errors = getattr(like, "errors", None) or "strict"
    return io.TextIOWrapper(
        io.BufferedWriter(sink, BUFFER_SIZE),
        encoding=getattr(like, "encoding", None) or "utf-8",
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=getattr(like, "line_buffering", False),
        write_through=getattr(like, "write_through", False),
    )
