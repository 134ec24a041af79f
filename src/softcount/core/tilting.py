"""Weights on hidden values: what constraints on expectations do to an E-step.

A *site* is a place in the data that has a hidden value: an item of a mixture, a word of a hidden
Markov model. A weight on each value of each site multiplies p(x, z), and the model's own inference
does the rest. Weights of 0 and 1 would be partial knowledge; those of constraints are exp(−λ · f)
(Ganchev, Graça, Gillenwater & Taskar 2010, *Posterior regularization for structured latent variable
models*).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcount.core.types import Array, FloatArray, IntArray

EXPECTED = "constraints"
"""The name of the expected features among the counts of an E-step with a `Tilt`."""

SATISFIED = 1e-6
"""A constraint that is violated by no more than this holds: a share of sites, or a number of them
in an item."""

MOST_REMEMBERED = 1 << 28
"""Bytes of an array that is remembered for the next E-step at the same parameters."""

LEAST_LOG = -600.0
"""Lower bound on the log of a weight, relative to the largest of its site, where weights multiply
probabilities that are not logs: e^-600 is 1e-261."""


@dataclass(frozen=True, eq=False)
class Sites:
    """The hidden values of a corpus, as constraints speak of them.

    ``indptr``   item n has the sites ``indptr[n]`` to ``indptr[n + 1]`` (exclusive), (items + 1,)
    ``weights``  the weight of each site's item, (sites,)
    ``values``   name of a hidden value → its numbers (several for a class with components)
    ``n_values`` number of hidden values
    ``find``     the sites at which something was observed, such as a word
    ``words``    the number of the word at each site, (sites,); None: a site has no single word
    ``site``     what messages call a site
    ``links``    whether a site is a source word, and its only value the number of its links
    ``limit``    the largest multiplier of a constraint, in nats per site: that of one that must
                 hold, as none beyond it would do what it does not. Documents of thousands of words
                 have posteriors as extreme as e^1000, but their logs are weighted; weights of words
                 are multiplied (see `LEAST_LOG`)
    """

    indptr: IntArray
    weights: FloatArray
    values: Mapping[Any, Sequence[int]]
    n_values: int
    find: Callable[[Any], IntArray]
    words: IntArray | None = None
    site: str = "item"
    links: bool = False
    limit: float = 1e4

    def __len__(self) -> int:
        return int(self.indptr[-1])


@dataclass(frozen=True, eq=False)
class Tilt:
    """Weights exp(−Σ_g s_ig price_gk) of value k at site i, where s are the groups of sites.

    ``indptr``  item n has the sites ``indptr[n]`` to ``indptr[n + 1]`` (exclusive), (items + 1,)
    ``groups``  how much each site belongs to each group, a sparse matrix (sites, groups)
    ``prices``  (groups, values)
    ``memory``  what E-steps at the same parameters share; it does not travel
    """

    indptr: IntArray
    groups: Any
    prices: FloatArray
    memory: dict[Any, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.indptr, self.groups, self.prices)

    def at(self, prices: FloatArray) -> Tilt:
        """Return the tilt with other prices."""
        return replace(self, prices=prices)

    def log_weights(self, numbers: IntArray) -> FloatArray:
        """Return the logs of the weights at the sites of these items, (sites, values)."""
        logs: FloatArray = self._rows(numbers) @ self.prices
        np.negative(logs, out=logs)
        return logs

    def weights(self, numbers: IntArray, allowed: Array | bool = True) -> tuple[Array, Array]:
        """Return the weights, the largest allowed one of each site being 1, and the logs of what
        they were divided by, (sites,)."""
        logs = self.log_weights(numbers)
        peaks = logs.max(axis=1, where=allowed, initial=-np.inf)
        logs -= peaks[:, None]
        return np.exp(np.clip(logs, LEAST_LOG, 0.0, out=logs), out=logs), peaks

    def expect(self, numbers: IntArray, posteriors: FloatArray) -> FloatArray:
        """Return Σ_i s_ig q_ik over the sites of these items, (groups, values).

        ``posteriors``  q, times the items' weights, (sites, values)
        """
        return np.asarray(self._rows(numbers).T @ posteriors)

    def remember(self, key: Any, make: Callable[[], FloatArray]) -> FloatArray:
        """Return what ``make`` returns, or returned before; for what depends on parameters alone,
        not on prices."""
        kept: FloatArray | None = self.memory.get(key)
        if kept is None:
            kept = make()
            if kept.nbytes <= MOST_REMEMBERED:
                self.memory[key] = kept
        return kept

    def _rows(self, numbers: IntArray) -> Any:
        """Return the groups of these items' sites, (sites, groups)."""
        n = len(numbers)
        if n == len(self.indptr) - 1:
            return self.groups
        if n and int(numbers[-1]) - int(numbers[0]) == n - 1:  # shards are runs of items
            return self.groups[self.indptr[numbers[0]] : self.indptr[numbers[-1] + 1]]
        parts = [np.arange(self.indptr[i], self.indptr[i + 1]) for i in numbers]
        return self.groups[np.concatenate([np.empty(0, np.int64), *parts])]


def make_groups(n_sites: int, groups: Sequence[tuple[IntArray, FloatArray]]) -> Any:
    """Return groups of sites as a matrix, (sites, groups).

    ``groups``  the sites of each group, and how much each belongs to it
    """
    from scipy import sparse  # slow to import, and seldom needed

    indptr = np.cumsum([0, *(len(sites) for sites, _ in groups)])
    rows = np.concatenate([np.empty(0, np.int64), *(sites for sites, _ in groups)])
    much = np.concatenate([np.empty(0), *(much for _, much in groups)])
    by_group = sparse.csc_matrix((much, rows, indptr), shape=(n_sites, len(groups)))
    return by_group.tocsr()
