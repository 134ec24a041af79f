"""Linear algebra with one thread: sums in several would depend on how many there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

from softcount.kernels import forks


class _Holders:
    """Who wants one thread: the first to come sets the limit, the last to go lifts it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._libraries: list[Any] | None = None
        self._before: list[int] = []  # threads of each, when no one wanted one alone
        self._held: dict[object, int] = {}  # what each came with, and by which thread
        forks.hold_across(self._lock)
        forks.in_child(self._forget_others)

    def come(self) -> object:
        with self._lock:
            if self._libraries is None:
                import scipy.linalg  # noqa: F401 (brings a library of its own, to be found too)

                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            if not self._held:
                self._before = [library.get_num_threads() for library in self._libraries]
                self._set([1] * len(self._libraries))
            token = object()
            self._held[token] = threading.get_ident()
            return token

    def go(self, token: object) -> None:
        with self._lock:
            if self._held.pop(token, None) is not None and not self._held:
                self._set(self._before)

    def _set(self, numbers: Sequence[int]) -> None:
        for library, number in zip(self._libraries or (), numbers, strict=True):
            # threadpoolctl 3.8 leaves OpenBLAS to the first thread that ever set it, and does
            # nothing in others; but it is one limit for all threads, and we count who wants it
            set_threads = getattr(library, "_real_set_num_threads", library.set_num_threads)
            set_threads(number)

    def _forget_others(self) -> None:
        """In a forked process: those whose threads are not there will never go."""
        mine = threading.get_ident()
        for token in [token for token, thread in self._held.items() if thread != mine]:
            self.go(token)


_holders = _Holders()


@contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which BLAS and LAPACK use one thread, however many such contexts overlap.

    >>> with single_threaded():
    ...     pass
    """
    token = _holders.come()
    try:
        yield
    finally:
        _holders.go(token)
