"""Kept machine code that is damaged is thrown away and made again."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
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


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kept_code.py"
    path.write_text(SOURCE)
    return path


def doubled(source: Path) -> Any:
    """The function, as a new process would have it."""
    spec = importlib.util.spec_from_file_location("kept_code", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.doubled


def hits(source: Path) -> int:
    """1 if the code was there, 0 if it was made; it does what it should either way."""
    function = doubled(source)
    assert function(3) == 6
    return int(sum(function.stats.cache_hits.values()))


def kept(source: Path, kind: str) -> Path:
    (found,) = source.parent.glob(f"__pycache__/*.{kind}")
    return found


class Trap:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


def cut(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def cut_the_last(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def few(path: Path) -> None:
    path.write_bytes(b"\x80\x04")


def garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def zeros(path: Path) -> None:
    """What a power cut can leave of a file that was just written: its length and no more."""
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path) -> None:
    """One bit in the middle; of machine code, it would still be run."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def old_form(path: Path) -> None:
    path.write_bytes(pickle.dumps("0.59.0") + pickle.dumps(((0, 0), {})))


def no_such_class(path: Path) -> None:
    path.write_bytes(b"cno_such_module\nNoSuchClass\n.")


def foreign(path: Path) -> None:
    path.write_bytes(pickle.dumps(Trap(path.with_name("trace"))))


DAMAGES: list[Callable[[Path], None]] = [
    *(cut, cut_the_last, empty, few, garbage, zeros, flip, old_form, no_such_class, foreign),
    Path.unlink,
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_is_thrown_away(
    source: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    assert [hits(source), hits(source)] == [0, 1]
    damage(kept(source, kind))
    assert [hits(source), hits(source)] == [0, 1]  # made again, and kept again
    assert not kept(source, kind).with_name("trace").exists()


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_folder_in_its_place(source: Path, kind: str) -> None:
    assert hits(source) == 0
    path = kept(source, kind)
    path.unlink()
    path.mkdir()
    (path / "mine").touch()
    assert [hits(source), hits(source)] == [0, 0]
    assert (path / "mine").exists()  # who knows whose it is
    assert not list(path.parent.glob("*.tmp.*"))


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_file_that_cannot_be_read(
    source: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hits(source) == 0
    path, read = kept(source, kind), Path.read_bytes

    def deny(self: Path) -> bytes:
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", deny)
        assert hits(source) == 0
    assert hits(source) == 1


def test_a_full_disk(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, path: str) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(jit._Sealed, "_open_for_write", full)
        assert [hits(source), hits(source)] == [0, 0]
    assert [hits(source), hits(source)] == [0, 1]


def test_whole_code_that_this_numba_cannot_use(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hits(source) == 0

    def fail(self: Any, *args: Any) -> Any:
        raise RuntimeError("LLVM does not like it")

    with monkeypatch.context() as patch:
        patch.setattr(jit._CheckedCache._impl_class, "rebuild", fail)
        assert hits(source) == 0
    assert hits(source) == 1


def test_code_of_another_type_under_this_name(source: Path) -> None:
    """Two processes that compile at once may both call theirs the first."""
    function = doubled(source)
    assert function(3) == 6
    other = source.with_name("elsewhere")
    shutil.copytree(source.parent / "__pycache__", other)
    shutil.rmtree(source.parent / "__pycache__")
    assert doubled(source)(1.5) == 3.0
    shutil.copy(next(other.glob("*.nbi")), kept(source, "nbi"))  # speaks of whole numbers
    again = doubled(source)
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_command_whose_code_is_damaged_answers(tmp_path: Path, kind: str) -> None:
    text = tmp_path / "texts.txt"
    text.write_text("a b c\nb c d\nx y z\ny z w\n")
    command = [sys.executable, "-m", "softcount", "cluster", str(text), "-k", "2"]
    here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def answered() -> str:
        done = subprocess.run(command, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    before = answered()
    damaged = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert damaged
    for path in damaged:
        cut(path)
    assert answered() == before
