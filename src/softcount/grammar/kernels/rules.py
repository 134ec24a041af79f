"""Compiled charts of rule-based grammars: many rules, of which a sentence needs few.

Rules are binary, A → X R; unary among the N nonterminals; or lexical, A → word. Symbols from N on,
which binarising made, have no unary rules, and those from ``n_left`` on are never a left child X.
With β for inside, β₀ for inside below a chain of unary rules, α for outside, α₀ for outside above
such a chain (Baker 1979; Lari & Young 1990),

    β₀[A, i, j] = Σ_k Σ_{A → X R} p β[X, i, k] β[R, k, j]        β = G β₀        α = Gᵀ α₀
    α₀[R, k, j] = Σ_i Σ_{A → X R} p α[A, i, j] β[X, i, k]        α₀[X, i, k] likewise

and A → X R is expected α[A, i, j] p β[X, i, k] β[R, k, j] times, A → B α[A, i, j] p β[B, i, j]
times.

G sums over chains of unary rules, of any length. With U[A, B] = p(A → B),

    G = I + U + U² + … = (I − U)⁻¹

(Stolcke 1995, "An efficient probabilistic context-free parsing algorithm that computes prefix
probabilities"). G comes from eliminating symbol after symbol (Kleene 1956), which adds and
multiplies and never subtracts but in 1 / (1 − u): entries that are zero stay so, and no digits are
lost. For Viterbi, the best chain has the largest product in place of the sum. Where only some
symbols are allowed, chains go through these alone: each set of symbols has its own G.

A cell of the chart lists the symbols that it has. Rules are found by R, which is one of the list; X
is looked up in a row of numbers for all X, which the cells (i, k) of one i keep for as long as i is
the current start. β of a cell is kept times a power of two of its own, so that the largest is about
one, and α divided by it: their products are posteriors. So long sentences neither underflow nor
overflow.

Helpers take numbers and whole arrays, as views of arrays would have their references counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform


class UnaryRules(NamedTuple):
    """Unary rules by left side, and what chains of them add up to.

    A → child[u] has probability[u], u from indptr[A] to indptr[A + 1]. With N nonterminals, the
    symbols A above B where set s is allowed are closure_parents[e], and G[A, B] within the set is
    closure_weights[e], e from closure_indptr[s N + B] to closure_indptr[s N + B + 1].
    """

    indptr: IntArray
    child: IntArray
    probability: FloatArray
    closure_indptr: IntArray
    closure_parents: IntArray
    closure_weights: FloatArray


@lean
def _eliminate(table: Array, viterbi: bool) -> bool:
    """U + U² + … (or the best chains) in place of U; False if it has no finite sum."""
    m = len(table)
    for k in range(m):
        geometric = 1.0
        if not viterbi:
            if not table[k, k] < 1.0:
                return False
            geometric = 1.0 / (1.0 - table[k, k])
        for i in range(m):
            if i != k and table[i, k] > 0.0:
                weight = table[i, k] * geometric
                for j in range(m):
                    more = weight * table[k, j]
                    table[i, j] = max(table[i, j], more) if viterbi else table[i, j] + more
        for j in range(m):
            table[k, j] *= geometric
    return True


def unary_closure(table: Array, viterbi: bool = False) -> Array | None:
    """(I − U)⁻¹, or the weights of best chains; None if chains have no finite sum.

    >>> unary_closure(np.array([[0.5, 0.25], [0.0, 0.0]]))
    array([[2. , 0.5],
           [0. , 1. ]])
    >>> unary_closure(np.array([[0.5, 0.25], [0.0, 0.0]]), viterbi=True)
    array([[1.  , 0.25],
           [0.  , 1.  ]])
    """
    closure = np.array(table, np.float64)
    if not _eliminate(closure, viterbi):
        return None
    diagonal = np.diag_indices(len(closure))
    closure[diagonal] = 1.0 if viterbi else closure[diagonal] + 1.0
    return closure


def make_unary_rules(
    indptr: Array, child: Array, probability: Array, allowed: Array, viterbi: bool = False
) -> UnaryRules | None:
    """Unary rules with the closure within each set of symbols; None if one has no finite sum.

    ``allowed``  bool (sets, N)
    """
    n = len(indptr) - 1
    parent = np.repeat(np.arange(n), np.diff(indptr))
    linked = np.unique(np.concatenate([parent, child]))
    place = np.zeros(n, np.int64)
    place[linked] = np.arange(len(linked))
    table = np.zeros((len(linked), len(linked)))
    np.add.at(table, (place[parent], place[child]), probability)
    sizes, parents, weights = [], [], []
    for inside_set in np.asarray(allowed, bool):
        own = linked[inside_set[linked]]
        found = unary_closure(table[np.ix_(place[own], place[own])], viterbi)
        if found is None:
            return None
        unlinked = np.flatnonzero(inside_set & ~np.isin(np.arange(n), linked))
        at, above = np.nonzero(found.T)
        bottom = np.concatenate([own[at], unlinked])
        order = np.argsort(bottom, kind="stable")
        sizes.append(np.bincount(bottom, minlength=n))
        parents.append(np.concatenate([own[above], unlinked])[order])
        weights.append(np.concatenate([found.T[at, above], np.ones(len(unlinked))])[order])
    begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    closure = (begins, np.concatenate(parents), np.concatenate(weights))
    return UnaryRules(indptr, child, probability, *closure)


TINY = float(np.finfo(np.float64).tiny)
"""What is smaller counts as impossible: its inverse is not finite."""
NEGLIGIBLE = -1000
"""What is smaller by such a power of two counts for nothing beside the rest."""
FIRST_ENTRIES = 4096


class BinaryRules(NamedTuple):
    """Binary rules by the right child: parent[r] → left[r] R, r from indptr[R] to indptr[R + 1].

    ``wide``  rules up to wide[R] have a left child that may span several words
    """

    indptr: IntArray
    wide: IntArray
    left: IntArray
    parent: IntArray
    probability: FloatArray


class RuleTables(NamedTuple):
    """Rules with their probabilities.

    ``root``     float64 (N,): p(nonterminal is the root)
    ``n_left``   symbols from this on are never a left child
    ``viterbi``  whether charts and chains have the best derivation in place of the sum of all
    """

    root: FloatArray
    n_left: int
    binary: BinaryRules
    unary: UnaryRules
    viterbi: bool


class LexicalRules(NamedTuple):
    """Lexical rules by word: those of token t are in row r = rows[t].

    symbols[e] → token has probabilities[e], e from indptr[r] to indptr[r + 1], no symbol twice.
    """

    rows: IntArray
    indptr: IntArray
    symbols: IntArray
    probabilities: FloatArray


class RuleText(NamedTuple):
    """Sentences, and which symbols their cells may have.

    ``indptr``   int64 (sentences + 1,): the tokens of each sentence
    ``begins``   int64 (sentences,): where the sets of its cells begin; −1: all are set 0
    ``sets``     int64: the set of symbols allowed in each cell, in the order of `cell_index`
    ``weights``  float64 (sentences,): how often each counts
    ``numbers``  int64 (sentences,): what samples depend on
    """

    indptr: IntArray
    begins: IntArray
    sets: IntArray
    weights: FloatArray
    numbers: IntArray


class ChartInput(NamedTuple):
    """What charts are filled from."""

    text: RuleText
    grammar: RuleTables
    lexical: LexicalRules


class RuleCounts(NamedTuple):
    """How often rules were used, or are expected to be.

    ``log_p``    float64 (sentences,): log p of each
    ``root``     float64 (N,)
    ``binary``   float64, one number for each of `BinaryRules`
    ``unary``    float64, one number for each of `UnaryRules`
    ``lexical``  float64, one number for each of `LexicalRules`
    ``pruned``   float64 (3,): how many symbols cells had before pruning, how many of them were
                 pruned, and how many sentences had to be parsed again without pruning
    """

    log_p: FloatArray
    root: FloatArray
    binary: FloatArray
    unary: FloatArray
    lexical: FloatArray
    pruned: FloatArray


class RuleChart(NamedTuple):
    """β of a sentence: that of symbols[e] over cell c is values[e] · 2^exponents[c].

    Entries e are from begins[c] to ends[c]; those up to middles[c] may be right children beside
    several words, the others beside one word only.
    """

    begins: IntArray
    middles: IntArray
    ends: IntArray
    exponents: IntArray
    symbols: Array
    values: FloatArray


class CellWorkspace(NamedTuple):
    """Where one cell is worked on: numbers of all symbols, all zero between two cells.

    ``below``, ``below_symbols``    β₀ (outside: α), and a list of the symbols that have some
    ``closed``, ``closed_symbols``  β (outside: α₀), and a list of the symbols that have some
    ``left_inside``                 β of left children in all cells that begin at the current start
    ``left_outside``                α₀ of the same
    """

    below: FloatArray
    below_symbols: IntArray
    closed: FloatArray
    closed_symbols: IntArray
    left_inside: FloatArray
    left_outside: FloatArray


@merged
def cell_index(i: int, j: int, n: int) -> int:
    """The number of the cell from i to j: row by row, by ends."""
    return i * n - i * (i - 1) // 2 + j - i - 1


@lean
def make_cell_workspace(first: int, last: int, indptr: Array, grammar: RuleTables) -> CellWorkspace:
    """A workspace for the longest of some sentences."""
    longest = 0
    for s in range(first, last):
        longest = max(longest, indptr[s + 1] - indptr[s])
    n, wide = len(grammar.binary.indptr) - 1, (longest + 1) * grammar.n_left
    return CellWorkspace(
        np.zeros(n),
        np.empty(n, np.int32),
        np.zeros(n),
        np.empty(n, np.int32),
        np.zeros(wide),
        np.zeros(wide),
    )


class CoarseGrammar(NamedTuple):
    """A grammar of classes of symbols, by which improbable symbols of cells are pruned.

    See `softcount.grammar.rule_based`.

    ``threshold``             what is less probable is pruned; 0: nothing
    ``classes``               int32 (symbols,): the class of each
    ``priors``                float64 (symbols,): p(symbol | class)
    ``grammar``, ``lexical``  of classes in place of symbols
    """

    threshold: float
    classes: IntArray
    priors: FloatArray
    grammar: RuleTables
    lexical: LexicalRules


@lean
def prune_cell(
    count: int,
    grammar: RuleTables,
    work: CellWorkspace,
    coarse: CoarseGrammar,
    posteriors: Array,
    sums: Array,
) -> None:
    """Set to zero what is improbable: p(class | sentence) times the symbol's share of its class.

    What a symbol that stays may derive by unary rules stays too, as β has these chains in it.

    ``posteriors``  (classes,): p(class over the cell | sentence)
    ``sums``        (classes,): zeros, before and after
    """
    closed, closed_symbols = work.closed, work.closed_symbols
    stays, waiting = work.below, work.below_symbols
    classes, priors, unary, n_waiting = coarse.classes, coarse.priors, grammar.unary, 0
    for e in range(count):
        sums[classes[closed_symbols[e]]] += closed[closed_symbols[e]] * priors[closed_symbols[e]]
    for e in range(count):
        symbol, own = closed_symbols[e], classes[closed_symbols[e]]
        share = posteriors[own] * closed[symbol] * priors[symbol]
        if share >= coarse.threshold * sums[own]:
            stays[symbol] = 1.0
            if symbol < len(grammar.root):
                waiting[n_waiting] = symbol
                n_waiting += 1
    while n_waiting > 0:
        n_waiting -= 1
        parent = waiting[n_waiting]
        for u in range(unary.indptr[parent], unary.indptr[parent + 1]):
            child = unary.child[u]
            if closed[child] > 0.0 and stays[child] == 0.0 and unary.probability[u] > 0.0:
                stays[child] = 1.0
                waiting[n_waiting] = child
                n_waiting += 1
    for e in range(count):
        symbol = closed_symbols[e]
        sums[classes[symbol]] = 0.0
        closed[symbol] *= stays[symbol]
        stays[symbol] = 0.0


# Inside


@lean
def _fill_below(
    i: int, j: int, n: int, row: int, given: ChartInput, chart: RuleChart, work: CellWorkspace
) -> tuple[int, int]:
    """β₀ of a cell; returns how many symbols have some, and its exponent.

    ``row``  that of the first word among lexical rules
    """
    grammar, lexical = given.grammar, given.lexical
    below, below_symbols, count = work.below, work.below_symbols, 0
    if j == i + 1:
        for e in range(lexical.indptr[row], lexical.indptr[row + 1]):
            if lexical.probabilities[e] > 0.0:
                below[lexical.symbols[e]] = lexical.probabilities[e]
                below_symbols[count] = lexical.symbols[e]
                count += 1
        return count, 0
    begins, ends, exponents = chart.begins, chart.ends, chart.exponents
    largest, found = 0, False  # the largest exponent of two cells side by side
    for k in range(i + 1, j):
        a, b = cell_index(i, k, n), cell_index(k, j, n)
        if ends[a] > begins[a] and ends[b] > begins[b]:
            exponent = exponents[a] + exponents[b]
            largest = max(largest, exponent) if found else exponent
            found = True
    symbols, values, left_inside = chart.symbols, chart.values, work.left_inside
    (indptr, wide, left, parent, probability), viterbi = grammar.binary, grammar.viterbi
    for k in range(i + 1, j):
        a, b = cell_index(i, k, n), cell_index(k, j, n)
        less = exponents[a] + exponents[b] - largest
        if ends[a] == begins[a] or ends[b] == begins[b] or less <= NEGLIGIBLE:
            continue
        one_word, offset, factor = k == i + 1, k * grammar.n_left, math.ldexp(1.0, less)
        for e in range(begins[b], ends[b] if one_word else chart.middles[b]):
            symbol, value = symbols[e], values[e] * factor
            for r in range(indptr[symbol], indptr[symbol + 1] if one_word else wide[symbol]):
                left_value = left_inside[offset + left[r]]
                if left_value > 0.0:
                    product = probability[r] * left_value * value
                    if product > 0.0:
                        top = parent[r]
                        if below[top] == 0.0:
                            below_symbols[count] = top
                            count += 1
                        below[top] = max(below[top], product) if viterbi else below[top] + product
    return count, largest


@lean
def _close_unary(count: int, at: int, grammar: RuleTables, work: CellWorkspace) -> int:
    """β of a cell from its β₀, which is cleared; returns how many symbols have some."""
    below, below_symbols = work.below, work.below_symbols
    closed, closed_symbols = work.closed, work.closed_symbols
    begins, tops = grammar.unary.closure_indptr, grammar.unary.closure_parents
    weights, viterbi, found = grammar.unary.closure_weights, grammar.viterbi, 0
    for e in range(count):
        symbol = below_symbols[e]
        value, below[symbol] = below[symbol], 0.0
        if symbol >= len(grammar.root):
            closed[symbol] = value
            closed_symbols[found] = symbol
            found += 1
            continue
        for u in range(begins[at + symbol], begins[at + symbol + 1]):
            top, more = tops[u], weights[u] * value
            if more > 0.0:
                if closed[top] == 0.0:
                    closed_symbols[found] = top
                    found += 1
                closed[top] = max(closed[top], more) if viterbi else closed[top] + more
    return found


@lean
def _store_cell(
    count: int, used: int, binary: BinaryRules, work: CellWorkspace, symbols: Array, values: Array
) -> tuple[int, int, int]:
    """Write β of a cell into the chart, and clear it; returns its end, middle and exponent."""
    closed, closed_symbols = work.closed, work.closed_symbols
    most = 0.0
    for e in range(count):
        most = max(most, closed[closed_symbols[e]])
    exponent = math.frexp(most)[1]
    factor = math.ldexp(1.0, -exponent) if most >= TINY else 0.0
    middle = used
    for one_word in (False, True):
        middle = used if one_word else middle
        for e in range(count):
            symbol = closed_symbols[e]
            if (binary.wide[symbol] == binary.indptr[symbol]) != one_word:
                continue
            value, closed[symbol] = closed[symbol] * factor, 0.0
            if value > 0.0:
                symbols[used], values[used] = symbol, value
                used += 1
    return used, middle, exponent


@lean
def _grow(old: Array, used: int, size: int) -> Array:
    new = np.empty(max(2 * len(old), size), old.dtype)
    new[:used] = old[:used]
    return new


@lean
def scatter_cell(
    low: int, high: int, offset: int, n_left: int, chart: RuleChart, row: Array
) -> None:
    """Write β of a cell into a row of numbers for all left children."""
    for e in range(low, high):
        if chart.symbols[e] < n_left:
            row[offset + chart.symbols[e]] = chart.values[e]


@lean
def clear_cell(low: int, high: int, offset: int, n_left: int, symbols: Array, row: Array) -> None:
    """Make zeros of what `scatter_cell` wrote."""
    for e in range(low, high):
        if symbols[e] < n_left:
            row[offset + symbols[e]] = 0.0


@lean
def closure_row(s: int, c: int, text: RuleText, n_nonterminals: int) -> int:
    """Where the closure of a cell's set of allowed symbols begins: see `UnaryRules`."""
    return 0 if text.begins[s] < 0 else text.sets[text.begins[s] + c] * n_nonterminals


