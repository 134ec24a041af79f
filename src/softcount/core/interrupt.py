"""Ctrl-C while something is learned: the first ends the run after its step, a second at once.

A fit may have taken hours when somebody stops it, so what it has learned by then is kept. Loops
that learn open `graceful` and look at `asked` after every step. Elsewhere (while data are read, or
after learning) Ctrl-C does what it always does.

Python hears a signal only between two of its own instructions, and compiled code may run for
minutes: `beside` runs such work in another thread, while the main thread listens. When the second
Ctrl-C makes the main thread leave, work that calls `check` now and then ends soon after.
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
"""Seconds within which a second Ctrl-C leaves, even if another fit has begun in between."""

NAP = 0.2
"""Seconds that the main thread waits before it looks whether Ctrl-C was pressed."""
SLOW = 0.1
"""Seconds: compiled work that takes longer keeps people waiting who press Ctrl-C."""


class StoppedWarning(UserWarning):
    """Learning was stopped by Ctrl-C; what had been learned is kept."""


class _Listener:
    """What Ctrl-C means while something is learned."""

    asked = False
    warned = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        global _heard_at
        before, _heard_at = _heard_at, time.monotonic()
        if self.asked or _heard_at - before < SOON:
            signal.default_int_handler(number, frame)
        self.asked = True
        with suppress(OSError):  # not sys.stderr, which may be in the middle of a line
            os.write(2, NOTICE)


_listener: _Listener | None = None
"""That of the outermost `graceful`, if one is open."""
_heard_at = -SOON
_times_asked = 0
_whole = 0
"""How many `whole` are open."""
_thread = threading.local()


@contextmanager
def graceful() -> Iterator[None]:
    """Within, the first Ctrl-C only makes `asked` true; a second raises KeyboardInterrupt.

    One inside another is the same as one. Signals belong to the main thread, and a handler that is
    not Python's own (or none: what runs in the background ignores Ctrl-C) is left alone.
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
    """Whether Ctrl-C has asked the run to end."""
    return _listener is not None and _listener.asked and not _whole


@contextmanager
def whole() -> Iterator[None]:
    """Within, what is learned is learned to its end: it is one step of something larger."""
    global _whole
    _whole += 1
    try:
        yield
    finally:
        _whole -= 1


def times_asked() -> int:
    """How often learning was stopped by Ctrl-C since the program began."""
    return _times_asked


def tell(what: str) -> None:
    """Warn, once, of what was stopped and what is kept."""
    if _listener is not None and not _listener.warned:
        _listener.warned = True
        warnings.warn(f"stopped by Ctrl-C {what}", StoppedWarning, stacklevel=3)


def wait(future: Future[T]) -> T:
    """The result of a future, while Ctrl-C is listened for.

    The system may hand a signal to any thread of a process. Only the main thread acts on it, and
    not while it sleeps: so it wakes up now and then.
    """
    while True:
        try:
            return future.result(None if _listener is None else NAP)
        except TimeoutError:
            if future.done():  # the work itself raised it, or was done just now
                return future.result()


class GivenUp(BaseException):
    """Nobody waits for this work any more."""


def check() -> None:
    """Raise `GivenUp` in work that nobody waits for any more; cheap enough for every few ms."""
    event = getattr(_thread, "given_up", None)
    if event is not None and event.is_set():
        raise GivenUp


@contextmanager
def awaited() -> Iterator[Callable[[Callable[..., T]], Callable[..., T]]]:
    """Within, other threads work and this one waits; if it has to leave, they are told.

    Gives a function that makes work for another thread hear of it.
    """
    event = getattr(_thread, "given_up", None) or threading.Event()

    def heard(work: Callable[..., T]) -> Callable[..., T]:
        def run(*args: Any) -> T:
            before = getattr(_thread, "given_up", None)
            _thread.given_up = event
            try:
                check()
                return work(*args)
            finally:
                _thread.given_up = before

        return run

    try:
        yield heard
    except BaseException:
        event.set()
        raise


class Responsive:
    """Work that is done here while it is quick, and `beside` this thread at first and when slow.

    A thread costs some 50 µs: nothing beside slow work, much beside quick work.
    """

    _is_slow = True  # of the first nobody knows: it may take hours

    def __call__(self, work: Callable[..., T], *args: Any) -> T:
        began = time.perf_counter()
        result = beside(work, *args) if self._is_slow else work(*args)
        self._is_slow = time.perf_counter() - began > SLOW
        return result


def beside(work: Callable[..., T], *args: Any) -> T:
    """``work(*args)``, in a thread of its own if Ctrl-C would not be heard otherwise."""
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
