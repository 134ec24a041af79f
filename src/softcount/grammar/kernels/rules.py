"""Compiled charts of grammars with many given rules.

Chains of unary rules, all of them at once.

With U[A, B] = p(A → B), the chains from B up to A, of whatever length, have the weight

    G = I + U + U² + … = (I − U)⁻¹

(Stolcke 1995, "An efficient probabilistic context-free parsing algorithm that computes prefix
probabilities"). G comes from eliminating symbol after symbol (Kleene 1956), which adds and
multiplies and never subtracts but in 1 / (1 − u): entries that are zero stay so, and no digits are
lost. The best chain has the largest product in place of the sum.

Where only some symbols are allowed, chains go through these alone: each set of them has its own G.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


class Chains(NamedTuple):
    """Unary rules by left side, and what chains of them add up to.

    ``indptr``, ``child``, ``chance``   A → child[u] for u from indptr[A] to indptr[A + 1]
    ``begins``, ``tops``, ``weights``   with N symbols, what is above symbol B where set s is
                                        allowed are entries from begins[s N + B] to the next one:
                                        symbols A, and G[A, B] within the set
    """

    indptr: Array
    child: Array
    chance: Array
    begins: Array
    tops: Array
    weights: Array


@lean
def _summed(table: Array) -> bool:
    """U + U² + … in place of U; False if it has no finite sum."""
    m = len(table)
    for k in range(m):
        if not table[k, k] < 1.0:
            return False
        again = 1.0 / (1.0 - table[k, k])
        for i in range(m):
            if i != k and table[i, k] > 0.0:
                weight = table[i, k] * again
                for j in range(m):
                    table[i, j] += weight * table[k, j]
        for j in range(m):
            table[k, j] *= again
    return True


@lean
def _largest(table: Array) -> None:
    """The best chain in place of U."""
    m = len(table)
    for k in range(m):
        for i in range(m):
            if table[i, k] > 0.0:
                weight = table[i, k]
                for j in range(m):
                    table[i, j] = max(table[i, j], weight * table[k, j])


def closure(table: Array, best: bool = False) -> Array | None:
    """(I − U)⁻¹, or the weights of best chains; None if chains have no finite sum.

    >>> closure(np.array([[0.5, 0.25], [0.0, 0.0]]))
    array([[2. , 0.5],
           [0. , 1. ]])
    >>> closure(np.array([[0.5, 0.25], [0.0, 0.0]]), best=True)
    array([[1.  , 0.25],
           [0.  , 1.  ]])
    """
    found = np.array(table, np.float64)
    if best:
        _largest(found)
        np.fill_diagonal(found, 1.0)
        return found
    if not _summed(found):
        return None
    found[np.diag_indices(len(found))] += 1.0
    return found


def chains(
    indptr: Array, child: Array, chance: Array, allowed: Array, best: bool = False
) -> Chains | None:
    """Chains within each set of symbols, ``allowed`` (sets, N); None if one has no finite sum."""
    n = len(indptr) - 1
    parent = np.repeat(np.arange(n), np.diff(indptr))
    linked = np.unique(np.concatenate([parent, child]))
    place = np.zeros(n, np.int64)
    place[linked] = np.arange(len(linked))
    table = np.zeros((len(linked), len(linked)))
    np.add.at(table, (place[parent], place[child]), chance)
    sizes, tops, weights = [], [], []
    for may in np.asarray(allowed, bool):
        own = linked[may[linked]]
        found = closure(table[np.ix_(place[own], place[own])], best)
        if found is None:
            return None
        alone = np.flatnonzero(may & ~np.isin(np.arange(n), linked))
        at, above = np.nonzero(found.T)
        bottom = np.concatenate([own[at], alone])
        order = np.argsort(bottom, kind="stable")
        sizes.append(np.bincount(bottom, minlength=n))
        tops.append(np.concatenate([own[above], alone])[order])
        weights.append(np.concatenate([found.T[at, above], np.ones(len(alone))])[order])
    begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return Chains(indptr, child, chance, begins, np.concatenate(tops), np.concatenate(weights))


# Leaving out symbols of a cell that a coarse grammar thinks improbable: see `rule_coarse`.


class Sieve(NamedTuple):
    """Which symbols of cells are left out: those that a coarse grammar thinks improbable.

    ``least``    what is less probable is left out; 0: nothing
    ``classes``  of symbols
    ``priors``   p(symbol | class)
    ``shares``   p(class | sentence) of each cell, classes of a cell side by side
    ``sums``     zeros, one for each class
    """

    least: float
    classes: Array
    priors: Array
    shares: Array
    sums: Array


@lean
def is_open(c: int, sieve: Sieve) -> bool:
    """Whether anything may stay in a cell."""
    n_classes = len(sieve.sums)
    for a in range(n_classes):
        if sieve.shares[c * n_classes + a] >= sieve.least:
            return True
    return n_classes == 0


@lean
def sift(count: int, c: int, grammar: RuleTables, room: Room, sieve: Sieve) -> None:
    """Make zeros of what is left out: p(class | sentence) times the symbol's share in its class.

    What a symbol that stays may consist of by unary rules stays too, as c has these chains in it.
    """
    risen, raised, stays, waiting = room.risen, room.raised, room.base, room.based
    classes, priors, sums, chains = sieve.classes, sieve.priors, sieve.sums, grammar.chains
    at, n_known, n_waiting = c * len(sums), len(grammar.root), 0
    for e in range(count):
        sums[classes[raised[e]]] += risen[raised[e]] * priors[raised[e]]
    for e in range(count):
        symbol, own = raised[e], classes[raised[e]]
        if sieve.shares[at + own] * risen[symbol] * priors[symbol] >= sieve.least * sums[own]:
            stays[symbol] = 1.0
            if symbol < n_known:
                waiting[n_waiting] = symbol
                n_waiting += 1
    while n_waiting > 0:
        n_waiting -= 1
        top = waiting[n_waiting]
        for u in range(chains.indptr[top], chains.indptr[top + 1]):
            below = chains.child[u]
            if risen[below] > 0.0 and stays[below] == 0.0 and chains.chance[u] > 0.0:
                stays[below] = 1.0
                waiting[n_waiting] = below
                n_waiting += 1
    for e in range(count):
        symbol = raised[e]
        sums[classes[symbol]] = 0.0
        risen[symbol] *= stays[symbol]
        stays[symbol] = 0.0


# Inside and outside of a grammar with many rules, of which a sentence needs few.
#
# Rules are binary, A → X R, unary among the N symbols that users know (`unary_chains`), or they are
# of words. Symbols from N on have no unary rules, and those from ``n_left`` on are never X. With c
# for inside, b for what is below a unary chain, and β for outside (Baker 1979; Lari & Young 1990),
#
#     b[A, i, j] = Σ_k Σ_{A → X R} p c[X, i, k] c[R, k, j]          c = G b          β = Gᵀ α
#     α[R, k, j] = Σ_i Σ_{A → X R} p β[A, i, j] c[X, i, k]          α[X, i, k] likewise
#
# and rules are used β[A, i, j] p c[X, i, k] c[R, k, j] times, unary ones β[A, i, j] p c[B, i, j].
#
# A cell lists the symbols that it has. Rules are found by R, which is one of the list; X is looked
# up in a row of numbers for all X, which cells (i, k) of one i have for as long as i is the place
# at hand. c of a cell is kept times a power of two of its own, so that the largest is about one,
# and β divided by it: their products are posteriors. So long sentences neither underflow nor
# overflow.
#
# Helpers take numbers and whole arrays, as views of arrays would have their references counted.


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


class RuleTables(NamedTuple):
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


class RuleText(NamedTuple):
    """Sentence s has the tokens from indptr[s] to indptr[s + 1], and what is known of it.

    ``begins``  where the sets of the sentence's cells begin, one for each cell; −1: all are set 0
    ``sets``    which set of symbols is allowed, in the order of `cell`
    """

    indptr: Array
    begins: Array
    sets: Array


class RuleCounts(NamedTuple):
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
def rule_cell(i: int, j: int, n: int) -> int:
    """The number of the cell from i to j: row by row, by ends."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@lean
