"""Topics sampled word by word, parameters integrated out; priors fitted to the draws.

Sums over topics, eight lanes at a time, kept so that a draw finds its topic quickly.

Weights p_0 … p_{n−1} lie in rows of `WIDTH` lanes. ``sums`` takes the running sums of every lane;
``ends`` takes 0 and then, lane by lane, what all lanes up to it add up to. A number below the total
belongs to one lane, and in that lane to one row: the order is lane by lane, and always the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import digamma

from softcount.corpus.whole import whole_bags
from softcount.errors import DataError, LearnerError
from softcount.kernels.collapsed import drawn, log_rising
from softcount.kernels.jit import inline, njit
from softcount.kernels.lanes import INT32, INT64, WIDTH, const, fetch, splat, typed_intrinsic
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array, Stats

_DOUBLES, _INTS = (ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), INT32))
_ZEROS = ir.Constant(_DOUBLES, [0.0] * WIDTH)


def _indices(values: list[int]) -> ir.Constant:
    return ir.Constant(_INTS, values)


def _arrays(context: Any, builder: Any, signature: Any, args: Any, which: list[int]) -> list[Any]:
    return [context.make_array(signature.args[i])(context, builder, args[i]) for i in which]


def _run(builder: Any, sums: Any, ends: Any, rows: Any, weights: Callable[[Any], Any]) -> Any:
    """Fill ``sums`` and ``ends`` with the weights of each row; the total of all."""
    target = builder.bitcast(sums.data, _DOUBLES.as_pointer())
    running = cgutils.alloca_once_value(builder, _ZEROS)
    with cgutils.for_range(builder, rows) as loop:
        so_far = builder.fadd(builder.load(running), weights(loop.index))
        builder.store(so_far, running)
        builder.store(so_far, builder.gep(target, [loop.index]), align=8)
    lanes = builder.load(running)
    for step in (1, 2, 4):  # prefix sums by doubling
        moved = _indices([i - step if i >= step else WIDTH for i in range(WIDTH)])
        lanes = builder.fadd(lanes, builder.shuffle_vector(lanes, _ZEROS, moved))
    after_zero = builder.gep(ends.data, [const(1)])
    builder.store(lanes, builder.bitcast(after_zero, _DOUBLES.as_pointer()), align=8)
    return builder.extract_element(lanes, const(WIDTH - 1))


@typed_intrinsic
def products(
    typing: Any, table: Any, row: Any, beta: Any, factor: Any, sums: Any, ends: Any
) -> Any:
    """The total of ``(table[row, k] + beta) * factor[k]`` over k; fills ``sums`` and ``ends``."""
    signature = types.float64(table, types.intp, types.float64, factor, sums, ends)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counts, factors, running, borders = _arrays(context, builder, signature, args, [0, 3, 4, 5])
        columns = cgutils.unpack_tuple(builder, counts.shape, 2)[1]
        rows = builder.udiv(columns, const(WIDTH))
        first = builder.gep(counts.data, [builder.mul(args[1], columns)])
        source = builder.bitcast(first, _INTS.as_pointer())
        scales = builder.bitcast(factors.data, _DOUBLES.as_pointer())
        beta = splat(builder, args[2])

        def weights(j: Any) -> Any:
            n = builder.sitofp(builder.load(builder.gep(source, [j]), align=4), _DOUBLES)
            scale = builder.load(builder.gep(scales, [j]), align=8)
            return builder.fmul(builder.fadd(n, beta), scale)

        return _run(builder, running, borders, rows, weights)

    return signature, code


@typed_intrinsic
def gathered(
    typing: Any, which: Any, counts: Any, start: Any, rows: Any, factor: Any, sums: Any, ends: Any
) -> Any:
    """The total of ``counts[i] * factor[which[i]]``, ``rows`` times `WIDTH` of them from start."""
    signature = types.float64(which, counts, types.intp, types.intp, factor, sums, ends)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whose, numbers, factors, running, borders = _arrays(
            context, builder, signature, args, [0, 1, 4, 5, 6]
        )
        places, source = (
            builder.bitcast(builder.gep(array.data, [args[2]]), _INTS.as_pointer())
            for array in (whose, numbers)
        )

        def weights(j: Any) -> Any:
            n = builder.sitofp(builder.load(builder.gep(source, [j]), align=4), _DOUBLES)
            where = builder.load(builder.gep(places, [j]), align=4)
            scale = _ZEROS
            for lane in range(WIDTH):
                place = builder.zext(builder.extract_element(where, const(lane)), INT64)
                value = builder.load(builder.gep(factors.data, [place]))
                scale = builder.insert_element(scale, value, const(lane))
            return builder.fmul(n, scale)

        return _run(builder, running, borders, args[3], weights)

    return signature, code


@typed_intrinsic
def found(typing: Any, sums: Any, ends: Any, rows: Any, target: Any) -> Any:
    """Which weight the number ``target`` belongs to: the first whose cumulative sum is above it.

    Where rounding leaves none the answer may be too large, by less than a row.
    """
    signature = types.intp(sums, ends, types.intp, types.float64)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        running, borders = _arrays(context, builder, signature, args, [0, 1])
        rows, target = args[2], args[3]
        above = builder.bitcast(builder.gep(borders.data, [const(1)]), _DOUBLES.as_pointer())
        passed = builder.fcmp_ordered("<=", builder.load(above, align=8), splat(builder, target))
        count = builder.zext(builder.ctpop(builder.bitcast(passed, ir.IntType(WIDTH))), INT64)
        last = const(WIDTH - 1)
        lane = builder.select(builder.icmp_unsigned("<", count, last), count, last)
        rest = builder.fsub(target, builder.load(builder.gep(borders.data, [lane])))
        row = cgutils.alloca_once_value(builder, const(0))
        with cgutils.for_range(builder, rows) as loop:
            place = builder.add(builder.mul(loop.index, const(WIDTH)), lane)
            value = builder.load(builder.gep(running.data, [place]))
            more = builder.zext(builder.fcmp_ordered("<=", value, rest), INT64)
            builder.store(builder.add(builder.load(row), more), row)
        return builder.add(builder.mul(builder.load(row), const(WIDTH)), lane)

    return signature, code


# What a collapsed sampler of topics counts: tokens, their topics, and how often a word has which.
#
# n_wk is kept in dense rows, or in lists of the topics that a word has; see
# `softcount.topics.gibbs` for when and why.


class Tokens(NamedTuple):
    """Document d has the tokens from borders_d to borders_{d+1}: their words and topics."""

    borders: Array
    words: Array
    topics: Array


class Table(NamedTuple):
    """n_wk: ``dense`` rows, filled up with zeros to whole vectors; or, if there are none, lists.

    Word w's list begins at starts_w and has sizes_w topics with their counts; beyond these, up to
    starts_{w+1}, counts are zero. ``totals`` is n_k.
    """

    dense: Array
    starts: Array
    sizes: Array
    topics: Array
    counts: Array
    totals: Array


class Known(NamedTuple):
    """Document d may have the topics from borders_d to borders_{d+1}; if these are none, all."""

    borders: Array
    topics: Array


class Prior(NamedTuple):
    """α, one a topic; β; and Vβ."""

    alpha: Array
    beta: float
    beta_total: float


@inline
def place_of(table: Table, w: Any, k: Any) -> Any:
    """Where in word w's list topic k is, or the place after the last."""
    place = table.starts[w]
    end = place + table.sizes[w]
    while place < end and table.topics[place] != k:
        place += 1
    return place


