"""The command line in tests: run a command, and look at what it printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from softcount.cli.app import app

TECH = ["Apple released a new iPod", "Apple released the iPhone", "a new iPad by Apple"]
PETS = ["the cat chased a dog", "dog and cat and mouse", "my cat sleeps, the dog barks"]

ODD_LINES = [
    b"a b\r\n\r\nc d\r\n",
    b"a b\n\n\n???\nc d",
    b"\xef\xbb\xbfa b\nc\xe2\x80\xa8d\x0bc\n",
    "नमस्ते दुनिया\n你好 世界\n🙂 🙂\n".encode(),
    b"one line\n",
]
"""Files whose lines are easily miscounted."""


def n_lines(raw: bytes) -> int:
    """How many lines a file has; the last need not end."""
    return raw.count(b"\n") + (not raw.endswith(b"\n"))


def run(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return _runner().invoke(app, [str(arg) for arg in args], input=stdin)


def _runner() -> CliRunner:
    """One that keeps stdout and stderr apart, which had to be asked for before click 8.2."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def done(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr or result.exception
    return result


def refused(*args: str | Path, message: str, stdin: str | bytes | None = None) -> None:
    """The command says what is wrong and what to do, and nothing else."""
    result = run(*args, stdin=stdin)
    assert result.exit_code == 1, result.exception
    assert message in result.stderr
    assert "hint:" in result.stderr
    assert result.stdout == ""


def lines(result: Result) -> list[str]:
    assert result.stdout.endswith("\n")
    return result.stdout.removesuffix("\n").split("\n")


def reported(result: Result) -> str:
    """What a command that succeeds says on stderr before the line at the end."""
    *said, last = result.stderr.splitlines(keepends=True)
    assert last.startswith("softcount ")
    assert " s" in last
    return "".join(said)


def shares_of(*args: str | Path, stdin: str | bytes | None = None) -> np.ndarray:
    """What ``topics --proba`` prints."""
    said = lines(done("topics", *args, "--proba", stdin=stdin))
    return np.array([line.split("\t") for line in said], dtype=float)


def file_of(path: Path, text: str) -> Path:
    """A file that has this text."""
    path.write_text(text)
    return path
