"""Word co-occurrence inside documents: the second moment of a mixture, and its main directions.

A document of class z has words drawn from θ_z, each for itself. Two different tokens of a document
then follow M₂ = Σ_k π_k θ_k θ_kᵀ, which a document's counts c estimate without bias by
(c cᵀ − diag c) / n(n − 1): the pairs of *different* tokens (Anandkumar, Ge, Hsu, Kakade, Telgarsky
2014, "Tensor decompositions for learning latent variable models"). Nothing V×V is ever built
unless V is small.

How much each document weighs is ours to choose, as any weights that do not look at the words leave
the θ unbiased. We weigh by tokens: one pair from a two-word note is far noisier than the average of
thousands from an essay. A long or odd document must then not make up a direction on its own, so
its leverage, its share of one whitened direction, is capped (see `whiten`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from softcount.errors import DataError, LearnerError
from softcount.models.anchors import word_scale
from softcount.types import Array

_SMALL = 300  # up to this many words a dense decomposition is the quickest
_ROUNDS = 6  # of capping leverage; more change nothing on real text
_RANK = 1e-8  # directions weaker than this part of the strongest are rounding error
_NOTHING = 1e-12  # where the strongest is about 1


def checked(
    counts: csr_matrix, n_components: int, weights: Array | None
) -> tuple[csr_matrix, Array]:
    """Counts with one entry a word and no empty documents, and the documents' weights (mean 1)."""
    matrix = csr_matrix(counts, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if n_components < 1:
        raise LearnerError(
            f"a mixture of {n_components} classes cannot be estimated", "n_components ≥ 1"
        )
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise DataError(
            "word counts must be finite and not negative", "look for NaN, inf or centred columns"
        )
    weight = np.ones(matrix.shape[0]) if weights is None else np.asarray(weights, np.float64)
    if weight.shape != (matrix.shape[0],) or not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError(
            f"document weights must be {matrix.shape[0]} finite numbers ≥ 0", "one for each row"
        )
    used = (weight > 0) & (matrix.sum(axis=1).A1 > 0)
    if not used.any():
        raise DataError("no document has a word in it", "give at least one document with words")
    matrix.eliminate_zeros()
    return matrix[used], weight[used] / weight[used].mean()


def like(counts: csr_matrix, data: Array) -> csr_matrix:
    """A matrix with the places of ``counts`` and the values ``data``."""
    return csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class Pairs:
    """M₂ = Σ_d ω_d (c cᵀ − diag s) / pairs_d, kept as its parts.

    ``same``   s, the pairs of a token with itself: c, or c² where c < 1, so that s never takes
               away more than there is
    ``share``  ω, how much each document weighs; sums to one, zero where there is no pair
    """

    counts: csr_matrix
    same: csr_matrix
    share: Array

    @classmethod
    def of(cls, counts: csr_matrix, weights: Array) -> Pairs:
        same = like(counts, np.minimum(counts.data, counts.data**2))
        tokens = counts.sum(axis=1).A1
        pairs = tokens**2 - same.sum(axis=1).A1
        share = np.where(pairs > 1e-9 * tokens**2, weights * tokens, 0.0)
        if not share.any():
            raise DataError(
                "no document has two words, so there is no co-occurrence to learn from",
                "spectral estimates need longer documents; start from k-means or at random",
            )
        return cls(counts, same, share / share.sum())

    @property
    def tokens(self) -> Array:
        return self.counts.sum(axis=1).A1  # type: ignore[no-any-return]

    @property
    def per_pair(self) -> Array:
        """ω_d / pairs_d."""
        pairs = self.tokens**2 - self.same.sum(axis=1).A1
        factor: Array = np.zeros_like(pairs)
        np.divide(self.share, pairs, out=factor, where=self.share > 0)
        return factor

    def first(self) -> Array:
        """p = M₂ 1, how often a word is one of a pair; sums to one."""
        factor = self.per_pair
        first = self.counts.T @ (factor * self.tokens) - self.same.T @ factor
        return np.maximum(first, 0.0)  # type: ignore[no-any-return]

    def operator(self, scale: Array) -> LinearOperator:
        """x ↦ S M₂ S x with S = diag ``scale``, on the words whose scale is not zero."""
        used = np.flatnonzero(scale)
        factor, scale = self.per_pair, scale[used]
        diagonal = (scale**2 * (self.same.T @ factor)[used])[:, None]
        counts = self.counts[:, used]
        scaled = like(counts, counts.data * scale[counts.indices])

        def apply(x: Array) -> Array:
            x = x.reshape(len(used), -1)
            y: Array = scaled.T @ (factor[:, None] * (scaled @ x)) - diagonal * x
            return y

        return LinearOperator(
            (len(used), len(used)),
            matvec=lambda x: apply(x).ravel(),
            matmat=apply,
            dtype=np.float64,
        )


@dataclass(frozen=True)
class Whitening:
    """The main directions of S M₂ S: values, and vectors as columns.

    ``first``  p = M₂ 1
    ``scale``  S = diag p^−½ as it was before any document was capped: the sampling noise of
               frequent and rare words becomes alike. Zero for words in too few documents.
    """

    pairs: Pairs
    first: Array
    scale: Array
    values: Array
    vectors: Array

    def whitener(self) -> Array:
        """W, V×r, with Wᵀ M₂ W = 1."""
        return self.scale[:, None] * self.vectors / np.sqrt(self.values)

    def unscaled(self) -> Array:
        """S^−1 U, V×r: where columns of M₂ lie, up to their combination."""
        used = self.scale > 0
        return self.vectors * np.divide(used, self.scale, out=0.0 * self.scale, where=used)[:, None]

    def leverage(self) -> Array:
        """h_d = ω_d tr(Wᵀ P_d W), P_d the document's own M₂: its share of the r directions.

        About 1 for a document that makes up a direction on its own; 1/m for one of m equal
        documents that do. Sums to r.
        """
        map_ = self.whitener()
        white = self.pairs.counts @ map_
        own = np.einsum("dk,dk->d", white, white)
        own -= self.pairs.same @ np.einsum("vk,vk->v", map_, map_)
        return self.pairs.per_pair * own  # type: ignore[no-any-return]


def whiten(
    counts: csr_matrix, n_components: int, rng: np.random.Generator, weights: Array
) -> Whitening:
    """The K main directions of the second moment, none of them made up by a few documents.

    Where the model is right, K/N is the usual leverage, and the cap max(1/√N, 3K/N) is out of
    reach; on real text it holds down quoted, repetitive and very long posts, which would else take
    most of the directions for themselves. Rare words are left out (`word_scale`).
    """
    pairs = Pairs.of(counts, weights)
    scale = _scale(pairs)
    n = int((pairs.share > 0).sum())
    cap = weights * max(n**-0.5, 3 * n_components / n)
    for _ in range(_ROUNDS):
        leverage = _directions(pairs, scale, n_components, rng, tolerance=1e-2).leverage()
        if (leverage <= cap).all():
            break
        share = pairs.share * np.minimum(1.0, cap / np.maximum(leverage, cap))
        pairs = replace(pairs, share=share / share.sum())
    return _directions(pairs, scale, n_components, rng, tolerance=1e-9)


def _scale(pairs: Pairs) -> Array:
    first = pairs.first()
    within = np.bincount(pairs.counts.indices, minlength=len(first))
    return word_scale(first, within, pairs.counts.shape[0])


def _directions(
    pairs: Pairs, scale: Array, n_components: int, rng: np.random.Generator, tolerance: float
) -> Whitening:
    values, vectors = _largest(pairs.operator(scale), n_components, rng, tolerance)
    order = np.argsort(-values, kind="stable")[:n_components]
    order = order[values[order] > _RANK * max(values[order[0]], _NOTHING)]
    if not len(order):
        raise _no_directions()
    all_words = np.zeros((len(scale), len(order)))
    all_words[scale > 0] = vectors[:, order]
    return Whitening(pairs, pairs.first(), scale, values[order], all_words)


def _largest(
    operator: LinearOperator, k: int, rng: np.random.Generator, tolerance: float
) -> tuple[Array, Array]:
    size = operator.shape[0]
    if size <= max(_SMALL, 3 * k):
        dense = operator @ np.eye(size)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
        return values, vectors
    try:
        found: tuple[Array, Array] = eigsh(
            operator, k, which="LA", v0=rng.random(size), tol=tolerance
        )
    except ArpackNoConvergence as error:
        found = error.eigenvalues, error.eigenvectors
        if not len(found[0]):
            raise _no_directions() from error
    except ArpackError as error:
        raise _no_directions() from error
    return found


def _no_directions() -> LearnerError:
    return LearnerError(
        "the directions of word co-occurrence could not be found",
        "use fewer classes, leave out rare words, or start from k-means",
    )
