"""Items of a mixture, and constraints on their classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from softcount.core.bounds import MAX_VALUE, within_range
from softcount.core.errors import DataError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.engines.blocks import Addable, tree_sum
from softcount.families.gaussian import CovarianceForm, FullCovariance
from softcount.mixture.lloyd import Nearest
from softcount.text.disk import DiskArray, ShardsOnAccess
from softcount.text.shards import cut_by_work, split_items

T = TypeVar("T", bound=Addable)

MOST_POINTS = 1 << 13
"""The largest number of points in a shard: their posteriors should stay in the cache."""

MOST_CELLS = 1 << 19
"""The largest number of coordinates in a shard of points of many dimensions: 4 MB …"""

POINTS_PER_DIMENSION = 8
"""… but a shard has this many points for each dimension: with full covariances every shard also
factorises D × D matrices, which takes as long as D / 12 points: 1 % of its time."""


class Observations(Protocol):
    """Observed data, one row per item: bags of words, or points."""

    def __len__(self) -> int: ...

    def take(self, items: IntArray) -> Observations:
        """Return the subset with these indices, in memory."""

    def part(self, first: int, last: int) -> Observations:
        """Return the items first ≤ i < last: views of the same arrays, or read from disk."""

    def cut(self) -> list[tuple[int, int]]:
        """Cut the items, in order, into shards: the first of each, and the one after its last.

        The cut depends on the observations alone.
        """


@dataclass(frozen=True, eq=False)
class Points(PickledWithoutCaches):
    """Real vectors, one per row."""

    x: FloatArray  # (items, dimensions)

    @property
    def n_dims(self) -> int:
        return int(self.x.shape[1])

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def _outer(self) -> dict[type[CovarianceForm], FloatArray]:
        return {}

    def outer(self, form: CovarianceForm) -> FloatArray | None:
        """Return x xᵀ in this form, computed once; None for full matrices, too large to keep."""
        if isinstance(form, FullCovariance):
            return None
        if type(form) not in self._outer:
            self._outer[type(form)] = form.outer(self.x)
        return self._outer[type(form)]

    def take(self, items: IntArray) -> Self:
        return type(self)(self.x[items])

    def part(self, first: int, last: int) -> Self:
        return type(self)(self.x[first:last])

    def cut(self) -> list[tuple[int, int]]:
        return cut_points(*self.x.shape)


def cut_points(n: int, D: int) -> list[tuple[int, int]]:
    """Cut n points of D dimensions into shards (see `Observations.cut`)."""
    most = min(MOST_POINTS, max(MOST_CELLS // max(D, 1), POINTS_PER_DIMENSION * D))
    return cut_by_work(np.ones(n), most)


class OnDisk(PickledWithoutCaches, ABC):
    """Observations on disk: whatever part is asked for is read, and is in memory.

    Memory: an E-step needs the tables and their sums, and for each thread the observations and
    posteriors of one shard, which is cut as it would be in memory (at most 2^17 documents or 2^13
    points, of many dimensions fewer).
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, items: IntArray) -> Any:
        """Read the items with these indices."""

    @abstractmethod
    def part(self, first: int, last: int) -> Any:
        """Read the items first ≤ i < last."""

    @abstractmethod
    def cut(self) -> list[tuple[int, int]]:
        """Cut the items, in order, into shards; as `Observations.cut` does in memory."""

    @abstractmethod
    def name(self, number: int) -> str:
        """Return the name of an item for messages."""

    @property
    @abstractmethod
    def tokens(self) -> float:
        """The number of observations: words, or points."""

    @property
    @abstractmethod
    def width(self) -> float:
        """How many numbers an item has on average: different words, or dimensions."""


@dataclass(frozen=True, eq=False)
class PointsOnDisk(OnDisk):
    """Points on disk.

    ``rows``    (items, dimensions)
    ``offset``  what is subtracted from each, (dimensions,)
    """

    rows: DiskArray
    offset: FloatArray

    @classmethod
    def of(cls, rows: DiskArray) -> Self:
        """Return points as they are; coordinates beyond the bounds are found when they are read."""
        below = np.nextafter(MAX_VALUE, np.inf)
        return cls(replace(rows, least=-MAX_VALUE, below=below), np.zeros(rows.shape[1]))

    @property
    def n_dims(self) -> int:
        return int(self.rows.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, items: IntArray) -> Points:
        return Points(self.rows[items].astype(np.float64) - self.offset)

    def part(self, first: int, last: int) -> Points:
        return Points(self.rows[first:last].astype(np.float64) - self.offset)

    def cut(self) -> list[tuple[int, int]]:
        return cut_points(len(self), self.n_dims)

    def name(self, number: int) -> str:
        return self.rows.corpus.name_item(number)

    @property
    def tokens(self) -> float:
        return float(len(self))

    @property
    def width(self) -> float:
        return float(self.n_dims)


