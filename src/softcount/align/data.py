"""Sentence pairs as alignment models see them: occurrences, lexicon, shards, link constraints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from softcount.align.kernels import links as kernels
from softcount.core.errors import DataError, brief
from softcount.core.types import Counts, FloatArray, IntArray, SparseCounts
from softcount.kernels.threads import over_rows
from softcount.text.bitext import Bitext, as_bitext
from softcount.text.sequences import Side
from softcount.text.shards import split_items
from softcount.text.vocabulary import Vocabulary

Vocabularies = tuple[Vocabulary, Vocabulary]
"""Source words and target words, with their numbers."""

PIECE = 1 << 22
"""The lexicon is collected from so many links at a time."""

NARROW = 1 << 16
"""With no more target words than this, their numbers take two bytes."""

BLOCK = 1 << 23
"""So many links are written down at a time, and at least those of one pair."""

CHUNK = 1 << 12
"""So many new pairs are aligned together."""

UNSEEN = 1e-9
"""The least p(target word | source word) in new pairs, also of words never seen together."""


def cumulate(lengths: IntArray) -> IntArray:
    """Where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


# Words that occur together


class Occurrences(NamedTuple):
    """Where each source word occurs, in the order of pairs.

    The last row is that of the empty word, which stands behind the last word of every pair.

    ``indptr``     (source words + 2,) int64: word e occurs at entries ``indptr[e]`` to
                   ``indptr[e + 1]`` of the other two
    ``pairs``      (occurrences,) int32: the number of the pair
    ``positions``  (occurrences,) int32: the position in the source sentence
    """

    indptr: IntArray
    pairs: IntArray
    positions: IntArray


def find_occurrences(side: Side, n_words: int, null: bool) -> Occurrences:
    """The occurrences of all words, numbered below ``n_words``; with ``null`` of the empty word."""
    found = Occurrences(*kernels.index_occurrences(side.tokens, side.indptr, n_words))
    if null:
        return found
    n = found.indptr[n_words]
    indptr = found.indptr.copy()
    indptr[-1] = n
    return Occurrences(indptr, found.pairs[:n], found.positions[:n])


@dataclass(frozen=True, eq=False)
class PairLexicon:
    """The target words that each source word may become: rows of a sparse table.

    ``indptr``     (source words + 2,) int64: row e has entries ``indptr[e]`` to ``indptr[e + 1]``;
                   the last row is that of the empty word
    ``targets``    (entries,) uint16 or int32: target words, sorted within each row
    ``n_targets``  the number of target words
    """

    indptr: IntArray
    targets: IntArray
    n_targets: int

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def n_sources(self) -> int:
        """The number of source words, without the empty word."""
        return len(self.indptr) - 2

    def rows(self) -> IntArray:
        """The source word of every entry."""
        return np.repeat(np.arange(self.n_sources + 1), np.diff(self.indptr))

    def find(self, sources: IntArray, targets: IntArray) -> IntArray:
        """The entries of these pairs of words; −1 where there is none."""
        found = np.full(len(sources), -1, np.int64)
        kernels.find_entries(self.indptr, self.targets, sources, targets, found)
        return found

    def match(self, rows: IntArray, other: PairLexicon, columns: IntArray) -> IntArray:
        """Where the entries of a smaller lexicon are in this one; −1 where there is none.

        Row r of the other one is row ``rows[r]`` here (−1: none), its target word f is
        ``columns[f]``; both are sorted.
        """
        found = np.full(len(other), -1, np.int64)
        own_targets = columns[other.targets]
        kernels.match_entries(self.indptr, self.targets, rows, other.indptr, own_targets, found)
        return found

    def with_pairs(
        self, sources: IntArray, targets: IntArray, n_sources: int, n_targets: int
    ) -> PairLexicon:
        """This lexicon with more entries, and with more words."""
        rows = np.concatenate([self.rows(), sources])
        rows[: len(self)][self.rows() == self.n_sources] = n_sources  # the empty word stays last
        both = np.sort(rows * n_targets + np.concatenate([self.targets, targets]), kind="stable")
        both = both[np.append(True, both[1:] != both[:-1])] if len(both) else both
        lengths = np.bincount(both // n_targets, minlength=n_sources + 1)
        return PairLexicon(cumulate(lengths), narrow(both % n_targets, n_targets), n_targets)


def make_lexicon(
    occurrences: Occurrences, target: Side, n_targets: int, threads: int = 1
) -> PairLexicon:
    """All pairs of words that occur together."""
    n_rows = len(occurrences.indptr) - 1
    lengths = np.zeros(n_rows, np.int64)
    rows = occurrences.indptr, occurrences.pairs
    links = kernels.count_links_before(*rows, target.indptr)
    wanted = np.arange(PIECE, int(links[-1]), PIECE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(links, wanted), [n_rows]]))

    def collect(first: int, last: int) -> IntArray:
        out = np.empty(links[last] - links[first] + 1, np.int32)
        n = kernels.find_cooccurring(
            first, last, *rows, target.tokens, target.indptr, n_targets, out, lengths
        )
        return narrow(out[:n], n_targets)

    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(lambda cut: collect(*cut), pairwise(cuts.tolist())))
    return PairLexicon(cumulate(lengths), np.concatenate(pieces), n_targets)


