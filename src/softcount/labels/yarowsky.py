"""`Yarowsky`: decision lists bootstrapped from a few rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import COPIES, NUMBER, Estimate, of_rows
from softcount.core.estimator import SklearnContract, all_or_nothing
from softcount.core.parameters import check_number, check_whole
from softcount.core.types import Array
from softcount.labels.history import History, gold_numbers
from softcount.mixture.data import UNKNOWN, Labels, is_unknown, read_labels
from softcount.mixture.model_selection import ScoresLabelled
from softcount.text.contexts import context_features, is_word
from softcount.text.documents import DocumentReader

SURE = "give the share of items with this feature that have the label, such as 0.9999"
FORM = "label, feature and perhaps strength, separated by tabs, or by spaces if none has any"


def listed(seeds: Any) -> list[Rule]:
    """Seeds as a list of rules: from a mapping of labels to features, or rules, or nothing.

    >>> listed({"money": ["loan"], "river": ["reed", "mud"]})[1]
    Rule(feature='reed', label='river', strength=0.9999, count=0, total=0)
    """
    if seeds is None:
        return []
    if isinstance(seeds, Mapping):
        seeds = [
            Rule(feature, label) for label, many in seeds.items() for feature in _several(many)
        ]
    rules = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else [seeds]
    for rule in rules:
        if not isinstance(rule, Rule):
            raise DataError(
                f"among the seeds is {brief(rule)}",
                "give a mapping from labels to features, or a list of Rule(feature, label)",
            )
        if is_unknown(rule.label):
            raise DataError(
                f"{brief(rule.label)} is no label, but a seed has it: {brief(rule.feature)}",
                "−1 and None stand for labels that are unknown: give others",
            )
        check_number(f"strength of {brief(rule.feature)}", rule.strength, SURE, above=True)
    return rules


def _several(features: Any) -> Iterable[Any]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        return [features]
    return features


def parse_rules(lines: Iterable[tuple[int, str]], path: str) -> list[Rule]:
    """Rules from numbered lines; blank ones are passed over.

    >>> parse_rules([(1, "L X0_New-York 10000"), (2, "money\\tof the_\\t.9")], "rules.txt")[1]
    Rule(feature='of the_', label='money', strength=0.9, count=0, total=0)
    """
    return [_parsed(line, f"{path}:{number}") for number, line in lines if line.strip()]


def read_rules(path: str | PathLike[str]) -> list[Rule]:
    """Rules from a file, as seeds: a line each, as ``rules_.to_text()`` writes them."""
    text = Path(path).read_text(encoding="utf-8-sig")
    return parse_rules(enumerate(text.split("\n"), 1), str(path))


def _parsed(line: str, where: str) -> Rule:
    fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
    if len(fields) not in (2, 3) or "" in fields:
        raise DataError(f"{where}: {brief(line)} is no rule", FORM)
    label, feature, *rest = fields
    strength = _strength(rest[0], where) if rest else SEED_STRENGTH
    return Rule(feature, label, strength)


def _strength(text: str, where: str) -> float:
    try:
        strength = float(text)
    except ValueError:
        strength = -1.0
    if not 0.0 < strength < np.inf:
        raise DataError(f"{where}: {text!r} is no strength", f"a number above 0; {FORM}")
    return strength


def number_rules(
    seeds: Sequence[Rule], labels: Array, features: Sequence[Any], n_features: int
) -> Rules:
    """Seeds as arrays over features; those of features that the data do not have are left out.

    ``labels`` are the numbers of the seeds' labels. Strengths above 1, which only say that a rule
    comes first, become 1.
    """
    places = {feature: number for number, feature in enumerate(features)}
    rules = Rules.none(n_features)
    missing = []
    for seed, label in zip(seeds, labels.tolist(), strict=True):
        at = places.get(seed.feature)
        if at is None:
            missing.append(seed)
        elif rules.label[at] not in (UNKNOWN, label):
            raise DataError(
                f"the seeds give {brief(seed.feature)} two labels", "a feature marks one label"
            )
        else:
            rules.label[at] = label
            rules.strength[at] = min(seed.strength, 1.0)
    _tell_missing(missing, len(seeds))
    return rules


def _tell_missing(missing: Sequence[Rule], n_seeds: int) -> None:
    if not missing:
        return
    names = ", ".join(brief(seed.feature) for seed in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    if len(missing) == n_seeds:
        raise DataError(
            f"no item has the feature of any seed: {names}{more}",
            "write features as they are in the data: texts are cut into words in lower case",
        )
    warnings.warn(f"no item has the features of these seeds: {names}{more}", stacklevel=5)


# One sense per discourse, as a weight: items of the same document pull at each other.


SUREST = 0.9999
"""No item counts as surer than this for others: log-odds stay finite."""


class DocumentLabels(NamedTuple):
    """Labels after the documents had their say, p(label), and which items it was that decided."""

    labels: Array
    shares: Array
    moved: Array


def number_documents(documents: Sequence[Hashable | None], n_items: int) -> Array:
    """Documents as numbers; an item without one (None, "", NaN) gets one of its own.

    >>> number_documents(["a", None, "b", "a"], 4)
    array([0, 1, 2, 0])
    """
    if len(documents) != n_items:
        raise DataError(
            f"{len(documents)} documents for {n_items} items", "name the document of each item"
        )
    found: dict[Hashable, int] = {}
    keys = (
        ("alone", i) if d is None or d == "" or d != d else ("document", d)
        for i, d in enumerate(documents)
    )
    return np.array([found.setdefault(key, len(found)) for key in keys], dtype=np.int64)


def settle(
    labels: Array, confidence: Array, documents: Array, weight: float, n_classes: int
) -> DocumentLabels:
    """Each item's label by its own evidence, and ``weight`` times that of its document's others.

    The evidence of an item for its label is the log-odds of its confidence p against any one of
    the other K − 1 labels, e = log [p (K − 1) / (1 − p)], and nothing for the others: item i of
    document d scores eᵢ(k) + weight · Σ_{j ∈ d, j ≠ i} eⱼ(k) for label k, and p(k) is the softmax
    of its scores. An item without label gets one if the others of its document have any.

    >>> settle(np.array([0, 0, 1, -1]), np.array([.9, .9, .6, 0]), np.zeros(4, int), 1., 2).labels
    array([0, 0, 0, 0])
    """
    known = np.flatnonzero(labels != UNKNOWN)
    sure = np.clip(confidence[known], 1.0 / n_classes, SUREST)
    own = np.zeros((len(labels), n_classes))
    own[known, labels[known]] = np.log(sure * max(n_classes - 1, 1) / (1.0 - sure))
    together = np.zeros((int(documents.max(initial=-1)) + 1, n_classes))
    np.add.at(together, documents, own)
    scores = own + weight * (together[documents] - own)
    heard = np.abs(scores).max(axis=1) > 1e-12
    said = np.where(heard, scores.argmax(axis=1), labels)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return DocumentLabels(said, shares / shares.sum(axis=1, keepdims=True), said != labels)


# What stands around a word, as features of its senses.


NEAR = 2


def collocations(
    tokens: Sequence[str],
    position: int,
    window: int | None = 25,
    stop_words: Collection[str] = (),
) -> list[str]:
    """Collocations of the token at ``position``, as features whose names can be read.

    After Yarowsky (1994), ``_`` being the place of the token itself: ``in_`` is the word just
    before it and ``_for`` the one just after, ``stood·_`` and ``_·bread`` those with one word
    between; pairs of adjacent words are ``stood in_``, ``in_for`` and ``_for bread``; and every
    word within the ``window`` (None: all) is a feature by its own name, unless it is one of the
    ``stop_words``. Punctuation is passed over.

    >>> collocations("he stood in line , for bread".split(), 3, stop_words={"in", "he", "for"})
    ['stood', 'bread', 'in_', 'stood·_', '_for', '_·bread', 'stood in_', 'in_for', '_for bread']
    """
    before = [token for token in tokens[:position] if is_word(token)][: -NEAR - 1 : -1]
    after = [token for token in tokens[position + 1 :] if is_word(token)][:NEAR]
    pairs = []
    if len(before) == NEAR:
        pairs.append(f"{before[1]} {before[0]}_")
    if before and after:
        pairs.append(f"{before[0]}_{after[0]}")
    if len(after) == NEAR:
        pairs.append(f"_{after[0]} {after[1]}")
    return context_features(tokens, position, window, NEAR, stop_words) + pairs


# Decision lists: the strongest rule that applies decides, and nothing else.


SEED_STRENGTH = 0.9999
"""Of rules that are given without any: as Collins & Singer (1999) have it."""
SHOWN = 20


@dataclass(frozen=True)
class Rule:
    """An item that has the feature has the label, with so much strength (0 to 1).

    ``count`` of the ``total`` labelled items with this feature have this label; 0 of 0 for rules
    that were given and never counted.

    >>> print(Rule("_rates", "money", 0.9987, 619, 619))
    _rates → money  0.9987  619 of 619
    """

    feature: Any
    label: Any
    strength: float = SEED_STRENGTH
    count: int = 0
    total: int = 0

    def __str__(self) -> str:
        counted = f"  {self.count} of {self.total}" if self.total else ""
        return f"{self.feature} → {self.label}  {self.strength:.4f}{counted}"


class Decisions(NamedTuple):
    """What a list says of some items: label (−1: nothing), strength and feature of the rule."""

    labels: Array
    strength: Array
    features: Array


@dataclass(frozen=True, eq=False)
class Rules:
    """At most one rule a feature: arrays with a row for every feature, label −1 without a rule."""

    label: Array
    strength: Array
    count: Array
    total: Array

    @classmethod
    def none(cls, n_features: int) -> Rules:
        """No rule at all."""
        zeros = np.zeros(n_features)
        return cls(np.full(n_features, UNKNOWN, np.int64), zeros, zeros, zeros)

    @cached_property
    def order(self) -> Array:
        """Features that have rules, the strongest first; of equal ones those seen more often."""
        some = np.flatnonzero(self.label != UNKNOWN)
        ranked: Array = some[np.lexsort((some, -self.count[some], -self.strength[some]))]
        return ranked

    def kept(self, wanted: Array) -> Rules:
        """Only the rules of these features."""
        label = np.where(wanted, self.label, UNKNOWN)
        return Rules(label, np.where(wanted, self.strength, 0.0), self.count, self.total)

    def overridden(self, by: Rules) -> Rules:
        """These rules, but others where there are others; counts stay."""
        other = by.label != UNKNOWN
        return Rules(
            np.where(other, by.label, self.label),
            np.where(other, by.strength, self.strength),
            self.count,
            self.total,
        )

    def decide(self, items: Any) -> Decisions:
        """The strongest rule of every item (a `Compressed`: which features each has)."""
        place = np.full(len(self.label), len(self.order), np.int32)
        place[self.order] = np.arange(len(self.order))
        first = np.full(len(items.indptr) - 1, len(self.order), np.int32)
        filled = np.flatnonzero(np.diff(items.indptr))
        if len(filled):
            places = place[items.columns]
            first[filled] = np.minimum.reduceat(places, items.indptr[filled])
        features = np.append(self.order, -1)[first]
        label = np.append(self.label, UNKNOWN)[features]
        return Decisions(label, np.append(self.strength, 0.0)[features], features)


class Tally:
    """How many labelled items have each feature and each class, as labels change.

    >>> from softcount.text.bags import Compressed
    >>> items = Compressed(np.array([0, 2, 3]), np.array([0, 1, 1]), np.ones(3))
    >>> Tally(items, n_features=2, n_classes=2).of(np.array([1, 0])).tolist()
    [[0, 1], [1, 1]]
    """

    def __init__(self, items: Any, n_features: int, n_classes: int) -> None:
        self.items = items
        self.labels = np.full(len(items.indptr) - 1, UNKNOWN, np.int64)
        self.counts = np.zeros((n_features, n_classes), np.int64)

    def of(self, labels: Array) -> Array:
        """(features, classes), given each item's label; the same array every time, changed."""
        moved = np.flatnonzero(labels != self.labels)
        starts, lengths = self.items.indptr[moved], np.diff(self.items.indptr)[moved]
        ends = np.cumsum(lengths)
        within = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        features = self.items.columns[np.repeat(starts, lengths) + within]
        self._add(features, np.repeat(labels[moved], lengths), 1)
        self._add(features, np.repeat(self.labels[moved], lengths), -1)
        self.labels = labels.copy()
        return self.counts

    def _add(self, features: Array, labels: Array, amount: int) -> None:
        known = labels != UNKNOWN
        K = self.counts.shape[1]
        cells = features[known].astype(np.int64) * K + labels[known]
        if len(cells) > self.counts.size // 4:
            added = np.bincount(cells, minlength=self.counts.size)
            self.counts += amount * added.reshape(self.counts.shape)
        else:
            np.add.at(self.counts.reshape(-1), cells, amount)


