"""Naive Bayes with all labels, few labels, soft labels, and labels that do not help."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import softcount as sc

Array = np.ndarray


def documents(seed: int, n: int = 40, n_words: int = 8, n_classes: int = 3) -> tuple[Array, Array]:
    """Counts, and the classes that they come from."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.ones(n_words), size=n_classes)
    classes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return rng.poisson(10.0 * words[classes]), classes


def hide(classes: Array, shown: int) -> Array:
    return np.where(np.arange(len(classes)) < shown, classes, -1)


def assert_same(one: Any, other: Any, X: Array) -> None:
    np.testing.assert_allclose(one.words_, other.words_, rtol=1e-9)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-9)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("bernoulli", [False, True])
@given(seed=st.integers(0, 10**6), smoothing=st.sampled_from([0.01, 0.1, 1.0, 3.0]))
@settings(max_examples=20, deadline=None)
def test_with_all_labels_it_is_scikit_learns(seed: int, smoothing: float, bernoulli: bool) -> None:
    X, y = documents(seed)
    theirs = (BernoulliNB if bernoulli else MultinomialNB)(alpha=smoothing).fit(X, y)
    ours = sc.NaiveBayes(smoothing=smoothing, bernoulli=bernoulli).fit(X, y)
    np.testing.assert_allclose(np.log(ours.weights_), theirs.class_log_prior_, rtol=1e-9)
    np.testing.assert_allclose(np.log(ours.words_), theirs.feature_log_prob_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


def test_with_all_labels_the_start_is_the_end() -> None:
    X, y = documents(0)
    model = sc.NaiveBayes().fit(X, y)
    assert model.n_iter_ == 1
    assert model.trace_[1].change == 0.0


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_a_weight_of_zero_leaves_unlabelled_documents_out(seed: int) -> None:
    X, truth = documents(seed)
    without = sc.NaiveBayes(unlabelled_weight=0.0).fit(X, hide(truth, 12))
    assert_same(without, sc.NaiveBayes().fit(X[:12], truth[:12]), X)


@given(seed=st.integers(0, 10**6), components=st.integers(1, 2))
@settings(max_examples=10, deadline=None)
def test_a_weight_is_as_good_as_copies(seed: int, components: int) -> None:
    X, truth = documents(seed)
    y = hide(truth, 12)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(y))
    weights[:3] = 1  # of every class at least one
    model = sc.NaiveBayes(n_components=components)
    start = model.fit(X, y).params_
    weighted = sc.NaiveBayes(n_components=components).fit(X, y, weights, init=start)
    copied = sc.NaiveBayes(n_components=components)
    copied.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), init=start)
    assert_same(weighted, copied, X)


def test_the_weight_of_unlabelled_documents_is_a_sample_weight() -> None:
    X, truth = documents(1)
    y = hide(truth, 12)
    one = sc.NaiveBayes(unlabelled_weight=0.3).fit(X, y)
    assert_same(one, sc.NaiveBayes().fit(X, y, np.where(y == -1, 0.3, 1.0)), X)


@pytest.mark.parametrize("components", [1, 2])
def test_shares_of_one_class_are_a_label(components: int) -> None:
    X, truth = documents(2)
    y = hide(truth, 20)
    shares = np.where((y == -1)[:, None], np.nan, np.eye(3)[y])
    soft = sc.NaiveBayes(n_components=components).fit(X, shares)
    assert_same(soft, sc.NaiveBayes(n_components=components).fit(X, y), X)


def test_soft_labels_are_documents_in_parts() -> None:
    X, truth = documents(3)
    y = hide(truth, 20).astype(object)
    shares = np.where((y == -1)[:, None], np.nan, np.eye(3)[y.astype(int)])
    shares[0] = [0.25, 0.75, 0.0]
    soft = sc.NaiveBayes().fit(X, shares)
    parts = sc.NaiveBayes().fit(
        np.vstack([X, X[:1]]), np.append(y, 1), np.array([0.25, *np.ones(len(y) - 1), 0.75])
    )
    assert y[0] == 0
    assert_same(soft, parts, X)


def test_labels_of_any_kind() -> None:
    X, truth = documents(4)
    numbers = hide(truth, 20)
    names = [None if number == -1 else "abc"[number] for number in numbers]
    by_number, by_name = sc.NaiveBayes().fit(X, numbers), sc.NaiveBayes().fit(X, names)
    assert_same(by_number, by_name, X)
    assert by_name.classes_.tolist() == ["a", "b", "c"]
    assert by_name.predict(X).tolist() == ["abc"[k] for k in by_number.predict(X)]