def narrow(targets: IntArray, n_targets: int) -> IntArray:
    """Numbers of target words in as few bytes as they need; always a copy."""
    return targets.astype(np.uint16 if n_targets <= NARROW else np.int32)


# Links that are given for some pairs


class LinkConstraints(NamedTuple):
    """Links (i, j) that are given for some pairs.

    A target word that has any comes from one of these source words; the others are free.

    ``indptr``   (pairs + 1,) int64: pair n has entries ``indptr[n]`` to ``indptr[n + 1]``
    ``sources``  (links,) int32: source positions i
    ``targets``  (links,) int32: target positions j, sorted within each pair
    """

    indptr: IntArray
    sources: IntArray
    targets: IntArray

    def select(self, numbers: IntArray) -> LinkConstraints:
        """Those of some pairs."""
        lengths = np.diff(self.indptr)[numbers]
        indptr = cumulate(lengths)
        some = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return LinkConstraints(indptr, self.sources[some], self.targets[some])

    def reversed(self) -> LinkConstraints:
        """With source and target exchanged."""
        pairs = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        order = np.lexsort((self.targets, self.sources, pairs))
        return LinkConstraints(self.indptr, self.targets[order], self.sources[order])


def make_constraints(
    given: Sequence[Any] | LinkConstraints | None, pairs: Bitext
) -> LinkConstraints | None:
    """Links as users give them: for each pair None or a list of (i, j).

    >>> from softcount.text.bitext import as_bitext
    >>> pairs = as_bitext([("the house", "das haus"), ("a", "b")])
    >>> make_constraints([[(1, 1)], None], pairs).indptr
    array([0, 1, 1])
    """
    if given is None or isinstance(given, LinkConstraints):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DataError(f"the links are {brief(given)}", "give one list of (i, j) for each pair")
    if len(given) != len(pairs):
        raise DataError(
            f"there are links for {len(given)} pairs, and {len(pairs)} pairs",
            "give one list of links for each pair; None or an empty one where nothing is known",
        )
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    each = [
        _check_links(links, pairs.name(n), *size)
        for n, (links, size) in enumerate(zip(given, sizes, strict=True))
    ]
    if not any(each):
        return None
    flat = np.array([link for links in each for link in links], np.int32).reshape(-1, 2)
    indptr = np.concatenate([[0], np.cumsum([len(links) for links in each])])
    return LinkConstraints(indptr.astype(np.int64), flat[:, 0].copy(), flat[:, 1].copy())


def _check_links(links: Any, name: str, l: int, m: int) -> list[tuple[int, int]]:
    if links is not None and (not isinstance(links, Iterable) or isinstance(links, str | bytes)):
        raise DataError(f"{name} has the links {brief(links)}", "give a list of (i, j), or None")
    found = set()
    for link in () if links is None else links:
        try:
            i, j = (index(position) for position in link)
        except (TypeError, ValueError):
            raise DataError(f"{name} has the link {brief(link)}", "a link is (i, j)") from None
        if not (0 <= i < l and 0 <= j < m):
            raise DataError(
                f"{name} has the link ({i}, {j}), but {l} source and {m} target words",
                "links are (source position, target position), counted from 0",
            )
        found.add((i, j))
    return sorted(found, key=lambda link: (link[1], link[0]))


# Shards, and blocks of their links


