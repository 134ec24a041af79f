"""Best derivations of a grammar with many rules, and such as are drawn: see `rule_charts`.

A derivation is a list of numbers in preorder, the left child first: r for binary rule r; with J
binary rules, J + u for unary rule u; with H unary rules, J + H + e for entry e of words.

It is found top-down: what a symbol consists of is the largest of the products that its c is the
largest or the sum of, or one of them drawn in proportion.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import lean
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.rule_charts import (
    TINY,
    Chart,
    Grammar,
    Room,
    Text,
    Words,
    cell,
    clear,
    log_of,
    room_for,
    spread,
    whole,
)
from softcount.kernels.rule_coarse import Coarse, chart_of, coarse_room
from softcount.types import Array

NOTHING = -1


class Choice(NamedTuple):
    """What was chosen so far: a number of a derivation, where its right child begins, and either
    the largest product or what is still to be gone through."""

    code: int
    middle: int
    level: float


@lean
def _joined(
    low: int,
    high: int,
    middle: int,
    factor: float,
    symbol: int,
    best: bool,
    choice: Choice,
    symbols: Array,
    values: Array,
    indptr: Array,
    left: Array,
    parent: Array,
    chance: Array,
    row: Array,
) -> Choice:
    """Binary rules, the words being parted at ``middle``."""
    code, found, level = choice.code, choice.middle, choice.level
    for e in range(low, high):
        value = values[e] * factor
        for r in range(indptr[symbols[e]], indptr[symbols[e] + 1]):
            if parent[r] == symbol and row[left[r]] > 0.0:
                made = chance[r] * row[left[r]] * value
                if best and made > level:
                    code, found, level = r, middle, made
                elif not best and made > 0.0:
                    code, found, level = r, middle, level - made
                    if level < 0.0:
                        return Choice(code, found, level)
    return Choice(code, found, level)


@lean
def _parted(
    i: int,
    j: int,
    n: int,
    symbol: int,
    choice: Choice,
    grammar: Grammar,
    chart: Chart,
    row: Array,
) -> Choice:
    """Binary rules."""
    begins, ends, powers, joins = chart.begins, chart.ends, chart.powers, grammar.joins
    own, best = powers[cell(i, j, n)], grammar.best
    for k in range(i + 1, j):
        a, b = cell(i, k, n), cell(k, j, n)
        if ends[a] == begins[a] or ends[b] == begins[b]:
            continue
        spread(begins[a], ends[a], 0, grammar.n_left, chart, row)
        choice = _joined(
            begins[b], ends[b], k, math.ldexp(1.0, powers[a] + powers[b] - own), symbol, best,
            choice, chart.symbols, chart.values, joins.indptr, joins.left, joins.parent,
            joins.chance, row,
        )  # fmt: skip
        clear(begins[a], ends[a], 0, grammar.n_left, chart.symbols, row)
        if not best and choice.level < 0.0:
            break
    return choice


@lean
def _chained(
    c: int, symbol: int, choice: Choice, grammar: Grammar, chart: Chart, row: Array
) -> Choice:
    """Unary rules."""
    chains, n_joins = grammar.chains, len(grammar.joins.parent)
    if symbol >= len(grammar.root) or chains.indptr[symbol] == chains.indptr[symbol + 1]:
        return choice
    low, high, best = chart.begins[c], chart.ends[c], grammar.best
    spread(low, high, 0, grammar.n_left, chart, row)
    code, middle, level = choice.code, choice.middle, choice.level
    for u in range(chains.indptr[symbol], chains.indptr[symbol + 1]):
        made = chains.chance[u] * row[chains.child[u]]
        if best and made > level:
            code, level = n_joins + u, made
        elif not best and made > 0.0:
            code, level = n_joins + u, level - made
            if level < 0.0:
                break
    clear(low, high, 0, grammar.n_left, chart.symbols, row)
    return Choice(code, middle, level)


@lean
def _chosen(
    i: int,
    j: int,
    n: int,
    symbol: int,
    token_row: int,
    level: float,
    grammar: Grammar,
    words: Words,
    chart: Chart,
    row: Array,
) -> Choice:
    """What a symbol over a span consists of; ``level`` is 0 for the best."""
    choice, c = Choice(NOTHING, i, level), cell(i, j, n)
    if j == i + 1:
        ahead = len(grammar.joins.parent) + len(grammar.chains.child)
        for e in range(words.indptr[token_row], words.indptr[token_row + 1]):
            if words.symbols[e] == symbol and words.chances[e] > 0.0:
                made = words.chances[e] * math.ldexp(1.0, -chart.powers[c])
                choice = Choice(ahead + e, i, made if grammar.best else level - made)
    else:
        choice = _parted(i, j, n, symbol, choice, grammar, chart, row)
    if grammar.best or choice.level >= 0.0:
        choice = _chained(c, symbol, choice, grammar, chart, row)
    return choice


@lean
def _value(symbol: int, c: int, chart: Chart) -> float:
    for e in range(chart.begins[c], chart.ends[c]):
        if chart.symbols[e] == symbol:
            return float(chart.values[e])
    return 0.0


@lean
def _top(n: int, level: float, root: Array, best: bool, chart: Chart) -> int:
    """The symbol over all words."""
    found, c = NOTHING, cell(0, n, n)
    for e in range(chart.begins[c], chart.ends[c]):
        if chart.symbols[e] >= len(root):
            continue
        made = root[chart.symbols[e]] * chart.values[e]
        if best and made > level:
            found, level = chart.symbols[e], made
        elif not best and made > 0.0:
            found, level = chart.symbols[e], level - made
            if level < 0.0:
                break
    return found


@lean
def _derived(
    first: int,
    n: int,
    top: int,
    grammar: Grammar,
    words: Words,
    chart: Chart,
    room: Room,
    rights: Array,
    stream: Array,
) -> Array:
    """The numbers of one derivation."""
    n_joins, n_rules = len(grammar.joins.parent), len(grammar.chains.child)
    codes, used = np.empty(4 * n, np.int64), 0
    waiting, left = np.empty((n + 1, 3), np.int64), 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, n, top
    while left > 0:
        left -= 1
        i, j, symbol = waiting[left, 0], waiting[left, 1], waiting[left, 2]
        level = 0.0
        if not grammar.best:
            level = uniform(stream, 0) * _value(symbol, cell(i, j, n), chart)
        token_row = words.rows[first + i]
        choice = _chosen(i, j, n, symbol, token_row, level, grammar, words, chart, room.row)
        if used == len(codes):
            codes = np.concatenate((codes, codes))
        codes[used] = choice.code
        used += 1
        if choice.code < n_joins:
            k = choice.middle
            waiting[left, 0], waiting[left, 1], waiting[left, 2] = k, j, rights[choice.code]
            left += 1
            waiting[left, 0], waiting[left, 1] = i, k
            waiting[left, 2] = grammar.joins.left[choice.code]
            left += 1
        elif choice.code < n_joins + n_rules:
            waiting[left, 2] = grammar.chains.child[choice.code - n_joins]
            left += 1
    return codes[:used]


@lean
def _rights(indptr: Array, n: int) -> Array:
    """The right child of each binary rule."""
    found = np.empty(n, np.int32)
    for symbol in range(len(indptr) - 1):
        for r in range(indptr[symbol], indptr[symbol + 1]):
            found[r] = symbol
    return found


@lean
def _appended(codes: Array, used: int, own: Array) -> Array:
    """More numbers behind those that are used, in an array that may be a larger one."""
    if used + len(own) > len(codes):
        codes = np.concatenate((codes, np.empty(len(codes) + len(own), np.int64)))
    codes[used : used + len(own)] = own
    return codes


@lean
def traced(
    first: int,
    last: int,
    samples: int,
    text: Text,
    grammar: Grammar,
    words: Words,
    numbers: Array,
    seed: Any,
    logs: Array,
    coarse: Coarse,
    left_out: Array,
) -> tuple[Array, Array]:
    """Derivations of sentences ``first`` to ``last``: ``samples`` of each that are drawn, or the
    best one as often, if the grammar is one of best derivations.

    Gives their numbers, those of a sentence one after the other, and where each one begins;
    ``logs`` gets log p of the best one, or that of the sentence. What is impossible, or empty, has
    derivations without numbers. Draws depend on the seed and on the sentence's number alone.
    """
    room = room_for(first, last, text.indptr, grammar)
    more_room = coarse_room(first, last, text, coarse)
    rights = _rights(grammar.joins.indptr, len(grammar.joins.parent))
    codes, used = np.empty(1024, np.int64), 0
    borders = np.zeros((last - first) * samples + 1, np.int64)
    stream = np.empty(1, np.uint64)
    for s in range(first, last):
        n, total = text.indptr[s + 1] - text.indptr[s], 0.0
        stream[0] = item_stream(seed, numbers[s])
        if n > 0:
            chart = chart_of(s, text, grammar, words, room, coarse, more_room, left_out)
            total = whole(n, grammar.root, grammar.best, chart)
            logs[s] = log_of(total, n, chart.powers)
        for m in range(samples):
            if total >= TINY:
                level = 0.0 if grammar.best else uniform(stream, 0) * total
                top = _top(n, level, grammar.root, grammar.best, chart)
                begin = text.indptr[s]
                own = _derived(begin, n, top, grammar, words, chart, room, rights, stream)
                codes = _appended(codes, used, own)
                used += len(own)
            borders[(s - first) * samples + m + 1] = used
    return codes[:used], borders
