"""`CoTraining`: views that teach each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import Estimate, of_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_parameters, generator
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.core.verdict import Verdict
from softcount.labels.data import (
    Reader,
    SemiSupervisedClassifier,
    few_labels_bayes,
    hard_labels,
    log_shares,
    occurs,
    own_copy,
    posterior,
    takes_negative,
)
from softcount.labels.history import History
from softcount.labels.parameters import CoTrainingParameters
from softcount.mixture.data import UNKNOWN
from softcount.mixture.model_selection import warn_of_unlabelled_fold
from softcount.text.tokenise import endings, marks

BLANK_LINE = re.compile(r"\r?\n[ \t]*\r?\n")
HEADER = re.compile(r"[!-9;-~]+:|From ")
"""How the line of a header begins: a name without spaces and a colon; or the line before a post in
a mailbox.
"""
SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
ANSWER = re.compile(r"\s*(?:re(?:\[\d+\]|\^\d+|\*\d+)?\s*:\s*)+", re.IGNORECASE)
MARK = "|||"
NEAR = 2
"""How many words on each side are looked at together with their place."""


def subject(post: str) -> str:
    """The subject of a raw e-mail or post, without any Re: before it; empty if there is none.

    >>> subject("From: a@b.c\\nSubject: Re: RE: old bikes\\n\\nI sold mine.")
    'old bikes'
    """
    header = SUBJECT.search(_split_post(post)[0].replace("\r\n", "\n"))
    if header is None:
        return ""
    return ANSWER.sub("", " ".join(header[1].split()), count=1).strip()


def body(post: str) -> str:
    """What comes after the headers of a raw e-mail or post; all of it if there are none.

    >>> body("From: a@b.c\\nSubject: Re: old bikes\\n\\nI sold mine.")
    'I sold mine.'
    """
    return _split_post(post)[1]


def spelling(item: Any) -> list[str]:
    """What some words look like, whatever stands around them: the words together and one by one,
    the ending of the last, and marks such as capitals or digits.

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
    """What stands around some words, whatever they look like: the words of the sentence in lower
    case, and those nearest by once more with their place. See `spelling` for the form of an item.

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
"""Views that are known by name."""


def _split_post(post: str) -> tuple[str, str]:
    """Headers and body. What stands before the first blank line is headers if all of it is."""
    if not isinstance(post, str):
        raise DataError(f"{brief(post)} is no text", "subject and body are those of a raw post")
    head, *rest = BLANK_LINE.split(post.lstrip("\r\n"), maxsplit=1)
    lines = head.splitlines()
    if lines and HEADER.match(lines[0]) and all(x[:1] in " \t" or HEADER.match(x) for x in lines):
        return head, "".join(rest)
    return "", post


def _split_context(item: Any) -> list[list[str]]:
    """Left words, words, right words."""
    parts = item.split(MARK) if isinstance(item, str) else item
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise DataError(
            f"{brief(item)} is not a word in its sentence",
            f"give left {MARK} words {MARK} right, or (left, words, right)",
        )
    return [
        part.split() if isinstance(part, str) else [str(word) for word in part] for part in parts
    ]


View = str | slice | Sequence[int] | Array | Callable[[Any], Any]


class Views:
    """Several views of the same items: from items as users give them to a matrix for each view.

    ``given``        each view: columns of one matrix (a slice, or their numbers), a name, or a
                     function of an item; in a mapping, under names of their own
    ``vectorizer``   what counts the words of texts: one for all views, or a mapping; None: as
                     everywhere

    ``whole``        reads the one matrix of which views are columns, if they are
    """

    def __init__(self, given: Any, vectorizer: Any = None) -> None:
        self._views = name_views(given)
        self.names = list(self._views)
        chosen = each_of(self.names, vectorizer, "vectorizer")
        self._readers = {name: Reader(one) for name, one in chosen.items()}
        self.whole = Reader(owner="CoTraining")

    def learn(self, X: Any) -> list[Any]:
        """The matrices of the items; their words and columns are what is expected of others."""
        return self._read(X, Reader.learn)

    def read(self, X: Any) -> list[Any]:
        """The matrices of other items."""
        return self._read(X, Reader.read)

    def _read(self, X: Any, read: Callable[[Reader, Any], Any]) -> list[Any]:
        if hasattr(X, "__array__") and not hasattr(X, "ndim"):
            X = np.asarray(X)
        # a data frame whose columns have the names of views is no matrix
        has_names = hasattr(X, "columns") and self._are_names()
        if not has_names and (getattr(X, "ndim", 1) == 2 or _is_table(X)):
            for name, view in self._views.items():
                if isinstance(view, str) or callable(view):
                    raise DataError(
                        f"the data are one matrix, and the view {name!r} is {brief(view)}",
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
        """What each view sees of items that are no one matrix."""
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
                "Reshape your data: a matrix (one row an item), a list or mapping of matrices, or "
                "a list of raw items",
            )
        items = list(X)
        if not items:
            raise DataError("there are no items", "give at least one")
        return [_view_items(items, view, name) for name, view in self._views.items()]

    def _are_names(self) -> bool:
        return all(isinstance(view, str) for view in self._views.values())


def name_views(given: Any) -> dict[str, View]:
    """Every view under a name: its own, its function's, or its number.

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
                "give a mapping, with a name of its own for every view",
            )
    if len(views) < 2:
        raise LearnerError(
            f"views={brief(given)}: there must be two or more",
            "give slices or arrays of columns, names, or functions of an item",
        )
    return views