def learn(
    counts: Array,
    smoothing: float,
    threshold: float = 0.0,
    most: int | None = None,
) -> tuple[Rules, bool]:
    """The rules that counts of labelled items speak for; and whether ``most`` left any out.

    A feature's label is the one that most of its items have (if two tie: the one more common
    among all). Its strength is (count + α) / (total + Kα) for K classes, α being the
    ``smoothing``. Only rules whose bare share, count / total, is above the ``threshold`` are
    taken; and for each class at most the ``most`` with the largest totals (Collins & Singer 1999).
    """
    K = counts.shape[1]
    common_first = np.argsort(-counts.sum(axis=0), kind="stable")
    label = common_first[counts[:, common_first].argmax(axis=1)]
    count = counts[np.arange(len(counts)), label]
    total = counts.sum(axis=1)
    wanted = (total > 0) & (count > threshold * total)
    left_out = False
    for k in range(K if most is not None else 0):
        of_class = np.flatnonzero(wanted & (label == k))
        if len(of_class) > most:  # type: ignore[operator]
            ranked = of_class[np.argsort(-total[of_class], kind="stable")]
            wanted[ranked[most:]] = False
            left_out = True
    strength = (count + smoothing) / np.maximum(total + K * smoothing, 1e-300)
    rules = Rules(label, strength, count, total).kept(wanted)
    return rules, left_out