class LinkWorkspace:
    """Memory for the links of one block after the other; fresh memory each time is slow."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._memory: FloatArray = np.empty(0, dtype)

    def zeros(self, size: int) -> FloatArray:
        """So many zeros; what was there before is gone."""
        if len(self._memory) < size:
            self._memory = np.empty(size, self._memory.dtype)
        links = self._memory[:size]
        links[:] = 0.0
        return links


@dataclass(frozen=True, eq=False)
class BitextShard:
    """Some sentence pairs, and the part of the lexicon that they need.

    The links of a pair are a matrix (l + 1, m): l source words and the empty word, which comes
    last, by m target words. All matrices stand one after the other in one flat array.

    ``numbers``      (pairs,) the numbers of the pairs in the corpus
    ``source``       the source sentences; their words are rows of ``lexicon``
    ``target``       the target sentences
    ``lexicon``      pairs of words that occur together here
    ``occurrences``  where each source word occurs
    ``entries``      (entries,) where the entries of this lexicon are in that of the model (−1:
                     nowhere); None: both are the same
    ``constraints``  links that are given; None: none are
    ``new``          whether the pairs are new to the model: whatever it makes of them is possible
    """

    numbers: IntArray
    source: Side
    target: Side
    lexicon: PairLexicon
    occurrences: Occurrences
    entries: IntArray | None = None
    constraints: LinkConstraints | None = None
    new: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Source lengths l and target lengths m, each (pairs,)."""
        return self.source.lengths, self.target.lengths

    @cached_property
    def offsets(self) -> IntArray:
        """Where the (l + 1) × m links of each pair begin, (pairs + 1,)."""
        l, m = self.sizes
        return cumulate((l + 1) * m)

    def take_entries(self, table: Any, exact: bool = False) -> FloatArray:
        """This shard's part of a table of translations, one number for each entry.

        ``exact``  take what the table has as it is, even if it is less than `UNSEEN`: for those who
                   ask what the table itself makes of the pairs
        """
        if self.entries is None:
            return np.ascontiguousarray(table)  # at the start, one number stands for all
        values: FloatArray = np.asarray(table[np.maximum(self.entries, 0)])
        if not self.new:
            return values
        least = values if exact else np.maximum(values, UNSEEN)
        return np.where(self.entries >= 0, least, UNSEEN).astype(values.dtype)

    def count_unseen(self, counts: FloatArray) -> float:
        """The counts of entries that the model's lexicon does not have, added up."""
        return 0.0 if self.entries is None else float(counts[self.entries < 0].sum())

    def model_counts(self, counts: FloatArray, size: int) -> Counts:
        """Counts of this shard's entries as counts of the model's, of which there are ``size``."""
        if self.entries is None:
            return counts
        seen = self.entries >= 0
        entries = self.entries[seen]
        order = np.argsort(entries, kind="stable")  # rows may come in another order
        return SparseCounts(entries[order], counts[seen][order], size)

    def blocks(self) -> Iterator[LinkBlock]:
        """All pairs, as many at a time as `BLOCK` allows."""
        first = 0
        while first < len(self):
            most = self.offsets[first] + BLOCK
            last = int(np.searchsorted(self.offsets, most, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            yield LinkBlock(self, first, last)
            first = last


@dataclass(frozen=True, eq=False)
class LinkBlock:
    """Neighbouring pairs ``first`` to ``last`` of a shard, whose links are worked on together."""

    shard: BitextShard
    first: int
    last: int

    @property
    def span(self) -> slice:
        """Where the pairs are in the shard."""
        return slice(self.first, self.last)

    @cached_property
    def offsets(self) -> IntArray:
        """Where the links of each pair begin in this block, (pairs + 1,)."""
        borders = self.shard.offsets[self.first : self.last + 1]
        begins: IntArray = borders - borders[0]
        return begins

    @cached_property
    def sides(self) -> tuple[IntArray, IntArray]:
        """The borders of the source and of the target sentences, each (pairs + 1,)."""
        shard, cut = self.shard, slice(self.first, self.last + 1)
        return shard.source.indptr[cut], shard.target.indptr[cut]

    @cached_property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Source lengths l and target lengths m, each (pairs,)."""
        l, m = (np.diff(borders) for borders in self.sides)
        return l, m

    @property
    def numbers(self) -> IntArray:
        """The numbers of the pairs in the corpus."""
        return self.shard.numbers[self.span]

    def gather(self, table: FloatArray, workspace: LinkWorkspace, threads: int = 1) -> FloatArray:
        """t(f_j | e_i) of all links; those that the constraints rule out are 0."""
        shard, lexicon, links = (
            self.shard,
            self.shard.lexicon,
            workspace.zeros(int(self.offsets[-1])),
        )
        over_rows(
            kernels.gather,
            shard.occurrences.indptr,
            threads,
            self.first,
            self.last,
            lexicon.indptr,
            lexicon.targets,
            table,
            *shard.occurrences,
            shard.target.tokens,
            shard.target.indptr,
            shard.offsets,
            lexicon.n_targets,
            links,
        )
        if shard.constraints is not None:
            kernels.apply_constraints(
                self.first, self.last, *shard.constraints, *self.sizes, self.offsets, links
            )
        return links

    def scatter(self, links: FloatArray, counts: FloatArray, threads: int = 1) -> None:
        """Add numbers of all links to the counts of the entries that they belong to."""
        shard, lexicon = self.shard, self.shard.lexicon
        over_rows(
            kernels.scatter,
            shard.occurrences.indptr,
            threads,
            self.first,
            self.last,
            lexicon.indptr,
            lexicon.targets,
            *shard.occurrences,
            shard.target.tokens,
            shard.target.indptr,
            shard.offsets,
            lexicon.n_targets,
            links,
            counts,
        )

    def matrices(self, links: FloatArray) -> Iterator[FloatArray]:
        """The links of every pair, (l + 1, m); the last row is that of the empty word."""
        each = zip(self.offsets[:-1], self.offsets[1:], *self.sizes, strict=True)
        for begin, end, l, m in each:
            yield links[begin:end].reshape(l + 1, m)


def make_shard(
    pairs: Bitext,
    numbers: IntArray,
    lexicon: PairLexicon,
    null: bool,
    constraints: LinkConstraints | None = None,
    new: bool = True,
) -> BitextShard:
    """Some pairs, with what they need of a lexicon; their words may be new to it."""
    some = pairs.select(numbers)
    source, rows = _renumber(some.source)
    target, columns = _renumber(some.target)
    occurrences = find_occurrences(source, len(rows), null)
    own = make_lexicon(occurrences, target, len(columns))
    rows = np.append(np.where(rows < lexicon.n_sources, rows, -1), lexicon.n_sources)
    entries = lexicon.match(rows, own, columns)
    given = None if constraints is None else constraints.select(numbers)
    return BitextShard(numbers, source, target, own, occurrences, entries, given, new)


def _renumber(side: Side) -> tuple[Side, IntArray]:
    """Sentences with numbers for their own words alone, and which words these are."""
    words, tokens = np.unique(side.tokens, return_inverse=True)
    return Side([], tokens.astype(np.int32), side.indptr), words


class BitextCorpus:
    """The corpus of an aligner: sentence pairs, and links that are given.

    Pairs with an empty side say nothing about alignments, and are left out.

    ``pairs``        all pairs, those with an empty side included
    ``null``         whether target words may come from the empty word
    ``constraints``  links that are given; None: none are
    ``more``         source and target words that have entries in the lexicon even if they never
                     occur together
    ``lexicon``      that of the model, if it is not to be made of these pairs
    """

    def __init__(
        self,
        pairs: Bitext,
        null: bool,
        constraints: LinkConstraints | None = None,
        more: tuple[IntArray, IntArray] | None = None,
        lexicon: PairLexicon | None = None,
    ) -> None:
        self.pairs, self.null, self.constraints = pairs, null, constraints
        self.more, self._lexicon = more, lexicon
        self.numbers = np.flatnonzero(pairs.source.lengths * pairs.target.lengths)

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def everything(self) -> BitextShard:
        """All pairs in one shard."""
        if self._lexicon is not None:
            return self._part(self.numbers)
        all_full = len(self.numbers) == len(self.pairs)
        pairs = self.pairs if all_full else self.pairs.select(self.numbers)
        constraints = self.constraints and self.constraints.select(self.numbers)
        occurrences = find_occurrences(pairs.source, len(pairs.source.words), self.null)
        lexicon = make_lexicon(occurrences, pairs.target, len(pairs.target.words))
        if self.more is not None:
            lexicon = lexicon.with_pairs(*self.more, lexicon.n_sources, lexicon.n_targets)
        return BitextShard(
            self.numbers, pairs.source, pairs.target, lexicon, occurrences, None, constraints
        )

    def _part(self, numbers: IntArray) -> BitextShard:
        new = self._lexicon is not None
        return make_shard(self.pairs, numbers, self.lexicon, self.null, self.constraints, new)

    @property
    def lexicon(self) -> PairLexicon:
        """The model's."""
        return self.everything.lexicon if self._lexicon is None else self._lexicon

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[BitextShard]:
        """One shard of all pairs, whose kernels use the threads; or mini-batches."""
        if batch_size is None:
            return [self.everything]
        cut = split_items(len(self), len(self), batch_size, seed)
        return [self._part(self.numbers[some]) for some in cut]

    def name(self, number: int) -> str:
        """A pair as messages call it."""
        return self.pairs.name(number)


def number_pairs(data: Any, words: Vocabularies, lowercase: bool) -> Bitext:
    """Pairs in the numbers of a model's words; words that it does not know have higher ones."""
    return as_bitext(data, lowercase=lowercase, like=words)


def cut_chunks(pairs: Bitext, lexicon: PairLexicon, null: bool) -> Iterator[BitextShard]:
    """All pairs without an empty side, `CHUNK` at a time."""
    full = np.flatnonzero(pairs.source.lengths * pairs.target.lengths)
    for first in range(0, len(full), CHUNK):
        yield make_shard(pairs, full[first : first + CHUNK], lexicon, null)
