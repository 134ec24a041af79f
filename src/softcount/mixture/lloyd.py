"""k-means: the nearest mean of each point, without most of the distances (Lloyd 1957).

From step to step means move less and less, and a point changes its class only if another mean may
have become nearer than its own. By the triangle inequality a mean that was at distance d and has
moved by δ since is at d − δ at least, and the point's own mean at d + δ at most (Elkan 2003). So
every point keeps a lower bound for each mean and an upper one for its own. Where these do not
decide, its distances to all means are computed, several points at a time: to compute only those
that are in doubt, one by one, took longer.

Bounds have room for rounding, and where two means are equally near but for rounding, one way to
compute distances decides. So the classes, and with them all sums, are the same to the bit whatever
bounds there were: those of the step before, of another run, or none.

Distances ‖x − m‖² = ‖x‖² − 2 s are compared by s = x·m − ½‖m‖².
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import lean, merged
from softcount.kernels.vectors import (
    ROWS_AT_ONCE,
    WIDTH,
    multiply_panels,
    padded_width,
    panels,
    row_dot,
    row_max,
)

BOUNDS_PER_DIMENSION = 4
"""Bounds are kept for at most so many means per dimension: one takes four bytes where a coordinate
takes eight, and in few dimensions a distance is as quickly computed as a bound is looked up."""
ALIGNED = 16
"""Bounds of a point are padded to a multiple of this."""
SMALLEST, LARGEST = 1e-15, 1e15
"""Lengths of points and means for which bounds can be kept, in single precision."""
FAR = 4.0
"""Bounds are begun anew when a mean has moved so many times the largest length."""
ROUNDING = 2.0**-50
"""The error of a scalar product, relative to the lengths of its vectors, for each dimension."""
SINGLE = 2.0**-21
"""The error of a bound in single precision, relative to the largest distance."""


class Means(NamedTuple):
    """The means of one step.

    ``means``    (classes, padded dimensions)
    ``cut``      the same transposed, as `softcount.kernels.vectors.panels` cut it
    ``halves``   ½‖m‖², and ∞ for the padding, (padded classes,)
    ``moved``    how far each mean has moved since bounds were begun, (classes,)
    ``rounded``  the same in single precision, rounded up, and 0 for the padding
    ``longest``  the largest ‖m‖
    ``farthest`` the largest of ``rounded``
    """

    means: FloatArray
    cut: FloatArray
    halves: FloatArray
    moved: FloatArray
    rounded: Array
    longest: float
    farthest: float

    @classmethod
    def of(cls, means: FloatArray, moved: FloatArray) -> Means:
        K, D = means.shape
        table = np.zeros((padded_width(K), padded_width(D)))
        table[:K, :D] = means
        halves = np.full(len(table), np.inf)
        halves[:K] = np.sum(means * means, axis=1) / 2.0
        rounded = np.zeros(-(-K // ALIGNED) * ALIGNED, np.float32)
        rounded[:K] = np.nextafter(moved.astype(np.float32), np.float32(np.inf))
        cut = panels(np.ascontiguousarray(table[:, :D].T))
        longest = float(np.sqrt(2.0 * halves[:K].max()))
        return cls(table[:K], cut, halves, moved, rounded, longest, float(rounded.max()))


class Bounds(NamedTuple):
    """What is known of the points' distances. How far a mean had moved by then is added in.

    ``classes``  the class of each point, (points,)
    ``upper``    at most the distance to the own mean, − moved, (points,)
    ``lower``    at least the distance to each other mean, + moved, (points, padded classes), in
                 single precision; ∞ for the own mean and for the padding. (0, …): none are kept
    """

    classes: IntArray
    upper: FloatArray
    lower: Array


class Nearest:
    """The nearest means of points, step after step."""

    def __init__(self, x: FloatArray) -> None:
        self._squares = np.einsum("ij,ij->i", x, x)
        self._longest = float(np.sqrt(self._squares.max(initial=0.0)))
        self._before: FloatArray | None = None
        self._moved: FloatArray = np.zeros(0)

    def step(
        self, x: FloatArray, means: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Σ w, Σ w x and Σ w ‖x‖² over the points of each class.

        ``x``, ``weights``  the same in every step
        """
        K, before = len(means), self._before
        known = before is not None and before.shape == means.shape
        changed = np.ones(K, np.bool_)
        if before is not None and known:
            moved = self._moved + np.sqrt(np.sum(np.square(means - before), axis=1))
            at = Means.of(means, moved * (1.0 + 2.0**-40))
            known = at.farthest < FAR * max(self._longest, at.longest)
        if not known:
            at = Means.of(means, np.zeros(K))
            length = max(self._longest, at.longest)
            keeps = BOUNDS_PER_DIMENSION * x.shape[1] >= K and SMALLEST < length < LARGEST
            shape = (len(x) if keeps else 0, len(at.rounded))
            self._bounds = Bounds(
                np.empty(len(x), np.int32), np.empty(len(x)), np.full(shape, np.inf, np.float32)
            )
            self._sums = np.empty(K), np.empty(means.shape), np.empty(K)
        else:
            changed[:] = False
        find_nearest(x, self._squares, at, self._bounds, known, changed)
        add_points(x, self._squares, weights, self._bounds.classes, changed, *self._sums)
        if len(self._bounds.lower):
            self._before, self._moved = np.array(means), at.moved
        return self._sums


def find_classes(x: FloatArray, means: FloatArray) -> IntArray:
    """Return the number of the mean nearest to each point, (points,)."""
    bounds = Bounds(np.empty(len(x), np.int32), np.empty(len(x)), np.empty((0, 0), np.float32))
    changed = np.ones(len(means), np.bool_)
    squares = np.einsum("ij,ij->i", x, x)
    find_nearest(x, squares, Means.of(means, np.zeros(len(means))), bounds, False, changed)
    return bounds.classes.astype(np.int64)


