"""Scores, folds and searches where some items have no label."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import softcount as sc
from softcount.mixture import naive_bayes
from tests import real

TEXTS = [
    *("good fine film", "fine great plot", "great good cast", "good great fun"),
    *("bad awful film", "awful dull plot", "dull bad cast", "bad dull bore"),
    *("great fun", "dull bore"),
]
TRUTH = [*"++++", *"----", *"+-"]
SHOWN: list[str | None] = ["+", "+", "+", None, "-", "-", "-", None, None, None]
DOMAINS = [1, 1, 1, 1, 1, 1, 1, 1, -1, -1]


def estimators() -> dict[str, Any]:
    """All that learn from items of which some have no label."""
    halves = {"words": lambda text: text.split()[0], "rest": lambda text: text.split()[1:]}
    return {
        "NaiveBayes": sc.NaiveBayes(),
        "NaiveBayesCV": sc.NaiveBayesCV(cv=2),
        "LabelPropagation": sc.labels.LabelPropagation(),
        "SelfTraining": sc.labels.SelfTraining(),
        "CoTraining": sc.labels.CoTraining(halves),
        "Yarowsky": sc.labels.Yarowsky(),
        "Yarowsky that abstains": sc.labels.Yarowsky(abstain=True),
        "SourceOnly": sc.adapt.SourceOnly(),
        "Merge": sc.adapt.Merge(),
        "EasyAdapt": sc.adapt.EasyAdapt(),
    }


def _column(labels: list[str | None]) -> Any:
    """As pandas has them, which makes NaN of None."""
    pandas = pytest.importorskip("pandas")
    return pandas.Series([np.nan if label is None else label for label in labels])


def named(numbers: Any, forms: str) -> Any:
    """Labels 0 and 1, −1 where there is none, in one of the forms that labels may have."""
    names = {0: "minus", 1: "plus", -1: None}
    if forms == "column of a frame":
        return _column([names[n] for n in numbers])
    return {
        "list of strings": [names[n] for n in numbers],
        "array of strings": np.array([names[n] for n in numbers], dtype=object),
        "list of numbers": [int(n) for n in numbers],
        "list with None": [None if n == -1 else int(n) for n in numbers],
        "array of integers": np.array(numbers),
        "array of floats": np.array(numbers, dtype=float),
    }[forms]


FORMS = (
    *("list of strings", "array of strings", "list of numbers", "list with None"),
    *("array of integers", "array of floats", "column of a frame"),
)


# scores
@pytest.mark.parametrize("name", estimators())
def test_items_without_a_label_do_not_count(name: str) -> None:
    model = estimators()[name].fit(TEXTS, SHOWN)
    labelled = [n for n, label in enumerate(SHOWN) if label is not None]
    found = model.predict(TEXTS)
    right = float(np.mean([found[n] == SHOWN[n] for n in labelled]))
    assert right > 0.5
    with pytest.warns(sc.errors.UnlabelledWarning, match="SemiSupervisedKFold"):
        assert model.score(TEXTS, SHOWN) == right


@pytest.mark.parametrize("name", estimators())
def test_without_unlabelled_items_the_score_is_the_plain_one(name: str) -> None:
    model = estimators()[name].fit(TEXTS, SHOWN)
    expected = float(np.mean(np.asarray(model.predict(TEXTS)) == np.asarray(TRUTH)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.UnlabelledWarning)
        assert model.score(TEXTS, TRUTH) == expected


@pytest.mark.parametrize("forms", FORMS)
def test_every_way_to_say_that_a_label_is_unknown(forms: str) -> None:
    y = named([1, 1, 1, -1, 0, 0, 0, -1, -1, -1], forms)
    model = sc.NaiveBayes().fit(TEXTS, y)
    assert len(model.classes_) == 2
    wrong = named([0, 1, 1, -1, 0, 0, 0, -1, -1, -1], forms)
    with pytest.warns(sc.errors.UnlabelledWarning):
        assert model.score(TEXTS, wrong) == pytest.approx(5 / 6)


def test_a_label_that_is_no_number_is_still_refused() -> None:
    """NaN in a list may be a slip of a computation: neither fit nor score takes it for unknown."""
    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    y = [float("nan"), *([0.0, 1.0] * 5)[1:]]
    with pytest.raises(ValueError, match="NaN"):
        model.score(TEXTS, y)


def test_weights_of_labelled_items_count() -> None:
    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    y = ["-", *SHOWN[1:]]  # one that is wrong
    weights = np.ones(len(y))
    weights[0], weights[3] = 4.0, 100.0
    with pytest.warns(sc.errors.UnlabelledWarning):
        assert model.score(TEXTS, y, sample_weight=weights) == pytest.approx(5 / 9)


def test_a_score_of_no_labels_is_an_error() -> None:
    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    with pytest.raises(sc.DataError, match="no item has a label"):
        model.score(TEXTS, [None] * len(TEXTS))


def test_domains_are_handed_on_to_the_scored_predictions() -> None:
    texts = ["a good book", "a thin plot", "a thin phone", "a bad phone"]
    model = sc.adapt.EasyAdapt().fit(texts, [1, 0, 1, 0], sample_domain=[1, 1, -1, -1])
    with pytest.warns(sc.errors.UnlabelledWarning):
        assert model.score(["thin", "thin"], [1, -1]) == 1.0


# folds
@pytest.mark.parametrize("forms", FORMS)
def test_folds_hold_labelled_items_only_and_learn_from_all_others(forms: str) -> None:
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(200) < 0.3, rng.choice(2, 200, p=[0.75, 0.25]), -1)
    known = np.flatnonzero(numbers != -1)
    y = named(numbers.tolist(), forms)
    folds = list(sc.mixture.SemiSupervisedKFold(5).split(np.zeros((200, 1)), y))
    assert len(folds) == 5 == sc.mixture.SemiSupervisedKFold(5).get_n_splits()
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == known.tolist()
    for train, test in folds:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(200))
        of_ones = (numbers[test] == 1).sum()
        assert abs(of_ones - (numbers == 1).sum() / 5) < 1.0, "not stratified"


def test_folds_are_the_same_for_the_same_seed() -> None:
    y = np.array([0, 1] * 20 + [-1] * 10)

    def tests(**settings: Any) -> list[list[int]]:
        return [
            test.tolist() for _, test in sc.mixture.SemiSupervisedKFold(4, **settings).split(y, y)
        ]

    assert tests() == tests() != tests(random_state=1)
    assert tests(shuffle=False) == tests(shuffle=False, random_state=1) != tests()


def test_the_only_label_of_a_class_is_always_learned_from() -> None:
    y = np.array([0] * 6 + [1] * 6 + [2] + [-1] * 5)
    for train, test in sc.mixture.SemiSupervisedKFold(3).split(y, y):
        assert 12 in train
        assert 12 not in test


@pytest.mark.filterwarnings("error")
def test_a_class_with_fewer_labels_than_folds_is_in_every_training_part() -> None:
    y = np.array([0] * 10 + [1, 1] + [-1] * 5)
    for train, _ in sc.mixture.SemiSupervisedKFold(5).split(y, y):
        assert set(y[train]) == {0, 1, -1}


@pytest.mark.parametrize(
    ("y", "n", "said"),
    [
        ([0, 0, 1, 1, -1], 3, "n_splits=2"),
        ([0, 1, -1, -1, -1], 2, "label more"),
        ([-1, -1, -1], 2, "no item has a label"),
        ([0, 0, 1, 1], 1, "at least 2"),
    ],
)
def test_folds_that_cannot_be(y: list[int], n: int, said: str) -> None:
    with pytest.raises(sc.SoftcountError, match=said):
        list(sc.mixture.SemiSupervisedKFold(n).split(y, y))


def test_folds_need_labels() -> None:
    with pytest.raises(sc.DataError, match="y"):
        list(sc.mixture.SemiSupervisedKFold(2).split([1, 2, 3]))


def test_folds_are_shown_as_they_were_made() -> None:
    assert repr(sc.mixture.SemiSupervisedKFold(4, random_state=7)) == (
        "SemiSupervisedKFold(n_splits=4, random_state=7, shuffle=True)"
    )


# searches
def simulated(n_labels: int, n: int = 600) -> tuple[Any, Any, Any]:
    """Counts of words of two classes, the labels that are shown, and all of them."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=n)
    rate = np.where(truth[:, None] == (np.arange(60) % 2), 0.22, 0.13)
    shown = np.full(n, -1)
    some = rng.choice(n, n_labels, replace=False)
    shown[some] = truth[some]
    return rng.poisson(rate).astype(float), shown, truth


