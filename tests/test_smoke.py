"""Everything works at all: every estimator and every command, once.

Short enough for every run of the tests, and for a run with the oldest versions of the libraries
that the package claims to work with (``make oldest``). Says nothing about how good the answers are.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from scipy import sparse

import softcount as sc
from softcount.cli.app import COMMANDS as TABLE
from softcount.cli.app import app
from tests.commands import done, run
from tests.every_command import every_call
from tests.every_estimator import ESTIMATORS, said
from tests.oldest import oldest


def numbers_in(value: Any) -> list[Any]:
    """All arrays of numbers in a nested value."""
    if isinstance(value, dict):
        return [one for part in value.values() for one in numbers_in(part)]
    if isinstance(value, list | tuple):
        return [one for part in value for one in numbers_in(part)]
    if sparse.issparse(value):
        return [value.data]
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
    return [value] if is_array else []


def test_no_estimator_is_forgotten() -> None:
    at_the_top = [getattr(sc, name) for name in dir(sc)]
    namespaces = [one for one in at_the_top if inspect.ismodule(one)]
    public = at_the_top + [getattr(one, name) for one in namespaces for name in dir(one)]
    classes = {one.__name__ for one in public if inspect.isclass(one) and hasattr(one, "fit")}
    tried = {name.partition(",")[0] for name in ESTIMATORS}
    assert classes | {"Translator"} == tried  # which is given fitted models


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_an_estimator(name: str) -> None:
    found = said(name)
    assert found
    assert not any(np.isnan(numbers).any() for numbers in numbers_in(found))


def leaves(command: Any, name: str = "") -> dict[str, Any]:
    """Commands and those below them, by what is typed."""
    below = getattr(command, "commands", None)
    if below is None:
        return {name: command}
    return {
        called: one
        for part, inner in below.items()
        for called, one in leaves(inner, f"{name} {part}".strip()).items()
    }


COMMANDS = sorted(leaves(typer.main.get_command(app)))


def test_no_command_is_forgotten(tmp_path: Path) -> None:
    assert set(every_call(tmp_path)) == set(COMMANDS)


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other: some read what others have saved."""
    monkeypatch.chdir(tmp_path)
    for name, call in every_call(tmp_path).items():
        result = done(*call)
        assert result.stdout, name


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_table_of_commands_says_what_they_say_themselves(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    first = " ".join((command.help or "").split("\n\n")[0].split())
    assert TABLE[name].help == first


@pytest.mark.parametrize("name", ["", "corpus", *COMMANDS])
def test_help(name: str) -> None:
    result = done(*name.split(), "--help")
    assert result.stdout.startswith(f"Usage: softcount {name}".rstrip())
    assert "--help" in result.stdout


def test_wrong_options_are_refused() -> None:
    for given in (
        ("cluster", "--no-such-option"),
        ("no-such-command",),
        ("cluster", "x", "-k", "y"),
    ):
        result = run(*given)
        assert result.exit_code == 2
        assert "Usage:" in result.stderr


def test_a_process_of_its_own(tmp_path: Path) -> None:
    """As people call it: the entry point, and the real streams."""
    text = every_call(tmp_path)["cluster"][1]
    command = [sys.executable, "-m", "softcount", "cluster", str(text), "-k", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(Path(text).read_text().splitlines())


def test_every_library_has_an_oldest_version() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    pins = [oldest(one) for one in project["project"]["dependencies"]]
    assert {pin.split("==")[0] for pin in pins} >= {"numpy", "numba", "typer", "threadpoolctl"}


def test_a_model_is_saved_and_read(tmp_path: Path) -> None:
    texts = ["a b", "b c", "x y", "y z"]
    model = sc.MultinomialMixture(2).fit(texts)
    model.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert (again.predict_proba(texts) == model.predict_proba(texts)).all()
