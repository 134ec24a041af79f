"""Ways to go forward and backward: by products of whole matrices, or by lists of states.

A way knows its text, its tables and how its work is shared out; every piece has counts of its own.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from softcount.kernels import few_states, listed, pack_paths, packs
from softcount.kernels.packs import Tally
from softcount.kernels.pool import even_pieces
from softcount.models.sequences.shards import Kinds, Shard
from softcount.types import Array

MANY, PIECES = 1 << 18, 4
"""From so many tokens on, work is shared out among so many, whatever the threads: each has counts
of its own, which are added up in one order."""
SEGMENT = 1 << 22
"""A matrix has at most so many numbers: longer sentences are gone through in segments."""


class Way(Protocol):
    """``bounds`` are those of the pieces that the work is shared out in."""

    bounds: Array

    def nothing(self, logs: Array) -> Tally:
        """Room for what is counted, log p of each sentence in ``logs``."""

    def go(self, first: int, last: int, tally: Tally, counting: bool) -> None:
        """From one bound to another."""

    def whole(self, tally: Tally) -> Tally:
        """What was counted, (rows, states) and (states, states), whatever was room for it."""


def way_of(
    shard: Shard, moves: listed.Moves, emitted: listed.Emitted, dtype: Any, of_tokens: bool
) -> Way:
    """The one that suits; posteriors are added up by rows of emissions, or ``of_tokens``."""
    if is_packed(shard, moves):
        return Packed(shard, moves, emitted, dtype, of_tokens)
    return (FewStates if moves.order == 1 else Listed)(shard, moves, emitted, of_tokens)


def is_packed(shard: Shard, moves: listed.Moves) -> bool:
    """Whether whole matrices are multiplied."""
    return moves.order == 1 and not shard.is_sparse


def pieces(sizes: Array) -> Array:
    """Where pieces of about equal size begin, and the end; few tokens are one piece."""
    return even_pieces(sizes, PIECES if sizes.sum() >= MANY else 1)


def room(shape: tuple[int, ...], into: Array, logs: Array, moves: tuple[int, int]) -> Tally:
    """Zeros for posteriors, and for as many rows of moves."""
    sums = (np.zeros(moves[1]), np.zeros(moves), np.zeros(moves[0]))
    return Tally(np.zeros(shape), into, logs, *sums)


class Packed:
    """Sentences in lockstep: see `softcount.kernels.packs`."""

    def __init__(
        self,
        shard: Shard,
        moves: listed.Moves,
        emitted: listed.Emitted,
        dtype: Any,
        of_tokens: bool,
    ) -> None:
        self.shard, self.n_states = shard, len(moves.start)
        self.most = max(SEGMENT // self.n_states, 1)
        tables = (moves.start, moves.table, moves.table.T, moves.stop)
        self.chain = packs.Chain(*(packs.padded(table, dtype) for table in tables))
        table, rows = emitted.table, shard.rows
        if shard.sets.any():
            kinds = shard.kinds
            table, rows = table[kinds.rows], kinds.of
            table[:, : self.n_states] *= shard.states.allowed[kinds.sets]
        text = shard.packs.tokens
        self.emitted = packs.Emitted(table.astype(dtype, copy=False), rows[text])
        self.size = shard.n_tokens if of_tokens else len(emitted.table)
        self.into = text if of_tokens else shard.rows[text]
        own = shard.packs
        begins = own.begins[np.append(own.positions[:-1], -1)] if len(own.begins) else []
        self.bounds = pieces(np.diff(begins))

    def nothing(self, logs: Array) -> Tally:
        wide = self.chain.moves.shape[1]
        return room((self.size, wide), self.into, logs, (wide, wide))

    def go(self, first: int, last: int, tally: Tally, counting: bool) -> None:
        text = (self.shard.packs, self.chain, self.emitted, self.shard.weights)
        packs.gone_through(first, last, *text, self.most, tally, counting)

    def trace(
        self, first: int, last: int, best: bool, stream: int, logs: Array, paths: Array
    ) -> None:
        """Best paths, or such as are drawn."""
        text = (self.shard.packs, self.chain, self.emitted, self.most)
        how = (best, self.shard.numbers, np.uint64(stream))
        pack_paths.traced(first, last, *text, *how, logs, paths)

    def whole(self, tally: Tally) -> Tally:
        k = self.n_states
        return tally._replace(
            shares=tally.shares[:, :k],
            start=tally.start[:k],
            moves=tally.moves[:k, :k],
            stop=tally.stop[:k],
        )


class FewStates:
    """Order 1 by lists of states: see `softcount.kernels.few_states`."""

    def __init__(
        self, shard: Shard, moves: listed.Moves, emitted: listed.Emitted, of_tokens: bool
    ) -> None:
        self.shard, self.moves, self.size = shard, moves, len(emitted.table)
        kinds = shard.kinds
        if of_tokens:  # each is a kind of its own
            self.size = shard.n_tokens
            kinds = Kinds(np.arange(self.size), shard.rows, shard.sets, shard.states)
        cells = kinds.cells
        self.targets = cells.kinds if of_tokens else cells.rows
        chances = emitted.table[cells.rows, cells.states]
        self.cells = few_states.Cells(kinds.of, cells.indptr, cells.states, chances)
        self.bounds = pieces(np.diff(shard.indptr))

    def nothing(self, logs: Array) -> Tally:
        return room((len(self.cells.states),), self.cells.kinds, logs, self.moves.table.shape)

    def go(self, first: int, last: int, tally: Tally, counting: bool) -> None:
        text = (self.shard.indptr, self.moves, self.cells, self.shard.weights)
        few_states.gone_through(first, last, *text, tally, counting)

    def whole(self, tally: Tally) -> Tally:
        k = len(self.moves.start)
        places = self.cells.states * self.size + self.targets
        sums = np.bincount(places, tally.shares, minlength=self.size * k)
        return tally._replace(shares=sums.reshape(k, self.size).T)


class Listed:
    """Any order, by lists of states: see `softcount.kernels.listed`."""

    def __init__(
        self, shard: Shard, moves: listed.Moves, emitted: listed.Emitted, of_tokens: bool
    ) -> None:
        self.shard, self.moves, self.emitted = shard, moves, emitted
        self.size = shard.n_tokens if of_tokens else len(emitted.table)
        self.into = np.arange(shard.n_tokens) if of_tokens else shard.rows
        self.bounds = pieces(np.diff(shard.indptr))

    def nothing(self, logs: Array) -> Tally:
        shape = (self.size, len(self.moves.start))
        return room(shape, self.into, logs, self.moves.table.shape)

    def go(self, first: int, last: int, tally: Tally, counting: bool) -> None:
        text = (self.shard.indptr, self.moves, self.emitted, self.shard.states.lists)
        listed.gone_through(first, last, *text, self.shard.weights, tally, counting)

    def whole(self, tally: Tally) -> Tally:
        return tally
