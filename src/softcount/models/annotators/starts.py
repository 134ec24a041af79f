"""Where to begin: with what most annotators say."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.corpus.bags import Bags
from softcount.models.annotators.votes import read_votes, sorted_classes
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.items import Items, Known
from softcount.types import Array, Params


def majority_vote(votes: Any) -> dict[Any, Any]:
    """The label that most votes give to each item; of equals the first in order, None for none.

    ``votes`` in any form that `Annotators` takes.

    >>> majority_vote([("s1", "ann", "yes"), ("s1", "bob", "no"), ("s1", "eve", "yes")])
    {'s1': 'yes'}
    """
    read = read_votes(votes)
    classes = sorted_classes(read.labels)
    counts = np.zeros((len(read.items), len(classes)))
    labels = np.searchsorted(classes, read.labels)[read.of_label] if len(read) else read.of_label
    np.add.at(counts, (read.of_item, labels), 1.0)
    chosen = counts.argmax(axis=1) if len(classes) else np.zeros(len(read.items), np.int64)
    names = classes.tolist()
    return {
        item: names[label] if total else None
        for item, label, total in zip(
            read.items, chosen.tolist(), counts.sum(axis=1).tolist(), strict=True
        )
    }


def majority(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Every item belongs to classes by the shares of its votes (Dawid & Skene 1979, §4).

    Items whose label is known belong to it; items without votes say nothing.
    """
    return core.from_shares(items.x, pinned(vote_shares(items.x, core.n_classes), items.known), rng)


HARDLY = 1e-3
"""What an item of unknown label counts in a start from known labels."""


def from_known(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """What items of known labels say; all others count next to nothing, by shares of votes.

    Without these an annotator of whom little is known could make an item impossible.
    """
    shares = HARDLY * vote_shares(items.x, core.n_classes)
    return core.from_shares(items.x, pinned(shares, items.known), rng)


def disturbed(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Half the shares of votes and half shares drawn at random, so that labels keep their names."""
    K = core.n_classes
    shares = (vote_shares(items.x, K) + rng.dirichlet(np.ones(K), size=len(items))) / 2.0
    return core.from_shares(items.x, pinned(shares, items.known), rng)


def vote_shares(x: Any, n_classes: int) -> Array:
    """The part of an item's votes that each label has, (items, classes); zeros without votes."""
    assert isinstance(x, Bags)
    rows = x.by_document
    items = np.repeat(np.arange(len(x)), np.diff(rows.indptr))
    cells = items * n_classes + rows.columns % n_classes
    votes = np.bincount(cells, rows.value, minlength=len(x) * n_classes).reshape(-1, n_classes)
    shares: Array = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    return shares


def pinned(shares: Array, known: Known) -> Array:
    """The shares, where a label is known all of them to it."""
    sure = np.flatnonzero(known.upper - known.lower == 1)
    shares[sure] = 0.0
    shares[sure, known.lower[sure]] = 1.0
    return shares
