"""What states emit: words, by a table or by features of words; or vectors.

An emission says p(x_i | z_i = k) of each token of a shard, and how posteriors of states become the
counts of its family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, cast

import numpy as np
from scipy.sparse import csr_matrix, identity, kron
from scipy.special import xlogy

from softcount.core.types import NOTHING_UNCOUNTED, FloatArray, IntArray, Uncounted
from softcount.families import Categorical, Gaussian, LogLinear
from softcount.families.base import Family
from softcount.families.gaussian import FullCovariance
from softcount.families.rows import log_softmax
from softcount.hmm.data import SentenceShard
from softcount.hmm.kernels.packs import pad
from softcount.kernels.vectors import padded_width
from softcount.mixture.data import Points
from softcount.text.tokenise import endings, marks

EMISSIONS = "emissions"
"""The family's name."""
UNSEEN = 1e-9
"""p(unseen word | state), if no word was seen once."""


class StateEmission(Protocol):
    """p(token | state)."""

    @property
    def family(self) -> Family:
        """The distributions."""

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        """Rows of p(token | state), padded; and logs to be added, one per row (None: zero)."""

    def log_likelihoods(self, params: FloatArray, shard: SentenceShard) -> FloatArray:
        """log p(token | state), (tokens, states); −inf only for what is truly impossible."""

    def counts(self, shard: SentenceShard, posteriors: FloatArray) -> FloatArray:
        """Sufficient statistics, from the sums of posteriors of each row, (rows, states)."""

    def magnitude(self, params: FloatArray, shard: SentenceShard) -> float:
        """The magnitude of `softcount.core.types.Stats`."""


class WordEmission:
    """A word is a number; row w of the likelihoods is p(w | state), new words come last.

    ``shape``   (states, words)
    ``unseen``  p(unseen word | state), (states,); None: alike in all states
    """

    def __init__(self, family: Categorical | LogLinear, shape: tuple[int, int]) -> None:
        self.family, self.shape = family, shape
        self.unseen: FloatArray | None = None

    def table(self, params: FloatArray) -> FloatArray:
        """p(word | state), (states, words)."""
        if isinstance(self.family, LogLinear):
            return self.family.table(params).reshape(self.shape)
        return params

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        n_states, n_words = self.shape
        rows = np.zeros((n_words + len(shard.new_words), padded_width(n_states)))
        rows[:n_words, :n_states] = self.table(params).T
        rows[n_words:, :n_states] = UNSEEN if self.unseen is None else self.unseen
        return rows, None

    def log_likelihoods(self, params: FloatArray, shard: SentenceShard) -> FloatArray:
        rows, _ = self.likelihoods(params, shard)
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(rows[shard.rows, : self.shape[0]])
        return logs

    def counts(self, shard: SentenceShard, posteriors: FloatArray) -> FloatArray:
        by_state = np.ascontiguousarray(posteriors[: self.shape[1]].T)
        return by_state.reshape(-1) if isinstance(self.family, LogLinear) else by_state

    def magnitude(self, params: FloatArray, shard: SentenceShard) -> float:
        """All terms are logarithms of probabilities, of one sign."""
        return 0.0


def estimate_unseen(
    table: FloatArray, occupancy: FloatArray, frequencies: IntArray
) -> FloatArray | None:
    """p(unseen word | state): words seen once speak for those never seen; None if there are none.

    p(unseen | k) = n₁/n p(k | seen once) / p(k): the share of words seen once is what unseen ones
    may expect (Good 1953), dealt out to states as these words are.

    ``table``        p(word | state), (states, words)
    ``occupancy``    the share of each state among tokens, (states,)
    ``frequencies``  how often each word was seen, (words,)
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
    """E[log p] of words that are not in the table, which the family does not count.

    ``posteriors``  their sums for each row of the likelihoods, (rows, states)
    """
    new = len(shard.new_words)
    if not new:
        return NOTHING_UNCOUNTED

    def expect(table: FloatArray) -> float:
        rows, _ = emission.likelihoods(table, shard)
        return float(xlogy(posteriors[-new:], rows[-new:, : posteriors.shape[1]]).sum())

    here = expect(params)
    return Uncounted(here, here if against is None else expect(against))


# Features of words: what a word looks like says something of its state, seen or not.


def extract_features(word: str) -> Iterator[str]:
    """Features of what a word looks like: its endings, case, digits and hyphens.

    >>> sorted(extract_features("Re-elected2"))
    ['-', '-2', '-d2', '-ed2', '0', 'A']
    """
    yield from (f"-{ending}" for ending in endings(word))
    yield from marks(word)


class WordFeatures:
    """The features of a vocabulary: what words look like, and each word that came twice itself.

    A word that came once has no feature of its own: what it looks like must explain it, as it must
    explain words that never came.

    ``of_words``  (words, features)
    """

    def __init__(self, words: Sequence[str], frequencies: IntArray) -> None:
        found = [list(extract_features(word)) for word in words]
        names = sorted({name for some in found for name in some})
        self._numbers = {name: number for number, name in enumerate(names)}
        again = np.flatnonzero(frequencies > 1)
        self.n_features = len(names) + len(again)
        own = {int(w): len(names) + n for n, w in enumerate(again)}
        columns = [
            [self._numbers[name] for name in some] + ([own[w]] if w in own else [])
            for w, some in enumerate(found)
        ]
        self.of_words = self._make_matrix(columns)

    def of_new(self, words: Sequence[str]) -> csr_matrix:
        """Features of words that are not in the vocabulary, (words, features)."""
        numbers = self._numbers
        found = [[numbers[f] for f in extract_features(w) if f in numbers] for w in words]
        return self._make_matrix(found)

    def _make_matrix(self, columns: Sequence[Sequence[int]]) -> csr_matrix:
        indptr = np.concatenate([[0], np.cumsum([len(some) for some in columns], dtype=np.int64)])
        indices = np.array([column for some in columns for column in some], dtype=np.int64)
        shape = (len(columns), self.n_features)
        return csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


class FeatureEmission(WordEmission):
    """p(w | k) ∝ exp(v_k · f(w)): every state has a weight for each feature.

    Berg-Kirkpatrick et al. (2010), "Painless unsupervised learning with features". A word that
    never came has the same form, by its features.
    """

    def __init__(self, features: WordFeatures, n_states: int, n_words: int, l2: float) -> None:
        self.features = features
        every = kron(identity(n_states, format="csr"), features.of_words, format="csr")
        borders = np.arange(n_states + 1) * n_words
        super().__init__(LogLinear(borders, every, l2), (n_states, n_words))

    def likelihoods(
        self, params: FloatArray, shard: SentenceShard
    ) -> tuple[FloatArray, FloatArray | None]:
        rows, logs = super().likelihoods(params, shard)
        if shard.new_words:
            n_states, n_words = self.shape
            family = cast(LogLinear, self.family)
            weights = family.weights(params).reshape(n_states, -1)
            scores = (self.features.of_words @ weights.T).T.reshape(-1)
            norms = (scores - log_softmax(scores, family.indptr)).reshape(self.shape)[:, 0]
            new = np.exp(self.features.of_new(shard.new_words) @ weights.T - norms)
            rows[n_words:, :n_states] = np.minimum(new, 1.0)
        return rows, logs


class GaussianEmission:
    """Each token is a vector, scattered about the centre of its state."""

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
        """Σ w xᵀ P x, as of mixtures of points; full covariances go by differences."""
        if isinstance(self.family.form, FullCovariance):
            return 0.0
        return float(np.sum(shard.squares * self.family.precisions(params).max(axis=0)))
