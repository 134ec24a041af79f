"""How far topics are from each other, and where they stand on a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from softcount.types import Array

WIDTH, HEIGHT = 640, 440
MARGIN = 14
INK = 0.2
"""The part of the map that circles fill."""

LARGEST, SMALLEST = 62.0, 3.0
WIDEST_GAP = 20.0
FILLED = 0.45
"""The part of the map that circles fill together with the gaps around them."""

STRETCH = 1.6
ROUNDS, FEW_ROUNDS = 300, 30
MANY = 300
"""So many topics are moved in few rounds only, for each takes the square of their number."""

WORK = 4 * 10**7
"""So many words × pairs of topics are looked at, more or less."""


def distances(topics: Array) -> Array:
    """√JS for every pair of topics, (topics, topics): 0 for equal ones, 1 without common words.

    JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 in bits. Its root is a distance (Endres &
    Schindelin 2003). Where there are many topics, rare words that are commonest in the same topic
    count as one word, which can only make distances smaller.

    >>> distances(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])).round(3).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    phi = _few_columns(np.asarray(topics)).astype(np.float32)
    K = len(phi)
    inside = _x_log_x(phi)
    result = np.zeros((K, K))
    for k in range(K - 1):
        between = _x_log_x(np.float32(0.5) * (phi[k] + phi[k + 1 :]))
        result[k, k + 1 :] = 0.5 * (inside[k] + inside[k + 1 :]) - between
    result = np.sqrt(np.clip(result, 0.0, 1.0))
    return result + result.T


def _x_log_x(rows: Array) -> Array:
    """Σ x log₂ x of each row, taken in single precision, which is enough for a picture."""
    x = np.maximum(rows, 1e-30, dtype=np.float32)
    total: Array = (x * np.log2(x)).sum(axis=1, dtype=np.float64)
    return total


def _few_columns(phi: Array) -> Array:
    """The commonest words as they are, the others added up by the topic that has most of them."""
    K, V = phi.shape
    most = max(100, 2 * WORK // K**2 - K)
    if most >= V:
        return phi
    order = np.argsort(-phi.sum(axis=0), kind="stable")
    common, rare = phi[:, order[:most]], phi[:, order[most:]]
    group = (np.arange(V - most), rare.argmax(axis=0))
    member = sparse.csr_matrix((np.ones(V - most), group), shape=(V - most, K))
    return np.column_stack([common, rare @ member])


def scaled(apart: Array, dimensions: int = 2) -> Array:
    """Classical multidimensional scaling (Torgerson 1952): points whose distances come near these.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/n, times the roots of their eigenvalues.

    >>> points = scaled(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> [round(float(np.linalg.norm(points[a] - points[b])), 6) for a, b in [(0, 1), (1, 2)]]
    [3.0, 5.0]
    """
    square = apart**2
    centred = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    K = len(apart)
    n = min(dimensions, K)
    values, vectors = linalg.eigh(-0.5 * centred, subset_by_index=[K - n, K - 1])
    points = np.zeros((K, dimensions))
    points[:, :n] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    # an eigenvector has two directions: take that in which its largest entry is positive
    largest = points[np.abs(points).argmax(axis=0), np.arange(dimensions)]
    return points * np.where(largest < 0.0, -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Map:
    """Circles on a map: ``centre`` (topics, 2) and ``radius`` (topics)."""

    centre: Array
    radius: Array


def laid_out(apart: Array, weights: Array) -> Map:
    """Topics as circles whose areas are their sizes, moved apart where they would overlap."""
    share = weights / weights.sum()
    radius = np.sqrt(share * INK * WIDTH * HEIGHT / np.pi)
    radius = np.clip(radius, SMALLEST, LARGEST)
    low = radius[:, None] + MARGIN
    high = np.array([WIDTH, HEIGHT]) - low
    points = scaled(apart)
    room = np.array([WIDTH, HEIGHT]) - 2 * (MARGIN + radius.max())
    scale = room / np.maximum(np.ptp(points, axis=0), 1e-9)
    scale = np.minimum(scale, STRETCH * scale.min())  # one axis may be drawn a little longer
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    centre = (points - middle) * scale + [WIDTH / 2, HEIGHT / 2]
    centre = np.clip(centre, low, high)
    return Map(_moved_apart(centre, radius, low, high), radius)


def _moved_apart(centre: Array, radius: Array, low: Array, high: Array) -> Array:
    """Push overlapping circles away from each other, a little at a time, inside the frame."""
    across = 2.0 * np.sqrt(WIDTH * HEIGHT / (np.pi * len(radius)))
    gap = min(WIDEST_GAP, across * (np.sqrt(FILLED) - np.sqrt(INK)))
    needed = radius[:, None] + radius + gap
    np.fill_diagonal(needed, 0.0)
    # circles at one place would not know where to go: a spiral tells them
    angle = 2.4 * np.arange(len(radius))
    at = centre + 0.01 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(ROUNDS if len(radius) < MANY else FEW_ROUNDS):
        x, y = (at[:, None, axis] - at[None, :, axis] for axis in (0, 1))
        length = np.sqrt(x * x + y * y)
        lacking = np.maximum(needed - length, 0.0)
        if lacking.max() < 0.5:
            break
        push = 0.4 * lacking / np.maximum(length, 1e-9)
        at = at + np.column_stack([(push * x).sum(axis=1), (push * y).sum(axis=1)])
        at = np.clip(at, low, high)
    return at


@dataclass(frozen=True)
class Label:
    """A text at the place where its middle is."""

    x: float
    y: float
    text: str


FIGURE, LINE = 6.4, 13.0
"""How wide a letter of a label is, and how high a line."""


def placed(chart: Map, texts: Sequence[Sequence[str]]) -> list[Label | None]:
    """A label below, above, or beside each circle, the largest first; None where there is no room.

    No label covers another one, or a circle. ``texts``: what each may say, the best first.
    """
    labels: list[Label | None] = [None] * len(texts)
    taken = np.zeros((0, 4))
    circles = np.column_stack([chart.centre, chart.radius])
    for k in np.argsort(-chart.radius, kind="stable"):
        others = np.delete(circles, k, axis=0)
        for label, box in _choices(circles[k], texts[k]):
            if _is_free(box, taken, others):
                labels[k], taken = label, np.vstack([taken, box])
                break
    return labels


def _choices(circle: Array, texts: Sequence[str]) -> Iterator[tuple[Label, Array]]:
    x, y, r = circle.tolist()
    for text in texts:
        half = FIGURE * len(text) / 2
        below, beside = r + 0.7 * LINE, r + half + 3
        for dx, dy in ((0, below), (0, -below), (beside, 0), (-beside, 0)):
            a, b = x + dx, y + dy
            box = np.array([a - half, b - LINE / 2, a + half, b + LINE / 2])
            yield Label(round(a, 1), round(b, 1), text), box


def _is_free(box: Array, taken: Array, circles: Array) -> bool:
    if box[0] < 2 or box[1] < 2 or box[2] > WIDTH - 2 or box[3] > HEIGHT - 2:
        return False
    if ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
        return False
    nearest = np.clip(circles[:, :2], box[:2], box[2:])
    away = np.hypot(*(circles[:, :2] - nearest).T)
    return not (away < circles[:, 2]).any()
