"""Folders in object storage, and wherever else fsspec reaches: as much of `Path` as sessions need.

A file is written whole and replaced whole, as object storage does it; there are no locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcount.core.errors import StoreError

MOST_SAID = 200
"""Characters of another library's message that are repeated in ours."""


@dataclass(frozen=True)
class CloudPath:
    """A file or folder with a URL, such as ``s3://bucket/folder``.

    >>> path = CloudPath("memory://softcount") / "shards" / "7"
    >>> path.write_bytes(b"some")
    >>> path, path.exists(), path.read_bytes()
    (CloudPath(url='memory://softcount/shards/7'), True, b'some')
    >>> path.unlink()
    >>> path.exists()
    False
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> CloudPath:
        return CloudPath(f"{self.url.rstrip('/')}/{name}")

    def exists(self) -> bool:
        with self._reached("look for") as (system, path):
            return bool(system.exists(path))

    def read_bytes(self) -> bytes:
        with self._reached("read") as (system, path):
            content: bytes = system.cat_file(path)
            return content

    def write_bytes(self, content: bytes) -> None:
        with self._reached("write") as (system, path):
            try:
                system.pipe_file(path, content)
            except FileNotFoundError:  # this one does have folders
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                system.pipe_file(path, content)

    def unlink(self, missing_ok: bool = True) -> None:
        with self._reached("remove") as (system, path), suppress(FileNotFoundError):
            system.rm_file(path)

    def remove(self) -> None:
        """Remove everything in a folder, if possible."""
        with suppress(Exception), self._reached("remove") as (system, path):
            system.rm(path, recursive=True)

    @contextmanager
    def _reached(self, verb: str) -> Iterator[tuple[Any, str]]:
        """Yield fsspec's file system and its own name for this; raise `StoreError` for errors."""
        try:
            from fsspec.core import url_to_fs

            yield url_to_fs(self.url)
        except ImportError as error:  # of fsspec, or of what it needs for this kind of storage
            raise StoreError(
                f"cannot reach {self.url}: {error}",
                "install it here and for all workers, or give a folder that they share",
            ) from error
        except Exception as error:  # each kind of storage has its own
            raise StoreError(
                f"cannot {verb} {self.url}: {type(error).__name__}: {str(error)[:MOST_SAID]}",
                "is the address right, and does everybody have the right to read and write there?",
            ) from error


Place = Path | CloudPath


def find_place(name: str | os.PathLike[str]) -> Place:
    """Return the place that a path or a URL names.

    >>> find_place("s3://bucket/folder"), find_place("file:///shared")
    (CloudPath(url='s3://bucket/folder'), PosixPath('/shared'))
    """
    text = os.fspath(name)
    kind, is_url, path = text.partition("://")
    if is_url and kind != "file":
        return CloudPath(text)
    return Path(os.path.abspath(path if is_url else text))
