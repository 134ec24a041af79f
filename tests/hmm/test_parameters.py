"""What makes no sense is said, and changes nothing; and what scikit-learn asks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import softcount as sc
from softcount.core.errors import DataError, LearnerError, SoftcountError, StartError
from softcount.hmm.core import check_n_states
from tests.hmm.text import SENTENCES, assert_same

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no states": ({"n_components": 0}, "n_components"),
    "half a state": ({"n_components": 2.5}, "n_components"),
    "states as text": ({"n_components": "3"}, "n_components"),
    "truth for states": ({"n_components": True}, "n_components"),
    "nothing said of states": ({"n_components": None}, "states"),
    "order 0": ({"order": 0}, "order"),
    "order 3": ({"order": 3}, "order"),
    "order as text": ({"order": "1"}, "order"),
    "stop as text": ({"stop": "yes"}, "stop"),
    "stop by nothing": ({"stop": None}, "stop"),
    "stop twice": ({"stop": 2}, "stop"),
    "negative smoothing": ({"smoothing": -1.0}, "smoothing"),
    "smoothing of nothing": ({"smoothing": None}, "smoothing"),
    "endless smoothing": ({"smoothing": np.inf}, "smoothing"),
    "smoothing of a stranger": ({"smoothing": {"emission": 1.0}}, "emission"),
    "negative smoothing of a table": ({"smoothing": {"emissions": -1.0}}, "emissions"),
    "half floats": ({"dtype": "float16"}, "dtype"),
    "no dtype": ({"dtype": None}, "dtype"),
    "unknown start": ({"init": "nonsense"}, "init"),
    "a number as start": ({"init": 5}, "init"),
    "no tables": ({"init": {}}, "start"),
    "a table of a stranger": ({"init": {"moves": [[0.5, 0.5]]}}, "moves"),
    "letters as a table": ({"init": {"start": [["a", "b"]]}}, "start"),
    "zero of a stranger": ({"zero": {"emission": 1}}, "emission"),
    "zero of a wrong shape": ({"zero": {"emissions": np.zeros((2, 2))}}, "zero"),
    "zero of ragged rows": ({"zero": {"transitions": [[1], [1, 0]]}}, "zero"),
    "zero as a list": ({"zero": ["emissions"]}, "zero"),
    "frozen stranger": ({"frozen": "emission"}, "emission"),
    "frozen rows of a wrong number": ({"frozen": {"emissions": [True] * 5}}, "frozen"),
    "frozen rows as text": ({"frozen": {"emissions": "all"}}, "frozen"),
    "frozen row that is not there": ({"frozen": {"emissions": [2]}}, "frozen"),
    "frozen rows of noughts": ({"frozen": {"emissions": [0, 0]}}, "frozen"),
    "frozen state of no name": ({"frozen": {"transitions": ["NN"]}}, "frozen.*NN"),
    "frozen pair of order 1": ({"frozen": {"transitions": [(0, 1)]}}, "frozen"),
    "frozen state of order 2": ({"order": 2, "frozen": {"transitions": ["0"]}}, "frozen.*'0'"),
    "frozen half": ({"frozen": {"emissions": 0.5}}, "frozen"),
    "frozen number": ({"frozen": 5}, "frozen"),
    "tied stranger": ({"tied": {"moves": [0, 0]}}, "moves"),
    "tied rows of a wrong number": ({"tied": {"emissions": [0] * 5}}, "tied"),
    "tied as a list": ({"tied": ["emissions"]}, "tied"),
    "no learner": ({"learner": "EM"}, "learner"),
    "no engine": ({"engine": 2}, "engine"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_settings_are_named(what: str) -> None:
    settings, named = BAD[what]
    with pytest.raises(SoftcountError, match=named):
        sc.HMM(**{"n_components": 2, **settings}).fit(SENTENCES)


def test_a_start_of_a_wrong_shape() -> None:
    init = sc.HMM(2, learner=sc.EM(max_iter=1)).fit(SENTENCES).params_
    for name in init:
        with pytest.raises(StartError, match=name):
            sc.HMM(2, init={**init, name: init[name][:, :-1]}).fit(SENTENCES)
    with pytest.raises(StartError):
        sc.HMM(2, order=2, init=init).fit(SENTENCES)


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "method": lambda model: model.predict(SENTENCES, method="best"),
    "no draws": lambda model: model.posterior_sample(SENTENCES, 0),
    "negative seed": lambda model: model.posterior_sample(SENTENCES, 1, random_state=-1),
    "seed as text": lambda model: model.posterior_sample(SENTENCES, 1, random_state="x"),
    "no length": lambda model: model.generate(1, length=0),
    "fewer than none": lambda model: model.generate(-1),
    "one and a half": lambda model: model.generate(1.5),
    "one text": lambda model: model.predict("the dog"),
    "no sentences": lambda model: model.predict([]),
    "tags of another text": lambda model: model.predict(SENTENCES, tags=[None]),
    "no words to learn from": lambda model: model.fit([[], []]),
    "nothing to learn from": lambda model: model.fit([]),
    "one weight": lambda model: model.fit(SENTENCES, sample_weight=[1.0]),
    "negative weights": lambda model: model.fit(SENTENCES, sample_weight=[-1.0] * len(SENTENCES)),
    "weights as text": lambda model: model.fit(SENTENCES, sample_weight=["x"] * len(SENTENCES)),
    "a number for tags": lambda model: model.fit(SENTENCES, tags=5),
    "numbers for tags": lambda model: model.fit(SENTENCES, tags=[5] * len(SENTENCES)),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_questions_that_make_no_sense(what: str) -> None:
    model = sc.HMM(2, smoothing=0.1, learner=sc.EM(max_iter=2)).fit(SENTENCES)
    with pytest.raises(SoftcountError):
        QUESTIONS[what](model)


def test_nothing_before_fit() -> None:
    model = sc.HMM(2)
    for ask in (
        lambda: model.predict(SENTENCES),
        lambda: model.predict_proba(SENTENCES),
        lambda: model.posterior_sample(SENTENCES),
        lambda: model.score(SENTENCES),
        lambda: model.perplexity(SENTENCES),
        lambda: model.expected_counts(SENTENCES),
        lambda: model.generate(),
        lambda: model.top_words(),
        lambda: model.params_,
        lambda: model.words_,
        lambda: model.states_,
        lambda: model.trace_,
        lambda: model.save(os.devnull),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_a_failed_fit_leaves_what_was() -> None:
    model = sc.HMM(2, smoothing=0.1).fit(SENTENCES)
    before = (model.params_, model.words_, model.score_samples(SENTENCES).tolist())
    for bad in (lambda: model.fit([[], []]), lambda: model.fit(["x y"], [["0", "7"]])):
        with pytest.raises(DataError):
            bad()
    with pytest.raises(LearnerError):
        model.fit(["x y"], init="nonsense")
    assert_same(model.params_, before[0])
    assert (model.words_, model.score_samples(SENTENCES).tolist()) == before[1:]
    fresh = sc.HMM(2)
    with pytest.raises(DataError):
        fresh.fit([[]])
    with pytest.raises(NotFittedError):
        _ = fresh.words_


# Hidden Markov models, given what they cannot use; and what scikit-learn asks of them.


FULL = [sentence for sentence in SENTENCES if sentence]
WALKS = [np.random.default_rng(n).normal(size=(n, 2)) for n in (5, 0, 3)]


def test_sentences_that_can_be_read_once() -> None:
    model = sc.HMM(2, smoothing=0.1).fit(SENTENCES)
    assert model.perplexity(iter(SENTENCES)) == model.perplexity(SENTENCES)
    walker = sc.GaussianHMM(2, smoothing=0.1).fit(WALKS)
    assert walker.score(iter(WALKS)) == walker.score(WALKS)


@pytest.mark.parametrize("tags", [3, [3], [None], [""], [["A"]]])
def test_open_tags_that_are_none(tags: Any) -> None:
    with pytest.raises(DataError, match="open_tags has"):
        sc.HMM(2, open_tags=tags).fit(SENTENCES)


@pytest.mark.parametrize("n", [0, -1, 1.5, "x"])
def test_no_number_of_words(n: Any) -> None:
    model = sc.HMM(2).fit(SENTENCES)
    with pytest.raises(LearnerError, match=f"n={n!r}"):
        model.top_words(n)


@pytest.mark.parametrize("k", [10**5, 10**6])
@pytest.mark.parametrize("model", [sc.HMM, sc.GaussianHMM])
def test_more_states_than_memory_has_room_for(model: Any, k: int) -> None:
    data = SENTENCES if model is sc.HMM else WALKS
    with pytest.raises(LearnerError, match="too many transitions"):
        model(k).fit(data)
    with pytest.raises(LearnerError, match="too many transitions"):
        model(1000, order=2).fit(data)


def test_so_many_states_there_may_be() -> None:
    for order, most in ((1, 1 << 14), (2, 645)):
        check_n_states(most, order)
        with pytest.raises(LearnerError) as error:
            check_n_states(most + 1, order)
        assert f"at most {most:,} states" in error.value.hint


@pytest.mark.parametrize("data", [None, 5])
def test_no_sequences_of_vectors(data: Any) -> None:
    with pytest.raises(DataError, match="the data are"):
        sc.GaussianHMM(2).fit(data)


def test_vectors_that_never_count() -> None:
    for weights in ([0, 0, 0], [0, 1, 0]):
        with pytest.raises(DataError, match="all vectors have weight 0"):
            sc.GaussianHMM(2, smoothing=0.1).fit(WALKS, sample_weight=weights)


def test_no_prior() -> None:
    with pytest.raises(LearnerError, match="prior=3"):
        sc.GaussianHMM(2, prior=3).fit(WALKS)  # type: ignore[arg-type]


def test_starts_are_named() -> None:
    for model, data, start in ((sc.HMM, SENTENCES, "spectral"), (sc.GaussianHMM, WALKS, "kmeans")):
        with pytest.raises(LearnerError) as error:
            model(2, init="nowhere").fit(data)
        assert start in error.value.hint


def test_one_state_from_moments() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = ["the dog barks", "a cat sleeps", "the cat barks", "a dog sleeps"]
        text += ["", "the old dog sleeps", "an old cat barks"]
        model = sc.HMM(1, init="spectral").fit(text)
    assert model.predict(["the dog"]) == [[0, 0]]


# scikit-learn
def test_in_a_pipeline() -> None:
    line = make_pipeline(FunctionTransformer(), sc.HMM(2, smoothing=0.1)).fit(SENTENCES)
    assert line.predict(SENTENCES) == sc.HMM(2, smoothing=0.1).fit(SENTENCES).predict(SENTENCES)


def test_in_a_search() -> None:
    model = sc.HMM(2, smoothing=0.1, learner=sc.EM(max_iter=3))
    search = GridSearchCV(model, {"n_components": [1, 2]}, cv=2, error_score="raise").fit(FULL)
    assert search.best_params_["n_components"] in (1, 2)
    half = len(FULL) // 2
    wanted = model.fit(FULL[half : 2 * half]).score(FULL[:half])
    assert cross_val_score(model, FULL[: 2 * half], cv=2)[0] == pytest.approx(wanted)


def test_readers_are_where_models_are(tmp_path: Any) -> None:
    (tmp_path / "text").write_text("the/D dog/N\n")
    (tmp_path / "words").write_text("the\tD\n")
    (tmp_path / "rows").write_text("1\tthe\t_\tD\t_\t_\t_\t_\t_\t_\n")
    assert sc.text.read_sequences(tmp_path / "text").sentence(0) == ["the/D", "dog/N"]
    assert sc.text.read_tagged(tmp_path / "text").sentence(0) == [("the", "D"), ("dog", "N")]
    assert sc.text.read_conllu(tmp_path / "rows").tagged().sentence(0) == [("the", "D")]
    assert sc.text.read_tag_dictionary(tmp_path / "words") == {"the": ["D"]}
