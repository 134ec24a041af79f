"""Dirichlet process mixtures, which infer the number of classes, and merge moves between classes.

Two classes that share their documents evenly are a fixed point of variational Bayes, even if the
bound would be higher with a single class. So pairs of classes are merged if that raises the bound
(merge moves: Ueda et al. 2000; for Dirichlet processes Hughes & Sudderth 2013).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Self, TypeVar, Unpack

import numpy as np
from numpy.random import Generator
from scipy.special import xlogy

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError
from softcount.core.estimator import FitOptions, RunOptions
from softcount.core.fit import open_session
from softcount.core.types import EStep, FloatArray, Params, Stats
from softcount.core.verdict import Verdict
from softcount.engines.blocks import Addable, tree_sum
from softcount.families import StickBreaking
from softcount.families.base import Family
from softcount.learners.named import VariationalBayes
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import MixtureCorpus, OnDisk, sum_parts
from softcount.mixture.documents import MultinomialMixture
from softcount.mixture.parameters import (
    DirichletProcessGaussianMixtureParameters,
    DirichletProcessMixtureParameters,
)
from softcount.mixture.points import GaussianMixture
from softcount.mixture.starts import Start

T = TypeVar("T", bound=Addable)

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


Merged = int | tuple["Merged", "Merged"]
"""A class, or the two that it was merged from."""


class ClassMerger:
    """Merge moves: merges classes of a variational posterior, pair by pair.

    For fixed responsibilities r the best bound is Σ evidence(counts of r) + entropy(r).

    ``single``            the emission family of a single class
    ``responsibilities``  function that yields r of each shard, (items, classes), as they were
                          before any merge; they are gone through once for each merge
    """

    def __init__(
        self,
        core: MixtureCore,
        single: Family,
        items: MixtureCorpus,
        responsibilities: Callable[[], Iterable[FloatArray]],
    ) -> None:
        self.single, self.weights_family = single, core.families["weights"]
        self.items, self.item_weights = items, items.known.weights
        self.responsibilities = responsibilities
        table = core.emission.table

        def count(where: slice, x: Any, r: FloatArray) -> Stats:
            weights = self.item_weights[where]
            counts = core.counts(x, r * weights[:, None])[table]
            return Stats({"counts": counts, "sizes": weights @ r})

        totals = self._sum(count).counts
        shape = single.zeros().shape
        parts = np.split(np.asarray(totals["counts"]), core.n_classes)
        self.tables = [part.reshape(shape) for part in parts]
        self.sizes = np.asarray(totals["sizes"])
        self.alive = set(np.flatnonzero(self.sizes >= MIN_SIZE).tolist())
        self.merged: dict[int, Merged] = {k: k for k in range(core.n_classes)}
        """What each class consists of; what has been merged into another is missing."""
        entropies = self._entropies([self.merged[k] for k in sorted(self.alive)])
        # contributions to the bound, without those of the classes' weights
        self.values = {
            k: evidence(self.single, self.tables[k]) + float(entropy)
            for k, entropy in zip(sorted(self.alive), entropies, strict=True)
        }
        self.values_of_pairs: dict[tuple[int, int], float] = {}

    def _sum(self, function: Callable[[slice, Any, FloatArray], T]) -> T:
        """Sum what a function of a shard's place, observations and r returns."""
        rows = iter(self.responsibilities())
        return sum_parts(self.items.x, lambda where, part: function(where, part, next(rows)))

    def _entropies(self, classes: Sequence[Merged]) -> FloatArray:
        """Return the contribution of each class to the entropy of r, (classes,)."""
        if not classes:
            return np.zeros(0)

        def sum_up(where: slice, x: Any, r: FloatArray) -> FloatArray:
            weights, columns = self.item_weights[where], (add_columns(r, each) for each in classes)
            return np.array([-float(weights @ xlogy(column, column)) for column in columns])

        return self._sum(sum_up)

    def merge(self) -> Callable[[FloatArray], FloatArray] | None:
        """Merge pairs of classes greedily, the largest gain first, while the bound rises.

        Returns a function that merges the columns of r, in which the columns of classes that are
        merged into another are 0; None if no merge raises the bound.
        """
        # only pairs of similar classes: there are too many pairs to try them all
        gains = self._gains({pair for k in self.alive for pair in self._pairs_with(k)})
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
            self.values[i] = self.values_of_pairs[pair]
            self.sizes = sizes
            self.tables[i] = self.tables[i] + self.tables[j]
            self.tables[j] = np.zeros_like(self.tables[j])
            self.merged[i] = (self.merged[i], self.merged.pop(j))
            self.alive.remove(j)
            changed = True
            gains = {other: gain for other, gain in gains.items() if not set(other) & set(pair)}
            gains |= self._gains(self._pairs_with(i))
        return partial(merge_columns, self.merged) if changed else None

    def _pairs_with(self, k: int) -> list[tuple[int, int]]:
        """Return the pairs of class k with its nearest classes, by the means of their items."""
        others = np.array(sorted(self.alive - {k}), np.int64)
        mean = self.tables[k] / self.sizes[k]
        distances = [float(np.square(self.tables[j] / self.sizes[j] - mean).sum()) for j in others]
        nearest = others[np.argsort(distances, kind="stable")[:N_NEAREST]].tolist()
        return [(min(k, j), max(k, j)) for j in nearest]

    def _gains(self, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], float]:
        """Return the gain of the bound if the classes of each pair are merged, without that of
        their weights."""
        entropies = self._entropies([(self.merged[i], self.merged[j]) for i, j in pairs])
        gains = {}
        for (i, j), entropy in zip(pairs, entropies, strict=True):
            value = evidence(self.single, self.tables[i] + self.tables[j]) + float(entropy)
            self.values_of_pairs[i, j] = value
            gains[i, j] = value - self.values[i] - self.values[j]
        return gains

    def _evidence_of_sizes(self, sizes: FloatArray) -> float:
        return evidence(self.weights_family, -np.sort(-sizes)[None])


