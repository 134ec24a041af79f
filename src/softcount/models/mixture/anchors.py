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
from softcount.models.anchors import common_words, find_corners, mixtures
from softcount.models.mixture.moments import Whitening, checked, whiten
from softcount.models.mixture.settle import frequencies, settle
from softcount.types import Array


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
    counts = white.pairs.counts
    documents = np.bincount(counts.indices, minlength=counts.shape[1]) * _usable(white)
    return common_words(documents, counts.shape[0], n_components)
