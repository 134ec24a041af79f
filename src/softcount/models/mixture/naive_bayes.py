"""Naive Bayes with all labels, with a few, and with several components a class."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from softcount import store
from softcount.bounds import MAX_CLASSES
from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError
from softcount.families import Categorical
from softcount.models.base import FitOptions, all_or_nothing
from softcount.models.folded import is_later_fold
from softcount.models.mixture.collapse import has_collapsed, labels_by_class
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.items import Items
from softcount.models.mixture.labels import UNKNOWN, read_labels
from softcount.models.mixture.scoring import ScoresLabelled, warn_of_unlabelled_fold
from softcount.models.mixture.word_core import WordCore
from softcount.models.mixture.words import WordMixture
from softcount.models.settings import check_number, check_whole
from softcount.types import Array, Params

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


class CollapseWarning(UserWarning):
    """Unlabelled documents were drawn into few of the classes: do not trust the result."""


class NaiveBayes(ScoresLabelled, WordMixture):
    """Naive Bayes for documents with labels, with few labels, or several components a class.

    Labelled documents are kept to their class; the classes of the others are hidden, and are filled
    in by the learner (EM: Nigam, McCallum, Thrun & Mitchell 2000). With every label known this is
    the Naive Bayes of the textbooks.

    ``components``         hidden components a class
    ``unlabelled_weight``  λ: what an unlabelled document counts beside a labelled one
    ``smoothing``          add so much to every count of a word in a class
    ``length``             stretch or shrink every document to so many words; None: as they are
    ``bernoulli``          look at whether a word occurs, not how often
    ``prior``, ``vectorizer``, ``learner``, ``engine``, ``random_state``  see `MultinomialMixture`

    Labels are −1 (or None) where unknown; a matrix of shares (items × classes) gives soft labels.
    Afterwards ``transduction_`` has a label for every document learned from.

    `NaiveBayesCV` chooses λ. For other settings take scikit-learn's `GridSearchCV`, with folds that
    test on labelled documents and learn from unlabelled ones every time:
    ``GridSearchCV(NaiveBayes(), settings, cv=SemiSupervisedKFold(5)).fit(X, y)``.

    >>> texts = ["good fine", "bad awful", "good good great", "awful bad dreadful"]
    >>> model = NaiveBayes().fit(texts, ["+", "-", None, None])
    >>> model.predict(["great", "dreadful"]).tolist()
    ['+', '-']
    """

    classes_: Array

    def __init__(
        self,
        *,
        components: int = 1,
        unlabelled_weight: float = 1.0,
        smoothing: float = 0.1,
        length: float | None = None,
        bernoulli: bool = False,
        prior: float | Mapping[str, float] | None = None,
        init: Any = "labelled",
        scouts: int = 0,
        vectorizer: Any = None,
        learner: Learner | None = None,
        engine: Engine | None = None,
        random_state: Any = 0,
    ) -> None:
        self.components = components
        self.unlabelled_weight = unlabelled_weight
        self.smoothing = smoothing
        self.length = length
        self.bernoulli = bernoulli
        self.prior = prior
        self.init = init
        self.scouts = scouts
        self.vectorizer = vectorizer
        self.learner = learner
        self.engine = engine
        self.random_state = random_state

    # learning
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from documents and what labels there are.

        For the other options see `softcount.models.base.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(X, y, sample_weight)
            self.learn(core, corpus, init, **options)
        self._warn_of_collapse(corpus)
        return self

    def bind(self, X: Any, y: Any = None, sample_weight: Any = None) -> tuple[MixtureCore, Items]:
        """The core and the corpus; unlabelled documents weigh λ."""
        self._check_settings()
        x = self.observe(X, first=True)
        labels = read_labels(y, len(x))
        warn_of_unlabelled_fold()
        weights = self._weights(sample_weight, x)
        weights = np.ones(len(x)) if weights is None else weights
        weights = weights * np.where(labels.known, 1.0, self._lambda())
        self.classes_ = labels.classes
        self._labels = labels
        core = self.make_core(x)
        return core, Items(x, labels.restrict(self.components, weights), core.emission.cut)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_whole("components", self.components, most=MAX_CLASSES)
        check_number(
            "unlabelled_weight",
            self.unlabelled_weight,
            "0 leaves unlabelled documents out, 1 counts them in full; NaiveBayesCV chooses",
        )
        if self.length is not None:
            check_number("length", self.length, "100 is usual", above=True)
            if self.bernoulli:
                raise LearnerError(
                    "a document has no length where words are there or not",
                    "leave out length or bernoulli",
                )

    def _lambda(self) -> float:
        return self.unlabelled_weight

    def make_core(self, x: Bags, weights: Array | None = None) -> MixtureCore:
        common = Categorical((1, self.n_classes), self._priors()["weights"])
        kind = MixtureCore if self.bernoulli else WordCore
        emission = self.emission(self.n_classes, x.n_words)
        return kind("naive bayes", common, emission, self.usual, not self.maximises)

    @property
    def n_classes(self) -> int:
        return len(self.classes_) * self.components

    def observe(self, X: Any, *, first: bool) -> Bags:
        bags = super().observe(X, first=first)
        return bags if self.length is None else bags.scaled(self.length)

    def starts(self) -> Mapping[str, Any]:
        return {"labelled": self._from_labelled}

    def _from_labelled(self, core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
        """What the labelled documents say; those of one class dealt out among its components."""
        labels, m = self._labels, self.components
        of_classes = np.zeros((len(items), len(labels.classes)))
        hard = np.flatnonzero(labels.numbers != UNKNOWN)
        of_classes[hard, labels.numbers[hard]] = 1.0
        if labels.shares is not None:
            of_classes += np.nan_to_num(labels.shares)
        shares = np.repeat(of_classes * items.known.weights[:, None], m, axis=1)
        if m > 1:
            dealt = rng.dirichlet(np.ones(m), size=(len(items), len(labels.classes)))
            shares *= dealt.reshape(len(items), -1)
        return core.from_shares(items.x, shares, rng)

    def remember(self, corpus: Items) -> None:
        super().remember(corpus)
        self.n_iter_ = len(self.fit_.trace) - 1
        shares = self._class_shares(corpus.x)
        self.transduction_ = self.classes_[shares.argmax(axis=1)]
        known = self._labels.known
        self.transduction_[known] = self.classes_[self._labels.likeliest()[known]]

    def _warn_of_collapse(self, corpus: Items) -> None:
        """Compare how many classes the unlabelled documents use with how many were labelled."""
        free = ~self._labels.known & (corpus.known.weights > 0.0)
        if free.sum() < 2 * len(self.classes_):
            return
        found = self._class_shares(corpus.x.take(np.flatnonzero(free))).mean(axis=0)
        counts = labels_by_class(self._labels)
        if not has_collapsed(found, int(free.sum()), counts) or is_later_fold():
            return  # of a search's many fits one warns, and the last, to all data
        labelled, largest = counts / counts.sum(), int(found.argmax())
        name = self.classes_.tolist()[largest]
        warnings.warn(
            f"{found[largest]:.0%} of the unlabelled documents were drawn into the class {name!r}, "
            f"which has {labelled[largest]:.0%} of the labels: EM has collapsed. {self._remedy()}",
            CollapseWarning,
            stacklevel=3,
        )

    def _remedy(self) -> str:
        """What outweighs few labels: smoothing times the number of words, then long documents."""
        scale = "" if self.length else ", documents of one length (length=100)"
        return (
            f"Try a smaller smoothing (now {self.smoothing:g}, for each of {self.n_features_in_} "
            f"words), fewer words (the vectorizer's min_df, max_df){scale}, or another "
            "unlabelled_weight: NaiveBayesCV chooses it by cross-validation"
        )

    # what it says of data
    def _class_shares(self, x: Any) -> Array:
        """p(class | document): components added up."""
        shares = self._posterior(x)
        added: Array = shares.reshape(len(shares), len(self.classes_), -1).sum(axis=2)
        return added

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for each document, in the order of ``classes_``."""
        return self._class_shares(self._seen(X))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> Array:
        """The likeliest class of each document."""
        shares = self.predict_proba(X)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def class_words(self) -> tuple[Array, Array]:
        """How common each class is, and p(word | class): its components taken together."""
        weights = self.weights_.reshape(len(self.classes_), -1)
        words = self.words_.reshape(*weights.shape, -1)
        total = weights.sum(axis=1)
        shares = weights / np.where(total > 0.0, total, 1.0)[:, None]
        return total, np.einsum("cm,cmw->cw", shares, words)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on points: these are no counts
        return tags

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = super().stored()
        kind = str(self.classes_.dtype)
        return arrays, {**facts, "classes": self.classes_.tolist(), "kind_of_classes": kind}

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        self.classes_ = read_classes(stored.meta["classes"], stored.meta["kind_of_classes"])
        self._check_settings()
        return super().recall(stored, given)


KINDS = {bool: "b", int: "iu", float: "f", str: "U"}
"""Which labels can be in which arrays."""


def read_classes(given: Any, kind: str) -> Array:
    """The classes that a file lists."""
    types = {type(label) for label in given} if isinstance(given, list) else set()
    if len(types) != 1 or np.dtype(kind).kind not in KINDS.get(types.pop(), ""):
        raise DataError("the classes are not a list of labels of one kind")
    classes: Array = np.array(given, dtype=kind)
    if classes.tolist() != given or not np.array_equal(np.unique(classes), classes):
        raise DataError("the classes are not in order, or some are the same")
    return classes
