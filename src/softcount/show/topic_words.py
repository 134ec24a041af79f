"""Which words a page shows of each topic: those that are relevant for some λ of a slider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcount.types import Array

TENTHS = range(11)
"""λ goes from 0 to 1 by tenths."""

DEFAULT = 6
FINE = 1000
"""Logarithms are kept in thousandths of a nat."""

MOST_WORDS, FEWEST_WORDS, ALL_WORDS = 30, 10, 3000
WIDEST = 8
"""How many topics are kept of a word at most."""


@dataclass(frozen=True, eq=False)
class TopicWords:
    """The words that a page may come to show.

    ``n``       how many words a topic shows at a time
    ``chosen``  which columns of the topics these words are, in order
    ``rarity``  −log p(w) of each, in thousandths of a nat
    ``places``  for each topic, where its words stand among ``chosen``
    ``logs``    for each topic, −log p(w | k) of these, in thousandths of a nat
    ``spread``  for each word, its likeliest topics and p(k | w) in per cent: k, p, k, p …
    """

    n: int
    chosen: Array
    rarity: Array
    places: Sequence[Array]
    logs: Sequence[Array]
    spread: Sequence[Sequence[int]]

    def top(self, k: int, n: int, tenths: int = DEFAULT) -> list[tuple[int, float, float]]:
        """The most relevant words of a topic: (column, p(w | k), p(w))."""
        places, logs = self.places[k], self.logs[k]
        rarity = self.rarity[places]
        best = np.argsort(-_ranks(logs, rarity, tenths), kind="stable")[:n]
        return [(int(self.chosen[places[i]]), _chance(logs[i]), _chance(rarity[i])) for i in best]


def topic_words(topics: Array, weights: Array) -> TopicWords:
    """Of each topic the words that are among its most relevant for any λ of the slider.

    >>> words = topic_words(np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4]]), np.array([0.5, 0.5]))
    >>> [words.top(k, 1, tenths)[0][0] for k in (0, 1) for tenths in (0, 10)]
    [1, 0, 2, 0]
    """
    K = len(topics)
    n = int(np.clip(ALL_WORDS // K, FEWEST_WORDS, MOST_WORDS))
    overall = weights / weights.sum() @ topics
    rarity = _thousandths(overall)
    columns, logs = [], []
    for row in topics:
        possible = np.flatnonzero((row > 0.0) & (overall > 0.0))
        fine = _thousandths(row[possible])
        kept = _candidates(fine, rarity[possible], n)
        columns.append(possible[kept])
        logs.append(fine[kept])
    chosen = np.unique(np.concatenate(columns))
    places = [np.searchsorted(chosen, one) for one in columns]
    spread = _spread(topics[:, chosen], weights / weights.sum())
    return TopicWords(n, chosen, rarity[chosen], places, logs, spread)


def _thousandths(chances: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = -FINE * np.log(chances)
    # whole, so that the page's script ranks words exactly as is done here
    whole: Array = np.rint(np.minimum(logs, 1e6)).astype(np.int64)
    return whole


def _chance(fine: int) -> float:
    return float(np.exp(-fine / FINE))


def _ranks(logs: Array, rarity: Array, tenths: int) -> Array:
    """Words by λ log p(w | k) + (1 − λ) log [p(w | k) / p(w)] (Sievert & Shirley 2014).

    λ = 1 ranks words by how common they are in the topic, 0 by how much more common than elsewhere.
    As whole numbers: ten times as much, in thousandths; of equals the commoner word ranks higher.
    """
    relevant = (10 - tenths) * rarity - 10 * logs
    ranks: Array = (relevant << 20) - logs
    return ranks


def _candidates(logs: Array, rarity: Array, n: int) -> Array:
    if len(logs) <= n:
        return np.arange(len(logs))
    kept = []
    for tenths in TENTHS:
        ranks = _ranks(logs, rarity, tenths)
        least = np.partition(ranks, len(ranks) - n)[len(ranks) - n]
        good = np.flatnonzero(ranks >= least)
        kept.append(good[np.argsort(-ranks[good], kind="stable")[:n]])
    return np.unique(np.concatenate(kept))


def _spread(topics: Array, weights: Array) -> list[list[int]]:
    """p(k | w) of a word's likeliest topic, and of the others that have 2 % of it."""
    joint = topics * weights[:, None]
    share = np.rint(100.0 * joint / np.maximum(joint.sum(axis=0), 1e-300)).astype(np.int64)
    order = np.argsort(-share, axis=0, kind="stable")[:WIDEST]
    return [
        [int(x) for k in ks if share[k, w] >= 2 or k == ks[0] for x in (k, share[k, w])]
        for w, ks in enumerate(order.T)
    ]
