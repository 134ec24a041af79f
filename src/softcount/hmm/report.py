"""The page about a tagger: its states, how they follow each other, sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from html import escape
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.corpus.sequences import Sequences, sequences
from softcount.corpus.tagged import Tagged
from softcount.errors import DataError, shown
from softcount.hmm.core import MOVES, TABLE, visits
from softcount.models.settings import smoothings
from softcount.show.finding import Bars, bars, ended, outcome
from softcount.show.report import bar_table, document, ending, signed
from softcount.show.snippets import clean, on_one_line
from softcount.types import Array, Fit

if TYPE_CHECKING:
    from rich.console import Console


WORDS, IN_A_LINE = 10, 8
"""How many words of a state are kept, and how many stand in its line of an overview."""
LONGEST_WORD = 24
SMALLEST = 1e-6
"""Words below this say nothing of a state."""
LEAST_SEEN, SURELY_SEEN = 0.1, 0.5
"""Nor do words that were in it less often: they are there because smoothing adds to all words."""


@dataclass(frozen=True)
class StateShown:
    """A state.

    ``number``  its row in the tables
    ``name``    its tag, or its number
    ``tokens``  how many words have it; None if no sentences are known
    ``share``   the part of all words that these are
    ``words``   its most probable words and p(word | state)
    """

    number: int
    name: str | int
    tokens: int | None
    share: float
    words: Sequence[tuple[str, float]]

    def in_a_line(self, n: int = IN_A_LINE) -> str:
        """Its words, one after the other."""
        return " ".join(word for word, _ in self.words[:n])


@dataclass(frozen=True, eq=False)
class StatesShown:
    """All states, the largest first.

    ``fit``     None if the model came from a file
    ``notes``   remarks, each a sentence
    ``scores``  beside gold tags, if there are any
    """

    states: Sequence[StateShown]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    scores: Any = None

    @property
    def outcome(self) -> dict[str, float]:
        """Where the kept run ended; nothing without a fit."""
        return outcome(self.fit)

    def ended(self) -> str:
        """The same in a line."""
        return ended(self.fit)

    def as_tsv(self) -> str:
        """For programs: a state a line, its words between spaces; remarks as #."""
        remarks = [self.signature]
        if self.fit is not None:
            remarks += [str(self.fit.verdict), self.ended()]
        remarks += self.notes
        if self.scores is not None:
            remarks += str(self.scores).splitlines()
        lines = [f"# {remark}" for remark in remarks]
        lines.append("state\ttokens\tshare\twords")
        for one in self.states:
            tokens = "" if one.tokens is None else one.tokens
            lines.append(f"{one.name}\t{tokens}\t{one.share:.4f}\t{one.in_a_line()}")
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        """As JSON can say it."""
        verdict = None if self.fit is None else self.fit.verdict
        told = verdict and {"name": verdict.name.lower(), "sentence": str(verdict)}
        ended = {name: x if math.isfinite(x) else None for name, x in self.outcome.items()}
        gold = {} if self.scores is None else {"gold": asdict(self.scores)}
        states = [
            {
                **{"state": one.name, "tokens": one.tokens, "share": one.share},
                "words": dict(one.words),
            }
            for one in self.states
        ]
        facts = {"signature": self.signature, "verdict": told, **ended}
        return {**facts, "notes": list(self.notes), **gold, "states": states}

    def show(self, console: Console) -> None:
        """In a terminal: a line for each state, then how the run ended."""
        from rich.table import Table
        from rich.text import Text

        from softcount.show.terminal import bar, verdict_line

        largest = max((one.share for one in self.states), default=0.0) or 1.0
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=True)
        table.add_column("state", overflow="fold", max_width=24)
        table.add_column("tokens", justify="right")
        table.add_column("share", justify="right")
        table.add_column("", style="cyan", min_width=10, no_wrap=True)
        table.add_column("words", no_wrap=True, overflow="ellipsis", ratio=1)
        for one in self.states:
            tokens = "" if one.tokens is None else f"{one.tokens:,}"
            length = bar(one.share / largest)
            words = Text(one.in_a_line())
            table.add_row(Text(str(one.name)), tokens, f"{one.share:.1%}", length, words)
        console.print(table)
        for remark in [*self.notes, *([] if self.scores is None else [str(self.scores)])]:
            console.print(Text(remark))
        if self.fit is not None:
            console.print(verdict_line(self.fit.verdict))
            console.print(Text(self.ended()))
        # one line, to be copied whole
        console.print(Text(self.signature, style="dim"), soft_wrap=True)


