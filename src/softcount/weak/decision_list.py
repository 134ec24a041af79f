"""Decision lists: the strongest rule that applies decides, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array

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

    >>> from softcount.corpus.bags import Compressed
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
        shown = [rule for label in self.classes for rule in self.of_class(label, SHOWN)]
        return "\n".join(map(str, shown))
