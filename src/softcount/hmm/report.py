"""HTML report and text overview of hidden Markov models: states, transitions, sentences."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Iterable, Sequence
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
"""Number of words kept for each state, and number shown in its line of an overview."""
SMALLEST = 1e-6
"""Words with a lower probability are not shown."""
LEAST_SEEN, SURELY_SEEN = 0.1, 0.5
"""Bounds on the expected count below which a word is due to smoothing alone, and is not shown."""


@dataclass(frozen=True)
class StateSummary:
    """Summary of a state.

    ``number``  its row in the tables
    ``name``    its tag, or its number
    ``tokens``  number of tokens in this state; None without sentences
    ``share``   proportion of all tokens in this state
    ``words``   its most probable words with p(word | state)
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
        """Join its most probable words into one string."""
        return " ".join(word for word, _ in self.words[:n])

    def make_bars(self) -> Bars:
        """Make bars of its words, on a scale of their own."""
        return make_bars("most probable words", dict(self.words), WORDS, own_scale=True)


@dataclass(frozen=True, eq=False)
class StatesOverview(Overview):
    """Overview of all states, the most frequent first.

    ``fit``     None if the model was loaded from a file
    ``notes``   remarks, one sentence each
    ``scores``  agreement with gold tags; None without these
    """

    states: Sequence[StateSummary]
    signature: str
    fit: Fit | None = None
    notes: Sequence[str] = ()
    scores: Any = None

    def columns(self) -> list[Column]:
        """Return the columns of the table, with a row for each state."""
        names = [str(state.name) for state in self.states]
        tokens = ["" if state.tokens is None else f"{state.tokens:,}" for state in self.states]
        shares = [state.share for state in self.states]
        words = [state.join_words() for state in self.states]
        return [
            Column("state", names, names, "name"),
            Column("tokens", tokens, [text.replace(",", "") for text in tokens]),
            Column("share", [f"{p:.1%}" for p in shares], [f"{p:.4f}" for p in shares]),
            Column("", draw_bars(shares), kind="bar"),
            Column("words", words, words, "words"),
        ]

    def remarks(self) -> list[str]:
        """Return the notes, and the agreement of states with gold tags."""
        return [*self.notes, *([] if self.scores is None else [str(self.scores)])]

    def facts(self) -> dict[str, Any]:
        """Return the notes, the agreement with gold tags, and all states, for JSON."""
        gold = {} if self.scores is None else {"gold": asdict(self.scores)}
        states = [
            {
                **{"state": state.name, "tokens": state.tokens, "share": state.share},
                "words": dict(state.words),
            }
            for state in self.states
        ]
        return {"notes": list(self.notes), **gold, "states": states}


def summarise_states(
    model: HMM,
    states: Iterable[Sequence[Any] | None] | Counter[Any] | None = None,
    notes: Sequence[str] = (),
    scores: Any = None,
) -> StatesOverview:
    """Summarise the states of a fitted HMM.

    ``states``  predicted states of sentences, from `HMM.predict`; None for a sentence without any;
                or how many tokens have each state. Without it, proportions are those of the
                stationary distribution
    """
    tokens = None
    counts = states if isinstance(states, Counter) else count_states(states or ())
    if not counts:
        start, table, ends = read_transitions(model)
        again = table + np.maximum(ends, 1e-3)[:, None] * start
        shares = np.full(len(start), 1.0 / len(start))
        for _ in range(200):  # the stationary distribution, over many sentences
            shares = shares @ again
            shares /= shares.sum()
    else:
        tokens = [counts[name] for name in model.states_]
        shares = np.array(tokens) / sum(tokens)
    # show only words that belong to a state by the text, not by smoothing alone
    added = smoothings(model.smoothing, TRANSITIONS, EMISSIONS)[1]
    seldom = min(max(LEAST_SEEN, added / 2.0), SURELY_SEEN)
    table, vocabulary = model._emission_table(), model.words_
    least = np.maximum(model._find_proba_of_count(seldom), SMALLEST)
    best = np.argsort(-table, axis=1, kind="stable")[:, :WORDS].tolist()
    words = [
        [(shorten_word(vocabulary[w]), float(row[w])) for w in top if row[w] > bound]
        for row, top, bound in zip(table, best, least, strict=True)
    ]
    summaries = [
        StateSummary(k, name, None if tokens is None else tokens[k], float(shares[k]), words[k])
        for k, name in enumerate(model.states_)
    ]
    order = sorted(summaries, key=lambda state: -state.share)
    return StatesOverview(order, model.signature_, getattr(model, "fit_", None), notes, scores)


