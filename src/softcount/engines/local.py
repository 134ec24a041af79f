"""The engine for one machine: a pool of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from softcount import interrupt
from softcount.engines.base import Expect, Shard, tree_sum, without_local
from softcount.errors import SoftcountError, shown
from softcount.kernels.blas import single_threaded
from softcount.kernels.pool import Threads, usable_cpus
from softcount.types import How, Params, Stats

MOST_THREADS = 4096
"""More than any machine has processors; operating systems refuse to start many more."""


@dataclass(frozen=True)
class Local:
    """This machine, with some threads (None: as many as there are usable processors).

    The number of threads changes how long the work takes and nothing else.

    >>> with Local(threads=2).open(["ab", "c"]) as session:
    ...     def length(params, shard, how, local):
    ...         return Stats({}, items=len(shard))
    ...     session.expect(length, {}, How()).items
    3
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise SoftcountError(
                f"Local(threads={shown(self.threads)}): there must be at least one thread, and "
                f"no more than {MOST_THREADS}",
                "leave threads out to use all processors",
            )

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> LocalSession:
        return LocalSession(shards, self.threads or usable_cpus(), threads_inside)


class LocalSession:
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
        self, function: Expect, params: Params, how: How, which: Sequence[int] | None = None
    ) -> Stats:
        return tree_sum(self._map(function, params, how, which))

    def each(
        self, function: Expect, params: Params, how: How, which: Sequence[int] | None = None
    ) -> list[Stats]:
        return list(self._map(function, params, how, which))

    def snapshot(self) -> Any:
        return dict(self._local)

    def restore(self, snapshot: Any) -> None:
        self._local = dict(snapshot)

    def reset(self) -> None:
        self._local = {}

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._linear_algebra.close()  # once, however often it is called

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def _map(
        self, function: Expect, params: Params, how: How, which: Sequence[int] | None
    ) -> Iterator[Stats]:
        how = replace(how, threads=self._threads_inside)
        which = range(len(self)) if which is None else which

        def work(shard: int) -> Stats:
            return function(params, self.shards[shard], how, self._local.get(shard))

        for shard, stats in zip(which, self._in_order(work, which), strict=True):
            if stats.local is not None and not how.score_only:
                self._local[shard] = stats.local
            yield without_local(stats)

    def _in_order(self, work: Any, which: Sequence[int]) -> Iterator[Stats]:
        """Results in the order of ``which``; only a few are ever ahead of what was asked for."""
        if self._pool is None or len(which) == 1:
            yield from (self._responsive(work, shard) for shard in which)
            return
        ahead: deque[Future[Stats]] = deque()
        try:
            with interrupt.awaited() as heard:
                for shard in which:
                    ahead.append(self._pool.submit(heard(work), shard))
                    if len(ahead) > 2 * self._threads:
                        yield interrupt.wait(ahead.popleft())
                while ahead:
                    yield interrupt.wait(ahead.popleft())
        finally:  # after an error or Ctrl-C, what has not begun never will
            for future in ahead:
                future.cancel()
