"""Whether unlabelled items were drawn into fewer classes than the labels speak of."""

from __future__ import annotations

import numpy as np

from softcount.models.mixture.labels import UNKNOWN, Labels
from softcount.types import Array

PART = 4.0
"""Beside one class there must be at least such a part of what labels have beside one."""
CHANCE = 0.15
"""What happens more often than this where nothing is wrong is no collapse. Few unlabelled items
say little: that all of four are in one class while two labels are not has the probability 1/7."""


def has_collapsed(found: Array, n_free: int, labels: Array) -> bool:
    """Whether so few classes are left that something must be wrong.

    ``found``   the share of each class among the unlabelled items
    ``n_free``  how many these are
    ``labels``  how many labels each class has

    Classes are counted by their effective number N = exp(entropy). It is a collapse if N of what
    was found is below half of N of the labels. With few classes, or with some that are rare, that
    cannot be, for N is never below 1; so it is one, too, if N − 1 is below a quarter of that of the
    labels, unless it may be chance: labels are few, and so may be the items. If c of n labels are
    outside the class that was found most often, the share outside is Beta(c + 1, n − c + 1), and
    the number of items outside beta-binomial.

    >>> labels = np.array([5.0, 5.0])
    >>> has_collapsed(np.array([0.99, 0.01]), 100, labels)
    True
    >>> has_collapsed(np.array([0.9, 0.1]), 100, labels)
    False
    >>> has_collapsed(np.array([1.0, 0.0]), 100, np.array([99.0, 1.0]))
    False
    """
    ours, theirs = effective(found), effective(labels / labels.sum())
    if ours < theirs / 2.0:
        return True
    if ours - 1.0 >= (theirs - 1.0) / PART:
        return False
    from scipy.stats import betabinom  # slow to import, and seldom needed

    largest = int(found.argmax())
    n_outside = np.floor(n_free * (1.0 - found[largest]) + 1e-9)
    outside = labels.sum() - labels[largest]
    chance = betabinom.cdf(n_outside, n_free, outside + 1.0, labels[largest] + 1.0)
    return bool(chance < CHANCE)


def labels_by_class(labels: Labels) -> Array:
    """How many labels each class has; items that share several classes count for each by shares."""
    counts = np.bincount(labels.numbers[labels.numbers != UNKNOWN], minlength=len(labels.classes))
    total = counts.astype(float)
    if labels.shares is not None:
        total += np.nansum(labels.shares, axis=0)
    return total


def effective(shares: Array) -> float:
    """How many equally common classes would be as varied: exp of the entropy.

    >>> round(effective(np.array([0.5, 0.5, 0.0])), 12)
    2.0
    """
    some = shares[shares > 0.0]
    return float(np.exp(-np.sum(some * np.log(some))))
