"""Reviews of two domains in files, and what ``softcount adapt`` prints of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import Result

from tests.commands import file_of, lines

WORDS = {
    "books": {"pos": "moving deep witty", "neg": "boring dull shallow"},
    "kitchen": {"pos": "sharp sturdy handy", "neg": "blunt leaking broken"},
}
SHARED = {"pos": "good great excellent", "neg": "bad poor awful"}
THINGS = {"books": "plot page author novel", "kitchen": "knife pan kettle blade"}
N = 40


def reviews(domain: str, n: int = N, seed: int = 0) -> list[tuple[str, str]]:
    """Labels and texts: words of sentiment that all domains have, and some of this one."""
    draws = np.random.default_rng(seed)
    found = []
    for k in range(n):
        label = ("pos", "neg")[k % 2]
        own, shared = WORDS[domain][label].split(), SHARED[label].split()
        some = [
            *draws.choice(shared, 2),
            *draws.choice(own, 2),
            *draws.choice(THINGS[domain].split(), 3),
        ]
        found.append((label, " ".join(some)))
    return found


def written(rows: list[tuple[str, str]], labels: int | None = None) -> str:
    """Lines, of which the first so many keep their labels; None: all."""
    kept = len(rows) if labels is None else labels
    return "".join(f"{y if k < kept else ''}\t{text}\n" for k, (y, text) in enumerate(rows))


def books_in(folder: Path) -> Path:
    """The source: all with labels but one, and a blank line."""
    return file_of(folder / "books.tsv", written(reviews("books")) + "\n\tgood kettle\n")


def kitchen_in(folder: Path) -> Path:
    """The target, without a label."""
    return file_of(folder / "kitchen.tsv", written(reviews("kitchen"), 0))


def few_in(folder: Path) -> Path:
    """The target with some labels, a blank line and one that says nothing."""
    return file_of(folder / "few.tsv", written(reviews("kitchen"), 8) + "\n\t\n")


def gold_in(folder: Path) -> Path:
    """The true labels of the target."""
    return file_of(folder / "gold.txt", "".join(f"{label}\n" for label, _ in reviews("kitchen")))


def cells(result: Result) -> list[list[str]]:
    return [line.split("\t") for line in lines(result)]


def table(result: Result, head: str = "method") -> dict[str, dict[str, str]]:
    """A tab-separated table of stderr, by the first cells of its rows."""
    rows = [line.split("\t") for line in result.stderr.split("\n")]
    start = next(k for k, row in enumerate(rows) if row[0] == head)
    found = {}
    for row in rows[start + 1 :]:
        if len(row) < 2:
            break
        found[row[0]] = dict(zip(rows[start], row, strict=True))
    return found