# Compiled loops. They take arrays, which `find_nearest` unpacks once, and numbers of rows: numba
# counts a reference to each array that is taken out of a tuple or out of another array.


@merged
def _choose(rows: Array, r: int, means: Array, halves: Array, scores: Array, slack: float) -> int:
    """The mean nearest to a point, the first of equals.

    ``rows[r]``    the point, padded
    ``scores[r]``  s, with errors of up to ``slack`` each; −∞ for means that cannot be nearest.
                   Where that leaves a choice, `row_dot` decides, however the scores were found
    """
    least, near, best = row_max(scores, r) - 4.0 * slack, 0, 0
    for k in range(scores.shape[1]):
        is_near = scores[r, k] >= least
        near += is_near
        best += k * is_near
    if near == 1:
        return best
    top, best = -np.inf, 0
    for k in range(len(means)):
        if scores[r, k] >= least:
            score = row_dot(rows, r, means, k) - halves[k]
            if score > top:
                top, best = score, k
    return best


@merged
def _count_nearer(lower: Array, i: int, moved: Array, upper: np.float32) -> int:
    """The number of means that may be nearer than ``upper``."""
    n = 0
    for k in range(lower.shape[1]):
        n += lower[i, k] - moved[k] < upper
    return n


@merged
def _distance(square: float, score: float) -> float:
    """‖x − m‖ from ‖x‖² and s."""
    return math.sqrt(max(square - 2.0 * score, 0.0))


@lean
def find_nearest(
    x: FloatArray, squares: FloatArray, at: Means, bounds: Bounds, known: bool, changed: Array
) -> None:
    """Find the class of each point, and mark the classes that points have left or come to.

    ``squares``  ‖x‖² of each point
    ``known``    whether the bounds are those of an earlier step; if not, they are written anew
    """
    means, _, halves, moved, rounded, longest, farthest = at
    classes, uppers, lower = bounds
    n, D = x.shape
    rows = np.zeros((ROWS_AT_ONCE, means.shape[1]))
    scores = np.empty((ROWS_AT_ONCE, len(halves)))
    waiting, n_waiting = np.empty(ROWS_AT_ONCE, np.int64), 0
    rounding = ROUNDING * (D + 8)
    for i in range(n):
        if known:
            k = classes[i]
            length = math.sqrt(squares[i]) + longest
            spare = 2.0 * SINGLE * (length + farthest)
            most = np.float32(uppers[i] + moved[k] + spare)
            if not _count_nearer(lower, i, rounded, most):
                continue
        r = n_waiting
        for j in range(D):
            rows[r, j] = x[i, j]
        if known:
            slack = rounding * length * length
            own = row_dot(rows, r, means, k) - halves[k]
            upper = _distance(squares[i], own - slack)
            uppers[i] = upper - moved[k]
            most = np.float32(upper + spare)
            if not _count_nearer(lower, i, rounded, most):
                continue
        waiting[r] = i
        n_waiting += 1
        if n_waiting == ROWS_AT_ONCE:
            _compare(squares, at, bounds, known, changed, waiting, n_waiting, rows, scores)
            n_waiting = 0
    if n_waiting:
        _compare(squares, at, bounds, known, changed, waiting, n_waiting, rows, scores)


@lean
def _compare(
    squares: FloatArray,
    at: Means,
    bounds: Bounds,
    known: bool,
    changed: Array,
    waiting: IntArray,
    n_waiting: int,
    rows: Array,
    scores: Array,
) -> None:
    """Find the classes of the points that are ``waiting``, by their distances to all means."""
    means, cut, halves, moved, _, longest, _ = at
    classes, uppers, lower = bounds
    D = len(cut) // (len(halves) // WIDTH)
    multiply_panels(scores, 0, rows, 0, cut, D)
    for r in range(n_waiting):
        i = waiting[r]
        for k in range(len(halves)):
            scores[r, k] -= halves[k]
        length = math.sqrt(squares[i]) + longest
        slack = ROUNDING * (D + 8) * length * length
        k = _choose(rows, r, means, halves, scores, slack)
        if known and k != classes[i]:
            changed[classes[i]] = changed[k] = True
        classes[i] = k
        if len(lower):
            for j in range(len(means)):
                least = _distance(squares[i], scores[r, j] + slack) + moved[j]
                lower[i, j] = least * (1.0 - SINGLE)
            lower[i, k] = np.inf
            uppers[i] = _distance(squares[i], scores[r, k] - slack) - moved[k]


@lean
def add_points(
    x: FloatArray,
    squares: FloatArray,
    weights: FloatArray,
    classes: IntArray,
    changed: Array,
    n: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Sum weights, points and squares of the classes that have changed, in the points' order."""
    for k in range(len(n)):
        if changed[k]:
            n[k] = second[k] = 0.0
            for j in range(x.shape[1]):
                first[k, j] = 0.0
    for i in range(len(x)):
        k, w = classes[i], weights[i]
        if changed[k]:
            n[k] += w
            second[k] += w * squares[i]
            for j in range(x.shape[1]):
                first[k, j] += w * x[i, j]


@lean
def square_distances(x: FloatArray, means: FloatArray, classes: IntArray, out: FloatArray) -> None:
    """out_i ← ‖x_i − m‖² of each point's own mean."""
    D = x.shape[1]
    row = np.zeros((1, -(-D // WIDTH) * WIDTH))
    for i in range(len(x)):
        k = classes[i]
        for j in range(D):
            row[0, j] = x[i, j] - means[k, j]
        out[i] = row_dot(row, 0, row, 0)
