"""What a fit is doing, for whoever wants to show it: phases with names, steps, and the log.

`phase` names what is done inside a block. Whoever listens (`heard_by`) is told, and so is Python's
log ``softcount``: phases and how a fit ended at level INFO, and each step at level DEBUG, in
``softcount.steps``. `Display` is what ``verbose=1`` shows.
"""

from __future__ import annotations

import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from softcount.core.estimate import Estimate
    from softcount.core.types import State
    from softcount.core.verdict import Verdict

LOG = logging.getLogger("softcount")
STEPS = logging.getLogger("softcount.steps")

BAR = 8
"""Width of a bar."""
RECENT = 10
"""Steps whose mean time says how long the others will take."""
PAUSE = 0.1
"""Seconds between two looks at a line that is overwritten."""

Listener = Callable[[str], object]
"""Called with the name of the phase that begins, or goes on; empty: there is none any more."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_phase: ContextVar[str] = ContextVar("phase", default="")


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Name what is done inside the block.

    >>> said = []
    >>> with heard_by(said.append), phase("fitting"), phase("short runs"):
    ...     pass
    >>> said
    ['fitting', 'short runs', 'fitting', '']
    """
    before, listener = _phase.get(), _listener.get()
    LOG.info("%s", name)
    _phase.set(name)
    if listener is not None:
        listener(name)
    try:
        yield
    finally:
        _phase.set(before)
        if listener is not None:
            listener(before)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of the phases inside the block, in place of whoever listened before."""
    before = _listener.get()
    _listener.set(listener)
    try:
        yield
    finally:
        _listener.set(before)


class Pace:
    """How many steps there are at most, and how long those that are left may take."""

    def __init__(self) -> None:
        self.most: int | None = None
        self._seconds: list[float] = []

    def note(self, state: State) -> None:
        """Take note of a step."""
        if state.step == 0:  # a new run
            self._seconds.clear()
        elif state.seconds > 0:
            self._seconds = [*self._seconds[1 - RECENT :], state.seconds]

    def left(self, state: State) -> str:
        """Say how long the steps that are left may take; empty if that is not known."""
        if self.most is None or not 0 < state.step < self.most or not self._seconds:
            return ""
        each = sum(self._seconds) / len(self._seconds)
        return f"≤ {format_seconds((self.most - state.step) * each)} left"


def step_line(state: State, items: int, most: int | None = None) -> str:
    """Format a step as a line; ``most``: how many there are at most."""
    speed = f"   {items / state.seconds:,.0f} items/s" if items and state.seconds > 0 else ""
    change = f"{state.change:.1e}" if math.isfinite(state.change) else "–"  # none at the start
    figures = f"objective {state.objective:,.4f}   change {change}"
    return f"step {state.step:>4}{f' of {most}' if most else ''}   {figures}{speed}"


def draw_bar(done: int, most: int | None) -> str:
    """Draw how much is done; empty if it is not known how much there is.

    >>> draw_bar(3, 12), draw_bar(3, None)
    ('━━──────', '')
    """
    if not most:
        return ""
    full = min(BAR, BAR * done // most)
    return "━" * full + "─" * (BAR - full)


def list_figures(state: State, items: int) -> list[str]:
    """List the figures of a step, the most important first, for a line that has little room."""
    figures = [f"objective {state.objective:,.6g}"]
    if math.isfinite(state.change):
        figures.append(f"change {state.change:.0e}")
    if items and state.seconds > 0:
        figures.append(f"{items / state.seconds:,.0f} items/s")
    return figures


def bar_line(step: int, pace: Pace, left: str, figures: Sequence[str], width: int) -> str:
    """Put a bar, the step, the time left and figures in a line; what has no room is left out.

    >>> pace = Pace()
    >>> pace.most = 12
    >>> bar_line(3, pace, "", ["objective -2.5", "change 1e-02"], 40)
    '3/12  objective -2.5  change 1e-02'
    >>> bar_line(3, pace, "", ["objective -2.5", "change 1e-02"], 80)
    '━━──────  3/12  objective -2.5  change 1e-02'
    """
    count = f"{step}/{pace.most}" if pace.most else f"step {step}"
    parts = [draw_bar(step, pace.most), count, left, *figures]
    parts = [part for part in parts if part]
    if len("  ".join(parts)) > width and pace.most:
        del parts[0]
    while len("  ".join(parts)) > width and len(parts) > 2:
        del parts[-1]
    return "  ".join(parts)


def format_seconds(seconds: float) -> str:
    """Format a duration.

    >>> format_seconds(42.4), format_seconds(7300)
    ('42 s', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Display:
    """What ``verbose=1`` shows on stderr: a line that is overwritten in a terminal or a notebook,
    else a line a step; and in the end how the fit ended.

    It is a watcher of a fit (``on_step``) and a listener to its phases.
    """

    def __init__(self, name: str, items: int, stream: TextIO | None = None) -> None:
        self.name, self.items, self.pace = name, items, Pace()
        self.stream = sys.stderr if stream is None else stream
        self.rewrites = self.stream.isatty() or _in_notebook()
        self._width = self._n_steps = 0
        self._began, self._shown = time.monotonic(), -math.inf
        self._listening = ExitStack()

    def begin(self, needed: Estimate) -> None:
        """Take note of the number of steps."""
        self.pace.most = needed.steps

    def hear(self, phase: str) -> None:
        """Show a phase."""
        if phase and self.rewrites:
            self._rewrite(f"{self.name}: {phase} …")
        elif phase:
            self._print(f"{self.name}: {phase}")

    def __call__(self, state: State) -> None:
        self.pace.note(state)
        self._n_steps = state.step
        if not self.rewrites:
            self._print(f"{self.name}: {step_line(state, self.items, self.pace.most)}")
        elif time.monotonic() - self._shown >= PAUSE:
            room = shutil.get_terminal_size().columns - len(self.name) - 3
            figures, left = list_figures(state, self.items), self.pace.left(state)
            line = bar_line(state.step, self.pace, left, figures, room)
            self._rewrite(f"{self.name}: {line}")

    def end(self, verdict: Verdict) -> None:
        """Say how the fit ended."""
        if self.rewrites:
            self._rewrite("")
        took = time.monotonic() - self._began
        self._print(f"{self.name}: {verdict}; {self._n_steps} steps, {took:.1f} s")

    def _rewrite(self, text: str) -> None:
        """Replace the line; with blanks, as notebooks do not know a terminal's codes."""
        text = text[: shutil.get_terminal_size().columns - 1]
        self.stream.write("\r" + text.ljust(self._width) + ("" if text else "\r"))
        self.stream.flush()
        self._width, self._shown = len(text), time.monotonic()

    def _print(self, text: str) -> None:
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def __enter__(self) -> Self:
        self._listening.enter_context(heard_by(self.hear))
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        if self._width and self.rewrites:  # an error follows
            self._rewrite("")


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
