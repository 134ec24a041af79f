"""Commands with streams that are full, closed or nobody's, one process each, as a shell runs them.

A program of its own: ``python forked_commands.py SPECS.json RESULTS.json``. To start Python and
load all kernels for each of a hundred commands would take minutes; here they are forked from a
process that has done so. Streams are set up as Python does when it starts, and each child ends as
Python ends, with all that it may have to say of streams then.
"""

from __future__ import annotations

import gc
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

OUT, ERR = "told.out", "told.err"


def warm_up(specs: list[dict[str, Any]]) -> None:
    """Load everything that the commands need, in one thread: children inherit no others."""
    from typer.testing import CliRunner

    from softcount.cli.app import app

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    for words in {tuple(spec["words"]) for spec in specs}:
        CliRunner().invoke(app, [*words])


def result_of(spec: dict[str, Any]) -> dict[str, Any]:
    process = os.fork()
    if process == 0:
        arrange(spec)
        sys.argv = ["softcount", *spec["words"]]
        from softcount.cli import main

        main()  # raises SystemExit, and so leaves this program as any other is left
    _, status = os.waitpid(process, 0)
    out, err = (Path(name).read_bytes().decode() for name in (OUT, ERR))
    return {"code": os.waitstatus_to_exitcode(status), "out": out, "err": err}


def arrange(spec: dict[str, Any]) -> None:
    """Streams 0, 1 and 2: closed, full, gone (a pipe that nobody reads), or a file."""
    usual = {"stdin": os.devnull, "stdout": OUT, "stderr": ERR}
    for number, (name, file) in enumerate(usual.items()):
        if number:
            Path(file).write_bytes(b"")
        opened = _opened(spec.get(name, ""), file, number)
        if opened is None:
            os.close(number)
            setattr(sys, name, None)
            continue
        os.dup2(opened, number)
        os.close(opened)
        if not number:
            raw: Any = io.BufferedReader(io.FileIO(0, "r", closefd=False))
        else:
            raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        errors = "backslashreplace" if number == 2 else "strict"
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", errors, line_buffering=number == 2))


def _opened(kind: str, file: str, number: int) -> int | None:
    if kind == "closed":
        return None
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "gone":
        read, write = os.pipe()
        os.close(read)
        return write
    return os.open(kind or file, os.O_RDWR)


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text())
    warm_up(asked)
    gc.freeze()  # what is there stays, and no child need look at it
    found = [result_of(spec) for spec in asked]
    Path(sys.argv[2]).write_text(json.dumps(found))
