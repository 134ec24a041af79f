"""Mixtures that choose the number of their classes: Dirichlet processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from sklearn.base import clone

from softcount import interrupt
from softcount.families import StickBreaking
from softcount.families.base import Family
from softcount.families.gaussian import NIW
from softcount.models.base import FitOptions
from softcount.models.mixture.base import Clusterer
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.items import Items
from softcount.models.mixture.merge import joined
from softcount.models.mixture.points import Covariance, GaussianMixture
from softcount.models.mixture.words import MultinomialMixture
from softcount.models.settings import check_number
from softcount.types import Array, Params
from softcount.verdict import Verdict

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


RISE = 1e-6
"""Part of its size by which the bound must rise for classes to be joined once more."""


class _Process(Clusterer):
    """Weights by breaking a stick: Sethuraman 1994; truncated: Ishwaran & James 2001."""

    concentration: float
    usual = "VariationalBayes"

    def lacks_mode(self) -> str:
        below = isinstance(self.concentration, Real) and 0.0 < float(self.concentration) < 1.0
        return f"concentration={self.concentration}" if below else super().lacks_mode()

    def weights_family(self) -> Family:
        hint = "1 is usual; the larger, the more classes"
        check_number("concentration", self.concentration, hint, above=True)
        return StickBreaking(self.n_components, self.concentration)

    def starts(self) -> Mapping[str, Any]:
        offered = super().starts()  # type: ignore[safe-super]  # the other base class has them
        return {name: _largest_first(start) for name, start in offered.items()}

    @interrupt.graceful()
    def learn(
        self, core: MixtureCore, corpus: Items, init: Any, **options: Unpack[FitOptions]
    ) -> Self:
        """Learn; then, after variational Bayes, join classes and go on from there while it pays.

        The trace is that of the last round.
        """
        super().learn(core, corpus, init, **options)
        if self.learner is not None and self.learner.m != "mean_field":
            return self
        single = self._one_class(corpus)
        # from here on the start is known: there is nothing to try several times
        once = self.learner and replace(self.learner, n_init=1)
        while self.verdict_ is not Verdict.STOPPED and not interrupt.asked():
            shares = joined(core, single, corpus, self._posterior(corpus.x))
            if shares is None:
                break
            start = self._start_from(core, corpus, shares)
            found = self._run(core, corpus, once, start, 0, options)
            old, new = self.trace_.objective[-1], found.trace.objective[-1]
            if not new - old > RISE * abs(old):  # learning tore the classes apart again
                break
            self.keep(core, corpus, found)
        return self

    def _one_class(self, corpus: Items) -> Family:
        """What one class emits, by itself."""
        core = clone(self).set_params(n_components=1).make_core(corpus.x, corpus.known.weights)
        family: Family = core.emission.family
        return family

    def _start_from(self, core: MixtureCore, corpus: Items, shares: Array) -> Params:
        weighted = shares * corpus.known.weights[:, None]
        order = np.argsort(-weighted.sum(axis=0), kind="stable")
        return core.from_shares(corpus.x, weighted[:, order], np.random.default_rng(0))

    def remember(self, corpus: Items) -> None:
        super().remember(corpus)
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


class DirichletProcessMixture(_Process, MultinomialMixture):
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

    def __init__(
        self,
        n_components: int = 50,
        *,
        concentration: float = 1.0,
        bernoulli: bool = False,
        smoothing: float = 0.1,
        prior: float | Mapping[str, float] | None = None,
        init: Any = "kmeans",
        scouts: int = 0,
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_components,
            bernoulli=bernoulli,
            smoothing=smoothing,
            prior=prior,
            init=init,
            scouts=scouts,
            vectorizer=vectorizer,
            learner=learner,
            engine=engine,
            random_state=random_state,
        )
        self.concentration = concentration


class DirichletProcessGaussianMixture(_Process, GaussianMixture):
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

    def __init__(
        self,
        n_components: int = 50,
        *,
        concentration: float = 1.0,
        covariance: Covariance = "full",
        floor: float = 1e-6,
        prior: NIW | None = None,
        init: Any = "kmeans",
        scouts: int = 0,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_components,
            covariance=covariance,
            floor=floor,
            prior=prior,
            init=init,
            scouts=scouts,
            learner=learner,
            engine=engine,
            random_state=random_state,
        )
        self.concentration = concentration