def each_of(names: Sequence[str], given: Any, what: str) -> dict[str, Any]:
    """The same for every view, or what a mapping gives each of them."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        raise LearnerError(
            f"{what} is given for {brief(list(given))}, while the views are {brief(list(names))}",
            f"give one {what} for all views, or one for each",
        )
    return {name: given[name] for name in names}


def _is_table(X: Any) -> bool:
    """Whether this is a list of rows of numbers."""
    if not isinstance(X, list | tuple) or not X:
        return False
    try:
        return np.asarray(X[0], dtype=np.float64).ndim == 1
    except (TypeError, ValueError):
        return False


def _take_columns(matrix: Any, view: Any, name: str) -> Any:
    """Some columns of one matrix."""
    try:
        part = matrix[:, view if isinstance(view, slice) else np.atleast_1d(view)]
    except IndexError as error:
        raise DataError(f"the view {name!r}: {error}", "number columns from 0") from error
    if part.shape[1] == 0:
        raise DataError(
            f"the view {name!r} has no columns: the matrix has {matrix.shape[1]} feature(s)",
            "give columns that exist",
        )
    return part


def _take_part(X: Any, view: View, name: str) -> Any:
    """A part of data that come in parts with names."""
    if not isinstance(view, str):
        raise DataError(
            f"the data have parts with names, and the view {name!r} is {brief(view)}",
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
    """What a function, or a key, makes of raw items."""
    if callable(view):
        return [view(item) for item in items]
    if not isinstance(view, str):
        raise DataError(
            f"the view {name!r} is {brief(view)}, while the data are no matrix",
            "columns are those of a matrix (Reshape your data?); of other items give a name or a "
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
            f"no view is known by the name {view!r}",
            f"give one of {', '.join(NAMED)}, a function, or items that are mappings",
        )
    return [NAMED[view](item) for item in items]


# The posteriors of several views combined; some may have nothing to say of an item


def product(
    posteriors: Sequence[FloatArray], speaks: Sequence[BoolArray], prior: FloatArray
) -> FloatArray:
    """Π_v p_v(class | item), renormalised, over the views that can say something of the item.

    ``posteriors`` has an array (items, classes) for each view, ``speaks`` whether each item has
    something in that view. Where none has, the answer is the ``prior``.

    >>> both = [np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]])]
    >>> product(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    logs = np.zeros_like(posteriors[0])
    for one, heard in zip(posteriors, speaks, strict=True):
        logs += np.where(heard[:, None], log_shares(one), 0.0)
    return np.where(np.logical_or.reduce(speaks)[:, None], softmax(logs, axis=1), prior)


def agreement(
    posteriors: Sequence[FloatArray], speaks: Sequence[BoolArray], prior: FloatArray
) -> FloatArray:
    """The class that all views agree on, with the mean of their probabilities; where they do not
    agree, what the most confident of them says. For the arguments see `product`.

    >>> both = [np.array([[0.6, 0.4]]), np.array([[0.2, 0.8]])]
    >>> agreement(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    stacked, heard = np.stack(posteriors), np.stack(speaks)
    rows = np.arange(stacked.shape[1])
    surest = np.where(heard, stacked.max(axis=2), -1.0).argmax(axis=0)
    best = stacked.argmax(axis=2)
    agreed = ((best == best[surest, rows]) | ~heard).all(axis=0)
    weights = heard / np.maximum(heard.sum(axis=0), 1)
    mean = np.einsum("vi,vik->ik", weights, stacked)
    combined = np.where(agreed[:, None], mean, stacked[surest, rows])
    return np.where(np.logical_or.reduce(heard)[:, None], combined, prior)


PREDICTIONS = {"product": product, "agreement": agreement}
"""How the posteriors of views are combined."""


# Which items a classifier labels in a round

USUAL_ROUNDS = 20
"""In about so many rounds everything is labelled, unless users say how many items a round."""
DIGITS = 12
"""Confidence that differs in later digits is the same, so that rounding settles nothing."""


class ProposedLabels(NamedTuple):
    """Labels that one view proposes: the items, their classes as numbers, and its confidence."""

    items: IntArray
    labels: IntArray
    confidence: FloatArray


def most_confident(items: IntArray, posteriors: FloatArray, quota: IntArray) -> ProposedLabels:
    """The items of each class of which a classifier is surest, as many as the class's quota.

    ``posteriors`` are p(class | item), a row for each of ``items``. An item stands for its
    likeliest class only. Among equals the first come first.

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
    """How many items of each class a view labels in a round.

    If users do not say: such a part of the unlabelled items that they are gone in about
    `USUAL_ROUNDS` rounds, shared among classes as the given labels are.
    """
    if per_class is None:
        known = labels[labels >= 0]
        shares = np.bincount(known, minlength=len(classes)) / len(known)
        n_unlabelled = len(labels) - len(known)
        usual = np.rint(n_unlabelled * shares / (USUAL_ROUNDS * n_views))
        return np.maximum(usual, 1.0).astype(np.int64)
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
    """Co-training of classifiers that look at different sides of the same items.

    In every round each view's classifier learns from all items that have a label by now, and gives
    labels to the unlabelled items it is surest of, some of each class: for all views to learn from
    in the next round (Blum & Mitchell 1998). It helps where a view alone would do to tell the
    classes apart, and what a view is sure of is news to the others. Labels once given stay.

    ``views``        two or more ways to look at an item. Of one matrix: columns, as slices or as
                     arrays of their numbers. Of a list or mapping of matrices (or of lists of
                     texts): their names. Of items that are mappings: keys. Of other raw items:
                     functions of an item, or one of the names subject, body (of a raw post),
                     spelling, context (of words in their sentence). A mapping gives views names.
    ``classifier``   one of scikit-learn's for all views, or a mapping with one for each. None:
                     Naive Bayes of words (α = 0.1, long texts shrunk to 50 words). Without
                     predict_proba: the softmax of decision_function, the logistic of it if there
                     are two classes
    ``per_class``    how many items of each class a view gives in a round: a number, or a mapping
                     from classes. None: everything in about 20 rounds, classes as common as among
                     the given labels
    ``rounds``       at most so many
    ``pool``         choose from so many unlabelled items, drawn at random and refilled every round;
                     None: from all
    ``prediction``   product: of the views' probabilities; agreement: what all views agree on, or
                     else what the surest one says
    ``vectorizer``   what counts words where views are texts or lists of words; a mapping: each
                     view's own
    ``random_state`` of the pool

    A view is silent on an item that shares no column (no word) with the items it has learned from:
    it neither chooses it nor has a say in its prediction. Items on which all views are silent get
    the shares of classes among all labels. If two views want to give an item different labels, the
    surer one does; of items and views that are equally sure the first.

    Afterwards: ``transduction_`` (a label for every item: as given, as a view gave it, or as
    predicted), ``confidence_`` (the probability of that label by all views in the end; 1 if it was
    given), ``silent_`` (whether no view has anything to say of an item), ``history_``,
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
        """What `fit` will need: bytes, and work a round. Nothing is learned."""
        check_parameters(self)
        first, *others = Views(self.views, self.vectorizer).learn(X)
        n_classes = len(hard_labels(y, first.shape[0]).classes)
        total = of_rows(first, n_classes)
        for matrix in others:
            more = of_rows(matrix, n_classes)
            total = total.plus(more.work, **more.parts)
        return total

    def fit(self, X: Any, y: Any, *, gold: Any = None) -> Self:
        """Learn from items of which some have labels (−1 or None: unknown).

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
                one.shape[1] for one in matrices
            )
            self.history_ = History.begin(labels.classes, given, gold)
            learned = self._teach(matrices, given)
            posteriors, speaks = self._posteriors(matrices)
            chosen = np.where(learned == UNKNOWN, posteriors.argmax(axis=1), learned)
            self.transduction_ = self.classes_[chosen]
            confidence = posteriors[np.arange(len(chosen)), chosen]
            self.confidence_ = np.where(given == UNKNOWN, confidence, 1.0)
            self.silent_ = (given == UNKNOWN) & ~np.any(speaks, axis=0)
        return self

    @interrupt.graceful()
    def _teach(self, matrices: list[Any], labels: IntArray) -> IntArray:
        """All rounds; returns each item's label as a number, −1 where no view gave any."""
        quota = read_quota(self.per_class, self.classes_, labels, len(matrices))
        order = generator(self.random_state).permutation(np.flatnonzero(labels == UNKNOWN))
        present = [occurs(matrix) for matrix in matrices]
        self.verdict_ = Verdict.OUT_OF_STEPS
        for number in range(self.rounds + 1):
            self._fit_views(matrices, present, labels)
            speaks = self._which_speak(present)
            free = (labels == UNKNOWN) & np.any(speaks, axis=0)
            waiting = np.sort(order[free[order]][: self.pool])
            proposals = []
            classifiers = self.view_classifiers_.values()
            for classifier, matrix, heard in zip(classifiers, matrices, speaks, strict=True):
                items = waiting[heard[waiting]]
                posteriors: FloatArray = np.zeros((0, len(self.classes_)))
                if len(items):
                    posteriors = posterior(classifier, matrix[items])
                proposals.append(most_confident(items, posteriors, quota))
            if not any(len(one.items) for one in proposals):
                self.verdict_ = Verdict.CONVERGED
                break
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number:,} rounds: the labels given by then are kept")
                break
            if number == self.rounds:
                break
            # of two views that want the same item the surer one has it; of equals, the first
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
        """Fit every view's classifier to all items that have a label by now."""
        known = np.flatnonzero(labels != UNKNOWN)
        chosen = each_of(self._views.names, self.classifier, "classifier")
        self.view_classifiers_ = {}
        for (name, classifier), matrix in zip(chosen.items(), matrices, strict=True):
            own = few_labels_bayes() if classifier is None else own_copy(classifier)
            own.fit(matrix[known], self.classes_[labels[known]])
            self.view_classifiers_[name] = own
        self._seen = [np.asarray(one[known].sum(axis=0)).ravel() > 0.0 for one in present]
        self._prior = np.bincount(labels[known], minlength=len(self.classes_)) / len(known)

    def _which_speak(self, present: list[Any]) -> list[BoolArray]:
        """Whether each item has a column, in each view, that its classifier has learned from."""
        return [
            np.asarray(one @ seen.astype(np.float64)).ravel() > 0.0
            for one, seen in zip(present, self._seen, strict=True)
        ]

    def _posteriors(self, matrices: list[Any]) -> tuple[FloatArray, list[BoolArray]]:
        """p(class | item) of all views together, and on which items each view speaks."""
        speaks = self._which_speak([occurs(matrix) for matrix in matrices])
        by_view = list(self._view_posteriors(matrices).values())
        return PREDICTIONS[self.prediction](by_view, speaks, self._prior), speaks

    def _view_posteriors(self, matrices: list[Any]) -> dict[str, FloatArray]:
        classifiers = self.view_classifiers_.items()
        return {
            name: posterior(classifier, matrix)
            for (name, classifier), matrix in zip(classifiers, matrices, strict=True)
        }

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._posteriors(self._views.read(X))[0]

    def view_proba(self, X: Any) -> dict[str, FloatArray]:
        """What each view's classifier says by itself, by the names of the views."""
        check_is_fitted(self)
        return self._view_posteriors(self._views.read(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        used = self.classifier if isinstance(self.classifier, Mapping) else {"": self.classifier}
        counts_only = [one is None or not takes_negative(one) for one in used.values()]
        tags.input_tags.positive_only = any(counts_only)
        tags.classifier_tags.poor_score = any(one is None for one in used.values())
        return tags
