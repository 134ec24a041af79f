"""Forms a covariance can take, each with its conjugate prior: full, diagonal, spherical.

A matrix of a form is a flat vector of cells: D·D for full, D variances for diagonal, one variance
for spherical. Functions take any number of them, (…, cells), so callers need not know the form.

The prior of a full precision Λ is Wishart: Λ ~ W(ν, Ψ⁻¹), that is, Σ = Λ⁻¹ ~ IW(ν, Ψ).
Each cell λ of the other forms has the Gamma prior to which this comes down in one dimension:
λ ~ Gamma(ν / 2, rate Ψ / 2). See Murphy 2007, *Conjugate Bayesian analysis of the Gaussian
distribution*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import digamma, gammaln, multigammaln

from softcount.errors import LearnerError
from softcount.kernels.jit import njit
from softcount.types import Array

LOG_2 = float(np.log(2.0))
SMALLEST_FLOOR = 1e-300
"""A variance of zero has no inverse."""
BLOCK = 256
"""Observations whitened at once: what they give should stay in the cache."""
NEGLIGIBLE = 1e-12
"""A weight that changes no second moment by more than rounding does."""
MOST = 0.8
"""The share of rows from which on it does not pay to pick them."""


@njit
def add_product(left: Array, right: Array, offsets: Array, out: Array) -> None:
    """out_ik += left_i right_k + offset_k, in one go."""
    for i in range(len(left)):
        for k in range(len(right)):
            out[i, k] += left[i] * right[k] + offsets[k]


class Form(ABC):
    """What can be done with covariances, precisions and scatters of one form.

    ``n_cells``  numbers that are stored
    ``n_free``   numbers that are free
    ``weight``   degrees of freedom that one observation adds to the posterior
    ``edge``     the power of |Σ|^(−½) in the inverse prior's density beyond ν
    """

    n_cells: int
    n_free: int
    weight: int
    edge: int

    def __init__(self, n_dims: int) -> None:
        self.n_dims = n_dims

    @abstractmethod
    def read_scale(self, scale: float | Array) -> Array:
        """A prior's scale Ψ as cells."""

    @abstractmethod
    def outer(self, x: Array) -> Array:
        """x xᵀ, or what the form keeps of it."""

    @abstractmethod
    def second_moments(self, x: Array, weights: Array, outer: Array | None = None) -> Array:
        """Σ_i w_ik x_i x_iᵀ for each column k of ``weights``; ``outer``: x xᵀ if known."""

    @abstractmethod
    def inverse(self, cells: Array) -> Array: ...

    @abstractmethod
    def log_det(self, cells: Array) -> Array: ...

    @abstractmethod
    def floored(self, cells: Array, floor: Array) -> Array:
        """The likeliest covariance C for which C − diag(floor) has no negative eigenvalue."""

    @abstractmethod
    def mended(self, cells: Array, least: Array) -> Array:
        """The matrices, which are ``least`` and something more, if rounding has left them so.

        A difference of large sums can be off by more than ``least``: then it is made positive.
        """

    @abstractmethod
    def log_density(
        self, x: Array, means: Array, precisions: Array, offsets: Array, outer: Array | None = None
    ) -> Array:
        """offset_k − ½ (x_i − m_k)ᵀ P_k (x_i − m_k) for many x and each row k."""

    @abstractmethod
    def whitened(self, noise: Array, precision: Array) -> Array:
        """Standard normal noise made to have the given precisions, one each."""

    @abstractmethod
    def expected_log_det(self, dof: Array, scale: Array) -> Array:
        """E log |Λ| under the prior's kind of distribution."""

    @abstractmethod
    def draw_precision(self, dof: Array, scale: Array, rng: np.random.Generator) -> Array:
        """A draw of Λ for each pair (ν, Ψ)."""

    @abstractmethod
    def divergence(self, dof: Array, scale: Array, prior_dof: float, prior_scale: Array) -> Array:
        """KL(posterior of Λ ‖ prior of Λ)."""

    @abstractmethod
    def free(self, precision: Array) -> Array:
        """Unconstrained coordinates."""

    @abstractmethod
    def bound(self, free: Array) -> Array:
        """Precisions from unconstrained coordinates."""


