"""`CoTraining`: views that teach each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from softcount.core import interrupt
from softcount.core.bounds import within_range
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import Estimate, of_rows
from softcount.core.estimator import SklearnContract, all_or_nothing
from softcount.core.parameters import check_whole, generator
from softcount.core.types import Array
from softcount.core.verdict import Verdict
from softcount.labels.data import (
    Reader,
    columns_in,
    demand_names,
    few_labels_bayes,
    hard_labels,
    log_shares,
    names_in,
    occurs,
    own_copy,
    posterior,
    shares_columns,
    takes_negative,
)
from softcount.labels.history import History, gold_numbers
from softcount.mixture.data import UNKNOWN
from softcount.mixture.model_selection import ScoresLabelled, warn_of_unlabelled_fold
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
    found = SUBJECT.search(_cut(post)[0].replace("\r\n", "\n"))
    if found is None:
        return ""
    return ANSWER.sub("", " ".join(found[1].split()), count=1).strip()


def body(post: str) -> str:
    """What comes after the headers of a raw e-mail or post; all of it if there are none.

    >>> body("From: a@b.c\\nSubject: Re: old bikes\\n\\nI sold mine.")
    'I sold mine.'
    """
    return _cut(post)[1]


def spelling(item: Any) -> list[str]:
    """What some words look like, whatever stands around them: the words together and one by one,
    the ending of the last, and marks such as capitals or digits.

    The item is ``(left, words, right)``, each a text or a list of words, or all in one text:
    ``left ||| words ||| right``.

    >>> spelling("flights to ||| New York ||| were late")
    ['=New York', 'New', 'York', '-rk', '-ork', '+A']
    """
    named = _three(item)[1]
    if not named:
        return []
    found = {f"+{mark}": None for word in named for mark in marks(word)}
    last = [f"-{end}" for end in endings(named[-1])[1:]]
    return [f"={' '.join(named)}", *named, *last, *found]


def context(item: Any) -> list[str]:
    """What stands around some words, whatever they look like: the words of the sentence in lower
    case, and those nearest by once more with their place. See `spelling` for the form of an item.

    >>> context("flights to ||| New York ||| were late")
    ['flights', 'to', 'were', 'late', 'to_', 'flights·to_', '_were', '_were·late']
    """
    left, _, right = ([word.lower() for word in words] for words in _three(item))
    before = [f"{'·'.join(left[-n:])}_" for n in range(1, min(NEAR, len(left)) + 1)]
    after = [f"_{'·'.join(right[:n])}" for n in range(1, min(NEAR, len(right)) + 1)]
    return [*left, *right, *before, *after]


NAMED: Mapping[str, Callable[[Any], Any]] = {
    "subject": subject,
    "body": body,
    "spelling": spelling,
    "context": context,
}
"""Views that are known by name."""


def _cut(post: str) -> tuple[str, str]:
    """Headers and body. What stands before the first blank line is headers if all of it is."""
    if not isinstance(post, str):
        raise DataError(f"{brief(post)} is no text", "subject and body are those of a raw post")
    head, *rest = BLANK_LINE.split(post.lstrip("\r\n"), maxsplit=1)
    lines = head.splitlines()
    if lines and HEADER.match(lines[0]) and all(_is_header(line) for line in lines):
        return head, "".join(rest)
    return "", post


def _is_header(line: str) -> bool:
    return line[:1] in " \t" or HEADER.match(line) is not None


def _three(item: Any) -> tuple[list[str], list[str], list[str]]:
    """Left words, words, right words."""
    parts = item.split(MARK) if isinstance(item, str) else item
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise DataError(
            f"{brief(item)} is not a word in its sentence",
            f"give left {MARK} words {MARK} right, or (left, words, right)",
        )
    left, named, right = (
        part.split() if isinstance(part, str) else [str(word) for word in part] for part in parts
    )
    return left, named, right


# Views: from items as users give them to one matrix for each way to look at them.


View = str | slice | Sequence[int] | Array | Callable[[Any], Any]


class Views:
    """Some views of the same items, learned once and read the same way ever after.

    ``given``        each view: columns of one matrix (a slice, or their numbers), a name, or a
                     function of an item; in a mapping, under names of their own
    ``vectorizer``   what counts the words of texts: one for all views, or a mapping; None: as
                     everywhere

    ``n_columns`` is that of the one matrix of which views are columns, after `learn`.
    """

    def __init__(self, given: Any, vectorizer: Any = None) -> None:
        self._views = named_views(given)
        chosen = each_of(self.names, vectorizer, "vectorizer")
        self._readers = {name: Reader(one) for name, one in chosen.items()}
        self.n_columns: int | None = None
        self._column_names: list[Any] | None = None

    @property
    def names(self) -> list[str]:
        return list(self._views)

    def learn(self, X: Any) -> list[Any]:
        """The matrices of the items; their words and columns are what is expected of others."""
        return self._matrices(X, first=True)

    def read(self, X: Any) -> list[Any]:
        """The matrices of other items."""
        return self._matrices(X, first=False)

    @property
    def readers(self) -> dict[str, Reader]:
        """How each view reads its part of an item."""
        return self._readers

    def _matrices(self, X: Any, *, first: bool) -> list[Any]:
        if hasattr(X, "__array__") and not hasattr(X, "ndim"):
            X = np.asarray(X)
        columns = _is_matrix(X, self._views)
        if columns:
            X = self._whole(X, first=first)
        parts = _columns(X, self._views) if columns else _parts(X, self._views)
        found = []
        for name, part in zip(self._views, parts, strict=True):
            reader = self._readers[name]
            try:
                found.append(reader.learn(part) if first else reader.read(part))
            except DataError as error:
                raise DataError(f"the view {name!r}: {error.message}", error.hint) from error
            if found[-1].shape[0] != found[0].shape[0]:
                raise DataError(
                    f"inconsistent numbers of samples: the view {name!r} has "
                    f"{found[-1].shape[0]} items, while {self.names[0]!r} has {found[0].shape[0]}",
                    "give the same items, in the same order, in every view",
                )
        return found

    def _whole(self, X: Any, *, first: bool) -> Any:
        """The one matrix of which views are columns."""
        if not first:
            demand_names(self._column_names, names_in(X))
        with within_range("the data"):
            matrix = check_array(X, accept_sparse="csr", dtype=np.float64)
        if first:
            self.n_columns, self._column_names = matrix.shape[1], names_in(X)
        elif self.n_columns is not None and matrix.shape[1] != self.n_columns:
            raise DataError(
                f"X has {matrix.shape[1]} features, but CoTraining is expecting {self.n_columns} "
                "features as input",
                "give the same columns as in fit",
            )
        return matrix


def named_views(given: Any) -> dict[str, View]:
    """Every view under a name: its own, its function's, or its number.

    >>> list(named_views(["subject", len, slice(0, 9)]))
    ['subject', 'len', 'view 3']
    """
    if isinstance(given, Mapping):
        views = {str(name): view for name, view in given.items()}
    elif isinstance(given, Iterable) and not isinstance(given, str):
        listed = list(given)
        names = [_name(number, view) for number, view in enumerate(listed, 1)]
        views = dict(zip(names, listed, strict=True))
        if len(views) < len(listed):
            raise LearnerError(
                f"views={brief(given)}: several have the same name",
                "give a mapping, with a name of its own for every view",
            )
    else:
        views = {}
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


def _name(number: int, view: View) -> str:
    if isinstance(view, str):
        return view
    return getattr(view, "__name__", f"view {number}")


def _parts(X: Any, views: Mapping[str, View]) -> list[Any]:
    """What each view sees of the items."""
    if isinstance(X, str | bytes):
        raise DataError(f"the data are one text: {brief(X)}", "give a list of items")
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return [_column(X, view, name) for name, view in views.items()]
    if _is_separate(X):
        return _in_order(X, views)
    if not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise DataError(
            f"cannot read items from {brief(X)}",
            "Reshape your data: a matrix (one row an item), a list or mapping of matrices, or a "
            "list of raw items",
        )
    items = list(X)
    if not items:
        raise DataError("there are no items", "give at least one")
    return [_looked_at(items, view, name) for name, view in views.items()]


def _all_names(views: Mapping[str, View]) -> bool:
    return all(isinstance(view, str) for view in views.values())


def _is_matrix(X: Any, views: Mapping[str, View]) -> bool:
    """Whether this is one matrix, and no data frame whose columns have the names of views."""
    named = hasattr(X, "columns") and _all_names(views)
    return not named and (getattr(X, "ndim", 1) == 2 or _is_table(X))


def _is_separate(X: Any) -> bool:
    """Whether these are matrices, one a view."""
    return isinstance(X, list | tuple) and bool(X) and all(getattr(x, "ndim", 1) == 2 for x in X)


def _is_table(X: Any) -> bool:
    """Whether this is a list of rows of numbers."""
    if not isinstance(X, list | tuple) or not X:
        return False
    try:
        return np.asarray(X[0], dtype=np.float64).ndim == 1
    except (TypeError, ValueError):
        return False


def _column(X: Any, view: View, name: str) -> Any:
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


def _in_order(X: Sequence[Any], views: Mapping[str, View]) -> list[Any]:
    if len(X) != len(views) or not _all_names(views):
        raise DataError(
            f"{len(X)} matrices for the views {brief(list(views.values()))}",
            "give one name for each matrix, in their order",
        )
    return list(X)


def _columns(matrix: Any, views: Mapping[str, View]) -> list[Any]:
    """Columns of one matrix."""
    found = []
    for name, view in views.items():
        if isinstance(view, str) or callable(view):
            raise DataError(
                f"the data are one matrix, and the view {name!r} is {brief(view)}",
                "give its columns: a slice such as slice(0, 100), or their numbers",
            )
        columns = view if isinstance(view, slice) else np.atleast_1d(view)
        try:
            part = matrix[:, columns]
        except IndexError as error:
            raise DataError(f"the view {name!r}: {error}", "number columns from 0") from error
        if part.shape[1] == 0:
            raise DataError(
                f"the view {name!r} has no columns: the matrix has {matrix.shape[1]} feature(s)",
                "give columns that there are",
            )
        found.append(part)
    return found


def _looked_at(items: Sequence[Any], view: View, name: str) -> list[Any]:
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
        said = [item.get(view) for item in items]
        empty: Any = [] if any(isinstance(one, list) for one in said) else ""
        return [empty if one is None else one for one in said]
    if view not in NAMED:
        raise DataError(
            f"no view is known by the name {view!r}",
            f"give one of {', '.join(NAMED)}, a function, or items that are mappings",
        )
    return [NAMED[view](item) for item in items]


# One answer from several views, of which some may have nothing to say.


def product(shares: Sequence[Array], speaks: Sequence[Array], prior: Array) -> Array:
    """Π_v p_v(class | item), renormalised, over the views that can say something of the item.

    ``shares`` has an array (items, classes) for each view, ``speaks`` whether each item has
    something in that view. Where none has, the answer is the ``prior``.

    >>> both = [np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]])]
    >>> product(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    logs = np.zeros_like(shares[0])
    for one, heard in zip(shares, speaks, strict=True):
        logs += np.where(heard[:, None], log_shares(one), 0.0)
    return _or_prior(softmax(logs, axis=1), speaks, prior)


def agreement(shares: Sequence[Array], speaks: Sequence[Array], prior: Array) -> Array:
    """The class that all views agree on, with the mean of their probabilities; where they do not
    agree, what the most confident of them says. For the arguments see `product`.

    >>> both = [np.array([[0.6, 0.4]]), np.array([[0.2, 0.8]])]
    >>> agreement(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    stacked, heard = np.stack(shares), np.stack(speaks)
    rows = np.arange(stacked.shape[1])
    surest = np.where(heard, stacked.max(axis=2), -1.0).argmax(axis=0)
    best = stacked.argmax(axis=2)
    agreed = ((best == best[surest, rows]) | ~heard).all(axis=0)
    weights = heard / np.maximum(heard.sum(axis=0), 1)
    mean = np.einsum("vi,vik->ik", weights, stacked)
    answer: Array = np.where(agreed[:, None], mean, stacked[surest, rows])
    return _or_prior(answer, speaks, prior)


def _or_prior(answer: Array, speaks: Sequence[Array], prior: Array) -> Array:
    anyone = np.logical_or.reduce(list(speaks))
    found: Array = np.where(anyone[:, None], answer, prior)
    return found


PREDICTIONS = {"product": product, "agreement": agreement}
"""How views are taken together."""


# Which items a classifier labels for the others, and who has the last word on each.


USUAL_ROUNDS = 20
"""In about so many rounds everything is labelled, unless users say how many items a round."""
EACH = "so many items of each class are labelled by each view in each round"
DIGITS = 12
"""Confidence that differs in later digits is the same, so that rounding settles nothing."""


class Gift(NamedTuple):
    """Labels that one view gives: the items, their classes as numbers, and how sure it is."""

    items: Array
    labels: Array
    confidence: Array


def most_confident(items: Array, shares: Array, quota: Array) -> Gift:
    """The items of each class of which a classifier is surest, as many as the class's quota.

    ``shares`` are p(class | item), a row for each of ``items``. An item stands for its likeliest
    class only. Among equals the first come first.

    >>> shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> most_confident(np.array([4, 5, 7]), shares, np.array([1, 1])).items
    array([4, 7])
    """
    labels, confidence = shares.argmax(axis=1), np.round(shares.max(axis=1), DIGITS)
    order = np.lexsort((items, -confidence, labels))
    first = np.searchsorted(labels[order], labels[order])
    chosen = order[np.arange(len(order)) - first < quota[labels[order]]]
    return Gift(items[chosen], labels[chosen], confidence[chosen])


def settle(gifts: Sequence[Gift], labels: Array, names: Sequence[str]) -> tuple[Array, ...]:
    """All labels, how sure each new one is, and which view gave it, after everyone has given.

    Of two views that want the same item the surer one has it; of equals, the first.
    """
    after, confidence = labels.copy(), np.zeros(len(labels))
    giver = np.full(len(labels), "", dtype=object)
    for name, gift in zip(names, gifts, strict=True):
        surer = gift.confidence > confidence[gift.items]
        items = gift.items[surer]
        after[items], confidence[items] = gift.labels[surer], gift.confidence[surer]
        giver[items] = name
    return after, confidence, giver


def read_quota(per_class: Any, classes: Array, labels: Array, n_views: int) -> Array:
    """How many items of each class a view gives in a round.

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
        check_whole("per_class", per_class, 1, EACH)
        return np.full(len(names), per_class, dtype=np.int64)
    if set(per_class) != set(names):
        raise LearnerError(
            f"per_class is given for {brief(list(per_class))}, while the classes are "
            f"{brief(names)}",
            "give a number for every class, or one for all",
        )
    for name, number in per_class.items():
        check_whole(f"per_class[{name!r}]", number, 0, EACH)
    return np.array([per_class[name] for name in names], dtype=np.int64)


# Co-training: several views of the same items teach each other.


class CoTraining(ScoresLabelled, SklearnContract, BaseEstimator):  # type: ignore[misc]
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

    classes_: Array
    transduction_: Array
    confidence_: Array
    silent_: Array
    history_: History
    view_classifiers_: dict[str, Any]
    verdict_: Verdict

    def __init__(
        self,
        views: Any,
        classifier: Any = None,
        *,
        per_class: int | Mapping[Any, int] | None = None,
        rounds: int = 100,
        pool: int | None = None,
        prediction: str = "product",
        vectorizer: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.views = views
        self.classifier = classifier
        self.per_class = per_class
        self.rounds = rounds
        self.pool = pool
        self.prediction = prediction
        self.vectorizer = vectorizer
        self.random_state = random_state

    def estimate(self, X: Any, y: Any) -> Estimate:
        """What `fit` will need: bytes, and work a round. Nothing is learned."""
        self._check_settings()
        first, *others = Views(self.views, self.vectorizer).learn(X)
        n_classes = len(hard_labels(y, first.shape[0]).classes)
        found = of_rows(first, n_classes)
        for one in others:
            more = of_rows(one, n_classes)
            found = found.plus(more.work, **more.parts)
        return found

    def fit(self, X: Any, y: Any, *, gold: Any = None) -> Self:
        """Learn from items of which some have labels (−1 or None: unknown).

        ``gold``  true labels, as far as they are known, for the accuracy in ``history_``
        """
        with all_or_nothing(self):
            self._check_settings()
            views = Views(self.views, self.vectorizer)
            matrices = views.learn(X)
            labels = hard_labels(y, matrices[0].shape[0])
            warn_of_unlabelled_fold()
            self._views, self.classes_ = views, labels.classes
            self.n_features_in_ = views.n_columns or sum(one.shape[1] for one in matrices)
            given = gold_numbers(gold, labels.classes, len(labels.numbers))
            self.history_ = History(labels.classes, labels.numbers, given)
            found = self._teach(matrices, labels.numbers)
            self._conclude(matrices, labels.numbers, found)
        return self

    def _check_settings(self) -> None:
        check_whole("rounds", self.rounds, 0, "0 learns from the given labels alone")
        if self.pool is not None:
            check_whole("pool", self.pool, 1, "Blum and Mitchell took 75; None takes all items")
        if self.prediction not in PREDICTIONS:
            raise LearnerError(
                f"prediction={brief(self.prediction)}", f"choose {' or '.join(PREDICTIONS)}"
            )

    @interrupt.graceful()
    def _teach(self, matrices: list[Any], labels: Array) -> Array:
        """All rounds; returns each item's label as a number, −1 where no view gave any."""
        quota = read_quota(self.per_class, self.classes_, labels, len(matrices))
        order = generator(self.random_state).permutation(np.flatnonzero(labels == UNKNOWN))
        present = [occurs(matrix) for matrix in matrices]
        self.verdict_ = Verdict.OUT_OF_STEPS
        for number in range(self.rounds + 1):
            self._fit_views(matrices, present, labels)
            speaks = self._speaks(present)
            free = (labels == UNKNOWN) & np.logical_or.reduce(speaks)
            waiting = np.sort(order[free[order]][: self.pool])
            gifts = self._gifts(matrices, speaks, waiting, quota)
            if not any(len(gift.items) for gift in gifts):
                self.verdict_ = Verdict.CONVERGED
                break
            if interrupt.asked():
                self.verdict_ = Verdict.INTERRUPTED
                interrupt.tell(f"after {number:,} rounds: the labels given by then are kept")
                break
            if number < self.rounds:
                labels, confidence, giver = settle(gifts, labels, self._views.names)
                self.history_.record(labels, confidence, giver)
        return labels

    def _conclude(self, matrices: list[Any], given: Array, found: Array) -> None:
        """A label for every item, and what all views together think of it in the end."""
        shares = self._combined(matrices)
        labels = np.where(found == UNKNOWN, shares.argmax(axis=1), found)
        self.transduction_ = self.classes_[labels]
        sure = shares[np.arange(len(labels)), labels]
        self.confidence_ = np.where(given == UNKNOWN, sure, 1.0)
        heard = np.logical_or.reduce(self._speaks([occurs(matrix) for matrix in matrices]))
        self.silent_ = (given == UNKNOWN) & ~heard

    @interrupt.whole()
    def _fit_views(self, matrices: list[Any], present: list[Any], labels: Array) -> None:
        """Every view's classifier from all that have a label by now."""
        known = np.flatnonzero(labels != UNKNOWN)
        chosen = each_of(self._views.names, self.classifier, "classifier")
        self.view_classifiers_ = {}
        for (name, classifier), matrix in zip(chosen.items(), matrices, strict=True):
            own = few_labels_bayes() if classifier is None else own_copy(classifier)
            own.fit(matrix[known], self.classes_[labels[known]])
            self.view_classifiers_[name] = own
        self._seen = [columns_in(one, known) for one in present]
        self._prior = np.bincount(labels[known], minlength=len(self.classes_)) / len(known)

    def _gifts(
        self, matrices: list[Any], speaks: list[Array], waiting: Array, quota: Array
    ) -> list[Gift]:
        """What each view would label now."""
        gifts = []
        classifiers = self.view_classifiers_.values()
        for classifier, matrix, heard in zip(classifiers, matrices, speaks, strict=True):
            items = waiting[heard[waiting]]
            shares = np.zeros((0, len(self.classes_)))
            if len(items):
                shares = posterior(classifier, matrix[items])
            gifts.append(most_confident(items, shares, quota))
        return gifts

    def _speaks(self, present: list[Any]) -> list[Array]:
        """Whether each item has something in each view that its classifier has learned from."""
        return [shares_columns(one, seen) for one, seen in zip(present, self._seen, strict=True)]

    def _combined(self, matrices: list[Any]) -> Array:
        """p(class | item) of all views together."""
        speaks = self._speaks([occurs(matrix) for matrix in matrices])
        shares = [
            posterior(classifier, matrix)
            for classifier, matrix in zip(self.view_classifiers_.values(), matrices, strict=True)
        ]
        return PREDICTIONS[self.prediction](shares, speaks, self._prior)

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for each item, in the order of ``classes_``."""
        check_is_fitted(self)
        return self._combined(self._views.read(X))

    def predict(self, X: Any) -> Array:
        """The likeliest class of each item."""
        shares = self.predict_proba(X)
        chosen: Array = self.classes_[shares.argmax(axis=1)]
        return chosen

    def view_proba(self, X: Any) -> dict[str, Array]:
        """What each view's classifier says by itself, by the names of the views."""
        check_is_fitted(self)
        matrices = self._views.read(X)
        classifiers = self.view_classifiers_.items()
        return {
            name: posterior(classifier, matrix)
            for (name, classifier), matrix in zip(classifiers, matrices, strict=True)
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = True
        used = self.classifier if isinstance(self.classifier, Mapping) else {"": self.classifier}
        counts_only = [one is None or not takes_negative(one) for one in used.values()]
        tags.input_tags.positive_only = any(counts_only)
        tags.classifier_tags.poor_score = any(one is None for one in used.values())
        return tags