def room_for(first: int, last: int, indptr: Array, grammar: RuleTables) -> Room:
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
        a, b = rule_cell(i, k, n), rule_cell(k, j, n)
        if ends[a] > begins[a] and ends[b] > begins[b]:
            power = powers[a] + powers[b]
            most = power if not found else max(most, power)
            found = True
    return most


@lean
def _rise(count: int, at: int, grammar: RuleTables, room: Room) -> int:
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
    i: int, j: int, n: int, row: int, grammar: RuleTables, words: Words, chart: Chart, room: Room
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
        a, b = rule_cell(i, k, n), rule_cell(k, j, n)
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
    s: int, text: RuleText, grammar: RuleTables, words: Words, room: Room, sieve: Sieve
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
            chart, c = Chart(begins, middles, ends, powers, symbols, values), rule_cell(i, j, n)
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
            c = rule_cell(i, j, n)
            clear(begins[c], ends[c], j * n_left, n_left, symbols, room.row)
    return Chart(begins, middles, ends, powers, symbols, values), made


@lean
def rule_inside(s: int, text: RuleText, grammar: RuleTables, words: Words, room: Room) -> Chart:
    """c of a sentence."""
    none = np.zeros(0)
    sieve = Sieve(0.0, np.zeros(0, np.int32), none, none, none)
    return sifted_inside(s, text, grammar, words, room, sieve)[0]


