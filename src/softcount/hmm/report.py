"""Hidden Markov models as a page and as an overview: states, their transitions, sentences."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcount.core.errors import DataError, brief
from softcount.core.parameters import smoothings
from softcount.core.types import Fit, FloatArray
from softcount.hmm.core import TRANSITIONS
from softcount.hmm.emissions import EMISSIONS
from softcount.report.finding import Bars, describe_outcome, make_bars
from softcount.report.page import render, render_page
from softcount.report.tables import Column, Overview, draw_bars
from softcount.report.text import clean, plural, shorten_word
from softcount.text.sequences import Sequences, sequences
from softcount.text.tagged import Tagged

if TYPE_CHECKING:
    from softcount.hmm.estimators import HMM

WORDS, WORDS_IN_LINE = 10, 8
"""Number of words that are kept of a state, and that its line of an overview shows."""
SMALLEST = 1e-6
"""Words with a lower probability are not shown."""
LEAST_SEEN, SURELY_SEEN = 0.1, 0.5
"""Bounds of the count below which a word is in a state by smoothing alone, and is not shown."""


@dataclass(frozen=True)
class StateSummary:
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

    @property
    def hue(self) -> int:
        return choose_hue(self.number)

    @property
    def heading(self) -> str:
        return f"State {self.name}" if isinstance(self.name, int) else self.name

    def join_words(self, n: int = WORDS_IN_LINE) -> str:
        """Its words, one after the other."""
        return " ".join(word for word, _ in self.words[:n])

    def make_bars(self) -> Bars:
        """Its words as bars on a scale of its own."""
        return make_bars("most probable words", dict(self.words), WORDS, own_scale=True)


@dataclass(frozen=True, eq=False)
class StatesOverview(Overview):
    """All states, the largest first.

    ``fit``     None if the model came from a file
    ``notes``   remarks, each a sentence
    ``scores``  beside gold tags, if there are any
    """

    states: Sequence[StateSummary]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    scores: Any = None

    def columns(self) -> list[Column]:
        """A row for each state."""
        names = [str(one.name) for one in self.states]
        tokens = ["" if one.tokens is None else f"{one.tokens:,}" for one in self.states]
        shares = [one.share for one in self.states]
        words = [one.join_words() for one in self.states]
        return [
            Column("state", names, names, "name"),
            Column("tokens", tokens, [text.replace(",", "") for text in tokens]),
            Column("share", [f"{p:.1%}" for p in shares], [f"{p:.4f}" for p in shares]),
            Column("", draw_bars(shares), kind="bar"),
            Column("words", words, words, "words"),
        ]

    def remarks(self) -> list[str]:
        """The notes, and how states agree with gold tags."""
        return [*self.notes, *([] if self.scores is None else [str(self.scores)])]

    def facts(self) -> dict[str, Any]:
        """The notes, the agreement with gold tags, and all states."""
        gold = {} if self.scores is None else {"gold": asdict(self.scores)}
        states = [
            {
                **{"state": one.name, "tokens": one.tokens, "share": one.share},
                "words": dict(one.words),
            }
            for one in self.states
        ]
        return {"notes": list(self.notes), **gold, "states": states}


def summarise_states(
    model: HMM,
    states: Sequence[Sequence[Any] | None] | None = None,
    notes: Sequence[str] = (),
    scores: Any = None,
) -> StatesOverview:
    """The states of a fitted HMM.

    ``states``  what sentences were found to have, as `HMM.predict` says; None where nothing was.
                Without it shares are those that the tables give in the long run
    """
    tokens = None
    if states is None or not any(states):
        start, table, ends = read_transitions(model)
        again = table + np.maximum(ends, 1e-3)[:, None] * start
        shares = np.full(len(start), 1.0 / len(start))
        for _ in range(200):  # the stationary distribution, over many sentences
            shares = shares @ again
            shares /= shares.sum()
    else:
        counts = Counter(chain.from_iterable(some or () for some in states))
        tokens = [counts[name] for name in model.states_]
        shares = np.array(tokens) / sum(tokens)
    # words are shown that belong to a state by the text, and not by smoothing alone
    added = smoothings(model.smoothing, TRANSITIONS, EMISSIONS)[1]
    seldom = min(max(LEAST_SEEN, added / 2.0), SURELY_SEEN)
    table, vocabulary = model._emission_table(), model.words_
    least = np.maximum(model._find_proba_of_count(seldom), SMALLEST)
    best = np.argsort(-table, axis=1, kind="stable")[:, :WORDS].tolist()
    words = [
        [(shorten_word(vocabulary[w]), float(row[w])) for w in some if row[w] > bound]
        for row, some, bound in zip(table, best, least, strict=True)
    ]
    every = [
        StateSummary(k, name, None if tokens is None else tokens[k], float(shares[k]), words[k])
        for k, name in enumerate(model.states_)
    ]
    order = sorted(every, key=lambda one: -one.share)
    return StatesOverview(order, model.signature_, getattr(model, "fit_", None), notes, scores)


class Transitions(NamedTuple):
    """How states follow each other.

    ``start``  (states): p(first state)
    ``table``  (states, states): p(next state | state)
    ``ends``   (states): p(end | state)
    """

    start: FloatArray
    table: FloatArray
    ends: FloatArray


def read_transitions(model: HMM) -> Transitions:
    """The transitions of a fitted HMM.

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
    return Transitions(start, table[:, :k], ends)


