"""The lazily scaled average against the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.errors import LearnerError
from softcount.core.types import SparseCounts
from softcount.families import SparseCategorical
from softcount.families.base import CountAverage
from softcount.families.categorical import LazyTable


def random_family(source: np.random.Generator, prior: float) -> SparseCategorical:
    lengths = source.integers(0, 5, size=6)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    mask = source.random(indptr[-1]) < 0.85
    priors = prior + source.random(indptr[-1]) * (source.random() < 0.5)
    return SparseCategorical(indptr, priors, mask, frozen=source.random(6) < 0.2)


def random_batch(family: SparseCategorical, source: np.random.Generator) -> SparseCounts:
    index = np.flatnonzero(source.random(family.n_entries) < 0.4)
    return SparseCounts(index, source.exponential(size=len(index)), family.n_entries)


@given(
    st.integers(0, 2**32),
    st.sampled_from(["maximise", "mean_field"]),
    st.lists(st.sampled_from([0.01, 0.5, 0.9, 1.0 - 1e-12, 1.0]), min_size=1, max_size=40),
    st.booleans(),
)
def test_lazy_equals_dense(seed, word, etas, dense_batches):
    source = np.random.default_rng(seed)
    family = random_family(source, 1.0)
    lazy, dense = family.running(), CountAverage(family)
    one = two = family.random(source)
    for eta in etas:
        batch = random_batch(family, source)
        given_batch = np.asarray(batch) if dense_batches else batch
        lazy.blend(given_batch, eta)
        dense.blend(given_batch, eta)
        one, two = lazy.params(word, one, source), dense.params(word, two, source)
        assert np.asarray(one) == pytest.approx(two, rel=1e-12, abs=1e-12)
        assert lazy.counts() == pytest.approx(dense.counts(), rel=1e-12, abs=1e-300)
        some = batch.index
        assert one[some] == pytest.approx(two[some], rel=1e-12, abs=1e-12)


def test_the_scale_is_put_back_before_it_vanishes():
    family = SparseCategorical(np.array([0, 2, 4]))
    lazy, source = family.running(), np.random.default_rng(0)
    batch = SparseCounts(np.array([2, 3]), np.array([1.0, 1.0]), 4)
    lazy.blend(SparseCounts(np.array([0, 1]), np.array([1.0, 3.0]), 4), 0.5)
    params = family.uniform()
    for _ in range(2000):  # 2^-2000 is no float64: what was seen first must still not be lost
        params = lazy.params("maximise", params, source)
        lazy.blend(batch, 0.5)
    params = lazy.params("maximise", params, source)
    assert lazy.scale > 1e-101
    assert np.asarray(params) == pytest.approx([0.25, 0.75, 0.5, 0.5])


def test_a_batch_leaves_the_rest_of_the_table_alone():
    family = SparseCategorical(np.array([0, 3, 6]))
    lazy = family.running()
    lazy.blend(np.ones(6), 0.5)
    before = lazy.sum.copy()
    lazy.blend(SparseCounts(np.array([1]), np.array([2.0]), 6), 0.25)
    assert np.flatnonzero(lazy.sum != before).tolist() == [1]


def test_a_table_reads_like_an_array():
    family = SparseCategorical(np.array([0, 2, 4]), prior=2.0)
    lazy, source = family.running(), np.random.default_rng(0)
    lazy.blend(SparseCounts(np.array([0]), np.array([2.0]), 4), 0.5)
    table = lazy.params("maximise", family.uniform(), source)
    whole = np.array([2 / 3, 1 / 3, 0.5, 0.5])
    assert isinstance(table, LazyTable)
    assert table.shape == (4,)
    assert len(table) == 4
    assert np.asarray(table) == pytest.approx(whole)
    assert float(table[0]) == pytest.approx(2 / 3)
    for index in (slice(1, 3), [3, 0], np.array([-1, -4]), np.array([True, False, True, False])):
        assert table[index] == pytest.approx(whole[index])
    counts = SparseCounts(np.array([1]), np.array([3.0]), 4)
    assert family.expected_log(counts, table) == pytest.approx(3 * np.log(1 / 3))
    assert family.change(family.uniform(), table) == pytest.approx(1 / 6)


def test_a_table_says_when_it_is_out_of_date():
    family = SparseCategorical(np.array([0, 2]))
    lazy = family.running()
    lazy.blend(np.ones(2), 0.5)
    table = lazy.params("maximise", family.uniform(), np.random.default_rng(0))
    lazy.blend(np.ones(2), 0.5)
    with pytest.raises(LearnerError, match="out of date"):
        table[0]


def test_draws_and_ties_come_dense():
    tied = SparseCategorical(np.array([0, 2, 4]), tied=np.array([0, 0]))
    average, source = tied.running(), np.random.default_rng(0)
    average.blend(SparseCounts(np.array([0, 3]), np.array([1.0, 3.0]), 4), 0.5)
    fitted = average.params("maximise", tied.uniform(), source)
    assert isinstance(fitted, np.ndarray)
    assert fitted == pytest.approx([0.25, 0.75, 0.25, 0.75])
    family = SparseCategorical(np.array([0, 2]))
    lazy = family.running()
    lazy.blend(np.array([1.0, 2.0]), 0.5)
    drawn = lazy.params("draw", family.uniform(), np.random.default_rng(3))
    expected = family.draw(np.array([0.5, 1.0]), family.uniform(), np.random.default_rng(3))
    assert np.array_equal(drawn, expected)


def test_lazy_maximise_refuses_a_prior_without_mode():
    family = SparseCategorical(np.array([0, 2]), prior=0.5)
    with pytest.raises(LearnerError, match="no mode"):
        family.running().params("maximise", family.uniform(), np.random.default_rng(0))