@lean
def whole(n: int, root: Array, best: bool, chart: Chart) -> float:
    """p(sentence), or that of its best derivation, to be multiplied by the last cell's power."""
    total, c = 0.0, rule_cell(0, n, n)
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
    return math.log(total) + float(powers[rule_cell(0, n, n)]) * math.log(2.0)


# Outside scores and expected counts of a grammar with many rules: see `rule_charts`.


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
    grammar: RuleTables,
    words: Words,
    chart: Chart,
    room: Room,
    out: Array,
    tally: RuleCounts,
) -> None:
    """Hand β of a cell on to all below it."""
    begins, ends, powers, joins = chart.begins, chart.ends, chart.powers, grammar.joins
    c = rule_cell(i, j, n)
    if j == i + 1:
        factor = math.ldexp(1.0, -powers[c])
        for e in range(words.indptr[row], words.indptr[row + 1]):
            tally.words[e] += room.base[words.symbols[e]] * words.chances[e] * factor
        return
    for k in range(i + 1, j):
        a, b = rule_cell(i, k, n), rule_cell(k, j, n)
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
    text: RuleText,
    grammar: RuleTables,
    words: Words,
    chart: Chart,
    room: Room,
    tally: RuleCounts,
) -> Array:
    """Add what a sentence is expected to use, ``weight`` being that of the sentence over `whole`.

    Gives how often each symbol is expected in each cell.
    """
    first, n = text.indptr[s], text.indptr[s + 1] - text.indptr[s]
    n_known, n_left = len(grammar.root), grammar.n_left
    begins, ends = chart.begins, chart.ends
    out, c = np.zeros(len(chart.values)), rule_cell(0, n, n)
    for e in range(begins[c], ends[c]):
        if chart.symbols[e] < n_known:
            out[e] = grammar.root[chart.symbols[e]] * weight
            tally.root[chart.symbols[e]] += out[e] * chart.values[e]
    for i in range(n):
        for j in range(i + 1, n + 1):
            c = rule_cell(i, j, n)
            spread(begins[c], ends[c], j * n_left, n_left, chart, room.row)
        for j in range(n, i, -1):
            c = rule_cell(i, j, n)
            at = set_of(s, c, text.begins, text.sets) * n_known
            if _fall(
                begins[c], ends[c], j * n_left, at, n_known, n_left, grammar.chains,
                chart.symbols, room, out, tally.chains,
            ):  # fmt: skip
                _hand_on(i, j, n, words.rows[first + i], grammar, words, chart, room, out, tally)
            _shares(begins[c], ends[c], chart, room, out)
        for j in range(i + 1, n + 1):
            c = rule_cell(i, j, n)
            clear(begins[c], ends[c], j * n_left, n_left, chart.symbols, room.row)
            clear(begins[c], ends[c], j * n_left, n_left, chart.symbols, room.outer)
    return out


