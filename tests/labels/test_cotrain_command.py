"""``softcount cotrain``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import done, file_of, lines, refused, reported, run

POSTS = [
    ("auto", "car for sale", "two doors"),
    ("sport", "my hockey team", "goal after goal"),
    ("", "sale", "new engine"),
    ("-1", "Re: hockey", "puck"),
    ("", "", "engine trouble"),
    ("", "odd", "puck lost"),
]
EXPECTED = ["auto", "sport", "auto", "sport", "auto", "sport"]
GOLD = "auto\nsport\nauto\nsport\n-1\nsport\n"


def columns(path: Path) -> Path:
    return file_of(path / "posts.tsv", "".join("\t".join(post) + "\n" for post in POSTS))


def raw(path: Path) -> Path:
    text = "".join(f"{label}\tFrom: me\\nSubject: {s}\\n\\n{b}\n" for label, s, b in POSTS)
    return file_of(path / "raw.tsv", text)


def objects(path: Path) -> Path:
    made = ({"n": 1, "label": y or None, "subject": s, "body": b} for y, s, b in POSTS)
    return file_of(path / "posts.jsonl", "".join(json.dumps(one) + "\n" for one in made))


def test_columns(tmp_path: Path) -> None:
    file = columns(tmp_path)
    result = done("cotrain", file, "--views", "subject,body", "--columns", "label,subject,body")
    cells = [line.split("\t") for line in lines(result)]
    assert [cell[0] for cell in cells] == EXPECTED
    assert [tuple(cell[1:3]) for cell in cells] == [post[1:] for post in POSTS]
    assert [float(cell[3]) for cell in cells[:2]] == [1.0, 1.0]
    assert all(0.5 < float(cell[3]) < 1.0 for cell in cells[2:])


def test_raw_posts_and_objects_say_the_same(tmp_path: Path) -> None:
    by_columns = done(
        "cotrain", columns(tmp_path), "--views", "subject,body", "--columns", "label,subject,body"
    )
    posts = done("cotrain", raw(tmp_path), "--views", "subject,body")
    made = done("cotrain", objects(tmp_path), "--views", "subject,body")
    sure = [line.split("\t")[-1] for line in lines(by_columns)]
    # a Re: is a word of a column, and none of a post
    assert [line.split("\t")[0] for line in lines(posts)] == EXPECTED
    found = [json.loads(line) for line in lines(made)]
    assert [one["label"] for one in found] == EXPECTED
    assert [one["n"] for one in found] == [1] * 6
    assert [f"{one['confidence']:g}" for one in found] == sure
    assert [line.split("\t")[1] for line in lines(posts)] == [
        line.split("\t")[1] for line in raw(tmp_path).read_text().splitlines()
    ]


def test_raw_objects_have_newlines_of_their_own(tmp_path: Path) -> None:
    made = [{"label": y, "text": f"Subject: {s}\n\n{b}"} for y, s, b in POSTS]
    file = file_of(tmp_path / "raw.jsonl", "".join(json.dumps(one) + "\n" for one in made))
    found = [json.loads(line) for line in lines(done("cotrain", file, "--views", "subject,body"))]
    assert [one["label"] for one in found] == EXPECTED
    assert [one["text"] for one in found] == [one["text"] for one in made]


def test_rounds_go_to_stderr_with_what_each_view_gave(tmp_path: Path) -> None:
    gold = file_of(tmp_path / "gold.txt", GOLD)
    result = done("cotrain", objects(tmp_path), "--views", "subject,body", "--gold", gold)
    said = reported(result).splitlines()
    assert any(line.startswith("# converged") for line in said)
    assert any(line.startswith("# accuracy 1.000 on 3 lines") for line in said)
    gave = [int(line.split()[3]) for line in said if line.startswith(("# by subject", "# by body"))]
    assert sum(gave) == 4
    table = [line.split("\t") for line in said if not line.startswith("#")]
    assert table[0][:3] == ["round", "labelled", "new"]
    assert table[1][:3] == ["0", "2", "2"]
    assert table[-1][1] == "6"
    assert table[-1][-1] == "1.0000"


def test_the_page_shows_both_views(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done("cotrain", objects(tmp_path), "--views", "subject,body", "--html", page)
    assert "hockey · puck" in page.read_text()


def test_names_of_other_columns_are_those_of_the_views(tmp_path: Path) -> None:
    file = columns(tmp_path)
    result = done("cotrain", file, "--views", "title,text", "--per-class", "1", "--max-iter", "9")
    assert [line.split("\t")[0] for line in lines(result)] == EXPECTED


def test_words_in_their_sentence(tmp_path: Path) -> None:
    text = (
        "P\tsaid ||| Mr. Smith ||| today\nL\tflights to ||| York ||| were late\n"
        "\tsaid ||| Jones ||| today\n\tflights to ||| Rome ||| were late\n"
        "\tand ||| Mr. Jones ||| left\n\n\tin ||| Rome ||| again\n"
    )
    file = file_of(tmp_path / "names.tsv", text)
    said = lines(done("cotrain", file, "--views", "spelling,context"))
    assert [line.split("\t")[0] for line in said] == ["P", "L", "P", "L", "P", "", "L"]
    assert said[5] == ""


def test_one_line_for_each_line_even_blank_ones_and_unknown_words(tmp_path: Path) -> None:
    file = file_of(tmp_path / "odd.tsv", raw(tmp_path).read_text() + "\n\txyzzy\n")
    result = done("cotrain", file, "--views", "subject,body")
    said = lines(result)
    assert len(said) == 8
    assert said[6] == ""
    assert said[7].split("\t")[1:] == ["xyzzy", "0.5"]
    assert "# 1 line (8): no word that any view knows" in result.stderr


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("a\tx\n\ty\n", ("--views", "subject,body"), "no labels other than 'a'"),
        ("a\tx\nb\ty\n", ("--views", "subject,body"), "the view 'subject': no words"),
        ("a\tx\ty\nb\tx\ty\n", ("--views", "left"), "there must be two or more"),
        ("a\tx\ty\nb\tx\ty\n", ("--views", "left,left"), "a view is named twice"),
        ("a\tx\nb\ty\n", ("--views", "left,right"), "2 columns, expected 3"),
        ("a\tx\nb\ty\n", ("--views", "spelling,context"), ".tsv:1: 'x' is not a phrase in its"),
        ('{"label": "a", "s": "x"}\n{"label": "b", "s": "y"}\n', ("--views", "s,t"), "no 't'"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, text: str, args: tuple[str, ...], message: str
) -> None:
    refused("cotrain", file_of(tmp_path / "x.tsv", text), *args, message=message)


def test_a_seed_and_a_pool(tmp_path: Path) -> None:
    args = ("cotrain", objects(tmp_path), "--views", "subject,body", "--pool", "1")
    assert done(*args, "--seed", "3").stdout == done(*args, "--seed", "3").stdout
    assert run(*args, "--prediction", "sum").exit_code == 2


def test_the_page_is_not_written_over_the_file(tmp_path: Path) -> None:
    file = raw(tmp_path)
    before = file.read_text()
    args = ("cotrain", file, "--views", "subject,body", "--html", file)
    refused(*args, message="this is the file of FILE")
    assert file.read_text() == before
