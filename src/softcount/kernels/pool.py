"""Threads inside one shard: kernels called on ranges, each row with one owner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from softcount import interrupt
from softcount.kernels import forks
from softcount.types import Array

FEW = 4096
"""Fewer entries are not worth the trouble of calling other threads."""

PIECES = 4
"""Ranges a thread: some are heavier than others, and whoever is done takes the next."""


def usable_cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_generation = 0
"""How many forks lie between this process and the one that imported the package."""


def _count_fork() -> None:
    global _generation
    _generation += 1


forks.in_child(_count_fork)


class Threads:
    """A pool of threads that a forked process makes anew.

    An executor that a child inherits counts threads as idle that exist in the parent only: it would
    wait for them for ever.
    """

    def __init__(self, n: int, name: str = "") -> None:
        self._n, self._name = n, name
        self._made_in = _generation
        self._executor = self._make()

    def _make(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._n, thread_name_prefix=self._name)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """As `ThreadPoolExecutor.submit`."""
        if self._made_in != _generation:
            self._executor, self._made_in = self._make(), _generation
        return self._executor.submit(function, *args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `ThreadPoolExecutor.shutdown`; in a child there is nothing of the parent's to end."""
        if self._made_in == _generation:
            self._executor.shutdown(wait, cancel_futures=cancel_futures)


@cache
def _pool(threads: int) -> Threads:
    return Threads(threads, "softcount-kernel")


def _run(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], threads: int) -> None:
    """``work(*call)`` for all calls; after an error or Ctrl-C, what has not begun never will."""
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
    """``kernel(first, last, *arrays)`` over all rows, cut so that entries are shared fairly."""
    n = len(indptr) - 1
    if threads == 1 or n < 2 or indptr[-1] - indptr[0] < FEW:
        kernel(0, n, *arrays)
        return
    wanted = np.linspace(0, indptr[-1] - indptr[0], threads * PIECES + 1)[1:-1]
    inner = np.searchsorted(indptr[1:] - indptr[0], wanted, side="right")
    borders = np.unique(np.concatenate(([0], inner, [n])))
    _run(kernel, ((int(a), int(b), *arrays) for a, b in pairwise(borders)), threads)


def even_pieces(work: Array, n: int) -> Array:
    """Where n pieces of about equal work begin, and the end; fewer, if there are no more items.

    >>> even_pieces(np.array([3, 3, 1, 1]), 2)
    array([0, 1, 4])
    """
    if not len(work):
        return np.zeros(2, np.int64)  # one piece with nothing in it
    ends = np.cumsum(work)
    wanted = np.linspace(0.0, ends[-1], n + 1)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(ends, wanted), [len(ends)]]))


def in_turn(work: Callable[[int], Any], n: int, threads: int) -> None:
    """``work(0)`` … ``work(n − 1)``, by several threads if there are any."""
    if threads == 1 or n < 2:
        for piece in range(n):
            work(piece)
        return
    _run(work, ((piece,) for piece in range(n)), threads)
