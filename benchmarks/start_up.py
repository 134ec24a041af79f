"""What it costs to start: CPU seconds of imports and of the command line's help, beside numpy.

    python benchmarks/start_up.py [--json]

Aims: `import softcount` at most numpy's import + 0.15 s, `softcount --help` under 0.5 s.
"""

from __future__ import annotations

import os
import subprocess
import sys

from _figures import report

ROUNDS = 7
COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import softcount": ["-c", "import softcount"],
    "softcount --help": ["-m", "softcount", "--help"],
    "softcount story --help": ["-m", "softcount", "story", "--help"],
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of a child process."""
    before = os.times()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    children = after.children_user + after.children_system
    return children - before.children_user - before.children_system


def measure() -> dict[str, float]:
    figures = {name: float("inf") for name in COMMANDS}
    for _ in range(ROUNDS):  # taking turns, so that a noisy machine slows all
        for name, arguments in COMMANDS.items():
            figures[name] = min(figures[name], cpu_seconds(arguments))
    return {f"{name}, CPU s": round(seconds, 3) for name, seconds in figures.items()}


if __name__ == "__main__":
    report(__doc__, measure)
