"""Inside and outside of a grammar with many rules, of which a sentence needs few.

Rules are binary, A → X R, unary among the N symbols that users know (`unary_chains`), or they are
of words. Symbols from N on have no unary rules, and those from ``n_left`` on are never X. With c
for inside, b for what is below a unary chain, and β for outside (Baker 1979; Lari & Young 1990),

    b[A, i, j] = Σ_k Σ_{A → X R} p c[X, i, k] c[R, k, j]          c = G b          β = Gᵀ α
    α[R, k, j] = Σ_i Σ_{A → X R} p β[A, i, j] c[X, i, k]          α[X, i, k] likewise

and rules are used β[A, i, j] p c[X, i, k] c[R, k, j] times, unary ones β[A, i, j] p c[B, i, j].

A cell lists the symbols that it has. Rules are found by R, which is one of the list; X is looked up
in a row of numbers for all X, which cells (i, k) of one i have for as long as i is the place at
hand. c of a cell is kept times a power of two of its own, so that the largest is about one, and β
divided by it: their products are posteriors. So long sentences neither underflow nor overflow.

Helpers take numbers and whole arrays, as views of arrays would have their references counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.kernels.jit import lean, merged
from softcount.kernels.rule_sieve import Sieve, is_open, sift
from softcount.kernels.unary_chains import Chains
from softcount.types import Array

TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is no number."""
FAR = -1000
"""What is smaller by such a power of two is nothing beside the rest."""
FIRST_ENTRIES = 4096


class Joins(NamedTuple):
    """Binary rules by the right child: parent[r] → left[r] R, r from indptr[R] to indptr[R + 1].

    ``wide``  those up to wide[R] have a left child that may be of several words
    """

    indptr: Array
    wide: Array
    left: Array
    parent: Array
    chance: Array


class Grammar(NamedTuple):
    """Rules with their probabilities.

    ``root``  p(symbol is the root), of the N symbols that users know
    ``best``  whether charts have the best derivation in place of the sum of all; chains too
    """

    root: Array
    n_left: int
    joins: Joins
    chains: Chains
    best: bool


class Words(NamedTuple):
    """p(symbol → token t) is that of row r = rows[t]: ``symbols`` and ``chances`` from indptr[r]
    to indptr[r + 1], no symbol twice."""

    rows: Array
    indptr: Array
    symbols: Array
    chances: Array


class Text(NamedTuple):
    """Sentence s has the tokens from indptr[s] to indptr[s + 1], and what is known of it.

    ``begins``  where the sets of the sentence's cells begin, one for each cell; −1: all are set 0
    ``sets``    which set of symbols is allowed, in the order of `cell`
    """

    indptr: Array
    begins: Array
    sets: Array


class Tally(NamedTuple):
    """log p of each sentence; how often roots, rules, and entries of words were used; where some
    are left out as improbable, how many symbols cells had before, how many of them were left out,
    and how many sentences had to be gone through again without that."""

    logs: Array
    root: Array
    joins: Array
    chains: Array
    words: Array
    left_out: Array


class Chart(NamedTuple):
    """Cell c has ``symbols`` and ``values`` from begins[c] to ends[c], to be multiplied by
    2^powers[c]; up to middles[c] they are such as may stand beside several words."""

    begins: Array
    middles: Array
    ends: Array
    powers: Array
    symbols: Array
    values: Array


class Room(NamedTuple):
    """Where a cell is worked on: numbers for all symbols, all zero between two cells, and lists of
    those that are not; ``row`` and ``outer`` are c and α of X in the cells that begin at one place.
    """

    base: Array
    based: Array
    risen: Array
    raised: Array
    row: Array
    outer: Array


@merged
def cell(i: int, j: int, n: int) -> int:
    """The number of the cell from i to j: row by row, by ends."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@lean
def room_for(first: int, last: int, indptr: Array, grammar: Grammar) -> Room:
    """Room for the longest of some sentences."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, indptr[s + 1] - indptr[s])
    n, wide = len(grammar.joins.indptr) - 1, (longest + 1) * grammar.n_left
    return Room(
        np.zeros(n),
        np.empty(n, np.int32),
        np.zeros(n),
        np.empty(n, np.int32),
        np.zeros(wide),
        np.zeros(wide),
    )


