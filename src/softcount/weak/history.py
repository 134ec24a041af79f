"""What was labelled when, with what confidence, and by which view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.models.mixture.labels import UNKNOWN, read_labels
from softcount.types import Array


class Event(NamedTuple):
    """An item's label changed: which ``round``, to which ``label`` (None: it lost the one it had),
    how confidently (0 to 1), and which view it was that said so.
    """

    round: int
    label: Any
    confidence: float
    view: str


@dataclass(frozen=True)
class Round:
    """What a round did: how many items are ``labelled`` now, those given at the start included;
    how many got their first label in it (``new``), another one (``changed``), or none (``lost``).

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

    >>> history = History(["no", "yes"], np.array([0, 1, -1]), gold=np.array([0, 1, 1]))
    >>> history.record(np.array([0, 1, 1]), np.array([1.0, 1.0, 0.8]), "spelling")
    >>> history.of(2)
    [Event(round=1, label='yes', confidence=0.8, view='spelling')]
    >>> history.rounds[1].accuracy
    1.0
    """

    def __init__(self, classes: Any, given: Array, gold: Array | None = None) -> None:
        self.classes = np.asarray(classes)
        self.rounds: list[Round] = []
        self._given = np.array(given, dtype=np.int64)
        self._now = np.full(len(self._given), UNKNOWN, np.int64)
        self._gold = None if gold is None else np.array(gold, dtype=np.int64)
        self._items: list[Array] = []
        self._labels: list[Array] = []
        self._confidence: list[Array] = []
        self._views: list[Array] = []
        self.record(self._given, np.ones(len(self._given)), "given")

    def record(self, labels: Array, confidence: Array, view: str | Sequence[str] | Array) -> None:
        """A round: every item's label after it (a number; −1: none), how confident, and by whom.

        ``view`` is one name, or one for every item. Only what changed is kept.
        """
        labels = np.asarray(labels, dtype=np.int64)
        moved = np.flatnonzero(labels != self._now)
        before, after = self._now[moved], labels[moved]
        sure = np.asarray(confidence, dtype=np.float64)[moved]
        views = view if isinstance(view, str) else np.asarray(view, dtype=object)[moved]
        self._items.append(moved)
        self._labels.append(after)
        self._confidence.append(sure)
        self._views.append(np.full(len(moved), views, dtype=object))
        self._now = labels.copy()
        lost = after == UNKNOWN
        self.rounds.append(
            Round(
                number=len(self.rounds),
                labelled=int((labels != UNKNOWN).sum()),
                new=int((before == UNKNOWN).sum()),
                changed=int(((before != UNKNOWN) & ~lost).sum()),
                lost=int(lost.sum()),
                confidence=_mean(sure[~lost]),
                accuracy=self._accuracy(),
            )
        )

    def of(self, item: int) -> list[Event]:
        """All that happened to an item, in order."""
        found = []
        for number, items in enumerate(self._items):
            at = int(np.searchsorted(items, item))
            if at < len(items) and items[at] == item:
                found.append(self._event(number, at))
        return found

    def events(self, number: int) -> list[tuple[int, Event]]:
        """What a round changed: items and what happened to them, in the order of the items."""
        items = self._items[number].tolist()
        return [(item, self._event(number, at)) for at, item in enumerate(items)]

    def first_rounds(self) -> Array:
        """The round in which each item got its first label; −1 if it never did."""
        found = np.full(len(self._now), UNKNOWN, np.int64)
        for number in reversed(range(len(self.rounds))):
            labelled = self._labels[number] != UNKNOWN
            found[self._items[number][labelled]] = number
        return found

    @property
    def accuracy(self) -> Array:
        """The accuracy after each round; NaN where nothing can be compared."""
        return np.array([one.accuracy for one in self.rounds])

    def __len__(self) -> int:
        return len(self.rounds)

    def __str__(self) -> str:
        """A table, one line a round."""
        head = f"{'round':>5}{'labelled':>10}{'new':>8}{'changed':>9}{'lost':>7}"
        head += f"{'confidence':>12}{'accuracy':>10}"
        return "\n".join([head, *map(_line, self.rounds)])

    def _event(self, number: int, at: int) -> Event:
        label = int(self._labels[number][at])
        name = None if label == UNKNOWN else self.classes[label].item()
        confidence = float(self._confidence[number][at])
        return Event(number, name, confidence, str(self._views[number][at]))

    def _accuracy(self) -> float:
        if self._gold is None:
            return float("nan")
        counted = (self._given == UNKNOWN) & (self._now != UNKNOWN) & (self._gold != UNKNOWN)
        return _mean(self._now[counted] == self._gold[counted])


def gold_numbers(gold: Any, classes: Array, n_items: int) -> Array | None:
    """True labels as numbers for a `History`; None if there are none.

    >>> gold_numbers(["no", None, "other"], np.array(["no", "yes"]), 3)
    array([ 0, -1, -2])
    """
    if gold is None:
        return None
    read = read_labels(gold, n_items)
    places = {label: number for number, label in enumerate(np.asarray(classes).tolist())}
    renumbered = np.array([places.get(label, -2) for label in read.classes.tolist()])
    likeliest = read.likeliest()
    found: Array = np.where(likeliest == UNKNOWN, UNKNOWN, renumbered[likeliest])
    return found


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _line(one: Round) -> str:
    """A round as a line of a table."""
    confidence = "–" if np.isnan(one.confidence) else f"{one.confidence:.3f}"
    accuracy = "–" if np.isnan(one.accuracy) else f"{one.accuracy:.3f}"
    counts = f"{one.number:>5}{one.labelled:>10,}{one.new:>8,}{one.changed:>9,}{one.lost:>7,}"
    return f"{counts}{confidence:>12}{accuracy:>10}"
