"""What an engine must offer: map an E-step over shards and add up what comes back.

An engine knows neither models nor learners. It is handed a function and the shards, and answers
with the sum. Two promises make results the same on one thread, on many, and on a cluster:

- the sum is taken in a fixed binary tree over the shards' order, whatever finishes first;
- state that belongs to a shard (`Stats.local`) stays with the shard and never travels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from softcount.core.types import EStep, Params, Stats

Shard = Any
"""A part of the data; only the model that made it knows what is inside."""

Expect = Callable[[Params, Shard, EStep, Any], Stats]
"""An E-step: (params, shard, how, local) → Stats."""


class Session(Protocol):
    """Some shards, opened for work. Close it (or use ``with``) when done."""

    def __len__(self) -> int:
        """How many shards there are."""

    @property
    def shards(self) -> Sequence[Shard]:
        """The shards themselves, for work that needs all of them at once."""

    def expect(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> Stats:
        """Sum of ``function`` over the shards in ``which`` (all, if None)."""

    def each(
        self, function: Expect, params: Params, how: EStep, which: Sequence[int] | None = None
    ) -> list[Stats]:
        """What ``function`` finds in each shard of ``which``, in that order."""

    def snapshot(self) -> Any:
        """The state of all shards, to come back to with `restore`."""

    def restore(self, snapshot: Any) -> None:
        """Back to the state of the shards at `snapshot`."""

    def reset(self) -> None:
        """Forget the state of all shards."""

    def close(self) -> None:
        """Let go of threads, workers and shards."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Engine(Protocol):
    """Where the work is done."""

    def open(self, shards: Sequence[Shard], *, threads_inside: bool = False) -> Session:
        """Take the shards in hand.

        ``threads_inside``: the function wants the threads for itself, one shard after the other;
        otherwise every shard gets one thread.
        """
