"""Gamma variables of tiny shapes: what is too small for a number is kept as its logarithm.

A Gamma(a) variable is below e⁻ˣ with a probability of about e⁻ᵃˣ. With a = 0.001 every second one
is therefore below the smallest number there is, and rows of a Dirichlet made from such numbers
would be empty, or have a density of infinity.
"""

from __future__ import annotations

import numpy as np

from softcount.types import Array

SMALLEST = 1e-300
"""No probability that is drawn is smaller: its logarithm stays finite, and its products with others
stay above what is too small for a number. Densities take none for smaller."""

SMALLEST_SINGLE = 1e-30
"""The same for numbers of 32 bits."""

SMALLEST_SHAPE = 1e-300  # keeps log U / shape finite for the smallest of Gamma shapes


def draw_log_gammas(shapes: Array, rng: np.random.Generator) -> Array:
    """log G of G ~ Gamma(shape).

    If G ~ Gamma(a + 1) and U ~ U(0, 1), then G·U^(1/a) ~ Gamma(a) (Marsaglia and Tsang 2000).
    """
    shapes = np.maximum(shapes, SMALLEST_SHAPE)
    logs: Array = np.log(rng.standard_gamma(shapes + 1.0))
    logs -= rng.standard_exponential(len(shapes)) / shapes
    return logs


def log_gammas(drawn: Array, shapes: Array, rng: np.random.Generator) -> Array:
    """log G of variables that were drawn, those below `SMALLEST` drawn again as logarithms.

    Near zero the density of Gamma(a) is that of gᵃ⁻¹, so that given G < ε, (G/ε)ᵃ ~ U(0, 1).
    """
    small = drawn < SMALLEST
    logs: Array = np.log(np.maximum(drawn, SMALLEST))
    logs[small] -= rng.standard_exponential(int(small.sum())) / np.maximum(
        np.broadcast_to(shapes, drawn.shape)[small], SMALLEST_SHAPE
    )
    return logs
