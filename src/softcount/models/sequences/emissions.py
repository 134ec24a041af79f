"""What states emit: words, by a table or by features of words."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import xlogy

from softcount.families import Categorical, LogLinear
from softcount.families.base import Family
from softcount.kernels.packs import width
from softcount.models.sequences.shards import Shard
from softcount.types import NOTHING_UNCOUNTED, Array, Uncounted

TABLE = "emissions"
UNSEEN = 1e-9
"""p(word | state) of words that were never seen, if the model says nothing else of them."""


class Emitting(Protocol):
    """p(token | state)."""

    @property
    def family(self) -> Family:
        """The distributions."""

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        """Rows of p(token | state), padded, and logs to be added (None: zero)."""

    def logs(self, params: Array, shard: Shard) -> Array:
        """log p(token | state), (tokens, states); −inf only for what is truly impossible."""

    def counts(self, shard: Shard, shares: Array) -> Array:
        """Sufficient statistics of the sums of posteriors of each row."""

    def magnitude(self, params: Array, shard: Shard) -> float:
        """As of `softcount.types.Stats`."""


class Words:
    """A word is a number; row w of the likelihoods is p(w | state), new words come last.

    ``unseen``  p(unseen word | state); None: alike in all states
    """

    def __init__(self, family: Categorical | LogLinear, shape: tuple[int, int]) -> None:
        self.family, self.shape = family, shape
        self.unseen: Array | None = None

    def table(self, params: Array) -> Array:
        """p(word | state), (states, words)."""
        if isinstance(self.family, LogLinear):
            return self.family.table(params).reshape(self.shape)
        return params

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        n_states, n_words = self.shape
        rows = np.zeros((n_words + len(shard.new_words), width(n_states)))
        rows[:n_words, :n_states] = self.table(params).T
        rows[n_words:, :n_states] = UNSEEN if self.unseen is None else self.unseen
        return rows, None

    def logs(self, params: Array, shard: Shard) -> Array:
        rows, _ = self.likelihoods(params, shard)
        with np.errstate(divide="ignore"):
            logs: Array = np.log(rows[shard.rows, : self.shape[0]])
        return logs

    def counts(self, shard: Shard, shares: Array) -> Array:
        by_state = np.ascontiguousarray(shares[: self.shape[1]].T)
        return by_state.reshape(-1) if isinstance(self.family, LogLinear) else by_state

    def magnitude(self, params: Array, shard: Shard) -> float:
        """All terms are logarithms of chances, of one sign."""
        return 0.0


def uncounted(
    emission: Emitting, params: Array, against: Array | None, shard: Shard, shares: Array
) -> Uncounted:
    """What words that are not in the table add to E[log p]: the family does not count them.

    ``shares``  the sums of posteriors of each row of the likelihoods
    """
    new = len(shard.new_words)
    if not new:
        return NOTHING_UNCOUNTED

    def expected(table: Array) -> float:
        rows, _ = emission.likelihoods(table, shard)
        return float(xlogy(shares[-new:], rows[-new:, : shares.shape[1]]).sum())

    here = expected(params)
    return Uncounted(here, here if against is None else expected(against))


def unseen_words(table: Array, share: Array, often: Array) -> Array | None:
    """p(unseen word | state): words seen once speak for those never seen; None if there are none.

    p(unseen | k) = n₁/n p(k | seen once) / p(k): the share of words seen once is what unseen ones
    may expect (Good 1953), dealt out to states as these words are.

    ``table``  p(word | state), (states, words)
    ``share``  of each state among tokens
    ``often``  how often each word was seen
    """
    once = np.flatnonzero(often == 1)
    if not len(once):
        return None
    joint = table[:, once] * share[:, None]
    joint /= np.maximum(joint.sum(axis=0), 1e-300)
    of_state = (joint.sum(axis=1) + 1.0 / len(share)) / (len(once) + 1.0)
    n = float(often.sum())
    unseen: Array = np.minimum(len(once) / n * of_state / np.maximum(share, 1.0 / n), 1.0)
    return unseen