GRID = {"smoothing": [0.01, 1.0, 1000.0], "unlabelled_weight": [0.01, 1.0]}


def test_a_search_in_one_line() -> None:
    counts, shown, truth = simulated(40)
    search = GridSearchCV(sc.NaiveBayes(), GRID, cv=sc.mixture.SemiSupervisedKFold(5)).fit(
        counts, shown
    )
    free = shown == -1
    chosen = search.best_estimator_.score(counts[free], truth[free])
    each = {}
    for smoothing in GRID["smoothing"]:
        for weight in GRID["unlabelled_weight"]:
            model = sc.NaiveBayes(smoothing=smoothing, unlabelled_weight=weight)
            each[smoothing, weight] = model.fit(counts, shown).score(counts[free], truth[free])
    assert search.best_score_ > 0.6
    assert chosen >= max(each.values()) - 0.05


def test_a_search_over_texts_and_names() -> None:
    search = GridSearchCV(
        sc.NaiveBayes(), {"smoothing": [0.1, 1.0]}, cv=sc.mixture.SemiSupervisedKFold(3)
    ).fit(TEXTS, SHOWN)
    assert search.best_score_ == 1.0
    assert search.predict(["great fun"]).tolist() == ["+"]


@pytest.mark.parametrize("name", [name for name in estimators() if name != "NaiveBayesCV"])
def test_the_splitter_serves_all_of_them(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.UnlabelledWarning)
        scores = cross_val_score(
            estimators()[name],
            TEXTS,
            SHOWN,
            cv=sc.mixture.SemiSupervisedKFold(3),
            error_score="raise",
        )
    assert len(scores) == 3
    assert np.isfinite(scores).all()


