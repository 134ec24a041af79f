"""Items as users give them become rows that have neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from sklearn.utils.validation import validate_data

from softcount.bounds import within_range
from softcount.corpus import texts
from softcount.errors import DataError
from softcount.kernels.blas import single_threaded
from softcount.models.settings import generator
from softcount.types import Array
from softcount.weak import tfidf
from softcount.weak.neighbours import DenseRows, SparseRows

POWERS = 3
"""Steps of the power method: of use for neighbours are the large dimensions, which come first."""
SMALLEST, LARGEST = 1e-10, 1e140
"""Between these the squares of numbers have all their digits, and long sums of them are finite."""
COSINE, GAUSSIAN, PRECOMPUTED = "cosine", "gaussian", "precomputed"


class ReadsRows:
    """What an estimator that compares rows knows of its items (a mixin)."""

    weights: str
    svd: int | None
    vectorizer: Any
    vectorizer_: Any
    random_state: Any
    axes_: Array | None
    """(dimensions, columns): where an SVD puts items; None without."""
    n_features_in_: int

    def read(self, X: Any, *, first: bool) -> Any:
        """A matrix of items, sparse or dense; ``first``: these say what to expect of others."""
        found = texts.texts_in(X)
        if found is not None:
            X = self._weighed(found, first)
        elif first:
            self.vectorizer_ = None
        with within_range("the data"):
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)

    def _weighed(self, documents: list[Any], first: bool) -> Any:
        if self.weights == PRECOMPUTED:
            raise DataError("texts are no graph", "give weights='cosine' to compare them")
        if not first:
            if getattr(self, "vectorizer_", None) is None:
                raise DataError(
                    "this model was fitted to a matrix, and cannot read texts by itself",
                    "pass the same columns, or fit the model to texts",
                )
            return texts.count_words(self.vectorizer_, documents)
        self.vectorizer_ = texts.own_vectorizer(
            self.vectorizer, documents, tfidf.default_vectorizer
        )
        return texts.learn_words(self.vectorizer_, documents)

    def learn_axes(self, X: Any) -> None:
        """Find the dimensions of an SVD, of so many as are asked for or as many as there can be."""
        self.axes_ = None
        if self.svd is None:
            return
        # a column of one row joins nothing to anything, and texts have many such
        shared = np.flatnonzero(_spread(X) > 1)
        few = min(self.svd, X.shape[0] - 1, len(shared) - 1)
        if few < 1:
            raise DataError(
                f"items of shape {X.shape} span no space",
                "an SVD needs two items, and two columns that several items have: leave svd out",
            )
        seed = int(generator(self.random_state).integers(2**31))
        # dimensions without any variance: scikit-learn divides by it, and we do not ask for that
        with single_threaded(), np.errstate(all="ignore"):
            svd = TruncatedSVD(few, n_iter=POWERS, random_state=seed).fit(_scaled(X)[:, shared])
        self.axes_ = np.zeros((few, X.shape[1]))
        self.axes_[:, shared] = svd.components_

    def placed(self, X: Any) -> tuple[Any, Array]:
        """Rows to be compared, and which of them say anything.

        Empty rows of words do not. A row of numbers that are all 0 is a point, if distances count.
        """
        if sparse.issparse(X):
            X = X.tocsr(copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
        says = _largest(X) > 0.0
        if self.axes_ is not None:
            with single_threaded():
                X = np.asarray(_scaled(X) @ self.axes_.T)
        elif not sparse.issparse(X) and self.weights == GAUSSIAN:
            says = np.ones(len(X), dtype=bool)
        if self.weights == COSINE:
            return _scaled(X), says
        demand_short(X)
        return X, says

    def searchable(self, rows: Any) -> SparseRows | DenseRows:
        """Rows that can be searched for neighbours."""
        distances = self.weights == GAUSSIAN
        if sparse.issparse(rows):
            return SparseRows(rows, distances)
        return DenseRows(rows, distances)


def _scaled(X: Any) -> Any:
    """Rows of length 1, however large or small their numbers are."""
    largest = _largest(X)
    some = largest[largest > 0.0]
    if len(some) and not SMALLEST < some.min() <= some.max() < LARGEST:
        # by hand: scikit-learn takes small dense rows for empty ones
        by = np.where(largest > 0.0, largest, 1.0)
        if sparse.issparse(X):
            X = sparse.csr_matrix(
                (X.data / np.repeat(by, np.diff(X.indptr)), X.indices, X.indptr), X.shape
            )
        else:
            X = X / by[:, None]
    return normalize(X)


def demand_short(X: Any) -> None:
    """Complain of rows so long that nobody can say how far apart they are."""
    if not (_largest(X) < LARGEST).all():
        raise DataError(
            "some numbers are so large that distances are infinite", "scale the columns first"
        )


def _spread(X: Any) -> Array:
    """How many rows have each column."""
    if sparse.issparse(X):
        return np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1])
    return np.asarray(np.count_nonzero(X, axis=0))


def _largest(X: Any) -> Array:
    """The largest number of each row, whatever its sign."""
    found = abs(X).max(axis=1)
    return np.asarray(found.toarray() if sparse.issparse(found) else found).reshape(-1)