@lean
def pruned_inside(
    s: int, given: ChartInput, work: CellWorkspace, coarse: CoarseGrammar, posteriors: Array
) -> tuple[RuleChart, int]:
    """β of a sentence, and how many symbols its cells had before pruning.

    ``posteriors``  (cells, classes): p(class over the cell | sentence)
    """
    text, grammar, lexical = given
    first, n = text.indptr[s], text.indptr[s + 1] - text.indptr[s]
    n_left, n_cells, prunes = grammar.n_left, n * (n + 1) // 2, coarse.threshold > 0.0
    begins, ends = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    middles, exponents = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    symbols, values = np.empty(FIRST_ENTRIES, np.int32), np.empty(FIRST_ENTRIES)
    used, n_before, sums = 0, 0, np.zeros(posteriors.shape[1])
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            chart = RuleChart(begins, middles, ends, exponents, symbols, values)
            c = cell_index(i, j, n)
            begins[c] = ends[c] = used
            if prunes and not (posteriors[c] >= coarse.threshold).any():
                continue  # no class is probable enough here
            row = lexical.rows[first + i]
            count, exponent = _fill_below(i, j, n, row, given, chart, work)
            at = closure_row(s, c, text, len(grammar.root))
            count = _close_unary(count, at, grammar, work)
            n_before += count
            if prunes:
                prune_cell(count, grammar, work, coarse, posteriors[c], sums)
            if used + count > len(symbols):
                symbols = _grow(symbols, used, used + count)
                values = _grow(values, used, used + count)
            used, middles[c], more = _store_cell(count, used, grammar.binary, work, symbols, values)
            ends[c], exponents[c] = used, exponent + more
            chart = RuleChart(begins, middles, ends, exponents, symbols, values)
            scatter_cell(begins[c], used, j * n_left, n_left, chart, work.left_inside)
        for j in range(i + 1, n + 1):
            c = cell_index(i, j, n)
            clear_cell(begins[c], ends[c], j * n_left, n_left, symbols, work.left_inside)
    return RuleChart(begins, middles, ends, exponents, symbols, values), n_before


