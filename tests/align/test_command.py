"""``softcount align``, as a user meets it: models, links, pairs."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import softcount as sc
from softcount.align import IBM1, IBM2, Aligner, Diagonal, HMMAligner
from softcount.cli.reading import PairFiles
from tests.align.pairs import (
    FLIPPED,
    PAIRS,
    TINY,
    assert_close,
    expected,
    probabilities,
    write_pairs,
)
from tests.commands import done, lines, refused, run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_pairs(tmp_path)


# which model
@pytest.mark.parametrize(
    ("args", "model"),
    [
        ((), Aligner()),
        (("-m", "ibm1"), IBM1()),
        (("-m", "ibm2"), IBM2()),
        (("-m", "hmm"), HMMAligner()),
        (("-m", "diagonal"), Diagonal()),
        (("-d", "-o"), Diagonal()),
        (("-d", "-o", "-v"), Diagonal(learner=sc.VariationalBayes(max_iter=5), smoothing=0.01)),
        (("-d", "-q", ".3", "-I", "2"), Diagonal(learner=sc.EM(max_iter=2), p_null=0.3)),
        (("-m", "ibm1", "-N"), IBM1(null=False)),
        (("-v", "-a", ".4"), Aligner(learner=sc.VariationalBayes(max_iter=5), smoothing=0.4)),
        (("-m", "diagonal", "--both"), Aligner("diagonal")),
        (("--no-agree",), Aligner(agree=False)),
        (("-m", "ibm1", "--both", "--warm-up", "2"), Aligner("ibm1", warm_up=2)),
        (("--p-null", ".4", "-N"), Aligner(settings={"p_null": 0.4, "null": False})),
        (
            ("-m", "hmm", "--p-null", ".4", "--max-jump", "2", "--warm-up", "1"),
            HMMAligner(p_null=0.4, max_jump=2, warm_up=1),
        ),
        (("-m", "ibm2", "--smoothing", ".5"), IBM2(smoothing=0.5)),
        (("--dtype", "float32"), Aligner(dtype="float32")),
        (("--threads", "2", "--lowercase"), Aligner(lowercase=True)),
        (
            ("-m", "ibm1", "--learner", "mcem", "--seed", "4"),
            IBM1(learner=sc.MonteCarloEM(max_iter=5), random_state=4),
        ),
    ],
)
def test_lines_are_those_of_the_python_model(
    corpus: Path, args: tuple[str, ...], model: Any
) -> None:
    assert_close(probabilities("-i", corpus, *args), expected(model.fit(PAIRS)))


def test_settings_matter(corpus: Path) -> None:
    """What the cases above set does change what is found."""
    plain = probabilities(corpus, "-m", "hmm")
    for args in (("--p-null", ".4"), ("--max-jump", "2"), ("-N",), ("--warm-up", "1"), ("-I", "9")):
        assert probabilities(corpus, "-m", "hmm", *args) != plain


@pytest.mark.parametrize(
    "learner", ["em", "hard-em", "online-em", "incremental-em", "vb", "svb", "mcem", "gibbs"]
)
def test_learners(learner: str) -> None:
    args = ("align", "-m", "ibm1", "--learner", learner, "-I", "4")
    assert len(lines(done(*args, stdin=TINY))) == 3


def test_reverse_is_the_model_of_the_other_direction(corpus: Path) -> None:
    wanted = [
        {(i, j): p for (j, i), p in one.items()} for one in expected(HMMAligner().fit(FLIPPED))
    ]
    double = ("--dtype", "float64")  # there are ties
    assert_close(probabilities(corpus, "-m", "hmm", "-r", *double), wanted)
    for line in lines(done("align", corpus, "-m", "hmm", "-r")):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert links == sorted(links)


# how links are chosen
@pytest.mark.parametrize(
    "method",
    [
        *("product", "soft-union", "intersection", "union", "grow-diag", "grow-diag-final"),
        *("grow-diag-final-and", "forward", "backward"),
    ],
)
def test_symmetrisation(corpus: Path, method: str) -> None:
    model = Aligner("ibm2").fit(PAIRS)
    found = done("align", corpus, "-m", "ibm2", "--symmetrize", method)
    assert found.stdout.encode() == model.links(method=method)[0].text()
    assert done("align", corpus, "-m", "ibm2", "--symmetrise", method).stdout == found.stdout


def test_threshold(corpus: Path) -> None:
    one, both = HMMAligner().fit(PAIRS), Aligner().fit(PAIRS)
    args = ("--threshold", ".8")
    assert_close(probabilities(corpus, "-m", "hmm", *args), expected(one, threshold=0.8))
    assert_close(probabilities(corpus, *args), expected(both, threshold=0.8))
    joint = ("--symmetrize", "soft-union", "--threshold", ".1")
    wanted = expected(both, method="soft-union", threshold=0.1)
    assert_close(probabilities(corpus, *joint), wanted)


# files in
def test_one_file_two_files_packed_files_and_stdin_are_the_same(
    corpus: Path, tmp_path: Path
) -> None:
    wanted = done("align", corpus).stdout
    source, target, packed = (tmp_path / name for name in ("c.en", "c.de.gz", "c.gz"))
    source.write_text("".join(f"{one}\n" for one, _ in PAIRS))
    target.write_bytes(gzip.compress("".join(f"{two}\n" for _, two in PAIRS).encode()))
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    for args in (("-i", corpus), ("-s", source, "-t", target), (packed,)):
        assert done("align", *args).stdout == wanted
    for args in ((), ("-",), ("-i", "-")):
        assert done("align", *args, stdin=corpus.read_bytes()).stdout == wanted


@pytest.mark.parametrize("form", [(), ("--proba",), ("-m", "ibm1", "-r"), ("--threshold", "0")])
@pytest.mark.parametrize(
    "raw",
    [
        b"a b ||| x y\r\n ||| x\r\na |||\r\n|||\r\nb ||| y\r\n",
        b"\xef\xbb\xbfa ||| x\nb\xe2\x80\xa8c\x0bd ||| y\n ||| \nb ||| y\n|||",
        "नमस्ते ||| 你好\n🙂 ||| 🙂 🙂\n ||| x\na\tb\u00a0c\u3000d ||| y\n|||\n".encode(),
    ],
)
def test_lines_out_match_lines_in(raw: bytes, form: tuple[str, ...], tmp_path: Path) -> None:
    found = lines(done("align", *form, stdin=raw))
    halves = [line.split("|||") for line in raw.decode().removesuffix("\n").split("\n")]
    assert len(found) == len(halves)
    for line, (source, target) in zip(found, halves, strict=True):
        if not source.strip() or not target.strip():
            assert line == ""


@pytest.mark.parametrize("model", ["diagonal", pytest.param("hmm", marks=pytest.mark.slow)])
def test_long_sentences(model: str) -> None:
    long = " ".join(f"w{n % 60}" for n in range(500))
    found = lines(done("align", "-m", model, "-I", "1", stdin=f"{long} ||| {long}\n" * 2))
    assert len(found) == 2
    assert found[0] == found[1]


def test_lowercase_is_part_of_the_model(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    upper = TINY.upper().replace("|||", " ||| ")
    assert done("align", "--lowercase", "--save", kept, stdin=upper).stdout == (
        done("align", stdin=TINY).stdout
    )
    assert sc.load(kept).forward_.source_words_ == ["the", "house", "book", "a"]
    new = done("align", "--load", kept, "--proba", stdin="A House ||| Ein Haus\n").stdout
    assert new == done("align", "--load", kept, "--proba", stdin="a house ||| ein haus\n").stdout


def test_a_blank_line_is_a_pair_of_nothing(tmp_path: Path) -> None:
    kept, blank = tmp_path / "kept", TINY.replace("\n", "\n\n \n")
    wanted = done("align", "--save", kept, stdin=TINY).stdout.replace("\n", "\n\n\n")
    assert done("align", stdin=blank).stdout == wanted
    assert done("align", "--load", kept, stdin=blank).stdout == wanted


# what cannot be
@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no pairs in standard input"),
        (b" ||| \n|||\n", "every pair has an empty side"),
        (b"a ||| b\na\tb\n", "standard input:2 has no |||"),
        (b"a ||| b ||| c\n", "standard input:1 has ||| 2 times"),
        (b"a ||| b\nc \xff ||| d\n", "standard input:2 is not UTF-8 text"),
        (b"a ||| b\na\x00 ||| d\n", "standard input:2 has a NUL byte in it"),
    ],
)
def test_damaged_pairs(raw: bytes, message: str, tmp_path: Path) -> None:
    refused("align", message=message, stdin=raw)
    path = tmp_path / "pairs.txt"
    path.write_bytes(raw)
    refused("align", path, message=message.replace("standard input", str(path)))


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_text("a\nb\n")
    target.write_text("x\n")
    refused("align", "-s", source, "-t", target, message="s has 2 lines and ")
    packed = tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(TINY.encode() * 200)[:-9])
    refused("align", packed, message="cut.gz cannot be unpacked")
    refused("align", "nowhere.txt", message="nowhere.txt cannot be read")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--load", "nowhere"), "cannot read nowhere"),
        (("--show", "9"), "--show 9: there are 3 pairs"),
        (("--output", "/nowhere/out"), "--output /nowhere/out: there is no folder"),
        (("--html", "/nowhere/out"), "--html /nowhere/out: there is no folder"),
        (("--learner", "collapsed-gibbs"), "has no collapsed sampler"),
        (("-q", "1"), "p_null=1.0: must be below 1"),
        (("-v", "-a", "0"), "needs a prior above 0"),
        (("--links", "nowhere"), "cannot read nowhere"),
    ],
)
def test_refused(args: tuple[str, ...], message: str) -> None:
    refused("align", *args, message=message, stdin=TINY)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-r",), "-r is for a model of one direction"),
        (("-m", "hmm", "-r", "--both"), "-r is for a model of one direction"),
        (("-d", "-m", "hmm"), "-d means -m diagonal"),
        (("-v", "--learner", "em"), "-v means --learner vb"),
        (("-f", "table"), "save the model with --save"),
        (("-m", "1.2"), "choose one of ibm1, ibm2, diagonal, hmm"),
        (("-m", "ibm2", "--p-null", ".1"), "--p-null is for -m diagonal or hmm"),
        (("-m", "diagonal", "--max-jump", "3"), "--max-jump is for -m hmm"),
        (("-m", "ibm1", "--warm-up", "3"), "--warm-up is for -m ibm2 or"),
        (("--threshold", "1"), "--threshold 1"),
        (("--threshold", ".1", "--symmetrize", "union"), "--threshold is for product"),
        (("--dictionary-strength", "3"), "--dictionary-strength needs --dictionary"),
        (("--dictionary", "-"), "only one file can be standard input"),
        (("-s", "a"), "-s and -t go together"),
        (("-s", "a", "-t", "-"), "-s and -t are files"),
        (("a", "-i", "b"), "give the pairs once"),
        (("--load", "m", "-m", "hmm", "--save", "x"), "--load does not go with --model, --save"),
        (("--learner", "spectral"), "--learner spectral is for"),
    ],
)
def test_options_that_do_not_go_together(args: tuple[str, ...], message: str) -> None:
    result = run("align", *args, stdin=TINY)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_models_of_another_kind(tmp_path: Path) -> None:
    one, both, topics = (tmp_path / name for name in ("one", "both", "topics"))
    done("align", "-m", "ibm1", "--save", one, stdin=TINY)
    done("align", "--save", both, stdin=TINY)
    sc.LDA(2).fit(["a b c", "c d e"]).save(topics)
    refused("align", "--load", both, "-r", message="both has both directions", stdin=TINY)
    message = "one has only one direction (IBM1)"
    refused("align", "--load", one, "--symmetrize", "union", message=message, stdin=TINY)
    refused("align", "--load", topics, message="try softcount topics", stdin=TINY)
    refused("topics", "--load", one, "-", message="try softcount align", stdin="a\n")


def test_a_first_tension_means_the_diagonal_model(corpus: Path) -> None:
    result = done("align", corpus, "-T", "4", "-o")
    assert result.stdout == done("align", corpus, "-d").stdout
    wrong = run("align", corpus, "-m", "hmm", "-T", "4")
    assert wrong.exit_code == 2
    assert "-d means -m diagonal" in wrong.stderr


def test_sampled(corpus: Path) -> None:
    result = done("align", corpus, "-m", "gibbs", "-I", "6", "--seed", "1")
    assert result.stdout == done("align", corpus, "-m", "gibbs", "-I", "6", "--seed", "1").stdout
    assert result.stdout.count("\n") == corpus.read_text(encoding="utf-8").count("\n")
    for option in (("-v",), ("--stem", "4")):
        assert run("align", corpus, "-m", "gibbs", *option).exit_code == 2


def test_no_pairs_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(typer.BadParameter, match="no sentence pairs"):
        PairFiles.given(None, None, None, None)
    assert PairFiles.given("-", None, None, None).is_stdin


@pytest.mark.slow
def test_a_closed_pipe_is_no_fault(corpus: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done("align", corpus, "-m", "ibm1", "--save", kept)
    corpus.write_text(corpus.read_text() * 1_000)
    for args in (("--load", str(kept)), ("-m", "ibm1")):
        command = [sys.executable, "-m", "softcount", "align", str(corpus), *args]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            said = process.stderr.read().decode().splitlines()
        assert said == []


def test_same_seed_same_draws(corpus: Path) -> None:
    args = (corpus, "-m", "hmm", "--learner", "mcem", "-I", "3", "--seed")
    first, again, other = (probabilities(*args, seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first != other
    assert np.isfinite([p for one in first for p in one.values()]).all()
