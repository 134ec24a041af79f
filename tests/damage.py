"""Model files that were written by hand: the checksum is right, and the content is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Damage = Callable[[dict[str, Any], dict[str, Any]], Any]
"""Changes a file's arrays and its other facts."""


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
