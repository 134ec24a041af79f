"""The families of distributions that are specific to alignment models.

`StemTable`          translations t(f | e), with counts shared by words of the same stem
`DiagonalTension`    the concentration of links near the diagonal, one number (Dyer et al. 2013)
`JumpTable`          jumps between source positions, by their width (Vogel et al. 1996)
`WithPast`           any family, with the counts of earlier data added to its own
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.align import kernels
from softcount.align.data import cumulate
from softcount.align.kernels import JumpRows, SentenceShapes
from softcount.core import pages, spill
from softcount.core.errors import LearnerError
from softcount.core.types import Array, Counts, FloatArray, IntArray
from softcount.families.base import CountAverage, Family
from softcount.families.categorical import SMALLEST, DirichletRows, log_gammas
from softcount.families.large import LargeTable
from softcount.kernels.jit import njit

# Translations


@dataclass(frozen=True, eq=False)
class Stems:
    """The stems of all words.

    ``sources``    (source words + 1,) the stem of each; the empty word, which is last, has its own
    ``targets``    (target words,) the stem of each
    ``shares``     (target words,) p(word | its stem)
    ``strength``   the number of pseudo-counts each source word gets from its stem
    ``smoothing``  added to all counts of pairs of stems
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
        """Make stems of the first letters of words; ``target_counts``: word frequencies.

        >>> counts = np.array([3, 1, 1])
        >>> stems = Stems.of(["house"], ["haus", "hausen", "hof"], counts, 4, 5.0, 0.1)
        >>> stems.targets.tolist(), stems.shares.tolist()
        ([0, 0, 1], [0.75, 0.25, 1.0])
        """

        def number_stems(words: Sequence[str]) -> IntArray:
            numbers: dict[str, int] = {}
            stems = [numbers.setdefault(word[:letters], len(numbers)) for word in words]
            return np.array(stems, np.int64)

        source_stems = number_stems(sources)
        source_stems = np.append(source_stems, source_stems.max(initial=-1) + 1)
        target_stems = number_stems(targets)
        stem_counts = np.maximum(np.bincount(target_stems, target_counts), 1.0)
        shares = target_counts / stem_counts[target_stems]
        return cls(source_stems, target_stems, shares, strength, smoothing)


