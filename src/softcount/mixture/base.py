"""Base classes of mixture estimators: fit, predict, score, generate, model selection, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, Unpack

import numpy as np
from numpy.random import Generator

from softcount.core import store
from softcount.core.bounds import MAX_WEIGHT, clean_weights, within_range
from softcount.core.contract import NumberedOutputs, as_configured
from softcount.core.display import NamedTables
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.spill import empty_table, read_only
from softcount.core.store import AGAIN
from softcount.core.tilting import Sites
from softcount.core.types import Array, FloatArray, IntArray, PosteriorRows
from softcount.core.warnings import warn_of_ignored
from softcount.engines.blocks import tree_sum
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import MixtureCorpus, Observations, OnDisk
from softcount.mixture.starts import Start

WEIGHTS = "sample_weight is the number of times each item counts"


class Mixture(store.SaveableTables, Estimator):
    """Base of mixture estimators; subclasses define how data are read and the class emissions."""

    core_: MixtureCore
    n_features_in_: int
    max_weight = MAX_WEIGHT
    """Upper limit of an item's weight."""

    # defined by subclasses
    @abstractmethod
    def observe(self, X: Any, *, first: bool) -> Observations:
        """Convert user data to observations.

        ``first``  these are the training data, which define the features of all later data
        """

    @abstractmethod
    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        """Return the core for these observations and their weights."""

    @abstractmethod
    def starts(self) -> Mapping[str, Start]:
        """Return the initialisations by name: functions (core, items, rng) → parameters."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes, hidden components included."""

    def preprocess(self, x: Any, weights: FloatArray | None) -> Any:
        """Transform the training observations once their weights are known (by default, not)."""
        return x

    # learning
    def _bind_more(self, core: MixtureCore, X: Any) -> MixtureCorpus:
        return MixtureCorpus.free(self.observe(X, first=False), core.n_classes)

    def _check_weights(self, sample_weight: Any, x: Observations) -> FloatArray | None:
        """Return valid sample weights, (items,); None if not given."""
        if sample_weight is None:
            return None
        from sklearn.utils.validation import _check_sample_weight

        with within_range("sample_weight"):
            weights: FloatArray = _check_sample_weight(
                sample_weight, np.empty((len(x), 1)), dtype=np.float64
            )
        weights = clean_weights(weights, "sample_weight", WEIGHTS, self.max_weight)
        if not weights.any():
            raise DataError("sample_weight is zero everywhere", WEIGHTS)
        return weights

    def _start_values(self, core: MixtureCore, corpus: MixtureCorpus, init: Any) -> Any:
        starts = self.starts()
        if isinstance(init, str) and init in starts:
            start = starts[init]
            return lambda rng: start(core, corpus, rng)
        if isinstance(init, Mapping):
            return self._read_params(core, corpus, init)
        raise LearnerError(
            f"init={init!r} is not a known initialisation of this model",
            f"choose one of {', '.join(starts)}, or give a mapping of tables",
        )

    def _sites(self, core: MixtureCore, corpus: MixtureCorpus) -> Sites:
        x = corpus.x
        return Sites(
            np.arange(len(corpus) + 1),
            np.asarray(corpus.known.weights),
            self._values(),
            core.n_classes,
            lambda word: self._find_items(x, word),
            site=self._item,
        )

    _item = "item"
    """What messages call an item."""

    def _values(self) -> dict[Any, list[int]]:
        """Return the names of the hidden values, and the numbers of each."""
        return {k: [k] for k in range(self.n_classes)}

    def _find_items(self, x: Any, word: Any) -> IntArray:
        """Return the items that have a word."""
        raise DataError(f"points have no words, such as {word!r}", "give a mask of items as among=")

    # fitted attributes
    @property
    def weights_(self) -> FloatArray:
        """The prior probability π_k of each class, (classes,)."""
        self._require_fit()
        weights: FloatArray = self.raw_params_["weights"].reshape(-1)
        return weights

    @property
    def params_(self) -> NamedTables:
        """The learned tables, by name; can be passed as ``init`` to another fit."""
        self._require_fit()
        tables = {name: np.array(table) for name, table in self.raw_params_.items()}
        return NamedTables(tables, {"weights": ([""], self._class_names), **self._table_names()})

    def _table_names(self) -> dict[str, tuple[Any, ...]]:
        """Return names of rows and columns of the emissions' table."""
        return {}

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        self._require_fit()
        return sum(family.n_free for family in self.core_.families.values())

    # step by step
    @property
    def _class_names(self) -> list[Any]:
        """The names of the classes, hidden components included."""
        return list(range(self.n_classes))

    def _name_hidden(
        self, core: MixtureCore, corpus: MixtureCorpus, rows: PosteriorRows
    ) -> dict[str, Any]:
        items = rows.items.tolist()
        return {"columns": tuple(self._class_names), "index": {"item": items}, "of": "class"}

    # inference
    def _seen(self, X: Any) -> Observations:
        self._require_fit()
        return self.observe(X, first=False)

    def _each(self, function: Callable[..., Array], x: Observations) -> Iterator[Array]:
        """Yield what a method of the core returns for each shard of the observations."""
        return self._map(function, MixtureCorpus.free(x, self.core_.n_classes))

    def _rows(self, function: Callable[..., Array], x: Observations) -> Array:
        """Return what a method of the core returns for each item, (items, …)."""
        rows, done = np.empty(0), 0
        empty = empty_table if isinstance(x, OnDisk) else np.empty
        for part in self._each(function, x):
            if len(part) == len(x):
                return part
            if not done:
                rows = empty((len(x), *part.shape[1:]), part.dtype)
            rows[done : done + len(part)] = part
            done += len(part)
        return read_only(rows)

    def _joint(self, x: Observations) -> FloatArray:
        """Return log p(class, item), (items, classes)."""
        return self._rows(self.core_.joints, x)

    def _classify(self, x: Observations) -> IntArray:
        """Return the number of the most probable class of each item, (items,)."""
        return self._rows(self.core_.classify, x)

    def _posterior(self, x: Observations) -> FloatArray:
        """Return p(class | item), (items, classes)."""
        return self._rows(self.core_.posteriors, x)

    def _log_likelihoods(self, x: Observations) -> FloatArray:
        """Return log p(item), (items,)."""
        return self._rows(self.core_.log_likelihoods, x)

    def score_samples(self, X: Any) -> FloatArray:
        """Return log p(x) of each item; −inf for items of probability zero."""
        return self._log_likelihoods(self._seen(X))

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior of each class for each item, (items, classes)."""

    # new data
    def generate(self, n: int = 1, random_state: Any = 0) -> Any:
        """Draw ``n`` new items from the model."""
        self._require_fit()
        rng = np.random.default_rng(random_state)
        weights = self.weights_ / self.weights_.sum()
        return self._generate(rng.choice(len(weights), size=n, p=weights), rng)

    @abstractmethod
    def _generate(self, classes: IntArray, rng: Generator) -> Any:
        """Draw new items of the given classes."""

    # files
    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> MixtureCore:
        no_items = self.recall(stored, given)
        if stored.arrays[store.TABLE + "weights"].size != self.n_classes:
            raise StoreError(
                f"the settings have {self.n_classes} classes, but the tables do not", AGAIN
            )
        return self.make_core(no_items)

    @abstractmethod
    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Observations:
        """Restore the attributes that `stored` wrote; return an empty set of observations of the
        form of the training data."""


class Clusterer(NumberedOutputs, Mixture):
    """Base of mixtures learned without labels."""

    _mixins = ("ClusterMixin", "TransformerMixin")
    n_components: int
    labels_: IntArray
    """The most probable class of each training item."""
    for_labels = (
        "NaiveBayes learns from documents of which some have a label (-1 where it is unknown)"
    )
    """Hint for users who pass labels: which estimator learns from them."""

    @resumable
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from documents or points; ``y`` is ignored, with a warning if it is given.

        ``sample_weight``  weight of each item, (items,)
        ``init``           initial parameters, overriding those of the constructor

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        warn_of_ignored(self, y, self.for_labels)
        with all_or_nothing(self):
            core, corpus = self._bind(X, sample_weight)
            return self._learn(core, corpus, init, **options)

    @as_configured
    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit, and return `transform` of the data; in a pipeline ``y`` is for a later step."""
        return self.fit(X, **options).transform(X)

    def _bind(self, X: Any, sample_weight: Any = None) -> tuple[MixtureCore, MixtureCorpus]:
        """Return the core and the corpus."""
        self._check_settings()
        x = self.observe(X, first=True)
        weights = self._check_weights(sample_weight, x)
        x = self.preprocess(x, weights)
        core = self.make_core(x, weights)
        return core, MixtureCorpus.free(x, core.n_classes, weights)

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        self.labels_ = self._classify(corpus.x)
        self.n_iter_ = len(self.fit_.trace) - 1

    def predict(self, X: Any) -> IntArray:
        """Return the most probable class of each item."""
        return self._classify(self._seen(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> IntArray:
        """Fit, and return the most probable class of each item."""
        warn_of_ignored(self, y, self.for_labels)
        return self.fit(X, None, sample_weight).labels_

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior of each class for each item, (items, classes)."""
        return self._posterior(self._seen(X))

    @property
    def n_classes(self) -> int:
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        self._require_fit()
        return self.n_classes

    @as_configured
    def transform(self, X: Any) -> FloatArray:
        """Return `predict_proba`: each item as a point in the space of classes."""
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log p(x) over the items."""
        return float(np.mean(self.score_samples(X)))

    # model selection criteria
    def count_parameters(self, count: str = "free") -> int:
        """Return the number of parameters, p.

        ``count``  "free": those that can be chosen, as rows add up to 1: ``n_parameters_``. "all":
                   every number in the tables, as many textbooks print it: K V + K for K classes of
                   documents of V words
        """
        if count not in ("free", "all"):
            raise LearnerError(f"count={count!r} is unknown", "choose 'free' or 'all'")
        if count == "free":
            return self.n_parameters_
        self._require_fit()
        return sum(np.asarray(table).size for table in self.params_.values())

    def aic(self, X: Any, count: str = "free") -> float:
        """Return Akaike's information criterion, 2p − 2 log L; smaller is better.

        ``count``  how parameters are counted: see `count_parameters`
        """
        p = self.count_parameters(count)
        return -2.0 * float(self.score_samples(X).sum()) + 2.0 * p

    def bic(self, X: Any, count: str = "free") -> float:
        """Return the Bayesian (Schwarz's) information criterion, p log n − 2 log L; smaller is
        better. For ``count`` see `aic`."""
        p, logs = self.count_parameters(count), self.score_samples(X)
        return -2.0 * float(logs.sum()) + float(np.log(len(logs))) * p

    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood criterion: BIC plus twice the entropy of the
        posteriors (Biernacki, Celeux & Govaert 2000); smaller is better."""
        parts = self._each(self.core_.posteriors, self._seen(X))
        entropy = tree_sum(-np.sum(r * np.log(np.where(r > 0.0, r, 1.0))) for r in parts)
        return self.bic(X) + 2.0 * float(entropy)
