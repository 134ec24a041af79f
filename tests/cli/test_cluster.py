"""``--processes``, ``--cluster`` and ``--cluster-folder``: the same answers from anywhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest
import typer

from softcount.cli.app import COMMANDS
from softcount.cli.frame import FitProgress, list_options
from softcount.cli.options import ENGINE_OPTIONS, EngineOptions, LearnerOptions
from softcount.engines import Dask
from softcount.engines.cluster import WaitingWarning
from softcount.engines.progress import tell
from softcount.mixture import MultinomialMixture
from tests.commands import done, refused, run
from tests.engines.programs import Programs, environment
from tests.engines.shards import SMALL_CUTS

pytest.importorskip("distributed")


@pytest.fixture
def here(texts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(texts.parent)
    return texts.parent


@pytest.fixture
def small_cuts() -> Iterator[None]:
    patches = [mock.patch(limit, value) for limit, value in SMALL_CUTS.items()]
    for patch in patches:
        patch.start()
    yield
    for patch in patches:
        patch.stop()


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as started:
        started.start_scheduler()
        started.start_worker()
        yield started


def test_every_command_that_learns_has_these_options() -> None:
    learning = 0
    for entry in COMMANDS.values():
        module, name = entry.place.split(":")
        command = getattr(import_module(module), name)
        if isinstance(command, type) and issubclass(command, LearnerOptions):
            assert set(ENGINE_OPTIONS) <= set(list_options(command))
            learning += 1
    assert learning == 13
    assert "--cluster-folder" in done("resume", "--help").stdout


def test_the_same_answers_from_anywhere(
    here: Path, small_cuts: None, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = here / "sentences.txt"
    sentences.write_text("the cat sat here\na dog ran\nthe dog sat\n" * 40)
    shared = here / "a shared folder"
    shared.mkdir()
    call = ("tag", sentences, "-k", "3", "--max-iter", "5")
    wanted = done(*call).stdout
    assert done(*call, "--processes", "2").stdout == wanted
    remote = ("--cluster", programs.address, "--cluster-folder", "a shared folder")
    with mock.patch.object(Dask, "open", autospec=True, side_effect=Dask.open) as opened:
        assert done(*call, *remote, "--folder", "run", "--save", "my.softcount").stdout == wanted
        assert opened.call_count >= 2  # learning, and tagging
        opened.reset_mock()
        assert done("tag", "--load", "my.softcount", sentences, *remote).stdout == wanted
        assert opened.call_count == 1
        opened.reset_mock()
        # what was learned on a cluster goes on elsewhere, and the other way round
        assert done("resume", "run", "--threads", "2").stdout == wanted
        assert opened.call_count == 0
        assert done("resume", "run").stdout == wanted
        assert opened.call_count >= 1
    done(*call, "--folder", "other")
    monkeypatch.chdir(here.parent)
    moved = ("--cluster", programs.address, "--cluster-folder", "shared")
    (here.parent / "shared").mkdir()
    shared.rmdir()  # there is nothing left in it
    assert done("resume", here / "other", *moved).stdout == wanted
    assert not os.listdir(here.parent / "shared")


def test_what_is_refused(here: Path) -> None:
    for options, words in (
        (("--cluster", "somewhere"), "write the address"),
        (("--cluster", "0"), "write the address"),
        (("--cluster", "tcp://127.0.0.1:9"), "needs --cluster-folder"),
        (("--cluster-folder", "."), "needs --cluster"),
        (("--cluster", "2", "--threads", "2"), "does not go with --threads"),
        (("--processes", "2", "--threads", "2"), "does not go with --threads"),
        (("--cluster", "2", "--processes", "2"), "work is done in one place"),
        (("--cluster", "2", "--load", "texts.txt"), "fitted already"),
    ):
        result = run("cluster", "texts.txt", *options)
        assert result.exit_code == 2
        assert words in " ".join(result.stderr.split())
    remote = ("--cluster", "tcp://127.0.0.1:9", "--cluster-folder")
    refused("cluster", "texts.txt", "-k", "2", *remote, "nowhere", message="does not exist")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        refused("cluster", "texts.txt", "-k", "2", *remote, ".", message="there is no scheduler")


def test_a_cluster_without_workers_says_so_at_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = EngineOptions.make_engine
    monkeypatch.setattr(
        EngineOptions, "make_engine", lambda options: replace(make(options), patience=3.0)
    )
    with Programs() as programs:
        programs.start_scheduler()
        remote = ("--cluster", programs.address, "--cluster-folder", here)
        result = run("cluster", "texts.txt", "-k", "2", *remote)
        assert result.exit_code == 1
        warning, error, hint = result.stderr.splitlines()
        assert "has no workers: waiting for some, up to 3 seconds" in warning
        assert "has had no workers for 3 seconds" in error
        assert "dask worker" in hint


def test_warnings_are_shown_while_it_learns(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(*_: object, **__: object) -> None:
        warnings.warn("there are none", WaitingWarning, stacklevel=1)
        raise typer.Exit(3)  # whatever comes after it

    monkeypatch.setattr(MultinomialMixture, "fit", fit)
    result = run("cluster", "texts.txt", "-k", "2")
    assert result.exit_code == 3
    assert result.stderr == "softcount: warning: there are none\n"


def test_the_status_line_shows_the_workers(capsys: pytest.CaptureFixture[str]) -> None:
    progress = FitProgress(0)
    progress.wanted = True
    with progress:
        tell(3, 8, 2)
        tell(4, 8, 2)  # too soon to be worth a look
        tell(0, 8, 0)
    tell(5, 8, 2)  # nobody listens any more
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown == ["", "3/8 shards, 2 workers", "no workers: waiting for some", ""]


def test_a_terminal_sees_steps_shards_and_time_left(here: Path) -> None:
    """Standard error is a terminal; piped, it is quiet."""
    call = (sys.executable, "-m", "softcount", "cluster", "texts.txt", "-k", "2", "--init")
    call += ("random", "--tol", "0", "--max-iter", "30", "--cluster", "1")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        call, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs, cwd=here
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # its end
        while part := os.read(ours, 1 << 16):
            said += part
    assert process.wait() == 0
    os.close(ours)
    assert re.search(r"1/1 shards, 1 worker  \d+/30  ≤ \d+ s left  objective ", said.decode())
    piped = subprocess.run(call, env=environment(), capture_output=True, cwd=here, text=True)
    assert "shards," not in piped.stderr
    assert "step " not in piped.stderr.partition("converged")[0]
