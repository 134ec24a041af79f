"""Numbers of 32 and of 64 bits, tiny numbers, and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.bags import Bags
from softcount.errors import LearnerError
from softcount.families.columns import Columns
from softcount.metrics import completion_perplexity
from softcount.topics.core import TopicCore, wide
from softcount.topics.data import TINY, TINY_SINGLE, Documents, RowPrior
from softcount.types import How
from tests.models.topics.common import LEARNERS
from tests.oracles import plain_topics

X, _ = plain_topics.documents(n=200, V=60, K=4)
UNSEEN, _ = plain_topics.documents(n=260, V=60, K=4)
UNSEEN = UNSEEN[200:]
V = X.shape[1]
START = {"topics": np.random.default_rng(0).dirichlet(np.ones(V), 4)}
CALM = [
    sc.EM(max_iter=8, tol=0),
    sc.VariationalBayes(max_iter=8, tol=0),
    sc.OnlineEM(max_iter=2, batch_size=32, tol=0),
    sc.StochasticVB(max_iter=2, batch_size=32, tol=0),
    sc.IncrementalEM(max_iter=2, batch_size=64, tol=0),
]


# 32 bits
@pytest.mark.parametrize("learner", CALM, ids=str)
def test_single_precision_is_near(learner: Any) -> None:
    double, single = (
        sc.LDA(4, dtype=dtype, init=START, scouts=0, learner=learner).fit(X)
        for dtype in ("float64", "float32")
    )
    assert single.topics_.dtype == single.documents_.dtype == np.float64
    np.testing.assert_allclose(single.topics_, double.topics_, atol=2e-4)
    np.testing.assert_allclose(single.trace_.objective[1:], double.trace_.objective[1:], rtol=1e-5)
    assert single.topics_.tobytes() != double.topics_.tobytes()  # it is another arithmetic


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_single_precision_is_as_good(learner: Any) -> None:
    figures = [
        completion_perplexity(
            sc.LDA(4, dtype=dtype, learner=learner, random_state=1).fit(X).topics_, UNSEEN
        )
        for dtype in ("float64", "float32")
    ]
    assert figures[1] < 1.1 * figures[0]


@pytest.mark.parametrize("K", [20, 100])
@pytest.mark.parametrize("kind", [sc.VariationalBayes, sc.StochasticVB])
def test_rare_words_are_not_lost_in_single_precision(kind: Any, K: int) -> None:
    """exp ψ(0.01 + 1/K) is 10⁻²², below the bound of 32 bits: the word is lifted, not lost."""
    rng = np.random.default_rng(1)
    often = 1.0 / np.arange(1, 1501)
    x = np.array([rng.multinomial(40, often / often.sum()) for _ in range(150)])
    assert (x.sum(axis=0) == 1).sum() > 100
    learner = kind(max_iter=3) if kind is sc.VariationalBayes else kind(max_iter=2, batch_size=32)
    double, single = (
        sc.LDA(K, dtype=dtype, scouts=0, learner=learner).fit(x) for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(single.trace_.objective[1:], double.trace_.objective[1:], rtol=1e-4)


def test_words_long_unseen_are_not_lost_in_single_precision() -> None:
    """A word of the first document of many comes again after hundreds of mini-batches."""
    rng = np.random.default_rng(0)
    x = np.zeros((3000, 12))
    x[:, :10] = rng.multinomial(20, np.full(10, 0.1), 3000)
    x[[0, 1500, 2999], [10, 11, 10]] = 1.0
    learner = sc.OnlineEM(max_iter=1, batch_size=2, kappa=0.51)
    model = sc.PLSA(3, dtype="float32", learner=learner, scouts=0).fit(x)
    assert np.isfinite(model.trace_.objective).all()
    assert (model.topics_[:, 10:].max(axis=0) > 0.0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fill", ["soft", "hard", "sample"])
@pytest.mark.parametrize("temper", [1.0, 0.7])
def test_lifted_words_count_and_score_as_they_are(dtype: str, fill: Any, temper: float) -> None:
    """Columns of a table times a tiny number: the same counts, and logs lower by its log."""
    x = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    table = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    tiny = 1e-80 if dtype == "float64" else 1e-12
    core = TopicCore("topics", Columns((2, 3), 1.0), RowPrior(np.ones(2)), dtype=dtype)
    (shard,) = Documents(Bags.of(x)).shards()
    how = How(fill=fill, temper=temper, samples=3, stream=7)
    plain, lifted = (
        core.expect({"topics": table * factor}, shard, how)
        for factor in (np.ones(3), np.array([1.0, tiny, tiny]))
    )
    np.testing.assert_allclose(lifted.counts["topics"], plain.counts["topics"], rtol=1e-5)
    np.testing.assert_allclose(lifted.local.theta, plain.local.theta, rtol=1e-5)
    down = x[:, 1:].sum() * np.log(tiny)
    assert lifted.log_likelihood == pytest.approx(plain.log_likelihood + down, rel=1e-5)
    assert lifted.score == pytest.approx(plain.score + down, rel=1e-5)


def test_other_precisions_are_refused() -> None:
    for dtype in ("float16", "double", None, np.float32):
        with pytest.raises(LearnerError, match="dtype"):
            sc.LDA(3, dtype=dtype).fit(X)


# tiny numbers
@pytest.mark.parametrize(("dtype", "tiny"), [("float64", TINY), ("float32", TINY_SINGLE)])
def test_tables_have_no_tiny_numbers(dtype: str, tiny: float) -> None:
    table = np.array([[0.5, tiny * 0.9, tiny * 1.1, 0.0, 5e-324], [1e-310, 1.0, 1e-200, 1e-3, 0.1]])
    kept = wide(table, dtype)[:, :5]
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept == 0.0, table < tiny)
    np.testing.assert_allclose(kept[kept > 0], table[table >= tiny], rtol=1e-6)
    smallest = np.finfo(dtype).tiny
    assert tiny**2 > smallest  # nor have products


def test_documents_rows_have_none_either() -> None:
    """Plain EM drives shares to zero geometrically: they end at zero, not below the bound."""
    sharp = np.kron(np.eye(3), np.full((30, 10), 2.0))
    blurred = np.kron(np.eye(3), np.full(10, 0.1)) * 0.98 + 0.02 / 30
    core = TopicCore("topics", Columns((3, 30), 1.0), RowPrior(np.ones(3)))
    (shard,) = Documents(Bags.of(sharp)).shards()
    local = None
    for _ in range(100):  # shares shrink by a factor of 50 a step
        local = core.expect({"topics": blurred}, shard, How(), local).local
        assert not ((local.theta > 0.0) & (local.theta < TINY)).any()
    assert np.isin(local.theta, [0.0, 1.0]).all()


def test_zeros_cost_no_likelihood() -> None:
    model = sc.PLSA(3, scouts=0, learner=sc.EM(max_iter=400, tol=0)).fit(X)
    steps = np.diff(model.trace_.objective)
    assert steps.min() > -1e-9 * abs(model.trace_.objective[-1])
    table = wide(model.topics_)[:, :V]
    assert not ((table > 0.0) & (table < TINY)).any()


# threads
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("K", [4, 50])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_threads_do_not_matter_to_any_learner(learner: Any, K: int, dtype: str) -> None:
    y = [0, -1, [1, 2], -1] * 10
    one, many = (
        sc.LDA(K, learner=learner, dtype=dtype, engine=sc.Local(threads), scouts=2).fit(
            X[:40], labels=y
        )
        for threads in (1, 3)
    )
    for name in ("topics_", "documents_", "weights_"):
        assert getattr(one, name).tobytes() == getattr(many, name).tobytes()
    assert one.transform(UNSEEN).tobytes() == many.transform(UNSEEN).tobytes()
    np.testing.assert_array_equal(one.trace_.objective, many.trace_.objective)


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_same_seed_gives_the_same_bits(learner: Any) -> None:
    one, again, other = (
        sc.LDA(3, learner=learner, random_state=seed).fit(X[:50]).topics_ for seed in (1, 1, 2)
    )
    assert one.tobytes() == again.tobytes() != other.tobytes()


def test_a_document_is_folded_in_alone_as_among_others() -> None:
    for learner in (None, sc.VariationalBayes(max_iter=5)):
        model = sc.LDA(4, learner=learner).fit(X)
        together = model.transform(UNSEEN)
        for d in (0, 7, 59):
            assert model.transform(UNSEEN[d : d + 1]).tobytes() == together[d].tobytes()
