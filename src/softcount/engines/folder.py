"""Files of a session that several machines share: shards, parameters of a step, states of shards.

A file holds a record (`softcount.core.records`), and is written aside and renamed, or put into
object storage: who finds its name finds all of it. Arrays keep the order of their axes in memory,
on which sums may depend. Nothing here outlives its session, so nothing is synced to disk.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save, save_file

from softcount.core import records
from softcount.core.errors import StoreError
from softcount.engines.cloud import CloudPath, Place
from softcount.engines.packing import memory_order
from softcount.text.disk import ShardsOnAccess

try:
    import fcntl
except ImportError:  # no such locks on this system: folders of ended sessions stay
    fcntl = None  # type: ignore[assignment]

KEY = "softcount session"
SESSION = "softcount-session-"
OWNER = "owner.json"
BROKEN = (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError)
HEAD = 8
"""Bytes of a file of safetensors that say how long its header is."""


def write(path: Place, value: Any) -> tuple[int, set[str]]:
    """Write a value; return its size in bytes and the names of the modules of its classes.

    Raises `NotRecordable` if it has no form as a record, and then writes nothing.
    """
    structure, arrays = records.pack(value)
    order: dict[str, list[int]] = {}
    for name, array in arrays.items():
        arrays[name], axes = memory_order(array)
        if axes != sorted(axes):
            order[name] = np.argsort(axes).tolist()
    facts = {KEY: json.dumps({"structure": structure, "order": order})}
    modules = set(_modules(structure))
    if isinstance(path, CloudPath):
        content = save(arrays, facts)
        path.write_bytes(content)
        return len(content), modules
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            save_file(arrays, draft, facts)
            size = draft.stat().st_size
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        raise StoreError(
            f"cannot write {path}: {error}",
            "the folder of a cluster must have room, and every worker must be able to write to it",
        ) from error
    return size, modules


def read(path: Place, modules: Collection[str] = ()) -> Any:
    """Read a value that `write` wrote.

    ``modules``  names of modules whose dataclasses may be made, besides softcount's
    """
    return read_sized(path, modules)[0]


def read_sized(path: Place, modules: Collection[str] = ()) -> tuple[Any, int]:
    """Read a value that `write` wrote; return it with the size of its file in bytes."""
    try:
        if isinstance(path, CloudPath):
            content = path.read_bytes()
            size, arrays = len(content), load(content)
            end = HEAD + int.from_bytes(content[:HEAD], "little")
            metadata = json.loads(content[HEAD:end])["__metadata__"]
        else:
            size = path.stat().st_size
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata()
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(metadata[KEY])
        for name, axes in facts["order"].items():
            arrays[name] = arrays[name].transpose(axes)
        return records.unpack(facts["structure"], arrays, _Modules(modules)), size
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except BROKEN as error:
        raise StoreError(f"{path} is damaged: {error}") from error


def _modules(structure: Any) -> Iterator[str]:
    """Yield the modules of all classes in the structure of a record, but softcount's."""
    if isinstance(structure, list):
        for each in structure:
            yield from _modules(each)
    elif isinstance(structure, dict):
        for key, each in structure.items():
            if key in ("record", "enum"):
                module = each.partition(":")[0]
                if module.partition(".")[0] != records.PACKAGE:
                    yield module
            else:
                yield from _modules(each)


class _Modules(Collection[str]):
    """Modules that are imported when they are asked for."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def __contains__(self, name: object) -> bool:
        if name not in self.names:
            return False
        import_module(str(name))
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


# Values that are put aside, in memory or in files


class Kept(list[Any]):
    """Values in memory."""

    def all(self) -> Sequence[Any]:
        """Return the values as a sequence."""
        return list(self)

    def take(self) -> Iterator[Any]:
        """Yield the values, and forget them."""
        self.reverse()
        while self:
            yield self.pop()


class Scratch:
    """Values in the files of a folder, which is removed with this object.

    Pickles hold the name of the folder, and do not remove it.

    ``where``  a folder to make it in; if that is not possible, it is one for temporary files
    """

    def __init__(self, where: Path) -> None:
        try:
            self.path = make_session(where)
        except StoreError:
            self.path = make_session(Path(tempfile.gettempdir()))
        self._n = 0
        weakref.finalize(self, _remove_own, self.path, os.getpid())

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def append(self, value: Any) -> None:
        """Write a value to the next file."""
        write(self._file(self._n), value)
        self._n += 1

    def read(self, number: int) -> Any:
        """Read a value."""
        return read(self._file(number))

    def all(self) -> Sequence[Any]:
        """Return the values as a sequence, which reads them when they are accessed."""
        return ShardsOnAccess(self.read, [(number,) for number in range(self._n)])

    def take(self) -> Iterator[Any]:
        """Yield the values, and remove their files."""
        for number in range(self._n):
            yield self.read(number)
            self._file(number).unlink()

    def _file(self, number: int) -> Place:
        return self.path / f"{number}.safetensors"


Shelf = Kept | Scratch


def _remove_own(path: Place, process: int) -> None:
    if os.getpid() == process:  # not in a fork
        remove_session(path)


# Folders of sessions. Their owner holds a lock, which the system releases when it ends.

_locks: dict[Path, BinaryIO] = {}


def make_session(where: Place) -> Place:
    """Make a folder for a session; remove those whose owners, on this machine, are no more.

    In object storage, which has no locks, those of sessions that were killed stay.
    """
    name = f"{SESSION}{secrets.token_hex(8)}"
    owner = json.dumps({"host": platform.node(), "process": os.getpid()}).encode()
    if isinstance(where, CloudPath):
        (where / name / OWNER).write_bytes(owner)
        return where / name
    for path in where.glob(f"{SESSION}*"):
        if _is_abandoned(path / OWNER):
            shutil.rmtree(path, ignore_errors=True)
    path = where / name
    try:
        path.mkdir()
        _locks[path] = file = (path / OWNER).open("w+b")
        file.write(owner)
        file.flush()
    except OSError as error:
        raise StoreError(
            f"cannot make a folder in {where}: {error.strerror}",
            "choose one that may be written to",
        ) from error
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return path


def _is_abandoned(owner: Path) -> bool:
    if fcntl is None:
        return False
    try:
        if json.loads(owner.read_bytes())["host"] != platform.node():
            return False  # locks of other machines may not be seen here
        with owner.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def remove_session(path: Place) -> None:
    """Remove a session's folder, and what a worker wrote into it in the meantime."""
    if isinstance(path, CloudPath):
        path.remove()
        return
    for _ in range(2):
        shutil.rmtree(path, ignore_errors=True)
    lock = _locks.pop(path, None)
    if lock is not None:
        lock.close()
