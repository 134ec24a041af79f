"""What there is to say of a learner that gave labels: by class, by view, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softcount.errors import DataError, shown
from softcount.models.mixture.labels import UNKNOWN
from softcount.types import Array
from softcount.weak.history import Changes, History, Round

FIRST_ROUNDS, LAST_ROUNDS = 20, 10
"""Of many rounds, so many at the beginning and at the end are listed."""
EACH = 3
"""So many items of a class and a round are listed, the most confident ones."""
MOST_LISTED = 600
"""With more items than this in all rounds, fewer of each are listed, but always one."""
MOST_CLASSES_A_ROUND = 20
NEXT = 20
"""So many items are listed as worth a label, and of those that have none."""


class Comparison(NamedTuple):
    """Labels that were not given beside gold ones: how many can be ``compared``, how many of these
    are ``right``, and how many items with a gold label have none.
    """

    compared: int
    right: int
    missing: int

    @property
    def accuracy(self) -> float:
        return self.right / self.compared if self.compared else float("nan")


class ClassRow(NamedTuple):
    """A class: how many items were given it, have it at the end; and beside gold labels, given ones
    left out, the share of its items that are ``right``, and of gold's items that are ``found``.
    """

    name: Any
    given: int
    labelled: int
    right: float
    found: float


class ViewRow(NamedTuple):
    """A view: how many items got a label from it that had none, and another one; how many still
    have what it said; its mean confidence, and the share of what it said that is right.
    """

    name: str
    new: int
    changed: int
    kept: int
    confidence: float
    right: float


class Item(NamedTuple):
    """An item and its label (None: it has none), the one ``before``, and whether it is right (None:
    nobody knows).
    """

    number: int
    label: Any
    confidence: float
    view: str = ""
    before: Any = None
    right: bool | None = None


class Given(NamedTuple):
    """What a round gave of a class: some ``items``, the most confident first, of ``total``."""

    label: Any
    items: Sequence[Item]
    total: int


class ShownRound(NamedTuple):
    """A round with some of what it gave; so many ``classes_left_out`` got labels too."""

    round: Round
    given: Sequence[Given]
    classes_left_out: int


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a history.

    ``labels``      each item's label at the end, as a number; −1: none
    ``confidence``  and how sure it is
    ``gold``        as in `History`
    ``blank``       whether an item has nothing that could be read
    """

    history: History
    labels: Array
    confidence: Array
    gold: Array | None
    blank: Array

    @cached_property
    def names(self) -> list[Any]:
        """The classes, as Python has them."""
        names: list[Any] = self.history.classes.tolist()
        return names

    @cached_property
    def learned(self) -> Array:
        """Which items have a label that was not given."""
        found: Array = (self.history.given == UNKNOWN) & (self.labels != UNKNOWN)
        return found

    def comparison(self) -> Comparison | None:
        """Beside gold labels; None if there are none."""
        if self.gold is None:
            return None
        known = self.gold != UNKNOWN
        compared = self.learned & known
        right = int((self.labels[compared] == self.gold[compared]).sum())
        missing = int((known & (self.labels == UNKNOWN)).sum())
        return Comparison(int(compared.sum()), right, missing)

    def classes(self) -> list[ClassRow]:
        """All classes in their order."""
        K = len(self.names)
        given, labelled = _count(self.history.given, K), _count(self.labels, K)
        right = found = np.full(K, np.nan)
        if self.gold is not None:
            known = self.learned & (self.gold != UNKNOWN)
            labels, gold = self.labels[known], self.gold[known]
            hits = _count(labels[labels == gold], K)
            right, found = _shares(hits, _count(labels, K)), _shares(hits, _count(gold, K))
        columns = (given, labelled, right, found)
        return [
            ClassRow(*row) for row in zip(self.names, *(c.tolist() for c in columns), strict=True)
        ]

    def views(self) -> list[ViewRow]:
        """All views but what was given, the one with most labels first."""
        tallies: dict[str, _Tally] = {}
        last = np.full(self.history.n_items, "", dtype=object)
        for number in range(1, len(self.history)):
            changes = self.history.changes(number)
            last[changes.items] = changes.views
            order = np.argsort(changes.views, kind="stable")
            names, starts = np.unique(changes.views[order], return_index=True)
            for name, part in zip(names, np.split(order, starts[1:]), strict=False):
                own = Changes(*(column[part] for column in changes))
                tallies.setdefault(name, _Tally()).add(own, self._right(own.items, own.labels))
        standing = last[(self.history.labels != UNKNOWN) & (last != "")]
        kept = dict(zip(*np.unique(standing, return_counts=True), strict=True))
        rows = [one.row(name, int(kept.get(name, 0))) for name, one in tallies.items()]
        return sorted(rows, key=lambda row: (-row.new - row.changed, row.name))

    def rounds(self) -> list[ShownRound]:
        """Some of what each round gave, of many rounds the first and the last ones."""
        busy = [one for one in self.history.rounds[1:] if one.new or one.changed or one.lost]
        if len(busy) > FIRST_ROUNDS + LAST_ROUNDS:
            busy = [*busy[:FIRST_ROUNDS], *busy[-LAST_ROUNDS:]]
        kinds = [self._kinds(one.number) for one in busy]
        groups = sum(min(len(some), MOST_CLASSES_A_ROUND) for some in kinds)
        each = min(EACH, max(1, MOST_LISTED // max(groups, 1)))
        return [self._round(one, some, each) for one, some in zip(busy, kinds, strict=True)]

    def doubtful(self) -> list[Item]:
        """Labelled items of which the learner is least sure, of those that can be read."""
        rows = np.flatnonzero(self.learned & ~self.blank)
        order = np.argsort(self.confidence[rows], kind="stable")[:NEXT]
        return [self._item(row) for row in rows[order].tolist()]

    def unlabelled(self) -> tuple[list[Item], int]:
        """The first items without a label that can be read, and how many there are."""
        rows = np.flatnonzero((self.labels == UNKNOWN) & ~self.blank)
        return [self._item(row) for row in rows[:NEXT].tolist()], len(rows)

    def _kinds(self, number: int) -> dict[int, Array]:
        """The places in a round's changes of those that got each class, the surest first."""
        changes = self.history.changes(number)
        order = np.lexsort((changes.items, -changes.confidence, changes.labels))
        labels, starts = np.unique(changes.labels[order], return_index=True)
        parts = np.split(order, starts[1:])
        found = dict(zip(labels.tolist(), parts, strict=True))
        found.pop(UNKNOWN, None)
        return found

    def _round(self, one: Round, kinds: dict[int, Array], each: int) -> ShownRound:
        changes = self.history.changes(one.number)
        largest = sorted(kinds, key=lambda k: (-len(kinds[k]), k))[:MOST_CLASSES_A_ROUND]
        given = [
            Given(
                self.names[k],
                [self._changed(changes, at) for at in kinds[k][:each].tolist()],
                len(kinds[k]),
            )
            for k in sorted(largest)
        ]
        return ShownRound(one, given, len(kinds) - len(largest))

    def _changed(self, changes: Changes, at: int) -> Item:
        item, label, before = (int(c[at]) for c in (changes.items, changes.labels, changes.before))
        right = self._is_right(item, label)
        sure = float(changes.confidence[at])
        return Item(item, self._name(label), sure, changes.views[at], self._name(before), right)

    def _item(self, item: int) -> Item:
        label = int(self.labels[item])
        sure = float(self.confidence[item])
        return Item(item, self._name(label), sure, right=self._is_right(item, label))

    def _name(self, label: int) -> Any:
        return None if label == UNKNOWN else self.names[label]

    def _is_right(self, item: int, label: int) -> bool | None:
        if self.gold is None or UNKNOWN in (label, self.gold[item]):
            return None
        return bool(label == self.gold[item])

    def _right(self, items: Array, labels: Array) -> Array:
        """Whether labels are right, where they were not given and that is known."""
        if self.gold is None:
            return np.zeros(0, dtype=bool)
        gold = self.gold[items]
        known = (self.history.given[items] == UNKNOWN) & (gold != UNKNOWN) & (labels != UNKNOWN)
        found: Array = labels[known] == gold[known]
        return found


class _Tally:
    """What a view gave, added up over rounds."""

    def __init__(self) -> None:
        self.new = self.changed = self.compared = self.right = 0
        self.confidence = 0.0

    def add(self, own: Changes, right: Array) -> None:
        said = own.labels != UNKNOWN
        self.new += int((own.before == UNKNOWN).sum())
        self.changed += int((said & (own.before != UNKNOWN)).sum())
        self.confidence += float(own.confidence[said].sum())
        self.compared += len(right)
        self.right += int(right.sum())

    def row(self, name: str, kept: int) -> ViewRow:
        said = self.new + self.changed
        confidence = self.confidence / said if said else float("nan")
        right = self.right / self.compared if self.compared else float("nan")
        return ViewRow(name, self.new, self.changed, kept, confidence, right)


def figures(
    history: History,
    texts: Sequence[str] | None = None,
    labels: Sequence[Any] | Array | None = None,
    confidence: Sequence[float] | Array | None = None,
    gold: Array | None = None,
) -> Figures:
    """The figures of a history; what is at the end may be other than what its last round left.

    ``labels``  each item's label at the end, None if it has none
    ``gold``    as in `History`, whose own is used if there is none here
    """
    n = history.n_items
    numbers = history.labels if labels is None else _numbered(labels, history.classes.tolist())
    sure = history.confidence() if confidence is None else np.asarray(confidence, np.float64)
    known = history.gold if gold is None else np.asarray(gold)
    blank = np.zeros(n, bool) if texts is None else np.array([not t.strip() for t in texts], bool)
    some = {"texts": blank, "labels": numbers, "confidence": sure, "gold": known}
    for name, found in some.items():
        if found is not None and len(found) != n:
            raise DataError(f"{name}: {len(found)} for {n} items", "give one for each item")
    return Figures(history, numbers, sure, known, blank)


def _numbered(labels: Sequence[Any] | Array, names: Sequence[Any]) -> Array:
    numbers = {name: k for k, name in enumerate(names)}
    places: dict[Any, int] = {None: UNKNOWN, UNKNOWN: UNKNOWN} | numbers
    plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
    strange = [label for label in plain if label not in places]
    if strange:
        raise DataError(
            f"labels: {shown(strange[0])} is none of the classes", f"they are {shown(names)}"
        )
    return np.array([places[label] for label in plain], dtype=np.int64)


def _count(labels: Array, n_classes: int) -> Array:
    """How many have each class; what is no class is left out."""
    return np.bincount(labels[labels >= 0], minlength=n_classes)


def _shares(parts: Array, wholes: Array) -> Array:
    return np.where(wholes > 0, parts / np.maximum(wholes, 1), np.nan)
