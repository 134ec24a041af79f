"""``softcount corpus``, as a user meets it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import softcount as sc
from softcount.cli.app import app
from softcount.cli.status import StatusLine
from softcount.text.command import READERS
from softcount.text.corpora import KINDS

RAW = "The cat sat.\n\nA dog sat: the dog.\r\n🙂 नमस्ते\n"


def run(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["corpus", *map(str, args)], input=stdin)


def done(*args: str | Path, stdin: str | bytes | None = None) -> dict[str, str]:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr or result.exception
    return dict(line.split("\t", 1) for line in result.stdout.splitlines())


def failed(*args: str | Path, code: int = 1) -> str:
    result = run(*args)
    assert result.exit_code == code, result.exception
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbf" + RAW.encode())
    return path


def test_build_and_info(texts: Path, tmp_path: Path) -> None:
    said = done("build", texts, "-o", tmp_path / "a")
    assert said == done("info", tmp_path / "a") == done("info", tmp_path / "a", "--verify")
    assert (said["documents"], said["words"], said["tokens"]) == ("4", "6", "9")
    archive = sc.text.Archive.open(tmp_path / "a")
    assert list(archive.vocabulary) == ["a", "cat", "dog", "sat", "the", "नमस्ते"]  # type: ignore[arg-type]
    assert archive.shards()[0].bags.lengths.tolist() == [3, 0, 5, 1]
    assert archive.name(2) == f"{texts}:3"


def test_json(texts: Path, tmp_path: Path) -> None:
    built = run("build", texts, "-o", tmp_path / "a", "--json")
    said = json.loads(built.stdout)
    assert said == json.loads(run("info", tmp_path / "a", "--json").stdout)
    assert said["sources"] == {str(texts): 4}
    assert said["shuffle"] is None


def test_several_files_packed_and_standard_input(texts: Path, tmp_path: Path) -> None:
    packed = tmp_path / "more.txt.gz"
    packed.write_bytes(gzip.compress(b"cat\ncat"))
    done("build", packed, "-", texts, "-o", tmp_path / "a", stdin="one\n\n")
    archive = sc.text.Archive.open(tmp_path / "a")
    names = [archive.name(d) for d in range(len(archive))]
    assert names[:5] == [f"{packed}:1", f"{packed}:2", "-:1", "-:2", f"{texts}:1"]
    assert archive.shards()[0].bags.lengths.tolist() == [1, 1, 1, 0, 3, 0, 5, 1]


def test_which_words(texts: Path, tmp_path: Path) -> None:
    stop = tmp_path / "stop.txt"
    stop.write_text("The\n")
    said = done("build", texts, "-o", tmp_path / "a", "--min-count", "2", "--stop-words", stop)
    assert (said["words"], said["min_count"], said["stop_words"]) == ("1", "2", "1")
    assert list(sc.text.Archive.open(tmp_path / "a").vocabulary) == ["sat"]  # type: ignore[arg-type]
    done("build", texts, "-o", tmp_path / "b", "--max-share", ".3", "--max-words", "2")
    assert list(sc.text.Archive.open(tmp_path / "b").vocabulary) == ["a", "cat"]  # type: ignore[arg-type]
    done("build", texts, "-o", tmp_path / "c", "--tokens", "--stop-words", "english")
    assert "sat." in sc.text.Archive.open(tmp_path / "c").vocabulary.tolist()  # type: ignore[union-attr]


def test_shuffled(texts: Path, tmp_path: Path) -> None:
    assert done("build", texts, "-o", tmp_path / "a", "--shuffle", "3")["shuffle"] == "3"
    archive = sc.text.Archive.open(tmp_path / "a")
    lengths = np.empty(4)
    lengths[archive.origin] = archive.shards()[0].bags.lengths
    assert lengths.tolist() == [3, 0, 5, 1]
    assert [archive.name(d) for d in range(4)] == [f"{texts}:{n + 1}" for n in archive.origin]


def test_errors_say_what_and_where(texts: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\n\xff\xfe\n")
    assert f"{bad}:2: this line is not UTF-8" in failed("build", bad, "-o", tmp_path / "a")
    cut_short = tmp_path / "short.gz"
    cut_short.write_bytes(gzip.compress(b"a b c\n" * 999)[:-9])
    assert "cannot be unpacked" in failed("build", cut_short, "-o", tmp_path / "a")
    assert "no such file" in failed("build", texts, tmp_path / "no.txt", "-o", tmp_path / "a")
    assert "is a folder" in failed("build", tmp_path, "-o", tmp_path / "a")
    assert "given twice" in failed("build", texts, texts, "-o", tmp_path / "a")
    assert "already exists" in failed("build", texts, "-o", tmp_path / "bad.txt")
    assert "no words are left" in failed("build", texts, "-o", tmp_path / "a", "--min-count", "9")
    assert "there is no corpus" in failed("info", tmp_path / "a")
    assert "there is no folder" in failed("build", texts, "-o", tmp_path / "no" / "a")
    failed("build", texts, code=2)
    failed("build", "-o", tmp_path / "a", code=2)
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "bad.txt", "short.gz"}


def test_verify_finds_what_opening_does_not(texts: Path, tmp_path: Path) -> None:
    done("build", texts, "-o", tmp_path / "a")
    (tmp_path / "a" / "counts.bin").write_bytes(b"\7\0" * 8)
    done("info", tmp_path / "a")
    assert "counts.bin does not match its checksum" in failed("info", tmp_path / "a", "--verify")


def test_progress_only_if_someone_is_watching(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    StatusLine().show("reading")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = StatusLine()
    progress.show("reading   1,234 documents")
    progress.end()
    assert capsys.readouterr().err == "\r\x1b[Kreading   1,234 documents\r\x1b[K"


def heard() -> None:
    """Have Ctrl-C do what it does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "softcount", "corpus", "build", "-", "-o", tmp_path / "a"]
    paths = os.pathsep.join(filter(None, ["src", os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        preexec_fn=heard,  # what runs in the background of a shell is deaf to it
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"a b c\n" * 1000)
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not any(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert any(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


# other kinds of corpora
BLANK = "\t_" * 6 + "\n"
CONLLU = f"1\tthe\t_\tDET{BLANK}2\tdog\t_\tNOUN{BLANK}\n1\tit\t_\t_{BLANK}\n"
PENN = "(S (N the\n  dog)\n (V barks))\n\n(S (N it)\n   (V rains))\n"


def built(folder: Path, content: str | bytes, kind: str, *options: str, name: str = "in") -> Any:
    """Build a corpus from a file, a packed one, and standard input: all are the same."""
    raw = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(raw)
    (folder / f"{name}.gz").write_bytes(gzip.compress(raw))
    made = []
    for n, file in enumerate([name, f"{name}.gz", "-"]):
        place = folder / f"corpus{n}"
        words = ("build", folder / file if file != "-" else file, "-o", place, "--kind", kind)
        said = done(*words, *options, stdin=raw)
        assert said["kind"] == kind
        assert said == done("info", place) == done("info", place, "--verify")
        made.append(sc.text.open_corpus(place))
        named = made[n].sequences if kind == "tagged" else made[n]
        assert named.name(0) == f"{file if file == '-' else folder / file}:1"
    assert len({len(corpus) for corpus in made}) == 1
    return made[0]


def test_sentences(tmp_path: Path) -> None:
    text = built(tmp_path, "\ufeffThe dog\n\nthe cat \r\n", "sentences", "--lowercase")
    assert [text.sentence(n) for n in range(3)] == [["the", "dog"], [], ["the", "cat"]]
    packed = done("info", tmp_path / "corpus0")
    assert (packed["items"], packed["tokens"], packed["distinct words"]) == ("3", "4", "3")


def test_sentences_of_conllu(tmp_path: Path) -> None:
    text = built(tmp_path, CONLLU, "sentences")
    assert [text.sentence(n) for n in range(2)] == [["the", "dog"], ["it"]]


@pytest.mark.parametrize("content", [CONLLU, "the/DET dog/NOUN\nit\n"])
def test_tagged_sentences(tmp_path: Path, content: str) -> None:
    text = built(tmp_path, content, "tagged")
    assert text.sentence(0) == [("the", "DET"), ("dog", "NOUN")]
    assert text.sentence(1) == [("it", None)]


def test_pairs(tmp_path: Path) -> None:
    pairs = built(tmp_path, "The dog ||| der Hund\n\na ||| \n", "pairs", "--lowercase")
    wanted = [(["the", "dog"], ["der", "hund"]), ([], []), (["a"], [])]
    assert [pairs.pair(n) for n in range(3)] == wanted
    (tmp_path / "a").write_text("The dog\n\na\n")
    (tmp_path / "b").write_text("der Hund\n\n\n")
    two = ("-s", tmp_path / "a", "-t", tmp_path / "b", "--kind", "pairs", "--lowercase")
    done("build", *two, "-o", tmp_path / "two")
    again = sc.text.open_corpus(tmp_path / "two")
    assert [again.pair(n) for n in range(3)] == wanted
    assert again.name(2) == f"{tmp_path / 'a'}:3"
    (tmp_path / "b").write_text("der Hund\n")
    message = failed("build", *two, "-o", tmp_path / "three")
    assert f"{tmp_path / 'b'} has 1 lines, and {tmp_path / 'a'} has more" in message
    assert not (tmp_path / "three").exists()


def test_trees(tmp_path: Path) -> None:
    trees = built(tmp_path, PENN, "trees")
    assert [str(tree) for tree in trees] == ["(S (N the dog) (V barks))", "(S (N it) (V rains))"]


def test_trees_line_by_line(tmp_path: Path) -> None:
    trees = built(tmp_path, "\n(S (N it) (V rains))\n\n(S a)\n", "trees")
    assert [tree is None for tree in trees] == [True, False, True, False]


def test_damaged_trees(tmp_path: Path) -> None:
    for n, content in enumerate(["(S (N it)\n", "(S a)\n(S b))\n", "S a)\n", "word\n"]):
        (tmp_path / "bad").write_text(content)
        place = tmp_path / f"c{n}"
        assert "bad:" in failed("build", tmp_path / "bad", "-o", place, "--kind", "trees")


@pytest.mark.parametrize("content", ["1,2.5\n\n3,4e1\n", "1 2.5\n\n3\t40\n", "1; 2.5\n\n3;40\n"])
def test_vectors(tmp_path: Path, content: str) -> None:
    points = built(tmp_path, content, "vectors", "--dtype", "float32")
    assert points.rows[:].tolist() == [[1, 2.5], [3, 40]]
    assert points.lengths.tolist() == [1, 0, 1]
    assert done("info", tmp_path / "corpus0")["dimensions"] == "2"


def test_vectors_of_numpy(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(10, 3))
    np.save(tmp_path / "x.npy", x)
    done("build", tmp_path / "x.npy", "-o", tmp_path / "c", "--kind", "vectors")
    assert (sc.text.open_corpus(tmp_path / "c").rows[:] == x).all()
    np.save(tmp_path / "x.npy", x.astype(object), allow_pickle=True)
    message = failed("build", tmp_path / "x.npy", "-o", tmp_path / "d", "--kind", "vectors")
    assert "has no array of numbers" in message
    np.save(tmp_path / "x.npy", x[0])
    message = failed("build", tmp_path / "x.npy", "-o", tmp_path / "d", "--kind", "vectors")
    assert "has an array of float64 of the shape (3,)" in message


def test_items(tmp_path: Path) -> None:
    items = built(tmp_path, '"HTH"\n{"a": [1, null]}\n', "items")
    assert list(items) == ["HTH", {"a": [1, None]}]
    (tmp_path / "x").write_text("a b ||| c\nd ||| e f\n")
    form = ("--kind", "items", "--form", "tokens", "--arguments", "2")
    done("build", tmp_path / "x", "-o", tmp_path / "x.corpus", *form)
    assert sc.text.open_corpus(tmp_path / "x.corpus")[1] == (["d"], ["e", "f"])


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("items", '"a"\n\n', "bad:2 is blank"),
        ("items", "a b\n", "bad:1: not JSON"),
        ("vectors", "1 2\nx 3\n", "bad:2: 'x' is not a number"),
        ("vectors", "1 2\n1 nan\n", "bad:2: '1 nan' has no finite numbers"),
        ("vectors", "1 2\n3\n", "bad:2 has 1 dimensions, not 2"),
        ("pairs", "a ||| b\nc\n", "bad:2"),
        ("sentences", b"a\n\xff\n", "bad:2 is not UTF-8"),
        ("sentences", b"a\nb\0c\n", "bad:2"),
        ("sentences", "", "there are no sentences"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, kind: str, content: Any, said: str) -> None:
    raw = content.encode() if isinstance(content, str) else content
    (tmp_path / "bad").write_bytes(raw)
    message = failed("build", tmp_path / "bad", "-o", tmp_path / "c", "--kind", kind)
    assert said in message
    assert "hint:" in message
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_options_of_other_kinds_are_refused(texts: Path, tmp_path: Path) -> None:
    for kind, option in [
        ("sentences", ("--min-count", "2")),
        ("sentences", ("--shuffle", "2")),
        ("documents", ("--lowercase",)),
        ("tagged", ("--dtype", "float32")),
        ("vectors", ("-s", str(texts), "-t", str(texts))),
        ("trees", ("--form", "json")),
    ]:
        words = ("build", texts, "-o", tmp_path / "c", "--kind", kind, *option)
        assert f"--kind {kind} does not go with" in failed(*words, code=2)
    assert "NAME" in run("build", "--help").stdout
    failed("build", texts, "-o", tmp_path / "c", "--kind", "pears", code=2)
    failed("build", "-o", tmp_path / "c", "--kind", "pairs", code=2)
    failed("build", "-s", texts, "-o", tmp_path / "c", "--kind", "pairs", code=2)


def test_every_kind_has_a_reader() -> None:
    assert KINDS.keys() <= READERS.keys()


def test_a_word_within_the_first_second(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(StatusLine, "show", lambda self, text: said.append(text))
    done("build", texts, "-o", tmp_path / "c", "--kind", "sentences")
    assert said[:2] == [f"reading {texts}", "4 sentences"]
