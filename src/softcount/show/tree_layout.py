"""Where the labels and words of a tree stand in a picture: parents above the middle of children."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from softcount.corpus.trees import Tree
from softcount.show.snippets import on_one_line


@dataclass(slots=True)
class Spot:
    """A label or a word, and its place.

    ``depth``  how many constituents are above it
    ``below``  numbers of the spots below it; none for a word
    ``size``   how wide it is; ``x`` is the column of its middle
    ``box``    how wide it is with all that is below it; ``edge`` is the box's first column
    """

    text: str
    depth: int
    size: int
    below: list[int] = field(default_factory=list)
    box: int = 0
    edge: int = 0
    x: int = 0

    @property
    def left(self) -> int:
        """The first column that it covers itself."""
        return self.x - before(self.size)


def before(size: int) -> int:
    """How many columns are left of the middle one.

    >>> [before(size) for size in (1, 2, 3, 4)]
    [0, 0, 1, 1]
    """
    return (size - 1) // 2


def printable(text: str) -> str:
    """A text without control characters.

    One that is read from the right is kept apart, so that it turns nothing else around.
    """
    plain = on_one_line(text)
    turns = any(unicodedata.bidirectional(character) in ("R", "AL") for character in plain)
    return f"\u2068{plain}\u2069" if turns else plain


def spots(tree: Tree, measure: Callable[[str], int]) -> list[Spot]:
    """All labels and words of a tree, top-down, without places.

    ``measure``  how wide a text is
    """
    found: list[Spot] = []
    above: list[int] = []
    for step in tree.steps():
        if step is None:
            above.pop()
            continue
        if above:
            found[above[-1]].below.append(len(found))
        text = printable(step if isinstance(step, str) else step.label)
        found.append(Spot(text, len(above), max(measure(text), 1)))
        if not isinstance(step, str):
            above.append(len(found) - 1)
    return found


def laid_out(tree: Tree, measure: Callable[[str], int], gap: int) -> list[Spot]:
    """All labels and words of a tree with their places, top-down; the first box is the picture's.

    ``gap``  how much room is between neighbours

    >>> from softcount.corpus.trees import tree
    >>> some = laid_out(tree("(S (NP it) (VP rains))"), len, 1)
    >>> [(spot.text, spot.depth, spot.x) for spot in some], some[0].box
    ([('S', 0, 2), ('NP', 1, 0), ('it', 2, 0), ('VP', 1, 5), ('rains', 2, 5)], 8)
    """
    found = spots(tree, measure)
    for spot in reversed(found):
        _make_box(spot, [found[n] for n in spot.below], gap)
    for spot in found:  # places in boxes become places in the picture
        spot.x += spot.edge
        for n in spot.below:
            found[n].edge += spot.edge
    return found


def _make_box(spot: Spot, below: Sequence[Spot], gap: int) -> None:
    """Side by side what is below, and the spot itself above the middle of the first and the last.

    Places count from the box's left edge.
    """
    width = -gap
    for one in below:
        one.edge = width + gap
        width = one.edge + one.box
    middle = (below[0].edge + below[0].x + below[-1].edge + below[-1].x) // 2 if below else 0
    spot.x = max(middle, before(spot.size))
    for one in below:
        one.edge += spot.x - middle
    spot.box = spot.x + max(width - middle, spot.size - before(spot.size))
