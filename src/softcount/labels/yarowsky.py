"""`Yarowsky`: decision lists bootstrapped from a few seed rules.

Rules label items, and new rules are learned from the labelled items. In a decision list, the
strongest applicable rule alone decides.
"""

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

from softcount.core import interrupt
from softcount.core.contract import require_fitted
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import COPIES, NUMBER, Estimate, estimate_rows
from softcount.core.estimator import all_or_nothing
from softcount.core.parameters import check_number, check_parameters
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.labels.data import SemiSupervisedClassifier
from softcount.labels.history import History
from softcount.labels.parameters import YarowskyParameters
from softcount.mixture.data import UNKNOWN, is_unknown, read_labels
from softcount.text.bags import Compressed
from softcount.text.contexts import context_features, is_word
from softcount.text.documents import DocumentReader

SEED_STRENGTH = 0.9999
"""Default strength of seed rules, as in Collins & Singer (1999)."""
SHOWN = 20
"""Number of rules of each class that are printed."""
SURE = "give the proportion of items with this feature that have the label, such as 0.9999"
FORM = "write label, feature and optionally strength, separated by tabs, or by spaces if no "
FORM += "field contains spaces"
SUREST = 0.9999
"""Upper limit of an item's confidence in the vote of its document, so that log-odds are finite."""
NEAR = 2
"""Number of words on each side that are also features together with their position."""
MU, NU = 0.6, 0.01
"""Weights of the neighbours and of the uniform distribution in propagation (Whitney & Sarkar 2012).
"""
TIE = 1e-6
"""Weight of a rule's strength relative to its vote: just enough to break ties."""
NOBODY, GIVEN, DOCUMENT = -1, -2, -3
"""Codes for how an item was labelled, if not by the rule of a feature."""


@dataclass(frozen=True)
class Rule:
    """A rule: items with this feature have this label, with a strength from 0 to 1.

    ``count`` of the ``total`` labelled items with this feature have this label; both are 0 for
    seed rules, which were not learned from counts.

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


def list_seeds(seeds: Any) -> list[Rule]:
    """Convert seeds to a list of rules, from a mapping of labels to features, rules, or None.

    >>> list_seeds({"money": ["loan"], "river": ["reed", "mud"]})[1]
    Rule(feature='reed', label='river', strength=0.9999, count=0, total=0)
    """
    if seeds is None:
        return []
    if isinstance(seeds, Mapping):
        seeds = [Rule(f, label) for label, features in seeds.items() for f in _as_list(features)]
    rules = _as_list(seeds)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise DataError(
                f"among the seeds is {brief(rule)}, which is not a rule",
                "give a mapping from labels to features, or a list of Rule(feature, label)",
            )
        if is_unknown(rule.label):
            raise DataError(
                f"{brief(rule.label)} is not a valid label of the seed {brief(rule.feature)}",
                "−1 and None mean that a label is unknown: use another one",
            )
        check_number(f"strength of {brief(rule.feature)}", rule.strength, SURE, above=True)
    return rules


def _as_list(value: Any) -> list[Any]:
    """Convert an iterable to a list; a text, or any other value, becomes a list of one."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def parse_rules(lines: Iterable[tuple[int, str]], path: str) -> list[Rule]:
    """Parse rules from numbered lines; blank lines are skipped.

    >>> parse_rules([(1, "L X0_New-York 10000"), (2, "money\\tof the_\\t.9")], "rules.txt")[1]
    Rule(feature='of the_', label='money', strength=0.9, count=0, total=0)
    """
    rules = []
    for number, line in lines:
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
        if len(fields) not in (2, 3) or "" in fields:
            raise DataError(f"{path}:{number}: {brief(line)} is not a rule", FORM)
        label, feature, *rest = fields
        try:
            strength = float(rest[0]) if rest else SEED_STRENGTH
        except ValueError:
            strength = -1.0
        if not 0.0 < strength < np.inf:
            raise DataError(
                f"{path}:{number}: {rest[0]!r} is not a valid strength",
                f"give a number above 0; {FORM}",
            )
        rules.append(Rule(feature, label, strength))
    return rules


