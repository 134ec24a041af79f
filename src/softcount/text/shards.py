"""Division of a corpus into shards."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from softcount.core.types import Array, IntArray


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


def cut_by_work(work: Array, most: float) -> list[tuple[int, int]]:
    """Cut items, in order, into shards of at most ``most`` work, or of a single item.

    Returns the first item of each shard and the one after its last.

    ``work``  the work of each item, (items,): tokens, possible links, n³

    >>> cut_by_work(np.array([2, 2, 2, 2, 2]), most=6)
    [(0, 3), (3, 5)]
    >>> cut_by_work(np.array([9, 1, 1]), most=6)
    [(0, 1), (1, 3)]
    """
    ends = np.cumsum(np.asarray(work, np.float64))
    borders = [0]
    while borders[-1] < len(ends):
        first = borders[-1]
        before = ends[first - 1] if first else 0.0
        last = int(np.searchsorted(ends, before + most, side="right"))
        borders.append(max(last, first + 1))
    return list(pairwise(borders)) or [(0, 0)]
