"""Places near the diagonal (Dyer, Chahuneau & Smith 2013).

    d(i | j, l, m) = (1 − p₀) exp(λ h(i, j)) / Z_λ(j),   h(i, j) = −|(i + ½) / l − (j + ½) / m|

and p₀ for the empty word. A shape is a pair of lengths (l, m).
"""

from __future__ import annotations

import math

from softcount.kernels.jit import inline, njit
from softcount.types import Array


@inline
def nearness(i: int, j: int, l: int, m: int) -> float:
    """h(i, j), 0 on the diagonal and below 0 off it."""
    return -abs((i + 0.5) / l - (j + 0.5) / m)


@njit
def fill(
    heights: Array, widths: Array, begins: Array, tension: float, p0: float, out: Array
) -> None:
    """d of all shapes, (l + 1, m) each; the empty word is last. Without words it is certain."""
    for s in range(len(heights)):
        l, m, at = heights[s], widths[s], begins[s]
        for j in range(m):
            total = 0.0
            for i in range(l):
                out[at + i * m + j] = math.exp(tension * nearness(i, j, l, m))
                total += out[at + i * m + j]
            for i in range(l):
                out[at + i * m + j] *= (1.0 - p0) / total
            out[at + l * m + j] = p0 if l > 0 else 1.0


@njit
def moments(
    heights: Array, widths: Array, rows: Array, often: Array, tension: float
) -> tuple[float, float, float]:
    """Σ_r n_r of log Z_λ, of the mean of h and of its variance; n_r of shape s from ``rows[s]``."""
    logs = means = variances = 0.0
    for s in range(len(heights)):
        l, m = heights[s], widths[s]
        for j in range(m):
            n = often[rows[s] + j]
            if n == 0.0:
                continue
            total = first = second = 0.0
            for i in range(l):
                h = nearness(i, j, l, m)
                weight = math.exp(tension * h)
                total += weight
                first += weight * h
                second += weight * h * h
            mean = first / total
            logs += n * math.log(total)
            means += n * mean
            variances += n * max(second / total - mean * mean, 0.0)
    return logs, means, variances


@njit
def summarise(
    heights: Array, widths: Array, begins: Array, rows: Array, counts: Array, often: Array
) -> float:
    """How often target place j comes from a word, by shape; answers Σ counts · h."""
    total = 0.0
    for s in range(len(heights)):
        l, m, at = heights[s], widths[s], begins[s]
        for j in range(m):
            n = 0.0
            for i in range(l):
                c = counts[at + i * m + j]
                n += c
                total += c * nearness(i, j, l, m)
            often[rows[s] + j] = n
    return total