def read_rules(path: str | PathLike[str]) -> list[Rule]:
    """Read seed rules from a file, one per line, as ``rules_.to_text()`` writes them."""
    text = Path(path).read_text(encoding="utf-8-sig")
    return parse_rules(enumerate(text.split("\n"), 1), str(path))


def number_seeds(seeds: Sequence[Rule], labels: IntArray, features: Sequence[Any]) -> Rules:
    """Convert seeds to arrays over features; seeds whose feature does not occur are left out.

    ``labels`` are the class numbers of the seeds. Strengths above 1, which only mean that a rule
    takes precedence, become 1.
    """
    columns = {feature: number for number, feature in enumerate(features)}
    zeros = np.zeros(len(features))
    rules = Rules(np.full(len(features), UNKNOWN, np.int64), zeros.copy(), zeros, zeros)
    missing = []
    for seed, label in zip(seeds, labels.tolist(), strict=True):
        column = columns.get(seed.feature)
        if column is None:
            missing.append(brief(seed.feature))
        elif rules.label[column] not in (UNKNOWN, label):
            raise DataError(
                f"the seeds give {brief(seed.feature)} two labels", "give each feature one label"
            )
        else:
            rules.label[column] = label
            rules.strength[column] = min(seed.strength, 1.0)
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        names = f"{', '.join(missing[:5])}{more}"
        if len(missing) == len(seeds):
            raise DataError(
                f"no item has the feature of any seed: {names}",
                "write features as they occur in the data: texts are split into lower-case words",
            )
        warnings.warn(f"no item has the features of these seeds: {names}", stacklevel=3)
    return rules


def number_documents(documents: Sequence[Hashable | None], n_items: int) -> IntArray:
    """Number the documents; an item without one (None, "", NaN) gets a number of its own.

    >>> number_documents(["a", None, "b", "a"], 4)
    array([0, 1, 2, 0])
    """
    if len(documents) != n_items:
        raise DataError(
            f"{len(documents)} documents for {n_items} items", "name the document of each item"
        )
    numbers: dict[Hashable, int] = {}
    keys = (
        ("alone", i) if d is None or d == "" or d != d else ("document", d)
        for i, d in enumerate(documents)
    )
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def add_discourse(
    labels: IntArray, confidence: FloatArray, documents: IntArray, weight: float, n_classes: int
) -> tuple[IntArray, FloatArray]:
    """Apply one sense per discourse as a soft constraint: items of a document influence each other.

    Each item's label is decided by its own evidence, plus ``weight`` times that of the other items
    of its document. The evidence of an item for its label is the log-odds of its confidence p
    against any one of the other K − 1 labels, e = log [p (K − 1) / (1 − p)], and 0 for the others:
    item i of document d scores eᵢ(k) + weight · Σ_{j ∈ d, j ≠ i} eⱼ(k) for label k, and p(k) is
    the softmax of its scores. An unlabelled item gets a label if others of its document have one.

    Returns labels (items,) and p(k), of shape (items, classes).

    >>> documents = np.zeros(4, int)
    >>> add_discourse(np.array([0, 0, 1, -1]), np.array([.9, .9, .6, 0]), documents, 1., 2)[0]
    array([0, 0, 0, 0])
    """
    known = np.flatnonzero(labels != UNKNOWN)
    sure = np.clip(confidence[known], 1.0 / n_classes, SUREST)
    own = np.zeros((len(labels), n_classes))
    own[known, labels[known]] = np.log(sure * max(n_classes - 1, 1) / (1.0 - sure))
    totals = np.zeros((int(documents.max(initial=-1)) + 1, n_classes))
    np.add.at(totals, documents, own)
    scores = own + weight * (totals[documents] - own)
    has_evidence = np.abs(scores).max(axis=1) > 1e-12
    posteriors = np.exp(scores - scores.max(axis=1, keepdims=True))
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    return np.where(has_evidence, scores.argmax(axis=1), labels), posteriors


