"""How far the work on an engine's workers is, for whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class ShardProgress(NamedTuple):
    """How much of a call's work is done: an E-step, or a prediction.

    ``done``     number of shards that are done, of ``shards``
    ``workers``  number of workers that there are; 0: it waits for some
    """

    done: int
    shards: int
    workers: int


_listener: ContextVar[Callable[[ShardProgress], object] | None] = ContextVar(
    "listener", default=None
)


@contextmanager
def heard_by(listener: Callable[[ShardProgress], object]) -> Iterator[None]:
    """Tell ``listener`` inside the block, whenever a worker has done something."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def tell(done: int, shards: int, workers: int) -> None:
    """Tell the listener, if there is one, how far a call is."""
    listener = _listener.get()
    if listener is not None:
        listener(ShardProgress(done, shards, workers))
