"""Data structures of the alignment models: lexicon, constraints, and shards of sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from numbers import Real
from operator import index
from typing import Any, NamedTuple

import numpy as np

from softcount.align import kernels
from softcount.align.kernels import Occurrences, SentenceShapes, ShardArrays
from softcount.core import pages, spill
from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import BoolArray, Counts, FloatArray, IntArray, SparseCounts
from softcount.kernels import sparse
from softcount.kernels.threads import over_rows
from softcount.text.bitext import Bitext
from softcount.text.disk import DiskArray, ShardsOnAccess
from softcount.text.sequences import Side
from softcount.text.shards import cut_by_work, split_items
from softcount.text.vocabulary import Vocabulary

Vocabularies = tuple[Vocabulary, Vocabulary]
"""The source and the target vocabulary."""

CUT = 1 << 25
"""The maximum number of possible links of a shard, unless a single pair has more."""

PIECE = 1 << 22
"""The lexicon is collected from this many possible links at a time."""

NARROW = 1 << 16
"""With at most this many target words, their indices are stored in two bytes."""

BLOCK = 1 << 21
"""The maximum number of links in a block, unless a single pair has more.

Whatever the block, most rows of the table are read for it: smaller blocks take less memory, and
more time.
"""

PART = 1 << 18
"""Words are counted this many at a time, or as many as the vocabulary has: counting copies them."""

CHUNK = 1 << 12
"""New pairs are aligned this many at a time."""

UNSEEN = 1e-9
"""Lower bound on p(target word | source word) in new pairs, also for words that never co-occur."""

FORMS = 'write {"house": "maison"}, {"house": ["maison", "chambre"]} or {"house": {"maison": 0.8}}'
"""A hint that shows the valid forms of a dictionary."""


def cumulate(lengths: IntArray) -> IntArray:
    """Return where consecutive parts of these lengths begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def find_occurrences(tokens: IntArray, borders: IntArray, n_words: int, null: bool) -> Occurrences:
    """Find the occurrences of each word; with ``null``, the empty word occurs in every pair."""
    n = len(tokens) + null * (len(borders) - 1)
    found = Occurrences(
        np.zeros(n_words + 2, np.int64), pages.zeros(n, np.int32), pages.zeros(n, np.int32)
    )
    kernels.fill_occurrences(tokens, borders, null, found)
    return found


# Co-occurring words


