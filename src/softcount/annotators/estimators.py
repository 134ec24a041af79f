"""Dawid & Skene's model of annotators: hidden true labels, and a confusion matrix per annotator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse

from softcount.annotators import core as starts
from softcount.annotators.core import Voting, read_known
from softcount.annotators.data import Votes, as_array, find_places, read_votes, sorted_classes
from softcount.annotators.parameters import AnnotatorsParameters
from softcount.core import store
from softcount.core.bounds import check_drawable
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.estimator import FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.parameters import mixture_priors, no_mode, no_prior
from softcount.core.store import AGAIN, numbers
from softcount.core.types import Array, FloatArray, IntArray, PosteriorRows
from softcount.families import Categorical
from softcount.kernels.posterior import soft
from softcount.mixture.base import Mixture
from softcount.mixture.core import MixtureCore
from softcount.mixture.data import UNKNOWN, ClassConstraints, Labels, MixtureCorpus
from softcount.mixture.naive_bayes import read_classes
from softcount.mixture.starts import uniform
from softcount.text.bags import Bags

KEPT_SIZES = 10_000
"""Number of items whose numbers of votes are kept, for generating data."""
NAMEABLE = (str, int, float, bool)
"""Types of annotators' names that a model file can hold."""


class SwitchWarning(UserWarning):
    """Warning of label switching: a permutation of the labels would agree better with the votes."""


@dataclass(frozen=True, eq=False)
class VotedItems(MixtureCorpus):
    """Items with names."""

    names: Array

    def name(self, number: int) -> str:
        return f"item {brief(self.names.tolist()[number])}"


