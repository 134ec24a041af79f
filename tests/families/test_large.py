"""A large table is a sparse table: every method, however it is cut into blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import LearnerError
from softcount.core.types import SparseCounts
from softcount.families.categorical import SparseCategorical
from softcount.families.large import LargeTable

Array = np.ndarray


class Pair(NamedTuple):
    """The same table twice, with counts and old parameters."""

    large: LargeTable
    plain: SparseCategorical
    counts: Array
    old: Array


def pair(
    seed: int, prior: str, mask: bool, frozen: bool, block: int, dtype: str = "float64"
) -> Pair:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, int(rng.integers(1, 9)))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    n = int(indptr[-1])
    priors: dict[str, Any] = {
        "flat": 1.0,
        "smooth": 1.4,
        "rows": rng.uniform(1.0, 2.0, len(lengths)),
        "entries": rng.uniform(1.0, 2.0, n),
        "sparse": 0.3,
    }
    chosen = priors[prior]
    if prior == "rows" and len(lengths) == n:
        chosen = np.repeat(chosen, lengths)  # could be read as one an entry
    options: dict[str, Any] = {
        "prior": chosen,
        "mask": rng.random(n) < 0.7 if mask else None,
        "frozen": rng.random(len(lengths)) < 0.3 if frozen else None,
    }
    outcomes = np.concatenate(
        [np.zeros(0, int), *(np.sort(rng.permutation(9)[:m]) for m in lengths)]
    )
    plain = SparseCategorical(indptr, outcomes=outcomes, **options)
    large = LargeTable(indptr, outcomes.astype(np.uint16), dtype=dtype, block=block, **options)
    counts = 4.0 * rng.random(n) * (rng.random(n) < 0.6)
    return Pair(large, plain, counts, plain.random(rng))


pairs = st.builds(
    pair,
    st.integers(0, 10**6),
    st.sampled_from(["flat", "smooth", "rows", "entries"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 8, 1 << 20]),
)


def forms(case: Pair) -> list[Any]:
    """The same counts in both forms."""
    index = np.flatnonzero(case.counts)
    return [case.counts, SparseCounts(index, case.counts[index], len(case.counts))]


@given(pairs)
@settings(max_examples=120, deadline=None)
def test_counts_become_parameters_in_the_same_way(case: Pair) -> None:
    rng = np.random.default_rng(0)
    for counts in forms(case):
        for word in ("maximise", "mean_field"):
            expected = getattr(case.plain, word)(case.counts, case.old, rng)
            found = getattr(case.large, word)(counts, case.old, rng)
            np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=word)
        expected = case.plain.mean(case.counts, case.old)
        np.testing.assert_allclose(case.large.mean(counts, case.old), expected, rtol=1e-13)


@given(pairs)
@settings(max_examples=60, deadline=None)
def test_counts_become_parameters_in_place(case: Pair) -> None:
    rng = np.random.default_rng(0)
    wanted = case.large.maximise(case.counts, case.old, rng)
    counts = case.counts.copy()
    found = case.large.consume("maximise", counts, case.old, rng)
    assert found is counts
    assert found.tobytes() == wanted.tobytes()


@given(pairs)
@settings(max_examples=120, deadline=None)
def test_terms_of_the_objective(case: Pair) -> None:
    rng = np.random.default_rng(0)
    params = case.plain.mean_field(case.counts, case.old, rng)
    assert case.large.log_prior(case.old) == pytest.approx(case.plain.log_prior(case.old))
    for counts in forms(case):
        expected = case.plain.divergence(case.counts, params)
        assert case.large.divergence(counts, params) == pytest.approx(expected, abs=1e-10)
        expected = case.plain.expected_log(case.counts, case.old)
        assert case.large.expected_log(counts, case.old) == pytest.approx(expected, abs=1e-10)


@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from([1, 3, 1 << 20]))
@settings(max_examples=60, deadline=None)
def test_a_prior_below_one(seed: int, mask: bool, frozen: bool, block: int) -> None:
    case = pair(seed, "sparse", mask, frozen, block)
    rng = np.random.default_rng(0)
    expected = case.plain.mean_field(case.counts, case.old, rng)
    for counts in forms(case):
        found = case.large.mean_field(counts, case.old, rng)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    if not case.plain.has_mode:
        with pytest.raises(LearnerError, match="no mode"):
            case.large.maximise(case.counts, case.old, rng)


@given(pairs)
@settings(max_examples=80, deadline=None)
def test_starts_and_geometry(case: Pair) -> None:
    large, plain = case.large, case.plain
    assert np.array_equal(large.uniform(), plain.uniform())
    assert np.array_equal(large.zeros(), plain.zeros())
    assert large.param_shape == plain.param_shape
    assert large.n_free == plain.n_free
    ours, theirs = (t.random(np.random.default_rng(1)) for t in (large, plain))
    assert np.array_equal(ours, theirs)
    free = plain.free(case.old)
    np.testing.assert_allclose(large.free(case.old), free)
    np.testing.assert_allclose(large.bound(free, case.old), plain.bound(free, case.old))
    assert large.change(case.old, ours) == plain.change(case.old, ours)
    assert large.average([case.old, ours]) == pytest.approx(plain.average([case.old, ours]))


@given(pairs, st.floats(0.2, 3.0))
@settings(max_examples=80, deadline=None)
def test_starts_are_made_proper(case: Pair, factor: float) -> None:
    """Rows of weights are scaled down, smaller ones stay; row by row, whatever the blocks.

    Of a sparse table all rows are scaled if one is too large; a large one scales block by block.
    """
    given_ = factor * case.old
    made = case.large.proper(given_)
    borders = case.large.indptr
    sums = np.array([made[a:b].sum() for a, b in pairwise(borders)])
    frozen = case.large.held_rows
    assert (sums[~frozen] <= 1.0 + 1e-9).all()
    if factor <= 1.0:
        assert np.array_equal(made, given_)
    assert case.large.sound(given_)
    assert not len(given_) or not case.large.sound(given_ - 10.0)


@given(pairs)
@settings(max_examples=60, deadline=None)
def test_rows_that_are_alike(case: Pair) -> None:
    assert case.large.alike(case.old) == case.plain.alike(case.old)
    even = case.plain.uniform()
    assert case.large.alike(even) == case.plain.alike(even)


def test_rows_with_the_same_outcomes_are_alike() -> None:
    table = LargeTable(np.array([0, 2, 4, 6]), np.array([0, 3, 0, 3, 0, 3]))
    same = np.tile([0.2, 0.8], 3)
    assert table.alike(same) is True
    same[-2:] = 0.3, 0.7
    assert table.alike(same) is False
    other = LargeTable(np.array([0, 2, 4]), np.array([0, 3, 0, 4]))
    assert other.alike(np.tile([0.2, 0.8], 2)) is False


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_draws_in_one_block_are_the_same_draws(seed: int, mask: bool, frozen: bool) -> None:
    case = pair(seed, "smooth", mask, frozen, 1 << 20)
    expected = case.plain.draw(case.counts, case.old, np.random.default_rng(3))
    for counts in forms(case):
        found = case.large.draw(counts, case.old, np.random.default_rng(3))
        assert np.array_equal(found, expected)


def test_draws_in_many_blocks_have_the_same_mean() -> None:
    case = pair(5, "smooth", True, True, 2)
    assert len(case.large.blocks) > 2
    rng, n = np.random.default_rng(0), 1500
    drawn = np.array([case.large.draw(case.counts, case.old, rng) for _ in range(n)])
    error = 5.0 * drawn.std(axis=0) / np.sqrt(n)
    expected = case.plain.mean(case.counts, case.old)
    assert (np.abs(drawn.mean(axis=0) - expected) <= error + 1e-12).all()


@given(st.integers(0, 10**6), st.sampled_from(["flat", "smooth", "entries"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_half_the_bits(seed: int, prior: str, mask: bool) -> None:
    short = pair(seed, prior, mask, False, 3, "float32")
    rng = np.random.default_rng(0)
    for word in ("maximise", "mean_field"):
        expected = getattr(short.plain, word)(short.counts, short.old, rng)
        found = getattr(short.large, word)(short.counts, short.old.astype(np.float32), rng)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert short.large.uniform().dtype == short.large.random(rng).dtype == np.float32


@given(pairs, st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_running_averages(case: Pair, seed: int) -> None:
    """Stepwise learning: blends of counts in any form."""
    rng = np.random.default_rng(seed)
    ours, theirs = case.large.running(), case.plain.running()
    for eta in (1.0, 0.6, 0.3):
        more = np.where(rng.random(len(case.counts)) < 0.5, rng.random(len(case.counts)), 0.0)
        index = np.flatnonzero(more)
        ours.blend(SparseCounts(index, more[index], len(more)), eta)
        theirs.blend(more, eta)
        np.testing.assert_allclose(ours.counts(), theirs.counts(), atol=1e-13)
        expected = np.asarray(theirs.params("maximise", case.old, rng))
        found = np.asarray(ours.params("maximise", case.old, rng))
        np.testing.assert_allclose(found, expected, atol=1e-13)


@given(pairs)
@settings(max_examples=40, deadline=None)
def test_entropy(case: Pair) -> None:
    """The mean over rows that can have any."""
    borders = case.large.indptr
    rows = [case.old[a:b] for a, b in pairwise(borders)]
    each = [-sum(p * np.log2(p) for p in row if p > 0.0) for row in rows]
    having = int((case.plain.support > 0).sum())
    assert case.large.entropy(case.old) == pytest.approx(sum(each) / max(having, 1), abs=1e-12)


def test_outcomes_must_fit() -> None:
    with pytest.raises(LearnerError, match="2 outcomes for 3 entries"):
        LargeTable(np.array([0, 3]), np.array([0, 1]))
