"""Weights of a truncated Dirichlet process: pieces broken off a stick, one after the other."""

from __future__ import annotations

import math

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import Array, Counts
from softcount.families.categorical import SMALLEST, Categorical


class StickBreaking(Categorical):
    """One row of T weights, with as many of them in use as the data ask for.

    Piece k takes the part v_k of what is left of the stick, and the last piece takes the rest:

        v_k ~ Beta(1, a) for k < T − 1,   v_{T−1} = 1,   π_k = v_k Π_{j<k} (1 − v_j)

    (Sethuraman 1994; truncated: Ishwaran & James 2001). Given counts n the parts stay independent,

        v_k | n ~ Beta(1 + n_k, a + Σ_{j>k} n_j),

    so that `draw`, `mean`, `mean_field` and `divergence` are products or sums over T − 1 Betas
    (Blei & Jordan 2006). The *mode* is that of the density of v, not of π. As
    Π_{k<T−1} (1 − v_k) = π_{T−1}, its logarithm is (a − 1) log π_{T−1} and a constant: the last
    piece gets a − 1 counts more, and a = 1 is maximum likelihood. Below 1 the density is unbounded
    where the last piece vanishes, and `maximise` refuses.

    ``n_outcomes``     T, the most classes there can be
    ``concentration``  a > 0: the larger, the more classes (about a log n of them for n items)

    Order matters: the prior expects each piece to be smaller than the one before. Variational Bayes
    attains a better bound if classes are sorted by their counts, largest first (Kurihara, Welling &
    Teh 2007); that is for the model to do, as all its tables must be sorted alike.

    >>> import numpy as np
    >>> stick = StickBreaking(3, concentration=1.0)
    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([[6., 2., 0.]])
    >>> stick.maximise(counts, stick.uniform(), rng)
    array([[0.75, 0.25, 0.  ]])
    >>> stick.mean(counts, stick.uniform())
    array([[0.7  , 0.225, 0.075]])
    """

    def __init__(self, n_outcomes: int, concentration: float = 1.0) -> None:
        if not n_outcomes >= 1 or n_outcomes % 1:
            raise LearnerError(
                f"a stick cannot be broken into {n_outcomes} pieces",
                hint="n_outcomes is the most classes there can be: a whole number, at least 1",
            )
        if not 0.0 < concentration < math.inf:
            raise LearnerError(
                f"concentration={concentration} must be positive and finite",
                hint="1 is usual; the larger, the more classes",
            )
        pieces = int(n_outcomes)
        self.concentration = float(concentration)
        prior = np.ones((1, pieces))
        prior[0, -1] = concentration  # the density of v, as a power of the last weight
        super().__init__((1, pieces), prior=prior)
        self._breaks = Categorical((pieces - 1, 2), np.tile([1.0, concentration], (pieces - 1, 1)))

    @property
    def prior_size(self) -> float:
        return self._breaks.prior_size

    def _break_counts(self, counts: Counts) -> Array:
        """How often each break was chosen, and how often it was passed by."""
        given = self._pooled(counts)
        from_here = np.cumsum(given[::-1])[::-1]
        return np.column_stack((given[:-1], from_here[1:]))

    def _pieces(self, breaks: Array) -> Array:
        """The weights that come of rows (v, 1 − v), or of what stands for them."""
        left = np.cumprod(np.append(1.0, breaks[:, 1]))
        weights: Array = left * np.append(breaks[:, 0], 1.0)
        return weights.reshape(self.shape)

    # how counts become parameters; the Betas never need their old values
    def require_mode(self) -> None:
        if not self.has_mode:
            raise LearnerError(
                f"with concentration={self.concentration}, below 1, the weights have no mode, so "
                "there is nothing to maximise",
                hint="use VariationalBayes or Gibbs, or concentration ≥ 1",
            )

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """exp E[log π_k] = exp(E[log v_k] + Σ_{j<k} E[log (1 − v_j)])."""
        given = self._break_counts(counts)
        return self._pieces(self._breaks.mean_field(given, given, rng))

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        given = self._break_counts(counts)
        return np.maximum(self._pieces(self._breaks.draw(given, given, rng)), SMALLEST)

    def mean(self, counts: Counts, old: Array) -> Array:
        """E[π_k] = E[v_k] Π_{j<k} E[1 − v_j], as the parts are independent."""
        given = self._break_counts(counts)
        return self._pieces(self._breaks.mean(given, given))

    def divergence(self, counts: Counts, params: Array) -> float:
        """Σ_k KL(Beta(1 + n_k, a + Σ_{j>k} n_j) ‖ Beta(1, a))."""
        given = self._break_counts(counts)
        return self._breaks.divergence(given, given)