def n_in_memory(x: Observations) -> int:
    """Return the number of items whose observations are in memory during an E-step, for estimates:
    of those on disk three shards."""
    n = len(x)
    if not isinstance(x, OnDisk):
        return n
    return min(n, 3 * max(last - first for first, last in x.cut()))


def parts_of(x: Observations) -> Iterator[tuple[slice, Any]]:
    """Yield the parts that observations are cut into, and where they are."""
    for first, last in x.cut():
        whole = last - first == len(x) and not isinstance(x, OnDisk)
        yield slice(first, last), x if whole else x.part(first, last)


def sum_parts(x: Observations, function: Callable[[slice, Any], T]) -> T:
    """Sum what a function returns for each part, in the same order as an E-step sums."""
    return tree_sum(function(where, part) for where, part in parts_of(x))


class ConstraintGroup(NamedTuple):
    """A group of items, each with its range of possible classes (lower ≤ k < upper) and weight."""

    rows: IntArray | slice
    lower: IntArray
    upper: IntArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class ClassConstraints:
    """Supervision of each item's class: none, a range of classes, or soft labels.

    ``lower, upper``  the possible classes of an item are lower ≤ k < upper, (items,)
    ``weights``       weight of each item, (items,)
    ``soft_labels``   (items, groups) or None: an item whose row is not NaN counts as several
                      fractional items, one for each group of classes
    ``groups``        boundaries of those groups of classes, (groups + 1,)
    """

    lower: IntArray
    upper: IntArray
    weights: FloatArray
    soft_labels: FloatArray | None = None
    groups: IntArray | None = None

    @classmethod
    def nothing(cls, n_items: int, n_classes: int, weights: FloatArray | None = None) -> Self:
        """Return no constraints: every class is possible for every item."""
        return cls(
            np.zeros(n_items, np.int64),
            np.full(n_items, n_classes, np.int64),
            np.ones(n_items) if weights is None else weights,
        )

    def take(self, items: IntArray) -> Self:
        soft = None if self.soft_labels is None else self.soft_labels[items]
        return type(self)(
            self.lower[items], self.upper[items], self.weights[items], soft, self.groups
        )

    def part(self, first: int, last: int) -> Self:
        """Return the constraints of the items first ≤ i < last, as views of the same arrays."""
        items = slice(first, last)
        soft = None if self.soft_labels is None else self.soft_labels[items]
        return type(self)(
            self.lower[items], self.upper[items], self.weights[items], soft, self.groups
        )

    def by_group(self) -> Iterator[ConstraintGroup]:
        """Iterate over groups of items in which each item has a single range of classes."""
        if self.soft_labels is None or self.groups is None:
            yield ConstraintGroup(slice(None), self.lower, self.upper, self.weights)
            return
        shared = ~np.isnan(self.soft_labels[:, 0])
        plain = np.flatnonzero(~shared)
        if len(plain):
            yield ConstraintGroup(plain, self.lower[plain], self.upper[plain], self.weights[plain])
        for group, (low, high) in enumerate(zip(self.groups, self.groups[1:], strict=False)):
            rows = np.flatnonzero(shared & (self.soft_labels[:, group] > 0.0))
            if len(rows):
                same = np.ones(len(rows), np.int64)
                weights = self.weights[rows] * self.soft_labels[rows, group]
                yield ConstraintGroup(rows, same * low, same * high, weights)


@dataclass(frozen=True, eq=False)
class Unconstrained:
    """Constraints that say nothing, for items on disk: those of a part are made when it is used.

    ``given``  weight of each item, (items,); None: all are 1
    """

    n_items: int
    n_classes: int
    given: FloatArray | None = None

    @property
    def weights(self) -> FloatArray:
        """Weight of each item, (items,)."""
        return np.ones(self.n_items) if self.given is None else self.given

    @property
    def lower(self) -> IntArray:
        """The first possible class of each item, (items,)."""
        return np.zeros(self.n_items, np.int64)

    @property
    def upper(self) -> IntArray:
        """The class after the last possible one of each item, (items,)."""
        return np.full(self.n_items, self.n_classes, np.int64)

    def take(self, items: IntArray) -> ClassConstraints:
        weights = None if self.given is None else self.given[items]
        return ClassConstraints.nothing(len(items), self.n_classes, weights)

    def part(self, first: int, last: int) -> ClassConstraints:
        weights = None if self.given is None else self.given[first:last]
        return ClassConstraints.nothing(last - first, self.n_classes, weights)