# How states follow each other, as a picture: states on a circle, their likeliest transitions.


RADIUS, MARGIN = 270.0, 170.0
SMALLEST_NODE, LARGEST_NODE = 9.0, 24.0
WIDEST = 7.0
MOST_TRANSITIONS, LEAST = 2, 0.1
"""Number of transitions that a state shows, and their smallest probability."""
FEW, LEAST_OF_FEW = 5, 0.01
"""Models of at most FEW states show all transitions above this probability, with figures."""
LABEL = 18
"""Number of letters of words beside a state."""
NEAR, FAR = 0.9, 0.3
"""Where arrows pass between neighbours, and across: 0 is the middle, 1 straight between states."""


class _Node(NamedTuple):
    """A circle with a label that points outwards and never stands on its head.

    ``state``  None: the start or the end of sentences
    ``at``     its centre, x + i y
    ``side``   the end of the label that is beside the circle; it is ``away`` from its centre
    """

    name: str
    words: str
    state: StateSummary | None
    at: complex
    size: float
    turn: float
    side: str
    away: float


class Transition(NamedTuple):
    """An arrow between nodes, by their numbers."""

    origin: int
    goal: int
    p: float


def choose_hue(k: int) -> int:
    """The colour of a state, as an angle: neighbours in number are far apart in colour.

    >>> choose_hue(0), choose_hue(1), choose_hue(2)
    (0, 138, 275)
    """
    return round(137.508 * k) % 360


def draw_transitions(states: Sequence[StateSummary], transitions: Transitions) -> str:
    """How states follow each other, as an ``<svg>`` element.

    ``states``  in any order; rows and columns of the tables are their numbers
    """
    start, table, ends = transitions
    k = len(start)
    whole = np.zeros((k + 2, k + 2))  # states by number, then start and end
    whole[:k, :k], whole[k, :k], whole[:k, k + 1] = table, start, ends
    few = k <= FEW
    most, least = (len(whole), LEAST_OF_FEW) if few else (MOST_TRANSITIONS, LEAST)
    radius = min(RADIUS, 72.0 + 24.0 * len(whole))  # a few do not stand miles apart
    middle = complex(radius + MARGIN, radius + MARGIN)
    # round the circle, clockwise: each beside what it leads to, the end last
    order, left = [k], set(range(k))
    while left:
        last = order[-1]
        order.append(min(left, key=lambda n: (-whole[last, n] - whole[n, last], n)))
        left.remove(order[-1])
    order.append(k + 1)
    nodes = {}
    by_number = {one.number: one for one in states}
    for i, n in enumerate(order):
        state, angle = by_number.get(n), 2 * math.pi * (i + 0.5) / len(order) - math.pi / 2
        # areas are as shares, but for the smallest and the largest
        size = max(SMALLEST_NODE, min(LARGEST_NODE, 60.0 * math.sqrt(state.share if state else 0)))
        turn, away, side = math.degrees(angle), size + 6, "start"
        if math.cos(angle) < 0.0:
            turn, away, side = turn - 180.0, -away, "end"
        words = state.join_words(3) if state else ""
        words = words if len(words) <= LABEL else words[: LABEL - 1].rstrip() + "…"
        name = shorten_word(str(state.name)) if state else ("start", "end")[n - k]
        at = middle + cmath.rect(radius, angle)
        nodes[n] = _Node(name, words, state, at, size, turn, side, away)
    arrows = []
    for origin, goal, p in sorted(choose_transitions(whole, most, least), key=lambda one: one.p):
        path, half = _draw_arrow(nodes[origin], nodes[goal], middle, radius)
        name = f"{nodes[origin].name} → {nodes[goal].name}: {p:.2f}"
        width = max(0.8, WIDEST * p)
        arrows.append({"name": name, "p": p, "width": width, "path": path, "half": half})
    return render(
        "hmm/transitions.svg",
        side=2 * middle.real,
        few=few,
        nodes=[nodes[n] for n in range(k + 2)],
        arrows=arrows,  # the likeliest on top
    )


def choose_transitions(
    whole: FloatArray, most: int = MOST_TRANSITIONS, least: float = LEAST
) -> list[Transition]:
    """The likeliest transitions from each node.

    >>> for transition in choose_transitions(np.array([[0.05, 0.95], [0.5, 0.5]])):
    ...     print(transition)
    Transition(origin=0, goal=1, p=0.95)
    Transition(origin=1, goal=0, p=0.5)
    Transition(origin=1, goal=1, p=0.5)
    """
    best = np.argsort(-whole, axis=1, kind="stable")[:, :most]
    return [
        Transition(i, j, float(whole[i, j]))
        for i, row in enumerate(best.tolist())
        for j in row
        if whole[i, j] >= least
    ]


