"""What every command says on stderr: one line at the end, more if asked for, nothing if not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from softcount.cli.app import COMMANDS
from tests.commands import done, run
from tests.every_command import every_call

USUAL, QUIET, VERBOSE = (), ("--quiet",), ("--verbose",)
REPORT = {"align", "translate", "parse", "similar", "select", "story", "show", "demo", "warm-up"}
REPORT |= {"corpus build", "corpus info"}
"""Commands that report nothing on stderr but the line at the end."""
VARIES = {"show", "warm-up"}
"""Commands that print times."""

Said = dict[str, dict[tuple[str, ...], Result]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Said]:
    """Every command in each of the ways, in folders of their own, with the same names of files."""
    found: Said = {}
    with pytest.MonkeyPatch.context() as patch:
        for how in (USUAL, QUIET, VERBOSE):
            patch.chdir(tmp_path_factory.mktemp("said"))
            for name, call in every_call(Path()).items():
                found.setdefault(name, {})[how] = done(*call, *how)
        yield found


def test_all_are_there(said: Said) -> None:
    assert {name.split()[0] for name in said} == set(COMMANDS)


def test_one_line_at_the_end(said: Said) -> None:
    for name, results in said.items():
        called = "cluster" if name == "resume" else name  # it runs that command
        for how in (USUAL, VERBOSE):
            told = results[how].stderr.splitlines()
            lines = [n for n, line in enumerate(told) if line.startswith(f"softcount {called}: ")]
            assert lines == [len(told) - 1], (name, told)
            assert re.search(r"[:·] \d+\.\d s( · and .* to prepare kernels, once)?$", told[-1])


def test_a_pipe_gets_no_progress(said: Said) -> None:
    for name, results in said.items():
        told = results[USUAL].stderr
        assert not re.search("[\r\x1b]|items/s|left", told), name
        assert told.count("\n") == 1 or name not in REPORT, told


def test_quiet(said: Said) -> None:
    assert {name: results[QUIET].stderr for name, results in said.items()} == dict.fromkeys(
        said, ""
    )


def test_verbose(said: Said) -> None:
    for name, results in said.items():
        usual, verbose = (results[how].stderr.splitlines() for how in (USUAL, VERBOSE))
        assert len(verbose) > len(usual), name
        assert "CPU s" in verbose[-2], name
    for name in ("cluster", "topics", "tag", "grammar", "align", "story", "translate"):
        assert re.search(r"^step +1 ", said[name][VERBOSE].stderr, re.MULTILINE), name


def test_answers_are_the_same(said: Said) -> None:
    for name in said.keys() - VARIES:
        answers = {result.stdout for result in said[name].values()}
        assert len(answers) == 1, name


def test_quiet_keeps_errors_and_warnings(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n\n")
    refused = run("cluster", texts, "--quiet")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("softcount: ")
    assert "hint:" in refused.stderr
    few = tmp_path / "few.tsv"
    few.write_text("a\tgood plot\nb\tbad page\n\tgood page\n")
    seeds = tmp_path / "seeds.tsv"
    seeds.write_text("a\tnowhere\nb\tbad\n")
    warned = done("bootstrap", few, "--seeds", seeds, "--quiet")
    assert warned.stderr.startswith("softcount: warning: ")
    assert warned.stderr.count("\n") == 1


def test_an_error_ends_without_that_line(tmp_path: Path) -> None:
    result = run("cluster", tmp_path / "none.txt")
    assert result.exit_code
    assert "softcount cluster:" not in result.stderr
