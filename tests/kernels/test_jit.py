"""Machine code that is kept, and thrown away."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
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


def test_code_is_kept_while_nothing_it_is_made_from_changes(tmp_path: Path) -> None:
    path = tmp_path / "kept_code.py"
    path.write_text(SOURCE)
    assert [hits(path), hits(path)] == [0, 1]
    path.write_text("# a remark\n" + SOURCE + "\n\ndef another():\n    return 1\n")
    assert hits(path) == 1


CALLS = """
from softcount.kernels.jit import njit, part
from softcount.kernels.vectors import WIDTH
from typing import Any, NamedTuple

FACTOR = 3

class Pair(NamedTuple):
    left: Any
    right: Any

@njit
def doubled(x):
    return inner(x) + FACTOR - 3

@part
def inner(x):
    return 2 * x

@njit
def aside(x):
    return x

@njit
def summed(pair: Pair):
    return pair.left
"""


def prints(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    linecache.checkcache()
    module = imported(path)
    return {name: jit.fingerprint(getattr(module, name)) for name in ("doubled", "aside", "summed")}


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("return 2 * x", "return x * 2", {"doubled"}),
        ("FACTOR = 3", "FACTOR = 4", {"doubled"}),
        ("    return x\n", "    return +x\n", {"aside"}),
        ("    right: Any", "    wrong: Any", {"summed"}),
        ("import WIDTH", "import WIDTH as W", set()),
    ],
)
def test_a_change_throws_away_what_depends_on_it_and_nothing_else(
    old: str, new: str, stale: set[str], tmp_path: Path
) -> None:
    before = prints(tmp_path / "before.py", CALLS)
    after = prints(tmp_path / "after.py", CALLS.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == stale


def test_what_writes_llvm_is_a_part_of_what_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from softcount.hmm.kernels import packs

    before = jit.fingerprint(packs.forward_backward)
    usual = Path.read_text

    def changed(self: Path, *args: Any, **settings: Any) -> str:
        return usual(self, *args, **settings) + ("# x" if self.name == "vectors.py" else "")

    jit._module_text.cache_clear()
    monkeypatch.setattr(Path, "read_text", changed)
    after = jit.fingerprint(packs.forward_backward)
    jit._module_text.cache_clear()
    assert before != after


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
