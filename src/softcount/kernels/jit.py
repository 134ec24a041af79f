"""numba's njit as this package uses it: no GIL, no fastmath, cached where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F, **options: Any) -> F:
    """Compile ``function`` on first call.

    The machine code is kept on disk; where neither the package's folder nor the user's home can be
    written, numba refuses to cache at decoration time, and we compile in every process instead.
    """
    try:
        compiled: Any = numba.njit(nogil=True, cache=True, **options)(function)
        index = compiled._cache._cache_file
        index._version = (index._version, index._source_stamp, _sources())
    except RuntimeError:
        compiled = numba.njit(nogil=True, **options)(function)
    return compiled  # type: ignore[no-any-return]


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """All files of kernels as they are now.

    numba takes machine code for fresh as long as the function's own file is as it was, even if
    others that the function calls have changed. They are a part of the version, which is looked at
    before the rest of an index is: that may speak of types which are no longer there.
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
