"""The interface of engines, which map an E-step over shards and sum the results.

An engine knows neither models nor learners. It gets a function and the shards, and returns the sum.
Two guarantees make results the same on one thread, on many, and on a cluster:

- the sum is taken in a fixed binary tree over the order of shards, whichever finishes first;
- state that belongs to a shard (`Stats.local`) stays with the shard and is transferred only when it
  is asked for (`Session.states`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from softcount.core.types import EStep, Params, Stats

Shard = Any
"""A part of the data; only the model knows its contents."""

Expect = Callable[[Params, Shard, EStep, Any], Stats]
"""An E-step: (params, shard, how, local) → Stats."""


class Session(Protocol):
    """Shards opened on an engine. Close it (or use ``with``) when done."""

    def __len__(self) -> int:
        """Return the number of shards."""

    @property
    def shards(self) -> Sequence[Shard]:
        """The shards themselves, for work that needs all of them at once."""

    def expect(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> Stats:
        """Sum ``function`` over the shards in ``which`` (all, if None)."""

    def each(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> list[Stats]:
        """Return the result of ``function`` for each shard of ``which``, in that order."""

    def map(
        self,
        function: Callable[..., Any],
        params: Params,
        how: EStep,
        which: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        """Yield what ``function`` returns for each shard of ``which``, of any kind, in that order.

        The function is called as an E-step is, with the shard's state; it leaves none.
        """

    def snapshot(self) -> Any:
        """Return the state of all shards, for `restore`; an engine may return a mere name of it."""

    def states(self) -> Mapping[int, Any]:
        """Return the state of each shard that has one, by the shard's number, for checkpoints."""

    def restore(self, state: Any) -> None:
        """Restore the state of the shards that `snapshot` or `states` returned."""

    def reset(self) -> None:
        """Forget the state of all shards."""

    def close(self) -> None:
        """Release threads, workers and shards."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Engine(Protocol):
    """Where the work is done."""

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> Session:
        """Open shards for work.

        ``threads_inside``: shards are processed one after the other, and the function may use all
        threads itself; otherwise every shard gets one thread.
        """
