"""``softcount align``: nothing is overwritten, nothing is taken for what it is not."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import softcount as sc
from tests.align.pairs import PAIRS, TINY, write_pairs
from tests.commands import done, refused
from tests.core.test_import import modules_after

WRITTEN = ("--output", "--dictionary-out", "--phrases", "--html", "--save")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_pairs(tmp_path)


@pytest.mark.parametrize("option", WRITTEN)
def test_what_is_read_is_not_overwritten(option: str, corpus: Path, tmp_path: Path) -> None:
    known, links, gold, kept = (tmp_path / name for name in ("known", "links", "gold", "kept"))
    known.write_text("S1\tT1\n")
    links.write_text("\n" * 40)
    gold.write_text("0-0\n")
    done("align", corpus, "--save", kept)
    read = {"--dictionary": known, "--links": links, "--gold": gold}
    before = {path: path.read_bytes() for path in (corpus, kept, *read.values())}
    given = list(itertools.chain(*read.items()))
    other = corpus.parent / "." / corpus.name  # the same file by another name
    refused("align", corpus, option, other, message=f"{option} {other}: this is the file of")
    for path in read.values():
        refused("align", corpus, *given, option, path, message=f"{option} {path}: this is the file")
    if option != "--save":
        refused("align", "--load", kept, corpus, option, kept, message="the file of --load, too")
    assert {path: path.read_bytes() for path in before} == before


def test_a_sides_file_is_not_overwritten(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    source.write_text("a\n")
    target.write_text("x\n")
    for path in (source, target):
        refused("align", "-s", source, "-t", target, "--output", path, message="this is the file")
    assert (source.read_text(), target.read_text()) == ("a\n", "x\n")


@pytest.mark.parametrize(("one", "other"), [*itertools.combinations(WRITTEN, 2)])
def test_nothing_is_written_twice(one: str, other: str, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused("align", corpus, one, out, other, out, message=f"this is the file of {one}, too")
    assert not out.exists()


@pytest.mark.parametrize("option", WRITTEN)
def test_a_dash_is_no_file(option: str, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus.parent)
    refused("align", corpus, option, "-", message=f"{option} -: this cannot go to standard output")
    assert not Path("-").exists()


def test_direction_of_a_saved_model(corpus: Path, tmp_path: Path) -> None:
    """Whoever loads a model need not know how it was learned, and cannot get it wrong."""
    there, back, words = tmp_path / "there", tmp_path / "back", tmp_path / "words"
    done("align", corpus, "-m", "ibm1", "--save", there)
    message = f"{there} was trained without -r"
    refused("align", "--load", there, "-r", corpus, message=message)
    done("align", corpus, "-m", "ibm1", "-r", "--save", back, "-p", words)
    said = words.read_bytes()
    assert said.startswith(b"S")
    done("align", "--load", back, "-p", words, corpus)
    assert words.read_bytes() == said


def test_a_saved_sampler_aligns_by_its_means(corpus: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done("align", corpus, "-m", "gibbs", "--seed", "3", "--save", kept)
    found = done("align", "--load", kept, corpus).stdout
    assert found.encode() == sc.load(kept).links(sc.text.read_bitext(corpus))[0].text()
    assert found.count("\n") == len(PAIRS)


def test_scikit_learn_is_not_waited_for() -> None:
    """It takes longer to load than a small corpus to align."""
    code = f"""
import io
sys.argv = ['softcount', 'align']
sys.stdin = io.TextIOWrapper(io.BytesIO({TINY.encode()!r}))
import softcount.cli
try: softcount.cli.main()
except SystemExit: pass
"""
    loaded = modules_after(code)
    assert "softcount.align.estimators" in loaded
    assert "sklearn" not in loaded
