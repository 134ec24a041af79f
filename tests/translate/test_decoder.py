"""The decoder's stacks: what is kept, what is given up, and what is one and the same."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.translate.search import NOWHERE, NULL, HypothesisStack, SearchSteps, select_best

N = 600
EVERYTHING = 10**9


def stack_of(n: int, **fields: np.ndarray) -> HypothesisStack:
    plain = {name: np.zeros(n, np.int64) for name in ("unread", "mask", "state", "last", "open")}
    plain["at"] = np.zeros(n, np.int64)
    return HypothesisStack(**{**plain, "score": np.zeros(n), "rest": np.zeros(n), **fields})


def null_steps(n: int, places: np.ndarray, states: np.ndarray, score: np.ndarray) -> SearchSteps:
    """Hypothesis i reads places_i and writes nothing."""
    return SearchSteps(np.arange(n), places, np.full(n, NULL), states, score, np.zeros(n))


@pytest.mark.parametrize("field", ["unread", "mask", "at", "last", "state"])
def test_hypotheses_that_differ_stay_apart(field: str) -> None:
    values, none = np.arange(N), np.zeros(N, np.int64)
    stack = stack_of(N, **({field: values} if field in ("unread", "mask", "at") else {}))
    words, states = (values if field == name else none for name in ("last", "state"))
    steps = SearchSteps(values, np.full(N, NOWHERE), words, states, np.zeros(N), np.zeros(N))
    kept, arrived, where = select_best(stack, steps, EVERYTHING, np.inf)
    assert sorted(getattr(kept, field)) == list(range(N))
    assert sorted(arrived) == sorted(where) == list(range(N))


def test_hypotheses_that_are_the_same_meet_at_the_best() -> None:
    score = -np.arange(6.0)[::-1]
    steps = null_steps(6, np.zeros(6, np.int64), np.array([4, 4, 7, 7, 4, 7]), score)
    kept, arrived, where = select_best(stack_of(6), steps, EVERYTHING, np.inf)
    assert kept.score.tolist() == [0.0, -1.0]
    assert kept.state.tolist() == [7, 4]
    assert dict(zip(arrived.tolist(), where.tolist(), strict=True)) == {
        0: 1,
        1: 1,
        2: 0,
        3: 0,
        4: 1,
        5: 0,
    }


def test_reading_the_first_unread_place_passes_all_that_are_read() -> None:
    stack = stack_of(1, unread=np.array([5]), mask=np.array([0b1011]))
    kept, _, _ = select_best(
        stack, null_steps(1, np.array([5]), np.array([0]), np.zeros(1)), 1, np.inf
    )
    # read were 6, 7 and 9; now 5 as well: 8 is the first unread, 9 is read
    assert (kept.unread[0], kept.mask[0], kept.at[0]) == (8, 1, 5)


@pytest.mark.parametrize(("beam", "margin", "left"), [(3, np.inf, 3), (9, 2.5, 3), (1, 0.5, 1)])
def test_the_rest_is_given_up(beam: int, margin: float, left: int) -> None:
    score = np.array([-4.0, 0.0, -3.0, -1.0, -2.0])
    steps = null_steps(5, np.zeros(5, np.int64), np.arange(5), score)
    kept, arrived, _ = select_best(stack_of(5), steps, beam, margin)
    assert kept.score.tolist() == [0.0, -1.0, -2.0][:left]
    assert arrived.tolist() == [1, 3, 4][:left]
