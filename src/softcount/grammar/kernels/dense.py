"""Compiled charts of grammars that have every rule A → B C."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import lean, njit, part
from softcount.kernels.lanes import add_scaled
from softcount.kernels.products import SIDE, TALL
from softcount.kernels.random import chosen, item_stream
from softcount.kernels.table_products import (
    add_crosses,
    add_row,
    apply,
    apply_best,
    copy_row,
    meet,
    meet_best,
    multiply,
    pitch,
    raise_row,
)
from softcount.types import Array


@lean
def best_splits(gains: Array) -> Array:
    """Where each span is best split in two, if spans bring gains (n, n + 1), by start and end.

    With f(i, j) = gain(i, j) + max_k (f(i, k) + f(k, j)), the first k of the largest sum.

    >>> gains = np.zeros((3, 4))
    >>> gains[1, 3] = 0.5
    >>> int(best_splits(gains)[0, 3])
    1
    """
    n = len(gains)
    total, splits = gains.copy(), np.zeros(gains.shape, np.int64)
    for i in range(n - 2, -1, -1):
        for j in range(i + 2, n + 1):
            most, at = total[i, i + 1] + total[i + 1, j], i + 1
            for k in range(i + 2, j):
                more = total[i, k] + total[k, j]
                if more > most:
                    most, at = more, k
            total[i, j] += most
            splits[i, j] = at
    return splits


# Charts of sentences, and the pairs of neighbouring spans that a span is made of.
#
# A sentence of n words has n leaves and n (n − 1) / 2 spans of two words or more, the short ones
# first. A leaf has preterminals, a longer span has nonterminals.
#
# Numbers of spans are kept times powers of two, one for each span: products of two have to be
# brought to that of their span, which rounds nothing.


EMPTY = 1 << 20
"""The power of spans that cannot be: they count for nothing beside others."""


class Charts(NamedTuple):
    """Numbers of some sentences' leaves and spans.

    ``lengths``  of the sentences
    ``leaf_of``, ``span_of``  the first leaf, and the first span, of each sentence
    ``leaves``   (words, preterminals)
    ``spans``    (spans, nonterminals): see `cell`
    ``powers``   (spans,): each is kept times 2 to that power; `EMPTY` if it cannot be
    """

    lengths: Array
    leaf_of: Array
    span_of: Array
    leaves: Array
    spans: Array
    powers: Array


@njit
def cell(n: int, w: int, i: int) -> int:
    """The place of the span of w words from word i on in a sentence of n words.

    >>> [cell(4, w, i) for w, i in [(2, 0), (2, 2), (3, 0), (3, 1), (4, 0)]]
    [0, 2, 3, 4, 5]
    """
    return (w - 2) * (n + 1) - (w * (w - 1)) // 2 + 1 + i


@part
def power_of(w: int, i: int, s: int, c: Charts) -> int:
    """The power of the span of w words from i on; leaves have none."""
    return 0 if w == 1 else int(c.powers[c.span_of[s] + cell(c.lengths[s], w, i)])


@part
def factor_of(whole: int, parts: int) -> float:
    """What brings a product to the power of the span that it is a part of; 0 if one cannot be."""
    return math.ldexp(1.0, whole - parts) if max(whole, parts) < EMPTY else 0.0


@part
def factors_of(w: int, first: int, n: int, c: Charts, rooms: Any) -> None:
    """What brings products of m words and w − m to the power of their span, of n spans."""
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        whole = power_of(w, i, s, c)
        for m in range(1, w):
            parts = power_of(m, i, s, c) + power_of(w - m, i + m, s, c)
            rooms.factors[q, m] = factor_of(whole, parts)


@part
def gather(
    w: int, i: int, s: int, q: int, c: Charts, left: Array, right: Array, factors: Array
) -> int:
    """Copy the pairs of two leaves, or of two spans, that make up the span of w words from i on.

    Gives their number. The left ones are multiplied by row q of ``factors``.
    """
    n, one = c.lengths[s], factors.dtype.type(1.0)
    if w == 2:
        copy_row(left, 0, c.leaves, c.leaf_of[s] + i, factors[q, 1])
        copy_row(right, 0, c.leaves, c.leaf_of[s] + i + 1, one)
        return 1
    for m in range(2, w - 1):
        copy_row(left, m - 2, c.spans, c.span_of[s] + cell(n, m, i), factors[q, m])
        copy_row(right, m - 2, c.spans, c.span_of[s] + cell(n, w - m, i + m), one)
    return w - 3


@part
def scatter(
    w: int, i: int, s: int, q: int, out: Charts, left: Array, right: Array, factors: Array
) -> None:
    """Add rows to where `gather` took them from, the left ones times row q of ``factors``."""
    n, one = out.lengths[s], factors.dtype.type(1.0)
    if w == 2:
        add_scaled(out.leaves, out.leaf_of[s] + i, factors[q, 1], left, 0)
        add_scaled(out.leaves, out.leaf_of[s] + i + 1, one, right, 0)
        return
    for m in range(2, w - 1):
        add_scaled(out.spans, out.span_of[s] + cell(n, m, i), factors[q, m], left, m - 2)
        add_scaled(out.spans, out.span_of[s] + cell(n, w - m, i + m), one, right, m - 2)


# Steps of inside and outside: rules applied to pairs of spans, and undone.
#
# See `softcount.grammar.kernels.dense`.


CHUNK = 24
"""So many spans at a time, whole blocks of rows: M and W of them should be near."""


class Pairs(NamedTuple):
    """Rules with two leaves, or two spans, on their right side, in panels: see
    `softcount.kernels.table_products`.

    ``up``    (pairs, nonterminals)
    ``down``  (nonterminals, pairs), with left symbols padded to a multiple of `SIDE`
    """

    up: Array
    down: Array


class Beside(NamedTuple):
    """Rules with a leaf and a span on their right side, in panels.

    ``given``  (leaf, (span, nonterminal)), the span's symbols padded to a multiple of `SIDE`
    ``back``   ((span, nonterminal), leaf)
    """

    given: Array
    back: Array


class Grammar(NamedTuple):
    """``root`` and ``single``: what sentences are, of several words and of one; rules by what is
    on their right side; and all ``rules`` (nonterminals, symbols, symbols), without padding."""

    root: Array
    single: Array
    leaves: Pairs
    leaf_first: Beside
    leaf_last: Beside
    spans: Pairs
    rules: Array


class Room(NamedTuple):
    """Where pairs are worked on: those of a span; M and W of some spans, which are tables.

    ``turned``  a W the other way round
    """

    left: Array
    right: Array
    out_left: Array
    out_right: Array
    turned: Array
    met: Array
    pushed: Array


class Rooms(NamedTuple):
    """Room for all that inside and outside need.

    ``leaf_first``, ``leaf_last``  of each word, the table (span, nonterminal) of what it makes of
                                   the span behind or before it
    ``some``  numbers of some spans
    ``words``  those of all words
    ``one``   those of a single span
    ``factors``  of some spans and all widths: see `softcount.grammar.kernels.dense.factors_of`
    ``sentences``, ``starts``  of the spans of one width
    """

    leaves: Room
    spans: Room
    leaf_first: Array
    leaf_last: Array
    some: Array
    words: Array
    one: Array
    factors: Array
    sentences: Array
    starts: Array


def padded_rows(n: int) -> int:
    """A number of symbols, padded to a multiple of `SIDE`."""
    return -(-n // SIDE) * SIDE


def roomy(n: int, wide: int, dtype: Any) -> Array:
    """Zeros (n, wide); blocks of `TALL` rows may go beyond their end."""
    return np.zeros((n + TALL, wide), dtype)[:n]


def _room(rows: int, wide: int, most: int, dtype: Any) -> Room:
    return Room(
        roomy(most, wide, dtype),
        roomy(most, wide, dtype),
        roomy(most, wide, dtype),
        roomy(most, wide, dtype),
        np.zeros((1, wide * wide), dtype),
        np.zeros((CHUNK, pitch(rows, wide)), dtype),
        np.zeros((CHUNK, pitch(rows, wide)), dtype),
    )


def rooms_for(c: Charts, grammar: Grammar) -> Rooms:
    """For the sentences of a chart."""
    n_words, widths = len(c.leaves), int(c.lengths.max()) + 1
    n_high, n_symbols = grammar.rules.shape[:2]
    high, low, dtype = len(grammar.root), len(grammar.single), grammar.root.dtype
    rows = padded_rows(n_high)
    return Rooms(
        _room(padded_rows(n_symbols - n_high), low, 1, dtype),
        _room(rows, high, widths, dtype),
        roomy(n_words, pitch(rows, high), dtype),
        roomy(n_words, pitch(rows, high), dtype),
        np.zeros((CHUNK, high), dtype),
        roomy(n_words, low, dtype),
        np.zeros((1, high), dtype),
        np.zeros((CHUNK, widths), dtype),
        np.empty(n_words, np.int64),
        np.empty(n_words, np.int64),
    )


@part
def table_rows(table: Array, wide: int) -> int:
    """How many rows of so many numbers the tables of a matrix have."""
    return int((table.shape[1] - 1) // wide)


@part
def applied(n: int, left: Array, right: Array, depth: int, best: bool, out: Array) -> None:
    """n rows times rules; or the ``best`` products. Whole blocks of rows are written."""
    for q in range(0, n, TALL):
        if best:
            apply_best(out, q, left, q, right, depth)
        else:
            apply(out, q, left, q, right, depth)


@part
def up(
    w: int, first: int, n: int, c: Charts, pairs: Pairs, best: bool, at: Room, rooms: Rooms
) -> None:
    """What pairs of two leaves, or two spans, make of n spans; or the ``best`` they make."""
    rows = table_rows(at.met, at.right.shape[1])
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        m = gather(w, i, s, q, c, at.left, at.right, rooms.factors)
        if best:
            meet_best(at.met, q, at.left, at.right, m, rows)
        else:
            meet(at.met, q, at.left, at.right, m, rows)
    depth = len(pairs.up) * pairs.up.shape[1] // rooms.some.shape[1]
    applied(n, at.met, pairs.up, depth, best, rooms.some)


@part
def _leaf_and_span(w: int, i: int, s: int, last: int, c: Charts) -> tuple[int, int]:
    """Of a span of w words, its first or ``last`` word and the span of the others: their places."""
    leaf = c.leaf_of[s] + i + last * (w - 1)
    return leaf, c.span_of[s] + cell(c.lengths[s], w - 1, i + 1 - last)


@part
def up_beside(w: int, first: int, n: int, c: Charts, best: bool, rooms: Rooms) -> None:
    """Add what leaves and the spans beside them make of n spans; or take it where it is more."""
    some, one = rooms.some, rooms.one
    rows = table_rows(rooms.leaf_first, some.shape[1])
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        for last in range(2):
            tables = rooms.leaf_last if last else rooms.leaf_first
            leaf, place = _leaf_and_span(w, i, s, last, c)
            copy_row(one, 0, c.spans, place, rooms.factors[q, w - 1 if last else 1])
            if best:
                raise_row(some, q, one, 0, tables, leaf, rows)
            else:
                add_row(some, q, one, 0, tables, leaf, rows)


@part
def down_beside(w: int, first: int, n: int, c: Charts, out: Charts, rooms: Rooms) -> None:
    """Hand ω of n spans on to the spans beside their first and last words; tables are `turned`."""
    some, one = rooms.some, rooms.one
    rows = table_rows(rooms.leaf_first, some.shape[1])
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        for last in range(2):
            copy_row(one, 0, some, q, rooms.factors[q, w - 1 if last else 1])
            tables = rooms.leaf_last if last else rooms.leaf_first
            leaf, place = _leaf_and_span(w, i, s, last, c)
            add_row(out.spans, place, one, 0, tables, leaf, rows)


@part
def turned(tables: Array, wide: int) -> None:
    """Exchange rows and columns of each table."""
    for t in range(len(tables)):
        for a in range(table_rows(tables, wide)):
            for b in range(a):
                above, below = tables[t, b * wide + a], tables[t, a * wide + b]
                tables[t, b * wide + a], tables[t, a * wide + b] = below, above


@part
def down(
    w: int,
    first: int,
    n: int,
    c: Charts,
    out: Charts,
    pairs: Pairs,
    at: Room,
    rooms: Rooms,
    counts: Array,
) -> None:
    """Hand ω of n spans on to their pairs of two leaves, or two spans, and count the rules."""
    depth = len(pairs.down) // (at.pushed.shape[1] // pairs.down.shape[1] - 1)
    applied(n, rooms.some, pairs.down, depth, False, at.pushed)
    rows = table_rows(at.met, at.right.shape[1])
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        m = gather(w, i, s, q, c, at.left, at.right, rooms.factors)
        meet(at.met, q, at.left, at.right, m, rows)
        _hand_on(q, m, at)
        scatter(w, i, s, q, out, at.out_left, at.out_right, rooms.factors)
    add_crosses(counts, rooms.some, at.met, 0, n)


@part
def _hand_on(q: int, m: int, at: Room) -> None:
    """β W and W β of m pairs, W being that of span q."""
    wide = at.right.shape[1]
    rows = table_rows(at.pushed, wide)
    for b in range(rows):
        for k in range(wide):
            at.turned[0, k * wide + b] = at.pushed[q, b * wide + k]
    for p in range(0, m, TALL):
        multiply(at.out_right, p, at.left, p, at.pushed, q, rows)
        multiply(at.out_left, p, at.right, p, at.turned, 0, wide)


@part
def words_beside(last: int, c: Charts, out: Charts, at: Room, tables: Array) -> None:
    """Σ ω(A) β(C) of all spans that begin, or end, with a word, C being what is beside it: such a
    table of each word takes the place of that which inside made."""
    rows = table_rows(tables, at.right.shape[1])
    for s in range(len(c.lengths)):
        n = c.lengths[s]
        for word in range(n):
            m = 0
            for w in range(3, 1 + (word + 1 if last else n - word)):
                i = word + 1 - w if last else word
                _, place = _leaf_and_span(w, i, s, last, c)
                whole = c.span_of[s] + cell(n, w, i)
                factor = factor_of(c.powers[whole], c.powers[place])
                if factor > 0.0:
                    copy_row(at.left, m, c.spans, place, c.spans.dtype.type(factor))
                    copy_row(at.right, m, out.spans, whole, c.spans.dtype.type(1.0))
                    m += 1
            meet(tables, c.leaf_of[s] + word, at.left, at.right, m, rows)


@part
def down_to_words(
    tables: Array, back: Array, c: Charts, out: Charts, words: Array, counts: Array
) -> None:
    """Hand ω on to words, by the tables of `words_beside`, and count the rules."""
    depth = len(back) * back.shape[1] // words.shape[1]
    applied(len(words), tables, back, depth, False, words)
    for r in range(len(words)):
        add_scaled(out.leaves, r, words.dtype.type(1.0), words, r)
    for first in range(0, len(tables), CHUNK):
        add_crosses(counts, c.leaves, tables, first, min(CHUNK, len(tables) - first))


# Inside and outside of grammars in Chomsky normal form in which any rule may be.
#
# β(A, i, j) is the chance that A becomes the words i to j. Of the spans that two neighbours make
# up, products of symbols are added up first, and rules applied to the sums:
#
#     M(B, C) = Σ_m β(B, i, m) β(C, m, j)            β(A, i, j) = Σ_BC R(A, B, C) M(B, C)
#
# (Baker 1979). Outside goes the other way. With ω = ∂ log p / ∂β, from the root down,
#
#     W(B, C) = Σ_A ω(A, i, j) R(A, B, C)
#     ω(B, i, m) += Σ_C W(B, C) β(C, m, j)           ω(C, m, j) += Σ_B β(B, i, m) W(B, C)
#
# ω ∘ β are posteriors and Σ ω(A) M(B, C) R(A, B, C) expected rules. Whoever weighs a sentence
# weighs ω of its root. Where one of two neighbours is a leaf, all that its word does to the spans
# beside it is in a table of that word, made once for all spans that begin with it (and so for those
# that end),
#
#     F(C, A) = Σ_B β(B, i, i + 1) R(A, B, C)        β(A, i, j) += Σ_C F(C, A) β(C, i + 1, j)
#
# and G(C, A) = Σ_j ω(A, i, j) β(C, i + 1, j) is all that outside needs for the word and its rules.
# These are products of matrices (`softcount.kernels.table_products`), of some spans of one width at
# a time, from whichever sentences they come. Chances of words are divided by the largest of each
# word; for powers of two see `softcount.grammar.kernels.dense`.


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


# Posteriors of the symbols of spans, ω ∘ β: see `softcount.grammar.kernels.dense`.


class Shares(NamedTuple):
    """p(symbol spans the words from start to end | sentence), one sentence after the other.

    ``borders``  those of the n-th sentence are from ``borders[n]`` to ``borders[n + 1]``
    """

    borders: Array
    starts: Array
    ends: Array
    symbols: Array
    shares: Array


@njit
def _listed(
    i: int, end: int, shift: int, least: float, beta: Array, omega: Array, used: int, into: Shares
) -> int:
    """Write down the symbols of one span; gives how many are written down then."""
    for k in range(len(beta)):
        share = beta[k] * omega[k]
        if share > least:
            into.starts[used], into.ends[used] = i, end
            into.symbols[used], into.shares[used] = shift + k, share
            used += 1
    return used


def shares_of(
    first: int,
    last: int,
    text: Text,
    grammar: Grammar,
    n_nonterminals: int,
    least: float,
    tally: Tally,
) -> Shares:
    """Sentences ``order[first]`` to ``order[last − 1]``, none of them empty, together.

    Spans go by their starts and then by their ends. Shares up to ``least`` are left out; the
    ``tally`` gets counts.
    """
    c, out = both_ways(first, last, text, grammar, tally, True)
    room = int((c.leaves * out.leaves > least).sum() + (c.spans * out.spans > least).sum())
    found = Shares(
        np.zeros(len(c.lengths) + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room),
    )
    _write_down(c, out, n_nonterminals, least, found)
    return found


@njit
def _write_down(c: Charts, out: Charts, n_nonterminals: int, least: float, found: Shares) -> None:
    """All spans of all sentences."""
    used = 0
    for s in range(len(c.lengths)):
        n = c.lengths[s]
        for i in range(n):
            at = c.leaf_of[s] + i
            given = (c.leaves[at], out.leaves[at], used, found)
            used = _listed(i, i + 1, n_nonterminals, least, *given)
            for w in range(2, n - i + 1):
                at = c.span_of[s] + cell(n, w, i)
                given = (c.spans[at], out.spans[at], used, found)
                used = _listed(i, i + w, 0, least, *given)
        found.borders[s + 1] = used


# Best trees, and draws of trees, from charts: see `softcount.grammar.kernels.dense`.
#
# A tree of n words has 2 n − 1 nodes, here from the root down, the left child and all below it
# first; of each its symbol and its end are known. Preterminals come after nonterminals.


class Nodes(NamedTuple):
    """Nodes of trees (samples, 2 · tokens): those of a sentence begin at twice its first token."""

    symbols: Array
    ends: Array


class Rules(NamedTuple):
    """Chances of roots, and of all rules: see `softcount.grammar.kernels.dense.Grammar`."""

    root: Array
    single: Array
    every: Array


class Desk(NamedTuple):
    """Where trees are worked on.

    ``stack``   symbols, first words and widths of nodes to come
    ``splits``  weights of the widths of a left child
    ``pairs``   weights of pairs of symbols
    """

    stack: Array
    splits: Array
    pairs: Array


def traced(
    first: int,
    last: int,
    text: Text,
    grammar: Grammar,
    n_nonterminals: int,
    best: bool,
    numbers: Array,
    seed: Any,
    logs: Array,
    nodes: Nodes,
) -> None:
    """Trees of sentences ``order[first]`` to ``order[last − 1]``, none of them empty.

    The best one, ``logs`` being log p(tree, sentence); or drawn in proportion to their chances,
    ``logs`` being log p(sentence). A draw depends on the seed, the sentence's number and the
    sample's alone.
    """
    c, _ = inside(first, last, text, grammar, best, logs)
    own = text.order[first:last]
    rules, begins = Rules(grammar.root, grammar.single, grammar.rules), 2 * text.indptr[own]
    desk = _desk(c, rules)
    _traces(c, rules, best, own, numbers[own], begins, seed, logs, nodes, desk)


def _desk(c: Charts, rules: Rules) -> Desk:
    longest = int(c.lengths.max()) + 1
    n_weights = max(rules.every[0].size, len(rules.root), len(rules.single))
    return Desk(np.empty((longest + 1, 3), np.int64), np.empty(longest), np.empty(n_weights))


@njit
def _traces(
    c: Charts,
    rules: Rules,
    best: bool,
    own: Array,
    numbers: Array,
    begins: Array,
    seed: Any,
    logs: Array,
    nodes: Nodes,
    desk: Desk,
) -> None:
    """Trees of a chart's sentences, which are to begin at some places of the nodes."""
    stream = np.empty(1, np.uint64)
    for s in range(len(c.lengths)):
        logs[own[s]] += _root_log(s, c, rules, best)
        if logs[own[s]] == -np.inf:
            continue
        for n in range(len(nodes.symbols)):
            stream[0] = item_stream(item_stream(seed, numbers[s]), n)
            _trace(s, c, rules, best, stream, desk, n, begins[s], nodes)


