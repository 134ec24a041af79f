"""What makes no sense is said, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import softcount as sc
from softcount.errors import DataError, LearnerError, SoftcountError, StartError
from tests.models.sequences.text import SENTENCES, assert_same

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no states": ({"n_states": 0}, "n_states"),
    "half a state": ({"n_states": 2.5}, "n_states"),
    "states as text": ({"n_states": "3"}, "n_states"),
    "truth for states": ({"n_states": True}, "n_states"),
    "nothing said of states": ({"n_states": None}, "states"),
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
        sc.HMM(**{"n_states": 2, **settings}).fit(SENTENCES)


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
        lambda: model.expected(SENTENCES),
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
