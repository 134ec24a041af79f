"""Dawid & Skene's model of annotators: hidden true labels, and a confusion matrix per annotator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse

from softcount.annotators import core as starts
from softcount.annotators.core import Voting, VotingCore, read_known
from softcount.annotators.data import (
    Ballots,
    Votes,
    as_array,
    find_places,
    read_votes,
    sorted_classes,
)
from softcount.annotators.parameters import AnnotatorsParameters
from softcount.annotators.paths import Habits
from softcount.core import store
from softcount.core.bounds import check_drawable
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.estimator import FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.parameters import Prior, no_mode, no_prior
from softcount.core.store import AGAIN, numbers
from softcount.core.types import Array, FloatArray, IntArray, PosteriorRows
from softcount.families import Categorical
from softcount.kernels.posterior import soft
from softcount.mixture.base import Mixture
from softcount.mixture.core import BagEmission, MixtureCore
from softcount.mixture.data import UNKNOWN, ClassConstraints, Labels, MixtureCorpus
from softcount.mixture.naive_bayes import read_classes
from softcount.mixture.starts import uniform
from softcount.mixture.suspects import Suspect, find_judged, hide_in_parts, list_suspects
from softcount.text.bags import Bags
from softcount.text.documents import DocumentReader, find_characteristic_words

KEPT_SIZES = 10_000
"""Number of items whose numbers of votes are kept, for generating data."""
TRUSTED = 0.8
"""The share of right votes among those that annotators are trusted for."""
NO_VOTE = -2
"""The number of a set of all labels, which says nothing."""
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


class TextReader(DocumentReader):
    """The words of texts beside votes."""

    def __init__(self, vectorizer: Any = None) -> None:
        self.vectorizer = vectorizer

    def read(self, texts: Any, *, first: bool, length: float | None) -> Bags:
        """Count words; ``first``: these texts define the vocabulary."""
        bags = self._read_documents(texts, first=first)
        if first:
            self._remember_lengths(bags.lengths)
        return bags if length is None else bags.scaled(length)

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return arrays and facts for a file."""
        arrays, facts = self._store_words()
        return {"text_lengths": arrays["lengths"]}, {**facts, "n_words": self.n_features_in_}

    @classmethod
    def restore(cls, stored: store.Stored, given: Mapping[str, Any]) -> Self:
        """Restore what `stored` wrote."""
        reader, facts = cls(), stored.meta["texts"]
        if not isinstance(facts["n_words"], int) or facts["n_words"] < 1:
            raise StoreError(f"{facts['n_words']!r} is no number of words", AGAIN)
        reader.n_features_in_ = facts["n_words"]
        arrays = {"lengths": stored.arrays["text_lengths"]}
        reader._restore_words(replace(stored, arrays=arrays, meta=facts), given)
        return reader


