"""Labels in all the forms in which users have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softcount.core.errors import DataError
from softcount.mixture.data import read_labels


@pytest.mark.parametrize(
    ("given", "classes", "numbers"),
    [
        ([0, 2, -1], [0, 2], [0, 1, -1]),
        ([0.0, -1.0, 1.0], [0.0, 1.0], [0, -1, 1]),
        (np.array([3, -1, 3], np.int8), [3], [0, -1, 0]),
        (["b", None, "a"], ["a", "b"], [1, -1, 0]),
        (["b", -1, "a"], ["a", "b"], [1, -1, 0]),
        (np.array(["b", -1, None], dtype=object), ["b"], [0, -1, -1]),
        (["b", "-1", "a"], ["-1", "a", "b"], [2, 0, 1]),  # as a string it is a class
        ([True, None, False], [False, True], [1, -1, 0]),
        ([5, None, -1], [5], [0, -1, -1]),
        (("é", "日本", None), ["é", "日本"], [0, 1, -1]),
    ],
)
def test_classes_and_numbers(given: Any, classes: list[Any], numbers: list[int]) -> None:
    labels = read_labels(given, 3)
    assert labels.classes.tolist() == classes
    assert labels.numbers.tolist() == numbers
    assert labels.known.tolist() == [number != -1 for number in numbers]
    assert labels.soft_labels is None


def test_the_kind_of_number_survives() -> None:
    assert read_labels(np.array([1, 2], np.uint8), 2).classes.dtype == np.uint8


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "y is None"),
        ([-1, None, -1], "no item has a label"),
        ([0, 1], "3 items and 2 labels"),
        (["a", 1, "b"], "several kinds"),
        (["a", float("nan"), "b"], "several kinds"),
        ([{"a"}, None, "b"], "several kinds"),
        ([0.5, 1.5, 2.25], "continuous"),
        (np.array(["b", -1, "a"]), "the string '-1'"),
        ([0.0, float("nan"), 1.0], "NaN"),
        ([[0.5, 0.4], [1, 0], [0, 1]], "must sum to 1"),
        ([[1.5, -0.5], [1, 0], [0, 1]], "must be non-negative"),
        (np.full((3, 2), np.nan), "no item has a label"),
        ([[1, 0], [0, 1]], "3 items and 2 labels"),
    ],
)
def test_bad_labels(given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_labels(given, 3)


def test_bad_labels_are_data_errors() -> None:
    with pytest.raises(DataError, match="hint: give strings only or numbers only"):
        read_labels(["a", 1], 2)


def test_shares() -> None:
    labels = read_labels([[0.25, 0.75], [np.nan, 0.0], [1.0, 0.0]], 3)
    assert labels.classes.tolist() == [0, 1]
    assert labels.known.tolist() == [True, False, True]
    assert labels.soft_labels is not None
    np.testing.assert_array_equal(labels.soft_labels[1], [np.nan, np.nan])


def test_an_item_is_kept_to_the_components_of_its_class() -> None:
    known = read_labels(["b", None, "a"], 3).restrict(2, np.ones(3))
    assert list(zip(known.lower, known.upper, strict=True)) == [(2, 4), (0, 4), (0, 2)]


def test_columns_of_one_are_taken_with_a_warning() -> None:
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning):
        assert read_labels(np.array([[1], [0]]), 2).numbers.tolist() == [1, 0]


@pytest.mark.filterwarnings("error")
def test_many_classes_with_one_label_each_are_nothing_to_warn_of() -> None:
    assert len(read_labels([*map(str, range(50)), None], 51).classes) == 50
    assert len(read_labels(np.arange(50), 50).classes) == 50


@pytest.mark.parametrize("given", [["b", None, "a"], [3.0, None, 1.0], ["b", float("nan"), "a"]])
def test_what_a_data_frame_has_no_value_for_is_unknown(given: list[Any]) -> None:
    pd = pytest.importorskip("pandas")
    for kind in (None, object):
        assert read_labels(pd.Series(given, dtype=kind), 3).numbers.tolist() == [1, -1, 0]
