"""Bootstrapping decision lists from a few rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softcount.errors import DataError, LearnerError, shown
from softcount.estimate import COPIES, NUMBER, Estimate, of_rows
from softcount.models.base import all_or_nothing
from softcount.models.mixture.labels import UNKNOWN, Labels, read_labels
from softcount.models.mixture.scoring import ScoresLabelled
from softcount.models.reading import ReadsWords
from softcount.models.settings import check_number, check_whole
from softcount.types import Array
from softcount.weak import discourse as discourses
from softcount.weak.decision_list import DecisionList, Rule
from softcount.weak.history import History, gold_numbers
from softcount.weak.seeds import listed, numbered
from softcount.weak.yarowsky_rounds import DOCUMENT, GIVEN, NOBODY, Bootstrap, Caution, Labelled

VARIANTS = ("plain", "cautious", "propagating", "propagating-cautious")


class Yarowsky(ScoresLabelled, ReadsWords, BaseEstimator):  # type: ignore[misc]
    """Learns a decision list from a few rules and many unlabelled items (Yarowsky 1995).

    A rule says that items with a certain feature have a certain label. Each round the rules label
    items, by the strongest rule that applies, and new rules are learned from the labelled items;
    seeds stay. When no label changes any more, and caution leaves no rule out, or after
    ``max_rounds``, a last list takes every rule that the labels speak for, however weak. Of the n
    labelled items with a feature let c have the label that most of them have: its rule has the
    strength (c + α) / (n + Kα) for K labels.

    ``variant``     which rules are taken each round:
                    "plain": all with c / n above the ``threshold`` (as in Abney 2004);
                    "cautious": of these, for each label, the ``step`` · round ones with the
                    largest n (Collins & Singer 1999);
                    "propagating": as plain, but items that rules apply to are labelled by all
                    their features, each of which takes the mean label of its items (the φ–θ graph
                    of Whitney & Sarkar 2012); "propagating-cautious": both
    ``threshold``   the share of one label that a rule must have, bare of smoothing
    ``smoothing``   α
    ``max_rounds``  stop after so many; 0 learns nothing and applies the seeds
    ``discourse``   one sense per discourse as a weight: what the other items of its document
                    count beside an item's own rule (see `softcount.weak.discourse.settle`); 0: off
    ``views``       a function from a feature's name to that of its view. Then views take turns:
                    one labels items, and the next learns its rules from them (DL-CoTrain)
    ``abstain``     whether `predict` says −1 (None, if labels are texts) of items that no rule
                    applies to; else they get the most common label
    ``vectorizer``  what cuts texts into features; None: words in lower case

    After `fit`: ``rules_`` (a `DecisionList`: a sequence of `Rule`, the strongest first),
    ``transduction_`` (labels of the items learned from), ``bootstrapped_`` (the same after the last
    round, before the last list; −1 or None for items without any), ``prior_``, ``n_iter_``,
    ``history_``, in which the first round is what the seeds say, and the last the last list.

    >>> texts = ["loan from bank", "bank loan rates", "high rates", "river bank mud",
    ...          "mud and reed", "reed boat"]
    >>> model = Yarowsky().fit(texts, seeds={"money": ["loan"], "water": ["river"]})
    >>> model.transduction_.tolist()
    ['money', 'money', 'money', 'water', 'water', 'water']
    >>> print(model.decision("a boat"))
    boat → water  0.9167  1 of 1
    """

    classes_: Array
    rules_: DecisionList
    transduction_: Array
    bootstrapped_: Array
    prior_: Array
    history_: History
    n_iter_: int
    """How many rounds there were."""

    def __init__(
        self,
        *,
        variant: str = "cautious",
        threshold: float = 0.95,
        smoothing: float = 0.1,
        step: int = 5,
        max_rounds: int = 500,
        discourse: float = 0.0,
        views: Callable[[Any], Hashable] | None = None,
        abstain: bool = False,
        vectorizer: Any = None,
    ) -> None:
        self.variant = variant
        self.threshold = threshold
        self.smoothing = smoothing
        self.step = step
        self.max_rounds = max_rounds
        self.discourse = discourse
        self.views = views
        self.abstain = abstain
        self.vectorizer = vectorizer

    # learning
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        seeds: Mapping[Any, Any] | Sequence[Rule] | None = None,
        documents: Sequence[Hashable | None] | None = None,
        gold: Any = None,
        features: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from items and seeds, or from items of which some have labels, or from both.

        ``X``          texts, lists of features, or a matrix: above 0 where an item has a feature
        ``y``          labels that are known beforehand, which stay; −1 or None: unknown
        ``seeds``      a mapping from labels to features, or rules
        ``documents``  the document of each item, for ``discourse``; None: one of its own
        ``gold``       true labels, for the accuracy over rounds in ``history_``
        ``features``   names of the columns, if X is a matrix
        """
        self._check_settings()
        with all_or_nothing(self):
            self._fit(X, y, listed(seeds), documents, gold, features)
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a round. Nothing is learned."""
        self._check_settings()
        items = copy(self).read(X, first=True)
        n_classes = 2 if y is None else max(2, len(set(map(str, y)) - {"-1", "None"}))
        tables = COPIES * NUMBER * items.n_words * n_classes
        return of_rows(items.matrix, n_classes, rules=tables)

    def _fit(
        self, X: Any, y: Any, seeds: list[Rule], documents: Any, gold: Any, features: Any
    ) -> None:
        items = self.read(X, first=True)
        if features is not None:
            self.vocabulary_ = _names(features, self.n_features_in_)
        labels = _labels_of(seeds, y, len(items))
        self.classes_ = labels.classes
        known, given = np.split(labels.likeliest(), [len(seeds)])
        names = self.word_names().tolist()
        rules = numbered(seeds, known, names, self.n_features_in_)
        work = Bootstrap(
            items.by_document,
            given,
            rules,
            len(self.classes_),
            Caution(self.threshold, self.smoothing, self.step if self._is_cautious else None),
            self._masks(names),
            self.variant.startswith("propagating"),
            None if documents is None else discourses.numbered(documents, len(items)),
            self.discourse,
        )
        self.history_ = History(self.classes_, given, gold_numbers(gold, self.classes_, len(items)))
        self._learn(work, names)

    def _learn(self, work: Bootstrap, names: list[Any]) -> None:
        found = Labelled(work.given, work.given * 0.0, work.given)
        called = _callers(names)

        def record(labelled: Labelled) -> None:
            nonlocal found
            found = labelled
            self.history_.record(labelled.labels, labelled.confidence, called[labelled.by])

        rules = work.run(self.max_rounds, record)
        self.bootstrapped_ = self._said(found.labels, abstain=True)
        self.n_iter_ = len(self.history_) - 2  # less what was given, and what the seeds said
        if self.max_rounds:
            record(work.decided(rules))
        self.rules_ = DecisionList(rules, names, self.classes_.tolist())
        counts = np.bincount(found.labels[found.labels != UNKNOWN], minlength=work.n_classes)
        self.prior_ = (counts + 1.0) / (counts.sum() + work.n_classes)
        self.transduction_ = self._said(found.labels, abstain=self.abstain)
        without = self.classes_[counts == 0].tolist()
        if without:
            warnings.warn(
                f"no item was labelled {shown(without[0])}: give it seeds that occur", stacklevel=4
            )

    @property
    def _is_cautious(self) -> bool:
        return self.variant.endswith("cautious")

    def _check_settings(self) -> None:
        if self.variant not in VARIANTS:
            raise LearnerError(f"variant={shown(self.variant)}", f"one of {', '.join(VARIANTS)}")
        check_number("threshold", self.threshold, "0.95 is usual")
        if self.threshold >= 1.0:
            raise LearnerError(f"threshold={self.threshold:g}: no share is above 1", "such as 0.95")
        check_number("smoothing", self.smoothing, "0.1 is usual")
        check_whole("step", self.step)
        check_whole("max_rounds", self.max_rounds, 0)
        check_number("discourse", self.discourse, "0: documents do not count")
        if self.views is not None and not callable(self.views):
            raise LearnerError(f"views={shown(self.views)}", "give a function of a feature's name")
        if self.views is not None and self.variant.startswith("propagating"):
            raise LearnerError("views do not propagate", "variant='cautious' or 'plain'")

    def _masks(self, names: list[Any]) -> list[Array]:
        """Which features belong to each view; views in the order of their names."""
        if self.views is None:
            return [np.ones(len(names), dtype=bool)]
        of_features = [self.views(name) for name in names]
        views = sorted(set(of_features), key=str)
        return [np.array([view == one for one in of_features]) for view in views]

    # what it says of items
    def predict(self, X: Any, documents: Sequence[Hashable | None] | None = None) -> Array:
        """The label of each item; see ``abstain`` for items that no rule applies to."""
        return self._said(self._decided(X, documents).labels, abstain=self.abstain)

    def predict_proba(self, X: Any, documents: Sequence[Hashable | None] | None = None) -> Array:
        """The strength of the deciding rule for its label; the rest is shared among the others.

        Items that no rule applies to get ``prior_``. With documents and a ``discourse`` weight,
        what these make of it.
        """
        found = self._decided(X, documents)
        K = len(self.classes_)
        shares = np.tile(self.prior_, (len(found.labels), 1))
        known = np.flatnonzero(found.labels != UNKNOWN)
        sure = np.maximum(found.confidence[known], 1.0 / K)
        rest = np.minimum((1.0 - sure) / max(K - 1, 1), sure * (1.0 - 1e-12))  # never as likely
        shares[known] = rest[:, None]
        shares[known, found.labels[known]] = sure if K > 1 else 1.0
        return shares

    def decisions(self, X: Any) -> list[Rule | None]:
        """The rule that decides each item; None where none applies."""
        by = self._decided(X, None).by
        return [None if f < 0 else self.rules_.of_feature(f) for f in by.tolist()]

    def decision(self, item: Any) -> Rule | None:
        """The rule that decides this item (a text, a list of features, or a row)."""
        return self.decisions(item if sparse.issparse(item) else [item])[0]

    def _decided(self, X: Any, documents: Sequence[Hashable | None] | None) -> Labelled:
        check_is_fitted(self, "rules_")
        items = self.read(X, first=False)
        work = Bootstrap(
            items.by_document,
            np.full(len(items), UNKNOWN, np.int64),
            self.rules_.rules,
            len(self.classes_),
            Caution(self.threshold, self.smoothing, None),
            [],
            documents=None if documents is None else discourses.numbered(documents, len(items)),
            discourse=self.discourse,
        )
        return work.decided(self.rules_.rules)

    def _said(self, numbers: Array, *, abstain: bool) -> Array:
        """Labels by their names."""
        unknown = numbers == UNKNOWN
        named: Array = self.classes_[np.where(unknown, 0, numbers)]
        if not unknown.any():
            return named
        if not abstain:
            named[unknown] = self.classes_[self.prior_.argmax()]
        elif named.dtype.kind in "iuf":
            named = named.astype(np.result_type(named, np.int8))  # unsigned ones know no −1
            named[unknown] = UNKNOWN
        else:
            named = named.astype(object)
            named[unknown] = None
        return named

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on points: whether a number is above 0 says little
        return tags


def _labels_of(seeds: list[Rule], y: Any, n_items: int) -> Labels:
    """Labels of the seeds, and then of the items."""
    if not seeds:
        return read_labels(y, n_items)
    of_items = [None] * n_items if y is None else list(y)
    if len(of_items) != n_items:
        read_labels(of_items, n_items)
    return read_labels([*(seed.label for seed in seeds), *of_items], len(seeds) + n_items)


def _names(features: Sequence[Any], n_features: int) -> Array:
    names = np.empty(len(features), dtype=object)
    names[:] = list(features)
    if len(names) != n_features:
        raise DataError(
            f"{len(names)} names of features for {n_features} columns", "give one for each"
        )
    return names


def _callers(names: list[Any]) -> Array:
    """Who labelled an item: a feature by its number; who else, by the numbers below 0."""
    called = np.empty(len(names) + 3, dtype=object)
    called[: len(names)] = [str(name) for name in names]
    called[NOBODY], called[GIVEN], called[DOCUMENT] = "", "given", "document"
    return called