class Full(Form):
    """Any symmetric positive definite matrix."""

    weight = 1

    def __init__(self, n_dims: int) -> None:
        super().__init__(n_dims)
        self.n_cells = n_dims * n_dims
        self.n_free = n_dims * (n_dims + 1) // 2
        self.edge = n_dims + 1

    def _square(self, cells: Array) -> Array:
        return cells.reshape(*cells.shape[:-1], self.n_dims, self.n_dims)

    def _flat(self, squares: Array) -> Array:
        return squares.reshape(*squares.shape[:-2], self.n_cells)

    def read_scale(self, scale: float | Array) -> Array:
        given = np.asarray(scale, dtype=np.float64)
        square = given if given.ndim == 2 else np.eye(self.n_dims) * given
        if square.shape != (self.n_dims, self.n_dims) or np.any(np.linalg.eigvalsh(square) <= 0.0):
            raise LearnerError(
                f"a full covariance needs a positive definite scale of {self.n_dims} dimensions",
                hint="give a matrix, its diagonal, or one number; np.cov of the data is a start",
            )
        return self._flat(square)

    def outer(self, x: Array) -> Array:
        return self._flat(x[..., :, None] * x[..., None, :])

    def second_moments(self, x: Array, weights: Array, outer: Array | None = None) -> Array:
        return np.stack([self._moments(x, w) for w in weights.T])

    def _moments(self, x: Array, w: Array) -> Array:
        """Rows of next to no weight are left out: most, where classes are well apart."""
        some = np.flatnonzero(w > NEGLIGIBLE * w.max(initial=0.0))
        if len(some) < len(x) * MOST:
            x, w = x[some], w[some]
        rooted = x * np.sqrt(w)[:, None]
        return self._flat(rooted.T @ rooted)

    def inverse(self, cells: Array) -> Array:
        inverse = np.linalg.inv(self._square(cells))
        return self._flat((inverse + inverse.swapaxes(-1, -2)) / 2.0)

    def log_det(self, cells: Array) -> Array:
        cholesky = np.linalg.cholesky(self._square(cells))
        diagonal = np.diagonal(cholesky, axis1=-2, axis2=-1)
        logs: Array = 2.0 * np.sum(np.log(diagonal), axis=-1)
        return logs

    def floored(self, cells: Array, floor: Array) -> Array:
        """In units of the floor the eigenvalues must be at least one."""
        unit = np.sqrt(np.maximum(floor, SMALLEST_FLOOR))
        units = unit[:, None] * unit
        values, vectors = np.linalg.eigh(self._square(cells) / units)
        values = np.maximum(values, 1.0)
        return self._flat((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2) * units)

    def mended(self, cells: Array, least: Array) -> Array:
        try:
            np.linalg.cholesky(self._square(cells))
        except np.linalg.LinAlgError:
            size = np.abs(cells).max(axis=-1, keepdims=True)
            diagonal = np.diagonal(self._square(least))
            floors = np.maximum(diagonal, NEGLIGIBLE * size)
            return np.stack([self.floored(*each) for each in zip(cells, floors, strict=True)])
        return cells

    def log_density(
        self, x: Array, means: Array, precisions: Array, offsets: Array, outer: Array | None = None
    ) -> Array:
        """½ ‖(x − m)ᵀ L‖² with P = L Lᵀ: one product with all the L side by side, in blocks."""
        n_rows, n_dims = means.shape
        roots = np.linalg.cholesky(self._square(precisions) / 2.0)
        wide = roots.transpose(1, 0, 2).reshape(n_dims, n_rows * n_dims)
        shift = (means[:, None, :] @ roots).reshape(-1)
        squares = np.empty((len(x), n_rows))
        for start in range(0, len(x), BLOCK):
            white = (x[start : start + BLOCK] @ wide - shift).reshape(-1, n_rows, n_dims)
            np.einsum("nkd,nkd->nk", white, white, out=squares[start : start + BLOCK])
        return np.subtract(offsets, squares, out=squares)

    def whitened(self, noise: Array, precision: Array) -> Array:
        upper = np.linalg.cholesky(self._square(precision)).swapaxes(-1, -2)
        return np.linalg.solve(upper, noise[..., None])[..., 0]

    def _digammas(self, dof: Array) -> Array:
        steps = np.arange(self.n_dims)
        total: Array = np.sum(digamma((np.asarray(dof)[..., None] - steps) / 2.0), axis=-1)
        return total

    def expected_log_det(self, dof: Array, scale: Array) -> Array:
        return self._digammas(dof) + self.n_dims * LOG_2 - self.log_det(scale)

    def draw_precision(self, dof: Array, scale: Array, rng: np.random.Generator) -> Array:
        """Bartlett's decomposition: Λ = L A Aᵀ Lᵀ with L Lᵀ = Ψ⁻¹ and A lower triangular."""
        steps = np.arange(self.n_dims)
        noise = np.tril(rng.standard_normal((len(dof), self.n_dims, self.n_dims)), -1)
        noise[:, steps, steps] = np.sqrt(rng.chisquare(dof[:, None] - steps))
        root = np.linalg.cholesky(self._square(self.inverse(scale))) @ noise
        return self._flat(root @ root.swapaxes(-1, -2))

    def divergence(self, dof: Array, scale: Array, prior_dof: float, prior_scale: Array) -> Array:
        trace = np.sum(prior_scale * self.inverse(scale), axis=-1)
        gammas = multigammaln(prior_dof / 2.0, self.n_dims) - multigammaln(dof / 2.0, self.n_dims)
        shrink = prior_dof * (self.log_det(scale) - self.log_det(prior_scale)) / 2.0
        spread = dof * (trace - self.n_dims) / 2.0
        total: Array = shrink + spread + gammas + (dof - prior_dof) * self._digammas(dof) / 2.0
        return total

    def free(self, precision: Array) -> Array:
        """The Cholesky factor's lower triangle, the diagonal in logs."""
        lower = np.linalg.cholesky(self._square(precision))
        steps = np.arange(self.n_dims)
        lower[..., steps, steps] = np.log(lower[..., steps, steps])
        rows, columns = np.tril_indices(self.n_dims)
        return lower[..., rows, columns]

    def bound(self, free: Array) -> Array:
        lower = np.zeros((*free.shape[:-1], self.n_dims, self.n_dims))
        rows, columns = np.tril_indices(self.n_dims)
        lower[..., rows, columns] = free
        steps = np.arange(self.n_dims)
        lower[..., steps, steps] = np.exp(lower[..., steps, steps])
        return self._flat(lower @ lower.swapaxes(-1, -2))


class Diagonal(Form):
    """One variance a dimension. Each cell is a one-dimensional problem of its own."""

    weight = 1
    edge = 2
    multiplicity = 1  # how many dimensions a cell stands for

    def __init__(self, n_dims: int) -> None:
        super().__init__(n_dims)
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

    def floored(self, cells: Array, floor: Array) -> Array:
        least = floor if self.n_cells == self.n_dims else floor.mean()
        return np.maximum(cells, np.maximum(least, SMALLEST_FLOOR))

    def mended(self, cells: Array, least: Array) -> Array:
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

    def whitened(self, noise: Array, precision: Array) -> Array:
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


class Spherical(Diagonal):
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