@inline
def remove(table: Table, w: Any, place: Any) -> None:
    """A token less at a place of word w's list; the last topic takes the place of one used up."""
    table.counts[place] -= 1
    if table.counts[place] == 0:
        table.sizes[w] -= 1
        last = table.starts[w] + table.sizes[w]
        table.topics[place], table.counts[place] = table.topics[last], table.counts[last]
        table.counts[last] = 0


@inline
def add(table: Table, w: Any, place: Any, k: Any, times: int = 1) -> None:
    """A token more at a place of word w's list, which may be the one after the last."""
    if place == table.starts[w] + table.sizes[w]:
        table.sizes[w] += 1
        table.topics[place] = k
    table.counts[place] += times


@njit
def count(table: Table, w: int, k: int, times: int) -> None:
    """So many tokens of word w and topic k more, or one less (−1)."""
    table.totals[k] += times
    if len(table.dense):
        table.dense[w, k] += times
    elif times > 0:
        add(table, w, place_of(table, w, k), k, times)
    else:
        remove(table, w, place_of(table, w, k))


@njit
def count_all(tokens: Tokens, table: Table) -> None:
    """Count every token."""
    for i in range(len(tokens.words)):
        count(table, tokens.words[i], tokens.topics[i], 1)


@njit
def begin(tokens: Tokens, known: Known, phi: Array, seed: Any) -> None:
    """Draw every token's topic in proportion to φ_wk, among those that its document may have."""
    every, sums = np.arange(phi.shape[1]), np.empty(phi.shape[1])
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        few = known.topics[known.borders[d] : known.borders[d + 1]]
        few = few if len(few) else every
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            total = 0.0
            for j in range(len(few)):
                total += phi[tokens.words[i], few[j]]
                sums[j] = total
            j, target = 0, uniform(stream, 0) * total
            if total == 0.0:  # a word that no topic has
                j = int(uniform(stream, 0) * len(few))
            while total > 0.0 and j < len(few) - 1 and sums[j] <= target:
                j += 1
            tokens.topics[i] = few[j]


@inline
def how_often(table: Table, w: Any, k: Any) -> Any:
    """n_wk."""
    if len(table.dense):
        return table.dense[w, k]
    place = place_of(table, w, k)
    return table.counts[place] if place < table.starts[w] + table.sizes[w] else 0


