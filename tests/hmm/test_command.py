"""``softcount tag`` as users meet it: what is learned and printed, and files, harmful ones too."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import softcount as sc
from softcount.cli.frame import FitProgress
from softcount.cli.reading import read_tags, read_text, shape, stream_text
from softcount.core.errors import DataError, ImpossibleItem, StoreError
from softcount.hmm import HMM
from softcount.hmm.command import SentencesRead, Tag
from softcount.metrics import induction_scores, tag_scores
from tests.commands import ODD_LINES, done, file_of, lines, n_lines, refused, run
from tests.hmm.tagged_text import (
    DICTIONARY,
    KNOWN,
    KNOWN_PAIRS,
    ROW,
    SENTENCES,
    TEXT,
    WORDS,
    conllu,
    joined,
)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return file_of(tmp_path / "text.txt", TEXT)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    return file_of(tmp_path / "words.tsv", WORDS)


# what is learned
@pytest.mark.parametrize(
    ("args", "model"),
    [
        (("-k", "3"), HMM(3)),
        (
            ("-k", "3", "--seed", "4", "--n-init", "2"),
            HMM(3, random_state=4, learner=sc.EM(n_init=2)),
        ),
        (
            ("-k", "2", "--order", "2", "--max-iter", "7"),
            HMM(2, order=2, learner=sc.EM(max_iter=7)),
        ),
        (("-k", "2", "--no-stop", "--smoothing", ".5"), HMM(2, stop=False, smoothing=0.5)),
        (
            ("-k", "2", "--emissions", "features", "--max-iter", "4"),
            HMM(2, emissions="features", learner=sc.EM(max_iter=4)),
        ),
        (("-k", "2", "--init", "spectral"), HMM(2, init="spectral")),
        (
            ("-k", "2", "--lowercase", "--dtype", "float32"),
            HMM(2, lowercase=True, dtype="float32"),
        ),
        (
            ("-k", "2", "--learner", "vb", "--max-iter", "9"),
            HMM(2, learner=sc.VariationalBayes(max_iter=9), smoothing=0.1),
        ),
        (
            ("-k", "2", "--learner", "collapsed-gibbs", "--max-iter", "9", "--smoothing", ".3"),
            HMM(2, learner=sc.CollapsedGibbs(max_iter=9), smoothing=0.3),
        ),
        (("-k", "3", "--learner", "hard-em", "--threads", "2"), HMM(3, learner=sc.HardEM())),
    ],
)
def test_lines_are_those_of_the_python_model(text: Path, args: tuple[str, ...], model: HMM) -> None:
    states = model.fit(SENTENCES).predict(SENTENCES)
    assert lines(done("tag", text, *args)) == joined(SENTENCES, states)
    assert done("tag", *args, stdin=TEXT).stdout == done("tag", text, *args).stdout


def test_a_dictionary(text: Path, words: Path) -> None:
    args = ("tag", text, "--dictionary", words, "--open-tags", "V, N", "--smoothing", ".1")
    model = HMM(dictionary=DICTIONARY, open_tags=["V", "N"], smoothing=0.1).fit(SENTENCES)
    found = lines(done(*args))
    assert found == joined(SENTENCES, model.predict(SENTENCES))
    assert found[0].split()[0] == "the/D"
    assert found[2] == ""


def test_a_dictionary_in_lower_case(text: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("The\tD\nTHE\tE\na\tD\n")
    args = ("tag", text, "--dictionary", tmp_path / "words", "--lowercase", "--smoothing", ".1")
    first = [line.split()[0] for line in lines(done(*args)) if line]
    assert first[0] in ("the/D", "the/E")
    assert first[1] == "a/D"
    assert first[3] == "A/D"  # words are printed as they are


@pytest.mark.parametrize("form", ["lines", "conllu"])
def test_tagged_sentences_are_learned_from_as_well(text: Path, tmp_path: Path, form: str) -> None:
    known = tmp_path / "known"
    known.write_text(KNOWN if form == "lines" else conllu(KNOWN_PAIRS))
    model = HMM(smoothing=0.1).fit(
        [*SENTENCES, *([word for word, _ in one] for one in KNOWN_PAIRS)],
        [None] * len(SENTENCES) + [[tag for _, tag in one] for one in KNOWN_PAIRS],
    )
    found = done("tag", text, "--tagged", known, "--smoothing", ".1")
    assert lines(found) == joined(SENTENCES, model.predict(SENTENCES))


def test_tagged_sentences_alone(text: Path, tmp_path: Path) -> None:
    (tmp_path / "known").write_text(KNOWN)
    learn = ("tag", "--tagged", tmp_path / "known", "--smoothing", ".1")
    assert done(*learn, "--save", tmp_path / "kept").stdout == ""
    summary = lines(done(*learn, "--summary"))
    assert "state\ttokens\tshare\twords" in summary
    model = HMM(smoothing=0.1).fit(*zip(*_apart(KNOWN_PAIRS), strict=True))
    found = lines(done("tag", "--load", tmp_path / "kept", text))
    assert found == joined(SENTENCES, model.predict(SENTENCES))


def _apart(pairs: Any) -> list[tuple[list[str], list[str]]]:
    return [([word for word, _ in one], [tag for _, tag in one]) for one in pairs]


def test_an_impossible_sentence_is_called_by_its_line(text: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("\nthe/D zebra/N\n")
    lessons = SentencesRead(read_text(str(text), None), read_tags(str(known), None, "/"))
    for word, place in (("cat", "text.txt:2"), ("zebra", "known.txt:2")):
        never = [w == word for w in lessons.join().sequences.words]
        with pytest.raises(ImpossibleItem, match=f"{place} has probability zero"):
            Tag().fit(HMM(zero={"emissions": [never] * 2}), lessons, FitProgress(3))


# what is printed
def test_states_alone_separators_and_probabilities(text: Path) -> None:
    model = HMM(2).fit(SENTENCES)
    states = model.predict(SENTENCES)
    best = [row.max(axis=1) for row in model.predict_proba(SENTENCES)]
    posterior = model.predict(SENTENCES, method="posterior")
    args = ("tag", text, "-k", "2")
    assert lines(done(*args, "--states")) == [" ".join(map(str, own)) for own in states]
    assert lines(done(*args, "--separator", "__")) == joined(SENTENCES, states, "__")
    found = lines(done(*args, "--decode", "posterior", "--proba"))
    told = [
        [f"{state}:{p:.4g}" for state, p in zip(own, row, strict=True)]
        for own, row in zip(posterior, best, strict=True)
    ]
    assert found == joined(SENTENCES, told)


def test_json(text: Path) -> None:
    model = HMM(2).fit(SENTENCES)
    said = [json.loads(line) for line in lines(done("tag", text, "-k", "2", "--json", "--proba"))]
    assert [one["line"] for one in said] == [1, 2, 3, 4, 5]
    assert [one["words"] for one in said] == SENTENCES
    assert [one["states"] for one in said] == model.predict(SENTENCES)
    assert all(0.0 < p <= 1.0 for one in said for p in one["probabilities"])
    assert set(json.loads(lines(done("tag", text, "-k", "2", "--json"))[0])) == {
        "line",
        "words",
        "states",
    }


def test_summary(text: Path, words: Path) -> None:
    args = ("tag", text, "--dictionary", words, "--open-tags", "V", "--summary")
    rows = [line.split("\t") for line in lines(done(*args)) if not line.startswith("#")]
    assert rows[0] == ["state", "tokens", "share", "words"]
    sizes = {row[0]: int(row[1]) for row in rows[1:]}
    assert sizes == {"D": 4, "N": 4, "V": 4, "J": 1}
    assert [int(row[1]) for row in rows[1:]] == sorted(sizes.values(), reverse=True)
    whole = json.loads(done(*args, "--json").stdout)
    assert {one["state"]: one["tokens"] for one in whole["states"]} == sizes
    assert sum(one["share"] for one in whole["states"]) == pytest.approx(1.0)
    (nouns,) = [one["words"] for one in whole["states"] if one["state"] == "N"]
    assert nouns == pytest.approx({"dog": 0.5, "cat": 0.5})
    assert whole["verdict"]["name"] == "converged"


@pytest.mark.parametrize("raw", ODD_LINES)
def test_one_line_out_for_each_line_in(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "odd").write_bytes(raw)
    kept = tmp_path / "kept"
    learned = done("tag", tmp_path / "odd", "-k", "1", "--save", kept).stdout_bytes
    assert learned.count(b"\n") == n_lines(raw)
    assert done("tag", "--load", kept, tmp_path / "odd").stdout_bytes == learned
    assert done("tag", "--load", kept, stdin=raw).stdout_bytes == learned
    assert done("tag", "-k", "1", stdin=raw).stdout_bytes == learned


# what cannot be
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "how many states?"),
        (("-k", "0"), "Invalid value for '-k'"),
        (("-k", "2", "--open-tags", "A"), "--open-tags needs --dictionary"),
        (("-k", "2", "--learner", "spectral"), "spectral"),
        (("-k", "2", "--order", "3"), "Invalid value for '--order'"),
        (("-k", "2", "--decode", "best"), "choose one of viterbi, posterior"),
        (("-k", "2", "--format", "xml"), "choose one of lines, conllu"),
        (("-k", "2", "--load", "x"), "--load does not go with --n-components"),
        (("--tagged", "x"), "nothing to tag: give FILE, or --save"),
        (("--tagged", "x", "--gold", "y", "--summary"), "--gold needs FILE"),
        (("-", "--tagged", "-"), "only one file can be standard input"),
    ],
)
def test_usage_errors(args: tuple[str, ...], message: str) -> None:
    result = run("tag", *args, stdin=TEXT)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-k", "2", "--separator", " "), "--separator ' '"),
        (("-k", "2", "--column", "lemma"), "the column of tags is 'lemma'"),
        (("-k", "1", "--dictionary", "words.tsv"), "there are 4 tags, but n_components=1"),
        (("--dictionary", "words.tsv", "--open-tags", "N,,V"), "has an empty tag"),
        (("--dictionary", "words.tsv", "--separator", "J"), "contains the separator J"),
        (("--dictionary", "text.txt"), "text.txt:1 has 0 TABs"),
        (("--dictionary", "nowhere"), "nowhere cannot be read"),
        (("-k", "2", "--learner", "vb", "--smoothing", "0"), "needs a prior above 0"),
        (("-k", "2", "--save", "text.txt"), "this is the file of FILE, too"),
        (("-k", "2", "--html", "no/where.html"), "there is no folder"),
    ],
)
def test_bad_input(
    text: Path, words: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(text.parent)
    refused("tag", "text.txt", *args, message=message)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no sentences"),
        (b"\n\n", "not a single word"),
        (b"fine\n\xff\n", "is not UTF-8"),
    ],
)
def test_damaged_text(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "text").write_bytes(raw)
    refused("tag", tmp_path / "text", "-k", "2", message=message)
    refused("tag", "-k", "2", message=message, stdin=raw)


def test_no_line_is_lost_if_the_model_cannot_be_saved(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: HMM, path: Path) -> None:
        raise StoreError("no room", "make some")

    monkeypatch.setattr(HMM, "save", full)
    result = run("tag", text, "-k", "2", "--save", tmp_path / "kept")
    assert result.exit_code == 1
    assert len(lines(result)) == 5
    assert "no room" in result.stderr


# ``softcount tag`` and its files: CoNLL-U, saved models, streams, gold tags.


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
        (b"it rains", "lines"),
        (b"# a heading\n\nit rains", "lines"),
        (b"1 2 3 4 5 6 7 8 9 10", "lines"),
        (b"# text\n# more\n\n" + ROW.format(1, "it", "_", "_", "_").encode(), "conllu"),
        (b"\xef\xbb\xbf" + ROW.format("1-2", "it", "_", "_", "_").encode(), "conllu"),
        (b"# only this\n", None),
        (b"", None),
    ],
)
def test_what_a_file_is(head: bytes, form: str | None) -> None:
    assert shape(head) == form


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
        assert "1 line (3) has probability zero" in found.stderr
    assert lines(done(*load, "--states", "--proba", stdin=new))[2] == "V:1 D:1 V:1"
    said = json.loads(lines(done(*load, "--json", "--proba", stdin=new))[2])
    assert said == {
        **{"line": 3, "words": ["barks", "the", "zebra"], "states": ["V", "D", "V"]},
        "probabilities": [1.0, 1.0, 1.0],
    }
    row = conllu([[("barks", "A"), ("the", "B")]])
    found = done(*load, "--column", "upos", stdin=row)
    assert _column(found.stdout, 3) == ["V", "D"]
    assert "has probability zero" in found.stderr


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
    some = stream_text("-", None)
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
    sc.align.IBM1().fit([("a", "b")]).save(kept)
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
        ("a/D\n", "1 sentences, but the text has 5"),
        ("a/D b/D c/D\nb/D\n\nx\ny\n", "gold:2 has 1 words, but"),
        ("\n".join(["a b c"] * 2 + ["", "a b c d", "a b c"]), "not a single word has a tag"),
    ],
)
def test_gold_of_something_else(text: Path, tmp_path: Path, gold: str, message: str) -> None:
    (tmp_path / "gold").write_text(gold)
    refused("tag", text, "-k", "2", "--gold", tmp_path / "gold", message=message)


# ``softcount tag`` with files that mean harm, or just look like it.


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    HMM(2, smoothing=0.1).fit(SENTENCES).save(path)
    return path


@pytest.fixture
def kept_tags(tmp_path: Path) -> Path:
    path = tmp_path / "kept_tags"
    tags = [[tag for _, tag in one] for one in KNOWN_PAIRS]
    HMM(6, smoothing=0.1).fit([[word for word, _ in one] for one in KNOWN_PAIRS], tags).save(path)
    return path


# where a fault is
@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"a b\n\nc\0d\n", ":3 has a NUL byte"), (b"a b\n\nc \xff\n", ":3 is not UTF-8")],
)
def test_a_fault_is_named_by_its_line(tmp_path: Path, kept: Path, raw: bytes, message: str) -> None:
    (tmp_path / "bad").write_bytes(raw)
    for args in (("-k", "2"), ("--load", kept)):
        refused("tag", tmp_path / "bad", *args, message=f"bad{message}")
        refused("tag", *args, stdin=raw, message=f"standard input{message}")


def test_a_fault_in_a_later_piece_is_named_by_its_line(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.text.lines.PIECE", 16)
    (tmp_path / "bad").write_bytes(b"the dog barks\n" * 20 + b"the\0dog\n")
    result = run("tag", "--load", kept, tmp_path / "bad")
    assert result.exit_code == 1
    assert "bad:21 has a NUL byte" in result.stderr
    assert 15 <= len(lines(result)) <= 20  # whatever came in pieces before
    rows = conllu(KNOWN_PAIRS).encode()
    (tmp_path / "bad").write_bytes(rows + rows.replace(b"\told\t", b"\t\t"))
    result = run("tag", "--load", kept, tmp_path / "bad", "--format", "conllu")
    assert result.exit_code == 1
    assert f"bad:{2 * len(rows.splitlines()) - 3} has the form ''" in result.stderr


def test_conllu_with_too_few_columns_is_no_text(tmp_path: Path, kept: Path) -> None:
    damaged = conllu(KNOWN_PAIRS).replace("\t_\n", "\n", 1)
    (tmp_path / "bad").write_text(damaged)
    refused("tag", "-k", "2", stdin=damaged, message="standard input:2 has 9 columns")
    refused("tag", "--load", kept, tmp_path / "bad", message="bad:2 has 9 columns")


# files that are not there twice
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("raw", [TEXT.encode(), conllu(KNOWN_PAIRS).encode()])
def test_a_pipe_is_read_once(tmp_path: Path, kept: Path, raw: bytes) -> None:
    (tmp_path / "plain").write_bytes(raw)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for args in (("-k", "2"), ("--load", kept)):
        wanted = done("tag", tmp_path / "plain", *args).stdout
        writer = threading.Thread(target=pipe.write_bytes, args=(raw,))
        writer.start()
        assert done("tag", pipe, *args).stdout == wanted
        writer.join()


def test_packed_files_whatever_they_are_called(tmp_path: Path, kept: Path) -> None:
    wanted = done("tag", "--load", kept, stdin=TEXT).stdout
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "plain.gz").write_text(TEXT)
    for name in ("packed", "plain.gz"):
        assert done("tag", "--load", kept, tmp_path / name).stdout == wanted


# CoNLL-U as it comes
@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "# the end\n", "# the end"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_conllu_by_pieces_is_the_whole(
    tmp_path: Path,
    kept_tags: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    end: str,
    line: str,
) -> None:
    raw = ("\ufeff# begin\n\n\n" + conllu(KNOWN_PAIRS * 3) + end).replace("\n", line).encode()
    file = tmp_path / "file"
    file.write_bytes(raw)
    load = ("tag", "--load", kept_tags, file, "--proba")
    wanted = done(*load, "--html", tmp_path / "page").stdout_bytes  # all at once
    assert wanted.count(b"\n") == raw.count(b"\n")
    assert b"Prob=" in wanted
    monkeypatch.setattr("softcount.text.lines.PIECE", piece)
    assert done(*load).stdout_bytes == wanted
    assert done("tag", "--load", kept_tags, "--proba", stdin=raw).stdout_bytes == wanted
    assert done("tag", "--load", kept_tags, file, "--json").stdout.count("\n") == 6


def test_conllu_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.text.lines.PIECE", 64)
    file = tmp_path / "file.conllu"
    file.write_text(conllu(KNOWN_PAIRS * 50))
    parts = list(stream_text(str(file), None))
    assert len(parts) == 100
    whole = file.read_text().split("\n")
    for part in parts:
        (words,) = [part.sequences.sentence(0)]
        assert whole[part.line(0) - 1].split("\t")[1] == words[0]


def test_states_have_one_column_whatever_is_in_a_part(
    tmp_path: Path, kept_tags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part may have states without names only, while others have names."""
    monkeypatch.setattr("softcount.text.lines.PIECE", 1)
    monkeypatch.setattr(HMM, "predict", lambda self, some, method: [[5] * n for n in some.lengths])
    (tmp_path / "file").write_text(conllu(KNOWN_PAIRS))
    found = done("tag", "--load", kept_tags, tmp_path / "file").stdout
    assert "State=" not in found


