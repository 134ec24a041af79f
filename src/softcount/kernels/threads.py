"""Threads: kernels on ranges of rows, single-threaded linear algebra, and safety across forks.

A forked child has the parent's memory, but of its threads only the one that forked: locks held by
other threads are never released, and pools wait for threads that do not exist.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from softcount.core import interrupt
from softcount.core.types import Array

FEW = 4096
"""With fewer entries than this, one thread does all the work."""

PIECES = 4
"""Number of ranges per thread: more than one, because some take longer than others."""


# Safety across forks.


class Lock(Protocol):
    def acquire(self) -> Any: ...
    def release(self) -> None: ...


def in_child(do: Callable[[], object]) -> None:
    """Call ``do`` in every process forked from this one (on platforms that can fork)."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=do)


def hold_across(lock: Lock) -> None:
    """Prevent forks while another thread holds the lock, so that a child sees consistent data.

    The lock must be re-entrant; otherwise a fork by its holder would deadlock.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


# Kernels on ranges of rows, each row processed by one thread.


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_generation = 0
"""Number of forks between this process and the one that imported the package."""


def _count_fork() -> None:
    global _generation
    _generation += 1


in_child(_count_fork)


class Threads:
    """A pool of threads that is recreated in a forked process.

    An executor inherited by a child counts threads as idle that exist only in the parent: it would
    wait for them for ever.
    """

    def __init__(self, n: int, name: str = "") -> None:
        self._n, self._name = n, name
        self._made_in = _generation
        self._executor = self._make()

    def _make(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._n, thread_name_prefix=self._name)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Submit a call, as `ThreadPoolExecutor.submit` does."""
        if self._made_in != _generation:
            self._executor, self._made_in = self._make(), _generation
        return self._executor.submit(function, *args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down, as `ThreadPoolExecutor.shutdown` does; no effect on a parent's pool."""
        if self._made_in == _generation:
            self._executor.shutdown(wait, cancel_futures=cancel_futures)


@cache
def _pool(threads: int) -> Threads:
    return Threads(threads, "softcount-kernel")


def _run(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], threads: int) -> None:
    """Run ``work(*call)`` for all calls; an error or Ctrl-C cancels those not yet started."""
    pending: list[Future[Any]] = []
    try:
        with interrupt.awaited() as heard:
            for call in calls:
                pending.append(_pool(threads).submit(heard(work), *call))
            for future in pending:
                interrupt.wait(future)
    except BaseException:
        for future in pending:
            future.cancel()
        raise


def over_rows(kernel: Callable[..., Any], indptr: Array, threads: int, *arrays: Any) -> None:
    """Run ``kernel(first, last, *arrays)`` on all rows, in ranges of about equal entries."""
    n, n_entries = len(indptr) - 1, int(indptr[-1] - indptr[0])
    if threads == 1 or n < 2 or n_entries < FEW:
        kernel(0, n, *arrays)
        return
    # handing a range to a thread costs some 30 µs: small mini-batches get one range per thread
    pieces = max(threads, min(threads * PIECES, n_entries // FEW))
    wanted = np.linspace(0, n_entries, pieces + 1)[1:-1]
    inner = np.searchsorted(indptr[1:] - indptr[0], wanted, side="right")
    borders = np.unique(np.concatenate(([0], inner, [n])))
    _run(kernel, ((int(a), int(b), *arrays) for a, b in pairwise(borders)), threads)


def even_pieces(work: Array, n: int) -> Array:
    """Return the bounds of n pieces of about equal work; fewer if there are fewer items.

    >>> even_pieces(np.array([3, 3, 1, 1]), 2)
    array([0, 1, 4])
    """
    if not len(work):
        return np.zeros(2, np.int64)  # one empty piece
    ends = np.cumsum(work)
    wanted = np.linspace(0.0, ends[-1], n + 1)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(ends, wanted), [len(ends)]]))


def in_turn(work: Callable[[int], Any], n: int, threads: int) -> None:
    """Run ``work(0)`` … ``work(n − 1)``, in parallel if ``threads`` is more than one."""
    if threads == 1 or n < 2:
        for piece in range(n):
            work(piece)
        return
    _run(work, ((piece,) for piece in range(n)), threads)


# Single-threaded linear algebra: otherwise sums would depend on the number of threads.


class _Blas:
    """Thread limit of linear algebra: set by the first holder, lifted by the last."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.libraries: list[Any] | None = None
        self.before: list[int] = []  # threads of each library before the limit was set
        self.holders: dict[object, int] = {}  # holder of the limit → its thread
        hold_across(self.lock)
        in_child(self._forget_others)

    def set(self, numbers: Sequence[int]) -> None:
        for library, number in zip(self.libraries or (), numbers, strict=True):
            # threadpoolctl 3.8 lets only the first thread that ever set OpenBLAS's limit set it
            # again; but the limit is global, and we count its holders ourselves
            set_threads = getattr(library, "_real_set_num_threads", library.set_num_threads)
            set_threads(number)

    def release(self, holder: object) -> None:
        with self.lock:
            if self.holders.pop(holder, None) is not None and not self.holders:
                self.set(self.before)

    def _forget_others(self) -> None:
        """Release, in a forked process, the holders whose threads do not exist there."""
        mine = threading.get_ident()
        for holder in [holder for holder, thread in self.holders.items() if thread != mine]:
            self.release(holder)


_blas = _Blas()


@contextmanager
def single_threaded() -> Iterator[None]:
    """A context in which BLAS and LAPACK use one thread, however many such contexts overlap.

    >>> with single_threaded():
    ...     pass
    """
    holder = object()
    with _blas.lock:
        if _blas.libraries is None:
            import scipy.linalg  # noqa: F401 (has a BLAS of its own, which must be found too)
            from threadpoolctl import ThreadpoolController

            _blas.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        if not _blas.holders:
            _blas.before = [library.get_num_threads() for library in _blas.libraries]
            _blas.set([1] * len(_blas.libraries))
        _blas.holders[holder] = threading.get_ident()
    try:
        yield
    finally:
        _blas.release(holder)
