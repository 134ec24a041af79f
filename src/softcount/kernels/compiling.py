"""Compiling is not a part of any step: a clock that stands still meanwhile, and announcements.

What was compiled ahead (`softcount.kernels.ready`), or before on this machine, is only loaded. The
rest takes from half a second to half a minute, once, and nobody should wait for it in silence: who
listens (`listen`) is told of it a few times per second, and so is the log ``softcount``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LOG = logging.getLogger("softcount")
PATIENCE = 0.5
"""Seconds of compiling, all in all, that are not worth mentioning."""
TICK = 0.1
"""Seconds between two announcements."""


@dataclass(frozen=True)
class Progress:
    """How far the compiling of this process is.

    ``kernel``   the name of the kernel that is being compiled; empty: none is
    ``ready``    number of kernels that have been compiled
    ``seconds``  time spent so far
    ``about``    time that it may take in all, if that is known
    """

    kernel: str
    ready: int
    seconds: float
    about: float = 0.0

    def __str__(self) -> str:
        """
        >>> print(Progress("forward_backward", 3, 4.2, 20.0))
        preparing kernels for this machine, once, about 20 s … 4 s, 3 ready
        """
        about = f", about {self.about:.0f} s" if self.about > self.seconds else ""
        return (
            f"preparing kernels for this machine, once{about} … "
            f"{self.seconds:.0f} s, {self.ready} ready"
        )

    @property
    def is_long(self) -> bool:
        """Whether it is worth mentioning."""
        return self.seconds >= PATIENCE


Listener = Callable[[Progress], object]
"""Called while something is compiled, from another thread, and once when nothing is any more."""


class _Compiling:
    """What is being compiled; `begin` and `end` are called under numba's lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        """Kernels that are being compiled: one, and those that it calls."""
        self.kernel = ""
        self.ready = 0
        self.spent = 0.0
        self.began = 0.0
        self.round = 0
        self.announced = False
        self.listeners: list[Listener] = []

    def begin(self, kernel: str) -> None:
        with self.lock:
            self.depth += 1
            if self.depth > 1:
                return
            self.round += 1
            self.kernel, self.began = kernel, time.perf_counter()
            threading.Thread(
                target=self._announce, args=(self.round,), name="softcount-compiling", daemon=True
            ).start()

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth:
                return
            took = time.perf_counter() - self.began
            LOG.debug("compiled %s in %.2f s", self.kernel, took)
            self.kernel, self.spent, self.ready = "", self.spent + took, self.ready + 1
            if self.announced:
                self._tell()

    def seconds(self) -> float:
        with self.lock:
            return self.spent + (time.perf_counter() - self.began if self.depth else 0.0)

    def progress(self, about: float = 0.0) -> Progress:
        return Progress(self.kernel, self.ready, self.seconds(), about)

    def _announce(self, number: int) -> None:
        """Tell listeners until this kernel is compiled."""
        while True:
            time.sleep(TICK)
            with self.lock:
                if not self.depth or self.round != number:
                    return
                if self.progress().is_long:
                    if not self.announced:
                        LOG.info("%s", self.progress())
                    self.announced = True
                    self._tell()

    def _tell(self) -> None:
        for listener in self.listeners:
            listener(self.progress())


_compiling = _Compiling()
begin, end, progress = _compiling.begin, _compiling.end, _compiling.progress
LOCK = _compiling.lock


def clock() -> float:
    """Seconds on a clock that stands still while anything is compiled in this process.

    >>> began = clock()
    >>> clock() >= began
    True
    """
    return time.perf_counter() - _compiling.seconds()


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Have ``listener`` told of all compiling that takes longer than `PATIENCE`."""
    _compiling.listeners.append(listener)
    try:
        yield
    finally:
        _compiling.listeners.remove(listener)
