"""``softcount align``: what it reads beside pairs, models in files, what else it writes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import softcount as sc
from softcount.align import IBM1, IBM2, Aligner
from softcount.align import command as align_learning
from softcount.align.phrases import phrase_table
from softcount.cli.reading import PairFiles, stream_blocks
from softcount.core import store
from softcount.core.errors import StoreError
from softcount.metrics import align_scores
from softcount.text.links import read_links
from tests.align.pairs import (
    FLIPPED,
    PAIRS,
    TINY,
    assert_close,
    expected,
    probabilities,
    write_pairs,
)
from tests.commands import done, lines, refused, reported, run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_pairs(tmp_path)


# what is known
def test_a_dictionary_says_all_that_a_word_may_become(tmp_path: Path) -> None:
    known, out = tmp_path / "known.tsv", tmp_path / "out.tsv"
    known.write_text("the\thaus\n\nbook\tbuch\t3\nbook\tdas\t1\nto be\tsein\n")
    args = ("--dictionary", known, "--dictionary-out", out, "--min-prob", "0")
    result = done("align", "-m", "ibm1", *args, stdin=TINY)
    assert "skipped 1 multi-word entry" in result.stderr
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    found = {(s, t): float(p) for s, t, p in rows if s in ("the", "book") and float(p) > 0.0}
    assert found == {("the", "haus"): 1.0, ("book", "buch"): 0.75, ("book", "das"): 0.25}
    model = IBM1(dictionary={"the": "haus", "book": {"buch": 3, "das": 1}}).fit(TINY.splitlines())
    assert result.stdout.encode() == model.links()[0].text()


def test_a_dictionary_counts_so_much_more(corpus: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.tsv"
    known.write_text("s1\tt2\ns1\tt3\n")
    told = {"s1": ["t2", "t3"]}
    args = ("--dictionary", known, "--dictionary-strength", "50", "--lowercase", "-m", "ibm1")
    model = IBM1(dictionary=told, dictionary_strength=50, lowercase=True).fit(PAIRS)
    assert_close(probabilities(corpus, *args), expected(model))
    assert_close(
        probabilities(corpus, *args, "-r"),
        [
            {(i, j): p for (j, i), p in one.items()}
            for one in expected(
                IBM1(
                    dictionary={"t2": "s1", "t3": "s1"}, dictionary_strength=50, lowercase=True
                ).fit(FLIPPED)
            )
        ],
    )


def test_known_links(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("0-1 1-0\n\n0?1\n")
    for args in ((), ("-m", "hmm"), ("-m", "hmm", "-r")):
        found = lines(done("align", *args, "--links", known, stdin=TINY))
        assert found[0] == "0-1 1-0"
        assert found[2] == "0-0 1-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a x\n", "known:1: 'a x' is not a valid dictionary entry"),
        ("a\tx\na\t\n", "known:2: "),
        ("a\tx\t1\t2\n", "known:1: "),
        ("a\tx\tmuch\n", "known:1: 'much' is not a valid weight"),
        ("a\tx\t0\n", "known:1: '0' is not a valid weight"),
        ("a\tx\t1\na\ty\n", "known:2: some translations of 'a' have a weight"),
        ("a\tx\t1\na\tx\t2\n", "known:2: a – x already has another weight"),
        ("a b\tx\n", "known: no single-word entries"),
        ("", "known: no single-word entries"),
    ],
)
def test_damaged_dictionaries(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "known").write_text(text)
    refused("align", "--dictionary", tmp_path / "known", message=message, stdin=TINY)


@pytest.mark.parametrize("option", ["--links", "--gold"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0-9\n\n", "known:2: the link 0-9 is outside its pair"),
        ("0-0\n\n0:0\n", "known:3: '0:0' is not a link"),
        ("\n" * 4, "4 lines of links"),
        ("", "0 lines of links"),
    ],
)
def test_damaged_links(tmp_path: Path, option: str, text: str, message: str) -> None:
    (tmp_path / "known").write_text(text)
    refused("align", option, tmp_path / "known", message=message, stdin=TINY)


def test_gold_of_the_first_pairs(corpus: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("0-0 1?1\n1-0\n\n")
    result = done("align", corpus, "--gold", gold)
    scores = align_scores(Aligner().fit(PAIRS).align()[:3], read_links(gold))
    assert reported(result) == f"{scores} in 3 pairs\n"
    assert result.stdout == done("align", corpus).stdout


# models in files
@pytest.mark.parametrize(
    ("args", "again"),
    [
        ((), ()),
        (("-d", "-v"), ()),
        (("-m", "hmm", "-r"), ("-r",)),
        (("-m", "hmm", "-r"), ()),  # the file knows
        (("--symmetrize", "union"), ("--symmetrize", "union")),
        (("-m", "ibm1", "--threshold", ".1"), ("--threshold", ".1")),
    ],
)
def test_a_saved_model_aligns_the_same(
    corpus: Path, tmp_path: Path, args: tuple[str, ...], again: tuple[str, ...]
) -> None:
    kept, source, target = tmp_path / "kept", tmp_path / "s", tmp_path / "t"
    wanted = done("align", corpus, *args, "--save", kept, "--proba").stdout
    load = ("align", "--load", kept, *again, "--proba")
    assert done(*load, corpus).stdout == wanted
    assert done(*load, stdin=corpus.read_bytes()).stdout == wanted
    source.write_text("".join(f"{one}\n" for one, _ in PAIRS))
    target.write_text("".join(f"{two}\n" for _, two in PAIRS))
    assert done(*load, "-s", source, "-t", target, "--threads", "1").stdout == wanted


def test_new_text_with_new_words(tmp_path: Path) -> None:
    kept, gold = tmp_path / "kept", tmp_path / "gold"
    done("align", "--save", kept, stdin=TINY)
    new = "a house ||| ein haus\n ||| x\nnobody knows ||| keiner weiß\n"
    found = lines(done("align", "--load", kept, stdin=new))
    assert found[:2] == ["0-0 1-1", ""]
    assert len(found) == 3
    assert done("align", "--load", kept, stdin="").stdout == ""
    gold.write_text("0-0 1-1\n")
    scored = done("align", "--load", kept, "--gold", gold, stdin=new)
    assert scored.stderr.startswith("AER 0.0")
    assert lines(scored) == found


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard input is a pipe; what is written to this descriptor arrives there."""
    there, here = os.pipe()
    with open(there, "rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        yield here


def test_lines_are_there_as_soon_as_they_are_written(typed: int) -> None:
    os.write(typed, b"a ||| b\nc |")
    some = PairFiles("-").stream()
    assert next(some).pair(0) == (["a"], ["b"])
    os.write(typed, b"|| d\n")
    assert next(some).pair(0) == (["c"], ["d"])
    os.write(typed, b"e ||| f\ng ||| h\ni ||| ")
    assert len(next(some)) == 2
    os.close(typed)
    last = next(some)
    assert (last.pair(0), last.name(0)) == ((["i"], []), "standard input:5")


def test_arriving_lines_are_all_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    for raw in (b"", b"\n", b"a", b"a\n\nb\r\n", b"x" * 700_000 + b"\ny\n" + b"z\n" * 300_000):
        path.write_bytes(raw)
        found = [line for block in stream_blocks(str(path)) for line in block]
        assert found == raw.removesuffix(b"\n").split(b"\n") if raw else found == []


def test_a_fault_in_new_text_keeps_the_lines_before_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done("align", "--save", kept, stdin=TINY)
    long = tmp_path / "long.txt"
    long.write_bytes(b"a house ||| ein haus\n" * 30_000 + b"no bars\n")
    result = run("align", "--load", kept, long)
    assert result.exit_code == 1
    assert f"{long}:30001 has no |||" in result.stderr
    assert result.stdout == "0-0 1-1\n" * 30_000


# what else is written
def test_output_goes_to_a_file(corpus: Path, tmp_path: Path) -> None:
    out, kept = tmp_path / "out.txt", tmp_path / "kept"
    wanted = done("align", corpus, "--save", kept).stdout
    assert done("align", corpus, "--output", out).stdout == ""
    assert out.read_text() == wanted
    assert done("align", "--load", kept, corpus, "--output", out).stdout == ""
    assert out.read_text() == wanted


def test_lines_survive_a_model_that_cannot_be_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise StoreError("the disk is full", "make room")

    wanted = done("align", corpus).stdout
    monkeypatch.setattr(store, "write", full)
    result = run("align", corpus, "--save", tmp_path / "kept")
    assert result.exit_code == 1
    assert "the disk is full" in result.stderr
    assert result.stdout == wanted


@pytest.mark.parametrize("args", [(), ("-m", "ibm2")])
def test_dictionary_out(corpus: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    out = tmp_path / "words.tsv"
    done("align", corpus, *args, "--dictionary-out", out, "--min-prob", ".05")
    model: Any = (IBM2() if args else Aligner()).fit(PAIRS)
    way = getattr(model, "forward_", model)
    wanted = [
        f"{word}\t{other}\t{p:.6g}"
        for word in way.source_words_
        for other, p in way.translations(word, 100)
        if p >= 0.05
    ]
    assert out.read_text().splitlines() == wanted


def test_dictionary_out_of_the_other_direction(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "words.tsv"
    done("align", corpus, "-m", "ibm1", "-r", "-p", out)
    model = IBM1().fit(FLIPPED)
    source, target, p = out.read_text().splitlines()[0].split("\t")
    assert dict(model.translations(target))[source] == pytest.approx(float(p), rel=1e-5)
    assert (source[0], target[0]) == ("S", "T")


@pytest.mark.parametrize("args", [(), ("-m", "hmm", "-r")])
def test_phrases(corpus: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    out, kept = tmp_path / "phrases.txt", tmp_path / "kept"
    result = done("align", corpus, *args, "--phrases", out, "--max-phrase", "3", "--save", kept)
    table = phrase_table(PAIRS, read_links(io.StringIO(result.stdout)), 3)
    assert out.read_text().splitlines() == list(table.lines())
    out.unlink()
    again = ("--load", kept, corpus, "--phrases", out, "--max-phrase", "3", *args[2:])
    done("align", *again)
    assert out.read_text().splitlines() == list(table.lines())


@pytest.mark.parametrize("args", [(), ("-m", "hmm", "-r")])
def test_page_and_picture(tmp_path: Path, args: tuple[str, ...]) -> None:
    page, gold, kept = (tmp_path / name for name in ("page.html", "gold", "kept"))
    gold.write_text("0-0 1-1\n1-1 0?0\n")
    wanted = ("--html", page, "--gold", gold, "--show", "2")
    result = done("align", *args, *wanted, "--save", kept, stdin=TINY)
    assert all(word in page.read_text(encoding="utf-8") for word in ("haus", "house"))
    assert "the [█]" in result.stderr
    assert "buch" in result.stderr
    page.unlink()
    again = done("align", "--load", kept, *args[2:], *wanted, stdin=TINY)
    assert reported(again) == reported(result)
    assert page.is_file()


@pytest.mark.parametrize("more", [(), ("-m", "ibm1", "-r"), ("-m", "gibbs", "-I", "2")])
def test_the_summary_says_what_was_learned(
    corpus: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    kept = tmp_path / "kept"
    said = done("align", corpus, *more, "--save", kept).stderr.splitlines()[-1]
    n_words = sum(len(f"{e} {f}".split()) for e, f in PAIRS)
    steps = 2 if "gibbs" in more else 5
    learned = f"{len(PAIRS)} pairs · {n_words} words · {steps} steps · "
    assert said.startswith(f"softcount align: {learned}")
    assert f" · model in {kept} · " in said
    assert ("perplexity" in said) == ("gibbs" not in more)
    assert done("align", "--load", kept, corpus).stderr.startswith("softcount align: ")


def test_silence_and_verbosity(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(done("align", corpus).stderr.splitlines()) == 1
    told = done("align", corpus, "--verbose", "-I", "3").stderr.splitlines()
    assert sum(line.startswith("# about ") for line in told) == 1
    said = [line for line in told if line.startswith("step ")]
    model = Aligner(learner=sc.EM(max_iter=3)).fit(PAIRS)
    for line, state in zip(said, model.trace_, strict=False):
        assert f"step {state.step:>3} of 3   perplexity {state.perplexity:,.3f}" in line
        assert f"entropy {state.entropy:.3f} bits" in line
    assert len(said) == len(model.trace_)
    assert f"# {model.signature_}" in told
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    watch = align_learning.AlignmentProgress(0)
    watch(model.trace_[1])
    watch.end()
    assert f"perplexity {model.trace_[1].perplexity:,.3f}" in capsys.readouterr().err
