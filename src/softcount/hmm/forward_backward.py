"""Forward–backward, best paths and draws over the sentences of a shard.

Ways to go forward and backward: by products of whole matrices, or by lists of states.

A way knows its text, its tables and how its work is shared out; every piece has counts of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from softcount.hmm.data import Kinds, Shard
from softcount.hmm.kernels import few_states, packs
from softcount.hmm.kernels import lists as listed
from softcount.hmm.kernels import lists as listed_paths
from softcount.hmm.kernels import packs as pack_paths
from softcount.hmm.kernels.packs import Tally
from softcount.kernels.pool import even_pieces, in_turn
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
    """Sentences in lockstep: see `softcount.hmm.kernels.packs`."""

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
    """Order 1 by lists of states: see `softcount.hmm.kernels.few_states`."""

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
    """Any order, by lists of states: see `softcount.hmm.kernels.lists`."""

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


# Passes over the sentences of a shard: expected counts, likelihoods, best paths, draws.


def posteriors(
    shard: Shard,
    moves: listed.Moves,
    emitted: listed.Emitted,
    dtype: Any = np.float64,
    threads: int = 1,
    of_tokens: bool = False,
) -> packs.Tally:
    """Expected counts; those of states are added up by rows of emissions, or ``of_tokens``."""
    tally = _run(shard, moves, emitted, dtype, threads, of_tokens, True)
    tally.moves[...] *= moves.table
    return tally


def logs(
    shard: Shard,
    moves: listed.Moves,
    emitted: listed.Emitted,
    dtype: Any = np.float64,
    threads: int = 1,
) -> Array:
    """log p of each sentence."""
    return _run(shard, moves, emitted, dtype, threads, False, False).logs


def _run(
    shard: Shard,
    moves: listed.Moves,
    emitted: listed.Emitted,
    dtype: Any,
    threads: int,
    of_tokens: bool,
    counting: bool,
) -> packs.Tally:
    way = way_of(shard, moves, emitted, dtype, of_tokens)
    found = np.zeros(len(shard))
    own: dict[int, packs.Tally] = {}

    def piece(number: int) -> None:
        own[number] = way.nothing(found)
        way.go(way.bounds[number], way.bounds[number + 1], own[number], counting)

    in_turn(piece, len(way.bounds) - 1, threads)
    total = own.pop(0)
    for number in range(1, len(way.bounds) - 1):  # in one order, whoever was done first
        _add(total, own.pop(number))
    if np.dtype(dtype).itemsize < 8 and not (np.isfinite(found).all() and _is_sound(total)):
        return _run(shard, moves, emitted, np.float64, threads, of_tokens, counting)
    return way.whole(total)


def _is_sound(tally: packs.Tally) -> bool:
    """Whether no number was too large for so few bits: it would have spoilt the first tokens'."""
    return bool(np.isfinite(tally.start).all())


def _add(total: packs.Tally, more: packs.Tally) -> None:
    for name in ("shares", "start", "moves", "stop"):
        into: Array = getattr(total, name)
        into += getattr(more, name)


def drawn(
    shard: Shard,
    moves: listed.Moves,
    emitted: listed.Emitted,
    stream: int,
    samples: int,
    threads: int,
) -> tuple[Array, Array]:
    """Paths (samples, tokens) drawn from their posterior, and log p of each sentence."""
    paths, found = np.zeros((samples, shard.n_tokens), np.int32), np.zeros(len(shard))
    if is_packed(shard, moves):
        _trace(shard, moves, emitted, threads, False, stream, found, paths)
        return paths, found
    text = (shard.indptr, moves, emitted, shard.states.lists, shard.numbers, np.uint64(stream))

    def work(first: int, last: int) -> None:
        listed_paths.draw(first, last, *text, found, paths)

    _in_pieces(work, pieces(np.diff(shard.indptr)), threads)
    return paths, found


def best(
    shard: Shard, moves: listed.Moves, emitted: listed.Emitted, threads: int
) -> tuple[Array, Array]:
    """The best path of each sentence, (1, tokens), and log p of it and the sentence."""
    paths, found = np.zeros((1, shard.n_tokens), np.int32), np.zeros(len(shard))
    if is_packed(shard, moves):
        _trace(shard, moves, emitted, threads, True, 0, found, paths)
        return paths, found
    text = (shard.indptr, moves, emitted, shard.states.lists)

    def work(first: int, last: int) -> None:
        listed_paths.best(first, last, *text, found, paths[0])

    _in_pieces(work, pieces(np.diff(shard.indptr)), threads)
    return paths, found


def _trace(
    shard: Shard, moves: listed.Moves, emitted: listed.Emitted, threads: int, *how: Any
) -> None:
    """Paths through packs: see `Packed.trace`."""
    way = Packed(shard, moves, emitted, np.float64, of_tokens=False)
    _in_pieces(lambda first, last: way.trace(first, last, *how), way.bounds, threads)


def _in_pieces(work: Callable[[int, int], None], bounds: Array, threads: int) -> None:
    in_turn(lambda piece: work(bounds[piece], bounds[piece + 1]), len(bounds) - 1, threads)


def counted(
    shard: Shard, moves: listed.Moves, emitted: listed.Emitted, paths: Array, found: Array
) -> packs.Tally:
    """What paths add up to."""
    n_states = len(moves.start)
    shape = (len(emitted.table), n_states)
    tally = room(shape, emitted.rows, found, moves.table.shape)
    listed_paths.count_paths(paths, shard.indptr, shard.weights, n_states, moves.order, tally)
    return tally
