"""`CoTraining`: classifiers on different views of the items label training data for each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax

from softcount.core import interrupt
from softcount.core.contract import require_fitted
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import Estimate, estimate_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters, generator
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.labels.data import (
    Reader,
    SemiSupervisedClassifier,
    clone_classifier,
    few_labels_bayes,
    hard_labels,
    indicator_matrix,
    log_posteriors,
    posterior,
    takes_negative,
)
from softcount.labels.history import History
from softcount.labels.parameters import CoTrainingParameters
from softcount.mixture.data import UNKNOWN
from softcount.mixture.labelled_scores import warn_of_unlabelled_fold
from softcount.text.tokenise import endings, marks

BLANK_LINE = re.compile(r"\r?\n[ \t]*\r?\n")
HEADER = re.compile(r"[!-9;-~]+:|From ")
"""Start of a header line: a name without spaces and a colon; or the "From " line that precedes each
message in a mailbox.
"""
SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
ANSWER = re.compile(r"\s*(?:re(?:\[\d+\]|\^\d+|\*\d+)?\s*:\s*)+", re.IGNORECASE)
MARK = "|||"
NEAR = 2
"""Number of words on each side that are also features together with their position."""


def subject(post: str) -> str:
    """Return the subject of a raw e-mail or post, without leading "Re:"; empty if there is none.

    >>> subject("From: a@b.c\\nSubject: Re: RE: old bikes\\n\\nI sold mine.")
    'old bikes'
    """
    header = SUBJECT.search(_split_post(post)[0].replace("\r\n", "\n"))
    if header is None:
        return ""
    return ANSWER.sub("", " ".join(header[1].split()), count=1).strip()


def body(post: str) -> str:
    """Return the part of a raw e-mail or post after the headers; all of it without headers.

    >>> body("From: a@b.c\\nSubject: Re: old bikes\\n\\nI sold mine.")
    'I sold mine.'
    """
    return _split_post(post)[1]


def spelling(item: Any) -> list[str]:
    """Return features of the form of a phrase, independent of its context: the phrase and each of
    its words, suffixes of the last word, and marks such as capitals or digits.

    The item is ``(left, words, right)``, each a text or a list of words, or all in one text:
    ``left ||| words ||| right``.

    >>> spelling("flights to ||| New York ||| were late")
    ['=New York', 'New', 'York', '-rk', '-ork', '+A']
    """
    named = _split_context(item)[1]
    if not named:
        return []
    looks = dict.fromkeys(f"+{mark}" for word in named for mark in marks(word))
    last = [f"-{end}" for end in endings(named[-1])[1:]]
    return [f"={' '.join(named)}", *named, *last, *looks]


def context(item: Any) -> list[str]:
    """Return features of the context of a phrase, independent of its form: the other words of the
    sentence in lower case, and the nearest ones again with their position. See `spelling` for the
    form of an item.

    >>> context("flights to ||| New York ||| were late")
    ['flights', 'to', 'were', 'late', 'to_', 'flights·to_', '_were', '_were·late']
    """
    left, _, right = ([word.lower() for word in words] for words in _split_context(item))
    before = [f"{'·'.join(left[-n:])}_" for n in range(1, min(NEAR, len(left)) + 1)]
    after = [f"_{'·'.join(right[:n])}" for n in range(1, min(NEAR, len(right)) + 1)]
    return [*left, *right, *before, *after]


NAMED: Mapping[str, Callable[[Any], Any]] = {
    view.__name__: view for view in (subject, body, spelling, context)
}
"""Predefined views by name."""


def _split_post(post: str) -> tuple[str, str]:
    """Split a post into headers and body.

    The lines before the first blank line are headers if all of them look like headers.
    """
    if not isinstance(post, str):
        raise DataError(f"{brief(post)} is not a text", "the views subject and body need raw posts")
    head, *rest = BLANK_LINE.split(post.lstrip("\r\n"), maxsplit=1)
    lines = head.splitlines()
    if lines and HEADER.match(lines[0]) and all(x[:1] in " \t" or HEADER.match(x) for x in lines):
        return head, "".join(rest)
    return "", post


def _split_context(item: Any) -> list[list[str]]:
    """Split an item into left context, phrase and right context, each a list of words."""
    parts = item.split(MARK) if isinstance(item, str) else item
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise DataError(
            f"{brief(item)} is not a phrase in its context",
            f"give left {MARK} words {MARK} right, or (left, words, right)",
        )
    return [
        part.split() if isinstance(part, str) else [str(word) for word in part] for part in parts
    ]


View = str | slice | Sequence[int] | Array | Callable[[Any], Any]


class Views:
    """Several views of the same items: converts items into a feature matrix for each view.

    ``given``        the views: each is a set of columns of one matrix (a slice, or column numbers),
                     a name, or a function of an item; a mapping gives them names
    ``vectorizer``   counts the words of texts: one for all views, or a mapping; None: the default

    The attribute ``whole`` reads the matrix if all views are columns of one matrix.
    """

    def __init__(self, given: Any, vectorizer: Any = None) -> None:
        self._views = name_views(given)
        self.names = list(self._views)
        vectorizers = each_of(self.names, vectorizer, "vectorizer")
        self._readers = {name: Reader(vectorizers[name]) for name in self.names}
        self.whole = Reader(owner="CoTraining")

    def learn(self, X: Any) -> list[Any]:
        """Return the matrices of the training items, and remember their words or columns."""
        return self._read(X, Reader.learn)

    def read(self, X: Any) -> list[Any]:
        """Return the matrices of new items, with the columns of the training items."""
        return self._read(X, Reader.read)

    def _read(self, X: Any, read: Callable[[Reader, Any], Any]) -> list[Any]:
        if hasattr(X, "__array__") and not hasattr(X, "ndim"):
            X = np.asarray(X)
        # a data frame whose columns are the views is not treated as one matrix
        has_names = hasattr(X, "columns") and self._are_names()
        if not has_names and (getattr(X, "ndim", 1) == 2 or _is_table(X)):
            for name, view in self._views.items():
                if isinstance(view, str) or callable(view):
                    raise DataError(
                        f"the data are one matrix, but the view {name!r} is {brief(view)}",
                        "give its columns: a slice such as slice(0, 100), or their numbers",
                    )
            matrix = read(self.whole, X)
            parts = [_take_columns(matrix, view, name) for name, view in self._views.items()]
        else:
            parts = self._split(X)
        matrices: list[Any] = []
        for (name, reader), part in zip(self._readers.items(), parts, strict=True):
            try:
                matrices.append(read(reader, part))
            except DataError as error:
                raise DataError(f"the view {name!r}: {error.message}", error.hint) from error
            if matrices[-1].shape[0] != matrices[0].shape[0]:
                raise DataError(
                    f"inconsistent numbers of samples: the view {name!r} has "
                    f"{matrices[-1].shape[0]} items, while {self.names[0]!r} has "
                    f"{matrices[0].shape[0]}",
                    "give the same items, in the same order, in every view",
                )
        return matrices

    def _split(self, X: Any) -> list[Any]:
        """Return the part of the items that each view uses, if they are not one matrix."""
        if isinstance(X, str | bytes):
            raise DataError(f"the data are one text: {brief(X)}", "give a list of items")
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            return [_take_part(X, view, name) for name, view in self._views.items()]
        if isinstance(X, list | tuple) and X and all(getattr(x, "ndim", 1) == 2 for x in X):
            if len(X) != len(self._views) or not self._are_names():
                raise DataError(
                    f"{len(X)} matrices for the views {brief(list(self._views.values()))}",
                    "give one name for each matrix, in their order",
                )
            return list(X)
        if not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
            raise DataError(
                f"cannot read items from {brief(X)}",
                "Reshape your data: a matrix (one row per item), a list or mapping of matrices, "
                "or a list of raw items",
            )
        items = list(X)
        if not items:
            raise DataError("there are no items", "give at least one")
        return [_view_items(items, view, name) for name, view in self._views.items()]

    def _are_names(self) -> bool:
        return all(isinstance(view, str) for view in self._views.values())


def name_views(given: Any) -> dict[str, View]:
    """Return the views by name: their own, that of their function, or their number.

    >>> list(name_views(["subject", len, slice(0, 9)]))
    ['subject', 'len', 'view 3']
    """
    views: dict[str, View] = {}
    if isinstance(given, Mapping):
        views = {str(name): view for name, view in given.items()}
    elif isinstance(given, Iterable) and not isinstance(given, str):
        listed = list(given)
        for number, view in enumerate(listed, 1):
            default = getattr(view, "__name__", f"view {number}")
            views[view if isinstance(view, str) else default] = view
        if len(views) < len(listed):
            raise LearnerError(
                f"views={brief(given)}: several have the same name",
                "give a mapping from different names to the views",
            )
    if len(views) < 2:
        raise LearnerError(
            f"views={brief(given)}: there must be two or more",
            "give slices or arrays of columns, names, or functions of an item",
        )
    return views


def each_of(names: Sequence[str], given: Any, what: str) -> dict[str, Any]:
    """Return a setting for each view: the same for all, or the entries of a mapping."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        raise LearnerError(
            f"{what} is given for {brief(list(given))}, while the views are {brief(list(names))}",
            f"give one {what} for all views, or one for each",
        )
    return {name: given[name] for name in names}


