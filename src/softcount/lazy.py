"""Names that are imported when they are first used, so that a package costs nothing by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def attach(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``homes``: which module has which names.

    >>> get, names = attach("softcount.core", {"math": ["pi"]})
    >>> names(), round(get("pi"), 2)
    (['pi'], 3.14)
    """
    where = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(where[name]), name)
        if package in sys.modules:
            setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(where)
