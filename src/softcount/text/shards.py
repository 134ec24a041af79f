"""Where a corpus is cut into shards."""

from __future__ import annotations

import numpy as np

from softcount.core.types import IntArray


def split_items(n: int, cut: int, batch_size: int | None, seed: int) -> list[IntArray]:
    """The numbers of the items in each shard.

    ``batch_size`` None: in their own order, ``cut`` at a time; else shuffled by the seed, so many.

    >>> [part.tolist() for part in split_items(5, 2, None, 0)]
    [[0, 1], [2, 3], [4]]
    """
    if batch_size is None:
        return np.split(np.arange(n), range(cut, n, cut))
    order = np.random.default_rng(seed).permutation(n)
    return np.split(order, range(batch_size, n, batch_size))
