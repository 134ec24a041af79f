"""A document mixture from its first three moments: whitening and the tensor power method.

Three different tokens of a document follow M₃ = Σ_k π_k θ_k ⊗ θ_k ⊗ θ_k. With W from the second
moment (Wᵀ M₂ W = 1) the vectors v_k = √π_k Wᵀ θ_k are orthonormal, and
M₃(W, W, W) = Σ_k π_k^−½ v_k ⊗ v_k ⊗ v_k: an r×r×r tensor whose robust eigenvectors the power method
finds without local optima (Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_matrix

from softcount.errors import DataError, LearnerError
from softcount.kernels.blas import single_threaded
from softcount.models.mixture.moments import Whitening, checked, like, whiten
from softcount.models.mixture.settle import frequencies, settle
from softcount.types import Array

_LARGEST = 256  # K of the K×K×K tensor
_BLOCK = 2_000_000  # numbers held at once while it is summed
_STARTS = 30  # whitened documents; and a third as many random vectors
_POWER_STEPS = 15


def estimate(
    counts: csr_matrix,
    n_components: int,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    Consistent where every document has one class and at least three words, and the θ_k are
    linearly independent. Classes that the moments do not show are filled in near the overall
    frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    counts, weights = checked(counts, n_components, weights)
    if n_components == 1:
        return np.ones(1), frequencies(counts, weights)[None]
    if n_components > _LARGEST:
        raise LearnerError(
            f"the tensor of {n_components} classes is too large",
            f'use at most {_LARGEST} classes, or anchor words: init="anchor"',
        )
    with single_threaded():
        white = whiten(counts, n_components, rng, weights)
        mix, words = _unwhitened(white, power_method(*whitened_triples(white), rng))
        return settle(counts, weights, mix, words, n_components, rng)


def whitened_triples(white: Whitening) -> tuple[Array, Array]:
    """M₃(W, W, W) and the whitened counts Wᵀc of the documents of three words or more.

    Triples of different tokens: c ⊗ c ⊗ c without those that use a token twice, Σ_i s_i e_i⊗e_i⊗c
    in three orders, which takes away too many that use it three times: Σ_i t_i e_i⊗e_i⊗e_i back.
    For whole numbers s = c, t = 2c; else c(c − 1) and c(c − 1)(c − 2) are clipped at zero.
    """
    pairs, map_ = white.pairs, white.whitener()
    c, s = pairs.counts.data, pairs.same.data
    thrice = like(pairs.counts, (c**2 - s) * np.maximum(c - 2, 0) - c**3 + 3 * s * c)
    tokens = pairs.tokens
    same = pairs.same.sum(axis=1).A1
    triples = tokens**3 - 3 * tokens * same + thrice.sum(axis=1).A1
    usable = (triples > 1e-6 * tokens**3) & (pairs.share > 0)
    if not usable.any():
        raise DataError(
            "no document has three words, so there is no third moment",
            'anchor words need only two (init="anchor"); or start from k-means or at random',
        )
    factor = np.where(usable, pairs.share, 0.0) / pairs.share[usable].sum()
    factor = np.divide(factor, triples, out=np.zeros_like(factor), where=usable)
    documents = pairs.counts @ map_
    tensor = _cubes(documents * factor[:, None], documents, documents)
    twice = _cubes(pairs.same.T @ (factor[:, None] * documents), map_, map_)
    tensor -= twice + twice.transpose(1, 0, 2) + twice.transpose(1, 2, 0)
    tensor += _cubes((thrice.T @ factor)[:, None] * map_, map_, map_)
    return tensor, documents[usable]


def _cubes(a: Array, b: Array, c: Array) -> Array:
    """Σ_n a_n ⊗ b_n ⊗ c_n."""
    r = a.shape[1]
    total = np.zeros((r, r * r))
    step = max(1, _BLOCK // (r * r))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        total += a[rows].T @ (b[rows, :, None] * c[rows, None, :]).reshape(-1, r * r)
    return total.reshape(r, r, r)


def power_method(tensor: Array, documents: Array, rng: np.random.Generator) -> Array:
    """Orthonormal-up-to-noise rows v_k of a symmetric tensor Σ_k λ_k v_k ⊗ v_k ⊗ v_k, λ_k > 0.

    v ← T(·, v, v) / ‖·‖ from many starts, half a dozen of which suffice as a rule: whitened
    documents point to their own class already. The start with the largest T(v, v, v) is followed to
    the end and taken out of the tensor, r times.
    """
    rest = tensor.copy()
    axes = np.zeros((0, len(tensor)))
    for _ in range(len(tensor)):
        starts = np.vstack(
            [
                documents[rng.choice(len(documents), _STARTS)],
                rng.normal(size=(_STARTS // 3, len(tensor))),
            ]
        )
        starts -= (starts @ np.linalg.pinv(axes)) @ axes
        for _ in range(_POWER_STEPS):
            starts = _unit(_applied(rest, starts))
        best = starts[[np.argmax(_values(rest, starts))]]
        for _ in range(_POWER_STEPS):
            best = _unit(_applied(rest, best))
        rest -= _values(rest, best)[0] * _cubes(best, best, best)
        axes = np.vstack([axes, best])
    return axes


def _applied(tensor: Array, vectors: Array) -> Array:
    """T(·, v, v) for each row v."""
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    applied: Array = squares @ tensor.reshape(len(tensor), -1).T
    return applied


def _values(tensor: Array, vectors: Array) -> Array:
    """T(v, v, v) for each row v."""
    values: Array = np.einsum("nk,nk->n", _applied(tensor, vectors), vectors)
    return values


def _unit(rows: Array) -> Array:
    lengths: Array = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-150)  # shorter ones have no direction: squares vanish


def _unwhitened(white: Whitening, axes: Array) -> tuple[Array, Array]:
    """π and θ from the tensor's axes.

    θ_k ∝ S^−1 U Λ^½ v_k, its sign such that most of it is positive, the rest clipped. For π we do
    not trust the eigenvalues (π = 1/λ² squares their noise): Σ_k π_k θ_k must give the first
    moment, which is non-negative least squares in the whitened directions.
    """
    words = (axes * np.sqrt(white.values)) @ white.unscaled().T
    words *= np.where(words.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    words = np.maximum(words, 0.0)
    total = words.sum(axis=1, keepdims=True)
    words = np.where(total > 0, words / np.where(total > 0, total, 1.0), white.first)
    seen = (words * white.scale) @ white.vectors
    mix, _ = nnls(seen.T, (white.first * white.scale) @ white.vectors, maxiter=100 * len(axes))
    return mix / max(mix.sum(), 1e-300), words
