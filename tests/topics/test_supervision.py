"""What is known of topics: labels of documents, seed words, frozen topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.text.archive import Archive
from softcount.topics.data import (
    count_seed_words,
    read_frozen_topics,
    read_labels,
    select_allowed,
)
from tests.oracles import plain_topics
from tests.topics.common import LEARNERS

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
    model = sc.LDA(3, smoothing={"documents": 0.1, "words": 0.01}, learner=learner).fit(X, labels=y)
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
        learner = type(learner)(max_iter=40, n_init=1)
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
        sc.PLSA(4, init=init, short_runs=0, learner=learner)
        if kind == "plsa"
        else sc.LDA(
            4, smoothing={"documents": a, "words": b}, init=init, short_runs=0, learner=learner
        )
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
        3,
        smoothing={"documents": alpha, "words": 0.3},
        init={"topics": phi},
        short_runs=0,
        learner=learner,
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
        sc.EM(max_iter=15, schedule=sc.learners.Squarem(), tol=0),
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
    model = sc.PLSA(3, init=START, short_runs=0).fit(X, labels=[0, 1] * 30)
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
    with pytest.raises(sc.errors.ImpossibleItem, match="document 1"):
        sc.PLSA(2, init=start, short_runs=0).fit([[1, 0], [1, 0]], labels=[0, 1])


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
    known = read_labels(y, 3, 3)
    np.testing.assert_array_equal(known.toarray(), [[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    allowed = select_allowed(known, np.array([2, 1, 0]))
    np.testing.assert_array_equal(allowed, [[1, 0, 1], [1, 1, 1], [0, 1, 0]])


def test_a_series_of_labels() -> None:
    pd = pytest.importorskip("pandas")
    y = pd.Series([1, -1, 0], index=["a", "b", "c"])
    np.testing.assert_array_equal(read_labels(y, 3, 2).toarray(), [[0, 1], [0, 0], [1, 0]])


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


# Seed words and frozen topics: the prior is what is promised, and what is frozen never moves.


MORE_X, MORE_TOPICS = plain_topics.documents(n=120)
MORE_V = MORE_X.shape[1]
OFTEN = MORE_X.sum(axis=0)
MORE_START = np.random.default_rng(5).dirichlet(np.ones(MORE_V), 3)
SEEDED = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]
HOLDING = [one for one in LEARNERS if not isinstance(one, sc.CollapsedGibbs)]


def best_words(n: int = 3) -> Any:
    """The words by which one tells the true topics."""
    lift = MORE_TOPICS * np.log((MORE_TOPICS + 1e-9) / (MORE_TOPICS.mean(axis=0) + 1e-9))
    return [np.argsort(-row)[:n].tolist() for row in lift]


# seeds: the prior
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 1.0, 3.0]))
@settings(max_examples=15, deadline=None)
def test_seeds_are_counts_that_a_topic_has_beforehand(seed: int, strength: float) -> None:
    """EM with n_kw + smoothing + round(strength · n_w) at the seeds, written out."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(1.0, (9, 7))
    x[0] += 1
    seeds = {0: [2, 3], 2: [5]}
    again = np.zeros((3, 7))
    for topic, words in seeds.items():
        again[topic, words] = np.maximum(1, np.round(strength * x.sum(axis=0)[words]))
    start = rng.dirichlet(np.ones(7), 3)
    guided = start.copy()  # the first step begins where the seeds are said to be
    for words in seeds.values():
        guided[:, words] = start[:, words] * 0.1
    for topic, words in seeds.items():
        guided[topic, words] = start[topic, words] * 10.1
    guided /= guided.sum(axis=1, keepdims=True)
    model = sc.PLSA(
        3,
        smoothing=0.1,
        seed_words=seeds,
        seed_strength=strength,
        init={"topics": start},
        short_runs=0,
        learner=sc.EM(max_iter=5, tol=0),
    ).fit(x)
    np.testing.assert_array_equal(model._seed_counts.toarray(), again)
    wanted = plain_topics.em(x, guided, 5, 0.0, 0.1 + again)[0]
    objectives = plain_topics.em(x, guided, 6, 0.0, 0.1 + again)[1]
    np.testing.assert_allclose(model.topics_, wanted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.trace_.objective, objectives, rtol=1e-9)


def test_a_seed_word_counts_once_at_least() -> None:
    words = {"a": 0, "b": 1, "c": 2}
    table = count_seed_words([["a", "b", "c"]], 0.1, np.array([0.0, 1.0, 40.0]), words, 2)
    np.testing.assert_array_equal(table.toarray(), [[0, 1, 4], [0, 0, 0]])


@pytest.mark.parametrize("learner", SEEDED, ids=str)
def test_seeds_pull_topics_to_their_numbers(learner: Any) -> None:
    """Whatever order they are asked for in."""
    if isinstance(learner, sc.Gibbs):
        learner = type(learner)(max_iter=40, n_init=1)
    marks = best_words()
    for order in ([0, 1, 2], [2, 0, 1]):
        seeds = {k: marks[of] for k, of in enumerate(order)}
        model = sc.LDA(3, seed_words=seeds, learner=learner).fit(MORE_X)
        apart = np.array([[np.abs(a - b).sum() for b in MORE_TOPICS] for a in model.topics_])
        assert apart.argmin(axis=1).tolist() == order
        for k in range(3):
            assert {word for word, _ in model.top_words(8)[k]} & set(seeds[k])


