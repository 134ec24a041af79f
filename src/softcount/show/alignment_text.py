"""One sentence pair in the terminal: its alignment as a matrix of block shades, or as a list."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from rich.cells import cell_len, set_cell_size

from softcount.corpus.links import FlatLinks, Link
from softcount.errors import DataError
from softcount.show.snippets import on_one_line
from softcount.types import Array

SHADES = ((0.9, "█"), (0.6, "▓"), (0.3, "▒"), (0.05, "░"), (0.0, " "))
"""From which probability on which shade."""

LONGEST_WORD = 20
ROUNDING = 1e-6
NOTHING = "–"
LEGEND = "[ ] link   " + "   ".join(f"{shade} {100 * p:.0f} %" for p, shade in SHADES[-2::-1])


def alignment_view(
    source: str | Sequence[str],
    target: str | Sequence[str],
    posterior: ArrayLike,
    links: Iterable[Link],
    *,
    width: int | None = None,
) -> str:
    """A sentence pair as plain text: source words down, target words across, links in brackets.

    ``source, target``  words, or texts to be cut at white space
    ``posterior``       (source words, target words): how probable each link is
    ``width``           columns that there are; None: those of the terminal. Where the matrix does
                        not fit in, each source word has a line with what it is linked to

    >>> p, links = [[0.95, 0.1], [0.0, 0.7]], [(0, 0), (1, 1)]
    >>> print(alignment_view("a house", "ein haus", p, links, width=60))
           ein
           │  haus
           │  │
        a [█] ░
    house    [▓]
    <BLANKLINE>
    [ ] link   ░ 5 %   ▒ 30 %   ▓ 60 %   █ 90 %
    """
    rows, columns = (
        [_printable(word) for word in (side.split() if isinstance(side, str) else side)]
        for side in (source, target)
    )
    chosen = FlatLinks.of([list(links)])
    chosen.demand_inside(np.array([len(rows)]), np.array([len(columns)]), lambda _: "the pair")
    p = _checked(posterior, (len(rows), len(columns)))
    pairs = set(chosen.lists()[0])
    room = shutil.get_terminal_size().columns if width is None else width
    drawn = [*_matrix(rows, columns, p, pairs), "", LEGEND] if rows and columns else []
    if not drawn or max(cell_len(line) for line in drawn[:-1]) > room:
        drawn = _list(rows, columns, p, pairs)
    return "\n".join(line.rstrip() for line in drawn)


def _checked(posterior: ArrayLike, shape: tuple[int, int]) -> Array:
    p = np.asarray(posterior, dtype=float)
    if p.shape != shape and not p.size == 0 == shape[0] * shape[1]:
        raise DataError(
            f"a posterior of shape {p.shape} for {shape[0]} source and {shape[1]} target words",
            "give a row for each source word and a column for each target word",
        )
    if not ((p >= -ROUNDING) & (p <= 1.0 + ROUNDING)).all():
        raise DataError("a posterior is no probability", "give numbers from 0 to 1")
    clipped: Array = np.clip(p, 0.0, 1.0)
    return clipped


def _printable(word: str) -> str:
    """A word without control characters, cut if it is long.

    One that is read from the right is kept apart, so that it turns nothing else around.
    """
    flat = on_one_line(word)
    if cell_len(flat) > LONGEST_WORD:
        flat = set_cell_size(flat, LONGEST_WORD - 1).rstrip() + "…"
    turns = any(unicodedata.bidirectional(character) in ("R", "AL") for character in flat)
    return f"\u2068{flat}\u2069" if turns else flat


def _matrix(rows: Sequence[str], columns: Sequence[str], p: Array, links: set[Link]) -> list[str]:
    """Every word of the head stands above its column, the next a line further down."""
    edge = max(map(cell_len, rows))
    head = [f"{'':{edge}} {' │ ' * j} {word}" for j, word in enumerate(columns)]
    head.append(f"{'':{edge}} {' │ ' * len(columns)}")
    lines = [
        f"{_padded(word, edge)} "
        + "".join(_cell(p[i, j], (i, j) in links) for j in range(len(columns)))
        for i, word in enumerate(rows)
    ]
    return [*head, *lines]


def _list(rows: Sequence[str], columns: Sequence[str], p: Array, links: set[Link]) -> list[str]:
    """A line for each source word, and one for target words that none is linked to."""
    edge = max(map(cell_len, rows), default=0)
    lines = []
    for i, word in enumerate(rows):
        linked = sorted(j for k, j in links if k == i)
        told = "  ".join(f"{columns[j]} {shade(p[i, j])} {p[i, j]:.2f}" for j in linked)
        lines.append(f"{_padded(word, edge)}  {told or NOTHING}")
    left = [word for j, word in enumerate(columns) if j not in {j for _, j in links}]
    if left:
        lines.append(f"{NOTHING:>{max(edge, 1)}}  {'  '.join(left)}")
    return lines


def _padded(word: str, edge: int) -> str:
    return " " * (edge - cell_len(word)) + word


def _cell(p: float, linked: bool) -> str:
    return f"[{shade(p)}]" if linked else f" {shade(p)} "


def shade(p: float) -> str:
    """A block as dark as a link is probable.

    >>> shade(1.0), shade(0.5), shade(0.01)
    ('█', '▒', ' ')
    """
    return next(block for least, block in SHADES if p >= least)