def _is_table(X: Any) -> bool:
    """Return whether X is a list of rows of numbers."""
    if not isinstance(X, list | tuple) or not X:
        return False
    try:
        return np.asarray(X[0], dtype=np.float64).ndim == 1
    except (TypeError, ValueError):
        return False


def _take_columns(matrix: Any, view: Any, name: str) -> Any:
    """Return the columns of a matrix that belong to a view."""
    try:
        part = matrix[:, view if isinstance(view, slice) else np.atleast_1d(view)]
    except IndexError as error:
        raise DataError(f"the view {name!r}: {error}", "number columns from 0") from error
    if part.shape[1] == 0:
        raise DataError(
            f"the view {name!r} has no columns: the matrix has {matrix.shape[1]} feature(s)",
            "choose columns that exist",
        )
    return part


def _take_part(X: Any, view: View, name: str) -> Any:
    """Return the named part of the data that belongs to a view."""
    if not isinstance(view, str):
        raise DataError(
            f"the data have named parts, but the view {name!r} is {brief(view)}",
            "give the name of the part",
        )
    if view not in X:
        raise DataError(f"the data have no {view!r}", f"they have {', '.join(map(str, X))}")
    part = X[view]
    if hasattr(part, "to_numpy"):  # a column of a data frame
        part = part.to_numpy()
        return part.tolist() if part.dtype.kind in "OUT" else part.reshape(len(part), -1)
    return part