class Annotators(AnnotatorsParameters, Mixture):
    """Estimate true labels and annotators' confusion matrices by the model of Dawid & Skene (1979).

    The true label k of an item is hidden, and annotator a votes l with probability θ_akl:

        p(votes of an item) = Σ_k π_k Π_{votes (a, l)} θ_akl

    ``tying``      'none' (a confusion matrix each), 'one-coin' (one accuracy each) or 'mace' (each
                   says the true label, or, regardless of the item, any: Hovy et al. 2013)
    ``silence``    whether to say nothing about an item is information: the probability of silence
                   depends on annotator and true label
    ``trust``      number of votes, four of five of them right, that are added to those of each
                   annotator: without it, rules that each vote for one label may all be learned to
                   be wrong
    ``class_balance``  fixed probabilities of the labels: 'uniform', or {label: share}
    ``groups``     groups of annotators, of whom each may copy from the last one before in the group
                   who has a vote on the item: a hidden switch, with a probability for each
    ``smoothing``  pseudocount added to every cell of each annotator's confusion matrix, and of all
                   other tables but the weights
    ``prior``      Dirichlet concentration, instead of smoothing (or by table: "weights",
                   "confusion", …)
    ``length``, ``vectorizer``  for texts beside votes: rescale them to this many words; what counts
                   their words
    ``init``       initial parameters: 'majority' (proportions of votes), 'known' (from items of
                   known label, and hardly any others: for data where most annotators may be wrong),
                   'random' (half proportions of votes, half random), 'uniform', or tables
                   {"weights": …, "confusion": …}
    ``learner``, ``max_iter``, ``tol``, ``n_init``, ``engine``, ``random_state``  learning
                   algorithm, parallelism and seed: see `softcount.core.estimator.Estimator`

    Votes are triples (item, annotator, label), a tuple of three columns, a data frame with columns
    item, annotator and label, a mapping {item: {annotator: label}}, or an array items × annotators.
    A label of −1, None or NaN is no vote. An annotator may vote several times on an item. A set of
    labels is a vote for one of them; a set of all labels is no vote. With ``texts``, the words of
    an item depend on its true label as in Naive Bayes: a classifier of texts is learned together
    with the annotators.

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
        self,
        votes: Any,
        y: Any = None,
        *,
        texts: Any = None,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Fit to votes, and to true labels as far as they are known.

        ``y``      a label for each item, in order of first appearance (−1, None: unknown); or a
                   mapping {item: label}, of which items without votes are left out
        ``texts``  a text for each item, in the same order; or a mapping {item: text}, of which
                   items without votes come last
        ``init``   initial parameters, instead of those given to the constructor

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(votes, y, texts)
            self._learn(core, corpus, init, **options)
        if y is None:
            self._warn_of_switch(corpus)
        return self

    def _bind(
        self, votes: Any, y: Any = None, texts: Any = None
    ) -> tuple[MixtureCore, MixtureCorpus]:
        """Return the model core and the corpus; items of known label are constrained to it."""
        self._check_settings()
        read = read_votes(votes)
        if not len(read):
            raise DataError(
                "there are no votes", "give at least one; −1, None and NaN do not count as votes"
            )
        read, texts = _match_texts(read, texts)
        known = read_known(y, read.items)
        balance = self.class_balance if isinstance(self.class_balance, Mapping) else ()
        self.classes_ = sorted_classes(
            [
                *read.single_labels(),
                *(() if known is None else known.classes.tolist()),
                *(balance if _fits(balance, read) else ()),
            ]
        )
        self.items_, self.annotators_ = as_array(read.items), as_array(read.annotators)
        self.n_features_in_ = len(read.annotators)
        self._find_groups()
        self._texts = None
        if texts is not None:
            self._texts = TextReader(self.vectorizer)
        x = self._observe(read, texts, first=True)
        core = self.make_core(x)
        constraints = ClassConstraints.nothing(len(x), core.n_classes)
        if known is not None:  # as numbers of all classes
            numbers = find_places(known.classes.tolist(), self.classes_.tolist())
            of_items = np.append(numbers, UNKNOWN)[known.numbers]
            constraints = Labels(self.classes_, of_items).restrict(1, np.ones(len(x)))
        return core, VotedItems(x, constraints, self.items_)

    def _find_groups(self) -> None:
        """Number those who may copy: all members of groups but the first of each."""
        names = self.annotators_.tolist()
        places = [find_places(map(_plain, group), names) for group in self.groups or ()]
        absent = [
            name
            for group, found in zip(self.groups or (), places, strict=True)
            for name, place in zip(group, found.tolist(), strict=True)
            if place == UNKNOWN
        ]
        if absent:
            raise DataError(
                f"groups names {brief(absent[0])}, who has no votes",
                "name annotators as they are named in the votes",
            )
        self._members = places
        followers = np.full(len(names), UNKNOWN)
        those = [place for group in places for place in group[1:].tolist()]
        followers[those] = np.arange(len(those))
        self._followers = tuple(followers.tolist()) if those else ()

    @property
    def _habits(self) -> Habits:
        return Habits(
            self.n_features_in_, self.n_classes, self.tying, self.silence, self._followers
        )

    def _bind_more(self, core: MixtureCore, X: Any) -> MixtureCorpus:
        read = read_votes(X, self.annotators_.tolist())
        x = self._observe(read, None)
        free = ClassConstraints.nothing(len(x), core.n_classes)
        return VotedItems(x, free, as_array(read.items))

    def observe(self, X: Any, *, first: bool = False) -> Bags | Ballots:
        return self._observe(read_votes(X, self.annotators_.tolist()), None)

    def _observe(
        self, votes: Votes, texts: Any, *, first: bool = False, asked: bool = True
    ) -> Bags | Ballots:
        """Convert votes to bags of words (annotator, label); unknown ones are left out.

        ``first``  these texts are the training data
        ``asked``  whether annotators were asked at all: if not, they are not silent either
        """
        K, habits = self.n_classes, self._habits
        annotators = find_places(votes.annotators, self.annotators_.tolist())
        sets: dict[tuple[int, ...], int] = {}
        labels = np.array(
            [self._number_label(label, sets) for label in votes.labels], dtype=np.int64
        )
        annotator, label = annotators[votes.by_annotator], labels[votes.of_label]
        known = (annotator != UNKNOWN) & (label >= 0)
        if (annotator == UNKNOWN).any() or (label == UNKNOWN).any():
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
                stacklevel=4,
            )
        n, A = len(votes.items), self.n_features_in_
        item, annotator, said = votes.of_item[known], annotator[known], label[known]
        if habits.is_plain and not sets and self._texts is None:
            return _count_votes(item, annotator * K + said, (n, A * K))
        if habits.silence and asked:
            quiet = np.ones((n, A), np.bool_)
            quiet[item, annotator] = False
            silent_items, silent = np.nonzero(quiet)
            item = np.concatenate([item, silent_items])
            annotator = np.concatenate([annotator, silent])
            said = np.concatenate([said, np.full(len(silent), K)])
        S, C = habits.n_said(tuple(sets)), habits.n_columns(tuple(sets))
        columns = annotator * C + said
        for group in self._members:
            columns += S * compare_in_group(group, item, annotator, said, n)
        bags = _count_votes(item, columns, (n, A * C))
        words = None
        if self._texts is not None and texts is not None:
            words = self._texts.read(texts, first=first, length=self.length)
        return Ballots(bags, habits.n_states, habits.silence, tuple(sets), words)

    def _number_label(self, label: Any, sets: dict[tuple[int, ...], int]) -> int:
        """Return the number of what was said; that of a new set of labels is added to ``sets``."""
        K, names = self.n_classes, self._label_numbers()
        if not isinstance(label, frozenset):
            return names.get(label, UNKNOWN)
        members = tuple(sorted(names[each] for each in label if each in names))
        if len(members) < len(label):
            return UNKNOWN
        if len(members) == K:
            return NO_VOTE
        return K + int(self.silence) + sets.setdefault(members, len(sets))

    def _label_numbers(self) -> dict[Any, int]:
        return {name: number for number, name in enumerate(self.classes_.tolist())}

    def _lacks_prior(self) -> str:
        tables = set(self._tables_with_prior())
        lacking = (no_prior(self.smoothing, self.prior, table) for table in sorted(tables))
        return next(filter(None, lacking), "")

    def _tables_with_prior(self) -> list[str]:
        tables = {"none": ["confusion"], "one-coin": ["right"], "mace": ["care", "guess"]}
        more = {"silence": self.silence, "copying": bool(self.groups)}
        return [*tables[self.tying], *(name for name, has in more.items() if has)]

    def _lacks_mode(self) -> str:
        return no_mode(self.prior)

    def make_core(self, x: Any, weights: Array | None = None) -> VotingCore:
        A, K, habits = self.n_features_in_, self.n_classes, self._habits

        def prior(table: str) -> Any:
            given: Any = self.prior
            if isinstance(given, Mapping):
                given = given.get(table)
            elif table == "weights":
                given = None
            if given is None:  # adding a to every count: the mode under 1 + a, the mean under a
                usual = self.smoothing + (1.0 if self._maximises else 0.0)
                return 1.0 if table == "weights" else usual
            return given if np.ndim(given) else float(given)

        words_too = () if self._texts is None else ("words",)
        if self.prior is not None:
            Prior(("weights", *habits.shapes(), *words_too)).check("prior", self.prior)
        fixed = None if self.class_balance is None else np.ones(1, np.bool_)
        emission = Voting(A, K, self._trusted("confusion", prior("confusion")))
        families = {
            name: emission.family
            if name == "confusion"
            else Categorical(shape, self._trusted(name, prior(name)))
            for name, shape in habits.shapes().items()
        }
        words = None
        if self._texts is not None:
            words = BagEmission(K, self._texts.n_features_in_, prior("words"))
        return VotingCore(
            habits,
            Categorical((1, K), prior("weights"), frozen=fixed),
            families,
            emission,
            self.default_learner,
            not self._maximises,
            words,
        )

    def _trusted(self, table: str, prior: Any) -> Any:
        """Add the votes that annotators are trusted for to the prior of a table."""
        A, K = self.n_features_in_, self.n_classes
        if not self.trust or table not in ("confusion", "right", "care") or K < 2:
            return prior
        wrong = self.trust * (1.0 - TRUSTED)
        if table == "confusion":
            row = np.where(np.eye(K, dtype=bool), self.trust * TRUSTED, wrong / (K - 1))
            return prior + np.tile(row, (A, 1))
        return prior + np.tile([self.trust * TRUSTED, wrong], (A, 1))

    def _start_values(self, core: MixtureCore, corpus: MixtureCorpus, init: Any) -> Any:
        start = super()._start_values(core, corpus, init)
        balance = self._read_balance()
        if balance is None:
            return start
        if not callable(start):
            return {**start, "weights": balance}
        return lambda rng: {**start(rng), "weights": balance}

    def _read_balance(self) -> FloatArray | None:
        """Return the fixed probabilities of the labels, (1, labels); None if they are learned."""
        if self.class_balance is None:
            return None
        names = self.classes_.tolist()
        if isinstance(self.class_balance, str):
            return np.full((1, len(names)), 1.0 / len(names))
        given = {str(label): share for label, share in self.class_balance.items()}
        if set(given) != set(map(str, names)):
            raise DataError(
                f"class_balance has shares of {', '.join(sorted(given))}, but the labels are "
                f"{', '.join(map(str, names))}",
                "give the share of every label",
            )
        return np.array([[float(given[str(name)]) for name in names]])

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
        x: Any = corpus.x
        A, K, n = self.n_features_in_, self.n_classes, len(corpus)
        votes = x if isinstance(x, Bags) else x.votes
        if not isinstance(x, Bags):
            spoken = x.labels_of_columns(K).any(axis=1)
            votes = Bags.of(votes.matrix.multiply(spoken[None, :]))
        rows, sizes = votes.by_document, votes.lengths
        who = rows.columns // (votes.n_words // A)
        self.n_votes_ = np.bincount(who, rows.value, A).astype(np.int64)
        self._sizes = sizes[np.linspace(0, n - 1, min(n, KEPT_SIZES)).astype(np.int64)]

    def _warn_of_switch(self, corpus: MixtureCorpus) -> None:
        """Warn if a permutation of the labels agrees better with the votes than the labels do."""
        x: Any = corpus.x
        if isinstance(x, Bags):
            table = np.asarray(self.core_.counts(x, self.proba_)["confusion"])
            said = table.reshape(self.confusion_.shape).sum(axis=0)
        else:
            said = self.proba_.T @ (x.votes.matrix @ x.labels_of_columns(self.n_classes))
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
        """θ_akl: probability that annotator a votes l if k is true, (annotators, true, said).

        That of the votes that an annotator does not copy, and given that there is a vote.
        """
        self._require_fit()
        K, tables = self.n_classes, self.raw_params_
        if self.tying == "one-coin":
            right, wrong = tables["right"].T[:, :, None, None]
            coin: FloatArray = np.where(np.eye(K, dtype=bool), right, wrong / max(K - 1, 1))
            return coin
        if self.tying == "mace":
            care, careless = tables["care"].T[:, :, None, None]
            table: FloatArray = care * np.eye(K) + careless * tables["guess"][:, None, :]
            return table
        confusion: FloatArray = tables["confusion"].reshape(-1, K, K)
        return confusion

    @property
    def knows_words(self) -> bool:
        """Whether the model was fitted to texts beside votes."""
        return getattr(self, "_texts", None) is not None

    @property
    def silence_(self) -> FloatArray:
        """Probability that annotator a says nothing if k is true, (annotators, true)."""
        self._require_fit()
        if not self.silence:
            raise AttributeError("silence is no information: give silence=True")
        silent: FloatArray = self.raw_params_["silence"][:, 1].reshape(-1, self.n_classes)
        return silent

    @property
    def copying_(self) -> dict[Any, float]:
        """Probability that a vote of an annotator is copied, for those who may copy."""
        self._require_fit()
        names = self.annotators_.tolist()
        return {
            names[a]: float(self.raw_params_["copying"][row, 1])
            for a, row in enumerate(self._followers)
            if row != UNKNOWN
        }

    def top_words(self, n: int = 10) -> dict[Any, list[tuple[Any, float]]]:
        """Return the characteristic words of each label, of texts beside votes."""
        self._require_fit()
        if self._texts is None:
            raise DataError("the model has no words", "fit it to votes and texts")
        words = find_characteristic_words(
            self.weights_, self.raw_params_["words"], self._texts.word_names(), n
        )
        return dict(zip(self.classes_.tolist(), words, strict=True))

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
    def predict_proba(self, votes: Any = None, *, texts: Any = None) -> FloatArray:
        """Return the probability of each true label for each item, in the order of ``classes_``.

        Items are in order of first appearance. Votes by unknown annotators, or for unknown labels,
        are left out with a warning, because the model has no parameters for them.

        ``texts``  the items' texts, as for `fit`; without votes the texts alone are classified
        """
        return self._posterior(self._seen(votes, texts))

    def predict(self, votes: Any = None, *, texts: Any = None) -> Array:
        """Return the most probable true label of each item, in order of first appearance."""
        # not by predict_proba, so that warnings have the same stack level
        posteriors = self._posterior(self._seen(votes, texts))
        chosen: Array = self.classes_[posteriors.argmax(axis=1)]
        return chosen

    def _seen(self, votes: Any, texts: Any = None) -> Bags | Ballots:
        """Read further votes, or texts, or both."""
        self._require_fit()
        if texts is not None and self._texts is None:
            raise DataError("the model knows no words", "fit it to votes and texts")
        if votes is not None:
            read, texts = _match_texts(read_votes(votes, self.annotators_.tolist()), texts)
            return self._observe(read, texts)
        if texts is None:
            raise DataError("there are neither votes nor texts", "give one of them, or both")
        none = np.zeros(0, np.int64)
        items = list(texts) if isinstance(texts, Mapping) else list(range(len(texts)))
        read, texts = _match_texts(Votes(items, [], [], none, none, none), texts)
        return self._observe(read, texts, asked=False)

    def suspects(
        self, votes: Any, y: Any, *, texts: Any = None, cv: int = 10, random_state: int = 0
    ) -> list[Suspect]:
        """List the known labels, those that are probably wrong first.

        Known labels are hidden in ``cv`` parts, and a model is fitted for each. The model itself is
        not changed. The only known label of a class cannot be judged, and is left out.

        ``votes, y, texts``  as for `fit`
        ``random_state``     seed of the parts
        """
        read, texts = _match_texts(read_votes(votes), texts)
        labels = read_known(y, read.items)
        if labels is None:
            raise DataError("no label is known, so that none can be wrong", "give labels as y")
        judged = find_judged(labels)

        def learn(shown: list[Any], hidden: IntArray) -> tuple[Array, FloatArray]:
            model = type(self)(**self.get_params(deep=False)).fit(read, shown, texts=texts)
            return model.classes_, model.predict_proba(read, texts=texts)[hidden]

        posteriors = hide_in_parts(labels, judged, cv, random_state, learn)
        return list_suspects(labels, judged, posteriors, read.items)

    def fit_predict(self, votes: Any, y: Any = None, *, texts: Any = None) -> Array:
        """Fit, and return the most probable true label of each item."""
        return self.fit(votes, y, texts=texts).labels_

    def score(self, votes: Any, y: Any = None) -> float:
        """Return the mean of log p(votes of an item); ``y`` is ignored."""
        return float(np.mean(self._log_likelihoods(self._seen(votes))))

    # new data
    def _generate(self, classes: IntArray, rng: np.random.Generator) -> list[tuple[int, Any, Any]]:
        """Generate triples, with numbers of votes per item and per annotator as in training.

        There is no copying among them, silence does not depend on labels, and there are no words.
        Annotators are drawn independently: some may vote on an item several times.
        """
        sizes = np.round(rng.choice(self._sizes, size=len(classes)))
        check_drawable(sizes, "votes")
        sizes = sizes.astype(np.int64)
        items = np.repeat(np.arange(len(classes)), sizes)
        A = self.n_features_in_
        annotators = rng.choice(A, size=len(items), p=self.n_votes_ / self.n_votes_.sum())
        table = self.confusion_
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
        if self._texts is not None:
            more, facts["texts"] = self._texts.stored()
            arrays |= more
        return arrays, facts

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Bags:
        self.classes_ = read_classes(stored.meta["classes"], stored.meta["kind_of_classes"])
        self._check_settings()
        A, K = self.n_features_in_, self.n_classes
        names = stored.meta["annotators"]
        is_valid = isinstance(names, list) and all(isinstance(name, NAMEABLE) for name in names)
        if not is_valid or len(set(names)) != A or len(names) != A:
            raise StoreError(f"there are not {A} different names of annotators", AGAIN)
        self.annotators_ = as_array(names)
        self._find_groups()
        for name, shape in self._habits.shapes().items():
            numbers(stored, store.TABLE + name, shape)
        self._texts = None
        if "texts" in stored.meta:
            self._texts = TextReader.restore(stored, given)
            numbers(stored, store.TABLE + "words", (K, self._texts.n_features_in_))
        self.n_votes_ = numbers(stored, "n_votes", (A,)).astype(np.int64)
        self._sizes = numbers(stored, "sizes", (None,))
        sizes = self._sizes
        has_sizes = len(sizes) and 0.0 <= sizes.min() <= sizes.max() < 2**40
        if self.n_votes_.min() < 0 or not self.n_votes_.any() or not has_sizes:
            raise StoreError("the numbers of votes are missing or invalid", AGAIN)
        return Bags.of(sparse.csr_matrix((0, A * K)))


def _plain(name: Any) -> Any:
    """Return a name as Python has it, not numpy."""
    return name.item() if isinstance(name, np.generic) else name


def _fits(balance: Any, votes: Votes) -> bool:
    """Return whether a class balance has labels of the type of the votes' labels, so that they can
    be classes that nobody has voted for."""
    return {type(label) for label in balance} <= {type(label) for label in votes.single_labels()}


def _count_votes(items: IntArray, columns: IntArray, shape: tuple[int, int]) -> Bags:
    return Bags.of(sparse.csr_matrix((np.ones(len(items)), (items, columns)), shape=shape))


def _match_texts(votes: Votes, texts: Any) -> tuple[Votes, Any]:
    """Return votes and the texts of all their items, in order; items of texts alone come last."""
    if texts is None:
        return votes, None
    if isinstance(texts, Mapping):
        votes = votes.with_items(texts)
        first: Any = next(iter(texts.values()), "")
        return votes, [texts.get(item, type(first)()) for item in votes.items]
    if not hasattr(texts, "__len__") or isinstance(texts, str) or len(texts) != len(votes.items):
        n = len(texts) if hasattr(texts, "__len__") else "no"
        raise DataError(
            f"{n} texts of {len(votes.items)} items",
            "give a text for each item, in order of first appearance, or a mapping {item: text}",
        )
    return votes, list(texts)


def compare_in_group(
    group: IntArray, item: IntArray, annotator: IntArray, said: IntArray, n_items: int
) -> IntArray:
    """Return how each vote stands to the one before it in a group, (votes,).

    0: nobody of the group has said anything before, or the vote is by somebody else; 1: it agrees
    with what was said last; 2: it differs. Of several votes of an annotator the first counts.

    ``group``  the members' numbers, in order
    """
    states = np.zeros(len(item), np.int64)
    last = np.full(n_items, UNKNOWN)
    for number, member in enumerate(group.tolist()):
        votes = np.flatnonzero(annotator == member)
        before = last[item[votes]]
        if number:
            states[votes] = np.where(before == UNKNOWN, 0, np.where(before == said[votes], 1, 2))
        last[item[votes[::-1]]] = said[votes[::-1]]  # the last assignment, the first vote
    return states