@part
def _root_log(s: int, c: Charts, rules: Rules, best: bool) -> float:
    """log of the root's chance: that of the best one, or of all."""
    weights, beta = _tree_at_root(s, c, rules)
    total = 0.0
    for k in range(len(weights)):
        chance = weights[k] * beta[k]
        total = max(total, chance) if best else total + chance
    power = power_of(c.lengths[s], 0, s, c)
    return math.log(total) - power * math.log(2.0) if total > 0.0 else -np.inf


@part
def _tree_at_root(s: int, c: Charts, rules: Rules) -> tuple[Array, Array]:
    """Chances of being the root, and of what is below."""
    n = c.lengths[s]
    if n == 1:
        return rules.single, c.leaves[c.leaf_of[s]]
    return rules.root, c.spans[c.span_of[s] + cell(n, n, 0)]


@part
def _picked(weights: Array, best: bool, stream: Array) -> int:
    """The number of the largest weight; or one drawn in proportion to them."""
    if not best:
        return chosen(weights, stream)
    top = 0
    for k in range(1, len(weights)):
        if weights[k] > weights[top]:
            top = k
    return top


@part
def _trace(
    s: int,
    c: Charts,
    rules: Rules,
    best: bool,
    stream: Array,
    desk: Desk,
    sample: int,
    begin: int,
    nodes: Nodes,
) -> None:
    """A tree of a sentence."""
    n, stack = c.lengths[s], desk.stack
    weights, beta = _tree_at_root(s, c, rules)
    for k in range(len(weights)):
        desk.pairs[k] = weights[k] * beta[k]
    root = _picked(desk.pairs[: len(weights)], best, stream)
    stack[0, 0], stack[0, 1], stack[0, 2] = root + (len(rules.every) if n == 1 else 0), 0, n
    depth, number = 1, begin
    while depth:
        depth -= 1
        symbol, i, w = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        nodes.symbols[sample, number], nodes.ends[sample, number] = symbol, i + w
        number += 1
        if w > 1:
            m, left, right = _way_on(symbol, w, i, s, c, rules.every, best, stream, desk)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = right, i + m, w - m
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = left, i, m
            depth += 2


