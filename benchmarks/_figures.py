"""How benchmarks show what they measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping


def report(about: str, measure: Callable[[], Mapping[str, float]]) -> None:
    """Measure and print: a line a figure, or JSON if the user asks for it."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    figures = measure()
    if as_json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:40} {value:,.6g}")