@dataclass(frozen=True, eq=False)
class MixtureShard(PickledWithoutCaches):
    """A shard of the corpus: item numbers, observations, and constraints."""

    numbers: IntArray
    x: Observations
    known: ClassConstraints

    def __len__(self) -> int:
        return len(self.numbers)

    def is_free(self, n_classes: int) -> bool:
        """Return whether every class is possible for every item."""
        known = self.known
        return (
            known.soft_labels is None
            and not known.lower.any()
            and bool((known.upper == n_classes).all())
        )

    @cached_property
    def nearest(self) -> Nearest:
        """The means nearest to the points, and what is known of the others from earlier steps."""
        assert isinstance(self.x, Points)
        return Nearest(self.x.x)

    @cached_property
    def _moments(self) -> dict[type[CovarianceForm], FloatArray]:
        return {}

    def second_moments(self, form: CovarianceForm) -> FloatArray | None:
        """Return Σ w x xᵀ of points in this form, computed once; None where `Points.outer` is."""
        assert isinstance(self.x, Points)
        if type(form) not in self._moments:
            outer = self.x.outer(form)
            if outer is None:
                return None
            self._moments[type(form)] = self.known.weights @ outer
        return self._moments[type(form)]


@dataclass(frozen=True, eq=False)
class MixtureCorpus:
    """A corpus of observations (`softcount.core.model.Corpus`)."""

    x: Observations
    known: ClassConstraints | Unconstrained

    @classmethod
    def free(cls, x: Observations, n_classes: int, weights: FloatArray | None = None) -> Self:
        """Return items of which every class is possible."""
        if isinstance(x, OnDisk):
            return cls(x, Unconstrained(len(x), n_classes, weights))
        return cls(x, ClassConstraints.nothing(len(x), n_classes, weights))

    def __len__(self) -> int:
        return len(self.x)

    def name(self, number: int) -> str:
        return self.x.name(number) if isinstance(self.x, OnDisk) else f"item {number}"

    def part(self, first: int, last: int) -> MixtureShard:
        """Return the items first ≤ i < last."""
        known = self.known.part(first, last)
        return MixtureShard(np.arange(first, last), self.x.part(first, last), known)

    def take(self, items: IntArray) -> MixtureShard:
        """Return the items with these indices."""
        return MixtureShard(items, self.x.take(items), self.known.take(items))

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[MixtureShard]:
        n = len(self)
        if isinstance(self.x, OnDisk):
            if batch_size is None:
                return ShardsOnAccess(self.part, self.x.cut())
            batches = split_items(n, n, batch_size, seed)
            return ShardsOnAccess(self.take, [(batch,) for batch in batches])
        assert isinstance(self.known, ClassConstraints)
        if batch_size is not None:
            return [self.take(batch) for batch in split_items(n, n, batch_size, seed)]
        if len(borders := self.x.cut()) == 1:  # with what the observations have cached
            return [MixtureShard(np.arange(n), self.x, self.known)]
        return [self.part(*run) for run in borders]


# Labels as given by users: a class, unknown, or a distribution over classes (soft labels).


UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of items, some of them unknown.

    ``classes``      names of the classes, sorted
    ``numbers``      each item's class as a number, −1 if it is unknown or a soft label, (items,)
    ``soft_labels``  (items, classes), rows of NaN for items without one; or None
    """

    classes: Array
    numbers: IntArray
    soft_labels: FloatArray | None = None

    @property
    def known(self) -> BoolArray:
        """Whether each item has a label, hard or soft."""
        labelled: BoolArray = self.numbers != UNKNOWN
        return (
            labelled if self.soft_labels is None else labelled | ~np.isnan(self.soft_labels[:, 0])
        )

    def likeliest(self) -> IntArray:
        """Return each item's class as a number; for soft labels the most probable one."""
        if self.soft_labels is None:
            return self.numbers
        largest = np.nan_to_num(self.soft_labels).argmax(axis=1)
        return np.where(np.isnan(self.soft_labels[:, 0]), self.numbers, largest)

    def restrict(self, components: int, weights: FloatArray) -> ClassConstraints:
        """Return constraints that restrict labelled items to the ``components`` of their class."""
        K = len(self.classes) * components
        lower = np.where(self.numbers == UNKNOWN, 0, self.numbers * components)
        upper = np.where(self.numbers == UNKNOWN, K, lower + components)
        groups = None if self.soft_labels is None else np.arange(0, K + 1, components)
        return ClassConstraints(lower, upper, weights, self.soft_labels, groups)


