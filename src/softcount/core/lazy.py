"""Lazy imports: names are imported when first used, so that importing a package is cheap.

The public names of a package are listed once, in the stub ``__init__.pyi`` beside its
``__init__.py``: type checkers and editors read it, and so does `attach`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub.

    ``__getattr__, __dir__, __all__ = attach(__name__, __file__)``
    """
    homes: dict[str, tuple[str, str]] = {}
    with open(f"{file}i", encoding="utf-8") as stub:
        # by hand: ast, pathlib and re would take longer to import than everything else here
        for line in stub:  # from module import original as name; or over several lines, with ( )
            words = line.replace("(", "").replace(",", "").split()
            if words[:1] == ["from"]:
                module, words = words[1], words[3:]
            if words[1:2] == ["as"]:
                homes[words[2]] = module, words[0]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        if find_spec(f"{module}.{original}") if module == package else False:
            value: Any = import_module(f"{module}.{original}")  # a submodule
        else:
            value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(homes), sorted(homes)
