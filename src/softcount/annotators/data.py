"""Reading of votes: which annotator gave which label to which item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, FloatArray, IntArray
from softcount.mixture.data import UNKNOWN, unify_labels
from softcount.text.bags import Bags, cut_documents

COLUMNS = (("item", "annotator", "label"), ("task", "worker", "label"))
"""Accepted names of the columns of a data frame."""
FORMS = (
    "give triples (item, annotator, label), a tuple of three columns, a data frame with columns "
    "item, annotator and label, a mapping {item: {annotator: label}}, or an array of items × "
    "annotators"
)

SPARSEST = 4
"""Integers are numbered by a lookup table if it has at most this many cells per vote."""
Column = Array | list[Any]


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes as arrays of indices into lists of names.

    ``items``, ``annotators``, ``labels``        the names, in order of first appearance
    ``of_item``, ``by_annotator``, ``of_label``  (votes,): indices of each vote's names
    """

    items: list[Any]
    annotators: list[Any]
    labels: list[Any]
    of_item: IntArray
    by_annotator: IntArray
    of_label: IntArray

    def __len__(self) -> int:
        return len(self.of_item)

    def single_labels(self) -> list[Any]:
        """Return the labels, those in sets of labels among them; some may occur twice."""
        parts = (label if isinstance(label, frozenset) else (label,) for label in self.labels)
        return [label for part in parts for label in part]

    def with_items(self, items: Iterable[Any]) -> Votes:
        """Return these votes and further items, which have no votes."""
        return replace(self, items=list(dict.fromkeys([*self.items, *items])))


