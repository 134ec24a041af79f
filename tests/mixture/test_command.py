"""``softcount cluster``, and what it has in common with ``classify``, as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.cli.reading import WordFilter, make_counter, read_points
from softcount.core.errors import DataError
from softcount.report import page as report
from tests.commands import ODD_LINES, PETS, TECH, done, lines, n_lines, reported, run


# one line out for each line in
def test_classes_are_those_of_the_python_model(texts: Path) -> None:
    found = lines(done("cluster", texts, "-k", "2"))
    assert found == [str(k) for k in sc.MultinomialMixture(2).fit(TECH + PETS).labels_]
    assert found[:3] == [found[0]] * 3
    assert found[3:] == [found[3]] * 3 != found[:3]


@pytest.mark.parametrize("form", [(), ("--proba",), ("--json",)])
@pytest.mark.parametrize("raw", ODD_LINES)
def test_lines_out_match_lines_in(raw: bytes, form: Sequence[str]) -> None:
    assert len(lines(done("cluster", "-", "-k", "2", *form, stdin=raw))) == n_lines(raw)


def test_lines_without_words_get_the_common_class_and_are_named(texts: Path) -> None:
    texts.write_text("\n".join([*TECH, "", *PETS, PETS[0], "?!"]))
    result = done("cluster", texts, "-k", "2")
    found = lines(result)
    assert found[3] == found[8] == found[4]
    assert "2 lines (4, 9) have no word that the model knows" in result.stderr
    said = [json.loads(line) for line in lines(done("cluster", texts, "-k", "2", "--json"))]
    assert [one["line"] for one in said if one["words"] == 0] == [4, 9]


def test_probabilities(texts: Path) -> None:
    rows = [line.split("\t") for line in lines(done("cluster", texts, "-k", "3", "--proba"))]
    shares = np.array(rows, dtype=float)
    assert shares.shape == (6, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    chosen = lines(done("cluster", texts, "-k", "3"))
    assert shares.argmax(axis=1).astype(str).tolist() == chosen


def test_json_lines(texts: Path) -> None:
    result = done("cluster", texts, "-k", "2", "--json", "--proba")
    for number, line in enumerate(lines(result), 1):
        one = json.loads(line)
        assert one["line"] == number
        assert one["probability"] == one["probabilities"][str(one["class"])]


@pytest.mark.parametrize(
    "args",
    [
        ("--model", "bernoulli"),
        ("--model", "process"),
        ("--learner", "spectral", "--init", "random"),
        ("--model", "process", "--learner", "collapsed-gibbs", "--max-iter", "10"),
        ("--learner", "collapsed-gibbs", "--max-iter", "10"),
        ("--learner", "variational-bayes", "--init", "random", "--n-init", "2"),
        ("--short-runs", "3", "--init", "random"),
        ("--init", "anchor", "--max-iter", "3", "--tol", "0"),
        ("--tokens", "--smoothing", "1"),
    ],
)
def test_options(texts: Path, args: Sequence[str]) -> None:
    assert len(lines(done("cluster", texts, "-k", "2", *args))) == 6


def test_more_classes_than_lines(texts: Path) -> None:
    result = done("cluster", texts, "-k", "20")
    assert len(lines(result)) == 6
    assert "of the 20 classes have no line" in result.stderr
    assert "20 classes are more than the 6 different lines" in result.stderr
    assert "different lines" not in done("cluster", texts, "-k", "6").stderr
    most = done("cluster", texts, "-k", "20", "--model", "process")  # k is only the most there
    assert "different lines" not in most.stderr


def test_spectral_takes_no_steps_unless_it_is_told_to() -> None:
    text = "\n".join(["a b a b", "b a b a", "c d d c", "d c c d"] * 5)
    args = ("cluster", "-", "-k", "2", "--learner", "spectral", "--summary", "--json")
    assert json.loads(done(*args, stdin=text).stdout)["steps"] == 0
    assert json.loads(done(*args, "--max-iter", "3", "--tol", "0", stdin=text).stdout)["steps"] == 3


def test_a_huge_line() -> None:
    result = done("cluster", "-", "-k", "2", stdin="a " * 200_000 + "\nb c\nb b\n")
    found = lines(result)
    assert found[1] == found[2] != found[0]


def test_threads_and_seed_give_the_same_lines(texts: Path) -> None:
    args = ("cluster", texts, "-k", "3", "--init", "random", "--seed", "7", "--proba", "--threads")
    assert done(*args, "1").stdout == done(*args, "2").stdout


# which words count
def test_tokens_keep_case(tmp_path: Path) -> None:
    counter = make_counter(["A a, b"], True, WordFilter())
    assert counter.fit(["A a, b"]).get_feature_names_out().tolist() == ["A", "a,", "b"]
    counter = make_counter(["A a, b"], False, WordFilter())
    assert counter.fit(["A a, b"]).get_feature_names_out().tolist() == ["a", "b"]


def test_filters_of_words(tmp_path: Path) -> None:
    stop = tmp_path / "stop.txt"
    stop.write_text("The and\n")
    texts = ["the cat and", "the cat sat", "the dog", "the dog sat"]
    kept = make_counter(texts, False, WordFilter(2, 0.5, str(stop))).vocabulary
    assert kept == ["cat", "dog", "sat"]
    assert make_counter(texts, False, WordFilter(2)).vocabulary == ["cat", "dog", "sat", "the"]
    english = make_counter(texts, False, WordFilter(stop_words="english")).vocabulary
    assert english == ["cat", "dog", "sat"]
    cased = make_counter(["The cat and THE"], True, WordFilter(stop_words="english")).vocabulary
    assert cased == ["THE", "cat"]
    with pytest.raises(DataError, match="none of the 5 words"):
        make_counter(texts, False, WordFilter(9))


# numbers
@pytest.mark.parametrize("model", ["gaussian", "kmeans", "soft-kmeans", "process-gaussian"])
def test_points_with_a_blank_line(points: Path, model: str) -> None:
    found = lines(done("cluster", points, "-k", "2", "--model", model))
    low, high = found[0], found[3]
    assert low != high
    assert found == [low, low, "", high, high, low, high]
    said = done("cluster", points, "-k", "2", "--model", model, "--json")
    assert json.loads(lines(said)[2]) == {"line": 3, "class": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n\n1 x\n", ":3: 'x' is not a number"),
        ("1 2\n1 nan\n", ":2: 'nan' is not a number"),
        ("1 2\n\n1 2 3\n", ":3: 3 columns, while line 1 has 2"),
    ],
)
def test_bad_numbers_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "points.txt"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_points(str(path))
    assert f"{path}{message}" in str(error.value)


# what was learned
def test_overview_goes_to_stderr_or_with_summary_to_stdout(texts: Path) -> None:
    plain = done("cluster", texts, "-k", "2")
    assert "class\tlines\tshare\tmarks" in plain.stderr
    assert "# converged" in plain.stderr
    alone = done("cluster", texts, "-k", "2", "--summary")
    assert alone.stdout == reported(plain)
    assert reported(alone) == ""
    rows = [line.split("\t") for line in alone.stdout.splitlines() if not line.startswith("#")]
    assert [row[1:3] for row in rows[1:]] == [["3", "0.5000"], ["3", "0.5000"]]
    assert {row[3].split()[0] for row in rows[1:]} == {"apple", "cat"}
    whole = json.loads(done("cluster", texts, "-k", "2", "--summary", "--json").stdout)
    assert whole["verdict"]["name"] == "converged"
    assert sum(group["lines"] for group in whole["groups"]) == 6


def test_where_the_run_ended_is_that_of_the_python_model(texts: Path) -> None:
    args = ("cluster", texts, "-k", "2", "--init", "random", "--n-init", "3", "--summary")
    whole = json.loads(done(*args, "--json").stdout)
    model = sc.MultinomialMixture(2, init="random", learner=sc.EM(n_init=3)).fit(TECH + PETS)
    last = model.trace_[-1]
    assert whole["log_likelihood"] == pytest.approx(model.score_samples(TECH + PETS).sum())
    assert whole["objective"] == last.objective
    assert whole["perplexity"] == last.perplexity
    assert whole["steps"] == len(model.trace_) - 1
    said = done(*args).stdout
    assert f"# log-likelihood {last.log_likelihood:,.4f} · objective {last.objective:,.4f}" in said
    assert f"perplexity {last.perplexity:,.4f} · {last.step} steps" in said
    unseen = json.loads(done(*args, "--json", "--model", "bernoulli").stdout)
    assert "perplexity" not in unseen
    assert "steps" in unseen


def test_a_saved_model_answers_the_same(texts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "model.softcount"
    first = done("cluster", texts, "-k", "2", "--tokens", "--min-count", "2", "--save", kept)
    page = tmp_path / "page.html"
    again = done("cluster", "--load", kept, texts, "--html", page)
    assert again.stdout == first.stdout
    assert "softcount" in again.stderr
    assert "<svg" not in page.read_text()
    assert "signature" in page.read_text()
    assert done("cluster", "--load", kept, "-", stdin="").stdout == ""


def test_pages(texts: Path, points: Path, labelled: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done("cluster", texts, "-k", "2", "--init", "random", "--n-init", "3", "--html", page)
    html = page.read_text(encoding="utf-8")
    assert html.count('class="run faint"') == 2
    for part in (*TECH, *PETS, "3 lines", "50.0%"):
        assert part in html
    done("cluster", points, "-k", "2", "--model", "gaussian", "--html", page)
    assert "column 2" in page.read_text()
    done("classify", "--train", labelled, "--unlabelled", texts, "--html", page)
    assert "with label" in page.read_text()


# what cannot be
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("cluster", "-"), "-: the file is empty"),
        (("cluster", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("cluster", "-", "--init", "somehow"), "init='somehow'"),
        (("cluster", "-", "--tol", "-1"), "tol=-1"),
        (("cluster", "--load", "nowhere.softcount", "-"), "cannot read nowhere.softcount"),
        (("cluster", "-", "--model", "kmeans"), "-:1: 'word' is not a number"),
        (("cluster", "-", "--stop-words", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("classify", "--train", "nowhere.tsv", "-"), "nowhere.tsv: cannot be read"),
        (("classify", "--train", "-", "--summary"), "-:1: there is no tab"),
    ],
)
def test_bad_input_is_said_without_a_traceback(args: Sequence[str], message: str) -> None:
    result = run(*args, stdin="\n \n" if "empty" in message else "word\n")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "hint:" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("cluster", "-", "-k", "0"), "-k"),
        (("cluster", "-", "--load", "m", "-k", "3"), "--n-components"),
        (("cluster", "-", "--load", "m", "--seed", "3"), "--seed"),
        (("cluster", "-", "--model", "gaussian", "--tokens"), "--tokens"),
        (("cluster", "-", "--gold", "-"), "only one file"),
        (("cluster", "-", "--model", "kmeans", "--learner", "spectral"), "--model multinomial"),
        (("classify", "--train", "t", "-", "--learner", "spectral"), "without labels"),
        (("story", "m.py", "-", "--learner", "spectral"), "without labels"),
        (("cluster", "-", "--model", "lda"), "lda: choose one of multinomial, bernoulli, "),
        (("cluster", "-", "--learner", "sgd"), "sgd: choose one of em, hard-em, "),
        (("classify", "--train", "t", "-", "--gold", "-"), "only one file"),
        (("classify", "-"), "--train"),
        (("classify", "--train", "t"), "nothing to label"),
        (("classify", "--load", "m"), "nothing to label"),
        (("classify", "--train", "-", "-"), "only one file"),
        (("classify", "--load", "m", "--train", "t", "-"), "--train"),
        (("classify", "--train", "t", "-", "--unlabelled-weight", "some"), "a number, or cv"),
    ],
)
def test_wrong_options_are_usage_errors(args: Sequence[str], message: str) -> None:
    result = run(*args, stdin="a\n")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("option", ["--save", "--html"])
def test_what_cannot_be_written_is_refused_before_learning(
    texts: Path, labelled: Path, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object, **more: object) -> None:
        raise AssertionError("it has begun")

    monkeypatch.setattr("softcount.cli.frame.LearningCommand._learn", never)
    target = tmp_path / "nowhere" / "x"
    for args in (("cluster", texts), ("classify", "--train", labelled, texts)):
        result = run(*args, option, target)
        assert result.exit_code == 1
        assert f"{option} {target}: there is no folder" in result.stderr


def test_a_page_that_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        report.write_page(tmp_path / "page.html", "whole")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_fault(texts: Path) -> None:
    texts.write_text("a b\nc d\n" * 4_000)
    command = [sys.executable, "-m", "softcount", "cluster", str(texts), "-k", "2", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "class\tlines" in said
    assert "Error" not in said
    assert "Traceback" not in said