class DecisionList(Sequence[Rule]):
    """Rules with their names, the strongest first; ``print`` shows the first of each class.

    >>> rules = Rules(np.array([1, -1, 0]), np.array([.9, 0, .8]), np.ones(3), np.ones(3))
    >>> found = DecisionList(rules, ["bank", "the", "reed"], ["money", "river"])
    >>> found[0]
    Rule(feature='bank', label='river', strength=0.9, count=1, total=1)
    >>> found.to_text()
    'river\\tbank\\t0.9\\nmoney\\treed\\t0.8\\n'
    """

    def __init__(self, rules: Rules, features: Sequence[Any], classes: Sequence[Any]) -> None:
        self.rules = rules
        self.features = features
        self.classes = classes

    def __len__(self) -> int:
        return len(self.rules.order)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> list[Rule]: ...
    def __getitem__(self, index: int | slice) -> Rule | list[Rule]:
        chosen = self.rules.order[index]
        if isinstance(index, slice):
            return [self.of_feature(f) for f in chosen.tolist()]
        return self.of_feature(int(chosen))

    def __iter__(self) -> Iterator[Rule]:
        return map(self.of_feature, self.rules.order.tolist())

    def of_feature(self, feature: int) -> Rule:
        """The rule of a feature, by its number."""
        rules = self.rules
        return Rule(
            self.features[feature],
            self.classes[rules.label[feature]],
            float(rules.strength[feature]),
            int(rules.count[feature]),
            int(rules.total[feature]),
        )

    def of_class(self, label: Any, most: int | None = None) -> list[Rule]:
        """The rules of a class, the strongest first."""
        number = list(self.classes).index(label)
        chosen = self.rules.order[self.rules.label[self.rules.order] == number]
        return [self.of_feature(f) for f in chosen[:most].tolist()]

    def to_text(self) -> str:
        """A line a rule, as `read_rules` reads them: label, tab, feature, tab, strength."""
        return "".join(f"{r.label}\t{r.feature}\t{r.strength:.9g}\n" for r in self)

    def __str__(self) -> str:
        brief = [rule for label in self.classes for rule in self.of_class(label, SHOWN)]
        return "\n".join(map(str, brief))


