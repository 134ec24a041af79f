"""The command line, as a user meets it: in a process of its own where streams matter."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import softcount
from softcount.cli.app import app
from softcount.cli.demo_stories import find_tags
from softcount.cli.reading import read_items
from softcount.core.errors import DataError
from softcount.core.progress import step_line
from softcount.core.types import State
from tests.commands import reported

ROOT = Path(__file__).parents[2]
COINS = ROOT / "examples" / "coins.py"
IBM1 = """
import softcount as sc
t = sc.table("t")
@sc.story
def link(es, f):
    for e in es: yield t[e, f]
@sc.story
def pair(es, fs):
    yield tuple(link(es, f) for f in fs)
"""


def softcount_(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


@pytest.fixture
def tosses(tmp_path: Path) -> Path:
    path = tmp_path / "tosses.txt"
    path.write_text("HHH\nTTT\nHHH\nTTT\n")
    return path


def model(tmp_path: Path, code: str) -> Path:
    path = tmp_path / "model.py"
    path.write_text(code)
    return path


def entries(result: Result) -> dict[Sequence[str], float]:
    """The tab-separated entries that a pipe gets."""
    rows = [line.split("\t") for line in result.stdout.splitlines() if not line.startswith("#")]
    assert rows[0] == ["table", "condition", "outcome", "probability"]
    return {tuple(row[:3]): float(row[3]) for row in rows[1:]}


def test_version() -> None:
    assert softcount_("--version").stdout == f"softcount {softcount.__version__}\n"


def test_module_is_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "softcount", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"softcount {softcount.__version__}\n"


def test_help_says_that_the_model_is_run() -> None:
    assert "RUN as a program" in " ".join(softcount_("story", "--help").stdout.split())


def test_pipe_gets_tab_separated_tables(tosses: Path) -> None:
    result = softcount_("story", COINS, tosses, "--chars")
    assert result.exit_code == 0
    found = entries(result)
    for z in "AB":
        assert sum(found.get(("flip", z, side), 0.0) for side in "HT") == pytest.approx(1)
    assert sum(p for (table, *_), p in found.items() if table == "which") == pytest.approx(1)
    assert reported(result) == ""


def test_json_has_tables_trace_and_verdict(tosses: Path) -> None:
    whole = json.loads(softcount_("story", COINS, tosses, "--chars", "--json").stdout)
    assert whole["verdict"]["name"] == "converged"
    assert whole["params"]["which"]["A"] == pytest.approx(0.5, abs=1e-3)
    assert whole["trace"]["objective"][-1] == pytest.approx(-2.772589, abs=1e-4)
    assert "softcount" in whole["signature"]


def test_json_stays_json_when_figures_are_not_finite(tosses: Path) -> None:
    args = ("--chars", "--json", "--learner", "variational-bayes", "--max-iter", "3")
    result = softcount_("story", COINS, tosses, *args)

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    json.loads(result.stdout, parse_constant=refuse)


@pytest.mark.parametrize(
    "learner",
    [
        "em",
        "hard-em",
        "online-em",
        "incremental-em",
        "variational-bayes",
        "monte-carlo-em",
        "gibbs",
    ],
)
def test_every_learner(tosses: Path, learner: str) -> None:
    args = ("--chars", "--learner", learner, "--max-iter", "6", "--n-init", "2", "--tol", "1e-3")
    result = softcount_("story", COINS, tosses, *args)
    assert result.exit_code == 0, result.stderr
    assert sum(p for (table, *_), p in entries(result).items() if table == "which") == (
        pytest.approx(1, abs=1e-4)
    )


def test_same_seed_same_output_for_any_threads(tosses: Path) -> None:
    args = ("story", COINS, tosses, "--chars", "--seed", "3", "--threads")
    assert softcount_(*args, "1").stdout == softcount_(*args, "2").stdout


def test_pairs_from_stdin(tmp_path: Path) -> None:
    text = "three rabbits ||| trois lapins\nrabbits of grenoble ||| lapins de Grenoble\n"
    args = (
        "story",
        model(tmp_path, IBM1),
        "-",
        "--init",
        "uniform",
        "--max-iter",
        "2",
        "--tol",
        "0",
    )
    found = entries(softcount_(*args, stdin=text))
    assert found["t", "three", "trois"] == pytest.approx(11 / 20, abs=1e-6)
    assert found["t", "rabbits", "lapins"] == pytest.approx(1800 / 3373, abs=1e-6)


def test_name_chooses_the_story(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text('[["a", "b"], "x"]\n')
    args = ("story", model(tmp_path, IBM1), data, "--json-lines", "--name", "link")
    assert ("t", "a", "x") in entries(softcount_(*args))


def test_best_gives_one_line_for_each_line(tmp_path: Path) -> None:
    data = tmp_path / "tosses.txt"
    data.write_text("HHH\n\nTTT\n")
    lines = softcount_("story", COINS, data, "--chars", "--best").stdout.splitlines()
    assert len(lines) == 3
    assert "which" in lines[0]
    assert lines[1] == ""
    assert lines[0] != lines[2]


def test_smoothing_leaves_nothing_impossible(tosses: Path) -> None:
    smooth = entries(softcount_("story", COINS, tosses, "--chars", "--smoothing", "1"))
    assert min(smooth.values()) > 0.05


def test_save_and_page(tosses: Path, tmp_path: Path) -> None:
    kept, page = tmp_path / "coins.softcount", tmp_path / "coins.html"
    softcount_("story", COINS, tosses, "--chars", "--save", kept, "--html", page)
    which, flip = softcount.table("which"), softcount.table("flip")

    @softcount.story
    def coins(tosses: str) -> Iterator[Any]:
        for z in "AB":
            yield which[z], *(flip[z, x] for x in tosses)

    again = softcount.load(kept, story=coins)
    assert again.score(["HHH"])[0] == pytest.approx(math.log(0.5), abs=1e-3)
    assert "<svg" in page.read_text()


def test_page_stays_small_and_says_so(tmp_path: Path) -> None:
    page, data = tmp_path / "pairs.html", tmp_path / "pairs.txt"
    data.write_text("".join(f"a{i} ||| b{i}\n" for i in range(100)))
    softcount_("story", model(tmp_path, IBM1), data, "--html", page)
    assert page.read_text().count("<caption>") == 40
    assert "Only the first 40 distributions are shown." in page.read_text()


def test_gz_is_unpacked(tosses: Path, tmp_path: Path) -> None:
    packed = tmp_path / "tosses.txt.gz"
    packed.write_bytes(gzip.compress(tosses.read_bytes()))
    assert read_items(str(packed), "chars", 1) == read_items(str(tosses), "chars", 1)


@pytest.mark.parametrize(
    ("raw", "form", "arguments", "where"),
    [
        (b"fine\n\xff\n", "tokens", 1, ":2: this line is not UTF-8"),
        (b"a ||| b\n\nc\n", "tokens", 2, ":3: the story takes 2 arguments"),
        (b"a ||| b\n", "tokens", 1, ":1: the story takes 1 argument,"),
        (b'{"a": 1}\n[1,\n', "json", 1, ":2: not JSON"),
        (b"[1]\n", "json", 2, ":1: the story takes 2 arguments"),
        (b"[" * 100_000 + b"\n", "json", 1, ":1: not JSON"),
    ],
)
def test_bad_lines_are_named(
    tmp_path: Path, raw: bytes, form: str, arguments: int, where: str
) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(raw)
    with pytest.raises(DataError) as error:
        read_items(str(path), form, arguments)
    assert f"{path}{where}" in str(error.value)
    assert error.value.hint


def test_only_newlines_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("\ufeffa\u2028b c\r\nd\n", encoding="utf-8", newline="")
    assert [line.item for line in read_items(str(path), "chars", 1)] == ["a\u2028b c", "d"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import softcount\n", "there is no story in this file"),
        ("x = (\n", "model.py:1: SyntaxError"),
        ("\n1 / 0\n", "model.py:2: ZeroDivisionError"),
        (IBM1.replace("yield t[e, f]", "yield t[e, f][0]"), "model.py:6: TypeError"),
    ],
)
def test_faults_of_the_model_file_name_the_line(tmp_path: Path, code: str, message: str) -> None:
    result = softcount_("story", model(tmp_path, code), "-", stdin="a ||| b\n")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(x:\n", "model.py:1: SyntaxError"),
        ("a\0b", "model.py: SyntaxError"),
        ("\n1 / 0\n", "model.py:2: ZeroDivisionError"),
        (IBM1.replace("yield t[e, f]", "yield t[e, [f]]"), "model.py:6: table 't' is indexed"),
        (IBM1.replace("yield t[e, f]", "yield 3"), "model.py: link("),
    ],
)
def test_a_model_file_named_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    """Python makes the names of modules absolute; the message keeps the name that was given."""
    model(tmp_path, code)
    monkeypatch.chdir(tmp_path)
    result = softcount_("story", "model.py", "-", stdin="a ||| b\n")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"softcount: {message}"), result.stderr


def test_a_story_that_fails_names_the_line_it_was_told_of(tosses: Path, tmp_path: Path) -> None:
    tosses.write_text('"HHH"\n\n3\n')
    result = softcount_("story", COINS, tosses, "--json-lines")
    assert result.exit_code == 1
    assert f"{COINS}:" in result.stderr
    assert f"while tracing the story on {tosses}:3" in result.stderr


@pytest.mark.parametrize("option", ["--save", "--html"])
@pytest.mark.parametrize("target", ["", "nowhere/x"])
def test_what_cannot_be_written_is_refused_before_learning(
    tosses: Path, tmp_path: Path, option: str, target: str
) -> None:
    noisy = model(tmp_path, "print('run')\n" + IBM1)
    result = softcount_("story", noisy, tosses, "--chars", option, tmp_path / target)
    assert result.exit_code == 1
    assert f"{option} {tmp_path / target}: there is " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.py", "-"), "nowhere.py: there is no such file"),
        ((COINS, "nowhere.txt"), "nowhere.txt: cannot be read"),
        ((COINS, "-", "--name", "dice"), "no story called dice"),
        ((COINS, "-"), "-: the file is empty"),
        ((COINS.parent, "-"), f"{COINS.parent}: this is not a file"),
        ((COINS, "-", "--init", "somehow"), "somehow"),
        ((COINS, "-", "--tol", "-1"), "tol=-1"),
    ],
)
def test_bad_input_is_said_without_a_traceback(args: Sequence[str | Path], message: str) -> None:
    stdin = "\n \n" if "empty" in message else "HT\n"
    result = softcount_("story", *args, stdin=stdin)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "hint:" in result.stderr
    assert result.stdout == ""


def test_an_impossible_line_is_named(tmp_path: Path) -> None:
    code = IBM1.replace("for e in es: yield", "for e in es[1:]: yield")
    text = "a b ||| x\n\na ||| x\n"
    result = softcount_("story", model(tmp_path, code), "-", stdin=text)
    assert result.exit_code == 1
    assert "-:3" in result.stderr


@pytest.mark.parametrize(
    "args",
    [("--chars", "--tokens"), ("--learner", "magic"), ("--threads", "many"), ("--seed", "-1")],
)
def test_wrong_options_are_usage_errors(tosses: Path, args: Sequence[str]) -> None:
    assert softcount_("story", COINS, tosses, *args).exit_code == 2


def test_progress_line() -> None:
    state = State(7, {}, -1234.5, -1200.0, 2.0, seconds=0.5, change=0.001)
    line = step_line(state, items=100)
    assert "step    7" in line
    assert "-1,234.5000" in line
    assert "1.0e-03" in line
    assert "200 items/s" in line
    assert "nan" not in step_line(State(0, {}, -1.0, -1.0, 2.0, 0.5, math.nan), items=1)


def test_demo_finds_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = tmp_path / "demo.html"
    result = softcount_("demo", "--html", page)
    assert result.exit_code == 0, result.stderr
    for found in ("haus", "katze", "60 of 60 notes"):
        assert found in result.stdout
    assert page.read_text().count("<svg") == 4
    assert page.read_text().count("@sc.story") == 6
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    brief = readme.partition("what the demo prints")[2].split("```")[1].splitlines()[1:]
    assert len(brief) == 3
    assert set(brief) <= {line.rstrip() for line in result.stdout.splitlines()}


def test_a_closed_pipe_is_no_fault(tosses: Path) -> None:
    command = [sys.executable, "-m", "softcount", "story", str(COINS), str(tosses), "--chars"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""


def test_demo_does_not_claim_what_it_did_not_find() -> None:
    """The text says that sees is found beside in."""
    kinds = [dict(one.rows) for one in find_tags().bars]
    assert any({"sees", "in"} <= set(kind) for kind in kinds)