def collocations(
    tokens: Sequence[str],
    position: int,
    window: int | None = 25,
    stop_words: Collection[str] = (),
) -> list[str]:
    """Return the collocations of the token at ``position``, as features with readable names.

    After Yarowsky (1994), with ``_`` for the position of the token itself: ``in_`` is the word just
    before it and ``_for`` the one just after, ``stood·_`` and ``_·bread`` those with one word
    between; pairs of adjacent words are ``stood in_``, ``in_for`` and ``_for bread``; and every
    word within the ``window`` (None: all) is a feature by its own name, unless it is one of the
    ``stop_words``. Punctuation is skipped.

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


class Decisions(NamedTuple):
    """Labels of items, their confidences, and how they were decided.

    ``by`` is the number of the feature whose rule decided, or one of `NOBODY` (no label), `GIVEN`
    (known beforehand), `DOCUMENT` (other items of the same document).
    """

    labels: IntArray  # class numbers; −1: unlabelled
    confidence: FloatArray
    by: IntArray


@dataclass(frozen=True, eq=False)
class Rules:
    """At most one rule per feature: arrays over all features, with label −1 if there is no rule."""

    label: IntArray
    strength: FloatArray
    count: Array
    total: Array

    @cached_property
    def order(self) -> IntArray:
        """Features that have rules, strongest first; among equals, the more frequent first."""
        features = np.flatnonzero(self.label != UNKNOWN)
        keys = (features, -self.count[features], -self.strength[features])
        ranked: IntArray = features[np.lexsort(keys)]
        return ranked

    def keep(self, wanted: BoolArray) -> Rules:
        """Return only the rules of these features (a mask)."""
        label = np.where(wanted, self.label, UNKNOWN)
        return Rules(label, np.where(wanted, self.strength, 0.0), self.count, self.total)

    def override(self, by: Rules, *, counts: bool = False) -> Rules:
        """Return these rules, replaced by those of ``by`` where it has a rule; ``counts``: replace
        their counts, too."""
        other = by.label != UNKNOWN
        label = np.where(other, by.label, self.label)
        strength = np.where(other, by.strength, self.strength)
        if not counts:
            return Rules(label, strength, self.count, self.total)
        count, total = np.where(other, by.count, self.count), np.where(other, by.total, self.total)
        return Rules(label, strength, count, total)

    def decide(self, items: Compressed) -> Decisions:
        """Label every item by its strongest rule; ``items``: the features of each item."""
        rank = np.full(len(self.label), len(self.order), np.int32)
        rank[self.order] = np.arange(len(self.order))
        first = np.full(len(items.indptr) - 1, len(self.order), np.int32)
        nonempty = np.flatnonzero(np.diff(items.indptr))
        if len(nonempty):
            ranks = rank[items.columns]
            first[nonempty] = np.minimum.reduceat(ranks, items.indptr[nonempty])
        features = np.append(self.order, NOBODY)[first]
        label = np.append(self.label, UNKNOWN)[features]
        return Decisions(label, np.append(self.strength, 0.0)[features], features)


class FeatureCounts:
    """Numbers of labelled items by feature and class, updated incrementally as labels change.

    >>> items = Compressed(np.array([0, 2, 3]), np.array([0, 1, 1]), np.ones(3))
    >>> FeatureCounts(items, n_features=2, n_classes=2).update(np.array([1, 0])).tolist()
    [[0, 1], [1, 1]]
    """

    def __init__(self, items: Compressed, n_features: int, n_classes: int) -> None:
        self.items = items
        self.labels: IntArray = np.full(len(items.indptr) - 1, UNKNOWN, np.int64)
        self.counts = np.zeros((n_features, n_classes), np.int64)

    def update(self, labels: IntArray) -> IntArray:
        """Return the counts (features, classes) for these labels; the same array is updated in
        place by every call."""
        moved = np.flatnonzero(labels != self.labels)
        starts, lengths = self.items.indptr[moved], np.diff(self.items.indptr)[moved]
        ends = np.cumsum(lengths)
        within = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        features = self.items.columns[np.repeat(starts, lengths) + within].astype(np.int64)
        for amount, of_items in ((1, labels), (-1, self.labels)):
            classes = np.repeat(of_items[moved], lengths)
            known = classes != UNKNOWN
            cells = features[known] * self.counts.shape[1] + classes[known]
            if len(cells) > self.counts.size // 4:
                added = np.bincount(cells, minlength=self.counts.size)
                self.counts += amount * added.reshape(self.counts.shape)
            else:
                np.add.at(self.counts.reshape(-1), cells, amount)
        self.labels = labels.copy()
        return self.counts


def learn_rules(
    counts: IntArray, smoothing: float, threshold: float = 0.0, most: int | None = None
) -> tuple[Rules, bool]:
    """Learn rules from the counts of labelled items; also return whether ``most`` left any out.

    A feature's label is the most frequent one among its items (ties: the one more frequent
    overall). Its strength is (count + α) / (total + Kα) for K classes, where α is the
    ``smoothing``. Only rules whose unsmoothed precision, count / total, is above the ``threshold``
    are kept; and for each class at most the ``most`` with the largest totals (Collins & Singer
    1999).
    """
    K = counts.shape[1]
    common_first = np.argsort(-counts.sum(axis=0), kind="stable")
    label = common_first[counts[:, common_first].argmax(axis=1)]
    count = counts[np.arange(len(counts)), label]
    total = counts.sum(axis=1)
    wanted = (total > 0) & (count > threshold * total)
    left_out = False
    if most is not None:
        for k in range(K):
            of_class = np.flatnonzero(wanted & (label == k))
            if len(of_class) > most:
                ranked = of_class[np.argsort(-total[of_class], kind="stable")]
                wanted[ranked[most:]] = False
                left_out = True
    strength = (count + smoothing) / np.maximum(total + K * smoothing, 1e-300)
    return Rules(label, strength, count, total).keep(wanted), left_out


class DecisionList(Sequence[Rule]):
    """A sequence of rules, strongest first; ``print`` shows the first ones of each class.

    >>> rules = Rules(np.array([1, -1, 0]), np.array([.9, 0, .8]), np.ones(3), np.ones(3))
    >>> decisions = DecisionList(rules, ["bank", "the", "reed"], ["money", "river"])
    >>> decisions[0]
    Rule(feature='bank', label='river', strength=0.9, count=1, total=1)
    >>> decisions.to_text()
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
        """Return the rule of a feature, given by its number."""
        rules = self.rules
        return Rule(
            self.features[feature],
            self.classes[rules.label[feature]],
            float(rules.strength[feature]),
            int(rules.count[feature]),
            int(rules.total[feature]),
        )

    def of_class(self, label: Any, most: int | None = None) -> list[Rule]:
        """Return the rules of a class, strongest first; at most ``most``."""
        number = list(self.classes).index(label)
        chosen = self.rules.order[self.rules.label[self.rules.order] == number]
        return [self.of_feature(f) for f in chosen[:most].tolist()]

    def to_text(self) -> str:
        """Format the rules for `read_rules`, one per line: label, tab, feature, tab, strength."""
        return "".join(f"{r.label}\t{r.feature}\t{r.strength:.9g}\n" for r in self)

    def __str__(self) -> str:
        shown = [rule for label in self.classes for rule in self.of_class(label, SHOWN)]
        return "\n".join(map(str, shown))


