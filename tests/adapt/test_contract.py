"""Methods as scikit-learn's estimators: pipelines, searches, texts, domains as users give them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import softcount as sc
from softcount.adapt.base import find_moved_words
from softcount.adapt.comparison import make_methods
from tests.adapt.problems import two_domains
from tests.sklearn_checks import checks

MINUS_ONE = {"check_classifiers_classes": "uses −1 as a class; here it means unknown"}
ALL = list(make_methods(True))


@checks(
    [sc.adapt.EasyAdapt()],
    [sc.adapt.SourceOnly(), sc.adapt.Merge(), sc.adapt.Weighted()],
    expected_failed_checks=lambda model: MINUS_ONE,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def method(name: str) -> Any:
    return clone(make_methods(True)[name])


@pytest.mark.parametrize("name", ALL)
def test_fits_again_and_is_pickled(name: str) -> None:
    X, y, domain, _ = two_domains(1)
    model = method(name).fit(X, y, domain)
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), shares)
    np.testing.assert_array_equal(model.fit(X, y, domain).predict_proba(X), shares)
    assert model.classes_.tolist() == [0, 1]
    assert set(model.predict(X)) <= {0, 1}
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("name", ALL)
def test_texts_with_names_for_labels(name: str) -> None:
    texts = ["a good book", "a bad book", "good plot", "bad plot", "good heat", "bad, blunt"]
    texts += ["a good, sharp knife", "a bad, blunt knife", ""]
    y = ["+", "-", "+", "-", "+", "-", None, None, None]
    domain = [1, 1, 1, 1, -1, -1, -1, -1, -1]
    model = method(name).fit(texts, y, sample_domain=domain)
    assert model.predict(["good", "bad"]).tolist() == ["+", "-"]
    assert model.predict_proba(["", "never seen"]).shape == (2, 2)
    explained = model.explain(5)
    assert (0 < len(explained.moved) <= 5) == (name != "SourceOnly")
    assert all(one.word in model.feature_names() for one in explained.moved)
    assert str(explained).startswith("word")


@pytest.mark.parametrize("name", ALL)
def test_an_error_leaves_the_model_as_it_was(name: str) -> None:
    X, y, domain, _ = two_domains(2)
    model = method(name).fit(X, y, domain)
    before = model.predict_proba(X)
    with pytest.raises(sc.DataError):
        model.fit(X, y, domain[:-1])
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("name", ALL)
def test_three_sources_and_three_classes(name: str) -> None:
    X, y, domain, truth = two_domains(3, n=80, n_target_labels=40, K=3, n_sources=3)
    model = method(name).fit(sparse.csr_matrix(X), y, domain)
    assert model.domains_.tolist() == [-1, 1, 2, 3]
    new = domain < 0
    assert (model.predict(sparse.csr_matrix(X[new])) == truth[new]).mean() > 0.4


def test_without_domains_what_has_no_label_is_the_target() -> None:
    X, y, domain, _ = two_domains(4, n_target_labels=0)
    one, other = sc.adapt.SourceOnly().fit(X, y), sc.adapt.SourceOnly().fit(X, y, domain)
    assert one.domains_.tolist() == other.domains_.tolist() == [-1, 1]
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    ("domains", "says"),
    [
        ([1, 0], "0 is not a valid domain"),
        ([1, 0.5], r"0\.5 is not a valid domain"),
        (["books", "ovens"], "'books' is not a valid domain"),
        ([1], "2 items and 1 domains"),
        ([1, None], "None is not a valid domain"),
        ([1, float("nan")], "nan is not a valid domain"),
        ([[1], [1]], r"domains of shape \(2, 1\)"),
    ],
)
def test_domains_are_numbers(domains: list[Any], says: str) -> None:
    with pytest.raises(sc.DataError, match=says):
        sc.adapt.SourceOnly().fit([[1.0], [2.0]], [0, 1], domains)


@pytest.mark.parametrize("name", ["PivotProjection", "DenoisingProjection", "AdversarialNetwork"])
def test_no_target_at_all(name: str) -> None:
    X, y, domain, _ = two_domains(5)
    with pytest.raises(sc.DataError, match="no item of the target"):
        method(name).fit(X[domain > 0], y[domain > 0], domain[domain > 0])
    labelled = np.flatnonzero(y >= 0)  # a target without unlabelled items will do
    method(name).fit(X[labelled], y[labelled], domain[labelled])


def test_at_the_end_of_a_pipeline() -> None:
    X, y, domain, _ = two_domains(6)
    steps = Pipeline([("scale", StandardScaler()), ("adapt", sc.adapt.EasyAdapt())])
    steps.fit(X, y, adapt__sample_domain=domain)
    scaled = StandardScaler().fit(X)
    expected = sc.adapt.EasyAdapt().fit(scaled.transform(X), y, domain)
    np.testing.assert_array_equal(steps.predict(X), expected.predict(scaled.transform(X)))


def test_texts_through_a_pipeline() -> None:
    texts = ["a good book", "a bad book", "good oven", "bad oven"]
    steps = Pipeline(
        [("count", CountVectorizer()), ("tf", TfidfTransformer()), ("a", sc.adapt.Merge())]
    )
    steps.fit(texts, [1, 0, -1, -1], a__sample_domain=[1, 1, -1, -1])
    assert steps.predict(["good oven"]).tolist() == [1]


@pytest.mark.parametrize("on", ["source", "target"])
def test_a_search_looks_at_labels_of_one_domain_only(on: str) -> None:
    X, y, domain, _ = two_domains(7)
    settings = {"classifier": [LogisticRegression(C=C) for C in (0.001, 1.0)]}
    folds = sc.adapt.domain_folds(y, domain, on=on)
    search = GridSearchCV(sc.adapt.EasyAdapt(), settings, cv=folds)
    search.fit(X, y, sample_domain=domain)
    by_hand = []
    for one in settings["classifier"]:
        right = []
        for learn, test in folds:
            model = sc.adapt.EasyAdapt(one).fit(X[learn], y[learn], domain[learn])
            right.append((model.predict(X[test]) == y[test]).mean())
        by_hand.append(np.mean(right))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand)


def test_domains_are_handed_on_by_routing() -> None:
    X, y, domain, _ = two_domains(8)
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            Pipeline([("scale", StandardScaler()), ("adapt", sc.adapt.EasyAdapt())]),
            {"adapt__classifier": [LogisticRegression(C=C) for C in (0.1, 1.0)]},
            cv=sc.adapt.domain_folds(y, domain, on="target"),
        )
        search.fit(X, y, sample_domain=domain)
        inner = search.best_estimator_.named_steps["adapt"]
        assert inner.domains_.tolist() == [-1, 1]
        scores = cross_val_score(
            sc.adapt.EasyAdapt(),
            X,
            y,
            cv=sc.adapt.domain_folds(y, domain, on="target"),
            params={"sample_domain": domain},
        )
        assert len(scores) == 5


def test_folds_hold_out_labels_of_one_domain() -> None:
    _, y, domain, _ = two_domains(9)
    for on, sign in (("source", 1), ("target", -1)):
        folds = sc.adapt.domain_folds(y, domain, on=on, n_splits=4)
        tested = np.concatenate([test for _, test in folds])
        expected = np.flatnonzero((domain * sign > 0) & (y >= 0))
        np.testing.assert_array_equal(np.sort(tested), expected)
        for learn, test in folds:
            np.testing.assert_array_equal(np.union1d(learn, test), np.arange(len(y)))
            assert not np.isin(learn, test).any()
            assert set(y[test]) == {0, 1}


def test_folds_that_cannot_be() -> None:
    with pytest.raises(sc.DataError, match="5 folds need"):
        sc.adapt.domain_folds([0, 1, 0, 1], [1, 1, 1, -1], on="target")
    with pytest.raises(sc.LearnerError, match="on='here'"):
        sc.adapt.domain_folds([0, 1], [1, 1], on="here")
    with pytest.raises(sc.LearnerError, match="n_splits"):
        sc.adapt.domain_folds([0, 1], [1, 1], n_splits=1)


def test_minus_one_among_names() -> None:
    texts = ["a good book", "a bad book", "good oven", "bad oven"]
    model = sc.adapt.Merge().fit(texts, ["1", "-1", None, None])
    assert model.predict(["good", "bad"]).tolist() == ["1", "-1"]


def test_columns_of_a_matrix_are_called_by_their_names() -> None:
    X, y, domain, _ = two_domains(10)
    model = sc.adapt.EasyAdapt().fit(X, y, domain)
    assert {one.word for one in model.explain(40).moved} == {f"x{i}" for i in range(12)}
    assert {one.word for one in model.explain(40, names="abcdefghijkl").moved} == {*"abcdefghijkl"}
    assert model.feature_names()[0] == "a"
    with pytest.raises(sc.DataError, match="3 names for 12 columns"):
        model.explain(names=["a", "b", "c"])


def test_what_counts_is_what_moves_scores_of_the_target() -> None:
    """A word that never occurs in the target counts for nothing, and longer weights are no news."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(80, 4)).astype(float)
    domain = np.repeat([1, -1], 40)
    X[domain < 0, 3] = 0.0
    y = np.where(domain > 0, X[:, 0] + X[:, 3] > 0.5, X[:, 1] > 0.5).astype(int)
    moved = sc.adapt.TargetOnly().fit(X, y, domain).explain().moved
    assert [one.word for one in moved][:2] in (["x0", "x1"], ["x1", "x0"])
    assert "x3" not in {one.word for one in moved}
    assert next(one for one in moved if one.word == "x1").moved > 0.0
    weights = np.array([[1.0, -2.0, 0.5, 4.0]])
    assert find_moved_words([*"abcd"], np.array([0, 1]), weights, 4.0 * weights, X, 9) == []
