"""Ctrl-C during a fit: the first stops the run after the current step, a second one aborts.

A fit may have taken hours when a user stops it, so what it has learned by then is kept. Fitting
loops open `graceful` and check `asked` after every step. Elsewhere (while data are read, or after
learning) Ctrl-C behaves as usual.

Python handles a signal only between two of its own instructions, and compiled code may run for
minutes: `beside` runs such work in another thread, while the main thread waits for signals. When a
second Ctrl-C makes the main thread leave, work that calls `check` now and then ends soon after.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

NOTICE = b"\nstopping after this step; Ctrl-C again leaves at once, and keeps nothing\n"
SOON = 2.0
"""Seconds within which a second Ctrl-C aborts, even if another fit has begun in between."""

NAP = 0.2
"""Seconds that the main thread sleeps before it checks whether Ctrl-C was pressed."""
SLOW = 0.1
"""Seconds: compiled work that takes longer would delay the response to Ctrl-C noticeably."""


class StoppedWarning(UserWarning):
    """Learning was stopped by Ctrl-C; what had been learned is kept."""


class _Listener:
    """The handler of Ctrl-C during a fit."""

    asked = False
    warned = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        global _heard_at
        before, _heard_at = _heard_at, time.monotonic()
        if self.asked or _heard_at - before < SOON:
            signal.default_int_handler(number, frame)
        self.asked = True
        with suppress(OSError):  # not by sys.stderr, which may be in the middle of a write
            os.write(2, NOTICE)


_listener: _Listener | None = None
"""The listener of the outermost open `graceful` block, if any."""
_heard_at = -SOON
_times_asked = 0
_whole = 0
"""Number of open `whole` blocks."""
_thread = threading.local()


@contextmanager
def graceful() -> Iterator[None]:
    """Inside the block, the first Ctrl-C only sets `asked`; a second raises KeyboardInterrupt.

    Nested blocks act like one. Only the main thread handles signals, and a handler other than
    Python's default (or an ignored signal, as in background processes) is left in place.
    """
    global _listener, _times_asked
    on_main = threading.current_thread() is threading.main_thread()
    usual = signal.default_int_handler
    if _listener is not None or not on_main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    _listener = _Listener()
    signal.signal(signal.SIGINT, _listener.hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        _times_asked += _listener.asked
        _listener = None


def asked() -> bool:
    """Return whether Ctrl-C has asked the run to stop."""
    return _listener is not None and _listener.asked and not _whole


@contextmanager
def whole() -> Iterator[None]:
    """Inside the block, fits run to their end: they are one step of a larger loop."""
    global _whole
    _whole += 1
    try:
        yield
    finally:
        _whole -= 1


def times_asked() -> int:
    """Return how often a fit was stopped by Ctrl-C since the program began."""
    return _times_asked


def tell(what: str) -> None:
    """Warn, once per fit, that it was stopped; ``what`` says when and what is kept."""
    if _listener is not None and not _listener.warned:
        _listener.warned = True
        warnings.warn(f"stopped by Ctrl-C {what}", StoppedWarning, stacklevel=3)


def wait(future: Future[T]) -> T:
    """Wait for the result of a future, and stay responsive to Ctrl-C.

    The system may deliver a signal to any thread of a process. Only the main thread acts on it, and
    not while it sleeps: so it wakes up regularly.
    """
    while True:
        try:
            return future.result(None if _listener is None else NAP)
        except TimeoutError:
            if future.done():  # the work itself raised TimeoutError, or has just finished
                return future.result()


class GivenUp(BaseException):
    """The result of this work is no longer needed."""


def check() -> None:
    """Raise `GivenUp` if the result of this thread's work is no longer needed.

    Cheap enough to call every few milliseconds.
    """
    event = getattr(_thread, "given_up", None)
    if event is not None and event.is_set():
        raise GivenUp


@contextmanager
def given_up_at(event: threading.Event) -> Iterator[None]:
    """Inside the block, `check` raises `GivenUp` in this thread once the event is set."""
    before = getattr(_thread, "given_up", None)
    _thread.given_up = event
    try:
        check()
        yield
    finally:
        _thread.given_up = before


@contextmanager
def awaited() -> Iterator[Callable[[Callable[..., T]], Callable[..., T]]]:
    """Inside the block this thread waits for others; if it raises, their work is given up.

    Yields a function that wraps work for another thread such that `check` raises `GivenUp` there.
    """
    event = getattr(_thread, "given_up", None) or threading.Event()

    def heard(work: Callable[..., T]) -> Callable[..., T]:
        def run(*args: Any) -> T:
            with given_up_at(event):
                return work(*args)

        return run

    try:
        yield heard
    except BaseException:
        event.set()
        raise


class Responsive:
    """Runs work in this thread while it is quick, and `beside` it at first and when it is slow.

    A thread costs some 50 µs: nothing compared with slow work, much compared with quick work.
    """

    _is_slow = True  # the duration of the first call is unknown: it may take hours

    def __call__(self, work: Callable[..., T], *args: Any) -> T:
        began = time.perf_counter()
        result = beside(work, *args) if self._is_slow else work(*args)
        self._is_slow = time.perf_counter() - began > SLOW
        return result


def beside(work: Callable[..., T], *args: Any) -> T:
    """Run ``work(*args)``, in a separate thread if Ctrl-C would go unnoticed otherwise."""
    if _listener is None or threading.current_thread() is not threading.main_thread():
        return work(*args)
    future: Future[T] = Future()
    given_up = threading.Event()

    def run() -> None:
        _thread.given_up = given_up  # the new thread's own: `check` looks at it
        try:
            future.set_result(work(*args))
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="softcount-beside", daemon=True).start()
        return wait(future)
    except BaseException:
        given_up.set()
        raise
