"""The bitexts that the studies of alignment read; they lie beside the project."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

from softcount.text.links import Links, read_links

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SMALL = {
    "ensv": "English–Swedish",
    "roen": "Romanian–English",
    "jaen": "Japanese–English",
    "zhen": "Chinese–English",
    "deen100": "German–English",
}

Pair = tuple[str, str]


class Gold(NamedTuple):
    """Sentence pairs whose links are known."""

    pairs: list[Pair]
    links: list[Links]


def lines(name: str) -> list[str]:
    """The lines of a corpus file, in lower case."""
    path = FOLDER / name
    if not path.is_file():
        raise SystemExit(f"this study needs the corpus file {name} in ../shared/data")
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    return text.removesuffix("\n").lower().split("\n")


def gold(source: str, target: str, links: str) -> Gold:
    """Pairs with gold links."""
    pairs = list(zip(lines(source), lines(target), strict=True))
    return Gold(pairs, read_links(lines(links)))


@cache
def hansards(n: int) -> list[Pair]:
    """The first n pairs of the Hansards' training part in which neither side is empty."""
    sides = (lines(f"hansards_wpt03/train.36.2.{side}.gz") for side in ("en", "fr"))
    full = [pair for pair in zip(*sides, strict=True) if pair[0].split() and pair[1].split()]
    return full[:n]


def hansards_gold(part: str) -> Gold:
    """``part``: "trial", which settings may be chosen on, or "test"."""
    return gold(*(f"hansards_wpt03/{part}.{end}" for end in ("en", "fr", "align")))


def collins() -> tuple[list[Pair], Gold]:
    """English–Spanish: the training pairs, and those with gold links (which are among them)."""
    sides = (lines(f"collins_es_en/train.{side}.gz") for side in ("en", "es"))
    return list(zip(*sides, strict=True)), gold(
        *(f"collins_es_en/dev.{end}" for end in ("en", "es", "align"))
    )


def small(name: str) -> Gold:
    """One of the small corpora with gold links."""
    return gold(*(f"gold_small/{name}.{end}" for end in ("src", "tgt", "align")))
