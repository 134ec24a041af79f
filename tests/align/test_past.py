"""A family with a past is the family with more counts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from softcount.align.families import (
    DiagonalTension,
    JumpTable,
    SentenceShapes,
    Stems,
    StemTable,
    WithPast,
)
from softcount.core.types import SparseCounts
from softcount.families.base import Family
from softcount.families.categorical import SparseCategorical
from softcount.families.large import LargeTable

INDPTR = np.array([0, 2, 5, 5, 9])
OUTCOMES = np.array([0, 3, 1, 2, 3, 0, 1, 2, 4], np.uint16)
PLACES = SentenceShapes.of(np.array([2, 3]), np.array([2, 2]))


def family(kind: str) -> Family:
    if kind == "large":
        return LargeTable(INDPTR, OUTCOMES, 1.3)
    if kind == "half":
        return LargeTable(INDPTR, OUTCOMES, 1.3, dtype="float32")
    if kind == "held":
        mask = np.array([True, False, *[True] * 7])
        frozen = np.array([False, True, False, False])
        return LargeTable(INDPTR, OUTCOMES, 1.3, mask, frozen)
    if kind == "sparse":
        return SparseCategorical(INDPTR, 1.3)
    if kind == "stems":
        stems = Stems.of(
            ["aa", "ab", "b"], ["x", "xx", "y", "yy", "z"], np.arange(1, 6), 1, 2.0, 0.3
        )
        return StemTable(INDPTR, OUTCOMES, 1.3, stems=stems)
    if kind == "jumps":
        return JumpTable(2, np.array([2, 4]), 1.2)
    return DiagonalTension(PLACES)


KINDS = ("large", "half", "held", "sparse", "stems", "jumps", "tension")
every_kind = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 10**6)


def drawn(own: Family, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts of the past, counts of today, and parameters."""
    rng = np.random.default_rng(seed)
    past, counts = (5.0 * rng.random(own.zeros().shape) for _ in range(2))
    return past, counts * (rng.random(counts.shape) < 0.7), own.random(rng)


def forms(kind: str, counts: np.ndarray) -> list[Any]:
    """Counts as E-steps give them."""
    if kind in ("jumps", "tension"):
        return [counts]
    index = np.flatnonzero(counts)
    return [counts, SparseCounts(index, counts[index], len(counts))]


@every_kind
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_parameters(kind: str, seed: int) -> None:
    own = family(kind)
    past, counts, old = drawn(own, seed)
    before = past.copy()
    remembering = WithPast(own, past)
    for given_ in forms(kind, counts):
        for word in ("maximise", "mean_field", "draw"):
            expected = getattr(own, word)(counts + past, old, np.random.default_rng(1))
            found = getattr(remembering, word)(given_, old, np.random.default_rng(1))
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=word)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(remembering.mean(given_, old), own.mean(counts + past, old))
    assert np.array_equal(past, before)


@every_kind
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_without_a_past_it_is_the_family(kind: str, seed: int) -> None:
    own = family(kind)
    _, counts, old = drawn(own, seed)
    bare = WithPast(own, own.zeros())
    found, expected = (f.maximise(counts, old, np.random.default_rng(1)) for f in (bare, own))
    assert np.array_equal(found, expected)
    assert bare.log_prior(old) == pytest.approx(own.log_prior(old))
    assert bare.divergence(counts, old) == pytest.approx(own.divergence(counts, old))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_objective_knows_the_past(seed: int) -> None:
    own = LargeTable(INDPTR, OUTCOMES, 1.3)
    past, counts, old = drawn(own, seed)
    remembering = WithPast(own, past)
    expected = float(((0.3 + past) * np.log(old)).sum())
    assert remembering.log_prior(old) == pytest.approx(expected)
    assert remembering.expected_log(counts, old) == pytest.approx(float(xlogy(counts, old).sum()))


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_bound_of_variational_bayes(seed: int) -> None:
    """The past's words are data: the bound is that of all of them, with its words' price paid."""
    own = LargeTable(INDPTR, OUTCOMES, 0.7)
    past, counts, old = drawn(own, seed)
    remembering = WithPast(own, past)
    field = remembering.mean_field(counts, old, np.random.default_rng(0))
    whole = own.divergence(counts + past, field) - float((past * np.log(field)).sum())
    assert remembering.divergence(counts, field) == pytest.approx(whole)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_m_steps_climb_the_objective(seed: int) -> None:
    """⟨counts, log θ⟩ + log prior is highest where `maximise` says."""
    own = LargeTable(INDPTR, OUTCOMES, 1.3)
    past, counts, old = drawn(own, seed)
    remembering = WithPast(own, past)

    def height(params: np.ndarray) -> float:
        return remembering.expected_log(counts, params) + remembering.log_prior(params)

    best = remembering.maximise(counts, old, np.random.default_rng(0))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert height(best) >= height(own.random(rng)) - 1e-9


@every_kind
def test_stepwise_averages(kind: str) -> None:
    """Blends are of today's counts; the past is added when parameters are made."""
    own = family(kind)
    past, counts, old = drawn(own, 4)
    more = drawn(own, 5)[1]
    average = WithPast(own, past).running()
    for each, eta in ((counts, 1.0), (more, 0.25)):
        average.blend(each, eta)
    blended = 0.75 * counts + 0.25 * more
    np.testing.assert_allclose(average.counts(), blended)
    found = np.asarray(average.params("maximise", old, np.random.default_rng(0)))
    expected = own.maximise(blended + past, old, np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_kind
def test_all_else_is_the_family(kind: str) -> None:
    own = family(kind)
    remembering: Any = WithPast(own, own.zeros())
    params = own.random(np.random.default_rng(2))
    assert remembering.n_free == own.n_free
    assert remembering.param_shape == own.param_shape
    assert remembering.zeros().shape == own.zeros().shape
    assert np.array_equal(remembering.uniform(), own.uniform())
    assert np.array_equal(remembering.random(np.random.default_rng(2)), params)
    assert np.array_equal(remembering.free(params), own.free(params))
    assert np.array_equal(
        remembering.bound(own.free(params), params), own.bound(own.free(params), params)
    )
    assert remembering.sound(params)
    assert np.array_equal(remembering.proper(params), own.proper(params))
    assert remembering.alike(params) == own.alike(params)
    assert np.array_equal(remembering.average([params, params]), own.average([params, params]))
    assert remembering.entropy(params) == pytest.approx(own.entropy(params), nan_ok=True)
    assert remembering.change(params, own.uniform()) == own.change(params, own.uniform())


def test_a_model_finds_what_its_family_has() -> None:
    remembering: Any = WithPast(LargeTable(INDPTR, OUTCOMES), np.zeros(9))
    assert remembering.n_entries == 9
    with pytest.raises(AttributeError, match="nonsense"):
        _ = remembering.nonsense


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_remember_as_well(again: Any) -> None:
    own = LargeTable(INDPTR, OUTCOMES)
    past, counts, old = drawn(own, 3)
    found = again(WithPast(own, past)).maximise(counts, old, np.random.default_rng(0))
    assert np.array_equal(found, own.maximise(counts + past, old, np.random.default_rng(0)))
