"""Items of a mixture, and what is known of their classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from softcount.core.bounds import within_range
from softcount.core.errors import DataError, brief
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.families.gaussian import CovarianceForm, FullCovariance
from softcount.text.shards import split_items


class Observations(Protocol):
    """Bags of words, or points."""

    def __len__(self) -> int: ...

    def take(self, items: IntArray) -> Self:
        """Some of them."""


@dataclass(frozen=True, eq=False)
class Points:
    """Vectors, one a row."""

    x: FloatArray  # (items, dimensions)
    _outer: dict[type[CovarianceForm], FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    def outer(self, form: CovarianceForm) -> FloatArray | None:
        """x xᵀ in this form, worked out once; None where there would be too much to keep."""
        if isinstance(form, FullCovariance):
            return None
        if type(form) not in self._outer:
            self._outer[type(form)] = form.outer(self.x)
        return self._outer[type(form)]

    def take(self, items: IntArray) -> Self:
        return type(self)(self.x[items])


class ConstraintGroup(NamedTuple):
    """Some items, each with the classes it may have (lower ≤ k < upper) and a weight."""

    rows: IntArray | slice
    lower: IntArray
    upper: IntArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class ClassConstraints:
    """What is known of each item's class: nothing, a range of classes, or shares of several.

    ``lower, upper``  the classes an item may have are lower ≤ k < upper
    ``weights``       how much an item counts
    ``shares``        (items, groups) or None: an item whose row is not NaN is read as so many
                      fractions of an item, one a group of classes
    ``groups``        borders of those groups
    """

    lower: IntArray
    upper: IntArray
    weights: FloatArray
    shares: FloatArray | None = None
    groups: IntArray | None = None

    @classmethod
    def nothing(cls, n_items: int, n_classes: int, weights: FloatArray | None = None) -> Self:
        """Every class is possible for every item."""
        return cls(
            np.zeros(n_items, np.int64),
            np.full(n_items, n_classes, np.int64),
            np.ones(n_items) if weights is None else weights,
        )

    def take(self, items: IntArray) -> Self:
        shares = None if self.shares is None else self.shares[items]
        return type(self)(
            self.lower[items], self.upper[items], self.weights[items], shares, self.groups
        )

    def by_group(self) -> Iterator[ConstraintGroup]:
        """The items in parts, in each of which every item has one range of classes."""
        if self.shares is None or self.groups is None:
            yield ConstraintGroup(slice(None), self.lower, self.upper, self.weights)
            return
        shared = ~np.isnan(self.shares[:, 0])
        plain = np.flatnonzero(~shared)
        if len(plain):
            yield ConstraintGroup(plain, self.lower[plain], self.upper[plain], self.weights[plain])
        for group, (low, high) in enumerate(zip(self.groups, self.groups[1:], strict=False)):
            rows = np.flatnonzero(shared & (self.shares[:, group] > 0.0))
            if len(rows):
                same = np.ones(len(rows), np.int64)
                weights = self.weights[rows] * self.shares[rows, group]
                yield ConstraintGroup(rows, same * low, same * high, weights)


@dataclass(frozen=True, eq=False)
class MixtureShard:
    """Some items: their numbers in the corpus, what was observed, and what is known."""

    numbers: IntArray
    x: Observations
    known: ClassConstraints
    _moments: dict[type[CovarianceForm], FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def second_moments(self, form: CovarianceForm) -> FloatArray | None:
        """Σ w x xᵀ of points in this form, worked out once; None where `Points.outer` is none."""
        assert isinstance(self.x, Points)
        if type(form) not in self._moments:
            outer = self.x.outer(form)
            if outer is None:
                return None
            self._moments[type(form)] = self.known.weights @ outer
        return self._moments[type(form)]


@dataclass(frozen=True, eq=False)
class Items:
    """A corpus of observations (`softcount.core.model.Corpus`); ``cut`` is its own shards' size."""

    x: Observations
    known: ClassConstraints
    cut: int

    def __len__(self) -> int:
        return len(self.x)

    def name(self, number: int) -> str:
        return f"item {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[MixtureShard]:
        if batch_size is None and len(self) <= self.cut:
            return [MixtureShard(np.arange(len(self)), self.x, self.known)]
        return [
            MixtureShard(part, self.x.take(part), self.known.take(part))
            for part in split_items(len(self), self.cut, batch_size, seed)
        ]


# Labels as users give them: a class, unknown, or shares of several classes.


UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the classes of some items.

    ``classes``  the classes there are, sorted
    ``numbers``  each item's class as a number, −1 if it is unknown or shared
    ``shares``   (items, classes), NaN where an item is not shared among classes; or None
    """

    classes: Array
    numbers: IntArray
    shares: FloatArray | None = None

    @property
    def known(self) -> BoolArray:
        """Whether anything is known of each item's class."""
        labelled: BoolArray = self.numbers != UNKNOWN
        return labelled if self.shares is None else labelled | ~np.isnan(self.shares[:, 0])

    def likeliest(self) -> IntArray:
        """Each item's class as a number, of several the one with the largest share."""
        if self.shares is None:
            return self.numbers
        largest = np.nan_to_num(self.shares).argmax(axis=1)
        return np.where(np.isnan(self.shares[:, 0]), self.numbers, largest)

    def restrict(self, components: int, weights: FloatArray) -> ClassConstraints:
        """Each item kept to the ``components`` of its class."""
        K = len(self.classes) * components
        lower = np.where(self.numbers == UNKNOWN, 0, self.numbers * components)
        upper = np.where(self.numbers == UNKNOWN, K, lower + components)
        groups = None if self.shares is None else np.arange(0, K + 1, components)
        return ClassConstraints(lower, upper, weights, self.shares, groups)


def read_labels(y: Any, n_items: int) -> Labels:
    """Labels from a vector (−1 or None: unknown) or a matrix of shares (a row of NaN: unknown).

    >>> read_labels(["b", None, "a"], 3).numbers
    array([ 1, -1,  0])
    """
    # only here: hidden Markov models need this module, and no scikit-learn
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise DataError(
            "This estimator requires y to be passed, but the target y is None",
            "give a label for each item, −1 where it is unknown",
        )
    given = _as_array(y)
    soft = given.ndim == 2 and given.shape[1] > 1
    if not soft:
        given = column_or_1d(given, warn=True)
    if len(given) != n_items:
        raise DataError(
            f"inconsistent numbers of samples: {n_items} items and {len(given)} labels",
            "give one label for each item, −1 where it is unknown",
        )
    numbers = np.full(n_items, UNKNOWN, np.int64)
    if soft:
        with within_range("the table of soft labels"):
            shares = given.astype(np.float64)
        unknown = np.isnan(shares).any(axis=1)
    else:
        unknown = _which_unknown(given)
    if unknown.all():
        raise DataError("no item has a label", "label some; for none at all: MultinomialMixture")
    if soft:
        totals = shares[~unknown].sum(axis=1)
        if (shares[~unknown] < 0.0).any() or not np.allclose(totals, 1.0, atol=1e-6):
            raise DataError(
                "soft labels must be shares: none negative, each row adding up to 1",
                "one row an item, one column a class; NaN where nothing is known",
            )
        shares[~unknown] /= totals[:, None]
        shares[unknown] = np.nan
        return Labels(np.arange(given.shape[1]), numbers, shares)
    labelled = of_one_kind(given[~unknown])
    if labelled.dtype.kind not in "biuU":  # which are classes, however many there are
        check_classification_targets(labelled)
    classes, numbers[~unknown] = np.unique(labelled, return_inverse=True)
    return Labels(classes, numbers)


def _as_array(y: Any) -> Array:
    """The labels, each as it is: numpy would make the −1 in ["a", −1] a string."""
    if hasattr(y, "isna"):  # a column of a data frame, which makes NaN of None
        y = y.astype(object).where(~y.isna(), None).to_numpy()
    given: Array = np.asarray(y)
    if given.dtype.kind not in "US":
        return given
    if isinstance(y, np.ndarray) and str(UNKNOWN) in given:
        raise DataError(
            "one label is the text '-1', which numpy makes of a −1 among texts",
            "give None where a label is unknown, or a list instead of an array",
        )
    return np.asarray(y, dtype=object)


def _which_unknown(given: Array) -> BoolArray:
    """Whether each of some labels says nothing."""
    return np.array([is_unknown(label) for label in given], dtype=bool)


def labels_and_gaps(y: Any) -> tuple[Array, BoolArray]:
    """Labels of one kind, for the items that have one, and whether each item has none.

    >>> labels_and_gaps(["b", None, "a"])
    (array(['b', 'a'], dtype='<U1'), array([False,  True, False]))
    """
    from sklearn.utils.validation import column_or_1d

    if isinstance(y, np.ndarray) and y.dtype.kind in "US":  # all are texts: a '-1' is a class
        return column_or_1d(y, warn=True), np.zeros(len(y), dtype=bool)
    given = column_or_1d(_as_array(y), warn=True)
    unknown = _which_unknown(given)
    return of_one_kind(given[~unknown]), unknown


def is_unknown(label: Any) -> bool:
    """Whether a label says nothing: None or −1."""
    return label is None or (isinstance(label, Real) and bool(label == UNKNOWN))


def of_one_kind(labels: Array) -> Array:
    """Labels as an array of strings or of numbers."""
    if labels.dtype != object:
        return labels
    if all(isinstance(label, str) for label in labels):
        return labels.astype(str)
    strange = next((label for label in labels if not isinstance(label, Real | np.bool_)), None)
    if strange is not None:
        raise DataError(
            f"labels are of several kinds, or of none that is known: one is {brief(strange)}",
            "give strings only or numbers only; −1 or None where a label is unknown",
        )
    return np.array(labels.tolist())