def states_shown(
    model: Any,
    states: Sequence[Sequence[Any] | None] | None = None,
    notes: Sequence[str] = (),
    scores: Any = None,
) -> StatesShown:
    """The states of a fitted HMM.

    ``states``  what sentences were found to have, as `HMM.predict` says; None where nothing was.
                Without it shares are those that the tables tell in the long run
    """
    names = model.states_
    tokens, shares = _sizes(model, states)
    words = _top_words(model)
    every = [
        StateShown(k, name, None if tokens is None else tokens[k], float(shares[k]), words[k])
        for k, name in enumerate(names)
    ]
    order = sorted(every, key=lambda one: -one.share)
    fit = getattr(model, "fit_", None)
    return StatesShown(order, model.signature_, fit, notes, scores)


def _sizes(model: Any, states: Sequence[Sequence[Any] | None] | None) -> tuple[Any, Array]:
    """How many words each state has, and its share of them."""
    if states is None or not any(states):
        return None, long_run(model)
    counts = Counter(chain.from_iterable(some or () for some in states))
    tokens = [counts[name] for name in model.states_]
    return tokens, np.array(tokens) / sum(tokens)


def _top_words(model: Any) -> list[list[tuple[str, float]]]:
    table, words = model._emissions(), model.words_
    least = _least(model, table)
    best = np.argsort(-table, axis=1, kind="stable")[:, :WORDS]
    return [
        [(one_word(words[w]), float(row[w])) for w in some.tolist() if row[w] > bound]
        for row, some, bound in zip(table, best, least.tolist(), strict=True)
    ]


def _least(model: Any, table: Array) -> Array:
    """What a word must have in each state to be one of its words, and not of smoothing alone.

    p(w | k) = (n_kw + α) / (n_k + α V); n_k is taken to be what the tables say in the long run.
    """
    least = np.full(len(table), SMALLEST)
    added = smoothings(model.smoothing, MOVES, TABLE)[1]
    if model.emissions == "features" or not added:
        return least
    tokens = visits(model.params_, len(table), model.order) * model.often_.sum()
    seldom = min(max(LEAST_SEEN, added / 2.0), SURELY_SEEN) + added
    bounds: Array = np.maximum(least, seldom / (tokens + added * table.shape[1]))
    return bounds


def one_word(word: str) -> str:
    """A word fit for a page or a terminal, cut if it is long."""
    flat = on_one_line(word)
    return flat if len(flat) <= LONGEST_WORD else flat[: LONGEST_WORD - 1] + "…"


def moves(model: Any) -> tuple[Array, Array, Array]:
    """p(first state), p(next state | state) and p(end | state).

    Of order 2 these are means over the state before, as often as it leads here at the start of
    sentences.
    """
    params, k = model.params_, len(model.states_)
    table, start = params["transitions"], params["start"].reshape(-1)
    if model.order == 2:
        before = start[:, None] * params["second"][:, :k]
        weights = before + 1e-9  # so that a state that nothing leads to has a mean, too
        rows = table.reshape(k, k, -1)
        table = (weights[:, :, None] * rows).sum(axis=0) / weights.sum(axis=0)[:, None]
    ends = table[:, k] if table.shape[1] > k else np.zeros(k)
    return start, table[:, :k], ends


