"""Random numbers for kernels: splitmix64 streams (Steele, Lea & Flood 2014).

A stream is one uint64 in an array, so that a kernel can hold many, one for each lane. What it
yields depends on what it was started with alone: never on threads, nor on who asked before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import inline, njit


@inline
def mix(z: Any) -> Any:
    """Scramble the bits of a uint64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inline
def uniform(stream: Any, b: int) -> float:
    """The next number in [0, 1) of stream b."""
    stream[b] += np.uint64(0x9E3779B97F4A7C15)
    return float(mix(stream[b]) >> np.uint64(11)) * 2.0**-53


@inline
def item_stream(seed: Any, item: Any) -> Any:
    """The start of an item's own stream: it depends on the seed and the item's number alone."""
    mixed = mix(np.uint64(item) + np.uint64(0x9E3779B97F4A7C15))
    return mix(np.uint64(seed) ^ mixed)


@njit
def draw_weighted(weights: FloatArray, stream: IntArray) -> int:
    """Draw k in proportion to weights_k, by stream 0."""
    left, drawn = uniform(stream, 0) * weights.sum(), 0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            drawn = k
            left -= weights[k]
            if left < 0.0:
                break
    return drawn