@njit
def shares(tokens: Tokens, documents: Array, n_topics: int) -> tuple[Array, Array]:
    """Every (k, n_dk) that is not zero, of these documents, one after the other."""
    n = len(tokens.words)
    topics, counts = np.empty(n, np.int32), np.empty(n, np.int32)
    of_document = np.zeros(n_topics, np.int32)
    filled = 0
    for d in documents:
        here = tokens.topics[tokens.borders[d] : tokens.borders[d + 1]]
        for k in here:
            of_document[k] += 1
        for k in here:
            if of_document[k] > 0:
                topics[filled], counts[filled] = k, of_document[k]
                of_document[k] = 0
                filled += 1
    return topics[:filled], counts[:filled]


@njit
def rising(x: Array, n: Array, times: Array) -> float:
    """Σ_j times_j · log (x_j (x_j + 1) … (x_j + n_j − 1))."""
    total = 0.0
    for j in range(len(x)):
        total += times[j] * log_rising(x[j], n[j])
    return total


# Collapsed Gibbs sampling of the topic of every token, all parameters integrated out.
#
# Documents d, words w, topics k; n_dk, n_wk, n_k the tokens of a topic in a document, of a word and
# altogether, token i left out (Griffiths & Steyvers 2004):
#
#     p(z_i = k | z_−i, w) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ) = a_k (n_wk + β)
#
# a_k is kept for the document at hand; a token changes it in two places. Counts are whole numbers,
# so that adding and taking away leaves no rounding behind. There are two ways to keep n_wk:
#
# - *Dense*, for few topics: a row of K counts a word, all products in one vector loop. A processor
#   that had to finish one token before it began the next would mostly wait, so the sums of a token
#   are begun on counts that still hold the token itself and do not hold the one before. That is
#   made good, exactly, for the two topics concerned, when the number to be drawn is looked up.
# - *Lists*, for many topics: only the topics that a word has. p splits into a_k n_wk over that list
#   and β a_k over all topics (Yao, Mimno & McCallum 2009), which is seldom drawn from.


LOST = 1e-6
"""Where taking a token away leaves less of the sum than this, it is computed anew."""

_njit = partial(njit, error_model="numpy")  # divisors are positive: no need to look


class Desk(NamedTuple):
    """The document at hand: n_dk and a_k; 1/(n_k + Vβ) and 1/(n_k + 1 + Vβ); room for sums."""

    counts: Array
    a: Array
    inverse: Array
    next_inverse: Array
    sums: Array
    ends: Array


