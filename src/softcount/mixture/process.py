"""Dirichlet processes: mixtures with as many classes as the data call for, and how classes merge.

Two classes that share their documents evenly are a fixed point of variational Bayes, whatever the
bound says of them together. So they are joined, and the bound is asked (merge moves: Ueda et al.
2000; for Dirichlet processes Hughes & Sudderth 2013).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Self, Unpack

import numpy as np
from numpy.random import Generator
from scipy.special import xlogy
from sklearn.base import clone

from softcount.core import interrupt
from softcount.core.estimator import FitOptions
from softcount.core.types import FloatArray, Params
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
from softcount.mixture.starts import Start

NEAR = 10
"""With how many others a class may be joined."""
MEMBERS = 1e-3
"""A class with less than so much of an item has no members, and nothing to join."""
RISE = 1e-6
"""Part of its size by which the bound must rise for classes to be joined once more."""


def evidence(family: Family, counts: FloatArray) -> float:
    """log ∫ p(θ) θ^counts dθ = E_q[⟨counts, log θ⟩] − KL(q ‖ p), where q is the posterior."""
    params = family.mean_field(counts, family.uniform(), np.random.default_rng(0))
    return family.expected_log(counts, params) - family.divergence(counts, params)


class ClassMerger:
    """Joins classes of a variational posterior, two by two.

    For responsibilities r that are kept, the best bound is Σ evidence(counts of r) + entropy(r).

    ``single``            the emission of one class
    ``responsibilities``  r, (items, classes); once classes are joined, one column has both
    """

    def __init__(
        self, core: MixtureCore, single: Family, items: Items, responsibilities: FloatArray
    ) -> None:
        self.single, self.weights_family = single, core.families["weights"]
        self.item_weights = items.known.weights
        self.responsibilities = responsibilities.copy()
        weighted = responsibilities * self.item_weights[:, None]
        counts = core.counts(items.x, weighted)[core.emission.table]
        shape = single.zeros().shape
        self.tables = [table.reshape(shape) for table in np.split(counts, core.n_classes)]
        self.sizes = self.item_weights @ responsibilities
        self.alive = set(np.flatnonzero(self.sizes >= MEMBERS).tolist())
        self.values = {k: self._value(self.tables[k], responsibilities[:, k]) for k in self.alive}

    def merge(self) -> FloatArray | None:
        """Join pairs while the bound rises, the most rewarding first.

        Gives the responsibilities for what is left; None if all classes had better stay apart.
        """
        # each class with those most like it: there are too many pairs to try them all
        near = {pair for one in self.alive for pair in self._pairs_with(one)}
        gains = {pair: self._gain(pair) for pair in near}
        changed = False
        while gains:
            i, j = pair = max(gains, key=lambda two: gains[two])
            sizes = self.sizes.copy()
            sizes[i], sizes[j] = sizes[i] + sizes[j], 0.0
            # fewer classes are likelier: what the weights add when two classes become one
            fewer = self._evidence_of_sizes(sizes) - self._evidence_of_sizes(self.sizes)
            if gains[pair] + fewer <= 0.0:
                del gains[pair]
                if gains and max(gains.values()) <= 0.0:
                    break
                continue
            self.sizes = sizes
            self.tables[i] = self.tables[i] + self.tables[j]
            self.tables[j] = np.zeros_like(self.tables[j])
            self.responsibilities[:, i] += self.responsibilities[:, j]
            self.responsibilities[:, j] = 0.0
            self.alive.remove(j)
            self.values[i] = self._value(self.tables[i], self.responsibilities[:, i])
            changed = True
            gains = {two: gain for two, gain in gains.items() if not set(two) & set(pair)}
            gains |= {two: self._gain(two) for two in self._pairs_with(i)}
        return self.responsibilities if changed else None

    def _pairs_with(self, one: int) -> list[tuple[int, int]]:
        """A class with the few whose items are on average most like its own."""
        others = np.array(sorted(self.alive - {one}), np.int64)
        mean = self.tables[one] / self.sizes[one]
        apart = [float(np.square(self.tables[k] / self.sizes[k] - mean).sum()) for k in others]
        near = others[np.argsort(apart, kind="stable")[:NEAR]].tolist()
        return [(min(one, k), max(one, k)) for k in near]

    def _value(self, table: FloatArray, responsibilities: FloatArray) -> float:
        """What a class adds to the bound, its weight aside."""
        entropy = -float(self.item_weights @ xlogy(responsibilities, responsibilities))
        return evidence(self.single, table) + entropy

    def _gain(self, pair: tuple[int, int]) -> float:
        """What the bound gains when two classes are joined, their weights aside."""
        i, j = pair
        together = self._value(
            self.tables[i] + self.tables[j], self.responsibilities[:, pair].sum(axis=1)
        )
        return together - self.values[i] - self.values[j]

    def _evidence_of_sizes(self, sizes: FloatArray) -> float:
        return evidence(self.weights_family, -np.sort(-sizes)[None])


class DirichletProcess(Clusterer):
    """Weights by breaking a stick: Sethuraman 1994; truncated: Ishwaran & James 2001."""

    concentration: float
    default_learner = VariationalBayes()

    def _lacks_mode(self) -> str:
        below = isinstance(self.concentration, Real) and 0.0 < float(self.concentration) < 1.0
        return f"concentration={self.concentration}" if below else super()._lacks_mode()

    def weights_family(self) -> Family:
        return StickBreaking(self.n_components, self.concentration)

    def starts(self) -> Mapping[str, Start]:
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
        weights = corpus.known.weights
        single = clone(self).set_params(n_components=1).make_core(corpus.x, weights)
        # from here on the start is known: there is nothing to try several times
        once = self._learner.set_params(n_init=1)
        while self.verdict_ is not Verdict.STOPPED and not interrupt.asked():
            merger = ClassMerger(core, single.emission.family, corpus, self._posterior(corpus.x))
            responsibilities = merger.merge()
            if responsibilities is None:
                break
            weighted = responsibilities * weights[:, None]
            order = np.argsort(-weighted.sum(axis=0), kind="stable")
            rng = np.random.default_rng(0)
            start = core.from_responsibilities(corpus.x, weighted[:, order], rng)
            found = self._run(core, corpus, once, start, 0, options)
            old, new = self.trace_.objective[-1], found.trace.objective[-1]
            if not new - old > RISE * abs(old):  # learning tore the classes apart again
                break
            whole = self.trace_.then(found.trace)
            self._keep_fit(core, corpus, replace(found, trace=whole, traces=(whole,)))
        return self

    def _after_fit(self, corpus: Items) -> None:
        super()._after_fit(corpus)
        self.n_classes_ = len(np.unique(self.labels_))


def _largest_first(start: Start) -> Start:
    """The same start, its classes sorted by size, as sticks expect them (Kurihara et al. 2007)."""

    def sort(core: MixtureCore, items: Items, rng: Generator) -> Params:
        params = start(core, items, rng)
        weights, table = params["weights"], params[core.emission.table]
        order = np.argsort(-weights.reshape(-1), kind="stable")
        classes = table.reshape(len(order), -1)  # of a Bernoulli mixture: words × 2 in each
        return {
            "weights": weights[:, order],
            core.emission.table: classes[order].reshape(table.shape),
        }

    return sort


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
