"""numba's njit as this package uses it: no GIL, no fastmath, cached where that is possible."""

# mypy: allow-untyped-calls
from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

from softcount.kernels.threads import hold_across

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = "softcount."

# a child forked while another thread compiles would deadlock at its first kernel
hold_across(global_compiler_lock)


def njit(function: F, **options: Any) -> F:
    """Compile ``function`` on first call.

    The machine code is cached on disk; if neither the package's folder nor the user's home is
    writable, numba refuses to cache at decoration time, and every process compiles anew.
    """
    compiled: Any = numba.njit(nogil=True, **options)(function)
    with suppress(RuntimeError):
        compiled._cache = _CheckedCache(function)
    return compiled  # type: ignore[no-any-return]


class _CheckedCache(FunctionCache):
    """numba's cache; code that cannot be read is compiled and written again."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function
        del self._cache_file  # created on first access: see below

    @cached_property
    def _cache_file(self) -> _Sealed:  # type: ignore[override]
        """The cache file, named by the fingerprint of the code.

        The fingerprint is not available before the first call: a kernel may call others that are
        defined after it.
        """
        stamp = fingerprint(self._function)
        return _Sealed(self._cache_path, f"{self._function.__qualname__}-{stamp}", stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # intact, but not usable by this version of numba
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk, say; the code in memory can be used all the same
            super().save_overload(sig, data)


class _Sealed(IndexDataCacheFile):
    """numba's index and data files, each preceded by a digest of everything it depends on.

    A truncated or corrupted file is not unpickled, let alone run; nor is a file from other versions
    of the sources, which may refer to types that no longer exist. The digest is not a signature:
    anyone who can write these files can have code run (see docs/files.md).
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Load as numba does, but check the key.

        Two processes that compile at the same time may give their files the same name, so the index
        may come from one and the code from the other.
        """
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
        """Read a value if the file is intact; else None."""
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
        made_by = repr((self._version, self._source_stamp)).encode()
        digest = hashlib.blake2b(made_by, digest_size=SEAL)
        digest.update(data)
        return digest.digest()


SEAL = 16
"""Length of a digest in bytes."""


def fingerprint(function: Callable[..., Any]) -> str:
    """Compute a digest of everything that a kernel's machine code depends on.

    numba considers cached code fresh as long as the function's own file is unchanged, even if
    functions that it calls have changed, and stale if only a comment has. This digest covers the
    function's own code, that of all kernels it calls, the constants it uses, the fields of tuples
    it takes, and, for code written as LLVM instructions, the source of its module. So changing a
    kernel invalidates its callers and nothing else, and kernels may move between files.
    """
    digest = hashlib.blake2b(str(sys.implementation.cache_tag).encode(), digest_size=16)
    for part in sorted(_parts(_python_of(function))):
        digest.update(part.encode())
    return digest.hexdigest()


def _parts(function: Any) -> set[str]:
    """Return texts that describe everything a kernel depends on."""
    found: set[str] = set()
    waiting, seen = [function], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, FunctionType):
            found.add(f"{one.__qualname__} {one.__defaults__} {_text(one.__code__)}")
            waiting.extend(_python_of(value) for value in _list_references(one))
        elif isinstance(one, type):
            found.add(f"{one.__qualname__} {getattr(one, '_fields', '')}")
        elif hasattr(one, "_defn"):  # an intrinsic: what writes LLVM may use all of its module
            found.add(f"{one._name} {_module_text(one._defn.__module__)}")
        elif isinstance(one, np.ndarray):  # frozen into the code
            found.add(repr((one.dtype, one.shape, one.tobytes())))
        elif isinstance(one, bool | int | float | complex | str | bytes | tuple | np.generic):
            found.add(repr(one))
    return found


def _python_of(value: Any) -> Any:
    """Return the Python function of a dispatcher; anything else unchanged."""
    return getattr(value, "py_func", value)


def _list_references(function: FunctionType) -> Iterator[Any]:
    """Yield the objects that a function refers to.

    These are globals, closure cells, attributes of modules, and the types in its annotations.
    """
    names, codes = set[str](), [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(const for const in code.co_consts if isinstance(const, CodeType))
    annotations = " ".join(map(str, function.__annotations__.values()))
    names.update(re.findall(r"\w+", annotations))
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    for name in sorted(names):
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.startswith(PACKAGE):
                yield from (getattr(value, other, None) for other in sorted(names))
        elif value is not None:
            yield value


def _text(code: CodeType) -> str:
    """Describe the bytecode of a function, without comments and line numbers.

    Bytecode is available at once, while finding the source in a file takes milliseconds.
    """
    consts = [_text(one) if isinstance(one, CodeType) else _constant(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, consts))


def _constant(value: Any) -> str:
    """Format a constant identically in every process: the order of sets of strings varies."""
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


@cache
def _module_text(name: str) -> str:
    """Return the source of a module that emits LLVM (`softcount.kernels.vectors`, or a user's)."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return "" if file is None else Path(file).read_text(encoding="utf-8")


def inline(function: F) -> F:
    """Compile as `njit` does, inlining a small helper into its callers."""
    return njit(function, inline="always")


def lean(function: F) -> F:
    """Compile without checks of divisions, which would also add reference counting of arrays."""
    return njit(function, error_model="numpy")


def merged(function: F) -> F:
    """Compile as `lean` does, and force inlining into callers."""
    return njit(function, error_model="numpy", forceinline=True)


def part(function: F) -> F:
    """Compile as `lean` does, for functions called only by compiled code.

    There is no wrapper for calls from Python, and no cache on disk, since callers are cached.
    """
    unwrapped: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **unwrapped)(function)
    return compiled  # type: ignore[no-any-return]
