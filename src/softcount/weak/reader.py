"""From texts, lists of words or numbers to a matrix, the same way ever after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from softcount.bounds import within_range
from softcount.corpus import texts
from softcount.errors import DataError
from softcount.types import Array


class Reader:
    """Reads items of one kind; ``vectorizer`` counts the words of texts (None: what ``default``
    makes for them), and messages call whoever reads ``owner``.

    Unlike what models of words read, numbers may be any, for any classifier.

    >>> reader = Reader()
    >>> reader.learn(["good film", "bad film"]).shape
    (2, 3)
    >>> reader.read(["a good good film"]).sum()
    np.float64(3.0)
    """

    def __init__(
        self,
        vectorizer: Any = None,
        owner: str = "it",
        default: Callable[[Sequence[Any]], Any] = texts.default_vectorizer,
    ) -> None:
        self._given = vectorizer
        self._default = default
        self._owner = owner
        self.vectorizer: Any = None
        self.n_columns = 0
        self._names: list[Any] | None = None
        self._said: Sequence[Any] | None = None

    def learn(self, X: Any) -> Any:
        """The matrix of these items, whose words or columns are what to expect of others."""
        found = texts.texts_in(X) if not _is_matrix(X) else None
        if found is not None:
            self.vectorizer = texts.own_vectorizer(self._given, found, self._default)
            X = texts.learn_words(self.vectorizer, found)
        matrix = _checked(X)
        self.n_columns, self._names = matrix.shape[1], names_in(X)
        return matrix

    def read(self, X: Any) -> Any:
        """The matrix of other items."""
        found = texts.texts_in(X) if not _is_matrix(X) else None
        if found is not None:
            if self.vectorizer is None:
                raise DataError(
                    "it was fitted to numbers, and these are texts",
                    "pass numbers in the same columns, or fit it to texts",
                )
            X = texts.count_words(self.vectorizer, found)
        demand_names(self._names, names_in(X))
        matrix = _checked(X)
        if matrix.shape[1] != self.n_columns:
            raise DataError(
                f"X has {matrix.shape[1]} features, but {self._owner} is expecting "
                f"{self.n_columns} features as input",
                "give the same columns as in fit",
            )
        return matrix

    def feature_names(self) -> list[str]:
        """What the columns are called: words, names in a data frame, or x0, x1, …"""
        names = self._said if self._said is not None else self._names
        if names is None and self.vectorizer is not None:
            names = texts.vocabulary_of(self.vectorizer)
        if names is None:
            names = [f"x{number}" for number in range(self.n_columns)]
        return list(map(str, names))

    def call(self, names: Sequence[Any]) -> None:
        """Say what the columns of a matrix are called."""
        if len(names) != self.n_columns:
            raise DataError(
                f"{len(names):,} names for {self.n_columns:,} columns", "give one for each column"
            )
        self._said = names


def names_in(X: Any) -> list[Any] | None:
    """What the columns of a data frame are called; None if this is none."""
    return list(X.columns) if hasattr(X, "columns") else None


def demand_names(learned: list[Any] | None, given: list[Any] | None) -> None:
    """Complain of a data frame whose columns are not those learned from, in their order."""
    if learned is not None and given is not None and learned != given:
        raise DataError(
            "The feature names should match those that were passed during fit",
            "give the same columns as in fit, in the same order",
        )


def _is_matrix(X: Any) -> bool:
    return getattr(X, "ndim", 1) == 2


def _checked(X: Any) -> Any:
    with within_range("the data"):
        return check_array(X, accept_sparse="csr", dtype=np.float64)


def occurs(matrix: Any) -> Any:
    """1 where an entry is not zero, as a sparse matrix."""
    found = sparse.csr_matrix(matrix != 0, dtype=np.float64)
    found.eliminate_zeros()
    return found


def columns_in(present: Any, rows: Array) -> Array:
    """1 for each column that some of the rows have, else 0."""
    found: Array = (np.asarray(present[rows].sum(axis=0)).ravel() > 0.0).astype(np.float64)
    return found


def shares_columns(present: Any, columns: Array) -> Array:
    """Whether each row has any of the columns."""
    found: Array = np.asarray(present @ columns).ravel() > 0.0
    return found
