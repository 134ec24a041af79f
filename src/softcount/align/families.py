"""The families of distributions that only alignment models have.

`StemTable`          translations t(f | e), words of one stem helping each other
`DiagonalTension`    how near to the diagonal links lie: one number (Dyer et al. 2013)
`JumpTable`          jumps between source positions, by their width (Vogel et al. 1996)
`WithPast`           any family, with counts of pairs seen before added to all that it counts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.align import kernels
from softcount.align.kernels import JumpRows, SentenceShapes
from softcount.core.errors import LearnerError
from softcount.core.types import Array, Counts, FloatArray, IntArray
from softcount.families.base import CountAverage, Family
from softcount.families.categorical import SMALLEST, log_gammas
from softcount.families.large import LargeTable
from softcount.kernels.jit import njit

# Translations


@dataclass(frozen=True, eq=False)
class Stems:
    """Stems of words.

    ``sources``    (source words + 1,) the stem of each; the empty word, which is last, has its own
    ``targets``    (target words,) the stem of each
    ``shares``     (target words,) p(word | its stem)
    ``strength``   how many counts each source word is lent
    ``smoothing``  added to all counts of stems
    """

    sources: IntArray
    targets: IntArray
    shares: FloatArray
    strength: float
    smoothing: float

    @classmethod
    def of(
        cls,
        sources: Sequence[str],
        targets: Sequence[str],
        target_counts: IntArray,
        letters: int,
        strength: float,
        smoothing: float,
    ) -> Stems:
        """Words with the same first letters have one stem; ``target_counts``: how often they occur.

        >>> counts = np.array([3, 1, 1])
        >>> stems = Stems.of(["house"], ["haus", "hausen", "hof"], counts, 4, 5.0, 0.1)
        >>> stems.targets.tolist(), stems.shares.tolist()
        ([0, 0, 1], [0.75, 0.25, 1.0])
        """

        def number(words: Sequence[str]) -> IntArray:
            numbers: dict[str, int] = {}
            stems = [numbers.setdefault(word[:letters], len(numbers)) for word in words]
            return np.array(stems, np.int64)

        here = number(sources)
        here = np.append(here, here.max(initial=-1) + 1)
        there = number(targets)
        shares = target_counts / np.maximum(np.bincount(there, target_counts), 1.0)[there]
        return cls(here, there, shares, strength, smoothing)


class StemTable(LargeTable):
    """A `LargeTable` whose M-steps see more counts than there are.

    c(f, e) + A · T(s(f) | s(e)) · p(f | s(f)): T is the same table for stems, s a word's stem. Rare
    words are known by their relatives. The objective does not know of it, and may fall.
    """

    def __init__(self, *given: Any, stems: Stems, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.stems = stems
        self._members = np.argsort(stems.sources, kind="stable")
        numbers = np.arange(stems.sources.max(initial=-1) + 2)
        self._begins = np.searchsorted(stems.sources[self._members], numbers)

    def _each(self, word: str, counts: Counts, old: Array, *more: Any) -> Array:
        stems, given = self.stems, np.asarray(counts)
        own = (stems.targets, stems.shares, float(stems.strength), float(stems.smoothing))
        rows = (self._members, self._begins, self.indptr, self.outcomes)
        lent = np.empty(len(given))
        lend_counts(*rows, own, given, lent)
        return super()._each(word, lent, old, *more)

    def running(self) -> CountAverage:
        # what is lent depends on all counts: they cannot be left for later
        return CountAverage(self)


@njit
def lend_counts(
    members: IntArray,
    begins: IntArray,
    indptr: IntArray,
    targets: IntArray,
    stems: tuple[IntArray, FloatArray, float, float],
    counts: FloatArray,
    out: FloatArray,
) -> None:
    """``out`` ← counts + strength · T(f's stem | e's stem) · p(f | its stem).

    Group g of source words, of one stem, has ``members[begins[g]:begins[g + 1]]``. T comes from the
    counts of all of them, smoothed. ``stems`` are the target words' stems, p(f | its stem), the
    strength and the smoothing.
    """
    target_stems, shares, strength, smoothing = stems
    n_stems = target_stems.max() + 1 if len(target_stems) else 0
    mass = np.zeros(n_stems)
    seen = np.zeros(n_stems, np.bool_)
    for g in range(len(begins) - 1):
        rows = members[begins[g] : begins[g + 1]]
        total = 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] += counts[k]
                total += counts[k]
                if not seen[stem]:
                    seen[stem] = True
                    mass[stem] += smoothing
                    total += smoothing
        scale = strength / total if total > 0.0 else 0.0
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                f = targets[k]
                out[k] = counts[k] + scale * mass[target_stems[f]] * shares[f]
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                stem = target_stems[targets[k]]
                mass[stem] = 0.0
                seen[stem] = False


# Positions near the diagonal

LOWEST, HIGHEST = 0.0, 100.0
"""Between these the tension is kept."""
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-12
"""Newton's method ends after this many steps, or when λ moves by no more than this."""


