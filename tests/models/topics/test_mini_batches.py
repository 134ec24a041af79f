"""Mini-batches of a topic model: few words, lazy tables, and rows that are brought up to date."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

import softcount as sc
from softcount.corpus.bags import Bags
from softcount.families.base import Family
from softcount.families.columns import ColumnCounts, Columns, LazyColumns
from softcount.fit import fit
from softcount.topics.core import TopicCore
from softcount.topics.data import Documents, RowPrior, Rows, Shard, known_topics
from softcount.types import How

Array = np.ndarray


def made(K: int, V: int, alpha: float, word: Any = "maximise", **more: Any) -> TopicCore:
    return TopicCore("topics", Columns((K, V), 1.3), RowPrior(np.full(K, alpha), word), **more)


def full(shard: Shard) -> Shard:
    """The same documents, by the path that looks at all words."""
    again = Shard(shard.numbers, shard.bags, shard.allowed, shard.held)
    again.__dict__["few"] = None
    return again


@st.composite
def cases(draw: Any) -> Any:
    """Documents that have less than half of all words; topics, lazy or not; the documents' rows."""
    K, V, n = (
        draw(st.sampled_from([1, 3, 8, 50])),
        draw(st.integers(7, 20)),
        draw(st.integers(1, 5)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = np.zeros((n, V))
    few = rng.permutation(V)[: rng.integers(0, (V - 1) // 2 + 1)]
    counts[:, few] = rng.poisson(1.0, (n, len(few)))
    (shard,) = Documents(Bags.of(counts)).shards()
    family, table = Columns((K, V), 1.3), rng.dirichlet(np.ones(V), K)
    if draw(st.booleans()):
        average = family.running()
        average.blend(rng.exponential(size=(K, V)), 1.0)
        table = average.params("maximise", family.uniform(), rng)
    return counts, shard, table, Rows(rng.dirichlet(np.ones(K), n))


def all_words(counts: Any, shape: tuple[int, int]) -> Array:
    if not isinstance(counts, ColumnCounts):
        return np.asarray(counts)
    every = np.zeros(shape)
    every[:, counts.columns] = counts.value.T
    return every


@given(cases(), st.sampled_from(["soft", "hard", "sample"]), st.sampled_from([1.0, 0.7]), st.data())
@settings(max_examples=60, deadline=None)
def test_few_words_give_the_counts_of_all(case: Any, fill: Any, temper: float, data: Any) -> None:
    _, shard, table, rows = case
    threads, mini = data.draw(st.sampled_from([1, 2])), data.draw(st.booleans())
    how = How(fill=fill, temper=temper, stream=5, samples=3, threads=threads, mini_batch=mini)
    core = made(*table.shape, 1.2)
    assert shard.few is not None
    one = core.expect({"topics": table}, shard, how, rows)
    two = core.expect({"topics": np.asarray(table)}, full(shard), how, rows)
    assert isinstance(one.counts["topics"], ColumnCounts) == isinstance(table, LazyColumns)
    found, expected = (all_words(s.counts["topics"], table.shape) for s in (one, two))
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert one.local.theta == pytest.approx(two.local.theta, rel=1e-10, abs=1e-12)
    for figure in ("log_likelihood", "score", "items", "tokens"):
        assert getattr(one, figure) == pytest.approx(getattr(two, figure), rel=1e-10, abs=1e-12)


def written_out(counts: Array, phi: Array, theta: Array) -> tuple[Array, Array, float]:
    """n_dk, n_kw and log p(words), one cell at a time."""
    of_documents, of_words, log = np.zeros_like(theta), np.zeros_like(phi), 0.0
    for d, w in np.argwhere(counts):
        joint = theta[d] * phi[:, w]
        log += counts[d, w] * np.log(joint.sum())
        of_documents[d] += counts[d, w] * joint / joint.sum()
        of_words[:, w] += counts[d, w] * joint / joint.sum()
    return of_documents, of_words, log


@given(cases(), st.sampled_from(["maximise", "mean_field"]), st.sampled_from([1, 2, 5]))
@settings(max_examples=40, deadline=None)
def test_rows_of_a_mini_batch_are_updated_first(case: Any, word: Any, inner: int) -> None:
    counts, shard, table, _ = case
    K, V = table.shape
    core, alpha = made(K, V, 1.4, word, inner=inner), 1.4
    phi, n = np.asarray(table), counts.sum(axis=1, keepdims=True)

    def row(of_documents: Array, theta: Array) -> Array:
        if word == "maximise":
            return (of_documents + alpha - 1) / (of_documents + alpha - 1).sum(1, keepdims=True)
        return np.exp(digamma(of_documents + alpha) - digamma(n + K * alpha))

    even = np.full((len(counts), K), 1 / K)
    begun = even if word == "maximise" else row(n * even, even)
    theta = begun
    for _ in range(inner - 1):
        theta = row(written_out(counts, phi, theta)[0], theta)
    for mini_batch, at in ((True, theta), (False, begun)):
        of_documents, of_words, log = written_out(counts, phi, at)
        stats = core.expect({"topics": table}, shard, How(mini_batch=mini_batch))
        assert all_words(stats.counts["topics"], (K, V)) == pytest.approx(of_words, abs=1e-9)
        assert stats.local.theta == pytest.approx(row(of_documents, at), abs=1e-9)
        assert stats.log_likelihood == pytest.approx(log, abs=1e-9)


@given(cases(), st.sampled_from(["soft", "hard", "sample"]), st.sampled_from([1.0, 0.7]))
@settings(max_examples=30, deadline=None)
def test_a_score_is_that_of_the_rows_as_they_are(case: Any, fill: Any, temper: float) -> None:
    _, shard, table, rows = case
    core = made(*table.shape, 1.2)
    whole = core.expect({"topics": table}, shard, How(fill=fill, temper=temper), rows)
    for mini_batch in (False, True):
        how = How(fill=fill, temper=temper, score_only=True, mini_batch=mini_batch)
        score = core.expect({"topics": table}, shard, how, rows)
        assert not score.counts
        assert score.local is None
        assert score.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-10)
        assert (score.items, score.tokens) == (whole.items, whole.tokens)
        if fill == "soft":
            assert score.score == pytest.approx(whole.score, abs=1e-10)


@pytest.mark.parametrize(
    "learner",
    [sc.OnlineEM(max_iter=3, batch_size=5), sc.StochasticVB(max_iter=3, batch_size=5)],
    ids=str,
)
def test_a_lazy_run_is_a_dense_run(learner: sc.Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning with all words of a table at every step comes to the same."""
    rng = np.random.default_rng(2)
    counts = np.zeros((40, 300))
    for row in counts:
        row[rng.integers(0, 300, 12)] += 1
    alpha = 1.2 if learner.m == "maximise" else 0.2

    def learned() -> Any:
        core = made(4, 300, alpha, learner.m)
        start = {"topics": core.topics.random(np.random.default_rng(1))}
        return fit(core, Documents(Bags.of(counts)), learner, init=start)

    lazy = learned()
    monkeypatch.setattr(Shard, "few", None)
    monkeypatch.setattr(Columns, "running", Family.running)
    dense = learned()
    assert lazy.params["topics"] == pytest.approx(dense.params["topics"], rel=1e-7, abs=1e-12)
    assert lazy.trace.objective[1:] == pytest.approx(dense.trace.objective[1:], rel=1e-9)


LABELS = [0, -1, [1, 2], 2, -1, [0, 2]]


@pytest.mark.parametrize("n_topics", [3, 50])
@pytest.mark.parametrize("n_words", [5, 60])
@pytest.mark.parametrize("y", [None, LABELS], ids=["free", "labelled"])
def test_the_laws_hold(n_topics: int, n_words: int, y: Any) -> None:
    """One pass or two, all words or few, what is known of documents or not."""
    rng = np.random.default_rng(0)
    counts = np.zeros((6, n_words))
    counts[:, :5] = rng.poisson(1.0, (6, 5))
    known = None if y is None else known_topics(y, 6, n_topics)
    core = made(n_topics, n_words, 1.2)
    model = SimpleNamespace(bind=lambda data: (core, Documents(Bags.of(data), known)))
    report = sc.check_model(model, counts)
    assert report.passed, str(report)