@lean
def set_of(s: int, c: int, begins: Array, sets: Array) -> int:
    """The set of symbols allowed in a cell."""
    return 0 if begins[s] < 0 else sets[begins[s] + c]


# inside
@lean
def _join(
    low: int,
    high: int,
    factor: float,
    held: int,
    alone: bool,
    best: bool,
    count: int,
    symbols: Array,
    values: Array,
    indptr: Array,
    wide: Array,
    left: Array,
    parent: Array,
    chance: Array,
    row: Array,
    base: Array,
    based: Array,
) -> int:
    """Add what entries of the right cell make with the left cell, whose row begins at ``held``;
    ``alone``: it has one word."""
    for e in range(low, high):
        symbol, value = symbols[e], values[e] * factor
        end = indptr[symbol + 1] if alone else wide[symbol]
        for r in range(indptr[symbol], end):
            beside = row[held + left[r]]
            if beside > 0.0:
                made = chance[r] * beside * value
                if made > 0.0:
                    top = parent[r]
                    if base[top] == 0.0:
                        based[count] = top
                        count += 1
                    base[top] = max(base[top], made) if best else base[top] + made
    return count


@lean
def _reach(i: int, j: int, n: int, begins: Array, ends: Array, powers: Array) -> int:
    """The largest power of two of two cells side by side."""
    most, found = 0, False
    for k in range(i + 1, j):
        a, b = cell(i, k, n), cell(k, j, n)
        if ends[a] > begins[a] and ends[b] > begins[b]:
            power = powers[a] + powers[b]
            most = power if not found else max(most, power)
            found = True
    return most


@lean
def _rise(count: int, at: int, grammar: Grammar, room: Room) -> int:
    """c of a cell from its b, which is cleared: gives how many symbols have some."""
    base, based, risen, raised = room.base, room.based, room.risen, room.raised
    begins, tops, weights = grammar.chains.begins, grammar.chains.tops, grammar.chains.weights
    n_known, best, found = len(grammar.root), grammar.best, 0
    for e in range(count):
        symbol = based[e]
        value, base[symbol] = base[symbol], 0.0
        if symbol >= n_known:
            risen[symbol] = value
            raised[found] = symbol
            found += 1
            continue
        for u in range(begins[at + symbol], begins[at + symbol + 1]):
            top, more = tops[u], weights[u] * value
            if more > 0.0:
                if risen[top] == 0.0:
                    raised[found] = top
                    found += 1
                risen[top] = max(risen[top], more) if best else risen[top] + more
    return found


@lean
def _keep(
    count: int, used: int, joins: Joins, room: Room, symbols: Array, values: Array
) -> tuple[int, int, int]:
    """Write c of a cell into the chart, and clear it: where it ends, where such begin as may only
    stand beside one word, and its power of two."""
    risen, raised = room.risen, room.raised
    most = 0.0
    for e in range(count):
        most = max(most, risen[raised[e]])
    power = math.frexp(most)[1]
    factor = math.ldexp(1.0, -power) if most >= TINY else 0.0
    middle = used
    for alone in (False, True):
        middle = used if alone else middle
        for e in range(count):
            symbol = raised[e]
            if (joins.wide[symbol] == joins.indptr[symbol]) != alone:
                continue
            value, risen[symbol] = risen[symbol] * factor, 0.0
            if value > 0.0:
                symbols[used], values[used] = symbol, value
                used += 1
    return used, middle, power


@lean
def _grown(old: Array, used: int, least: int) -> Array:
    new = np.empty(max(2 * len(old), least), old.dtype)
    for e in range(used):
        new[e] = old[e]
    return new


@lean
def spread(low: int, high: int, held: int, n_left: int, chart: Chart, row: Array) -> None:
    """Have c of a cell at hand in a row."""
    for e in range(low, high):
        if chart.symbols[e] < n_left:
            row[held + chart.symbols[e]] = chart.values[e]


@lean
def clear(low: int, high: int, held: int, n_left: int, symbols: Array, row: Array) -> None:
    """Make zeros of what `spread` wrote."""
    for e in range(low, high):
        if symbols[e] < n_left:
            row[held + symbols[e]] = 0.0