def long_run(model: Any) -> Array:
    """The share of each state among the words of many sentences."""
    start, table, ends = moves(model)
    again = table + np.maximum(ends, 1e-3)[:, None] * start
    share = np.full(len(start), 1.0 / len(start))
    for _ in range(200):
        share = share @ again
        share /= share.sum()
    return share


# How hidden states follow each other, as a picture: states on a circle, their likeliest moves.


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


# A page about a hidden Markov model: its states, how they follow each other, sentences.


EXAMPLES, LONGEST_SENTENCE = 20, 60
SHORT, LONG = 4, 30
"""Examples have so many words, if there are any such sentences."""
NEIGHBOURS = 3

SECOND = " States depend on the two before: what is shown are means over the first of them."


def tagging_report(
    model: Any,
    sentences: Any = None,
    n: int = EXAMPLES,
    *,
    method: str = "viterbi",
    title: str = "Hidden states",
) -> str:
    """A page (HTML) about a fitted HMM: states, their words, their moves, example sentences.

    ``sentences``  text to show, as `HMM.predict` takes it
    ``n``          how many example sentences
    ``method``     how their states are found, see `HMM.predict`

    >>> from softcount.hmm import HMM
    >>> text = ["the dog barks", "a cat sleeps"]
    >>> tagging_report(HMM(3).fit(text), text)[:15]
    '<!doctype html>'
    """
    if not hasattr(model, "top_words"):
        raise DataError(
            f"there is no page about a {type(model).__name__}: its states have no words",
            "give a fitted HMM",
        )
    if n < 0:
        raise DataError(f"n={shown(n)} sentences cannot be shown", "give a number from 0 on")
    if sentences is None:
        return page_of(model, states_shown(model), title=title)
    text = sentences.sequences if isinstance(sentences, Tagged) else sentences
    text = text if isinstance(text, Sequences) else sequences(text)
    states = model.predict(text, method=method)
    words = [text.sentence(i) for i in range(len(text))]
    return page_of(model, states_shown(model, states), words, states, n, title=title)


def page_of(
    model: Any,
    states: StatesShown,
    sentences: Sequence[Sequence[str]] = (),
    found: Sequence[Sequence[Any] | None] = (),
    n: int = EXAMPLES,
    *,
    title: str = "Hidden states",
) -> str:
    """The page, with the states of sentences found already (None: there are none)."""
    start, table, ends = moves(model)
    k, v = len(model.states_), len(model.words_)
    tokens = sum(len(some or ()) for some in found)
    n_sentences = f"{len(sentences):,} sentence{'s' * (len(sentences) != 1)}"
    known = f", {tokens:,} words of {n_sentences}" if tokens else ""
    lead = f"{k:,} state{'s' * (k != 1)} over {v:,} different words{known}."
    notes = "".join(f'<p class="scale">{escape(note)}.</p>' for note in states.notes)
    graph = transition_graph(states.states, start, table, ends)
    told = graph_note(k) + SECOND * (model.order == 2)
    body = (
        f'{notes}<h2>How states follow each other</h2><p class="scale">{escape(told)}</p>{graph}'
        f"{_states(states, start, table, ends)}"
        f"{_examples(model, sentences, found, n)}{_end(states, clean(title))}"
    )
    return document(clean(title), lead, body, _style())


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


# states
def _states(states: StatesShown, start: Array, table: Array, ends: Array) -> str:
    names = {one.number: str(one.name) for one in states.states}
    cards = "".join(_card(one, names, start, table, ends) for one in states.states)
    told = "The largest first. Figures: how probable a word is in the state."
    return f'<h2>States</h2><p class="scale">{told}</p><div class="states">{cards}</div>'


