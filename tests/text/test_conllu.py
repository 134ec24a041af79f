"""CoNLL-U is given back as it was read, but for the tags."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.text.conllu import ConlluFile, column_index, read_conllu
from tests import real

Blocks = list[list[list[str]]]

REAL = [f"en_{name}" for name in ("atis-ud-dev", "atis-ud-train", "ewt-ud-dev")]

SMALL = """\
# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tVamos\tir\tVERB\tV\t_\t0\troot\t_\tState=2|Gloss=go
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\tGloss=us
2.1\telided\t_\tVERB\t_\t_\t_\t_\t_\tState=9
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\t_\tP\t_\t5\tcase\t_\t_
4\tel\tel\tDET\tD\t_\t5\tdet\t_\tState=_
5\tmar\tmar\tNOUN\tN\t_\t1\tobl\t_\tStateful=7

# a comment alone


1\tNew York\t_\tPROPN\t_\t_\t_\t_\t_\t_
"""


def word(number: Any, form: str = "w", upos: str = "_", misc: str = "_") -> str:
    return f"{number}\t{form}\t_\t{upos}\t_\t_\t_\t_\t_\t{misc}"


def written(file: ConlluFile, tags: Any = None, column: str = "upos") -> bytes:
    out = io.BytesIO()
    file.write(out, tags, column)
    return out.getvalue()


def small() -> ConlluFile:
    return read_conllu(SMALL.split("\n"))


# what is read
def test_words_and_tags() -> None:
    file = small()
    assert len(file) == 2
    assert file.forms() == [["Vamos", "nos", "a", "el", "mar"], ["New York"]]
    assert file.tags() == [["VERB", "PRON", None, "DET", "NOUN"], ["PROPN"]]
    assert file.tags("XPOS") == [["V", None, "P", "D", "N"], [None]]
    assert file.tags("State") == [["2", None, None, None, None], [None]]
    assert file.tags("Gloss") == [["go", "us", None, None, None], [None]]


def test_words_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "small.conllu"
    path.write_text(SMALL, encoding="utf-8")
    some = read_conllu(path).tagged(like=["el"], names=["X", "NOUN"], lowercase=True)
    assert some.sequences.words == ["el", "vamos", "nos", "a", "mar", "new york"]
    assert some.sequences.tokens.tolist() == [1, 2, 3, 0, 4, 5]
    assert some.names == ["X", "NOUN", "VERB", "PRON", "DET", "PROPN"]
    assert some.tags.tolist() == [2, 3, -1, 4, 1, 5]
    assert [some.sequences.name(n) for n in range(2)] == [f"{path}:4", f"{path}:15"]
    assert small().sequences().name(1) == "sentence 1"


def by_hand(name: str) -> tuple[list[list[str]], list[list[str | None]]]:
    """Words and UPOS of a file, read in the simplest way."""
    rows = [line.split("\t") for line in "\n".join(real.lines(name)).split("\n")]
    forms: list[list[str]] = [[]]
    tags: list[list[str | None]] = [[]]
    for row in rows:
        if row == [""]:
            forms.append([])
            tags.append([])
        elif row[0].isdigit():
            forms[-1].append(row[1])
            tags[-1].append(None if row[3] == "_" else row[3])
    return [s for s in forms if s], [s for s in tags if s]


@pytest.mark.parametrize("name", REAL)
def test_real_files_come_back_byte_for_byte(name: str) -> None:
    forms, tags = by_hand(f"ud/{name}.conllu.gz")
    path = real.FOLDER / "ud" / f"{name}.conllu.gz"
    file = read_conllu(path)
    assert file.forms() == forms
    assert file.tags() == tags
    raw = gzip.decompress(path.read_bytes())
    assert written(file) == raw
    assert written(file, tags) == raw
    numbers = [[len(form) for form in sentence] for sentence in forms]
    with_states = written(file, numbers, "State")
    again = read_conllu(io.BytesIO(with_states))
    assert again.tags("State") == [[str(n) for n in sentence] for sentence in numbers]
    assert written(again, tags) == with_states


# what is written
def test_only_the_chosen_column_changes() -> None:
    tags = [["A", None, "C", 4, np.int32(-1)], None]
    old, new = SMALL.split("\n"), small().text(tags, "xpos").split("\n")
    changed = [n for n, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    assert changed == [3, 7, 8]
    assert [new[n].split("\t")[4] for n in changed] == ["A", "C", "4"]
    for n in changed:
        assert (
            np.delete(old[n].split("\t"), 4).tolist() == np.delete(new[n].split("\t"), 4).tolist()
        )


def test_entries_in_misc() -> None:
    lines = small().text([np.arange(5), [5]], "State").split("\n")
    found = [lines[n].split("\t")[9] for n in (2, 3, 4, 5, 7, 8, 9, 14)]
    assert found == [
        "SpaceAfter=No",
        "State=0|Gloss=go",
        "Gloss=us|State=1",
        "State=9",
        "State=2",
        "State=3",
        "Stateful=7|State=4",
        "State=5",
    ]


field = st.text(st.sampled_from("aé中_|=# \u2028\x85\r/"), min_size=1, max_size=4).filter(
    lambda text: not text.endswith("\r")
)
tag = st.text(st.sampled_from("NV中="), min_size=1, max_size=3)
blocks = st.lists(
    st.lists(st.lists(field, min_size=9, max_size=9), min_size=1, max_size=4), max_size=4
)
comments = st.lists(st.text("#é\t =", max_size=5).map("#{}".format), max_size=2)


@given(
    blocks,
    comments,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.data(),
)
@settings(deadline=None, max_examples=60)
def test_anything_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    some: Blocks,
    comment: list[str],
    end: str,
    mark: bool,
    packed: bool,
    blanks: int,
    data: st.DataObject,
) -> None:
    some = [*some, [["last"] * 9]]
    sentences = [
        [*comment, *("\t".join([str(n), *row]) for n, row in enumerate(rows, 1))] for rows in some
    ]
    text = "\ufeff" * mark + (2 * end).join(map(end.join, sentences)) + blanks * end
    path = tmp_path_factory.mktemp("conllu") / "some"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    file = read_conllu(path)
    assert written(file) == text.encode()
    assert file.forms() == [[row[0] for row in rows] for rows in some]
    tags = [data.draw(st.lists(tag, min_size=len(rows), max_size=len(rows))) for rows in some]
    column = data.draw(st.sampled_from(["upos", "xpos", "State"]))
    filled = written(file, tags, column)
    path.write_bytes(filled)
    again = read_conllu(path)
    assert again.tags(column) == tags
    assert again.forms() == file.forms()
    assert filled.count(end.encode()) == text.count(end)
    assert written(read_conllu(io.BytesIO(text.encode()))) == text.encode()
    old = [row for rows in some for row in rows]
    index = column_index(column)
    new = [line.removesuffix("\r").split("\t") for line in filled.decode().split("\n")]
    kept = [row for row in new if len(row) == 10 and row[0].lstrip("\ufeff").isdigit()]
    for before, after in zip(old, kept, strict=True):
        after[index] = before[index - 1]
        assert after[1:] == before


@pytest.mark.parametrize("ends", ["", "\n"])
@pytest.mark.parametrize("as_bytes", [False, True])
def test_lines_with_and_without_ends(ends: str, as_bytes: bool) -> None:
    lines = [word(1, "é") + ends, ends, word(1) + ends, word(2) + ends]
    given_lines = [line.encode() for line in lines] if as_bytes else lines
    file = read_conllu(given_lines)
    assert file.forms() == [["é"], ["w", "w"]]
    assert written(file).decode() == "\n".join(line.removesuffix("\n") for line in lines) + ends


# what is wrong
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["1\tw"], "2 has 2 columns"),
        ([word(1) + "\t_"], "2 has 11 columns"),
        ([word(1).replace("\t", " ")], "2 has 1 columns"),
        (["  "], "2 has 1 columns"),
        ([word(2)], "2 has the id '2', after word 0"),
        ([word(1), word(1)], "3 has the id '1', after word 1"),
        ([word(1), word(3)], "3 has the id '3', after word 1"),
        ([word(1), "", word(2)], "4 has the id '2', after word 0"),
        ([word("01")], "2 has the id '01'"),
        ([word("x")], "2 has the id 'x'"),
        ([word("")], "2 has the id ''"),
        ([word("١")], "2 has the id '١'"),
        ([word(1), word("1-2"), word(2)], "3 has the id '1-2'"),
        ([word("1-2"), word("1-2"), word(1), word(2)], "3 has the id '1-2'"),
        ([word("1-3"), word(1), word("2-3"), word(2), word(3)], "4 has the id '2-3'"),
        ([word("2-1"), word(1)], "2 has the id '2-1'"),
        ([word(1), word("2-3"), word(2)], "3 has a token up to word 3.* after word 2"),
        ([word("1-2"), ""], "2 has a token up to word 2"),
        ([word(1), word("0.1")], "3 has the id '0.1'"),
        ([word(1), word("1.2")], "3 has the id '1.2'"),
        ([word(1), word("1.1"), word("1.1")], "4 has the id '1.1'"),
        ([word(1, "")], "2 has the form ''"),
        ([word(1), word(2, "\0")], "3 has the form"),
    ],
)
def test_damaged_lines(tmp_path: Path, lines: list[str], says: str) -> None:
    lines = ["# a comment", *lines]
    with pytest.raises(DataError, match=f"^line {says}"):
        read_conllu(lines)
    path = tmp_path / "bad.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"bad.conllu:{says}"):
        read_conllu(path)


def test_ids_that_are_sound() -> None:
    ids = ["0.1", "0.2", "1-1", "1", "1.1", "1.2", "2-4", "2", "2.1", "3", "4", "5-6", "5", "6"]
    assert len(read_conllu([word(n) for n in ids]).places) == 6


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no sentences in .*bad"),
        (b"# nothing\n\n\n", "no sentences in .*bad"),
        (word("1.1").replace("1.1", "0.1").encode(), "no sentences in .*bad"),
        (b"# a\n# \xe9\n", "bad:2 is not UTF-8"),
        (gzip.compress(b"# a\n" * 99, mtime=0)[:-9], "bad cannot be unpacked"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        read_conllu(path)


def test_bad_lines_of_python() -> None:
    with pytest.raises(DataError, match="no sentences in the lines"):
        read_conllu([])
    with pytest.raises(DataError, match="line 2 is 5"):
        read_conllu(["", 5])  # type: ignore[list-item]
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        read_conllu(["", word(1, "\ud800")])


@pytest.mark.parametrize("column", ["", "_", "feats", "FORM", "a b", "a|b", "a=b", "a\t", None])
def test_columns_that_are_none(column: Any) -> None:
    with pytest.raises(DataError, match="the column of tags is"):
        small().tags(column)
    with pytest.raises(DataError, match="the column of tags is"):
        small().text([None, None], column)


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ([None], "2 sentences and tags for 1"),
        ([None, []], "the sentence at line 15 has 1 words and 0 tags"),
        ([["A"] * 6, None], "the sentence at line 4 has 5 words and 6 tags"),
        ([None, [""]], "line 15 cannot have the tag ''"),
        ([None, ["a\tb"]], "line 15 cannot have the tag"),
        ([None, ["a\n"]], "line 15 cannot have the tag"),
        ([None, ["a|b"]], "line 15 cannot have the tag"),
        ([None, [1.5]], "line 15 cannot have the tag 1.5"),
        ([None, ["\ud800"]], "line 15 cannot have the tag"),
    ],
)
def test_tags_that_cannot_be_written(tags: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        small().text(tags, "State")
