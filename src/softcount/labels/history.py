"""History of labelling: in which round each item was labelled, how confidently, by which view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.posterior import soft
from softcount.mixture.core import FLOOR
from softcount.mixture.data import UNKNOWN, is_unknown, read_labels

if TYPE_CHECKING:
    from softcount.annotators import Annotators

GIVEN = "given"
"""Name of the view in round 0."""
OTHER = -2
"""Number of a true label that is not one of the classes."""


class Event(NamedTuple):
    """A change of an item's label: the ``round``, the new ``label`` (None: the item lost its
    label), its confidence (0 to 1), and the view that assigned it.
    """

    round: int
    label: Any
    confidence: float
    view: str


class Changes(NamedTuple):
    """All changes of labels in a round, as arrays over the changed ``items``.

    ``before``  class numbers before the round; −1: unlabelled
    ``labels``  class numbers after the round; −1: the item lost its label
    """

    items: IntArray
    before: IntArray
    labels: IntArray
    confidence: FloatArray
    views: Array


class Round(NamedTuple):
    """Statistics of a round.

    ``labelled``    number of labelled items after it, including those given at the start; this is
                    its value before the round, plus ``new``, minus ``lost``
    ``new``         number of items that had no label and got one
    ``changed``     number of items that got a different label
    ``lost``        number of items that lost their label
    ``confidence``  mean confidence of new and changed labels; NaN if there are none
    ``accuracy``    of the labels that were not given, on items with a gold label; NaN if none has
    """

    number: int
    labelled: int
    new: int
    changed: int
    lost: int
    confidence: float
    accuracy: float


class History:
    """The rounds of a semi-supervised learner; round 0 is the given labels.

    ``classes``  the class labels
    ``given``    the given class number of each item; −1: unlabelled
    ``gold``     the true class number of each item; −1: unknown, −2: not one of the classes; None:
                 no true labels are known

    The attribute ``labels`` has the class numbers after the last round.

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
        """Start a history, with gold labels as users give them: names, −1 or None if unknown."""
        return cls(classes, given, gold_numbers(gold, classes, len(given)))

    def record(
        self, labels: IntArray, confidence: FloatArray, view: str | Sequence[str] | Array
    ) -> None:
        """Record a round. Only changes are stored.

        ``labels``      class number of every item after the round; −1: unlabelled
        ``confidence``  confidence in the label of every item
        ``view``        name of the view that labelled: one for all, or one for every item
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
        """Return all changes of an item's label, in order."""
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
        """Return the changes of a round as pairs (item, event), in the order of the items."""
        items = self.changes(number).items.tolist()
        number = range(len(self))[number]
        return [(item, self._event(number, at)) for at, item in enumerate(items)]

    def changes(self, number: int) -> Changes:
        """Return the changes of a round as arrays."""
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no round {number}: they are numbered 0 to {len(self) - 1}")
        return self._changes[number]

    def first_rounds(self) -> IntArray:
        """Return the round in which each item got its first label; −1 if it never did."""
        first = np.full(self.n_items, UNKNOWN, np.int64)
        for number in reversed(range(len(self.rounds))):
            changes = self._changes[number]
            first[changes.items[changes.labels != UNKNOWN]] = number
        return first

    def counts(self) -> IntArray:
        """Return the number of items of each class after each round: (rounds, classes).

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
        """Return the confidence with which each item got its label; NaN for unlabelled items."""
        last = np.full(self.n_items, np.nan)
        for changes in self._changes:
            last[changes.items] = np.where(changes.labels == UNKNOWN, np.nan, changes.confidence)
        return last

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.given)

    @property
    def accuracy(self) -> FloatArray:
        """Accuracy after each round; NaN if there is nothing to compare."""
        return np.array([statistics.accuracy for statistics in self.rounds])

    def __len__(self) -> int:
        return len(self.rounds)

    def __str__(self) -> str:
        """Format a table with one line per round."""
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
        # imported by name, because reports are a layer above this one; only notebooks call this
        return str(import_module("softcount.labels.report").history_card(self))

    def _event(self, number: int, at: int) -> Event:
        changes = self._changes[number]
        label = int(changes.labels[at])
        name = None if label == UNKNOWN else self._names[label]
        return Event(number, name, float(changes.confidence[at]), changes.views[at])


def gold_numbers(gold: Any, classes: Array, n_items: int) -> IntArray | None:
    """Convert gold labels to class numbers for a `History`; None if there are none.

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
    if read.soft_labels is not None:
        raise DataError(
            "gold: labels are distributions over classes", "give one label for each item"
        )
    names = np.asarray(classes).tolist()
    places = {label: number for number, label in enumerate(names)}
    true = read.classes.tolist()
    renumbered = np.array([places.get(label, OTHER) for label in true])
    if (renumbered == OTHER).all():
        raise DataError(
            f"gold: none of its labels, such as {brief(true[0])}, is one of the classes",
            f"the classes are {brief(names)}; −1 or None means unknown",
        )
    return np.where(read.numbers == UNKNOWN, UNKNOWN, renumbered[read.numbers])


