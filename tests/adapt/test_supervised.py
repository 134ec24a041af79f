"""Methods that learn from a few labels of the target, beside the same written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

import softcount as sc
from softcount.adapt.supervised import fit_towards
from tests.adapt.problems import two_domains

LINEAR = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000)
SEVERAL = [
    sc.adapt.SourceOnly,
    sc.adapt.TargetOnly,
    sc.adapt.Merge,
    sc.adapt.Weighted,
    sc.adapt.Interpolation,
    sc.adapt.PredictionFeature,
    sc.adapt.SourcePrior,
    sc.adapt.EasyAdapt,
]


def parts(seed: int, K: int = 2) -> Any:
    """X, y and domains; labelled rows of the source and of the target; new rows."""
    X, y, domain, _ = two_domains(seed, K=K)
    source, target = (
        np.flatnonzero((domain > 0) & (y >= 0)),
        np.flatnonzero((domain < 0) & (y >= 0)),
    )
    return X, y, domain, source, target, np.random.default_rng(seed).normal(size=(30, X.shape[1]))


@pytest.mark.parametrize("K", [2, 3])
def test_what_each_baseline_is_trained_on(K: int) -> None:
    X, y, domain, source, target, new = parts(1, K)
    both = np.sort(np.concatenate([source, target]))
    for method, rows in (
        (sc.adapt.SourceOnly, source),
        (sc.adapt.TargetOnly, target),
        (sc.adapt.Merge, both),
    ):
        model = method(LINEAR).fit(X, y, domain)
        expected = LINEAR.fit(X[rows], y[rows])
        np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), atol=1e-9)
        np.testing.assert_allclose(model.word_weights(), expected.coef_, atol=1e-9)


def test_a_weight_is_so_many_copies() -> None:
    X, y, domain, source, target, new = parts(2)
    model = sc.adapt.Weighted(LINEAR, weight=3.0).fit(X, y, domain)
    rows = np.concatenate([source, target, target, target])
    expected = LINEAR.fit(X[rows], y[rows])
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(new), atol=1e-6)


def held_out(y: np.ndarray, target: np.ndarray) -> Any:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return [(target[a], target[b]) for a, b in folds.split(target, y[target])]


def worth(shares: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    right = np.mean(shares.argmax(axis=1) == truth)
    return float(right), float(np.sum(np.log(shares[np.arange(len(truth)), truth])))


@pytest.mark.parametrize("seed", range(3))
def test_the_weight_of_items_is_found_on_held_out_labels_of_the_target(seed: int) -> None:
    X, y, domain, source, target, _ = parts(seed)

    def of(weight: float) -> tuple[float, float]:
        shares, truth = [], []
        for learn, test in held_out(y, target):
            rows = np.concatenate([source, learn])
            weights = np.where(domain[rows] < 0, weight, 1.0)
            shares.append(LINEAR.fit(X[rows], y[rows], weights).predict_proba(X[test]))
            truth.append(y[test])
        return worth(np.vstack(shares), np.concatenate(truth))

    best = max([1.0, 2.0, 3.0, 5.0, 10.0, 20.0], key=of)
    assert sc.adapt.Weighted(LINEAR).fit(X, y, domain).weight_ == best


@pytest.mark.parametrize("seed", range(3))
def test_the_mixture_is_found_on_held_out_labels_of_the_target(seed: int) -> None:
    X, y, domain, source, target, new = parts(seed)
    of_source = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X[source], y[source])
    found = [
        (LINEAR.fit(X[learn], y[learn]).predict_proba(X[test]), test)
        for learn, test in held_out(y, target)
    ]
    shares, rows = np.vstack([one for one, _ in found]), np.concatenate([test for _, test in found])
    other = of_source.predict_proba(X[rows])
    grid = [i / 20 for i in range(21)]
    best = max(grid, key=lambda w: worth(w * shares + (1 - w) * other, y[rows]))
    model = sc.adapt.Interpolation(LINEAR).fit(X, y, domain)
    assert model.weight_ == best
    expected = best * LINEAR.fit(X[target], y[target]).predict_proba(new)
    expected += (1 - best) * of_source.predict_proba(new)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_the_source_has_its_say(K: int) -> None:
    X, y, domain, source, target, new = parts(3, K)
    of_source = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X[source], y[source])
    beside = LINEAR.fit(np.hstack([X[target], of_source.predict_proba(X[target])]), y[target])
    expected = beside.predict_proba(np.hstack([new, of_source.predict_proba(new)]))
    model = sc.adapt.PredictionFeature(LINEAR).fit(X, y, domain)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-9)
    # weights of words: the mean derivative, by differences
    slopes = np.zeros((max(1, K if K > 2 else 1), X.shape[1]))
    for column in range(X.shape[1]):
        up, down = X[target].copy(), X[target].copy()
        up[:, column] += 1e-5
        down[:, column] -= 1e-5
        scores = [
            beside.decision_function(np.hstack([Z, of_source.predict_proba(Z)])).reshape(len(Z), -1)
            for Z in (up, down)
        ]
        slopes[:, column] = (scores[0] - scores[1]).mean(axis=0) / 2e-5
    np.testing.assert_allclose(model.word_weights(), slopes, atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_without_a_source_the_prior_is_ridge(K: int) -> None:
    X, y, _, _, target, _ = parts(4, K)
    ours = fit_towards(np.zeros((1 if K == 2 else K, 13)), X[target], y[target], 0.5)
    ones = np.hstack([X[target], np.ones((len(target), 1))])
    plain = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000, fit_intercept=False)
    np.testing.assert_allclose(ours, plain.fit(ones, y[target]).coef_, atol=1e-5)  # C = 1/l2


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("l2", [0.1, 10.0])
def test_the_prior_is_where_the_objective_is_least(K: int, l2: float) -> None:
    X, y, domain, source, target, _ = parts(5, K)
    model = sc.adapt.SourcePrior(LINEAR, l2=l2).fit(X, y, domain)
    own = LINEAR.fit(X[source], y[source])
    centre, middle = own.coef_.copy(), own.intercept_.copy()

    def objective(coef: np.ndarray, intercept: np.ndarray) -> float:
        scores = X[target] @ coef.T + intercept
        if K == 2:
            scores = np.hstack([np.zeros_like(scores), scores])
        log = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        fit = -log[np.arange(len(target)), y[target]].sum()
        away = np.sum((coef - centre) ** 2) + np.sum((intercept - middle) ** 2)
        return float(fit + 0.5 * l2 * away)

    least, rng = objective(model.coef_, model.intercept_), np.random.default_rng(0)
    for _ in range(40):
        away = 1e-3 * rng.normal(size=model.coef_.shape)
        assert objective(model.coef_ + away, model.intercept_) > least
        aside = 1e-3 * rng.normal(size=model.intercept_.shape)
        assert objective(model.coef_, model.intercept_ + aside) > least
    far = sc.adapt.SourcePrior(LINEAR, l2=1e9).fit(X, y, domain)
    np.testing.assert_allclose(far.coef_, centre, atol=1e-6)
    np.testing.assert_allclose(far.intercept_, middle, atol=1e-6)


@pytest.mark.parametrize("method", SEVERAL)
def test_sparse_rows_are_no_others(method: Any) -> None:
    X, y, domain, _, _, new = parts(6)
    X, new = np.where(X > 0.5, X, 0.0), np.where(new > 0.5, new, 0.0)
    dense = method(LINEAR).fit(X, y, domain)
    thin = method(LINEAR).fit(sparse.csr_matrix(X), y, domain)
    np.testing.assert_allclose(
        dense.predict_proba(new), thin.predict_proba(sparse.csr_matrix(new)), atol=1e-6
    )


@pytest.mark.parametrize("method", SEVERAL)
@pytest.mark.parametrize("classifier", [LinearSVC(), RidgeClassifier()])
def test_any_linear_classifier(method: Any, classifier: Any) -> None:
    X, y, domain, truth = two_domains(7, K=3, n_sources=2)
    model = method(classifier).fit(X, y, domain)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    home = domain > 0 if method is sc.adapt.SourceOnly else domain < 0  # where it has learned
    assert (model.predict(X[home]) == truth[home]).mean() > 0.4
    assert model.word_weights().shape == (3, X.shape[1])
    assert len(model.explain(5).moved) == (0 if method is sc.adapt.SourceOnly else 5)


def test_target_labels_help_where_domains_differ() -> None:
    X, y, domain, truth = two_domains(8, n=300, n_target_labels=60)
    new = (domain < 0) & (y < 0)
    right = {
        method.__name__: float((method().fit(X, y, domain).predict(X[new]) == truth[new]).mean())
        for method in SEVERAL
    }
    assert right["EasyAdapt"] > right["SourceOnly"] + 0.05
    assert min(right[name] for name in right if name != "SourceOnly") > right["SourceOnly"]


def test_a_class_that_a_domain_lacks() -> None:
    X, y, domain, _ = two_domains(9, K=3)
    y = np.where((domain < 0) & (y == 2), -1, y)  # the target's labels lack a class
    for method in SEVERAL:
        shares = method().fit(X, y, domain).predict_proba(X[domain < 0])
        assert shares.shape[1] == 3
    assert (sc.adapt.TargetOnly().fit(X, y, domain).predict_proba(X)[:, 2] == 0.0).all()
    for method in (sc.adapt.Merge, sc.adapt.Weighted, sc.adapt.SourcePrior, sc.adapt.EasyAdapt):
        assert (method().fit(X, y, domain).predict(X[domain > 0]) == 2).any()
    X, y, domain, _ = two_domains(9, K=3)
    y = np.where((domain > 0) & (y == 2), -1, y)  # the source's labels do
    for method in SEVERAL:
        model = method().fit(X, y, domain)
        assert model.predict_proba(X).shape[1] == 3
        assert model.word_weights().shape == (3, X.shape[1])
    assert (sc.adapt.EasyAdapt().fit(X, y, domain).predict(X[domain < 0]) == 2).any()


def test_labels_of_one_class_only() -> None:
    X, y, domain, _ = two_domains(10)
    y = np.where((domain < 0) & (y == 1), -1, y)
    for method in (sc.adapt.TargetOnly, sc.adapt.Interpolation, sc.adapt.PredictionFeature):
        with pytest.raises(sc.DataError, match=r"labels of the target, where all labels are 0"):
            method().fit(X, y, domain)
    for method in (
        sc.adapt.SourceOnly,
        sc.adapt.Merge,
        sc.adapt.Weighted,
        sc.adapt.SourcePrior,
        sc.adapt.EasyAdapt,
    ):
        model = method().fit(X, y, domain)
        assert set(model.predict(X[domain > 0])) == {0, 1}
    texts, marks = ["good book", "bad book"] * 5 + ["good pan"], [1, 0] * 5 + [1]
    model = sc.adapt.SourcePrior().fit(texts, marks, [1] * 10 + [-1])
    assert model.predict(["bad book", "good book"]).tolist() == [0, 1]


def test_weights_of_pairs_of_classes_are_no_weights_of_classes() -> None:
    X, y, domain, _ = two_domains(13, K=3)
    with pytest.raises(sc.DataError, match="pairs of classes"):
        sc.adapt.SourcePrior(SVC(kernel="linear")).fit(X, y, domain)
    easy = sc.adapt.EasyAdapt(SVC(kernel="linear")).fit(X, y, domain)
    with pytest.raises(sc.DataError, match="pairs of classes"):
        easy.explain()
    bare = sc.adapt.SourcePrior(LogisticRegression(fit_intercept=False), l2=1e9).fit(X, y, domain)
    np.testing.assert_allclose(bare.intercept_, 0.0, atol=1e-6)


def test_what_is_missing_is_said() -> None:
    X, y, domain, _ = two_domains(11, n_target_labels=0)
    for method in (
        sc.adapt.TargetOnly,
        sc.adapt.Interpolation,
        sc.adapt.PredictionFeature,
        sc.adapt.SourcePrior,
    ):
        with pytest.raises(sc.DataError, match="where no item has a label"):
            method().fit(X, y, domain)
    with pytest.raises(sc.DataError, match="labels of the source"):
        sc.adapt.SourceOnly().fit(X, np.where(domain > 0, -1, np.arange(len(y)) % 2), domain)
    with pytest.raises(sc.LearnerError, match="sample weights"):
        sc.adapt.Weighted(type("Plain", (GaussianNB,), {"fit": lambda self, X, y: self})()).fit(
            X, y
        )
    with pytest.raises(sc.LearnerError, match="weight=-1"):
        sc.adapt.Weighted(weight=-1).fit(X, y, domain)
    with pytest.raises(sc.LearnerError, match=r"0: source only"):
        sc.adapt.Interpolation(weight=1.5).fit(X, y, domain)
    with pytest.raises(sc.LearnerError, match="weight='x'"):
        sc.adapt.Interpolation(weight="x").fit(X, y, domain)  # type: ignore[arg-type]
    with pytest.raises(sc.LearnerError, match="l2"):
        sc.adapt.SourcePrior(l2=0.0).fit(X, y, domain)
    X, y, domain, _ = two_domains(11)
    with pytest.raises(sc.DataError, match="has no weights of words"):
        sc.adapt.SourcePrior(GaussianNB()).fit(X, y, domain)


def test_too_few_labels_to_hold_any_out() -> None:
    X, y, domain, _ = two_domains(12, n_target_labels=2)
    y[-2:] = 0, 1
    assert sc.adapt.Weighted().fit(X, y, domain).weight_ == 1.0
    assert sc.adapt.Interpolation().fit(X, y, domain).weight_ == 0.5
    assert sc.adapt.SourcePrior().fit(X, y, domain).l2_ == 0.3
