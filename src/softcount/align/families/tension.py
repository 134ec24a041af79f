"""How near to the diagonal words are aligned: one number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.align.kernels import positions as diagonal
from softcount.families.base import Family
from softcount.types import Array, Counts

LOWEST, HIGHEST = 0.0, 100.0
STEPS, STILL = 50, 1e-12


def different(l: Array, m: Array) -> tuple[Array, Array]:
    """Every pair of lengths once, in order."""
    longest = int(m.max(initial=0)) + 1
    heights, widths = np.divmod(np.unique(l.astype(np.int64) * longest + m), longest)
    return heights, widths


class Shapes(NamedTuple):
    """Different pairs of lengths (l, m), and where the (l + 1) × m cells of each begin."""

    heights: Array
    widths: Array
    begins: Array

    @classmethod
    def of(cls, l: Array, m: Array) -> Shapes:
        heights, widths = different(l, m)
        cells = np.concatenate([[0], np.cumsum((heights + 1) * widths)])
        return cls(heights, widths, cells)

    @property
    def n_cells(self) -> int:
        return int(self.begins[-1])

    def numbers(self, l: Array, m: Array) -> Array:
        """Which shape each pair of lengths is; −1: none of these."""
        longest = max(int(self.widths.max(initial=0)), int(m.max(initial=0))) + 1
        keys, wanted = self.heights * longest + self.widths, l * longest + m
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[at] == wanted, at, -1) if len(keys) else np.full(len(l), -1)


class Tension(Family):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|): λ alone is learned.

    See `softcount.align.kernels.positions`.

    Parameters are [λ]; counts have one number for every cell of every shape. The best λ is found by
    Newton's method: the objective is concave in it. It is kept between 0 and 100.
    """

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self._rows = np.concatenate([[0], np.cumsum(shapes.widths)])
        self.n_free = 1

    def _read(self, counts: Counts) -> tuple[float, Array]:
        """Σ c h, and how often each target place comes from a word at all."""
        often = np.zeros(int(self._rows[-1]))
        given = np.asarray(counts, dtype=np.float64)
        total = diagonal.summarise(*self.shapes, self._rows, given, often)
        return float(total), often

    def _moments(self, often: Array, tension: float) -> tuple[float, float, float]:
        found: tuple[float, float, float] = diagonal.moments(
            self.shapes.heights, self.shapes.widths, self._rows, often, tension
        )
        return found

    # starts
    def zeros(self) -> Array:
        return np.zeros(self.shapes.n_cells)

    def uniform(self) -> Array:
        return np.zeros(1)

    def random(self, rng: np.random.Generator) -> Array:
        return rng.uniform(1.0, 7.0, 1)

    # how counts become parameters
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self._climb(counts, old)

    def _climb(self, counts: Counts, old: Array) -> Array:
        """Newton's method; where it would leave what brackets the best λ, it halves that."""
        wanted, often = self._read(counts)
        low, high, tension = LOWEST, HIGHEST, float(old[0])
        if self._moments(often, LOWEST)[2] == 0.0:
            return old  # nothing was counted, or there is nowhere else to be
        for _ in range(STEPS):
            _, mean, variance = self._moments(often, tension)
            slope = wanted - mean
            low, high = (tension, high) if slope > 0.0 else (low, tension)
            step = tension + slope / variance if variance > 0.0 else low
            new = step if low <= step <= high else (low + high) / 2.0
            still = abs(new - tension) <= STILL * max(1.0, tension)
            tension = new
            if still:
                break
        return np.array([tension])

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """As `maximise`: the posterior of the tension is taken to be a point."""
        return self._climb(counts, old)

    def mean(self, counts: Counts, old: Array) -> Array:
        """As `maximise`: the posterior of the tension is taken to be a point."""
        return self._climb(counts, old)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """One move of slice sampling (Neal 2003) from the old tension, under a flat prior."""
        wanted, often = self._read(counts)

        def log_density(tension: float) -> float:
            return tension * wanted - self._moments(often, tension)[0]

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
        wanted, often = self._read(counts)
        return float(params[0]) * wanted - self._moments(often, float(params[0]))[0]

    # geometry
    def free(self, params: Array) -> Array:
        return np.array(params, dtype=np.float64)

    def bound(self, free: Array, like: Array) -> Array:
        return np.clip(free, LOWEST, HIGHEST)

    def sound(self, values: Array) -> bool:
        return bool((values >= LOWEST).all())

    def alike(self, params: Array) -> bool | None:
        return None
