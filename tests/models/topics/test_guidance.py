"""Seed words and frozen topics: the prior is what is promised, and what is frozen never moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.corpus.archive import Archive
from softcount.errors import DataError, LearnerError
from softcount.topics.estimators import columns_of, frozen_topics, seed_counts
from tests.models.topics.common import LEARNERS
from tests.oracles import plain_topics

X, TOPICS = plain_topics.documents(n=120)
V = X.shape[1]
OFTEN = X.sum(axis=0)
START = np.random.default_rng(5).dirichlet(np.ones(V), 3)
SEEDED = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]
HOLDING = [one for one in LEARNERS if not isinstance(one, sc.CollapsedGibbs)]


def best_words(n: int = 3) -> Any:
    """The words by which one tells the true topics."""
    lift = TOPICS * np.log((TOPICS + 1e-9) / (TOPICS.mean(axis=0) + 1e-9))
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
        seeds=seeds,
        seed_strength=strength,
        init={"topics": start},
        scouts=0,
        learner=sc.EM(max_iter=5, tol=0),
    ).fit(x)
    np.testing.assert_array_equal(model.seeds_.toarray(), again)
    wanted = plain_topics.em(x, guided, 5, 0.0, 0.1 + again)[0]
    objectives = plain_topics.em(x, guided, 6, 0.0, 0.1 + again)[1]
    np.testing.assert_allclose(model.topics_, wanted, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.trace_.objective, objectives, rtol=1e-9)


def test_a_seed_word_counts_once_at_least() -> None:
    words = columns_of(np.array(["a", "b", "c"], dtype=object))
    table = seed_counts([["a", "b", "c"]], 0.1, np.array([0.0, 1.0, 40.0]), words, 2)
    np.testing.assert_array_equal(table.toarray(), [[0, 1, 4], [0, 0, 0]])


@pytest.mark.parametrize("learner", SEEDED, ids=str)
def test_seeds_pull_topics_to_their_numbers(learner: Any) -> None:
    """Whatever order they are asked for in."""
    if isinstance(learner, sc.Gibbs):
        learner = type(learner)(max_iter=40, n_chains=1)
    marks = best_words()
    for order in ([0, 1, 2], [2, 0, 1]):
        seeds = {k: marks[of] for k, of in enumerate(order)}
        model = sc.LDA(3, seeds=seeds, learner=learner).fit(X)
        apart = np.array([[np.abs(a - b).sum() for b in TOPICS] for a in model.topics_])
        assert apart.argmin(axis=1).tolist() == order
        for k in range(3):
            assert {word for word, _ in model.top_words(8)[k]} & set(seeds[k])


def test_stronger_seeds_pull_more() -> None:
    marks = best_words()
    shares = [
        sc.LDA(3, seeds={0: marks[0]}, seed_strength=s, learner=sc.EM(max_iter=30))
        .fit(X)
        .topics_[0, marks[0]]
        .sum()
        for s in (0.1, 1.0, 10.0)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_one_word_may_be_a_seed_of_two_topics() -> None:
    model = sc.LDA(3, seeds={0: [4], 1: [4]}).fit(X)
    assert model.seeds_.toarray()[:, 4].tolist() == [OFTEN[4], OFTEN[4], 0]
    assert np.isfinite(model.topics_).all()


def test_seeds_for_partial_fit_are_those_of_the_first_documents() -> None:
    marks = best_words()
    model = sc.LDA(3, seeds={2: marks[0]}).partial_fit(X[:60])
    first = X[:60].sum(axis=0)
    assert model.seeds_.toarray()[2, marks[0]].tolist() == np.maximum(1, first[marks[0]]).tolist()
    model.partial_fit(X[60:])
    apart = [np.abs(row - TOPICS[0]).sum() for row in model.topics_]
    assert int(np.argmin(apart)) == 2


def test_words_that_are_not_there_are_passed_over() -> None:
    texts = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5
    model = sc.LDA(2, seeds={1: ["goal", "unheard", "Oil"]}).fit(texts)
    assert model.seeds_.nnz == 1
    assert model.topics_[1].argmax() == model.word_names().tolist().index("goal")
    same = sc.LDA(2, seeds=[[], ["goal"]]).fit(texts)
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
        sc.LDA(2, seeds=seeds).fit(["cup goal team", "oil price"])


@pytest.mark.parametrize("strength", [0.0, -1.0, np.nan, np.inf, "much", None, True])
def test_strength_must_be_a_number(strength: Any) -> None:
    with pytest.raises(LearnerError, match="seed_strength"):
        sc.LDA(2, seeds={0: ["goal"]}, seed_strength=strength).fit(["cup goal team", "oil price"])


# frozen topics
def frozen_rows(n: int = 2) -> Any:
    rows = np.random.default_rng(9).dirichlet(np.ones(V), n)
    rows[0, 3] = 0.0
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("learner", HOLDING, ids=str)
def test_frozen_topics_stay_to_the_bit(learner: Any, dtype: str) -> None:
    rows = frozen_rows()
    table = frozen_topics(rows, columns_of(np.arange(V)), 4)
    np.testing.assert_allclose(table, rows, rtol=1e-14)
    for init in ("random", {"topics": np.full((4, V), 1.0 / V) + np.eye(4, V)}):
        model = sc.LDA(4, frozen=rows, learner=learner, init=init, scouts=0, dtype=dtype).fit(X)
        assert model.topics_[:2].tobytes() == table.tobytes()
        assert not np.array_equal(model.topics_[2:], table)


@pytest.mark.parametrize("learner", HOLDING, ids=str)
def test_scouts_do_not_move_frozen_topics(learner: Any) -> None:
    rows = frozen_rows()
    model = sc.LDA(3, frozen=rows, learner=learner, scouts=2).fit(X)
    assert model.topics_[:2].tobytes() == frozen_topics(rows, columns_of(np.arange(V)), 3).tobytes()
    model = sc.LDA(3, frozen=rows, init="anchors", learner=learner).fit(X)
    np.testing.assert_allclose(model.topics_[:2], rows, rtol=1e-14)


@pytest.mark.parametrize("learner", [sc.OnlineEM(batch_size=16), sc.StochasticVB(batch_size=16)])
def test_partial_fit_does_not_move_them_either(learner: Any, tmp_path: Path) -> None:
    rows = frozen_rows()
    model = sc.LDA(3, frozen=rows, learner=learner)
    table = frozen_topics(rows, columns_of(np.arange(V)), 3)
    for part in np.array_split(X, 4):
        assert model.partial_fit(part).topics_[:2].tobytes() == table.tobytes()
    model.save(tmp_path / "m")
    again = sc.LDA.load(tmp_path / "m", learner=learner)
    before = again.topics_[2].copy()
    again.partial_fit(X[:30])
    assert again.topics_[:2].tobytes() == table.tobytes()
    assert not np.array_equal(again.topics_[2], before)


def test_the_objective_does_not_fall_beside_frozen_topics() -> None:
    for learner in (sc.EM(max_iter=30, tol=0), sc.VariationalBayes(max_iter=30, tol=0)):
        trace = sc.LDA(4, frozen=frozen_rows(), learner=learner).fit(X).trace_
        assert np.diff(trace.objective[1:]).min() > -1e-9 * abs(trace.objective[-1])


def test_em_beside_a_frozen_topic_is_what_it_should_be() -> None:
    rows = frozen_rows(1)
    model = sc.PLSA(
        3, frozen=rows, init={"topics": START}, scouts=0, learner=sc.EM(max_iter=1, tol=0)
    ).fit(X)
    phi = np.vstack([rows, START[1:]])
    _, n_kw, _ = plain_topics.expected(X, plain_topics.even(len(X), 3), phi)
    np.testing.assert_allclose(model.topics_[1:], plain_topics.normal(n_kw)[1:], rtol=1e-9)


def test_what_is_left_is_found_beside_what_is_known() -> None:
    """Two true topics are frozen: the third is learned."""
    model = sc.LDA(3, frozen=TOPICS[:2]).fit(X)
    assert np.abs(model.topics_[2] - TOPICS[2]).sum() < 0.3


def test_a_collapsed_sampler_says_that_it_cannot() -> None:
    with pytest.raises(LearnerError, match="cannot hold topics frozen") as told:
        sc.LDA(3, frozen=frozen_rows(), learner=sc.CollapsedGibbs(max_iter=5)).fit(X)
    assert "Gibbs()" in str(told.value)


def test_weights_of_words_instead_of_rows() -> None:
    texts = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5
    model = sc.LDA(2, frozen=[{"goal": 3, "team": 1, "unheard": 9}]).fit(texts)
    names = model.word_names().tolist()
    wanted = np.zeros(len(names))
    wanted[[names.index("goal"), names.index("team")]] = 0.75, 0.25
    np.testing.assert_array_equal(model.topics_[0], wanted)


def test_topics_of_another_model_are_frozen() -> None:
    old = sc.LDA(3).fit(X)
    new = sc.LDA(5, frozen=old.topics_).fit(X)
    np.testing.assert_allclose(new.topics_[:3], old.topics_, rtol=1e-14)


def test_seeds_and_frozen_topics_and_labels_at_once() -> None:
    marks = best_words()
    y = [[0, 1], [2], -1] * 40
    model = sc.LDA(3, frozen=TOPICS[:1], seeds={2: marks[2]}).fit(X, labels=y)
    np.testing.assert_allclose(model.topics_[0], TOPICS[0], rtol=1e-12)
    assert not model.documents_[0::3, 2].any()
    np.testing.assert_array_equal(model.documents_[1::3], [[0, 0, 1]] * 40)


def test_seeds_of_an_archive(tmp_path: Path) -> None:
    archive = Archive.build(X, tmp_path / "a")
    seeds = {1: best_words()[0]}
    on_disk, in_memory = (
        sc.LDA(3, seeds=seeds, learner=sc.EM(max_iter=10)).fit(data) for data in (archive, X)
    )
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7)


@pytest.mark.parametrize(
    ("frozen", "said"),
    [
        (np.ones((3, V)) / V, "3 of 3 topics are frozen"),
        (np.ones((4, V)) / V, "4 of 3 topics are frozen"),
        (np.ones((1, V + 1)), "shape"),
        (np.ones(V), "shape"),
        (np.zeros((1, V)), "no words"),
        (-np.ones((1, V)), "no weight"),
        (np.full((1, V), np.nan), "no weight"),
        (np.full((1, V), np.inf), "no weight"),
        ([{"unheard": 1.0}], "no words"),
        ([{0: "much"}], "no topics"),
        ([{0: 1.0}, [1.0, 2.0]], "no topics"),
        ("first", "no topics|shape"),
        (5, "no topics"),
        ([], "shape"),
    ],
)
def test_frozen_topics_that_make_no_sense(frozen: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        sc.LDA(3, frozen=frozen).fit(X)
