"""Settings and start values of models, checked: a mistake is told, and what would do."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from softcount.errors import LearnerError, StartError, shown
from softcount.families.base import Family
from softcount.types import Array


def check_number(name: str, value: Any, hint: str = "", *, above: bool = False) -> None:
    """Complain unless ``value`` is finite and not negative (``above``: above zero)."""
    good = isinstance(value, Real) and not isinstance(value, bool)
    if not good or not 0.0 <= float(value) < np.inf or (above and float(value) == 0.0):
        wanted = "above 0 and finite" if above else "finite and not negative"
        raise LearnerError(f"{name}={shown(value)}: must be a number, {wanted}", hint)


def check_whole(name: str, value: Any, least: int = 1, hint: str = "") -> None:
    """Complain unless ``value`` is a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise LearnerError(f"{name}={shown(value)}: must be a whole number, at least {least}", hint)


def shaped(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Start values of a table as an array of its shape; rows may be grouped in another way."""
    values = np.asarray(given, dtype=float)
    if values.size != np.prod(shape) or values.shape[-1:] != shape[-1:]:
        raise StartError(
            f"the start of {name!r} has the shape {values.shape}, not {shape}",
            "give one row a class, in the order of the columns of the data",
        )
    return values.reshape(shape)


def start_tables(given: Mapping[str, Any], families: Mapping[str, Family]) -> dict[str, Array]:
    """Start values of all tables, as arrays of the families' shapes."""
    if set(given) != set(families):
        raise StartError(f"start values are given for {sorted(given)}", f"give {sorted(families)}")
    return {
        name: shaped(name, given[name], family.uniform().shape) for name, family in families.items()
    }
