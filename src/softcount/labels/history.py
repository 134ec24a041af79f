"""What was labelled when, with what confidence, and by which view."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from operator import index
from typing import Any, NamedTuple, Self

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.mixture.data import UNKNOWN, is_unknown, read_labels

GIVEN = "given"
"""The view of round 0."""
OTHER = -2
"""The number of a true label that is none of the classes."""


class Event(NamedTuple):
    """A change of an item's label: in which ``round``, to which ``label`` (None: it lost the one it
    had), with which confidence (0 to 1), and by which view.
    """

    round: int
    label: Any
    confidence: float
    view: str


class Changes(NamedTuple):
    """The same for all ``items`` that a round changed, as arrays; ``labels`` are numbers, −1: lost,
    and so are those they had ``before``, −1: none.
    """

    items: IntArray
    before: IntArray
    labels: IntArray
    confidence: FloatArray
    views: Array


class Round(NamedTuple):
    """What a round did: how many items are ``labelled`` now, those given at the start included;
    how many got a label in it that had none (``new``), another one (``changed``), or none
    (``lost``). So ``labelled`` is what it was before, and ``new``, less ``lost``.

    ``confidence``  the mean of what is new or changed; NaN if nothing is
    ``accuracy``    of all labels that were not given, where gold is known; NaN if it is nowhere
    """

    number: int
    labelled: int
    new: int
    changed: int
    lost: int
    confidence: float
    accuracy: float


class History:
    """The rounds of a learner that gives labels; round 0 is what it was given.

    ``classes``  the labels there are
    ``given``    each item's label at the start, as a number; −1: none
    ``gold``     each item's true label, as a number; −1 where it is unknown, −2 where it is none of
                 the classes; None: nothing is known

    ``labels`` are the numbers of the labels now, after the last round.

    >>> history = History(["no", "yes"], np.array([0, 1, -1]), gold=np.array([0, 1, 1]))
    >>> history.record(np.array([0, 1, 1]), np.array([1.0, 1.0, 0.8]), "spelling")
    >>> history.of(2)
    [Event(round=1, label='yes', confidence=0.8, view='spelling')]
    >>> history.rounds[1].accuracy
    1.0
    """

    def __init__(self, classes: Any, given: IntArray, gold: IntArray | None = None) -> None:
        self.classes = np.asarray(classes)
        self.rounds: list[Round] = []
        self.given = _check_labels("given", given, UNKNOWN, len(self.classes))
        self.gold = None
        if gold is not None:
            self.gold = _check_labels("gold", gold, OTHER, len(self.classes))
            _check_length("gold", self.gold, self.n_items)
        self.labels: IntArray = np.full(self.n_items, UNKNOWN, np.int64)
        self._names = self.classes.tolist()
        self._changes: list[Changes] = []
        self.record(self.given, np.ones(len(self.given)), GIVEN)

    @classmethod
    def begin(cls, classes: Any, given: IntArray, gold: Any) -> Self:
        """The same with true labels as users give them: by name, −1 or None where unknown."""
        return cls(classes, given, gold_numbers(gold, classes, len(given)))

    def record(
        self, labels: IntArray, confidence: FloatArray, view: str | Sequence[str] | Array
    ) -> None:
        """A round: every item's label after it (a number; −1: none), how confident, and by whom.

        ``view`` is one name, or one for every item. Only what changed is kept.
        """
        labels = _check_labels("labels", labels, UNKNOWN, len(self.classes))
        confidence = np.asarray(confidence, dtype=np.float64)
        _check_length("labels", labels, self.n_items)
        _check_length("confidence", confidence, self.n_items)
        moved = np.flatnonzero(labels != self.labels)
        before, after = self.labels[moved], labels[moved]
        views = np.empty(len(moved), dtype=object)
        if isinstance(view, str):
            views[:] = view
        else:
            _check_length("view", view, self.n_items)
            views[:] = [str(view[item]) for item in moved.tolist()]
        self._changes.append(Changes(moved, before, after, confidence[moved], views))
        self.labels = labels
        accuracy = float("nan")
        if self.gold is not None:
            compared = (self.given == UNKNOWN) & (labels != UNKNOWN) & (self.gold != UNKNOWN)
            accuracy = _mean(labels[compared] == self.gold[compared])
        lost = after == UNKNOWN
        self.rounds.append(
            Round(
                number=len(self.rounds),
                labelled=int((labels != UNKNOWN).sum()),
                new=int((before == UNKNOWN).sum()),
                changed=int(((before != UNKNOWN) & ~lost).sum()),
                lost=int(lost.sum()),
                confidence=_mean(confidence[moved][~lost]),
                accuracy=accuracy,
            )
        )

    def of(self, item: int) -> list[Event]:
        """All that happened to an item, in order."""
        item = index(item)
        if not 0 <= item < self.n_items:
            raise IndexError(f"there is no item {item}: they are numbered 0 to {self.n_items - 1}")
        events = []
        for number, changes in enumerate(self._changes):
            at = int(np.searchsorted(changes.items, item))
            if at < len(changes.items) and changes.items[at] == item:
                events.append(self._event(number, at))
        return events

    def events(self, number: int) -> list[tuple[int, Event]]:
        """What a round changed: items and what happened to them, in the order of the items."""
        items = self.changes(number).items.tolist()
        number = range(len(self))[number]
        return [(item, self._event(number, at)) for at, item in enumerate(items)]

    def changes(self, number: int) -> Changes:
        """The same as arrays."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no round {number}: they are numbered 0 to {len(self) - 1}")
        return self._changes[number]

    def first_rounds(self) -> IntArray:
        """The round in which each item got its first label; −1 if it never did."""
        first = np.full(self.n_items, UNKNOWN, np.int64)
        for number in reversed(range(len(self.rounds))):
            changes = self._changes[number]
            first[changes.items[changes.labels != UNKNOWN]] = number
        return first

    def counts(self) -> IntArray:
        """How many items have each class after each round: (rounds, classes).

        >>> history = History(["no", "yes"], np.array([0, -1, -1]))
        >>> history.record(np.array([1, 1, -1]), np.array([0.7, 0.9, 0.0]), "body")
        >>> history.counts()
        array([[1, 0],
               [0, 2]])
        """
        steps = np.zeros((len(self.rounds), len(self.classes)), np.int64)
        for step, changes in zip(steps, self._changes, strict=True):
            np.add.at(step, changes.labels[changes.labels != UNKNOWN], 1)
            np.subtract.at(step, changes.before[changes.before != UNKNOWN], 1)
        return steps.cumsum(axis=0)

    def confidence(self) -> FloatArray:
        """How confident each item's label was when the item got it; NaN for items without one."""
        last = np.full(self.n_items, np.nan)
        for changes in self._changes:
            last[changes.items] = np.where(changes.labels == UNKNOWN, np.nan, changes.confidence)
        return last

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.given)

    @property
    def accuracy(self) -> FloatArray:
        """The accuracy after each round; NaN where nothing can be compared."""
        return np.array([one.accuracy for one in self.rounds])

    def __len__(self) -> int:
        return len(self.rounds)

    def __str__(self) -> str:
        """A table, one line a round."""
        rows = [HEADS, *map(format_round, self.rounds)]
        widths = [
            max(least, *map(len, column))
            for least, column in zip(WIDTHS, zip(*rows, strict=True), strict=True)
        ]
        return "\n".join(
            " ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )

    def __repr__(self) -> str:
        labelled = self.rounds[-1].labelled
        return f"<History: {len(self)} rounds, {labelled:,} of {self.n_items:,} items labelled>"

    def _repr_html_(self) -> str:
        # by its name: pictures are a layer above this one, and notebooks alone ask for them here
        return str(import_module("softcount.labels.report").history_card(self))

    def _event(self, number: int, at: int) -> Event:
        changes = self._changes[number]
        label = int(changes.labels[at])
        name = None if label == UNKNOWN else self._names[label]
        return Event(number, name, float(changes.confidence[at]), changes.views[at])


def gold_numbers(gold: Any, classes: Array, n_items: int) -> IntArray | None:
    """True labels as numbers for a `History`; None if there are none.

    >>> gold_numbers(["no", None, "other"], np.array(["no", "yes"]), 3)
    array([ 0, -1, -2])
    """
    if gold is None:
        return None
    if len(gold) == n_items and all(map(is_unknown, gold)):
        return np.full(n_items, UNKNOWN, np.int64)
    try:
        read = read_labels(gold, n_items)
    except DataError as error:
        raise DataError(f"gold: {error.message}", error.hint) from error
    if read.shares is not None:
        raise DataError("gold: shares of classes are not compared", "give one label for each item")
    names = np.asarray(classes).tolist()
    places = {label: number for number, label in enumerate(names)}
    true = read.classes.tolist()
    renumbered = np.array([places.get(label, OTHER) for label in true])
    if (renumbered == OTHER).all():
        raise DataError(
            f"gold: none of its labels is one of the classes, such as {brief(true[0])}",
            f"the classes are {brief(names)}; −1 or None where a label is unknown",
        )
    return np.where(read.numbers == UNKNOWN, UNKNOWN, renumbered[read.numbers])


HEADS = ("round", "labelled", "new", "changed", "lost", "confidence", "accuracy")
WIDTHS = (5, 9, 7, 8, 6, 11, 9)


def format_round(one: Round) -> tuple[str, ...]:
    """A round as the cells of a table."""
    *counts, confidence, accuracy = one
    shares = ("–" if np.isnan(share) else f"{share:.3f}" for share in (confidence, accuracy))
    return (*(f"{n:,}" for n in counts), *shares)


def _check_labels(what: str, labels: Any, least: int, n_classes: int) -> IntArray:
    """A copy of labels that are numbers of classes, which nobody else can change."""
    numbers = np.array(labels, dtype=np.int64)
    if numbers.ndim != 1 or (
        len(numbers) and not least <= numbers.min() <= numbers.max() < n_classes
    ):
        raise DataError(
            f"{what}: not a number from {least} to {n_classes - 1} for each item",
            f"there are {n_classes} classes, numbered from 0; −1 is unknown",
        )
    numbers.setflags(write=False)
    return numbers


def _check_length(what: str, given: Sequence[Any] | Array, n_items: int) -> None:
    if len(given) != n_items:
        raise DataError(f"{what}: {len(given)} for {n_items} items", "give one for each item")


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
