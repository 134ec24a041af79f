"""Archives: what goes in comes out, however it is cut, and nothing else comes in."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core.errors import DataError, StoreError
from softcount.text import archive as building
from softcount.text.archive import Archive, DocumentFrequencies
from softcount.text.bags import Bags
from tests import real

TEXTS = ["The cat sat.", "", "A dog sat: the dog.", "   ", "No cat, no dog", "ÉTÉ naïve"]


@contextmanager
def small_parts(
    at_once: int = 4, most_words: int = 3, entries: int = 5, documents: int = 3
) -> Iterator[None]:
    """Every limit so low that a few documents go beyond it."""
    limits = {"AT_ONCE": at_once, "SHARD_ENTRIES": entries, "SHARD_DOCUMENTS": documents}
    with patch.multiple(
        building, **limits, DocumentFrequencies=partial(DocumentFrequencies, most=most_words)
    ):
        yield


def whole(archive: Archive) -> Any:
    """All counts, in the order of the archive."""
    return stacked(archive).toarray()


def stacked(archive: Archive) -> Any:
    return sparse.vstack([part.bags.matrix for part in archive.shards()], format="csr")


def counted(
    documents: Sequence[Sequence[str]], keep: Callable[[str, int], bool] = lambda word, n: True
) -> tuple[list[str], Any]:
    """The same by a plain loop: words in alphabetical order, counts."""
    having = Counter(word for document in documents for word in set(document))
    words = sorted(word for word, n in having.items() if keep(word, n))
    table = [[document.count(word) for word in words] for document in documents]
    return words, np.array(table, dtype=float).reshape(len(documents), len(words))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.build(TEXTS, tmp_path / "archive")


# what goes in comes out
def test_counts_are_those_of_the_vectorizer(archive: Archive) -> None:
    vectorizer = CountVectorizer(token_pattern=r"(?u)\b\w+\b")
    expected = vectorizer.fit_transform(TEXTS).toarray()
    assert archive.vocabulary is not None
    assert archive.vocabulary.tolist() == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(whole(archive), expected)
    assert (len(archive), archive.n_words, archive.tokens) == (*expected.shape, expected.sum())
    np.testing.assert_array_equal(archive.matrix(0).toarray(), expected)


WORD = st.text(min_size=0, max_size=3)  # newlines, tabs, surrogates, the empty word
DOCUMENTS = st.lists(st.lists(WORD, max_size=6).map(tuple), min_size=1, max_size=12)


@settings(deadline=None, max_examples=25)
@given(documents=DOCUMENTS, at_once=st.integers(1, 9), most_words=st.integers(1, 9))
def test_any_words_in_any_parts(
    documents: list[tuple[str, ...]], at_once: int, most_words: int
) -> None:
    words, expected = counted(documents)
    with tempfile.TemporaryDirectory() as folder, small_parts(at_once, most_words):
        path = Path(folder) / "a"
        if not words:
            with pytest.raises(DataError, match="no words are left"):
                Archive.build(documents, path)
            return
        archive = Archive.build(iter(documents), path)
        assert list(Archive.open(path).vocabulary) == words  # type: ignore[arg-type]
        np.testing.assert_array_equal(whole(archive), expected)
        archive.verify()


@settings(deadline=None, max_examples=25)
@given(
    documents=st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=12),
    min_count=st.integers(1, 3),
    max_share=st.sampled_from([0.3, 0.5, 1.0]),
    max_words=st.none() | st.integers(1, 5),
    stop=st.sets(st.sampled_from("abc")),
)
def test_which_words_count(
    documents: list[list[str]],
    min_count: int,
    max_share: float,
    max_words: int | None,
    stop: set[str],
) -> None:
    having = Counter(word for document in documents for word in set(document))
    passing = {
        word
        for word, n in having.items()
        if n >= min_count and n / len(documents) <= max_share and word not in stop
    }
    best = sorted(passing, key=lambda word: (-having[word], word))[:max_words]
    words, expected = counted(documents, lambda word, n: word in best)
    wanted = {"min_count": min_count, "max_share": max_share, "max_words": max_words}
    with tempfile.TemporaryDirectory() as folder, small_parts():
        path = Path(folder) / "a"
        if not words:
            with pytest.raises(DataError, match="no words are left"):
                Archive.build(documents, path, **wanted, stop_words=stop)
            return
        archive = Archive.build(documents, path, **wanted, stop_words=stop)
        assert list(archive.vocabulary) == words  # type: ignore[arg-type]
        np.testing.assert_array_equal(whole(archive), expected)


def test_words_between_spaces(tmp_path: Path) -> None:
    archive = Archive.build(["Apple iPod .", "iPod"], tmp_path / "a", tokens=True)
    assert list(archive.vocabulary) == [".", "Apple", "iPod"]  # type: ignore[arg-type]


def test_new_texts_are_counted_the_same_way(archive: Archive) -> None:
    counts = archive.vectorizer().transform(["The DOG, the été; unheard-of"]).toarray()[0]
    assert archive.vocabulary is not None
    assert dict(zip(archive.vocabulary[counts > 0], counts[counts > 0], strict=True)) == {
        "the": 2,
        "dog": 1,
        "été": 1,
    }


def blocks_of(matrix: Any, size: int) -> Iterator[Any]:
    for first in range(0, matrix.shape[0], size):
        yield matrix[first : first + size]


@pytest.mark.parametrize("large", [65_535, 65_536, 0.25, 1e15], ids=str)
def test_blocks_of_counts_and_counts_that_are_not_small(tmp_path: Path, large: float) -> None:
    matrix = sparse.random(30, 7, 0.4, format="csr", rng=np.random.default_rng(0))
    matrix.data = np.ceil(matrix.data * 3)
    matrix.data[len(matrix.data) // 2] = large  # the counts before it are written already
    with small_parts():
        archive = Archive.build(blocks_of(matrix, 4), tmp_path / "a")
    np.testing.assert_array_equal(whole(archive), matrix.toarray())
    assert archive.vocabulary is archive.vectorizer() is None
    assert archive.facts.counts == ("<u2" if large == 65_535 else "<f8")
    archive.verify()


def test_one_matrix_or_an_array_is_one_block(tmp_path: Path) -> None:
    table = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]])
    for n, data in enumerate([table, sparse.csc_matrix(table), {"x": sparse.coo_array(table)}]):
        archive = Archive.build(data, tmp_path / str(n))
        np.testing.assert_array_equal(whole(archive), table)
    assert archive.name(2) == "x:3"


def test_blocks_do_not_change_and_explicit_zeros_go(tmp_path: Path) -> None:
    block = sparse.csr_matrix(([1.0, 0.0, 2.0, 1.0], [1, 0, 1, 0], [0, 3, 4]), shape=(2, 2))
    archive = Archive.build([block], tmp_path / "a")
    assert block.nnz == 4
    assert archive.facts.n_entries == 2
    np.testing.assert_array_equal(whole(archive), [[0, 3], [1, 0]])


def test_columns_with_names_can_be_left_out(tmp_path: Path) -> None:
    table = np.array([[1, 0, 2], [0, 0, 1]])
    archive = Archive.build(table, tmp_path / "a", vocabulary=["z", "y", "x"], min_count=1)
    assert list(archive.vocabulary) == ["z", "x"]  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole(archive), table[:, [0, 2]])


def test_counts_that_are_all_zero(tmp_path: Path) -> None:
    archive = Archive.build(np.zeros((3, 2)), tmp_path / "a")
    np.testing.assert_array_equal(whole(archive), np.zeros((3, 2)))


@pytest.mark.slow
def test_real_text(tmp_path: Path) -> None:
    texts = real.lines("smart_ir/med.docs.tsv.gz")
    with small_parts(at_once=5_000, most_words=1_000, entries=4_000, documents=90):
        archive = Archive.build(texts, tmp_path / "a", shuffle=5)
    assert len(archive) == len(texts)
    assert len(archive.shards()) > 10
    expected = archive.vectorizer().transform(texts)[archive.origin]
    assert (stacked(archive) != expected).nnz == 0
    assert archive.tokens == expected.sum() > 100_000


# parts
def test_shards_depend_on_the_data_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    matrix = sparse.csr_matrix(rng.poisson(0.4, (50, 6)))
    with small_parts():
        cuts = [
            Archive.build(blocks_of(matrix, size), tmp_path / str(size)).facts.shards
            for size in (1, 7, 50)
        ]
    assert cuts[0] == cuts[1] == cuts[2]
    entries, documents = np.diff(matrix.indptr[cuts[0]]), np.diff(cuts[0])
    assert documents.max() <= 3
    assert (entries[documents > 1] <= 5).all()
    for first, last in zip(cuts[0][:-2], cuts[0][1:-1], strict=True):  # none could be longer
        assert last - first == 3 or matrix.indptr[last + 1] - matrix.indptr[first] > 5


def test_batches_are_those_of_a_corpus_in_memory(tmp_path: Path) -> None:
    matrix = sparse.csr_matrix(np.random.default_rng(2).poisson(0.5, (23, 5)))
    archive = Archive.build(matrix, tmp_path / "a")
    order = np.random.default_rng(9).permutation(23)
    parts = archive.shards(5, 9)
    assert [len(part) for part in parts] == [5, 5, 5, 5, 3]
    for part, numbers in zip(parts, np.split(order, range(5, 23, 5)), strict=True):
        expected = Bags.of(matrix).take(numbers)
        np.testing.assert_array_equal(part.numbers, numbers)
        for got, said in zip(part.bags.by_document, expected.by_document, strict=True):
            assert got.dtype == said.dtype
            np.testing.assert_array_equal(got, said)
        np.testing.assert_array_equal(part.bags.by_word.columns, expected.by_word.columns)


def test_parts_keep_nothing(archive: Archive) -> None:
    parts = archive.shards()
    first = parts[0]
    assert first.bags is first.bags
    assert parts[0] is not first
    assert parts[-1].numbers.tolist() == first.numbers.tolist()
    assert len(parts[:5]) == 1
    with pytest.raises(IndexError):
        parts[1]


def test_a_copy_in_another_process_reads_the_same(archive: Archive) -> None:
    np.testing.assert_array_equal(whole(pickle.loads(pickle.dumps(archive))), whole(archive))


def test_sample(tmp_path: Path) -> None:
    archive = Archive.build(np.arange(1, 101).reshape(100, 1), tmp_path / "a")
    drawn = archive.sample(10, 3).toarray()[:, 0]
    assert len(set(drawn)) == 10
    assert sorted(drawn) == drawn.tolist()
    assert drawn.tolist() == archive.sample(10, 3).toarray()[:, 0].tolist()
    assert drawn.tolist() != archive.sample(10, 4).toarray()[:, 0].tolist()
    assert archive.sample(1000).shape == (100, 1)


# order and names
def test_shuffled_documents_know_where_they_were(tmp_path: Path) -> None:
    texts = [f"w{i}" for i in range(40)]
    with small_parts():
        plain = Archive.build(texts, tmp_path / "plain")
        mixed = Archive.build(texts, tmp_path / "mixed", shuffle=1)
        other = Archive.build(texts, tmp_path / "other", shuffle=2)
    assert sorted(mixed.origin) == list(range(40)) == plain.origin.tolist()
    assert mixed.origin.tolist() != other.origin.tolist() != sorted(other.origin)
    back = np.empty_like(whole(plain))
    back[mixed.origin] = whole(mixed)
    np.testing.assert_array_equal(back, whole(plain))
    assert mixed.name(3) == f"document {mixed.origin[3]}"


def test_batches_of_a_shuffled_archive_are_runs(tmp_path: Path) -> None:
    archive = Archive.build([f"w{i}" for i in range(23)], tmp_path / "a", shuffle=1)
    parts = [part.numbers.tolist() for part in archive.shards(5, 0)]
    assert sorted(chain(*parts)) == list(range(23))
    assert all(part == list(range(part[0], part[0] + len(part))) for part in parts)
    orders = {tuple(part.numbers[0] for part in archive.shards(5, s)) for s in range(5)}
    assert len(orders) > 1


def test_documents_are_called_by_file_and_line(tmp_path: Path) -> None:
    files = {"a.txt": ["x", ""], "empty.txt": [], "b.txt": ["y", "z"]}
    archive = Archive.build({name: iter(texts) for name, texts in files.items()}, tmp_path / "a")
    assert [archive.name(d) for d in range(4)] == ["a.txt:1", "a.txt:2", "b.txt:1", "b.txt:2"]
    assert archive.facts.sources == [("a.txt", 2), ("empty.txt", 0), ("b.txt", 2)]


@pytest.mark.parametrize("shuffle", [None, 4])
def test_the_same_lines_give_the_same_bytes(tmp_path: Path, shuffle: int | None) -> None:
    with small_parts():
        Archive.build(TEXTS, tmp_path / "one", shuffle=shuffle)
        Archive.build(iter(TEXTS), tmp_path / "two", shuffle=shuffle)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    with small_parts(at_once=100, most_words=100):  # nor does it matter what memory there was
        Archive.build(TEXTS, tmp_path / "three", shuffle=shuffle)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


# all or nothing
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_build_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def texts() -> Iterator[str]:
        yield from ["a b c", "d e f", "g h i"]
        assert any(tmp_path.iterdir())  # it had begun
        raise error

    with small_parts(), pytest.raises(error):
        Archive.build(texts(), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_while_writing(tmp_path: Path) -> None:
    def stop(doing: str, documents: int) -> None:
        if doing == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Archive.build(TEXTS, tmp_path / "a", on_progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays(tmp_path: Path) -> None:
    Archive.build(["a"], tmp_path / "a")
    before = contents(tmp_path / "a")
    with pytest.raises(StoreError, match="already exists"):
        Archive.build(["b"], tmp_path / "a")
    assert contents(tmp_path / "a") == before
    with pytest.raises(StoreError, match="cannot write"):
        Archive.build(["b"], tmp_path / "no" / "folder")


def test_progress(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    with small_parts():
        Archive.build(TEXTS, tmp_path / "a", on_progress=lambda *said: told.append(said))
    assert [n for doing, n in told if doing == "reading"][-1] == len(TEXTS)
    assert told[-1] == ("writing", len(TEXTS))
    assert len(told) > 4


# bad input
def test_documents_that_are_not_there(archive: Archive) -> None:
    for numbers in ([6], [-1]):
        with pytest.raises(DataError, match="there is no document"):
            archive.bags(np.array(numbers))
    with pytest.raises(DataError, match="batch_size=0"):
        archive.shards(0)


def test_the_meta_file_is_plain_json(archive: Archive) -> None:
    said = json.loads((archive.path / "meta.json").read_bytes())
    assert (said["format_version"], said["n_documents"], said["tokens"]) == (1, 6, 14.0)
    assert str(archive.path) not in json.dumps(said)