def read_labels(y: Any, n_items: int, more: Sequence[Any] = ()) -> Labels:
    """Read labels from a vector (−1 or None: unknown) or a matrix of soft labels (NaN: unknown).

    ``more``  classes that exist, though there may be no label of them: with these, labels may all
              be unknown

    >>> read_labels(["b", None, "a"], 3).numbers
    array([ 1, -1,  0])
    """
    if y is None and len(more):
        y = np.full(n_items, UNKNOWN)
    if y is None:
        raise DataError(
            "This estimator requires y to be passed, but the target y is None",
            "give a label for each item, −1 where it is unknown",
        )
    values = _as_array(y)
    soft = values.ndim == 2 and values.shape[1] > 1
    if not soft:
        values = _as_column(values)
    if len(values) != n_items:
        raise DataError(
            f"inconsistent numbers of samples: {n_items} items and {len(values)} labels",
            "give one label for each item, −1 where it is unknown",
        )
    numbers = np.full(n_items, UNKNOWN, np.int64)
    if soft:
        with within_range("the table of soft labels"):
            soft_labels = values.astype(np.float64)
        unknown = np.isnan(soft_labels).any(axis=1)
    else:
        unknown = _find_unknown(values)
    if unknown.all() and not len(more):
        raise DataError(
            "no item has a label", "label some items; to learn without labels: MultinomialMixture"
        )
    if soft:
        totals = soft_labels[~unknown].sum(axis=1)
        if (soft_labels[~unknown] < 0.0).any() or not np.allclose(totals, 1.0, atol=1e-6):
            raise DataError(
                "soft labels must be non-negative, and each row must sum to 1",
                "give one row per item, one column per class; NaN where the label is unknown",
            )
        soft_labels[~unknown] /= totals[:, None]
        soft_labels[unknown] = np.nan
        return Labels(np.arange(values.shape[1]), numbers, soft_labels)
    labelled = unify_labels(values[~unknown])
    if labelled.dtype.kind not in "biuU":  # integers and strings are always class labels
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(labelled)
    if not len(more):
        classes, numbers[~unknown] = np.unique(labelled, return_inverse=True)
        return Labels(classes, numbers)
    known = [*labelled.tolist(), *more]
    every, index = np.unique(unify_labels(np.array(known, dtype=object)), return_inverse=True)
    numbers[~unknown] = index[: len(labelled)]
    return Labels(every, numbers)


def _as_array(y: Any) -> Array:
    """Return labels as an array of the original values: numpy would turn the −1 in ["a", −1] into
    a string."""
    if hasattr(y, "isna"):  # a pandas column, which turns None into NaN
        y = y.astype(object).where(~y.isna(), None).to_numpy()
    values: Array = np.asarray(y)
    if values.dtype.kind not in "US":
        return values
    if isinstance(y, np.ndarray) and str(UNKNOWN) in values:
        raise DataError(
            "one label is the string '-1', which numpy makes of a −1 in an array of strings",
            "write unknown labels as None, or give a list instead of an array",
        )
    return np.asarray(y, dtype=object)


def _as_column(values: Array) -> Array:
    """Return labels as a vector; raise, as scikit-learn does, if they are none."""
    if values.ndim == 1 and values.dtype.kind in "biuUSO":
        return values
    from sklearn.utils.validation import column_or_1d  # few need it, and its import takes long

    column: Array = column_or_1d(values, warn=True)
    return column


def _find_unknown(labels: Array) -> BoolArray:
    """Return whether each label is unknown."""
    return np.array([is_unknown(label) for label in labels], dtype=bool)


def separate_unknown(y: Any) -> tuple[Array, BoolArray]:
    """Return the known labels, of one type, and whether each item's label is unknown.

    >>> separate_unknown(["b", None, "a"])
    (array(['b', 'a'], dtype='<U1'), array([False,  True, False]))
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "US":  # all are strings: '-1' is a class
        return _as_column(y), np.zeros(len(y), dtype=bool)
    values = _as_column(_as_array(y))
    unknown = _find_unknown(values)
    return unify_labels(values[~unknown]), unknown


def is_unknown(label: Any) -> bool:
    """Return whether a label means "unknown": None or −1."""
    return label is None or (isinstance(label, Real) and bool(label == UNKNOWN))


def unify_labels(labels: Array) -> Array:
    """Convert labels to an array of strings or of numbers."""
    if labels.dtype != object:
        return labels
    if all(isinstance(label, str) for label in labels):
        return labels.astype(str)
    strange = next((label for label in labels if not isinstance(label, Real | np.bool_)), None)
    if strange is not None:
        raise DataError(
            f"labels are of several kinds, or of an unsupported type: one is {brief(strange)}",
            "give strings only or numbers only; −1 or None where a label is unknown",
        )
    return np.array(labels.tolist())
