"""``softcount topics`` and ``softcount similar``."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.core import store
from softcount.learners.names import SHORT, LearnerName
from tests.commands import (
    ODD_LINES,
    PETS,
    TECH,
    done,
    lines,
    n_lines,
    refused,
    reported,
    run,
    shares_of,
)

BOTH = ("-k", "2")


def summary_of(*args: str | Path) -> dict[str, object]:
    whole: dict[str, object] = json.loads(done("topics", *args, "--summary", "--json").stdout)
    return whole


# one line out for each line in
def test_lines_are_those_of_the_python_model(texts: Path) -> None:
    model = sc.LDA(2).fit(TECH + PETS)
    main = model.fold_in_training_documents().argmax(axis=1)
    expected = [
        f"{k}\t{row[k]:.4f}"
        for k, row in zip(main, model.fold_in_training_documents(), strict=True)
    ]
    assert lines(done("topics", texts, *BOTH)) == expected
    np.testing.assert_allclose(
        shares_of(texts, *BOTH), model.fold_in_training_documents(), rtol=1e-5
    )
    plain = sc.PLSA(3, smoothing=0.5, init="anchors", random_state=4).fit(TECH + PETS)
    args = (texts, "-k", "3", "--model", "plsa", "--smoothing", ".5", "--init", "anchors")
    np.testing.assert_allclose(
        shares_of(*args, "--seed", "4"), plain.fold_in_training_documents(), atol=1e-6
    )


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
        assert one["proportion"] == one["proportions"][one["topic"]] == max(one["proportions"])
    assert "proportions" not in json.loads(lines(done("topics", texts, *BOTH, "--json"))[0])


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
    args = (
        "--smoothing",
        "documents=.5,words=.2",
        "--short-runs",
        "2",
        "--dtype",
        "float32",
        "--tol",
        "0",
    )
    model = sc.LDA(
        2,
        smoothing={"documents": 0.5, "words": 0.2},
        short_runs=2,
        dtype="float32",
        learner=sc.EM(max_iter=7, tol=0.0, n_init=2),
    ).fit(TECH + PETS)
    found = shares_of(texts, *BOTH, *args, "--max-iter", "7", "--n-init", "2", "--threads", "2")
    np.testing.assert_allclose(found, model.fold_in_training_documents(), rtol=1e-5)


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
    assert alone.stdout == reported(plain)
    assert reported(alone) == ""
    rows = [line.split("\t") for line in alone.stdout.splitlines() if not line.startswith("#")][1:]
    model = sc.LDA(2).fit(TECH + PETS)
    words = model._read_documents(TECH + PETS, first=False).lengths
    shares = words @ model.fold_in_training_documents() / words.sum()
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
    refused("topics", "-", message="-: the file or every line of it is empty", stdin=stdin)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.txt",), "nowhere.txt: cannot be read"),
        (("-", "--init", "somehow"), "init='somehow'"),
        (("-", "--min-count", "3"), "none of the 1 words is left"),
        (("-", "--seed-words", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("-", "--load", "nowhere.softcount"), "cannot read nowhere.softcount"),
        (("-", "--frozen-topics", "nowhere.softcount"), "cannot read nowhere.softcount"),
    ],
)
def test_bad_input_is_said_without_a_traceback(args: Sequence[str], message: str) -> None:
    refused("topics", *args, message=message, stdin="word\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-k", "0"), "-k"),
        (("--load", "m", "-k", "3", "--labels", "l"), "--labels, --n-components"),
        (("--smoothing", "words=-1"), "is not in the range x>=0"),
        (("--model", "plsa", "--learner", "gibbs"), "--learner gibbs needs priors"),
        (("--model", "plsa", "--learner", "vb"), "--learner variational-bayes needs priors"),
        (("--smoothing", "words"), "words: write a number, or one for each table"),
        (("--optimise", "5"), "it applies to collapsed-gibbs only"),
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
    assert "the archive has a fixed vocabulary" in result.stderr


@pytest.mark.parametrize("option", ["--save", "--html", "--pyldavis", "--over-time"])
def test_what_cannot_be_written_is_refused_before_learning(
    texts: Path, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.cli.frame.LearningCommand._learn", None)
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
    assert "no document has a word that the model knows" in result.stderr
    assert result.stdout == "\n\n"


# ``softcount topics``: seeds, labels, frozen topics, archives, dates.


# what is known beforehand
def test_seeds_decide_which_topic_is_which(texts: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    for text, tech in (("Apple iPod\ncat\n", "0"), ("cat dog\niPod, APPLE", "1")):
        seeds.write_text(text)
        found = [line[0] for line in lines(done("topics", texts, *BOTH, "--seed-words", seeds))]
        assert found[:3] == [tech] * 3
        assert found[3:] == [str(1 - int(tech))] * 3
    seeds.write_text("\n1: apple unheard-of\n\n")
    result = done("topics", texts, *BOTH, "--seed-words", seeds)
    assert [line[0] for line in lines(result)][:3] == ["1"] * 3
    assert "# no document has the seed word unheard-of" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apple\n\n2: cat", ":3: there is no topic 2"),
        ("apple\ncat\n\ndog", ":4: there is no topic 3"),
        ("apple\n0: cat", ":2: topic 0 already has seed words"),
        ("\n?\n", ": the file has no words"),
        ("unheard-of\n", "none of the seed words is in the corpus"),
    ],
)
def test_bad_seeds(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(text)
    refused("topics", texts, *BOTH, "--seed-words", seeds, message=message)


def test_labels_hold_documents_to_their_topics(texts: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("2\n\n-1\n0 1\n0,1\n1\n")
    found = shares_of(texts, "-k", "3", "--labels", labels)
    np.testing.assert_array_equal(found[[0, 5]], [[0, 0, 1], [0, 1, 0]])
    assert found[3:5, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n" * 5, ": 5 lines, while texts.txt has 6"),
        ("0\n" * 5 + "2\n", ":6: '2' is not a topic"),
        ("0\nsport\n" * 3, ":2: 'sport' is not a topic"),
        ("0\n,\n" * 3, ":2: ',' is not a topic"),
        ("0\n" * 5 + "9" * 5000, ":6: '99"),
    ],
)
def test_bad_labels(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text(text)
    refused("topics", texts, *BOTH, "--labels", labels, message=f"--labels {labels}{message}")


def test_frozen_topics(texts: Path, tmp_path: Path) -> None:
    kept, more = tmp_path / "kept.softcount", tmp_path / "more.softcount"
    done("topics", texts, *BOTH, "--save", kept)
    new = tmp_path / "new.txt"
    new.write_text("\n".join([*TECH, *PETS, "oil price market", "market price"]))
    done("topics", new, "-k", "3", "--frozen-topics", kept, "--save", more)
    old, found = sc.load(kept), sc.load(more)
    columns = [found.word_names().tolist().index(word) for word in old.word_names()]
    np.testing.assert_allclose(found.topics_[:2, columns], old.topics_, rtol=1e-6)
    assert found.top_words(1)[2][0][0] in ("market", "price")
    refused(
        "topics",
        new,
        *BOTH,
        "--frozen-topics",
        kept,
        message="2 topics: with -k 2 there is nothing",
    )
    args = ("topics", "-", "-k", "3", "--frozen-topics", kept)
    refused(*args, message="topic 0 has none of the words of standard input", stdin="oil\nprice\n")


# archives
def test_an_archive_answers_in_the_order_of_its_lines(
    texts: Path, archive: Path, tmp_path: Path
) -> None:
    found = sc.text.Archive.open(archive)
    assert found.origin.tolist() != list(range(6))
    expected = np.empty((6, 2))
    expected[found.origin] = sc.LDA(2).fit(found).fold_in_training_documents()
    np.testing.assert_allclose(shares_of(archive, *BOTH), expected, rtol=1e-5)
    labels, dates, page = tmp_path / "labels.txt", tmp_path / "dates.txt", tmp_path / "page.html"
    labels.write_text("0\n0\n0\n1\n1\n1\n")
    dates.write_text("1990\n1990\n1990\n1991\n1991\n1991\n")
    args = ("topics", archive, *BOTH, "--labels", labels, "--dates", dates, "--over-time", "-")
    assert lines(done(*args, "--html", page))[1:] == ["1990\t3\t1\t0", "1991\t3\t0\t1"]
    assert f"{texts.name}:1" in page.read_text(encoding="utf-8")


def test_an_archive_folds_in_where_it_has_the_same_words(
    texts: Path, archive: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.softcount"
    first = done("topics", archive, *BOTH, "--save", kept)
    assert done("topics", "--load", kept, archive).stdout == first.stdout
    assert done("topics", "--load", kept, texts).stdout == first.stdout
    other = tmp_path / "other.archive"
    done("corpus", "build", "-", "-o", other, stdin="oil\n")
    refused("topics", "--load", kept, other, message="has a different vocabulary from the model")
    refused("topics", tmp_path, message=str(tmp_path))
    refused("topics", texts, archive, message=f"{archive} is a folder")


# dates
def test_over_time(texts: Path, tmp_path: Path) -> None:
    dates, table, labels = (tmp_path / name for name in ("dates.txt", "t.tsv", "labels.txt"))
    dates.write_text("1990\n1990\n\n1992\n1990\n1992\n")
    labels.write_text("0\n0\n0\n1\n1\n1\n")
    args = ("topics", texts, *BOTH, "--labels", labels, "--dates", dates, "--over-time")
    assert lines(done(*args, table)) == ["0\t1.0000"] * 3 + ["1\t1.0000"] * 3
    expected = [f"1990\t3\t{9 / 14:.6g}\t{5 / 14:.6g}", "1991\t0\t\t", "1992\t2\t0\t1"]
    assert table.read_text().splitlines() == ["period\tdocuments\t0\t1", *expected]
    assert done(*args, "-").stdout == table.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1990\n\nsoon\n" * 2, ":3: 'soon' is not a date"),
        ("1990\n" * 7, ": 7 lines, while texts.txt has 6"),
        ("\n" * 6, ": no document has a date"),
        ("1990-01-01\n" * 5 + "3.5", ":6: 3.5 is not a date"),
    ],
)
def test_bad_dates(texts: Path, tmp_path: Path, text: str, message: str) -> None:
    dates = tmp_path / "dates.txt"
    dates.write_text(text)
    refused("topics", texts, "--dates", dates, message=f"--dates {dates}{message}")


# ``softcount similar``, as a user meets it.


@pytest.fixture
def model(texts: Path, tmp_path: Path) -> Path:
    path = tmp_path / "model.softcount"
    done("topics", texts, "-k", "2", "--save", path)
    return path


# what is found
@pytest.mark.parametrize("words", ["0", "0.7", "1"])
def test_hits_are_those_of_the_python_model(model: Path, words: str) -> None:
    expected = [
        f"{rank}\t{score:.4f}\t{number + 1}"
        for rank, (number, score) in enumerate(
            sc.load(model).similar("dog mouse", 4, words=float(words)), 1
        )
    ]
    assert lines(done("similar", model, "dog mouse", "-n", "4", "--words", words)) == expected


def test_the_documents_are_shown(model: Path, texts: Path) -> None:
    said = lines(done("similar", model, "iPod", texts, "-n", "3", "--words", "1"))
    assert said[0].split("\t")[2:] == ["1", TECH[0]]
    assert {line.split("\t")[3] for line in said} <= {*TECH, *PETS}
    assert len(said) == 3


def test_other_documents_than_those_learned_from(model: Path) -> None:
    text = "a mouse\nApple\tPie\rand cream\n"
    found = lines(done("similar", model, "iPhone", "-", stdin=text))
    assert [line.split("\t")[2] for line in found] == ["2", "1"]
    assert found[0].split("\t")[3] == "Apple\\tPie\\rand cream"


def test_more_is_asked_for_than_there_is(model: Path) -> None:
    assert len(lines(done("similar", model, "dog", "-n", "1000"))) == 6


# queries from standard input
def test_several_queries(model: Path, texts: Path) -> None:
    stdin = "mouse\n\nzzz\r\niPod"
    result = done("similar", model, "-n", "2", "--words", "1", stdin=stdin)
    rows = [line.split("\t") for line in lines(result)]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["4", "1"], ["4", "2"]]
    assert [row[3] for row in rows][::2] == ["5", "1"]
    assert reported(result) == "softcount: query 3 has no word that the model knows\n"
    with_texts = done("similar", model, "-", texts, "-n", "2", "--words", "1", stdin=stdin)
    shown = [line.split("\t") for line in lines(with_texts)]
    assert [row[:4] for row in shown] == rows
    assert [row[4] for row in shown][::2] == [PETS[1], TECH[0]]


def test_json_has_a_line_for_each_query(model: Path, texts: Path) -> None:
    stdin = "mouse\n\nzzz\niPod"
    said = lines(done("similar", model, "-", texts, "-n", "2", "--json", stdin=stdin))
    found = [json.loads(line) for line in said]
    assert [(one["query"], one["text"], len(one["hits"])) for one in found] == [
        (1, "mouse", 2),
        (2, "", 0),
        (3, "zzz", 0),
        (4, "iPod", 2),
    ]
    for one in found:
        for rank, hit in enumerate(one["hits"], 1):
            assert hit["rank"] == rank
            assert hit["text"] == (TECH + PETS)[hit["line"] - 1]


def test_queries_are_answered_as_they_come(model: Path) -> None:
    command = [sys.executable, "-m", "softcount", "similar", str(model), "-n", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, query in enumerate((b"dog\n", b"Apple\n"), 1):
            process.stdin.write(query)
            process.stdin.flush()
            assert process.stdout.readline().startswith(f"{number}\t1\t".encode())
        process.stdin.close()
    assert process.returncode == 0


def test_a_query_that_finds_nothing(model: Path) -> None:
    result = done("similar", model, "zzz")
    assert result.stdout == ""
    assert reported(result) == "softcount: the query has no word that the model knows\n"


@pytest.mark.parametrize("query", ["नमस्ते Apple 🙂", "Apple\x00", "Apple " * 100_000])
def test_odd_queries(model: Path, query: str) -> None:
    assert done("similar", model, query).stdout == done("similar", model, "apple").stdout


# archives
def test_documents_of_an_archive_have_names(
    texts: Path, archive: Path, model: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.softcount"
    done("topics", archive, "-k", "2", "--save", kept)
    refused("similar", kept, "dog", message="has no documents to search")
    args = ("similar", kept, "mouse", archive, "-n", "1", "--words", "1")
    assert lines(done(*args))[0].split("\t")[2] == f"{texts}:5"
    hit = json.loads(done(*args, "--json").stdout)["hits"][0]
    assert (hit["line"], hit["name"]) == (5, f"{texts}:5")
    assert lines(done("similar", kept, "mouse", texts, "-n", "1", "--words", "1"))[0].endswith(
        f"\t5\t{PETS[1]}"
    )


# in a terminal
class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_documents_fit_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from softcount.topics import command as similar

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "60")
    hit = {"rank": 1, "score": 0.5, "line": 7, "text": "\x1b[31mword " * 1000}
    similar._print_hits([hit], 1)
    shown = screen.getvalue()
    assert len(shown.expandtabs()) <= 60
    assert "word" in shown
    assert "\x1b" not in shown


# what cannot be
def test_models_of_other_kinds(texts: Path, tmp_path: Path) -> None:
    other = tmp_path / "classes.softcount"
    done("cluster", texts, "-k", "2", "--save", other)
    message = f"{other} has a model of kind MultinomialMixture, which softcount similar cannot use"
    refused("similar", other, "dog", message=message)


def test_a_model_of_bare_counts(tmp_path: Path) -> None:
    path = tmp_path / "counts.softcount"
    sc.LDA(2).fit(np.eye(4, dtype=int)).save(path)
    refused("similar", path, "dog", message="fitted to a matrix of counts")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nowhere.softcount", "dog"), "cannot read nowhere.softcount"),
        (("MODEL", "dog", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("MODEL", "dog", "-"), "-: the file or every line of it is empty"),
        (("TEXTS", "dog"), "texts.txt"),
        (("FOLDER", "dog"), "FOLDER"),
    ],
)
def test_similar_bad_input_is_said_without_a_traceback(
    model: Path, texts: Path, tmp_path: Path, args: Sequence[str], message: str
) -> None:
    known = {"MODEL": model, "TEXTS": texts, "FOLDER": tmp_path}
    wanted = str(tmp_path) if message == "FOLDER" else message
    refused("similar", *(known.get(arg, arg) for arg in args), message=wanted, stdin="\n\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("m", "-", "-"), "queries and documents cannot both"),
        (("m", "dog", "-n", "0"), "-n"),
        (("m", "dog", "--words", "1.5"), "--words"),
    ],
)
def test_similar_wrong_options_are_usage_errors(args: Sequence[str], message: str) -> None:
    result = run("similar", *args)
    assert result.exit_code == 2
    assert message in result.stderr


Tamper = Callable[[dict[str, np.ndarray], dict[str, object]], object]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda arrays, meta: arrays.update({"index.numbers": arrays["index.numbers"] + 99}),
        lambda arrays, meta: arrays.update({"index.borders": arrays["index.borders"][::-1].copy()}),
        lambda arrays, meta: arrays.update({"index.idf": arrays["index.idf"] * np.nan}),
        lambda arrays, meta: arrays.pop("index.values"),
        lambda arrays, meta: meta.update(vocabulary=["a"]),
        lambda arrays, meta: meta.update(settings={"n_components": 10**12}),
        lambda arrays, meta: meta.update(vectorizer={"analyzer": "os.system"}),
    ],
)
def test_a_file_that_lies_is_refused(model: Path, tmp_path: Path, tamper: Tamper) -> None:
    stored = store.read(model)
    arrays, meta = dict(stored.arrays), dict(stored.meta)
    tamper(arrays, meta)
    path = tmp_path / "hostile.softcount"
    store.write(path, stored.kind, arrays, meta, stored.signature)
    refused("similar", path, "dog", message="softcount: ")


def test_a_file_cut_short_is_refused(model: Path) -> None:
    model.write_bytes(model.read_bytes()[:-9])
    refused("similar", model, "dog", message=str(model))


def test_similar_a_closed_pipe_is_no_fault(model: Path, texts: Path) -> None:
    texts.write_text("dog\n" * 20_000)
    command = [sys.executable, "-m", "softcount", "similar", str(model), "-n", "20000"]
    with subprocess.Popen(
        [*command, "dog", str(texts)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