def test_no_sentences_are_no_fault_of_a_filter(kept: Path) -> None:
    for raw in ("", "# nothing\n\n"):
        assert done("tag", "--load", kept, "--format", "conllu", stdin=raw).stdout == raw


# tags that cannot be printed
def test_tags_with_separators_and_spaces(tmp_path: Path, text: Path) -> None:
    row = ROW.format(1, "dog", "{}", "X", "_") + "\n\n"
    for tag, message in (("N/X", "contains the separator /"), ("N X", "contains white space")):
        file, kept = tmp_path / "file.conllu", tmp_path / "kept"
        file.write_text(row.format(tag))
        found = done("tag", file, "--tagged", file, "--save", kept)  # columns take anything
        assert found.stdout == file.read_text()
        assert done("tag", "--load", kept, file).stdout == file.read_text()
        refused("tag", text, "--tagged", file, "--smoothing", ".1", message=message)
        refused("tag", text, "--load", kept, message=message)
        assert len(lines(done("tag", text, "--load", kept, "--json"))) == 5
    refused("tag", text, "--load", kept, "--states", message="contains white space")


def test_gold_of_other_words(text: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text(TEXT.upper().replace("DOG", "DOG/N"))  # case says nothing
    done("tag", text, "-k", "2", "--gold", gold)
    gold.write_text(TEXT.replace("dog", "dog/N").replace("cat sleeps", "cow sleeps"))
    message = f"--gold {gold}:2 has 'cow', where {text}:2 has 'cat'"
    refused("tag", text, "-k", "2", "--gold", gold, message=message)


# the rest
def test_spectral_is_a_start() -> None:
    result = run("tag", "-k", "2", "--learner", "spectral", stdin=TEXT)
    assert result.exit_code == 2
    assert "--init spectral" in result.stderr


def test_more_states_than_memory_has_room_for(text: Path) -> None:
    refused("tag", text, "-k", "100000", message="100,000 states at order 1")
    refused("tag", text, "-k", "1000", "--order", "2", message="1,000 states at order 2")


def test_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        read_text("-", None)
    with pytest.raises(DataError, match="standard input is closed"):
        list(stream_text("-", None))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_no_room_for_the_output(text: Path, kept: Path) -> None:
    command = [sys.executable, "-m", "softcount", "tag", "--load", str(kept), str(text)]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1
    assert b"standard output cannot be written to: No space left" in result.stderr
    assert b"Traceback" not in result.stderr