class DiagonalTension(Family):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|): λ alone is learned.

    Parameters are [λ]; counts have one number for every cell of every shape. The best λ is found by
    Newton's method: the objective is concave in it. It is kept between 0 and 100.
    """

    def __init__(self, shapes: SentenceShapes) -> None:
        self.shapes, self.n_free = shapes, 1

    def _summarise(self, counts: Counts) -> tuple[float, FloatArray]:
        """Σ c h, and how often each target position comes from a word at all."""
        return kernels.summarise(self.shapes, np.asarray(counts, dtype=np.float64))

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.shapes.n_cells)

    def uniform(self) -> Array:
        return np.zeros(1)

    def random(self, rng: np.random.Generator) -> Array:
        return rng.uniform(1.0, 7.0, 1)

    # how counts become parameters
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.mean(counts, old)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.mean(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """The mode, for the posterior of the tension is taken to be a point.

        Newton's method; where it would leave what brackets the best λ, it halves that.
        """
        wanted, often = self._summarise(counts)
        low, high, tension = LOWEST, HIGHEST, float(old[0])
        if kernels.moments(self.shapes, often, LOWEST)[2] == 0.0:
            return old  # nothing was counted, or there is nowhere else to be
        for _ in range(NEWTON_STEPS):
            _, mean, variance = kernels.moments(self.shapes, often, tension)
            slope = wanted - mean
            low, high = (tension, high) if slope > 0.0 else (low, tension)
            step = tension + slope / variance if variance > 0.0 else low
            new = step if low <= step <= high else (low + high) / 2.0
            still = abs(new - tension) <= NEWTON_TOLERANCE * max(1.0, tension)
            tension = new
            if still:
                break
        return np.array([tension])

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """One move of slice sampling (Neal 2003) from the old tension, under a flat prior."""
        wanted, often = self._summarise(counts)

        def log_density(tension: float) -> float:
            return tension * wanted - kernels.moments(self.shapes, often, tension)[0]

        current = float(old[0])
        level = log_density(current) - rng.standard_exponential()
        low, high = LOWEST, HIGHEST
        while True:
            proposal = rng.uniform(low, high)
            if log_density(proposal) >= level:
                return np.array([proposal])
            low, high = (proposal, high) if proposal < current else (low, proposal)

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        return 0.0

    def divergence(self, counts: Counts, params: Array) -> float:
        return 0.0

    def expected_log(self, counts: Counts, params: Array) -> float:
        wanted, often = self._summarise(counts)
        return float(params[0]) * wanted - kernels.moments(self.shapes, often, float(params[0]))[0]

    # geometry
    def free(self, params: Array) -> Array:
        return np.array(params, dtype=np.float64)

    def bound(self, free: Array, like: Array) -> Array:
        return np.clip(free, LOWEST, HIGHEST)

    def sound(self, values: Array) -> bool:
        return bool((values >= LOWEST).all())

    def alike(self, params: Array) -> bool | None:
        return None


# Jumps between positions

INNER_STEPS, INNER_TOLERANCE = 50, 1e-10
"""An M-step ends after this many inner steps, or when no weight moves by more than this part."""

RAREST = 1e-200
"""No weight that is not zero sinks below this: Z, a sum of some of them, is divided by."""


class JumpTable(Family):
    """p(k | h, l) = w(k − h) / Σ_{k'=1..l} w(k' − h) (Vogel, Ney & Tillmann 1996).

    Parameters are the weights of widths −reach … reach, then those of the first positions
    1 … reach, each part summing to one; a jump farther than ``reach`` has the weight of the last
    width on its side. Counts are those of the widths, of the first positions, and of all positions
    left, laid out as ``rows`` says.

    The normaliser depends on the length and position, so that relative frequencies of widths are
    not the best weights. Q = Σ_d c_d log w_d − Σ_r n_r log Z_r(w) is climbed by tangents to the
    logarithm, w_d ← c_d / Σ_{r ∋ d} n_r / Z_r(w), which never lower it (Hunter 2004, *MM algorithms
    for generalized Bradley–Terry models*). Draws follow the same tangents with Gamma variables
    (Caron & Doucet 2012).
    """

    def __init__(self, reach: int, lengths: IntArray, prior: float = 1.0) -> None:
        self.reach, self.prior = reach, float(prior)
        self.rows = JumpRows.of(lengths)
        self.n_widths = 2 * reach + 1
        self.n_weights = self.n_widths + reach
        self.n_free = self.n_widths - 1 + reach - 1
        self.longest = int(self.rows.lengths.max(initial=1))

    # between weights and all widths that occur
    @cached_property
    def _bins(self) -> tuple[IntArray, IntArray]:
        """The weight of every width −longest … longest, and of every first position 0 … longest."""
        widths = np.clip(np.arange(-self.longest, self.longest + 1), -self.reach, self.reach)
        starts = np.clip(np.arange(self.longest + 1), 1, self.reach)
        return widths + self.reach, 2 * self.reach + starts

    def spread_weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """w of all widths −longest … longest, and of all first positions 0 … longest."""
        widths, starts = self._bins
        return params[widths], params[starts]

    def collect_weights(self, widths: FloatArray, starts: FloatArray) -> FloatArray:
        """The sums of what `spread_weights` spreads out."""
        where = np.concatenate([self._bins[0], self._bins[1][1:]])
        sums = np.bincount(where, np.concatenate([widths, starts[1:]]), self.n_weights)
        return sums.astype(np.float64, copy=False)

    def totals(self, params: FloatArray) -> FloatArray:
        """Z of all rows."""
        widths, starts = self.spread_weights(params)
        return kernels.sum_jumps(self.rows, widths, self.longest, starts)

    def _sum_exposure(self, shares: FloatArray) -> FloatArray:
        """Σ of the shares of all rows that allow a jump, one a weight."""
        return self.collect_weights(*kernels.spread_over_jumps(self.rows, shares, self.longest))

    def _split(self, counts: Counts) -> tuple[FloatArray, FloatArray]:
        given = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
        return given[: self.n_weights], given[self.n_weights :]

    def _normalise(self, weights: FloatArray) -> FloatArray:
        """Each part scaled to a sum of one."""
        cut = self.n_widths
        return np.concatenate([part / part.sum() for part in (weights[:cut], weights[cut:])])

    @property
    def param_shape(self) -> tuple[int, ...]:
        return (self.n_weights,)

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.n_weights + self.rows.begins[-1])

    def uniform(self) -> Array:
        return self._normalise(np.ones(self.n_weights))

    def random(self, rng: np.random.Generator) -> Array:
        return self._normalise(rng.uniform(0.5, 1.5, self.n_weights))

    # how counts become parameters
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        if self.prior < 1.0:
            raise LearnerError("a prior below 1 has no mode", "use a prior of 1 or more")
        return self.mean(counts, old)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.mean(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """The mode, for the posterior of the weights is taken to be a point."""
        jumps, left = self._split(counts)
        more = max(self.prior - 1.0, 0.0)
        weights = old
        for _ in range(INNER_STEPS):
            shares = left / np.maximum(self.totals(weights), 1e-300)
            exposure = self._sum_exposure(shares)
            # the prior is that of weights which sum to one: as if all were allowed so often
            exposure[: self.n_widths] += more * self.n_widths
            exposure[self.n_widths :] += more * self.reach
            new = np.divide(jumps + more, exposure, where=exposure > 0.0, out=weights.copy())
            new = self._normalise(new)
            # what is rarer and rarer must not vanish together with all that it is compared with
            new = np.where((new > 0.0) & (new < RAREST), RAREST, new)
            moved = np.max(np.abs(new - weights) / np.maximum(weights, 1e-300))
            weights = new
            if moved <= INNER_TOLERANCE:
                break
        if more:
            return weights
        # widths that no sentence is long enough for are as likely as the next narrower one
        weights, middle, cut = weights.copy(), self.reach, self.n_widths
        widest = min(self.longest - 1, self.reach)
        weights[: middle - widest] = weights[middle - widest]
        weights[middle + widest + 1 : cut] = weights[middle + widest]
        last = cut + min(self.longest, self.reach) - 1
        weights[last + 1 :] = weights[last]
        return self._normalise(weights)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """One Gibbs step: u_r ~ Gamma(n_r, Z_r(w)), then w_d ~ Gamma(α + c_d, 1 + Σ_{r ∋ d} u_r).

        The weights' scale says nothing, so that Gamma(α, 1) priors are a Dirichlet prior of the
        weights that sum to one. With a small α some numbers are too small: see `_draw_in_logs`.
        """
        jumps, left = self._split(counts)
        sizes = np.array([self.n_widths, self.reach])
        scales = rng.standard_gamma(self.prior * sizes)
        passed = rng.standard_gamma(left)
        drawn = rng.standard_gamma(self.prior + jumps)
        if scales.min() >= SMALLEST and drawn.min() >= SMALLEST:
            shares = passed / np.maximum(self.totals(old * np.repeat(scales, sizes)), SMALLEST)
            weights = drawn / (1.0 + self._sum_exposure(shares))
            if weights.min() >= SMALLEST:
                return self._normalise(weights)
        of_scales = np.repeat(log_gammas(scales, self.prior * sizes, rng), sizes)
        of_drawn = log_gammas(drawn, self.prior + jumps, rng)
        return self._draw_in_logs(of_scales, passed, of_drawn, old)

    def _draw_in_logs(
        self, scales: FloatArray, passed: FloatArray, drawn: FloatArray, old: FloatArray
    ) -> FloatArray:
        """The same step in logarithms: log w_d = log G_d − log(s + Σ_{r ∋ d} g_r / Z_r(old)).

        With s the scale of the old weights and u_r = g_r / (s Z_r(old)) that is w_d / s, and w is
        normalised in any case.
        """
        exposure = self._sum_exposure(passed / np.maximum(self.totals(old), SMALLEST))
        with np.errstate(divide="ignore"):  # the log of 0, where no row allows a jump
            logs = drawn - np.logaddexp(scales, np.log(exposure))
        return self._normalise(np.maximum(self.bound(logs, old), SMALLEST))

    def average(self, draws: Sequence[Array]) -> Array:
        return self._normalise(super().average(draws))

    # terms of the objective
    def log_prior(self, params: Array) -> float:
        if self.prior == 1.0:
            return 0.0
        return (self.prior - 1.0) * float(np.sum(np.log(np.maximum(params, SMALLEST))))

    def divergence(self, counts: Counts, params: Array) -> float:
        """What a posterior that is a point costs, up to a constant."""
        return -max(self.prior - 1.0, 0.0) * float(np.sum(np.log(np.maximum(params, SMALLEST))))

    def expected_log(self, counts: Counts, params: Array) -> float:
        jumps, left = self._split(counts)
        return float(np.sum(xlogy(jumps, params)) - np.sum(xlogy(left, self.totals(params))))

    # geometry
    def free(self, params: Array) -> Array:
        with np.errstate(divide="ignore"):
            logs: Array = np.log(params)
        return logs

    def bound(self, free: Array, like: Array) -> Array:
        cut = self.n_widths
        parts = (free[:cut], free[cut:])
        return self._normalise(np.concatenate([np.exp(part - part.max()) for part in parts]))

    def alike(self, params: Array) -> bool | None:
        return None


# Learning goes on where it stopped


class _Delegated:
    """An attribute of `WithPast` that is its family's own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance.family, self.name)


