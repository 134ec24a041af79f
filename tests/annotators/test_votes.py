"""Votes in all their forms: what is read, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import softcount as sc
from softcount.annotators.data import read_votes
from softcount.core.errors import DataError
from tests.annotators.test_annotators import SMALL, Triples


def test_all_forms_of_votes_say_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    items, annotators, labels = (list(column) for column in zip(*SMALL, strict=True))
    frame = pandas.DataFrame(SMALL, columns=["item", "annotator", "label"])
    nested: dict[str, dict[str, str]] = {}
    for item, annotator, label in SMALL:
        nested.setdefault(item, {})[annotator] = label
    forms: list[Any] = [
        iter(SMALL),
        tuple(SMALL),
        [list(vote) for vote in SMALL],
        (items, annotators, labels),
        (np.array(items), np.array(annotators), np.array(labels)),
        {"item": items, "annotator": annotators, "label": labels},
        frame,
        frame.rename(columns={"item": "task", "annotator": "worker"}),
        nested,
    ]
    first = sc.Annotators().fit(SMALL)
    for form in forms:
        model = sc.Annotators().fit(form)
        assert model.items_.tolist() == ["s1", "s2", "s3"]
        assert model.annotators_.tolist() == ["ann", "bob", "eve"]
        np.testing.assert_array_equal(model.proba_, first.proba_)


@given(
    numbers=st.lists(
        st.tuples(st.integers(-3, 9), st.integers(0, 10**12), st.integers(-1, 2)),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=50, deadline=None)
def test_columns_of_whole_numbers_are_read_as_lists_are(numbers: Triples) -> None:
    lists = tuple([row[place] for row in numbers] for place in range(3))
    one, other = read_votes(tuple(map(np.array, lists))), read_votes(lists)
    for name in ("items", "annotators", "labels"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("of_item", "by_annotator", "of_label"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("missing", [-1, np.nan, None])
def test_a_matrix_says_the_same_as_triples(missing: Any) -> None:
    matrix = np.array([[1, 0, 1], [0, 0, missing], [missing, 1, 1]], dtype=type(missing) and None)
    triples = [(0, 0, 1), (0, 1, 0), (0, 2, 1), (1, 0, 0), (1, 1, 0), (2, 1, 1), (2, 2, 1)]
    one, other = sc.Annotators().fit(matrix), sc.Annotators().fit(triples)
    np.testing.assert_array_equal(one.proba_, other.proba_)
    assert one.classes_.dtype == np.int64
    assert one.predict(matrix[:1]).tolist() == other.predict(triples[:3]).tolist()


def test_several_votes_of_one_annotator_count_each() -> None:
    votes: dict[str, Any] = {"a": {"x": ["1", "1", "2"], "y": "1"}, "b": {"x": "2", "y": "2"}}
    model = sc.Annotators().fit(votes)
    assert model.n_votes_.tolist() == [4, 2]
    assert model.labels_.tolist() == ["1", "2"]
    once = sc.Annotators().fit({"a": {"x": ["1", "2"], "y": "1"}, "b": {"x": "2", "y": "2"}})
    assert model.confusion_of("x")["1"]["1"] > once.confusion_of("x")["1"]["1"] + 0.1


@pytest.mark.parametrize(
    "votes",
    [
        [],
        [("s", "a", None)],
        [("s", "a")],
        ["abc"],
        ("s", "a", "yes"),
        "votes",
        7,
        {"item": ["a"], "who": ["b"], "label": ["c"]},
        (["a"], ["b"], ["c", "d"]),
        np.zeros(3),
        np.zeros((0, 3)),
        [("s", "a", "yes"), ("s", "b", 1)],
        [(["s"], "a", "yes")],
    ],
)
def test_what_are_no_votes_is_said(votes: Any) -> None:
    model = sc.Annotators()
    with pytest.raises(DataError) as error:
        model.fit(votes)
    assert error.value.hint
    with pytest.raises(NotFittedError):
        model.predict(SMALL)


@pytest.mark.parametrize(
    "y", [["yes"], {"s9": "yes"}, [1, 2, 3], np.eye(3), np.array(["yes", "-1", "no"])]
)
def test_what_are_no_known_labels_is_said(y: Any) -> None:
    with pytest.raises(DataError) as error:
        sc.Annotators().fit(SMALL, y)
    assert error.value.hint


@pytest.mark.parametrize("large", [float("inf"), 1e300])
def test_labels_too_large_for_whole_numbers_stay_what_they_are(large: float) -> None:
    with warnings.catch_warnings(action="error"):
        model = sc.Annotators().fit([("s", "ann", large), ("t", "ann", 1.0), ("t", "bob", 1.0)])
    assert model.classes_.tolist() == [1.0, large]


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_votes_of_nobody_or_on_nothing_are_refused(column: int, missing: Any) -> None:
    vote: list[Any] = ["s9", "ann", "yes"]
    vote[column] = missing
    with pytest.raises(DataError, match="is None or NaN"):
        sc.Annotators().fit([*SMALL, tuple(vote)])


def test_names_beyond_64_bits_keep_their_digits() -> None:
    items = np.array([2**64 - 1, 5], np.uint64)
    model = sc.Annotators().fit((items, ["ann", "ann"], ["yes", "no"]))
    assert model.items_.tolist() == [2**64 - 1, 5]
