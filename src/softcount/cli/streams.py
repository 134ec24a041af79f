"""Standard input, output and errors, as all commands meet them.

A reader that has gone away (``| head -1``) is no fault: the command ends quietly, with exit code 0.
Where there is no room for what is printed, or no standard output at all (``>&-``), the exit code is
1, and standard error says why if it is there. Without standard error the answers come all the same.
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

from softcount.core.errors import SoftcountError

BUFFER_SIZE = 1 << 16


class ReaderGone(SystemExit):
    """The reader of standard output has gone away: the command ends, and nothing is wrong."""

    def __init__(self) -> None:
        super().__init__(0)


class StreamError(SoftcountError):
    """Standard output cannot be written to."""


class _Sink(io.RawIOBase):
    """A stream to which text is printed.

    A fault is reported once. After that nothing is written, and no further error raised: not while
    others go on printing, nor when Python flushes what is left at its end.
    """

    def __init__(self, number: int | None, name: str) -> None:
        self.number, self.name = number, name
        self.fault = ""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self.number is None:
            raise io.UnsupportedOperation("fileno")
        return self.number

    def isatty(self) -> bool:
        return self.number is not None and os.isatty(self.number)

    def write(self, data: Any) -> int:
        try:
            while not self.fault:
                if self.number is None:
                    raise OSError(errno.EBADF, "it is closed")
                try:
                    return os.write(self.number, data)
                except BlockingIOError:  # whoever shares it has asked not to be kept waiting
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
    """Standard error: if it cannot be had, answers are worth printing all the same.

    ``is_missed``  there was no room for what it had to say
    """

    is_missed = False

    def _report(self, error: OSError) -> None:
        self.is_missed = self.number is not None and error.errno != errno.EPIPE


class _NoInput(io.RawIOBase):
    """Standard input that is not there."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EBADF, "standard input is closed")


@contextmanager
def managed_streams() -> Iterator[None]:
    """Run the command line with streams, and an exit code, as described above."""
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
    except StreamError as error:  # of what is printed outside of any command, such as --help
        faults.append(error)
    finally:  # an error of ours goes on to its traceback, and has what was printed before it
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
    """Return the number of a stream; None if it is closed.

    Its number is then taken up: the next file that is opened would get it, and whatever prints
    would print there.
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
    """Make a text stream over a sink, like the stream that it replaces.

    Characters that the encoding lacks are spelled out (``\\xe9``), rather than that an answer is
    lost to an error.
    """
    errors = getattr(like, "errors", None) or "strict"
    return io.TextIOWrapper(
        io.BufferedWriter(sink, BUFFER_SIZE),
        encoding=getattr(like, "encoding", None) or "utf-8",
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=getattr(like, "line_buffering", False),
        write_through=getattr(like, "write_through", False),
    )
