"""What model files hold, looked at before it is believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount import store
from softcount.errors import StoreError
from softcount.types import Array

AGAIN = "the file was written by another version, or by hand: save the model again"


def strings(given: Any, n: int, what: str) -> Array | None:
    """A list of ``n`` strings from a file as an array, or None for None."""
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise StoreError(f"the {what} are not a list of strings", AGAIN)
    if len(given) != n:
        raise StoreError(f"there are {len(given)} {what} for {n} columns", AGAIN)
    return np.array(given, dtype=object)


def numbers(
    stored: store.Stored, name: str, shape: tuple[int | None, ...], most: float = np.inf
) -> Array:
    """An array of a file, if it has this shape (None: any length) and finite numbers, of which
    none is further than ``most`` from zero."""
    array = np.asarray(stored.arrays[name], dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise StoreError(
            f"{name!r} has the shape {array.shape}, not {shape}, or holds what is no number", AGAIN
        )
    if array.size and np.abs(array).max() > most:
        raise StoreError(f"{name!r} holds {np.abs(array).max():.3g}, beyond {most:g}", AGAIN)
    return array
