"""``softcount warm-up``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from softcount.cli.frame import Command
from softcount.cli.options import Argument, Learning, Output
from softcount.cli.rehearsals import REHEARSALS
from softcount.cli.status import StatusLine, complain
from softcount.cli.targets import PLAIN
from softcount.core.errors import SoftcountError


@dataclass(frozen=True)
class Rehearsal:
    """What became of a command.

    ``compiled``  number of kernels that were compiled
    ``lost``      number of kernels whose code could not be kept
    ``seconds``   time spent compiling
    """

    command: str
    compiled: int
    lost: int
    seconds: float
    failed: tuple[str, ...] = ()


class WarmUp(Command):
    """Compile what commands need, so that their first run need not.

    Kernels are compiled where they did not come with the package, and kept in the user's cache: for
    images, classrooms, and checkouts of the source. Each command is run on a few lines of text,
    with its most important options; several commands at a time.

    \b
    softcount warm-up
    softcount warm-up align tag
    """

    commands: Annotated[
        list[str] | None,
        Argument("Commands; by default all.", metavar="[COMMAND]...", file=PLAIN),
    ] = None
    processes: Annotated[
        int | None,
        Learning("How many commands to compile at a time; by default one per processor.", least=1),
    ] = None
    json: Annotated[bool, Output("Print one JSON object per line.")] = False

    def check(self) -> None:
        for name in self.commands or ():
            if name not in REHEARSALS:
                raise typer.BadParameter(f"{name}: choose from {', '.join(REHEARSALS)}")

    def run(self) -> None:
        from softcount.kernels.threads import usable_cpus

        names = list(dict.fromkeys(self.commands or REHEARSALS))
        processes = min(self.processes or usable_cpus(), len(names))
        found, began = list[Rehearsal](), time.monotonic()
        with StatusLine() as status, ThreadPoolExecutor(processes) as pool:
            waiting = [pool.submit(rehearse_apart, name) for name in names]
            while not all(future.done() for future in waiting):
                ready = sum(future.done() for future in waiting)
                spent = time.monotonic() - began
                status.show(
                    f"preparing kernels for this machine, once … {spent:.0f} s, "
                    f"{ready} of {len(names)} commands ready"
                )
                time.sleep(0.2)
            found = [future.result() for future in waiting]
        self.notes += [
            f"{len(found)} commands",
            f"{sum(one.compiled for one in found)} kernels compiled",
        ]
        if not self.json:
            typer.echo("command\tkernels\tseconds")
        for one in found:
            line = f"{one.command}\t{one.compiled}\t{one.seconds:.1f}"
            typer.echo(json.dumps(asdict(one)) if self.json else line)
        for fault in (fault for one in found for fault in one.failed):
            complain(f"softcount: warning: {fault}")
        if any(one.lost for one in found):
            raise SoftcountError(
                "compiled kernels cannot be kept: no folder for them can be written to",
                "set NUMBA_CACHE_DIR to a folder of your own",
            )


def rehearse_apart(command: str) -> Rehearsal:
    """Rehearse a command in a process of its own."""
    code = f"from softcount.cli.warm_up import rehearse_here; rehearse_here({command!r})"
    # -P: what lies in the current folder is not imported
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        return Rehearsal(command, 0, 0, 0.0, (f"{command}: {done.stderr[-500:]}",))
    given = json.loads(done.stdout.splitlines()[-1])
    return Rehearsal(**{**given, "failed": tuple(given["failed"])})


def rehearse_here(command: str) -> None:
    """Rehearse a command, and print what became of it."""
    from softcount.cli.rehearsals import rehearse
    from softcount.kernels import compiling, jit

    with tempfile.TemporaryDirectory() as folder:
        failed = rehearse(command, Path(folder))
    now = compiling.progress()
    found = Rehearsal(command, now.ready, jit.n_lost, round(now.seconds, 1), tuple(failed))
    print(json.dumps(asdict(found)))
