"""Trees as plain SVG text: no script, no network, legible in the dark and in print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.cells import cell_len

from softcount.corpus.trees import Tree
from softcount.show.tree_layout import Spot, laid_out, printable

FIGURE = 8
"""How wide a letter is taken to be; those of Chinese and its like are two wide."""
GAP, MARGIN = 14, 10
LEVEL, ASCENT, DESCENT = 46, 13, 5
"""How far rows are apart, and what a text covers above and below its base line."""

STYLE = """
.sc-tree { --ink: #3b3a36; --line: #a9a497; --c0: #1d5c8f; display: block;
  font: 14px/1 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) { .sc-tree { --ink: #cfccc3; --line: #6b685f; --c0: #7db8e8; } }
.sc-tree text { fill: var(--c0); text-anchor: middle; font-weight: 600; }
.sc-tree .w { fill: var(--ink); font-weight: 400; }
.sc-tree path { fill: none; stroke: var(--line); stroke-width: 1.3; stroke-linecap: round; }
"""


def svg(tree: Tree) -> str:
    """A tree as an ``<svg>`` element, which is a whole picture by itself.

    The words stand side by side below, as a sentence.

    >>> from softcount.corpus.trees import tree
    >>> picture = svg(tree("(NP (DT the) (NN dog))"))
    >>> picture[:20], picture.count("<text"), "<title>the dog</title>" in picture
    ('<svg class="sc-tree"', 5, True)
    """
    found = laid_out(tree, _measure, GAP)
    last = max(spot.depth for spot in found)
    width, height = found[0].box + 2 * MARGIN, last * LEVEL + ASCENT + DESCENT + 2 * MARGIN
    edges = "".join(_edges(spot, found, last) for spot in found)
    title = escape(" ".join(map(printable, tree.words())))
    return (
        f'<svg class="sc-tree" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg"><title>{title}</title>'
        f'<style>{STYLE}</style><path d="{edges}"/>'
        f"{''.join(_text(spot, last) for spot in found)}</svg>"
    )


def _measure(text: str) -> int:
    return FIGURE * cell_len(text)


def _base(spot: Spot, last: int) -> int:
    """The base line of a text; words are in the last row."""
    return MARGIN + ASCENT + LEVEL * (spot.depth if spot.below else last)


def _text(spot: Spot, last: int) -> str:
    css = "" if spot.below else ' class="w"'
    return f'<text{css} x="{spot.x + MARGIN}" y="{_base(spot, last)}">{escape(spot.text)}</text>'


def _edges(spot: Spot, found: Sequence[Spot], last: int) -> str:
    """Lines to what is below."""
    start = f"M{spot.x + MARGIN} {_base(spot, last) + DESCENT}"
    ends = [(found[n].x + MARGIN, _base(found[n], last) - ASCENT - 2) for n in spot.below]
    return "".join(f"{start}L{x} {y}" for x, y in ends)
