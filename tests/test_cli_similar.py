"""``softcount similar``, as a user meets it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount import store
from tests.commands import PETS, TECH, done, lines, refused, run


@pytest.fixture
def model(texts: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model.softcount"
    done("topics", texts, "-k", "2", "--save", path)
    return path


# what is found
@pytest.mark.parametrize("words", ["0", "0.7", "1"])
def test_hits_are_those_of_the_python_model(model: Path, words: str) -> None:
    expected = [
        f"{rank}\t{score:.4f}\t{number + 1}"
        for rank, (number, score) in enumerate(
            sc.load(model).similar("dog mouse", 4, words=float(words)), 1
        )
    ]
    assert lines(done("similar", model, "dog mouse", "-n", "4", "--words", words)) == expected


def test_the_documents_are_shown(model: Path, texts: Path) -> None:
    said = lines(done("similar", model, "iPod", texts, "-n", "3", "--words", "1"))
    assert said[0].split("\t")[2:] == ["1", TECH[0]]
    assert {line.split("\t")[3] for line in said} <= {*TECH, *PETS}
    assert len(said) == 3


def test_other_documents_than_those_learned_from(model: Path) -> None:
    text = "a mouse\nApple\tPie\rand cream\n"
    found = lines(done("similar", model, "iPhone", "-", stdin=text))
    assert [line.split("\t")[2] for line in found] == ["2", "1"]
    assert found[0].split("\t")[3] == "Apple\\tPie\\rand cream"


def test_more_is_asked_for_than_there_is(model: Path) -> None:
    assert len(lines(done("similar", model, "dog", "-n", "1000"))) == 6


# queries from standard input
def test_several_queries(model: Path, texts: Path) -> None:
    stdin = "mouse\n\nzzz\r\niPod"
    result = done("similar", model, "-n", "2", "--words", "1", stdin=stdin)
    rows = [line.split("\t") for line in lines(result)]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["4", "1"], ["4", "2"]]
    assert [row[3] for row in rows][::2] == ["5", "1"]
    assert result.stderr == "softcount: query 3 has no word that the model knows\n"
    with_texts = done("similar", model, "-", texts, "-n", "2", "--words", "1", stdin=stdin)
    shown = [line.split("\t") for line in lines(with_texts)]
    assert [row[:4] for row in shown] == rows
    assert [row[4] for row in shown][::2] == [PETS[1], TECH[0]]


def test_json_has_a_line_for_each_query(model: Path, texts: Path) -> None:
    stdin = "mouse\n\nzzz\niPod"
    said = lines(done("similar", model, "-", texts, "-n", "2", "--json", stdin=stdin))
    found = [json.loads(line) for line in said]
    assert [(one["query"], one["text"], len(one["hits"])) for one in found] == [
        (1, "mouse", 2),
        (2, "", 0),
        (3, "zzz", 0),
        (4, "iPod", 2),
    ]
    for one in found:
        for rank, hit in enumerate(one["hits"], 1):
            assert hit["rank"] == rank
            assert hit["text"] == (TECH + PETS)[hit["line"] - 1]


def test_queries_are_answered_as_they_come(model: Path) -> None:
    command = [sys.executable, "-m", "softcount", "similar", str(model), "-n", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, query in enumerate((b"dog\n", b"Apple\n"), 1):
            process.stdin.write(query)
            process.stdin.flush()
            assert process.stdout.readline().startswith(f"{number}\t1\t".encode())
        process.stdin.close()
    assert process.returncode == 0


def test_a_query_that_finds_nothing(model: Path) -> None:
    result = done("similar", model, "zzz")
    assert result.stdout == ""
    assert result.stderr == "softcount: the query has no word that the model knows\n"


@pytest.mark.parametrize("query", ["नमस्ते Apple 🙂", "Apple\x00", "Apple " * 100_000])
def test_odd_queries(model: Path, query: str) -> None:
    assert done("similar", model, query).stdout == done("similar", model, "apple").stdout


# archives
def test_documents_of_an_archive_have_names(
    texts: Path, archive: Path, model: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.softcount"
    done("topics", archive, "-k", "2", "--save", kept)
    refused("similar", kept, "dog", message="holds no documents to be found")
    args = ("similar", kept, "mouse", archive, "-n", "1", "--words", "1")
    assert lines(done(*args))[0].split("\t")[2] == f"{texts}:5"
    hit = json.loads(done(*args, "--json").stdout)["hits"][0]
    assert (hit["line"], hit["name"]) == (5, f"{texts}:5")
    assert lines(done("similar", kept, "mouse", texts, "-n", "1", "--words", "1"))[0].endswith(
        f"\t5\t{PETS[1]}"
    )


# in a terminal
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_documents_fit_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from softcount.topics import command as similar

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "60")
    hit = {"rank": 1, "score": 0.5, "line": 7, "text": "\x1b[31mword " * 1000}
    similar._print([hit], 1)
    shown = screen.getvalue()
    assert len(shown.expandtabs()) <= 60
    assert "word" in shown
    assert "\x1b" not in shown


# what cannot be
def test_models_of_other_kinds(texts: Path, tmp_path: Path) -> None:
    other = tmp_path / "classes.softcount"
    done("cluster", texts, "-k", "2", "--save", other)
    message = f"{other} has a model of kind MultinomialMixture, which softcount similar cannot use"
    refused("similar", other, "dog", message=message)


def test_a_model_of_bare_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.softcount"
    sc.LDA(2).fit(np.eye(4, dtype=int)).save(path)
    refused("similar", path, "dog", message="fitted to a matrix of counts")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.softcount", "dog"), "cannot read nowhere.softcount"),
        (("MODEL", "dog", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("MODEL", "dog", "-"), "-: the file is empty"),
        (("TEXTS", "dog"), "texts.txt"),
        (("FOLDER", "dog"), "FOLDER"),
    ],
)
def test_bad_input_is_said_without_a_traceback(
    model: Path, texts: Path, tmp_path: Path, args: Sequence[str], message: str
) -> None:
    known = {"MODEL": model, "TEXTS": texts, "FOLDER": tmp_path}
    wanted = str(tmp_path) if message == "FOLDER" else message
    refused("similar", *(known.get(arg, arg) for arg in args), message=wanted, stdin="\n\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("m", "-", "-"), "only one of queries and documents"),
        (("m", "dog", "-n", "0"), "-n"),
        (("m", "dog", "--words", "1.5"), "--words"),
    ],
)
def test_wrong_options_are_usage_errors(args: Sequence[str], message: str) -> None:
    result = run("similar", *args)
    assert result.exit_code == 2
    assert message in result.stderr


Tamper = Callable[[dict[str, np.ndarray], dict[str, object]], object]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda arrays, meta: arrays.update({"index.numbers": arrays["index.numbers"] + 99}),
        lambda arrays, meta: arrays.update({"index.borders": arrays["index.borders"][::-1].copy()}),
        lambda arrays, meta: arrays.update({"index.idf": arrays["index.idf"] * np.nan}),
        lambda arrays, meta: arrays.pop("index.values"),
        lambda arrays, meta: meta.update(vocabulary=["a"]),
        lambda arrays, meta: meta.update(settings={"n_topics": 10**12}),
        lambda arrays, meta: meta.update(vectorizer={"analyzer": "os.system"}),
    ],
)
def test_a_file_that_lies_is_refused(model: Path, tmp_path: Path, tamper: Tamper) -> None:
    stored = store.read(model)
    arrays, meta = dict(stored.arrays), dict(stored.meta)
    tamper(arrays, meta)
    path = tmp_path / "hostile.softcount"
    store.write(path, stored.kind, arrays, meta, stored.signature)
    refused("similar", path, "dog", message="softcount: ")


def test_a_file_cut_short_is_refused(model: Path) -> None:
    model.write_bytes(model.read_bytes()[:-9])
    refused("similar", model, "dog", message=str(model))


def test_a_closed_pipe_is_no_fault(model: Path, texts: Path) -> None:
    texts.write_text("dog\n" * 20_000)
    command = [sys.executable, "-m", "softcount", "similar", str(model), "-n", "20000"]
    with subprocess.Popen(
        [*command, "dog", str(texts)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
