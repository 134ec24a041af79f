"""Bundles cut into shards: what travels to threads and workers.

A shard has a list of entries of its own, those that it touches, and its blocks refer to places in
that list. So an E-step reads and counts what the shard needs and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcount.kernels.circuit import Rows
from softcount.kernels.lanes import WIDTH
from softcount.models.story.bundle import Bundle
from softcount.models.story.stack import stacked
from softcount.models.story.support import Support
from softcount.types import Array

MAX_LANES = 64
_MAX_CELLS = 1 << 22  # rows times lanes, so that the values of items in lockstep stay near the core
_STACK = 1 << 14  # rows of small circuits that are put together
_MAX_SHARDS = 16
_SHARD_COST = 4e6  # alternatives times lanes that are worth a thread's while …
_ENTRY_COST = 100  # … and as many for each entry, for every shard carries its tables


@dataclass(frozen=True)
class Lanes:
    """Items side by side: ``leaf[leaf, lane]`` are places in the shard's list of entries (padded
    to a multiple of the vector width), ``numbers[root, lane]`` the items' numbers in the data
    (-1: nobody).
    """

    leaf: Array
    numbers: Array

    def alone(self, lane: int, roots: Array) -> Lanes:
        """Some roots of one lane without its neighbours."""
        numbers = np.where(roots, self.numbers[:, lane], -1)
        return Lanes(np.repeat(self.leaf[:, lane : lane + 1], WIDTH, axis=1), numbers[:, None])


@dataclass(frozen=True)
class Block:
    """All of a shard's items that share a circuit; ``constant`` are places in the shard's list."""

    rows: Rows
    constant: Array
    lanes: tuple[Lanes, ...]


@dataclass(frozen=True)
class Share:
    """Which entries of a table a shard touches: the sorted ``places`` in the table, and where the
    shard's own list has them (``local``).

    There they stand outcome by outcome, so that what one observed word could have come from lies
    close together in memory.
    """

    table: str
    places: Array
    local: Array


@dataclass(frozen=True)
class Shard:
    """Some of the items: blocks, and table by table the entries that they touch."""

    blocks: tuple[Block, ...]
    shares: tuple[Share, ...]
    items: int
    tokens: int


def shards_by_work(bundles: Sequence[Bundle], support: Support, tokens: Array) -> list[Shard]:
    """All items in shards of about equal work; the cut depends on the data alone."""
    pieces = [piece for each in bundles for piece in _lockstep(each)]
    costs = np.array([_cost(piece) for piece in pieces])
    worthwhile = max(_SHARD_COST, _ENTRY_COST * support.size)
    n_shards = int(np.clip(costs.sum() / worthwhile, 1, min(_MAX_SHARDS, len(pieces))))
    middle = np.cumsum(costs) - costs / 2
    shard_of = np.minimum((middle / costs.sum() * n_shards).astype(int), n_shards - 1)
    return [
        _shard([pieces[i] for i in np.flatnonzero(shard_of == s)], support, tokens)
        for s in np.unique(shard_of)
    ]


def shard(bundles: Sequence[Bundle], support: Support, tokens: Array) -> Shard:
    """These items as one shard; ``tokens`` has the number of observations of every item."""
    return _shard([piece for each in bundles for piece in _lockstep(each)], support, tokens)


def _shard(pieces: Sequence[Bundle], support: Support, tokens: Array) -> Shard:
    touched = [part for each in pieces for part in (each.constant, np.unique(each.leaf))]
    entries = np.unique(np.concatenate(touched))
    entries = entries[entries < support.size]
    shares, local = _shares(entries, support)
    alike: dict[int, list[Bundle]] = {}
    for piece in pieces:
        alike.setdefault(id(piece.circuit), []).append(piece)
    blocks = _stacks([_block(same, entries, local) for same in alike.values()])
    numbers = np.concatenate([piece.numbers.ravel() for piece in pieces])
    return Shard(blocks, shares, len(numbers), int(tokens[numbers].sum()))


def _block(pieces: Sequence[Bundle], entries: Array, local: Array) -> Block:
    lanes = tuple(
        Lanes(local[np.searchsorted(entries, _padded(piece.leaf))], piece.numbers)
        for piece in pieces
    )
    constant = local[np.searchsorted(entries, pieces[0].constant)]
    return Block(pieces[0].circuit.rows, constant, lanes)


def _stacks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks, with small ones of few items put together."""
    small = [b for b in blocks if _is_small(b)]
    heights = np.cumsum([len(b.rows.kind) for b in small]) // _STACK
    piles = [[small[i] for i in np.flatnonzero(heights == h)] for h in np.unique(heights)]
    large = [b for b in blocks if not _is_small(b)]
    return (*large, *map(_stack, piles))


def _is_small(block: Block) -> bool:
    few = len(block.lanes) == 1 and block.lanes[0].numbers.shape[1] <= WIDTH
    return few and len(block.rows.kind) <= _STACK // 8


def _stack(blocks: Sequence[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    lanes = [block.lanes[0] for block in blocks]
    rows = stacked(
        [block.rows for block in blocks],
        [len(each.leaf) for each in lanes],
        [len(block.constant) for block in blocks],
    )
    width = max(each.numbers.shape[1] for each in lanes)
    numbers = [
        np.pad(each.numbers, ((0, 0), (0, width - each.numbers.shape[1])), constant_values=-1)
        for each in lanes
    ]
    together = Lanes(np.concatenate([each.leaf for each in lanes]), np.concatenate(numbers))
    return Block(rows, np.concatenate([block.constant for block in blocks]), (together,))


def _shares(entries: Array, support: Support) -> tuple[tuple[Share, ...], Array]:
    """The entries by table, and the local place of each (what is in no table: the last)."""
    local = np.arange(len(entries) + 1, dtype=np.int32)
    shares = []
    for name, share, places in support.slices(entries):
        outcomes = support.tables[name].codes[places, -1]
        local[share][np.argsort(outcomes, kind="stable")] = np.arange(share.start, share.stop)
        shares.append(Share(name, places, local[share].copy()))
    return tuple(shares), local


def _padded(leaf: Array) -> Array:
    """Columns repeated up to a multiple of the vector width."""
    n_columns = leaf.shape[1]
    padded: Array = leaf[:, np.minimum(np.arange(_vectors(n_columns) * WIDTH), n_columns - 1)]
    return padded


def _vectors(n_columns: int) -> int:
    return -(-n_columns // WIDTH)


def _cost(piece: Bundle) -> float:
    lanes = _vectors(piece.numbers.shape[1]) * WIDTH
    return float((piece.circuit.n_alternatives + piece.circuit.n_rows) * lanes)


def _lockstep(each: Bundle) -> list[Bundle]:
    """A bundle cut into pieces that run in lockstep, as equal as can be."""
    fitting = _MAX_CELLS // max(each.circuit.n_rows, 1) // WIDTH
    n_columns = each.numbers.shape[1]
    vectors = _vectors(n_columns)
    n_pieces = -(-vectors // min(MAX_LANES // WIDTH, max(fitting, 1)))
    cuts = [piece * vectors // n_pieces * WIDTH for piece in range(1, n_pieces)]
    return [each.columns(part) for part in np.split(np.arange(n_columns), cuts)]
