"""Division of a corpus into shards."""

from __future__ import annotations

import numpy as np

from softcount.core.types import IntArray


def split_items(n: int, cut: int, batch_size: int | None, seed: int) -> list[IntArray]:
    """Return the numbers of the items in each shard.

    ``cut``         the shard size if ``batch_size`` is None; items are then in their own order
    ``batch_size``  the size of mini-batches, which are shuffled by the seed

    >>> [part.tolist() for part in split_items(5, 2, None, 0)]
    [[0, 1], [2, 3], [4]]
    """
    if batch_size is None:
        return np.split(np.arange(n), range(cut, n, cut))
    order = np.random.default_rng(seed).permutation(n)
    return np.split(order, range(batch_size, n, batch_size))