@lean
def inside(s: int, given: ChartInput, work: CellWorkspace) -> RuleChart:
    """β of a sentence."""
    no_classes = np.zeros(0, np.int32), np.zeros(0)
    unpruned = CoarseGrammar(0.0, *no_classes, given.grammar, given.lexical)
    return pruned_inside(s, given, work, unpruned, np.zeros((0, 0)))[0]


@lean
def sentence_probability(n: int, grammar: RuleTables, chart: RuleChart) -> float:
    """p(sentence), or that of its best derivation, but for the exponent of the last cell."""
    total, c = 0.0, cell_index(0, n, n)
    for e in range(chart.begins[c], chart.ends[c]):
        if chart.symbols[e] < len(grammar.root):
            more = grammar.root[chart.symbols[e]] * chart.values[e]
            total = max(total, more) if grammar.viterbi else total + more
    return total


@lean
def log_probability(total: float, n: int, exponents: Array) -> float:
    """log of what `sentence_probability` gives, −inf if the sentence is impossible."""
    if not total >= TINY:
        return -np.inf
    return math.log(total) + float(exponents[cell_index(0, n, n)]) * math.log(2.0)


# Outside, and expected counts


@lean
def _outside_cell(
    i: int,
    j: int,
    s: int,
    given: ChartInput,
    chart: RuleChart,
    work: CellWorkspace,
    out: Array,
    counts: RuleCounts,
) -> None:
    """α of a cell (in ``below``) from its α₀ goes on to all below it; their rules are counted."""
    text, grammar, lexical = given
    begins, ends, exponents = chart.begins, chart.ends, chart.exponents
    symbols, values, alpha, above = chart.symbols, chart.values, work.below, work.closed
    left_inside, left_outside, unary = work.left_inside, work.left_outside, grammar.unary
    n, n_left, some = text.indptr[s + 1] - text.indptr[s], grammar.n_left, False
    c = cell_index(i, j, n)
    for e in range(begins[c], ends[c]):
        symbol = symbols[e]
        above[symbol] = out[e]
        if symbol < n_left:
            above[symbol] += left_outside[j * n_left + symbol]
        some = some or above[symbol] > 0.0
    if not some:
        return
    at = closure_row(s, c, text, len(grammar.root))
    for e in range(begins[c], ends[c]):
        symbol = symbols[e]
        if symbol >= len(grammar.root):
            alpha[symbol] = above[symbol]
            continue
        total = 0.0
        for u in range(unary.closure_indptr[at + symbol], unary.closure_indptr[at + symbol + 1]):
            total += unary.closure_weights[u] * above[unary.closure_parents[u]]
        alpha[symbol] = total
        for u in range(unary.indptr[symbol], unary.indptr[symbol + 1]):
            child = left_inside[j * n_left + unary.child[u]]
            counts.unary[u] += total * unary.probability[u] * child
    if j == i + 1:
        factor, row = math.ldexp(1.0, -exponents[c]), lexical.rows[text.indptr[s] + i]
        for e in range(lexical.indptr[row], lexical.indptr[row + 1]):
            counts.lexical[e] += alpha[lexical.symbols[e]] * lexical.probabilities[e] * factor
        return
    binary_counts, (indptr, wide, left, parent, probability) = counts.binary, grammar.binary
    for k in range(i + 1, j):
        a, b = cell_index(i, k, n), cell_index(k, j, n)
        if ends[a] == begins[a] or ends[b] == begins[b]:
            continue
        factor = math.ldexp(1.0, exponents[a] + exponents[b] - exponents[c])
        one_word, offset = k == i + 1, k * n_left
        for e in range(begins[b], ends[b] if one_word else chart.middles[b]):
            symbol, value, total = symbols[e], values[e], 0.0
            for r in range(indptr[symbol], indptr[symbol + 1] if one_word else wide[symbol]):
                parent_outside = alpha[parent[r]]
                if parent_outside > 0.0:
                    left_value = left_inside[offset + left[r]]
                    if left_value > 0.0:
                        share = probability[r] * factor * parent_outside
                        total += share * left_value
                        left_outside[offset + left[r]] += share * value
                        binary_counts[r] += share * left_value * value
            out[e] += total