HEADS = ("round", "labelled", "new", "changed", "lost", "confidence", "accuracy")
WIDTHS = (5, 9, 7, 8, 6, 11, 9)


def format_round(statistics: Round) -> tuple[str, ...]:
    """Format a round as the cells of a table."""
    *counts, confidence, accuracy = statistics
    means = ("–" if np.isnan(mean) else f"{mean:.3f}" for mean in (confidence, accuracy))
    return (*(f"{n:,}" for n in counts), *means)


def _check_labels(what: str, labels: Any, least: int, n_classes: int) -> IntArray:
    """Return a read-only copy of class numbers; raise if any is out of range."""
    numbers = np.array(labels, dtype=np.int64)
    if numbers.ndim != 1 or (
        len(numbers) and not least <= numbers.min() <= numbers.max() < n_classes
    ):
        raise DataError(
            f"{what}: not a number from {least} to {n_classes - 1} for each item",
            f"there are {n_classes} classes, numbered from 0; −1 means unknown",
        )
    numbers.setflags(write=False)
    return numbers


def _check_length(what: str, given: Sequence[Any] | Array, n_items: int) -> None:
    if len(given) != n_items:
        raise DataError(f"{what}: {len(given)} for {n_items} items", "give one for each item")


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def annotator_history(model: Annotators, votes: Any, y: Any = None, gold: Any = None) -> History:
    """Return the label and confidence of each item after every step of learning.

    Round 0 is the known labels, round 1 the initial parameters, round 2 the first step. The model
    must have been fitted to these ``votes`` and ``y`` with ``keep_params=True``. ``gold`` are true
    labels for the accuracy, one per item or a mapping {item: label}.

    >>> from softcount.annotators import Annotators
    >>> votes = [("s1", "ann", "yes"), ("s1", "bob", "yes"), ("s1", "eve", "no"),
    ...          ("s2", "ann", "no"), ("s2", "bob", "no"), ("s2", "eve", "yes"),
    ...          ("s3", "ann", "yes"), ("s3", "eve", "no")]
    >>> model = Annotators().fit(votes, keep_params=True)
    >>> history = annotator_history(model, votes, gold={"s3": "yes"})
    >>> [event.label for event in history.of(2)], history.rounds[-1].accuracy
    (['yes'], 1.0)
    """
    rebound = copy(model)  # because binding overwrites attributes
    _, corpus = rebound._bind(votes, y)
    for name in ("items_", "annotators_", "classes_"):
        if not np.array_equal(getattr(rebound, name), getattr(model, name)):
            raise DataError(
                f"the model was fitted to other votes: {name} differs",
                "give the votes, and the labels y, that it was fitted to",
            )
    known = corpus.known
    given = np.where(known.upper - known.lower == 1, known.lower, -1)
    if isinstance(gold, Mapping):
        gold = [gold.get(item) for item in model.items_.tolist()]
    history = History.begin(model.classes_, given, gold)
    for state, params in zip(model.trace_, model.trace_.params, strict=True):
        joint = model.core_.joint(params, corpus.x, floor=FLOOR)
        posteriors = np.empty_like(joint)
        soft(joint, known.lower, known.upper, 1.0, posteriors)
        view = "step" if state.step else "start"
        history.record(posteriors.argmax(axis=1), posteriors.max(axis=1), view)
    return history
