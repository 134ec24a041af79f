"""Retrieval by topics and words, against plain dense arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softcount.core import store
from softcount.core.errors import LearnerError, StoreError
from softcount.text.bags import Bags
from softcount.topics import PLSA, retrieval
from softcount.topics.retrieval import DocumentIndex, TfIdf

WORDS, TOPICS = 5, 3
COUNTS = st.integers(0, 3).map(float)


def tables(rows: int, columns: int, entries: Any) -> Any:
    return arrays(np.float64, (rows, columns), elements=entries)


@st.composite
def searches(draw: Any) -> tuple[Any, Any, Any, Any]:
    """Counts and topic vectors of documents and queries, with ties and empty ones."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    return (
        draw(tables(n, WORDS, COUNTS)),
        draw(tables(n, TOPICS, shares)),
        draw(tables(m, WORDS, COUNTS)),
        draw(tables(m, TOPICS, shares)),
    )


def cosine(a: Any, b: Any) -> float:
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size else 0.0


def expected(x: Any, theta: Any, q: Any, asked: Any, words: float) -> Any:
    """The scores, one by one, from the equations."""
    idf = 1 + np.log((1 + len(x)) / (1 + (x > 0).sum(axis=0)))
    scores = np.zeros((len(q), len(x)))
    for i in range(len(q)):
        for d in range(len(x)):
            by_words = cosine(np.log(1 + q[i]) * idf, np.log(1 + x[d]) * idf)
            topics = cosine(asked[i], theta[d]) if x[d].any() and q[i].any() else 0.0
            scores[i, d] = (1 - words) * topics + words * by_words
    return scores


def made(search: Any) -> tuple[DocumentIndex, Bags, Any]:
    x, theta, q, asked = search
    return DocumentIndex.of(Bags.of(x), theta), Bags.of(q), asked


@given(searches(), st.sampled_from([0.0, 0.25, 1.0]))
def test_scores_are_those_of_the_equations(search: Any, words: float) -> None:
    index, queries, asked = made(search)
    hits = index.rank(queries, asked, n=len(index), words=words)
    wanted = expected(*search, words)
    for i, hit in enumerate(hits):
        if not search[2][i].any():
            assert hit == []
            continue
        assert sorted(d for d, _ in hit) == list(range(len(index)))
        for d, score in hit:
            assert score == pytest.approx(wanted[i, d], abs=1e-12)


@given(searches(), st.integers(1, 10))
def test_best_first_and_equals_by_number(search: Any, n: int) -> None:
    index, queries, asked = made(search)
    for few, everything in zip(
        index.rank(queries, asked, n, 0.5), index.rank(queries, asked, 100, 0.5), strict=True
    ):
        assert few == everything[:n]
        assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))


@given(searches())
def test_copies_of_a_document_tie_exactly(search: Any) -> None:
    x, theta, q, asked = search
    twice = (np.vstack([x, x]), np.vstack([theta, theta]), q, asked)
    index, queries, asked = made(twice)
    for hit in index.rank(queries, asked, 2 * len(x), 0.3):
        scores = dict(hit)
        assert all(scores[d] == scores[d + len(x)] for d in range(len(x)) if hit)


@given(searches())
def test_queries_are_answered_alike_alone_and_together(search: Any) -> None:
    index, queries, asked = made(search)
    together = index.rank(queries, asked, 100, 0.5)
    for i, hit in enumerate(together):
        assert index.rank(queries.take(np.array([i])), asked[[i]], 100, 0.5) == [hit]


@pytest.mark.parametrize("cells", [1, 60, 90, 10**6])
def test_the_size_of_blocks_changes_no_bit(monkeypatch: Any, cells: int) -> None:
    rng = np.random.default_rng(0)
    x, q = rng.poisson(0.7, (30, 9)), rng.poisson(0.7, (7, 9))
    index, queries = DocumentIndex.of(Bags.of(x), rng.dirichlet(np.ones(4), 30)), Bags.of(q)
    asked = rng.dirichlet(np.ones(4), 7)
    whole = index.rank(queries, asked, 30, 0.4)
    monkeypatch.setattr(retrieval, "CELLS", cells)
    assert index.rank(queries, asked, 30, 0.4) == whole


def test_blocks_hold_no_more_than_they_may(monkeypatch: Any) -> None:
    sizes = []
    by_topics = DocumentIndex._topic_cosines

    def noted(self: DocumentIndex, asked: Any) -> Any:
        sizes.append(len(asked))
        return by_topics(self, asked)

    monkeypatch.setattr(DocumentIndex, "_topic_cosines", noted)
    monkeypatch.setattr(retrieval, "CELLS", 25)
    index = DocumentIndex.of(Bags.of(np.ones((10, 2))), np.ones((10, 2)))
    index.rank(Bags.of(np.ones((5, 2))), np.ones((5, 2)))
    assert sizes == [2, 2, 1]


