"""Anchor words: the corners of a cloud of words, and all words as mixtures of those corners.

What mixtures of documents and topic models share when they begin from words that (nearly) only one
class or topic uses (Arora et al. 2013). Every word is a point: what occurs beside it.
"""

from __future__ import annotations

import numpy as np

from softcount.types import Array

_COMMON = 0.01  # an anchor word is in this part of the documents at least
_FLAT = 1e-9  # of the largest distance²: no further corner
_ROUNDING = 1e-22  # of the points' own length²
_ROWS = 512  # words whose mixtures are sought together: few enough to stay at hand
_STEPS = 50  # more change nothing that EM does not change anyway
_STILL = 1e-4


def word_scale(first: Array, within: Array, n_documents: int) -> Array:
    """p^−½ for words in at least √N / 5 documents; zero for others.

    The sampling noise of frequent and rare words becomes alike. But a word that one document
    repeats would be a direction of its own, and no less so the less the document weighs.

    ``first``   p, how often a word is one of a pair of tokens
    ``within``  how many documents have it
    """
    used = (first > 0) & (within >= np.sqrt(n_documents) / 5)
    if not used.any():
        used = first > 0
    scale: Array = np.zeros_like(first)
    np.divide(1.0, np.sqrt(first), out=scale, where=used)
    return scale


def common_words(within: Array, n_documents: int, n_corners: int) -> Array:
    """Words in enough documents; if those are too few, the ones in most documents.

    ``within``  how many documents have a word; zero for words that are not to be chosen
    """
    order = np.argsort(-within, kind="stable")
    enough = int((within >= max(2.0, _COMMON * n_documents)).sum())
    return order[: min(max(enough, n_corners), np.count_nonzero(within))]


def find_corners(rows: Array, candidates: Array, n_corners: int) -> list[int]:
    """Words at the corners of the rows' simplex, at most ``n_corners`` (fewer if it is flat).

    Greedy: first the row farthest from the mean, then always the row farthest from the affine
    hull of those chosen; in the end each corner is chosen anew, given all others.

    >>> triangle = np.array([[0.0, 0], [1, 0], [0, 1], [0.3, 0.3]])
    >>> sorted(find_corners(triangle, np.arange(4), 3))
    [0, 1, 2]
    """
    points = rows[candidates]
    spread = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    flat = max(_FLAT * spread.max(), _ROUNDING * (points**2).sum(axis=1).max(), 1e-300)
    chosen = [int(np.argmax(spread))]
    while len(chosen) < n_corners:
        distance = _from_hull(points, chosen)
        if distance.max() <= flat:
            break
        chosen.append(int(np.argmax(distance)))
    if len(chosen) > 1:
        for k in range(len(chosen)):
            chosen[k] = int(np.argmax(_from_hull(points, chosen[:k] + chosen[k + 1 :])))
    return [int(candidates[i]) for i in chosen]


def _from_hull(points: Array, chosen: list[int]) -> Array:
    """Squared distance of every point from the affine hull of the chosen ones."""
    away = points - points[chosen[0]]
    basis, _ = np.linalg.qr(away[chosen[1:]].T)
    away -= (away @ basis) @ basis.T
    return (away**2).sum(axis=1)  # type: ignore[no-any-return]


def mixtures(rows: Array, corners: Array) -> Array:
    """Weights p(k | i) ≥ 0 that sum to one and bring Σ_k p(k | i) corner_k nearest to row i.

    Accelerated projected gradient (Beck, Teboulle 2009) on all rows of a block at once.

    >>> mixtures(np.array([[0.25, 0.75], [2.0, 0.0]]), np.eye(2)).round(3)
    array([[0.25, 0.75], [1.  , 0.  ]])
    """
    centre = corners.mean(axis=0)  # weights that sum to one do not see it; the steps get longer
    rows, corners = rows - centre, corners - centre
    gram = corners @ corners.T
    rate = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    blocks = [rows[i : i + _ROWS] @ corners.T for i in range(0, len(rows), _ROWS)]
    return np.vstack([_descend(gram, block, rate) for block in blocks])


def _descend(gram: Array, target: Array, rate: float) -> Array:
    weights = np.full(target.shape, 1.0 / target.shape[1])
    ahead, momentum = weights, 1.0
    for _ in range(_STEPS):
        new = _onto_simplex(ahead - rate * (ahead @ gram - target))
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        moved = new - weights
        ahead = new + (momentum - 1) / grown * moved
        weights, momentum = new, grown
        if np.abs(moved).max() < _STILL:
            break
    return weights


def _onto_simplex(rows: Array) -> Array:
    """The nearest point of the probability simplex to each row (Held, Wolfe, Crowder 1974)."""
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    support = (falling > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), support][:, None], 0.0)  # type: ignore[no-any-return]
