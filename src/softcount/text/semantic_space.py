"""Latent semantic analysis: bags of words as points in a low-dimensional space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import RandomState

from softcount.core.errors import DataError
from softcount.core.types import FloatArray
from softcount.kernels.threads import single_threaded

POWER_ITERATIONS, OVERSAMPLES = 5, 10
"""As in scikit-learn's `TruncatedSVD`, whose components these are to the bit. (It is not used, as
it takes longer to import than many texts to cluster.)"""


@dataclass(frozen=True, eq=False)
class SemanticSpace:
    """tf-idf, then a truncated SVD (latent semantic analysis; Deerwester et al. 1990).

    ``idf``   the inverse document frequency of each word, (words,)
    ``axes``  right singular vectors, (dimensions, words)
    """

    idf: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, counts: Any, dimensions: int, seed: int) -> Self:
        """Fit the space to counts; with fewer dimensions if the counts do not allow as many."""
        rank = min(dimensions, min(counts.shape) - 1)
        if rank < 1 or counts.nnz == 0:
            raise DataError(
                f"counts of shape {counts.shape} are too small for an SVD",
                "it needs at least two contexts and two words: leave svd out",
            )
        n_documents, n_words = counts.shape
        rows = counts.tocsr()
        frequencies = np.bincount(rows.indices[rows.data != 0], minlength=n_words)
        idf: FloatArray = np.log((n_documents + 1.0) / (frequencies + 1.0)) + 1.0
        with single_threaded():
            axes = _find_axes(_weight_counts(counts, idf), rank, RandomState(seed))
        return cls(idf, axes)

    def points(self, counts: Any) -> FloatArray:
        """Project bags to unit vectors, (bags, dimensions); one without known words is zero."""
        if not counts.shape[0]:
            return np.zeros((0, len(self.axes)))
        with single_threaded():
            points = np.asarray(_weight_counts(counts, self.idf) @ self.axes.T)
        lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
        unit: FloatArray = points / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return unit


def _weight_counts(counts: Any, idf: FloatArray) -> Any:
    """Compute (1 + log count) · idf with rows of length 1; counts below one are not damped."""
    weighted = counts.astype(np.float64).tocsr(copy=True)
    damped = 1.0 + np.log(np.maximum(weighted.data, 1.0))
    weighted.data = np.minimum(damped, weighted.data) * idf[weighted.indices]
    owners = np.repeat(np.arange(weighted.shape[0]), np.diff(weighted.indptr))
    lengths = np.sqrt(np.bincount(owners, weighted.data**2, weighted.shape[0]))
    weighted.data /= np.where(lengths > 0.0, lengths, 1.0)[owners]
    return weighted


def _find_axes(matrix: Any, rank: int, random: RandomState) -> FloatArray:
    """Return the first right singular vectors of a sparse matrix, (rank, columns).

    By a random sample of its range, sharpened by power iterations, whose factors are kept
    well-conditioned by LU decompositions (Halko, Martinsson & Tropp 2011). The largest coordinate
    of each vector is positive.
    """
    from scipy.linalg import lu, qr, svd

    is_wide = matrix.shape[0] < matrix.shape[1]
    tall = matrix.T if is_wide else matrix  # the smaller side is the sampled one
    sample = random.normal(size=(tall.shape[1], rank + OVERSAMPLES))
    for _ in range(POWER_ITERATIONS):
        image, _ = lu(tall @ sample, permute_l=True, check_finite=False)
        sample, _ = lu(tall.T @ image, permute_l=True, check_finite=False)
    basis, _ = qr(tall @ sample, mode="economic", check_finite=False)
    left, _, right = svd(basis.T @ tall, full_matrices=False)
    axes: FloatArray = (basis @ left)[:, :rank].T if is_wide else right[:rank]
    largest = np.abs(axes).argmax(axis=1)
    signed: FloatArray = axes * np.sign(axes[np.arange(rank), largest])[:, None]
    return signed
