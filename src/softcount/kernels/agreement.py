"""Two directions that look at the same links: posteriors (l + 1, m) and (m + 1, l) of each pair."""

from __future__ import annotations

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def agree(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
) -> None:
    """Both become their product; what is left of a word goes to the empty word."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for j in range(m):
            here[l * m + j] = 1.0
        for i in range(l):
            left = 1.0
            for j in range(m):
                both = here[i * m + j] * there[j * l + i]
                here[i * m + j] = both
                there[j * l + i] = both
                left -= both
                here[l * m + j] -= both
            there[m * l + i] = max(left, 0.0)
        for j in range(m):
            here[l * m + j] = max(here[l * m + j], 0.0)


@njit
def join(
    first: int,
    last: int,
    source_lengths: Array,
    target_lengths: Array,
    offsets: Array,
    back_offsets: Array,
    links: Array,
    back: Array,
    geometric: bool,
) -> None:
    """The geometric or the arithmetic mean of both directions, in ``links``."""
    for p in range(first, last):
        l, m = source_lengths[p], target_lengths[p]
        there, here = (
            back[back_offsets[p] : back_offsets[p + 1]],
            links[offsets[p] : offsets[p + 1]],
        )
        for i in range(l):
            for j in range(m):
                one, other = here[i * m + j], there[j * l + i]
                here[i * m + j] = (one * other) ** 0.5 if geometric else (one + other) / 2.0
