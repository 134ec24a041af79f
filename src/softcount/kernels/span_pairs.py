"""Charts of sentences, and the pairs of neighbouring spans that a span is made of.

A sentence of n words has n leaves and n (n − 1) / 2 spans of two words or more, the short ones
first. A leaf has preterminals, a longer span has nonterminals.

Numbers of spans are kept times powers of two, one for each span: products of two have to be brought
to that of their span, which rounds nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from softcount.kernels.jit import njit, part
from softcount.kernels.lanes import add_scaled
from softcount.kernels.table_products import copy_row
from softcount.types import Array

EMPTY = 1 << 20
"""The power of spans that cannot be: they count for nothing beside others."""


class Charts(NamedTuple):
    """Numbers of some sentences' leaves and spans.

    ``lengths``  of the sentences
    ``leaf_of``, ``span_of``  the first leaf, and the first span, of each sentence
    ``leaves``   (words, preterminals)
    ``spans``    (spans, nonterminals): see `cell`
    ``powers``   (spans,): each is kept times 2 to that power; `EMPTY` if it cannot be
    """

    lengths: Array
    leaf_of: Array
    span_of: Array
    leaves: Array
    spans: Array
    powers: Array


@njit
def cell(n: int, w: int, i: int) -> int:
    """The place of the span of w words from word i on in a sentence of n words.

    >>> [cell(4, w, i) for w, i in [(2, 0), (2, 2), (3, 0), (3, 1), (4, 0)]]
    [0, 2, 3, 4, 5]
    """
    return (w - 2) * (n + 1) - (w * (w - 1)) // 2 + 1 + i


@part
def power_of(w: int, i: int, s: int, c: Charts) -> int:
    """The power of the span of w words from i on; leaves have none."""
    return 0 if w == 1 else int(c.powers[c.span_of[s] + cell(c.lengths[s], w, i)])


@part
def factor_of(whole: int, parts: int) -> float:
    """What brings a product to the power of the span that it is a part of; 0 if one cannot be."""
    return math.ldexp(1.0, whole - parts) if max(whole, parts) < EMPTY else 0.0


@part
def factors_of(w: int, first: int, n: int, c: Charts, rooms: Any) -> None:
    """What brings products of m words and w − m to the power of their span, of n spans."""
    for q in range(n):
        i, s = rooms.starts[first + q], rooms.sentences[first + q]
        whole = power_of(w, i, s, c)
        for m in range(1, w):
            parts = power_of(m, i, s, c) + power_of(w - m, i + m, s, c)
            rooms.factors[q, m] = factor_of(whole, parts)


@part
def gather(
    w: int, i: int, s: int, q: int, c: Charts, left: Array, right: Array, factors: Array
) -> int:
    """Copy the pairs of two leaves, or of two spans, that make up the span of w words from i on.

    Gives their number. The left ones are multiplied by row q of ``factors``.
    """
    n, one = c.lengths[s], factors.dtype.type(1.0)
    if w == 2:
        copy_row(left, 0, c.leaves, c.leaf_of[s] + i, factors[q, 1])
        copy_row(right, 0, c.leaves, c.leaf_of[s] + i + 1, one)
        return 1
    for m in range(2, w - 1):
        copy_row(left, m - 2, c.spans, c.span_of[s] + cell(n, m, i), factors[q, m])
        copy_row(right, m - 2, c.spans, c.span_of[s] + cell(n, w - m, i + m), one)
    return w - 3


@part
def scatter(
    w: int, i: int, s: int, q: int, out: Charts, left: Array, right: Array, factors: Array
) -> None:
    """Add rows to where `gather` took them from, the left ones times row q of ``factors``."""
    n, one = out.lengths[s], factors.dtype.type(1.0)
    if w == 2:
        add_scaled(out.leaves, out.leaf_of[s] + i, factors[q, 1], left, 0)
        add_scaled(out.leaves, out.leaf_of[s] + i + 1, one, right, 0)
        return
    for m in range(2, w - 1):
        add_scaled(out.spans, out.span_of[s] + cell(n, m, i), factors[q, m], left, m - 2)
        add_scaled(out.spans, out.span_of[s] + cell(n, w - m, i + m), one, right, m - 2)
