"""Bootstrapping: what goes wrong, what scikit-learn asks for, and names from seven rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import softcount as sc
from softcount.labels.yarowsky import number_documents
from tests import real
from tests.labels.test_yarowsky import SEEDS, fitted, halves


# what goes wrong
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"variant": "bold"}, sc.LearnerError),
        ({"threshold": 1.0}, sc.LearnerError),
        ({"threshold": -1}, sc.LearnerError),
        ({"step": 0}, sc.LearnerError),
        ({"max_rounds": -1}, sc.LearnerError),
        ({"discourse": -0.5}, sc.LearnerError),
        ({"views": halves, "variant": "propagating"}, sc.LearnerError),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fitted(["a", "b"], **settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": None}, "requires y"),
        ({"seeds": {"x": ["nowhere"]}}, "no item has the feature"),
        ({"seeds": {"x": ["a"], "y": ["a"]}}, "two labels"),
        ({"seeds": ["a"]}, "among the seeds"),
        ({"seeds": SEEDS, "y": ["x"]}, "inconsistent"),
        ({"seeds": SEEDS, "documents": [1]}, "1 documents for 2"),
    ],
)
def test_data_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    model = sc.labels.Yarowsky()
    with pytest.raises(sc.DataError, match=message):
        model.fit(["a", "b"], **given)
    with pytest.raises(NotFittedError):
        model.predict(["a"])


@pytest.mark.filterwarnings("default:no item")
def test_seeds_that_never_occur_are_named() -> None:
    with pytest.warns(UserWarning, match="'qq'"):
        sc.labels.Yarowsky().fit(["a", "b"], seeds={"x": ["a", "qq"], "y": ["b"]})
    with pytest.warns(UserWarning, match="labelled 'y'"):
        sc.labels.Yarowsky().fit(["a", "b"], seeds={"x": ["a"], "y": ["qq"]})


MINUS_ONE = {"check_classifiers_classes": "uses −1 as a class; here it means unknown"}


@parametrize_with_checks([sc.labels.Yarowsky()], expected_failed_checks=lambda _: MINUS_ONE)
def test_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(clone(estimator))


# the data of Collins & Singer
@pytest.mark.slow
def test_names_from_seven_rules() -> None:
    train = [line.split() for line in real.lines("collins_singer_ne/train.ex.gz")]
    test = [line.split("\t") for line in real.lines("collins_singer_ne/test.exy")]
    seeds = sc.labels.read_rules(real.FOLDER / "collins_singer_ne/seed.rules")
    model = sc.labels.Yarowsky(abstain=True).fit(train, seeds=seeds)
    clean = [(label, text.split()) for label, text in test if label != "?"]
    said = model.predict([item for _, item in clean])
    assert np.mean(said == np.array([label for label, _ in clean])) >= 0.9


def test_unsigned_labels_and_items_without_a_rule() -> None:
    model = sc.labels.Yarowsky(abstain=True).fit(np.eye(3), np.array([0, 1, 1], np.uint8))
    assert model.predict(np.zeros((2, 3))).tolist() == [-1, -1]


@pytest.mark.parametrize("label", [-1, None])
def test_a_seed_without_a_label_is_refused(label: Any) -> None:
    with pytest.raises(sc.DataError, match="is not a valid label of the seed 'a'"):
        sc.labels.Yarowsky().fit([["a"], ["b"]], seeds={label: ["a"], 1: ["b"]})


@pytest.mark.parametrize("strength", [float("nan"), -1.0, 0.0, "much", float("inf")])
def test_a_strength_that_is_none_is_refused(strength: Any) -> None:
    with pytest.raises(sc.LearnerError, match="strength of 'a'"):
        sc.labels.Yarowsky().fit(
            [["a"], ["b"]], seeds=[sc.labels.Rule("a", "x", strength), sc.labels.Rule("b", "y")]
        )


def test_views_that_are_no_function_are_refused() -> None:
    with pytest.raises(sc.LearnerError, match="views=5"):
        sc.labels.Yarowsky(views=5).fit([["a"], ["b"]], seeds=SEEDS)


@pytest.mark.filterwarnings("default:no item")
def test_the_warning_of_missing_seeds_points_here() -> None:
    with pytest.warns(UserWarning, match="features of these seeds: 'z'") as caught:
        sc.labels.Yarowsky().fit([["a"], ["b"]], seeds={"x": ["a", "z"], "y": ["b"]})
    assert caught[0].filename == __file__


def test_items_whose_document_is_missing_are_alone() -> None:
    nan = float("nan")
    assert number_documents(["d", nan, nan, None, "", "d"], 6).tolist() == [0, 1, 2, 3, 4, 0]
