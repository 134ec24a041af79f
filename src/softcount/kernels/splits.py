"""The best way to split words in two, and these again, until single words are left."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import lean
from softcount.types import Array


@lean
def best_splits(gains: Array) -> Array:
    """Where each span is best split in two, if spans bring gains (n, n + 1), by start and end.

    With f(i, j) = gain(i, j) + max_k (f(i, k) + f(k, j)), the first k of the largest sum.

    >>> gains = np.zeros((3, 4))
    >>> gains[1, 3] = 0.5
    >>> int(best_splits(gains)[0, 3])
    1
    """
    n = len(gains)
    total, splits = gains.copy(), np.zeros(gains.shape, np.int64)
    for i in range(n - 2, -1, -1):
        for j in range(i + 2, n + 1):
            most, at = total[i, i + 1] + total[i + 1, j], i + 1
            for k in range(i + 2, j):
                more = total[i, k] + total[k, j]
                if more > most:
                    most, at = more, k
            total[i, j] += most
            splits[i, j] = at
    return splits