class Annotators(AnnotatorsParameters, Mixture):
    """Estimate true labels and annotators' confusion matrices by the model of Dawid & Skene (1979).

    The true label k of an item is hidden, and annotator a votes l with probability θ_akl:

        p(votes of an item) = Σ_k π_k Π_{votes (a, l)} θ_akl

    ``smoothing``  pseudocount added to every cell of each annotator's confusion matrix
    ``prior``      Dirichlet concentration, instead of smoothing (or by table: "weights",
                   "confusion")
    ``init``       initial parameters: 'majority' (proportions of votes), 'known' (from items of
                   known label, and hardly any others: for data where most annotators may be wrong),
                   'random' (half proportions of votes, half random), 'uniform', or tables
                   {"weights": …, "confusion": …}
    ``learner``, ``max_iter``, ``tol``, ``n_init``, ``engine``, ``random_state``  learning
                   algorithm, parallelism and seed: see `softcount.core.estimator.Estimator`

    Votes are triples (item, annotator, label), a tuple of three columns, a data frame with columns
    item, annotator and label, a mapping {item: {annotator: label}}, or an array items × annotators.
    A label of −1, None or NaN is no vote. An annotator may vote several times on an item.

    Attributes after ``fit``: ``items_`` and ``annotators_`` in order of first appearance,
    ``classes_`` sorted; ``labels_`` and ``proba_`` of the items; ``weights_`` of the classes;
    ``confusion_`` (annotators, true, said), ``accuracy_`` and ``n_votes_`` of the annotators. Among
    equally probable labels the first of ``classes_`` is chosen. An item without votes gets the
    class weights.

    >>> votes = [("s1", "ann", "yes"), ("s1", "bob", "yes"), ("s1", "eve", "no"),
    ...          ("s2", "ann", "no"), ("s2", "bob", "no"), ("s2", "eve", "yes"),
    ...          ("s3", "ann", "yes"), ("s3", "eve", "no")]
    >>> model = Annotators().fit(votes)
    >>> dict(zip(model.items_.tolist(), model.labels_.tolist()))
    {'s1': 'yes', 's2': 'no', 's3': 'yes'}
    >>> round(model.confusion_of("eve")["yes"]["no"], 2)
    0.95
    """

    classes_: Array
    items_: Array
    annotators_: Array
    labels_: Array
    proba_: FloatArray  # (items, classes)
    n_votes_: IntArray  # (annotators,)
    _sizes: FloatArray
    """Numbers of votes per item, of a sample of the training items."""

    # learning
    @resumable
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self, votes: Any, y: Any = None, *, init: Any = None, **options: Unpack[FitOptions]
    ) -> Self:
        """Fit to votes, and to true labels as far as they are known.

        ``y``     a label for each item, in order of first appearance (−1, None: unknown); or a
                  mapping {item: label}, of which items without votes are left out
        ``init``  initial parameters, instead of those given to the constructor

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(votes, y)
            self._learn(core, corpus, init, **options)
        if y is None:
            self._warn_of_switch(corpus)
        return self

    def _bind(self, votes: Any, y: Any = None) -> tuple[MixtureCore, MixtureCorpus]:
        """Return the model core and the corpus; items of known label are constrained to it."""
        self._check_settings()
        read = read_votes(votes)
        if not len(read):
            raise DataError(
                "there are no votes", "give at least one; −1, None and NaN do not count as votes"
            )
        known = read_known(y, read.items)
        self.classes_ = sorted_classes(
            [*read.labels, *(() if known is None else known.classes.tolist())]
        )
        self.items_, self.annotators_ = as_array(read.items), as_array(read.annotators)
        self.n_features_in_ = len(read.annotators)
        x = self._bags(read)
        core = self.make_core(x)
        constraints = ClassConstraints.nothing(len(x), core.n_classes)
        if known is not None:  # as numbers of all classes
            numbers = find_places(known.classes.tolist(), self.classes_.tolist())
            of_items = np.append(numbers, UNKNOWN)[known.numbers]
            constraints = Labels(self.classes_, of_items).restrict(1, np.ones(len(x)))
        return core, VotedItems(x, constraints, self.items_)

    def _bind_more(self, core: MixtureCore, X: Any) -> MixtureCorpus:
        read = read_votes(X, self.annotators_.tolist())
        x = self._bags(read)
        free = ClassConstraints.nothing(len(x), core.n_classes)
        return VotedItems(x, free, as_array(read.items))

    def observe(self, X: Any, *, first: bool = False) -> Bags:
        return self._bags(read_votes(X, self.annotators_.tolist()))

    def _bags(self, votes: Votes) -> Bags:
        """Convert votes to bags of words (annotator, label); unknown ones are left out."""
        K = self.n_classes
        annotators = find_places(votes.annotators, self.annotators_.tolist())
        labels = find_places(votes.labels, self.classes_.tolist())
        annotator, label = annotators[votes.by_annotator], labels[votes.of_label]
        known = (annotator != UNKNOWN) & (label != UNKNOWN)
        if not known.all():
            unknown = [
                f"{len(names):,} {kind}{'s' * (len(names) > 1)} ({brief(names[0])}"
                f"{', …' * (len(names) > 1)})"
                for kind, all_names, numbers in (
                    ("annotator", votes.annotators, annotators),
                    ("label", votes.labels, labels),
                )
                if (names := [all_names[i] for i in np.flatnonzero(numbers == UNKNOWN).tolist()])
            ]
            warnings.warn(
                f"the model does not know {' and '.join(unknown)}: their votes are left out",
                UserWarning,
                stacklevel=5,
            )
        shape = (len(votes.items), self.n_features_in_ * K)
        cells = (votes.of_item[known], annotator[known] * K + label[known])
        return Bags.of(sparse.csr_matrix((np.ones(len(cells[0])), cells), shape=shape))

    def _lacks_prior(self) -> str:
        return no_prior(self.smoothing, self.prior, "confusion")

    def _lacks_mode(self) -> str:
        return no_mode(self.prior)

    def make_core(self, x: Bags, weights: Array | None = None) -> MixtureCore:
        prior = mixture_priors(self.smoothing, self.prior, self._maximises, "confusion")
        common = Categorical((1, self.n_classes), prior["weights"])
        emission = Voting(self.n_features_in_, self.n_classes, prior["confusion"])
        return MixtureCore(
            "annotators", common, emission, self.default_learner, not self._maximises
        )

    @property
    def n_classes(self) -> int:
        return len(self.classes_)

    @property
    def _class_names(self) -> list[Any]:
        return self.classes_.tolist()  # type: ignore[no-any-return]

    def _table_names(self) -> dict[str, tuple[Any, ...]]:
        classes = self._class_names
        rows = [(name, true) for name in self.annotators_.tolist() for true in classes]
        return {"confusion": (rows, classes)}

    def _name_hidden(
        self, core: MixtureCore, corpus: MixtureCorpus, rows: PosteriorRows
    ) -> dict[str, Any]:
        named = super()._name_hidden(core, corpus, rows)
        if isinstance(corpus, VotedItems):
            named["index"] = {"item": corpus.names[rows.items].tolist()}
        return {**named, "of": "label"}

    def starts(self) -> Mapping[str, Any]:
        return {
            "majority": starts.start_majority,
            "known": starts.start_known,
            "random": starts.start_random,
            "uniform": uniform,
        }

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        joint = self._joint(corpus.x)
        self.proba_ = np.empty_like(joint)
        soft(joint, corpus.known.lower, corpus.known.upper, 1.0, self.proba_)
        self.labels_ = self.classes_[self.proba_.argmax(axis=1)]
        self.n_iter_ = len(self.fit_.trace) - 1
        assert isinstance(corpus.x, Bags)
        rows = corpus.x.by_document
        A = self.n_features_in_
        self.n_votes_ = np.bincount(rows.columns // self.n_classes, rows.value, A).astype(np.int64)
        sizes, n = corpus.x.lengths, len(corpus)
        self._sizes = sizes[np.linspace(0, n - 1, min(n, KEPT_SIZES)).astype(np.int64)]

    def _warn_of_switch(self, corpus: MixtureCorpus) -> None:
        """Warn if a permutation of the labels agrees better with the votes than the labels do."""
        table = np.asarray(self.core_.counts(corpus.x, self.proba_)["confusion"])
        said = table.reshape(self.confusion_.shape).sum(axis=0)
        if (said.argmax(axis=0) == np.arange(len(said))).all():  # nothing can agree better
            return
        from scipy.optimize import linear_sum_assignment  # its import costs more than numpy's

        true, best = linear_sum_assignment(said, maximize=True)
        if said[true, best].sum() <= 1.001 * np.trace(said):
            return
        k = int(np.flatnonzero(best != true)[0])
        names = self.classes_.tolist()
        warnings.warn(
            f"items labelled {names[k]!r} here are mostly called {names[best[k]]!r} by the "
            "annotators: labels may be switched. Use init='majority', or give known labels (y)",
            SwitchWarning,
            stacklevel=3,
        )

    # fitted parameters
    @property
    def confusion_(self) -> FloatArray:
        """θ_akl: probability that annotator a votes l if k is true, (annotators, true, said)."""
        self._require_fit()
        K = self.n_classes
        return self.raw_params_["confusion"].reshape(-1, K, K)

    @property
    def accuracy_(self) -> FloatArray:
        """Probability that each annotator votes for the true label: Σ_k π_k θ_akk."""
        right: FloatArray = np.diagonal(self.confusion_, axis1=1, axis2=2) @ self.weights_
        return right

    def confusion_of(self, annotator: Any) -> dict[Any, dict[Any, float]]:
        """Return the confusion matrix of an annotator: {true: {said: probability}}."""
        self._require_fit()
        (place,) = find_places([annotator], self.annotators_.tolist())
        if place == UNKNOWN:
            raise DataError(
                f"{brief(annotator)} is not an annotator of this model",
                "annotators_ lists them all",
            )
        names = self.classes_.tolist()
        return {
            true: dict(zip(names, row, strict=True))
            for true, row in zip(names, self.confusion_[place].tolist(), strict=True)
        }

    # prediction
    def predict_proba(self, votes: Any) -> FloatArray:
        """Return the probability of each true label for each item, in the order of ``classes_``.

        Items are in order of first appearance. Votes by unknown annotators, or for unknown labels,
        are left out with a warning, because the model has no parameters for them.
        """
        return self._posterior(self._seen(votes))

    def predict(self, votes: Any) -> Array:
        """Return the most probable true label of each item, in order of first appearance."""
        # not by predict_proba, so that warnings have the same stack level
        posteriors = self._posterior(self._seen(votes))
        chosen: Array = self.classes_[posteriors.argmax(axis=1)]
        return chosen

    def fit_predict(self, votes: Any, y: Any = None) -> Array:
        """Fit, and return the most probable true label of each item."""
        return self.fit(votes, y).labels_

    def score(self, votes: Any, y: Any = None) -> float:
        """Return the mean of log p(votes of an item); ``y`` is ignored."""
        return float(np.mean(self._log_likelihoods(self._seen(votes))))

    # new data
    def _generate(self, classes: IntArray, rng: np.random.Generator) -> list[tuple[int, Any, Any]]:
        """Generate triples, with numbers of votes per item and per annotator as in training.

        Annotators are drawn independently: some may vote on an item several times.
        """
        sizes = np.round(rng.choice(self._sizes, size=len(classes)))
        check_drawable(sizes, "votes")
        sizes = sizes.astype(np.int64)
        items = np.repeat(np.arange(len(classes)), sizes)
        A = self.n_features_in_
        annotators = rng.choice(A, size=len(items), p=self.n_votes_ / self.n_votes_.sum())
        table = self.raw_params_["confusion"]
        labels = self.core_.emission.generate(table, classes, rng, (items, annotators))
        names = self.annotators_[annotators].tolist()
        return list(zip(items.tolist(), names, self.classes_[labels].tolist(), strict=True))

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        names = self.annotators_.tolist()
        unsupported = next((name for name in names if not isinstance(name, NAMEABLE)), None)
        if unsupported is not None:
            raise StoreError(
                f"the name of annotator {brief(unsupported)} cannot be saved in a file",
                "use strings or numbers as names",
            )
        arrays = {"n_votes": self.n_votes_, "sizes": self._sizes}
        kind = str(self.classes_.dtype)
        facts = {"classes": self.classes_.tolist(), "kind_of_classes": kind, "annotators": names}
        return arrays, facts

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        self.classes_ = read_classes(stored.meta["classes"], stored.meta["kind_of_classes"])
        self._check_settings()
        A, K = self.n_features_in_, self.n_classes
        numbers(stored, store.TABLE + "confusion", (A * K, K))
        names = stored.meta["annotators"]
        is_valid = isinstance(names, list) and all(isinstance(name, NAMEABLE) for name in names)
        if not is_valid or len(set(names)) != A or len(names) != A:
            raise StoreError(f"there are not {A} different names of annotators", AGAIN)
        self.annotators_ = as_array(names)
        self.n_votes_ = numbers(stored, "n_votes", (A,)).astype(np.int64)
        self._sizes = numbers(stored, "sizes", (None,))
        sizes = self._sizes
        has_sizes = len(sizes) and 0.0 <= sizes.min() <= sizes.max() < 2**40
        if self.n_votes_.min() < 0 or not self.n_votes_.any() or not has_sizes:
            raise StoreError("the numbers of votes are missing or invalid", AGAIN)
        return Bags.of(sparse.csr_matrix((0, A * K)))