@lean
def nodes(
    s: int, text: RuleText, grammar: RuleTables, words: Words, tally: RuleCounts
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
    chart = rule_inside(s, text, grammar, words, room)
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


# Charts of a grammar with many rules from which a coarse grammar has left out what is improbable.
#
# The coarse grammar has classes of symbols in place of symbols. Where p(class | sentence) of a
# cell, times the symbol's share of what its class has in this cell, is too small, the symbol is
# left out (Charniak et al. 2006, "Multilevel coarse-to-fine PCFG parsing"). A sentence that then
# has no derivation is gone through again with nothing left out.


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
    grammar: RuleTables
    words: Words


@lean
def _sieve(s: int, text: RuleText, coarse: Coarse, room: Room) -> Sieve:
    """What the coarse grammar thinks of a sentence."""
    n, grammar = text.indptr[s + 1] - text.indptr[s], coarse.grammar
    n_classes = len(grammar.joins.wide)
    shares = np.zeros(n * (n + 1) // 2 * n_classes)
    chart = rule_inside(s, text, grammar, coarse.words, room)
    total = whole(n, grammar.root, grammar.best, chart)
    if total >= TINY:
        unused = RuleCounts(
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
def coarse_room(first: int, last: int, text: RuleText, coarse: Coarse) -> Room:
    """Room for the charts of classes."""
    return room_for(first, last if coarse.least > 0.0 else first, text.indptr, coarse.grammar)


@lean
def chart_of(
    s: int,
    text: RuleText,
    grammar: RuleTables,
    words: Words,
    room: Room,
    coarse: Coarse,
    coarse_room: Room,
    left_out: Array,
) -> Chart:
    """c of a sentence, of what is not left out; and count this: see `Tally`."""
    if not coarse.least > 0.0:
        return rule_inside(s, text, grammar, words, room)
    sieve = _sieve(s, text, coarse, coarse_room)
    chart, made = sifted_inside(s, text, grammar, words, room, sieve)
    n, stayed = text.indptr[s + 1] - text.indptr[s], 0
    if not whole(n, grammar.root, grammar.best, chart) >= TINY:
        chart = rule_inside(s, text, grammar, words, room)
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
    text: RuleText,
    grammar: RuleTables,
    words: Words,
    weights: Array,
    tally: RuleCounts,
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


# Best derivations of a grammar with many rules, and such as are drawn: see `rule_charts`.
#
# A derivation is a list of numbers in preorder, the left child first: r for binary rule r; with J
# binary rules, J + u for unary rule u; with H unary rules, J + H + e for entry e of words.
#
# It is found top-down: what a symbol consists of is the largest of the products that its c is the
# largest or the sum of, or one of them drawn in proportion.


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
    grammar: RuleTables,
    chart: Chart,
    row: Array,
) -> Choice:
    """Binary rules."""
    begins, ends, powers, joins = chart.begins, chart.ends, chart.powers, grammar.joins
    own, best = powers[rule_cell(i, j, n)], grammar.best
    for k in range(i + 1, j):
        a, b = rule_cell(i, k, n), rule_cell(k, j, n)
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
    c: int, symbol: int, choice: Choice, grammar: RuleTables, chart: Chart, row: Array
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
    grammar: RuleTables,
    words: Words,
    chart: Chart,
    row: Array,
) -> Choice:
    """What a symbol over a span consists of; ``level`` is 0 for the best."""
    choice, c = Choice(NOTHING, i, level), rule_cell(i, j, n)
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
    found, c = NOTHING, rule_cell(0, n, n)
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
    grammar: RuleTables,
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
            level = uniform(stream, 0) * _value(symbol, rule_cell(i, j, n), chart)
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
    text: RuleText,
    grammar: RuleTables,
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
