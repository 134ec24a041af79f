"""Dirichlet processes: mixtures with as many classes as the data call for, and how classes merge.

Two classes that share their documents evenly are a fixed point of variational Bayes, whatever the
bound says of them together. So they are joined, and the bound is asked (merge moves: Ueda et al.
2000; for Dirichlet processes Hughes & Sudderth 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from scipy.special import xlogy
from sklearn.base import clone

from softcount.core import interrupt
from softcount.core.estimator import FitOptions
from softcount.core.types import Array, Params
from softcount.core.verdict import Verdict
from softcount.families import StickBreaking
from softcount.families.base import Family
from softcount.learners.named import VariationalBayes
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import Items
from softcount.mixture.documents import MultinomialMixture
from softcount.mixture.parameters import (
    DirichletProcessGaussianMixtureParameters,
    DirichletProcessMixtureParameters,
)
from softcount.mixture.points import GaussianMixture

if TYPE_CHECKING:
    pass


Pair = tuple[int, int]
NEAR = 10
"""With how many others a class may be joined."""
MEMBERS = 1e-3
"""A class with less than so much of an item has no members, and nothing to join."""


def evidence(family: Family, counts: Array) -> float:
    """log ∫ p(θ) θ^counts dθ = E_q[⟨counts, log θ⟩] − KL(q ‖ p), where q is the posterior."""
    params = family.mean_field(counts, family.uniform(), np.random.default_rng(0))
    return family.expected_log(counts, params) - family.divergence(counts, params)


def join_classes(
    core: MixtureCore, single: Family, items: Items, responsibilities: Array
) -> Array | None:
    """The items' shares of classes, once classes are joined; None if all had better stay apart.

    For shares r that are kept, the best bound is Σ evidence(counts of r) + entropy(r). Pairs are
    joined while that rises, the most rewarding first. ``single`` is the emission of one class.
    """
    work = ClassMerger(core, single, items, responsibilities)
    return work.responsibilities if work.run() else None


class ClassMerger:
    def __init__(
        self, core: MixtureCore, single: Family, items: Items, responsibilities: Array
    ) -> None:
        self.single, self.weights_family = single, core.families["weights"]
        self.item_weights = items.known.weights
        self.responsibilities = responsibilities.copy()
        tables = core.counts(items.x, responsibilities * self.item_weights[:, None])[
            core.emission.table
        ]
        shape = single.zeros().shape
        self.tables = [table.reshape(shape) for table in np.split(tables, core.n_classes)]
        self.sizes = self.item_weights @ responsibilities
        self.alive = set(np.flatnonzero(self.sizes >= MEMBERS).tolist())
        self.values = {k: self._value(self.tables[k], responsibilities[:, k]) for k in self.alive}

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

    def _value(self, table: Array, responsibilities: Array) -> float:
        """What a class adds to the bound, its weight aside."""
        entropy = -float(self.item_weights @ xlogy(responsibilities, responsibilities))
        return evidence(self.single, table) + entropy

    def _gain(self, pair: Pair) -> float:
        i, j = pair
        together = self._value(
            self.tables[i] + self.tables[j], self.responsibilities[:, pair].sum(axis=1)
        )
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
        self.responsibilities[:, i] += self.responsibilities[:, j]
        self.responsibilities[:, j] = 0.0
        self.sizes[i], self.sizes[j] = self.sizes[i] + self.sizes[j], 0.0
        self.alive.remove(j)
        self.values[i] = self._value(self.tables[i], self.responsibilities[:, i])


# Estimators

RISE = 1e-6
"""Part of its size by which the bound must rise for classes to be joined once more."""


class DirichletProcess(Clusterer):
    """Weights by breaking a stick: Sethuraman 1994; truncated: Ishwaran & James 2001."""

    concentration: float
    default_learner = VariationalBayes()

    def _lacks_mode(self) -> str:
        below = isinstance(self.concentration, Real) and 0.0 < float(self.concentration) < 1.0
        return f"concentration={self.concentration}" if below else super()._lacks_mode()

    def weights_family(self) -> Family:
        return StickBreaking(self.n_components, self.concentration)

    def starts(self) -> Mapping[str, Any]:
        offered = super().starts()  # type: ignore[safe-super]  # the other base class has them
        return {name: _largest_first(start) for name, start in offered.items()}

    @interrupt.graceful()
    def _learn(
        self, core: MixtureCore, corpus: Items, init: Any, **options: Unpack[FitOptions]
    ) -> Self:
        """Learn; then, after variational Bayes, join classes and continue from there while it pays.

        The trace continues, too: the first step after classes were joined is `State.restarted`.
        """
        super()._learn(core, corpus, init, **options)
        if self._learner.m != "mean_field":
            return self
        single = self._one_class(corpus)
        # from here on the start is known: there is nothing to try several times
        once = self._learner.set_params(n_init=1)
        while self.verdict_ is not Verdict.STOPPED and not interrupt.asked():
            responsibilities = join_classes(core, single, corpus, self._posterior(corpus.x))
            if responsibilities is None:
                break
            start = self._start_from(core, corpus, responsibilities)
            found = self._run(core, corpus, once, start, 0, options)
            old, new = self.trace_.objective[-1], found.trace.objective[-1]
            if not new - old > RISE * abs(old):  # learning tore the classes apart again
                break
            whole = self.trace_.then(found.trace)
            self._keep_fit(core, corpus, replace(found, trace=whole, traces=(whole,)))
        return self

    def _one_class(self, corpus: Items) -> Family:
        """What one class emits, by itself."""
        core = clone(self).set_params(n_components=1).make_core(corpus.x, corpus.known.weights)
        family: Family = core.emission.family
        return family

    def _start_from(self, core: MixtureCore, corpus: Items, responsibilities: Array) -> Params:
        weighted = responsibilities * corpus.known.weights[:, None]
        order = np.argsort(-weighted.sum(axis=0), kind="stable")
        return core.from_responsibilities(corpus.x, weighted[:, order], np.random.default_rng(0))

    def _after_fit(self, corpus: Items) -> None:
        super()._after_fit(corpus)
        self.n_classes_ = len(np.unique(self.labels_))


Start = Callable[[MixtureCore, Items, np.random.Generator], Params]


def _largest_first(start: Start) -> Start:
    """The same start, its classes sorted by size, as sticks expect them (Kurihara et al. 2007)."""

    def ordered(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
        params = start(core, items, rng)
        order = np.argsort(-params["weights"].reshape(-1), kind="stable")
        weights, table = params["weights"], params[core.emission.table]
        classes = table.reshape(len(order), -1)  # of a Bernoulli mixture: words × 2 in each
        return {
            "weights": weights[:, order],
            core.emission.table: classes[order].reshape(table.shape),
        }

    return ordered


class DirichletProcessMixture(
    DirichletProcessMixtureParameters, DirichletProcess, MultinomialMixture
):
    """A mixture of bags of words with as many classes as the data call for.

    Learned by variational Bayes with at most ``n_components`` classes (Blei & Jordan 2006), or by
    `CollapsedGibbs`, which walks from table to table in a Chinese restaurant (Neal 2000).

    ``n_components``   at most so many classes: more than you expect
    ``concentration``  the larger, the more classes
    ``smoothing``      Dirichlet concentration of the words of a class
    ``init``, …        see `MultinomialMixture`

    After `fit`: ``n_classes_``, how many classes are the likeliest of some document.

    >>> texts = ["a b a", "b a b", "c d d", "d c c", "e f f", "f e e"] * 4
    >>> DirichletProcessMixture(10).fit(texts).n_classes_
    3
    """


class DirichletProcessGaussianMixture(
    DirichletProcessGaussianMixtureParameters, DirichletProcess, GaussianMixture
):
    """A mixture of Gaussians with as many classes as the data call for, by variational Bayes.

    ``n_components``   at most so many classes: more than you expect
    ``concentration``  the larger, the more classes
    ``covariance``, …  see `GaussianMixture`

    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 40, axis=0)
    >>> points += rng.normal(size=points.shape)
    >>> DirichletProcessGaussianMixture(10).fit(points).n_classes_
    3
    """