def _draw_arrow(origin: _Node, goal: _Node, middle: complex, radius: float) -> tuple[str, complex]:
    """The path of an arrow, and the point where its figure stands."""
    start, end, size = origin.at, goal.at, goal.size
    if origin is goal:  # a loop on the inner side, where no label is
        inwards = (middle - start) / radius
        far = size + (34.0 if radius == RADIUS else 60.0)  # where there is room for figures
        out, back = inwards * (0.8 - 0.6j), inwards * (0.8 + 0.6j)
        points = (start + size * out, start + far * out, start + far * back)
        path = "M{} C{} {} {}".format(*map(_write, (*points, start + (size + 2) * back)))
        return path, start + inwards * 0.8 * (size + 3 * far) / 4
    # an arc bends towards the middle, and a little to the left: there and back are two
    bend = NEAR - (NEAR - FAR) * abs(end - start) / (2 * radius)
    control = middle + bend * ((start + end) / 2 - middle) + 0.12j * (end - start)
    end -= (size + 2) * (end - control) / (abs(end - control) or 1.0)
    path = "M{} Q{} {}".format(*map(_write, (start, control, end)))
    return path, (start + 2 * control + end) / 4


def _write(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


EXAMPLES, LONGEST_SENTENCE = 20, 60
SHORT, LONG = 4, 30
"""Fewest and most words of an example, if there are such sentences."""
NEIGHBOURS = 3


def tagging_report(
    model: HMM,
    sentences: Any = None,
    n: int = EXAMPLES,
    *,
    method: str = "viterbi",
    title: str = "Hidden states",
) -> str:
    """A page (HTML) about a fitted HMM: states, their words and transitions, example sentences.

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
        raise DataError(f"n={brief(n)} sentences cannot be shown", "give a number from 0 on")
    if sentences is None:
        return states_page(model, summarise_states(model), title=title)
    text = sentences.sequences if isinstance(sentences, Tagged) else sentences
    text = text if isinstance(text, Sequences) else sequences(text)
    states = model.predict(text, method=method)
    words = [text.sentence(i) for i in range(len(text))]
    return states_page(model, summarise_states(model, states), words, states, n, title=title)


def states_page(
    model: HMM,
    overview: StatesOverview,
    sentences: Sequence[Sequence[str]] = (),
    found: Sequence[Sequence[Any] | None] = (),
    n: int = EXAMPLES,
    *,
    title: str = "Hidden states",
) -> str:
    """The page, given the states of sentences (None: a sentence without any)."""
    transitions = read_transitions(model)
    k, v = len(model.states_), len(model.words_)
    tokens = sum(len(some or ()) for some in found)
    known = f", {tokens:,} words of {plural(len(sentences), 'sentence')}" if tokens else ""
    by_name = {one.name: one for one in overview.states}
    by_number = {one.number: one for one in overview.states}
    examples = [
        (
            [
                (shorten_word(word), by_name[state])
                for word, state in zip(sentences[i], found[i] or (), strict=True)
            ][:LONGEST_SENTENCE],
            len(sentences[i]) > LONGEST_SENTENCE,
        )
        for i in choose_sentences([len(some or ()) for some in found], n)
    ]
    return render_page(
        "hmm/report.html",
        clean(title),
        f"{plural(k, 'state')} over {v:,} different words{known}.",
        overview=overview,
        order=model.order,
        few=FEW if k <= FEW else 0,
        least=LEAST_OF_FEW if k <= FEW else LEAST,
        most=MOST_TRANSITIONS,
        graph=draw_transitions(overview.states, transitions),
        start=transitions.start,
        ends=transitions.ends,
        after=[_find_neighbours(row, by_number) for row in transitions.table],
        before=[_find_neighbours(column, by_number) for column in transitions.table.T],
        examples=examples,
        outcome=describe_outcome(overview.outcome).replace("-", "−").replace("log−", "log-"),
    )


def _find_neighbours(
    probabilities: FloatArray, states: dict[int, StateSummary]
) -> list[tuple[StateSummary, float]]:
    """The likeliest states, with their probabilities."""
    best = np.argsort(-probabilities, kind="stable")[:NEIGHBOURS].tolist()
    return [(states[j], float(probabilities[j])) for j in best if probabilities[j] >= 0.01]


def choose_sentences(lengths: Sequence[int], n: int) -> list[int]:
    """Numbers of sentences of fair length, evenly spread; others if there are none.

    >>> choose_sentences([3, 5, 0, 8, 12, 90, 7], 2), choose_sentences([1, 0], 2)
    ([1, 6], [0])
    """
    fair = [i for i, length in enumerate(lengths) if SHORT <= length <= LONG]
    some = fair or [i for i, length in enumerate(lengths) if length]
    places = np.unique(np.linspace(0, len(some) - 1, min(n, len(some))).round().astype(int))
    return [some[i] for i in places.tolist()]
