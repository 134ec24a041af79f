"""Chains of unary rules, all of them at once.

With U[A, B] = p(A → B), the chains from B up to A, of whatever length, have the weight

    G = I + U + U² + … = (I − U)⁻¹

(Stolcke 1995, "An efficient probabilistic context-free parsing algorithm that computes prefix
probabilities"). G comes from eliminating symbol after symbol (Kleene 1956), which adds and
multiplies and never subtracts but in 1 / (1 − u): entries that are zero stay so, and no digits are
lost. The best chain has the largest product in place of the sum.

Where only some symbols are allowed, chains go through these alone: each set of them has its own G.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import lean
from softcount.types import Array


class Chains(NamedTuple):
    """Unary rules by left side, and what chains of them add up to.

    ``indptr``, ``child``, ``chance``   A → child[u] for u from indptr[A] to indptr[A + 1]
    ``begins``, ``tops``, ``weights``   with N symbols, what is above symbol B where set s is
                                        allowed are entries from begins[s N + B] to the next one:
                                        symbols A, and G[A, B] within the set
    """

    indptr: Array
    child: Array
    chance: Array
    begins: Array
    tops: Array
    weights: Array


@lean
def _summed(table: Array) -> bool:
    """U + U² + … in place of U; False if it has no finite sum."""
    m = len(table)
    for k in range(m):
        if not table[k, k] < 1.0:
            return False
        again = 1.0 / (1.0 - table[k, k])
        for i in range(m):
            if i != k and table[i, k] > 0.0:
                weight = table[i, k] * again
                for j in range(m):
                    table[i, j] += weight * table[k, j]
        for j in range(m):
            table[k, j] *= again
    return True


@lean
def _largest(table: Array) -> None:
    """The best chain in place of U."""
    m = len(table)
    for k in range(m):
        for i in range(m):
            if table[i, k] > 0.0:
                weight = table[i, k]
                for j in range(m):
                    table[i, j] = max(table[i, j], weight * table[k, j])


def closure(table: Array, best: bool = False) -> Array | None:
    """(I − U)⁻¹, or the weights of best chains; None if chains have no finite sum.

    >>> closure(np.array([[0.5, 0.25], [0.0, 0.0]]))
    array([[2. , 0.5],
           [0. , 1. ]])
    >>> closure(np.array([[0.5, 0.25], [0.0, 0.0]]), best=True)
    array([[1.  , 0.25],
           [0.  , 1.  ]])
    """
    found = np.array(table, np.float64)
    if best:
        _largest(found)
        np.fill_diagonal(found, 1.0)
        return found
    if not _summed(found):
        return None
    found[np.diag_indices(len(found))] += 1.0
    return found


def chains(
    indptr: Array, child: Array, chance: Array, allowed: Array, best: bool = False
) -> Chains | None:
    """Chains within each set of symbols, ``allowed`` (sets, N); None if one has no finite sum."""
    n = len(indptr) - 1
    parent = np.repeat(np.arange(n), np.diff(indptr))
    linked = np.unique(np.concatenate([parent, child]))
    place = np.zeros(n, np.int64)
    place[linked] = np.arange(len(linked))
    table = np.zeros((len(linked), len(linked)))
    np.add.at(table, (place[parent], place[child]), chance)
    sizes, tops, weights = [], [], []
    for may in np.asarray(allowed, bool):
        own = linked[may[linked]]
        found = closure(table[np.ix_(place[own], place[own])], best)
        if found is None:
            return None
        alone = np.flatnonzero(may & ~np.isin(np.arange(n), linked))
        at, above = np.nonzero(found.T)
        bottom = np.concatenate([own[at], alone])
        order = np.argsort(bottom, kind="stable")
        sizes.append(np.bincount(bottom, minlength=n))
        tops.append(np.concatenate([own[above], alone])[order])
        weights.append(np.concatenate([found.T[at, above], np.ones(len(alone))])[order])
    begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Chains(indptr, child, chance, begins, np.concatenate(tops), np.concatenate(weights))