def count_states(states: Iterable[Sequence[Any] | None]) -> Counter[Any]:
    """Count the tokens that have each state."""
    return Counter(chain.from_iterable(path or () for path in states))


class Transitions(NamedTuple):
    """First-order transition probabilities.

    ``start``  (states,): p(first state)
    ``table``  (states, states): p(next state | state)
    ``ends``   (states,): p(end | state)
    """

    start: FloatArray
    table: FloatArray
    ends: FloatArray


def read_transitions(model: HMM) -> Transitions:
    """Return the transitions of a fitted HMM.

    At order 2, they are averaged over the earlier of the two states, weighted by the frequencies of
    pairs at the start of sentences.
    """
    params, k = model.params_, len(model.states_)
    table, start = params["transitions"], params["start"].reshape(-1)
    if model.order == 2:
        before = start[:, None] * params["second"][:, :k]
        weights = before + 1e-9  # so that the mean is defined for unreachable states too
        rows = table.reshape(k, k, -1)
        table = (weights[:, :, None] * rows).sum(axis=0) / weights.sum(axis=0)[:, None]
    ends = table[:, k] if table.shape[1] > k else np.zeros(k)
    return Transitions(start, table[:, :k], ends)


# Diagram of transitions: states on a circle, arrows for the most probable transitions.


RADIUS, MARGIN = 270.0, 170.0
SMALLEST_NODE, LARGEST_NODE = 9.0, 24.0
WIDEST = 7.0
MOST_TRANSITIONS, LEAST = 2, 0.1
"""Maximum number of transitions drawn per state, and their minimum probability."""
FEW, LEAST_OF_FEW = 5, 0.01
"""Models of at most FEW states show all transitions above this probability, with numbers."""
LABEL = 18
"""Maximum number of letters of the words beside a state."""
NEAR, FAR = 0.9, 0.3
"""Curvature of arrows between neighbours, and across: 0 is through the middle, 1 is straight."""


class _Node(NamedTuple):
    """A circle with a label that points outwards and is never upside down.

    ``state``  None: the start or the end of sentences
    ``at``     its centre, x + i y
    ``size``   its radius
    ``turn``   the rotation of the label in degrees
    ``side``   the end of the label that is next to the circle (SVG ``text-anchor``)
    ``away``   the distance of that end from the centre
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
    """An arrow between nodes, given by their numbers, with its probability."""

    origin: int
    goal: int
    p: float


def choose_hue(k: int) -> int:
    """Return the hue of a state, in degrees: consecutive numbers are far apart in colour.

    >>> choose_hue(0), choose_hue(1), choose_hue(2)
    (0, 138, 275)
    """
    return round(137.508 * k) % 360


def draw_transitions(states: Sequence[StateSummary], transitions: Transitions) -> str:
    """Draw the transition diagram, as an ``<svg>`` element.

    ``states``  in any order; their numbers are the rows and columns of the tables
    """
    start, table, ends = transitions
    k = len(start)
    whole = np.zeros((k + 2, k + 2))  # states by number, then start and end
    whole[:k, :k], whole[k, :k], whole[:k, k + 1] = table, start, ends
    few = k <= FEW
    most, least = (len(whole), LEAST_OF_FEW) if few else (MOST_TRANSITIONS, LEAST)
    radius = min(RADIUS, 72.0 + 24.0 * len(whole))  # keep few states close together
    middle = complex(radius + MARGIN, radius + MARGIN)
    # clockwise round the circle: each state next to its most probable successor, the end last
    order, left = [k], set(range(k))
    while left:
        last = order[-1]
        order.append(min(left, key=lambda n: (-whole[last, n] - whole[n, last], n)))
        left.remove(order[-1])
    order.append(k + 1)
    nodes = {}
    by_number = {state.number: state for state in states}
    for i, n in enumerate(order):
        state, angle = by_number.get(n), 2 * math.pi * (i + 0.5) / len(order) - math.pi / 2
        # areas are proportional to the states' frequencies, within bounds
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
    for origin, goal, p in sorted(
        choose_transitions(whole, most, least), key=lambda arrow: arrow.p
    ):
        path, half = _draw_arrow(nodes[origin], nodes[goal], middle, radius)
        name = f"{nodes[origin].name} → {nodes[goal].name}: {p:.2f}"
        width = max(0.8, WIDEST * p)
        arrows.append({"name": name, "p": p, "width": width, "path": path, "half": half})
    return render(
        "hmm/transitions.svg",
        side=2 * middle.real,
        few=few,
        nodes=[nodes[n] for n in range(k + 2)],
        arrows=arrows,  # the most probable on top
    )


def choose_transitions(
    whole: FloatArray, most: int = MOST_TRANSITIONS, least: float = LEAST
) -> list[Transition]:
    """Choose the most probable transitions from each node.

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
    """Return the path of an arrow, and the position of its number."""
    start, end, size = origin.at, goal.at, goal.size
    if origin is goal:  # a loop on the inner side, where no label is
        inwards = (middle - start) / radius
        far = size + (34.0 if radius == RADIUS else 60.0)  # where there is room for numbers
        out, back = inwards * (0.8 - 0.6j), inwards * (0.8 + 0.6j)
        points = (start + size * out, start + far * out, start + far * back)
        path = "M{} C{} {} {}".format(*map(_write, (*points, start + (size + 2) * back)))
        return path, start + inwards * 0.8 * (size + 3 * far) / 4
    # arcs bend towards the middle, and a little to the left, to separate the two directions
    bend = NEAR - (NEAR - FAR) * abs(end - start) / (2 * radius)
    control = middle + bend * ((start + end) / 2 - middle) + 0.12j * (end - start)
    end -= (size + 2) * (end - control) / (abs(end - control) or 1.0)
    path = "M{} Q{} {}".format(*map(_write, (start, control, end)))
    return path, (start + 2 * control + end) / 4


