"""Gaussian rows: means and covariances of one form, with a normal–inverse-Wishart prior.

The forms of a covariance are full, diagonal and spherical, each with its conjugate prior. A matrix
of a form is a flat vector of cells: D·D for full, D variances for diagonal, one variance for
spherical. Functions take any number of them, (…, cells), so callers need not know the form.

The prior of a full precision Λ is Wishart: Λ ~ W(ν, Ψ⁻¹), that is, Σ = Λ⁻¹ ~ IW(ν, Ψ). Each cell λ
of the other forms has the Gamma prior to which this comes down in one dimension:
λ ~ Gamma(ν / 2, rate Ψ / 2). See Murphy 2007, *Conjugate Bayesian analysis of the Gaussian
distribution*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import digamma, gammaln, multigammaln

from softcount.core.errors import LearnerError
from softcount.core.types import Array, Counts
from softcount.families.base import Family
from softcount.kernels.jit import njit

LOG_2 = float(np.log(2.0))
SMALLEST_FLOOR = 1e-300
"""A variance of zero has no inverse."""
BLOCK = 256
"""Number of observations whitened at once: the results should stay in the cache."""
NEGLIGIBLE = 1e-12
"""A weight that changes no second moment by more than rounding does."""
MOST = 0.8
"""Above this fraction of rows it does not pay to select them."""


@njit
def add_product(left: Array, right: Array, offsets: Array, out: Array) -> None:
    """out_ik += left_i right_k + offset_k, in one go."""
    for i in range(len(left)):
        for k in range(len(right)):
            out[i, k] += left[i] * right[k] + offsets[k]


class FullCovariance:
    """Any symmetric positive definite matrix.

    Attributes of every form:

    ``n_cells``  number of stored cells
    ``n_free``   number of free parameters
    ``weight``   degrees of freedom that one observation adds to the posterior
    ``edge``     the power of |Σ|^(−½) in the inverse prior's density beyond ν
    """

    weight = 1

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims
        self.n_cells = n_dims * n_dims
        self.n_free = n_dims * (n_dims + 1) // 2
        self.edge = n_dims + 1

    def _square(self, cells: Array) -> Array:
        return cells.reshape(*cells.shape[:-1], self.n_dims, self.n_dims)

    def _flat(self, squares: Array) -> Array:
        return squares.reshape(*squares.shape[:-2], self.n_cells)

    def read_scale(self, scale: float | Array) -> Array:
        """Convert a prior's scale Ψ to cells."""
        given = np.asarray(scale, dtype=np.float64)
        square = given if given.ndim == 2 else np.eye(self.n_dims) * given
        if square.shape != (self.n_dims, self.n_dims) or np.any(np.linalg.eigvalsh(square) <= 0.0):
            raise LearnerError(
                f"a full covariance needs a positive definite scale of {self.n_dims} dimensions",
                hint="give a matrix, its diagonal, or one number; np.cov of the data is a start",
            )
        return self._flat(square)

    def outer(self, x: Array) -> Array:
        """Return x xᵀ, or the part of it that the form keeps."""
        return self._flat(x[..., :, None] * x[..., None, :])

    def second_moments(self, x: Array, weights: Array, outer: Array | None = None) -> Array:
        """Return Σ_i w_ik x_i x_iᵀ for each column k of ``weights``; ``outer``: x xᵀ if known.

        Rows of negligible weight are skipped: most rows, where classes are well separated.
        """
        moments = []
        for w in weights.T:
            relevant = np.flatnonzero(w > NEGLIGIBLE * w.max(initial=0.0))
            rows = relevant if len(relevant) < len(x) * MOST else slice(None)
            weighted = x[rows] * np.sqrt(w[rows])[:, None]
            moments.append(self._flat(weighted.T @ weighted))
        return np.stack(moments)

    def inverse(self, cells: Array) -> Array:
        inverse = np.linalg.inv(self._square(cells))
        return self._flat((inverse + inverse.swapaxes(-1, -2)) / 2.0)

    def log_det(self, cells: Array) -> Array:
        cholesky = np.linalg.cholesky(self._square(cells))
        diagonal = np.diagonal(cholesky, axis1=-2, axis2=-1)
        logs: Array = 2.0 * np.sum(np.log(diagonal), axis=-1)
        return logs

    def floor(self, cells: Array, floor: Array) -> Array:
        """Return the likeliest covariance C such that C − diag(floor) is positive semi-definite.

        In units of the floor the eigenvalues must be at least one.
        """
        unit = np.sqrt(np.maximum(floor, SMALLEST_FLOOR))
        units = unit[:, None] * unit
        values, vectors = np.linalg.eigh(self._square(cells) / units)
        values = np.maximum(values, 1.0)
        return self._flat((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2) * units)

    def repair(self, cells: Array, least: Array) -> Array:
        """Make matrices positive definite that should be at least ``least`` but for rounding.

        A difference of large sums can be wrong by more than ``least``; eigenvalues are then raised.
        """
        try:
            np.linalg.cholesky(self._square(cells))
        except np.linalg.LinAlgError:
            size = np.abs(cells).max(axis=-1, keepdims=True)
            diagonal = np.diagonal(self._square(least))
            floors = np.maximum(diagonal, NEGLIGIBLE * size)
            return np.stack([self.floor(*each) for each in zip(cells, floors, strict=True)])
        return cells

    def log_density(
        self, x: Array, means: Array, precisions: Array, offsets: Array, outer: Array | None = None
    ) -> Array:
        """Return offset_k − ½ (x_i − m_k)ᵀ P_k (x_i − m_k) for many x and each row k.

        Computed as ½ ‖(x − m)ᵀ L‖² with P = L Lᵀ: one product with all L side by side, in blocks.
        """
        n_rows, n_dims = means.shape
        roots = np.linalg.cholesky(self._square(precisions) / 2.0)
        wide = roots.transpose(1, 0, 2).reshape(n_dims, n_rows * n_dims)
        shift = (means[:, None, :] @ roots).reshape(-1)
        squares = np.empty((len(x), n_rows))
        for start in range(0, len(x), BLOCK):
            white = (x[start : start + BLOCK] @ wide - shift).reshape(-1, n_rows, n_dims)
            np.einsum("nkd,nkd->nk", white, white, out=squares[start : start + BLOCK])
        return np.subtract(offsets, squares, out=squares)

    def whiten(self, noise: Array, precision: Array) -> Array:
        """Transform standard normal noise to have the given precisions, one each."""
        upper = np.linalg.cholesky(self._square(precision)).swapaxes(-1, -2)
        return np.linalg.solve(upper, noise[..., None])[..., 0]

    def _digammas(self, dof: Array) -> Array:
        steps = np.arange(self.n_dims)
        total: Array = np.sum(digamma((np.asarray(dof)[..., None] - steps) / 2.0), axis=-1)
        return total

    def expected_log_det(self, dof: Array, scale: Array) -> Array:
        """E log |Λ| under the prior's kind of distribution."""
        return self._digammas(dof) + self.n_dims * LOG_2 - self.log_det(scale)

    def draw_precision(self, dof: Array, scale: Array, rng: np.random.Generator) -> Array:
        """Draw Λ for each pair (ν, Ψ).

        Bartlett's decomposition: Λ = L A Aᵀ Lᵀ with L Lᵀ = Ψ⁻¹ and A lower triangular.
        """
        steps = np.arange(self.n_dims)
        noise = np.tril(rng.standard_normal((len(dof), self.n_dims, self.n_dims)), -1)
        noise[:, steps, steps] = np.sqrt(rng.chisquare(dof[:, None] - steps))
        root = np.linalg.cholesky(self._square(self.inverse(scale))) @ noise
        return self._flat(root @ root.swapaxes(-1, -2))

    def divergence(self, dof: Array, scale: Array, prior_dof: float, prior_scale: Array) -> Array:
        """KL(posterior of Λ ‖ prior of Λ)."""
        trace = np.sum(prior_scale * self.inverse(scale), axis=-1)
        gammas = multigammaln(prior_dof / 2.0, self.n_dims) - multigammaln(dof / 2.0, self.n_dims)
        shrink = prior_dof * (self.log_det(scale) - self.log_det(prior_scale)) / 2.0
        spread = dof * (trace - self.n_dims) / 2.0
        total: Array = shrink + spread + gammas + (dof - prior_dof) * self._digammas(dof) / 2.0
        return total

    def free(self, precision: Array) -> Array:
        """Unconstrained coordinates: the Cholesky factor's lower triangle, the diagonal in logs."""
        lower = np.linalg.cholesky(self._square(precision))
        steps = np.arange(self.n_dims)
        lower[..., steps, steps] = np.log(lower[..., steps, steps])
        rows, columns = np.tril_indices(self.n_dims)
        return lower[..., rows, columns]

    def bound(self, free: Array) -> Array:
        """Precisions from unconstrained coordinates."""
        lower = np.zeros((*free.shape[:-1], self.n_dims, self.n_dims))
        rows, columns = np.tril_indices(self.n_dims)
        lower[..., rows, columns] = free
        steps = np.arange(self.n_dims)
        lower[..., steps, steps] = np.exp(lower[..., steps, steps])
        return self._flat(lower @ lower.swapaxes(-1, -2))


