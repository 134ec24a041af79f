"""The command ``softcount``. Heavy modules are imported only when they are needed."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""


def main() -> None:
    """Run the command line.

    The first Ctrl-C ends learning early: the command still saves and prints its results, but its
    exit code says that it was interrupted. The second one exits at once, without waiting for
    threads that are executing compiled code.
    """
    from softcount.cli.status import sign_of_life
    from softcount.cli.streams import managed_streams
    from softcount.core import interrupt

    try:
        with managed_streams(), sign_of_life():
            from softcount.cli.app import app

            app()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        if not stop.code and interrupt.times_asked():
            stop.code = INTERRUPTED
        raise
