"""Files in place of memory, for what belongs to the items of a corpus on disk.

They have no name, so that the system removes them when nobody uses them any more, however the
process ends. They are in the folder of temporary files: the environment variable TMPDIR names one
that is on a disk and has room.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from softcount.core import pages
from softcount.core.errors import StoreError
from softcount.core.types import Array

LARGE = 1 << 26
"""Tables, and states of shards, of up to this many bytes are kept in memory all the same."""


def empty_table(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return an uninitialised array, one that is a file if it is large (see `read_only`)."""
    if np.prod(shape, dtype=np.float64) * np.dtype(dtype).itemsize <= LARGE:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:  # the array keeps it open
            _reserve(file, int(np.prod(shape)) * np.dtype(dtype).itemsize)
            return np.memmap(file, dtype, "r+", shape=shape)
    except OSError as error:
        raise _no_room(error) from error


def _reserve(file: Any, size: int) -> None:
    """Make a file this large, with room on the disk for all of it.

    Without it, a full disk would be found out when the mapped file is written to: by SIGBUS.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def read_only(table: Array) -> Array:
    """Return a table that has been filled, which must not be written to any more if it is a file.

    It is used like any array; what is looked at is read.
    """
    if isinstance(table, np.memmap):
        table.flush()
        table.flags.writeable = False
    return table


_n_on_disk = 0
"""Number of sessions that now learn from a corpus on disk."""


@contextmanager
def large_tables_in_files() -> Iterator[None]:
    """Let `zeros` make files of large tables: the data, too, are on disk."""
    global _n_on_disk
    _n_on_disk += 1
    try:
        yield
    finally:
        _n_on_disk -= 1


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return zeros, for parameters or counts: a large table is a file, if that is wanted.

    Such a file is mapped into memory; the system writes to the disk what it has no memory for.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not _n_on_disk or size <= LARGE or not hasattr(mmap, "MAP_SHARED"):
        return pages.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:  # the mapping keeps it open
            _reserve(file, size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    except OSError as error:
        raise _no_room(error) from error


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a `SpillFile`, which is free again when this object is no longer used."""

    file: SpillFile
    place: int
    sizes: tuple[int, ...]

    def read(self) -> list[Any]:
        """Read what was written, into fresh memory."""
        return self.file.read(self.place, self.sizes)

    def map(self) -> list[Any]:
        """Map what was written into memory, to be looked at once and not changed."""
        return self.file.map(self)

    def __del__(self) -> None:
        self.file.free[sum(self.sizes)].append(self.place)


@dataclass(eq=False)
class SpillFile:
    """A file for parts of any size, whose space is used again. Threads may share it.

    >>> file = SpillFile()
    >>> region = file.write([b"some", b"bytes"])
    >>> [bytes(part) for part in region.read()]
    [b'some', b'bytes']
    >>> del region
    >>> file.write([b"other one"]).place, file.size
    (0, 9)
    """

    free: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Places of unused regions, by their size."""
    size: int = 0
    _file: BinaryIO | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, parts: Sequence[Any]) -> Region:
        """Write some bytes."""
        views = [memoryview(part).cast("B") for part in parts]
        sizes = tuple(view.nbytes for view in views)
        try:
            with self._lock:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
                unused = self.free[sum(sizes)]
                place = unused.pop() if unused else self.size
                self.size = max(self.size, place + sum(sizes))
                self._file.seek(place)
                for view in views:
                    while view.nbytes:
                        view = view[self._file.write(view) :]
        except OSError as error:
            raise _no_room(error) from error
        return Region(self, place, sizes)

    def read(self, place: int, sizes: Sequence[int]) -> list[Any]:
        """Read parts of these sizes that are one after the other."""
        parts: list[Any] = [np.empty(size, np.uint8).data for size in sizes]
        with self._lock:
            assert self._file is not None
            self._file.seek(place)
            for part in parts:
                done = 0
                while done < part.nbytes:
                    got = self._file.readinto(part[done:])  # type: ignore[attr-defined]
                    if not got:
                        raise StoreError("a temporary file is shorter than it was")
                    done += got
        return parts

    def map(self, region: Region) -> list[Any]:
        """Map the parts of a region into memory; it is not used again as long as they are."""
        assert self._file is not None
        before = region.place % mmap.ALLOCATIONGRANULARITY
        size = before + sum(region.sizes)
        if size == before:
            return [b"" for _ in region.sizes]
        mapped = _Mapped(
            self._file.fileno(), size, access=mmap.ACCESS_READ, offset=region.place - before
        )
        mapped.region = region
        ends = np.cumsum((before, *region.sizes)).tolist()
        whole = memoryview(mapped)
        return [whole[first:last] for first, last in pairwise(ends)]


class _Mapped(mmap.mmap):
    """A mapped region, which exists as long as this."""

    region: Region


def _no_room(error: OSError) -> StoreError:
    return StoreError(
        f"cannot write a temporary file in {tempfile.gettempdir()}: {error.strerror or error}",
        "set TMPDIR to a folder on a disk with room",
    )
