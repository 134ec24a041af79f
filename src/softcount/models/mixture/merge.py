"""Joining classes that are one: what variational Bayes cannot do by itself.

Two classes that share their documents evenly are a fixed point of variational Bayes, whatever the
bound says of them together. So they are joined, and the bound is asked (merge moves: Ueda et al.
2000; for Dirichlet processes Hughes & Sudderth 2013).
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from softcount.families.base import Family
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.items import Items
from softcount.types import Array

Pair = tuple[int, int]
NEAR = 10
"""With how many others a class may be joined."""
MEMBERS = 1e-3
"""A class with less than so much of an item has no members, and nothing to join."""


def evidence(family: Family, counts: Array) -> float:
    """log ∫ p(θ) θ^counts dθ = E_q[⟨counts, log θ⟩] − KL(q ‖ p), where q is the posterior."""
    params = family.mean_field(counts, family.uniform(), np.random.default_rng(0))
    return family.expected_log(counts, params) - family.divergence(counts, params)


def joined(core: MixtureCore, single: Family, items: Items, shares: Array) -> Array | None:
    """The items' shares of classes, once classes are joined; None if all had better stay apart.

    For shares r that are kept, the best bound is Σ evidence(counts of r) + entropy(r). Pairs are
    joined while that rises, the most rewarding first. ``single`` is the emission of one class.
    """
    work = _Joining(core, single, items, shares)
    return work.shares if work.run() else None


class _Joining:
    def __init__(self, core: MixtureCore, single: Family, items: Items, shares: Array) -> None:
        self.single, self.weights_family = single, core.families["weights"]
        self.item_weights = items.known.weights
        self.shares = shares.copy()
        tables = core.counts(items.x, shares * self.item_weights[:, None])[core.emission.table]
        shape = single.zeros().shape
        self.tables = [table.reshape(shape) for table in np.split(tables, core.n_classes)]
        self.sizes = self.item_weights @ shares
        self.alive = set(np.flatnonzero(self.sizes >= MEMBERS).tolist())
        self.values = {k: self._value(self.tables[k], shares[:, k]) for k in self.alive}

    def run(self) -> bool:
        """Whether any classes were joined."""
        gains = {pair: self._gain(pair) for pair in self._near_pairs()}
        changed = False
        while gains:
            pair = max(gains, key=lambda two: gains[two])
            if gains[pair] + self._gain_of_weights(pair) <= 0.0:
                del gains[pair]
                if gains and max(gains.values()) <= 0.0:
                    break
                continue
            self._join(pair)
            changed = True
            gains = {two: gain for two, gain in gains.items() if not set(two) & set(pair)}
            gains |= {two: self._gain(two) for two in self._pairs_with(pair[0])}
        return changed

    def _near_pairs(self) -> set[Pair]:
        """Each class with those most like it: there are too many pairs to try them all."""
        return {pair for one in self.alive for pair in self._pairs_with(one)}

    def _pairs_with(self, one: int) -> list[Pair]:
        """A class with the few whose items are on average most like its own."""
        others = np.array(sorted(self.alive - {one}), np.int64)
        mean = self.tables[one] / self.sizes[one]
        apart = [float(np.square(self.tables[k] / self.sizes[k] - mean).sum()) for k in others]
        near = others[np.argsort(apart, kind="stable")[:NEAR]].tolist()
        return [(min(one, k), max(one, k)) for k in near]

    def _value(self, table: Array, shares: Array) -> float:
        """What a class adds to the bound, its weight aside."""
        entropy = -float(self.item_weights @ xlogy(shares, shares))
        return evidence(self.single, table) + entropy

    def _gain(self, pair: Pair) -> float:
        i, j = pair
        together = self._value(self.tables[i] + self.tables[j], self.shares[:, pair].sum(axis=1))
        return together - self.values[i] - self.values[j]

    def _gain_of_weights(self, pair: Pair) -> float:
        """Fewer classes are likelier: what the weights add when two classes become one."""
        i, j = pair
        after = self.sizes.copy()
        after[i], after[j] = after[i] + after[j], 0.0
        return self._evidence_of(after) - self._evidence_of(self.sizes)

    def _evidence_of(self, sizes: Array) -> float:
        return evidence(self.weights_family, -np.sort(-sizes)[None])

    def _join(self, pair: Pair) -> None:
        i, j = pair
        self.tables[i] = self.tables[i] + self.tables[j]
        self.tables[j] = np.zeros_like(self.tables[j])
        self.shares[:, i] += self.shares[:, j]
        self.shares[:, j] = 0.0
        self.sizes[i], self.sizes[j] = self.sizes[i] + self.sizes[j], 0.0
        self.alive.remove(j)
        self.values[i] = self._value(self.tables[i], self.shares[:, i])
