"""Trees in the terminal: from the top down with the sentence below, or as indented lines."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from softcount.corpus.trees import Tree
from softcount.show.tree_layout import Spot, laid_out, spots

GAP = 2
CUT = "…"


def drawn(tree: Tree, width: int | None = None) -> str:
    """A tree as plain text.

    ``width``  columns that there are; None: those of the terminal. A tree that is wider has a line
               for each label instead, and below each other what is on one level; where even that
               has no room, the left margin is cut

    >>> from softcount.corpus.trees import tree
    >>> print(drawn(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 40))
           S
       ┌───┴────┐
       NP       VP
     ┌─┴──┐     │
     DT   NN   VBZ
     │    │     │
    the  dog  barks
    >>> print(drawn(tree("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"), 12))
    S
    ├─ NP
    │  ├─ DT the
    │  └─ NN dog
    └─ VP
       └─ VBZ barks
    """
    room = shutil.get_terminal_size().columns if width is None else width
    found = laid_out(tree, cell_len, GAP)
    return "\n".join(_from_above(found) if found[0].box <= room else _indented(tree, room))


# from the top down
def _from_above(found: Sequence[Spot]) -> Iterable[str]:
    """Rows of labels with rows of lines between them; the words are in the last row."""
    last = max(spot.depth for spot in found)
    rows: list[list[tuple[int, str]]] = [[] for _ in range(2 * last + 1)]
    for spot in found:
        if not spot.below:
            rows[-1].append((spot.left, spot.text))
            for row in rows[2 * spot.depth : -1]:
                row.append((spot.x, "│"))
        else:
            rows[2 * spot.depth].append((spot.left, spot.text))
            children = [found[n].x for n in spot.below]
            rows[2 * spot.depth + 1].append((children[0], _branches(spot.x, children)))
    return map(_row, rows)


def _branches(parent: int, children: Sequence[int]) -> str:
    """The line from the first to the last child, with what leads up from it and down.

    >>> _branches(3, [0, 3, 6]), _branches(2, [0, 5]), _branches(1, [1])
    ('┌──┼──┐', '┌─┴──┐', '│')
    """
    if len(children) == 1:
        return "│"
    line = ["─"] * (children[-1] - children[0] + 1)
    for child in children:
        line[child - children[0]] = "┬"
    line[0], line[-1] = "┌", "┐"
    above = parent - children[0]
    line[above] = {"─": "┴", "┬": "┼", "┌": "├", "┐": "┤"}[line[above]]
    return "".join(line)


def _row(parts: Sequence[tuple[int, str]]) -> str:
    line, end = [], 0
    for start, text in sorted(parts):
        line.append(" " * (start - end) + text)
        end = start + cell_len(text)
    return "".join(line).rstrip()


# as indented lines
def _indented(tree: Tree, room: int) -> Iterable[str]:
    """A line for each constituent; a tag has its word beside it."""
    found = spots(tree, cell_len)
    most = max(room // 2, 6)  # so wide is the margin at most, however deep the tree
    ahead: list[tuple[int, str, str]] = [(0, "", "")]  # spots, their margins, and those below them
    while ahead:
        n, margin, margin_below = ahead.pop()
        spot = found[n]
        only = found[spot.below[0]] if len(spot.below) == 1 else None
        is_tag = only is not None and not only.below
        yield f"{margin}{spot.text}{f' {only.text}' if only and is_tag else ''}"
        for number, below in enumerate(reversed(() if is_tag else spot.below)):
            knee, line = ("├─ ", "│  ") if number else ("└─ ", "   ")
            ahead.append((below, _cut(margin_below + knee, most), _cut(margin_below + line, most)))


def _cut(margin: str, most: int) -> str:
    return margin if len(margin) <= most else CUT + margin[len(margin) - most + 1 :]
