"""A page about a hidden Markov model: its states, how they follow each other, sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from softcount.corpus.sequences import Sequences, sequences
from softcount.corpus.tagged import Tagged
from softcount.errors import DataError, shown
from softcount.show.finding import Bars, bars
from softcount.show.report import bar_table, document, ending, signed
from softcount.show.sequences_graph import anchor, graph_note, hue, transition_graph
from softcount.show.sequences_states import (
    WORDS,
    StateShown,
    StatesShown,
    moves,
    one_word,
    states_shown,
)
from softcount.show.snippets import clean
from softcount.types import Array

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

    >>> from softcount.models.sequences import HMM
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
    return resources.files(__package__).joinpath("sequences.css").read_text(encoding="utf-8")


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
