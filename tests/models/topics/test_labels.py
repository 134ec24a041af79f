"""Labels: what is known of documents' topics, and that no learner forgets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import softcount as sc
from softcount.errors import DataError
from softcount.topics.data import allowed_of, known_topics
from tests.models.topics.common import LEARNERS
from tests.oracles import plain_topics

X, TOPICS = plain_topics.documents()
N, V = X.shape
START = {"topics": np.random.default_rng(5).dirichlet(np.ones(V), 3)}
MIXED = [0, 1, [0, 2], -1] * 15
ALLOWED = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]] * 15, bool)


# all labels known: learning is counting
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.5]))
@settings(max_examples=25, deadline=None)
def test_plsa_with_all_labels_is_counting(seed: int, K: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(K, size=8)])
    x = rng.poisson(1.0, (len(y), 6))
    x[:K, 0] += 1  # every topic has a word
    model = sc.PLSA(K, smoothing=smoothing, random_state=seed % 7).fit(x, labels=y)
    counted = np.array([x[y == k].sum(axis=0) for k in range(K)]) + smoothing
    np.testing.assert_allclose(model.topics_, counted / counted.sum(axis=1, keepdims=True), 1e-14)
    np.testing.assert_array_equal(model.documents_, np.eye(K)[y])
    shares = np.bincount(y, x.sum(axis=1), minlength=K) / x.sum()
    np.testing.assert_allclose(model.weights_, shares, rtol=1e-14)


WITH_ALL_WORDS = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]


@pytest.mark.parametrize("learner", WITH_ALL_WORDS, ids=str)
def test_every_learner_counts_where_all_is_known(learner: Any) -> None:
    """All learners agree on what they are told."""
    y = np.arange(N) % 3
    model = sc.LDA(3, doc_prior=0.1, word_prior=0.01, learner=learner).fit(X, labels=y)
    counted = np.array([X[y == k].sum(axis=0) for k in range(3)]) + 0.01
    want = counted / counted.sum(axis=1, keepdims=True)
    exact = not (isinstance(learner, sc.Gibbs) and not isinstance(learner, sc.CollapsedGibbs))
    loose = isinstance(learner, sc.OnlineEM | sc.StochasticVB)
    if not exact or loose:  # a draw, or an average of mini-batches
        np.testing.assert_allclose(model.topics_, want, atol=0.05)
    elif not getattr(learner, "optimise", 0):
        np.testing.assert_allclose(model.topics_, want, rtol=1e-9)


# some labels known
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_document_has_what_it_may_not_have(learner: Any, dtype: str) -> None:
    model = sc.LDA(3, learner=learner, dtype=dtype).fit(X, labels=MIXED)
    assert not model.documents_[~ALLOWED].any()
    np.testing.assert_allclose(model.documents_.sum(axis=1), 1.0)
    # documents of which nothing is known have what they like, and new ones too
    assert (model.documents_[3::4] > 0.0).any(axis=0).all()
    assert (model.transform(X)[~ALLOWED] > 0.0).any()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_labels_give_topics_their_numbers(learner: Any) -> None:
    """A fifth of the documents is labelled by the truth, and topic k is topic k."""
    x, topics = plain_topics.documents(n=200, length=60, seed=3)
    rng = np.random.default_rng(0)
    likely = np.argmax(x @ np.log(topics.T + 1e-3), axis=1)
    y = np.where(rng.random(200) < 0.2, likely, -1)
    if isinstance(learner, sc.Gibbs):
        learner = type(learner)(max_iter=40, n_chains=1)
    model = sc.LDA(3, learner=learner).fit(x, labels=y)
    apart = np.array([[np.abs(a - b).sum() for b in model.topics_] for a in topics])
    assert apart.argmin(axis=1).tolist() == [0, 1, 2]


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("kind", ["plsa", "lda"])
def test_em_with_masks_is_what_it_should_be(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.poisson(1.0, (9, 7))
    x[:, 0] += 1
    allowed = rng.random((9, 4)) < 0.6
    allowed[np.arange(9), np.arange(9) % 4] = True  # every topic has a document
    y = [np.flatnonzero(row).tolist() for row in allowed]
    phi = rng.dirichlet(np.ones(7), 4)
    a, b = (0.0, 0.0) if kind == "plsa" else (0.3, 0.2)
    learner, init = sc.EM(max_iter=6, tol=0), {"topics": phi}
    model = (
        sc.PLSA(4, init=init, scouts=0, learner=learner)
        if kind == "plsa"
        else sc.LDA(4, doc_prior=a, word_prior=b, init=init, scouts=0, learner=learner)
    ).fit(x, labels=y)
    wanted = plain_topics.em(x, phi, 6, a, b, allowed)[0]
    objectives = plain_topics.em(x, phi, 7, a, b, allowed)[1]
    np.testing.assert_allclose(model.topics_, wanted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.trace_.objective, objectives, rtol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.5, 2.0]))
@settings(max_examples=15, deadline=None)
def test_variational_bayes_with_masks_is_what_it_should_be(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.poisson(1.0, (8, 6))
    x[2] = 0
    allowed = rng.random((8, 3)) < 0.6
    allowed[np.arange(8), rng.integers(3, size=8)] = True
    y = [np.flatnonzero(row).tolist() for row in allowed]
    phi = rng.dirichlet(np.ones(6), 3)
    learner = sc.VariationalBayes(max_iter=6, tol=0)
    model = sc.LDA(
        3, doc_prior=alpha, word_prior=0.3, init={"topics": phi}, scouts=0, learner=learner
    ).fit(x, labels=y)
    wanted, bounds = plain_topics.vb(x, phi, 6, alpha, 0.3, allowed)
    np.testing.assert_allclose(model.topics_, wanted, rtol=1e-7)
    np.testing.assert_allclose(model.trace_.objective[1:], bounds, rtol=1e-8)


@pytest.mark.parametrize(
    "learner",
    [
        sc.EM(max_iter=40, tol=0),
        sc.VariationalBayes(max_iter=40, tol=0),
        sc.IncrementalEM(max_iter=15, batch_size=7, tol=0),
        sc.HardEM(max_iter=15, tol=0),
        sc.EM(max_iter=15, schedule=sc.Squarem(), tol=0),
    ],
    ids=str,
)
def test_the_objective_never_falls(learner: Any) -> None:
    for seed in range(3):
        model = sc.LDA(3, learner=learner, random_state=seed).fit(X, labels=MIXED)
        steps = np.diff(model.trace_.objective[1:])
        assert steps.min() > -1e-9 * abs(model.trace_.objective[-1])
        assert model.trace_.objective[-1] > model.trace_.objective[1]


def test_a_topic_without_documents_keeps_its_start() -> None:
    model = sc.PLSA(3, init=START, scouts=0).fit(X, labels=[0, 1] * 30)
    np.testing.assert_array_equal(model.topics_[2], START["topics"][2])
    assert model.weights_[2] == 0.0


def test_an_empty_document_has_what_it_is_told() -> None:
    x = np.vstack([X, np.zeros((2, V))])
    for learner in (sc.EM(max_iter=5), sc.VariationalBayes(max_iter=5)):
        model = sc.LDA(3, learner=learner).fit(x, labels=[-1] * N + [2, [0, 1]])
        np.testing.assert_allclose(model.documents_[-2:], [[0, 0, 1], [0.5, 0.5, 0]])


def test_nothing_known_is_no_labels() -> None:
    one, two = (sc.LDA(3, init="random").fit(X, labels=y) for y in (None, [-1] * N))
    assert one.topics_.tobytes() == two.topics_.tobytes()
    everything = sc.LDA(3, init="random").fit(X, labels=[[0, 1, 2]] * N)
    np.testing.assert_allclose(everything.topics_, one.topics_, rtol=1e-9)


def test_impossible_labels_are_told() -> None:
    """PLSA with fixed zeros: a document whose one topic lacks its word."""
    start = {"topics": np.array([[1.0, 0.0], [0.0, 1.0]])}
    with pytest.raises(sc.ImpossibleItem, match="document 1"):
        sc.PLSA(2, init=start, scouts=0).fit([[1, 0], [1, 0]], labels=[0, 1])


# labels as users may write them
@pytest.mark.parametrize(
    "y",
    [
        [1, -1, [0, 2]],
        (1, -1, (0, 2)),
        [np.int64(1), -1.0, {0, 2}],
        [[1], [-1], np.array([2, 0])],
        np.array([1, -1, [0, 2]], dtype=object),
        [1.0, np.float32(-1), [2.0, 0]],
    ],
)
def test_ways_to_write_labels(y: Any) -> None:
    known = known_topics(y, 3, 3)
    np.testing.assert_array_equal(known.toarray(), [[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    allowed = allowed_of(known, np.array([2, 1, 0]))
    np.testing.assert_array_equal(allowed, [[1, 0, 1], [1, 1, 1], [0, 1, 0]])


def test_a_series_of_labels() -> None:
    pd = pytest.importorskip("pandas")
    y = pd.Series([1, -1, 0], index=["a", "b", "c"])
    np.testing.assert_array_equal(known_topics(y, 3, 2).toarray(), [[0, 1], [0, 0], [1, 0]])


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        -2,
        1.5,
        "1",
        "one",
        None,
        np.nan,
        np.inf,
        [],
        [0, 3],
        [0, -1],
        [0, "1"],
        [[0]],
        True,
        10**40,
    ],
)
def test_a_wrong_label_names_its_document(wrong: Any) -> None:
    with pytest.raises(DataError, match="document 4 "):
        sc.LDA(3).fit(X, labels=[0, 1, -1, [0, 1], wrong] + [-1] * (N - 5))


@pytest.mark.parametrize("dtype", [int, bool, float])
def test_rows_of_zeros_and_ones_are_not_taken_for_lists_of_topics(dtype: Any) -> None:
    with pytest.raises(DataError, match="document 0 "):
        sc.LDA(3).fit(X[:3], labels=np.eye(3, dtype=dtype))


@pytest.mark.parametrize(
    "y", [[0], [0] * (N + 1), 5, "one", dict.fromkeys(range(N), 0), sparse.eye(N).tocsr()]
)
def test_labels_that_are_no_list_of_labels(y: Any) -> None:
    with pytest.raises(DataError, match="label"):
        sc.LDA(3).fit(X, labels=y)


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    model = sc.LDA(3).fit(X)
    before = model.topics_.copy()
    with pytest.raises(DataError):
        model.fit(X[:, :5], labels=[7] * N)
    np.testing.assert_array_equal(model.topics_, before)
    assert model.transform(X).shape == (N, 3)
