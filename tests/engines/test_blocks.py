"""Aligned blocks: however shards are cut into them, the sum has the same bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.types import EStep, Stats
from softcount.engines.blocks import add_up, cut_blocks, tree_sum
from tests.engines.shards import VALUES, count_visits


def stats(value: float) -> Stats:
    return Stats({}, log_likelihood=value)


def add(values: list[float]) -> float:
    return tree_sum(map(stats, values)).log_likelihood


def draw_cut(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A random cut of 0 … n − 1 into aligned blocks; the last one ends with n."""
    blocks, first = [], 0
    while first < n:
        largest = first & -first if first else 1 << n.bit_length()
        size = 1 << int(rng.integers(largest.bit_length()))
        blocks.append((first, min(first + size, n)))
        first += size
    return blocks


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=80), st.integers(0, 2**32))
def test_every_cut_into_aligned_blocks_gives_the_same_bits(values, seed):
    blocks = draw_cut(len(values), np.random.default_rng(seed))
    parts = (stats(add(values[first:last])) for first, last in blocks)
    total = tree_sum(parts, (last - first for first, last in blocks))
    assert total.log_likelihood == add(values)


def test_blocks_that_are_not_aligned_do_not():
    parts = [VALUES[:3], VALUES[3:9], VALUES[9:]]
    total = tree_sum((stats(add(part)) for part in parts), map(len, parts))
    assert total.log_likelihood != add(VALUES)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=70).map(sorted) | st.lists(st.integers(0, 3)),
    st.integers(0, 7),
)
def test_blocks_are_aligned_and_have_one_owner(owners, level):
    which = [100 + position for position in range(len(owners))]
    blocks = cut_blocks(which, lambda shard: owners[shard - 100], 1 << level)
    assert [shard for block in blocks for shard in block] == which
    first = 0
    for block in blocks:
        size = 1 << (len(block) - 1).bit_length()
        assert len(block) == size or first + len(block) == len(owners)
        assert first % size == 0
        assert size <= 1 << level
        assert len({owners[shard - 100] for shard in block}) == 1
        first += len(block)


def test_blocks_are_as_large_as_can_be():
    assert cut_blocks(range(64), lambda shard: 0, 64) == [tuple(range(64))]
    assert [len(block) for block in cut_blocks(range(48), lambda s: s // 24, 64)] == [16, 8, 8, 16]
    assert len(cut_blocks(range(100_000), lambda shard: shard // 50_000, 1 << 20)) < 20


def test_states_are_taken_off_and_kept():
    kept = {}
    parts = [(3, "c", None), (5, "e", 4)]
    total = add_up(count_visits, {}, EStep(), parts, kept.__setitem__)
    assert (total.score, total.local, kept) == (4, None, {3: 1, 5: 5})
    kept.clear()
    add_up(count_visits, {}, EStep(score_only=True), parts, kept.__setitem__)
    assert kept == {}
