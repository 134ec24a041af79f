"""Words kept from learning: how documents are parted, and how well the rest foresees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.corpus.bags import Bags
from softcount.families.columns import Columns
from softcount.topics import LDA, PLSA
from softcount.topics.core import TopicCore
from softcount.topics.data import Documents, RowPrior, Rows, hold_out
from softcount.types import How


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 9)),
    rate=st.sampled_from([0.3, 1.0, 5.0]),
    share=st.sampled_from([0.1, 0.5, 0.95]),
)
@settings(max_examples=100, deadline=None)
def test_no_token_is_lost_and_nothing_is_left_without_words(
    seed: int, shape: tuple[int, int], rate: float, share: float
) -> None:
    counts = np.random.default_rng(seed).poisson(rate, shape)
    try:
        seen, held = (bags.matrix.toarray() for bags in hold_out(Bags.of(counts), share))
    except sc.DataError:  # a corpus too small to part: its own test is below
        return
    assert (seen + held == counts).all()
    assert (seen >= 0).all()
    assert (held >= 0).all()
    assert held.any()
    assert ((seen.sum(axis=1) > 0) == (counts.sum(axis=1) > 0)).all()
    assert ((seen.sum(axis=0) > 0) == (counts.sum(axis=0) > 0)).all()


def test_the_share_is_kept_and_the_draw_is_fixed() -> None:
    bags = Bags.of(np.full((200, 10), 20))
    held = hold_out(bags, 0.1)[1]
    tokens, expected = held.lengths.sum(), 4000
    assert abs(tokens - expected) < 5 * np.sqrt(40000 * 0.1 * 0.9)  # five standard deviations
    again = hold_out(bags, 0.1)[1]
    assert (again.matrix != held.matrix).nnz == 0


@pytest.mark.parametrize("batch_size", [None, 3])
def test_documents_are_parted_before_they_are_cut(batch_size: int | None) -> None:
    bags = Bags.of(np.random.default_rng(0).poisson(2.0, (20, 6)))
    whole = Documents(bags, held_out=0.2).shards()[0]
    for shard in Documents(bags, cut=4, held_out=0.2).shards(batch_size, seed=5):
        assert len(shard) < 20
        assert (shard.bags.matrix != whole.bags.matrix[shard.numbers]).nnz == 0
        assert (shard.held.matrix != whole.held.matrix[shard.numbers]).nnz == 0
    assert Documents(bags).shards()[0].held is None


def test_fractions_of_words_cannot_be_held_out() -> None:
    counts = [[1, 2, 0], [0, 2.5, 1]]
    with pytest.raises(sc.DataError, match=r"document 1 has 2\.5 of word 1") as raised:
        hold_out(Bags.of(counts), 0.1)
    assert "EM()" in raised.value.hint


def test_documents_of_one_word_cannot_be_parted() -> None:
    with pytest.raises(sc.DataError, match="no word could be held out"):
        hold_out(Bags.of(np.eye(5)), 0.5)


def parted(counts: Any) -> tuple[TopicCore, Any, Any]:
    core = TopicCore("topics", Columns((3, counts.shape[1])), RowPrior(np.ones(3)))
    (shard,) = Documents(Bags.of(counts), held_out=0.3).shards()
    return core, shard, shard.held.matrix.toarray()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_foreseen_is_written_out(threads: int) -> None:
    rng = np.random.default_rng(threads)
    counts = rng.poisson(1.5, (15, 8))
    core, shard, held = parted(counts)
    phi, theta = rng.dirichlet(np.ones(8), 3), rng.dirichlet(np.ones(3), 15)
    found = core.foresee({"topics": phi}, shard, How(threads=threads), Rows(theta))
    assert found.log_likelihood == pytest.approx((held * np.log(theta @ phi)).sum(), rel=1e-12)
    assert found.tokens == held.sum()
    first = core.foresee({"topics": phi}, shard, How())  # rows that prefer no topic
    assert first.log_likelihood == pytest.approx((held @ np.log(phi.mean(axis=0))).sum(), rel=1e-12)


def test_words_that_the_tables_hold_impossible_cost_a_fixed_price() -> None:
    core, shard, held = parted(np.full((6, 4), 9))
    phi = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.5, 0.5]])
    theta = np.tile([1.0, 0.0, 0.0], (6, 1))
    found = core.foresee({"topics": phi}, shard, How(), Rows(theta))
    possible, impossible = held[:, :2].sum(), held[:, 2:].sum()
    assert impossible > 0
    expected = possible * np.log(0.5) + impossible * np.log(1e-100)
    assert found.log_likelihood == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", [PLSA, LDA])
def test_estimators_learn_with_a_temper(model: Any) -> None:
    rng = np.random.default_rng(4)
    topics = rng.dirichlet(np.full(30, 0.1), 3)
    counts = np.array([rng.multinomial(40, t @ topics) for t in rng.dirichlet(np.ones(3), 60)])
    learned = model(5, learner=sc.TemperedEM(), random_state=2).fit(counts)
    assert learned.verdict_.good
    assert len(learned.trace_) > 3
    assert (np.diff(learned.trace_.held_out[1:]) < 0).all()
    assert learned.documents_.shape == (60, 5)
    assert np.isfinite(learned.score_samples(counts)).all()  # no word was lost to holding out
    assert "TemperedEM(" in learned.signature_


def test_the_start_does_not_know_held_out_words() -> None:
    """It is that of plain EM on the other words."""
    counts = np.random.default_rng(0).poisson(2.0, (40, 10))
    seen = hold_out(Bags.of(counts), 0.5)[0].matrix
    starts: list[Any] = []
    for learner, data in ((sc.TemperedEM(held_out=0.5), counts), (sc.EM(max_iter=1), seen)):
        states: list[Any] = []
        PLSA(2, learner=learner, init="random").fit(data, on_step=states.append)
        starts.append(states[0].params["topics"].tobytes())
    assert starts[0] == starts[1]