@dataclass(frozen=True, eq=False)
class PairLexicon:
    """The candidate translations of each source word: the sparsity pattern of t(f | e).

    ``indptr``     (source words + 2,) int64: row e has entries ``indptr[e]`` to ``indptr[e + 1]``;
                   the last row is that of the empty word
    ``targets``    (entries,) uint16 or int32: target words, sorted within each row
    ``n_targets``  the size of the target vocabulary
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
        """Return the source word of each entry."""
        return np.repeat(np.arange(self.n_sources + 1), np.diff(self.indptr))

    def find(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Find the entries of these pairs of words; −1 where there is none."""
        keys, wanted = (
            self.rows() * self.n_targets + self.targets,
            sources * self.n_targets + targets,
        )
        at = np.searchsorted(keys, wanted)
        return np.where(np.append(keys, -1)[at] == wanted, at, -1)

    def match(self, rows: IntArray, other: PairLexicon, columns: IntArray) -> IntArray:
        """Find the entries of a smaller lexicon in this one; −1 where there is none.

        Row r of the other lexicon is row ``rows[r]`` of this one (−1: missing), and its target
        word f is ``columns[f]`` here; both lexicons are sorted.
        """
        return self._match(rows, other.indptr, columns[other.targets])

    def locate(self, part: PairLexicon) -> IntArray:
        """Find the entries of a part of this lexicon, with the same numbers for all words."""
        return self._match(np.arange(self.n_sources + 1), part.indptr, part.targets)

    def _match(self, rows: IntArray, indptr: IntArray, targets: IntArray) -> IntArray:
        small = len(self) <= np.iinfo(np.int32).max  # half the memory, in every shard
        matches: IntArray = np.full(len(targets), -1, np.int32 if small else np.int64)
        entries = self.indptr, self.targets, self.n_targets
        kernels.match_entries(*entries, rows, indptr, targets, matches)
        return matches

    def restrict(
        self, occurrences: Occurrences, target: Side, threads: int = 1
    ) -> tuple[PairLexicon, IntArray]:
        """Return the part of this lexicon that some pairs need, and the positions of its entries.

        The lexicon must have all words that co-occur in these pairs.

        ``occurrences``  where each source word occurs in them
        ``target``       their target sentences
        """
        small = len(self) <= np.iinfo(np.int32).max
        lengths = np.zeros(self.n_sources + 1, np.int64)
        wanted = np.arange(PIECE, len(self), PIECE)
        cuts = np.unique([0, *np.searchsorted(self.indptr, wanted), self.n_sources + 1])

        def find(first: int, last: int) -> IntArray:
            most = int(self.indptr[last] - self.indptr[first]) + 1
            out: IntArray = pages.zeros(most, np.int32 if small else np.int64)
            rows = (self.indptr, self.targets), occurrences.indptr, occurrences.pairs
            sentences = target.tokens, target.indptr, self.n_targets
            n = kernels.find_used(first, last, *rows, *sentences, out, lengths)
            return out[:n].copy()

        with ThreadPoolExecutor(threads) as pool:
            entries = _join(list(pool.map(lambda cut: find(*cut), pairwise(cuts.tolist()))))
        targets = np.empty(len(entries), self.targets.dtype)
        sparse.take(self.targets, entries, targets)
        return PairLexicon(cumulate(lengths), targets, self.n_targets), entries

    def transposed(self, null: bool) -> PairLexicon:
        """Return the same pairs of words as entries of the other direction.

        ``null``  whether there is an empty word: it co-occurs with all words of complete pairs
        """
        rows = self.n_targets + 1
        lengths = np.zeros(rows, np.int64)
        own = self.indptr[: self.n_sources + 1], self.targets
        kernels.count_targets(*own, lengths)
        present = np.flatnonzero(np.diff(self.indptr)[:-1])  # source words that occur
        lengths[-1] = len(present) if null else 0
        indptr = cumulate(lengths)
        narrowest = np.uint16 if self.n_sources <= NARROW else np.int32
        sources: IntArray = pages.zeros(int(indptr[-1]), narrowest)
        kernels.transpose(*own, indptr[:-1].copy(), sources)
        if null:
            sources[indptr[-2] :] = present
        return PairLexicon(indptr, sources, self.n_sources)

    def unite(self, other: PairLexicon) -> PairLexicon:
        """Return the entries of both lexicons, which have the same numbers for all words."""
        lengths = np.zeros(self.n_sources + 1, np.int64)
        targets = np.empty(len(self) + len(other), self.targets.dtype)
        rows = (self.indptr, self.targets, other.indptr, other.targets)
        n = kernels.unite_rows(*rows, targets, lengths)
        return PairLexicon(cumulate(lengths), targets[:n].copy(), self.n_targets)

    def with_pairs(self, sources: IntArray, targets: IntArray) -> PairLexicon:
        """Return this lexicon with additional entries; the vocabulary stays the same."""
        rows = np.concatenate([self.rows(), sources])
        keys = np.unique(rows * self.n_targets + np.concatenate([self.targets, targets]))
        rows, columns = np.divmod(keys, self.n_targets)
        lengths = np.bincount(rows, minlength=self.n_sources + 1)
        return PairLexicon(cumulate(lengths), narrow(columns, self.n_targets), self.n_targets)


def make_lexicon(
    occurrences: Occurrences, target: Side, n_targets: int, threads: int = 1
) -> PairLexicon:
    """Collect all pairs of words that co-occur in a sentence pair."""
    n_rows = len(occurrences.indptr) - 1
    lengths = np.zeros(n_rows, np.int64)
    rows = occurrences.indptr, occurrences.pairs
    links = kernels.count_links_before(*rows, target.indptr)
    wanted = np.arange(PIECE, int(links[-1]), PIECE)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(links, wanted), [n_rows]]))

    def collect(first: int, last: int) -> IntArray:
        out = pages.zeros(int(links[last] - links[first]) + 1, np.int32)
        n = kernels.find_cooccurring(
            first, last, *rows, target.tokens, target.indptr, n_targets, out, lengths
        )
        return narrow(out[:n], n_targets)

    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(lambda cut: collect(*cut), pairwise(cuts.tolist())))
    return PairLexicon(cumulate(lengths), _join(pieces), n_targets)


def _join(pieces: list[IntArray]) -> IntArray:
    """Concatenate pieces, each of which is forgotten as soon as it has been copied."""
    whole: IntArray = pages.zeros(sum(map(len, pieces)), pieces[0].dtype)
    at = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[at - len(piece) : at] = piece
        at -= len(piece)
    return whole


def unite_lexicons(parts: Iterable[PairLexicon]) -> PairLexicon:
    """Unite several lexicons, two by two, as they come: few are needed at a time."""
    unions: list[tuple[int, PairLexicon]] = []  # how many lexicons each is of, ever fewer
    for part in parts:
        n, union = 1, part
        while unions and unions[-1][0] == n:
            n, union = 2 * n, unions.pop()[1].unite(union)
        unions.append((n, union))
    union = unions.pop()[1]
    while unions:
        union = unions.pop()[1].unite(union)
    return union


def count_words(side: Side) -> IntArray:
    """Count how often each word of the vocabulary occurs, (words,)."""
    counts = np.zeros(len(side.words), np.int64)
    most = max(PART, len(counts))
    for first in range(0, len(side.tokens), most):
        counts += np.bincount(side.tokens[first : first + most], minlength=len(counts))
    return counts


