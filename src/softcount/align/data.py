"""Sentence pairs as kernels want them: lexicon, shards, known links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import Any, NamedTuple

import numpy as np

from softcount.align.kernels import links as kernels
from softcount.corpus.bitext import Bitext, Side, bitext
from softcount.corpus.cut import parts
from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError, shown
from softcount.kernels.pool import over_rows
from softcount.types import Array, Counts, SparseCounts

PIECE = 1 << 22
"""So many links are looked at before the words that were found are put away."""

NARROW = 1 << 16
"""With no more target words than this their numbers take two bytes."""


class Places(NamedTuple):
    """Where each source word occurs: row borders, pair, and place in the pair.

    The last row is the empty word's, which stands behind the last word of every pair.
    """

    indptr: Array
    pairs: Array
    places: Array


def places_of(side: Side, n_words: int, null: bool) -> Places:
    """The places of all words, numbered below ``n_words``; those of the empty word if wanted."""
    found = Places(*kernels.occurrences(side.tokens, side.indptr, n_words))
    if null:
        return found
    words = found.indptr[n_words]
    indptr = found.indptr.copy()
    indptr[-1] = words
    return Places(indptr, found.pairs[:words], found.places[:words])


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Target words that each source word may be translated by; the last row is the empty word's.

    ``targets`` are sorted within each row.
    """

    indptr: Array
    targets: Array
    n_targets: int

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def n_sources(self) -> int:
        """How many source words there are, the empty one left out."""
        return len(self.indptr) - 2

    def rows(self) -> Array:
        """The source word of every entry."""
        return np.repeat(np.arange(self.n_sources + 1), np.diff(self.indptr))

    def find(self, sources: Array, targets: Array) -> Array:
        """The entries of these pairs of words; −1: there is none."""
        found = np.full(len(sources), -1, np.int64)
        kernels.find(self.indptr, self.targets, sources, targets, found)
        return found

    def match(self, rows: Array, other: Lexicon, columns: Array) -> Array:
        """The entries of a smaller lexicon here; −1: there is none.

        Its row r is row ``rows[r]`` here (−1: none), its target f is ``columns[f]``, all sorted.
        """
        found = np.full(len(other), -1, np.int64)
        kernels.match(self.indptr, self.targets, rows, other.indptr, columns[other.targets], found)
        return found

    def with_pairs(self, sources: Array, targets: Array, n_sources: int, n_targets: int) -> Lexicon:
        """This lexicon with more entries, and with more words."""
        rows = np.concatenate([self.rows(), sources])
        rows[: len(self)][self.rows() == self.n_sources] = n_sources  # the empty word stays last
        both = np.sort(rows * n_targets + np.concatenate([self.targets, targets]), kind="stable")
        both = both[np.append(True, both[1:] != both[:-1])] if len(both) else both
        lengths = np.bincount(both // n_targets, minlength=n_sources + 1)
        return Lexicon(_borders(lengths), narrow(both % n_targets, n_targets), n_targets)


def lexicon_of(places: Places, target: Side, n_targets: int, threads: int = 1) -> Lexicon:
    """All pairs of words that occur together."""
    n_rows = len(places.indptr) - 1
    lengths = np.zeros(n_rows, np.int64)
    links = kernels.links_before(*places[:2], target.indptr)
    wanted = np.arange(PIECE, int(links[-1]), PIECE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(links, wanted), [n_rows]]))

    def piece(first: int, last: int) -> Array:
        out = np.empty(links[last] - links[first] + 1, np.int32)
        used = kernels.cooccurring(
            first, last, *places[:2], target.tokens, target.indptr, n_targets, out, lengths
        )
        return narrow(out[:used], n_targets)

    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(lambda cut: piece(*cut), pairwise(cuts.tolist())))
    return Lexicon(_borders(lengths), np.concatenate(pieces), n_targets)


