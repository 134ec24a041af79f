"""Co-training against a plain version of itself, and what must hold whatever the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import softcount as sc
from softcount.labels.cotraining import agreement, product, read_quota
from softcount.labels.data import few_labels_bayes
from tests.sklearn_checks import checks

HALVES = [slice(0, None, 2), slice(1, None, 2)]
MINUS_ONE = {"check_classifiers_classes": "uses −1 as a class; here it means unknown"}


@checks(
    [sc.labels.CoTraining(HALVES)],
    [sc.labels.CoTraining(HALVES, LogisticRegression())],
    expected_failed_checks=lambda model: MINUS_ONE,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def two_views(
    seed: int, n: int = 60, K: int = 3, width: int = 12
) -> tuple[list[np.ndarray], np.ndarray]:
    """Counts in two views that are independent given the class; some rows are empty."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, n)
    classes[:K] = np.arange(K)
    words = rng.dirichlet(np.full(width, 0.15), size=(2, K))
    views = [
        np.array([rng.multinomial(rng.integers(0, 7), words[v, k]) for k in classes], dtype=float)
        for v in range(2)
    ]
    return views, classes


def bayes_shares(train: np.ndarray, y: np.ndarray, X: np.ndarray, K: int) -> np.ndarray:
    """p(class | counts) by Naive Bayes with α = 1, one item and class at a time."""
    found = np.zeros((len(X), K))
    for i, row in enumerate(X):
        for k in range(K):
            counts = train[y == k].sum(axis=0) + 1.0
            weight = np.mean(y == k)
            found[i, k] = weight * np.prod((counts / counts.sum()) ** row)
        found[i] /= found[i].sum()
    return found


def plain(views: list[np.ndarray], y: np.ndarray, n: int, rounds: int, K: int) -> list[np.ndarray]:
    """The labels after each round, item by item."""
    labels, after_each = y.copy(), [y.copy()]
    for _ in range(rounds):
        wanted: dict[int, tuple[float, int]] = {}
        known = labels >= 0
        for X in views:
            shares = bayes_shares(X[known], labels[known], X, K)
            seen = (X[known] != 0).any(axis=0)
            for k in range(K):
                mine = [
                    (-round(shares[i].max(), 12), i)
                    for i in np.flatnonzero(~known)
                    if shares[i].argmax() == k and (X[i] * seen).any()
                ]
                for minus, i in sorted(mine)[:n]:
                    if i not in wanted or -minus > wanted[i][0]:
                        wanted[i] = (-minus, k)
        if not wanted:
            break
        for i, (_, k) in wanted.items():
            labels[i] = k
        after_each.append(labels.copy())
    return after_each


def labels_after(model: sc.labels.CoTraining, number: int) -> np.ndarray:
    """Each item's class after a round, from the history."""
    found = np.full(len(model.transduction_), -1)
    for one in range(number + 1):
        for item, event in model.history_.events(one):
            found[item] = event.label
    return found


class Rounded(MultinomialNB):  # type: ignore[misc]
    """So that what is equal up to rounding is equal, here as in the plain version."""

    def predict_proba(self, X: Any) -> Any:
        return np.round(super().predict_proba(X), 12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [1, 3])
def test_every_round_is_that_of_a_plain_version(seed: int, n: int) -> None:
    views, classes = two_views(seed)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    expected = plain(views, y, n, 30, 3)
    model = sc.labels.CoTraining(["a", "b"], Rounded(alpha=1.0), per_class=n, rounds=30)
    model.fit([csr_matrix(view) for view in views], y)
    assert len(model.history_) == len(expected)
    for number, labels in enumerate(expected):
        np.testing.assert_array_equal(labels_after(model, number), labels)


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from(["product", "agreement"]))
@settings(max_examples=12, deadline=None)
def test_what_always_holds(seed: int, n: int, prediction: str) -> None:
    views, classes = two_views(seed, n=30)
    y = np.where(np.arange(len(classes)) < 5, classes, -1)
    model = sc.labels.CoTraining(
        ["a", "b"], per_class=n, prediction=prediction, pool=8, random_state=seed
    )
    model.fit(views, y, gold=classes)
    np.testing.assert_array_equal(model.transduction_[:5], classes[:5])
    for item in range(len(classes)):
        events = model.history_.of(item)
        assert len(events) <= 1  # a label once given stays
        if events and item >= 5:
            assert views["ab".index(events[0].view)][item].any()
            assert model.transduction_[item] == events[0].label
    for one in model.history_.rounds[1:]:
        assert 0 < one.new <= 2 * n * 3
    shares = model.predict_proba(views)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(shares).all()
    empty = ~(views[0].any(axis=1) | views[1].any(axis=1))
    assert set(np.flatnonzero(empty)) - set(range(5)) <= set(np.flatnonzero(model.silent_))


