"""What methods of adaptation share: the task, folds of labels, explanations, the base class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from softcount.bounds import demand_values
from softcount.errors import DataError, LearnerError, shown
from softcount.estimate import Estimate, announce, of_rows
from softcount.kernels.blas import single_threaded
from softcount.labels import propagation as tfidf
from softcount.labels.data import Reader, hard_labels, log_shares, own_copy, posterior
from softcount.mixture.data import UNKNOWN
from softcount.mixture.model_selection import ScoresLabelled
from softcount.models.learnable import all_or_nothing
from softcount.models.settings import check_whole
from softcount.types import Array

SOURCE, TARGET = 1, -1
"""Domains of items if users do not say: those with a label, and those without."""


@dataclass(frozen=True, eq=False)
class Task:
    """Where labels are, and where they are wanted.

    ``X``        a matrix, sparse or dense, a row for each item
    ``y``        each item's class as a number, −1 if it is unknown
    ``classes``  what the numbers mean
    ``domain``   each item's domain: sources from 1 up, targets from −1 down
    """

    X: Any
    y: Array
    classes: Array
    domain: Array

    @property
    def source(self) -> Array:
        """The numbers of the items of sources that have a label."""
        return np.flatnonzero((self.domain > 0) & (self.y != UNKNOWN))

    @property
    def target(self) -> Array:
        """The numbers of the items of targets that have a label."""
        return np.flatnonzero((self.domain < 0) & (self.y != UNKNOWN))

    @property
    def labelled(self) -> Array:
        """The numbers of all items that have a label, wherever they are from."""
        return np.flatnonzero(self.y != UNKNOWN)

    @property
    def in_target(self) -> Array:
        """Whether each item is of a target, with a label or without."""
        return self.domain < 0

    @property
    def domains(self) -> Array:
        """The domains there are, sorted."""
        return np.unique(self.domain)

    def names(self, rows: Array) -> Array:
        """The labels of these items, as users call them."""
        found = self.classes[self.y[rows]]
        if "-1" in self.classes.tolist():  # a class here, and no −1 that has become a text
            found = found.astype(object)
        return found

    def demand_source(self, who: str) -> None:
        """Complain if sources do not have labels of two classes."""
        self._demand_classes(self.source, "source", who, "give items of the source, domain 1")

    def demand_target(self, who: str) -> None:
        """Complain if the target does not have labels of two classes."""
        hint = "Merge, Weighted and EasyAdapt do with any; SourceOnly with none"
        self._demand_classes(self.target, "target", who, hint)

    def demand_target_items(self, who: str) -> None:
        """Complain if there is nothing from the target, or nothing from a source."""
        for there, name, sign in (
            (self.in_target, "target", "negative domain, no label"),
            (~self.in_target, "source", "positive domain"),
        ):
            if not there.any():
                raise DataError(
                    f"{who} compares domains, and there is no item of the {name}",
                    f"give some, with sample_domain ({sign}); SourceOnly needs no target",
                )

    def _demand_classes(self, rows: Array, where: str, who: str, hint: str) -> None:
        found = self.classes[np.unique(self.y[rows])].tolist()
        if len(found) >= 2:
            return
        said = f"all labels are {shown(found[0])}" if found else "no item has a label"
        raise DataError(
            f"{who} learns from labels of the {where}, where {said}",
            f"label items of two classes; {hint}",
        )


def read_task(matrix: Any, y: Any, sample_domain: Any) -> Task:
    """Items of several domains, checked.

    >>> task = read_task(np.eye(3), ["b", None, "a"], [1, -1, 1])
    >>> task.source.tolist(), task.in_target.tolist()
    ([0, 2], [False, True, False])
    """
    n_items = matrix.shape[0]
    labels = hard_labels(y, n_items)
    if sample_domain is None:
        domain = np.where(labels.numbers == UNKNOWN, TARGET, SOURCE)
    else:
        domain = read_domains(sample_domain, n_items)
    return Task(matrix, labels.numbers, labels.classes, domain)


def read_domains(sample_domain: Any, n_items: int) -> Array:
    """Each item's domain as a whole number that is not 0; one number is for all.

    >>> read_domains([1, 2, -1], 3)
    array([ 1,  2, -1])
    """
    given = np.asarray(sample_domain)
    if given.ndim == 0:
        given = np.full(n_items, given)
    if given.ndim != 1:
        raise DataError(f"domains of shape {given.shape}", "give one number for each item")
    if len(given) != n_items:
        raise DataError(
            f"inconsistent numbers of samples: {n_items} items and {len(given)} domains",
            "give a domain for each item",
        )
    strange = [one for one in given.tolist() if not _is_domain(one)]
    if strange:
        raise DataError(
            f"{shown(strange[0])} is no domain", "number them: sources 1, 2, …; targets -1, -2, …"
        )
    numbers: Array = given.astype(np.int64)
    return numbers


def _is_domain(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value % 1 == 0 and value != 0


# Labels that are held out to choose settings by: of the source, or some few of the target.


Dial = TypeVar("Dial")
FOLDS = 5
WHERE = ("source", "target")


def domain_folds(
    y: Any, sample_domain: Any, on: str = "source", n_splits: int = FOLDS, random_state: int = 0
) -> list[tuple[Array, Array]]:
    """Folds for a search over settings: (items to learn from, items to test on), by number.

    Tested on are labelled items of the sources, or of the targets (``on``), each once; learned
    from is everything else, items without a label too. So a search never looks at labels that it
    was not given, and with ``on="source"`` at none of the target. (It scores all items as if they
    were of the target, which only `EasyAdapt` minds, unless metadata routing hands domains on.)

    ``GridSearchCV(method, settings, cv=domain_folds(y, domains)).fit(X, y, sample_domain=domains)``

    >>> folds = domain_folds([0, 1, 0, 1, -1], [1, 1, 1, 1, -1], n_splits=2)
    >>> sorted(int(i) for _, test in folds for i in test), all(4 in train for train, _ in folds)
    ([0, 1, 2, 3], True)
    """
    if on not in WHERE:
        raise LearnerError(f"on={shown(on)}", f"one of {', '.join(WHERE)}")
    check_whole("n_splits", n_splits, 2)
    check_whole("random_state", random_state, 0)
    n_items = len(y)
    numbers, domain = hard_labels(y, n_items).numbers, read_domains(sample_domain, n_items)
    rows = np.flatnonzero(((domain > 0) if on == "source" else (domain < 0)) & (numbers != UNKNOWN))
    splits = _split(rows, numbers, n_splits, random_state)
    if len(splits) < n_splits:
        raise DataError(
            f"{n_splits} folds need as many labels of each class in the {on}",
            f"label more items{f', or take n_splits={len(splits)}' if splits else ''}",
        )
    return [(np.setdiff1d(np.arange(n_items), test), test) for test in splits]


def target_folds(task: Task) -> list[tuple[Array, Array]]:
    """(labelled items of the target to learn from, and to test on), as many times as classes allow,
    five at most; none if some class has a single label."""
    rows = task.target
    return [(np.setdiff1d(rows, test), test) for test in _split(rows, task.y, FOLDS, 0)]


def _split(rows: Array, numbers: Array, most: int, seed: int) -> list[Array]:
    """Labelled items dealt into so many parts, each with all classes; none if that cannot be."""
    counts = np.bincount(numbers[rows]) if len(rows) else np.zeros(1, dtype=np.int64)
    there = counts[counts > 0]
    n = min(most, int(there.min())) if len(there) > 1 else 0
    if n < 2:
        return []
    deal = StratifiedKFold(n, shuffle=True, random_state=seed % 2**32)
    return [rows[test] for _, test in deal.split(rows, numbers[rows])]


def best_setting(settings: Sequence[Dial], foreseen: Callable[[Dial], Array], truth: Array) -> Dial:
    """The setting under which most held-out labels are right; of equals, most probable.

    ``foreseen(setting)`` has the shares of the classes, a row for each held-out item.

    >>> best_setting([0.6, 0.4], lambda p: np.array([[1 - p, p], [1 - p, p]]), np.array([1, 1]))
    0.6
    """
    where = np.arange(len(truth))

    def worth(one: Dial) -> tuple[float, float]:
        shares = foreseen(one)
        right = float((shares.argmax(axis=1) == truth).mean())
        return right, float(log_shares(shares)[where, truth].sum())

    return max(settings, key=worth)


def best_on_target(
    task: Task,
    settings: Sequence[Dial],
    otherwise: Dial,
    train: Callable[[Task, Array, Dial], None],
    shares: Callable[[Any, Array], Array],
) -> Dial:
    """The setting that does best on held-out labels of the target; ``otherwise`` if there are too
    few to hold any out.

    ``train(task, rows, setting)`` learns from labelled items, after which ``shares(X, domain)``
    has the shares of classes of others.
    """
    folds = target_folds(task)
    if not folds:
        return otherwise

    def foreseen(setting: Dial) -> Array:
        found = []
        for learn, test in folds:
            train(task, np.concatenate([task.source, learn]), setting)
            found.append(shares(task.X[test], task.domain[test]))
        return np.vstack(found)

    return best_setting(settings, foreseen, task.y[np.concatenate([test for _, test in folds])])


# What has changed on the way to the target: the words whose weights moved most.


class MovedWord(NamedTuple):
    """A word, and how much it speaks for a label: in the source alone, and in the target now, both
    on the target's scale.

    ``share`` is that of the target's items that have it.
    """

    word: str
    label: Any
    source: float
    target: float
    share: float

    @property
    def moved(self) -> float:
        """How far its weight has moved."""
        return self.target - self.source


@dataclass(frozen=True)
class Explanation:
    """What `explain` of a method tells; a table when printed.

    ``moved``            words, those that change most in the target first
    ``correspondences``  (word of the target, its nearest words of the source, with cosines), where
                         the method knows any
    """

    moved: Sequence[MovedWord]
    correspondences: Sequence[tuple[str, Sequence[tuple[str, float]]]] = ()

    def __str__(self) -> str:
        wide = max([len(one.word) for one in self.moved] + [4])
        lines = [f"{'word':{wide}}  {'source':>7}  {'target':>7}  {'moved':>7}  in target  for"]
        lines += [
            f"{one.word:{wide}}  {one.source:7.2f}  {one.target:7.2f}  {one.moved:+7.2f}  "
            f"{one.share:9.1%}  {one.label}"
            for one in self.moved
        ]
        if self.correspondences:
            lines += ["", "words of the target, and those of the source that are nearest"]
            lines += [
                f"{word}: {', '.join(f'{near} {cosine:.2f}' for near, cosine in nearest)}"
                for word, nearest in self.correspondences
            ]
        return "\n".join(lines)


def moved_words(
    names: Sequence[str], classes: Array, before: Array, after: Array, target: Any, n: int
) -> list[MovedWord]:
    """The n words that change scores in the target most.

    ``before`` and ``after`` are weights, (classes, words), or one row for the second of two
    classes. Decisions do not change if all weights grow or shrink alike, so the former are scaled
    to the length of the latter first. A word counts by |after − before| times its root mean square
    among the target's items: one that never occurs there changes nothing.

    >>> before, after = np.array([[1.0, 0.0, 1.0]]), np.array([[2.0, 0.0, -2.0]])
    >>> moved_words(["a", "b", "c"], np.array([0, 1]), before, after, np.ones((1, 3)), 3)
    [MovedWord(word='c', label=1, source=2.0, target=-2.0, share=1.0)]
    """
    of_row = classes[1:] if len(before) == 1 else classes
    matrix = sparse.csr_matrix(target)
    squares = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    before = before * _scale(np.sum(after**2 * squares), np.sum(before**2 * squares))
    share = np.bincount(matrix.indices[matrix.data != 0.0], minlength=matrix.shape[1])
    effect = np.abs(after - before) * np.sqrt(squares)
    found = []
    for flat in np.argsort(-effect, axis=None, kind="stable")[:n]:
        row, column = np.unravel_index(flat, effect.shape)
        if effect[row, column] > 0.0:
            weights = float(before[row, column]), float(after[row, column])
            in_target = float(share[column] / matrix.shape[0])
            found.append(MovedWord(names[column], of_row[row].item(), *weights, in_target))
    return found


def _scale(wanted: float, there: float) -> float:
    return float(np.sqrt(wanted / there)) if there > 0.0 else 1.0


# What all methods of adaptation share: items, labels and domains in, a classifier out.


USUAL_C = 3.0
"""Chosen by cross-validation within each domain of the product reviews, rows of length 1."""
MOST_STEPS = 1000


class Adapter(ScoresLabelled, BaseEstimator):  # type: ignore[misc]
    """A classifier for a target domain, learned mostly elsewhere.

    A subclass offers `learn` and `shares`, and `word_weights` if it is linear in the words.

    ``fit(X, y, sample_domain)``: X are texts, lists of words, a sparse matrix or an array; y is −1
    (or None) where a label is unknown; domains are numbers, sources from 1 up and targets from −1
    down. Without ``sample_domain``, items with a label are the source, the others the target.

    Afterwards: ``classes_``, ``domains_``, ``n_features_in_``; ``predict`` and ``predict_proba``
    speak of items of the target, unless they are told another ``sample_domain``.
    """

    # with metadata routing, domains are handed on unless somebody asks for something else
    __metadata_request__fit = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict = {"sample_domain": True}  # noqa: RUF012
    __metadata_request__predict_proba = {"sample_domain": True}  # noqa: RUF012

    classifier: Any = None
    vectorizer: Any
    classes_: Array
    domains_: Array
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_domain: Any = None) -> Self:
        """Learn from items of a source and a target."""
        with all_or_nothing(self), single_threaded():
            self.check_settings()
            name = type(self).__name__
            self._reader = Reader(self.vectorizer, name, tfidf.default_vectorizer)
            matrix = self._reader.learn(X)
            demand_values(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
            task = read_task(matrix, y, sample_domain)
            announce(self.foreseen(task), ())
            self.classes_, self.domains_ = task.classes, task.domains
            self.n_features_in_ = task.X.shape[1]
            self.learn(task)
            self._task = task
        return self

    def estimate(self, X: Any, y: Any, sample_domain: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a step. Nothing is learned."""
        self.check_settings()
        reader = Reader(self.vectorizer, type(self).__name__, tfidf.default_vectorizer)
        return self.foreseen(read_task(reader.learn(X), y, sample_domain))

    def foreseen(self, task: Task) -> Estimate:
        """What learning from these items will need."""
        return of_rows(task.X, len(task.classes))

    def check_settings(self) -> None:
        """Complain of settings that make no sense."""

    @abstractmethod
    def learn(self, task: Task) -> None:
        """Learn from these items."""

    @abstractmethod
    def shares(self, X: Any, domain: Array) -> Array:
        """p(class | item) for rows of a matrix, of these domains."""

    def predict_proba(self, X: Any, sample_domain: Any = None) -> Array:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self, "classes_")
        matrix = self._reader.read(X)
        demand_values(matrix.data if sparse.issparse(matrix) else matrix, "the data have")
        given = self.home() if sample_domain is None else sample_domain
        domain = read_domains(given, matrix.shape[0])
        with single_threaded():
            return self.shares(matrix, domain)

    def predict(self, X: Any, sample_domain: Any = None) -> Array:
        """The likeliest class of each item."""
        shares = self.predict_proba(X, sample_domain)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def home(self) -> int:
        """The domain of items of which nothing else is said: the target, if there is just one."""
        targets = self.domains_[self.domains_ < 0]
        return int(targets[0]) if len(targets) == 1 else min(int(self.domains_.min()), 0) - 1

    # what subclasses learn with
    def trained(self, X: Any, task: Task, rows: Array, weight: Array | None = None) -> Any:
        """The classifier, trained on some items; X has a row for each of them."""
        own = usual_classifier() if self.classifier is None else own_copy(self.classifier)
        if weight is None:
            return own.fit(X, task.names(rows))
        return own.fit(X, task.names(rows), sample_weight=weight)

    def posterior(self, classifier: Any, X: Any) -> Array:
        """A classifier's shares with a column for each class, also those it has never seen."""
        found = posterior(classifier, X)
        if found.shape[1] == len(self.classes_):
            return found
        shares = np.zeros((len(found), len(self.classes_)))
        shares[:, np.searchsorted(self.classes_, classifier.classes_)] = found
        return shares

    # looking inside
    def feature_names(self) -> list[str]:
        """What the columns are called: words, or x0, x1, … where nobody said."""
        check_is_fitted(self, "classes_")
        return self._reader.feature_names()

    def word_weights(self, sample_domain: int | None = None) -> Array:
        """(classes, columns): how much a word speaks for each class in a domain; with two classes
        one row, for the second of them."""
        raise DataError(f"{type(self).__name__} has no weights of words", "it is not linear")

    def explain(self, n: int = 20, names: Sequence[str] | None = None) -> Explanation:
        """The n words whose weights have moved most, beside a classifier of the source alone.

        ``names``  what the columns of a matrix are called, from here on
        """
        check_is_fitted(self, "classes_")
        if names is not None:
            self._reader.call(names)
        names, after, task = self.feature_names(), self.word_weights(), self._task
        task.demand_source("explain")
        task.demand_target_items("explain")
        check_whole("n", n)
        with single_threaded():
            alone = self.trained(task.X[task.source], task, task.source)
        before = weights_in(alone, self.classes_)
        target = task.X[np.flatnonzero(task.in_target)]
        moved = moved_words(names, self.classes_, before, after, target, n)
        return Explanation(moved, self.correspondences(n))

    def correspondences(self, n: int = 10) -> list[tuple[str, list[tuple[str, float]]]]:
        """Words of the target, each with the nearest of the source and their cosines, where the
        method knows of any."""
        return []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        return tags


