"""``softcount topics``, as a user meets it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.cli.learner_names import SHORT, LearnerName
from tests.commands import ODD_LINES, PETS, TECH, done, lines, n_lines, refused, run, shares_of

BOTH = ("-k", "2")


def summary_of(*args: str | Path) -> dict[str, object]:
    whole: dict[str, object] = json.loads(done("topics", *args, "--summary", "--json").stdout)
    return whole


# one line out for each line in
def test_lines_are_those_of_the_python_model(texts: Path) -> None:
    model = sc.LDA(2).fit(TECH + PETS)
    main = model.fold_learned().argmax(axis=1)
    expected = [f"{k}\t{row[k]:.4f}" for k, row in zip(main, model.fold_learned(), strict=True)]
    assert lines(done("topics", texts, *BOTH)) == expected
    np.testing.assert_allclose(shares_of(texts, *BOTH), model.fold_learned(), rtol=1e-5)
    plain = sc.PLSA(3, smoothing=0.5, init="anchors", random_state=4).fit(TECH + PETS)
    args = (texts, "-k", "3", "--model", "plsa", "--smoothing", ".5", "--init", "anchors")
    np.testing.assert_allclose(shares_of(*args, "--seed", "4"), plain.fold_learned(), atol=1e-6)


@pytest.mark.parametrize("form", [(), ("--proba",), ("--json",)])
@pytest.mark.parametrize("raw", ODD_LINES)
def test_lines_out_match_lines_in(raw: bytes, form: Sequence[str]) -> None:
    assert len(lines(done("topics", "-", *BOTH, *form, stdin=raw))) == n_lines(raw)


def test_a_line_without_words_has_no_topic(texts: Path) -> None:
    texts.write_text("\n".join([*TECH, "", *PETS, "?!"]))
    result = done("topics", texts, *BOTH)
    assert [n for n, line in enumerate(lines(result), 1) if not line] == [4, 8]
    assert "2 lines (4, 8) have no word that the model knows" in result.stderr
    assert shares_of(texts, *BOTH)[[3, 7]].tolist() == [[0.5, 0.5]] * 2
    said = [json.loads(line) for line in lines(done("topics", texts, *BOTH, "--json"))]
    assert [one["line"] for one in said if one["topic"] is None] == [4, 8]
    assert [one["words"] for one in said] == [5, 4, 5, 0, 5, 5, 6, 0]


def test_json_lines(texts: Path) -> None:
    for number, line in enumerate(lines(done("topics", texts, *BOTH, "--json", "--proba")), 1):
        one = json.loads(line)
        assert one["line"] == number
        assert one["share"] == one["shares"][one["topic"]] == max(one["shares"])
    assert "shares" not in json.loads(lines(done("topics", texts, *BOTH, "--json"))[0])


def test_several_files_are_one_after_the_other(texts: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt.gz", tmp_path / "b.txt"
    first.write_bytes(gzip.compress("\n".join(TECH).encode()))
    second.write_text("\n".join(PETS))
    page = tmp_path / "page.html"
    assert done("topics", first, second, *BOTH, "--html", page).stdout == (
        done("topics", texts, *BOTH).stdout
    )
    html = page.read_text(encoding="utf-8")
    assert "a.txt.gz:2" in html
    assert "b.txt:3" in html


@pytest.mark.parametrize("learner", [*sorted({*LearnerName} - {"spectral"}), *SHORT])
def test_learners(texts: Path, learner: str) -> None:
    args = ("topics", texts, *BOTH, "--learner", learner, "--max-iter", "6", "--n-init", "2")
    assert len(lines(done(*args))) == 6


def test_dials_reach_the_model(texts: Path) -> None:
    args = ("--doc-prior", ".5", "--word-prior", ".2", "--scouts", "2", "--float32", "--tol", "0")
    model = sc.LDA(
        2,
        doc_prior=0.5,
        word_prior=0.2,
        scouts=2,
        dtype="float32",
        learner=sc.EM(max_iter=7, tol=0.0, n_init=2),
    ).fit(TECH + PETS)
    found = shares_of(texts, *BOTH, *args, "--max-iter", "7", "--n-init", "2", "--threads", "2")
    np.testing.assert_allclose(found, model.fold_learned(), rtol=1e-5)


def test_priors_that_are_fitted_leave_empty_lines_sound(texts: Path) -> None:
    """Two short topics drive the prior to nearly nothing."""
    args = ("--learner", "collapsed-gibbs", "--optimise", "3", "--max-iter", "12")
    found = shares_of("-", *BOTH, *args, stdin="a a a a\n\nb b b b\na a a\n")
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


def test_more_topics_than_words() -> None:
    assert shares_of("-", "-k", "30", stdin="a b\nb c\n").shape == (2, 30)


def test_a_huge_line() -> None:
    found = lines(done("topics", "-", *BOTH, stdin="a " * 200_000 + "\nb c\nb b\n"))
    assert found[1][0] == found[2][0] != found[0][0]


def test_threads_give_the_same_lines(texts: Path) -> None:
    args = (texts, "-k", "3", "--seed", "7", "--threads")
    np.testing.assert_array_equal(shares_of(*args, "1"), shares_of(*args, "2"))


# what was learned
def test_overview_goes_to_stderr_or_with_summary_to_stdout(texts: Path) -> None:
    plain = done("topics", texts, *BOTH)
    assert "topic\tlines\tshare\tmarks" in plain.stderr
    assert "# converged" in plain.stderr
    alone = done("topics", texts, *BOTH, "--summary")
    assert alone.stdout == plain.stderr
    assert alone.stderr == ""
    rows = [line.split("\t") for line in alone.stdout.splitlines() if not line.startswith("#")][1:]
    model = sc.LDA(2).fit(TECH + PETS)
    words = model.read(TECH + PETS, first=False).lengths
    shares = words @ model.fold_learned() / words.sum()
    assert {row[0]: row[2] for row in rows} == {
        str(k): f"{share:.4f}" for k, share in enumerate(shares)
    }
    assert [row[1] for row in rows] == ["3", "3"]
    whole = summary_of(texts, *BOTH)
    assert whole["perplexity"] == model.trace_[-1].perplexity


@pytest.mark.parametrize("n", [1, 12])
def test_how_many_words_are_shown(texts: Path, n: int) -> None:
    said = done("topics", texts, *BOTH, "--summary", "--top-words", str(n), "--tokens").stdout
    model = sc.LDA(2, vectorizer=None).fit([text.split() for text in TECH + PETS])
    shown = {line[0]: line.split("\t")[3].split() for line in said.splitlines() if line[0] in "01"}
    assert shown == {str(k): [w for w, _ in row] for k, row in enumerate(model.top_words(n))}


def test_which_words_count(texts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.softcount"
    args = ("--stop-words", "english", "--min-count", "2", "--max-share", ".4")
    done("topics", texts, *BOTH, *args, "--save", kept)
    assert sc.load(kept).word_names().tolist() == ["new", "released"]


def test_a_saved_model_answers_the_same(texts: Path, tmp_path: Path) -> None:
    kept, page = tmp_path / "kept.softcount", tmp_path / "page.html"
    first = done("topics", texts, *BOTH, "--save", kept)
    again = done("topics", "--load", kept, texts)
    assert again.stdout == first.stdout
    more = done("topics", "--load", kept, "-", "--html", page, stdin="Apple Apple\nzzz\n")
    assert lines(more)[0].startswith(first.stdout[0])
    assert lines(more)[1] == ""
    said = [line.split("\t") for line in more.stderr.splitlines() if line[0] in "01"]
    assert said[0][:2] == [first.stdout[0], "1"]
    html = page.read_text(encoding="utf-8")
    assert "standard input:1" in html
    assert TECH[0] not in html
    assert done("topics", "--load", kept, "-", "--html", page, stdin="").stdout == ""


def test_page_and_pyldavis(texts: Path, tmp_path: Path) -> None:
    dates, page, inputs = (tmp_path / name for name in ("dates.txt", "page.html", "in.json"))
    dates.write_text("1994-03-01\n1994-03\n\n1994-05\n1994-06\n1994-06\n")
    done("topics", texts, *BOTH, "--dates", dates, "--html", page, "--pyldavis", inputs)
    html = page.read_text(encoding="utf-8")
    for part in ("2 topics in texts.txt", "texts.txt:1", "1994-03", "1994-06"):
        assert part in html
    found = json.loads(inputs.read_text(encoding="utf-8"))
    expected = sc.LDA(2).fit(TECH + PETS).for_pyldavis(TECH + PETS)
    assert found["vocab"] == expected["vocab"]
    np.testing.assert_allclose(found["doc_topic_dists"], expected["doc_topic_dists"])
    assert found["doc_lengths"] == [5, 4, 5, 5, 5, 6]


# what cannot be
@pytest.mark.parametrize("stdin", ["", "\n\n \n"])
def test_nothing_to_learn_from(stdin: str) -> None:
    refused("topics", "-", message="-: the file is empty, or all its lines are", stdin=stdin)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.txt",), "nowhere.txt: cannot be read"),
        (("-", "--init", "somehow"), "init='somehow'"),
        (("-", "--min-count", "3"), "none of the 1 words is left"),
        (("-", "--seeds", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("-", "--load", "nowhere.softcount"), "cannot read nowhere.softcount"),
        (("-", "--freeze", "nowhere.softcount"), "cannot read nowhere.softcount"),
    ],
)
def test_bad_input_is_said_without_a_traceback(args: Sequence[str], message: str) -> None:
    refused("topics", *args, message=message, stdin="word\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-k", "0"), "-k"),
        (("--load", "m", "-k", "3", "--labels", "l"), "--topics, --labels"),
        (("--model", "plsa", "--doc-prior", "1"), "--doc-prior"),
        (("--model", "plsa", "--learner", "gibbs"), "--learner gibbs needs priors"),
        (("--model", "plsa", "--learner", "vb"), "--learner variational-bayes needs priors"),
        (("--smoothing", "1"), "say --word-prior"),
        (("--optimise", "5"), "it is for collapsed-gibbs alone"),
        (("--learner", "spectral"), "--learner spectral"),
        (("--learner", "sgd"), "sgd: choose one of em, hard-em, "),
        (("--model", "hdp"), "hdp: choose one of lda, plsa"),
        (("--over-time", "t.tsv"), "--over-time needs --dates"),
        (("--over-time", "-", "--dates", "d", "--summary"), "choose one"),
        (("--dates", "-"), "only one file"),
        (("-",), "only one file"),
    ],
)
def test_wrong_options_are_usage_errors(args: Sequence[str], message: str) -> None:
    result = run("topics", "-", *args, stdin="a\n")
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_archive_has_its_own_words(archive: Path) -> None:
    result = run("topics", archive, "--min-count", "2")
    assert result.exit_code == 2
    assert "the archive says which words count" in result.stderr


@pytest.mark.parametrize("option", ["--save", "--html", "--pyldavis", "--over-time"])
def test_what_cannot_be_written_is_refused_before_learning(
    texts: Path, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.cli.models.learn", None)
    target = tmp_path / "nowhere" / "x"
    message = f"{option} {target}: there is no folder"
    refused("topics", texts, "--dates", texts, option, target, message=message)


def test_models_of_other_kinds_are_sent_elsewhere(texts: Path, tmp_path: Path) -> None:
    classes, topics = tmp_path / "classes.softcount", tmp_path / "topics.softcount"
    done("cluster", texts, *BOTH, "--save", classes)
    done("topics", texts, *BOTH, "--save", topics)
    refused("topics", "--load", classes, texts, message=f"try softcount cluster --load {classes}")
    refused("cluster", "--load", topics, texts, message=f"try softcount topics --load {topics}")


def test_a_closed_pipe_is_no_fault(texts: Path) -> None:
    texts.write_text("a b\nc d\n" * 4_000)
    command = [sys.executable, "-m", "softcount", "topics", str(texts), *BOTH, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "topic\tlines" in said
    assert "Error" not in said
    assert "Traceback" not in said


def test_no_line_is_lost_with_a_file(texts: Path, tmp_path: Path) -> None:
    done("topics", texts, "-k", "2", "--save", tmp_path / "m")
    args = ("--load", tmp_path / "m", "-", "--pyldavis", tmp_path / "v.json")
    result = run("topics", *args, stdin="unheard\nof\n")
    assert result.exit_code == 1
    assert "no document that has a word" in result.stderr
    assert result.stdout == "\n\n"
