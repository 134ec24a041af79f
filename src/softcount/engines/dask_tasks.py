"""What the workers of a Dask cluster do: tasks that find all they need by name.

A worker is a cache. Shards, parameters and states are files in the session's folder; models, and
shards that have no form as a file, come along with a task (`Request.parcels`) where the worker says
that it lacks them.
"""

from __future__ import annotations

import threading
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from softcount.core.errors import SoftcountError
from softcount.core.records import NotRecordable
from softcount.core.types import EStep
from softcount.engines import arithmetic, folder
from softcount.engines.blocks import add_up
from softcount.engines.cloud import find_place
from softcount.engines.packing import Packed, find_method, pack, sendable
from softcount.engines.remote import Block, Version
from softcount.kernels.threads import single_threaded

Names = Mapping[str, str]
"""The file of each table of parameters, by the family's name."""


@dataclass(frozen=True)
class Request:
    """A call's work on a block, by names.

    ``folder``    of the session
    ``function``  the name of what was packed, and of its method (see `Functions`)
    ``shards``    the name of each shard's parcel; "" if it is a file, or in the sequence
    ``sequence``  the name of the parcel of a sequence that makes all shards; or ""
    ``reads``     the version of each shard's state, or None
    ``modules``   whose classes the files may hold
    ``memory``    bytes that the worker may keep
    """

    folder: str
    function: tuple[str, str]
    params: Names
    against: Names | None
    how: EStep
    adds: bool
    block: Block
    shards: tuple[str, ...]
    sequence: str
    reads: tuple[Version | None, ...]
    writes: Version | None
    modules: tuple[str, ...]
    memory: int
    parcels: Mapping[str, Packed]


@dataclass(frozen=True)
class Reply:
    """What became of a request, or of several that were added up.

    ``where``    the address of the worker
    ``wrote``    the shards that have new states
    ``modules``  whose classes the files of these states hold
    ``lacks``    names of parcels that must come along
    ``seconds``  how long the work took
    """

    value: Packed | None = None
    error: BaseException | None = None
    trace: str = ""
    where: str = ""
    wrote: tuple[int, ...] = ()
    modules: frozenset[str] = frozenset()
    lacks: tuple[str, ...] = ()
    seconds: float = 0.0


class Lacks(Exception):
    """A worker does not have parcels of these names."""


class Cache:
    """What was used last, up to a number of bytes; by its name.

    >>> cache = Cache()
    >>> for name in "abc":
    ...     cache.put(name, name.upper(), size=4, most=8)
    >>> cache.find("a"), cache.find("b")
    (None, 'B')
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0

    def find(self, name: str) -> Any:
        """Return what has a name, or None."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name][0]

    def put(self, name: str, value: Any, size: int, most: int) -> None:
        """Keep something; drop what was used least recently if all is more than ``most``."""
        with self._lock:
            self._drop(name)
            self._kept[name] = value, size
            self._size += size
            while self._size > most and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def drop(self, name: str) -> None:
        with self._lock:
            self._drop(name)

    def drop_all(self, beginning: str) -> None:
        """Drop everything whose name begins so."""
        with self._lock:
            for name in [name for name in self._kept if name.startswith(beginning)]:
                self._drop(name)

    def _drop(self, name: str) -> None:
        if name in self._kept:
            self._size -= self._kept.pop(name)[1]


_cache = Cache()
"""Of this worker process."""


def do(request: Request) -> Reply:
    """Do the work of a request; an error of the E-step is part of the reply."""
    began = perf_counter()
    wrote: dict[int, set[str]] = {}
    try:
        with single_threaded():
            value = pack(_work(request, wrote), "what the function returned")
        reply = Reply(value)
    except Lacks as lack:
        reply = Reply(lacks=lack.args)
    except BaseException as error:
        reply = Reply(error=sendable(error), trace=traceback.format_exc())
    seconds = perf_counter() - began
    modules = frozenset[str]().union(*wrote.values())
    from distributed import get_worker  # it is there: this is a worker

    where = get_worker().address
    return replace(reply, where=where, wrote=tuple(wrote), modules=modules, seconds=seconds)


