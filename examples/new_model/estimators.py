"""`PoissonMixture`: what users call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from examples.new_model.core import CountCorpus, PoissonMixtureCore
from examples.new_model.parameters import PoissonMixtureParameters
from softcount.core.errors import DataError
from softcount.core.estimator import Estimator
from softcount.core.types import FloatArray, IntArray, Params


class PoissonMixture(PoissonMixtureParameters, Estimator):
    """A mixture of Poissons: every count comes from one of a few classes, each with its own rate.

    ``n_components``  how many classes
    ``smoothing``     so many items of rate 1 are added to every class
    ``learner``, ``max_iter``, ``tol``, ``n_init``, ``init``, ``engine``, ``random_state``
                      as everywhere: see `softcount.core.estimator.Estimator`

    >>> model = PoissonMixture(2, n_init=5).fit([0, 1, 0, 2, 1, 9, 11, 8, 10, 12])
    >>> sorted(model.rates_.round(1).tolist())
    [0.8, 10.0]
    """

    def _bind(self, data: Any) -> tuple[PoissonMixtureCore, CountCorpus]:
        return PoissonMixtureCore(self.n_components, self.smoothing), self._bind_more(None, data)

    def _bind_more(self, core: Any, data: Any) -> CountCorpus:
        counts = np.asarray(data, dtype=np.float64)
        if counts.ndim != 1 or (counts < 0).any() or (counts != np.floor(counts)).any():
            raise DataError("items must be counts: whole numbers from 0 on", "one for each item")
        return CountCorpus(counts)

    def _start_values(
        self, core: PoissonMixtureCore, corpus: CountCorpus, init: Any
    ) -> Params | Callable[[np.random.Generator], Params]:
        if init is not None:
            return core.params(init)

        def start(rng: np.random.Generator) -> Params:
            """Even weights; the rates are the values of some items, shaken."""
            rates = rng.choice(corpus.counts, self.n_components) + rng.gamma(1.0, 1.0)
            rates = rates * rng.uniform(0.9, 1.1, self.n_components)
            return {
                "weights": core.families["weights"].uniform(),
                "rates": np.repeat(rates[:, None], 2, axis=1),
            }

        return start

    @property
    def rates_(self) -> FloatArray:
        """The rate of each class, (classes,)."""
        self._require_fit()
        rates: FloatArray = self.raw_params_["rates"][:, 1]
        return rates

    def predict_proba(self, data: Any) -> FloatArray:
        """p(class | item), (items, classes)."""
        self._require_fit()
        joint = self.core_.log_joint(self.raw_params_, self._bind_more(None, data).counts)
        weights = np.exp(joint - joint.max(axis=1, keepdims=True))
        posteriors: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return posteriors

    def predict(self, data: Any) -> IntArray:
        """The most probable class of each item, (items,)."""
        classes: IntArray = self.predict_proba(data).argmax(axis=1)
        return classes