# The rounds of bootstrapping: rules label items, and labelled items teach rules.


MU, NU = 0.6, 0.01
"""How much neighbours, and uniformity, count in a step of propagation (Whitney & Sarkar 2012)."""
TIE = 1e-6
"""What strength counts beside a vote: enough to settle ties."""
NOBODY, GIVEN, DOCUMENT = -1, -2, -3


class Labelled(NamedTuple):
    """Items with labels (−1: none), how sure these are, and by whom.

    ``by`` is the number of the feature whose rule decided, or one of `NOBODY` (no label), `GIVEN`
    (known beforehand), `DOCUMENT` (others of the same document).
    """

    labels: Array
    confidence: Array
    by: Array


@dataclass(frozen=True)
class Caution:
    """How rules are taken: above which share, how much smoothed, and how many more each round.

    ``step`` is None if there is no limit.
    """

    threshold: float
    smoothing: float
    step: int | None


@dataclass(frozen=True, eq=False)
class BootstrapRounds:
    """What stays the same over the rounds.

    ``items``      a `Compressed`: which features each item has
    ``given``      each item's label if it is known beforehand, −1 if not
    ``seeds``      rules that stay what they are
    ``views``      masks over features, one for each view; one of ones: no views
    ``documents``  the number of each item's document, and ``discourse`` the weight; or None
    """

    items: Any
    given: Array
    seeds: Rules
    n_classes: int
    caution: Caution
    views: Sequence[Array]
    propagating: bool = False
    documents: Array | None = None
    discourse: float = 0.0

    @property
    def n_features(self) -> int:
        return len(self.seeds.label)

    @interrupt.graceful()
    def run(self, max_rounds: int, record: Callable[[Labelled], None]) -> Rules:
        """Rounds until nothing changes, then a list of all rules that the last labels teach.

        As long as caution leaves rules out, the next round takes more, and may change something.
        """
        rules = [self.seeds.kept(view) for view in self.views]
        tallies = [Tally(self.items, self.n_features, self.n_classes) for _ in rules]
        seen: set[int] = set()
        found = self._labelled(self.seeds)
        record(found)
        for number in range(1, max_rounds + 1):
            alone = found if len(rules) == 1 else None
            changed, left_out = self._round(number, rules, tallies, alone)
            found = self._labelled(_merged(rules))
            record(found)
            state = hash(tuple(tally.labels.tobytes() for tally in tallies))
            if not left_out and (not changed or state in seen):  # a circle has no end
                break
            seen.add(state)
            if interrupt.asked():
                interrupt.tell(f"after {number:,} rounds: the rules learned by then are kept")
                break
        if max_rounds == 0:
            return self.seeds
        everything, _ = learn(tallies[0].of(found.labels), self.caution.smoothing)
        return everything.overridden(self.seeds)

    def _round(
        self, number: int, rules: list[Rules], tallies: list[Tally], alone: Labelled | None
    ) -> tuple[bool, bool]:
        """Each view labels items for the next one to learn from; one that is alone for itself."""
        changed = any_left_out = False
        most = None if self.caution.step is None else number * self.caution.step
        for view, tally in enumerate(tallies):
            found = self._labelled(rules[view]) if alone is None else alone
            changed |= not np.array_equal(found.labels, tally.labels)
            pupil = (view + 1) % len(rules)
            counts = tally.of(found.labels)
            if alone is None:
                counts = counts * self.views[pupil][:, None]
            learnt, left_out = learn(counts, self.caution.smoothing, self.caution.threshold, most)
            rules[pupil] = learnt.overridden(self.seeds.kept(self.views[pupil]))
            any_left_out |= left_out
        return changed, any_left_out

    def _labelled(self, rules: Rules) -> Labelled:
        return self._propagated(rules) if self.propagating else self.decided(rules)

    def decided(self, rules: Rules) -> Labelled:
        """Items labelled by their strongest rules, and by documents."""
        found = rules.decide(self.items)
        return self._settled(Labelled(found.labels, found.strength, found.features))

    def _settled(self, found: Labelled) -> Labelled:
        """What is known stays; then documents have their say."""
        labels, confidence, by = found
        known = self.given != UNKNOWN
        labels = np.where(known, self.given, labels)
        confidence = np.where(known, 1.0, confidence)
        by = np.where(known, GIVEN, by)
        if self.documents is None or not self.discourse:
            return Labelled(labels, confidence, by)
        said = settle(labels, confidence, self.documents, self.discourse, self.n_classes)
        labels = np.where(known, self.given, said.labels)
        chosen = said.shares[np.arange(len(labels)), np.maximum(labels, 0)]
        confidence = np.where(known | (labels == UNKNOWN), confidence, chosen)
        return Labelled(labels, confidence, np.where(said.moved & ~known, DOCUMENT, by))

    # Whitney & Sarkar's graph of features and items
    @cached_property
    def _matrix(self) -> Any:
        ones = np.ones(len(self.items.columns))
        shape = (len(self.items.indptr) - 1, self.n_features)
        return sparse.csr_matrix((ones, self.items.columns, self.items.indptr), shape=shape)

    @cached_property
    def _votes(self) -> Tally:
        return Tally(self.items, self.n_features, self.n_classes)

    @cached_property
    def _degrees(self) -> Array:
        return np.bincount(self.items.columns, minlength=self.n_features)

    def _propagated(self, rules: Rules) -> Labelled:
        """Items that have rules get the labels that all their features, once smoothed, speak for.

        Every rule of an item has one vote for its label φ; if votes tie, strength decides. Then
        each feature f takes the mean of its items' labels, unlabelled ones counting as uniform:
        one step of propagation, θ_f = (μ Σ_{x ∋ f} φ_x + ν/K) / (μ |{x ∋ f}| + ν); and an item
        takes the label with the largest Σ_{f ∈ x} θ_f(k).
        """
        K = self.n_classes
        votes = np.zeros((self.n_features, K))
        votes[rules.order, rules.label[rules.order]] = 1.0 + TIE * rules.strength[rules.order]
        counted = self._matrix @ votes
        elected, most = _largest(counted)
        labels = np.where(most > 0.0, elected, UNKNOWN)
        labels = np.where(self.given != UNKNOWN, self.given, labels)
        counts = self._votes.of(labels)
        unlabelled = (self._degrees - counts.sum(axis=1))[:, None]
        shares = MU * (counts + unlabelled / K) + NU / K
        scores = self._matrix @ (shares / shares.sum(axis=1, keepdims=True))
        chosen, score = _largest(scores)  # of as many distributions as the item has features
        confidence = score / np.maximum(np.diff(self.items.indptr), 1)
        quiet = labels == UNKNOWN
        found = np.where(quiet, UNKNOWN, chosen)
        by = rules.decide(self.items).features
        return self._settled(Labelled(found, np.where(quiet, 0.0, confidence), by))