def narrow(targets: IntArray, n_targets: int) -> IntArray:
    """Copy target-word indices to the narrowest sufficient integer type."""
    return targets.astype(np.uint16 if n_targets <= NARROW else np.int32)


# Known links (partial supervision)


class LinkConstraints(NamedTuple):
    """Known links (i, j) of some pairs.

    A target word with known links is aligned to one of these; other words are unconstrained.

    ``indptr``   (pairs + 1,) int64: pair n has entries ``indptr[n]`` to ``indptr[n + 1]``
    ``sources``  (links,) int32: source positions i
    ``targets``  (links,) int32: target positions j, sorted within each pair
    """

    indptr: IntArray
    sources: IntArray
    targets: IntArray

    def select(self, numbers: IntArray) -> LinkConstraints:
        """Return the constraints of the pairs ``numbers``."""
        lengths = np.diff(self.indptr)[numbers]
        indptr = cumulate(lengths)
        entries = np.repeat(self.indptr[numbers] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return LinkConstraints(indptr, self.sources[entries], self.targets[entries])

    def cut(self, first: int, last: int) -> LinkConstraints:
        """Return the constraints of consecutive pairs."""
        borders = self.indptr[first : last + 1]
        own = slice(borders[0], borders[-1])
        return LinkConstraints(borders - borders[0], self.sources[own], self.targets[own])

    def reversed(self) -> LinkConstraints:
        """Return the constraints with source and target exchanged."""
        pairs = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        order = np.lexsort((self.targets, self.sources, pairs))
        return LinkConstraints(self.indptr, self.targets[order], self.sources[order])


def make_constraints(
    given: Sequence[Any] | LinkConstraints | None, pairs: Bitext
) -> LinkConstraints | None:
    """Convert links as given to `fit`: for each pair None or a list of (i, j).

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
            f"there are links for {len(given)} pairs, but {len(pairs)} pairs",
            "give one list of links for each pair: None or an empty list if none are known",
        )
    flat: list[tuple[int, int]] = []
    lengths = []
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    for n, (links, (l, m)) in enumerate(zip(given, sizes, strict=True)):
        pair_links = () if links is None else links
        if not isinstance(pair_links, Iterable) or isinstance(pair_links, str | bytes):
            raise DataError(
                f"{pairs.name(n)} has the links {brief(links)}", "give a list of (i, j), or None"
            )
        known = set()
        for link in pair_links:
            try:
                i, j = (index(position) for position in link)
            except (TypeError, ValueError):
                raise DataError(
                    f"{pairs.name(n)} has the invalid link {brief(link)}",
                    "give a link as (i, j), two integers",
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


# Known translations: a bilingual dictionary


@dataclass(frozen=True, eq=False)
class DictionaryConstraints:
    """The constraints that a dictionary puts on the translation table t(f | e).

    ``counts``  (entries,) pseudo-counts; None: there are none
    ``rows``    (rows,) True for source words restricted to the dictionary's translations; None:
                all are unconstrained
    ``mask``    (entries,) False where an entry is ruled out; None: all are possible
    ``fixed``   (rows,) True for rows whose probabilities are given, and (entries,) these
                probabilities; None: none are given
    """

    counts: FloatArray | None = None
    rows: BoolArray | None = None
    mask: BoolArray | None = None
    fixed: tuple[BoolArray, FloatArray] | None = None

    def start(self, table: FloatArray, indptr: IntArray) -> FloatArray:
        """Apply the constraints to an initial table: mask, renormalise, and set fixed rows."""
        if self.rows is None or self.mask is None:
            return table
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        allowed = np.where(self.mask, table, 0.0)
        totals = np.bincount(rows, allowed, len(indptr) - 1)
        new = np.where(self.rows[rows], allowed / np.maximum(totals[rows], 1e-300), table)
        if self.fixed is not None:
            frozen, values = self.fixed
            new = np.where(frozen[rows], values, new)
        return new.astype(table.dtype)


@dataclass(frozen=True)
class Dictionary:
    """Known translations of some source words, with weights; weights of None are to be learned.

    >>> Dictionary.of({"house": "maison", "of": ["de", "du"]}).entries
    {'house': {'maison': None}, 'of': {'de': None, 'du': None}}
    """

    entries: Mapping[str, Mapping[str, float | None]]

    @classmethod
    def of(cls, given: Any, lowercase: bool = False) -> Dictionary:
        """Convert a mapping, (source word, target word) pairs, or None: no entries."""
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
                        f"the dictionary has an invalid entry for {brief(word)}: {brief(known)}",
                        FORMS,
                    )
                row = entries.setdefault(case(str(word)), {})
                row |= {case(target): weight for target, weight in weights.items()}
        elif given is not None:
            # not an iterator, because it is read several times
            if not isinstance(given, Iterable) or isinstance(given, Iterator):
                raise LearnerError(f"the dictionary is {brief(given)}", FORMS)
            for entry in given:
                if not isinstance(entry, list | tuple) or len(entry) != 2:
                    raise LearnerError(f"invalid dictionary entry {brief(entry)}", FORMS)
                source, target = (case(str(word)) for word in entry)
                entries.setdefault(source, {})[target] = None
        if "" in entries or any("" in known for known in entries.values()):
            raise LearnerError("the dictionary has an empty word", FORMS)
        return cls(entries)

    def reversed(self) -> dict[str, list[str]]:
        """Return {target word: source words}, for the parameter ``dictionary``.

        Weights are dropped: p(target | source) says nothing about the other direction.
        """
        sources_of: dict[str, list[str]] = {}
        for source, known in self.entries.items():
            for target in known:
                sources_of.setdefault(target, []).append(source)
        return sources_of

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """All source words and all target words of the dictionary."""
        targets = {target: None for known in self.entries.values() for target in known}
        return list(self.entries), list(targets)

    def number_entries(self, words: Vocabularies) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the vocabulary indices of source and target words, and weights (NaN: none)."""
        if not self.entries:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        sources, targets = (side.numbers for side in words)
        unknown = [word for word in self.words[0] if word not in sources]
        unknown += [word for word in self.words[1] if word not in targets]
        if unknown:
            raise LearnerError(
                f"the dictionary has the word {brief(unknown[0])}, which is new to the model",
                "call fit or partial_fit to add it",
            )
        entries = [
            (sources[source], targets[target], np.nan if weight is None else weight)
            for source, known in self.entries.items()
            for target, weight in known.items()
        ]
        rows, columns, weights = np.array(entries, dtype=float).T
        return rows.astype(np.int64), columns.astype(np.int64), weights

    def constrain(
        self, words: Vocabularies, lexicon: PairLexicon, strength: float | None
    ) -> DictionaryConstraints:
        """Compute the constraints on a table whose lexicon contains all dictionary entries.

        ``strength``  the pseudo-count of each entry; None: no other translation is possible
        """
        if not self.entries:
            return DictionaryConstraints()
        sources, targets, weights = self.number_entries(words)
        where = lexicon.find(sources, targets)
        if (where < 0).any():
            raise LearnerError(
                "the dictionary has entries that the model was not fitted with",
                "call fit or partial_fit to add them",
            )
        if strength is not None:
            counts = np.zeros(len(lexicon))
            counts[where] = strength * np.where(np.isnan(weights), 1.0, weights)
            return DictionaryConstraints(counts=counts)
        rows = lexicon.rows()
        constrained = np.zeros(lexicon.n_sources + 1, bool)
        constrained[sources] = True
        mask = ~constrained[rows]
        mask[where] = True
        weighted = ~np.isnan(weights)
        if not weighted.any():
            return DictionaryConstraints(rows=constrained, mask=mask)
        frozen = np.zeros(lexicon.n_sources + 1, bool)
        frozen[sources[weighted]] = True
        values = np.zeros(len(lexicon))
        values[where[weighted]] = weights[weighted]
        totals = np.bincount(rows, values, lexicon.n_sources + 1)
        values /= np.where(totals[rows] > 0.0, totals[rows], 1.0)
        return DictionaryConstraints(rows=constrained, mask=mask, fixed=(frozen, values))


# Shards, and blocks of their links


@dataclass(frozen=True, eq=False)
class BitextShard:
    """A subset of the sentence pairs, and the part of the lexicon that they need.

    The possible links of a pair are a matrix (l + 1, m): l source words and the empty word, which
    comes last, by m target words. The matrices of all pairs are concatenated in one flat array.

    ``numbers``      (pairs,) the indices of the pairs in the corpus
    ``source``       the source sentences; their words are rows of ``lexicon``
    ``target``       the target sentences
    ``lexicon``      the words that co-occur in these pairs
    ``null``         whether target words can be aligned to the empty word
    ``entries``      (entries,) the positions of this lexicon's entries in the model's lexicon, in
                     ascending order (−1: not there); None: both lexicons are the same
    ``constraints``  known links; None: there are none
    ``new``          whether the pairs are not training pairs: unseen word pairs get a small
                     probability, so that no new pair is impossible
    ``grid``         (target words,) rounds the counts of a corpus of several shards, so that their
                     sum does not depend on the order: see `kernels.make_grid`; None: one shard
    """

    numbers: IntArray
    source: Side
    target: Side
    lexicon: PairLexicon
    null: bool
    entries: IntArray | None = None
    constraints: LinkConstraints | None = None
    new: bool = False
    grid: FloatArray | None = None
    _occurrences: Occurrences | None = None  # as found when the lexicon was made

    def __len__(self) -> int:
        return len(self.numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is computed from them stays here.

        One of several shards is sent with the part of the lexicon that it needs.
        """
        names = [field.name for field in fields(self) if not field.name.startswith("_")]
        own = self._with_own_lexicon() if self._is_one_of_several else self
        return {name: getattr(own, name) for name in names}

    @property
    def _is_one_of_several(self) -> bool:
        """Whether this is one of several shards that share the lexicon of the corpus."""
        return self.grid is not None and self.entries is None

    def _with_own_lexicon(self, threads: int = 1) -> BitextShard:
        """Return the shard with the part of the lexicon that it needs."""
        own, entries = self.lexicon.restrict(self.occurrences, self.target, threads)
        return replace(self, lexicon=own, entries=entries, _occurrences=self.occurrences)

    def load(self, threads: int = 1) -> BitextShard:
        """Return the shard for an E-step: it is in memory. See `BitextShardOnDisk`.

        Of several shards, a copy: it forgets where words occur, which takes twice the memory of the
        words themselves, as soon as the E-step is over.
        """
        return replace(self) if self._is_one_of_several else self

    @cached_property
    def occurrences(self) -> Occurrences:
        """Where each source word occurs."""
        if self._occurrences is not None:
            return self._occurrences
        tokens, borders = self.source.tokens, self.source.indptr
        return find_occurrences(tokens, borders, self.lexicon.n_sources, self.null)

    @cached_property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Source lengths l and target lengths m, each (pairs,)."""
        return self.source.lengths, self.target.lengths

    @cached_property
    def shapes(self) -> SentenceShapes:
        """The distinct pairs of lengths."""
        return SentenceShapes.of(*self.sizes)

    @cached_property
    def arrays(self) -> ShardArrays:
        """The arrays that the kernels need."""
        l, m = self.sizes
        lexicon, target = self.lexicon, self.target
        rows = lexicon.indptr, lexicon.targets
        offsets = cumulate((l + 1) * m)
        return ShardArrays(
            *rows, *self.occurrences, target.tokens, target.indptr, offsets, lexicon.n_targets
        )

    @property
    def rounding(self) -> FloatArray:
        """The grid; zeros, which round nothing, if there is none."""
        return np.zeros(self.lexicon.n_targets, np.float32) if self.grid is None else self.grid

    def take_entries(self, table: Any, exact: bool = False) -> FloatArray:
        """Return this shard's part of a translation table, one number per entry.

        ``exact``  keep probabilities below `UNSEEN` as they are: for computing the likelihood
                   under exactly this table
        """
        if self.entries is None:
            return pages.contiguous(np.asarray(table))  # at first, one broadcast number
        if not self.new:
            if not (isinstance(table, np.ndarray) and table.flags.c_contiguous):
                return np.asarray(table[self.entries])  # a lazy table, or one broadcast number
            values: FloatArray = spill.zeros(len(self.entries), table.dtype)
            sparse.take(table, self.entries, values)
            return values
        values = np.asarray(table[np.maximum(self.entries, 0)])
        least = values if exact else np.maximum(values, UNSEEN)
        return np.where(self.entries >= 0, least, UNSEEN).astype(values.dtype)

    def model_counts(self, counts: FloatArray, size: int) -> Counts:
        """Map counts of this shard's entries to the model's, of which there are ``size``."""
        if self.entries is None:
            return counts
        if not self.new:
            return SparseCounts(self.entries, counts, size)
        seen = self.entries >= 0
        return SparseCounts(self.entries[seen], counts[seen], size)

    def blocks(self) -> Iterator[LinkBlock]:
        """Yield all pairs in blocks of at most `BLOCK` links, or of one longer pair."""
        first, offsets = 0, self.arrays.offsets
        while first < len(self):
            last = int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            yield LinkBlock(self, first, last)
            first = last


class LinkBlock:
    """Consecutive pairs ``first`` to ``last`` of a shard, whose links are processed together.

    ``span``     the slice of these pairs in the shard
    ``numbers``  (pairs,) their indices in the corpus
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
        """Set links to t(f_j | e_i), or to 0 if they are ruled out.

        Without the empty word, its links are not set: they must be 0 before.
        """
        shard = self.shard
        arguments = self.first, self.last, table, shard.arrays, links
        over_rows(kernels.gather, shard.arrays.occurs, threads, *arguments)
        if shard.constraints is not None:
            kernels.apply_constraints(
                self.first, self.last, shard.constraints, self.sizes, self.offsets, links
            )

    def scatter(self, links: FloatArray, counts: FloatArray, threads: int = 1) -> None:
        """Add the values of all links to the counts of their lexicon entries."""
        arrays = self.shard.arrays
        arguments = self.first, self.last, arrays, links, self.shard.rounding, counts
        over_rows(kernels.scatter, arrays.occurs, threads, *arguments)

    def scatter_null(self, links: FloatArray, counts: FloatArray) -> None:
        """Do what `scatter` does for the empty word alone; ``counts`` are of its entries."""
        arrays, last = self.shard.arrays, self.shard.lexicon.n_sources
        begin = arrays.rows[last]
        own = arrays._replace(rows=arrays.rows - begin, targets=arrays.targets[begin:])
        rounding = self.shard.rounding
        kernels.scatter(last, last + 1, self.first, self.last, own, links, rounding, counts)

    def _rows(self) -> tuple[IntArray, IntArray]:
        """Return how many links each row of the pairs' matrices has, and which rows are those of
        source words, not of the empty word."""
        l, m = self.sizes
        ends = np.cumsum(l + 1) - 1
        words = np.ones(int(l.sum()) + len(l), np.bool_)
        words[ends] = False
        return np.repeat(m, l + 1), np.flatnonzero(words)

    def scale_rows(self, links: FloatArray, weights: FloatArray) -> None:
        """Multiply the links of each source word by its weight, (source words,), in place."""
        widths, words = self._rows()
        factors = np.ones(len(widths), links.dtype)
        factors[words] = weights
        links *= np.repeat(factors, widths)

    def sum_rows(self, links: FloatArray) -> FloatArray:
        """Return the sum over the links of each source word, (source words,)."""
        widths, words = self._rows()
        begins = np.cumsum(widths) - widths
        sums: FloatArray = np.add.reduceat(links, begins, dtype=np.float64)[words]
        return sums

    def matrices(self, links: FloatArray) -> Iterator[FloatArray]:
        """Yield the links of each pair, (l + 1, m); the last row is that of the empty word."""
        shapes = zip(self.offsets[:-1], self.offsets[1:], *self.sizes, strict=True)
        for begin, end, l, m in shapes:
            yield links[begin:end].reshape(l + 1, m)


@dataclass(frozen=True, eq=False)
class BitextShardOnDisk:
    """A shard of consecutive pairs on disk, read for each E-step, which knows how many threads.

    ``first, last``  the pairs, counted without those that have an empty side
    """

    corpus: BitextCorpus
    first: int
    last: int

    def load(self, threads: int = 1) -> BitextShard:
        """Read the shard."""
        return self.corpus.read(self.first, self.last, threads)


def _cut_side(side: Side, first: int, last: int) -> Side:
    """Return consecutive sentences, as a view, without the words; what is on disk is read."""
    borders = side.indptr[first : last + 1]
    return Side([], side.tokens[borders[0] : borders[-1]], borders - borders[0])


class BitextCorpus:
    """The corpus of a directional aligner: sentence pairs, and their known links.

    Pairs with an empty side carry no information about alignments and are skipped.

    The shards of pairs in memory are views of the corpus, and share its lexicon.

    Of pairs on disk, only the lengths and the lexicon are in memory, and the words of one shard:
    of at most `CUT` possible links. The part of the lexicon that a shard needs is found anew when
    it is read; that takes less than half the time of the quickest E-step.

    ``pairs``        all pairs, including those with an empty side
    ``null``         whether target words can be aligned to the empty word
    ``constraints``  known links; None: there are none
    ``more``         source words and target words of further lexicon entries, which need not
                     co-occur in the pairs
    ``lexicon``      the lexicon of a fitted model; None: collect it from these pairs
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
        self._collected: PairLexicon | None = None
        l, m = (lengths.astype(np.float64) for lengths in self.sizes)
        self.cuts = cut_by_work(l * m + np.maximum(l, m), CUT)
        """The first pair of each shard, and the one after its last, counted in ``numbers``.

        Both directions are cut at the same pairs: what counts is the one with more links.
        """

    def __len__(self) -> int:
        return len(self.numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Return what the corpus was made from: shards and lexicon can be made again.

        The lexicon of pairs on disk goes along: to collect it they must all be read.
        """
        names = ("pairs", "null", "constraints", "more", "_lexicon", "numbers", "cuts")
        state = {name: getattr(self, name) for name in names}
        return {**state, "_collected": self._collected if self.is_on_disk else None}

    @property
    def is_on_disk(self) -> bool:
        """Whether the words are on disk."""
        return isinstance(self.pairs.source.tokens, DiskArray)

    @property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Source lengths l and target lengths m, each (pairs,)."""
        source, target = self.pairs.source, self.pairs.target
        return source.lengths[self.numbers], target.lengths[self.numbers]

    @cached_property
    def _kept(self) -> tuple[Bitext, LinkConstraints | None]:
        """The pairs without those that have an empty side, and their constraints."""
        none_empty = len(self.numbers) == len(self.pairs)
        pairs = self.pairs if none_empty else self.pairs.select(self.numbers)
        return pairs, self.constraints and self.constraints.select(self.numbers)

    def _cut(self, first: int, last: int) -> tuple[Side, Side, LinkConstraints | None]:
        """Return consecutive pairs, and their constraints; what is on disk is read."""
        if not self.is_on_disk:
            pairs, constraints = self._kept
            known = constraints and constraints.cut(first, last)
            return _cut_side(pairs.source, first, last), _cut_side(pairs.target, first, last), known
        numbers = self.numbers[first:last]
        begin = int(numbers[0])
        source, target = (
            _cut_side(side, begin, int(numbers[-1]) + 1)
            for side in (self.pairs.source, self.pairs.target)
        )
        if len(source) > len(numbers):  # there are pairs with an empty side in between
            source, target = source.select(numbers - begin), target.select(numbers - begin)
        return source, target, self.constraints and self.constraints.select(numbers)

    @cached_property
    def _grid(self) -> FloatArray | None:
        """What rounds the counts of several shards: see `kernels.make_grid`."""
        if len(self.cuts) == 1 or self._lexicon is not None:
            return None
        return kernels.make_grid(count_words(self.pairs.target))

    def _collect(self, first: int, last: int) -> tuple[PairLexicon, Occurrences]:
        """Collect the lexicon of consecutive pairs; also return where source words occur."""
        source, target, _ = self._cut(first, last)
        n_sources, n_targets = len(self.pairs.source.words), len(self.pairs.target.words)
        found = find_occurrences(source.tokens, source.indptr, n_sources, self.null)
        return make_lexicon(found, target, n_targets), found

    def _view(
        self, first: int, last: int, lexicon: PairLexicon, found: Occurrences | None = None
    ) -> BitextShard:
        """Make a shard of consecutive training pairs with the lexicon of all."""
        source, target, known = self._cut(first, last)
        own = (self.numbers[first:last], source, target, lexicon, self.null)
        return BitextShard(*own, constraints=known, grid=self._grid, _occurrences=found)

    def read(self, first: int, last: int, threads: int = 1) -> BitextShard:
        """Read a shard of consecutive training pairs from disk."""
        pages.give_back()  # what the shard before, or the end of a step, has left in holes
        whole = self._view(first, last, self.lexicon)
        return whole if len(self.cuts) == 1 else whole._with_own_lexicon(threads)

    def _unite(self, parts: Iterable[PairLexicon]) -> PairLexicon:
        """Return the lexicon of all pairs, from those of parts of them."""
        lexicon = unite_lexicons(parts)
        return lexicon if self.more is None else lexicon.with_pairs(*self.more)

    @cached_property
    def _views(self) -> list[BitextShard]:
        """The shards of pairs in memory; their lexicon is collected from all pairs at once."""
        found, lexicon = None, self._collected
        if lexicon is None:
            lexicon, found = self._collect(0, len(self))
            lexicon = self._unite([lexicon])
        if len(self.cuts) > 1:
            found = None
            pages.give_back()
        return [self._view(first, last, lexicon, found) for first, last in self.cuts]

    def flipped(self, constraints: LinkConstraints | None) -> BitextCorpus:
        """Return the corpus of the other direction, whose lexicon has the same pairs of words."""
        more = self.more and (self.more[1], self.more[0])
        other = BitextCorpus(self.pairs.flipped(), self.null, constraints, more)
        if more is None:
            other._collected = self.lexicon.transposed(self.null)
        return other

    @cached_property
    def everything(self) -> BitextShard:
        """All pairs in one shard, in memory."""
        if self._lexicon is not None:
            return self._make_shard(self.numbers)
        if not self.is_on_disk and len(self.cuts) == 1:
            return self._views[0]
        return replace(self._view(0, len(self), self.lexicon), grid=None)

    def _make_shard(self, numbers: IntArray) -> BitextShard:
        """Make a shard of the pairs ``numbers``; their words may be new to the lexicon."""

        def renumber(side: Side) -> tuple[Side, IntArray]:
            """Renumber the words that occur from 0; return the sentences and the old indices."""
            words, tokens = np.unique(side.tokens, return_inverse=True)
            return Side([], tokens.astype(np.int32), side.indptr), words

        pairs, lexicon = self.pairs.select(numbers), self.lexicon
        source, rows = renumber(pairs.source)
        target, columns = renumber(pairs.target)
        occurrences = find_occurrences(source.tokens, source.indptr, len(rows), self.null)
        local = make_lexicon(occurrences, target, len(columns))
        rows = np.append(np.where(rows < lexicon.n_sources, rows, -1), lexicon.n_sources)
        entries = lexicon.match(rows, local, columns)
        constraints = self.constraints and self.constraints.select(numbers)
        new = self._lexicon is not None
        own = (numbers, source, target, local, self.null, entries, constraints, new)
        return BitextShard(*own, _occurrences=occurrences)

    def _make_part(self, first: int, last: int) -> BitextShard:
        """Make a shard of consecutive pairs, whose words may be new to the lexicon."""
        return self._make_shard(self.numbers[first:last])

    def _refer(self, first: int, last: int) -> BitextShardOnDisk:
        return BitextShardOnDisk(self, first, last)

    @property
    def lexicon(self) -> PairLexicon:
        """The model's lexicon: given, or collected from these pairs."""
        if self._lexicon is not None:
            return self._lexicon
        if not self.is_on_disk:
            return self._views[0].lexicon
        if self._collected is None:
            self._collected = self._unite(self._collect(*cut)[0] for cut in self.cuts)
        return self._collected

    def shards(
        self, batch_size: int | None = None, seed: int = 0
    ) -> Sequence[BitextShard | BitextShardOnDisk]:
        """Cut the pairs into shards of at most `CUT` possible links, or into mini-batches.

        The shards of training pairs are views of the corpus; those on disk are read when they are
        used. Kernels are threaded, so that a single shard is no slower than many.
        """
        if batch_size is not None:
            batches = split_items(len(self), len(self), batch_size, seed)
            wanted = [(self.numbers[batch],) for batch in batches]
            made = ShardsOnAccess(self._make_shard, wanted)
            return made if self.is_on_disk else list(made)
        if self._lexicon is not None:
            parts = ShardsOnAccess(self._make_part, self.cuts)
            if self.is_on_disk:
                return parts
            return [self.everything] if len(parts) == 1 else list(parts)
        return ShardsOnAccess(self._refer, self.cuts) if self.is_on_disk else self._views

    def chunks(self) -> Sequence[BitextShard]:
        """Return all pairs in order, `CHUNK` at a time, as shards made on access."""
        firsts = range(0, len(self), CHUNK)
        cuts = [(first, min(first + CHUNK, len(self))) for first in firsts]
        return ShardsOnAccess(self._make_part, cuts)

    def name(self, number: int) -> str:
        """Return the name of a pair for messages."""
        return self.pairs.name(number)


# Both directions


class BidirectionalShard(NamedTuple):
    """The same pairs in both directions.

    ``mirrored``  whether both lexicons have the same pairs of words
    """

    forward: BitextShard
    backward: BitextShard
    mirrored: bool = False

    def load(self, threads: int = 1) -> BidirectionalShard:
        """Return the shard for an E-step: see `BitextShard.load`."""
        sides = self.forward.load(threads), self.backward.load(threads)
        return BidirectionalShard(*sides, self.mirrored)

    def backward_blocks(self) -> Iterator[LinkBlock]:
        """Yield backward blocks of the same pairs as the forward blocks."""
        for block in self.forward.blocks():
            yield LinkBlock(self.backward, block.first, block.last)


class BidirectionalShardOnDisk(NamedTuple):
    """The same pairs on disk in both directions."""

    forward: BitextShardOnDisk
    backward: BitextShardOnDisk
    mirrored: bool = False

    def load(self, threads: int = 1) -> BidirectionalShard:
        """Read the shard in both directions."""
        sides = self.forward.load(threads), self.backward.load(threads)
        return BidirectionalShard(*sides, self.mirrored)


def _join_shards(
    forward: Sequence[Any], backward: Sequence[Any], mirrored: bool, n: int
) -> BidirectionalShard | BidirectionalShardOnDisk:
    """Return shard n of both directions."""
    there, back = forward[n], backward[n]
    if isinstance(there, BitextShardOnDisk):
        return BidirectionalShardOnDisk(there, back, mirrored)
    return BidirectionalShard(there, back, mirrored)


@dataclass(frozen=True, eq=False)
class BidirectionalCorpus:
    """The corpus of both directions.

    ``mirrored``  whether both lexicons have the same pairs of words: see `BitextCorpus.flipped`
    """

    forward: BitextCorpus
    backward: BitextCorpus
    mirrored: bool = False

    def __len__(self) -> int:
        return len(self.forward)

    @property
    def pairs(self) -> Bitext:
        """All pairs, in the forward direction."""
        return self.forward.pairs

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Any]:
        """Return shards as `BitextCorpus.shards` does, in both directions."""
        sides = [side.shards(batch_size, seed) for side in (self.forward, self.backward)]
        both = _join_all(sides[0], sides[1], self.mirrored)
        return both if isinstance(sides[0], ShardsOnAccess) else list(both)

    def chunks(self) -> Sequence[Any]:
        """Return all pairs in order, `CHUNK` at a time, as shards made on access."""
        return _join_all(self.forward.chunks(), self.backward.chunks(), mirrored=False)

    def name(self, number: int) -> str:
        return self.forward.name(number)


def _join_all(
    forward: Sequence[Any], backward: Sequence[Any], mirrored: bool
) -> ShardsOnAccess[Any]:
    """Return the shards of both directions, made on access."""
    join = partial(_join_shards, forward, backward, mirrored)
    return ShardsOnAccess(join, [(n,) for n in range(len(forward))])


@dataclass(frozen=True, eq=False)
class Chunks:
    """A corpus of new pairs, to be aligned `CHUNK` pairs at a time."""

    corpus: BitextCorpus | BidirectionalCorpus

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def pairs(self) -> Bitext:
        """All pairs."""
        return self.corpus.pairs

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Any]:
        """Return the chunks."""
        return self.corpus.chunks()

    def name(self, number: int) -> str:
        """Return the name of a pair for messages."""
        return self.corpus.name(number)
