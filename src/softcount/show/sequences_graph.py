"""How hidden states follow each other, as a picture: states on a circle, their likeliest moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from softcount.show.sequences_states import StateShown, one_word
from softcount.types import Array

RADIUS, MARGIN = 270.0, 170.0
SIDE = 2 * (RADIUS + MARGIN)
SMALLEST_NODE, LARGEST_NODE = 9.0, 24.0
WIDEST = 7.0
MOST_MOVES, LEAST = 2, 0.1
"""A state shows so many of its moves, if they are as probable as this."""
FEW, LEAST_OF_FEW = 5, 0.01
"""Up to so many states show all moves that are as probable as this, with figures."""
LABEL = 18
"""So many letters of words stand beside a state."""
NEAR, FAR = 0.9, 0.3
"""Where arrows pass between neighbours and across: 0 in the middle, 1 straight between states."""


@dataclass(frozen=True)
class Node:
    """A circle: a state, or the start or end of sentences."""

    name: str
    label: str
    share: float
    hue: int | None = None
    link: str = ""


@dataclass(frozen=True)
class Ring:
    """The circle on which nodes stand."""

    radius: float

    @property
    def middle(self) -> float:
        """Both coordinates of its centre."""
        return self.radius + MARGIN

    @property
    def reach(self) -> float:
        """How far loops go; farther where there is room for their figures."""
        return 34.0 if self.radius == RADIUS else 60.0

    @classmethod
    def of(cls, n_nodes: int) -> Ring:
        """Large enough for so many nodes: a few do not stand miles apart.

        >>> Ring.of(4).radius, Ring.of(50).radius == RADIUS
        (168.0, True)
        """
        return cls(min(RADIUS, 72.0 + 24.0 * n_nodes))


@dataclass(frozen=True)
class Move:
    """An arrow between nodes, by their numbers."""

    origin: int
    goal: int
    p: float


def hue(k: int) -> int:
    """The colour of a state, as an angle: neighbours in number are far apart in colour.

    >>> hue(0), hue(1), hue(2)
    (0, 138, 275)
    """
    return round(137.508 * k) % 360


def anchor(k: int) -> str:
    """Where the page speaks of a state."""
    return f"state-{k}"


def graph_note(n_states: int) -> str:
    """What is to be seen."""
    if n_states <= FEW:
        shown = f"All moves with a probability of {LEAST_OF_FEW:g} at least, which stands beside"
        shown += " their arrows; the wider an arrow, the more probable."
    else:
        shown = (
            f"Each state with its {MOST_MOVES} likeliest moves, as far as they have a probability "
            f"of {LEAST:g} at least; the wider an arrow, the more probable."
        )
    return (
        f"{shown} The larger a circle, the more words have the state. Colours are those of the "
        "sentences below."
    )


def transition_graph(states: Sequence[StateShown], start: Array, table: Array, ends: Array) -> str:
    """The picture, as an ``<svg>`` element.

    ``states``  in any order; rows and columns of the tables are their numbers
    ``start``   p(first state); ``table``  p(next state | state); ``ends``  p(end | state)
    """
    nodes, whole = _whole(states, start, table, ends)
    few = len(states) <= FEW
    moves = strongest(whole, len(whole), LEAST_OF_FEW) if few else strongest(whole)
    ring = Ring.of(len(nodes))
    places = _places(_order(whole), ring)
    drawn = sorted(moves, key=lambda move: move.p)  # the likeliest on top
    arrows = [_arrow(move, nodes, places, ring) for move in drawn]
    figures = "".join(figure for _, figure in arrows) if few else ""
    circles = "".join(_circle(node, places[n], ring) for n, node in enumerate(nodes))
    tip = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L10 5L0 10Z"/></marker></defs>'
    )
    side = 2 * ring.middle
    return (
        f'<svg class="graph" viewBox="0 0 {side:g} {side:g}" style="max-width:{side / 16:g}rem" '
        f'role="group" aria-label="moves between states">{tip}'
        f"{''.join(path for path, _ in arrows)}{circles}{figures}</svg>"
    )


def _whole(
    states: Sequence[StateShown], start: Array, table: Array, ends: Array
) -> tuple[list[Node], Array]:
    """States by number, then start and end; and p(next | node) of all."""
    k = len(start)
    by_number = sorted(states, key=lambda one: one.number)
    nodes = [
        Node(
            one_word(str(one.name)),
            one.in_a_line(3),
            one.share,
            hue(one.number),
            anchor(one.number),
        )
        for one in by_number
    ]
    whole = np.zeros((k + 2, k + 2))
    whole[:k, :k], whole[k, :k], whole[:k, k + 1] = table, start, ends
    return [*nodes, Node("start", "", 0.0), Node("end", "", 0.0)], whole


def strongest(whole: Array, most: int = MOST_MOVES, least: float = LEAST) -> list[Move]:
    """The likeliest moves from each node.

    >>> strongest(np.array([[0.05, 0.95], [0.5, 0.5]]))
    [Move(origin=0, goal=1, p=0.95), Move(origin=1, goal=0, p=0.5), Move(origin=1, goal=1, p=0.5)]
    """
    best = np.argsort(-whole, axis=1, kind="stable")[:, :most]
    return [
        Move(i, j, float(whole[i, j]))
        for i, row in enumerate(best.tolist())
        for j in row
        if whole[i, j] >= least
    ]


def _order(whole: Array) -> list[int]:
    """Nodes round the circle: each beside what it leads to, the end last."""
    end, start = len(whole) - 1, len(whole) - 2
    order, left = [start], set(range(start))
    while left:
        last = order[-1]
        order.append(min(left, key=lambda n: (-whole[last, n] - whole[n, last], n)))
        left.remove(order[-1])
    return [*order, end]


def _places(order: Sequence[int], ring: Ring) -> dict[int, tuple[float, float]]:
    """Points on the circle, clockwise; between start and end is the top."""
    step = 2 * math.pi / len(order)
    return {
        n: (
            ring.middle + ring.radius * math.sin((i + 0.5) * step),
            ring.middle - ring.radius * math.cos((i + 0.5) * step),
        )
        for i, n in enumerate(order)
    }


def _size(node: Node) -> float:
    """Areas are as shares, but for the smallest and the largest."""
    return max(SMALLEST_NODE, min(LARGEST_NODE, 60.0 * math.sqrt(node.share)))


def _arrow(
    move: Move, nodes: Sequence[Node], places: dict[int, tuple[float, float]], ring: Ring
) -> tuple[str, str]:
    """The arrow, and its figure."""
    origin, goal = nodes[move.origin], nodes[move.goal]
    ends = places[move.origin], places[move.goal]
    if move.origin == move.goal:
        path, (x, y) = _loop(ends[0], _size(origin), ring)
    else:
        path, (x, y) = _curve(*ends, _size(goal), ring)
    told = escape(f"{origin.name} → {goal.name}: {move.p:.2f}")
    arrow = (
        f'<path class="move" d="{path}" stroke-width="{max(0.8, WIDEST * move.p):.1f}" '
        f'opacity="{0.25 + 0.65 * move.p:.2f}" marker-end="url(#tip)"><title>{told}</title></path>'
    )
    return arrow, f'<text class="figure" x="{x:.1f}" y="{y + 4:.1f}">{move.p:.2f}</text>'


def _curve(
    origin: tuple[float, float], goal: tuple[float, float], size: float, ring: Ring
) -> tuple[str, tuple[float, float]]:
    """An arc that bends towards the middle, and a little to the left: there and back are two.

    With it comes the point half way.
    """
    middle = ring.middle
    (x0, y0), (x1, y1) = origin, goal
    bend = NEAR - (NEAR - FAR) * math.hypot(x1 - x0, y1 - y0) / (2 * ring.radius)
    bx = middle + bend * ((x0 + x1) / 2 - middle) - 0.12 * (y1 - y0)
    by = middle + bend * ((y0 + y1) / 2 - middle) + 0.12 * (x1 - x0)
    far = math.hypot(x1 - bx, y1 - by) or 1.0
    x1, y1 = x1 - (size + 2) * (x1 - bx) / far, y1 - (size + 2) * (y1 - by) / far
    half = ((x0 + 2 * bx + x1) / 4, (y0 + 2 * by + y1) / 4)
    return f"M{x0:.1f} {y0:.1f}Q{bx:.1f} {by:.1f} {x1:.1f} {y1:.1f}", half


def _loop(place: tuple[float, float], size: float, ring: Ring) -> tuple[str, tuple[float, float]]:
    """From a state to itself: a loop on the inner side, where no label is; and its far point."""
    x, y = place
    ux, uy = (ring.middle - x) / ring.radius, (ring.middle - y) / ring.radius
    ends = [(ux * 0.8 - s * uy * 0.6, uy * 0.8 + s * ux * 0.6) for s in (-1.0, 1.0)]
    far = size + ring.reach
    (ax, ay), (bx, by) = ends
    path = (
        f"M{x + size * ax:.1f} {y + size * ay:.1f}C{x + far * ax:.1f} {y + far * ay:.1f} "
        f"{x + far * bx:.1f} {y + far * by:.1f} {x + (size + 2) * bx:.1f} {y + (size + 2) * by:.1f}"
    )
    depth = 0.8 * (size + 3 * far) / 4
    return path, (x + depth * ux, y + depth * uy)


def _circle(node: Node, place: tuple[float, float], ring: Ring) -> str:
    """A node with its label, which points outwards and never stands on its head."""
    x, y = place
    middle, size = ring.middle, _size(node)
    turn = math.degrees(math.atan2(y - middle, x - middle))
    left = abs(turn) > 90.0
    at, side, turn = (-size - 6, "end", turn - 180.0) if left else (size + 6, "start", turn)
    words = node.label if len(node.label) <= LABEL else node.label[: LABEL - 1].rstrip() + "…"
    parts = [f'<tspan class="name">{escape(node.name)}</tspan>', escape(words)]
    inside = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"/>'
        f'<text transform="translate({x:.1f} {y:.1f}) rotate({turn:.1f})" x="{at:.1f}" y="4" '
        f'text-anchor="{side}">{" ".join(parts[::-1] if left else parts)}</text>'
    )
    if node.hue is None:
        return f'<g class="edge">{inside}</g>'
    said = escape(f"state {node.name}: {node.label}")
    return (
        f'<a href="#{node.link}" class="node" style="--h:{node.hue}" aria-label="{said}">'
        f"<title>{said}</title>{inside}</a>"
    )
