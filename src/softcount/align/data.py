"""Sentence pairs as alignment models see them: lexicon, known links and translations, shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from operator import index
from typing import Any, NamedTuple

import numpy as np

from softcount.align import kernels
from softcount.align.kernels import Occurrences, ShardArrays
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import BoolArray, Counts, FloatArray, IntArray, SparseCounts
from softcount.kernels.threads import over_rows
from softcount.text.bitext import Bitext
from softcount.text.sequences import Side
from softcount.text.shards import split_items
from softcount.text.vocabulary import Vocabulary

Vocabularies = tuple[Vocabulary, Vocabulary]
"""Source words and target words, with their numbers."""

PIECE = 1 << 22
"""The number of links from which the lexicon is collected at a time."""

NARROW = 1 << 16
"""With no more target words than this, their numbers take two bytes."""

BLOCK = 1 << 23
"""The number of links that are written down at a time, and at least those of one pair."""

CHUNK = 1 << 12
"""The number of new pairs that are aligned together."""

UNSEEN = 1e-9
"""The least p(target word | source word) in new pairs, also of words never seen together."""

FORMS = 'write {"house": "maison"}, {"house": ["maison", "chambre"]} or {"house": {"maison": 0.8}}'
"""The forms that a dictionary may have."""


def cumulate(lengths: IntArray) -> IntArray:
    """Where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


# Words that occur together


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
        keys, wanted = (
            self.rows() * self.n_targets + self.targets,
            sources * self.n_targets + targets,
        )
        at = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -1)[at] == wanted, at, -1)

    def match(self, rows: IntArray, other: PairLexicon, columns: IntArray) -> IntArray:
        """Where the entries of a smaller lexicon are in this one; −1 where there is none.

        Row r of the other one is row ``rows[r]`` here (−1: none), its target word f is
        ``columns[f]``; both are sorted.
        """
        found = np.full(len(other), -1, np.int64)
        own_targets = columns[other.targets]
        kernels.match_entries(self.indptr, self.targets, rows, other.indptr, own_targets, found)
        return found

    def with_pairs(self, sources: IntArray, targets: IntArray) -> PairLexicon:
        """This lexicon with more entries, of the same words."""
        rows = np.concatenate([self.rows(), sources])
        keys = np.unique(rows * self.n_targets + np.concatenate([self.targets, targets]))
        rows, columns = np.divmod(keys, self.n_targets)
        lengths = np.bincount(rows, minlength=self.n_sources + 1)
        return PairLexicon(cumulate(lengths), narrow(columns, self.n_targets), self.n_targets)


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


# Links that are known for some pairs


