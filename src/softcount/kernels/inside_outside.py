"""Inside and outside of grammars in Chomsky normal form in which any rule may be.

β(A, i, j) is the chance that A becomes the words i to j. Of the spans that two neighbours make up,
products of symbols are added up first, and rules applied to the sums:

    M(B, C) = Σ_m β(B, i, m) β(C, m, j)            β(A, i, j) = Σ_BC R(A, B, C) M(B, C)

(Baker 1979). Outside goes the other way. With ω = ∂ log p / ∂β, from the root down,

    W(B, C) = Σ_A ω(A, i, j) R(A, B, C)
    ω(B, i, m) += Σ_C W(B, C) β(C, m, j)           ω(C, m, j) += Σ_B β(B, i, m) W(B, C)

ω ∘ β are posteriors and Σ ω(A) M(B, C) R(A, B, C) expected rules. Whoever weighs a sentence weighs
ω of its root. All of these are products of matrices (`softcount.kernels.products`), of some spans
of one width at a time, from whichever sentences they come. Chances of words are divided by the
largest of each word; for powers of two see `softcount.kernels.span_pairs`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.chart_steps import CHUNK, Grammar, Room, Spans, down, room_for, up
from softcount.kernels.jit import njit
from softcount.kernels.span_pairs import LEAF_FIRST, LEAVES, SPANS, Charts, cell
from softcount.types import Array

EMPTY = 1 << 20
"""The power of spans of a width of which there are none: they count for nothing beside others."""


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


@njit
def _charts(first: int, last: int, text: Text, grammar: Grammar) -> Charts:
    """Charts of sentences ``order[first]`` to ``order[last − 1]``, all zeros."""
    size = last - first
    lengths, leaf_of, span_of = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    leaves = spans = 0
    for s in range(size):
        n = text.indptr[text.order[first + s] + 1] - text.indptr[text.order[first + s]]
        lengths[s], leaf_of[s], span_of[s] = n, leaves, spans
        leaves += n
        spans += n * (n - 1) // 2
    kind = grammar.root.dtype
    return Charts(
        lengths,
        leaf_of,
        span_of,
        np.zeros((leaves, len(grammar.single)), kind),
        np.zeros((spans, len(grammar.root)), kind),
        np.zeros((size, lengths.max() + 1), np.int64),
    )


@njit
def _rooms(longest: int, grammar: Grammar) -> tuple[Room, Room, Room, Room]:
    """For each kind of pairs."""
    k, t, like = len(grammar.root), len(grammar.single), grammar.root
    return (
        room_for(grammar.leaves, 1, t, like),
        room_for(grammar.leaf_first, 1, t, like),
        room_for(grammar.leaf_last, 1, k, like),
        room_for(grammar.spans, longest, k, like),
    )


@njit
def _load(first: int, text: Text, c: Charts, logs: Array) -> None:
    """Chances of words, the largest of each being one; its logarithm goes to ``logs``."""
    for s in range(len(c.lengths)):
        sentence = text.order[first + s]
        for i in range(c.lengths[s]):
            row = text.table[text.rows[text.indptr[sentence] + i]]
            top = row.max()
            logs[sentence] += math.log(top) if top > 0.0 else -np.inf
            if top > 0.0:
                for k in range(len(row)):
                    c.leaves[c.leaf_of[s] + i, k] = row[k] / top


@njit
def _set_of(s: int, w: int, i: int, first: int, text: Text, n: int) -> int:
    """What is known of a span."""
    if not len(text.sets):
        return 0
    return int(text.sets[text.limits[text.order[first + s]] + cell(n, w, i)])


@njit
def _of_width(w: int, first: int, text: Text, c: Charts, into: Spans) -> int:
    """The spans of w words that may be; gives their number."""
    n = 0
    for s in range(len(c.lengths)):
        for i in range(c.lengths[s] - w + 1):
            known = _set_of(s, w, i, first, text, c.lengths[s])
            if known == 0 or text.allowed[known].any():
                into.sentences[n], into.starts[n] = s, i
                n += 1
    return n


@njit
def _kinds(w: int) -> tuple[int, int]:
    """The first kind of pairs that make up spans of w words, and the end of these kinds."""
    if w == 2:
        return LEAVES, LEAVES + 1
    return LEAF_FIRST, SPANS + (1 if w > 3 else 0)


@njit
def _first_power(w: int, powers: Array) -> int:
    """The power at which no product of two spans that make up one of w words is above one."""
    least = powers[1] + powers[w - 1]
    for m in range(2, w // 2 + 1):
        least = min(least, powers[m] + powers[w - m])
    return int(least)


@njit
def _inside(
    first: int,
    text: Text,
    c: Charts,
    grammar: Grammar,
    best: bool,
    rooms: tuple[Room, Room, Room, Room],
    spans: Spans,
) -> None:
    """β of all spans; or the chance of the best tree of each."""
    beta = np.empty((CHUNK, len(grammar.root)), grammar.root.dtype)
    pairs = (grammar.leaves, grammar.leaf_first, grammar.leaf_last, grammar.spans)
    for w in range(2, c.lengths.max() + 1):
        n_spans = _of_width(w, first, text, c, spans)
        for s in range(len(c.lengths)):
            if w <= c.lengths[s]:
                c.powers[s, w] = _first_power(w, c.powers[s])
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            beta[:] = 0.0
            for kind in range(*_kinds(w)):
                up(kind, w, q, n, spans, c, pairs[kind], best, rooms[kind], beta)
            _store(w, q, n, first, text, spans, c, beta)
        _scale(w, c)


@njit
def inside(
    first: int, last: int, text: Text, grammar: Grammar, best: bool, logs: Array
) -> tuple[Charts, tuple[Room, Room, Room, Room], Spans]:
    """Charts of sentences ``order[first]`` to ``order[last − 1]``; ``logs`` gets their words'."""
    c = _charts(first, last, text, grammar)
    rooms = _rooms(c.lengths.max(), grammar)
    spans = Spans(np.empty(len(c.leaves), np.int64), np.empty(len(c.leaves), np.int64))
    _load(first, text, c, logs)
    _inside(first, text, c, grammar, best, rooms, spans)
    return c, rooms, spans


