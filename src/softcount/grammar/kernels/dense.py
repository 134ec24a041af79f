"""Compiled charts of dense grammars: Chomsky normal form, in which every rule A → B C is there.

The inside probability β(A, i, j) is that of A ⇒ words i to j. For each span, the products of its
pairs of neighbouring parts are added up first, and the rules applied to the sums:

    M(B, C) = Σ_m β(B, i, m) β(C, m, j)            β(A, i, j) = Σ_BC R(A, B, C) M(B, C)

(Baker 1979; Lari & Young 1990). Outside goes the other way. With ω = ∂ log p / ∂β, which is the
outside probability over p(sentence), from the root down,

    W(B, C) = Σ_A ω(A, i, j) R(A, B, C)
    ω(B, i, m) += Σ_C W(B, C) β(C, m, j)           ω(C, m, j) += Σ_B β(B, i, m) W(B, C)

ω ∘ β are the posteriors of symbols over spans, and Σ ω(A) M(B, C) R(A, B, C) the expected counts of
rules. A sentence's weight multiplies ω of its root. Where one of two neighbours is a leaf, all that
its word does to the spans beside it is in one table of that word, made once for all spans that
begin (or end) with it,

    F(C, A) = Σ_B β(B, i, i + 1) R(A, B, C)        β(A, i, j) += Σ_C F(C, A) β(C, i + 1, j)

and G(C, A) = Σ_j ω(A, i, j) β(C, i + 1, j) is all that outside needs for the word and its rules.
These are products of matrices (`softcount.kernels.vectors`), of some spans of one width at
a time, whichever sentences they come from.

Nothing underflows: probabilities of each word are divided by the largest of them, and those of each
span are kept times a power of two of its own, which rounds nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from softcount.core.types import Array, FloatArray, IntArray
from softcount.kernels.jit import njit, part
from softcount.kernels.random import draw_weighted, item_stream
from softcount.kernels.vectors import (
    COLUMNS_AT_ONCE,
    ROWS_AT_ONCE,
    add_columns_product,
    add_row_times_table,
    add_scaled_row,
    max_multiply_columns,
    max_multiply_panels,
    max_row_times_table,
    multiply_columns,
    multiply_panels,
    multiply_table,
    set_scaled_row,
    table_pitch,
)

EMPTY = 1 << 20
"""The exponent of spans that no symbol can derive: they count for nothing beside others."""
MIN_EXPONENT = -1010
"""What is below 2 to this power, beside the largest product of two spans, counts as zero."""
MIN_EXPONENT_SINGLE = -100
"""The same in float32, whose smaller numbers have fewer digits; and so for words and roots."""
CHUNK = 24
"""The number of spans that are worked on at a time: whole blocks of rows, and few enough for their
M and W to stay in cache."""


# Charts, and the pairs of neighbouring spans that a span consists of


class DenseCharts(NamedTuple):
    """Inside (or outside) probabilities of some sentences' leaves and spans.

    A sentence of n words has n leaves, which have preterminals, and n (n − 1) / 2 spans of two
    words or more, which have nonterminals, the short ones first.

    ``lengths``     int64 (sentences,)
    ``first_leaf``  int64 (sentences,): the first leaf of each sentence
    ``first_span``  int64 (sentences,): the first span of each sentence
    ``leaves``      float (words, preterminals), padded
    ``spans``       float (spans, nonterminals), padded: see `span_index`
    ``exponents``   int64 (spans,): each is kept times 2 to that power; `EMPTY` if it is impossible
    """

    lengths: IntArray
    first_leaf: IntArray
    first_span: IntArray
    leaves: Array
    spans: Array
    exponents: IntArray


@njit
def span_index(n: int, w: int, i: int) -> int:
    """The place of the span of w words from word i on in a sentence of n words.

    >>> [span_index(4, w, i) for w, i in [(2, 0), (2, 2), (3, 0), (3, 1), (4, 0)]]
    [0, 2, 3, 4, 5]
    """
    return (w - 2) * (n + 1) - (w * (w - 1)) // 2 + 1 + i


@part
def span_place(w: int, i: int, s: int, c: DenseCharts) -> int:
    """The place of a span of sentence s among the spans of all sentences."""
    return int(c.first_span[s] + span_index(c.lengths[s], w, i))


@part
def exponent_of(w: int, i: int, s: int, c: DenseCharts) -> int:
    """The exponent of the span of w words from i on; leaves have 0."""
    return 0 if w == 1 else int(c.exponents[span_place(w, i, s, c)])


@part
def chart_row(w: int, i: int, s: int, c: DenseCharts) -> Any:
    """The row of a leaf, or of a longer span: of w words from i on."""
    if w == 1:
        return c.leaves[c.first_leaf[s] + i]
    return c.spans[span_place(w, i, s, c)]


@part
def rescaling(whole: int, parts: int) -> float:
    """The factor from the exponent of a product to that of its span; 0 if one is impossible."""
    return math.ldexp(1.0, int(whole - parts)) if max(whole, parts) < EMPTY else 0.0


@part
def fill_rescalings(w: int, first: int, n: int, c: DenseCharts, work: DenseWorkspace) -> None:
    """Factors of the products of m words and w − m, for n spans of w words."""
    for q in range(n):
        i, s = work.starts[first + q], work.sentences[first + q]
        whole = exponent_of(w, i, s, c)
        for m in range(1, w):
            parts = exponent_of(m, i, s, c) + exponent_of(w - m, i + m, s, c)
            work.rescalings[q, m] = rescaling(whole, parts)


@part
def gather_pairs(
    w: int, i: int, s: int, q: int, c: DenseCharts, left: Array, right: Array, rescalings: Array
) -> int:
    """Copy the pairs of two leaves, or of two spans, that make up the span of w words from i on.

    Returns how many. The left ones are multiplied by row q of ``rescalings``.
    """
    one = rescalings.dtype.type(1.0)
    if w == 2:
        set_scaled_row(left, 0, rescalings[q, 1], c.leaves, c.first_leaf[s] + i)
        set_scaled_row(right, 0, one, c.leaves, c.first_leaf[s] + i + 1)
        return 1
    for m in range(2, w - 1):
        set_scaled_row(left, m - 2, rescalings[q, m], c.spans, span_place(m, i, s, c))
        set_scaled_row(right, m - 2, one, c.spans, span_place(w - m, i + m, s, c))
    return w - 3


@part
def scatter_pairs(
    w: int, i: int, s: int, q: int, out: DenseCharts, left: Array, right: Array, rescalings: Array
) -> None:
    """Add rows where `gather_pairs` took them from, the left ones times row q of ``rescalings``."""
    one = rescalings.dtype.type(1.0)
    if w == 2:
        add_scaled_row(out.leaves, out.first_leaf[s] + i, rescalings[q, 1], left, 0)
        add_scaled_row(out.leaves, out.first_leaf[s] + i + 1, one, right, 0)
        return
    for m in range(2, w - 1):
        add_scaled_row(out.spans, span_place(m, i, s, out), rescalings[q, m], left, m - 2)
        add_scaled_row(out.spans, span_place(w - m, i + m, s, out), one, right, m - 2)


# Tables of rules, sentences, counts, and workspaces


class RulePanels(NamedTuple):
    """Rules of one kind of pairs on their right side, in panels: see `softcount.kernels.vectors`.

    ``bottom_up``  for inside: (pairs, nonterminals) of two leaves, or two spans; of a leaf and a
                   span (leaf, (span, nonterminal)), the span's symbols padded to a multiple of
                   `COLUMNS_AT_ONCE`
    ``top_down``   for outside: (nonterminals, pairs), left symbols padded in the same way; or
                   ((span, nonterminal), leaf)
    """

    bottom_up: FloatArray
    top_down: FloatArray


class DenseTables(NamedTuple):
    """Probabilities of a dense grammar as charts want them.

    ``root``               (nonterminals,), padded: p(root) of sentences of several words
    ``root_preterminals``  (preterminals,), padded: p(root) of sentences of one word
    ``leaves``             rules whose right side are two leaves
    ``leaf_first``         a leaf and then a span
    ``leaf_last``          a span and then a leaf
    ``spans``              two spans
    ``rules``              all of them (nonterminals, symbols, symbols), without padding
    ``viterbi``            whether charts have the best tree in place of the sum of all
    """

    root: FloatArray
    root_preterminals: FloatArray
    leaves: RulePanels
    leaf_first: RulePanels
    leaf_last: RulePanels
    spans: RulePanels
    rules: FloatArray
    viterbi: bool = False


class DenseText(NamedTuple):
    """Sentences, and which symbols their spans may have.

    ``order``       int64: the sentences that have words, in the order in which they are parsed
    ``indptr``      int64 (sentences + 1,): the tokens of each sentence
    ``rows``        int (tokens,): each token's row of ``emissions``
    ``emissions``   float (rows, preterminals), padded: p(word | preterminal)
    ``weights``     float (sentences,)
    ``numbers``     int (sentences,): what samples depend on
    ``first_sets``  int64: where the ``sets`` of each sentence's spans begin; empty: all are allowed
    ``sets``        int64: for each span the set of nonterminals that it may have
    ``allowed``     float (sets, nonterminals), padded: ones and zeros
    """

    order: IntArray
    indptr: IntArray
    rows: IntArray
    emissions: FloatArray
    weights: FloatArray
    numbers: IntArray
    first_sets: IntArray
    sets: IntArray
    allowed: FloatArray


class DenseCounts(NamedTuple):
    """Expected counts; those of rules are still to be multiplied by the rules' probabilities.

    ``log_p``      (sentences,): log p of each
    ``word_rows``  (tokens,): the row of ``words`` where each token is counted
    ``root``, ``root_preterminals``  roots of sentences of several words, and of one
    ``words``      (rows, preterminals), padded
    ``leaves``, ``leaf_first``, ``leaf_last``, ``spans``  rules, as in `DenseTables`
    """

    log_p: FloatArray
    word_rows: IntArray
    root: FloatArray
    root_preterminals: FloatArray
    words: FloatArray
    leaves: FloatArray
    leaf_first: FloatArray
    leaf_last: FloatArray
    spans: FloatArray


class PairWorkspace(NamedTuple):
    """Where the pairs of one span are worked on, and M and W of some spans.

    ``left``, ``right``          β of the parts of all pairs
    ``out_left``, ``out_right``  ω of the parts of all pairs
    ``transposed``               one W, rows and columns exchanged
    ``products``                 M of `CHUNK` spans, each as one row
    ``outside_products``         W of `CHUNK` spans, each as one row
    """

    left: FloatArray
    right: FloatArray
    out_left: FloatArray
    out_right: FloatArray
    transposed: FloatArray
    products: FloatArray
    outside_products: FloatArray


class DenseWorkspace(NamedTuple):
    """All that inside and outside write to besides the charts.

    ``leaves``, ``spans``          for pairs of two leaves, and of two spans
    ``leaf_first``, ``leaf_last``  F of each word (span, nonterminal): what it makes of the span
                                   after it, or before it; in outside, G
    ``block``                      (`CHUNK`, nonterminals): numbers of some spans
    ``words``                      (words, preterminals)
    ``row``                        (1, nonterminals): numbers of a single span
    ``rescalings``                 (`CHUNK`, widths): see `fill_rescalings`
    ``sentences``, ``starts``      of all spans of one width
    """

    leaves: PairWorkspace
    spans: PairWorkspace
    leaf_first: FloatArray
    leaf_last: FloatArray
    block: Array
    words: Array
    row: FloatArray
    rescalings: FloatArray
    sentences: IntArray
    starts: IntArray


def padded_rows(n: int) -> int:
    """A number of symbols, padded to a multiple of `COLUMNS_AT_ONCE`."""
    return -(-n // COLUMNS_AT_ONCE) * COLUMNS_AT_ONCE


def padded_zeros(n: int, wide: int, dtype: DTypeLike) -> Array:
    """Zeros (n, wide); blocks of `ROWS_AT_ONCE` rows may go beyond their end."""
    return np.zeros((n + ROWS_AT_ONCE, wide), dtype)[:n]


def _make_pair_workspace(rows: int, wide: int, most: int, dtype: DTypeLike) -> PairWorkspace:
    parts = [padded_zeros(most, wide, dtype) for _ in range(4)]
    products = [np.zeros((CHUNK, table_pitch(rows, wide)), dtype) for _ in range(2)]
    return PairWorkspace._make([*parts, np.zeros((1, wide * wide), dtype), *products])


def make_workspace(c: DenseCharts, grammar: DenseTables) -> DenseWorkspace:
    """A workspace for the sentences of a chart."""
    n_words, widths = len(c.leaves), int(c.lengths.max()) + 1
    n_high, n_symbols = grammar.rules.shape[:2]
    high, low, dtype = len(grammar.root), len(grammar.root_preterminals), grammar.root.dtype
    rows = padded_rows(n_high)
    return DenseWorkspace(
        _make_pair_workspace(padded_rows(n_symbols - n_high), low, 1, dtype),
        _make_pair_workspace(rows, high, widths, dtype),
        padded_zeros(n_words, table_pitch(rows, high), dtype),
        padded_zeros(n_words, table_pitch(rows, high), dtype),
        np.zeros((CHUNK, high), dtype),
        padded_zeros(n_words, low, dtype),
        np.zeros((1, high), dtype),
        np.zeros((CHUNK, widths), dtype),
        np.empty(n_words, np.int64),
        np.empty(n_words, np.int64),
    )


@part
def n_table_rows(tables: Array, wide: int) -> int:
    """How many rows of ``wide`` numbers each of some tables has."""
    return int((tables.shape[1] - 1) // wide)


@part
def apply_rules(n: int, left: Array, right: Array, depth: int, viterbi: bool, out: Array) -> None:
    """n rows times rules (max in place of the sum if ``viterbi``). Writes whole blocks of rows."""
    for q in range(0, n, ROWS_AT_ONCE):
        if viterbi:
            max_multiply_panels(out, q, left, q, right, depth)
        else:
            multiply_panels(out, q, left, q, right, depth)


@part
def inside_pairs(
    w: int, first: int, n: int, c: DenseCharts, grammar: DenseTables, work: DenseWorkspace
) -> None:
    """β of n spans, as far as it comes from pairs of two leaves, or of two spans."""
    pairs, at = (grammar.leaves, work.leaves) if w == 2 else (grammar.spans, work.spans)
    rows = n_table_rows(at.products, at.right.shape[1])
    for q in range(n):
        i, s = work.starts[first + q], work.sentences[first + q]
        m = gather_pairs(w, i, s, q, c, at.left, at.right, work.rescalings)
        if grammar.viterbi:
            max_multiply_columns(at.products, q, at.left, at.right, m, rows)
        else:
            multiply_columns(at.products, q, at.left, at.right, m, rows)
    depth = len(pairs.bottom_up) * pairs.bottom_up.shape[1] // work.block.shape[1]
    apply_rules(n, at.products, pairs.bottom_up, depth, grammar.viterbi, work.block)


@part
def _leaf_and_span(w: int, i: int, s: int, last: int, c: DenseCharts) -> tuple[int, int]:
    """Of a span of w words, its first or ``last`` word and the span of the others: their places."""
    leaf = c.first_leaf[s] + i + last * (w - 1)
    return leaf, span_place(w - 1, i + 1 - last, s, c)


@part
def inside_with_leaf(
    w: int, first: int, n: int, c: DenseCharts, viterbi: bool, work: DenseWorkspace
) -> None:
    """Add to β of n spans what comes from a leaf and the span beside it (or take the maximum)."""
    block, row = work.block, work.row
    rows = n_table_rows(work.leaf_first, block.shape[1])
    for q in range(n):
        i, s = work.starts[first + q], work.sentences[first + q]
        for last in range(2):
            tables = work.leaf_last if last else work.leaf_first
            leaf, place = _leaf_and_span(w, i, s, last, c)
            set_scaled_row(row, 0, work.rescalings[q, w - 1 if last else 1], c.spans, place)
            if viterbi:
                max_row_times_table(block, q, row, 0, tables, leaf, rows)
            else:
                add_row_times_table(block, q, row, 0, tables, leaf, rows)


@part
def outside_with_leaf(
    w: int, first: int, n: int, c: DenseCharts, out: DenseCharts, work: DenseWorkspace
) -> None:
    """ω of n spans goes on to the spans beside their first and last words, by transposed tables."""
    block, row = work.block, work.row
    rows = n_table_rows(work.leaf_first, block.shape[1])
    for q in range(n):
        i, s = work.starts[first + q], work.sentences[first + q]
        for last in range(2):
            set_scaled_row(row, 0, work.rescalings[q, w - 1 if last else 1], block, q)
            tables = work.leaf_last if last else work.leaf_first
            leaf, place = _leaf_and_span(w, i, s, last, c)
            add_row_times_table(out.spans, place, row, 0, tables, leaf, rows)


@part
def transpose_tables(tables: Array, wide: int) -> None:
    """Exchange rows and columns of each table."""
    for t in range(len(tables)):
        for a in range(n_table_rows(tables, wide)):
            for b in range(a):
                above, below = tables[t, b * wide + a], tables[t, a * wide + b]
                tables[t, b * wide + a], tables[t, a * wide + b] = below, above


@part
def outside_pairs(
    w: int,
    first: int,
    n: int,
    c: DenseCharts,
    out: DenseCharts,
    grammar: DenseTables,
    work: DenseWorkspace,
    counts: Array,
) -> None:
    """ω of n spans goes on to their pairs of two leaves, or two spans; and rules are counted."""
    pairs, at = (grammar.leaves, work.leaves) if w == 2 else (grammar.spans, work.spans)
    depth = len(pairs.top_down) // (at.outside_products.shape[1] // pairs.top_down.shape[1] - 1)
    apply_rules(n, work.block, pairs.top_down, depth, False, at.outside_products)
    wide = at.right.shape[1]
    rows = n_table_rows(at.products, wide)
    for q in range(n):
        i, s = work.starts[first + q], work.sentences[first + q]
        m = gather_pairs(w, i, s, q, c, at.left, at.right, work.rescalings)
        multiply_columns(at.products, q, at.left, at.right, m, rows)
        for b in range(rows):
            for k in range(wide):
                at.transposed[0, k * wide + b] = at.outside_products[q, b * wide + k]
        for p in range(0, m, ROWS_AT_ONCE):  # β W and W β of the pairs
            multiply_table(at.out_right, p, at.left, p, at.outside_products, q, rows)
            multiply_table(at.out_left, p, at.right, p, at.transposed, 0, wide)
        scatter_pairs(w, i, s, q, out, at.out_left, at.out_right, work.rescalings)
    add_columns_product(counts, work.block, at.products, 0, n)


@part
def sum_beside_words(
    last: int, c: DenseCharts, out: DenseCharts, at: PairWorkspace, tables: Array
) -> None:
    """G of each word in place of F: Σ ω(A) β(C) over all spans that begin (or end) with it."""
    rows = n_table_rows(tables, at.right.shape[1])
    for s in range(len(c.lengths)):
        n = c.lengths[s]
        for word in range(n):
            m = 0
            for w in range(3, 1 + (word + 1 if last else n - word)):
                i = word + 1 - w if last else word
                _, place = _leaf_and_span(w, i, s, last, c)
                whole = span_place(w, i, s, c)
                scale = rescaling(c.exponents[whole], c.exponents[place])
                if scale > 0.0:
                    set_scaled_row(at.left, m, c.spans.dtype.type(scale), c.spans, place)
                    set_scaled_row(at.right, m, c.spans.dtype.type(1.0), out.spans, whole)
                    m += 1
            multiply_columns(tables, c.first_leaf[s] + word, at.left, at.right, m, rows)


# Inside


@part
def _underflows(number: float, like: Array) -> bool:
    """Whether a number is too small for float32 to have all its digits, if numbers are such."""
    return like.itemsize < 8 and number < math.ldexp(1.0, MIN_EXPONENT_SINGLE)


@part
def _allowed_set(s: int, w: int, i: int, first: int, text: DenseText, n: int) -> int:
    """The number of the set of nonterminals that a span may have."""
    if not len(text.sets):
        return 0
    return int(text.sets[text.first_sets[text.order[first + s]] + span_index(n, w, i)])


@part
def _list_spans_of_width(
    w: int, first: int, text: DenseText, c: DenseCharts, found: bool, work: DenseWorkspace
) -> int:
    """List spans of w words that are allowed (and ``found`` to be possible); returns how many."""
    n = 0
    for s in range(len(c.lengths)):
        for i in range(c.lengths[s] - w + 1):
            number, any_allowed = _allowed_set(s, w, i, first, text, c.lengths[s]), False
            for k in range(text.allowed.shape[1]):
                any_allowed |= text.allowed[number, k] > 0.0
            if any_allowed and (not found or exponent_of(w, i, s, c) < EMPTY):
                work.sentences[n], work.starts[n] = s, i
                n += 1
    return n


@njit
def _fill_inside(
    first: int,
    text: DenseText,
    c: DenseCharts,
    grammar: DenseTables,
    work: DenseWorkspace,
    log_p: Array,
) -> None:
    """β of all spans; or, for Viterbi, the probability of the best tree of each symbol.

    p(word | preterminal) is divided by the largest of each word, whose logarithm goes to ``log_p``.
    """
    for s in range(len(c.lengths)):
        sentence = text.order[first + s]
        for i in range(c.lengths[s]):
            row, largest = text.rows[text.indptr[sentence] + i], 0.0
            for k in range(text.emissions.shape[1]):
                largest = max(largest, text.emissions[row, k])
            possible = largest > 0.0 and not _underflows(largest, text.emissions)
            log_p[sentence] += math.log(largest) if possible else -np.inf
            if possible:
                for k in range(text.emissions.shape[1]):
                    c.leaves[c.first_leaf[s] + i, k] = text.emissions[row, k] / largest
    for last in range(2):
        rules = grammar.leaf_last.bottom_up if last else grammar.leaf_first.bottom_up
        tables = work.leaf_last if last else work.leaf_first
        depth = len(rules) // (tables.shape[1] // rules.shape[1] - 1)
        apply_rules(len(c.leaves), c.leaves, rules, depth, grammar.viterbi, tables)
    for w in range(2, work.rescalings.shape[1]):
        n_spans = _list_spans_of_width(w, first, text, c, False, work)
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            for r in range(q, q + n):
                s, i = work.sentences[r], work.starts[r]
                # the exponent at which no product of two parts is above one
                least = exponent_of(w - 1, i + 1, s, c)
                for m in range(2, w):
                    least = min(least, exponent_of(m, i, s, c) + exponent_of(w - m, i + m, s, c))
                c.exponents[span_place(w, i, s, c)] = least
            fill_rescalings(w, q, n, c, work)
            if w == 3:
                work.block[:] = 0.0
            else:
                inside_pairs(w, q, n, c, grammar, work)
            if w > 2:
                inside_with_leaf(w, q, n, c, grammar.viterbi, work)
            _store_spans(w, q, n, first, text, work, c)


def inside(
    first: int, last: int, text: DenseText, grammar: DenseTables, log_p: Array
) -> tuple[DenseCharts, DenseWorkspace]:
    """Inside charts of sentences ``order[first]`` to ``order[last − 1]``.

    ``log_p`` gets what was divided out of the words' probabilities.
    """
    own, dtype = text.order[first:last], grammar.root.dtype
    lengths = text.indptr[own + 1] - text.indptr[own]
    n_spans = lengths * (lengths - 1) // 2
    c = DenseCharts(
        lengths,
        np.cumsum(lengths) - lengths,
        np.cumsum(n_spans) - n_spans,
        padded_zeros(lengths.sum(), len(grammar.root_preterminals), dtype),
        np.zeros((n_spans.sum(), len(grammar.root)), dtype),
        np.full(n_spans.sum(), EMPTY, np.int64),
    )
    work = make_workspace(c, grammar)
    _fill_inside(first, text, c, grammar, work, log_p)
    return c, work


@part
def _store_spans(
    w: int, q: int, n: int, first: int, text: DenseText, work: DenseWorkspace, c: DenseCharts
) -> None:
    """Store β of spans, of allowed symbols only, the largest of each span being in [½, 1)."""
    block = work.block
    for r in range(n):
        s, i = work.sentences[q + r], work.starts[q + r]
        number = _allowed_set(s, w, i, first, text, c.lengths[s])
        place, largest = span_place(w, i, s, c), 0.0
        for k in range(block.shape[1]):
            block[r, k] *= text.allowed[number, k]
            largest = max(largest, block[r, k])
        exponent = math.frexp(largest)[1]
        if largest == 0.0 or exponent < MIN_EXPONENT or _underflows(largest, block):
            c.exponents[place] = EMPTY
            continue
        c.exponents[place] -= exponent
        set_scaled_row(c.spans, place, block.dtype.type(math.ldexp(1.0, -exponent)), block, r)


# Outside


@njit
def _fill_outside(
    first: int,
    text: DenseText,
    c: DenseCharts,
    out: DenseCharts,
    grammar: DenseTables,
    work: DenseWorkspace,
    counts: tuple[Array, Array, Array, Array],
    words: Array,
    word_rows: Array,
) -> None:
    """ω of all spans and leaves, and expected counts of rules and words."""
    transpose_tables(work.leaf_first, c.spans.shape[1])
    transpose_tables(work.leaf_last, c.spans.shape[1])
    for w in range(work.rescalings.shape[1] - 1, 1, -1):
        n_spans = _list_spans_of_width(w, first, text, c, True, work)
        for s in range(len(out.lengths)):  # symbols that a span may not have get ω = 0
            for i in range(out.lengths[s] - w + 1):
                number = _allowed_set(s, w, i, first, text, out.lengths[s])
                place = span_place(w, i, s, out)
                for k in range(out.spans.shape[1]):
                    out.spans[place, k] *= text.allowed[number, k]
        for q in range(0, n_spans, CHUNK):
            n = min(CHUNK, n_spans - q)
            fill_rescalings(w, q, n, c, work)
            for r in range(n):
                s = work.sentences[q + r]
                place = span_place(w, work.starts[q + r], s, c)
                set_scaled_row(work.block, r, out.spans.dtype.type(1.0), out.spans, place)
            if w != 3:
                outside_pairs(w, q, n, c, out, grammar, work, counts[0 if w == 2 else 3])
            if w > 2:
                outside_with_leaf(w, q, n, c, out, work)
    for last in range(2):
        top_down = grammar.leaf_last.top_down if last else grammar.leaf_first.top_down
        tables = work.leaf_last if last else work.leaf_first
        sum_beside_words(last, c, out, work.spans, tables)
        # by these tables ω goes on to words; and rules are counted
        depth = len(top_down) * top_down.shape[1] // work.words.shape[1]
        apply_rules(len(work.words), tables, top_down, depth, False, work.words)
        for r in range(len(work.words)):
            add_scaled_row(out.leaves, r, work.words.dtype.type(1.0), work.words, r)
        for begin in range(0, len(tables), CHUNK):
            size = min(CHUNK, len(tables) - begin)
            add_columns_product(counts[1 + last], c.leaves, tables, begin, size)
    for r in range(len(c.leaves)):
        for k in range(c.leaves.shape[1]):
            words[word_rows[r], k] += out.leaves[r, k] * c.leaves[r, k]


def inside_outside(
    first: int,
    last: int,
    text: DenseText,
    grammar: DenseTables,
    counts: DenseCounts,
    with_counts: bool,
) -> tuple[DenseCharts, DenseCharts]:
    """β and ω of sentences ``order[first]`` to ``order[last − 1]``, none of them empty, together.

    ``counts`` gets log p of each and, if ``with_counts``, expected counts; otherwise there is no ω.
    """
    c, work = inside(first, last, text, grammar, counts.log_p)
    out = c._replace(leaves=np.zeros_like(c.leaves), spans=np.zeros_like(c.spans))
    sentences = text.order[first:last]
    # log p, ω of the roots, and their expected counts: of sentences of several words, and of one
    tops = c.first_span + c.lengths * (c.lengths - 1) // 2 - 1
    no_exponents = np.zeros(len(c.leaves), np.int64)
    several = (tops, grammar.root, c.spans, out.spans, c.exponents, counts.root)
    tables = (grammar.root_preterminals, c.leaves, out.leaves, no_exponents)
    single = (c.first_leaf, *tables, counts.root_preterminals)
    for which, kind in ((c.lengths > 1, several), (c.lengths == 1, single)):
        places, probabilities, beta, omega, exponents, root_counts = kind
        own, at = sentences[which], places[which]
        joint = probabilities * beta[at]
        totals = joint.sum(axis=1, dtype=np.float64)
        if joint.itemsize < 8:  # as `_underflows` says
            totals[totals < 2.0**MIN_EXPONENT_SINGLE] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            counts.log_p[own] += np.log(totals) - exponents[at] * math.log(2.0)
            weights = np.where(totals > 0.0, text.weights[own] / totals, 0.0)[:, None]
        omega[at] = probabilities * weights
        root_counts += (joint * weights).sum(axis=0)
    if with_counts:
        totals = (counts.leaves, counts.leaf_first, counts.leaf_last, counts.spans)
        rules: Any = tuple(np.zeros(total.shape, grammar.root.dtype) for total in totals)
        begins = np.repeat(text.indptr[sentences] - c.first_leaf, c.lengths)
        word_rows = counts.word_rows[begins + np.arange(len(c.leaves))]
        _fill_outside(first, text, c, out, grammar, work, rules, counts.words, word_rows)
        for total, more in zip(totals, rules, strict=True):
            total += more
    return c, out


# Viterbi trees, and samples of trees, from inside charts


class TreeNodes(NamedTuple):
    """Nodes of trees in preorder: a tree of n words has 2 n − 1, preterminals after nonterminals.

    Nodes of a sentence begin at twice its first token.

    ``symbols``  int32 (samples, 2 · tokens)
    ``ends``     int32 (samples, 2 · tokens): the first word after the node
    """

    symbols: IntArray
    ends: IntArray


def trace_trees(
    first: int,
    last: int,
    text: DenseText,
    grammar: DenseTables,
    seed: np.uint64,
    log_p: Array,
    nodes: TreeNodes,
) -> None:
    """Trees of sentences ``order[first]`` to ``order[last − 1]``, none of them empty.

    For Viterbi, the most probable one, and ``log_p`` gets log p(tree, sentence); otherwise
    samples from p(tree | sentence), and ``log_p`` gets log p(sentence). A draw depends on the seed,
    the sentence's number and the sample's alone.
    """
    c, _ = inside(first, last, text, grammar, log_p)
    _trace_all(first, text, c, grammar, seed, log_p, nodes)


@njit
def _trace_all(
    first: int,
    text: DenseText,
    c: DenseCharts,
    grammar: DenseTables,
    seed: np.uint64,
    log_p: Array,
    nodes: TreeNodes,
) -> None:
    """Trees of a chart's sentences."""
    viterbi, longest = grammar.viterbi, c.lengths.max() + 1
    n_weights = max(grammar.rules[0].size, len(grammar.root), len(grammar.root_preterminals))
    stream, splits, pairs = np.empty(1, np.uint64), np.empty(longest), np.empty(n_weights)
    stack = np.empty((longest + 1, 3), np.int64)  # symbols, first words and widths of nodes to come
    for s in range(len(c.lengths)):
        n, number, total = c.lengths[s], text.order[first + s], 0.0
        root = grammar.root_preterminals if n == 1 else grammar.root
        beta = chart_row(n, 0, s, c)
        for k in range(len(root)):
            probability = root[k] * beta[k]
            total = max(total, probability) if viterbi else total + probability
        log_total = math.log(total) if total > 0.0 else -np.inf
        log_p[number] += log_total - exponent_of(n, 0, s, c) * math.log(2.0)
        if log_p[number] == -np.inf:
            continue
        for sample in range(len(nodes.symbols)):
            stream[0] = item_stream(item_stream(seed, text.numbers[number]), sample)
            for k in range(len(root)):
                pairs[k] = root[k] * beta[k]
            top = _choose(pairs[: len(root)], viterbi, stream)
            stack[0, 0], stack[0, 1], stack[0, 2] = (
                top + (len(grammar.rules) if n == 1 else 0),
                0,
                n,
            )
            depth, node = 1, 2 * text.indptr[number]
            while depth:
                depth -= 1
                symbol, i, w = stack[depth, 0], stack[depth, 1], stack[depth, 2]
                nodes.symbols[sample, node], nodes.ends[sample, node] = symbol, i + w
                node += 1
                if w > 1:
                    m, left, right = _choose_children(
                        symbol, w, i, s, c, grammar, stream, splits, pairs
                    )
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = right, i + m, w - m
                    stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = left, i, m
                    depth += 2


