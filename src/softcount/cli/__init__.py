"""The command ``softcount``: nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""


def main() -> None:
    """Run the command line.

    A command that the first Ctrl-C made stop learning early has saved and answered all the same;
    its exit code still says that it was interrupted. The second one leaves at once: threads in the
    middle of compiled code are not waited for.
    """
    from softcount.cli.streams import managed_streams
    from softcount.core import interrupt

    try:
        with managed_streams():
            from softcount.cli.app import app

            app()
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        if not leaving.code and interrupt.times_asked():
            leaving.code = INTERRUPTED
        raise
