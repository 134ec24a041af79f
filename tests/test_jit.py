"""Machine code that is kept, and thrown away."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from softcount.kernels import jit

SOURCE = """
from softcount.kernels.jit import njit

@njit
def doubled(x):
    return 2 * x
"""


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("kept_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(path: Path) -> int:
    function = imported(path).doubled
    assert function(3) == 6
    return sum(function.stats.cache_hits.values())


def test_code_is_kept_until_any_kernel_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept_code.py"
    path.write_text(SOURCE)
    assert [hits(path), hits(path)] == [0, 1]
    monkeypatch.setattr(jit, "_sources", lambda: (("another.py", 1, 2),))
    assert [hits(path), hits(path)] == [0, 1]


def test_sources_are_those_of_all_kernels() -> None:
    names = {name for name, _, _ in jit._sources()}
    assert {"jit.py", "products.py", "rows.py"} <= names


NAMED = """
from typing import Any, NamedTuple
from softcount.kernels.jit import njit

class Pair(NamedTuple):
    left: Any
    right: Any

def called():
    return both(Pair(1, 2))

@njit
def both(pair):
    return pair.left + pair.right
"""


def test_code_of_classes_that_are_no_more_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "named_code.py"
    monkeypatch.syspath_prepend(tmp_path)
    path.write_text(NAMED)
    named = importlib.import_module("named_code")
    assert named.called() == 3
    path.write_text(NAMED.replace("Pair", "Couple"))
    monkeypatch.delitem(sys.modules, "named_code")
    assert importlib.import_module("named_code").called() == 3
    monkeypatch.delitem(sys.modules, "named_code")