@inline
def _desk(totals: Array, beta_total: float) -> Desk:
    K = len(totals)
    wide = -(-K // WIDTH) * WIDTH
    inverse = 1.0 / (totals + beta_total)
    next_inverse = 1.0 / (totals + (beta_total + 1.0))
    a, sums, ends = np.zeros(wide), np.empty(wide), np.zeros(WIDTH + 1)
    return Desk(np.zeros(K), a, inverse, next_inverse, sums, ends)


@_njit
def _open(desk: Desk, topics: Array, alpha: Array) -> None:
    """Count a document's topics."""
    desk.counts[:] = 0.0
    for k in topics:
        desk.counts[k] += 1.0
    for k in range(len(alpha)):
        desk.a[k] = (desk.counts[k] + alpha[k]) * desk.inverse[k]


@_njit
def sweep_dense(tokens: Tokens, known: Known, table: Table, prior: Prior, seed: Any) -> None:
    """Draw the topic of every token anew, in order, with dense rows."""
    desk = _desk(table.totals, prior.beta_total)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        here = slice(tokens.borders[d], tokens.borders[d + 1])
        words, topics = tokens.words[here], tokens.topics[here]
        few = known.topics[known.borders[d] : known.borders[d + 1]]
        if len(few):
            _known_document(words, topics, few, table, prior, desk, stream)
        elif len(words):
            _open(desk, topics, prior.alpha)
            _dense_document(words, topics, table.dense, table.totals, prior, desk, stream)


@_njit
def _dense_document(
    words: Array,
    topics: Array,
    dense: Array,
    totals: Array,
    prior: Prior,
    desk: Desk,
    stream: Array,
) -> None:
    """All tokens of a document. The topic ``new`` of the one before is counted one token late."""
    K, rows = len(totals), dense.shape[1] // WIDTH
    beta, a, sums, ends = prior.beta, desk.a, desk.sums, desk.ends
    new, before = np.uint64(0), np.uint64(0)
    for i in range(len(words)):
        old, w = np.uint64(topics[i]), np.uint64(words[i])
        if i + 2 < len(words):
            fetch(dense, words[i + 2])
        whole = products(dense, w, beta, a, sums, ends)
        edge = sums[old] + ends[old & np.uint64(WIDTH - 1)]  # the sum up to the old topic
        n, a_old = dense[w, old], a[old]
        dense[w, old] = n - 1
        _less(old, totals, prior, desk)
        gap = a_old * (n + beta) - a[old] * ((n - 1) + beta)  # not negative: n ≤ n_k, β ≤ Vβ
        more = 0.0
        if i > 0:
            n, a_new = dense[w, new] + beta, a[new]
            dense[before, new] += 1
            _more(new, totals, prior, desk)
            more = a[new] * (n + (before == w)) - a_new * n
        total = whole - gap
        if more < 0.0 or total < LOST * whole:
            total, more, gap = products(dense, w, beta, a, sums, ends), 0.0, 0.0
        target = uniform(stream, 0) * (total + more)
        again = target >= total  # the last stretch is what the token before added to its topic
        target = target if target < edge - gap else target + gap
        place = min(found(sums, ends, rows, target), K - 1)
        new = new if again else np.uint64(place)
        topics[i], before = new, w
    dense[before, new] += 1
    _more(new, totals, prior, desk)


@inline
def _less(k: Any, totals: Array, prior: Prior, desk: Desk) -> None:
    """A token less in topic k."""
    n, total = desk.counts[k] - 1.0, totals[k] - 1.0
    desk.counts[k], totals[k] = n, total
    inverse = 1.0 / (total + prior.beta_total)
    desk.inverse[k] = inverse
    desk.next_inverse[k] = 1.0 / (total + (prior.beta_total + 1.0))
    desk.a[k] = (n + prior.alpha[k]) * inverse


@inline
def _more(k: Any, totals: Array, prior: Prior, desk: Desk) -> None:
    """A token more in topic k; its inverse has been prepared, for this is waited for."""
    n, total = desk.counts[k] + 1.0, totals[k] + 1.0
    inverse = desk.next_inverse[k]
    desk.a[k] = (n + prior.alpha[k]) * inverse
    desk.counts[k], totals[k] = n, total
    desk.inverse[k] = inverse
    desk.next_inverse[k] = 1.0 / (total + (prior.beta_total + 1.0))


@_njit
def sweep_lists(tokens: Tokens, known: Known, table: Table, prior: Prior, seed: Any) -> None:
    """Draw the topic of every token anew, in order, with lists."""
    desk = _desk(table.totals, prior.beta_total)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    nothing = np.zeros((1, len(desk.a)), np.int32)
    for d in range(len(tokens.borders) - 1):
        here = slice(tokens.borders[d], tokens.borders[d + 1])
        words, topics = tokens.words[here], tokens.topics[here]
        few = known.topics[known.borders[d] : known.borders[d + 1]]
        if len(few):
            _known_document(words, topics, few, table, prior, desk, stream)
            continue
        _open(desk, topics, prior.alpha)
        _listed_document(words, topics, table, prior, desk, nothing, stream)


@_njit
def _listed_document(
    words: Array,
    topics: Array,
    table: Table,
    prior: Prior,
    desk: Desk,
    nothing: Array,
    stream: Array,
) -> None:
    """All tokens of a document."""
    a, sums, ends = desk.a, desk.sums, desk.ends
    K, rows = len(table.totals), len(a) // WIDTH
    base = products(nothing, 0, 1.0, a, sums, ends)  # Σ_k a_k
    for i in range(len(words)):
        k, w = np.int64(topics[i]), words[i]
        base -= a[k]
        remove(table, w, place_of(table, w, k))
        _less(k, table.totals, prior, desk)
        base += a[k]
        start, size = table.starts[w], table.sizes[w]
        few = (size + WIDTH - 1) // WIDTH
        total = gathered(table.topics, table.counts, start, few, a, sums, ends)
        target = uniform(stream, 0) * (total + prior.beta * base)
        if target < total:
            place = start + min(found(sums, ends, few, target), size - 1)
            k = np.int64(table.topics[place])
        else:
            base = products(nothing, 0, 1.0, a, sums, ends)
            k = np.int64(min(found(sums, ends, rows, uniform(stream, 0) * base), K - 1))
            place = place_of(table, w, k)
        topics[i] = k
        base -= a[k]
        add(table, w, place, k)
        _more(k, table.totals, prior, desk)
        base += a[k]


@_njit
def _known_document(
    words: Array,
    topics: Array,
    few: Array,
    table: Table,
    prior: Prior,
    desk: Desk,
    stream: Array,
) -> None:
    """All tokens of a document that may have a few topics only."""
    if len(few) == 1:
        return  # where else?
    desk.counts[:] = 0.0
    for k in topics:
        desk.counts[k] += 1.0
    for i in range(len(words)):
        w = words[i]
        _move(table, desk, w, np.int64(topics[i]), -1)
        total = 0.0
        for j in range(len(few)):
            k = few[j]
            total += (
                (desk.counts[k] + prior.alpha[k])
                * (how_often(table, w, k) + prior.beta)
                / (table.totals[k] + prior.beta_total)
            )
            desk.sums[j] = total
        target, j = uniform(stream, 0) * total, 0
        while j < len(few) - 1 and desk.sums[j] <= target:
            j += 1
        topics[i] = few[j]
        _move(table, desk, w, np.int64(few[j]), 1)
    for k in few:
        desk.inverse[k] = 1.0 / (table.totals[k] + prior.beta_total)
        desk.next_inverse[k] = 1.0 / (table.totals[k] + (prior.beta_total + 1.0))


@inline
def _move(table: Table, desk: Desk, w: Any, k: Any, sign: int) -> None:
    """A token of the document at hand into a topic (sign 1), or out of it (−1)."""
    desk.counts[k] += sign
    count(table, w, k, sign)


@njit
def conditional(table: Table, prior: Prior, of_document: Array, w: int, out: Array) -> None:
    """out_k ← log p(z = k | all others) up to a constant, for a token of word w taken away."""
    K = len(out)
    for k in range(K):
        out[k] = table.dense[w, k] if len(table.dense) else 0.0
    for place in range(table.starts[w], table.starts[w] + table.sizes[w]):
        out[table.topics[place]] = table.counts[place]
    for k in range(K):
        p = (of_document[k] + prior.alpha[k]) * (out[k] + prior.beta)
        out[k] = math.log(p / (table.totals[k] + prior.beta_total))


@njit
def sweep_tempered(
    tokens: Tokens, known: Known, table: Table, prior: Prior, seed: Any, temper: float
) -> None:
    """Draw the topic of every token anew, in order, from a power of its distribution."""
    K = len(table.totals)
    barred = np.empty(K, np.bool_)
    of_document, logs, room = np.zeros(K), np.empty(K), np.empty(K)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        of_document[:] = 0.0
        few = known.topics[known.borders[d] : known.borders[d + 1]]
        barred[:] = len(few) > 0
        barred[few] = False
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            of_document[tokens.topics[i]] += 1.0
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            k, w = int(tokens.topics[i]), tokens.words[i]
            of_document[k] -= 1.0
            count(table, w, k, -1)
            conditional(table, prior, of_document, w, logs)
            logs[barred] = -np.inf
            k = drawn(logs, 0, K, temper, stream, room)
            tokens.topics[i] = k
            of_document[k] += 1.0
            count(table, w, k, 1)


# How likely counts are under a Dirichlet prior, and the prior under which they are likeliest.


LEAST = 1e-5
"""Fitting lets no prior fall below this: a topic that has died out may come back."""

MOST_COUNTS = 1e10
"""Nor rise above this: counts as even as chance allows are likelier the larger the prior."""

ROUNDS = 200
"""How often the fixed point is repeated, at most."""

CLOSE = 1e-5
"""It ends where no prior changes by more than this share of itself."""


class Histogram(NamedTuple):
    """Rows of counts, each drawn with its own probabilities from a Dirichlet prior.

    ``which, counts, times``  that many entries of prior number ``which`` have such a count (not 0)
    ``totals, kinds, total_times``  that many rows of a kind add up to such a total (not 0)
    ``entries``  (kinds, priors): how many entries of each prior a row of that kind has
    """

    which: Array
    counts: Array
    times: Array
    totals: Array
    kinds: Array
    total_times: Array
    entries: Any

    @classmethod
    def of(
        cls, which: Array, counts: Array, totals: Array, entries: Any, kinds: Array | int = 0
    ) -> Histogram:
        """From entries that are not zero, in any order, and the rows' totals and kinds."""
        rows = np.broadcast_to(kinds, totals.shape)[totals > 0]
        seen, often = _pairs(which, counts)
        ends, row_times = _pairs(rows, totals[totals > 0])
        return cls(seen[0], seen[1].astype(np.float64), often, ends[1], ends[0], row_times, entries)


def _pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """The pairs of whole numbers that there are, (2, pairs), and how often."""
    span = int(second.max(initial=0)) + 1
    keys, times = np.unique(
        first.astype(np.int64) * span + second.astype(np.int64), return_counts=True
    )
    return np.array([keys // span, keys % span]), times.astype(np.float64)


def log_evidence(prior: Array, seen: Histogram) -> float:
    """Σ over rows of log Γ(A) / Γ(A + N) + Σ_j log Γ(a_j + n_j) / Γ(a_j), A = Σ_j a_j.

    A row of two words that are of one kind each, under a uniform prior: 1/2 · 1/3.

    >>> row = Histogram.of(np.array([0, 1]), np.array([1, 1]), np.array([2]), np.ones((1, 2)))
    >>> round(float(np.exp(-log_evidence(np.ones(2), row))), 9)
    6.0
    """
    total = (seen.entries @ prior)[seen.kinds]
    entries: float = rising(prior[seen.which], seen.counts, seen.times)
    rows: float = rising(total, seen.totals.astype(np.float64), seen.total_times)
    return entries - rows


def fitted(prior: Array, seen: Histogram) -> Array:
    """The prior moved towards the highest evidence, which does not fall (Minka 2000):

        a_j ← a_j · Σ_rows [ψ(n_j + a_j) − ψ(a_j)] / Σ_rows [ψ(N + A) − ψ(A)]

    The rows below are those that have an entry of prior j; a prior that none has stays.

    >>> rows = Histogram.of(
    ...     np.array([0, 1, 0, 0]), np.array([9, 1, 8, 5]), np.array([10, 8, 5]), np.ones((1, 2))
    ... )
    >>> before = np.ones(2)
    >>> bool(log_evidence(fitted(before, rows), rows) > log_evidence(before, rows))
    True
    """
    least, n_kinds = np.minimum(prior, LEAST), seen.entries.shape[0]
    for _ in range(ROUNDS):
        total = (seen.entries @ prior)[seen.kinds]
        drawn = seen.total_times * (digamma(seen.totals + total) - digamma(total))
        below = seen.entries.T @ np.bincount(seen.kinds, drawn, n_kinds)
        own = prior[seen.which]
        gains = seen.times * (digamma(seen.counts + own) - digamma(own))
        above = np.bincount(seen.which, gains, len(prior))
        factors = np.divide(above, below, out=np.ones(len(prior)), where=below > 0.0)
        old, prior = prior, np.clip(prior * factors, least, MOST_COUNTS)
        if (np.abs(prior - old) <= CLOSE * old).all():
            break
    return prior


# Latent Dirichlet allocation with its parameters integrated out, sampled one token at a time.


PRIORS = (1e-10, 1e10)
"""The smallest prior and the largest."""

LISTS_FROM = 256
"""From so many topics on, a list of each word's topics is faster than a row of all of them."""

MOST = 2**31 - 1
"""The largest number of tokens."""


class CollapsedTopics:
    """A state of the sampler: which topic each token is of.

    ``indptr, words, counts``  the documents in CSR form; counts are whole numbers
    ``n_words``  V, the size of the vocabulary
    ``alpha``    Dirichlet prior of the documents' topics, one number a topic
    ``beta``     Dirichlet prior of the topics' words, one number
    ``topics``   the topic of every token to begin with, document by document, a word with count 3
                 being three tokens; if None they are drawn, by ``seed``
    ``likely``   p(word | topic) (K, V) to draw the first topics with; if None all are as likely
    ``known``    sparse (documents, topics): which topics a document may have; all if it has none
    ``seeds``    sparse (K, V) of whole numbers: tokens that a topic has beforehand

    A token takes six bytes (eight from 2^16 topics on). The words' topics take 4 K bytes a word, or
    from `LISTS_FROM` topics on at most eight bytes a token, and some for each word.

    >>> two = CollapsedTopics([0, 2, 4], [0, 1, 1, 2], [5, 1, 1, 5], 3, alpha=np.full(2, 0.1),
    ...                       beta=0.1)
    >>> for stream in range(20):
    ...     two.sweep(stream)
    >>> sorted(two.counts()["topics"][:, [0, 2]].tolist())
    [[0.0, 5.0], [5.0, 0.0]]
    >>> two.document_counts().sum(axis=1)
    array([6., 6.])
    """

    def __init__(
        self,
        indptr: ArrayLike,
        words: ArrayLike,
        counts: ArrayLike,
        n_words: int,
        *,
        alpha: ArrayLike,
        beta: float,
        topics: ArrayLike | None = None,
        likely: Array | None = None,
        seed: int = 0,
        known: Any = None,
        seeds: Any = None,
    ) -> None:
        of_topics = _positive("alpha", np.atleast_1d(np.array(alpha, np.float64)))
        of_words = float(_positive("beta", np.array([beta], np.float64))[0])
        K = len(of_topics)
        self._prior = Prior(of_topics, of_words, n_words * of_words)
        self._n_words = n_words
        self._tokens = _tokens(*whole_bags(indptr, words, counts, n_words), K)
        self._known = _known(known, len(self._tokens.borders) - 1)
        self._allowed, self._kinds = _kinds(self._known, K)
        choices = np.asarray(self._allowed.sum(axis=1)).ravel()
        self._choosing = np.flatnonzero(choices[self._kinds] > 1)
        if topics is None and (likely is not None or known is not None):
            even = np.ones((n_words, K)) if likely is None else np.ascontiguousarray(likely.T)
            begin(self._tokens, self._known, even, np.uint64(seed))
        else:
            self._tokens.topics[:] = _begun(topics, seed, len(self._tokens.words), K)
            _demand_allowed(self._tokens, self._known, K)
        none = sparse.coo_matrix((K, n_words), dtype=np.int64)
        self._seeds = none if seeds is None else _clean(seeds, np.int64).tocoo()
        beforehand = np.bincount(self._seeds.row, self._seeds.data, K)
        self._seeds_seen = self._of_words(self._seeds.data, beforehand)
        self._table = _table(self._tokens.words, self._seeds, n_words, K)
        count_all(self._tokens, self._table)

    @property
    def alpha(self) -> Array:
        """The prior of the documents' topics."""
        return self._prior.alpha.copy()

    @property
    def beta(self) -> float:
        """The prior of the topics' words."""
        return self._prior.beta

    @property
    def topics(self) -> Array:
        """The topic of every token, document by document."""
        return self._tokens.topics

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Draw every token's topic anew, given all others; ``temper`` is a power of p.

        Draws depend on ``stream`` and the state alone. A power other than 1 is slower.
        """
        seed = np.uint64(stream % 2**64)
        state = self._tokens, self._known, self._table, self._prior, seed
        if temper != 1.0:
            sweep_tempered(*state, float(temper))
        elif len(self._table.dense):
            sweep_dense(*state)
        else:
            sweep_lists(*state)

    def conditional(self, token: int) -> Array:
        """log p(z_i = k | all others) of a token, up to a constant."""
        d = np.searchsorted(self._tokens.borders, token, side="right") - 1
        here = slice(self._tokens.borders[d], self._tokens.borders[d + 1])
        w, now = int(self._tokens.words[token]), int(self.topics[token])
        of_document = np.bincount(self.topics[here], minlength=len(self._prior.alpha))
        of_document[now] -= 1
        logs = np.empty(len(self._prior.alpha))
        count(self._table, w, now, -1)
        conditional(self._table, self._prior, of_document.astype(np.float64), w, logs)
        count(self._table, w, now, 1)
        few = self._known.topics[self._known.borders[d] : self._known.borders[d + 1]]
        if len(few):
            logs[np.setdiff1d(np.arange(len(logs)), few)] = -np.inf
        return logs

    def counts(self) -> dict[str, Array]:
        """How often each topic has each word (K, V), seeds apart."""
        K, V = len(self._prior.alpha), self._n_words
        where = self.topics.astype(np.int64) * V + self._tokens.words
        return {"topics": np.bincount(where, minlength=K * V).reshape(K, V).astype(np.float64)}

    def means(self) -> dict[str, Array]:
        """E[φ | w, z]: p(word | topic) given the topics of all tokens, (K, V)."""
        mass = self.counts()["topics"] + self._prior.beta
        np.add.at(mass, (self._seeds.row, self._seeds.col), self._seeds.data)
        mass /= mass.sum(axis=1, keepdims=True)
        return {"topics": mass}

    def priors(self) -> dict[str, Array]:
        """What `optimise` makes of the priors."""
        return {"documents": self.alpha, "topics": np.array([self.beta])}

    def stats(self) -> Stats:
        """log p(w, z): what others report of such samplers, for it costs next to nothing."""
        documents, tokens = len(self._tokens.borders) - 1, len(self._tokens.words)
        joint = self.log_joint()
        return Stats({}, joint, joint, float(documents), float(tokens))

    def document_counts(self) -> Array:
        """How often each document has each topic (n, K)."""
        n, K = len(self._tokens.borders) - 1, len(self._prior.alpha)
        whose = np.repeat(np.arange(n), np.diff(self._tokens.borders))
        where = whose * K + self.topics
        return np.bincount(where, minlength=n * K).reshape(n, K).astype(np.float64)

    def log_joint(self) -> float:
        """log p(w, z | α, β), the parameters integrated out (Griffiths & Steyvers 2004, 2 and 3).

        Of the tokens in their order: there are no multinomial coefficients.
        """
        beta = np.array([self._prior.beta])
        of_words = log_evidence(beta, self._words_seen()) - log_evidence(beta, self._seeds_seen)
        return of_words + log_evidence(self._prior.alpha, self._topics_seen())

    def optimise(self) -> None:
        """Fit α (one a topic) and β to the topics of all tokens: log p(w, z | α, β) cannot fall.

        That α has a number for every topic and β one for all words is what Wallach, Mimno &
        McCallum (2009) found to matter. Documents that may have one topic only say nothing of α,
        and β stays as it is where there are seeds, which are a prior of another shape.
        """
        beta = self._prior.beta
        alpha = fitted(self._prior.alpha, self._topics_seen())
        if not self._seeds.nnz:
            beta = float(fitted(np.array([beta]), self._words_seen())[0])
        self._prior = Prior(alpha, beta, self._n_words * beta)

    def _topics_seen(self) -> Histogram:
        """Of topics in documents that have a choice: log p(z) of the others is zero."""
        documents = self._choosing
        topics, counts = shares(self._tokens, documents, len(self._prior.alpha))
        lengths = np.diff(self._tokens.borders)[documents]
        return Histogram.of(topics, counts, lengths, self._allowed, self._kinds[documents])

    def _words_seen(self) -> Histogram:
        """Of words in topics, seeds among them."""
        of_words = self._table.dense.ravel() if len(self._table.dense) else self._table.counts
        return self._of_words(of_words[of_words > 0], self._table.totals)

    def _of_words(self, counts: Array, totals: Array) -> Histogram:
        return Histogram.of(np.zeros_like(counts), counts, totals, np.array([[self._n_words]]))


def _clean(given: Any, dtype: type) -> Any:
    """A sparse matrix whose entries are there once, and not zero."""
    rows = sparse.csr_matrix(given, dtype=dtype, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _known(known: Any, n: int) -> Known:
    """Which topics documents may have, document by document."""
    if known is None:
        return Known(np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
    rows = _clean(known, np.bool_)
    return Known(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))


def _kinds(known: Known, n_topics: int) -> tuple[Any, Array]:
    """The sets of topics that documents may have, (sets, topics), all of them first; and whose."""
    numbers: dict[bytes, int] = {}
    kinds = np.zeros(len(known.borders) - 1, np.int64)
    sets = [np.arange(n_topics)]
    for d in np.flatnonzero(np.diff(known.borders)):
        topics = known.topics[known.borders[d] : known.borders[d + 1]]
        kinds[d] = numbers.setdefault(topics.tobytes(), len(sets))
        if kinds[d] == len(sets):
            sets.append(topics)
    if len(sets) == 1:
        return np.ones((1, n_topics)), kinds
    borders = np.append(0, np.cumsum([len(topics) for topics in sets]))
    which = np.concatenate(sets)
    entries = sparse.csr_matrix((np.ones(len(which)), which, borders), (len(sets), n_topics))
    return entries, kinds


def _demand_allowed(tokens: Tokens, known: Known, n_topics: int) -> None:
    """Raise if a token begins in a topic that its document cannot have."""
    if not len(known.topics):
        return
    n = len(known.borders) - 1
    whose = np.repeat(np.arange(n), np.diff(tokens.borders))
    allowed = np.repeat(np.arange(n), np.diff(known.borders)) * n_topics + known.topics
    free = np.diff(known.borders)[whose] == 0
    wrong = np.flatnonzero(~free & ~np.isin(whose * n_topics + tokens.topics, allowed))
    if len(wrong):
        token = wrong[0]
        raise DataError(
            f"token {token} begins in topic {tokens.topics[token]}, which document {whose[token]} "
            "cannot have",
            "give topics that are among the known ones of each document",
        )


def _tokens(borders: Array, words: Array, counts: Array, n_topics: int) -> Tokens:
    """The documents as tokens, all of topic 0."""
    total = counts.sum()
    if total > MOST:
        raise DataError(
            f"{total:.0f} tokens are too many for a collapsed sampler, which keeps them all",
            "use a stepwise learner, or fewer documents",
        )
    before = np.append(0, np.cumsum(counts)).astype(np.int64)
    narrow = np.uint16 if n_topics <= 2**16 else np.uint32
    return Tokens(
        before[borders], np.repeat(words, counts.astype(np.int64)), np.zeros(int(total), narrow)
    )


def _begun(topics: ArrayLike | None, seed: int, n: int, n_topics: int) -> Array:
    """The tokens' first topics, checked or drawn."""
    if topics is None:
        return np.random.default_rng(seed).integers(0, n_topics, n)
    given = np.asarray(topics)
    if given.shape != (n,):
        raise DataError(
            f"there are {n} tokens, but topics of shape {given.shape}",
            "give one topic for every token: a word with count 3 is three tokens",
        )
    wrong = np.flatnonzero((given < 0) | (given >= n_topics) | (given != np.floor(given)))
    if len(wrong):
        raise DataError(
            f"token {wrong[0]} begins in topic {given[wrong[0]]}, but there are {n_topics}",
            f"give whole numbers from 0 to {n_topics - 1}",
        )
    return given


def _table(words: Array, seeds: Any, n_words: int, n_topics: int) -> Table:
    """Room for the counts of every word's topics, with the seeds in it."""
    totals = np.zeros(n_topics)
    dense, none = np.zeros((0, WIDTH), np.int32), np.zeros(0, np.int32)
    starts, sizes = np.zeros(n_words + 1, np.int64), np.zeros(n_words, np.int32)
    if n_topics < LISTS_FROM:
        dense = np.zeros((n_words, -(-n_topics // WIDTH) * WIDTH), np.int32)
        table = Table(dense, starts, sizes, none, none, totals)
    else:
        most = np.bincount(words, minlength=n_words) + np.bincount(seeds.col, minlength=n_words)
        starts[1:] = np.cumsum(-(-np.minimum(most, n_topics) // WIDTH) * WIDTH)
        topics, counts = np.zeros((2, starts[-1]), np.int32)
        table = Table(dense, starts, sizes, topics, counts, totals)
    for k, w, times in zip(seeds.row, seeds.col, seeds.data, strict=True):
        count(table, w, k, times)
    return table


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not len(values) or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration: 0.1 for topics and 0.01 for words are usual",
        )
    return np.ascontiguousarray(values)
