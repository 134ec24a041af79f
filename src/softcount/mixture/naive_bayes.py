"""Semi-supervised Naive Bayes, and the detection of collapsed EM."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, Self, Unpack

import numpy as np
from numpy.random import Generator

from softcount.core import interrupt, store
from softcount.core.errors import DataError, LearnerError
from softcount.core.estimator import FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.store import numbers
from softcount.core.types import Array, BoolArray, FloatArray, IntArray, Params
from softcount.core.warnings import is_later_fold
from softcount.engines.blocks import tree_sum
from softcount.kernels import posterior
from softcount.mixture.core import FLOOR, MixtureCore
from softcount.mixture.data import UNKNOWN, ClassConstraints, Labels, MixtureCorpus, read_labels
from softcount.mixture.documents import BagsOnDisk, WordMixture
from softcount.mixture.labelled_scores import ScoresLabelled, warn_of_unlabelled_fold
from softcount.mixture.parameters import NaiveBayesCVParameters, NaiveBayesParameters
from softcount.mixture.starts import Start
from softcount.mixture.suspects import Suspect
from softcount.text.bags import Bags

SHRINKAGE = 4.0
"""It is a collapse if N − 1 shrinks by more than this factor: see `has_collapsed`."""
SIGNIFICANCE = 0.15
"""Significance level: an outcome more probable than this by chance is not called a collapse. A few
unlabelled items are weak evidence: that all of four fall into one class, while two labels are of
different classes, has probability 1/7."""


def has_collapsed(proportions: FloatArray, n_free: int, labels: FloatArray) -> bool:
    """Return whether EM has drawn the unlabelled items into implausibly few classes.

    ``proportions``  proportion of each class among the unlabelled items, (classes,)
    ``n_free``       number of unlabelled items
    ``labels``       number of labels of each class, (classes,)

    Classes are counted by their effective number N = exp(entropy). It is a collapse if N of the
    unlabelled items is below half of N of the labels. With few classes, or with rare ones, that is
    impossible, because N is never below 1. So it is also a collapse if N − 1 is below a quarter of
    that of the labels, unless this may be chance, as labels are few, and so may be the items. If c
    of n labels are outside the most frequent found class, the proportion outside is
    Beta(c + 1, n − c + 1), and the number of items outside is beta-binomial.

    >>> labels = np.array([5.0, 5.0])
    >>> has_collapsed(np.array([0.99, 0.01]), 100, labels)
    True
    >>> has_collapsed(np.array([0.9, 0.1]), 100, labels)
    False
    >>> has_collapsed(np.array([1.0, 0.0]), 100, np.array([99.0, 1.0]))
    False
    """
    n_found, n_labelled = effective_number(proportions), effective_number(labels / labels.sum())
    if n_found < n_labelled / 2.0:
        return True
    if n_found - 1.0 >= (n_labelled - 1.0) / SHRINKAGE:
        return False
    from scipy.stats import betabinom  # slow to import, and seldom needed

    largest = int(proportions.argmax())
    items_outside = np.floor(n_free * (1.0 - proportions[largest]) + 1e-9)
    labels_outside = labels.sum() - labels[largest]
    p_value = betabinom.cdf(items_outside, n_free, labels_outside + 1.0, labels[largest] + 1.0)
    return bool(p_value < SIGNIFICANCE)


def labels_by_class(labels: Labels) -> FloatArray:
    """Return the number of labels of each class, (classes,); soft labels count fractionally."""
    counts = np.bincount(labels.numbers[labels.numbers != UNKNOWN], minlength=len(labels.classes))
    total = counts.astype(float)
    if labels.soft_labels is not None:
        total += np.nansum(labels.soft_labels, axis=0)
    return total


def effective_number(proportions: FloatArray) -> float:
    """Return the effective number of classes, exp of the entropy: that many equally frequent
    classes would have the same entropy.

    >>> round(effective_number(np.array([0.5, 0.5, 0.0])), 12)
    2.0
    """
    positive = proportions[proportions > 0.0]
    return float(np.exp(-np.sum(positive * np.log(positive))))


# Naive Bayes


class CollapseWarning(UserWarning):
    """EM has drawn the unlabelled documents into few of the classes: do not trust the result."""


class NaiveBayes(NaiveBayesParameters, ScoresLabelled, WordMixture):
    """Naive Bayes classifier of documents, supervised or semi-supervised, with one or several
    components per class.

    Labelled documents are restricted to their class; the classes of the others are hidden variables
    that the learner infers (by EM: Nigam, McCallum, Thrun & Mitchell 2000). If all labels are known
    this is textbook Naive Bayes.

    ``n_components``       number of hidden components of each class
    ``unlabelled_weight``  λ: weight of an unlabelled document relative to a labelled one
    ``smoothing``          pseudocount added to every count of a word in a class
    ``length``             rescale every document to this many words; None: no rescaling
    ``bernoulli``          model whether a word occurs, not how often
    ``prior``, ``vectorizer``, ``learner``, ``engine``, ``random_state``  see `MultinomialMixture`

    Unknown labels are −1 or None; a matrix of probabilities (items × classes) gives soft labels.
    After `fit`, ``transduction_`` has a label for every training document.

    `NaiveBayesCV` chooses λ. To tune other settings use scikit-learn's `GridSearchCV` with folds
    that test on labelled documents and always learn from the unlabelled ones:
    ``GridSearchCV(NaiveBayes(), settings, cv=SemiSupervisedKFold(5)).fit(X, y)``.

    >>> texts = ["good fine", "bad awful", "good good great", "awful bad dreadful"]
    >>> model = NaiveBayes().fit(texts, ["+", "-", None, None])
    >>> model.predict(["great", "dreadful"]).tolist()
    ['+', '-']
    """

    classes_: Array
    _core_name = "naive bayes"

    # learning
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
        """Learn from documents and their labels, some of which may be unknown.

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(X, y, sample_weight)
            self._learn(core, corpus, init, **options)
        self._warn_of_collapse(corpus)
        return self

    def _bind(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> tuple[MixtureCore, MixtureCorpus]:
        """Return the core and the corpus; unlabelled documents have weight λ."""
        self._check_settings()
        x = self.observe(X, first=True)
        labels = read_labels(y, len(x), self._constrained_classes())
        warn_of_unlabelled_fold()
        weights = self._check_weights(sample_weight, x)
        weights = np.ones(len(x)) if weights is None else weights
        weights = weights * np.where(labels.known, 1.0, self._lambda)
        self.classes_ = labels.classes
        self._labels = labels
        core = self.make_core(x)
        return core, MixtureCorpus(x, labels.restrict(self.n_components, weights))

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.length is not None and self.bernoulli:
            raise LearnerError(
                "length and bernoulli=True cannot be combined: presence of words has no length",
                "leave out length or bernoulli",
            )

    def _constrained_classes(self) -> list[Any]:
        """Return the classes that the learner's constraints name, of which none may have labels."""
        return [name for each in self._learner.constraints for name in each.named_values]

    def _values(self) -> dict[Any, list[int]]:
        m = self.n_components
        names = self.classes_.tolist()
        return {name: list(range(k * m, (k + 1) * m)) for k, name in enumerate(names)}

    @property
    def _lambda(self) -> float:
        return self.unlabelled_weight

    @property
    def n_classes(self) -> int:
        return len(self.classes_) * self.n_components

    @property
    def _class_names(self) -> list[Any]:
        names, m = self.classes_.tolist(), self.n_components
        return names if m == 1 else [(name, part) for name in names for part in range(m)]

    def observe(self, X: Any, *, first: bool) -> Bags | BagsOnDisk:
        bags = super().observe(X, first=first)
        if isinstance(bags, BagsOnDisk):
            return replace(bags, length=self.length)
        return bags if self.length is None else bags.scaled(self.length)

    def starts(self) -> Mapping[str, Start]:
        return {"labelled": self._start_from_labels}

    def _start_from_labels(self, core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
        """Return parameters estimated from the labelled documents; those of a class are distributed
        at random over its components."""
        labels, m, weights = self._labels, self.n_components, items.known.weights

        def assign(some: slice) -> FloatArray:
            numbers = labels.numbers[some]
            by_class = np.zeros((len(numbers), len(labels.classes)))
            hard = np.flatnonzero(numbers != UNKNOWN)
            by_class[hard, numbers[hard]] = 1.0
            if labels.soft_labels is not None:
                by_class += np.nan_to_num(labels.soft_labels[some])
            responsibilities = np.repeat(by_class * weights[some, None], m, axis=1)
            if m > 1:
                proportions = rng.dirichlet(np.ones(m), size=(len(numbers), len(labels.classes)))
                responsibilities *= proportions.reshape(len(numbers), -1)
            return responsibilities

        return core.from_responsibilities(items.x, assign, rng)

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        super()._after_fit(corpus)
        self.n_iter_ = len(self.fit_.trace) - 1
        parts = [part.argmax(axis=1) for part in self._class_posteriors_by_shard(corpus.x)]
        self.transduction_ = self.classes_[np.concatenate(parts)]
        known = self._labels.known
        self.transduction_[known] = self.classes_[self._labels.likeliest()[known]]

    def _warn_of_collapse(self, corpus: MixtureCorpus) -> None:
        """Warn if the unlabelled documents use far fewer classes than the labels do."""
        free = ~self._labels.known & (corpus.known.weights > 0.0)
        if free.sum() < 2 * len(self.classes_) or free.all():
            return
        borders = [slice(*run) for run in corpus.x.cut()]
        parts = zip(borders, self._class_posteriors_by_shard(corpus.x), strict=True)
        proportions = tree_sum(part[free[some]].sum(axis=0) for some, part in parts) / free.sum()
        counts = labels_by_class(self._labels)
        if not has_collapsed(proportions, int(free.sum()), counts) or is_later_fold():
            return  # in a search only the first fold warns, and the final fit to all data
        labelled, largest = counts / counts.sum(), int(proportions.argmax())
        name = self.classes_.tolist()[largest]
        # few labels are outweighed mainly by smoothing × number of words, then by long documents
        scale = "" if self.length else ", documents of one length (length=100)"
        warnings.warn(
            f"{proportions[largest]:.0%} of the unlabelled documents were drawn into the class "
            f"{name!r}, "
            f"which has {labelled[largest]:.0%} of the labels: EM has collapsed. "
            f"Try a smaller smoothing (now {self.smoothing:g}, for each of {self.n_features_in_} "
            f"words), fewer words (the vectorizer's min_df, max_df){scale}, or another "
            "unlabelled_weight: NaiveBayesCV chooses it by cross-validation",
            CollapseWarning,
            stacklevel=4,
        )

    # inference
    def _class_posteriors(self, x: Any) -> FloatArray:
        """Return p(class | document), (documents, classes), summed over components."""
        return self._add_components(self._posterior(x))

    def _class_posteriors_by_shard(self, x: Any) -> Iterator[FloatArray]:
        """Yield the same for each shard."""
        return map(self._add_components, self._each(self.core_.posteriors, x))

    def _add_components(self, posteriors: FloatArray) -> FloatArray:
        components = posteriors.reshape(len(posteriors), len(self.classes_), -1)
        classes: FloatArray = components.sum(axis=2)
        return classes

    def predict_proba(self, X: Any) -> FloatArray:
        """Return p(class | document), (documents, classes), in the order of ``classes_``."""
        return self._class_posteriors(self._seen(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each document."""
        x = self._seen(X)
        best = [part.argmax(axis=1) for part in self._class_posteriors_by_shard(x)]
        classes: Array = self.classes_[np.concatenate(best)]
        return classes

    def suspects(
        self, X: Any, y: Any, *, cv: int | None = None, random_state: int = 0, **more: Any
    ) -> list[Suspect]:
        """List the given labels, those that are probably wrong first.

        Each label is judged by parameters without its document: its counts are taken from those of
        the fitted model, which is exact if all documents have a label. Otherwise the posteriors of
        documents without a label stay as they are. With ``cv``, labels are hidden in that many
        parts instead, and a model is fitted for each. The model itself is not changed.

        >>> texts = ["good fine", "bad awful", "good great", "awful bad", "fine good"]
        >>> worst = NaiveBayes().suspects(texts, ["+", "-", "+", "-", "-"])[0]
        >>> worst.item, worst.given, worst.likely
        (4, '-', '+')
        """
        return super().suspects(X, y, cv=cv or 0, random_state=random_state, **more)

    def _judge_labels(
        self, X: Any, labels: Labels, judged: BoolArray, cv: int, seed: int, more: Any
    ) -> FloatArray:
        if cv:
            return super()._judge_labels(X, labels, judged, cv, seed, more)
        model = type(self)(**self.get_params(deep=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollapseWarning)
            core, corpus = model._learn_for_suspects(X, labels, more)
        return leave_one_out(
            core, model.raw_params_, corpus, labels, judged, model._maximises, self.bernoulli
        )

    def _learn_for_suspects(
        self, X: Any, labels: Labels, more: Any
    ) -> tuple[MixtureCore, MixtureCorpus]:
        """Fit to documents and their labels; return the core and the corpus."""
        known = [
            None if k == UNKNOWN else labels.classes[k].item() for k in labels.numbers.tolist()
        ]
        self.fit(X, known, **more)
        core, corpus = self._bind(X, known, **more)
        if not isinstance(corpus.x, Bags):
            raise DataError(
                "documents on disk cannot be left out one by one", "give cv, such as cv=10"
            )
        return core, corpus

    def class_words(self) -> tuple[FloatArray, FloatArray]:
        """Return p(class) and p(word | class), marginalised over the components of a class."""
        weights = self.weights_.reshape(len(self.classes_), -1)
        words = self.words_.reshape(*weights.shape, -1)
        total = weights.sum(axis=1)
        within = weights / np.where(total > 0.0, total, 1.0)[:, None]
        return total, np.einsum("cm,cmw->cw", within, words)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's test points, which are no counts
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


def leave_one_out(
    core: MixtureCore,
    params: Params,
    corpus: MixtureCorpus,
    labels: Labels,
    judged: BoolArray,
    maximises: bool,
    bernoulli: bool,
) -> FloatArray:
    """Return the posterior of each class for every labelled document, by parameters without it,
    (documents, classes); NaN for documents that are not judged.

    With expected counts N, a document's own r, and its words x, the parameters of component k are
    proportional to N_kw − r_k x_w + a: those of its own class change, no others.

    ``judged``     whether each label can be judged, (documents,)
    ``maximises``  whether parameters are modes, rather than means, of the posterior
    ``bernoulli``  whether x says which words occur
    """
    x: Any = corpus.x
    joint = core.joint(params, x, floor=FLOOR)
    known = corpus.known
    assert isinstance(known, ClassConstraints)
    r = np.empty_like(joint)
    posterior.soft(joint, known.lower, known.upper, 1.0, r)
    r *= known.weights[:, None]
    counts = {name: np.asarray(table) for name, table in core.counts(x, r).items()}
    K = core.n_classes
    shift = 1.0 if maximises else 0.0
    prior: Any = {name: family.alpha - shift for name, family in core.families.items()}  # type: ignore[attr-defined]
    class_counts = counts["weights"].reshape(-1) + prior["weights"]
    present = counts["words"].reshape(K, -1, 2)[:, :, 1] if bernoulli else counts["words"]
    totals = counts["weights"].reshape(-1) if bernoulli else present.sum(axis=1)
    n_words, a = present.shape[1], prior["words"]
    all_classes = np.full((len(x), len(labels.classes)), np.nan)
    rows, components = x.by_document, K // len(labels.classes)
    for d in np.flatnonzero(judged).tolist():
        entries = slice(rows.indptr[d], rows.indptr[d + 1])
        words, values = rows.columns[entries], rows.value[entries]
        own = slice(labels.numbers[d] * components, (labels.numbers[d] + 1) * components)
        share = r[d, own][:, None]
        n = class_counts.copy()
        n[own] -= r[d, own]
        logs = joint[d].copy()
        if bernoulli:
            table = present[own].copy()
            table[:, words] -= share
            size = totals[own][:, None] - share
            p = np.clip((table + a) / np.maximum(size + 2.0 * a, FLOOR), FLOOR, 1.0)
            absent = np.log(np.maximum(1.0 - p, FLOOR))
            logs[own] = absent.sum(axis=1) + (np.log(p) - absent)[:, words].sum(axis=1)
        else:
            mass = np.maximum(present[own][:, words] - share * values + a, FLOOR)
            size = totals[own][:, None] - share * values.sum() + a * n_words
            logs[own] = (np.log(mass) - np.log(np.maximum(size, FLOOR))) @ values
        with np.errstate(divide="ignore"):
            before = np.log(np.maximum(params["weights"].reshape(-1), FLOOR))
            weights = np.log(np.maximum(n, FLOOR)) - np.log(max(n.sum(), FLOOR))
        logs += weights - before
        logs[own] += before[own]  # they did not have it
        p_components = np.exp(logs - logs.max())
        by_class = p_components.reshape(-1, components).sum(axis=1)
        all_classes[d] = by_class / by_class.sum()
    return all_classes


KINDS = {bool: "b", int: "iu", float: "f", str: "U"}
"""Kinds of numpy arrays that can hold labels of each Python type."""


def read_classes(labels: Any, kind: str) -> Array:
    """Read the class labels listed in a file, checking that they are sorted and distinct."""
    types = {type(label) for label in labels} if isinstance(labels, list) else set()
    if len(types) != 1 or np.dtype(kind).kind not in KINDS.get(types.pop(), ""):
        raise DataError("the classes are not a list of labels of one kind")
    classes: Array = np.array(labels, dtype=kind)
    if classes.tolist() != labels or not np.array_equal(np.unique(classes), classes):
        raise DataError("the classes are not sorted, or not distinct")
    return classes


class NaiveBayesCV(NaiveBayesCVParameters, NaiveBayes):
    """`NaiveBayes` that chooses λ by cross-validation on the labelled documents.

    ``unlabelled_weights``  candidate values of λ
    ``cv``                  number of folds

    The labels of each fold are hidden in turn, and its documents kept as unlabelled ones. The λ
    chosen is the largest whose mean accuracy on hidden labels is within one standard error of the
    best: unlabelled documents get the benefit of the doubt. If there are too few labels to hide
    any, or no unlabelled documents, ``unlabelled_weight`` is used as given. After `fit`:
    ``unlabelled_weight_``, the λ chosen, and ``cv_scores_``, λ → mean accuracy.
    """

    @interrupt.graceful()
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
        """Choose λ, then learn from everything."""
        with all_or_nothing(self):
            self._check_settings()
            accuracies = self._cross_validate(X, y, sample_weight)
            self.cv_scores_ = {weight: float(folds.mean()) for weight, folds in accuracies.items()}
            self.unlabelled_weight_ = self.unlabelled_weight
            if accuracies:
                best = max(accuracies, key=lambda weight: (self.cv_scores_[weight], weight))
                top, n = accuracies[best], len(accuracies[best])
                error = float(top.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
                least = self.cv_scores_[best] - error
                self.unlabelled_weight_ = max(
                    weight for weight, score in self.cv_scores_.items() if score >= least
                )
            return super().fit(X, y, sample_weight, init=init, **options)

    def _constrained_classes(self) -> list[Any]:
        """Return the classes that the learner's constraints name, of which none may have labels."""
        return [name for each in self._learner.constraints for name in each.named_values]

    def _values(self) -> dict[Any, list[int]]:
        m = self.n_components
        names = self.classes_.tolist()
        return {name: list(range(k * m, (k + 1) * m)) for k, name in enumerate(names)}

    @property
    def _lambda(self) -> float:
        return getattr(self, "unlabelled_weight_", self.unlabelled_weight)

    def _cross_validate(self, X: Any, y: Any, sample_weight: Any) -> dict[float, FloatArray]:
        """Return the accuracy of each λ on hidden labels, by split; empty if none can be hidden.

        Labels are hidden fold by fold; the only label of a class is never hidden.
        """
        from sklearn.model_selection import StratifiedKFold, check_cv

        from softcount.mixture.model_selection import find_repeated_classes, split_folds

        bags = self.observe(X, first=True)
        labels = read_labels(y, len(bags))
        weights = self._check_weights(sample_weight, bags)
        weights = np.ones(len(bags)) if weights is None else weights
        rows = find_repeated_classes(labels.numbers)
        if labels.known.all() or not len(rows):
            return {}
        folds = self.cv
        if isinstance(folds, Integral):
            n = min(int(folds), np.bincount(labels.numbers[rows]).max())
            folds = StratifiedKFold(n, shuffle=True, random_state=self._seed())
        splits = split_folds(rows, labels.numbers, check_cv(folds))
        accuracies: dict[float, FloatArray] = {}
        for weight in sorted(map(float, self.unlabelled_weights)):
            by_split = self._accuracies(weight, bags, labels, weights, splits)
            if interrupt.asked():  # these fits were cut short: choose among the earlier weights
                break
            if not len(by_split):  # all labelled items have weight zero
                return {}
            accuracies[weight] = by_split
        return accuracies

    def _accuracies(
        self,
        weight: float,
        bags: Bags | BagsOnDisk,
        labels: Labels,
        weights: FloatArray,
        splits: list[IntArray],
    ) -> FloatArray:
        """Return the accuracy of λ = ``weight`` on the hidden labels of each split, (splits,)."""
        # folds learn from counts that have already been vectorised and rescaled, unless on disk
        excluded = ["unlabelled_weights", "cv", "vectorizer", "init"]
        source: Any
        if isinstance(bags, BagsOnDisk):
            source = bags.archive
        else:
            source = bags.matrix
            excluded.append("length")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in excluded}
        model = NaiveBayes(**{**settings, "unlabelled_weight": weight})
        accuracies = []
        for hidden in splits:
            shown = labels.numbers.copy()
            shown[hidden] = UNKNOWN
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CollapseWarning)
                model.fit(source, shown, weights)
            correct = model.transduction_[hidden] == labels.numbers[hidden]
            if weights[hidden].any():
                accuracies.append(np.average(correct, weights=weights[hidden]))
        return np.array(accuracies)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = super().stored()
        scores = np.array(list(self.cv_scores_.items())).reshape(-1, 2)
        return {**arrays, "cv_scores": scores}, {**facts, "chosen": self.unlabelled_weight_}

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        scores = numbers(stored, "cv_scores", (None, 2))
        self.cv_scores_ = {float(weight): float(score) for weight, score in scores}
        self.unlabelled_weight_ = stored.meta["chosen"]
        if not 0.0 <= self.unlabelled_weight_ < np.inf:
            raise DataError(f"{self.unlabelled_weight_} is not a valid weight of documents")
        return super().recall(stored, given)
