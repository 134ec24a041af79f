"""Large arrays with memory of their own, which the system has back as soon as they are freed.

What the C library allocates and frees, it keeps: arrays of some megabytes that come and go, one in
each step, leave holes that others do not fit into, half as large again as all that is in use.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np

from softcount.core.types import Array

SMALL = 1 << 20
"""Smaller arrays, in bytes, are allocated as usual."""


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return an array of zeros.

    >>> zeros((2, 3), np.int32)
    array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if size < SMALL:
        return np.zeros(shape, kind)
    if not hasattr(mmap, "MAP_PRIVATE"):  # not on Windows, which has no such holes
        return np.zeros(shape, kind)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, kind).reshape(shape)


def contiguous(array: Array) -> Array:
    """Return the array itself if it is contiguous, or a copy of it.

    >>> contiguous(np.broadcast_to(0.5, 3))
    array([0.5, 0.5, 0.5])
    """
    if array.flags.c_contiguous:
        return array
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def give_back() -> None:
    """Give what the C library has kept of freed memory back to the system, where it can (Linux)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