@njit
def _store(
    w: int, q: int, n: int, first: int, text: Text, spans: Spans, c: Charts, beta: Array
) -> None:
    """Put β of spans where it belongs, as far as its symbols may be."""
    for r in range(n):
        s, i = spans.sentences[q + r], spans.starts[q + r]
        known = _set_of(s, w, i, first, text, c.lengths[s])
        place = c.span_of[s] + cell(c.lengths[s], w, i)
        for k in range(beta.shape[1]):
            c.spans[place, k] = beta[r, k] * text.allowed[known, k]


@njit
def _scale(w: int, c: Charts) -> None:
    """Bring the largest number of each sentence's spans of w words below one, by a power of two."""
    for s in range(len(c.lengths)):
        if w <= c.lengths[s]:
            begin = c.span_of[s] + cell(c.lengths[s], w, 0)
            own = c.spans[begin : begin + c.lengths[s] - w + 1]
            power = math.frexp(own.max())[1] if own.max() > 0.0 else -EMPTY
            c.powers[s, w] -= power
            if power > -EMPTY:
                own *= own.dtype.type(math.ldexp(1.0, -power))


@njit
def _at_root(
    first: int, text: Text, c: Charts, out: Charts, grammar: Grammar, tally: Tally
) -> None:
    """log p of sentences; ω of their roots, and expected ones."""
    for s in range(len(c.lengths)):
        sentence, n = text.order[first + s], c.lengths[s]
        if n == 1:
            weights, beta, omega = grammar.single, c.leaves[c.leaf_of[s]], out.leaves[c.leaf_of[s]]
            counts = tally.single
        else:
            place = c.span_of[s] + cell(n, n, 0)
            weights, beta, omega = grammar.root, c.spans[place], out.spans[place]
            counts = tally.root
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * beta[k]
        if total <= 0.0:
            tally.logs[sentence] = -np.inf
            continue
        tally.logs[sentence] += math.log(total) - c.powers[s, n] * math.log(2.0)
        for k in range(len(weights)):
            omega[k] = weights[k] * text.weights[sentence] / total
            counts[k] += omega[k] * beta[k]


@njit
def _outside(
    first: int,
    text: Text,
    c: Charts,
    out: Charts,
    grammar: Grammar,
    rooms: tuple[Room, Room, Room, Room],
    spans: Spans,
    counts: tuple[Array, Array, Array, Array],
) -> None:
    """ω of all spans and leaves, and expected rules."""
    omega = np.empty((CHUNK, len(grammar.root)), grammar.root.dtype)
    pairs = (grammar.leaves, grammar.leaf_first, grammar.leaf_last, grammar.spans)
    for w in range(c.lengths.max(), 1, -1):
        n_spans = _of_width(w, first, text, c, spans)
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            for r in range(n):
                s, i = spans.sentences[q + r], spans.starts[q + r]
                known = _set_of(s, w, i, first, text, c.lengths[s])
                place = c.span_of[s] + cell(c.lengths[s], w, i)
                for k in range(omega.shape[1]):
                    omega[r, k] = out.spans[place, k] * text.allowed[known, k]
            for kind in range(*_kinds(w)):
                given = (pairs[kind], rooms[kind], omega, counts[kind])
                down(kind, w, q, n, spans, c, out, *given)


@njit
def _note_words(first: int, text: Text, c: Charts, out: Charts, tally: Tally) -> None:
    """Add posteriors of preterminals to the tally."""
    for s in range(len(c.lengths)):
        token = text.indptr[text.order[first + s]]
        for i in range(c.lengths[s]):
            leaf = c.leaf_of[s] + i
            for k in range(c.leaves.shape[1]):
                tally.words[tally.into[token + i], k] += out.leaves[leaf, k] * c.leaves[leaf, k]


@njit
def both_ways(
    first: int, last: int, text: Text, grammar: Grammar, tally: Tally, counting: bool
) -> tuple[Charts, Charts]:
    """β and, if there is counting, ω of sentences: see `gone_through`."""
    c, rooms, spans = inside(first, last, text, grammar, False, tally.logs)
    nothing = (np.zeros_like(c.leaves), np.zeros_like(c.spans))
    out = Charts(c.lengths, c.leaf_of, c.span_of, *nothing, c.powers)
    _at_root(first, text, c, out, grammar, tally)
    if not counting:
        return c, out
    like = grammar.root
    counts = (
        np.zeros(tally.leaves.shape, like.dtype),
        np.zeros(tally.leaf_first.shape, like.dtype),
        np.zeros(tally.leaf_last.shape, like.dtype),
        np.zeros(tally.spans.shape, like.dtype),
    )
    _outside(first, text, c, out, grammar, rooms, spans, counts)
    tally.leaves[:] += counts[0]
    tally.leaf_first[:] += counts[1]
    tally.leaf_last[:] += counts[2]
    tally.spans[:] += counts[3]
    _note_words(first, text, c, out, tally)
    return c, out


@njit
def gone_through(
    first: int, last: int, text: Text, grammar: Grammar, tally: Tally, counting: bool
) -> None:
    """Sentences ``order[first]`` to ``order[last − 1]``, none of them empty, together: log p of
    each and, if wanted, what is to be counted."""
    both_ways(first, last, text, grammar, tally, counting)
