"""numba's njit as this package uses it: no GIL, no fastmath, cached where that is possible."""

# mypy: allow-untyped-calls
from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from softcount.kernels import forks

F = TypeVar("F", bound=Callable[..., Any])

# a child that is forked while another thread compiles would wait for it at its own first kernel
forks.hold_across(global_compiler_lock)


def njit(function: F, **options: Any) -> F:
    """Compile ``function`` on first call.

    The machine code is kept on disk; where neither the package's folder nor the user's home can be
    written, numba refuses to cache at decoration time, and we compile in every process instead.
    """
    compiled: Any = numba.njit(nogil=True, **options)(function)
    with suppress(RuntimeError):
        compiled._cache = _Kept(function)
    return compiled  # type: ignore[no-any-return]


class _Kept(FunctionCache):
    """numba's cache, for which code that cannot be read is code that was never kept.

    It is compiled again, and written over what was there.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Sealed(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whole, yet of no use to this numba
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk, or a folder of that name: the code itself is there
            super().save_overload(sig, data)


class _Sealed(IndexDataCacheFile):
    """numba's two kinds of files, each after a digest of all that it depends on.

    A file that was cut off, or some of whose bytes are not those that were written, is not
    unpickled, let alone run; nor is one that other versions of the sources have left: it may speak
    of types which are no longer there. The digest is no signature: whoever may write these files
    may have code run (see docs/files.md).
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """As numba's; but two processes that compiled at once may both have called theirs the
        first, and the index be of one and the code of the other."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> Any:
        found = self._read(self._index_path)
        return {} if found is None else found

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        """What was written there, if all of it still is; else None."""
        try:
            raw = Path(path).read_bytes()
            data = raw[SEAL:]
            return pickle.loads(data) if raw[:SEAL] == self._seal(data) else None
        except Exception:  # no such file, a folder, no rights; unpickling can raise anything
            return None

    def _write(self, path: str, value: Any) -> None:
        data = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._seal(data))
            file.write(data)

    def _seal(self, data: bytes) -> bytes:
        made_by = repr((self._version, self._source_stamp, _sources())).encode()
        digest = hashlib.blake2b(made_by, digest_size=SEAL)
        digest.update(data)
        return digest.digest()


SEAL = 16
"""Bytes of a digest."""


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """All files of kernels as they are now.

    numba takes machine code for fresh as long as the function's own file is as it was, even if
    others that the function calls have changed.
    """
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.parent.glob("families/*.py")])
    return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


def inline(function: F) -> F:
    """As `njit`, for a small helper that is to vanish into its callers."""
    return njit(function, inline="always")


def lean(function: F) -> F:
    """Compiled without a check of each division: with it, references to arrays are counted too."""
    return njit(function, error_model="numpy")


def merged(function: F) -> F:
    """As `lean`, and made a part of its callers."""
    return njit(function, error_model="numpy", forceinline=True)


def part(function: F) -> F:
    """As `lean`, for what compiled code alone calls: nothing is made for calls from Python, and
    nothing kept on disk, for its callers are."""
    unwrapped: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **unwrapped)(function)
    return compiled  # type: ignore[no-any-return]