def _view_items(items: Sequence[Any], view: View, name: str) -> list[Any]:
    """Apply a view, a function or a key, to raw items."""
    if callable(view):
        return [view(item) for item in items]
    if not isinstance(view, str):
        raise DataError(
            f"the view {name!r} is {brief(view)}, but the data are not a matrix",
            "columns need a matrix (Reshape your data?); for other items, give a name or a "
            "function",
        )
    if all(isinstance(item, Mapping) for item in items):
        if not any(view in item for item in items):
            raise DataError(
                f"no item has a {view!r}", f"the first has {', '.join(map(str, items[0]))}"
            )
        parts = [item.get(view) for item in items]
        empty: Any = [] if any(isinstance(part, list) for part in parts) else ""
        return [empty if part is None else part for part in parts]
    if view not in NAMED:
        raise DataError(
            f"there is no view named {view!r}",
            f"give one of {', '.join(NAMED)}, a function, or items that are mappings",
        )
    return [NAMED[view](item) for item in items]


# Combination of the posteriors of several views; some views may have no evidence on an item


def product(
    posteriors: Sequence[FloatArray], informed: Sequence[BoolArray], prior: FloatArray
) -> FloatArray:
    """Multiply the views' posteriors: Π_v p_v(class | item), normalised, over views with evidence.

    ``posteriors``  an array (items, classes) for each view
    ``informed``    for each view, whether it has evidence on each item (items,)
    ``prior``       (classes,): the result for items on which no view has evidence

    >>> views = [np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]])]
    >>> product(views, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    logs = np.zeros_like(posteriors[0])
    for view, has_evidence in zip(posteriors, informed, strict=True):
        logs += np.where(has_evidence[:, None], log_posteriors(view), 0.0)
    return np.where(np.logical_or.reduce(informed)[:, None], softmax(logs, axis=1), prior)


def agreement(
    posteriors: Sequence[FloatArray], informed: Sequence[BoolArray], prior: FloatArray
) -> FloatArray:
    """Average the views' posteriors where all views agree on the best class; elsewhere return that
    of the most confident view. For the arguments see `product`.

    >>> views = [np.array([[0.6, 0.4]]), np.array([[0.2, 0.8]])]
    >>> agreement(views, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    stacked, has_evidence = np.stack(posteriors), np.stack(informed)
    rows = np.arange(stacked.shape[1])
    surest = np.where(has_evidence, stacked.max(axis=2), -1.0).argmax(axis=0)
    best = stacked.argmax(axis=2)
    agreed = ((best == best[surest, rows]) | ~has_evidence).all(axis=0)
    weights = has_evidence / np.maximum(has_evidence.sum(axis=0), 1)
    mean = np.einsum("vi,vik->ik", weights, stacked)
    combined = np.where(agreed[:, None], mean, stacked[surest, rows])
    return np.where(np.logical_or.reduce(has_evidence)[:, None], combined, prior)


PREDICTIONS = {"product": product, "agreement": agreement}
"""Functions that combine the posteriors of views, by the values of ``prediction``."""


# Choice of the items that a classifier labels in a round

USUAL_ROUNDS = 20
"""By default, all items are labelled in about this many rounds."""
DIGITS = 12
"""Confidences are rounded to this many decimals, so that rounding errors do not break ties."""


class ProposedLabels(NamedTuple):
    """Labels proposed by a view: the items, their class numbers, and the view's confidence."""

    items: IntArray
    labels: IntArray
    confidence: FloatArray


def most_confident(items: IntArray, posteriors: FloatArray, quota: IntArray) -> ProposedLabels:
    """Choose the most confidently classified items of each class, up to the quota of the class.

    ``items``       item numbers
    ``posteriors``  p(class | item), a row for each of ``items``; an item counts only for its most
                    probable class, and among equals the first come first
    ``quota``       (classes,): maximum number of items of each class

    >>> posteriors = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> most_confident(np.array([4, 5, 7]), posteriors, np.array([1, 1])).items
    array([4, 7])
    """
    labels, confidence = posteriors.argmax(axis=1), np.round(posteriors.max(axis=1), DIGITS)
    order = np.lexsort((items, -confidence, labels))
    first = np.searchsorted(labels[order], labels[order])
    chosen = order[np.arange(len(order)) - first < quota[labels[order]]]
    return ProposedLabels(items[chosen], labels[chosen], confidence[chosen])


def read_quota(per_class: Any, classes: Array, labels: IntArray, n_views: int) -> IntArray:
    """Return the number of items of each class that a view labels in a round.

    By default (``per_class=None``), all items are labelled in about `USUAL_ROUNDS` rounds, with
    classes in the proportions of the given labels.
    """
    if per_class is None:
        known = labels[labels >= 0]
        proportions = np.bincount(known, minlength=len(classes)) / len(known)
        n_unlabelled = len(labels) - len(known)
        quota = np.rint(n_unlabelled * proportions / (USUAL_ROUNDS * n_views))
        return np.maximum(quota, 1.0).astype(np.int64)
    names = classes.tolist()
    if not isinstance(per_class, Mapping):
        return np.full(len(names), per_class, dtype=np.int64)
    if set(per_class) != set(names):
        raise LearnerError(
            f"per_class is given for {brief(list(per_class))}, while the classes are "
            f"{brief(names)}",
            "give a number for every class, or one for all",
        )
    return np.array([per_class[name] for name in names], dtype=np.int64)


class CoTraining(CoTrainingParameters, SemiSupervisedClassifier):
    """Co-training of classifiers on different views of the same items.

    In every round, each view's classifier is fitted to all items labelled so far, and labels the
    unlabelled items of which it is most confident, some of each class; all views learn from these
    labels in the next round (Blum & Mitchell 1998). Co-training helps if each view alone is enough
    to tell the classes apart, and the confident labels of one view are informative for the others.
    Labels are never changed.

    ``views``        two or more views of an item. For one matrix: columns, as slices or arrays of
                     column numbers. For a list or mapping of matrices (or of lists of texts): their
                     names. For items that are mappings: keys. For other raw items: functions of an
                     item, or the names of predefined views: subject, body (of a raw post),
                     spelling, context (of a phrase in its sentence). A mapping names the views.
    ``classifier``   a scikit-learn classifier for all views, or a mapping with one for each. None:
                     Naive Bayes over words (α = 0.1, long texts scaled down to 50 words). If it has
                     no predict_proba, the softmax of decision_function is used, or its logistic if
                     there are two classes
    ``per_class``    number of items of each class that a view labels in a round, or a mapping from
                     classes to numbers. None: such that all items are labelled in about 20 rounds,
                     with classes in the proportions of the given labels
    ``rounds``       maximum number of rounds
    ``pool``         size of the pool of unlabelled items to choose from, drawn at random and
                     refilled in every round; None: all items
    ``prediction``   product: multiply the views' probabilities; agreement: the class that all views
                     agree on, else that of the most confident view
    ``vectorizer``   counts words if views are texts or lists of words; a mapping: one for each view
    ``random_state`` seed of the draws of the pool

    A view is silent on an item that shares no column (no word) with the items it was fitted to: it
    neither chooses the item nor contributes to its prediction. Items on which all views are silent
    get the class proportions among all labels. If two views propose different labels for an item,
    the more confident view wins; among equally confident items and views, the first.

    Attributes after ``fit``: ``transduction_`` (a label for every item: given, assigned by a view,
    or predicted), ``confidence_`` (the final probability of that label by all views; 1 if it was
    given), ``silent_`` (whether all views are silent on an item), ``history_``,
    ``view_classifiers_`` by name of view, ``classes_``, ``verdict_``.

    >>> posts = [{"subject": "car for sale", "body": "two doors"},
    ...          {"subject": "my hockey team", "body": "goal after goal"},
    ...          {"subject": "sale", "body": "new engine"}, {"subject": "hockey", "body": "puck"},
    ...          {"subject": "", "body": "engine trouble"}, {"subject": "?", "body": "puck lost"}]
    >>> model = CoTraining(["subject", "body"]).fit(posts, ["auto", "sport", -1, -1, -1, -1])
    >>> model.transduction_.tolist()
    ['auto', 'sport', 'auto', 'sport', 'auto', 'sport']
    >>> model.history_.of(5)[0].view
    'body'
    """

    confidence_: FloatArray
    silent_: BoolArray
    view_classifiers_: dict[str, Any]
    verdict_: Verdict

    def estimate(self, X: Any, y: Any) -> Estimate:
        """Estimate the memory that `fit` will need, and its work per round, without fitting."""
        check_parameters(self)
        first, *others = Views(self.views, self.vectorizer).learn(X)
        n_classes = len(hard_labels(y, first.shape[0]).classes)
        total = estimate_rows(first, n_classes)
        for matrix in others:
            more = estimate_rows(matrix, n_classes)
            total = total.plus(more.work, **more.parts)
        return total

    def fit(self, X: Any, y: Any, *, gold: Any = None) -> Self:
        """Fit to partially labelled items (−1 or None: unknown).

        ``gold``  true labels, as far as they are known, for the accuracy in ``history_``
        """
        with all_or_nothing(self):
            check_parameters(self)
            self._views = Views(self.views, self.vectorizer)
            matrices = self._views.learn(X)
            labels = hard_labels(y, matrices[0].shape[0])
            given = labels.numbers
            warn_of_unlabelled_fold()
            self.classes_ = labels.classes
            self.n_features_in_ = self._views.whole.n_columns or sum(
                matrix.shape[1] for matrix in matrices
            )
            self.history_ = History.begin(labels.classes, given, gold)
            learned = self._teach(matrices, given)
            posteriors, informed = self._posteriors(matrices)
            chosen = np.where(learned == UNKNOWN, posteriors.argmax(axis=1), learned)
            self.transduction_ = self.classes_[chosen]
            confidence = posteriors[np.arange(len(chosen)), chosen]
            self.confidence_ = np.where(given == UNKNOWN, confidence, 1.0)
            self.silent_ = (given == UNKNOWN) & ~np.any(informed, axis=0)
        return self

    @interrupt.graceful()
    def _teach(self, matrices: list[Any], labels: IntArray) -> IntArray:
        """Run all rounds; return the class number of each item, −1 if no view labelled it."""
        quota = read_quota(self.per_class, self.classes_, labels, len(matrices))
        order = generator(self.random_state).permutation(np.flatnonzero(labels == UNKNOWN))
        present = [indicator_matrix(matrix) for matrix in matrices]
        self.verdict_ = Verdict.OUT_OF_STEPS
        for number in range(self.rounds + 1):
            self._fit_views(matrices, present, labels)
            informed = self._find_evidence(present)
            free = (labels == UNKNOWN) & np.any(informed, axis=0)
            pool = np.sort(order[free[order]][: self.pool])
            proposals = []
            classifiers = self.view_classifiers_.values()
            for classifier, matrix, has_evidence in zip(
                classifiers, matrices, informed, strict=True
            ):
                items = pool[has_evidence[pool]]
                posteriors: FloatArray = np.zeros((0, len(self.classes_)))
                if len(items):
                    posteriors = posterior(classifier, matrix[items])
                proposals.append(most_confident(items, posteriors, quota))
            if not any(len(proposed.items) for proposed in proposals):
                self.verdict_ = Verdict.CONVERGED
                break
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number:,} rounds: the labels given by then are kept")
                break
            if number == self.rounds:
                break
            # if two views propose the same item, the more confident one wins; if equal, the first
            labels, confidence = labels.copy(), np.zeros(len(labels))
            teacher = np.full(len(labels), "", dtype=object)
            for name, proposed in zip(self._views.names, proposals, strict=True):
                surer = proposed.confidence > confidence[proposed.items]
                items = proposed.items[surer]
                labels[items], confidence[items] = (
                    proposed.labels[surer],
                    proposed.confidence[surer],
                )
                teacher[items] = name
            self.history_.record(labels, confidence, teacher)
        return labels

    @interrupt.whole()
    def _fit_views(self, matrices: list[Any], present: list[Any], labels: IntArray) -> None:
        """Fit every view's classifier to all items labelled so far."""
        known = np.flatnonzero(labels != UNKNOWN)
        templates = each_of(self._views.names, self.classifier, "classifier")
        self.view_classifiers_ = {}
        for (name, template), matrix in zip(templates.items(), matrices, strict=True):
            classifier = few_labels_bayes() if template is None else clone_classifier(template)
            classifier.fit(matrix[known], self.classes_[labels[known]])
            self.view_classifiers_[name] = classifier
        self._seen = [np.asarray(view[known].sum(axis=0)).ravel() > 0.0 for view in present]
        self._prior = np.bincount(labels[known], minlength=len(self.classes_)) / len(known)

    def _find_evidence(self, present: list[Any]) -> list[BoolArray]:
        """Return, for each view, whether each item has a column seen by the view's classifier."""
        return [
            np.asarray(view @ seen.astype(np.float64)).ravel() > 0.0
            for view, seen in zip(present, self._seen, strict=True)
        ]

    def _posteriors(self, matrices: list[Any]) -> tuple[FloatArray, list[BoolArray]]:
        """Return the combined p(class | item), and for each view the items it has evidence on."""
        informed = self._find_evidence([indicator_matrix(matrix) for matrix in matrices])
        by_view = list(self._view_posteriors(matrices).values())
        return PREDICTIONS[self.prediction](by_view, informed, self._prior), informed

    def _view_posteriors(self, matrices: list[Any]) -> dict[str, FloatArray]:
        classifiers = self.view_classifiers_.items()
        return {
            name: posterior(classifier, matrix)
            for (name, classifier), matrix in zip(classifiers, matrices, strict=True)
        }

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for each item, in the order of ``classes_``."""
        require_fitted(self)
        return self._posteriors(self._views.read(X))[0]

    def view_proba(self, X: Any) -> dict[str, FloatArray]:
        """Return the class probabilities of each view's classifier alone, by name of view."""
        require_fitted(self)
        return self._view_posteriors(self._views.read(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        used = self.classifier if isinstance(self.classifier, Mapping) else {"": self.classifier}
        counts_only = [c is None or not takes_negative(c) for c in used.values()]
        tags.input_tags.positive_only = any(counts_only)
        tags.classifier_tags.poor_score = any(c is None for c in used.values())
        return tags
