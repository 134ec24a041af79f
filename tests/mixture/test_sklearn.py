"""scikit-learn's own checks of estimators; what cannot pass is named, with the reason."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils.estimator_checks import check_clustering

import softcount as sc
from tests.sklearn_checks import checks

WORDS = [sc.MultinomialMixture(), sc.MultinomialMixture(bernoulli=True)]
POINTS = [
    *(
        sc.GaussianMixture(covariance=form)
        for form in ("full", "diag", "spherical", "tied", "identity")
    ),
    sc.KMeans(),
    sc.SoftKMeans(),
]
PROCESSES = [sc.DirichletProcessMixture(), sc.DirichletProcessGaussianMixture()]
CLASSIFIERS = [sc.NaiveBayes(), sc.NaiveBayes(n_components=2), sc.NaiveBayesCV()]

SEED = "draws its start from the rows in their order: other rows, other start"
EQUIVALENCE = {
    "check_sample_weight_equivalence_on_dense_data": SEED,
    "check_sample_weight_equivalence_on_sparse_data": SEED,
}
NEGATIVE = {"check_clustering": "clusters points about zero, and counts cannot be negative"}
GAPS = {"check_clustering": "a label is the number of a class, and some classes stay empty"}
COLUMNS = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    "takes whatever has predict_proba for a classifier with a column for each class in y",
)
MINUS_ONE = {"check_classifiers_classes": "uses −1 as a class; here it means unknown"}


def expected(model: Any) -> dict[str, str]:
    """Checks that this model fails, and why."""
    if isinstance(model, sc.NaiveBayes):
        return MINUS_ONE | (EQUIVALENCE if model.n_components > 1 else {})
    process = isinstance(model, sc.DirichletProcessMixture | sc.DirichletProcessGaussianMixture)
    if isinstance(model, sc.MultinomialMixture):
        return NEGATIVE | COLUMNS | ({} if process or model.bernoulli else EQUIVALENCE)
    empty = isinstance(model, sc.SoftKMeans) or getattr(model, "covariance", "") == "identity"
    return ({} if process else EQUIVALENCE) | (GAPS if empty else {})


KINDS = [WORDS[0], POINTS[0], sc.KMeans(), PROCESSES[0], CLASSIFIERS[0], CLASSIFIERS[2]]
VARIANTS = [WORDS[1], *POINTS[1:5], sc.SoftKMeans(), PROCESSES[1], CLASSIFIERS[1]]


@checks(KINDS, VARIANTS, expected_failed_checks=expected)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.errors.CollapseWarning)
        warnings.simplefilter("ignore", sc.errors.IgnoredLabelsWarning)  # checks give y to everyone
        check(estimator)


@pytest.mark.parametrize("model", POINTS[-3:], ids=repr)
def test_labels_have_no_gaps_where_no_class_is_empty(model: Any) -> None:
    """What `GAPS` excuses passes with as many classes as the data have."""
    check_clustering(type(model).__name__, clone(model).set_params(n_components=3))


COUNTS = np.random.default_rng(0).poisson(1.0, (12, 6)).astype(float)
COPIES = np.array([1, 2, 0, 3, 1, 1, 2, 1, 0, 1, 4, 1])


@pytest.mark.parametrize("model", [*WORDS, *POINTS, *PROCESSES], ids=repr)
def test_a_weight_is_as_good_as_copies(model: Any) -> None:
    """What `EQUIVALENCE` excuses holds from one start."""
    model = clone(model).set_params(n_components=2)
    start = clone(model).fit(COUNTS, sample_weight=COPIES).params_
    if isinstance(model, sc.KMeans | sc.SoftKMeans):
        start = {"means": start["means"]}
    weighted = clone(model).fit(COUNTS, sample_weight=COPIES, init=start)
    copied = clone(model).fit(np.repeat(COUNTS, COPIES, axis=0), init=start)
    np.testing.assert_allclose(
        weighted.predict_proba(COUNTS), copied.predict_proba(COUNTS), atol=1e-6
    )


@pytest.mark.parametrize("model", [sc.MultinomialMixture(3), sc.KMeans(3)], ids=repr)
def test_columns_that_come_out_are_classes(model: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(COUNTS, columns=list("abcdef"))
    out = clone(model).set_output(transform="pandas").fit_transform(frame)
    name = type(model).__name__.lower()
    assert list(out.columns) == [f"{name}{k}" for k in range(3)]
    both = make_union(clone(model), clone(model)).fit(frame)
    assert both.transform(frame).shape == (12, 6)


def test_a_pipeline_from_texts() -> None:
    texts = ["a b a", "b a", "c d", "d d c"] * 3
    piped = make_pipeline(sc.MultinomialMixture(2), sc.NaiveBayes())
    assert piped.fit(texts, [0, 0, 1, 1] * 3).score(texts, [0, 0, 1, 1] * 3) == 1.0


def test_the_recipe_for_a_grid_search_keeps_unlabelled_documents_in_training() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    counts = rng.poisson(np.where(truth[:, None] == [0, 0, 0, 1, 1, 1], 3.0, 0.5))
    y = np.where(np.arange(60) < 20, truth, -1)
    folds = PredefinedSplit(np.where(y == -1, -1, np.arange(60) % 4))
    search = GridSearchCV(sc.NaiveBayes(), {"smoothing": [0.1, 1.0]}, cv=folds).fit(counts, y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_.score(counts, truth) > 0.9
    for train, test in folds.split():
        assert (y[test] != -1).all()
        assert set(np.flatnonzero(y == -1)) <= set(train)
