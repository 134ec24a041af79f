"""Mixtures of points: Gaussian classes, and k-means as their special case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.utils.validation import validate_data

from softcount.core import store
from softcount.core.bounds import (
    MAX_POINT_WEIGHT,
    MAX_PRECISION,
    MAX_VALUE,
    MIN_SQUARE,
    demand_values,
    within_range,
)
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.parameters import check_niw, shaped
from softcount.core.store import AGAIN, numbers
from softcount.core.types import Array, FloatArray, IntArray
from softcount.families import Categorical, Gaussian
from softcount.families.base import Family
from softcount.families.gaussian import NIW
from softcount.learners.named import HardEM
from softcount.mixture import starts
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore, PointEmission
from softcount.mixture.data import Items, Points
from softcount.mixture.parameters import (
    GaussianMixtureParameters,
    KMeansParameters,
    SoftKMeansParameters,
)
from softcount.mixture.starts import Start, about, spherical_core
from softcount.text.documents import find_texts

FARTHEST = 1e6
"""So many standard deviations away a prior may expect the means of classes: the square of it is how
far it pulls the eigenvalues of a covariance apart."""

LEAST_FLOOR = 1e-12
"""Variances below this share of a column's own are nothing but rounding, whatever is asked for."""


class PointMixture(Clusterer):
    """What all mixtures of points share.

    Inside, points are shifted so that their mean is zero: far from zero, sums of squares would
    drown in rounding.
    """

    offset_: FloatArray
    for_labels = "LabelPropagation learns from points of which some have a label (-1: unknown)"
    max_weight = MAX_POINT_WEIGHT

    def observe(self, X: Any, *, first: bool) -> Points:
        if find_texts(X):
            raise DataError("these are texts, not points", "use MultinomialMixture for texts")
        with within_range("the data"):
            x = validate_data(self, X, dtype=np.float64, reset=first)
        demand_values(x, "the data have")
        if first:
            self.offset_ = np.zeros(x.shape[1])
        return Points(x - self.offset_)

    def place(self, x: Points, weights: FloatArray | None) -> Points:
        """Points shifted so that their mean is zero."""
        self.offset_ = np.average(x.x, axis=0, weights=weights)
        return Points(x.x - self.offset_)

    @property
    def means_(self) -> FloatArray:
        """The centre of each class, (classes, dimensions)."""
        self._require_fit()
        means: FloatArray = _gaussian(self.core_).means(self.raw_params_["points"]) + self.offset_
        return means

    @property
    def covariances_(self) -> FloatArray:
        """full, tied (classes, D, D); diag (classes, D); spherical, identity (classes,)"""
        self._require_fit()
        return _gaussian(self.core_).covariances(self.raw_params_["points"])

    @property
    def params_(self) -> dict[str, Array]:
        """Weights, means and covariances; they may be given back as ``init``."""
        return {
            "weights": np.array(self.weights_),
            "means": self.means_,
            "covariances": self.covariances_,
        }

    def starts(self) -> Mapping[str, Start]:
        return {
            "kmeans": starts.kmeans_of_points,
            "k-means++": starts.spread_points,
            "random": starts.random_points,
        }

    def _read_params(self, core: MixtureCore, corpus: Items, given: Any) -> Any:
        """Weights, means and covariances as arrays, or what the core itself has."""
        if not isinstance(given, Mapping) or "points" in given:
            return super()._read_params(core, corpus, given)
        strange = set(given) - {"weights", "means", "covariances"}
        if strange or "means" not in given:
            raise LearnerError(
                f"init has {', '.join(map(str, given))}",
                "give means, and if you like weights and covariances",
            )
        family = _gaussian(core)
        usual = family.uniform()
        centres = shaped("means", given["means"], family.means(usual).shape) - self.offset_
        params = about(core, corpus, centres)
        if "covariances" in given:
            shape = family.covariances(usual).shape
            covariances = shaped("covariances", given["covariances"], shape)
            params["points"] = family.make_params(centres, covariances)
        if "weights" in given:
            params["weights"] = shaped("weights", given["weights"], (1, core.n_classes))
        return params

    def _generate(self, classes: IntArray, rng: Generator) -> FloatArray:
        emission, table = self.core_.emission, self.raw_params_["points"]
        drawn: FloatArray = emission.generate(table, classes, rng, None) + self.offset_
        return drawn

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return {"offset": self.offset_}, {}

    def recall(self, stored: store.Stored, given: Mapping[str, Any]) -> Points:
        n = self.n_features_in_
        self.offset_ = numbers(stored, "offset", (n,), MAX_VALUE)
        cells = {"full": n * n, "tied": n * n, "diag": n, "spherical": 1, "identity": 0}
        width = n + cells[getattr(self, "covariance", "identity")] + 1
        table = numbers(stored, store.TABLE + "points", (self.n_components, width))
        demand_places(table, n)
        return Points(np.zeros((0, n)))

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> MixtureCore:
        core = super().rebuilt(stored, given)
        demand_shapes(_gaussian(core), stored.arrays[store.TABLE + "points"])
        return core


def _gaussian(core: MixtureCore) -> Gaussian:
    family = core.emission.family
    assert isinstance(family, Gaussian)
    return family


def demand_places(table: FloatArray, n_dims: int) -> None:
    """Raise a `StoreError` if means or precisions are so large that products overflow."""
    if (np.abs(table[:, :n_dims]) > 2.0 * MAX_VALUE).any() or (
        np.abs(table[:, n_dims:]) > MAX_PRECISION
    ).any():
        raise StoreError("means or precisions of classes are out of bounds", AGAIN)


