"""What collapsed Gibbs samplers share: rising factorials, draws from logarithms, random orders."""

from __future__ import annotations

import math

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import uniform

_FEW = 8.0
_LARGE = 32.0  # from here on three terms of Stirling's series are exact to rounding


@njit
def log_rising(x: float, n: float) -> float:
    """log x^(n) = log Γ(x + n) − log Γ(x), for whole n, without cancellation."""
    if n <= _FEW:
        product = 1.0
        for j in range(int(n)):
            product *= x + j
        return math.log(product)
    if x < _LARGE:
        return math.lgamma(x + n) - math.lgamma(x)
    y = x + n
    return (x - 0.5) * math.log1p(n / x) + n * (math.log(y) - 1.0) + (_stirling(y) - _stirling(x))


@inline
def _stirling(x: float) -> float:
    """What Stirling's formula lacks of log Γ(x)."""
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x


@njit
def draw_from_logs(
    logs: FloatArray,
    lower: int,
    upper: int,
    temper: float,
    stream: IntArray,
    scratch: FloatArray,
) -> int:
    """Draw k with probability ∝ exp(temper · logs_k), lower ≤ k < upper, by stream 0.

    ``scratch`` is as long as ``logs``, to work in.
    """
    top = -np.inf
    for k in range(lower, upper):
        top = max(top, logs[k])
    total = 0.0
    for k in range(lower, upper):
        scratch[k] = math.exp(temper * (logs[k] - top))
        total += scratch[k]
    rest = uniform(stream, 0) * total
    last = lower
    for k in range(lower, upper):
        if scratch[k] > 0.0:
            last = k
            rest -= scratch[k]
            if rest < 0.0:
                break
    return last


@njit
def shuffle_range(n: int, stream: IntArray) -> IntArray:
    """The numbers below n in random order (Fisher & Yates)."""
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = int(uniform(stream, 0) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order
