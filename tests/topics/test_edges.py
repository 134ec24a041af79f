"""Documents and settings at the edge of sense: defined, and finite."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import softcount as sc
from softcount.core.errors import DataError
from tests.oracles import plain_topics
from tests.topics.common import LEARNERS

X, TOPICS = plain_topics.documents()
N, V = X.shape
POINTS = [one for one in LEARNERS if one is None or one.m == "maximise"]
WHOLE = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]
"""Learners that need no word to hold out."""
FRACTIONS = [one for one in WHOLE if not isinstance(one, sc.CollapsedGibbs)]


@pytest.fixture(autouse=True)
def _nothing_divides_by_zero() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def sound(model: Any, data: Any) -> None:
    """Whatever went in, what comes out are probabilities."""
    for table in (model.topics_, model.documents_, model.transform(data), model.weights_[None]):
        assert np.isfinite(table).all()
        assert (table >= 0.0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-9)
    assert not np.isnan(model.score_samples(data)).any()


# documents
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_empty_documents_and_documents_of_one_word(learner: Any) -> None:
    x = np.vstack([np.zeros((2, V)), X, np.eye(V)[:3], np.zeros((1, V))])
    model = sc.LDA(3, learner=learner).fit(x)
    sound(model, x)
    if model.document_smoothing_.std() < 1e-12:
        np.testing.assert_allclose(model.documents_[[0, 1, -1]], 1 / 3)
    np.testing.assert_allclose(model.score_samples(x)[[0, 1, -1]], 0.0)


@pytest.mark.parametrize("learner", POINTS, ids=str)
def test_empty_documents_teach_nothing(learner: Any) -> None:
    """With the same start and no shuffling the topics are the same, with them and without."""
    if learner is not None and learner.schedule.batch_size:
        learner = sc.EM(max_iter=10)
    start = {"topics": np.random.default_rng(1).dirichlet(np.ones(V), 3)}
    with_them, without = (
        sc.PLSA(3, init=start, short_runs=0, learner=learner, random_state=3).fit(x)
        for x in (np.vstack([X, np.zeros((5, V))]), X)
    )
    np.testing.assert_allclose(with_them.topics_, without.topics_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(with_them.weights_, without.weights_, rtol=1e-9)


@pytest.mark.parametrize("kind", [sc.PLSA, sc.LDA])
def test_no_word_at_all(kind: Any) -> None:
    for data in (np.zeros((3, 4)), sparse.csr_matrix((3, 4)), ["", " "], [[], []]):
        with pytest.raises(DataError, match=r"empty|no words are left|nothing to learn"):
            kind(2).fit(data)
    for data in (np.zeros((0, 4)), [], np.zeros((4, 0))):
        with pytest.raises((DataError, ValueError)):
            kind(2).fit(data)


@pytest.mark.parametrize("learner", WHOLE, ids=str)
@pytest.mark.parametrize("data", [[[3]], [[1]], [[0, 2, 0]], [[1, 1]], [[2], [0], [5]]])
def test_one_document_one_word(learner: Any, data: Any) -> None:
    for K in (1, 5):
        sound(sc.LDA(K, learner=learner).fit(data), data)
        if learner in POINTS:
            sound(sc.PLSA(K, learner=learner).fit(data), data)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_documents_of_a_million_words(learner: Any) -> None:
    if isinstance(learner, sc.Gibbs | sc.MonteCarloEM):
        learner = type(learner)(max_iter=2)
    long = np.random.default_rng(0).multinomial(10**6, TOPICS[0])
    x = np.vstack([X, long, np.eye(V)[:1]])
    model = sc.LDA(3, learner=learner).fit(x)
    sound(model, x)
    assert np.isfinite(model.trace_.objective[1:]).all()
    share = 10**6 / x.sum()
    assert model.weights_.max() > 0.9 * share * model.documents_[N].max()


def test_a_million_words_in_one_cell() -> None:
    for kind in (sc.PLSA, sc.LDA):
        for learner in (None, sc.HardEM(max_iter=5), sc.OnlineEM(max_iter=2)):
            x = np.array([[10**6, 1, 0], [0, 10**6, 1], [1, 0, 1]])
            sound(kind(2, learner=learner).fit(x), x)
    sound(sc.LDA(2, learner=sc.VariationalBayes()).fit(x * 10**6), x)


@pytest.mark.parametrize("learner", FRACTIONS, ids=str)
def test_fractions_of_words(learner: Any) -> None:
    sound(sc.LDA(3, learner=learner).fit(X * 0.37), X * 0.37)
    sound(sc.LDA(3, learner=learner).fit(X * 1e-9), X * 1e-9)


def test_fractions_are_weights() -> None:
    """PLSA of counts and of their multiples is the same."""
    start = {"topics": np.random.default_rng(1).dirichlet(np.ones(V), 3)}
    one, many, few = (
        sc.PLSA(3, init=start, short_runs=0, learner=sc.EM(max_iter=20, tol=0)).fit(X * factor)
        for factor in (1.0, 1000.0, 1e-6)
    )
    np.testing.assert_allclose(many.topics_, one.topics_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(few.topics_, one.topics_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("learner", [sc.CollapsedGibbs(max_iter=3), sc.TemperedEM(max_iter=3)])
def test_what_needs_whole_words_says_so(learner: Any) -> None:
    with pytest.raises(DataError, match=r"document 0 has .* of word \d+"):
        sc.LDA(3, learner=learner).fit(X * 0.5)


def test_one_document_given_often_is_one_document() -> None:
    x = np.repeat(X[:1], 50, axis=0)
    for kind in (sc.PLSA, sc.LDA):
        model = kind(2).fit(x)
        sound(model, x)
        np.testing.assert_allclose(
            model.documents_, np.repeat(model.documents_[:1], 50, axis=0), atol=1e-6
        )
        np.testing.assert_allclose(
            model.documents_[0] @ model.topics_, X[0] / X[0].sum(), atol=0.01
        )


def test_copies_count_as_weights() -> None:
    start = {"topics": np.random.default_rng(1).dirichlet(np.ones(V), 3)}
    learner = sc.EM(max_iter=10, tol=0)
    twice, copied = (
        sc.PLSA(3, init=start, short_runs=0, learner=learner).fit(x)
        for x in (2 * X, np.vstack([X, X]))
    )
    np.testing.assert_allclose(twice.topics_, copied.topics_, rtol=1e-8, atol=1e-12)


# words
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_columns_without_any_word(learner: Any) -> None:
    x = np.hstack([np.zeros((N, 2)), X, np.zeros((N, 2))])
    model = sc.LDA(3, learner=learner).fit(x)
    sound(model, x)
    new = np.eye(V + 4)[:1] * 3
    assert np.isfinite(model.score_samples(new)).all()  # smoothed


def test_words_unseen_in_training() -> None:
    x = np.hstack([X, np.zeros((N, 1))])
    model = sc.PLSA(3).fit(x)
    assert not model.topics_[:, -1].any()
    new = np.zeros((3, V + 1))
    new[0, -1], new[1, -1], new[1, 0] = 4, 4, 2
    new[2, 0] = 2
    shares = model.transform(new)
    np.testing.assert_allclose(shares[0], 1 / 3)  # nothing is known of it
    np.testing.assert_allclose(shares[1], shares[2], atol=1e-6)  # the word is passed over
    assert model.score_samples(new).tolist()[:2] == [-np.inf, -np.inf]
    assert np.isfinite(model.score_samples(new)[2])
    texts = sc.LDA(2).fit(["a b a", "c d c"])
    np.testing.assert_allclose(texts.transform(["e f", "a e"])[0], 0.5)
    np.testing.assert_array_equal(texts.transform(["a e"]), texts.transform(["a"]))


# topics
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_more_topics_than_documents_or_words(learner: Any) -> None:
    sound(sc.LDA(40, learner=learner).fit(X[:5]), X[:5])
    sound(sc.LDA(40, learner=learner).fit(X[:, :4]), X[:, :4])
    if learner in POINTS:
        sound(sc.PLSA(40, learner=learner).fit(X[:5]), X[:5])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("prior", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("kind", [sc.VariationalBayes, sc.StochasticVB, sc.Gibbs])
def test_topics_die_out_where_priors_are_small(kind: Any, prior: float, dtype: str) -> None:
    """exp ψ(10⁻⁵) is far below what a number can be: words and documents must not be lost."""
    learner = {
        sc.VariationalBayes: sc.VariationalBayes(max_iter=30),
        sc.StochasticVB: sc.StochasticVB(max_iter=3, batch_size=16),
        sc.Gibbs: sc.Gibbs(max_iter=10, n_init=1),
    }[kind]
    x = np.vstack([X, np.zeros((1, V)), np.eye(V)[:4]])
    model = sc.LDA(20, smoothing=prior, learner=learner, dtype=dtype).fit(x)
    sound(model, x)
    assert np.isfinite(model.trace_.log_likelihood).all()
    if kind is not sc.Gibbs:  # the density of a draw has no bound where priors are below 1
        assert np.isfinite(model.trace_.objective[1:]).all()


def test_a_topic_that_died_is_no_ones() -> None:
    """Labels keep documents from a topic: it has its prior and no weight, and can be shown."""
    model = sc.LDA(3).fit(X, labels=[[0, 1]] * N)
    np.testing.assert_allclose(model.topics_[2], 1.0 / V)
    assert model.weights_[2] == 0.0
    assert all(len(words) for words in model.top_words(5))
    sound(model, X)
    assert np.isfinite(model.generate(5).toarray()).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_one_topic(learner: Any) -> None:
    model = sc.LDA(1, learner=learner).fit(X)
    np.testing.assert_array_equal(model.documents_, np.ones((N, 1)))
    assert model.weights_.tolist() == [1.0]
    smoothed = (X.sum(axis=0) + 0.01) / (X.sum() + 0.01 * V)
    held = isinstance(learner, sc.TemperedEM)
    loose = held or isinstance(learner, sc.Gibbs | sc.OnlineEM | sc.StochasticVB)
    if not getattr(learner, "optimise", 0):
        np.testing.assert_allclose(model.topics_[0], smoothed, atol=0.02 if loose else 1e-9)


# forms of data
def forms() -> list[Any]:
    counts = X.astype(float)
    rows = sparse.csr_matrix(counts)
    return [
        counts.astype(np.int64),
        counts.astype(np.int8),
        counts.astype(np.uint16),
        counts.astype(np.float32),
        np.asfortranarray(counts),
        counts.tolist(),
        rows,
        rows.tocsc(),
        rows.tocoo(),
        rows.tolil(),
        sparse.csr_array(counts),
        rows.astype(np.int32),
    ]


@pytest.mark.parametrize("form", range(len(forms())))
def test_counts_in_any_form_teach_the_same(form: int) -> None:
    wanted, found = (sc.LDA(3).fit(x) for x in (X.astype(float), forms()[form]))
    np.testing.assert_array_equal(found.topics_, wanted.topics_)
    np.testing.assert_array_equal(found.documents_, wanted.documents_)
    np.testing.assert_array_equal(found.transform(forms()[form]), wanted.transform(X))


def test_truth_values_and_unsorted_and_repeated_entries() -> None:
    wanted, found = sc.LDA(3).fit((X > 0).astype(float)), sc.LDA(3).fit(X > 0)
    np.testing.assert_array_equal(found.topics_, wanted.topics_)
    rows = sparse.csr_matrix(X, dtype=float)
    shuffled = rows.copy()
    for d in range(N):
        part = slice(shuffled.indptr[d], shuffled.indptr[d + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    coo = rows.tocoo()
    parts = [np.concatenate([part, part]) for part in (coo.row, coo.col)]
    twice = sparse.coo_matrix((np.tile(coo.data / 2, 2), tuple(parts)), rows.shape)
    wanted = sc.LDA(3).fit(rows)
    for odd in (shuffled, twice):
        before = odd.copy()
        np.testing.assert_allclose(sc.LDA(3).fit(odd).topics_, wanted.topics_, rtol=1e-9)
        assert abs(odd - before).sum() == 0  # what was given is not touched


def test_a_data_frame_names_its_words() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{w}" for w in range(V)])
    model = sc.LDA(3).fit(frame)
    np.testing.assert_array_equal(model.topics_, sc.LDA(3).fit(X).topics_)
    assert model.word_names().tolist() == list(frame.columns)
    assert model.top_words(1)[0][0][0].startswith("w")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_what_is_no_count(wrong: float) -> None:
    x = X.astype(float)
    x[3, 4] = wrong
    for data in (x, sparse.csr_matrix(x)):
        with pytest.raises(ValueError, match=r"NaN|infinity|Negative"):
            sc.LDA(3).fit(data)
        with pytest.raises(ValueError, match=r"NaN|infinity|Negative"):
            sc.LDA(3).fit(X).transform(data)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_any_small_corpus(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, words, K = rng.integers(1, 8, 3)
    x = rng.poisson(rng.choice([0.2, 1.0, 30.0]), (n, words))
    x[rng.integers(n), rng.integers(words)] += 1
    learner = FRACTIONS[rng.integers(len(FRACTIONS))]
    for kind in (sc.LDA, sc.PLSA) if learner in POINTS else (sc.LDA,):
        sound(kind(int(K), learner=learner, random_state=seed).fit(x), x)
