"""Labels that come second are used, or a warning says that they are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import softcount as sc

TEXTS = ["a b a", "b a", "c d", "d c d"] * 2
LABELS = [0, 0, 1, 1] * 2
POINTS = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9]] * 2)
PAIRS = [("the house", "das haus"), ("the book", "das buch"), ("a book", "ein buch")]
LINKS = [[(0, 1), (1, 0)], None, None]


def blind() -> dict[str, tuple[Any, Any, str]]:
    """Models that do not look at y, data for them, and what the warning must name."""
    words = {"MultinomialMixture": sc.MultinomialMixture(2)}
    words["DirichletProcessMixture"] = sc.DirichletProcessMixture(3)
    points = {
        "GaussianMixture": sc.GaussianMixture(2),
        "KMeans": sc.KMeans(2),
        "SoftKMeans": sc.SoftKMeans(2),
        "DirichletProcessGaussianMixture": sc.DirichletProcessGaussianMixture(3),
    }
    topics = {"LDA": sc.LDA(2), "PLSA": sc.PLSA(2)}
    return {
        **{name: (model, TEXTS, "NaiveBayes") for name, model in words.items()},
        **{name: (model, POINTS, "LabelPropagation") for name, model in points.items()},
        **{name: (model, TEXTS, "labels=") for name, model in topics.items()},
        "LanguageModel": (sc.translate.LanguageModel(2), TEXTS, "one for each class"),
    }


def aligners() -> dict[str, Any]:
    return {
        "IBM1": sc.align.IBM1(),
        "IBM2": sc.align.IBM2(),
        "HMMAligner": sc.align.HMMAligner(),
        "Diagonal": sc.align.Diagonal(),
        "Aligner": sc.Aligner(),
        "GibbsAligner": sc.align.GibbsAligner(n_init=1, max_iter=4, kept=2),
    }


def told(caught: list[warnings.WarningMessage]) -> list[warnings.WarningMessage]:
    return [one for one in caught if one.category is sc.errors.IgnoredLabelsWarning]


@pytest.mark.parametrize("name", blind())
def test_labels_that_are_not_looked_at_are_warned_of_once(name: str) -> None:
    model, data, instead = blind()[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data, LABELS)
    (one,) = told(caught)
    assert name in str(one.message)
    assert instead in str(one.message)
    assert one.filename == __file__, "it must point at whoever gave the labels"


@pytest.mark.parametrize("name", blind())
def test_nothing_is_said_where_there_are_no_labels(name: str) -> None:
    model, data, _ = blind()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.IgnoredLabelsWarning)
        model.fit(data)
        model.fit(data, None)


@pytest.mark.parametrize("name", [name for name in blind() if name != "LanguageModel"])
def test_labels_change_nothing_but_for_the_warning(name: str) -> None:
    model, data, _ = blind()[name]
    without = model.fit(data).raw_params_
    with pytest.warns(sc.errors.IgnoredLabelsWarning):
        beside = model.fit(data, LABELS).raw_params_
    for table, values in without.items():
        np.testing.assert_array_equal(beside[table], values)


@pytest.mark.parametrize(
    ("model", "data"), [(sc.KMeans(2), POINTS), (sc.MultinomialMixture(2), TEXTS)]
)
def test_fit_predict_warns_of_labels_too(model: Any, data: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit_predict(data, LABELS)
    assert [one.filename for one in told(caught)] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.IgnoredLabelsWarning)
        model.fit_predict(data)


def test_partial_fit_warns_of_labels_too() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sc.LDA(2).partial_fit(TEXTS, LABELS)
    assert [one.filename for one in told(caught)] == [__file__]


def test_topics_that_are_known_are_said_by_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.IgnoredLabelsWarning)
        model = sc.LDA(2).fit(TEXTS, labels=LABELS)
    assert model.documents_.argmax(axis=1).tolist() == LABELS


@pytest.mark.parametrize("model", [sc.LDA(2), sc.PLSA(2), sc.MultinomialMixture(2)], ids=repr)
def test_in_a_pipeline_labels_are_for_a_later_step(model: Any) -> None:
    piped = make_pipeline(model, LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.IgnoredLabelsWarning)
        assert piped.fit(TEXTS, LABELS).score(TEXTS, LABELS) == 1.0
        cross_val_score(piped, TEXTS, LABELS, cv=2, error_score="raise")


def test_at_the_end_of_a_pipeline_there_is_no_later_step() -> None:
    with pytest.warns(sc.errors.IgnoredLabelsWarning):
        make_pipeline(sc.LDA(2)).fit(TEXTS, LABELS)


def test_a_search_warns_once() -> None:
    search = GridSearchCV(sc.KMeans(2), {"n_components": [2, 3]}, cv=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(POINTS, LABELS)
    assert len(told(caught)) == 1


def test_labels_for_a_scorer_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.IgnoredLabelsWarning)
        scores = cross_val_score(
            sc.KMeans(2), POINTS, LABELS, cv=2, scoring="adjusted_rand_score", error_score="raise"
        )
    assert scores.tolist() == [1.0, 1.0]


# links
@pytest.mark.parametrize("name", aligners())
def test_links_that_come_second_are_used(name: str) -> None:
    by_name = aligners()[name].fit(PAIRS, links=LINKS)
    second = aligners()[name].fit(PAIRS, LINKS)
    free = aligners()[name].fit(PAIRS)
    assert second.align(PAIRS) == by_name.align(PAIRS)
    for table, values in by_name.raw_params_.items():
        np.testing.assert_array_equal(second.raw_params_[table], values)
    assert any(
        not np.array_equal(values, free.raw_params_[table])
        for table, values in second.raw_params_.items()
    ), "the links say nothing here"


@pytest.mark.parametrize("name", [name for name in aligners() if name != "GibbsAligner"])
def test_links_of_more_pairs_that_come_second_are_used(name: str) -> None:
    by_name = aligners()[name].fit(PAIRS).partial_fit(PAIRS, links=LINKS)
    second = aligners()[name].fit(PAIRS).partial_fit(PAIRS, LINKS)
    for table, values in by_name.raw_params_.items():
        np.testing.assert_array_equal(second.raw_params_[table], values)


@pytest.mark.parametrize("name", aligners())
def test_labels_are_no_links(name: str) -> None:
    with pytest.raises(sc.DataError, match="has the links 0"):
        aligners()[name].fit(PAIRS, [0, 0, 1])


# what already said so
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (sc.HMM(2), TEXTS),
        (sc.PCFG(2, 2), TEXTS),
        (sc.SenseInducer(2, min_count=1), TEXTS),
    ],
    ids=repr,
)
def test_labels_that_make_no_sense_are_refused(model: Any, data: Any) -> None:
    with pytest.raises(sc.DataError):
        model.fit(data, LABELS)


def test_labels_are_no_start_of_a_story() -> None:
    which = sc.table("which")

    @sc.story
    def coins(tosses: str) -> Any:
        for z in "AB":
            yield (which[z],)

    with pytest.raises(sc.LearnerError, match="init"):
        sc.StoryModel(coins).fit(["H", "T"], [0, 1])
