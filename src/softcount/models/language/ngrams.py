"""The n-grams of a corpus and their counts, as a trie in flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.types import Array


class NGrams(NamedTuple):
    """Nodes as in `softcount.kernels.ngrams`, with the counts that Kneser-Ney smoothing needs.

    ``counts``  of an n-gram of the highest order, or one that begins with <s>: how often it
                occurs; of all others: after how many different words (Kneser & Ney 1995)
    """

    words: Array
    first: Array
    suffix: Array
    counts: Array

    @property
    def levels(self) -> list[int]:
        """Nodes of n-grams of length k are those from levels_k to levels_{k+1}, if any."""
        borders = [0, 1]
        while borders[-1] < len(self.words):
            borders.append(int(self.first[borders[-1]]))
        return borders

    @property
    def parents(self) -> Array:
        """Each node's n-gram without its last word; 0 for the empty n-gram."""
        parents: Array = np.repeat(np.arange(len(self.words)), np.diff(self.first))
        return np.concatenate([[0], parents])


class _Level(NamedTuple):
    """The n-grams of one length: parent and last word, suffix, count, and which begin with <s>."""

    parents: Array
    words: Array
    suffix: Array
    counts: Array
    begins: Array


def count_ngrams(tokens: Array, borders: Array, n_words: int, order: int) -> NGrams:
    """All n-grams up to ``order`` in sentences <s> … </s>, none across their borders.

    >>> it = count_ngrams(np.array([2, 3, 3, 1]), np.array([0, 4]), 4, 2)
    >>> it.levels
    [0, 1, 5, 8]
    >>> it.words[5:].tolist(), it.counts[5:].tolist()
    ([3, 1, 3], [1, 1, 1])
    """
    at = np.arange(len(tokens)) - np.repeat(borders[:-1], np.diff(borders))
    none = np.zeros(n_words, np.int64)
    often = np.bincount(tokens[at > 0], minlength=n_words)
    levels = [_Level(none, np.arange(n_words), none, often, none.astype(bool))]
    node, size = 1 + tokens.astype(np.int64), 1
    for k in range(2, order + 1):
        size += len(levels[-1].words)
        longer, node = _longer(node, tokens, at, k, size, n_words)
        levels[-1] = _preceded(levels[-1], longer, size)
        levels.append(longer)
    parents, words, suffix, counts, _ = (np.concatenate(part) for part in zip(*levels, strict=True))
    first = 1 + np.searchsorted(parents, np.arange(len(parents) + 2))
    return NGrams(np.r_[0, words], first, np.r_[0, suffix], np.r_[0, counts])


def _longer(
    node: Array, tokens: Array, at: Array, k: int, size: int, n_words: int
) -> tuple[_Level, Array]:
    """The n-grams of length k, from the nodes of those of length k - 1 that end at each token."""
    ends = np.flatnonzero(at >= k - 1)
    keys = node[ends - 1] * n_words + tokens[ends]
    found, index, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    one = ends[index]
    level = _Level(found // n_words, found % n_words, node[one], counts, at[one] == k - 1)
    nodes = np.zeros(len(tokens), np.int64)
    nodes[ends] = size + inverse
    return level, nodes


def _preceded(level: _Level, longer: _Level, size: int) -> _Level:
    """The level with counts of the words that precede; ``size``: where the longer n-grams begin."""
    n = len(level.words)
    preceding = np.bincount(longer.suffix - (size - n), minlength=n)
    return level._replace(counts=np.where(level.begins, level.counts, preceding))
