"""``--folder``, ``softcount resume`` and ``softcount show``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import softcount as sc
from softcount.core.folder import FitFolder
from softcount.learners import learn_stream
from tests.commands import done, lines, refused, run


@pytest.fixture
def here(texts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(texts.parent)
    return texts.parent


def test_resume_runs_the_command_again(here: Path) -> None:
    call = ("cluster", "texts.txt", "-k", "2", "--folder", "run", "--json")
    wanted = done(*call).stdout
    assert done("resume", "run").stdout == wanted
    assert done("resume", "run", "--threads", "2").stdout == wanted
    shutil.move("run", "moved")  # a folder may be moved
    assert done("resume", here / "moved").stdout == wanted
    Path("texts.txt").write_text("other words\n" * 6)
    refused("resume", "moved", message="holds a fit of other data")


def test_standard_input_is_kept(here: Path) -> None:
    text = (here / "texts.txt").read_bytes()
    wanted = done("topics", "-", "-k", "2", "--folder", "run", stdin=text).stdout
    assert (here / "run" / "stdin.txt").read_bytes() == text
    assert done("resume", "run", stdin="").stdout == wanted
    pairs = "the house ||| das haus\nthe book ||| das buch\n"
    wanted = done("align", "--folder", "pairs", stdin=pairs).stdout
    assert done("resume", "pairs", stdin="").stdout == wanted


def test_show(here: Path) -> None:
    done("cluster", "texts.txt", "-k", "2", "--folder", "run")
    said = lines(done("show", "run"))
    assert said[0] == "model      MultinomialMixture"
    assert "cluster texts.txt -k 2" in said[1]
    assert any(line.startswith("ended") for line in said)
    assert said[-1] == "fitted     run/model.softcount"
    Path("run/model.softcount").unlink()  # as if it had been killed
    assert lines(done("show", "run"))[-1] == "now        stopped; `softcount resume run` goes on"
    folder = FitFolder("run")
    folder._hold()
    assert lines(done("show", "run"))[-1] == "now        a process is fitting"
    folder.close()
    facts = json.loads(done("show", "run", "--json").stdout)
    assert facts["progress.json"]["step"] > 0


def test_show_a_stream(here: Path) -> None:
    for _ in learn_stream(sc.LDA(2), [["a b", "b a"], ["c d"]], here / "stream"):
        pass
    assert "learned    2 blocks of a stream" in lines(done("show", "stream"))
    refused("resume", "stream", message="was made by learn_stream")


def test_what_is_refused(here: Path) -> None:
    refused("show", "nowhere", message="no such folder")
    refused("resume", "texts.txt", message="no such folder")
    refused("show", here, message="holds no fit")
    refused("resume", here, message="holds no fit")
    done("cluster", "texts.txt", "-k", "2", "--folder", "run")
    refused("cluster", "texts.txt", "-k", "3", "--folder", "run", message="other settings")
    done("cluster", "texts.txt", "-k", "2", "--save", "my.softcount")
    result = run("cluster", "texts.txt", "--load", "my.softcount", "--folder", "run")
    assert result.exit_code == 2
    assert "--folder" in result.stderr
