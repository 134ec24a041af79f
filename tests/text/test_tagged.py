"""Tagged sentences, against plain Python."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text.sequences import sequences
from softcount.text.tagged import Tagged, read_tagged, tagged

Pairs = list[list[tuple[str, str | None]]]

words = st.text("aÉ中/_", min_size=1, max_size=3)
names = st.text("NVÉ🙂", min_size=1, max_size=2)
pairs = st.lists(st.lists(st.tuples(words, st.none() | names), max_size=5), min_size=1, max_size=6)


def sentences_of(some: Tagged) -> Pairs:
    return [some.sentence(n) for n in range(len(some))]


def demand_tags(some: Tagged, expected: Pairs, known: list[str]) -> None:
    given_tags = [tag for sentence in expected for _, tag in sentence]
    every = list(dict.fromkeys([*known, *(tag for tag in given_tags if tag is not None)]))
    assert some.names == every
    assert some.tags.dtype == np.int32
    assert some.tags.tolist() == [-1 if tag is None else every.index(tag) for tag in given_tags]
    assert sentences_of(some) == expected


@given(pairs, st.lists(names, unique=True, max_size=3))
@settings(deadline=None)
def test_pairs_and_parallel_lists_say_the_same(given_pairs: Pairs, known: list[str]) -> None:
    demand_tags(tagged(given_pairs, names=known), given_pairs, known)
    forms = [[word for word, _ in sentence] for sentence in given_pairs]
    tags: list[Any] = [[tag for _, tag in sentence] or None for sentence in given_pairs]
    demand_tags(tagged(forms, tags, names=known), given_pairs, known)
    demand_tags(
        tagged(sequences(forms), map(tuple, tags_or_empty(tags)), names=known), given_pairs, known
    )


def tags_or_empty(tags: list[Any]) -> list[list[Any]]:
    return [some or [] for some in tags]


@given(pairs, st.sampled_from(["/", "_", "|||"]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_lines_of_words_with_tags_behind_them(
    tmp_path_factory: pytest.TempPathFactory, given_pairs: Pairs, separator: str, packed: bool
) -> None:
    # a word without a tag must not look as if it had one
    plain = [[(w, t) for w, t in s if t or separator not in w] for s in given_pairs]
    lines = [" ".join(w + separator + t if t else w for w, t in s) for s in plain]
    demand_tags(tagged(lines, separator=separator), plain, [])
    path = tmp_path_factory.mktemp("tagged") / "text"
    raw = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    found = read_tagged(path, separator=separator)
    demand_tags(found, plain, [])
    assert found.sequences.name(0) == f"{path}:1"


def test_the_last_separator_counts() -> None:
    some = tagged(["1/2/CD //SYM / a/ /b c"])
    assert some.sentence(0) == [
        ("1/2", "CD"),
        ("/", "SYM"),
        ("/", None),
        ("a/", None),
        ("/b", None),
        ("c", None),
    ]


def test_lower_case_is_for_words_alone() -> None:
    some = tagged(["The/DT the/dt"], like=["dog", "the"], lowercase=True)
    assert some.sequences.tokens.tolist() == [1, 1]
    assert some.names == ["DT", "dt"]


def test_whole_sentences_without_tags() -> None:
    some = tagged(["a b", "", "c"], [None, [], ["X"]])
    assert some.tags.tolist() == [-1, -1, 0]
    nothing = tagged(["a b"], [None])
    assert (nothing.tags.tolist(), nothing.names) == ([-1, -1], [])


def test_numbers_of_tags() -> None:
    some = tagged(["a b c", "d", "e"], [[2, -1, None], np.array([0]), None])
    assert some.tags.tolist() == [2, -1, -1, 0, -1]
    assert some.names == ["0", "1", "2"]
    named = tagged(["a b"], [[1, -1]], names=["N", "V"])
    assert named.tags_of(0) == ["V", None]


@given(pairs, st.data())
@settings(deadline=None)
def test_selected_sentences(given_pairs: Pairs, data: st.DataObject) -> None:
    some = tagged(given_pairs)
    chosen = data.draw(st.lists(st.sampled_from(range(len(some))), max_size=5))
    part = some.select(np.array(chosen, int))
    assert sentences_of(part) == [given_pairs[n] for n in chosen]
    assert part.names == some.names
    assert part.sequences.words == some.sequences.words


@given(pairs, st.lists(names, unique=True, max_size=3))
@settings(deadline=None)
def test_tagged_text_with_other_numbers(given_pairs: Pairs, known: list[str]) -> None:
    again = tagged(tagged(given_pairs), like=["é"], names=known)
    demand_tags(again, given_pairs, known)
    assert again.sequences.words[0] == "é"


@given(pairs)
@settings(deadline=None)
def test_the_dictionary_has_the_tags_of_each_word(given_pairs: Pairs) -> None:
    flat = [(word, tag) for sentence in given_pairs for word, tag in sentence if tag]
    found = tagged(given_pairs).dictionary()
    assert set(found) == {word for word, _ in flat}
    for word, tags in found.items():
        counts = [flat.count((word, tag)) for tag in tags]
        assert set(tags) == {tag for other, tag in flat if other == word}
        assert len(set(tags)) == len(tags)
        assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize(
    ("data", "tags", "says"),
    [
        ([], None, "no sentences"),
        ("a/N", None, "one text"),
        (["a/N", [("b", "N")]], None, "^sentence 0 is 'a/N'"),
        ([[("a", "N")], 5], None, "^sentence 1 is 5"),
        ([[("a", "N")], ["b"]], None, "^sentence 1 has 'b' in it"),
        ([[("a", "N")], [("b", "N", "V")]], None, "^sentence 1 has .* in it"),
        ([[("a", "N")], [(3, "N")]], None, "^sentence 1 has 3 among its words"),
        ([[("a", "N")], [("b", 2.0)]], None, "^sentence 1 has the tag 2.0"),
        ([[("a", "N")], [("b", 2)]], None, "^sentence 1 has the tag 2"),
        ([[("a", "N")], [("b", "")]], None, "^sentence 1 has the tag ''"),
        ([[("a", "N")], [("b", ["N"])]], None, r"^sentence 1 has the tag \['N'\]"),
        ([[("a", True)]], None, "^sentence 0 has the tag True"),
        (["a", "b c"], [["N"], ["N"]], "^sentence 1 has 2 words and 1 tags"),
        (["a", ""], [["N"], ["N"]], "^sentence 1 has 0 words and 1 tags"),
        (["a", "b"], [["N"]], "2 sentences and tags for 1"),
        (["a", "b"], [["N"], "N"], "^sentence 1 has the tags 'N'"),
        (["a", "b"], [["N"], {"N"}], "^sentence 1 has the tags {'N'}"),
        (["a", "b"], [[0], [-2]], "^sentence 1 has the tag -2"),
        (["a", "b"], [[0], [2**40]], "^sentence 1 has the tag 1099511627776"),
    ],
)
def test_bad_data(data: Any, tags: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        tagged(data, tags)


def test_numbers_beyond_the_names() -> None:
    with pytest.raises(DataError, match=r"^sentence 0 has the tag 2\n.*from 0 to 1"):
        tagged(["a"], [[2]], names=["N", "V"])


def test_faults_name_the_line_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a/N\nb/\xff\n")
    with pytest.raises(DataError, match="text:2 is not UTF-8"):
        read_tagged(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"no sentences in .*text"):
        read_tagged(path)


@pytest.mark.parametrize("separator", ["", " ", "/\u00a0"])
def test_separators_that_are_none(separator: str) -> None:
    with pytest.raises(DataError, match="the separator is"):
        tagged(["a/N"], separator=separator)
