"""From joint log-probabilities to posteriors over classes: soft, hard, or drawn.

``joint`` is (items, classes); an item may be restricted to the classes lower_d ≤ k < upper_d.
Each kernel fills its rows of ``out`` (items, classes) with posteriors that add up to 1, and gives
the log of the sum over the allowed classes, or of the largest. An item that no class explains gets
zeros, and −inf.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.core.types import Array
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform

UNDERFLOW = -745.0
"""exp of anything below is zero, and slow to find out."""


@inline
def _peak(row: Array, lower: int, upper: int) -> tuple[float, int]:
    """The largest entry and where it is; the first of equals."""
    best, where = -np.inf, lower
    for k in range(lower, upper):
        if row[k] > best:
            best, where = row[k], k
    return best, where


@njit
def soft(joint: Array, lower: Array, upper: Array, temper: float, out: Array) -> Array:
    """r_k ∝ p_k^β; gives log Σ_k p_k^β."""
    totals = np.empty(len(joint))
    for d in range(len(joint)):
        out[d] = 0.0
        peak, _ = _peak(joint[d], lower[d], upper[d])
        totals[d] = peak
        if peak == -np.inf:
            continue
        total = 0.0
        for k in range(lower[d], upper[d]):
            below = temper * (joint[d, k] - peak)
            weight = math.exp(below) if below > UNDERFLOW else 0.0
            out[d, k] = weight
            total += weight
        for k in range(lower[d], upper[d]):
            out[d, k] /= total
        totals[d] = temper * peak + math.log(total)
    return totals


NOTHING = -45.0
"""The log of a probability that is lost in rounding beside 1, even if a thousand are added."""


@inline
def _log_total(row: Array, lower: int, upper: int, peak: float, where: int) -> float:
    """log Σ_k p_k, where the largest is known."""
    rest = 0.0
    for k in range(lower, upper):
        if k != where and row[k] - peak > NOTHING:
            rest += math.exp(row[k] - peak)
    return peak + math.log1p(rest)


@njit
def totals(joint: Array, lower: Array, upper: Array) -> Array:
    """log Σ_k p_k."""
    logs = np.empty(len(joint))
    for d in range(len(joint)):
        peak, where = _peak(joint[d], lower[d], upper[d])
        logs[d] = _log_total(joint[d], lower[d], upper[d], peak, where)
    return logs


@njit
def hard(joint: Array, lower: Array, upper: Array, out: Array) -> tuple[Array, Array]:
    """1 for the best class, the first of equals; gives its log-probability, and log Σ_k p_k."""
    best, logs = np.empty(len(joint)), np.empty(len(joint))
    for d in range(len(joint)):
        out[d] = 0.0
        best[d], where = _peak(joint[d], lower[d], upper[d])
        logs[d] = _log_total(joint[d], lower[d], upper[d], best[d], where)
        if best[d] > -np.inf:
            out[d, where] = 1.0
    return best, logs


@njit
def draw(posterior: Array, numbers: Array, stream: Any, samples: int, out: Array) -> None:
    """Relative frequencies of classes in ``samples`` draws from each row of ``posterior``.

    A draw depends on the stream and on the item's number alone.
    """
    state = np.empty(1, np.uint64)
    for d in range(len(posterior)):
        out[d] = 0.0
        state[0] = item_stream(stream, numbers[d])
        for _ in range(samples):
            rest, chosen = uniform(state, 0), -1
            for k in range(posterior.shape[1]):
                if posterior[d, k] > 0.0:
                    chosen = k
                    rest -= posterior[d, k]
                    if rest < 0.0:
                        break
            if chosen >= 0:
                out[d, chosen] += 1.0
        for k in range(posterior.shape[1]):
            out[d, k] /= samples
