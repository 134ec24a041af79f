"""k-means as the special case it is: hard EM of Gaussians of one known variance, equally common."""

from __future__ import annotations

import numpy as np

from softcount.families import Categorical, Gaussian
from softcount.fit import fit
from softcount.kernels.blas import single_threaded
from softcount.models.mixture.core import MixtureCore
from softcount.models.mixture.emissions import Vectors
from softcount.models.mixture.items import Items, Known, Points
from softcount.types import Array


def spherical_core(
    name: str, n_classes: int, n_dims: int, variance: float = 1.0, usual: str = "EM"
) -> MixtureCore:
    """Equally common classes of one known variance; ``usual`` is how they are learned."""
    weights = Categorical((1, n_classes), frozen=np.array([True]))
    family = Gaussian(n_classes, n_dims, "identity", known=variance)
    return MixtureCore(name, weights, Vectors(family), usual)


def spread_out(x: Array, n_classes: int, weights: Array, rng: np.random.Generator) -> Array:
    """Centres by k-means++ (Arthur & Vassilvitskii 2007): points far from each other.

    Where there are fewer different points than classes, some centres are the same.
    """
    from sklearn.cluster import kmeans_plusplus

    few = min(n_classes, len(x))
    seed = int(rng.integers(2**31))
    with single_threaded(), np.errstate(all="ignore"):
        centres, _ = kmeans_plusplus(x, few, sample_weight=weights, random_state=seed)
    return np.vstack([centres, x[rng.integers(len(x), size=n_classes - few)]])


def about(core: MixtureCore, items: Items, centres: Array) -> dict[str, Array]:
    """Classes about some centres, of the spread that is known, or that all data have together."""
    family = core.emission.family
    assert isinstance(family, Gaussian)
    points = family.uniform()
    if not family.known:
        everything = np.repeat(items.known.weights[:, None], core.n_classes, axis=1)
        rng = np.random.default_rng(0)  # not drawn from: all classes are the same so far
        points = core.from_shares(items.x, everything, rng)[core.emission.table]
    return {
        "weights": core.families["weights"].uniform(),
        core.emission.table: family.moved(points, centres),
    }


def cluster(x: Array, n_classes: int, weights: Array, rng: np.random.Generator) -> Array:
    """The class of each point by k-means, from one k-means++ start."""
    core = spherical_core("k-means", n_classes, x.shape[1], usual="HardEM")
    items = Items(Points(x), Known.nothing(len(x), n_classes, weights), core.emission.cut)
    start = about(core, items, spread_out(x, n_classes, weights, rng))
    found = fit(core, items, init=start).params
    labels: Array = core.joint(found, items.x).argmax(axis=1)
    return labels