def demand_shapes(family: Gaussian, table: FloatArray) -> None:
    """Raise a `StoreError` if a matrix in a file is no covariance: it has no inverse."""
    with np.errstate(all="ignore"):
        spreads = family.covariances(table)
        noise = np.ones((family.n_rows, family.n_dims))
        noise = family.form.whiten(noise, family.precisions(table))
        logs = family.log_density(table, family.means(table))
    if not all(np.isfinite(each).all() for each in (spreads, noise, logs)):
        raise StoreError("covariances of classes cannot be inverted", AGAIN)


class GaussianMixture(GaussianMixtureParameters, PointMixture):
    """A mixture of Gaussians (Dempster, Laird & Rubin 1977).

    ``n_components``  how many classes
    ``covariance``    'full', 'tied' (one full for all), 'diag', 'spherical', or 'identity'
    ``floor``         the smallest variance in any direction, as a share of the columns' own
    ``prior``         a normal–inverse-Wishart `NIW` on the scale of the centred data; None: maximum
                      likelihood, and for learners that need a prior a weak one from the data
    ``init``          'kmeans', 'k-means++', 'random' (points), or {"means": …, "covariances": …,
                      "weights": …}
    ``short_runs``        try so many starts by two quick passes each; go on from the best
    ``learner``, ``engine``, ``random_state``  how, where, and from which seed

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> model = GaussianMixture(2, covariance="spherical").fit(points)
    >>> sorted(model.means_[:, 0].round(3).tolist())
    [0.1, 5.1]
    """

    def make_core(self, x: Points, weights: FloatArray | None = None) -> MixtureCore:
        emission = PointEmission(self.gaussian(x, weights))
        learner = self.default_learner
        return MixtureCore("gaussian mixture", self.weights_family(), emission, learner)

    def weights_family(self) -> Family:
        """How common classes are."""
        return Categorical((1, self.n_components))

    def gaussian(self, x: Points, weights: FloatArray | None = None) -> Gaussian:
        """The classes; their floor and their prior are on the scale of the data."""
        spread = reach = np.ones(x.x.shape[1])
        if len(x):  # their mean is zero
            squares = x.x**2
            spread = reach = np.average(squares, axis=0, weights=weights)
            if weights is not None:  # one point may outweigh all others, which are a class as well
                reach = np.maximum(spread, squares[weights > 0.0].mean(axis=0))
        some = float(spread.mean())
        spread = np.where(spread > MIN_SQUARE, spread, some if some > MIN_SQUARE else 1.0)
        tied = self.covariance == "tied"
        return Gaussian(
            self.n_components,
            x.x.shape[1],
            "full" if tied else self.covariance,  # type: ignore[arg-type]
            self._prior(spread),
            np.maximum(max(self.floor, LEAST_FLOOR) * spread, LEAST_FLOOR * reach),
            tied=tied,
        )

    def _prior(self, spread: FloatArray) -> NIW | None:
        """Weakly: centres somewhere in the data, variances somewhat below the data's."""
        if self.prior is None and not self._maximises:
            whole = self.covariance in ("spherical", "identity")
            return NIW(scale=float(spread.mean()) if whole else spread)
        check_niw(self.prior)
        if self.prior is not None:
            away = np.abs(np.asarray(self.prior.mean, dtype=np.float64)).max()
            if away > FARTHEST * np.sqrt(spread.max()):
                raise LearnerError(
                    f"the mean of the prior is at {away:.3g}, while the data spread by about "
                    f"{np.sqrt(spread.max()):.3g}",
                    "the prior is on the scale of the centred data, whose mean is zero",
                )
        return self.prior


class KMeans(KMeansParameters, PointMixture):
    """k-means (Lloyd 1957): hard EM of equally common Gaussians of one known variance.

    ``init``  'k-means++', 'random' (points), or {"means": …}

    The learner is `HardEM` unless another is given. `transform` gives distances to the centres.

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> round(KMeans(2).fit(points).inertia_, 3)
    0.065
    """

    default_learner = HardEM()

    def make_core(self, x: Points, weights: FloatArray | None = None) -> MixtureCore:
        n_dims, learner = x.x.shape[1], self.default_learner
        return spherical_core("k-means", self.n_components, n_dims, learner=learner)

    def _after_fit(self, corpus: Items) -> None:
        super()._after_fit(corpus)
        assert isinstance(corpus.x, Points)
        away = corpus.x.x + self.offset_ - self.means_[self.labels_]
        self.inertia_ = float(corpus.known.weights @ (away * away).sum(axis=1))

    def transform(self, X: Any) -> FloatArray:
        """Distances to the centres, (items, classes)."""
        x = self._seen(X)
        assert isinstance(x, Points)
        K, family = self.n_components, _gaussian(self.core_)
        means = family.means(self.raw_params_["points"])
        halves = family.form.log_density(x.x, means, np.ones((K, 1)), np.zeros(K))
        return np.sqrt(np.maximum(-2.0 * halves, 0.0))  # rounding can leave −1e-16


class SoftKMeans(SoftKMeansParameters, PointMixture):
    """Soft k-means: equally common Gaussians of one known ``variance``, learned by soft EM.

    The smaller the variance, the nearer it comes to k-means.

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> sorted(SoftKMeans(2, variance=0.5).fit(points).means_[:, 0].round(3).tolist())
    [0.1, 5.1]
    """

    def make_core(self, x: Points, weights: FloatArray | None = None) -> MixtureCore:
        return spherical_core("soft k-means", self.n_components, x.x.shape[1], self.variance)
