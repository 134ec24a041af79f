"""``softcount senses``: one line out for each line in, whatever the lines are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import softcount as sc
from softcount.cli.app import app

LINES = [
    "She put the money into the bank.",
    "The bank pays interest on money.",
    "",
    "A loan from the bank costs interest.",
    "Nothing of the kind here.",
    "They fished from the bank of the river.",
    "The river broke its bank in the flood.",
    "Reeds grow along the river bank.",
    "The bank raised interest on every loan.",
    "The flood washed mud over the bank of the river: no bank, no river.",
]


def senses(*args: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["senses", *map(str, args)], input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bank.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_one_line_for_each_line(file: Path) -> None:
    result = senses("--word", "Bank", file)
    said = result.stdout.split("\n")[:-1]
    assert len(said) == len(LINES)
    assert [line for line, text in zip(said, LINES, strict=True) if "bank" not in text] == ["-"] * 2
    money, water = said[0], said[5]
    assert {said[i] for i in (0, 1, 3, 8)} == {money}
    assert {said[i] for i in (5, 6, 7)} == {water}
    assert money != water
    assert said[9] == f"{water} {water}"
    assert "sense\toccurrences\tshare\tmarks" in result.stderr


@pytest.mark.parametrize("how", ["gz", "stdin", "crlf"])
def test_ways_to_give_lines(file: Path, tmp_path: Path, how: str) -> None:
    expected = senses("--word", "bank", file).stdout
    if how == "stdin":
        assert senses("--word", "bank", "-", stdin=file.read_text()).stdout == expected
        return
    other = tmp_path / ("bank.txt.gz" if how == "gz" else "crlf.txt")
    raw = file.read_bytes()
    other.write_bytes(gzip.compress(raw) if how == "gz" else raw.replace(b"\n", b"\r\n"))
    assert senses("--word", "bank", other).stdout == expected


def test_json_and_summary(file: Path) -> None:
    rows = [
        json.loads(line)
        for line in senses("--word", "bank", file, "--json").stdout.split("\n")[:-1]
    ]
    assert [row["line"] for row in rows] == list(range(1, len(LINES) + 1))
    assert [len(row["occurrences"]) for row in rows] == [1, 1, 0, 1, 0, 1, 1, 1, 1, 2]
    assert [one["position"] for one in rows[9]["occurrences"]] == [6, 11]
    assert sum(rows[0]["occurrences"][0]["probabilities"]) == pytest.approx(1.0)
    overview = json.loads(senses("--word", "bank", file, "--json", "--summary").stdout)
    assert sum(group["occurrences"] for group in overview["groups"]) == 9
    assert {group["sense"] for group in overview["groups"]} == {0, 1}
    sizes = [group["occurrences"] for group in overview["groups"]]
    assert sizes == sorted(sizes, reverse=True)


def test_stop_words_count_only_with_their_place(file: Path, tmp_path: Path) -> None:
    def known(*more: str | Path) -> set[str]:
        model = tmp_path / "m.softcount"
        assert senses("--word", "bank", file, "--save", model, *more).exit_code == 0
        return set(sc.load(model).vocabulary_)

    assert {"the", "the_", "river"} <= known()
    assert {"the", "river"} & known("--stop-words", "english") == {"river"}
    assert "the_" in known("--stop-words", "english")
    stop = tmp_path / "stop.txt"
    stop.write_text("River\n")
    assert {"the", "river"} & known("--stop-words", stop) == {"the"}


def test_a_file_of_another_kind_says_which_command_reads_it(file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.softcount"
    CliRunner().invoke(app, ["cluster", str(file), "-k", "2", "--save", str(model)])
    result = senses("--load", model, file)
    assert result.exit_code == 1
    assert "a model of kind MultinomialMixture" in result.stderr
    assert f"try softcount cluster --load {model}" in result.stderr


def test_forms_and_tokens(file: Path) -> None:
    said = senses("--word", "bank", "--forms", "river, flood", file).stdout.split("\n")
    assert len(said[9].split()) == 5
    # between spaces, 'bank.' is another word than 'bank'
    assert senses("--word", "bank", "--tokens", file).stdout.split("\n")[0] == "-"


@pytest.mark.parametrize("more", [[], ["--svd", "3"]], ids=["multinomial", "svd"])
def test_saved_models_say_the_same(file: Path, tmp_path: Path, more: list[str]) -> None:
    model, page = tmp_path / "m.softcount", tmp_path / "page.html"
    learned = senses("--word", "bank", file, "--save", model, "--html", page, *more)
    assert senses("--load", model, file).stdout == learned.stdout
    html = page.read_text(encoding="utf-8")
    assert "Sense 0" in html
    assert "[bank] of the river" in html
    assert "http:" not in html.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--word", "bnk"], 1, "did you mean bank"),
        ([], 2, "no target word"),
        (["--word", "bank", "--load", "x"], 2, "--load does not go with --word"),
        (["--word", "bank", "--save", "no/such/folder/m"], 1, "--save"),
        (["--word", "bank", "-k", "0"], 2, "-k"),
    ],
)
def test_faults_are_said_without_a_traceback(
    file: Path, args: list[str], code: int, message: str
) -> None:
    result = senses(*args, file)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "nothing.txt"
    path.write_text("\n\n")
    result = senses("--word", "bank", path)
    assert result.exit_code == 1
    assert "the file is empty" in result.stderr
