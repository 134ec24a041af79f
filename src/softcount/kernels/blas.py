"""Linear algebra with one thread: sums in several would depend on how many there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController


class _Holders:
    """Who wants one thread: the first to come sets the limit, the last to go lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None
        self._count = 0

    def come(self) -> None:
        with self._lock:
            if self._controller is None:
                import scipy.linalg  # noqa: F401 (brings a library of its own, to be found too)

                self._controller = ThreadpoolController()
            if self._count == 0:
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._count += 1

    def go(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                self._limit.restore_original_limits()


_holders = _Holders()


@contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which BLAS and LAPACK use one thread, however many such contexts overlap.

    >>> with single_threaded():
    ...     pass
    """
    _holders.come()
    try:
        yield
    finally:
        _holders.go()
