"""Outside scores and expected counts of a grammar with many rules: see `rule_charts`."""

from __future__ import annotations

import math

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
    cell,
    clear,
    inside,
    room_for,
    set_of,
    spread,
    whole,
)
from softcount.kernels.unary_chains import Chains
from softcount.types import Array


@lean
def _part(
    low: int,
    high: int,
    factor: float,
    held: int,
    alone: bool,
    symbols: Array,
    values: Array,
    indptr: Array,
    wide: Array,
    left: Array,
    parent: Array,
    chance: Array,
    beta: Array,
    row: Array,
    outer: Array,
    out: Array,
    counts: Array,
) -> None:
    """Hand β of a cell on to two cells that it may consist of, and count the rules."""
    for e in range(low, high):
        symbol, value, total = symbols[e], values[e], 0.0
        end = indptr[symbol + 1] if alone else wide[symbol]
        for r in range(indptr[symbol], end):
            above = beta[parent[r]]
            if above > 0.0:
                beside = row[held + left[r]]
                if beside > 0.0:
                    share = chance[r] * factor * above
                    total += share * beside
                    outer[held + left[r]] += share * value
                    counts[r] += share * beside * value
        out[e] += total


@lean
def _fall(
    low: int,
    high: int,
    held: int,
    at: int,
    n_known: int,
    n_left: int,
    chains: Chains,
    symbols: Array,
    room: Room,
    out: Array,
    counts: Array,
) -> bool:
    """β of a cell (in ``base``) from its α, and count unary rules: whether there is any."""
    alpha, beta, row, outer = room.risen, room.base, room.row, room.outer
    some = False
    for e in range(low, high):
        symbol = symbols[e]
        alpha[symbol] = out[e]
        if symbol < n_left:
            alpha[symbol] += outer[held + symbol]
        some = some or alpha[symbol] > 0.0
    if not some:
        return False
    for e in range(low, high):
        symbol = symbols[e]
        if symbol >= n_known:
            beta[symbol] = alpha[symbol]
            continue
        total = 0.0
        for u in range(chains.begins[at + symbol], chains.begins[at + symbol + 1]):
            total += chains.weights[u] * alpha[chains.tops[u]]
        beta[symbol] = total
        for u in range(chains.indptr[symbol], chains.indptr[symbol + 1]):
            counts[u] += total * chains.chance[u] * row[held + chains.child[u]]
    return True


@lean
def _hand_on(
    i: int,
    j: int,
    n: int,
    row: int,
    grammar: Grammar,
    words: Words,
    chart: Chart,
    room: Room,
    out: Array,
    tally: Tally,
) -> None:
    """Hand β of a cell on to all below it."""
    begins, ends, powers, joins = chart.begins, chart.ends, chart.powers, grammar.joins
    c = cell(i, j, n)
    if j == i + 1:
        factor = math.ldexp(1.0, -powers[c])
        for e in range(words.indptr[row], words.indptr[row + 1]):
            tally.words[e] += room.base[words.symbols[e]] * words.chances[e] * factor
        return
    for k in range(i + 1, j):
        a, b = cell(i, k, n), cell(k, j, n)
        if ends[a] > begins[a] and ends[b] > begins[b]:
            factor = math.ldexp(1.0, powers[a] + powers[b] - powers[c])
            alone = k == i + 1
            _part(
                begins[b], ends[b] if alone else chart.middles[b], factor, k * grammar.n_left,
                alone, chart.symbols, chart.values, joins.indptr, joins.wide, joins.left,
                joins.parent, joins.chance, room.base, room.row, room.outer, out, tally.joins,
            )  # fmt: skip


@lean
def _shares(low: int, high: int, chart: Chart, room: Room, out: Array) -> None:
    """Posteriors of a cell's symbols, β c, in place of their α; the room is cleared."""
    for e in range(low, high):
        symbol = chart.symbols[e]
        out[e] = room.base[symbol] * chart.values[e]
        room.base[symbol] = room.risen[symbol] = 0.0


@lean
def outside(
    s: int,
    weight: float,
    text: Text,
    grammar: Grammar,
    words: Words,
    chart: Chart,
    room: Room,
    tally: Tally,
) -> Array:
    """Add what a sentence is expected to use, ``weight`` being that of the sentence over `whole`.

    Gives how often each symbol is expected in each cell.
    """
    first, n = text.indptr[s], text.indptr[s + 1] - text.indptr[s]
    n_known, n_left = len(grammar.root), grammar.n_left
    begins, ends = chart.begins, chart.ends
    out, c = np.zeros(len(chart.values)), cell(0, n, n)
    for e in range(begins[c], ends[c]):
        if chart.symbols[e] < n_known:
            out[e] = grammar.root[chart.symbols[e]] * weight
            tally.root[chart.symbols[e]] += out[e] * chart.values[e]
    for i in range(n):
        for j in range(i + 1, n + 1):
            c = cell(i, j, n)
            spread(begins[c], ends[c], j * n_left, n_left, chart, room.row)
        for j in range(n, i, -1):
            c = cell(i, j, n)
            at = set_of(s, c, text.begins, text.sets) * n_known
            if _fall(
                begins[c], ends[c], j * n_left, at, n_known, n_left, grammar.chains,
                chart.symbols, room, out, tally.chains,
            ):  # fmt: skip
                _hand_on(i, j, n, words.rows[first + i], grammar, words, chart, room, out, tally)
            _shares(begins[c], ends[c], chart, room, out)
        for j in range(i + 1, n + 1):
            c = cell(i, j, n)
            clear(begins[c], ends[c], j * n_left, n_left, chart.symbols, room.row)
            clear(begins[c], ends[c], j * n_left, n_left, chart.symbols, room.outer)
    return out


@lean
def nodes(
    s: int, text: Text, grammar: Grammar, words: Words, tally: Tally
) -> tuple[Array, Array, Array]:
    """How often each symbol is expected over each span of a sentence: cells, symbols, numbers.

    Symbols are those that users know; a sentence that is impossible or empty has none. ``tally``
    gets counts.
    """
    n, used = text.indptr[s + 1] - text.indptr[s], 0
    cells, symbols, shares = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
    if n == 0:
        return cells, symbols, shares
    room = room_for(s, s + 1, text.indptr, grammar)
    chart = inside(s, text, grammar, words, room)
    total = whole(n, grammar.root, grammar.best, chart)
    if not total >= TINY:
        return cells, symbols, shares
    out = outside(s, 1.0 / total, text, grammar, words, chart, room, tally)
    cells, symbols, shares = np.empty(len(out), np.int64), chart.symbols.copy(), out.copy()
    for c in range(len(chart.begins)):
        for e in range(chart.begins[c], chart.ends[c]):
            if out[e] > 0.0 and chart.symbols[e] < len(grammar.root):
                cells[used], symbols[used], shares[used] = c, chart.symbols[e], out[e]
                used += 1
    return cells[:used], symbols[:used], shares[:used]
