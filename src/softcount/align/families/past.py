"""Families that remember what was counted before: learning goes on where it stopped."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.families.base import Family, Running
from softcount.families.gammas import SMALLEST
from softcount.types import Array, Counts


class WithPast(Family):
    """A family to whose counts those of the past are always added.

    The past's hidden values stay as they were seen: incremental EM of which one shard is never
    visited again (Neal & Hinton 1998). Its objective has ⟨past, log θ⟩ beside the prior.
    """

    def __init__(self, family: Family, past: Array) -> None:
        self.family, self.past = family, past
        self.n_free = family.n_free

    def __getattr__(self, name: str) -> Any:
        if name == "family":  # of a copy that is still empty
            raise AttributeError(name)
        return getattr(self.family, name)  # what a model asks of its own family

    def _all(self, counts: Counts) -> Counts:
        return np.asarray(counts) + self.past

    @property
    def param_shape(self) -> tuple[int, ...]:
        return self.family.param_shape

    @property
    def prior_size(self) -> float:
        return self.family.prior_size

    def zeros(self) -> Array:
        return self.family.zeros()

    def uniform(self) -> Array:
        return self.family.uniform()

    def random(self, rng: np.random.Generator) -> Array:
        return self.family.random(rng)

    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.maximise(self._all(counts), old, rng)

    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.mean_field(self._all(counts), old, rng)

    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        return self.family.draw(self._all(counts), old, rng)

    def mean(self, counts: Counts, old: Array) -> Array:
        return self.family.mean(self._all(counts), old)

    def log_prior(self, params: Array) -> float:
        # what is too small for a number counts alike in the density and in the past
        seen = np.maximum(np.asarray(params, dtype=np.float64), SMALLEST)
        return self.family.log_prior(seen) + self.family.expected_log(self.past, seen)

    def divergence(self, counts: Counts, params: Array) -> float:
        price = self.family.divergence(self._all(counts), params)
        return price - self.family.expected_log(self.past, params)

    def expected_log(self, counts: Counts, params: Array) -> float:
        return self.family.expected_log(counts, params)

    def free(self, params: Array) -> Array:
        return self.family.free(params)

    def bound(self, free: Array, like: Array) -> Array:
        return self.family.bound(free, like)

    def sound(self, values: Array) -> bool:
        return self.family.sound(values)

    def proper(self, values: Array) -> Array:
        return self.family.proper(values)

    def alike(self, params: Array) -> bool | None:
        return self.family.alike(params)

    def change(self, old: Array, new: Array) -> float:
        return self.family.change(old, new)

    def entropy(self, params: Array, weights: bool = False) -> float:
        return self.family.entropy(params, weights)

    def average(self, draws: Any) -> Array:
        return self.family.average(draws)

    def running(self) -> Running:
        return Running(self)
