"""Charts of a grammar with many rules from which a coarse grammar has left out what is improbable.

The coarse grammar has classes of symbols in place of symbols. Where p(class | sentence) of a cell,
times the symbol's share of what its class has in this cell, is too small, the symbol is left out
(Charniak et al. 2006, "Multilevel coarse-to-fine PCFG parsing"). A sentence that then has no
derivation is gone through again with nothing left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import lean
from softcount.kernels.rule_charts import (
    TINY,
    Chart,
    Grammar,
    Room,
    Tally,
    Text,
    Words,
    inside,
    log_of,
    room_for,
    sifted_inside,
    whole,
)
from softcount.kernels.rule_outside import outside
from softcount.kernels.rule_sieve import Sieve
from softcount.types import Array


class Coarse(NamedTuple):
    """A grammar of classes.

    ``least``    what is less probable is left out; 0: nothing
    ``classes``  of symbols
    ``priors``   p(symbol | class)
    ``grammar``, ``words``  of classes in place of symbols
    """

    least: float
    classes: Array
    priors: Array
    grammar: Grammar
    words: Words


@lean
def _sieve(s: int, text: Text, coarse: Coarse, room: Room) -> Sieve:
    """What the coarse grammar thinks of a sentence."""
    n, grammar = text.indptr[s + 1] - text.indptr[s], coarse.grammar
    n_classes = len(grammar.joins.wide)
    shares = np.zeros(n * (n + 1) // 2 * n_classes)
    chart = inside(s, text, grammar, coarse.words, room)
    total = whole(n, grammar.root, grammar.best, chart)
    if total >= TINY:
        unused = Tally(
            np.zeros(0),
            np.zeros(len(grammar.root)),
            np.zeros(len(grammar.joins.parent)),
            np.zeros(0),
            np.zeros(len(coarse.words.symbols)),
            np.zeros(0),
        )
        out = outside(s, 1.0 / total, text, grammar, coarse.words, chart, room, unused)
        for c in range(len(chart.begins)):
            for e in range(chart.begins[c], chart.ends[c]):
                shares[c * n_classes + chart.symbols[e]] = out[e]
    return Sieve(coarse.least, coarse.classes, coarse.priors, shares, np.zeros(n_classes))


@lean
def coarse_room(first: int, last: int, text: Text, coarse: Coarse) -> Room:
    """Room for the charts of classes."""
    return room_for(first, last if coarse.least > 0.0 else first, text.indptr, coarse.grammar)


@lean
def chart_of(
    s: int,
    text: Text,
    grammar: Grammar,
    words: Words,
    room: Room,
    coarse: Coarse,
    coarse_room: Room,
    left_out: Array,
) -> Chart:
    """c of a sentence, of what is not left out; and count this: see `Tally`."""
    if not coarse.least > 0.0:
        return inside(s, text, grammar, words, room)
    sieve = _sieve(s, text, coarse, coarse_room)
    chart, made = sifted_inside(s, text, grammar, words, room, sieve)
    n, stayed = text.indptr[s + 1] - text.indptr[s], 0
    if not whole(n, grammar.root, grammar.best, chart) >= TINY:
        chart = inside(s, text, grammar, words, room)
        left_out[2] += int(whole(n, grammar.root, grammar.best, chart) >= TINY)
        return chart
    for c in range(len(chart.begins)):
        stayed += chart.ends[c] - chart.begins[c]
    left_out[0] += made
    left_out[1] += made - stayed
    return chart


@lean
def gone_through(
    first: int,
    last: int,
    text: Text,
    grammar: Grammar,
    words: Words,
    weights: Array,
    tally: Tally,
    counting: bool,
    coarse: Coarse,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if wanted, what it is expected to use.

    Sentences without words are passed over; of those that are impossible, nothing is counted.
    """
    room = room_for(first, last, text.indptr, grammar)
    more_room = coarse_room(first, last, text, coarse)
    for s in range(first, last):
        n = text.indptr[s + 1] - text.indptr[s]
        if n == 0:
            continue
        chart = chart_of(s, text, grammar, words, room, coarse, more_room, tally.left_out)
        total = whole(n, grammar.root, grammar.best, chart)
        tally.logs[s] = log_of(total, n, chart.powers)
        if counting and total >= TINY and weights[s] > 0.0:
            outside(s, weights[s] / total, text, grammar, words, chart, room, tally)
