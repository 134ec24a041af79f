"""Mixtures of points: Gaussian mixtures, and k-means as a special case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from softcount.core import store
from softcount.core.bounds import (
    MAX_POINT_WEIGHT,
    MAX_PRECISION,
    MAX_VALUE,
    MIN_SQUARE,
    check_coordinates,
    within_range,
)
from softcount.core.contract import as_configured
from softcount.core.display import NamedTables
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.parameters import check_niw, reshape_start
from softcount.core.store import AGAIN, numbers
from softcount.core.types import Array, FloatArray, IntArray
from softcount.families import Categorical, Gaussian
from softcount.families.base import Family
from softcount.families.gaussian import NIW
from softcount.learners.named import HardEM
from softcount.mixture import starts
from softcount.mixture.base import Clusterer
from softcount.mixture.core import MixtureCore, PointEmission
from softcount.mixture.data import MixtureCorpus, Points, PointsOnDisk, parts_of, sum_parts
from softcount.mixture.lloyd import square_distances
from softcount.mixture.parameters import (
    GaussianMixtureParameters,
    KMeansParameters,
    SoftKMeansParameters,
)
from softcount.mixture.starts import Start, kmeans_core, params_around, spherical_core
from softcount.text.disk import DiskArray
from softcount.text.documents import find_texts
from softcount.text.vectors import Vectors

MAX_PRIOR_DISTANCE = 1e6
"""Largest distance of the prior mean from the data mean, in standard deviations of the data: its
square is the condition number that such a prior gives a covariance matrix."""

MIN_FLOOR = 1e-12
"""Smallest effective variance floor, as a fraction of a column's variance: below this, variances
are mere rounding error, whatever ``floor`` the user sets."""


def average(
    x: Points | PointsOnDisk,
    weights: FloatArray | None,
    function: Callable[[FloatArray], FloatArray] = lambda points: points,
) -> FloatArray:
    """Return the weighted mean over all points of a function of each, (dimensions,).

    Over a single shard the bits are those of `numpy.average`.
    """
    if weights is None:
        total = sum_parts(x, lambda where, part: function(part.x).sum(axis=0))
        mean: FloatArray = total / len(x)
        return mean
    w = weights[:, None]
    total = sum_parts(x, lambda where, part: (function(part.x) * w[where]).sum(axis=0))
    return total / sum_parts(x, lambda where, part: w[where].sum(axis=0))  # type: ignore[no-any-return]


class PointMixture(Clusterer):
    """Base of mixtures of points.

    Internally points are centred at zero: far from zero, sums of squares would lose all precision
    to rounding.

    Points on disk are `softcount.text.vectors.Vectors`, of which every sequence is one vector.
    """

    offset_: FloatArray
    for_labels = "LabelPropagation learns from points of which some have a label (-1: unknown)"
    max_weight = MAX_POINT_WEIGHT

    def observe(self, X: Any, *, first: bool) -> Points | PointsOnDisk:
        from sklearn.utils.validation import validate_data

        if isinstance(X, Vectors):
            if len(X.rows) != len(X) or (X.lengths != 1).any():
                wrong = int(np.flatnonzero(X.lengths != 1)[0])
                raise DataError(
                    f"{X.name(wrong)} is a sequence of {X.lengths[wrong]} vectors, not a point",
                    "give sequences of one vector each; to learn from sequences use GaussianHMM",
                )
            if isinstance(X.rows, DiskArray):
                validate_data(self, X.rows[:1], dtype=np.float64, reset=first)  # its columns
                if first:
                    self.offset_ = np.zeros(X.rows.shape[1])
                return replace(PointsOnDisk.of(X.rows), offset=self.offset_)
            X = X.rows
        if find_texts(X):
            raise DataError("the data are texts, not points", "use MultinomialMixture for texts")
        with within_range("the data"):
            x = validate_data(self, X, dtype=np.float64, reset=first)
        check_coordinates(x, "the data have")
        if first:
            self.offset_ = np.zeros(x.shape[1])
        return Points(x - self.offset_)

    def preprocess(self, x: Any, weights: FloatArray | None) -> Points | PointsOnDisk:
        """Return the points centred, so that their weighted mean is zero."""
        self.offset_ = average(x, weights)
        if isinstance(x, PointsOnDisk):
            return replace(x, offset=self.offset_)
        return Points(x.x - self.offset_)

    @property
    def means_(self) -> FloatArray:
        """The mean of each class, (classes, dimensions)."""
        self._require_fit()
        means: FloatArray = _gaussian(self.core_).means(self.raw_params_["points"]) + self.offset_
        return means

    @property
    def covariances_(self) -> FloatArray:
        """The covariances: (classes, D, D) if full or tied; (classes, D) if diag; (classes,) if
        spherical or identity."""
        self._require_fit()
        return _gaussian(self.core_).covariances(self.raw_params_["points"])

    @property
    def params_(self) -> NamedTables:
        """Weights, means and covariances; can be passed as ``init`` to another fit."""
        names, columns = self._class_names, list(range(self.n_features_in_))
        tables = {
            "weights": np.array(self.weights_),
            "means": self.means_,
            "covariances": self.covariances_,
        }
        axes: dict[str, tuple[Any, ...]] = {"weights": (names,), "means": (names, columns)}
        if tables["covariances"].ndim < 3:
            axes["covariances"] = (names, columns)[: tables["covariances"].ndim]
        return NamedTables(tables, axes)

    def starts(self) -> Mapping[str, Start]:
        return {
            "kmeans": starts.kmeans_of_points,
            "k-means++": starts.kmeans_plus_plus_points,
            "random": starts.random_points,
            "memberships": starts.random_memberships,
        }

    def _read_params(self, core: MixtureCore, corpus: MixtureCorpus, given: Any) -> Any:
        """Read initial parameters: means, weights and covariances, or the core's own tables."""
        if not isinstance(given, Mapping) or "points" in given:
            return super()._read_params(core, corpus, given)
        strange = set(given) - {"weights", "means", "covariances"}
        if strange or "means" not in given:
            raise LearnerError(
                f"init has the tables {', '.join(map(str, given))}",
                "give means, and optionally weights and covariances",
            )
        family = _gaussian(core)
        default = family.uniform()
        centres = reshape_start("means", given["means"], family.means(default).shape) - self.offset_
        params = params_around(core, corpus, centres)
        if "covariances" in given:
            shape = family.covariances(default).shape
            covariances = reshape_start("covariances", given["covariances"], shape)
            params["points"] = family.make_params(centres, covariances)
        if "weights" in given:
            params["weights"] = reshape_start("weights", given["weights"], (1, core.n_classes))
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
        check_gaussian_bounds(table, n)
        return Points(np.zeros((0, n)))

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> MixtureCore:
        core = super().rebuild(stored, given)
        check_invertible(_gaussian(core), stored.arrays[store.TABLE + "points"])
        return core