@lean
def outside(
    s: int,
    weight: float,
    given: ChartInput,
    chart: RuleChart,
    work: CellWorkspace,
    counts: RuleCounts,
) -> Array:
    """Add the expected counts of a sentence; returns the posterior of each symbol in each cell.

    ``weight``  that of the sentence over `sentence_probability`
    """
    text, grammar, _ = given
    n, n_left = text.indptr[s + 1] - text.indptr[s], grammar.n_left
    begins, ends, symbols = chart.begins, chart.ends, chart.symbols
    out, c = np.zeros(len(chart.values)), cell_index(0, n, n)
    for e in range(begins[c], ends[c]):
        if symbols[e] < len(grammar.root):
            out[e] = grammar.root[symbols[e]] * weight
            counts.root[symbols[e]] += out[e] * chart.values[e]
    for i in range(n):
        for j in range(i + 1, n + 1):
            c = cell_index(i, j, n)
            scatter_cell(begins[c], ends[c], j * n_left, n_left, chart, work.left_inside)
        for j in range(n, i, -1):
            c = cell_index(i, j, n)
            _outside_cell(i, j, s, given, chart, work, out, counts)
            for e in range(begins[c], ends[c]):  # posteriors, α β, in place of α₀
                out[e] = work.below[symbols[e]] * chart.values[e]
                work.below[symbols[e]] = work.closed[symbols[e]] = 0.0
        for j in range(i + 1, n + 1):
            c = cell_index(i, j, n)
            clear_cell(begins[c], ends[c], j * n_left, n_left, symbols, work.left_inside)
            clear_cell(begins[c], ends[c], j * n_left, n_left, symbols, work.left_outside)
    return out


