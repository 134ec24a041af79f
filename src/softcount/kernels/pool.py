"""Threads inside one shard: kernels called on ranges, each row with one owner."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from softcount import interrupt
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


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="softcount-kernel")


def over_rows(kernel: Callable[..., Any], indptr: Array, threads: int, *arrays: Any) -> None:
    """``kernel(first, last, *arrays)`` over all rows, cut so that entries are shared fairly."""
    n = len(indptr) - 1
    if threads == 1 or n < 2 or indptr[-1] - indptr[0] < FEW:
        kernel(0, n, *arrays)
        return
    wanted = np.linspace(0, indptr[-1] - indptr[0], threads * PIECES + 1)[1:-1]
    inner = np.searchsorted(indptr[1:] - indptr[0], wanted, side="right")
    borders = np.unique(np.concatenate(([0], inner, [n])))
    _await(lambda a, b: kernel(int(a), int(b), *arrays), list(pairwise(borders)), threads)


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
    _await(work, [(piece,) for piece in range(n)], threads)


def _await(work: Callable[..., Any], pieces: Sequence[tuple[Any, ...]], threads: int) -> None:
    """``work(*piece)`` of all pieces; after an error or Ctrl-C, what has not begun never will."""
    pending: list[Future[Any]] = []
    try:
        with interrupt.awaited() as heard:
            pending += [_pool(threads).submit(heard(work), *piece) for piece in pieces]
            for future in pending:
                interrupt.wait(future)
    finally:
        for future in pending:
            future.cancel()
