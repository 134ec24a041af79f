"""Passes over sentences with a dense grammar: expected counts, likelihoods, best trees, draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from softcount import interrupt
from softcount.kernels import chart_trees, inside_outside
from softcount.kernels.inside_outside import Tally, Text
from softcount.kernels.packs import padded
from softcount.kernels.pool import even_pieces, in_turn
from softcount.models.grammar.dense import Shape
from softcount.models.grammar.shards import Shard
from softcount.types import Array, Params

TOGETHER = 16
"""So many sentences are gone through together."""
PIECES = 4
"""Work is shared out among so many, whatever the threads: each has counts of its own, which are
added up in one order."""


class Pass(NamedTuple):
    """What a pass needs: tables (``table``: p(word | preterminal), padded) and settings."""

    shape: Shape
    params: Params
    table: Array
    dtype: Any
    temper: float = 1.0
    threads: int = 1


def posteriors(shard: Shard, this: Pass, counting: bool = True) -> Tally:
    """Expected counts, and log p of each sentence."""
    text, grammar = text_of(shard, this), this.shape.grammar(this.params, this.dtype, this.temper)
    logs = np.zeros(len(shard))
    bounds = bounds_of(shard)
    own: dict[int, Tally] = {}

    def piece(number: int) -> None:
        own[number] = this.shape.tally(logs, len(this.table) if counting else 0, shard.text.rows)
        for first, last in batches(bounds[number], bounds[number + 1]):
            inside_outside.both_ways(first, last, text, grammar, own[number], counting)

    in_turn(piece, len(bounds) - 1, this.threads)
    total = own.pop(0)
    for number in range(1, len(bounds) - 1):  # in one order, whoever was done first
        for into, more in zip(total, own.pop(number), strict=True):
            if into is not logs and into is not total.into:
                into += more
    sound = all(np.isfinite(some).all() for some in total)
    if np.dtype(this.dtype).itemsize < 8 and not sound:  # too small, or large, for so few bits
        return posteriors(shard, this._replace(dtype=np.float64), counting)
    return total


def trees(
    shard: Shard, this: Pass, best: bool, stream: int = 0, samples: int = 1
) -> tuple[chart_trees.Nodes, Array]:
    """The best trees and log p of each with its sentence; or draws, and log p of the sentences."""
    text = text_of(shard, this._replace(dtype=np.float64))
    grammar = this.shape.grammar(this.params, np.float64, this.temper)
    logs, size = np.zeros(len(shard)), (samples, 2 * shard.text.n_tokens)
    nodes = chart_trees.Nodes(np.zeros(size, np.int32), np.zeros(size, np.int32))
    bounds = bounds_of(shard)
    how = (this.shape.k, best, shard.text.numbers, np.uint64(stream), logs, nodes)

    def piece(number: int) -> None:
        for first, last in batches(bounds[number], bounds[number + 1]):
            chart_trees.traced(first, last, text, grammar, *how)

    in_turn(piece, len(bounds) - 1, this.threads)
    return nodes, logs


def text_of(shard: Shard, this: Pass) -> Text:
    """Sentences as kernels want them; words may be limited to some preterminals."""
    words, limits = shard.text, shard.limits
    table, rows = this.table**this.temper if this.temper != 1.0 else this.table, words.rows
    if words.sets.any():
        kinds = words.kinds
        table, rows = table[kinds.rows], kinds.of
        table[:, : this.shape.t] *= words.states.allowed[kinds.sets]
    known = np.zeros(0, np.int64) if limits.sets is None else limits.sets
    return Text(
        shard.order,
        words.indptr,
        rows,
        table.astype(this.dtype, copy=False),
        words.weights,
        shard.first_spans,
        known,
        padded(limits.allowed, this.dtype),
    )


def bounds_of(shard: Shard) -> Array:
    """Where pieces begin among the ordered sentences, and the end: a chart takes the cube of the
    words."""
    return even_pieces(np.diff(shard.text.indptr)[shard.order].astype(float) ** 3, PIECES)


def batches(first: int, last: int, together: int = TOGETHER) -> Iterator[tuple[int, int]]:
    """Of some sentences, those that are gone through together; ends if nobody waits any more."""
    for n in range(first, last, together):
        interrupt.check()
        yield n, min(n + together, last)