@lean
def span_posteriors(s: int, given: ChartInput, counts: RuleCounts) -> tuple[Array, Array, Array]:
    """How often each nonterminal is expected over each span of a sentence.

    Returns cells, symbols, and expected numbers, which may be above one where unary rules go round.
    A sentence that is impossible or empty has none. ``counts`` gets expected counts.
    """
    text, grammar, _ = given
    n, used = text.indptr[s + 1] - text.indptr[s], 0
    cells, symbols, posteriors = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
    if n == 0:
        return cells, symbols, posteriors
    work = make_cell_workspace(s, s + 1, text.indptr, grammar)
    chart = inside(s, given, work)
    total = sentence_probability(n, grammar, chart)
    if not total >= TINY:
        return cells, symbols, posteriors
    out = outside(s, 1.0 / total, given, chart, work, counts)
    cells, symbols, posteriors = np.empty(len(out), np.int64), chart.symbols.copy(), out.copy()
    for c in range(len(chart.begins)):
        for e in range(chart.begins[c], chart.ends[c]):
            if out[e] > 0.0 and chart.symbols[e] < len(grammar.root):
                cells[used], symbols[used], posteriors[used] = c, chart.symbols[e], out[e]
                used += 1
    return cells[:used], symbols[:used], posteriors[:used]


