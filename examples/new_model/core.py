"""The family, the corpus and the E-step of a mixture of Poissons.

p(x, k) = w_k λ_k^x e^{−λ_k} / x!; sufficient statistics of class k are Σ r_ik x_i and Σ r_ik, where
r_ik = p(k | x_i) are the responsibilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, psi, xlogy

from softcount.core.model import Model
from softcount.core.types import (
    Array,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
    Uncounted,
)
from softcount.families import Categorical
from softcount.families.base import Family

Shard = tuple[IntArray, FloatArray]  # the items' numbers and their counts, (items,) each


class PoissonRates(Family):
    """K rates with Gamma(1 + a, a) priors: a pseudo-items of rate 1 in each class.

    Counts are (K, 2): Σ r x and Σ r. Parameters are (K, 2): exp E[log λ] and E[λ]. For a point
    estimate both are λ; under a posterior, as variational Bayes has it, they differ, and the E-step
    needs both: E[log p(x | λ)] = x E[log λ] − E[λ] − log x!.
    """

    def __init__(self, n_components: int, smoothing: float = 0.0) -> None:
        self.n_components, self.smoothing = n_components, smoothing
        self.n_free = n_components

    def _gamma(self, counts: Counts) -> tuple[FloatArray, FloatArray]:
        """Shape and rate of the posterior Gamma."""
        counts = np.asarray(counts)
        return 1.0 + self.smoothing + counts[:, 0], self.smoothing + counts[:, 1]

    def zeros(self) -> Array:
        return np.zeros((self.n_components, 2))

    def uniform(self) -> Array:
        return np.ones((self.n_components, 2))

    def random(self, rng: np.random.Generator) -> Array:
        return np.repeat(rng.gamma(1.0, 1.0, (self.n_components, 1)), 2, axis=1)

    # how counts become parameters
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        shape, rate = self._gamma(counts)
        mode = np.divide(shape - 1.0, rate, out=old[:, 1].copy(), where=rate > 0.0)
        return np.repeat(np.maximum(mode, 1e-300)[:, None], 2, axis=1)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        shape, rate = self._gamma(counts)
        return np.stack([np.exp(psi(shape)) / rate, shape / rate], axis=1)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        shape, rate = self._gamma(counts)
        return np.repeat(rng.gamma(shape, 1.0 / rate)[:, None], 2, axis=1)

    def mean(self, counts: Counts, old: Array) -> Array:
        shape, rate = self._gamma(counts)
        return np.repeat((shape / rate)[:, None], 2, axis=1)

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        return float((xlogy(self.smoothing, params[:, 0]) - self.smoothing * params[:, 1]).sum())

    def divergence(self, counts: Counts, params: Array) -> float:
        """KL(Gamma(A, B) ‖ Gamma(1 + a, a)), summed over classes."""
        (A, B), a, b = self._gamma(counts), 1.0 + self.smoothing, self.smoothing
        terms = (A - a) * psi(A) - gammaln(A) + gammaln(a) + a * np.log(B / b) + A * (b - B) / B
        return float(terms.sum())

    def expected_log(self, counts: Counts, params: Array) -> float:
        counts = np.asarray(counts)
        return float((xlogy(counts[:, 0], params[:, 0]) - counts[:, 1] * params[:, 1]).sum())

    # geometry
    def free(self, params: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(params[:, 1])

    def bound(self, free: Array, like: Array) -> Array:
        return np.repeat(np.exp(free)[:, None], 2, axis=1)

    def alike(self, params: Array) -> bool | None:
        return bool(np.allclose(params, params[:1])) if self.n_components > 1 else None

    def proper(self, values: Array) -> Array:
        return values  # rates need not sum to one


class CountCorpus:
    """Counts, one for each item, in one shard or in shuffled batches."""

    def __init__(self, counts: Sequence[int] | FloatArray) -> None:
        self.counts = np.asarray(counts, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.counts)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> list[Shard]:
        n = len(self)
        order = np.arange(n) if batch_size is None else np.random.default_rng(seed).permutation(n)
        size = batch_size or n
        return [(part, self.counts[part]) for part in np.split(order, range(size, n, size))]

    def name(self, number: int) -> str:
        return f"item {number}"


class PoissonMixtureCore(Model):
    """Families and E-step."""

    name = "PoissonMixture"

    def __init__(self, n_components: int, smoothing: float = 0.0) -> None:
        self.families = {
            "weights": Categorical((1, n_components)),
            "rates": PoissonRates(n_components, smoothing),
        }

    def log_joint(self, params: Params, counts: FloatArray) -> FloatArray:
        """log p(x, k), (items, classes)."""
        rates = params["rates"]
        with np.errstate(divide="ignore"):
            weights = np.log(params["weights"])
        emitted = xlogy(counts[:, None], rates[:, 0]) - rates[:, 1]
        joint: FloatArray = weights + emitted - gammaln(counts + 1.0)[:, None]
        return joint

    def lay_out(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> PosteriorRows:
        """What is hidden: a row per item, a column per class; `e_step` prints it."""
        numbers, counts = shard
        joint = self.log_joint(params, counts)
        if how.fill == "hard":
            return PosteriorRows(np.eye(joint.shape[1])[joint.argmax(axis=1)], numbers)
        tempered = how.temper * joint
        totals = logsumexp(tempered, axis=1, keepdims=True)
        return PosteriorRows(np.exp(tempered - totals), numbers)

    def expect(self, params: Params, shard: Shard, how: EStep, local: Any = None) -> Stats:
        numbers, counts = shard
        joint = self.log_joint(params, counts)
        tempered = logsumexp(how.temper * joint, axis=1)
        posteriors = np.exp(how.temper * joint - tempered[:, None])
        score = float(tempered.sum() / how.temper)
        if how.fill == "hard":
            posteriors = np.eye(joint.shape[1])[joint.argmax(axis=1)]
            score = float(joint.max(axis=1).sum())
        if how.fill == "sample":  # a draw depends on the stream and the item, not on the shard
            draws = [
                np.random.default_rng((how.stream, number)).multinomial(how.samples, row)
                for number, row in zip(numbers.tolist(), posteriors, strict=True)
            ]
            posteriors = np.array(draws) / how.samples
        # x! is in the likelihood, and no family counts it
        factorials = -float(gammaln(counts + 1.0).sum())
        return Stats(
            {
                "weights": posteriors.sum(axis=0, keepdims=True),
                "rates": np.stack([posteriors.T @ counts, posteriors.sum(axis=0)], axis=1),
            },
            log_likelihood=float(logsumexp(joint, axis=1).sum()),
            score=score,
            items=len(counts),
            tokens=len(counts),
            uncounted=Uncounted(factorials, factorials) if how.theory else Uncounted(),
        )
