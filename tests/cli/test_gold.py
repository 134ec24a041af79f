"""``--gold``: answers beside classes that are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import done, lines, run


def test_gold_classes(texts: Path, tmp_path: Path) -> None:
    gold, page = tmp_path / "gold.txt", tmp_path / "page.html"
    gold.write_text("t\nt\n-1\n\np\nt\n")
    result = done("cluster", texts, "-k", "2", "--gold", gold, "--html", page)
    assert "# beside gold classes: 4 items, 2 found classes, 2 gold (left out" in result.stderr
    assert "many-to-one (purity)   0.750" in result.stderr
    assert "many-to-one (purity)   0.750" in page.read_text(encoding="utf-8")
    assert lines(result) == lines(done("cluster", texts, "-k", "2"))
    whole = json.loads(
        done("cluster", texts, "-k", "2", "--gold", gold, "--summary", "--json").stdout
    )
    assert whole["gold"]["many_to_one"] == 0.75
    assert whole["gold"]["unknown"] == 2
    assert "accuracy" not in whole["gold"]


def test_gold_labels(texts: Path, labelled: Path, tmp_path: Path) -> None:
    """Names matter for accuracy, and do not for agreement."""
    gold = tmp_path / "gold.txt"
    gold.write_text("pets\npets\npets\ntech\n-1\npets\n")
    args = ("classify", "--train", labelled, texts, "--gold", gold, "--summary", "--json")
    found = json.loads(done(*args).stdout)["gold"]
    assert found["accuracy"] == pytest.approx(1 / 5)
    assert found["one_to_one"] == pytest.approx(4 / 5)
    assert "accuracy               0.200" in done(*args[:-2]).stderr


def test_gold_of_points_skips_blank_lines(points: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("a\na\nnowhere\nb\nb\na\nb\n")
    args = ("cluster", points, "-k", "2", "--model", "kmeans", "--gold", gold)
    assert "beside gold classes: 6 items, 2 found classes, 2 gold" in done(*args).stderr
    gold.write_text("\n\na\n\n\n\n\n")
    result = run(*args)
    assert result.exit_code == 1
    assert "only blank lines have a known class" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n", ": 2 lines, while "),
        ("\n-1\n" * 3, ": no line has a known class"),
    ],
)
def test_bad_gold_is_said_before_learning(
    texts: Path, tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.cli.frame.LearningCommand._learn", None)
    gold = tmp_path / "gold.txt"
    gold.write_text(text)
    result = run("cluster", texts, "--gold", gold)
    assert result.exit_code == 1
    assert f"--gold {gold}{message}" in result.stderr
    assert "hint:" in result.stderr
