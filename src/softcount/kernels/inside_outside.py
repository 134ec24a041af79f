"""Inside and outside of grammars in Chomsky normal form in which any rule may be.

β(A, i, j) is the chance that A becomes the words i to j. Of the spans that two neighbours make up,
products of symbols are added up first, and rules applied to the sums:

    M(B, C) = Σ_m β(B, i, m) β(C, m, j)            β(A, i, j) = Σ_BC R(A, B, C) M(B, C)

(Baker 1979). Outside goes the other way. With ω = ∂ log p / ∂β, from the root down,

    W(B, C) = Σ_A ω(A, i, j) R(A, B, C)
    ω(B, i, m) += Σ_C W(B, C) β(C, m, j)           ω(C, m, j) += Σ_B β(B, i, m) W(B, C)

ω ∘ β are posteriors and Σ ω(A) M(B, C) R(A, B, C) expected rules. Whoever weighs a sentence weighs
ω of its root. Where one of two neighbours is a leaf, all that its word does to the spans beside it
is in a table of that word, made once for all spans that begin with it (and so for those that end),

    F(C, A) = Σ_B β(B, i, i + 1) R(A, B, C)        β(A, i, j) += Σ_C F(C, A) β(C, i + 1, j)

and G(C, A) = Σ_j ω(A, i, j) β(C, i + 1, j) is all that outside needs for the word and its rules.
These are products of matrices (`softcount.kernels.table_products`), of some spans of one width at a
time, from whichever sentences they come. Chances of words are divided by the largest of each word;
for powers of two see `softcount.kernels.span_pairs`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.chart_steps import (
    CHUNK,
    Grammar,
    Rooms,
    applied,
    down,
    down_beside,
    down_to_words,
    rooms_for,
    roomy,
    turned,
    up,
    up_beside,
    words_beside,
)
from softcount.kernels.jit import njit, part
from softcount.kernels.span_pairs import EMPTY, Charts, cell, factors_of, power_of
from softcount.kernels.table_products import copy_row
from softcount.types import Array

LEAST = -1010
"""What is below 2 to this power, beside the largest product of two spans, is nothing."""
LEAST_SINGLE = -100
"""The same in float32, whose smaller numbers have fewer digits; and so for words and roots."""


class Text(NamedTuple):
    """Sentences: those to be gone through, in an ``order``, and what is known of their spans.

    ``rows``     each token's row of the ``table`` of p(word | preterminal)
    ``limits``   where the ``sets`` of each sentence's spans begin; empty: nothing is known
    ``allowed``  (sets, nonterminals), ones and zeros
    """

    order: Array
    indptr: Array
    rows: Array
    table: Array
    weights: Array
    limits: Array
    sets: Array
    allowed: Array


class Tally(NamedTuple):
    """What is counted: log p of sentences, roots, words (by ``into``); rules, still to be
    multiplied by their chances."""

    logs: Array
    root: Array
    single: Array
    words: Array
    into: Array
    leaves: Array
    leaf_first: Array
    leaf_last: Array
    spans: Array


def _charts(first: int, last: int, text: Text, grammar: Grammar) -> Charts:
    """Charts of sentences ``order[first]`` to ``order[last − 1]``, all zeros."""
    own = text.order[first:last]
    lengths = text.indptr[own + 1] - text.indptr[own]
    n_spans = lengths * (lengths - 1) // 2
    kind = grammar.root.dtype
    return Charts(
        lengths,
        np.cumsum(lengths) - lengths,
        np.cumsum(n_spans) - n_spans,
        roomy(lengths.sum(), len(grammar.single), kind),
        np.zeros((n_spans.sum(), len(grammar.root)), kind),
        np.full(n_spans.sum(), EMPTY, np.int64),
    )


@part
def _too_small(number: float, like: Array) -> bool:
    """Whether float32, if numbers are such, has not all digits of a number."""
    return like.itemsize < 8 and number < math.ldexp(1.0, LEAST_SINGLE)


@part
def _load(first: int, text: Text, c: Charts, logs: Array) -> None:
    """Chances of words, the largest of each being one; its logarithm goes to ``logs``."""
    for s in range(len(c.lengths)):
        sentence = text.order[first + s]
        for i in range(c.lengths[s]):
            row, top = text.rows[text.indptr[sentence] + i], 0.0
            for k in range(text.table.shape[1]):
                top = max(top, text.table[row, k])
            may_be = top > 0.0 and not _too_small(top, text.table)
            logs[sentence] += math.log(top) if may_be else -np.inf
            if may_be:
                for k in range(text.table.shape[1]):
                    c.leaves[c.leaf_of[s] + i, k] = text.table[row, k] / top


@part
def _set_of(s: int, w: int, i: int, first: int, text: Text, n: int) -> int:
    """What is known of a span."""
    if not len(text.sets):
        return 0
    return int(text.sets[text.limits[text.order[first + s]] + cell(n, w, i)])


@part
def _of_width(w: int, first: int, text: Text, c: Charts, found: bool, rooms: Rooms) -> int:
    """The spans of w words that may be, or that were found to be; gives their number."""
    n = 0
    for s in range(len(c.lengths)):
        for i in range(c.lengths[s] - w + 1):
            known, some = _set_of(s, w, i, first, text, c.lengths[s]), False
            for k in range(text.allowed.shape[1]):
                some |= text.allowed[known, k] > 0.0
            if some and (not found or power_of(w, i, s, c) < EMPTY):
                rooms.sentences[n], rooms.starts[n] = s, i
                n += 1
    return n


@part
def _first_power(w: int, i: int, s: int, c: Charts) -> int:
    """The power at which no product of two that make up a span is above one."""
    least = power_of(w - 1, i + 1, s, c)
    for m in range(2, w):
        least = min(least, power_of(m, i, s, c) + power_of(w - m, i + m, s, c))
    return int(least)


@njit
def _filled(
    first: int,
    text: Text,
    c: Charts,
    grammar: Grammar,
    best: bool,
    rooms: Rooms,
    logs: Array,
) -> None:
    """β of all spans; or the chance of the best tree of each."""
    _load(first, text, c, logs)
    for last in range(2):
        rules = grammar.leaf_last.given if last else grammar.leaf_first.given
        tables = rooms.leaf_last if last else rooms.leaf_first
        depth = len(rules) // (tables.shape[1] // rules.shape[1] - 1)
        applied(len(c.leaves), c.leaves, rules, depth, best, tables)
    for w in range(2, rooms.factors.shape[1]):
        n_spans = _of_width(w, first, text, c, False, rooms)
        pairs, at = (grammar.leaves, rooms.leaves) if w == 2 else (grammar.spans, rooms.spans)
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            for r in range(q, q + n):
                s, i = rooms.sentences[r], rooms.starts[r]
                c.powers[c.span_of[s] + cell(c.lengths[s], w, i)] = _first_power(w, i, s, c)
            factors_of(w, q, n, c, rooms)
            if w == 3:
                rooms.some[:] = 0.0
            else:
                up(w, q, n, c, pairs, best, at, rooms)
            if w > 2:
                up_beside(w, q, n, c, best, rooms)
            _store(w, q, n, first, text, rooms, c)


def inside(
    first: int, last: int, text: Text, grammar: Grammar, best: bool, logs: Array
) -> tuple[Charts, Rooms]:
    """Charts of sentences ``order[first]`` to ``order[last − 1]``; ``logs`` gets their words'."""
    c = _charts(first, last, text, grammar)
    rooms = rooms_for(c, grammar)
    _filled(first, text, c, grammar, best, rooms, logs)
    return c, rooms


