"""What is known before aligning: a dictionary, links, and gold links to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from softcount.cli.lines import numbered
from softcount.cli.pairs import shapes_of
from softcount.errors import DataError, shown

if TYPE_CHECKING:
    from softcount.corpus.bitext import Bitext
    from softcount.corpus.links import Links

FORM = "write: source word, tab, target word, and perhaps a tab and a weight above 0"
Entries = dict[str, dict[str, float | None]]


def read_dictionary(path: str | None, lowercase: bool) -> dict[str, Any] | None:
    """The entries of a file, as aligners take them; None without a path.

    Entries of several words are left out, and stderr says how many they are.
    """
    if path is None:
        return None
    entries: Entries = {}
    several = 0
    for number, line in numbered(path):
        if not line.strip():
            continue
        source, target, weight = _entry(line, f"{path}:{number}")
        if lowercase:
            source, target = source.lower(), target.lower()
        if len(source.split()) > 1 or len(target.split()) > 1:
            several += 1
            continue
        known = entries.setdefault(source, {})
        _demand_alike(known, source, target, weight, f"{path}:{number}")
        known[target] = weight
    if several:
        what = "entry" if several == 1 else "entries"
        typer.echo(f"softcount: {path}: {several:,} {what} of several words left out", err=True)
    if not entries:
        raise DataError(f"{path}: there is no entry of single words", FORM)
    return {
        word: list(known) if None in known.values() else known for word, known in entries.items()
    }


def _entry(line: str, where: str) -> tuple[str, str, float | None]:
    words = [field.strip() for field in line.split("\t")]
    if len(words) not in (2, 3) or not all(words):
        raise DataError(f"{where}: {shown(line)} is no entry of a dictionary", FORM)
    if len(words) == 2:
        return words[0], words[1], None
    try:
        weight = float(words[2])
    except ValueError:
        weight = math.nan
    if not 0.0 < weight < math.inf:
        raise DataError(f"{where}: {shown(words[2])} is no weight", FORM)
    return words[0], words[1], weight


def _demand_alike(
    known: dict[str, float | None], source: str, target: str, weight: float | None, where: str
) -> None:
    if known.get(target, weight) != weight:
        raise DataError(f"{where}: {source} – {target} is there with another weight", "keep one")
    if known and (None in known.values()) != (weight is None):
        raise DataError(
            f"{where}: some translations of {shown(source)} have a weight, and some have none",
            "give a weight to all translations of a word, or to none",
        )


def exchanged(entries: dict[str, Any] | None) -> dict[str, Any] | None:
    """From target words to source words; weights, which are those of one direction, are lost."""
    if entries is None:
        return None
    found: dict[str, list[str]] = {}
    for source, known in entries.items():
        for target in known:
            found.setdefault(target, []).append(source)
    return found


def read_known(
    path: str | None, pairs: Bitext, reverse: bool
) -> list[list[tuple[int, int]]] | None:
    """The sure links of every pair, as (target, source) if reversed; None without a path."""
    if path is None:
        return None
    from softcount.corpus.links import read_links

    every = read_links(path, shapes_of(pairs))
    return [[(j, i) if reverse else (i, j) for i, j in links] for links in every]


def read_gold(path: str | None, pairs: Bitext) -> Sequence[Links] | None:
    """Gold links of the first pairs; None without a path."""
    if path is None:
        return None
    from softcount.corpus.links import FlatLinks, read_links

    gold = read_links(path)
    if not 0 < len(gold) <= len(pairs):
        raise DataError(
            f"--gold {path}: {len(gold):,} lines of links, while there are {len(pairs):,} pairs",
            "give one line a pair; if only the first pairs are known, fewer lines",
        )
    head = pairs.select(slice(len(gold)))
    every = FlatLinks.of([sorted(links.possible) for links in gold])
    every.demand_inside(head.source.lengths, head.target.lengths, lambda n: f"{path}:{n + 1}")
    return gold