class DiagonalCovariance:
    """One variance per dimension: each cell is a separate one-dimensional problem.

    Its methods are those of `FullCovariance`.
    """

    weight = 1
    edge = 2
    multiplicity = 1  # how many dimensions a cell stands for

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims
        self.n_cells = self.n_free = n_dims

    def read_scale(self, scale: float | Array) -> Array:
        given = np.asarray(scale, dtype=np.float64)
        if given.shape not in ((), (self.n_cells,)) or np.any(given <= 0.0):
            raise LearnerError(
                f"this covariance needs a positive scale: a number, or {self.n_cells} of them",
                hint="the variance of the data in each dimension is a start",
            )
        return np.full(self.n_cells, given)

    def outer(self, x: Array) -> Array:
        return x * x

    def second_moments(self, x: Array, weights: Array, outer: Array | None = None) -> Array:
        moments: Array = weights.T @ (self.outer(x) if outer is None else outer)
        return moments

    def inverse(self, cells: Array) -> Array:
        return 1.0 / cells

    def log_det(self, cells: Array) -> Array:
        logs: Array = self.multiplicity * np.sum(np.log(cells), axis=-1)
        return logs

    def floor(self, cells: Array, floor: Array) -> Array:
        least = floor if self.n_cells == self.n_dims else floor.mean()
        return np.maximum(cells, np.maximum(least, SMALLEST_FLOOR))

    def repair(self, cells: Array, least: Array) -> Array:
        return np.where(cells > 0.0, cells, least)

    def log_density(
        self, x: Array, means: Array, precisions: Array, offsets: Array, outer: Array | None = None
    ) -> Array:
        """xᵀ P m − ½ xᵀ P x + (offset − ½ mᵀ P m): products of matrices, no differences."""
        logs: Array = x @ (means * precisions).T
        outer = self.outer(x) if outer is None else outer
        own = np.sum(means * means * precisions, axis=1)
        self._add_squares(outer, precisions * -0.5, offsets - own / 2.0, logs)
        return logs

    def _add_squares(self, outer: Array, weights: Array, offsets: Array, out: Array) -> None:
        """out_ik += outer_i · weights_k + offset_k."""
        out += outer @ weights.T
        out += offsets

    def whiten(self, noise: Array, precision: Array) -> Array:
        return noise / np.sqrt(precision)

    def expected_log_det(self, dof: Array, scale: Array) -> Array:
        logs = digamma(np.asarray(dof)[..., None] / 2.0) + LOG_2 - np.log(scale)
        total: Array = self.multiplicity * np.sum(logs, axis=-1)
        return total

    def draw_precision(self, dof: Array, scale: Array, rng: np.random.Generator) -> Array:
        return rng.standard_gamma(np.broadcast_to(dof[:, None] / 2.0, scale.shape)) * 2.0 / scale

    def divergence(self, dof: Array, scale: Array, prior_dof: float, prior_scale: Array) -> Array:
        shape, prior_shape = dof[:, None] / 2.0, prior_dof / 2.0
        gammas = gammaln(prior_shape) - gammaln(shape) + (shape - prior_shape) * digamma(shape)
        shrink = prior_shape * (np.log(scale) - np.log(prior_scale))
        cells: Array = np.sum(gammas + shrink + shape * (prior_scale / scale - 1.0), axis=-1)
        return cells

    def free(self, precision: Array) -> Array:
        return np.log(precision)

    def bound(self, free: Array) -> Array:
        return np.exp(free)