def test_the_plain_way_warns() -> None:
    counts, shown, _ = simulated(40)
    with pytest.warns(sc.errors.UnlabelledWarning, match="SemiSupervisedKFold"):
        cross_val_score(sc.NaiveBayes(), counts, shown, cv=3)


def test_a_search_by_the_plain_way_warns_once() -> None:
    counts, shown, _ = simulated(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(sc.NaiveBayes(), {"smoothing": [0.1, 1.0]}, cv=3).fit(counts, shown)
    assert [one.category for one in caught].count(sc.errors.UnlabelledWarning) == 1


# scorers
@pytest.mark.parametrize("forms", FORMS)
def test_a_scorer_leaves_unlabelled_items_out(forms: str) -> None:
    y = named([1, 1, 1, -1, 0, 0, 0, -1, -1, -1], forms)
    model = sc.NaiveBayes().fit(TEXTS, y)
    other = named([0, 1, 1, -1, 0, 0, 0, -1, -1, -1], forms)
    assert sc.mixture.labelled_scorer("accuracy")(model, TEXTS, other) == pytest.approx(5 / 6)
    expected = f1_score([0, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0], average="macro")
    assert sc.mixture.labelled_scorer("f1_macro")(model, TEXTS, other) == pytest.approx(expected)


def test_a_scorer_of_ones_own() -> None:
    def half(model: Any, X: Any, y: Any) -> float:
        assert len(X) == len(y) == 6
        return float(np.mean(model.predict(X) == y)) / 2.0

    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    assert sc.mixture.labelled_scorer(half)(model, TEXTS, SHOWN) == 0.5


def test_a_scorer_in_a_search_with_plain_folds() -> None:
    counts, shown, truth = simulated(90)
    search = GridSearchCV(
        sc.NaiveBayes(),
        GRID,
        cv=3,
        scoring=sc.mixture.labelled_scorer("f1_macro"),
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.UnlabelledWarning)
        search.fit(counts, shown)
    assert search.best_score_ > 0.6
    assert search.best_estimator_.score(counts, truth) > 0.6


def test_a_scorer_can_be_sent_to_another_process() -> None:
    scorer = sc.mixture.labelled_scorer("f1_macro")
    assert repr(scorer) == "labelled_scorer('f1_macro')"
    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    again = pickle.loads(pickle.dumps(scorer))
    assert again(model, TEXTS, SHOWN) == scorer(model, TEXTS, SHOWN) == 1.0


def test_a_scorer_of_no_labels_is_an_error() -> None:
    model = sc.NaiveBayes().fit(TEXTS, SHOWN)
    with pytest.raises(sc.DataError, match="no item has a label"):
        sc.mixture.labelled_scorer()(model, TEXTS, [None] * len(TEXTS))


# real posts
@pytest.mark.slow
def test_a_search_over_posts_chooses_well() -> None:
    """Four newsgroups, 40 labels: the setting chosen is nearly as good as the best there is."""
    wanted = {"rec.autos", "sci.med", "sci.space", "talk.politics.guns"}
    rows = [line.split("\t")[::2] for line in real.lines("20news_bydate/train.tsv.gz")]
    rng = np.random.default_rng(0)
    some = [row for row in rows if row[0] in wanted]
    some = [some[n] for n in rng.permutation(len(some))[:1000]]
    groups = np.array([group for group, _ in some])
    texts = [text for _, text in some]
    shown = np.full(len(some), None, dtype=object)
    for group in sorted(wanted):
        shown[rng.choice(np.flatnonzero(groups == group), 10, replace=False)] = group
    free = np.flatnonzero([label is None for label in shown])
    grid = {"smoothing": [0.01, 0.1, 1.0], "unlabelled_weight": [0.03, 0.3, 1.0]}
    model = sc.NaiveBayes(length=100, learner=sc.EM(max_iter=15))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.errors.CollapseWarning)
        search = GridSearchCV(model, grid, cv=sc.mixture.SemiSupervisedKFold(5)).fit(texts, shown)
        asked = [texts[n] for n in free]
        each = []
        for setting in search.cv_results_["params"]:
            tried = clone(model).set_params(**setting).fit(texts, shown)
            each.append(tried.score(asked, groups[free]))
        chosen = search.best_estimator_.score(asked, groups[free])
    assert chosen > max(each) - 0.05
    assert search.best_score_ == pytest.approx(chosen, abs=0.15)