def _gaussian(core: MixtureCore) -> Gaussian:
    family = core.emission.family
    assert isinstance(family, Gaussian)
    return family


def check_gaussian_bounds(table: FloatArray, n_dims: int) -> None:
    """Raise a `StoreError` if means or precisions are so large that products would overflow."""
    if (np.abs(table[:, :n_dims]) > 2.0 * MAX_VALUE).any() or (
        np.abs(table[:, n_dims:]) > MAX_PRECISION
    ).any():
        raise StoreError("means or precisions of classes are out of bounds", AGAIN)


def check_invertible(family: Gaussian, table: FloatArray) -> None:
    """Raise a `StoreError` if a covariance matrix in a file is not invertible."""
    with np.errstate(all="ignore"):
        covariances = family.covariances(table)
        noise = np.ones((family.n_rows, family.n_dims))
        noise = family.form.whiten(noise, family.precisions(table))
        logs = family.log_density(table, family.means(table))
    if not all(np.isfinite(each).all() for each in (covariances, noise, logs)):
        raise StoreError("covariances of classes cannot be inverted", AGAIN)


class GaussianMixture(GaussianMixtureParameters, PointMixture):
    """A mixture of Gaussians (Dempster, Laird & Rubin 1977).

    p(x) = Σ_k π_k N(x; μ_k, Σ_k).

    ``n_components``  number of classes
    ``covariance``    'full', 'tied' (one full matrix for all), 'diag', 'spherical', or 'identity'
    ``floor``         smallest variance in any direction, as a fraction of the columns' variance
    ``prior``         a normal–inverse-Wishart `NIW` on the scale of the centred data; None: maximum
                      likelihood, or a weak data-dependent prior for learners that need one
    ``init``          'kmeans', 'k-means++', 'random' (points), 'memberships' (every point in a
                      random class), or {"means": …, "covariances": …, "weights": …}
    ``short_runs``    try this many starts with two quick passes each, and continue from the best
    ``learner``, ``engine``, ``random_state``  learning algorithm, where it runs, and its seed

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> model = GaussianMixture(2, covariance="spherical").fit(points)
    >>> sorted(model.means_[:, 0].round(3).tolist())
    [0.1, 5.1]
    """

    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        emission = PointEmission(self.gaussian(x, weights))
        learner = self.default_learner
        return MixtureCore("gaussian mixture", self.weights_family(), emission, learner)

    def weights_family(self) -> Family:
        """Return the family of the class weights."""
        return Categorical((1, self.n_components))

    def gaussian(self, x: Any, weights: FloatArray | None = None) -> Gaussian:
        """Return the Gaussian family; variance floor and prior are on the scale of the data."""
        variance = max_variance = np.ones(x.n_dims)
        if len(x):  # the points are centred, so that mean squares are variances
            variance = max_variance = average(x, weights, np.square)
            # one point may outweigh all others, which can still form a class: so the smallest
            # floor also takes the unweighted variance into account
            if weights is not None:
                counted = weights > 0.0
                squares = sum_parts(x, lambda where, p: np.square(p.x[counted[where]]).sum(axis=0))
                max_variance = np.maximum(variance, squares / counted.sum())
        overall = float(variance.mean())
        # constant columns have no scale of their own
        variance = np.where(
            variance > MIN_SQUARE, variance, overall if overall > MIN_SQUARE else 1.0
        )
        tied = self.covariance == "tied"
        return Gaussian(
            self.n_components,
            x.n_dims,
            "full" if tied else self.covariance,  # type: ignore[arg-type]
            self._prior(variance),
            np.maximum(max(self.floor, MIN_FLOOR) * variance, MIN_FLOOR * max_variance),
            tied=tied,
        )

    def _prior(self, variance: FloatArray) -> NIW | None:
        """Return the prior, by default for Bayesian learners a weak one.

        Weak means: class means within the data, class variances somewhat below those of the data.

        ``variance``  of each column of the data
        """
        if self.prior is None and not self._maximises:
            one_scale = self.covariance in ("spherical", "identity")
            return NIW(scale=float(variance.mean()) if one_scale else variance)
        check_niw(self.prior)
        if self.prior is not None:
            distance = np.abs(np.asarray(self.prior.mean, dtype=np.float64)).max()
            if distance > MAX_PRIOR_DISTANCE * np.sqrt(variance.max()):
                raise LearnerError(
                    f"the prior mean is at {distance:.3g}, but the standard deviation of the data "
                    f"is about {np.sqrt(variance.max()):.3g}",
                    "give the prior on the scale of the centred data, whose mean is zero",
                )
        return self.prior