class SphericalCovariance(DiagonalCovariance):
    """One variance for all dimensions: a single cell that stands for all of them."""

    def __init__(self, n_dims: int) -> None:
        super().__init__(n_dims)
        self.n_cells = self.n_free = 1
        self.multiplicity = self.weight = n_dims

    def outer(self, x: Array) -> Array:
        squares: Array = np.sum(x * x, axis=-1, keepdims=True)
        return squares

    def _add_squares(self, outer: Array, weights: Array, offsets: Array, out: Array) -> None:
        add_product(outer[:, 0], weights[:, 0], offsets, out)


CovarianceForm = FullCovariance | DiagonalCovariance
"""Operations on covariances, precisions and scatter matrices of one form."""
Covariance = Literal["full", "diag", "spherical", "identity"]
COVARIANCE_FORMS: dict[str, type[CovarianceForm]] = {
    "full": FullCovariance,
    "diag": DiagonalCovariance,
    "spherical": SphericalCovariance,
    "identity": SphericalCovariance,  # with a known variance
}
LOG_2PI = float(np.log(2.0 * np.pi))
ALIKE = 1e-9


@dataclass(frozen=True, eq=False)
class NIW:
    """Normal–inverse-Wishart prior: Σ ~ IW(dof, scale), μ | Σ ~ N(mean, Σ / kappa).

    For diagonal and spherical covariances it is the normal–inverse-gamma: each variance has the
    prior IG(dof / 2, scale / 2). For identity only mean and kappa count.
    """

    mean: float | Array = 0.0
    kappa: float = 0.01
    dof: float | None = None
    scale: float | Array = 1.0