def test_stronger_seeds_pull_more() -> None:
    marks = best_words()
    shares = [
        sc.LDA(3, seed_words={0: marks[0]}, seed_strength=s, learner=sc.EM(max_iter=30))
        .fit(MORE_X)
        .topics_[0, marks[0]]
        .sum()
        for s in (0.1, 1.0, 10.0)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_one_word_may_be_a_seed_of_two_topics() -> None:
    model = sc.LDA(3, seed_words={0: [4], 1: [4]}).fit(MORE_X)
    assert model._seed_counts.toarray()[:, 4].tolist() == [OFTEN[4], OFTEN[4], 0]
    assert np.isfinite(model.topics_).all()


def test_seeds_for_partial_fit_are_those_of_the_first_documents() -> None:
    marks = best_words()
    model = sc.LDA(3, seed_words={2: marks[0]}).partial_fit(MORE_X[:60])
    first = MORE_X[:60].sum(axis=0)
    assert (
        model._seed_counts.toarray()[2, marks[0]].tolist()
        == np.maximum(1, first[marks[0]]).tolist()
    )
    model.partial_fit(MORE_X[60:])
    apart = [np.abs(row - MORE_TOPICS[0]).sum() for row in model.topics_]
    assert int(np.argmin(apart)) == 2


def test_words_that_are_not_there_are_passed_over() -> None:
    texts = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5
    model = sc.LDA(2, seed_words={1: ["goal", "unheard", "Oil"]}).fit(texts)
    assert model._seed_counts.nnz == 1
    assert model.topics_[1].argmax() == model.word_names().tolist().index("goal")
    same = sc.LDA(2, seed_words=[[], ["goal"]]).fit(texts)
    np.testing.assert_array_equal(same.topics_, model.topics_)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ({0: ["unheard"]}, "none of the seed words"),
        ({}, "none of the seed words"),
        ({2: ["goal"]}, "topic 2"),
        ({-1: ["goal"]}, "topic -1"),
        ({"first": ["goal"]}, "'first'"),
        ({0.5: ["goal"]}, "0.5"),
        ({None: ["goal"]}, "None"),
        ({0: "goal"}, "'goal'"),
        ({0: 5}, "5"),
        ("goal", "'goal'"),
        (7, "7"),
        ([["goal"], ["oil"], ["cup"]], "topic 2"),
    ],
)
def test_seeds_that_make_no_sense(seeds: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        sc.LDA(2, seed_words=seeds).fit(["cup goal team", "oil price"])


@pytest.mark.parametrize("strength", [0.0, -1.0, np.nan, np.inf, "much", None, True])
def test_strength_must_be_a_number(strength: Any) -> None:
    with pytest.raises(LearnerError, match="seed_strength"):
        sc.LDA(2, seed_words={0: ["goal"]}, seed_strength=strength).fit(
            ["cup goal team", "oil price"]
        )


# frozen topics
def frozen_rows(n: int = 2) -> Any:
    rows = np.random.default_rng(9).dirichlet(np.ones(MORE_V), n)
    rows[0, 3] = 0.0
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("learner", HOLDING, ids=str)
def test_frozen_topics_stay_to_the_bit(learner: Any, dtype: str) -> None:
    rows = frozen_rows()
    table = read_frozen_topics(rows, dict(enumerate(range(MORE_V))), 4)
    np.testing.assert_allclose(table, rows, rtol=1e-14)
    for init in ("random", {"topics": np.full((4, MORE_V), 1.0 / MORE_V) + np.eye(4, MORE_V)}):
        model = sc.LDA(
            4, frozen_topics=rows, learner=learner, init=init, short_runs=0, dtype=dtype
        ).fit(MORE_X)
        assert model.topics_[:2].tobytes() == table.tobytes()
        assert not np.array_equal(model.topics_[2:], table)


@pytest.mark.parametrize("learner", HOLDING, ids=str)
def test_scouts_do_not_move_frozen_topics(learner: Any) -> None:
    rows = frozen_rows()
    model = sc.LDA(3, frozen_topics=rows, learner=learner, short_runs=2).fit(MORE_X)
    assert (
        model.topics_[:2].tobytes()
        == read_frozen_topics(rows, dict(enumerate(range(MORE_V))), 3).tobytes()
    )
    model = sc.LDA(3, frozen_topics=rows, init="anchors", learner=learner).fit(MORE_X)
    np.testing.assert_allclose(model.topics_[:2], rows, rtol=1e-14)


@pytest.mark.parametrize("learner", [sc.OnlineEM(batch_size=16), sc.StochasticVB(batch_size=16)])
def test_partial_fit_does_not_move_them_either(learner: Any, tmp_path: Path) -> None:
    rows = frozen_rows()
    model = sc.LDA(3, frozen_topics=rows, learner=learner)
    table = read_frozen_topics(rows, dict(enumerate(range(MORE_V))), 3)
    for part in np.array_split(MORE_X, 4):
        assert model.partial_fit(part).topics_[:2].tobytes() == table.tobytes()
    model.save(tmp_path / "m")
    again = sc.LDA.load(tmp_path / "m", learner=learner)
    before = again.topics_[2].copy()
    again.partial_fit(MORE_X[:30])
    assert again.topics_[:2].tobytes() == table.tobytes()
    assert not np.array_equal(again.topics_[2], before)


def test_the_objective_does_not_fall_beside_frozen_topics() -> None:
    for learner in (sc.EM(max_iter=30, tol=0), sc.VariationalBayes(max_iter=30, tol=0)):
        trace = sc.LDA(4, frozen_topics=frozen_rows(), learner=learner).fit(MORE_X).trace_
        assert np.diff(trace.objective[1:]).min() > -1e-9 * abs(trace.objective[-1])


def test_em_beside_a_frozen_topic_is_what_it_should_be() -> None:
    rows = frozen_rows(1)
    model = sc.PLSA(
        3,
        frozen_topics=rows,
        init={"topics": MORE_START},
        short_runs=0,
        learner=sc.EM(max_iter=1, tol=0),
    ).fit(MORE_X)
    phi = np.vstack([rows, MORE_START[1:]])
    _, n_kw, _ = plain_topics.expected(MORE_X, plain_topics.even(len(MORE_X), 3), phi)
    np.testing.assert_allclose(model.topics_[1:], plain_topics.normal(n_kw)[1:], rtol=1e-9)


def test_what_is_left_is_found_beside_what_is_known() -> None:
    """Two true topics are frozen: the third is learned."""
    model = sc.LDA(3, frozen_topics=MORE_TOPICS[:2]).fit(MORE_X)
    assert np.abs(model.topics_[2] - MORE_TOPICS[2]).sum() < 0.3


def test_a_collapsed_sampler_says_that_it_cannot() -> None:
    with pytest.raises(LearnerError, match="cannot hold topics frozen") as told:
        sc.LDA(3, frozen_topics=frozen_rows(), learner=sc.CollapsedGibbs(max_iter=5)).fit(MORE_X)
    assert "Gibbs()" in str(told.value)


def test_weights_of_words_instead_of_rows() -> None:
    texts = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5
    model = sc.LDA(2, frozen_topics=[{"goal": 3, "team": 1, "unheard": 9}]).fit(texts)
    names = model.word_names().tolist()
    wanted = np.zeros(len(names))
    wanted[[names.index("goal"), names.index("team")]] = 0.75, 0.25
    np.testing.assert_array_equal(model.topics_[0], wanted)


def test_topics_of_another_model_are_frozen() -> None:
    old = sc.LDA(3).fit(MORE_X)
    new = sc.LDA(5, frozen_topics=old.topics_).fit(MORE_X)
    np.testing.assert_allclose(new.topics_[:3], old.topics_, rtol=1e-14)


def test_seeds_and_frozen_topics_and_labels_at_once() -> None:
    marks = best_words()
    y = [[0, 1], [2], -1] * 40
    model = sc.LDA(3, frozen_topics=MORE_TOPICS[:1], seed_words={2: marks[2]}).fit(MORE_X, labels=y)
    np.testing.assert_allclose(model.topics_[0], MORE_TOPICS[0], rtol=1e-12)
    assert not model.documents_[0::3, 2].any()
    np.testing.assert_array_equal(model.documents_[1::3], [[0, 0, 1]] * 40)


def test_seeds_of_an_archive(tmp_path: Path) -> None:
    archive = Archive.build(MORE_X, tmp_path / "a")
    seeds = {1: best_words()[0]}
    on_disk, in_memory = (
        sc.LDA(3, seed_words=seeds, learner=sc.EM(max_iter=10)).fit(data)
        for data in (archive, MORE_X)
    )
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7)


@pytest.mark.parametrize(
    ("frozen", "said"),
    [
        (np.ones((3, MORE_V)) / MORE_V, "3 of 3 topics are frozen"),
        (np.ones((4, MORE_V)) / MORE_V, "4 of 3 topics are frozen"),
        (np.ones((1, MORE_V + 1)), "shape"),
        (np.ones(MORE_V), "shape"),
        (np.zeros((1, MORE_V)), "no words"),
        (-np.ones((1, MORE_V)), "not finite"),
        (np.full((1, MORE_V), np.nan), "not finite"),
        (np.full((1, MORE_V), np.inf), "not finite"),
        ([{"unheard": 1.0}], "no words"),
        ([{0: "much"}], "not topics"),
        ([{0: 1.0}, [1.0, 2.0]], "not topics"),
        ("first", "not topics|shape"),
        (5, "not topics"),
        ([], "shape"),
    ],
)
def test_frozen_topics_that_make_no_sense(frozen: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        sc.LDA(3, frozen_topics=frozen).fit(MORE_X)
