"""Blocks: how shards are dealt out to processes, and why that does not change a bit of the sum.

The sum over n shards is taken in one binary tree (`tree_sum`). An aligned block is the shards from
j 2^k up to (j + 1) 2^k, or to n at the end: a subtree of that tree. So a process that is given a
block adds it up by itself, and the sum of the blocks' sums has the same bits, however the shards
are cut into aligned blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, Protocol, TypeVar

from softcount.core.types import EStep, Params, Stats
from softcount.engines.base import Expect, Shard


class Addable(Protocol):
    """`Stats`, or anything else that can be added."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Addable)


def tree_sum(parts: Iterable[T], sizes: Iterable[int] = ()) -> T:
    """Sum in a fixed binary tree over the order of ``parts``, at least one.

    Works like a binary counter: neighbours of equal size are added as soon as both are available,
    so that no more than log₂ n partial sums exist, and rounding errors grow with log n, not n.

    ``sizes``  the number of shards in each part, where parts are the sums of aligned blocks

    >>> tree_sum(Stats({}, log_likelihood=x) for x in (1.0, 2.0, 3.0)).log_likelihood
    6.0
    """
    sums: list[tuple[int, T]] = []
    for part, size in zip(parts, chain(sizes, repeat(1)), strict=False):
        total = part
        while sums and sums[-1][0] == size:
            total = sums.pop()[1] + total
            size *= 2
        sums.append((size, total))
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total


def cut_blocks(
    which: Sequence[int], owner: Callable[[int], Hashable], most: int
) -> list[tuple[int, ...]]:
    """Cut a list of shards into the largest aligned blocks whose shards have the same owner.

    Blocks are aligned in the list, for it is the list's order in which shards are added.

    ``most``  the largest number of shards in a block

    >>> cut_blocks(range(11), lambda shard: shard >= 6, most=4)
    [(0, 1, 2, 3), (4, 5), (6, 7), (8, 9, 10)]
    """
    blocks, n, first = [], len(which), 0
    while first < n:
        own, last = owner(which[first]), first + 1  # shards first … last − 1 have the same owner
        size = 1
        while first % (2 * size) == 0 and 2 * size <= most and last < n:
            wanted = min(first + 2 * size, n)
            while last < wanted and owner(which[last]) == own:
                last += 1
            if last < wanted:
                break
            size *= 2
        blocks.append(tuple(which[first : first + size]))
        first += size
    return blocks


def add_up(
    function: Expect,
    params: Params,
    how: EStep,
    parts: Iterable[tuple[int, Shard, Any]],
    keep: Callable[[int, Any], None],
) -> Stats:
    """Do an E-step over the shards of a block, and add up the results.

    ``parts``  number, shard and state of each, made when they are asked for
    ``keep``   called with the number of a shard and its new state
    """

    def results() -> Iterator[Stats]:
        for number, shard, local in parts:
            stats = function(params, shard, how, local)
            if stats.local is not None:
                if not how.score_only:
                    keep(number, stats.local)
                stats = replace(stats, local=None)
            yield stats

    return tree_sum(results())
