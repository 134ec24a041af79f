"""``softcount select``, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from softcount.cli.app import app
from tests.commands import reported

TEXTS = ["a b a b", "b a b a", "c d d c", "d c c d", "e f f e", "f e e f"] * 4


def select(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["select", *map(str, args)], input=stdin)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")  # blank lines are skipped
    return path


def test_table(texts: Path) -> None:
    result = select(texts, "-k", "1:5")
    assert result.exit_code == 0, result.output
    rows = result.stdout.splitlines()
    assert rows[0].split()[0] == "k"
    assert len(rows) == 7
    assert rows[3].startswith("→  3")
    assert reported(result) == ""


def test_json(texts: Path) -> None:
    found = json.loads(select(texts, "-k", "2,3", "--by", "heldout", "--json").stdout)
    assert found["best_k"] == 3
    assert found["items"] == len(TEXTS)
    assert found["edge"] == "largest"
    assert [row["k"] for row in found["table"]] == [2, 3]
    assert all(isinstance(row["heldout"], float) for row in found["table"])


def test_stdin_and_steps() -> None:
    result = select("-", "-k", "1:5:2", "--json", stdin="\n".join(TEXTS))
    assert [row["k"] for row in json.loads(result.stdout)["table"]] == [1, 3, 5]


def test_bernoulli(texts: Path) -> None:
    found = json.loads(select(texts, "-k", "2", "--model", "bernoulli", "--json").stdout)
    assert found["table"][0]["parameters"] == 1 + 2 * 6


def test_points(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 9]], 30, axis=0)
    path = tmp_path / "points.tsv"
    np.savetxt(path, x, delimiter="\t")
    found = json.loads(select(path, "-k", "1:3", "--model", "gaussian", "--json").stdout)
    assert found["best_k"] == 2
    result = select(path, "--model", "gaussian", "--min-count", "3")
    assert result.exit_code == 2
    assert "--min-count" in result.output


def test_tokens_keep_their_case(tmp_path: Path) -> None:
    path = tmp_path / "cased.txt"
    path.write_text("A a\na A\n" * 3)
    free = [
        json.loads(select(path, "-k", "1", "--json", *more).stdout)["table"][0]["parameters"]
        for more in ([], ["--tokens"])
    ]
    assert free == [0, 1]


def test_page(texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert select(texts, "-k", "2:4", "--html", page).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert "<svg" in html
    assert "BIC chooses 3" in html
    assert "<h1>How many classes?</h1>" in html
    assert "The 3 classes" in html
    assert all(f">{marks}</td>" in html for marks in ("a b", "c d", "e f"))
    assert "outside the range" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("k", "edge", "said"),
    [
        ("1:3", "largest", "3 is the largest number tried"),
        ("3:5", "smallest", "3 is the smallest number tried"),
        ("1:5", None, ""),
        ("3", None, ""),
    ],
)
def test_a_choice_at_the_edge(texts: Path, tmp_path: Path, k: str, edge: str, said: str) -> None:
    page = tmp_path / "page.html"
    text = select(texts, "-k", k, "--html", page).stdout
    assert json.loads(select(texts, "-k", k, "--json").stdout)["edge"] == edge
    for shown in (text, page.read_text(encoding="utf-8")):
        assert ("the best may lie outside the range" in shown) == bool(said)
        assert said in shown


def test_one_class_is_no_edge(tmp_path: Path) -> None:
    path = tmp_path / "same.txt"
    path.write_text("a b\n" * 9)
    found = json.loads(select(path, "-k", "1:2", "--json").stdout)
    assert (found["best_k"], found["edge"]) == (1, None)


def test_starts_and_stop_words(texts: Path) -> None:
    args = ("-k", "2,3", "--json", "--init", "random", "--short-runs", "4", "--seed", "1")
    found = json.loads(select(texts, *args).stdout)
    assert found["best_k"] == 3
    english = json.loads(select(texts, *args, "--stop-words", "english").stdout)
    assert (
        english["table"][0]["parameters"] == found["table"][0]["parameters"] - 2
    )  # a, in 2 classes
    wrong = select(texts, "--init", "somehow")
    assert wrong.exit_code == 1
    assert "somehow" in wrong.stderr


def test_a_strange_criterion_is_a_usage_error(texts: Path) -> None:
    result = select(texts, "--by", "luck")
    assert result.exit_code == 2
    assert "luck: choose one of bic, aic, icl, heldout" in result.stderr


@pytest.mark.parametrize("k", ["", "0:3", "5:2", "2:9:0", "a", "2:3:1:1", "2.5"])
def test_strange_numbers(texts: Path, k: str) -> None:
    result = select(texts, "-k", k)
    assert result.exit_code == 2
    assert "5:50:5" in result.output


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("", (), "the file is empty"),
        ("\n \n", (), "the file is empty"),
        ("a b\nb a\n", ("-k", "2:20"), "too few for k=20"),
        ("a b\n", ("-k", "1", "--by", "heldout"), "cannot split 1 items"),
        ("1 2\n3 x\n", ("-k", "1", "--model", "gaussian"), ":2: 'x' is not a number"),
        ("a b\n", ("-k", "0"), "k contains 0"),
    ],
)
def test_honest_errors(tmp_path: Path, content: str, more: tuple[str, ...], message: str) -> None:
    path = tmp_path / "data.txt"
    path.write_text(content)
    result = select(path, *more)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr


def test_page_that_cannot_be_written_is_refused_first(texts: Path, tmp_path: Path) -> None:
    result = select(texts, "--html", tmp_path / "nowhere" / "page.html")
    assert result.exit_code == 1
    assert "no folder" in result.stderr
