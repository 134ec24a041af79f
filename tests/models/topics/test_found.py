"""Faults that a hostile reader of topic models found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer

import softcount as sc
from softcount.errors import DataError, LearnerError
from softcount.metrics import completion
from tests.oracles import plain_topics

X, _ = plain_topics.documents()
TEXTS = ["cup goal team", "goal team match", "oil price", "market price oil", ""] * 4


@pytest.fixture(scope="module")
def model() -> sc.LDA:
    return sc.LDA(3).fit(sparse.csr_matrix(X))


@pytest.mark.parametrize(
    "row",
    [sparse.csr_matrix(X)[4], sparse.csr_array(X)[4], sparse.csr_array(X)[[4]], X[[4]], list(X[4])],
    ids=["sparse matrix", "sparse vector", "sparse array", "table of one row", "list"],
)
def test_a_query_is_one_row_of_counts_in_any_form(model: sc.LDA, row: Any) -> None:
    assert model.similar(row, 3, 0.5) == model.similar(X[4], 3, 0.5)
    assert model.similar(row, 1, 0.5)[0][0] == 4


def test_several_rows_are_no_query(model: sc.LDA) -> None:
    with pytest.raises(DataError, match="2 rows"):
        model.similar(sparse.csr_matrix(X)[:2])


@pytest.mark.filterwarnings("error")
def test_a_query_that_is_a_row_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{w}" for w in range(X.shape[1])])
    own = sc.LDA(3).fit(frame)
    assert own.similar(frame.iloc[4], 1)[0][0] == own.similar(frame.iloc[[4]], 1)[0][0] == 4


@pytest.mark.parametrize("n", [0, -1, 2.5, "two"])
def test_documents_are_generated_in_whole_numbers(model: sc.LDA, n: Any) -> None:
    with pytest.raises(LearnerError, match="n="):
        model.generate(n)


@pytest.mark.parametrize("kind", ["plsa", "lda"])
@pytest.mark.parametrize("learner", [sc.VariationalBayes(), sc.Gibbs(), sc.CollapsedGibbs()])
def test_learners_of_a_posterior_say_which_priors_they_need(kind: str, learner: Any) -> None:
    without = sc.PLSA(2, learner=learner) if kind == "plsa" else sc.LDA(2, word_prior=0)
    with pytest.raises(LearnerError, match="word_prior"):
        without.set_params(learner=learner).fit(X)


def test_seeds_that_are_lists_of_lists() -> None:
    with pytest.raises(DataError, match="seed word"):
        sc.LDA(2, seeds={0: [["oil", "price"]]}).fit(TEXTS)


@pytest.mark.parametrize("strength", [1e9, 1e30])
@pytest.mark.parametrize("learner", [None, sc.CollapsedGibbs(max_iter=2)])
def test_seeds_beyond_counting(strength: float, learner: Any) -> None:
    with pytest.raises(LearnerError, match="seed_strength"):
        sc.LDA(2, seeds={0: ["oil"]}, seed_strength=strength, learner=learner).fit(TEXTS)


def test_a_fitted_model_keeps_its_topics_whatever_is_set_for_the_next_fit() -> None:
    own = sc.LDA(3).fit(X)
    before = own.transform(X)
    own.set_params(n_topics=4)
    np.testing.assert_array_equal(own.transform(X), before)
    assert len(own.get_feature_names_out()) == 3
    assert own.fit(X).transform(X).shape == (len(X), 4)


def test_columns_have_no_names_before_learning() -> None:
    with pytest.raises(NotFittedError):
        sc.LDA(3).get_feature_names_out()


def test_a_page_of_columns_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    own, index = sc.LDA(2).fit(TEXTS), range(7, 7 + len(TEXTS))
    texts, names = pd.Series(TEXTS, index=index), pd.Series(map(str, index), index=index)
    times = pd.Series(pd.date_range("2020-01-01", periods=len(TEXTS)), index=index)
    page = sc.topic_report(own, texts=texts, names=names, times=times)
    plain = {"texts": TEXTS, "names": names.tolist(), "times": times.tolist()}
    assert page == sc.topic_report(own, **plain)
    assert page == sc.topic_report(own, **{**plain, "texts": iter(TEXTS)})


def test_empty_documents_have_no_largest_topic_on_the_page() -> None:
    own = sc.LDA(1).fit(TEXTS)
    assert "the largest in 16 documents" in sc.topic_report(own, texts=TEXTS)
    lengths = [len(text.split()) for text in TEXTS]
    assert "the largest in 16 documents" in sc.topic_report(own, lengths=lengths)


@pytest.mark.parametrize("prior", ["much", np.array([0.1, 0.2, 0.3]), None, np.nan])
def test_completion_has_one_prior(model: sc.LDA, prior: Any) -> None:
    with pytest.raises(DataError, match="doc_prior"):
        completion(model, X, doc_prior=prior)


def test_what_is_generated_from_lists_of_words_can_be_read_again() -> None:
    own = sc.LDA(2).fit([text.split() for text in TEXTS])
    made = own.generate(9, 1)
    assert own.transform(made).shape == (9, 2)
    assert {word for words in made for word in words} <= set(own.vocabulary_)
    assert [" ".join(words) for words in made] == sc.LDA(2).fit(TEXTS).generate(9, 1)


def test_words_without_names_are_generated_as_counts() -> None:
    counter = HashingVectorizer(n_features=16, alternate_sign=False, norm=None)
    assert sc.LDA(2, vectorizer=counter).fit(TEXTS).generate(3).shape == (3, 16)


def test_top_words_are_for_models_that_have_learned(model: sc.LDA) -> None:
    with pytest.raises(NotFittedError):
        sc.LDA(2).top_words()
    with pytest.raises(LearnerError, match="n=-1"):
        model.top_words(-1)


LEARNERS = [None, sc.OnlineEM(batch_size=7), sc.StochasticVB(batch_size=7)]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("known", [{}, {"seeds": {1: [3, 4]}}, {"frozen": X[:1] + 1.0}])
def test_a_model_from_a_file_learns_on_as_if_it_had_never_been_there(
    learner: Any, known: dict[str, Any], tmp_path: Path
) -> None:
    own = sc.LDA(3, learner=learner, word_prior=0.3, **known).partial_fit(X[:30])
    own.save(tmp_path / "m")
    again = sc.load(tmp_path / "m", learner=learner).partial_fit(X[30:])
    own.partial_fit(X[30:])
    np.testing.assert_allclose(again.topics_, own.topics_, rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(again.weights_, own.weights_, rtol=1e-8)


def test_seeds_count_once_when_learning_goes_on() -> None:
    """The same documents once more: twice as many words, and as many seeds as before."""
    own = sc.LDA(3, seeds={1: [3]}, seed_strength=2.0, word_prior=0.0).fit(X)
    seeds, words = 2.0 * X[:, 3].sum(), own.weights_[1] * X.sum()
    seen = own.topics_[1, 3] * (words + seeds) - seeds
    own.partial_fit(X)
    assert own.topics_[1, 3] == pytest.approx((2 * seen + seeds) / (2 * words + seeds), rel=0.05)


def test_a_model_that_is_to_become_another_is_not_saved(tmp_path: Path) -> None:
    """The file would speak of topics that it does not have."""
    model = sc.LDA(3).fit(X).set_params(n_topics=4)
    with pytest.raises(sc.LearnerError, match="3 topics"):
        model.save(tmp_path / "m")
    model.set_params(n_topics=3).save(tmp_path / "m")
    assert sc.load(tmp_path / "m").n_topics == 3