@dataclass(frozen=True, eq=False)
class BootstrapRounds:
    """The rounds of bootstrapping: rules label items, and rules are learned from these items.

    ``settings``   the parameters of `Yarowsky`
    ``items``      the features of each item
    ``given``      the class number of each item if known beforehand, else −1
    ``seeds``      rules that never change
    ``documents``  the number of each item's document, or None
    """

    settings: YarowskyParameters
    items: Compressed
    given: IntArray
    seeds: Rules
    n_classes: int
    documents: IntArray | None = None

    @interrupt.graceful()
    def run(self, views: Sequence[BoolArray], record: Callable[[Decisions], None]) -> Rules:
        """Run rounds until nothing changes; return all rules learned from the final labels.

        As long as a cautious variant leaves rules out, the next round takes more of them, and may
        still change labels. Views take turns: each labels items for the next one to learn from; a
        single view labels them for itself.

        ``views``   masks over features; a single mask of ones: no views
        ``record``  callback for the decisions by the seeds, and for those after each round
        """
        settings = self.settings
        if not settings.max_rounds:
            record(self._label(self.seeds))
            return self.seeds
        n_features = len(self.seeds.label)
        rules = [self.seeds.keep(view) for view in views]
        counts = [FeatureCounts(self.items, n_features, self.n_classes) for _ in views]
        seen: set[int] = set()
        decided = self._label(self.seeds)
        record(decided)
        for number in range(1, settings.max_rounds + 1):
            changed = any_left_out = False
            most = number * settings.step if settings.variant.endswith("cautious") else None
            for view in range(len(views)):
                learner = (view + 1) % len(views)  # the view that learns from these labels
                labelled = decided if len(views) == 1 else self._label(rules[view])
                changed |= not np.array_equal(labelled.labels, counts[view].labels)
                table = counts[view].update(labelled.labels)
                if len(views) > 1:
                    table = table * views[learner][:, None]
                learned, left_out = learn_rules(table, settings.smoothing, settings.threshold, most)
                rules[learner] = learned.override(self.seeds.keep(views[learner]))
                any_left_out |= left_out
            merged = rules[0]
            for others in rules[1:]:  # views have no feature in common
                merged = merged.override(others, counts=True)
            decided = self._label(merged)
            record(decided)
            state = hash(tuple(of_view.labels.tobytes() for of_view in counts))
            if not any_left_out and (not changed or state in seen):  # converged, or in a cycle
                break
            seen.add(state)
            if interrupt.asked():
                interrupt.tell(f"after {number:,} rounds: the rules learned by then are kept")
                break
        everything, _ = learn_rules(counts[0].update(decided.labels), settings.smoothing)
        return everything.override(self.seeds)

    def _label(self, rules: Rules) -> Decisions:
        propagating = self.settings.variant.startswith("propagating")
        return self._propagate(rules) if propagating else self.decide(rules)

    def decide(self, rules: Rules) -> Decisions:
        """Label items by their strongest rules, and by their documents."""
        return self._settle(rules.decide(self.items))

    def _settle(self, decided: Decisions) -> Decisions:
        """Restore the given labels, then let documents influence the others."""
        known = self.given != UNKNOWN
        labels = np.where(known, self.given, decided.labels)
        confidence = np.where(known, 1.0, decided.confidence)
        by = np.where(known, GIVEN, decided.by)
        if self.documents is None or not self.settings.discourse:
            return Decisions(labels, confidence, by)
        after, posteriors = add_discourse(
            labels, confidence, self.documents, self.settings.discourse, self.n_classes
        )
        by = np.where((after != labels) & ~known, DOCUMENT, by)
        labels = np.where(known, self.given, after)
        chosen = posteriors[np.arange(len(labels)), np.maximum(labels, 0)]
        confidence = np.where(known | (labels == UNKNOWN), confidence, chosen)
        return Decisions(labels, confidence, by)

    @cached_property
    def _graph(self) -> tuple[Any, FeatureCounts, IntArray]:
        """Graph of Whitney & Sarkar: items × features, label counts, and items per feature."""
        n_features, columns = len(self.seeds.label), self.items.columns
        shape = (len(self.items.indptr) - 1, n_features)
        matrix = sparse.csr_matrix((np.ones(len(columns)), columns, self.items.indptr), shape=shape)
        counts = FeatureCounts(self.items, n_features, self.n_classes)
        return matrix, counts, np.bincount(columns, minlength=n_features)

    def _propagate(self, rules: Rules) -> Decisions:
        """Label items to which rules apply by the smoothed label distributions of their features.

        Every rule of an item has one vote for its label φ; ties are broken by strength. Then each
        feature f takes the mean of its items' labels, with unlabelled items as uniform: one step of
        propagation, θ_f = (μ Σ_{x ∋ f} φ_x + ν/K) / (μ |{x ∋ f}| + ν); and an item gets the label
        with the largest Σ_{f ∈ x} θ_f(k).
        """
        K = self.n_classes
        matrix, feature_counts, degrees = self._graph
        votes = np.zeros((len(rules.label), K))
        votes[rules.order, rules.label[rules.order]] = 1.0 + TIE * rules.strength[rules.order]
        elected, n_votes = _row_maxima(matrix @ votes)
        labels = np.where(n_votes > 0.0, elected, UNKNOWN)
        labels = np.where(self.given != UNKNOWN, self.given, labels)
        counts = feature_counts.update(labels)
        n_unlabelled = (degrees - counts.sum(axis=1))[:, None]
        theta = MU * (counts + n_unlabelled / K) + NU / K
        chosen, score = _row_maxima(matrix @ (theta / theta.sum(axis=1, keepdims=True)))
        # a score is a sum of distributions, one for each feature of the item
        confidence = score / np.maximum(np.diff(self.items.indptr), 1)
        unlabelled = labels == UNKNOWN
        labels = np.where(unlabelled, UNKNOWN, chosen)
        confidence = np.where(unlabelled, 0.0, confidence)
        return self._settle(Decisions(labels, confidence, rules.decide(self.items).by))


