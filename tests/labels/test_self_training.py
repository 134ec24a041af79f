"""Self-training is hard EM, or what scikit-learn does, or neither, and always ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

import softcount as sc
from tests.sklearn_checks import checks

MINUS_ONE = {"check_classifiers_classes": "uses −1 as a class; here it means unknown"}


@checks(
    [sc.labels.SelfTraining()],
    [sc.labels.SelfTraining(LogisticRegression(), threshold=0.6, keep=True)],
    expected_failed_checks=lambda model: MINUS_ONE,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def documents(seed: int, n: int = 120, K: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, classes, and the labels of nine of them."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, n)
    classes[:9] = np.arange(9) % K
    words = rng.dirichlet(np.full(30, 0.3), size=K)
    X = np.array([rng.multinomial(rng.integers(1, 9), words[k]) for k in classes], dtype=float)
    return X, classes, np.where(np.arange(n) < 9, classes, -1)


def labels_after(model: sc.labels.SelfTraining, number: int) -> np.ndarray:
    found = np.full(len(model.transduction_), -1)
    for one in range(number + 1):
        for item, event in model.history_.events(one):
            found[item] = -1 if event.label is None else event.label
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dials", [{}, {"length": 20.0}, {"smoothing": 1.0}])
def test_with_naive_bayes_it_is_hard_em(seed: int, dials: dict[str, float]) -> None:
    X, _, y = documents(seed)
    model = sc.labels.SelfTraining(sc.NaiveBayes(**dials)).fit(csr_matrix(X), y)
    assert model.verdict_ is sc.Verdict.CONVERGED
    rounds = len(model.history_) - 1
    assert rounds >= 2
    for number in range(1, rounds + 1):
        steps = sc.HardEM(max_iter=number - 1, tol=0.0) if number > 1 else None
        if steps is None:  # the start: what the labelled documents say
            known = y >= 0
            expected = sc.NaiveBayes(**dials).fit(X[known], y[known]).predict(X)
            expected[known] = y[known]
        else:
            expected = sc.NaiveBayes(**dials, learner=steps).fit(X, y).transduction_
        np.testing.assert_array_equal(labels_after(model, number), expected)
    whole = sc.NaiveBayes(**dials, learner=sc.HardEM(max_iter=rounds, tol=0.0)).fit(X, y)
    np.testing.assert_array_equal(model.transduction_, whole.transduction_)
    np.testing.assert_allclose(model.estimator_.words_, whole.words_, rtol=1e-12)
    if not dials:  # whole counts add up without rounding
        np.testing.assert_array_equal(model.estimator_.words_, whole.words_)


def log_joint(model: Any, X: np.ndarray, numbers: np.ndarray) -> float:
    """log p(documents, labels, tables) of Naive Bayes with smoothing 0.1, plainly."""
    words, weights = np.log(model.words_), np.log(model.weights_)
    items = sum(weights[k] + row @ words[k] for row, k in zip(X, numbers, strict=True))
    return float(items + 0.1 * words.sum())


def test_rounds_climb_the_joint_probability() -> None:
    X, _, y = documents(11)
    found = []
    for number in range(1, 6):
        model = sc.labels.SelfTraining(sc.NaiveBayes(), max_rounds=number).fit(X, y)
        found.append(log_joint(model.estimator_, X, labels_after(model, len(model.history_) - 1)))
    assert np.diff(found).min() >= -1e-9
    assert found[-1] > found[0]


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.75, 0.9, 0.99]))
@settings(max_examples=20, deadline=None)
def test_a_threshold_is_scikit_learns(seed: int, threshold: float) -> None:
    X, _, y = documents(seed)
    ours = sc.labels.SelfTraining(MultinomialNB(), threshold=threshold, keep=True).fit(X, y)
    theirs = SelfTrainingClassifier(MultinomialNB(), threshold=threshold, max_iter=100).fit(X, y)
    np.testing.assert_array_equal(ours.history_.first_rounds(), theirs.labeled_iter_)
    known = theirs.transduction_ != -1
    np.testing.assert_array_equal(ours.transduction_[known], theirs.transduction_[known])
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 7, 40])
def test_the_best_few_are_scikit_learns(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)  # points: no two are equally sure
    classes = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 2)) + 2.0 * np.eye(3)[classes][:, :2]
    y = np.where(np.arange(90) < 15, classes, -1)
    ours = sc.labels.SelfTraining(GaussianNB(), best=k, keep=True).fit(X, y)
    theirs = SelfTrainingClassifier(GaussianNB(), criterion="k_best", k_best=k, max_iter=100)
    theirs.fit(X, y)
    np.testing.assert_array_equal(ours.history_.first_rounds(), theirs.labeled_iter_)
    np.testing.assert_array_equal(ours.transduction_, theirs.transduction_)


def test_so_many_of_each_class() -> None:
    X, _, y = documents(3)
    model = sc.labels.SelfTraining(MultinomialNB(), per_class=2, keep=True).fit(X, y)
    for number in range(1, len(model.history_)):
        given = [event.label for _, event in model.history_.events(number)]
        assert max(given.count(k) for k in range(3)) <= 2
    assert (labels_after(model, len(model.history_) - 1) != -1).all()


def test_labels_that_do_not_stay() -> None:
    """Every round labels anew: some labels change, and some are lost again."""
    X, _, y = documents(1)
    model = sc.labels.SelfTraining(MultinomialNB(), threshold=0.8).fit(X, y)
    assert sum(one.lost for one in model.history_.rounds) > 0
    kept = sc.labels.SelfTraining(MultinomialNB(), threshold=0.8, keep=True).fit(X, y)
    assert sum(one.lost + one.changed for one in kept.history_.rounds) == 0
    shares = model.predict_proba(X)
    last = labels_after(model, len(model.history_) - 1)
    free = y == -1
    np.testing.assert_array_equal(last[free] != -1, shares.max(axis=1)[free] > 0.8)


class Contrary(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Says of every item the opposite of what most of its lessons said."""

    def fit(self, X: Any, y: Any) -> Contrary:
        self.classes_ = np.unique(y)
        self.says_ = 0 if np.mean(y) > 0.5 else 1
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.tile(np.eye(2)[self.says_], (len(X), 1))


