"""``softcount tag`` and its files: CoNLL-U, saved models, streams, gold tags."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import softcount as sc
from softcount.hmm import HMM
from softcount.hmm.command import Form, shape, stream
from softcount.metrics import induction_scores, tag_scores
from tests.commands import done, file_of, lines, refused, run
from tests.tagging import DICTIONARY, KNOWN_PAIRS, ROW, SENTENCES, TEXT, WORDS, conllu


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return file_of(tmp_path / "text.txt", TEXT)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return file_of(tmp_path / "words.tsv", WORDS)


# CoNLL-U
@pytest.mark.parametrize("last", ["\n", ""])
def test_states_go_to_misc_and_tags_to_upos(tmp_path: Path, last: str) -> None:
    file = tmp_path / "some"
    file.write_text(conllu(KNOWN_PAIRS, "SpaceAfter=No", last))
    model = HMM(2).fit([[word for word, _ in one] for one in KNOWN_PAIRS])
    states = [s for own in model.predict(_words(KNOWN_PAIRS)) for s in own]
    found = done("tag", file, "-k", "2").stdout
    assert [f"SpaceAfter=No|State={s}" for s in states] == _column(found, 9)
    assert _without(found, 9) == _without(file.read_text(), 9)
    named = done("tag", file, "--tagged", file, "--proba").stdout
    assert _column(named, 3) == [tag for one in KNOWN_PAIRS for _, tag in one]
    assert all(entry.startswith("SpaceAfter=No|Prob=") for entry in _column(named, 9))


def _words(pairs: Any) -> list[list[str]]:
    return [[word for word, _ in one] for one in pairs]


def _rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.split("\n")]


def _column(text: str, column: int) -> list[str]:
    return [row[column] for row in _rows(text) if row[0].isdigit()]


def _without(text: str, column: int) -> list[list[str]]:
    return [row[:column] + row[column + 1 :] for row in _rows(text)]


def test_other_columns(tmp_path: Path) -> None:
    file, kept = tmp_path / "some.conllu.gz", tmp_path / "kept"
    file.write_bytes(gzip.compress(conllu(KNOWN_PAIRS).encode()))
    found = done("tag", file, "-k", "1", "--column", "xpos").stdout
    assert set(_column(found, 4)) == {"0"}
    found = done("tag", file, "--tagged", file, "--column", "xpos", "--save", kept).stdout
    assert set(_column(found, 4)) == {"X"}
    assert found == conllu(KNOWN_PAIRS)
    assert set(_column(done("tag", file, "--load", kept, "--column", "Mine").stdout, 9)) == {
        "Mine=X"
    }
    alone = lines(done("tag", file, "--load", kept, "--states"))
    assert alone == ["X X X", "X X X"]


def test_conllu_from_stdin_and_by_stream(tmp_path: Path) -> None:
    text, kept = conllu(KNOWN_PAIRS), tmp_path / "kept"
    learned = done("tag", "-k", "2", "--save", kept, stdin=text).stdout
    assert done("tag", "--load", kept, stdin=text).stdout == learned
    assert done("tag", "--load", kept, "--format", "conllu", stdin=text).stdout == learned
    (tmp_path / "file").write_text(text)
    assert done("tag", "--load", kept, tmp_path / "file").stdout == learned
    as_lines = done("tag", "-k", "2", "--format", "lines", stdin=text).stdout
    assert as_lines.startswith("#/")
    message = "9 columns"
    damaged = text.replace("\t_\n", "\n", 1)
    refused("tag", "-k", "2", "--format", "conllu", message=message, stdin=damaged)


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (b"it rains", Form.LINES),
        (b"# a heading\n\nit rains", Form.LINES),
        (b"1 2 3 4 5 6 7 8 9 10", Form.LINES),
        (b"# text\n# more\n\n" + ROW.format(1, "it", "_", "_", "_").encode(), Form.CONLLU),
        (b"\xef\xbb\xbf" + ROW.format("1-2", "it", "_", "_", "_").encode(), Form.CONLLU),
        (b"# only this\n", None),
        (b"", None),
    ],
)
def test_what_a_file_is(head: bytes, form: Form | None) -> None:
    assert shape(head) is form


# models in files
def test_a_saved_model_tags_the_same(text: Path, words: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    args = ("--dictionary", words, "--open-tags", "V", "--smoothing", ".1", "--lowercase")
    wanted = done("tag", text, *args, "--save", kept, "--proba").stdout
    assert done("tag", "--load", kept, text, "--proba").stdout == wanted
    assert done("tag", "--load", kept, "--proba", "--threads", "1", stdin=TEXT).stdout == wanted
    assert done("tag", "--load", kept, stdin="").stdout == ""


def test_what_cannot_be_has_states_and_is_named(text: Path, words: Path, tmp_path: Path) -> None:
    kept, page = tmp_path / "kept", tmp_path / "page.html"
    done("tag", text, "--dictionary", words, "--open-tags", "V", "--save", kept)
    load = ("tag", "--load", kept)
    new = "the dog barks\n\nbarks the zebra\n"
    for more in ((), ("--html", page)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # stderr says it once, in the command's own words
            found = done(*load, *more, stdin=new)
        assert lines(found) == ["the/D dog/N barks/V", "", "barks/V the/D zebra/V"]
        assert "1 line (3) cannot come about" in found.stderr
    assert lines(done(*load, "--states", "--proba", stdin=new))[2] == "V:1 D:1 V:1"
    said = json.loads(lines(done(*load, "--json", "--proba", stdin=new))[2])
    assert said == {
        **{"line": 3, "words": ["barks", "the", "zebra"], "states": ["V", "D", "V"]},
        "probabilities": [1.0, 1.0, 1.0],
    }
    row = conllu([[("barks", "A"), ("the", "B")]])
    found = done(*load, "--column", "upos", stdin=row)
    assert _column(found.stdout, 3) == ["V", "D"]
    assert "cannot come about" in found.stderr


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard input is a pipe; what is written to this descriptor arrives there."""
    there, here = os.pipe()
    with open(there, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        yield here


def test_lines_are_there_as_soon_as_they_are_written(typed: int) -> None:
    os.write(typed, b"# a comment, or not\n")
    os.write(typed, b"a b\nc ")
    some = stream("-", None)
    first = next(some)
    assert [first.sequences.sentence(n) for n in range(len(first))][-1] == ["a", "b"]
    os.write(typed, b"d\n")
    os.close(typed)
    rest = next(some)
    assert rest.sequences.sentence(0) == ["c", "d"]
    assert rest.sequences.name(0) == "standard input:3"
    assert list(some) == []


def test_a_model_of_another_kind(text: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    sc.IBM1().fit([("a", "b")]).save(kept)
    refused("tag", "--load", kept, text, message="has a model of kind IBM1, which softcount tag")
    HMM(1).fit(SENTENCES).save(kept)
    result = run("align", "--load", kept, text)
    assert result.exit_code == 1
    assert "try softcount tag --load" in result.stderr


# beside gold tags
def test_gold(text: Path, words: Path, tmp_path: Path) -> None:
    gold = (
        "the/D dog/N barks/N\na/D cat/N sleeps\n\nthe/D old/J cat/N barks/V\nA/D dog/N sleeps/V\n"
    )
    right = [
        [token.partition("/")[2] or "_" for token in line.split()] for line in gold.split("\n")
    ]
    (tmp_path / "gold").write_text(gold)
    args = ("tag", text, "--gold", tmp_path / "gold")
    model = HMM(2).fit(SENTENCES)
    scores = induction_scores(model.predict(SENTENCES), right[:-1])
    assert all(f"# {line}\n" in done(*args, "-k", "2").stderr for line in str(scores).splitlines())
    named = (*args, "--dictionary", words, "--open-tags", "V")
    tagger = HMM(dictionary=DICTIONARY, open_tags=["V"]).fit(SENTENCES)
    accuracy = tag_scores(tagger.predict(SENTENCES), right[:-1])
    assert f"# {accuracy}\n" in done(*named, "--save", tmp_path / "kept").stderr
    assert f"# {accuracy}\n" in done(*named[:3], "-", *named[4:], stdin=gold).stderr
    whole = json.loads(done(*named, "--summary", "--json").stdout)
    assert whole["gold"]["accuracy"] == accuracy.accuracy
    loaded = done("tag", "--load", tmp_path / "kept", *args[1:]).stderr
    assert "# known words 91.7% of 12, unknown words none\n" in loaded


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("a/D\n", "1 sentences, while there are 5"),
        ("a/D b/D c/D\nb/D\n\nx\ny\n", "gold:2: 1 words, while"),
        ("\n".join(["a b c"] * 2 + ["", "a b c d", "a b c"]), "not a single word has a tag"),
    ],
)
def test_gold_of_something_else(text: Path, tmp_path: Path, gold: str, message: str) -> None:
    (tmp_path / "gold").write_text(gold)
    refused("tag", text, "-k", "2", "--gold", tmp_path / "gold", message=message)