def test_a_matrix_its_columns_and_sparse_or_dense_are_the_same() -> None:
    views, classes = two_views(1)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    whole, columns = np.hstack(views), [slice(0, 12), slice(12, 24)]
    first = sc.labels.CoTraining(columns).fit(whole, y)
    for other in (
        sc.labels.CoTraining(columns).fit(csr_matrix(whole), y),
        sc.labels.CoTraining([np.arange(12), np.arange(12, 24)]).fit(whole, y),
    ):
        np.testing.assert_array_equal(other.transduction_, first.transduction_)
        np.testing.assert_allclose(other.predict_proba(whole), first.predict_proba(whole))


def test_it_beats_the_labels_alone() -> None:
    before, after = [], []
    for seed in range(4):
        views, classes = two_views(seed, n=300, width=60)
        y = np.where(np.arange(len(classes)) < 9, classes, -1)
        for rounds, found in ((0, before), (100, after)):
            model = sc.labels.CoTraining(["a", "b"], rounds=rounds).fit(views, y)
            found.append(np.mean(model.transduction_[9:] == classes[9:]))
    assert np.mean(after) > np.mean(before) + 0.05


@pytest.mark.parametrize(
    "classifier",
    [
        RidgeClassifier(),  # decision_function only
        RandomForestClassifier(10, random_state=0),  # probabilities of exactly 0
        {"a": MultinomialNB(), "b": LogisticRegression()},
        {"a": None, "b": GaussianNB()},
    ],
)
@pytest.mark.parametrize("K", [2, 3])
def test_any_classifier_will_do(classifier: Any, K: int) -> None:
    views, classes = two_views(5, n=80, K=K)
    y = np.where(np.arange(len(classes)) < 10, classes, -1)
    model = sc.labels.CoTraining(["a", "b"], classifier, per_class=3).fit(views, y)
    shares = model.predict_proba(views)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(model.transduction_ == classes) > 1.2 / K
    assert set(model.view_classifiers_) == {"a", "b"}


def test_three_views_and_one_of_them_always_empty() -> None:
    views, classes = two_views(2)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    two = sc.labels.CoTraining(["a", "b"], per_class=2).fit(views, y)
    three = sc.labels.CoTraining(["a", "none", "b"], per_class=2).fit(
        [views[0], views[0] * 0, views[1]], y
    )
    np.testing.assert_array_equal(two.transduction_, three.transduction_)
    new = [views[0][:9], np.ones((9, 12)), views[1][:9]]  # columns that nothing was learned of
    np.testing.assert_allclose(three.predict_proba(new), two.predict_proba([v[:9] for v in views]))


def test_the_surer_view_has_an_item_and_of_equals_the_first() -> None:
    one = np.array([[8.0, 0], [0, 8], [2, 0], [3, 0], [0, 0]])
    other = np.array([[8.0, 0], [0, 8], [0, 4], [0, 3], [0, 0]])
    model = sc.labels.CoTraining(["one", "other"], per_class=2).fit(
        [one, other], [0, 1, -1, -1, -1]
    )
    assert model.transduction_[:4].tolist() == [0, 1, 1, 0]
    assert [model.history_.of(item)[0].view for item in (2, 3)] == ["other", "one"]
    assert model.silent_.tolist() == [False] * 4 + [True]
    np.testing.assert_allclose(model.predict_proba([one, other])[4], [0.5, 0.5])
    assert model.verdict_.good


