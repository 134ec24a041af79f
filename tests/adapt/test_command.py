"""``softcount adapt``: files, methods one by one, and what cannot be done."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from softcount.adapt.command import DEFAULT_WITHOUT_LABELS, METHODS
from tests.adapt.reviews import (
    SHARED,
    WORDS,
    N,
    cells,
    reviews,
    table,
    written,
)
from tests.commands import ODD_LINES, done, file_of, lines, n_lines, refused, run


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_labels_every_line(books: Path, few: Path, method: str) -> None:
    given = ("adapt", "--source", books, "--target", few, "--method", method)
    result = done(*given, "--explain", "3")
    said, before = cells(result), reviews("kitchen")
    assert said[N] == [""], "a blank line stays blank"
    assert said[N + 1][1] == ""
    assert [row[1] for row in said[:N]] == [text for _, text in before]
    assert [row[0] for row in said[:8]] == [label for label, _ in before[:8]]
    assert [row[2] for row in said[:8]] == ["1"] * 8
    assert all(0.5 <= float(row[2]) <= 1.0 for row in said[8:N])
    right = [row[0] == label for row, (label, _) in zip(said, before, strict=False)]
    assert np.mean(right[8:]) > 0.8
    assert f"# 42 lines of the target: 8 had a label, 33 got one by {method}." in result.stderr
    assert "1 line (42): no word to go by" in result.stderr
    assert "source books.tsv: 40 lines with a label, 1 without" in result.stderr
    if method not in ("source-only", "interpolation"):  # which may leave words alone
        assert len(table(result, "word")) == 3


@pytest.mark.parametrize("method", [one for one, entry in METHODS.items() if not entry.n_labels])
def test_methods_that_need_no_label_of_the_target(
    books: Path, kitchen: Path, gold: Path, method: str
) -> None:
    result = done(
        "adapt", "--source", books, "--target", kitchen, "--method", method, "--gold", gold
    )
    found = re.search(r"# accuracy (\S+) on 40 lines with a gold label", result.stderr)
    assert found
    right = [
        row[0] == label for row, (label, _) in zip(cells(result), reviews("kitchen"), strict=True)
    ]
    assert float(found[1]) == round(np.mean(right), 3)
    assert float(found[1]) > 0.8


@pytest.mark.parametrize("method", [one for one, entry in METHODS.items() if entry.n_labels])
def test_methods_that_need_labels_of_the_target(books: Path, kitchen: Path, method: str) -> None:
    given = ("adapt", "--source", books, "--target", kitchen, "--method", method)
    refused(*given, message=f"--method {method} needs labels of the target")
    one = file_of(kitchen.parent / "one.tsv", "pos\tsharp\n\tblunt\n")
    given = ("adapt", "--source", books, "--target", one, "--method", method)
    if METHODS[method].n_labels == 2:
        refused(*given, message="where all labels are 'pos'")
    else:
        assert cells(done(*given))[0][0] == "pos"


def test_the_usual_method_is_that_of_the_labels_there_are(
    books: Path, kitchen: Path, few: Path
) -> None:
    for target, method in ((few, "easyadapt"), (kitchen, DEFAULT_WITHOUT_LABELS)):
        result = done("adapt", "--source", books, "--target", target)
        assert f"got one by {method}." in result.stderr
        assert (
            result.stdout
            == done("adapt", "--source", books, "--target", target, "--method", method).stdout
        )
    only = file_of(few.parent / "only.tsv", "pos\tred\n\tblue\n")  # of one class: that is little
    told = done("adapt", "--source", books, "--target", only, "--seed", 2**32).stderr
    assert f"got one by {DEFAULT_WITHOUT_LABELS}." in told


def test_more_labels_of_the_target_are_learned_from_and_not_printed(
    books: Path, kitchen: Path, tmp_path: Path
) -> None:
    more = file_of(tmp_path / "more.tsv", "neg\tred\npos\tblue\n\n\tblue knife\n")
    target = file_of(tmp_path / "t.tsv", "\tred\n\tblue\n")
    given = ("adapt", "--source", books, "--target", target)
    result = done(*given, "--target-labelled", more)
    assert [row[:2] for row in cells(result)] == [["neg", "red"], ["pos", "blue"]]
    assert "easyadapt" in result.stderr
    assert "# more of the target, more.tsv: 2 lines with a label, 1 without" in result.stderr
    none = file_of(tmp_path / "none.tsv", "\tred\n")
    refused(*given, "--target-labelled", none, message="none.tsv: no line has a label")


def test_sources_are_domains_of_their_own(books: Path, few: Path, tmp_path: Path) -> None:
    """In EasyAdapt, what one source says of a word is not what the other does."""
    other = file_of(tmp_path / "other.tsv", written(reviews("books", seed=1)))
    both = tmp_path / "both.tsv"
    both.write_text(books.read_text() + other.read_text())
    apart = done("adapt", "--source", books, "--source", other, "--target", few)
    together = done("adapt", "--source", both, "--target", few)
    assert [row[:2] for row in cells(apart)[:8]] == [row[:2] for row in cells(together)[:8]]
    assert apart.stdout != together.stdout
    assert "source other.tsv: 40 lines with a label, 0 without" in apart.stderr


# forms of files
def test_json_lines_keep_what_they_are(tmp_path: Path) -> None:
    rows = [{"label": int(y == "pos"), "text": text} for y, text in reviews("books")]
    source = file_of(tmp_path / "s.jsonl", "\n".join(map(json.dumps, rows)))
    target = [{"id": k, "text": text} for k, (_, text) in enumerate(reviews("kitchen", 6))]
    file = file_of(tmp_path / "t.jsonl", "\n".join(map(json.dumps, target)))
    said = [json.loads(line) for line in lines(done("adapt", "--source", source, "--target", file))]
    assert [row["label"] for row in said] == [1, 0] * 3, "numbers, as in the source"
    assert [row["id"] for row in said] == list(range(6))
    assert all(0.5 <= row["confidence"] <= 1 for row in said)
    columns = file_of(tmp_path / "t.tsv", written(reviews("kitchen", 6), 0))
    plain = cells(done("adapt", "--source", source, "--target", columns))
    assert [row[0] for row in plain] == ["1", "0"] * 3


def test_columns_and_packed_files(tmp_path: Path) -> None:
    rows = reviews("books")
    packed = tmp_path / "s.tsv.gz"
    packed.write_bytes(gzip.compress("".join(f"7\t{y}\t{text}\n" for y, text in rows).encode()))
    target = file_of(tmp_path / "t.tsv", "8\t\tgood pan\n9\t\tbad\tpan\n")
    given = ("adapt", "--source", packed, "--target", target, "--columns", "id,label,text")
    assert [row[:-1] for row in cells(done(*given))] == [
        ["8", "pos", "good pan"], ["9", "neg", "bad", "pan"],
    ]  # fmt: skip
    refused(*given[:-1], "id,label,body", message="there is no 'text'")


@pytest.mark.parametrize("raw", ODD_LINES)
def test_one_line_out_for_each_line_in(books: Path, tmp_path: Path, raw: bytes) -> None:
    text = raw.decode("utf-8-sig")
    odd = "".join(f"\t{line}\n" if line.strip() else f"{line}\n" for line in text.split("\n")[:-1])
    file = tmp_path / "odd.tsv"
    file.write_bytes(odd.encode())
    if odd:
        result = done("adapt", "--source", books, "--target", file, "--method", "source-only")
        assert len(lines(result)) == n_lines(odd.encode())


def test_blank_lines_are_no_items(books: Path, kitchen: Path, tmp_path: Path) -> None:
    given = ("adapt", "--source", books, "--target")
    more = file_of(tmp_path / "more.tsv", "\n\n" + kitchen.read_text().replace("\n", "\n\n"))
    plain = done(*given, kitchen, "--method", "source-only").stdout
    assert (
        done(*given, more, "--method", "source-only").stdout.replace("\n\n", "\n") == "\n" + plain
    )


def test_lines_that_say_nothing_are_named_if_they_ask_for_a_label(
    books: Path, tmp_path: Path
) -> None:
    target = file_of(tmp_path / "t.tsv", "pos\t\n\n\t???\n\tgood\n")
    result = done("adapt", "--source", books, "--target", target)
    assert "# 1 line (3): no word to go by; the label is a guess\n" in result.stderr


def test_standard_input(books: Path, kitchen: Path) -> None:
    expected = done("adapt", "--source", books, "--target", kitchen).stdout
    given = ("adapt", "--source", books, "--target", "-")
    assert done(*given, stdin=kitchen.read_text()).stdout == expected
    for more in (("--target-labelled", "-"), ("--gold", "-"), ("--source", "-")):
        result = run(*given, *more, stdin=kitchen.read_text())
        assert result.exit_code == 2
        assert "only one file can be standard input" in result.stderr


# words
def test_words_may_be_left_out(books: Path, kitchen: Path) -> None:
    stop = file_of(books.parent / "stop.txt", " ".join(SHARED.values()))
    given = ("adapt", "--source", books, "--target", kitchen, "--method", "source-only")
    result = done(*given, "--stop-words", stop)
    assert {row[2] for row in cells(result)} == {cells(result)[0][2]}, "nothing else is shared"
    assert done(*given, "--min-count", "30").stdout != done(*given).stdout
    assert done(*given, "--max-share", ".2").stdout != done(*given).stdout
    refused(*given, "--min-count", "99", message="words is left to learn from")
    file = file_of(books.parent / "t.tsv", "\tGOOD\n")
    given = ("adapt", "--source", books, "--target", file, "--method", "source-only")
    assert cells(done(*given))[0][2] != cells(done(*given, "--tokens"))[0][2]


def test_words_that_moved(books: Path, few: Path) -> None:
    result = done("adapt", "--source", books, "--target", few, "--explain", "5")
    moved = table(result, "word")
    assert len(moved) == 5
    own = {label: words.split() for label, words in WORDS["kitchen"].items()}
    for word, row in moved.items():
        assert float(row["moved"]) == pytest.approx(
            float(row["target"]) - float(row["source"]), abs=2e-4
        )
        if word in own["pos"] + own["neg"]:
            assert float(row["source"]) == 0.0
            assert (float(row["target"]) > 0.0) == (word in own["pos"]), "labels are neg, pos"
    assert set(moved) & set(own["pos"] + own["neg"])
    assert "word\t" not in done("adapt", "--source", books, "--target", few).stderr


# what cannot be done
def test_nothing_is_written_over_what_is_read(books: Path, few: Path, gold: Path) -> None:
    more = file_of(books.parent / "more.tsv", "pos\tsharp\n")
    given = ("adapt", "--source", books, "--target", few, "--target-labelled", more, "--gold", gold)
    files = {"--source": books, "--target": few, "--target-labelled": more, "--gold": gold}
    before = {option: file.read_bytes() for option, file in files.items()}
    for option, file in files.items():
        refused(*given, "--html", file, message=f"this is the file of {option}")
    assert {option: file.read_bytes() for option, file in files.items()} == before


def test_files_given_twice(books: Path, few: Path) -> None:
    message = "this file is given twice"
    roundabout = books.parent / "." / ".." / books.parent.name / books.name
    refused("adapt", "--source", books, "--source", roundabout, "--target", few, message=message)
    refused("adapt", "--source", books, "--target", books, message=message)
    refused("adapt", "--source", books, "--target", few, "--target-labelled", few, message=message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pos\tgood\n\tbad\n", "no labels other than 'pos'"),
        ("\tgood\n\tbad\n", "no line has a label"),
        ("", "the file is empty"),
        ("pos\tgood\nbad\n", "s.tsv:2: 1 column"),
    ],
)
def test_sources_without_labels(few: Path, text: str, message: str) -> None:
    source = file_of(few.parent / "s.tsv", text)
    refused("adapt", "--source", source, "--target", few, message=message)


@pytest.mark.parametrize(
    ("text", "message"), [("\n\n", "the file is empty"), ("a good pan\n", "t.tsv:1: 1 column")]
)
def test_targets_without_lines(books: Path, text: str, message: str) -> None:
    target = file_of(books.parent / "t.tsv", text)
    refused("adapt", "--source", books, "--target", target, message=message)


def test_labels_that_the_source_never_has(books: Path, tmp_path: Path) -> None:
    target = file_of(
        tmp_path / "t.tsv", "pos\tgood\n\nmixed\todd strange\n\todd strange\n\tgood great\n"
    )
    given = ("adapt", "--source", books, "--target", target)
    result = done(*given)
    assert [row[0] for row in cells(result)] == ["pos", "", "mixed", "mixed", "pos"]
    assert f"# no source has the label 'mixed' ({target}:3): only the target" in result.stderr
    refused(
        *given, "--method", "source-only", message=f"{target}:3: no source has the label 'mixed'"
    )


def test_usage(books: Path, few: Path) -> None:
    for given in (
        ("--source", books),
        ("--target", few),
        ("--source", books, "--target", few, "--method", "magic"),
        ("--source", books, "--target", few, "--explain", "0"),
    ):
        result = run("adapt", *given)
        assert result.exit_code == 2
        assert result.stdout == ""


def test_help_loads_no_learner() -> None:
    code = (
        "import sys; from softcount.cli.app import app\n"
        "try: app(['adapt', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'sklearn', 'scipy') if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout
    assert told.endswith("[]\n")
