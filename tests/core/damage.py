"""Model files that were written by hand: the checksum is right, and the content is not."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from softcount.core import store
from softcount.core.errors import StoreError

Damage = Callable[[dict[str, Any], dict[str, Any]], Any]
"""Changes a file's arrays and its other facts."""


def refused(good: store.Stored, damage: Damage, path: Path) -> bool:
    """Whether a damaged file is refused, as it should be: by nothing but a `StoreError`."""
    arrays, facts = dict(good.arrays), deepcopy(dict(good.meta))
    damage(arrays, facts)
    store.write(path, good.kind, arrays, facts, good.signature)
    try:
        store.load(path)
    except StoreError:
        return True
    return False


def settings(**changed: Any) -> Damage:
    return lambda arrays, meta: meta["settings"].update(changed)


def meta(**changed: Any) -> Damage:
    return lambda arrays, facts: facts.update(changed)


def without(name: str) -> Damage:
    return lambda arrays, facts: facts.pop(name)


def array(name: str, change: Any) -> Damage:
    """Another array; a function changes what is there, None removes it."""

    def damage(there: dict[str, Any], facts: dict[str, Any]) -> None:
        key = f"table.{name}" if f"table.{name}" in there else name
        if change is None:
            del there[key]
        else:
            there[key] = change(there[key]) if callable(change) else np.array(change)

    return damage


# of numbers
def first(value: float) -> Any:
    """Another first number."""

    def changed(table: Any) -> Any:
        table = np.array(table, float)
        table.flat[0] = value
        return table

    return changed


EVERY: dict[str, Any] = {
    "shorter": lambda table: table[..., :-1].copy(),
    "longer": lambda table: np.concatenate([table, table[..., -1:]], axis=-1),
    "flat": lambda table: table.reshape(1, 1, -1),
    "nan": first(np.nan),
    "inf": first(np.inf),
    "negative": first(-1.0),
    "of bytes": lambda table: np.frombuffer(b"no numbers", np.uint8).copy(),
    "nothing": lambda table: table[..., :0].copy(),
}
"""What no array of numbers may become."""
