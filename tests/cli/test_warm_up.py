"""``softcount warm-up`` runs every command on a little data, and says what it has compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from softcount.cli.app import COMMANDS
from softcount.cli.rehearsals import COMPILES_NOTHING, REHEARSALS, rehearse
from tests.commands import done, run


def test_every_command_is_rehearsed() -> None:
    assert set(REHEARSALS) | COMPILES_NOTHING == set(COMMANDS)
    assert not set(REHEARSALS) & COMPILES_NOTHING


@pytest.mark.slow
@pytest.mark.parametrize("command", REHEARSALS)
def test_a_rehearsal(command: str, tmp_path: Path) -> None:
    here = Path.cwd()
    assert rehearse(command, tmp_path) == []
    assert Path.cwd() == here


def test_a_rehearsal_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REHEARSALS, "cluster", "cluster none.txt\ncluster texts.txt -k none")
    first, second = rehearse("cluster", tmp_path)
    assert "none.txt" in first
    assert "-k" in second


def test_what_it_says() -> None:
    result = done("warm-up", "annotators", "--json")
    (found,) = map(json.loads, result.stdout.splitlines())
    assert found["command"] == "annotators"
    assert (found["failed"], found["lost"]) == ([], 0)


def test_commands_that_are_none() -> None:
    result = run("warm-up", "show")
    assert result.exit_code == 2
    assert "choose from" in result.stderr


def test_what_is_warm_does_not_compile(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "softcount", "warm-up", "classify", "--json"]
    # with this setting nothing that came with the package is used
    here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "1"}

    def compiled() -> int:
        done = subprocess.run(command, env=here, capture_output=True, text=True, check=True)
        return int(json.loads(done.stdout)["compiled"])

    assert compiled() > 0
    assert compiled() == 0
