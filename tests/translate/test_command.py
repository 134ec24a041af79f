"""``softcount translate``, as a user meets it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import softcount as sc
from softcount.align import Aligner
from softcount.translate import Translator
from softcount.translate.language_model import LanguageModel
from tests.commands import done, lines, refused, reported, run

GERMAN = ["das haus", "das buch", "ein buch", "das haus ist alt", "ein buch ist alt", "alt"]
ENGLISH = ["the house", "the book", "a book", "the house is old", "a book is old", "old"]
NEW = "ein haus ist alt\n\ndas buch ist alt\nzzz"


def in_python(source: list[str], target: list[str], **settings: Any) -> Translator:
    """From source to target: P(source | target) comes from an aligner of the other direction."""
    aligner = Aligner(**settings).fit(list(zip(target, source, strict=True)))
    return Translator(aligner.forward_, LanguageModel(3).fit(target))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    both = zip(GERMAN, ENGLISH, strict=True)
    path.write_text("".join(f"{german} ||| {english}\n" for german, english in both))
    return path


def test_from_source_to_target(corpus: Path) -> None:
    found = lines(done("translate", "--pairs", corpus, stdin=NEW))
    assert found == ["a house is old", "", "the book is old", "zzz"]
    model = in_python(GERMAN, ENGLISH)
    assert found == [str(model.translate(line)) for line in NEW.split("\n")]


def test_from_target_to_source(corpus: Path) -> None:
    found = lines(done("translate", "--pairs", corpus, "--reverse", stdin="a house is old\n"))
    assert found == ["ein haus ist alt"]


def test_two_files_and_packed_files(corpus: Path, tmp_path: Path) -> None:
    source, target, new = tmp_path / "c.de", tmp_path / "c.en", tmp_path / "new.gz"
    source.write_text("\n".join(GERMAN))
    target.write_text("\n".join(ENGLISH))
    new.write_bytes(gzip.compress(NEW.encode()))
    found = done("translate", "-s", source, "-t", target, new).stdout
    assert found == done("translate", "--pairs", corpus, "-", stdin=NEW).stdout


def test_dials(corpus: Path) -> None:
    args = ("-m", "ibm1", "-I", "2", "--order", "2", "--beam", "5", "--reorder", "0")
    aligner = Aligner("ibm1", learner=sc.EM(max_iter=2))
    aligner.fit(list(zip(ENGLISH, GERMAN, strict=True)))
    model = Translator(aligner.forward_, LanguageModel(2).fit(ENGLISH), beam=5, reorder=0)
    found = lines(done("translate", "--pairs", corpus, *args, "--n-best", "4", stdin=NEW))
    wanted = [
        f"{n} ||| {one} ||| {one.score:.4f}"
        for n, line in enumerate(NEW.split("\n"))
        for one in model.n_best(line, 4)
    ]
    assert found == wanted
    assert found != lines(done("translate", "--pairs", corpus, "--n-best", "4", stdin=NEW))


def test_explain(corpus: Path) -> None:
    said = done("translate", "--pairs", corpus, "--explain", stdin="ein haus\n").stdout
    assert said == f"{in_python(GERMAN, ENGLISH).explain('ein haus')}\n\n"
    assert "channel alone" in said


def test_lowercase(corpus: Path) -> None:
    corpus.write_text(corpus.read_text().upper())
    args = ("translate", "--pairs", corpus, "--lowercase")
    assert lines(done(*args, stdin="Ein Haus\n")) == ["a house"]


def test_a_saved_model_translates_the_same(corpus: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert done("translate", "--pairs", corpus, "--save", kept, stdin=NEW).stdout == ""
    wanted = done("translate", "--pairs", corpus, stdin=NEW).stdout
    assert done("translate", "--load", kept, stdin=NEW).stdout == wanted
    assert done("translate", "--pairs", corpus, "--save", kept, "-", stdin=NEW).stdout == wanted
    assert done("translate", "--load", kept, stdin="").stdout == ""
    refused("align", "--load", kept, message="try softcount translate", stdin="a ||| b\n")


def test_pairs_with_an_empty_side_are_left_out(corpus: Path) -> None:
    wanted = done("translate", "--pairs", corpus, stdin=NEW).stdout
    corpus.write_text(f" ||| \n{corpus.read_text()}das |||\n")
    assert done("translate", "--pairs", corpus, stdin=NEW).stdout == wanted


def test_a_long_sentence_and_a_strange_one(corpus: Path) -> None:
    strange = "\x00 das\thaus </s> \u2028 <unk>"
    found = lines(
        done("translate", "--pairs", corpus, "--beam", "3", stdin=f"{'das ' * 500}\n{strange}\n")
    )
    assert len(found) == 2
    assert len(found[0].split()) >= 400
    assert "the house" in found[1]


def test_a_damaged_line_keeps_the_lines_before_it(corpus: Path) -> None:
    result = run("translate", "--pairs", corpus, stdin=b"ein haus\n\xff\n")
    assert result.exit_code == 1
    assert result.stdout == "a house\n"
    assert "-:2: this line is not UTF-8 text" in result.stderr


def test_damaged_pairs(corpus: Path) -> None:
    corpus.write_text("a ||| b\nno bars\n")
    refused("translate", "--pairs", corpus, message=f"{corpus}:2 has no |||", stdin=NEW)
    corpus.write_text("a ||| b\n ||| \na ||| c <s>\n")
    refused("translate", "--pairs", corpus, message=f"{corpus}:3 contains <s>", stdin=NEW)


def test_verbose(corpus: Path) -> None:
    assert reported(done("translate", "--pairs", corpus, stdin=NEW)) == ""
    said = done("translate", "--pairs", corpus, "--verbose", stdin=NEW).stderr
    assert "step   0 of 5   perplexity" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "nothing to learn from"),
        (("--pairs", "-"), "only one file can be standard input"),
        (("--pairs", "a", "-s", "b", "-t", "c"), "give the pairs once"),
        (("--pairs", "a", "--explain", "--n-best", "2"), "choose one"),
        (("--load", "a", "--pairs", "b"), "--load does not go with --pairs"),
        (("--load", "a", "--reverse"), "--load does not go with --reverse"),
    ],
)
def test_options_that_do_not_go_together(args: tuple[str, ...], message: str) -> None:
    result = run("translate", *args, stdin=NEW)
    assert result.exit_code == 2
    assert message in result.stderr