@pytest.mark.parametrize(
    "kind", [sc.NaiveBayes, sc.labels.SelfTraining, sc.labels.LabelPropagation]
)
def test_a_plain_search_by_a_score_of_scikit_learn_is_warned_of_once(kind: type) -> None:
    """Its accuracy takes items without a label for errors, and never asks the model."""
    texts = ["good fine", "bad awful", "fine day", "awful day"] * 6
    labels = [1, 0, -1, -1] * 6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cross_val_score(kind(), texts, labels, cv=3, scoring="accuracy")
    told = [w for w in caught if issubclass(w.category, sc.errors.UnlabelledWarning)]
    assert told
    assert "count as errors" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.UnlabelledWarning)
        right = sc.mixture.SemiSupervisedKFold(3)
        cross_val_score(kind(), texts, labels, cv=right, scoring="accuracy")
        cross_val_score(kind(), texts, labels, cv=3, scoring=sc.mixture.labelled_scorer("accuracy"))


def test_a_collapse_is_told_of_once_in_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first of its six fits to folds, and by the last fit, to all data."""
    monkeypatch.setattr(naive_bayes, "has_collapsed", lambda *_: True)
    texts = ["good fine", "bad awful", "fine day", "awful day"] * 15
    labels = ["x", "y"] * 3 + [None] * 54
    search = GridSearchCV(
        sc.NaiveBayes(), {"smoothing": [5.0, 20.0]}, cv=sc.mixture.SemiSupervisedKFold(3)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(texts, np.array(labels, dtype=object))
    told = [w for w in caught if issubclass(w.category, sc.errors.CollapseWarning)]
    assert len(told) == 2
