"""Labels spread over a graph until every item has the mean of its neighbours' labels.

The fixed point is the harmonic function (Zhu, Ghahramani & Lafferty 2003): with the transition
matrix T = D⁻¹W, D the sums of the rows of the weights W, and labelled rows l clamped,

    F_u = T_uu F_u + T_ul Y_l,    F_u = (I − T_uu)⁻¹ T_ul Y_l.

Sweeps of "each row becomes the mean of its neighbours, renormalised" bring label mass to every row
that it can reach, and then mix slowly: a small change in a sweep is no sign of being close to the
limit. So the sweeps only spread the mass; from there on conjugate gradients solve the same
equations, (D_uu − W_uu) F_u = W_ul Y_l.

How far off the result can be is known. A sweep's change r = T_uu F + T_ul Y − F and the error are
related by e = (I − T_uu)⁻¹ r, hence Σ_c |e_ic| ≤ b = h_i max_j Σ_c |r_jc|, where h = (I − T_uu)⁻¹ 1
is how many steps a random walk takes from an item to a label. h is one more column of the same
system. In the end the shares of an item are made to add up to one. Their sum was 1 − b or more, so
that none of them is farther off than b / (1 − b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.types import Array
from softcount.verdict import Verdict

TINY = 1e-300
CLOSE = 1e-6
"""To this part of themselves the steps to a label are known."""
Watch = Callable[[Array, Array], None]
"""Is shown the shares of the free items, and which of them have been reached."""


@dataclass(frozen=True, eq=False)
class Settled:
    """How spreading ended.

    ``shares``   (free items, classes)
    ``steps``    of a random walk from each free item to a label, on average
    ``error``    how far any share can be from its limit
    ``n_iter``   sweeps and steps of conjugate gradients taken
    """

    shares: Array
    steps: Array
    error: float
    n_iter: int
    verdict: Verdict


def settle(
    graph: Any, given: Array, free: Array, start: Array, tol: float, max_iter: int, watch: Watch
) -> Settled:
    """The shares of the ``free`` rows, each of which is joined to a given one somehow.

    ``given``  (items, classes): shares of the rows that are not free; others do not matter
    ``start``  shares of those free rows that no sweep reaches before ``max_iter``
    """
    between = graph[free][:, free].tocsr()
    sums = np.asarray(graph[free].sum(axis=1)).reshape(-1)
    clamped = given.copy()
    clamped[free] = 0.0
    system = _System(between, sums, (graph[free] @ clamped) / sums[:, None])
    shares, swept = _spread(system, max_iter, watch)
    shares[shares.sum(axis=1) == 0.0] = start
    return _solve(system, shares, tol, swept, max_iter, watch)


@dataclass(frozen=True, eq=False)
class _System:
    """F = T F + incoming, with T = between / sums."""

    between: Any
    sums: Array
    incoming: Array

    def swept(self, shares: Array) -> Array:
        """Every row as the weighted mean of its neighbours'."""
        moved: Array = self.between @ shares
        moved /= self.sums[:, None]
        moved += self.incoming
        return moved


def _spread(system: _System, max_iter: int, watch: Watch) -> tuple[Array, int]:
    """Sweeps, until one reaches nothing new."""
    shares = np.zeros_like(system.incoming)
    n_reached = 0
    for number in range(1, max_iter + 1):
        moved = system.swept(shares)
        totals = moved.sum(axis=1)
        arrived = totals > 0.0
        shares = moved / np.where(arrived, totals, 1.0)[:, None]
        watch(shares, arrived)
        before, n_reached = n_reached, int(arrived.sum())
        if n_reached == before or n_reached == len(arrived):
            return shares, number
    return shares, max_iter


def _solve(
    system: _System, shares: Array, tol: float, taken: int, max_iter: int, watch: Watch
) -> Settled:
    """Conjugate gradients, with the number of steps to a label as the last column."""
    incoming = np.column_stack([system.incoming, np.ones(len(shares))])
    whole = _System(system.between, system.sums, incoming)
    begin = np.column_stack([shares, np.ones(len(shares))])
    with np.errstate(over="ignore", invalid="ignore"):
        values, error, taken = _descended(whole, begin.copy(), tol, taken, max_iter, watch)
    if not np.isfinite(values).all():  # weights are too far apart for numbers of 64 bits
        values, error = begin, np.inf
    verdict = Verdict.CONVERGED if error <= tol else Verdict.OUT_OF_STEPS
    return Settled(_shares(values), values[:, -1], error, taken, verdict)


def _descended(
    whole: _System, values: Array, tol: float, taken: int, max_iter: int, watch: Watch
) -> tuple[Array, float, int]:
    """The values where conjugate gradients end, how far off they can be, and the steps taken."""
    everywhere = np.ones(len(values), dtype=bool)
    weight = whole.sums[:, None]
    _, scale = np.frexp(weight.max(initial=TINY))
    share = np.ldexp(weight, -scale)  # with the same digits, and no square is infinite
    while True:  # once; again if rounding has led the residuals astray
        change = whole.swept(values) - values
        error = _error(values, change)
        if error <= tol or taken >= max_iter:
            break
        direction, power = change.copy(), (share * change * change).sum(axis=0)
        begun = error
        while taken < max_iter and _error(values, change) > tol:
            ahead = direction - (whole.between @ direction) / weight
            bend = (share * direction * ahead).sum(axis=0)
            step = power / np.maximum(bend, TINY)
            values += step * direction
            change -= step * ahead
            before, power = power, (share * change * change).sum(axis=0)
            direction *= power / np.maximum(before, TINY)
            direction += change
            taken += 1
            watch(_shares(values), everywhere)
        error = _error(values, whole.swept(values) - values)
        if not error <= 0.5 * begun:
            break  # the last digits are reached, and tol asks for more; or there are none (NaN)
    return values, error, taken


def _error(values: Array, change: Array) -> float:
    """A bound on how far any share is from its limit; infinite before the steps are known."""
    short = float(np.abs(change[:, -1]).max(initial=0.0))
    if short > CLOSE:
        return np.inf
    # (I − T) h ≥ 1 − short everywhere makes h / (1 − short) an upper bound of the steps
    longest = float(values[:, -1].max(initial=0.0)) / (1.0 - short)
    bound = longest * float(np.abs(change[:, :-1]).sum(axis=1).max(initial=0.0))
    return bound / (1.0 - bound) if bound < 1.0 else np.inf


def _shares(values: Array) -> Array:
    """Shares of classes, none negative, each row adding up to one."""
    shares = np.maximum(values[:, :-1], 0.0)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / np.where(totals > 0.0, totals, 1.0)
