"""Bags of words as points in few dimensions, the same way for old and new ones."""

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

    ``idf``   the weight of each word
    ``axes``  (dimensions, words)
    """

    idf: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, counts: Any, dimensions: int, seed: int) -> Self:
        """Learned from counts, of so many dimensions or as many as they allow."""
        few = min(dimensions, min(counts.shape) - 1)
        if few < 1 or counts.nnz == 0:
            raise DataError(
                f"counts of shape {counts.shape} span no space",
                "an SVD needs two contexts and two words at least: leave svd out",
            )
        idf: FloatArray = TfidfTransformer().fit(counts).idf_
        # dimensions without any variance: scikit-learn divides by it, and we do not ask for that
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(few, random_state=seed).fit(_weighted(counts, idf))
        return cls(idf, svd.components_)

    def points(self, counts: Any) -> FloatArray:
        """Bags as unit vectors; a bag without any known word is at zero."""
        if not counts.shape[0]:
            return np.zeros((0, len(self.axes)))
        with single_threaded():
            points: FloatArray = normalize(np.asarray(_weighted(counts, self.idf) @ self.axes.T))
        return points


def _weighted(counts: Any, idf: FloatArray) -> Any:
    """(1 + log count) · idf, each row of length 1; fractions below one count as they are."""
    weighted = counts.astype(np.float64).tocsr(copy=True)
    damped = 1.0 + np.log(np.maximum(weighted.data, 1.0))
    weighted.data = np.minimum(damped, weighted.data) * idf[weighted.indices]
    return normalize(weighted, copy=False)
