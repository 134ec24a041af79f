"""What must hold when things go wrong, or look odd."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import softcount as sc
from softcount.text.bags import Bags

TEXTS = ["a b a", "b a b", "c d d", "d c c", "e f f", "f e e"] * 4


def interrupt(state: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("model", "data", "other"),
    [
        (sc.MultinomialMixture(2), (TEXTS,), (["w1 w2 w3", "w4 w5 w6 w7 w8 w9"] * 5,)),
        (sc.GaussianMixture(2), (np.eye(4),), (np.eye(4) + 100.0,)),
        (sc.NaiveBayes(), (TEXTS, ["x", "y"] * 12), (["p q", "r s"], ["u", "v"])),
        (sc.NaiveBayesCV(), (TEXTS, ["x", "y", None] * 8), (["p q", "r s"], ["u", "v"])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fit_that_fails_changes_nothing(model: Any, data: Any, other: Any) -> None:
    model.fit(*data)
    before, known = model.score_samples(data[0]), set(model.__dict__)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*other, on_step=interrupt)
    assert model.score_samples(data[0]).tolist() == before.tolist()
    assert set(model.__dict__) == known


def test_senses_survive_a_fit_that_fails() -> None:
    sentences = ["the bank of the river", "a bank with money", "money in the bank"] * 4
    model = sc.SenseInducer(2).fit(sentences, "bank")
    with pytest.raises(KeyboardInterrupt):
        model.fit(["a line of text", "wait in line"] * 4, "line", on_step=interrupt)
    assert model.forms_ == {"bank"}
    assert len(model.predict(sentences)) == 12


def test_tables_and_data_of_different_widths_never_meet_in_a_kernel() -> None:
    model = sc.MultinomialMixture(2).fit(TEXTS)
    with pytest.raises(sc.DataError, match="words"):
        model.core_.joint(model.raw_params_, Bags.of(np.ones((1, 7))))


def two_clusters() -> Any:
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 1, (50, 2)), rng.normal(8, 1, (50, 2))])


@pytest.mark.parametrize("model", [sc.KMeans(2), sc.GaussianMixture(2), sc.SoftKMeans(2)])
def test_points_that_weigh_nothing_change_nothing(model: Any) -> None:
    x = two_clusters()
    alone = model.fit(x, init={"means": x[[0, 60]]}).means_
    far = np.vstack([x, [[1e12, 1e12]]])
    weights = np.append(np.ones(len(x)), 0.0)
    assert model.fit(far, None, weights, init={"means": x[[0, 60]]}).means_ == pytest.approx(alone)


@pytest.mark.parametrize("covariance", ["full", "diag", "tied"])
def test_columns_may_have_very_different_scales(covariance: Any) -> None:
    rng = np.random.default_rng(0)
    age = np.concatenate([rng.normal(20, 3, 300), rng.normal(70, 3, 300)])
    x = np.column_stack([rng.normal(0, 3e6, 600), age])
    start = {"means": [[0.0, 20.0], [0.0, 70.0]]}
    found = sc.GaussianMixture(2, covariance=covariance).fit(x, init=start).covariances_
    of_age = found[:, 1] if covariance == "diag" else found[:, 1, 1]
    assert of_age == pytest.approx(9.0, rel=0.25)


def test_weights_have_no_unit() -> None:
    steps = sc.EM(max_iter=20, tol=0)  # all of them: a tolerance does have a unit
    x = two_clusters()
    model, start = sc.GaussianMixture(2, learner=steps), {"means": x[[0, 60]]}
    expected = model.fit(x, init=start).covariances_
    light = model.fit(x, None, np.full(len(x), 1e-13), init=start).covariances_
    assert light == pytest.approx(expected, rel=1e-6)
    words = np.random.default_rng(0).poisson(1.0, (30, 8))
    tables = {"weights": [0.5, 0.5], "words": np.random.default_rng(1).dirichlet(np.ones(8), 2)}
    mixture = sc.MultinomialMixture(2, smoothing=0, learner=steps)
    plain = mixture.fit(words, init=tables).words_
    scaled = mixture.fit(words, None, np.full(30, 3e-12), init=tables).words_
    assert scaled == pytest.approx(plain, rel=1e-6)


def test_two_fits_at_once_leave_the_libraries_as_they_were() -> None:
    before = [library["num_threads"] for library in threadpool_info()]
    x = two_clusters()
    fits = [threading.Thread(target=sc.GaussianMixture(2).fit, args=(x,)) for _ in range(4)]
    for fit in fits:
        fit.start()
    for fit in fits:
        fit.join()
    after = [library["num_threads"] for library in threadpool_info()]
    assert after[: len(before)] == before


def test_generated_documents_are_as_long_as_all_of_those_seen() -> None:
    short, long = np.tile([1, 1], (11_000, 1)), np.tile([50, 50], (11_000, 1))
    model = sc.MultinomialMixture(1, init="random").fit(np.vstack([short, long]))
    lengths = model.generate(400).sum(axis=1)
    assert np.mean(lengths) == pytest.approx(51, rel=0.15)


def test_generated_words_are_distributed_as_they_should_be() -> None:
    counts = np.array([[8, 2, 0], [6, 4, 0]])
    model = sc.MultinomialMixture(1, init="random", smoothing=0).fit(counts)
    drawn = np.asarray(model.generate(2000).sum(axis=0)).ravel()
    assert drawn / drawn.sum() == pytest.approx([0.7, 0.3, 0.0], abs=0.01)


def test_a_callback_stops_a_process_for_good() -> None:
    steps = []

    def stop(state: Any) -> bool:
        steps.append(state.step)
        return state.step == 1

    model = sc.DirichletProcessMixture(8).fit(TEXTS, on_step=stop)
    assert steps == [0, 1]
    assert model.verdict_ is sc.Verdict.STOPPED


def test_a_collapsed_sampler_refuses_a_prior_of_words_by_class() -> None:
    prior = {"words": np.arange(1.0, 13.0).reshape(2, 6)}
    model = sc.MultinomialMixture(2, prior=prior, learner=sc.CollapsedGibbs(max_iter=2))
    with pytest.raises(sc.LearnerError, match="same word prior"):
        model.fit(TEXTS)


def test_the_class_with_the_fewest_impossible_words_is_the_best() -> None:
    x = np.array([[1, 1, 1, 1]] * 3 + [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    model = sc.NaiveBayes(bernoulli=True, smoothing=0).fit(x, [0, 0, 0, 1, 1, 1])
    assert model.predict([[0, 0, 0, 1]]).tolist() == [1]
    assert model.score_samples([[0, 0, 0, 1]]).tolist() == [-np.inf]


def test_soft_labels_are_kept_in_what_was_concluded() -> None:
    x = np.array([[5, 0], [0, 5], [5, 0]])
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]])
    assert sc.NaiveBayes().fit(x, shares).transduction_.tolist() == [0, 1, 1]


def test_no_label_that_weighs_anything() -> None:
    x, y = np.eye(6), [0, 0, 1, 1, -1, -1]
    model = sc.NaiveBayesCV(cv=2, unlabelled_weight=0.5).fit(x, y, [0, 0, 0, 0, 1, 1])
    assert model.unlabelled_weight_ == 0.5


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"learner": "nonsense"}, "EM("),
        ({"engine": 2}, "Local()"),
        ({"short_runs": -1}, "short_runs"),
        ({"n_components": 2.0}, "whole number"),
        ({"n_components": None}, "whole number"),
        ({"smoothing": -1}, "smoothing"),
        ({"smoothing": "a"}, "smoothing"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "x"}, "random_state"),
        ({"vectorizer": "tfidf"}, "CountVectorizer"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings: Any, said: str) -> None:
    with pytest.raises(sc.LearnerError) as caught:
        sc.MultinomialMixture().set_params(**settings).fit(TEXTS)
    assert said in str(caught.value)


def test_a_length_and_presence_do_not_go_together() -> None:
    with pytest.raises(sc.LearnerError, match="length"):
        sc.NaiveBayes(bernoulli=True, length=100).fit(TEXTS, ["x", "y"] * 12)


def test_points_too_large_to_be_squared() -> None:
    with pytest.raises(sc.DataError, match="square"):
        sc.GaussianMixture(2).fit(two_clusters() * 1e200)


def test_texts_are_no_points() -> None:
    with pytest.raises(sc.DataError, match="MultinomialMixture"):
        sc.GaussianMixture(2).fit(TEXTS)


def test_a_loaded_model_has_no_trace(tmp_path: Any) -> None:
    path = tmp_path / "model.softcount"
    sc.MultinomialMixture(2).fit(TEXTS).save(path)
    with pytest.raises(AttributeError, match="loaded"):
        _ = sc.load(path).trace_
