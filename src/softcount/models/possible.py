"""Items that a model holds impossible are named, never passed over."""

from __future__ import annotations

import numpy as np

from softcount.errors import ImpossibleItem
from softcount.types import Array


def demand_possible(numbers: Array, logs: Array, why: str, hint: str) -> None:
    """Raise `ImpossibleItem` for the first item whose log-probability is −inf."""
    impossible = numbers[np.isneginf(logs)]
    if len(impossible):
        first = int(impossible.min())
        raise ImpossibleItem(f"item {first} {why}", hint, item=first)