@part
def _choose(weights: Array, viterbi: bool, stream: Array) -> int:
    """The number of the largest weight; or one drawn in proportion to them."""
    if not viterbi:
        return draw_weighted(weights, stream)
    largest = 0
    for k in range(1, len(weights)):
        if weights[k] > weights[largest]:
            largest = k
    return largest


@part
def _choose_children(
    symbol: int,
    w: int,
    i: int,
    s: int,
    c: DenseCharts,
    grammar: DenseTables,
    stream: Array,
    splits: Array,
    pairs: Array,
) -> tuple[int, int, int]:
    """Expand a node: the width of its left child, and the symbols of both children."""
    rules, viterbi = grammar.rules, grammar.viterbi
    for m in range(1, w):
        total = 0.0
        for k in range(_weigh_pairs(m, symbol, w, i, s, c, rules, pairs)):
            total = max(total, pairs[k]) if viterbi else total + pairs[k]
        splits[m - 1] = total
    m = 1 + _choose(splits[: w - 1], viterbi, stream)
    n_pairs = _weigh_pairs(m, symbol, w, i, s, c, rules, pairs)
    pair = _choose(pairs[:n_pairs], viterbi, stream)
    first, last = _symbol_range(m, rules), _symbol_range(w - m, rules)
    wide = last[1] - last[0]
    return m, first[0] + pair // wide, last[0] + pair % wide