def _write(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


EXAMPLES, LONGEST_SENTENCE = 20, 60
SHORT, LONG = 4, 30
"""Minimum and maximum number of words of an example, if there are such sentences."""
NEIGHBOURS = 3


def tagging_report(
    model: HMM,
    sentences: Any = None,
    n: int = EXAMPLES,
    *,
    method: str = "viterbi",
    title: str = "Hidden states",
) -> str:
    """Make an HTML page about a fitted HMM: states, words, transitions, example sentences.

    ``sentences``  text for the examples, in any form that `HMM.predict` accepts
    ``n``          number of example sentences
    ``method``     how their states are decoded, see `HMM.predict`

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
        raise DataError(f"n={brief(n)} sentences cannot be shown", "give n ≥ 0")
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
    """Render the page, given the states of sentences (None: a sentence without any)."""
    transitions = read_transitions(model)
    k, v = len(model.states_), len(model.words_)
    tokens = sum(len(path or ()) for path in found)
    known = f", {tokens:,} words of {plural(len(sentences), 'sentence')}" if tokens else ""
    by_name = {state.name: state for state in overview.states}
    by_number = {state.number: state for state in overview.states}
    examples = [
        (
            [
                (shorten_word(word), by_name[state])
                for word, state in zip(sentences[i], found[i] or (), strict=True)
            ][:LONGEST_SENTENCE],
            len(sentences[i]) > LONGEST_SENTENCE,
        )
        for i in choose_sentences([len(path or ()) for path in found], n)
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
    """Return the most probable states, with their probabilities."""
    best = np.argsort(-probabilities, kind="stable")[:NEIGHBOURS].tolist()
    return [(states[j], float(probabilities[j])) for j in best if probabilities[j] >= 0.01]


def choose_sentences(lengths: Sequence[int], n: int) -> list[int]:
    """Choose evenly spaced sentences of moderate length; any non-empty ones if there are none.

    >>> choose_sentences([3, 5, 0, 8, 12, 90, 7], 2), choose_sentences([1, 0], 2)
    ([1, 6], [0])
    """
    moderate = [i for i, length in enumerate(lengths) if SHORT <= length <= LONG]
    pool = moderate or [i for i, length in enumerate(lengths) if length]
    places = np.unique(np.linspace(0, len(pool) - 1, min(n, len(pool))).round().astype(int))
    return [pool[i] for i in places.tolist()]
