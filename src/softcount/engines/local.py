"""The engine for one machine: a pool of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from softcount.core import interrupt
from softcount.core.errors import SoftcountError, brief
from softcount.core.types import EStep, Params, Stats
from softcount.engines.base import Expect, Shard
from softcount.kernels.threads import Threads, single_threaded, usable_cpus

MOST_THREADS = 4096
"""More than any machine has processors; operating systems refuse to start many more threads."""


@dataclass(frozen=True)
class Local:
    """Threads on this machine (``threads=None``: one per usable processor).

    The number of threads affects speed and nothing else.

    >>> with Local(threads=2).open(["ab", "c"]) as session:
    ...     def length(params, shard, how, local):
    ...         return Stats({}, items=len(shard))
    ...     session.expect(length, {}, EStep()).items
    3
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise SoftcountError(
                f"Local(threads={brief(self.threads)}): there must be at least one thread, and "
                f"no more than {MOST_THREADS}",
                "leave threads out to use all processors",
            )

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> LocalSession:
        return LocalSession(shards, self.threads or usable_cpus(), threads_inside)


class LocalSession(AbstractContextManager["LocalSession"]):
    """Shards in memory, with their state, and a pool of threads for them."""

    def __init__(self, shards: Sequence[Shard], threads: int, threads_inside: bool) -> None:
        self.shards = shards
        self._local: dict[int, Any] = {}
        self._threads_inside = threads if threads_inside else 1
        self._threads = 1 if threads_inside else min(threads, len(shards))
        self._pool = Threads(self._threads) if self._threads > 1 else None
        self._responsive = interrupt.Responsive()
        self._linear_algebra = ExitStack()
        self._linear_algebra.enter_context(single_threaded())

    def __len__(self) -> int:
        return len(self.shards)

    def expect(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> Stats:
        return tree_sum(self._map(function, params, how, which))

    def each(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> list[Stats]:
        return list(self._map(function, params, how, which))

    def snapshot(self) -> Any:
        return dict(self._local)

    def states(self) -> Mapping[int, Any]:
        return dict(self._local)

    def restore(self, snapshot: Any) -> None:
        self._local = dict(snapshot)

    def reset(self) -> None:
        self._local = {}

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._linear_algebra.close()  # has an effect only the first time

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None
    ) -> Iterator[Stats]:
        """Yield results in the order of ``which``, without the shards' state, which stays here."""
        how = replace(how, threads=self._threads_inside)
        which = range(len(self.shards)) if which is None else which

        def work(shard: int) -> Stats:
            return function(params, self.shards[shard], how, self._local.get(shard))

        in_turn = self._pool is None or len(which) == 1
        results = (
            map(self._responsive, repeat(work), which) if in_turn else self._ahead(work, which)
        )
        for shard, stats in zip(which, results, strict=True):
            if stats.local is None:
                yield stats
                continue
            if not how.score_only:
                self._local[shard] = stats.local
            yield replace(stats, local=None)

    def _ahead(self, work: Callable[[int], Stats], which: Sequence[int]) -> Iterator[Stats]:
        """Run the work in the pool; only a few results are ever computed ahead of demand."""
        assert self._pool is not None
        ahead: deque[Future[Stats]] = deque()
        try:
            with interrupt.awaited() as heard:
                for shard in which:
                    ahead.append(self._pool.submit(heard(work), shard))
                    if len(ahead) > 2 * self._threads:
                        yield interrupt.wait(ahead.popleft())
                while ahead:
                    yield interrupt.wait(ahead.popleft())
        finally:  # after an error or Ctrl-C, cancel what has not begun
            for future in ahead:
                future.cancel()


def tree_sum(parts: Iterable[Stats]) -> Stats:
    """Sum in a fixed binary tree over the order of ``parts``, at least one.

    Works like a binary counter: neighbours of equal size are added as soon as both are available,
    so that no more than log₂ n partial sums exist, and rounding errors grow with log n, not n.

    >>> tree_sum(Stats({}, log_likelihood=x) for x in (1.0, 2.0, 3.0)).log_likelihood
    6.0
    """
    sums: list[tuple[int, Stats]] = []
    for part in parts:
        size, total = 1, part
        while sums and sums[-1][0] == size:
            total = sums.pop()[1] + total
            size *= 2
        sums.append((size, total))
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total
