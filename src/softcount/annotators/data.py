"""Votes as users give them: who said what of which item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.types import Array
from softcount.mixture.data import UNKNOWN, of_one_kind

COLUMNS = (("item", "annotator", "label"), ("task", "worker", "label"))
"""What the columns of a data frame may be called."""
FORMS = (
    "give triples (item, annotator, label), a tuple of three columns, a data frame with columns "
    "item, annotator and label, a mapping {item: {annotator: label}}, or an array of items × "
    "annotators"
)

SPARSEST = 4
"""Whole numbers are looked up in a table if it has at most so many places a vote."""
Column = Array | list[Any]
Columns = tuple[Column, Column, Column]


@dataclass(frozen=True, eq=False)
class Votes:
    """Names in the order in which they first appear, and a number among them for each vote.

    ``items``, ``annotators``, ``labels``      the names
    ``of_item``, ``by_annotator``, ``of_label``  one number a vote
    """

    items: list[Any]
    annotators: list[Any]
    labels: list[Any]
    of_item: Array
    by_annotator: Array
    of_label: Array

    def __len__(self) -> int:
        return len(self.of_item)


def read_votes(votes: Any, annotators: Sequence[Any] | None = None) -> Votes:
    """Votes in any form; a label that is −1, None or NaN is no vote, but its item is an item.

    ``annotators``  whose columns an array has, if they have names

    >>> votes = read_votes([("s1", "ann", "yes"), ("s1", "bob", "no"), ("s2", "ann", None)])
    >>> votes.items, votes.annotators, votes.labels, votes.of_item.tolist()
    (['s1', 's2'], ['ann', 'bob'], ['yes', 'no'], [0, 0])
    """
    if isinstance(votes, Votes):
        return votes
    if isinstance(votes, np.ndarray):
        return _of_matrix(votes, annotators)
    return _of_columns(*_columns(votes))


def is_missing(label: Any) -> bool:
    """Whether a label says nothing: None, −1, or NaN."""
    return label is None or (isinstance(label, Real) and bool(label == UNKNOWN or label != label))


def sorted_classes(labels: Iterable[Any]) -> Array:
    """All labels, each once, in order; whole numbers as such, even if they came as 1.0."""
    listed = list(labels)
    given = np.empty(len(listed), dtype=object)
    given[:] = listed
    classes: Array = np.unique(of_one_kind(given))
    if classes.dtype.kind == "f" and np.all(np.abs(classes) < 2.0**53) and not (classes % 1).any():
        return classes.astype(np.int64)
    return classes


def as_array(names: Sequence[Any]) -> Array:
    """Names as an array of strings or numbers if all are, else of objects."""
    kinds = {type(name) for name in names}
    if kinds == {str} or (kinds == {int} and -(2**63) <= min(names) <= max(names) < 2**63):
        return np.array(names)
    objects = np.empty(len(names), dtype=object)
    objects[:] = names
    return objects


def places(names: Iterable[Any], known: Iterable[Any]) -> Array:
    """Where each name is among those known; −1: nowhere."""
    where = {name: number for number, name in enumerate(known)}
    return np.array([where.get(name, UNKNOWN) for name in names], dtype=np.int64)


def _columns(votes: Any) -> Columns:
    """Items, annotators and labels, one of each a vote."""
    if hasattr(votes, "columns") and not isinstance(votes, Mapping):
        return _three([votes[name] for name in _named(list(votes.columns))])
    if isinstance(votes, Mapping):
        if all(isinstance(said, Mapping) for said in votes.values()):
            return _of_items(votes)
        return _three([votes[name] for name in _named(list(votes))])
    if isinstance(votes, tuple) and len(votes) == 3 and not isinstance(votes[0], tuple | str):
        return _three(votes)
    return _of_triples(votes)


def _named(given: Sequence[Any]) -> tuple[str, str, str]:
    """What the three columns are called here."""
    for names in COLUMNS:
        if set(names) <= set(given):
            return names
    raise DataError(
        f"the columns of the votes are {', '.join(map(str, given)) or 'none'}",
        "call them item, annotator and label",
    )


def _three(columns: Sequence[Any]) -> Columns:
    found = [_column(one) for one in columns]
    lengths = [len(column) for column in found]
    if len(set(lengths)) > 1:
        raise DataError(
            f"{lengths[0]} items, {lengths[1]} annotators and {lengths[2]} labels",
            "give one of each a vote",
        )
    return found[0], found[1], found[2]


def _column(given: Any) -> Array | list[Any]:
    """An array of whole numbers as it is, all else as a list."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"{brief(given)} is no column of votes", FORMS)
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind in ("i", "u") and hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu":
        return given
    return list(given.tolist() if hasattr(given, "tolist") else given)


