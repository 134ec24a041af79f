"""Documents as they come: partial_fit, mini-batches, archives on disk."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.core.types import EStep
from softcount.metrics import completion_perplexity
from softcount.text import archive as building
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.topics import LDA, PLSA
from softcount.topics.anchors import anchor_topics
from softcount.topics.core import INNER
from softcount.topics.data import TopicDocuments
from tests.oracles import plain_topics
from tests.topics.common import LEARNERS

X, TOPICS = plain_topics.documents(n=400, V=50, K=4, length=60)
UNSEEN, _ = plain_topics.documents(n=500, V=50, K=4, length=60)
UNSEEN = UNSEEN[400:]
V = X.shape[1]
TEXTS = ["cup goal team", "goal team match", "oil price", "market price oil rise"] * 6
ONLINE = [None, sc.OnlineEM(batch_size=32), sc.StochasticVB(batch_size=32)]
START = np.random.default_rng(1).dirichlet(np.ones(V), 4)


def learned(model: Any, data: Any = X, n: int = 5) -> Any:
    for part in np.array_split(data, n):
        model.partial_fit(part)
    return model


# against sums written out
def looked_at(x: Any, theta: Any, phi: Any, alpha: float, averages: bool) -> Any:
    """The counts of words that a mini-batch ends with, and its rows."""
    for _ in range(INNER):
        n_dk, n_kw, _ = plain_topics.expected(x, theta, phi)
        mass = n_dk + alpha
        total = mass.sum(axis=1, keepdims=True)
        theta = np.exp(digamma(mass) - digamma(total)) if averages else mass / total
    return n_kw, theta


def begun(x: Any, alpha: float, averages: bool) -> Any:
    mass = np.repeat(x.sum(axis=1, keepdims=True) / 4, 4, axis=1) + alpha
    even = plain_topics.even(len(x), 4)
    return np.exp(digamma(mass) - digamma(mass.sum(axis=1, keepdims=True))) if averages else even


@pytest.mark.parametrize("averages", [False, True])
def test_three_calls_written_out(averages: bool) -> None:
    """One mini-batch a call: s ← (1 − η) s + η s_t, and φ from N s."""
    alpha, beta, calls = 0.1, 0.01, np.array_split(X[:90], 3)
    kind = sc.StochasticVB if averages else sc.OnlineEM
    model = sc.LDA(4, init={"topics": START}, learner=kind(batch_size=64, kappa=0.8, t0=3.0))
    phi, s, seen = START, None, 0
    for t, x in enumerate(calls, 1):
        theta = begun(x, alpha, averages)
        if s is None:
            counts, theta = looked_at(x, theta, phi, alpha, averages)
            s = counts / len(x)
        counts, _ = looked_at(x, theta, phi, alpha, averages)
        seen, eta = seen + len(x), (t + 3.0) ** -0.8
        s = (1 - eta) * s + eta * counts / len(x)
        mass = seen * s + beta
        total = mass.sum(axis=1, keepdims=True)
        phi = np.exp(digamma(mass) - digamma(total)) if averages else mass / total
        model.partial_fit(x)
        np.testing.assert_allclose(model.topics_, mass / total, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(model.weights_, s.sum(axis=1) / s.sum(), rtol=1e-6)


# as good as learning from all
@pytest.mark.parametrize("learner", ONLINE, ids=str)
@pytest.mark.parametrize("n", [1, 4, 20])
def test_many_calls_are_as_good_as_one_pass_over_all(learner: Any, n: int) -> None:
    learner = learner or sc.OnlineEM()
    one_pass = type(learner)(batch_size=learner.batch_size, max_iter=1)
    whole = sc.LDA(4, learner=one_pass, short_runs=0).fit(X)
    parts = learned(sc.LDA(4, learner=learner), n=n)
    figures = [completion_perplexity(model.topics_, UNSEEN) for model in (whole, parts)]
    assert figures[1] < 1.1 * figures[0]
    assert figures[1] < 0.9 * completion_perplexity(np.ones((1, V)), UNSEEN)


@pytest.mark.parametrize("learner", ONLINE, ids=str)
def test_topics_are_found_in_the_long_run(learner: Any) -> None:
    model = sc.LDA(4, learner=learner, random_state=1)
    for epoch in range(8):
        learned(model, X[np.random.default_rng(epoch).permutation(len(X))], 10)
    assert plain_topics.distance(model.topics_, TOPICS) < 0.4


def test_one_document_at_a_time() -> None:
    model = sc.LDA(4)
    for row in X[:150]:
        model.partial_fit(row[None])
    assert model._progress.items == model._progress.batches == model.n_iter_ == 150
    assert completion_perplexity(model.topics_, UNSEEN) < completion_perplexity(
        np.ones((1, V)), UNSEEN
    )


# what a call leaves behind
def test_documents_are_those_of_the_call() -> None:
    model = sc.LDA(4).partial_fit(X[:50])
    model.partial_fit(X[50:80])
    assert model.documents_.shape == (30, 4)
    np.testing.assert_allclose(model.documents_, model.transform(X[50:80]))
    assert all(0 <= number < 30 for number, _ in model.similar(X[51], 30))
    assert model.similar(X[51], 1)[0][1] == pytest.approx(1.0)
    assert model.generate(3).shape == (3, V)
    assert "partial_fit" in model.signature_
    assert "80 items in 2 batches" in model.signature_
    assert model.verdict_ is sc.Verdict.STREAMED


def test_the_trace_says_how_well_what_came_was_predicted() -> None:
    """A step for each mini-batch of all calls, scored before it was learned from."""
    model = sc.LDA(4, learner=sc.OnlineEM(batch_size=20)).partial_fit(X[:40])
    first = model.raw_params_
    model.partial_fit(X[40:60])
    assert [state.step for state in model.trace_] == [1, 2, 3]
    core, corpus = model.core_, model._bind_more(model.core_, X[40:60])
    (shard,) = corpus.shards(20, 2)
    predicted = core.expect(first, shard, EStep(mini_batch=True, update="maximise"))
    assert model.trace_[-1].log_likelihood == pytest.approx(predicted.log_likelihood, rel=1e-12)


def test_weights_are_of_all_that_was_seen() -> None:
    model = (
        sc.PLSA(2, smoothing=0.01)
        .partial_fit(X[:50], labels=[0] * 50)
        .partial_fit(X[:50], labels=[1] * 50)
    )
    assert 0.1 < model.weights_[0] < 0.9


@pytest.mark.parametrize("learner", ONLINE, ids=str)
def test_the_same_calls_give_the_same_bits(learner: Any) -> None:
    one, two = (learned(sc.LDA(4, learner=learner, engine=sc.Local(threads))) for threads in (1, 2))
    assert one.topics_.tobytes() == two.topics_.tobytes()
    other = learned(sc.LDA(4, learner=learner, random_state=1))
    assert other.topics_.tobytes() != one.topics_.tobytes()
    assert learned(sc.LDA(4, learner=learner, random_state=None)).topics_.shape == (4, V)


def test_a_clone_has_learned_nothing() -> None:
    with pytest.raises(NotFittedError):
        clone(sc.LDA(4).partial_fit(X)).transform(X)


def test_the_temper_of_learning_is_that_of_folding_in() -> None:
    model = sc.LDA(4, learner=sc.OnlineEM(temper=0.5)).partial_fit(X)
    assert model.temper_ == 0.5


# words
def test_the_first_call_says_which_words_there_are() -> None:
    model = sc.LDA(2).partial_fit(TEXTS[:2])
    names = model.word_names().tolist()
    model.partial_fit(["goal goal oil price", "oil"])
    assert model.word_names().tolist() == names == ["cup", "goal", "match", "team"]
    np.testing.assert_allclose(model.documents_[1], 0.5)  # none of its words is known


def test_a_vectorizer_that_knows_its_words() -> None:
    words = sorted(set(" ".join(TEXTS).split()))
    model = sc.LDA(2, vectorizer=CountVectorizer(vocabulary=words))
    for text in TEXTS:
        model.partial_fit([text])
    assert model.word_names().tolist() == words
    shares = model.transform(["goal team", "oil price"])
    assert shares[0].argmax() != shares[1].argmax()


def test_other_columns_are_refused() -> None:
    model = sc.LDA(2).partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :-1])


def test_a_word_without_any_probability_names_its_document() -> None:
    """PLSA does not smooth: a column that was empty until now cannot be explained."""
    first, then = X[:50].copy(), X[50:60].copy()
    first[:, 7] = 0
    then[:, 7] = [0, 0, 0, 2, 0, 0, 0, 0, 0, 1]
    model = sc.PLSA(3).partial_fit(first)
    with pytest.raises(sc.errors.ImpossibleItem, match=r"(?s)document 3 .*smooth"):
        model.partial_fit(then)
    assert sc.PLSA(3, smoothing=0.01).partial_fit(first).partial_fit(then).topics_[:, 7].max() > 0
    assert sc.LDA(3).partial_fit(first).partial_fit(then).topics_[:, 7].max() > 0


def test_calls_with_empty_documents() -> None:
    model = sc.LDA(3).partial_fit(np.vstack([X[:20], np.zeros((3, V))]))
    before = model.topics_.copy()
    model.partial_fit(np.zeros((2, V)))
    assert np.isfinite(model.topics_).all()
    assert np.isfinite(model.weights_).all()
    np.testing.assert_allclose(model.topics_, before, atol=0.05)
    with pytest.raises(DataError, match="every document is empty"):
        sc.LDA(3).partial_fit(np.zeros((2, V)))


# going on
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_going_on_after_fit(learner: Any) -> None:
    model = sc.LDA(4, learner=learner).fit(X[:200])
    before = completion_perplexity(model.topics_, UNSEEN)
    model.set_params(learner=sc.OnlineEM(batch_size=50)).partial_fit(X[200:])
    assert model._progress.items == 400
    assert completion_perplexity(model.topics_, UNSEEN) < 1.1 * before
    assert np.abs(model.topics_.sum(axis=1) - 1.0).max() < 1e-9


def test_what_was_learned_is_not_forgotten() -> None:
    """A call with one odd document moves a model of many documents by little."""
    odd = np.zeros((1, V))
    odd[0, 0] = 60
    for model in (sc.LDA(4).fit(X), learned(sc.LDA(4)), sc.LDA(4, learner=ONLINE[2]).fit(X)):
        before = model.topics_.copy()
        model.partial_fit(odd)
        assert 0.0 < np.abs(model.topics_ - before).sum(axis=1).max() < 0.2


@pytest.mark.parametrize("learner", ONLINE, ids=str)
def test_going_on_after_load_is_going_on(learner: Any, tmp_path: Path) -> None:
    model = sc.LDA(4, learner=learner).fit(X[:200])
    model.save(tmp_path / "m")
    again = sc.LDA.load(tmp_path / "m", learner=learner).partial_fit(X[200:])
    model.partial_fit(X[200:])
    np.testing.assert_array_equal(again.topics_, model.topics_)


@pytest.mark.parametrize("learner", ONLINE, ids=str)
def test_a_file_knows_how_far_partial_fit_had_come(learner: Any, tmp_path: Path) -> None:
    model = learned(sc.LDA(4, learner=learner), n=20)
    model.partial_fit(X[:3])  # few documents come last
    model.save(tmp_path / "m")
    again = sc.LDA.load(tmp_path / "m", learner=learner)
    assert again._progress.items == model._progress.items == 403
    assert again._progress.batches == model._progress.batches
    for one in (model, again):
        one.partial_fit(X[3:9])
    np.testing.assert_allclose(again.topics_, model.topics_, atol=2e-3)
    np.testing.assert_allclose(again.weights_, model.weights_, rtol=1e-4)


def test_fit_begins_anew() -> None:
    model = learned(sc.LDA(4)).fit(X[:100])
    np.testing.assert_array_equal(model.topics_, sc.LDA(4).fit(X[:100]).topics_)
    assert not hasattr(model, "_progress")
    assert model.trace_


def test_priors_that_a_sampler_learned_are_kept() -> None:
    model = sc.LDA(4, learner=sc.CollapsedGibbs(max_iter=20, optimise=5)).fit(X[:200])
    learned_prior = model.document_smoothing_.copy()
    model.set_params(learner=sc.StochasticVB()).partial_fit(X[200:])
    np.testing.assert_allclose(model.document_smoothing_, learned_prior)


# labels, archives
@pytest.mark.parametrize("learner", ONLINE, ids=str)
def test_labels_in_every_call(learner: Any) -> None:
    model = sc.LDA(3, learner=learner)
    for first in (0, 60):
        part, y = X[first : first + 60], [0, [1, 2], -1] * 20
        model.partial_fit(part, labels=y)
        np.testing.assert_array_equal(model.documents_[0::3], [[1, 0, 0]] * 20)
        assert not model.documents_[1::3, 0].any()
    with pytest.raises(DataError, match="document 2 "):
        model.partial_fit(X[:3], labels=[0, 1, 3])


def test_archives(tmp_path: Path) -> None:
    parts = np.array_split(X, 3)
    on_disk, in_memory = sc.LDA(4), sc.LDA(4)
    for i, part in enumerate(parts):
        on_disk.partial_fit(Archive.build(part, tmp_path / str(i)))
        in_memory.partial_fit(part)
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7)
    np.testing.assert_allclose(on_disk.documents_, in_memory.documents_, rtol=1e-7)
    other = Archive.build(X[:, :-1], tmp_path / "other")
    with pytest.raises(DataError, match="a different vocabulary"):
        on_disk.partial_fit(other)


# what does not work
@pytest.mark.parametrize(
    "learner",
    [
        one
        for one in LEARNERS
        if one is not None and not isinstance(one, sc.OnlineEM | sc.StochasticVB)
    ],
    ids=str,
)
def test_learners_that_must_see_all_are_refused(learner: Any) -> None:
    model = sc.LDA(3, learner=learner)
    with pytest.raises(LearnerError, match="none can come later"):
        model.partial_fit(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("first", [False, True])
def test_a_call_that_fails_leaves_the_model_as_it_was(first: bool) -> None:
    model = sc.LDA(3, vectorizer=CountVectorizer())
    calm = sc.LDA(3, vectorizer=CountVectorizer())
    if not first:
        model.partial_fit(TEXTS)
        calm.partial_fit(TEXTS)
    before = dict(model.__dict__)
    for wrong, y in ((TEXTS, [9] * len(TEXTS)), ([b"bytes"], None), ([""], [0, 1]), (5, None)):
        with pytest.raises((sc.SoftcountError, ValueError, TypeError)):
            model.partial_fit(wrong, labels=y)
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is value for name, value in before.items())
    model.partial_fit(TEXTS[:6])
    calm.partial_fit(TEXTS[:6])
    np.testing.assert_array_equal(model.topics_, calm.topics_)


def test_an_error_half_way_leaves_the_model_as_it_was() -> None:
    first = X[:50].copy()
    first[:, 7] = 0
    model = sc.PLSA(3, learner=sc.OnlineEM(batch_size=4)).partial_fit(first)
    before = {name: id(value) for name, value in model.__dict__.items()}
    table = model.topics_.copy()
    with pytest.raises(sc.errors.ImpossibleItem):
        model.partial_fit(X[50:])
    assert {name: id(value) for name, value in model.__dict__.items()} == before
    np.testing.assert_array_equal(model.topics_, table)


# Topic models of archives: the same answers as from memory, and little memory.


STORED_X, STORED_TOPICS = plain_topics.documents(n=120, V=40)
STORED_UNSEEN = plain_topics.documents(n=160, V=40)[0][120:]
STORED_TEXTS = ["cup goal team", "goal team match", "oil price", "", "market price oil rise"] * 6
STREAMING = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]
EXACT = [one for one in STREAMING if one is None or not (one.stochastic or one.e == "hard")]


def build_archive(path: Path, data: Any = STORED_X, shard: int = 1 << 16, **more: Any) -> Archive:
    with patch.multiple(building, SHARD_DOCUMENTS=shard):
        return Archive.build(data, path, **more)


@pytest.mark.parametrize("learner", EXACT, ids=str)
@pytest.mark.parametrize("shard", [1 << 16, 25])
def test_an_archive_teaches_what_counts_teach(learner: Any, shard: int, tmp_path: Path) -> None:
    """All that a fit does, starts and short runs included."""
    made = build_archive(tmp_path / "a", shard=shard)
    assert len(made.shards()) == (1 if shard > 120 else 5)
    on_disk, in_memory = (sc.LDA(3, learner=learner).fit(data) for data in (made, STORED_X))
    if shard > 120 or (learner is not None and learner.schedule.batch_size):
        np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(on_disk.documents_, in_memory.documents_, atol=1e-6)
        np.testing.assert_allclose(on_disk.weights_, in_memory.weights_, atol=1e-7)
    figures = [completion_perplexity(one.topics_, STORED_UNSEEN) for one in (on_disk, in_memory)]
    assert figures[0] == pytest.approx(figures[1], rel=1e-3)


@pytest.mark.parametrize("learner", STREAMING, ids=str)
def test_every_learner_learns_from_an_archive(learner: Any, tmp_path: Path) -> None:
    made = build_archive(tmp_path / "a", shard=25)
    y = [0, -1, [1, 2], -1] * 30
    model = sc.LDA(3, learner=learner).fit(made, labels=y)
    assert not model.documents_[0::4, 1:].any()
    assert not model.documents_[2::4, 0].any()
    figure = completion_perplexity(model.topics_, STORED_UNSEEN)
    assert figure < 0.9 * completion_perplexity(np.ones((1, 40)), STORED_UNSEEN)


def test_words_of_an_archive_cannot_be_held_out(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="held out"):
        sc.LDA(3, learner=sc.TemperedEM()).fit(build_archive(tmp_path / "a"))


@pytest.mark.parametrize("shard", [1 << 16, 25])
def test_rows_come_in_the_order_of_the_archive(shard: int, tmp_path: Path) -> None:
    plain = build_archive(tmp_path / "a", shard=shard)
    shuffled = build_archive(tmp_path / "b", shard=shard, shuffle=3)
    assert not np.array_equal(shuffled.origin, np.arange(120))
    model = sc.LDA(3).fit(STORED_X)
    wanted = model.transform(STORED_X)
    np.testing.assert_allclose(model.transform(plain), wanted, rtol=1e-9)
    back = np.empty_like(wanted)
    back[shuffled.origin] = model.transform(shuffled)
    np.testing.assert_allclose(back, wanted, rtol=1e-9)
    logs = np.empty(120)
    logs[shuffled.origin] = model.score_samples(shuffled)
    np.testing.assert_allclose(logs, model.score_samples(STORED_X), rtol=1e-9)


def test_labels_are_in_the_order_of_the_archive(tmp_path: Path) -> None:
    shuffled = build_archive(tmp_path / "a", shard=25, shuffle=3)
    y = np.arange(120) % 3
    on_disk = sc.PLSA(3).fit(shuffled, labels=y[shuffled.origin])
    np.testing.assert_allclose(
        on_disk.topics_, sc.PLSA(3).fit(STORED_X, labels=y).topics_, rtol=1e-9
    )


def test_documents_that_an_archive_has_can_be_found(tmp_path: Path) -> None:
    made = build_archive(tmp_path / "a", STORED_TEXTS)
    model = sc.LDA(2).fit(made)
    with pytest.raises(DataError, match=r"model\.index"):
        model.similar("goal")
    found = model.index(made).similar("oil price", 6, words=0.5)
    assert {number % 5 for number, _ in found} == {2}


def test_archives_with_other_words_are_refused(tmp_path: Path) -> None:
    old, other = (
        build_archive(tmp_path / "a", STORED_TEXTS),
        build_archive(tmp_path / "b", ["cup goal", "tea"]),
    )
    model = sc.LDA(2).fit(old)
    for use in (model.transform, model.score_samples, model.index, model.partial_fit):
        with pytest.raises(DataError, match="a different vocabulary from the model"):
            use(other)
    from_texts = sc.LDA(2).fit(STORED_TEXTS)
    with pytest.raises(DataError, match="a different vocabulary"):
        from_texts.transform(other)
    np.testing.assert_allclose(from_texts.transform(old), from_texts.transform(STORED_TEXTS))
    assert model.fit(other).word_names().tolist() == ["cup", "goal", "tea"]  # fit begins anew


def test_a_document_without_probability_is_called_by_its_line(tmp_path: Path) -> None:
    made = Archive.build({"notes.txt": ["cup goal", "oil"]}, tmp_path / "a")
    start = {"topics": np.array([[0.5, 0.5, 0.0]])}
    with pytest.raises(sc.errors.ImpossibleItem, match=r"notes\.txt:2"):
        sc.PLSA(1, init=start, short_runs=0).fit(made)
    model = sc.PLSA(1).partial_fit(build_archive(tmp_path / "b", np.array([[1, 1, 0]])))
    with pytest.raises(sc.errors.ImpossibleItem, match="document 1 "):
        model.partial_fit(build_archive(tmp_path / "c", np.array([[1, 0, 0], [0, 0, 1]])))


def test_an_archive_of_empty_documents(tmp_path: Path) -> None:
    made = build_archive(tmp_path / "a", np.zeros((3, 4)))
    with pytest.raises(DataError, match="every document is empty"):
        sc.LDA(2).fit(made)


# memory
@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small archive, and one of five million tokens in 37 shards."""
    folder, (n, V, length) = tmp_path_factory.mktemp("large"), (2000, 5000, 100)
    chances = 1.0 / np.arange(1, V + 1) ** 0.6

    def blocks(many: int) -> Iterator[Any]:
        rng = np.random.default_rng(0)
        for _ in range(many):
            words = rng.choice(V, n * length, p=chances / chances.sum())
            places = (np.repeat(np.arange(n), length), words)
            yield sparse.coo_matrix((np.ones(len(words)), places), (n, V)).tocsr()

    with patch.multiple(building, SHARD_ENTRIES=1 << 17):
        Archive.build(blocks(1), folder / "small")
        assert Archive.build(blocks(25), folder / "large").tokens == 5e6
    return folder


