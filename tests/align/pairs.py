"""Sentence pairs for tests of ``softcount align``, and what it prints of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from softcount.text.links import parse_links
from tests.commands import done, lines

TINY = "the house ||| das haus\nthe book ||| das buch\na book ||| ein buch\n"


def invented(n: int = 40, seed: int = 3) -> list[tuple[str, str]]:
    """Sentences whose words are translated one by one, now and then in another order or not."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(n):
        words = [rng.randrange(12) for _ in range(rng.randint(2, 6))]
        others = [f"T{word}" for word in words if rng.random() < 0.9] or ["t"]
        if rng.random() < 0.3:
            others.reverse()
        pairs.append((" ".join(f"S{word}" for word in words), " ".join(others)))
    return pairs


PAIRS = invented()
FLIPPED = [(target, source) for source, target in PAIRS]


def probabilities(*args: str | Path) -> list[dict[tuple[int, int], float]]:
    """What ``--proba`` prints."""
    return [
        dict(parse_links(line).probabilities) for line in lines(done("align", *args, "--proba"))
    ]


def expected(model: Any, **how: Any) -> list[dict[tuple[int, int], float]]:
    """The same of a model in Python."""
    links, values = model.links(probabilities=True, **how)
    found: list[dict[tuple[int, int], float]] = [{} for _ in range(len(links))]
    for n, i, j, p in zip(links.pair, links.source, links.target, values, strict=True):
        found[n][int(i), int(j)] = float(p)
    return found


def assert_close(
    found: list[dict[tuple[int, int], float]], wanted: list[dict[tuple[int, int], float]]
) -> None:
    assert [set(one) for one in found] == [set(one) for one in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5)


def write_pairs(folder: Path) -> Path:
    """A file of all pairs."""
    path = folder / "corpus.txt"
    path.write_text("".join(f"{source} ||| {target}\n" for source, target in PAIRS))
    return path
