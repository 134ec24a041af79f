"""``softcount classify``, as a user meets it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from softcount.cli.reading import read_labelled
from softcount.core.errors import DataError
from tests.commands import done, lines, run


def test_labels(texts: Path, labelled: Path) -> None:
    assert lines(done("classify", "--train", labelled, texts)) == ["tech"] * 3 + ["pets"] * 3
    both = done("classify", "--train", labelled, "--unlabelled", texts)
    assert lines(both) == ["tech"] * 3 + ["pets"] * 3
    assert "label\tlines\tshare\tmarks" in both.stderr


def test_unlabelled_lines_teach(labelled: Path, texts: Path) -> None:
    """Nothing labelled has the word; where it stands beside words that have, it is learned."""
    taught = done(
        "classify", "--train", labelled, "--unlabelled", texts, "-", "--json", stdin="barks\n"
    )
    assert json.loads(taught.stdout)["label"] == "pets"
    assert json.loads(taught.stdout)["words"] == 1
    alone = done("classify", "--train", labelled, "-", "--json", stdin="barks\n")
    assert json.loads(alone.stdout)["words"] == 0


@pytest.mark.parametrize(
    "args",
    [
        ("--bernoulli",),
        ("--n-components", "2"),
        ("--length", "100"),
        ("--unlabelled-weight", "0.1", "--tokens"),
        ("--learner", "hard-em", "--n-init", "2", "--n-components", "2"),
        ("--smoothing", "1", "--max-iter", "2", "--min-count", "1"),
    ],
)
def test_options_of_classify(texts: Path, labelled: Path, args: Sequence[str]) -> None:
    result = done("classify", "--train", labelled, "--unlabelled", texts, *args)
    assert set(lines(result)) <= {"tech", "pets"}
    assert len(lines(result)) == 6


def test_probabilities_of_labels(texts: Path, labelled: Path) -> None:
    for line in lines(done("classify", "--train", labelled, texts, "--proba")):
        label, pets, tech = line.split("\t")
        assert float(pets) + float(tech) == pytest.approx(1, abs=1e-5)
        assert label == ("pets" if float(pets) > float(tech) else "tech")
    one = json.loads(lines(done("classify", "--train", labelled, texts, "--proba", "--json"))[0])
    assert one["probabilities"][one["label"]] == one["probability"]


def test_weight_by_cross_validation_is_said(texts: Path, labelled: Path) -> None:
    args = ("classify", "--train", labelled, "--unlabelled", texts, "--unlabelled-weight", "cv")
    assert "chosen by cross-validation; accuracy by weight 0: " in done(*args).stderr
    labelled.write_text("tech\tApple\npets\tcat\n")
    assert "too few labels" in done(*args).stderr


def test_a_collapse_is_said_in_words_of_the_command(tmp_path: Path) -> None:
    train, more = tmp_path / "train.tsv", tmp_path / "more.txt"
    train.write_text("".join(f"{label}\tthe {label}{i}\n" for label in "abcd" for i in range(2)))
    more.write_text("the the the of of a0\n" * 40)
    result = done("classify", "--train", train, "--unlabelled", more)
    assert "softcount: warning: 100% of the unlabelled documents were drawn into the class 'a'" in (
        result.stderr
    )
    assert (
        "hint: try a smaller --smoothing (now 0.1), fewer words (--min-count 2 --max-share .1), "
        "--length 100 or --unlabelled-weight cv\n"
    ) in result.stderr
    assert "NaiveBayesCV" not in result.stderr
    tried = ("--length", "9", "--max-share", ".99", "--smoothing", ".05")
    again = done("classify", "--train", train, "--unlabelled", more, *tried)
    assert (
        "hint: try a smaller --smoothing (now 0.05), fewer words (now --min-count 1 --max-share "
        "0.99) or --unlabelled-weight cv\n"
    ) in again.stderr


def test_saved_classifier(texts: Path, labelled: Path, tmp_path: Path) -> None:
    kept = tmp_path / "model.softcount"
    only_saved = done("classify", "--train", labelled, "--save", kept)
    assert only_saved.stdout == ""
    again = done("classify", "--load", kept, texts)
    assert again.stdout == done("classify", "--train", labelled, texts).stdout
    wrong = run("cluster", "--load", kept, texts)
    assert wrong.exit_code == 1
    assert "a model of kind NaiveBayes" in wrong.stderr
    assert f"try softcount classify --load {kept}" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tx\n\nno tab\n", ":3: there is no tab"),
        ("a\tx\n \tx\n", ":2: there is no label"),
        ("a\tx\na\ty\n", ": every line has the label 'a'"),
        ("", ": the file is empty"),
    ],
)
def test_bad_labelled_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_labelled(str(path))
    assert f"{path}{message}" in str(error.value)
    assert error.value.hint


def test_text_may_hold_tabs_and_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tx\ty\r\n b \t\r\n"))
    assert read_labelled(str(path)) == (["a", "b"], ["x\ty", ""])


POSTS = ["puck ice goal", "bat ball run", "ice skate goal", "run base ball", "goal puck"]
SPORTS = ["hockey", "baseball", "hockey", "baseball", "hockey"]


def test_words_with_constraints_in_place_of_labels(tmp_path: Path) -> None:
    words, posts = tmp_path / "words.txt", tmp_path / "posts.txt"
    words.write_text("puck hockey:0.9,1\nbat baseball\n")
    posts.write_text("\n".join(POSTS) + "\n")
    result = done("classify", "--constraints", words, "--unlabelled", posts)
    assert lines(result) == SPORTS
    assert "constraints" in result.stderr
    torn = tmp_path / "torn.txt"
    torn.write_text("goal hockey:0.9,1\ngoal hockey:0,0.2\nbat baseball\n")
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("hockey\tgoal\nbaseball\tbat\n")
    both = ("--train", labelled, "--unlabelled", posts)
    result = done("classify", "--constraints", torn, *both)
    assert "do not hold" in result.stderr or "does not hold" in result.stderr
    clusters = tmp_path / "clusters.txt"
    clusters.write_text("puck 1:0.9,1\nbat 0:0.9,1\n")
    result = done("cluster", posts, "-k", "2", "--constraints", clusters)
    assert lines(result)[0] == "1"
    assert lines(result)[1] == "0"


@pytest.mark.parametrize("text", [None, "puck\n", "puck hockey:2\n"], ids=["missing", "bare", "2"])
def test_a_bad_file_of_constraints(tmp_path: Path, text: str | None) -> None:
    words, posts = tmp_path / "words.txt", tmp_path / "posts.txt"
    posts.write_text("\n".join(POSTS) + "\n")
    if text is not None:
        words.write_text(text)
    result = run("classify", "--constraints", words, "--unlabelled", posts)
    assert result.exit_code != 0
    assert "words.txt" in result.output + result.stderr
