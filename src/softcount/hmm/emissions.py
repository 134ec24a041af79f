"""Emission distributions: words, by a table or by features; or vectors.

An emission computes p(x_i | z_i = k) of each token of a shard, and turns posteriors of states into
the sufficient statistics of its family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np
from scipy.sparse import csr_matrix, identity, kron
from scipy.special import xlogy

from softcount.core.types import (
    NOTHING_UNCOUNTED,
    ColumnCounts,
    Counts,
    FloatArray,
    IntArray,
    SparseCounts,
    Uncounted,
)
from softcount.families import Categorical, Gaussian, LogLinear
from softcount.families.base import Family
from softcount.families.gaussian import FullCovariance
from softcount.families.loglinear import Ascent
from softcount.families.rows import log_softmax
from softcount.hmm.data import SentenceShard
from softcount.hmm.kernels.packs import pad
from softcount.kernels.vectors import padded_width
from softcount.mixture.data import Points
from softcount.text.tokenise import endings, marks

EMISSIONS = "emissions"
"""Name of the family of emissions."""
BLOCK = 256
"""Number of rows of a table that are transposed at once."""
UNSEEN = 1e-9
"""p(unseen word | state) if no word was seen exactly once."""


class StateEmission(Protocol):
    """An emission distribution p(token | state)."""

    @property
    def family(self) -> Family:
        """The family of distributions, one for each state."""

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        """Compute rows of p(token | state), padded, and a log scale to add per row (None: 0)."""

    def log_likelihoods(self, params: FloatArray, shard: SentenceShard) -> FloatArray:
        """Compute log p(token | state), (tokens, states); −inf only if truly impossible."""

    def counts(self, shard: SentenceShard, posteriors: FloatArray) -> Counts:
        """Compute sufficient statistics from posteriors summed by row, (rows, states)."""

    def magnitude(self, params: FloatArray, shard: SentenceShard) -> float:
        """Compute the ``magnitude`` of `softcount.core.types.Stats`."""


class WordEmission:
    """Emission of words by a table: rows of the likelihoods are p(w | state), new words last.

    The rows are those of a shard's own words alone if it has few of the vocabulary.

    ``shape``   (states, words)
    ``unseen``  p(unseen word | state), (states,); None: `UNSEEN` in all states
    """

    def __init__(self, family: Categorical | LogLinear, shape: tuple[int, int]) -> None:
        self.family, self.shape = family, shape
        self.unseen: FloatArray | None = None

    def table(self, params: FloatArray) -> FloatArray:
        """Return p(word | state), (states, words)."""
        if isinstance(self.family, LogLinear):
            return self.family.table(params).reshape(self.shape)
        return params

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        n_states, n_words = self.shape
        table = self.table(params)
        if shard.own_words is not None:
            table, n_words = np.take(table, shard.own_words, axis=1), len(shard.own_words)
        rows = np.zeros((n_words + len(shard.new_words), padded_width(n_states)))
        rows[:n_words, :n_states] = table.T
        rows[n_words:, :n_states] = UNSEEN if self.unseen is None else self.unseen
        return rows, None

    def log_likelihoods(self, params: FloatArray, shard: SentenceShard) -> FloatArray:
        rows, _ = self.likelihoods(params, shard)
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(rows[shard.rows, : self.shape[0]])
        return logs

    def counts(self, shard: SentenceShard, posteriors: FloatArray) -> Counts:
        own, (n_states, n_words) = shard.own_words, self.shape
        if own is not None and not isinstance(self.family, LogLinear):
            return ColumnCounts(own, np.ascontiguousarray(posteriors[: len(own)]), n_words)
        by_state = _transpose(posteriors[: n_words if own is None else len(own)])
        if own is not None:
            index = np.arange(n_states)[:, None] * n_words + own
            return SparseCounts(index.reshape(-1), by_state.reshape(-1), n_states * n_words)
        return by_state.reshape(-1) if isinstance(self.family, LogLinear) else by_state

    def magnitude(self, params: FloatArray, shard: SentenceShard) -> float:
        """Return 0: all terms are log-probabilities, of one sign, so nothing cancels."""
        return 0.0


def _transpose(table: FloatArray) -> FloatArray:
    """Return the transposed table, in memory of its own; blocks of it stay in the cache."""
    turned = np.empty(table.shape[::-1], table.dtype)
    for begin in range(0, len(table), BLOCK):
        turned[:, begin : begin + BLOCK] = table[begin : begin + BLOCK].T
    return turned


def estimate_unseen(
    table: FloatArray, occupancy: FloatArray, frequencies: IntArray
) -> FloatArray | None:
    """Estimate p(unseen word | state), (states,), from words seen once; None if there are none.

    p(unseen | k) = n₁/n p(k | seen once) / p(k): the proportion of tokens whose word was seen once
    estimates the probability of unseen words (Good 1953), distributed over states as these are.

    ``table``        p(word | state), (states, words)
    ``occupancy``    proportion of each state among tokens, (states,)
    ``frequencies``  training count of each word, (words,)
    """
    once = np.flatnonzero(frequencies == 1)
    if not len(once):
        return None
    joint = table[:, once] * occupancy[:, None]
    joint /= np.maximum(joint.sum(axis=0), 1e-300)
    of_state = (joint.sum(axis=1) + 1.0 / len(occupancy)) / (len(once) + 1.0)
    n = float(frequencies.sum())
    unseen: FloatArray = np.minimum(len(once) / n * of_state / np.maximum(occupancy, 1.0 / n), 1.0)
    return unseen


def expect_uncounted(
    emission: StateEmission,
    params: FloatArray,
    against: FloatArray | None,
    shard: SentenceShard,
    posteriors: FloatArray,
) -> Uncounted:
    """Compute E[log p] of words that are not in the table, which the family does not count.

    ``posteriors``  summed by row of the likelihoods, (rows, states)
    """
    new = len(shard.new_words)
    if not new:
        return NOTHING_UNCOUNTED

    def expect(table: FloatArray) -> float:
        rows, _ = emission.likelihoods(table, shard)
        return float(xlogy(posteriors[-new:], rows[-new:, : posteriors.shape[1]]).sum())

    here = expect(params)
    return Uncounted(here, here if against is None else expect(against))


# Features of words: the form of a word is evidence of its state, whether it was seen or not.


def extract_features(word: str) -> Iterator[str]:
    """Yield the features of a word's form: its suffixes, case, digits and hyphens.

    >>> sorted(extract_features("Re-elected2"))
    ['-', '-2', '-d2', '-ed2', '0', 'A']
    """
    yield from (f"-{ending}" for ending in endings(word))
    yield from marks(word)


class WordFeatures:
    """Features of a vocabulary: the form of words, and an indicator of each word seen twice.

    A word seen once has no indicator of its own: its form must explain it, as it must explain
    unseen words.

    ``of_words``  (words, features)
    """

    def __init__(self, words: Sequence[str], frequencies: IntArray) -> None:
        features = [list(extract_features(word)) for word in words]
        names = sorted({name for word_features in features for name in word_features})
        self._numbers = {name: number for number, name in enumerate(names)}
        repeated = np.flatnonzero(frequencies > 1)
        self.n_features = len(names) + len(repeated)
        indicators = {int(w): len(names) + n for n, w in enumerate(repeated)}
        columns = [
            [self._numbers[name] for name in word_features]
            + ([indicators[w]] if w in indicators else [])
            for w, word_features in enumerate(features)
        ]
        self.of_words = self._make_matrix(columns)

    def of_new(self, words: Sequence[str]) -> csr_matrix:
        """Return the features of words that are not in the vocabulary, (words, features)."""
        numbers = self._numbers
        columns = [[numbers[f] for f in extract_features(w) if f in numbers] for w in words]
        return self._make_matrix(columns)

    def _make_matrix(self, columns: Sequence[Sequence[int]]) -> csr_matrix:
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in columns], dtype=np.int64)])
        indices = np.array([column for row in columns for column in row], dtype=np.int64)
        shape = (len(columns), self.n_features)
        return csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


class FeatureEmission(WordEmission):
    """Log-linear emission: p(w | k) ∝ exp(v_k · f(w)), with a weight per state and feature.

    Berg-Kirkpatrick et al. (2010), "Painless unsupervised learning with features". Unseen words
    have the same formula, by their features.
    """

    def __init__(
        self, features: WordFeatures, n_states: int, n_words: int, l2: float, ascent: Ascent
    ) -> None:
        self.features = features
        design = kron(identity(n_states, format="csr"), features.of_words, format="csr")
        indptr = np.arange(n_states + 1) * n_words
        super().__init__(LogLinear(indptr, design, l2, ascent=ascent), (n_states, n_words))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what it is made of: the family has the features of each state by themselves."""
        family = cast(LogLinear, self.family)
        made_of = (self.features, *self.shape, family.l2, family.ascent)
        return type(self), made_of, {"unseen": self.unseen}

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        rows, logs = super().likelihoods(params, shard)
        if shard.new_words:
            n_states = self.shape[0]
            family = cast(LogLinear, self.family)
            weights = family.weights(params).reshape(n_states, -1)
            scores = (self.features.of_words @ weights.T).T.reshape(-1)
            norms = (scores - log_softmax(scores, family.indptr)).reshape(self.shape)[:, 0]
            new = np.exp(self.features.of_new(shard.new_words) @ weights.T - norms)
            rows[-len(new) :, :n_states] = np.minimum(new, 1.0)
        return rows, logs


class GaussianEmission:
    """Emission of vectors by a Gaussian for each state."""

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        logs = self.log_likelihoods(params, shard)
        peaks = logs.max(axis=1, initial=-np.inf)
        peaks = np.where(np.isfinite(peaks), peaks, 0.0)
        return pad(np.exp(logs - peaks[:, None]), np.float64), peaks

    def log_likelihoods(self, params: FloatArray, shard: SentenceShard) -> FloatArray:
        points = Points(shard.observed)
        return self.family.log_density(params, points.x, points.outer(self.family.form))

    def counts(self, shard: SentenceShard, posteriors: FloatArray) -> FloatArray:
        points = Points(shard.observed)
        return self.family.statistics(points.x, posteriors, points.outer(self.family.form))

    def magnitude(self, params: FloatArray, shard: SentenceShard) -> float:
        """Compute Σ w xᵀ P x, as for Gaussian mixtures; full covariances use differences: 0."""
        if isinstance(self.family.form, FullCovariance):
            return 0.0
        return float(np.sum(shard.squares * self.family.precisions(params).max(axis=0)))
