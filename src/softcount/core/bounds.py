"""How large and how small numbers may be: every bound in one place, with its reason beside it.

Numbers of 64 bits have 53 binary digits and end near 1.8e308. Whatever is squared, added up over
all items, or compared with a one that is added to it must stay well within that, or answers are
wrong without anybody noticing. What lies beyond a bound is an error that names what was given;
weights and counts that are too small to be felt count as nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softcount.core.errors import DataError

if TYPE_CHECKING:  # bounds are declared with parameters, which commands read without numpy
    from softcount.core.types import Array

MAX_WEIGHT = MAX_COUNT = 1e15
"""The weight of an item, or how often a word occurs in it. From 2^53 ≈ 9e15 on, one more makes no
difference to a sum, and counts are no longer counts."""

MAX_POINT_WEIGHT = 1e11
"""The weight of a point. A covariance is inverted: weights of n beside a prior that is worth one
point make eigenvalues n times as far apart, and beyond 1e11 the smallest of them is rounding."""

MIN_WEIGHT = 1e-100
"""Weights and counts below this are taken for 0. A share of a class (1e-12 and less), the square
of a value, and the reciprocal of a sum must not leave the range of numbers."""

MAX_NUMBER = 1e15
"""Settings: priors, smoothing, strengths, penalties. Pseudo-counts are counts: see `MAX_COUNT`."""

MIN_NUMBER = sys.float_info.min
"""2.2e-308: positive numbers below it have lost digits, and their reciprocals are infinite."""

MAX_VALUE = 1e50
"""A coordinate of a point. Its square is that of a variance, the square of which must still be a
number when it is multiplied by weights and added up over all items: 1e50^4 · 1e15 · 1e9 = 1e224."""

MAX_SQUARE = MAX_VALUE**2
"""A variance of such coordinates."""

MAX_PRECISION = 1e200
"""The reciprocal of a variance: times a square of `MAX_VALUE` it is still a number."""

MIN_SQUARE = 1e-180
"""Columns whose variance is below this do not vary: with `MAX_PRECISION` there is room for a class
whose variance is a tiny share of that."""

MIN_ROW = 1e-100
"""What a row of probabilities in a model file adds up to at least (one, as a rule)."""

MAX_DRAWN = 10**8
"""Words, or votes, that are drawn at once: 1 GB and more while they are made."""

MAX_CLASSES = 10**6
"""Classes, topics, states, units: tables have a row for each, and kernels number them by 32 bits.
(What fits into memory is another question: see `softcount.core.estimate`.)"""

MAX_WHOLE = 10**9
"""All other settings that count something; kernels number such things by 32 bits."""

MAX_STEPS = 2**63 - 1
"""Steps at most, where a run ends by itself: ``sys.maxsize`` is a way to say "no limit"."""

MAX_RUNS = 10**6
"""Runs, chains, short runs, rounds of warming up: each is a whole fit or a pass over all data."""

MAX_SEED = 2**128
"""Seeds: numpy mixes whole numbers of any size, and 128 bits are all that it draws of its own."""

MIN_TEMPER, MAX_TEMPER = 1e-6, 50.0
"""Powers of posteriors. Below, all is as likely as all else, and the objective log Σ p^β / β is
larger than any data; above, a probability of one in a million would be less than any number,
1e-6^50 = 1e-300, and where nothing but the best is to be left there is `HardEM`."""


@contextmanager
def within_range(what: str) -> Iterator[None]:
    """Raise a `DataError` about ``what`` where a whole number is too large for 64 bits."""
    try:
        yield
    except OverflowError:
        raise DataError(
            f"{what} holds a whole number that is too large for 64 bits",
            "look whether it is a mistake, or measure in other units",
        ) from None


def demand_drawable(sizes: Array, what: str) -> None:
    """Raise a `DataError` if more is to be drawn than fits into memory."""
    import numpy as np

    total = float(np.sum(sizes, dtype=np.float64))
    if total > MAX_DRAWN:
        raise DataError(
            f"{total:.3g} {what} would have to be drawn, as many as the model learned from had",
            f"ask for fewer items: {MAX_DRAWN:.0e} {what} can be drawn at once",
        )


def demand_values(values: Array, what: str) -> None:
    """Raise a `DataError` if a coordinate is beyond `MAX_VALUE`; NaN is not checked here."""
    import numpy as np

    largest = float(np.abs(values).max(initial=0.0))
    if largest > MAX_VALUE:
        raise DataError(
            f"{what} a value of {largest:.3g}, which is beyond {MAX_VALUE:g}: "
            "its square could not be counted with",
            "measure in other units, or look whether it is a mistake",
        )


def without_dust(
    weights: Array, what: str, hint: str, most: float = MAX_WEIGHT, least: float = MIN_WEIGHT
) -> Array:
    """Weights or counts; those below ``least``, too small to be felt, are set to 0.

    Raises a `DataError` if one is above ``most``, negative, or not a number.

    >>> import numpy as np
    >>> without_dust(np.array([1.0, 1e-320]), "sample_weight", "")
    array([1., 0.])
    """
    import numpy as np

    wrong = ~((weights >= 0.0) & (weights <= most))
    if wrong.any():
        first = int(np.argmax(wrong.reshape(-1)))
        raise DataError(
            f"{what} has {weights.reshape(-1)[first]:g} at place {first}: "
            f"must not be negative, nor above {most:g}",
            hint,
        )
    dust = (weights > 0.0) & (weights < least)
    return np.where(dust, 0.0, weights) if dust.any() else weights
