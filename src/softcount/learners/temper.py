"""Annealing: posteriors raised to a power β that rises to one.

A small β makes all hidden values nearly equal, so that learning first finds the coarse shape of
the likelihood and is less easily caught by a poor local maximum (Ueda & Nakano 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softcount.bounds import MAX_TEMPER, MAX_WHOLE, MIN_TEMPER
from softcount.errors import LearnerError, shown

Temper = float | tuple[float, ...] | Callable[[int], float]
"""β at every step: one number, numbers by step (the last one stays), or a function of the step."""


@dataclass(frozen=True)
class Anneal:
    """β_t = start^(1 − t / steps) until step ``steps``, then 1."""

    start: float
    steps: int

    def __call__(self, step: int) -> float:
        return float(self.start ** (1 - step / self.steps)) if step < self.steps else 1.0


def anneal(start: float = 0.1, steps: int = 20) -> Anneal:
    """A temper schedule that rises geometrically from ``start`` to 1 in ``steps`` steps.

    ``start`` above 1 begins with over-confident posteriors instead, which sink to one.

    >>> beta = anneal(start=0.25, steps=2)
    >>> [beta(step) for step in range(4)]
    [0.25, 0.5, 1.0, 1.0]
    """
    if not MIN_TEMPER <= start <= MAX_TEMPER or not 1 <= steps <= MAX_WHOLE:
        raise LearnerError(
            f"anneal(start={shown(start)}, steps={shown(steps)}): start must be positive and "
            f"finite, from {MIN_TEMPER:g} to {MAX_TEMPER:g}, and there must be at least one step",
            "anneal(start=0.1, steps=20) is a common choice",
        )
    return Anneal(start, steps)