def test_ties_are_settled_by_the_number_of_the_item() -> None:
    X = np.array([[2.0, 0], [0, 2], [1, 0], [1, 0], [1, 0], [0, 1]])
    model = sc.labels.CoTraining(["a", "b"], per_class=1).fit([X, X], [0, 1, -1, -1, -1, -1])
    assert model.history_.first_rounds().tolist() == [0, 0, 1, 2, 3, 1]


def test_how_many_of_each_class() -> None:
    views, classes = two_views(3, n=90)
    y = np.where(np.arange(len(classes)) < 9, classes, -1)
    model = sc.labels.CoTraining(["a", "b"], per_class={0: 1, 1: 2, 2: 0}, rounds=4).fit(views, y)
    for number in range(1, len(model.history_)):
        given = [event.label for _, event in model.history_.events(number)]
        assert given.count(0) <= 2
        assert given.count(1) <= 4
        assert given.count(2) == 0
    assert len(model.history_) == 5
    assert not model.verdict_.good  # out of rounds
    for wrong in ({0: 1, 1: 2}, {0: 1, 1: 2, 2: -1}, 0, 1.5, True):
        with pytest.raises(sc.LearnerError, match="per_class"):
            sc.labels.CoTraining(["a", "b"], per_class=wrong).fit(views, y)


def test_how_many_of_each_class_unless_users_say() -> None:
    """A twentieth of what is unlabelled, shared by views, and by classes as the labels are."""
    labels = np.array([0] * 6 + [1] * 2 + [2] * 0 + [-1] * 800)
    classes = np.array(["a", "b", "c"])
    assert read_quota(None, classes, labels, 1).tolist() == [30, 10, 1]
    assert read_quota(None, classes, labels, 2).tolist() == [15, 5, 1]


def test_a_pool_is_all_that_is_chosen_from_and_is_filled_up_again() -> None:
    views, classes = two_views(4, n=120)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    model = sc.labels.CoTraining(["a", "b"], per_class=50, pool=10).fit(views, y)
    new = [one.new for one in model.history_.rounds[1:]]
    assert max(new) == new[0] == 10
    assert sum(new) + model.silent_.sum() == 120 - 6


def test_what_nobody_speaks_of_gets_the_shares_of_all_labels() -> None:
    X = np.array([[3.0, 0, 0], [0, 3, 0], [2, 0, 0], [1, 0, 0], [0, 0, 2]])
    model = sc.labels.CoTraining(["a", "b"], per_class=5).fit([X, X], [0, 1, -1, -1, -1])
    np.testing.assert_allclose(model.predict_proba([X, X])[4], [0.75, 0.25])  # 3 of 4 labels
    assert model.silent_.tolist() == [False] * 4 + [True]
    assert model.transduction_[4] == 0


@pytest.mark.parametrize("prediction", ["product", "agreement"])
def test_confidence_is_what_all_views_think_of_it_in_the_end(prediction: str) -> None:
    views, classes = two_views(5)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    model = sc.labels.CoTraining(["a", "b"], per_class=3, rounds=2, prediction=prediction).fit(
        views, y
    )
    shares = model.predict_proba(views)
    expected = shares[np.arange(len(classes)), model.transduction_]
    assert (model.confidence_[:6] == 1.0).all()
    np.testing.assert_array_equal(model.confidence_[6:], expected[6:])
    given = labels_after(model, len(model.history_) - 1)
    assert (given == -1).any()
    np.testing.assert_array_equal(
        model.transduction_, np.where(given == -1, shares.argmax(axis=1), given)
    )


def test_a_pool_is_drawn_by_the_seed() -> None:
    views, classes = two_views(4, n=120)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)

    def first_rounds(seed: int) -> list[int]:
        model = sc.labels.CoTraining(["a", "b"], per_class=1, pool=10, random_state=seed)
        return model.fit(views, y).history_.first_rounds().tolist()

    assert first_rounds(1) == first_rounds(1) != first_rounds(2)


def test_gold_gives_the_accuracy_of_every_round() -> None:
    views, classes = two_views(6)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    model = sc.labels.CoTraining(["a", "b"], per_class=2).fit(views, y, gold=classes)
    for number in range(1, len(model.history_)):
        labels = labels_after(model, number)
        mine = (labels >= 0) & (y < 0)
        assert model.history_.accuracy[number] == np.mean(labels[mine] == classes[mine])


