"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils.estimator_checks import parametrize_with_checks

import softcount as sc
from tests.oracles import plain_topics

MODELS = [sc.PLSA(3), sc.LDA(3), sc.LDA(3, learner=sc.StochasticVB(max_iter=5))]
X, _ = plain_topics.documents()
TEXTS = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5


@pytest.mark.filterwarnings("ignore::softcount.IgnoredLabelsWarning")  # checks give y to everyone
@parametrize_with_checks(MODELS)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_columns_that_come_out_are_topics() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{w}" for w in range(X.shape[1])])
    out = sc.LDA(3).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["lda0", "lda1", "lda2"]
    both = make_union(sc.LDA(3), sc.PLSA(2)).fit(frame)
    assert both.transform(frame).shape == (len(X), 5)


def test_a_pipeline_from_texts() -> None:
    found = make_pipeline(sc.LDA(2), sc.KMeans(2)).fit(TEXTS).predict(TEXTS)
    assert len({*found[0::4], *found[1::4]}) == len({*found[2::4], *found[3::4]}) == 1
    assert found[0] != found[2]


def test_a_grid_search_over_the_number_of_topics() -> None:
    search = GridSearchCV(sc.LDA(2, learner=sc.EM(max_iter=10)), {"n_topics": [1, 3]}, cv=2).fit(X)
    assert search.best_params_ == {"n_topics": 3}


def test_fit_transform_is_what_transform_gives_after_it() -> None:
    for model in MODELS:
        found = clone(model).fit_transform(X)
        np.testing.assert_allclose(found, clone(model).fit(X).transform(X), atol=1e-12)
