"""Topic models of documents on disk: what is learned does not depend on where documents lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import softcount as sc
from softcount.corpus import building
from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.errors import DataError
from softcount.topics import LDA, PLSA
from softcount.topics.anchors import anchor_topics
from softcount.topics.data import Archived, Documents

TEXTS = ["cup goal team", "goal team match", "oil price", "", "market price oil rise"] * 6


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
        kind(3, init=start, scouts=0, learner=sc.EM(max_iter=15, tol=0)).fit(data)
        for data in (archive, counts())
    )
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(on_disk.trace_.objective, in_memory.trace_.objective, rtol=1e-9)


def test_mini_batches_are_those_of_a_corpus_in_memory(archive: Archive) -> None:
    learner = sc.OnlineEM(max_iter=3, batch_size=16)
    on_disk, in_memory = (LDA(3, scouts=0, learner=learner).fit(x) for x in (archive, counts()))
    np.testing.assert_allclose(on_disk.topics_, in_memory.topics_, rtol=1e-7, atol=1e-12)


def test_anchors_of_an_archive_and_of_memory(archive: Archive) -> None:
    on_disk, in_memory = (
        anchor_topics(corpus.shards(), 3, np.random.default_rng(1))
        for corpus in (Archived(archive), Documents(Bags.of(counts())))
    )
    np.testing.assert_allclose(on_disk, in_memory, rtol=1e-6, atol=1e-9)


def test_new_documents_in_an_archive_like_the_old_one(tmp_path: Path) -> None:
    old = Archive.build(TEXTS, tmp_path / "old")
    model = LDA(2).fit(old)
    new = ["goal unheard cup", "", "price of oil"]
    like = Archive.build(new, tmp_path / "new", like=old)
    np.testing.assert_allclose(model.transform(like), model.transform(new))
    other = Archive.build(new, tmp_path / "other")
    with pytest.raises(DataError, match="other words than the model"):
        model.transform(other)


def test_words_are_those_of_the_archive(tmp_path: Path) -> None:
    old = Archive.build(TEXTS, tmp_path / "old")
    model = LDA(2).fit(old)
    assert model.word_names().tolist() == old.vocabulary.tolist()  # type: ignore[union-attr]
    np.testing.assert_allclose(model.fold_learned(), model.transform(TEXTS))
