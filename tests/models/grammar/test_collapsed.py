"""Collapsed trees against enumeration of all trees of all sentences, and log-gammas."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.engines import Local
from softcount.errors import ImpossibleItem, LearnerError
from softcount.families import Categorical
from softcount.fit import fit
from softcount.grammar import gibbs as kernel
from softcount.grammar.data import Shard
from tests.models.grammar.tree_cases import (
    NAMES,
    Case,
    one_sweep_on,
    sampler_of,
    small_case,
    state_of,
)
from tests.oracles.chance import surprise

SMALL = small_case(1, 2, [[0, 1, 0], [], [1, 0]])
CASES = [SMALL, small_case(2, 2, [[0, 1], [1, 0]]), small_case(1, 2, [[0, 1, 1], [1, 0], [1]])]
SIZES = [1, 3]


@st.composite
def cases(draw):
    K, T = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2)]))
    sentence = st.lists(st.integers(0, 1), max_size=3)
    sentences = draw(st.lists(sentence, min_size=1, max_size=4))
    return small_case(K, T, sentences, draw(st.sampled_from([1e-8, 0.1, 3.0])))


# what is counted
@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.3, 1.0, 4.0]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_sweep_keeps_counts_and_possible_trees(case, stream, temper, size):
    sampler, again = sampler_of(case, size=size), sampler_of(case, size=size)
    for each in (sampler, again):
        each.sweep(stream, temper)
        each.sweep(stream ^ 1, temper)
    state = state_of(sampler)
    assert state == state_of(again)
    assert all(cells in some for cells, some in zip(state, case.choices, strict=True))
    assert sampler.log_joint() == pytest.approx(case.joint(state), rel=1e-10, abs=1e-10)
    recount = Counter(cell for cells in state for cell in cells)
    found = sampler.counts()
    assert tuple(found) == NAMES
    flat = np.concatenate([found[name].ravel() for name in NAMES])
    assert {cell: n for cell, n in enumerate(flat) if n} == recount
    for name, table in found.items():
        assert table.shape == case.priors[name].shape


def test_counts_are_no_window_into_the_sampler():
    sampler = sampler_of(SMALL)
    before = sampler.log_joint()
    sampler.counts()["rules"][:] = 7.0
    assert sampler.log_joint() == before


# the posterior
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=["two sentences", "two symbols", "three sentences"])
def test_a_sweep_leaves_the_posterior_alone(case, size):
    posterior = case.posterior()
    seen = one_sweep_on(case, posterior, size)
    assert surprise(seen, posterior) < 1
    for name in ("rules", "words"):  # the test can tell
        other = case.posterior(priors=case.priors | {name: 6 * case.priors[name]})
        assert surprise(seen, other) > 1


def test_a_sweep_leaves_a_power_of_the_posterior_alone():
    posterior = SMALL.posterior(temper=0.5)
    seen = one_sweep_on(SMALL, posterior, 3, temper=0.5)
    assert surprise(seen, posterior) < 1
    assert surprise(seen, SMALL.posterior()) > 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wrong", ["all are accepted", "Q is forgotten"])
def test_other_rules_of_acceptance_would_be_found_out(wrong, size, monkeypatch):
    settle = kernel.settle

    def otherwise(old, new, possible, chances, prior, tally, number, seed, temper, accepted):
        if wrong == "all are accepted":
            temper = 0.0  # to this power all are alike
        else:
            chances = np.ones_like(chances)
        settle(old, new, possible, chances, prior, tally, number, seed, temper, accepted)

    monkeypatch.setattr(kernel, "settle", otherwise)
    posterior = SMALL.posterior()
    assert surprise(one_sweep_on(SMALL, posterior, size), posterior) > 1


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=["two sentences", "two symbols", "three sentences"])
def test_a_long_run_finds_the_posterior(case, size):
    sampler, seen, n = sampler_of(case, size=size), Counter(), 10_000
    for stream in range(n):
        sampler.sweep(stream)
        seen[state_of(sampler)] += 1
    distance = sum(abs(seen[state] / n - p) for state, p in case.posterior().items()) / 2
    assert distance < 0.08  # if all were accepted: 0.11 to 0.63


def test_impossible_entries():
    mask = np.array([[True, True], [True, False]])
    families = {"words": Categorical((2, 2), prior=SMALL.priors["words"], mask=mask)}
    case = Case(SMALL.sentences, 1, 2, SMALL.priors | {"words": SMALL.priors["words"] * mask})
    case.families = families
    posterior, without = case.posterior(), SMALL.posterior().keys() - case.posterior().keys()
    assert len(posterior) > 1
    assert surprise(one_sweep_on(case, posterior, 1, n=600), posterior) < 1
    with pytest.raises(LearnerError, match=r"sentence [02] begins with a tree"):
        sampler_of(case, without.pop())


def test_frozen_rows_keep_what_they_have():
    theta = np.array([[0.9, 0.1], [0.2, 0.8]])
    frozen = Categorical((2, 2), frozen=np.array([True, True]))
    case = replace(SMALL, families={"words": frozen})
    start = {name: family.uniform() for name, family in case.core.families.items()}
    start["words"] = theta
    surely = case.priors | {"words": 1e6 * theta}
    posterior = case.posterior(priors=surely)
    assert surprise(one_sweep_on(case, posterior, 1, n=600, start=start), posterior) < 1
    assert surprise(one_sweep_on(case, posterior, 1, n=600), posterior) > 1
    state = next(iter(posterior))
    found = sampler_of(case, state, start=start).log_joint()
    assert found == pytest.approx(case.joint(state, surely), abs=1e-4)


# blocks, threads and chance
def many(n=40):
    rng = np.random.default_rng(1)
    sentences = [rng.integers(0, 5, rng.integers(0, 9)).tolist() for _ in range(n)]
    return small_case(3, 3, sentences, n_words=5)


def begun(case, stream=3):
    start = {name: family.random(np.random.default_rng(0)) for name, family in families(case)}
    return case.core.collapse([case.shard], start, stream)


def families(case):
    return case.core.families.items()


@pytest.mark.parametrize("size", [1, 7, 40])
def test_threads_change_nothing(size):
    case = many()
    first = state_of(begun(case))
    each = [sampler_of(case, first, size, threads) for threads in (1, 2, 3)]
    for sampler in each:
        for stream in range(3):
            sampler.sweep(stream)
    assert state_of(each[0]) == state_of(each[1]) == state_of(each[2])
    assert each[0].acceptance == each[2].acceptance


def test_streams_differ():
    case = many()
    found = set()
    for stream in range(4):
        sampler = begun(case)
        sampler.sweep(stream)
        found.add(state_of(sampler))
    assert len(found) == 4
    assert state_of(begun(case)) != state_of(begun(case, stream=4))


def test_acceptance_is_the_share_of_new_trees():
    case = small_case(2, 2, [[0, 1, 1, 0, 1, 0]] * 30 + [[]] * 10)
    sampler = begun(case)
    assert math.isnan(sampler.acceptance)
    for stream in range(20):
        before = state_of(sampler)
        sampler.sweep(stream)
        changed = sum(a != b for a, b in zip(before, state_of(sampler), strict=True))
        assert changed / 30 <= sampler.acceptance <= 1.0
    assert sampler.acceptance > 0.0


def test_nothing_to_sample():
    sampler = begun(small_case(1, 1, [[], []]))
    sampler.sweep(0)
    assert state_of(sampler) == ((), ())
    assert sampler.log_joint() == 0.0
    assert math.isnan(sampler.acceptance)


def test_tiny_priors():
    case = small_case(2, 2, [[0, 1, 1, 0, 1, 0, 0, 1]] * 10, size=1e-40)
    sampler = begun(case)
    for stream in range(5):
        sampler.sweep(stream)
    assert math.isfinite(sampler.log_joint())
    assert sampler.counts()["words"].sum() == 80


# what cannot be
@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"tied": np.array([0, 0])}, "words have tied rows"),
        ({"prior": 1e-80}, "prior of the words"),
        ({"prior": 1e20}, "prior of the words"),
    ],
)
def test_tables_that_cannot_be_integrated_out(family, message):
    case = replace(SMALL, families={"words": Categorical((2, 2), **family)})
    with pytest.raises(LearnerError, match=message):
        begun(case)


def test_weights_cannot_be():
    text = replace(SMALL.shard.text, weights=np.array([1.0, 2.0, 1.0]))
    start = {name: family.uniform() for name, family in families(SMALL)}
    with pytest.raises(LearnerError, match="there can be no weights"):
        SMALL.core.collapse([Shard(text, SMALL.shard.limits)], start, 0)


def test_a_sentence_that_cannot_be():
    start = {name: family.uniform() for name, family in families(SMALL)}
    start["words"] = np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ImpossibleItem, match="item 0 cannot come about"):
        SMALL.core.collapse([SMALL.shard], start, 0)


# in the loop
def test_the_learner():
    patterns = [[0, 2, 1], [0, 2], [0, 0, 2, 1], [1, 0, 2]]
    case = small_case(2, 3, patterns * 8, size=0.1, n_words=3)

    def start(rng):
        return {name: family.random(rng) for name, family in families(case)}

    learner = sc.CollapsedGibbs(max_iter=15)
    found = [
        fit(case.core, case.corpus, learner, Local(threads), init=start, seed=1)
        for threads in (1, 2)
    ]
    for name, table in found[0].params.items():
        np.testing.assert_array_equal(table, found[1].params[name])
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    objectives = [step.log_likelihood for step in found[0].trace]
    assert objectives[-1] > objectives[0] + 0.2 * abs(objectives[0])