@part
def _store(w: int, q: int, n: int, first: int, text: Text, rooms: Rooms, c: Charts) -> None:
    """Put β of spans where it belongs, as far as its symbols may be, the largest of each span
    being below one by less than a power of two."""
    some = rooms.some
    for r in range(n):
        s, i = rooms.sentences[q + r], rooms.starts[q + r]
        known = _set_of(s, w, i, first, text, c.lengths[s])
        place, top = c.span_of[s] + cell(c.lengths[s], w, i), 0.0
        for k in range(some.shape[1]):
            some[r, k] *= text.allowed[known, k]
            top = max(top, some[r, k])
        power = math.frexp(top)[1]
        if top == 0.0 or power < LEAST or _too_small(top, some):
            c.powers[place] = EMPTY
            continue
        c.powers[place] -= power
        copy_row(c.spans, place, some, r, some.dtype.type(math.ldexp(1.0, -power)))


def _at_root(
    own: Array, text: Text, c: Charts, out: Charts, grammar: Grammar, tally: Tally
) -> None:
    """log p of sentences; ω of their roots, and expected ones."""
    tops = c.span_of + c.lengths * (c.lengths - 1) // 2 - 1
    longer = (c.lengths > 1, tops, grammar.root, c.spans, out.spans, tally.root)
    single = (c.lengths == 1, c.leaf_of, grammar.single, c.leaves, out.leaves, tally.single)
    no_powers = np.zeros(len(c.leaves), np.int64)
    for which, places, chances, beta, omega, counts in (longer, single):
        some, at = own[which], places[which]
        shares = chances * beta[at]
        totals = shares.sum(axis=1, dtype=np.float64)
        if shares.itemsize < 8:  # as `_too_small` says
            totals[totals < 2.0**LEAST_SINGLE] = 0.0
        powers = (no_powers if beta is c.leaves else c.powers)[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            tally.logs[some] += np.log(totals) - powers * math.log(2.0)
            weights = np.where(totals > 0.0, text.weights[some] / totals, 0.0)[:, None]
        omega[at] = chances * weights
        counts += (shares * weights).sum(axis=0)


@part
def _limit(w: int, first: int, text: Text, out: Charts) -> None:
    """Spans of w words count as far as their symbols may be."""
    for s in range(len(out.lengths)):
        for i in range(out.lengths[s] - w + 1):
            known = _set_of(s, w, i, first, text, out.lengths[s])
            place = out.span_of[s] + cell(out.lengths[s], w, i)
            for k in range(out.spans.shape[1]):
                out.spans[place, k] *= text.allowed[known, k]


@njit
def _outside(
    first: int,
    text: Text,
    c: Charts,
    out: Charts,
    grammar: Grammar,
    rooms: Rooms,
    counts: tuple[Array, Array, Array, Array],
) -> None:
    """ω of all spans and leaves, and expected rules."""
    turned(rooms.leaf_first, c.spans.shape[1])
    turned(rooms.leaf_last, c.spans.shape[1])
    for w in range(rooms.factors.shape[1] - 1, 1, -1):
        n_spans = _of_width(w, first, text, c, True, rooms)
        _limit(w, first, text, out)
        pairs, at = (grammar.leaves, rooms.leaves) if w == 2 else (grammar.spans, rooms.spans)
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            factors_of(w, q, n, c, rooms)
            for r in range(n):
                s = rooms.sentences[q + r]
                place = c.span_of[s] + cell(c.lengths[s], w, rooms.starts[q + r])
                copy_row(rooms.some, r, out.spans, place, out.spans.dtype.type(1.0))
            if w != 3:
                down(w, q, n, c, out, pairs, at, rooms, counts[0 if w == 2 else 3])
            if w > 2:
                down_beside(w, q, n, c, out, rooms)
    for last in range(2):
        back = grammar.leaf_last.back if last else grammar.leaf_first.back
        tables = rooms.leaf_last if last else rooms.leaf_first
        words_beside(last, c, out, rooms.spans, tables)
        down_to_words(tables, back, c, out, rooms.words, counts[1 + last])


@njit
def _add_rows(some: Array, numbers: Array, into: Array) -> None:
    for r in range(len(some)):
        for k in range(some.shape[1]):
            into[numbers[r], k] += some[r, k]


def both_ways(
    first: int, last: int, text: Text, grammar: Grammar, tally: Tally, counting: bool
) -> tuple[Charts, Charts]:
    """β and, if there is counting, ω of sentences ``order[first]`` to ``order[last − 1]``, none of
    them empty, together; the tally gets log p of each and, if wanted, what is counted."""
    c, rooms = inside(first, last, text, grammar, False, tally.logs)
    out = c._replace(leaves=np.zeros_like(c.leaves), spans=np.zeros_like(c.spans))
    own = text.order[first:last]
    _at_root(own, text, c, out, grammar, tally)
    if counting:
        into = (tally.leaves, tally.leaf_first, tally.leaf_last, tally.spans)
        counts: Any = tuple(np.zeros(some.shape, grammar.root.dtype) for some in into)
        _outside(first, text, c, out, grammar, rooms, counts)
        for total, some in zip(into, counts, strict=True):
            total += some
        tokens = np.repeat(text.indptr[own] - c.leaf_of, c.lengths) + np.arange(len(c.leaves))
        _add_rows(out.leaves * c.leaves, tally.into[tokens], tally.words)
    return c, out
