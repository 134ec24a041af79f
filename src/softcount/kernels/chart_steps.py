"""Steps of inside and outside: rules applied to pairs of spans, and undone.

See `softcount.kernels.inside_outside`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import lean, njit
from softcount.kernels.products import (
    SIDE,
    TALL,
    add_cross,
    add_product,
    add_product_one,
    cross,
    cross_best,
    multiply,
    multiply_one,
    raise_to_best,
)
from softcount.kernels.span_pairs import (
    Charts,
    gather,
    scatter,
)
from softcount.types import Array

CHUNK = 24
"""So many spans at a time: M and W of them should be near."""


class Pairs(NamedTuple):
    """Rules with pairs of one kind on their right side.

    ``up``    (pairs, nonterminals)
    ``down``  (nonterminals, pairs), with left symbols padded to a multiple of `SIDE`
    ``wide``  how many right symbols there are, padded
    """

    up: Array
    down: Array
    wide: int


class Grammar(NamedTuple):
    """``root`` and ``single``: what sentences are, of several words and of one; rules by kind."""

    root: Array
    single: Array
    leaves: Pairs
    leaf_first: Pairs
    leaf_last: Pairs
    spans: Pairs


class Room(NamedTuple):
    """Where pairs of one kind are worked on: those of a span, and M and W of some spans."""

    left: Array
    right: Array
    factors: Array
    out_left: Array
    out_right: Array
    turned: Array
    met: Array
    pushed: Array


@njit
def room_for(pairs: Pairs, most: int, n_left: int, like: Array) -> Room:
    rows = CHUNK * (pairs.down.shape[1] // pairs.wide)
    return Room(
        np.zeros((most, n_left), like.dtype),
        np.zeros((most, pairs.wide), like.dtype),
        np.zeros(most, like.dtype),
        np.zeros((most, n_left), like.dtype),
        np.zeros((most, pairs.wide), like.dtype),
        np.zeros((pairs.wide, n_left), like.dtype),
        np.zeros((rows, pairs.wide), like.dtype),
        np.zeros((rows, pairs.wide), like.dtype),
    )


class Spans(NamedTuple):
    """Spans of one width: their sentences and first words."""

    sentences: Array
    starts: Array


@lean
def _meet(kind: int, w: int, i: int, s: int, q: int, best: bool, c: Charts, at: Room) -> int:
    """M of the span of w words from i on, as number q; gives how many pairs it is made of."""
    left, right, met = at.left, at.right, at.met
    where = (c.lengths, c.leaf_of, c.span_of, c.leaves, c.spans, c.powers)
    m = gather(kind, w, i, s, *where, left, right, at.factors)
    rows = len(met) // CHUNK
    for b in range(0, rows, SIDE):
        if best:
            cross_best(met, q * rows + b, left, b, right, 0, m)
        else:
            cross(met, q * rows + b, left, b, right, 0, m)
    return m


@lean
def up(
    kind: int,
    w: int,
    first: int,
    n: int,
    spans: Spans,
    c: Charts,
    pairs: Pairs,
    best: bool,
    at: Room,
    beta: Any,
) -> None:
    """Add what pairs of one kind give to β of n spans; or take the ``best`` where it is more."""
    for q in range(n):
        _meet(kind, w, spans.starts[first + q], spans.sentences[first + q], q, best, c, at)
    met, whole = at.met.reshape(CHUNK, pairs.down.shape[1]), 0 if best else n - n % TALL
    for q in range(0, whole, TALL):
        add_product(beta, q, met, q, pairs.up, 0, len(pairs.up))
    for q in range(whole, n):
        if best:
            raise_to_best(beta, q, met, q, pairs.up, 0, len(pairs.up))
        else:
            add_product_one(beta, q, met, q, pairs.up, 0, len(pairs.up))


@lean
def down(
    kind: int,
    w: int,
    first: int,
    n: int,
    spans: Spans,
    c: Charts,
    out: Charts,
    pairs: Pairs,
    at: Room,
    omega: Array,
    counts: Array,
) -> None:
    """Hand ω of n spans on to their pairs of one kind, and count the rules."""
    wide, rows = pairs.wide, pairs.down.shape[1] // pairs.wide
    pushed, whole = at.pushed.reshape(CHUNK, rows * wide), n - n % TALL
    for q in range(0, whole, TALL):
        multiply(pushed, q, omega, q, pairs.down, 0, len(pairs.down))
    for q in range(whole, n):
        multiply_one(pushed, q, omega, q, pairs.down, 0, len(pairs.down))
    met = at.met.reshape(CHUNK, rows * wide)
    for q in range(n):
        i, s = spans.starts[first + q], spans.sentences[first + q]
        m = _meet(kind, w, i, s, q, False, c, at)
        _hand_on(q, m, rows, wide, at)
        where = (c.lengths, c.leaf_of, c.span_of, out.leaves, out.spans)
        scatter(kind, w, i, s, *where, at.out_left, at.out_right, at.factors)
    for a in range(0, omega.shape[1], SIDE):
        add_cross(counts, a, omega, a, met, 0, n)


@lean
def _hand_on(q: int, m: int, rows: int, wide: int, at: Room) -> None:
    """β W and W β of m pairs, W being that of span q."""
    pushed, turned, left, right = at.pushed, at.turned, at.left, at.right
    for b in range(rows):
        for k in range(wide):
            turned[k, b] = pushed[q * rows + b, k]
    whole = m - m % TALL
    for p in range(0, whole, TALL):
        multiply(at.out_right, p, left, p, pushed, q * rows, rows)
        multiply(at.out_left, p, right, p, turned, 0, wide)
    for p in range(whole, m):
        multiply_one(at.out_right, p, left, p, pushed, q * rows, rows)
        multiply_one(at.out_left, p, right, p, turned, 0, wide)