@part
def _way_on(
    symbol: int,
    w: int,
    i: int,
    s: int,
    c: Charts,
    rules: Array,
    best: bool,
    stream: Array,
    desk: Desk,
) -> tuple[int, int, int]:
    """How a node goes on, in the best way or in one drawn: the width of its left child, and the
    symbols of both."""
    for m in range(1, w):
        total = 0.0
        for k in range(_weigh(m, symbol, w, i, s, c, rules, desk.pairs)):
            total = max(total, desk.pairs[k]) if best else total + desk.pairs[k]
        desk.splits[m - 1] = total
    m = 1 + _picked(desk.splits[: w - 1], best, stream)
    n_pairs = _weigh(m, symbol, w, i, s, c, rules, desk.pairs)
    pair = _picked(desk.pairs[:n_pairs], best, stream)
    first, last = _symbols(m, rules), _symbols(w - m, rules)
    wide = last[1] - last[0]
    return m, first[0] + pair // wide, last[0] + pair % wide


@part
def _symbols(w: int, rules: Array) -> tuple[int, int]:
    """What spans of w words may be: the first symbol and the end."""
    return (len(rules), rules.shape[1]) if w == 1 else (0, len(rules))


@part
def _weigh(
    m: int, symbol: int, w: int, i: int, s: int, c: Charts, rules: Array, pairs: Array
) -> int:
    """Chances of pairs of symbols, the left child being m words wide; gives their number."""
    parts = power_of(m, i, s, c) + power_of(w - m, i + m, s, c)
    factor = factor_of(power_of(w, i, s, c), parts)
    left, right = _child(m, i, s, c), _child(w - m, i + m, s, c)
    first, last = _symbols(m, rules), _symbols(w - m, rules)
    n = 0
    for b in range(first[0], first[1]):
        chance = left[b - first[0]] * factor
        for k in range(last[0], last[1]):
            pairs[n] = rules[symbol, b, k] * chance * right[k - last[0]]
            n += 1
    return n


