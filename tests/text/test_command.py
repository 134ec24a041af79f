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

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import softcount as sc
from softcount.cli.app import app
from softcount.cli.frame import StatusLine

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
    assert "there is no archive" in failed("info", tmp_path / "a")
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
