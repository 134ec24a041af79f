"""Which tags each word can have, from files, lines and mappings."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text.tagged import read_tag_dictionary, tag_dictionary

words = st.text("aÉ中/_ #", min_size=1, max_size=4).filter(str.strip)
tags = st.lists(st.text("NV🙂7", min_size=1, max_size=2), min_size=1, max_size=4, unique=True)
dictionaries = st.dictionaries(words, tags, min_size=1, max_size=5)


@given(dictionaries, st.sampled_from(["", "\n", "\r\n"]))
def test_both_forms_of_lines_say_the_same(given_tags: dict[str, list[str]], end: str) -> None:
    rows = [f"{word}\t{' '.join(some)}{end}" for word, some in given_tags.items()]
    counts = [
        f"{w}\t{tag}\t{n}{end}" for w, some in given_tags.items() for n, tag in enumerate(some, 1)
    ]
    assert read_tag_dictionary(rows) == given_tags
    assert read_tag_dictionary([*counts, end]) == given_tags
    assert read_tag_dictionary(rows + counts) == given_tags
    assert tag_dictionary(given_tags) == given_tags


@pytest.mark.parametrize("packed", [False, True])
def test_files(tmp_path: Path, packed: bool) -> None:
    raw = "\ufeffcafé\tNN\r\n\ncan\tMD VB  MD\ncan\tNN\t1.5".encode()
    path = tmp_path / "words.tsv"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    expected = {"café": ["NN"], "can": ["MD", "VB", "NN"]}
    assert read_tag_dictionary(path) == expected
    assert read_tag_dictionary(str(path)) == expected


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("word", "2 has 0 TABs"),
        ("word NN", "2 has 0 TABs"),
        ("a\tN\t1\t2", "2 has 3 TABs"),
        ("\tN", "2 has the word ''"),
        ("a\0\tN", "2 has the word"),
        ("a\t ", "2 has the tags ' ' for 'a'"),
        ("a\t\t3", "2 has the tags '' for 'a'"),
        ("a\tN\tV", "2: 'V' is not a count of 'N'"),
        ("a\tN V\t3", "2: '3' is not a count of 'N V'"),
        ("a\tN\t0", "2: '0' is not a count"),
        ("a\tN\t-1", "2: '-1' is not a count"),
        ("a\tN\tnan", "2: 'nan' is not a count"),
        ("a\tN\tinf", "2: 'inf' is not a count"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(DataError, match=f"^line {says}"):
        read_tag_dictionary(["x\tX", line])
    path = tmp_path / "bad.tsv"
    path.write_text(f"x\tX\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"bad.tsv:{says}"):
        read_tag_dictionary(path)


def test_bad_files_and_sources(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"a\tN\n\nb\xe9\tN\n")
    with pytest.raises(DataError, match=r"bad.tsv:3 is not UTF-8"):
        read_tag_dictionary(path)
    path.write_bytes(b"\n\n")
    with pytest.raises(DataError, match=r"no words in .*bad.tsv\n"):
        read_tag_dictionary(path)
    with pytest.raises(DataError, match="no words in the lines"):
        read_tag_dictionary([])
    with pytest.raises(DataError, match="line 1 is b'a"):
        read_tag_dictionary([b"a\tN"])  # type: ignore[list-item]
    with pytest.raises(DataError, match="cannot be read"):
        read_tag_dictionary(tmp_path / "missing")


def test_tags_of_a_set_have_an_order() -> None:
    assert tag_dictionary({"a": {"V", "N", "A"}}) == {"a": ["A", "N", "V"]}
    assert tag_dictionary({"a": ["V", "N", "V"]}) == {"a": ["V", "N"]}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([("a", ["N"])], "the tag dictionary is"),
        ({"a": "NN"}, "has 'NN' for 'a'"),
        ({"a": 3}, "has 3 for 'a'"),
        ({"a": []}, r"has \[\] for 'a'"),
        ({"a": ["N", 3]}, r"has \['N', 3\] for 'a'"),
        ({"a": ["N", ""]}, r"has \['N', ''\] for 'a'"),
        ({"a": {"N", None}}, "for 'a'"),
        ({3: ["N"]}, "has the word 3"),
    ],
)
def test_bad_mappings(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        tag_dictionary(data)
