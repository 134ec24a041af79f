"""Hidden Markov models, given what they cannot use; and what scikit-learn asks of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import softcount as sc
from softcount.errors import DataError, LearnerError
from tests.models.sequences.text import SENTENCES

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
    with pytest.raises(LearnerError, match="too many moves"):
        model(k).fit(data)
    with pytest.raises(LearnerError, match="too many moves"):
        model(1000, order=2).fit(data)


def test_so_many_states_there_may_be() -> None:
    for order, most in ((1, 1 << 14), (2, 645)):
        model = sc.HMM(order=order)
        model._demand_room(most)
        with pytest.raises(LearnerError) as error:
            model._demand_room(most + 1)
        assert f"{most:,} states at most" in error.value.hint


@pytest.mark.parametrize("data", [None, 5])
def test_no_sequences_of_vectors(data: Any) -> None:
    with pytest.raises(DataError, match="the data are"):
        sc.GaussianHMM(2).fit(data)


def test_vectors_that_never_count() -> None:
    for weights in ([0, 0, 0], [0, 1, 0]):
        with pytest.raises(DataError, match="no vector counts"):
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
    search = GridSearchCV(model, {"n_states": [1, 2]}, cv=2, error_score="raise").fit(FULL)
    assert search.best_params_["n_states"] in (1, 2)
    half = len(FULL) // 2
    wanted = model.fit(FULL[half : 2 * half]).score(FULL[:half])
    assert cross_val_score(model, FULL[: 2 * half], cv=2)[0] == pytest.approx(wanted)


def test_readers_are_where_models_are(tmp_path: Any) -> None:
    (tmp_path / "text").write_text("the/D dog/N\n")
    (tmp_path / "words").write_text("the\tD\n")
    (tmp_path / "rows").write_text("1\tthe\t_\tD\t_\t_\t_\t_\t_\t_\n")
    assert sc.read_sequences(tmp_path / "text").sentence(0) == ["the/D", "dog/N"]
    assert sc.read_tagged(tmp_path / "text").sentence(0) == [("the", "D"), ("dog", "N")]
    assert sc.read_conllu(tmp_path / "rows").tagged().sentence(0) == [("the", "D")]
    assert sc.read_tag_dictionary(tmp_path / "words") == {"the": ["D"]}
