"""Collapsed Gibbs sampling of the topic of every token, all parameters integrated out.

Documents d, words w, topics k; n_dk, n_wk, n_k the tokens of a topic in a document, of a word and
altogether, token i left out (Griffiths & Steyvers 2004):

    p(z_i = k | z_−i, w) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ) = a_k (n_wk + β)

a_k is kept for the document at hand; a token changes it in two places. Counts are whole numbers, so
that adding and taking away leaves no rounding behind. There are two ways to keep n_wk:

- *Dense*, for few topics: a row of K counts a word, all products in one vector loop. A processor
  that had to finish one token before it began the next would mostly wait, so the sums of a token
  are begun on counts that still hold the token itself and do not hold the one before. That is made
  good, exactly, for the two topics concerned, when the number to be drawn is looked up.
- *Lists*, for many topics: only the topics that a word has. p splits into a_k n_wk over that list
  and β a_k over all topics (Yao, Mimno & McCallum 2009), which is seldom drawn from.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.collapsed import drawn
from softcount.kernels.jit import inline, njit
from softcount.kernels.lanes import WIDTH, fetch
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.topic_lanes import found, gathered, products
from softcount.kernels.topic_table import (
    Known,
    Prior,
    Table,
    Tokens,
    add,
    count,
    how_often,
    place_of,
    remove,
)
from softcount.types import Array

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
