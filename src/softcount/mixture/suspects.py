"""Given labels that are probably wrong: how probable is each if it was not known?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount.core.errors import DataError
from softcount.core.parameters import check_whole
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.mixture.data import UNKNOWN, Labels, read_labels


class Suspect(NamedTuple):
    """A given label, and how probable it is if it is not known.

    ``item``         number or name of the item
    ``given``        its label
    ``probability``  p(given label | everything but this label)
    ``likely``       the most probable label
    ``certainty``    the probability of that
    """

    item: Any
    given: Any
    probability: float
    likely: Any
    certainty: float


def read_given(y: Any, n_items: int) -> Labels:
    """Read the labels of which some may be wrong; those of items must be single labels."""
    labels = read_labels(y, n_items)
    if labels.soft_labels is not None:
        raise DataError(
            "y has distributions over classes", "give one label for each item, −1 if unknown"
        )
    return labels


def find_judged(labels: Labels) -> BoolArray:
    """Return whether each item has a label that can be hidden: it is not the only one of its class,
    (items,)."""
    sizes = np.bincount(labels.numbers[labels.numbers != UNKNOWN], minlength=len(labels.classes))
    judged: BoolArray = (labels.numbers != UNKNOWN) & (sizes[labels.numbers] > 1)
    if not judged.any():
        raise DataError(
            "no class has two labels, so that no label can be judged by the others",
            "label more items",
        )
    return judged


def split_labels(labels: Labels, judged: BoolArray, cv: int, seed: int) -> Iterator[IntArray]:
    """Deal the labels that are judged into parts, class by class, in random order."""
    check_whole("cv", cv, 2)
    rng = np.random.default_rng(seed)
    part = np.full(len(judged), UNKNOWN)
    for k in range(len(labels.classes)):
        items = np.flatnonzero(judged & (labels.numbers == k))
        part[rng.permutation(items)] = np.arange(len(items)) % cv
    for number in range(cv):
        items = np.flatnonzero(part == number)
        if len(items):
            yield items


def hide_in_parts(
    labels: Labels,
    judged: BoolArray,
    cv: int,
    seed: int,
    learn: Callable[[list[Any], IntArray], tuple[Any, FloatArray]],
) -> FloatArray:
    """Return the posterior of each class for items whose labels are hidden, part by part, (items,
    classes); NaN for items that are not judged.

    ``learn``  fits a model to labels, of which those of some items are None, and returns its
               classes and its posteriors of these items
    """
    posteriors = np.full((len(judged), len(labels.classes)), np.nan)
    given = labels.classes[labels.numbers].tolist()
    places = {name: k for k, name in enumerate(labels.classes.tolist())}
    for hidden in split_labels(labels, judged, cv, seed):
        unknown = {*hidden.tolist(), *np.flatnonzero(labels.numbers == UNKNOWN).tolist()}
        shown = [None if i in unknown else label for i, label in enumerate(given)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model that learns from all of it may warn
            classes, found = learn(shown, hidden)
        posteriors[hidden] = 0.0
        for column, name in enumerate(np.asarray(classes).tolist()):
            if name in places:
                posteriors[hidden, places[name]] = found[:, column]
    return posteriors


def list_suspects(
    labels: Labels, judged: BoolArray, posteriors: FloatArray, names: Sequence[Any] | None = None
) -> list[Suspect]:
    """List the judged labels, the least probable first.

    ``posteriors``  of each class without the item's own label, (items, classes)
    ``names``       of the items, by default their numbers
    """
    items = np.flatnonzero(judged)
    probability = posteriors[items, labels.numbers[items]]
    likely = posteriors[items].argmax(axis=1)
    certainty = posteriors[items, likely]
    # of labels that are equally improbable, first those for which another one is more certain
    order = np.lexsort((-certainty, probability))
    classes: Array = labels.classes
    return [
        Suspect(
            int(items[i]) if names is None else names[items[i]],
            classes[labels.numbers[items[i]]].item(),
            float(probability[i]),
            classes[likely[i]].item(),
            float(certainty[i]),
        )
        for i in order.tolist()
    ]
