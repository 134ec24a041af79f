"""numba's njit as this package uses it: no GIL, no fastmath, cached where that is possible.

Machine code is looked for where it came with the package (`softcount.kernels.ready`), then in the
user's cache, and compiled if it is in neither.
"""

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
from numba.core import event, sigutils
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler_lock import global_compiler_lock

from softcount.kernels import compiling, ready
from softcount.kernels.ready import SEAL
from softcount.kernels.threads import hold_across

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = "softcount."
DISABLE_JIT: bool = vars(numba.config)["DISABLE_JIT"]
"""Whether nothing shall be compiled: kernels then run as Python."""

# a child forked while another thread compiles would deadlock at its first kernel. A fork acquires
# the lock that was registered last first, and numba's is the first that compiling acquires
hold_across(compiling.LOCK)
hold_across(global_compiler_lock)


class _Announcer(event.Listener):
    """Tells `compiling` when numba compiles."""

    def on_start(self, event: Any) -> None:
        compiling.begin(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        compiling.end()


event.register("numba:compile", _Announcer())


def njit(function: F, **options: Any) -> F:
    """Compile ``function`` on first call.

    The machine code is cached on disk; if neither the package's folder nor the user's home is
    writable, every process compiles anew.
    """
    compiled: Any = numba.njit(nogil=True, **options)(function)
    if not DISABLE_JIT:
        compiled._cache = _Cache(compiled)
    return compiled  # type: ignore[no-any-return]


class _Cache(NullCache):
    """Where machine code is looked for: with the package, then in the user's cache.

    Nothing is done before the first call. Importing does not touch the disk, and a kernel may call
    others that are defined after it, which are a part of its fingerprint.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._dispatcher)

    @cached_property
    def _users(self) -> Any:
        """The user's cache; one that keeps nothing if no folder can be written to."""
        try:
            return _CheckedCache(self._dispatcher.py_func, self._fingerprint)
        except RuntimeError:
            return _NoFolder()

    @property
    def cache_path(self) -> Any:
        return self._users.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()  # whatever is loaded is linked to what is defined there
        args, _ = sigutils.normalize_signature(sig)
        name = self._dispatcher.py_func.__qualname__
        found = ready.load(name, self._fingerprint, args, target_context)
        if found is not None or KEEP is not None:
            return found
        return self._users.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        global n_lost
        if KEEP is not None:
            KEEP(self._dispatcher.py_func.__qualname__, self._fingerprint, data)
            return
        try:
            self._users.save_overload(sig, data)
        except OSError:  # a full disk, say; the code in memory can be used all the same
            n_lost += 1


class _NoFolder(NullCache):
    """Stands for the user's cache where there is no folder that can be written to."""

    def save_overload(self, sig: Any, data: Any) -> None:
        raise OSError


n_lost = 0
"""Number of kernels that were compiled, and whose code could not be kept."""
KEEP: Callable[[str, str, Any], object] | None = None
"""What is done with compiled code in place of the user's cache, where code is built ahead."""


class _CheckedCache(FunctionCache):
    """numba's cache; code that cannot be read is compiled and written again."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)
        self._cache_file = _Sealed(self._cache_path, f"{function.__qualname__}-{stamp}", stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # intact, but not usable by this version of numba
            return None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Compute the key as numba does, and add the fields of tuples, which types do not have."""
        args, _ = sigutils.normalize_signature(sig)
        described = tuple(ready.describe(one) for one in args)
        return (*super()._index_key(sig, codegen), described)


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


def fingerprint(function: Callable[..., Any]) -> str:
    """Compute a digest of everything that a kernel's machine code depends on.

    numba considers cached code fresh as long as the function's own file is unchanged, even if
    functions that it calls have changed, and stale if only a comment has. This digest covers the
    function's own code and the options it is compiled with, the same of all kernels it calls, the
    constants it uses, the fields of tuples it takes, and, for code written as LLVM instructions,
    the source of its module. So changing a kernel invalidates its callers and nothing else, and
    kernels may move between files.
    """
    digest = hashlib.blake2b(str(sys.implementation.cache_tag).encode(), digest_size=16)
    for part in sorted(_parts(function)):
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
            uses = sorted(_list_references(one), key=lambda use: use[0])
            names = [f"{name}: {_describe(value)}" for name, value in uses]
            found.add(f"{one.__qualname__} {one.__defaults__} {_text(one.__code__)} {names}")
            waiting.extend(value for _, value in uses)
        elif hasattr(one, "py_func"):
            found.add(f"{one.py_func.__qualname__} {sorted(one.targetoptions.items())}")
            waiting.append(one.py_func)
        elif hasattr(one, "_defn"):  # an intrinsic: what writes LLVM may use all of its module
            found.add(f"{one._name} {_module_text(one._defn.__module__)}")
    return found


def _describe(value: Any) -> str:
    """Describe what a name stands for in a kernel; what functions do is described elsewhere."""
    if isinstance(value, np.ndarray):  # frozen into the code
        return repr((value.dtype, value.shape, value.tobytes()))
    if isinstance(value, bool | int | float | complex | str | bytes | tuple | np.generic):
        return repr(value)
    if isinstance(value, type):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    function = getattr(value, "py_func", value)
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", ""))


def _list_references(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that a function uses, and the objects that they stand for.

    These are globals, closure cells, attributes of modules, and the types in its annotations.
    """
    names, codes = set[str](), [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(const for const in code.co_consts if isinstance(const, CodeType))
    annotations = " ".join(map(str, function.__annotations__.values()))
    names.update(re.findall(r"\w+", annotations))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not filled yet
            yield name, cell.cell_contents
    for name in sorted(names):
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.startswith(PACKAGE):
                for other in sorted(names):
                    if hasattr(value, other):
                        yield f"{name}.{other}", getattr(value, other)
        elif value is not None:
            yield name, value


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
