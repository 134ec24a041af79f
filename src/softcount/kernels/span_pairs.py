"""Charts of sentences, and the pairs of neighbouring spans that a span is made of.

A sentence of n words has n leaves and n (n − 1) / 2 spans of two words or more, the short ones
first. A leaf has preterminals, a longer span has nonterminals; so there are four kinds of pairs:
two leaves, a leaf and a span, a span and a leaf, two spans.

Numbers of spans are kept times powers of two, one for each sentence and width: products of two have
to be brought to that of their span, which rounds nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from softcount.kernels.jit import lean, merged
from softcount.types import Array

LEAVES, LEAF_FIRST, LEAF_LAST, SPANS = 0, 1, 2, 3
"""The kinds of pairs."""


class Charts(NamedTuple):
    """Numbers of some sentences' leaves and spans.

    ``lengths``  of the sentences
    ``leaf_of``, ``span_of``  the first leaf, and the first span, of each sentence
    ``leaves``   (words, preterminals)
    ``spans``    (spans, nonterminals): see `cell`
    ``powers``   (sentences, widths): spans are kept times 2 to that power
    """

    lengths: Array
    leaf_of: Array
    span_of: Array
    leaves: Array
    spans: Array
    powers: Array


@merged
def cell(n: int, w: int, i: int) -> int:
    """The place of the span of w words from word i on in a sentence of n words.

    >>> [cell(4, w, i) for w, i in [(2, 0), (2, 2), (3, 0), (3, 1), (4, 0)]]
    [0, 2, 3, 4, 5]
    """
    return (w - 2) * (n + 1) - (w * (w - 1)) // 2 + 1 + i


@lean
def gather(
    kind: int,
    w: int,
    i: int,
    s: int,
    lengths: Array,
    leaf_of: Array,
    span_of: Array,
    leaves: Array,
    spans: Array,
    powers: Array,
    left: Array,
    right: Array,
    factors: Array,
) -> int:
    """Copy the pairs of one kind that make up the span of w words from i on; gives their number.

    The left ones are multiplied by ``factors``, which bring products to the power of the span.
    """
    n, leaf, span = lengths[s], leaf_of[s] + i, span_of[s]
    if kind == SPANS:
        for m in range(2, w - 1):
            power = powers[s, w] - powers[s, m] - powers[s, w - m]
            factors[m - 2] = math.ldexp(1.0, power)
            _copy(span + cell(n, m, i), spans, m - 2, left, factors[m - 2])
            _copy(span + cell(n, w - m, i + m), spans, m - 2, right, factors.dtype.type(1.0))
        return w - 3
    factors[0] = math.ldexp(1.0, powers[s, w] - powers[s, w - 1])
    if kind == LEAF_LAST:
        _copy(span + cell(n, w - 1, i), spans, 0, left, factors[0])
    else:
        _copy(leaf, leaves, 0, left, factors[0])
    if kind == LEAF_FIRST:
        _copy(span + cell(n, w - 1, i + 1), spans, 0, right, factors.dtype.type(1.0))
    else:
        _copy(leaf + w - 1, leaves, 0, right, factors.dtype.type(1.0))
    return 1


@merged
def _copy(a: int, source: Array, b: int, into: Array, factor: float) -> None:
    for k in range(source.shape[1]):
        into[b, k] = source[a, k] * factor


@lean
def scatter(
    kind: int,
    w: int,
    i: int,
    s: int,
    lengths: Array,
    leaf_of: Array,
    span_of: Array,
    leaves: Array,
    spans: Array,
    left: Array,
    right: Array,
    factors: Array,
) -> None:
    """Add rows to where `gather` took them from, the left ones times ``factors``."""
    n, leaf, span = lengths[s], leaf_of[s] + i, span_of[s]
    one = factors.dtype.type(1.0)
    if kind == SPANS:
        for m in range(2, w - 1):
            _add(m - 2, left, span + cell(n, m, i), spans, factors[m - 2])
            _add(m - 2, right, span + cell(n, w - m, i + m), spans, one)
        return
    if kind == LEAF_LAST:
        _add(0, left, span + cell(n, w - 1, i), spans, factors[0])
    else:
        _add(0, left, leaf, leaves, factors[0])
    if kind == LEAF_FIRST:
        _add(0, right, span + cell(n, w - 1, i + 1), spans, one)
    else:
        _add(0, right, leaf + w - 1, leaves, one)


@merged
def _add(a: int, source: Array, b: int, into: Array, factor: float) -> None:
    for k in range(into.shape[1]):
        into[b, k] += source[a, k] * factor
