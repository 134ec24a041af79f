"""Dirichlet process mixtures, which infer the number of classes, and merge moves between classes.

Two classes that share their documents evenly are a fixed point of variational Bayes, even if the
bound would be higher with a single class. So pairs of classes are merged if that raises the bound
(merge moves: Ueda et al. 2000; for Dirichlet processes Hughes & Sudderth 2013).
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

N_NEAREST = 10
"""Number of nearest other classes with which merging a class is tried."""
MIN_SIZE = 1e-3
"""A class whose expected number of items is below this is empty, and is not merged."""
MIN_RISE = 1e-6
"""Minimum relative increase of the bound for another round of merges."""


def evidence(family: Family, counts: FloatArray) -> float:
    """Return log ∫ p(θ) θ^counts dθ = E_q[⟨counts, log θ⟩] − KL(q ‖ p), q being the posterior."""
    params = family.mean_field(counts, family.uniform(), np.random.default_rng(0))
    return family.expected_log(counts, params) - family.divergence(counts, params)


class ClassMerger:
    """Merge moves: merges classes of a variational posterior, pair by pair.

    For fixed responsibilities r the best bound is Σ evidence(counts of r) + entropy(r).

    ``single``            the emission family of a single class
    ``responsibilities``  r, (items, classes); after a merge one column holds the sum, the other 0
    """

    def __init__(
        self, core: MixtureCore, single: Family, items: Items, responsibilities: FloatArray
    ) -> None:
        self.single, self.weights_family = single, core.families["weights"]
        self.item_weights = items.known.weights
        self.responsibilities = responsibilities.copy()
        weighted = responsibilities * self.item_weights[:, None]
        counts = np.asarray(core.counts(items.x, weighted)[core.emission.table])
        shape = single.zeros().shape
        self.tables = [table.reshape(shape) for table in np.split(counts, core.n_classes)]
        self.sizes = self.item_weights @ responsibilities
        self.alive = set(np.flatnonzero(self.sizes >= MIN_SIZE).tolist())
        self.values = {k: self._value(self.tables[k], responsibilities[:, k]) for k in self.alive}

    def merge(self) -> FloatArray | None:
        """Merge pairs of classes greedily, the largest gain first, while the bound rises.

        Returns the responsibilities after all merges; None if no merge raises the bound.
        """
        # only pairs of similar classes: there are too many pairs to try them all
        candidates = {pair for k in self.alive for pair in self._pairs_with(k)}
        gains = {pair: self._gain(pair) for pair in candidates}
        changed = False
        while gains:
            i, j = pair = max(gains, key=lambda candidate: gains[candidate])
            sizes = self.sizes.copy()
            sizes[i], sizes[j] = sizes[i] + sizes[j], 0.0
            # the prior of the weights favours fewer classes: its contribution to the gain
            weight_gain = self._evidence_of_sizes(sizes) - self._evidence_of_sizes(self.sizes)
            if gains[pair] + weight_gain <= 0.0:
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
            gains = {other: gain for other, gain in gains.items() if not set(other) & set(pair)}
            gains |= {other: self._gain(other) for other in self._pairs_with(i)}
        return self.responsibilities if changed else None

    def _pairs_with(self, k: int) -> list[tuple[int, int]]:
        """Return the pairs of class k with its nearest classes, by the means of their items."""
        others = np.array(sorted(self.alive - {k}), np.int64)
        mean = self.tables[k] / self.sizes[k]
        distances = [float(np.square(self.tables[j] / self.sizes[j] - mean).sum()) for j in others]
        nearest = others[np.argsort(distances, kind="stable")[:N_NEAREST]].tolist()
        return [(min(k, j), max(k, j)) for j in nearest]

    def _value(self, table: FloatArray, responsibilities: FloatArray) -> float:
        """Return the contribution of a class to the bound, without that of its weight."""
        entropy = -float(self.item_weights @ xlogy(responsibilities, responsibilities))
        return evidence(self.single, table) + entropy

    def _gain(self, pair: tuple[int, int]) -> float:
        """Return the gain of the bound if two classes are merged, without that of their weights."""
        i, j = pair
        merged = self._value(
            self.tables[i] + self.tables[j], self.responsibilities[:, pair].sum(axis=1)
        )
        return merged - self.values[i] - self.values[j]

    def _evidence_of_sizes(self, sizes: FloatArray) -> float:
        return evidence(self.weights_family, -np.sort(-sizes)[None])


class DirichletProcess(Clusterer):
    """Base of Dirichlet process mixtures: class weights have a truncated stick-breaking prior.

    (Stick-breaking: Sethuraman 1994; truncated: Ishwaran & James 2001.)
    """

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
        """Fit; then, after variational Bayes, merge classes and refit while the bound rises.

        The trace continues, too: the first step after a merge is `State.restarted`.
        """
        super()._learn(core, corpus, init, **options)
        if self._learner.m != "mean_field":
            return self
        weights = corpus.known.weights
        single = clone(self).set_params(n_components=1).make_core(corpus.x, weights)
        # from here on the initial parameters are fixed, so that restarts would all be the same
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
            refit = self._run(core, corpus, once, start, 0, options)
            old, new = self.trace_.objective[-1], refit.trace.objective[-1]
            if not new - old > MIN_RISE * abs(old):  # learning has split the classes again
                break
            trace = self.trace_.then(refit.trace)
            self._keep_fit(core, corpus, replace(refit, trace=trace, traces=(trace,)))
        return self

    def _after_fit(self, corpus: Items) -> None:
        super()._after_fit(corpus)
        self.n_classes_ = len(np.unique(self.labels_))


def _largest_first(start: Start) -> Start:
    """Return the same initialisation with classes sorted by size, largest first, as the
    stick-breaking prior expects them (Kurihara et al. 2007)."""

    def sort(core: MixtureCore, items: Items, rng: Generator) -> Params:
        params = start(core, items, rng)
        weights, table = params["weights"], params[core.emission.table]
        order = np.argsort(-weights.reshape(-1), kind="stable")
        classes = table.reshape(len(order), -1)  # a Bernoulli mixture has (words, 2) in each class
        return {
            "weights": weights[:, order],
            core.emission.table: classes[order].reshape(table.shape),
        }

    return sort


class DirichletProcessMixture(
    DirichletProcessMixtureParameters, DirichletProcess, MultinomialMixture
):
    """A Dirichlet process mixture of multinomials: infers the number of classes from the data.

    Learned by variational Bayes truncated at ``n_components`` classes (Blei & Jordan 2006), or by
    `CollapsedGibbs`, which samples a Chinese restaurant process (Neal 2000).

    ``n_components``   maximum number of classes: choose more than you expect
    ``concentration``  concentration of the process; larger values give more classes
    ``smoothing``      Dirichlet concentration of the words of a class
    ``init``, …        see `MultinomialMixture`

    After `fit`: ``n_classes_``, the number of classes that are the most probable one of at least
    one document.

    >>> texts = ["a b a", "b a b", "c d d", "d c c", "e f f", "f e e"] * 4
    >>> DirichletProcessMixture(10).fit(texts).n_classes_
    3
    """


class DirichletProcessGaussianMixture(
    DirichletProcessGaussianMixtureParameters, DirichletProcess, GaussianMixture
):
    """A Dirichlet process mixture of Gaussians: infers the number of classes from the data.

    Learned by variational Bayes truncated at ``n_components`` classes. After `fit`:
    ``n_classes_``, the number of classes that are the most probable one of at least one point.

    ``n_components``   maximum number of classes: choose more than you expect
    ``concentration``  concentration of the process; larger values give more classes
    ``covariance``, …  see `GaussianMixture`

    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 40, axis=0)
    >>> points += rng.normal(size=points.shape)
    >>> DirichletProcessGaussianMixture(10).fit(points).n_classes_
    3
    """
