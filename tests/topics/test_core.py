"""The E-step of topics: counts, held-out words, mini-batches, small priors, folding in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.special import digamma, gammaln, logsumexp

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.core.fit import fit
from softcount.core.types import EStep
from softcount.families.base import Family
from softcount.families.columns import ColumnCounts, Columns
from softcount.kernels.jit import njit
from softcount.metrics import completion_perplexity
from softcount.text.bags import Bags
from softcount.topics import LDA, PLSA
from softcount.topics.core import (
    TINY,
    TINY_SINGLE,
    DocumentPrior,
    TopicCore,
    TopicProportions,
    fold_in,
    pad_topics,
)
from softcount.topics.data import TopicDocuments, TopicShard, hold_out, read_labels
from softcount.topics.kernels import digamma as compiled_digamma
from tests.oracles import plain_topics
from tests.topics.common import LEARNERS


def made(K: int, V: int, alpha: float = 1.0, prior: float = 1.0, word: Any = "maximise", **more):
    return TopicCore(
        "topics", Columns((K, V), prior), DocumentPrior(np.full(K, alpha), word), **more
    )


@st.composite
def cases(draw: Any) -> Any:
    seed, K, V = draw(st.integers(0, 10**6)), draw(st.integers(1, 11)), draw(st.integers(1, 9))
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8, (draw(st.integers(1, 7)), V)) * rng.choice([1.0, 0.5, 3.0])
    return counts, rng.dirichlet(np.ones(V), K), rng.dirichlet(np.ones(K), len(counts))


def written_out(counts: Any, phi: Any, theta: Any) -> Any:
    """n_dk, n_kw and log p(document), one cell and one topic at a time."""
    of_documents, of_words, logs = np.zeros_like(theta), np.zeros_like(phi), np.zeros(len(counts))
    for d, row in enumerate(counts):
        for w, x in enumerate(row):
            if x:
                joint = theta[d] * phi[:, w]
                logs[d] += x * np.log(joint.sum())
                of_documents[d] += x * joint / joint.sum()
                of_words[:, w] += x * joint / joint.sum()
    return of_documents, of_words, logs


@given(cases(), st.sampled_from([1, 2, 3]))
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_definition(case: Any, threads: int) -> None:
    counts, phi, theta = case
    core = made(*phi.shape)
    (shard,) = TopicDocuments(Bags.of(counts)).shards()
    rows = TopicProportions(theta)
    stats = core.expect({"topics": phi}, shard, EStep(threads=threads), rows)
    of_documents, of_words, logs = written_out(counts, phi, theta)
    assert np.asarray(stats.counts["topics"]) == pytest.approx(of_words, abs=1e-10)
    assert stats.log_likelihood == pytest.approx(logs.sum(), abs=1e-9)
    full = counts.sum(axis=1) > 0
    shares = of_documents[full] / counts.sum(axis=1)[full, None]
    assert stats.local.theta[full] == pytest.approx(shares, abs=1e-10)
    assert stats.local.theta[~full] == pytest.approx(theta[~full])  # empty documents stay


@given(cases())
@settings(max_examples=30, deadline=None)
def test_many_threads_give_the_same_bits(case: Any) -> None:
    counts, phi, theta = case
    core, (shard,) = made(*phi.shape), TopicDocuments(Bags.of(counts)).shards()
    rows = TopicProportions(theta)
    one, two = (
        core.expect({"topics": phi}, shard, EStep(threads=threads), rows) for threads in (1, 2)
    )
    found, again = (np.asarray(stats.counts["topics"]) for stats in (one, two))
    assert found.tobytes() == again.tobytes()
    assert one.local.theta.tobytes() == two.local.theta.tobytes()


def test_as_a_story() -> None:
    """Documents with fixed topic weights: the same counts as the story engine finds."""
    topic, word = sc.table("topic"), sc.table("word")

    @sc.story
    def token(d, w):
        for k in range(3):
            yield topic[d, k], word[k, w]

    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (4, 5))
    phi, theta = rng.dirichlet(np.ones(5), 3), rng.dirichlet(np.ones(3), 4)
    tokens = [(d, w) for d, row in enumerate(counts) for w, x in enumerate(row) for _ in range(x)]
    story = sc.StoryModel(token, learner=sc.EM(max_iter=1, tol=0)).fit(
        tokens,
        init={
            "topic": {d: dict(enumerate(theta[d])) for d in range(4)},
            "word": {k: dict(enumerate(phi[k])) for k in range(3)},
        },
    )
    core, (shard,) = made(3, 5), TopicDocuments(Bags.of(counts)).shards()
    stats = core.expect({"topics": phi}, shard, EStep(), TopicProportions(theta))
    assert stats.log_likelihood == pytest.approx(story.trace_.log_likelihood[0])
    learned = np.asarray(stats.counts["topics"])
    learned = learned / learned.sum(axis=1, keepdims=True)
    for k in range(3):
        for w in range(5):
            assert learned[k, w] == pytest.approx(story.params_["word"][k][w])


@pytest.mark.parametrize("alpha", [1.0, 1.3])
def test_the_laws_hold(alpha: float) -> None:
    counts = np.random.default_rng(0).poisson(1.0, (6, 5))
    core = made(3, 5, alpha, 1.2)
    model = SimpleNamespace(_bind=lambda data: (core, TopicDocuments(Bags.of(data))))
    report = sc.check_model(model, counts)
    assert report.passed, str(report)


BATCH_LEARNERS = [
    sc.EM(max_iter=30, tol=0),
    sc.HardEM(max_iter=10, tol=0),
    sc.OnlineEM(max_iter=5, batch_size=4),
    sc.IncrementalEM(max_iter=5, batch_size=4),
    sc.MonteCarloEM(max_iter=5),
    sc.EM(max_iter=10, schedule=sc.learners.Squarem()),
    sc.EM(max_iter=10, temper=(0.5, 1.0)),
]
BAYESIAN = [
    sc.VariationalBayes(max_iter=30, tol=0),
    sc.StochasticVB(max_iter=5, batch_size=4),
    sc.Gibbs(max_iter=20, n_init=2),
]


@pytest.mark.parametrize("learner", [*BATCH_LEARNERS, *BAYESIAN], ids=lambda learner: str(learner))
def test_every_learner_learns(learner: sc.Learner) -> None:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(30, rng.dirichlet(np.ones(12), 3)[rng.integers(3, size=20)])
    bayesian = learner.m != "maximise"
    core = made(3, 12, 0.5 if bayesian else 1.1, 0.5 if bayesian else 1.1, learner.m)
    topics = core.families["topics"]
    found = fit(
        core,
        TopicDocuments(Bags.of(counts)),
        learner,
        init=lambda rng: {"topics": topics.random(rng)},
        seed=3,
    )
    assert found.verdict is not sc.Verdict.FELL
    assert np.isfinite(found.trace.objective[1:]).all()
    if learner.monotone and learner.temper == 1.0:
        rises = np.diff(found.trace.objective[1:])
        assert rises.min(initial=0.0) > -1e-9 * abs(found.trace.objective[-1])


def test_rows_by_variational_bayes_are_exp_of_the_expected_log() -> None:
    prior = DocumentPrior(np.array([0.5, 1.5]), "mean_field")
    counts = np.array([[2.0, 1.0], [0.0, 0.0]])
    rows = prior.estimate(counts, prior.begin(np.array([3.0, 0.0]), None), np.random.default_rng(0))
    alpha = np.array([0.5, 1.5])
    expected = np.exp(digamma(counts + alpha) - digamma(counts.sum(axis=1) + 2.0)[:, None])
    assert rows.theta == pytest.approx(expected)


def test_one_topic_is_the_unigram_model() -> None:
    counts = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 1.0]])
    core = made(1, 3)
    found = fit(
        core,
        TopicDocuments(Bags.of(counts)),
        sc.EM(max_iter=3),
        init={"topics": np.full((1, 3), 1 / 3)},
    )
    shares = counts.sum(axis=0) / counts.sum()
    assert found.params["topics"][0] == pytest.approx(shares)
    assert found.trace.log_likelihood[-1] == pytest.approx((counts * np.log(shares)).sum())


def test_a_million_words_and_none_at_all() -> None:
    counts = np.array([[10**6, 10**5, 1], [0, 0, 0], [0, 1, 0]], float)
    core = made(2, 3, 1.1, 1.1)
    topics = core.families["topics"]
    found = fit(
        core,
        TopicDocuments(Bags.of(counts)),
        sc.EM(max_iter=20),
        init=lambda rng: {"topics": topics.random(rng)},
    )
    assert np.isfinite(found.trace.objective).all()
    assert np.isfinite(found.params["topics"]).all()


def test_a_word_that_no_topic_has_is_named() -> None:
    core, (shard,) = made(1, 2), TopicDocuments(Bags.of([[1.0, 0.0], [0.0, 1.0]])).shards()
    with pytest.raises(sc.errors.ImpossibleItem, match="item 1"):
        core.expect({"topics": np.array([[1.0, 0.0]])}, shard, EStep())


# Words kept from learning: how documents are parted, and how well the rest foresees them.


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
def test_documents_are_parted_before_they_are_cut(
    batch_size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bags = Bags.of(np.random.default_rng(0).poisson(2.0, (20, 6)))
    whole = TopicDocuments(bags, held_out=0.2).shards()[0]
    monkeypatch.setattr("softcount.text.bags.MOST_DOCUMENTS", 4)
    for shard in TopicDocuments(bags, held_out=0.2).shards(batch_size, seed=5):
        assert len(shard) < 20
        assert (shard.bags.matrix != whole.bags.matrix[shard.numbers]).nnz == 0
        assert (shard.held_out.matrix != whole.held_out.matrix[shard.numbers]).nnz == 0
    assert all(shard.held_out is None for shard in TopicDocuments(bags).shards())


def test_fractions_of_words_cannot_be_held_out() -> None:
    counts = [[1, 2, 0], [0, 2.5, 1]]
    with pytest.raises(sc.DataError, match=r"document 1 has 2\.5 of word 1") as raised:
        hold_out(Bags.of(counts), 0.1)
    assert "EM()" in raised.value.hint


def test_documents_of_one_word_cannot_be_parted() -> None:
    with pytest.raises(sc.DataError, match="no word could be held out"):
        hold_out(Bags.of(np.eye(5)), 0.5)


def parted(counts: Any) -> tuple[TopicCore, Any, Any]:
    core = TopicCore("topics", Columns((3, counts.shape[1])), DocumentPrior(np.ones(3)))
    (shard,) = TopicDocuments(Bags.of(counts), held_out=0.3).shards()
    return core, shard, shard.held_out.matrix.toarray()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_foreseen_is_written_out(threads: int) -> None:
    rng = np.random.default_rng(threads)
    counts = rng.poisson(1.5, (15, 8))
    core, shard, held = parted(counts)
    phi, theta = rng.dirichlet(np.ones(8), 3), rng.dirichlet(np.ones(3), 15)
    found = core.held_out_log_likelihood(
        {"topics": phi}, shard, EStep(threads=threads), TopicProportions(theta)
    )
    assert found.log_likelihood == pytest.approx((held * np.log(theta @ phi)).sum(), rel=1e-12)
    assert found.tokens == held.sum()
    first = core.held_out_log_likelihood(
        {"topics": phi}, shard, EStep()
    )  # rows that prefer no topic
    assert first.log_likelihood == pytest.approx((held @ np.log(phi.mean(axis=0))).sum(), rel=1e-12)


def test_words_that_the_tables_hold_impossible_cost_a_fixed_price() -> None:
    core, shard, held = parted(np.full((6, 4), 9))
    phi = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.5, 0.5]])
    theta = np.tile([1.0, 0.0, 0.0], (6, 1))
    found = core.held_out_log_likelihood({"topics": phi}, shard, EStep(), TopicProportions(theta))
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


# Mini-batches of a topic model: few words, lazy tables, and rows that are brought up to date.


Array = np.ndarray


def make_core(K: int, V: int, alpha: float, word: Any = "maximise", **more: Any) -> TopicCore:
    return TopicCore("topics", Columns((K, V), 1.3), DocumentPrior(np.full(K, alpha), word), **more)


def full(shard: TopicShard) -> TopicShard:
    """The same documents, by the path that looks at all words."""
    bags = Bags(shard.bags.by_document, shard.bags.n_words)
    vars(bags)["own_words"] = None
    return TopicShard(shard.numbers, bags, shard.allowed, shard.held_out)


@st.composite
def batch_cases(draw: Any) -> Any:
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
    (shard,) = TopicDocuments(Bags.of(counts)).shards()
    family, table = Columns((K, V), 1.3), rng.dirichlet(np.ones(V), K)
    if draw(st.booleans()):
        average = family.running()
        average.blend(rng.exponential(size=(K, V)), 1.0)
        table = average.params("maximise", family.uniform(), rng)
    return counts, shard, table, TopicProportions(rng.dirichlet(np.ones(K), n))


def all_words(counts: Any, shape: tuple[int, int]) -> Array:
    if not isinstance(counts, ColumnCounts):
        return np.asarray(counts)
    every = np.zeros(shape)
    every[:, counts.columns] = counts.value.T
    return every


@given(
    batch_cases(),
    st.sampled_from(["soft", "hard", "sample"]),
    st.sampled_from([1.0, 0.7]),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_few_words_give_the_counts_of_all(case: Any, fill: Any, temper: float, data: Any) -> None:
    _, shard, table, rows = case
    threads, mini = data.draw(st.sampled_from([1, 2])), data.draw(st.booleans())
    how = EStep(fill=fill, temper=temper, stream=5, samples=3, threads=threads, mini_batch=mini)
    core = make_core(*table.shape, 1.2)
    assert shard.bags.own_words is not None
    one = core.expect({"topics": table}, shard, how, rows)
    two = core.expect({"topics": np.asarray(table)}, full(shard), how, rows)
    assert isinstance(one.counts["topics"], ColumnCounts)
    assert isinstance(two.counts["topics"], np.ndarray)
    found, expected = (all_words(s.counts["topics"], table.shape) for s in (one, two))
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert one.local.theta == pytest.approx(two.local.theta, rel=1e-10, abs=1e-12)
    for figure in ("log_likelihood", "score", "items", "tokens"):
        assert getattr(one, figure) == pytest.approx(getattr(two, figure), rel=1e-10, abs=1e-12)


def settled_by_hand(counts: Array, phi: Array, theta: Array) -> tuple[Array, Array, float]:
    """n_dk, n_kw and log p(words), one cell at a time."""
    of_documents, of_words, log = np.zeros_like(theta), np.zeros_like(phi), 0.0
    for d, w in np.argwhere(counts):
        joint = theta[d] * phi[:, w]
        log += counts[d, w] * np.log(joint.sum())
        of_documents[d] += counts[d, w] * joint / joint.sum()
        of_words[:, w] += counts[d, w] * joint / joint.sum()
    return of_documents, of_words, log


@given(batch_cases(), st.sampled_from(["maximise", "mean_field"]), st.sampled_from([1, 2, 5]))
@settings(max_examples=40, deadline=None)
def test_rows_of_a_mini_batch_are_updated_first(case: Any, word: Any, inner: int) -> None:
    counts, shard, table, _ = case
    K, V = table.shape
    core, alpha = make_core(K, V, 1.4, word, inner=inner), 1.4
    phi, n = np.asarray(table), counts.sum(axis=1, keepdims=True)

    def row(of_documents: Array, theta: Array) -> Array:
        if word == "maximise":
            return (of_documents + alpha - 1) / (of_documents + alpha - 1).sum(1, keepdims=True)
        return np.exp(digamma(of_documents + alpha) - digamma(n + K * alpha))

    even = np.full((len(counts), K), 1 / K)
    begun = even if word == "maximise" else row(n * even, even)
    theta = begun
    for _ in range(inner - 1):
        theta = row(settled_by_hand(counts, phi, theta)[0], theta)
    for mini_batch, at in ((True, theta), (False, begun)):
        of_documents, of_words, log = settled_by_hand(counts, phi, at)
        stats = core.expect({"topics": table}, shard, EStep(mini_batch=mini_batch))
        assert all_words(stats.counts["topics"], (K, V)) == pytest.approx(of_words, abs=1e-9)
        assert stats.local.theta == pytest.approx(row(of_documents, at), abs=1e-9)
        assert stats.log_likelihood == pytest.approx(log, abs=1e-9)


@given(batch_cases(), st.sampled_from(["soft", "hard", "sample"]), st.sampled_from([1.0, 0.7]))
@settings(max_examples=30, deadline=None)
def test_a_score_is_that_of_the_rows_as_they_are(case: Any, fill: Any, temper: float) -> None:
    _, shard, table, rows = case
    core = make_core(*table.shape, 1.2)
    whole = core.expect({"topics": table}, shard, EStep(fill=fill, temper=temper), rows)
    for mini_batch in (False, True):
        how = EStep(fill=fill, temper=temper, score_only=True, mini_batch=mini_batch)
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
        core = make_core(4, 300, alpha, learner.m)
        start = {"topics": core.topics.random(np.random.default_rng(1))}
        return fit(core, TopicDocuments(Bags.of(counts)), learner, init=start)

    lazy = learned()
    monkeypatch.setattr(Bags, "own_words", None)
    monkeypatch.setattr(Columns, "running", Family.running)
    dense = learned()
    assert lazy.params["topics"] == pytest.approx(dense.params["topics"], rel=1e-7, abs=1e-12)
    assert lazy.trace.objective[1:] == pytest.approx(dense.trace.objective[1:], rel=1e-9)


LABELS = [0, -1, [1, 2], 2, -1, [0, 2]]


@pytest.mark.parametrize("n_topics", [3, 50])
@pytest.mark.parametrize("n_words", [5, 60])
@pytest.mark.parametrize("y", [None, LABELS], ids=["free", "labelled"])
def test_the_laws_hold_for_mini_batches(n_topics: int, n_words: int, y: Any) -> None:
    """One pass or two, all words or few, what is known of documents or not."""
    rng = np.random.default_rng(0)
    counts = np.zeros((6, n_words))
    counts[:, :5] = rng.poisson(1.0, (6, 5))
    known = None if y is None else read_labels(y, 6, n_topics)
    core = make_core(n_topics, n_words, 1.2)
    model = SimpleNamespace(_bind=lambda data: (core, TopicDocuments(Bags.of(data), known)))
    report = sc.check_model(model, counts)
    assert report.passed, str(report)


# Priors so small that exp ψ(α) is next to nothing, or no number: against sums of logarithms.


COUNTS = np.array([[1, 0, 0, 0], [0, 2, 1, 0], [0, 0, 0, 0], [9, 0, 3, 1], [0, 0, 0, 1.0]])
SMALL = pytest.mark.parametrize("alpha", [0.02, 3e-3, 1e-3, 1e-5])
SIZES = pytest.mark.parametrize("n_topics", [3, 300])


def topics_of(n_topics: int) -> Array:
    return np.random.default_rng(n_topics).dirichlet(np.ones(4), n_topics)


def step(log_theta: Array, log_phi: Array, alpha: float) -> tuple[Array, Array, Array]:
    """n_dk + α, n_kw, and Σ_w x log Σ_k θ φ of each document, from logarithms alone."""
    mass, of_words, logs = np.full_like(log_theta, alpha), np.zeros_like(log_phi), np.zeros(5)
    for d, w in np.argwhere(COUNTS):
        both = log_theta[d] + log_phi[:, w]
        share = COUNTS[d, w] * np.exp(both - logsumexp(both))
        mass[d] += share
        of_words[:, w] += share
        logs[d] += COUNTS[d, w] * logsumexp(both)
    return mass, of_words, logs


def expected_logs(mass: Array) -> Array:
    return np.asarray(digamma(mass) - digamma(mass.sum(axis=1, keepdims=True)))


def begun(n_topics: int, alpha: float) -> Array:
    even = np.repeat(COUNTS.sum(axis=1, keepdims=True) / n_topics, n_topics, axis=1)
    return even + alpha


def divergence(mass: Array, alpha: float) -> float:
    """Σ_d KL(Dir(α + n_d) ‖ Dir(α))."""
    K, totals = mass.shape[1], mass.sum(axis=1)
    ends = gammaln(totals) - gammaln(K * alpha)
    entries = gammaln(alpha) - gammaln(mass) + (mass - alpha) * expected_logs(mass)
    return float(ends.sum() + entries.sum())


@SMALL
@pytest.mark.parametrize("n_topics", [3, 300, 3000])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_documents_are_folded_in_as_by_logarithms(alpha: float, n_topics: int, most: int) -> None:
    topics, mass = topics_of(n_topics), begun(n_topics, alpha)
    for _ in range(most):
        mass, _, _ = step(expected_logs(mass), np.log(topics), alpha)
    prior = DocumentPrior(np.full(n_topics, alpha), "mean_field")
    found = fold_in(topics, Bags.of(COUNTS), prior, most, -1.0)
    assert found == pytest.approx(mass / mass.sum(axis=1, keepdims=True), rel=1e-7, abs=1e-30)


@SMALL
@SIZES
@pytest.mark.parametrize("far", [0.0, -150.0], ids=["common words", "rare words"])
def test_the_bound_is_that_of_logarithms(alpha: float, n_topics: int, far: float) -> None:
    """Two E-steps: counts, log-likelihood and the objective; a word may be rare in all topics."""
    log_phi = np.log(topics_of(n_topics)) + np.array([0.0, 0.0, far, 0.0])
    prior = DocumentPrior(np.full(n_topics, alpha), "mean_field")
    core = TopicCore("topics", Columns((n_topics, 4), 0.1), prior)
    (shard,) = TopicDocuments(Bags.of(COUNTS)).shards()
    mass, local = begun(n_topics, alpha), None
    for _ in range(2):
        stats = core.expect({"topics": np.exp(log_phi)}, shard, EStep(), local)
        new, of_words, logs = step(expected_logs(mass), log_phi, alpha)
        assert np.asarray(stats.counts["topics"]) == pytest.approx(of_words, rel=1e-7, abs=1e-30)
        assert stats.log_likelihood == pytest.approx(logs.sum(), rel=1e-9)
        assert stats.score == pytest.approx(logs.sum() - divergence(mass, alpha), rel=1e-9)
        mass, local = new, stats.local


@SMALL
@SIZES
def test_the_bound_never_falls(alpha: float, n_topics: int) -> None:
    learner = sc.VariationalBayes(max_iter=25, tol=0)
    model = sc.LDA(n_topics, smoothing={"documents": alpha}, learner=learner).fit(COUNTS)
    rises = np.diff(model.trace_.objective[1:])
    assert rises.min() > -1e-9 * abs(model.trace_.objective[-1])
    assert model.documents_.sum(axis=1) == pytest.approx(np.ones(5))
    assert model.documents_[2] == pytest.approx(np.full(n_topics, 1 / n_topics))


@pytest.mark.parametrize(
    ("n_topics", "alpha", "dtype"),
    [
        *((K, alpha, "float64") for K in (3, 300) for alpha in (0.02, 3e-3, 1e-3, 1e-5)),
        *((3, alpha, "float32") for alpha in (0.02, 3e-3, 1e-3, 1e-5)),
        (300, 0.02, "float32"),
    ],
)
@pytest.mark.parametrize(
    "learner",
    [
        sc.VariationalBayes(max_iter=4),
        sc.StochasticVB(max_iter=2, batch_size=2),
        sc.Gibbs(max_iter=6, n_init=1),
        sc.CollapsedGibbs(max_iter=6, optimise=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_every_learner_copes(learner: Any, dtype: str, n_topics: int, alpha: float) -> None:
    model = sc.LDA(n_topics, smoothing=alpha, learner=learner, dtype=dtype)
    model.fit(COUNTS)
    for table in (model.topics_, model.documents_, model.transform(COUNTS)):
        assert np.isfinite(table).all()
        assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), rel=1e-5)


# Numbers of 32 and of 64 bits, tiny numbers, and threads.


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
        sc.LDA(4, dtype=dtype, init=START, short_runs=0, learner=learner).fit(X)
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
        sc.LDA(K, dtype=dtype, short_runs=0, learner=learner).fit(x)
        for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(single.trace_.objective[1:], double.trace_.objective[1:], rtol=1e-4)


def test_words_long_unseen_are_not_lost_in_single_precision() -> None:
    """A word of the first document of many comes again after hundreds of mini-batches."""
    rng = np.random.default_rng(0)
    x = np.zeros((3000, 12))
    x[:, :10] = rng.multinomial(20, np.full(10, 0.1), 3000)
    x[[0, 1500, 2999], [10, 11, 10]] = 1.0
    learner = sc.OnlineEM(max_iter=1, batch_size=2, kappa=0.51)
    model = sc.PLSA(3, dtype="float32", learner=learner, short_runs=0).fit(x)
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
    core = TopicCore("topics", Columns((2, 3), 1.0), DocumentPrior(np.ones(2)), dtype=dtype)
    (shard,) = TopicDocuments(Bags.of(x)).shards()
    how = EStep(fill=fill, temper=temper, samples=3, stream=7)
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
    kept = pad_topics(table, dtype)[:, :5]
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept == 0.0, table < tiny)
    np.testing.assert_allclose(kept[kept > 0], table[table >= tiny], rtol=1e-6)
    smallest = np.finfo(dtype).tiny
    assert tiny**2 > smallest  # nor have products


def test_documents_rows_have_none_either() -> None:
    """Plain EM drives shares to zero geometrically: they end at zero, not below the bound."""
    sharp = np.kron(np.eye(3), np.full((30, 10), 2.0))
    blurred = np.kron(np.eye(3), np.full(10, 0.1)) * 0.98 + 0.02 / 30
    core = TopicCore("topics", Columns((3, 30), 1.0), DocumentPrior(np.ones(3)))
    (shard,) = TopicDocuments(Bags.of(sharp)).shards()
    local = None
    for _ in range(100):  # shares shrink by a factor of 50 a step
        local = core.expect({"topics": blurred}, shard, EStep(), local).local
        assert not ((local.theta > 0.0) & (local.theta < TINY)).any()
    assert np.isin(local.theta, [0.0, 1.0]).all()


def test_zeros_cost_no_likelihood() -> None:
    model = sc.PLSA(3, short_runs=0, learner=sc.EM(max_iter=400, tol=0)).fit(X)
    steps = np.diff(model.trace_.objective)
    assert steps.min() > -1e-9 * abs(model.trace_.objective[-1])
    table = pad_topics(model.topics_)[:, :V]
    assert not ((table > 0.0) & (table < TINY)).any()


# threads
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("K", [4, 50])
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_threads_do_not_matter_to_any_learner(learner: Any, K: int, dtype: str) -> None:
    y = [0, -1, [1, 2], -1] * 10
    one, many = (
        sc.LDA(K, learner=learner, dtype=dtype, engine=sc.Local(threads), short_runs=2).fit(
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


# Folding documents in, against a plain loop over documents and words.


@njit
def _digammas(values: Array) -> Array:
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = compiled_digamma(values[i])
    return out


def test_digamma_is_scipys() -> None:
    values = np.concatenate(
        [np.geomspace(1e-300, 1e300, 4001), np.linspace(1e-3, 30, 5000), np.arange(1.0, 40)]
    )
    expected = special.digamma(values)
    # near its root 1.4616… the value itself is as small as what rounding leaves
    assert _digammas(values) == pytest.approx(expected, rel=4e-15, abs=1e-14)


def by_hand(
    counts: Array,
    topics: Array,
    alpha: Array,
    averages: bool,
    temper: float,
    may: Array,
    most: int,
    tol: float,
) -> Array:
    """p(topic | document), a document, a word and a topic at a time."""
    rows = []
    for x, allowed in zip(counts, may, strict=True):
        begun = x.sum() * allowed / allowed.sum() + alpha
        log_mean = special.digamma(begun) - special.digamma(begun[allowed].sum())
        theta = np.exp(log_mean) if averages else 1.0 / allowed.sum()
        theta = np.where(allowed, theta, 0.0)
        mass = theta
        for _ in range(most):
            mass = np.where(allowed, alpha if averages else alpha - 1.0, 0.0)
            for w, n in enumerate(x):
                p = (theta * topics[:, w]) ** temper
                if n and p.sum() > 0:
                    mass = mass + n * p / p.sum()
            new = theta
            if averages:
                total = special.digamma(mass.sum())
                new = np.where(
                    allowed, np.exp(special.digamma(np.where(allowed, mass, 1.0)) - total), 0.0
                )
            elif mass.sum() > 0:
                new = mass / mass.sum()
            moved, theta = np.abs(new - theta).max(), new
            if moved <= tol:
                break
        found = mass if averages else theta
        rows.append(found / found.sum())
    return np.array(rows)


@st.composite
def folding_cases(draw: Any) -> Any:
    K, V, n = (
        draw(st.sampled_from([1, 2, 7, 8, 9, 17])),
        draw(st.integers(1, 7)),
        draw(st.integers(1, 5)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.poisson(0.8, (n, V)) * rng.choice([1.0, 0.5, 20.0])
    topics = rng.dirichlet(np.full(V, 0.5), K)
    topics[rng.random((K, V)) < 0.15] = 0.0
    topics[:, rng.random(V) < 0.1] = 0.0  # words that no topic has
    may = rng.random((n, K)) < draw(st.sampled_from([0.5, 1.0]))
    may[~may.any(axis=1)] = True
    return counts, topics, may, rng


@given(
    folding_cases(), st.booleans(), st.sampled_from([1.0, 0.6, 1.7]), st.sampled_from([1, 3, 60])
)
@settings(max_examples=120, deadline=None)
def test_a_plain_loop_finds_the_same(case: Any, averages: bool, temper: float, most: int) -> None:
    counts, topics, may, rng = case
    alpha = rng.uniform(0.05, 2.0, len(topics))
    if not averages:
        alpha = 1.0 + alpha * rng.choice([0.0, 1.0])
    prior = DocumentPrior(alpha, "mean_field" if averages else "maximise")
    given = None if may.all() else may
    found = fold_in(topics, Bags.of(counts), prior, most, 1e-6, given, temper=temper)
    expected = by_hand(counts, topics, alpha, averages, temper, may, most, 1e-6)
    # a step more or less, where a change is as large as tol but for rounding
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-11 if most <= 3 else 1e-5)
    assert not found[~may].any()


@given(folding_cases(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_threads_and_neighbours_do_not_matter(case: Any, averages: bool) -> None:
    """Same bits with any number of threads; and of each document alone, or in another order."""
    counts, topics, may, rng = case
    prior = DocumentPrior(
        np.full(len(topics), 0.3 + (not averages)), "draw" if averages else "maximise"
    )
    whole = fold_in(topics, Bags.of(counts), prior, allowed=may)
    for threads in (2, 3):
        again = fold_in(topics, Bags.of(counts), prior, allowed=may, threads=threads)
        assert again.tobytes() == whole.tobytes()
    for d in rng.permutation(len(counts)):
        alone = fold_in(topics, Bags.of(counts[d : d + 1]), prior, allowed=may[d : d + 1])
        assert alone[0].tobytes() == whole[d].tobytes()


def test_samplers_fold_in_by_adding_the_prior_to_counts() -> None:
    rng = np.random.default_rng(0)
    topics, counts = rng.dirichlet(np.ones(6), 3), rng.poisson(1.0, (4, 6))
    alpha = np.array([0.4, 0.1, 2.0])
    found = fold_in(topics, Bags.of(counts), DocumentPrior(alpha, "draw"), 500, 1e-12)
    expected = by_hand(counts, topics, alpha + 1, False, 1.0, np.ones((4, 3), bool), 500, 1e-12)
    assert found == pytest.approx(expected, abs=1e-9)


def test_nothing_to_go_by() -> None:
    """Empty documents, and words that no topic has: what the prior says, or all topics alike."""
    topics, alpha = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.2, 0.6])
    bags, may = (
        Bags.of([[0.0, 0.0], [0.0, 3.0], [0.0, 0.0]]),
        np.array([[1, 1], [1, 1], [0, 1]], bool),
    )
    means = fold_in(topics, bags, DocumentPrior(alpha, "mean_field"), allowed=may)
    assert means == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75], [0.0, 1.0]]))
    modes = fold_in(topics, bags, DocumentPrior(alpha + 1.0), allowed=may)
    assert modes == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75], [0.0, 1.0]]))
    flat = fold_in(topics, bags, DocumentPrior(np.ones(2)), allowed=may)
    assert flat == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]))


@pytest.mark.parametrize("alpha", [0.01, 1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize("n_topics", [2, 20, 1000])
def test_tiny_priors_leave_proper_shares(alpha: float, n_topics: int) -> None:
    """exp ψ(α) is no number for small α; shares are."""
    counts = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 1], [40, 0, 3.0]])
    topics = np.random.default_rng(1).dirichlet(np.ones(3), n_topics)
    prior = DocumentPrior(np.full(n_topics, alpha), "mean_field")
    found = fold_in(topics, Bags.of(counts), prior, 200)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    assert found[0] == pytest.approx(np.full(n_topics, 1 / n_topics))
    # (n + α) / (N + Kα): a topic that a document has nothing of still has what the prior gives it
    least = alpha / (counts.sum(axis=1) + n_topics * alpha)
    assert (found >= least[:, None] * (1 - 1e-9)).all()