class StemTable(LargeTable):
    """A `LargeTable` whose M-steps add pseudo-counts from stems.

    The counts become c(f, e) + A · T(s(f) | s(e)) · p(f | s(f)), where s is a word's stem and T the
    translation table of stems, so that rare words benefit from related words. The objective does
    not include these pseudo-counts, and may decrease.
    """

    def __init__(self, *given: Any, stems: Stems, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.stems = stems
        self._members = np.argsort(stems.sources, kind="stable")
        numbers = np.arange(stems.sources.max(initial=-1) + 2)
        self._begins = np.searchsorted(stems.sources[self._members], numbers)

    def _groups(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of stems whose rows have a block of entries, or one stem that has more."""
        ends = np.cumsum(np.diff(self.indptr)[self._members])
        ends = np.append(0, ends)[self._begins]  # entries of the stems before each
        first, last = 0, len(self._begins) - 1
        while first < last:
            end = int(np.searchsorted(ends, ends[first] + self.block, side="right")) - 1
            end = min(max(end, first + 1), last)
            yield first, end
            first = end

    def _each(
        self, method: str, counts: Counts, old: Array, *more: Any, out: Array | None = None
    ) -> Array:
        stems, observed = self.stems, np.asarray(counts)
        target_stems = (stems.targets, stems.shares, float(stems.strength), float(stems.smoothing))
        if method == "draw":  # rows are drawn in their own order
            augmented = np.empty(len(observed))
            groups = (self._members, self._begins, self.indptr, self.outcomes)
            lend_counts(*groups, target_stems, observed, augmented)
            return super()._each(method, augmented, old, *more)
        old = pages.contiguous(old)  # the initial table is one broadcast number
        new = spill.zeros(self.shape, self.dtype) if out is None else out
        for first, last in self._groups():
            begins = self._begins[first : last + 1]
            rows = self._members[begins[0] : begins[-1]]
            borders = cumulate(np.diff(self.indptr)[rows])
            own = (self.indptr, rows, borders)
            outcomes = take_rows(self.outcomes, *own)
            augmented = np.empty(len(outcomes))
            members = (np.arange(len(rows)), begins - begins[0], borders, outcomes)
            lend_counts(*members, target_stems, take_rows(observed, *own), augmented)
            family = DirichletRows(
                borders,
                (len(outcomes),),
                self.alpha if isinstance(self.alpha, float) else take_rows(self.alpha, *own),
                None if self.mask is None else take_rows(self.mask, *own),
                self.held_rows[rows],
            )
            family.smallest = self.smallest
            found = getattr(family, method)(augmented, take_rows(old, *own), *more)
            put_rows(found, *own, new)
        return new

    def running(self) -> CountAverage:
        # the pseudo-counts depend on all counts, so that no update can be deferred
        return CountAverage(self)


@njit
def take_rows(flat: Array, indptr: IntArray, rows: IntArray, borders: IntArray) -> Array:
    """Return some rows, one after the other; row n of them begins at ``borders[n]``."""
    taken = np.empty(borders[-1], flat.dtype)
    for n in range(len(rows)):
        begin = indptr[rows[n]]
        for k in range(borders[n + 1] - borders[n]):
            taken[borders[n] + k] = flat[begin + k]
    return taken


@njit
def put_rows(
    taken: Array, indptr: IntArray, rows: IntArray, borders: IntArray, flat: Array
) -> None:
    """Put rows back where `take_rows` has taken them."""
    for n in range(len(rows)):
        begin = indptr[rows[n]]
        for k in range(borders[n + 1] - borders[n]):
            flat[begin + k] = taken[borders[n] + k]


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
    """Compute ``out`` = counts + strength · T(f's stem | e's stem) · p(f | its stem).

    Group g, the source words of one stem, is ``members[begins[g]:begins[g + 1]]``. T is estimated
    from the smoothed counts of the whole group. ``stems`` are the target words' stems,
    p(f | its stem), the strength and the smoothing.
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
"""The bounds of the tension."""
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-12
"""Newton's method stops after this many steps, or when λ changes by no more than this."""


class DiagonalTension(Family):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|), with the single parameter λ.

    Parameters are [λ]; counts have one number for every cell of every shape. The objective is
    concave in λ and is maximised by Newton's method, between 0 and 100.
    """

    def __init__(self, shapes: SentenceShapes) -> None:
        self.shapes, self.n_free = shapes, 1

    def _summarise(self, counts: Counts) -> tuple[float, FloatArray]:
        """Compute Σ c h, and how often each target position is aligned to a word, not to NULL."""
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
        """Return the mode: the posterior of the tension is approximated by a point.

        Newton's method, safeguarded by bisection where a step would leave the bracket.
        """
        wanted, often = self._summarise(counts)
        low, high, tension = LOWEST, HIGHEST, float(old[0])
        if kernels.moments(self.shapes, often, LOWEST)[2] == 0.0:
            return old  # there are no counts, or every sentence has a single source position
        for _ in range(NEWTON_STEPS):
            _, mean, variance = kernels.moments(self.shapes, often, tension)
            slope = wanted - mean
            low, high = (tension, high) if slope > 0.0 else (low, tension)
            step = tension + slope / variance if variance > 0.0 else low
            new = step if low <= step <= high else (low + high) / 2.0
            converged = abs(new - tension) <= NEWTON_TOLERANCE * max(1.0, tension)
            tension = new
            if converged:
                break
        return np.array([tension])

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Take one slice-sampling step (Neal 2003) from the old tension, under a flat prior."""
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
"""An M-step stops after this many inner steps, or when no weight changes by more than this
fraction."""

RAREST = 1e-200
"""Lower bound on non-zero weights, because their sums Z are divisors."""


class JumpTable(Family):
    """p(k | h, l) = w(k − h) / Σ_{k'=1..l} w(k' − h) (Vogel, Ney & Tillmann 1996).

    Parameters are the weights of widths −reach … reach, then those of the first positions
    1 … reach, each part summing to one; a jump farther than ``reach`` has the weight of the widest
    jump on its side. Counts are those of the widths, of the first positions, and of the positions
    that jumps start from, in the layout of ``rows``.

    The normaliser depends on the sentence length and the position, so that relative frequencies of
    widths do not maximise Q = Σ_d c_d log w_d − Σ_r n_r log Z_r(w). Minorising Q by tangents to the
    logarithm gives the MM update w_d ← c_d / Σ_{r ∋ d} n_r / Z_r(w), which never lowers Q (Hunter
    2004, *MM algorithms for generalized Bradley–Terry models*). Gibbs sampling uses the same
    structure with latent Gamma variables (Caron & Doucet 2012).
    """

    def __init__(self, reach: int, lengths: IntArray, prior: float = 1.0) -> None:
        self.reach, self.prior = reach, float(prior)
        self.rows = JumpRows.of(lengths)
        self.n_widths = 2 * reach + 1
        self.n_weights = self.n_widths + reach
        self.n_free = self.n_widths - 1 + reach - 1
        self.longest = int(self.rows.lengths.max(initial=1))

    # mapping between weights and all widths that occur
    @cached_property
    def _bins(self) -> tuple[IntArray, IntArray]:
        """Weight indices of widths −longest … longest, and of first positions 0 … longest."""
        widths = np.clip(np.arange(-self.longest, self.longest + 1), -self.reach, self.reach)
        starts = np.clip(np.arange(self.longest + 1), 1, self.reach)
        return widths + self.reach, 2 * self.reach + starts

    def spread_weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return w of all widths −longest … longest, and of all first positions 0 … longest."""
        widths, starts = self._bins
        return params[widths], params[starts]

    def collect_weights(self, widths: FloatArray, starts: FloatArray) -> FloatArray:
        """Sum values of widths and first positions by weight: the transpose of `spread_weights`."""
        bins = np.concatenate([self._bins[0], self._bins[1][1:]])
        sums = np.bincount(bins, np.concatenate([widths, starts[1:]]), self.n_weights)
        return sums.astype(np.float64, copy=False)

    def totals(self, params: FloatArray) -> FloatArray:
        """Compute the normalisers Z of all rows."""
        widths, starts = self.spread_weights(params)
        return kernels.sum_jumps(self.rows, widths, self.longest, starts)

    def _sum_exposure(self, shares: FloatArray) -> FloatArray:
        """Compute, for each weight, Σ of ``shares`` over the rows that allow its jumps."""
        return self.collect_weights(*kernels.spread_over_jumps(self.rows, shares, self.longest))

    def _split(self, counts: Counts) -> tuple[FloatArray, FloatArray]:
        """Split counts into those of weights c_d, and those of rows n_r."""
        non_negative = np.maximum(np.asarray(counts, dtype=np.float64), 0.0)
        return non_negative[: self.n_weights], non_negative[self.n_weights :]

    def _normalise(self, weights: FloatArray) -> FloatArray:
        """Scale each part (widths, first positions) to a sum of one."""
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
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                "use a prior of 1 or more",
            )
        return self.mean(counts, old)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.mean(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """Return the mode: the posterior of the weights is approximated by a point."""
        jumps, left = self._split(counts)
        pseudo_count = max(self.prior - 1.0, 0.0)
        weights = old
        for _ in range(INNER_STEPS):
            shares = left / np.maximum(self.totals(weights), 1e-300)
            exposure = self._sum_exposure(shares)
            # the prior is on normalised weights: as if this many more rows allowed all jumps
            exposure[: self.n_widths] += pseudo_count * self.n_widths
            exposure[self.n_widths :] += pseudo_count * self.reach
            new = np.divide(
                jumps + pseudo_count, exposure, where=exposure > 0.0, out=weights.copy()
            )
            new = self._normalise(new)
            # keep weights that tend to 0 from underflowing: Z may be a sum of only such weights
            new = np.where((new > 0.0) & (new < RAREST), RAREST, new)
            change = np.max(np.abs(new - weights) / np.maximum(weights, 1e-300))
            weights = new
            if change <= INNER_TOLERANCE:
                break
        if pseudo_count:
            return weights
        # widths that exceed every sentence length get the weight of the widest that does not
        weights, middle, cut = weights.copy(), self.reach, self.n_widths
        widest = min(self.longest - 1, self.reach)
        weights[: middle - widest] = weights[middle - widest]
        weights[middle + widest + 1 : cut] = weights[middle + widest]
        last = cut + min(self.longest, self.reach) - 1
        weights[last + 1 :] = weights[last]
        return self._normalise(weights)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Take one Gibbs step: u_r ~ Gamma(n_r, Z_r(w)), w_d ~ Gamma(α + c_d, 1 + Σ_{r ∋ d} u_r).

        The scale of the weights does not matter, so that Gamma(α, 1) priors amount to a Dirichlet
        prior of the normalised weights. If a small α makes numbers underflow, the step is taken in
        logarithms: see `_draw_in_logs`.
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
        """Take the step of `draw` in logarithms: log w_d = log G_d − log(s + Σ_{r ∋ d} g_r / Z_r).

        With s the scale of the old weights, Z_r = Z_r(old) and u_r = g_r / (s Z_r), this is
        log(w_d / s), and w is normalised in any case.
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
        """Compute the divergence of a point-mass posterior from the prior, up to a constant."""
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


# Incremental learning


class _Delegated:
    """An attribute that `WithPast` delegates to its family."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance.family, self.name)


class WithPast(Family):
    """A family that adds fixed counts of earlier data to all counts.

    The posteriors of the earlier data are not updated: incremental EM in which one shard is never
    revisited (Neal & Hinton 1998). The objective has the term ⟨past, log θ⟩ in addition to the
    prior.
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
        if name == "family":  # not yet set, while an instance is copied or unpickled
            raise AttributeError(name)
        return getattr(self.family, name)  # attributes of a specific family that its model uses

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.maximise(np.asarray(counts) + self.past, old, rng)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.mean_field(np.asarray(counts) + self.past, old, rng)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.draw(np.asarray(counts) + self.past, old, rng)

    def mean(self, counts: Counts, old: Array) -> Array:
        return self.family.mean(np.asarray(counts) + self.past, old)

    def log_prior(self, params: Array) -> float:
        # the same lower bound in both terms, so that underflowed parameters are consistent
        bounded = np.maximum(np.asarray(params, dtype=np.float64), SMALLEST)
        return self.family.log_prior(bounded) + self.family.expected_log(self.past, bounded)

    def divergence(self, counts: Counts, params: Array) -> float:
        cost = self.family.divergence(np.asarray(counts) + self.past, params)
        return cost - self.family.expected_log(self.past, params)

    def running(self) -> CountAverage:
        return CountAverage(self)
