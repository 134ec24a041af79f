"""The average that touches the columns of a mini-batch alone, against the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core import types
from softcount.core.errors import LearnerError
from softcount.core.records import pack, unpack
from softcount.core.types import Stats
from softcount.engines.blocks import tree_sum
from softcount.families import Categorical, SparseCategorical
from softcount.families.base import CountAverage
from softcount.families.columns import (
    ColumnAverage,
    ColumnCounts,
    Columns,
    LazyColumns,
    take_columns,
)

ETAS = st.lists(st.sampled_from([0.01, 0.5, 0.9, 1.0 - 1e-12, 1.0]), min_size=1, max_size=40)
WORDS = st.sampled_from(["maximise", "mean_field"])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_family(source: np.random.Generator, kind: str, least: float) -> Columns:
    shape = int(source.integers(1, 5)), int(source.integers(1, 9))
    priors = {
        "number": least + float(source.choice([0.0, 0.7])),
        "rows": least + source.random(shape[0]),
        "entries": least + source.random(shape) * (source.random(shape) < 0.5),
    }
    frozen = source.random(shape[0]) < 0.3 if source.random() < 0.5 else None
    return Columns(shape, priors[kind], frozen=frozen)


def random_batch(family: Columns, source: np.random.Generator) -> tuple[ColumnCounts, np.ndarray]:
    """Counts of some columns, which may be none; and the same as a table."""
    rows, columns = family.shape
    few = np.flatnonzero(source.random(columns) < 0.4)
    value = source.exponential(size=(len(few), rows)) * (source.random((len(few), rows)) < 0.8)
    every = np.zeros(family.shape)
    every[:, few] = value.T
    return ColumnCounts(few, value, columns), every


@given(
    st.integers(0, 2**32),
    WORDS,
    st.sampled_from(["number", "rows", "entries"]),
    ETAS,
    st.booleans(),
)
def test_lazy_equals_dense(seed, word, kind, etas, dense_batches):
    source = rng(seed)
    family = random_family(source, kind, 1.0 if word == "maximise" else 0.05)
    lazy, dense = family.running(), CountAverage(family)
    one = two = family.random(source)
    for eta in etas:
        batch, every = random_batch(family, source)
        lazy.blend(every if dense_batches else batch, eta)
        dense.blend(every, eta)
        one, two = lazy.params(word, one, source), dense.params(word, two, source)
        assert isinstance(one, LazyColumns)
        few = source.permutation(family.shape[1])[: source.integers(0, family.shape[1] + 1)]
        assert take_columns(one, few) == pytest.approx(two[:, few].T, rel=1e-9, abs=1e-13)
        assert np.asarray(one) == pytest.approx(two, rel=1e-9, abs=1e-13)
        assert len(one) == len(two)
        assert one[-1] == pytest.approx(two[-1], rel=1e-9, abs=1e-13)
        assert lazy.counts() == pytest.approx(dense.counts(), rel=1e-9, abs=1e-13)
        assert np.array_equal(np.asarray(one)[family.held_rows], two[family.held_rows])


@given(st.integers(0, 2**32), ETAS)
def test_rows_without_counts_keep_what_they_began_with(seed, etas):
    """A flat prior says nothing of a row that has never had any."""
    source = rng(seed)
    family = Columns((3, 5))
    lazy, dense, one = family.running(), CountAverage(family), family.random(source)
    two = one
    for eta in etas:
        batch, every = random_batch(family, source)
        batch.value[:, 1], every[1] = 0.0, 0.0
        lazy.blend(batch, eta)
        dense.blend(every, eta)
        one, two = lazy.params("maximise", one, source), dense.params("maximise", two, source)
        assert np.asarray(one) == pytest.approx(two, rel=1e-9, abs=1e-13)


def test_rows_that_lose_all_counts_keep_what_they_had():
    family, source = Columns((2, 2)), rng()
    lazy, params = family.running(), family.random(source)
    for table in ([[1.0, 3.0], [4.0, 1.0]], [[2.0, 2.0], [0.0, 0.0]]):
        lazy.blend(np.array(table), 1.0)
        params = lazy.params("maximise", params, source)
    assert np.asarray(params) == pytest.approx(np.array([[0.5, 0.5], [0.8, 0.2]]))


def test_the_scale_is_put_back_before_it_vanishes():
    family = Columns((1, 4))
    lazy, source = family.running(), rng()
    batch = ColumnCounts(np.array([2, 3]), np.array([[1.0], [1.0]]), 4)
    lazy.blend(np.array([[1.0, 3.0, 0.0, 0.0]]), 1.0)
    params, dense = family.uniform(), CountAverage(family)
    dense.blend(np.array([[1.0, 3.0, 0.0, 0.0]]), 1.0)
    for _ in range(3000):  # 0.7^3000 is no float64
        lazy.blend(batch, 0.3)
        dense.blend(np.array([[0.0, 0.0, 1.0, 1.0]]), 0.3)
        assert lazy.scale >= 1e-100
    params = np.asarray(lazy.params("maximise", params, source))
    assert params == pytest.approx(np.array([[0.0, 0.0, 0.5, 0.5]]))
    assert lazy.counts() == pytest.approx(dense.counts(), rel=1e-9)
    assert lazy.totals == pytest.approx(dense.counts().sum(axis=1))


def test_small_steps_for_a_long_time():
    """Thousands of blends leave no more than rounding between totals and what they add up to."""
    family, source = Columns((3, 30), prior=0.1), rng(1)
    lazy, dense = family.running(), CountAverage(family)
    for t in range(1, 5000):
        batch, every = random_batch(family, source)
        eta = (t + 2.0) ** -0.7
        lazy.blend(batch, eta)
        dense.blend(every, eta)
    assert lazy.totals == pytest.approx(lazy.counts().sum(axis=1), rel=1e-11)
    one, two = (run.params("mean_field", family.uniform(), source) for run in (lazy, dense))
    assert np.asarray(one) == pytest.approx(two, rel=1e-9)


def test_a_batch_leaves_the_rest_of_the_table_alone():
    family = Columns((2, 3))
    lazy = family.running()
    lazy.blend(np.ones((2, 3)), 0.5)
    before = lazy.sum.copy()
    lazy.blend(ColumnCounts(np.array([1]), np.array([[2.0, 3.0]]), 3), 0.25)
    assert np.argwhere(lazy.sum != before)[:, 0].tolist() == [1, 1]


def test_counts_of_columns_can_be_scaled():
    counts = ColumnCounts(np.array([0, 2]), np.array([[1.0, 2.0], [3.0, 4.0]]), 3) * 2.5
    assert counts.columns.tolist() == [0, 2]
    assert counts.value.tolist() == [[2.5, 5.0], [7.5, 10.0]]


@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_sums_are_those_of_dense_tables(seed, n, most):
    """Whether a sum becomes dense half-way or never."""
    source = rng(seed)
    family = Columns((int(source.integers(1, 5)), int(source.integers(1, 20))))
    parts, dense = zip(*[random_batch(family, source) for _ in range(n)], strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(types, "MOST_COLUMNS", most)
        one = tree_sum(Stats({"a": part}) for part in parts).counts["a"]
        touched = len(np.unique(np.concatenate([part.columns for part in parts])))
    two = tree_sum(Stats({"a": part}) for part in dense).counts["a"]
    assert np.asarray(one).tobytes() == two.tobytes()
    if most in (0.0, 2.0) and n > 1:
        same = all(np.array_equal(part.columns, parts[0].columns) for part in parts)
        assert isinstance(one, ColumnCounts) == (most == 2.0 or same)
    if isinstance(one, ColumnCounts):
        assert len(one.columns) == touched
        assert np.all(np.diff(one.columns) > 0)


def test_a_sum_is_dense_once_it_touches_half_of_the_columns():
    one, two, three = (ColumnCounts(np.array([c]), np.ones((1, 2)), 6) for c in (4, 0, 5))
    assert isinstance(one + two, ColumnCounts)
    assert isinstance(one + two + three, np.ndarray)
    assert isinstance(one + one, ColumnCounts)


def test_sums_with_a_table_are_tables():
    counts = ColumnCounts(np.array([0, 2]), np.array([[1.0, 2.0], [3.0, 4.0]]), 3)
    table = np.ones((2, 3))
    for total in (counts + table, table + counts):
        assert total.tolist() == [[2.0, 1.0, 4.0], [3.0, 1.0, 5.0]]
    assert table.sum() == 6.0
    assert np.asarray(counts, np.float32).dtype == np.float32


@given(st.integers(0, 2**32), st.sampled_from(["number", "rows", "entries"]))
def test_families_take_them_for_tables(seed, kind):
    source = rng(seed)
    family = random_family(source, kind, 1.0)
    plain = Categorical(
        family.shape, family.alpha, frozen=family.held_rows, mask=source.random(family.shape) < 0.7
    )
    counts, every = random_batch(family, source)
    for one in (family, plain):
        old = one.random(rng(seed))
        for word in ("maximise", "mean_field", "draw"):
            update = getattr(one, word)
            assert update(counts, old, rng(1)).tobytes() == update(every, old, rng(1)).tobytes()
        assert one.mean(counts, old).tobytes() == one.mean(every, old).tobytes()
        assert one.divergence(counts, old) == one.divergence(every, old)
        expected = one.expected_log(every, old)
        assert one.expected_log(counts, old) == pytest.approx(expected, rel=1e-12)
        average, dense = CountAverage(one), CountAverage(one)
        for eta in (1.0, 0.3):
            average.blend(counts, eta)
            dense.blend(every, eta)
        assert average.counts().tobytes() == dense.counts().tobytes()


def test_the_average_of_sparse_rows_takes_them_for_tables():
    family = SparseCategorical(np.array([0, 3, 6]))
    counts = ColumnCounts(np.array([1]), np.array([[2.0, 5.0]]), 3)
    one, two = family.running(), family.running()
    for eta in (1.0, 0.25):
        one.blend(counts, eta)
        two.blend(np.asarray(counts).reshape(-1), eta)
    assert one.counts().tobytes() == two.counts().tobytes()
    assert one.totals.tobytes() == two.totals.tobytes()


def test_they_are_records():
    counts = ColumnCounts(np.array([0, 2]), np.array([[1.0, 2.0], [3.0, 4.0]]), 3)
    again = unpack(*pack(counts))
    assert isinstance(again, ColumnCounts)
    assert np.asarray(again).tobytes() == np.asarray(counts).tobytes()


@pytest.mark.parametrize("word", ["maximise", "mean_field"])
def test_a_table_says_when_it_is_out_of_date(word):
    family = Columns((1, 2))
    lazy = family.running()
    lazy.blend(np.ones((1, 2)), 0.5)
    table = lazy.params(word, family.uniform(), rng())
    assert table.take(np.array([1])).shape == (1, 1)
    lazy.blend(ColumnCounts(np.array([0]), np.array([[1.0]]), 2), 0.5)
    for look in (lambda: table.take(np.array([1])), lambda: np.asarray(table)):
        with pytest.raises(LearnerError, match="out of date"):
            look()


def test_draws_masks_and_ties_come_dense():
    family = Columns((2, 2), 0.7)
    lazy = family.running()
    lazy.blend(ColumnCounts(np.array([1]), np.array([[1.0, 2.0]]), 2), 0.5)
    drawn = lazy.params("draw", family.uniform(), rng(3))
    expected = family.draw(np.array([[0.0, 0.5], [0.0, 1.0]]), family.uniform(), rng(3))
    assert np.array_equal(drawn, expected)
    for more in ({"mask": np.array([[True, False], [True, True]])}, {"tied": np.array([0, 0])}):
        assert type(Columns((2, 2), **more).running()) is CountAverage
    assert type(Columns((2, 2), frozen=np.array([True, False])).running()) is ColumnAverage


def test_maximise_refuses_a_prior_without_mode():
    family = Columns((1, 2), prior=0.5)
    with pytest.raises(LearnerError, match="no mode"):
        family.running().params("maximise", family.uniform(), rng())


@given(st.integers(0, 2**32), st.sampled_from(["number", "rows", "entries"]))
def test_all_else_is_as_categorical_has_it(seed, kind):
    """The same bits in every method that learners call."""
    source = rng(seed)
    family = random_family(source, kind, 1.0)
    frozen = family.held_rows
    plain = Categorical(family.shape, family.alpha, frozen=frozen)
    counts, old = source.exponential(size=family.shape), family.random(rng(seed))
    assert np.array_equal(old, plain.random(rng(seed)))
    for word in ("maximise", "mean_field", "draw"):
        one, two = (getattr(f, word)(counts, old, rng(1)) for f in (family, plain))
        assert one.tobytes() == two.tobytes()
        for figure in ("log_prior", "free", "alike"):
            assert np.array_equal(getattr(family, figure)(one), getattr(plain, figure)(two))
        for figure in ("divergence", "expected_log"):
            assert getattr(family, figure)(counts, one) == getattr(plain, figure)(counts, two)
        assert family.change(old, one) == plain.change(old, two)
    assert np.array_equal(family.mean(counts, old), plain.mean(counts, old))
    assert family.n_free == plain.n_free