def test_product_and_agreement_by_hand() -> None:
    one = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    other = np.array([[0.5, 0.1, 0.4], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0], [0.9, 0.1, 0.0]])
    heard = [np.array([True, True, False, False]), np.array([True, True, True, False])]
    prior = np.array([0.2, 0.2, 0.6])
    expected = [[0.30 / 0.37, 0.03 / 0.37, 0.04 / 0.37], [0.5, 0.5, 0.0], other[2], prior]
    np.testing.assert_allclose(product([one, other], heard, prior), expected, atol=1e-12)
    expected = [[0.55, 0.2, 0.25], [1.0, 0.0, 0.0], other[2], prior]
    np.testing.assert_allclose(agreement([one, other], heard, prior), expected, atol=1e-12)


def test_of_views_that_agree_the_silent_are_not_asked() -> None:
    """The third view would be the surest, and would object."""
    shares = [np.array([row]) for row in ([0.6, 0.4], [0.8, 0.2], [0.05, 0.95])]
    heard = [np.array([one]) for one in (True, True, False)]
    np.testing.assert_allclose(agreement(shares, heard, np.ones(2) / 2), [[0.7, 0.3]])
    objecting = [np.array([[0.3, 0.7]]), *shares[1:]]
    np.testing.assert_allclose(agreement(objecting, heard, np.ones(2) / 2), [[0.8, 0.2]])


def test_items_that_nobody_speaks_of_take_no_place_in_the_pool() -> None:
    X = np.zeros((40, 3))
    X[:2, :2] = 3.0 * np.eye(2)
    X[2:6, 0] = 1.0
    X[6:, 2] = 1.0  # a word of no labelled item
    y = [0, 1, *[-1] * 38]
    model = sc.labels.CoTraining(["a", "b"], per_class=1, pool=2).fit([X, X], y)
    assert (model.history_.first_rounds()[2:6] > 0).all()
    assert model.silent_.sum() == 34


def test_words_never_seen_do_not_speak_for_the_rarer_class() -> None:
    """Plain Naive Bayes gives such a text to the class that has fewer words."""
    X = np.array([[4.0, 0, 0], [0, 1.0, 0]])
    new = np.array([[1.0, 0, 30.0], [1.0, 0, 0]])
    assert MultinomialNB(alpha=0.1).fit(X, [0, 1]).predict(new).tolist() == [1, 0]
    assert few_labels_bayes().fit(X, [0, 1]).predict(new).tolist() == [0, 0]


class NearestNames(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> NearestNames:
        raise NotImplementedError


def test_settings_that_cannot_be() -> None:
    views, classes = two_views(0)
    y = np.where(np.arange(len(classes)) < 6, classes, -1)
    for wrong, message in (
        ({"rounds": -1}, "rounds=-1"),
        ({"pool": 0}, "pool=0"),
        ({"prediction": "sum"}, "product or agreement"),
        ({"classifier": "bayes"}, "is not a classifier"),
        ({"classifier": {"a": MultinomialNB()}}, "classifier is given for"),
        ({"classifier": sc.KMeans}, "is not a classifier"),
        ({"classifier": NearestNames()}, "has no measure of confidence"),
    ):
        with pytest.raises(sc.LearnerError, match=message):
            sc.labels.CoTraining(["a", "b"], **wrong).fit(views, y)
    with pytest.raises(sc.DataError, match="only one class"):
        sc.labels.CoTraining(["a", "b"]).fit(views, np.where(y == 0, 0, -1))
    with pytest.raises(sc.DataError, match="distributions over classes"):
        sc.labels.CoTraining(["a", "b"]).fit(views, np.eye(3)[classes])


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    views, classes = two_views(0)
    model = sc.labels.CoTraining(["a", "b"]).fit(views, classes)
    before = model.predict_proba(views)
    with pytest.raises(sc.DataError):
        model.fit(views, classes[:-1])
    np.testing.assert_array_equal(model.predict_proba(views), before)
    assert clone(model).get_params()["views"] == ["a", "b"]