def _of_items(votes: Mapping[Any, Mapping[Any, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Of {item: {annotator: label, or a list of labels}}; an item may have no votes."""
    triples: list[tuple[Any, Any, Any]] = []
    for item, said in votes.items():
        for annotator, labels in said.items():
            each = labels if isinstance(labels, list | tuple) else [labels]
            triples.extend((item, annotator, label) for label in each)
        if not said:
            triples.append((item, None, None))
    return _of_triples(triples)


def _of_triples(votes: Any) -> tuple[list[Any], list[Any], list[Any]]:
    if isinstance(votes, str | bytes) or not isinstance(votes, Iterable):
        raise DataError(f"{brief(votes)} are no votes", FORMS)
    rows = votes if isinstance(votes, list) else list(votes)
    if not all(issubclass(kind, tuple | list) for kind in set(map(type, rows))) or (
        rows and set(map(len, rows)) != {3}
    ):
        wrong = next(n for n, row in enumerate(rows) if not _is_triple(row))
        raise DataError(f"vote {wrong} is {brief(rows[wrong])}, no triple", FORMS)
    items, annotators, labels = ([row[place] for row in rows] for place in range(3))
    return items, annotators, labels


def _is_triple(row: Any) -> bool:
    return isinstance(row, tuple | list) and len(row) == 3


def _of_columns(items: Column, annotators: Column, labels: Column) -> Votes:
    item_names, of_item = _numbered(items, "item")
    annotator_names, by_annotator = _numbered(annotators, "annotator")
    label_names, of_label = _numbered(labels, "label")
    missing = np.array([is_missing(label) for label in label_names], dtype=bool)
    if missing.any():
        said = ~missing[of_label]
        of_item = of_item[said]
        annotator_names, by_annotator = _used(annotator_names, by_annotator[said])
        label_names, of_label = _used(label_names, of_label[said])
    for names, what in ((item_names, "item"), (annotator_names, "annotator")):
        if any(name is None or name != name for name in names):
            raise DataError(f"some {what} has no name, but None or NaN", "name it in every vote")
    return Votes(item_names, annotator_names, label_names, of_item, by_annotator, of_label)


def _used(names: list[Any], numbers: Array) -> tuple[list[Any], Array]:
    """The names that have a vote, and their new numbers."""
    there = np.bincount(numbers, minlength=len(names)) > 0
    kept = [names[number] for number in np.flatnonzero(there).tolist()]
    return kept, (np.cumsum(there) - 1)[numbers]


def _numbered(column: Column, what: str) -> tuple[list[Any], Array]:
    """The different names of a column, as they come, and which of them each entry is."""
    if isinstance(column, np.ndarray):
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if high - low < SPARSEST * len(column):
            return _of_whole_numbers(column.astype(np.int64) - low, low, high - low + 1)
        column = column.tolist()
    try:
        found = {name: number for number, name in enumerate(dict.fromkeys(column))}
        numbers = np.fromiter(map(found.__getitem__, column), np.int64, len(column))
    except TypeError as error:
        raise DataError(
            f"some {what} is no name: {error}", "give strings or numbers for names"
        ) from error
    return list(found), numbers


def _of_whole_numbers(column: Array, low: int, span: int) -> tuple[list[Any], Array]:
    """The same without a dictionary: ``column`` has numbers below ``span``, ``low`` too small."""
    n = len(column)
    first = np.full(span, n)
    first[column[::-1]] = np.arange(n - 1, -1, -1)  # what is written last stays
    there = np.flatnonzero(first < n)
    names = there[np.argsort(first[there], kind="stable")]
    numbers = np.empty(span, np.int64)
    numbers[names] = np.arange(len(names))
    return (names + low).tolist(), numbers[column]


def _of_matrix(matrix: Array, annotators: Sequence[Any] | None) -> Votes:
    """Of an array items × annotators."""
    if matrix.ndim != 2:
        raise DataError(f"votes are an array of shape {matrix.shape}", FORMS)
    n, A = matrix.shape
    if annotators is not None and len(annotators) != A:
        raise DataError(
            f"the votes have {A} columns, while the model knows {len(annotators)} annotators",
            "give a column for each annotator, in the order of annotators_; or triples",
        )
    cells = matrix.reshape(-1)
    labels, of_label = _numbered(_column(cells), "label")
    missing = np.array([is_missing(label) for label in labels], dtype=bool)
    said = np.flatnonzero(~missing[of_label]) if len(labels) else of_label
    names, numbers = _used(labels, of_label[said])
    people = list(range(A)) if annotators is None else list(annotators)
    return Votes(list(range(n)), people, names, said // max(A, 1), said % max(A, 1), numbers)
