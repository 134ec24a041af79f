"""Archives with the words of another: the same columns, whatever words the documents have."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from typer.testing import CliRunner

from softcount.cli.app import app
from softcount.core.errors import DataError
from softcount.text import archive as building
from softcount.text.archive import Archive

OLD = ["The cat sat.", "A dog sat: the dog.", "été"]
NEW = ["the DOG and the bird", "", "nothing known", "sat sat"]


def whole(archive: Archive) -> Any:
    return sparse.vstack([part.bags.matrix for part in archive.shards()]).toarray()


@pytest.fixture
def old(tmp_path: Path) -> Archive:
    return Archive.build(OLD, tmp_path / "old")


def test_new_texts_have_the_columns_of_the_old_ones(old: Archive, tmp_path: Path) -> None:
    new = Archive.build(iter(NEW), tmp_path / "new", like=old)
    assert new.vocabulary.tolist() == old.vocabulary.tolist()  # type: ignore[union-attr]
    np.testing.assert_array_equal(whole(new), old.vectorizer().transform(NEW).toarray())
    assert new.tokens == 5
    new.verify()
    assert Archive.open(tmp_path / "new").n_words == old.n_words


def test_an_archive_like_itself_is_the_same(old: Archive, tmp_path: Path) -> None:
    again = Archive.build(OLD, tmp_path / "again", like=old)
    for path in old.path.iterdir():
        assert (again.path / path.name).read_bytes() == path.read_bytes()


def test_words_keep_the_order_they_are_given_in(tmp_path: Path) -> None:
    archive = Archive.build(NEW, tmp_path / "a", like=["the", "zebra", "dog"])
    assert archive.vocabulary.tolist() == ["the", "zebra", "dog"]  # type: ignore[union-attr]
    np.testing.assert_array_equal(whole(archive), [[2, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])


def test_texts_are_cut_as_the_others_were(tmp_path: Path) -> None:
    spaced = Archive.build(["Cat. sat", "cat"], tmp_path / "old", tokens=True)
    new = Archive.build(["Cat. cat Cat."], tmp_path / "new", like=spaced)
    np.testing.assert_array_equal(whole(new), [[2, 1, 0]])  # Cat., cat, sat
    cut = Archive.build([["Cat.", "a b"]], tmp_path / "cut")
    newer = Archive.build([("a b", "a"), ()], tmp_path / "newer", like=cut)
    np.testing.assert_array_equal(whole(newer), [[0, 1], [0, 0]])


@settings(deadline=None, max_examples=25)
@given(
    documents=st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=9),
    words=st.lists(st.sampled_from("abcxyz"), min_size=1, unique=True),
    shuffle=st.none() | st.integers(0, 3),
    most=st.integers(1, 4),
)
def test_any_words_in_any_parts(
    documents: list[list[str]], words: list[str], shuffle: int | None, most: int
) -> None:
    expected = np.array([[document.count(word) for word in words] for document in documents])
    limits = {"AT_ONCE": 3, "SHARD_ENTRIES": 4, "SHARD_DOCUMENTS": 2}
    table = building.DocumentFrequencies
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(building, **limits, DocumentFrequencies=lambda path: table(path, most=most)),
    ):
        archive = Archive.build(documents, Path(folder) / "a", like=words, shuffle=shuffle)
        np.testing.assert_array_equal(whole(archive), expected[archive.origin])
        assert list(archive.vocabulary) == words  # type: ignore[arg-type]


def test_counts_are_matched_by_the_names_of_their_columns(old: Archive, tmp_path: Path) -> None:
    table = np.array([[1, 2, 3], [0, 4, 0]])
    new = Archive.build(table, tmp_path / "a", vocabulary=["sat", "bird", "dog"], like=old)
    columns = old.vocabulary.tolist()  # type: ignore[union-attr]
    expected = np.zeros((2, len(columns)))
    expected[:, [columns.index("sat"), columns.index("dog")]] = table[:, [0, 2]]
    np.testing.assert_array_equal(whole(new), expected)


def test_columns_without_names_must_be_as_many(tmp_path: Path) -> None:
    nameless = Archive.build(np.eye(3), tmp_path / "old")
    same = Archive.build(np.ones((2, 3)), tmp_path / "new", like=nameless)
    np.testing.assert_array_equal(whole(same), np.ones((2, 3)))
    with pytest.raises(DataError, match="a block of 2 words, while others have 3"):
        Archive.build(np.eye(2), tmp_path / "bad", like=nameless)
    with pytest.raises(DataError, match="no names for its words, so texts"):
        Archive.build(NEW, tmp_path / "bad", like=nameless)
    with pytest.raises(DataError, match="but these columns have"):
        Archive.build(np.eye(3), tmp_path / "bad", like=nameless, vocabulary=["a", "b", "c"])


BAD = [
    (NEW, {"min_count": 2}, "like determines the vocabulary"),
    (NEW, {"stop_words": ["the"]}, "like determines the vocabulary"),
    (NEW, {"tokens": True}, "was tokenised in another way ('words', but these documents 'spaces')"),
    (
        [["the", "dog"]],
        {},
        "was tokenised in another way ('words', but these documents 'as_it_is')",
    ),
    (np.eye(6), {}, "columns without names cannot be matched"),
    (NEW, {"like": "old"}, "like is 'old', a path"),
    (NEW, {"like": []}, "like has no words"),
    (NEW, {"like": ["a", "a"]}, "a word twice"),
    (NEW, {"like": ["a", 7]}, "has 7 among its words"),
]


@pytest.mark.parametrize(("documents", "options", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_input_is_named(
    old: Archive, tmp_path: Path, documents: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        Archive.build(documents, tmp_path / "a", **{"like": old, **options})
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == [old.path]


def test_the_command(old: Archive, tmp_path: Path) -> None:
    texts = tmp_path / "new.txt"
    texts.write_text("\n".join(NEW) + "\n")
    command = ["corpus", "build", str(texts), "-o", str(tmp_path / "new"), "--like"]
    done = CliRunner().invoke(app, [*command, str(old.path)])
    assert done.exit_code == 0, done.stderr
    new = Archive.open(tmp_path / "new")
    np.testing.assert_array_equal(whole(new), old.vectorizer().transform(NEW).toarray())
    refused = CliRunner().invoke(app, [*command, str(old.path), "--min-count", "2"])
    assert refused.exit_code == 2
    assert "--like does not go with --min-count" in refused.stderr
    absent = CliRunner().invoke(app, [*command, str(tmp_path / "no")])
    assert absent.exit_code == 1
    assert "there is no archive" in absent.stderr