class LinkConstraints(NamedTuple):
    """Links (i, j) that are known for some pairs.

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
    flat: list[tuple[int, int]] = []
    lengths = []
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    for n, (links, (l, m)) in enumerate(zip(given, sizes, strict=True)):
        some = () if links is None else links
        if not isinstance(some, Iterable) or isinstance(some, str | bytes):
            raise DataError(
                f"{pairs.name(n)} has the links {brief(links)}", "give a list of (i, j), or None"
            )
        known = set()
        for link in some:
            try:
                i, j = (index(position) for position in link)
            except (TypeError, ValueError):
                raise DataError(
                    f"{pairs.name(n)} has the link {brief(link)}", "a link is (i, j)"
                ) from None
            if not (0 <= i < l and 0 <= j < m):
                raise DataError(
                    f"{pairs.name(n)} has the link ({i}, {j}), but {l} source and {m} target words",
                    "links are (source position, target position), counted from 0",
                )
            known.add((i, j))
        flat += sorted(known, key=lambda link: (link[1], link[0]))
        lengths.append(len(known))
    if not flat:
        return None
    sources, targets = np.array(flat, np.int32).T
    return LinkConstraints(cumulate(np.array(lengths)), sources.copy(), targets.copy())


# Translations that are known: a bilingual dictionary


@dataclass(frozen=True, eq=False)
class DictionaryConstraints:
    """What a dictionary says of a table of translations, by its rows and by its entries.

    ``counts``  (entries,) pseudo-counts; None: there are none
    ``rows``    (rows,) source words that have no translations but the dictionary's; None: all are
                free
    ``mask``    (entries,) False where an entry is ruled out; None: all are possible
    ``fixed``   (rows,) the rows whose probabilities are given, and (entries,) these probabilities;
                None: none are given
    """

    counts: FloatArray | None = None
    rows: BoolArray | None = None
    mask: BoolArray | None = None
    fixed: tuple[BoolArray, FloatArray] | None = None

    def start(self, table: FloatArray, indptr: IntArray) -> FloatArray:
        """A start that agrees with it."""
        if self.rows is None or self.mask is None:
            return table
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        free = np.where(self.mask, table, 0.0)
        totals = np.bincount(rows, free, len(indptr) - 1)
        new = np.where(self.rows[rows], free / np.maximum(totals[rows], 1e-300), table)
        if self.fixed is not None:
            frozen, values = self.fixed
            new = np.where(frozen[rows], values, new)
        return new.astype(table.dtype)


@dataclass(frozen=True)
class Dictionary:
    """Translations of some source words, with weights; a weight of None leaves it to learning.

    >>> Dictionary.of({"house": "maison", "of": ["de", "du"]}).entries
    {'house': {'maison': None}, 'of': {'de': None, 'du': None}}
    """

    entries: Mapping[str, Mapping[str, float | None]]

    @classmethod
    def of(cls, given: Any, lowercase: bool = False) -> Dictionary:
        """From a mapping, from (source word, target word) pairs, or from None: no entries."""
        case = str.lower if lowercase else str
        entries: dict[str, dict[str, float | None]] = {}
        if isinstance(given, Mapping):
            for word, known in given.items():
                weights: dict[str, float | None] = {}
                if isinstance(known, str):
                    weights = {known: None}
                elif isinstance(known, Mapping):
                    if all(isinstance(w, Real) and 0.0 < float(w) < np.inf for w in known.values()):
                        weights = {str(target): float(w) for target, w in known.items()}
                elif isinstance(known, Iterable):
                    weights = {str(target): None for target in known}
                if not weights:
                    raise LearnerError(
                        f"the dictionary gives {brief(word)} as {brief(known)}", FORMS
                    )
                row = entries.setdefault(case(str(word)), {})
                row |= {case(target): weight for target, weight in weights.items()}
        elif given is not None:
            if not isinstance(given, Iterable) or isinstance(given, Iterator):  # read several times
                raise LearnerError(f"the dictionary is {brief(given)}", FORMS)
            for entry in given:
                if not isinstance(entry, list | tuple) or len(entry) != 2:
                    raise LearnerError(f"the dictionary has the entry {brief(entry)}", FORMS)
                source, target = (case(str(word)) for word in entry)
                entries.setdefault(source, {})[target] = None
        if "" in entries or any("" in known for known in entries.values()):
            raise LearnerError("the dictionary has an empty word", FORMS)
        return cls(entries)

    def reversed(self) -> dict[str, list[str]]:
        """From target words to source words, as a setting.

        Weights are those of one direction, and are lost.
        """
        found: dict[str, list[str]] = {}
        for source, known in self.entries.items():
            for target in known:
                found.setdefault(target, []).append(source)
        return found

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """All its source words, and all its target words."""
        targets = {target: None for known in self.entries.values() for target in known}
        return list(self.entries), list(targets)

    def number_entries(self, words: Vocabularies) -> tuple[IntArray, IntArray, FloatArray]:
        """Source and target words as numbers, and the weights (NaN: none)."""
        if not self.entries:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        sources, targets = (side.numbers for side in words)
        unknown = [word for word in self.words[0] if word not in sources]
        unknown += [word for word in self.words[1] if word not in targets]
        if unknown:
            raise LearnerError(
                f"the dictionary has the word {brief(unknown[0])}, which is new to the model",
                "fit it, or partial_fit",
            )
        each = [
            (sources[source], targets[target], np.nan if weight is None else weight)
            for source, known in self.entries.items()
            for target, weight in known.items()
        ]
        rows, columns, weights = np.array(each, dtype=float).T
        return rows.astype(np.int64), columns.astype(np.int64), weights

    def constrain(
        self, words: Vocabularies, lexicon: PairLexicon, strength: float | None
    ) -> DictionaryConstraints:
        """What it says of a table whose lexicon has all its entries.

        ``strength``  the pseudo-counts of each entry; None: nothing else is possible
        """
        if not self.entries:
            return DictionaryConstraints()
        sources, targets, weights = self.number_entries(words)
        where = lexicon.find(sources, targets)
        if (where < 0).any():
            raise LearnerError(
                "the dictionary has entries that the model was not made with",
                "fit it, or partial_fit",
            )
        if strength is not None:
            counts = np.zeros(len(lexicon))
            counts[where] = strength * np.where(np.isnan(weights), 1.0, weights)
            return DictionaryConstraints(counts=counts)
        rows = lexicon.rows()
        given_rows = np.zeros(lexicon.n_sources + 1, bool)
        given_rows[sources] = True
        mask = ~given_rows[rows]
        mask[where] = True
        given = ~np.isnan(weights)
        if not given.any():
            return DictionaryConstraints(rows=given_rows, mask=mask)
        frozen = np.zeros(lexicon.n_sources + 1, bool)
        frozen[sources[given]] = True
        values = np.zeros(len(lexicon))
        values[where[given]] = weights[given]
        totals = np.bincount(rows, values, lexicon.n_sources + 1)
        values /= np.where(totals[rows] > 0.0, totals[rows], 1.0)
        return DictionaryConstraints(rows=given_rows, mask=mask, fixed=(frozen, values))


# Shards, and blocks of their links


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
    ``constraints``  links that are known; None: none are
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
    def arrays(self) -> ShardArrays:
        """What kernels need of it."""
        l, m = self.sizes
        lexicon, target = self.lexicon, self.target
        rows = lexicon.indptr, lexicon.targets
        offsets = cumulate((l + 1) * m)
        return ShardArrays(
            *rows, *self.occurrences, target.tokens, target.indptr, offsets, lexicon.n_targets
        )

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
        first, offsets = 0, self.arrays.offsets
        while first < len(self):
            last = int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            yield LinkBlock(self, first, last)
            first = last


class LinkBlock:
    """Neighbouring pairs ``first`` to ``last`` of a shard, whose links are worked on together.

    ``span``     where the pairs are in the shard
    ``numbers``  (pairs,) their numbers in the corpus
    ``borders``  where their source and their target sentences begin, each (pairs + 1,)
    ``sizes``    source lengths l and target lengths m, each (pairs,)
    ``offsets``  (pairs + 1,) where the links of each pair begin in this block
    """

    def __init__(self, shard: BitextShard, first: int, last: int) -> None:
        self.shard, self.first, self.last = shard, first, last
        self.span, cut = slice(first, last), slice(first, last + 1)
        self.numbers = shard.numbers[self.span]
        self.borders = shard.source.indptr[cut], shard.target.indptr[cut]
        self.sizes = np.diff(self.borders[0]), np.diff(self.borders[1])
        self.offsets: IntArray = shard.arrays.offsets[cut] - shard.arrays.offsets[first]

    def gather(self, table: FloatArray, links: FloatArray, threads: int = 1) -> None:
        """t(f_j | e_i) of all links, which are 0 before; those that are ruled out stay 0."""
        shard = self.shard
        given = self.first, self.last, table, shard.arrays, links
        over_rows(kernels.gather, shard.arrays.occurs, threads, *given)
        if shard.constraints is not None:
            kernels.apply_constraints(
                self.first, self.last, shard.constraints, self.sizes, self.offsets, links
            )

    def scatter(self, links: FloatArray, counts: FloatArray, threads: int = 1) -> None:
        """Add numbers of all links to the counts of the entries that they belong to."""
        arrays = self.shard.arrays
        given = self.first, self.last, arrays, links, counts
        over_rows(kernels.scatter, arrays.occurs, threads, *given)

    def matrices(self, links: FloatArray) -> Iterator[FloatArray]:
        """The links of every pair, (l + 1, m); the last row is that of the empty word."""
        each = zip(self.offsets[:-1], self.offsets[1:], *self.sizes, strict=True)
        for begin, end, l, m in each:
            yield links[begin:end].reshape(l + 1, m)


class BitextCorpus:
    """The corpus of an aligner: sentence pairs, and links that are known.

    Pairs with an empty side say nothing about alignments, and are left out.

    ``pairs``        all pairs, those with an empty side included
    ``null``         whether target words may come from the empty word
    ``constraints``  links that are known; None: none are
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
        source, target = pairs.source, pairs.target
        occurrences = kernels.find_occurrences(
            source.tokens, source.indptr, len(source.words), self.null
        )
        lexicon = make_lexicon(occurrences, target, len(target.words))
        if self.more is not None:
            lexicon = lexicon.with_pairs(*self.more)
        return BitextShard(self.numbers, source, target, lexicon, occurrences, None, constraints)

    def _part(self, numbers: IntArray) -> BitextShard:
        """Some pairs, with what they need of the lexicon; their words may be new to it."""

        def renumber(side: Side) -> tuple[Side, IntArray]:
            """Sentences with numbers for their own words alone, and which words these are."""
            words, tokens = np.unique(side.tokens, return_inverse=True)
            return Side([], tokens.astype(np.int32), side.indptr), words

        some, lexicon = self.pairs.select(numbers), self.lexicon
        source, rows = renumber(some.source)
        target, columns = renumber(some.target)
        occurrences = kernels.find_occurrences(source.tokens, source.indptr, len(rows), self.null)
        own = make_lexicon(occurrences, target, len(columns))
        rows = np.append(np.where(rows < lexicon.n_sources, rows, -1), lexicon.n_sources)
        entries = lexicon.match(rows, own, columns)
        constraints = self.constraints and self.constraints.select(numbers)
        new = self._lexicon is not None
        return BitextShard(numbers, source, target, own, occurrences, entries, constraints, new)

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

    def chunks(self) -> Iterator[BitextShard]:
        """All pairs in their order, `CHUNK` at a time."""
        for first in range(0, len(self), CHUNK):
            yield self._part(self.numbers[first : first + CHUNK])

    def name(self, number: int) -> str:
        """A pair as messages call it."""
        return self.pairs.name(number)


# Both directions


class BidirectionalShard(NamedTuple):
    """The same pairs, seen from either side."""

    forward: BitextShard
    backward: BitextShard

    def backward_blocks(self) -> Iterator[LinkBlock]:
        """Blocks of the same pairs as the forward direction's."""
        for block in self.forward.blocks():
            yield LinkBlock(self.backward, block.first, block.last)


@dataclass(frozen=True, eq=False)
class BidirectionalCorpus:
    """The corpus of both directions."""

    forward: BitextCorpus
    backward: BitextCorpus

    def __len__(self) -> int:
        return len(self.forward)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[BidirectionalShard]:
        both = (side.shards(batch_size, seed) for side in (self.forward, self.backward))
        return [BidirectionalShard(*each) for each in zip(*both, strict=True)]

    def name(self, number: int) -> str:
        return self.forward.name(number)