@dataclass(frozen=True, eq=False)
class Ballots(PickledWithoutCaches):
    """Votes of items of which some come about in several ways, and words beside them.

    ``votes``      column a · C + c is vote c of annotator a; c is one of ``n_states`` states, which
                   say how it stands to another vote, times one of the things said: the labels,
                   silence if ``silent``, and sets of labels
    ``sets``       the sets of labels, as numbers
    ``words``      the words of the items' texts, if there are texts
    """

    votes: Bags
    n_states: int
    silent: bool
    sets: tuple[tuple[int, ...], ...] = ()
    words: Bags | None = None

    def __len__(self) -> int:
        return len(self.votes)

    @property
    def n_words(self) -> int:
        """Number of different votes, and of words."""
        return self.votes.n_words + (0 if self.words is None else self.words.n_words)

    @property
    def n_entries(self) -> int:
        """Number of votes, and of entries (text, word)."""
        return self.votes.n_entries + (0 if self.words is None else self.words.n_entries)

    @property
    def lengths(self) -> FloatArray:
        """Number of observations of each item: votes, silence, words, (items,)."""
        return self.votes.lengths + (0.0 if self.words is None else self.words.lengths)

    def take(self, items: IntArray) -> Self:
        """Return the given items."""
        words = None if self.words is None else self.words.take(items)
        return replace(self, votes=self.votes.take(items), words=words)

    def part(self, first: int, last: int) -> Self:
        """Return the items first ≤ i < last."""
        words = None if self.words is None else self.words.part(first, last)
        return replace(self, votes=self.votes.part(first, last), words=words)

    def cut(self) -> list[tuple[int, int]]:
        """Cut the items, in order, into shards."""
        indptr = self.votes.by_document.indptr
        if self.words is not None:
            indptr = indptr + self.words.by_document.indptr
        return cut_documents(indptr, self.n_words)

    def labels_of_columns(self, n_labels: int) -> FloatArray:
        """Return which labels each vote is for, (columns, labels); silence is for none."""
        n_said = n_labels + int(self.silent) + len(self.sets)
        labels = np.zeros((n_said, n_labels))
        labels[:n_labels] = np.eye(n_labels)
        for number, members in enumerate(self.sets):
            labels[n_labels + int(self.silent) + number, list(members)] = 1.0 / len(members)
        return np.tile(labels, (self.votes.n_words // n_said, 1))


def read_votes(votes: Any, annotators: Sequence[Any] | None = None) -> Votes:
    """Read votes in any form; a label of −1, None or NaN is no vote, but its item is kept.

    A label may be a set of labels: one of them is meant.

    ``annotators``  names of the columns, if votes are an array

    >>> votes = read_votes([("s1", "ann", "yes"), ("s1", "bob", "no"), ("s2", "ann", None)])
    >>> votes.items, votes.annotators, votes.labels, votes.of_item.tolist()
    (['s1', 's2'], ['ann', 'bob'], ['yes', 'no'], [0, 0])
    """
    if isinstance(votes, Votes):
        return votes
    if isinstance(votes, np.ndarray):
        return _read_matrix(votes, annotators)
    columns = _split_columns(votes)
    items, of_item = _number(columns[0], "item")
    annotator_names, by_annotator = _number(columns[1], "annotator")
    labels, of_label = _number(_read_sets(columns[2]), "label")
    missing = np.array([is_missing(label) for label in labels], dtype=bool)
    if missing.any():
        voted = ~missing[of_label]
        of_item = of_item[voted]
        annotator_names, by_annotator = _drop_unused(annotator_names, by_annotator[voted])
        labels, of_label = _drop_unused(labels, of_label[voted])
    for names, what in ((items, "item"), (annotator_names, "annotator")):
        if any(name is None or name != name for name in names):
            raise DataError(f"the name of an {what} is None or NaN", "name it in every vote")
    return Votes(items, annotator_names, labels, of_item, by_annotator, of_label)


def _read_sets(labels: Column) -> Column:
    """Return labels with sets of labels as frozen ones; of one label as that, of none as None."""
    if isinstance(labels, np.ndarray) or not {set, frozenset} & set(map(type, labels)):
        return labels
    return [_read_set(label) if isinstance(label, set | frozenset) else label for label in labels]


def _read_set(labels: Iterable[Any]) -> Any:
    known = frozenset(label for label in labels if not is_missing(label))
    return known if len(known) > 1 else next(iter(known), None)


def is_missing(label: Any) -> bool:
    """Return whether a label is missing: None, −1, or NaN."""
    return label is None or (isinstance(label, Real) and bool(label == UNKNOWN or label != label))


def sorted_classes(labels: Sequence[Any]) -> Array:
    """Return the distinct labels, sorted; floats such as 1.0 become integers if all are whole."""
    given = np.empty(len(labels), dtype=object)
    given[:] = labels
    classes: Array = np.unique(unify_labels(given))
    if classes.dtype.kind == "f" and np.all(np.abs(classes) < 2.0**53) and not (classes % 1).any():
        return classes.astype(np.int64)
    return classes


def as_array(names: Sequence[Any]) -> Array:
    """Convert names to an array of strings or of integers if all are, else of objects."""
    kinds = {type(name) for name in names}
    if kinds == {str} or (kinds == {int} and -(2**63) <= min(names) <= max(names) < 2**63):
        return np.array(names)
    objects = np.empty(len(names), dtype=object)
    objects[:] = names
    return objects


def find_places(names: Iterable[Any], known: Iterable[Any]) -> IntArray:
    """Return the index of each name among the ``known`` ones; −1 if it is not there."""
    indices = {name: number for number, name in enumerate(known)}
    return np.array([indices.get(name, UNKNOWN) for name in names], dtype=np.int64)


def _split_columns(votes: Any) -> Sequence[Column]:
    """Return three columns, items, annotators and labels, with an entry for each vote."""
    if isinstance(votes, Mapping) and all(isinstance(said, Mapping) for said in votes.values()):
        return _split_triples(
            [
                (item, annotator, label)
                for item, said in votes.items()
                # an item may have no votes, and an annotator several
                for annotator, labels in (said or {None: None}).items()
                for label in (labels if isinstance(labels, list | tuple) else [labels])
            ]
        )
    if isinstance(votes, Mapping) or hasattr(votes, "columns"):
        given = list(votes if isinstance(votes, Mapping) else votes.columns)
        names = next((names for names in COLUMNS if set(names) <= set(given)), None)
        if names is None:
            raise DataError(
                f"the columns of the votes are {', '.join(map(str, given)) or 'none'}",
                "name them item, annotator and label",
            )
        three = [votes[name] for name in names]
    elif isinstance(votes, tuple) and len(votes) == 3 and not isinstance(votes[0], tuple | str):
        three = list(votes)
    else:
        return _split_triples(votes)
    columns = [_read_column(column) for column in three]
    items, annotators, labels = map(len, columns)
    if not items == annotators == labels:
        raise DataError(
            f"{items} items, {annotators} annotators and {labels} labels",
            "give one of each for every vote",
        )
    return columns


def _read_column(given: Any) -> Column:
    """Return an array of integers unchanged, and anything else as a list."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"{brief(given)} is not a column of votes", FORMS)
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind in ("i", "u") and hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu":
        return given
    return list(given.tolist() if hasattr(given, "tolist") else given)


def _split_triples(votes: Any) -> Sequence[Column]:
    if isinstance(votes, str | bytes) or not isinstance(votes, Iterable):
        raise DataError(f"cannot read votes from {brief(votes)}", FORMS)
    rows = votes if isinstance(votes, list) else list(votes)
    # check the sets of types and lengths first, because there may be millions of votes
    if not all(issubclass(kind, tuple | list) for kind in set(map(type, rows))) or (
        rows and set(map(len, rows)) != {3}
    ):
        wrong = next(
            n for n, row in enumerate(rows) if not (isinstance(row, tuple | list) and len(row) == 3)
        )
        raise DataError(f"vote {wrong} is {brief(rows[wrong])}, not a triple", FORMS)
    return [[row[k] for row in rows] for k in range(3)]


def _drop_unused(names: list[Any], numbers: IntArray) -> tuple[list[Any], IntArray]:
    """Return the names that have a vote, and the renumbered indices."""
    used = np.bincount(numbers, minlength=len(names)) > 0
    kept = [names[number] for number in np.flatnonzero(used).tolist()]
    return kept, (np.cumsum(used) - 1)[numbers]


def _number(column: Column, what: str) -> tuple[list[Any], IntArray]:
    """Return the distinct names of a column, in order of appearance, and each entry's index."""
    if isinstance(column, np.ndarray):
        n = len(column)
        low, high = (int(column.min()), int(column.max())) if n else (0, 0)
        span = high - low + 1
        if span <= SPARSEST * n:  # by a lookup table, which is faster than a dictionary
            values = column.astype(np.int64) - low
            first = np.full(span, n)
            first[values[::-1]] = np.arange(n - 1, -1, -1)  # the last assignment, the first place
            present = np.flatnonzero(first < n)
            order = present[np.argsort(first[present], kind="stable")]
            numbers = np.empty(span, np.int64)
            numbers[order] = np.arange(len(order))
            return (order + low).tolist(), numbers[values]
        column = column.tolist()
    try:
        names = {name: number for number, name in enumerate(dict.fromkeys(column))}
        return list(names), np.fromiter(map(names.__getitem__, column), np.int64, len(column))
    except TypeError as error:
        raise DataError(
            f"invalid {what} name: {error}", "use strings or numbers as names"
        ) from error


def _read_matrix(matrix: Array, annotators: Sequence[Any] | None) -> Votes:
    """Read votes from an array (items, annotators)."""
    if matrix.ndim != 2:
        raise DataError(f"votes are an array of shape {matrix.shape}", FORMS)
    n, A = matrix.shape
    if annotators is not None and len(annotators) != A:
        raise DataError(
            f"the votes have {A} columns, while the model knows {len(annotators)} annotators",
            "give a column for each annotator, in the order of annotators_; or triples",
        )
    labels, of_label = _number(_read_sets(_read_column(matrix.reshape(-1))), "label")
    missing = np.array([is_missing(label) for label in labels], dtype=bool)
    voted = np.flatnonzero(~missing[of_label]) if len(labels) else of_label
    labels, of_label = _drop_unused(labels, of_label[voted])
    annotator_names = list(range(A)) if annotators is None else list(annotators)
    return Votes(
        list(range(n)), annotator_names, labels, voted // max(A, 1), voted % max(A, 1), of_label
    )