def megabytes(folder: Path, learner: Any, on_disk: bool) -> float:
    """What a fit to five million tokens has in memory at most, mapped files apart."""
    for name in ("small", "large"):  # the first one compiles and loads
        build_archive = Archive.open(folder / name)
        data = build_archive if on_disk else build_archive.sample(len(build_archive))
        tracemalloc.start()
        sc.LDA(8, learner=learner, engine=sc.Local(1), short_runs=0).fit(data)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most / 2**20


@pytest.mark.slow
@pytest.mark.parametrize("learner", [sc.EM(max_iter=2), sc.OnlineEM(max_iter=1)], ids=str)
def test_five_million_tokens_stream_in_little_memory(learner: Any, large: Path) -> None:
    """The rows of 50,000 documents are 3.2 MB; all counts in memory would be 12 bytes each."""
    assert megabytes(large, learner, on_disk=True) < 30.0


@pytest.mark.slow
def test_a_corpus_in_memory_would_break_the_bound(large: Path) -> None:
    assert megabytes(large, sc.EM(max_iter=2), on_disk=False) > 60.0


# Topic models of documents on disk: what is learned does not depend on where documents lie.


def counts() -> Any:
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.full(40, 0.1), 3)
    return np.array([rng.multinomial(30, row) for row in rng.dirichlet([0.3] * 3, 90) @ truth])


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    with patch.multiple(building, SHARD_DOCUMENTS=20):
        made = Archive.build(counts(), tmp_path / "a")
    assert len(made.shards()) == 5
    return made


