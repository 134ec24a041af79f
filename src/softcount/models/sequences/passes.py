"""Passes over the sentences of a shard: in packs, by matrix products, or by lists of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.kernels import few_states, listed, listed_paths, packs
from softcount.kernels.blas import single_threaded
from softcount.kernels.pool import in_turn
from softcount.models.sequences.shards import Shard
from softcount.types import Array

MANY, PIECES = 1 << 18, 4
"""From so many tokens on, work is shared out among so many, whatever the threads: each has counts
of its own, which are added up in one order."""
SEGMENT = 1 << 22
"""A matrix has at most so many numbers: longer sentences are gone through in segments."""

Work = Callable[[int, int, packs.Tally], None]


def is_packed(shard: Shard, order: int) -> bool:
    """Whether whole matrices are multiplied."""
    return order == 1 and not shard.is_sparse


def posteriors(
    shard: Shard,
    moves: listed.Moves,
    emitted: packs.Emitted,
    dtype: Any = np.float64,
    threads: int = 1,
    into: Array | None = None,
) -> packs.Tally:
    """Expected counts; those of states are added up by rows of emissions, or by ``into``."""
    rows = emitted.rows if into is None else into
    size = len(emitted.table) if into is None else len(into)
    tally = _run(shard, moves, emitted, dtype, threads, True, (size, rows))
    if _fell_short(tally.logs, dtype):
        tally = _run(shard, moves, emitted, np.float64, threads, True, (size, rows))
    tally.moves[...] *= moves.table
    return tally


def _fell_short(found: Array, dtype: Any) -> bool:
    """Whether what seems impossible may be too small for so few bits."""
    return np.dtype(dtype).itemsize < 8 and bool(np.isneginf(found).any())


def logs(
    shard: Shard,
    moves: listed.Moves,
    emitted: packs.Emitted,
    dtype: Any = np.float64,
    threads: int = 1,
) -> Array:
    """log p of each sentence."""
    nowhere = (0, emitted.rows)
    found = _run(shard, moves, emitted, dtype, threads, False, nowhere).logs
    if _fell_short(found, dtype):
        found = _run(shard, moves, emitted, np.float64, threads, False, nowhere).logs
    return found


def _run(
    shard: Shard,
    moves: listed.Moves,
    emitted: packs.Emitted,
    dtype: Any,
    threads: int,
    counting: bool,
    into: tuple[int, Array],
) -> packs.Tally:
    kind = _packed if is_packed(shard, moves.order) else _listed
    work, bounds = kind(shard, moves, emitted, dtype, counting)
    found = np.zeros(len(shard))
    own: dict[int, packs.Tally] = {}

    def piece(number: int) -> None:
        own[number] = _tally(moves, *into, found)
        work(bounds[number], bounds[number + 1], own[number])

    with single_threaded():
        in_turn(piece, len(bounds) - 1, threads)
    total = own.pop(0)
    for number in range(1, len(bounds) - 1):  # in one order, whoever was done first
        _add(total, own.pop(number))
    return total


def _tally(moves: listed.Moves, size: int, rows: Array, found: Array) -> packs.Tally:
    n_states = len(moves.start)
    sums = (np.zeros(n_states), np.zeros(moves.table.shape), np.zeros(len(moves.stop)))
    return packs.Tally(np.zeros((size, n_states)), rows, found, *sums)


def _add(total: packs.Tally, more: packs.Tally) -> None:
    for name in ("shares", "start", "moves", "stop"):
        into: Array = getattr(total, name)
        into += getattr(more, name)


def _pieces(sizes: Array) -> Array:
    """Where pieces of about equal size begin, and the end."""
    if not len(sizes):
        return np.zeros(2, np.int64)  # one piece with nothing in it
    ends = np.cumsum(sizes)
    n = PIECES if ends[-1] >= MANY else 1
    wanted = np.linspace(0, ends[-1], n + 1)[1:-1] if n > 1 else np.zeros(0)
    return np.unique(np.concatenate([[0], np.searchsorted(ends, wanted), [len(sizes)]]))


def _packed(
    shard: Shard, moves: listed.Moves, emitted: packs.Emitted, dtype: Any, counting: bool
) -> tuple[Work, Array]:
    table = moves.table.astype(dtype)
    start, stop = moves.start.astype(dtype), moves.stop.astype(dtype)
    chain = packs.Chain(start, table, np.ascontiguousarray(table.T), stop)
    given = emitted._replace(table=emitted.table.astype(dtype, copy=False))
    most = max(SEGMENT // len(start), 1)

    def work(first: int, last: int, tally: packs.Tally) -> None:
        text = (shard.packs, chain, given, shard.weights)
        packs.gone_through(first, last, *text, most, tally, counting)

    own = shard.packs
    rows = np.diff(own.begins[np.append(own.positions[:-1], -1)]) if len(own.begins) else []
    return work, _pieces(np.asarray(rows))


def _listed(
    shard: Shard, moves: listed.Moves, emitted: packs.Emitted, dtype: Any, counting: bool
) -> tuple[Work, Array]:
    kernel = few_states.gone_through if moves.order == 1 else listed.gone_through

    def work(first: int, last: int, tally: packs.Tally) -> None:
        text = (shard.indptr, moves, emitted, shard.states.lists, shard.weights)
        kernel(first, last, *text, tally, counting)

    return work, _pieces(np.diff(shard.indptr))


def drawn(
    shard: Shard,
    moves: listed.Moves,
    emitted: packs.Emitted,
    stream: int,
    samples: int,
    threads: int,
) -> tuple[Array, Array]:
    """Paths (samples, tokens) drawn from their posterior, and log p of each sentence."""
    paths, found = np.zeros((samples, shard.n_tokens), np.int32), np.zeros(len(shard))
    text = (shard.indptr, moves, emitted, shard.states.lists, shard.numbers, np.uint64(stream))

    def work(first: int, last: int) -> None:
        listed_paths.draw(first, last, *text, found, paths)

    _in_pieces(work, shard, threads)
    return paths, found


def best(
    shard: Shard, moves: listed.Moves, emitted: packs.Emitted, threads: int
) -> tuple[Array, Array]:
    """The best path of each sentence, (1, tokens), and log p of it and the sentence."""
    paths, found = np.zeros((1, shard.n_tokens), np.int32), np.zeros(len(shard))
    text = (shard.indptr, moves, emitted, shard.states.lists)

    def work(first: int, last: int) -> None:
        listed_paths.best(first, last, *text, found, paths[0])

    _in_pieces(work, shard, threads)
    return paths, found


def _in_pieces(work: Callable[[int, int], None], shard: Shard, threads: int) -> None:
    bounds = _pieces(np.diff(shard.indptr))
    in_turn(lambda piece: work(bounds[piece], bounds[piece + 1]), len(bounds) - 1, threads)


def counted(
    shard: Shard, moves: listed.Moves, emitted: packs.Emitted, paths: Array, found: Array
) -> packs.Tally:
    """What paths add up to."""
    tally = _tally(moves, len(emitted.table), emitted.rows, found)
    n_states = len(moves.start)
    listed_paths.count_paths(paths, shard.indptr, shard.weights, n_states, moves.order, tally)
    return tally
