"""The kernels of chained alignments, on pairs too long to list: against numpy and a plain HMM."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.align import kernels
from softcount.align.core import LANES, group_pairs
from softcount.core.types import EStep
from tests.align.cases import (
    Case,
    chain_of,
    core_of,
    matrices,
    place_keys,
    random_params,
    word_pairs,
)
from tests.oracles.alignments import Events, listed, recursion

Array = np.ndarray


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_sums_over_jumps(lengths: list[int], seed: int) -> None:
    """`totals` against a loop; `spread` is its transpose."""
    rng = np.random.default_rng(seed)
    middle = max(lengths) + int(rng.integers(3))
    ahead, start = rng.random(2 * middle + 1), rng.random(middle + 1)
    rows = kernels.JumpRows.of(np.array(lengths))
    totals = kernels.sum_jumps(rows, ahead, middle, start)
    expected = [
        sum(start[k] if h == 0 else ahead[middle + k - h] for k in range(1, l + 1))
        for l in sorted(lengths)
        for h in range(l + 1)
    ]
    np.testing.assert_allclose(totals, expected, rtol=1e-12)
    shares = rng.random(rows.begins[-1])
    by_width, starts = kernels.spread_over_jumps(rows, shares, middle)
    assert by_width @ ahead + starts @ start == pytest.approx(shares @ totals, rel=1e-12)


@given(st.integers(1, 200), st.integers(1, 90), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_every_pair_is_in_one_group(n: int, longest: int, seed: int) -> None:
    l, m = np.random.default_rng(seed).integers(1, longest + 1, (2, n))
    begins, members = group_pairs(l, m)
    assert sorted(members.tolist()) == list(range(n))
    assert (begins[0], begins[-1]) == (0, n)
    assert (np.diff(begins) > 0).all()
    assert (np.diff(begins) <= LANES).all()


def text(n: int, shape: Any, seed: int, null: bool, zeros: float = 0.0) -> Case:
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(n):
        l, m = shape(rng)
        data.append(([*rng.choice([*"abcdefgh"], l)], [*rng.choice([*"ABCDEFGH"], m)]))
    return Case(data, None, null, seed, zeros, reach=3, p_null=0.15)


SHAPES = {
    "alike": lambda rng: rng.integers(5, 7, 2),
    "anything": lambda rng: rng.integers(1, 13, 2),
    "unequal": lambda rng: (1, int(rng.integers(20, 30)))[:: rng.choice([-1, 1])],
}


@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_in_lockstep_are_what_they_are_alone(shape: str, null: bool) -> None:
    """More pairs than lanes, of all sizes."""
    case = text(45, SHAPES[shape], 7, null)
    corpus = case.corpus()
    core = core_of("chain", corpus, case)
    params = random_params(core, case)
    stats = core.expect(params, corpus.everything, EStep())
    found = matrices(core, params, corpus.everything, EStep())
    words = dict(zip(word_pairs(corpus), params["translation"], strict=True))
    chain = chain_of(case, params["jumps"], case.p_null if null else 0.0)
    total, best, jumps = 0.0, 0.0, Counter()
    for (es, fs), matrix in zip(case.data, found, strict=True):
        links = np.array([[words.get((e, f), 0.0) for f in fs] for e in [*es, None]])
        truth = recursion(links, chain)
        np.testing.assert_allclose(matrix, truth.posterior, atol=1e-11)
        total, best = total + truth.log_p, best + truth.best
        jumps.update(truth.places)
    assert stats.log_likelihood == pytest.approx(total, abs=1e-9)
    expected = [jumps[key] for key in place_keys("chain", case)]
    np.testing.assert_allclose(stats.counts["jumps"], expected, atol=1e-10)
    hard = core.expect(params, corpus.everything, EStep(fill="hard"))
    assert hard.score == pytest.approx(best, abs=1e-9)


def test_an_impossible_pair_leaves_its_neighbours_alone() -> None:
    """Lanes do not mix: posteriors of the others are those of a group without it."""
    case = text(12, SHAPES["alike"], 3, False)
    corpus = case.corpus()
    core = core_of("chain", corpus, case)
    params = random_params(core, case)
    before = matrices(core, params, corpus.everything, EStep())
    es, fs = case.data[5]
    pairs = word_pairs(corpus)
    barred = np.array([e in es and f == fs[0] for e, f in pairs])
    params["translation"] = np.where(barred, 0.0, params["translation"])
    after = matrices(core, params, corpus.everything, EStep())
    assert all(np.isfinite(matrix).all() for matrix in after)
    untouched = [n for n, (_, other) in enumerate(case.data) if fs[0] not in other]
    assert untouched
    for n in untouched:
        assert np.array_equal(before[n], after[n])


def test_the_recursion_is_what_a_list_says() -> None:
    """The oracle for long pairs against that for short ones."""
    case = text(1, lambda rng: (3, 4), 1, True)
    corpus = case.corpus()
    core = core_of("chain", corpus, case)
    params = random_params(core, case)
    words = dict(zip(word_pairs(corpus), params["translation"].tolist(), strict=True))
    chain = chain_of(case, params["jumps"], case.p_null)
    (es, fs) = case.data[0]
    truth = listed(es, fs, words, chain, True)
    found = recursion(np.array([[words[e, f] for f in fs] for e in [*es, None]]), chain)
    assert found.log_p == pytest.approx(truth.log_p, abs=1e-12)
    assert found.best == pytest.approx(truth.best, abs=1e-12)
    np.testing.assert_allclose(found.posterior, truth.posterior(), atol=1e-12)
    places: Events = truth.counts()[1]
    assert {key: pytest.approx(n, abs=1e-12) for key, n in places.items()} == found.places
