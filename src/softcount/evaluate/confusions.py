"""Which gold tag was taken for which: the confusion table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from softcount.errors import DataError
from softcount.evaluate.clustering import numbered
from softcount.evaluate.tokens import Tags, tokens_of
from softcount.show.snippets import clean
from softcount.types import Array

LONGEST_TAG = 16
REST, NONE = "(rest)", "(none)"
CORNER = "gold \\ found"


@dataclass(frozen=True, eq=False)
class Confusion:
    """How many tokens have which gold tag and which found tag; ``print`` shows the most frequent.

    ``gold``    the gold tags, the most frequent first: the rows
    ``found``   the found tags: those that are gold tags too in the same order, then the others
    ``counts``  (gold, found) tokens
    """

    gold: list[Any]
    found: list[Any]
    counts: Array

    def most_confused(self, n: int = 10) -> list[tuple[Any, Any, int]]:
        """The n most frequent mistakes, as (gold tag, found tag, tokens).

        >>> confusion(["N", "N", "V", "N"], ["N", "V", "N", "V"]).most_confused()
        [('V', 'N', 2), ('N', 'V', 1)]
        """
        _demand_some(n)
        differ = np.array([[g != f for f in self.found] for g in self.gold])
        rows, columns = np.nonzero(self.counts * differ)
        order = np.argsort(-self.counts[rows, columns], kind="stable")[:n]
        return [
            (self.gold[r], self.found[c], int(self.counts[r, c]))
            for r, c in zip(rows[order], columns[order], strict=True)
        ]

    def table(self, n: int = 10) -> str:
        """The n most frequent tags of either side; all others are added up as the rest."""
        _demand_some(n)
        rows = _largest(self.counts.sum(axis=1), n)
        columns = _largest(self.counts.sum(axis=0), n)
        counts = _cropped(_cropped(self.counts, rows).T, columns).T
        body = [[str(count) if count else "·" for count in row] for row in counts.tolist()]
        return _aligned(_heads(self.gold, rows), _heads(self.found, columns), body)

    def __str__(self) -> str:
        return self.table()


def confusion(found: Tags, gold: Tags) -> Confusion:
    """Which gold tag was taken for which; a row of the table for each gold tag.

    Found tags may be None for a sentence, as `HMM.predict` has them for one that cannot be: its
    tokens are in a column of their own, None.

    >>> print(confusion(["N", "N", "V", "D", "N"], ["N", "V", "V", "D", "N"]))
    gold \\ found  N  V  D
    N             2  ·  ·
    V             1  1  ·
    D             ·  ·  1
    """
    tokens = tokens_of(found, gold, gaps=True)
    ours, our_names = numbered(tokens.found, "found")
    theirs, their_names = numbered(tokens.gold, "gold")
    shape = len(their_names), len(our_names)
    counts = np.bincount(theirs * shape[1] + ours, minlength=shape[0] * shape[1]).reshape(shape)
    rows = np.argsort(-counts.sum(axis=1), kind="stable")
    gold_names = [their_names[row] for row in rows]
    place = {name: at for at, name in enumerate(gold_names)}
    frequency = counts.sum(axis=0)
    columns = sorted(
        range(shape[1]), key=lambda c: (place.get(our_names[c], shape[0]), -frequency[c])
    )
    return Confusion(gold_names, [our_names[c] for c in columns], counts[rows][:, columns])


def _demand_some(n: int) -> None:
    if n < 1:
        raise DataError(f"there cannot be {n} of them", "give n of 1 or more")


def _largest(totals: Array, n: int) -> Array:
    """The places of the n largest, in their own order."""
    return np.sort(np.argsort(-totals, kind="stable")[:n])


def _cropped(counts: Array, rows: Array) -> Array:
    """Some rows, and the sum of all others below them."""
    kept = counts[rows]
    if len(rows) == len(counts):
        return kept
    return np.vstack([kept, counts.sum(axis=0) - kept.sum(axis=0)])


def _heads(names: list[Any], places: Array) -> list[str]:
    called = [NONE if names[i] is None else names[i] for i in places]
    heads = [" ".join(clean(name).split()) for name in called]
    cut = [
        h if cell_len(h) <= LONGEST_TAG else set_cell_size(h, LONGEST_TAG - 1) + "…" for h in heads
    ]
    return cut if len(cut) == len(names) else [*cut, REST]


def _aligned(rows: list[str], columns: list[str], body: list[list[str]]) -> str:
    edge = max(map(cell_len, [CORNER, *rows]))
    widths = [
        max(map(cell_len, [head, *(line[j] for line in body)])) for j, head in enumerate(columns)
    ]
    lines = [(CORNER, columns), *zip(rows, body, strict=True)]
    return "\n".join(
        set_cell_size(head, edge)
        + "".join(
            "  " + " " * (width - cell_len(cell)) + cell
            for cell, width in zip(cells, widths, strict=True)
        )
        for head, cells in lines
    )
