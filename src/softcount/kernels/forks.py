"""What is to survive a fork: a child has the parent's memory, but of its threads only the one that
forked. Locks that others held stay shut for ever, pools wait for threads that are not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol


class Lock(Protocol):
    def acquire(self) -> Any: ...
    def release(self) -> None: ...


def in_child(do: Callable[[], object]) -> None:
    """Call ``do`` in every process that is forked from this one (where there is such a thing)."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=do)


def hold_across(lock: Lock) -> None:
    """No fork while another thread holds the lock: what it guards is whole in the child as well.

    It must be re-entrant, lest a fork by its holder waits for itself.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
