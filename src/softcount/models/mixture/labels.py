"""Labels as users give them: a class, unknown, or shares of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from softcount.bounds import within_range
from softcount.errors import DataError, shown
from softcount.models.mixture.items import Known
from softcount.types import Array

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of the classes of some items.

    ``classes``  the classes there are, sorted
    ``numbers``  each item's class as a number, −1 if it is unknown or shared
    ``shares``   (items, classes), NaN where an item is not shared among classes; or None
    """

    classes: Array
    numbers: Array
    shares: Array | None = None

    @property
    def known(self) -> Array:
        """Whether anything is known of each item's class."""
        labelled: Array = self.numbers != UNKNOWN
        return labelled if self.shares is None else labelled | ~np.isnan(self.shares[:, 0])

    def likeliest(self) -> Array:
        """Each item's class as a number, of several the one with the largest share."""
        if self.shares is None:
            return self.numbers
        largest = np.nan_to_num(self.shares).argmax(axis=1)
        return np.where(np.isnan(self.shares[:, 0]), self.numbers, largest)

    def restrict(self, components: int, weights: Array) -> Known:
        """Each item kept to the ``components`` of its class."""
        K = len(self.classes) * components
        lower = np.where(self.numbers == UNKNOWN, 0, self.numbers * components)
        upper = np.where(self.numbers == UNKNOWN, K, lower + components)
        groups = None if self.shares is None else np.arange(0, K + 1, components)
        return Known(lower, upper, weights, self.shares, groups)


def read_labels(y: Any, n_items: int) -> Labels:
    """Labels from a vector (−1 or None: unknown) or a matrix of shares (a row of NaN: unknown).

    >>> read_labels(["b", None, "a"], 3).numbers
    array([ 1, -1,  0])
    """
    if y is None:
        raise DataError(
            "This estimator requires y to be passed, but the target y is None",
            "give a label for each item, −1 where it is unknown",
        )
    given = _as_array(y)
    if given.ndim == 2 and given.shape[1] > 1:
        return _read_shares(given, n_items)
    given = column_or_1d(given, warn=True)
    _demand_length(len(given), n_items)
    unknown = which_unknown(given)
    if unknown.all():
        raise DataError("no item has a label", "label some; for none at all: MultinomialMixture")
    labelled = of_one_kind(given[~unknown])
    if labelled.dtype.kind not in "biuU":  # which are classes, however many there are
        check_classification_targets(labelled)
    classes, found = np.unique(labelled, return_inverse=True)
    numbers = np.full(n_items, UNKNOWN, np.int64)
    numbers[~unknown] = found
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


def which_unknown(given: Array) -> Array:
    """Whether each of some labels says nothing."""
    return np.array([is_unknown(label) for label in given], dtype=bool)


def labels_and_gaps(y: Any) -> tuple[Array, Array]:
    """Labels of one kind, for the items that have one, and whether each item has none.

    >>> labels_and_gaps(["b", None, "a"])
    (array(['b', 'a'], dtype='<U1'), array([False,  True, False]))
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "US":  # all are texts: a '-1' is a class
        return column_or_1d(y, warn=True), np.zeros(len(y), dtype=bool)
    given = column_or_1d(_as_array(y), warn=True)
    unknown = which_unknown(given)
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
            f"labels are of several kinds, or of none that is known: one is {shown(strange)}",
            "give strings only or numbers only; −1 or None where a label is unknown",
        )
    return np.array(labels.tolist())


def _read_shares(given: Array, n_items: int) -> Labels:
    _demand_length(len(given), n_items)
    with within_range("the table of soft labels"):
        shares = given.astype(np.float64)
    unknown = np.isnan(shares).any(axis=1)
    totals = shares[~unknown].sum(axis=1)
    if (shares[~unknown] < 0.0).any() or not np.allclose(totals, 1.0, atol=1e-6):
        raise DataError(
            "soft labels must be shares: none negative, each row adding up to 1",
            "one row an item, one column a class; NaN where nothing is known",
        )
    if unknown.all():
        raise DataError("no item has a label", "label some; for none at all: MultinomialMixture")
    shares[~unknown] /= totals[:, None]
    shares[unknown] = np.nan
    return Labels(np.arange(given.shape[1]), np.full(n_items, UNKNOWN, np.int64), shares)


def _demand_length(n_labels: int, n_items: int) -> None:
    if n_labels != n_items:
        raise DataError(
            f"inconsistent numbers of samples: {n_items} items and {n_labels} labels",
            "give one label for each item, −1 where it is unknown",
        )
