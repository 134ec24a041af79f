"""One line on stderr that says how learning goes; silent unless someone is watching."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numba and scipy come with these, and --help does without
    from softcount.estimate import Estimate
    from softcount.types import State


class Progress:
    """Call it with every state; ``end()`` clears the line."""

    def __init__(self, items: int) -> None:
        self.items = items
        self.wanted = sys.stderr.isatty()

    def begin(self, needed: Estimate) -> None:
        """Before the first step, what is to come."""
        if self.wanted:
            sys.stderr.write(f"\r\x1b[K{needed}")
            sys.stderr.flush()

    def __call__(self, state: State) -> None:
        if self.wanted:
            sys.stderr.write(f"\r\x1b[K{progress_line(state, self.items)}")
            sys.stderr.flush()

    def end(self) -> None:
        if self.wanted:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def progress_line(state: State, items: int) -> str:
    """What the line says."""
    speed = f"   {items / state.seconds:,.0f} items/s" if state.seconds > 0 else ""
    change = f"{state.change:.1e}" if state.step else "–"  # there is none at the start
    figures = f"objective {state.objective:,.4f}   change {change}"
    return f"step {state.step:>4}   {figures}{speed}"
