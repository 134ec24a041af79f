"""What sessions have in common whose shards are in other processes: names for shards' states.

The state that an E-step leaves with a shard has a name, a version; the session knows which version
each shard is at. An E-step reads one version and writes another, so it can be asked for again. A
snapshot is a copy of the names, and a state is kept as long as a snapshot has its name.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Self
from weakref import WeakSet

from softcount.core.errors import SoftcountError
from softcount.core.types import EStep, Params, Stats
from softcount.engines.base import Expect, Shard
from softcount.engines.blocks import tree_sum

Block = tuple[int, ...]
"""The numbers of the shards of an aligned block."""
Version = int
"""The name of a shard's state: the number of the call that wrote it."""


@dataclass(frozen=True)
class Call:
    """An E-step, or another function of shards, as a session was asked for it.

    ``adds``    whether the results of a block are added up; otherwise blocks have one shard
    ``writes``  the version of the states that it leaves; None: it leaves none
    """

    function: Callable[..., Any]
    params: Params
    how: EStep
    adds: bool
    writes: Version | None


class Snapshot:
    """The names of the states of a session's shards at one time; the states stay where they are."""

    def __init__(self, session: RemoteSession, versions: Mapping[int, Version]) -> None:
        self.session, self.versions = session, dict(versions)

    def __del__(self) -> None:
        self.session._some_may_be_dead = True


class RemoteSession(AbstractContextManager["RemoteSession"]):
    """Shards opened on other processes.

    ``threads``  the number of threads that a function may use inside of a shard
    """

    largest_block: int | None = None
    """The largest number of shards in a block, if it is set (to try what it costs)."""
    moved: list[int]
    """Bytes sent to other processes and received from them."""

    def __init__(self, shards: Sequence[Shard], threads: int) -> None:
        self.shards = shards
        self._threads = threads
        self._versions: dict[int, Version] = {}
        self._alive: set[tuple[int, Version]] = set()
        self._dead: set[tuple[int, Version]] = set()
        self._some_may_be_dead = False
        self._snapshots: WeakSet[Snapshot] = WeakSet()
        self._calls = 0
        self.moved = [0, 0]
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self.shards)

    def expect(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> Stats:
        call = self._call(function, params, how, adds=True)
        return self._total(call, range(len(self)) if which is None else which)

    def each(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> list[Stats]:
        call = self._call(function, params, how)
        blocks = [(shard,) for shard in (range(len(self)) if which is None else which)]
        return list(self._results(call, blocks))

    def map(
        self,
        function: Callable[..., Any],
        params: Params,
        how: EStep,
        which: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        call = replace(self._call(function, params, how), writes=None)
        return self._results(call, [(s,) for s in (range(len(self)) if which is None else which)])

    def snapshot(self) -> Snapshot:
        snapshot = Snapshot(self, self._versions)
        self._snapshots.add(snapshot)
        return snapshot

    def states(self) -> Mapping[int, Any]:
        return self._gather(dict(sorted(self._versions.items())))

    def restore(self, state: Snapshot | Mapping[int, Any]) -> None:
        if isinstance(state, Snapshot):
            if state.session is not self:
                raise SoftcountError(
                    "this snapshot was taken by another session",
                    "states that outlive their session are what states() returns",
                )
            self._versions, self._some_may_be_dead = dict(state.versions), True
            return
        self._calls += 1
        self._scatter(state, self._calls)
        self.reset()
        for shard in state:
            self._left(shard, self._calls)

    def reset(self) -> None:
        self._versions, self._some_may_be_dead = {}, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # what engines define
    @abstractmethod
    def close(self) -> None:
        """Release processes, files and memory."""

    @abstractmethod
    def _total(self, call: Call, which: Sequence[int]) -> Stats:
        """Sum over shards."""

    @abstractmethod
    def _results(self, call: Call, blocks: Sequence[Block]) -> Iterator[Any]:
        """Yield the results of blocks, in order."""

    @abstractmethod
    def _gather(self, versions: Mapping[int, Version]) -> Mapping[int, Any]:
        """Return states of shards."""

    @abstractmethod
    def _scatter(self, states: Mapping[int, Any], version: Version) -> None:
        """Hand states of shards out, under a version."""

    # what engines use
    def _call(
        self, function: Callable[..., Any], params: Params, how: EStep, adds: bool = False
    ) -> Call:
        if os.getpid() != self._process:
            raise SoftcountError(
                "this session was opened by another process, of which this one is a fork",
                "open a session in each process, or fit in one of them",
            )
        self._calls += 1
        writes = None if how.score_only else self._calls
        return Call(function, params, replace(how, threads=self._threads), adds, writes)

    def _add_up(self, call: Call, blocks: Sequence[Block]) -> Stats:
        """Sum the results of blocks, in the fixed tree."""
        total: Stats = tree_sum(self._results(call, blocks), map(len, blocks))
        return total

    def _left(self, shard: int, version: Version) -> None:
        """Note that a shard has a state of this version now."""
        if shard in self._versions and not self._is_kept(shard):
            self._dead.add((shard, self._versions[shard]))
        self._versions[shard] = version
        self._alive.add((shard, version))

    def _is_kept(self, shard: int) -> bool:
        """Return whether a snapshot has the name of this shard's state."""
        now = self._versions.get(shard)
        return any(one.versions.get(shard) == now for one in self._snapshots)

    def _take_dead(self) -> set[tuple[int, Version]]:
        """Return the states, as (shard, version), that nobody will ask for again; once each."""
        if self._some_may_be_dead:
            self._some_may_be_dead = False
            named = set(self._versions.items())
            self._dead = self._alive - named.union(*(s.versions.items() for s in self._snapshots))
        dead, self._dead = self._dead, set()
        self._alive -= dead
        return dead


class Shared:
    """Something that sessions share, and that ends some time after the last of them."""

    idle = 60.0
    """Seconds after the last session."""

    def __init__(self) -> None:
        self.sessions = 0
        self.lock = threading.RLock()
        self._timer: threading.Timer | None = None

    def enter(self) -> None:
        with self.lock:
            self.sessions += 1
            self._stop_timer()

    def leave(self) -> None:
        with self.lock:
            self.sessions -= 1
            if self.sessions == 0:
                self._timer = threading.Timer(self.idle, self.end_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def end_if_idle(self) -> None:
        with self.lock:
            if self.sessions == 0:
                self._stop_timer()
                self.end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Release everything; the next session starts anew."""
