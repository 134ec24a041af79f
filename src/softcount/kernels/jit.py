"""numba's njit as this package uses it: no GIL, no fastmath, cached where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F, **options: Any) -> F:
    """Compile ``function`` on first call.

    The machine code is kept on disk; where neither the package's folder nor the user's home can be
    written, numba refuses to cache at decoration time, and we compile in every process instead.
    """
    try:
        compiled: F = numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True, **options)(function)
    return compiled


def inline(function: F) -> F:
    """As `njit`, for a small helper that is to vanish into its callers."""
    return njit(function, inline="always")


def lean(function: F) -> F:
    """Compiled without a check of each division: with it, references to arrays are counted too."""
    return njit(function, error_model="numpy")


def merged(function: F) -> F:
    """As `lean`, and made a part of its callers."""
    return njit(function, error_model="numpy", forceinline=True)
