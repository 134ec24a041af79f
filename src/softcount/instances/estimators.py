"""Multiple-instance learning with Naive Bayes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from softcount.annotators.core import read_known
from softcount.annotators.data import as_array, find_places, is_missing
from softcount.core import store
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.folder import resumable
from softcount.core.parameters import no_mode, no_prior
from softcount.core.store import numbers
from softcount.core.types import Array, FloatArray, IntArray, Params
from softcount.instances.core import BagCore, BagCorpus, BagShard
from softcount.instances.kernels import NEGATIVE, POSITIVE, UNKNOWN
from softcount.instances.parameters import MultipleInstanceParameters
from softcount.mixture.data import Labels
from softcount.mixture.naive_bayes import read_classes
from softcount.mixture.suspects import Suspect, find_judged, hide_in_parts, list_suspects
from softcount.text.bags import Bags
from softcount.text.documents import DocumentReader, find_characteristic_words


class MultipleInstance(MultipleInstanceParameters, DocumentReader, store.SaveableTables, Estimator):
    """Learn which instances are positive from labels of the bags that they are in.

    A bag (a document) has a label, its instances (sentences, paragraphs) have none. A bag is
    positive if at least one of its instances is, and else negative (Dietterich, Lathrop &
    Lozano-Pérez 1997). Words of instances are those of two classes, as in Naive Bayes:

        p(words of a bag, positive) = Π_i Σ_z π_z p(x_i | z) − Π_i π_0 p(x_i | 0)

    The E-step is exact: the posterior that instance i is positive is a_i / (1 − Π_j (1 − a_j)),
    where a_i is the posterior without the bag.

    ``positive``   the label of positive bags; by default the last in order
    ``noisy``      noisy or: a positive instance triggers with a probability that is learned, the
                   bag is positive if one triggers, or by a leak
    ``length``     rescale every instance to this many words; None: no rescaling
    ``smoothing``  pseudocount added to every count of a word in a class
    ``prior``      Dirichlet concentration of words, instead of smoothing; or by table
    ``init``       'labelled' (instances of positive bags count half for each class), 'random', or
                   tables
    ``vectorizer``, ``learner``, ``max_iter``, ``tol``, ``n_init``, ``engine``, ``random_state``
                   see `softcount.mixture.MultinomialMixture`

    Attributes after ``fit``: ``bags_`` in order of first appearance, ``classes_`` (negative,
    positive), ``labels_`` and ``proba_`` of the bags, ``instance_proba_`` of the training instances
    given the labels of their bags.

    >>> texts = ["the plot", "a goal", "the end", "the plot", "goal goal", "the end"]
    >>> bags = ["d1", "d1", "d2", "d2", "d3", "d4"]
    >>> model = MultipleInstance().fit(texts, {"d1": "sport", "d2": "no", "d3": "sport"}, bags)
    >>> model.classes_.tolist(), model.instance_proba_.round(2).tolist()[:4]
    (['no', 'sport'], [0.0, 1.0, 0.0, 0.0])
    """

    _mixins: ClassVar = ("ClassifierMixin",)
    core_: BagCore
    bags_: Array
    classes_: Array
    labels_: Array
    proba_: FloatArray  # (bags, 2)
    instance_proba_: FloatArray  # (instances,)

    # learning
    @resumable
    def fit(  # type: ignore[override]  # as scikit-learn has it
        self,
        X: Any,
        y: Any,
        bags: Any,
        *,
        instance_labels: Any = None,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from instances, the bags that they are in, and labels of bags.

        ``X``     a text, a list of words or a row of counts for each instance
        ``y``     a mapping {bag: label}, or the label of its bag for each instance; −1 or None:
                  unknown
        ``bags``  the name of its bag for each instance
        ``instance_labels``  labels of single instances that are known; −1 or None: unknown

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(X, y, bags, instance_labels)
            return self._learn(core, corpus, init, **options)

    def _bind(  # type: ignore[override]  # all of the data are needed
        self, X: Any, y: Any, bags: Any, instance_labels: Any = None
    ) -> tuple[BagCore, BagCorpus]:
        self._check_settings()
        x = self._read_instances(X, first=True)
        names, of_bag = _number_bags(bags, len(x))
        labels = _read_bag_labels(y, names, of_bag)
        self.bags_ = as_array(names)
        self.classes_ = self._order_classes(labels)
        places = find_places(labels.classes.tolist(), self.classes_.tolist())
        known = np.full(len(x), UNKNOWN)
        if instance_labels is not None:
            known = self._read_instance_labels(instance_labels, len(x))
        of_bags = np.append(places, UNKNOWN)[labels.numbers]
        self._labels = labels
        return self._make_core(x.n_words), self._make_corpus(x, of_bag, of_bags, known)

    def _make_corpus(
        self, x: Bags, of_bag: IntArray, labels: IntArray, known: IntArray
    ) -> BagCorpus:
        """Sort instances by their bags."""
        self._order = np.argsort(of_bag, kind="stable")
        sizes = np.bincount(of_bag, minlength=len(labels))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        shard = BagShard(
            np.arange(len(labels)), indptr, x.take(self._order), labels, known[self._order]
        )
        return BagCorpus(shard, self.bags_)

    def _order_classes(self, labels: Labels) -> Array:
        """Return the two labels of bags, the positive one last."""
        classes: Array = labels.classes
        if len(classes) != 2:
            raise DataError(
                f"bags have {len(classes)} different labels",
                "give two: at least one instance is positive, or none is",
            )
        if self.positive is None:
            return classes
        if self.positive not in classes.tolist():
            raise LearnerError(
                f"positive={brief(self.positive)} is not a label of a bag",
                f"the labels are {', '.join(map(str, classes.tolist()))}",
            )
        return classes if classes.tolist()[1] == self.positive else classes[::-1].copy()

    def _read_instance_labels(self, given: Any, n: int) -> IntArray:
        listed = list(given.tolist() if hasattr(given, "tolist") else given)
        if len(listed) != n:
            raise DataError(
                f"{len(listed)} labels of {n} instances", "give one for each, −1 where unknown"
            )
        places = find_places(listed, self.classes_.tolist())
        for label, place in zip(listed, places.tolist(), strict=True):
            if place == UNKNOWN and not is_missing(label):
                raise DataError(
                    f"{brief(label)} is the label of an instance, but of no bag",
                    "give instances the labels of bags",
                )
        return np.where([is_missing(label) for label in listed], UNKNOWN, places)

    def _read_instances(self, X: Any, *, first: bool) -> Bags:
        bags = self._read_documents(X, first=first)
        return bags if self.length is None else bags.scaled(self.length)

    def _make_core(self, n_words: int) -> BagCore:
        given = self.prior if isinstance(self.prior, Mapping) else {}
        usual = self.smoothing + (1.0 if self._maximises else 0.0)
        words = usual if self.prior is None or given else self.prior
        flat = {"weights": 1.0, "triggers": 1.0, "leak": 1.0}
        priors: Any = {**flat, "words": words, **given}
        return BagCore(n_words, priors, self.noisy)

    def _lacks_prior(self) -> str:
        return no_prior(self.smoothing, self.prior, "words")

    def _lacks_mode(self) -> str:
        return no_mode(self.prior)

    def _bind_more(self, core: BagCore, data: Any) -> BagCorpus:
        X, bags = data
        return self._see(X, bags)[0]

    def _start_values(self, core: BagCore, corpus: BagCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(init)
        if init not in ("labelled", "random"):
            raise LearnerError(
                f"init={init!r} is not a known initialisation of this model",
                "choose labelled or random, or give a mapping of tables",
            )

        def start(rng: np.random.Generator) -> Params:
            """Instances of negative bags are negative, of others half; those of bags of unknown
            label do not count."""
            whole = corpus.whole
            labels = np.repeat(whole.labels, np.diff(whole.indptr))
            half = np.full(len(labels), 0.5)
            if init == "random":
                half = rng.uniform(0.25, 0.75, len(labels))
            positive = np.where(labels == POSITIVE, half, 0.0)
            negative = np.where(labels == NEGATIVE, 1.0, np.where(labels == POSITIVE, 1 - half, 0))
            r = np.column_stack([negative, positive])
            for k in (NEGATIVE, POSITIVE):
                r[whole.known == k] = np.eye(2)[k]
            counts: dict[str, Any] = core.count_classes(whole.x, r)
            for name in core.families:
                counts.setdefault(
                    name, np.array([[1.0, 9.0]] if name == "triggers" else [[9.0, 1.0]])
                )
            return {
                name: family.mean(counts[name], family.uniform())
                if not self._maximises
                else family.maximise(counts[name], family.uniform(), rng)
                for name, family in core.families.items()
            }

        return start

    def _after_fit(self, corpus: BagCorpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self.proba_ = self._bag_proba(_free(corpus))
        self.labels_ = self.classes_[self.proba_.argmax(axis=1)]
        known = self._labels.numbers != UNKNOWN
        self.labels_[known] = self._labels.classes[self._labels.numbers[known]]
        parts = list(self._map(self.core_.instance_posteriors, corpus))
        self.instance_proba_ = self._unsort(np.concatenate(parts), self._order)
        self._remember_lengths(corpus.whole.x.lengths)

    @staticmethod
    def _unsort(values: FloatArray, order: IntArray) -> FloatArray:
        found = np.empty_like(values)
        found[order] = values
        return found

    # what was learned
    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; can be passed as ``init`` to another fit."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the characteristic words of negative and of positive instances."""
        self._require_fit()
        weights = self.raw_params_["weights"].reshape(-1)
        return find_characteristic_words(weights, self.raw_params_["words"], self.word_names(), n)

    # prediction
    def _see(self, X: Any, bags: Any) -> tuple[BagCorpus, IntArray]:
        """Read further instances, of whose bags nothing is known; the corpus, and its order."""
        self._require_fit()
        x = self._read_instances(X, first=False)
        names, of_bag = _number_bags(bags, len(x))
        order = np.argsort(of_bag, kind="stable")
        sizes = np.bincount(of_bag, minlength=len(names))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        unknown = np.full(len(names), UNKNOWN)
        shard = BagShard(
            np.arange(len(names)), indptr, x.take(order), unknown, np.full(len(x), UNKNOWN)
        )
        return BagCorpus(shard, as_array(names)), order

    def _bag_proba(self, corpus: BagCorpus) -> FloatArray:
        positive = np.concatenate(list(self._map(self.core_.bag_posteriors, corpus)))
        return np.column_stack([1.0 - positive, positive])

    def predict_proba(self, X: Any, bags: Any) -> FloatArray:
        """Return the probability of each label of each bag, in order of first appearance, in the
        order of ``classes_``."""
        return self._bag_proba(self._see(X, bags)[0])

    def predict(self, X: Any, bags: Any) -> Array:
        """Return the most probable label of each bag, in order of first appearance."""
        proba = self.predict_proba(X, bags)
        chosen: Array = self.classes_[proba.argmax(axis=1)]
        return chosen

    def predict_instances(self, X: Any) -> FloatArray:
        """Return the probability that each instance is positive, without regard to its bag,
        (instances,)."""
        self._require_fit()
        corpus, order = self._see(X, np.arange(_length(X)))
        parts = list(self._map(self.core_.instance_posteriors, corpus))
        return self._unsort(np.concatenate(parts), order)

    def instance_posteriors(self, X: Any, y: Any, bags: Any) -> FloatArray:
        """Return the probability that each instance is positive, given all of its bag: the other
        instances, and the label, as far as it is known, (instances,).

        ``y``  labels of bags, as for `fit`; None: none is known
        """
        corpus, order = self._see(X, bags)
        labels = np.full(len(corpus), UNKNOWN)
        if y is not None:
            names, of_bag = _number_bags(bags, len(order))
            given = y if isinstance(y, Mapping) else dict(_merge_labels(y, names, of_bag))
            found = [given.get(name) for name in names]
            labels = find_places(found, self.classes_.tolist())
        corpus = BagCorpus(replace(corpus.whole, labels=labels), corpus.names)
        parts = list(self._map(self.core_.instance_posteriors, corpus))
        return self._unsort(np.concatenate(parts), order)

    def score(self, X: Any, y: Any, bags: Any) -> float:
        """Return the share of bags of known label that are predicted right."""
        names, of_bag = _number_bags(bags, _length(X))
        labels = _read_bag_labels(y, names, of_bag)
        known = labels.numbers != UNKNOWN
        true = labels.classes[labels.numbers[known]]
        return float(np.mean(self.predict(X, bags)[known] == true))

    def suspects(
        self, X: Any, y: Any, bags: Any, *, cv: int = 10, random_state: int = 0
    ) -> list[Suspect]:
        """List the labels of bags, those that are probably wrong first.

        Labels are hidden in ``cv`` parts, and a model is fitted for each; see
        `softcount.NaiveBayes.suspects`.
        """
        names, of_bag = _number_bags(bags, _length(X))
        labels = _read_bag_labels(y, names, of_bag)
        judged = find_judged(labels)

        def learn(shown: list[Any], hidden: IntArray) -> tuple[Array, FloatArray]:
            given = dict(zip(names, shown, strict=True))
            model = type(self)(**self.get_params(deep=False)).fit(X, given, bags)
            return model.classes_, model.predict_proba(X, bags)[hidden]

        posteriors = hide_in_parts(labels, judged, cv, random_state, learn)
        return list_suspects(labels, judged, posteriors, names)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, facts = self._store_words()
        kind = str(self.classes_.dtype)
        classes = self.classes_.tolist()
        return arrays, {**facts, "classes": classes, "kind_of_classes": kind}

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> BagCore:
        classes = stored.meta["classes"]
        ordered = read_classes(sorted(classes), stored.meta["kind_of_classes"])
        if len(ordered) != 2:
            raise DataError("there are not two classes")
        self.classes_ = np.array(classes, dtype=ordered.dtype)
        self._check_settings()
        numbers(stored, store.TABLE + "words", (2, self.n_features_in_))
        self._restore_words(stored, given)
        return self._make_core(self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _free(corpus: BagCorpus) -> BagCorpus:
    return BagCorpus(corpus.whole.free(), corpus.names)


def _number_bags(bags: Any, n: int) -> tuple[list[Hashable], IntArray]:
    """Return the names of bags in order of first appearance, and the number of each instance's."""
    listed: Sequence[Any] = list(bags.tolist() if hasattr(bags, "tolist") else bags)
    if len(listed) != n:
        raise DataError(
            f"{len(listed)} names of bags for {n} instances",
            "say for each instance which bag it is in",
        )
    if any(is_missing(name) for name in listed):
        raise DataError("an instance has no bag", "name the bag of every instance")
    numbers_of = {name: number for number, name in enumerate(dict.fromkeys(listed))}
    return list(numbers_of), np.array([numbers_of[name] for name in listed], dtype=np.int64)


def _read_bag_labels(y: Any, names: list[Any], of_bag: IntArray) -> Labels:
    """Read labels of bags, from a mapping or from a label for each instance."""
    if y is None:
        raise DataError("no bag has a label", "give y, the labels of bags")
    if not isinstance(y, Mapping):
        y = dict(_merge_labels(y, names, of_bag))
    labels = read_known(y, names)
    if labels is None:
        raise DataError("no bag has a label", "give the labels of some bags")
    return labels


def _merge_labels(y: Any, names: list[Any], of_bag: IntArray) -> Iterator[tuple[Any, Any]]:
    listed = list(y.tolist() if hasattr(y, "tolist") else y)
    if len(listed) != len(of_bag):
        raise DataError(
            f"{len(listed)} labels of {len(of_bag)} instances",
            "give each instance the label of its bag, or a mapping {bag: label}",
        )
    found: dict[Any, Any] = {}
    for number, label in zip(of_bag.tolist(), listed, strict=True):
        if is_missing(label):
            continue
        name = names[number]
        if found.setdefault(name, label) != label:
            raise DataError(
                f"bag {brief(name)} has two labels, {brief(found[name])} and {brief(label)}",
                "give all instances of a bag the same label",
            )
    yield from found.items()