class WithPast(Family):
    """A family to whose counts those of the past are always added.

    The past's hidden values stay as they were seen: incremental EM of which one shard is never
    visited again (Neal & Hinton 1998). Its objective has ⟨past, log θ⟩ beside the prior.
    """

    n_free: Any = _Delegated()
    param_shape: Any = _Delegated()
    prior_size: Any = _Delegated()
    zeros: Any = _Delegated()
    uniform: Any = _Delegated()
    random: Any = _Delegated()
    expected_log: Any = _Delegated()
    free: Any = _Delegated()
    bound: Any = _Delegated()
    sound: Any = _Delegated()
    proper: Any = _Delegated()
    alike: Any = _Delegated()
    change: Any = _Delegated()
    entropy: Any = _Delegated()
    average: Any = _Delegated()

    def __init__(self, family: Family, past: Array) -> None:
        self.family, self.past = family, past

    def __getattr__(self, name: str) -> Any:
        if name == "family":  # of a copy that is still empty
            raise AttributeError(name)
        return getattr(self.family, name)  # what a model asks of its own family

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.maximise(np.asarray(counts) + self.past, old, rng)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.mean_field(np.asarray(counts) + self.past, old, rng)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.draw(np.asarray(counts) + self.past, old, rng)

    def mean(self, counts: Counts, old: Array) -> Array:
        return self.family.mean(np.asarray(counts) + self.past, old)

    def log_prior(self, params: Array) -> float:
        # what is too small for a number counts alike in the density and in the past
        seen = np.maximum(np.asarray(params, dtype=np.float64), SMALLEST)
        return self.family.log_prior(seen) + self.family.expected_log(self.past, seen)

    def divergence(self, counts: Counts, params: Array) -> float:
        cost = self.family.divergence(np.asarray(counts) + self.past, params)
        return cost - self.family.expected_log(self.past, params)

    def running(self) -> CountAverage:
        return CountAverage(self)
