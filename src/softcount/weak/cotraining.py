"""Co-training: several views of the same items teach each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softcount import interrupt
from softcount.errors import LearnerError, shown
from softcount.estimate import Estimate, of_rows
from softcount.models.learnable import all_or_nothing
from softcount.models.mixture.labels import UNKNOWN
from softcount.models.mixture.scoring import ScoresLabelled, warn_of_unlabelled_fold
from softcount.models.settings import check_whole, generator
from softcount.types import Array
from softcount.verdict import Verdict
from softcount.weak.bayes import few_labels_bayes
from softcount.weak.combining import PREDICTIONS
from softcount.weak.confidence import own_copy, posterior, takes_negative
from softcount.weak.giving import Gift, most_confident, read_quota, settle
from softcount.weak.hard_labels import hard_labels
from softcount.weak.history import History, gold_numbers
from softcount.weak.reader import columns_in, occurs, shares_columns
from softcount.weak.views import Views, each_of


class CoTraining(ScoresLabelled, BaseEstimator):  # type: ignore[misc]
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
                f"prediction={shown(self.prediction)}", f"choose {' or '.join(PREDICTIONS)}"
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
