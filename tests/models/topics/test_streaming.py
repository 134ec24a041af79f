"""Topic models of archives: the same answers as from memory, and little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from softcount.corpus import building
from softcount.corpus.archive import Archive
from softcount.errors import DataError, LearnerError
from softcount.metrics import completion_perplexity
from tests.models.topics.common import LEARNERS
from tests.oracles import plain_topics

X, TOPICS = plain_topics.documents(n=120, V=40)
UNSEEN = plain_topics.documents(n=160, V=40)[0][120:]
TEXTS = ["cup goal team", "goal team match", "oil price", "", "market price oil rise"] * 6
STREAMING = [one for one in LEARNERS if not isinstance(one, sc.TemperedEM)]
EXACT = [one for one in STREAMING if one is None or not (one.stochastic or one.e == "hard")]


def archive(path: Path, data: Any = X, shard: int = 1 << 16, **more: Any) -> Archive:
    with patch.multiple(building, SHARD_DOCUMENTS=shard):
        return Archive.build(data, path, **more)


@pytest.mark.parametrize("learner", EXACT, ids=str)
@pytest.mark.parametrize("shard", [1 << 16, 25])
def test_an_archive_teaches_what_counts_teach(learner: Any, shard: int, tmp_path: Path) -> None:
    """All that a fit does, starts and scouts included."""
    made = archive(tmp_path / "a", shard=shard)
    assert len(made.shards()) == (1 if shard > 120 else 5)
    on_disk, in_memory = (sc.LDA(3, learner=learner).fit(data) for data in (made, X))
    if shard > 120 or (learner is not None and learner.schedule.batch_size):
        np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(on_disk.documents_, in_memory.documents_, atol=1e-6)
        np.testing.assert_allclose(on_disk.weights_, in_memory.weights_, atol=1e-7)
    figures = [completion_perplexity(one.topics_, UNSEEN) for one in (on_disk, in_memory)]
    assert figures[0] == pytest.approx(figures[1], rel=1e-3)


@pytest.mark.parametrize("learner", STREAMING, ids=str)
def test_every_learner_learns_from_an_archive(learner: Any, tmp_path: Path) -> None:
    made = archive(tmp_path / "a", shard=25)
    y = [0, -1, [1, 2], -1] * 30
    model = sc.LDA(3, learner=learner).fit(made, labels=y)
    assert not model.documents_[0::4, 1:].any()
    assert not model.documents_[2::4, 0].any()
    figure = completion_perplexity(model.topics_, UNSEEN)
    assert figure < 0.9 * completion_perplexity(np.ones((1, 40)), UNSEEN)


def test_words_of_an_archive_cannot_be_held_out(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="held out"):
        sc.LDA(3, learner=sc.TemperedEM()).fit(archive(tmp_path / "a"))


@pytest.mark.parametrize("shard", [1 << 16, 25])
def test_rows_come_in_the_order_of_the_archive(shard: int, tmp_path: Path) -> None:
    plain = archive(tmp_path / "a", shard=shard)
    shuffled = archive(tmp_path / "b", shard=shard, shuffle=3)
    assert not np.array_equal(shuffled.origin, np.arange(120))
    model = sc.LDA(3).fit(X)
    wanted = model.transform(X)
    np.testing.assert_allclose(model.transform(plain), wanted, rtol=1e-9)
    back = np.empty_like(wanted)
    back[shuffled.origin] = model.transform(shuffled)
    np.testing.assert_allclose(back, wanted, rtol=1e-9)
    logs = np.empty(120)
    logs[shuffled.origin] = model.score_samples(shuffled)
    np.testing.assert_allclose(logs, model.score_samples(X), rtol=1e-9)


def test_labels_are_in_the_order_of_the_archive(tmp_path: Path) -> None:
    shuffled = archive(tmp_path / "a", shard=25, shuffle=3)
    y = np.arange(120) % 3
    on_disk = sc.PLSA(3).fit(shuffled, labels=y[shuffled.origin])
    np.testing.assert_allclose(on_disk.topics_, sc.PLSA(3).fit(X, labels=y).topics_, rtol=1e-9)


def test_documents_that_an_archive_has_can_be_found(tmp_path: Path) -> None:
    made = archive(tmp_path / "a", TEXTS)
    model = sc.LDA(2).fit(made)
    with pytest.raises(DataError, match=r"model\.index"):
        model.similar("goal")
    found = model.index(made).similar("oil price", 6, words=0.5)
    assert {number % 5 for number, _ in found} == {2}


def test_archives_with_other_words_are_refused(tmp_path: Path) -> None:
    old, other = archive(tmp_path / "a", TEXTS), archive(tmp_path / "b", ["cup goal", "tea"])
    model = sc.LDA(2).fit(old)
    for use in (model.transform, model.score_samples, model.index, model.partial_fit):
        with pytest.raises(DataError, match="other words than the model"):
            use(other)
    from_texts = sc.LDA(2).fit(TEXTS)
    with pytest.raises(DataError, match="other words"):
        from_texts.transform(other)
    np.testing.assert_allclose(from_texts.transform(old), from_texts.transform(TEXTS))
    assert model.fit(other).word_names().tolist() == ["cup", "goal", "tea"]  # fit begins anew


def test_a_document_without_probability_is_called_by_its_line(tmp_path: Path) -> None:
    made = Archive.build({"notes.txt": ["cup goal", "oil"]}, tmp_path / "a")
    start = {"topics": np.array([[0.5, 0.5, 0.0]])}
    with pytest.raises(sc.ImpossibleItem, match=r"notes\.txt:2"):
        sc.PLSA(1, init=start, scouts=0).fit(made)
    model = sc.PLSA(1).partial_fit(archive(tmp_path / "b", np.array([[1, 1, 0]])))
    with pytest.raises(sc.ImpossibleItem, match="document 1 "):
        model.partial_fit(archive(tmp_path / "c", np.array([[1, 0, 0], [0, 0, 1]])))


def test_an_archive_of_empty_documents(tmp_path: Path) -> None:
    made = archive(tmp_path / "a", np.zeros((3, 4)))
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
        archive = Archive.open(folder / name)
        data = archive if on_disk else archive.sample(len(archive))
        tracemalloc.start()
        sc.LDA(8, learner=learner, engine=sc.Local(1), scouts=0).fit(data)
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
