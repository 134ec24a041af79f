"""Largest and smallest numbers allowed, all in one place, each with its reason.

64-bit floats have 53 binary digits and a largest value near 1.8e308. Whatever is squared, summed
over all items, or added to numbers near one must stay well within that range, or results are wrong
without notice. A value beyond a bound is an error that quotes the value; weights and counts that
are too small to have any effect are set to 0.
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
"""The weight of an item, or how often a word occurs in it. From 2^53 ≈ 9e15 on, adding one does
not change a sum, and counts are no longer exact."""

MAX_POINT_WEIGHT = 1e11
"""The weight of a point. A covariance is inverted: a weight of n, against a prior that is worth one
point, multiplies the ratio of eigenvalues by n; beyond 1e11 the smallest is rounding error."""

MIN_WEIGHT = 1e-100
"""Weights and counts below this are set to 0. Their products with responsibilities (1e-12 and
less), the squares of values, and the reciprocals of sums must not leave the range of floats."""

MAX_NUMBER = 1e15
"""Settings: priors, smoothing, strengths, penalties. Pseudo-counts are counts: see `MAX_COUNT`."""

MIN_NUMBER = sys.float_info.min
"""2.2e-308: smaller positive numbers have lost digits, and their reciprocals are infinite."""

MAX_VALUE = 1e50
"""A coordinate of a point. Its square is of the size of a variance, whose square must still be
finite when multiplied by weights and summed over all items: 1e50^4 · 1e15 · 1e9 = 1e224."""

MAX_SQUARE = MAX_VALUE**2
"""A variance of such coordinates."""

MAX_PRECISION = 1e200
"""The reciprocal of a variance: times the square of `MAX_VALUE` it is still finite."""

MIN_SQUARE = 1e-180
"""Columns whose variance is below this count as constant: with `MAX_PRECISION` this leaves room for
a class whose variance is a tiny fraction of it."""

MIN_ROW = 1e-100
"""The smallest sum that a row of probabilities in a model file may have (normally it is one)."""

MAX_DRAWN = 10**8
"""Words, or votes, that are drawn at once: they need 1 GB or more while they are being made."""

MAX_CLASSES = 10**6
"""Classes, topics, states, units: tables have a row for each, and kernels use 32-bit indices.
(What fits into memory is another question: see `softcount.core.estimate`.)"""

MAX_WHOLE = 10**9
"""All other integer settings; kernels use 32-bit indices for such things."""

MAX_STEPS = 2**63 - 1
"""Largest ``max_iter``, for runs that stop by themselves: ``sys.maxsize`` means "no limit"."""

MAX_RUNS = 10**6
"""Runs, chains, short runs, warm-up rounds: each is a whole fit or a pass over all data."""

MAX_SEED = 2**128
"""Seeds: numpy accepts integers of any size, but its own entropy is 128 bits."""

MIN_TEMPER, MAX_TEMPER = 1e-6, 50.0
"""Powers β of posteriors. Below, all hidden values are equally likely, and the objective
log Σ p^β / β is dominated by the number of values, not by the data; above, a probability of one in
a million would underflow, 1e-6^50 = 1e-300, and to keep only the best value there is `HardEM`."""


@contextmanager
def within_range(what: str) -> Iterator[None]:
    """Raise a `DataError` about ``what`` if an integer inside the block overflows 64 bits."""
    try:
        yield
    except OverflowError:
        raise DataError(
            f"{what} contains a whole number that is too large for 64 bits",
            "check whether it is a mistake, or use other units",
        ) from None


def check_drawable(sizes: Array, what: str) -> None:
    """Raise a `DataError` if more would be drawn than fits into memory."""
    import numpy as np

    total = float(np.sum(sizes, dtype=np.float64))
    if total > MAX_DRAWN:
        raise DataError(
            f"{total:.3g} {what} would have to be drawn, at the item sizes of the training data",
            f"ask for fewer items: at most {MAX_DRAWN:.0e} {what} can be drawn at once",
        )


def check_coordinates(values: Array, what: str) -> None:
    """Raise a `DataError` if a coordinate is beyond `MAX_VALUE`; NaN is not checked here."""
    import numpy as np

    largest = float(np.abs(values).max(initial=0.0))
    if largest > MAX_VALUE:
        raise DataError(
            f"{what} a value of {largest:.3g}, which is beyond {MAX_VALUE:g}: "
            "computations with its square would overflow",
            "use other units, or check whether it is a mistake",
        )


def clean_weights(
    weights: Array, what: str, hint: str, most: float = MAX_WEIGHT, least: float = MIN_WEIGHT
) -> Array:
    """Return weights or counts with values below ``least``, too small to have effect, set to 0.

    Raises a `DataError` if one is above ``most``, negative, or NaN.

    >>> import numpy as np
    >>> clean_weights(np.array([1.0, 1e-320]), "sample_weight", "")
    array([1., 0.])
    """
    import numpy as np

    wrong = ~((weights >= 0.0) & (weights <= most))
    if wrong.any():
        first = int(np.argmax(wrong.reshape(-1)))
        raise DataError(
            f"{what} has {weights.reshape(-1)[first]:g} at position {first}: "
            f"must not be negative, nor above {most:g}",
            hint,
        )
    dust = (weights > 0.0) & (weights < least)
    return np.where(dust, 0.0, weights) if dust.any() else weights
