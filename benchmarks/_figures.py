"""How benchmarks show what they measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path


def report(
    about: str,
    measure: Callable[[], Mapping[str, float]],
    draw: Callable[[Mapping[str, float]], str] | None = None,
) -> None:
    """Measure and print: a line a figure, or JSON, and a picture, if the user asks for them."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    if draw:
        parser.add_argument("--svg", type=Path, help="draw the figures into this file")
    options = parser.parse_args()
    figures = measure()
    if draw and options.svg:
        options.svg.write_text(draw(figures), encoding="utf-8")
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:40} {value:,.6g}")
