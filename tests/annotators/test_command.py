"""softcount annotators."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from tests.commands import done, file_of, lines, refused, run

VOTES = """s1\tann\tyes
s1\tbob\tyes
s1\teve\tno

s2\tann\tno
s2\tbob\tno
s2\teve\tyes
s3\tann\tyes
s3\teve\tno
s4\tann\t
"""
TRIPLES = [
    (item, annotator, label or None)
    for item, annotator, label in (line.split("\t") for line in VOTES.splitlines() if line)
]


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    return file_of(tmp_path / "votes.tsv", VOTES)


def test_one_line_for_each_item_as_in_python(votes: Path) -> None:
    model = sc.Annotators().fit(TRIPLES)
    said = [line.split("\t") for line in lines(done("annotators", votes))]
    assert [item for item, _, _ in said] == ["s1", "s2", "s3", "s4"]
    assert [label for _, label, _ in said] == model.labels_.tolist() == ["yes", "no", "yes", "yes"]
    np.testing.assert_allclose([float(p) for *_, p in said], model.proba_.max(axis=1), rtol=1e-5)


def test_probabilities_of_all_labels(votes: Path) -> None:
    rows = [line.split("\t") for line in lines(done("annotators", votes, "--proba"))]
    shares = np.array([row[3:] for row in rows], dtype=float)
    np.testing.assert_allclose(shares, sc.Annotators().fit(TRIPLES).proba_, rtol=1e-5)


def test_what_was_learned_of_annotators_goes_to_stderr(votes: Path) -> None:
    told = done("annotators", votes).stderr
    row = next(line.split("\t") for line in told.splitlines() if line.startswith("eve\t"))
    assert row[1] == "3"
    assert float(row[2]) < 0.1
    assert "# converged" in told


def test_json_in_json_out_with_labels_as_they_were() -> None:
    rows = [(1, "a", 2), (1, "b", 2), ("x", "a", 3), ("x", "b", 3), ("x", "c", 3), (1, "c", 2)]
    text = "\n".join(
        json.dumps({"item": item, "annotator": annotator, "label": label})
        for item, annotator, label in rows
    )
    said = [json.loads(line) for line in lines(done("annotators", "-", stdin=text))]
    assert [(one["item"], one["label"]) for one in said] == [(1, 2), ("x", 3)]
    assert all(0.5 < one["confidence"] <= 1.0 for one in said)
    both = done("annotators", "-", "--proba", stdin=text)
    assert set(json.loads(lines(both)[0])["probabilities"]) == {"2", "3"}


def test_known_labels_are_learned_from_and_gold_is_not(votes: Path, tmp_path: Path) -> None:
    true = file_of(tmp_path / "true.tsv", "s3\tno\nelsewhere\tyes\n")
    learned = [line.split("\t") for line in lines(done("annotators", votes, "--known", true))]
    assert learned[2] == ["s3", "no", "1"]
    measured = done("annotators", votes, "--gold", true)
    assert measured.stdout == done("annotators", votes).stdout
    assert "# accuracy: 0\n" in measured.stderr
    assert "# accuracy of the majority: 1\n" in measured.stderr  # a tie: the first in order
    refused(
        *("annotators", votes, "--known", true, "--gold", true),
        message="all of its items are also in --known",
    )


def test_a_saved_model_labels_new_items(votes: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.softcount"
    done("annotators", votes, "--save", model)
    new = file_of(tmp_path / "new.tsv", "n\tann\tyes\nn\tzoe\tno\n")
    result = done("annotators", new, "--load", model)
    assert lines(result)[0].split("\t")[:2] == ["n", "yes"]
    assert "warning: the model does not know 1 annotator ('zoe')" in result.stderr
    assert run("annotators", new, "--load", model, "--smoothing", "1").exit_code == 2
    refused("classify", "--load", model, new, message="which softcount classify cannot use")


def test_the_page_and_the_summary(votes: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    summary = done("annotators", votes, "--summary", "--json", "--html", page)
    found = json.loads(summary.stdout)
    assert [one["annotator"] for one in found["annotators"]] == ["ann", "bob", "eve"]
    assert found["annotators"][2]["confusion"]["yes"]["no"] > 0.9
    assert abs(sum(found["labels"].values()) - 1.0) < 1e-9
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert "yes → no" in html
    assert "Least certain items" in html


def test_what_stands_in_a_page_is_text(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>"
    votes = file_of(tmp_path / "votes.tsv", f"{nasty}\t{nasty}a\t{nasty}\ni\tb\tyes\n")
    page = tmp_path / "page.html"
    done("annotators", votes, "--html", page)
    assert "<script" not in page.read_text()


def test_columns_in_another_order(votes: Path) -> None:
    turned = "\n".join("\t".join([a, label or "", i]) for i, a, label in TRIPLES)
    result = done("annotators", "-", "--columns", "annotator,label,item", stdin=turned)
    assert result.stdout == done("annotators", votes).stdout


@pytest.mark.parametrize("learner", ["hard-em", "vb", "gibbs", "online", "mcem"])
def test_learners(votes: Path, learner: str) -> None:
    result = done("annotators", votes, "--learner", learner, "--max-iter", "30")
    assert len(lines(result)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s1\tann\tyes\ns1\tbob\n", "-:2: 2 columns"),
        ("s1\tann\tyes\nann\tbob\tno\tmore\n", "-:2: too many columns"),
        ("s1\tann\tyes\n\tbob\tno\n", "-:2: '' is not a valid item"),
        ("s1\t\tyes\n", "-:1: '' is not a valid annotator"),
        (
            '{"item": 1, "annotator": "a", "label": "x"}\n{"item": 2}\n',
            "-:2: None is not a valid annotator",
        ),
        ('{"item": 1, "annotator": "a", "label": 0.5}\n', "-:1: 0.5 is not a valid label"),
        ('{"item": 1, "annotator": "a", "label": "x"}\nnot json\n', "-:2: not JSON"),
        ("s1\tann\t\n", "there are no votes"),
        ("", "the file is empty"),
    ],
)
def test_bad_lines_are_named(text: str, message: str) -> None:
    refused("annotators", "-", stdin=text, message=message)


def test_bad_known_labels_are_named(votes: Path, tmp_path: Path) -> None:
    two = file_of(tmp_path / "two.tsv", "s1\tyes\ns1\tno\n")
    refused("annotators", votes, "--known", two, message="two.tsv:2: 's1' is 'no' here")
    none = file_of(tmp_path / "none.tsv", "s9\tyes\n")
    refused("annotators", votes, "--gold", none, message="none of these items has votes")
    assert run("annotators", "-", "--known", "-", stdin=VOTES).exit_code == 2
    refused(
        "annotators",
        votes,
        "--columns",
        "item,label",
        message="a column item or annotator is missing",
    )
    refused(
        "annotators",
        votes,
        "--init",
        "nowhere",
        message="init='nowhere' is not a known initialisation",
    )


def test_nothing_is_written_over_what_is_read(votes: Path, tmp_path: Path) -> None:
    known = file_of(tmp_path / "known.tsv", "s1\tyes\n")
    for option in ("--save", "--html"):
        refused("annotators", votes, option, votes, message="file of FILE")
        refused("annotators", votes, "--known", known, option, known, message="file of --known")
    done("annotators", votes, "--save", tmp_path / "m")
    load = ("annotators", votes, "--load", tmp_path / "m")
    refused(*load, "--html", tmp_path / "m", message="file of --load")
    assert votes.read_text() == VOTES