@part
def _child(w: int, i: int, s: int, c: Charts) -> Any:
    """Chances of what is below a leaf's symbols, or a longer span's."""
    if w == 1:
        return c.leaves[c.leaf_of[s] + i]
    return c.spans[c.span_of[s] + cell(c.lengths[s], w, i)]


# What trees count: see `softcount.grammar.kernels.dense` for how they are written down.


@njit
def count_trees(
    symbols: Array,
    ends: Array,
    indptr: Array,
    weights: Array,
    possible: Array,
    rows: Array,
    root: Array,
    rules: Array,
    words: Array,
) -> None:
    """Add roots (K + T,), rules (K, K + T, K + T) and words (rows, T) of trees (samples, nodes).

    Each tree counts by its share of the sentence's weight; sentences that are not possible do not.
    """
    n_nonterminals = len(rules)
    for s in range(len(indptr) - 1):
        if indptr[s] == indptr[s + 1] or not possible[s]:
            continue
        share = weights[s] / len(symbols)
        first, last = 2 * indptr[s], 2 * indptr[s + 1] - 1
        for n in range(len(symbols)):
            root[symbols[n, first]] += share
            begin = 0
            for node in range(first, last):
                symbol, end = symbols[n, node], ends[n, node]
                if end == begin + 1:
                    words[rows[indptr[s] + begin], symbol - n_nonterminals] += share
                    begin = end
                    continue
                # behind the left child and all below it
                right = node + 2 * (ends[n, node + 1] - begin)
                rules[symbol, symbols[n, node + 1], symbols[n, right]] += share
