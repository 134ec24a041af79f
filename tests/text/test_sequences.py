"""Sentences as numbers of words, against plain Python splitting."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text import lines as reading
from softcount.text.sequences import Sequences, read_sequences, sequences
from softcount.text.vocabulary import Vocabulary
from tests import real

letters = st.sampled_from("abÉΣ中🙂|_/\u0301\u200b \t\r\u00a0\u2028\u3000\x1c")
texts = st.lists(st.text(letters, max_size=10), min_size=1, max_size=8)
words = st.text(letters, min_size=1, max_size=4)
lists = st.lists(st.lists(words, max_size=5), min_size=1, max_size=6)


def demand_numbered(some: Sequences, expected: list[list[str]], known: list[str]) -> None:
    """These sentences, words numbered as they first appear, known ones before."""
    every = list(dict.fromkeys([*known, *(word for sentence in expected for word in sentence)]))
    assert some.words == every
    assert some.tokens.tolist() == [every.index(word) for line in expected for word in line]
    assert some.lengths.tolist() == [len(line) for line in expected]
    assert (some.tokens.dtype, some.indptr.dtype) == (np.int32, np.int64)
    assert [some.sentence(n) for n in range(len(some))] == expected


@given(texts, st.booleans())
@settings(deadline=None)
def test_texts_are_cut_as_python_cuts_them(lines: list[str], lowercase: bool) -> None:
    cut = [(line.lower() if lowercase else line).split() for line in lines]
    demand_numbered(sequences(lines, lowercase=lowercase), cut, [])


@given(lists, st.lists(words, unique=True, max_size=4))
@settings(deadline=None)
def test_lists_stay_as_they_are(given_lists: list[list[str]], known: list[str]) -> None:
    demand_numbered(sequences(given_lists, like=known), given_lists, known)
    as_tuples = (tuple(sentence) for sentence in given_lists)
    demand_numbered(sequences(as_tuples, like=Vocabulary(known)), given_lists, known)


@given(lists, st.data())
@settings(deadline=None)
def test_selected_sentences_keep_words_and_names(
    given_lists: list[list[str]], data: st.DataObject
) -> None:
    some = sequences(given_lists)
    chosen = data.draw(st.lists(st.sampled_from(range(len(some))), max_size=5))
    part = some.select(np.array(chosen, int))
    assert [part.sentence(n) for n in range(len(part))] == [given_lists[n] for n in chosen]
    assert [part.name(n) for n in range(len(part))] == [f"sentence {n}" for n in chosen]
    assert part.words == some.words
    again = part.select(np.arange(len(part))[::-1])
    assert [again.name(n) for n in range(len(again))] == [f"sentence {n}" for n in chosen[::-1]]


def test_sequences_as_they_are_or_with_other_numbers() -> None:
    some = sequences([["The", "cat"], [], ["the", "dog"]]).select([0, 2])
    assert sequences(some) is some
    other = sequences(some, like=["dog", "the"], lowercase=True)
    assert other.words == ["dog", "the", "cat"]
    assert other.tokens.tolist() == [1, 2, 1, 0]
    assert other.name(1) == "sentence 2"


@pytest.mark.parametrize("all_empty", [["", " \u3000"], [[], ()]])
def test_only_empty_sentences(all_empty: list[Any]) -> None:
    some = sequences(all_empty)
    assert some.lengths.tolist() == [0, 0]
    assert some.words == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "no sentences in the data"),
        ("the dog", "the data are one text.*\n.*read_sequences"),
        (b"the dog", "the data are one text"),
        (7, "the data are 7"),
        (["a", ["b"]], r"^sentence 1 is \['b'\]"),
        ([["a"], "b"], "^sentence 1 is 'b'"),
        ([["a"], None], "^sentence 1 is None"),
        (["a", b"b"], "^sentence 1 is b'b'.*\n.*decode"),
        ([["a"], ["b", 3]], "^sentence 1 has 3 among its words"),
        ([["a"], [("b", "NN")]], r"^sentence 1 has \('b', 'NN'\) among its words"),
        ([["a"], [["b"]]], "^sentence 1 has something else among its words"),
        ([["a"], [""]], "^sentence 1 has '' among its words"),
        (["a", "b\0"], "^sentence 1 has a NUL"),
        (["a", "\ud800"], "^sentence 1 is not UTF-8"),
    ],
)
def test_bad_data(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        sequences(data)


# files
@given(texts, st.sampled_from([1, 5, 1 << 20]), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=50)
def test_files_are_read_a_line_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], piece: int, packed: bool, mark: bool
) -> None:
    path = tmp_path_factory.mktemp("sequences") / "text"
    raw = b"\xef\xbb\xbf" * mark + ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", piece)
        some = read_sequences(path, like=["b"])
    demand_numbered(some, [line.split() for line in lines], ["b"])
    assert some.name(0) == f"{path}:1"


def test_blank_lines_keep_their_place(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\na b\r\n\n\nC")
    some = read_sequences(path, lowercase=True)
    assert [some.sentence(n) for n in range(len(some))] == [[], ["a", "b"], [], [], ["c"]]
    assert some.select([4]).name(0) == f"{path}:5"
    assert sequences(some, like=["x"]).select([4]).name(0) == f"{path}:5"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no sentences in .*bad"),
        (b"a\nb\ncaf\xe9\n", "bad:3 is not UTF-8 text: b'caf.xe9'"),
        (b"a\nb\0\n", "bad:2 has a NUL"),
        (gzip.compress(b"a b\n" * 99, mtime=0)[:-9], "bad cannot be unpacked"),
    ],
)
@pytest.mark.parametrize("piece", [2, 1 << 20])
def test_bad_files(
    tmp_path: Path, content: bytes, says: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE", piece)
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        read_sequences(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_sequences(tmp_path / "missing")


def test_a_real_corpus(tmp_path: Path) -> None:
    sentences = [[word for word, _ in s] for s in real.tagged("ud/en_atis-ud-dev.conllu.gz", 500)]
    path = tmp_path / "atis"
    path.write_text("\n".join(map(" ".join, sentences)), encoding="utf-8")
    demand_numbered(read_sequences(path), sentences, [])
