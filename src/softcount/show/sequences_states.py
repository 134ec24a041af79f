"""What there is to show of hidden states, the same for the page, the terminal and programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.models.sequences.core import MOVES
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.tables import visits
from softcount.models.settings import smoothings
from softcount.show.finding import ended, outcome
from softcount.show.snippets import on_one_line
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
