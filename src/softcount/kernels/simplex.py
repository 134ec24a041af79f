"""Projection onto {x ≥ 0, Σ x ≤ c}, column by column."""

from __future__ import annotations

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import njit


@njit
def project_columns(values: FloatArray, blocks: IntArray, most: float) -> None:
    """Replace each column of each block by the nearest one that is not negative and whose sum is at
    most ``most`` (Michelot 1986).

    Rows ``blocks[b]`` to ``blocks[b + 1]`` (exclusive) are block b.
    """
    for b in range(len(blocks) - 1):
        first, last = blocks[b], blocks[b + 1]
        for k in range(values.shape[1]):
            total, n = 0.0, 0
            for i in range(first, last):
                values[i, k] = max(values[i, k], 0.0)
                if values[i, k] > 0.0:
                    total += values[i, k]
                    n += 1
            if total <= most:
                continue
            # what all positive values are lowered by; values below it become 0 and are left out
            by = (total - most) / n
            while True:
                total, left = 0.0, 0
                for i in range(first, last):
                    if values[i, k] > by:
                        total += values[i, k]
                        left += 1
                if left == n:
                    break
                n, by = left, (total - most) / left
            for i in range(first, last):
                values[i, k] = max(values[i, k] - by, 0.0)
