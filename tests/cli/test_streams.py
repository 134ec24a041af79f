"""Streams that are full, closed or nobody's: all commands do the same, and lose no answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.world import CALLS, Call, contents

ROOT = Path(__file__).resolve().parents[2]
HELPER = ROOT / "tests" / "cli" / "forked_commands.py"
ROOM = "standard output cannot be written to: No space left on device"
PRINTING = [call for call in CALLS if not call.words.startswith(("grammar --treebank", "corpus b"))]
ONE_EACH = [*{call.words.split()[0]: call for call in reversed(PRINTING)}.values()]
SAVING = [call for call in PRINTING if call.written]
pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def results(specs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """What commands say and how they end."""
    asked, found = folder / "specs.json", folder / "results.json"
    asked.write_text(json.dumps(specs))
    told = subprocess.run(
        [sys.executable, str(HELPER), str(asked), str(found)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    answers: list[dict[str, Any]] = json.loads(found.read_text())
    return answers


def words_of(call: Call) -> list[str]:
    return [*call.words.format(*call.read).split(), *call.more]


def is_plain(told: str) -> bool:
    """Whether there is nothing that only a programmer can read."""
    return not any(one in told for one in ("Traceback", "Exception ignored", "Error:"))


@pytest.mark.slow
def test_all_commands_meet_streams_in_one_way(world: Path) -> None:
    streams: list[dict[str, str]] = [
        *({}, {"stdout": "full"}, {"stdout": "closed"}, {"stdout": "gone"}),
        *({"stderr": "closed"}, {"stderr": "full"}, {"stderr": "gone"}),
    ]
    every = [words_of(call) for call in ONE_EACH] + [["--help"], ["--version"], ["tag", "--help"]]
    specs = [{"words": words, **some} for words in every for some in streams]
    found = iter(results(specs, world))
    for words in every:
        usual, full, closed, gone, *others = (next(found) for _ in streams)
        assert usual["code"] == 0, (words, usual)
        assert usual["out"]
        assert all(is_plain(one["err"]) for one in (usual, full, closed, gone)), words
        assert full["code"] == 1, words
        assert full["err"].count(ROOM) == 1, (words, full)
        assert closed["code"] == 1, words
        assert closed["err"].count("cannot be written to: it is closed") == 1, (words, closed)
        assert gone["code"] == 0, (words, gone)
        assert usual["err"].startswith(gone["err"]), (words, gone)
        assert [one["out"] for one in others] == 3 * [usual["out"]], words
        # without room for what is told beside the answers, something is lost
        assert [one["code"] for one in others] == [0, int(usual["err"] != ""), 0], (words, others)


@pytest.mark.slow
def test_standard_input_that_is_closed(world: Path) -> None:
    others = ("similar", "parse", "story", "adapt", "corpus", "align -s", "rules")
    calls = {call.words.split()[0]: call for call in PRINTING if not call.words.startswith(others)}
    every = [[words[0], "-", *words[2:]] for words in map(words_of, calls.values())]
    every += [["parse", "grammar.m"], ["similar", "topics.m"], ["story", "coins.py", "-"]]
    every += [["corpus", "build", "-", "-o", "new"], ["align"], ["tag", "-k", "2"]]
    every += [["adapt", "--source", "books", "--target", "-"], ["rules", "rules", "-"]]
    specs = [{"words": words, "stdin": "closed"} for words in every]
    for words, one in zip(every, results(specs, world), strict=True):
        assert (one["code"], one["out"]) == (1, ""), (words, one)
        assert "standard input is closed" in one["err"], (words, one)
        assert is_plain(one["err"])


@pytest.mark.slow
@pytest.mark.parametrize(("stream", "code"), [("gone", 0), ("full", 1)])
def test_files_are_written_though_nobody_reads_the_answers(
    stream: str, code: int, world: Path
) -> None:
    calls = [call for call in ONE_EACH if call.written]
    specs = []
    for n, call in enumerate(calls):
        there = [word for option in call.written for word in (option, f"{n}{option}")]
        specs.append({"words": [*words_of(call), *there], "stdout": stream})
    found = results(specs, world)
    for one, spec in zip(found, specs, strict=True):
        to_file = spec["words"][0] == "align"  # by --output
        assert one["code"] == (0 if to_file else code), (spec, one)
        assert is_plain(one["err"]), one
    written = contents(world)
    assert all(written[f"{n}{option}"] for n, call in enumerate(calls) for option in call.written)


# as a shell does it
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("softcount cluster docs -k 2 > /dev/full", 1, ROOM),
        ("softcount cluster docs -k 2 >&-", 1, "standard output cannot be written to"),
        ("softcount cluster - -k 2 <&-", 1, "standard input is closed"),
        ("softcount cluster docs -k 2 >> docs", 1, "standard output goes to the file of FILE"),
        ("softcount cluster - -k 2 < docs >> docs", 1, "to the file of standard input"),
        ("softcount cluster docs -k 2 2>&- | wc -l", 0, ""),
        ("set -o pipefail; softcount cluster many -k 2 --max-iter 1 | head -1", 0, ""),
        ("set -o pipefail; softcount topics many -k 2 --max-iter 1 | head -1", 0, ""),
        ("softcount align pairs -m ibm1 --output >(cat >&2); sleep 0.2", 0, "0-0 1-1"),
    ],
)
def test_in_a_shell(command: str, code: int, said: str, world: Path) -> None:
    (world / "many").write_text("a cat\nthe dog\n" * 10_000)
    before = contents(world)
    result = subprocess.run(
        ["bash", "-c", command.replace("softcount", f"'{sys.executable}' -m softcount")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert is_plain(result.stderr)
    assert "wc" not in command or result.stdout.strip() == "4"
    assert "head" not in command or result.stdout.count("\n") == 1
    assert contents(world) == before


# answers come, whatever becomes of files
@pytest.mark.parametrize("call", SAVING, ids=lambda call: call.words)
def test_answers_come_though_nothing_can_be_written(call: Call, world: Path) -> None:
    usual = run(*words_of(call))
    assert usual.exit_code == 0, usual.stderr
    options = [one for one in call.written if (one, call.words[:5]) != ("--output", "align")]
    result = run(*words_of(call), *(word for one in options for word in (one, "/dev/full")))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == usual.stdout
    assert result.stderr.count("No space left on device") == result.stderr.count("hint:") > 0
    for one in options:
        alone = run(*words_of(call), one, "/dev/full")
        assert (alone.exit_code, alone.stdout) == (1, usual.stdout)
        assert alone.stderr.count("No space left on device") == 1


@pytest.mark.parametrize("call", SAVING, ids=lambda call: call.words)
def test_answers_come_though_the_disk_is_full(
    call: Call, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    usual = run(*words_of(call)).stdout
    options = [one for one in call.written if (one, call.words[:5]) != ("--output", "align")]
    monkeypatch.setattr(os, "replace", fail)
    result = run(*words_of(call), *(word for one in options for word in (one, f"new{one}")))
    assert (result.exit_code, result.stdout) == (1, usual)
    assert "No space left on device" in result.stderr
    assert not [one for one in contents(world) if "new" in one]


@pytest.mark.parametrize("call", SAVING, ids=lambda call: call.words)
def test_what_else_is_asked_for_is_written(call: Call, world: Path) -> None:
    for fails in call.written:
        others = [option for option in call.written if option != fails]
        given = [word for one in others for word in (one, f"new{one}")]
        assert run(*words_of(call), *given, fails, "/dev/full").exit_code == 1
        for one in others:
            assert Path(f"new{one}").stat().st_size
            Path(f"new{one}").unlink()


def test_what_is_wrong_with_gold_does_not_lose_the_model(world: Path) -> None:
    """It can only be seen after the work, and must not take the work with it."""
    Path("gold").write_text("-1\n1\n-1\n0\n")
    Path("points").write_text("1\n\n2\n\n")
    given = ("cluster", "points", "--model", "kmeans", "-k", "2", "--gold", "gold")
    result = run(*given, "--save", "kept", "--html", "page")
    assert result.exit_code == 1
    assert result.stderr.count("only blank lines have a known class") == 1
    assert Path("kept").stat().st_size


def test_characters_that_the_encoding_lacks_are_spelled_out(tmp_path: Path) -> None:
    train, texts = tmp_path / "train.tsv", tmp_path / "texts.txt"
    train.write_text("é\tgood fine\nb\tbad awful\n", encoding="utf-8")
    texts.write_text("fine\nawful\n", encoding="utf-8")
    paths = os.pathsep.join(filter(None, ["src", os.environ.get("PYTHONPATH")]))
    told = subprocess.run(
        [sys.executable, "-m", "softcount", "classify", texts, "--train", train],
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout == b"\\xe9\nb\n"