@pytest.mark.parametrize("kind", [PLSA, LDA])
def test_shards_on_disk_teach_what_documents_in_memory_do(kind: Any, archive: Archive) -> None:
    start = {"topics": np.random.default_rng(0).dirichlet(np.ones(40), 3)}
    on_disk, in_memory = (
        kind(3, init=start, short_runs=0, learner=sc.EM(max_iter=15, tol=0)).fit(data)
        for data in (archive, counts())
    )
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(on_disk.trace_.objective, in_memory.trace_.objective, rtol=1e-9)


def test_mini_batches_are_those_of_a_corpus_in_memory(archive: Archive) -> None:
    learner = sc.OnlineEM(max_iter=3, batch_size=16)
    on_disk, in_memory = (LDA(3, short_runs=0, learner=learner).fit(x) for x in (archive, counts()))
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7, atol=1e-12)


def test_anchors_of_an_archive_and_of_memory(archive: Archive) -> None:
    on_disk, in_memory = (
        anchor_topics(corpus.shards(), 3, np.random.default_rng(1))
        for corpus in (TopicDocuments(archive), TopicDocuments(Bags.of(counts())))
    )
    np.testing.assert_allclose(on_disk, in_memory, rtol=1e-6, atol=1e-9)


def test_new_documents_in_an_archive_like_the_old_one(tmp_path: Path) -> None:
    old = Archive.build(STORED_TEXTS, tmp_path / "old")
    model = LDA(2).fit(old)
    new = ["goal unheard cup", "", "price of oil"]
    like = Archive.build(new, tmp_path / "new", like=old)
    np.testing.assert_allclose(model.transform(like), model.transform(new))
    other = Archive.build(new, tmp_path / "other")
    with pytest.raises(DataError, match="a different vocabulary from the model"):
        model.transform(other)


def test_words_are_those_of_the_archive(tmp_path: Path) -> None:
    old = Archive.build(STORED_TEXTS, tmp_path / "old")
    model = LDA(2).fit(old)
    assert model.word_names().tolist() == old.vocabulary.tolist()  # type: ignore[union-attr]
    np.testing.assert_allclose(model.fold_in_training_documents(), model.transform(STORED_TEXTS))