@given(tables(4, WORDS, COUNTS), tables(TOPICS, WORDS, st.sampled_from([0.0, 0.1, 0.6])))
def test_vectors_by_way_of_words(x: Any, topics: Any) -> None:
    weights = np.array([0.5, 0.3, 0.2])
    found = TfIdf.of(Bags.of(x)).topic_vectors(Bags.of(x), topics, weights)
    idf = 1 + np.log(5 / (1 + (x > 0).sum(axis=0)))
    for d in range(4):
        weighed = np.log(1 + x[d]) * idf
        weighed = weighed / (np.linalg.norm(weighed) or 1.0)
        vector = np.zeros(TOPICS)
        for w in range(WORDS):
            joint = weights * topics[:, w]
            if joint.sum():
                vector += weighed[w] * joint / joint.sum()
        assert found[d] == pytest.approx(vector, abs=1e-12)


def test_topics_find_what_has_none_of_the_words() -> None:
    notes = ["cup match goal", "goal cup team", "oil price rise", "price oil market"]
    model = PLSA(2).fit(notes)
    documents, queries = (model._read_documents(texts, first=False) for texts in (notes, ["team"]))
    tf_idf = TfIdf.of(documents)
    vectors, asked = (
        tf_idf.topic_vectors(b, model.topics_, model.weights_) for b in (documents, queries)
    )
    index = DocumentIndex.of(documents, vectors)
    [by_topics] = index.rank(queries, asked, 4)
    [by_words] = index.rank(queries, asked, 4, words=1.0)
    assert {d for d, _ in by_topics[:2]} == {0, 1}
    assert by_topics[1][1] > 0.9
    assert [d for d, score in by_words if score > 0] == [1]


def stored(index: DocumentIndex, **changes: Any) -> store.Stored:
    known = {**index.arrays(), **{f"index.{name}": value for name, value in changes.items()}}
    return store.Stored("PLSA", known, {}, "")


def an_index() -> DocumentIndex:
    x = [[1, 0, 2], [0, 3, 0], [0, 0, 0]]
    return DocumentIndex.of(Bags.of(x), np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))


@given(searches())
def test_a_file_gives_back_the_index(search: Any) -> None:
    index, queries, asked = made(search)
    again = DocumentIndex.restore(stored(index), TOPICS, WORDS)
    assert again.rank(queries, asked, 9, 0.5) == index.rank(queries, asked, 9, 0.5)


def test_an_index_goes_through_a_real_file(tmp_path: Path) -> None:
    index = an_index()
    store.write(tmp_path / "m.softcount", "story", index.arrays(), {}, "a run")
    again = DocumentIndex.restore(store.read(tmp_path / "m.softcount"), 2, 3)
    query, asked = Bags.of([[1, 0, 1]]), np.array([[0.5, 0.5]])
    assert again.rank(query, asked, 3, 0.5) == index.rank(query, asked, 3, 0.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"borders": np.array([0, 1, 2])},
        {"borders": np.array([0, 2, 1, 3])},
        {"borders": np.array([1, 1, 2, 3])},
        {"borders": np.array([0, 1, 2, 4])},
        {"borders": np.array([0.0, 1.0, 2.0, 3.0])},
        {"numbers": np.array([0, 1, 3])},
        {"numbers": np.array([0, -1, 0])},
        {"numbers": np.array([[0, 1, 0]])},
        {"values": np.array([0.5, 1.0])},
        {"values": np.array([0.5, 1.5, 0.1])},
        {"values": np.array([0.5, np.nan, 0.1])},
        {"rows": np.zeros((3, 3))},
        {"rows": np.full((2, 3), -1.0)},
        {"idf": np.zeros(3)},
        {"idf": np.ones(4)},
    ],
)
def test_a_damaged_file_is_refused(changes: dict[str, Any]) -> None:
    assert len(DocumentIndex.restore(stored(an_index()), 2, 3)) == 3
    with pytest.raises(StoreError):
        DocumentIndex.restore(stored(an_index(), **changes), 2, 3)


@pytest.mark.parametrize("words", [-0.1, 1.1, float("nan"), "half", True])
def test_the_weight_of_words_is_a_share(words: Any) -> None:
    with pytest.raises(LearnerError, match="words="):
        an_index().rank(Bags.of([[1, 0, 0]]), np.array([[1.0, 0.0]]), words=words)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_as_many_hits_as_one_can_count(n: Any) -> None:
    with pytest.raises(LearnerError, match="n="):
        an_index().rank(Bags.of([[1, 0, 0]]), np.array([[1.0, 0.0]]), n=n)
