"""Categorical rows whose probabilities come from features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import xlogy

from softcount.core.errors import LearnerError
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, Counts, SparseCounts
from softcount.families.base import Family
from softcount.families.rows import check_indptr, log_softmax, row_sums, rows_alike

START_SPREAD = 0.5

Ascent = Literal["lbfgs", "gradient", "converged"]
"""How weights are fitted in an M-step: ten steps of L-BFGS, one step up the gradient, or L-BFGS
until it has converged."""
ENOUGH = 10_000
"""Steps within which L-BFGS converges."""
STEEP = 1e-4
"""A step has to gain this fraction of what the slope at its beginning promises (Armijo)."""


class LogLinear(PickledWithoutCaches, Family):
    """Rows θ_e ∝ exp(w · f(e)), normalised within each row, with w ~ N(0, I / l2).

    ``indptr`` borders the rows as in `SparseCategorical`; ``features`` is a sparse (entries,
    features) matrix. Counts have one number per entry. Parameters are [θ, w] end to end, so that
    whoever reads ``params[:n_entries]`` need not know where the table came from.

    The M-step climbs Σ c log θ(w) − l2/2 ‖w‖² from the old weights, as far as ``ascent`` says:
    "lbfgs", at most ``max_steps`` steps of L-BFGS; "gradient", a single step up the gradient;
    "converged", L-BFGS to the top. The first two are a generalised EM; none lowers the objective
    (Berg-Kirkpatrick et al. 2010, *Painless Unsupervised Learning with Features*).

    >>> import numpy as np, scipy.sparse as sp
    >>> family = LogLinear(np.array([0, 2]), sp.csr_matrix([[1.0], [0.0]]), l2=0.0, max_steps=50)
    >>> fitted = family.maximise(np.array([3., 1.]), family.uniform(), np.random.default_rng(0))
    >>> family.table(fitted).round(3), family.weights(fitted).round(2)
    (array([0.75, 0.25]), array([1.1]))
    """

    def __init__(
        self,
        indptr: Array,
        features: csr_matrix,
        l2: float = 1.0,
        max_steps: int = 10,
        ascent: Ascent = "lbfgs",
    ) -> None:
        self.indptr = check_indptr(indptr)
        self.features = csr_matrix(features, dtype=np.float64)
        self.n_entries, self.n_features = self.features.shape
        if self.n_entries != self.indptr[-1]:
            raise LearnerError(
                f"there are features of {self.n_entries} entries, but the rows have "
                f"{self.indptr[-1]}",
                hint="features needs one line for each entry of the table",
            )
        if not l2 >= 0.0:
            raise LearnerError(f"l2 is {l2}", hint="l2 is the precision of the weights, 0 or more")
        if ascent not in get_args(Ascent):
            raise LearnerError(
                f"ascent is {ascent!r}", hint=f"choose from {', '.join(get_args(Ascent))}"
            )
        self.l2, self.ascent = float(l2), ascent
        self.max_steps = ENOUGH if ascent == "converged" else max_steps
        self.n_free = self.n_features

    @cached_property
    def _transposed(self) -> csr_matrix:
        return self.features.T.tocsr()

    def table(self, params: Array) -> Array:
        """θ, one number per entry."""
        theta: Array = params[: self.n_entries]
        return theta

    def weights(self, params: Array) -> Array:
        """w, one per feature."""
        weights: Array = params[self.n_entries :]
        return weights

    def _log_table(self, weights: Array) -> Array:
        return log_softmax(self.features @ weights, self.indptr)

    def _pack(self, weights: Array) -> Array:
        return np.concatenate([np.exp(self._log_table(weights)), weights])

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.n_entries)

    def uniform(self) -> Array:
        return self._pack(np.zeros(self.n_features))

    def random(self, rng: np.random.Generator) -> Array:
        """Draw normal weights, scaled so that logits have a standard deviation of about a half."""
        size = np.sqrt(self.features.power(2).sum() / max(self.n_entries, 1)) or 1.0
        return self._pack(rng.normal(0.0, START_SPREAD / size, self.n_features))

    # how counts become parameters
    def _loss(self, weights: Array, counts: Array, totals: Array) -> tuple[float, Array]:
        """l2/2 ‖w‖² − Σ c log θ(w), and its gradient l2 w − Fᵀ (c − C θ), C the row's total."""
        logs = self._log_table(weights)
        loss = self.l2 * (weights @ weights) / 2.0 - counts @ logs
        gradient = self.l2 * weights - self._transposed @ (counts - totals * np.exp(logs))
        return float(loss), gradient

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self._climb(counts, old)

    def _climb(self, counts: Counts, old: Array) -> Array:
        return self._step_up(counts, old) if self.ascent == "gradient" else self._lbfgs(counts, old)

    def _step_up(self, counts: Counts, old: Array) -> Array:
        """Take one step up the gradient g, as long as the curvature along it says.

        At w + t g the objective is, to second order, a parabola in t with its top at
        t = ‖g‖² / gᵀHg, where gᵀHg = l2 ‖g‖² + Σ_rows C Var_θ(f · g). Where the parabola promises
        too much, the step is halved until it gains enough.
        """
        given, before = np.asarray(counts, dtype=np.float64), self.weights(old)
        totals = np.repeat(row_sums(given, self.indptr), np.diff(self.indptr))
        loss, gradient = self._loss(before, given, totals)
        slope = float(gradient @ gradient)
        if slope == 0.0:
            return old
        theta, along = self.table(old), self.features @ gradient
        mean = np.repeat(row_sums(theta * along, self.indptr), np.diff(self.indptr))
        curvature = self.l2 * slope + float(totals @ (theta * (along - mean) ** 2))
        size = slope / curvature if curvature > 0.0 else 1.0
        while size * slope > np.finfo(float).eps * abs(loss):
            new = before - size * gradient
            if self._loss(new, given, totals)[0] <= loss - STEEP * size * slope:
                return self._pack(new)
            size /= 2.0
        return old

    def _lbfgs(self, counts: Counts, old: Array) -> Array:
        from scipy.optimize import minimize  # here, as its import costs more than numpy's

        given, before = np.asarray(counts, dtype=np.float64), self.weights(old)
        totals = np.repeat(row_sums(given, self.indptr), np.diff(self.indptr))
        result = minimize(
            self._loss,
            before,
            args=(given, totals),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": self.max_steps},
        )
        # a failed line search may end with a higher loss than it began: then keep the old weights
        better = result.fun <= self._loss(before, given, totals)[0]
        return self._pack(result.x) if better else old

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """As `maximise`: the posterior of the weights is taken to be a point."""
        return self._climb(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """As `maximise`: the posterior of the weights is taken to be a point."""
        return self._climb(counts, old)

    def average(self, draws: Sequence[Array]) -> Array:
        """The rows of the draws' mean weights."""
        return self._pack(self.weights(super().average(draws)))

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """One move of elliptical slice sampling from the old weights (Murray, Adams and MacKay
        2010), which leaves their posterior p(w | c) ∝ N(w; 0, I / l2) Π θ(w)^c as it is.
        """
        if self.l2 == 0.0:
            raise LearnerError(
                "weights without a prior cannot be drawn", hint="give LogLinear an l2 above 0"
            )
        given, current = np.asarray(counts, dtype=np.float64), self.weights(old)
        ellipse = rng.normal(0.0, 1.0 / np.sqrt(self.l2), self.n_features)
        level = self._fit_of(current, given) - rng.standard_exponential()
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while True:
            proposal = current * np.cos(angle) + ellipse * np.sin(angle)
            if self._fit_of(proposal, given) >= level:
                return self._pack(proposal)
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)

    def _fit_of(self, weights: Array, counts: Array) -> float:
        return float(counts @ self._log_table(weights))

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        """−l2/2 ‖w‖²"""
        if self.l2 == 0.0:
            return 0.0
        weights = self.weights(params)
        return float(-self.l2 * (weights @ weights) / 2.0)

    def divergence(self, counts: Counts, params: Array) -> float:
        """l2/2 ‖w‖² at the point estimate: what a posterior that is a point costs, up to a constant
        that is the same for every point. So the bound is the penalised likelihood, and rises as it.
        """
        return -self.log_prior(params)

    def expected_log(self, counts: Counts, params: Array) -> float:
        theta = self.table(params)
        if isinstance(counts, SparseCounts):
            return float(np.sum(xlogy(counts.value, theta[counts.index])))
        return float(np.sum(xlogy(counts, theta)))

    # geometry
    def free(self, params: Array) -> Array:
        return self.weights(params).copy()

    def bound(self, free: Array, like: Array) -> Array:
        return self._pack(free)

    def alike(self, params: Array) -> bool | None:
        rows = np.flatnonzero(np.diff(self.indptr) >= 2)
        return rows_alike(self.table(params), None, self.indptr, rows)
