"""Topic models cut into shards, shards that travel, and samplers that are restored."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from softcount.core.errors import StoreError
from softcount.core.laws import check_model
from softcount.core.records import pack, unpack
from softcount.core.types import ColumnCounts, EStep, Stats
from softcount.engines.blocks import tree_sum
from softcount.text import archive as building
from softcount.text import bags
from softcount.text.archive import Archive, ArchivePart
from softcount.text.bags import Bags
from softcount.topics import gibbs
from softcount.topics.data import TopicDocuments
from softcount.topics.gibbs import CollapsedTopics
from tests.topics.common import LEARNERS

RNG = np.random.default_rng(5)
X = RNG.poisson(0.7, (50, 14))
X[4] = 0  # an empty document
LABELS = [d % 3 if d % 4 == 0 else [0, 2] if d % 4 == 1 else -1 for d in range(50)]
TEXTS = [" ".join(f"w{w:02}" for w in np.repeat(np.arange(14), row)) for row in X]
FROZEN = RNG.dirichlet(np.ones(14), 1)

MODELS: dict[str, Any] = {
    "plsa": sc.PLSA(3),
    "lda": sc.LDA(3),
    "vb": sc.LDA(3, learner=sc.VariationalBayes()),
    "seed words": sc.LDA(3, seed_words={1: [3, 4], 2: [8]}),
    "frozen": sc.LDA(3, frozen_topics=FROZEN),
    "float32": sc.LDA(3, dtype="float32"),
    "sampled": sc.LDA(3, learner=sc.Gibbs()),
}

HOWS = {
    "soft": EStep(),
    "tempered": EStep(temper=0.6),
    "hard": EStep(fill="hard"),
    "sample": EStep(fill="sample", samples=3, stream=9),
    "theory": EStep(theory=True),
    "mini-batch": EStep(mini_batch=True),
    "score": EStep(score_only=True),
}


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)


def bound(model: str, *, labels: Any = LABELS) -> tuple[Any, TopicDocuments]:
    core, corpus = MODELS[model]._bind(X, labels)
    return core, corpus


def start(core: Any) -> dict[str, Any]:
    return {"topics": core.topics.random(np.random.default_rng(1))}


def figures(stats: Stats) -> dict[str, Any]:
    counts = {name: np.asarray(counts) for name, counts in stats.counts.items()}
    names = ("log_likelihood", "score", "items", "tokens")
    of_rows = {"q": stats.uncounted.expected, "ahead": stats.uncounted.ahead}
    return counts | of_rows | {name: getattr(stats, name) for name in names}


def bits(stats: Stats) -> dict[str, bytes]:
    found = {name: np.asarray(figure).tobytes() for name, figure in figures(stats).items()}
    return found | ({} if stats.local is None else {"rows": stats.local.theta.tobytes()})


@pytest.mark.parametrize("labels", [None, LABELS], ids=["unknown", "labels"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("model", MODELS)
def test_many_shards_sum_to_one(
    model: str, how: str, labels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, corpus = bound(model, labels=labels)
    (whole,), params = corpus.shards(), start(core)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    shards = corpus.shards()
    assert [len(shard) for shard in shards] == [6] * 8 + [2]
    if (core.document_prior.update, how) in [("draw", "theory"), ("draw", "mini-batch")]:
        return  # proportions are drawn in turn, shard by shard
    step = HOWS[how]
    one = figures(core.expect(params, whole, step))
    many = figures(tree_sum(core.expect(params, shard, step) for shard in shards))
    precision = 1e-5 if model == "float32" else 1e-12
    for name, figure in one.items():
        assert many[name] == pytest.approx(figure, rel=precision, abs=precision), name


@pytest.mark.parametrize("model", ["plsa", "vb"])
def test_the_laws_hold_with_many_shards(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    report = check_model(MODELS[model], X)
    report.raise_if_failed()
    assert "it can be pickled" in [law.name for law in report]


@pytest.mark.usefixtures("small_shards")
def test_shards_of_consecutive_documents_are_views() -> None:
    _, corpus = bound("lda")
    assert isinstance(corpus.documents, Bags)
    for shard in corpus.shards():
        assert np.shares_memory(shard.bags.by_document.value, corpus.documents.by_document.value)


@pytest.mark.parametrize("learner", LEARNERS[1:], ids=str)
def test_learning_from_many_shards(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if learner.m == "draw" and not learner.schedule.collapses:
        learner = learner.set_params(max_iter=1)  # proportions are drawn in turn, shard by shard

    def learn() -> Any:
        model = sc.LDA(3, learner=learner, init="random", short_runs=0)
        return model.fit(X, labels=LABELS)

    one = learn()
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    many = learn()
    assert "9 shards" in many.signature_ or learner.schedule.batch_size
    if learner.schedule.collapses:
        assert many.topics_.tobytes() == one.topics_.tobytes()
    if learner.m == "draw" and not learner.schedule.collapses:
        assert many.trace_.objective[0] == pytest.approx(one.trace_.objective[0], rel=1e-9)
        return
    assert many.topics_ == pytest.approx(one.topics_, rel=1e-6, abs=1e-9)
    assert many.documents_ == pytest.approx(one.documents_, rel=1e-6, abs=1e-9)
    assert many.trace_.objective[1:] == pytest.approx(one.trace_.objective[1:], rel=1e-9)


def test_predictions_do_not_depend_on_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sc.LDA(3, max_iter=5).fit(X)
    proportions, scores = model.transform(X), model.score_samples(X)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    assert model.transform(X).tobytes() == proportions.tobytes()
    assert model.score_samples(X).tobytes() == scores.tobytes()


def test_counts_of_few_words_stay_sparse_in_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = sparse.hstack([X, sparse.csr_matrix((50, 40))]).tocsr()
    core, corpus = sc.LDA(3)._bind(wide)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    parts = [core.expect(start(core), shard, EStep()) for shard in corpus.shards()]
    for counts in (part.counts["topics"] for part in (*parts, tree_sum(parts))):
        assert isinstance(counts, ColumnCounts)
        assert counts.value.shape == (14, 3) or len(counts.columns) < 14
    fitted = sc.LDA(3, init="random", max_iter=5).fit(wide)
    monkeypatch.setattr(Bags, "own_words", None)  # by tables of all words
    dense = sc.LDA(3, init="random", max_iter=5).fit(wide)
    assert fitted.topics_ == pytest.approx(dense.topics_, rel=1e-9, abs=1e-12)


# shards that travel


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("model", MODELS)
def test_shards_travel_without_caches(model: str) -> None:
    core, corpus = bound(model)
    params, sent = start(core), pickle.loads(pickle.dumps(core))
    shard = corpus.shards()[1]
    size = len(pickle.dumps(shard))
    for how in HOWS.values():
        before = core.expect(params, shard, how)
        for copy in (pickle.loads(pickle.dumps(shard)), unpack(*pack(shard))):
            assert bits(sent.expect(params, copy, how)) == bits(before)
    _ = shard.by_word, shard.bags.matrix, shard.bags.own, shard.bags.lengths
    assert len(pickle.dumps(shard)) == size


def test_held_out_words_travel() -> None:
    core, corpus = sc.LDA(3, learner=sc.TemperedEM())._bind(X)
    (shard,) = corpus.shards()
    for copy in (pickle.loads(pickle.dumps(shard)), unpack(*pack(shard))):
        found, expected = (
            core.held_out_log_likelihood(start(core), s, EStep()) for s in (copy, shard)
        )
        assert found.log_likelihood == expected.log_likelihood


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    with patch.multiple(building, SHARD_DOCUMENTS=20):
        return Archive.build(TEXTS, tmp_path / "archive")


@pytest.mark.parametrize("batch_size", [None, 15])
def test_a_shard_of_an_archive_travels_without_its_words(
    archive: Archive, batch_size: int | None
) -> None:
    core, corpus = sc.LDA(3)._bind(archive, LABELS)
    params = start(core)
    for shard in corpus.shards(batch_size, 1):
        before = bits(core.expect(params, shard, EStep()))
        assert b"by_document" not in pickle.dumps(shard)
        copies = [pickle.loads(pickle.dumps(shard)), unpack(*pack(shard))]
        for copy in copies:
            assert isinstance(copy.documents, ArchivePart)
            assert "bags" not in vars(copy.documents)  # not read yet
            assert copy.numbers.tolist() == shard.numbers.tolist()
            assert bits(core.expect(params, copy, EStep())) == before


def test_a_part_is_found_from_another_folder(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(archive.path.parent)
    part = Archive.open("archive").shards()[1]
    sent = pickle.dumps(part)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = pickle.loads(sent).bags.matrix
    assert (found != archive.shards()[1].bags.matrix).nnz == 0


def test_a_run_of_many_documents_is_sent_in_few_bytes(archive: Archive) -> None:
    part = archive.part(np.arange(3, 50))
    assert len(pickle.dumps(part)) < 400
    assert pickle.loads(pickle.dumps(part)).numbers.tolist() == list(range(3, 50))
    assert pickle.loads(pickle.dumps(archive.part(np.array([5, 2])))).numbers.tolist() == [5, 2]
    assert len(pickle.loads(pickle.dumps(archive.part(np.arange(0))))) == 0


def test_another_archive_in_its_place_is_noticed(archive: Archive, tmp_path: Path) -> None:
    part = archive.shards()[0]
    sent = [pickle.dumps(part), pickle.dumps(part)]
    assert pickle.loads(sent[0]).bags.lengths.tolist() == part.bags.lengths.tolist()
    building._reopen.cache_clear()  # as in another process
    os.rename(archive.path, tmp_path / "moved")
    with pytest.raises(StoreError, match="there is no archive"):
        _ = pickle.loads(sent[1]).bags
    Archive.build(TEXTS[::-1], archive.path)
    with pytest.raises(StoreError, match="not the one that these documents are from"):
        _ = pickle.loads(sent[1]).bags


def test_an_archive_travels_without_its_words(archive: Archive) -> None:
    size = len(pickle.dumps(archive))
    _ = archive.vocabulary
    assert len(pickle.dumps(archive)) == size
    again = pickle.loads(pickle.dumps(archive))
    assert again.vocabulary.tolist() == archive.vocabulary.tolist()  # type: ignore[union-attr]


# samplers


def sampler(kind: str) -> CollapsedTopics:
    """``kind``: which settings differ from the plain ones, among them lists instead of rows."""
    allowed = np.zeros((50, 5))
    allowed[::3, 1:3] = allowed[::5, 4] = 1
    more: dict[str, Any] = {}
    if "allowed" in kind:
        more["allowed"] = sparse.csr_matrix(allowed)
    if "seeds" in kind:
        seeds = np.zeros((5, 14), int)
        seeds[1, [3, 4]] = 7
        more["seed_counts"] = sparse.csr_matrix(seeds)
    alpha = np.linspace(0.1, 0.9, 5)
    return CollapsedTopics(*Bags.of(X).by_document, 14, alpha=alpha, beta=0.05, seed=3, **more)


def trajectory(one: CollapsedTopics, sweeps: range) -> list[Any]:
    found: list[Any] = []
    for sweep in sweeps:
        one.sweep(sweep, temper=0.8 if sweep % 5 == 4 else 1.0)
        if sweep % 3 == 1:
            one.optimise()
        priors = one.alpha.tobytes(), one.beta
        means = one.means()["topics"].tobytes()
        found.append((one.topics.tolist(), one.log_joint(), priors, means))
    return found


KINDS = ["plain", "allowed", "seeds", "allowed seeds"]


@pytest.mark.parametrize("lists", [False, True], ids=["dense", "lists"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sampler_continues_from_its_state(
    kind: str, lists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gibbs, "LISTS_FROM", 1 if lists else 100)
    one = sampler(kind)
    trajectory(one, range(6))
    state = unpack(*pack(one.state()))
    assert ("list_topics" in state) == lists
    expected = trajectory(one, range(6, 16))
    again = sampler(kind)
    trajectory(again, range(40, 47))  # other topics, another order in lists, other priors
    again.restore(state)
    assert trajectory(again, range(6, 16)) == expected
    one.restore(state)  # the state is a copy
    assert trajectory(one, range(6, 16)) == expected


def test_the_order_in_lists_is_part_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "LISTS_FROM", 1)
    one = sampler("plain")
    trajectory(one, range(6))
    state = one.state()
    fresh = CollapsedTopics(
        *Bags.of(X).by_document,
        14,
        alpha=state["alpha"],
        beta=float(state["beta"][0]),
        topics=state["topics"],
    )
    assert fresh.state()["list_topics"].tolist() != state["list_topics"].tolist()


def test_states_of_other_samplers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = sampler("plain")
    state = one.state()
    with pytest.raises(StoreError, match="other documents"):
        one.restore({**state, "topics": state["topics"][1:]})
    with pytest.raises(StoreError, match="other documents"):
        one.restore({**state, "alpha": np.ones(4)})
    with pytest.raises(StoreError, match="more topics"):
        one.restore({**state, "topics": np.full_like(state["topics"], 5)})
    monkeypatch.setattr(gibbs, "LISTS_FROM", 1)
    with pytest.raises(StoreError, match="other documents"):
        sampler("plain").restore(state)


@pytest.mark.parametrize("labels", [None, LABELS], ids=["unknown", "labels"])
def test_a_sampler_of_many_shards_is_that_of_one(
    labels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sc.LDA(3, learner=sc.CollapsedGibbs(), seed_words={1: [3, 4]})
    core, corpus = model._bind(X, labels)
    one = core.collapse(corpus.shards(), start(core), 3)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 6)
    many = core.collapse(corpus.shards(), start(core), 3)
    assert many.topics.tolist() == one.topics.tolist()
    assert trajectory(many, range(6)) == trajectory(one, range(6))
