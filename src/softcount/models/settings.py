"""Settings of models, checked: whoever mistypes one is told which, and what would do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from softcount.errors import LearnerError, shown


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