def _largest(scores: Array) -> tuple[Array, Array]:
    """Where each row is largest, and how large: by columns, of which there are few."""
    where = np.zeros(len(scores), np.int64)
    largest = scores[:, 0].copy()
    for k in range(1, scores.shape[1]):
        larger = scores[:, k] > largest
        where[larger] = k
        largest[larger] = scores[larger, k]
    return where, largest


def _merged(rules: Sequence[Rules]) -> Rules:
    """The rules of all views, which have no feature in common."""
    whole = rules[0]
    for more in rules[1:]:
        own = more.label != UNKNOWN
        whole = Rules(
            np.where(own, more.label, whole.label),
            np.where(own, more.strength, whole.strength),
            np.where(own, more.count, whole.count),
            np.where(own, more.total, whole.total),
        )
    return whole


# Bootstrapping decision lists from a few rules.


VARIANTS = ("plain", "cautious", "propagating", "propagating-cautious")


class Yarowsky(ScoresLabelled, DocumentReader, SklearnContract, BaseEstimator):  # type: ignore[misc]
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
                    count beside an item's own rule (see `softcount.labels.yarowsky.settle`); 0: off
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
        ``context_features``   names of the columns, if X is a matrix
        """
        self._check_settings()
        with all_or_nothing(self):
            self._fit(X, y, listed(seeds), documents, gold, features)
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """What `fit` will need: bytes, and work a round. Nothing is learned."""
        self._check_settings()
        items = copy(self)._read_documents(X, first=True)
        n_classes = 2 if y is None else max(2, len(set(map(str, y)) - {"-1", "None"}))
        tables = COPIES * NUMBER * items.n_words * n_classes
        return of_rows(items.matrix, n_classes, rules=tables)

    def _fit(
        self, X: Any, y: Any, seeds: list[Rule], documents: Any, gold: Any, features: Any
    ) -> None:
        items = self._read_documents(X, first=True)
        if features is not None:
            self.vocabulary_ = _names(features, self.n_features_in_)
        labels = _labels_of(seeds, y, len(items))
        self.classes_ = labels.classes
        known, given = np.split(labels.likeliest(), [len(seeds)])
        names = self.word_names().tolist()
        rules = number_rules(seeds, known, names, self.n_features_in_)
        work = BootstrapRounds(
            items.by_document,
            given,
            rules,
            len(self.classes_),
            Caution(self.threshold, self.smoothing, self.step if self._is_cautious else None),
            self._masks(names),
            self.variant.startswith("propagating"),
            None if documents is None else number_documents(documents, len(items)),
            self.discourse,
        )
        self.history_ = History(self.classes_, given, gold_numbers(gold, self.classes_, len(items)))
        self._learn(work, names)

    def _learn(self, work: BootstrapRounds, names: list[Any]) -> None:
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
                f"no item was labelled {brief(without[0])}: give it seeds that occur", stacklevel=4
            )

    @property
    def _is_cautious(self) -> bool:
        return self.variant.endswith("cautious")

    def _check_settings(self) -> None:
        if self.variant not in VARIANTS:
            raise LearnerError(f"variant={brief(self.variant)}", f"one of {', '.join(VARIANTS)}")
        check_number("threshold", self.threshold, "0.95 is usual")
        if self.threshold >= 1.0:
            raise LearnerError(f"threshold={self.threshold:g}: no share is above 1", "such as 0.95")
        check_number("smoothing", self.smoothing, "0.1 is usual")
        check_whole("step", self.step)
        check_whole("max_rounds", self.max_rounds, 0)
        check_number("discourse", self.discourse, "0: documents do not count")
        if self.views is not None and not callable(self.views):
            raise LearnerError(f"views={brief(self.views)}", "give a function of a feature's name")
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
        items = self._read_documents(X, first=False)
        work = BootstrapRounds(
            items.by_document,
            np.full(len(items), UNKNOWN, np.int64),
            self.rules_.rules,
            len(self.classes_),
            Caution(self.threshold, self.smoothing, None),
            [],
            documents=None if documents is None else number_documents(documents, len(items)),
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
