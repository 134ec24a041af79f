"""Which symbols a dense grammar expects where: posteriors of the symbols of spans."""

from __future__ import annotations

import numpy as np

from softcount.kernels.chart_spans import Shares, shares_of
from softcount.kernels.pool import in_turn
from softcount.models.grammar.passes import Pass, batches, bounds_of, text_of
from softcount.models.grammar.shards import Shard
from softcount.types import Array

LEAST = 1e-12
"""Shares up to this are left out: they are rounding, or might as well be."""


def spans(shard: Shard, this: Pass) -> Shares:
    """p(symbol spans i to j | sentence) of all sentences of a shard, in its order.

    Leaves have preterminals, which come after the nonterminals. A sentence that is impossible or
    empty has none. See `one_sentence` for those of one.
    """
    this = this._replace(dtype=np.float64)
    text = text_of(shard, this)._replace(weights=np.ones(len(shard)))
    grammar = this.shape.grammar(this.params, np.float64, this.temper)
    bounds, found = bounds_of(shard), dict[int, Shares]()

    def piece(number: int) -> None:
        tally = this.shape.tally(np.zeros(len(shard)), len(this.table), shard.text.rows)
        for first, last in batches(bounds[number], bounds[number + 1]):
            how = (text, grammar, this.shape.k, LEAST, tally)
            found[first] = shares_of(first, last, *how)

    in_turn(piece, len(bounds) - 1, this.threads)
    return _in_order(shard, [found[first] for first in sorted(found)])


def one_sentence(all_spans: Shares, s: int) -> tuple[Array, Array, Array, Array]:
    """Starts, ends, symbols and shares of sentence s."""
    own = slice(all_spans.borders[s], all_spans.borders[s + 1])
    starts, ends, symbols, shares = (some[own] for some in all_spans[1:])
    return starts, ends, symbols, shares


def _in_order(shard: Shard, found: list[Shares]) -> Shares:
    """Spans of batches, which go by the shard's ``order``, as the sentences go."""
    sizes = np.zeros(len(shard), np.int64)
    sizes[shard.order] = np.concatenate(
        [np.zeros(0, np.int64), *(np.diff(some.borders) for some in found)]
    )
    borders = np.concatenate([[0], np.cumsum(sizes)])
    kinds = (np.int64, np.int64, np.int32, np.float64)
    whole = Shares(borders, *(np.empty(borders[-1], kind) for kind in kinds))
    place = 0
    for some in found:
        for n in range(len(some.borders) - 1):
            s = shard.order[place]
            for into, part in zip(one_sentence(whole, s), one_sentence(some, n), strict=True):
                into[:] = part
            place += 1
    return whole
