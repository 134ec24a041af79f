"""Sentence pairs as the E-steps of alignment see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softcount.corpus.bitext import Bitext, Side
from softcount.corpus.cut import parts
from softcount.kernels import links as kernels
from softcount.kernels.pool import over_rows
from softcount.models.alignment.known import Known
from softcount.models.alignment.lexicon import Lexicon, Places, lexicon_of, places_of
from softcount.types import Array, Counts, SparseCounts

BLOCK = 1 << 23
"""So many links are written down at a time, and at least one pair's."""

UNSEEN = 1e-9
"""The least p(target word | source word) in new pairs, also of words never seen together."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Some sentence pairs, and the part of the lexicon that they need.

    ``numbers``  the pairs' numbers in the corpus
    ``source``   its words are rows of ``lexicon``
    ``entries``  where this lexicon's entries are in the model's (−1: nowhere); None: they are the
                 same
    ``known``    links that are given; None: none are
    ``new``      whether the pairs are new to the model: whatever it makes of them is possible
    """

    numbers: Array
    source: Side
    target: Side
    lexicon: Lexicon
    places: Places
    entries: Array | None = None
    known: Known | None = None
    new: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """Source and target lengths."""
        return self.source.lengths, self.target.lengths

    @cached_property
    def offsets(self) -> Array:
        """Where each pair's (l + 1) × m links begin."""
        l, m = self.sizes
        return np.concatenate([np.zeros(1, np.int64), np.cumsum((l + 1) * m)])

    def own(self, table: Any, exact: bool = False) -> Array:
        """The shard's part of a table of translations.

        ``exact``  what the table has is taken as it is, even if it is less than `UNSEEN`: for those
                   who ask what the table itself makes of the pairs
        """
        if self.entries is None:
            return np.ascontiguousarray(table)  # at the start, one number for all
        values: Array = np.asarray(table[np.maximum(self.entries, 0)])
        if not self.new:
            return values
        least = values if exact else np.maximum(values, UNSEEN)
        return np.where(self.entries >= 0, least, UNSEEN).astype(values.dtype)

    def n_unseen(self, counts: Array) -> float:
        """Counts of this shard's entries that the model's lexicon has not, added up."""
        return 0.0 if self.entries is None else float(counts[self.entries < 0].sum())

    def whole(self, counts: Array, size: int) -> Counts:
        """Counts of the shard's entries, as counts of the model's."""
        if self.entries is None:
            return counts
        seen = self.entries >= 0
        index = self.entries[seen]
        order = np.argsort(index, kind="stable")  # rows may come in another order
        return SparseCounts(index[order], counts[seen][order], size)

    def blocks(self) -> Iterator[Block]:
        """All pairs, so many at a time as `BLOCK` allows."""
        first = 0
        while first < len(self):
            most = self.offsets[first] + BLOCK
            last = int(np.searchsorted(self.offsets, most, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            yield Block(self, first, last)
            first = last

    @property
    def _text(self) -> tuple[Any, ...]:
        side = self.target
        return (*self.places, side.tokens, side.indptr, self.offsets, self.lexicon.n_targets)


class Room:
    """Memory for the links of one block after the other; fresh memory each time is slow."""

    def __init__(self, dtype: Any) -> None:
        self._memory = np.empty(0, dtype)

    def of(self, size: int) -> Array:
        """So many zeros; what was there before is gone."""
        if len(self._memory) < size:
            self._memory = np.empty(size, self._memory.dtype)
        room: Array = self._memory[:size]
        room[:] = 0.0
        return room


@dataclass(frozen=True, eq=False)
class Block:
    """Neighbouring pairs of a shard, whose links are worked on together."""

    shard: Shard
    first: int
    last: int

    @property
    def span(self) -> tuple[int, int]:
        return self.first, self.last

    @cached_property
    def offsets(self) -> Array:
        """Where each pair's links begin in this block."""
        borders = self.shard.offsets[self.first : self.last + 1]
        begins: Array = borders - borders[0]
        return begins

    @cached_property
    def sides(self) -> tuple[Array, Array]:
        """The borders of the sentences on either side."""
        shard, cut = self.shard, slice(self.first, self.last + 1)
        return shard.source.indptr[cut], shard.target.indptr[cut]

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """Source and target lengths."""
        l, m = (np.diff(borders) for borders in self.sides)
        return l, m

    @property
    def numbers(self) -> Array:
        """The pairs' numbers in the corpus."""
        return self.shard.numbers[self.first : self.last]

    def gather(self, table: Array, room: Room, threads: int = 1) -> Array:
        """t(f_j | e_i) of all links; those that are known to be wrong are 0."""
        shard, links = self.shard, room.of(int(self.offsets[-1]))
        lexicon = (shard.lexicon.indptr, shard.lexicon.targets, table)
        where = shard.places.indptr
        over_rows(kernels.gather, where, threads, *self.span, *lexicon, *shard._text, links)
        if shard.known is not None:
            kernels.restrict(*self.span, *shard.known, *self.sizes, self.offsets, links)
        return links

    def scatter(self, links: Array, counts: Array, threads: int = 1) -> None:
        """Add numbers of all links to the counts of the entries that they belong to."""
        shard = self.shard
        lexicon = (shard.lexicon.indptr, shard.lexicon.targets)
        where = shard.places.indptr
        over_rows(
            kernels.scatter, where, threads, *self.span, *lexicon, *shard._text, links, counts
        )

    def matrices(self, links: Array) -> Iterator[Array]:
        """The links of every pair, (l + 1, m); the last row is that of the empty word."""
        each = zip(self.offsets[:-1], self.offsets[1:], *self.sizes, strict=True)
        for begin, end, l, m in each:
            yield links[begin:end].reshape(l + 1, m)


def part_shard(
    pairs: Bitext,
    numbers: Array,
    lexicon: Lexicon,
    null: bool,
    known: Known | None = None,
    new: bool = True,
) -> Shard:
    """Some pairs, with what they need of a lexicon; their words may be new to it."""
    some = pairs.select(numbers)
    source, rows = _renumbered(some.source)
    target, columns = _renumbered(some.target)
    places = places_of(source, len(rows), null)
    own = lexicon_of(places, target, len(columns))
    rows = np.append(np.where(rows < lexicon.n_sources, rows, -1), lexicon.n_sources)
    entries = lexicon.match(rows, own, columns)
    chosen = None if known is None else known.select(numbers)
    return Shard(numbers, source, target, own, places, entries, chosen, new)


def _renumbered(side: Side) -> tuple[Side, Array]:
    """Sentences with numbers for their own words alone, and which words these are."""
    words, tokens = np.unique(side.tokens, return_inverse=True)
    return Side([], tokens.astype(np.int32), side.indptr), words


class Pairs:
    """The corpus of an aligner: sentence pairs, and links that are known.

    Pairs with an empty side say nothing of alignments, and are left out.

    ``more``     source and target words that are in the lexicon even if they never meet
    ``lexicon``  that of the model, if it is not to be made of these pairs
    """

    def __init__(
        self,
        pairs: Bitext,
        null: bool,
        known: Known | None = None,
        more: tuple[Array, Array] | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.pairs, self.null, self.known = pairs, null, known
        self.more, self._lexicon = more, lexicon
        self.numbers = np.flatnonzero(pairs.source.lengths * pairs.target.lengths)

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def everything(self) -> Shard:
        """All pairs in one shard."""
        if self._lexicon is not None:
            return self._part(self.numbers)
        all_full = len(self.numbers) == len(self.pairs)
        pairs = self.pairs if all_full else self.pairs.select(self.numbers)
        known = self.known and self.known.select(self.numbers)
        places = places_of(pairs.source, len(pairs.source.words), self.null)
        lexicon = lexicon_of(places, pairs.target, len(pairs.target.words))
        if self.more is not None:
            lexicon = lexicon.with_pairs(*self.more, lexicon.n_sources, lexicon.n_targets)
        return Shard(self.numbers, pairs.source, pairs.target, lexicon, places, None, known)

    def _part(self, numbers: Array) -> Shard:
        new = self._lexicon is not None
        return part_shard(self.pairs, numbers, self.lexicon, self.null, self.known, new)

    @property
    def lexicon(self) -> Lexicon:
        return self.everything.lexicon if self._lexicon is None else self._lexicon

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        """One shard of all pairs, whose kernels use the threads; or mini-batches."""
        if batch_size is None:
            return [self.everything]
        cut = parts(len(self), len(self), batch_size, seed)
        return [self._part(self.numbers[some]) for some in cut]

    def name(self, number: int) -> str:
        return self.pairs.name(number)
