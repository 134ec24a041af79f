"""Latent semantic analysis: bags of words as points in a low-dimensional space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from softcount.core.errors import DataError
from softcount.core.types import FloatArray
from softcount.kernels.threads import single_threaded


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
        idf: FloatArray = TfidfTransformer().fit(counts).idf_
        # scikit-learn divides by the total variance, which may be 0, for a ratio not used here
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(rank, random_state=seed).fit(_weight_counts(counts, idf))
        return cls(idf, svd.components_)

    def points(self, counts: Any) -> FloatArray:
        """Project bags to unit vectors, (bags, dimensions); one without known words is zero."""
        if not counts.shape[0]:
            return np.zeros((0, len(self.axes)))
        with single_threaded():
            weights = _weight_counts(counts, self.idf)
            points: FloatArray = normalize(np.asarray(weights @ self.axes.T))
        return points


def _weight_counts(counts: Any, idf: FloatArray) -> Any:
    """Compute (1 + log count) · idf with rows of length 1; counts below one are not damped."""
    weighted = counts.astype(np.float64).tocsr(copy=True)
    damped = 1.0 + np.log(np.maximum(weighted.data, 1.0))
    weighted.data = np.minimum(damped, weighted.data) * idf[weighted.indices]
    return normalize(weighted, copy=False)
