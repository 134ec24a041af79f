"""Finding the topics of documents while the topics' words stay as they are.

One document after the other, each until its shares stand still: its words' rows of φ remain at hand
all the while, and a document that is done costs nothing more.
"""

from __future__ import annotations

import math

from softcount.kernels.jit import inline, njit
from softcount.kernels.lanes import add_scaled, dot
from softcount.types import Array

SERIES_FROM = 10.0
"""From here on the asymptotic series of ψ is exact to the last digits."""


@inline
def digamma(x: float) -> float:
    """ψ(x) for x > 0: the recurrence ψ(x) = ψ(x + 1) − 1/x, then the asymptotic series."""
    below = 0.0
    while x < SERIES_FROM:
        below -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    tail = 1 / 240 - y * (1 / 132 - y * (691 / 32760))
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * tail)))
    return below + math.log(x) - 0.5 / x - series


@njit
def fold(
    first: int,
    last: int,
    indptr: Array,
    words: Array,
    counts: Array,
    phi: Array,
    added: Array,
    averages: bool,
    lowest: float,
    temper: float,
    least: float,
    most: int,
    tol: float,
    theta: Array,
    powers: Array,
    mass: Array,
) -> None:
    """θ_d of the documents from first to last, which begin as ``theta`` has them.

    Repeats n_dk = θ_dk^β Σ_w x_dw φ_wk^β / s_dw, s being the sum of these products, and then, for
    the topics that θ_d began with, θ_dk ∝ n_dk + added_k (nothing below ``least``), or if the rows
    are posteriors (``averages``) θ_dk = exp(ψ(n_dk + added_k) − ψ(Σ)), all lifted until the log of
    the largest is ``lowest`` if it is below, and then at least ``least``: ``most`` times, or until
    no θ_dk moves by more than ``tol``. ``phi`` is φ^β, β being ``temper``. In the end ``mass`` has
    n_dk + added_k, and ``powers`` θ^β of the step before.
    """
    for d in range(first, last):
        for _ in range(most):
            for k in range(theta.shape[1]):
                powers[d, k] = theta[d, k] ** temper if temper != 1.0 else theta[d, k]
            mass[d] = 0.0
            for i in range(indptr[d], indptr[d + 1]):
                s = dot(powers, d, phi, words[i])
                if s > 0.0:
                    add_scaled(mass, d, counts[i] / s, phi, words[i])
            if _moved(theta[d], powers[d], mass[d], added, averages, lowest, least) <= tol:
                break


@inline
def _moved(
    theta: Array,
    powers: Array,
    mass: Array,
    added: Array,
    averages: bool,
    lowest: float,
    least: float,
) -> float:
    """Put θ where its counts say, and tell by how much the farthest moved."""
    total, most, change = 0.0, 0.0, 0.0
    for k in range(len(added)):
        mass[k] = mass[k] * powers[k] + added[k] if theta[k] > 0.0 else 0.0
        total += mass[k]
        most = max(most, mass[k])
    if total <= 0.0:
        mass[:] = theta  # nothing is known of an empty document, and no prior is there
        return 0.0
    whole = min(digamma(total), digamma(most) - lowest) if averages else 0.0
    for k in range(len(added)):
        new = mass[k] / total if not averages else 0.0
        if averages and mass[k] > 0.0:
            new = max(math.exp(digamma(mass[k]) - whole), least)
        elif new < least:
            new = 0.0
        change = max(change, abs(new - theta[k]))
        theta[k] = new
    return change
