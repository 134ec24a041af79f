"""Sentence pairs as numbers of words, against plain Python splitting."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount import samples
from softcount.core.errors import DataError
from softcount.text import lines as reading
from softcount.text import vocabulary as kernel
from softcount.text.bitext import Bitext, as_bitext, read_bitext, stream_pairs
from softcount.text.sequences import Side
from softcount.text.vocabulary import LineTokeniser, Vocabulary
from tests import real

Pairs = list[tuple[list[str], list[str]]]

SPACES = "".join(chr(c) for c in range(0x110000) if chr(c).isspace()).replace("\n", "")
ODD = "abÉéΣσİßſ|-'\u0301\ufeff\u200b\u2060\u180e中。🙂\u00ad" + SPACES
few = st.text(st.sampled_from(ODD), max_size=12)
anything = st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), max_size=12)
sentences = few | anything
pairs_of_texts = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8)


def as_words(pairs: Bitext) -> Pairs:
    return [pairs.pair(n) for n in range(len(pairs))]


def split(pairs: list[tuple[str, str]]) -> Pairs:
    return [(source.split(), target.split()) for source, target in pairs]


def demand_numbered(side: Side, sentences: list[list[str]], known: list[str] | None = None) -> None:
    """The side has these sentences, its words numbered as they first appear, known ones before."""
    words = list(dict.fromkeys([*(known or []), *(word for line in sentences for word in line)]))
    assert side.words == words
    assert side.tokens.tolist() == [words.index(word) for line in sentences for word in line]
    assert np.diff(side.indptr).tolist() == [len(line) for line in sentences]
    assert side.indptr[0] == 0
    assert (side.tokens.dtype, side.indptr.dtype) == (np.int32, np.int64)


# cutting
def test_white_space_is_what_python_takes_for_it() -> None:
    letters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and c != 10]
    letters = letters[:0x4000] + letters[0x4000::97]
    found = LineTokeniser().cut("\n".join(f"a{c}b" for c in letters).encode(), str)
    sizes = np.diff(found.ends, prepend=0)
    assert [c for c, n in zip(letters, sizes, strict=True) if n > 1] == list(SPACES)


@given(st.lists(sentences, min_size=1, max_size=10))
@settings(deadline=None)
def test_text_is_cut_as_python_cuts_it(lines: list[str]) -> None:
    found = LineTokeniser().cut(("\n".join(lines) + "\n").encode(), str)
    side = Side(list(found.words), found.tokens, np.concatenate([[0], found.ends]))
    demand_numbered(side, [line.split() for line in lines])


@pytest.mark.parametrize("tail", [b"\xc2", b"\xe2", b"\xe2\x80", b"\xe3\x80"])
def test_half_a_space_at_the_end_is_not_read_beyond(tail: bytes) -> None:
    with pytest.raises(DataError, match="1 is not UTF-8"):
        LineTokeniser().cut(b"a\nb" + tail, str)


def test_words_with_the_same_hash_are_told_apart() -> None:
    data = np.frombuffer(b"aababbba", np.uint8)
    firsts = np.array([3, 0, 2, 3, 0, 2, 7])
    lasts = np.array([5, 1, 3, 5, 2, 4, 8])  # ab a b ab aa ba a
    tokens, codes = np.full(7, -1, np.int32), np.full(7, 2**32 - 1, np.uint32)
    slots, text, starts = np.zeros(16, np.uint64), np.zeros(64, np.uint8), np.zeros(16, np.int64)
    spans, table = kernel.WordSpans(firsts, lasts, codes), kernel.WordHash(slots, text, starts)
    done = kernel._number_words(data, spans, 0, tokens, table, 0)
    assert done == (7, 5)
    assert tokens.tolist() == [0, 1, 2, 0, 3, 4, 1]
    assert text.tobytes().startswith(b"ab\na\nb\naa\nba\n\0")


def test_many_words_and_long_ones_and_one_a_million_times() -> None:
    words = [str(n) for n in range(50_000)] + ["x" * 5_000]
    cutter, numbers = LineTokeniser(), np.arange(50_001)
    first = cutter.cut(" ".join([*words, *words[::-1]]).encode(), str)
    np.testing.assert_array_equal(first.tokens, [*numbers, *numbers[::-1]])
    again = cutter.cut(b"y " * 10**6 + " ".join(words).encode(), str)
    assert (again.tokens[: 10**6] == 50_001).all()
    np.testing.assert_array_equal(again.tokens[10**6 :], numbers)
    assert again.words == [*words, "y"]


# Python data
@given(pairs_of_texts)
@settings(deadline=None)
def test_all_forms_are_the_same(pairs: list[tuple[str, str]]) -> None:
    expected = split(pairs)
    forms: list[Callable[[], Bitext]] = [
        lambda: as_bitext(pairs),
        lambda: as_bitext([list(pair) for pair in pairs]),
        lambda: as_bitext(expected),
        lambda: as_bitext(iter(expected)),
        lambda: as_bitext([s for s, _ in pairs], [tuple(t) for _, t in expected]),
    ]
    if not any("|||" in words for pair in expected for words in pair):
        forms.append(lambda: as_bitext([f"{s} ||| {t}" for s, t in pairs]))
    for form in forms:
        found = form()
        assert as_words(found) == expected
        demand_numbered(found.source, [s for s, _ in expected])
        demand_numbered(found.target, [t for _, t in expected])


@given(pairs_of_texts)
@settings(deadline=None)
def test_lower_case_is_that_of_whole_lines(pairs: list[tuple[str, str]]) -> None:
    expected = split([(s.lower(), t.lower()) for s, t in pairs])
    found = as_bitext(pairs, lowercase=True)
    demand_numbered(found.source, [s for s, _ in expected])
    assert as_words(as_bitext(as_bitext(pairs), lowercase=True)) == expected


@given(pairs_of_texts, pairs_of_texts)
@settings(deadline=None)
def test_known_words_keep_their_numbers(
    old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    before = as_bitext(old)
    like = (Vocabulary(before.source.words), before.target.words)
    for after in (as_bitext(new, like=like), as_bitext(as_bitext(new), like=like)):
        demand_numbered(after.source, [s for s, _ in split(new)], before.source.words)
        demand_numbered(after.target, [t for _, t in split(new)], before.target.words)


def test_only_words_that_are_there_are_new() -> None:
    some = as_bitext([("a b", "x"), ("c", "y z")]).select([1])
    again = as_bitext(some, like=(["q"], []))
    assert (again.source.words, again.target.words) == (["q", "c"], ["y", "z"])
    assert again.name(0) == "pair 1"
    assert as_bitext(some) is some


def test_bars_need_room_around_them_and_sides_may_be_empty() -> None:
    texts = ["a|||b ||| c", "||| c d", "a b\t|||\u3000", "|||", "a\n||| b"]
    expected = [(["a|||b"], ["c"]), ([], ["c", "d"]), (["a", "b"], []), ([], []), (["a"], ["b"])]
    assert as_words(as_bitext(texts)) == expected


def test_lists_of_words_stay_as_they_are() -> None:
    pairs = [(["New York", "|||", "\u00a0"], ("É",))]
    assert as_bitext(pairs).pair(0) == (["New York", "|||", "\u00a0"], ["É"])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "no pairs"),
        ("a ||| b", "one text.*\n.*read_bitext"),
        (3, "the data are 3"),
        (["a ||| b", "a b"], r"^pair 1 has no \|\|\|"),
        (["a ||| b ||| c"], r"^pair 0 has \|\|\| 2 times"),
        (["a ||| b", ("a", "b")], "^pair 0 is 'a"),
        ([("a", "b"), ("a",)], "^pair 1 is"),
        ([("a", "b"), ("a", None)], "^pair 1 has the sentence None"),
        ([("a", "b"), (["a"], "b")], "^pair 1 has the sentence"),
        ([(b"a", b"b")], "^pair 0 has.*\n.*decode"),
        ([(["a"], ["b"]), (["a", 1], ["b"])], "^pair 1 has 1 among its words"),
        ([(["a"], ["b"]), (["a", []], ["b"])], "^pair 1 has something else"),
        ([(["a"], [""])], "^pair 0 has '' among"),
        ([(["a"], ["\ud800"])], "^pair 0 has .* among"),
        ([("a", "b"), ("a", "b \udcff")], "^pair 1 is not UTF-8"),
        ([("a", "b"), ("a\0", "b")], "^pair 1 has a NUL"),
    ],
)
def test_what_is_no_bitext(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        as_bitext(data)


def test_lists_of_unequal_length() -> None:
    with pytest.raises(DataError, match="2 source and 1 target"):
        as_bitext(["a", "b"], ["c"])


def test_a_vocabulary_has_each_word_once() -> None:
    with pytest.raises(DataError, match="'b' twice"):
        as_bitext([("a", "b")], like=(["a", "b", "b"], []))


def test_faults_are_named_in_later_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK", 3)
    with pytest.raises(DataError, match=r"^pair 7 has no"):
        as_bitext(["a ||| b"] * 7 + ["a"])
    with pytest.raises(DataError, match=r"^pair 4 has a NUL"):
        as_bitext(["a"] * 4 + ["\0"], ["b"] * 5)
    assert len(as_bitext(["a ||| b"] * 7)) == 7


# what can be done with it
@given(pairs_of_texts, st.data())
@settings(deadline=None)
def test_selected_pairs(pairs: list[tuple[str, str]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=5))
    all_of_them, expected = as_bitext(pairs), split(pairs)
    some = all_of_them.select(np.array(chosen, dtype=int))
    assert as_words(some) == [expected[n] for n in chosen]
    assert some.source.words == all_of_them.source.words
    assert [some.name(n) for n in range(len(some))] == [f"pair {n}" for n in chosen]
    assert some.n_links == sum(len(expected[n][0]) * len(expected[n][1]) for n in chosen)
    assert as_words(some.flipped()) == [expected[n][::-1] for n in chosen]


def test_a_mask_selects_and_names_survive_a_second_selection() -> None:
    pairs = as_bitext([(word, word) for word in "abcd"])
    twice = pairs.select(np.array([False, True, True, True])).select([2, 0])
    assert as_words(twice) == [(["d"], ["d"]), (["b"], ["b"])]
    assert (twice.name(0), twice.name(1)) == ("pair 3", "pair 1")


# files
@given(pairs_of_texts, st.sampled_from([1, 2, 7, 1 << 20]), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_files_in_pieces(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, str]],
    piece: int,
    packed: bool,
    ends: bool,
) -> None:
    folder = tmp_path_factory.mktemp("bitext")
    pairs = [(f"s {s}", f"t {t}") for s, t in pairs]  # a last line that is empty would be no line
    names = []
    for name, lines in zip(("a", "b"), zip(*pairs, strict=True), strict=True):
        text = ("\n".join(lines) + "\n" * ends).encode()
        (folder / name).write_bytes(gzip.compress(text) if packed else text)
        names.append(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", piece)
        found = read_bitext(*names)
    demand_numbered(found.source, [s for s, _ in split(pairs)])
    demand_numbered(found.target, [t for _, t in split(pairs)])


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def test_one_file(tmp_path: Path) -> None:
    mark, middle = b"\xef\xbb\xbf", "É\u2028x ||| y\x85\x1c\ufeff".encode()
    path = written(tmp_path / "c.fr-en", mark + b"a b ||| c\r\n||| d\r\n" + middle)
    found = read_bitext(path)
    assert as_words(found) == [(["a", "b"], ["c"]), ([], ["d"]), (["É", "x"], ["y", "\ufeff"])]
    assert found.name(2) == f"{path}:3"
    assert found.select([2]).flipped().name(0) == f"{path}:3"
    lowered = read_bitext(path, lowercase=True, like=(["x"], ["c"]))
    assert lowered.source.words == ["x", "a", "b", "é"]
    assert lowered.target.tokens.tolist() == [0, 1, 2, 3]


def test_empty_lines_of_two_files_are_pairs(tmp_path: Path) -> None:
    source, target = written(tmp_path / "a", b"x\n\n\n"), written(tmp_path / "b", b"\n\ny")
    assert as_words(read_bitext(source, target)) == [(["x"], []), ([], []), ([], ["y"])]


def test_a_blank_line_is_a_pair_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(b"a ||| b\n\n \nc ||| d\n")
    found = read_bitext(path)
    assert [found.pair(n) for n in range(4)] == [(["a"], ["b"]), ([], []), ([], []), (["c"], ["d"])]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no pairs in .*bad"),
        (b"\xef\xbb\xbf", "no pairs in .*bad"),
        (b"a ||| b\nc ||| d ||| e ||| f", r"bad:2 has \|\|\| 3 times"),
        (b"a ||| b\nc|||d\n", r"bad:2 has no \|\|\|"),
        (b"a ||| b\na ||| b\na ||| caf\xe9 b\n", "bad:3 is not UTF-8 text: b'caf.xe9'"),
        (b"a ||| b\na ||| \xc3\n", "bad:2 is not UTF-8"),
        ("a ||| b\n".encode("utf-16"), "bad:1 is not UTF-8"),
        ("a ||| b\n".encode("utf-16-le"), "bad:1 has a NUL byte.*\n.*UTF-16"),
        (b"a ||| b\na ||| b\0\n", "bad:2 has a NUL"),
        (gzip.compress(b"a ||| b\n" * 99, mtime=0)[:-9], "bad cannot be unpacked"),
        (b"\x1f\x8bnonsense", "bad cannot be unpacked"),
    ],
)
@pytest.mark.parametrize("piece", [4, 1 << 20])
def test_bad_files(
    tmp_path: Path, content: bytes, says: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE", piece)
    with pytest.raises(DataError, match=says):
        read_bitext(written(tmp_path / "bad", content))


def test_files_of_unequal_length(tmp_path: Path) -> None:
    source, target = written(tmp_path / "a.en", b"x\n" * 3), written(tmp_path / "a.fr", b"y\ny")
    with pytest.raises(DataError, match=r"a.en has 3 lines and .*a.fr has 2"):
        read_bitext(source, target)


def test_the_bad_one_of_two_files_is_named(tmp_path: Path) -> None:
    source, target = written(tmp_path / "a.en", b"x\nx\n"), written(tmp_path / "a.fr", b"y\n\xff\n")
    with pytest.raises(DataError, match=r"a.fr:2 is not UTF-8"):
        read_bitext(source, target)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_bitext(path)


# streams
@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_stream_is_a_bitext_in_blocks(as_bytes: bool) -> None:
    pairs = samples.pairs()
    texts = [f"{' '.join(s)} ||| {' '.join(t)}\n" for s, t in pairs]
    texts[0], texts[-1] = "\ufeff" + texts[0], texts[-1].rstrip()
    lines = [text.encode() for text in texts] if as_bytes else texts
    like = (["the", "house"], ["haus"])
    blocks = list(stream_pairs(lines, 7, like=like, origin="stdin"))
    assert [len(block) for block in blocks] == [7] * 14 + [2]
    assert [pair for block in blocks for pair in as_words(block)] == pairs
    assert all(block.source.words[:2] == ["the", "house"] for block in blocks)
    assert blocks[1].name(0) == "stdin:8"


def test_a_stream_does_not_wait_for_more_than_it_needs() -> None:
    def lines() -> Any:
        yield "A ||| b\n"
        yield "c ||| D\n"
        raise AssertionError("asked for a third line")

    first = next(stream_pairs(lines(), 2, lowercase=True))
    assert as_words(first) == [(["a"], ["b"]), (["c"], ["d"])]


def test_faults_in_a_stream() -> None:
    blocks = stream_pairs([b"a ||| b\n", b"c ||| d\n", b"\xff ||| e\n"], 2)
    assert len(next(blocks)) == 2
    with pytest.raises(DataError, match=r"^pair 2 is not UTF-8"):
        next(blocks)
    with pytest.raises(DataError, match=r"^in:3 has no"):
        list(stream_pairs(["a ||| b", "c ||| d", "e"], 1, origin="in"))
    with pytest.raises(DataError, match="cannot be 0 pairs"):
        next(stream_pairs(["a ||| b"], 0))


# real text
def test_hansards() -> None:
    names = [f"hansards_wpt03/test.{language}" for language in ("en", "fr")]
    source, target = ([line.lower().split() for line in real.lines(name)] for name in names)
    found = read_bitext(*(real.FOLDER / name for name in names), lowercase=True)
    assert as_words(found) == list(zip(source, target, strict=True))
    assert found.target.words == list(dict.fromkeys(word for line in target for word in line))
