"""The command line in tests: run a command, and look at what it printed."""

from __future__ import annotations

from pathlib import Path

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


def lines(result: Result) -> list[str]:
    assert result.stdout.endswith("\n")
    return result.stdout.removesuffix("\n").split("\n")