class ThreeQuarters(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Is as sure of the second class of every item."""

    def fit(self, X: Any, y: Any) -> ThreeQuarters:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.tile([0.25, 0.75], (len(X), 1))


def test_a_threshold_is_to_be_exceeded() -> None:
    X, y = np.ones((5, 1)), [0, 1, -1, -1, -1]
    exact = sc.labels.SelfTraining(ThreeQuarters(), threshold=0.75).fit(X, y)
    assert len(exact.history_) == 1
    assert exact.transduction_.tolist() == [0, 1, 1, 1, 1]  # as it would label them
    below = sc.labels.SelfTraining(ThreeQuarters(), threshold=0.74).fit(X, y)
    assert below.history_.first_rounds().tolist() == [0, 0, 1, 1, 1]
    assert below.history_.of(3)[0].confidence == 0.75


def test_of_equally_sure_items_the_first_are_labelled() -> None:
    X, y = np.ones((6, 1)), [0, -1, 1, -1, -1, -1]
    for way in ({"best": 2}, {"per_class": 2}):
        model = sc.labels.SelfTraining(ThreeQuarters(), keep=True, **way).fit(X, y)
        assert model.history_.first_rounds().tolist() == [0, 1, 0, 1, 2, 2]


def test_a_circle_ends_and_is_told() -> None:
    y = [0, 1, -1, -1, -1, -1, -1]
    model = sc.labels.SelfTraining(Contrary()).fit(np.ones((7, 1)), y)
    assert model.verdict_ is sc.Verdict.CIRCLED
    assert not model.verdict_.good
    assert len(model.history_) <= 4
    short = sc.labels.SelfTraining(Contrary(), max_rounds=1).fit(np.ones((7, 1)), y)
    assert short.verdict_ is sc.Verdict.OUT_OF_STEPS


@given(st.integers(0, 1000), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_classifier_ends(seed: int, keep: bool) -> None:
    X, classes, y = documents(seed, n=40)
    model = sc.labels.SelfTraining(RidgeClassifier(alpha=0.1), keep=keep).fit(X, y, gold=classes)
    np.testing.assert_array_equal(model.transduction_[:9], classes[:9])
    last = labels_after(model, len(model.history_) - 1)
    assert model.history_.accuracy[-1] == np.mean(last[9:] == classes[9:])


def test_texts_are_counted_together() -> None:
    """Words of unlabelled texts are words too, though the first fit has not seen any."""
    texts = ["good fine", "bad awful", "good great", "awful dreadful", "great great"]
    model = sc.labels.SelfTraining().fit(texts, ["+", "-", None, None, None])
    assert model.predict(["great", "dreadful"]).tolist() == ["+", "-"]
    assert model.n_features_in_ == 6


def test_nothing_to_label() -> None:
    X, classes, _ = documents(0)
    model = sc.labels.SelfTraining(MultinomialNB()).fit(X, classes)
    assert len(model.history_) == 1
    np.testing.assert_array_equal(model.predict(X), MultinomialNB().fit(X, classes).predict(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": 1.0}, "threshold=1.0"),
        ({"threshold": 0.5, "best": 3}, "alternative ways"),
        ({"best": 0}, "best=0"),
        ({"per_class": 0}, "per_class=0"),
        ({"max_rounds": -1}, "max_rounds=-1"),
        ({"classifier": 3}, "is not a classifier"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, Any], message: str) -> None:
    X, _, y = documents(0)
    with pytest.raises(sc.LearnerError, match=message):
        sc.labels.SelfTraining(**wrong).fit(X, y)


def test_what_cannot_count_words_is_no_vectorizer() -> None:
    with pytest.raises(sc.LearnerError, match="cannot count words"):
        sc.labels.SelfTraining(vectorizer=3).fit(["a b", "c d"], ["x", "y"])


def test_the_text_minus_one_is_a_class_if_a_list_has_it() -> None:
    model = sc.labels.SelfTraining().fit(["a b", "c d", "a"], ["x", "-1", None])
    assert model.transduction_.tolist() == ["x", "-1", "x"]


def test_columns_in_another_order_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = sc.labels.SelfTraining(GaussianNB()).fit(frame, [0, 1, 0, -1])
    assert len(model.predict(frame)) == 4
    with pytest.raises(sc.DataError, match="feature names"):
        model.predict(frame[list("dcba")])
