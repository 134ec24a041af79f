"""What all mixtures offer: learn, assign, score, generate, count their parameters, be saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self, Unpack

import numpy as np
from numpy.random import Generator
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import _check_sample_weight

from softcount.core import store
from softcount.core.bounds import MAX_WEIGHT, within_range, without_dust
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.store import AGAIN
from softcount.core.types import Array, FloatArray, IntArray
from softcount.core.warnings import warn_of_ignored
from softcount.kernels.posterior import soft
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import ClassConstraints, Items, Observations
from softcount.mixture.starts import Start

FLOOR = 1e-300
"""No probability is below this when classes are compared: then the class with the fewest
impossible words is the best, instead of none."""

WEIGHTS = "a weight says how often an item is to count"


class Mixture(store.Saveable, Estimator, BaseEstimator):  # type: ignore[misc]
    """A mixture as an estimator; a subclass says how data are read and what a class emits."""

    core_: MixtureCore
    n_features_in_: int
    max_weight = MAX_WEIGHT
    """How much an item may weigh."""

    # what subclasses say
    @abstractmethod
    def observe(self, X: Any, *, first: bool) -> Observations:
        """Data as users give them, read; ``first``: these data say what to expect of others."""

    @abstractmethod
    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        """The core for such observations, of such weights."""

    @abstractmethod
    def starts(self) -> Mapping[str, Start]:
        """Starts by name: functions (core, items, rng) → parameters."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """How many classes there are, hidden components included."""

    def place(self, x: Any, weights: FloatArray | None) -> Any:
        """The first observations, put where others will be, now that their weights are known."""
        return x

    # learning
    def _bind_more(self, core: MixtureCore, X: Any) -> Items:
        x = self.observe(X, first=False)
        return Items(x, ClassConstraints.nothing(len(x), core.n_classes), core.emission.cut)

    def _weights(self, given: Any, x: Observations) -> FloatArray | None:
        if given is None:
            return None
        with within_range("sample_weight"):
            weights: FloatArray = _check_sample_weight(
                given, np.empty((len(x), 1)), dtype=np.float64
            )
        weights = without_dust(weights, "sample_weight", WEIGHTS, self.max_weight)
        if not weights.any():
            raise DataError("sample_weight must not be zero everywhere", WEIGHTS)
        return weights

    def _start_values(self, core: MixtureCore, corpus: Items, init: Any) -> Any:
        starts = self.starts()
        if isinstance(init, str) and init in starts:
            chosen = starts[init]
            return lambda rng: chosen(core, corpus, rng)
        if isinstance(init, Mapping):
            return self._read_params(core, corpus, init)
        raise LearnerError(
            f"init={init!r} is not known here",
            f"choose one of {', '.join(starts)}, or give a mapping of tables",
        )

    # what was learned
    @property
    def weights_(self) -> FloatArray:
        """How common each class is."""
        self._require_fit()
        weights: FloatArray = self.raw_params_["weights"].reshape(-1)
        return weights

    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; they may be given back as ``init``."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    @property
    def n_parameters_(self) -> int:
        """How many numbers were free to be chosen."""
        self._require_fit()
        return sum(family.n_free for family in self.core_.families.values())

    # what it says of data
    def _seen(self, X: Any) -> Observations:
        self._require_fit()
        return self.observe(X, first=False)

    def _joint(self, x: Observations, floor: float = FLOOR) -> FloatArray:
        """log p(class, item), (items, classes)."""
        return self.core_.joint(self.raw_params_, x, floor=floor)

    def _infer(self, x: Observations, floor: float = FLOOR) -> tuple[FloatArray, FloatArray]:
        """p(class | item), (items, classes), and log p(item), (items,)."""
        joint = self._joint(x, floor)
        responsibilities = np.empty_like(joint)
        free = ClassConstraints.nothing(len(x), self.core_.n_classes)
        logs = soft(joint, free.lower, free.upper, 1.0, responsibilities)
        return responsibilities, logs

    def _posterior(self, x: Observations) -> FloatArray:
        return self._infer(x)[0]

    def _log_likelihoods(self, x: Observations) -> FloatArray:
        return self._infer(x, floor=0.0)[1]

    def score_samples(self, X: Any) -> FloatArray:
        """log p(x) of each item; −inf for what the model holds impossible."""
        return self._log_likelihoods(self._seen(X))

    # new data
    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """New items, drawn from the model."""
        self._require_fit()
        rng = np.random.default_rng(random_state)
        weights = self.weights_ / self.weights_.sum()
        return self._generate(rng.choice(len(weights), size=n, p=weights), rng)

    @abstractmethod
    def _generate(self, classes: IntArray, rng: Generator) -> Any:
        """New items of these classes."""

    # files
    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> MixtureCore:
        nothing = self.recall(stored, given)
        if stored.arrays[store.TABLE + "weights"].size != self.n_classes:
            raise StoreError(
                f"the settings speak of {self.n_classes} classes, the tables not", AGAIN
            )
        return self.make_core(nothing)

    @abstractmethod
    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Observations:
        """Take back what `stored` wrote; gives no items, of the form the training data had."""


class Clusterer(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    Mixture,
):
    """A mixture learned without labels."""

    n_components: int
    labels_: IntArray
    """The likeliest class of each item learned from."""
    for_labels = (
        "NaiveBayes learns from documents of which some have a label (-1 where it is unknown)"
    )
    """What learns from labels, where this does not."""

    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from documents or points; ``y`` is not looked at, and warned of if there is any.

        ``sample_weight``  how much each item counts
        ``init``           start values, instead of what the model was made with

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        warn_of_ignored(self, y, self.for_labels)
        with all_or_nothing(self):
            core, corpus = self._bind(X, sample_weight)
            return self._learn(core, corpus, init, **options)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Learn, and give what `transform` gives; in a pipeline ``y`` is for a later step."""
        return self.fit(X, **options).transform(X)

    def _bind(self, X: Any, sample_weight: Any = None) -> tuple[MixtureCore, Items]:
        """The core and the corpus."""
        self._check_settings()
        x = self.observe(X, first=True)
        weights = self._weights(sample_weight, x)
        x = self.place(x, weights)
        core = self.make_core(x, weights)
        known = ClassConstraints.nothing(len(x), core.n_classes, weights)
        return core, Items(x, known, core.emission.cut)

    def _after_fit(self, corpus: Items) -> None:
        self.labels_ = self._joint(corpus.x).argmax(axis=1)
        self.n_iter_ = len(self.fit_.trace) - 1

    def predict(self, X: Any) -> IntArray:
        """The likeliest class of each item."""
        classes: IntArray = self._joint(self._seen(X)).argmax(axis=1)
        return classes

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Learn, and give each item's likeliest class."""
        warn_of_ignored(self, y, self.for_labels)
        return self.fit(X, None, sample_weight).labels_

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class for each item, (items, classes)."""
        return self._posterior(self._seen(X))

    @property
    def n_classes(self) -> int:
        return self.n_components

    @property
    def _n_features_out(self) -> int:  # for get_feature_names_out
        return self.n_classes

    def transform(self, X: Any) -> FloatArray:
        """The same as `predict_proba`: items as points in the space of classes."""
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log p(x) over the items."""
        return float(np.mean(self.score_samples(X)))

    # how good a number of classes is
    def aic(self, X: Any) -> float:
        """Akaike's criterion, 2p − 2 log L; the smaller the better."""
        return -2.0 * float(self.score_samples(X).sum()) + 2.0 * self.n_parameters_

    def bic(self, X: Any) -> float:
        """Schwarz's criterion, p log n − 2 log L; the smaller the better."""
        logs = self.score_samples(X)
        return -2.0 * float(logs.sum()) + float(np.log(len(logs))) * self.n_parameters_

    def icl(self, X: Any) -> float:
        """BIC plus twice the entropy of the classes (Biernacki, Celeux & Govaert 2000)."""
        r = self._posterior(self._seen(X))
        entropy = -np.sum(r * np.log(np.where(r > 0.0, r, 1.0)))
        return self.bic(X) + 2.0 * float(entropy)