# Coarse-to-fine pruning
#
# The coarse grammar has classes of symbols in place of symbols. Where p(class | sentence) of a
# cell, times the symbol's share of what its class has in this cell, is too small, the symbol is
# pruned (Charniak et al. 2006, "Multilevel coarse-to-fine PCFG parsing"). A sentence that then has
# no derivation is parsed again without pruning.


@lean
def _class_posteriors(s: int, text: RuleText, coarse: CoarseGrammar, work: CellWorkspace) -> Array:
    """p(class over the cell | sentence), (cells, classes)."""
    n, grammar, lexical = text.indptr[s + 1] - text.indptr[s], coarse.grammar, coarse.lexical
    posteriors, none = np.zeros((n * (n + 1) // 2, len(grammar.binary.wide))), np.zeros(0)
    given = ChartInput(text, grammar, lexical)
    chart = inside(s, given, work)
    total = sentence_probability(n, grammar, chart)
    if total >= TINY:
        root, binary = np.zeros(len(grammar.root)), np.zeros(len(grammar.binary.parent))
        unused = RuleCounts(none, root, binary, none, np.zeros(len(lexical.symbols)), none)
        out = outside(s, 1.0 / total, given, chart, work, unused)
        for c in range(len(chart.begins)):
            for e in range(chart.begins[c], chart.ends[c]):
                posteriors[c, chart.symbols[e]] = out[e]
    return posteriors


@lean
def inside_coarse_to_fine(
    s: int,
    given: ChartInput,
    work: CellWorkspace,
    coarse: CoarseGrammar,
    coarse_work: CellWorkspace,
    pruned: Array,
) -> RuleChart:
    """β of a sentence, of what is not pruned; ``pruned`` is that of `RuleCounts`."""
    if not coarse.threshold > 0.0:
        return inside(s, given, work)
    text, grammar, _ = given
    posteriors = _class_posteriors(s, text, coarse, coarse_work)
    chart, n_before = pruned_inside(s, given, work, coarse, posteriors)
    n = text.indptr[s + 1] - text.indptr[s]
    if not sentence_probability(n, grammar, chart) >= TINY:
        chart = inside(s, given, work)
        pruned[2] += int(sentence_probability(n, grammar, chart) >= TINY)
        return chart
    pruned[0] += n_before
    pruned[1] += n_before - (chart.ends - chart.begins).sum()
    return chart


@lean
def inside_outside(
    first: int,
    last: int,
    given: ChartInput,
    counts: RuleCounts,
    with_counts: bool,
    coarse: CoarseGrammar,
) -> None:
    """Sentences ``first`` to ``last``: log p of each and, if ``with_counts``, expected counts.

    Empty sentences are skipped; impossible ones count nothing.
    """
    text, grammar, _ = given
    work = make_cell_workspace(first, last, text.indptr, grammar)
    coarse_last = last if coarse.threshold > 0.0 else first
    coarse_work = make_cell_workspace(first, coarse_last, text.indptr, coarse.grammar)
    for s in range(first, last):
        n, weight = text.indptr[s + 1] - text.indptr[s], text.weights[s]
        if n == 0:
            continue
        chart = inside_coarse_to_fine(s, given, work, coarse, coarse_work, counts.pruned)
        total = sentence_probability(n, grammar, chart)
        counts.log_p[s] = log_probability(total, n, chart.exponents)
        if with_counts and total >= TINY and weight > 0.0:
            outside(s, weight / total, given, chart, work, counts)


# Viterbi derivations, and samples of derivations
#
# A derivation is a list of codes in preorder, the left child first: r for binary rule r; with J
# binary rules, J + u for unary rule u; with H unary rules, J + H + e for entry e of the lexical
# rules.
#
# It is traced top-down: a symbol is expanded by the largest of the products that its β is the
# maximum or the sum of, or by one of them drawn in proportion. Viterbi keeps the largest product so
# far as its ``level``; a sampler draws a level and takes the products off it, until it is negative.


NOTHING = -1
"""In place of a code, or a symbol, that was not found."""


@lean
def _choose_binary(
    i: int,
    j: int,
    n: int,
    symbol: int,
    level: float,
    grammar: RuleTables,
    chart: RuleChart,
    row: Array,
) -> tuple[int, int, float]:
    """Try binary rules: returns the code, where the right child begins, and the new level."""
    begins, ends, exponents = chart.begins, chart.ends, chart.exponents
    symbols, values, viterbi = chart.symbols, chart.values, grammar.viterbi
    indptr, left, parent = grammar.binary.indptr, grammar.binary.left, grammar.binary.parent
    probability, code, split, done = grammar.binary.probability, NOTHING, i, False
    for k in range(i + 1, j):
        a, b = cell_index(i, k, n), cell_index(k, j, n)
        if ends[a] == begins[a] or ends[b] == begins[b]:
            continue
        scatter_cell(begins[a], ends[a], 0, grammar.n_left, chart, row)
        factor = math.ldexp(1.0, exponents[a] + exponents[b] - exponents[cell_index(i, j, n)])
        for e in range(begins[b], ends[b]):
            value = values[e] * factor
            for r in range(indptr[symbols[e]], indptr[symbols[e] + 1]):
                if parent[r] == symbol and row[left[r]] > 0.0:
                    product = probability[r] * row[left[r]] * value
                    if viterbi and product > level:
                        code, split, level = r, k, product
                    elif not viterbi and product > 0.0:
                        code, split, level = r, k, level - product
                        done = level < 0.0
                        if done:
                            break
            if done:
                break
        clear_cell(begins[a], ends[a], 0, grammar.n_left, symbols, row)
        if done:
            break
    return code, split, level


@lean
def _choose_expansion(
    i: int,
    j: int,
    n: int,
    symbol: int,
    level: float,
    token_row: int,
    given: ChartInput,
    chart: RuleChart,
    row: Array,
) -> tuple[int, int]:
    """The code of the rule that expands a symbol over a span, and where its right child begins."""
    grammar, lexical = given.grammar, given.lexical
    code, split, c, viterbi = NOTHING, i, cell_index(i, j, n), grammar.viterbi
    unary, n_binary = grammar.unary, len(grammar.binary.parent)
    if j == i + 1:
        for e in range(lexical.indptr[token_row], lexical.indptr[token_row + 1]):
            if lexical.symbols[e] == symbol and lexical.probabilities[e] > 0.0:
                product = lexical.probabilities[e] * math.ldexp(1.0, -chart.exponents[c])
                code = n_binary + len(unary.child) + e
                level = product if viterbi else level - product
    else:
        code, split, level = _choose_binary(i, j, n, symbol, level, grammar, chart, row)
    if symbol >= len(grammar.root) or not (viterbi or level >= 0.0):
        return code, split
    first, last = unary.indptr[symbol], unary.indptr[symbol + 1]
    if first < last:
        scatter_cell(chart.begins[c], chart.ends[c], 0, grammar.n_left, chart, row)
        for u in range(first, last):
            product = unary.probability[u] * row[unary.child[u]]
            if viterbi and product > level:
                code, level = n_binary + u, product
            elif not viterbi and product > 0.0:
                code, level = n_binary + u, level - product
                if level < 0.0:
                    break
        clear_cell(chart.begins[c], chart.ends[c], 0, grammar.n_left, chart.symbols, row)
    return code, split


@lean
def _derive(
    first: int,
    n: int,
    total: float,
    given: ChartInput,
    chart: RuleChart,
    work: CellWorkspace,
    rights: Array,
    stream: Array,
) -> Array:
    """The codes of one derivation.

    ``first``   the sentence's first token
    ``total``   its `sentence_probability`
    ``rights``  int (binary rules,): their right children
    """
    grammar = given.grammar
    n_binary, n_unary = len(grammar.binary.parent), len(grammar.unary.child)
    codes, used = np.empty(4 * n, np.int64), 0
    waiting, left = np.empty((n + 1, 3), np.int64), 1  # starts, ends, symbols
    level, c = 0.0 if grammar.viterbi else uniform(stream, 0) * total, cell_index(0, n, n)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, n, NOTHING
    for e in range(chart.begins[c], chart.ends[c]):  # the symbol over all words
        if chart.symbols[e] < len(grammar.root):
            product = grammar.root[chart.symbols[e]] * chart.values[e]
            if grammar.viterbi and product > level:
                waiting[0, 2], level = chart.symbols[e], product
            elif not grammar.viterbi and product > 0.0:
                waiting[0, 2], level = chart.symbols[e], level - product
                if level < 0.0:
                    break
    while left > 0:
        left -= 1
        i, j, symbol = waiting[left, 0], waiting[left, 1], waiting[left, 2]
        c, level = cell_index(i, j, n), 0.0
        if not grammar.viterbi:
            for e in range(chart.begins[c], chart.ends[c]):
                if chart.symbols[e] == symbol:
                    level = float(chart.values[e])
            level *= uniform(stream, 0)
        row = given.lexical.rows[first + i]
        code, k = _choose_expansion(i, j, n, symbol, level, row, given, chart, work.left_inside)
        if used == len(codes):
            codes = np.concatenate((codes, codes))
        codes[used] = code
        used += 1
        if code < n_binary:
            waiting[left, 0], waiting[left, 1], waiting[left, 2] = k, j, rights[code]
            left += 1
            waiting[left, 0], waiting[left, 1], waiting[left, 2] = i, k, grammar.binary.left[code]
            left += 1
        elif code < n_binary + n_unary:
            waiting[left, 2] = grammar.unary.child[code - n_binary]
            left += 1
    return codes[:used]


@lean
def trace_derivations(
    first: int,
    last: int,
    samples: int,
    given: ChartInput,
    seed: np.uint64,
    log_p: Array,
    coarse: CoarseGrammar,
    pruned: Array,
) -> tuple[Array, Array]:
    """Derivations of sentences ``first`` to ``last``.

    ``samples`` of each, drawn from the posterior; or the best one, if the grammar is for Viterbi.

    Returns their codes, those of one sentence after those of the other, and where each derivation
    begins; ``log_p`` gets log p of the best one, or that of the sentence. Impossible and empty
    sentences have derivations without codes. Draws depend on the seed and on the sentence's number
    alone.
    """
    text, grammar, _ = given
    work = make_cell_workspace(first, last, text.indptr, grammar)
    coarse_last = last if coarse.threshold > 0.0 else first
    coarse_work = make_cell_workspace(first, coarse_last, text.indptr, coarse.grammar)
    indptr = grammar.binary.indptr
    rights = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    codes, used = np.empty(1024, np.int64), 0
    borders = np.zeros((last - first) * samples + 1, np.int64)
    stream = np.empty(1, np.uint64)
    for s in range(first, last):
        n, total = text.indptr[s + 1] - text.indptr[s], 0.0
        stream[0] = item_stream(seed, text.numbers[s])
        if n > 0:
            chart = inside_coarse_to_fine(s, given, work, coarse, coarse_work, pruned)
            total = sentence_probability(n, grammar, chart)
            log_p[s] = log_probability(total, n, chart.exponents)
        for m in range(samples):
            if total >= TINY:
                begin = text.indptr[s]
                own = _derive(begin, n, total, given, chart, work, rights, stream)
                if used + len(own) > len(codes):
                    codes = _grow(codes, used, len(codes) + len(own))
                codes[used : used + len(own)] = own
                used += len(own)
            borders[(s - first) * samples + m + 1] = used
    return codes[:used], borders