def usual_classifier() -> Any:
    """Logistic regression, as strict as suits tf-idf of reviews."""
    return LogisticRegression(C=USUAL_C, max_iter=MOST_STEPS)


def beside(X: Any, new: Array) -> Any:
    """Words and new features, side by side.

    >>> beside(sparse.csr_matrix([[1.0, 0.0]]), np.array([[2.0]])).toarray()
    array([[1., 0., 2.]])
    """
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(new)], format="csr")
    return np.hstack([X, new])


def weights_in(classifier: Any, classes: Array) -> Array:
    """The weights of a linear classifier, a row for each of ``classes``; one row if these are two.

    A class that the classifier has never seen has the weights 0.
    """
    if not hasattr(classifier, "coef_"):
        raise DataError(
            f"{type(classifier).__name__} has no weights of words", "take a linear classifier"
        )
    found = classifier.coef_
    return by_class(classifier, found.toarray() if sparse.issparse(found) else found, classes)


def by_class(classifier: Any, found: Any, classes: Array) -> Array:
    """What a linear classifier has for each of its classes, as rows for ``classes``, of which it
    may never have seen some; one row, for the second, where there are two."""
    rows: Array = np.asarray(found, dtype=np.float64)
    own = len(classifier.classes_)
    if len(rows) == 1 < own - 1:  # no intercepts
        rows = np.repeat(rows, own, axis=0)
    # support vector machines of one class against one have a row for each pair
    if own > 2 and hasattr(classifier, "decision_function_shape"):
        raise DataError(
            f"{type(classifier).__name__} has weights for pairs of classes",
            "take a classifier that has some for each class, such as LogisticRegression()",
        )
    if own == len(classes):
        return rows
    if own == 2:
        rows = np.vstack([-rows, rows]) / 2.0
    weights = np.zeros((len(classes), rows.shape[1]))
    weights[np.searchsorted(classes, classifier.classes_)] = rows
    return weights
