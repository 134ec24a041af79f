"""Annotators as a mixture whose words are votes: emissions, known labels, initial parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.annotators.data import is_missing, read_votes, sorted_classes
from softcount.core.errors import DataError
from softcount.core.types import FloatArray, IntArray, Params
from softcount.families import Categorical
from softcount.mixture.core import BagEmission, MixtureCore
from softcount.mixture.data import UNKNOWN, Labels, MixtureCorpus, read_labels
from softcount.text.bags import Bags


class Confusions(Categorical):
    """Confusion matrices: a distribution over votes for each annotator and true label.

    True labels are indistinguishable if all annotators have the same distribution for them.
    """

    TOLERANCE = 1e-9

    def __init__(self, n_annotators: int, n_classes: int, prior: float) -> None:
        super().__init__((n_annotators * n_classes, n_classes), prior)
        self.of_annotators = (n_annotators, n_classes, n_classes)

    def __reduce__(self) -> tuple[Any, ...]:  # rows are many, and all the same
        return type(self), (*self.of_annotators[:2], self.alpha)

    def alike(self, params: FloatArray) -> bool | None:
        if self.of_annotators[1] < 2:
            return None
        rows = params.reshape(self.of_annotators)
        return bool(np.all(np.abs(rows - rows[:, :1]) <= self.TOLERANCE))


class Voting(BagEmission):
    """Emission of votes: an item is a document whose words are pairs (annotator, label).

    log p(votes | k) = Σ_a Σ_l x_al log θ_akl. Unlike for documents, probabilities sum to one over
    the labels of each annotator, not over all words.
    """

    table = "confusion"
    family: Confusions

    def __init__(self, n_annotators: int, n_classes: int, prior: float) -> None:
        self.family = Confusions(n_annotators, n_classes, prior)

    def joint(
        self, params: FloatArray, x: Bags, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        A, K, L = self.family.of_annotators
        # a row for each true label: (classes, annotators · labels)
        by_class = params.reshape(A, K, L).transpose(1, 0, 2).reshape(K, A * L)
        return super().joint(by_class, x, log_weights, threads, floor)

    def counts(self, x: Bags, posteriors: FloatArray, threads: int) -> FloatArray:
        A, K, L = self.family.of_annotators
        by_class = np.asarray(super().counts(x, posteriors, threads)).reshape(K, A, L)
        return np.ascontiguousarray(by_class.transpose(1, 0, 2)).reshape(A * K, L)

    def generate(
        self, params: FloatArray, classes: IntArray, rng: np.random.Generator, size: Any
    ) -> Any:
        """Draw a label for each vote; ``size`` is (items, annotators), arrays over the votes."""
        items, annotators = size
        probabilities = params.reshape(self.family.of_annotators)[annotators, classes[items]]
        cumulative = np.cumsum(probabilities, axis=1)
        drawn = rng.random(len(items)) * cumulative[:, -1]
        return (drawn[:, None] >= cumulative).sum(axis=1)


def read_known(y: Any, items: Sequence[Any]) -> Labels | None:
    """Read the known labels of items: a label for each (−1, None or NaN: unknown), or a mapping
    {item: label}.

    Returns None if no label is known. Items of a mapping without votes are left out.
    """
    if y is None:
        return None
    if isinstance(y, Mapping):
        given = [y.get(item) for item in items]
        if y and not any(item in y for item in items):
            raise DataError(
                f"none of the {len(y):,} items in y has votes",
                "use the same item names in y as in the votes",
            )
    elif isinstance(y, np.ndarray) and y.dtype.kind in "US" and (y == str(UNKNOWN)).any():
        raise DataError(
            "a label is the text '-1', which numpy makes of a −1 among texts",
            "give None for unknown labels, or a list instead of an array",
        )
    else:
        given = list(y.tolist() if hasattr(y, "tolist") else y)
    if all(map(is_missing, given)) and len(given) == len(items):
        return None
    labels = read_labels([None if is_missing(label) else label for label in given], len(items))
    if labels.soft_labels is not None:
        raise DataError(
            "y has a distribution over classes for each item",
            "give one label per item; −1 if it is unknown",
        )
    return labels


def majority_vote(votes: Any) -> dict[Any, Any]:
    """Return the majority label of each item; ties: the first in sorted order; no votes: None.

    ``votes``  in any form that `Annotators` takes

    >>> majority_vote([("s1", "ann", "yes"), ("s1", "bob", "no"), ("s1", "eve", "yes")])
    {'s1': 'yes'}
    """
    read = read_votes(votes)
    classes = sorted_classes(read.labels)
    if not len(classes):
        return dict.fromkeys(read.items)
    counts = np.zeros((len(read.items), len(classes)), np.int64)
    labels = np.searchsorted(classes, read.labels)[read.of_label]
    np.add.at(counts, (read.of_item, labels), 1)
    chosen, n_votes = classes[counts.argmax(axis=1)].tolist(), counts.max(axis=1).tolist()
    return {
        item: label if n else None
        for item, label, n in zip(read.items, chosen, n_votes, strict=True)
    }


# Initial parameters

HARDLY = 1e-3
"""Weight of an item of unknown label in the initial parameters from known labels."""


def start_majority(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from the proportions of votes of each item (Dawid & Skene 1979, §4).

    Items whose label is known have responsibility 1 for it; items without votes are ignored.
    """
    return _start(core, items, rng, vote_shares(items.x, core.n_classes))


def start_known(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from items of known label; others count, with a tiny weight, by votes.

    Without that tiny weight, an annotator with few known items could make an item impossible.
    """
    return _start(core, items, rng, HARDLY * vote_shares(items.x, core.n_classes))


def start_random(core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator) -> Params:
    """Initial parameters from half proportions of votes, half random responsibilities.

    The votes are there so that labels keep their names.
    """
    K = core.n_classes
    drawn = rng.dirichlet(np.ones(K), size=len(items))
    return _start(core, items, rng, (vote_shares(items.x, K) + drawn) / 2.0)


def _start(
    core: MixtureCore, items: MixtureCorpus, rng: np.random.Generator, responsibilities: FloatArray
) -> Params:
    """Return the M-step for these responsibilities (items, classes), 1 for the known labels."""
    lower, upper = items.known.lower, items.known.upper
    known = np.flatnonzero(upper - lower == 1)
    responsibilities[known] = 0.0
    responsibilities[known, lower[known]] = 1.0
    return core.from_responsibilities(items.x, responsibilities, rng)


def vote_shares(x: Any, n_classes: int) -> FloatArray:
    """Return the proportions of each item's votes, (items, classes); zeros without votes."""
    assert isinstance(x, Bags)
    rows = x.by_document
    items = np.repeat(np.arange(len(x)), np.diff(rows.indptr))
    cells = items * n_classes + rows.columns % n_classes
    votes = np.bincount(cells, rows.value, minlength=len(x) * n_classes).reshape(-1, n_classes)
    shares: FloatArray = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return shares