@lean
def _based(
    i: int, j: int, n: int, row: int, grammar: Grammar, words: Words, chart: Chart, room: Room
) -> tuple[int, int]:
    """b of a cell: how many symbols have some, and its power of two."""
    begins, ends, powers, joins = chart.begins, chart.ends, chart.powers, grammar.joins
    count = 0
    if j == i + 1:
        for e in range(words.indptr[row], words.indptr[row + 1]):
            if words.chances[e] > 0.0:
                room.base[words.symbols[e]] = words.chances[e]
                room.based[count] = words.symbols[e]
                count += 1
        return count, 0
    reach = _reach(i, j, n, begins, ends, powers)
    for k in range(i + 1, j):
        a, b = cell(i, k, n), cell(k, j, n)
        less = powers[a] + powers[b] - reach
        if ends[a] > begins[a] and ends[b] > begins[b] and less > FAR:
            alone = k == i + 1
            count = _join(
                begins[b], ends[b] if alone else chart.middles[b], math.ldexp(1.0, less),
                k * grammar.n_left, alone, grammar.best, count, chart.symbols, chart.values,
                joins.indptr, joins.wide, joins.left, joins.parent, joins.chance,
                room.row, room.base, room.based,
            )  # fmt: skip
    return count, reach


@lean
def sifted_inside(
    s: int, text: Text, grammar: Grammar, words: Words, room: Room, sieve: Sieve
) -> tuple[Chart, int]:
    """c of a sentence, and how many symbols of cells there were before some were left out."""
    first, n = text.indptr[s], text.indptr[s + 1] - text.indptr[s]
    n_known, n_left, n_cells = len(grammar.root), grammar.n_left, n * (n + 1) // 2
    begins, ends = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    middles, powers = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    symbols, values = np.empty(FIRST_ENTRIES, np.int32), np.empty(FIRST_ENTRIES)
    used, made = 0, 0
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            chart, c = Chart(begins, middles, ends, powers, symbols, values), cell(i, j, n)
            begins[c] = ends[c] = used
            if not is_open(c, sieve):
                continue
            row = words.rows[first + i]
            count, power = _based(i, j, n, row, grammar, words, chart, room)
            at = set_of(s, c, text.begins, text.sets) * n_known
            count = _rise(count, at, grammar, room)
            made += count
            if sieve.least > 0.0:
                sift(count, c, grammar, room, sieve)
            if used + count > len(symbols):
                symbols = _grown(symbols, used, used + count)
                values = _grown(values, used, used + count)
            used, middles[c], more = _keep(count, used, grammar.joins, room, symbols, values)
            ends[c], powers[c] = used, power + more
            chart = Chart(begins, middles, ends, powers, symbols, values)
            spread(begins[c], used, j * n_left, n_left, chart, room.row)
        for j in range(i + 1, n + 1):
            c = cell(i, j, n)
            clear(begins[c], ends[c], j * n_left, n_left, symbols, room.row)
    return Chart(begins, middles, ends, powers, symbols, values), made


@lean
def inside(s: int, text: Text, grammar: Grammar, words: Words, room: Room) -> Chart:
    """c of a sentence."""
    none = np.zeros(0)
    sieve = Sieve(0.0, np.zeros(0, np.int32), none, none, none)
    return sifted_inside(s, text, grammar, words, room, sieve)[0]


@lean
def whole(n: int, root: Array, best: bool, chart: Chart) -> float:
    """p(sentence), or that of its best derivation, to be multiplied by the last cell's power."""
    total, c = 0.0, cell(0, n, n)
    for e in range(chart.begins[c], chart.ends[c]):
        if chart.symbols[e] < len(root):
            more = root[chart.symbols[e]] * chart.values[e]
            total = max(total, more) if best else total + more
    return total


@lean
def log_of(total: float, n: int, powers: Array) -> float:
    """log of what `whole` gives, −inf if the sentence is impossible."""
    if not total >= TINY:
        return -np.inf
    return math.log(total) + float(powers[cell(0, n, n)]) * math.log(2.0)
