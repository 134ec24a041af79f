"""The command line in tests: run a command, and look at what it printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from softcount.cli.app import app

TECH = ["Apple released a new iPod", "Apple released the iPhone", "a new iPad by Apple"]
PETS = ["the cat chased a dog", "dog and cat and mouse", "my cat sleeps, the dog barks"]


def run(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


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


def shares_of(*args: str | Path, stdin: str | bytes | None = None) -> np.ndarray:
    """What ``topics --proba`` prints."""
    said = lines(done("topics", *args, "--proba", stdin=stdin))
    return np.array([line.split("\t") for line in said], dtype=float)
