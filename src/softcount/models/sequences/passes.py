"""Passes over the sentences of a shard: expected counts, likelihoods, best paths, draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.kernels import listed, listed_paths, packs
from softcount.kernels.pool import in_turn
from softcount.models.sequences.shards import Shard
from softcount.models.sequences.ways import Packed, is_packed, pieces, room, way_of
from softcount.types import Array


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