class KMeans(KMeansParameters, PointMixture):
    """k-means (Lloyd 1957): hard EM for Gaussians of equal weight and one known variance.

    ``init``  'k-means++', 'random' (points), 'memberships' (every point in a random class, as some
              textbooks begin), 'kmeans', or {"means": …}

    The default learner is `HardEM`; the log-likelihood in its trace is the objective, that of
    points and classes together. `transform` returns distances to the centres. After `fit`,
    ``inertia_`` is the weighted sum of squared distances of the points to their centres.

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> round(KMeans(2).fit(points).inertia_, 3)
    0.065
    """

    default_learner = HardEM()

    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        return kmeans_core(self.n_components, x.n_dims)

    def _after_fit(self, corpus: MixtureCorpus) -> None:
        super()._after_fit(corpus)
        means = np.ascontiguousarray(_gaussian(self.core_).means(self.raw_params_["points"]))
        distances = np.empty(len(corpus))
        for where, part in parts_of(corpus.x):
            square_distances(part.x, means, self.labels_[where], distances[where])
        self.inertia_ = float(corpus.known.weights @ distances)

    @as_configured
    def transform(self, X: Any) -> FloatArray:
        """Return the distances to the centres, (items, classes)."""
        return self._rows(self.core_.distances, self._seen(X))


class SoftKMeans(SoftKMeansParameters, PointMixture):
    """Soft k-means: EM for Gaussians of equal weight and one known ``variance``.

    As the variance goes to zero, it approaches k-means.

    >>> points = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]])
    >>> sorted(SoftKMeans(2, variance=0.5).fit(points).means_[:, 0].round(3).tolist())
    [0.1, 5.1]
    """

    def make_core(self, x: Any, weights: FloatArray | None = None) -> MixtureCore:
        return spherical_core(self.n_components, x.n_dims, self.variance)