def narrow(targets: Array, n_targets: int) -> Array:
    """Numbers of target words in as few bytes as they need; always a copy."""
    return targets.astype(np.uint16 if n_targets <= NARROW else np.int32)


def _borders(lengths: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


# Sentence pairs as the E-steps of alignment see them.


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


# Links that are known for some pairs.


class Known(NamedTuple):
    """Known links (i, j) of pair n: those from ``indptr[n]`` to ``indptr[n + 1]``, sorted by j.

    A target word that has any comes from one of these source words; of the others nothing is known.
    """

    indptr: Array
    sources: Array
    targets: Array

    def select(self, numbers: Array) -> Known:
        """Those of some pairs."""
        lengths = np.diff(self.indptr)[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        chosen = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Known(indptr, self.sources[chosen], self.targets[chosen])

    def flipped(self) -> Known:
        """With source and target exchanged."""
        pairs = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        order = np.lexsort((self.targets, self.sources, pairs))
        return Known(self.indptr, self.targets[order], self.sources[order])


def known_links(given: Sequence[Any] | Known | None, pairs: Bitext) -> Known | None:
    """Known links, as users give them: for each pair None or (i, j) links.

    >>> from softcount.corpus.bitext import bitext
    >>> pairs = bitext([("the house", "das haus"), ("a", "b")])
    >>> known_links([[(1, 1)], None], pairs)
    Known(indptr=array([0, 1, 1]), sources=array([1], dtype=int32), targets=array([1], dtype=int32))
    """
    if given is None or isinstance(given, Known):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DataError(f"the links are {shown(given)}", "give one list of (i, j) a pair")
    if len(given) != len(pairs):
        raise DataError(
            f"there are links for {len(given)} pairs, and {len(pairs)} pairs",
            "give one list of links a pair; None or an empty one where nothing is known",
        )
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    each = [
        _checked(links, pairs.name(n), *size)
        for n, (links, size) in enumerate(zip(given, sizes, strict=True))
    ]
    if not any(each):
        return None
    flat = np.array([link for links in each for link in links], np.int32).reshape(-1, 2)
    indptr = np.concatenate([[0], np.cumsum([len(links) for links in each])])
    return Known(indptr.astype(np.int64), flat[:, 0].copy(), flat[:, 1].copy())


def _checked(links: Any, name: str, l: int, m: int) -> list[tuple[int, int]]:
    if links is not None and (not isinstance(links, Iterable) or isinstance(links, str | bytes)):
        raise DataError(f"{name} has the links {shown(links)}", "give a list of (i, j), or None")
    found = set()
    for link in () if links is None else links:
        i, j = _places(link, name)
        if not (0 <= i < l and 0 <= j < m):
            raise DataError(
                f"{name} has the link ({i}, {j}), but {l} source and {m} target words",
                "links are (source place, target place), counted from 0",
            )
        found.add((i, j))
    return sorted(found, key=lambda link: (link[1], link[0]))


def _places(link: Any, name: str) -> tuple[int, int]:
    try:
        i, j = (index(place) for place in link)
    except (TypeError, ValueError):
        raise DataError(f"{name} has the link {shown(link)}", "a link is (i, j)") from None
    return i, j


# From sentence pairs as users give them to those that a model learns from or aligns.


CHUNK = 1 << 12
"""So many new pairs are looked at together."""

Words = tuple[Vocabulary, Vocabulary]
"""Source words and target words that have their numbers."""


def new_pairs(data: Any, words: Words, lowercase: bool) -> Bitext:
    """Pairs in the numbers of a model's words; words that it does not know have higher ones."""
    return bitext(data, lowercase=lowercase, like=words)


def chunks(pairs: Bitext, lexicon: Lexicon, null: bool) -> Iterator[Shard]:
    """All pairs without an empty side, some at a time."""
    full = np.flatnonzero(pairs.source.lengths * pairs.target.lengths)
    for first in range(0, len(full), CHUNK):
        yield part_shard(pairs, full[first : first + CHUNK], lexicon, null)
