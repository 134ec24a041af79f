"""A terminal is never silent for long, and what is shown meanwhile goes before answers come."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from softcount.cli.status import ERASE, Terminal

SHOWN = """
import sys, time
from softcount.cli.status import sign_of_life
from softcount.cli.streams import managed_streams
from softcount.kernels import compiling
sys.argv = ["softcount", "align"]
with managed_streams(), sign_of_life():
    {}
"""


def said(code: str, *, of_stdout: bool = True) -> str:
    """What a terminal gets."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", SHOWN.format(code)]
    stdout = theirs if of_stdout else subprocess.DEVNULL
    subprocess.run(command, stdout=stdout, stderr=theirs, env=os.environ, check=True)
    os.close(theirs)
    found = b""
    try:
        while block := os.read(ours, 1 << 16):
            found += block
    except OSError:  # the terminal is closed
        pass
    os.close(ours)
    return found.decode()


def visible(text: str) -> str:
    """What is left on the terminal in the end."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(re.split(r"\r\x1b\[K", line)[-1] for line in lines)


def test_silence_is_broken() -> None:
    found = said("time.sleep(2.2)")
    assert len(re.findall("softcount align … [12] s", found)) >= 2
    assert visible(found) == ""


def test_compiling_is_announced() -> None:
    found = said("compiling.begin('forward'); time.sleep(1.2); compiling.end()")
    assert "preparing kernels for this machine, once" in found
    assert visible(found) == ""


def test_answers_come_after_it() -> None:
    found = said("time.sleep(1.0); print('a'); time.sleep(1.0); print('b')")
    assert "softcount align … 1 s" in found
    assert visible(found) == "a\nb\n"


def test_a_line_that_is_not_complete_is_not_erased() -> None:
    found = said("sys.stdout.write('a'); sys.stdout.flush(); time.sleep(1.5); print('b')")
    assert visible(found) == "ab\n"


def test_nothing_comes_between_what_somebody_types() -> None:
    code = "from softcount.cli.status import Terminal; Terminal.is_input = True; time.sleep(1.5)"
    assert said(code) == ""


def test_a_pipe_gets_nothing() -> None:
    command = [sys.executable, "-c", SHOWN.format("time.sleep(1.5)")]
    done = subprocess.run(command, env=os.environ, check=True, capture_output=True)
    assert not done.stderr


@pytest.mark.parametrize(
    ("written", "before", "status", "is_in_line"),
    [
        (f"{ERASE}step 1", "", True, False),
        ("answer\n", ERASE, False, False),
        (f"{ERASE}step 2", "", True, False),
        (ERASE, "", False, False),
        ("an", "", False, True),
        ("swer\n", "", False, False),
    ],
)
def test_what_a_terminal_shows(written: str, before: str, status: bool, is_in_line: bool) -> None:
    """One after the other, in the order of the list."""
    assert Terminal.prepare(written.encode()) == before.encode()
    assert (Terminal.status, Terminal.is_in_line) == (status, is_in_line)
