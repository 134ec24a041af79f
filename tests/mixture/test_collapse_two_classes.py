"""A collapse is told of whatever the number of classes, and nothing is told where there is none."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.mixture.naive_bayes import has_collapsed
from tests import real
from tests.commands import done

REVIEWS = [
    "Chapeau bas : voilà enfin un premier essai réussi, tourné sans argent, monté avec malice, "
    "porté par deux inconnues formidables.",
    "Le film est long et la salle a soupiré dans le noir : la caméra reste dans une gare vide, et "
    "le héros ne sait pas ce qui est arrivé.",
    "Le film est réussi et la fin est une fête : le duo est parfaitement choisi, et la musique "
    "reste dans la tête des enfants.",
    "Le film est bavard et la guerre est loin : le père parle dans une cuisine, et le récit est "
    "bien trop long pour une soirée.",
    "Le conte est parfaitement simple : la libraire, la neige, les rires des enfants, et une "
    "musique douce de bout en bout.",
    "Le repas est bavard et la maison est grise : les trois frères sont dans une impasse, et le "
    "vent ne tombe pas.",
]
MARKED = ["réussi", "long", "réussi parfaitement", "long bavard", "parfaitement", "bavard"]
SHOWN = ["+", "-", None, None, None, None]


def test_six_reviews_of_marked_words_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = sc.NaiveBayes().fit(MARKED, SHOWN)
    assert model.transduction_.tolist() == ["+", "-", "+", "-", "+", "-"]


@pytest.mark.parametrize("settings", [{}, {"smoothing": 1.0}, {"length": 100}], ids=repr)
def test_six_whole_reviews_collapse_and_that_is_told(settings: dict[str, Any]) -> None:
    with pytest.warns(
        sc.errors.CollapseWarning, match=r"100% .* class '-', which has 50% of the labels"
    ):
        model = sc.NaiveBayes(**settings).fit(REVIEWS, SHOWN)
    drawn = model.predict_proba(REVIEWS[2:])[:, model.classes_.tolist().index("-")]
    assert (drawn > 0.999).all(), "these reviews do not collapse"


def test_label_propagation_finds_it() -> None:
    found = sc.labels.LabelPropagation(n_neighbors=2).fit(REVIEWS, SHOWN).transduction_
    assert found.tolist() == ["+", "-", "+", "-", "+", "-"]


@pytest.mark.parametrize(
    ("found", "n_free", "labels"),
    [
        ([1.0, 0.0], 4, [1, 1]),
        ([0.0, 1.0], 1000, [1, 1]),
        ([0.97, 0.03], 1000, [5, 5]),
        ([0.999, 0.001], 1000, [18, 2]),
        ([1.0, 0.0, 0.0], 50, [3, 3, 3]),
        ([0.98, 0.01, 0.01], 500, [80, 15, 5]),
    ],
)
def test_collapses(found: list[float], n_free: int, labels: list[float]) -> None:
    assert has_collapsed(np.array(found), n_free, np.array(labels, dtype=float))


@pytest.mark.parametrize(
    ("found", "n_free", "labels"),
    [
        ([0.5, 0.5], 1000, [5, 5]),
        ([0.75, 0.25], 8, [1, 1]),
        ([0.9, 0.1], 1000, [5, 5]),  # others than labels say, and yet no collapse
        ([0.9, 0.1], 1000, [18, 2]),
        ([0.97, 0.03], 1000, [48, 2]),
        ([1.0, 0.0], 20, [19, 1]),  # none of twenty: that may be chance
        ([1.0, 0.0], 100, [99, 1]),
        ([0.95, 0.05, 0.0], 60, [90, 8, 2]),
    ],
)
def test_no_collapses(found: list[float], n_free: int, labels: list[float]) -> None:
    assert not has_collapsed(np.array(found), n_free, np.array(labels, dtype=float))


@pytest.mark.parametrize("share", [0.5, 0.3, 0.15])
def test_perfect_classifiers_are_hardly_ever_warned_of(share: float) -> None:
    """Labels and items drawn alike, and every item in its own class."""
    rng = np.random.default_rng(0)
    wolf = 0
    for _ in range(500):
        labelled = rng.random(20) < share
        labels = np.array([np.sum(~labelled), np.sum(labelled)], dtype=float)
        found = rng.binomial(100, share) / 100.0
        wolf += has_collapsed(np.array([1.0 - found, found]), 100, labels)
    assert wolf <= 2


def simulated(share: float, n: int = 400) -> tuple[Any, Any]:
    """Counts of words that tell two classes apart, of which the second has this share."""
    rng = np.random.default_rng(1)
    truth = (rng.random(n) < share).astype(int)
    rate = np.where(truth[:, None] == (np.arange(40) % 2), 0.6, 0.2)
    return rng.poisson(rate).astype(float), truth


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("n_labels", [20, 100])
def test_healthy_runs_are_silent(share: float, n_labels: int) -> None:
    counts, truth = simulated(share)
    shown = np.where(np.arange(len(truth)) < n_labels, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.CollapseWarning)
        model = sc.NaiveBayes().fit(counts, shown)
    assert model.score(counts, truth) > 0.9


@pytest.mark.parametrize("n_labels", [2, 20])
def test_words_that_are_everywhere_make_it_collapse(n_labels: int) -> None:
    """Texts whose common words have two kinds of length: EM finds these instead of the classes."""
    counts, truth = simulated(0.5)
    rng = np.random.default_rng(2)
    common = rng.poisson(np.where(np.arange(len(counts)) < n_labels // 2, 30.0, 0.0))
    rest = rng.poisson(30.0, size=len(counts))
    rest[: n_labels // 2] = 0
    order = np.argsort(truth[:n_labels], kind="stable")
    counts[:n_labels], truth[:n_labels] = counts[order], truth[order]
    shown = np.full(len(truth), -1)
    shown[:n_labels] = np.arange(n_labels) * 2 // n_labels
    with pytest.warns(sc.errors.CollapseWarning, match="collapsed"):
        sc.NaiveBayes().fit(np.column_stack([counts, common, rest]), shown)


def test_cross_validation_of_the_weight_warns_too() -> None:
    with pytest.warns(sc.errors.CollapseWarning):
        sc.NaiveBayesCV().fit(REVIEWS, SHOWN)


@pytest.mark.parametrize("classifier", [None, sc.NaiveBayes()], ids=repr)
def test_self_training_collapses_no_less(classifier: Any) -> None:
    with pytest.warns(sc.errors.CollapseWarning, match="self-training has collapsed"):
        model = sc.labels.SelfTraining(classifier).fit(REVIEWS, SHOWN)
    assert model.transduction_[2:].tolist() == ["-"] * 4


def test_self_training_that_does_not_collapse_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sc.labels.SelfTraining(per_class=1, keep=True).fit(MARKED, SHOWN).transduction_
    assert found.tolist() == ["+", "-", "+", "-", "+", "-"]


def test_the_command_tells_of_it_too(tmp_path: Path) -> None:
    labelled, more = tmp_path / "labelled.tsv", tmp_path / "more.txt"
    labelled.write_text(f"plus\t{REVIEWS[0]}\nminus\t{REVIEWS[1]}\n", encoding="utf-8")
    more.write_text("".join(f"{review}\n" for review in REVIEWS[2:]), encoding="utf-8")
    found = done("classify", "--train", labelled, "--unlabelled", more)
    assert "collapsed" in found.stderr


# real texts
def product_reviews() -> tuple[Any, Any]:
    """Counts of words of reviews, and whether they are good ones, as half of them are."""
    path = real.FOLDER / "blitzer_sentiment/kitchen.train.svmlight.gz"
    if not path.is_file():
        pytest.skip(f"needs the corpus file {path.name} in ../shared/data, which is not here")
    with gzip.open(path, "rb") as file:
        counts, labels = load_svmlight_file(file, zero_based=True)
    return counts.tocsr(), (labels > 0).astype(int)


def course_pages() -> tuple[Any, Any]:
    """Counts of words of web pages, and whether they are about courses, as 22% of them are."""
    rows = [line.split("\t") for line in real.lines("webkb_course_cotrain/course.tsv.gz")]
    counts = CountVectorizer(min_df=2, max_df=0.5).fit_transform([row[2] for row in rows])
    return counts.astype(float), np.array([int(row[0] == "course") for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("corpus", [product_reviews, course_pages])
@pytest.mark.parametrize("n_labels", [12, 40])
def test_no_collapse_of_real_texts(corpus: Any, n_labels: int) -> None:
    counts, truth = corpus()
    for seed in range(3):
        some = np.random.default_rng(seed).choice(len(truth), n_labels, replace=False)
        shown = np.full(len(truth), -1)
        shown[some] = truth[some]
        with warnings.catch_warnings():
            warnings.simplefilter("error", sc.errors.CollapseWarning)
            sc.NaiveBayes(learner=sc.EM(max_iter=20)).fit(counts, shown)