@part
def _symbol_range(w: int, rules: Array) -> tuple[int, int]:
    """The first symbol that spans of w words may have, and the end."""
    return (len(rules), rules.shape[1]) if w == 1 else (0, len(rules))


@part
def _weigh_pairs(
    m: int, symbol: int, w: int, i: int, s: int, c: DenseCharts, rules: Array, pairs: Array
) -> int:
    """Weights of pairs of symbols, the left child being m words wide; returns how many."""
    parts = exponent_of(m, i, s, c) + exponent_of(w - m, i + m, s, c)
    scale = rescaling(exponent_of(w, i, s, c), parts)
    left, right = chart_row(m, i, s, c), chart_row(w - m, i + m, s, c)
    first, last = _symbol_range(m, rules), _symbol_range(w - m, rules)
    n = 0
    for b in range(first[0], first[1]):
        probability = left[b - first[0]] * scale
        for k in range(last[0], last[1]):
            pairs[n] = rules[symbol, b, k] * probability * right[k - last[0]]
            n += 1
    return n


@njit
def list_cells(
    nodes: TreeNodes,
    indptr: Array,
    rows: Array,
    possible: Array,
    n_nonterminals: int,
    n_symbols: int,
    n_words: int,
) -> tuple[Array, Array]:
    """The table entries ("cells") that trees use, and where those of each tree begin.

    Trees of one sentence follow each other. A root's cell is first, then the others in preorder.
    Entries are numbered through all tables: K + T roots, then K rows of (K + T)² rules, then T rows
    of words. Words from number ``n_words`` on are in no table, and have no cell; nor have sentences
    that are empty, or not possible.
    """
    first_rule = n_symbols
    first_word = first_rule + n_nonterminals * n_symbols * n_symbols
    n_samples = len(nodes.symbols)
    cells = np.empty(2 * indptr[-1] * n_samples, np.int64)
    borders, used = np.zeros((len(indptr) - 1) * n_samples + 1, np.int64), 0
    for tree in range(len(borders) - 1):
        s, sample = divmod(tree, n_samples)
        symbols, ends = nodes.symbols[sample], nodes.ends[sample]
        if possible[s] and indptr[s] < indptr[s + 1]:
            first, begin = 2 * indptr[s], 0
            cells[used] = symbols[first]
            used += 1
            for node in range(first, 2 * indptr[s + 1] - 1):
                symbol, end = symbols[node], ends[node]
                if end > begin + 1:
                    # after the left child and all nodes below it
                    right = symbols[node + 2 * (ends[node + 1] - begin)]
                    pair = symbols[node + 1] * n_symbols + right
                    cells[used] = first_rule + symbol * n_symbols * n_symbols + pair
                    used += 1
                    continue
                word = rows[indptr[s] + begin]
                if word < n_words:
                    cells[used] = first_word + (symbol - n_nonterminals) * n_words + word
                    used += 1
                begin = end
        borders[tree + 1] = used
    return cells[:used], borders
