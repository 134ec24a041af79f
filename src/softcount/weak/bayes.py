"""The classifier that views have unless they are given another."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from softcount.types import Array

LONGEST, SMOOTHING = 50.0, 0.1


class KnownWords(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Counts of those words that some item learned from has, long items shrunk to ``longest``.

    Both keep Naive Bayes from being sure of what it cannot know. It takes every word for another
    witness, and so is far too sure of long texts; short ones are left as they are, for to stretch
    them would make it as sure of three words as of fifty. And a word that it has never seen would
    speak for the class that has the fewest words.

    >>> words = KnownWords(longest=4).fit(np.array([[1.0, 0.0, 2.0]]))
    >>> words.transform(np.array([[1.0, 9.0, 0.0], [6.0, 0.0, 2.0]]))
    array([[1., 0.],
           [3., 1.]])
    """

    columns_: Array

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest = longest

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which words there are; all of them if there is none."""
        totals = np.asarray((X != 0).sum(axis=0)).ravel()
        self.columns_ = np.flatnonzero(totals) if totals.any() else np.arange(X.shape[1])
        return self

    def transform(self, X: Any) -> Any:
        """The known words of some items."""
        check_is_fitted(self)
        known = X[:, self.columns_]
        lengths = np.asarray(known.sum(axis=1)).ravel()
        factors = np.minimum(self.longest / np.maximum(lengths, 1.0), 1.0)
        if sparse.issparse(known):
            return sparse.csr_matrix(sparse.diags(factors) @ known)
        return known * factors[:, None]


def few_labels_bayes() -> Pipeline:
    """Naive Bayes of words, with settings that served few labels best."""
    return Pipeline([("words", KnownWords()), ("bayes", MultinomialNB(alpha=SMOOTHING))])
