"""Documents whose counts must be whole numbers, for kernels that take them word by word."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError
from softcount.types import Array

MOST = 2.0**40
"""The largest count of one word in one document; sums stay exact."""


def whole_bags(
    indptr: ArrayLike, words: ArrayLike, counts: ArrayLike, n_words: int
) -> tuple[Array, Array, Array]:
    """The documents in CSR form, checked: a kernel believes whatever it is told."""
    borders = np.ascontiguousarray(indptr, np.int64)
    which = np.ascontiguousarray(words, np.int32)
    values = np.ascontiguousarray(counts, np.float64)
    if borders[0] != 0 or (np.diff(borders) < 0).any() or len(which) != borders[-1]:
        raise DataError("indptr does not cut the words into documents", "pass a CSR matrix's parts")
    if which.shape != values.shape or ((which < 0) | (which >= n_words)).any():
        raise DataError(
            f"there must be one count for every word, and word numbers below {n_words}",
            "pass a CSR matrix's parts",
        )
    wrong = np.flatnonzero((values != np.floor(values)) | (values < 0) | (values > MOST))
    if len(wrong):
        d = np.searchsorted(borders, wrong[0], side="right") - 1
        raise DataError(
            f"document {d} has {values[wrong[0]]:g} of word {which[wrong[0]]}: a collapsed sampler "
            "needs whole numbers, none negative and none beyond 2^40",
            "use Gibbs() or EM() for weighted or scaled documents",
        )
    return borders, which, values
