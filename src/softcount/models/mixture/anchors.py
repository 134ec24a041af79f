"""A document mixture from anchor words: words that (nearly) only one class uses.

The words that occur beside word i follow Σ_k p(k | i) θ_k: every row of the row-normalised
co-occurrence lies in the simplex that the θ_k span, and the row of an anchor word is a corner of
it. So: find the corners, write every row as a mixture of them, and turn p(k | i) round with Bayes'
rule (Arora, Ge, Halpern, Mimno, Moitra, Sontag, Wu, Zhu 2013, "A practical algorithm for topic
modeling with provable guarantees").

Where they project the rows at random, we project on the main directions of co-occurrence: the noise
of rare words else looks like corners. Distances are χ², so that no column counts only because its
word is frequent.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from softcount.kernels.blas import single_threaded
from softcount.models.mixture.moments import Whitening, checked, whiten
from softcount.models.mixture.settle import frequencies, settle
from softcount.types import Array

_COMMON = 0.01  # an anchor word is in this part of the documents at least
_FLAT = 1e-9  # of the largest distance²: no further corner
_ROWS = 4096  # words whose mixtures are sought together
_STEPS = 200
_STILL = 1e-4


def estimate(
    counts: csr_matrix,
    n_components: int,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    As good as the anchor words are; documents need two words. Classes for which there is no corner
    are filled in near the overall frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    counts, weights = checked(counts, n_components, weights)
    if n_components == 1:
        return np.ones(1), frequencies(counts, weights)[None]
    with single_threaded():
        mix, words = _by_corners(whiten(counts, n_components, rng, weights), n_components)
        return settle(counts, weights, mix, words, n_components, rng)


def _by_corners(white: Whitening, n_components: int) -> tuple[Array, Array]:
    """π and θ by Bayes' rule: θ_k(i) ∝ p(k | i) p(i)."""
    rows = neighbours(white)
    seen = np.flatnonzero(_usable(white))
    corners = find_corners(rows, _candidates(white, n_components), n_components)
    joint = np.zeros((len(corners), len(rows)))
    joint[:, seen] = (mixtures(rows[seen], rows[corners]) * white.first[seen, None]).T
    mix = joint.sum(axis=1)
    return mix / mix.sum(), joint / mix[:, None]


def neighbours(white: Whitening) -> Array:
    """The rows of D^−1 M₂ S, D = diag p, in the main directions: what occurs beside a word; V×r."""
    usable = _usable(white)[:, None]
    rows: Array = white.unscaled() * white.values
    np.divide(rows, white.first[:, None], out=rows, where=usable)
    return rows


def _usable(white: Whitening) -> Array:
    return (white.first > 0) & (white.scale > 0)


def _candidates(white: Whitening, n_components: int) -> Array:
    """Words in enough documents; if those are too few, the ones in most documents."""
    counts = white.pairs.counts
    documents = np.bincount(counts.indices, minlength=counts.shape[1]) * _usable(white)
    order = np.argsort(-documents, kind="stable")
    enough = int((documents >= max(2.0, _COMMON * counts.shape[0])).sum())
    return order[: min(max(enough, n_components), np.count_nonzero(documents))]


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
    chosen = [int(np.argmax(spread))]
    while len(chosen) < n_corners:
        distance = _from_hull(points, chosen)
        if distance.max() <= _FLAT * max(spread.max(), 1e-300):
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
