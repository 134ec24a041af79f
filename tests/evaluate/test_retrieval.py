"""Average precision, by hand and by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.metrics import average_precision, mean_average_precision

cases = settings(max_examples=40, deadline=None)


def test_by_hand():
    assert average_precision([3, 1, 4, 2], {3, 4}) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([1, 2, 3], [3]) == pytest.approx(1 / 3)
    assert average_precision("abcd", "ba") == 1.0
    assert average_precision(np.array([5, 6]), {6}) == 0.5


def test_what_is_not_ranked_counts_nothing():
    assert average_precision([1], {1, 2}) == 0.5
    assert average_precision([], {1}) == 0.0
    assert average_precision([3], {1}) == 0.0


@cases
@given(st.permutations(range(8)), st.sets(st.integers(0, 10), min_size=1))
def test_is_the_mean_precision_at_relevant_ranks(ranking, relevant):
    total = 0.0
    for r, document in enumerate(ranking, 1):
        if document in relevant:
            total += sum(other in relevant for other in ranking[:r]) / r
    assert average_precision(ranking, relevant) == pytest.approx(total / len(relevant))


@cases
@given(st.permutations(range(6)), st.sets(st.integers(0, 5), min_size=1), st.integers(0, 4))
def test_moving_a_relevant_document_up_never_harms(ranking, relevant, place):
    moved = list(ranking)
    if moved[place + 1] in relevant:
        moved[place], moved[place + 1] = moved[place + 1], moved[place]
    assert average_precision(moved, relevant) >= average_precision(ranking, relevant) - 1e-15


def test_mean_over_queries():
    rankings, relevant = [[0, 1, 2], [2, 1, 0]], [{0, 2}, {0}]
    assert mean_average_precision(rankings, relevant) == pytest.approx(
        ((1 + 2 / 3) / 2 + 1 / 3) / 2
    )
    assert mean_average_precision(np.array(rankings), relevant) == pytest.approx(7 / 12)


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(DataError, match="no document is relevant"):
        average_precision([1, 2], [])
    with pytest.raises(DataError, match="has 2 twice"):
        average_precision([1, 2, 2], [1])
    with pytest.raises(DataError, match="2 rankings for 1 sets"):
        mean_average_precision([[1], [2]], [[1]])
    with pytest.raises(DataError, match="at least one query"):
        mean_average_precision([], [])