def add_columns(r: FloatArray, merged: Merged) -> FloatArray:
    """Return the responsibilities of a merged class, (items,), added as they were merged."""
    if isinstance(merged, tuple):
        return add_columns(r, merged[0]) + add_columns(r, merged[1])
    column: FloatArray = r[:, merged]
    return column


def merge_columns(merged: Mapping[int, Merged], r: FloatArray) -> FloatArray:
    """Return the responsibilities of all classes after merges, (items, classes)."""
    rows = np.zeros_like(r)
    for k, parts in merged.items():
        rows[:, k] = add_columns(r, parts)
    return rows


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
        self, core: MixtureCore, corpus: MixtureCorpus, init: Any, **options: Unpack[FitOptions]
    ) -> Self:
        """Fit; then, after variational Bayes, merge classes and refit while the bound rises.

        The trace continues, too: the first step after a merge is `State.restarted`.
        """
        keep_posteriors = options.pop("keep_posteriors", False)
        if keep_posteriors:
            options["keep_params"] = True
        super()._learn(core, corpus, init, **options)
        self._learn_merged(core, corpus, options)
        if keep_posteriors:
            self._keep_posteriors(corpus)
        return self

    def _learn_merged(self, core: MixtureCore, corpus: MixtureCorpus, options: RunOptions) -> None:
        """Merge classes and refit while the bound rises."""
        if self._learner.m != "mean_field":
            return
        alone = self._unfitted().set_params(n_components=1)
        single = alone.make_core(corpus.x, corpus.known.weights)
        # from here on the initial parameters are fixed, so that restarts would all be the same
        once = self._learner.set_params(n_init=1)
        while self.verdict_ is not Verdict.STOPPED and not interrupt.asked():
            posteriors = self._posteriors_of(corpus)
            merge = ClassMerger(core, single.emission.family, corpus, posteriors).merge()
            if merge is None:
                break
            start = self._start_merged(core, corpus, merge, posteriors)
            refit = self._run(core, corpus, once, start, 0, options)
            old, new = self.trace_.objective[-1], refit.trace.objective[-1]
            if not new - old > MIN_RISE * abs(old):  # learning has split the classes again
                break
            trace = self.trace_.then(refit.trace)
            self._keep_fit(core, corpus, replace(refit, trace=trace, traces=(trace,)))

    def _posteriors_of(self, corpus: MixtureCorpus) -> Callable[[], Iterable[FloatArray]]:
        """Return a function that yields the posteriors of each shard.

        Those of items on disk are computed anew each time, as they may not fit into memory.
        """
        if isinstance(corpus.x, OnDisk):
            return partial(self._each, self.core_.posteriors, corpus.x)
        kept = list(self._each(self.core_.posteriors, corpus.x))
        return lambda: kept

    def _start_merged(
        self,
        core: MixtureCore,
        corpus: MixtureCorpus,
        merge: Callable[[FloatArray], FloatArray],
        posteriors: Callable[[], Iterable[FloatArray]],
    ) -> Params:
        """Return parameters fitted to merged classes, the largest first."""
        x, weights = corpus.x, corpus.known.weights
        borders = [slice(*run) for run in x.cut()]

        def weighted() -> Iterator[FloatArray]:
            for some, r in zip(borders, posteriors(), strict=True):
                yield merge(r) * weights[some, None]

        order = np.argsort(-tree_sum(rows.sum(axis=0) for rows in weighted()), kind="stable")
        rows = weighted()
        rng = np.random.default_rng(0)
        return core.from_responsibilities(x, lambda some: next(rows)[:, order], rng)

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        super()._after_fit(corpus)
        self.n_classes_ = len(np.unique(self.labels_))

    def n_classes_posterior(self, X: Any = None) -> dict[int, float]:
        """Return the posterior over the number of classes, from the kept draws of a sampler.

        Each draw has so many classes with at least one item; the proportions of draws are those of
        the posterior p(number of classes | data).

        ``X``  the training data, of which `Gibbs` draws the classes anew; `CollapsedGibbs` has
               counted them, and needs no data

        >>> from softcount import CollapsedGibbs
        >>> texts = ["a b a", "b a b", "c d d", "d c c", "e f f", "f e e"] * 4
        >>> model = DirichletProcessMixture(10, learner=CollapsedGibbs()).fit(texts)
        >>> max(model.n_classes_posterior().items(), key=lambda pair: pair[1])[0]
        3
        """
        draws = [draw for chain in self._get_fit().draws for draw in chain]
        if not draws:
            raise LearnerError(
                f"{self._learner} draws no samples", "fit with CollapsedGibbs() or Gibbs()"
            )
        if self._learner.schedule.collapses:
            numbers = [self._count_occupied(draw) for draw in draws]
        elif X is None:
            raise DataError("Gibbs() draws parameters, not classes", "give the training data")
        else:
            corpus = self._bind_more(self.core_, X)
            numbers = []
            for n, draw in enumerate(draws):
                how = EStep(fill="sample", stream=n)
                with open_session(self.core_, corpus, self.engine) as session:
                    counts = session.expect(self.core_.expect, draw, how).counts["weights"]
                numbers.append(int(np.count_nonzero(np.asarray(counts) > 0.0)))
        shares = Counter(numbers)
        return {k: shares[k] / len(draws) for k in sorted(shares)}

    def _count_occupied(self, params: Params) -> int:
        """Count the classes whose mean E[θ | x, z] is not that of an empty class."""
        family, table = self.core_.emission.family, params[self.core_.emission.table]
        empty = family.mean(family.zeros(), table)
        differs = np.abs(np.asarray(table) - empty) > 1e-12 * np.abs(empty)
        return int(np.count_nonzero(differs.reshape(self.n_components, -1).any(axis=1)))


def _largest_first(start: Start) -> Start:
    """Return the same initialisation with classes sorted by size, largest first, as the
    stick-breaking prior expects them (Kurihara et al. 2007)."""

    def sort(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
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