@dataclass(frozen=True)
class NIWPosterior:
    """A normal–inverse-Wishart for each row; those with a tied covariance share dof and scale."""

    mean: Array
    kappa: Array
    dof: Array
    scale: Array


class Gaussian(Family):
    """Rows of Gaussians in D dimensions.

    Counts are (rows, 1 + D + S): Σ r, Σ r x, and second moments (full Σ r x xᵀ, D·D of them; diag
    D; spherical and identity the one number Σ r ‖x‖²). Parameters are (rows, D + P + 1): the mean,
    the precision (full D·D, diag D, spherical 1, identity none), and a log-normaliser, such that

        log N(x) = lognorm − ½ (x − mean)ᵀ P (x − mean).

    After `mean_field` the same formula gives E[log N(x)] under the posterior (Bishop §10.2).

    ``prior``   an `NIW`; without one `maximise` is maximum likelihood, and the Bayesian updates use
                the weak NIW(mean=0, kappa=.01, dof=D + 2, scale=1), which does not depend on the
                data: pass one on the data's scale
    ``floor``   smallest variance that maximum likelihood may give: a covariance stays above
                diag(floor) in every direction; one number, or one per dimension
    ``tied``    one covariance for all rows
    ``frozen``  rows that keep their values
    ``known``   the variance of an identity covariance

    >>> import numpy as np
    >>> family = Gaussian(1, 2, "diag")
    >>> counts = family.statistics(np.array([[0., 1.], [2., 5.]]), np.ones((2, 1)))
    >>> fitted = family.maximise(counts, family.uniform(), np.random.default_rng(0))
    >>> family.means(fitted), family.covariances(fitted)
    (array([[1., 3.]]), array([[1., 4.]]))
    """

    def __init__(
        self,
        n_rows: int,
        n_dims: int,
        covariance: Covariance = "full",
        prior: NIW | None = None,
        floor: float | Array = 1e-6,
        tied: bool = False,
        frozen: Array | None = None,
        known: float = 1.0,
    ) -> None:
        if covariance not in COVARIANCE_FORMS:
            raise LearnerError(
                f"there is no covariance {covariance!r}",
                hint=f"choose from {', '.join(COVARIANCE_FORMS)} (of a mixture also tied)",
            )
        self.n_rows, self.n_dims = n_rows, n_dims
        self.form = COVARIANCE_FORMS[covariance](n_dims)
        self.known = covariance == "identity"
        self.known_precision = 1.0 / known
        self.floor, self.tied = np.broadcast_to(floor, n_dims), tied
        self.moving = ~np.asarray(np.zeros(n_rows) if frozen is None else frozen, np.bool_)
        if self.moving.shape != (n_rows,):
            raise LearnerError(
                f"frozen has shape {self.moving.shape}, but there are {n_rows} rows",
                hint="give one truth value for each row",
            )
        self.has_prior = prior is not None
        prior = prior or NIW()
        self.kappa = float(prior.kappa)
        self.dof = float(n_dims + 2 if prior.dof is None else prior.dof)
        self.centre = np.full(n_dims, prior.mean, dtype=np.float64)
        self.scale = self.form.read_scale(prior.scale)
        least = n_dims - 1 if isinstance(self.form, FullCovariance) else 0
        if not self.kappa > 0.0 or not self.dof > least:
            raise LearnerError(
                f"the NIW prior has kappa={self.kappa:g} and dof={self.dof:g}",
                hint=f"kappa must be above 0, and dof above {least} for this covariance",
            )
        n_moving = int(np.sum(self.moving))
        n_covariances = 0 if self.known else min(n_moving, 1) if tied else n_moving
        self.n_free = n_moving * n_dims + n_covariances * self.form.n_free

    # reading and writing the arrays
    def means(self, params: Array) -> Array:
        """(rows, D)"""
        means: Array = params[:, : self.n_dims]
        return means

    def precisions(self, params: Array) -> Array:
        """(rows, cells), as `softcount.families.gaussian` lays them out."""
        if self.known:
            return np.full((self.n_rows, 1), self.known_precision)
        cells: Array = params[:, self.n_dims : -1]
        return cells

    def covariances(self, params: Array) -> Array:
        """full (rows, D, D), diag (rows, D), spherical and identity (rows,)"""
        cells = self.form.inverse(self.precisions(params))
        if isinstance(self.form, FullCovariance):
            return cells.reshape(self.n_rows, self.n_dims, self.n_dims)
        return cells[:, 0] if isinstance(self.form, SphericalCovariance) else cells

    def make_params(self, means: Array, covariances: Array) -> Array:
        """Parameters of Gaussians with these means, and covariances as `covariances` shows them."""
        cells = np.asarray(covariances, dtype=np.float64).reshape(self.n_rows, -1)
        return self._pack(means, self.precisions(means) if self.known else self.form.inverse(cells))

    def _pack(self, means: Array, precisions: Array, log_norms: Array | None = None) -> Array:
        """Parameters; without ``log_norms`` those of proper Gaussians."""
        cells = np.broadcast_to(precisions, (self.n_rows, self.form.n_cells))
        if log_norms is None:
            log_norms = (self.form.log_det(cells) - self.n_dims * LOG_2PI) / 2.0
        columns = [means, log_norms[:, None]] if self.known else [means, cells, log_norms[:, None]]
        return np.hstack(columns)

    def statistics(self, x: Array, weights: Array, outer: Array | None = None) -> Array:
        """Counts of observations ``x`` (n, D) that belong to rows by ``weights`` (n, rows).

        ``outer`` is ``form.outer(x)``, if it is known already.
        """
        moments = self.form.second_moments(x, weights, outer)
        return np.hstack([np.sum(weights, axis=0)[:, None], weights.T @ x, moments])

    def log_density(self, params: Array, x: Array, outer: Array | None = None) -> Array:
        """log N(x_i | row k), (n, rows); ``outer`` is ``form.outer(x)``, if it is known already."""
        means, precisions = self.means(params), self.precisions(params)
        return self.form.log_density(x, means, precisions, params[:, -1], outer)

    def move_means(self, params: Array, means: Array) -> Array:
        """The same Gaussians about other means."""
        return np.hstack([means, params[:, self.n_dims :]])

    def _split(self, counts: Counts) -> tuple[Array, Array, Array]:
        table = np.asarray(counts, dtype=np.float64).reshape(self.n_rows, -1)
        return table[:, 0], table[:, 1 : 1 + self.n_dims], table[:, 1 + self.n_dims :]

    def _grouped(self, of_rows: Array) -> Array:
        """Added up over the rows that share a covariance."""
        if not self.tied:
            return of_rows
        total: Array = np.sum(of_rows[self.moving], axis=0, keepdims=True)
        return total

    def _settle(self, new: Array, old: Array) -> Array:
        return np.where(self.moving[:, None], new, old)

    @property
    def param_shape(self) -> tuple[int, ...]:
        return (self.n_rows, self.n_dims + (0 if self.known else self.form.n_cells) + 1)

    @property
    def prior_size(self) -> float:
        return self.n_rows * (self.kappa + self.dof)

    # starts
    def zeros(self) -> Array:
        return np.zeros((self.n_rows, 1 + self.n_dims + self.form.n_cells))

    def _start_precision(self) -> Array:
        # the prior's expected covariance where that exists (for the default prior: identity)
        cells = self.form.inverse(self.scale / max(self.dof - self.n_dims - 1.0, 1.0))
        return np.full((1, 1), self.known_precision) if self.known else cells[None]

    def uniform(self) -> Array:
        return self._pack(np.tile(self.centre, (self.n_rows, 1)), self._start_precision())

    def random(self, rng: np.random.Generator) -> Array:
        """Draw means around the prior's mean, with the prior's expected covariance.

        The family has seen no data: a model that has should rather start from some of its points.
        """
        precisions = self._start_precision()
        noise = rng.standard_normal((self.n_rows, self.n_dims))
        return self._pack(self.centre + self.form.whiten(noise, precisions), precisions)

    # how counts become parameters
    def posterior(self, counts: Counts) -> NIWPosterior:
        """Conjugate update, with x̄ the row's mean and n its weight (Murphy 2007):

        κ_n = κ + n, m_n = (κ m + n x̄) / κ_n, ν_n = ν + n (spherical: ν + n D),
        Ψ_n = Ψ + Σ r (x − x̄)(x − x̄)ᵀ + κ n / κ_n (x̄ − m)(x̄ − m)ᵀ.
        """
        n, first, second = self._split(counts)
        kappa = self.kappa + n
        mean = (self.kappa * self.centre + first) / kappa[:, None]
        centred, scatter = self._scatter(n, first, second)
        pull = (self.kappa * n / kappa)[:, None] * self.form.outer(centred - self.centre)
        dof = self.dof + self.form.weight * self._grouped(n)
        scale = self.form.repair(self.scale + self._grouped(scatter + pull), self.scale)
        return NIWPosterior(mean, kappa, dof, scale)

    def _scatter(self, n: Array, first: Array, second: Array) -> tuple[Array, Array]:
        """Return each row's mean (zero if it is empty), and its second moments about the mean."""
        means = np.divide(first, n[:, None], out=np.zeros_like(first), where=n[:, None] > 0.0)
        return means, second - n[:, None] * self.form.outer(means)

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        if not self.has_prior:
            return self._settle(self._likeliest(counts, old), old)
        posterior = self.posterior(counts)
        if self.known:
            return self._settle(self._pack(posterior.mean, self.precisions(old)), old)
        rows_each = self._grouped(np.ones(self.n_rows))
        dof = posterior.dof + self.form.edge + self.form.weight * rows_each
        precision = self.form.inverse(posterior.scale / dof[:, None])
        return self._settle(self._pack(posterior.mean, precision), old)

    def _likeliest(self, counts: Counts, old: Array) -> Array:
        """Maximum likelihood among covariances above the floor; an empty row keeps ``old``."""
        n, first, second = self._split(counts)
        means, scatter = self._scatter(n, first, second)
        means = np.where(n[:, None] > 0.0, means, self.means(old))
        if self.known:
            return self._pack(means, self.precisions(old))
        weights, scatters = self._grouped(n)[:, None], self._grouped(scatter)
        some = weights > 0.0
        covariance = scatters / (self.form.weight * np.where(some, weights, 1.0))
        fitted = self.form.inverse(self.form.floor(covariance, self.floor))
        return self._pack(means, np.where(some, fitted, self.precisions(old)))

    def _expected_precision(self, posterior: NIWPosterior) -> Array:
        if self.known:
            return np.full((self.n_rows, 1), self.known_precision)
        return posterior.dof[:, None] * self.form.inverse(posterior.scale)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        posterior = self.posterior(counts)
        log_norms = -self.n_dims * (LOG_2PI + 1.0 / posterior.kappa) / 2.0
        if self.known:
            log_norms += self.n_dims * np.log(self.known_precision) / 2.0
        else:
            log_norms += self.form.expected_log_det(posterior.dof, posterior.scale) / 2.0
        new = self._pack(posterior.mean, self._expected_precision(posterior), log_norms)
        return self._settle(new, old)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        posterior = self.posterior(counts)
        precision = self._expected_precision(posterior)
        if not self.known:
            precision = self.form.draw_precision(posterior.dof, posterior.scale, rng)
        noise = rng.standard_normal((self.n_rows, self.n_dims)) / np.sqrt(posterior.kappa)[:, None]
        means = posterior.mean + self.form.whiten(noise, precision)
        return self._settle(self._pack(means, precision), old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """The posterior means of mean and *precision* (that of the covariance may not exist)."""
        posterior = self.posterior(counts)
        new = self._pack(posterior.mean, self._expected_precision(posterior))
        return self._settle(new, old)

    def average(self, draws: Sequence[Array]) -> Array:
        """Proper parameters with the mean of the draws' means and of their precisions."""
        total = super().average(draws)
        return self._pack(self.means(total), self.precisions(total))

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        """log NIW(μ, Σ) up to a constant, over rows that may move; 0 without a prior."""
        if not self.has_prior or not np.any(self.moving):
            return 0.0
        means, cells = self.means(params)[self.moving], self.precisions(params)[self.moving]
        distance = self._distance(means, cells)
        if self.known:
            return float(-self.kappa * np.sum(distance) / 2.0)
        of_means = np.sum(self.form.log_det(cells) - self.kappa * distance)
        shared = cells[:1] if self.tied else cells
        log_det = self.form.log_det(shared) / self.form.weight
        of_shapes = np.sum((self.dof + self.form.edge) * log_det) - np.sum(shared * self.scale)
        return float((of_means + of_shapes) / 2.0)

    def _distance(self, means: Array, cells: Array) -> Array:
        """(m − m_0)ᵀ P (m − m_0) for each row."""
        distances: Array = np.sum(self.form.outer(means - self.centre) * cells, axis=-1)
        return distances

    def divergence(self, counts: Counts, params: Array) -> float:
        """KL(NIW posterior ‖ NIW prior): that of Λ, plus for each row's mean

        ½ [D log(κ_n / κ) + D κ / κ_n − D + κ (m_n − m)ᵀ E[Λ] (m_n − m)].
        """
        posterior = self.posterior(counts)
        distance = self._distance(posterior.mean, self._expected_precision(posterior))
        ratio = self.kappa / posterior.kappa
        of_means = (self.n_dims * (ratio - np.log(ratio) - 1.0) + self.kappa * distance) / 2.0
        total = np.sum(of_means[self.moving])
        if not self.known and np.any(self.moving):
            of_shapes = self.form.divergence(posterior.dof, posterior.scale, self.dof, self.scale)
            total += np.sum(of_shapes if self.tied else of_shapes[self.moving])
        return float(total)

    def expected_log(self, counts: Counts, params: Array) -> float:
        n, first, second = self._split(counts)
        means, cells = self.means(params), self.precisions(params)
        centred, scatter = self._scatter(n, first, second)
        about = scatter + n[:, None] * self.form.outer(centred - means)
        return float(np.sum(n * params[:, -1]) - np.sum(about * cells) / 2.0)

    # geometry
    def free(self, params: Array) -> Array:
        """Means, and logs of precisions (full: of their Cholesky factors' diagonals)."""
        if self.known:
            return self.means(params).reshape(-1)
        return np.hstack([self.means(params), self.form.free(self.precisions(params))]).reshape(-1)

    def bound(self, free: Array, like: Array) -> Array:
        table = free.reshape(self.n_rows, -1)
        cells = self.precisions(like) if self.known else self.form.bound(table[:, self.n_dims :])
        return self._settle(self._pack(table[:, : self.n_dims], cells), like)

    def alike(self, params: Array) -> bool | None:
        rows = params[self.moving, :-1]
        if len(rows) < 2:
            return None
        return bool(np.allclose(rows, rows[0], rtol=ALIKE, atol=ALIKE))