def test_transduction_keeps_the_labels_and_fills_in_the_rest() -> None:
    X, truth = documents(5)
    y = hide(truth, 20)
    y[0] = (y[0] + 1) % 3  # a wrong label is a label
    model = sc.NaiveBayes().fit(X, y)
    assert model.transduction_[:20].tolist() == y[:20].tolist()
    assert model.transduction_[20:].tolist() == model.predict(X[20:]).tolist()


@pytest.mark.parametrize("model", [sc.NaiveBayes(), sc.NaiveBayes(n_components=3, bernoulli=True)])
def test_probabilities_add_up(model: sc.NaiveBayes) -> None:
    X, truth = documents(6)
    model.fit(X, hide(truth, 20))
    new = np.vstack([X, np.zeros_like(X[:1]), 1_000_000 * X[:1]])
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(
            model.predict_log_proba(new), np.log(model.predict_proba(new))
        )


def test_an_empty_document_gets_the_commonest_class() -> None:
    X, _ = documents(7)
    model = sc.NaiveBayes().fit(X, np.arange(len(X)) % 4 == 0)
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 8))), [[0.75, 0.25]])


def test_components_find_what_a_class_is_made_of() -> None:
    """Two classes, each of two topics: exclusive or, which one component a class cannot see."""
    rng = np.random.default_rng(0)
    topic = rng.integers(4, size=400)
    rates = np.array([[4, 0.1, 4, 0.1], [0.1, 4, 0.1, 4], [4, 0.1, 0.1, 4], [0.1, 4, 4, 0.1]])
    X, y = rng.poisson(rates[topic]), topic // 2
    assert sc.NaiveBayes().fit(X, y).score(X, y) < 0.7
    model = sc.NaiveBayes(n_components=2, learner=sc.EM(n_init=5)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.weights_.shape == (4,)
    np.testing.assert_allclose(
        model.weights_.reshape(2, 2).sum(axis=1), [np.mean(y == 0), y.mean()]
    )


def test_length_makes_every_document_count_the_same() -> None:
    X, truth = documents(8)
    X[:, 0] += 1  # none is empty
    scaled = 100.0 * X / X.sum(axis=1, keepdims=True)
    model = sc.NaiveBayes(length=100).fit(X, truth)
    np.testing.assert_allclose(model.words_, sc.NaiveBayes().fit(scaled, truth).words_)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(7 * X))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"unlabelled_weight": -1.0}, "unlabelled_weight=-1.0"),
        ({"unlabelled_weight": np.nan}, "unlabelled_weight=nan"),
        ({"length": 0}, "length=0"),
        ({"prior": {"wings": 1.0}}, "wings"),
    ],
)
def test_bad_settings(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(sc.LearnerError, match=says):
        sc.NaiveBayes(**bad).fit([[1, 0], [0, 1]], [0, 1])


# collapse: many words, few of them telling, and labelled documents of different lengths
def hard_documents(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    telling = rng.dirichlet(np.full(3000, 0.02), size=4)
    words = 0.15 * telling + 0.85 * rng.dirichlet(np.full(3000, 0.1))
    truth = np.arange(400) % 4
    lengths = np.where(np.arange(400) < 8, 20 * (1 + truth), 20)
    return rng.multinomial(lengths, words[truth] / words[truth].sum(axis=1, keepdims=True)), truth


@pytest.mark.parametrize("seed", [0, 1])
def test_a_collapse_is_not_silent(seed: int) -> None:
    X, truth = hard_documents(seed)
    model = sc.NaiveBayes(smoothing=1.0, unlabelled_weight=0.1)
    with pytest.warns(
        sc.errors.CollapseWarning, match=r"class 3, which has 25% .*collapsed"
    ) as caught:
        model.fit(X, hide(truth, 8))
    assert caught[0].filename == __file__
    assert np.mean(model.transduction_ == truth) < 0.3


@pytest.mark.parametrize("seed", [0, 1])
def test_no_warning_where_there_is_no_collapse(seed: int) -> None:
    X, truth = hard_documents(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.NaiveBayes(smoothing=0.1).fit(X, hide(truth, 8))
        sc.NaiveBayes(smoothing=1.0, unlabelled_weight=0.0).fit(X, hide(truth, 8))


# choosing λ
def helpful(seed: int) -> tuple[Array, Array]:
    """Many words that tell a little each: documents without labels say which go together."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=600)
    return rng.poisson(np.where(truth[:, None] == np.arange(200) % 2, 0.12, 0.06)), truth


def misleading(seed: int) -> tuple[Array, Array]:
    """Four words tell the label; forty others tell something else, and tell it louder."""
    rng = np.random.default_rng(seed)
    truth, other = rng.integers(2, size=(2, 600))
    rates = np.full((600, 60), 0.3)
    rates[:, :4] = np.where(truth[:, None] == [0, 0, 1, 1], 2.0, 0.3)
    rates[:, 20:] = np.where(other[:, None] == np.arange(40) % 2, 1.5, 0.2)
    return rng.poisson(rates), truth


def right(model: sc.NaiveBayes, truth: Array, shown: int) -> float:
    return float(np.mean(model.transduction_[shown:] == truth[shown:]))


@pytest.mark.parametrize("seed", [0, 1])
def test_unlabelled_documents_are_used_where_they_help(seed: int) -> None:
    X, truth = helpful(seed)
    y = hide(truth, 20)
    model = sc.NaiveBayesCV().fit(X, y)
    supervised = sc.NaiveBayes(unlabelled_weight=0.0).fit(X, y)
    assert model.unlabelled_weight_ >= 0.3
    assert right(model, truth, 20) > right(supervised, truth, 20) + 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_unlabelled_documents_are_left_where_they_mislead(seed: int) -> None:
    X, truth = misleading(seed)
    y = hide(truth, 80)
    model = sc.NaiveBayesCV().fit(X, y)
    assert model.unlabelled_weight_ <= 0.03
    assert right(model, truth, 80) > right(sc.NaiveBayes().fit(X, y), truth, 80) + 0.1


def test_what_the_search_leaves() -> None:
    X, truth = helpful(2)
    grid = (1.0, 0.0, 0.1)
    model = sc.NaiveBayesCV(unlabelled_weights=grid, cv=3).fit(X, hide(truth, 20))
    assert set(model.cv_scores_) == set(grid)
    assert all(0.0 <= score <= 1.0 for score in model.cv_scores_.values())
    chosen = sc.NaiveBayes(unlabelled_weight=model.unlabelled_weight_).fit(X, hide(truth, 20))
    assert_same(model, chosen, X)


def test_one_label_a_class_leaves_nothing_to_search_by() -> None:
    X, truth = documents(9)
    model = sc.NaiveBayesCV(unlabelled_weight=0.5).fit(X, hide(truth, 3))
    assert (model.cv_scores_, model.unlabelled_weight_) == ({}, 0.5)
    assert_same(model, sc.NaiveBayes(unlabelled_weight=0.5).fit(X, hide(truth, 3)), X)


def test_a_rare_class_does_not_stop_the_search() -> None:
    X, truth = documents(10)
    y = hide(np.where(truth == 2, 1, truth), 20)
    y[0] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sc.NaiveBayesCV().fit(X, y)
    assert len(model.cv_scores_) == 6
    assert model.classes_.tolist() == [0, 1, 2]


def test_without_unlabelled_documents_there_is_nothing_to_choose() -> None:
    X, truth = documents(11)
    model = sc.NaiveBayesCV().fit(X, truth)
    assert model.cv_scores_ == {}
    assert_same(model, sc.NaiveBayes().fit(X, truth), X)


def test_a_splitter_of_scikit_learn() -> None:
    from sklearn.model_selection import ShuffleSplit

    X, truth = documents(12)
    splitter = ShuffleSplit(3, test_size=0.2, random_state=0)
    assert sc.NaiveBayesCV(cv=splitter).fit(X, hide(truth, 20)).cv_scores_


@pytest.mark.parametrize(
    ("bad", "says"), [({"unlabelled_weights": ()}, "empty"), ({"cv": 1}, "cv=1")]
)
def test_bad_settings_of_the_search(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(sc.LearnerError, match=says):
        sc.NaiveBayesCV(**bad).fit([[1, 0], [0, 1]], [0, 1])


def test_needs_are_known_before_a_weight_is_chosen() -> None:
    texts, labels = ["good fun", "bad", "good", "awful bad"], ["+", "-", None, None]
    needed = sc.mixture.NaiveBayesCV().estimate(texts, labels)
    assert needed.items == sc.NaiveBayes().estimate(texts, labels).items
