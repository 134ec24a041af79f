"""Steps of inside and outside: rules applied to pairs of spans, and undone.

See `softcount.kernels.inside_outside`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import part
from softcount.kernels.lanes import add_scaled
from softcount.kernels.products import SIDE, TALL
from softcount.kernels.span_pairs import Charts, cell, factor_of, gather, scatter
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
    ``factors``  of some spans and all widths: see `softcount.kernels.span_pairs.factors_of`
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
