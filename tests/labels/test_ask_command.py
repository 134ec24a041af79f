"""``softcount ask``: questions, their answers, and lines that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import done, refused

LINES = [
    *("pets\tcat dog", "food\tapple bread", "\tcat cat dog", "\tapple dog", "", "-1\tbread apple"),
    "\tdog bread",
]


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    file = tmp_path / "posts.tsv"
    file.write_text("\n".join(LINES) + "\n")
    return file


def test_questions_are_answered_and_taken_back(posts: Path, tmp_path: Path) -> None:
    result = done("ask", posts, "-n", "2")
    questions = result.stdout.splitlines()
    # the two lines that have words of both
    assert sorted(questions) == ["4\t\tapple dog", "7\t\tdog bread"]
    assert "2 of 6 lines have a label" in result.stderr
    assert "2 to label next, by margin" in result.stderr
    filled = tmp_path / "filled.tsv"
    filled.write_text("".join(line.replace("\t\t", "\tfood\t") + "\n" for line in questions[:1]))
    labelled = tmp_path / "labelled.tsv"
    result = done("ask", posts, "--answers", filled, "--output", labelled)
    number = int(questions[0].split("\t")[0])
    wanted = list(LINES)
    wanted[number - 1] = "food" + wanted[number - 1]
    assert labelled.read_text().splitlines() == wanted
    asked = {int(line.split("\t")[0]) for line in result.stdout.splitlines()}
    assert asked == {3, 4, 6, 7} - {number}
    assert done("ask", labelled).stdout == result.stdout


def test_json(tmp_path: Path) -> None:
    file, filled, labelled = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    rows = [
        {"label": "pets", "text": "cat dog", "id": 7},
        {"label": "food", "text": "apple bread", "id": 8},
        {"label": None, "text": "apple dog", "id": 9},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    question = json.loads(done("ask", file).stdout)
    assert question == {"line": 3, "label": None, "text": "apple dog", "id": 9}
    filled.write_text(json.dumps({**question, "label": "pets"}) + "\n")
    assert done("ask", file, "--answers", filled, "--output", labelled).stdout == ""
    assert [json.loads(line) for line in labelled.read_text().splitlines()] == [
        *rows[:2],
        {**rows[2], "label": "pets"},
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("9\tpets\tapple dog", "filled.tsv:1: '9' is not the number of a line"),
        ("5\tpets\t", "'5' is not the number of a line"),
        ("x\tpets\tapple dog", "'x' is not the number"),
        ("4\tpets\tdog apple", "posts.tsv has another text"),
        ("1\tfood\tcat dog", "has the label 'pets' already, not 'food'"),
        ("4 pets apple dog", "1 column, expected 3: line, label, text"),
    ],
)
def test_answers_to_other_questions(posts: Path, tmp_path: Path, answer: str, message: str) -> None:
    filled, labelled = tmp_path / "filled.tsv", tmp_path / "labelled.tsv"
    filled.write_text(answer + "\n")
    refused("ask", posts, "--answers", filled, "--output", labelled, message=message)
    assert not labelled.exists()


@pytest.mark.parametrize("by", ["entropy", "committee", "information", "random"])
def test_other_criteria(posts: Path, by: str) -> None:
    numbers = [line.split("\t")[0] for line in done("ask", posts, "--by", by).stdout.splitlines()]
    assert sorted(numbers) == ["3", "4", "6", "7"]
