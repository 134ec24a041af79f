"""Draws of how votes came about."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import njit
from softcount.kernels.random import item_stream, uniform
from softcount.text.bags import Compressed

APART = np.uint64(0xD1B54A32D192ED03)
"""Draws of how a vote came about are from other streams than those of the items' labels."""


@njit
def draw_paths(
    votes: Compressed,
    drawn: FloatArray,
    samples: int,
    n_columns: int,
    first: IntArray,
    weights: FloatArray,
    numbers: IntArray,
    stream: Any,
    out: FloatArray,
) -> None:
    """Draw, for every vote and every drawn label of its item, one of the paths that lead to it.

    ``votes``      a row for each item: column a · C + c is the vote c of annotator a
    ``drawn``      relative frequencies of labels in ``samples`` draws, (items, labels)
    ``n_columns``  C, the number of different votes
    ``first``      the paths of cell (a · K + k) · C + c are ``first[cell]`` to ``first[cell + 1]``
    ``weights``    the weight of each path, (paths,)
    ``numbers``    the items' numbers, on which draws depend besides the stream, (items,)
    ``out``        relative frequencies of paths are added here, (paths,)
    """
    K = drawn.shape[1]
    state = np.empty(1, np.uint64)
    for d in range(len(drawn)):
        state[0] = item_stream(stream ^ APART, numbers[d])
        for entry in range(votes.indptr[d], votes.indptr[d + 1]):
            a, c = votes.columns[entry] // n_columns, votes.columns[entry] % n_columns
            for k in range(K):
                times = round(drawn[d, k] * samples) * round(votes.value[entry])
                cell = (a * K + k) * n_columns + c
                low, high = first[cell], first[cell + 1]
                if high - low == 1:
                    out[low] += times / samples
                    continue
                total = weights[low:high].sum()
                for _ in range(times):
                    rest, chosen = uniform(state, 0) * total, low
                    for path in range(low, high):
                        if weights[path] > 0.0:
                            chosen = path
                            rest -= weights[path]
                            if rest < 0.0:
                                break
                    out[chosen] += 1.0 / samples