def _row_maxima(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the column and the value of each row's maximum; fast if there are few columns."""
    where = np.zeros(len(scores), np.int64)
    largest = scores[:, 0].copy()
    for k in range(1, scores.shape[1]):
        larger = scores[:, k] > largest
        where[larger] = k
        largest[larger] = scores[larger, k]
    return where, largest


class Yarowsky(YarowskyParameters, DocumentReader, SemiSupervisedClassifier):
    """Yarowsky's algorithm: bootstrap a decision list from a few seed rules and many unlabelled
    items (Yarowsky 1995).

    A rule says that items with a certain feature have a certain label. In each round, every item is
    labelled by its strongest applicable rule, and new rules are learned from the labelled items;
    seed rules never change. When no label changes any more and no rule is left out for caution, or
    after ``max_rounds``, a final list takes every rule supported by the labels, however weak. If c
    of the n labelled items with a feature have its most frequent label, the rule has strength
    (c + α) / (n + Kα) for K labels.

    ``variant``     the rules used in each round:
                    "plain": all with c / n above the ``threshold`` (as in Abney 2004);
                    "cautious": of these, for each label, the ``step`` · round ones with the
                    largest n (Collins & Singer 1999);
                    "propagating": as plain, but items to which rules apply are labelled by all
                    their features, each of which takes the mean label of its items (the φ–θ graph
                    of Whitney & Sarkar 2012); "propagating-cautious": both
    ``threshold``   minimum precision c / n of a rule, without smoothing
    ``smoothing``   α
    ``step``        number of rules added per label in each round of the cautious variants
    ``max_rounds``  maximum number of rounds; 0 only applies the seed rules
    ``discourse``   one sense per discourse as a soft constraint: weight of the other items of an
                    item's document relative to its own rule (see `add_discourse`); 0: off
    ``views``       function from a feature's name to the name of its view. Then views take turns:
                    one labels items, and the next learns its rules from them (DL-CoTrain)
    ``abstain``     whether `predict` returns −1 (None, if labels are texts) for items to which no
                    rule applies; else they get the most common label
    ``vectorizer``  extracts features from texts; None: words in lower case

    Attributes after ``fit``: ``rules_`` (a `DecisionList`: a sequence of `Rule`, strongest first),
    ``transduction_`` (labels of the training items), ``bootstrapped_`` (the same after the last
    round, before the final list; −1 or None for unlabelled items), ``prior_``, ``n_iter_``,
    ``history_`` (its first round is the labels by the seeds, its last those by the final list).

    >>> texts = ["loan from bank", "bank loan rates", "high rates", "river bank mud",
    ...          "mud and reed", "reed boat"]
    >>> model = Yarowsky().fit(texts, seeds={"money": ["loan"], "water": ["river"]})
    >>> model.transduction_.tolist()
    ['money', 'money', 'money', 'water', 'water', 'water']
    >>> print(model.decision("a boat"))
    boat → water  0.9167  1 of 1
    """

    rules_: DecisionList
    bootstrapped_: Array
    prior_: FloatArray
    n_iter_: int
    """Number of rounds."""

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
        """Fit to items and seed rules, or to partially labelled items, or to both.

        ``X``          texts, lists of features, or a matrix: above 0 where an item has a feature
        ``y``          known labels, which never change; −1 or None: unknown
        ``seeds``      mapping from labels to features, or rules
        ``documents``  the document of each item, for ``discourse``; None: one of its own
        ``gold``       true labels, for the accuracy over rounds in ``history_``
        ``features``   names of the columns, if X is a matrix
        """
        self._check_settings()
        with all_or_nothing(self):
            rules = list_seeds(seeds)
            items = self._read_documents(X, first=True)
            n = len(items)
            if features is not None:
                self._name_features(features)
            if rules:  # labels of the seeds, followed by those of the items
                of_items = [None] * n if y is None else list(y)
                if len(of_items) != n:
                    read_labels(of_items, n)  # raises, because the lengths differ
                labels = read_labels([*(rule.label for rule in rules), *of_items], len(rules) + n)
            else:
                labels = read_labels(y, n)
            self.classes_ = labels.classes
            of_seeds, given = np.split(labels.likeliest(), [len(rules)])
            names = self.word_names().tolist()
            work = BootstrapRounds(
                self,
                items.by_document,
                given,
                number_seeds(rules, of_seeds, names),
                len(self.classes_),
                None if documents is None else number_documents(documents, n),
            )
            self.history_ = History.begin(self.classes_, given, gold)
            counts = self._learn(work, names)
        without = self.classes_[counts == 0].tolist()
        if without:
            warnings.warn(
                f"no item was labelled {brief(without[0])}: give it seeds that occur", stacklevel=2
            )
        return self

    def estimate(self, X: Any, y: Any = None) -> Estimate:
        """Estimate the memory that `fit` will need, and its work per round, without fitting."""
        self._check_settings()
        items = copy(self)._read_documents(X, first=True)
        n_classes = 2 if y is None else max(2, len(set(map(str, y)) - {"-1", "None"}))
        tables = COPIES * NUMBER * items.n_words * n_classes
        return estimate_rows(items.matrix, n_classes, rules=tables)

    def _check_settings(self) -> None:
        check_parameters(self)
        if self.views is not None and self.variant.startswith("propagating"):
            raise LearnerError(
                "views cannot be combined with a propagating variant",
                "choose variant='cautious' or 'plain'",
            )

    def _name_features(self, features: Sequence[Any]) -> None:
        """Assign names to the columns of a matrix."""
        if len(features) != self.n_features_in_:
            raise DataError(
                f"{len(features)} names of features for {self.n_features_in_} columns",
                "give one name for each column",
            )
        self.vocabulary_ = np.empty(len(features), dtype=object)
        self.vocabulary_[:] = list(features)

    def _learn(self, work: BootstrapRounds, names: list[Any]) -> IntArray:
        """Run the rounds and set the fitted attributes; return the number of items per label."""
        of_feature = ["" if self.views is None else self.views(name) for name in names]
        views = [
            np.array([v == view for v in of_feature]) for view in sorted(set(of_feature), key=str)
        ]
        # names by code of who decided: a feature, or from the end DOCUMENT, GIVEN, NOBODY
        callers = np.array([*map(str, names), "document", "given", ""], dtype=object)
        decided = Decisions(work.given, np.zeros(len(work.given)), work.given)

        def record(after: Decisions) -> None:
            nonlocal decided
            decided = after
            self.history_.record(after.labels, after.confidence, callers[after.by])

        rules = work.run(views, record)
        self.bootstrapped_ = self._name_labels(decided.labels, abstain=True)
        self.n_iter_ = len(self.history_) - 2  # without the given labels and those by the seeds
        if self.max_rounds:
            record(work.decide(rules))
        self.rules_ = DecisionList(rules, names, self.classes_.tolist())
        labelled = decided.labels[decided.labels != UNKNOWN]
        counts = np.bincount(labelled, minlength=work.n_classes)
        self.prior_ = (counts + 1.0) / (counts.sum() + work.n_classes)
        self.transduction_ = self._name_labels(decided.labels, abstain=self.abstain)
        return counts

    # prediction
    def predict(self, X: Any, documents: Sequence[Hashable | None] | None = None) -> Array:
        """Return the label of each item; see ``abstain`` for items to which no rule applies."""
        return self._name_labels(self._decide(X, documents).labels, abstain=self.abstain)

    def predict_proba(
        self, X: Any, documents: Sequence[Hashable | None] | None = None
    ) -> FloatArray:
        """Return class probabilities: the strength of the deciding rule for its label, the rest
        divided equally among the others.

        Items to which no rule applies get ``prior_``. With ``documents`` and a ``discourse``
        weight, the confidence after `add_discourse` replaces the strength.
        """
        decided = self._decide(X, documents)
        K = len(self.classes_)
        posteriors = np.tile(self.prior_, (len(decided.labels), 1))
        known = np.flatnonzero(decided.labels != UNKNOWN)
        sure = np.maximum(decided.confidence[known], 1.0 / K)
        # the others must never tie with the decision
        rest = np.minimum((1.0 - sure) / max(K - 1, 1), sure * (1.0 - 1e-12))
        posteriors[known] = rest[:, None]
        posteriors[known, decided.labels[known]] = sure if K > 1 else 1.0
        return posteriors

    def decisions(self, X: Any) -> list[Rule | None]:
        """Return the rule that decides each item; None if no rule applies."""
        by = self._decide(X, None).by
        return [None if f < 0 else self.rules_.of_feature(f) for f in by.tolist()]

    def decision(self, item: Any) -> Rule | None:
        """Return the rule that decides this item (a text, a list of features, or a row)."""
        return self.decisions(item if sparse.issparse(item) else [item])[0]

    def _decide(self, X: Any, documents: Sequence[Hashable | None] | None) -> Decisions:
        require_fitted(self, "rules_")
        items = self._read_documents(X, first=False)
        n, rules = len(items), self.rules_.rules
        numbers = None if documents is None else number_documents(documents, n)
        unknown = np.full(n, UNKNOWN, np.int64)
        work = BootstrapRounds(self, items.by_document, unknown, rules, len(self.classes_), numbers)
        return work.decide(rules)

    def _name_labels(self, numbers: IntArray, *, abstain: bool) -> Array:
        """Convert class numbers to labels."""
        unknown = numbers == UNKNOWN
        named: Array = self.classes_[np.where(unknown, 0, numbers)]
        if not unknown.any():
            return named
        if not abstain:
            named[unknown] = self.classes_[self.prior_.argmax()]
        elif named.dtype.kind in "iuf":
            named = named.astype(np.result_type(named, np.int8))  # unsigned types cannot hold −1
            named[unknown] = UNKNOWN
        else:
            named = named.astype(object)
            named[unknown] = None
        return named

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on points, of which it only uses the signs
        return tags