def _work(request: Request, wrote: dict[int, set[str]]) -> Any:
    """Do the work, and note the shards whose states it wrote, with their classes' modules."""
    names = {request.function[0], *request.shards, request.sequence} - {""}
    parcels = _find_parcels(request, names)
    sent = parcels[request.function[0]]
    root, most = find_place(request.folder), request.memory

    def read(name: str) -> Any:
        """Read a file, unless it is here already; None stands for no value at all in a cache."""
        path = root / name
        value = _cache.find(str(path))
        if value is None:
            value, size = folder.read_sized(path, request.modules)
            _cache.put(str(path), value, size, most)
        return value

    def shard(number: int, parcel: str) -> Any:
        if parcel:
            return parcels[parcel]
        if request.sequence:
            return parcels[request.sequence][number]
        return read(f"shards/{number}")

    def state(number: int, version: Version | None) -> Any:
        return None if version is None else read(f"states/{version}/{number}")

    def keep(number: int, new: Any) -> None:
        assert request.writes is not None
        path = root / f"states/{request.writes}/{number}"
        try:
            size, own = folder.write(path, new)
        except NotRecordable as error:
            raise SoftcountError(
                f"the state that the E-step leaves with a shard cannot be written to a file: "
                f"{error.message}",
                "let Stats.local be arrays, or a dataclass or named tuple of them that is defined "
                "at the top level of a module",
            ) from error
        _cache.put(str(path), new, size, most)
        old = reads[number]
        if old is not None:
            _cache.drop(str(root / f"states/{old}/{number}"))
        wrote[number] = own

    reads = dict(zip(request.block, request.reads, strict=True))
    function = find_method(sent, request.function[1])
    params = {name: read(f"params/{file}") for name, file in request.params.items()}
    how = request.how
    if request.against is not None:
        against = {name: read(f"params/{file}") for name, file in request.against.items()}
        how = replace(how, against=against)
    if not request.adds and request.writes is None:
        ((number, parcel),) = zip(request.block, request.shards, strict=True)
        return function(params, shard(number, parcel), how, state(number, reads[number]))
    parts = (
        (number, shard(number, parcel), state(number, reads[number]))
        for number, parcel in zip(request.block, request.shards, strict=True)
    )
    return add_up(function, params, how, parts, keep)


def _find_parcels(request: Request, names: set[str]) -> dict[str, Any]:
    """Return parcels by name; raise `Lacks` if some are neither here nor in the request."""
    found = {name: load(packed) for name, packed in request.parcels.items()}
    for name, value in found.items():
        _cache.put(name, value, request.parcels[name].size, request.memory)
    found |= {name: _cache.find(name) for name in names - set(found)}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise Lacks(*missing)
    return found


def _writable(part: Any) -> Any:
    """Return memory that can be written to: compiled code treats other arrays as another type."""
    view = memoryview(part)
    return np.array(view) if view.readonly else view


def load(packed: Packed) -> Any:
    """Unpack what came by way of Dask."""
    return Packed(packed.main, [_writable(part) for part in packed.beside]).load()


def add(left: Reply, right: Reply) -> Reply:
    """Add up the replies of two neighbouring subtrees; the first error stays."""
    both = replace(
        left,
        wrote=left.wrote + right.wrote,
        modules=left.modules | right.modules,
        lacks=left.lacks + right.lacks,
        seconds=left.seconds + right.seconds,
        error=left.error or right.error,
        trace=left.trace or right.trace,
    )
    if both.error is not None or both.lacks:
        return replace(both, value=None)
    assert left.value is not None
    assert right.value is not None
    return replace(both, value=pack(load(left.value) + load(right.value)))


def greet(path: str) -> dict[str, Any]:
    """Return what a worker is like: versions, arithmetic, and whether it sees a file."""
    return {
        "versions": arithmetic.versions(),
        "arithmetic": arithmetic.fingerprint(),
        "sees": find_place(path).exists(),
    }


async def forget(path: str) -> None:
    """Drop what belongs to a session. (Dask runs only coroutines without waiting for them.)"""
    _cache.drop_all(path)
