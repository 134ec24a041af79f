"""Features of words: what a word looks like says something of its state, seen or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix, kron
from scipy.sparse import identity as unit

from softcount.corpus.looks import endings, marks
from softcount.families import LogLinear
from softcount.families.rows import log_softmax
from softcount.models.sequences.emissions import Words
from softcount.models.sequences.shards import Shard
from softcount.types import Array


def features_of(word: str) -> Iterator[str]:
    """What a word looks like.

    >>> sorted(features_of("Re-elected2"))
    ['-', '-2', '-d2', '-ed2', '0', 'A']
    """
    yield from (f"-{ending}" for ending in endings(word))
    yield from marks(word)


class WordFeatures:
    """The features of a vocabulary: what words look like, and each word that came twice itself.

    A word that came once has no feature of its own: what it looks like must explain it, as it must
    explain words that never came.
    """

    def __init__(self, words: Sequence[str], often: Array) -> None:
        named = [list(features_of(word)) for word in words]
        names = sorted({name for some in named for name in some})
        self._numbers = {name: number for number, name in enumerate(names)}
        again = np.flatnonzero(often > 1)
        self.n_features = len(names) + len(again)
        own = {int(w): len(names) + n for n, w in enumerate(again)}
        columns = [
            [self._numbers[name] for name in some] + ([own[w]] if w in own else [])
            for w, some in enumerate(named)
        ]
        self.of_words = self._matrix(columns)

    def of_new(self, words: Sequence[str]) -> csr_matrix:
        """The features of words that are not in the vocabulary, as far as it has them."""
        numbers = self._numbers
        named = [[numbers[name] for name in features_of(w) if name in numbers] for w in words]
        return self._matrix(named)

    def _matrix(self, columns: Sequence[Sequence[int]]) -> csr_matrix:
        indptr = np.concatenate([[0], np.cumsum([len(some) for some in columns], dtype=np.int64)])
        indices = np.array([column for some in columns for column in some], dtype=np.int64)
        shape = (len(columns), self.n_features)
        return csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


class FeatureWords(Words):
    """p(w | k) ∝ exp(v_k · f(w)): every state has a weight for each feature.

    Berg-Kirkpatrick et al. (2010). A word that never came has the same form, by its features.
    """

    def __init__(self, features: WordFeatures, n_states: int, n_words: int, l2: float) -> None:
        self.features = features
        every = kron(unit(n_states, format="csr"), features.of_words, format="csr")
        borders = np.arange(n_states + 1) * n_words
        super().__init__(LogLinear(borders, every, l2), (n_states, n_words))

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        n_states, n_words = self.shape
        rows, logs = super().likelihoods(params, shard)
        if shard.new_words:
            rows[n_words:, :n_states] = self._new(params, shard.new_words)
        return rows, logs

    def _new(self, params: Array, words: Sequence[str]) -> Array:
        """p(word | state) of new words, (words, states)."""
        family = self.family
        assert isinstance(family, LogLinear)
        weights = family.weights(params).reshape(self.shape[0], -1)
        scores = (self.features.of_words @ weights.T).T.reshape(-1)
        norms = (scores - log_softmax(scores, family.indptr)).reshape(self.shape)[:, 0]
        chances: Array = np.exp(self.features.of_new(words) @ weights.T - norms)
        return np.minimum(chances, 1.0)
