"""Real corpora, where they are: they are not part of this project."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def lines(name: str) -> list[str]:
    """The lines of a corpus file; skips the test with a message if it is not there."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"needs the corpus file {name} in ../shared/data, which is not here")
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return text.removesuffix("\n").split("\n")


def parallel(source: str, target: str, n: int) -> list[tuple[list[str], list[str]]]:
    """The first n sentence pairs in which neither side is empty, lowercased."""
    pairs = zip(lines(source), lines(target), strict=True)
    split = ((s.lower().split(), t.lower().split()) for s, t in pairs)
    return [(s, t) for s, t in split if s and t][:n]


def tagged(name: str, n: int) -> list[list[tuple[str, str]]]:
    """The first n sentences of a CoNLL-U file, as (lowercased word, tag) pairs."""
    sentences: list[list[tuple[str, str]]] = [[]]
    for line in lines(name):
        columns = line.split("\t")
        if not line:
            sentences.append([])
        elif columns[0].isdigit():
            sentences[-1].append((columns[1].lower(), columns[3]))
    return [sentence for sentence in sentences if sentence][:n]