def _card(one: StateShown, names: dict[int, str], start: Array, table: Array, ends: Array) -> str:
    k = one.number
    size = f"{one.share:.1%} of words"
    if one.tokens is not None:
        size += f" · {one.tokens:,}"
    after, before = _neighbours(table[k], names), _neighbours(table[:, k], names)
    if ends[k] >= 0.01:
        after.append(f"end of the sentence {ends[k]:.2f}")
    first = f"<p><b>begins</b> {start[k]:.2f} of sentences</p>" if start[k] >= 0.01 else ""
    return (
        f'<section class="state" id="{anchor(k)}" style="--h:{hue(k)}">'
        f"<h3>{escape(_called(one.name))}<small>{size}</small></h3>{bar_table(_words(one))}{first}"
        f"<p><b>then</b> {', '.join(after) or 'nothing'}</p>"
        f"<p><b>most likely after</b> {', '.join(before) or 'nothing'}</p></section>"
    )


def _words(one: StateShown) -> Bars:
    """A state's words, each state on its own scale: some have a thousand, and some have two."""
    rows = bars("", dict(one.words), WORDS)
    scale = "" if rows.full == 1.0 else f" (a full bar is {rows.full:g})"
    return replace(rows, title=f"most probable words{scale}")


def _called(name: str | int) -> str:
    return f"State {name}" if isinstance(name, int) else clean(name)


def _neighbours(chances: Array, names: dict[int, str]) -> list[str]:
    """The likeliest states, with their probabilities, as links."""
    best = np.argsort(-chances, kind="stable")[:NEIGHBOURS].tolist()
    return [
        f'<a href="#{anchor(j)}">{escape(clean(names[j]))}</a> {chances[j]:.2f}'
        for j in best
        if chances[j] >= 0.01
    ]


# sentences
def chosen(lengths: Sequence[int], n: int) -> list[int]:
    """Numbers of sentences of fair length, evenly spread; others if there are none.

    >>> chosen([3, 5, 0, 8, 12, 90, 7], 2), chosen([1, 0], 2)
    ([1, 6], [0])
    """
    fair = [i for i, length in enumerate(lengths) if SHORT <= length <= LONG]
    some = fair or [i for i, length in enumerate(lengths) if length]
    places = np.unique(np.linspace(0, len(some) - 1, min(n, len(some))).round().astype(int))
    return [some[i] for i in places.tolist()]


def _examples(
    model: Any,
    sentences: Sequence[Sequence[str]],
    found: Sequence[Sequence[Any] | None],
    n: int,
) -> str:
    numbers = chosen([len(some or ()) for some in found], n)
    if not numbers:
        return ""
    number = {name: k for k, name in enumerate(model.states_)}
    lines = "".join(
        f'<li dir="auto">{_coloured(sentences[i], found[i] or (), number)}</li>' for i in numbers
    )
    return f'<h2>Sentences</h2><ul class="sentences">{lines}</ul>'


def _coloured(words: Sequence[str], states: Sequence[Any], number: dict[Any, int]) -> str:
    """Words in the colours of their states; names of states beside them, for those are read."""
    some = list(zip(words, states, strict=True))[:LONGEST_SENTENCE]
    told = " ".join(
        f'<a class="w" href="#{anchor(number[state])}" style="--h:{hue(number[state])}">'
        f"<bdi>{escape(one_word(word))}</bdi><small>{escape(clean(state))}</small></a>"
        for word, state in some
    )
    return told + " …" * (len(words) > LONGEST_SENTENCE)


# the end
def _end(states: StatesShown, title: str) -> str:
    beside = ""
    if states.scores is not None:
        beside = f"<h2>Beside gold tags</h2><pre>{escape(str(states.scores))}</pre>"
    head = f"{beside}<h2>How it was learned</h2>"
    if states.fit is None:  # a model from a file has no steps to show
        return head + signed(states.signature)
    told = escape(states.ended().replace("-", "−").replace("log−", "log-"))
    return f'{head}<p class="scale">{told}</p>{ending(states.fit, title)}'
