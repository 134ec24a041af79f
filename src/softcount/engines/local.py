"""The engine for one machine: a pool of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, TypeVar

from softcount.core import interrupt, spill
from softcount.core.errors import SoftcountError, brief
from softcount.core.estimate import count_bytes
from softcount.core.spill import Region, SpillFile
from softcount.core.types import EStep, Params, Stats
from softcount.engines.base import Expect, Shard
from softcount.engines.blocks import tree_sum
from softcount.engines.packing import Packed, is_lazy, pack
from softcount.kernels.threads import Threads, single_threaded, usable_cpus

T = TypeVar("T")

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


class _Spilled:
    """A state of a shard that is in a file.

    It is no dataclass, which a file could name: what it holds is unpickled.
    """

    def __init__(self, main: bytes, beside: Region) -> None:
        self.main, self.beside = main, beside

    def load(self) -> Any:
        """Read the state into memory."""
        return Packed(self.main, self.beside.read()).load()

    def look(self) -> Any:
        """Return the state with arrays that are mapped files, to be written elsewhere."""
        return Packed(self.main, self.beside.map()).load()


class LocalSession(AbstractContextManager["LocalSession"]):
    """Shards in memory, with their state, and a pool of threads for them.

    If shards are made on access, so that they need not fit into memory, their states need not
    either: beyond `softcount.core.spill.LARGE` bytes they are in a temporary file. Large tables of
    the model are files, too.
    """

    def __init__(self, shards: Sequence[Shard], threads: int, threads_inside: bool) -> None:
        self.shards = shards
        self._local: dict[int, Any] = {}
        self._spill = SpillFile() if is_lazy(shards) else None
        self._sizes: dict[int, int] = {}
        """Bytes of the states that are in memory, if others are in a file."""
        self._threads_inside = threads if threads_inside else 1
        self._threads = 1 if threads_inside else min(threads, len(shards))
        self._pool = Threads(self._threads) if self._threads > 1 else None
        self._responsive = interrupt.Responsive()
        self._settings = ExitStack()
        self._settings.enter_context(single_threaded())
        if self._spill is not None:
            self._settings.enter_context(spill.large_tables_in_files())

    def __len__(self) -> int:
        return len(self.shards)

    def expect(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> Stats:
        shared: dict[str, Any] = {}

        def share(name: str, make: Callable[[], Any]) -> Any:
            if name not in shared:
                shared[name] = make()
            return shared[name]

        if self._pool is None:
            how = replace(how, into=share)
        stats = tree_sum(self._map(function, params, how, which))
        return replace(stats, counts={**stats.counts, **shared}) if shared else stats

    def each(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> list[Stats]:
        return list(self._map(function, params, how, which))

    def map(
        self,
        function: Callable[..., Any],
        params: Params,
        how: EStep,
        which: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        return self._results(function, params, replace(how, threads=self._threads_inside), which)

    def snapshot(self) -> Mapping[int, Any]:
        return dict(self._local)

    def states(self) -> Mapping[int, Any]:
        states = sorted(self._local.items())
        return {n: one.look() if isinstance(one, _Spilled) else one for n, one in states}

    def restore(self, state: Mapping[int, Any]) -> None:
        self.reset()
        for shard, one in state.items():
            self._keep(shard, one)

    def reset(self) -> None:
        self._local, self._sizes = {}, {}

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._settings.close()  # has an effect only the first time

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state(self, shard: int) -> Any:
        state = self._local.get(shard)
        return state.load() if isinstance(state, _Spilled) else state

    def _keep(self, shard: int, state: Any) -> None:
        """Keep the state of a shard, in memory or in a file."""
        if self._spill is not None and not isinstance(state, _Spilled):
            self._sizes.pop(shard, None)
            size = count_bytes(state)
            if sum(self._sizes.values()) + size > spill.LARGE:
                packed = pack(state, "the state of a shard")
                state = _Spilled(packed.main, self._spill.write(packed.beside))
            else:
                self._sizes[shard] = size
        self._local[shard] = state

    def _map(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None
    ) -> Iterator[Stats]:
        """Yield results in the order of ``which``, without the shards' state, which stays here."""
        how = replace(how, threads=self._threads_inside)
        which = range(len(self.shards)) if which is None else which
        results = self._results(function, params, how, which)
        for shard, stats in zip(which, results, strict=True):
            if stats.local is None:
                yield stats
                continue
            if not how.score_only:
                self._keep(shard, stats.local)
            yield replace(stats, local=None)

    def _results(
        self, function: Callable[..., T], params: Params, how: EStep, which: Sequence[int] | None
    ) -> Iterator[T]:
        """Yield what the function returns, in the order of ``which``."""
        which = range(len(self.shards)) if which is None else which

        def work(shard: int) -> T:
            return function(params, self.shards[shard], how, self._state(shard))

        if self._pool is None or len(which) == 1:
            return map(self._responsive, repeat(work), which)
        return self._ahead(work, which)

    def _ahead(self, work: Callable[[int], T], which: Sequence[int]) -> Iterator[T]:
        """Run the work in the pool; only a few results are ever computed ahead of demand."""
        assert self._pool is not None
        ahead: deque[Future[T]] = deque()
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
