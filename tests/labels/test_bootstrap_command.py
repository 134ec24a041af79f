"""``softcount bootstrap``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import done, file_of, lines, refused, run

LINES = [
    "\tloan from a bank",
    "\tbank with a loan and rates",
    "\thigh rates",
    "\triver and mud",
    "\tmud and reed",
    "",
    "\tnothing",
]
SEEDS = "money loan\nwater river\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return file_of(tmp_path / "lines.tsv", "\n".join(LINES) + "\n")


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    return file_of(tmp_path / "seeds.txt", SEEDS)


def labels(said: list[str]) -> list[str]:
    return [line.split("\t")[0] for line in said]


def test_the_same_lines_with_labels(corpus: Path, seeds: Path) -> None:
    result = done("bootstrap", corpus, "--seeds", seeds)
    said = lines(result)
    assert labels(said) == ["money", "money", "money", "water", "water", "", ""]
    assert [line.split("\t")[1] if line else "" for line in said] == [
        line.lstrip("\t") for line in LINES
    ]
    sure = [float(line.split("\t")[2]) for line in said if line]
    assert all(0.5 < p <= 1.0 for p in sure[:5])
    assert sure[5:] == [0.0]
    assert "0 with a label from the start, 5 after" in result.stderr
    assert "# money: loan (2 of 2), strength 0.9999" in result.stderr


def test_the_page_has_the_rules(corpus: Path, seeds: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done("bootstrap", corpus, "--seeds", seeds, "--html", page)
    assert "rates (2 of 2)" in page.read_text()


def test_learned_rules_are_seeds_again(corpus: Path, seeds: Path, tmp_path: Path) -> None:
    learned = tmp_path / "learned.txt"
    first = lines(done("bootstrap", corpus, "--seeds", seeds, "--rules", learned))
    again = lines(done("bootstrap", corpus, "--seeds", learned, "--max-iter", "0"))
    assert labels(again) == labels(first)
    assert "money\trates\t" in learned.read_text()


def test_labels_of_the_file_are_enough(tmp_path: Path) -> None:
    file = file_of(tmp_path / "f.tsv", "x\ta b\ny\tc d\n\tb\n-1\td\n")
    assert labels(lines(done("bootstrap", file))) == ["x", "y", "x", "y"]
    assert lines(done("bootstrap", file))[0].endswith("\t1")


def test_json_lines_and_documents(tmp_path: Path, seeds: Path) -> None:
    rows = [
        {"text": "the loan", "from": "d"},
        {"text": "a loan", "from": "d"},
        {"text": "the mud", "from": "d"},
        {"text": "river mud", "from": "e"},
    ]
    file = file_of(tmp_path / "f.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    alone = [json.loads(line) for line in lines(done("bootstrap", file, "--seeds", seeds))]
    assert alone[2]["label"] == "water"
    together = done("bootstrap", file, "--seeds", seeds, "--document", "from", "--discourse", "1")
    found = [json.loads(line) for line in lines(together)]
    assert [row["label"] for row in found] == ["money", "money", "money", "water"]
    assert found[2]["from"] == "d"


def test_senses_of_a_word(tmp_path: Path) -> None:
    file = file_of(
        tmp_path / "f.tsv",
        "\tHe stood in line for hours.\n\tIn lines they stood.\n\tA fishing line of nylon.\n"
        "\tNylon lines!\n\tno such word\n",
    )
    seeds = file_of(tmp_path / "seeds.txt", "queue\tin_\ncord\tfishing_\n")
    result = done("bootstrap", file, "--seeds", seeds, "--word", "line,lines", "--threshold", ".9")
    assert labels(lines(result)) == ["queue", "queue", "cord", "cord", ""]


def test_gold_says_how_many_lines_have_no_label(corpus: Path, seeds: Path, tmp_path: Path) -> None:
    gold = file_of(tmp_path / "gold.txt", "money\nmoney\nwater\nwater\nwater\n\nwater\n")
    result = done("bootstrap", corpus, "--seeds", seeds, "--gold", gold)
    assert "accuracy 0.800 on 5 lines" in result.stderr
    assert "1 line without a label" in result.stderr


def test_what_is_wrong_is_said(corpus: Path, seeds: Path, tmp_path: Path) -> None:
    refused("bootstrap", corpus, message="no line has a label")
    bad = file_of(tmp_path / "bad.txt", "money loan\nalone\n")
    refused("bootstrap", corpus, "--seeds", bad, message="bad.txt:2")
    nowhere = file_of(tmp_path / "nowhere.txt", "money cash\n")
    refused("bootstrap", corpus, "--seeds", nowhere, message="no item has the feature")
    refused("bootstrap", corpus, "--seeds", seeds, "--word", "zebra", message="never occurs")
    assert run("bootstrap", corpus, "--seeds", seeds, "--discourse", "1").exit_code == 2
    assert run("bootstrap", corpus, "--seeds", seeds, "--variant", "bold").exit_code == 2


def test_seeds_that_never_occur_are_warned_of(corpus: Path, tmp_path: Path) -> None:
    seeds = file_of(tmp_path / "s.txt", SEEDS + "water lake\n")
    result = done("bootstrap", corpus, "--seeds", seeds)
    assert "softcount: warning: no item has the features of these seeds: 'lake'" in result.stderr


def test_nothing_is_written_over_what_is_read(corpus: Path, seeds: Path) -> None:
    for option in ("--rules", "--html"):
        refused("bootstrap", corpus, "--seeds", seeds, option, seeds, message="file of --seeds")
        refused("bootstrap", corpus, "--seeds", seeds, option, corpus, message="file of FILE")
    assert seeds.read_text() == SEEDS
