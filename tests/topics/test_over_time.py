"""Topics over time, against counting by hand; times of every form; what pyLDAvis takes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.errors import DataError, LearnerError
from softcount.topics import LDA, PLSA
from softcount.topics.over_time import MOST_PERIODS, cut_periods, topics_over_time


def test_shares_of_a_period_are_its_words_counted_by_topic() -> None:
    theta = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0], [0.5, 0.5], [0.9, 0.1]])
    lengths = [10, 4, 6, 8, 100]
    table = topics_over_time(theta, lengths, ["2001", "2001", "2003", "2003", None])
    # 2001: 10 + 1 words of 14 are of topic 0; 2003: 4 of 14
    assert table.periods == ("2001", "2002", "2003")
    assert table.shares[0] == pytest.approx([11 / 14, 3 / 14])
    assert np.isnan(table.shares[1]).all()
    assert table.shares[2] == pytest.approx([4 / 14, 10 / 14])
    assert table.documents.tolist() == [2, 0, 2]
    assert table.skipped == 1


def test_without_lengths_every_document_counts_the_same() -> None:
    table = topics_over_time(np.array([[1.0, 0.0], [0.0, 1.0]]), None, [5, 5])
    assert table.shares.tolist() == [[0.5, 0.5]]


def test_a_period_of_empty_documents_has_no_shares() -> None:
    table = topics_over_time(np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 3], [1, 2])
    assert np.isnan(table.shares[0]).all()
    assert table.shares[1].tolist() == [0.0, 1.0]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.one_of(st.none(), st.integers(1, 3000))), min_size=1)
)
def test_shares_put_together_again_give_all_words(rows: list[tuple[int, int | None]]) -> None:
    lengths = np.array([length for length, _ in rows], dtype=float)
    times = [time for _, time in rows]
    if all(time is None for time in times):
        with pytest.raises(DataError, match="no document has a date"):
            topics_over_time(np.ones((len(rows), 1)), lengths, times)
        return
    theta = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=len(rows))
    table = topics_over_time(theta, lengths, times)
    found = cut_periods(times)
    known = np.array([time is not None for time in times])
    words = [lengths[found.place == p].sum() for p in range(len(table.periods))]
    total = np.nansum(table.shares * np.array(words)[:, None], axis=0)
    assert total == pytest.approx(lengths[known] @ theta[known])
    assert table.documents.sum() + table.skipped == len(rows)


@pytest.mark.parametrize(
    ("times", "names"),
    [
        (["1994-03-07", "1994-03-09"], ("1994-03-07", "1994-03-08", "1994-03-09")),
        (["1993-12-31", "1994-06-01"], ("1993-12", *(f"1994-0{m}" for m in range(1, 7)))),
        (["1990-05", "2003"], tuple(map(str, range(1990, 2004)))),
        ([1990, 1993], ("1990", "1991", "1992", "1993")),
        ([-1, 1], ("-1", "0", "1")),
        ([7.0], ("7",)),
        (["19940307", date(1994, 3, 8)], ("1994-03-07", "1994-03-08")),
        ([datetime(1994, 3, 7, 23), np.datetime64("1994-03-08T01")], ("1994-03-07", "1994-03-08")),
    ],
)
def test_the_span_chooses_the_periods(times: list[Any], names: tuple[str, ...]) -> None:
    assert cut_periods(times).names == names


def test_times_with_a_zone_are_taken_at_one_place() -> None:
    east = datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    found = cut_periods([east, datetime(2019, 12, 31, 12, tzinfo=UTC), "2020-01-01T00:30:00+01:00"])
    assert found.names == ("2019-12-31",)


def test_missing_times_of_every_form() -> None:
    found = cut_periods([None, "", "  ", math.nan, np.datetime64("NaT"), "nan", "2020-05-01"])
    assert found.place.tolist() == [-1] * 6 + [0]


def test_long_spans_get_round_periods() -> None:
    found = cut_periods([1503, 1999, 2001])
    assert found.names[0] == "1500–1509"
    assert found.names[-1] == "2000–2009"
    assert found.place.tolist() == [0, 49, 50]
    dates = cut_periods(["1503-02-01", "1999-01-01", "2001-01-01"])
    assert dates.names == found.names
    assert dates.place.tolist() == found.place.tolist()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_numbers_lie_in_the_period_that_is_named(values: list[float]) -> None:
    found = cut_periods(values)
    assert len(found.names) <= MOST_PERIODS
    order = np.argsort(values, kind="stable")
    assert (np.diff(found.place[order]) >= 0).all()
    assert found.place.min() == 0
    assert found.place.max() == len(found.names) - 1


def test_equal_stretches() -> None:
    assert cut_periods([0.0, 1.0, 4.0, 10.0], 5).place.tolist() == [0, 0, 2, 4]
    found = cut_periods(["2000-01-01", "2000-01-05", "2000-01-11"], 2)
    assert found.names == ("2000-01-01", "2000-01-06")
    assert found.place.tolist() == [0, 0, 1]
    assert cut_periods([3, 3], 2).place.max() <= 1


@pytest.mark.parametrize(
    ("times", "bins", "said"),
    [
        (["1994", "yesterday"], None, "document 1: 'yesterday' is not a date"),
        (["1994-13"], None, "is not a date"),
        ([math.inf], None, "document 0: inf is not a date"),
        (["1994-01-01", 5], None, "document 1: 5 is not a date"),
        ([object()], None, "is not a date"),
        ([1.5], "year", "the dates are numbers"),
        (["0001-01-01", "2000-01-01"], "day", "periods are more than"),
    ],
)
def test_times_that_cannot_be_used(times: list[Any], bins: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        cut_periods(times, bins)


def test_settings_that_cannot_be_used() -> None:
    for bins in (0, "week", True):
        with pytest.raises(LearnerError, match="bins="):
            cut_periods([1, 2], bins)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="2 documents but 1 dates"):
        topics_over_time(np.ones((2, 1)), None, [1990])
    with pytest.raises(DataError, match="2 documents but 3 lengths"):
        topics_over_time(np.ones((2, 1)), [1, 2, 3], [1990, 1990])


# what pyLDAvis takes
@pytest.mark.parametrize("model", [LDA(3), PLSA(3)])
def test_export_keeps_what_pyldavis_demands(model: Any) -> None:
    counts = np.random.default_rng(0).poisson(0.5, size=(30, 20))
    counts[4] = 0
    counts[:, 7] = 0
    model.fit(counts)
    inputs = model.for_pyldavis(counts)
    topics, documents = inputs["topic_term_dists"], inputs["doc_topic_dists"]
    assert topics.shape == (3, 19)
    assert documents.shape == (29, 3)
    assert topics.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert documents.sum(axis=1) == pytest.approx(np.ones(29), abs=1e-12)
    assert inputs["vocab"] == [str(w) for w in range(20) if w != 7]
    assert inputs["term_frequency"].tolist() == np.delete(counts, 7, axis=1).sum(0).tolist()
    assert inputs["doc_lengths"].tolist() == np.delete(counts, 4, axis=0).sum(1).tolist()
    kept = np.delete(model.topics_, 7, axis=1)
    assert topics == pytest.approx(kept / kept.sum(axis=1, keepdims=True))


def test_a_topic_of_words_that_never_occur_is_left_with_all_words_alike() -> None:
    start = {"topics": np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])}
    model = PLSA(2, init=start, short_runs=0).fit([[3, 3, 0], [0, 0, 5]])
    inputs = model.for_pyldavis([[1, 1, 0]])
    assert inputs["topic_term_dists"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_export_refuses_documents_without_words() -> None:
    model = PLSA(2).fit([[3, 3, 0], [0, 0, 5]])
    with pytest.raises(DataError, match="no document has a word that the model knows"):
        model.for_pyldavis([[0, 0, 0]])
