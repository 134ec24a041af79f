"""Sums of sparse counts are those of the tables, to the bit, in whatever form they come."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core import types
from softcount.core.types import SparseCounts

SIZE = 40
entries = st.lists(st.integers(0, SIZE - 1), max_size=SIZE, unique=True).map(sorted)
kinds = st.sampled_from([np.int32, np.int64])
floats = st.sampled_from([np.float64, np.float32])


def counts(index: list[int], seed: int, kind: type = np.int64, value: type = float) -> SparseCounts:
    rng = np.random.default_rng(seed)
    return SparseCounts(np.array(index, kind), rng.exponential(size=len(index)).astype(value), SIZE)


@given(entries, entries, kinds, kinds, floats, floats)
def test_a_sum_is_that_of_the_tables(left, right, kind, other_kind, value, other_value):
    one, two = counts(left, 1, kind, value), counts(right, 2, other_kind, other_value)
    total = one + two
    assert isinstance(total, SparseCounts)
    assert total.index.tolist() == sorted({*left, *right})
    expected = np.asarray(one) + np.asarray(two)
    assert total.value.dtype == expected.dtype
    assert np.asarray(total).tobytes() == expected.tobytes()


@given(entries, entries, entries, floats)
def test_a_sum_that_becomes_dense_has_the_same_bits(a, b, c, value):
    """Of tables of any size, from any fraction of it on."""
    parts = [counts(index, n, value=value) for n, index in enumerate((a, b, c))]
    sparse = np.asarray(reduce(add, parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(types, "LARGE", 1)
        for much in (0.0, 0.5, 1.0, 2.0):
            patch.setattr(types, "MUCH", much)
            total = reduce(add, parts)
            assert np.asarray(total).tobytes() == sparse.tobytes()
            first = parts[0] + parts[1]
            if a != b:
                assert isinstance(first, np.ndarray) == (len(a) + len(b) > much * SIZE)


def test_what_becomes_dense_depends_on_the_table():
    """Half of a large table is dense; a small one stays sparse."""
    for size, is_dense in ((types.LARGE, True), (types.LARGE - 1, False)):
        half = size // 2 + 1
        parts = [
            SparseCounts(
                np.arange(first, half, 2, dtype=np.int32), np.ones(-(-(half - first) // 2)), size
            )
            for first in (0, 1)
        ]
        assert isinstance(parts[0] + parts[1], np.ndarray) == is_dense


@given(entries, floats, st.booleans())
def test_dense_and_sparse(index, value, flat):
    part = counts(index, 3, value=value)
    table = np.random.default_rng(4).random(SIZE if flat else (8, SIZE // 8))
    before = table.copy()
    expected = (table.reshape(-1) + np.asarray(part)).reshape(table.shape)
    assert (table + part).tobytes() == expected.tobytes()
    assert (part + table).tobytes() == expected.tobytes()
    assert (part + table).shape == table.shape
    assert np.array_equal(table, before)


def test_the_parts_of_a_sum_do_not_change():
    one, two = counts([1, 4, 7], 1), counts([4, 9], 2)
    kept = [(part.index.copy(), part.value.copy()) for part in (one, two)]
    total = one + two
    total.value[:] = 0.0
    for part, (index, value) in zip((one, two), kept, strict=True):
        assert np.array_equal(part.index, index)
        assert np.array_equal(part.value, value)
