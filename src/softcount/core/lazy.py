"""Lazy imports: names are imported when first used, so that importing a package is cheap.

The public names of a package are listed once, in the stub ``__init__.pyi`` beside its
``__init__.py``: type checkers and editors read it, and so does `attach`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from its stub.

    ``__getattr__, __dir__, __all__ = attach(__name__, __file__)``
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

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
