"""Where to begin: functions (core, items, rng) → parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.corpus.bags import Bags
from softcount.corpus.space import SemanticSpace
from softcount.estimate import NUMBER
from softcount.models.mixture import anchors, spectral
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.items import Items, Points
from softcount.models.mixture.lloyd import about, cluster, spread_out
from softcount.types import Array, Params

SVD_DIMENSIONS = 100
SVD_WORDS = 1 << 17
"""Words that an SVD looks at: 300 MB, of which there would be 2.7 GB for a million words."""


def at_random(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Items dealt out to classes at random, each mostly to one: classes near the mean of all."""
    n, K = len(items), core.n_classes
    shares = rng.dirichlet(np.full(K, 1.0), size=n) if n else np.zeros((0, K))
    return core.from_shares(items.x, shares * items.known.weights[:, None], rng)


def uniform(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Every class the same: EM cannot move from here, and says so."""
    return {name: family.uniform() for name, family in core.families.items()}


def by_labels(core: MixtureCore, items: Items, labels: Array, rng: np.random.Generator) -> Params:
    """Parameters that fit items of these classes."""
    shares = np.zeros((len(items), core.n_classes))
    shares[np.arange(len(items)), labels] = items.known.weights
    return core.from_shares(items.x, shares, rng)


def kmeans_of_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means of documents as points: tf-idf, reduced by a truncated SVD, made one length."""
    matrix = _telling(_matrix(items))
    seed = int(rng.integers(2**31))
    if matrix.nnz == 0 or min(matrix.shape) < 2:
        return at_random(core, items, rng)  # there is no space to speak of
    points = SemanticSpace.of(matrix, SVD_DIMENSIONS, seed).points(matrix)
    labels = cluster(points, core.n_classes, items.known.weights, rng)
    return by_labels(core, items, labels, rng)


def _telling(matrix: Any) -> Any:
    """The columns of words that tell documents apart, where there are too many of them.

    An SVD needs some hundred numbers for each word. A word of a single document makes it like no
    other, and of the rest those go that the fewest documents have.
    """
    if matrix.shape[1] <= SVD_WORDS:
        return matrix
    spread = np.bincount(matrix.indices, minlength=matrix.shape[1])
    common = np.argsort(-spread, kind="stable")[:SVD_WORDS]
    return matrix[:, np.sort(common[spread[common] > 1])]


def bytes_of_kmeans(n_items: int, n_words: int) -> float:
    """What `kmeans_of_words` needs: tables of the SVD, and points."""
    dimensions = min(SVD_DIMENSIONS, n_items, n_words)
    words = min(n_words, SVD_WORDS)
    return NUMBER * dimensions * (3.0 * words + 2.0 * n_items)


def spectral_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """From moments of word co-occurrence by the tensor power method."""
    return _of_words(core, spectral.estimate(*_seen(core, items, rng)))


def anchor_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """From words that occur in one class only."""
    return _of_words(core, anchors.estimate(*_seen(core, items, rng)))


def _matrix(items: Items) -> Any:
    bags = items.x
    assert isinstance(bags, Bags)
    return bags.matrix


def _points(items: Items) -> Array:
    points = items.x
    assert isinstance(points, Points)
    return points.x


def _seen(
    core: MixtureCore, items: Items, rng: np.random.Generator
) -> tuple[Any, int, np.random.Generator, Array]:
    """What moments are taken of."""
    return _matrix(items), core.n_classes, rng, items.known.weights


def _of_words(core: MixtureCore, estimate: tuple[Array, Array]) -> Params:
    weights, words = estimate
    return {"weights": weights[None], core.emission.table: words}


def kmeans_of_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means, then each class as its points say."""
    labels = cluster(_points(items), core.n_classes, items.known.weights, rng)
    return by_labels(core, items, labels, rng)


def spread_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means++ (Arthur & Vassilvitskii 2007): centres far from each other, all else common."""
    return about(core, items, spread_out(_points(items), core.n_classes, items.known.weights, rng))


def random_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Centres at items drawn at random, all else common."""
    weights = items.known.weights
    enough = np.count_nonzero(weights) >= core.n_classes
    chosen = rng.choice(len(items), core.n_classes, replace=not enough, p=weights / weights.sum())
    return about(core, items, _points(items)[chosen])
