"""Jumps between places in sentences: one weight a width, normalised within each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from softcount.align.kernels import positions as jump_sums
from softcount.errors import LearnerError
from softcount.families.base import Family
from softcount.families.gammas import SMALLEST, log_gammas
from softcount.types import Array, Counts

INNER, STILL = 50, 1e-10
"""An M-step ends after so many inner steps, or when no weight moves by more than this part."""

RAREST = 1e-200
"""No weight that is not zero sinks below this: Z, a sum of some of them, is divided by."""


class Rows(NamedTuple):
    """Places that can be left: sentence lengths, and where each length's l + 1 rows begin."""

    lengths: Array
    begins: Array

    @classmethod
    def of(cls, lengths: Array) -> Rows:
        different = np.unique(lengths).astype(np.int64)
        return cls(different, np.concatenate([[0], np.cumsum(different + 1)]))

    def __len__(self) -> int:
        return int(self.begins[-1])

    def at(self, lengths: Array) -> Array:
        """Where the rows of these lengths begin."""
        found: Array = self.begins[np.searchsorted(self.lengths, lengths)]
        return found


class JumpTable(Family):
    """p(k | h, l) = w(k − h) / Σ_{k'=1..l} w(k' − h) (Vogel, Ney & Tillmann 1996).

    Parameters are the weights of widths −reach … reach, then those of the first places 1 … reach,
    each part summing to one; a jump farther than ``reach`` has the weight of the last width on its
    side. Counts are those of the widths, of the first places, and of all places left, laid out as
    ``rows`` says.

    The normaliser depends on the length and the place, so that relative frequencies of widths are
    not the best weights. Q = Σ_d c_d log w_d − Σ_r n_r log Z_r(w) is climbed by tangents to the
    logarithm, w_d ← c_d / Σ_{r ∋ d} n_r / Z_r(w), which never lower it (Hunter 2004, *MM algorithms
    for generalized Bradley–Terry models*). Draws follow the same tangents with Gamma variables
    (Caron & Doucet 2012).
    """

    def __init__(self, reach: int, lengths: Array, prior: float = 1.0) -> None:
        if reach < 1:
            raise LearnerError(f"jumps cannot have a reach of {reach}", "give 1 or more")
        if not 0.0 < prior < np.inf:
            raise LearnerError(f"the prior of jumps is {prior}", "give a number above 0")
        self.reach, self.prior = reach, float(prior)
        self.rows = Rows.of(lengths)
        self.n_widths = 2 * reach + 1
        self.n_weights = self.n_widths + reach
        self.n_free = self.n_widths - 1 + reach - 1
        self.longest = int(self.rows.lengths.max(initial=1))

    # between weights and all widths that occur
    @cached_property
    def _bins(self) -> tuple[Array, Array]:
        return bins(self.reach, self.longest)

    def opened(self, params: Array) -> tuple[Array, Array]:
        """w of all widths −longest … longest, and of all first places 0 … longest."""
        widths, starts = self._bins
        return params[widths], params[starts]

    def closed(self, widths: Array, starts: Array) -> Array:
        """The sums of what `opened` spreads out."""
        where = np.concatenate([self._bins[0], self._bins[1][1:]])
        return np.bincount(where, np.concatenate([widths, starts[1:]]), self.n_weights)

    def totals(self, params: Array) -> Array:
        """Z of all rows."""
        widths, starts = self.opened(params)
        out = np.empty(len(self.rows))
        jump_sums.totals(*self.rows, widths, self.longest, starts, out)
        return out

    def _reached(self, shares: Array) -> Array:
        """Σ of the shares of all rows that allow a jump, one a weight."""
        widths, starts = np.zeros(2 * self.longest + 1), np.zeros(self.longest + 1)
        jump_sums.spread(*self.rows, shares, self.longest, widths, starts)
        return self.closed(widths, starts)

    def _split(self, counts: Counts) -> tuple[Array, Array]:
        given = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
        return given[: self.n_weights], given[self.n_weights :]

    def _normal(self, weights: Array) -> Array:
        """Each part scaled to a sum of one."""
        cut = self.n_widths
        return np.concatenate([part / part.sum() for part in (weights[:cut], weights[cut:])])

    @property
    def param_shape(self) -> tuple[int, ...]:
        return (self.n_weights,)

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.n_weights + len(self.rows))

    def uniform(self) -> Array:
        return self._normal(np.ones(self.n_weights))

    def random(self, rng: np.random.Generator) -> Array:
        return self._normal(rng.uniform(0.5, 1.5, self.n_weights))

    # how counts become parameters
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        if self.prior < 1.0:
            raise LearnerError("a prior below 1 has no mode", "use a prior of 1 or more")
        return self._climb(counts, old)

    def _climb(self, counts: Counts, old: Array) -> Array:
        often, left = self._split(counts)
        more = max(self.prior - 1.0, 0.0)
        weights = old
        for _ in range(INNER):
            shares = left / np.maximum(self.totals(weights), 1e-300)
            reached = self._reached(shares)
            # the prior is that of weights which sum to one: as if all were allowed so often
            reached[: self.n_widths] += more * self.n_widths
            reached[self.n_widths :] += more * self.reach
            new = np.divide(often + more, reached, where=reached > 0.0, out=weights.copy())
            new = self._normal(new)
            # what is rarer and rarer must not vanish together with all that it is compared with
            new = np.where((new > 0.0) & (new < RAREST), RAREST, new)
            moved = np.max(np.abs(new - weights) / np.maximum(weights, 1e-300))
            weights = new
            if moved <= STILL:
                break
        return weights if more else self._normal(self._continued(weights))

    def _continued(self, weights: Array) -> Array:
        """Widths that no sentence is long enough for are as likely as the next narrower one."""
        new, middle, cut = weights.copy(), self.reach, self.n_widths
        widths, places = np.arange(cut) - middle, np.arange(1, self.reach + 1)
        possible = np.append(np.abs(widths) < self.longest, places <= self.longest)
        for outward in (
            range(middle + 1, cut),
            range(middle - 1, -1, -1),
            range(cut + 1, len(weights)),
        ):
            before = outward.start - outward.step
            for d in outward:
                if not possible[d]:
                    new[d] = new[before]
                before = d
        return new

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """As `maximise`: the posterior of the weights is taken to be a point."""
        return self._climb(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """As `maximise`: the posterior of the weights is taken to be a point."""
        return self._climb(counts, old)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """One Gibbs step: u_r ~ Gamma(n_r, Z_r(w)), then w_d ~ Gamma(α + c_d, 1 + Σ_{r ∋ d} u_r).

        The weights' scale says nothing, so that Gamma(α, 1) priors are a Dirichlet prior of the
        weights that sum to one. With a small α some numbers are too small: see `_drawn_as_logs`.
        """
        often, left = self._split(counts)
        sizes = np.array([self.n_widths, self.reach])
        scales = rng.standard_gamma(self.prior * sizes)
        passed = rng.standard_gamma(left)
        drawn = rng.standard_gamma(self.prior + often)
        if scales.min() >= SMALLEST and drawn.min() >= SMALLEST:
            shares = passed / np.maximum(self.totals(old * np.repeat(scales, sizes)), SMALLEST)
            weights = drawn / (1.0 + self._reached(shares))
            if weights.min() >= SMALLEST:
                return self._normal(weights)
        of_scales = np.repeat(log_gammas(scales, self.prior * sizes, rng), sizes)
        of_drawn = log_gammas(drawn, self.prior + often, rng)
        return self._drawn_as_logs(of_scales, passed, of_drawn, old)

    def _drawn_as_logs(self, scales: Array, passed: Array, drawn: Array, old: Array) -> Array:
        """The same step in logarithms: log w_d = log G_d − log(s + Σ_{r ∋ d} g_r / Z_r(old)).

        With s the scale of the old weights and u_r = g_r / (s Z_r(old)) that is w_d / s, and w is
        normalised in any case.
        """
        reached = self._reached(passed / np.maximum(self.totals(old), SMALLEST))
        with np.errstate(divide="ignore"):  # the log of 0, where no row allows a jump
            logs = drawn - np.logaddexp(scales, np.log(reached))
        return self._normal(np.maximum(self.bound(logs, old), SMALLEST))

    def average(self, draws: Sequence[Array]) -> Array:
        return self._normal(super().average(draws))

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        if self.prior == 1.0:
            return 0.0
        return (self.prior - 1.0) * float(np.sum(np.log(np.maximum(params, SMALLEST))))

    def divergence(self, counts: Counts, params: Array) -> float:
        """What a posterior that is a point costs, up to a constant."""
        return -max(self.prior - 1.0, 0.0) * float(np.sum(np.log(np.maximum(params, SMALLEST))))

    def expected_log(self, counts: Counts, params: Array) -> float:
        often, left = self._split(counts)
        return float(np.sum(xlogy(often, params)) - np.sum(xlogy(left, self.totals(params))))

    # geometry
    def free(self, params: Array) -> Array:
        with np.errstate(divide="ignore"):
            logs: Array = np.log(params)
        return logs

    def bound(self, free: Array, like: Array) -> Array:
        cut = self.n_widths
        parts = (free[:cut], free[cut:])
        return self._normal(np.concatenate([np.exp(part - part.max()) for part in parts]))

    def alike(self, params: Array) -> bool | None:
        return None


def bins(reach: int, longest: int) -> tuple[Array, Array]:
    """The weight of every width −longest … longest, and of every first place 0 … longest."""
    widths = np.clip(np.arange(-longest, longest + 1), -reach, reach) + reach
    starts = 2 * reach + np.clip(np.arange(longest + 1), 1, reach)
    return widths, starts
